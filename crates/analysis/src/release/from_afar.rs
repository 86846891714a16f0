//! What the path hides from a tap that is away from the sender: data that no ACK released when it would have come without a queue.

use crate::release::habits::Habits;
use crate::release::value::{Acked, Release, Wait};
use crate::release::window::{by_window, flight_until};
use crate::track::{Ack, Passage};
use tcpwhy_base::Nanos;

/// A full segment in the middle of a run, seen from afar, that no ACK released when it would have come without a queue (rule 72). If
/// none can have reached its sender in this wait, it had left before: the link let it through behind the one before. If the window
/// had no room for it until one of them, that ACK ended the wait, and the queue came on top.
pub(super) fn in_the_queue(p: &Passage<'_>) -> Option<Release> {
    let (reaction, start) = (p.path.own(), p.since.time);
    let from = start - reaction - reaction.part(8);
    // On a path shorter than a wake-up the hosts take as long as any link.
    let told = p.path.reaction.is_some() && p.path.rtt >= Nanos::millis(1);
    // ACKs that a hole makes the receiver repeat are not kept, and each may have let something go (RFC 6937).
    let recent = || p.acks.newest_first().take_while(|a| a.time > from);
    let repeated = p.flow.recovery.is_some() || recent().any(Ack::at_a_hole);
    if p.capture_drops || repeated || !told || !p.acks.known_since(from) {
        return None;
    }
    let nxt = p.arrived.before.nxt;
    let needed = p.segment.len.min(p.mss()) as i32;
    let opens = |a: &&Ack| a.edge_before.minus(nxt) < needed && a.edge.minus(nxt) >= needed;
    // What came when the segment before had hardly left had let that go: it cannot be what this one waited for so much longer.
    let used = |a: &Ack| a.time + reaction <= start + reaction.part(8) && p.waited() > reaction.part(4);
    let tells =
        |a: &&Ack| (a.ack.after(a.una_before) || a.edge.after(a.edge_before)) && (opens(a) || !used(a));
    let mut acks = recent().skip_while(|a| a.time > p.time - reaction).filter(tells);
    let mut any = false;
    let opening = acks.find(|a| {
        any = true;
        opens(a)
    });
    match opening {
        Some(ack) if ack.time + reaction > start && ack.window_before >= p.mss() => {
            Some(Release::inferred(by_window(p, ack, flight_until(p, ack))).with_ack(ack.frame()))
        }
        _ if any => None,
        _ => Some(Release::inferred(Wait::Burst)),
    }
}

/// What is held partial grows with what is written behind it and leaves when it is full, without an ACK: where holds of the sender are known,
/// and no ACK can have reached it since its segment before, it was its writer (rule 83). Not within what a link needs for it.
pub(super) fn fills_a_hold(p: &Passage<'_>, habits: &Habits) -> bool {
    let (reaction, start) = (p.path.own(), p.since.time);
    let jitter = p.path.early();
    let crossing = p.rate.map_or(Nanos::ZERO, |r| r.crossing(p.segment.len));
    let known = habits.nagle_holds() >= 2 && habits.nodelay_shown(p.sender) == 0 && p.flow.recovery.is_none();
    let none = || p.acks.newest_first().find(|a| a.time <= p.time - reaction + jitter);
    known
        && p.waited() > crossing.times(2).max(jitter.times(2))
        && none().is_none_or(|a| a.time + reaction <= start + jitter)
}

/// Seen from afar: the write went on behind the segment before (no PSH), so that the ACK of all that was in flight let this one go, late though it is
/// by the path, a link whose rate nobody knows yet, or its host: by no more than a quarter of its wait (rules 36 and 49).
pub(super) fn late_for_the_path(p: &Passage<'_>) -> Option<Release> {
    let full = !p.flow.is_small(p.flow.last_len());
    if p.path.is_near()
        || p.pushed()
        || !full
        || !p.was_free()
        || p.path.reaction.is_none()
        || p.capture_drops
    {
        return None;
    }
    let covers = |a: &&Ack| !p.arrived.before.nxt.after(a.ack);
    let ack = p.acks.newest_first().take_while(covers).last()?;
    let at = ack.time + p.path.own();
    let flight = flight_until(p, ack);
    if at <= p.since.time
        || (p.time - at).times(4) > p.waited()
        || flight == 0
        || !p.acks.known_since(p.since.time)
    {
        return None;
    }
    let acked = Acked {
        flight,
        room: Some(ack.edge_before.minus(p.arrived.before.nxt).max(0) as u32),
        delay: ack.late_by(p.path.peer()),
        ..Acked::default()
    };
    Some(Release { freed: Some(at), ..Release::inferred(Wait::Acked(acked)).with_ack(ack.frame()) })
}
