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

    /// Linux 6.18: links of 1, 40 and 100 ms give 204, 244 and 304 ms (read from `tcp_info`); round trips
    /// there are a little longer than that, which rounds up to the next tick of 4 ms. Those here are not.
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

    /// `tcp_rtt_estimator`, step by step: an eighth of the error goes into the mean, a quarter of its change
    /// into the deviation.
    #[test]
    fn the_estimate_step_by_step() {
        let p = Profile { rto_min: Nanos::ZERO, ..Profile::default() };
        let mut r = Rtt::new();
        r.sample(Nanos::millis(80), 1, 100, &p);
        assert_eq!((r.srtt, r.mdev, r.var), (Nanos::millis(80), Nanos::millis(40), Nanos::millis(160)));
        // 40 ms more: 80 + 5; 40 + (40 - 40) / 4.
        r.sample(Nanos::millis(120), 1, 100, &p);
        assert_eq!((r.srtt, r.mdev, r.var), (Nanos::millis(85), Nanos::millis(40), Nanos::millis(160)));
        // 56 ms more: 85 + 7; 40 + 16 / 4; four deviations are more than the largest so far.
        r.sample(Nanos::millis(141), 1, 100, &p);
        assert_eq!((r.srtt, r.mdev, r.var), (Nanos::millis(92), Nanos::millis(44), Nanos::millis(176)));
        // 24 ms less, no more than the deviation: it falls by a quarter of 20.
        r.sample(Nanos::millis(68), 1, 100, &p);
        assert_eq!((r.srtt, r.mdev), (Nanos::millis(89), Nanos::millis(39)));
        // 80 ms less, 41 more than the deviation: of a sudden fall an eighth of the quarter counts.
        r.sample(Nanos::millis(9), 1, 100, &p);
        assert_eq!((r.srtt, r.mdev), (Nanos::millis(79), Nanos::millis(39) + Nanos(41_000_000 / 32)));
        // The round is over when its end is acknowledged: the term falls by a quarter of what it is above the
        // largest of the round, which begins anew.
        assert_eq!((r.var, r.mdev_max), (Nanos::millis(176), Nanos::millis(176)));
        r.sample(Nanos::millis(79), 101, 200, &p);
        assert_eq!((r.var, r.mdev_max, r.round), (Nanos::millis(176), Nanos::ZERO, 200));
        let four = r.mdev.times(4) - r.mdev;
        r.sample(Nanos::millis(79), 200, 300, &p);
        assert_eq!((r.mdev, r.mdev_max), (four.part(4), four), "the end itself does not end it");
        r.sample(Nanos::millis(79), 201, 300, &p);
        assert_eq!(r.var, Nanos::millis(176) - (Nanos::millis(176) - four).part(4));
    }

    #[test]
    fn a_round_trip_lasts_a_microsecond_at_least() {
        let mut r = Rtt::new();
        r.sample(Nanos(1), 1, 2, &Profile::default());
        r.note_min(Nanos(1));
        assert_eq!((r.srtt, r.min), (Nanos(1000), Nanos(1000)));
        r.note_min(Nanos(1001));
        assert_eq!(r.min, Nanos(1000));
        assert_eq!(Rtt::new().rto(&Profile::default()), Nanos::secs(1), "before any sample");
        r.sample(Nanos::secs(10_000), 1, 2, &Profile::default());
        assert_eq!(r.rto(&Profile::default()), Nanos::secs(120), "the longest timeout");
    }
}
