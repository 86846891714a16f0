//! Rolling spans up to findings, and the findings that are not spans.

use crate::facts::Facts;
use crate::fixes::fixes_for;
use crate::result::{Connection, Finding, Frames, Span, Totals};
use tcpwhy_base::{Cause, Class, Endpoint, Nanos, Side};

/// Evidence kept per finding.
const EVIDENCE: usize = 6;
/// Connections named per finding.
const CONNECTIONS: usize = 20;

/// Where a span stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where {
    pub(crate) exchange: u32,
    pub(crate) gap: bool,
}

/// The spans of one cause and side of a connection, summed as they come.
#[derive(Clone, Debug)]
pub(crate) struct Rollup {
    cause: Cause,
    side: Option<Side>,
    lost: Nanos,
    in_gaps: Nanos,
    occurrences: u64,
    range: (Nanos, Nanos),
    example: Example,
    evidence: Vec<Frames>,
}

/// The span that shows a cause best.
#[derive(Clone, Copy, Debug)]
struct Example {
    exchange: u32,
    time: Nanos,
    frames: Frames,
    facts: Facts,
}

impl Rollup {
    pub(crate) fn add(rollups: &mut Vec<Rollup>, span: &Span, place: Where) {
        let time = span.duration();
        // The close after the last exchange is the client's time, but no pause of it.
        let closing = span.detail == Some(crate::parts::CLOSE);
        let n = if closing { 0 } else { u64::from(span.folded.max(1)) };
        let in_gap = if place.gap { time } else { Nanos::ZERO };
        match rollups.iter_mut().find(|r| r.cause == span.cause && r.side == span.side) {
            Some(r) => {
                r.lost += time;
                r.in_gaps += in_gap;
                r.occurrences += n;
                if !closing {
                    r.range = (r.range.0.min(time), r.range.1.max(time));
                }
                // An exchange tells more than a gap.
                if (place.exchange > 0, time) > (r.example.exchange > 0, r.example.time) {
                    r.example = Example { exchange: place.exchange, time, frames: span.frames, facts: span.facts };
                }
                if r.evidence.len() < EVIDENCE && r.cause.class() != Class::Inherent {
                    r.evidence.push(span.frames);
                }
            }
            None => rollups.push(Rollup {
                cause: span.cause,
                side: span.side,
                lost: time,
                in_gaps: in_gap,
                occurrences: n,
                range: (time, time),
                example: Example { exchange: place.exchange, time, frames: span.frames, facts: span.facts },
                evidence: if span.cause.class() == Class::Inherent { Vec::new() } else { vec![span.frames] },
            }),
        }
    }
}

/// Setup, exchanges and the gaps before the last byte: what shares are of.
fn whole(connection: &Connection) -> Nanos {
    connection.budget.total() + connection.gap_budget.total()
}

/// Fills `connection.findings`.
pub(crate) fn of_connection(connection: &mut Connection, rollups: &[Rollup], quick_turns: u32) {
    let total = whole(connection).0.max(1) as f64;
    let mut findings: Vec<Finding> = Vec::new();
    for r in rollups {
        let class = r.cause.class();
        if class == Class::Inherent && r.lost == Nanos::ZERO {
            continue;
        }
        findings.push(Finding {
            cause: r.cause,
            side: r.side,
            lost: r.lost,
            share: (r.lost.0 as f64 / total).min(1.0),
            occurrences: r.occurrences,
            range: r.range,
            connections: Vec::new(),
            connection_count: 1,
            example: (connection.id, r.example.exchange, r.example.frames),
            facts: r.example.facts,
            text: None,
            evidence: if class == Class::Inherent { Vec::new() } else { r.evidence.clone() },
            fixes: Vec::new(),
        });
    }
    add_whole_connection_findings(connection, &mut findings, quick_turns, total);
    findings.sort_by(|a, b| b.lost.cmp(&a.lost).then(a.cause.cmp(&b.cause)));
    connection.findings = findings;
}

