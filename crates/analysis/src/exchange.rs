//! The exchange (or TLS stretch) that is being recorded.

use crate::result::Span;
use crate::step::Step;
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
    pub(crate) bytes: [u64; 2],
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

    /// Adds a step, folding it into the one before where the two are alike.
    pub(crate) fn push(&mut self, step: Step, rtt: Nanos) {
        if let Some(last) = self.steps.last_mut() {
            if last.absorb(&step, rtt) {
                return;
            }
        }
        self.steps.push(step);
    }
}
