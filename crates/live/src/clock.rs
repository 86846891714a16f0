//! Packets are stamped with the time of day, kernel events with the time since the start of the machine.

use rustix::time::{ClockId, Timespec, clock_gettime};
use tcpwhy_base::Nanos;

/// By how much the two differ. Read anew each time, as the time of day may be set.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The time of day when the machine was started.
    zero: Nanos,
    /// By how much this process's clock is ahead of the kernel's.
    offset: Nanos,
}

impl Clock {
    /// As it stands now.
    pub fn read() -> Clock {
        // Between two looks at the one that does not jump; the nearest of a few, for this may be interrupted.
        Clock::of(
            (0..5).map(|_| (monotonic(), nanos(clock_gettime(ClockId::Realtime)), monotonic())),
            namespace_offset(),
        )
    }

    /// From looks at the clock that does not jump, the time of day, and the first again; the kernel stamps
    /// events with the first less an offset.
    fn of(looks: impl Iterator<Item = (Nanos, Nanos, Nanos)>, offset: Nanos) -> Clock {
        let tries = looks.map(|(before, day, after)| {
            let took = after - before;
            (took, day - (before + Nanos(took.0 / 2)))
        });
        Clock { zero: tries.min().map_or(Nanos::ZERO, |(_, zero)| zero) + offset, offset }
    }

    /// Time of day, for a kernel event.
    pub fn epoch(&self, monotonic: Nanos) -> Nanos {
        self.zero + monotonic
    }

    /// The time of day.
    pub fn now(&self) -> Nanos {
        self.epoch(monotonic() - self.offset)
    }
}

/// By how much the clock of this process is ahead of the kernel's: in a time namespace, such as that of a
/// container that was moved from another host.
fn namespace_offset() -> Nanos {
    offset(&std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default())
}

/// `monotonic  100000  0`: seconds and nanoseconds.
fn offset(text: &str) -> Nanos {
    let of = |line: &str| {
        let mut words = line.split_whitespace();
        words.next().filter(|name| *name == "monotonic")?;
        let mut number = || words.next()?.parse::<i64>().ok();
        Some(Nanos(number()?.checked_mul(1_000_000_000)?.checked_add(number()?)?))
    };
    text.lines().find_map(of).unwrap_or(Nanos::ZERO)
}

fn monotonic() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

fn nanos(time: Timespec) -> Nanos {
    Nanos::secs(time.tv_sec) + Nanos(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one look that nothing interrupted counts; a time of day that was set by an hour moves what is
    /// shown by an hour.
    #[test]
    fn the_time_of_day_may_be_set() {
        let ms = Nanos::millis;
        let event = ms(7_000);
        let looks = [(ms(1_000), ms(501_900), ms(2_900)), (ms(3_000), ms(503_001), ms(3_002))];
        assert_eq!(Clock::of(looks.into_iter(), Nanos::ZERO).epoch(event), ms(507_000));
        let set = looks.map(|(before, day, after)| (before, day - Nanos::secs(3600), after));
        assert_eq!(Clock::of(set.into_iter(), Nanos::ZERO).epoch(event), ms(507_000) - Nanos::secs(3600));
    }

    #[test]
    fn a_time_namespace_is_ahead_of_its_kernel() {
        assert_eq!(offset("monotonic    100000         5\nboottime  7 0\n"), Nanos::secs(100_000) + Nanos(5));
        for other in ["", "boottime 7 0", "monotonic", "monotonic x 0", "monotonic 9223372036854775807 0"] {
            assert_eq!(offset(other), Nanos::ZERO, "{other}");
        }
        let look = (Nanos::secs(100_010), Nanos::secs(5_000), Nanos::secs(100_010));
        let clock = Clock::of([look].into_iter(), Nanos::secs(100_000));
        assert_eq!(clock.epoch(Nanos::secs(10)), Nanos::secs(5_000));
    }
}
