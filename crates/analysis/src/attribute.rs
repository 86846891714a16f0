//! From steps to spans: which cause each stretch of an exchange has, and how much of it the link's rate explains.

use crate::conn::{CLIENT, Conn, SERVER};
use crate::exchange::Carry;
use crate::facts::Facts;
use crate::half::Repair;
use crate::result::{Frames, Span};
use crate::step::{CwndState, Doubt, Step, Wait};
use tcpwhy_base::{Cause, Nanos, Side};

/// What the rules need to know of the connection.
#[derive(Debug)]
pub(crate) struct Context {
    file: u16,
    pub(crate) rtt: Nanos,
    turn: [Nanos; 2],
    /// Shortest time after which each side sends again what was lost.
    timer: [Nanos; 2],
    /// The tap is nearer to this side.
    near: [bool; 2],
    /// Nanoseconds per byte at the bottleneck, by direction.
    pub(crate) per_byte: [Option<f64>; 2],
    pub(crate) mss: [u32; 2],
    pub(crate) initial_window: [u32; 2],
    before: [u32; 2],
    cork_timers: u32,
    nagle_locks: u32,
    /// The server had not taken the handshake's final ACK until then.
    not_taken: Option<(u32, u32)>,
    one_sided: bool,
    capture_drops: bool,
    /// The largest window of the peer as it stands in the header and the scales that it may have, where that is not
    /// known.
    pub(crate) unscaled_window: [Option<(u16, u8, u8)>; 2],
    /// Both reaction times are known.
    pub(crate) measured: bool,
}

fn side_of(sender: usize) -> Side {
    if sender == CLIENT { Side::Client } else { Side::Server }
}

impl Context {
    pub(crate) fn of(conn: &mut Conn) -> Context {
        let per_byte = [0, 1].map(|d| conn.half[d].rate.estimate().map(|bps| 8e9 / bps));
        let near = [conn.near(CLIENT), conn.near(SERVER)];
        let first = conn.half[CLIENT].una == conn.half[CLIENT].base || conn.exchanges == 0;
        let not_taken = first && conn.handshake.done && {
            let server_has_it = near[SERVER] && !near[CLIENT] && conn.not_taken.0 > 0;
            conn.not_taken.1 > 0 && conn.not_taken.0 > 0 || server_has_it
        };
        Context {
            file: conn.file,
            rtt: conn.rtt_or_zero(),
            turn: [conn.turn_of(CLIENT), conn.turn_of(SERVER)],
            timer: [conn.timer(CLIENT), conn.timer(SERVER)],
            near,
            per_byte,
            mss: [conn.half[CLIENT].mss.max(1), conn.half[SERVER].mss.max(1)],
            initial_window: [0, 1].map(|d| conn.profile[d].initial_window),
            before: [0, 1].map(|d: usize| conn.half[d].cwnd.before_loss.max(conn.half[d].cwnd.before_idle)),
            cork_timers: conn.corks.map_or(0, |c| c.0),
            nagle_locks: conn.nagle_locks,
            not_taken: not_taken.then_some(conn.not_taken),
            one_sided: conn.half[0].counts.packets == 0 || conn.half[1].counts.packets == 0,
            unscaled_window: [0, 1].map(|d: usize| {
                let (low, high) = conn.half[d].scale.as_ref().and_then(|s| s.range()).unwrap_or((0, 14));
                conn.window_shift(1 - d).is_none().then_some((conn.half[d].raw_window, low, high))
            }),
            measured: conn.rtt().is_some(),
            capture_drops: conn.quality.has(crate::result::Quality::CAPTURE_DROPS),
        }
    }

    /// Appends the spans of `steps` to `spans`; empties `steps`.
    pub(crate) fn attribute(
        &self,
        steps: &mut Vec<Step>,
        carry: &mut Carry,
        spans: &mut Vec<Span>,
        limits: &mut Vec<Cause>,
    ) {
        give_hidden_holds_to_the_writer(steps);
        give_probe_waits_to_the_loss(steps, self.rtt);
        self.flight_limits(steps, carry, limits);
        for (i, step) in steps.iter().enumerate() {
            self.spans_of(step, limits[i], carry, spans);
        }
        steps.clear();
        join_neighbours(spans);
    }

