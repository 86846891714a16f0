//! What the waits of a connection teach about its hosts.

use crate::findings::Acquitted;
use crate::profile::WAKE_UP;
use crate::release::acked::{is_no_initial_window, is_tail, shows_nodelay};
use crate::release::timed::{OnTick, SOONEST, Timed, timed};
use crate::release::value::{Acked, Release, Wait};
use crate::rest::at_rest;
use crate::track::{Ack, Passage};
use tcpwhy_base::{End, Ends, Nanos, Source};

/// Habits of the two hosts, as far as their waits have shown them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Habits {
    /// How often a partial segment followed another unacknowledged one: Nagle's algorithm was off.
    nodelay: Ends<u32>,
    /// Waits with the timing of Nagle's algorithm that ended at once with the ACK.
    nagle_holds: u32,
    /// What Nagle's algorithm seemed to hold, where it did.
    held: Option<Box<Ends<Held>>>,
    cork: Option<Box<Cork>>,
    /// The shortest wait for an answer of the server; zero: none yet.
    soonest_answer: Nanos,
    /// How often it answered.
    answers: u32,
    /// The largest flight of full segments whose ACK let the tail of the same write go (rule 54); zero if
    /// there was none.
    before_tail: Ends<u32>,
    /// Answers of the server as late as the timer of a cork, if there were any.
    timed: Option<Box<Timed>>,
}

at_rest! { Habits { nodelay, nagle_holds, held, cork, soonest_answer, answers, before_tail, timed } }

/// Waits that seemed to be holds of Nagle's algorithm: from the shortest to the longest.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    count: u32,
    /// How long after its ACK, one reaction time off, the segment left, and how long it had waited.
    late: (Nanos, Nanos),
    waited: (Nanos, Nanos),
    /// Its kernel says that one of them was held.
    told: bool,
    /// One was the tail of a write that no congestion window would have held (rule 54).
    classic: bool,
}

at_rest! { Held { count, late, waited, told, classic } }

impl Held {
    #[cold]
    fn take(&mut self, p: &Passage<'_>, release: &Release) {
        self.classic |= is_tail(p) && matches!(release.wait, Wait::Nagle { prompt: true, .. });
        let of = |a: &&Ack| release.ack.is_some_and(|frame| frame.get() == a.frame());
        let Some(ack) = p.acks.newest_first().find(of) else { return };
        let spread = |range: &mut (Nanos, Nanos), new: Nanos| {
            *range = if self.count == 0 { (new, new) } else { (range.0.min(new), range.1.max(new)) };
        };
        spread(&mut self.late, p.time - p.path.own() - ack.time);
        spread(&mut self.waited, p.waited());
        self.told |= release.source == Source::Kernel;
        self.count += 1;
    }

    /// Of a sender with Nagle's algorithm off: what was held leaves within a wake-up of its ACK, and moves
    /// with it; what comes when its writer writes does neither. Once is chance.
    fn is_refuted(&self) -> bool {
        let apart = self.count == 1 || self.late.0 > WAKE_UP || self.count >= 3 && self.goes_by_the_segment();
        self.count > 0 && !self.told && apart
    }

    /// They differ less in length than in their distance from the ACK: what an ACK lets go moves with it.
    fn goes_by_the_segment(&self) -> bool {
        (self.waited.1 - self.waited.0).times(2) < self.late.1 - self.late.0
    }

    /// Whether or not its sender has Nagle's algorithm off: so many that went by a clock of its writer's held
    /// nothing (rule 66). With two figures of a random spread one is half of the other often; with six it is
    /// not.
    fn is_clockwork(&self) -> bool {
        self.count >= 6 && !self.told && self.goes_by_the_segment()
    }
}

/// The timer of a cork.
#[derive(Clone, Copy, Debug, Default)]
struct Cork {
    /// Waits with its timing, and waits of small segments that a corked socket would have held longer, or not as long.
    seen: u16,
    against: u16,
    /// A kernel says that one was there.
    told: bool,
    /// Of the last of them, since the last segment, microseconds.
    whole: u32,
    /// The last of them, since the last ACK.
    wait: Nanos,
    /// Whose clock ended them.
    clock: OnTick,
}

