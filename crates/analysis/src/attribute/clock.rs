//! A writer whose clock showed before any ACK could have come, and goes on.

use crate::attribute::context::Context;
use crate::attribute::woken::{PLATEAU, clocked, is_cut, written};
use crate::step::Step;
use tcpwhy_base::{Nanos, Source};

/// How far apart its writes were at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    usual: Nanos,
    slack: Nanos,
}

impl Clock {
    /// Two or more waits within the first round trip of the message, when no ACK of it could have come, all alike (rule 92).
    fn at_first(context: &Context, steps: &[Step]) -> Option<Clock> {
        let begin = steps.iter().find(|s| !s.is_turn())?.start;
        let first = || steps.iter().filter(|s| own(s) && written(s) && s.end < begin + context.rtt);
        let count = first().map(|s| s.releases).sum::<u32>();
        if !context.measured || count < 2 {
            return None;
        }
        let usual =
            Nanos(first().fold(Nanos::ZERO, |sum, s| sum + s.duration() - s.burst).0 / i64::from(count));
        let clock = Clock { usual, slack: usual.part(16) + context.tick };
        (usual > context.tick.times(16) && first().all(|s| clock.is_of(s))).then_some(clock)
    }

    /// Writes go on as far apart as at first, when no ACK could have come yet. A limit that they had reached would hold one of them in each round trip
    /// until the ACK of the first of that trip came, and let the others go as they came before: of its waits one is longer, unless the trip
    /// is a multiple of the others (rule 92).
    pub(super) fn goes_on(context: &Context, steps: &[Step]) -> bool {
        Clock::at_first(context, steps).is_some_and(|clock| clock.keeps(steps.iter()))
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

fn own(step: &Step) -> bool {
    step.pushed && step.source == Source::Inferred && !step.across
}
