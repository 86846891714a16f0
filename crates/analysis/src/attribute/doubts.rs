//! What of a step speaks against the cause that a rule gives it; how much, says `confidence`.

use crate::attribute::context::Context;
use crate::confidence::{Evidence, Rule};
use crate::profile::WAKE_UP;
use crate::release::Wait;
use crate::step::Step;
use crate::track::CwndState;
use tcpwhy_base::{End, Nanos, Source};

/// The strongest of what speaks against the cause that `rule` gives.
#[inline]
pub(super) fn against(context: &Context, step: &Step, rule: Rule) -> Option<Evidence> {
    if step.source != Source::Inferred || step.across {
        return None;
    }
    match rule {
        Rule::SlowStart => against_start(context, step),
        Rule::IdleRestart => {
            let late = || against_start(context, step);
            is_partial_end(context, step).then_some(Evidence::PartialEndAfterIdle).or_else(late)
        }
        Rule::LateAck => {
            let alone = is_partial_end(context, step) && step.bytes < context.mss[step.sender];
            alone.then_some(Evidence::PartialEndLate)
        }
        Rule::CongestionWindow if step.pushed => Some(Evidence::WriterPushed),
        Rule::CongestionWindow => (step.cwnd == CwndState::Growing).then_some(Evidence::NeverCut),
        Rule::BufferPlateau => has_few_segments(context, step).then_some(Evidence::FewSegments),
        Rule::WindowFull => is_late_window(context, step).then_some(Evidence::WindowLate),
        Rule::NagleOnce | Rule::NagleAgain => {
            // A prompt ACK takes a round trip.
            let prompt = context.rtt.times(2) + WAKE_UP + context.tick.times(2);
            let held = matches!(step.wait, Wait::Nagle { delayed: false, .. });
            (held && context.measured && step.duration() > prompt).then_some(Evidence::HeldLonger)
        }
        Rule::DrippingWriter => context.timer[step.sender].is_none().then_some(Evidence::UnknownStart),
        Rule::LossProbe | Rule::ProbeOfFirstData => against_probe(context, step),
        Rule::PauseIdle if is_soon_after_ack(context, step) => Some(Evidence::SoonAfterAck),
        Rule::PauseIdle | Rule::PauseInFlight => against_pause(context, step),
        Rule::Think => is_late_but_counted(context, step).then_some(Evidence::LateButCounted),
        Rule::ThinkOrLoss | Rule::ThinkAtTimer => {
            let soonest = context.soonest_answer.filter(|_| step.sender == End::Server);
            soonest.is_some_and(|s| s.times(4) < step.duration()).then_some(Evidence::OutOfLine)
        }
        Rule::Pacing => (context.nagle_holds > 0).then_some(Evidence::SpacedPieces),
        _ => None,
    }
}

/// The partial end of a write, which a stack that is not known for Minshall's rule may hold for all before it
/// (rule 54).
fn is_partial_end(context: &Context, step: &Step) -> bool {
    let partial = !step.len.is_multiple_of(context.mss[step.sender]);
    !step.pushed && partial && context.timer[step.sender].is_none()
}

/// Against a wait for a window that grows (rule 80).
fn against_start(context: &Context, step: &Step) -> Option<Evidence> {
    let (sender, mss) = (step.sender, context.mss[step.sender]);
    let (near, rated) = (context.near(sender), context.per_byte[sender].is_some());
    let acked = step.acked()?;
    let each = Nanos(step.duration().0 / i64::from(step.releases.max(1)));
    let part = context.rtt.part(8);
    let partial = !step.pushed && !step.len.is_multiple_of(mss) && step.bytes < mss;
    let late = near && !rated && acked.delay > part;
    let seen = [
        partial.then_some(Evidence::PartialEnd),
        step.pushed.then_some(Evidence::WriteEnded(context.tap[sender])),
        (!near && !rated && each < part.times(7)).then_some(Evidence::CameSpaced),
        late.then_some(if acked.delay > context.rtt { Evidence::AckLateByATrip } else { Evidence::AckLate }),
    ];
    seen.into_iter().flatten().reduce(Evidence::or_stronger)
}

