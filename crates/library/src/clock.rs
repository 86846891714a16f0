//! Whether the clock of a capture ran backwards or jumped, by the stamps of its frames.

use tcpwhy_base::Nanos;

/// Captures on several queues mix packets of the last milliseconds; a second back is a clock that was set.
const STEP: Nanos = Nanos::secs(1);
/// A clock that was not set jumps by years when it is. (Not derived: no capture waits so long for its next packet; it is only said.)
const SILENT: Nanos = Nanos::secs(30 * 86_400);

/// A clock whose times mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OddClock {
    /// Index of the input.
    pub input: usize,
    /// Frames stamped more than a second before an earlier one of it.
    pub steps: u64,
    /// The longest time without a frame that is longer than any capture waits; zero if there was none.
    pub jump: Nanos,
}

/// The clock of one input while it is read.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    latest: Option<Nanos>,
    pub(crate) steps: u64,
    jump: Nanos,
}

impl Clock {
    /// The next frame was stamped so.
    #[inline]
    pub(crate) fn stamped(&mut self, time: Nanos) {
        match self.latest {
            Some(until) if (until..=until + SILENT).contains(&time) => self.latest = Some(time),
            _ => self.stamped_elsewhere(time),
        }
    }

    /// The first frame, one that is behind another, or one long after it.
    #[cold]
    fn stamped_elsewhere(&mut self, time: Nanos) {
        let until = *self.latest.get_or_insert(time);
        self.steps += u64::from(time + STEP < until);
        if time - until > SILENT {
            self.jump = self.jump.max(time - until);
        }
        self.latest = Some(until.max(time));
    }

    /// What is wrong with it.
    pub(crate) fn odd(&self, input: usize) -> Option<OddClock> {
        let odd = self.steps > 0 || self.jump > Nanos::ZERO;
        odd.then_some(OddClock { input, steps: self.steps, jump: self.jump })
    }
}