    fn spans_of(&self, step: &Step, limit: Cause, carry: &mut Carry, spans: &mut Vec<Span>) {
        let duration = step.duration();
        let sender = usize::from(step.sender);
        let speaker = if step.wait == Wait::Turn { 1 - sender } else { sender };
        let link = self.link_time(step, speaker, duration, carry);
        // Near the sender the bytes before occupy the link first; near the receiver the step ends with their arrival.
        let head = if self.near[speaker] { link - step.burst.min(link) } else { Nanos::ZERO };
        let tail = link - head;
        let at = step.start;
        let rest = duration - link;
        let mut out = Emit { context: self, step, at, spans };
        let before = self.per_byte[speaker].map_or(0.0, |p| head.0 as f64 / p) as u32;
        out.bandwidth(head, before, self.per_byte[speaker]);
        self.wait(step, limit, rest, &mut out);
        out.bandwidth(tail, step.bytes, self.per_byte[speaker]);
    }

    /// How much of a step the bottleneck was busy with this connection's own bytes (rule 3).
    fn link_time(&self, step: &Step, d: usize, duration: Nanos, carry: &mut Carry) -> Nanos {
        let burst = step.burst.min(duration);
        if step.wait == Wait::Burst {
            let work = self.per_byte[d].map_or(0, |p| (f64::from(step.bytes) * p) as i64);
            carry.backlog[d] = carry.backlog[d].saturating_add(work).saturating_sub(duration.0).max(0);
            return duration;
        }
        let Some(per_byte) = self.per_byte[d] else { return burst };
        let free = match step.wait {
            Wait::Nagle { .. }
            | Wait::Silly
            | Wait::CorkTimer
            | Wait::Closed
            | Wait::Missing
            | Wait::Blind => Nanos::ZERO,
            Wait::Loss(Repair::Timeout | Repair::Probe | Repair::BlackHole) => Nanos::ZERO,
            Wait::Turn => (duration - self.turn[1 - d]).floor0(),
            _ => duration,
        };
        let own = if step.wait == Wait::Turn { 0.0 } else { f64::from(step.bytes) * per_byte };
        if self.near[d] {
            let n = f64::from(step.releases.max(1));
            // All but the last release's bytes had time to cross within the step.
            let within = own * (n - 1.0) / n;
            let work = carry.backlog[d].saturating_add(within as i64);
            // What was queued crosses while the step waits; then its own run, as far as that kept the link busy.
            let run = burst.min(free);
            let waited = Nanos(work).min(free - run);
            let busy = waited + (Nanos(work) - waited + Nanos(own as i64)).min(run);
            carry.backlog[d] = carry.backlog[d].saturating_add(own as i64).saturating_sub(busy.0).max(0);
            if step.wait == Wait::Turn {
                carry.backlog[d] = 0;
                let bytes = f64::from(step.bytes) * self.per_byte[1 - d].unwrap_or(0.0);
                carry.backlog[1 - d] = bytes as i64;
            }
            busy
        } else {
            Nanos(own as i64).min(free).max(burst.min(free))
        }
    }

