//! What the analysis says: connections, their parts, spans and findings. All times are absolute (since the
//! Unix epoch); the report subtracts the start of the capture.

mod finding;
mod frames;
mod in_turn;
mod link;
mod made;
mod named;
mod server;
mod taps;
mod totals;

pub use finding::*;
pub use frames::Frames;
pub use in_turn::InTurn;
pub use link::{LinkFull, SharedLink};
pub use named::*;
pub use server::{Asked, Server};
pub(crate) use server::{ask_in_series, asked_of};
pub use taps::{Lost, TwoTaps};
pub use totals::Totals;

use crate::budget::Budget;
use crate::facts::Facts;
use crate::fetch::fetch_whole;
use crate::login::Opening;
use crate::rest::{Form, Packer, Unpacker, at_rest};
use tcpwhy_base::{Cause, Endpoint, Nanos, Program, Side, Source, Told};

/// A stretch of time with exactly one cause.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Span {
    /// Why this time passed.
    pub cause: Cause,
    /// What kind of it, where that is known.
    pub detail: Option<&'static str>,
    /// Who could change it.
    pub side: Option<Side>,
    /// Start, inclusive.
    pub start: Nanos,
    /// End, exclusive.
    pub end: Nanos,
    /// Evidence.
    pub frames: Frames,
    /// How sure, 0 to 1.
    pub confidence: f32,
    /// What else it could be, with how sure.
    pub alternatives: [Option<(Cause, f32)>; 2],
    /// The figures behind it; [`Facts::sentence`] says them.
    pub facts: Facts,
    /// How many repeats of a pattern were folded into this span (1: none).
    pub folded: u32,
    /// The longest of those, where there are several.
    pub(crate) longest_folded: Nanos,
    /// Who says so; [`Source::Inferred`] if any part of it is.
    pub source: Source,
}

at_rest! {
    Span {
        cause, detail as Detail, side, start, end, frames, confidence, alternatives, facts, folded,
        longest_folded, source,
    }
}

/// What is said beside the cause of a span: one of a few words.
struct Detail;

impl Form<&'static str> for Detail {
    fn write(value: &&'static str, to: &mut Packer) {
        to.one_of(Span::DETAILS.into_iter(), value);
    }

    fn read(from: &mut Unpacker<'_>) -> &'static str {
        from.one_of(Span::DETAILS.into_iter()).unwrap_or(Span::REPEATED)
    }
}

impl Span {
    /// Several of one cause are one.
    pub(crate) const REPEATED: &'static str = "repeated";
    /// After the last exchange of a closed connection.
    pub(crate) const CLOSE: &'static str = "close";
    const DETAILS: [&'static str; 2] = [Span::REPEATED, Span::CLOSE];

    /// How long.
    pub fn duration(&self) -> Nanos {
        self.end - self.start
    }

    /// How long the longest of the repeats that were folded into it lasted; one alone as long as it.
    #[inline]
    pub fn longest(&self) -> Nanos {
        if self.folded > 1 { self.longest_folded.min(self.duration()) } else { self.duration() }
    }
}

/// First SYN to the client's first ACK of the SYN-ACK, and the TLS handshake if one follows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The first SYN.
    pub start: Nanos,
    /// The end of the handshake(s).
    pub end: Nanos,
    /// Payload seen within, by client and server; also both goodbyes, if TLS was spoken.
    pub bytes: [u64; 2],
    /// How often the client waited for an answer within the TLS handshake: once with TLS 1.3, twice in a full
    /// one of TLS 1.2; 0 without one.
    pub tls_trips: u32,
    /// The server of TLS 1.3 asked for another ClientHello, with a key of another group (HelloRetryRequest,
    /// RFC 8446, 4.1.4).
    pub tls_asked_again: bool,
    /// Tile `start..end`.
    pub spans: Vec<Span>,
}

at_rest! { Setup { start, end, bytes, tls_trips, tls_asked_again, spans } }

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Answered (or, for a one-way transfer, delivered).
    Complete,
    /// By a reset.
    Rst,
    /// Without an answer, the connection still open or closed without one.
    Silent,
    /// The capture stopped.
    CaptureEnd,
}