/// Seen from afar up to four segments: what is in a queue before the tap has not come, and makes no flight larger.
fn has_few_segments(context: &Context, step: &Step) -> bool {
    let few = step.acked().is_some_and(|a| a.flight > 0 && a.flight <= 4 * context.mss[step.sender]);
    few && !context.near(step.sender)
}

/// What opens a window is on its way for a round trip, beside a sender whose link has no known rate: what
/// comes later by most of another waited in a queue of its own, for a reader or for a delayed ACK.
fn is_late_window(context: &Context, step: &Step) -> bool {
    let each = Nanos(step.duration().0 / i64::from(step.releases.max(1)));
    let late = context.rtt.part(4).times(7) + WAKE_UP;
    context.near(step.sender) && context.per_byte[step.sender].is_none() && context.measured && each > late
}

/// Seen from afar an answer took as long as a timer, and no number before it is missing (rule 35).
fn is_late_but_counted(context: &Context, step: &Step) -> bool {
    let sender = step.sender;
    let far = !context.near(sender) && context.measured && !context.slow_answers;
    far && is_as_late_as_a_timer(step.duration() - context.reaction[sender], context.shortest_timer[sender])
}

/// Timers come with jitter of a 16th.
pub(super) fn is_as_late_as_a_timer(wait: Nanos, timer: Nanos) -> bool {
    wait >= timer - timer.part(16)
}

/// Against a tail loss probe that repaired a loss (rules 74 and 75).
fn against_probe(context: &Context, step: &Step) -> Option<Evidence> {
    let Wait::Loss { .. } = step.wait else { return None };
    let sender = step.sender;
    let seen = [
        (!context.near(sender) && !step.behind).then_some(Evidence::PassedTheTap),
        (context.alone[sender] >= 2).then_some(Evidence::AloneAgain),
        (!step.pushed).then_some(Evidence::MoreToCome),
    ];
    seen.into_iter().flatten().reduce(Evidence::or_stronger)
}

/// Seen from afar, what was lost before the tap does not show: its sender's silence is as long as a timer at
/// least (rule 35).
fn against_pause(context: &Context, step: &Step) -> Option<Evidence> {
    let timer = context.hidden_timer[step.sender].filter(|_| !context.near(step.sender));
    if timer.is_none_or(|timer| !is_as_late_as_a_timer(step.duration(), timer)) {
        let little = step.pause().is_some_and(|p| p.goes_on);
        let evidence = if little { Evidence::Pairs } else { Evidence::WholePackets };
        return may_be_paced(context, step).then_some(evidence);
    }
    Some(if step.pushed { Evidence::SilentAsATimer } else { Evidence::SilentWithinAWrite })
}

/// Beside the sender whole segments came a moment after the ACK of all before them: a writer whom a full buffer held is woken by
/// that, and runs when its host lets it; on a busy one that takes milliseconds (rule 85).
fn is_soon_after_ack(context: &Context, step: &Step) -> bool {
    let empty = step.empty_at_sender(context.reaction[step.sender]);
    let whole = step.len >= context.mss[step.sender];
    context.near(step.sender) && whole && empty.times(4) <= step.duration()
}

/// Less than a round trip between packets of whole segments, whose PSH need not end a write: as long as
/// nothing tells who set them apart, their sender may have (rule 87).
fn may_be_paced(context: &Context, step: &Step) -> bool {
    let each = Nanos(step.duration().0 / i64::from(step.releases.max(1)));
    let whole = step.may_go_on && step.pushed && step.pause().is_some_and(|p| p.full || p.goes_on);
    whole && each < context.rtt && !context.paced[step.sender]
}
