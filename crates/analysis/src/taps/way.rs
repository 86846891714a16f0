//! The packets of one direction between two taps: which of them never arrived.

use crate::rest::at_rest;
use crate::result::Lost;
use std::collections::VecDeque;
use tcpwhy_base::{End, Nanos, Segment, Seq, TcpFlags};

/// Packets on their way at once; beyond this the oldest are given up.
const MOST_ON_THE_WAY: usize = 4_096;
/// The same before the other tap was heard of this connection.
const MOST_UNHEARD: usize = 64;
/// A packet that is later than this does not come any more.
const LATEST: Nanos = Nanos::secs(10);
/// Losses that are named one by one, of a connection.
const MOST_NAMED: usize = 100;

/// What tells a packet from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    seq: Seq,
    ack: Seq,
    len: u32,
    flags: u16,
    stamps: Option<(u32, u32)>,
}

at_rest! { Mark { seq, ack, len, flags, stamps } }

impl Mark {
    fn of(segment: &Segment) -> Mark {
        // Marks of congestion are set on the way.
        let flags = segment.flags.0 & !(TcpFlags::ECE | TcpFlags::CWR);
        let Segment { seq, ack, len, .. } = *segment;
        Mark { seq, ack, len, flags, stamps: segment.options.timestamps }
    }
}

/// One direction.
#[derive(Clone, Debug)]
pub(super) struct Way {
    from: End,
    on_the_way: VecDeque<(Mark, Lost)>,
    pub(super) left: u64,
    pub(super) arrived: u64,
    pub(super) lost: u64,
    pub(super) lost_data: u64,
    pub(super) named: Vec<Lost>,
    /// When the last that arrived had left.
    last: Option<Nanos>,
    /// How long the last data was under way, and that before it; and the quickest of all.
    transit: Option<Nanos>,
    before: Option<Nanos>,
    quickest: Nanos,
}

at_rest! { Way { from, on_the_way, left, arrived, lost, lost_data, named, last, transit, before, quickest } }

impl Way {
    pub(super) fn new(from: End) -> Way {
        let on_the_way = VecDeque::new();
        Way {
            from,
            on_the_way,
            left: 0,
            arrived: 0,
            lost: 0,
            lost_data: 0,
            named: Vec::new(),
            last: None,
            transit: None,
            before: None,
            quickest: Nanos::MAX,
        }
    }

    /// A packet passed the tap of its sender. `heard`: the other tap has seen something of this connection.
    pub(super) fn leaves(&mut self, segment: &Segment, heard: bool) {
        self.left += 1;
        if self.is_hopeless() {
            self.on_the_way.clear();
            return;
        }
        let most = if heard { MOST_ON_THE_WAY } else { MOST_UNHEARD };
        let late = |l: &Lost| segment.time - l.time > LATEST;
        while self.on_the_way.len() >= most || self.on_the_way.front().is_some_and(|p| late(&p.1)) {
            let Some((_, lost)) = self.on_the_way.pop_front() else { break };
            self.give_up(lost);
        }
        let lost = Lost {
            from: self.from,
            time: segment.time,
            frame: segment.frame,
            bytes: segment.len,
            syn: segment.flags.syn(),
        };
        self.on_the_way.push_back((Mark::of(segment), lost));
    }

    /// An earlier copy of this data has not arrived.
    pub(super) fn lacks(&self, segment: &Segment) -> bool {
        self.on_the_way.iter().any(|(mark, lost)| mark.seq == segment.seq && lost.bytes > 0)
    }

    /// A packet passed the tap of its receiver.
    pub(super) fn arrives(&mut self, segment: &Segment) {
        let mark = Mark::of(segment);
        if segment.len > 0 {
            self.before = self.transit.take();
        }
        let Some(at) = self.on_the_way.iter().position(|p| p.0 == mark) else { return };
        let Some((_, packet)) = self.on_the_way.remove(at) else { return };
        self.arrived += 1;
        self.last = self.last.max(Some(packet.time));
        if segment.len > 0 {
            self.transit = Some(segment.time - packet.time);
            self.quickest = self.quickest.min(segment.time - packet.time);
        }
    }

    /// When the last data, which arrived at `t`, had left, and how much longer than the quickest it was under way.
    pub(super) fn left_at(&self, t: Nanos) -> Option<(Nanos, Nanos)> {
        let transit = self.transit?;
        Some((t - transit, transit - self.quickest))
    }

    /// Data beyond `nxt` that has not arrived: up to where, and since when it is on its way.
    pub(super) fn beyond(&self, nxt: Seq) -> Option<(Seq, Nanos)> {
        let data = |p: &&(Mark, Lost)| p.0.len > 0 && (p.0.seq + p.0.len).after(nxt);
        let mut missing = self.on_the_way.iter().filter(data);
        let (mark, first) = missing.next()?;
        let to = missing.map(|p| p.0.seq + p.0.len).fold(mark.seq + mark.len, Seq::max);
        Some((to, first.time))
    }

    /// The last data was so much longer under way than that before it.
    pub(super) fn later(&self) -> Option<Nanos> {
        Some(self.transit? - self.before?)
    }

    fn give_up(&mut self, lost: Lost) {
        self.lost += 1;
        self.lost_data += u64::from(lost.bytes > 0);
        if self.named.len() < MOST_NAMED {
            self.named.push(lost);
        }
    }

    /// The captures end at `end`: what left before others that arrived, or long ago, was lost.
    pub(super) fn end(&mut self, end: Nanos) {
        while let Some((_, packet)) = self.on_the_way.pop_front() {
            if self.last.is_some_and(|last| packet.time < last) || end - packet.time > Nanos::secs(1) {
                self.give_up(packet);
            } else {
                self.left -= 1;
            }
        }
    }

    /// Packets are joined or split on the way, so that hardly one is found again: looking for more would only
    /// take time.
    fn is_hopeless(&self) -> bool {
        self.lost > 4 * MOST_ON_THE_WAY as u64 && self.lost > 4 * self.arrived
    }

    /// Most packets were found again: nothing joins or splits them on the way.
    pub(super) fn is_comparable(&self) -> bool {
        self.arrived >= self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(n: u32, len: u32) -> Segment {
        let time = Nanos::micros(i64::from(n) * 10);
        Segment { seq: Seq(n * 1_000), len, time, frame: u64::from(n) + 1, ..Segment::EMPTY }
    }

    #[test]
    fn what_never_came_was_lost_and_the_last_is_not_known() {
        let mut way = Way::new(End::Client);
        for n in 0..10 {
            way.leaves(&packet(n, 100), true);
            if !matches!(n, 3 | 4 | 9) {
                way.arrives(&packet(n, 100));
            }
        }
        way.end(Nanos::millis(1));
        assert_eq!((way.left, way.arrived, way.lost, way.lost_data), (9, 7, 2, 2));
        assert_eq!(way.named.iter().map(|l| l.frame).collect::<Vec<_>>(), [4, 5]);
        assert!(way.is_comparable());
    }

    #[test]
    fn segments_that_are_joined_on_the_way_are_given_up() {
        let mut way = Way::new(End::Server);
        for n in 0..50_000 {
            way.leaves(&packet(n, 1_000), true);
            way.arrives(&packet(n, 2_000));
        }
        way.end(Nanos::secs(10));
        assert!(way.is_hopeless() && !way.is_comparable() && way.on_the_way.is_empty());
        assert!(way.named.len() <= MOST_NAMED);
    }
}
