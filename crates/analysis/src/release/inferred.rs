//! What released a segment, as the packets tell.
//!
//! The rules are those of `docs/causes`; each threshold names its source here.

use crate::profile::{NO_WAIT, delayed_from};
use crate::release::acked::{Lock, by_a_duplicate, is_held_until, is_tail, lock};
use crate::release::from_afar::{fills_a_hold, in_the_queue, late_for_the_path, left_with_an_ack};
use crate::release::habits::Habits;
use crate::release::probes::{missing_copies, new_probe};
use crate::release::repeats::retransmission;
use crate::release::silence::ended_by_a_repeat;
use crate::release::unseen::answer_to_the_unseen;
use crate::release::value::{Acked, Doubt, Freed, Pause, Release, Wait};
use crate::release::window::{by_window, flight_until, is_unread, late_us, lies_there};
use crate::track::{Ack, Arrival, CwndState, Passage, Repair, Repeat};
use tcpwhy_base::{Nanos, Seq};

/// Decides what released the segment.
pub(super) fn inferred(p: &Passage<'_>, habits: &Habits) -> Release {
    let start = p.since.time;
    let recovered = p.since.recovered.filter(|r| r.1 > start).map(|(kind, until)| (kind, until.min(p.time)));
    if let Some(release) = answer_to_the_unseen(p, habits) {
        return release;
    }
    if p.since.speaker != p.sender {
        // What is sent again beside other streams or a next request answers nothing.
        if p.arrived.arrival == Arrival::Retransmission && p.arrived.repeat != Repeat::Needless {
            return retransmission(p);
        }
        let mut response = response(p, habits);
        response.loss = recovered;
        return response;
    }
    match p.arrived.arrival {
        Arrival::Retransmission => return retransmission(p),
        Arrival::Repaired { opened } => {
            // A fast repair takes a round trip from the last that came, and a quarter for what came out of
            // order (RFC 8985, 6.2).
            let timer = p.profile.rto_floor.times(7).part(8).max(p.path.rtt.times(5).part(4));
            let repair = if p.waited() >= timer { Repair::Timeout } else { Repair::Fast };
            let wait = Wait::Loss { repair, again: false };
            return Release::inferred(wait).with_loss(Some((repair, opened)));
        }
        _ => {}
    }
    let wait = if p.waited() <= burst_within(p.path.rtt, p.tick) {
        Release::inferred(Wait::Burst)
    } else if let Some(release) = ended_by_a_repeat(p) {
        return release;
    } else if p.one_sided || !p.flow.edge_known {
        Release::inferred(Wait::Blind)
    } else if let Some(packets) = missing_copies(p) {
        Release::inferred(Wait::Missing { packets })
    } else if p.flow.probed {
        probed(p)
    } else if p.under_way().surely >= p.waited() + p.tick {
        Release::inferred(Wait::Standing { under_way: p.under_way().surely })
    } else {
        let release = match lock(p, habits.nodelay_shown(p.sender) > 0) {
            Some(lock) => with_ack(p, habits, &lock),
            None => without_ack(p, habits),
        };
        match p.was_on_its_way().filter(|_| matches!(release.wait, Wait::Pause(_) | Wait::Acked(_))) {
            Some((under_way, even)) => Release::inferred(Wait::OnItsWay { under_way, even }),
            None if matches!(release.wait, Wait::Pause(_)) => left_with_an_ack(p).unwrap_or(release),
            None => release,
        }
    };
    wait.with_loss(p.flow.repair().map(|kind| (kind, p.time)).or(recovered))
}

/// Less than this between two segments is no wait: system calls, interrupts and a virtual CPU's wake-up take
/// that (measured: 50 to 130 µs for an empty path), and a 64th of a long round trip. Nor is what a coarse
/// clock cannot tell from nothing (rule 50): the true wait may be a tick longer or shorter.
#[inline]
pub(crate) fn burst_within(rtt: Nanos, tick: Nanos) -> Nanos {
    rtt.part(64).max(NO_WAIT).max(tick.times(2))
}

