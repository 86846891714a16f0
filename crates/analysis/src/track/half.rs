//! One end of a connection as a sender, and what the other end says about it: the only writer of a [`Flow`].
//!
//! Takes segments of one connection in capture order; gives, for each, what is new in it. Knows no exchanges.

use crate::copies::Copies;
use crate::profile::Profile;
use crate::track::acks::{Ack, Acks};
use crate::track::flow::{Flow, Last};
use crate::track::holes::Holes;
use crate::track::numbering::Numbering;
use crate::track::passage::{Arrival, Arrived, Before};
use crate::track::rate::{Crowd, Mark, Rate};
use crate::track::recovery::{Recovered, Recovery, Repair};
use crate::track::scale::Scale;
use tcpwhy_base::{Nanos, Segment, Seq};

/// Counters of one half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) retransmitted: u64,
    pub(crate) zero_windows: u32,
    pub(crate) probes: u32,
    pub(crate) keepalives: u32,
    pub(crate) reordered: u32,
    pub(crate) syn_retransmissions: u32,
    pub(crate) duplicates: u32,
    /// The largest window it offered, scaled where the scale is known.
    pub(crate) max_window: u32,
    /// Least and most that its delayed ACKs were late by.
    pub(crate) delayed_ack: Option<(Nanos, Nanos)>,
    /// The shortest wait before a timer's retransmission.
    pub(crate) min_timeout: Option<Nanos>,
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSeen {
    pub(crate) advance: u32,
    /// Since what it acknowledges had passed, where that is known.
    pub(crate) delay: Option<Nanos>,
    /// Bytes that it acknowledges and the capture lacks.
    pub(crate) lost_by_capture: u32,
    pub(crate) dsack: Option<(Seq, Seq)>,
}

/// How an acknowledgement is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The scale of its window.
    pub(crate) shift: Option<u8>,
    /// How far back ACKs must be known.
    pub(crate) horizon: Nanos,
    /// Its time stamp will be echoed by whatever is sent after it came.
    pub(crate) echoed: bool,
}

/// Where a half is looked at from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// The tap is nearer to this half than to the other.
    pub(crate) near: bool,
    /// A pause longer than this ends a train of packets.
    pub(crate) train_pause: Nanos,
    /// The fastest reaction of the peer, or zero.
    pub(crate) peer_reaction: Nanos,
    /// Base round trip, or zero.
    pub(crate) rtt: Nanos,
}

/// The ends of recent data segments, and when they passed.
#[derive(Clone, Debug)]
struct Sends {
    ends: [Seq; 8],
    /// The smallest number where the slot is empty or its segment was sent twice.
    times: [Nanos; 8],
    at: u8,
}

impl Sends {
    const NONE: Nanos = Nanos(i64::MIN);

    fn push(&mut self, end: Seq, t: Nanos) {
        let at = usize::from(self.at & 7);
        self.ends[at] = end;
        self.times[at] = t;
        self.at = self.at.wrapping_add(1);
    }

    /// Karn: a segment that was sent twice gives no round-trip sample.
    fn sent_twice(&mut self, end: Seq) {
        if let Some(at) = self.ends.iter().position(|&s| s == end) {
            self.times[at & 7] = Sends::NONE;
        }
    }

    /// When the data that ends at `end` passed, if it is among the last few segments.
    fn time_of(&self, end: Seq) -> Option<Nanos> {
        let mut known = self.ends.iter().zip(&self.times);
        known.find(|s| *s.0 == end && *s.1 != Sends::NONE).map(|s| *s.1)
    }
}

/// State of one end.
#[derive(Clone, Debug)]
pub(crate) struct Half {
    flow: Flow,
    counts: Counts,
    acks: Acks,
    holes: Holes,
    sends: Sends,
    /// What is known of the scale of the peer's window, where its SYN was not seen.
    scale: Option<Box<Scale>>,
    /// The edge was set without knowing the scale.
    edge_unscaled: bool,
    /// Options of this end's SYN.
    wscale: Option<u8>,
    mss_option: Option<u16>,
    mss_from_handshake: bool,
    mss_learnt: bool,
    max_payload: u32,
    /// End of the first full segment, and whether one was ever acknowledged.
    full_end: Option<Seq>,
    full_delivered: bool,
    rate: Rate,
    crowd: Crowd,
    numbering: Numbering,
    copies: Copies,
    /// When its first FIN passed.
    fin: Option<Nanos>,
}

