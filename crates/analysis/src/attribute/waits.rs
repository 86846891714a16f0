//! The spans of one step: the link's share of it first, then what it waited for.

use crate::attribute::context::{Carry, Context};
use crate::attribute::emit::Emit;
use crate::attribute::link::{link_time, queue};
use crate::attribute::losses::{loss, missing, never_repaired, new_probe};
use crate::attribute::turns::{behind, late_request, turn, turn_across};
use crate::confidence::Rule;
use crate::facts::{Facts, Witnessed};
use crate::profile::delayed_from;
use crate::release::{Acked, Pause, Wait};
use crate::result::Span;
use crate::step::Step;
use crate::track::CwndState;
use tcpwhy_base::{Cause, Held, Nanos, Side};

/// Appends the spans of `step`; `limit` is what its flights say.
pub(super) fn spans_of(
    context: &Context,
    step: &Step,
    limit: Cause,
    carry: &mut Carry,
    spans: &mut Vec<Span>,
) {
    let speaker = if step.is_turn() { step.sender.peer() } else { step.sender };
    let mut link = link_time(context, step, speaker, carry);
    if limit == Cause::Pacing && context.near(speaker) {
        // What its sender spaces never queues behind its own bytes.
        link = Nanos::ZERO;
    }
    let mut out = Emit::new(context, step, carry, spans);
    if step.is_burst() && step.loss.is_none() {
        out.burst(context, step.sender, step.duration());
        return;
    }
    let link = out.reserve(context, speaker, link);
    // Near the sender the bytes before occupy the link first; near the receiver the step ends with their arrival.
    let head = if context.near(speaker) { link - step.burst.min(link) } else { Nanos::ZERO };
    out.carried(context, speaker, head, 0);
    wait(context, step, limit, step.duration() - link, &mut out);
    out.as_inferred();
    out.carried(context, speaker, link - head, step.bytes);
}

