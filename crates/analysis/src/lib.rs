//! From TCP segments to connections, exchanges, spans of time with one cause each, and findings.
//!
//! Takes segments in the order of a capture, one pass; gives an [`Analysis`]. Knows no files, no clock and
//! nothing of how its answer is drawn. Memory grows with live connections and with the detail that is asked for,
//! not with packets.
//!
//! The way through it: `table` finds the connection, `conn` keeps its state and, for every data segment, writes a
//! *step* (what released it); when an exchange ends, `attribute` turns its steps into spans, knowing the flights
//! that came after; `findings` sums spans up.

mod attribute;
mod budget;
mod compare;
mod confidence;
mod conn;
mod copies;
mod evidence;
mod exchange;
mod facts;
mod findings;
mod fixes;
mod no_effect;
mod output;
mod parts;
mod place;
mod profile;
mod release;
pub mod replay;
mod result;
mod step;
mod stream;
mod sums;
mod table;
mod track;

pub use budget::Budget;
pub use compare::{Change, Comparison, Shape, Side as ComparedSide, compare};
pub use copies::Copies;
pub use evidence::evidence;
pub use facts::{Facts, bit_rate};
pub use place::{Part, SpanId};
pub use result::*;
pub use table::Analyzer;

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
#[derive(Debug, Default)]
pub struct Analysis {
    /// Ascending by id.
    pub connections: Vec<Connection>,
    /// Over all connections, worst first.
    pub findings: Vec<Finding>,
    /// Totals.
    pub totals: Totals,
    /// What [`Analysis::retain`] makes findings of; empty in an answer that was put together by hand.
    pub basis: Bases,
}

/// What the findings of connections are made of, beyond what their answers say.
#[derive(Clone, Debug, Default)]
pub struct Bases(Vec<findings::Basis>);
