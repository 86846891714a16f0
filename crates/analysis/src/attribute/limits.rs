//! Which limit the ACKs of a message lifted: read from how its flights change from one round trip to the next.

use crate::attribute::avoiding::avoids_congestion;
use crate::attribute::clock::Clock;
use crate::attribute::context::{Carry, Context};
use crate::attribute::is_plain;
use crate::attribute::link::{at_its_pace, saturated};
use crate::attribute::pace::{apart, goes_by_little, is_paced, pace};
use crate::attribute::within::paced_within;
use crate::attribute::woken::{
    PLATEAU, clocked, emptied, flight_of, is_cut, wakes_the_writer, written, wrote_a_piece,
};
use crate::release::Wait;
use crate::step::Step;
use crate::track::CwndState;
use tcpwhy_base::{Cause, End, Nanos, OVERSHOOT, Source};

/// The most that Linux puts into one segment of its queue (`GSO_LEGACY_MAX_SIZE`, 64 KiB).
const LARGEST: u32 = 65_536;

/// Fewer waits do not show what made them alike.
const FEW: usize = 8;

/// So many waits that ACKs ended are no chance, even if a few others were not.
const MANY: usize = 32;

/// How many round trips a step spans, at least one.
fn rounds_in(step: &Step, rtt: Nanos) -> u32 {
    if rtt <= Nanos::ZERO { 1 } else { (step.duration().0 / rtt.0).clamp(1, 1_000) as u32 }
}

/// For each ACK-clocked step, what its flights say: growing, or on a plateau (rule 19).
///
/// A loss-free flow in slow start grows every round trip (RFC 5681, 3.1), one in congestion avoidance by
/// about half a segment at least (RFC 9438, 4.3); one whose flight stays the same has another limit. Gives
/// whether a window was full, or a pace shows, of which the caller asks more (rule 108).
pub(super) fn flight_limits(
    context: &Context,
    steps: &[Step],
    carry: &mut Carry,
    limits: &mut Vec<Cause>,
) -> bool {
    let mut full_or_paced = false;
    limits.clear();
    limits.resize(steps.len(), Cause::SlowStart);
    let mut i = 0;
    while i < steps.len() {
        // A message: steps of one sender up to the next turn.
        let sender = steps[i].sender;
        let mut plain = is_plain(&steps[i]);
        let mut j = i + 1;
        while j < steps.len() && !steps[j].is_turn() && steps[j].sender == sender {
            plain &= is_plain(&steps[j]);
            j += 1;
        }
        carry.turns_to(&steps[i]);
        // Of waits that no limit explains none is asked for.
        if !plain {
            full_or_paced |= message_limits(context, &steps[i..j], &mut limits[i..j], carry);
        } else if cfg!(debug_assertions) {
            let before = format!("{carry:?}");
            message_limits(context, &steps[i..j], &mut limits[i..j], carry);
            debug_assert_eq!(before, format!("{carry:?}"));
            debug_assert!(!limits[i..j].contains(&Cause::Pacing));
            limits[i..j].fill(Cause::SlowStart);
        }
        i = j;
    }
    full_or_paced
}

