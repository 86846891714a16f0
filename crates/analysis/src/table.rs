//! Finds the connection of each segment, ends connections, and keeps the detail that was asked for.

use crate::conn::Conn;
use crate::findings::{self, Basis, Finished};
use crate::output::Output;
use crate::parts::leave_out;
use crate::result::{Connection, Finding, Totals};
use crate::stream::Stream;
use crate::sums::findings_over;
use crate::window::Window;
use crate::{Analysis, Bases, Config};
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::net::IpAddr;
use tcpwhy_base::{Class, Endpoint, Nanos, Observation, Segment};

/// A closed connection is kept this long after its last packet, for late ones: twice the maximum segment lifetime
/// (RFC 9293, 3.4.2).
const LINGER: Nanos = Nanos::secs(240);
/// No more closed connections than this are kept for it, the oldest go first.
const MAX_LINGERING: usize = 16_384;

/// Segments whose connections are fetched at once.
const AHEAD: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct KeyV4([u32; 2], [u16; 2], u32);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct KeyV6(Endpoint, Endpoint, u32);

/// Takes segments in the order of the capture; gives the analysis at the end.
#[derive(Debug)]
pub struct Analyzer {
    v4: HashMap<KeyV4, u32>,
    v6: HashMap<KeyV6, u32>,
    /// The last connection of a 4-tuple whatever its link, once there are VLANs or tunnels at all.
    links: HashMap<(Endpoint, Endpoint), u32>,
    live: Vec<Option<Box<Conn>>>,
    free: Vec<u32>,
    /// Closed connections in the order of closing, with when they may go.
    closed: VecDeque<(Nanos, u32, u32)>,
    done: Vec<Finished>,
    kept: Output,
    totals: Totals,
    next_id: u32,
    /// A closed connection is kept this long.
    linger: Nanos,
    /// Connections leave as they end.
    stream: Option<Stream>,
}

impl std::fmt::Debug for KeyV4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?} {}", self.0, self.1, self.2)
    }
}

