//! Several segments at once: the state of a connection is seldom in a cache, and that of several can be fetched together.

use super::{Analyzer, CROWD, Slot};
use tcpwhy_base::Segment;

/// Segments whose connections are fetched at once, 64 at most.
const AHEAD: usize = 32;

/// A slot, and the number of the connection in it.
type Hint = (u32, u32);

impl Analyzer {
    /// Takes segments; the same as one [`Analyzer::push`] after the other, but faster: the state of a connection is
    /// seldom in a cache, and that of several can be fetched at once.
    pub fn push_all(&mut self, segments: &[Segment]) {
        for group in segments.chunks(AHEAD) {
            self.count(group);
            let hints = self.look_up(group);
            let changes = self.changes;
            for (hint, segment) in hints.iter().zip(group) {
                // An earlier segment of the group may have begun or ended a connection: what is still there is still it.
                let known = hint.filter(|&(slot, id)| self.changes == changes || self.id_at(slot) == id);
                let slot = match known {
                    None if self.changes != changes => self.find(segment),
                    _ => known.map(|(slot, _)| slot),
                };
                self.push_to(segment, slot);
            }
        }
    }

    /// The connections of a group of segments.
    fn look_up(&self, group: &[Segment]) -> [Option<Hint>; AHEAD] {
        let (crowded, far) = (self.is_crowded(), self.held >= CROWD / 2);
        let likely = if far { self.fetch(group) } else { [None; AHEAD] };
        let mut hints: [Option<Hint>; AHEAD] = [None; AHEAD];
        let mut before: Option<(&Segment, Option<Hint>)> = None;
        let mut touched = 0u64;
        for ((hint, likely), segment) in hints.iter_mut().zip(likely).zip(group) {
            // In a bulk transfer one segment follows the other.
            if let Some((_, known)) = before.filter(|(other, _)| same_connection(other, segment)) {
                *hint = known;
                continue;
            }
            if let Some(slot) = likely
                && let Slot::Conn(held) = &self.live[slot as usize]
                && held.is_of(segment)
            {
                *hint = Some((slot, held.id()));
                before = Some((segment, *hint));
                touched = touched.wrapping_add(held.touch(crowded));
                continue;
            }
            let slot = if far && likely.is_none() { None } else { self.find(segment) };
            *hint = slot.map(|slot| (slot, self.id_at(slot)));
            before = Some((segment, *hint));
        }
        std::hint::black_box(touched);
        hints
    }

    /// The slots that a group of segments has if any connection has them. Each sweep reads what the one before has told where to find,
    /// of all of them: so that memory is waited for once in each, and not for every segment.
    #[inline(never)]
    fn fetch(&self, group: &[Segment]) -> [Option<u32>; AHEAD] {
        let mut likely = [None; AHEAD];
        let mut before: Option<(&Segment, Option<u32>)> = None;
        for (likely, segment) in likely.iter_mut().zip(group) {
            *likely = match before.filter(|(other, _)| same_connection(other, segment)) {
                Some((_, slot)) => slot,
                None => self.index.likely(segment),
            };
            before = Some((segment, *likely));
        }
        let mut touched = 0u64;
        for slot in likely.iter().flatten() {
            if let Slot::Conn(held) = &self.live[*slot as usize] {
                touched = touched.wrapping_add(held.touch_first());
            }
        }
        std::hint::black_box(touched);
        likely
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
