//! From steps to spans: which cause each stretch of an exchange has, and how much of it the link's rate explains.

mod context;
mod emit;
mod fold;
mod limits;
mod link;
mod losses;
mod waits;

pub(crate) use context::{Carry, Context};
pub(crate) use fold::{fold, join_neighbours};

use crate::release::{Pause, Wait};
use crate::result::Span;
use crate::step::Step;
use crate::track::Repair;
use tcpwhy_base::{Cause, Nanos};

/// Appends the spans of `steps` to `spans`; empties `steps`. `limits` is room that is used again.
pub(crate) fn attribute(
    context: &Context,
    steps: &mut Vec<Step>,
    carry: &mut Carry,
    spans: &mut Vec<Span>,
    limits: &mut Vec<Cause>,
) {
    give_hidden_holds_to_the_writer(steps);
    give_probe_waits_to_the_loss(steps, context.rtt);
    limits::flight_limits(context, steps, carry, limits);
    for (step, &limit) in steps.iter().zip(limits.iter()) {
        waits::spans_of(context, step, limit, carry, spans);
    }
    steps.clear();
    join_neighbours(spans);
}

/// A hold by Nagle that ended before the application wrote again delayed nothing: a write that is held returns at
/// once, so that the next one comes when it would have come anyway. The critical path goes through the writer.
fn give_hidden_holds_to_the_writer(steps: &mut [Step]) {
    for i in 0..steps.len() {
        let Wait::Nagle { first, .. } = steps[i].wait else { continue };
        let next = steps[i + 1..].iter().find(|s| !s.is_burst());
        let hidden = |n: &Step| n.sender == steps[i].sender && n.pause().is_some_and(|p| p.flight == 0);
        if next.is_some_and(hidden) {
            steps[i].wait = Wait::Pause(Pause { outstanding: first, flight: 0, full: false });
        }
    }
}

/// A tail loss probe may carry new data (RFC 8985, 7.3): the wait for it is the loss's that it brought to light.
fn give_probe_waits_to_the_loss(steps: &mut [Step], rtt: Nanos) {
    for i in 0..steps.len() {
        let step = &steps[i];
        let Some(&Pause { outstanding, flight: 0, .. }) = step.pause() else { continue };
        // After two smoothed round trips, not before.
        if outstanding == 0 || step.loss.is_some() || step.duration().times(2) < rtt.times(3) {
            continue;
        }
        let next = steps[i + 1..].iter().find(|s| !s.is_burst());
        let Some(&Step { wait: Wait::Loss { repair, .. }, sender, .. }) = next else { continue };
        if sender == step.sender {
            let probe = matches!(repair, Repair::Fast | Repair::Probe | Repair::Timeout);
            let again = Wait::Loss { repair, again: true };
            steps[i].wait = if probe { Wait::NewProbe { outstanding } } else { again };
        }
    }
}
