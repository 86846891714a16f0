//! Rows: what of a connection, its exchanges, its spans and of a finding goes into the tables. Copied, so
//! that the connection can go.

use std::sync::Arc;
use tcpwhy_analysis::{Closed, Connection, Ended, Exchange, Finding, Frames, Quality, Span, Vantage};
use tcpwhy_base::{Cause, Endpoint, Nanos, Side, Source};

/// What all rows of a connection share.
#[derive(Debug)]
pub struct Of {
    pub(crate) capture: Arc<str>,
    pub(crate) connection: u32,
    pub(crate) ends: [Endpoint; 2],
    pub(crate) ips: [String; 2],
    pub(crate) protocol: Option<&'static str>,
}

/// A row of `connections`.
#[derive(Debug)]
pub(crate) struct ConnectionRow {
    pub(crate) of: Arc<Of>,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) roles_inferred: bool,
    pub(crate) opened_by_handshake: bool,
    pub(crate) closed: Closed,
    pub(crate) vantage: Vantage,
    pub(crate) rtt: Option<Nanos>,
    pub(crate) bandwidth_bps: Option<u64>,
    pub(crate) bytes: [u64; 2],
    pub(crate) packets: [u64; 2],
    pub(crate) retransmitted: [u64; 2],
    pub(crate) mss: [Option<u32>; 2],
    pub(crate) quality: Quality,
    pub(crate) setup: Option<Nanos>,
    pub(crate) exchanges: u64,
    pub(crate) requests: Nanos,
    pub(crate) idle: Nanos,
    pub(crate) after: Nanos,
}

/// A row of `exchanges`.
#[derive(Debug)]
pub(crate) struct ExchangeRow {
    pub(crate) of: Arc<Of>,
    pub(crate) id: u32,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) request: Option<Nanos>,
    pub(crate) first_byte: Option<Nanos>,
    pub(crate) with_setup: Option<Nanos>,
    pub(crate) bytes: [u64; 2],
    pub(crate) turns: u32,
    pub(crate) duplex: bool,
    pub(crate) ended: Ended,
}

/// The part of a connection that a span tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum In {
    Setup,
    Exchange(u32),
    Gap,
    /// The gap after the last byte: nobody waited.
    After,
}

impl In {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            In::Setup => "setup",
            In::Exchange(_) => "exchange",
            In::Gap => "gap",
            In::After => "after",
        }
    }
}

/// A row of `spans`.
#[derive(Debug)]
pub(crate) struct SpanRow {
    pub(crate) of: Arc<Of>,
    pub(crate) within: In,
    pub(crate) cause: Cause,
    pub(crate) detail: Option<&'static str>,
    pub(crate) side: Option<Side>,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) frames: Frames,
    pub(crate) confidence: f32,
    pub(crate) alternative: Option<Cause>,
    pub(crate) source: Source,
    pub(crate) folded: u32,
}

/// A row of `findings`.
#[derive(Debug)]
pub(crate) struct FindingRow {
    pub(crate) capture: Arc<str>,
    /// First packet of the capture.
    pub(crate) start: Nanos,
    pub(crate) finding: Finding,
    pub(crate) why: String,
}

/// Rows of the four tables, not written yet.
#[derive(Debug, Default)]
pub struct Rows {
    pub(crate) connections: Vec<ConnectionRow>,
    pub(crate) exchanges: Vec<ExchangeRow>,
    pub(crate) spans: Vec<SpanRow>,
    pub(crate) findings: Vec<FindingRow>,
}

/// How many rows of each table there are.
type Lengths = [usize; 4];

impl Rows {
    /// None.
    pub fn new() -> Rows {
        Rows::default()
    }

    /// Adds a connection of this capture, with what is kept of its exchanges and gaps: all, if nothing is to
    /// be missing from sums.
    pub fn add(&mut self, capture: &Arc<str>, c: &Connection) {
        let ends = [c.client, c.server];
        let of = Arc::new(Of {
            capture: Arc::clone(capture),
            connection: c.id,
            ends,
            ips: ends.map(|end| end.ip.to_string()),
            protocol: c.protocol,
        });
        let after = c.tail.map_or(Nanos::ZERO, |t| t.1);
        self.connections.push(ConnectionRow {
            start: c.start,
            end: c.end,
            roles_inferred: c.roles_inferred,
            opened_by_handshake: c.opened_by_handshake,
            closed: c.closed,
            vantage: c.vantage,
            rtt: c.path.rtt,
            bandwidth_bps: c.path.bandwidth_bps,
            bytes: c.bytes,
            packets: c.packets,
            retransmitted: c.retransmitted,
            mss: [c.ends[0].mss, c.ends[1].mss],
            quality: c.quality,
            setup: c.setup.as_ref().map(|s| s.end - s.start),
            exchanges: c.exchanges.len() as u64 + c.exchanges_omitted.count,
            requests: c.budget.total(),
            idle: c.idle(),
            after,
            of: Arc::clone(&of),
        });
        for span in c.setup.iter().flat_map(|s| &s.spans) {
            self.spans.push(row(&of, In::Setup, span));
        }
        for x in &c.exchanges {
            self.exchanges.push(exchange(&of, x));
            self.spans.extend(x.spans.iter().map(|span| row(&of, In::Exchange(x.id), span)));
        }
        for (i, gap) in c.gaps.iter().enumerate() {
            let last = i + 1 == c.gaps.len();
            let within = |span: &Span| match c.tail {
                Some(tail) if last && gap.spans.len() == 1 && tail == (span.cause, span.duration()) => {
                    In::After
                }
                _ => In::Gap,
            };
            self.spans.extend(gap.spans.iter().map(|span| row(&of, within(span), span)));
        }
    }

