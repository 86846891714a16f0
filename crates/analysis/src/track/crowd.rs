//! The round trip of a flow with several segments in flight, which a queue on its path makes longer.

use crate::rest::at_rest;
use tcpwhy_base::{Nanos, Segment, Seq};

/// The round trip of a flow that keeps at least four segments in flight: with a queue on the path it is
/// longer than the base one. Measured once in each: near the sender from a segment to the ACK of it;
/// elsewhere from a time stamp that the receiver sent to the sender's echo of it (RFC 7323, 4.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crowd {
    /// Zero: not known, or fewer segments.
    rtt: Nanos,
    since: Nanos,
    /// The last data that passed.
    last: Nanos,
    echo: Option<Mark>,
    bytes: u32,
}

at_rest! { Crowd { rtt, since, last, echo, bytes } }

/// What a round trip is measured by: which of them changes when the tap turns out to be near the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// The end of a segment.
    End(Seq),
    /// A time stamp of the receiver.
    Stamp(u32),
}

at_rest! { enum Mark { 0 => End(value), 1 => Stamp(value) } }

impl Crowd {
    /// The last one measured, zero where not known.
    #[inline]
    pub(crate) fn rtt(&self) -> Nanos {
        self.rtt
    }

    /// One was measured with so many bytes in flight.
    #[inline]
    fn measured(&mut self, rtt: Nanos, flight: u32, mss: u32) {
        self.rtt = if flight >= 4 * mss.max(1) { rtt } else { Nanos::ZERO };
    }

    /// What is measured now will say nothing of the path.
    pub(crate) fn forget(&mut self) {
        self.echo = None;
    }

    /// A segment, or an ACK with a time stamp, left at `t`.
    #[inline]
    pub(crate) fn asked(&mut self, mark: Mark, t: Nanos) {
        let other = matches!(
            (self.echo, mark),
            (None, _) | (Some(Mark::End(_)), Mark::Stamp(_)) | (Some(Mark::Stamp(_)), Mark::End(_))
        );
        if other {
            (self.echo, self.since, self.bytes) = (Some(mark), t, 0);
        }
    }

    /// Everything before `ack` was acknowledged, of so many bytes in flight.
    #[inline]
    pub(crate) fn acknowledged(&mut self, ack: Seq, t: Nanos, flight: u32, mss: u32) {
        if matches!(self.echo, Some(Mark::End(end)) if !ack.before(end)) {
            self.measured(t - self.since, flight, mss);
            self.echo = None;
        }
    }

    /// Data came, and tells which time stamp its sender had seen.
    #[inline]
    pub(crate) fn answered(&mut self, segment: &Segment, t: Nanos, mss: u32) {
        let pause = t - std::mem::replace(&mut self.last, t);
        let (Some(Mark::Stamp(asked)), Some((_, echo))) = (self.echo, segment.options.timestamps) else {
            return;
        };
        self.bytes = self.bytes.saturating_add(segment.len);
        if echo.wrapping_sub(asked) as i32 >= 0 {
            // After a pause the round trip holds the pause, and not so many segments were in flight.
            let rtt = t - self.since;
            self.measured(rtt, if pause > rtt.part(2) { 0 } else { self.bytes }, mss);
            self.echo = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_counts_while_four_segments_are_in_flight() {
        let mut crowd = Crowd::default();
        crowd.asked(Mark::End(Seq(1_448)), Nanos::ZERO);
        crowd.acknowledged(Seq(1_448), Nanos::millis(30), 4 * 1_448, 1_448);
        assert_eq!(crowd.rtt(), Nanos::millis(30));
        // One segment alone does not wait behind others of its own.
        crowd.asked(Mark::End(Seq(2_896)), Nanos::millis(40));
        crowd.acknowledged(Seq(2_896), Nanos::millis(90), 1_448, 1_448);
        assert_eq!(crowd.rtt(), Nanos::ZERO);
    }
}