/// The first segment of the other side.
fn response(p: &Passage<'_>, habits: &Habits) -> Release {
    let start = p.since.time;
    if p.peer.probed && p.peer.is_shut() {
        return Release::inferred(Wait::Shut { window: p.peer.window });
    }
    if p.flow.probed {
        return probed(p);
    }
    // What was held by Nagle across a turn: a small segment out before, this one small, locked to its ACK.
    let nodelay = habits.nodelay_shown(p.sender) > 0;
    let tells = |l: &Lock<'_>| l.tells || habits.nagle_holds() >= 2;
    // What acknowledges nothing of the last that came had left before that came.
    let before = p.peer.last.is_some_and(|l| p.peer.nxt.minus(p.segment.ack) >= l.len.max(1) as i32);
    // Mostly no ACK came since, so that none of them can have let it go.
    let any_since = || p.acks.newest_first().next().is_some_and(|a| a.time > start);
    if (before || any_since())
        && let Some(ack) = lock(p, nodelay).filter(tells).and_then(|l| l.frees)
        && ack.pure()
        && (ack.time > start || before)
    {
        return nagle(p, ack, flight_until(p, ack), true);
    }
    // A probe or timer sends one segment again: those before it in its flight were lost as well, at the same time.
    let before_it = p.segment.seq.minus(p.arrived.before.nxt).max(0) as u32;
    // An answer that is lost may be missing before an ACK: a request that comes again is acknowledged again.
    let missing = p.missing + p.flow.last.map_or(0, |l| u16::from(l.skipped));
    let others = before_it.div_ceil(p.mss()).min(u32::from(missing)) as u16;
    let copies = if missing > 0 { (missing - others).max(1) } else { 0 };
    Release::inferred(Wait::Turn {
        on_the_way: still_on_its_way(p),
        unheard: unheard(p),
        doubt: doubt(p, copies),
        seen: None,
    })
}

/// It had probed the window that its peer had shut (rule 57).
fn probed(p: &Passage<'_>) -> Release {
    let mss = p.mss() as i32;
    let nxt = p.arrived.before.nxt;
    let opened = |a: &&Ack| a.edge_before.minus(nxt) < mss && a.edge.minus(nxt) >= mss;
    let update = p.acks.newest_first().find(opened);
    let window = update.map_or(p.flow.window, |a| a.window_before);
    let closed = Release::inferred(Wait::Closed { window, flight: 0, unread: None });
    update.map_or(closed, |a| closed.with_ack(a.frame()))
}

/// How long the request was on its way beyond the trip, as the first ACK of it bounds that (rule 51), be it
/// the answer itself if nothing of its sender is missing before that. Linux acknowledges within 40 ms or a
/// round trip where that is longer (`tcp_send_delayed_ack`), others within half a second (RFC 9293, 3.8.6.3);
/// and 8 ms of a timer wheel.
fn unheard(p: &Passage<'_>) -> Nanos {
    let start = p.since.time;
    // What was sent again may have been acknowledged before, or not have come.
    let again = p.peer.last.is_some_and(|l| l.time > start);
    let linux = p.profile.os == Some("Linux");
    let latest = if linux { p.path.rtt.max(Nanos::millis(40)) } else { Nanos::millis(500) };
    let due = p.path.own() + latest + Nanos::millis(8);
    if p.waited() <= due || p.path.is_near() || p.capture_drops || again {
        return Nanos::ZERO;
    }
    let since = p.peer_acks.newest_first().take_while(|a| a.time > start);
    let known = |a: &&Ack| a.pure() || p.flow.numbering.is_steady() && p.missing == 0;
    let Some(ack) = since.filter(|a| !a.ack.before(data_end(p))).last().filter(known) else {
        return Nanos::ZERO;
    };
    // An answer takes its time on the link, too.
    let crossing = p.rate.filter(|_| !ack.pure()).map_or(Nanos::ZERO, |r| r.crossing(p.segment.len));
    (ack.time - start - due - crossing).floor0()
}

