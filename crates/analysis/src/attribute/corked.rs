//! A cork's timer in the middle of a pause of its writer, who set the cork (rule 151).
//!
//! A corked write returns at once, so that what follows comes when it would have come anyway: nginx with
//! `tcp_nopush` and `limit_rate` writes a piece, leaves its end in the cork and sleeps, and the kernel gives
//! that end up meanwhile.

use crate::attribute::context::{Carry, Context};
use crate::attribute::waits::spans_of;
use crate::facts::Facts;
use crate::release::Wait;
use crate::result::Span;
use crate::step::Step;
use tcpwhy_base::Cause;

/// The end of a write that a cork held, behind which its writer wrote nothing until later. What a cork holds is
/// below a segment and all that there is, as more would have filled it (`tcp_nagle_check`, `tcp_write_wakeup`):
/// behind it the next segment waited for its writer alone.
fn is_within_a_pause(context: &Context, steps: &[Step], limits: &[Cause]) -> bool {
    let [tail, next, ..] = steps else { return false };
    let corked = match tail.wait {
        Wait::CorkTimer { .. } => context.cork_timers >= 2,
        Wait::Cork { .. } => true,
        _ => false,
    };
    let wrote = match next.wait {
        Wait::Pause(pause) => pause.flight == 0 && !pause.there && limits.get(1) != Some(&Cause::Pacing),
        // An ACK that was there by chance.
        Wait::Acked(_) => limits.get(1) == Some(&Cause::SenderPause),
        _ => false,
    };
    corked && wrote && next.sender == tail.sender
}

/// Appends the spans of `steps`, each with what its flights say.
pub(super) fn spans_of_all(
    context: &Context,
    steps: &[Step],
    limits: &[Cause],
    carry: &mut Carry,
    spans: &mut Vec<Span>,
) {
    // What left within the pause that goes on, and where the spans of that begin.
    let mut tail: Option<(u32, usize)> = None;
    for (k, (step, &limit)) in steps.iter().zip(limits).enumerate() {
        if is_within_a_pause(context, &steps[k..], &limits[k..]) {
            tail = Some((step.len, spans.len()));
            spans_of(context, &step.was_its_writers(), Cause::SenderPause, carry, spans);
            continue;
        }
        let next = spans.len();
        spans_of(context, step, limit, carry, spans);
        if let Some((held, from)) = tail.take() {
            join(spans, from, next, held);
        }
    }
}

/// The pauses before and behind what a cork held, from `from` and from `next` on, are one, as are the few bytes
/// that left in it: nobody waited for those either.
fn join(spans: &mut Vec<Span>, from: usize, next: usize, held: u32) {
    let pause = |spans: &[Span]| spans.iter().position(|s| s.cause == Cause::SenderPause);
    let (Some(first), Some(last)) = (pause(&spans[from..next]), pause(&spans[next..])) else { return };
    let (first, last) = (from + first, next + last);
    let (end, frames, confidence) = (spans[last].end, spans[last].frames, spans[last].confidence);
    let whole = &mut spans[first];
    let corked = whole.duration();
    whole.end = end;
    whole.frames = whole.frames.join(frames);
    whole.confidence = whole.confidence.min(confidence);
    whole.facts = Facts::Tail { wait: whole.duration(), held, corked };
    spans.drain(first + 1..=last);
}
