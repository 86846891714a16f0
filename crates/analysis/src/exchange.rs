//! The exchange (or TLS stretch) that is being recorded.

mod asked;
mod both_ways;
mod closing;
mod mark;

pub(crate) use closing::{ALERT, may_close};
pub(crate) use mark::Mark;

use crate::attribute::{Carry, Context, attribute, fold};
use crate::fetch::fetch_whole;
use crate::output::Output;
use crate::release::{Hindsight, Wait};
use crate::rest::{Frame, at_rest};
use crate::result::Span;
use crate::step::Step;
use crate::track::{Moment, Recovered, Repair, Since};
use tcpwhy_base::protocol::asks_for_encryption;
use tcpwhy_base::{Cause, End, Ends, Nanos, Segment, Tls};

/// Steps are turned into spans when there are this many, so that memory stays bounded.
const MAX_STEPS: usize = 768;
/// Spans kept in detail for one exchange; longer ones are folded.
pub(crate) const MAX_SPANS: usize = 400;

/// What was recorded of one exchange.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) start: Nanos,
    pub(crate) first_frame: u64,
    pub(crate) request_end: Option<Nanos>,
    pub(crate) response_start: Option<Nanos>,
    /// Last progress: time, frame, who.
    pub(crate) last: Nanos,
    pub(crate) last_frame: u64,
    pub(crate) last_sender: End,
    pub(crate) bytes: Ends<u64>,
    /// Payload of the segment that opened it: it has no step.
    first_bytes: u64,
    /// What opened it may be a `close_notify`, as far as its record tells.
    pub(crate) may_close: bool,
    /// Changes of direction from client to server.
    pub(crate) turns: u32,
    pub(crate) duplex: bool,
    /// The client goes on with what it was sending, though the server has answered (rule 112).
    streams: bool,
    /// Payload of segments with nothing but grants of HTTP/2.
    pub(crate) credit: Ends<u16>,
    pub(crate) steps: Vec<Step>,
    /// Spans of steps that were turned over already.
    pub(crate) done: Vec<Span>,
    pub(crate) carry: Carry,
}

at_rest! {
    Recorded {
        start, first_frame as Frame, request_end, response_start, last, last_frame as Frame, last_sender,
        bytes, first_bytes, may_close, turns, duplex, streams, credit, steps, done, carry,
    }
}

/// A part of a one-way transfer, and the long pause before it.
#[derive(Debug)]
pub(crate) struct Run {
    /// When the pause ended, and the frame that ended it.
    pub(crate) pause: Option<Moment>,
    pub(crate) recorded: Recorded,
}

impl Recorded {
    /// How often the server has answered: one less than the client has spoken, while its last message has no answer.
    pub(crate) fn answers(&self) -> u32 {
        self.turns.saturating_sub(u32::from(self.last_sender == End::Client))
    }

    /// All its steps, unless some were turned over already.
    pub(crate) fn all_steps(&self) -> Option<&[Step]> {
        self.done.is_empty().then_some(&self.steps)
    }

    /// The spans of all its steps, into `spans`; the buffer of the steps comes back.
    pub(crate) fn attribute(
        &mut self,
        context: &Context,
        spans: &mut Vec<Span>,
        limits: &mut Vec<Cause>,
    ) -> Vec<Step> {
        spans.append(&mut self.done);
        let mut steps = std::mem::take(&mut self.steps);
        attribute(context, &mut steps, &mut self.carry, spans, limits);
        steps
    }

    /// When its request ended, if that is between these, else its start.
    pub(crate) fn asked_within(&self, start: Nanos, end: Nanos) -> Nanos {
        let asked = self.request_end.filter(|t| self.bytes.client > 0 && (start..=end).contains(t));
        asked.unwrap_or(start)
    }

    /// A one-way transfer with a long pause within.
    pub(crate) fn splits(&self) -> bool {
        self.bytes.server == 0 && self.steps.iter().any(|s| s.split)
    }

