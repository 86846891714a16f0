//! Which limit the ACKs of a message lifted: read from how its flights change from one round trip to the next.

use crate::attribute::Context;
use crate::exchange::Carry;
use crate::step::{CwndState, Step, Wait};
use tcpwhy_base::{Cause, Nanos};

/// Round trips without growth that make a plateau: slow start would have grown eightfold.
const PLATEAU: u32 = 3;

/// A wait that an ACK ended (or a writer that woke up after one).
fn clocked(step: &Step) -> bool {
    matches!(step.wait, Wait::Acked | Wait::Pause) && step.flight > 0
}

/// How many round trips a step spans, at least one.
fn rounds_in(step: &Step, rtt: Nanos) -> u32 {
    if rtt <= Nanos::ZERO { 1 } else { (step.duration().0 / rtt.0).clamp(1, 1_000) as u32 }
}

impl Context {
    /// For each ACK-clocked step, what its flights say: growing, or on a plateau.
    ///
    /// A loss-free flow in slow start grows every round trip (RFC 5681, 3.1), one in congestion avoidance by about half
    /// a segment at least (RFC 9438, 4.3); one whose flight stays the same has another limit.
    pub(crate) fn flight_limits(&self, steps: &[Step], carry: &mut Carry, limits: &mut Vec<Cause>) {
        limits.clear();
        limits.resize(steps.len(), Cause::SlowStart);
        let mut i = 0;
        while i < steps.len() {
            // A message: steps of one sender up to the next turn.
            let sender = steps[i].sender;
            let mut j = i + 1;
            while j < steps.len() && steps[j].wait != Wait::Turn && steps[j].sender == sender {
                j += 1;
            }
            if steps[i].wait == Wait::Turn || carry.message_of != sender {
                *carry = Carry { backlog: carry.backlog, message_of: sender, ..Carry::default() };
            }
            self.message_limits(&steps[i..j], &mut limits[i..j], carry);
            i = j;
        }
    }

    fn message_limits(&self, steps: &[Step], limits: &mut [Cause], carry: &mut Carry) {
        let Some(first) = steps.first() else { return };
        let sender = usize::from(first.sender);
        let mss = self.mss[sender];
        let initial = self.initial_window[sender] * mss;
        // The first flight of a message that is just the initial window: that is asked before the receiver's.
        let k = first_clocked(steps);
        let whole = |s: &&Step| carry.peak == 0 && s.flight <= initial && s.flight + mss > initial;
        let opening = steps.get(k).filter(whole).map(|_| k);
        self.growth(steps, limits, carry, mss, initial);
        let plateau = if self.saturated(steps, sender) {
            Cause::Bandwidth
        } else if dripping(steps) {
            Cause::SenderPause
        } else if late_growth(steps, mss, self.rtt) {
            Cause::CongestionWindow
        } else {
            match self.spare_window(steps, sender) {
                // Whole segments fill a window to within one of them; by chance a flight comes that near once in eleven times.
                Some((spare, window)) if spare < mss && spare <= window / 16 => Cause::ReceiveWindow,
                Some((spare, window)) if spare <= window / 8 => Cause::Unexplained,
                _ => Cause::SendBuffer,
            }
        };
        let pacing = self.measured && paced(steps);
        // A flight within a few segments of the window that stopped others stops at it too: the kernel rather waits
        // than send a burst much smaller than the window (`tcp_tso_should_defer`).
        let time = |wait| steps.iter().filter(|s| s.wait == wait).fold(Nanos::ZERO, |t, s| t + s.duration());
        let stopped = |s: &&Step| matches!(s.wait, Wait::Window | Wait::Closed);
        let window = steps.iter().filter(stopped).map(|s| s.flight).max().unwrap_or(0);
        let mostly = time(Wait::Window) + time(Wait::Closed) >= time(Wait::Acked);
        for (k, (step, limit)) in steps.iter().zip(&mut *limits).enumerate() {
            // Up to a third of the window may be left when it waits.
            let near = mostly && step.flight >= window - window / 8 && step.note <= step.flight / 2;
            let close = step.note <= step.flight / 8 || near;
            if window > 0 && step.wait == Wait::Acked && close && opening != Some(k) {
                *limit = if step.unread { Cause::SlowReader } else { Cause::ReceiveWindow };
            } else if pacing && spaced(step) {
                *limit = Cause::Pacing;
            } else if *limit == Cause::SendBuffer {
                *limit = plateau;
            }
        }
        self.room_unused(steps, limits, mss);
    }

