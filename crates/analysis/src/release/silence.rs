//! Silences that a timer of the sender ended, as what passes behind them shows (rule 93).

use crate::profile::WAKE_UP;
use crate::release::value::{Release, Wait};
use crate::track::{Arrival, Passage, Repair};
use tcpwhy_base::Nanos;

/// After a silence as long as its timer it had sent again what was acknowledged at the tap, more than a trip before: that had not come to it, and so its
/// application had not been what it waited for. If this segment left with the answer to the repeat, or leaves out what never passed, the wait was
/// the timer's until now. What never passed was lost, too; else the repeat was not needed.
pub(super) fn ended_by_a_repeat(p: &Passage<'_>) -> Option<Release> {
    let again = p.flow.last.filter(|l| l.time > p.since.time && !p.arrived.before.nxt.after(l.una))?;
    // What passes the tap a quarter later than usual is late (RFC 8985, 6.2), or its host had to wake up.
    let within = |trip: Nanos| trip.times(5).part(4) + WAKE_UP;
    let unheard = p.flow.last_advance.is_some_and(|a| again.time - a > within(p.path.own()));
    if !unheard || again.time - p.since.time < shortest_timer(p) {
        return None;
    }
    let lost = leaves_out(p);
    let answered = p.time - again.time <= within(p.path.rtt);
    let repair = if lost { Repair::Timeout } else { Repair::Spurious };
    (lost || answered).then(|| Release::inferred(Wait::Loss { repair, again: true }))
}

/// Before this segment one was alone in flight for a round trip, though more of its write was to come (no PSH, RFC 9293, 3.9.1.2), and this one leaves out what
/// never passed. That is the window of one segment after a timeout, while an idle time leaves that of a beginning (RFC 5681, 3.1 and 4.1;
/// `tcp_enter_loss`, `tcp_cwnd_restart`): what was alone had been sent again, and a silence before it was a timer's. Gives how long that is at least.
#[inline]
pub(crate) fn shows_a_loss_window(p: &Passage<'_>) -> Option<Nanos> {
    if !leaves_out(p) || p.since.speaker != p.sender || p.path.is_near() {
        return None;
    }
    let last = p.flow.last.filter(|l| l.time == p.since.time && !l.psh && l.len == p.flow.mss)?;
    let alone = !(p.arrived.before.nxt - last.len).after(last.una);
    (alone && p.waited() >= p.path.rtt - p.path.rtt.part(8)).then(|| shortest_timer(p))
}

/// Data before it did not pass.
fn leaves_out(p: &Passage<'_>) -> bool {
    p.arrived.arrival == Arrival::New && p.segment.seq.after(p.arrived.before.nxt)
}

/// No timeout is shorter: a round trip and its floor (RFC 6298, 2.4), an eighth less for what the packet before was late by.
fn shortest_timer(p: &Passage<'_>) -> Nanos {
    p.path.rtt + p.profile.rto_floor.times(7).part(8)
}
