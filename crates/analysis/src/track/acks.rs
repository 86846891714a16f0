//! The last ACKs and window updates for one end's data, as they passed the tap.

use crate::fetch::fetch;
use crate::profile::WAKE_UP;
use crate::rest::{Edge, Flight, Form, Frame, Near, Packer, Rest, Size, Unpacker, at_rest};
use tcpwhy_base::{Nanos, Segment, Seq};

/// An ACK or window update, and what was known before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub(crate) time: Nanos,
    /// Its frame, four times, one more if it carried no data, two more if its sender held data beyond a hole.
    frame_and_bits: u64,
    /// Since the newest data it covers passed the tap; the smallest number where that is not known.
    delay: Nanos,
    /// Acknowledgement number, and what it was before.
    pub(crate) ack: Seq,
    pub(crate) una_before: Seq,
    /// Right edge of the window that it offers, and what it was before.
    pub(crate) edge: Seq,
    pub(crate) edge_before: Seq,
    /// The window last offered before, scaled.
    pub(crate) window_before: u32,
    /// The sender's congestion window before it, as estimated.
    pub(crate) cwnd: u32,
    /// Its time stamp, where whoever got it must have echoed it from then on.
    pub(crate) stamp: Option<u32>,
}

at_rest! {
    Ack {
        time, frame_and_bits as Framed, delay, ack, una_before, edge as Edge, edge_before as Edge,
        window_before as Size, cwnd as Flight, stamp as Near,
    }
}

/// Its frame is near others, without the bits.
struct Framed;

impl Form<u64> for Framed {
    fn write(value: &u64, to: &mut Packer) {
        Frame::write(&(value >> 2), to);
        (value & 1 == 1).put(to);
        (value & 2 == 2).put(to);
    }

    fn read(from: &mut Unpacker<'_>) -> u64 {
        let frame: u64 = Frame::read(from);
        let (pure, at_a_hole) = (bool::get(from), bool::get(from));
        frame << 2 | u64::from(at_a_hole) << 1 | u64::from(pure)
    }
}

impl Ack {
    /// An ACK that passed at `time`, all its numbers zero. `pure`: it carried no data; `at_a_hole`: its
    /// sender held data beyond a hole.
    #[inline]
    pub(crate) fn new(time: Nanos, frame: u64, pure: bool, at_a_hole: bool, delay: Option<Nanos>) -> Ack {
        Ack {
            time,
            frame_and_bits: frame << 2 | u64::from(at_a_hole) << 1 | u64::from(pure),
            delay: delay.unwrap_or(Nanos(i64::MIN)),
            ack: Seq(0),
            una_before: Seq(0),
            edge: Seq(0),
            edge_before: Seq(0),
            window_before: 0,
            cwnd: 0,
            stamp: None,
        }
    }

    pub(crate) fn frame(&self) -> u64 {
        self.frame_and_bits >> 2
    }

    /// So many bytes it acknowledged.
    pub(crate) fn took(&self) -> u32 {
        self.ack.minus(self.una_before).max(0) as u32
    }

    /// The window that it offers, scaled.
    pub(crate) fn offered(&self) -> u32 {
        self.edge.minus(self.ack).max(0) as u32
    }

    /// It carried no data.
    pub(crate) fn pure(&self) -> bool {
        self.frame_and_bits & 1 == 1
    }

    /// Its sender held data beyond a hole, or had just got what filled it: its window and its delay say nothing of who
    /// reads.
    pub(crate) fn at_a_hole(&self) -> bool {
        self.frame_and_bits & 2 == 2
    }

    /// The segment echoes an older time stamp.
    pub(crate) fn is_later_than(&self, segment: &Segment) -> bool {
        let echo = segment.options.timestamps.map(|t| t.1);
        self.stamp.zip(echo).is_some_and(|(stamp, echo)| (echo.wrapping_sub(stamp) as i32) < 0)
    }

    /// Since the newest data it covers passed the tap.
    pub(crate) fn delay(&self) -> Option<Nanos> {
        (self.delay.0 != i64::MIN).then_some(self.delay)
    }

    /// How much later it was than the fastest reaction of its sender.
    pub(crate) fn late_by(&self, reaction: Nanos) -> Nanos {
        self.delay().map_or(Nanos::ZERO, |d| (d - reaction).floor0())
    }
}

/// Four times the two segments after which an ACK is due (RFC 9293, 3.8.6.3); no window of fewer tells of a
/// reader either (rule 21).
const MANY: u32 = 8;

/// A window whose scale is not known.
pub(crate) const UNKNOWN: u32 = 1 << 30;

/// So many are always known, and never more than so many.
const LEAST: usize = 4;
const MOST: usize = 256;

