//! Exchanges while they go on, for whoever wants to act before they are explained.

use tcpwhy_analysis::{Analyzer, Config, Detail};
use tcpwhy_base::{Nanos, Observation, Segment};

/// A connection that has closed goes soon: nothing is asked of it.
const LINGER: Nanos = Nanos::secs(2);

/// Follows connections, and keeps nothing of what has ended.
#[derive(Debug)]
pub struct Ongoing(Analyzer);

impl Default for Ongoing {
    fn default() -> Ongoing {
        let analyzer = Analyzer::streaming(Config { detail: Detail::None });
        Ongoing(analyzer.lingering(LINGER).crowded_from(usize::MAX))
    }
}

impl Ongoing {
    /// Takes what was seen next.
    pub fn take(&mut self, seen: Observation<'_>) {
        self.0.observe(seen);
        self.0.ended().for_each(drop);
    }

    /// The exchange that goes on in the connection of this segment, once it has an answer: when it began, and
    /// its last progress.
    pub fn of(&mut self, segment: &Segment) -> Option<(Nanos, Nanos)> {
        self.0.ongoing(segment)
    }
}