fn add_whole_connection_findings(connection: &Connection, findings: &mut Vec<Finding>, quick_turns: u32, total: f64) {
    let rtt = connection.path.rtt.unwrap_or(Nanos::ZERO);
    let example = findings.iter().find(|f| f.example.1 > 0).map(|f| f.example);
    let Some(example) = example else { return };
    let mut add = |cause: Cause, side, lost: Nanos, occurrences: u64, why: String| {
        findings.push(Finding {
            cause,
            side,
            lost,
            share: (lost.0 as f64 / total).min(1.0),
            occurrences,
            range: (Nanos::ZERO, lost),
            connections: Vec::new(),
            connection_count: 1,
            example,
            facts: crate::Facts::None,
            text: Some(why.into_boxed_str()),
            evidence: vec![example.2],
            fixes: Vec::new(),
        });
    };
    // Ten round trips in series that did nothing but travel.
    if quick_turns >= 10 && rtt > Nanos::millis(1) {
        let lost = rtt.times(i64::from(quick_turns) - 1).min(connection.budget.get(Cause::PathDelay));
        add(
            Cause::Chatty,
            Some(Side::Client),
            lost,
            u64::from(quick_turns),
            format!("{quick_turns} requests, one after the other, each waiting a round trip of {rtt} and hardly anything else."),
        );
    }
    let window_time = connection.budget.get(Cause::ReceiveWindow) + connection.budget.get(Cause::SlowReader);
    let scaled = connection.ends.iter().all(|e| e.wscale.is_some());
    let said = connection.ends.iter().any(|e| e.mss.is_some());
    if window_time > Nanos::ZERO && said && !scaled && connection.opened_by_handshake {
        let side = if connection.ends[0].wscale.is_none() { Side::Client } else { Side::Server };
        add(
            Cause::NoWindowScaling,
            Some(side),
            window_time,
            1,
            format!("The {} did not offer window scaling, so that no window exceeds 65,535 bytes.", side.name()),
        );
    }
    if scaled {
        explicit_receive_buffer(connection, window_time, &mut add);
    }
    let sender = usize::from(connection.bytes[1] > connection.bytes[0]);
    let mss = connection.ends.iter().filter_map(|e| e.mss).min().unwrap_or(0);
    let held = connection.budget.get(Cause::SlowStart) + connection.budget.get(Cause::IdleRestart);
    if mss > 0 && mss < 1_220 && held > Nanos::ZERO {
        // Below what IPv6's minimum MTU allows (1280 - 60, RFC 8200 5): a tunnel or a clamp.
        let saved = Nanos((held.0 as f64 * (1.0 - f64::from(mss) / 1_460.0)) as i64);
        let side = if sender == 0 { Side::Client } else { Side::Server };
        add(Cause::SmallMss, Some(side), saved, 1, format!("Segments carry at most {mss} bytes; 1,460 are usual on Ethernet."));
    }
}

/// A receiver whose window scale is below its stack's default had its buffer set before the handshake
/// (`tcp_select_initial_window`).
fn explicit_receive_buffer(
    connection: &Connection,
    window_time: Nanos,
    add: &mut dyn FnMut(Cause, Option<Side>, Nanos, u64, String),
) {
    let receiver = usize::from(connection.bytes[0] > connection.bytes[1]);
    let end = &connection.ends[receiver];
    let small = end.os == Some("Linux") && end.wscale.is_some_and(|w| w < 7);
    if window_time > Nanos::ZERO && small {
        let side = if receiver == 0 { Side::Client } else { Side::Server };
        let scale = end.wscale.unwrap_or(0);
        let max = end.max_window.unwrap_or(0);
        add(
            Cause::ExplicitBuffer,
            Some(side),
            window_time,
            1,
            format!("The {}'s window scale is {scale} (Linux chooses 7 or more by itself) and its window never exceeded {max} bytes: SO_RCVBUF or tcp_rmem was set by hand.", side.name()),
        );
    }
}

