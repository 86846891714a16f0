//! Whether the ACKs wake the writer of a message.

use crate::attribute::context::Context;
use crate::release::Wait;
use crate::step::Step;
use crate::track::CwndState;
use tcpwhy_base::{Cause, Nanos, Source};

/// Round trips without growth that make a plateau: slow start would have grown eightfold.
pub(super) const PLATEAU: u32 = 3;

/// So soon after its ACK a writer that it woke up has written, if its host is not busy.
pub(super) const WOKEN: Nanos = Nanos::micros(300);

/// Bytes in flight when an ACK ended the wait (or woke up the writer); zero for other waits.
#[inline]
pub(super) fn flight_of(step: &Step) -> u32 {
    match &step.wait {
        Wait::Acked(acked) => acked.flight,
        Wait::Pause(pause) => pause.flight,
        _ => 0,
    }
}

/// A wait that an ACK ended (or a writer that woke up after one).
#[inline]
pub(super) fn clocked(step: &Step) -> bool {
    flight_of(step) > 0
}

/// A wait for the writer that no ACK ended.
pub(super) fn written(step: &Step) -> bool {
    step.pause().is_some_and(|p| p.flight == 0)
}

/// An ACK was there by chance when a piece below a segment was written behind the end of another: fewer packets
/// flew than a congestion window begins with (RFC 6928; `TCP_INIT_CWND`). Linux counts packets, so that many
/// small ones may fill it with less than its `initial` bytes. But what is written into a full one is joined to
/// one segment (`tcp_sendmsg_locked`), and this is no larger than the least (rule 153).
pub(super) fn wrote_a_piece(context: &Context, steps: &[Step], step: &Step, initial: u32) -> bool {
    let (sender, mss) = (step.sender, context.mss[step.sender]);
    let flight = flight_of(step);
    let linux = context.timer[sender].is_some();
    if !linux || step.cwnd != CwndState::Growing || !step.pushed || step.len >= mss || flight >= initial {
        return false;
    }
    let least = steps.iter().filter(|s| s.bytes > 0).map(|s| s.len).min().unwrap_or(1).max(1);
    flight > 0 && (step.len <= least || flight.div_ceil(least) < context.initial_window[sender])
}

/// A loss had made the congestion window smaller.
pub(super) fn is_cut(step: &Step) -> bool {
    matches!(step.cwnd, CwndState::AfterLoss | CwndState::Avoiding)
}

/// How long after an ACK its sender answers it at the tap that judged the step: none of the way, where that
/// stands beside it.
fn reaction_to(context: &Context, step: &Step) -> Nanos {
    if step.across { Nanos::ZERO } else { context.reaction[step.sender] }
}

/// All that was in flight had been acknowledged, as its sender saw it: away from it an ACK that passed less
/// than its reaction ago, and a wake-up, had not come when the segment left (rule 103).
pub(super) fn emptied(context: &Context, step: &Step) -> bool {
    let own = reaction_to(context, step);
    let slack = WOKEN + context.tick;
    let free = match step.wait {
        Wait::Acked(_) => true,
        Wait::Pause(pause) => pause.outstanding == 0 && !pause.there,
        _ => false,
    };
    free && step.empty > Nanos::ZERO && step.empty + slack >= own && step.source == Source::Inferred
}

/// The ACK of all that was in flight wakes the writer, though a busy host may let it run late. A writer with
/// a clock of its own comes as often shortly before such an ACK, with data in flight, as shortly after it:
/// six that came as soon as a wake-up takes, and for eight of them no more than one that came with data in
/// flight, are no chance (1 in 64). So it goes for most waits of the plateau (rule 85).
pub(super) fn wakes_the_writer(context: &Context, steps: &[Step], limits: &[Cause]) -> bool {
    let (mut all, mut empty, mut soon, mut before) = (0_u32, 0, 0, 0);
    for (step, _) in steps.iter().zip(limits).filter(|(_, limit)| **limit == Cause::SendBuffer) {
        let releases = step.releases.max(1);
        if clocked(step) || written(step) {
            all += releases;
        }
        if emptied(context, step) {
            empty += releases;
            // Behind a segment without PSH a congestion window may have been full.
            let within = reaction_to(context, step) + WOKEN + context.tick;
            soon += if step.pushed && step.empty <= within { releases } else { 0 };
        } else if written(step) {
            before += releases;
        }
    }
    soon >= 2 * PLATEAU && 8 * before <= soon && 8 * empty >= 7 * all
}
