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
    pub(crate) fn on_sample(&mut self, now: Nanos, rtt: Nanos, snd_una: u64, snd_nxt: u64, paced: bool) {
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
        if c.found || self.cwnd >= self.ssthresh || self.cwnd < HYSTART_LOW {
            return;
        }
        if snd_una > c.round_end {
            (c.round_start, c.last_ack, c.round_end) = (now, now, snd_nxt);
            (c.round_rtt, c.samples) = (Nanos::MAX, 0);
        }
        if now - c.last_ack <= HYSTART_SPACING {
            c.last_ack = now;
            // A train of ACKs longer than half the path's delay: the path is full.
            let limit = if paced { c.delay_min } else { c.delay_min.part(2) };
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
}
