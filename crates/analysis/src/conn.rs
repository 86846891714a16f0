//! One connection while it lives: takes its segments in order, keeps both halves and the exchange that goes on.

use crate::exchange::{MAX_STEPS, Recorder};
use crate::findings::Rollups;
use crate::half::{AckSeen, Arrival, Half, Recovery, Repair};
use crate::output::Output;
use crate::profile::{Profile, delayed_from};
use crate::result::{Budget, Closed, Omitted, Quality, Setup, Vantage};
use crate::setup::Handshake;
use crate::step::{CwndState, Step, Wait};
use tcpwhy_base::{Endpoint, Nanos, Segment, Seq, TcpFlags, Tls};

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;
/// A reaction time that was never measured.
pub(crate) const UNKNOWN: Nanos = Nanos::MAX;

/// State of one connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) id: u32,
    pub(crate) ends: [Endpoint; 2],
    pub(crate) roles_inferred: bool,
    pub(crate) file: u16,
    pub(crate) link: u32,
    /// Another link id under which its other direction travels.
    pub(crate) other_link: Option<u32>,
    pub(crate) start: Nanos,
    pub(crate) now: Nanos,
    pub(crate) first_frame: u64,
    pub(crate) last_frame: u64,
    pub(crate) half: [Half; 2],
    pub(crate) profile: [Profile; 2],
    /// Shortest time from a packet passing the tap towards this end to its answer passing back.
    pub(crate) turn: [Nanos; 2],
    pub(crate) handshake: Handshake,
    pub(crate) setup: Option<Setup>,
    pub(crate) ex: Recorder,
    pub(crate) exchanges: u32,
    /// Where the last part ended.
    pub(crate) mark: Nanos,
    pub(crate) mark_frame: u64,
    pub(crate) closed: Closed,
    pub(crate) closed_at: Option<Nanos>,
    pub(crate) quality: Quality,
    pub(crate) protocol: Option<&'static str>,
    pub(crate) budget: Budget,
    pub(crate) gap_budget: Budget,
    pub(crate) all_exchanges: Omitted,
    pub(crate) all_gaps: Omitted,
    pub(crate) rollups: Rollups,
    /// The server's kernel did not take the final ACK: repeats of the first data, SYN-ACKs after it.
    pub(crate) not_taken: (u32, u32),
    /// Steps with the timing of a cork, and waits whose release was locked to an ACK.
    pub(crate) cork_timers: u32,
    pub(crate) nagle_locks: u32,
    pub(crate) time_went_back: u32,
    pub(crate) rst_from: Option<u8>,
    /// Turns that took no longer than the path: round trips in series.
    pub(crate) quick_turns: u32,
    pub(crate) last_response_end: Nanos,
    pub(crate) fin_seen: [Option<Nanos>; 2],
}

impl Conn {
    pub(crate) fn new(id: u32, segment: &Segment) -> Conn {
        let (syn, ack) = (segment.flags.syn(), segment.flags.ack());
        // Without a SYN the lower port is taken for the server's; with equal ports, the receiver.
        let from_client = if syn { !ack } else { segment.src.port >= segment.dst.port };
        let ends = if from_client { [segment.src, segment.dst] } else { [segment.dst, segment.src] };
        let mut quality = Quality::default();
        if !syn {
            quality.set(Quality::MIDSTREAM);
        }
        Conn {
            id,
            ends,
            roles_inferred: !syn,
            file: segment.file,
            link: segment.link,
            other_link: None,
            start: segment.time,
            now: segment.time,
            first_frame: segment.frame,
            last_frame: segment.frame,
            half: [Half::new(), Half::new()],
            profile: [Profile::UNKNOWN; 2],
            turn: [UNKNOWN; 2],
            handshake: Handshake::default(),
            setup: None,
            ex: Recorder::default(),
            exchanges: 0,
            mark: segment.time,
            mark_frame: segment.frame,
            closed: Closed::Open,
            closed_at: None,
            quality,
            protocol: None,
            budget: Budget::default(),
            gap_budget: Budget::default(),
            all_exchanges: Omitted::default(),
            all_gaps: Omitted::default(),
            rollups: Rollups::default(),
            not_taken: (0, 0),
            cork_timers: 0,
            nagle_locks: 0,
            time_went_back: 0,
            rst_from: None,
            quick_turns: 0,
            last_response_end: Nanos(i64::MIN),
            fin_seen: [None; 2],
        }
    }

    /// Which half sent the segment.
    pub(crate) fn side_of(&self, segment: &Segment) -> usize {
        usize::from(segment.src != self.ends[CLIENT])
    }

    /// Base round trip: both reaction times together; `None` until both are known.
    pub(crate) fn rtt(&self) -> Option<Nanos> {
        (self.turn[0] != UNKNOWN && self.turn[1] != UNKNOWN).then(|| self.turn[0] + self.turn[1])
    }

