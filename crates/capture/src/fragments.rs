//! IP fragments that wait for the rest of their packet. Only the first bytes are kept, enough for the headers
//! inside; of the others it matters that they passed.

use crate::walk::{Fragment, Walk};
use std::net::IpAddr;
use tcpwhy_base::Nanos;

/// Packets that may wait at once; beyond, the oldest is dropped.
const WAITING: usize = 128;

/// Bytes kept of each: IPv6 in GTP in IPv6 with long TCP headers fits.
pub(crate) const HEAD: usize = 256;

/// After this a fragment belongs to a later packet with the same identifier (Linux: ipfrag_time, 30 s).
const PATIENCE: Nanos = Nanos::secs(30);

/// Pieces not adjacent to each other; 64 KiB in the smallest MTU of IPv4 (68) has fewer in any real order.
const PIECES: usize = 64;

/// The packets that are not complete.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    waiting: Vec<Packet>,
    /// Packets given up.
    pub(crate) lost: u64,
}

#[derive(Debug)]
struct Packet {
    key: Key,
    since: Nanos,
    /// Set by the last fragment.
    total: Option<u32>,
    /// Which bytes passed: disjoint, ascending.
    pieces: Vec<(u32, u32)>,
    whole: Whole,
}

/// What tells packets apart (RFC 791 3.2, RFC 8200 4.5), and the network they are in.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    id: u32,
    protocol: u8,
    src: IpAddr,
    dst: IpAddr,
    link: u32,
}

/// A packet that is complete: its first bytes and its length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) head: [u8; HEAD],
    pub(crate) head_len: usize,
    pub(crate) total: u32,
    /// A fragment was cut by the snap length.
    pub(crate) cut: bool,
}

impl Fragments {
    /// Takes a fragment in; gives the packet if this was the last one missing.
    pub(crate) fn push(&mut self, f: &Fragment<'_>, walk: &Walk, time: Nanos) -> Option<Whole> {
        let end = f.offset.saturating_add(f.rest.len);
        let key = Key { id: f.id, protocol: f.protocol, src: walk.src, dst: walk.dst, link: walk.link };
        let at = self.find(key, time);
        let packet = self.waiting.get_mut(at)?;
        if f.offset == 0 && packet.whole.head_len == 0 {
            let n = f.rest.data.len().min(HEAD);
            packet.whole.head.iter_mut().zip(f.rest.data).for_each(|(to, from)| *to = *from);
            packet.whole.head_len = n;
        }
        packet.whole.cut |= f.rest.data.len() < f.rest.len as usize;
        if !f.more {
            packet.total = Some(end);
        }
        if !add(&mut packet.pieces, (f.offset, end)) {
            self.waiting.swap_remove(at);
            self.lost += 1;
            return None;
        }
        let total = packet.total?;
        let complete = matches!(packet.pieces.as_slice(), [(0, end), ..] if *end >= total);
        if !complete {
            return None;
        }
        Some(Whole { total, ..self.waiting.swap_remove(at).whole })
    }

    /// The place of the packet with this key, made if need be.
    fn find(&mut self, key: Key, time: Nanos) -> usize {
        if let Some(at) = self.waiting.iter().position(|p| p.key == key) {
            if self.waiting.get(at).is_some_and(|p| time - p.since <= PATIENCE) {
                return at;
            }
            self.waiting.swap_remove(at);
            self.lost += 1;
        }
        if self.waiting.len() >= WAITING
            && let Some(oldest) =
                (0..self.waiting.len()).min_by_key(|&i| self.waiting.get(i).map(|p| p.since))
        {
            self.waiting.swap_remove(oldest);
            self.lost += 1;
        }
        let whole = Whole { head: [0; HEAD], head_len: 0, total: 0, cut: false };
        self.waiting.push(Packet { key, since: time, total: None, pieces: Vec::new(), whole });
        self.waiting.len() - 1
    }

    /// Packets that still wait, or were given up.
    pub(crate) fn incomplete(&self) -> u64 {
        self.lost + self.waiting.len() as u64
    }
}

/// Adds a stretch to a list of disjoint ascending ones; false if the list is full.
fn add(pieces: &mut Vec<(u32, u32)>, new: (u32, u32)) -> bool {
    let first = pieces.partition_point(|p| p.1 < new.0);
    let after = pieces.partition_point(|p| p.0 <= new.1);
    let touched = pieces.get(first..after).unwrap_or_default();
    let from = touched.first().map_or(new.0, |p| p.0.min(new.0));
    let to = touched.last().map_or(new.1, |p| p.1.max(new.1));
    pieces.splice(first..after.max(first), [(from, to)]);
    pieces.len() <= PIECES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::Rest;

    fn part(offset: u32, bytes: &[u8], more: bool) -> Fragment<'_> {
        Fragment { id: 7, protocol: 6, offset, more, rest: Rest { data: bytes, len: bytes.len() as u32 } }
    }

    #[test]
    fn in_any_order_and_doubled() {
        let bytes: Vec<u8> = (0..64).collect();
        let parts =
            [part(0, &bytes[..24], true), part(24, &bytes[24..48], true), part(48, &bytes[48..], false)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let mut table = Fragments::default();
            let [a, b, c] = order.map(|i: usize| parts[i]);
            assert!(table.push(&a, &Walk::START, Nanos(0)).is_none());
            assert!(table.push(&a, &Walk::START, Nanos(1)).is_none(), "the same again");
            assert!(table.push(&b, &Walk::START, Nanos(2)).is_none());
            let whole = table.push(&c, &Walk::START, Nanos(3)).expect("complete");
            assert_eq!((whole.total, whole.head_len, whole.cut), (64, 24, false));
            assert_eq!(whole.head[..24], bytes[..24]);
            assert_eq!(table.incomplete(), 0);
        }
    }

    #[test]
    fn an_identifier_used_again_is_another_packet() {
        let mut table = Fragments::default();
        table.push(&part(0, &[1; 8], true), &Walk::START, Nanos(0));
        assert!(table.push(&part(8, &[2; 8], false), &Walk::START, Nanos::secs(31)).is_none());
        assert_eq!(table.incomplete(), 2);
    }

    #[test]
    fn bounded() {
        let mut table = Fragments::default();
        for id in 0..1000 {
            table.push(&Fragment { id, ..part(0, &[0; 8], true) }, &Walk::START, Nanos(i64::from(id)));
        }
        assert_eq!((table.waiting.len(), table.lost), (WAITING, 1000 - WAITING as u64));
        for n in 0..1000 {
            table.push(&part(16 * n, &[0; 8], true), &Walk::START, Nanos(2000));
        }
        assert!(table.waiting.iter().all(|p| p.pieces.len() <= PIECES));
    }
}
