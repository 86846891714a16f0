//! How the clock of one tap goes on that of another: packets pass both, and none arrives before it left.

use tcpwhy_base::Nanos;

/// Crystals are within 100 ppm; a clock that is being slewed may go 500 ppm wrong (`adjtime`).
const STEEPEST: i64 = 500_000;
/// What is no drift: hosts need such a time to wake up, and a sixty-fourth of the trip.
const JITTER: Nanos = Nanos::micros(100);

/// The second tap's clock, as the first tap's tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The second clock minus the first, at `since`.
    pub offset: Nanos,
    /// By how much it runs faster, billionths; zero where a constant offset explains all packets.
    pub drift_ppb: i64,
    /// When `offset` was that much, on the first clock.
    pub since: Nanos,
    /// The offset is off by at most this: half of the shortest way there and back. It is right where both
    /// ways are equally long.
    pub residual: Nanos,
    /// Packets that it was fitted to.
    pub packets: usize,
}

/// A packet that passed both taps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Both {
    /// When it passed the first, and the second, each on its own clock.
    pub(super) times: (Nanos, Nanos),
    /// It passed the first tap first.
    pub(super) onward: bool,
}

impl Clock {
    /// A time of the second tap on the first one's clock.
    pub fn to_first(&self, second: Nanos) -> Nanos {
        let near = second - self.offset;
        let ran = i128::from((near - self.since).0) * i128::from(self.drift_ppb) / 1_000_000_000;
        near - Nanos(i64::try_from(ran).unwrap_or(0))
    }

    /// Packets went one way only: the clocks are taken to agree where no packet arrives before it left, or
    /// later than a second after; else the quickest was on its way for no time. `None`: there are none.
    pub(super) fn one_way(both: &[Both]) -> Option<Clock> {
        let since = both.iter().map(|b| b.times.0).min()?;
        let quickest = both.iter().map(|b| b.times.1 - b.times.0).min()?;
        let agree = quickest >= Nanos::ZERO && quickest <= Nanos::secs(1);
        let offset = if agree { Nanos::ZERO } else { quickest };
        Some(Clock { offset, drift_ppb: 0, since, residual: quickest, packets: both.len() })
    }

    /// The clock on which no packet arrives before it left, with as much room on both ways as there can be.
    /// `None`: there is none (a clock was set in between), or packets went one way only.
    pub(super) fn fit(both: &[Both]) -> Option<Clock> {
        let since = both.iter().map(|b| b.times.0).min()?;
        let room = |ppb: i64| Room::of(both, since, ppb);
        let (mut low, mut high) = (-STEEPEST, STEEPEST);
        // The room is concave in the drift: a minimum of lines less a maximum of lines.
        while high - low > 2 {
            let (a, b) = (low + (high - low) / 3, high - (high - low) / 3);
            if room(a)?.width() < room(b)?.width() {
                low = a;
            } else {
                high = b;
            }
        }
        let drift = (low..=high).max_by_key(|&ppb| room(ppb).map(|r| r.width()))?;
        let (level, best) = (room(0)?, room(drift)?);
        let enough = best.width() - level.width() <= JITTER.max(best.width().part(64));
        let (drift_ppb, room) =
            if level.width() >= Nanos::ZERO && enough { (0, level) } else { (drift, best) };
        // Time stamps of two devices are written a moment apart.
        if room.width() < Nanos::ZERO - JITTER {
            return None;
        }
        let offset = room.least + room.width().part(2);
        let residual = room.width().part(2).0.max(0);
        Some(Clock { offset, drift_ppb, since, residual: Nanos(residual), packets: both.len() })
    }
}

/// Offsets that no packet contradicts.
struct Room {
    least: Nanos,
    most: Nanos,
}

impl Room {
    fn of(both: &[Both], since: Nanos, ppb: i64) -> Option<Room> {
        let offset = |b: &Both| {
            let ran = i128::from((b.times.0 - since).0) * i128::from(ppb) / 1_000_000_000;
            b.times.1 - b.times.0 - Nanos(i64::try_from(ran).unwrap_or(0))
        };
        let most = both.iter().filter(|b| b.onward).map(offset).min()?;
        let least = both.iter().filter(|b| !b.onward).map(offset).max()?;
        Some(Room { least, most })
    }

    fn width(&self) -> Nanos {
        self.most - self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> Nanos = Nanos::millis;

    /// Packets every 10 ms, there in 8 ms and back in 8 ms, some of them later.
    fn packets(seconds: i64, offset: Nanos, ppb: i64) -> Vec<Both> {
        let second =
            |t: Nanos| t + offset + Nanos((i128::from(t.0) * i128::from(ppb) / 1_000_000_000) as i64);
        (0..seconds * 100)
            .map(|n| {
                let (at, late) = (MS(n * 10), MS((n * 7) % 5));
                let onward = n % 2 == 0;
                let arrives = at + MS(8) + late;
                let times = if onward { (at, second(arrives)) } else { (arrives, second(at)) };
                Both { times, onward }
            })
            .collect()
    }

    #[test]
    fn offset_and_drift_are_found() {
        for (offset, ppb) in [(MS(0), 0), (Nanos::secs(-3_600), 0), (MS(250), 20_000), (MS(-9), -80_000)] {
            let clock = Clock::fit(&packets(120, offset, ppb)).unwrap();
            let off = |t: Nanos| {
                let second = t + offset + Nanos((i128::from(t.0) * i128::from(ppb) / 1_000_000_000) as i64);
                (clock.to_first(second) - t).0.abs()
            };
            let worst = [0, 30, 60, 119].map(|s| off(Nanos::secs(s))).into_iter().max().unwrap();
            assert!(worst < 400_000, "{offset} {ppb}: {worst} ns off with {clock:?}");
            assert!((clock.residual - MS(8)).0.abs() < 200_000, "{clock:?}");
        }
    }

    #[test]
    fn a_constant_offset_is_enough_where_it_explains_all() {
        assert_eq!(Clock::fit(&packets(2, MS(5), 20_000)).unwrap().drift_ppb, 0);
    }

    #[test]
    fn a_clock_that_was_set_has_no_fit() {
        let mut both = packets(10, MS(0), 0);
        for b in both.iter_mut().skip(500) {
            b.times.1 += Nanos::secs(40);
        }
        assert_eq!(Clock::fit(&both), None);
    }

    #[test]
    fn one_way_is_not_enough() {
        let both: Vec<Both> = packets(10, MS(0), 0).into_iter().filter(|b| b.onward).collect();
        assert_eq!(Clock::fit(&both), None);
        assert_eq!(Clock::fit(&[]), None);
    }
}
