//! Finds the connection of each segment, counts its numbers from the first, and marks what is odd.

use crate::{Packet, marks};
use std::collections::HashMap;
use tcpwhy_analysis::{Connection, Copies};
use tcpwhy_base::{End, Endpoint, Ends, Nanos, Segment, Seq};

/// Data that fills a hole so soon after it opened was overtaken and not repeated: the least time after which Linux
/// gives up on a segment is a quarter of the round trip, and Wireshark takes 3 ms where no round trip is known.
const REORDERED: Nanos = Nanos::millis(3);
/// Holes kept for each direction; the oldest goes.
const HOLES: usize = 512;

/// The connections, and where each of them stands.
#[derive(Debug)]
pub(crate) struct Tracker {
    /// Each 4-tuple's place in `places`.
    index: HashMap<Key, usize>,
    /// Of each 4-tuple the places of its connections in `states`.
    places: Vec<Vec<usize>>,
    /// That of the packet before, which is mostly that of the next one, and its place in `places`.
    latest: Option<(Key, Option<usize>)>,
    states: Vec<State>,
}

#[derive(Debug)]
struct State {
    /// Its place in the list.
    place: usize,
    client: Endpoint,
    frames: (u64, u64),
    reordered: Nanos,
    latest: Nanos,
    copies: Copies,
    halves: Ends<Half>,
}

/// One direction.
#[derive(Debug, Default)]
struct Half {
    /// A sequence number and its distance from the first.
    at: Option<(Seq, i64)>,
    /// Highest end of what was sent.
    high: i64,
    /// What passed by on the way: start, end, when it was skipped.
    holes: Vec<(i64, i64, Nanos)>,
    ack: Option<(i64, u16)>,
    zero: bool,
}

impl Half {
    /// The distance of `seq` from the first number of this direction.
    fn count(&mut self, seq: Seq) -> i64 {
        let Some((last, at)) = self.at else { return 0 };
        let now = at + i64::from(seq.minus(last));
        if now > at {
            self.at = Some((seq, now));
        }
        now
    }

    /// Bits of [`marks`] for data from `seq` to `end`.
    fn data(&mut self, seq: i64, end: i64, now: Nanos, reordered: Nanos) -> u8 {
        if seq >= self.high {
            if seq > self.high && self.high != 0 {
                if self.holes.len() == HOLES {
                    self.holes.remove(0);
                }
                self.holes.push((self.high, seq, now));
            }
            self.high = end;
            return 0;
        }
        let hole = self.holes.iter().position(|h| h.0 < end && seq < h.1);
        self.high = self.high.max(end);
        let Some(i) = hole else { return marks::RETRANSMITTED };
        let (a, b, since) = self.holes.swap_remove(i);
        for part in [(a, seq.min(b), since), (end.max(a), b, since)] {
            if part.0 < part.1 && self.holes.len() < HOLES {
                self.holes.push(part);
            }
        }
        if now - since <= reordered { marks::OUT_OF_ORDER } else { marks::LATE }
    }

    /// Bits of [`marks`] for a packet of this direction.
    fn mark(&mut self, packet: &Packet, s: &Segment, peer: &Half, reordered: Nanos) -> u8 {
        let (flags, seq, end) = (packet.flags, packet.seq, packet.seq_end());
        let (closes, opens) = (flags.fin() || flags.rst(), flags.syn());
        let mut bits = 0;
        let probe = s.len <= 1 && !opens && !closes && seq + 1 == self.high;
        if probe && (s.len == 1 || peer.ack.is_some_and(|a| a.0 == self.high)) {
            bits |= marks::PROBE;
        } else if end > seq && !flags.rst() {
            bits |= self.data(seq, end, packet.time, reordered);
        }
        if s.window == 0 && !flags.rst() && !opens {
            bits |= marks::ZERO_WINDOW;
        }
        let pure = s.len == 0 && flags.ack() && !opens && !closes;
        let said = (packet.ack, s.window);
        if pure && !probe && self.ack == Some(said) && peer.high > packet.ack && !self.zero {
            bits |= marks::DUPLICATE_ACK;
        }
        self.zero = bits & marks::ZERO_WINDOW != 0;
        if flags.ack() {
            self.ack = Some(said);
        }
        bits
    }
}

