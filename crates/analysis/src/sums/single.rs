//! Connections with one exchange or less each, of one client address to one server: what would have been
//! spared, had those been kept that were open (rule 146).

use super::Order;
use crate::fixes::Brief;
use crate::result::{Connection, Frames};
use tcpwhy_base::Nanos;

/// So many are looked at one by one. Of more it matters little how many ran side by side.
const EACH: usize = 64;

/// Connections of one client address to one server with one exchange or less each.
#[derive(Debug)]
pub(super) struct Single {
    /// The time of their setups.
    pub(super) setup: Nanos,
    pub(super) count: u64,
    pub(super) first: First,
    /// Each, as long as they are few.
    each: Vec<Busy>,
    /// From the first one's first packet until the last byte of any.
    over: (Nanos, Nanos),
    /// How long they had something to do, together.
    busy: Nanos,
}

/// The one that began before all others.
#[derive(Debug)]
pub(super) struct First {
    pub(super) order: Order,
    pub(super) brief: Brief,
    pub(super) frames: Frames,
    pub(super) time: (Nanos, Nanos),
}

/// From its first packet until its last byte, and what its setup took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Busy {
    start: Nanos,
    done: Nanos,
    setup: Nanos,
}

impl First {
    fn of(c: &Connection, file: u16) -> First {
        First {
            order: Order::of(c),
            brief: Brief::of(c),
            frames: Frames::new(file, c.frames.0, c.frames.1, &[c.frames.0]),
            time: (c.start, c.end),
        }
    }

    /// The connection by its final number.
    pub(super) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.order.renumber(&number);
        self.brief.id = number(self.brief.id);
    }
}

impl Single {
    /// None yet; this one is to be the first.
    pub(super) fn new(c: &Connection, file: u16) -> Single {
        Single {
            setup: Nanos::ZERO,
            count: 0,
            first: First::of(c, file),
            each: Vec::new(),
            over: (c.start, c.start),
            busy: Nanos::ZERO,
        }
    }

    /// Adds a connection whose setup took so long.
    pub(super) fn add(&mut self, c: &Connection, file: u16, setup: Nanos) {
        self.setup += setup;
        self.count += 1;
        if Order::of(c) < self.first.order {
            // Ended later, begun earlier.
            self.first = First::of(c, file);
        }
        // Until its last byte, of which there is a measure also where exchanges are not kept.
        let busy = Busy { start: c.start, done: c.start + c.measured(), setup };
        self.over = (self.over.0.min(busy.start), self.over.1.max(busy.done));
        self.busy += busy.done - busy.start;
        self.keep(&[busy]);
    }

    /// Adds those of other connections.
    pub(super) fn absorb(&mut self, theirs: Single) {
        self.setup += theirs.setup;
        self.count += theirs.count;
        if theirs.first.order < self.first.order {
            self.first = theirs.first;
        }
        self.over = (self.over.0.min(theirs.over.0), self.over.1.max(theirs.over.1));
        self.busy += theirs.busy;
        self.keep(&theirs.each);
    }

    fn keep(&mut self, more: &[Busy]) {
        if self.count <= EACH as u64 {
            self.each.extend_from_slice(more);
        } else {
            self.each = Vec::new();
        }
    }

    /// The time of the setups that were needless, and how many connections were not. In whatever order they came.
    pub(super) fn spared(&self) -> (Nanos, u64) {
        if self.count > EACH as u64 {
            // So many were open at a time, in the middle: the time of all, by that from the first to the last (Little's law).
            let whole = (self.over.1 - self.over.0).0.max(1) as u64;
            let at_once = (self.busy.0.max(0) as u64).div_ceil(whole).clamp(1, self.count) as i64;
            return (
                self.setup.share(Nanos(self.count as i64 - at_once), Nanos(self.count as i64)),
                at_once as u64,
            );
        }
        let mut each = self.each.clone();
        each.sort_unstable();
        let mut open: Vec<Nanos> = Vec::new();
        let mut needless = Nanos::ZERO;
        for busy in each {
            match open.iter_mut().find(|done| **done < busy.start) {
                Some(done) => {
                    needless += busy.setup;
                    *done = busy.done;
                }
                None => open.push(busy.done),
            }
        }
        (needless, open.len() as u64)
    }
}
