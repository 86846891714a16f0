//! Answers below a segment that came as late as the kernel's timer for what is corked (rule 115).
//!
//! A program that holds its answers with TCP_CORK or MSG_MORE and never lets them go looks as if it worked
//! for 200 ms and a round trip. What tells them apart is the clock: such a timer ends with a tick of the
//! kernel, whenever the request came, so that the times between such answers are whole ticks. A program's
//! sleep (`hrtimer`) begins when it is asked.

use crate::profile::NO_WAIT;
use crate::rest::at_rest;
use crate::track::Passage;
use tcpwhy_base::Nanos;

/// The ticks of kernels in use (`CONFIG_HZ` 250, 1000, whose timers of 64 ms and more end with every eighth,
/// 100 and 300), in thirds of a microsecond: whatever is a whole number of the others is one of these.
const TICKS: [i64; 2] = [12_000, 10_000];
/// As far a timer may be off its tick (its interrupt runs others first, and packets pass taps later): within
/// this on either side lie a tenth of all times for the longer tick, an eighth for the shorter one.
const OFF: i64 = 600;
/// Clocks go apart by some ten millionths: longer times tell nothing.
const LONGEST: Nanos = Nanos::secs(4);
/// So many times that differ are whole ticks by chance once in a thousand connections.
const ENOUGH: u16 = 4;
/// Times that differ by less came from one clock, whichever that is.
const ALIKE: Nanos = Nanos::millis(1);

/// No timer of a cork is over sooner; ticks and jitter off.
pub(crate) const SOONEST: Nanos = Nanos::millis(190);

/// Such answers, and the times between those that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timed {
    count: u16,
    /// How late the soonest and the latest of them were.
    late: (Nanos, Nanos),
    /// Whole ticks of one length or the other, and all.
    on_tick: u16,
    times: u16,
    /// Those that differ from the one before, and which of them are whole ticks of each length.
    differ: u16,
    whole: [u16; 2],
    /// The last answer, if it was one; the time before it.
    last: Option<Nanos>,
    time: Nanos,
    /// What the tap beside the server says, where there is another one.
    told: Option<Option<u16>>,
}

at_rest! { Timed { count, late, on_tick, times, differ, whole, last, time, told } }

impl Timed {
    /// Takes an answer, and how late it was if that was as late as the timer.
    pub(super) fn take(&mut self, at: Nanos, late: Option<Nanos>) {
        let timed = late.is_some();
        if let Some(late) = late {
            let (soonest, latest) = if self.count == 0 { (late, late) } else { self.late };
            self.late = (soonest.min(late), latest.max(late));
        }
        let Some(last) = std::mem::replace(&mut self.last, timed.then_some(at)) else {
            self.count = self.count.saturating_add(timed.into());
            return;
        };
        if !timed || self.count == u16::MAX {
            return;
        }
        self.count += 1;
        let time = at - last;
        let before = std::mem::replace(&mut self.time, time);
        if time > LONGEST {
            return;
        }
        let whole = whole_ticks(time);
        self.times += 1;
        self.on_tick += u16::from(whole != [false; 2]);
        if (time - before).0.abs() > ALIKE.0 {
            self.differ += 1;
            self.whole.iter_mut().zip(whole).for_each(|(sum, is)| *sum += u16::from(is));
        }
    }

    /// How late the soonest and the latest of them were.
    pub(super) fn late(&self) -> (Nanos, Nanos) {
        self.late
    }

    /// The tap beside the server says so.
    pub(super) fn heed(&mut self, ticks: Option<u16>) {
        self.told = Some(ticks);
    }

    /// How often the time between two of them, each time another one, was a whole number of ticks, where that
    /// is no chance; zero: so late answers may be a cork's. `None`: they are not, or too few of all `answers`
    /// are so late. `near`: beside their sender every such time is seen.
    #[cold]
    #[inline(never)]
    pub(super) fn ticks(&self, answers: u32, near: bool) -> Option<u16> {
        if let Some(told) = self.told {
            return told;
        }
        let nearly_all = |some: u16, of: u16| u32::from(some) * 8 >= u32::from(of) * 7;
        if self.count < 3
            || u32::from(self.count) * 2 <= answers
            || near && !nearly_all(self.on_tick, self.times)
        {
            return None;
        }
        let [a, b] = self.whole;
        Some(Some(a.max(b)).filter(|&n| n >= ENOUGH && nearly_all(n, self.differ)).unwrap_or_default())
    }
}

/// Whether so much time is a whole number of ticks of each length.
fn whole_ticks(time: Nanos) -> [bool; 2] {
    let thirds = time.0 / 1_000 * 3;
    TICKS.map(|tick| (thirds + OFF).rem_euclid(tick) <= 2 * OFF)
}

/// Segments that left in the middle of a message as late as the timer of a cork: whether a kernel's clock let
/// them go, or their writer's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OnTick {
    /// The first of them, or the first after a long time.
    since: Nanos,
    /// How many left whole ticks after that, and how many did not; and how many of the former had begun to
    /// wait at no tick, or for another time than the one before, as a writer with a clock of its own does
    /// not.
    on: u16,
    off: u16,
    shown: u16,
    wait: Nanos,
}

at_rest! { OnTick { since, on, off, shown, wait } }

