//! The bottleneck's rate, from how trains of packets were spread out.
//!
//! Near the receiver the arrivals of data are spaced by the bottleneck; near the sender the ACKs are. A train is a
//! run without a pause longer than a quarter of a round trip. The rates of trains go into a histogram weighted by
//! bytes; the estimate is its upper part, since waits make trains slower and only compression makes them faster.

use crate::fetch::fetch_whole;
use crate::rest::{Place, at_rest};
use crate::track::departures::Departures;
use crate::track::standing::{Standing, UnderWay};
use tcpwhy_base::{Nanos, Seq};

const STEPS: i32 = 8;
const BUCKETS: usize = 8 * 21;
/// Lowest rate of the histogram: 64 kbit/s; the highest is 2^21 times that.
const LOWEST: f64 = 64e3;
/// A train of fewer intervals says nothing: ACK pairs and interrupts blur it.
const MIN_INTERVALS: u16 = 4;
const MAX_INTERVALS: u16 = 64;

/// A bucket holds what passes at its rate between two ticks of its host, at least: 10 ms of the slowest
/// (tc-tbf(8), `burst`: 10 kB for 10 Mbit/s).
const BUCKET: Nanos = Nanos::millis(10);

/// BBR probes for more in one of so many phases (`CYCLE_LEN`, tcp_bbr.c): the link sets apart what it sends
/// at least then.
const CYCLE: u32 = 8;

/// When something left, by its sender's clock or beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) at: Nanos,
    /// How much longer it was on its way than the quickest, less what jitter may be.
    pub(crate) queued: Nanos,
    /// Both are known to so much.
    pub(crate) tick: Nanos,
}

at_rest! { Left { at, queued, tick } }

/// What is known of when the packets of a flow left.
#[derive(Clone, Debug)]
pub(crate) struct Leaving {
    /// Beside their sender.
    pub(crate) departures: Departures,
    /// Up to here it left as it was written: a segment that was not full ended there while the end of such a
    /// one before it was in flight, and so was all that its sender had (`tcp_rate_check_app_limited`).
    pub(crate) written: Option<Seq>,
    /// And for how long what passes had stood before that.
    pub(crate) standing: Option<Standing>,
    /// Of the last segment.
    pub(crate) under_way: UnderWay,
    /// Away from its sender: when the last segment passed that was waited for, and whether it came as far
    /// from the one before as that from its own one before.
    pub(crate) waited_for: (Nanos, bool),
    /// When the segment that passes then left, as another tap saw it.
    told: Option<(Nanos, Left)>,
    /// Away from it: its first time stamp, how much later than it says a segment passed at the least, and
    /// when that was.
    pub(crate) soonest: Option<(u32, Nanos, Nanos)>,
    /// When the first of the train passed of which that is known, and when that and the last left.
    train: Option<(Nanos, Left, Left)>,
    /// Its message began as its sender set it apart (rule 116): trains of which that is not known say nothing
    /// of the link.
    set_apart: bool,
}

at_rest! { Leaving { departures, written, standing, under_way, waited_for, told, soonest, train, set_apart } }

/// Collects trains of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    start: Nanos,
    /// When what passes had left, of a flow of several segments.
    leaving: Option<Box<Leaving>>,
    /// As `total`, of trains that left as far apart as they passed, and their rate: those say nothing of the
    /// link by themselves.
    paced: u32,
    pace: f32,
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
    /// Beside its sender: what it sends stands in a queue of its host before it passes, so that the link is
    /// there (rule 95).
    stands: bool,
    /// Beside its sender: a loss has made the window smaller; and what left apart has the pace of what the
    /// link set apart.
    reduced: bool,
    alike: bool,
}

at_rest! {
    Rate {
        start, leaving, paced, pace, last, gap, bytes, intervals, quickest, histogram as Place, total, asked_at,
        bps, stands, reduced, alike,
    }
}

