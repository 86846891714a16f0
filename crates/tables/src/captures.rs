//! The columns of the tables of captures, in one list each.

use crate::column::{Column, Value};
use crate::group::{Group, columns};
use crate::rows::{ConnectionRow, ExchangeRow, FindingRow, In, Rows, SpanRow};
use crate::schema::{CLASS, CLIENT, Field, Get, Kind, OWNER, PORT, SERVER, Table, count, may, must, time};
use tcpwhy_analysis::{Ended, Finding, Fix};
use tcpwhy_base::{Nanos, Side, Source};

const CAPTURE: Field = must("capture", Kind::Word, "The file, as it was named");
const CONNECTION: Field =
    must("connection", Kind::Small, "Number within the capture, as in every other output of tcpwhy");

const CONNECTIONS: &[Get<ConnectionRow>] = &[
    (must("start", Kind::Time, "First packet"), |r| time(r.start)),
    (must("duration_ns", Kind::Duration, "To the last packet"), |r| time(r.end - r.start)),
    (CAPTURE, |r| Value::Text(&r.of.capture)),
    (CONNECTION, |r| count(r.of.connection.into())),
    (CLIENT, |r| Value::Text(&r.of.ips[0])),
    (must("client_port", Kind::Small, "Its port"), |r| count(r.of.ends[0].port.into())),
    (SERVER, |r| Value::Text(&r.of.ips[1])),
    (PORT, |r| count(r.of.ends[1].port.into())),
    (may("protocol", Kind::Word, "What is spoken above TCP, where it shows"), |r| r.of.protocol.into()),
    (must("roles_inferred", Kind::Flag, "No SYN was seen: who is the client is inferred"), |r| {
        Value::Flag(r.roles_inferred)
    }),
    (must("handshake", Kind::Flag, "The handshake was seen"), |r| Value::Flag(r.opened_by_handshake)),
    (must("closed", Kind::Word, "`fin`, `rst` or `open`"), |r| Value::Text(r.closed.name())),
    (must("vantage", Kind::Word, "Where the tap was: `client`, `server`, `middle` or `unknown`"), |r| {
        Value::Text(r.vantage.name())
    }),
    (may("rtt_ns", Kind::Duration, "Base round trip"), |r| r.rtt.map(|t| t.0).into()),
    (may("bandwidth_bps", Kind::Number, "Rate of the bottleneck in bit/s, as far as it showed"), |r| {
        r.bandwidth_bps.map_or(Value::Nothing, count)
    }),
    (must("client_bytes", Kind::Number, "New payload of the client"), |r| count(r.bytes[0])),
    (must("server_bytes", Kind::Number, "New payload of the server"), |r| count(r.bytes[1])),
    (must("client_packets", Kind::Number, "Packets of the client, copies left out"), |r| count(r.packets[0])),
    (must("server_packets", Kind::Number, "Packets of the server"), |r| count(r.packets[1])),
    (must("client_retransmitted", Kind::Number, "Packets of the client that repeat bytes"), |r| {
        count(r.retransmitted[0])
    }),
    (must("server_retransmitted", Kind::Number, "Packets of the server that repeat bytes"), |r| {
        count(r.retransmitted[1])
    }),
    (may("client_mss", Kind::Small, "MSS option of the client, bytes"), |r| r.mss[0].map(i64::from).into()),
    (may("server_mss", Kind::Small, "MSS option of the server, bytes"), |r| r.mss[1].map(i64::from).into()),
    (must("quality", Kind::Number, "What limits what can be said: the bits below"), |r| {
        Value::Number(r.quality.0.into())
    }),
    (may("setup_ns", Kind::Duration, "Handshakes of TCP and TLS, where seen"), |r| {
        r.setup.map(|t| t.0).into()
    }),
    (must("exchanges", Kind::Number, "How many exchanges"), |r| count(r.exchanges)),
    (must("requests_ns", Kind::Duration, "Setup and exchanges"), |r| time(r.requests)),
    (must("idle_ns", Kind::Duration, "Between exchanges"), |r| time(r.idle)),
    (must("after_ns", Kind::Duration, "After the last byte, when nobody waited"), |r| time(r.after)),
];