impl Default for Half {
    fn default() -> Half {
        Half {
            flow: Flow::default(),
            counts: Counts::default(),
            acks: Acks::default(),
            holes: Holes::default(),
            sends: Sends { ends: [Seq(0); 8], times: [Sends::NONE; 8], at: 0 },
            scale: None,
            edge_unscaled: false,
            wscale: None,
            mss_option: None,
            mss_from_handshake: false,
            mss_learnt: false,
            max_payload: 0,
            full_end: None,
            full_delivered: false,
            rate: Rate::default(),
            crowd: Crowd::default(),
            numbering: Numbering::default(),
            copies: Copies::default(),
            fin: None,
        }
    }
}

/// What others may ask.
impl Half {
    #[inline]
    pub(crate) fn flow(&self) -> &Flow {
        &self.flow
    }

    #[inline]
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    #[inline]
    pub(crate) fn acks(&self) -> &Acks {
        &self.acks
    }

    pub(crate) fn fin(&self) -> Option<Nanos> {
        self.fin
    }

    pub(crate) fn wscale(&self) -> Option<u8> {
        self.wscale
    }

    pub(crate) fn mss_option(&self) -> Option<u16> {
        self.mss_option
    }

    pub(crate) fn scale(&self) -> Option<&Scale> {
        self.scale.as_deref()
    }

    /// The round trip that a queue makes longer, zero where not known.
    pub(crate) fn crowded_rtt(&self) -> Nanos {
        self.crowd.rtt()
    }

    /// The bottleneck's rate, bits per second.
    pub(crate) fn rate(&mut self) -> Option<f64> {
        self.rate.estimate()
    }

    /// Some of its bytes did not pass the tap when their turn was.
    pub(crate) fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Bytes were acknowledged that the capture lacks.
    pub(crate) fn has_unseen_bytes(&self) -> bool {
        self.flow.acked && self.holes.any_acknowledged(self.flow.una)
    }

    /// Reads a little of each cache line that a segment will need, so that they are fetched together.
    pub(crate) fn touch(&self) -> u64 {
        u64::from(self.flow.nxt.0)
            ^ self.counts.packets
            ^ u64::from(self.max_payload)
            ^ u64::from(self.flow.cwnd.estimate)
            ^ self.rate.touch()
            ^ self.acks.touch()
            ^ self.sends.times[0].0 as u64
            ^ self.sends.times[7].0 as u64
            ^ self.copies.touch()
    }
}

/// Opening and closing.
impl Half {
    /// Starts the sequence space at `seq` (first payload byte) if nothing was known.
    pub(crate) fn start_at(&mut self, seq: Seq) {
        let flow = &mut self.flow;
        if !flow.seen {
            flow.seen = true;
            flow.base = seq;
            flow.nxt = seq;
            flow.small_end = seq;
            if !flow.acked {
                flow.una = seq;
            }
        }
    }

    /// Its SYN (or SYN-ACK) passed. `true` if it was the first.
    pub(crate) fn syn(&mut self, segment: &Segment) -> bool {
        let first = self.mss_option.is_none() && self.wscale.is_none();
        if first {
            self.wscale = segment.options.wscale.map(|w| w.min(14));
            self.mss_option = segment.options.mss;
        }
        self.start_at(segment.seq + 1);
        first
    }

    /// It was not the first SYN.
    pub(crate) fn syn_again(&mut self) {
        self.counts.syn_retransmissions += 1;
        self.counts.retransmitted += 1;
    }

    /// Payload came with the SYN.
    pub(crate) fn syn_data(&mut self, segment: &Segment) {
        self.flow.nxt = segment.seq + 1 + segment.len;
        self.counts.bytes += u64::from(segment.len);
    }

    /// The peer's SYN-ACK acknowledges its SYN; `on_syn` is the payload that came with that. Gives what of it counts.
    pub(crate) fn syn_acknowledged(&mut self, segment: &Segment, on_syn: u64) -> u64 {
        self.start_at(segment.ack);
        let flow = &mut self.flow;
        flow.acked = true;
        let mut kept = on_syn;
        if segment.ack.before(flow.nxt) && on_syn > 0 {
            // The server did not take the data on the SYN; the client sends it again.
            self.counts.bytes -= on_syn.min(self.counts.bytes);
            kept = 0;
            flow.nxt = segment.ack;
            flow.small_end = segment.ack;
        }
        flow.una = segment.ack;
        flow.edge = segment.ack + u32::from(segment.window);
        flow.edge_known = true;
        flow.window = u32::from(segment.window);
        kept
    }