impl Ended {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Ended::Complete => "complete",
            Ended::Rst => "rst",
            Ended::Silent => "silent",
            Ended::CaptureEnd => "capture_end",
        }
    }
}

/// One request and its response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Exchange {
    /// 1-based within its connection.
    pub id: u32,
    /// First byte of the request (or of the response, where the server speaks first).
    pub start: Nanos,
    /// Last byte of the request before the first of the response.
    pub request_end: Option<Nanos>,
    /// First byte of the response.
    pub response_start: Option<Nanos>,
    /// Last passage of payload not yet acknowledged.
    pub end: Nanos,
    /// Setup start to `end`, for the first exchange of a connection with setup.
    pub with_setup: Option<Nanos>,
    /// New payload bytes from client and server.
    pub bytes: [u64; 2],
    /// Turns from client to server.
    pub turns: u32,
    /// The directions overlapped.
    pub duplex: bool,
    /// How it ended.
    pub ended: Ended,
    /// It began before the window that is looked at, or ended after it: its times are those within.
    pub cut: bool,
    /// Tile `start..end`.
    pub spans: Vec<Span>,
    /// What its first bytes say of it, where somebody looked.
    pub named: Option<Box<Named>>,
}

/// Time of a connection that belongs to neither setup nor an exchange.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Gap {
    /// Start.
    pub start: Nanos,
    /// End.
    pub end: Nanos,
    /// Tile `start..end`.
    pub spans: Vec<Span>,
}

/// Sum of the parts left out of the detail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// How many.
    pub count: u64,
    /// Their durations.
    pub duration: Nanos,
    /// New payload bytes from client and server (exchanges only).
    pub bytes: [u64; 2],
    /// Their time by cause.
    pub budget: Budget,
}

at_rest! { Omitted { count, duration, bytes, budget } }

/// Where the capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Vantage {
    Client,
    Server,
    Middle,
    Unknown,
}

impl Vantage {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Vantage::Client => "client",
            Vantage::Server => "server",
            Vantage::Middle => "middle",
            Vantage::Unknown => "unknown",
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Closed {
    Fin,
    Rst,
    Open,
}

at_rest! { enum Closed { Fin, Rst, Open } }

impl Closed {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Closed::Fin => "fin",
            Closed::Rst => "rst",
            Closed::Open => "open",
        }
    }
}

/// What limits what can be said of a connection; bits, see [`Quality::NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality(pub u16);

at_rest! { Quality(value) }

impl Quality {
    /// The first packet was no SYN.
    pub const MIDSTREAM: Quality = Quality(1);
    /// Packets of one end only.
    pub const ONE_SIDED: Quality = Quality(2);
    /// Headers cut by the snap length.
    pub const SNAPLEN: Quality = Quality(4);
    /// The capture lost packets: bytes were acknowledged that it does not hold.
    pub const CAPTURE_DROPS: Quality = Quality(8);
    /// Packets larger than the MSS: segmentation or receive offload.
    pub const OFFLOAD: Quality = Quality(16);
    /// A packet was stamped before an earlier one.
    pub const TIME_WENT_BACK: Quality = Quality(32);
    /// Copies of packets were seen and left out.
    pub const DUPLICATES: Quality = Quality(64);
    /// The window scale is not known.
    pub const NO_WINDOW_SCALE: Quality = Quality(128);
    /// Seen through a tunnel.
    pub const ENCAPSULATED: Quality = Quality(256);
    /// The window scale was not seen, but read from how the windows moved.
    pub const SCALE_INFERRED: Quality = Quality(512);
    /// The capture's clock ticks every 1 or 10 ms: shorter waits are not judged.
    pub const COARSE_CLOCK: Quality = Quality(1024);
    /// A proxy, a NAT engine or a balancer acknowledges for the server: what lies behind it shows in its SYN-ACK only.
    pub const SPLIT: Quality = Quality(2048);
    /// Bit and name in JSON.
    pub const NAMES: [(Quality, &'static str); 12] = [
        (Quality::MIDSTREAM, "midstream"),
        (Quality::ONE_SIDED, "one_sided"),
        (Quality::SNAPLEN, "snaplen"),
        (Quality::CAPTURE_DROPS, "capture_drops"),
        (Quality::OFFLOAD, "offload"),
        (Quality::TIME_WENT_BACK, "time_went_back"),
        (Quality::DUPLICATES, "duplicates"),
        (Quality::NO_WINDOW_SCALE, "no_window_scale"),
        (Quality::ENCAPSULATED, "encapsulated"),
        (Quality::SCALE_INFERRED, "window_scale_inferred"),
        (Quality::COARSE_CLOCK, "coarse_clock"),
        (Quality::SPLIT, "split"),
    ];

    /// Sets the bits of `other`.
    pub fn set(&mut self, other: Quality) {
        self.0 |= other.0;
    }

    /// Any bit of `other`.
    pub const fn has(self, other: Quality) -> bool {
        self.0 & other.0 != 0
    }

    /// The names of the bits that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Quality::NAMES.into_iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, name)| name)
    }
}

