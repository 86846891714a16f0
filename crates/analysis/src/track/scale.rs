//! The scale of a window whose SYN the capture does not hold, read from how the window moves.

use crate::rest::at_rest;
use tcpwhy_base::Seq;

/// The largest scale (RFC 7323, 2.3).
const MAX: u8 = 14;

/// A run of windows that shrink is believed once it is so many units long: it then tells the scale to within
/// a sixteenth, which an application that reads some of the data meanwhile rarely meets by chance.
const ENOUGH: u16 = 16;

/// What the windows of one end have said of their scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Acknowledgement and window, as it stands in the header, last seen.
    last: Option<(Seq, u16)>,
    /// With less, data was sent beyond the window.
    low: u8,
    /// With more, the window's right edge would have moved to the left, which it must not (RFC 9293, 3.8.6; Linux
    /// rounds up so that it never does, `tcp_select_window`).
    high: u8,
    /// Where a run of shrinking windows began whose right edge stood still, as it does while nobody reads.
    run: Option<(Seq, u16)>,
    /// The scale that a long run told.
    still: Option<u8>,
}

at_rest! { Scale { last, low, high, run, still } }

/// The largest scale with which a window that shrank by `less` units did not move its edge to the left while `advance`
/// bytes were acknowledged, and whether the edge stood still.
fn reading(advance: i32, less: u16) -> (u8, bool) {
    // Both windows are rounded, together by less than one unit.
    let ratio = advance as u32 / u32::from(less - 1).max(1);
    let most = if ratio == 0 { 0 } else { (ratio.ilog2() as u8).min(MAX) };
    let off = (i64::from(less) << most) - i64::from(advance);
    (most, off.abs() <= 1 << most)
}

impl Scale {
    pub(crate) fn new() -> Scale {
        Scale { last: None, low: 0, high: MAX, run: None, still: None }
    }

    /// The end that offers the window acknowledged `ack` with `window` in the header.
    pub(crate) fn offered(&mut self, ack: Seq, window: u16) {
        let Some((before, wide)) = self.last else {
            self.last = Some((ack, window));
            return;
        };
        let advance = ack.minus(before);
        if advance < 0 || advance == 0 && window < wide {
            return; // an older one that was overtaken
        }
        self.last = Some((ack, window));
        if window >= wide {
            self.run = None;
            return;
        }
        let (from, begin) = *self.run.get_or_insert((before, wide));
        let (advance, less) = (ack.minus(from), begin - window);
        if less < 2 || advance <= 0 {
            return;
        }
        let (most, still) = reading(advance, less);
        self.high = self.high.min(most);
        if !still {
            self.run = Some((ack, window));
        } else if less >= ENOUGH {
            self.still = Some(self.still.map_or(most, |s| s.min(most)));
        }
    }

    /// Data up to `end` was sent towards it.
    pub(crate) fn sent(&mut self, end: Seq) {
        let Some((ack, window)) = self.last.filter(|l| l.1 > 0) else { return };
        let flight = i64::from(end.minus(ack));
        let room = |scale: u8| (i64::from(window) + 1) << scale;
        // An eighth more may be an ACK that the capture missed; half the window is another scale.
        while self.low < MAX && flight > room(self.low) + room(self.low) / 8 {
            self.low += 1;
        }
    }

    /// The scales that are possible: `None` if what was seen contradicts itself.
    pub(crate) fn range(&self) -> Option<(u8, u8)> {
        (self.low <= self.high).then_some((self.low, self.high))
    }

    /// The scale, once it is sure.
    pub(crate) fn known(&self) -> Option<u8> {
        let (low, high) = self.range()?;
        (low == high || self.still == Some(high)).then_some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver with a buffer of `buffer` bytes that reads `share` of what comes; windows are rounded up so that the
    /// right edge never moves to the left (`tcp_select_window`).
    fn play(scale: u8, buffer: u32, share: f64, segments: u32) -> Scale {
        let mut seen = Scale::new();
        let (mut ack, mut edge, mut held) = (Seq(0xffff_f000), None::<Seq>, 0_u32);
        for k in 0..segments {
            let free = buffer.saturating_sub(held);
            let edge_now = edge.map_or(ack + free, |e| if (ack + free).after(e) { ack + free } else { e });
            let window = (edge_now.minus(ack) as u32).div_ceil(1 << scale);
            edge = Some(ack + (window << scale));
            seen.offered(ack, window as u16);
            if edge.is_some_and(|e| e.minus(ack) < 2_896) {
                break;
            }
            let bytes = (1_448 * (1 + k % 2)).min(edge.map_or(0, |e| e.minus(ack) as u32));
            ack = ack + bytes;
            seen.sent(ack);
            held += bytes - (f64::from(bytes) * share) as u32;
        }
        seen
    }

    #[test]
    fn a_reader_that_stops_gives_the_scale_away() {
        for scale in [0, 3, 5, 7, 8] {
            let seen = play(scale, 60_000, 0.0, 100);
            assert_eq!(seen.known(), Some(scale), "{seen:?}");
        }
    }

    #[test]
    fn a_reader_that_reads_some_leaves_it_open() {
        for share in [0.3, 0.45, 0.6, 0.8, 0.97] {
            let seen = play(7, 60_000, share, 100);
            assert!(seen.known().is_none_or(|s| s == 7), "{share}: {seen:?}");
            let (low, high) = seen.range().unwrap();
            assert!(low <= 7 && high >= 7, "{share}: {seen:?}");
        }
        assert_eq!(play(7, 60_000, 1.0, 100).known(), None);
    }

    #[test]
    fn a_flight_shows_the_least() {
        let mut seen = Scale::new();
        seen.offered(Seq(1_000), 500);
        seen.sent(Seq(1_000) + 63_000);
        assert_eq!(seen.range(), Some((7, 14)));
        // The edge must not move to the left: 2,896 bytes, 22 units of 128 at most.
        seen.offered(Seq(1_000) + 2_896, 478);
        assert_eq!(seen.known(), Some(7));
    }

    #[test]
    fn a_contradiction_is_unknown() {
        let mut seen = Scale::new();
        seen.offered(Seq(0), 500);
        seen.offered(Seq(1_000), 100);
        seen.sent(Seq(90_000));
        assert_eq!((seen.range(), seen.known()), (None, None));
    }
}
