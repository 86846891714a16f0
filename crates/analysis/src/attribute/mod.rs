//! From steps to spans: which cause each stretch of an exchange has, and how much of it the link's rate explains.

mod avoiding;
mod clock;
mod context;
mod corked;
mod doubts;
mod emit;
mod fold;
mod limits;
mod link;
mod losses;
mod pace;
mod pieces;
mod plain;
mod spread;
mod turns;
mod waits;
mod within;
mod woken;

pub(crate) use context::{Carry, Context};
pub(crate) use emit::HOSTS;
pub(crate) use fold::{fold, join_neighbours};
pub(crate) use link::least_beyond;
pub(crate) use losses::never_repaired;
pub(crate) use pieces::Pieces;
pub(crate) use plain::{PlainExchange, plain};

use crate::profile::{WAKE_UP, delayed_from};
use crate::release::{Acked, Pause, Wait};
use crate::result::Span;
use crate::step::Step;
use crate::track::{Repair, was_free};
use tcpwhy_base::{Cause, End, Nanos, Source};

/// Appends the spans of `steps` to `spans`; empties `steps`. `limits` is room that is used again.
pub(crate) fn attribute(
    context: &Context,
    steps: &mut Vec<Step>,
    carry: &mut Carry,
    spans: &mut Vec<Span>,
    limits: &mut Vec<Cause>,
) {
    if steps.iter().all(is_plain) {
        attribute_plain(context, steps, carry, spans, limits);
    } else {
        attribute_any(context, steps, carry, spans, limits);
    }
    steps.clear();
    join_neighbours(spans);
}

/// Nothing that follows changes what it is called, and no limit shows in it.
fn is_plain(step: &Step) -> bool {
    matches!(step.wait, Wait::Turn { .. } | Wait::Burst)
}

/// What [`attribute_any`] makes of requests and responses that nothing held up.
fn attribute_plain(
    context: &Context,
    steps: &mut [Step],
    carry: &mut Carry,
    spans: &mut Vec<Span>,
    limits: &mut Vec<Cause>,
) {
    let checked = cfg!(debug_assertions).then(|| (*carry, spans.clone()));
    for step in steps.iter() {
        carry.turns_to(step);
        waits::spans_of(context, step, Cause::SlowStart, carry, spans);
    }
    if let Some((mut carry_of_any, mut spans_of_any)) = checked {
        attribute_any(context, steps, &mut carry_of_any, &mut spans_of_any, limits);
        debug_assert_eq!(format!("{carry:?} {spans:?}"), format!("{carry_of_any:?} {spans_of_any:?}"));
    }
}

fn attribute_any(
    context: &Context,
    steps: &mut [Step],
    carry: &mut Carry,
    spans: &mut Vec<Span>,
    limits: &mut Vec<Cause>,
) {
    forget_what_was_pushed(context, steps);
    give_waits_to_the_queue(context, steps);
    forget_waits_below_the_tick(context, steps);
    give_free_waits_to_the_writer(context, steps);
    give_tails_to_nagle(context, steps);
    // The rules about holds have nothing to ask where there is none.
    let holds = steps.iter().any(|s| matches!(s.wait, Wait::Nagle { .. } | Wait::Freed));
    if holds || cfg!(debug_assertions) {
        let before = (!holds).then(|| format!("{steps:?}"));
        give_filled_holds_to_the_limit(context, steps);
        give_hidden_holds_to_the_writer(context, steps, &[]);
        give_equal_holds_to_the_writer(context, steps);
        debug_assert!(before.is_none_or(|before| before == format!("{steps:?}")));
    }
    give_probe_waits_to_the_loss(context, steps);
    within::judge_waits_within(context, steps);
    let full_or_paced = limits::flight_limits(context, steps, carry, limits);
    if holds || cfg!(debug_assertions) {
        let before = (!holds).then(|| format!("{steps:?}"));
        give_hidden_holds_to_the_writer(context, steps, limits);
        debug_assert!(before.is_none_or(|before| before == format!("{steps:?}")));
    }
    if full_or_paced {
        spread::give_pace_to_full_windows(context.measured.then_some(context.rtt), steps, limits);
    }
    corked::spans_of_all(context, steps, limits, carry, spans);
}

