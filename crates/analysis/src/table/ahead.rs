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

    /// The connections of a group of segments. Each sweep reads what the one before has told where to find, of all of them: so
    /// that memory is waited for once in each, and not for every segment.
    fn look_up(&self, group: &[Segment]) -> [Option<Hint>; AHEAD] {
        let (crowded, far) = (self.is_crowded(), self.held >= CROWD / 2);
        let mut likely = [None; AHEAD];
        let mut before: Option<(&Segment, Option<u32>)> = None;
        let mut goes_on = 0u64;
        for (n, (likely, segment)) in likely.iter_mut().zip(group).enumerate() {
            // In a bulk transfer one segment follows the other.
            *likely = match before {
                Some((other, slot)) if same_connection(other, segment) => {
                    goes_on |= 1 << n;
                    slot
                }
                _ => self.index.likely(segment),
            };
            before = Some((segment, *likely));
        }
        let mut touched = 0u64;
        if far {
            for slot in likely.iter().flatten() {
                if let Slot::Conn(held) = &self.live[*slot as usize] {
                    touched = touched.wrapping_add(held.touch_first());
                }
            }
        }
        let mut hints: [Option<Hint>; AHEAD] = [None; AHEAD];
        let mut known = None;
        for (n, ((hint, likely), segment)) in hints.iter_mut().zip(likely).zip(group).enumerate() {
            if goes_on & 1 << n == 0 {
                let slot = likely
                    .and_then(|slot| if self.holds(slot, segment) { Some(slot) } else { self.find(segment) });
                known = slot.map(|slot| (slot, self.id_at(slot)));
                if far && let Some(Slot::Conn(held)) = slot.map(|slot| &self.live[slot as usize]) {
                    touched = touched.wrapping_add(held.touch(crowded));
                }
            }
            *hint = known;
        }
        std::hint::black_box(touched);
        hints
    }
}

/// Addresses, ports and link are the same, whichever way it goes.
fn same_connection(a: &Segment, b: &Segment) -> bool {
    a.link == b.link && (a.src == b.src && a.dst == b.dst || a.src == b.dst && a.dst == b.src)
}