/// Behind the last byte of the peer's message; its FIN, which may pass much later, is none of it.
fn data_end(p: &Passage<'_>) -> Seq {
    p.peer.last.map_or(p.peer.nxt, |last| last.end)
}

/// How long after the last progress an ACK still did not cover all that the peer had sent: it left before the
/// last of it arrived, so nobody could have worked on the message by then.
fn still_on_its_way(p: &Passage<'_>) -> Nanos {
    let start = p.since.time;
    let mut acks = p.peer_acks.newest_first().take_while(|a| a.time > start);
    acks.find(|a| a.ack.before(data_end(p))).map_or(Nanos::ZERO, |a| a.time - start)
}

/// Whether the response was lost once (rule 35); so many copies of it are missing.
fn doubt(p: &Passage<'_>, missing: u16) -> Doubt {
    let think = p.waited() - p.path.own();
    let timer = p.timer();
    if p.path.is_near() || p.path.reaction.is_none() || think < timer - timer.part(16) {
        return Doubt::None;
    }
    if is_in_pieces(p) && !p.capture_drops {
        return Doubt::Pieces;
    }
    // Each retransmission doubles the timer: after n losses it has run 1 + 2 + ... + 2^(n-1) times.
    let lost = |n: u16| timer.times((1 << n.min(7)) - 1);
    if missing > 0 {
        let enough = think >= lost(missing) - lost(missing).part(16);
        return if enough && !p.capture_drops { Doubt::Missing(missing) } else { Doubt::Possible };
    }
    if p.flow.numbering.is_steady() {
        return Doubt::None;
    }
    // A third loss in a row of the same segment is too seldom for the time when it would come to say much.
    let at_timer = |n: u16| think >= lost(n) - lost(n).part(16) && think <= lost(n) + timer.part(2);
    if (1..=2).any(at_timer) { Doubt::Timed } else { Doubt::Possible }
}

/// A part of what its sender has, far below a full segment, though a full one may be sent (rule 71): three
/// quarters are less than any tunnel or cached path MTU leaves of 1,500 bytes (1,280, RFC 8200, 5).
fn is_in_pieces(p: &Passage<'_>) -> bool {
    let room = p.flow.edge.minus(p.arrived.before.nxt);
    !p.segment.flags.psh()
        && !p.segment.flags.fin()
        && 4 * u64::from(p.segment.len) <= 3 * u64::from(p.mss())
        && room >= p.mss() as i32
}

