//! What the requests of several runs fall into: the same request of one run waits for a timer, of another it does not.

use crate::predict::runs::{Spent, of_requests};
use std::collections::HashMap;
use tcpwhy_base::Nanos;
use tcpwhy_lab::{Held, Run, Scenario, held};
use tcpwhy_library::model::{Requests, apart};
use tcpwhy_report::predict::Pattern;

/// A Linux kernel's shortest delayed ACK (`TCP_DELACK_MIN`, HZ/25).
const DELAYED_ACK: Nanos = Nanos::millis(40);

/// The requests of the runs made so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    runs: Vec<(u32, Vec<Nanos>)>,
    /// What each request of each run went to.
    spent: HashMap<(u32, usize), Vec<Spent>>,
}

impl Seen {
    /// Takes a run whose requests were all answered: only those are the same requests.
    pub(super) fn take(&mut self, run: &Run) {
        if run.cut_off || run.exchanges.is_empty() || run.exchanges.iter().any(|e| !e.complete) {
            return;
        }
        let n = self.runs.len() as u32;
        // By connection as they began, and their order within it: the same request is at the same place in each run.
        let mut first = HashMap::new();
        for e in &run.exchanges {
            let next = first.len();
            first.entry(e.port).or_insert(next);
        }
        let mut exchanges: Vec<_> = run.exchanges.iter().collect();
        exchanges.sort_by_key(|e| (first.get(&e.port), e.request));
        let all = held(run);
        for (i, e) in exchanges.iter().enumerate() {
            let spent = sums(&all, e.port, Nanos(e.start_ns), Nanos(e.end_ns));
            self.spent.insert((n, i), spent);
        }
        self.runs.push((n, exchanges.iter().map(|e| Nanos(e.end_ns - e.start_ns)).collect()));
    }

    /// What they fall into, the usual pattern first; empty where all go as they usually go, and of one run.
    pub(super) fn patterns(&self, scenario: &Scenario) -> Vec<Pattern> {
        let found = Requests::new(&self.runs, apart(scenario.shared.rtt(), DELAYED_ACK));
        let spent = |run: u32, request: usize| self.spent.get(&(run, request)).cloned().unwrap_or_default();
        found.map_or_else(Vec::new, |r| of_requests(&r, spent))
    }
}

/// Time by cause of one connection within a stretch.
fn sums(all: &[Held], port: u16, from: Nanos, to: Nanos) -> Vec<Spent> {
    let mut sums: Vec<Spent> = Vec::new();
    for h in all.iter().filter(|h| h.port == port) {
        let time = h.to.min(to) - h.from.max(from);
        if time <= Nanos::ZERO {
            continue;
        }
        match sums.iter_mut().find(|s| s.0 == h.cause) {
            Some(sum) => sum.2 += time,
            None => sums.push((h.cause, None, time)),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::Cause;

    #[test]
    fn a_request_owns_what_lies_within_it_of_its_connection() {
        let ms = Nanos::millis;
        let held = |port, from, to, cause| Held { port, from: ms(from), to: ms(to), cause };
        let all = [
            held(1, 0, 10, Cause::NagleDelayedAck),
            held(1, 12, 30, Cause::NagleDelayedAck),
            held(1, 30, 31, Cause::SendBuffer),
            held(2, 0, 100, Cause::ReceiveWindow),
        ];
        let found = sums(&all, 1, ms(5), ms(20));
        assert_eq!(found, [(Cause::NagleDelayedAck, None, ms(13))]);
        assert!(sums(&all, 3, ms(0), ms(50)).is_empty());
    }

    #[test]
    fn one_request_of_many_that_waited_is_a_pattern_with_its_cause() {
        let ms = Nanos::millis;
        let scenario =
            Scenario::parse("title = 't'\nlink.rtt_ms = 1\nworkload.request = [1]\n", &[]).unwrap();
        let runs = vec![(0, vec![ms(4), ms(3)]), (1, vec![ms(4), ms(46)]), (2, vec![ms(4), ms(3)])];
        let waited = vec![(Cause::SendBuffer, None, ms(1)), (Cause::NagleDelayedAck, None, ms(42))];
        let mut seen = Seen { runs, spent: HashMap::from([((1, 1), waited)]) };
        let found = seen.patterns(&scenario);
        let told: Vec<_> = found.iter().map(|p| (p.count, p.median_ns, p.cause.map(|c| c.0))).collect();
        assert_eq!(told, [(5, 4_000_000, None), (1, 46_000_000, Some(Cause::NagleDelayedAck))]);
        seen.runs.truncate(1);
        assert!(seen.patterns(&scenario).is_empty(), "one run has nothing to be held against");
    }
}
