//! What is known of one direction of a connection: plain figures, written by `half` alone and read by everybody.

use crate::profile::Profile;
use crate::rest::{Edge, Flight, Size, at_rest};
use crate::track::beginning::Beginning;
use crate::track::last::Last;
use crate::track::numbering::Numbering;
use crate::track::recovery::{Recovery, Repair, TooLarge};
use tcpwhy_base::{Nanos, Segment, Seq};

/// Whatever is shorter is no full segment: the MSS of who was told none (RFC 9293, 3.7.1).
pub(crate) const LEAST_MSS: u32 = 536;

/// One end as a sender, and the window that its peer offers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// Its sequence space is known; its peer acknowledged something.
    pub(crate) seen: bool,
    pub(crate) acked: bool,
    /// First sequence number of payload.
    pub(crate) base: Seq,
    /// Highest sequence number seen, and highest acknowledged.
    pub(crate) nxt: Seq,
    pub(crate) una: Seq,
    /// Right edge that the peer offers.
    pub(crate) edge: Seq,
    pub(crate) edge_known: bool,
    /// The peer's window as last said, scaled.
    pub(crate) window: u32,
    /// The largest that was offered, as it stood in the header, before scaling.
    pub(crate) raw_window: u16,
    /// Largest payload in one packet on the wire that counts as full.
    pub(crate) mss: u32,
    /// End of the last segment that was not full (the kernel's snd_sml).
    pub(crate) small_end: Seq,
    /// The last data segment.
    pub(crate) last: Option<Last>,
    /// When the flight in progress began, and when `una` last moved.
    pub(crate) flight_start: Option<Nanos>,
    pub(crate) last_advance: Option<Nanos>,
    /// First duplicate ACK or SACK of the latest hole, or zero, whether it is still open at the tap, and how many of the
    /// former came since the last advance.
    pub(crate) signed: Nanos,
    pub(crate) has_hole: bool,
    pub(crate) dup_acks: u16,
    /// How long after the first of them the last one came, microseconds.
    pub(crate) signs_us: u32,
    pub(crate) recovery: Option<Box<Recovery>>,
    pub(crate) cwnd: Cwnd,
    pub(crate) rtt: RttSamples,
    pub(crate) round: Round,
    /// How the first round trip of its message went.
    pub(crate) beginning: Beginning,
    /// The numbers of its packets: whether one that is missing shows.
    pub(crate) numbering: Numbering,
    /// It has probed a shut window since its last data segment: more was written, and waits for the reader (rule 57).
    pub(crate) probed: bool,
    /// When the last packet of several whole segments passed that had PSH, which Linux sets on each such
    /// (rule 87); far ahead while its message is known to have been set apart by its sender (rule 116).
    pub(crate) packed: Option<Nanos>,
    /// Its packets pass as far apart as they left, and no queue stood: no link set them apart (rule 87).
    pub(crate) paced: bool,
    /// Its stack does not echo the stamps of pure ACKs (RFC 1323, 3.4; RFC 7323, 4.3 has it otherwise).
    pub(crate) ignores_acks: bool,
    /// A router said of one of its segments that it was too large, and which.
    pub(crate) too_big: Option<Box<TooLarge>>,
}

at_rest! {
    Flow {
        seen, acked, base, nxt, una, edge as Edge, edge_known, window as Size, raw_window, mss, small_end,
        last, flight_start, last_advance, signed, has_hole, dup_acks, signs_us, recovery, cwnd, rtt, round, beginning,
        numbering, probed, packed, paced, ignores_acks, too_big,
    }
}

