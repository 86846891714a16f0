//! The classic format: draft-ietf-opsawg-pcap.

use crate::bytes::Order;
use crate::error::Damage;
use crate::input::Buffer;
use crate::record::{MAX_RECORD, Record, Stop};
use tcpwhy_base::Nanos;

/// What stands before a packet: two times and two lengths.
const HEADER: usize = 16;

/// What the file header says.
#[derive(Clone)]
pub(crate) struct Pcap {
    order: Order,
    link_type: u32,
    /// Nanoseconds per unit of the fraction field.
    unit: u32,
    /// 16, or 24 in files of the "modified" libpcap of Alexey Kuznetsov.
    header: usize,
    swapped: Swapped,
}

/// In old files the two lengths of a record are the other way round: always below version 2.3, sometimes
/// in 2.3 (libpcap, sf-pcap.c).
#[derive(Clone, Copy)]
enum Swapped {
    Never,
    Maybe,
    Always,
}

impl Pcap {
    /// Whether a file may begin with this.
    pub(crate) fn is_magic(magic: &[u8; 4]) -> bool {
        kind(magic).is_some()
    }

    /// Reads the file header, if it is one.
    pub(crate) fn begin(head: &[u8; 24]) -> Option<Pcap> {
        let (order, unit, header) = kind(head.first_chunk()?)?;
        // The major version has been 2 since 1990; libpcap refuses anything below.
        let minor = order.u16(*head.get(6..)?.first_chunk()?);
        let swapped = match minor {
            0..3 => Swapped::Always,
            3 => Swapped::Maybe,
            _ => Swapped::Never,
        };
        // The upper six bits tell the length of the FCS (libpcap: LT_LINKTYPE, LT_FCS_LENGTH).
        let link_type = order.at(head, 20) & 0x03ff_ffff;
        Some(Pcap { order, link_type, unit, header, swapped })
    }

    /// The record at the front of the buffer.
    pub(crate) fn next(&self, buffer: &mut Buffer) -> Result<Option<Record>, Stop> {
        if !buffer.need(self.header)? {
            return if buffer.bytes().is_empty() { Ok(None) } else { Err(Stop::Damage(Damage::Cut)) };
        }
        let Some(head) = buffer.bytes().first_chunk::<16>() else { return Ok(None) };
        let caplen = self.lengths(head).0;
        if caplen > MAX_RECORD {
            return Err(Stop::Damage(Damage::Length(caplen)));
        }
        if !buffer.need(self.header + caplen as usize)? {
            return Err(Stop::Damage(Damage::Cut));
        }
        Ok(self.whole(buffer.bytes()))
    }

    /// The file is one of those that are written today, on nearly every machine.
    pub(crate) fn is_usual(&self) -> bool {
        self.order == Order::Little && self.header == HEADER && matches!(self.swapped, Swapped::Never)
    }

    /// The record at the front of `bytes`, if it is there to its end.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Reader::next")]
    pub(crate) fn whole(&self, bytes: &[u8]) -> Option<Record> {
        self.record(bytes, self.order, self.header, self.swapped)
    }

    /// The record at the front of `bytes`, if it is there to its end, of a file that is
    /// [usual](Pcap::is_usual): what is known of it is not looked up for each record.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Reader::next")]
    pub(crate) fn whole_usual(&self, bytes: &[u8]) -> Option<Record> {
        self.record(bytes, Order::Little, HEADER, Swapped::Never)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Reader::next")]
    fn record(&self, bytes: &[u8], order: Order, header: usize, swapped: Swapped) -> Option<Record> {
        let head = bytes.first_chunk::<16>()?;
        let (caplen, len) = lengths(head, order, swapped);
        let total = header + caplen as usize;
        if caplen > MAX_RECORD || total > bytes.len() {
            return None;
        }
        let nanos = u64::from(order.at(head, 4)) * u64::from(self.unit);
        let secs = u64::from(order.at(head, 0));
        Some(Record {
            // At most 2^32 s and 2^32 us: far below the limits of 64 bits.
            time: Nanos((secs * 1_000_000_000 + nanos) as i64),
            bad_time: nanos >= 1_000_000_000,
            link_type: self.link_type,
            len: len.max(caplen),
            before: header,
            caplen: caplen as usize,
            total,
        })
    }

    /// When the record was stamped whose first bytes these are, and how long it is.
    pub(crate) fn glance(&self, head: &[u8]) -> Option<(Option<Nanos>, usize)> {
        let head = head.first_chunk::<16>()?;
        let caplen = Some(self.lengths(head).0).filter(|&n| n <= MAX_RECORD)?;
        let nanos = u64::from(self.order.at(head, 4)) * u64::from(self.unit);
        let time = Nanos((u64::from(self.order.at(head, 0)) * 1_000_000_000 + nanos) as i64);
        Some(((nanos < 1_000_000_000).then_some(time), self.header + caplen as usize))
    }

    fn lengths(&self, head: &[u8; 16]) -> (u32, u32) {
        lengths(head, self.order, self.swapped)
    }
}

/// Captured and original length.
#[inline]
fn lengths(head: &[u8; 16], order: Order, swapped: Swapped) -> (u32, u32) {
    let (caplen, len) = (order.at(head, 8), order.at(head, 12));
    let swap = match swapped {
        Swapped::Never => false,
        Swapped::Maybe => caplen > len,
        Swapped::Always => true,
    };
    if swap { (len, caplen) } else { (caplen, len) }
}

/// Byte order, unit of the fraction, length of a record header.
fn kind(magic: &[u8; 4]) -> Option<(Order, u32, usize)> {
    let little = u32::from_le_bytes(*magic);
    let (order, value) = match little & 0xff {
        0xd4 | 0x4d | 0x34 => (Order::Little, little),
        _ => (Order::Big, little.swap_bytes()),
    };
    match value {
        0xa1b2_c3d4 => Some((order, 1_000, 16)),
        0xa1b2_3c4d => Some((order, 1, 16)),
        // Interface index, protocol, packet type and a pad byte follow the lengths.
        0xa1b2_cd34 => Some((order, 1_000, 24)),
        _ => None,
    }
}
