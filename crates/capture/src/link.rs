//! Link layers: from a frame to the network layer inside it. Numbers are the LINKTYPE values of
//! <https://www.tcpdump.org/linktypes.html>; header layouts are from the same pages.

use crate::bytes::{be16, be32, le16, le32};
use crate::walk::{Layer, Rest, Step, Verdict, Walk};
use crate::{encap, wifi};

/// Starts at the link layer that the capture names.
pub(crate) fn link<'a>(link_type: u32, r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    let next = |n, layer| r.go(n, layer);
    match link_type {
        0 | 108 => null(r),
        1 => next(0, Layer::Ethernet),
        // Token ring: two bytes, two addresses, and source routing if the top bit of the source is set.
        6 => {
            let routed = *r.data.get(8)? & 0x80 != 0;
            let routing = if routed { usize::from(*r.data.get(14)? & 0x1f) } else { 0 };
            next(14 + routing, Layer::Llc)
        }
        // ARCnet with BSD framing: two addresses, then as below.
        7 => arcnet(r, 2),
        9 | 50 | 166 | 204 => ppp(link_type, r),
        // FDDI: frame control and two addresses. Bit-swapped addresses do not matter here.
        10 => next(13, Layer::Llc),
        12 | 14 | 101 | 228 | 229 => next(0, Layer::Ip),
        51 => next(0, Layer::Pppoe),
        100 => next(0, Layer::Llc),
        104 => next(4, Layer::EtherType(be16(r.data, 2)?)),
        105 => wifi::dot11(r, 0, walk),
        // OpenBSD encapsulation: address family, SPI, flags.
        109 => next(12, Layer::Ip),
        113 => next(16, Layer::EtherType(be16(r.data, 14)?)),
        // OpenBSD pf log: its length in the first byte, padded.
        117 => next(usize::from(*r.data.first()?).next_multiple_of(4), Layer::Ip),
        119 => wifi::prism(r, walk),
        122 => next(16, Layer::Llc),
        127 => wifi::radiotap(r, walk),
        // ARCnet with Linux framing: two addresses and an offset.
        129 => arcnet(r, 4),
        163 => wifi::avs(r, walk),
        // PPI: version, flags, length, link type.
        192 => next(usize::from(le16(r.data, 2)?), Layer::Link(le32(r.data, 4)?)),
        219 => next(0, Layer::Mpls),
        // Solaris IPNET: a fixed header of 24 bytes.
        226 => next(24, Layer::Ip),
        239 => nflog(r),
        // Apple PKTAP: length, type, link type.
        258 => next(le32(r.data, 0)? as usize, Layer::Link(le32(r.data, 8)?)),
        276 => next(20, Layer::EtherType(be16(r.data, 0)?)),
        _ => Some(Step::End(Verdict::UnknownLink)),
    }
}

/// Two addresses, then a type or length.
#[inline]
pub(crate) fn ethernet(r: Rest<'_>) -> Option<Step<'_>> {
    r.go(14, Layer::EtherType(be16(r.data, 12)?))
}

/// IEEE EtherTypes; up to 1500 it is the length of an LLC frame (IEEE 802.3 3.2.6).
#[inline]
pub(crate) fn ether_type<'a>(t: u16, r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    match t {
        0x0800 => r.go(0, Layer::Ip4),
        0x86dd => r.go(0, Layer::Ip6),
        // 802.1Q, 802.1ad and the numbers used for stacked tags before it.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            walk.saw(encap::VLAN);
            // Identifier 0 only carries a priority (802.1Q 9.6), so it names no network.
            let id = be16(r.data, 0)? & 0x0fff;
            if id != 0 {
                walk.tag(1, u32::from(id));
            }
            r.go(4, Layer::EtherType(be16(r.data, 2)?))
        }
        0x8847 | 0x8848 => r.go(0, Layer::Mpls),
        0x8864 => r.go(0, Layer::Pppoe),
        0x880b => r.go(0, Layer::Ppp),
        0x6558 => r.go(0, Layer::Ethernet),
        // 802.1BR E-tag: six bytes of tag control.
        0x893f => {
            walk.saw(encap::ETAG);
            r.go(8, Layer::EtherType(be16(r.data, 6)?))
        }
        // VN-Tag (Cisco, before 802.1BR): four bytes of tag.
        0x8926 => {
            walk.saw(encap::VNTAG);
            r.go(6, Layer::EtherType(be16(r.data, 4)?))
        }
        // 802.1ah: flags and the 24 bits of the service, then a whole frame.
        0x88e7 => {
            walk.saw(encap::PBB);
            walk.tag(2, be32(r.data, 0)? & 0x00ff_ffff);
            r.go(4, Layer::Ethernet)
        }
        // HSR (IEC 62439-3): path and size, sequence number.
        0x892f => r.go(6, Layer::EtherType(be16(r.data, 4)?)),
        0x0000..=1500 | 0x8870 => r.go(0, Layer::Llc),
        _ => Some(Step::End(Verdict::NotTcp)),
    }
}