const EXCHANGES: &[Get<ExchangeRow>] = &[
    (
        must(
            "start",
            Kind::Time,
            "First byte of the request, or of the response where the server speaks first",
        ),
        |r| time(r.start),
    ),
    (must("duration_ns", Kind::Duration, "To the last byte of the response"), |r| time(r.end - r.start)),
    (CAPTURE, |r| Value::Text(&r.of.capture)),
    (CONNECTION, |r| count(r.of.connection.into())),
    (must("exchange", Kind::Small, "Number within the connection"), |r| count(r.id.into())),
    (SERVER, |r| Value::Text(&r.of.ips[1])),
    (PORT, |r| count(r.of.ends[1].port.into())),
    (may("request_ns", Kind::Duration, "To the last byte of the request before the response"), |r| {
        r.request.map(|t| t.0).into()
    }),
    (may("first_byte_ns", Kind::Duration, "To the first byte of the response"), |r| {
        r.first_byte.map(|t| t.0).into()
    }),
    (may("with_setup_ns", Kind::Duration, "The first exchange of a connection, with its setup"), |r| {
        r.with_setup.map(|t| t.0).into()
    }),
    (must("request_bytes", Kind::Number, "New payload of the client"), |r| count(r.bytes[0])),
    (must("response_bytes", Kind::Number, "New payload of the server"), |r| count(r.bytes[1])),
    (must("turns", Kind::Small, "Turns from client to server"), |r| count(r.turns.into())),
    (must("duplex", Kind::Flag, "The directions overlapped"), |r| Value::Flag(r.duplex)),
    (must("complete", Kind::Flag, "The answer is whole"), |r| Value::Flag(r.ended == Ended::Complete)),
    (must("ended", Kind::Word, "`complete`, `rst`, `silent` or `capture_end`"), |r| {
        Value::Text(r.ended.name())
    }),
];

const SPANS: &[Get<SpanRow>] = &[
    (must("start", Kind::Time, "Start, inclusive"), |r| time(r.start)),
    (must("duration_ns", Kind::Duration, "To the end, exclusive"), |r| time(r.end - r.start)),
    (CAPTURE, |r| Value::Text(&r.of.capture)),
    (CONNECTION, |r| count(r.of.connection.into())),
    (may("exchange", Kind::Small, "Number of the exchange that it tiles; nothing in setup and gaps"), |r| {
        match r.within {
            In::Exchange(id) => count(id.into()),
            _ => Value::Nothing,
        }
    }),
    (
        must(
            "part",
            Kind::Word,
            "What it tiles: `setup`, `exchange`, `gap`, or `after` the last byte, when nobody waited",
        ),
        |r| Value::Text(r.within.name()),
    ),
    (SERVER, |r| Value::Text(&r.of.ips[1])),
    (PORT, |r| count(r.of.ends[1].port.into())),
    (must("cause", Kind::Word, "Why this time passed (docs/causes)"), |r| Value::Text(r.cause.id())),
    (CLASS, |r| Value::Text(r.cause.class().letter())),
    (OWNER, |r| Value::Text(r.cause.owner().id())),
    (may("detail", Kind::Word, "What kind of it, where that is known"), |r| r.detail.into()),
    (may("side", Kind::Word, "Who could change it: `client`, `server` or `network`"), |r| {
        r.side.map(Side::name).into()
    }),
    (must("confidence", Kind::Fraction, "How sure"), |r| Value::Fraction(r.confidence)),
    (may("alternative", Kind::Word, "What else it could be"), |r| r.alternative.map(|c| c.id()).into()),
    (must("kernel", Kind::Flag, "Seen in the kernel, not inferred from packets"), |r| {
        Value::Flag(r.source != Source::Inferred)
    }),
    (must("folded", Kind::Number, "Repeats of a pattern in this span"), |r| count(r.folded.into())),
    (must("first_frame", Kind::Place, "Lowest frame involved, as Wireshark counts"), |r| {
        count(r.frames.first())
    }),
    (must("last_frame", Kind::Place, "Highest frame involved"), |r| count(r.frames.last())),
];

fn fix(f: &Finding) -> Option<&Fix> {
    f.fixes.first()
}

