//! IPv4, IPv6 and what may stand between them and TCP.

use crate::bytes::{be16, be32};
use crate::encap;
use crate::icmp;
use crate::tunnel;
use crate::walk::{Fragment, Layer, Rest, Step, Verdict, Walk};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpwhy_base::Trouble;

/// IP headers within each other; real networks have three or four.
const MAX_DEPTH: u8 = 8;

/// IP whose version the first bits tell.
#[inline]
pub(crate) fn ip<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    match r.data.first()? >> 4 {
        4 => ip4(r, walk),
        6 => ip6(r, walk),
        _ => Some(Step::End(Verdict::NotTcp)),
    }
}

/// RFC 791 3.1.
#[inline]
pub(crate) fn ip4<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    let h = r.data.first_chunk::<20>()?;
    let header = u32::from(h[0] & 15) * 4;
    let total = u32::from(u16::from_be_bytes([h[2], h[3]]));
    if h[0] >> 4 != 4 || header < 20 || deeper(walk) {
        return None;
    }
    let total = if total == 0 {
        // Segmentation offload: the hardware fills the length in later, for each piece. Frames above 64 KiB
        // cannot have it at all (Linux: "Big TCP", since 6.3 for IPv4).
        walk.trouble |= Trouble::ZERO_IP_LEN;
        r.len
    } else {
        walk.trouble &= !Trouble::ZERO_IP_LEN;
        if walk.bounded { total.min(r.len) } else { total }
    };
    walk.bounded = false;
    // A total shorter than the header contradicts itself.
    total.checked_sub(header)?;
    let payload = r.limit(total).skip(header as usize)?;
    walk.src = IpAddr::V4(Ipv4Addr::new(h[12], h[13], h[14], h[15]));
    walk.dst = IpAddr::V4(Ipv4Addr::new(h[16], h[17], h[18], h[19]));
    let id = u16::from_be_bytes([h[4], h[5]]);
    walk.ip_id = Some(id);
    walk.ttl = h[8];
    let fragment = u16::from_be_bytes([h[6], h[7]]);
    if fragment & 0x3fff != 0 {
        let offset = u32::from(fragment & 0x1fff) * 8;
        let more = fragment & 0x2000 != 0;
        return Some(Step::Fragment(Fragment { id: id.into(), protocol: h[9], offset, more, rest: payload }));
    }
    Some(Step::Go(Layer::Protocol(h[9]), payload))
}

/// RFC 8200 3.
#[inline]
pub(crate) fn ip6<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    let h = r.data.first_chunk::<40>()?;
    if h[0] >> 4 != 6 || deeper(walk) {
        return None;
    }
    walk.src = IpAddr::V6(Ipv6Addr::from(*h.get(8..24)?.first_chunk::<16>()?));
    walk.dst = IpAddr::V6(Ipv6Addr::from(*h.get(24..40)?.first_chunk::<16>()?));
    walk.ip_id = None;
    walk.ttl = h[7];
    let payload = r.skip(40)?;
    let length = u32::from(u16::from_be_bytes([h[4], h[5]]));
    let payload = if length == 0 {
        // As for IPv4; or a jumbogram, whose option corrects this.
        walk.trouble |= Trouble::ZERO_IP_LEN;
        payload
    } else {
        walk.trouble &= !Trouble::ZERO_IP_LEN;
        payload.limit(if walk.bounded { length.min(payload.len) } else { length })
    };
    walk.bounded = false;
    Some(Step::Go(Layer::Protocol(h[6]), payload))
}

/// Counts an IP header; true if there are too many.
#[inline]
fn deeper(walk: &mut Walk) -> bool {
    walk.depth += 1;
    walk.depth > MAX_DEPTH
}

/// What follows an IP header or an IPv6 extension header.
#[inline]
pub(crate) fn protocol<'a>(number: u8, r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    match number {
        6 => Some(Step::Go(Layer::Tcp, r)),
        17 => tunnel::udp(r, walk),
        4 => {
            walk.saw(encap::IPIP);
            r.go(0, Layer::Ip4)
        }
        41 => {
            walk.saw(encap::SIX_IN_FOUR);
            r.go(0, Layer::Ip6)
        }
        47 => tunnel::gre(r, walk),
        // MPLS in IP (RFC 4023 3).
        137 => r.go(0, Layer::Mpls),
        // RFC 3378 3: two bytes of version.
        97 => {
            walk.saw(encap::ETHERIP);
            r.go(2, Layer::Ethernet)
        }
        0 => hop_by_hop(r, walk),
        // Routing, destination options, mobility: next header, length in 8 bytes beyond the first 8.
        43 | 60 | 135 => r.go(8 + usize::from(*r.data.get(1)?) * 8, Layer::Protocol(*r.data.first()?)),
        // Authentication header: length in 4 bytes, less 2 (RFC 4302 2.2).
        51 => r.go(8 + usize::from(*r.data.get(1)?) * 4, Layer::Protocol(*r.data.first()?)),
        44 => fragment_header(r),
        1 | 58 => Some(icmp::icmp(number, r)),
        _ => Some(Step::End(Verdict::NotTcp)),
    }
}

/// Hop-by-hop options, where the length of a jumbogram stands (RFC 2675 2).
fn hop_by_hop<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    let next = *r.data.first()?;
    let header = 8 + usize::from(*r.data.get(1)?) * 8;
    let mut options = r.data.get(2..header)?;
    let mut r = r;
    while let [kind, rest @ ..] = options {
        // Pad1 has no length.
        if *kind == 0 {
            options = rest;
            continue;
        }
        let Some((len, value)) = rest.split_first() else { break };
        if (*kind, *len) == (0xc2, 4) && walk.trouble & Trouble::ZERO_IP_LEN != 0 {
            r = r.limit(be32(value, 0)?);
            walk.trouble &= !Trouble::ZERO_IP_LEN;
        }
        options = value.get(usize::from(*len)..).unwrap_or_default();
    }
    r.go(header, Layer::Protocol(next))
}

/// RFC 8200 4.5. A packet that is its own only fragment ("atomic", RFC 6946) is just a packet.
fn fragment_header(r: Rest<'_>) -> Option<Step<'_>> {
    let protocol = *r.data.first()?;
    let field = be16(r.data, 2)?;
    let id = be32(r.data, 4)?;
    let rest = r.skip(8)?;
    let (offset, more) = (u32::from(field & !7), field & 1 == 1);
    if offset == 0 && !more {
        return Some(Step::Go(Layer::Protocol(protocol), rest));
    }
    Some(Step::Fragment(Fragment { id, protocol, offset, more, rest }))
}
