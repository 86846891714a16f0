//! Which slot holds the connection between two ends: nine bytes for each, since the slot knows the ends.

use super::words::Words;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use tcpwhy_base::Endpoint;

/// The hash of a key, and its slot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    slot: u32,
}

impl Entry {
    /// What the table goes by: it takes the place from the low bits, and tells neighbours apart by the high ones.
    #[inline]
    fn hash(&self) -> u64 {
        u64::from(self.tag) | u64::from(self.tag) << 32
    }
}

/// Who a packet is between, on which link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    pub(super) src: &'a Endpoint,
    pub(super) dst: &'a Endpoint,
    pub(super) words: Words,
    pub(super) link: u32,
}

impl<'a> Key<'a> {
    #[inline]
    pub(super) fn new(src: &'a Endpoint, dst: &'a Endpoint, link: u32) -> Key<'a> {
        Key { src, dst, words: Words::of(src, dst), link }
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
    #[inline]
    fn entry(&self, key: &Key<'_>, slot: u32) -> Entry {
        let mut hasher = self.key.build_hasher();
        let Words { src, dst } = key.words;
        if key.words.are_wide() {
            write_wide(&mut hasher, key);
        } else {
            hasher.write_u64(src.min(dst));
            hasher.write_u64(src.max(dst));
        }
        if key.link != 0 {
            hasher.write_u32(key.link);
        }
        let hash = hasher.finish();
        Entry { tag: (hash ^ hash >> 32) as u32, slot }
    }

    /// What `holds` says of the slot of this key; of others it says nothing.
    #[inline]
    pub(super) fn find<T>(&self, key: &Key<'_>, holds: impl Fn(u32) -> Option<T>) -> Option<T> {
        let wanted = self.entry(key, 0);
        let mut found = None;
        self.table.find(wanted.hash(), |e| {
            found = if e.tag == wanted.tag { holds(e.slot) } else { None };
            found.is_some()
        })?;
        found
    }

    /// The slot that this key has if any connection has it: only the connection itself is sure of its ends, and is not asked.
    #[inline]
    pub(super) fn likely(&self, key: &Key<'_>) -> Option<u32> {
        let wanted = self.entry(key, 0);
        self.table.find(wanted.hash(), |e| e.tag == wanted.tag).map(|e| e.slot)
    }

    /// Segments between these ends belong to the slot.
    pub(super) fn insert(&mut self, key: &Key<'_>, slot: u32) {
        let entry = self.entry(key, slot);
        self.table.insert_unique(entry.hash(), entry, Entry::hash);
    }

    /// They do not any more.
    pub(super) fn remove(&mut self, key: &Key<'_>, slot: u32) {
        let gone = self.entry(key, slot);
        if let Ok(found) = self.table.find_entry(gone.hash(), |e| (e.tag, e.slot) == (gone.tag, slot)) {
            found.remove();
        }
    }
}

/// All of the addresses.
#[cold]
fn write_wide(hasher: &mut impl Hasher, key: &Key<'_>) {
    for end in [key.src.min(key.dst), key.src.max(key.dst)] {
        match end.ip {
            IpAddr::V4(ip) => hasher.write_u32(ip.to_bits()),
            IpAddr::V6(ip) => hasher.write_u128(ip.to_bits()),
        }
        hasher.write_u16(end.port);
    }
}