/// Their sender turned out to space them, so that PSH of several segments ended no write (rule 87).
fn forget_what_was_pushed(context: &Context, steps: &mut [Step]) {
    if !End::BOTH.iter().any(|&end| context.paced[end]) {
        return;
    }
    for step in steps.iter_mut().filter(|s| s.may_go_on && context.paced[s.sender]) {
        step.pushed = false;
    }
}

/// What its sender builds stands in a queue of its host, so that a segment that no ACK let go, behind whole
/// ones, and that may have been built before the one before it passed, stood there as well: a tick of the
/// stamps is too coarse to tell, or nothing was known yet (rule 95).
fn give_waits_to_the_queue(context: &Context, steps: &mut [Step]) {
    if !End::BOTH.iter().any(|&end| context.stands[end]) {
        return;
    }
    let stood = |s: &Step| s.pause().is_some_and(|p| p.stood);
    for step in steps.iter_mut().filter(|s| context.stands[s.sender] && stood(s)) {
        if (step.may_go_on || !step.pushed) && step.source == Source::Inferred && step.loss.is_none() {
            step.rename(Wait::Standing { under_way: Nanos::ZERO });
        }
    }
}

/// The capture's clock turned out to be coarse after they were judged: waits of up to two ticks are none
/// (rule 50); of one tick while too few packets have passed to be sure of the clock.
fn forget_waits_below_the_tick(context: &Context, steps: &mut [Step]) {
    if context.may_tick == Nanos::ZERO {
        return;
    }
    let each = context.tick.times(2).max(context.may_tick);
    // Of several pauses in one step, on average; of others the first is the longest.
    let waits = |s: &Step| if s.pause().is_some() { i64::from(s.releases.max(1)) } else { 1 };
    let ticks = |s: &Step| each.times(waits(s));
    // As long as there is no more than a doubt, only the application is let off.
    let sure = context.tick > Nanos::ZERO;
    let judged = |s: &Step| s.source == Source::Inferred && (sure || s.pause().is_some());
    let short = |s: &&mut Step| s.duration() <= ticks(s) && judged(s);
    for step in steps.iter_mut().filter(short) {
        if !step.is_turn() && !step.is_loss() && step.loss.is_none() {
            step.rename(Wait::Burst);
        }
    }
}

/// The sender turned out to react sooner than was known when it was judged: nothing was in flight for longer (rule 49).
fn give_free_waits_to_the_writer(context: &Context, steps: &mut [Step]) {
    for step in steps.iter_mut().filter(|s| s.source == Source::Inferred && s.empty > Nanos::ZERO) {
        let ended = step.across || context.near(step.sender) || step.pushed;
        let held = match step.wait {
            Wait::Acked(_) | Wait::Nagle { .. } => true,
            Wait::Pause(pause) => pause.flight > 0,
            _ => false,
        };
        let own = if step.across { Nanos::ZERO } else { context.reaction[step.sender] };
        if held && was_free(step.empty, own, ended) {
            step.rename(Wait::Pause(Pause::default()));
        }
    }
}

/// Who has shown the classic rule of Nagle had it before: the tail of a write that left with the ACK of all
/// before it was held, though that was the first flight, after which a congestion window grows as well (rule
/// 54).
fn give_tails_to_nagle(context: &Context, steps: &mut [Step]) {
    for step in steps.iter_mut().filter(|s| s.source == Source::Inferred && context.classic[s.sender]) {
        let Some(&Acked { flight, delay, late_us, .. }) = step.acked().filter(|a| a.tail) else { continue };
        let delayed = delay > delayed_from(context.rtt);
        let first = flight.min(context.mss[step.sender]);
        step.rename(Wait::Nagle { first, flight, delay, delayed, late_us, prompt: true });
    }
}

