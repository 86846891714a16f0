//! How an analyzer works, said before it has seen anything.

use super::elsewhere::Taps;
use super::{Analyzer, LINGER};
use crate::window::Window;
use tcpwhy_base::Nanos;

impl Analyzer {
    /// The same, looking at a stretch of time only: everything is followed, so that exchanges keep their
    /// numbers and what came before is known, but only what lies within is accounted for. Parts on its edge
    /// are cut there.
    #[must_use]
    pub fn within(mut self, window: Option<Window>) -> Analyzer {
        self.kept.look_within(window);
        self
    }

    /// The same, where the answer will not be narrowed ([`Analysis::retain`](crate::Analysis::retain)): a
    /// tenth less memory and time where connections are many.
    #[must_use]
    pub fn never_narrowed(mut self) -> Analyzer {
        self.narrows = false;
        self
    }

    /// The same, where somebody waits for connections that have closed: they go this long after their last
    /// packet. One that comes later is a connection of its own.
    #[must_use]
    pub fn lingering(mut self, linger: Nanos) -> Analyzer {
        self.linger = linger.min(LINGER);
        self
    }

    /// The same, where packets wait for each other once so many connections live; with the largest number not
    /// even the first ones do.
    #[must_use]
    pub fn crowded_from(mut self, connections: usize) -> Analyzer {
        self.crowd = connections;
        self
    }

    /// The same without any short cut for packets and exchanges about which nothing is odd. The answer is the
    /// same, which tests hold those to.
    #[must_use]
    pub fn by_the_long_way(mut self) -> Analyzer {
        self.kept.goes_the_long_way();
        self
    }

    /// The same, where a connection lies idle as soon as each other one was looked at. The answer is the
    /// same, which tests hold it to.
    #[doc(hidden)]
    #[must_use]
    pub fn rests_soon(mut self) -> Analyzer {
        self.hand.rests_soon();
        self
    }

    /// The same, where each connection lies idle after each [`Analyzer::push`] and [`Analyzer::push_all`].
    /// The answer is the same, which tests hold it to.
    #[doc(hidden)]
    #[must_use]
    pub fn rests_always(mut self) -> Analyzer {
        self.hand.rests_always();
        if let Taps::Two(other) = &mut self.taps {
            other.hand.rests_always();
        }
        self
    }
}