    /// Adds the findings of this capture, whose first packet is of `start`.
    pub fn add_findings(&mut self, capture: &Arc<str>, start: Nanos, findings: Vec<Finding>) {
        self.findings.extend(findings.into_iter().map(|mut finding| {
            let why = finding.why();
            // Only the best fix has a column; what has none would be most of the memory where captures are many.
            finding.fixes.truncate(1);
            finding.fixes.iter_mut().for_each(|fix| (fix.how, fix.parameters) = (Vec::new(), Vec::new()));
            finding.fixes.shrink_to_fit();
            (finding.text, finding.replay) = (None, None);
            (finding.connections, finding.evidence) = (Vec::new(), Vec::new());
            (finding.names, finding.refuted) = (Vec::new(), Vec::new());
            FindingRow { capture: Arc::clone(capture), start, why, finding }
        }));
    }

    /// How many rows of all tables.
    pub fn len(&self) -> usize {
        self.lengths().iter().sum()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many connections, exchanges, spans and findings.
    pub fn lengths(&self) -> Lengths {
        [self.connections.len(), self.exchanges.len(), self.spans.len(), self.findings.len()]
    }

    /// Forgets what was added since there were so many of each.
    pub fn truncate(&mut self, [connections, exchanges, spans, findings]: Lengths) {
        self.connections.truncate(connections);
        self.exchanges.truncate(exchanges);
        self.spans.truncate(spans);
        self.findings.truncate(findings);
    }

    /// Takes out what was added since there were so many of each.
    #[must_use]
    pub fn split_off(&mut self, [connections, exchanges, spans, findings]: Lengths) -> Rows {
        Rows {
            connections: self.connections.split_off(connections),
            exchanges: self.exchanges.split_off(exchanges),
            spans: self.spans.split_off(spans),
            findings: self.findings.split_off(findings),
        }
    }

    /// Adds those of others.
    pub fn append(&mut self, mut other: Rows) {
        self.connections.append(&mut other.connections);
        self.exchanges.append(&mut other.exchanges);
        self.spans.append(&mut other.spans);
        self.findings.append(&mut other.findings);
    }

    /// By day, capture, connection and time. What stands side by side then is alike: that halves the size of
    /// the tables, and engines skip pages of other captures and connections.
    pub fn sort(&mut self) {
        let of = |of: &Arc<Of>| (Arc::clone(&of.capture), of.connection);
        self.connections.sort_by_cached_key(|r| (day_number(r.start), of(&r.of), r.start));
        self.exchanges.sort_by_cached_key(|r| (day_number(r.start), of(&r.of), r.start, r.id));
        self.spans.sort_by_cached_key(|r| (day_number(r.start), of(&r.of), r.start, r.end));
        self.findings.sort_by(|a, b| {
            let key = |r: &FindingRow| (day_number(r.start), Arc::clone(&r.capture), r.start);
            key(a).cmp(&key(b))
        });
    }
}

const DAY: i64 = 86_400_000_000_000;

/// Days since 1970, in UTC.
pub(crate) fn day_number(at: Nanos) -> i64 {
    at.0.div_euclid(DAY)
}

fn exchange(of: &Arc<Of>, x: &Exchange) -> ExchangeRow {
    ExchangeRow {
        of: Arc::clone(of),
        id: x.id,
        start: x.start,
        end: x.end,
        request: x.request_end.map(|t| t - x.start),
        first_byte: x.response_start.map(|t| t - x.start),
        with_setup: x.with_setup,
        bytes: x.bytes,
        turns: x.turns,
        duplex: x.duplex,
        ended: x.ended,
    }
}

fn row(of: &Arc<Of>, within: In, span: &Span) -> SpanRow {
    SpanRow {
        of: Arc::clone(of),
        within,
        cause: span.cause,
        detail: span.detail,
        side: span.side,
        start: span.start,
        end: span.end,
        frames: span.frames,
        confidence: span.confidence,
        alternative: span.alternatives[0].map(|a| a.0),
        source: span.source,
        folded: span.folded,
    }
}
