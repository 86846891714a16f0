//! Connections, findings, fixes and the document around them.

use super::frames::{Example, Frames};
use super::parts::{Exchange, Gap, InTurn, LinkFull, Omitted, Setup};
use super::values::{
    AnyCause, ClassLetter, Context, FindingId, InBrief, List, OwnerName, Pair, Parameters, QualityNames,
    SideName, Times, View, Word, unit,
};
use super::{CaptureInfo, Model, NoEffect, Summary, Taps};
use crate::answer::rounded;
use schemars::JsonSchema;
use serde::Serialize;
use tcpwhy_analysis as a;
use tcpwhy_base::Endpoint;

/// The whole document of `tcpwhy explain --json`. Within schema 1 changes are additive; readers ignore unknown
/// fields. Times are integer nanoseconds from the earliest packet.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "tcpwhy explain, schema 1")]
pub struct Explain<'a> {
    /// Always `tcpwhy`.
    pub tool: &'static str,
    /// Version of the program.
    pub version: &'static str,
    /// Version of this contract.
    pub schema: u32,
    /// The answer as a whole.
    pub summary: Summary,
    /// In the order of their first packets.
    pub connections: Vec<Connection<'a>>,
    /// Over the whole capture, worst first.
    pub findings: Vec<Finding<'a>>,
    /// The input as a whole.
    pub capture: CaptureInfo<'a>,
}

/// One incarnation of a 4-tuple.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Connection<'a> {
    /// 1-based in the order of first packets.
    pub id: u32,
    /// The number that tshark and Wireshark give it (`tcp.stream`), where that is known.
    pub tshark_stream: Option<u32>,
    /// Address and port of who sent the SYN, or is inferred to.
    #[schemars(with = "String")]
    pub client: InBrief<Endpoint>,
    /// Address and port of the other end.
    #[schemars(with = "String")]
    pub server: InBrief<Endpoint>,
    /// `syn` or `inferred`.
    pub roles: Word,
    /// First packet.
    pub start_ns: i64,
    /// Last packet; where an answer was still waited for when the capture ended, the capture's.
    pub end_ns: i64,
    /// `handshake` or `midstream`.
    pub opened: Word,
    /// `fin`, `rst` or `open`.
    pub closed: Word,
    /// Where the capture was taken: `client`, `server`, `middle` or `unknown`.
    pub vantage: Word,
    /// What is spoken above TCP, where it shows.
    pub protocol: Option<Word>,
    /// The path.
    pub path: Path,
    /// The two ends.
    pub endpoints: Ends,
    /// New payload bytes sent.
    pub bytes: Pair,
    /// Packets sent, copies left out.
    pub packets: Pair,
    /// Packets that repeat bytes.
    pub retransmitted: Pair,
    /// What limits what can be said: `midstream`, `one_sided`, `snaplen`, `capture_drops`, `offload`, ...
    pub quality: QualityNames,
    /// Setup, where it was seen.
    pub setup: Option<Setup<'a>>,
    /// The exchanges kept in detail, ascending.
    #[schemars(with = "Vec<Exchange>")]
    pub exchanges: List<'a, a::Exchange, Exchange<'a>>,
    /// The others, summed.
    pub exchanges_omitted: Option<Omitted<'a>>,
    /// The gaps kept in detail, ascending.
    #[schemars(with = "Vec<Gap>")]
    pub gaps: List<'a, a::Gap, Gap<'a>>,
    /// The others, summed.
    pub gaps_omitted: Option<Omitted<'a>>,
    /// Setup and all exchanges, omitted ones included.
    pub budget: Times<'a>,
    /// All gaps.
    pub gap_budget: Times<'a>,
    /// From the end of the last response to the server's FIN, where the client closed only after that.
    pub closed_after_ns: Option<i64>,
    /// Worst first. With more than a thousand connections, only those that lost most to TCP have theirs; the
    /// budgets hold the times of all.
    #[schemars(with = "Vec<Finding>")]
    pub findings: List<'a, a::Finding, Finding<'a>>,
    /// How many findings were left out.
    #[serde(skip_serializing_if = "is_none")]
    pub findings_omitted: usize,
    /// First and last frame.
    pub frames: Range,
    /// What two taps say together, where there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taps: Option<Taps>,
}