/// It left with an ACK. Where one ACK ended several limits (rule 6), the kernel asks for the congestion
/// window first, then the window, then Nagle (`tcp_write_xmit`).
fn with_ack(p: &Passage<'_>, habits: &Habits, lock: &Lock<'_>) -> Release {
    let mss = p.mss();
    let flight = p.arrived.before.nxt.minus(lock.una_before).max(0) as u32;
    let cwnd = lock.opens.or(lock.frees).map_or(0, |a| a.cwnd);
    // After an idle time only the first flight has a window that is known.
    let known = match p.flow.cwnd.state() {
        CwndState::Growing => cwnd > 0,
        // Fewer segments that it began with may have filled a receiver's window (rule 55).
        CwndState::Restarted => cwnd == p.profile.initial_window * mss,
        CwndState::RestartedAfterLoss => cwnd > 0 && cwnd <= p.profile.initial_window * mss,
        CwndState::AfterLoss | CwndState::Avoiding => false,
    };
    let nodelay_unseen = habits.nodelay_shown(p.sender) == 0;
    // A timer leaves a window of one segment (RFC 5681, 3.1), until the ACK that ends its recovery; bytes or,
    // for Linux, packets.
    let timed =
        |r: (Repair, Nanos)| matches!(r.0, Repair::Timeout | Repair::Spurious) && r.1 >= lock.ack.time;
    let after_timer = p.since.recovered.is_some_and(timed) && flight <= mss && flight + p.segment.len > mss;
    let by_cwnd = known && flight + mss >= cwnd || after_timer;
    match (lock.opens, lock.frees) {
        (Some(ack), _) if !by_cwnd || ack.window_before < mss => {
            Release::inferred(by_window(p, ack, flight)).with_ack(ack.frame())
        }
        // An ACK that came anywhere in so short a wait would look as if it had ended it: the writer's own gap
        // (rule 65).
        (_, Some(_)) if !by_cwnd && !lock.tells && habits.nagle_holds() < 2 => {
            let outstanding = p.arrived.before.nxt.minus(p.flow.una).max(0) as u32;
            Release::inferred(Wait::Pause(Pause { outstanding, ..Pause::default() }))
        }
        (_, Some(ack)) if !by_cwnd => nagle(p, ack, flight, true),
        _ if nodelay_unseen && (habits.holds_tails(p, flight) || room_left_a_tail(p, lock)) => {
            nagle(p, lock.ack, flight, true)
        }
        // The kernel had room since ACKs for a third of the flight came, and waited for nothing any more (rule 20).
        _ if drained_all(p, lock) => {
            Release::inferred(Wait::Pause(Pause::default())).with_ack(lock.ack.frame())
        }
        // No congestion window is smaller than a segment, and no buffer holds less than this (rule 68).
        (None, None) if is_tiny(p, flight) => {
            Release::inferred(Wait::Pause(Pause { outstanding: flight, ..Pause::default() }))
        }
        // A part of the window that is not worth a burst of its own is left for the ACK that is due (rule 84).
        _ if defers(p, lock, flight) => {
            Release::inferred(by_window(p, lock.ack, flight)).with_ack(lock.ack.frame())
        }
        // With nothing in flight there was nothing to wait for.
        _ if flight == 0 => Release::inferred(Wait::Pause(Pause::default())).with_ack(lock.ack.frame()),
        _ => {
            let (drained, peak) = if p.path.is_near() { drained(p, lock) } else { (false, 0) };
            let acked = Acked {
                flight,
                peak,
                room: Some(room_before(p, lock)),
                delay: if others_are_due(p, lock) { Nanos::ZERO } else { lock.ack.late_by(p.path.peer()) },
                late_us: late_us(p, lock.ack),
                flown: if p.flow.cwnd.state() == CwndState::Growing { p.flow.cwnd.max_flight } else { 0 },
                tail: nodelay_unseen && is_tail(p),
                rtt: p.flow.rtt.last.filter(|l| l.0 > p.since.time).map(|l| l.1),
                drained,
                unread: is_unread(p, lock.ack),
            };
            Release::inferred(Wait::Acked(acked)).with_ack(lock.ack.frame())
        }
    }
}

/// Linux leaves room of less than a third of the peer's window (`tcp_tso_win_divisor`) as long as an ACK is
/// due, where more than that room waits, and counts this as limited by that window (`tcp_tso_should_defer`);
/// here, where the congestion window is known to have more. An ACK is due if the oldest segment is half a
/// round trip old: ACKs came not long before of what had left before it.
fn defers(p: &Passage<'_>, lock: &Lock<'_>, flight: u32) -> bool {
    let (mss, cwnd, window) = (p.mss(), lock.ack.cwnd, lock.ack.window_before);
    let known = p.flow.cwnd.state() == CwndState::Growing && cwnd > 0;
    let room = room_before(p, lock);
    // At this tap, by one reaction time: half a round trip before the wait, and the first half of the wait.
    let (old, new) = (p.since.time - p.path.rtt.part(2), p.since.time + p.waited().part(2));
    let at = |a: &Ack| a.time + p.path.own();
    let earlier = || p.acks.newest_first().skip_while(|a| at(a) > new).take_while(|a| at(a) >= old);
    p.profile.os == Some("Linux")
        && !p.segment.flags.psh()
        && flight > 0
        && (mss..window / 3).contains(&room)
        && known
        && flight + room < cwnd
        && earlier().any(|a| a.pure() && a.ack.after(a.una_before))
}

