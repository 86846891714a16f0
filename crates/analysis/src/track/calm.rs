//! Packets of a connection in which nothing is odd: they come in their order, all that was sent has passed or
//! will, and every scale is known. Nearly all packets are such, and most of what is asked of others need not
//! be asked of them. What is known afterwards is the same: tests run captures with and without this
//! (`Analyzer::by_the_long_way`).

use super::half::{Calm, Half};
use super::{Arrival, Arrived, Quality, Repeat, Tracker};
use crate::result::Closed;
use tcpwhy_base::{End, Nanos, Segment, TcpFlags};

impl Tracker {
    /// Looks whether the next packets may be calm, after one that was not, if short cuts are taken at all.
    pub(crate) fn look_whether_calm(&mut self, short_cuts: bool) {
        let handshake = &self.handshake;
        self.calm = short_cuts
            && self.half.iter().all(Half::is_calm)
            && self.scales.is_some()
            && self.closed == Closed::Open
            && !handshake.awaits_final_ack()
            && !handshake.has_two_beginnings()
            && self.half.client.fin().is_none();
    }

    /// This packet of `s`, before which none is missing, acknowledges what is in flight, in part or all; or
    /// it brings the next bytes within the window.
    #[inline(always)]
    pub(crate) fn is_calm(&self, s: End, segment: &Segment) -> bool {
        const ODD: u16 = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::CWR;
        let only_ack = segment.flags.0 & (TcpFlags::ACK | ODD) == TcpFlags::ACK;
        self.calm
            && only_ack
            && segment.window != 0
            && segment.options.sack_len == 0
            && self.half[s].takes_calmly(segment)
            && self.half[s.peer()].is_acknowledged_calmly(segment)
    }

    /// What [`Tracker::ack`] does for such a packet: there is no verdict of it.
    #[inline(always)]
    pub(crate) fn calm_ack(&mut self, s: End, segment: &Segment, t: Nanos) {
        let d = s.peer();
        let Some(scales) = self.scales else { return };
        let shift = scales[s];
        let reaction = self.reaction_or_zero(d);
        let (own, other) = self.half.pair_mut(s);
        own.offers(u32::from(segment.window) << shift);
        let echoed = segment.seq.at_or_before(own.flow().una);
        let horizon = reaction + reaction.part(4) + Nanos::millis(2);
        let seen = other.on_calm_ack(segment, t, &Calm { shift, horizon, echoed });
        if let Some(delay) = seen.delay {
            self.on_ack_delay(s, segment, t, delay);
        }
        if seen.advance > 0 {
            let view = self.view(d);
            let stamp = segment.options.timestamps.map(|t| t.0);
            let initial = self.profile[d].initial_window;
            let half = &mut self.half[d];
            half.after_advance(seen.advance, t, stamp, initial, &view);
            half.is_not_alone(segment.len == 0);
        }
    }

    /// What [`Tracker::data`] does for it.
    #[inline(always)]
    pub(crate) fn calm_data(&mut self, s: End, segment: &Segment, t: Nanos) -> Arrived {
        let view = self.view(s);
        let before = self.half[s].on_calm_data(segment, t);
        if segment.len > self.half[s].flow().mss {
            self.quality.set(Quality::OFFLOAD);
        }
        self.half[s].on_new_bytes(segment, t, &view);
        self.left_after_update(s, segment.seq + segment.len, t);
        Arrived { arrival: Arrival::New, new: segment.len, repeat: Repeat::Open, before }
    }
}