impl OnTick {
    /// Takes one that left at `at`, and had waited since `start`.
    pub(super) fn take(&mut self, at: Nanos, start: Nanos) {
        let before = std::mem::replace(&mut self.wait, at - start);
        let first = self.since == Nanos::ZERO;
        if first || at - self.since > LONGEST {
            self.since = at;
            return;
        }
        let on = whole_ticks(at - self.since);
        if on == [false; 2] {
            self.off = self.off.saturating_add(1);
            return;
        }
        self.on = self.on.saturating_add(1);
        let began = whole_ticks(start - self.since);
        let elsewhere = on.into_iter().zip(began).all(|(on, began)| !(on && began));
        let differs = (self.wait - before).0.abs() > ALIKE.0;
        self.shown = self.shown.saturating_add(u16::from(elsewhere || differs));
    }

    /// A kernel's clock let nearly all of them go, as no writer's can have.
    pub(super) fn is_timer(&self) -> bool {
        self.shown > 0 && u32::from(self.on) >= 7 * u32::from(self.off)
    }
}

/// How late the answer is, if that is as late as the timer of a cork whose program wrote at once: max(RTO,
/// 200 ms), where RTO is the round trip and 200 ms at the least (`tcp_probe0_base`, `__tcp_set_rto`), no
/// sooner but for the jitter of a trip, and no later than a jiffy and a step of the timer wheel
/// (`calc_index`: below 64 jiffies of 4 or 10 ms one, from there on eight of 4 or of 1), and what of a tick
/// that began when it came.
pub(super) fn timed(p: &Passage<'_>) -> Option<Nanos> {
    let late = p.waited() - p.path.own();
    if late < SOONEST || p.profile.os != Some("Linux") || !p.flow.is_small(p.segment.len) {
        return None;
    }
    let timer = p.flow.rto(p.path.rtt, p.profile).max(Nanos::millis(200));
    let jitter = p.path.own().part(8) + NO_WAIT;
    let step = Nanos::millis(if timer < Nanos::millis(252) { 10 } else { 32 });
    let soonest = Nanos::millis(200) + p.path.rtt - jitter;
    (late >= soonest && late <= timer + step + Nanos::millis(10)).then_some(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers at these milliseconds, in microseconds.
    fn of(answers: &[i64]) -> Timed {
        let mut timed = Timed::default();
        answers.iter().for_each(|&at| timed.take(Nanos::micros(at), Some(Nanos::millis(228))));
        timed
    }

    /// So many, each this much after the one before and more by the last.
    fn after(n: i64, first: i64, more: i64) -> Timed {
        of(&(0..n).map(|i| 7_123 + i * first + i * (i - 1) / 2 * more).collect::<Vec<_>>())
    }

    #[test]
    fn times_of_whole_ticks_are_a_timer() {
        // Four times that differ by whole ticks of 4 ms, of 10 ms, and by 10/3 ms.
        assert_eq!(after(5, 248_000, 4_000).ticks(5, true), Some(4));
        assert_eq!(after(5, 250_000, 10_000).ticks(5, false), Some(4));
        assert_eq!(after(5, 230_000, 3_333).ticks(5, true), Some(4));
        // One less may be chance.
        assert_eq!(after(4, 248_000, 4_000).ticks(4, true), Some(0));
        // The same time again and again says no more than one.
        assert_eq!(after(40, 248_000, 0).ticks(40, true), Some(0));
    }

    #[test]
    fn other_times_are_a_program_as_far_as_they_show() {
        let program = after(20, 249_900, 1_700);
        assert_eq!(program.ticks(20, true), None);
        assert_eq!(program.ticks(20, false), Some(0), "from afar they jitter");
        assert_eq!(after(2, 248_000, 0).ticks(2, true), None, "too few");
        assert_eq!(after(6, 248_000, 4_000).ticks(12, true), None, "most were sooner");
    }

    /// Segments whose waits began and ended at these microseconds.
    fn is_timer(waits: &[(i64, i64)]) -> bool {
        let mut seen = OnTick::default();
        waits.iter().for_each(|&(start, end)| seen.take(Nanos::micros(end), Nanos::micros(start)));
        seen.is_timer()
    }

    #[test]
    fn a_timer_of_the_kernel_ends_with_its_tick_whenever_it_began() {
        // Tails of answers, 12 ms after the last of them and 0.34 ms off its tick.
        assert!(is_timer(&[(1_142_700, 1_390_280), (1_410_620, 1_658_280)]));
        // A stream whose ACKs come at other times.
        assert!(is_timer(&[(10_000, 258_000), (258_000, 510_000), (510_000, 758_100)]));
        assert!(!is_timer(&[(1_142_700, 1_390_280)]), "once is chance");
        // A sleep of 280 ms drifts by what the program does else; a ticker does not, and begins at its own ticks.
        let sleeps = |each: i64| (0..8).map(|n| (7 + n * each, 7 + (n + 1) * each)).collect::<Vec<_>>();
        assert!(!is_timer(&sleeps(280_200)) && !is_timer(&sleeps(240_000)) && !is_timer(&sleeps(250_000)));
    }

    #[test]
    fn an_answer_that_was_sooner_is_no_beginning() {
        let mut timed = Timed::default();
        for (at, is) in [(0, true), (248, true), (300, false), (551, true), (799, true)] {
            timed.take(Nanos::millis(at), is.then_some(Nanos::millis(228)));
        }
        assert_eq!((timed.count, timed.times, timed.on_tick), (4, 2, 2));
    }
}
