//! What a run took, and for which causes.

use tcpwhy_base::{Cause, Nanos, Side};
use tcpwhy_model::Story;

/// Time of the exchanges that count, with the setup, at the tap's end.
pub(super) struct Spent {
    pub(super) time: Nanos,
    by: Vec<(Cause, Option<Side>, Nanos)>,
}

impl Spent {
    pub(super) fn of(stories: &[Story]) -> Spent {
        let mut spent = Spent { time: Nanos::ZERO, by: Vec::new() };
        for story in stories {
            let setup = story.setup.iter().fold(Nanos::ZERO, |t, x| t + (x.end - x.start));
            spent.time += story.exchanges.iter().fold(setup, |t, x| t + (x.end - x.start));
            story.budget().into_iter().for_each(|(cause, side, time)| spent.add(cause, side, time));
        }
        spent
    }

    /// Adds time of a cause, which `time` has or gets.
    pub(super) fn add(&mut self, cause: Cause, side: Option<Side>, time: Nanos) {
        match self.by.iter_mut().find(|b| b.0 == cause && b.1 == side) {
            Some(b) => b.2 += time,
            None => self.by.push((cause, side, time)),
        }
    }

    /// What of it a cause takes.
    pub(super) fn by(&self, (cause, side): (Cause, Option<Side>)) -> Nanos {
        // The model names no side where the analysis says that it is the network's.
        let same = |of: Option<Side>| side == of || of.is_none() && side == Some(Side::Network);
        let of_cause = self.by.iter().filter(|b| b.0 == cause && same(b.1));
        of_cause.fold(Nanos::ZERO, |t, b| t + b.2)
    }
}
