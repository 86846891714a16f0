//! Round trip and timeout estimation (RFC 6298 with the variance of Linux, `tcp_rtt_estimator`).

use crate::profile::Profile;
use tcpwhy_base::Nanos;

/// Smoothed round trip, its variance and the timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    /// Smoothed; zero: no sample yet.
    pub(crate) srtt: Nanos,
    /// Mean deviation.
    mdev: Nanos,
    /// Its largest value in this round trip.
    mdev_max: Nanos,
    /// Variance term, never below the profile's `rto_min`.
    var: Nanos,
    /// The round trip ends when this is acknowledged.
    round: u64,
    /// Smallest sample.
    pub(crate) min: Nanos,
}

impl Rtt {
    pub(crate) fn new() -> Rtt {
        let zero = Nanos::ZERO;
        Rtt { srtt: zero, mdev: zero, mdev_max: zero, var: zero, round: 0, min: Nanos::MAX }
    }

    pub(crate) fn sample(&mut self, rtt: Nanos, snd_una: u64, snd_nxt: u64, p: &Profile) {
        let rtt = rtt.max(Nanos(1000));
        if self.srtt == Nanos::ZERO {
            self.srtt = rtt;
            self.mdev = rtt.part(2);
            // Four deviations: the first timeout is three times the sample (RFC 6298, 2.2).
            self.var = rtt.times(2).max(p.rto_min);
            self.mdev_max = self.var;
            self.round = snd_nxt;
            return;
        }
        let error = rtt - self.srtt;
        self.srtt += error.part(8);
        // Mean deviation in units of four, as RFC 6298 adds it.
        let four = self.mdev.times(4);
        let now = if error < Nanos::ZERO {
            // A sudden fall must not raise the deviation: a further eighth (Linux).
            let grow = Nanos(-error.0) - self.mdev;
            if grow > Nanos::ZERO { four + grow.part(8) } else { four + grow }
        } else {
            four + (error - self.mdev)
        };
        let now = now.floor0();
        self.mdev = now.part(4);
        if now > self.mdev_max {
            self.mdev_max = now;
            self.var = self.var.max(now);
        }
        if snd_una > self.round {
            if self.mdev_max < self.var {
                self.var = self.var - (self.var - self.mdev_max).part(4);
            }
            self.round = snd_nxt;
            self.mdev_max = p.rto_min;
        }
    }

    /// Keeps the smallest round trip.
    pub(crate) fn note_min(&mut self, rtt: Nanos) {
        self.min = self.min.min(rtt.max(Nanos(1000)));
    }

    /// The timeout without back-off.
    pub(crate) fn rto(&self, p: &Profile) -> Nanos {
        if self.srtt == Nanos::ZERO {
            return p.rto_init;
        }
        p.clock.round_up(self.srtt + self.var.max(p.rto_min)).min(p.rto_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.18: round trips of 1, 40 and 100 ms give 204, 244 and 304 ms (read from `tcp_info`).
    #[test]
    fn the_timeout_is_the_round_trip_and_the_floor() {
        let p = Profile::default();
        for (ms, rto) in [(1, 204), (40, 240), (100, 300)] {
            let mut r = Rtt::new();
            for n in 0..50 {
                r.sample(Nanos::millis(ms), n * 2, n * 2 + 1, &p);
            }
            assert_eq!(r.rto(&p), Nanos::millis(rto), "{ms} ms");
        }
        let mut r = Rtt::new();
        r.sample(Nanos::millis(200), 1, 2, &p);
        assert_eq!(r.rto(&p), Nanos::millis(600), "three times the first sample");
    }
}