impl<'a> Connection<'a> {
    #[inline]
    pub(super) fn new(c: &'a a::Connection, cx: Context<'a>) -> Connection<'a> {
        let findings = c.findings.as_slice();
        Connection {
            id: c.id,
            tshark_stream: cx.streams.then(|| c.id.saturating_sub(1)),
            client: InBrief(c.client),
            server: InBrief(c.server),
            roles: Word(if c.roles_inferred { "inferred" } else { "syn" }),
            start_ns: cx.ns(c.start),
            end_ns: cx.ns(c.end),
            opened: Word(if c.opened_by_handshake { "handshake" } else { "midstream" }),
            closed: Word(c.closed.name()),
            vantage: Word(c.vantage.name()),
            protocol: c.protocol.map(Word),
            path: Path::new(&c.path),
            endpoints: Ends { client: End::new(&c.ends[0]), server: End::new(&c.ends[1]) },
            bytes: c.bytes.into(),
            packets: c.packets.into(),
            retransmitted: c.retransmitted.into(),
            quality: QualityNames(c.quality),
            setup: c.setup.as_ref().map(|s| Setup::new(s, c.id, cx)),
            exchanges: List::new(&c.exchanges, c.id, cx),
            exchanges_omitted: Omitted::new(&c.exchanges_omitted, true),
            gaps: List::new(&c.gaps, c.id, cx),
            gaps_omitted: Omitted::new(&c.gaps_omitted, false),
            budget: Times(&c.budget),
            gap_budget: Times(&c.gap_budget),
            closed_after_ns: c.closed_after.map(|t| t.0),
            findings: List::new(findings, c.id, cx),
            findings_omitted: c.findings_omitted,
            frames: Range::new(c, cx),
            taps: c.taps.as_deref().map(|t| Taps::new(t, cx)),
        }
    }
}

/// First and last frame of something.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Range {
    /// Lowest frame.
    pub first: u64,
    /// Highest frame.
    pub last: u64,
    /// Index of the input that holds `first`, only where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<u16>,
    /// Index of the input that holds `last`, only where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_file: Option<u16>,
}

impl Range {
    #[inline]
    fn new(c: &a::Connection, cx: Context<'_>) -> Range {
        let ((first, file), (last, last_file)) = (cx.local_frame(c.frames.0), cx.local_frame(c.frames.1));
        Range { first, last, file, last_file }
    }
}

/// What is known of the path.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Path {
    /// Base round trip.
    pub rtt_ns: Option<i64>,
    /// Bottleneck rate, as far as it showed.
    pub bandwidth_bps: Option<u64>,
    /// Super-segments were seen.
    pub offloaded: bool,
    /// The part of the round trip from the tap to the client and back.
    pub client_rtt_ns: Option<i64>,
    /// The part of the round trip from the tap to the server and back.
    pub server_rtt_ns: Option<i64>,
}

impl Path {
    #[inline]
    fn new(path: &a::Path) -> Path {
        Path {
            rtt_ns: path.rtt.map(|t| t.0),
            bandwidth_bps: path.bandwidth_bps,
            offloaded: path.offloaded,
            client_rtt_ns: path.halves[0].map(|t| t.0),
            server_rtt_ns: path.halves[1].map(|t| t.0),
        }
    }
}

/// The two ends.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ends {
    /// Who sent the SYN.
    pub client: End,
    /// Who listened.
    pub server: End,
}

/// What is known of one end.
#[derive(Debug, Serialize, JsonSchema)]
pub struct End {
    /// MSS option it sent.
    pub mss: Option<u32>,
    /// Window scale option it sent; without its SYN, the scale read from how its window moved, once that was sure.
    pub wscale: Option<u8>,
    /// Bytes of its first flight, where it was seen to be limited.
    pub initial_flight: Option<u64>,
    /// Largest window it advertised, bytes.
    pub max_window: Option<u64>,
    /// Its stack, where it shows.
    pub stack: Option<Stack>,
    /// A guess of the program that speaks there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Most bytes it had in flight.
    pub max_flight: u64,
    /// Zero windows it advertised.
    #[serde(skip_serializing_if = "is_zero")]
    pub zero_windows: u32,
    /// Window probes it sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub window_probes: u32,
    /// Keep-alives it sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub keepalives: u32,
    /// Late arrivals that were reordering and not repair.
    #[serde(skip_serializing_if = "is_zero")]
    pub reordered: u32,
    /// Repeats of its SYN or SYN-ACK.
    #[serde(skip_serializing_if = "is_zero")]
    pub syn_repeats: u32,
    /// Copies of its packets, left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub duplicates: u32,
}

