//! Which slot holds the connection between two ends: nine bytes for each, since the slot knows the ends.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use tcpwhy_base::{Endpoint, Segment};

/// The hash of a key, and its slot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    slot: u32,
}

impl Entry {
    /// What the table goes by: it takes the place from the low bits, and tells neighbours apart by the high ones.
    fn hash(&self) -> u64 {
        u64::from(self.tag) | u64::from(self.tag) << 32
    }
}

/// Slots by the addresses, ports and link of their connections, whichever way those go.
#[derive(Debug, Default)]
pub(super) struct Index {
    table: HashTable<Entry>,
    /// Keyed anew in each run, so that nobody can write a capture whose connections all fall together.
    key: DefaultHashBuilder,
}

impl Index {
    fn entry(&self, a: &Endpoint, b: &Endpoint, link: u32, slot: u32) -> Entry {
        let mut hasher = self.key.build_hasher();
        match (a.ip, b.ip) {
            (IpAddr::V4(x), IpAddr::V4(y)) => {
                let (x, y) = (word(x.to_bits(), a.port), word(y.to_bits(), b.port));
                hasher.write_u64(x.min(y));
                hasher.write_u64(x.max(y));
            }
            _ => {
                for end in [a.min(b), a.max(b)] {
                    match end.ip {
                        IpAddr::V4(ip) => hasher.write_u32(ip.to_bits()),
                        IpAddr::V6(ip) => hasher.write_u128(ip.to_bits()),
                    }
                    hasher.write_u16(end.port);
                }
            }
        }
        if link != 0 {
            hasher.write_u32(link);
        }
        let hash = hasher.finish();
        Entry { tag: (hash ^ hash >> 32) as u32, slot }
    }

    /// The slot of this segment; `holds` says whether the connection in a slot is the one.
    #[inline]
    pub(super) fn find(&self, segment: &Segment, holds: impl Fn(u32) -> bool) -> Option<u32> {
        let wanted = self.entry(&segment.src, &segment.dst, segment.link, 0);
        self.table.find(wanted.hash(), |e| e.tag == wanted.tag && holds(e.slot)).map(|e| e.slot)
    }

    /// The slot that this segment has if any connection has it: only the connection itself is sure of its ends, and is not asked.
    #[inline]
    pub(super) fn likely(&self, segment: &Segment) -> Option<u32> {
        let wanted = self.entry(&segment.src, &segment.dst, segment.link, 0);
        self.table.find(wanted.hash(), |e| e.tag == wanted.tag).map(|e| e.slot)
    }

    /// Segments between these ends belong to the slot.
    pub(super) fn insert(&mut self, a: &Endpoint, b: &Endpoint, link: u32, slot: u32) {
        let entry = self.entry(a, b, link, slot);
        self.table.insert_unique(entry.hash(), entry, Entry::hash);
    }

    /// They do not any more.
    pub(super) fn remove(&mut self, a: &Endpoint, b: &Endpoint, link: u32, slot: u32) {
        let gone = self.entry(a, b, link, slot);
        if let Ok(found) = self.table.find_entry(gone.hash(), |e| (e.tag, e.slot) == (gone.tag, slot)) {
            found.remove();
        }
    }
}

fn word(ip: u32, port: u16) -> u64 {
    u64::from(ip) << 16 | u64::from(port)
}