    /// After ACKs that released nothing, a writer that was waiting fills the window again at once. A congestion window
    /// that a loss made smaller lets as much fly as when it released the first segment, and grows from there.
    fn room_unused(&self, steps: &[Step], limits: &mut [Cause], mss: u32) {
        for (k, limit) in limits.iter_mut().enumerate() {
            let Some(step) = steps.get(k).filter(|s| s.drained) else { continue };
            let next = steps[k + 1..].iter().find(|s| matches!(s.wait, Wait::Acked | Wait::Window));
            let filled =
                next.is_some_and(|n| n.flight.max(n.peak) >= step.flight.max(2 * mss).saturating_mul(2));
            if filled {
                *limit = Cause::SendBuffer;
            } else if step.cwnd == CwndState::AfterLoss {
                *limit = Cause::CongestionWindow;
            }
        }
    }

    /// The scale of the window is not known: what the largest flight leaves free of the smallest window that it can
    /// have been, and that window, bytes.
    fn spare_window(&self, steps: &[Step], sender: usize) -> Option<(u32, u32)> {
        let (raw, low, high) = self.unscaled_window[sender]?;
        let peak = steps.iter().filter(|s| clocked(s)).map(|s| s.flight).max()?;
        let window = (low..=high).map(|scale| u32::from(raw) << scale).find(|&w| w >= peak)?;
        Some((window - peak, window))
    }

    /// The link was busy with these bytes for seven eighths of the time: it is what the flow does not grow against.
    fn saturated(&self, steps: &[Step], sender: usize) -> bool {
        let Some(per_byte) = self.per_byte[sender] else { return false };
        let waits = steps.iter().filter(|s| clocked(s));
        let (bytes, time) =
            waits.fold((0.0, 0.0), |(b, t), s| (b + f64::from(s.bytes), t + s.duration().0 as f64));
        // Or the flight fills the path.
        let peak = steps.iter().filter(|s| clocked(s)).map(|s| s.flight).max().unwrap_or(0);
        bytes * per_byte >= time * 0.875 || f64::from(peak) * per_byte >= self.rtt.0 as f64
    }

    /// Marks steps as growing ([`Cause::SlowStart`]) or on a plateau ([`Cause::SendBuffer`]).
    fn growth(&self, steps: &[Step], limits: &mut [Cause], carry: &mut Carry, mss: u32, initial: u32) {
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
                if rounds > 0
                    && !plateau
                    && k == first_clocked(steps)
                    && steps[k].flight + mss < initial * 7 / 10
                {
                    limits[k] = Cause::SenderPause;
                }
            }
            from = to;
        };
        let mut grew_at = None;
        let mut flights = steps.iter().enumerate().filter(|(_, s)| clocked(s)).peekable();
        while let Some((k, step)) = flights.next() {
            // One flight may seem too large, where an ACK is missing from the capture; growth lasts.
            let flight = flights.peek().map_or(step.flight, |next| step.flight.min(next.1.flight));
            if flight >= carry.peak + carry.peak / 8 + mss / 2 {
                settle(limits, k, carry.rounds, grew_at);
                grew_at = Some(k);
                carry.peak = flight;
                carry.rounds = 0;
            } else {
                carry.rounds += rounds_in(step, self.rtt);
            }
        }
        settle(limits, steps.len(), carry.rounds, grew_at);
    }
}

fn first_clocked(steps: &[Step]) -> usize {
    steps.iter().position(clocked).unwrap_or(0)
}

/// Most waits end without an ACK: the few that end with one do so by chance.
fn dripping(steps: &[Step]) -> bool {
    let written = steps.iter().filter(|s| s.wait == Wait::Pause && s.flight == 0).count();
    written > steps.iter().filter(|s| clocked(s)).count()
}

/// A full segment that left in the middle of a run, with data in flight and no ACK.
fn spaced(step: &Step) -> bool {
    step.wait == Wait::Pause && step.full && step.note > 0
}

/// The sender spaces its segments by a timer: many such waits, and more of them than others.
fn paced(steps: &[Step]) -> bool {
    let paced: u32 = steps.iter().filter(|s| spaced(s)).map(|s| s.releases).sum();
    let others = steps.iter().filter(|s| clocked(s) || s.wait == Wait::Pause && s.flight == 0).count();
    paced >= 8 && 2 * paced as usize > others
}

/// The flights of the second half of a plateau are higher than those of the first by what congestion avoidance adds.
fn late_growth(steps: &[Step], mss: u32, rtt: Nanos) -> bool {
    let flights: Vec<&Step> = steps.iter().filter(|s| s.wait == Wait::Acked && s.flight > 0).collect();
    if flights.len() < 16 {
        return false;
    }
    let (a, b) = flights.split_at(flights.len() / 2);
    let top = |part: &[&Step]| {
        let mut f: Vec<u32> = part.iter().map(|s| s.flight).collect();
        f.sort_unstable();
        f[f.len() * 3 / 4]
    };
    let rounds: u32 = b.iter().map(|s| rounds_in(s, rtt)).sum();
    top(b).saturating_sub(top(a)) >= mss.saturating_mul(rounds / 4).max(2 * mss)
}