/// The same of one message.
fn message_limits(context: &Context, steps: &[Step], limits: &mut [Cause], carry: &mut Carry) -> bool {
    let Some(first) = steps.first() else { return false };
    let sender = first.sender;
    let mss = context.mss[sender];
    let initial = context.initial_window[sender] * mss;
    // If the first flight is exactly the initial window, cwnd was the limit, even if the receiver's was close.
    let k = first_clocked(steps);
    let whole = |s: &&Step| carry.peak == 0 && flight_of(s) <= initial && flight_of(s) + mss > initial;
    let opening = steps.get(k).filter(whole).map(|_| k);
    let mut most = carry.peak;
    growth(context, steps, limits, carry, mss, initial);
    // Behind what came at the pace of a link that was busy nothing grows any more (rule 96): it is on a
    // plateau, whose cause is asked below.
    if let Some(from) = steps.iter().position(at_its_pace)
        && saturated(context, steps, sender)
    {
        let later = limits[from..].iter_mut();
        later.filter(|limit| **limit == Cause::SlowStart).for_each(|limit| *limit = Cause::SendBuffer);
    }
    let windows = Windows::of(steps);
    // Where flights grow nobody asks what a plateau would be limited by.
    let stays = limits.contains(&Cause::SendBuffer);
    debug_assert!(stays || !wakes_the_writer(context, steps, limits));
    let woken = stays && wakes_the_writer(context, steps, limits);
    let plateau =
        if stays { plateau_cause(context, steps, sender, mss, &windows, woken) } else { Cause::SlowStart };
    // One segment of up to 64 KiB may overshoot a buffer that is smaller than it (rule 85).
    let alone = woken && context.timer[sender].is_some();
    let usual = if plateau == Cause::SendBuffer { usual(steps) } else { 0 };
    let pace = if context.measured { pace(context, steps, sender) } else { None };
    let clock = if steps.iter().any(is_cut) { Clock::of_writer(context, steps) } else { None };
    for (k, (step, limit)) in steps.iter().zip(&mut *limits).enumerate() {
        if let Some(acked) = step.acked()
            && opening != Some(k)
            && acked.room.is_some_and(|room| windows.limit(acked.flight, room))
        {
            *limit = if acked.unread.is_some() { Cause::SlowReader } else { Cause::ReceiveWindow };
        } else if pace.is_some_and(|pace| is_paced(context, step, pace)) {
            *limit = Cause::Pacing;
        } else if matches!(*limit, Cause::SendBuffer | Cause::SlowStart)
            && clock.is_some_and(|clock| clocked(step) && clock.ended(step))
        {
            *limit = Cause::SenderPause;
        } else if matches!(*limit, Cause::SendBuffer | Cause::SlowStart) && flight_of(step) == 0 {
            // No window held what came late: the ACK would have let it go at once.
            *limit = if woken && plateau == Cause::SendBuffer && emptied(context, step) {
                Cause::SendBuffer
            } else {
                Cause::SenderPause
            };
        } else if *limit == Cause::SendBuffer {
            let overshot = alone && usual <= LARGEST && emptied(context, step);
            let low = is_low(step, usual, mss) && !overshot;
            let doubtful = plateau == Cause::SendBuffer && low && !is_cut(step);
            // What a loss has made smaller is no buffer, whatever its writer does.
            let cut = plateau == Cause::Unexplained && is_cut(step);
            *limit = if doubtful {
                Cause::Unexplained
            } else if cut {
                Cause::SendBuffer
            } else {
                plateau
            };
        } else if *limit == Cause::SlowStart && wrote_a_piece(context, steps, step, initial) {
            *limit = Cause::SenderPause;
        } else if *limit == Cause::SlowStart && step.cwnd == CwndState::Growing && clocked(step) {
            // More had flown, so the window was larger (rule 80).
            let next = steps[k + 1..].iter().find(|s| clocked(s)).map_or(0, flight_of);
            let more = flight_of(step) + mss / 2 < most && next < flight_of(step) + mss / 2;
            // With this segment no more is in flight than was at any time before: whole segments, for Linux
            // counts those.
            let flown = step.acked().map_or(0, |a| a.flown);
            let fits = flight_of(step).saturating_add(step.len).div_ceil(mss) <= flown.div_ceil(mss);
            // Other stacks than Linux hold the partial end of a write for all before it.
            let tail = !step.pushed && !step.len.is_multiple_of(mss) && context.timer[sender].is_none();
            if step.acked().is_some_and(|a| a.room.is_some()) && (more || fits) && tail {
                *limit = Cause::Nagle;
            } else if fits && step.pushed && woken && emptied(context, step) {
                *limit = Cause::SendBuffer;
            } else if fits && step.pushed {
                // A writer that waits for room is woken when a third of the buffer is free: with less in
                // flight it was none (rule 79).
                *limit = if is_low(step, flown, mss) { Cause::SenderPause } else { Cause::Unexplained };
            }
        }
        most = most.max(flight_of(step));
    }
    room_unused(steps, limits, mss);
    avoids_congestion(context, steps, limits, mss);
    let within = paced_within(context, steps, limits);
    windows.stops > 0 || pace.is_some() || within
}