impl Flow {
    /// Bytes sent and not acknowledged, as far as the tap saw.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        if self.acked { self.nxt.minus(self.una).max(0) as u32 } else { 0 }
    }

    /// The segment's last packet is smaller than the MSS (super-segments count by their tail).
    #[inline]
    pub(crate) fn is_small(&self, len: u32) -> bool {
        // Most are as long as the MSS, which needs no division.
        self.mss > 0 && len > 0 && len != self.mss && !len.is_multiple_of(self.mss)
    }

    /// A write ends with it. Of several full segments that left as one packet Linux sets PSH on the last
    /// wherever the write ends (rule 87), so that a request of 16 KB has it several times.
    #[inline]
    pub(crate) fn ends_a_write(&self, segment: &Segment) -> bool {
        segment.flags.psh() && (segment.len < LEAST_MSS || self.is_small(segment.len))
    }

    /// Payload of the last data segment.
    pub(crate) fn last_len(&self) -> u32 {
        self.last.map_or(0, |l| l.len)
    }

    /// Since the last data segment; all of time if there was none.
    pub(crate) fn quiet_at(&self, t: Nanos) -> Nanos {
        self.last.map_or(Nanos::MAX, |l| t - l.time)
    }

    /// What the kernel knows of the window: `None` while no ACK has told.
    pub(crate) fn is_shut(&self) -> bool {
        let small = self.mss.max(1);
        self.edge_known && self.window < small && self.edge.minus(self.nxt) < small as i32
    }

    /// Bytes in flight as ACKs near the receiver cannot show them: those of a round trip.
    pub(crate) fn flight_by_rounds(&self) -> u32 {
        self.round.largest()
    }

    /// The retransmission timeout as the profile's stack would compute it.
    pub(crate) fn rto(&self, base_rtt: Nanos, profile: &Profile) -> Nanos {
        let (srtt, var) = self.rtt.smoothed.unwrap_or((base_rtt, base_rtt.part(2)));
        srtt + var.times(4).max(profile.rto_floor)
    }

    /// The smoothed round trip.
    pub(crate) fn srtt(&self, base_rtt: Nanos) -> Nanos {
        self.rtt.smoothed.map_or(base_rtt, |s| s.0)
    }

    /// This segment sends again what a router said was too large, or what lies before that: what nobody has
    /// acknowledged.
    #[inline]
    pub(crate) fn was_too_large(&self, segment: &Segment) -> Option<&TooLarge> {
        let told = self.too_big.as_deref()?;
        (!told.seq.before(self.una) && !segment.seq.after(told.seq)).then_some(told)
    }

    /// The first and the last sign of the latest hole, duplicate ACKs and SACK blocks: what is closed at the tap still
    /// lets go what has not passed yet.
    pub(crate) fn signs(&self) -> Option<(Nanos, Nanos)> {
        let last = || self.signed + Nanos::micros(i64::from(self.signs_us));
        (self.signed > Nanos::ZERO).then(|| (self.signed, last()))
    }

    /// The first sign of a hole that is open.
    #[inline]
    pub(crate) fn first_sack(&self) -> Option<Nanos> {
        self.has_hole.then_some(self.signed)
    }

    /// One more of them.
    #[cold]
    #[inline(never)]
    pub(crate) fn sign(&mut self, t: Nanos) {
        if !std::mem::replace(&mut self.has_hole, true) {
            self.signed = t;
        }
        self.signs_us = u32::try_from((t - self.signed).0 / 1_000).unwrap_or(u32::MAX);
    }

    /// How its losses are being repaired, if they are.
    pub(crate) fn repair(&self) -> Option<Repair> {
        self.recovery.as_ref().map(|r| r.kind)
    }
}

impl Last {
    // In place: through memory its narrow fields would be read back together, which waits until they are all
    // in the cache.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "else it is handed over in memory")]
    pub(crate) fn of(segment: &Segment, t: Nanos, flow: &Flow) -> Last {
        let (len, mss, psh) = (segment.len, flow.mss, segment.flags.psh());
        let several = || len > mss || flow.last.is_some_and(|l| !l.psh && l.len == mss);
        Last {
            time: t,
            len,
            end: flow.nxt,
            psh,
            skipped: 0,
            whole: psh && mss > 0 && several() && len.is_multiple_of(mss),
            una: flow.una,
            stamp: segment.options.timestamps.map(|t| t.0),
        }
    }
}

/// Round trips of one sender (RFC 6298).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttSamples {
    /// Smoothed round trip and variance.
    smoothed: Option<(Nanos, Nanos)>,
    /// The last sample: when, and how long.
    pub(crate) last: Option<(Nanos, Nanos)>,
}

at_rest! { RttSamples { smoothed, last } }