    /// The handshake says how much a full segment holds.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        if self.flow.mss == 0 {
            self.flow.mss = mss;
            self.mss_from_handshake = true;
        }
    }

    /// A reset's window says nothing, its acknowledgement does.
    pub(crate) fn reset_acknowledges(&mut self, ack: Seq) {
        let flow = &mut self.flow;
        if flow.acked && ack.after(flow.una) && !ack.after(flow.nxt) {
            flow.una = ack;
        }
    }

    /// Its FIN passed.
    pub(crate) fn closes(&mut self, segment: &Segment, t: Nanos) {
        if self.fin.is_some() && segment.len == 0 {
            self.counts.retransmitted += 1;
        }
        self.fin.get_or_insert(t);
        let flow = &mut self.flow;
        if flow.seen && segment.seq + segment.len == flow.nxt {
            flow.nxt = flow.nxt + 1;
        }
    }
}

/// Packets, whatever they carry.
impl Half {
    /// A packet passed. `true`: it is a duplicate of one that passed just before.
    pub(crate) fn packet(&mut self, segment: &Segment, since_last: Nanos) -> bool {
        self.counts.packets += 1;
        let duplicate = self.copies.is_copy(segment, since_last);
        self.counts.duplicates += u32::from(duplicate);
        duplicate
    }

    /// How many packets are missing before this one, by the sender's numbers.
    pub(crate) fn missing_before(&mut self, segment: &Segment) -> u16 {
        let missing = self.numbering.missing(segment.ip_id);
        self.flow.numbered = self.numbering.is_steady();
        missing
    }

    /// It offers this window, bytes.
    pub(crate) fn offers(&mut self, window: u32) {
        self.counts.max_window = self.counts.max_window.max(window);
    }

    /// It offers nothing.
    pub(crate) fn closes_window(&mut self) {
        self.counts.zero_windows += 1;
    }

    /// A probe: no payload, one below the next sequence number, towards a closed window (Linux tcp_xmit_probe_skb).
    pub(crate) fn note_probe(&mut self, segment: &Segment) {
        let flow = &self.flow;
        if segment.len == 0 && flow.seen && segment.seq == flow.nxt - 1 && !segment.flags.fin() {
            if flow.edge_known && flow.edge.minus(flow.nxt) < flow.mss.max(1) as i32 {
                self.counts.probes += 1;
            } else {
                self.counts.keepalives += 1;
            }
        }
    }

    /// Its ACK came so much later than its fastest one: that is a habit.
    pub(crate) fn delays_acks(&mut self, by: Nanos) {
        let (least, most) = self.counts.delayed_ack.unwrap_or((by, by));
        self.counts.delayed_ack = Some((least.min(by), most.max(by)));
    }

    /// The peer's window moved, whose scale is not known.
    pub(crate) fn unscaled_window(&mut self, segment: &Segment) {
        self.scale.get_or_insert_with(|| Box::new(Scale::new())).offered(segment.ack, segment.window);
    }

    /// A round-trip sample of this sender.
    pub(crate) fn sample_rtt(&mut self, rtt: Nanos, t: Nanos) {
        self.flow.rtt.take(rtt, t);
    }
}

/// Its data.
impl Half {
    /// Takes a data segment. `reorder_within` is the age below which a filled hole is reordering.
    pub(crate) fn on_data(&mut self, segment: &Segment, t: Nanos, reorder_within: Nanos) -> Arrived {
        let (seq, end) = (segment.seq, segment.seq + segment.len);
        let before = Before { nxt: self.flow.nxt, small_end: self.flow.small_end };
        if let Some(scale) = &mut self.scale {
            scale.sent(end);
        }
        self.start_at(seq);
        let flow = &mut self.flow;
        if flow.outstanding() == 0 {
            flow.flight_start = Some(t);
        }
        if segment.len > 0 && segment.len >= flow.mss && self.full_end.is_none() {
            self.full_end = Some(end);
        }
        let probe = Arrived { arrival: Arrival::Probe, new: 0, before };
        let shut = flow.edge_known && !seq.before(flow.edge);
        if segment.len <= 1 && end.at_or_before(flow.nxt) && seq == flow.nxt - 1 && flow.una == flow.nxt {
            self.counts.keepalives += 1;
            return probe;
        }
        if segment.len == 1 && shut && seq == flow.nxt {
            // BSD and Windows probe a closed window with one new byte; it counts when it is sent again.
            self.counts.probes += 1;
            return probe;
        }
        let (arrival, new) = self.arrival(seq, end, t, reorder_within);
        self.counts.bytes += u64::from(new);
        if new > 0 {
            self.learn_size(segment.len, segment.flags.psh());
        }
        if arrival == Arrival::New || new > 0 {
            self.sends.push(end, t);
        } else {
            self.sends.sent_twice(end);
        }
        if self.flow.is_small(segment.len) {
            self.flow.small_end = end;
        }
        Arrived { arrival, new, before }
    }

