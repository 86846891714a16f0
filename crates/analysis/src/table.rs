//! Finds the connection of each segment, ends connections, and keeps the detail that was asked for.

use crate::conn::Conn;
use crate::output::Output;
use crate::findings;
use crate::parts::leave_out;
use crate::result::{Closed, Connection, Totals};
use crate::{Analysis, Config};
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::net::IpAddr;
use tcpwhy_base::{Endpoint, Nanos, Segment};

/// A closed connection is kept this long after its last packet, for late ones: twice the maximum segment lifetime
/// (RFC 9293, 3.4.2).
const LINGER: Nanos = Nanos::secs(240);
/// No more closed connections than this are kept for it, the oldest go first.
const MAX_LINGERING: usize = 16_384;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct KeyV4([u32; 2], [u16; 2], u32);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct KeyV6(Endpoint, Endpoint, u32);

/// Eats segments in the order of the capture; gives the analysis at the end.
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
    done: Vec<Connection>,
    kept: Output,
    totals: Totals,
    next_id: u32,
    /// The connection of the last segment: most segments follow one of their own.
    last: Option<(Segment4, u32)>,
}

/// The 4-tuple of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment4(Endpoint, Endpoint, u32);

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
            last: None,
        }
    }

    /// Eats one segment.
    pub fn push(&mut self, segment: &Segment) {
        self.totals.segments += 1;
        let span = self.totals.span.get_or_insert((segment.time, segment.time));
        *span = (span.0.min(segment.time), span.1.max(segment.time));
        if let Some(&(when, _, _)) = self.closed.front() {
            if segment.time > when || self.closed.len() > MAX_LINGERING {
                self.let_go(segment.time);
            }
        }
        let tuple = Segment4(segment.src, segment.dst, segment.link);
        let known = match self.last {
            Some((last, slot)) if last == tuple => Some(slot),
            _ => self.find(segment),
        };
        let slot = match known {
            Some(slot) if self.live[slot as usize].as_ref().is_some_and(|c| !c.is_reused_by(segment)) => slot,
            Some(slot) => {
                self.end(slot, false);
                self.begin(segment)
            }
            None => match self.other_direction(segment) {
                Some(slot) => slot,
                None => self.begin(segment),
            },
        };
        self.last = Some((tuple, slot));
        let Some(conn) = self.live[slot as usize].as_mut() else { return };
        let was_open = conn.closed == Closed::Open;
        conn.push(segment, &mut self.kept);
        if was_open && conn.closed != Closed::Open {
            self.closed.push_back((conn.now + LINGER, slot, conn.id));
        }
    }

    fn find(&self, segment: &Segment) -> Option<u32> {
        match (segment.src.ip, segment.dst.ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => self.v4.get(&key_v4(segment, a.to_bits(), b.to_bits())).copied(),
            _ => self.v6.get(&key_v6(segment.src, segment.dst, segment.link)).copied(),
        }
    }

    /// The connection whose other direction this is, where the two travel under different VLAN tags or tunnels.
    fn other_direction(&mut self, segment: &Segment) -> Option<u32> {
        let (a, b) = (segment.src, segment.dst);
        let slot = *self.links.get(&if a <= b { (a, b) } else { (b, a) })?;
        let conn = self.live[slot as usize].as_mut()?;
        if conn.link == segment.link || conn.other_link.is_some() || !conn.is_answered_by(segment) {
            return None;
        }
        conn.other_link = Some(segment.link);
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
            let Some(conn) = self.live[slot as usize].as_ref().filter(|c| c.id == id) else { continue };
            if conn.now + LINGER > now && !crowded {
                self.closed.push_back((conn.now + LINGER, slot, id));
                continue;
            }
            let (a, b) = (conn.ends[0], conn.ends[1]);
            let (link, other) = (conn.link, conn.other_link);
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
        self.last = None;
        let Some(conn) = self.live[slot as usize].take() else { return };
        self.free.push(slot);
        let connection = conn.finish(capture_end, &mut self.kept);
        self.totals.budget.add_all(&connection.budget);
        self.totals.gap_budget.add_all(&connection.gap_budget);
        self.totals.exchanges += connection.exchanges_omitted.count;
        self.totals.duplicates += connection.ends.iter().map(|e| u64::from(e.duplicates)).sum::<u64>();
        self.done.push(connection);
    }

    /// The answer.
    pub fn finish(mut self) -> Analysis {
        for slot in 0..self.live.len() {
            self.end(slot as u32, true);
        }
        let Analyzer { mut done, kept, mut totals, .. } = self;
        done.sort_unstable_by_key(|c| c.id);
        totals.connections = done.len() as u64;
        kept.give(&mut done);
        for connection in &mut done {
            leave_out(connection);
        }
        let findings = findings::of_capture(&done, &totals);
        Analysis { connections: done, findings, totals }
    }
}

fn key_v4(segment: &Segment, a: u32, b: u32) -> KeyV4 {
    let (p, q) = (segment.src.port, segment.dst.port);
    if (a, p) <= (b, q) { KeyV4([a, b], [p, q], segment.link) } else { KeyV4([b, a], [q, p], segment.link) }
}

fn key_v6(a: Endpoint, b: Endpoint, link: u32) -> KeyV6 {
    if a <= b { KeyV6(a, b, link) } else { KeyV6(b, a, link) }
}