/// A hold by Nagle that ended before the application wrote again delayed nothing: a write that is held
/// returns at once, so that the next one comes when it would have come anyway. The critical path goes through
/// the writer, and so it does for the holds before that one: nothing but its own time stood between its
/// writes.
fn give_hidden_holds_to_the_writer(context: &Context, steps: &mut [Step], limits: &[Cause]) {
    // The writer that the next wait was for, and how long it was.
    let mut next: Option<(End, Nanos)> = None;
    for (k, step) in steps.iter_mut().enumerate().rev().filter(|s| !s.1.is_burst()) {
        match step.wait {
            Wait::Nagle { first, .. } => {
                let hidden = next.filter(|n| n.0 == step.sender);
                if hidden.is_some() {
                    step.rename(Wait::Pause(Pause { outstanding: first, ..Pause::default() }));
                }
                // A hold before this one is hidden by a wait that no wake-up accounts for.
                next = hidden.filter(|n| n.1 > WAKE_UP);
            }
            // What came late behind its ACK in such a run was written late.
            Wait::Freed if next.is_some_and(|n| n.0 == step.sender) => {
                step.rename(Wait::Pause(Pause::default()))
            }
            Wait::Pause(pause) if pause.flight == 0 && !pause.there => {
                next = Some((step.sender, step.duration()))
            }
            // An ACK that was there by chance.
            Wait::Acked(_) if limits.get(k) == Some(&Cause::SenderPause) => {
                next = Some((step.sender, step.duration()))
            }
            // A timer that is none.
            Wait::CorkTimer { .. } if context.cork_timers < 2 => next = Some((step.sender, step.duration())),
            _ => next = None,
        }
    }
}

/// What is held grows with what is written meanwhile, and what leaves partial empties the queue. A writer
/// whom no hold stops and whose clock is a little faster than the ACKs writes twice in one of n holds unless
/// it is faster by less than 1 in n + 1; one that is a little slower writes by chance within `late` after
/// each ACK, once in hold / late. Where the second is the likelier, holds of one size were its own clock
/// (rule 81).
fn give_equal_holds_to_the_writer(context: &Context, steps: &mut [Step]) {
    let mut start = 0;
    while start < steps.len() {
        if !is_hold(&steps[start]) {
            start += 1;
            continue;
        }
        let (sender, len) = (steps[start].sender, steps[start].len);
        let same = |s: &&Step| {
            s.is_burst() && s.sender == sender
                || s.sender == sender && s.len == len && !s.is_turn() && is_hold(s)
        };
        let row = steps[start..].iter().take_while(same).count();
        let inferred = |s: &&mut Step| s.source == Source::Inferred;
        if is_by_chance(context, &steps[start..start + row], sender) {
            for step in steps[start..start + row].iter_mut().filter(|s| is_hold(s)).filter(inferred) {
                let Wait::Nagle { first, .. } = step.wait else { continue };
                step.rename(Wait::Pause(Pause { outstanding: first, ..Pause::default() }));
            }
        }
        start += row.max(1);
    }
}

/// So many holds of one size are likelier those of a writer that happens to write just after the ACKs.
fn is_by_chance(context: &Context, row: &[Step], sender: End) -> bool {
    // What no tap can tell from nothing: an eighth of the way to the sender is jitter.
    let jitter = context.reaction[sender].part(8).max(Nanos::micros(50)) + context.tick;
    let holds = || row.iter().filter(|s| is_hold(s));
    let far = context.per_byte[sender].filter(|_| !context.near(sender)).unwrap_or(0.0);
    let late = holds().filter_map(|s| match s.wait {
        Wait::Nagle { late_us, .. } => {
            Some((Nanos::micros(i64::from(late_us)) - Nanos((far * f64::from(s.len)) as i64)).floor0())
        }
        _ => None,
    });
    let late = late.max().unwrap_or_default().max(jitter);
    let least = holds().map(Step::duration).min().unwrap_or_default();
    let count = holds().map(|s| i64::from(s.releases)).sum::<i64>();
    count >= i64::from(woken::PLATEAU) && late.times(count + 1) > least
}

/// With an ACK that was not delayed.
fn is_hold(step: &Step) -> bool {
    matches!(step.wait, Wait::Nagle { delayed: false, .. })
}