fn wait(context: &Context, step: &Step, limit: Cause, rest: Nanos, out: &mut Emit<'_>) {
    let rest = behind_loss(context, step, rest, out);
    if rest <= Nanos::ZERO {
        return;
    }
    out.as_decided();
    let (me, peer) = (Some(Side::from(step.sender)), Some(Side::from(step.sender.peer())));
    match step.wait {
        Wait::Burst => out.burst(context, step.sender, rest),
        Wait::Turn { seen: Some(seen), .. } => turn_across(context, step, seen, rest, out),
        Wait::Turn { on_the_way, unheard, doubt, seen: None } => {
            // What an ACK of a part of it tells of its way is told better.
            let queued = (on_the_way - context.reaction[step.sender]).floor0();
            let late = late_request(context, step, (unheard - queued).floor0(), rest, out);
            turn(context, step, on_the_way + late, doubt, rest - late, out);
        }
        Wait::Behind { idle, bytes } => behind(context, step, (idle, bytes), rest, out),
        Wait::Acked(acked) => by_ack(context, step, &acked, limit, rest, out),
        Wait::Window { flight } | Wait::Closed { flight, .. } if step.is_unread().is_some() => {
            by_reader(context, step, flight, rest, out);
        }
        Wait::Window { flight } if told(context, step, flight, rest, out) => {}
        Wait::Window { flight } => {
            let facts = Facts::Window { flight, rtt: context.rtt };
            out.span(Rule::WindowFull, Cause::ReceiveWindow, peer, rest, facts);
        }
        Wait::Spread { flight, unread } => {
            let cause = if unread { Cause::SlowReader } else { Cause::ReceiveWindow };
            out.span(Rule::SpreadByPace, cause, peer, rest, Facts::Spread { flight });
        }
        Wait::Closed { window, flight, unread } => opened(step, window, flight, unread, rest, out),
        Wait::Shut { window } => {
            out.span(Rule::WindowClosed, Cause::SlowReader, me, rest, Facts::Closed { window });
        }
        Wait::Silly { window } => {
            out.span(Rule::WindowBelowSegment, Cause::SillyWindow, peer, rest, Facts::Closed { window });
        }
        Wait::Nagle { first, delay, delayed, .. } => {
            let cause = if delayed { Cause::NagleDelayedAck } else { Cause::Nagle };
            let facts = Facts::Nagle { first, held: step.len, ack_delay: delay };
            let rule = if context.nagle_holds >= 2 { Rule::NagleAgain } else { Rule::NagleOnce };
            out.span(rule, cause, me, rest, facts);
        }
        Wait::CorkTimer { .. } if context.cork_timers >= 2 => {
            let facts = Facts::Corked { wait: step.duration(), held: step.len };
            out.span(Rule::CorkTimer, Cause::Cork, me, rest, facts);
        }
        Wait::CorkTimer { .. } => {
            let facts = Facts::Wait { wait: step.duration(), outstanding: 0, empty: step.duration() };
            out.span(Rule::CorkTimerOnce, Cause::SenderPause, me, rest, facts);
        }
        Wait::Pause(pause) => by_writer(context, step, &pause, limit, rest, out),
        Wait::Cork { wait } => {
            out.span(
                Rule::CorkTimer,
                Cause::Cork,
                me,
                rest,
                Facts::Told(Witnessed::Cork { wait, held: step.len }),
            );
        }
        Wait::Unread => {
            let facts = Facts::Told(Witnessed::Late { wait: step.duration() });
            out.span(Rule::Think, Cause::ReaderLate, me, rest, facts);
        }
        // Longer than its bytes need at the rate: those of others, or the rate is known to an eighth only.
        Wait::Standing { under_way } => {
            let facts = Facts::of_bytes(step.bytes, None, under_way);
            out.network(Rule::Stood, Cause::Bandwidth, rest, facts);
        }
        Wait::OnItsWay { under_way, even } => out.on_its_way(context, (under_way, even), rest),
        Wait::SendBuffer => out.span(Rule::WriterWoken, Cause::SendBuffer, me, rest, Facts::NoRoom),
        Wait::Freed => {
            out.span(
                Rule::LateRelease,
                Cause::Unexplained,
                None,
                rest,
                Facts::Released { late: step.duration() },
            );
        }
        Wait::Missing { packets } => missing(context, packets, rest, Cause::SenderPause, out),
        Wait::NeverCame { whole } => {
            let (rule, cause) = never_repaired(whole);
            out.network(rule, cause, rest, Facts::Missing { packets: 0, wait: rest });
        }
        Wait::Loss { repair, .. } => loss(context, step, repair, rest, out),
        Wait::Repeated { flight } => by_a_duplicate(context, step, flight, rest, out),
        Wait::NewProbe { outstanding } => new_probe(context, step, outstanding, rest, out),
        Wait::Unended => {
            let facts = Facts::Wait { wait: step.duration(), outstanding: 0, empty: step.duration() };
            out.span(Rule::RequestUnended, Cause::Unexplained, None, rest, facts);
        }
        Wait::Blind => {
            let facts = if context.one_sided { Facts::OneSided } else { Facts::NotCaptured };
            out.span(Rule::NotCaptured, Cause::Unexplained, None, rest, facts);
        }
    }
}

/// Time until a recovery ended is the loss's: what is left of `rest` has its own reason.
fn behind_loss(context: &Context, step: &Step, rest: Nanos, out: &mut Emit<'_>) -> Nanos {
    let Some((kind, until)) = step.loss.filter(|_| rest > Nanos::ZERO) else { return rest };
    let whole = until >= step.end && !step.is_turn();
    let part = if whole { rest } else { (until - out.at()).floor0().min(rest) };
    loss(context, step, kind, part, out);
    rest - part
}

/// A window opened whose reader had been late.
fn opened(step: &Step, window: u32, flight: u32, unread: Option<Nanos>, rest: Nanos, out: &mut Emit<'_>) {
    let facts = unread.map_or(Facts::Closed { window }, |late| Facts::Unread { flight, late });
    // For less than half of it a busy host may have been as late (rule 102).
    let partly = unread.is_some_and(|late| late > Nanos::ZERO && late.times(2) <= step.duration());
    let rule = if partly { Rule::ReadPartlyLate } else { Rule::WindowClosed };
    out.span(rule, Cause::SlowReader, Some(Side::from(step.sender.peer())), rest, facts);
}

