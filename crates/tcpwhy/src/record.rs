//! The second pass over a capture: its packets by connection, for graphs, ladders and annotated copies.
//!
//! The analysis keeps no packets, so that its memory does not grow with them. What draws packets reads the capture
//! again and knows then which connections are worth it, how many packets each has, and where the findings lie.

use crate::input::Input;
use crate::units::Bound;
use std::collections::HashMap;
use tcpwhy_analysis::{Analysis, Connection};
use tcpwhy_base::{Endpoint, Nanos, Segment, Seq};
use tcpwhy_capture::{Dissector, Filter, Frame, Verdict};
use tcpwhy_report::packets::{Packet, marks};

/// Data that fills a hole so soon after it opened was overtaken and not repeated: the least time after which Linux
/// gives up on a segment is a quarter of the round trip, and Wireshark takes 3 ms where no round trip is known.
const REORDERED: Nanos = Nanos::millis(3);
/// Holes kept for each direction; the oldest goes.
const HOLES: usize = 64;

/// What the first pass read, so that the second reads the same.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) inputs: &'a [Input],
    pub(crate) frames_before: &'a [u64],
    pub(crate) from: Option<Bound>,
    pub(crate) to: Option<Bound>,
    pub(crate) filter: Option<&'a Filter>,
}

/// One packet as the second pass meets it.
pub(crate) struct Met<'a> {
    /// The bytes.
    pub(crate) frame: Frame<'a>,
    /// Number of the frame through all inputs.
    pub(crate) number: u64,
    /// What the dissector made of it; only with `packet`.
    pub(crate) segment: &'a Segment,
    /// Place in the list of connections and the packet, if it belongs to one that is listed.
    pub(crate) packet: Option<(usize, Packet)>,
    /// A copy of a packet that passed just before.
    pub(crate) copy: bool,
}

