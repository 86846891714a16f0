//! IEEE 802.11 data frames and the pseudo headers put before them.

use crate::bytes::{be16, be32, le16, le32};
use crate::walk::{Layer, Rest, Step, Verdict, Walk};
use tcpwhy_base::Trouble;

/// Data frames. `align` is the multiple to which the header was padded by the driver, 0 for none.
pub(crate) fn dot11<'a>(r: Rest<'a>, align: usize, walk: &mut Walk) -> Option<Step<'a>> {
    let not = Some(Step::End(Verdict::NotTcp));
    // IEEE 802.11 9.2.4.1: type in bits 2-3 (2 is data), subtype in 4-7 (bit 2 of it: no data, bit 3: QoS).
    let control = le16(r.data, 0)?;
    let (kind, subtype) = (control >> 2 & 3, control >> 4 & 15);
    if control & 3 != 0 || kind != 2 || subtype & 4 != 0 {
        return not;
    }
    walk.trouble |= if control & 0x0800 != 0 { Trouble::AIR | Trouble::RETRY } else { Trouble::AIR };
    if control & 0x4000 != 0 {
        return Some(Step::End(Verdict::Encrypted));
    }
    // Four addresses if both the "to" and "from distribution system" bits are set.
    let mut header = if control & 0x0300 == 0x0300 { 30 } else { 24 };
    let mut aggregate = false;
    if subtype & 8 != 0 {
        aggregate = r.data.get(header)? & 0x80 != 0;
        header += 2;
        // The HT control field is there in QoS frames with the order bit.
        if control & 0x8000 != 0 {
            header += 4;
        }
    }
    if align != 0 {
        header = header.next_multiple_of(align);
    }
    if aggregate {
        // An A-MSDU holds several packets, each with addresses and a length: the first is read.
        header += 14;
    }
    r.go(header, Layer::Llc)
}

/// <https://www.radiotap.org>: version, pad, length, presence words, fields.
pub(crate) fn radiotap<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    let length = usize::from(le16(r.data, 2)?);
    let present = le32(r.data, 4)?;
    let mut at = 8;
    let mut word = present;
    // Bit 31 announces another presence word.
    while word & 0x8000_0000 != 0 {
        word = le32(r.data, at)?;
        at += 4;
    }
    // Field 0 is a time of eight bytes, aligned; field 1 the flags, where 0x20 means padding before data.
    if present & 1 != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if present & 2 != 0 && at < length { *r.data.get(at)? } else { 0 };
    dot11(r.skip(length)?, if flags & 0x20 != 0 { 4 } else { 0 }, walk)
}

/// Prism: message code and length; some drivers write an AVS header under this link type.
pub(crate) fn prism<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    // WLAN_CAPTURE_COOKIE of the AVS format, its version in the last byte.
    if be32(r.data, 0)? & 0xffff_f000 == 0x8021_1000 {
        return avs(r, walk);
    }
    // The length is in the byte order of the host; it is below 65536.
    let length = if be16(r.data, 4)? == 0 { be32(r.data, 4)? } else { le32(r.data, 4)? };
    dot11(r.skip(length as usize)?, 0, walk)
}

/// AVS: version and length, both big-endian.
pub(crate) fn avs<'a>(r: Rest<'a>, walk: &mut Walk) -> Option<Step<'a>> {
    dot11(r.skip(be32(r.data, 4)? as usize)?, 0, walk)
}
