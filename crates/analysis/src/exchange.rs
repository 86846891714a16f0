//! The exchange (or TLS stretch) that is being recorded.

use crate::half::Repair;
use crate::result::Span;
use crate::step::{Step, Wait};
use tcpwhy_base::Nanos;

/// Steps are turned into spans when there are this many, so that memory stays bounded.
pub(crate) const MAX_STEPS: usize = 768;
/// Spans kept in detail for one exchange; longer ones are folded.
pub(crate) const MAX_SPANS: usize = 400;

/// One exchange while it goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) active: bool,
    pub(crate) in_tls: bool,
    pub(crate) start: Nanos,
    pub(crate) first_frame: u64,
    pub(crate) request_end: Option<Nanos>,
    pub(crate) response_start: Option<Nanos>,
    /// Last progress: time, frame, who.
    pub(crate) last: Nanos,
    pub(crate) last_frame: u64,
    pub(crate) last_sender: u8,
    /// When the message that goes on began.
    pub(crate) message: Nanos,
    pub(crate) bytes: [u64; 2],
    /// Payload of the segment that opened it: it has no step.
    pub(crate) first_bytes: u64,
    pub(crate) turns: u32,
    pub(crate) duplex: bool,
    pub(crate) steps: Vec<Step>,
    /// Spans of steps that were turned over already.
    pub(crate) done: Vec<Span>,
    pub(crate) carry: Carry,
}

/// What the attribution of later steps must know of earlier ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carry {
    /// Largest flight of the message so far, and rounds since it grew.
    pub(crate) peak: u32,
    pub(crate) rounds: u32,
    /// Transmission time left at the bottleneck, by direction.
    pub(crate) backlog: [i64; 2],
    pub(crate) message_of: u8,
}

impl Recorder {
    /// Empties it, keeping its buffers.
    pub(crate) fn reset(&mut self) {
        let mut steps = std::mem::take(&mut self.steps);
        steps.clear();
        *self = Recorder { steps, ..Recorder::default() };
    }

    /// The steps of `sender` since `since` belong to a loss; one that began before is cut in two there.
    pub(crate) fn mark_loss(&mut self, sender: usize, kind: Repair, since: Nanos) {
        let mut i = self.steps.len();
        while i > 0 && self.steps[i - 1].end > since {
            i -= 1;
            let step = &mut self.steps[i];
            if usize::from(step.sender) != sender || step.wait == Wait::Turn {
                break;
            }
            if step.loss.is_some() {
                continue;
            }
            if step.start < since && matches!(step.wait, Wait::Loss(_)) {
                step.loss = Some((kind, step.end));
                break;
            }
            if step.start < since {
                let mut first = *step;
                first.end = since;
                first.burst = first.burst.min(first.duration());
                step.start = since;
                step.bytes = 0;
                step.burst = step.burst - first.burst;
                step.loss = Some((kind, step.end));
                self.steps.insert(i, first);
                break;
            }
            step.loss = Some((kind, step.end));
        }
    }

    /// The last retransmission of `sender` was not needed. If nothing followed it, nothing waited for it: the time
    /// before it belongs to whatever the exchange was waiting for: `true`. Else it is a needless recovery.
    pub(crate) fn forget_needless(&mut self, sender: usize, last_segment: bool) -> bool {
        let own = |s: &Step| usize::from(s.sender) == sender && matches!(s.wait, Wait::Loss(_));
        match self.steps.last() {
            Some(step) if last_segment && own(step) && step.end == self.last => {
                self.last = step.start;
                self.last_frame = step.frames[0];
                self.steps.pop();
                true
            }
            _ => {
                self.rename_losses(sender, Repair::Spurious);
                false
            }
        }
    }

    /// The last long pause of `sender` was a wait for its timer.
    pub(crate) fn stalled(&mut self, sender: usize, at_least: Nanos) {
        let recent = self.steps.iter_mut().rev().take(8).take_while(|s| usize::from(s.sender) == sender);
        if let Some(step) = recent.into_iter().find(|s| s.wait == Wait::Pause && s.duration() >= at_least) {
            step.wait = Wait::Loss(Repair::Spurious);
            step.note = 1;
        }
    }

    /// The latest losses of `sender` were of another kind than was thought.
    pub(crate) fn rename_losses(&mut self, sender: usize, kind: Repair) {
        let recent = self.steps.iter_mut().rev().take(16);
        for step in recent.take_while(|s| usize::from(s.sender) == sender && s.wait != Wait::Turn) {
            if let Wait::Loss(k) = &mut step.wait {
                *k = kind;
            }
            if let Some(loss) = &mut step.loss {
                loss.0 = kind;
            }
        }
    }

    /// Adds a step, folding it into the one before where the two are alike.
    pub(crate) fn push(&mut self, step: Step, rtt: Nanos) {
        if let Some(last) = self.steps.last_mut()
            && last.absorb(&step, rtt)
        {
            return;
        }
        if self.steps.len() == self.steps.capacity() {
            // Most exchanges have one or two, and one that goes on holds them while its connection is idle.
            self.steps.reserve_exact(1 + self.steps.len() / 2);
        }
        self.steps.push(step);
    }
}
