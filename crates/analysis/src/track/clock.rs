//! How coarse the capture's clock is, as the packets of a connection tell.

use crate::rest::at_rest;
use tcpwhy_base::Nanos;

/// The clock by which packets are stamped: it may tick every 10 ms or 1 ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// All packets were stamped with multiples of this; zero: of nothing that matters.
    tick: Nanos,
    packets: u8,
}

at_rest! { Clock { tick, packets } }

/// Stamps in a row that must be round before the clock is taken for a coarse one, so that a short connection
/// whose few times happen to be round is none.
const ENOUGH: u8 = 32;

/// So many are enough for a doubt: by a clock of microseconds three in a row are round once in 10^9 times.
const DOUBTFUL: u8 = 4;

impl Default for Clock {
    fn default() -> Clock {
        Clock { tick: Nanos::millis(10), packets: 0 }
    }
}

impl Clock {
    /// A packet was stamped so.
    #[inline]
    pub(crate) fn stamped(&mut self, time: Nanos) {
        if self.tick > Nanos::ZERO {
            self.looks_at(time);
        }
    }

    #[cold]
    fn looks_at(&mut self, time: Nanos) {
        self.packets = self.packets.saturating_add(1);
        if time.0 % self.tick.0 != 0 {
            let finer = time.0 % 1_000_000 == 0;
            self.tick = if finer { Nanos::millis(1) } else { Nanos::ZERO };
        }
    }

    /// How long it stands still; zero where that is shorter than anything that is judged.
    #[inline]
    pub(crate) fn tick(&self) -> Nanos {
        if self.packets >= ENOUGH { self.tick } else { Nanos::ZERO }
    }

    /// How long it may stand still, where all packets so far had round stamps.
    pub(crate) fn may_tick(&self) -> Nanos {
        if self.packets >= DOUBTFUL { self.tick } else { Nanos::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(first: i64, then: i64, n: usize) -> Nanos {
        let mut clock = Clock::default();
        clock.stamped(Nanos::micros(first));
        (1..n).for_each(|_| clock.stamped(Nanos::micros(then)));
        clock.tick()
    }

    #[test]
    fn round_stamps_in_a_row_make_a_coarse_clock() {
        assert_eq!(tick(10_000, 20_000, 32), Nanos::millis(10));
        assert_eq!(tick(10_000, 20_000, 31), Nanos::ZERO);
        assert_eq!(tick(11_000, 20_000, 32), Nanos::millis(1));
        assert_eq!(tick(10_001, 20_000, 40), Nanos::ZERO);
        assert_eq!(tick(10_000, 20_100, 40), Nanos::ZERO);
    }
}
