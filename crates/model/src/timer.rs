//! Kernel timers: counted in ticks, and coarser the longer they are.

use tcpwhy_base::Nanos;

/// How a host's timers are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Ticks a second (CONFIG_HZ).
    pub hz: u32,
    /// The timer wheel of Linux 4.8 and later: beyond 63 ticks, granularity is 8 ticks, beyond 504 it is 64, and so on
    /// (kernel/time/timer.c, `calc_wheel_index`).
    pub wheel: bool,
}

impl Clock {
    /// Length of a tick.
    pub fn tick(self) -> i64 {
        1_000_000_000 / i64::from(self.hz.max(1))
    }

    /// `t` in whole ticks, rounded up (`usecs_to_jiffies`).
    pub fn round_up(self, t: Nanos) -> Nanos {
        Nanos(self.ticks(t).saturating_mul(self.tick()))
    }

    /// `t` as a number of ticks, rounded up.
    fn ticks(self, t: Nanos) -> i64 {
        let tick = self.tick();
        (t.0 + tick - 1).div_euclid(tick)
    }

    /// When a timer set at `now` for `delay` runs. Ticks of the host fall at `phase` plus multiples.
    pub fn fires(self, now: Nanos, delay: Nanos, phase: Nanos) -> Nanos {
        let tick = self.tick();
        let at = |jiffy: i64| Nanos(jiffy.saturating_mul(tick).saturating_add(phase.0));
        let jiffies = (now - phase).0.div_euclid(tick);
        let delta = self.ticks(delay);
        let expires = jiffies.saturating_add(delta);
        if !self.wheel {
            return at(expires.saturating_add(1)).max(now);
        }
        let mut level = 0;
        while level < 8 && delta >= 63_i64 << (3 * level) {
            level += 1;
        }
        let shift = 3 * level;
        let bucket = (expires.saturating_add(1 << shift)) >> shift;
        at(bucket << shift).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ250: Clock = Clock { hz: 250, wheel: true };

    fn waits(delay: Nanos) -> (f64, f64) {
        let (mut least, mut most) = (f64::MAX, 0.0_f64);
        for us in 0..400_000 {
            let now = Nanos::micros(us);
            let wait = (HZ250.fires(now, delay, Nanos::micros(1700)) - now).as_ms();
            (least, most) = (least.min(wait), most.max(wait));
        }
        (least, most)
    }

    /// Measured at HZ=250: 40.2 to 47 ms (the upper end with load), 204 to 208 ms, 1.01 to 1.03 s.
    #[test]
    fn timers_run_late_by_a_tick_or_a_bucket() {
        let (least, most) = waits(Nanos::millis(40));
        assert!((40.0..40.1).contains(&least) && (43.9..=44.0).contains(&most), "{least} {most}");
        let (least, most) = waits(Nanos::micros(200_500));
        assert!(least >= 204.0 && most <= 208.0, "{least} {most}");
        let (least, most) = waits(Nanos::secs(1));
        assert!(least >= 1000.0 && most <= 1036.0 && most > 1020.0, "{least} {most}");
    }
}
