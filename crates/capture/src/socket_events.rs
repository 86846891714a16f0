//! What a kernel said of sockets, kept between packets in pcapng: blocks of a type for local use
//! (draft-ietf-opsawg-pcapng 11.1), which other programs pass over. Custom blocks (4.8) they do not:
//! Wireshark counts each as a packet, and numbers of frames would be others than ours. Provisional:
//! docs/record.md has the layout.

use crate::bytes::Order;
use std::net::IpAddr;
use tcpwhy_base::{Endpoint, Held, Nanos, Seq, SocketChange, SocketEvent, SocketState, Timer};

/// The type of the block: for local use, and else that of a custom one that may be copied.
pub(crate) const EVENT: u32 = 0x8000_0bad;
/// Whose blocks these are, as in a custom block: the number for documentation (RFC 5612), as none has been assigned.
pub(crate) const ENTERPRISE: u32 = 32_473;
/// Of the layout.
const VERSION: u16 = 1;
/// Bytes of an event, behind the enterprise number.
pub(crate) const LENGTH: usize = 64;

const WRITE: u16 = 1;
const ROOM: u16 = 2;
const NO_DELAY: u16 = 3;
const TIMER: u16 = 4;
const CWND: u16 = 5;
const CORK: u16 = 6;
const READ: u16 = 7;
const STATE: u16 = 8;
const HELD: u16 = 9;

/// An event in the byte order that a `Writer` writes, which is little-endian; `None` of a time before 1970.
pub(crate) fn encode(event: &SocketEvent) -> Option<Vec<u8>> {
    let time = |t: Nanos| u64::try_from(t.0).ok();
    let (kind, a, b, c) = match event.change {
        SocketChange::Write { from, bytes, read } => {
            (WRITE, from.0, bytes, read.map_or(0, |r| 1 << 32 | u64::from(r.0)))
        }
        SocketChange::Room { since } => (ROOM, 0, 0, time(since)?),
        SocketChange::NoDelay(on) => (NO_DELAY, on.into(), 0, 0),
        SocketChange::Cork(on) => (CORK, on.into(), 0, 0),
        SocketChange::Timer(Timer::Retransmission) => (TIMER, 0, 0, 0),
        SocketChange::Timer(Timer::Probe) => (TIMER, 1, 0, 0),
        SocketChange::Timer(Timer::DelayedAck) => (TIMER, 2, 0, 0),
        SocketChange::Read { since, upto, left } => (READ, upto.0, left, time(since)?),
        SocketChange::State(state) => {
            let [sent, own] = state.scales.unwrap_or_default().map(u32::from);
            let scales = u32::from(state.scales.is_some()) | sent << 8 | own << 16;
            let set = u32::from(state.set[0]) << 24 | u32::from(state.set[1]) << 25;
            let [send, receive] = state.buffers.map(u64::from);
            let told = scales | set | u32::from(state.reads) << 26;
            (STATE, state.open.into(), told, send | receive << 32)
        }
        SocketChange::Cwnd(bytes) => (CWND, bytes, 0, 0),
        SocketChange::Held(held) => (HELD, held.number().0, held.number().1.into(), 0),
    };
    let mut out = Vec::with_capacity(LENGTH);
    out.extend(VERSION.to_le_bytes());
    out.extend(kind.to_le_bytes());
    out.extend(time(event.time)?.to_le_bytes());
    out.extend(event.local.port.to_le_bytes());
    out.extend(event.remote.port.to_le_bytes());
    for end in [event.local, event.remote] {
        out.extend(match end.ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        });
    }
    out.extend(a.to_le_bytes());
    out.extend(b.to_le_bytes());
    out.extend(c.to_le_bytes());
    Some(out)
}

/// What stands behind the enterprise number; `None` if it is of another layout or kind, which a later program
/// may write.
pub(crate) fn decode(order: Order, body: &[u8]) -> Option<SocketEvent> {
    let body: &[u8; LENGTH] = body.first_chunk()?;
    let short = |at: usize| body.get(at..)?.first_chunk().map(|b| order.u16(*b));
    let word = |at: usize| body.get(at..)?.first_chunk().map(|b| order.u32(*b));
    let long = |at: usize| body.get(at..)?.first_chunk().map(|b| order.u64(*b));
    let time = |at: usize| i64::try_from(long(at)?).ok().map(Nanos);
    let end = |at: usize, port: usize| {
        let ip: &[u8; 16] = body.get(at..)?.first_chunk()?;
        Some(Endpoint { ip: IpAddr::from(*ip).to_canonical(), port: short(port)? })
    };
    if short(0)? != VERSION {
        return None;
    }
    let (a, b) = (word(48)?, word(52)?);
    let change = match short(2)? {
        WRITE => {
            let (told, number) = (long(56)? >> 32 != 0, Seq(long(56)? as u32));
            SocketChange::Write { from: Seq(a), bytes: b, read: told.then_some(number) }
        }
        ROOM => SocketChange::Room { since: time(56)? },
        NO_DELAY => SocketChange::NoDelay(a != 0),
        TIMER => SocketChange::Timer(match a {
            0 => Timer::Retransmission,
            1 => Timer::Probe,
            2 => Timer::DelayedAck,
            _ => return None,
        }),
        CORK => SocketChange::Cork(a != 0),
        READ => SocketChange::Read { since: time(56)?, upto: Seq(a), left: b },
        STATE => {
            let scales = (b & 1 != 0).then_some([(b >> 8) as u8 & 15, (b >> 16) as u8 & 15]);
            let [send, receive, reads] = [24, 25, 26].map(|bit| b & 1 << bit != 0);
            let set = [send, receive];
            let buffers = long(56)?;
            let buffers = [buffers as u32, (buffers >> 32) as u32];
            SocketChange::State(SocketState { open: a != 0, scales, buffers, set, reads })
        }
        CWND => SocketChange::Cwnd(a),
        HELD => SocketChange::Held(Held::from_number(a, b & 1 != 0)?),
        _ => return None,
    };
    Some(SocketEvent { time: time(4)?, local: end(16, 12)?, remote: end(32, 14)?, change })
}
