//! Many runs of one question, where one would be an accident: losses are drawn, and where a host's ticks and
//! wake-ups fall decides on which side of an edge a run ends up (a tail that arrives with the delayed ACK or
//! after it).

use crate::ask::Question;
use tcpwhy_base::{Nanos, Random};

/// How long runs of one question took.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Number of each run and its time, shortest first.
    runs: Vec<(u32, Nanos)>,
    apart: Nanos,
}

/// Runs that took nearly the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// How many runs there were.
    pub runs: u32,
    /// Number of the run in their middle.
    pub typical: u32,
    /// What that run took.
    pub median: Nanos,
}

/// Requests that chance in a host decides about, over many runs: each is held against the same request of the
/// other runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    /// How many requests there were, in all runs.
    pub all: u32,
    /// Those that went as they mostly go, and what they took.
    pub usual: Held,
    /// The others, by how much longer or shorter they took; the most frequent first.
    pub others: Vec<Held>,
}

/// Requests of one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// How many requests.
    pub requests: u32,
    /// The one in their middle: its run, and which of that run's requests it is.
    pub typical: (u32, usize),
    /// What that request took.
    pub median: Nanos,
    /// The run of the same request in its usual pattern, and that one's time.
    pub usually: (u32, Nanos),
}

/// Two runs next to each other belong to two patterns if they lie further apart than this part of the shorter one (5 %,
/// which is what predictions are held to) and than the least that an event of the path or the kernel costs
/// ([`Question::apart`]).
const PART: i64 = 20;
/// Less is what wake-ups of a host differ by.
const APART: Nanos = Nanos::millis(1);
/// What waits for the same timer differs by up to a tick of it, of which the longest is that of CONFIG_HZ=100.
const TICK: Nanos = Nanos::millis(10);

impl Question {
    /// The same question with other chances: run `n` draws other losses, its hosts' ticks fall elsewhere, and
    /// their applications take between a half and one and a half of the time for each wake-up (of 500
    /// wake-ups of an idle host, nine in ten lay within 0.76 and 1.48 of their median). Run 0 is the question
    /// itself.
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
            stack.chance = Some(random.draw());
        }
        question
    }

    /// What parts two patterns of its runs.
    pub fn apart(&self) -> Nanos {
        let s = &self.scenario;
        let timer = s.hosts.iter().map(|h| h.stack.profile.delack_min).min().unwrap_or(Nanos::MAX);
        apart(s.rtt(), timer)
    }

    /// Its runs draw losses, copies or delays.
    pub fn is_random(&self) -> bool {
        self.scenario.links.iter().any(|l| l.loss_ppm > 0 || l.duplicate_ppm > 0 || l.jitter > Nanos::ZERO)
    }
}

impl Spread {
    /// Of runs by number and time, and what parts their patterns; none if there are none.
    pub fn new(mut runs: Vec<(u32, Nanos)>, apart: Nanos) -> Option<Spread> {
        runs.sort_by_key(|r| (r.1, r.0));
        (!runs.is_empty()).then_some(Spread { runs, apart })
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
        let mut all: Vec<Pattern> = self
            .runs
            .chunk_by(|a, b| together(a.1, b.1, b.1 - a.1, self.apart))
            .map(|runs| {
                let (typical, median) = runs[(runs.len() - 1) / 2];
                Pattern { runs: runs.len() as u32, typical, median }
            })
            .collect();
        all.sort_by(|a, b| b.runs.cmp(&a.runs).then(a.median.cmp(&b.median)));
        all
    }
}

/// What parts two patterns. What chance decides costs a round trip (a window that was one segment short) or a
/// timer of the kernel, of which the delayed ACK's is the shortest: half of the shorter of the two, and more
/// than wake-ups differ by.
pub fn apart(rtt: Nanos, delayed_ack: Nanos) -> Nanos {
    rtt.min(delayed_ack).part(2).max(APART)
}

/// Two figures next to each other are of one pattern.
fn together(shorter: Nanos, longer: Nanos, gap: Nanos, apart: Nanos) -> bool {
    gap <= apart || gap.0.saturating_mul(PART) <= shorter.min(longer).0
}

