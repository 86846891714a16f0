//! Packets are stamped with the time of day, kernel events with the time since the start of the machine.

use rustix::time::{ClockId, Timespec, clock_gettime};
use tcpwhy_base::Nanos;

/// By how much the two differ. Read anew each time, as the time of day may be set.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The time of day when the machine was started.
    zero: Nanos,
}

impl Clock {
    /// As it stands now.
    pub fn read() -> Clock {
        // Between two looks at the one that does not jump; the nearest of a few, for this may be interrupted.
        let tries = (0..5).map(|_| {
            let (before, day, after) = (monotonic(), nanos(clock_gettime(ClockId::Realtime)), monotonic());
            let took = after - before;
            (took, day - (before + Nanos(took.0 / 2)))
        });
        Clock { zero: tries.min().map_or(Nanos::ZERO, |(_, zero)| zero) }
    }

    /// Time of day, for a kernel event.
    pub fn epoch(&self, monotonic: Nanos) -> Nanos {
        self.zero + monotonic
    }

    /// The time of day.
    pub fn now(&self) -> Nanos {
        self.epoch(monotonic())
    }
}

fn monotonic() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

fn nanos(time: Timespec) -> Nanos {
    Nanos::secs(time.tv_sec) + Nanos(time.tv_nsec)
}
