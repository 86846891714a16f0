//! What the other side waited for that had spoken last: the way there and back, and the application's work.

use crate::attribute::context::Context;
use crate::attribute::doubts::is_as_late_as_a_timer;
use crate::attribute::emit::Emit;
use crate::attribute::link::least_queue;
use crate::attribute::losses::missing;
use crate::confidence::Rule;
use crate::facts::{Facts, Witnessed};
use crate::release::{Doubt, burst_within};
use crate::step::Step;
use crate::track::Trip;
use tcpwhy_base::{Cause, End, Nanos, Side};

/// The other side's own ACK of the request came so late that it can hardly have had it sooner (rule 51).
/// Gives how long.
pub(super) fn late_request(
    context: &Context,
    step: &Step,
    unheard: Nanos,
    rest: Nanos,
    out: &mut Emit<'_>,
) -> Nanos {
    let late = unheard.min(rest - context.reaction[step.sender]).floor0();
    out.span(Rule::LateRequest, Cause::Unexplained, None, late, Facts::LateRequest { late });
    late
}

/// The same, where the tap beside the other side has seen how long that took: the rest is the way there and
/// back, and what is more than a trip waited in a queue, own bytes as far as they can have taken so long
/// (rule 114).
pub(super) fn turn_across(context: &Context, step: &Step, seen: Nanos, rest: Nanos, out: &mut Emit<'_>) {
    let sender = step.sender;
    let think = if seen <= Nanos::micros(50) { Nanos::ZERO } else { seen.min(rest) };
    let trip = out.trip(context, rest - think);
    let late = rest - think - trip;
    let per_byte = context.per_byte[sender].filter(|_| step.loss.is_none());
    let crossing = per_byte.map_or(Nanos::ZERO, |p| Nanos((f64::from(step.bytes) * p) as i64)).min(late);
    let crossing = out.reserve(context, sender, crossing);
    let queued = late - crossing;
    let facts = Facts::RoundTrip { rtt: context.rtt };
    out.as_inferred();
    out.network(Rule::RoundTrip, Cause::PathDelay, trip.part(2), facts);
    let most = if context.per_byte[sender.peer()].is_some() { queued } else { queued.min(step.on_the_way()) };
    let own = out.bandwidth(context, sender.peer(), most, 0);
    let late = queued - own;
    if late > least_queue(context) {
        let queue = Facts::Queue { rtt: context.rtt + queued, base: context.rtt };
        out.network(Rule::Queue, Cause::Queueing, late, queue);
    } else {
        let facts = Facts::LateBetween { late, rtt: context.rtt };
        out.span(Rule::LateRequest, Cause::Unexplained, None, late, facts);
    }
    let cause = if sender == End::Server { Cause::ServerThink } else { Cause::ClientThink };
    let me = Some(Side::from(sender));
    let unread = step.unread.map_or(Nanos::ZERO, |unread| unread.min(think));
    out.as_told();
    out.span(Rule::Think, Cause::ReaderLate, me, unread, Facts::Told(Witnessed::Late { wait: unread }));
    let think_facts = Facts::Think { seen: seen - unread, path: Nanos::ZERO };
    out.as_decided();
    let work = think - unread;
    match held(context, step, work) {
        Some(ticks) => perhaps_corked(step, ticks, work, out),
        None => out.span(Rule::Think, cause, me, work, think_facts),
    }
    out.as_inferred();
    out.network(Rule::RoundTrip, Cause::PathDelay, trip - trip.part(2), facts);
    out.carried(context, sender, crossing, step.bytes);
}

/// Seen from afar the first segment of an answer takes its time on the link as well: that, and no more than this.
fn crosses(context: &Context, step: &Step, most: Nanos, out: &mut Emit<'_>) -> Nanos {
    let first = context.per_byte[step.sender].filter(|_| !context.near(step.sender) && step.loss.is_none());
    let crossing = first.map_or(Nanos::ZERO, |p| Nanos((f64::from(step.bytes) * p) as i64));
    out.reserve(context, step.sender, crossing.min(most))
}

/// All but the first part of the wait the server had other requests, which it answers first (rule 104).
#[inline(never)]
pub(super) fn behind(
    context: &Context,
    step: &Step,
    (idle, bytes): (Nanos, u32),
    rest: Nanos,
    out: &mut Emit<'_>,
) {
    let busy = step.duration() - idle;
    let way = if is_no_work(busy, context.rtt) { rest } else { idle.min(rest) };
    let way = out.trip(context, way);
    let crossing = crosses(context, step, rest - way, out);
    let work = rest - way - crossing;
    out.as_inferred();
    out.network(Rule::RoundTrip, Cause::PathDelay, way, Facts::RoundTrip { rtt: context.rtt });
    out.as_decided();
    let facts = Facts::Behind { wait: step.duration(), work, bytes };
    out.span(Rule::ThinkBehindOthers, Cause::ServerThink, Some(Side::Server), work, facts);
    out.as_inferred();
    out.carried(context, step.sender, crossing, step.bytes);
}

/// As long as a delayed ACK that something may have waited for.
#[inline]
pub(super) fn is_forty_millis(think: Nanos) -> bool {
    think >= Nanos::millis(39) && think <= Nanos::millis(48)
}

