//! The next generation format: draft-ietf-opsawg-pcapng. Blocks that carry no packet time stamps or
//! counters (comments, names, secrets, custom, unknown but for our own) are passed over unread.

use crate::bytes::Order;
use crate::error::Damage;
use crate::input::Buffer;
use crate::record::{MAX_RECORD, Record, Stop};
use crate::socket_events::{self, ENTERPRISE, EVENT};
use tcpwhy_base::{Nanos, SocketEvent};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
/// Obsolete, still written by old programs.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// A block with an event, options and all, is shorter.
const LONGEST_EVENT: u64 = 4096;
/// Events between two packets that are kept; a file with more is made to be one.
const MOST_EVENTS: usize = 1 << 16;
/// Interfaces of a section that are kept. No host has so many; packed, blocks that describe them take next to no room.
const MOST_INTERFACES: usize = 1 << 16;

/// The state of the current section.
#[derive(Clone, Default)]
pub(crate) struct Pcapng {
    order: Option<Order>,
    interfaces: Vec<Interface>,
    /// Drops of earlier sections.
    dropped_before: u64,
    has_drops: bool,
    /// What a kernel said since this was last emptied.
    heard: Vec<SocketEvent>,
    /// Events that were left out.
    unheard: u64,
}

#[derive(Clone)]
struct Interface {
    link_type: u32,
    snaplen: u32,
    resolution: Resolution,
    offset: Nanos,
    dropped: u64,
}

/// How ticks become nanoseconds.
#[derive(Clone, Copy)]
enum Resolution {
    Times(u64),
    Part(u64),
    /// Ticks are 2^-n seconds.
    Binary(u8),
}

impl Resolution {
    /// From option if_tsresol: the high bit chooses base 2, the rest is the negative exponent.
    fn new(byte: u8) -> Resolution {
        match byte {
            n @ 0..=9 => Resolution::Times(10u64.pow(u32::from(9 - n))),
            n @ 10..=127 => Resolution::Part(10u64.checked_pow(u32::from(n - 9)).unwrap_or(u64::MAX)),
            n => Resolution::Binary(n & 0x7f),
        }
    }

    #[inline]
    fn nanos(self, ticks: u64) -> Nanos {
        let ns = match self {
            Resolution::Times(n) => ticks.saturating_mul(n),
            Resolution::Part(n) => ticks / n,
            Resolution::Binary(n) => {
                u64::try_from((u128::from(ticks) * 1_000_000_000) >> n).unwrap_or(u64::MAX)
            }
        };
        Nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }
}

impl Pcapng {
    /// Whether a file begins as a section.
    pub(crate) fn begins(head: &[u8]) -> bool {
        head.first_chunk().is_some_and(|b| u32::from_le_bytes(*b) == SECTION)
            && head.get(8..12).is_some_and(|b| byte_order(b).is_some())
    }

    /// Drops over all sections, if any statistics were seen.
    pub(crate) fn drops(&self) -> Option<u64> {
        self.has_drops
            .then(|| self.interfaces.iter().fold(self.dropped_before, |n, i| n.saturating_add(i.dropped)))
    }

    /// The enhanced packet block at the front of `bytes`, if there is one, whole and without fault.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Reader::next")]
    pub(crate) fn whole(&self, bytes: &[u8]) -> Option<Record> {
        self.whole_in(self.order?, bytes)
    }

    /// The section is one of those that are written on nearly every machine.
    pub(crate) fn is_usual(&self) -> bool {
        self.order == Some(Order::Little)
    }

