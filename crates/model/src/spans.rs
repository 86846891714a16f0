//! From a run to stretches of time with one cause each, as they pass one end: the same words and rules as the analysis
//! has (docs/rules.md), but known instead of inferred. What held a packet back was written on it when it left.

use crate::packet::Passage;
use crate::scenario::Scenario;
use crate::sim::Outcome;
use tcpwhy_base::{Cause, Class, Nanos, Side, Turn};

/// A stretch of time with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// From.
    pub start: Nanos,
    /// To.
    pub end: Nanos,
    /// Why.
    pub cause: Cause,
    /// Which side waited or could change it.
    pub side: Option<Side>,
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Its turn of the connection, from 0.
    pub turn: u32,
    /// It belongs to the setup (a TLS handshake).
    pub setup: bool,
    /// First byte at this end.
    pub start: Nanos,
    /// Last byte at this end.
    pub end: Nanos,
    /// Tile `start..end`.
    pub spans: Vec<Span>,
}

/// One connection, seen at one end.
#[derive(Clone, Debug)]
pub struct Story {
    /// From the first SYN to the client's first ACK.
    pub setup: Vec<Span>,
    /// In order.
    pub exchanges: Vec<Exchange>,
}

impl Story {
    /// Time by cause over setup and exchanges, most first.
    pub fn budget(&self) -> Vec<(Cause, Option<Side>, Nanos)> {
        let mut sums: Vec<(Cause, Option<Side>, Nanos)> = Vec::new();
        for s in self.setup.iter().chain(self.exchanges.iter().flat_map(|x| &x.spans)) {
            add(&mut sums, s.cause, s.side, s.end - s.start);
        }
        sums.sort_by(|a, b| b.2.cmp(&a.2).then(a.0.cmp(&b.0)));
        sums
    }
}

fn add(sums: &mut Vec<(Cause, Option<Side>, Nanos)>, cause: Cause, side: Option<Side>, time: Nanos) {
    match sums.iter_mut().find(|s| s.0 == cause && s.1 == side) {
        Some(s) => s.2 += time,
        None => sums.push((cause, side, time)),
    }
}

/// A packet as it passes the end where we look.
struct Seen<'a> {
    at: Nanos,
    own: bool,
    /// Its place among all.
    nth: usize,
    p: &'a Passage,
}