/// A flight of so many bytes, and what had flown before, if that was more.
fn flight_facts(context: &Context, step: &Step, flight: u32) -> Facts {
    Facts::Flight {
        flight,
        segments: flight.div_ceil(context.mss[step.sender]),
        rtt: context.rtt,
        before: if flight < step.before { step.before } else { 0 },
    }
}

/// An ACK released it: a limit on how much may be in flight.
fn by_ack(context: &Context, step: &Step, acked: &Acked, limit: Cause, rest: Nanos, out: &mut Emit<'_>) {
    let mss = context.mss[step.sender];
    let me = Some(Side::from(step.sender));
    if limit == Cause::Pacing {
        let facts = Facts::Wait { wait: step.duration(), outstanding: acked.flight, empty: Nanos::ZERO };
        out.span(spaced_by(context, step), Cause::Pacing, me, rest, facts);
        return;
    }
    let is_late = |delay: Nanos| delay > delayed_from(context.rtt) && delay.times(2) > step.duration();
    let late = is_late(acked.delay);
    let peer = context.reaction[step.sender.peer()];
    let beside_reader = peer > Nanos::ZERO && peer.times(4) <= context.reaction[step.sender];
    // On a path so short that no end is near, or in its middle, it would be said to be delayed.
    let delayed = acked.room.is_some() && !acked.drained;
    let known = beside_reader || context.near(step.sender) || delayed;
    let unread = acked.unread.filter(|&unread| known && is_late(unread));
    if let Some(unread) = unread {
        // Of two segments the ACK is not delayed, whatever window held the sender: its reader was late (rule 86).
        let facts = Facts::Unread { flight: acked.flight, late: unread };
        out.span(Rule::UnreadPlateau, Cause::SlowReader, Some(Side::from(step.sender.peer())), rest, facts);
        return;
    }
    if late && acked.flight <= 2 * mss {
        // One segment in flight at a time, with windows open: the buffer does not hold a second one, so the
        // receiver waits for one that cannot come. On usual segment sizes a small congestion window does the same.
        let buffer = acked.flight <= mss && mss > 9_000 && step.cwnd == CwndState::Growing;
        let (rule, cause) = if buffer {
            (Rule::LateAckOfOneSegment, Cause::SillyWindow)
        } else {
            (Rule::LateAck, Cause::DelayedAck)
        };
        out.span(rule, cause, me, rest, Facts::AckDelay { delay: acked.delay, flight: acked.flight });
        return;
    }
    if late && !context.near(step.sender) && delayed {
        // Beside the receiver no queue makes its ACK late.
        let facts = Facts::AckDelay { delay: acked.delay, flight: acked.flight };
        out.span(Rule::LateAck, Cause::DelayedAck, me, rest, facts);
        return;
    }
    let rest = rest - queue(context, step, acked, rest, out);
    if told(context, step, acked.flight, rest, out) {
        return;
    }
    if acked.drained && limit == Cause::SendBuffer {
        // The windows had room and nothing left: there was nothing to send. A writer that waits for buffer space
        // wakes up with an ACK, when a third of the buffer is free (`sk_stream_write_space`); others do so by chance.
        out.span(Rule::RoomUnused, Cause::SendBuffer, me, rest, Facts::Drained { flight: acked.flight });
        return;
    }
    let facts = flight_facts(context, step, acked.flight);
    let below = acked.flight < step.before;
    match step.cwnd {
        // What had not been written yet waited for its writer, or that for room; a window that a loss left
        // small holds what was (rule 97).
        CwndState::AfterLoss | CwndState::Avoiding if step.drained && step.loss.is_none() => {
            let limit = if limit == Cause::SlowStart { Cause::SenderPause } else { limit };
            by_flights(context, step, acked.flight, limit, rest, out);
        }
        CwndState::AfterLoss if below => {
            out.span(Rule::CongestionAfterLoss, Cause::CongestionWindow, me, rest, facts);
        }
        // Flights that stay the same for three round trips have another limit by now.
        CwndState::Restarted | CwndState::RestartedAfterLoss
            if below && matches!(limit, Cause::SlowStart | Cause::CongestionWindow) =>
        {
            out.span(Rule::IdleRestart, Cause::IdleRestart, me, rest, facts);
        }
        // Slow start has ended for good: what still grows is in congestion avoidance (RFC 5681, 3.1), and
        // what does not may be at the top of its curve (RFC 9438, 4.2).
        CwndState::AfterLoss | CwndState::Avoiding | CwndState::RestartedAfterLoss
            if matches!(limit, Cause::SlowStart | Cause::SendBuffer) =>
        {
            by_flights(context, step, acked.flight, Cause::CongestionWindow, rest, out)
        }
        _ => by_flights(context, step, acked.flight, limit, rest, out),
    }
}

