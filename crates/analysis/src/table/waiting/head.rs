//! What is kept of a room in which packets wait, besides them.

use super::end_of;
use tcpwhy_base::Segment;

/// What the latest packets were, by which the next one is packed: of each end (the client's is the second),
/// and of both. Of rooms one after the other what the last of them says of the others, and each of the next.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::table) struct Head {
    /// What may change at any time, as [`changing`] puts it: the latest.
    pub(super) changing: [u64; 2],
    /// Where each end goes on, if it does.
    pub(super) next: [u32; 2],
    pub(super) ack: [u32; 2],
    pub(super) value: [u32; 2],
    /// The stamp of the other end that is expected.
    pub(super) echo: [u32; 2],
    pub(super) ttl: [u8; 2],
    /// The input that the first packet came from.
    pub(in crate::table) file: u16,
    /// How many rooms are before it, and the number of another one.
    pub(super) link: u32,
    /// The number of the latest packet's frame; of a full one, whose next one has that: so many bytes are used.
    pub(super) frame: u64,
}

/// Bits of a room's number: as many take a quarter of a terabyte.
const NUMBER: u32 = 28;

impl Head {
    /// Of a room in which none waits.
    pub(in crate::table) const NEW: Head = Head {
        changing: [0; 2],
        next: [0; 2],
        ack: [0; 2],
        value: [0; 2],
        echo: [0; 2],
        ttl: [0; 2],
        file: 0,
        link: 0,
        frame: 0,
    };

    /// So many rooms are full before this one, and the number of the first.
    pub(in crate::table) fn before(&self) -> (u32, u32) {
        (self.link >> NUMBER, self.link & ((1 << NUMBER) - 1))
    }

    /// It is full, with so many bytes used, and another one with this number follows. What stands before the
    /// packets of that.
    pub(in crate::table) fn go_on_in(&mut self, used: usize, next: u32, (before, first): (u32, u32)) -> Head {
        let head = Head { link: before << NUMBER | first, ..*self };
        (self.frame, self.link) = (used as u64, next);
        head
    }

    /// Of one that is full: so many bytes are used, and the number of the next.
    pub(in crate::table) fn goes_on_in(&self) -> (usize, u32) {
        (self.frame as usize, self.link)
    }
}

/// What may change at any time of one packet, or from one to the next of an end: identifier, the lower half
/// of how far it acknowledges, window, length. What seldom changes comes last.
#[inline(always)]
pub(super) fn changing(id: u16, acks: u16, window: u16, len: u16) -> u64 {
    u64::from(id) | u64::from(acks) << 16 | u64::from(window) << 32 | u64::from(len) << 48
}

/// The same of the packet that is expected after it. Senders count identifiers, or have none (RFC 6864, section 4.1).
#[inline(always)]
pub(super) fn expected(changing: u64) -> u64 {
    let id = changing as u16;
    (changing >> 32) << 32 | u64::from(id.wrapping_add(u16::from(id != 0)))
}

/// Where its sender goes on behind one that does not go on where it was: what is sent again leaves that as it is.
#[inline]
pub(super) fn end_behind(next: u32, segment: &Segment) -> u32 {
    let end = end_of(segment);
    // Further than any window is no repeat (RFC 7323, section 2.3), and zero stands for what is not known.
    if next != 0 && next.wrapping_sub(end) < 1 << 30 { next } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_cache_line() {
        assert_eq!(size_of::<Head>(), 64);
    }
}
