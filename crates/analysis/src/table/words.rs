//! The ends of a packet as two words, by which connections are told apart: to compare and hash addresses as
//! they are takes several times as long.

use std::net::{IpAddr, Ipv4Addr};
use tcpwhy_base::{Endpoint, Ends};

/// Of an address of IPv6, which does not fit: equal ends have equal words, but not the other way round.
const WIDE: u64 = 1 << 63;

/// Sender and receiver, or client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) src: u64,
    pub(super) dst: u64,
}

impl Words {
    /// Stand for no packet: they are wide, which are asked for more.
    pub(super) const NOBODY: Words = Words { src: u64::MAX, dst: u64::MAX };

    #[inline]
    pub(super) fn of(src: &Endpoint, dst: &Endpoint) -> Words {
        Words { src: word(src), dst: word(dst) }
    }

    /// They do not tell all of their ends.
    #[inline]
    pub(super) fn are_wide(self) -> bool {
        (self.src | self.dst) & WIDE != 0
    }

    /// Between the same ends the other way.
    #[inline]
    pub(super) fn turned(self) -> Words {
        Words { src: self.dst, dst: self.src }
    }

    /// The ends, of which they tell all.
    #[inline]
    pub(super) fn ends(self) -> Ends<Endpoint> {
        Ends::new(end(self.src), end(self.dst))
    }
}

#[inline]
fn end(word: u64) -> Endpoint {
    Endpoint { ip: IpAddr::V4(Ipv4Addr::from_bits((word >> 16) as u32)), port: word as u16 }
}

#[inline]
fn word(end: &Endpoint) -> u64 {
    let port = u64::from(end.port);
    match end.ip {
        IpAddr::V4(ip) => u64::from(ip.to_bits()) << 16 | port,
        IpAddr::V6(ip) => {
            let bits = ip.to_bits();
            // Most differ in their last bits, or in those of the network.
            let folded = (bits >> 64) as u64 ^ (bits as u64).rotate_left(16);
            (folded ^ port) | WIDE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ipv4_tell_all_of_their_ends() {
        let end = |ip: [u8; 4], port| Endpoint { ip: ip.into(), port };
        let ends = [
            end([0, 0, 0, 0], 0),
            end([0, 0, 0, 1], 0),
            end([0, 0, 0, 0], 1),
            end([255, 255, 255, 255], u16::MAX),
            end([1, 0, 0, 0], 256),
        ];
        for (i, a) in ends.iter().enumerate() {
            for (k, b) in ends.iter().enumerate() {
                assert_eq!(word(a) == word(b), i == k);
            }
            assert!(!Words::of(a, a).are_wide() && Words::of(a, a).ends().client == *a);
        }
    }

    #[test]
    fn words_of_ipv6_say_that_they_do_not() {
        let end = |n: u128, port| Endpoint { ip: IpAddr::V6(n.into()), port };
        let (a, b) = (end(1 << 64 | 7, 443), end(7, 443));
        assert!(Words::of(&a, &b).are_wide());
        let v4 = Endpoint { ip: [192, 0, 2, 1].into(), port: 443 };
        assert!(Words::of(&v4, &b).are_wide() && word(&a) != word(&b));
        assert_eq!(Words::of(&a, &b).turned(), Words::of(&b, &a));
    }
}