at_rest! { Cork { seen, against, told, whole, wait, clock } }

/// What flew until the ACK of all of it. A stack that does not echo pure ACKs (rule 43) is not known for that
/// at first: what came a round trip later left with the ACK.
fn flight_before(p: &Passage<'_>, release: &Release) -> u32 {
    let last = p.flow.last.map_or(p.arrived.before.nxt, |l| l.una);
    match release.wait {
        Wait::Acked(Acked { flight, .. }) | Wait::Nagle { flight, .. } => flight,
        Wait::Pause(_) if p.waited() <= p.path.rtt + p.path.rtt.part(4) => {
            p.arrived.before.nxt.minus(last).max(0) as u32
        }
        _ => 0,
    }
}

impl Habits {
    /// How often `s` showed that it has Nagle's algorithm off.
    pub(crate) fn nodelay_shown(&self, s: End) -> u32 {
        self.nodelay[s]
    }

    /// `s` turned out to have Nagle's algorithm off, and what seemed to be held before did not follow its
    /// ACKs (rule 66).
    pub(crate) fn held_nothing(&self, s: End) -> bool {
        let refuted = |held: &Held| self.nodelay[s] > 0 && held.is_refuted() || held.is_clockwork();
        self.held.as_ref().is_some_and(|held| refuted(&held[s]))
    }

    /// What turned out to have held nothing.
    pub(crate) fn acquitted(&self) -> impl Iterator<Item = Acquitted> {
        let nagle =
            End::BOTH.into_iter().filter(|&s| self.held_nothing(s)).map(|s| Acquitted::Nagle(s.into()));
        nagle.chain(self.corked_nothing().then_some(Acquitted::Cork))
    }

    /// How often a segment left with the ACK that Nagle's algorithm waits for.
    pub(crate) fn nagle_holds(&self) -> u32 {
        self.nagle_holds
    }

    /// The tail of a write waits for the ACK of all before it although as much had flown before and was acknowledged: a
    /// congestion window would have grown by then, so the stack has the classic rule of Nagle (rule 54).
    pub(crate) fn holds_tails(&self, p: &Passage<'_>, flight: u32) -> bool {
        is_tail(p) && (flight <= self.before_tail[p.sender] || is_no_initial_window(p, flight))
    }

    /// It has shown that it has the classic rule of Nagle.
    pub(crate) fn is_classic(&self, s: End) -> bool {
        self.held.as_ref().is_some_and(|held| held[s].classic)
    }

    /// How often a segment waited as long as a cork's timer takes; never, if as many did not, or if its
    /// writer's clock may have let them go.
    pub(crate) fn cork_timers(&self) -> u32 {
        let corked = |c: &&Cork| c.seen > c.against && c.clock.is_timer();
        self.cork.as_deref().filter(corked).map_or(0, |c| u32::from(c.seen))
    }

    /// What seemed to be a cork was none: as many small segments did not wait for its timer, or it was no
    /// timer of a kernel (rule 25).
    pub(crate) fn corked_nothing(&self) -> bool {
        let others = |c: &Cork| c.seen > 0 && (c.seen <= c.against || !c.clock.is_timer()) && !c.told;
        self.cork.as_deref().is_some_and(others) && self.ticks(false).is_none_or(|ticks| ticks == 0)
    }

    /// A timer fires after the same time again and again; applications do not write so.
    /// Nor does it go by the segment before rather than by the ACK, by more than a jiffy (4 ms).
    pub(crate) fn may_be_cork(&self, wait: Nanos, whole: Nanos) -> bool {
        self.cork.as_deref().is_none_or(|c| {
            if c.seen == 0 {
                return true;
            }
            let by_ack = Nanos((wait - c.wait).0.abs());
            let by_segment = Nanos((whole - Nanos::micros(i64::from(c.whole))).0.abs());
            by_ack <= c.wait.part(8) && by_ack <= by_segment.times(2) + Nanos::millis(4)
        })
    }