    /// Where `seq..end` stands among what has passed, and how much of it is new.
    fn arrival(&mut self, seq: Seq, end: Seq, t: Nanos, reorder_within: Nanos) -> (Arrival, u32) {
        let flow = &mut self.flow;
        if !seq.before(flow.nxt) {
            if seq.after(flow.nxt) {
                self.holes.open(flow.nxt, seq, t);
            }
            let new = end.minus(seq) as u32;
            flow.nxt = end;
            return (Arrival::New, new);
        }
        if end.after(flow.nxt) {
            let new = end.minus(flow.nxt) as u32;
            flow.nxt = end;
            self.counts.retransmitted += 1;
            let known = flow.acked && seq.before(flow.una);
            return (if known { Arrival::New } else { Arrival::Retransmission }, new);
        }
        match self.holes.fill(seq, end) {
            Some((opened, filled)) if t - opened < reorder_within => {
                self.counts.reordered += 1;
                (Arrival::Reordered, filled)
            }
            Some((opened, filled)) => {
                self.counts.retransmitted += 1;
                (Arrival::Repaired { opened }, filled)
            }
            None => {
                self.counts.retransmitted += 1;
                let spurious = flow.acked && end.at_or_before(flow.una);
                (if spurious { Arrival::Spurious } else { Arrival::Retransmission }, 0)
            }
        }
    }

    /// New bytes passed: what they say of the rate and of the flight.
    pub(crate) fn on_new_bytes(&mut self, segment: &Segment, t: Nanos, view: &View) {
        if view.near {
            self.crowd.asked(Mark::End(segment.seq + segment.len), t);
        } else {
            self.crowd.answered(segment, t, self.flow.mss);
            self.rate.pass(t, segment.len, view.train_pause);
        }
        self.flow.round.pass(t, segment.len, view.rtt.max(Nanos::micros(50)));
    }

    /// After the segment was judged: remembers it as the last.
    pub(crate) fn sent(&mut self, segment: &Segment, t: Nanos) {
        let flow = &mut self.flow;
        flow.cwnd.max_flight = flow.cwnd.max_flight.max(flow.outstanding());
        flow.last = Some(Last::of(segment, t, flow.una));
    }

    /// It begins to send again. If it was idle longer than its retransmission timeout, the kernel cut its congestion
    /// window (tcp_slow_start_after_idle; `tcp_cwnd_restart`): idle counts from the last data it sent.
    pub(crate) fn resumes(&mut self, t: Nanos, rtt: Nanos, profile: &Profile) {
        let flow = &mut self.flow;
        let Some(last) = flow.last else { return };
        if flow.outstanding() > 0 && flow.recovery.is_some() {
            return;
        }
        if t - last.time > rtt + profile.rto_floor {
            flow.cwnd.idle(profile.initial_window * flow.mss.max(1));
        }
    }

    /// The first flight that waited for an ACK had so many bytes.
    pub(crate) fn first_flight(&mut self, bytes: u32) {
        if self.flow.cwnd.initial == 0 {
            self.flow.cwnd.initial = bytes;
        }
    }

    /// A loss before the tap was repaired.
    pub(crate) fn lost_before_tap(&mut self) {
        let flight = self.flow.flight_by_rounds();
        self.flow.cwnd.lost_before_tap(flight);
    }

