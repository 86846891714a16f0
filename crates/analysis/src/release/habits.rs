//! What the waits of a connection teach about its hosts.

use crate::release::acked::shows_nodelay;
use crate::release::value::{Release, Wait};
use crate::track::Passage;
use tcpwhy_base::{End, Ends, Nanos};

/// Habits of the two hosts, as far as their waits have shown them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Habits {
    /// How often a partial segment followed another unacknowledged one: Nagle's algorithm was off.
    nodelay: Ends<u32>,
    /// Waits with the timing of Nagle's algorithm that ended at once with the ACK.
    nagle_holds: u32,
    cork: Option<Cork>,
}

/// The timer of a cork.
#[derive(Clone, Copy, Debug)]
struct Cork {
    /// Waits with its timing.
    seen: u32,
    /// The last of them.
    wait: Nanos,
}

impl Habits {
    /// How often `s` showed that it has Nagle's algorithm off.
    pub(crate) fn nodelay_shown(&self, s: End) -> u32 {
        self.nodelay[s]
    }

    /// How often a segment left with the ACK that Nagle's algorithm waits for.
    pub(crate) fn nagle_holds(&self) -> u32 {
        self.nagle_holds
    }

    /// How often a segment waited as long as a cork's timer takes.
    pub(crate) fn cork_timers(&self) -> u32 {
        self.cork.map_or(0, |c| c.seen)
    }

    /// A timer fires after the same time again and again; applications do not write so.
    pub(crate) fn may_be_cork(&self, wait: Nanos) -> bool {
        self.cork.is_none_or(|c| (wait - c.wait).0.abs() <= c.wait.part(8).0)
    }

    /// Learns from a release.
    #[inline]
    pub(crate) fn learn(&mut self, passage: &Passage<'_>, release: &Release) {
        match release.wait {
            Wait::Burst if shows_nodelay(passage) => self.nodelay[passage.sender] += 1,
            // Between two messages it may be chance.
            Wait::Nagle { prompt: true, .. } if passage.since.speaker == passage.sender => {
                self.nagle_holds += 1
            }
            Wait::CorkTimer { wait } => self.cork = Some(Cork { seen: self.cork_timers() + 1, wait }),
            _ => {}
        }
    }
}
