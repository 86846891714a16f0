//! What held each segment back, told from when the application wrote, what the kernel had not sent, what the
//! receiver had allowed, and what the link had lost. In the order in which `tcp_write_xmit` asks: congestion
//! window, window, Nagle.

use super::truth::Truth;
use super::wire::{Direction, Segment};
use crate::link::Reason;
use crate::scenario::Host;
use crate::{Event, Lost, Op, Sample};
use tcpwhy_base::{Cause, Cork, End, Nanos};

/// Shorter waits are the time that hosts need to send one segment after another.
const BURST: Nanos = Nanos::micros(300);
/// Between a call and its effect on the wire.
const PROMPT: Nanos = Nanos::millis(1);
/// No threshold yet (`TCP_INFINITE_SSTHRESH`).
const UNLIMITED: u64 = 0x7fff_ffff;
/// The delayed ACK's timer is 40 ms (`TCP_DELACK_MIN`, HZ/25), one tick less where HZ is 250.
const DELAYED: Nanos = Nanos::millis(36);
/// The probe timer and the cork's are 200 ms (`TCP_RTO_MIN`), some ticks less.
const TIMER: Nanos = Nanos::millis(150);

/// Time before a segment left, on the sender's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Which of the direction's segments ended it.
    pub(super) segment: usize,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// None: the truth does not say.
    pub(super) cause: Option<Cause>,
}

/// A socket's state at one moment: what of `tcp_info` is used.
struct State {
    time: Nanos,
    snd_cwnd: u64,
    snd_ssthresh: u64,
    unacked: u64,
    snd_mss: u64,
    rto_us: u64,
    notsent_bytes: u64,
}

impl State {
    fn of(sample: &Sample) -> State {
        // Fields that every kernel of the last ten years has.
        let field = |name| sample.info.get(name).unwrap_or(0);
        State {
            time: Nanos(sample.time_ns),
            snd_cwnd: field("snd_cwnd"),
            snd_ssthresh: field("snd_ssthresh"),
            unacked: field("unacked"),
            snd_mss: field("snd_mss"),
            rto_us: field("rto_us"),
            notsent_bytes: field("notsent_bytes"),
        }
    }
}

/// The truth about one sending end of one connection.
pub(super) struct Sender<'a> {
    pub(super) direction: &'a Direction,
    host: &'a Host,
    /// Its writes, and the bytes written when each returned.
    writes: Vec<(&'a Event, u64)>,
    pauses: Vec<&'a Event>,
    /// Waits of the receiving application before reads, and its writes.
    reader: Vec<&'a Event>,
    states: Vec<State>,
    lost: Vec<&'a Lost>,
    pub(super) rtt: Nanos,
    /// The way of an ACK.
    back: Nanos,
    mss: u64,
    /// Timers that its kernel counted.
    probes: bool,
    timeouts: bool,
}

