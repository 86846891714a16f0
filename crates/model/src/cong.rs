//! Congestion control: the window, what makes it grow and what makes it shrink. Cubic (RFC 9438) with HyStart as
//! Linux has it (`tcp_cubic.c`), Reno (RFC 5681); BBR has a file of its own.

use crate::bbr::Bbr;
use crate::profile::Congestion;
use tcpwhy_base::Nanos;

/// No threshold yet.
pub(crate) const INFINITE: u64 = u64::MAX / 4;

/// Multiplicative decrease of cubic, in 1/1024 (RFC 9438, 4.6: 0.7).
const BETA: u64 = 717;
/// Window from which HyStart looks for the end of slow start, in segments.
const HYSTART_LOW: u64 = 16;
/// ACKs closer than this belong to one train.
const HYSTART_SPACING: Nanos = Nanos::millis(2);
/// Samples of a round before its delay is judged.
const HYSTART_SAMPLES: u32 = 8;

/// What HyStart's trains of ACKs are held to, beyond the path's delay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trains {
    /// The sender paces: the whole delay, not half of it.
    pub(crate) paced: bool,
    /// What ACKs may come late by (`hystart_ack_delay`, since Linux 5.6): four of the largest bursts, at most
    /// a millisecond.
    pub(crate) delay: Nanos,
}

/// Window and algorithm.
#[derive(Clone, Debug)]
pub(crate) struct Cong {
    pub(crate) kind: Congestion,
    /// Segments.
    pub(crate) cwnd: u64,
    /// Slow-start threshold, segments.
    pub(crate) ssthresh: u64,
    cubic: Cubic,
    pub(crate) bbr: Bbr,
    /// Segments acknowledged towards the next linear step.
    count: u64,
    /// HyStart ended slow start.
    pub(crate) hystart_exit: bool,
}

#[derive(Clone, Debug, Default)]
struct Cubic {
    /// Window before the last decrease.
    last_max: u64,
    epoch: Option<Nanos>,
    /// Window at the plateau.
    origin: u64,
    /// Time to the plateau, milliseconds.
    k_ms: i64,
    /// Window that Reno would have, and ACKs towards its growth.
    reno: u64,
    reno_acked: u64,
    delay_min: Nanos,
    round_end: u64,
    round_start: Nanos,
    last_ack: Nanos,
    round_rtt: Nanos,
    samples: u32,
    found: bool,
}

impl Cong {
    pub(crate) fn new(kind: Congestion, initcwnd: u64) -> Cong {
        Cong {
            kind,
            cwnd: initcwnd,
            ssthresh: INFINITE,
            cubic: Cubic::default(),
            bbr: Bbr::new(initcwnd),
            count: 0,
            hystart_exit: false,
        }
    }

    pub(crate) fn slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// A loss (or an ECN mark): the new threshold.
    pub(crate) fn on_loss(&mut self) -> u64 {
        match self.kind {
            Congestion::Cubic => {
                let c = &mut self.cubic;
                // Fast convergence (RFC 9438, 4.7): a shrinking share gives room at once.
                c.last_max =
                    if self.cwnd < c.last_max { self.cwnd * (1024 + BETA) / 2048 } else { self.cwnd };
                c.epoch = None;
                (self.cwnd * BETA / 1024).max(2)
            }
            Congestion::Reno => (self.cwnd / 2).max(2),
            Congestion::Bbr => {
                self.bbr.save(self.cwnd);
                INFINITE
            }
        }
    }

    /// After a timeout everything is learnt anew.
    pub(crate) fn on_timeout(&mut self) {
        self.cubic = Cubic { last_max: self.cubic.last_max, ..Cubic::default() };
    }

    /// The clock of the cubic curve does not run while nothing is sent.
    pub(crate) fn on_restart(&mut self, idle: Nanos, now: Nanos) {
        if let Some(epoch) = &mut self.cubic.epoch {
            *epoch = (*epoch + idle).min(now);
        }
    }