const FINDINGS: &[Get<FindingRow>] = &[
    (must("start", Kind::Time, "First packet of the capture"), |r| time(r.start)),
    (CAPTURE, |r| Value::Text(&r.capture)),
    (must("cause", Kind::Word, "Which cause (docs/causes)"), |r| Value::Text(r.finding.cause.id())),
    (CLASS, |r| Value::Text(r.finding.cause.class().letter())),
    (OWNER, |r| Value::Text(r.finding.cause.owner().id())),
    (may("side", Kind::Word, "The side that holds most of its time"), |r| {
        r.finding.side.map(Side::name).into()
    }),
    (must("lost_ns", Kind::Duration, "Sum of its spans, or its cost"), |r| time(r.finding.lost)),
    (must("idle_ns", Kind::Duration, "The part of it between requests"), |r| time(r.finding.idle)),
    (must("after_ns", Kind::Duration, "The part of it after the last byte, when nobody waited"), |r| {
        time(r.finding.tail)
    }),
    (
        must(
            "share",
            Kind::Fraction,
            "Share of setup, exchanges and gaps before the last byte, over the capture",
        ),
        |r| Value::Fraction(r.finding.share as f32),
    ),
    (must("confidence", Kind::Fraction, "How sure, on average over its time"), |r| {
        Value::Fraction(r.finding.confidence as f32)
    }),
    (must("occurrences", Kind::Number, "How many spans"), |r| count(r.finding.occurrences)),
    (must("connections", Kind::Number, "How many connections show it"), |r| {
        count(r.finding.connection_count)
    }),
    (must("shortest_ns", Kind::Duration, "The shortest span"), |r| time(r.finding.range.shortest)),
    (must("longest_ns", Kind::Duration, "The longest span"), |r| time(r.finding.range.longest)),
    (may("connection", Kind::Small, "Connection of the span that shows it best"), |r| {
        Some(i64::from(r.finding.example.connection)).filter(|&id| id > 0).into()
    }),
    (may("exchange", Kind::Small, "Its exchange"), |r| {
        Some(i64::from(r.finding.example.exchange)).filter(|&id| id > 0).into()
    }),
    (must("why", Kind::Text, "Sentences with the figures"), |r| Value::Text(&r.why)),
    (may("fix", Kind::Word, "The best fix (docs/schema/causes.json)"), |r| {
        fix(&r.finding).map(|f| f.fix.info().id).into()
    }),
    (may("fix_place", Kind::Word, "Where it is made: `client`, `server`, `host` or `path`"), |r| {
        fix(&r.finding).map(|f| f.place).into()
    }),
    (may("saves_ns", Kind::Duration, "What it saves at most"), |r| {
        fix(&r.finding).and_then(|f| f.saves).map(|t| t.0).into()
    }),
];

/// The columns of a table of captures.
pub(crate) fn fields(table: Table) -> Vec<Field> {
    match table {
        Table::Connections => CONNECTIONS.iter().map(|f| f.0).collect(),
        Table::Exchanges => EXCHANGES.iter().map(|f| f.0).collect(),
        Table::Spans => SPANS.iter().map(|f| f.0).collect(),
        Table::Findings => FINDINGS.iter().map(|f| f.0).collect(),
        _ => Vec::new(),
    }
}

impl Group for Rows {
    fn tables(&self) -> &'static [Table] {
        &Table::ALL
    }

    fn sort(&mut self) {
        Rows::sort(self);
    }

    fn starts(&self, table: Table) -> Vec<Nanos> {
        match table {
            Table::Connections => self.connections.iter().map(|r| r.start).collect(),
            Table::Exchanges => self.exchanges.iter().map(|r| r.start).collect(),
            Table::Spans => self.spans.iter().map(|r| r.start).collect(),
            Table::Findings => self.findings.iter().map(|r| r.start).collect(),
            _ => Vec::new(),
        }
    }

    fn columns(&self, table: Table, from: usize, to: usize) -> Vec<Column> {
        match table {
            Table::Connections => columns(CONNECTIONS, self.connections.get(from..to)),
            Table::Exchanges => columns(EXCHANGES, self.exchanges.get(from..to)),
            Table::Spans => columns(SPANS, self.spans.get(from..to)),
            Table::Findings => columns(FINDINGS, self.findings.get(from..to)),
            _ => Vec::new(),
        }
    }
}
