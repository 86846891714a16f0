//! What the capture missed and an acknowledgement tells of (rule 94).

use crate::profile::{WAKE_UP, delayed_from};
use crate::release::habits::Habits;
use crate::release::value::{Release, Wait};
use crate::track::{Ack, Arrival, Passage};
use tcpwhy_base::{End, Nanos};

/// Since the last progress the sender acknowledged what its peer never sent past the tap, though it came. It
/// answers that: from when it had come at the latest, as far as is known. Before that the wait was for the
/// peer; what that waited for shows in what passed around it, or not at all.
pub(super) fn answer_to_the_unseen(p: &Passage<'_>, habits: &Habits) -> Option<Release> {
    // What came with a SYN passed without being a segment of its own.
    let end = p.peer.last.map(|l| l.end).or((p.sender == End::Client).then_some(p.peer.base))?;
    // More than the number of a FIN, or the byte of a probe.
    if p.peer.nxt.minus(end) <= 1 || p.one_sided || p.arrived.arrival != Arrival::New {
        return None;
    }
    let start = p.since.time;
    let tells = |a: &&Ack| a.ack.minus(end) > 1;
    let first = p.peer_acks.newest_first().take_while(|a| a.time > start).filter(tells).last()?;
    let passed = (first.time - p.path.own()).max(start);
    let before = held_until(p, habits, first, passed).unwrap_or(Wait::Blind);
    Some(Release { unseen: Some((passed, before)), ..Release::inferred(Wait::ANSWER) })
}

/// What passed unseen until `told` was small, and left with the ACK of a small segment before it: Nagle's
/// algorithm had held it (rule 4).
fn held_until(p: &Passage<'_>, habits: &Habits, told: &Ack, passed: Nanos) -> Option<Wait> {
    let last = p.peer.last?;
    let len = told.ack.minus(last.end).max(0) as u32;
    let small = p.peer.is_small(last.len) && len < p.peer.mss;
    let of_last = |a: &&Ack| a.time > p.since.time && a.ack == last.end && a.una_before.before(last.end);
    let ack = p.peer_acks.newest_first().find(of_last).filter(|_| small)?;
    let wait = passed - p.since.time;
    let soon = WAKE_UP.max(p.path.peer() + p.path.peer().part(8)).max(wait.part(16));
    let known = habits.nagle_holds() > 0 && habits.nodelay_shown(p.sender.peer()) == 0;
    (known && passed - ack.time <= soon).then(|| {
        let delay = ack.late_by(p.path.own());
        let delayed = delay > delayed_from(p.path.rtt);
        let flight = last.end.minus(ack.una_before).max(0) as u32;
        Wait::Nagle { first: last.len, flight, delay, delayed, late_us: 0, prompt: true }
    })
}
