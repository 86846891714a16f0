//! Connections that have closed and wait for late packets: which of them goes when.
//!
//! Of each class of connections ([`Part::class`]) so many wait, the oldest go first; and none longer than it may. A class is always with one analyzer, so
//! that how long one waits does not depend on how many of them share the work.

use std::collections::VecDeque;
use tcpwhy_base::{Nanos, Part};

/// No more closed connections than 16,384 are kept.
const OF_A_CLASS: usize = 16_384 / Part::CLASSES;

/// One that waits: until when, where it is, and its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub(super) until: Nanos,
    pub(super) slot: u32,
    pub(super) id: u32,
}

impl Closed {
    /// It waits no more, though it is in the queue.
    const GONE: u32 = u32::MAX;

    fn is_gone(&self) -> bool {
        self.slot == Closed::GONE
    }
}

/// In the order in which they closed.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    queue: VecDeque<Closed>,
    /// So many have left the queue, modulo 2^32.
    left: u32,
    /// So many of those in it wait.
    waiting: usize,
    /// Where in the queue those of each class are, counted from the first of all.
    classes: Vec<VecDeque<u32>>,
    crowded_out: Option<Closed>,
}

impl Lingering {
    /// One more has closed. Another one of its class may have to go.
    pub(super) fn push(&mut self, until: Nanos, slot: u32, id: u32, class: usize) {
        let at = self.left.wrapping_add(self.queue.len() as u32);
        self.queue.push_back(Closed { until, slot, id });
        self.waiting += 1;
        if self.classes.is_empty() {
            self.classes.resize_with(Part::CLASSES, VecDeque::new);
        }
        let Some(class) = self.classes.get_mut(class) else { return };
        class.push_back(at);
        if class.len() > OF_A_CLASS
            && let Some(oldest) = class.pop_front()
            && let Some(closed) = self.queue.get_mut(oldest.wrapping_sub(self.left) as usize)
            && !closed.is_gone()
        {
            self.crowded_out = Some(*closed);
            closed.slot = Closed::GONE;
            self.waiting -= 1;
        }
    }

    /// The one that has to go if one more of this class closes.
    pub(super) fn next_of(&self, class: usize) -> Option<&Closed> {
        let oldest = self.classes.get(class).filter(|class| class.len() >= OF_A_CLASS)?.front()?;
        self.queue.get(oldest.wrapping_sub(self.left) as usize).filter(|closed| !closed.is_gone())
    }

    /// The one that has to go since others of its class closed.
    pub(super) fn crowded_out(&mut self) -> Option<Closed> {
        self.crowded_out.take()
    }

    /// Whoever waits for the longest.
    pub(super) fn first(&mut self) -> Option<Closed> {
        while self.queue.front().is_some_and(Closed::is_gone) {
            self.queue.pop_front();
            self.left = self.left.wrapping_add(1);
        }
        self.queue.front().copied()
    }

    /// It waits no more.
    pub(super) fn pop(&mut self) {
        if self.queue.pop_front().is_some_and(|closed| !closed.is_gone()) {
            self.waiting -= 1;
        }
        self.left = self.left.wrapping_add(1);
    }

    /// A late packet came: it waits until then.
    pub(super) fn first_waits_until(&mut self, until: Nanos) {
        if let Some(first) = self.queue.front_mut() {
            first.until = until;
        }
    }

    /// The nth that goes, if its time comes.
    pub(super) fn get(&self, n: usize) -> Option<&Closed> {
        self.queue.get(n)
    }

    /// So many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// When somebody has to go.
    pub(super) fn due(&mut self) -> Nanos {
        match self.crowded_out {
            Some(_) => Nanos(i64::MIN),
            None => self.first().map_or(Nanos::MAX, |closed| closed.until),
        }
    }
}
