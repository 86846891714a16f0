//! Several segments at once: the state of a connection is seldom in a cache, and that of several can be
//! fetched together.

use super::held::Held;
use super::index::{Key, Tag};
use super::waiting::decides_nothing;
use super::words::Words;
use super::{Analyzer, LINGER, Slot};
use tcpwhy_base::{End, Part, Segment};

/// Segments whose connections are looked up at once.
const GROUP: usize = 16;

/// From a group's first step to its last others take theirs: so long has memory for each.
const STEPS: usize = 5;

/// There is no connection.
const NONE: u32 = u32::MAX;

/// The connection of a segment: its slot, the number of the connection in it, and whether its client sent the segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) slot: u32,
    pub(super) id: u32,
    pub(super) from_client: bool,
}

impl Known {
    /// No connection: none has this number.
    pub(super) const NOTHING: Known = Known { slot: NONE, id: 0, from_client: false };

    pub(super) fn is_nothing(self) -> bool {
        self.id == 0
    }
}

/// What is known of a group of segments on its way.
#[derive(Clone, Copy, Debug)]
struct Group {
    words: [Words; GROUP],
    tags: [Tag; GROUP],
    /// The slots that they have if any connection has them, and how often something had changed then.
    likely: [u32; GROUP],
    changes: u64,
    /// Those that they have.
    known: [Known; GROUP],
}

impl Group {
    const EMPTY: Group = Group {
        words: [Words::NOBODY; GROUP],
        tags: [Tag::NONE; GROUP],
        likely: [NONE; GROUP],
        changes: 0,
        known: [Known::NOTHING; GROUP],
    };

    /// That of a segment, which is this one of the group.
    #[inline]
    fn key<'a>(&self, n: usize, segment: &'a Segment) -> Key<'a> {
        Key { src: &segment.src, dst: &segment.dst, words: self.words[n], link: segment.link }
    }
}

impl Analyzer {
    /// Takes segments; the same as one [`Analyzer::push`] after the other, but faster: the state of a connection is
    /// seldom in a cache, and that of several can be fetched at once.
    pub fn push_all(&mut self, segments: &[Segment]) {
        self.count(segments);
        if self.live.len() - self.free.len() < self.crowd / 2 {
            self.push_near(segments);
            self.look_for_quiet(segments);
            return;
        }
        let mut on_the_way = [Group::EMPTY; STEPS];
        let groups = segments.len().div_ceil(GROUP);
        let of = |n: usize| &segments[n * GROUP..segments.len().min((n + 1) * GROUP)];
        for n in 0..groups + STEPS - 1 {
            // The oldest group first, for what it changes the others are to see.
            if let Some(n) = n.checked_sub(STEPS - 1).filter(|&n| n < groups) {
                self.push_group(of(n), &on_the_way[n % STEPS]);
            }
            if let Some(n) = n.checked_sub(3).filter(|&n| n < groups) {
                self.fetch_lists(of(n).len(), &on_the_way[n % STEPS]);
            }
            if let Some(n) = n.checked_sub(2).filter(|&n| n < groups) {
                self.look_up(of(n), &mut on_the_way[n % STEPS]);
            }
            if let Some(n) = n.checked_sub(1).filter(|&n| n < groups) {
                self.fetch_likely(of(n), &mut on_the_way[n % STEPS]);
            }
            if n < groups {
                self.fetch_entries(of(n), &mut on_the_way[n % STEPS]);
            }
        }
        self.look_for_quiet(segments);
    }

    /// The same where states are in a cache.
    fn push_near(&mut self, mut segments: &[Segment]) {
        self.room.set_crowded(false);
        let mut before: Option<(Words, u32, Known)> = None;
        while let Some((segment, behind)) = segments.split_first() {
            let key = Key::new(&segment.src, &segment.dst, segment.link);
            // In a bulk transfer one segment follows the other.
            let same = before.filter(|(words, link, known)| {
                is_same(&key, *words, *link) && self.id_at(known.slot) == known.id
            });
            let known = match same {
                Some((words, _, known)) if words == key.words => Some(known),
                Some((_, _, known)) => Some(Known { from_client: !known.from_client, ..known }),
                None => self.find(&key),
            };
            before = known.map(|known| (key.words, key.link, known));
            self.push_to(segment, known.unwrap_or(Known::NOTHING), None);
            segments = known.map_or(behind, |known| self.push_run(segment, behind, known));
        }
    }