    /// The shortest time that the server took to answer, if it has answered.
    pub(crate) fn soonest_answer(&self) -> Option<Nanos> {
        Some(self.soonest_answer).filter(|&a| a > Nanos::ZERO)
    }

    /// How often the server answered.
    pub(crate) fn answers(&self) -> u32 {
        self.answers
    }

    /// The server's answers are as late as the timer of a cork, or seem to be (rule 115): how often that was
    /// seen on its kernel's clock. `near`: the tap is beside it.
    #[inline]
    pub(crate) fn ticks(&self, near: bool) -> Option<u16> {
        self.timed.as_ref().and_then(|timed| timed.ticks(self.answers, near))
    }

    /// How late the soonest and the latest of those answers were.
    #[inline]
    pub(crate) fn late_as_timer(&self) -> (Nanos, Nanos) {
        self.timed.as_ref().map_or((Nanos::ZERO, Nanos::ZERO), |timed| timed.late())
    }

    /// The tap beside the server says that.
    pub(crate) fn heed_ticks(&mut self, ticks: Option<u16>) {
        if let Some(timed) = &mut self.timed {
            timed.heed(ticks);
        }
    }

    /// An answer that may be as late as a cork's timer, or one behind such.
    #[cold]
    fn takes_late(&mut self, passage: &Passage<'_>) {
        let late = timed(passage);
        if late.is_some() || self.timed.is_some() {
            self.timed.get_or_insert_default().take(passage.time, late);
        }
    }

    /// Learns from a release.
    #[inline]
    pub(crate) fn learn(&mut self, passage: &Passage<'_>, release: &Release) {
        if is_tail(passage) {
            let most = &mut self.before_tail[passage.sender];
            *most = flight_before(passage, release).max(*most);
        }
        if let Wait::Nagle { .. } = release.wait {
            self.held.get_or_insert_default()[passage.sender].take(passage, release);
        }
        match release.wait {
            Wait::Burst | Wait::Pause(_) if shows_nodelay(passage) => self.nodelay[passage.sender] += 1,
            // Between two messages it may be chance.
            Wait::Nagle { prompt: true, .. } if passage.since.speaker == passage.sender => {
                self.nagle_holds += 1
            }
            Wait::Turn { .. } if passage.sender == End::Server => {
                let soonest = self.soonest_answer().unwrap_or(passage.waited());
                self.answers = self.answers.saturating_add(1);
                self.soonest_answer = passage.waited().min(soonest).max(Nanos(1));
                if passage.waited() >= SOONEST || self.timed.is_some() {
                    self.takes_late(passage);
                }
            }
            Wait::Pause(pause) if pause.outstanding == 0 && passage.flow.is_small(passage.segment.len) => {
                let against = &mut self.cork.get_or_insert_default().against;
                *against = against.saturating_add(1);
            }
            Wait::CorkTimer { wait } => {
                let whole = u32::try_from(passage.waited().0 / 1_000).unwrap_or(u32::MAX);
                let cork = self.cork.get_or_insert_default();
                (cork.seen, cork.whole, cork.wait) = (cork.seen.saturating_add(1), whole, wait);
                cork.clock.take(passage.time, passage.since.time);
            }
            Wait::Cork { .. } => self.cork.get_or_insert_default().told = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small writes at the same distance from each other, whose ACKs drift: no timer goes by the segment
    /// before (rule 25).
    #[test]
    fn a_cork_goes_by_its_ack() {
        let seen = Cork { seen: 1, whole: 300_000, wait: Nanos::millis(250), ..Cork::default() };
        let habits = Habits { cork: Some(Box::new(seen)), ..Habits::default() };
        let (whole, ack) = (Nanos::millis(300), Nanos::millis(254));
        assert!(habits.may_be_cork(ack, whole) && !habits.may_be_cork(ack + Nanos::micros(1), whole));
        // The segment drifted by half of that.
        assert!(habits.may_be_cork(ack + Nanos::millis(1), whole + Nanos::micros(500)));
        assert!(!habits.may_be_cork(Nanos::millis(282), Nanos::millis(400)), "an eighth is no timer");
    }
}