    /// A round-trip sample of data just acknowledged.
    pub(crate) fn on_sample(&mut self, now: Nanos, rtt: Nanos, snd_una: u64, snd_nxt: u64, trains: Trains) {
        if self.kind != Congestion::Cubic {
            return;
        }
        let c = &mut self.cubic;
        // Right after a recovery samples are not to be trusted.
        if c.epoch.is_some_and(|e| now - e < Nanos::secs(1)) {
            return;
        }
        if c.delay_min == Nanos::ZERO || rtt < c.delay_min {
            c.delay_min = rtt;
        }
        if c.found || self.cwnd >= self.ssthresh {
            return;
        }
        // Rounds are counted from the first window on, and looked at from a window of 16 (`hystart_update`).
        if snd_una > c.round_end {
            (c.round_start, c.last_ack, c.round_end) = (now, now, snd_nxt);
            (c.round_rtt, c.samples) = (Nanos::MAX, 0);
        }
        if self.cwnd < HYSTART_LOW {
            return;
        }
        if now - c.last_ack <= HYSTART_SPACING {
            c.last_ack = now;
            // A train of ACKs longer than half the path's delay: the path is full.
            let limit = c.delay_min + trains.delay;
            let limit = if trains.paced { limit } else { limit.part(2) };
            c.found |= now - c.round_start > limit;
        }
        c.round_rtt = c.round_rtt.min(rtt);
        if c.samples < HYSTART_SAMPLES {
            c.samples += 1;
        } else {
            let more = c.delay_min.part(8).max(Nanos::millis(4)).min(Nanos::millis(16));
            c.found |= c.round_rtt > c.delay_min + more;
        }
        if c.found {
            self.hystart_exit = true;
            self.ssthresh = self.cwnd;
        }
    }

    /// `acked` segments were delivered while the window was in use.
    pub(crate) fn on_ack(&mut self, now: Nanos, mut acked: u64, per_ack: bool) {
        if self.kind == Congestion::Bbr {
            return;
        }
        if self.slow_start() {
            let step = if per_ack { 1 } else { acked };
            let grown = (self.cwnd + step).min(self.ssthresh);
            acked = if per_ack { 0 } else { acked - (grown - self.cwnd) };
            self.cwnd = grown;
            if acked == 0 {
                return;
            }
        }
        let per_step = match self.kind {
            Congestion::Cubic => self.cubic.per_step(now, self.cwnd, acked),
            _ => self.cwnd,
        };
        self.step(per_step.max(1), acked);
    }

