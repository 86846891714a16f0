//! An ACK, and what was held until it came.

use crate::profile::WAKE_UP;
use crate::release::value::Wait;
use crate::track::{Ack, Passage};
use tcpwhy_base::Nanos;

/// How long after this ACK could have let it go the segment left, microseconds.
pub(super) fn late_us(p: &Passage<'_>, ack: &Ack) -> u32 {
    ((p.time - p.path.own() - ack.time).floor0().0 / 1_000) as u32
}

/// Bytes in flight before this ACK came.
pub(super) fn flight_until(p: &Passage<'_>, ack: &Ack) -> u32 {
    p.arrived.before.nxt.minus(ack.una_before).max(0) as u32
}

/// The ACK moved the right edge of a window that was full.
pub(super) fn by_window(p: &Passage<'_>, ack: &Ack, flight: u32) -> Wait {
    let mss = p.mss();
    // A window update after everything was acknowledged: the reader made room only then. A small
    // buffer's window opens with the ACK or at once after it.
    let update = ack.ack == ack.una_before;
    let covered = p.acks.newest_first().find(|a| a.ack == ack.ack && a.una_before.before(a.ack));
    let held = covered.map_or(Nanos::ZERO, |a| ack.time - a.time);
    let slow = update && (ack.window_before < mss || held.times(4) >= p.waited());
    let unread = is_unread(p, ack).filter(|_| !slow);
    let window = ack.window_before;
    // A window that never holds a full segment: silly-window avoidance on both sides.
    if p.largest_window.is_some_and(|w| w < mss) {
        Wait::Silly { window }
    } else if slow || unread.is_some() {
        Wait::Closed { window, flight, unread }
    } else {
        Wait::Window { flight }
    }
}

/// Two full segments are acknowledged at once (RFC 9293, 3.8.6.3) unless the window would have to shrink
/// (`__tcp_ack_snd_check`): a late ACK for more waited for the reader.
fn acknowledges_many(p: &Passage<'_>, ack: &Ack) -> bool {
    !ack.at_a_hole() && ack.ack.minus(ack.una_before) >= 2 * p.mss() as i32
}

/// That data lay unread: more than half of the receiver's buffer was full of it (`__tcp_select_window`): a
/// larger one would fill up as well; zero. A small window is mostly what has just arrived, so says nothing;
/// but a late ACK does: for most of the wait, by as much as it was late (rule 86).
pub(super) fn is_unread(p: &Passage<'_>, ack: &Ack) -> Option<Nanos> {
    let offered = ack.offered();
    // The largest may have come since: then it grew, and says nothing of what lay there before.
    let since = || p.acks.newest_first().take_while(|a| a.frame() > ack.frame());
    let grew = |most: u32| since().any(|a| a.offered() >= most);
    let low = |most: u32| most >= 8 * p.mss() && offered <= most / 2 && !grew(most);
    let mostly = p.largest_window.is_some_and(low);
    if mostly && !ack.at_a_hole() && !caught_up(p, ack) {
        return Some(Nanos::ZERO);
    }
    let near = p.path.is_near();
    let many = acknowledges_many(p, ack);
    // A queue that lets all through at once holds no whole window, as long as that is not the limit.
    let told = many && (!near || ack.took() >= ack.window_before / 4 * 3);
    let lay = p.acks.lay_unread(ack, p.mss(), p.path.rtt, p.path.peer());
    if let Some(lay) = lay.filter(|lay| told && lay.times(8) > p.waited()) {
        return Some(lay);
    }
    let lies = || lies_there(p, ack, p.waited()).then_some(Nanos::ZERO);
    // Beside the sender a queue makes ACKs late as well, but it lets what stands in it through by and by.
    if near && !p.acks.is_read_late(ack, p.mss()) {
        return lies();
    }
    let late = match ack.delay() {
        // What was sent again left nobody knows when: no later than the ACK before came.
        None if near => {
            let before = p.acks.newest_first().find(|a| a.frame() < ack.frame() && a.took() > 0)?;
            (ack.time - before.time).min(p.waited()) - p.path.peer()
        }
        _ => ack.late_by(p.path.peer()),
    };
    let of_it = |share: i64| late > WAKE_UP && late.times(share) > p.waited();
    let shows = many && (of_it(2) || of_it(8) && was_never_empty(p));
    shows.then_some(late).or_else(lies)
}

/// This ACK took all that was in flight, so that nothing more came for a trip, and the buffer was empty just
/// before it or after it with nothing new in it: whoever reads had caught up, and waited for data itself. How
/// late the ACK was says what its reader took (rule 21).
fn caught_up(p: &Passage<'_>, ack: &Ack) -> bool {
    let (nxt, largest) = (p.arrived.before.nxt, p.largest_window.unwrap_or(0));
    let is_empty = |a: &Ack| a.offered() > largest / 4 * 3;
    let mut since = p.acks.newest_first().take_while(|a| a.frame() > ack.frame());
    let before = p.acks.newest_first().find(|a| a.frame() < ack.frame());
    !nxt.after(ack.ack) && (since.any(|a| a.ack == ack.ack && is_empty(a)) || before.is_some_and(is_empty))
}

/// For a round trip each ACK has offered no more than three quarters of the largest window, and this one, for
/// two segments or more, was late as well, for an eighth of `wait`: data lay there all the time, and whoever
/// reads never waited for more (rule 21). A window alone may be smaller than before for another reason: Linux
/// scales it by how much memory the packets of late take (`scaling_ratio`), and offers less while it hands up
/// what came together. Neither lasts: the scale is measured anew only where segments become larger
/// (`tcp_measure_rcv_mss`), and a buffer of which all is read in each trip grows (`tcp_rcv_space_adjust`). So
/// three trips of such windows, a plateau (rule 19), say it without a late ACK.
#[inline]
pub(super) fn lies_there(p: &Passage<'_>, ack: &Ack, wait: Nanos) -> bool {
    p.acks.is_low() && lies_behind_low_windows(p, ack, wait)
}

#[cold]
fn lies_behind_low_windows(p: &Passage<'_>, ack: &Ack, wait: Nanos) -> bool {
    let (trip, whole) = (p.path.rtt, p.largest_window.unwrap_or(0) >= 8 * p.mss());
    let low = whole && trip > Nanos::ZERO && p.acks.low_for(ack.time) >= trip;
    let late = || match ack.delay() {
        // More is in flight than the last few whose times are known each.
        None if p.path.is_near() && p.flow.recovery.is_none() => {
            p.departed.left_at(ack.ack).map_or(Nanos::ZERO, |left| ack.time - left - p.path.peer())
        }
        _ => ack.late_by(p.path.peer()),
    };
    let shows = |late: Nanos| late > WAKE_UP && late.times(8) > wait;
    let plateau = || p.acks.low_for(ack.time) >= trip.times(3) && p.acks.had_grown();
    let long = || p.flow.recovery.is_none() && !ack.at_a_hole() && plateau();
    low && (acknowledges_many(p, ack) && shows(late()) || long()) && !caught_up(p, ack)
}

/// None of the last ACKs (four, and those of a reaction time) offered more than three quarters of the largest
/// window: whoever read left something there each time, and so never waited for more (rule 102).
fn was_never_empty(p: &Passage<'_>) -> bool {
    let largest = p.largest_window.filter(|&w| w >= 8 * p.mss());
    largest.is_some_and(|w| p.acks.newest_first().all(|a| a.offered() <= w / 4 * 3))
}