/// What is known of one end's stack and settings.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct End {
    /// MSS option it sent, bytes.
    pub mss: Option<u32>,
    /// Window scale option it sent; without its SYN, the scale read from how its window moved, once that was sure.
    pub wscale: Option<u8>,
    /// By how many bits its windows are shifted (RFC 7323, 2.2), from both SYNs or as above; `None`: not known.
    pub window_shift: Option<u8>,
    /// Bytes of its first flight, where a later flight shows that it was limited.
    pub initial_flight: Option<u64>,
    /// Largest window it advertised, bytes, scaled where the scale is known.
    pub max_window: Option<u64>,
    /// Most bytes it had in flight.
    pub max_flight: u64,
    /// Guess of its operating system from its SYN.
    pub os: Option<&'static str>,
    /// How late its ACKs were that it delayed (its habit).
    pub delayed_ack: Option<Extremes>,
    /// Shortest wait before it repeated data by a timer.
    pub min_rto: Option<Nanos>,
    /// How often it sent a partial segment after an unacknowledged one: Nagle's algorithm was off.
    pub nodelay_shown: u32,
    /// Zero windows it advertised, window probes and keep-alives it sent, packets.
    pub zero_windows: u32,
    /// Window probes.
    pub probes: u32,
    /// Keep-alives.
    pub keepalives: u32,
    /// Out-of-order arrivals that were reordering and not repair.
    pub reordered: u32,
    /// SYN (or SYN-ACK) repeats.
    pub syn_repeats: u32,
    /// Copies of packets left out.
    pub duplicates: u32,
    /// A guess of the program, and what it is from.
    pub program: Option<(Program, Told)>,
}

/// What is known of the path.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Path {
    /// Base round trip.
    pub rtt: Option<Nanos>,
    /// Part of it from the tap to the client and back, and to the server and back.
    pub halves: [Option<Nanos>; 2],
    /// Bottleneck rate in bits per second, as far as it showed.
    pub bandwidth_bps: Option<u64>,
    /// Super-segments were seen.
    pub offloaded: bool,
}