/// Behind what the ACK acknowledges more than two segments were in flight, for which ACKs are due as they come
/// (RFC 9293, 3.8.6.3): a late one held up no more than what it let go itself, which would have waited for the
/// rest otherwise (rule 152). Beside the sender its lateness tells of a queue.
fn others_are_due(p: &Passage<'_>, lock: &Lock<'_>) -> bool {
    !p.path.is_near() && p.arrived.before.nxt.minus(lock.ack.ack) > 2 * p.mss() as i32
}

/// Less was in flight than any limit lets: a segment, or the half of `SOCK_MIN_SNDBUF` that is payload. After
/// a loss Linux may let a single packet fly, however small, and others a segment with what comes next.
fn is_tiny(p: &Passage<'_>, flight: u32) -> bool {
    let least = p.mss().min(2_048);
    match p.flow.cwnd.state() {
        // Linux counts packets; others hold what would make more bytes than a segment, behind several small ones.
        CwndState::Growing => {
            let several = p.profile.os != Some("Linux") && p.flow.last_len() < flight;
            flight < least && !(several && flight + p.segment.len > p.mss())
        }
        _ => p.profile.os != Some("Linux") && flight + p.segment.len < least,
    }
}

/// Room in the peer's window before the ACK that it left with: before the one that opened a full window, if
/// there was one.
fn room_before(p: &Passage<'_>, lock: &Lock<'_>) -> u32 {
    lock.opens.unwrap_or(lock.ack).edge_before.minus(p.arrived.before.nxt).max(0) as u32
}

/// It was held for this ACK by Nagle's algorithm (rule 4), with so much in flight before the first that came then.
fn nagle(p: &Passage<'_>, ack: &Ack, flight: u32, prompt: bool) -> Release {
    let first = p.flow.last_len();
    let delay = ack.late_by(p.path.peer());
    let delayed = (delay - late_anyway(p, ack)).min(held_up(p, ack)) > delayed_from(p.path.rtt);
    let late_us = late_us(p, ack);
    Release::inferred(Wait::Nagle { first, flight, delay, delayed, late_us, prompt }).with_ack(ack.frame())
}

/// An ACK says all that had come when it left: what the one before it leaves out came later, so that this one
/// was delayed by no more than lies between them (RFC 9293, 3.8.6.3), however long the data was in a queue.
fn held_up(p: &Passage<'_>, ack: &Ack) -> Nanos {
    let before = p.acks.newest_first().find(|a| a.time < ack.time);
    before.map_or(Nanos::MAX, |a| ack.time - a.time)
}

/// How late the last ACK of two segments was before this one, within a round trip: those are not delayed (RFC
/// 9293, 3.8.6.3), so that a queue was on the way.
fn late_anyway(p: &Passage<'_>, ack: &Ack) -> Nanos {
    let recent = |a: &&Ack| ack.time - a.time <= p.path.rtt + ack.late_by(p.path.peer());
    let two = |a: &&Ack| a.ack.minus(a.una_before) >= 2 * p.mss() as i32;
    let mut before = p.acks.newest_first().skip_while(|a| a.time >= ack.time).take_while(recent);
    before.find(two).map_or(Nanos::ZERO, |a| a.late_by(p.path.peer()))
}

