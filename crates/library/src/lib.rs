//! Why is this TCP transfer or request slow, what would fix it, and by how much? The same answer as the
//! program `tcpwhy` gives, for programs in Rust.
//!
//! A capture goes in as a file, as bytes or from any reader (pcap, pcapng, snoop; gz, zst, lz4); out come
//! connections, their exchanges (a request and its response), and for every stretch of their time a span with
//! one cause, the frames that prove it and how sure that is; and findings: causes rolled up over the capture,
//! with fixes. Nothing is printed, no file is written, and but for [`captures`] no thread is started. Nothing
//! that is read can panic.
//!
//! # A capture as a whole
//!
//! ```
//! use tcpwhy_library::{Cause, Explain, Owner};
//!
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/zeek__smtp_bdat.pcap");
//! let answer = Explain::new().file(path)?;
//!
//! // What took most time here is a client that had nothing to ask; what TCP took stands behind it.
//! let worst = answer.findings.iter().find(|f| f.cause.owner() == Owner::Tcp).expect("TCP took time");
//! assert_eq!(worst.cause, Cause::NagleDelayedAck);
//! assert_eq!(worst.lost.to_string(), "1.16 s");
//! assert_eq!(worst.fixes[0].fix.info().title, "Write the whole message with one call");
//!
//! let connection = &answer.connections[0];
//! assert_eq!(connection.exchanges.len(), 32);
//! let slow = connection.exchanges.iter().max_by_key(|x| x.end - x.start).expect("there are 32");
//! for span in &slow.spans {
//!     println!("{:>10}  {}  {}", span.duration().to_string(), span.cause.id(), span.facts.sentence());
//! }
//! # Ok::<(), tcpwhy_library::ReadError>(())
//! ```
//!
//! # Connections as they end
//!
//! Memory then grows with the connections that live, not with the capture; [`each`](Explain::each) may stop it.
//!
//! ```
//! use std::ops::ControlFlow;
//! use tcpwhy_library::{Explain, Filter, Reader};
//!
//! let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/zeek__smtp_bdat.pcap"))?;
//! let reader = Reader::new(Box::new(std::io::Cursor::new(bytes)))?;
//! let mut requests = 0;
//! let ended = Explain::new().filter(Filter::parse("port 25")?).each(reader, |connection| {
//!     requests += connection.exchanges.len();
//!     ControlFlow::Continue(())
//! });
//! assert_eq!((requests, ended.input.packets), (32, 184));
//! // Damage ends the reading, and what came before it counts.
//! assert!(ended.input.damage.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Before anything is built: the model
//!
//! ```
//! use tcpwhy_library::model::{Question, Scenario};
//! use tcpwhy_library::{Nanos, Step, Turn, Workload, predict};
//!
//! let mut scenario = Scenario::with_path(Nanos::millis(80), None, None, 1500);
//! let turn = Turn { request: vec![Step::Write(400)], response: vec![Step::Write(30_000)], ..Turn::default() };
//! scenario.workload = Workload::serial(turn, 1);
//! let answer = predict(&Question { scenario, skip: 0, max_events: 100_000 })?;
//! // The handshake, the request, and one more round trip since 30 kB are more than the initial window.
//! assert_eq!(answer.total.to_string(), "240 ms");
//! # Ok::<(), tcpwhy_library::model::Impossible>(())
//! ```
//!
//! # What stays
//!
//! Types that will grow are `#[non_exhaustive]`: the structs of an answer, which the analysis alone makes,
//! and the errors; match them with `..` and `_`. Plain values that programs make themselves ([`Nanos`],
//! [`Turn`], [`model::Scenario`]) and enums that are complete ([`Side`], [`Class`]) are not. The ids of
//! causes and fixes stay. All items are listed in `api.txt`; none of them goes or changes without a version
//! that says so.

pub mod captures;
mod clock;
mod explain;
mod ongoing;

pub use explain::{Ended, Explain, Explained, Input};
pub use tcpwhy_analysis::{
    Budget, Connection, Detail, Exchange, Finding, Fix, Frames, Gap, Quality, Setup, Span, Totals, compare,
    compare_answers, compare_with_totals, distance, evidence,
};
pub use tcpwhy_base::{Cause, Class, Endpoint, FixId, Nanos, Owner, Side, Step, Turn, Workload};
pub use tcpwhy_capture::{Filter, FilterError, ReadError, Reader};

/// What the fields of connections, exchanges, spans, findings and comparisons hold.
pub mod parts {
    pub use tcpwhy_analysis::{
        Asked, Band, Change, Closed, ComparedSide, Comparison, Cost, Distance, Distribution, Elsewhere, End,
        Ended, Example, Extremes, Facts, Grows, InAll, InTurn, LinkFull, Lost, Named, NoEffect, Omitted,
        Over, Parameter, Part, Path, Refuted, Replay, Server, Shape, SharedLink, SpanId, Together, TwoTaps,
        Vantage, Witnessed,
    };
    pub use tcpwhy_base::{
        Alike, CauseInfo, Evidence, Figures, FixInfo, Flagged, Group, How, Kind, Likeness, Place, Shown,
        SizedBy, Source, TraceParent, Unless,
    };
}

/// What a [`Reader`] gives and a [`Filter`] takes, and what can be wrong with a capture.
pub mod packets {
    pub use crate::ongoing::Ongoing;
    pub use tcpwhy_base::{
        Held, IpId, Observation, Part, Program, Segment, Seq, SocketChange, SocketEvent, SocketState,
        TcpFlags, TcpOptions, Timer, Tls, Told, TooBig, Trouble, Watched, Witness,
    };
    pub use tcpwhy_capture::{
        Counts, Damage, Dissector, Frame, Looks, Taker, Verdict, Writer, headers, payload,
    };
}

/// Two TCP endpoints and a link in virtual time.
pub mod model {
    pub use tcpwhy_base::{
        Chosen, Cork, End, Host as HostWith, Link, LossOf, Reorder, Scenario as ScenarioWith, What,
    };
    pub use tcpwhy_model::{
        Acks, Answer, Change, Clock, Congestion, Connected, EPOCH, Exchange, Flight, Held, Host, Impossible,
        MAX_EVENTS, Nagle, Outcome, PROFILES, Packet, Passage, Pattern, Profile, Question, Ranking, Requests,
        Scenario, Served, Span, Spread, Stack, Story, Tapped, Tried, WindowRule, apart, check, flights,
        stories, tap, useless,
    };
}

pub use tcpwhy_analysis::replay::{Extract, extract};

/// Tries in the model what the fixes of findings save ([`Fix`]), where that is possible; else a bound stands there.
pub fn replay(analysis: &mut captures::Analysis) {
    tcpwhy_analysis::replay::predict(analysis);
}

/// How long something takes that was not built yet, and why: [`model::Question::budget`] says it of the answer.
pub fn predict(question: &model::Question) -> Result<model::Answer, model::Impossible> {
    question.ask()
}