    /// A one-way transfer is one exchange per run without a long pause.
    pub(crate) fn runs(mut self) -> Vec<Run> {
        let steps = std::mem::take(&mut self.steps);
        let (last, last_frame) = (self.last, self.last_frame);
        let mut left = self.bytes.client;
        let slices = split_runs(&steps);
        let count = slices.len();
        let mut runs: Vec<Run> = Vec::with_capacity(count);
        let mut whole = Some(self);
        for (i, slice) in slices.into_iter().enumerate() {
            // The first step of every run but the first is the pause itself.
            let (pause, own) = if i == 0 { (None, slice) } else { (slice.first(), &slice[1..]) };
            let begin = |p: &Step| {
                let mut run = Recorded {
                    start: p.end,
                    first_frame: p.last_frame,
                    turns: 1,
                    first_bytes: u64::from(p.bytes),
                    ..Recorded::default()
                };
                run.carry.pass(End::Client, p.bytes);
                run
            };
            let mut run = whole.take().or_else(|| pause.map(begin)).unwrap_or_default();
            let bytes = own.iter().map(|s| u64::from(s.bytes)).sum::<u64>() + run.first_bytes;
            let (end, end_frame) = own.last().map_or((run.start, run.first_frame), |s| (s.end, s.last_frame));
            let ends = i == count - 1;
            run.bytes = Ends::new(if ends { left } else { bytes.min(left) }, 0);
            left -= run.bytes.client;
            run.steps = own.to_vec();
            (run.last, run.last_frame) = if ends { (last, last_frame) } else { (end, end_frame) };
            run.request_end = Some(run.last);
            runs.push(Run { pause: pause.map(|p| (p.end, p.last_frame)), recorded: run });
        }
        runs
    }
}

/// Runs of steps; each after the first begins with a step that splits.
fn split_runs(steps: &[Step]) -> Vec<&[Step]> {
    let mut runs = Vec::new();
    let mut from = 0;
    for (i, step) in steps.iter().enumerate() {
        if step.split {
            runs.push(&steps[from..i]);
            from = i;
        }
    }
    runs.push(&steps[from..]);
    runs
}

/// One exchange while it goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    active: bool,
    in_tls: bool,
    /// In TLS: the turn in which the server has changed to the keys of the session, or said so.
    server_changed_cipher: Option<u32>,
    /// TLS was asked for in the clear, and has not begun.
    asked_for_tls: bool,
    /// The server has asked for another ClientHello (HelloRetryRequest), as TLS 1.3 alone does.
    pub(crate) asked_again: bool,
    /// The turn of the first ClientHello.
    hello: u32,
    recorded: Recorded,
    /// When the message that goes on began.
    message: Nanos,
    /// The last recovery of each side that has ended: how, and when.
    recovered: Ends<Option<(Repair, Nanos)>>,
}

at_rest! {
    Recorder {
        active, in_tls, server_changed_cipher, asked_for_tls, asked_again, hello, recorded, message, recovered,
    }
}

/// What others may ask.
impl Recorder {
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.active && self.in_tls
    }

    pub(crate) fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// There are so many steps that they should be turned over.
    pub(crate) fn is_full(&self) -> bool {
        self.recorded.steps.len() >= MAX_STEPS
    }

    /// What the next segment is to be judged by.
    pub(crate) fn since(&self) -> Since {
        let r = &self.recorded;
        let speaker = r.last_sender;
        Since { time: r.last, speaker, message: self.message, recovered: self.recovered[speaker] }
    }

    /// Its last step will be needed.
    pub(crate) fn fetch_steps(&self) {
        self.recorded.steps.last().into_iter().for_each(fetch_whole);
    }
}

impl Recorder {
    /// A segment opens an exchange, or the TLS handshake. `spare` is a buffer to use.
    pub(crate) fn open(
        &mut self,
        s: End,
        segment: &Segment,
        t: Nanos,
        tls: bool,
        spare: impl FnOnce() -> Vec<Step>,
    ) {
        let mut steps = std::mem::take(&mut self.recorded.steps);
        steps.clear();
        if steps.capacity() == 0 {
            steps = spare();
        }
        self.recorded = Recorded {
            start: t,
            first_frame: segment.frame,
            last: t,
            last_frame: segment.frame,
            last_sender: s,
            may_close: may_close(segment),
            steps,
            ..Recorded::default()
        };
        self.active = true;
        self.in_tls = tls;
        (self.server_changed_cipher, self.asked_again) = (None, false);
        self.asked_for_tls = tls && segment.tls.is_none();
        self.hello = 1;
        self.message = t;
    }

    /// The side that speaks is another one.
    pub(crate) fn next_message(&mut self, t: Nanos) {
        self.message = t;
    }

