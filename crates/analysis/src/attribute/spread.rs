//! What a window let through, spread over the time until the window was full: its sender's pace cost nothing
//! (rule 108).

use crate::release::Wait;
use crate::step::Step;
use tcpwhy_base::{Cause, End, Held, Nanos, Source};

/// The wait for a window that lies behind those that are looked at.
#[derive(Clone, Copy)]
struct Full {
    sender: End,
    flight: u32,
    /// The reader had not read.
    unread: bool,
    /// Since when it was full, and when the ACK came that opened it.
    since: Nanos,
    opened: Nanos,
}

impl Full {
    fn of(step: &Step, limit: Cause) -> Option<Full> {
        let (flight, unread) = match step.wait {
            Wait::Window { flight } => (flight, step.is_unread() == Some(true)),
            Wait::Closed { flight, .. } => (flight, step.is_unread() != Some(false)),
            Wait::Acked(acked) if limit == Cause::SlowReader => (acked.flight, true),
            Wait::Acked(acked) if limit == Cause::ReceiveWindow => (acked.flight, false),
            _ => return None,
        };
        Some(Full { sender: step.sender, flight, unread, since: step.start, opened: step.end - step.burst })
    }

    /// What left within a round trip of the ACK that opened the window did not move its edge: the ACK of it
    /// came later. Nor did what left in the last round before it was full, and waited in its reader's buffer.
    /// Before that its reader may have taken all that came.
    fn covers(&self, trip: Option<Nanos>, step: &Step) -> bool {
        let within = |from: Nanos, to: Nanos| trip.is_some_and(|trip| to - from <= trip);
        within(step.start, self.opened) || self.unread && within(step.end, self.since)
    }
}

/// Its sender's pace held it, or may have: whole packets, whose PSH need not end a write (rule 87). Whoever
/// wrote them then would have waited as well.
fn is_paced(step: &Step, limit: Cause) -> bool {
    let Some(pause) = step.pause() else { return limit == Cause::Pacing && step.source == Source::Inferred };
    let whole = pause.full && (step.may_go_on || !step.pushed);
    step.held == Some(Held::Other) && pause.there
        || step.source == Source::Inferred && (limit == Cause::Pacing || whole)
}

/// A window that is full before it opens again has let through what it could: what left before that in the
/// same round, at its sender's pace, would have waited for the same ACK. That goes for what a kernel says of
/// the pace as well. `trip`: the round trip, where it is known.
pub(super) fn give_pace_to_full_windows(trip: Option<Nanos>, steps: &mut [Step], limits: &[Cause]) {
    let mut full: Option<Full> = None;
    for (step, &limit) in steps.iter_mut().zip(limits).rev().filter(|(s, _)| !s.is_burst()) {
        if let Some(next) = Full::of(step, limit) {
            full = Some(next);
            continue;
        }
        let paced = is_paced(step, limit);
        let of_it = |f: &Full| paced && f.sender == step.sender && step.loss.is_none() && !step.is_turn();
        full = full.filter(of_it).filter(|f| f.covers(trip, step));
        if let Some(full) = full {
            step.rename(Wait::Spread { flight: full.flight, unread: full.unread });
        } else if paced && step.loss.is_none() && step.pause().is_some_and(|p| p.unread) {
            step.rename(Wait::Spread { flight: 0, unread: true });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::{Acked, Pause};

    const MS: fn(i64) -> Nanos = Nanos::millis;

    /// Waits of one sender, one after the other, each this long; which of them are spread over a window.
    fn spread(waits: &[(i64, Wait, Cause)]) -> Vec<bool> {
        let (mut at, mut steps, mut limits) = (MS(0), Vec::new(), Vec::new());
        for &(lasts, wait, limit) in waits {
            steps.push(crate::step::tests::step(End::Server, (at, at + MS(lasts)), wait));
            limits.push(limit);
            at += MS(lasts);
        }
        give_pace_to_full_windows(Some(MS(20)), &mut steps, &limits);
        steps.iter().map(|s| matches!(s.wait, Wait::Spread { .. })).collect()
    }

    #[test]
    fn what_leaves_within_a_trip_of_the_ack_that_opens_a_window_did_not_move_it() {
        let pause = Wait::Pause(Pause { full: true, ..Pause::default() });
        let acked = Wait::Acked(Acked { flight: 14_480, ..Acked::default() });
        let closed = Wait::Closed { window: 0, flight: 28_960, unread: Some(MS(0)) };
        let window = Wait::Window { flight: 28_960 };
        let paced = |lasts, wait| (lasts, wait, Cause::Pacing);
        let full = |lasts, wait| (lasts, wait, Cause::SlowStart);
        // The first began 21 ms before the ACK that opened the window.
        let waits = [paced(6, pause), paced(7, pause), full(8, window)];
        assert_eq!(spread(&waits), [false, true, false]);
        // Before a reader that was late what was sent in the last round lay there; before that it may have read all.
        assert_eq!(spread(&[paced(6, pause), paced(7, acked), full(8, closed)]), [true, true, false]);
        let waits = [paced(14, pause), paced(13, pause), paced(8, pause), full(30, closed)];
        assert_eq!(spread(&waits), [false, true, true, false]);
        // An ACK that came as the window was nearly full, and what a window limits like others.
        let reader = |limit| spread(&[paced(6, pause), (5, acked, limit)]);
        let limits = [Cause::SlowReader, Cause::ReceiveWindow, Cause::SendBuffer];
        assert_eq!(limits.map(reader), [vec![true, false], vec![true, false], vec![false; 2]]);
        // What else came between, and what no pace held.
        assert_eq!(spread(&[paced(2, pause), full(2, pause), full(8, window)]), [false; 3]);
        // Nobody had read all of it.
        let unread = Wait::Pause(Pause { full: true, unread: true, ..Pause::default() });
        assert_eq!(spread(&[paced(2, unread), full(2, unread)]), [true, false]);
    }
}