/// What flights that stay the same are limited by, where no window shows.
fn plateau_cause(
    context: &Context,
    steps: &[Step],
    sender: End,
    mss: u32,
    windows: &Windows,
    woken: bool,
) -> Cause {
    if let Some(cause) = apart(context, steps, sender) {
        return cause;
    }
    if saturated(context, steps, sender) {
        return Cause::Bandwidth;
    }
    let own = has_its_clock(steps) || late_writer(context, steps, sender);
    if own && !woken || goes_by_the_segment(steps) || Clock::goes_on(context, steps) {
        return Cause::SenderPause;
    }
    if late_growth(steps, mss, context.rtt) {
        return Cause::CongestionWindow;
    }
    match spare_window(context, steps, sender) {
        // Whole segments fill a window to within one of them; by chance a flight comes that near once in eleven times.
        Some((spare, window)) if spare < mss && spare <= window / 16 => Cause::ReceiveWindow,
        Some((spare, window)) if spare <= window / 8 => Cause::Unexplained,
        // What fills the window again and again holds as much as that: no buffer below it is the limit (rule 73).
        _ if windows.stops >= 2
            && peak(steps).is_some_and(|most| windows.largest >= most)
            && !steps.iter().any(is_cut)
            && !is_roomy(steps) =>
        {
            Cause::ReceiveWindow
        }
        _ if one_segment(context, steps, sender, mss) => Cause::Bandwidth,
        _ if woken => Cause::SendBuffer,
        _ => goes_by_little(context, steps, sender).unwrap_or_else(|| {
            by_its_writer(steps, mss, context.near(sender) || context.per_byte[sender].is_some())
        }),
    }
}

/// For most of the time the window had room for as much again as was in flight: what filled it before has grown since.
fn is_roomy(steps: &[Step]) -> bool {
    let known = |s: &&Step| s.acked().is_some_and(|a| a.room.is_some());
    let roomy = |s: &&Step| s.acked().is_some_and(|a| a.room.is_some_and(|room| room > a.flight));
    let time = |steps: &mut dyn Iterator<Item = &Step>| steps.fold(Nanos::ZERO, |sum, s| sum + s.duration());
    time(&mut steps.iter().filter(roomy)).times(2) > time(&mut steps.iter().filter(known))
}

/// With less than two thirds of the usual in flight a third of a buffer is free: its writer had been woken
/// before (`sk_stream_write_space`, rule 79). What is written by whole segments of the queue goes beyond its
/// buffer by several of them at times (rule 123).
fn is_low(step: &Step, usual: u32, mss: u32) -> bool {
    let flight = flight_of(step).saturating_add(mss);
    let held = if flight >= LARGEST { usual.saturating_sub(OVERSHOOT) } else { usual };
    3 * u64::from(flight) < 2 * u64::from(held)
}

/// A quarter of the waits that ACKs ended had as much in flight.
fn usual(steps: &[Step]) -> u32 {
    let mut flights: Vec<u32> = steps.iter().map(flight_of).filter(|&f| f > 0).collect();
    flights.sort_unstable();
    flights.get(flights.len() * 3 / 4).copied().unwrap_or(0)
}

/// More of its waits ended without an ACK than with one: those that did so by chance. Not where they took
/// less than a quarter of the time: what a link sets apart has many short ones.
fn has_its_clock(steps: &[Step]) -> bool {
    let waits = |which: fn(&Step) -> bool| {
        let waits = steps.iter().filter(|s| which(s));
        waits.fold((0, Nanos::ZERO), |(n, time), s| (n + 1, time + s.duration()))
    };
    let (own, others) = (waits(written), waits(clocked));
    own.0 > others.0 && own.1.times(4) > others.1
}

/// A writer that waits for room is woken by ACKs, each time (`sk_stream_write_space`), with the same in
/// flight. Where it mostly came a while after its ACK, or where none ended a quarter of its waits, it wrote
/// by a clock of its own; where few waits are alike and some ended without an ACK, or so few are there at
/// all, nothing tells (rule 79).
fn by_its_writer(steps: &[Step], mss: u32, shows: bool) -> Cause {
    let most = peak(steps).unwrap_or(0);
    let time = |f: &dyn Fn(&Step) -> bool| {
        steps.iter().filter(|s| f(s)).fold(Nanos::ZERO, |sum, s| sum + s.duration())
    };
    let waits = time(&clocked);
    let late = time(&|s| s.pause().is_some_and(|p| p.flight > 0));
    let others = time(&written);
    // A queue hides which ACK it was, and where no rate is known how long it takes: not beside the sender.
    let unseen = time(&|s| !s.across && s.acked().is_some_and(|a| a.flight > 0 && a.room.is_none()));
    let is_alike = |s: &&Step| clocked(s) && flight_of(s) + mss > most;
    let (count, alike) = (steps.iter().filter(|s| clocked(s)).count(), steps.iter().filter(is_alike).count());
    let few = alike < 4 && count < FEW;
    let some = count < MANY && others.times(16) > waits && 2 * alike < count;
    if late.times(2) > waits {
        Cause::SenderPause
    } else if others.times(4) > waits || some || unseen.times(2) > waits && !shows || few {
        Cause::Unexplained
    } else {
        Cause::SendBuffer
    }
}

