//! Bytes of one direction that did not pass the tap when their turn was.

use crate::rest::{Near, at_rest};
use crate::track::stamps::is_newer;
use tcpwhy_base::{Nanos, Seq};

/// Bytes below the highest sequence number that never passed the tap.
#[derive(Clone, Copy, Debug)]
struct Hole {
    from: Seq,
    to: Seq,
    /// When the first byte beyond it passed.
    opened: Nanos,
    /// The time stamp that came with that byte.
    beyond: Option<u32>,
}

at_rest! { Hole { from, to, opened, beyond as Near } }

/// What filled a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    /// When the hole was opened.
    pub(crate) opened: Nanos,
    /// So many of its bytes were filled.
    pub(crate) bytes: u32,
    /// What filled it had left before its receiver can have told of the hole: the path changed the order.
    pub(crate) was_overtaken: bool,
}

/// So many holes are kept: 12 kB at most.
const MOST: usize = 512;

/// The holes of one direction, in the order of opening.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    open: Vec<Hole>,
    /// End of the last bytes that filled one.
    filled: Option<Seq>,
    /// Up to where its sender had sent, as others than its data tell, and since when that is known.
    told: Option<Box<(Seq, Nanos)>>,
}

at_rest! { Holes { open, filled, told } }

impl Holes {
    /// Nothing is missing, nor known to have been sent beyond what passed.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.told.is_none()
    }

    /// `from..to` was passed over, by a segment with this time stamp, where one opened it.
    pub(crate) fn open(&mut self, from: Seq, to: Seq, opened: Nanos, beyond: Option<u32>) {
        // Each second segment of a large flight may be lost; beyond that the oldest is forgotten.
        if self.open.len() >= MOST {
            self.open.remove(0);
        }
        self.open.push(Hole { from, to, opened, beyond });
    }

    /// All up to `to` had been sent at `t`, of which what begins at `nxt` has not passed.
    pub(crate) fn tell(&mut self, nxt: Seq, to: Seq, t: Nanos) {
        let since = self.beyond(nxt).map_or(t, |beyond| beyond.0.min(t));
        self.told = Some(Box::new((to, since)));
    }

    /// What is known to have been sent behind `nxt`, and has not passed: since when, and how many bytes.
    pub(crate) fn beyond(&self, nxt: Seq) -> Option<(Nanos, u32)> {
        let &(to, since) = self.told.as_deref().filter(|told| told.0.after(nxt))?;
        Some((since, to.minus(nxt) as u32))
    }

    /// Takes `seq..end` out of them, which came with that time stamp. A repair leaves when its sender has
    /// heard of what came first beyond the hole, a round trip after that had left; so its stamp is a later
    /// one, if such a trip is longer than a tick (`apart`), else no older one (rule 130).
    pub(crate) fn fill(&mut self, seq: Seq, end: Seq, stamp: Option<u32>, apart: bool) -> Option<Filled> {
        let i = self.open.iter().position(|h| seq.before(h.to) && h.from.before(end))?;
        let hole = self.open[i];
        let from = hole.from.max(seq);
        let to = if end.before(hole.to) { end } else { hole.to };
        self.filled = Some(to);
        self.open.remove(i);
        if to.before(hole.to) {
            self.open.insert(i, Hole { from: to, ..hole });
        }
        if hole.from.before(from) {
            self.open.insert(i, Hole { to: from, ..hole });
        }
        let older = |(stamp, beyond)| is_newer(beyond, stamp) || apart && stamp == beyond;
        Some(Filled {
            opened: hole.opened,
            bytes: to.minus(from).max(0) as u32,
            was_overtaken: stamp.zip(hole.beyond).is_some_and(older),
        })
    }

    /// The one that the receiver waits for, which has everything below `una`: since when, and how many bytes it lacks.
    pub(crate) fn waited_for(&self, una: Seq) -> Option<(Nanos, u32)> {
        let hole = self.open.iter().find(|h| h.from.at_or_before(una) && una.before(h.to))?;
        Some((hole.opened, hole.to.minus(una) as u32))
    }

    /// Everything below `una` is acknowledged: how many bytes of holes arrived without having passed the tap.
    pub(crate) fn acknowledged(&mut self, una: Seq) -> u32 {
        let mut unseen = 0u32;
        // Numbers come round again after 4 GiB.
        if self.told.as_deref().is_some_and(|told| told.0.at_or_before(una)) {
            self.told = None;
        }
        self.open.retain(|h| {
            let gone = h.to.at_or_before(una);
            if gone {
                unseen = unseen.saturating_add(h.to.minus(h.from).max(0) as u32);
            }
            !gone
        });
        unseen
    }

    /// Bytes that filled a hole lie above `una` and up to `ack`.
    pub(crate) fn filled_within(&self, una: Seq, ack: Seq) -> bool {
        self.filled.is_some_and(|end| end.after(una) && !end.after(ack))
    }

    /// More than a byte of one was acknowledged though it never passed.
    pub(crate) fn any_acknowledged(&self, una: Seq) -> bool {
        self.open.iter().any(|h| h.to.minus(h.from) > 1 && !h.to.after(una))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_segment_of_a_large_flight_may_be_missing() {
        let mut holes = Holes::default();
        (0..300).for_each(|n| holes.open(Seq(200 * n), Seq(200 * n + 100), Nanos(7), None));
        let filled = (0..300).filter_map(|n| holes.fill(Seq(200 * n), Seq(200 * n + 100), None, true));
        assert_eq!(filled.map(|f| f.bytes).sum::<u32>(), 30_000);
        (0..600).for_each(|n| holes.open(Seq(200 * n), Seq(200 * n + 100), Nanos(7), None));
        assert_eq!(holes.fill(Seq(0), Seq(100), None, true), None, "bounded");
    }

    #[test]
    fn a_hole_filled_in_the_middle_leaves_two() {
        let mut holes = Holes::default();
        holes.open(Seq(100), Seq(400), Nanos(7), None);
        let filled = Filled { opened: Nanos(7), bytes: 100, was_overtaken: false };
        assert_eq!(holes.fill(Seq(200), Seq(300), Some(5), true), Some(filled));
        assert!(holes.filled_within(Seq(299), Seq(300)));
        assert_eq!(holes.fill(Seq(200), Seq(300), Some(5), true), None);
        assert_eq!(holes.acknowledged(Seq(200)), 100);
        assert_eq!(holes.acknowledged(Seq(400)), 100);
        assert!(holes.is_empty());
    }

    /// An older stamp than that of what passed beyond it; the same, where a trip is longer than a tick; and
    /// none, or no stamp.
    #[test]
    fn what_left_before_the_hole_was_known_was_overtaken() {
        let filled = |stamp, apart| {
            let mut holes = Holes::default();
            holes.open(Seq(100), Seq(400), Nanos(7), Some(2));
            holes.fill(Seq(100), Seq(200), None, true);
            holes.fill(Seq(200), Seq(400), Some(stamp), apart).is_some_and(|f| f.was_overtaken)
        };
        assert_eq!([1, u32::MAX, 2, 3].map(|stamp| filled(stamp, true)), [true, true, true, false]);
        assert_eq!([1, 2].map(|stamp| filled(stamp, false)), [true, false]);
    }

    #[test]
    fn what_was_told_is_forgotten_once_it_is_acknowledged() {
        let mut holes = Holes::default();
        holes.tell(Seq(100), Seq(900), Nanos(7));
        holes.tell(Seq(100), Seq(1_000), Nanos(9));
        assert_eq!((holes.beyond(Seq(100)), holes.beyond(Seq(1_000))), (Some((Nanos(7), 900)), None));
        assert_eq!(holes.acknowledged(Seq(999)), 0);
        assert!(!holes.is_empty());
        assert_eq!(holes.acknowledged(Seq(1_000)), 0);
        // Three gigabytes later its number would lie ahead.
        assert!(holes.is_empty() && holes.beyond(Seq(1_000) + (3 << 30)).is_none());
    }
}
