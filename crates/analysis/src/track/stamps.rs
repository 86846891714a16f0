//! The time stamps of one end and their echoes (RFC 7323, 3.2): what they prove about the order of things.

use crate::rest::{Near, at_rest};
use crate::track::passage::PathView;
use tcpwhy_base::Nanos;

/// What one end has stamped, and what of it waits for its echo.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    newest: Option<u32>,
    /// The newest on a segment that takes a sequence number; before there was one, the first of all.
    carried: Option<u32>,
    /// A stamp that waits for its echo, and when its first packet passed.
    asked: Option<u32>,
    asked_at: Nanos,
    /// The same for the first stamp that only a pure ACK carried, until something newer is carried.
    bare: Option<u32>,
    bare_at: Nanos,
    /// Such a stamp was echoed.
    echoed_bare: bool,
    /// The present one was not echoed although it could have been; how many were not.
    missed: bool,
    misses: u8,
    /// That of its SYN, and when that passed; zero: not known.
    opening: u32,
    opened_at: Nanos,
}

at_rest! {
    Stamps {
        newest as Near, carried as Near, asked as Near, asked_at, bare as Near, bare_at, echoed_bare,
        missed, misses, opening, opened_at,
    }
}

impl Stamps {
    /// A packet with this stamp passed; `carries`: it takes a sequence number.
    #[inline]
    pub(crate) fn sent(&mut self, stamp: u32, carries: bool, t: Nanos) {
        if self.newest.is_none_or(|newest| is_newer(stamp, newest)) {
            self.newest = Some(stamp);
            if self.asked.is_none() {
                (self.asked, self.asked_at) = (Some(stamp), t);
            }
        }
        let newer = self.carried.is_none_or(|carried| is_newer(stamp, carried));
        if newer && (carries || self.carried.is_none()) {
            self.carried = Some(stamp);
            self.bare = None;
        } else if newer && self.bare.is_none() {
            (self.bare, self.bare_at) = (Some(stamp), t);
            self.missed = false;
        }
    }

    /// Its SYN passed, which has no queue of its own connection before it.
    pub(crate) fn opens(&mut self, stamp: u32, t: Nanos) {
        if self.opened_at == Nanos::ZERO {
            (self.opening, self.opened_at) = (stamp, t);
        }
    }

    /// That of its SYN, and when that passed.
    #[inline]
    pub(crate) fn opening(&self) -> Option<(u32, Nanos)> {
        (self.opened_at != Nanos::ZERO).then_some((self.opening, self.opened_at))
    }

    /// The one that waits for its echo, and when its first packet passed.
    #[inline]
    pub(crate) fn asked(&self) -> Option<(u32, Nanos)> {
        self.asked.map(|stamp| (stamp, self.asked_at))
    }

    /// A later one has passed.
    pub(crate) fn is_older(&self, stamp: u32) -> bool {
        self.newest.is_some_and(|newest| is_newer(newest, stamp))
    }

    /// The other end echoes a stamp: it left at most so long after that had passed the tap.
    #[inline]
    pub(crate) fn echoed(&mut self, stamp: u32, t: Nanos) -> Option<Nanos> {
        let asked = self.asked?;
        if is_newer(asked, stamp) {
            return None;
        }
        self.asked = None;
        (asked == stamp).then(|| t - self.asked_at)
    }

    /// This echo is of the stamp of a pure ACK: its sender does not ignore those (rule 43).
    #[inline]
    pub(crate) fn tells_of_bare(&mut self, stamp: u32) -> bool {
        let tells = self.carried.is_some_and(|carried| is_newer(stamp, carried));
        self.echoed_bare |= tells;
        tells
    }

    /// This echo might have been of the stamp of a pure ACK, and none was so far.
    #[inline]
    pub(crate) fn waits_for_bare(&self, stamp: u32) -> bool {
        !self.echoed_bare && self.bare.is_some_and(|bare| is_newer(bare, stamp))
    }