/// Whether ACKs of this wait, before those that may have released the segment, made room that was not used. A window
/// that is full is used at each ACK, or when a third of it is free (`tcp_tso_should_defer`). And how much was in flight
/// when the segment before had left.
fn drained(p: &Passage<'_>, lock: &Lock<'_>) -> (bool, u32) {
    let last_una = p.flow.last.map_or_else(Default::default, |l| l.una);
    let (flight, acked) = (p.arrived.before.nxt.minus(last_una), lock.una_before.minus(last_una));
    let drained = p.flow.recovery.is_none() && acked > (flight / 3).max(2 * p.flow.mss as i32);
    (drained, flight.max(0) as u32)
}

/// The tail of a write had room since ACKs for a third of the flight came, and waited for that of everything:
/// no window did that, nor a writer that waits for buffer space (rules 20 and 54).
fn room_left_a_tail(p: &Passage<'_>, lock: &Lock<'_>) -> bool {
    p.path.is_near() && is_tail(p) && drained(p, lock).0
}

/// Linux, beside it: ACKs for more than a third of the flight made room that was not used before everything
/// was acknowledged. A writer that waits for buffer space wakes up at a third (`sk_stream_write_space`), and
/// a tail is held for nothing but another partial segment. With an ACK that was late it did not leave by
/// chance.
fn drained_all(p: &Passage<'_>, lock: &Lock<'_>) -> bool {
    let all = !p.arrived.before.nxt.after(lock.ack.ack);
    // Of two full segments the ACK is not delayed (RFC 9293, 3.8.6.3), but the data may have queued.
    let two = lock.ack.ack.minus(lock.ack.una_before) >= 2 * p.mss() as i32;
    let prompt = two || lock.ack.late_by(p.path.peer()) <= delayed_from(p.path.rtt);
    all && prompt
        && p.path.is_near()
        && p.profile.os == Some("Linux")
        && p.flow.cwnd.state() == CwndState::Growing
        && drained(p, lock).0
}

/// No ACK can have released it.
fn without_ack(p: &Passage<'_>, habits: &Habits) -> Release {
    if let Some(ack) = late_hold(p, habits) {
        // The kernel sends what it held at once (rule 49): what came after the ACK is another's.
        let freed = Freed { at: ack.time + p.path.own(), under_way: Nanos::ZERO };
        let freed = p.was_free().then_some(freed);
        return Release { freed, ..nagle(p, ack, flight_until(p, ack), false) };
    }
    if let Some(release) = late_for_the_path(p) {
        return release;
    }
    if let Some(outstanding) = new_probe(p) {
        return Release::inferred(Wait::NewProbe { outstanding });
    }
    let (flow, rtt, dt) = (p.flow, p.path.rtt, p.waited());
    let reaction = p.path.own();
    let full = !flow.is_small(flow.last_len()) && !flow.is_small(p.segment.len);
    // Away from the sender a queue on the path hides which ACK it was. A run of full segments goes on: no write ended
    // before it, for its last segment would be pushed (rule 69), so some ACK released it if no timer did.
    let goes_on = !p.pushed() && (full || p.goes_on());
    let mid_run =
        !p.path.is_near() && goes_on && !flow.paced && dt < rtt + p.profile.rto_floor && !p.was_free();
    // Within the first round trip of a message no ACK of it has come round: they were sent together, and the link
    // took its time (an eighth less, as both times come with jitter).
    if mid_run && p.time - p.since.message < rtt - rtt.part(8) {
        return Release::inferred(Wait::Burst);
    }
    if let Some(flight) = by_a_duplicate(p) {
        return Release::inferred(Wait::Repeated { flight });
    }
    if mid_run && fills_a_hold(p, habits) {
        let outstanding = p.arrived.before.nxt.minus(flow.una).max(0) as u32;
        return Release::inferred(Wait::Pause(Pause { outstanding, full, ..Pause::default() }));
    }
    if mid_run && let Some(release) = in_the_queue(p) {
        return release;
    }
    let forgotten = || !p.acks.known_since(p.time - reaction - reaction.part(4) - Nanos::millis(1));
    if mid_run || dt <= rtt + rtt.part(4) && forgotten() && !p.was_free() {
        return Release::inferred(Wait::Acked(Acked { flight: flow.flight_by_rounds(), ..Acked::default() }));
    }
    Release::inferred(by_timer_or_writer(p, habits, full))
}

