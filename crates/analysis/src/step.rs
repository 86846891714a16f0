//! Steps: the stretches between the data segments of an exchange, each with what ended it.
//!
//! A step is made when a data segment passes, from what released it; which cause it becomes is decided when the exchange
//! ends and the flights after it are known (`attribute`).

mod cuts;

use crate::release::{Acked, Pause, Release, Wait};
use crate::rest::{Frame, at_rest};
use crate::track::{CwndState, Passage, Repair, Repeat};
use std::num::NonZeroU64;
use tcpwhy_base::{End, Held, Nanos, Segment, Source};

/// A stretch of an exchange between two of its data segments (or several such, of one kind, within a round trip).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) wait: Wait,
    /// Who sent the segment that ended it.
    pub(crate) sender: End,
    pub(crate) cwnd: CwndState,
    /// What flew before the loss or idle time that made the congestion window smaller, or zero.
    pub(crate) before: u32,
    /// Time within that was no wait at all.
    pub(crate) burst: Nanos,
    /// Payload that passed during it, and how many waits it holds.
    pub(crate) bytes: u32,
    pub(crate) releases: u32,
    /// Payload of the segment that ended it.
    pub(crate) len: u32,
    /// A loss was being repaired until then; of a retransmission, since then.
    pub(crate) loss: Option<(Repair, Nanos)>,
    /// The pause is long enough to end a one-way transfer.
    pub(crate) split: bool,
    /// The frames of the segment before, of the ACK that released the one that ended it, and of that one.
    pub(crate) first_frame: u64,
    pub(crate) ack_frame: Option<NonZeroU64>,
    pub(crate) last_frame: u64,
    /// How long nothing was in flight at the tap when it ended, and whether the segment before ended a write.
    pub(crate) empty: Nanos,
    pub(crate) pushed: bool,
    /// All of the segment that ended it had passed before.
    pub(crate) again: bool,
    /// It had passed beside its receiver, whose host lost it behind the tap (rule 100).
    pub(crate) behind: bool,
    /// Which does not tell where its sender spaces its segments (rule 87).
    pub(crate) may_go_on: bool,
    /// All that had been written had left when it began, as Linux shows: what is not sent yet grows with what is written (rule 97).
    pub(crate) drained: bool,
    /// Who says what it was spent on.
    pub(crate) source: Source,
    /// The tap beside its sender, which is not this one, has judged it.
    pub(crate) across: bool,
    /// For how much of it data lay at the other end that its application did not read, where that end's kernel says so. Of a turn that the
    /// other tap has judged: at its own end, until the request was read.
    pub(crate) unread: Option<Nanos>,
    /// What held it back as the ACK came in that released it, where its sender's kernel says so.
    pub(crate) held: Option<Held>,
}

at_rest! {
    Step {
        start, end, wait, sender, cwnd, before, burst, bytes, releases, len, loss, split,
        first_frame as Frame, ack_frame as Frame, last_frame as Frame, empty, pushed, again, behind, may_go_on, drained,
        source, across, unread, held,
    }
}

impl Step {
    /// The step that a released segment ends; `frame` is that of the segment before.
    #[inline]
    pub(crate) fn new(passage: &Passage<'_>, release: &Release, frame: u64, split: bool) -> Step {
        Step {
            start: passage.since.time,
            end: passage.time,
            wait: release.wait,
            sender: passage.sender,
            cwnd: passage.flow.cwnd.state(),
            before: passage.flow.cwnd.before(),
            burst: Nanos::ZERO,
            bytes: passage.segment.len,
            releases: 1,
            len: passage.segment.len,
            loss: release.loss,
            split,
            first_frame: frame,
            ack_frame: release.ack,
            last_frame: passage.segment.frame,
            empty: passage.empty_for(),
            again: passage.arrived.new == 0,
            behind: passage.arrived.repeat == Repeat::DroppedBehind,
            pushed: passage.pushed(),
            may_go_on: passage.may_go_on(),
            drained: passage.had_sent_all(),
            source: release.source,
            across: false,
            unread: None,
            held: None,
        }
    }

