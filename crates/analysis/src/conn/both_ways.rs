//! Streams in both directions at once (rule 112): what goes on where the other end only spoke in between is no turn.

use super::Conn;
use crate::release::{Filled, goes_on};
use crate::rest::at_rest;
use crate::track::Arrived;
use tcpwhy_base::{End, Segment, Seq};

/// The most that was in flight of one end behind what the other end said, and what was acknowledged then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crossed {
    flight: u32,
    una: Seq,
}

at_rest! { Crossed { flight, una } }

impl Crossed {
    /// Whether more is in flight than there ever was, as a congestion window grows with each segment that is
    /// acknowledged (RFC 5681, 3.1), or half as much, for ACKs that are not used at once. Who asks for more
    /// with each answer has as much on its way as before. Less than half is another window, after an idle
    /// time.
    fn grows_to(&mut self, filled: &Filled, mss: u32) -> bool {
        let acked = filled.una.minus(self.una).max(0).cast_unsigned();
        let anew = filled.flight <= self.flight / 2 || self.flight == 0;
        if anew || filled.flight > self.flight {
            let grows = anew || filled.flight >= self.flight + (acked / 2).max(mss / 2);
            *self = Crossed { flight: filled.flight, una: filled.una };
            return grows;
        }
        false
    }
}

impl Conn {
    /// This segment of `s`, with new bytes, behind what the other end said, goes on with what `s` was sending
    /// before; the steps since then are taken back.
    #[inline(never)]
    pub(super) fn goes_on_across(
        &mut self,
        s: End,
        segment: &Segment,
        arrived: Arrived,
        missing: u16,
    ) -> bool {
        self.ex.ends_stream();
        !self.track.flow(s).is_small(segment.len) && self.streams_on(s, segment, arrived, missing)
    }

    fn streams_on(&mut self, s: End, segment: &Segment, arrived: Arrived, missing: u16) -> bool {
        let ex = self.ex.recorded();
        let Some(last) = self.track.flow(s).last.filter(|last| last.time >= ex.start) else { return false };
        // Where windows are granted above TCP what the other end says may be that (rule 98).
        let grants = matches!(self.who.protocol, Some("http/2" | "ssh" | "tls"));
        if self.ex.is_tls() || grants || !self.testimony.is_silent() || !self.role.is_only() {
            return false;
        }
        let since = self.ex.since_last_of(s, last.time);
        let Some(filled) = goes_on(&self.track.passage(s, segment, arrived, missing, since)) else {
            return false;
        };
        let grows = self.crossed[s].grows_to(&filled, self.track.flow(s).mss);
        let goes_on = filled.known || grows;
        if goes_on {
            self.ex.goes_on_across(s, last.time);
        }
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_grows_with_what_is_acknowledged() {
        let mut crossed = Crossed::default();
        let mut grows =
            |flight: u32, una: u32| crossed.grows_to(&Filled { flight, una: Seq(una), known: false }, 1_000);
        assert!(grows(10_000, 0));
        // All of 4,000 acknowledged bytes, or half of them; less may be chance.
        assert!(grows(14_000, 4_000) && grows(16_000, 8_000));
        assert!(!grows(17_000, 14_000));
        // As much as ever.
        assert!(!grows(17_000, 40_000) && !grows(16_000, 60_000));
        // Another window, after an idle time, which grows again.
        assert!(grows(8_500, 80_000) && grows(9_500, 81_000));
    }
}
