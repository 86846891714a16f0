//! The format of Solaris' snoop: RFC 1761. All numbers are big-endian.

use crate::bytes::be32;
use crate::error::Damage;
use crate::input::Buffer;
use crate::record::{MAX_RECORD, Record, Stop};
use tcpwhy_base::Nanos;

/// What the file header says, and what the records say of losses.
#[derive(Clone)]
pub(crate) struct Snoop {
    link_type: u32,
    drops: u32,
}

/// Identification pattern, version and datalink type.
pub(crate) const FILE_HEADER: usize = 16;
/// Lengths, drops and time.
const HEADER: usize = 24;

impl Snoop {
    /// Reads the file header, if it is one of version 2 or before.
    pub(crate) fn begin(head: &[u8]) -> Option<Snoop> {
        if !head.starts_with(b"snoop\0\0\0") || be32(head, 8)? > 2 {
            return None;
        }
        // The numbers of the RFC in those of pcap; what it calls 802.3 has the header of Ethernet.
        let link_type = match be32(head, 12)? {
            0 | 4 => 1,
            2 => 6,
            8 => 10,
            // Solaris' IPNET.
            26 => 226,
            // One that no dissector knows.
            other => other | 1 << 31,
        };
        Some(Snoop { link_type, drops: 0 })
    }

    /// The record at the front of the buffer.
    pub(crate) fn next(&mut self, buffer: &mut Buffer) -> Result<Option<Record>, Stop> {
        if !buffer.need(HEADER)? {
            return if buffer.bytes().is_empty() { Ok(None) } else { Err(Stop::Damage(Damage::Cut)) };
        }
        let at = |n| be32(buffer.bytes(), n).unwrap_or(0);
        let (caplen, total, drops) = (at(4), at(8), at(12));
        if caplen > MAX_RECORD {
            return Err(Stop::Damage(Damage::Length(caplen)));
        }
        if total > MAX_RECORD || (total as usize) < HEADER + caplen as usize {
            return Err(Stop::Damage(Damage::Length(total)));
        }
        // The padding of the last record may be cut off.
        if !buffer.need(total as usize)? && !buffer.need(HEADER + caplen as usize)? {
            return Err(Stop::Damage(Damage::Cut));
        }
        self.drops = self.drops.max(drops);
        Ok(self.record(buffer.bytes()))
    }

    /// The record at the front of `bytes`, if it is there to its end and without fault.
    #[inline]
    pub(crate) fn whole(&self, bytes: &[u8]) -> Option<Record> {
        let (caplen, total, drops) = (be32(bytes, 4)?, be32(bytes, 8)?, be32(bytes, 12)?);
        let sound = caplen <= MAX_RECORD && total as usize >= HEADER + caplen as usize;
        // Records that tell of losses are for `next`, which counts them.
        if !sound || total as usize > bytes.len() || drops > self.drops {
            return None;
        }
        self.record(bytes)
    }

    /// When the record was stamped whose first bytes these are, and how long it is.
    pub(crate) fn glance(&self, head: &[u8]) -> Option<(Option<Nanos>, usize)> {
        let total = be32(head, 8).filter(|&n| (HEADER as u32..=MAX_RECORD).contains(&n))?;
        let (secs, micros) = (u64::from(be32(head, 16)?), u64::from(be32(head, 20)?));
        let time = Nanos((secs * 1_000_000_000 + micros * 1_000) as i64);
        Some(((micros < 1_000_000).then_some(time), total as usize))
    }

    fn record(&self, bytes: &[u8]) -> Option<Record> {
        let [len, caplen, total] = [be32(bytes, 0)?, be32(bytes, 4)?, be32(bytes, 8)?];
        let (secs, micros) = (u64::from(be32(bytes, 16)?), u64::from(be32(bytes, 20)?));
        Some(Record {
            // At most 2^32 s and 2^32 us: far below the limits of 64 bits.
            time: Nanos((secs * 1_000_000_000 + micros * 1_000) as i64),
            bad_time: micros >= 1_000_000,
            link_type: self.link_type,
            len: len.max(caplen),
            before: HEADER,
            caplen: caplen as usize,
            total: (total as usize).min(bytes.len()),
        })
    }

    /// Packets that the capture lost; `None` if no record tells of any.
    pub(crate) fn drops(&self) -> Option<u64> {
        (self.drops > 0).then(|| u64::from(self.drops))
    }
}
