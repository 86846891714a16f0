//! Whether the clock of a capture ran backwards or jumped, by the stamps of its frames.

use tcpwhy_base::Nanos;

/// Captures on several queues mix packets of the last milliseconds; a second back is a clock that was set.
const STEP: Nanos = Nanos::secs(1);
/// A clock that was not set jumps by years when it is. (Not derived: no capture waits so long for its next
/// packet; it is only said.)
const SILENT: Nanos = Nanos::secs(30 * 86_400);
/// A capture in which so long nothing passes, of whatever connection, may have been put together of several, or its tap
/// have been off. (Not derived: all that is asked is whether it was watched meanwhile.)
const HOLE: Nanos = Nanos::secs(3_600);

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
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    latest: Option<Nanos>,
    pub(crate) steps: u64,
    jump: Nanos,
    /// The first frame behind the last hole.
    since: Option<Nanos>,
}

impl Clock {
    /// The next frame was stamped so.
    #[inline]
    pub(crate) fn stamped(&mut self, time: Nanos) {
        // At both limits at once: what is farther behind wraps around.
        match &mut self.latest {
            Some(latest) if (time - *latest).0.wrapping_add(STEP.0) as u64 <= (HOLE.0 + STEP.0) as u64 => {
                *latest = (*latest).max(time);
            }
            _ => self.stamped_elsewhere(time),
        }
    }

    /// The first frame, one that is far behind another, or one long after it.
    #[cold]
    fn stamped_elsewhere(&mut self, time: Nanos) {
        let until = *self.latest.get_or_insert(time);
        self.steps += u64::from(time + STEP < until);
        if time - until > SILENT {
            self.jump = self.jump.max(time - until);
        }
        if time - until > HOLE {
            self.since = Some(time);
        }
        self.latest = Some(until.max(time));
    }

    /// When the latest frame was stamped.
    pub(crate) fn latest(&self) -> Option<Nanos> {
        self.latest
    }

    /// From when to when the tap was last watched without a hole, if its first frame came at `first`; of no length where
    /// the clock does not tell that.
    pub(crate) fn watched(&self, first: Nanos) -> (Nanos, Nanos) {
        let from = self.since.unwrap_or(first);
        let odd = self.steps > 0 || self.jump > Nanos::ZERO;
        (from, self.latest.filter(|_| !odd).unwrap_or(from))
    }

    /// What is wrong with it.
    pub(crate) fn odd(&self, input: usize) -> Option<OddClock> {
        let odd = self.steps > 0 || self.jump > Nanos::ZERO;
        odd.then_some(OddClock { input, steps: self.steps, jump: self.jump })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_and_the_long_one_agree() {
        let mut times = vec![Nanos::ZERO];
        for around in [i64::MIN, -SILENT.0, -STEP.0, 0, STEP.0, HOLE.0, SILENT.0, SILENT.0 + STEP.0, i64::MAX]
        {
            times.extend([-1, 0, 1].map(|off| Nanos(around.saturating_add(off))));
        }
        for (&a, &b) in times.iter().flat_map(|a| times.iter().map(move |b| (a, b))) {
            for &c in &times {
                let (mut short, mut long) = (Clock::default(), Clock::default());
                for time in [a, b, c, a] {
                    short.stamped(time);
                    long.stamped_elsewhere(time);
                    let state = |clock: &Clock| (clock.latest, clock.steps, clock.jump, clock.since);
                    assert_eq!(state(&short), state(&long), "{a:?} {b:?} {c:?} {a:?}");
                }
                assert_eq!(short.latest(), [a, b, c].into_iter().max());
            }
        }
    }
}
