//! Silences that a timer of the sender ended, as what passes behind them shows (rule 93).

use crate::profile::WAKE_UP;
use crate::release::value::{Release, Wait};
use crate::track::{Ack, Arrival, Last, Passage, Repair};
use tcpwhy_base::Nanos;

/// What a segment shows of the wait before the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hindsight {
    /// A silence of at least so long was that of a timer, which sent again what ended it.
    TimedOut { at_least: Nanos },
    /// What a needless repeat seemed to have repaired was lost as well.
    LostBehind,
}

/// What this segment shows of the wait before the one before it.
#[inline]
pub(crate) fn hindsight(p: &Passage<'_>) -> Option<Hindsight> {
    // Beside the sender (a fifth of the round trip is near enough) all passes that leaves.
    let beside = p.path.own().times(4) <= p.path.peer();
    if p.since.speaker != p.sender || beside || p.arrived.arrival != Arrival::New {
        return None;
    }
    // The first segment behind a needless repeat leaves out what never passed.
    let needless = |r: (Repair, Nanos)| r.0 == Repair::Spurious && r.1 > p.since.time;
    if p.since.recovered.is_some_and(needless) {
        return leaves_out(p).then_some(Hindsight::LostBehind);
    }
    shows_a_loss_window(p).then(|| Hindsight::TimedOut { at_least: shortest_timer(p) })
}

/// After a silence as long as its timer it had sent again what was acknowledged at the tap, more than a trip
/// before: that had not come to it, and so its application had not been what it waited for. If this segment
/// left with the answer to the repeat, or leaves out what never passed, the wait was the timer's until now.
/// What never passed was lost, too; else the repeat was not needed.
pub(super) fn ended_by_a_repeat(p: &Passage<'_>) -> Option<Release> {
    let again = p.flow.last.filter(|l| l.time > p.since.time && !p.arrived.before.nxt.after(l.una))?;
    let unheard = p.flow.last_advance.is_some_and(|a| again.time - a > within(p.path.own()));
    if !unheard || again.time - p.since.time < shortest_timer(p) {
        return None;
    }
    let lost = leaves_out(p);
    let answered = p.time - again.time <= within(p.path.rtt);
    let repair = if lost { Repair::Timeout } else { Repair::Spurious };
    (lost || answered).then(|| Release::inferred(Wait::Loss { repair, again: true }))
}

/// Before this segment one was alone in flight for a round trip, though more of its write was to come (no
/// PSH, RFC 9293, 3.9.1.2) and the peer's window had room for it. That is the window of one segment after a
/// timeout, while an idle time leaves that of a beginning (RFC 5681, 3.1 and 4.1; `tcp_enter_loss`,
/// `tcp_cwnd_restart`; other stacks than Linux may begin with one as well, so that what never passed before
/// this segment has to show it): what was alone had been sent again, and a silence before it was a timer's.
fn shows_a_loss_window(p: &Passage<'_>) -> bool {
    let (nxt, mss, trip) = (p.arrived.before.nxt, p.flow.mss, p.path.rtt);
    let alone = |l: &Last| l.time == p.since.time && !l.psh && l.len == mss && !(nxt - l.len).after(l.una);
    if p.waited() < trip - trip.part(8) || !p.flow.last.as_ref().is_some_and(alone) {
        return false;
    }
    let opened =
        |a: &Ack| a.ack == nxt && a.una_before.before(nxt) && a.edge_before.minus(nxt) >= 2 * mss as i32;
    let answered = || p.waited() <= within(trip) && p.acks.newest_first().next().is_some_and(opened);
    leaves_out(p) || p.profile.os == Some("Linux") && answered()
}

/// What passes the tap a quarter later than usual is late (RFC 8985, 6.2), or its host had to wake up.
fn within(trip: Nanos) -> Nanos {
    trip.times(5).part(4) + WAKE_UP
}

/// Data before it did not pass.
fn leaves_out(p: &Passage<'_>) -> bool {
    p.arrived.arrival == Arrival::New && p.segment.seq.after(p.arrived.before.nxt)
}

/// No timeout is shorter: a round trip and its floor (RFC 6298, 2.4), an eighth less for what the packet
/// before was late by.
fn shortest_timer(p: &Passage<'_>) -> Nanos {
    p.path.rtt + p.profile.rto_floor.times(7).part(8)
}