/// A ring of the last ones: four, and as many (up to 256) as one reaction time needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acks {
    ring: Vec<Ack>,
    /// Where the oldest is, once the ring is full.
    at: u16,
    /// The largest window that one of them offered.
    largest: u32,
    /// Since when each has offered no more than three quarters of that (half-way between half of it and all
    /// of it; rule 21); zero: the last one has offered more.
    low_since: Nanos,
    /// The first window that is known, in KiB, rounded up; zero: none.
    first_kib: u16,
}

at_rest! { Acks { ring, at, largest, low_since, first_kib } }

impl Acks {
    /// None, with the room of these unless that is large.
    pub(crate) fn emptied(mut self) -> Acks {
        self.ring.clear();
        self.ring.shrink_to(16);
        Acks { ring: self.ring, ..Acks::default() }
    }

    /// Adds one. `horizon` is how far back they must be known.
    // It is written where it will stay: through memory its narrow fields would be read back together, which
    // waits until they are all in the cache.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "else it is handed over in memory")]
    pub(crate) fn push(&mut self, event: Ack, horizon: Nanos) {
        let goes = |oldest: &Ack| event.time - oldest.time > horizon;
        if self.ring.len() < LEAST || !self.ring.get(usize::from(self.at)).is_some_and(goes) {
            self.grow();
        }
        let at = usize::from(self.at);
        if let Some(place) = self.ring.get_mut(at) {
            *place = event;
            self.at = if at + 1 < self.ring.len() { self.at + 1 } else { 0 };
        }
    }

    /// An ACK at `t` offers another window than the one before. Without its scale a window says nothing.
    #[cold]
    pub(crate) fn window_changes(&mut self, t: Nanos, before: u32, now: u32) {
        if before.max(now) >= UNKNOWN {
            (self.largest, self.low_since, self.first_kib) = (0, Nanos::ZERO, 0);
            return;
        }
        if self.first_kib == 0 {
            self.first_kib = u16::try_from(before.div_ceil(1_024)).unwrap_or(u16::MAX);
        }
        self.largest = self.largest.max(before).max(now);
        let low = now <= self.largest / 4 * 3;
        self.low_since = match low {
            true if self.low_since > Nanos::ZERO => self.low_since,
            true => t,
            false => Nanos::ZERO,
        };
    }

    /// Makes a place behind the newest the next, if there may be one more.
    #[cold]
    fn grow(&mut self) {
        let n = self.ring.len();
        if n < MOST {
            // Unroll the ring before growing it.
            self.ring.rotate_left(usize::from(self.at).min(n));
            self.ring.push(Ack::new(Nanos::ZERO, 0, false, false, None));
            self.at = n as u16;
        }
    }

    /// They reach back to `time`.
    pub(crate) fn known_since(&self, time: Nanos) -> bool {
        self.ring.len() < LEAST || self.newest_first().last().is_none_or(|a| a.time <= time)
    }

    /// The last one has offered no more than three quarters of the largest window.
    #[inline]
    pub(crate) fn is_low(&self) -> bool {
        self.low_since != Nanos::ZERO
    }

    /// The first one was as low: the largest has been offered since data came, of which its receiver knew by
    /// then how much memory it takes.
    pub(crate) fn had_grown(&self) -> bool {
        self.first_kib > 0 && u32::from(self.first_kib) <= self.largest / 1_024 / 4 * 3
    }

    /// For so long, up to `time`, each has offered no more than that.
    pub(crate) fn low_for(&self, time: Nanos) -> Nanos {
        if self.low_since == Nanos::ZERO { Nanos::ZERO } else { (time - self.low_since).floor0() }
    }

    /// This ACK for two segments or more was not sent when they had come, which is at once where the window
    /// would be as large as before, but when some were read or a timer ran out (`__tcp_ack_snd_check`; rule
    /// 86): the right edge stood still behind most of them, or the ACK before, from when nobody read, was for
    /// a quarter as much at most: an ACK at once is for two segments, or for what the device had handed up
    /// together. A half or an eighth would say the same of all captures that the rules are measured on.
    pub(crate) fn is_read_late(&self, ack: &Ack, mss: u32) -> bool {
        let took = ack.took();
        if took < 2 * mss.max(1) {
            return false;
        }
        let unread = ack.window_before > 0 && ack.offered() + took / 2 <= ack.window_before;
        let small = |before: &Ack| before.offered() < before.window_before && before.took() <= took / 4;
        unread || self.newest_first().find(|a| a.frame() < ack.frame() && a.took() > 0).is_some_and(small)
    }