    /// Those of the segments behind this one that are of its connection and decide nothing go to its state,
    /// as far as they follow each other; gives the rest.
    #[inline]
    fn push_run<'a>(&mut self, segment: &Segment, behind: &'a [Segment], known: Known) -> &'a [Segment] {
        let words = Words::of(&segment.src, &segment.dst);
        let is_of = |next: &Segment| same_way(next, segment, words).map(|same| known.from_client == same);
        if behind.first().is_none_or(|next| is_of(next).is_none()) {
            return behind;
        }
        let crowded = self.is_crowded();
        let Some(Slot::Conn(held)) = self.live.get_mut(known.slot as usize) else { return behind };
        let Some(conn) = held.runs_at_once(crowded).filter(|conn| conn.id() == known.id) else {
            return behind;
        };
        let mut left = behind;
        while let Some((next, behind)) = left.split_first()
            && let Some(from_client) = is_of(next)
            && decides_nothing(next)
            && next.time <= self.due
        {
            conn.push_from(if from_client { End::Client } else { End::Server }, next, &mut self.kept);
            left = behind;
        }
        left
    }

    /// The connections of a group take its segments. Earlier ones may have begun or ended some since they
    /// were looked up: what is still there is still it.
    fn push_group(&mut self, group: &[Segment], on_the_way: &Group) {
        // Whether packets wait changes no answer, so that it may stay as it is for a while.
        let crowded = self.is_crowded();
        self.room.set_crowded(crowded);
        for (n, (known, segment)) in on_the_way.known.iter().zip(group).enumerate() {
            if let Some(Slot::Conn(held)) = self.live.get_mut(known.slot as usize)
                && held.id() == known.id
            {
                if held.is_young() {
                    let lingered = held.closed_at().is_some();
                    if held.waits_young(segment, known.from_client, LINGER, &mut self.room) {
                        let full = self.room.ends_soon();
                        if !lingered && let Some(now) = held.closed_at() {
                            self.closed.push(now + self.linger, known.slot, known.id, held.class());
                            self.look_at_closed();
                        }
                        if full {
                            self.becomes_full(known.slot);
                        }
                        self.let_go_before(segment.time);
                        continue;
                    }
                } else if crowded {
                    let was_full = held.is_nearly_full();
                    if held.waits_on(segment, known.from_client, &mut self.room) {
                        if !was_full && held.is_nearly_full() {
                            self.becomes_full(known.slot);
                        }
                        self.let_go_before(segment.time);
                        continue;
                    }
                }
            }
            self.push_known(segment, n, on_the_way);
        }
    }

    /// The same of one, whatever it is and whatever has become of its connection.
    #[inline(never)]
    fn push_known(&mut self, segment: &Segment, n: usize, on_the_way: &Group) {
        let (mut known, tag) = (on_the_way.known[n], on_the_way.tags[n]);
        if known.is_nothing() || self.id_at(known.slot) != known.id {
            let same = known.is_nothing() && self.changes == on_the_way.changes;
            let again = if same { None } else { self.find_tagged(tag, &on_the_way.key(n, segment)) };
            known = again.unwrap_or(Known::NOTHING);
        }
        self.push_to(segment, known, Some(tag));
    }

    /// Where a group of segments has its entries in the table; those are fetched.
    #[inline(never)]
    fn fetch_entries(&self, group: &[Segment], to: &mut Group) {
        for (n, segment) in group.iter().enumerate().take(GROUP) {
            let key = Key::new(&segment.src, &segment.dst, segment.link);
            let tag = self.index.tag(&key);
            self.index.fetch(tag);
            (to.words[n], to.tags[n]) = (key.words, tag);
        }
    }

    /// The slots that a group of segments has if any connection has them; what those lead to is fetched.
    #[inline(never)]
    fn fetch_likely(&self, group: &[Segment], to: &mut Group) {
        to.changes = self.changes;
        for (n, segment) in group.iter().enumerate().take(GROUP) {
            let slot = self.index.likely(to.tags[n]).unwrap_or(NONE);
            to.likely[n] = slot;
            if let Some(Slot::Conn(held)) = self.live.get(slot as usize) {
                held.fetch_first();
            }
            if let Some(held) = self.goes_with(segment) {
                held.fetch_first();
            }
        }
    }

    /// The connection that may have to go as this segment closes its own.
    #[inline]
    fn goes_with(&self, segment: &Segment) -> Option<&Held> {
        if !segment.flags.fin() && !segment.flags.rst() {
            return None;
        }
        let closed = self.closed.next_of(Part::class(&segment.src, &segment.dst))?;
        match self.live.get(closed.slot as usize) {
            Some(Slot::Conn(held)) => Some(held),
            _ => None,
        }
    }

    /// The connections of a group of segments; what those will need is fetched.
    #[inline(never)]
    fn look_up(&self, group: &[Segment], to: &mut Group) {
        let crowded = self.is_crowded();
        for (n, segment) in group.iter().enumerate().take(GROUP) {
            let slot = to.likely[n];
            let key = to.key(n, segment);
            to.known[n] = match self.live.get(slot as usize) {
                None => Known::NOTHING,
                Some(Slot::Conn(held)) if let Some(from_client) = held.is_from_client(&key) => {
                    held.fetch(crowded, &self.room);
                    Known { slot, id: held.id(), from_client }
                }
                Some(_) => self.holds(slot, &key).or_else(|| self.find(&key)).unwrap_or(Known::NOTHING),
            };
            if let Some(held) = self.goes_with(segment) {
                held.fetch_rest(&self.room);
            }
        }
    }

    /// What their states keep elsewhere is fetched.
    #[inline(never)]
    fn fetch_lists(&self, n: usize, on_the_way: &Group) {
        let crowded = self.is_crowded();
        for known in &on_the_way.known[..n] {
            if let Some(Slot::Conn(held)) = self.live.get(known.slot as usize) {
                held.fetch_lists(crowded);
            }
        }
    }
}

/// Its words and link are these, whichever way it goes. Of IPv6 they do not tell all.
#[inline]
fn is_same(key: &Key<'_>, words: Words, link: u32) -> bool {
    (key.words == words || key.words == words.turned()) && key.link == link && !words.are_wide()
}

/// Whether a segment goes the way of another one, whose ends are these; `None`: it is not between the same
/// ends, on the same link.
#[inline(always)]
fn same_way(next: &Segment, segment: &Segment, words: Words) -> Option<bool> {
    let ends = Words::of(&next.src, &next.dst);
    let same = ends == words;
    if !same && ends != words.turned() || next.link != segment.link {
        return None;
    }
    if words.are_wide() { same_way_of_wide(next, segment) } else { Some(same) }
}

/// The same by all of the addresses.
#[inline(never)]
fn same_way_of_wide(next: &Segment, segment: &Segment) -> Option<bool> {
    let same = (next.src, next.dst) == (segment.src, segment.dst);
    (same || (next.dst, next.src) == (segment.src, segment.dst)).then_some(same)
}