/// A duplicate ACK released it: the congestion window (rule 147).
fn by_a_duplicate(context: &Context, step: &Step, flight: u32, rest: Nanos, out: &mut Emit<'_>) {
    let (rule, cause) = match step.cwnd {
        CwndState::Growing => (Rule::SlowStart, Cause::SlowStart),
        _ => (Rule::CongestionWindow, Cause::CongestionWindow),
    };
    out.span(rule, cause, Some(Side::from(step.sender)), rest, flight_facts(context, step, flight));
}

/// Who spaces its segments is known, or only that they are spaced (rule 87).
fn spaced_by(context: &Context, step: &Step) -> Rule {
    if context.paced[step.sender] { Rule::SpacedBySender } else { Rule::Pacing }
}

/// The sender's kernel knows what held it (rule 77).
fn told(context: &Context, step: &Step, flight: u32, rest: Nanos, out: &mut Emit<'_>) -> bool {
    let (me, peer) = (Some(Side::from(step.sender)), Some(Side::from(step.sender.peer())));
    let facts = flight_facts(context, step, flight);
    let (rule, cause, side, facts) = match step.held {
        Some(Held::CongestionWindow { slow_start: true }) => {
            let again = matches!(step.cwnd, CwndState::Restarted | CwndState::RestartedAfterLoss)
                && flight < step.before;
            (Rule::SlowStart, if again { Cause::IdleRestart } else { Cause::SlowStart }, me, facts)
        }
        Some(Held::CongestionWindow { slow_start: false }) => {
            (Rule::CongestionWindow, Cause::CongestionWindow, me, facts)
        }
        Some(Held::Window) if step.is_unread().is_some() => {
            by_reader(context, step, flight, rest, out);
            return true;
        }
        Some(Held::Window) => {
            let facts = Facts::Window { flight, rtt: context.rtt };
            (Rule::WindowFull, Cause::ReceiveWindow, peer, facts)
        }
        Some(Held::Nothing | Held::Other) | None => return false,
    };
    out.as_told();
    out.span(rule, cause, side, rest, facts);
    true
}

/// The window held it, and the kernel at the other end knows whether data lay there that nobody read.
fn by_reader(context: &Context, step: &Step, flight: u32, rest: Nanos, out: &mut Emit<'_>) {
    let peer = Some(Side::from(step.sender.peer()));
    out.as_told();
    if step.is_unread() == Some(true) {
        out.span(
            Rule::WindowClosed,
            Cause::SlowReader,
            peer,
            rest,
            Facts::Told(Witnessed::Unread { flight }),
        );
    } else {
        let facts = Facts::Window { flight, rtt: context.rtt };
        out.span(Rule::WindowFull, Cause::ReceiveWindow, peer, rest, facts);
    }
}