    /// It sent data again, to repair a loss in this way. Gives another name for the losses so far, where this tells.
    pub(crate) fn retransmits(
        &mut self,
        segment: &Segment,
        t: Nanos,
        kind: Repair,
        opened: bool,
    ) -> Option<Repair> {
        let flow = &mut self.flow;
        let wait = flow.quiet_at(t);
        if matches!(kind, Repair::Timeout | Repair::Probe) && flow.recovery.is_none() && wait > Nanos::ZERO {
            let shortest = self.counts.min_timeout.get_or_insert(wait);
            *shortest = (*shortest).min(wait);
        }
        let range = (segment.seq, segment.seq + segment.len);
        let small_ones_pass = flow.una.after(flow.base) || flow.acked && opened;
        let full = segment.len >= flow.mss && !self.full_delivered;
        if let Some(recovery) = flow.recovery.as_mut() {
            return recovery.again(kind, t, range, full && small_ones_pass);
        }
        flow.recovery = Some(Box::new(Recovery::new(kind, flow.nxt, t, range, wait)));
        if kind != Repair::Probe {
            let flight = flow.outstanding().max(flow.flight_by_rounds());
            flow.cwnd.lost(flight);
        }
        None
    }

    /// Two equal payloads in a row that are the largest so far are full segments, whatever the options said:
    /// the path's MTU or further options made them smaller.
    fn learn_size(&mut self, len: u32, push: bool) {
        let flow = &mut self.flow;
        let twice = flow.last.is_some_and(|l| l.len == len && !l.psh);
        if len == self.max_payload && twice && (len < flow.mss || flow.mss == 0) {
            flow.mss = len;
            self.mss_learnt = true;
        }
        if len > self.max_payload {
            self.max_payload = len;
            let limit = u32::from(self.mss_option.unwrap_or(u16::MAX));
            if self.mss_from_handshake && len > flow.mss && len <= limit {
                // No timestamps after all: the option bytes are payload.
                flow.mss = len;
            }
        }
        // Without the handshake: a segment that is not pushed lies within a write, so that it is full (`tcp_push` marks
        // the end of each). More than Ethernet carries may be several that were merged.
        let within = !push && (536..=1_460).contains(&len);
        if !self.mss_from_handshake && within && (!self.mss_learnt || len > flow.mss) {
            flow.mss = len;
            self.mss_learnt = true;
        }
        if !self.mss_from_handshake && !self.mss_learnt {
            // Without a handshake only this is known: a segment that ends a write may be partial whatever its
            // size, and Ethernet carries at least 1,448 bytes.
            // No link carries a megabyte in one packet; larger lengths are made up.
            flow.mss = flow.mss.max(len.saturating_add(1)).clamp(1_448, 1 << 20);
        }
    }
}

/// What the peer says of its data.
impl Half {
    /// Takes the acknowledgement in a segment of the peer.
    pub(crate) fn on_ack(&mut self, segment: &Segment, t: Nanos, reading: &Reading) -> AckSeen {
        let mut seen = AckSeen::default();
        let ack = segment.ack;
        if !self.flow.acked {
            self.first_ack(ack);
        }
        let shift = reading.shift;
        let flow = &mut self.flow;
        flow.raw_window = flow.raw_window.max(segment.window);
        // Without the scale only a closed window is known for what it is.
        let window = match shift {
            Some(shift) => u32::from(segment.window) << shift.min(14),
            None if segment.window == 0 => 0,
            None => 1 << 30,
        };
        let edge = ack + window;
        let hole = !self.holes.is_empty()
            || flow.first_sack.is_some()
            || flow.recovery.is_some()
            || self.holes.filled_within(flow.una, ack);
        if self.edge_unscaled && shift.is_some() {
            // The scale has become known.
            flow.edge_known = false;
            self.edge_unscaled = false;
        }
        let una_before = flow.una;
        let (edge_before, window_before) = (flow.edge, flow.window);
        let advance = ack.after(flow.una);
        if advance {
            self.advance(ack, t, &mut seen);
        }
        let flow = &mut self.flow;
        if ack.after(flow.nxt) {
            // Acknowledged but not seen: lost by the capture, unless it still comes (two taps out of order).
            self.holes.open(flow.nxt, ack, t);
            flow.nxt = ack;
        }
        // A window of nothing ends at the ACK, whatever its scale.
        let shut = shift.is_none() && window == 0 && !ack.before(una_before);
        let update = edge.after(flow.edge) || !flow.edge_known || shut;
        let pure = segment.len == 0 && !segment.flags.fin();
        self.signs_of_loss(segment, t, advance, pure && window == window_before, &mut seen);
        let flow = &mut self.flow;
        if flow.seen && (advance || update || window != flow.window) {
            let mut event = Ack::new(t, segment.frame, pure, hole, seen.delay);
            event.ack = ack;
            event.una_before = una_before;
            event.edge = edge;
            event.edge_before = if flow.edge_known { edge_before } else { edge };
            event.window_before = if flow.edge_known { window_before } else { window };
            event.cwnd = flow.cwnd.estimate;
            event.stamp = segment.options.timestamps.filter(|_| reading.echoed).map(|t| t.0);
            self.acks.push(event, reading.horizon);
        }
        if update {
            flow.edge = edge;
            self.edge_unscaled = shift.is_none();
        }
        flow.edge_known = true;
        flow.window = window;
        seen
    }