    /// No pace set apart what it waited for (rule 149).
    pub(crate) fn was_written(&mut self) {
        if let Wait::Pause(pause) = &mut self.wait {
            pause.was_written();
        }
    }

    /// How long.
    #[inline]
    pub(crate) fn duration(&self) -> Nanos {
        self.end - self.start
    }

    /// How long nothing was in flight, as its sender saw it, whose reaction is known; all of it, where that is not known (of several waits).
    pub(crate) fn empty_at_sender(&self, reaction: Nanos) -> Nanos {
        let own = if self.across { Nanos::ZERO } else { reaction };
        if self.releases <= 1 && self.empty > own { self.empty - own } else { self.duration() }
    }

    /// It is the first of its message, whose payload counts elsewhere. It had been written when the step began, so that it waited for
    /// nobody who writes, and ends no transfer.
    pub(crate) fn opens(self) -> Step {
        let writer = matches!(self.wait, Wait::Pause(_) | Wait::CorkTimer { .. }) || self.is_turn();
        let wait = if writer { Wait::Freed } else { self.wait };
        let source = if wait == Wait::Freed { Source::Inferred } else { self.source };
        Step { wait, source, split: false, ..self.without_payload() }
    }

    /// The state of its sender was that of this step.
    pub(crate) fn goes_by(&mut self, other: &Step) {
        (self.cwnd, self.before) = (other.cwnd, other.before);
    }

    /// A loss was being repaired as in this step.
    pub(crate) fn loses_as(&mut self, other: &Step) {
        self.loss = other.loss;
    }

    /// How long payload of its connection was on its way while it waited for an answer, or can have been.
    pub(crate) fn on_the_way(&self) -> Nanos {
        match self.wait {
            Wait::Turn { on_the_way, .. } => on_the_way,
            _ => Nanos::ZERO,
        }
    }

    /// Who answers had the request before: none of the wait was on the way (rule 117).
    pub(crate) fn was_at_work(&mut self) {
        let wait = self.duration();
        if let Wait::Turn { seen, .. } = &mut self.wait {
            *seen = Some(wait);
        }
    }

    /// Of the wait for an answer the payload of its connection can have been on its way for so long.
    pub(crate) fn can_have_crossed_for(&mut self, longest: Nanos) {
        if let Wait::Turn { on_the_way, .. } = &mut self.wait {
            *on_the_way = longest;
        }
    }

    /// This segment ended it at `t`.
    pub(crate) fn ends_with(&mut self, segment: &Segment, t: Nanos) {
        (self.end, self.bytes) = (t, segment.len);
    }

    /// What it was spent on turned out to be another thing.
    pub(crate) fn rename(&mut self, wait: Wait) {
        self.wait = wait;
    }

    /// What a cork held until then held nobody up: it was its writer who paused (rule 151).
    pub(crate) fn was_its_writers(&self) -> Step {
        Step { wait: Wait::Pause(Pause::default()), source: Source::Inferred, ..*self }
    }

    /// Nothing begins with it.
    pub(crate) fn goes_on(&mut self) {
        self.split = false;
    }

    /// It belongs to a loss that was repaired until it ended.
    pub(crate) fn repairs(&mut self, kind: Repair) {
        self.loss = Some((kind, self.end));
    }

    /// The loss was of another kind than was thought.
    pub(crate) fn rename_loss(&mut self, kind: Repair) {
        if let Wait::Loss { repair, .. } = &mut self.wait {
            *repair = kind;
        }
        if let Some(loss) = &mut self.loss {
            loss.0 = kind;
        }
    }

    /// The payload of the segment that ended it counts elsewhere.
    pub(crate) fn without_payload(self) -> Step {
        Step { bytes: 0, ..self }
    }

    /// Its segments followed each other at once.
    #[inline]
    pub(crate) fn is_burst(&self) -> bool {
        self.wait == Wait::Burst
    }

    /// For most of it data lay unread at the other end, or not, where that end's kernel says so.
    pub(crate) fn is_unread(&self) -> Option<bool> {
        self.unread.map(|unread| unread.times(2) > self.duration())
    }