    fn wait(&self, step: &Step, limit: Cause, rest: Nanos, out: &mut Emit<'_>) {
        if rest <= Nanos::ZERO {
            return;
        }
        let sender = usize::from(step.sender);
        let me = Some(side_of(sender));
        let peer = Some(side_of(1 - sender));
        // Time until a recovery ended is the loss's; the rest has its own reason.
        let mut rest = rest;
        if let Some((kind, until)) = step.loss {
            let whole = until >= step.end && step.wait != Wait::Turn;
            let part = if whole { rest } else { (until - out.at).floor0().min(rest) };
            let speaker = if step.wait == Wait::Turn { peer } else { me };
            self.loss(step, kind, part, speaker, out);
            rest = rest - part;
            if rest <= Nanos::ZERO {
                return;
            }
        }
        let flight = Facts::Flight {
            flight: step.flight,
            segments: step.flight.div_ceil(self.mss[sender]),
            rtt: self.rtt,
            before: if step.cwnd == CwndState::Growing { 0 } else { self.before[sender] },
        };
        match step.wait {
            Wait::Burst => out.bandwidth(rest, step.bytes, self.per_byte[sender]),
            Wait::Turn => self.turn(step, rest, out),
            Wait::Acked => self.acked(step, limit, rest, flight, out),
            Wait::Window => out.span(
                Cause::ReceiveWindow,
                peer,
                rest,
                0.9,
                [None, None],
                Facts::Window { flight: step.flight, rtt: self.rtt },
            ),
            Wait::Closed => {
                let facts = if step.unread {
                    Facts::Unread { flight: step.flight }
                } else {
                    Facts::Closed { window: step.note }
                };
                out.span(
                    Cause::SlowReader,
                    peer,
                    rest,
                    0.9,
                    [Some((Cause::ReceiveWindow, 0.1)), None],
                    facts,
                );
            }
            Wait::Silly => out.span(
                Cause::SillyWindow,
                peer,
                rest,
                0.8,
                [Some((Cause::ReceiveWindow, 0.1)), None],
                Facts::Closed { window: step.note },
            ),
            Wait::Nagle { delayed } => {
                let cause = if delayed { Cause::NagleDelayedAck } else { Cause::Nagle };
                let facts = Facts::Nagle { first: step.note, held: step.len, ack_delay: step.ack_delay };
                // Once may be chance (rule 4); the lock repeated is not.
                let confidence = if self.nagle_locks >= 2 { 0.95 } else { 0.75 };
                let other = (Cause::SenderPause, 0.95 - confidence);
                out.span(cause, me, rest, confidence, [(other.1 > 0.0).then_some(other), None], facts);
            }
            Wait::CorkTimer if self.cork_timers >= 2 => out.span(
                Cause::Cork,
                me,
                rest,
                0.7,
                [Some((Cause::SenderPause, 0.3)), None],
                Facts::Corked { wait: step.duration(), held: step.len },
            ),
            Wait::CorkTimer | Wait::Pause => self.pause(step, limit, rest, flight, out),
            Wait::Missing => self.missing(step.note, rest, Cause::SenderPause, out),
            Wait::Loss(kind) => self.loss(step, kind, rest, me, out),
            Wait::NewProbe => {
                let trip = self.turn[1 - sender].min(rest);
                let way = Facts::RoundTrip { rtt: self.rtt };
                out.span(Cause::PathDelay, Some(Side::Network), trip, 0.8, [None, None], way);
                let facts = Facts::Probe { wait: step.duration(), outstanding: step.note };
                let other = Some((Cause::RetransmissionTimeout, 0.2));
                out.span(Cause::TailLossProbe, Some(Side::Network), rest - trip, 0.75, [other, None], facts);
            }
            Wait::Blind => {
                let facts = if self.one_sided { Facts::OneSided } else { Facts::NotCaptured };
                out.span(Cause::Unexplained, None, rest, 0.5, [None, None], facts);
            }
        }
    }

