//! The ACKs that a segment may have left with.

use crate::track::{Ack, CwndState, Passage};
use tcpwhy_base::{Nanos, Seq};

/// The ACKs a segment may have left with, and what they did for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock<'a> {
    /// The latest.
    pub(super) ack: &'a Ack,
    /// The earliest that made the window large enough.
    pub(super) opens: Option<&'a Ack>,
    /// The earliest that covered the small segment that Nagle's rule waits for.
    pub(super) frees: Option<&'a Ack>,
    /// Acknowledged before the earliest of them.
    pub(super) una_before: Seq,
    /// Not every ACK that came during the wait would be one of them.
    pub(super) tells: bool,
}

/// The ACKs that this segment may have left with: they passed the tap one reaction time before it, after the
/// sender had sent its segment before. At the sender's own tap that is within 1 ms, or half a round trip where that is
/// less; elsewhere an eighth of the reaction time is allowed for jitter.
pub(super) fn lock<'a>(p: &Passage<'a>, nodelay: bool) -> Option<Lock<'a>> {
    let (t, start, reaction) = (p.time, p.since.time, p.path.own());
    let early = p.path.early();
    let late = p.late();
    let from = (t - reaction - late).max(start - reaction + Nanos(1));
    let to = t - reaction + early;
    let nxt = p.arrived.before.nxt;
    let needed = p.segment.len.min(p.mss()) as i32;
    // With nothing in flight for longer than a wake-up only a window can have held it (rule 49).
    let free = p.was_free();
    // Where all of the wait is as near to the segment, an ACK is there by chance (rule 65).
    let tells = t - start > late + early;
    let mut lock: Option<Lock<'a>> = None;
    let acks = p.acks.newest_first().skip_while(|a| a.time > to).take_while(|a| a.time >= from);
    for ack in acks.filter(|a| !p.left_before(a) || is_close(p, a)) {
        let room = ack.edge_before.minus(nxt);
        let opens = room < needed && ack.edge.minus(nxt) >= needed;
        let una_before = ack.una_before;
        if free && !opens {
            continue;
        }
        let found = lock.get_or_insert(Lock { ack, opens: None, frees: None, una_before, tells });
        found.una_before = una_before;
        if opens {
            found.opens = Some(ack);
        }
        if !nodelay && is_held_until(p, ack) {
            found.frees = Some(ack);
        }
    }
    lock
}

/// A duplicate ACK or a SACK block says that a segment has left the path, and the next one goes: only the
/// congestion window can have held it (RFC 3042; Linux counts what is in flight without it,
/// `tcp_packets_in_flight`). How much was in flight. It is no ACK of anything, so that it is not among those
/// of [`lock`]; of those of one hole the first and the last are known, between which a path brings them (rule 147).
pub(super) fn by_a_duplicate(p: &Passage<'_>) -> Option<u32> {
    let (first, last) = p.flow.signs()?;
    let (start, reaction) = (p.since.time, p.path.own());
    let first = if p.path.is_near() { last } else { first };
    let (from, to) = (p.time - reaction - p.late(), p.time - reaction + p.path.early());
    // What closed the hole at the tap had not come to the sender by then.
    let una = p.acks.newest_first().take_while(|a| a.time > to).last().map_or(p.flow.una, |a| a.una_before);
    let flight = p.arrived.before.nxt.minus(una).max(0) as u32;
    let may = flight > 0 && last >= from && first <= to && last > start - reaction;
    may.then_some(flight)
}

/// Beside a sender whose stack is not known, the ACK of all that was in flight passed just before, after a
/// wait 64 times as long: by chance that is so once in 64 times, and stacks of RFC 1323 do not echo the
/// stamps of pure ACKs (rule 43).
fn is_close(p: &Passage<'_>, ack: &Ack) -> bool {
    let after = p.time - ack.time;
    p.path.is_near()
        && p.profile.os != Some("Linux")
        && ack.pure()
        && !p.arrived.before.nxt.after(ack.ack)
        && after <= Nanos::millis(1)
        && after.times(64) <= p.waited()
}

/// A partial segment was out, this is its ACK, and the new segment is partial: what Nagle's rule holds. Stacks with the
/// classic rule hold it for any unacknowledged data.
pub(super) fn is_held_until(p: &Passage<'_>, ack: &Ack) -> bool {
    let mss = p.flow.mss;
    if mss == 0 || p.segment.len >= mss {
        return false;
    }
    let (nxt, small_end) = (p.arrived.before.nxt, p.arrived.before.small_end);
    let out = nxt.after(ack.una_before) && ack.ack.after(ack.una_before);
    if p.profile.minshall {
        out && small_end.after(ack.una_before) && !small_end.after(ack.ack)
    } else {
        out && !nxt.after(ack.ack) && (small_end == nxt || !may_be_cwnd(p, ack))
    }
}

/// The congestion window, which the kernel asks for first (rule 6), may have held the tail of full segments:
/// more had not flown before, and the initial window is known to be smaller than usual, or a loss made it
/// smaller.
fn may_be_cwnd(p: &Passage<'_>, ack: &Ack) -> bool {
    let cwnd = &p.flow.cwnd;
    let flight = p.arrived.before.nxt.minus(ack.una_before).max(0) as u32;
    match cwnd.state() {
        CwndState::AfterLoss | CwndState::Avoiding => flight + p.segment.len > ack.cwnd,
        _ => {
            let small = cwnd.initial > 0 && cwnd.initial < p.profile.initial_window * p.mss();
            small && flight >= cwnd.max_flight
        }
    }
}

/// The partial segment that ends a write behind full ones, of a stack that is not known for Minshall's rule,
/// when nothing was in flight any more and no loss or idle time has made its window smaller (rule 54). A
/// writer that stops in between marks the segment before (`tcp_push`, also where it waits for buffer space).
pub(super) fn is_tail(p: &Passage<'_>) -> bool {
    let goes_on = p.flow.last.is_some_and(|l| !l.psh && l.len > 0 && !p.flow.is_small(l.len));
    p.segment.flags.psh()
        && goes_on
        && p.profile.os != Some("Linux")
        && !p.arrived.before.nxt.after(p.flow.una)
        && p.flow.is_small(p.segment.len)
        && p.flow.cwnd.state() == CwndState::Growing
}

/// The first flight of the connection, larger than the initial windows of RFC 5681 and not that of RFC 6928.
pub(super) fn is_no_initial_window(p: &Passage<'_>, flight: u32) -> bool {
    let first = p.arrived.before.nxt - flight == p.flow.base;
    let segments = flight / p.mss();
    first && segments > 4 && segments != 10
}

/// Two partial segments within two round trips: the second did not wait for the first one's ACK, so Nagle is
/// off. Later a tail loss probe would send it all the same (`tcp_send_loss_probe`).
pub(super) fn shows_nodelay(p: &Passage<'_>) -> bool {
    let before = p.arrived.before;
    let pair = before.small_end == before.nxt
        && before.small_end.after(p.flow.base)
        && p.flow.is_small(p.segment.len);
    // The last one leaves with the FIN whatever is unacknowledged (`tcp_nagle_test`).
    pair && p.flow.outstanding() > p.segment.len && p.waited() < p.path.rtt.times(2) && !p.segment.flags.fin()
}
