//! Which connection a segment is of.

use super::ahead::Known;
use super::index::{Key, Tag};
use super::{Analyzer, Slot};
use tcpwhy_base::Segment;

impl Analyzer {
    /// The number of the connection in this slot, zero where there is none.
    #[inline]
    pub(super) fn id_at(&self, slot: u32) -> u32 {
        match &self.live[slot as usize] {
            Slot::Conn(held) => held.id(),
            Slot::Lone(_, id) => *id,
            Slot::Free => 0,
        }
    }

    /// The connection in this slot, if it is that of a segment with this key, as far as addresses tell.
    #[inline]
    pub(super) fn holds(&self, slot: u32, key: &Key<'_>) -> Option<Known> {
        let (id, from_client) = match &self.live[slot as usize] {
            Slot::Conn(held) => (held.id(), held.is_from_client(key)?),
            Slot::Lone(at, id) => (*id, self.lones.is_from_client(*at, key)?),
            Slot::Free => return None,
        };
        Some(Known { slot, id, from_client })
    }

    #[inline]
    pub(super) fn find(&self, key: &Key<'_>) -> Option<Known> {
        self.find_tagged(self.index.tag(key), key)
    }

    /// The same, where the hash of the key is known.
    #[inline]
    pub(super) fn find_tagged(&self, tag: Tag, key: &Key<'_>) -> Option<Known> {
        self.index.find(tag, |slot| self.holds(slot, key))
    }

    pub(super) fn find_of(&self, segment: &Segment) -> Option<Known> {
        self.find(&Key::new(&segment.src, &segment.dst, segment.link))
    }

    /// The connection whose other direction this is, or each of whose packets shows twice, under different
    /// VLAN tags or tunnels.
    #[inline]
    pub(super) fn other_direction(&mut self, segment: &Segment) -> Option<Known> {
        if segment.link == 0 && self.links.is_empty() { None } else { self.other_of_links(segment) }
    }

    fn other_of_links(&mut self, segment: &Segment) -> Option<Known> {
        let (a, b) = (segment.src, segment.dst);
        let known = self.links.get(&if a <= b { (a, b) } else { (b, a) }).copied();
        // Connections without tags are not in that list before the first tagged packet.
        let bare = || self.find(&Key::new(&segment.src, &segment.dst, 0)).map(|known| known.slot);
        let slot = if segment.link == 0 { known? } else { known.or_else(bare)? };
        let conn = self.conn_at(slot)?;
        let belongs = conn.is_answered_by(segment) || conn.has_twin(segment);
        let Slot::Conn(held) = &mut self.live[slot as usize] else { return None };
        let (link, other) = held.links();
        if link == segment.link || other.is_some() || !belongs {
            return None;
        }
        held.also_on(segment.link);
        self.changes += 1;
        let key = Key::new(&segment.src, &segment.dst, segment.link);
        let known = Known { slot, id: held.id(), from_client: held.is_from_client(&key)? };
        self.index.insert(self.index.tag(&key), slot);
        Some(known)
    }
}