    fn acked(&self, step: &Step, limit: Cause, rest: Nanos, flight: Facts, out: &mut Emit<'_>) {
        let sender = usize::from(step.sender);
        let me = Some(side_of(sender));
        let mss = self.mss[sender];
        let late = step.ack_delay > crate::profile::delayed_from(self.rtt)
            && step.ack_delay.times(2) > step.duration();
        let facts = Facts::AckDelay { delay: step.ack_delay, flight: step.flight };
        if late && step.flight <= 2 * mss {
            // One segment in flight at a time, with windows open: the buffer does not hold a second one, so that the
            // receiver waits for it in vain. On usual segment sizes a small congestion window does the same.
            let buffer = step.flight <= mss && mss > 9_000 && step.cwnd == CwndState::Growing;
            let cause = if buffer { Cause::SillyWindow } else { Cause::DelayedAck };
            let other = if buffer { Cause::SendBuffer } else { Cause::CongestionWindow };
            out.span(cause, me, rest, 0.8, [Some((other, 0.2)), None], facts);
            return;
        }
        // A round trip swollen beyond the base one: a queue on the path. If this flow is large enough to fill the path
        // it is its own, and its time is the link's (rule 3); else others fill it.
        let mut rest = rest;
        if self.near[sender]
            && step.flight >= 4 * mss
            && step.rtt > self.rtt.times(3).part(2) + Nanos::millis(5)
        {
            let share = 1.0 - self.rtt.0 as f64 / step.rtt.0 as f64;
            let queue = Nanos((rest.0 as f64 * share) as i64);
            let fills =
                self.per_byte[sender].is_none_or(|p| f64::from(step.flight) * p >= self.rtt.0 as f64 * 0.7);
            if fills {
                out.bandwidth(queue, 0, self.per_byte[sender]);
            } else {
                let facts = Facts::Queue { rtt: step.rtt, base: self.rtt };
                out.span(
                    Cause::Queueing,
                    Some(Side::Network),
                    queue,
                    0.6,
                    [Some((Cause::Bandwidth, 0.3)), None],
                    facts,
                );
            }
            rest = rest - queue;
        }
        if step.drained && limit == Cause::SendBuffer {
            // The windows had room and nothing left: there was nothing to send. A writer that waits for buffer space
            // wakes up with an ACK, when a third of the buffer is free (`sk_stream_write_space`); others do so by chance.
            let others = [Some((Cause::SenderPause, 0.25)), Some((Cause::CongestionWindow, 0.1))];
            out.span(Cause::SendBuffer, me, rest, 0.6, others, Facts::Drained { flight: step.flight });
            return;
        }
        match step.cwnd {
            CwndState::AfterLoss => {
                out.span(
                    Cause::CongestionWindow,
                    me,
                    rest,
                    0.85,
                    [Some((Cause::SendBuffer, 0.05)), None],
                    flight,
                );
            }
            // Flights that stay the same for three round trips have another limit by now.
            CwndState::Restarted if matches!(limit, Cause::SlowStart | Cause::CongestionWindow) => {
                out.span(Cause::IdleRestart, me, rest, 0.85, [Some((Cause::SlowStart, 0.1)), None], flight);
            }
            CwndState::Restarted | CwndState::Growing => {
                let near = self.near[sender];
                let (confidence, other) = match limit {
                    Cause::SlowStart => (0.9, (Cause::SendBuffer, 0.1)),
                    Cause::SendBuffer if near => (0.85, (Cause::CongestionWindow, 0.1)),
                    Cause::SenderPause => (0.7, (Cause::SendBuffer, 0.2)),
                    // Away from the sender only the plateau shows.
                    Cause::SendBuffer => (0.6, (Cause::SenderPause, 0.2)),
                    _ => (0.6, (Cause::SendBuffer, 0.3)),
                };
                if limit == Cause::Bandwidth {
                    out.bandwidth(rest, 0, self.per_byte[sender]);
                    return;
                }
                if let (Cause::Unexplained, Some((window, ..))) = (limit, self.unscaled_window[sender]) {
                    let facts = Facts::UnknownScale { flight: step.flight, window };
                    let either = [Some((Cause::ReceiveWindow, 0.4)), Some((Cause::SendBuffer, 0.3))];
                    out.span(limit, None, rest, 0.5, either, facts);
                    return;
                }
                if limit == Cause::SlowReader {
                    let other = Some((Cause::ReceiveWindow, 0.15));
                    let facts = Facts::Unread { flight: step.flight };
                    out.span(limit, Some(side_of(1 - sender)), rest, 0.8, [other, None], facts);
                    return;
                }
                if limit == Cause::ReceiveWindow {
                    let facts = Facts::Window { flight: step.flight, rtt: self.rtt };
                    let peer = Some(side_of(1 - sender));
                    // Of all flights up to twice as large, few fit a window as if by its scale.
                    let guessed = self.unscaled_window[sender].is_some();
                    let (confidence, buffer) = if guessed { (0.7, 0.2) } else { (0.8, 0.1) };
                    out.span(limit, peer, rest, confidence, [Some((Cause::SendBuffer, buffer)), None], facts);
                    return;
                }
                out.span(limit, me, rest, confidence, [Some(other), None], flight);
            }
        }
    }