    /// Nobody had read anything for a round trip until this ACK, which is for many segments and came late:
    /// how long what came first had lain there. It did not wake the reader, as it does one that waits for it.
    /// What a device hands up together, and what stands in a queue, is acknowledged as it comes (rule 102).
    pub(crate) fn lay_unread(&self, ack: &Ack, mss: u32, trip: Nanos, reaction: Nanos) -> Option<Nanos> {
        let late = ack.late_by(reaction);
        if late <= WAKE_UP || ack.took() < MANY * mss.max(1) {
            return None;
        }
        let moved = |a: &&Ack| a.frame() < ack.frame() && a.edge.after(a.edge_before);
        let stood = ack.time - self.newest_first().find(moved)?.time;
        (stood >= trip - trip.part(8)).then(|| late.max(stood - trip))
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Ack> {
        let at = usize::from(self.at).min(self.ring.len());
        let (a, b) = self.ring.split_at(at);
        a.iter().rev().chain(b.iter().rev())
    }

    /// The newest, and where the next will be kept, will be needed.
    pub(crate) fn fetch(&self) {
        let at = usize::from(self.at);
        for place in [self.ring.get(at), self.ring.get(at.wrapping_sub(1))] {
            place.into_iter().for_each(fetch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK of ten segments with so many bytes of room behind it, after one for so many, both out of a
    /// window of twenty segments.
    fn read_late(before: (u32, u32), took: u32, offered: u32) -> bool {
        const MSS: u32 = 1_000;
        let mut acks = Acks::default();
        let mut una = Seq(5_000);
        let mut window = 20 * MSS;
        for (n, (took, offered)) in [before, (took, offered)].into_iter().enumerate() {
            let mut ack = Ack::new(Nanos::millis(n as i64), 7 + n as u64, true, false, None);
            (ack.una_before, ack.ack) = (una, una + took);
            (ack.edge_before, ack.edge, ack.window_before) = (una + window, una + took + offered, window);
            acks.push(ack, Nanos::ZERO);
            (una, window) = (ack.ack, offered);
        }
        acks.newest_first().next().is_some_and(|ack| acks.is_read_late(ack, MSS))
    }

    /// Since when windows are low: three quarters of the largest, not a byte more; what has no scale says
    /// nothing, and nothing of what was before.
    #[test]
    fn how_long_windows_are_low() {
        const MS: fn(i64) -> Nanos = Nanos::millis;
        let mut acks = Acks::default();
        let mut low = |t: i64, before: u32, now: u32| {
            acks.window_changes(MS(t), before, now);
            (acks.is_low(), acks.low_for(MS(100)))
        };
        assert_eq!(low(10, 80_000, 60_001), (false, MS(0)));
        assert_eq!(low(20, 60_001, 60_000), (true, MS(80)));
        assert_eq!(low(30, 60_000, 40_000), (true, MS(80)));
        assert_eq!(low(40, 40_000, 70_000), (false, MS(0)));
        assert_eq!(low(50, 70_000, 40_000), (true, MS(50)));
        assert_eq!(low(60, UNKNOWN, 40_000), (false, MS(0)));
        assert_eq!(low(70, 40_000, 30_000), (true, MS(30)));
    }

    /// Three quarters of the largest, or more; what has no scale is forgotten.
    #[test]
    fn whether_a_window_had_grown() {
        let grown = |first: u32, most: u32| {
            let mut acks = Acks::default();
            acks.window_changes(Nanos::millis(1), first, most);
            acks.window_changes(Nanos::millis(2), most, 10_000);
            acks.had_grown()
        };
        assert_eq!([48, 49].map(|kib| grown(kib * 1_024, 64 * 1_024)), [true, false]);
        assert_eq!([grown(UNKNOWN, 64 * 1_024), grown(0, 64 * 1_024)], [false, false]);
    }

    #[test]
    fn what_an_ack_tells_of_who_reads() {
        // The right edge stood still behind half of what it took, or moved one byte more.
        assert_eq!(
            [15_000, 15_001].map(|offered| read_late((10_000, 20_000), 10_000, offered)),
            [true, false]
        );
        // The one before offered less and took a quarter as much, or a byte more; or offered as much.
        let after = |took, offered| read_late((took, offered), 8_000, 20_000);
        assert_eq!([after(2_000, 19_999), after(2_001, 19_999), after(2_000, 20_000)], [true, false, false]);
        // Two segments, or not.
        assert_eq!([2_000, 1_999].map(|took| read_late((500, 19_000), took, 18_000)), [true, false]);
    }

    /// Four are always there; more as long as the oldest is not farther back than was asked for. The newest
    /// comes first.
    #[test]
    fn the_ring_grows_as_far_back_as_it_is_asked() {
        let kept = |horizon: i64| {
            let mut acks = Acks::default();
            for n in 0..600 {
                acks.push(Ack::new(Nanos::millis(n), n as u64, true, false, None), Nanos::millis(horizon));
            }
            let frames: Vec<u64> = acks.newest_first().map(Ack::frame).collect();
            assert!(frames.iter().enumerate().all(|(n, &frame)| frame == 599 - n as u64), "{frames:?}");
            frames.len()
        };
        assert_eq!([0, 3, 4, 10, 254, 255, 1_000].map(kept), [4, 4, 5, 11, 255, 256, 256]);
    }
}
