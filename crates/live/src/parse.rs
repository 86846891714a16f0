//! Answers of `sock_diag`, from bytes (`linux/inet_diag.h`).

use crate::sample::{Congestion, Info, Memory, Sample, State};
use crate::wire::{
    HEADER, INET_DIAG_CONG, INET_DIAG_INFO, INET_DIAG_SKMEMINFO, NLMSG_DONE, NLMSG_ERROR,
    SOCK_DIAG_BY_FAMILY, TCPDIAG_GETSOCK, u16_at, u32_at,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpwhy_base::{Endpoint, Nanos};

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `struct inet_diag_msg`, `struct rtattr`.
const MESSAGE: usize = 72;
const ATTRIBUTE: usize = 4;

/// What a buffer held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More follows.
    More,
    /// The list is complete.
    Done,
    /// The kernel refused, with this number.
    Refused(i32),
    /// Not what the kernel writes.
    Malformed,
}

/// Reads the messages of one buffer into `out`.
pub fn parse(mut buffer: &[u8], out: &mut Vec<Sample>) -> Parsed {
    while !buffer.is_empty() {
        let (Some(len), Some(kind)) = (u32_at(buffer, 0), u16_at(buffer, 4)) else {
            return Parsed::Malformed;
        };
        let len = len as usize;
        let Some(body) = buffer.get(HEADER..len) else { return Parsed::Malformed };
        match kind {
            NLMSG_DONE => return Parsed::Done,
            NLMSG_ERROR => match u32_at(body, 0) {
                Some(0) => {}
                Some(n) => return Parsed::Refused((n as i32).wrapping_neg()),
                None => return Parsed::Malformed,
            },
            SOCK_DIAG_BY_FAMILY | TCPDIAG_GETSOCK => out.extend(sample(body)),
            _ => {}
        }
        buffer = buffer.get(aligned(len)..).unwrap_or_default();
    }
    Parsed::More
}

fn sample(body: &[u8]) -> Option<Sample> {
    let (&family, &state) = (body.first()?, body.get(1)?);
    let mut out = Sample {
        cookie: u64::from(u32_at(body, 44)?) | u64::from(u32_at(body, 48)?) << 32,
        local: endpoint(family, body.get(8..24)?, body.get(4..6)?)?,
        peer: endpoint(family, body.get(24..40)?, body.get(6..8)?)?,
        device: u32_at(body, 40)?,
        state: State::from_number(state)?,
        inode: u32_at(body, 68)?,
        rqueue: u32_at(body, 56)?,
        wqueue: u32_at(body, 60)?,
        retransmits: *body.get(3)?,
        expires: expires(*body.get(2)?, u32_at(body, 52)?),
        info: None,
        memory: None,
        congestion: Congestion::default(),
    };
    let mut rest = body.get(MESSAGE..)?;
    while let (Some(len), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let Some(value) = rest.get(ATTRIBUTE..len.into()) else { break };
        match kind {
            INET_DIAG_INFO => out.info = Info::decode(value),
            INET_DIAG_CONG => out.congestion = Congestion::new(value),
            INET_DIAG_SKMEMINFO => out.memory = memory(value),
            _ => {}
        }
        rest = rest.get(aligned(len.into())..).unwrap_or_default();
    }
    Some(out)
}

/// `idiag_timer`, of which 0 is none, and `idiag_expires` in milliseconds.
fn expires(timer: u8, ms: u32) -> Option<Nanos> {
    (timer != 0).then(|| Nanos::millis(ms.into()))
}

/// `SK_MEMINFO_*`: RMEM_ALLOC, RCVBUF, WMEM_ALLOC, SNDBUF, FWD_ALLOC, WMEM_QUEUED, OPTMEM, BACKLOG, DROPS.
fn memory(value: &[u8]) -> Option<Memory> {
    Some(Memory {
        rmem_alloc: u32_at(value, 0)?,
        rcvbuf: u32_at(value, 4)?,
        sndbuf: u32_at(value, 12)?,
        wmem_queued: u32_at(value, 20)?,
        drops: u32_at(value, 32).unwrap_or(0),
    })
}

fn endpoint(family: u8, address: &[u8], port: &[u8]) -> Option<Endpoint> {
    let ip = match family {
        AF_INET => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(address.get(..4)?).ok()?)),
        // An IPv4 connection of an IPv6 socket is one over IPv4.
        AF_INET6 => Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?).to_canonical(),
        _ => return None,
    };
    Some(Endpoint { ip, port: u16::from_be_bytes(port.try_into().ok()?) })
}

fn aligned(len: usize) -> usize {
    len.next_multiple_of(4).max(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut out = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        out.extend(kind.to_ne_bytes());
        out.extend([0; 10]);
        out.extend(body);
        out
    }

    fn socket() -> Vec<u8> {
        let mut body = vec![0; MESSAGE];
        (body[0], body[1], body[2], body[3]) = (AF_INET, 1, 1, 2);
        body[52..56].copy_from_slice(&204u32.to_ne_bytes());
        body[4..8].copy_from_slice(&[0x1f, 0x90, 0x9c, 0x40]);
        body[8..12].copy_from_slice(&[10, 0, 0, 1]);
        body[24..28].copy_from_slice(&[10, 0, 0, 2]);
        body[44..52].copy_from_slice(&7u64.to_ne_bytes());
        body[68..72].copy_from_slice(&99u32.to_ne_bytes());
        let mut info = vec![0; 248];
        info[80..84].copy_from_slice(&17u32.to_ne_bytes());
        for (kind, value) in [(INET_DIAG_INFO, &info[..]), (INET_DIAG_CONG, b"cubic\0"), (77, b"x")] {
            body.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        message(SOCK_DIAG_BY_FAMILY, &body)
    }

    fn read(bytes: &[u8]) -> (Vec<Sample>, Parsed) {
        let mut out = Vec::new();
        let parsed = parse(bytes, &mut out);
        (out, parsed)
    }

    #[test]
    fn a_socket_is_read() {
        let (samples, parsed) = read(&[socket(), message(NLMSG_DONE, &[0; 4])].concat());
        assert_eq!((samples.len(), parsed), (1, Parsed::Done));
        let s = &samples[0];
        assert_eq!(
            (s.local.to_string(), s.peer.to_string()),
            ("10.0.0.1:8080".into(), "10.0.0.2:40000".into())
        );
        assert_eq!((s.cookie, s.inode, s.retransmits, s.congestion.name()), (7, 99, 2, "cubic"));
        assert_eq!(s.expires, Some(Nanos::millis(204)));
        assert_eq!(s.info.map(|i| (i.cwnd, i.snd_wnd)), Some((17, Some(0))));
    }

    #[test]
    fn a_refusal_is_told() {
        assert_eq!(read(&message(NLMSG_ERROR, &(-13i32).to_ne_bytes())).1, Parsed::Refused(13));
    }

    /// Whatever the bytes are: no panic, and an end.
    #[test]
    fn damaged_answers_end() {
        let whole = [socket(), socket()].concat();
        for cut in 0..whole.len() {
            let (samples, parsed) = read(&whole[..cut]);
            assert!(samples.len() <= 2 && (parsed == Parsed::More || parsed == Parsed::Malformed), "{cut}");
        }
        let mut n = 1u32;
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = (n >> 8) as usize % bytes.len();
                bytes[at] = n as u8;
            }
            let _ = read(&bytes);
        }
    }
}