impl<'a> Sender<'a> {
    pub(super) fn new(truth: &'a Truth, direction: &'a Direction, port: u16, sender: End) -> Sender<'a> {
        let calls = |own: bool, ops: &'static [Op]| {
            truth
                .events
                .iter()
                .filter(move |e| e.port == port && (e.side == sender) == own && ops.contains(&e.op))
                .collect::<Vec<_>>()
        };
        let mut written = 0;
        let writes = calls(true, &[Op::Write])
            .into_iter()
            .map(|call| {
                written += call.bytes.unwrap_or(0);
                (call, written)
            })
            .collect();
        let states: Vec<_> =
            truth.samples.iter().filter(|s| s.side == sender && s.port == port).map(State::of).collect();
        let shared = &truth.scenario.shared;
        let counters = if sender == End::Client { &truth.client_counters } else { &truth.server_counters };
        let counted = |name: &str| counters.get(name).is_some_and(|&n| n > 0);
        // IP and TCP headers with the time stamp option, unless the kernel says.
        let mss = states.last().map_or(shared.mtu.saturating_sub(52).max(1), |s| s.snd_mss);
        Sender {
            direction,
            host: truth.scenario.host(sender),
            writes,
            pauses: calls(true, &[Op::Pause]),
            reader: calls(false, &[Op::ReadPause, Op::Write]),
            states,
            lost: truth.lost.iter().filter(|l| l.port == port && l.from() == sender).collect(),
            rtt: shared.rtt(),
            back: truth.scenario.link(sender.peer()).delay,
            mss,
            probes: counted("TcpExtTCPLossProbes"),
            timeouts: counted("TcpExtTCPTimeouts"),
        }
    }

    /// When the write was called that brought the byte before `place`.
    pub(super) fn written(&self, place: u64) -> Option<Nanos> {
        self.writer(place).map(|(call, _)| call.start())
    }

    fn writer(&self, place: u64) -> Option<&(&'a Event, u64)> {
        self.writes.get(self.writes.partition_point(|&(_, upto)| upto < place))
    }

    /// What came before segment `i`. Before the `first` segment of a message only the time since its write counts.
    pub(super) fn waits(&self, i: usize, first: bool) -> Vec<Wait> {
        let wait = |from, to, cause| Wait { segment: i, from, to, cause };
        let segments = &self.direction.segments;
        let Some(own) = segments.get(i) else { return Vec::new() };
        let Some(&(call, _)) = self.writer(own.end) else { return Vec::new() };
        let before = i.checked_sub(1).and_then(|b| segments.get(b)).filter(|_| !first);
        let from = before.map_or(call.start(), |b| b.sent);
        if own.sent - from <= BURST {
            return Vec::new();
        }
        let Some(before) = before else {
            if own.sent - from <= PROMPT {
                return Vec::new();
            }
            return vec![wait(from, own.sent, self.limit(i, own, from, call))];
        };
        if call.start() <= from {
            return vec![wait(from, own.sent, self.limit(i, own, from, call))];
        }
        // Everything written before had been sent: the application was not there, or was in a write that
        // waited for room.
        let paused = self.pauses.iter().any(|p| p.start() < call.start() && p.end() > from);
        let blocked = self.writer(before.end).is_some_and(|(w, _)| {
            !std::ptr::eq(*w, call) && w.end() - w.start() > BURST && w.end() > from && !paused
        });
        let cause = if blocked { Cause::SendBuffer } else { Cause::SenderPause };
        if own.sent - call.start() <= PROMPT {
            return vec![wait(from, own.sent, Some(cause))];
        }
        vec![
            wait(from, call.start(), Some(cause)),
            wait(call.start(), own.sent, self.limit(i, own, call.start(), call)),
        ]
    }

    /// What held segment `i` from `from` on, when its bytes had been written or were being written.
    fn limit(&self, i: usize, own: &Segment, from: Nanos, call: &Event) -> Option<Cause> {
        let acks = &self.direction.acks;
        // As it was before the ACK that released the segment, if one did.
        let settled = (own.sent - Nanos::micros(500)).max(from + (own.sent - from).part(2));
        let known = acks.partition_point(|a| a.at < settled);
        let before = known.checked_sub(1).and_then(|k| acks.get(k));
        let released = acks.partition_point(|a| a.at <= own.sent + Nanos::micros(20));
        let release = acks.get(known..released).and_then(<[_]>::last);
        let acked = before.map_or(0, |a| a.ack);
        let allowed = before.map_or(u64::MAX, |a| a.edge);
        let delayed = release.is_some_and(|a| {
            let times = (self.direction.said(a.ack), self.direction.arrived(a.ack));
            a.ack > acked && matches!(times, (Some(said), Some(arrived)) if said - arrived >= DELAYED)
        });
        let whole = own.end - own.start >= self.mss;
        let state = self.state(from, own.sent);
        // Room for a write shows in what the kernel had accepted and not sent.
        if call.start() <= from
            && call.end() >= own.sent
            && state.is_some_and(|(s, _)| s.notsent_bytes < self.mss)
            && own.start >= acked
        {
            return Some(Cause::SendBuffer);
        }
        if allowed < own.end {
            return Some(self.window(allowed > own.start, release.is_none(), from, own));
        }
        if !whole && (self.host.cork != Cork::Never || self.host.more) && own.sent - from >= TIMER {
            return Some(Cause::Cork);
        }
        // Minshall's rule: a small segment waits for the ACK of an earlier small one. The last of several
        // that left as one.
        let small = |s: &Segment| s.end > acked && !(s.end - s.start).is_multiple_of(self.mss);
        let earlier = self.direction.segments.get(..i).unwrap_or_default();
        if !whole && !self.host.nodelay && earlier.iter().rev().take(64).any(small) {
            return Some(if delayed { Cause::NagleDelayedAck } else { Cause::Nagle });
        }
        if self.host.stack.congestion == "bbr" {
            let (flight, room) = (own.start - acked.min(own.start), allowed.saturating_sub(acked));
            return self.paced(flight, before.map(|_| room), from, own, state.map(|s| s.0));
        }
        if own.start == acked {
            return None;
        }
        // What it saves for a larger burst it saves of the smaller of both windows (tcp_tso_should_defer).
        if before.is_some() && state.is_some_and(|(s, _)| allowed - acked < s.snd_cwnd * self.mss) {
            return Some(self.window(true, release.is_none(), from, own));
        }
        // Up to a third of it.
        if state.is_some_and(|(s, inside)| inside && s.unacked * 3 + 6 < s.snd_cwnd * 2) {
            return None;
        }
        if delayed {
            return Some(Cause::DelayedAck);
        }
        Some(self.congestion(i, own.sent))
    }

    /// BBR spreads what it has over the round trip, at the rate that it takes for the path's: a limit that
    /// its flights reach, or else itself. `room`: the window.
    fn paced(
        &self,
        flight: u64,
        room: Option<u64>,
        from: Nanos,
        own: &Segment,
        state: Option<&State>,
    ) -> Option<Cause> {
        let state = state?;
        // Probing takes the flight to 1.25 of what fits, and what had queued is then drained at 0.75
        // (bbr_pacing_gain): one that a window ends lies between three quarters of it and all.
        match room {
            Some(room) if flight * 4 >= room * 3 => return Some(self.window(true, false, from, own)),
            Some(room) if flight * 2 >= room => return None,
            _ => {}
        }
        // The threshold is set as STARTUP ends, and not before (bbr_check_drain).
        if state.snd_ssthresh >= UNLIMITED {
            return Some(Cause::SlowStart);
        }
        // Two segments are less than any burst that it leaves at once (bbr_min_tso_segs).
        let full = state.unacked + 2 >= state.snd_cwnd;
        Some(if full { Cause::CongestionWindow } else { Cause::Pacing })
    }

    fn window(&self, some_room: bool, by_timer: bool, from: Nanos, own: &Segment) -> Cause {
        if some_room && by_timer && own.sent - from >= TIMER {
            return Cause::SillyWindow;
        }
        // The sender knows of the reader what an ACK brings.
        let (from, until) = (from - self.back, own.sent - self.back);
        let overlap = |op: Op| {
            let of = |c: &&&Event| c.op == op && c.start() < until && c.end() > from;
            let time = |c: &&Event| c.end().min(until) - c.start().max(from);
            self.reader.iter().filter(of).map(time).fold(Nanos::ZERO, |a, b| a + b)
        };
        let half = (until - from).part(2);
        if overlap(Op::ReadPause) > half {
            Cause::SlowReader
        } else if overlap(Op::Write) > half {
            Cause::MutualBlock
        } else {
            Cause::ReceiveWindow
        }
    }

    /// Which phase of congestion control held a segment back.
    fn congestion(&self, i: usize, at: Nanos) -> Cause {
        if let Some((state, _)) = self.state(Nanos::ZERO, at)
            && state.snd_cwnd >= state.snd_ssthresh
        {
            return Cause::CongestionWindow;
        }
        // The window had been larger than at the start, and a pause longer than the timer took it back.
        let segments = self.direction.segments.get(..=i).unwrap_or_default();
        let rto = self.states.last().map_or(Nanos::millis(200), |s| Nanos::micros(s.rto_us as i64));
        let idle = segments.windows(2).rposition(|w| w[1].sent - w[0].sent > rto);
        if idle.is_some_and(|n| segments[n].end > 10 * self.mss) {
            Cause::IdleRestart
        } else {
            Cause::SlowStart
        }
    }

    /// The last state up to `to`, and whether it lies after `from`; none older than 100 ms.
    fn state(&self, from: Nanos, to: Nanos) -> Option<(&State, bool)> {
        let last = self.states.partition_point(|s| s.time <= to).checked_sub(1)?;
        let state = self.states.get(last)?;
        (to - state.time < Nanos::millis(100)).then(|| (state, state.time > from))
    }

    /// Repairs: the lost bytes' first departure, when the sender heard that all sent before the repair was there, the
    /// place up to which that holds, and what the repair waited for.
    pub(super) fn repairs(&self) -> Vec<Repair> {
        let repeats = &self.direction.repeats;
        let acks = &self.direction.acks;
        let mut all: Vec<Repair> = Vec::new();
        for lost in self.lost.iter().filter(|l| l.payload > 0) {
            let Some(place) = lost.relative else { continue };
            // The same bytes lost again belong to the first repair.
            if let Some(known) = all.iter_mut().find(|r| r.place == place) {
                // Also a repair that is lost is known by what is acknowledged behind it (RFC 8985).
                if known.cause == Cause::FastRecovery && self.timeouts {
                    known.cause = Cause::RetransmissionTimeout;
                }
                continue;
            }
            let covers = |r: &&Segment| r.sent > lost.time() && r.start <= place && r.end > place;
            let Some(repair) = repeats.iter().find(covers) else { continue };
            // RACK waits a quarter of the round trip for reordering to show.
            let slack = Nanos::millis(3) + self.rtt.part(4);
            let heard = acks.partition_point(|a| a.at <= repair.sent);
            let prompted = heard.checked_sub(1).and_then(|n| acks.get(n));
            let prompted =
                prompted.is_some_and(|a| a.at > repair.sent - slack && a.at > lost.time() + self.rtt.part(2));
            let cause = match lost.reason {
                Reason::TooLarge => Cause::PathMtu,
                // RACK's own timer repairs as an ACK does.
                _ if prompted || !(self.probes || self.timeouts) => Cause::FastRecovery,
                _ => Cause::TailLossProbe,
            };
            let sent_by_then = self.direction.segments.partition_point(|s| s.sent <= repair.sent);
            let upto = sent_by_then.checked_sub(1).and_then(|n| self.direction.segments.get(n));
            let upto = upto.map_or(place + u64::from(lost.payload), |s| s.end);
            all.push(Repair { place, lost: lost.time(), repair: repair.sent, upto, cause });
        }
        all
    }

    /// The link lost it.
    pub(super) fn was_lost(&self, segment: &Segment) -> bool {
        self.lost.iter().any(|l| l.time() == segment.sent)
    }

    /// Repeats of what the link had not lost: when, and until the sender heard of it.
    pub(super) fn needless(&self) -> Vec<(Nanos, u64)> {
        let was_lost = |r: &&Segment| {
            let hit =
                |l: &&&Lost| l.relative.is_some_and(|p| p < r.end && p + u64::from(l.payload) > r.start);
            self.lost.iter().find(hit).is_some_and(|l| l.time() <= r.sent)
        };
        self.direction.repeats.iter().filter(|r| !was_lost(r)).map(|r| (r.sent, r.end)).collect()
    }
}

/// One loss and its repair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    /// The first byte.
    place: u64,
    pub(super) lost: Nanos,
    pub(super) repair: Nanos,
    /// What had been sent before the repair.
    pub(super) upto: u64,
    pub(super) cause: Cause,
}
