//! Packets that wait in their connection. All of its first ones do: most connections end before they have
//! more, and then run through the rules in one go, with a state that is still in the first cache. Later ones
//! do where many connections live: the state of one is not in a cache, and fetching it takes longer than all
//! the rules.
//!
//! Most go on where the latest packet of their sender ended, and take 11 to 19 bytes: what is as the ones
//! before let expect is not said. Less is read and written so, and more of them run through the rules in one
//! go.
//!
//! A packet is a word of eight bytes (bits, what else there is, how far its stamp is from the latest of its
//! sender, how long after the latest packet it passed), how many frames after that, how far the stamp that it
//! echoes is from that which is expected, and what has changed, as far as anything has. Words follow for what
//! is far from the latest, or odd (out of order, with first bytes of payload), or rare (options of SYNs).

mod head;
mod pack;
#[cfg(test)]
mod tests;
mod unpack;

pub(super) use head::Head;
pub(super) use pack::{PLAIN, take};
pub(super) use unpack::{BEFORE_ALL, Unpacked};

use tcpwhy_base::{Segment, TcpFlags};

/// The flags that a packet may have which is not odd: neither SYN nor RST, whose places tell the sender, and
/// that the snap length cut the payload.
const FLAGS: u16 = TcpFlags::FIN | TcpFlags::PSH | TcpFlags::ACK;
const FROM_CLIENT: u8 = TcpFlags::SYN as u8;
const CUT: u8 = TcpFlags::RST as u8;
const STAMPS: u8 = 32;
const IP_ID: u8 = 64;
/// It has no payload, whatever was expected.
const EMPTY: u8 = 128;

/// How many bytes of what has changed are there.
const CHANGED: u8 = 15;
/// Then words follow: one with the upper parts of numbers, four of an odd one, three of a rare one, which is
/// odd as well.
const FAR: u8 = 16;
const ODD: u8 = 32;
const RARE: u8 = 64;

/// What a rare one's options have.
const MSS: u8 = 1;
const WSCALE: u8 = 2;
const SACK_PERMITTED: u8 = 4;
const DAMAGED: u8 = 8;

/// Whose it is, and whether it has payload.
pub(super) type Kind = u8;

/// So many kinds there are.
pub(super) const KINDS: usize = 4;
/// Payload of a client.
pub(super) const REQUEST: Kind = 1;
/// The other kinds, in the order in which they follow that: no payload of the server, some, and none of the client.
pub(super) const OTHERS: [Kind; KINDS - 1] = [2, 0, 3];

/// That of a packet which begins with this byte.
#[inline]
pub(super) fn kind_of(first: u8) -> Kind {
    u8::from(first & FROM_CLIENT != 0) | u8::from(first & EMPTY != 0) << 1
}

/// Nothing has to be known of it when it comes.
#[inline]
pub(super) fn decides_nothing(segment: &Segment) -> bool {
    !segment.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
}

/// All of it can be kept.
#[inline(always)]
pub(super) fn keeps(segment: &Segment) -> bool {
    segment.options.sack_len == 0
}

/// Where the sender of one that is no SYN goes on.
#[inline(always)]
fn end_of_plain(segment: &Segment) -> u32 {
    segment.seq.0.wrapping_add(segment.len).wrapping_add((segment.flags.0 & TcpFlags::FIN).into())
}

/// The same of any.
#[inline]
fn end_of(segment: &Segment) -> u32 {
    end_of_plain(segment).wrapping_add(segment.flags.syn().into())
}