/// What an idle host needs to respond at all is no work worth naming.
pub(super) fn is_no_work(think: Nanos, rtt: Nanos) -> bool {
    think <= burst_within(rtt, Nanos::ZERO)
}

/// The other side had spoken: the path, and what the application took (rules 5 and 13).
pub(super) fn turn(
    context: &Context,
    step: &Step,
    on_the_way: Nanos,
    doubt: Doubt,
    rest: Nanos,
    out: &mut Emit<'_>,
) {
    let sender = step.sender;
    let me = Some(Side::from(sender));
    let on_one_link = context.trip[sender] == Trip::OnOneLink && sender == End::Server;
    let reaction = context.reaction[if on_one_link { sender.peer() } else { sender }];
    let path = rest.min(reaction);
    let mut think = rest - path;
    // What was still on its way says nothing of the application: the link took that time.
    let arrived = (step.duration() - on_the_way).floor0();
    let queued = if on_the_way > Nanos::ZERO && step.loss.is_none() {
        (think - arrived).floor0()
    } else {
        Nanos::ZERO
    };
    let own = out.bandwidth(context, sender.peer(), queued, 0);
    let queue = Facts::Queue { rtt: context.rtt + queued, base: context.rtt };
    out.network(Rule::Queue, Cause::Queueing, queued - own, queue);
    let rest = rest - queued;
    think = think - queued;
    if is_no_work(think, context.rtt) {
        think = Nanos::ZERO;
    }
    let path = out.trip(context, rest - think);
    think = rest - path;
    // A proxy acknowledges, and what it passes on takes the far trip (rule 70).
    let beyond = context.split.filter(|_| sender == End::Server).map_or(Nanos::ZERO, |far| far.min(think));
    think = think - beyond;
    let crossing = crosses(context, step, think, out);
    think = think - crossing;
    let cause = if sender == End::Server { Cause::ServerThink } else { Cause::ClientThink };
    let path_seen = if context.near(sender) { Nanos::ZERO } else { path };
    let facts = Facts::Think { seen: step.duration(), path: path_seen };
    let trip = Facts::RoundTrip { rtt: context.rtt };
    let with_answer = context.trip[sender] == Trip::WithAnswer && sender == End::Server;
    let way = if with_answer { Rule::TripWithAnswer } else { Rule::RoundTrip };
    out.as_inferred();
    out.network(way, Cause::PathDelay, path.part(2), trip);
    out.as_decided();
    out.span(
        Rule::BehindProxy,
        Cause::Unexplained,
        None,
        beyond,
        Facts::Split { far: beyond, rtt: context.rtt },
    );
    if doubt == Doubt::Pieces {
        let facts = Facts::Pieces { piece: step.len, mss: context.mss[sender], wait: step.duration() };
        out.network(Rule::CameInPieces, Cause::PathMtu, think, facts);
    } else if let Doubt::Missing(packets) = doubt {
        // What timers took of it; before them it was the application.
        let timers =
            context.timer[sender].map_or(think, |timer| timer.times((1 << packets.min(7)) - 1).min(think));
        out.span(Rule::ThinkBeforeMissing, cause, me, think - timers, facts);
        missing(context, u32::from(packets), timers, cause, out);
    } else {
        let rule = match doubt {
            _ if is_forty_millis(think) => Rule::ThinkOfFortyMillis,
            Doubt::Timed | Doubt::Possible if context.slow_answers && sender == End::Server => {
                Rule::ThinkAsOften
            }
            Doubt::Timed => Rule::ThinkAtTimer,
            Doubt::Possible => Rule::ThinkOrLoss,
            _ if on_one_link => Rule::ThinkOnOneLink,
            Doubt::None | Doubt::Missing(_) | Doubt::Pieces => Rule::Think,
        };
        match held(context, step, think) {
            Some(ticks) => perhaps_corked(step, ticks, think, out),
            None => out.span(rule, cause, me, think, facts),
        }
    }
    out.as_inferred();
    out.network(way, Cause::PathDelay, path - path.part(2), trip);
    out.carried(context, sender, crossing, step.bytes);
}

/// The answer is one of those that a cork may have held: below a segment, and as late as they are (rule 115).
/// How often that was on its kernel's clock.
fn held(context: &Context, step: &Step, late: Nanos) -> Option<u16> {
    let (soonest, latest) = context.late_as_timer;
    let below = step.sender == End::Server && !step.len.is_multiple_of(context.mss[End::Server]);
    // The same jitter as below: where another tap tells how late, its trips are others.
    let no_later = late <= latest + latest.part(16);
    context.ticks.filter(|_| below && is_as_late_as_a_timer(late, soonest) && no_later)
}

/// The answer left as late as the timer of a cork lets one go, and so often with a tick of its kernel.
fn perhaps_corked(step: &Step, ticks: u16, wait: Nanos, out: &mut Emit<'_>) {
    let me = Some(Side::from(step.sender));
    let facts = Facts::TimedAnswer { wait, held: step.len, ticks };
    if ticks > 0 {
        out.span(Rule::CorkOnTick, Cause::Cork, me, wait, facts);
    } else {
        out.span(Rule::ThinkAsACork, Cause::ServerThink, me, wait, facts);
    }
}
