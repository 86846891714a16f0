//! The parts of a connection: setup, exchanges, gaps and the spans that tile them.

use super::frames::Frames;
use super::values::{Context, InBrief, List, Pair, Sentence, SideName, SpanCause, Times, View, Word};
use crate::answer::rounded;
use schemars::JsonSchema;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use tcpwhy_analysis::{self as a, Part, SpanId};

/// A stretch of time with exactly one cause.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Span<'a> {
    /// Connection, part and number: `1.s.1` in setup, `1.7.2` in exchange 7, `1.g3.1` in the third gap listed.
    #[schemars(with = "String")]
    pub id: InBrief<SpanId>,
    /// Why this time passed.
    pub cause: SpanCause,
    /// What kind of it, where that is known.
    pub detail: Option<Word>,
    /// Who could change it.
    pub side: Option<SideName>,
    /// Start, inclusive.
    pub start_ns: i64,
    /// End, exclusive.
    pub end_ns: i64,
    /// Evidence.
    pub frames: Frames,
    /// How sure.
    #[schemars(range(min = 0, max = 1))]
    pub confidence: f64,
    /// What else it could be.
    #[schemars(with = "Vec<Alternative>")]
    pub alternatives: Alternatives<'a>,
    /// `inferred` from packets, or seen in the `kernel`.
    pub source: Word,
    /// One sentence with the figures.
    pub why: Sentence<'a>,
    /// How many repeats of one pattern were folded into this span.
    pub folded: u32,
}

impl<'a> View<'a, a::Span> for Span<'a> {
    /// Connection and part.
    type Parent = (u32, Part);

    fn view(span: &'a a::Span, (connection, part): (u32, Part), index: usize, cx: Context<'a>) -> Self {
        Span {
            id: InBrief(SpanId { connection, part, number: index as u32 + 1 }),
            cause: SpanCause(span.cause),
            detail: span.detail.map(Word),
            side: span.side.map(SideName),
            start_ns: cx.ns(span.start),
            end_ns: cx.ns(span.end),
            frames: Frames::new(&span.frames, cx),
            confidence: confidence(span.confidence),
            alternatives: Alternatives(span),
            source: Word(span.source.name()),
            why: Sentence(&span.facts),
            folded: span.folded,
        }
    }
}

fn confidence(c: f32) -> f64 {
    rounded(f64::from(c))
}

/// Another cause that the same packets allow.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Alternative {
    /// Which.
    pub cause: SpanCause,
    /// How sure.
    #[schemars(range(min = 0, max = 1))]
    pub confidence: f64,
}

/// The alternatives of a span.
#[derive(Debug)]
pub struct Alternatives<'a>(&'a a::Span);

impl Serialize for Alternatives<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut list = s.serialize_seq(None)?;
        for &(cause, c) in self.0.alternatives.iter().flatten() {
            list.serialize_element(&Alternative { cause: SpanCause(cause), confidence: confidence(c) })?;
        }
        list.end()
    }
}

/// First SYN to the client's first ACK of the SYN-ACK, and the TLS handshake if one follows.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Setup<'a> {
    /// The first SYN.
    pub start_ns: i64,
    /// The end of the handshake(s).
    pub end_ns: i64,
    /// Payload seen within.
    pub bytes: Pair,
    /// Tile the time.
    #[schemars(with = "Vec<Span>")]
    pub spans: List<'a, a::Span, Span<'a>>,
}

impl<'a> Setup<'a> {
    pub(super) fn new(setup: &'a a::Setup, connection: u32, cx: Context<'a>) -> Setup<'a> {
        Setup {
            start_ns: cx.ns(setup.start),
            end_ns: cx.ns(setup.end),
            bytes: setup.bytes.into(),
            spans: List::new(&setup.spans, (connection, Part::Setup), cx),
        }
    }
}

/// One request and its response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Exchange<'a> {
    /// 1-based within its connection.
    pub id: u32,
    /// First byte of the request (or of the response, where the server speaks first).
    pub start_ns: i64,
    /// Last byte of the request before the response.
    pub request_end_ns: Option<i64>,
    /// First byte of the response.
    pub response_start_ns: Option<i64>,
    /// Last passage of payload not yet acknowledged.
    pub end_ns: i64,
    /// Setup and this exchange together, for the first exchange of a connection with setup.
    pub with_setup_ns: Option<i64>,
    /// New payload bytes of the client.
    pub request_bytes: u64,
    /// New payload bytes of the server.
    pub response_bytes: u64,
    /// Turns from client to server.
    pub turns: u32,
    /// The directions overlapped.
    pub duplex: bool,
    /// The answer (or the transfer) is whole.
    pub complete: bool,
    /// `complete`, `rst`, `silent` or `capture_end`.
    pub ended: Word,
    /// It began before `--from` or ended after `--to`: its times are those within, its bytes all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// What its request is called, from its first bytes; with `--names`, where the protocol is known: `POST /orders`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// Status of an HTTP/1 response; with `--names`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The exchanges that its server made with others to answer it, where they lie within it alone; what
    /// those asked in turn stands there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Asks>,
    /// Tile the time.
    #[schemars(with = "Vec<Span>")]
    pub spans: List<'a, a::Span, Span<'a>>,
}

