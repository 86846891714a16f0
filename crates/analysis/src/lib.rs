//! From segments to connections, exchanges, spans and findings. One pass; no clock, no files.
mod facts;
mod result;

pub use facts::Facts;
pub use result::*;

use tcpwhy_base::Segment;

/// How much detail is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Every exchange and gap.
    All,
    /// The longest exchanges (and as many gaps) over the capture.
    Worst(usize),
    /// None: budgets and findings only.
    None,
}

/// Settings of an analysis.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How much detail is kept.
    pub detail: Detail,
}

/// The answer for a whole capture.
#[derive(Debug)]
pub struct Analysis {
    /// Ascending by id.
    pub connections: Vec<Connection>,
    /// Over all connections, worst first.
    pub findings: Vec<Finding>,
    /// Totals.
    pub totals: Totals,
}

/// Eats segments in the order of the capture.
#[derive(Debug)]
pub struct Analyzer {
    config: Config,
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    pub fn new(config: Config) -> Analyzer {
        Analyzer { config }
    }

    /// Eats one segment.
    pub fn push(&mut self, segment: &Segment) {
        let _ = (segment, self.config);
    }

    /// The answer.
    pub fn finish(self) -> Analysis {
        Analysis { connections: Vec::new(), findings: Vec::new(), totals: Totals::default() }
    }
}
