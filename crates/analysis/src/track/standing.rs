//! How long what passes had been under way from its sender, beyond the quickest: read from its sender's time stamps.
//!
//! A stack stamps a segment when it builds it (Linux: `__tcp_transmit_skb` sets `skb_mstamp_ns`, from which
//! `tcp_established_options` takes TSval). With pacing, be it TCP's own timer or sch_fq by departure times,
//! that is the time when it is meant to leave (`tcp_pacing_check`, `skb_set_delivery_time`). What it stands
//! in below TCP lies between the stamp and the tap: a shaper, an interface.

use crate::profile::NO_WAIT;
use crate::rest::at_rest;
use tcpwhy_base::Nanos;

/// So many segments that had stood, less those that had not, are no chance of a busy host; who stood for
/// several jiffies counts as many, up to four.
const SHOWN: u8 = 8;

/// The stamps tick by that (Linux since 4.13: `TCP_TS_HZ`, 1,000; macOS as well), or are jiffies, which last
/// no longer than the second.
const TICK: Nanos = Nanos::millis(1);
const JIFFY: Nanos = Nanos::millis(10);

/// How long the segments of one sender had been under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    /// A stamp of it, and when its packet passed.
    since: Option<(u32, Nanos)>,
    /// How much later than its stamp (counted from that one) a packet passed at the least, if both clocks go
    /// alike; and the same, had they gone apart by as much as clocks do, with when that was.
    least: Nanos,
    most: (Nanos, Nanos),
    /// The last stamp, and when the first packet with it passed.
    run: (u32, Nanos),
    /// Of segments for which a tick tells: those that had been built before the one before passed, less those
    /// that had not.
    shown: u8,
    /// The stamps do not count jiffies.
    ticks_so: bool,
}

at_rest! { Standing { since, least, most, run, shown, ticks_so } }

/// Of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnderWay {
    /// At the least for so long beyond the quickest of its sender.
    pub(crate) surely: Nanos,
    /// And no longer than that, if both clocks go alike.
    pub(crate) perhaps: Nanos,
}

at_rest! { UnderWay { surely, perhaps } }

impl Standing {
    /// Nothing is known but a stamp that passed at that time.
    pub(crate) fn begins(stamp: u32, at: Nanos) -> Standing {
        let most = (Nanos::ZERO, at);
        Standing { since: Some((stamp, at)), most, run: (stamp, at), ..Standing::default() }
    }

    /// A first segment passed at `t`; the SYN of its sender, which met no queue of its own connection, had
    /// passed `before`. Whoever answers SYNs for another host has a clock of its own: by that a segment may
    /// have been built before the SYN, or is yet to be.
    pub(crate) fn since_the_syn(before: Option<(u32, Nanos)>, stamp: u32, t: Nanos) -> Standing {
        let mut standing = Standing::begins(stamp, t);
        let Some((first, at)) = before else { return standing };
        let (ticked, took) = (Nanos::millis(i64::from(stamp.wrapping_sub(first) as i32)), t - at);
        let sooner = ticked - took;
        if (Nanos::ZERO..=took + TICK.times(2)).contains(&ticked) && sooner < Nanos::ZERO {
            standing.least = sooner;
            standing.most.0 = (sooner + took.part(2_000)).min(Nanos::ZERO);
        }
        standing
    }

    /// A segment with this stamp passed at `t`, `wait` after the one before it.
    #[inline]
    pub(crate) fn passes(&mut self, stamp: u32, t: Nanos, wait: Nanos) -> UnderWay {
        let Some((first, begun)) = self.since else { return UnderWay::default() };
        let (ticked, took) = (Nanos::millis(i64::from(stamp.wrapping_sub(first) as i32)), t - begun);
        let late = took - ticked;
        self.least = self.least.min(late);
        // Clocks run apart by up to 500 ppm (RFC 5905, `MAXFREQ`).
        let apart = (t - self.most.1).part(2_000);
        self.most = (late.min(self.most.0 + apart), t);
        if stamp != self.run.0 {
            self.run = (stamp, t);
        }
        // Jiffies are at most 300 a second, or 1,000: of the former the stamps are ever later, by more than half.
        self.ticks_so |= took > JIFFY.times(2) && late.times(2) <= took;
        let by_tick = if self.ticks_so { late - self.most.0 - TICK } else { Nanos::ZERO };
        // Of jiffies both were built within so many.
        let by_jiffies = (took - JIFFY.times(ticked.0 / TICK.0 + 1)).max(t - self.run.1 - JIFFY);
        let surely = by_tick.max(by_jiffies).floor0();
        let perhaps = late - self.least + TICK;
        if wait <= NO_WAIT {
            // No wait.
        } else if surely >= wait {
            let counts = 1 + (wait.0 / JIFFY.0).clamp(0, 3) as u8;
            self.shown = (self.shown + counts).min(2 * SHOWN);
        } else if perhaps < wait {
            self.shown = self.shown.saturating_sub(1);
        }
        UnderWay { surely, perhaps }
    }