impl Rate {
    /// `bytes` passed at `t`; a pause longer than `pause` ends the train.
    #[inline]
    pub(crate) fn pass(&mut self, t: Nanos, bytes: u32, pause: Nanos, left: Option<Left>) {
        self.gap = t - self.last;
        if self.gap > pause || self.last == Nanos::ZERO {
            self.end_train();
            self.start = t;
            self.leaves(t, left);
        } else {
            self.goes_on(t, left);
            self.bytes = self.bytes.saturating_add(bytes);
            self.intervals += 1;
            let per_byte = self.gap.0 as f32 / bytes.max(1) as f32;
            self.quickest = if self.quickest > 0.0 { self.quickest.min(per_byte) } else { per_byte };
            if self.intervals >= MAX_INTERVALS {
                self.last = t;
                self.end_train();
                self.start = t;
                self.leaves(t, left);
            }
        }
        self.last = t;
    }

    /// `bytes` passed at `t` that stood in a queue before that, surely or perhaps: their pace is the link's.
    /// A bucket of tokens that are left lets the first through at once, so that a train begins with what
    /// surely stood, and is as long as ten buckets.
    pub(crate) fn stood(&mut self, t: Nanos, bytes: u32, surely: bool, perhaps: bool) {
        let goes_on = surely || perhaps && self.is_running();
        if self.last == Nanos::ZERO || !goes_on {
            self.end_train();
            self.start = t;
        } else {
            self.bytes = self.bytes.saturating_add(bytes);
            self.intervals = self.intervals.saturating_add(1);
            if self.intervals >= MAX_INTERVALS && t - self.start >= BUCKET.times(10) {
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

    #[inline(never)]
    fn end_train(&mut self) {
        if self.intervals >= MIN_INTERVALS && self.last > self.start {
            let apart = self.left_apart();
            let bps = f64::from(self.bytes) * 8e9 / (self.last - self.start).0 as f64;
            let bucket = ((bps / LOWEST).log2() * f64::from(STEPS)).floor().clamp(0.0, BUCKETS as f64 - 1.0);
            let histogram = self.histogram.get_or_insert_with(|| Box::new([0; BUCKETS]));
            // One unit is 4 KiB of payload, at least one a train.
            let weight = (self.bytes / 4096 + 1).min(0x1000) as u16;
            let unknown = self.leaving.as_ref().is_some_and(|l| l.set_apart && l.train.is_none());
            if apart || unknown {
                if apart {
                    self.paced = self.paced.saturating_add(weight.into());
                    self.pace += (bps as f32 - self.pace) * f32::from(weight) / self.paced as f32;
                    self.alike = self.reduced && self.keeps_links_pace();
                }
                (self.bytes, self.intervals) = (0, 0);
                return;
            }
            let slot = &mut histogram[bucket as usize];
            *slot += weight;
            self.total += u32::from(weight);
            if *slot > 0x8000 {
                // Older trains weigh half.
                histogram.iter_mut().for_each(|n| *n /= 2);
                self.total = histogram.iter().map(|&n| u32::from(n)).sum();
                self.paced /= 2;
                self.asked_at = 0;
            }
        }
        self.bytes = 0;
        self.intervals = 0;
    }

    /// The first of a train left then.
    fn leaves(&mut self, t: Nanos, left: Option<Left>) {
        if let Some(leaving) = &mut self.leaving {
            leaving.train = left.map(|left| (t, left, left));
        }
    }

    /// Another one of it.
    fn goes_on(&mut self, t: Nanos, left: Option<Left>) {
        if let Some(leaving) = &mut self.leaving {
            leaving.train = left.map(|left| match leaving.train {
                Some((since, first, _)) => (since, first, left),
                None => (t, left, left),
            });
        }
    }

    /// What lies outside of it will be needed.
    #[inline]
    pub(crate) fn fetch(&self) {
        self.leaving.iter().for_each(|leaving| fetch_whole(&**leaving));
        self.histogram.iter().for_each(|histogram| fetch_whole(&**histogram));
    }

    /// When what passes had left.
    #[inline]
    pub(crate) fn leaving(&mut self) -> Option<&mut Leaving> {
        self.leaving.as_deref_mut()
    }

    /// How long the last segment had been under way, where that is known.
    pub(crate) fn under_way(&self) -> UnderWay {
        self.leaving.as_ref().map_or_else(UnderWay::default, |leaving| leaving.under_way)
    }

    /// When what ends there had left, beside its sender.
    pub(crate) fn left_at(&self, end: Seq) -> Option<Nanos> {
        self.leaving.as_ref()?.departures.at(end)
    }

    /// For how long what passed at `t`, away from its sender, had been under way at the least, and whether it
    /// came as far from the one before as that from its own one before.
    pub(crate) fn on_its_way(&self, t: Nanos) -> Option<(Nanos, bool)> {
        let leaving = self.leaving.as_ref().filter(|leaving| leaving.waited_for.0 == t)?;
        Some((leaving.under_way.surely, leaving.waited_for.1))
    }

    /// It has several segments in flight, so that when they leave is worth knowing.
    #[inline]
    pub(crate) fn has_several(&mut self) {
        if self.leaving.is_none() {
            let (departures, written) = (Departures::new(), None);
            let leaving = Leaving {
                departures,
                written,
                standing: None,
                under_way: UnderWay::default(),
                waited_for: (Nanos::ZERO, false),
                told: None,
                soonest: None,
                train: None,
                set_apart: false,
            };
            self.leaving = Some(Box::new(leaving));
        }
    }

    /// How its message began: its sender set it apart, or that does not show.
    pub(crate) fn began(&mut self, set_apart: bool) {
        if set_apart {
            self.has_several();
        }
        if let Some(leaving) = &mut self.leaving {
            leaving.set_apart = set_apart;
        }
    }

    /// Another tap saw the segment leave that passes at `t`.
    pub(crate) fn told_left(&mut self, t: Nanos, left: Left) {
        self.has_several();
        if let Some(leaving) = &mut self.leaving {
            leaving.told = Some((t, left));
        }
    }

    /// What another tap said of the segment that passes at `t`.
    #[inline]
    pub(crate) fn told(&self, t: Nanos) -> Option<Left> {
        self.leaving.as_ref()?.told.filter(|told| told.0 == t).map(|told| told.1)
    }

    /// What it sends stands in a queue before it passes, or no longer.
    #[inline]
    pub(crate) fn stands(&self) -> bool {
        self.stands
    }

    /// So it does from now on: the rate that was learnt is that of another place, and when what passes leaves
    /// is still known.
    pub(crate) fn begins_to_stand(&mut self) {
        let leaving = self.leaving.take();
        *self = Rate { leaving, stands: true, ..Rate::default() };
    }

    /// It no longer does.
    pub(crate) fn stands_no_more(&mut self) {
        self.stands = false;
    }

    /// The train left as far apart as it passed, by an eighth, and no queue of its own stood: two of its
    /// pieces would have waited longer. BBR takes such a sample for its sender's rate (the smaller of both
    /// rates, draft-cheng-iccrg-delivery-rate-estimation, 3.1.2).
    fn left_apart(&self) -> bool {
        let Some((since, first, last)) = self.leaving.as_ref().and_then(|l| l.train) else { return false };
        let (all, took) = (self.last - self.start, self.last - since);
        if took.times(2) < all {
            return false;
        }
        let two = Nanos(all.times(2).0 / i64::from(self.intervals.max(1)));
        let stood = first.queued.min(last.queued);
        took - (last.at - first.at) + last.tick <= took.part(8) && stood <= two + last.tick
    }

    /// Its sender spaced what passed: of trains that tell, fewer were set apart by the link than probing
    /// alone accounts for, and those had another rate. A window that a loss made as small as what the link
    /// holds keeps the pace that the link's queue had given it (RFC 5681, 1: the ACK clock).
    pub(crate) fn is_paced(&self) -> bool {
        self.paced > (CYCLE - 1) * self.total && !self.alike
    }

    /// Beside its sender: a loss has made the window smaller.
    #[inline]
    pub(crate) fn reduces(&mut self) {
        self.reduced = true;
    }

    #[cold]
    fn keeps_links_pace(&self) -> bool {
        let link = self.compute().unwrap_or(0.0) as f32;
        (link - self.pace).abs() <= self.pace / 8.0
    }

    /// No train was long enough so far: there is no estimate.
    #[inline]
    pub(crate) fn has_no_train(&self) -> bool {
        self.intervals < MIN_INTERVALS && self.histogram.is_none()
    }

    /// Bits per second; `None` while no train was long enough.
    pub(crate) fn estimate(&mut self) -> Option<f64> {
        if self.intervals >= MIN_INTERVALS {
            self.end_train();
            self.start = self.last;
            let last = self.leaving.as_ref().and_then(|l| l.train).map(|train| train.2);
            self.leaves(self.last, last);
        }
        if self.is_paced() {
            return None;
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
        let (rows, _) = histogram.as_chunks::<8>();
        for (row, eight) in rows.iter().enumerate().rev() {
            // Most hold nothing, which eight at once show as soon as one.
            if eight.iter().fold(0, |any, n| any | n) == 0 {
                continue;
            }
            for (i, &n) in eight.iter().enumerate().rev() {
                if n > 0 && u32::from(n) > above {
                    let i = 8 * row + i;
                    return Some(LOWEST * ((i as f64 + 0.5) / f64::from(STEPS)).exp2());
                }
                above = above.saturating_sub(u32::from(n));
            }
        }
        None
    }
}

/// No pause is shorter that ends one.
pub(super) const SHORTEST_PAUSE: Nanos = Nanos::micros(200);

/// A pause longer than this ends a train of packets of one direction. A queue that makes the round trip
/// longer keeps the link busy for as long as it is. Else a train is over before a delayed ACK can come (40
/// ms, less a tenth): it is no pace of the link.
pub(super) fn train_pause(rtt: Option<Nanos>, crowded: Nanos) -> Nanos {
    match rtt {
        Some(rtt) if crowded >= rtt.times(3).part(2) => (crowded - rtt).max(SHORTEST_PAUSE),
        Some(rtt) => rtt.part(4).clamp(SHORTEST_PAUSE, Nanos::millis(36)),
        None => Nanos::millis(5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_train_gives_its_rate() {
        let mut rate = Rate::default();
        for i in 1..200 {
            rate.pass(Nanos::micros(120 * i), 1500, Nanos::millis(5), None);
        }
        let bps = rate.estimate().unwrap();
        assert!((bps / 100e6 - 1.0).abs() < 0.1, "{bps}");
    }

    /// Where the histogram is looked at eight at a time, the bucket is the same as one at a time.
    #[test]
    fn eight_buckets_at_once_are_as_one_by_one() {
        let mut some = 1_u32;
        for round in 0..2_000_u32 {
            let mut histogram = [0_u16; BUCKETS];
            for _ in 0..=round % 12 {
                some = some.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                histogram[(some >> 16) as usize % BUCKETS] = (some >> 8) as u16 % 40;
            }
            let total = histogram.iter().map(|&n| u32::from(n)).sum();
            let mut above = total / 5;
            let found = histogram.iter().enumerate().rev().find(|&(_, &n)| {
                let here = n > 0 && u32::from(n) > above;
                above = above.saturating_sub(u32::from(n));
                here
            });
            let rate = Rate { histogram: Some(Box::new(histogram)), total, ..Rate::default() };
            let one_by_one = found.map(|(i, _)| LOWEST * ((i as f64 + 0.5) / f64::from(STEPS)).exp2());
            assert_eq!(rate.compute(), one_by_one);
        }
    }

    fn several() -> Rate {
        let mut rate = Rate::default();
        rate.has_several();
        rate
    }

    /// Trains of eleven pieces 800 µs apart, which left so far apart; what passed first and last had queued
    /// for so long.
    fn trains(rate: &mut Rate, count: i64, from: i64, apart: i64, queued: i64, tick: i64) {
        for n in 0..count {
            for k in 0..11 {
                let at = Nanos::micros(apart * k);
                let left = Left { at, queued: Nanos::micros(queued), tick: Nanos::micros(tick) };
                let t = Nanos::millis(from + 100 * n) + Nanos::micros(800 * k);
                rate.pass(t, 1448, Nanos::millis(5), Some(left));
            }
        }
        rate.estimate();
    }

    /// Less than an eighth further apart than they left, and no queue that held two of them: their sender
    /// spaced them (rule 87).
    #[test]
    fn what_left_as_far_apart_was_not_spaced_by_the_link() {
        let paced = |apart, queued, tick| {
            let mut rate = several();
            trains(&mut rate, 3, 1, apart, queued, tick);
            assert_eq!(rate.estimate().is_none(), rate.is_paced());
            rate.is_paced()
        };
        assert_eq!([700, 699].map(|apart| paced(apart, 0, 0)), [true, false]);
        assert_eq!([1_600, 1_601].map(|queued| paced(800, queued, 0)), [true, false]);
        // A clock that ticks leaves less of the eighth, and of the queue nothing that is within a tick.
        assert_eq!([1_000, 1_001].map(|tick| paced(800, 1_600 + tick, tick)), [true, false]);
    }

    /// Seven trains that left apart for one that the link set apart are those of a sender that probes for
    /// more in one of eight round trips.
    #[test]
    fn one_train_of_eight_shows_the_link() {
        let shows = |paced| {
            let mut rate = several();
            trains(&mut rate, 1, 1, 10, 0, 0);
            trains(&mut rate, paced, 1_001, 800, 0, 0);
            rate.estimate().is_some()
        };
        assert_eq!([7, 8].map(shows), [true, false]);
    }

    /// Beside a sender whose window a loss made as small as what the link holds, all trains leave as far
    /// apart as they pass: at the link's pace, if that is what its queue had set them apart by before.
    #[test]
    fn a_smaller_window_keeps_the_pace_of_the_link() {
        let shows = |reduced: bool, each: i64| {
            let mut rate = several();
            trains(&mut rate, 1, 1, 10, 0, 0);
            if reduced {
                rate.reduces();
            }
            for n in 0..40 {
                for k in 0..11 {
                    let at = Nanos::micros(each * k);
                    let left = Left { at, queued: Nanos::ZERO, tick: Nanos::ZERO };
                    rate.pass(Nanos::millis(1_000 + 100 * n) + at, 1448, Nanos::millis(5), Some(left));
                }
            }
            assert_eq!(rate.estimate().is_some(), !rate.is_paced());
            rate.estimate().is_some()
        };
        assert_eq!([800, 1_000, 600].map(|each| shows(true, each)), [true, false, false]);
        assert!(!shows(false, 800), "without a loss its sender may have spaced it");
    }

    /// Of whoever set its message apart a train says nothing of the link where a loss hides when it left; of
    /// others it does.
    #[test]
    fn what_left_nobody_knows_when_is_no_link_of_who_set_its_message_apart() {
        let mut rate = Rate::default();
        let mut since = Nanos::ZERO;
        let mut train = |rate: &mut Rate| {
            since += Nanos::millis(100);
            (0..11).for_each(|k| rate.pass(since + Nanos::micros(800 * k), 1448, Nanos::millis(5), None));
            rate.estimate().is_some()
        };
        rate.began(true);
        assert!(!train(&mut rate) && !rate.is_paced());
        rate.began(false);
        assert!(train(&mut rate));
    }
}