    /// The enhanced packet block at the front of `bytes`, if there is one, of a section that is
    /// [usual](Pcapng::is_usual): its order is not looked up for each number.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Reader::next")]
    pub(crate) fn whole_usual(&self, bytes: &[u8]) -> Option<Record> {
        self.whole_in(Order::Little, bytes)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Reader::next")]
    fn whole_in(&self, order: Order, bytes: &[u8]) -> Option<Record> {
        let head = bytes.first_chunk::<32>()?;
        let length = order.at(head, 4);
        let total = length as usize;
        let body_end = total.checked_sub(4)?;
        let trailer = bytes.get(body_end..)?.first_chunk::<4>()?;
        if order.at(head, 0) != ENHANCED_PACKET || head[4..8] != *trailer || !length.is_multiple_of(4) {
            return None;
        }
        let record = self.packet(order, bytes.get(8..body_end)?, order.at(head, 8), length).ok()?;
        (length <= MAX_RECORD).then_some(Record { total, ..record })
    }

    /// When the packet was stamped whose block begins so, and how long the block is; other blocks have no
    /// time. `None`: where sections and interfaces are described the clock may be another.
    pub(crate) fn glance(&self, head: &[u8]) -> Option<(Option<Nanos>, usize)> {
        let order = self.order?;
        let (kind, length) = (order.at(head.get(..8)?, 0), order.at(head, 4));
        if matches!(kind, SECTION | INTERFACE) || !(12..=MAX_RECORD).contains(&length) {
            return None;
        }
        let total = length.next_multiple_of(4) as usize;
        if kind != ENHANCED_PACKET {
            return Some((None, total));
        }
        let head = head.first_chunk::<20>()?;
        let interface = self.interfaces.get(order.at(head, 8) as usize)?;
        let ticks = u64::from(order.at(head, 12)) << 32 | u64::from(order.at(head, 16));
        Some((Some(interface.resolution.nanos(ticks) + interface.offset), total))
    }

    /// The next packet block at the front of the buffer; other blocks are taken in or passed over.
    pub(crate) fn next(&mut self, buffer: &mut Buffer) -> Result<Option<Record>, Stop> {
        loop {
            // The shortest block is a type and two lengths.
            if !buffer.need(12)? {
                return if buffer.bytes().is_empty() { Ok(None) } else { cut() };
            }
            let Some(head) = buffer.bytes().first_chunk::<12>() else { return Ok(None) };
            let order = match (byte_order(&head[8..]), self.order) {
                (found, _) if head.starts_with(&SECTION.to_le_bytes()) => {
                    found.ok_or(Stop::Damage(Damage::ByteOrder))?
                }
                (_, Some(order)) => order,
                (_, None) => return Err(Stop::Damage(Damage::ByteOrder)),
            };
            let kind = order.at(head, 0);
            let length = order.at(head, 4);
            // Lengths must be multiples of four; some writers forget the padding in the length only.
            let total = u64::from(length).next_multiple_of(4);
            if total < 12 {
                return Err(Stop::Damage(Damage::Length(length)));
            }
            if kind == EVENT && total <= LONGEST_EVENT && buffer.need(total as usize)? {
                self.hear(order, buffer.bytes().get(8..total as usize - 4).unwrap_or_default());
            }
            if !matches!(kind, SECTION | INTERFACE | PACKET | SIMPLE_PACKET | STATISTICS | ENHANCED_PACKET) {
                if !buffer.skip(total)? {
                    return cut();
                }
                continue;
            }
            // Room for the options of the largest packet.
            if total > u64::from(MAX_RECORD) + (1 << 20) {
                return Err(Stop::Damage(Damage::Length(length)));
            }
            let total = total as usize;
            if !buffer.need(total)? {
                return cut();
            }
            let Some(block) = buffer.bytes().get(..total) else { return cut() };
            let last = order.at(block, total - 4);
            if last != length {
                return Err(Stop::Damage(Damage::Trailer(length, last)));
            }
            let body = block.get(8..total - 4).unwrap_or_default();
            let found = match kind {
                ENHANCED_PACKET => self.packet(order, body, order.at(body, 0), length)?,
                PACKET => {
                    let id = body.first_chunk().map_or(0, |b| order.u16(*b));
                    self.packet(order, body, u32::from(id), length)?
                }
                SIMPLE_PACKET => self.simple_packet(order, body, length)?,
                _ => {
                    self.describe(kind, order, body)?;
                    buffer.consume(total);
                    continue;
                }
            };
            return Ok(Some(Record { total, ..found }));
        }
    }

    /// Enhanced and obsolete packet blocks differ only in how they name the interface.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Reader::next")]
    fn packet(&self, order: Order, body: &[u8], id: u32, length: u32) -> Result<Record, Stop> {
        let Some(interface) = self.interfaces.get(id as usize) else {
            return Err(Stop::Damage(Damage::Interface(id)));
        };
        let ticks = u64::from(order.at(body, 4)) << 32 | u64::from(order.at(body, 8));
        let caplen = order.at(body, 12);
        if caplen as usize > body.len().saturating_sub(20) {
            return Err(Stop::Damage(Damage::Length(caplen)));
        }
        if body.len() < 20 {
            return Err(Stop::Damage(Damage::Length(length)));
        }
        Ok(Record {
            time: interface.resolution.nanos(ticks) + interface.offset,
            bad_time: false,
            link_type: interface.link_type,
            len: order.at(body, 16).max(caplen),
            before: 28,
            caplen: caplen as usize,
            total: 0,
        })
    }

    /// No interface and no time: the first interface and, for want of one, no time.
    fn simple_packet(&self, order: Order, body: &[u8], length: u32) -> Result<Record, Stop> {
        let Some(interface) = self.interfaces.first() else {
            return Err(Stop::Damage(Damage::Interface(0)));
        };
        let Some(room) = body.len().checked_sub(4) else {
            return Err(Stop::Damage(Damage::Length(length)));
        };
        let len = order.at(body, 0);
        let snaplen = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
        let caplen = len.min(snaplen);
        if caplen as usize > room {
            return Err(Stop::Damage(Damage::Length(caplen)));
        }
        let (link_type, caplen) = (interface.link_type, caplen as usize);
        Ok(Record { time: Nanos::ZERO, bad_time: true, link_type, len, before: 12, caplen, total: 0 })
    }

    /// What a kernel said between the packets given so far.
    pub(crate) fn heard(&mut self) -> &mut Vec<SocketEvent> {
        &mut self.heard
    }

    /// How many events found no room between two packets.
    pub(crate) fn unheard(&self) -> u64 {
        self.unheard
    }

    /// Takes in an event, if it is one of ours.
    fn hear(&mut self, order: Order, body: &[u8]) {
        let ours = |(number, rest): (&[u8; 4], &[u8])| {
            (order.u32(*number) == ENTERPRISE).then(|| socket_events::decode(order, rest))?
        };
        let Some(event) = body.split_first_chunk().and_then(ours) else { return };
        if self.heard.len() < MOST_EVENTS {
            self.heard.push(event);
        } else {
            self.unheard += 1;
        }
    }

    /// Takes in a block that describes packets.
    fn describe(&mut self, kind: u32, order: Order, body: &[u8]) -> Result<(), Stop> {
        match kind {
            SECTION => {
                self.dropped_before = self.drops().unwrap_or_default();
                self.interfaces.clear();
                self.order = Some(order);
            }
            INTERFACE => {
                if self.interfaces.len() >= MOST_INTERFACES {
                    return Err(Stop::Damage(Damage::Interfaces));
                }
                let mut interface = Interface {
                    link_type: u32::from(body.first_chunk().map_or(0, |b| order.u16(*b))),
                    snaplen: order.at(body, 4),
                    resolution: Resolution::new(6),
                    offset: Nanos::ZERO,
                    dropped: 0,
                };
                for (code, value) in options(order, body.get(8..).unwrap_or_default()) {
                    match (code, value) {
                        // if_tsresol, if_tsoffset (draft-ietf-opsawg-pcapng 4.2).
                        (9, [byte, ..]) => interface.resolution = Resolution::new(*byte),
                        (14, value) => {
                            let secs = value.first_chunk().map_or(0, |b| order.u64(*b) as i64);
                            interface.offset = Nanos::secs(secs);
                        }
                        _ => {}
                    }
                }
                self.interfaces.push(interface);
            }
            STATISTICS => {
                let Some(interface) = self.interfaces.get_mut(order.at(body, 0) as usize) else {
                    return Ok(());
                };
                let mut dropped = 0u64;
                for (code, value) in options(order, body.get(12..).unwrap_or_default()) {
                    // isb_ifdrop and isb_osdrop (4.6): lost by the interface, and by the system after it.
                    if let (5 | 7, Some(b)) = (code, value.first_chunk()) {
                        dropped = dropped.saturating_add(order.u64(*b));
                        self.has_drops = true;
                    }
                }
                // Counted from the start of the capture; several blocks may repeat it.
                interface.dropped = interface.dropped.max(dropped);
            }
            _ => {}
        }
        Ok(())
    }
}

fn cut<T>() -> Result<T, Stop> {
    Err(Stop::Damage(Damage::Cut))
}

/// The byte-order magic, 0x1A2B3C4D.
#[inline]
fn byte_order(b: &[u8]) -> Option<Order> {
    match b {
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(Order::Little),
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(Order::Big),
        _ => None,
    }
}

/// Walks a list of options: code, length, value padded to four bytes. Ends at opt_endofopt or damage.
fn options(order: Order, mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (head, after) = rest.split_first_chunk::<4>()?;
        let code = order.u16([head[0], head[1]]);
        let len = usize::from(order.u16([head[2], head[3]]));
        if code == 0 {
            return None;
        }
        let value = after.get(..len)?;
        rest = after.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, Reader, Writer};
    use std::io::Cursor;

