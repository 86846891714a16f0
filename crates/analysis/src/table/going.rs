//! Connections that end, or in which no more packets may wait, are put aside until several are: those run
//! through the rules side by side.

use super::ahead::Known;
use super::held::{Held, TOGETHER};
use super::lingering::Closed;
use super::{Analyzer, Slot, latest_of};
use tcpwhy_base::Segment;

impl Analyzer {
    /// It ends with the next ones, before whatever comes to it.
    pub(super) fn put_aside(&mut self, closed: Closed) {
        if latest_of(&self.live, closed).is_none() {
            return;
        }
        if let Some(Slot::Conn(held)) = self.live.get_mut(closed.slot as usize) {
            held.set_goes(true);
            self.going.push(closed);
        }
        if self.going.len() == TOGETHER {
            self.let_them_go();
        }
    }

    /// The connection in this slot has to end before anything comes to it.
    #[inline]
    pub(super) fn goes(&self, slot: u32) -> bool {
        matches!(self.live.get(slot as usize), Some(Slot::Conn(held)) if held.goes())
    }

    /// The connection of the segment once those that go have gone.
    #[cold]
    pub(super) fn found_behind(&mut self, segment: &Segment) -> Option<Known> {
        self.let_them_go();
        self.find_of(segment).or_else(|| self.other_direction(segment))
    }

    /// Those whose time is over end.
    pub(super) fn let_them_go(&mut self) {
        if self.going.is_empty() {
            return;
        }
        let mut going = std::mem::take(&mut self.going);
        self.run_together(going.iter().map(|closed| closed.slot));
        for closed in going.drain(..) {
            let Some(Slot::Conn(held)) = self.live.get_mut(closed.slot as usize) else { continue };
            held.set_goes(false);
            // What waited may have held a copy of what closes a connection.
            if held.settle(&mut self.kept, &mut self.room).lingers() {
                self.leave(closed.slot, false);
            }
        }
        self.going = going;
    }

    /// No more will wait in this connection before long: what waits there runs through the rules with what
    /// waits in others.
    #[inline(never)]
    pub(super) fn becomes_full(&mut self, slot: u32) {
        let held = |slot: u32| match self.live.get(slot as usize) {
            Some(Slot::Conn(held)) => Some(held),
            _ => None,
        };
        self.full.last().and_then(|&last| held(last)).into_iter().for_each(|held| held.fetch_lists(false));
        held(slot).into_iter().for_each(|held| held.fetch_state(&self.room));
        self.full.push(slot);
        if self.full.len() == TOGETHER {
            let mut full = std::mem::take(&mut self.full);
            self.run_together(full.drain(..));
            self.full = full;
        }
    }

    /// Runs what waits in these through the rules.
    fn run_together(&mut self, slots: impl Iterator<Item = u32>) {
        let mut all: Vec<(usize, Box<Held>)> = Vec::with_capacity(TOGETHER);
        for slot in slots {
            let at = slot as usize;
            match self.live.get_mut(at).map(|slot| std::mem::replace(slot, Slot::Free)) {
                Some(Slot::Conn(held)) => all.push((at, held)),
                Some(other) => self.live[at] = other,
                None => {}
            }
        }
        Held::run_all(all.iter_mut().map(|(_, held)| &mut **held), &mut self.kept, &mut self.room);
        for (at, held) in all {
            self.live[at] = Slot::Conn(held);
        }
    }
}