/// A writer that has Nagle on cannot have sent this before the ACK came, however late it was written after.
fn late_hold<'a>(p: &Passage<'a>, habits: &Habits) -> Option<&'a Ack> {
    if habits.nagle_holds() < 2 || habits.nodelay_shown(p.sender) > 0 {
        return None;
    }
    let reaction = p.path.own();
    let from = p.since.time - reaction;
    let ack = p
        .acks
        .newest_first()
        .take_while(|a| a.time > from)
        .find(|a| !p.left_before(a) && a.time + reaction <= p.time && is_held_until(p, a))?;
    ((p.time - reaction - ack.time).times(4) <= p.waited()).then_some(ack)
}

/// A timer of the kernel, or the application.
fn by_timer_or_writer(p: &Passage<'_>, habits: &Habits, full: bool) -> Wait {
    let (flow, dt) = (p.flow, p.waited());
    let room = flow.edge.minus(p.arrived.before.nxt);
    // A part of what waits, which is not pushed, or as much as there is room for.
    let part = p.segment.len as i32 == room || !p.segment.flags.psh() && (p.segment.len as i32) < room;
    if room > 0 && room < p.mss() as i32 && part && dt >= Nanos::millis(190) {
        // A receiver that offered more before has a reader that stopped; else the buffer is that small.
        let window = room as u32;
        let small_buffer = p.largest_window.is_some_and(|w| w < 4 * p.mss());
        return if small_buffer {
            Wait::Silly { window }
        } else {
            Wait::Closed { window, flight: 0, unread: None }
        };
    }
    let outstanding = p.arrived.before.nxt.minus(flow.una).max(0) as u32;
    if outstanding == 0 && flow.is_small(p.segment.len) && p.profile.os == Some("Linux") {
        // The timer of a closed window or a cork: max(RTO, 200 ms), up to an eighth late (timer wheel;
        // tcp_probe0_base). RTO is the round trip and 200 ms at the least (`__tcp_set_rto`), and no timer is
        // early; what passes the tap may be, by the jitter of a trip.
        let timer = flow.rto(p.path.rtt, p.profile).max(Nanos::millis(200));
        let since_ack = p.acks.newest_first().next().map_or(dt, |a| p.time - p.path.own() - a.time);
        let jitter = p.path.own().part(8) + NO_WAIT;
        let soonest = Nanos::millis(200) + p.path.rtt - jitter;
        let at_timer = since_ack >= soonest && since_ack <= timer + timer.part(4) + Nanos::millis(16);
        if at_timer && habits.may_be_cork(since_ack, dt) {
            return Wait::CorkTimer { wait: since_ack };
        }
    }
    // Writers that wait for buffer space wake a moment after the ACK; the flight tells.
    let stood = p.under_way().perhaps >= p.waited();
    let unread = full && p.acks.newest_first().next().is_some_and(|ack| lies_there(p, ack, p.path.rtt));
    let goes_on = p.goes_on() && (outstanding > 0 || !p.path.is_near() && !p.was_free());
    Wait::Pause(Pause { outstanding, flight: recent_flight(p), full, stood, there: false, unread, goes_on })
}

/// Bytes that were in flight when the last ACK before the segment came in, if that was in the last quarter of
/// the wait and the sender was not free since (rule 49).
fn recent_flight(p: &Passage<'_>) -> u32 {
    if p.was_free() {
        return 0;
    }
    let until = p.time - p.path.own();
    let Some(ack) = p.acks.newest_first().find(|a| a.time <= until) else { return 0 };
    if (until - ack.time).times(4) > p.waited() {
        return 0;
    }
    p.arrived.before.nxt.minus(ack.una_before).max(0) as u32
}
