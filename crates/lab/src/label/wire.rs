//! The packets of a run as both ends saw them, cut into connections and directions.

use crate::link::Record;
use std::collections::BTreeMap;
use tcpwhy_base::Nanos;

/// A TCP packet at one tap. Places count payload bytes of the connection from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) time: Nanos,
    /// 0: the client sent it.
    pub(super) from: usize,
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
    pub(super) taps: [Vec<Packet>; 2],
}

/// What the headers of a record say before sequence numbers are counted from 0.
struct Raw {
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    wscale: Option<u8>,
    len: u64,
}

/// When it passed, and who sent it.
type Seen = (Nanos, usize, Raw);

const SYN: u8 = 2;
const ACK: u8 = 16;

fn raw(packet: &[u8], whole: u32) -> Option<Raw> {
    if *packet.first()? >> 4 != 4 || *packet.get(9)? != 6 {
        return None;
    }
    let tcp = packet.get(usize::from(packet.first()? & 15) * 4..)?;
    let half = |at: usize| Some(u16::from_be_bytes([*tcp.get(at)?, *tcp.get(at + 1)?]));
    let word = |at: usize| Some(u32::from(half(at)?) << 16 | u32::from(half(at + 2)?));
    let header = usize::from(*tcp.get(12)? >> 4) * 4;
    let flags = *tcp.get(13)?;
    let ip = packet.len() - tcp.len();
    Some(Raw {
        ports: (half(0)?, half(2)?),
        seq: word(4)?,
        ack: word(8)?,
        flags,
        window: half(14)?,
        wscale: if flags & SYN != 0 { wscale(tcp.get(20..header)?) } else { None },
        len: u64::from(whole).checked_sub((ip + header) as u64)?,
    })
}

fn wscale(mut options: &[u8]) -> Option<u8> {
    loop {
        match options {
            [3, 3, shift, ..] => return Some(*shift),
            [1, rest @ ..] => options = rest,
            [0, ..] | [] | [_] => return None,
            [_, len, ..] => options = options.get(usize::from(*len).max(2)..)?,
        }
    }
}

/// The port of the first SYN that the client sent.
pub(super) fn asked(captures: &[Vec<Record>; 2]) -> Option<u16> {
    let syn = |r: &Record| raw(&r.data, r.len).filter(|raw| raw.flags & (SYN | ACK) == SYN);
    captures[0].iter().find_map(syn).map(|raw| raw.ports.1)
}

/// All connections, in the order of their clients' first packets.
pub(super) fn flows(captures: &[Vec<Record>; 2], server_port: u16) -> Vec<Flow> {
    let mut order = Vec::new();
    let mut raws: BTreeMap<u16, [Vec<Seen>; 2]> = BTreeMap::new();
    for (tap, capture) in captures.iter().enumerate() {
        for record in capture {
            let Some(raw) = raw(&record.data, record.len) else { continue };
            let from = usize::from(raw.ports.0 == server_port);
            let port = if from == 0 { raw.ports.0 } else { raw.ports.1 };
            let taps = raws.entry(port).or_insert_with(|| {
                order.push(port);
                Default::default()
            });
            taps[tap].push((record.time, from, raw));
        }
    }
    order.iter().filter_map(|port| Some(flow(*port, raws.remove(port)?))).collect()
}

fn flow(port: u16, raws: [Vec<Seen>; 2]) -> Flow {
    // Where counting begins, and by how much windows are shifted, stands in the SYNs: at either tap.
    let mut first = [None; 2];
    let mut shift = [None; 2];
    for (_, from, raw) in raws.iter().flatten().filter(|(.., raw)| raw.flags & SYN != 0) {
        first[*from] = Some(raw.seq.wrapping_add(1));
        shift[*from] = raw.wscale;
    }
    let both = shift[0].is_some() && shift[1].is_some();
    let place = |side: usize, seq: u32| {
        let place = seq.wrapping_sub(first[side].unwrap_or(seq));
        // A probe lies one before the first byte.
        if place > u32::MAX - 0xffff { 0 } else { u64::from(place) }
    };
    let packet = |(time, from, raw): (Nanos, usize, Raw)| Packet {
        time,
        from,
        start: place(from, raw.seq),
        len: if raw.flags & SYN != 0 { 0 } else { raw.len },
        ack: (raw.flags & ACK != 0).then(|| place(1 - from, raw.ack)),
        window: u64::from(raw.window)
            << if both && raw.flags & SYN == 0 { shift[from].unwrap_or(0).min(14) } else { 0 },
        syn: raw.flags & SYN != 0,
    };
    Flow { port, taps: raws.map(|tap| tap.into_iter().map(packet).collect()) }
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
}

impl Direction {
    /// `sender`: 0 is the client.
    pub(super) fn new(flow: &Flow, sender: usize) -> Direction {
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
        let arrived = flow.taps[1 - sender].iter().filter(|p| p.from == sender && p.len > 0);
        let mut said = Vec::new();
        let mut most = 0;
        for p in flow.taps[1 - sender].iter().filter(|p| p.from != sender) {
            if let Some(ack) = p.ack.filter(|&ack| ack > most) {
                most = ack;
                said.push((p.time, ack));
            }
        }
        Direction { segments, repeats, acks, frontier: frontier(arrived), said }
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

    #[test]
    fn a_hole_holds_the_frontier() {
        let packet = |ms, start, len| Packet {
            time: Nanos::millis(ms),
            from: 0,
            start,
            len,
            ack: None,
            window: 0,
            syn: false,
        };
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

    #[test]
    fn window_scales_stand_in_the_options() {
        assert_eq!(wscale(&[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 9]), Some(9));
        assert_eq!(wscale(&[2, 4, 5, 180]), None);
        assert_eq!(wscale(&[5, 0, 0]), None);
    }
}