    /// A segment of the TLS handshake. `true`: it is the first with application data, and the handshake is
    /// over. In TLS 1.3 the server's first flight holds records of that type too (RFC 8446, 5.2), before the
    /// client has answered. A ChangeCipherSpec beside a HelloRetryRequest changes nothing (D.4): a
    /// ServerHello in the clear follows in the next turn. What was captured of it may tell by itself (4.1.3).
    pub(crate) fn tls_ends(&mut self, s: End, segment: &Segment) -> bool {
        let turns = self.recorded.turns;
        if s == End::Server {
            let again = || self.server_changed_cipher.is_some_and(|turn| turn < turns);
            if segment.tls.has(Tls::ASKS_AGAIN) || segment.tls.has(Tls::HANDSHAKE) && again() {
                (self.server_changed_cipher, self.asked_again) = (None, true);
            } else if segment.tls.has(Tls::CHANGE_CIPHER) {
                self.server_changed_cipher = Some(turns);
            }
        } else if self.asked_for_tls {
            // Refused, or not understood: the client goes on without.
            let head = &segment.head[..usize::from(segment.head_len).min(8)];
            if segment.tls.is_none() && !asks_for_encryption(head) {
                return true;
            }
            self.asked_for_tls = segment.tls.is_none();
            self.hello = turns + u32::from(self.recorded.last_sender == End::Server);
        }
        segment.tls.has(Tls::DATA)
            && (s == End::Client || turns > self.hello && self.server_changed_cipher.is_some())
    }

    /// `new` bytes of `s` passed that had not passed before.
    pub(crate) fn progress(&mut self, s: End, segment: &Segment, t: Nanos, new: u32) {
        let r = &mut self.recorded;
        if r.bytes == Ends::default() {
            r.first_bytes = u64::from(new);
            r.carry.pass(s, new);
        }
        r.bytes[s] += u64::from(new);
        if segment.grants() {
            r.credit[s] = r.credit[s].saturating_add(u16::try_from(new).unwrap_or(u16::MAX));
        }
        if s == End::Client {
            if r.bytes.server == 0 {
                r.request_end = Some(t);
                r.turns = r.turns.max(1);
            } else if r.last_sender == End::Server {
                r.turns += 1;
                r.duplex = true;
            }
        } else if r.response_start.is_none() {
            r.response_start = Some(t);
        }
        r.last = t;
        r.last_frame = segment.frame;
        r.last_sender = s;
    }

    /// The other side spoke, which the capture missed, and is answered.
    pub(crate) fn turns_unseen(&mut self) {
        self.recorded.turns += 1;
        self.recorded.duplex = true;
    }

    /// The last segment of the TLS handshake.
    pub(crate) fn ends_at(&mut self, segment: &Segment, t: Nanos) {
        self.recorded.last = t;
        self.recorded.last_frame = segment.frame;
    }

    /// A segment of `s` may have followed its last one at once, in a wait of at most `within` and without a
    /// loss: takes it into the step before, if that takes bursts ([`Step::absorb`]).
    #[inline(always)]
    pub(crate) fn goes_on_at_once(&mut self, s: End, segment: &Segment, t: Nanos, within: Nanos) -> bool {
        let r = &mut self.recorded;
        let waited = t - r.last;
        let lossy = || self.recovered[s].is_some_and(|recovered| recovered.1 > r.last);
        if r.last_sender != s || waited > within || lossy() {
            return false;
        }
        let from = r.last;
        r.steps.last_mut().is_some_and(|last| last.absorb_burst(s, from, t, segment))
    }

    /// Adds a step, folding it into the one before where the two are alike.
    #[inline]
    pub(crate) fn push(&mut self, step: &Step, rtt: Nanos) {
        if let Wait::Loss { repair, .. } = step.wait {
            // The steps since the first sign of the loss belong to it.
            let since = step.loss.map_or(step.start, |l| l.1);
            self.mark_loss(step.sender, repair, since);
        }
        let steps = &mut self.recorded.steps;
        if let Some(last) = steps.last_mut()
            && last.absorb(step, rtt)
        {
            return;
        }
        if steps.len() == steps.capacity() {
            // Most exchanges have one or two, and one that goes on holds them while its connection is idle.
            steps.reserve_exact(if steps.len() < 2 { 1 } else { 1 + steps.len() });
        }
        steps.push(*step);
    }

    /// Turns the steps recorded so far into spans, to bound memory.
    pub(crate) fn turn_over(&mut self, context: &Context, limits: &mut Vec<Cause>) {
        let r = &mut self.recorded;
        attribute(context, &mut r.steps, &mut r.carry, &mut r.done, limits);
        if r.done.len() > 2 * MAX_SPANS {
            fold(&mut r.done, MAX_SPANS);
        }
    }

    /// Ends the recording; what was recorded is summed already, and is written over by what opens the next.
    #[inline]
    pub(crate) fn forget(&mut self, parts: &mut Output) {
        self.active = false;
        self.in_tls = false;
        parts.give_back_steps(std::mem::take(&mut self.recorded.steps));
    }

    /// Ends the recording and gives what was recorded.
    pub(crate) fn take(&mut self) -> Recorded {
        self.active = false;
        self.in_tls = false;
        std::mem::take(&mut self.recorded)
    }
}