    fn pause(&self, step: &Step, limit: Cause, rest: Nanos, flight: Facts, out: &mut Emit<'_>) {
        let sender = usize::from(step.sender);
        let me = Some(side_of(sender));
        if limit == Cause::Pacing && step.full && step.note > 0 {
            let facts = Facts::Wait { wait: step.duration(), outstanding: step.note };
            let other = (Cause::SenderPause, 0.25);
            out.span(Cause::Pacing, me, rest, 0.6, [Some(other), Some((Cause::HostDelay, 0.1))], facts);
            return;
        }
        // On a plateau the writer wakes up a moment after the ACK that made room (sk_stream_write_space).
        let woken = step.flight > 0
            && limit == Cause::SendBuffer
            && step.duration() <= self.rtt.times(2).max(Nanos::millis(5));
        if woken {
            out.span(Cause::SendBuffer, me, rest, 0.7, [Some((Cause::SenderPause, 0.3)), None], flight);
            return;
        }
        let facts = Facts::Wait { wait: step.duration(), outstanding: step.note };
        if self.capture_drops && step.note > 0 && self.one_sided {
            out.span(Cause::Unexplained, None, rest, 0.5, [None, None], Facts::NotCaptured);
            return;
        }
        let sure = if step.note == 0 || self.near[sender] { 0.9 } else { 0.75 };
        let mut alternatives = [Some((Cause::HostDelay, 0.05)), None];
        if step.wait == Wait::CorkTimer {
            alternatives = [Some((Cause::Cork, 0.4)), None];
        }
        let confidence = if step.wait == Wait::CorkTimer { 0.55 } else { sure };
        out.span(Cause::SenderPause, me, rest, confidence, alternatives, facts);
    }

    fn turn(&self, step: &Step, rest: Nanos, out: &mut Emit<'_>) {
        let sender = usize::from(step.sender);
        let path = rest.min(self.turn[sender]);
        let mut think = rest - path;
        // What was still on its way says nothing of the application: the link took that time.
        let arrived = (step.duration() - step.ack_delay).floor0();
        let queued = if step.ack_delay > Nanos::ZERO && step.loss.is_none() {
            (think - arrived).floor0()
        } else {
            Nanos::ZERO
        };
        out.bandwidth(queued, 0, self.per_byte[1 - sender]);
        let rest = rest - queued;
        think = think - queued;
        // What an idle host needs to answer at all is no work worth naming.
        if think <= self.rtt.part(64).max(Nanos::micros(50)) {
            think = Nanos::ZERO;
        }
        let path = rest - think;
        let cause = if sender == SERVER { Cause::ServerThink } else { Cause::ClientThink };
        let facts =
            Facts::Think { seen: step.duration(), path: if self.near[sender] { Nanos::ZERO } else { path } };
        let trip = Facts::RoundTrip { rtt: self.rtt };
        out.span(Cause::PathDelay, Some(Side::Network), path.part(2), 0.9, [None, None], trip);
        if let Doubt::Missing(packets) = step.doubt {
            // What timers took of it; before them it was the application.
            let timers = self.timer[sender].times((1 << packets.min(7)) - 1).min(think);
            out.span(cause, Some(side_of(sender)), think - timers, 0.6, [None, None], facts);
            self.missing(u32::from(packets), timers, cause, out);
        } else {
            // A single answer 40 to 47 ms late may be a delayed ACK that something waited for (rule 5).
            let forty = think >= Nanos::millis(39) && think <= Nanos::millis(48);
            let lost = |p| Some((Cause::RetransmissionTimeout, p));
            let (confidence, other) = match step.doubt {
                _ if forty => (0.5, Some((Cause::DelayedAck, 0.3))),
                Doubt::Timed => (0.55, lost(0.4)),
                Doubt::Possible => (0.75, lost(0.2)),
                _ => (0.9, None),
            };
            out.span(cause, Some(side_of(sender)), think, confidence, [other, None], facts);
        }
        out.span(Cause::PathDelay, Some(Side::Network), path - path.part(2), 0.9, [None, None], trip);
    }

