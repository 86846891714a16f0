//! A small made-up analysis for the tests: one connection with setup, two exchanges and a gap between.

use tcpwhy_analysis::*;
use tcpwhy_base::{Cause, Endpoint, FixId, Nanos, Side, Source};

/// When the made-up capture starts.
pub(crate) const START: Nanos = Nanos::secs(1_700_000_000);

fn at(ms: i64) -> Nanos {
    START + Nanos::millis(ms)
}

fn span(cause: Cause, side: Option<Side>, from: i64, to: i64, frames: Frames) -> Span {
    Span {
        cause,
        detail: None,
        side,
        start: at(from),
        end: at(to),
        frames,
        confidence: 0.95,
        alternatives: [None, None],
        facts: Facts::None,
        folded: 1,
        source: Source::Inferred,
    }
}

/// The connection.
pub(crate) fn connection() -> Connection {
    let end = |ip: [u8; 4], port| Endpoint { ip: ip.into(), port };
    let exchange = |id, from, to, spans| Exchange {
        id,
        start: at(from),
        request_end: Some(at(from)),
        response_start: Some(at(to)),
        end: at(to),
        with_setup: (id == 1).then(|| Nanos::millis(to)),
        bytes: [139, 8],
        turns: 1,
        duplex: false,
        ended: Ended::Complete,
        cut: false,
        spans,
        named: None,
    };
    let mut think = span(Cause::ServerThink, Some(Side::Server), 50, 55, Frames::new(0, 6, 8, &[]));
    think.confidence = 0.5;
    think.alternatives[0] = Some((Cause::DelayedAck, 0.4));
    let nagle = span(Cause::NagleDelayedAck, Some(Side::Client), 10, 50, Frames::new(0, 4, 6, &[4, 5, 6]));
    let slow = span(Cause::ServerThink, Some(Side::Server), 70, 90, Frames::new(0, 9, 10, &[]));
    let gap = span(Cause::ClientThink, Some(Side::Client), 55, 70, Frames::new(0, 8, 9, &[]));
    let budget = |times: &[(Cause, i64)]| {
        let mut b = Budget::default();
        times.iter().for_each(|&(c, ms)| b.add(c, Nanos::millis(ms)));
        b
    };
    Connection {
        id: 1,
        client: end([10, 0, 0, 1], 40000),
        server: end([10, 0, 0, 2], 25),
        roles_inferred: false,
        start: at(0),
        end: at(90),
        opened_by_handshake: true,
        closed: Closed::Open,
        vantage: Vantage::Client,
        protocol: Some("smtp"),
        path: Path { rtt: Some(Nanos::millis(10)), ..Path::default() },
        ends: [End { mss: Some(1460), os: Some("Linux"), ..End::default() }, End::default()],
        bytes: [278, 16],
        packets: [6, 4],
        retransmitted: [0, 0],
        quality: Quality::OFFLOAD,
        setup: Some(Setup {
            start: at(0),
            end: at(10),
            bytes: [0, 0],
            tls_trips: 0,
            spans: vec![span(Cause::Handshake, Some(Side::Network), 0, 10, Frames::new(0, 1, 3, &[1, 2, 3]))],
        }),
        exchanges: vec![exchange(1, 10, 55, vec![nagle, think]), exchange(2, 70, 90, vec![slow])],
        exchanges_omitted: Omitted::default(),
        gaps: vec![Gap { start: at(55), end: at(70), spans: vec![gap] }],
        gaps_omitted: Omitted::default(),
        budget: budget(&[(Cause::Handshake, 10), (Cause::NagleDelayedAck, 40), (Cause::ServerThink, 25)]),
        gap_budget: budget(&[(Cause::ClientThink, 15)]),
        closed_after: None,
        findings: findings(),
        tail: None,
        findings_omitted: 0,
        frames: (1, 10),
        taps: None,
    }
}

fn findings() -> Vec<Finding> {
    let finding = |cause, side, ms: i64, n, exchange, frames| Finding {
        cause,
        side: Some(side),
        lost: Nanos::millis(ms),
        share: ms as f64 / 90.0,
        share_of_requests: ms as f64 / 75.0,
        tail: Nanos::ZERO,
        idle: Nanos::ZERO,
        counted_elsewhere: Nanos::ZERO,
        confidence: 0.95,
        unsure: Nanos::ZERO,
        occurrences: n,
        range: Extremes { shortest: Nanos::millis(5), longest: Nanos::millis(ms) },
        connections: vec![1],
        connection_count: 1,
        example: Example { connection: 1, exchange, frames, start: at(0), end: at(40) },
        facts: tcpwhy_analysis::Facts::None,
        text: Some("A sentence with figures.".into()),
        evidence: vec![frames],
        names: Vec::new(),
        more_names: false,
        fixes: Vec::new(),
        refuted: Vec::new(),
        replay: None,
    };
    let mut nagle = finding(Cause::NagleDelayedAck, Side::Client, 40, 1, 1, Frames::new(0, 4, 6, &[4, 5, 6]));
    nagle.fixes.push(Fix {
        fix: FixId::Nodelay,
        place: "client",
        how: vec!["setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)".into()],
        parameters: vec![("port", Parameter::Number(25)), ("option", Parameter::Text("TCP_NODELAY".into()))],
        guess: None,
        saves: Some(Nanos::millis(40)),
        predicted: None,
        replayed: false,
    });
    vec![nagle, finding(Cause::ServerThink, Side::Server, 25, 2, 2, Frames::new(0, 9, 10, &[]))]
}

/// The server of the connection, with so much time.
pub(crate) fn servers(budget: &Budget) -> Vec<Server> {
    let c = connection();
    let mut times = Distribution::default();
    c.exchanges
        .iter()
        .for_each(|x| times.add(x.end - x.start, x.spans.iter().map(|s| (s.cause, s.duration()))));
    vec![Server {
        server: c.server,
        connections: 1,
        refused: 0,
        budget: budget.clone(),
        idle: c.idle(),
        times,
        range: Some((at(0), at(90))),
        at_once: false,
        asks: Vec::new(),
        within: None,
    }]
}

/// The whole analysis.
pub(crate) fn analysis() -> Analysis {
    let c = connection();
    let totals = Totals {
        segments: 10,
        connections: 1,
        budget: c.budget.clone(),
        gap_budget: c.gap_budget.clone(),
        exchanges: 2,
        measured: c.measured(),
        servers: servers(&c.budget),
        ..Totals::default()
    };
    let findings = c.findings.clone();
    Analysis { connections: vec![c], findings, totals, ..Analysis::default() }
}

/// The input that it was made from.
pub(crate) fn capture() -> crate::Capture {
    crate::Capture {
        files: vec!["smtp.pcap".into()],
        frames_before: vec![0],
        packets: 12,
        tcp_packets: 10,
        span: Some((START, at(95))),
        connections: 1,
        encapsulations: vec![("VLAN", 3)],
        partial: false,
        warnings: vec![crate::Warning { code: "test", text: "a sentence".into(), count: 2 }],
    }
}