    fn first_ack(&mut self, ack: Seq) {
        let flow = &mut self.flow;
        flow.acked = true;
        if !flow.seen {
            flow.una = ack;
            self.start_at(ack);
        } else if ack.before(flow.base) || ack.after(flow.nxt) {
            flow.una = ack;
        }
    }

    fn advance(&mut self, ack: Seq, t: Nanos, seen: &mut AckSeen) {
        let flow = &mut self.flow;
        seen.advance = ack.minus(flow.una) as u32;
        flow.una = ack;
        flow.last_advance = Some(t);
        if self.full_end.is_some_and(|end| !ack.before(end)) {
            self.full_delivered = true;
        }
        flow.dup_acks = 0;
        if let Some(sent) = self.sends.time_of(ack) {
            seen.delay = Some(t - sent);
        }
        if !self.holes.is_empty() {
            seen.lost_by_capture = self.holes.acknowledged(ack);
        }
    }

    /// Duplicate ACKs and SACK blocks: what came beyond a hole, and what came twice. `plain`: neither payload nor another
    /// window.
    fn signs_of_loss(&mut self, segment: &Segment, t: Nanos, advance: bool, plain: bool, seen: &mut AckSeen) {
        let flow = &mut self.flow;
        let ack = segment.ack;
        if plain && !advance && ack == flow.una && flow.edge_known && flow.nxt.after(flow.una) {
            flow.dup_acks += 1;
            flow.first_sack.get_or_insert(t);
        }
        if segment.options.sack_len > 0 {
            let (left, right) = segment.options.sack[0];
            let below = left.before(ack);
            let inside = segment.options.sack_len > 1 && {
                let (l2, r2) = segment.options.sack[1];
                l2.at_or_before(left) && right.at_or_before(r2)
            };
            if below || inside {
                seen.dsack = Some((left, right));
            } else {
                flow.first_sack.get_or_insert(t);
            }
        } else if advance && flow.recovery.is_none() {
            flow.first_sack = None;
        }
    }

    /// A duplicate was reported: the retransmission of that range was spurious. Gives its length if no recovery goes on.
    pub(crate) fn on_dsack(&mut self, left: Seq, right: Seq) -> Option<u32> {
        match self.flow.recovery.as_deref_mut() {
            Some(recovery) => {
                recovery.reported(left, right);
                None
            }
            None => Some(right.minus(left).max(0) as u32),
        }
    }

    /// An ACK for `advance` bytes more: the rate and the windows that it tells of. `stamp` is its sender's time stamp.
    pub(crate) fn after_advance(
        &mut self,
        advance: u32,
        t: Nanos,
        stamp: Option<u32>,
        initial: u32,
        view: &View,
    ) {
        let flow = &mut self.flow;
        let in_flight = flow.outstanding() + advance;
        if view.near {
            self.crowd.acknowledged(flow.una, t, in_flight, flow.mss);
            self.rate.pass(t, advance, view.train_pause);
        } else if let Some(stamp) = stamp {
            self.crowd.asked(Mark::Stamp(stamp), t);
        }
        let flight = if view.near { in_flight } else { in_flight.max(flow.flight_by_rounds()) };
        let initial = initial * flow.mss.max(1);
        flow.cwnd.acknowledged(advance, flight, initial, flow.recovery.is_some());
    }

    /// What the acknowledgement of more bytes says of a recovery: another name for its losses, and whether it is over.
    pub(crate) fn recovers(&mut self, t: Nanos, reaction: Nanos) -> (Option<Repair>, Option<Recovered>) {
        let flow = &mut self.flow;
        let Some(recovery) = flow.recovery.as_mut() else { return (None, None) };
        let renamed = recovery.came_through(flow.una, flow.mss);
        let ended = recovery.ended(flow.una, t, flow.first_sack.is_some(), reaction);
        if ended.is_some() {
            flow.recovery = None;
            flow.first_sack = None;
        }
        (renamed, ended)
    }
}
