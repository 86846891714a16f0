//! The first round trip of a message: no ACK of it can have come, so that whoever set its segments apart was neither a window nor what clocks them later.

use crate::profile::NO_WAIT;
use crate::rest::{Near, at_rest};
use tcpwhy_base::{Nanos, Segment};

/// So many segments that were waited for show a pace: as a train of a link has (rule 3).
const ENOUGH: u8 = 4;
/// What left at once may seem to be a tick apart, and may be late by an eighth and a tick: of three ticks more is left than that.
const LONG: Nanos = Nanos::millis(3);
const TICK: Nanos = Nanos::millis(1);

/// What passed in that time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// When it began, and by which stamp of its sender; until then no ACK of it can have let anything go.
    since: Nanos,
    stamp: u32,
    until: Nanos,
    /// The longest wait in it.
    longest: Nanos,
    /// The last segment of it: when it passed, and its stamp.
    last: (Nanos, u32),
    /// Segments behind the first, and those that were waited for.
    all: u8,
    count: u8,
    /// Its first segment ends a write short of a full one; each of them ends one.
    short: bool,
    pushed: bool,
    /// Its segments left as far apart as they passed: no link set them apart.
    pub(crate) apart: bool,
    /// And it was who wrote them.
    pub(crate) written: bool,
}

at_rest! { Opening { since, stamp as Near, until, longest, last, all, count, short, pushed, apart, written } }

impl Opening {
    /// A segment with new bytes passed at `t`, so long after the one before; within the first round trip of its message, if that goes on.
    #[inline(always)]
    pub(crate) fn takes(&mut self, segment: &Segment, mss: u32, t: Nanos, wait: Nanos) {
        if t >= self.until {
            return;
        }
        self.all = self.all.saturating_add(1);
        if wait > NO_WAIT {
            self.count = self.count.saturating_add(1);
            self.longest = self.longest.max(wait);
        }
        self.pushed &= segment.flags.psh() && segment.len <= mss;
        self.last = (t, segment.options.timestamps.map_or(self.stamp, |t| t.0));
    }

    /// The first segment of another round trip, `wait` after the one before, if there was one: perhaps of another message.
    pub(crate) fn turns(&mut self, segment: &Segment, mss: u32, t: Nanos, wait: Option<Nanos>, rtt: Nanos) {
        if self.count >= ENOUGH {
            self.apart = self.were_apart(rtt);
            // Whoever paces sends two segments at a time (`tcp_tso_autosize`).
            let alone = 3 * u16::from(self.count) >= 2 * u16::from(self.all);
            self.written = self.apart && (self.pushed || self.short && alone);
        }
        (self.until, self.count) = (Nanos::ZERO, 0);
        if wait.is_none_or(|wait| wait > rtt)
            && let Some((stamp, _)) = segment.options.timestamps
        {
            // Trips jitter by a sixteenth (rule 35): what comes as late may have been let go by an ACK.
            (self.since, self.until) = (t, t + rtt - rtt.part(16));
            (self.stamp, self.longest, self.all) = (stamp, Nanos::ZERO, 0);
            self.pushed = segment.flags.psh() && segment.len <= mss;
            self.short = self.pushed && segment.len < mss;
        }
    }

    /// They were written so, or their sender spaced them for half of the round trip (it had been woken once, for the longest wait, or its kernel paces the first
    /// window of BBR within a third: `bbr_init_pacing_rate_from_rtt`).
    fn were_apart(&self, rtt: Nanos) -> bool {
        let (time, stamp) = self.last;
        let took = time - self.since;
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

    /// A message: when its segments passed, by which stamps they had left (both in tenths of a millisecond), and their lengths, all or the first with PSH. Whether they left
    /// as far apart, and whether they were written so; a round trip later one more passes.
    fn shown(segments: &[(i64, i64, u32)], all_pushed: bool) -> (bool, bool) {
        let (mut opening, mut last, mut round) = (Opening::default(), None, None);
        for (k, &(at, left, len)) in segments.iter().chain([&(230, 230, MSS)]).enumerate() {
            let t = Nanos::secs(7) + Nanos::micros(100 * at);
            let psh = if all_pushed || k == 0 { TcpFlags::PSH } else { 0 };
            let segment = Segment {
                len,
                flags: TcpFlags(TcpFlags::ACK | psh),
                options: TcpOptions {
                    timestamps: Some((500 + (left / 10) as u32, 0)),
                    ..TcpOptions::default()
                },
                ..Segment::EMPTY
            };
            let turns = round.is_none_or(|round| t - round >= RTT);
            round = if turns { Some(t) } else { round };
            let wait = last.map(|last| t - last);
            if turns {
                opening.turns(&segment, MSS, t, wait, RTT);
            } else {
                opening.takes(&segment, MSS, t, wait.unwrap());
            }
            last = Some(t);
        }
        (opening.apart, opening.written)
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
