//! BBR version 1, as far as start-up, draining, pacing and the probing of bandwidth and round trip matter
//! (draft-cardwell-iccrg-bbr-congestion-control-00; `tcp_bbr.c`). Gains are in 1/256.

use std::collections::VecDeque;
use tcpwhy_base::Nanos;

/// 2 / ln 2.
const HIGH: u64 = 739;
const DRAIN: u64 = 88;
const CYCLE: [u64; 8] = [320, 192, 256, 256, 256, 256, 256, 256];
/// Start-up is over after so many rounds with less than a quarter more bandwidth.
const FULL_ROUNDS: u32 = 3;
/// A bandwidth sample is kept for so many rounds.
const ROUNDS: u64 = 10;
const MIN_RTT_FOR: Nanos = Nanos::secs(10);
const PROBE_RTT_FOR: Nanos = Nanos::millis(200);
const LEAST: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// State of BBR.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    mode: Mode,
    initcwnd: u64,
    /// Best bandwidth of each of the last rounds, bytes a second, falling.
    best: VecDeque<(u64, u64)>,
    round: u64,
    round_ends: u64,
    full_bw: u64,
    full_rounds: u32,
    full: bool,
    min_rtt: Nanos,
    min_rtt_at: Nanos,
    phase: usize,
    phase_start: Nanos,
    probe_done: Option<Nanos>,
    saved: u64,
    /// Bytes a second; zero: not known yet.
    pub(crate) rate: u64,
}

/// What an ACK said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) now: Nanos,
    /// Bytes a second over the life of the packet that was acknowledged.
    pub(crate) rate: Option<u64>,
    /// The application and not the network was slow.
    pub(crate) app_limited: bool,
    /// Delivered bytes when that packet left, and now.
    pub(crate) before: u64,
    pub(crate) delivered: u64,
    pub(crate) rtt: Option<Nanos>,
    /// Segments.
    pub(crate) acked: u64,
    pub(crate) in_flight: u64,
    pub(crate) mss: u64,
}

impl Bbr {
    pub(crate) fn new(initcwnd: u64) -> Bbr {
        Bbr {
            mode: Mode::Startup,
            initcwnd,
            best: VecDeque::new(),
            round: 0,
            round_ends: 0,
            full_bw: 0,
            full_rounds: 0,
            full: false,
            min_rtt: Nanos::MAX,
            min_rtt_at: Nanos::ZERO,
            phase: 2,
            phase_start: Nanos::ZERO,
            probe_done: None,
            saved: 0,
            rate: 0,
        }
    }

    /// The connection opens. Pacing at the start: the initial window in one round trip, at the high gain; 1
    /// ms if it is not known. The shortest round trip is good for ten seconds from then on (`bbr_init`:
    /// `min_rtt_stamp`).
    pub(crate) fn start(&mut self, now: Nanos, rtt: Nanos, cwnd: u64, mss: u64) {
        self.min_rtt_at = now;
        let rtt = if rtt == Nanos::ZERO { Nanos::millis(1) } else { rtt };
        self.min_rtt = self.min_rtt.min(rtt);
        self.rate = per_second(cwnd * mss, rtt) * HIGH / 256;
    }

    pub(crate) fn save(&mut self, cwnd: u64) {
        self.saved = self.saved.max(cwnd);
    }

    fn bandwidth(&self) -> u64 {
        self.best.front().map_or(0, |b| b.1)
    }

    fn bdp(&self, gain: u64, mss: u64) -> u64 {
        if self.min_rtt == Nanos::MAX {
            return self.initcwnd;
        }
        let bytes = u128::from(self.bandwidth()) * self.min_rtt.0.max(1) as u128 / 1_000_000_000;
        let segments = (bytes * u128::from(gain) / 256).div_ceil(u128::from(mss.max(1)));
        // Room for delayed ACKs and offload: three bursts of two segments.
        (segments as u64 + 6).div_ceil(2) * 2
    }