    /// The other side had spoken last.
    #[inline]
    pub(crate) fn is_turn(&self) -> bool {
        matches!(self.wait, Wait::Turn { .. } | Wait::Behind { .. } | Wait::NeverCame { .. })
    }

    /// It ended with a retransmission.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self.wait, Wait::Loss { .. })
    }

    /// How it repairs a loss, if it ended with a retransmission.
    pub(crate) fn repair(&self) -> Option<Repair> {
        match self.wait {
            Wait::Loss { repair, .. } => Some(repair),
            _ => None,
        }
    }

    /// Of a wait that an ACK ended.
    #[inline]
    pub(crate) fn acked(&self) -> Option<&Acked> {
        match &self.wait {
            Wait::Acked(acked) => Some(acked),
            _ => None,
        }
    }

    /// Of a wait for the writer.
    #[inline]
    pub(crate) fn pause(&self) -> Option<&Pause> {
        match &self.wait {
            Wait::Pause(pause) => Some(pause),
            _ => None,
        }
    }

    /// Nothing came for so long, and nothing else is known of it but that it may have been on its way.
    pub(crate) fn was_silent_for(&self, at_least: Nanos) -> bool {
        matches!(self.wait, Wait::Pause(_) | Wait::OnItsWay { .. }) && self.duration() >= at_least
    }

    /// Takes a burst from `from` to `t` into this step, as [`Step::absorb`] does, without a step of its own: `segment` of `s`
    /// ended it, and no loss was being repaired.
    #[inline(always)]
    pub(crate) fn absorb_burst(&mut self, s: End, from: Nanos, t: Nanos, segment: &Segment) -> bool {
        let takes = match self.wait {
            Wait::Acked(_)
            | Wait::Window { .. }
            | Wait::Standing { .. }
            | Wait::OnItsWay { .. }
            | Wait::Burst => true,
            Wait::Pause(_) => t == from,
            _ => false,
        };
        let goes_on = self.sender == s && self.end == from && self.source == Source::Inferred;
        if !takes || !goes_on || self.loss.is_some() {
            return false;
        }
        self.burst += t - from;
        self.end = t;
        self.bytes = self.bytes.saturating_add(segment.len);
        self.last_frame = self.last_frame.max(segment.frame);
        true
    }

    /// Both are judged by the same.
    fn is_told_alike(&self, other: &Step) -> bool {
        (self.source, self.across, self.held) == (other.source, other.across, other.held)
    }

    /// Takes `next` into this step if both are waits of the same kind within one round trip.
    #[inline]
    pub(crate) fn absorb(&mut self, next: &Step, rtt: Nanos) -> bool {
        if next.sender != self.sender || next.split || self.end != next.start || !self.is_told_alike(next) {
            return false;
        }
        let burst = next.is_burst();
        let same = match (&mut self.wait, &next.wait) {
            (
                Wait::Acked(_)
                | Wait::Window { .. }
                | Wait::Standing { .. }
                | Wait::OnItsWay { .. }
                | Wait::Burst,
                Wait::Burst,
            ) => self.loss == next.loss,
            (Wait::Pause(_), Wait::Burst) => next.duration() == Nanos::ZERO && self.loss == next.loss,
            (Wait::Acked(mine), Wait::Acked(theirs)) => {
                let same = next.cwnd == self.cwnd
                    && next.loss.is_some() == self.loss.is_some()
                    && next.end - self.start <= rtt;
                if same {
                    mine.join(theirs);
                }
                same
            }
            (Wait::Window { flight: mine }, Wait::Window { flight: theirs }) => {
                let same = next.cwnd == self.cwnd
                    && next.loss.is_some() == self.loss.is_some()
                    && next.end - self.start <= rtt;
                if same {
                    *mine = (*mine).max(*theirs);
                }
                same
            }
            (Wait::Standing { under_way: mine }, Wait::Standing { under_way: theirs }) => {
                let same = self.loss.is_none()
                    && next.loss.is_none()
                    && next.end - self.start <= rtt.max(Nanos::millis(1));
                if same {
                    *mine = (*mine).min(*theirs);
                }
                same
            }
            (Wait::OnItsWay { under_way: mine, even }, Wait::OnItsWay { under_way: theirs, even: also }) => {
                let same = even == also
                    && self.loss.is_none()
                    && next.loss.is_none()
                    && next.end - self.start <= rtt.max(Nanos::millis(1));
                if same {
                    *mine = (*mine).max(*theirs);
                }
                same
            }
            // An application that writes little by little: one step per round trip or millisecond.
            (Wait::Pause(mine), Wait::Pause(theirs)) => {
                let same = mine.there == theirs.there
                    && self.loss.is_none()
                    && next.loss.is_none()
                    && next.end - self.start <= rtt.max(Nanos::millis(1));
                if same {
                    mine.join(theirs);
                }
                same
            }
            _ => false,
        };
        if !same {
            return false;
        }
        if burst {
            self.burst += next.duration();
        } else {
            self.empty = self.empty.min(next.empty);
            self.drained &= next.drained;
            self.releases += next.releases;
            self.burst += next.burst;
            self.ack_frame = self.ack_frame.or(next.ack_frame);
        }
        if let (Some(mine), Some(theirs)) = (self.loss.as_mut(), next.loss) {
            mine.1 = theirs.1;
        }
        self.unread = self.unread.zip(next.unread).map(|(mine, theirs)| mine + theirs);
        self.end = next.end;
        self.bytes = self.bytes.saturating_add(next.bytes);
        self.last_frame = self.last_frame.max(next.last_frame);
        true
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::track::Repair;

    const MS: fn(i64) -> Nanos = Nanos::millis;

    pub(crate) fn step(sender: End, (start, end): (Nanos, Nanos), wait: Wait) -> Step {
        Step {
            start,
            end,
            wait,
            sender,
            cwnd: CwndState::Growing,
            before: 0,
            burst: Nanos::ZERO,
            bytes: 100,
            releases: 1,
            len: 100,
            loss: None,
            split: false,
            first_frame: 1,
            ack_frame: None,
            last_frame: 2,
            empty: Nanos::ZERO,
            pushed: true,
            again: false,
            behind: false,
            may_go_on: false,
            drained: false,
            source: Source::Inferred,
            across: false,
            unread: None,
            held: None,
        }
    }

    /// The short cut of bursts does what a step of its own would do, for every kind of step before it.
    #[test]
    fn a_burst_is_absorbed_as_a_step_of_its_own() {
        let waits = [
            Wait::Burst,
            Wait::Acked(Acked { flight: 7, ..Acked::default() }),
            Wait::Window { flight: 9 },
            Wait::Pause(Pause::default()),
            Wait::Freed,
            Wait::Standing { under_way: MS(4) },
            Wait::OnItsWay { under_way: MS(4), even: true },
            Wait::Blind,
            Wait::Closed { window: 1, flight: 2, unread: None },
            Wait::Loss { repair: Repair::Fast, again: false },
            Wait::CorkTimer { wait: MS(200) },
        ];
        let segment = Segment { len: 1_448, frame: 3, ..Segment::EMPTY };
        let mut absorbed = 0;
        for wait in waits {
            for sender in End::BOTH {
                for (from, to) in [(MS(5), MS(5)), (MS(5), MS(6)), (MS(4), MS(6))] {
                    for loss in [None, Some((Repair::Timeout, MS(5)))] {
                        for source in [Source::Inferred, Source::Kernel] {
                            let before = Step { loss, source, ..step(sender, (MS(1), MS(5)), wait) };
                            let burst = Step {
                                bytes: segment.len,
                                len: segment.len,
                                last_frame: segment.frame,
                                ..step(End::Client, (from, to), Wait::Burst)
                            };
                            let (mut whole, mut short) = (before, before);
                            let taken = whole.absorb(&burst, MS(10));
                            assert_eq!(
                                short.absorb_burst(End::Client, from, to, &segment),
                                taken,
                                "{before:?}"
                            );
                            assert_eq!(format!("{short:?}"), format!("{whole:?}"));
                            absorbed += u32::from(taken);
                        }
                    }
                }
            }
        }
        // Five kinds take bursts, in two stretches that join; a pause only takes what came in the same moment.
        assert_eq!(absorbed, 5 * 2 + 1);
    }
}
