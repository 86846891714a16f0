//! Several segments at once: the state of a connection is seldom in a cache, and that of several can be fetched together.

use super::{Analyzer, Slot};
use tcpwhy_base::Segment;

/// Segments whose connections are looked up at once.
const GROUP: usize = 16;

/// From a group's first step to its last others take theirs: so long has memory for each.
const STEPS: usize = 4;

/// A slot, and the number of the connection in it.
type Hint = (u32, u32);

/// What is known of a group of segments on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// The slots that they have if any connection has them, and how often something had changed then.
    likely: [Option<u32>; GROUP],
    changes: u64,
    /// Those that they have.
    hints: [Option<Hint>; GROUP],
}

impl Analyzer {
    /// Takes segments; the same as one [`Analyzer::push`] after the other, but faster: the state of a connection is
    /// seldom in a cache, and that of several can be fetched at once.
    pub fn push_all(&mut self, segments: &[Segment]) {
        self.count(segments);
        if self.held < self.crowd / 2 {
            self.push_near(segments);
            return;
        }
        let mut on_the_way = [Group::default(); STEPS];
        let groups = segments.len().div_ceil(GROUP);
        let of = |n: usize| &segments[n * GROUP..segments.len().min((n + 1) * GROUP)];
        for n in 0..groups + STEPS - 1 {
            // The oldest group first, for what it changes the others are to see.
            if let Some(n) = n.checked_sub(STEPS - 1).filter(|&n| n < groups) {
                self.push_group(of(n), &on_the_way[n % STEPS]);
            }
            if let Some(n) = n.checked_sub(2).filter(|&n| n < groups) {
                self.fetch_lists(&on_the_way[n % STEPS]);
            }
            if let Some(n) = n.checked_sub(1).filter(|&n| n < groups) {
                self.look_up(of(n), &mut on_the_way[n % STEPS]);
            }
            if n < groups {
                self.fetch_likely(of(n), &mut on_the_way[n % STEPS]);
            }
        }
    }

    /// The same where states are in a cache.
    fn push_near(&mut self, segments: &[Segment]) {
        let mut before: Option<(&Segment, Hint)> = None;
        for segment in segments {
            // In a bulk transfer one segment follows the other.
            let same = before
                .filter(|(other, hint)| same_connection(other, segment) && self.id_at(hint.0) == hint.1);
            let slot = same.map(|(_, hint)| hint.0).or_else(|| self.find(segment));
            before = slot.map(|slot| (segment, (slot, self.id_at(slot))));
            self.push_to(segment, slot);
        }
    }

    /// The connections of a group take its segments. Earlier ones may have begun or ended some since they were looked up: what is
    /// still there is still it.
    fn push_group(&mut self, group: &[Segment], known: &Group) {
        for (hint, segment) in known.hints.iter().zip(group) {
            let same = self.changes == known.changes;
            let slot = match hint.filter(|&(slot, id)| same || self.id_at(slot) == id) {
                Some((slot, _)) => Some(slot),
                None if same => None,
                None => self.find(segment),
            };
            self.push_to(segment, slot);
        }
    }

    /// The slots that a group of segments has if any connection has them; what those lead to is fetched.
    #[inline(never)]
    fn fetch_likely(&self, group: &[Segment], to: &mut Group) {
        to.changes = self.changes;
        let mut before: Option<(&Segment, Option<u32>)> = None;
        for (likely, segment) in to.likely.iter_mut().zip(group) {
            // In a bulk transfer one segment follows the other.
            *likely = match before.filter(|(other, _)| same_connection(other, segment)) {
                Some((_, slot)) => slot,
                None => self.index.likely(segment),
            };
            before = Some((segment, *likely));
        }
        for slot in to.likely[..group.len()].iter().flatten() {
            if let Slot::Conn(held) = &self.live[*slot as usize] {
                held.fetch_first();
            }
        }
    }

    /// The connections of a group of segments; what those will need is fetched.
    #[inline(never)]
    fn look_up(&self, group: &[Segment], to: &mut Group) {
        let crowded = self.is_crowded();
        for ((hint, likely), segment) in to.hints.iter_mut().zip(to.likely).zip(group) {
            let slot = match likely {
                Some(slot) if self.holds(slot, segment) => Some(slot),
                Some(_) => self.find(segment),
                None => None,
            };
            *hint = slot.map(|slot| (slot, self.id_at(slot)));
            if let Some(Slot::Conn(held)) = slot.map(|slot| &self.live[slot as usize]) {
                held.fetch(crowded);
            }
        }
    }

    /// What their states keep elsewhere is fetched.
    #[inline(never)]
    fn fetch_lists(&self, known: &Group) {
        let crowded = self.is_crowded();
        for &(slot, _) in known.hints.iter().flatten() {
            if let Slot::Conn(held) = &self.live[slot as usize] {
                held.fetch_lists(crowded);
            }
        }
    }
}

/// Addresses, ports and link are the same, whichever way it goes.
fn same_connection(a: &Segment, b: &Segment) -> bool {
    // Most others differ in this, which takes no branch for each of the four.
    let ports = |s: &Segment| s.src.port ^ s.dst.port;
    ports(a) == ports(b)
        && a.link == b.link
        && (a.src == b.src && a.dst == b.dst || a.src == b.dst && a.dst == b.src)
}
