//! Connections that have closed and wait for late packets: which of them goes when.
//!
//! Of each class of connections ([`Part::class`]) so many wait, the oldest go first; and none longer than it
//! may. A class is always with one analyzer, so that how long one waits does not depend on how many of them
//! share the work.

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

/// Those of each class in the order in which they closed.
#[derive(Debug)]
pub(super) struct Lingering {
    classes: Vec<VecDeque<Closed>>,
    waiting: usize,
    /// Nobody's time is over before.
    due: Nanos,
    crowded_out: Option<Closed>,
}

impl Lingering {
    pub(super) fn new() -> Lingering {
        Lingering { classes: Vec::new(), waiting: 0, due: Nanos::MAX, crowded_out: None }
    }

    /// One more has closed. Another one of its class may have to go.
    pub(super) fn push(&mut self, until: Nanos, slot: u32, id: u32, class: usize) {
        if self.classes.is_empty() {
            self.classes.resize_with(Part::CLASSES, VecDeque::new);
        }
        let Some(class) = self.classes.get_mut(class) else { return };
        class.push_back(Closed { until, slot, id });
        self.due = self.due.min(until);
        self.waiting += 1;
        if class.len() > OF_A_CLASS {
            self.crowded_out = class.pop_front();
            self.waiting -= 1;
        }
    }

    /// The one that has to go if one more of this class closes.
    pub(super) fn next_of(&self, class: usize) -> Option<&Closed> {
        self.classes.get(class).filter(|class| class.len() >= OF_A_CLASS)?.front()
    }

    /// The one that has to go since another one of its class closed.
    pub(super) fn crowded_out(&mut self) -> Option<Closed> {
        self.crowded_out.take()
    }

    /// Those whose time is over, in the order of that. `until` says how long one may wait now, for late
    /// packets came to some; `None`: it is not there any more.
    pub(super) fn over(&mut self, now: Nanos, until: impl Fn(Closed) -> Option<Nanos>) -> Vec<Closed> {
        let mut over = Vec::new();
        if self.due >= now {
            return over;
        }
        self.due = Nanos::MAX;
        for class in &mut self.classes {
            while let Some(first) = class.front_mut() {
                if first.until < now {
                    first.until = until(*first).unwrap_or(first.until);
                }
                if first.until >= now {
                    self.due = self.due.min(first.until);
                    break;
                }
                over.extend(class.pop_front());
            }
        }
        self.waiting -= over.len();
        over.sort_unstable_by_key(|closed| (closed.until, closed.id));
        over
    }

    /// So many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// When somebody may have to go.
    pub(super) fn due(&self) -> Nanos {
        if self.crowded_out.is_some() { Nanos(i64::MIN) } else { self.due }
    }
}
