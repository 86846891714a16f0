//! What the other end says of one end's data: ACKs, windows, SACK blocks.

use crate::profile::delayed_from;
use crate::track::acks::{Ack, UNKNOWN};
use crate::track::crowd::Mark;
use crate::track::half::{AckSeen, Half, Reading, View};
use crate::track::rate::{Left, SHORTEST_PAUSE, train_pause};
use crate::track::recovery::{Recovered, Repair};
use tcpwhy_base::{Nanos, Segment, Seq};

/// What the peer says of its data.
impl Half {
    /// Takes the acknowledgement in a segment of the peer.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, segment: &Segment, t: Nanos, reading: &Reading) -> AckSeen {
        let mut seen = AckSeen::default();
        let ack = segment.ack;
        if !self.flow.acked {
            self.first_ack(ack);
        }
        let shift = reading.shift;
        let flow = &mut self.flow;
        flow.raw_window = flow.raw_window.max(segment.window);
        // Without the scale only a closed window is known for what it is.
        let window = match shift {
            Some(shift) => u32::from(segment.window) << shift.min(14),
            None if segment.window == 0 => 0,
            None => UNKNOWN,
        };
        let edge = ack + window;
        // What a probe of the tail repairs has nothing behind it, unless a SACK block says so.
        let hole = !self.holes.is_empty()
            || flow.has_hole
            || flow.repair().is_some_and(|repair| repair != Repair::Probe)
            || self.holes.filled_within(flow.una, ack);
        if self.edge_unscaled && shift.is_some() {
            // The scale has become known.
            flow.edge_known = false;
            self.edge_unscaled = false;
        }
        let una_before = flow.una;
        let (edge_before, window_before) = (flow.edge, flow.window);
        let advance = ack.after(flow.una);
        if advance {
            self.advance(ack, t, &mut seen);
        }
        let flow = &mut self.flow;
        if ack.after(flow.nxt) {
            // Acknowledged but not seen: lost by the capture, unless it still comes (two taps out of order).
            self.holes.open(flow.nxt, ack, t, None);
            flow.nxt = ack;
        }
        // A window of nothing ends at the ACK, whatever its scale.
        let shut = shift.is_none() && window == 0 && !ack.before(una_before);
        let update = edge.after(flow.edge) || !flow.edge_known || shut;
        let pure = segment.len == 0 && !segment.flags.fin();
        self.signs_of_loss(segment, t, advance, pure && window == window_before, &mut seen);
        let flow = &mut self.flow;
        if flow.seen && (advance || update || window != flow.window) {
            let mut event = Ack::new(t, segment.frame, pure, hole, seen.delay);
            event.ack = ack;
            event.una_before = una_before;
            event.edge = edge;
            event.edge_before = if flow.edge_known { edge_before } else { edge };
            event.window_before = if flow.edge_known { window_before } else { window };
            event.cwnd = flow.cwnd.estimate;
            event.stamp = segment.options.timestamps.filter(|_| reading.echoed).map(|t| t.0);
            self.acks.push(event, reading.horizon);
        }
        if update {
            if flow.edge_known && shift.is_some() {
                let before = flow.edge;
                self.moves(before, t);
            }
            self.flow.edge = edge;
            self.edge_unscaled = shift.is_none();
        }
        if window != self.flow.window {
            let before = if self.flow.edge_known { window_before } else { window };
            self.acks.window_changes(t, before, window);
        }
        self.flow.edge_known = true;
        self.flow.window = window;
        seen
    }

    fn first_ack(&mut self, ack: Seq) {
        let flow = &mut self.flow;
        flow.acked = true;
        if !flow.seen {
            flow.una = ack;
            self.start_at(ack);
        } else if ack.before(flow.base) || ack.after(flow.nxt) {
            flow.una = ack;
        }
    }

    #[inline(always)]
    fn advance(&mut self, ack: Seq, t: Nanos, seen: &mut AckSeen) {
        let flow = &mut self.flow;
        seen.advance = ack.minus(flow.una) as u32;
        flow.una = ack;
        flow.last_advance = Some(t);
        if self.full_sent && !ack.before(self.full_end) {
            self.full_delivered = true;
        }
        flow.dup_acks = 0;
        if let Some(sent) = self.sends.time_of(ack) {
            seen.delay = Some(t - sent);
        }
        if !self.holes.is_empty() {
            seen.lost_by_capture = self.holes.acknowledged(ack);
        }
    }

    /// Duplicate ACKs and SACK blocks: what came beyond a hole, and what came twice. `plain`: neither payload
    /// nor another window.
    #[inline(always)]
    fn signs_of_loss(&mut self, segment: &Segment, t: Nanos, advance: bool, plain: bool, seen: &mut AckSeen) {
        let flow = &mut self.flow;
        let ack = segment.ack;
        if plain && !advance && ack == flow.una && flow.edge_known && flow.nxt.after(flow.una) {
            flow.dup_acks = flow.dup_acks.saturating_add(1);
            flow.sign(t);
        }
        if segment.options.sack_len > 0 {
            let (left, right) = segment.options.sack[0];
            let below = left.before(ack);
            let inside = segment.options.sack_len > 1 && {
                let (l2, r2) = segment.options.sack[1];
                l2.at_or_before(left) && right.at_or_before(r2)
            };
            if below || inside {
                seen.dsack = Some((left, right));
            } else {
                flow.sign(t);
            }
        } else if advance && flow.recovery.is_none() {
            flow.has_hole = false;
        }
    }

    /// A duplicate was reported: the retransmission of that range was spurious. Gives its length if no
    /// recovery goes on.
    pub(crate) fn on_dsack(&mut self, left: Seq, right: Seq) -> Option<u32> {
        match self.flow.recovery.as_deref_mut() {
            Some(recovery) => {
                recovery.reported(left, right);
                None
            }
            None => Some(right.minus(left).max(0) as u32),
        }
    }

    /// An ACK for `advance` bytes more: the rate and the windows that it tells of. `stamp` is its sender's time stamp.
    #[inline(always)]
    pub(crate) fn after_advance(
        &mut self,
        advance: u32,
        t: Nanos,
        stamp: Option<u32>,
        initial: u32,
        view: &View,
    ) {
        let in_flight = self.flow.outstanding() + advance;
        if view.near {
            let gap = t - self.rate.last();
            let unread = gap > SHORTEST_PAUSE && self.was_read_late(gap, view);
            if unread {
                self.crowd.forget();
            }
            self.crowd.acknowledged(self.flow.una, t, in_flight, self.flow.mss);
            // Of what stands in a queue before the tap that has told.
            if !self.rate.stands() {
                let slow =
                    gap > view.train_pause && !unread && self.spread_by_link(advance, in_flight, t, view);
                let left = self.left_beside(t, view);
                let pause = match (unread, slow) {
                    (true, _) => Nanos::ZERO,
                    (_, true) => Nanos::MAX,
                    _ => view.train_pause,
                };
                self.rate.pass(t, advance, pause, left);
                if self.flow.cwnd.has_lost() {
                    self.rate.reduces();
                }
            }
            self.flow.paced = self.rate.is_paced();
        } else if let Some(stamp) = stamp {
            self.crowd.asked(Mark::Stamp(stamp), t);
        }
        let flow = &mut self.flow;
        let flight = if view.near { in_flight } else { in_flight.max(flow.flight_by_rounds()) };
        let initial = initial * flow.mss.max(1);
        flow.cwnd.acknowledged(advance, flight, initial, flow.recovery.is_some(), view.near);
    }

    /// The ACK that just came, so long after the one before it, waited for a reader and not on the path (rule
    /// 86). Behind a loss it waited for that; but a probe of the tail is sent because of such a wait.
    #[cold]
    fn was_read_late(&self, gap: Nanos, view: &View) -> bool {
        let flow = &self.flow;
        let probed = matches!(flow.repair(), None | Some(Repair::Probe));
        let sure = view.rtt > Nanos::ZERO && probed && !flow.has_hole;
        let now = self.acks.newest_first().next();
        sure && gap > train_pause(Some(view.rtt), Nanos::ZERO)
            && now.is_some_and(|now| self.acks.is_read_late(now, flow.mss))
    }

    /// When what was just acknowledged had left; an eighth of the round trip is jitter.
    #[inline]
    fn left_beside(&mut self, t: Nanos, view: &View) -> Option<Left> {
        let (una, packed) = (self.flow.una, self.is_packed(t, view));
        if self.flow.recovery.is_some() || self.flow.has_hole {
            return None;
        }
        let leaving = self.rate.leaving()?;
        let una = leaving.departures.without_fin(una);
        if !packed && leaving.written.is_none_or(|written| una.after(written)) {
            return None;
        }
        let at = leaving.departures.of(una)?;
        Some(Left { at, queued: t - at - view.peer_reaction - view.rtt.part(8), tick: Nanos::ZERO })
    }

    /// The ACK before this one, and this one, are of segments that left together, so that the link set them
    /// apart; or it comes as evenly behind such (rule 82). Not if a timer of the receiver may have made it
    /// late: that acknowledges less than two full segments.
    #[cold]
    fn spread_by_link(&self, advance: u32, in_flight: u32, t: Nanos, view: &View) -> bool {
        let flow = &self.flow;
        let mss = flow.mss.max(1);
        let together = self.some_together
            && !flow.una.after(self.together)
            && flow.flight_start.is_some_and(|start| self.rate.last() > start);
        let gap = t - self.rate.last();
        // Behind another one in the queue it took the trip and that one's time on the link.
        let queued = || match self.sends.time_of(flow.una) {
            Some(sent) => t - sent > view.rtt + gap.times(3).part(4),
            None => flow.outstanding() >= 8 * mss,
        };
        let even = self.rate.is_running() && self.rate.is_even(t) && in_flight >= 2 * mss && queued();
        let prompt = advance >= 2 * mss || gap < delayed_from(view.rtt);
        flow.recovery.is_none() && !flow.has_hole && (even || together && prompt)
    }

    /// What the acknowledgement of more bytes says of a recovery: another name for its losses, and whether it
    /// is over. `pure`: it came without data.
    pub(crate) fn recovers(
        &mut self,
        t: Nanos,
        view: &View,
        pure: bool,
    ) -> (Option<Repair>, Option<Recovered>) {
        let flow = &mut self.flow;
        let Some(recovery) = flow.recovery.as_mut() else {
            self.sends.alone = if pure { 0 } else { self.sends.alone };
            return (None, None);
        };
        let renamed = recovery.came_through(flow.una, flow.mss);
        let ended = recovery.ended(flow.una, t, flow.has_hole, view.soonest_answer());
        if ended.is_some() {
            flow.recovery = None;
            flow.has_hole = false;
        }
        (renamed, ended)
    }
}