/// One incarnation of a 4-tuple.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Connection {
    /// 1-based in the order of first packets.
    pub id: u32,
    /// Who sent the SYN, or is inferred to.
    pub client: Endpoint,
    /// The other end.
    pub server: Endpoint,
    /// `client` is inferred: no SYN was seen.
    pub roles_inferred: bool,
    /// First packet.
    pub start: Nanos,
    /// Last packet; where an answer was still waited for when the capture ended, the capture's.
    pub end: Nanos,
    /// The handshake was seen.
    pub opened_by_handshake: bool,
    /// How it ended.
    pub closed: Closed,
    /// Where the tap was.
    pub vantage: Vantage,
    /// What is spoken above TCP, where it shows: `http/1`, `http/2`, `tls`, `ssh`.
    pub protocol: Option<&'static str>,
    /// The path.
    pub path: Path,
    /// Client and server.
    pub ends: [End; 2],
    /// New payload bytes sent by client and server.
    pub bytes: [u64; 2],
    /// Packets sent by client and server, copies left out.
    pub packets: [u64; 2],
    /// Packets by client and server that repeat bytes.
    pub retransmitted: [u64; 2],
    /// What limits what can be said.
    pub quality: Quality,
    /// Setup, where seen.
    pub setup: Option<Setup>,
    /// The exchanges kept in detail, ascending.
    pub exchanges: Vec<Exchange>,
    /// The others, summed.
    pub exchanges_omitted: Omitted,
    /// The gaps kept in detail, ascending.
    pub gaps: Vec<Gap>,
    /// The others, summed.
    pub gaps_omitted: Omitted,
    /// Setup + all exchanges.
    pub budget: Budget,
    /// All gaps.
    pub gap_budget: Budget,
    /// From the end of the last response to the server's FIN, where the client closed only after that.
    pub closed_after: Option<Nanos>,
    /// The server's FIN came before its client's, if there was one.
    pub server_closed: bool,
    /// The last request came to a server that had closed, which answered with a reset: its FIN was on its way.
    pub too_late: bool,
    /// A reset of its server, which had acknowledged nothing of the last request, ended that.
    pub reset_unheard: bool,
    /// The same of a server that had it, or its beginning.
    pub reset_heard: bool,
    /// Its client gave the last request up after so long.
    pub gave_up: Option<Nanos>,
    /// How its first requests looked, which may be a login.
    pub(crate) opening: Opening,
    /// A reset ended it while an answer was under way, as far as is known: neither end had closed.
    pub cut_off: bool,
    /// Time after its last byte, in its gaps, and its cause: nobody waited for it, so it is no part of any share.
    pub tail: Option<(Cause, Nanos)>,
    /// Worst first; only of the connections that lost most to TCP, where there are many.
    pub findings: Vec<Finding>,
    /// How many findings are left out where `findings` is empty.
    pub findings_omitted: usize,
    /// First and last frame.
    pub frames: (u64, u64),
    /// What the tap at the server's end has seen of it, where there is one.
    pub taps: Option<Box<TwoTaps>>,
}

impl Connection {
    /// Setup, exchanges and the gaps before the last byte: what shares are of.
    pub fn measured(&self) -> Nanos {
        self.budget.total() + self.idle()
    }

    /// Opened and closed, and not a byte between: a health check, or a connection that nobody needed in the end.
    pub(crate) fn was_empty(&self) -> bool {
        self.opened_by_handshake
            && self.closed != Closed::Open
            && self.bytes == [0, 0]
            && self.exchange_count() == 0
    }

    /// How many exchanges it had, those that are not kept in detail as well.
    pub(crate) fn exchange_count(&self) -> u64 {
        self.exchanges.len() as u64 + self.exchanges_omitted.count
    }

    /// How many of them may be its login.
    pub(crate) fn login(&self) -> u64 {
        self.opening.login(self.exchange_count(), self.ends[1].program.map(|p| p.0))
    }

    /// What is asked of those behind a place is on its way from memory while that one is worked on: a list of
    /// many is in no cache.
    #[doc(hidden)]
    pub fn fetch_behind(list: &[Box<Connection>], place: usize) {
        // First where its lists are, then those.
        list.get(place + 4).into_iter().for_each(|c| fetch_whole(&**c));
        list.get(place + 2).into_iter().for_each(|c| c.fetch_lists());
    }

    fn fetch_lists(&self) {
        fetch_whole(self.budget.0.as_slice());
        fetch_whole(self.gap_budget.0.as_slice());
        self.setup.iter().filter_map(|s| s.spans.first()).for_each(fetch_whole);
    }

    /// Gaps before the last byte: no request was on its way.
    pub fn idle(&self) -> Nanos {
        self.gap_budget.total() - self.tail.map_or(Nanos::ZERO, |t| t.1)
    }
}