/// The connections of a run as seen at `end` (0 the client, 1 the server).
pub fn stories(scenario: &Scenario, outcome: &Outcome, end: u8) -> Vec<Story> {
    let mut counts: Vec<[usize; 2]> = vec![[0, 0]; outcome.connections.len()];
    for p in &outcome.passages {
        if let Some(counts) = counts.get_mut(p.packet.conn as usize) {
            counts[usize::from(p.packet.from == end)] += 1;
        }
    }
    // Its own list takes those of the other side too.
    let room = |[others, own]: [usize; 2]| [others, others + own].map(Vec::with_capacity);
    let mut seen: Vec<[Vec<Seen<'_>>; 2]> = counts.into_iter().map(room).collect();
    for (nth, p) in outcome.passages.iter().enumerate() {
        let own = p.packet.from == end;
        let at = if own { Some(p.sent) } else { p.arrived };
        if let (Some(at), Some(lists)) = (at, seen.get_mut(p.packet.conn as usize)) {
            lists[usize::from(own)].push(Seen { at, own, nth, p });
        }
    }
    let in_order = |[others, mut list]: [Vec<Seen<'_>>; 2]| {
        // Each direction is in order, or nearly: two runs, which the sort finds and joins.
        list.extend(others);
        list.sort_by_key(|s| (s.at, s.nth));
        story(scenario, &list, end)
    };
    seen.into_iter().map(in_order).collect()
}

fn side_of(n: u8) -> Side {
    if n == 0 { Side::Client } else { Side::Server }
}

fn story(scenario: &Scenario, seen: &[Seen<'_>], end: u8) -> Story {
    let setup = setup(seen);
    let w = &scenario.workload;
    let fixed = w.repeat_from.min(w.turns.len());
    // Ends of each turn in both streams.
    let mut bounds = [0_u64; 2];
    let mut ends: Vec<[u64; 2]> = Vec::new();
    for n in 0..fixed + w.requests_each() as usize {
        let Some(t) = w.turn(n) else { break };
        bounds[0] += Turn::bytes(&t.request);
        bounds[1] += Turn::bytes(&t.response);
        ends.push(bounds);
    }
    let turn_of = |p: &Passage| {
        let from = usize::from(p.packet.from);
        let last = ends.len().saturating_sub(1);
        let n = ends.partition_point(|e| e[from] <= p.packet.seq.saturating_sub(1)).min(last);
        if w.pipeline { n.min(fixed) } else { n }
    };
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut walk = Walk {
        rtt: scenario.rtt(),
        end,
        prev: None,
        acked: [0; 2],
        lost_trip: None,
        repeated: None,
        last: [None; 2],
    };
    for s in seen {
        let k = &s.p.packet;
        let from = usize::from(k.from);
        if k.has_ack {
            let about = &mut walk.acked[1 - from];
            *about = k.ack.max(*about);
        }
        if k.len == 0 || k.end() <= walk.acked[from] {
            continue;
        }
        let turn = turn_of(s.p) as u32;
        match exchanges.last_mut() {
            Some(x) if x.turn == turn => {
                let mut spans = std::mem::take(&mut x.spans);
                walk.step(s, &mut spans);
                (x.spans, x.end) = (spans, s.at);
            }
            Some(x) if x.turn > turn => {}
            _ => {
                let setup = (turn as usize) < w.tls;
                exchanges.push(Exchange { turn, setup, start: s.at, end: s.at, spans: Vec::new() });
            }
        }
        walk.last[from] = Some((s.at, s.p.sent, s.p.drained));
        walk.prev = Some((s.at, k.from, s.p.arrived));
        walk.repeated = k.cause.filter(|_| k.repeat);
    }
    for x in exchanges.iter_mut().filter(|x| x.setup) {
        for s in x.spans.iter_mut().filter(|s| s.cause == Cause::PathDelay) {
            s.cause = Cause::TlsHandshake;
        }
    }
    Story { setup, exchanges }
}

fn setup(seen: &[Seen<'_>]) -> Vec<Span> {
    let syns: Vec<Nanos> =
        seen.iter().filter(|s| s.p.packet.syn && !s.p.packet.has_ack).map(|s| s.at).collect();
    let (Some(&first), Some(&last)) = (syns.first(), syns.last()) else { return Vec::new() };
    let done = seen.iter().find(|s| s.p.packet.from == 0 && s.p.packet.has_ack && !s.p.packet.syn);
    let Some(done) = done.map(|s| s.at) else { return Vec::new() };
    let last = last.min(done);
    let mut out = Vec::new();
    push(&mut out, first, last, Cause::SynRetransmit, None);
    push(&mut out, last, done, Cause::Handshake, None);
    out
}

/// Appends a span; neighbours of one kind join.
fn push(out: &mut Vec<Span>, start: Nanos, end: Nanos, cause: Cause, side: Option<Side>) {
    if end <= start {
        return;
    }
    match out.last_mut() {
        Some(l) if l.cause == cause && l.side == side && l.end == start => l.end = end,
        _ => out.push(Span { start, end, cause, side }),
    }
}

/// What is remembered from packet to packet.
struct Walk {
    rtt: Nanos,
    end: u8,
    /// Time, direction and arrival of the packet before.
    prev: Option<(Nanos, u8, Option<Nanos>)>,
    /// What of each direction was acknowledged here.
    acked: [u64; 2],
    lost_trip: Option<Nanos>,
    /// The packet before repeated something, for this reason.
    repeated: Option<Cause>,
    /// Of each direction: when the last packet passed here, left its host and left the bottleneck.
    last: [Option<(Nanos, Nanos, Nanos)>; 2],
}

impl Walk {
    /// Labels the time since the packet before.
    fn step(&mut self, s: &Seen<'_>, out: &mut Vec<Span>) {
        let Some((since, direction, arrived)) = self.prev else { return };
        if s.at <= since {
            return;
        }
        let k = &s.p.packet;
        let side = Some(side_of(k.from));
        let turned = direction != k.from;
        let cause = k.cause.unwrap_or(Cause::SenderPause);
        if turned {
            self.turn(s, since, arrived, cause, out);
        } else if k.repeat {
            self.repeat(s, since, cause, out);
        } else if s.own {
            self.own(s, since, cause, side, out);
        } else {
            // The link gave the packet its time; before that, the sender held it.
            let waited = s.p.drained - s.p.service > s.p.sent;
            let link = if k.cause.is_none() || waited { s.p.service } else { s.p.service.min(s.at - since) };
            let middle = (s.at - link).max(since);
            let before = self.last[usize::from(k.from)].map_or(Nanos::ZERO, |l| s.p.sent - l.1);
            let held = if before > Nanos::ZERO { cause } else { Cause::Bandwidth };
            push(out, since, middle, held, if held == Cause::Bandwidth { None } else { owner(held, side) });
            push(out, middle, s.at, if link > Nanos::ZERO { Cause::Bandwidth } else { held }, None);
        }
    }

    /// The other direction begins: a trip there, what the other end did, a trip back.
    fn turn(&self, s: &Seen<'_>, since: Nanos, arrived: Option<Nanos>, cause: Cause, out: &mut Vec<Span>) {
        let side = Some(side_of(s.p.packet.from));
        if s.own {
            push(out, since, s.at, cause, owner(cause, side));
            return;
        }
        let there = arrived.filter(|&a| a > since && a <= s.p.sent);
        let think = there.map_or(Nanos::ZERO, |a| s.p.sent - a);
        let trip = (s.at - since - think).floor0();
        if let Some(loss) = self.repeated {
            // The trip of a repeat belongs to the loss.
            push(out, since, since + trip, loss, owner(loss, side));
            push(out, since + trip, s.at, cause, owner(cause, side));
            return;
        }
        // What was queued before the bottleneck crosses first, both ways.
        let own = self.last[usize::from(self.end)].map_or(Nanos::ZERO, |l| (l.2 - since).floor0()).min(trip);
        let back = (s.p.drained - s.p.sent).floor0().min(trip - own);
        let from = since + own + (trip - own - back).part(2);
        push(out, since, since + own, Cause::Bandwidth, None);
        push(out, since + own, from, Cause::PathDelay, None);
        push(out, from, from + think, cause, owner(cause, side));
        push(out, from + think, s.at - back, Cause::PathDelay, None);
        push(out, s.at - back, s.at, Cause::Bandwidth, None);
    }

    fn repeat(&mut self, s: &Seen<'_>, since: Nanos, cause: Cause, out: &mut Vec<Span>) {
        let side = Some(side_of(s.p.packet.from));
        let by_timer = matches!(cause, Cause::RetransmissionTimeout | Cause::TailLossProbe);
        // The trip that the lost data would have taken anyway.
        let first = self.lost_trip != Some(since);
        let trip = if by_timer && first { self.rtt.min(s.at - since) } else { Nanos::ZERO };
        push(out, since, since + trip, Cause::PathDelay, None);
        push(out, since + trip, s.at, cause, owner(cause, side));
        self.lost_trip = Some(s.at);
    }

    fn own(&self, s: &Seen<'_>, since: Nanos, cause: Cause, side: Option<Side>, out: &mut Vec<Span>) {
        let busy = self.last[usize::from(self.end)].map_or(since, |l| l.2).clamp(since, s.at);
        let shares =
            matches!(cause.class(), Class::Tcp) && !matches!(cause, Cause::Nagle | Cause::NagleDelayedAck);
        let middle = if shares { busy } else { since };
        push(out, since, middle, Cause::Bandwidth, None);
        push(out, middle, s.at, cause, owner(cause, side));
    }
}

/// The side that could change a cause, for what was sent by `side`.
fn owner(cause: Cause, side: Option<Side>) -> Option<Side> {
    let other = match side {
        Some(Side::Client) => Some(Side::Server),
        Some(Side::Server) => Some(Side::Client),
        _ => None,
    };
    match cause {
        Cause::ReceiveWindow | Cause::SlowReader | Cause::SillyWindow | Cause::DelayedAck => other,
        Cause::FastRecovery
        | Cause::RetransmissionTimeout
        | Cause::TailLossProbe
        | Cause::CongestionWindow
        | Cause::Bandwidth
        | Cause::PathDelay => None,
        _ => side,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use tcpwhy_base::{Step, Workload};

    fn puzzle() -> Scenario {
        let mut s = Scenario::with_path(Nanos::millis(200), Some(1_000_000_000), None, 1500);
        s.hosts.iter_mut().for_each(|h| h.nodelay = true);
        let turn = Turn {
            before: Nanos::ZERO,
            request: vec![Step::Write(16384)],
            think: Nanos::millis(100),
            response: vec![Step::Write(20480)],
        };
        s.workload = Workload::serial(turn, 1);
        s
    }

    fn has(story: &Story, cause: Cause) -> f64 {
        story.budget().iter().filter(|b| b.0 == cause).map(|b| b.2.as_ms()).sum()
    }

    #[test]
    fn the_puzzle_is_two_trips_of_slow_start_at_either_end() {
        let s = puzzle();
        let out = crate::run(&s).expect("possible");
        for end in [0, 1] {
            let story = &stories(&s, &out, end)[0];
            let x = &story.exchanges[0];
            assert!((has(story, Cause::SlowStart) - 400.0).abs() < 5.0, "{:?}", story.budget());
            assert!((has(story, Cause::ServerThink) - 100.0).abs() < 1.0, "{:?}", story.budget());
            assert!((has(story, Cause::Handshake) - 200.0).abs() < 1.0, "{:?}", story.budget());
            let mut at = x.start;
            for span in &x.spans {
                assert_eq!(span.start, at);
                at = span.end;
            }
            assert_eq!(at, x.end, "spans tile the exchange");
        }
    }
}