impl RttSamples {
    /// Takes a sample (RFC 6298, 2).
    #[inline]
    pub(crate) fn take(&mut self, rtt: Nanos, t: Nanos) {
        if rtt <= Nanos::ZERO {
            return;
        }
        self.last = Some((t, rtt));
        let (srtt, var) = match self.smoothed {
            None => (rtt, rtt.part(2)),
            Some((srtt, var)) => {
                let error = rtt - srtt;
                (srtt + error.part(8), var + (Nanos(error.0.abs()) - var).part(4))
            }
        };
        self.smoothed = Some((srtt, var));
    }
}

/// Bytes within one base round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    start: Option<Nanos>,
    bytes: u32,
    /// Of the one before.
    before: u32,
}

at_rest! { Round { start, bytes, before } }

impl Round {
    /// `bytes` passed; a round takes `length`.
    #[inline]
    pub(crate) fn pass(&mut self, t: Nanos, bytes: u32, length: Nanos) {
        if self.start.is_none_or(|start| t - start >= length) {
            *self = Round { start: Some(t), bytes, before: self.bytes };
        } else {
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    /// The larger of this one and the one before.
    #[inline]
    pub(crate) fn largest(&self) -> u32 {
        self.bytes.max(self.before)
    }
}

/// What is known of the congestion window during a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CwndState {
    Growing,
    /// Below its value before an idle time.
    Restarted,
    /// The same behind a loss, which has ended slow start for good.
    RestartedAfterLoss,
    /// Below its value before a loss.
    AfterLoss,
    /// Back where it was before a loss.
    Avoiding,
}

at_rest! { enum CwndState { Growing, Restarted, RestartedAfterLoss, AfterLoss, Avoiding } }

/// What is known of the congestion window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cwnd {
    /// Bytes the sender may have in flight, followed by Linux' slow-start rule; a lower bound.
    pub(crate) estimate: u32,
    /// Estimate before the last idle reset, while that is in force.
    before_idle: u32,
    /// Flight when the last loss was found, while the window is below it.
    before_loss: u32,
    /// After an idle time the most that it can let fly until the first ACK; else zero.
    restarted: u32,
    /// A loss has ended slow start.
    lost: bool,
    /// Most bytes in flight since the last loss was repaired, seen from afar the latest flight that an ACK
    /// let go on: what flew before says nothing of the window that the loss left.
    since_loss: u32,
    /// An idle time does not make it smaller (`tcp_slow_start_after_idle`): more flew after one than that
    /// would have left.
    kept: bool,
    /// Most bytes in flight.
    pub(crate) max_flight: u32,
    /// The first flight that waited for an ACK.
    pub(crate) initial: u32,
}

at_rest! {
    Cwnd {
        estimate as Flight, before_idle, before_loss, restarted, lost, since_loss, kept, max_flight, initial,
    }
}

impl Cwnd {
    pub(crate) fn state(&self) -> CwndState {
        // An idle time after a loss takes the window that the loss had left.
        if self.before_idle > 0 {
            if self.lost { CwndState::RestartedAfterLoss } else { CwndState::Restarted }
        } else if self.before_loss > 0 {
            CwndState::AfterLoss
        } else if self.lost {
            CwndState::Avoiding
        } else {
            CwndState::Growing
        }
    }

    /// What flew before the loss or idle time that made it smaller.
    pub(crate) fn before(&self) -> u32 {
        self.before_loss.max(self.before_idle)
    }

    /// An ACK for `advance` bytes came, with so many in flight before it.
    #[inline]
    pub(crate) fn acknowledged(
        &mut self,
        advance: u32,
        flight_before: u32,
        initial: u32,
        recovering: bool,
        near: bool,
    ) {
        if self.estimate == 0 {
            self.estimate = initial;
        }
        self.restarted = 0;
        // What this ACK releases waited for the window as it was before.
        if self.before_idle > 0 && self.estimate >= self.before_idle {
            self.before_idle = 0;
        }
        // The flight is back: from here on the loss explains no wait (rule 14).
        if !recovering && flight_before >= self.before_loss {
            self.before_loss = 0;
        }
        // Linux grows the window in slow start while more than half of it is in use (tcp_is_cwnd_limited).
        // After an idle time only what flew shows how far it has grown back.
        if !self.lost && self.before_idle == 0 && flight_before >= self.estimate / 2 {
            self.estimate = self.estimate.saturating_add(advance);
        }
        // What flies is allowed, whatever the window grows by after a loss.
        if !recovering {
            self.estimate = self.estimate.max(flight_before);
            if near && self.lost {
                self.flew(flight_before);
            }
        }
    }