/// A program as it was guessed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Program {
    /// Its name, or that of the language that it is written in.
    pub name: &'static str,
    /// What told: `first_bytes` of the connection (a header, a greeting), or the well-known `port`.
    pub told_by: Word,
}

impl Program {
    fn new((program, told): (tcpwhy_base::Program, tcpwhy_base::Told)) -> Program {
        Program { name: program.name(), told_by: Word(told.name()) }
    }
}

impl End {
    #[inline(always)]
    fn new(end: &a::End) -> End {
        let known = end.os.is_some() || end.delayed_ack.is_some() || end.min_rto.is_some();
        End {
            mss: end.mss,
            wscale: end.wscale,
            initial_flight: end.initial_flight,
            max_window: end.max_window,
            stack: known.then(|| Stack {
                os: end.os.map(Word),
                delayed_ack_min_ns: end.delayed_ack.map(|d| d.shortest.0),
                delayed_ack_max_ns: end.delayed_ack.map(|d| d.longest.0),
                min_rto_ns: end.min_rto.map(|t| t.0),
            }),
            program: end.program.map(Program::new),
            max_flight: end.max_flight,
            zero_windows: end.zero_windows,
            window_probes: end.probes,
            keepalives: end.keepalives,
            reordered: end.reordered,
            syn_repeats: end.syn_repeats,
            duplicates: end.duplicates,
        }
    }
}

fn is_none(n: &usize) -> bool {
    *n == 0
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What shows of a TCP stack.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stack {
    /// Guess of the operating system from the SYN.
    pub os: Option<Word>,
    /// Shortest delay of an ACK that was delayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack_min_ns: Option<i64>,
    /// Longest delay of an ACK that was delayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack_max_ns: Option<i64>,
    /// Shortest wait before a repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rto_ns: Option<i64>,
}

/// A cause rolled up over spans.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finding<'a> {
    /// `f1`, `f2`, ... over the capture; `3.f1` within connection 3.
    #[schemars(with = "String")]
    pub id: InBrief<FindingId>,
    /// Which cause.
    pub cause: AnyCause,
    /// Whose time it is.
    pub class: ClassLetter,
    /// Who has to act.
    pub owner: OwnerName,
    /// A few words for a heading.
    pub title: &'static str,
    /// The side that holds most of its time.
    pub side: Option<SideName>,
    /// Sum of its spans (or, for a finding without spans, its cost).
    pub lost_ns: i64,
    /// Share of setup, exchanges, and gaps before the last byte.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// The part of `lost_ns` in requests and setups; of a server, without that of requests to another one.
    pub requests_ns: i64,
    /// That as a share of the time of requests (`summary.request_ns`; within a connection of its own).
    #[schemars(range(min = 0, max = 1))]
    pub share_of_requests: f64,
    /// The part of `lost_ns` between requests.
    pub idle_ns: i64,
    /// The part of `lost_ns` after the last byte of a connection, which nobody waited for: not in `share`.
    pub after_last_byte_ns: i64,
    /// Too little to be worth an advice: no span of a millisecond, and less than a hundredth of the time.
    pub minor: bool,
    /// For this part of `requests_ns` transfers filled a link: no fix of one saves all; of `bandwidth`, of other causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_full: Option<LinkFull>,
    /// Of `server_think`: the server whose requests waited longest for each other, if all its exchanges are kept (rule 161).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_turn: Option<InTurn>,
    /// How sure, on average over its time.
    #[schemars(range(min = 0, max = 1))]
    pub confidence: f64,
    /// How many spans.
    pub occurrences: u64,
    /// Shortest of them.
    pub shortest_ns: i64,
    /// Longest of them.
    pub longest_ns: i64,
    /// Connections that show it, the worst first, bounded.
    pub connections: &'a [u32],
    /// How many connections show it.
    pub connection_count: u64,
    /// The span that shows it best.
    pub example: Option<Example>,
    /// Sentences with the figures.
    pub why: String,
    /// Frames of some of its spans.
    #[schemars(with = "Vec<Frames>")]
    pub evidence: List<'a, a::Frames, Frames>,
    /// Exchanges that show it by name, those first that hold most of its time; with `--names`, of those kept in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exchange_names: Vec<NameCount<'a>>,
    /// What to do, best first.
    #[schemars(with = "Vec<Fix>")]
    pub fixes: List<'a, a::Fix, Fix<'a>>,
    /// Fixes for this cause that the capture, or a replay of it, shows not to help here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refuted: Vec<Refuted<'a>>,
    /// Settings that are often advised and do nothing here by the kernel's rules; what a replay shows to have no effect
    /// stands in `model`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_help: Vec<NoEffect>,
    /// The example replayed in the model; absent where it could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model<'a>>,
}

