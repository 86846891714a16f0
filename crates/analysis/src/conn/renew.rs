//! The state of a connection that has ended is used again for the next one, with the room that its lists
//! have: to make one anew and to free it would take a short connection as long as to follow it.

use super::Conn;
use super::ahead::Asked;
use super::pending::Pending;
use super::tickets::Tickets;
use crate::exchange::Recorder;
use crate::findings::Basis;
use crate::parts::Identity;
use crate::release::{Habits, Testimony};
use crate::taps::Role;
use tcpwhy_base::{Endpoint, Ends, Segment, TcpFlags};

/// Client and server of a connection that begins with this segment.
pub(crate) fn ends_of(segment: &Segment) -> Ends<Endpoint> {
    let (src, dst) = (segment.src, segment.dst);
    let (client, server) = if is_of_client(segment.flags, &src, &dst) { (src, dst) } else { (dst, src) };
    Ends::new(client, server)
}

/// The first packet of a connection, with these flags, is of its client.
#[inline]
pub(crate) fn is_of_client(flags: TcpFlags, src: &Endpoint, dst: &Endpoint) -> bool {
    // Without a SYN the lower port is taken for the server's; with equal ports, the receiver.
    if flags.syn() { !flags.ack() } else { src.port >= dst.port }
}

/// Who a connection is between that begins with this segment.
pub(super) fn identity(id: u32, segment: &Segment) -> Identity {
    Identity {
        id,
        ends: ends_of(segment),
        roles_inferred: !segment.flags.syn(),
        file: segment.file,
        protocol: None,
        programs: Ends::default(),
    }
}

impl Conn {
    /// Becomes what [`Conn::new`] makes of this segment.
    pub(crate) fn renew(&mut self, id: u32, segment: &Segment, room: Basis) {
        // Each by its name: a new one must not be forgotten.
        let Conn { who, track, habits, testimony, ex, ledger, role, tickets, ahead, asked, pending, crossed } =
            self;
        *who = identity(id, segment);
        track.renew(segment);
        *habits = Habits::default();
        *testimony = Testimony::default();
        *ex = Recorder::default();
        ledger.renew(id, segment, room);
        *role = Role::default();
        *tickets = Tickets::default();
        (*ahead, *asked, *pending) = (None, Asked::default(), Pending::default());
        *crossed = Ends::default();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Detail;
    use crate::output::Output;
    use tcpwhy_base::{Nanos, Seq};

    /// Packets of a connection in which a little of everything happens: both ends speak, lose, repeat and close.
    pub(in crate::conn) fn packets() -> Vec<Segment> {
        let end = |last: u8| Endpoint { ip: [192, 0, 2, last].into(), port: 1_000 + u16::from(last) };
        let flags =
            [TcpFlags::SYN, TcpFlags::SYN | TcpFlags::ACK, TcpFlags::ACK, TcpFlags::ACK | TcpFlags::PSH];
        let mut packets = Vec::new();
        for n in 0..60_u32 {
            let server = n == 1 || n > 2 && n % 3 != 0;
            let (src, dst) = if server { (end(1), end(2)) } else { (end(2), end(1)) };
            let flags = if n > 55 { TcpFlags::ACK | TcpFlags::FIN } else { flags[n.min(2 + n % 2) as usize] };
            let mut segment = Segment {
                time: Nanos::millis(i64::from(n) * 7),
                frame: u64::from(n) + 1,
                src,
                dst,
                seq: Seq(if n < 2 { 0 } else { 1 + n * 500 - n % 5 * 400 }),
                ack: Seq(1 + n * 300),
                flags: TcpFlags(flags),
                window: 5_000 - n as u16 * 80,
                len: if n > 2 { n % 4 * 700 } else { 0 },
                ip_id: Some(n as u16 * 3),
                ttl: 60 + (n % 2) as u8,
                ..Segment::EMPTY
            };
            segment.options.timestamps = (n % 7 != 0).then_some((n, n));
            (segment.options.mss, segment.options.wscale) =
                if n < 2 { (Some(1_400), Some(7)) } else { (None, None) };
            packets.push(segment);
        }
        packets
    }

    #[test]
    fn a_state_that_is_used_again_is_a_new_one() {
        let (packets, mut parts) = (packets(), Output::new(Detail::Worst(3)));
        // As it is in the middle of it, and at its end.
        for (used, finished) in (1..packets.len()).flat_map(|n| [(n, false), (n, true)]) {
            let mut conn = Conn::new(7, &packets[0], Basis::default());
            packets[..used].iter().for_each(|segment| conn.push(segment, &mut parts));
            if finished {
                conn.finish(Some(Nanos::ZERO), &mut parts);
            }
            for first in &packets[..4] {
                conn.renew(9, first, Basis::default());
                let new = Conn::new(9, first, Basis::default());
                assert_eq!(format!("{conn:?}"), format!("{new:?}"), "{used}");
            }
        }
    }
}