    /// One segment more for every `per_step` acknowledged.
    fn step(&mut self, per_step: u64, acked: u64) {
        if self.count >= per_step {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        if self.count >= per_step {
            let n = self.count / per_step;
            self.count -= n * per_step;
            self.cwnd += n;
        }
    }
}

impl Cubic {
    /// Segments to be acknowledged for one more in the window.
    fn per_step(&mut self, now: Nanos, cwnd: u64, acked: u64) -> u64 {
        let epoch = match self.epoch {
            Some(e) => e,
            None => {
                self.epoch = Some(now);
                (self.reno, self.reno_acked) = (cwnd, 0);
                if self.last_max <= cwnd {
                    (self.k_ms, self.origin) = (0, cwnd);
                } else {
                    // K = cbrt((Wmax - cwnd) / C), C = 0.4 (RFC 9438, 4.2); in ms: cbrt(2.5e9 d).
                    self.k_ms = cbrt((self.last_max - cwnd).saturating_mul(2_500_000_000)) as i64;
                    self.origin = self.last_max;
                }
                now
            }
        };
        self.reno_acked += acked;
        let t = (now - epoch + self.delay_min).0 / 1_000_000;
        let off = (t - self.k_ms).unsigned_abs().min(1_000_000);
        // C (t - K)^3: 0.4 off^3 / 1e9.
        let delta = (u128::from(off).pow(3) * 4 / 10_000_000_000) as u64;
        let target = if t < self.k_ms { self.origin.saturating_sub(delta) } else { self.origin + delta };
        let mut per = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 {
            per = per.min(20);
        }
        // Reno-friendly region (RFC 9438, 4.3): one segment for each cwnd * (1 + b) / (3 (1 - b)).
        let per_reno = (cwnd * (1024 + BETA) / (3 * (1024 - BETA))).max(1);
        while self.reno_acked > per_reno {
            self.reno_acked -= per_reno;
            self.reno += 1;
        }
        if self.reno > cwnd {
            per = per.min(cwnd / (self.reno - cwnd));
        }
        per.max(2)
    }
}

/// Integer cube root.
fn cbrt(n: u64) -> u64 {
    let (mut low, mut high) = (0_u64, 2_642_245);
    while low < high {
        let mid = (low + high).div_ceil(2);
        if mid.pow(3) <= n { low = mid } else { high = mid - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots() {
        for n in [0_u64, 1, 7, 8, 26, 27, 1_000_000, 999_999, u64::MAX] {
            let r = u128::from(cbrt(n));
            assert!(r.pow(3) <= u128::from(n) && (r + 1).pow(3) > u128::from(n), "{n}");
        }
    }

    /// RFC 9438: after a loss at W the window is back at W after cbrt(0.3 W / 0.4) s.
    #[test]
    fn cubic_is_back_at_its_maximum_when_the_rfc_says() {
        let mut c = Cong::new(Congestion::Cubic, 10);
        c.cwnd = 1000;
        c.ssthresh = c.on_loss();
        c.cwnd = c.ssthresh;
        assert_eq!(c.cwnd, 700);
        let (mut now, rtt) = (Nanos::ZERO, Nanos::millis(20));
        while c.cwnd < 998 && now < Nanos::secs(60) {
            for _ in 0..c.cwnd / 2 {
                c.on_ack(now, 2, false);
            }
            now += rtt;
        }
        // 998 lies before the plateau by cbrt(2 / 0.4).
        let expected = (0.3_f64 * 1000.0 / 0.4).cbrt() - 5.0_f64.cbrt();
        let took = now.0 as f64 / 1e9;
        assert!((took / expected - 1.0).abs() < 0.15, "{took} against {expected}");
    }

    /// RFC 9438, 4.7: who loses before the window is back where it was wants a share less than that: (1 +
    /// 0.7) / 2 of it.
    #[test]
    fn a_second_loss_below_the_first_gives_room() {
        let mut c = Cong::new(Congestion::Cubic, 10);
        c.cwnd = 1000;
        assert_eq!((c.on_loss(), c.cubic.last_max), (700, 1000));
        c.cwnd = 999;
        // 999 x 717 / 1024, and 999 x 1741 / 2048.
        assert_eq!((c.on_loss(), c.cubic.last_max), (699, 849));
        c.cwnd = 849;
        assert_eq!((c.on_loss(), c.cubic.last_max), (594, 849), "back where it was: all of it");
        c.cwnd = 2;
        assert_eq!(c.on_loss(), 2, "two segments are the least");
        c.on_timeout();
        assert_eq!((c.cubic.last_max, c.cubic.epoch, c.cubic.delay_min), (1, None, Nanos::ZERO));
    }

    #[test]
    fn reno_halves_and_bbr_keeps_its_window() {
        let mut c = Cong::new(Congestion::Reno, 10);
        c.cwnd = 21;
        assert_eq!(c.on_loss(), 10);
        c.cwnd = 3;
        assert_eq!(c.on_loss(), 2);
        assert_eq!(Cong::new(Congestion::Bbr, 10).on_loss(), INFINITE);
    }

    /// Slow start adds what was acknowledged, or one for each ACK, up to the threshold; what is over counts
    /// towards the next linear step, which Reno takes after as many segments as the window has.
    #[test]
    fn slow_start_ends_at_the_threshold() {
        let grown = |cwnd, ssthresh, acked, per_ack| {
            let mut c = Cong::new(Congestion::Reno, cwnd);
            c.ssthresh = ssthresh;
            c.on_ack(Nanos::ZERO, acked, per_ack);
            (c.cwnd, c.count)
        };
        assert_eq!(grown(10, INFINITE, 2, false), (12, 0));
        assert_eq!(grown(10, INFINITE, 2, true), (11, 0));
        assert_eq!(grown(10, 12, 2, false), (12, 0));
        assert_eq!(grown(10, 12, 5, false), (12, 3));
        assert_eq!(grown(12, 12, 12, false), (13, 0));
        assert_eq!(grown(12, 12, 11, false), (12, 11));
        assert_eq!(grown(12, 12, 25, true), (14, 1), "linear growth counts segments in any case");
    }

    /// K = cbrt(300 / 0.4) = 9.085 s after a loss at 1000 that left 700; then 0.4 (t - K)^3 away from the plateau.
    #[test]
    fn the_cubic_curve_to_the_segment() {
        let start = || {
            let mut c = Cubic { last_max: 1000, ..Cubic::default() };
            let first = c.per_step(Nanos::secs(100), 700, 1);
            (c, first)
        };
        let (c, first) = start();
        // At once: the target is 1000 - 299 = 701, one more than there is.
        assert_eq!((first, c.k_ms, c.origin, c.epoch), (700, 9085, 1000, Some(Nanos::secs(100))));
        let after = |ms: i64, cwnd: u64| start().0.per_step(Nanos::secs(100) + Nanos::millis(ms), cwnd, 1);
        // 0.4 x 4.085^3 = 27.2 below: 973; 273 more than 700.
        assert_eq!(after(5000, 700), 2);
        assert_eq!(after(5000, 900), 900 / 73);
        assert_eq!(after(5000, 973), 97_300, "not above the curve");
        assert_eq!(after(9085, 1000), 100_000, "on the plateau");
        assert_eq!(after(9085, 999), 999);
        // 0.4 x 2^3 = 3.2 above.
        assert_eq!(after(11_085, 1000), 1000 / 3);
        // The delay of the path is looked ahead.
        let mut ahead = start().0;
        ahead.delay_min = Nanos::millis(2000);
        assert_eq!(ahead.per_step(Nanos::secs(100) + Nanos::millis(9085), 1000, 1), 1000 / 3);
        // Without a maximum the curve starts here, and is steep at first (`ca->last_max_cwnd == 0`).
        let mut fresh = Cubic::default();
        assert_eq!((fresh.per_step(Nanos::secs(1), 100, 1), fresh.k_ms, fresh.origin), (20, 0, 100));
    }

    /// Reno's window grows by one for each 100 x 1741 / (3 x 307) = 189 segments; where it is larger, it counts.
    #[test]
    fn cubic_is_never_slower_than_reno() {
        let mut c = Cubic { last_max: 100, ..Cubic::default() };
        let now = Nanos::secs(100);
        assert_eq!(c.per_step(now, 100, 189), 10_000);
        assert_eq!((c.reno, c.reno_acked), (100, 189));
        assert_eq!(c.per_step(now, 100, 1), 100);
        assert_eq!((c.reno, c.reno_acked), (101, 1));
        assert_eq!(c.per_step(now, 100, 189), 50);
        assert_eq!((c.reno, c.reno_acked), (102, 1));
    }

    /// The clock of the curve stands still while nothing is sent, but never runs ahead.
    #[test]
    fn an_idle_time_moves_the_curve() {
        let mut c = Cong::new(Congestion::Cubic, 10);
        c.on_restart(Nanos::secs(5), Nanos::secs(100));
        assert_eq!(c.cubic.epoch, None);
        c.cubic.epoch = Some(Nanos::secs(90));
        c.on_restart(Nanos::secs(5), Nanos::secs(100));
        assert_eq!(c.cubic.epoch, Some(Nanos::secs(95)));
        c.on_restart(Nanos::secs(6), Nanos::secs(100));
        assert_eq!(c.cubic.epoch, Some(Nanos::secs(100)));
    }

    /// HyStart: the ninth sample of a round decides; an eighth of the shortest round trip more, at least 4 ms
    /// and at most 16.
    #[test]
    fn the_ninth_sample_of_a_round_ends_slow_start() {
        let exits = |base: i64, more_us: i64, samples: u64, cwnd: u64| {
            let mut c = Cong::new(Congestion::Cubic, cwnd);
            c.on_sample(Nanos::secs(1), Nanos::millis(base), 1, 1000, Trains::default());
            // A new round; ACKs further apart than those of a train.
            for n in 0..samples {
                let at = Nanos::secs(2) + Nanos::millis(3 * n as i64);
                c.on_sample(
                    at,
                    Nanos::millis(base) + Nanos::micros(more_us),
                    1001 + n,
                    2000,
                    Trains::default(),
                );
            }
            c.hystart_exit && c.ssthresh == cwnd
        };
        assert!(exits(80, 10_001, 9, 16));
        assert!(!exits(80, 10_000, 9, 16), "not more than an eighth");
        assert!(!exits(80, 10_001, 8, 16), "eight samples are too few");
        assert!(!exits(80, 10_001, 9, 15), "a window below 16");
        assert!(exits(8, 4001, 9, 16) && !exits(8, 4000, 9, 16));
        assert!(exits(400, 16_001, 9, 16) && !exits(400, 16_000, 9, 16));
    }

    /// HyStart: a train of ACKs, none more than 2 ms after the one before, that is longer than half the round
    /// trip (all of it where the sender paces).
    #[test]
    fn a_long_train_of_acks_ends_slow_start() {
        let exits_late = |gap_us: i64, acks: i64, paced: bool, delay: i64| {
            let trains = Trains { paced, delay: Nanos::millis(delay) };
            let mut c = Cong::new(Congestion::Cubic, 20);
            for n in 0..acks {
                let at = Nanos::secs(1) + Nanos::micros(n * gap_us);
                c.on_sample(at, Nanos::millis(40), 1 + n as u64, 100_000, trains);
            }
            c.hystart_exit
        };
        let exits = |gap_us: i64, acks: i64, paced: bool| exits_late(gap_us, acks, paced, 0);
        // A millisecond for late ACKs: more than 20.5 ms, and 41 where the sender paces.
        assert!(!exits_late(1860, 12, false, 1) && exits_late(1864, 12, false, 1));
        assert!(!exits_late(1860, 23, true, 1) && exits_late(1864, 23, true, 1));
        // 20 ms are half of 40.
        assert!(exits(2000, 12, false) && !exits(2000, 11, false));
        assert!(!exits(2001, 12, false));
        assert!(!exits(2000, 21, true) && exits(2000, 22, true));
        // Within a second of a loss samples are not trusted.
        let mut c = Cong::new(Congestion::Cubic, 20);
        c.cubic.epoch = Some(Nanos::secs(1));
        c.on_sample(Nanos::secs(2) - Nanos(1), Nanos::millis(40), 1, 2, Trains::default());
        assert_eq!(c.cubic.delay_min, Nanos::ZERO);
        c.on_sample(Nanos::secs(2), Nanos::millis(40), 1, 2, Trains::default());
        assert_eq!(c.cubic.delay_min, Nanos::millis(40));
    }

    /// The round that a window of 16 falls into began with the first window: its ACKs before that are no part
    /// of a train, but what arrives after them is no new round either. Of ten segments the last is
    /// acknowledged, then the next ten come in 12 ms.
    #[test]
    fn rounds_are_counted_from_the_first_window_on() {
        let mut c = Cong::new(Congestion::Cubic, 10);
        let trains = Trains { paced: false, delay: Nanos::millis(1) };
        let ack = |c: &mut Cong, ms: i64, una: u64, nxt: u64| {
            c.on_sample(Nanos::millis(ms), Nanos::millis(21), una, nxt, trains);
            c.cwnd += 1;
        };
        for n in 0..10 {
            ack(&mut c, 1000 + n, 2 + n as u64, 11 + 2 * n as u64);
        }
        for n in 0..=11 {
            assert!(!c.hystart_exit, "{n} ms of a train are not more than half of 22");
            ack(&mut c, 1021 + n, 12 + n as u64, 31 + 2 * n as u64);
        }
        ack(&mut c, 1033, 24, 55);
        assert!(c.hystart_exit, "12 ms are");
    }
}
