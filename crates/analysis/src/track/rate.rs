//! The bottleneck's rate, from how trains of packets were spread out.
//!
//! Near the receiver the arrivals of data are spaced by the bottleneck; near the sender the ACKs are. A train is a
//! run without a pause longer than a quarter of a round trip. The rates of trains go into a histogram weighted by
//! bytes; the estimate is its upper part, since waits make trains slower and only compression makes them faster.

use tcpwhy_base::{Nanos, Segment, Seq};

const STEPS: i32 = 8;
const BUCKETS: usize = 168;
/// Lowest rate of the histogram: 64 kbit/s; the highest is 2^21 times that.
const LOWEST: f64 = 64e3;
/// A train of fewer intervals says nothing: ACK pairs and interrupts blur it.
const MIN_INTERVALS: u16 = 4;
const MAX_INTERVALS: u16 = 64;

/// Collects trains of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    start: Nanos,
    last: Nanos,
    /// Between the last two.
    gap: Nanos,
    bytes: u32,
    intervals: u16,
    /// The least time that a byte took between two neighbours of a train, nanoseconds; 0: there was none.
    quickest: f32,
    histogram: Option<Box<[u16; BUCKETS]>>,
    /// Sum of the histogram, and what it was when the estimate was last made.
    total: u32,
    asked_at: u32,
    /// The estimate, bits per second; 0: none.
    bps: f32,
}

impl Rate {
    /// Reads a little of it, to have it in the cache.
    pub(crate) fn touch(&self) -> u64 {
        self.last.0 as u64
    }

    /// `bytes` passed at `t`; a pause longer than `pause` ends the train.
    #[inline]
    pub(crate) fn pass(&mut self, t: Nanos, bytes: u32, pause: Nanos) {
        self.gap = t - self.last;
        if self.gap > pause || self.last == Nanos::ZERO {
            self.end_train();
            self.start = t;
        } else {
            self.bytes = self.bytes.saturating_add(bytes);
            self.intervals += 1;
            let per_byte = self.gap.0 as f32 / bytes.max(1) as f32;
            self.quickest = if self.quickest > 0.0 { self.quickest.min(per_byte) } else { per_byte };
            if self.intervals >= MAX_INTERVALS {
                self.last = t;
                self.end_train();
                self.start = t;
            }
        }
        self.last = t;
    }

    /// When the last passed.
    #[inline]
    pub(crate) fn last(&self) -> Nanos {
        self.last
    }

    /// A train goes on.
    pub(crate) fn is_running(&self) -> bool {
        self.intervals > 0
    }

    /// The least time in which so many bytes have passed, told from the nearest two neighbours.
    pub(crate) fn crossing(&self, bytes: u32) -> Nanos {
        Nanos((self.quickest * bytes as f32) as i64)
    }

    /// What passes at `t` is as far from the last as that was from the one before, within a sixteenth.
    pub(crate) fn is_even(&self, t: Nanos) -> bool {
        let gap = t - self.last;
        (gap - self.gap).0.abs() <= gap.part(16).0
    }

    fn end_train(&mut self) {
        if self.intervals >= MIN_INTERVALS && self.last > self.start {
            let bps = f64::from(self.bytes) * 8e9 / (self.last - self.start).0 as f64;
            let bucket = ((bps / LOWEST).log2() * f64::from(STEPS)).floor().clamp(0.0, BUCKETS as f64 - 1.0);
            let histogram = self.histogram.get_or_insert_with(|| Box::new([0; BUCKETS]));
            // One unit is 4 KiB of payload, at least one a train.
            let weight = (self.bytes / 4096 + 1).min(0x1000) as u16;
            let slot = &mut histogram[bucket as usize];
            *slot += weight;
            self.total += u32::from(weight);
            if *slot > 0x8000 {
                // Older trains weigh half.
                histogram.iter_mut().for_each(|n| *n /= 2);
                self.total = histogram.iter().map(|&n| u32::from(n)).sum();
                self.asked_at = 0;
            }
        }
        self.bytes = 0;
        self.intervals = 0;
    }

    /// Bits per second; `None` while no train was long enough.
    pub(crate) fn estimate(&mut self) -> Option<f64> {
        if self.intervals >= MIN_INTERVALS {
            self.end_train();
            self.start = self.last;
        }
        // An eighth more does not move it.
        if self.total > self.asked_at + self.asked_at / 8 || self.asked_at == 0 {
            self.asked_at = self.total;
            self.bps = self.compute().unwrap_or(0.0) as f32;
        }
        (self.bps > 0.0).then_some(f64::from(self.bps))
    }