    /// Whether such an echo shows that its sender, which lies there, ignores the stamps of pure ACKs. It had
    /// such a stamp for certain twice a reaction time after the ACK; where it could have had it, the second
    /// time.
    pub(crate) fn misses_bare(&mut self, t: Nanos, path: &PathView) -> bool {
        let ago = t - self.bare_at;
        if !self.missed && ago >= path.own() - path.early() {
            self.missed = true;
            self.misses = self.misses.saturating_add(1);
        }
        self.misses >= 2 || ago > path.own().times(2) + Nanos::millis(1)
    }
}

pub(super) fn is_newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> Nanos = Nanos::millis;

    /// Whether an echo shows that the stamps of pure ACKs are ignored, or that they are not.
    fn ignored(stamps: &mut Stamps, echo: u32, t: Nanos, path: &PathView) -> Option<bool> {
        stamps.echoed(echo, t);
        if stamps.tells_of_bare(echo) {
            return Some(false);
        }
        (stamps.waits_for_bare(echo) && stamps.misses_bare(t, path)).then_some(true)
    }

    /// A sender that reacts within 20 ms, beyond the tap.
    fn far() -> PathView {
        PathView::new(Some(MS(20)), Some(MS(1)))
    }

    #[test]
    fn an_echo_bounds_the_reaction_by_the_first_packet_of_its_stamp() {
        let mut stamps = Stamps::default();
        stamps.sent(7, true, MS(10));
        stamps.sent(7, false, MS(14));
        assert_eq!(stamps.echoed(7, MS(30)), Some(MS(20)));
        // Asked once.
        assert_eq!(stamps.echoed(7, MS(31)), None);
        // A stamp that was skipped bounds nothing.
        stamps.sent(8, false, MS(40));
        stamps.sent(9, false, MS(41));
        assert_eq!(stamps.echoed(9, MS(50)), None);
    }

    #[test]
    fn stamps_wrap() {
        let mut stamps = Stamps::default();
        stamps.sent(u32::MAX, true, MS(0));
        stamps.sent(0, false, MS(1));
        assert_eq!(ignored(&mut stamps, u32::MAX, MS(2), &far()), None);
        assert_eq!(ignored(&mut stamps, 0, MS(3), &far()), Some(false));
    }

    #[test]
    fn the_stamp_of_a_pure_ack_is_missing_after_twice_the_reaction() {
        let shows = |after: Nanos| {
            let mut stamps = Stamps::default();
            stamps.sent(5, true, MS(0));
            stamps.sent(6, false, MS(10));
            ignored(&mut stamps, 5, MS(10) + after, &far())
        };
        assert_eq!(shows(MS(41)), None);
        assert_eq!(shows(MS(41) + Nanos(1)), Some(true));
    }

    #[test]
    fn or_the_second_time_that_it_could_have_come() {
        // 20 ms, an eighth less.
        let shows = |after: Nanos| {
            let mut stamps = Stamps::default();
            stamps.sent(5, true, MS(0));
            [10, 110].map(|at| {
                stamps.sent(at, false, MS(i64::from(at)));
                let echo = ignored(&mut stamps, 5, MS(i64::from(at)) + after, &far());
                stamps.sent(at + 50, true, MS(i64::from(at) + 50));
                echo
            })
        };
        assert_eq!(shows(Nanos::micros(17_500)), [None, Some(true)]);
        assert_eq!(shows(Nanos::micros(17_499)), [None, None]);
    }

    #[test]
    fn a_stack_that_echoed_one_does_so_for_good() {
        let mut stamps = Stamps::default();
        // In the middle of a connection the first stamp seen may have come with data before.
        stamps.sent(5, false, MS(0));
        assert_eq!(ignored(&mut stamps, 5, MS(90), &far()), None);
        stamps.sent(6, false, MS(100));
        assert_eq!(ignored(&mut stamps, 6, MS(120), &far()), Some(false));
        stamps.sent(7, true, MS(200));
        stamps.sent(8, false, MS(210));
        assert_eq!(ignored(&mut stamps, 7, MS(900), &far()), None);
    }
}
