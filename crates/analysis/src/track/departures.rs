//! When what is in flight left.

use crate::rest::at_rest;
use tcpwhy_base::{Nanos, Seq};

const POINTS: usize = 32;

/// Beside its sender: when the bytes in flight passed, at some points of them.
#[derive(Clone, Debug)]
pub(crate) struct Departures {
    ends: [Seq; POINTS],
    times: [Nanos; POINTS],
    first: u8,
    count: u8,
    /// The last that passed, whether it is a point or not.
    last: (Seq, Nanos),
}

at_rest! { Departures { ends, times, first, count, last } }

impl Departures {
    pub(crate) fn new() -> Departures {
        let last = (Seq(0), Nanos::ZERO);
        Departures { ends: [Seq(0); POINTS], times: [Nanos::ZERO; POINTS], first: 0, count: 0, last }
    }

    fn place(&self, n: u8) -> usize {
        usize::from(self.first.wrapping_add(n)) % POINTS
    }

    /// What ends at `end` passed, with so many bytes in flight: a sixteenth of them is between two points.
    #[inline]
    pub(crate) fn push(&mut self, end: Seq, t: Nanos, flight: u32) {
        self.last = (end, t);
        let newest = self.place(self.count.wrapping_sub(1));
        if self.count > 0 && end.minus(self.ends[newest]) < (flight / 16) as i32 {
            return;
        }
        let at = if usize::from(self.count) < POINTS {
            self.count += 1;
            self.place(self.count - 1)
        } else {
            newest
        };
        (self.ends[at], self.times[at]) = (end, t);
    }

    /// Where data ends that is acknowledged up to `seq`: a FIN behind it takes a number and is no data (RFC 9293, 3.4).
    pub(crate) fn without_fin(&self, seq: Seq) -> Seq {
        if seq.minus(self.last.0) == 1 { self.last.0 } else { seq }
    }

    /// When the byte before `seq` left; what lies before it is asked for no more.
    #[inline]
    pub(crate) fn of(&mut self, seq: Seq) -> Option<Nanos> {
        while self.count >= 2 && !self.ends[self.place(1)].after(seq) {
            self.first = self.first.wrapping_add(1) % POINTS as u8;
            self.count -= 1;
        }
        self.between(0, seq)
    }

    /// The same, of any byte in flight.
    pub(crate) fn at(&self, seq: Seq) -> Option<Nanos> {
        let n = (0..self.count).rev().find(|&n| !self.ends[self.place(n)].after(seq))?;
        self.between(n, seq)
    }

    /// When the byte before `seq` left, which lies behind the point `n` and before the next.
    fn between(&self, n: u8, seq: Seq) -> Option<Nanos> {
        let at = self.place(n);
        let into = seq.minus(self.ends[at]);
        if self.count == 0 || into < 0 {
            return None;
        }
        if into == 0 {
            return Some(self.times[at]);
        }
        let next = self.place(n.wrapping_add(1));
        let (end, time) =
            if n.wrapping_add(1) >= self.count { self.last } else { (self.ends[next], self.times[next]) };
        if seq.after(end) {
            return None;
        }
        let between = f64::from(end.minus(self.ends[at]).max(1));
        let took = (time - self.times[at]).0 as f64;
        Some(self.times[at] + Nanos((took * f64::from(into) / between) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> Nanos = Nanos::millis;

    #[test]
    fn what_lies_between_two_points_left_between_them() {
        let mut left = Departures::new();
        assert_eq!(left.of(Seq(1)), None);
        left.push(Seq(1_000), MS(1), 16_000);
        // Less than a sixteenth of the flight behind.
        left.push(Seq(1_999), MS(2), 16_000);
        left.push(Seq(3_000), MS(5), 16_000);
        // Nothing is dropped by asking so, in whatever order.
        let at = [2_500, 1_000, 2_000, 999, 3_001].map(|n| left.at(Seq(n)));
        assert_eq!(at, [Some(MS(4)), Some(MS(1)), Some(MS(3)), None, None]);
        assert_eq!(left.of(Seq(999)), None);
        assert_eq!([1_000, 2_000, 3_000].map(|n| left.of(Seq(n))), [MS(1), MS(3), MS(5)].map(Some));
        // What did not pass has not left; what lies before is gone.
        assert_eq!([3_001, 2_000].map(|n| left.of(Seq(n))), [None, None]);
        // The last that passed, though it is no point.
        left.push(Seq(3_400), MS(9), 16_000);
        assert_eq!([3_200, 3_400, 3_401].map(|n| left.of(Seq(n))), [Some(MS(7)), Some(MS(9)), None]);
    }

    #[test]
    fn more_points_than_there_is_room_for_move_the_last() {
        let mut left = Departures::new();
        for n in 0..40 {
            left.push(Seq(100 * n), MS(i64::from(n)), 0);
        }
        assert_eq!(left.of(Seq(3_000)), Some(MS(30)));
        assert_eq!(left.of(Seq(3_900)), Some(MS(39)));
        assert_eq!(left.of(Seq(3_500)), None);
    }
}
