//! The TCP header, wherever it was found.

use crate::bytes::{be16, be32};
use crate::{options, tls};
use tcpwhy_base::{Segment, Seq, TcpFlags, TcpOptions, Tls, Trouble, program};

/// Ports, sequence numbers, offset and flags: less is no use.
const LEAST: usize = 14;

/// No packet has more payload: Linux joins 524,280 bytes at most (`GSO_MAX_SIZE`), and jumbograms (RFC 2675)
/// pass no link. What says so has a damaged length.
const MOST: u32 = 1 << 24;

/// Reads the header at the front of `data` into `out`. `len` is the length by the IP header, of which
/// `data` was captured. Gives the bits of [`Trouble`], or nothing if it is no usable TCP header.
#[inline]
pub(crate) fn read(data: &[u8], len: u32, out: &mut Segment) -> Option<u8> {
    let Some(h) = data.first_chunk::<20>() else { return read_cut(data, len, out) };
    let header = u32::from(h[12] >> 4) * 4;
    // Less than the header is more than that, too.
    let length = len.wrapping_sub(header);
    if header < 20 || length > MOST {
        return None;
    }
    out.src.port = u16::from_be_bytes([h[0], h[1]]);
    out.dst.port = u16::from_be_bytes([h[2], h[3]]);
    out.seq = Seq(u32::from_be_bytes([h[4], h[5], h[6], h[7]]));
    out.ack = Seq(u32::from_be_bytes([h[8], h[9], h[10], h[11]]));
    out.flags = TcpFlags(u16::from_be_bytes([h[12], h[13]]) & 0x0fff);
    out.window = u16::from_be_bytes([h[14], h[15]]);
    out.checksum = u16::from_be_bytes([h[16], h[17]]);
    out.len = length;
    let Some((area, payload)) = data.get(20..).unwrap_or_default().split_at_checked(header as usize - 20)
    else {
        options::read(data.get(20..).unwrap_or_default(), true, &mut out.options);
        take_payload(&[], out);
        let cut_payload = if out.len > 0 { Trouble::CUT_PAYLOAD } else { 0 };
        return Some(Trouble::CUT_HEADER | cut_payload);
    };
    options::read(area, false, &mut out.options);
    take_payload(payload, out);
    Some(if payload.len() < out.len as usize { Trouble::CUT_PAYLOAD } else { 0 })
}

/// A header cut by the snap length.
#[cold]
fn read_cut(data: &[u8], len: u32, out: &mut Segment) -> Option<u8> {
    let h = data.first_chunk::<LEAST>()?;
    let header = u32::from(h[12] >> 4) * 4;
    // Less than the header is more than that, too.
    let length = len.wrapping_sub(header);
    if header < 20 || length > MOST {
        return None;
    }
    out.src.port = be16(h, 0)?;
    out.dst.port = be16(h, 2)?;
    out.seq = Seq(be32(h, 4)?);
    out.ack = Seq(be32(h, 8)?);
    out.flags = TcpFlags(be16(h, 12)? & 0x0fff);
    out.window = be16(data, 14).unwrap_or(0);
    out.checksum = be16(data, 16).unwrap_or(0);
    out.len = length;
    out.options = TcpOptions { damaged: header > 20, ..options::NONE };
    take_payload(&[], out);
    let cut_payload = if out.len > 0 { Trouble::CUT_PAYLOAD } else { 0 };
    Some(Trouble::CUT_HEADER | cut_payload)
}

/// What of the payload is kept.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as for Dissector::dissect")]
pub(crate) fn take_payload(payload: &[u8], out: &mut Segment) {
    (out.head, out.tls, out.program) = ([0; 8], Tls(0), None);
    // Half of all segments, and all of them where the snap length leaves the headers alone.
    if payload.is_empty() {
        out.head_len = 0;
        return;
    }
    begin(payload, out);
}

/// What a payload begins with.
#[inline(never)]
fn begin(payload: &[u8], out: &mut Segment) {
    if let Some(first) = payload.first_chunk() {
        (out.head, out.head_len) = (*first, 8);
    } else {
        out.head_len = payload.len() as u8;
        out.head.iter_mut().zip(payload).for_each(|(to, from)| *to = *from);
    }
    if matches!(payload.first(), Some(0x14..=0x17)) {
        out.tls = tls::records(payload, out.len);
    }
    if may_name(payload) {
        out.program = program::sender_of(payload);
    }
}

/// Whether a message begins so that its sender may be named in it: most segments are done with here.
#[inline]
fn may_name(payload: &[u8]) -> bool {
    let Some(head) = payload.first_chunk::<5>() else { return false };
    matches!(head[0], b'H' | b'G' | b'P' | b'D' | b'O' | b'C' | b'S' | b'2' | b'+' | b'-')
        || head[2..] == [0, 0, 10]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(words: u8, flags: u8) -> Vec<u8> {
        vec![0, 80, 4, 0, 0, 0, 0, 7, 0, 0, 0, 9, words << 4, flags, 1, 0, 0xab, 0xcd, 0, 0]
    }

    #[test]
    fn the_payload_length_is_the_ip_header_s() {
        let mut out = Segment::EMPTY;
        let trouble = read(&header(5, 0x18), 1480, &mut out);
        assert_eq!(trouble, Some(Trouble::CUT_PAYLOAD));
        assert_eq!((out.len, out.seq, out.window, out.checksum), (1460, Seq(7), 256, 0xabcd));
        assert!(out.flags.psh() && out.flags.ack());
    }

    #[test]
    fn cut_headers() {
        let whole = header(8, 0x10);
        for n in 0..20 {
            let mut out = Segment::EMPTY;
            let got = read(&whole[..n], 32, &mut out);
            assert_eq!(got, (n >= 14).then_some(Trouble::CUT_HEADER), "{n} bytes");
            assert_eq!(out.window, if n >= 16 { 256 } else { 0 }, "{n} bytes");
            assert_eq!(out.options.damaged, n >= 14);
        }
        let mut out = Segment::EMPTY;
        assert_eq!(read(&whole, 40, &mut out), Some(Trouble::CUT_HEADER | Trouble::CUT_PAYLOAD));
        assert_eq!(out.len, 8);
    }

    #[test]
    fn impossible_offsets() {
        let mut out = Segment::EMPTY;
        assert_eq!(read(&header(4, 0), 40, &mut out), None);
        assert_eq!(read(&header(6, 0), 20, &mut out), None, "header longer than the packet");
    }
}
