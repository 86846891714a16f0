//! Connections of which one packet was seen so far: that packet, and nothing else. Most of a scan never become more.

use super::index::Key;
use super::words::Words;
use crate::conn::is_of_client;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpwhy_base::{Endpoint, Nanos, Segment, Seq, TcpFlags, TcpOptions, Trouble};

/// The packet of such a connection, without what packets without payload do not have; `A` is an address.
#[derive(Clone, Copy, Debug)]
struct Lone<A> {
    /// Halves of 64 bits, the lower one first: so nothing is lost to alignment.
    time: [u32; 2],
    frame: [u32; 2],
    src: A,
    dst: A,
    link: u32,
    seq: u32,
    ack: u32,
    stamps: [u32; 2],
    order: u32,
    ports: [u16; 2],
    flags: u16,
    window: u16,
    ip_id: u16,
    checksum: u16,
    mss: u16,
    file: u16,
    ttl: u8,
    wscale: u8,
    /// Which of the fields above are there, and other bits.
    has: u8,
    trouble: u8,
}

/// A little of such a packet: where there are millions, to make them whole takes longer than to look at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Glance {
    pub(super) time: Nanos,
    pub(super) frame: u64,
    /// It is a SYN that answers nothing.
    pub(super) asks: bool,
    /// The [words](Address::word) of its ends, and of their addresses alone.
    pub(super) src: u64,
    pub(super) dst: u64,
    pub(super) src_host: u64,
    pub(super) dst_host: u64,
}

/// An address that ends are made of.
trait Address: Copy + Into<IpAddr> {
    /// It and a port in 64 bits.
    fn word(self, port: u16) -> u64;
}

impl Address for Ipv4Addr {
    #[inline]
    fn word(self, port: u16) -> u64 {
        u64::from(self.to_bits()) << 16 | u64::from(port)
    }
}

/// The bit that tells the word of an IPv6 end.
pub(super) const WORD_V6: u64 = 1 << 63;

impl Address for Ipv6Addr {
    /// A mix of its bits, which two of a million addresses share once in millions of captures.
    fn word(self, port: u16) -> u64 {
        let address = self.to_bits();
        let mix = |n: u64| (n ^ n >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = mix(mix(address as u64) ^ (address >> 64) as u64);
        mix(mixed ^ u64::from(port)) | WORD_V6
    }
}

const STAMPS: u8 = 1;
const MSS: u8 = 2;
const WSCALE: u8 = 4;
const IP_ID: u8 = 8;
const SACK_PERMITTED: u8 = 16;
const DAMAGED: u8 = 32;

const fn halves(n: u64) -> [u32; 2] {
    [n as u32, (n >> 32) as u32]
}

const fn whole([low, high]: [u32; 2]) -> u64 {
    low as u64 | (high as u64) << 32
}

impl<A: Address> Lone<A> {
    fn pack(segment: &Segment, src: A, dst: A) -> Lone<A> {
        let o = &segment.options;
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let (stamp, echo) = o.timestamps.unwrap_or_default();
        Lone {
            time: halves(segment.time.0 as u64),
            frame: halves(segment.frame),
            src,
            dst,
            link: segment.link,
            seq: segment.seq.0,
            ack: segment.ack.0,
            stamps: [stamp, echo],
            order: o.order,
            ports: [segment.src.port, segment.dst.port],
            flags: segment.flags.0,
            window: segment.window,
            ip_id: segment.ip_id.unwrap_or_default(),
            checksum: segment.checksum,
            mss: o.mss.unwrap_or_default(),
            file: segment.file,
            ttl: segment.ttl,
            wscale: o.wscale.unwrap_or_default(),
            has: bit(o.timestamps.is_some(), STAMPS)
                | bit(o.mss.is_some(), MSS)
                | bit(o.wscale.is_some(), WSCALE)
                | bit(segment.ip_id.is_some(), IP_ID)
                | bit(o.sack_permitted, SACK_PERMITTED)
                | bit(o.damaged, DAMAGED),
            trouble: segment.trouble.0,
        }
    }

    fn ends(&self) -> (Endpoint, Endpoint) {
        let end = |ip: A, port| Endpoint { ip: ip.into(), port };
        (end(self.src, self.ports[0]), end(self.dst, self.ports[1]))
    }

    #[inline(always)]
    fn glance(&self) -> Glance {
        let (flags, [from, to]) = (TcpFlags(self.flags), self.ports);
        Glance {
            time: Nanos(whole(self.time) as i64),
            frame: whole(self.frame),
            asks: flags.syn() && !flags.ack(),
            src: self.src.word(from),
            dst: self.dst.word(to),
            src_host: self.src.word(0),
            dst_host: self.dst.word(0),
        }
    }