    /// The rate that a fifth of the bytes reached: compression makes single trains too fast, waits make the rest too
    /// slow.
    fn compute(&self) -> Option<f64> {
        let histogram = self.histogram.as_ref()?;
        let mut above = self.total / 5;
        for (i, &n) in histogram.iter().enumerate().rev() {
            if n > 0 && u32::from(n) > above {
                return Some(LOWEST * ((i as f64 + 0.5) / f64::from(STEPS)).exp2());
            }
            above = above.saturating_sub(u32::from(n));
        }
        None
    }
}

/// A pause longer than this ends a train of packets of one direction. A queue that makes the round trip longer keeps the link busy for
/// as long as it is. Else a train is over
/// before a delayed ACK can come (40 ms, less a tenth): it is no pace of the link.
pub(super) fn train_pause(rtt: Option<Nanos>, crowded: Nanos) -> Nanos {
    match rtt {
        Some(rtt) if crowded >= rtt.times(3).part(2) => (crowded - rtt).max(Nanos::micros(200)),
        Some(rtt) => rtt.part(4).clamp(Nanos::micros(200), Nanos::millis(36)),
        None => Nanos::millis(5),
    }
}

/// The round trip of a flow that keeps at least four segments in flight: with a queue on the path it is longer than the
/// base one. Measured once in each: near the sender from a segment to the ACK of it; elsewhere from a time stamp that the
/// receiver sent to the sender's echo of it (RFC 7323, 4.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crowd {
    /// Zero: not known, or fewer segments.
    rtt: Nanos,
    since: Nanos,
    /// The last data that passed.
    last: Nanos,
    echo: Option<Mark>,
    bytes: u32,
}

/// What a round trip is measured by: which of them changes when the tap turns out to be near the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// The end of a segment.
    End(Seq),
    /// A time stamp of the receiver.
    Stamp(u32),
}

impl Crowd {
    /// The last one measured, zero where not known.
    #[inline]
    pub(crate) fn rtt(&self) -> Nanos {
        self.rtt
    }

    /// One was measured with so many bytes in flight.
    #[inline]
    fn measured(&mut self, rtt: Nanos, flight: u32, mss: u32) {
        self.rtt = if flight >= 4 * mss.max(1) { rtt } else { Nanos::ZERO };
    }

    /// A segment, or an ACK with a time stamp, left at `t`.
    #[inline]
    pub(crate) fn asked(&mut self, mark: Mark, t: Nanos) {
        let other = matches!(
            (self.echo, mark),
            (None, _) | (Some(Mark::End(_)), Mark::Stamp(_)) | (Some(Mark::Stamp(_)), Mark::End(_))
        );
        if other {
            (self.echo, self.since, self.bytes) = (Some(mark), t, 0);
        }
    }

    /// Everything before `ack` was acknowledged, of so many bytes in flight.
    #[inline]
    pub(crate) fn acknowledged(&mut self, ack: Seq, t: Nanos, flight: u32, mss: u32) {
        if matches!(self.echo, Some(Mark::End(end)) if !ack.before(end)) {
            self.measured(t - self.since, flight, mss);
            self.echo = None;
        }
    }

    /// Data came, and tells which time stamp its sender had seen.
    #[inline]
    pub(crate) fn answered(&mut self, segment: &Segment, t: Nanos, mss: u32) {
        let pause = t - std::mem::replace(&mut self.last, t);
        let (Some(Mark::Stamp(asked)), Some((_, echo))) = (self.echo, segment.options.timestamps) else {
            return;
        };
        self.bytes = self.bytes.saturating_add(segment.len);
        if echo.wrapping_sub(asked) as i32 >= 0 {
            // After a pause the round trip holds the pause, and not so many segments were in flight.
            let rtt = t - self.since;
            self.measured(rtt, if pause > rtt.part(2) { 0 } else { self.bytes }, mss);
            self.echo = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_train_gives_its_rate() {
        let mut rate = Rate::default();
        for i in 1..200 {
            rate.pass(Nanos::micros(120 * i), 1500, Nanos::millis(5));
        }
        let bps = rate.estimate().unwrap();
        assert!((bps / 100e6 - 1.0).abs() < 0.1, "{bps}");
    }

    #[test]
    fn a_round_trip_counts_while_four_segments_are_in_flight() {
        let mut crowd = Crowd::default();
        crowd.asked(Mark::End(Seq(1_448)), Nanos::ZERO);
        crowd.acknowledged(Seq(1_448), Nanos::millis(30), 4 * 1_448, 1_448);
        assert_eq!(crowd.rtt(), Nanos::millis(30));
        // One segment alone does not wait behind others of its own.
        crowd.asked(Mark::End(Seq(2_896)), Nanos::millis(40));
        crowd.acknowledged(Seq(2_896), Nanos::millis(90), 1_448, 1_448);
        assert_eq!(crowd.rtt(), Nanos::ZERO);
    }
}
