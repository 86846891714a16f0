//! A writer whose clock showed before any ACK could have come, and goes on.

use crate::attribute::context::Context;
use crate::attribute::woken::{PLATEAU, clocked, is_cut, written};
use crate::step::Step;
use tcpwhy_base::{Nanos, Source};

/// A sleeping writer may be woken so much later than it asked for, one time and not the next
/// (`PR_SET_TIMERSLACK`, prctl(2)).
const TIMER_SLACK: Nanos = Nanos::micros(50);

/// How far apart its writes were at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    usual: Nanos,
    slack: Nanos,
    /// When the first of them left, and how many bytes did after that in how long.
    begin: Nanos,
    bytes: u64,
    time: Nanos,
}

impl Clock {
    /// Two or more waits within the first round trip of the message, when no ACK of it could have come, all
    /// alike (rule 92).
    fn at_first(context: &Context, steps: &[Step]) -> Option<Clock> {
        let begin = steps.iter().find(|s| !s.is_turn())?.start;
        let first = || steps.iter().filter(|s| own(s) && written(s) && s.end < begin + context.rtt);
        let count = first().map(|s| s.releases).sum::<u32>();
        if !context.measured || count < 2 {
            return None;
        }
        let usual =
            Nanos(first().fold(Nanos::ZERO, |sum, s| sum + s.duration() - s.burst).0 / i64::from(count));
        let slack = usual.part(16) + context.tick + TIMER_SLACK.times(2);
        let (bytes, time) = passed(first());
        let clock = Clock { usual, slack, begin, bytes, time };
        (usual > context.tick.times(16) && first().all(|s| clock.is_of(s))).then_some(clock)
    }

    /// Writes go on as far apart as at first, when no ACK could have come yet. A limit that they had reached
    /// would hold one of them in each round trip until the ACK of the first of that trip came, and let the
    /// others go as they came before: of its waits one is longer, unless the trip is a multiple of the others
    /// (rule 92).
    pub(super) fn goes_on(context: &Context, steps: &[Step]) -> bool {
        Clock::at_first(context, steps)
            .is_some_and(|clock| clock.keeps(steps.iter()) || clock.is_not_slowed(context, steps))
            || keeps_its_rate(context, steps)
    }

    /// As many bytes go on to leave in as long a time, to a sixteenth, once what the initial window held at
    /// first has left: whatever ACKs came by, no limit was reached again, for that takes some of the time.
    /// Three round trips let a window grow eightfold (RFC 5681, 3.1).
    fn is_not_slowed(&self, context: &Context, steps: &[Step]) -> bool {
        let from = self.begin + context.rtt.times(3);
        let later = || steps.iter().filter(|s| s.start >= from && !s.is_turn());
        let plain = later().all(|s| own(s) && !is_cut(s) && s.loss.is_none());
        let (bytes, time) = passed(later());
        let share = |bytes: u64, time: Nanos| u128::from(bytes) * u128::from(time.0.unsigned_abs());
        let as_fast = 16 * share(bytes, self.time) >= 15 * share(self.bytes, time);
        plain && time > context.rtt && as_fast
    }

    /// The same until a loss.
    pub(super) fn of_writer(context: &Context, steps: &[Step]) -> Option<Clock> {
        let clock = Clock::at_first(context, steps)?;
        clock.keeps(steps.iter().filter(|s| !is_cut(s) && s.loss.is_none())).then_some(clock)
    }

    /// That clock ended this wait: after a loss, if all that had been written had left (rule 97).
    pub(super) fn ended(&self, step: &Step) -> bool {
        own(step) && self.is_of(step) && (!is_cut(step) || step.drained)
    }

    fn keeps<'a>(&self, steps: impl Iterator<Item = &'a Step> + Clone) -> bool {
        let waits = || steps.clone().filter(|s| clocked(s));
        waits().map(|s| s.releases).sum::<u32>() >= PLATEAU && waits().all(|s| own(s) && self.is_of(s))
    }

    fn is_of(&self, step: &Step) -> bool {
        let each = Nanos((step.duration() - step.burst).0 / i64::from(step.releases.max(1)));
        each <= self.usual + self.slack && self.usual <= each + self.slack
    }
}

/// A writer that a buffer holds fills it at once, for it was empty when the message began. One whose first
/// round trip brought no more than each later one, to a quarter, and not at once, though no ACK could have
/// come and no window was full, sets that rate itself, however late its host let it write (rule 124).
fn keeps_its_rate(context: &Context, steps: &[Step]) -> bool {
    let Some(begin) = steps.iter().find(|s| !s.is_turn()).map(|s| s.start) else { return false };
    let first = || steps.iter().filter(|s| !s.is_turn() && s.end < begin + context.rtt);
    let from = begin + context.rtt.times(3);
    let later = || steps.iter().filter(|s| s.start >= from && !s.is_turn());
    let plain = |s: &Step| s.is_burst() || own(s) && !is_cut(s) && s.loss.is_none();
    let waited = first().filter(|s| written(s)).fold(Nanos::ZERO, |sum, s| sum + s.duration());
    if !context.measured || waited < context.rtt.part(4) || waited < context.tick.times(16) {
        return false;
    }
    // The first write took no time.
    let ((bytes, time), (more, longer)) = (passed(first().skip_while(|s| !written(s))), passed(later()));
    let share = |bytes: u64, time: Nanos| u128::from(bytes) * u128::from(time.0.unsigned_abs());
    let (own_rate, rate) = (share(bytes, longer), share(more, time));
    first().all(|s| plain(s) && (s.is_burst() || written(s)))
        && later().all(plain)
        && longer > context.rtt
        && 16 * rate >= 15 * own_rate
        && 4 * rate <= 5 * own_rate
}

/// Bytes that left, and how long that took.
fn passed<'a>(steps: impl Iterator<Item = &'a Step>) -> (u64, Nanos) {
    steps.fold((0, Nanos::ZERO), |(bytes, time), s| (bytes + u64::from(s.bytes), time + s.duration()))
}

fn own(step: &Step) -> bool {
    step.pushed && step.source == Source::Inferred
}
