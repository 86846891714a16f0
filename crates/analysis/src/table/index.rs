//! Which slot holds the connection between two ends: eight bytes for each at a load of five eighths at most,
//! since the slot knows the ends. Where an entry is or would be is known from its hash alone, so that its
//! cache line can be asked for before it is needed.

use super::words::Words;
use crate::fetch::fetch;
use hashbrown::DefaultHashBuilder;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use tcpwhy_base::Endpoint;

/// The hash of a key in its upper half, and one more than its slot; zero: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    const NONE: Entry = Entry(0);

    fn new(tag: Tag, slot: u32) -> Entry {
        Entry(u64::from(tag.0) << 32 | (u64::from(slot) + 1))
    }

    fn tag(self) -> Tag {
        Tag((self.0 >> 32) as u32)
    }

    fn slot(self) -> u32 {
        (self.0 as u32).wrapping_sub(1)
    }
}

/// The hash of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl Tag {
    /// Of no key in particular.
    pub(super) const NONE: Tag = Tag(0);
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

/// Slots by the addresses, ports and link of their connections, whichever way those go. An entry stands at
/// the place that its hash names, or at the first free one behind it.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// None, or a power of two.
    entries: Vec<Entry>,
    len: usize,
    /// Keyed anew in each run, so that nobody can write a capture whose connections all fall together.
    key: DefaultHashBuilder,
}

/// Entries that the first connection makes room for.
const FEWEST: usize = 64;

impl Index {
    #[inline]
    pub(super) fn tag(&self, key: &Key<'_>) -> Tag {
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
        Tag((hash ^ hash >> 32) as u32)
    }

    #[inline]
    fn mask(&self) -> usize {
        self.entries.len().wrapping_sub(1)
    }

    /// The key will be asked for.
    #[inline]
    pub(super) fn fetch(&self, tag: Tag) {
        self.entries.get(tag.0 as usize & self.mask()).into_iter().for_each(fetch);
    }

    /// What `holds` says of a slot with this hash, the first of which it says anything.
    #[inline]
    pub(super) fn find<T>(&self, tag: Tag, mut holds: impl FnMut(u32) -> Option<T>) -> Option<T> {
        let mut at = tag.0 as usize;
        loop {
            // Five eighths are used at most, so that there is an end.
            let entry = *self.entries.get(at & self.mask())?;
            if entry == Entry::NONE {
                return None;
            }
            if entry.tag() == tag
                && let Some(found) = holds(entry.slot())
            {
                return Some(found);
            }
            at += 1;
        }
    }

    /// The slot that a key has if any connection has it: only the connection itself is sure of its ends, and
    /// is not asked.
    #[inline]
    pub(super) fn likely(&self, tag: Tag) -> Option<u32> {
        self.find(tag, Some)
    }

    /// Segments with this key belong to the slot.
    pub(super) fn insert(&mut self, tag: Tag, slot: u32) {
        if (self.len + 1) * 8 > self.entries.len() * 5 {
            self.grow();
        }
        self.len += 1;
        self.put(Entry::new(tag, slot));
    }

    #[inline]
    fn put(&mut self, entry: Entry) {
        let (mut at, mask) = (entry.tag().0 as usize, self.mask());
        while self.entries[at & mask] != Entry::NONE {
            at += 1;
        }
        self.entries[at & mask] = entry;
    }

    #[cold]
    fn grow(&mut self) {
        let more = (self.entries.len() * 2).max(FEWEST);
        let entries = std::mem::replace(&mut self.entries, vec![Entry::NONE; more]);
        entries.into_iter().filter(|&entry| entry != Entry::NONE).for_each(|entry| self.put(entry));
    }

    /// They do not any more.
    pub(super) fn remove(&mut self, tag: Tag, slot: u32) {
        let (gone, mask) = (Entry::new(tag, slot), self.mask());
        let mut free = tag.0 as usize;
        loop {
            match self.entries.get(free & mask) {
                None | Some(&Entry::NONE) => return,
                Some(&entry) if entry == gone => break,
                Some(_) => free += 1,
            }
        }
        self.len -= 1;
        // Those behind it whose place it was, or one before it, move up.
        let mut at = free;
        loop {
            at += 1;
            let entry = self.entries[at & mask];
            if entry == Entry::NONE {
                break;
            }
            let from_home = at.wrapping_sub(entry.tag().0 as usize) & mask;
            if from_home >= (at - free) & mask {
                self.entries[free & mask] = entry;
                free = at;
            }
        }
        self.entries[free & mask] = Entry::NONE;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Whatever comes and goes, each entry that is there is found, and no other.
    #[test]
    fn what_was_put_in_is_found_until_it_is_taken_out() {
        let mut index = Index::default();
        let mut there: HashSet<(u32, u32)> = HashSet::new();
        assert_eq!(index.likely(Tag(7)), None);
        index.remove(Tag(7), 1);
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for n in 0..40_000_u32 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Few hashes, at both ends of the table too, so that many share a place.
            let tag = (random as u32 % 61).wrapping_sub(20);
            let slot = (random >> 40) as u32 % 40;
            if random >> 63 == 0 && there.len() < 1_000 {
                if there.insert((tag, slot)) {
                    index.insert(Tag(tag), slot);
                }
            } else {
                index.remove(Tag(tag), slot);
                there.remove(&(tag, slot));
            }
            if n % 97 == 0 {
                for tag in (0..61_u32).map(|tag| tag.wrapping_sub(20)) {
                    let mut found = HashSet::new();
                    index.find(Tag(tag), |slot| {
                        assert!(found.insert((tag, slot)));
                        None::<()>
                    });
                    assert_eq!(found, there.iter().filter(|t| t.0 == tag).copied().collect());
                }
                assert_eq!(index.len, there.len());
            }
        }
        assert!(index.entries.len() * 5 >= index.len * 8);
    }
}
