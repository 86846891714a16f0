//! A question to the model and its answer: which part of a run counts, how long it takes, and what a change of the
//! settings does to it. Never subtracted, always run again: removing one limit exposes the next.

use crate::scenario::{Impossible, Scenario};
use crate::sim::{Outcome, run_within};
use crate::spans::{Story, stories};
use tcpwhy_base::{Cause, Nanos, Side};

/// A run, and from which turn on it counts.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is run.
    pub scenario: Scenario,
    /// Turns at the start that only warm the connection up; with any, the connection's setup does not count either.
    pub skip: u32,
    /// Events after which the run is cut off.
    pub max_events: u64,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Answer {
    /// From the first `connect` (or the start of the first turn that counts) to the last byte read; of a run
    /// that is not complete, as far as it came: it takes longer, or never ends.
    pub total: Nanos,
    /// When that began.
    pub start: Nanos,
    /// The latency of each turn that counts.
    pub turns: Vec<Nanos>,
    /// All of it was done before the limits of the run.
    pub complete: bool,
    /// The run.
    pub outcome: Outcome,
}

/// A segment takes about so many events: it arrives, every second one is acknowledged, and for about as many
/// an application wakes.
const EVENTS_A_SEGMENT: u64 = 2;
/// A turn takes about so many beside those of its segments.
const EVENTS_A_TURN: u64 = 8;

impl Question {
    /// About so many events it takes, if little is lost.
    pub fn events_expected(&self) -> u64 {
        let Scenario { workload, connections, .. } = &self.scenario;
        let segments = workload.totals().iter().fold(0_u64, |n, &bytes| n.saturating_add(bytes / self.mss()));
        let events = segments.saturating_mul(EVENTS_A_SEGMENT);
        events.saturating_add(self.turns() * EVENTS_A_TURN).saturating_mul((*connections).into())
    }

    /// About so many bytes are carried by so many events.
    pub fn bytes_of(&self, events: u64) -> u64 {
        (events / EVENTS_A_SEGMENT).saturating_mul(self.mss())
    }

    /// Turns of a connection, those of its setup included.
    pub fn turns(&self) -> u64 {
        let w = &self.scenario.workload;
        w.repeat_from.min(w.turns.len()) as u64 + u64::from(w.requests_each())
    }

    /// Runs it.
    pub fn ask(&self) -> Result<Answer, Impossible> {
        let outcome = run_within(&self.scenario, self.max_events)?;
        let counted = || outcome.turns.iter().filter(|t| t.turn >= self.skip);
        let start = if self.skip == 0 {
            outcome.connections.first().map_or(Nanos::ZERO, |c| c.start)
        } else {
            counted().map(|t| t.start).min().unwrap_or(Nanos::ZERO)
        };
        let complete = outcome.complete();
        let ended = || counted().filter_map(|t| t.end).max().unwrap_or(outcome.elapsed);
        let end = if complete { ended() } else { self.came_to(&outcome) };
        let turns = counted().filter_map(|t| Some(t.end? - t.start)).collect();
        Ok(Answer { total: (end - start).floor0(), start, turns, complete, outcome })
    }

    /// How far a run came that is not complete.
    fn came_to(&self, outcome: &Outcome) -> Nanos {
        // It was not the events that ran out.
        if outcome.cut_off && outcome.events < self.max_events {
            return self.scenario.limit;
        }
        let sent = outcome.passages.iter().map(|p| p.sent).max();
        sent.unwrap_or_default().max(outcome.elapsed)
    }

    /// The part of the stories that counts, seen at `end`.
    pub fn stories(&self, answer: &Answer, end: u8) -> Vec<Story> {
        let mut all = stories(&self.scenario, &answer.outcome, end);
        if self.skip > 0 {
            for story in &mut all {
                story.setup.clear();
                story.exchanges.retain(|x| x.turn >= self.skip);
            }
        }
        all
    }

    /// Time by cause over what counts, most first.
    pub fn budget(&self, answer: &Answer) -> Vec<(Cause, Option<Side>, Nanos)> {
        let mut sums: Vec<(Cause, Option<Side>, Nanos)> = Vec::new();
        for (cause, side, time) in self.stories(answer, 0).iter().flat_map(Story::budget) {
            match sums.iter_mut().find(|s| s.0 == cause && s.1 == side) {
                Some(s) => s.2 += time,
                None => sums.push((cause, side, time)),
            }
        }
        sums.sort_by(|a, b| b.2.cmp(&a.2).then(a.0.cmp(&b.0)));
        sums
    }
}