    /// Base round trip, or what is known of it, or zero.
    pub(crate) fn rtt_or_zero(&self) -> Nanos {
        self.turn.iter().filter(|&&t| t != UNKNOWN).fold(Nanos::ZERO, |sum, &t| sum + t)
    }

    /// The reaction time of one side, or zero.
    pub(crate) fn turn_of(&self, side: usize) -> Nanos {
        if self.turn[side] == UNKNOWN { Nanos::ZERO } else { self.turn[side] }
    }

    /// The tap is nearer to this side than to the other.
    pub(crate) fn near(&self, side: usize) -> bool {
        self.turn_of(side) <= self.turn_of(1 - side)
    }

    /// Where the tap is. A tenth of the round trip is near enough to an end: the ends' own reaction times are
    /// that small a part of any path worth telling apart.
    pub(crate) fn vantage(&self) -> Vantage {
        let (Some(rtt), c, s) = (self.rtt(), self.turn[CLIENT], self.turn[SERVER]) else {
            return Vantage::Unknown;
        };
        if rtt < Nanos::micros(100) {
            // Loopback or the same host: no matter.
            return if c <= s { Vantage::Client } else { Vantage::Server };
        }
        match () {
            () if c.times(4) <= s => Vantage::Client,
            () if s.times(4) <= c => Vantage::Server,
            () if rtt < Nanos::micros(500) => {
                if c <= s {
                    Vantage::Client
                } else {
                    Vantage::Server
                }
            }
            () => Vantage::Middle,
        }
    }

    /// Reads a little of each cache line that a segment will need, so that they are fetched together.
    pub(crate) fn touch(&self) -> u64 {
        let half = |h: &Half| {
            u64::from(h.nxt.0)
                ^ h.counts.packets
                ^ u64::from(h.max_payload)
                ^ u64::from(h.cwnd.estimate)
                ^ h.rate.touch()
                ^ h.touch()
        };
        half(&self.half[0])
            ^ half(&self.half[1])
            ^ self.now.0 as u64
            ^ self.turn[0].0 as u64
            ^ self.ex.last.0 as u64
            ^ self.ex.bytes[0]
            ^ self.ex.steps.last().map_or(0, |s| s.end.0 as u64)
    }

    /// The segment is of this connection (as far as its addresses tell).
    pub(crate) fn is_of(&self, segment: &Segment) -> bool {
        let ends = [segment.src, segment.dst];
        (self.ends == ends || self.ends == [segment.dst, segment.src])
            && (self.link == segment.link || self.other_link == Some(segment.link))
    }

    /// A packet of the other direction under other VLAN tags or tunnel ids belongs here: only one direction was seen
    /// so far, and the packet acknowledges what that direction sent.
    pub(crate) fn is_answered_by(&self, segment: &Segment) -> bool {
        let s = self.side_of(segment);
        let sent = &self.half[1 - s];
        let known = segment.src == self.ends[s] && segment.dst == self.ends[1 - s];
        known
            && self.half[s].counts.packets == 0
            && segment.flags.ack()
            && sent.seen
            && !segment.ack.before(sent.base)
            && segment.ack.at_or_before(sent.nxt + 1)
    }

    /// A segment that begins another connection on the same 4-tuple: a SYN with another sequence number after
    /// data or a close (RFC 9293, 3.6.1).
    pub(crate) fn is_reused_by(&self, segment: &Segment) -> bool {
        if !segment.flags.syn() || segment.flags.ack() {
            return false;
        }
        let side = self.side_of(segment);
        let half = &self.half[side];
        if !half.seen {
            return self.closed != Closed::Open;
        }
        half.base != segment.seq + 1
    }

    /// Takes one segment.
    pub(crate) fn push(&mut self, segment: &Segment, parts: &mut Output) {
        let s = self.side_of(segment);
        if segment.time < self.now {
            self.time_went_back += 1;
            self.quality.set(Quality::TIME_WENT_BACK);
        }
        let since = segment.time - self.now;
        let t = self.now.max(segment.time);
        self.now = t;
        self.last_frame = self.last_frame.max(segment.frame);
        self.half[s].counts.packets += 1;
        if segment.trouble.0 != 0 {
            self.note_trouble(segment);
        }
        if self.half[s].is_copy(segment, since) {
            self.half[s].counts.duplicates += 1;
            self.quality.set(Quality::DUPLICATES);
            return;
        }
        let missing = self.half[s].missing_by_ip_id(segment.ip_id);
        if segment.flags.has(TcpFlags::SYN | TcpFlags::RST) {
            if segment.flags.syn() {
                self.on_syn(s, segment, t);
            }
            if segment.flags.rst() {
                self.on_rst(s, segment, t);
                return;
            }
        }
        if segment.flags.ack() {
            if self.setup.is_none() && s == CLIENT && self.handshake.syn_ack.is_some() && !segment.flags.syn()
            {
                self.finish_handshake(segment, t);
            }
            if !segment.flags.syn() {
                self.on_ack(s, segment, t);
            }
        }
        if segment.len > 0 {
            self.on_data(s, segment, t, missing, parts);
        }
        if segment.flags.fin() {
            self.on_fin(s, segment, t);
        }
    }

