//! How much of a step the bottleneck was busy with the connection's own bytes.

use crate::attribute::context::{Carry, Context};
use crate::attribute::emit::Emit;
use crate::attribute::woken::clocked;
use crate::confidence::Rule;
use crate::facts::Facts;
use crate::release::{Acked, Wait};
use crate::step::Step;
use crate::track::Repair;
use tcpwhy_base::{Cause, End, Nanos};

/// Of a step that bytes of `d` would have kept the link busy in (rule 3).
pub(super) fn link_time(context: &Context, step: &Step, d: End, carry: &mut Carry) -> Nanos {
    let duration = step.duration();
    let burst = step.burst.min(duration);
    if step.bytes == 0 && !step.is_turn() {
        return Nanos::ZERO;
    }
    if step.is_burst() {
        let work = context.per_byte[d].map_or(0, |p| (f64::from(step.bytes) * p) as i64);
        let backlog = &mut carry.backlog[d];
        *backlog = backlog.saturating_add(work).saturating_sub(duration.0).max(0);
        return duration;
    }
    if step.is_turn() {
        // What ends a turn goes to the link then, and the wait after it finds that there: a whole flight,
        // where segments are joined.
        let per_byte = context.per_byte[d.peer()].unwrap_or(0.0);
        carry.backlog[d.peer()] = (f64::from(step.bytes) * per_byte) as i64;
    }
    if matches!(step.wait, Wait::Standing { .. }) || at_its_pace(step) {
        return duration;
    }
    let Some(per_byte) = context.per_byte[d] else { return burst };
    let free = free_time(context, step, d);
    let own = if step.is_turn() { 0.0 } else { f64::from(step.bytes) * per_byte };
    if context.near(d) && !context.stands[d] {
        near_sender(step, d, carry, burst.min(free), free, own)
    } else {
        Nanos(own as i64).min(free).max(burst.min(free))
    }
}

/// The part of a step that the link may have been busy in.
fn free_time(context: &Context, step: &Step, d: End) -> Nanos {
    match step.wait {
        // Near its sender what Nagle holds is behind own data, which crosses first and is then acknowledged.
        Wait::Nagle { .. } if context.near(d) => (step.duration() - context.rtt).floor0(),
        // With room for more than a segment a late update may have waited for own data that queued.
        Wait::Closed { window, unread: None, .. } if window >= 2 * context.mss[d] => step.duration(),
        Wait::Nagle { .. }
        | Wait::Silly { .. }
        | Wait::CorkTimer { .. }
        | Wait::Cork { .. }
        | Wait::Unread
        | Wait::Closed { .. }
        | Wait::Shut { .. }
        | Wait::Missing { .. }
        | Wait::Blind
        | Wait::Loss {
            repair: Repair::Timeout | Repair::Probe | Repair::BlackHole | Repair::TooBig { .. },
            ..
        } => Nanos::ZERO,
        Wait::Behind { .. } | Wait::NeverCame { .. } => Nanos::ZERO,
        Wait::Turn { .. } => (step.duration() - context.reaction[d.peer()]).floor0(),
        _ => step.duration(),
    }
}

/// Near the sender what was queued crosses while the step waits (rule 3); then its own run, as far as that
/// kept the link busy.
fn near_sender(step: &Step, d: End, carry: &mut Carry, run: Nanos, free: Nanos, own: f64) -> Nanos {
    let n = f64::from(step.releases.max(1));
    // All but the last release's bytes had time to cross within the step.
    let within = own * (n - 1.0) / n;
    let work = carry.backlog[d].saturating_add(within as i64);
    let waited = Nanos(work).min(free - run);
    let busy = waited + (Nanos(work) - waited + Nanos(own as i64)).min(run);
    carry.backlog[d] = carry.backlog[d].saturating_add(own as i64).saturating_sub(busy.0).max(0);
    if step.is_turn() {
        carry.backlog[d] = 0;
    }
    busy
}

/// It had left before, and came at a link's pace (rule 96).
pub(super) fn at_its_pace(step: &Step) -> bool {
    matches!(step.wait, Wait::OnItsWay { even: true, .. })
}

/// The link was busy with these bytes for seven eighths of the time: it is what the flow does not grow against.
pub(super) fn saturated(context: &Context, steps: &[Step], sender: End) -> bool {
    let Some(per_byte) = context.per_byte[sender].or_else(|| spread(context, steps, sender)) else {
        return false;
    };
    // What was on its way at a link's pace shows by itself that it was busy (rule 96).
    let waits = steps.iter().filter(|s| clocked(s) || at_its_pace(s));
    let (busy, time) = waits.fold((0.0, 0.0), |(busy, time), s| {
        let took = s.duration().0 as f64;
        (busy + if at_its_pace(s) { took } else { f64::from(s.bytes) * per_byte }, time + took)
    });
    busy >= time * 0.875
}

/// Seen from afar: the time that a byte took in what came one behind the other, where that is most of the
/// bytes behind those that ACKs let go (rule 72).
fn spread(context: &Context, steps: &[Step], sender: End) -> Option<f64> {
    if context.near(sender) {
        return None;
    }
    let behind = |s: &Step| s.bytes.saturating_sub(s.len.saturating_mul(s.releases));
    let (time, bytes) = steps.iter().fold((0, 0), |(t, b), s| (t + s.burst.0, b + i64::from(behind(s))));
    (bytes >= 4 * i64::from(context.mss[sender])).then(|| time as f64 / bytes as f64)
}

/// A round trip is longer than the shortest by so much where something stands in a queue (rule 38): below
/// that hosts may have been late.
pub(super) fn least_queue(context: &Context) -> Nanos {
    least_beyond(context.rtt, context.tick)
}

/// The same of a round trip, by a clock that ticks so.
pub(crate) fn least_beyond(rtt: Nanos, tick: Nanos) -> Nanos {
    rtt.part(2) + Nanos::millis(5) + tick.times(2)
}

/// A round trip swollen beyond the base one: a queue on the path (rule 38). If this flow is large enough to
/// fill the path it is its own, and its time is the link's; else others fill it. Gives how much of `rest`
/// that is.
pub(super) fn queue(context: &Context, step: &Step, acked: &Acked, rest: Nanos, out: &mut Emit<'_>) -> Nanos {
    let sender = step.sender;
    let swollen = acked.rtt.filter(|&rtt| rtt > context.rtt + least_queue(context));
    let Some(rtt) =
        swollen.filter(|_| (step.across || context.near(sender)) && acked.flight >= 4 * context.mss[sender])
    else {
        return Nanos::ZERO;
    };
    let time = rest.share(rtt - context.rtt, rtt);
    let per_byte = context.per_byte[sender];
    let most = acked.flight.max(acked.peak);
    if per_byte.is_none_or(|p| f64::from(most) * p >= context.rtt.0 as f64 * 0.7) {
        return out.bandwidth(context, sender, time, acked.flight);
    }
    out.network(Rule::Queue, Cause::Queueing, time, Facts::Queue { rtt, base: context.rtt });
    time
}
