//! Whether the sender of a message spaces its segments by a timer.

use crate::attribute::context::Context;
use crate::attribute::link::saturated;
use crate::attribute::woken::{PLATEAU, WOKEN, clocked, flight_of, is_cut, written};
use crate::step::Step;
use tcpwhy_base::{Cause, End, Nanos, Source};

/// So many packets of one size are whole segments by no chance: writers know nothing of segments (rule 113).
const WHOLE: u32 = 32;

/// How the sender of a message spaces its segments.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    each: Nanos,
    /// PSH on a packet of several segments ended no write.
    whole: bool,
}

/// A full segment that left in the middle of a run, with data in flight and no ACK; behind the end of a write
/// it would have been its writer that spaced them (rule 69). `whole`: PSH on a packet of several segments
/// ends none.
fn spaced(context: &Context, step: &Step, whole: bool) -> bool {
    // Seen from afar all that came is soon acknowledged; its sender does not know that yet.
    let known = context.paced[step.sender] && step.empty <= context.reaction[step.sender];
    let goes_on = !step.pushed || whole && step.may_go_on;
    goes_on && step.pause().is_some_and(|p| p.full && (p.outstanding > 0 || known))
}

/// The sender spaces its segments by a timer, so far apart: many such waits, and more of them than others, or
/// it is known for that (rule 87).
pub(super) fn pace(context: &Context, steps: &[Step], sender: End) -> Option<Pace> {
    let known = context.paced[sender];
    let whole = !known && context.near(sender) && are_whole(steps) && !saturated(context, steps, sender);
    let spaced = || steps.iter().filter(|s| spaced(context, s, whole));
    let paced: u32 = spaced().map(|s| s.releases).sum();
    if paced == 0 || paced < 8 && !known {
        return None;
    }
    let others = steps.iter().filter(|s| clocked(s) || written(s)).count();
    let time: i64 = spaced().map(|s| s.duration().0).sum();
    let shown = !context.written[sender]
        && 2 * paced as usize > others
        && !goes_by_the_writer(steps, |s| self::spaced(context, s, false));
    shown.then(|| Pace { each: Nanos(time / i64::from(paced)), whole })
}

/// Each wait that no ACK ended let go a packet of as many whole segments: of a writer's pieces the last is
/// partial, or what is held of it makes a later one larger.
fn are_whole(steps: &[Step]) -> bool {
    let waits = || steps.iter().filter(|s| written(s));
    let whole = |s: &Step| s.may_go_on && s.pause().is_some_and(|p| p.full) && s.source == Source::Inferred;
    let first = waits().next().map_or(0, |s| s.bytes / s.releases.max(1));
    let alike = |s: &Step| s.bytes == first.saturating_mul(s.releases);
    waits().map(|s| s.releases).sum::<u32>() >= WHOLE && waits().all(|s| whole(s) && alike(s))
}

/// What is paced takes its time by the byte: of what left before it (`tcp_update_skb_after_send`), or where a
/// link spaced it of its own. Where more made waits longer by less than half as much, a writer's clock went
/// on, whose held tails leave as soon as they are full (rule 83).
fn goes_by_the_writer(steps: &[Step], is_wait: impl Fn(&Step) -> bool) -> bool {
    let left = together(steps);
    let each = |n: f64, step: &Step| n / f64::from(step.releases.max(1));
    // The time of one wait, and the bytes that left before it and behind it.
    let of_one = |w: &[(u32, &Step)]| {
        let bytes = [0, 1].map(|of: usize| each(f64::from(w[of].0), w[of].1));
        (each(w[1].1.duration().0 as f64, w[1].1), bytes)
    };
    let waits = left.windows(2).filter(|w| is_wait(w[1].1)).map(of_one);
    let waits: Vec<(f64, [f64; 2])> = waits.collect();
    // How much longer those behind (or before) more were, beside how much more that was.
    let longer = |of: usize| {
        let usual = waits.iter().map(|w| w.1[of]).sum::<f64>() / waits.len() as f64;
        let mean = |large: bool| {
            let own = || waits.iter().filter(|w| (w.1[of] > usual) == large);
            let count = own().count();
            let sum = own().fold((0.0, 0.0), |(time, bytes), w| (time + w.0, bytes + w.1[of]));
            (count >= PLATEAU as usize).then(|| (sum.0 / count as f64, sum.1 / count as f64))
        };
        let (small, large) = (mean(false)?, mean(true)?);
        Some((large.0 / small.0 - 1.0) / (large.1 / small.1 - 1.0))
    };
    // Much shorter ones went at another pace: with it the size of packets grows (`tcp_tso_autosize`).
    let as_long = longer(0).is_some_and(|by| by.abs() < 0.5);
    as_long && longer(1).is_none_or(|by| by < 0.5)
}

/// A wait of such a sender: one that an ACK seems to have ended, too, if it was no longer than the others (rule 69).
pub(super) fn is_paced(context: &Context, step: &Step, pace: Pace) -> bool {
    let usual = step.duration() <= (pace.each + pace.each.part(8)).times(i64::from(step.releases));
    let goes_on = !step.pushed || pace.whole && step.may_go_on;
    spaced(context, step, pace.whole) || goes_on && clocked(step) && step.loss.is_none() && usual
}