/// The limit that the flights of the message show.
fn by_flights(context: &Context, step: &Step, flight: u32, limit: Cause, rest: Nanos, out: &mut Emit<'_>) {
    let (sender, mss) = (step.sender, context.mss[step.sender]);
    let (me, peer) = (Some(Side::from(sender)), Some(Side::from(sender.peer())));
    let facts = flight_facts(context, step, flight);
    if matches!(limit, Cause::SlowReader | Cause::ReceiveWindow) && step.is_unread().is_some() {
        by_reader(context, step, flight, rest, out);
        return;
    }
    let (rule, side, facts) = match (limit, context.unscaled_window[sender]) {
        (Cause::Bandwidth, _) => {
            let granted = out.bandwidth(context, sender, rest, 0);
            out.span(Rule::AlmostSaturated, Cause::Unexplained, None, rest - granted, facts);
            return;
        }
        (Cause::Unexplained, Some((window, ..))) => {
            (Rule::UnknownScalePlateau, None, Facts::UnknownScale { flight, window })
        }
        (Cause::Nagle, _) => {
            let delay = step.acked().map_or(Nanos::ZERO, |a| a.delay);
            let cause = if delay > delayed_from(context.rtt) { Cause::NagleDelayedAck } else { Cause::Nagle };
            let facts = Facts::Nagle { first: mss, held: step.len, ack_delay: delay };
            out.span(Rule::TailHeld, cause, me, rest, facts);
            return;
        }
        (Cause::Unexplained, None) => (Rule::DoubtfulPlateau, None, facts),
        (Cause::SlowReader, _) => {
            let late = step.acked().and_then(|a| a.unread).unwrap_or_default();
            (Rule::UnreadPlateau, peer, Facts::Unread { flight, late })
        }
        (Cause::ReceiveWindow, unscaled) => {
            let rule =
                if unscaled.is_some() { Rule::WindowPlateauByInferredScale } else { Rule::WindowPlateau };
            (rule, peer, Facts::Window { flight, rtt: context.rtt })
        }
        (Cause::SlowStart, _) => (Rule::SlowStart, me, facts),
        (Cause::SendBuffer, _) => (Rule::BufferPlateau, me, facts),
        (Cause::SenderPause, _) if step.drained && step.cwnd != CwndState::Growing => {
            (Rule::WrittenAfterLoss, me, facts)
        }
        (Cause::SenderPause, _) => (Rule::DrippingWriter, me, facts),
        _ => (Rule::CongestionWindow, me, facts),
    };
    out.span(rule, limit, side, rest, facts);
}

/// Nothing in sight released it: the application wrote then.
fn by_writer(context: &Context, step: &Step, pause: &Pause, limit: Cause, rest: Nanos, out: &mut Emit<'_>) {
    let me = Some(Side::from(step.sender));
    let outstanding = pause.outstanding;
    let empty = step.empty_at_sender(context.reaction[step.sender]);
    let facts = Facts::Wait { wait: step.duration(), outstanding, empty };
    if pause.there && told(context, step, outstanding, rest, out) {
        return;
    }
    if pause.there && step.held == Some(Held::Other) {
        // Both windows had room for more, and there was more: it was spaced, by pacing or below TCP.
        out.as_told();
        out.span(Rule::Pacing, Cause::Pacing, me, rest, facts);
        return;
    }
    if limit == Cause::Pacing {
        out.span(spaced_by(context, step), Cause::Pacing, me, rest, facts);
        return;
    }
    // On a plateau the writer wakes up a moment after the ACK that made room (sk_stream_write_space).
    let soon = step.duration() <= context.rtt.times(2).max(Nanos::millis(5));
    if pause.flight > 0 && limit == Cause::SendBuffer && soon {
        let facts = flight_facts(context, step, pause.flight);
        out.span(Rule::WriterWoken, Cause::SendBuffer, me, rest, facts);
        return;
    }
    // The ACK of all that the buffer held woke it up, and its host let it run later (rule 85).
    if limit == Cause::SendBuffer
        && outstanding == 0
        && pause.flight == 0
        && empty.times(2) <= step.duration()
    {
        let late = empty.min(rest);
        let held = Facts::Emptied { wait: step.duration() - empty, late: empty };
        out.span(Rule::WriterWoken, Cause::SendBuffer, me, rest - late, held);
        let facts = Facts::Wait { wait: empty, outstanding, empty };
        out.span(Rule::PauseIdle, Cause::SenderPause, me, late, facts);
        return;
    }
    if context.capture_drops && outstanding > 0 && context.one_sided {
        out.span(Rule::NotCaptured, Cause::Unexplained, None, rest, Facts::NotCaptured);
        return;
    }
    if outstanding > 0 && step.duration() > context.timeout[step.sender].times(2) {
        // It would have been sent again by then (rule 47).
        out.span(Rule::Unrepeated, Cause::Unexplained, None, rest, facts);
        return;
    }
    let rule = if outstanding == 0 { Rule::PauseIdle } else { Rule::PauseInFlight };
    out.span(rule, Cause::SenderPause, me, rest, facts);
}
