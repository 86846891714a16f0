//! A small made-up analysis for the tests: one connection with setup, two exchanges and a gap between.

use tcpwhy_analysis::*;
use tcpwhy_base::{Cause, Endpoint, FixId, Nanos, Side};

/// When the made-up capture starts.
pub(crate) const START: Nanos = Nanos::secs(1_700_000_000);

fn at(ms: i64) -> Nanos {
    START + Nanos::millis(ms)
}

fn span(cause: Cause, side: Option<Side>, from: i64, to: i64, frames: Frames) -> Span {
    let mut span = Span::new(cause, side, at(from), at(to), frames);
    span.confidence = 0.95;
    span
}

/// The connection.
pub(crate) fn connection() -> Connection {
    let end = |ip: [u8; 4], port| Endpoint { ip: ip.into(), port };
    let exchange = |id, from, to, spans| {
        let mut x = Exchange::new(id, at(from), at(to), spans);
        (x.request_end, x.response_start) = (Some(at(from)), Some(at(to)));
        x.with_setup = (id == 1).then(|| Nanos::millis(to));
        x.bytes = [139, 8];
        x
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
    let handshake = span(Cause::Handshake, Some(Side::Network), 0, 10, Frames::new(0, 1, 3, &[1, 2, 3]));
    let mut c = Connection::new(1, [end([10, 0, 0, 1], 40000), end([10, 0, 0, 2], 25)], at(0), at(90));
    c.opened_by_handshake = true;
    c.vantage = Vantage::Client;
    c.protocol = Some("smtp");
    c.path.rtt = Some(Nanos::millis(10));
    (c.ends[0].mss, c.ends[0].os) = (Some(1460), Some("Linux"));
    (c.bytes, c.packets, c.frames) = ([278, 16], [6, 4], (1, 10));
    c.quality = Quality::OFFLOAD;
    c.setup = Some(Setup::new(at(0), at(10), vec![handshake]));
    c.exchanges = vec![exchange(1, 10, 55, vec![nagle, think]), exchange(2, 70, 90, vec![slow])];
    c.gaps = vec![Gap::new(at(55), at(70), vec![gap])];
    c.budget = budget(&[(Cause::Handshake, 10), (Cause::NagleDelayedAck, 40), (Cause::ServerThink, 25)]);
    c.gap_budget = budget(&[(Cause::ClientThink, 15)]);
    c.findings = findings();
    c
}

fn findings() -> Vec<Finding> {
    let finding = |cause, side, ms: i64, n, exchange, frames| {
        let example = Example::new(1, exchange, frames, at(0), at(40));
        let mut f = Finding::new(cause, Some(side), Nanos::millis(ms), example);
        (f.share, f.share_of_requests) = (ms as f64 / 90.0, ms as f64 / 75.0);
        (f.confidence, f.occurrences) = (0.95, n);
        f.range.shortest = Nanos::millis(5);
        f.text = Some("A sentence with figures.".into());
        f.evidence = vec![frames];
        f
    };
    let mut nagle = finding(Cause::NagleDelayedAck, Side::Client, 40, 1, 1, Frames::new(0, 4, 6, &[4, 5, 6]));
    let mut fix = Fix::new(FixId::Nodelay, "client");
    fix.how = vec!["setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)".into()];
    fix.parameters = vec![("port", Parameter::Number(25)), ("option", Parameter::Text("TCP_NODELAY".into()))];
    fix.saves = Some(Nanos::millis(40));
    nagle.fixes.push(fix);
    vec![nagle, finding(Cause::ServerThink, Side::Server, 25, 2, 2, Frames::new(0, 9, 10, &[]))]
}

/// The server of the connection, with so much time.
pub(crate) fn servers(budget: &Budget) -> Vec<Server> {
    let c = connection();
    let mut times = Distribution::default();
    c.exchanges
        .iter()
        .for_each(|x| times.add(x.end - x.start, x.spans.iter().map(|s| (s.cause, s.duration()))));
    let mut server = Server::new(c.server, budget.clone(), times);
    server.idle = c.idle();
    server.range = Some((at(0), at(90)));
    vec![server]
}

/// The whole analysis.
pub(crate) fn analysis() -> Analysis {
    let c = connection();
    let mut totals = Totals::default();
    (totals.segments, totals.connections, totals.exchanges) = (10, 1, 2);
    (totals.budget, totals.gap_budget) = (c.budget.clone(), c.gap_budget.clone());
    totals.measured = c.measured();
    totals.add_connection(&c);
    totals.servers = servers(&c.budget);
    let findings = c.findings.clone();
    Analysis { connections: vec![Box::new(c)], findings, totals, ..Analysis::default() }
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
        of_command: false,
        warnings: vec![crate::Warning { code: "test", text: "a sentence".into(), count: 2 }],
    }
}