    /// The window after a delivery.
    pub(crate) fn on_ack(&mut self, cwnd: u64, d: Delivery) -> u64 {
        let new_round = d.before >= self.round_ends;
        if new_round {
            self.round_ends = d.delivered;
            self.round += 1;
        }
        if let Some(rate) = d.rate.filter(|&r| !d.app_limited || r >= self.bandwidth()) {
            while self.best.back().is_some_and(|b| b.1 <= rate) {
                self.best.pop_back();
            }
            self.best.push_back((self.round, rate));
        }
        while self.best.len() > 1 && self.best.front().is_some_and(|b| b.0 + ROUNDS <= self.round) {
            self.best.pop_front();
        }
        self.look_for_full_pipe(new_round, d.app_limited);
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && d.in_flight <= self.bdp(256, d.mss) {
            self.probe_bandwidth(d.now);
        }
        self.cycle(&d);
        self.look_at_rtt(cwnd, &d);
        let (pacing, window) = match self.mode {
            Mode::Startup => (HIGH, HIGH),
            Mode::Drain => (DRAIN, HIGH),
            Mode::ProbeBw => (CYCLE[self.phase], 512),
            Mode::ProbeRtt => (256, 256),
        };
        if self.bandwidth() > 0 {
            // One per cent below, so that the queue drains.
            let rate = (u128::from(self.bandwidth()) * u128::from(pacing) * 99 / 25_600) as u64;
            if self.full || rate > self.rate {
                self.rate = rate.max(1);
            }
        }
        if self.mode == Mode::ProbeRtt {
            return cwnd.min(LEAST);
        }
        let target = self.bdp(window, d.mss);
        let mut next = cwnd.max(self.saved);
        self.saved = 0;
        if self.full {
            next = (next + d.acked).min(target);
        } else if next < target || d.delivered < self.initcwnd * d.mss {
            next += d.acked;
        }
        next.max(LEAST)
    }

    fn look_for_full_pipe(&mut self, new_round: bool, app_limited: bool) {
        if self.full || !new_round || app_limited {
            return;
        }
        let bw = self.bandwidth();
        if bw >= self.full_bw.saturating_mul(5) / 4 {
            (self.full_bw, self.full_rounds) = (bw, 0);
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn probe_bandwidth(&mut self, now: Nanos) {
        self.mode = Mode::ProbeBw;
        // Any phase but the draining one; which, matters little.
        (self.phase, self.phase_start) = (2, now);
    }

    fn cycle(&mut self, d: &Delivery) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let long = d.now - self.phase_start > self.min_rtt;
        let next = match CYCLE[self.phase] {
            256 => long,
            gain if gain > 256 => long && d.in_flight >= self.bdp(gain, d.mss),
            _ => long || d.in_flight <= self.bdp(256, d.mss),
        };
        if next {
            (self.phase, self.phase_start) = ((self.phase + 1) % CYCLE.len(), d.now);
        }
    }

    fn look_at_rtt(&mut self, cwnd: u64, d: &Delivery) {
        let expired = d.now > self.min_rtt_at + MIN_RTT_FOR;
        if let Some(rtt) = d.rtt
            && (rtt <= self.min_rtt || expired)
        {
            (self.min_rtt, self.min_rtt_at) = (rtt, d.now);
        }
        if expired && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save(cwnd);
            self.probe_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_done {
                None if d.in_flight <= LEAST => self.probe_done = Some(d.now + PROBE_RTT_FOR),
                Some(at) if d.now > at => {
                    self.min_rtt_at = d.now;
                    if self.full {
                        self.probe_bandwidth(d.now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Bytes in `time` as bytes a second.
pub(crate) fn per_second(bytes: u64, time: Nanos) -> u64 {
    let time = time.0.max(1) as u64;
    // Division of 128 bits takes ten times as long.
    match bytes.checked_mul(1_000_000_000) {
        Some(n) => n / time,
        None => (u128::from(bytes) * 1_000_000_000 / u128::from(time)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that opens later than ten seconds into the run does not look for its shortest round trip
    /// with its first ACK.
    #[test]
    fn a_connection_that_opens_late_begins_as_any_other() {
        let first_ack = |opens: Nanos, after: Nanos| {
            let mut bbr = Bbr::new(10);
            bbr.start(opens, Nanos::millis(100), 10, 1_448);
            let delivery = Delivery {
                now: opens + after,
                rate: Some(1_000_000),
                app_limited: false,
                before: 0,
                delivered: 14_480,
                rtt: Some(Nanos::millis(100)),
                acked: 10,
                in_flight: 10,
                mss: 1_448,
            };
            bbr.on_ack(10, delivery)
        };
        assert!(first_ack(Nanos::ZERO, Nanos::millis(100)) > 10);
        assert_eq!(
            first_ack(Nanos::secs(20), Nanos::millis(100)),
            first_ack(Nanos::ZERO, Nanos::millis(100))
        );
        assert_eq!(first_ack(Nanos::ZERO, Nanos::secs(11)), LEAST, "it is old by then");
    }
}