    fn note_trouble(&mut self, segment: &Segment) {
        use tcpwhy_base::Trouble;
        if segment.trouble.has(Trouble::CUT_HEADER) {
            self.quality.set(Quality::SNAPLEN);
        }
        if segment.trouble.has(Trouble::ZERO_IP_LEN) {
            self.quality.set(Quality::OFFLOAD);
        }
        if segment.trouble.has(Trouble::ENCAPSULATED) {
            self.quality.set(Quality::ENCAPSULATED);
        }
    }

    fn on_rst(&mut self, s: usize, segment: &Segment, t: Nanos) {
        if segment.flags.ack() && s == SERVER && self.setup.is_none() && !self.half[SERVER].seen {
            self.handshake.refused = Some((t, segment.frame));
        }
        self.closed = Closed::Rst;
        self.rst_from.get_or_insert(s as u8);
        self.closed_at.get_or_insert(t);
    }

    fn on_fin(&mut self, s: usize, segment: &Segment, t: Nanos) {
        if self.half[s].fin && segment.len == 0 {
            self.half[s].counts.retransmitted += 1;
        }
        self.half[s].fin = true;
        let end = segment.seq + segment.len + 1;
        let half = &mut self.half[s];
        if half.seen && segment.seq + segment.len == half.nxt {
            half.nxt = end;
        }
        self.fin_seen[s].get_or_insert(t);
        if self.half[0].fin && self.half[1].fin && self.closed == Closed::Open {
            self.closed = Closed::Fin;
            self.closed_at.get_or_insert(t);
        }
    }

    /// `s` acknowledges data of the other half.
    fn on_ack(&mut self, s: usize, segment: &Segment, t: Nanos) {
        let d = 1 - s;
        let shift = match (self.half[s].wscale, self.half[d].wscale) {
            (Some(mine), Some(_)) => Some(mine),
            _ => None,
        };
        let horizon = self.turn_of(d) + self.turn_of(d).part(4) + Nanos::millis(2);
        if segment.window == 0 && !segment.flags.fin() {
            self.half[s].counts.zero_windows += 1;
        }
        let advertised = u32::from(segment.window) << shift.unwrap_or(0).min(14);
        self.half[s].counts.max_window = self.half[s].counts.max_window.max(advertised);
        // A probe: no payload, one below the next sequence number, towards a closed window (Linux tcp_xmit_probe_skb).
        if segment.len == 0
            && self.half[s].seen
            && segment.seq == self.half[s].nxt - 1
            && !segment.flags.fin()
        {
            let h = &mut self.half[s];
            if h.edge_known && h.edge.minus(h.nxt) < h.mss.max(1) as i32 {
                h.counts.probes += 1;
            } else {
                h.counts.keepalives += 1;
            }
        }
        let AckSeen { advance, delay, lost_by_capture, dsack } =
            self.half[d].on_ack(segment, t, shift, horizon);
        if lost_by_capture > 1 {
            let other_direction = self.half[d].counts.packets > 0;
            self.quality.set(if other_direction { Quality::CAPTURE_DROPS } else { Quality::ONE_SIDED });
        }
        if let Some(delay) = delay {
            let segment_is_answer = self.half[d].holes.is_empty();
            if segment_is_answer && delay < self.turn[s] {
                self.turn[s] = delay.max(Nanos(1));
            }
            self.half[d].sample_rtt((delay + self.turn_of(d)).0);
            if segment.len == 0 && self.turn[s] != UNKNOWN {
                let excess = delay - self.turn[s];
                if excess > delayed_from(self.rtt_or_zero()) {
                    let habit = &mut self.half[s].counts.delayed_ack;
                    *habit = if habit.1 == 0 {
                        (excess.0, excess.0)
                    } else {
                        (habit.0.min(excess.0), habit.1.max(excess.0))
                    };
                }
            }
        }
        if let Some((left, right)) = dsack {
            self.on_dsack(d, left, right);
        }
        if advance > 0 {
            self.after_advance(d, advance, t);
        }
    }

    fn after_advance(&mut self, d: usize, advance: u32, t: Nanos) {
        let near = self.near(d);
        let pause = self.train_pause();
        let turn = self.turn_of(1 - d);
        let half = &mut self.half[d];
        if near {
            half.rate.pass(t, advance, pause);
        }
        let mut flight_before = half.outstanding() + advance;
        if !near {
            flight_before = flight_before.max(half.round.1).max(half.round.2);
        }
        if half.cwnd.estimate == 0 {
            half.cwnd.estimate = self.profile[d].initial_window * half.mss.max(1);
        }
        // Linux grows the window in slow start while more than half of it is in use (tcp_is_cwnd_limited).
        if half.cwnd.before_loss == 0 && flight_before >= half.cwnd.estimate / 2 {
            half.cwnd.estimate = half.cwnd.estimate.saturating_add(advance);
        }
        if half.cwnd.before_idle > 0 && half.cwnd.estimate >= half.cwnd.before_idle {
            half.cwnd.before_idle = 0;
        }
        if let Some(recovery) = half.recovery {
            if !half.una.before(recovery.point) {
                half.recovery = None;
                half.first_sack = None;
                // An ACK sooner after the repeat than the far end can answer was for the original (Eifel, RFC 3522).
                let early = recovery.repeats == 1 && t - recovery.last < turn.part(2);
                let needless = early || recovery.kind == Repair::Spurious;
                let kind = if needless { Repair::Spurious } else { recovery.kind };
                self.mark_recovered(d, kind, t, needless);
            }
        }
    }

