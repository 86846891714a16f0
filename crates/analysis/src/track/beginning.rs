//! The first round trip of a message: no ACK of it can have come, so that whoever set its segments apart was
//! neither a window nor what clocks them later.

use crate::profile::NO_WAIT;
use crate::rest::{Near, at_rest};
use crate::track::last::Last;
use tcpwhy_base::{Nanos, Segment, Seq};

/// So many segments that were waited for show a pace: as a train of a link has (rule 3).
const ENOUGH: u8 = 4;
/// What left at once may seem to be a tick apart, and may be late by an eighth and a tick: of three ticks
/// more is left than that.
const LONG: Nanos = Nanos::millis(3);
const TICK: Nanos = Nanos::millis(1);

/// What passed in that time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beginning {
    /// When it began, and by which stamp of its sender.
    since: Nanos,
    stamp: u32,
    /// Where its first segment ends, with what came at once with it.
    first: Seq,
    /// The longest wait in it.
    longest: Nanos,
    /// Segments that were waited for.
    count: u8,
    /// Its round trip goes on.
    goes_on: bool,
    /// That ends a write short of a full one; each that was waited for ends one, too.
    short: bool,
    pushed: bool,
    /// Its segments left as far apart as they passed: no link set them apart.
    pub(crate) apart: bool,
    /// And it was who wrote them.
    pub(crate) written: bool,
}

at_rest! { Beginning { since, stamp as Near, first, longest, count, goes_on, short, pushed, apart, written } }

impl Beginning {
    /// Another segment of its sender passes, `last` before it, longer ago than a round trip, or none. Gives
    /// whether it was decided how the message before began.
    #[inline(always)]
    pub(crate) fn begins(&mut self, t: Nanos, last: Option<&Last>, mss: u32, rtt: Nanos) -> bool {
        let decided = self.count > 0 && last.is_some_and(|last| self.ends(last, mss, rtt));
        (self.since, self.goes_on) = (t, true);
        decided
    }

    /// What passes belongs to the first round trip of its message.
    #[inline(always)]
    pub(crate) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Another one of it that was waited for, `last` before it; or the first behind it. Gives whether it is
    /// decided how the message began.
    #[inline(never)]
    pub(crate) fn goes_further(
        &mut self,
        segment: &Segment,
        t: Nanos,
        last: &Last,
        mss: u32,
        rtt: Nanos,
    ) -> bool {
        // Trips jitter by a sixteenth (rule 35): what comes as late may have been let go by an ACK.
        if t - self.since >= rtt - rtt.part(16) {
            self.goes_on = false;
            return self.ends(last, mss, rtt);
        }
        let wait = t - last.time;
        if wait <= NO_WAIT {
            return false;
        }
        if self.count == 0 {
            // The first, or the last of those that came with it.
            self.pushed = last.psh && last.len <= mss;
            (self.short, self.first) = (self.pushed && last.len < mss, last.end);
            (self.stamp, self.longest) = (last.stamp.unwrap_or_default(), Nanos::ZERO);
        }
        self.count = self.count.saturating_add(1);
        self.longest = self.longest.max(wait);
        self.pushed &= segment.flags.psh() && segment.len <= mss;
        false
    }

    /// It is over with this one.
    #[cold]
    fn ends(&mut self, last: &Last, mss: u32, rtt: Nanos) -> bool {
        let decides = self.count >= ENOUGH;
        if decides {
            self.apart = self.were_apart(last, rtt);
            // Whoever paces sends two segments at a time (`tcp_tso_autosize`).
            let full = last.end.minus(self.first).max(0) as u32 / mss.max(1);
            let alone = 3 * u32::from(self.count) >= 2 * full;
            self.written = self.apart && (self.pushed || self.short && alone);
        }
        self.count = 0;
        decides
    }