    /// Packets that never passed the tap, as the numbers of their sender's packets tell, and the timers that repeated
    /// them.
    fn missing(&self, packets: u32, time: Nanos, otherwise: Cause, out: &mut Emit<'_>) {
        // One lost copy: a probe comes first; more of them: its timeouts.
        let (cause, other) = if packets == 1 {
            (Cause::TailLossProbe, Cause::RetransmissionTimeout)
        } else {
            (Cause::RetransmissionTimeout, Cause::TailLossProbe)
        };
        let others = [Some((other, 0.3)), Some((otherwise, 0.1))];
        out.span(cause, Some(Side::Network), time, 0.6, others, Facts::Missing { packets, wait: time });
    }

    fn loss(&self, step: &Step, kind: Repair, time: Nanos, side: Option<Side>, out: &mut Emit<'_>) {
        let facts = Facts::Loss { bytes: step.len, wait: step.duration() };
        if let Some((repeats, syn_acks)) = self.not_taken {
            let facts = Facts::NotTaken { repeats, syn_acks };
            let other = Some((Cause::RetransmissionTimeout, 0.2));
            out.span(Cause::AcceptQueueFull, Some(Side::Server), time, 0.8, [other, None], facts);
            return;
        }
        let mut time = time;
        // The trip that the data would have taken anyway (rule 14): only before the first repeat.
        if matches!(kind, Repair::Timeout | Repair::Probe)
            && matches!(step.wait, Wait::Loss(_))
            && step.note == 0
        {
            let trip = self.turn[1 - usize::from(step.sender)].min(time);
            out.span(
                Cause::PathDelay,
                Some(Side::Network),
                trip,
                0.8,
                [None, None],
                Facts::RoundTrip { rtt: self.rtt },
            );
            time = time - trip;
        }
        let (cause, confidence, other) = match kind {
            Repair::Fast => (Cause::FastRecovery, 0.85, Cause::CongestionWindow),
            Repair::Timeout => (Cause::RetransmissionTimeout, 0.85, Cause::TailLossProbe),
            Repair::Probe => (Cause::TailLossProbe, 0.8, Cause::RetransmissionTimeout),
            Repair::Spurious => (Cause::SpuriousRecovery, 0.75, Cause::RetransmissionTimeout),
            Repair::BlackHole => (Cause::PathMtu, 0.75, Cause::RetransmissionTimeout),
        };
        let side = side.map(|_| Side::Network);
        out.span(cause, side, time, confidence, [Some((other, 0.15)), None], facts);
    }
}

/// A hold by Nagle that ended before the application wrote again delayed nothing: a write that is held returns at
/// once, so that the next one comes when it would have come anyway. The critical path goes through the writer.
fn give_hidden_holds_to_the_writer(steps: &mut [Step]) {
    for i in 0..steps.len() {
        if !matches!(steps[i].wait, Wait::Nagle { .. }) {
            continue;
        }
        let next = steps[i + 1..].iter().find(|s| s.wait != Wait::Burst);
        if next.is_some_and(|n| n.sender == steps[i].sender && n.wait == Wait::Pause && n.flight == 0) {
            steps[i].wait = Wait::Pause;
            steps[i].flight = 0;
        }
    }
}