    /// A recovery of `d` ended at `t`: the steps since it began belong to it.
    fn mark_recovered(&mut self, d: usize, kind: Repair, t: Nanos, rename: bool) {
        self.handshake.recovered[d] = Some((kind, t));
        if rename && self.ex.forget_needless(d) {
            self.handshake.recovered[d] = None;
        }
    }

    /// A duplicate was reported (RFC 2883): the retransmission of that range was not needed.
    fn on_dsack(&mut self, d: usize, left: Seq, right: Seq) {
        let Some(recovery) = self.half[d].recovery else {
            // The ACK for the original already ended it; the step may still be there.
            if let Some(step) = self.ex.steps.iter_mut().rev().find(|s| {
                usize::from(s.sender) == d
                    && matches!(s.wait, Wait::Loss(Repair::Timeout | Repair::Probe | Repair::Fast))
            }) {
                if step.len >= right.minus(left).max(0) as u32 / 2
                    && step.loss.is_none_or(|l| l.0 != Repair::Fast)
                {
                    step.wait = Wait::Loss(Repair::Spurious);
                }
            }
            return;
        };
        if recovery.range.0 == left || recovery.range.1 == right {
            if let Some(r) = self.half[d].recovery.as_mut() {
                r.kind = Repair::Spurious;
            }
        }
    }

    /// A pause longer than this ends a train of packets.
    fn train_pause(&self) -> Nanos {
        match self.rtt() {
            Some(rtt) => rtt.part(4).max(Nanos::micros(200)),
            None => Nanos::millis(5),
        }
    }

    fn on_data(&mut self, s: usize, segment: &Segment, t: Nanos, missing: u16, parts: &mut Output) {
        if segment.flags.syn() {
            return; // counted with the handshake
        }
        if self.protocol.is_none() && self.half[s].counts.bytes == 0 {
            self.protocol = protocol_of(segment);
        }
        let rtt = self.rtt_or_zero();
        // A hole younger than half a round trip was reordering: a repair takes at least one trip back and forth
        // from the receiver, and half of one at a tap in the middle.
        let reorder_within = rtt.part(2).max(Nanos::micros(100));
        let half = &mut self.half[s];
        let before = Before { nxt: half.nxt, small_end: half.small_end };
        let (arrival, new) = half.on_data(segment, t, reorder_within);
        if half.mss > 0 && segment.len > half.mss {
            self.quality.set(Quality::OFFLOAD);
        }
        if matches!(arrival, Arrival::Probe) {
            return;
        }
        if self.setup.is_none() && s == CLIENT {
            self.close_silent_setup(t);
        }
        if new > 0 {
            let pause = self.train_pause();
            let near_receiver = !self.near(s);
            let half = &mut self.half[s];
            if near_receiver {
                half.rate.pass(t, segment.len, pause);
            }
            let length = rtt.max(Nanos::micros(50));
            if t - half.round.0 >= length {
                half.round = (t, segment.len, half.round.1);
            } else {
                half.round.1 = half.round.1.saturating_add(segment.len);
            }
        }
        let progress = match arrival {
            Arrival::Needless => new > 0,
            Arrival::Repeat => true,
            _ => new > 0,
        };
        if progress {
            self.progress(s, segment, t, arrival, new, before, missing, parts);
        }
        if arrival == Arrival::Repeat {
            self.start_recovery(s, segment, t);
        }
        let half = &mut self.half[s];
        half.cwnd.max_flight = half.cwnd.max_flight.max(half.outstanding());
        half.sent(segment, t);
    }

    fn start_recovery(&mut self, s: usize, segment: &Segment, t: Nanos) {
        let kind = match self.ex.steps.last().map(|step| step.wait) {
            Some(Wait::Loss(kind)) => kind,
            _ => Repair::Fast,
        };
        let half = &mut self.half[s];
        if matches!(kind, Repair::Timeout | Repair::Probe) {
            let wait = (t - half.last_data).0;
            let shortest = &mut half.counts.min_timeout;
            *shortest = if *shortest == 0 { wait } else { (*shortest).min(wait) };
        }
        let range = (segment.seq, segment.seq + segment.len);
        let point = half.nxt;
        match half.recovery.as_mut() {
            Some(r) => {
                r.repeats += 1;
                r.last = t;
                r.range = range;
                if kind == Repair::Timeout {
                    r.kind = kind;
                }
            }
            None => {
                half.recovery = Some(Recovery { kind, point, last: t, repeats: 1, range });
                if kind != Repair::Probe {
                    let flight = half.outstanding().max(half.round.1).max(half.round.2);
                    half.cwnd.before_loss = half.cwnd.before_loss.max(flight);
                    half.cwnd.estimate = half.cwnd.estimate.min(flight);
                }
            }
        }
    }

