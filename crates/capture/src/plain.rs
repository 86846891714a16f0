//! What nearly every frame is: Ethernet, IPv4 without options, no fragment, TCP whose options were captured.
//! The headers then lie at fixed places, and a few conditions tell so.

use crate::{options, tcp};
use std::net::{IpAddr, Ipv4Addr};
use tcpwhy_base::{Part, Segment, Seq, TcpFlags, Trouble};

/// Ethernet and IPv4.
const BEFORE: usize = 14 + 20;

/// Reads such a frame into `out`, but for what its record says of it; `trouble` has the bits of [`Trouble`]
/// that are known. If it is of another `part`: false. Anything else, and whatever is odd: nothing. What is in
/// `out` then means nothing.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as for Dissector::dissect")]
pub(crate) fn read(data: &[u8], trouble: u8, part: Part, out: &mut Segment) -> Option<bool> {
    let h = data.first_chunk::<{ BEFORE + 20 }>()?;
    let be16 = |at: usize| u16::from_be_bytes([h[at], h[at + 1]]);
    let be32 = |at: usize| u32::from_be_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]]);
    // EtherType, version and header length; then fragment and protocol.
    if be32(12) & 0xffff_ff00 != 0x0800_4500 || be32(20) & 0x3fff_00ff != 6 {
        return None;
    }
    let (offset, total) = (be16(46), usize::from(be16(16)));
    let header = usize::from(offset >> 12) * 4;
    let area = header.checked_sub(20).and_then(|n| data.get(BEFORE + 20..)?.split_at_checked(n));
    let ((area, rest), len) = (area?, total.checked_sub(20 + header)?);
    let (src, dst) = ((be32(26), be16(34)), (be32(30), be16(36)));
    if !part.has_v4(src, dst) {
        return Some(false);
    }
    // What asks for more than a copy comes first: what it needs is then done with.
    let cut = if rest.len() < len { Trouble::CUT_PAYLOAD } else { 0 };
    out.trouble = Trouble(trouble | cut);
    out.len = len as u32;
    out.flags = TcpFlags(offset & 0x0fff);
    // What is behind the packet is padding.
    tcp::take_payload(rest.get(..len).unwrap_or(rest), out);
    options::read(area, false, &mut out.options);
    out.src.ip = IpAddr::V4(Ipv4Addr::from_bits(src.0));
    out.dst.ip = IpAddr::V4(Ipv4Addr::from_bits(dst.0));
    out.src.port = src.1;
    out.dst.port = dst.1;
    out.link = 0;
    out.seq = Seq(be32(38));
    out.ack = Seq(be32(42));
    out.window = be16(48);
    out.ip_id = Some(be16(18));
    out.ttl = h[22];
    out.checksum = be16(50);
    Some(true)
}