/// Beside such a sender ACKs pass whose coming lets nothing go, as near to its segments as chance has it.
/// What a full buffer has let go since then is a third of what was in flight at least, for its writer is not
/// woken for less (`sk_stream_write_space`): less than that in most of the time was none of it (rule 113).
pub(super) fn goes_by_little(context: &Context, steps: &[Step], sender: End) -> Option<Cause> {
    if !context.paced[sender] {
        return None;
    }
    let (mut little, mut all) = (Nanos::ZERO, Nanos::ZERO);
    for (k, wait) in steps.iter().enumerate().filter(|(_, s)| clocked(s) && !is_cut(s)) {
        all += wait.duration();
        let (bytes, flight) = (let_go(wait, &steps[k + 1..]), u64::from(flight_of(wait)));
        if 3 * bytes < flight * u64::from(wait.releases.max(1)) {
            little += wait.duration();
        }
    }
    (little.times(2) > all).then(|| not_held(context, steps, sender))
}

/// What left at the end of a wait, and behind it in a quarter of its time at most from one to the next: who
/// had room for it writes it piece by piece.
fn let_go(wait: &Step, later: &[Step]) -> u64 {
    const MOST: usize = 64;
    let soon = later.iter().take(MOST).take_while(|s| s.duration().times(4) < wait.duration());
    soon.fold(u64::from(wait.bytes), |sum, s| sum + u64::from(s.bytes))
}

/// Beside the sender what an ACK lets go leaves at once (`tcp_ack` sends in its softirq), or when its writer
/// has woken up. Where no wait of a message ended so soon after its ACK, and an ACK would be as near to most
/// segments, they came by chance: a pace if writes went on, else the writer (rule 69).
pub(super) fn apart(context: &Context, steps: &[Step], sender: End) -> Option<Cause> {
    let waits = || steps.iter().filter(|s| clocked(s));
    let late = |s: &Step| {
        let each = Nanos(s.duration().0 / i64::from(s.releases.max(1)));
        let by = s.acked().map_or(Nanos::ZERO, |a| Nanos::micros(i64::from(a.late_us)));
        by > WOKEN + context.tick && by.times(8) > each && s.source == Source::Inferred
    };
    if !context.near(sender) || waits().map(|s| s.releases).sum::<u32>() < 2 * PLATEAU || !waits().all(late) {
        return None;
    }
    Some(not_held(context, steps, sender))
}

/// No limit held what left, though ACKs passed as if: it was written as it left, where writes ended, or
/// spaced, if all were packets of as many whole segments; else nobody can tell.
fn not_held(context: &Context, steps: &[Step], sender: End) -> Cause {
    let all = clocked_time(steps, |_| true);
    let mss = context.mss[sender];
    let each = |s: &Step| s.bytes / s.releases.max(1);
    let waits = steps.iter().filter(|s| clocked(s));
    let most = waits.map(each).filter(|n| n.is_multiple_of(mss)).max().unwrap_or(0);
    let alike = |s: &Step| s.bytes == most.saturating_mul(s.releases);
    if context.written[sender]
        || clocked_time(steps, |s| s.pushed).times(2) > all
        || goes_by_the_writer(steps, clocked)
    {
        Cause::SenderPause
    } else if clocked_time(steps, alike).times(8) > all.times(7) {
        Cause::Pacing
    } else {
        Cause::Unexplained
    }
}

/// How long ACKs seem to have held these, of those that no loss had made shorter.
fn clocked_time(steps: &[Step], which: impl Fn(&Step) -> bool) -> Nanos {
    let waits = steps.iter().filter(|s| clocked(s) && !is_cut(s) && which(s));
    waits.fold(Nanos::ZERO, |time, s| time + s.duration())
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

    /// A pair of segments is as much, be the second in a step of its own, as behind a pause, or in that of
    /// the first, as behind an ACK.
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

    /// Who has room for a third of what is in flight writes it piece by piece, each of which leaves in a step
    /// of its own.
    #[test]
    fn what_is_written_piece_by_piece_was_let_go_together() {
        let acked = |flight: u32| Wait::Acked(Acked { flight, ..Acked::default() });
        let long = |(bytes, millis): (u32, i64)| {
            let took = (Nanos::ZERO, Nanos::millis(millis));
            Step { bytes, ..crate::step::tests::step(End::Server, took, acked(24_576)) }
        };
        let steps = [long((1_408, 29)), long((8_000, 1)), long((15_168, 7)), long((1_408, 8)), long((99, 1))];
        assert_eq!([let_go(&steps[0], &steps[1..]), let_go(&steps[3], &steps[4..])], [24_576, 1_507]);
    }

    /// Packets of two and of three segments: in the same time by a writer's clock, which Nagle's algorithm
    /// makes uneven; by the byte, or less at a faster pace, by their sender (`tcp_tso_autosize`).
    #[test]
    fn more_in_the_same_time_was_written() {
        let pause = Wait::Pause(Pause { full: true, outstanding: 14_480, ..Pause::default() });
        let lasts = |micros: [i64; 2]| {
            let steps: Vec<Step> = (0..16)
                .map(|k| {
                    let last = step(pause, [2_896, 4_344][k / 2 % 2]);
                    // What left before a wait makes it longer.
                    Step { end: last.start + Nanos::micros(micros[(k + 3) / 2 % 2]), ..last }
                })
                .collect();
            goes_by_the_writer(&steps, |s| s.pause().is_some())
        };
        assert_eq!([[5_000, 5_000], [2_900, 4_350], [2_900, 860]].map(lasts), [true, false, false]);
    }
}