    /// A pause longer than this splits a one-way transfer (rule 9).
    fn long_pause(&self, s: usize) -> Nanos {
        Nanos::secs(1).max(self.half[s].rto(self.rtt_or_zero(), &self.profile[s]).times(2))
    }

    /// Payload passed that was not acknowledged: cuts exchanges and records the step that led to it.
    #[expect(clippy::too_many_arguments, reason = "one call, and each is a fact about the same segment")]
    fn progress(
        &mut self,
        s: usize,
        segment: &Segment,
        t: Nanos,
        arrival: Arrival,
        new: u32,
        before: Before,
        missing: u16,
        parts: &mut Output,
    ) {
        if self.ex.active {
            let dt = t - self.ex.last;
            if self.ex.in_tls {
                if self.tls_ends(s, segment) {
                    self.end_tls(t, segment, parts);
                }
            } else if s == CLIENT && self.ex.bytes[SERVER] > 0 && new > 0 && self.has_read_all(segment, t) {
                self.end_exchange(parts);
            } else if s == SERVER && self.ex.bytes[CLIENT] == 0 && new > 0 && dt > self.long_pause(s) {
                self.end_exchange(parts);
            }
        }
        if !self.ex.active {
            self.open(s, segment, t, parts);
        } else {
            let step = self.step(s, segment, t, arrival, before, missing);
            let rtt = self.rtt_or_zero();
            self.record(step, rtt);
        }
        let ex = &mut self.ex;
        ex.bytes[s] += u64::from(new);
        if s == CLIENT {
            if ex.bytes[SERVER] == 0 {
                ex.request_end = Some(t);
                if ex.turns == 0 {
                    ex.turns = 1;
                }
            } else if ex.last_sender as usize == SERVER {
                ex.turns += 1;
                ex.duplex = true;
            }
        } else if ex.response_start.is_none() {
            ex.response_start = Some(t);
        }
        ex.last = t;
        ex.last_frame = segment.frame;
        ex.last_sender = s as u8;
        if ex.steps.len() >= MAX_STEPS {
            self.turn_over_steps(parts);
        }
    }

    fn record(&mut self, step: Step, rtt: Nanos) {
        if let Wait::Loss(_) = step.wait {
            // The steps since the first sign of the loss belong to it (rule 14).
            let since = match step.loss {
                Some((_, since)) => since,
                None => step.start,
            };
            let kind = match step.wait {
                Wait::Loss(kind) => kind,
                _ => Repair::Fast,
            };
            self.ex.mark_loss(usize::from(step.sender), kind, since);
        }
        self.ex.push(step, rtt);
    }

    /// Rule 7: the client had all of the response when it sent this.
    fn has_read_all(&self, segment: &Segment, t: Nanos) -> bool {
        let server = &self.half[SERVER];
        if !segment.ack.before(server.nxt) || !segment.flags.ack() {
            return true;
        }
        // At a server tap the response may still be on its way when the next request passes.
        let turn = self.turn_of(CLIENT);
        !self.near(CLIENT) && server.outstanding() > 0 && t - server.last_data < turn && {
            let unread = server.nxt.minus(segment.ack).max(0) as u32;
            unread <= server.last_len
        }
    }

    fn open(&mut self, s: usize, segment: &Segment, t: Nanos, parts: &mut Output) {
        let tls =
            s == CLIENT && self.exchanges == 0 && self.setup.is_some() && segment.tls.has(Tls::HANDSHAKE);
        self.note_idle(s, t);
        if tls && self.all_exchanges.count == 0 && self.half[SERVER].counts.bytes == 0 {
            self.open_tls(t, segment);
        } else {
            self.gap_until(s, t, segment.frame, parts);
        }
        let ex = &mut self.ex;
        ex.reset();
        if ex.steps.capacity() == 0 {
            ex.steps = parts.spare_steps();
        }
        ex.active = true;
        ex.in_tls = tls;
        ex.start = t;
        ex.first_frame = segment.frame;
        ex.last = t;
        ex.last_frame = segment.frame;
    }

    /// If this side was idle longer than its retransmission timeout, the kernel cut its congestion window
    /// (tcp_slow_start_after_idle; `tcp_cwnd_restart`): idle counts from the last data it sent.
    pub(crate) fn note_idle(&mut self, s: usize, t: Nanos) {
        let floor = self.rtt_or_zero() + self.profile[s].rto_floor;
        let window = self.profile[s].initial_window;
        let half = &mut self.half[s];
        if half.last_data.0 == i64::MIN || half.outstanding() > 0 && half.recovery.is_some() {
            return;
        }
        if t - half.last_data > floor {
            let initial = window * half.mss.max(1);
            if half.cwnd.estimate > initial {
                half.cwnd.before_idle = half.cwnd.before_idle.max(half.cwnd.estimate);
                half.cwnd.estimate = initial;
            }
        }
    }