    fn unpack(&self) -> Segment {
        let has = |bit| self.has & bit != 0;
        let (src, dst) = self.ends();
        Segment {
            time: Nanos(whole(self.time) as i64),
            frame: whole(self.frame),
            file: self.file,
            src,
            dst,
            link: self.link,
            seq: Seq(self.seq),
            ack: Seq(self.ack),
            flags: TcpFlags(self.flags),
            window: self.window,
            ip_id: has(IP_ID).then_some(self.ip_id),
            ttl: self.ttl,
            checksum: self.checksum,
            options: TcpOptions {
                timestamps: has(STAMPS).then_some((self.stamps[0], self.stamps[1])),
                mss: has(MSS).then_some(self.mss),
                wscale: has(WSCALE).then_some(self.wscale),
                sack_permitted: has(SACK_PERMITTED),
                order: self.order,
                damaged: has(DAMAGED),
                ..TcpOptions::default()
            },
            trouble: Trouble(self.trouble),
            ..Segment::EMPTY
        }
    }
}

/// Where a packet is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(u32);

/// The bit of [`At`] that tells an IPv6 packet.
const V6: u32 = 1 << 31;

/// Room for packets of one address family, used again. It grows by pieces: where there are millions, to move
/// them into larger room would take as long as to keep them.
#[derive(Debug)]
struct Slab<A> {
    pieces: Vec<Vec<Lone<A>>>,
    free: Vec<u32>,
}

/// Packets of a piece: a quarter of a megabyte.
const PIECE: usize = 4_096;

impl<A> Default for Slab<A> {
    fn default() -> Slab<A> {
        Slab { pieces: Vec::new(), free: Vec::new() }
    }
}

impl<A> Slab<A> {
    fn keep(&mut self, lone: Lone<A>) -> u32 {
        if let Some(at) = self.free.pop() {
            self.pieces[at as usize / PIECE][at as usize % PIECE] = lone;
            return at;
        }
        match self.pieces.last_mut() {
            Some(last) if last.len() < PIECE => last.push(lone),
            last => {
                // The first grows as it must: there may be no more than a few.
                let mut next = Vec::with_capacity(if last.is_some() { PIECE } else { 0 });
                next.push(lone);
                self.pieces.push(next);
            }
        }
        let last = self.pieces.last().map_or(0, Vec::len);
        ((self.pieces.len() - 1) * PIECE + last - 1) as u32
    }

    #[inline]
    fn at(&self, at: u32) -> &Lone<A> {
        &self.pieces[at as usize / PIECE][at as usize % PIECE]
    }
}

/// The packets of all connections that have one.
#[derive(Debug, Default)]
pub(super) struct Lones {
    v4: Slab<Ipv4Addr>,
    v6: Slab<Ipv6Addr>,
}

impl Lones {
    /// Keeps the first packet of a connection, if it is one without payload that closes nothing. What it does
    /// not keep of a packet only those with payload or SACK blocks have.
    pub(super) fn keep(&mut self, segment: &Segment) -> Option<At> {
        let plain = segment.len == 0 && segment.head_len == 0 && segment.options.sack_len == 0;
        if !plain || segment.flags.fin() || !segment.tls.is_none() || segment.program.is_some() {
            return None;
        }
        match (segment.src.ip, segment.dst.ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => Some(At(self.v4.keep(Lone::pack(segment, a, b)))),
            (IpAddr::V6(a), IpAddr::V6(b)) => Some(At(self.v6.keep(Lone::pack(segment, a, b)) | V6)),
            _ => None,
        }
    }

    /// What of the packet that is kept there tells a scan: of what is not asked for nothing is made.
    #[inline(always)]
    pub(super) fn glance(&self, at: At) -> Glance {
        match at.0 & V6 {
            0 => self.v4.at(at.0).glance(),
            _ => self.v6.at(at.0 & !V6).glance(),
        }
    }

    /// The packet that is kept there.
    pub(super) fn get(&self, at: At) -> Segment {
        match at.0 & V6 {
            0 => self.v4.at(at.0).unpack(),
            _ => self.v6.at(at.0 & !V6).unpack(),
        }
    }

    /// Sender, receiver and link of the packet that is kept there.
    #[inline]
    pub(super) fn key(&self, at: At) -> (Endpoint, Endpoint, u32) {
        let ((a, b), link) = match at.0 & V6 {
            0 => {
                let lone = self.v4.at(at.0);
                (lone.ends(), lone.link)
            }
            _ => {
                let lone = self.v6.at(at.0 & !V6);
                (lone.ends(), lone.link)
            }
        };
        (a, b, link)
    }

