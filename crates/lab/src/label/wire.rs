//! The packets of a run as both ends saw them, cut into connections and directions.

use crate::link::{LINK_TYPE, Record};
use std::collections::BTreeMap;
use tcpwhy_base::{End, Ends, Nanos, Segment as Header, Seq};
use tcpwhy_capture::{Dissector, Frame, Verdict};

/// A TCP packet at one tap. Places count payload bytes of the connection from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) time: Nanos,
    /// Who sent it.
    pub(super) from: End,
    pub(super) start: u64,
    pub(super) len: u64,
    /// The first byte of the other direction that is not acknowledged.
    pub(super) ack: Option<u64>,
    /// Bytes, scaled.
    pub(super) window: u64,
    pub(super) syn: bool,
}

/// One connection at both taps.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The client's port.
    pub(super) port: u16,
    /// At the client, at the server.
    pub(super) taps: Ends<Vec<Packet>>,
}

/// The TCP segments of a capture, in order; `len` is what was on the wire, however much was kept.
fn segments(capture: &[Record]) -> impl Iterator<Item = Header> + '_ {
    let mut dissector = Dissector::new();
    capture.iter().filter_map(move |record| {
        let frame = Frame { len: record.len, ..Frame::new(record.time, LINK_TYPE, &record.data) };
        let mut segment = Header::EMPTY;
        (dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp).then_some(segment)
    })
}

/// The port of the first SYN that the client sent.
pub(super) fn asked(captures: &Ends<Vec<Record>>) -> Option<u16> {
    segments(&captures.client).find(|s| s.flags.syn() && !s.flags.ack()).map(|s| s.dst.port)
}

/// All connections, in the order of their clients' first packets.
pub(super) fn flows(captures: &Ends<Vec<Record>>, server_port: u16) -> Vec<Flow> {
    let mut order = Vec::new();
    let mut all: BTreeMap<u16, Ends<Vec<(End, Header)>>> = BTreeMap::new();
    for tap in End::BOTH {
        for segment in segments(&captures[tap]) {
            let from = if segment.src.port == server_port { End::Server } else { End::Client };
            let port = if from == End::Client { segment.src.port } else { segment.dst.port };
            let taps = all.entry(port).or_insert_with(|| {
                order.push(port);
                Ends::default()
            });
            taps[tap].push((from, segment));
        }
    }
    order.iter().filter_map(|port| Some(flow(*port, &all.remove(port)?))).collect()
}

fn flow(port: u16, taps: &Ends<Vec<(End, Header)>>) -> Flow {
    // Where counting begins, and by how much windows are shifted, stands in the SYNs: at either tap.
    let mut first = Ends::default();
    let mut shift = Ends::default();
    for (from, segment) in taps.iter().flatten().filter(|(_, segment)| segment.flags.syn()) {
        first[*from] = Some(segment.seq + 1);
        shift[*from] = segment.options.wscale;
    }
    let both = shift.client.is_some() && shift.server.is_some();
    let place = |end: End, seq: Seq| {
        let place = seq.0.wrapping_sub(first[end].unwrap_or(seq).0);
        // A probe lies one before the first byte.
        if place > u32::MAX - 0xffff { 0 } else { u64::from(place) }
    };
    let packet = |&(from, ref segment): &(End, Header)| {
        let syn = segment.flags.syn();
        Packet {
            time: segment.time,
            from,
            start: place(from, segment.seq),
            len: if syn { 0 } else { u64::from(segment.len) },
            ack: segment.flags.ack().then(|| place(from.peer(), segment.ack)),
            window: u64::from(segment.window)
                << if both && !syn { shift[from].unwrap_or(0).min(14) } else { 0 },
            syn,
        }
    };
    let packets = |tap: &[(End, Header)]| tap.iter().map(packet).collect();
    Flow { port, taps: Ends::new(packets(&taps.client), packets(&taps.server)) }
}

/// A new piece of payload as it left its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) sent: Nanos,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// An acknowledgement as it reached the sender of the data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub(super) at: Nanos,
    pub(super) ack: u64,
    /// The first byte that may not be sent.
    pub(super) edge: u64,
}

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Direction {
    /// New payload in order.
    pub(super) segments: Vec<Segment>,
    /// Payload that had been sent before.
    pub(super) repeats: Vec<Segment>,
    pub(super) acks: Vec<Ack>,
    /// At the receiver: from this time on all bytes below the place are there.
    pub(super) frontier: Vec<(Nanos, u64)>,
    /// At the receiver: from this time on it had said that all bytes below the place are there.
    pub(super) said: Vec<(Nanos, u64)>,
    /// At the receiver: when what begins there first came, holes before it or not.
    came: BTreeMap<u64, Nanos>,
}

