//! What a timer of the sender let go because something else was lost: a copy of it, or the ACK that it waited
//! for.

use crate::track::{Ack, Passage};
use tcpwhy_base::Nanos;

/// Two jiffies are added to two smoothed round trips (`TCP_TIMEOUT_MIN_US`), of which the longest in use is 10 ms
/// (`CONFIG_HZ` 100); another one until the tick.
const JIFFIES: Nanos = Nanos::millis(30);

/// Copies of it are missing before this segment, which comes when its timer would send it again, once, and
/// after each lost copy twice as late; or later, for stacks, routes (`rto_min`) and variances make timers longer.
/// Linux sends the last of several that are in flight again after two smoothed round trips (rule 34): of one
/// copy that is soon enough, where the ACK that passed since did not come to it.
pub(super) fn missing_copies(p: &Passage<'_>) -> Option<u32> {
    if p.missing == 0 || p.path.is_near() || p.capture_drops {
        return None;
    }
    let timer = p.timer().times(1 << (p.missing - 1).min(6));
    if p.waited() >= timer - timer.part(16) {
        return Some(u32::from(p.missing));
    }
    // What is missing may be what the hole before it lacks.
    let before_it = p.segment.seq.minus(p.arrived.before.nxt).max(0) as u32;
    let copies = u32::from(p.missing).saturating_sub(before_it.div_ceil(p.mss()));
    let probed = p.profile.os == Some("Linux") && p.waited() >= soonest(p);
    (copies == 1 && probed && (lost_ack(p).is_some() || had_nothing_to_say(p))).then_some(1)
}

/// What is missing was data: its sender had acknowledged all that had come when the segment before left, and
/// nothing came since that has to be (RFC 9293, 3.10.7.4). That was in flight with it, for of one alone the probe is later.
fn had_nothing_to_say(p: &Passage<'_>) -> bool {
    let nxt = p.peer.nxt;
    if !p.arrived.before.nxt.after(p.flow.una) {
        return false;
    }
    let before = p.peer_acks.newest_first().find(|a| a.time <= p.since.time);
    before.is_some_and(|a| !a.ack.before(nxt))
}

/// A tail loss probe sends new data where there is some (RFC 8985, 7.3; `tcp_send_loss_probe`), one segment:
/// nobody had acknowledged what was in flight, so many bytes, for as long as its timer. Beside its sender that
/// were two full segments or more, which are acknowledged at once (RFC 9293, 3.8.6.3): what was written
/// meanwhile would have left then, or the last segment again when the timer ended. Elsewhere the ACK passed and
/// never came to the sender, as the time stamp that it echoes tells (rule 148).
pub(super) fn new_probe(p: &Passage<'_>) -> Option<u32> {
    // Mostly it is sooner, and no ACK has to be looked at.
    if p.waited() < soonest(p)
        || p.profile.os != Some("Linux")
        || p.segment.len > p.mss()
        || p.flow.recovery.is_some()
        || p.capture_drops
    {
        return None;
    }
    let lost = if p.path.is_near() { None } else { Some(lost_ack(p)?) };
    let heard = p.acks.newest_first().find(|a| !p.left_before(a)).map(|a| a.time + p.path.own());
    let una = lost.map_or(p.flow.una, |a| a.una_before);
    let outstanding = p.arrived.before.nxt.minus(una).max(0) as u32;
    let waited = left(p) - heard.map_or(p.since.time, |at| at.max(p.since.time));
    let timer = waited >= soonest(p) && waited <= latest(p);
    (timer && outstanding >= p.mss().saturating_mul(2)).then_some(outstanding)
}

/// When it left, as it would have passed without a queue (rule 96). One that stood in a queue for longer than
/// its sender waits echoes no stamp of the ACKs that passed meanwhile, and none of those was lost.
fn left(p: &Passage<'_>) -> Nanos {
    p.time - p.departed.on_its_way(p.time).map_or(Nanos::ZERO, |(under_way, _)| under_way)
}

/// Away from the sender: the first ACK that passed and cannot have come to it, later than jitter makes any.
fn lost_ack<'a>(p: &Passage<'a>) -> Option<&'a Ack> {
    let due = left(p) - p.path.own() - p.late() - Nanos::millis(1);
    let unheard = p.acks.newest_first().take_while(|a| p.left_before(a));
    unheard.filter(|a| a.ack.after(a.una_before)).last().filter(|a| a.time <= due)
}

/// Two smoothed round trips; an eighth less, as the kernel's and that which is seen are not the same.
fn soonest(p: &Passage<'_>) -> Nanos {
    let timer = p.flow.srtt(p.path.rtt).times(2);
    timer - timer.part(8)
}

/// And two jiffies, an eighth late (timer wheel).
fn latest(p: &Passage<'_>) -> Nanos {
    let timer = p.flow.srtt(p.path.rtt).times(2) + JIFFIES;
    timer + timer.part(8)
}