    /// Whether the client of the connection whose packet is kept there sent the segment with this key;
    /// `None`: it is of another one.
    #[inline]
    pub(super) fn is_from_client(&self, at: At, wanted: &Key<'_>) -> Option<bool> {
        if at.0 & V6 != 0 {
            return self.is_from_client_of_any(at, wanted);
        }
        let lone = self.v4.at(at.0);
        let (src, dst) = lone.ends();
        let words = Words::of(&src, &dst);
        let same_way = words == wanted.words;
        if !same_way && words != wanted.words.turned() || lone.link != wanted.link {
            return None;
        }
        Some(words.src == words.dst || same_way == is_of_client(TcpFlags(lone.flags), &src, &dst))
    }

    #[cold]
    fn is_from_client_of_any(&self, at: At, wanted: &Key<'_>) -> Option<bool> {
        let (src, dst, link) = self.key(at);
        let same_way = (*wanted.src, *wanted.dst) == (src, dst);
        if link != wanted.link || !same_way && (*wanted.dst, *wanted.src) != (src, dst) {
            return None;
        }
        // Of a packet to its own sender both are true, and the first counts.
        Some(src == dst || same_way == is_of_client(self.get(at).flags, &src, &dst))
    }

    /// Takes the packet that is kept there; its room is free again.
    pub(super) fn take(&mut self, at: At) -> Segment {
        let segment = self.get(at);
        match at.0 & V6 {
            0 => self.v4.free.push(at.0),
            _ => self.v6.free.push(at.0 & !V6),
        }
        segment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back_whole() {
        let v4 = Endpoint { ip: [192, 0, 2, 1].into(), port: 40_000 };
        let v6 = Endpoint { ip: [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(), port: 443 };
        let options = TcpOptions {
            timestamps: Some((7, u32::MAX)),
            mss: Some(1460),
            wscale: Some(14),
            sack_permitted: true,
            order: 0x4321_0fed,
            damaged: true,
            ..TcpOptions::default()
        };
        let whole = Segment {
            time: Nanos(-5),
            frame: u64::MAX - 3,
            file: 9,
            link: 77,
            seq: Seq(u32::MAX),
            ack: Seq(3),
            flags: TcpFlags(TcpFlags::SYN | TcpFlags::ECE),
            window: 65_535,
            ip_id: Some(0),
            ttl: 255,
            checksum: 0xbeef,
            trouble: Trouble(63),
            options,
            ..Segment::EMPTY
        };
        let bare = Segment { ip_id: None, options: TcpOptions::default(), ..whole };
        let mut lones = Lones::default();
        for segment in [whole, bare] {
            for end in [v4, v6] {
                let segment = Segment { src: end, dst: Endpoint { port: 1, ..end }, ..segment };
                let at = lones.keep(&segment).unwrap();
                assert_eq!(lones.key(at), (segment.src, segment.dst, segment.link));
                assert_eq!(format!("{:?}", lones.get(at)), format!("{segment:?}"));
                let glance = lones.glance(at);
                assert_eq!((glance.time, glance.frame), (segment.time, segment.frame));
                assert!(glance.asks, "of {segment:?}");
                assert_eq!([glance.src, glance.dst].map(|word| word & WORD_V6 != 0), [end.ip.is_ipv6(); 2]);
                assert_eq!(glance.src_host, glance.dst_host, "one address");
                assert_ne!(glance.src, glance.dst, "other ports");
                assert_eq!(format!("{:?}", lones.take(at)), format!("{segment:?}"));
                assert_eq!(lones.keep(&segment), Some(at), "the room is used again");
            }
        }
    }

    #[test]
    fn what_has_more_is_not_kept_so() {
        let mut lones = Lones::default();
        let with = |change: fn(&mut Segment)| {
            let mut segment = Segment::EMPTY;
            change(&mut segment);
            segment
        };
        assert!(lones.keep(&Segment::EMPTY).is_some());
        assert!(lones.keep(&with(|s| s.len = 1)).is_none());
        assert!(lones.keep(&with(|s| s.options.sack_len = 1)).is_none());
        assert!(lones.keep(&with(|s| s.flags = TcpFlags(TcpFlags::FIN))).is_none());
    }

    #[test]
    fn they_are_small() {
        assert_eq!((size_of::<Lone<Ipv4Addr>>(), size_of::<Lone<Ipv6Addr>>()), (68, 92));
    }
}