    /// The sender was idle for so many timeouts: it begins again with what it began with, `initial` bytes or
    /// fewer segments that waited for an ACK at first (`initcwnd` of a route, other stacks), or with a window
    /// that was halved for each of them (`tcp_cwnd_restart`), and had grown by no more than all that was
    /// `sent`.
    pub(crate) fn idle(&mut self, initial: u32, mss: u32, timeouts: u32, sent: u64) {
        let fewer = self.initial > 0 && self.initial < initial && self.initial.is_multiple_of(mss.max(1));
        let begins = if fewer { self.initial } else { initial };
        let had = if self.since_loss > 0 { self.since_loss } else { self.estimate };
        if had > begins && !self.kept {
            self.before_idle = self.before_idle.max(had);
            let largest = u32::try_from(sent).unwrap_or(u32::MAX).saturating_add(initial);
            // A writer may have had no more at first: what shows that nothing is restarted goes by the larger one.
            self.restarted = initial.max(largest >> timeouts.min(31));
            self.estimate = begins;
        }
    }

    /// So many bytes are in flight: if that is more than a segment above what the idle time can have left,
    /// there was no restart (rule 55).
    #[inline]
    pub(crate) fn flies(&mut self, bytes: u32, mss: u32) {
        self.max_flight = self.max_flight.max(bytes);
        if self.restarted > 0 && bytes > self.restarted.saturating_add(mss) {
            self.kept = true;
            self.estimate = self.before_idle.max(bytes);
            self.before_idle = 0;
            self.restarted = 0;
        }
    }

    /// Behind a loss so many bytes were in flight: if that is as much as before the idle time, it was the
    /// loss that left so small a window.
    fn flew(&mut self, bytes: u32) {
        self.since_loss = self.since_loss.max(bytes);
        if bytes >= self.before_idle {
            self.before_idle = 0;
        }
    }

    /// The same from afar, where an ACK let a segment go. What was repaired meanwhile is counted twice in
    /// such a flight, until the next one.
    pub(crate) fn flew_afar(&mut self, bytes: u32) {
        if self.lost {
            self.since_loss = 0;
            self.flew(bytes);
        }
    }

    /// A loss before the tap was repaired, with so many bytes in flight.
    pub(crate) fn lost_before_tap(&mut self, flight: u32) {
        self.before_loss = self.before_loss.max(flight);
        self.lost = true;
        self.before_idle = 0;
        self.since_loss = 0;
    }

    /// A loss has made it smaller.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        self.lost
    }

    /// A loss was found with so many bytes in flight.
    pub(crate) fn lost(&mut self, flight: u32) {
        self.before_loss = self.before_loss.max(flight);
        self.lost = true;
        self.estimate = self.estimate.min(flight);
        self.before_idle = 0;
        self.since_loss = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::TcpFlags;

    #[test]
    fn where_writes_end() {
        let ends = |mss: u32, len: u32, flags: u16| {
            let flow = Flow { mss, ..Flow::default() };
            flow.ends_a_write(&Segment { len, flags: TcpFlags(flags), ..Segment::EMPTY })
        };
        let pushed = TcpFlags::ACK | TcpFlags::PSH;
        assert!(ends(1_448, 100, pushed) && !ends(1_448, 100, TcpFlags::ACK));
        // In the middle of a write, or at its end by chance; behind two full ones.
        assert!(!ends(1_448, 1_448, pushed) && !ends(1_448, 2 * 1_448, pushed) && ends(1_448, 3_000, pushed));
        // All that was seen of a connection were requests of one size: that is no maximum.
        assert!(ends(100, 100, pushed) && !ends(536, 536, pushed));
    }
}
