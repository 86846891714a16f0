//! The same as `sent` and `heard` where nothing is odd (see `track/calm`).

use super::{AckSeen, Half};
use crate::track::acks::Ack;
use crate::track::passage::Before;
use tcpwhy_base::{Nanos, Segment};

/// How such an acknowledgement is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calm {
    /// The scale of its window.
    pub(crate) shift: u8,
    /// How far back ACKs must be known.
    pub(crate) horizon: Nanos,
    /// Its time stamp will be echoed by whatever is sent after it came.
    pub(crate) echoed: bool,
}

impl Half {
    /// Its numbers and its window are known, nothing of it is missing, and none of it is being sent again.
    pub(crate) fn is_calm(&self) -> bool {
        let flow = &self.flow;
        flow.seen
            && flow.acked
            && flow.edge_known
            && flow.mss > 0
            && flow.recovery.is_none()
            && !flow.has_hole
            && flow.dup_acks == 0
            && self.holes.is_empty()
            && !self.edge_unscaled
            && self.scale.is_none()
    }

    /// The next bytes of it within the window, behind others; or none.
    #[inline(always)]
    pub(crate) fn takes_calmly(&self, segment: &Segment) -> bool {
        let flow = &self.flow;
        let within = segment.len <= flow.edge.minus(segment.seq).max(0) as u32;
        segment.seq == flow.nxt && (segment.len == 0 || within && self.counts.bytes > 0)
    }

    /// A part of what is in flight, or all, or with data none of it.
    #[inline(always)]
    pub(crate) fn is_acknowledged_calmly(&self, segment: &Segment) -> bool {
        let flow = &self.flow;
        let (advance, flight) = (segment.ack.minus(flow.una), flow.nxt.minus(flow.una));
        (i32::from(segment.len == 0)..=flight).contains(&advance)
    }

    /// What [`Half::on_ack`] does.
    #[inline(always)]
    pub(crate) fn on_calm_ack(&mut self, segment: &Segment, t: Nanos, reading: &Calm) -> AckSeen {
        let mut seen = AckSeen::default();
        let ack = segment.ack;
        let flow = &mut self.flow;
        flow.raw_window = flow.raw_window.max(segment.window);
        let window = u32::from(segment.window) << reading.shift.min(14);
        let edge = ack + window;
        let una_before = flow.una;
        let (edge_before, window_before) = (flow.edge, flow.window);
        let cwnd = flow.cwnd.estimate;
        seen.advance = ack.minus(una_before) as u32;
        if seen.advance > 0 {
            flow.una = ack;
            flow.last_advance = Some(t);
            if self.full_sent && !ack.before(self.full_end) {
                self.full_delivered = true;
            }
            seen.delay = self.sends.time_of(ack).map(|sent| t - sent);
        }
        let update = edge.after(edge_before);
        if seen.advance > 0 || update || window != window_before {
            let hole = self.holes.filled_within(una_before, ack);
            let mut event = Ack::new(t, segment.frame, segment.len == 0, hole, seen.delay);
            event.ack = ack;
            event.una_before = una_before;
            event.edge = edge;
            event.edge_before = edge_before;
            event.window_before = window_before;
            event.cwnd = cwnd;
            event.stamp = segment.options.timestamps.filter(|_| reading.echoed).map(|t| t.0);
            self.acks.push(event, reading.horizon);
        }
        if update {
            self.moves(edge_before, t);
            self.flow.edge = edge;
        }
        if window != window_before {
            self.flow.window = window;
            self.acks.window_changes(t, window_before, window);
        }
        seen
    }

    /// What [`Half::recovers`] does: there is nothing to recover from.
    #[inline(always)]
    pub(crate) fn is_not_alone(&mut self, pure: bool) {
        if pure {
            self.sends.alone = 0;
        }
    }

    /// What [`Half::on_data`] does, with what was known before.
    #[inline(always)]
    pub(crate) fn on_calm_data(&mut self, segment: &Segment, t: Nanos) -> Before {
        let end = segment.seq + segment.len;
        let flow = &mut self.flow;
        let before = Before { nxt: flow.nxt, small_end: flow.small_end };
        if flow.nxt == flow.una {
            flow.flight_start = Some(t);
        }
        if segment.len >= flow.mss && !self.full_sent {
            (self.full_end, self.full_sent) = (end, true);
        }
        flow.nxt = end;
        self.counts.bytes += u64::from(segment.len);
        self.learn_size(segment.len, segment.flags.psh());
        self.sends.push(end, t);
        if self.flow.is_small(segment.len) {
            self.ends_small(end);
        }
        before
    }
}