    /// Describes the step that ended with this segment.
    pub(crate) fn step(
        &mut self,
        s: usize,
        segment: &Segment,
        t: Nanos,
        arrival: Arrival,
        before: Before,
        missing: u16,
    ) -> Step {
        let start = self.ex.last;
        let last_sender = usize::from(self.ex.last_sender);
        let rtt = self.rtt_or_zero();
        let dt = t - start;
        let mut step = Step {
            start,
            end: t,
            wait: Wait::Burst,
            sender: s as u8,
            cwnd: self.cwnd_state(s),
            burst: Nanos::ZERO,
            bytes: segment.len,
            releases: 1,
            flight: 0,
            ack_delay: Nanos::ZERO,
            loss: None,
            split: false,
            len: segment.len,
            note: 0,
            frames: [self.ex.last_frame, 0, segment.frame],
        };
        // A recovery of whoever spoke last that ended within this step.
        if let Some((kind, until)) = self.handshake.recovered[last_sender] {
            if until > start {
                step.loss = Some((kind, until.min(t)));
            } else {
                self.handshake.recovered[last_sender] = None;
            }
        }
        if last_sender != s {
            self.note_idle(s, t);
            step.cwnd = self.cwnd_state(s);
            step.wait = Wait::Turn;
            // What was held by Nagle across a turn: a small segment out before, this one small, locked to its ACK.
            if let Some(ack) = self.lock(s, segment, t, start, &before).and_then(|l| l.frees) {
                if ack.pure && ack.time > start {
                    let delay = ack.delay.unwrap_or(Nanos::ZERO) - self.turn_of(1 - s);
                    let (frame, delayed) = (ack.frame, delay > delayed_from(rtt));
                    step.wait = Wait::Nagle { delayed };
                    step.ack_delay = delay.floor0();
                    step.frames[1] = frame;
                }
            }
            return step;
        }
        match arrival {
            Arrival::Repeat => {
                let kind = self.repeat_kind(s, segment, t, &before);
                step.wait = Wait::Loss(kind);
                let signs = self.half[s].first_sack.filter(|&f| kind == Repair::Fast && f < t);
                step.loss = signs.map(|f| (kind, f));
                if self.handshake.done && !self.half[s].una.after(self.half[s].base) && s == CLIENT {
                    self.not_taken.0 += 1;
                }
                return step;
            }
            Arrival::Repaired { opened } => {
                let floor = self.profile[s].rto_floor;
                let kind = if dt >= floor { Repair::Timeout } else { Repair::Fast };
                step.wait = Wait::Loss(kind);
                step.loss = Some((kind, opened));
                let half = &mut self.half[s];
                let flight = half.round.1.max(half.round.2);
                half.cwnd.before_loss = half.cwnd.before_loss.max(flight);
                return step;
            }
            _ => {}
        }
        if dt <= burst_within(rtt) {
            // Two partial segments within it: the second did not wait for the first one's ACK, so Nagle is off.
            let half = &mut self.half[s];
            let pair = before.small_end == before.nxt
                && before.small_end.after(half.base)
                && half.is_small(segment.len);
            if pair && half.outstanding() > segment.len && dt < rtt {
                half.nodelay_shown += 1;
            }
            step.bytes = segment.len;
            if self.half[s].recovery.is_some() {
                step.loss = self.half[s].recovery.map(|r| (r.kind, t));
            }
            return step;
        }
        if let Some(recovery) = self.half[s].recovery {
            step.loss = Some((recovery.kind, t));
        } else if !self.half[s].holes.is_empty() && step.loss.is_none() {
            // A hole that is still open; whether it is a loss shows when it is filled.
            step.note = 0;
        }
        if self.half[1 - s].counts.packets == 0 || !self.half[s].edge_known {
            step.wait = Wait::Blind;
            return step;
        }
        // One packet of the sender is missing before this one, which comes when its timer would send it again.
        let timer = rtt + self.profile[s].rto_floor;
        let timed = dt >= timer - timer.part(16) && dt <= timer + timer.part(2);
        if missing == 1 && timed && !self.near(s) && !self.quality.has(Quality::CAPTURE_DROPS) {
            step.wait = Wait::Missing;
            return step;
        }
        self.released_by(s, segment, t, &before, step)
    }

