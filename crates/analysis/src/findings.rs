//! Rolling spans up to findings, and the findings that are not spans.

use crate::facts::Facts;
use crate::fixes::fixes_for;
use crate::result::{Connection, Finding, Frames, Quality, Span};
use std::cmp::Reverse;
use tcpwhy_base::{Cause, Class, Endpoint, Nanos, Side};

/// Evidence kept per finding.
const EVIDENCE: usize = 6;
/// Connections named per finding.
const CONNECTIONS: usize = 20;

/// Where a span stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where {
    pub(crate) connection: u32,
    pub(crate) exchange: u32,
    pub(crate) gap: bool,
    /// After the last byte: no time that anybody waited.
    pub(crate) tail: bool,
}

/// The spans of one cause and side, summed as they come.
#[derive(Clone, Debug)]
pub(crate) struct Rollup {
    cause: Cause,
    side: Option<Side>,
    /// What of `lost` lies after the last byte.
    tail: Nanos,
    lost: Nanos,
    occurrences: u64,
    range: (Nanos, Nanos),
    example: Example,
    evidence: Vec<Frames>,
}

/// The span that shows a cause best.
#[derive(Clone, Copy, Debug)]
struct Example {
    connection: u32,
    exchange: u32,
    time: Nanos,
    frames: Frames,
    facts: Facts,
}

impl Example {
    /// An exchange tells more than a gap, a long span more than a short one; of equal ones the first.
    fn rank(&self) -> (bool, Nanos, Reverse<(u32, u64)>) {
        (self.exchange > 0, self.time, Reverse((self.connection, self.frames.first())))
    }
}

/// The sums of one connection (or of what is inherent, over all of them).
#[derive(Clone, Debug, Default)]
pub struct Rollups(Vec<Rollup>);

impl Rollups {
    /// How many causes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// No cause at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Time after the last byte.
    pub fn tail(&self) -> Nanos {
        self.0.iter().fold(Nanos::ZERO, |sum, r| sum + r.tail)
    }

    /// Gives memory back that nothing more will fill.
    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// The connection of every example by its final number.
    pub(crate) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        for r in &mut self.0 {
            r.example.connection = number(r.example.connection);
        }
    }

    /// Adds a span. TCP's causes keep some evidence of their own, the others only their longest span.
    pub(crate) fn add(&mut self, span: &Span, place: Where) {
        let time = span.duration();
        let tail = place.tail && matches!(span.cause.class(), Class::Application | Class::Unknown);
        // Time after the last byte counts, but is no wait of anybody.
        let n = if tail { 0 } else { u64::from(span.folded.max(1)) };
        let tail = if tail { time } else { Nanos::ZERO };
        let example = || Example {
            connection: place.connection,
            exchange: place.exchange,
            time,
            frames: span.frames,
            facts: span.facts,
        };
        let evidence =
            span.cause.class() == Class::Tcp || place.gap && span.cause.class() == Class::Application;
        match self.0.iter_mut().find(|r| r.cause == span.cause && r.side == span.side) {
            Some(r) => {
                r.lost += time;
                r.tail += tail;
                r.range = joined((r.occurrences, r.range), (n, (time, time)));
                r.occurrences += n;
                let example = example();
                if example.rank() > r.example.rank() {
                    r.example = example;
                }
                if evidence && r.evidence.len() < EVIDENCE {
                    r.evidence.push(span.frames);
                }
            }
            None => self.0.push(Rollup {
                cause: span.cause,
                side: span.side,
                tail,
                lost: time,
                occurrences: n,
                range: (time, time),
                example: example(),
                evidence: if evidence { vec![span.frames] } else { Vec::new() },
            }),
        }
    }

    /// Adds the sums of others.
    pub(crate) fn merge(&mut self, other: &Rollups) {
        for o in &other.0 {
            match self.0.iter_mut().find(|r| r.cause == o.cause && r.side == o.side) {
                None => self.0.push(o.clone()),
                Some(r) => {
                    r.lost += o.lost;
                    r.tail += o.tail;
                    r.range = joined((r.occurrences, r.range), (o.occurrences, o.range));
                    r.occurrences += o.occurrences;
                    let room = EVIDENCE.saturating_sub(r.evidence.len());
                    r.evidence.extend(o.evidence.iter().take(room));
                    if o.example.rank() > r.example.rank() {
                        r.example = o.example;
                    }
                }
            }
        }
    }
}

impl Connection {
    /// Setup, exchanges and the gaps before the last byte: what shares are of.
    pub fn measured(&self) -> Nanos {
        self.budget.total() + self.gap_budget.total() - self.rollups.tail()
    }
}