/// What is held partial grows with what is written behind it. Where full segments follow at once, they had
/// not been written when the ACK came: the writer had waited for it as well, for room in the buffer (rule
/// 56).
fn give_filled_holds_to_the_limit(context: &Context, steps: &mut [Step]) {
    for i in 0..steps.len() {
        let Wait::Nagle { flight, .. } = steps[i].wait else { continue };
        let mss = context.mss[steps[i].sender];
        let follows = |n: &&Step| n.is_burst() && n.sender == steps[i].sender && n.bytes >= mss;
        let inferred = steps[i].source == Source::Inferred;
        let filled = || {
            steps.get(i + 1).filter(follows).is_some() || is_as_before(&steps[..i], &steps[i], flight, mss)
        };
        if inferred && flight >= 2 * mss && filled() {
            steps[i].rename(Wait::Acked(Acked { flight, ..Acked::default() }));
        }
    }
}

/// Three flights of the message before were of the same size, and their waits no holds: what limited those
/// limits this one as well (rule 19).
fn is_as_before(before: &[Step], step: &Step, flight: u32, mss: u32) -> bool {
    let same = |s: &&Step| s.acked().is_some_and(|a| a.flight.abs_diff(flight) < mss);
    let waits =
        before.iter().rev().take_while(|s| s.sender == step.sender && !s.is_turn()).filter(|s| !s.is_burst());
    waits.take(woken::PLATEAU as usize).filter(same).count() == woken::PLATEAU as usize
}

/// What the first of these steps waited for, if that was a probe of the tail with new data (RFC 8985, 7.3),
/// one full segment, in the middle of a wait for an ACK that was late but lost nothing: the rest of that
/// wait.
fn interrupted(context: &Context, steps: &[Step], outstanding: u32) -> Option<Wait> {
    let [probe, next, ..] = steps else { return None };
    let mss = context.mss[probe.sender];
    let is_probe = probe.bytes == mss
        && outstanding >= 2 * mss
        && next.sender == probe.sender
        && probe.duration() <= context.timeout[probe.sender];
    let late = match &next.wait {
        Wait::Acked(acked) => acked.unread.is_some(),
        Wait::Closed { unread, .. } => unread.is_some(),
        _ => false,
    };
    (is_probe && late).then_some(next.wait)
}

/// The first of these steps brought more than one segment, or others follow it at once: it is no probe.
fn goes_on(steps: &[Step], mss: u32) -> bool {
    let [probe, later @ ..] = steps else { return false };
    probe.bytes > mss || later.first().is_some_and(|next| next.is_burst() && next.sender == probe.sender)
}

/// A tail loss probe may carry new data (RFC 8985, 7.3): the wait for it is the loss's that it brought to light.
/// That comes within a timeout; later than that nothing was probed (RFC 8985, 7.2), and the loss's timer was late.
fn give_probe_waits_to_the_loss(context: &Context, steps: &mut [Step]) {
    let rtt = context.rtt;
    for i in 0..steps.len() {
        if let Wait::NewProbe { outstanding } = steps[i].wait
            && goes_on(&steps[i..], context.mss[steps[i].sender])
        {
            steps[i].rename(Wait::Pause(Pause { outstanding, ..Pause::default() }));
        }
        let step = &steps[i];
        let Some(&Pause { outstanding, flight: 0, .. }) = step.pause() else { continue };
        // After two smoothed round trips, not before.
        if outstanding == 0 || step.loss.is_some() || step.duration().times(2) < rtt.times(3) {
            continue;
        }
        if let Some(wait) = interrupted(context, &steps[i..], outstanding) {
            steps[i].rename(wait);
            continue;
        }
        let next = steps[i + 1..].iter().find(|s| !s.is_burst());
        let Some(&Step { wait: Wait::Loss { repair, .. }, sender, .. }) = next else { continue };
        if sender == step.sender {
            let probe = matches!(repair, Repair::Fast | Repair::Probe | Repair::Timeout);
            let soon = step.duration() <= context.timeout[sender];
            steps[i].rename(match repair {
                _ if probe && soon => Wait::NewProbe { outstanding },
                Repair::Fast | Repair::Probe => Wait::Loss { repair: Repair::Timeout, again: true },
                _ => Wait::Loss { repair, again: true },
            });
        }
    }
}
