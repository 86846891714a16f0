//! Tunnels over IP and UDP. Each header is checked before it is believed, for a port proves nothing.

use crate::bytes::{be16, be32};
use crate::encap;
use crate::walk::{Layer, Rest, Step, Verdict, Walk};

/// Not TCP, as far as this program can see.
const NOT: Option<Step<'static>> = Some(Step::End(Verdict::NotTcp));

/// GRE (RFC 2784, 2890), version 1 as PPTP has it (RFC 2637 4.1), NVGRE (RFC 7637), ERSPAN.
pub(crate) fn gre<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACK: u16 = 0x0080;
    let (flags, protocol) = (be16(r.data, 0)?, be16(r.data, 2)?);
    let mut at = 4;
    if flags & 7 == 1 {
        walk.saw(encap::PPTP);
        // The "key" is a length and a call number that differs by direction. No sequence number: no data.
        if protocol != 0x880b || flags & SEQUENCE == 0 {
            return NOT;
        }
        at += if flags & ACK != 0 { 12 } else { 8 };
        return r.go(at, Layer::Ppp);
    }
    if flags & 7 != 0 || flags & ROUTING != 0 {
        return NOT;
    }
    walk.saw(encap::GRE);
    if flags & CHECKSUM != 0 {
        at += 4;
    }
    if flags & KEY != 0 {
        let key = be32(r.data, at)?;
        // The low byte of an NVGRE key names the flow, which differs by direction (RFC 7637 3.2).
        walk.tag(3, if protocol == 0x6558 { key >> 8 } else { key });
        at += 4;
    }
    if flags & SEQUENCE != 0 {
        at += 4;
    }
    match protocol {
        // ERSPAN (draft-foschiano-erspan): type I has no header, type II eight bytes.
        0x88be => {
            walk.saw(encap::ERSPAN);
            r.go(at + if flags & SEQUENCE != 0 { 8 } else { 0 }, Layer::Ethernet)
        }
        // Type III: twelve bytes, and eight more if the lowest bit is set; the frame type is 0 or 2.
        0x22eb => {
            walk.saw(encap::ERSPAN);
            let last = be16(r.data, at + 10)?;
            let more = if last & 1 == 1 { 8 } else { 0 };
            let inner = if last >> 10 & 0x1f == 2 { Layer::Ip } else { Layer::Ethernet };
            r.go(at + 12 + more, inner)
        }
        // WCCP: version 2 puts four bytes before the IP header.
        0x883e => r.go(at + if r.data.get(at)? >> 4 == 4 { 0 } else { 4 }, Layer::Ip4),
        // Aruba's access points: 802.11 without its check sequence (Wireshark, packet-gre.h).
        0x8200..=0x83f0 if protocol & 15 == 0 => r.go(at, Layer::Link(105)),
        // Below 1536 are no EtherTypes but, for instance, keep-alives (0).
        0..0x600 => NOT,
        t => r.go(at, Layer::EtherType(t)),
    }
}

/// UDP: only ports of known tunnels are looked into.
pub(crate) fn udp<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    let (from, to) = (be16(r.data, 0)?, be16(r.data, 2)?);
    let inner = match (from, to) {
        (_, 4789 | 8472) => vxlan,
        (_, 6081) => geneve,
        (2152, _) | (_, 2152) => gtp,
        (3544, _) | (_, 3544) => teredo,
        (1701, _) | (_, 1701) => l2tp,
        // RFC 8086: the source port only spreads flows.
        (_, 4754) => gre,
        (5072, _) | (_, 5072) => ayiya,
        _ => return NOT,
    };
    inner(r.skip(8)?, walk)
}

/// RFC 7348 5: the I flag and 24 bits of network. 8472 is the port Linux took before the RFC.
fn vxlan<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    if *r.data.first()? & 0x08 == 0 {
        return NOT;
    }
    walk.saw(encap::VXLAN);
    walk.tag(4, be32(r.data, 4)? >> 8);
    r.go(8, Layer::Ethernet)
}

/// RFC 8926 3.4: version 0, options in words, EtherType, 24 bits of network.
fn geneve<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    let first = *r.data.first()?;
    if first >> 6 != 0 {
        return NOT;
    }
    walk.saw(encap::GENEVE);
    walk.tag(5, be32(r.data, 4)? >> 8);
    r.go(8 + usize::from(first & 0x3f) * 4, Layer::EtherType(be16(r.data, 2)?))
}

/// GTP-U (3GPP TS 29.281 5): version 1, message 255 carries a packet. Its tunnel number differs by direction.
fn gtp<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    let [flags, 255, ..] = *r.data else { return NOT };
    if flags & 0xf0 != 0x30 {
        return NOT;
    }
    walk.saw(encap::GTP);
    if flags & 7 == 0 {
        return r.go(8, Layer::Ip);
    }
    // Any of the three flags brings all three fields; the last names the first extension header.
    let mut next = if flags & 4 != 0 { *r.data.get(11)? } else { 0 };
    let mut r = r.skip(12)?;
    while next != 0 {
        // Lengths are in words and count themselves; 0 would never end.
        let words = usize::from(*r.data.first()?);
        let Some(last) = (words * 4).checked_sub(1) else { return NOT };
        next = *r.data.get(last)?;
        r = r.skip(words * 4)?;
    }
    r.go(0, Layer::Ip)
}

/// RFC 4380 5.1.1: perhaps an authentication header, perhaps an origin, then IPv6.
fn teredo<'a>(mut r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    if let [0, 1, id, auth, ..] = *r.data {
        r = r.skip(13 + usize::from(id) + usize::from(auth))?;
    }
    if r.data.starts_with(&[0, 0]) {
        r = r.skip(8)?;
    }
    if r.data.first()? >> 4 != 6 {
        return NOT;
    }
    walk.saw(encap::TEREDO);
    r.go(0, Layer::Ip6)
}

/// RFC 2661 3.1: data messages. Tunnel and session numbers differ by direction.
fn l2tp<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = be16(r.data, 0)?;
    if flags & CONTROL != 0 || flags & 15 != 2 {
        return NOT;
    }
    walk.saw(encap::L2TP);
    let mut at = 6;
    if flags & LENGTH != 0 {
        at += 2;
    }
    if flags & SEQUENCE != 0 {
        at += 4;
    }
    if flags & OFFSET != 0 {
        at += 2 + usize::from(be16(r.data, at)?);
    }
    r.go(at, Layer::Ppp)
}

/// draft-massar-v6ops-ayiya-02, 3: lengths of identity and signature, operation, next header, time; then both.
fn ayiya<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    /// The operation that hands a packet on, and the next header of IPv6.
    const FORWARD: u8 = 1;
    const IPV6: u8 = 41;
    let [identity, signature, operation, next, ..] = *r.data else { return None };
    if operation & 15 != FORWARD || next != IPV6 {
        return NOT;
    }
    let at = 8 + (1 << (identity >> 4)) + usize::from(signature >> 4) * 4;
    if r.data.get(at)? >> 4 != 6 {
        return NOT;
    }
    walk.saw(encap::AYIYA);
    r.go(at, Layer::Ip6)
}