/// Over all connections, worst first.
pub(crate) fn of_capture(connections: &[Connection], totals: &Totals) -> Vec<Finding> {
    let total = (totals.budget.total() + totals.gap_budget.total()).0.max(1) as f64;
    let mut all: Vec<Finding> = Vec::new();
    let mut index: hashbrown::HashMap<(Cause, Option<Side>), usize> = hashbrown::HashMap::new();
    let mut parts: Vec<Vec<(Nanos, u32)>> = Vec::new();
    let mut worst_of: Vec<(Nanos, usize)> = Vec::new();
    for (place, connection) in connections.iter().enumerate() {
        for f in &connection.findings {
            match index.get(&(f.cause, f.side)) {
                None => {
                    index.insert((f.cause, f.side), all.len());
                    all.push(f.clone());
                    parts.push(vec![(f.lost, connection.id)]);
                    worst_of.push((f.lost, place));
                }
                Some(&i) => {
                    let a = &mut all[i];
                    a.lost += f.lost;
                    a.occurrences += f.occurrences;
                    a.range = (a.range.0.min(f.range.0), a.range.1.max(f.range.1));
                    a.connection_count += 1;
                    if a.evidence.len() < EVIDENCE && a.cause.class() != Class::Inherent {
                        a.evidence.extend(f.evidence.iter().take(EVIDENCE - a.evidence.len()).copied());
                    }
                    if f.lost > worst_of[i].0 {
                        worst_of[i] = (f.lost, place);
                        a.example = f.example;
                        a.facts = f.facts;
                        a.text.clone_from(&f.text);
                    }
                    let list = &mut parts[i];
                    if list.len() < 4 * CONNECTIONS {
                        list.push((f.lost, connection.id));
                    } else if let Some(least) = list.iter_mut().min_by_key(|p| p.0).filter(|p| p.0 < f.lost) {
                        *least = (f.lost, connection.id);
                    }
                }
            }
        }
    }
    for ((finding, mut list), (_, worst)) in all.iter_mut().zip(parts).zip(worst_of) {
        finding.fixes = fixes_for(finding.cause, finding.side, finding.lost, &connections[worst], &finding.facts);
        list.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        list.truncate(CONNECTIONS);
        finding.connections = list.into_iter().map(|p| p.1).collect();
        finding.share = (finding.lost.0 as f64 / total).min(1.0);
    }
    short_connections(connections, total, &mut all);
    all.sort_by(|a, b| b.lost.cmp(&a.lost).then(a.cause.cmp(&b.cause)));
    all
}

/// Many connections from one client address to one server with an exchange or less each: reuse saves all setups
/// but one.
fn short_connections(connections: &[Connection], total: f64, all: &mut Vec<Finding>) {
    let mut groups: hashbrown::HashMap<(std::net::IpAddr, Endpoint), (Nanos, u64, usize)> = hashbrown::HashMap::new();
    for (i, c) in connections.iter().enumerate() {
        let Some(setup) = &c.setup else { continue };
        let exchanges = c.exchanges.len() as u64 + c.exchanges_omitted.count;
        if exchanges > 1 || c.bytes[0] == 0 {
            continue;
        }
        let g = groups.entry((c.client.ip, c.server)).or_insert((Nanos::ZERO, 0, i));
        g.0 += setup.end - setup.start;
        g.1 += 1;
    }
    let mut worst: Vec<_> = groups.into_iter().filter(|(_, g)| g.1 >= 3).collect();
    worst.sort_by(|a, b| b.1.0.cmp(&a.1.0).then(a.1.2.cmp(&b.1.2)));
    if let Some(((_, server), (setup, n, i))) = worst.into_iter().next() {
        let c = &connections[i];
        let lost = setup - setup.part(n as i64);
        let frames = Frames::new(c.file, c.frames.0, c.frames.1, &[c.frames.0]);
        all.push(Finding {
            cause: Cause::ShortConnections,
            side: Some(Side::Client),
            lost,
            share: (lost.0 as f64 / total).min(1.0),
            occurrences: n,
            range: (Nanos::ZERO, setup.part(n as i64)),
            connections: vec![c.id],
            connection_count: n,
            example: (c.id, 0, frames),
            facts: crate::Facts::None,
            text: Some(
                format!("{n} connections to {server} with one exchange each; their setups took {setup} together.")
                    .into_boxed_str(),
            ),
            evidence: vec![frames],
            fixes: fixes_for(Cause::ShortConnections, Some(Side::Client), lost, c, &crate::Facts::None),
        });
    }
}
