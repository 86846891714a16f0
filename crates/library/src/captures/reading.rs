//! An input while it is read: from frames to the segments that are wanted of it.

use super::said::Said;
use super::{Capture, Captures, Read};
use crate::clock::Clock;
use std::ops::ControlFlow;
use tcpwhy_base::{Nanos, Part, Segment, SocketEvent, Watched};
use tcpwhy_capture::{Dissector, Frame, Taker, Verdict};

/// A capture that goes on in another file hands the last packets of several queues to either of the two.
const ROTATED: Nanos = Nanos::millis(1);

/// Where segments go: they are written in place, then kept or not.
pub(super) trait Sink {
    /// Frames between [looks](Sink::look).
    const LOOK: u64 = 4096;
    /// Whether it wants more of this input.
    fn look(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// Where the next segment is to be written.
    fn slot(&mut self) -> &mut Segment;
    /// What was written there counts.
    fn keep(&mut self);
    /// Takes what others said after the segments kept so far.
    fn hear(&mut self, said: Said);
    /// Takes these, which come next.
    fn eat(&mut self, segments: &[Segment]) {
        for segment in segments {
            *self.slot() = *segment;
            self.keep();
        }
    }
    /// It wants what there is before the reader waits for more.
    fn is_eager(&self) -> bool;
    /// Passes on what there is.
    fn hand_over(&mut self);
}

/// An input while it is read.
pub(super) struct Reading<'a, 'b, C, S> {
    pub(super) captures: &'a Captures<'b, C>,
    pub(super) part: Part,
    pub(super) sink: &'a mut S,
    pub(super) dissector: &'a mut Dissector,
    pub(super) file: u16,
    /// Frames in the inputs before it.
    pub(super) before: u64,
    /// Keeps its connections apart from those of the inputs that it overlaps.
    pub(super) salt: u32,
    /// By the clock of this input: another one may have gone on for longer.
    pub(super) clock: Clock,
    /// Its earliest frame.
    pub(super) first: Nanos,
}

impl<'a, 'b, C: Capture, S: Sink> Reading<'a, 'b, C, S> {
    /// The input at this place, behind so many frames.
    pub(super) fn new(
        (captures, part): (&'a Captures<'b, C>, Part),
        (sink, dissector): (&'a mut S, &'a mut Dissector),
        index: usize,
        before: u64,
    ) -> Reading<'a, 'b, C, S> {
        let file = u16::try_from(index).unwrap_or(u16::MAX);
        let (salt, clock, first) = (0, Clock::default(), Nanos::MAX);
        Reading { captures, part, sink, dissector, file, before, salt, clock, first }
    }

    /// Its first frame.
    pub(super) fn begin(&mut self, time: Nanos, read: &mut Read) {
        match read.span {
            Some(span) if overlaps(time, span) => {
                read.overlapping += 1;
                self.salt = (u32::from(self.file) + 1).wrapping_mul(0x9E37_79B9);
            }
            Some(_) => {}
            None => _ = self.captures.meanwhile.inspect(|meanwhile| meanwhile.begin(time)),
        }
    }

    /// Passes on what kernels said of connections that are wanted.
    #[inline]
    pub(super) fn hear_all(&mut self, heard: &mut Vec<SocketEvent>) {
        if heard.is_empty() {
            return;
        }
        heard.drain(..).for_each(|event| self.hear(Said::Socket(event)));
    }

    /// Passes on what was said of a connection, if that is wanted: a filter asks for ends alone.
    fn hear(&mut self, said: Said) {
        let Some((one, other)) = said.ends() else { return self.sink.hear(said) };
        let [out, back] =
            [(one, other), (other, one)].map(|(src, dst)| Segment { src, dst, ..Segment::EMPTY });
        let wanted = self.captures.filter.is_none_or(|f| f.matches(&out) || f.matches(&back));
        if wanted && self.part.has(&one, &other) {
            self.sink.hear(said);
        }
    }

    /// It has no more frames: what its clock said.
    pub(super) fn end(self, index: usize, read: &mut Read) {
        if let Some(latest) = self.clock.latest() {
            let (start, end) = read.span.unwrap_or((self.first, latest));
            read.span = Some((start.min(self.first), end.max(latest)));
            let (file, apart) = (self.file, self.salt != 0);
            let (from, to) = self.clock.watched(self.first);
            self.sink.hear(Said::Watched(Watched { file, apart, from, to }));
        }
        read.steps += self.clock.steps;
        read.odd_clocks.extend(self.clock.odd(index));
    }
}

// All of it is put in place, that for single frames as well: else its fields would have to be in memory.
impl<C: Capture, S: Sink> Taker for Reading<'_, '_, C, S> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Dissector::dissect")]
    fn take(&mut self, frame: &Frame<'_>) {
        self.clock.stamped(frame.time);
        self.first = self.first.min(frame.time);
        let slot = self.sink.slot();
        let Some(verdict) = self.dissector.dissect_of(self.part, frame, self.file, slot) else { return };
        if verdict == Verdict::Tcp {
            if self.captures.filter.is_none_or(|f| f.matches(slot)) {
                slot.link ^= self.salt;
                slot.frame += self.before;
                self.sink.keep();
            }
        } else if let Some(mut told) = self.dissector.too_big() {
            told.link ^= self.salt;
            told.frame += self.before;
            self.hear(Said::TooBig(told));
        }
    }
}

/// An input that begins at `first` is another capture than those before it, and no continuation of the last.
fn overlaps(first: Nanos, (start, end): (Nanos, Nanos)) -> bool {
    first <= start && first < end || first + ROTATED < end
}