impl Tracker {
    /// For the connections at these places, and others of the same 4-tuples: what is not followed costs nothing.
    pub(crate) fn new(connections: &[Box<Connection>], wanted: impl Fn(usize) -> bool) -> Tracker {
        let mut index: HashMap<Key, usize> = HashMap::new();
        for (_, c) in connections.iter().enumerate().filter(|&(i, _)| wanted(i)) {
            let next = index.len();
            index.entry(key(c.client, c.server)).or_insert(next);
        }
        let mut places = vec![Vec::new(); index.len()];
        let mut states = Vec::new();
        for (i, c) in connections.iter().enumerate() {
            let Some(&known) = index.get(&key(c.client, c.server)) else { continue };
            places[known].push(states.len());
            states.push(State {
                place: i,
                client: c.client,
                frames: c.frames,
                reordered: c
                    .path
                    .rtt
                    .map_or(REORDERED, |rtt| rtt.part(4).max(Nanos::micros(100)))
                    .min(REORDERED),
                latest: c.start,
                copies: Copies::default(),
                halves: Ends::default(),
            });
        }
        Tracker { index, places, latest: None, states }
    }

    /// The place of its connection, and the packet; `None` if it belongs to none.
    pub(crate) fn take(&mut self, s: &Segment) -> Option<(usize, Packet)> {
        let key = key(s.src, s.dst);
        let at = match self.latest {
            Some((latest, at)) if latest == key => at,
            _ => {
                let at = self.index.get(&key).copied();
                self.latest = Some((key, at));
                at
            }
        };
        let places = &self.places[at?];
        // Connections of one 4-tuple follow each other; ids grow with their first frames.
        let i = places.iter().rev().copied().find(|&i| {
            let (first, last) = self.states[i].frames;
            (first..=last).contains(&s.frame)
        })?;
        let state = &mut self.states[i];
        Some((state.place, state.take(s)))
    }
}

impl State {
    fn take(&mut self, s: &Segment) -> Packet {
        let from = if s.src == self.client { End::Client } else { End::Server };
        let since_last = s.time - self.latest;
        self.latest = self.latest.max(s.time);
        let (own, peer) = match from {
            End::Client => (&mut self.halves.client, &mut self.halves.server),
            End::Server => (&mut self.halves.server, &mut self.halves.client),
        };
        let copy = self.copies.is_copy(from, s, since_last);
        let mut packet = counted(s, from, self.latest, own, peer);
        packet.marks = if copy { marks::COPY } else { own.mark(&packet, s, peer, self.reordered) };
        packet
    }
}

/// The packet, its numbers counted from the first of its direction; as Wireshark counts, a SYN is 0, the first byte 1.
fn counted(s: &Segment, from: End, time: Nanos, own: &mut Half, peer: &mut Half) -> Packet {
    if own.at.is_none() {
        let first = if s.flags.syn() { s.seq } else { s.seq - 1 };
        own.at = Some((first, 0));
    }
    if s.flags.ack() && peer.at.is_none() {
        peer.at = Some((s.ack - 1, 0));
    }
    let of_peer = |number: Seq| peer.at.map_or(0, |(last, at)| at + i64::from(number.minus(last)));
    let mut packet = Packet {
        frame: s.frame,
        time,
        from,
        flags: s.flags,
        seq: own.count(s.seq),
        ack: if s.flags.ack() { of_peer(s.ack) } else { 0 },
        len: s.len,
        window: s.window,
        marks: 0,
        sack: [(0, 0); 4],
        sacks: s.options.sack_len.min(4),
    };
    for (to, block) in packet.sack.iter_mut().zip(&s.options.sack).take(usize::from(packet.sacks)) {
        let left = of_peer(block.0);
        *to = (left, left + i64::from(block.1.minus(block.0)));
    }
    packet
}

/// Both ends of a connection, whichever sends.
type Key = (Endpoint, Endpoint);

fn key(a: Endpoint, b: Endpoint) -> Key {
    if a <= b { (a, b) } else { (b, a) }
}