impl Direction {
    /// What `sender` sent, and what came back.
    pub(super) fn new(flow: &Flow, sender: End) -> Direction {
        let (mut segments, mut repeats) = (Vec::new(), Vec::new());
        let mut high = 0;
        for p in flow.taps[sender].iter().filter(|p| p.from == sender && p.len > 0) {
            let end = p.start + p.len;
            if p.start < high {
                repeats.push(Segment { sent: p.time, start: p.start, end: end.min(high) });
            }
            if end > high {
                segments.push(Segment { sent: p.time, start: p.start.max(high), end });
                high = end;
            }
        }
        let mut edge = 0;
        let acks = flow.taps[sender].iter().filter(|p| p.from != sender).filter_map(|p| {
            let ack = p.ack?;
            edge = edge.max(ack + p.window);
            Some(Ack { at: p.time, ack, edge })
        });
        let acks = acks.collect();
        let arrived = || flow.taps[sender.peer()].iter().filter(|p| p.from == sender && p.len > 0);
        let mut came = BTreeMap::new();
        for p in arrived() {
            came.entry(p.start).or_insert(p.time);
        }
        let mut said = Vec::new();
        let mut most = 0;
        for p in flow.taps[sender.peer()].iter().filter(|p| p.from != sender) {
            if let Some(ack) = p.ack.filter(|&ack| ack > most) {
                most = ack;
                said.push((p.time, ack));
            }
        }
        Direction { segments, repeats, acks, frontier: frontier(arrived()), said, came }
    }

    /// When segment `i` came to the receiver, or would have come: of what was `lost` as long before the next
    /// one that was not as it left before that.
    pub(super) fn there(&self, i: usize, lost: impl Fn(&Segment) -> bool) -> Option<Nanos> {
        let own = self.segments.get(i)?;
        let next = self.segments.get(i..)?.iter().find(|s| !lost(s))?;
        Some(*self.came.get(&next.start)? - (next.sent - own.sent))
    }

    /// When all bytes below `place` were at the receiver.
    pub(super) fn arrived(&self, place: u64) -> Option<Nanos> {
        reached(&self.frontier, place)
    }

    /// When the receiver said so.
    pub(super) fn said(&self, place: u64) -> Option<Nanos> {
        reached(&self.said, place)
    }

    /// When the sender heard it.
    pub(super) fn heard(&self, place: u64) -> Option<Nanos> {
        self.acks.iter().find(|a| a.ack >= place).map(|a| a.at)
    }

    /// When `place` was first sent.
    pub(super) fn first_sent(&self, place: u64) -> Option<Nanos> {
        let i = self.segments.partition_point(|s| s.end <= place);
        self.segments.get(i).map(|s| s.sent)
    }
}

fn reached(steps: &[(Nanos, u64)], place: u64) -> Option<Nanos> {
    steps.get(steps.partition_point(|&(_, reached)| reached < place)).map(|s| s.0)
}

fn frontier<'a>(arrived: impl Iterator<Item = &'a Packet>) -> Vec<(Nanos, u64)> {
    let mut steps = Vec::new();
    let mut reached = 0;
    // What lies beyond a hole.
    let mut beyond: BTreeMap<u64, u64> = BTreeMap::new();
    for p in arrived {
        let end = beyond.entry(p.start).or_insert(0);
        *end = (*end).max(p.start + p.len);
        let before = reached;
        while let Some(entry) = beyond.first_entry().filter(|e| *e.key() <= reached) {
            reached = reached.max(entry.remove());
        }
        if reached > before {
            steps.push((p.time, reached));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ms: i64, start: u64, len: u64) -> Packet {
        let time = Nanos::millis(ms);
        Packet { time, from: End::Client, start, len, ack: None, window: 0, syn: false }
    }

    #[test]
    fn what_lies_behind_a_hole_has_come() {
        let sent = vec![packet(1, 0, 10), packet(2, 10, 10), packet(40, 20, 10), packet(90, 10, 10)];
        let came = vec![packet(11, 0, 10), packet(50, 20, 10), packet(100, 10, 10)];
        let flow = Flow { port: 1, taps: Ends::new(sent, came) };
        let d = Direction::new(&flow, End::Client);
        let there = |i| d.there(i, |s| s.sent == Nanos::millis(2));
        assert_eq!(
            [0, 1, 2, 3].map(there),
            [Some(11), Some(12), Some(50), None].map(|t| t.map(Nanos::millis))
        );
        assert_eq!(d.arrived(30), Some(Nanos::millis(100)));
    }

    #[test]
    fn a_hole_holds_the_frontier() {
        let all =
            [packet(1, 0, 10), packet(2, 20, 10), packet(3, 30, 5), packet(9, 10, 10), packet(10, 0, 10)];
        let steps = frontier(all.iter());
        assert_eq!(steps, [(Nanos::millis(1), 10), (Nanos::millis(9), 35)]);
        assert_eq!(
            (reached(&steps, 10), reached(&steps, 11)),
            (Some(Nanos::millis(1)), Some(Nanos::millis(9)))
        );
        assert_eq!(reached(&steps, 36), None);
    }
}
