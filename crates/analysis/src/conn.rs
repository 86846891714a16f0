//! One connection while it lives: takes its segments in order, keeps both halves and the exchange that goes on.

use crate::budget::Budget;
use crate::exchange::{MAX_STEPS, Recorder};
use crate::findings::Rollups;
use crate::half::{AckSeen, Arrival, Half, Repair};
use crate::output::Output;
use crate::profile::{Profile, delayed_from};
use crate::rate::Mark;
use crate::release::Before;
use crate::result::{Closed, Omitted, Quality, Setup, Vantage};
use crate::scale::Scale;
use crate::setup::Handshake;
use crate::step::{Step, Wait};
use tcpwhy_base::{Endpoint, Nanos, Segment, TcpFlags, Tls};

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
    pub(crate) corks: Option<(u32, Nanos)>,
    /// Some segment was no reset.
    not_only_resets: bool,
    pub(crate) nagle_locks: u32,
    pub(crate) time_went_back: u32,
    pub(crate) rst_from: Option<u8>,
    /// Turns that took no longer than the path: round trips in series.
    pub(crate) quick_turns: u32,
    pub(crate) last_response_end: Nanos,
    /// Bytes of the last response, and how often in a row it was as many after a few bytes of the client.
    pub(crate) refills: (u64, u32),
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
            corks: None,
            not_only_resets: false,
            nagle_locks: 0,
            time_went_back: 0,
            rst_from: None,
            quick_turns: 0,
            last_response_end: Nanos(i64::MIN),
            refills: (0, 0),
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

    /// It was seen to close. Of one that consists of resets alone neither its begin nor its end was seen.
    pub(crate) fn lingers(&self) -> bool {
        self.closed != Closed::Open && self.not_only_resets
    }

    /// The segment belongs here: neither does it begin another connection, nor did this one close so long ago that
    /// nothing of it can still be on its way.
    pub(crate) fn goes_on_with(&self, segment: &Segment, linger: Nanos) -> bool {
        let gone = self.lingers() && segment.time > self.now + linger;
        !gone && !self.is_reused_by(segment)
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
        if self.half[s].copies.is_copy(segment, since) {
            self.half[s].counts.duplicates += 1;
            self.quality.set(Quality::DUPLICATES);
            return;
        }
        self.not_only_resets |= !segment.flags.rst();
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
            if self.setup.is_none() && s == CLIENT && self.handshake.syn_ack_seen && !segment.flags.syn() {
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
            self.handshake.note().refused = Some((t, segment.frame));
        } else if segment.flags.ack() {
            // Its window says nothing, its acknowledgement does.
            let sent = &mut self.half[1 - s];
            if sent.acked && segment.ack.after(sent.una) && !segment.ack.after(sent.nxt) {
                sent.una = segment.ack;
            }
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
        let horizon = self.turn_of(d) + self.turn_of(d).part(4) + Nanos::millis(2);
        if segment.window == 0 && !segment.flags.fin() {
            self.half[s].counts.zero_windows += 1;
        }
        if !self.scale_known() {
            self.half[d]
                .scale
                .get_or_insert_with(|| Box::new(Scale::new()))
                .offered(segment.ack, segment.window);
        }
        let shift = self.window_shift(s);
        if let Some(shift) = shift {
            let advertised = u32::from(segment.window) << shift;
            self.half[s].counts.max_window = self.half[s].counts.max_window.max(advertised);
        }
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
        // A stamp is kept for the echo if its segment begins at or below the last ACK sent (RFC 7323, 4.3); with data of
        // `s` still unacknowledged that need not be so.
        let echoed = self.half[s].acked && segment.seq.at_or_before(self.half[s].una);
        let AckSeen { advance, delay, lost_by_capture, dsack } =
            self.half[d].on_ack(segment, t, shift, horizon, echoed);
        if lost_by_capture > 1 {
            let other_direction = self.half[d].counts.packets > 0;
            self.quality.set(if other_direction { Quality::CAPTURE_DROPS } else { Quality::ONE_SIDED });
        }
        if let Some(delay) = delay {
            let segment_is_answer = self.half[d].holes.is_empty();
            if segment_is_answer && delay < self.turn[s] {
                self.turn[s] = delay.max(Nanos(1));
            }
            self.half[d].sample_rtt((delay + self.turn_of(d)).0, t);
            if segment.len == 0 && self.turn[s] != UNKNOWN {
                let excess = delay - self.turn[s];
                // More than half a second is no delayed ACK (RFC 9293, 3.8.6.3).
                if excess > delayed_from(self.rtt_or_zero()) && excess <= Nanos::millis(500) {
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
            self.after_advance(d, advance, t, segment.options.timestamps);
        }
    }

    fn after_advance(&mut self, d: usize, advance: u32, t: Nanos, timestamps: Option<(u32, u32)>) {
        let near = self.near(d);
        let pause = self.train_pause(d);
        let turn = self.turn_of(1 - d);
        let half = &mut self.half[d];
        if near {
            half.crowd.acknowledged(half.una, t, half.outstanding() + advance, half.mss);
            half.rate.pass(t, advance, pause);
        } else if let Some((value, _)) = timestamps {
            half.crowd.asked(Mark::Stamp(value), t);
        }
        let mut flight_before = half.outstanding() + advance;
        if !near {
            flight_before = flight_before.max(half.round.1).max(half.round.2);
        }
        if half.cwnd.estimate == 0 {
            half.cwnd.estimate = self.profile[d].initial_window * half.mss.max(1);
        }
        // What this ACK releases waited for the window as it was before.
        if half.cwnd.before_idle > 0 && half.cwnd.estimate >= half.cwnd.before_idle {
            half.cwnd.before_idle = 0;
        }
        // Linux grows the window in slow start while more than half of it is in use (tcp_is_cwnd_limited).
        // After an idle time only what flew shows how far it has grown back.
        if half.cwnd.before_loss == 0 && half.cwnd.before_idle == 0 && flight_before >= half.cwnd.estimate / 2
        {
            half.cwnd.estimate = half.cwnd.estimate.saturating_add(advance);
        }
        // What flies is allowed, whatever the window grows by after a loss.
        if half.recovery.is_none() {
            half.cwnd.estimate = half.cwnd.estimate.max(flight_before);
        }
        let Some(recovery) = half.recovery.as_mut() else { return };
        let repeated = recovery.range.1.minus(recovery.range.0).max(0) as u32;
        if recovery.kind == Repair::BlackHole && repeated >= half.mss && !half.una.before(recovery.range.1) {
            // A full segment came through after all: the path was gone for all sizes.
            recovery.kind = Repair::Timeout;
            self.ex.rename_losses(d, Repair::Timeout);
        }
        let recovery = **recovery;
        // After one timer repeat, with no sign of a later arrival before it, data that was never repeated is
        // acknowledged: the first copies had all arrived (F-RTO, RFC 5682).
        let one = recovery.repeats == 1 && matches!(recovery.kind, Repair::Timeout | Repair::Probe);
        let arrived = one && half.first_sack.is_none() && half.una.after(recovery.range.1);
        if arrived || !half.una.before(recovery.point) {
            half.recovery = None;
            half.first_sack = None;
            // An ACK sooner after the repeat than the far end can answer was for the original (Eifel, RFC 3522).
            let early = recovery.repeats == 1 && t - recovery.last < turn.part(2);
            let needless = arrived || early || recovery.kind == Repair::Spurious;
            let kind = if needless { Repair::Spurious } else { recovery.kind };
            // A probe that repeats the last segment had nothing newer to send (RFC 8985, 7.3).
            let last_segment = recovery.range.1 == recovery.point;
            self.mark_recovered(d, kind, t, needless, last_segment);
        }
    }

    /// A pause longer than this ends a train of packets of one direction. Where a queue makes the round trip longer, four
    /// segments and more that are in flight all the time follow each other within a quarter of it. Else a train is over
    /// before a delayed ACK can come (40 ms, less a tenth): it is no pace of the link.
    fn train_pause(&self, d: usize) -> Nanos {
        match self.rtt() {
            Some(rtt) if self.half[d].crowd.trip >= rtt.times(3).part(2) => {
                self.half[d].crowd.trip.part(4).max(Nanos::micros(200))
            }
            Some(rtt) => rtt.part(4).clamp(Nanos::micros(200), Nanos::millis(36)),
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
        if let Some(scale) = &mut half.scale {
            scale.sent(segment.seq + segment.len);
        }
        let (arrival, new) = half.on_data(segment, t, reorder_within);
        if half.mss > 0 && segment.len > half.mss {
            self.quality.set(Quality::OFFLOAD);
        }
        if matches!(arrival, Arrival::Probe) {
            return;
        }
        if arrival == Arrival::Needless && !self.near(s) {
            // The sender repeated what had arrived: it had waited for its timer while the path stood still.
            self.ex.stalled(s, self.profile[s].rto_floor);
        }
        if self.setup.is_none() {
            self.close_silent_setup(t);
        }
        if new > 0 {
            let pause = self.train_pause(s);
            let near_receiver = !self.near(s);
            let half = &mut self.half[s];
            if near_receiver {
                half.crowd.answered(segment, t, half.mss);
                half.rate.pass(t, segment.len, pause);
            } else {
                half.crowd.asked(Mark::End(segment.seq + segment.len), t);
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

    /// A pause longer than this splits a one-way transfer (rule 9).
    pub(crate) fn long_pause(&self, s: usize) -> Nanos {
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
        if self.ex.active && self.ex.in_tls {
            if self.tls_ends(s, segment) {
                self.end_tls(t, segment, parts);
            }
        } else if self.ex.active && new > 0 {
            let next_request = s == CLIENT && self.ex.bytes[SERVER] > 0 && self.has_read_all(segment, t);
            let next_push =
                s == SERVER && self.ex.bytes[CLIENT] == 0 && t - self.ex.last > self.long_pause(s);
            if next_request || next_push {
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
        if ex.bytes == [0, 0] {
            ex.first_bytes = u64::from(new);
        }
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
        ex.message = t;
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

    /// Ends the recording of one exchange.
    pub(crate) fn end_exchange(&mut self, parts: &mut Output) {
        self.finish_exchange(parts, None);
    }
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