impl std::fmt::Debug for KeyV6 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.0, self.1, self.2)
    }
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    pub fn new(config: Config) -> Analyzer {
        Analyzer {
            v4: HashMap::new(),
            v6: HashMap::new(),
            links: HashMap::new(),
            live: Vec::new(),
            free: Vec::new(),
            closed: VecDeque::new(),
            done: Vec::new(),
            kept: Output::new(config.detail),
            totals: Totals::default(),
            next_id: 1,
            linger: LINGER,
            stream: None,
        }
    }

    /// An analyzer from which connections are taken as they end ([`Analyzer::ended`]), so that memory grows with those
    /// that live only. Detail is kept of each connection: its longest exchanges, not those of the capture.
    pub fn streaming(config: Config) -> Analyzer {
        let kept = Output::by_connection(config.detail);
        Analyzer { kept, stream: Some(Stream::new()), ..Analyzer::new(config) }
    }

    /// The same, looking at a stretch of time only: everything is followed, so that exchanges keep their numbers and what came
    /// before is known, but only what lies within is accounted for. Parts on its edge are cut there.
    #[must_use]
    pub fn within(mut self, window: Option<Window>) -> Analyzer {
        self.kept.window = window;
        self
    }

    /// The same, where somebody waits for connections that have closed: they go this long after their last packet. One that comes
    /// later is a connection of its own.
    #[must_use]
    pub fn lingering(mut self, linger: Nanos) -> Analyzer {
        self.linger = linger.min(LINGER);
        self
    }

    /// The connections that have ended since this was last asked, in the order in which they ended.
    pub fn ended(&mut self) -> impl Iterator<Item = Box<Connection>> {
        self.done.drain(..).map(|ended| ended.connection)
    }

    /// Ends the connections that still live, for [`Analyzer::finish_all`].
    pub fn end_live(&mut self) {
        for slot in 0..self.live.len() {
            self.end(slot as u32, true);
        }
    }

    /// Ends the connections that still live; they are then the last that [`Analyzer::ended`] gives, in the order of
    /// their first packets.
    pub fn end_all(&mut self) {
        let mut live: Vec<(u32, u32)> = Vec::new();
        for (slot, conn) in self.live.iter().enumerate() {
            live.extend(conn.as_ref().map(|c| (c.id(), slot as u32)));
        }
        live.sort_unstable();
        live.into_iter().for_each(|(_, slot)| self.end(slot, true));
    }

    /// The totals, and the findings over all connections that have ended.
    pub fn finish_stream(self) -> (Vec<Finding>, Totals) {
        let Analyzer { stream, kept, mut totals, .. } = self;
        let findings = stream.map(|s| s.findings(&kept.inherent, &mut totals)).unwrap_or_default();
        (findings, totals)
    }

    /// Takes whatever was seen, in the order of time. What a kernel says of a connection is kept for the segments that
    /// follow; before the first packet of that connection it is not.
    pub fn observe(&mut self, observation: Observation<'_>) {
        match observation {
            Observation::Segment(segment) => self.push(segment),
            Observation::Socket(event) => {
                let either = Segment { src: event.local, dst: event.remote, ..Segment::EMPTY };
                let slot = self.find(&either);
                if let Some(conn) = slot.and_then(|slot| self.live[slot as usize].as_mut()) {
                    conn.hear(event);
                }
            }
        }
    }

    /// Takes one segment: the same as [`Analyzer::observe`] of it.
    pub fn push(&mut self, segment: &Segment) {
        let hint = self.find(segment);
        self.push_to(segment, hint);
    }

    /// Takes segments; the same as one [`Analyzer::push`] after the other, but faster: the state of a connection is
    /// seldom in a cache, and that of several can be fetched at once.
    pub fn push_all(&mut self, segments: &[Segment]) {
        for group in segments.chunks(AHEAD) {
            let mut hints = [None; AHEAD];
            let mut before: Option<(&Segment, Option<u32>)> = None;
            let mut touched = 0u64;
            for (hint, segment) in hints.iter_mut().zip(group) {
                // In a bulk transfer one segment follows the other.
                if let Some((_, known)) = before.filter(|(other, _)| same_connection(other, segment)) {
                    *hint = known;
                    continue;
                }
                *hint = self.find(segment);
                before = Some((segment, *hint));
                let conn = hint.and_then(|slot| self.live[slot as usize].as_ref());
                touched = touched.wrapping_add(conn.map_or(0, |conn| conn.touch()));
            }
            std::hint::black_box(touched);
            for (hint, segment) in hints.iter().zip(group) {
                // An earlier segment of the group may have begun or ended a connection.
                let valid =
                    hint.filter(|&s| self.live[s as usize].as_ref().is_some_and(|c| c.is_of(segment)));
                let slot = if valid.is_some() { valid } else { self.find(segment) };
                self.push_to(segment, slot);
            }
        }
    }

    fn push_to(&mut self, segment: &Segment, known: Option<u32>) {
        self.totals.segments += 1;
        let span = self.totals.span.get_or_insert((segment.time, segment.time));
        *span = (span.0.min(segment.time), span.1.max(segment.time));
        let slot = match known {
            Some(slot)
                if self.live[slot as usize].as_ref().is_some_and(|c| c.goes_on_with(segment, LINGER)) =>
            {
                slot
            }
            Some(slot) => {
                self.end(slot, false);
                self.begin(segment)
            }
            None => match self.other_direction(segment) {
                Some(slot) => slot,
                None => self.begin(segment),
            },
        };
        let Some(conn) = self.live[slot as usize].as_mut() else { return };
        let lingered = conn.lingers();
        conn.push(segment, &mut self.kept);
        if !lingered && conn.lingers() {
            self.closed.push_back((conn.now() + self.linger, slot, conn.id()));
        }
        if let Some(&(when, _, _)) = self.closed.front()
            && (segment.time > when || self.closed.len() > MAX_LINGERING)
        {
            self.let_go(segment.time);
        }
    }

    fn find(&self, segment: &Segment) -> Option<u32> {
        match (segment.src.ip, segment.dst.ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                self.v4.get(&key_v4(segment, a.to_bits(), b.to_bits())).copied()
            }
            _ => self.v6.get(&key_v6(segment.src, segment.dst, segment.link)).copied(),
        }
    }

    /// The connection whose other direction this is, where the two travel under different VLAN tags or tunnels.
    fn other_direction(&mut self, segment: &Segment) -> Option<u32> {
        let (a, b) = (segment.src, segment.dst);
        let known = self.links.get(&if a <= b { (a, b) } else { (b, a) }).copied();
        // Connections without tags are not in that list before the first tagged packet.
        let bare = || self.find(&Segment { link: 0, ..*segment });
        let slot = if segment.link == 0 { known? } else { known.or_else(bare)? };
        let conn = self.live[slot as usize].as_mut()?;
        let (link, other) = conn.links();
        if link == segment.link || other.is_some() || !conn.is_answered_by(segment) {
            return None;
        }
        conn.also_on(segment.link);
        self.index(segment, slot);
        Some(slot)
    }

    fn begin(&mut self, segment: &Segment) -> u32 {
        let conn = Box::new(Conn::new(self.next_id, segment));
        self.next_id += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.live[slot as usize] = Some(conn);
                slot
            }
            None => {
                self.live.push(Some(conn));
                (self.live.len() - 1) as u32
            }
        };
        self.index(segment, slot);
        if segment.link != 0 || !self.links.is_empty() {
            let (a, b) = (segment.src, segment.dst);
            self.links.insert(if a <= b { (a, b) } else { (b, a) }, slot);
        }
        slot
    }

    fn index(&mut self, segment: &Segment, slot: u32) {
        match (segment.src.ip, segment.dst.ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                self.v4.insert(key_v4(segment, a.to_bits(), b.to_bits()), slot);
            }
            _ => {
                self.v6.insert(key_v6(segment.src, segment.dst, segment.link), slot);
            }
        }
    }

    /// Ends the connections whose time for late packets is over.
    fn let_go(&mut self, now: Nanos) {
        while let Some(&(when, slot, id)) = self.closed.front() {
            let crowded = self.closed.len() > MAX_LINGERING;
            if when >= now && !crowded {
                break;
            }
            self.closed.pop_front();
            let Some(conn) = self.live[slot as usize].as_ref().filter(|c| c.id() == id) else { continue };
            if conn.now() + self.linger > now && !crowded {
                self.closed.push_back((conn.now() + self.linger, slot, id));
                continue;
            }
            let [a, b] = conn.ends().into_array();
            let (link, other) = conn.links();
            self.forget(a, b, link);
            if let Some(other) = other {
                self.forget(a, b, other);
            }
            self.end(slot, false);
        }
    }

    fn forget(&mut self, a: Endpoint, b: Endpoint, link: u32) {
        if !self.links.is_empty() {
            self.links.remove(&if a <= b { (a, b) } else { (b, a) });
        }
        let probe = Segment { src: a, dst: b, link, ..Segment::EMPTY };
        match (a.ip, b.ip) {
            (IpAddr::V4(x), IpAddr::V4(y)) => {
                self.v4.remove(&key_v4(&probe, x.to_bits(), y.to_bits()));
            }
            _ => {
                self.v6.remove(&key_v6(a, b, link));
            }
        }
    }

    fn end(&mut self, slot: u32, capture_end: bool) {
        let Some(conn) = self.live[slot as usize].take() else { return };
        self.free.push(slot);
        let mut ended = conn.finish(capture_end, &mut self.kept);
        let connection = &mut ended.connection;
        if let Some(window) = self.kept.window {
            let part = window.part(connection.start, connection.end);
            ended.basis.outside = part.is_none();
            ended.basis.cut = part != Some((connection.start, connection.end));
            (connection.start, connection.end) = part.unwrap_or((connection.start, connection.end));
        }
        if ended.basis.outside && self.stream.is_some() {
            return;
        }
        self.totals.add_times(connection);
        self.totals.duplicates += connection.ends.iter().map(|e| u64::from(e.duplicates)).sum::<u64>();
        if let Some(stream) = &mut self.stream {
            self.kept.give_own(connection);
            leave_out(connection);
            find(connection, &ended.basis);
            self.totals.connections += 1;
            self.totals.add_quality(connection.quality);
            stream.add(&ended, &self.kept.inherent);
        }
        self.done.push(ended);
    }

    /// The answer.
    pub fn finish(self) -> Analysis {
        Analyzer::finish_all(vec![self])
    }

    /// Which of `n` analyzers takes the segments of this connection, where several work side by side.
    pub fn share(segment: &Segment, n: usize) -> usize {
        let end = |e: &Endpoint| {
            let bits = match e.ip {
                IpAddr::V4(ip) => u64::from(ip.to_bits()),
                IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64 ^ ip.to_bits() as u64,
            };
            (bits << 16 | u64::from(e.port)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        // Both directions to the same one: the sum does not know which end is which.
        let mixed = end(&segment.src).wrapping_add(end(&segment.dst)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        ((mixed >> 32) as usize) % n.max(1)
    }

    /// The answer of several that each ate the segments [`Analyzer::share`] gave them: the same as if one had eaten
    /// all.
    pub fn finish_all(analyzers: Vec<Analyzer>) -> Analysis {
        let mut shards: Vec<Analyzer> = analyzers;
        shards.iter_mut().for_each(Analyzer::end_live);
        // Connections are numbered by their first packets.
        let mut order: Vec<(u64, Nanos, usize, u32, usize)> = Vec::new();
        for (i, shard) in shards.iter().enumerate() {
            let done = shard.done.iter().map(|ended| &ended.connection).enumerate();
            order.extend(done.map(|(at, c)| (c.frames.0, c.start, i, c.id, at)));
        }
        order.sort_unstable();
        let mut numbers: Vec<Vec<u32>> = shards.iter().map(|s| vec![0; s.next_id as usize]).collect();
        for (n, &(_, _, shard, id, _)) in order.iter().enumerate() {
            numbers[shard][id as usize] = n as u32 + 1;
        }
        let mut totals = Totals::default();
        let mut kept: Option<Output> = None;
        let mut parts: Vec<Vec<Option<Finished>>> = Vec::with_capacity(shards.len());
        for (shard, numbers) in shards.into_iter().zip(&numbers) {
            let number = |id: u32| numbers.get(id as usize).copied().unwrap_or(id);
            let Analyzer { done, kept: part_kept, totals: t, .. } = shard;
            parts.push(done.into_iter().map(Some).collect());
            totals.segments += t.segments;
            totals.duplicates += t.duplicates;
            totals.exchanges += t.exchanges;
            totals.measured += t.measured;
            totals.budget.add_all(&t.budget);
            totals.gap_budget.add_all(&t.gap_budget);
            totals.tail.add_all(&t.tail);
            totals.span = match (totals.span, t.span) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                (a, b) => a.or(b),
            };
            let empty = part_kept.like();
            kept.get_or_insert(empty).absorb(part_kept, number);
        }
        let mut done: Vec<Connection> = Vec::with_capacity(order.len());
        let mut bases: Vec<Basis> = Vec::with_capacity(order.len());
        for (n, &(_, _, shard, _, at)) in order.iter().enumerate() {
            let Some(Finished { mut connection, mut basis }) = parts[shard][at].take() else { continue };
            connection.id = n as u32 + 1;
            basis.rollups.renumber(|id| numbers[shard].get(id as usize).copied().unwrap_or(id));
            done.push(*connection);
            bases.push(basis);
        }
        let inherent = kept.map(|k| k.give(&mut done)).unwrap_or_default();
        let mut each = bases.iter();
        done.retain(|_| each.next().is_some_and(|basis| !basis.outside));
        bases.retain(|basis| !basis.outside);
        totals.connections = done.len() as u64;
        done.iter().for_each(|connection| totals.add_quality(connection.quality));
        for connection in &mut done {
            leave_out(connection);
        }
        let findings = findings_over(&done, &bases, &inherent, &mut totals);
        fill_worst(&mut done, &bases);
        Analysis { connections: done, findings, totals, basis: Bases(bases) }
    }
}

/// So many connections have findings of their own: those that lost most to TCP.
const WITH_FINDINGS: usize = 1_000;

fn fill_worst(connections: &mut [Connection], bases: &[Basis]) {
    let lost = |c: &Connection| c.budget.of_class(Class::Tcp);
    let mut order: Vec<(Nanos, usize)> = connections.iter().enumerate().map(|(i, c)| (lost(c), i)).collect();
    if order.len() > WITH_FINDINGS {
        order.select_nth_unstable_by_key(WITH_FINDINGS, |&(lost, i)| (std::cmp::Reverse(lost), i));
        order.truncate(WITH_FINDINGS);
    }
    for (_, i) in order {
        find(&mut connections[i], &bases[i]);
    }
}

fn find(connection: &mut Connection, basis: &Basis) {
    connection.findings = findings::of_connection(connection, basis);
    connection.findings_omitted = 0;
}

/// Addresses, ports and link are the same, whichever way it goes.
fn same_connection(a: &Segment, b: &Segment) -> bool {
    a.link == b.link && (a.src == b.src && a.dst == b.dst || a.src == b.dst && a.dst == b.src)
}

fn key_v4(segment: &Segment, a: u32, b: u32) -> KeyV4 {
    let (p, q) = (segment.src.port, segment.dst.port);
    if (a, p) <= (b, q) { KeyV4([a, b], [p, q], segment.link) } else { KeyV4([b, a], [q, p], segment.link) }
}

fn key_v6(a: Endpoint, b: Endpoint, link: u32) -> KeyV6 {
    if a <= b { KeyV6(a, b, link) } else { KeyV6(b, a, link) }
}
