//! The time stamps of one end and their echoes (RFC 7323, 3.2): what they prove about the order of things.

use crate::track::passage::PathView;
use tcpwhy_base::Nanos;

/// What one end has stamped, and what of it waits for its echo.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    newest: Option<u32>,
    /// The newest on a segment that takes a sequence number; before there was one, the first of all.
    carried: Option<u32>,
    /// A stamp that waits for its echo, and when its first packet passed.
    asked: Option<(u32, Nanos)>,
    /// The same for the first stamp that only a pure ACK carried, until something newer is carried.
    bare: Option<(u32, Nanos)>,
    /// Such a stamp was echoed.
    echoed_bare: bool,
    /// The present one was not echoed although it could have been; how many were not.
    missed: bool,
    misses: u8,
}

/// What an echo tells of its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Echo {
    /// It left at most so long after the stamp had passed the tap.
    pub(crate) after: Option<Nanos>,
    /// It ignores the stamps of pure ACKs, or echoes them (rule 43).
    pub(crate) ignored: Option<bool>,
}

impl Stamps {
    /// A packet with this stamp passed; `carries`: it takes a sequence number.
    #[inline]
    pub(crate) fn sent(&mut self, stamp: u32, carries: bool, t: Nanos) {
        if self.newest.is_none_or(|newest| is_newer(stamp, newest)) {
            self.newest = Some(stamp);
            self.asked.get_or_insert((stamp, t));
        }
        let newer = self.carried.is_none_or(|carried| is_newer(stamp, carried));
        if newer && (carries || self.carried.is_none()) {
            self.carried = Some(stamp);
            self.bare = None;
        } else if newer && self.bare.is_none() {
            self.bare = Some((stamp, t));
            self.missed = false;
        }
    }

    /// A later one has passed.
    pub(crate) fn is_older(&self, stamp: u32) -> bool {
        self.newest.is_some_and(|newest| is_newer(newest, stamp))
    }

    /// The other end, which lies there, echoes a stamp.
    #[inline]
    pub(crate) fn echoed(&mut self, stamp: u32, t: Nanos, path: &PathView) -> Echo {
        let mut after = None;
        if let Some((asked, since)) = self.asked
            && !is_newer(asked, stamp)
        {
            after = (asked == stamp).then_some(t - since);
            self.asked = None;
        }
        Echo { after, ignored: self.ignored(stamp, t, path) }
    }

    /// Whether this echo shows that its sender ignores the stamps of pure ACKs. It had such a stamp for certain twice a
    /// reaction time after the ACK; where it could have had it, the second time.
    #[inline]
    fn ignored(&mut self, stamp: u32, t: Nanos, path: &PathView) -> Option<bool> {
        if self.carried.is_some_and(|carried| is_newer(stamp, carried)) {
            self.echoed_bare = true;
            return Some(false);
        }
        let (_, since) = self.bare.filter(|bare| !self.echoed_bare && is_newer(bare.0, stamp))?;
        let ago = t - since;
        if !self.missed && ago >= path.own() - path.early() {
            self.missed = true;
            self.misses = self.misses.saturating_add(1);
        }
        (self.misses >= 2 || ago > path.own().times(2) + Nanos::millis(1)).then_some(true)
    }
}

fn is_newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> Nanos = Nanos::millis;

    /// A sender that reacts within 20 ms, beyond the tap.
    fn far() -> PathView {
        PathView::new(Some(MS(20)), Some(MS(1)))
    }

    #[test]
    fn an_echo_bounds_the_reaction_by_the_first_packet_of_its_stamp() {
        let mut stamps = Stamps::default();
        stamps.sent(7, true, MS(10));
        stamps.sent(7, false, MS(14));
        assert_eq!(stamps.echoed(7, MS(30), &far()).after, Some(MS(20)));
        // Asked once.
        assert_eq!(stamps.echoed(7, MS(31), &far()).after, None);
        // A stamp that was skipped bounds nothing.
        stamps.sent(8, false, MS(40));
        stamps.sent(9, false, MS(41));
        assert_eq!(stamps.echoed(9, MS(50), &far()).after, None);
    }

    #[test]
    fn stamps_wrap() {
        let mut stamps = Stamps::default();
        stamps.sent(u32::MAX, true, MS(0));
        stamps.sent(0, false, MS(1));
        assert_eq!(stamps.echoed(u32::MAX, MS(2), &far()).ignored, None);
        assert_eq!(stamps.echoed(0, MS(3), &far()).ignored, Some(false));
    }

    #[test]
    fn the_stamp_of_a_pure_ack_is_missing_after_twice_the_reaction() {
        let ignored = |after: Nanos| {
            let mut stamps = Stamps::default();
            stamps.sent(5, true, MS(0));
            stamps.sent(6, false, MS(10));
            stamps.echoed(5, MS(10) + after, &far()).ignored
        };
        assert_eq!(ignored(MS(41)), None);
        assert_eq!(ignored(MS(41) + Nanos(1)), Some(true));
    }

    #[test]
    fn or_the_second_time_that_it_could_have_come() {
        // 20 ms, an eighth less.
        let ignored = |after: Nanos| {
            let mut stamps = Stamps::default();
            stamps.sent(5, true, MS(0));
            [10, 110].map(|at| {
                stamps.sent(at, false, MS(i64::from(at)));
                let echo = stamps.echoed(5, MS(i64::from(at)) + after, &far());
                stamps.sent(at + 50, true, MS(i64::from(at) + 50));
                echo.ignored
            })
        };
        assert_eq!(ignored(Nanos::micros(17_500)), [None, Some(true)]);
        assert_eq!(ignored(Nanos::micros(17_499)), [None, None]);
    }

    #[test]
    fn a_stack_that_echoed_one_does_so_for_good() {
        let mut stamps = Stamps::default();
        // In the middle of a connection the first stamp seen may have come with data before.
        stamps.sent(5, false, MS(0));
        assert_eq!(stamps.echoed(5, MS(90), &far()).ignored, None);
        stamps.sent(6, false, MS(100));
        assert_eq!(stamps.echoed(6, MS(120), &far()).ignored, Some(false));
        stamps.sent(7, true, MS(200));
        stamps.sent(8, false, MS(210));
        assert_eq!(stamps.echoed(7, MS(900), &far()).ignored, None);
    }
}
