//! Whether the sender of a message spaces its segments by a timer.

use crate::attribute::context::Context;
use crate::attribute::woken::{PLATEAU, clocked, written};
use crate::step::Step;
use tcpwhy_base::{End, Nanos};

/// A full segment that left in the middle of a run, with data in flight and no ACK; behind the end of a write it would have been its
/// writer that spaced them (rule 69).
fn spaced(context: &Context, step: &Step) -> bool {
    // Seen from afar all that came is soon acknowledged; its sender does not know that yet.
    let known = context.paced[step.sender] && step.empty <= context.reaction[step.sender];
    !step.pushed && step.pause().is_some_and(|p| p.full && (p.outstanding > 0 || known))
}

/// The sender spaces its segments by a timer, so far apart: many such waits, and more of them than others, or it is known for that (rule 87).
pub(super) fn pace(context: &Context, steps: &[Step], sender: End) -> Option<Nanos> {
    let known = context.paced[sender];
    let spaced = || steps.iter().filter(|s| spaced(context, s));
    let paced: u32 = spaced().map(|s| s.releases).sum();
    if paced == 0 || paced < 8 && !known {
        return None;
    }
    let others = steps.iter().filter(|s| clocked(s) || written(s)).count();
    let time: i64 = spaced().map(|s| s.duration().0).sum();
    let shown = 2 * paced as usize > others && !goes_by_the_writer(context, steps);
    shown.then(|| Nanos(time / i64::from(paced)))
}

/// What is paced takes its time by the byte: of what left before it (`tcp_update_skb_after_send`), or where a link spaced it of its own. Where twice as
/// much made no wait longer, a writer's clock went on, whose held tails leave as soon as they are full (rule 83).
fn goes_by_the_writer(context: &Context, steps: &[Step]) -> bool {
    let left = together(steps);
    let waits = || left.windows(2).filter(|w| spaced(context, w[1].1) && w.iter().all(|l| l.1.releases == 1));
    let longer = |of: usize| {
        let (least, most) = waits().fold((u32::MAX, 0), |(a, b), w| (a.min(w[of].0), b.max(w[of].0)));
        let mean = |large: bool| {
            let own = waits().filter(|w| (w[of].0 / 2 >= least) == large);
            let (time, count) = own.fold((0, 0), |(t, n), w| (t + w[1].1.duration().0, n + 1));
            (count >= i64::from(PLATEAU)).then(|| time / count)
        };
        let (small, large) = (mean(false)?, mean(true)?);
        (most / 2 >= least).then_some(2 * large >= 3 * small)
    };
    longer(0) == Some(false) && longer(1) != Some(true)
}

/// A wait of such a sender: one that an ACK seems to have ended, too, if it was no longer than the others (rule 69).
pub(super) fn is_paced(context: &Context, step: &Step, each: Nanos) -> bool {
    let usual = step.duration() <= (each + each.part(8)).times(i64::from(step.releases));
    spaced(context, step) || !step.pushed && clocked(step) && step.loss.is_none() && usual
}

/// What left together: each wait, and how many bytes left behind it, with what followed at once.
fn together(steps: &[Step]) -> Vec<(u32, &Step)> {
    let mut left: Vec<(u32, &Step)> = Vec::new();
    for step in steps {
        match left.last_mut().filter(|_| step.is_burst()) {
            Some(last) => last.0 = last.0.saturating_add(step.bytes),
            None => left.push((step.bytes, step)),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::{Acked, Pause, Wait};

    fn step(wait: Wait, bytes: u32) -> Step {
        let took = (Nanos::ZERO, Nanos::millis(3));
        let plain = crate::step::tests::step(End::Server, took, wait);
        Step { bytes, len: 1_448, pushed: false, may_go_on: true, ..plain }
    }

    /// A pair of segments is as much, be the second in a step of its own, as behind a pause, or in that of the first, as behind an ACK.
    #[test]
    fn what_follows_at_once_left_together() {
        let pause = Wait::Pause(Pause { full: true, ..Pause::default() });
        let acked = Wait::Acked(Acked { flight: 14_480, ..Acked::default() });
        let steps = [
            step(pause, 1_448),
            step(Wait::Burst, 1_448),
            step(acked, 2_896),
            step(pause, 1_448),
            step(Wait::Burst, 1_448),
        ];
        let bytes: Vec<u32> = together(&steps).iter().map(|left| left.0).collect();
        assert_eq!(bytes, [2_896; 3]);
    }
}
