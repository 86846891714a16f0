//! What stands in the first place of a room, before the packets that wait there.

use super::{Place, halves, whole};
use tcpwhy_base::{Nanos, Segment};

/// What is known of those that wait before a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::table) struct Before {
    /// When the latest of them passed.
    pub(in crate::table) latest: Nanos,
    /// The input that the first came from.
    pub(in crate::table) file: u16,
}

impl Before {
    /// It is the first: all of that is said of itself.
    #[inline(always)]
    pub(in crate::table) fn nothing(first: &Segment) -> Before {
        Before { latest: first.time, file: first.file }
    }
}

/// Rooms one after the other: what the last of them says of the others, and each of the next.
impl Place {
    /// What stands before the first packet of a room.
    #[inline]
    pub(in crate::table) fn say(&mut self, before: Before) {
        (self.time, self.frame) = halves(before.latest.0.cast_unsigned());
        self.len = before.file;
    }

    /// What was said so.
    #[inline]
    pub(super) fn before(&self) -> Before {
        Before { latest: Nanos(whole(self.time, self.frame).cast_signed()), file: self.len }
    }

    /// So many rooms are full before this one, and the number of the first.
    #[inline]
    pub(in crate::table) fn rooms_before(&self) -> (u32, u32) {
        (self.value, self.seq)
    }

    pub(in crate::table) fn set_rooms_before(&mut self, rooms: u32, first: u32) {
        (self.value, self.seq, self.bits) = (rooms, first, 0);
    }

    /// None is before it, and none follows.
    pub(in crate::table) fn set_only(&mut self) {
        self.set_rooms_before(0, 0);
        self.bits = 1;
    }

    pub(in crate::table) fn is_only(&self) -> bool {
        self.bits != 0
    }

    /// Of one that is full: so many places are used, and the number of the next room.
    #[inline]
    pub(in crate::table) fn goes_on_in(&self) -> (usize, u32) {
        (self.echo as usize, self.ack)
    }

    pub(in crate::table) fn go_on_in(&mut self, used: usize, next: u32) {
        (self.echo, self.ack) = (used as u32, next);
    }
}
