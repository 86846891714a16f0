//! What the path hides from a tap that is away from the sender: data that no ACK released when it would have
//! come without a queue.

use crate::release::habits::Habits;
use crate::release::value::{Acked, Freed, Release, Wait};
use crate::release::window::{by_window, flight_until};
use crate::track::{Ack, Passage};
use tcpwhy_base::Nanos;

/// Of the time stamps that tell how long packets were under way.
const TICK: Nanos = Nanos::millis(1);

/// A full segment in the middle of a run, seen from afar, that no ACK released when it would have come
/// without a queue (rule 72). If none can have reached its sender in this wait, it had left before: the link
/// let it through behind the one before. If the window had no room for it until one of them, that ACK ended
/// the wait, and the queue came on top.
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
    // What came when the segment before had hardly left had let that go: it cannot be what this one waited
    // for so much longer.
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

/// What is held partial grows with what is written behind it and leaves when it is full, without an ACK:
/// where holds of the sender are known, and no ACK can have reached it since its segment before, it was its
/// writer (rule 83). Not within what a link needs for it.
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

/// Seen from afar: the write went on behind the segment before (no PSH), so that the ACK of all that was in
/// flight let this one go, late though it is by the path, a link whose rate nobody knows yet, or its host: by
/// no more than a quarter of its wait (rules 36 and 49).
pub(super) fn late_for_the_path(p: &Passage<'_>) -> Option<Release> {
    let full = !p.flow.is_small(p.flow.last_len());
    if is_untold(p) || p.pushed() || !full || !p.was_free() {
        return None;
    }
    let covers = |a: &&Ack| !p.arrived.before.nxt.after(a.ack);
    let ack = p.acks.newest_first().take_while(covers).last()?;
    let at = ack.time + p.path.own();
    if at <= p.since.time
        || (p.time - at).times(4) > p.waited()
        || flight_until(p, ack) == 0
        || !p.acks.known_since(p.since.time)
    {
        return None;
    }
    Some(let_go(p, ack, Freed { at, under_way: Nanos::ZERO }))
}

/// Nothing is known of what ACKs let go, seen from here.
fn is_untold(p: &Passage<'_>) -> bool {
    p.path.is_near() || p.path.reaction.is_none() || p.capture_drops
}

/// Seen from afar: no writer paused, but an ACK let it go, and by how much it came later than that was the
/// path (rule 96). It left with an ACK whose time stamp it echoes and before the next one came (rule 43), or
/// just behind an ACK by its own time stamp; and the ACKs before that lie as far back as it waited, or had
/// come before the segment before it: who writes when it pleases uses none of those that come meanwhile.
pub(super) fn left_with_an_ack(p: &Passage<'_>) -> Option<Release> {
    if is_untold(p) {
        return None;
    }
    let soon = TICK.times(2).max(p.waited().part(8));
    let ack = echoed_ack(p, soon).or_else(|| ack_before_its_stamp(p))?;
    let since = (ack.time - p.waited()).max(p.since.time - p.path.own()) + soon.times(2);
    let before = p.acks.newest_first().find(|a| ack.time - a.time > soon);
    let alone = before.map_or_else(|| p.acks.known_since(since), |a| a.time <= since);
    let at = ack.time + p.path.own();
    let under_way = p.time - at;
    if !alone || p.waited() <= soon.times(4) || under_way <= soon || flight_until(p, ack) == 0 {
        return None;
    }
    Some(if at > p.since.time {
        let_go(p, ack, Freed { at, under_way })
    } else {
        Release::inferred(Wait::OnItsWay { under_way, even: false })
    })
}

/// The last ACK that had come to its sender by the time stamp that it echoes, where the next one came soon behind that.
fn echoed_ack<'a>(p: &Passage<'a>, soon: Nanos) -> Option<&'a Ack> {
    let mut next = None;
    let ack = p.acks.newest_first().find(|a| {
        let later = p.left_before(a);
        next = if later { Some(a.time) } else { next };
        !later
    })?;
    next.is_some_and(|next| next - ack.time <= soon).then_some(ack)
}

/// The last ACK that had come to its sender when it left by its own time stamp, which tells that to a tick,
/// as does the quickest one that it is compared with; just before it left.
fn ack_before_its_stamp<'a>(p: &Passage<'a>) -> Option<&'a Ack> {
    let (under_way, _) = p.departed.on_its_way(p.time)?;
    let left = p.time - under_way - p.path.own();
    let ack = p.acks.newest_first().find(|a| a.time <= left + TICK)?;
    (under_way > Nanos::ZERO && left - ack.time <= TICK.times(2)).then_some(ack)
}

/// This ACK let it go, and it came later.
fn let_go(p: &Passage<'_>, ack: &Ack, freed: Freed) -> Release {
    let acked = Acked {
        flight: flight_until(p, ack),
        room: Some(ack.edge_before.minus(p.arrived.before.nxt).max(0) as u32),
        delay: ack.late_by(p.path.peer()),
        ..Acked::default()
    };
    Release { freed: Some(freed), ..Release::inferred(Wait::Acked(acked)).with_ack(ack.frame()) }
}