    /// They were written so, or their sender spaced them for half of the round trip (it had been woken once,
    /// for the longest wait, or its kernel paces the first window of BBR within a third:
    /// `bbr_init_pacing_rate_from_rtt`).
    fn were_apart(&self, last: &Last, rtt: Nanos) -> bool {
        let Some(stamp) = last.stamp else { return false };
        let took = last.time - self.since;
        let rest = took - self.longest;
        let left = Nanos::millis(i64::from(stamp.wrapping_sub(self.stamp) as i32));
        let told = self.short || self.pushed || rest.times(2) >= rtt;
        told && rest >= LONG && Nanos((took - left).0.abs()) <= rest.part(8) + TICK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tcpwhy_base::{TcpFlags, TcpOptions};

    const MSS: u32 = 1_448;
    const RTT: Nanos = Nanos::millis(20);

    /// A message: when its segments passed, by which stamps they had left (both in tenths of a millisecond),
    /// and their lengths, all or the first with PSH. Whether they left as far apart, and whether they were
    /// written so; a round trip later one more passes.
    fn shown(segments: &[(i64, i64, u32)], all_pushed: bool) -> (bool, bool) {
        let (mut beginning, mut last, mut seq) = (Beginning::default(), None::<Last>, Seq(0));
        for (k, &(at, left, len)) in segments.iter().chain([&(230, 230, MSS)]).enumerate() {
            let time = Nanos::secs(7) + Nanos::micros(100 * at);
            let psh = all_pushed || k == 0;
            let flags = TcpFlags(TcpFlags::ACK | if psh { TcpFlags::PSH } else { 0 });
            let stamp = 500 + (left / 10) as u32;
            let options = TcpOptions { timestamps: Some((stamp, 0)), ..TcpOptions::default() };
            let segment = Segment { seq, len, flags, options, ..Segment::EMPTY };
            match &last {
                Some(last) if time - last.time <= RTT => {
                    beginning.goes_on() && beginning.goes_further(&segment, time, last, MSS, RTT)
                }
                last => beginning.begins(time, last.as_ref(), MSS, RTT),
            };
            seq = seq + len;
            let stamp = Some(stamp);
            last = Some(Last { time, len, psh, stamp, end: seq, whole: false, skipped: 0, una: Seq(0) });
        }
        (beginning.apart, beginning.written)
    }

    /// So many segments, each so much after the one before, of the stamps of so much after.
    fn even(n: i64, apart: i64, left: i64, first: u32) -> Vec<(i64, i64, u32)> {
        (0..n).map(|k| (k * apart, k * left, if k == 0 { first } else { MSS })).collect()
    }

    #[test]
    fn what_left_as_it_passed_was_not_set_apart_by_a_link() {
        assert_eq!(shown(&even(10, 15, 15, 200), false), (true, true));
        assert_eq!(shown(&even(10, 15, 15, MSS), true), (true, true));
        // By whom does not show: a pace spreads whole segments as well.
        assert_eq!(shown(&even(10, 15, 15, MSS), false), (true, false));
        // A link did, all at once or some of it.
        assert_eq!(shown(&even(10, 15, 0, 200), false), (false, false));
        assert_eq!(shown(&even(10, 15, 13, 200), false), (true, true));
        assert_eq!(shown(&even(10, 15, 12, 200), false), (false, false));
    }

    #[test]
    fn a_wait_before_all_of_it_is_no_pace() {
        // A head, 8 ms of work, and what a link spread over 9 ms.
        let mut waited = even(10, 10, 0, 200);
        waited[1..].iter_mut().for_each(|s| (s.0, s.1) = (s.0 + 80, 80));
        assert_eq!(shown(&waited, false), (false, false));
        // The first window of BBR is spread over a third of a round trip, two segments at a time; a whole one first.
        assert_eq!(shown(&even(10, 8, 8, MSS), false), (false, false));
        // Too few, and too soon for its stamps to tell.
        assert_eq!(shown(&even(4, 30, 30, 200), false), (false, false));
        assert_eq!(shown(&even(5, 8, 8, 200), false), (false, false));
        assert_eq!(shown(&even(5, 15, 15, 200), false), (true, true));
    }

    /// Pairs are what a pace sends; a writer whose host was late once sends one or two together.
    #[test]
    fn pairs_were_not_written_so() {
        let pairs: Vec<_> =
            (0..12).map(|k| (k / 2 * 30, k / 2 * 30, if k == 0 { 200 } else { MSS })).collect();
        assert_eq!(shown(&pairs, false), (true, false));
        let mut late = even(11, 15, 15, 200);
        late[3] = late[4];
        assert_eq!(shown(&late, false), (true, true));
    }
}