impl Finding {
    /// What somebody waited for: all but the time after the last byte.
    pub fn waited(&self) -> Nanos {
        self.lost - self.tail
    }
}

/// Shortest and longest of two groups of spans, each with its number; an empty one says nothing.
fn joined(a: (u64, (Nanos, Nanos)), b: (u64, (Nanos, Nanos))) -> (Nanos, Nanos) {
    match (a.0, b.0) {
        (_, 0) => a.1,
        (0, _) => b.1,
        _ => (a.1.0.min(b.1.0), a.1.1.max(b.1.1)),
    }
}

fn finding(r: &Rollup, total: f64) -> Finding {
    Finding {
        cause: r.cause,
        side: r.side,
        lost: r.lost,
        share: ((r.lost - r.tail).0 as f64 / total).min(1.0),
        tail: r.tail,
        occurrences: r.occurrences,
        range: r.range,
        connections: Vec::new(),
        connection_count: 1,
        example: (r.example.connection, r.example.exchange, r.example.frames),
        facts: r.example.facts,
        text: None,
        evidence: if r.evidence.is_empty() { vec![r.example.frames] } else { r.evidence.clone() },
        fixes: Vec::new(),
        replay: None,
    }
}

fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| b.lost.cmp(&a.lost).then(a.cause.cmp(&b.cause)).then(a.side.cmp(&b.side)));
}

/// The findings of one connection, worst first; their fixes are those of the capture's findings.
pub(crate) fn of_connection(connection: &Connection) -> Vec<Finding> {
    let total = connection.measured().0.max(1) as f64;
    let mut findings: Vec<Finding> = connection.rollups.0.iter().map(|r| finding(r, total)).collect();
    add_whole_connection_findings(connection, &mut findings, total);
    sort(&mut findings);
    findings
}

/// Whether it is worth asking: those findings need a cost among the spans.
fn may_have_whole_connection_findings(c: &Connection) -> bool {
    let costs = [Cause::ReceiveWindow, Cause::SlowReader, Cause::SlowStart, Cause::IdleRestart];
    c.quick_turns >= 10 || c.budget.0.iter().any(|b| costs.contains(&b.0))
}