/// Seen from afar, of a run that goes on, never more than one usual segment was in flight: no buffer is as
/// small (`SOCK_MIN_SNDBUF` holds two) and no congestion window stays so, but a queue before the tap hides
/// what is in it (rule 73).
fn one_segment(context: &Context, steps: &[Step], sender: End, mss: u32) -> bool {
    const USUAL: u32 = 1_460;
    let goes_on = |s: &Step| !clocked(s) || !s.pushed;
    !context.near(sender)
        && mss <= USUAL
        && peak(steps).is_some_and(|most| most <= mss)
        && steps.iter().all(goes_on)
}

/// The windows that stopped some waits of a message.
struct Windows {
    /// The largest flight that filled one, or zero.
    largest: u32,
    /// They ended more of its time than other ACKs did.
    mostly: bool,
    /// How many waits they ended.
    stops: u32,
}

impl Windows {
    fn of(steps: &[Step]) -> Windows {
        let (mut largest, mut stops) = (0, 0);
        let (mut stopped, mut other) = (Nanos::ZERO, Nanos::ZERO);
        for step in steps {
            match step.wait {
                Wait::Window { flight } | Wait::Closed { flight, .. } => {
                    largest = largest.max(flight);
                    stopped += step.duration();
                    stops += 1;
                }
                Wait::Acked(_) => other += step.duration(),
                _ => {}
            }
        }
        Windows { largest, mostly: stopped >= other, stops }
    }

    /// A flight within a few segments of the window that stopped others stops at it too: the kernel rather waits
    /// than send a burst much smaller than the window (`tcp_tso_should_defer`).
    fn limit(&self, flight: u32, room: u32) -> bool {
        let window = self.largest;
        // Up to a third of the window may be left when it waits.
        let near = self.mostly && flight >= window - window / 8 && room <= flight / 2;
        window > 0 && (room <= flight / 8 || near)
    }
}

/// After ACKs that released nothing, a writer that was waiting fills the window again at once (rule 20). A
/// congestion window that a loss made smaller lets as much fly as when it released the first segment, and
/// grows from there.
fn room_unused(steps: &[Step], limits: &mut [Cause], mss: u32) {
    let alike = woken_alike(steps, mss);
    for (k, limit) in limits.iter_mut().enumerate() {
        let Some(step) = steps.get(k) else { continue };
        let Some(acked) = step.acked().filter(|a| a.drained) else { continue };
        let next = steps[k + 1..].iter().find_map(|s| match &s.wait {
            Wait::Acked(next) => Some(next.flight.max(next.peak)),
            Wait::Window { flight } => Some(*flight),
            _ => None,
        });
        if next.is_some_and(|next| next >= acked.flight.max(2 * mss).saturating_mul(2)) {
            // A writer that waits for room is woken when a third is free: not when two thirds are (rule 79).
            let late = !alike && 3 * (u64::from(acked.flight) + u64::from(mss)) < u64::from(acked.peak);
            *limit = if late { Cause::SenderPause } else { Cause::SendBuffer };
        } else if is_cut(step) {
            *limit = Cause::CongestionWindow;
        }
    }
}

/// A kernel wakes a writer when as much is left as each time, however much it had let it write beyond its
/// buffer (what the last segment of the queue has room for is not counted: `tcp_sendmsg_locked`), and so
/// however long that took. A clock that comes in two thirds of the time finds more left. So it is where in
/// three quarters of eight waits or more as much was left, to within what one ACK takes (two segments, RFC
/// 5681, 4.2), and no more in three that were so much shorter (rule 20).
fn woken_alike(steps: &[Step], mss: u32) -> bool {
    let drained =
        || steps.iter().filter_map(|s| Some((s.acked().filter(|a| a.drained)?.flight, s.duration())));
    if drained().nth(FEW - 1).is_none() {
        return false;
    }
    let mut left: Vec<(u32, Nanos)> = drained().collect();
    left.sort_unstable();
    let (usual, length) = left.get(left.len() / 2).copied().unwrap_or_default();
    let alike = left.iter().filter(|wait| wait.0.abs_diff(usual) <= 2 * mss).count();
    let mut short = left.iter().filter(|wait| wait.1.times(3) <= length.times(2));
    4 * alike >= 3 * left.len()
        && short.clone().count() >= PLATEAU as usize
        && short.all(|wait| wait.0 <= usual)
}