/// IEEE 802.2, with SNAP (RFC 1042).
pub(crate) fn llc(r: Rest<'_>) -> Option<Step<'_>> {
    match r.data {
        [0xaa, 0xaa | 0xab, 0x03, 0, 0, 0 | 0xf8, a, b, ..] => {
            r.go(8, Layer::EtherType(u16::from_be_bytes([*a, *b])))
        }
        // Bridged Ethernet (RFC 2684 5.2): two bytes of padding.
        [0xaa, 0xaa, 0x03, 0, 0x80, 0xc2, 0, 1 | 7, ..] => r.go(10, Layer::Ethernet),
        [0x06, 0x06, 0x03, ..] => r.go(3, Layer::Ip),
        _ => Some(Step::End(Verdict::NotTcp)),
    }
}

/// Address family of the host that captured, in its byte order.
fn null(r: Rest<'_>) -> Option<Step<'_>> {
    let family = be32(r.data, 0)?;
    let family = if family > 0xffff { family.swap_bytes() } else { family };
    match family {
        2 => r.go(4, Layer::Ip4),
        // AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, macOS.
        10 | 24 | 28 | 30 => r.go(4, Layer::Ip6),
        _ => Some(Step::End(Verdict::NotTcp)),
    }
}

fn ppp<'a>(link_type: u32, r: Rest<'a>) -> Option<Step<'a>> {
    let direction = usize::from(link_type == 204);
    match r.data {
        // Cisco HDLC on a line said to be PPP (RFC 1547 4.3.1): unicast or broadcast address.
        [0x0f | 0x8f, 0, a, b, ..] if link_type == 50 => {
            r.go(4, Layer::EtherType(u16::from_be_bytes([*a, *b])))
        }
        // pppd writes the direction in place of the address byte.
        [0 | 1, 3, ..] if link_type == 166 => r.go(2, Layer::Ppp),
        _ => r.go(direction, Layer::Ppp),
    }
}

/// PPP, with or without address and control (RFC 1662 3), protocol in one byte or two (RFC 1661 2).
pub(crate) fn ppp_protocol(r: Rest<'_>) -> Option<Step<'_>> {
    let r = if r.data.starts_with(&[0xff, 3]) { r.skip(2)? } else { r };
    let (n, protocol) = match r.data {
        [a, ..] if a & 1 == 1 => (1, u16::from(*a)),
        [a, b, ..] => (2, u16::from_be_bytes([*a, *b])),
        _ => return None,
    };
    match protocol {
        0x21 => r.go(n, Layer::Ip4),
        0x57 => r.go(n, Layer::Ip6),
        0x281 | 0x283 => r.go(n, Layer::Mpls),
        _ => Some(Step::End(Verdict::NotTcp)),
    }
}

/// RFC 2516 4: version and type 1, code 0 for data, session, length. Some concentrators count the padding
/// of the frame into the IP length; the length here is right then.
pub(crate) fn pppoe<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    walk.saw(encap::PPPOE);
    let [0x11, 0, _, _, a, b, ..] = *r.data else { return Some(Step::End(Verdict::NotTcp)) };
    let length = u32::from(u16::from_be_bytes([a, b]));
    // 0 is what segmentation offload leaves.
    if length == 0 {
        return r.go(6, Layer::Ppp);
    }
    walk.bounded = true;
    r.limit(length + 6).go(6, Layer::Ppp)
}

/// RFC 3032. What lies below the last label is told by its first bits (RFC 4385 3, RFC 4928).
pub(crate) fn mpls<'a>(mut r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    walk.saw(encap::MPLS);
    loop {
        let bottom = *r.data.get(2)? & 1 == 1;
        r = r.skip(4)?;
        if bottom {
            break;
        }
    }
    let carries_ip = |at| matches!(be16(r.data, at), Some(0x0800 | 0x86dd | 0x8100 | 0x88a8 | 0x8847));
    match r.data.first()? >> 4 {
        4 => r.go(0, Layer::Ip4),
        6 => r.go(0, Layer::Ip6),
        _ if carries_ip(12) => r.go(0, Layer::Ethernet),
        // A pseudowire's control word.
        0 if carries_ip(16) => r.go(4, Layer::Ethernet),
        _ => Some(Step::End(Verdict::NotTcp)),
    }
}

/// RFC 1201: type, flag, sequence number; RFC 1051 has the type only.
fn arcnet(r: Rest<'_>, at: usize) -> Option<Step<'_>> {
    match (*r.data.get(at)?, r.data.get(at + 1)?) {
        // An exception packet repeats the header after four bytes.
        (212, 0xff) => r.go(at + 8, Layer::Ip4),
        // Flag 0 is a whole packet. Odd: the first of several frames, whose rest does not matter here.
        (212, flag) if flag & 1 == 1 || *flag == 0 => r.go(at + 4, Layer::Ip4),
        (240, _) => r.go(at + 1, Layer::Ip4),
        _ => Some(Step::End(Verdict::NotTcp)),
    }
}

/// Linux netfilter log: family, version, resource, then attributes in the byte order of the host.
fn nflog(r: Rest<'_>) -> Option<Step<'_>> {
    /// NFULA_PAYLOAD of linux/netfilter/nfnetlink_log.h.
    const PAYLOAD: u16 = 9;
    let mut r = r.skip(4)?;
    loop {
        let kind = r.data.get(2..4)?;
        // All types are below 256: the byte that is zero tells the order.
        let swap = kind[0] == 0 && kind[1] != 0;
        let read = |at| if swap { be16(r.data, at) } else { le16(r.data, at) };
        let (len, kind) = (usize::from(read(0)?), read(2)?);
        if len < 4 {
            return None;
        }
        if kind & 0x7fff == PAYLOAD {
            return r.go(4, Layer::Ip);
        }
        r = r.skip(len.next_multiple_of(4))?;
    }
}
