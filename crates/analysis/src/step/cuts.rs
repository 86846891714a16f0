//! A step cut in two, where its wait had two reasons.

use crate::release::{Freed, Pause, Wait};
use crate::step::Step;
use tcpwhy_base::{Nanos, Source};

impl Step {
    /// Cuts off what lies before `at`, as a step of its own.
    pub(crate) fn cut_before(&mut self, at: Nanos) -> Step {
        let mut first = *self;
        first.end = at;
        first.burst = first.burst.min(first.duration());
        self.start = at;
        self.bytes = 0;
        self.burst = self.burst - first.burst;
        first
    }

    /// What the application had not written before `at` did not wait for anything else: cuts that off. Of an `answer` it is its work.
    pub(crate) fn cut_written(&mut self, at: Nanos, answer: bool) -> Step {
        let bytes = self.bytes;
        let mut first = self.cut_before(at);
        self.bytes = bytes;
        (first.bytes, first.len, first.ack_frame) = (0, 0, None);
        // Who knows when it was written is its kernel.
        first.source = Source::Kernel;
        first.wait = if answer { Wait::ANSWER } else { Wait::Pause(Pause::default()) };
        first
    }

    /// Until `at` what it answers had not passed, which the capture missed, and had waited so: cuts that off.
    pub(crate) fn cut_unseen(&mut self, at: Nanos, wait: Wait) -> Step {
        let bytes = self.bytes;
        let mut first = self.cut_before(at);
        (first.bytes, first.len, first.empty, self.bytes) = (0, 0, Nanos::ZERO, bytes);
        (first.wait, first.sender, first.ack_frame, first.loss) = (wait, self.sender.peer(), None, None);
        first
    }

    /// Until `at` the other side, which had spoken, had not closed: cuts that off (rule 144).
    pub(crate) fn cut_unended(&mut self, at: Nanos) -> Step {
        let bytes = self.bytes;
        let mut first = self.cut_before(at);
        (first.bytes, first.len, first.empty, self.bytes) = (0, 0, Nanos::ZERO, bytes);
        (first.wait, first.sender, first.ack_frame, first.loss) =
            (Wait::Unended, self.sender.peer(), None, None);
        (first.source, first.unread) = (Source::Inferred, None);
        if let Wait::Turn { on_the_way, unheard, .. } = &mut self.wait {
            let passed = first.duration();
            (*on_the_way, *unheard) = ((*on_the_way - passed).floor0(), (*unheard - passed).floor0());
        }
        first
    }

    /// Until `at` its application had not read what the other side had sent: cuts that off.
    pub(crate) fn cut_unread(&mut self, at: Nanos) -> Step {
        let bytes = self.bytes;
        let mut first = self.cut_before(at);
        (first.bytes, first.len, self.bytes) = (0, 0, bytes);
        (first.wait, first.source, first.ack_frame) = (Wait::Unread, Source::Kernel, None);
        first
    }

    /// What held the segment was gone, and it came later: cuts off the time until then.
    pub(crate) fn cut_freed(&mut self, Freed { at, under_way }: Freed) -> Step {
        let bytes = self.bytes;
        let mut first = self.cut_before(at);
        (first.bytes, self.bytes, first.empty) = (0, bytes, Nanos::ZERO);
        let queued = under_way > Nanos::ZERO;
        self.wait = if queued { Wait::OnItsWay { under_way, even: false } } else { Wait::Freed };
        first
    }
}