    /// It echoes a stamp that came after what it is said to have been built before: its stamps are of a time
    /// to come, for a queue behind the tap to keep (sch_fq, by the departure times that TCP sets), so that
    /// they tell nothing.
    pub(crate) fn is_refuted(&mut self) {
        *self = Standing::default();
    }

    /// What its sender builds stands in a queue before it passes.
    #[inline]
    pub(crate) fn is_shown(&self) -> bool {
        self.shown >= SHOWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(i64) -> Nanos = Nanos::micros;

    /// Pieces that pass every 2 ms, built so long before, by a clock that ticks so often in a second and goes
    /// so much slower.
    fn pieces(count: i64, before: Nanos, hz: i64, ppm: i64) -> (UnderWay, bool) {
        let stamp = |at: Nanos| ((at - at.times(ppm).part(1_000_000)).0 / (1_000_000_000 / hz)) as u32;
        let mut standing = Standing::begins(stamp(US(100)), US(100));
        let mut last = UnderWay::default();
        for n in 1..=count {
            let t = US(100 + 2_000 * n);
            let built = (t - before.min(US(2_000 * n))).floor0();
            last = standing.passes(stamp(built), t, US(2_000));
        }
        (last, standing.is_shown())
    }

    #[test]
    fn what_was_built_before_the_last_passed_had_stood() {
        // 4 ms of it are known to a tick.
        let (under_way, shown) = pieces(40, US(4_000), 1_000, 0);
        assert_eq!((under_way, shown), (UnderWay { surely: US(3_000 - 40), perhaps: US(5_000) }, true));
        // At once, or within the millisecond: not shown.
        assert!([0, 900, 1_900].iter().all(|&us| !pieces(40, US(us), 1_000, 0).1));
    }

    /// Segments that come as late for the SYN as the first show a queue; another clock than that of the SYN
    /// shows nothing, nor do jiffies.
    #[test]
    fn what_passed_with_the_syn_was_quick() {
        let (syn, at) = (5_000, US(1_000_000));
        // The first one 60 ms later by the tap's clock, and one each 2 ms.
        let all = |first: u32, tick_us: i64| {
            let mut standing = Standing::since_the_syn(Some((syn, at)), first, at + US(60_000));
            let pass = |n: i64| {
                let stamp = first + (2_000 * n / tick_us) as u32;
                standing.passes(stamp, at + US(60_000 + 2_000 * n), US(2_000)).surely
            };
            (1..=20).map(pass).last()
        };
        // 42 ms by its stamp: 18 ms, less a tick and what clocks go apart in a tenth of a second.
        assert_eq!(all(5_042, 1_000), Some(US(17_000 - 50)));
        assert_eq!([all(4_900, 1_000), all(9_000, 1_000), all(5_015, 4_000)], [Some(US(0)); 3]);
    }

    /// Stamps that are jiffies come ever later, and those of a clock that goes slower by 500 ppm do.
    #[test]
    fn other_clocks_show_nothing() {
        assert!([100, 250, 300].iter().all(|&hz| !pieces(5_000, US(0), hz, 0).1));
        assert!(!pieces(5_000, US(0), 1_000, 500).1);
        // It stays shown however long it takes, though nothing is sure any more.
        let (under_way, shown) = pieces(30_000, US(4_000), 1_000, 0);
        assert_eq!((under_way.surely, shown), (US(0), true));
    }
}