impl Requests {
    /// Of the latencies of each run, by its number; the first request of a run is held against the first of
    /// the others, and so on, so that what is only the beginning of a connection is no pattern. None where
    /// all go as they usually go.
    pub fn new(runs: &[(u32, Vec<Nanos>)], apart: Nanos) -> Option<Requests> {
        let most = runs.iter().map(|r| r.1.len()).max()?;
        let (mut usual, mut others): (Vec<One>, Vec<One>) = (Vec::new(), Vec::new());
        for request in 0..most {
            let took = runs.iter().filter_map(|r| Some((r.0, *r.1.get(request)?)));
            let spread = Spread::new(took.collect(), apart)?;
            let mostly = spread.patterns()[0];
            let usually = (mostly.typical, mostly.median);
            for part in spread.runs.chunk_by(|a, b| together(a.1, b.1, b.1 - a.1, apart)) {
                let to = if part.iter().any(|r| r.0 == mostly.typical) { &mut usual } else { &mut others };
                to.extend(part.iter().map(|&(run, took)| One { run, request, took, usually }));
            }
        }
        others.sort_by_key(|o| (o.took - o.usually.1, o.run, o.request));
        let more = |o: &One| o.took - o.usually.1;
        let parts = others.chunk_by(|a, b| together(a.took, b.took, more(b) - more(a), apart.max(TICK)));
        let mut others: Vec<Held> = parts.map(held).collect();
        others.sort_by_key(|h| (std::cmp::Reverse(h.requests), h.median));
        usual.sort_by_key(|o| (o.took, o.run, o.request));
        let all = usual.len() as u32 + others.iter().map(|h| h.requests).sum::<u32>();
        (!others.is_empty()).then(|| Requests { all, usual: held(&usual), others })
    }
}

/// A request of a run, and what it mostly takes.
struct One {
    run: u32,
    request: usize,
    took: Nanos,
    usually: (u32, Nanos),
}

fn held(all: &[One]) -> Held {
    let one = &all[(all.len() - 1) / 2];
    let (typical, median) = ((one.run, one.request), one.took);
    Held { requests: all.len() as u32, typical, median, usually: one.usually }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(ms: &[i64]) -> Spread {
        let runs = ms.iter().enumerate().map(|(n, &t)| (n as u32, Nanos::millis(t)));
        Spread::new(runs.collect(), APART).unwrap()
    }

    /// The first request takes 20 ms in each run: that is no pattern. One of the second and one of the third
    /// wait for a timer.
    #[test]
    fn a_request_is_held_against_the_same_of_other_runs() {
        let run = |n: u32, ms: [i64; 3]| (n, ms.map(Nanos::millis).to_vec());
        let quiet = [run(0, [20, 5, 5]), run(1, [20, 5, 5]), run(2, [20, 5, 5])];
        assert_eq!(Requests::new(&quiet, APART), None);
        let mixed = [run(0, [20, 5, 5]), run(1, [20, 46, 5]), run(2, [20, 5, 50])];
        let found = Requests::new(&mixed, APART).unwrap();
        assert_eq!((found.all, found.usual.requests, found.usual.median), (9, 7, Nanos::millis(5)));
        // 41 and 45 ms more: one pattern, as ticks fall.
        assert_eq!(found.others.len(), 1);
        let other = found.others[0];
        assert_eq!((other.requests, other.typical, other.median), (2, (1, 1), Nanos::millis(46)));
        assert_eq!(other.usually.1, Nanos::millis(5));
        assert_eq!(Requests::new(&[], APART), None);
    }

    #[test]
    fn percentiles_are_runs() {
        let s = spread(&[50, 10, 40, 20, 30]);
        assert_eq!(
            (s.runs(), s.percentile(50), s.percentile(95)),
            (5, (4, Nanos::millis(30)), (0, Nanos::millis(50)))
        );
        assert_eq!(s.range(), (Nanos::millis(10), Nanos::millis(50)));
        assert!(Spread::new(Vec::new(), APART).is_none());
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
