//! From TCP segments to connections, exchanges, spans of time with one cause each, and findings.
//!
//! Takes segments in the order of a capture, one pass; gives an [`Analysis`]. Knows no files, no clock and
//! nothing of how its answer is drawn. Memory grows with live connections and with the detail that is asked for,
//! not with packets.
//!
//! The way through it: `table` finds the connection; `track`, the only writer of its state, makes a *passage*
//! of each data segment; `release` decides from that what let it go; `exchange` records it as a *step*; when
//! an exchange ends, `attribute` turns its steps into spans, knowing the flights that came after; `findings`
//! sums spans up.
//!
//! # Example
//!
//! A client's second small write waits for the ACK of the first one (Nagle's algorithm), which the server
//! delays by 40 ms. Segments usually come from `tcpwhy_capture`; here they are written down.
//!
//! ```
//! use tcpwhy_analysis::{Analyzer, Config, Detail};
//! use tcpwhy_base::{Cause, Endpoint, Nanos, Segment, Seq, TcpFlags};
//!
//! let client = Endpoint { ip: [10, 0, 0, 1].into(), port: 40_000 };
//! let server = Endpoint { ip: [10, 0, 0, 2].into(), port: 80 };
//! let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
//!
//! let mut analyzer = Analyzer::new(Config { detail: Detail::All });
//! // Time in ms, sender, sequence number, acknowledgement, payload, flags: as a tap beside the client saw them.
//! for (i, (ms, src, seq, acks, len, flags)) in [
//!     (0, client, 100, 0, 0, syn),
//!     (20, server, 900, 101, 0, syn | ack),
//!     (20, client, 101, 901, 0, ack),
//!     (30, client, 101, 901, 4, ack),
//!     (90, server, 901, 105, 0, ack),
//!     (90, client, 105, 901, 100, ack),
//!     (110, server, 901, 205, 50, ack),
//! ]
//! .into_iter()
//! .enumerate()
//! {
//!     let dst = if src == client { server } else { client };
//!     analyzer.push(&Segment {
//!         time: Nanos::millis(ms),
//!         frame: i as u64 + 1,
//!         src,
//!         dst,
//!         seq: Seq(seq),
//!         ack: Seq(acks),
//!         len,
//!         window: 64_000,
//!         flags: TcpFlags(flags),
//!         ..Segment::EMPTY
//!     });
//! }
//!
//! let analysis = analyzer.finish();
//! let spans = &analysis.connections[0].exchanges[0].spans;
//! assert_eq!((spans[0].cause, spans[0].duration()), (Cause::NagleDelayedAck, Nanos::millis(60)));
//! assert_eq!((spans[1].cause, spans[1].duration()), (Cause::PathDelay, Nanos::millis(20)));
//! // Which packets prove it, and a sentence for people.
//! assert_eq!(spans[0].frames.keys().collect::<Vec<_>>(), [4, 5, 6]);
//! assert!(spans[0].facts.sentence().contains("the next 100 waited"));
//! ```

mod attribute;
mod beyond;
mod budget;
mod compare;
mod confidence;
mod conn;
mod copies;
mod distance;
mod evidence;
mod exchange;
mod facts;
mod fetch;
mod findings;
mod fixes;
mod in_turn;
mod leftover;
mod login;
mod no_effect;
mod outlines;
mod output;
mod packing;
mod parts;
mod place;
mod profile;
mod release;
pub mod replay;
mod requests;
mod rest;
mod result;
mod servers;
mod shared;
mod step;
mod stream;
mod sums;
mod table;
pub mod taps;
mod track;
mod window;

pub use budget::Budget;
pub use compare::{
    Change, Comparison, InAll, Shape, Side as ComparedSide, compare, compare_answers, compare_with_totals,
};
pub use copies::Copies;
pub use distance::{Cost, Distance, Elsewhere, Grows, distance};
pub use evidence::{evidence, missing};
pub use facts::{Facts, Over, Witnessed, bit_rate};
pub use fixes::fixes_on;
pub use place::{Part, SpanId};
pub use requests::{Band, Distribution};
pub use result::*;
pub use table::{Analyzer, ROWS};
pub use window::Window;

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
    pub connections: Vec<Box<Connection>>,
    /// Over all connections, worst first: by the time that was lost.
    pub findings: Vec<Finding>,
    /// Totals.
    pub totals: Totals,
    /// What [`Analysis::retain`] makes findings of; empty in an answer that was put together by hand.
    pub basis: Bases,
}

/// What the findings of connections are made of, beyond what their answers say.
#[derive(Clone, Debug, Default)]
pub struct Bases {
    /// Of each analyzer.
    stores: Vec<findings::store::Store>,
    /// For each connection where its own is.
    places: Vec<findings::store::Place>,
}