/// An exchange that was made to answer another one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Asks {
    /// Its connection.
    pub connection: u32,
    /// Its id within that.
    pub exchange: u32,
    /// How long it took.
    pub time_ns: i64,
}

impl<'a> View<'a, a::Exchange> for Exchange<'a> {
    /// The connection.
    type Parent = u32;

    fn view(x: &'a a::Exchange, connection: u32, _: usize, cx: Context<'a>) -> Self {
        Exchange {
            id: x.id,
            start_ns: cx.ns(x.start),
            request_end_ns: x.request_end.map(|t| cx.ns(t)),
            response_start_ns: x.response_start.map(|t| cx.ns(t)),
            end_ns: cx.ns(x.end),
            with_setup_ns: x.with_setup.map(|t| t.0),
            request_bytes: x.bytes[0],
            response_bytes: x.bytes[1],
            turns: x.turns,
            duplex: x.duplex,
            complete: x.ended == a::Ended::Complete,
            ended: Word(x.ended.name()),
            cut: x.cut,
            name: x.name(),
            status: x.named.as_ref().and_then(|n| n.status),
            asks: cx
                .asked((connection, x.id))
                .iter()
                .map(|a| Asks { connection: a.to.0, exchange: a.to.1, time_ns: a.time.0 })
                .collect(),
            spans: List::new(&x.spans, (connection, Part::Exchange(x.id)), cx),
        }
    }
}

/// Time of a connection that belongs to neither setup nor an exchange.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Gap<'a> {
    /// Start.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Tile the time.
    #[schemars(with = "Vec<Span>")]
    pub spans: List<'a, a::Span, Span<'a>>,
}

impl<'a> View<'a, a::Gap> for Gap<'a> {
    /// The connection.
    type Parent = u32;

    fn view(gap: &'a a::Gap, connection: u32, index: usize, cx: Context<'a>) -> Self {
        Gap {
            start_ns: cx.ns(gap.start),
            end_ns: cx.ns(gap.end),
            spans: List::new(&gap.spans, (connection, Part::Gap(index as u32 + 1)), cx),
        }
    }
}

/// Parts left out of the detail, summed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Omitted<'a> {
    /// How many.
    pub count: u64,
    /// Their durations.
    pub duration_ns: i64,
    /// New payload bytes of the client within (exchanges only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<u64>,
    /// New payload bytes of the server within (exchanges only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u64>,
    /// Their time by cause.
    pub budget: Times<'a>,
}

impl<'a> Omitted<'a> {
    pub(super) fn new(omitted: &'a a::Omitted, with_bytes: bool) -> Option<Omitted<'a>> {
        (omitted.count > 0).then(|| Omitted {
            count: omitted.count,
            duration_ns: omitted.duration.0,
            request_bytes: with_bytes.then_some(omitted.bytes[0]),
            response_bytes: with_bytes.then_some(omitted.bytes[1]),
            budget: Times(&omitted.budget),
        })
    }
}

/// A link that was full, shared by several transfers from one host to another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LinkFull {
    /// How long, of all such links; what follows is of the one with most of it.
    pub time_ns: i64,
    /// How many requests or answers.
    pub transfers: u64,
    /// Their payload that crossed the link meanwhile.
    pub bytes: u64,
    /// Bits of payload a second that they carried together.
    pub carried_bps: u64,
    /// The rate that was measured.
    pub bandwidth_bps: u64,
}

/// Requests to one server that waited for their turn.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InTurn {
    /// Address and port of the server.
    pub server: String,
    /// How many requests.
    pub requests: u64,
    /// On so many it worked at a time.
    pub at_once: u32,
    /// So many were there at once, at the most.
    pub most: u32,
    /// How long one takes by itself; the median.
    pub each_ns: i64,
    /// How long they waited for others, summed.
    pub waited_ns: i64,
}

impl InTurn {
    pub(super) fn new(turns: a::InTurn) -> InTurn {
        let a::InTurn { server, requests, at_once, most, each, waited, .. } = turns;
        InTurn { server: server.to_string(), requests, at_once, most, each_ns: each.0, waited_ns: waited.0 }
    }
}

impl LinkFull {
    pub(super) fn new(full: a::LinkFull) -> LinkFull {
        let a::LinkFull { time, link, .. } = full;
        LinkFull {
            time_ns: time.0,
            transfers: link.transfers,
            bytes: link.bytes,
            carried_bps: link.carried_bps() as u64,
            bandwidth_bps: link.bandwidth_bps,
        }
    }
}
