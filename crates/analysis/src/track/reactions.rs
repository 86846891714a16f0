//! How soon each end reacts, as handshake, ACKs, time stamps and windows prove it (rules 43 and 44).

use super::half::Half;
use super::rate::train_pause;
use super::{PathView, Quality, Tracker};
use tcpwhy_base::{End, Nanos, Segment, Seq, TcpFlags};

/// What a trip to an end, and back, is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trip {
    /// That end has reacted without work.
    Shown,
    /// Answers only, each of which brought the ACK: it takes as long at most.
    WithAnswer,
    /// The same, but between hosts on one link: it is as short as that to the other end.
    OnOneLink,
}

/// Within this a kernel sends a delayed ACK, if no answer does before (`TCP_DELACK_MIN`, tcp.h); others have more.
const DELAYED: Nanos = Nanos::millis(40);

impl Tracker {
    /// What the time stamps of a packet of `s` prove: whether its stack echoes the stamps of pure ACKs (rule
    /// 43), and how soon it reacts (rule 44).
    #[inline(always)]
    pub(super) fn take_stamps(&mut self, s: End, segment: &Segment, stamp: u32, echo: u32) {
        if segment.flags.ack() {
            let stamps = &mut self.stamps[s.peer()];
            let after = stamps.echoed(echo, self.now);
            if stamps.tells_of_bare(echo) {
                self.half[s].ignores_acks(false);
            } else if stamps.waits_for_bare(echo) {
                let path = PathView::new(self.reaction[s], self.reaction[s.peer()]);
                if self.stamps[s.peer()].misses_bare(self.now, &path) {
                    self.half[s].ignores_acks(true);
                }
            }
            if let Some(after) = after {
                match self.reaction[s] {
                    None if self.half[s].may_be_timed(segment) => {}
                    None => self.reacts_alike(s, after, segment.len == 0),
                    // Mostly it was later than the soonest, which takes no more looking at.
                    Some(known) if after < known && self.would_refuse(s, after) => {
                        self.reacted_sooner(s, after, segment.len == 0)
                    }
                    Some(_) => {}
                }
            }
        }
        let carries = segment.len > 0 || segment.flags.has(TcpFlags::SYN | TcpFlags::FIN);
        self.stamps[s].sent(stamp, carries, self.now);
        if segment.flags.syn() {
            self.stamps[s].opens(stamp, self.now);
        }
    }

    /// A segment of `s` that left so soon after what released it would not be seen as released by it, with the reaction
    /// that is known.
    #[inline(always)]
    fn would_refuse(&self, s: End, after: Nanos) -> bool {
        let path = PathView::new(self.reaction[s], self.reaction[s.peer()]);
        path.reaction.is_some_and(|known| after < known - path.early())
    }

    /// New data of `s` up to `end`: where it lies beyond the right edge that was offered before an ACK came,
    /// it left after that (rule 44). An ACK that the capture lacks may have moved the edge before, so two
    /// must agree.
    #[inline(always)]
    pub(super) fn left_after_update(&mut self, s: End, end: Seq, t: Nanos) {
        let Some(after) = self.half[s].goes_beyond(end, t) else { return };
        if self.reaction[s].is_none() {
            self.reacts_alike(s, after, true);
            return;
        }
        if !self.would_refuse(s, after) || self.quality.has(Quality::CAPTURE_DROPS) {
            return;
        }
        match self.sooner[s].take() {
            Some(before) => self.reacted_sooner(s, after.max(before), true),
            None => self.sooner[s] = Some(after),
        }
    }

    /// Without a handshake, and in a transfer of one direction, only such bounds tell how soon it reacts.
    /// Nobody but a timer writes twice at the same time after an ACK, so two that agree within an eighth are
    /// its reaction.
    fn reacts_alike(&mut self, s: End, after: Nanos, bare: bool) {
        match self.sooner[s] {
            Some(before) if (after - before).0.abs() <= before.part(8).0 => {
                self.sooner[s] = None;
                self.reacted(s, after.min(before).max(Nanos(1)), bare);
            }
            _ => self.sooner[s] = Some(after),
        }
    }

    /// `bare`: without its program having had anything to do.
    pub(super) fn reacted(&mut self, s: End, after: Nanos, bare: bool) {
        self.reacts_within(s, self.reaction[s].map_or(after, |known| known.min(after)), bare);
    }

    /// The only writer of reactions.
    #[cold]
    pub(super) fn reacts_within(&mut self, s: End, time: Nanos, bare: bool) {
        // What came with an answer shows a shorter trip, or that the ACK without one had been delayed.
        let delayed = |known: Nanos| known >= DELAYED && time < known - known.part(8);
        let doubted = !self.handshake.is_seen() && self.reaction[s].is_some_and(delayed);
        self.bare[s] = bare || self.bare[s] && !doubted;
        self.reaction[s] = Some(time);
        self.pause = train_pause(self.rtt(), Nanos::ZERO);
    }

    /// An ACK without payload came no sooner than answers do: if it took as long, they did not wait for work.
    #[cold]
    pub(super) fn reacted_bare(&mut self, s: End, after: Nanos) {
        self.bare[s] = self.reaction[s].is_some_and(|known| after <= known + known.part(8));
    }

    /// The packets of both ends have passed no router, by what systems begin to count at (64: Linux, macOS, BSD; 128:
    /// Windows; 255: others).
    fn is_one_link(&self) -> bool {
        End::BOTH.into_iter().all(|s| matches!(self.copies.ttl(s), 64 | 128 | 255))
    }

    /// What a trip to `s` is known by. Answers that come later than a delayed ACK would are told of it by that.
    pub(crate) fn trip_to(&self, s: End) -> Trip {
        match (self.reaction[s], self.reaction[s.peer()]) {
            (Some(own), _) if self.bare[s] || own > DELAYED.times(2) => Trip::Shown,
            (Some(own), Some(peer)) if peer < own && own <= DELAYED && self.is_one_link() => Trip::OnOneLink,
            (Some(_), _) => Trip::WithAnswer,
            (None, _) => Trip::Shown,
        }
    }

    /// `s` was proved to react sooner than was known. With a shorter round trip a train of packets ends
    /// sooner, so the rates learnt until now are none.
    fn reacted_sooner(&mut self, s: End, after: Nanos, bare: bool) {
        self.reacted(s, after.max(Nanos(1)), bare);
        self.half.iter_mut().for_each(Half::forget_rate);
    }
}