    /// A packet, and in another section so many interfaces and a packet of the last one.
    fn file(interfaces: usize) -> Vec<u8> {
        let mut writer = Writer::pcapng(Vec::new()).expect("memory has room");
        writer.write(&Frame::new(Nanos(5), 1, b"one"), None).expect("memory has room");
        let mut file = writer.finish().expect("memory has room");
        let mut block = |kind: u32, body: &[u32]| {
            let length = 12 + 4 * body.len() as u32;
            [&[kind, length], body, &[length]].concat().iter().for_each(|n| file.extend(n.to_le_bytes()));
        };
        block(SECTION, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
        (0..interfaces).for_each(|_| block(INTERFACE, &[1, 0]));
        block(ENHANCED_PACKET, &[interfaces as u32 - 1, 0, 7, 4, 4, 9]);
        file
    }

    /// No list of interfaces grows without end; what was before them is given.
    #[test]
    fn interfaces_without_end_are_damage() {
        for (interfaces, frames) in [(1, 2), (MOST_INTERFACES, 2), (MOST_INTERFACES + 1, 1)] {
            let mut reader = Reader::new(Box::new(Cursor::new(file(interfaces)))).expect("a capture");
            let end = loop {
                match reader.next() {
                    Ok(Some(_)) => {}
                    end => break end.map(|_| ()),
                }
            };
            assert_eq!(reader.frames(), frames, "{interfaces} interfaces");
            let said = end.err().map(|e| e.to_string()).unwrap_or_default();
            assert_eq!(
                said.contains("before packet 2: a section describes more than 65536 interfaces"),
                frames == 1,
                "{said}"
            );
            assert_eq!(said.is_empty(), frames == 2, "{said}");
        }
    }
}