fn add_whole_connection_findings(connection: &Connection, findings: &mut Vec<Finding>, total: f64) {
    let quick_turns = connection.quick_turns;
    let rtt = connection.path.rtt.unwrap_or(Nanos::ZERO);
    let longest = connection.rollups.0.iter().filter(|r| r.example.exchange > 0).max_by_key(|r| r.lost);
    let Some(e) = longest.map(|r| &r.example) else { return };
    let example = (connection.id, e.exchange, e.frames);
    let mut add = |cause: Cause, side, lost: Nanos, occurrences: u64, why: String| {
        findings.push(Finding {
            cause,
            side,
            lost,
            share: (lost.0 as f64 / total).min(1.0),
            tail: Nanos::ZERO,
            occurrences,
            range: (Nanos::ZERO, lost),
            connections: Vec::new(),
            connection_count: 1,
            example,
            facts: crate::Facts::None,
            text: Some(why.into_boxed_str()),
            evidence: vec![example.2],
            fixes: Vec::new(),
            replay: None,
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
            format!(
                "{quick_turns} requests, one after the other, each waiting a round trip of {rtt} and hardly anything else."
            ),
        );
    }
    let window_time = connection.budget.get(Cause::ReceiveWindow) + connection.budget.get(Cause::SlowReader);
    let known = !connection.quality.has(Quality::NO_WINDOW_SCALE);
    let scaled = connection.ends.iter().all(|e| e.wscale.is_some());
    let said = connection.ends.iter().any(|e| e.mss.is_some());
    // Scaling would only help a window that is at its limit without it.
    let at_limit =
        connection.ends.iter().any(|e| e.max_window.is_some_and(|w| (32_768..=65_535).contains(&w)));
    let limited = connection.budget.get(Cause::ReceiveWindow);
    if limited > Nanos::ZERO && said && !scaled && known && at_limit {
        let side = if connection.ends[0].wscale.is_none() { Side::Client } else { Side::Server };
        add(
            Cause::NoWindowScaling,
            Some(side),
            limited,
            1,
            format!(
                "The {} did not offer window scaling, so that no window exceeds 65,535 bytes.",
                side.name()
            ),
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
        add(
            Cause::SmallMss,
            Some(side),
            saved,
            1,
            format!("Segments carry at most {mss} bytes; 1,460 are usual on Ethernet."),
        );
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
            format!(
                "The {}'s window scale is {scale} (Linux chooses 7 or more by itself) and its window never exceeded {max} bytes: SO_RCVBUF or tcp_rmem was set by hand.",
                side.name()
            ),
        );
    }
}

/// The findings over these connections, worst first, with fixes. `inherent` holds the sums of what is inherent.
pub fn findings_over(connections: &[Connection], inherent: &Rollups) -> Vec<Finding> {
    let total = connections.iter().fold(Nanos::ZERO, |sum, c| sum + c.measured()).0.max(1) as f64;
    let mut all: Vec<Over> = Vec::new();
    for (place, connection) in connections.iter().enumerate() {
        for r in &connection.rollups.0 {
            add_over(
                &mut all,
                place,
                connection.id,
                || finding(r, total),
                (r.cause, r.side, r.tail, r.lost, r.occurrences, r.range),
            );
        }
        let mut special = Vec::new();
        if may_have_whole_connection_findings(connection) {
            add_whole_connection_findings(connection, &mut special, total);
        }
        for f in special {
            let key = (f.cause, f.side, f.tail, f.lost, f.occurrences, f.range);
            add_over(&mut all, place, connection.id, || f.clone(), key);
        }
    }
    let mut findings: Vec<Finding> = Vec::with_capacity(all.len());
    for mut over in all {
        over.worst.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut f = over.finding;
        f.share = (f.waited().0 as f64 / total).min(1.0);
        f.connections = over.worst.iter().take(CONNECTIONS).map(|w| connections[w.1].id).collect();
        let worst = over.worst.first().map_or(0, |w| w.1);
        f.fixes = fixes_for(f.cause, f.side, f.lost, &connections[worst], &f.facts);
        findings.push(f);
    }
    for r in &inherent.0 {
        let mut f = finding(r, total);
        if let Ok(at) = connections.binary_search_by_key(&r.example.connection, |c| c.id) {
            f.connections = vec![connections[at].id];
            f.fixes = fixes_for(f.cause, f.side, f.lost, &connections[at], &f.facts);
            f.evidence.clear();
            findings.push(f);
        }
    }
    short_connections(connections, total, &mut findings);
    sort(&mut findings);
    findings
}

/// A finding that grows over connections, and which of them lost most.
struct Over {
    finding: Finding,
    worst: Vec<(Nanos, usize)>,
    most: Nanos,
}

fn add_over(
    all: &mut Vec<Over>,
    place: usize,
    connection: u32,
    make: impl Fn() -> Finding,
    (cause, side, tail, lost, n, range): (Cause, Option<Side>, Nanos, Nanos, u64, (Nanos, Nanos)),
) {
    let Some(over) = all.iter_mut().find(|o| (o.finding.cause, o.finding.side) == (cause, side)) else {
        let mut finding = make();
        finding.example.0 = connection;
        all.push(Over { finding, worst: vec![(lost, place)], most: lost });
        return;
    };
    let a = &mut over.finding;
    let room = EVIDENCE.saturating_sub(a.evidence.len());
    a.lost += lost;
    a.tail += tail;
    a.connection_count += 1;
    a.range = joined((a.occurrences, a.range), (n, range));
    a.occurrences += n;
    if lost > over.most || room > 0 {
        let f = make();
        a.evidence.extend(f.evidence.iter().take(room));
        if lost > over.most {
            over.most = lost;
            a.example = (connection, f.example.1, f.example.2);
            a.facts = f.facts;
            a.text = f.text;
        }
    }
    if over.worst.len() < 4 * CONNECTIONS {
        over.worst.push((lost, place));
    } else if let Some(least) = over.worst.iter_mut().min_by_key(|w| w.0).filter(|w| w.0 < lost) {
        *least = (lost, place);
    }
}

/// Many connections from one client address to one server with an exchange or less each: reuse saves all setups
/// but one.
fn short_connections(connections: &[Connection], total: f64, all: &mut Vec<Finding>) {
    let mut groups: hashbrown::HashMap<(std::net::IpAddr, Endpoint), (Nanos, u64, usize)> =
        hashbrown::HashMap::new();
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
            tail: Nanos::ZERO,
            occurrences: n,
            range: (Nanos::ZERO, setup.part(n as i64)),
            connections: vec![c.id],
            connection_count: n,
            example: (c.id, 0, frames),
            facts: crate::Facts::None,
            text: Some(
                format!(
                    "{n} connections to {server} with one exchange each; their setups took {setup} together."
                )
                .into_boxed_str(),
            ),
            evidence: vec![frames],
            fixes: fixes_for(Cause::ShortConnections, Some(Side::Client), lost, c, &crate::Facts::None),
            replay: None,
        });
    }
}