impl<'a> Finding<'a> {
    pub(super) fn new(f: &'a a::Finding, connection: u32, index: usize, cx: Context<'a>) -> Finding<'a> {
        Finding {
            id: InBrief(FindingId { connection, number: index as u32 + 1 }),
            cause: AnyCause(f.cause),
            class: ClassLetter(f.cause.class()),
            owner: OwnerName(f.cause.owner()),
            title: f.cause.info().title,
            side: f.side.map(SideName),
            lost_ns: f.lost.0.max(0),
            share: unit(f.share),
            requests_ns: f.of_requests().0.max(0),
            share_of_requests: unit(f.share_of_requests),
            idle_ns: f.idle.0.max(0),
            after_last_byte_ns: f.tail.0.max(0),
            minor: f.is_minor(),
            link_full: f.link_full.map(LinkFull::new),
            in_turn: f.in_turn.map(InTurn::new),
            confidence: rounded(f.confidence),
            occurrences: f.occurrences,
            shortest_ns: f.range.shortest.0,
            longest_ns: f.range.longest.0,
            connections: &f.connections,
            connection_count: f.connection_count,
            example: Example::new(&f.example, cx),
            why: f.why(),
            evidence: List::new(&f.evidence, (), cx),
            exchange_names: f.names.iter().map(|(name, count)| NameCount { name, count: *count }).collect(),
            fixes: List::new(&f.fixes, (), cx),
            refuted: f.refuted.iter().map(Refuted::new).collect(),
            no_help: f.no_effect().into_iter().map(NoEffect::new).collect(),
            model: f.replay.as_deref().map(Model::new),
        }
    }
}

impl<'a> View<'a, a::Finding> for Finding<'a> {
    /// The connection; 0: the whole capture.
    type Parent = u32;

    fn view(f: &'a a::Finding, connection: u32, index: usize, cx: Context<'a>) -> Self {
        Finding::new(f, connection, index, cx)
    }
}

/// Exchanges of one name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NameCount<'a> {
    /// As in `exchanges[].name`.
    pub name: &'a str,
    /// How many.
    pub count: u64,
}

/// A fix that is not offered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Refuted<'a> {
    /// Id of the fix.
    pub id: &'static str,
    /// The rest of a sentence that begins with "because".
    pub because: &'a str,
}

impl<'a> Refuted<'a> {
    fn new(refuted: &'a a::Refuted) -> Refuted<'a> {
        Refuted { id: refuted.fix.info().id, because: &refuted.because }
    }
}

/// Something a person can do about a finding.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fix<'a> {
    /// Stable id.
    pub id: Word,
    /// What to do, in a few words.
    pub title: &'static str,
    /// `client`, `server`, `host` or `path`.
    #[serde(rename = "where")]
    pub place: Word,
    /// Exact settings or code changes.
    pub how: &'a [String],
    /// The guessed program that stands first in `how` (behind the line that says when to look, where there is one).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Parameters for programs.
    pub applies_to: Parameters<'a>,
    /// What it saves of the finding's time: at most, or as the model predicts it from its example. A faster
    /// link for transfers that filled it (`link_full`) saves of the time of other findings, too, and this may
    /// be more than that of its own.
    pub saves_ns: Option<i64>,
    /// Time of the replayed part (`model` of the finding) with this fix; none where a shared link
    /// (`link_full`) was full for most of it.
    pub predicted_ns: Option<i64>,
    /// Where the saving comes from: `bound`, `predicted`, `replayed` or `applied`.
    pub basis: Word,
}

impl<'a> View<'a, a::Fix> for Fix<'a> {
    type Parent = ();

    fn view(fix: &'a a::Fix, _: (), _: usize, _: Context<'a>) -> Self {
        let info = fix.fix.info();
        Fix {
            id: Word(info.id),
            title: info.title,
            place: Word(fix.place),
            how: &fix.how,
            program: fix.guess.map(Program::new),
            applies_to: Parameters(&fix.parameters),
            saves_ns: fix.saves.map(|t| t.0),
            predicted_ns: fix.predicted.map(|t| t.0),
            basis: Word(if fix.replayed { "predicted" } else { "bound" }),
        }
    }
}
