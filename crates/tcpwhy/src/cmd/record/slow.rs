//! Whether an exchange takes longer than somebody is willing to wait.

use std::time::{Duration, Instant};
use tcpwhy_analysis::{Analyzer, Config, Detail};
use tcpwhy_base::{Nanos, Observation, Segment};

/// After the last progress of a slow exchange, what ends it is recorded, too.
const QUIET: Duration = Duration::from_secs(1);
/// But not for longer than that.
const LONGEST: Duration = Duration::from_secs(10);
/// A connection that has closed goes soon: nothing is asked of it.
const LINGER: Nanos = Nanos::secs(2);

/// Looks at what is recorded.
#[derive(Debug)]
pub(super) struct Slow {
    most: Nanos,
    analyzer: Analyzer,
    /// The first and the last progress of exchanges that take too long.
    met: Option<(Instant, Instant)>,
    /// The longest of them, and of whom.
    longest: Option<(Nanos, String)>,
}

impl Slow {
    /// Exchanges may take so long.
    pub(super) fn new(most: Nanos) -> Slow {
        let analyzer =
            Analyzer::streaming(Config { detail: Detail::None }).lingering(LINGER).crowded_from(usize::MAX);
        Slow { most, analyzer, met: None, longest: None }
    }

    /// Takes what was seen next.
    pub(super) fn take(&mut self, seen: Observation<'_>) {
        self.analyzer.observe(seen);
        if let Observation::Segment(segment) = seen {
            self.ask(segment);
        }
    }

    fn ask(&mut self, segment: &Segment) {
        self.analyzer.ended().for_each(drop);
        let Some((start, last)) = self.analyzer.ongoing(segment).filter(|(_, last)| *last == segment.time)
        else {
            return;
        };
        let took = last - start;
        if took <= self.most {
            return;
        }
        let now = Instant::now();
        self.met = Some((self.met.map_or(now, |met| met.0), now));
        if self.longest.as_ref().is_none_or(|l| l.0 < took) {
            self.longest = Some((took, format!("{} and {}", segment.src, segment.dst)));
        }
    }

    /// One took too long, and it is over, or has gone on for long enough. Gives which.
    pub(super) fn is_met(&self) -> Option<String> {
        let (first, last) = self.met?;
        let over = last.elapsed() >= QUIET || first.elapsed() >= LONGEST;
        let (took, between) = self.longest.as_ref().filter(|_| over)?;
        Some(format!("an exchange between {between} took {took}"))
    }
}