/// What its kernel says of the receiver.
impl Recorder {
    /// From `since` to `until` data lay unread at the receiver of `sender`, which waited `trip` before its
    /// segments passed: steps that are recorded already lie in that time, too.
    pub(crate) fn lay_unread(&mut self, sender: End, since: Nanos, until: Nanos, trip: Nanos) {
        let steps = self.recorded.steps.iter_mut().rev().take_while(|s| s.end - trip > since);
        for step in steps.filter(|s| s.sender == sender && !s.is_turn()) {
            let lay = (until.min(step.end - trip) - since.max(step.start - trip)).floor0();
            step.unread = step.unread.map(|unread| unread + lay);
        }
    }
}

/// Losses.
impl Recorder {
    /// The steps of `sender` since `since` belong to a loss; one that began before is cut in two there.
    fn mark_loss(&mut self, sender: End, kind: Repair, since: Nanos) {
        let steps = &mut self.recorded.steps;
        let mut i = steps.len();
        while i > 0 && steps[i - 1].end > since {
            i -= 1;
            let step = &mut steps[i];
            if step.sender != sender || step.is_turn() {
                break;
            }
            if step.loss.is_some() {
                continue;
            }
            if step.start < since && !step.is_loss() {
                let first = step.cut_before(since);
                step.repairs(kind);
                steps.insert(i, first);
                break;
            }
            step.repairs(kind);
            if step.start < since {
                break;
            }
        }
    }

    /// A recovery of `sender` has ended.
    pub(crate) fn recovered(&mut self, sender: End, recovery: &Recovered) {
        self.recovered[sender] = Some((recovery.kind, recovery.at));
        if recovery.spurious && self.forget_spurious(sender, recovery.last_segment) {
            self.recovered[sender] = None;
        }
    }

    /// The last retransmission of `sender` was spurious. If nothing followed it, nothing waited for it: the time
    /// before it belongs to whatever the exchange was waiting for: `true`. Else it is a spurious recovery.
    fn forget_spurious(&mut self, sender: End, last_segment: bool) -> bool {
        let r = &mut self.recorded;
        match r.steps.last() {
            Some(step) if last_segment && step.sender == sender && step.is_loss() && step.end == r.last => {
                r.last = step.start;
                r.last_frame = step.first_frame;
                r.steps.pop();
                true
            }
            _ => {
                self.rename_losses(sender, Repair::Spurious);
                false
            }
        }
    }

    /// The receiver of `sender` got so many bytes twice, though the recovery had ended with the ACK for the original:
    /// its step may still be there.
    pub(crate) fn late_duplicate(&mut self, sender: End, bytes: u32) {
        let last = self.recorded.steps.iter().rev().find(|s| s.sender == sender && s.is_loss());
        let fast = |s: &Step| matches!(s.wait, Wait::Loss { repair: Repair::Fast, .. });
        if last.is_some_and(|s| s.len >= bytes / 2 && !fast(s)) {
            self.rename_losses(sender, Repair::Spurious);
            // What it sent next waited for the same repair.
            self.recovered[sender] = self.recovered[sender].map(|(_, at)| (Repair::Spurious, at));
        }
    }

    /// `sender` sent again what had arrived: the last long pause was a wait for its timer, while the path stood still.
    pub(crate) fn stalled(&mut self, sender: End, at_least: Nanos) {
        let mut recent = self.recorded.steps.iter_mut().rev().take(8).take_while(|s| s.sender == sender);
        if let Some(step) = recent.find(|s| s.was_silent_for(at_least)) {
            step.rename(Wait::Loss { repair: Repair::Spurious, again: true });
        }
    }

    /// What the next segment of `sender` shows of the wait before its last one (rule 93).
    pub(crate) fn looks_back(&mut self, sender: End, seen: Hindsight) {
        let Hindsight::TimedOut { at_least } = seen else {
            self.rename_losses(sender, Repair::Timeout);
            self.recovered[sender] = self.recovered[sender].map(|(_, at)| (Repair::Timeout, at));
            return;
        };
        let r = &mut self.recorded;
        let alone = |s: &&mut Step| s.sender == sender && s.end == r.last && s.bytes == s.len && !s.is_turn();
        let silent = |s: &&mut Step| s.was_silent_for(at_least);
        if let Some(step) = r.steps.last_mut().filter(alone).filter(silent) {
            step.rename(Wait::Loss { repair: Repair::Timeout, again: true });
        }
    }

    /// The latest losses of `sender` were of another kind than was thought.
    pub(crate) fn rename_losses(&mut self, sender: End, kind: Repair) {
        let recent = self.recorded.steps.iter_mut().rev().take(16);
        for step in recent.take_while(|s| s.sender == sender && !s.is_turn()) {
            step.rename_loss(kind);
        }
    }
}