/// Reads all inputs again and gives each frame to `each`, in their order, until it says `false`.
pub(crate) fn again(
    source: &Source<'_>,
    analysis: &Analysis,
    mut each: impl FnMut(&Met<'_>) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut tracker = Tracker::new(&analysis.connections);
    let mut dissector = Dissector::new();
    let mut segment = Segment::EMPTY;
    let mut start: Option<Nanos> = None;
    for (input, &before) in source.inputs.iter().zip(source.frames_before) {
        let mut reader = input.open().map_err(|e| anyhow::anyhow!(e))?;
        let mut bounds = None;
        // A damaged end was reported when it was read first.
        while let Ok(Some(frame)) = reader.next() {
            let (from, to) = *bounds.get_or_insert_with(|| {
                let zero = start.map_or(frame.time, |s| s.min(frame.time));
                let at = |bound: Option<Bound>, none| bound.map_or(none, |b| b.resolve(zero));
                (at(source.from, Nanos(i64::MIN)), at(source.to, Nanos::MAX))
            });
            start = Some(start.map_or(frame.time, |s| s.min(frame.time)));
            let number = before + frame.number;
            let (mut packet, mut copy) = (None, false);
            if frame.time >= from
                && frame.time <= to
                && dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp
                && source.filter.is_none_or(|f| f.matches(&segment))
            {
                segment.frame = number;
                (packet, copy) = tracker.take(&segment);
            }
            if !each(&Met { frame, number, segment: &segment, packet, copy })? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Finds the connection of each segment, and counts its numbers from the first.
struct Tracker {
    places: HashMap<(Endpoint, Endpoint), Vec<usize>>,
    states: Vec<State>,
}

struct State {
    client: Endpoint,
    frames: (u64, u64),
    reordered: Nanos,
    latest: Nanos,
    halves: [Half; 2],
}

/// One direction.
#[derive(Default)]
struct Half {
    /// A sequence number and its distance from the first.
    at: Option<(Seq, i64)>,
    /// Highest end of what was sent.
    high: i64,
    /// What passed by on the way: start, end, when it was skipped.
    holes: Vec<(i64, i64, Nanos)>,
    ack: Option<(i64, u16)>,
    zero: bool,
    recent: [(u64, Nanos); 8],
    at_recent: usize,
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

    fn is_copy(&mut self, s: &Segment) -> bool {
        // As the analysis does: same identifier within a millisecond.
        let Some(id) = s.ip_id.filter(|&id| id != 0) else { return false };
        let key = u64::from(s.seq.0) << 32
            ^ u64::from(s.ack.0).rotate_left(16)
            ^ u64::from(id) << 40
            ^ u64::from(s.len) << 8
            ^ u64::from(s.flags.0)
            ^ u64::from(s.window).rotate_left(24);
        let known =
            self.recent.iter().any(|&(k, t)| k == key && (s.time - t) <= Nanos::millis(1) && t <= s.time);
        self.recent[self.at_recent % 8] = (key, s.time);
        self.at_recent += 1;
        known
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
}

impl Tracker {
    fn new(connections: &[Connection]) -> Tracker {
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        let mut states = Vec::with_capacity(connections.len());
        for (i, c) in connections.iter().enumerate() {
            places.entry(key(c.client, c.server)).or_default().push(i);
            states.push(State {
                client: c.client,
                frames: c.frames,
                reordered: c
                    .path
                    .rtt
                    .map_or(REORDERED, |rtt| rtt.part(4).max(Nanos::micros(100)))
                    .min(REORDERED),
                latest: c.start,
                halves: Default::default(),
            });
        }
        Tracker { places, states }
    }

    fn take(&mut self, s: &Segment) -> (Option<(usize, Packet)>, bool) {
        let Some(places) = self.places.get(&key(s.src, s.dst)) else { return (None, false) };
        // Connections of one 4-tuple follow each other; ids grow with their first frames.
        let found = places.iter().rev().copied().find(|&i| {
            let (first, last) = self.states[i].frames;
            (first..=last).contains(&s.frame)
        });
        let Some(i) = found else { return (None, false) };
        let state = &mut self.states[i];
        let from = usize::from(s.src != state.client);
        state.latest = state.latest.max(s.time);
        let now = state.latest;
        let [a, b] = &mut state.halves;
        let (own, peer) = if from == 0 { (a, b) } else { (b, a) };
        let copy = own.is_copy(s);
        // As Wireshark counts: a SYN is 0, the first byte 1.
        if own.at.is_none() {
            let first = if s.flags.syn() { s.seq } else { s.seq - 1 };
            own.at = Some((first, 0));
        }
        if s.flags.ack() && peer.at.is_none() {
            peer.at = Some((s.ack - 1, 0));
        }
        let seq = own.count(s.seq);
        let ack =
            if s.flags.ack() { peer.at.map_or(0, |(last, at)| at + i64::from(s.ack.minus(last))) } else { 0 };
        let mut packet = Packet {
            frame: s.frame,
            time: now,
            from: from as u8,
            flags: s.flags,
            seq,
            ack,
            len: s.len,
            window: s.window,
            marks: 0,
            sack: [(0, 0); 4],
            sacks: s.options.sack_len.min(4),
        };
        for (to, block) in packet.sack.iter_mut().zip(&s.options.sack).take(usize::from(packet.sacks)) {
            let left = peer.at.map_or(0, |(last, at)| at + i64::from(block.0.minus(last)));
            *to = (left, left + i64::from(block.1.minus(block.0)));
        }
        if copy {
            return (Some((i, packet)), true);
        }
        let end = packet.seq_end();
        let probe = s.len <= 1 && !s.flags.syn() && !s.flags.fin() && !s.flags.rst() && seq + 1 == own.high;
        if probe && (s.len == 1 || peer.ack.is_some_and(|a| a.0 == own.high)) {
            packet.marks |= marks::PROBE;
        } else if end > seq && !s.flags.rst() {
            packet.marks |= own.data(seq, end, now, state.reordered);
        }
        if s.window == 0 && !s.flags.rst() && !s.flags.syn() {
            packet.marks |= marks::ZERO_WINDOW;
        }
        let pure = s.len == 0 && s.flags.ack() && !s.flags.syn() && !s.flags.fin() && !s.flags.rst();
        if pure && !probe && own.ack == Some((ack, s.window)) && peer.high > ack && !own.zero {
            packet.marks |= marks::DUPLICATE_ACK;
        }
        own.zero = packet.marks & marks::ZERO_WINDOW != 0;
        if s.flags.ack() {
            own.ack = Some((ack, s.window));
        }
        (Some((i, packet)), false)
    }
}

fn key(a: Endpoint, b: Endpoint) -> (Endpoint, Endpoint) {
    if a <= b { (a, b) } else { (b, a) }
}

/// The scales of both ends; none is used unless both announced one (RFC 7323, 2.2).
pub(crate) fn shift(c: &Connection) -> [u8; 2] {
    match (c.ends[0].wscale, c.ends[1].wscale) {
        (Some(a), Some(b)) => [a.min(14), b.min(14)],
        _ => [0; 2],
    }
}
