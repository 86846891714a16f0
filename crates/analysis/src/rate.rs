//! The bottleneck's rate, from how trains of packets were spread out.
//!
//! Near the receiver the arrivals of data are spaced by the bottleneck; near the sender the ACKs are. A train is a
//! run without a pause longer than a quarter of a round trip. The rates of trains go into a histogram weighted by
//! bytes; the estimate is its upper part, since waits make trains slower and only compression makes them faster.

use tcpwhy_base::Nanos;

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
    bytes: u32,
    intervals: u16,
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
        if t - self.last > pause || self.last == Nanos::ZERO {
            self.end_train();
            self.start = t;
        } else {
            self.bytes = self.bytes.saturating_add(bytes);
            self.intervals += 1;
            if self.intervals >= MAX_INTERVALS {
                self.last = t;
                self.end_train();
                self.start = t;
            }
        }
        self.last = t;
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
}
