//! Many runs of one question, where one would be an accident: losses are drawn, and where a host's ticks and wake-ups fall
//! decides on which side of an edge a run ends up (a tail that arrives with the delayed ACK or after it).

use crate::ask::Question;
use tcpwhy_base::{Nanos, Random};

/// How long runs of one question took.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Number of each run and its time, shortest first.
    runs: Vec<(u32, Nanos)>,
}

/// Runs that took nearly the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// How many there were.
    pub runs: u32,
    /// Number of the one in their middle.
    pub typical: u32,
    /// Its time.
    pub median: Nanos,
}

/// Two runs next to each other belong to two patterns if they lie further apart than this part of the shorter one (5 %,
/// which is what predictions are held to) and than [`APART`].
const PART: i64 = 20;
/// Less is what wake-ups of a host differ by.
const APART: Nanos = Nanos::millis(1);

impl Question {
    /// The same question with other chances: run `n` draws other losses, its hosts' ticks fall elsewhere, and their
    /// applications wake up in half to twice the time. Run 0 is the question itself.
    pub fn varied(&self, n: u32) -> Question {
        let mut question = self.clone();
        if n == 0 {
            return question;
        }
        let s = &mut question.scenario;
        let mut random = Random(s.seed ^ (u64::from(n) << 32));
        s.seed = random.draw();
        for stack in s.hosts.iter_mut().map(|h| &mut h.stack) {
            stack.phase = Nanos(random.below(stack.profile.clock.tick() as u64) as i64);
            let half = stack.wake.0.max(0) / 2;
            stack.wake = Nanos(half + random.below(3 * half as u64 + 1) as i64);
        }
        question
    }

    /// Its runs draw losses, copies or delays.
    pub fn is_random(&self) -> bool {
        self.scenario.links.iter().any(|l| l.loss_ppm > 0 || l.duplicate_ppm > 0 || l.jitter > Nanos::ZERO)
    }
}

impl Spread {
    /// Of runs by number and time; none if there are none.
    pub fn new(mut runs: Vec<(u32, Nanos)>) -> Option<Spread> {
        runs.sort_by_key(|r| (r.1, r.0));
        (!runs.is_empty()).then_some(Spread { runs })
    }

    /// How many runs there were.
    pub fn runs(&self) -> u32 {
        self.runs.len() as u32
    }

    /// The run that so many of a hundred do not exceed (nearest rank): its number and time.
    pub fn percentile(&self, percent: usize) -> (u32, Nanos) {
        let rank = (self.runs.len() * percent).div_ceil(100).max(1) - 1;
        self.runs[rank.min(self.runs.len() - 1)]
    }

    /// Shortest and longest.
    pub fn range(&self) -> (Nanos, Nanos) {
        (self.runs[0].1, self.runs[self.runs.len() - 1].1)
    }

    /// What the runs fall into, the most frequent first.
    pub fn patterns(&self) -> Vec<Pattern> {
        let apart = |a: &(u32, Nanos), b: &(u32, Nanos)| {
            let gap = b.1 - a.1;
            gap <= APART || gap.0.saturating_mul(PART) <= a.1.0
        };
        let mut all: Vec<Pattern> = self
            .runs
            .chunk_by(apart)
            .map(|runs| {
                let (typical, median) = runs[(runs.len() - 1) / 2];
                Pattern { runs: runs.len() as u32, typical, median }
            })
            .collect();
        all.sort_by(|a, b| b.runs.cmp(&a.runs).then(a.median.cmp(&b.median)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(ms: &[i64]) -> Spread {
        Spread::new(ms.iter().enumerate().map(|(n, &t)| (n as u32, Nanos::millis(t))).collect()).unwrap()
    }

    #[test]
    fn percentiles_are_runs() {
        let s = spread(&[50, 10, 40, 20, 30]);
        assert_eq!(
            (s.runs(), s.percentile(50), s.percentile(95)),
            (5, (4, Nanos::millis(30)), (0, Nanos::millis(50)))
        );
        assert_eq!(s.range(), (Nanos::millis(10), Nanos::millis(50)));
        assert!(Spread::new(Vec::new()).is_none());
    }

    #[test]
    fn a_gap_of_more_than_five_percent_parts_two_patterns() {
        let medians = |ms: &[i64]| {
            spread(ms).patterns().iter().map(|p| (p.runs, p.median.0 / 1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(medians(&[100, 105, 110]), [(3, 105)], "5 % is no gap");
        assert_eq!(medians(&[100, 106, 107]), [(2, 106), (1, 100)], "6 % is one; the most frequent first");
        assert_eq!(medians(&[1, 2, 3]), [(3, 2)], "a millisecond is what wake-ups differ by");
        assert_eq!(medians(&[184, 2000, 186, 1990, 185]), [(3, 185), (2, 1990)]);
    }
}