    /// Decides what released new data of the side that had spoken last.
    fn released_by(
        &mut self,
        s: usize,
        segment: &Segment,
        t: Nanos,
        before: &Before,
        mut step: Step,
    ) -> Step {
        let rtt = self.rtt_or_zero();
        let mss = self.half[s].mss.max(1);
        let dt = step.duration();
        if let Some(lock) = self.lock(s, segment, t, step.start, before) {
            step.flight = before.nxt.minus(lock.una_before).max(0) as u32;
            // Both ended by one ACK: the kernel asks for the congestion window first, then the window, then Nagle
            // (`tcp_write_xmit`).
            let cwnd = lock.opens.map_or(0, |a| a.cwnd);
            let by_cwnd = step.cwnd == CwndState::Growing && cwnd > 0 && step.flight + mss >= cwnd;
            let ack = match (lock.opens, lock.frees) {
                (Some(ack), _) if !by_cwnd || ack.window_before < mss => {
                    let update = ack.ack == ack.una_before;
                    step.wait = if update && ack.window_before < mss { Wait::Closed } else { Wait::Window };
                    step.note = ack.window_before;
                    ack
                }
                (_, Some(ack)) => {
                    let delay = ack.delay.map_or(Nanos::ZERO, |d| (d - self.turn_of(1 - s)).floor0());
                    step.wait = Wait::Nagle { delayed: delay > delayed_from(rtt) };
                    step.note = self.half[s].last_len;
                    self.nagle_locks += 1;
                    ack
                }
                _ => {
                    step.wait = Wait::Acked;
                    let cwnd = &mut self.half[s].cwnd;
                    if cwnd.initial == 0 {
                        cwnd.initial = step.flight;
                    }
                    lock.ack
                }
            };
            step.frames[1] = ack.frame;
            step.ack_delay = ack.delay.map_or(Nanos::ZERO, |d| (d - self.turn_of(1 - s)).floor0());
            return step;
        }
        // A writer that has Nagle on cannot have sent this before the ACK came, however late it was written after.
        if self.nagle_locks >= 2 {
            let from = step.start - self.turn_of(s);
            let frees = self.half[s].newest_first().take_while(|a| a.time > from).find(|a| {
                a.time + self.turn_of(s) <= t && self.nagle_shape(s, segment, before, a.una_before, a.ack)
            });
            if let Some(&ack) = frees.filter(|a| (t - self.turn_of(s) - a.time).times(4) <= dt) {
                let delay = ack.delay.map_or(Nanos::ZERO, |d| (d - self.turn_of(1 - s)).floor0());
                step.wait = Wait::Nagle { delayed: delay > delayed_from(rtt) };
                step.note = self.half[s].last_len;
                step.frames[1] = ack.frame;
                step.ack_delay = delay;
                return step;
            }
        }
        let turn = self.turn_of(s);
        let half = &self.half[s];
        let flow_round = half.round.1.max(half.round.2);
        let blind_ring = !half.acks_known_since(t - turn - turn.part(4) - Nanos::millis(1));
        if blind_ring && dt <= rtt + rtt.part(4) {
            // Too many ACKs to know which one it was: a flow within one round trip is clocked by them.
            step.wait = Wait::Acked;
            step.flight = flow_round;
            return step;
        }
        let room = half.edge.minus(before.nxt);
        let outstanding = before.nxt.minus(half.una).max(0) as u32;
        let timer = half.rto(rtt, &self.profile[s]).max(Nanos::millis(200));
        // The timer of a closed window or a cork: max(RTO, 200 ms), up to an eighth late (timer wheel; tcp_probe0_base).
        let at_timer =
            |wait: Nanos| wait >= Nanos::millis(190) && wait <= timer + timer.part(4) + Nanos::millis(16);
        step.note = outstanding;
        let small_window = room > 0 && room < mss as i32 && segment.len as i32 == room;
        if small_window && dt >= Nanos::millis(190) {
            step.wait = Wait::Silly;
            step.note = room as u32;
        } else if outstanding == 0 && half.is_small(segment.len) && at_timer(dt) && !self.near(1 - s) {
            step.wait = Wait::CorkTimer;
            self.cork_timers += 1;
        } else {
            step.wait = Wait::Pause;
            // Writers that wait for buffer space wake a moment after the ACK; the flight tells.
            step.flight = self.recent_flight(s, t, dt, before);
        }
        step.split = s == CLIENT && self.ex.bytes[SERVER] == 0 && dt > self.long_pause(s);
        step
    }

    /// Bytes that were in flight when the last ACK before `t` came in, if that was in the last quarter of the wait.
    fn recent_flight(&self, s: usize, t: Nanos, dt: Nanos, before: &Before) -> u32 {
        let half = &self.half[s];
        let Some(ack) = half.newest_first().find(|a| a.time <= t - self.turn_of(s)) else { return 0 };
        if (t - self.turn_of(s) - ack.time).times(4) > dt {
            return 0;
        }
        before.nxt.minus(ack.una_before).max(0) as u32
    }

