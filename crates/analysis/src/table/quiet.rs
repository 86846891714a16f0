//! Connections in which nothing happens lie idle as bytes.

use super::{Analyzer, Slot};
use tcpwhy_base::{Nanos, Segment};

/// So many may be awake, as quiet as they are: a quarter of a gigabyte, at eight kilobytes each. To go to rest and wake once takes an eighth
/// of the time that a connection of a hundred packets takes in all.
const AWAKE: usize = 32_768;
/// So many packets pass before the next connection is looked at.
const PACE: i64 = 8;
/// Nothing passed for the time after which an end that knows nothing of the way would have sent again (RFC 6298, 2.1).
const QUIET: Nanos = Nanos::secs(1);
/// To be written and read costs a state as much as two dozen packets: the hand waits for so many if one goes on, so that at most a twentieth of the time is spent
/// on that, and for no more than so many.
const WOKEN: i64 = 512;
const LONGEST: i64 = 1 << 22;
/// What is looked at so much later is on its way from memory.
const AHEAD: usize = 8;

/// Goes over all connections again and again: one that was not heard of since it came by goes to rest.
#[derive(Debug, Default)]
pub(super) struct Hand {
    at: usize,
    /// Packets that have passed and were not spent on looks.
    passed: i64,
    /// Each goes to rest after each packet.
    always: bool,
}

impl Hand {
    /// Tests hold the answer to be the same.
    pub(super) fn rests_always(&mut self) {
        self.always = true;
    }
}

impl Analyzer {
    /// These have passed: connections that were quiet while many did go to rest.
    #[inline]
    pub(super) fn look_for_quiet(&mut self, passed: &[Segment]) {
        if self.hand.always {
            return self.rest_all();
        }
        if self.held.saturating_sub(self.room.resting()) > AWAKE
            && let Some(last) = passed.last()
        {
            self.look_on(passed.len(), last.time);
        }
    }

    fn look_on(&mut self, passed: usize, now: Nanos) {
        let woken = self.room.woken() * WOKEN;
        self.hand.passed = (self.hand.passed + passed as i64 - woken).max(-LONGEST);
        while self.hand.passed >= PACE {
            self.hand.passed -= PACE;
            self.look_at_next(now);
        }
    }

    fn look_at_next(&mut self, now: Nanos) {
        let at = if self.hand.at < self.live.len() { self.hand.at } else { 0 };
        self.hand.at = at + 1;
        if let Some(Slot::Conn(held)) = self.live.get(at + AHEAD) {
            held.fetch_first();
        }
        if let Some(Slot::Conn(held)) = self.live.get_mut(at)
            && held.was_quiet(now - QUIET)
        {
            held.rest(&mut self.kept, &mut self.room);
        }
    }

    #[cold]
    fn rest_all(&mut self) {
        for slot in &mut self.live {
            if let Slot::Conn(held) = slot {
                held.rest(&mut self.kept, &mut self.room);
            }
        }
    }
}