/// The scale of the window is not known (rule 22): what the largest flight leaves free of the smallest window
/// that it can have been, and that window, bytes.
fn spare_window(context: &Context, steps: &[Step], sender: End) -> Option<(u32, u32)> {
    let (raw, low, high) = context.unscaled_window[sender]?;
    let peak = peak(steps)?;
    let window = (low..=high).map(|scale| u32::from(raw) << scale).find(|&w| w >= peak)?;
    Some((window - peak, window))
}

/// The largest flight, where there is any.
fn peak(steps: &[Step]) -> Option<u32> {
    steps.iter().map(flight_of).filter(|&f| f > 0).max()
}

/// Marks steps as growing ([`Cause::SlowStart`]) or on a plateau ([`Cause::SendBuffer`]).
fn growth(
    context: &Context,
    steps: &[Step],
    limits: &mut [Cause],
    carry: &mut Carry,
    mss: u32,
    initial: u32,
) {
    // Steps from the last growth on; what they are shows when growth comes again, or never.
    let mut from = 0;
    let mut settle = |limits: &mut [Cause], to: usize, rounds: u32, grew_at: Option<usize>| {
        let plateau = rounds >= PLATEAU;
        for limit in &mut limits[from..to] {
            *limit = if plateau { Cause::SendBuffer } else { Cause::SlowStart };
        }
        if let Some(k) = grew_at {
            // The wait after the last flight that grew is already the plateau's.
            limits[k] = if plateau { Cause::SendBuffer } else { Cause::SlowStart };
            // A first flight well below the initial window, without growth after it, was not the window's doing.
            let below = flight_of(&steps[k]) + mss < initial * 7 / 10;
            if rounds > 0 && !plateau && k == first_clocked(steps) && below && !is_cut(&steps[k]) {
                limits[k] = Cause::SenderPause;
            }
        }
        from = to;
    };
    let (mut grew_at, mut before) = (None, carry.peak);
    let mut lost = steps.first().is_some_and(is_cut);
    let mut flights = steps.iter().enumerate().filter(|(_, s)| clocked(s)).peekable();
    while let Some((k, step)) = flights.next() {
        // One flight may seem too large, where an ACK is missing from the capture; growth lasts.
        let flight = flight_of(step);
        let next = flights.peek().map_or(flight, |next| flight_of(next.1));
        let flight = flight.min(next);
        let before = std::mem::replace(&mut before, flight_of(step));
        // Flights that grow again from half of what they were do not stay the same, nor what becomes more
        // from one to the next: with one ACK for each flight a window grows by a segment (RFC 5681, 3.1). Nor
        // does a window more than double (a segment for each that was acknowledged): what comes back at once
        // to what it was had not grown.
        let doubles = next <= flight.saturating_mul(2).saturating_add(mss);
        let again = flight <= carry.peak / 2 && next >= flight + flight / 8 + mss / 2 && doubles
            || flight >= carry.peak.max(before) + mss / 2 && next >= flight + mss / 2;
        if !lost && is_cut(step) {
            // A loss ends the growth: that flights do not grow again afterwards says nothing of those before.
            lost = true;
            settle(limits, k, 0, grew_at.take());
            carry.rounds = 0;
        }
        if again || flight >= carry.peak + carry.peak / 8 + mss / 2 {
            settle(limits, k, carry.rounds, grew_at);
            grew_at = Some(k);
            carry.peak = flight;
            carry.rounds = 0;
        } else if step.loss.is_none() {
            carry.rounds += rounds_in(step, context.rtt);
        }
    }
    settle(limits, steps.len(), carry.rounds, grew_at);
}

fn first_clocked(steps: &[Step]) -> usize {
    steps.iter().position(clocked).unwrap_or(0)
}

/// Waits of this message, seen from afar, are the writer's: each found nothing in flight, for longer than the
/// sender's reaction accounts for, and the write before had ended (rule 69).
fn late_writer(context: &Context, steps: &[Step], sender: End) -> bool {
    let own = context.reaction[sender];
    let slack = own.part(32).max(Nanos::micros(200)) + context.tick;
    let late = |s: &Step| {
        let crossing = context.per_byte[sender].map_or(0, |p| (f64::from(s.len) * p) as i64);
        s.pushed && s.source == Source::Inferred && s.empty > own + slack + Nanos(crossing)
    };
    let waits = || steps.iter().filter(|s| clocked(s));
    !context.near(sender) && waits().count() >= PLATEAU as usize && waits().all(late)
}