    /// The ACKs that this segment may have left with: they passed the tap one reaction time before it, after the
    /// sender had sent its segment before. At the sender's own tap that is within 1 ms (rule 5), or half a round
    /// trip where that is less; elsewhere an eighth of the trip is allowed for jitter.
    fn lock(&self, s: usize, segment: &Segment, t: Nanos, start: Nanos, before: &Before) -> Option<Lock> {
        let turn = self.turn_of(s);
        let early = turn.part(8).max(Nanos::micros(50)).min(turn);
        let near = self.rtt_or_zero().part(2).max(Nanos::micros(100)).min(Nanos::millis(1));
        // After a long wait a busy host may be later; a sixteenth of it is met by chance once in sixteen.
        let late = turn.part(8).max(near).max((t - start).part(16));
        let from = (t - turn - late).max(start - turn + Nanos(1));
        let to = t - turn + early;
        let mss = self.half[s].mss.max(1);
        let needed = segment.len.min(mss) as i32;
        let mut lock: Option<Lock> = None;
        for ack in self.half[s].newest_first().skip_while(|a| a.time > to).take_while(|a| a.time >= from) {
            let room = ack.edge_before.minus(before.nxt);
            let opens = room < needed && ack.edge.minus(before.nxt) >= needed;
            let frees = self.nagle_shape(s, segment, before, ack.una_before, ack.ack);
            let found =
                lock.get_or_insert(Lock { ack: *ack, opens: None, frees: None, una_before: ack.una_before });
            found.una_before = ack.una_before;
            if opens {
                found.opens = Some(*ack);
            }
            if frees {
                found.frees = Some(*ack);
            }
        }
        lock
    }

    /// A partial segment was out, its ACK came, and this one is partial: what Nagle's rule holds. Stacks with the
    /// classic rule hold it for any unacknowledged data.
    fn nagle_shape(&self, s: usize, segment: &Segment, before: &Before, una_before: Seq, ack: Seq) -> bool {
        let mss = self.half[s].mss;
        if mss == 0 || segment.len >= mss || self.half[s].nodelay_shown > 0 {
            return false;
        }
        let out = before.nxt.after(una_before) && ack.after(una_before);
        if self.profile[s].minshall {
            out && before.small_end.after(una_before) && !before.small_end.after(ack)
        } else {
            out && !before.nxt.after(ack)
        }
    }

    fn cwnd_state(&self, s: usize) -> CwndState {
        let cwnd = &self.half[s].cwnd;
        if cwnd.before_loss > 0 {
            CwndState::AfterLoss
        } else if cwnd.before_idle > 0 {
            CwndState::Restarted
        } else {
            CwndState::Growing
        }
    }

    /// Which mechanism repeats unacknowledged data.
    fn repeat_kind(&self, s: usize, segment: &Segment, t: Nanos, before: &Before) -> Repair {
        let half = &self.half[s];
        let rtt = self.rtt_or_zero();
        let end = segment.seq + segment.len;
        let quiet = t - half.last_data;
        let long = quiet >= rtt + self.profile[s].rto_floor.times(7).part(8);
        if let Some(recovery) = half.recovery {
            return if long { Repair::Timeout } else { recovery.kind };
        }
        // A probe sends the last segment again (RFC 8985, 7.3); signs of a later arrival make it a fast repair.
        match half.first_sack {
            Some(_) if !long => Repair::Fast,
            _ if end == before.nxt => Repair::Probe,
            _ if quiet >= Nanos::millis(190) => Repair::Timeout,
            _ if half.first_sack.is_none() && half.dup_acks == 0 && quiet > rtt.part(2) => Repair::Timeout,
            _ => Repair::Fast,
        }
    }

    /// Ends the recording of one exchange.
    pub(crate) fn end_exchange(&mut self, parts: &mut Output) {
        self.finish_exchange(parts, None);
    }
}

/// Less than this between two segments is no wait: system calls, interrupts and a virtual CPU's wake-up take that
/// (measured: 50 to 130 µs for an empty path), and a 64th of a long round trip.
fn burst_within(rtt: Nanos) -> Nanos {
    rtt.part(64).max(Nanos::micros(50))
}

/// The ACKs a segment may have left with, and what they did for it.
#[derive(Clone, Copy, Debug)]
struct Lock {
    /// The latest.
    ack: crate::half::AckEvent,
    /// The earliest that made the window large enough.
    opens: Option<crate::half::AckEvent>,
    /// The earliest that covered the small segment that Nagle's rule waits for.
    frees: Option<crate::half::AckEvent>,
    /// Acknowledged before the earliest of them.
    una_before: Seq,
}

/// What was known of a half before its segment was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) nxt: Seq,
    pub(crate) small_end: Seq,
}

/// What is spoken, where the first bytes say so.
fn protocol_of(segment: &Segment) -> Option<&'static str> {
    let head = &segment.head[..usize::from(segment.head_len).min(8)];
    if !segment.tls.is_none() {
        return Some("tls");
    }
    const HTTP: [&[u8]; 9] =
        [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"HTTP/1.", b"CONNECT "];
    if head.starts_with(b"PRI * HT") {
        Some("http/2")
    } else if HTTP.iter().any(|h| !head.is_empty() && head.starts_with(&h[..h.len().min(8)])) {
        Some("http/1")
    } else if head.starts_with(b"SSH-") {
        Some("ssh")
    } else {
        None
    }
}