/// A tail loss probe may carry new data (RFC 8985, 7.3): the wait for it is the loss's that it brought to light.
fn give_probe_waits_to_the_loss(steps: &mut [Step], rtt: Nanos) {
    for i in 0..steps.len() {
        if steps[i].wait != Wait::Pause
            || steps[i].note == 0
            || steps[i].flight > 0
            || steps[i].loss.is_some()
        {
            continue;
        }
        let next = steps[i + 1..].iter().find(|s| s.wait != Wait::Burst).copied();
        if let Some(Step { wait: Wait::Loss(kind), sender, .. }) = next
            && sender == steps[i].sender
        {
            // After two smoothed round trips, not before.
            if steps[i].duration().times(2) >= rtt.times(3) {
                let probe = matches!(kind, Repair::Fast | Repair::Probe | Repair::Timeout);
                steps[i].wait = if probe { Wait::NewProbe } else { Wait::Loss(kind) };
            }
        }
    }
}

/// Writes spans one after the other from a step.
struct Emit<'a> {
    context: &'a Context,
    step: &'a Step,
    at: Nanos,
    spans: &'a mut Vec<Span>,
}

impl Emit<'_> {
    fn bandwidth(&mut self, time: Nanos, bytes: u32, per_byte: Option<f64>) {
        let facts = Facts::Bytes { bytes, bps: per_byte.map(|p| 8e9 / p) };
        self.span(Cause::Bandwidth, Some(Side::Network), time, 0.85, [None, None], facts);
    }

    fn span(
        &mut self,
        cause: Cause,
        side: Option<Side>,
        time: Nanos,
        confidence: f32,
        alternatives: [Option<(Cause, f32)>; 2],
        facts: Facts,
    ) {
        if time <= Nanos::ZERO {
            return;
        }
        let f = self.step.frames;
        self.spans.push(Span {
            cause,
            detail: None,
            side,
            start: self.at,
            end: self.at + time,
            frames: Frames::new(self.context.file, f[0], f[2], &f),
            confidence,
            alternatives,
            facts,
            folded: 1,
        });
        self.at += time;
    }
}

/// Joins spans of one cause and side that follow each other, where each is only a part of one flow.
pub(crate) fn join_neighbours(spans: &mut Vec<Span>) {
    spans.dedup_by(|next, last| {
        let flows = matches!(
            next.cause,
            Cause::Bandwidth
                | Cause::PathDelay
                | Cause::TlsHandshake
                | Cause::FastRecovery
                | Cause::SenderPause
        );
        let same = next.cause == last.cause && next.side == last.side && next.start == last.end && flows;
        if same {
            last.end = next.end;
            last.frames = last.frames.join(next.frames);
            last.confidence = last.confidence.min(next.confidence);
            if let (Facts::Bytes { bytes: a, .. }, Facts::Bytes { bytes: b, .. }) =
                (&mut last.facts, next.facts)
            {
                *a = a.saturating_add(b);
            }
            last.folded += if next.cause == Cause::SenderPause { next.folded } else { 0 };
        }
        same
    });
}

/// Folds a long list: within windows of spans, those of one cause and side become one, in the order of their first.
/// The sum of every cause stays exact; only the order within a window is lost.
pub(crate) fn fold(spans: &mut Vec<Span>, limit: usize) {
    let mut window = 8;
    while spans.len() > limit {
        let mut out: Vec<Span> = Vec::with_capacity(spans.len() / 2 + 1);
        for chunk in spans.chunks(window) {
            let mut at = chunk[0].start;
            let from = out.len();
            for span in chunk {
                match out[from..].iter_mut().find(|s| s.cause == span.cause && s.side == span.side) {
                    Some(kept) => {
                        kept.end += span.duration();
                        kept.frames = kept.frames.join(span.frames);
                        kept.folded += span.folded;
                        kept.confidence = kept.confidence.min(span.confidence);
                    }
                    None => out.push(span.clone()),
                }
            }
            for span in &mut out[from..] {
                let duration = span.duration();
                span.start = at;
                at += duration;
                span.end = at;
                if span.folded > 1 {
                    span.detail = Some("repeated");
                }
            }
        }
        *spans = out;
        window *= 2;
    }
}