/// What ACKs let go comes as unevenly as they do, and as what it leaves later than they came: each wait holds
/// the difference of two such. Six or more waits that differ half as much in length as in their distance from
/// the ACK were their writer's (rule 66); behind a segment that is not pushed more had been written (rule
/// 69), and what came so evenly was spaced by the link.
fn goes_by_the_segment(steps: &[Step]) -> bool {
    let own = |s: &&Step| s.releases == 1 && s.source == Source::Inferred;
    let each = || steps.iter().filter(own).filter(|s| s.acked().is_some_and(|a| a.room.is_some()));
    let ended = 2 * each().filter(|s| s.pushed).count() > each().count();
    let waits = || each().filter_map(|s| Some((s.duration(), s.acked()?.late_us)));
    let spread = |of: &dyn Fn((Nanos, u32)) -> i64| {
        let (least, most) = waits().map(of).fold((i64::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
        most - least.min(most)
    };
    let (length, late) = (spread(&|w| w.0.0), spread(&|w| i64::from(w.1) * 1_000));
    ended && waits().count() >= 2 * PLATEAU as usize && length.saturating_mul(2) < late
}

/// The flights of the second half of a plateau are higher than those of the first by what congestion avoidance adds.
fn late_growth(steps: &[Step], mss: u32, rtt: Nanos) -> bool {
    let acked = |s: &&Step| s.acked().is_some_and(|a| a.flight > 0);
    let flights: Vec<&Step> = steps.iter().filter(acked).collect();
    if flights.len() < 16 {
        return false;
    }
    let (a, b) = flights.split_at(flights.len() / 2);
    let top = |part: &[&Step]| {
        let mut f: Vec<u32> = part.iter().map(|s| flight_of(s)).collect();
        f.sort_unstable();
        f[f.len() * 3 / 4]
    };
    let rounds: u32 = b.iter().map(|s| rounds_in(s, rtt)).sum();
    top(b).saturating_sub(top(a)) >= mss.saturating_mul(rounds / 4).max(2 * mss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Acked;
    use crate::step::tests::step;

    /// What filled a window while that was small says nothing of the waits in which it had room for twice as much.
    #[test]
    fn most_windows_had_room_or_not() {
        let wait = |at: i64, room: Option<u32>| {
            let acked = Acked { flight: 65_536, room, ..Acked::default() };
            step(End::Server, (Nanos::millis(at), Nanos::millis(at + 10)), Wait::Acked(acked))
        };
        let of = |rooms: &[Option<u32>]| {
            let steps: Vec<Step> = (0..).step_by(10).zip(rooms).map(|(at, &room)| wait(at, room)).collect();
            is_roomy(&steps)
        };
        let (full, grown) = (Some(1_000), Some(1_000_000));
        assert!(of(&[full, grown, grown]) && !of(&[full, grown]) && !of(&[full, full, grown]));
        // Which ACK it was is not known: nothing tells.
        assert!(!of(&[None, None]) && !of(&[Some(65_536)]) && of(&[None, Some(65_537)]));
    }

    /// A link sets the segments of a flight apart by a millisecond, and its flights by 40.
    #[test]
    fn many_short_waits_are_no_clock_of_a_writer() {
        let of = |own: (i64, i64)| {
            let took = |millis: i64| (Nanos::ZERO, Nanos::millis(millis));
            let pause = Wait::Pause(crate::release::Pause { outstanding: 1_448, ..Default::default() });
            let acked = Acked { flight: 28_960, ..Acked::default() };
            let mut steps: Vec<Step> = (0..own.0).map(|_| step(End::Server, took(own.1), pause)).collect();
            steps.extend((0..4).map(|_| step(End::Server, took(40), Wait::Acked(acked))));
            has_its_clock(&steps)
        };
        // As many as waits for ACKs; a quarter of their time; more than that.
        assert_eq!([(4, 40), (40, 1), (41, 1)].map(of), [false, false, true]);
    }

    /// Afar from a sender a queue hides which ACK it was; who stands beside it sees that.
    #[test]
    fn the_tap_beside_the_sender_sees_what_let_go() {
        let acked = Acked { flight: 24_576, ..Acked::default() };
        let of = |across: bool| {
            let wait = |at: i64| {
                let took = (Nanos::millis(at), Nanos::millis(at + 10));
                Step { across, ..step(End::Server, took, Wait::Acked(acked)) }
            };
            let steps: Vec<Step> = (0..80).step_by(10).map(wait).collect();
            by_its_writer(&steps, 1_448, false)
        };
        assert_eq!([of(true), of(false)], [Cause::SendBuffer, Cause::Unexplained]);
    }
}
