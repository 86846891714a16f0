//! What a capture at one end of the path holds.

use crate::packet::Passage;
use crate::sim::Outcome;
use std::net::{IpAddr, Ipv4Addr};
use tcpwhy_base::{Endpoint, Nanos, Segment, Seq, TcpFlags};

/// When a run starts, on the clock of its captures: a model has no date of its own.
pub const EPOCH: Nanos = Nanos(1_700_000_000_000_000_000);

/// Option kinds in the order in which Linux writes them, as [`tcpwhy_base::TcpOptions::order`] has them: MSS, SACK
/// permitted, window scale; and a SACK alone.
const IN_SYN: u32 = 0x342;
const IN_SACK: u32 = 0x5;

/// TTL of a packet at its own host, and some hops on.
const NEAR: u8 = 64;
const FAR: u8 = 57;

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Tapped {
    /// Connection of the run, from 0.
    pub conn: u32,
    /// The packet.
    pub segment: Segment,
}

/// Every packet that passes `end` (0 the client, 1 the server), in order, as a capture there would hold it.
pub fn tap(outcome: &Outcome, end: u8) -> Vec<Tapped> {
    // Each socket counts its packets in the IP identifier (`ip_select_ident_segs`): gaps are losses.
    let mut ids = vec![[0_u16; 2]; outcome.connections.len()];
    let mut seen: Vec<(Nanos, u16, &Passage)> = Vec::with_capacity(outcome.passages.len());
    for p in &outcome.passages {
        let counter = ids.get_mut(p.packet.conn as usize).map(|c| &mut c[usize::from(p.packet.from != 0)]);
        let id = counter.map_or(0, |n| {
            *n = n.wrapping_add(1);
            *n
        });
        if let Some(at) = if p.packet.from == end { Some(p.sent) } else { p.arrived } {
            seen.push((at, id, p));
        }
    }
    seen.sort_by_key(|x| x.0);
    let tapped = |(&(at, id, p), frame): (&(Nanos, u16, &Passage), u64)| Tapped {
        conn: p.packet.conn,
        segment: Segment { ip_id: Some(id), ..segment(p, at, end, frame) },
    };
    seen.iter().zip(1..).map(tapped).collect()
}

/// Both ends of a connection, the client's first. Ports repeat after twenty thousand connections.
fn endpoints(conn: u32) -> [Endpoint; 2] {
    let at = |n, port| Endpoint { ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)), port };
    [at(1, 40_000 + (conn % 20_000) as u16), at(2, 80)]
}

fn segment(p: &Passage, at: Nanos, end: u8, frame: u64) -> Segment {
    let k = &p.packet;
    let hosts = endpoints(k.conn);
    let (from, to) = if k.from == 0 { (0, 1) } else { (1, 0) };
    // Sequence numbers begin somewhere: near the middle of their range at one end, so that it is crossed.
    let base = [0x1000_u32, 0x7fff_0000];
    let seq = |side: usize, n: u64| Seq(base[side].wrapping_add(n as u32));
    let mut flags = 0;
    for (on, bit) in [
        (k.syn, TcpFlags::SYN),
        (k.fin, TcpFlags::FIN),
        (k.rst, TcpFlags::RST),
        (k.psh, TcpFlags::PSH),
        (k.has_ack, TcpFlags::ACK),
    ] {
        flags |= if on { bit } else { 0 };
    }
    let window = if k.syn { k.window } else { k.window >> k.wscale };
    let mut segment = Segment {
        time: EPOCH + at,
        frame,
        src: hosts[from],
        dst: hosts[to],
        seq: seq(from, k.seq),
        ack: if k.has_ack { seq(to, k.ack) } else { Seq(0) },
        flags: TcpFlags(flags),
        window: window.min(u64::from(u16::MAX)) as u16,
        len: k.len,
        ttl: if end == k.from { NEAR } else { FAR },
        ..Segment::EMPTY
    };
    let o = &mut segment.options;
    // Milliseconds, offset by 77 so that 0 still means no timestamp.
    let stamp = |t: Nanos| if t == Nanos::ZERO { 0 } else { (t.0 / 1_000_000 + 77) as u32 };
    o.timestamps = k.stamps.map(|(own, echo)| (stamp(own), stamp(echo)));
    if k.syn {
        (o.mss, o.wscale, o.sack_permitted, o.order) = (Some(k.mss), Some(k.wscale), true, IN_SYN);
    } else if k.sacks > 0 {
        (o.sack_len, o.order) = (k.sacks, IN_SACK);
        for (slot, block) in o.sack.iter_mut().zip(k.sack.iter().take(usize::from(k.sacks))) {
            *slot = (seq(to, block.0), seq(to, block.1));
        }
    }
    segment
}
