//! What one end has sent, and what the other end has said about it: sequence numbers, windows, holes, ACKs.
//!
//! Takes segments of one connection in capture order; gives, for each, what is new in it. Knows no exchanges.

use crate::copies::Copies;
use crate::profile::Profile;
use crate::rate::{Crowd, Rate};
use crate::scale::Scale;
use tcpwhy_base::{IpId, Nanos, Segment, Seq};

/// An ACK or window update for this half's data, as it passed the tap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckEvent {
    pub(crate) time: Nanos,
    /// Its frame, four times, one more if it carried no data, two more if its sender held data beyond a hole.
    frame_and_bits: u64,
    /// Since the newest data it covers passed the tap; the smallest number where that is not known.
    delay: Nanos,
    /// Acknowledgement number, and what it was before.
    pub(crate) ack: Seq,
    pub(crate) una_before: Seq,
    /// Right edge of the window that it offers, and what it was before.
    pub(crate) edge: Seq,
    pub(crate) edge_before: Seq,
    /// The window last offered before, scaled.
    pub(crate) window_before: u32,
    /// The sender's congestion window before it, as estimated.
    pub(crate) cwnd: u32,
    /// Its time stamp, where whoever got it must have echoed it from then on.
    stamp: Option<u32>,
}

impl AckEvent {
    pub(crate) fn frame(&self) -> u64 {
        self.frame_and_bits >> 2
    }

    /// It carried no data.
    pub(crate) fn pure(&self) -> bool {
        self.frame_and_bits & 1 == 1
    }

    /// Its sender held data beyond a hole, or had just got what filled it: its window and its delay say nothing of who
    /// reads.
    pub(crate) fn at_a_hole(&self) -> bool {
        self.frame_and_bits & 2 == 2
    }

    /// The segment left before this ACK came to its sender: it echoes an older time stamp.
    pub(crate) fn is_later_than(&self, segment: &Segment) -> bool {
        let echo = segment.options.timestamps.map(|t| t.1);
        self.stamp.zip(echo).is_some_and(|(stamp, echo)| (echo.wrapping_sub(stamp) as i32) < 0)
    }

    /// Since the newest data it covers passed the tap.
    pub(crate) fn delay(&self) -> Option<Nanos> {
        (self.delay.0 != i64::MIN).then_some(self.delay)
    }
}

/// Bytes below `nxt` that never passed the tap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    pub(crate) from: Seq,
    pub(crate) to: Seq,
    /// When the first byte beyond it passed.
    pub(crate) opened: Nanos,
}

/// How a loss is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    Fast,
    Timeout,
    Probe,
    Spurious,
    /// Full segments vanish on the path while smaller ones pass.
    BlackHole,
}

/// A loss from its first sign to the ACK that covers the recovery point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub(crate) kind: Repair,
    /// Highest sequence number sent when it began.
    pub(crate) point: Seq,
    /// Last retransmission and its range.
    pub(crate) last: Nanos,
    pub(crate) repeats: u32,
    pub(crate) range: (Seq, Seq),
    /// Wait before the first retransmission.
    pub(crate) first_wait: Nanos,
}

/// What a data segment brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Bytes never seen, in order.
    New,
    /// All bytes passed before and are not acknowledged at this tap.
    Repeat,
    /// All bytes passed before and were acknowledged: the repeat was not needed.
    Needless,
    /// Fills a hole late: a retransmission of what was lost before the tap.
    Repaired { opened: Nanos },
    /// Fills a hole soon: the path changed the order.
    Reordered,
    /// A keep-alive or window probe.
    Probe,
}

/// The size of a message's flight and what is known about the congestion window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cwnd {
    /// Bytes the sender may have in flight, followed by Linux' slow-start rule; a lower bound.
    pub(crate) estimate: u32,
    /// Estimate before the last idle reset, while that is in force.
    pub(crate) before_idle: u32,
    /// Flight when the last loss was found, while the window is below it.
    pub(crate) before_loss: u32,
    /// Most bytes in flight.
    pub(crate) max_flight: u32,
    /// The first flight that waited for an ACK.
    pub(crate) initial: u32,
}

/// One end of a connection, as a sender (and the window it offers as a receiver).
#[derive(Clone, Debug)]
pub(crate) struct Half {
    pub(crate) seen: bool,
    pub(crate) acked: bool,
    /// First sequence number of payload.
    pub(crate) base: Seq,
    /// Highest sequence number seen, and highest acknowledged.
    pub(crate) nxt: Seq,
    pub(crate) una: Seq,
    /// Right edge that the peer offers.
    pub(crate) edge: Seq,
    pub(crate) edge_known: bool,
    /// The peer's window as last said, scaled.
    pub(crate) window: u32,
    /// The largest that was offered, as it stood in the header, before scaling.
    pub(crate) raw_window: u16,
    /// What is known of the scale of the peer's window, where its SYN was not seen.
    pub(crate) scale: Option<Box<Scale>>,
    /// The edge was set without knowing the scale.
    edge_unscaled: bool,
    /// Options of this end's SYN.
    pub(crate) wscale: Option<u8>,
    pub(crate) mss_option: Option<u16>,
    /// Largest payload in one packet on the wire that counts as full.
    pub(crate) mss: u32,
    pub(crate) mss_from_handshake: bool,
    pub(crate) mss_learnt: bool,
    /// Largest payload seen, and whether it was seen twice in a row.
    pub(crate) max_payload: u32,
    /// End of the last segment that was not full (the kernel's snd_sml).
    pub(crate) small_end: Seq,
    /// Last data segment.
    pub(crate) last_data: Nanos,
    pub(crate) last_frame: u64,
    pub(crate) last_len: u32,
    pub(crate) last_psh: bool,
    /// `una` when it passed.
    pub(crate) last_una: Seq,
    /// Recent data segments: end and time.
    send_ends: [Seq; 8],
    send_times: [Nanos; 8],
    sends_at: u8,
    pub(crate) acks: Vec<AckEvent>,
    acks_at: u16,
    pub(crate) holes: Vec<Hole>,
    /// End of the last bytes that filled a hole.
    filled: Option<Seq>,
    pub(crate) recovery: Option<Box<Recovery>>,
    /// The last one that ended: how, and when.
    pub(crate) recovered: Option<(Repair, Nanos)>,
    /// When the flight in progress began, and when `una` last moved.
    pub(crate) flight_start: Nanos,
    pub(crate) last_advance: Nanos,
    /// End of the first full segment, and whether one was ever acknowledged.
    pub(crate) full_end: Option<Seq>,
    pub(crate) full_delivered: bool,
    /// First duplicate ACK or SACK since the last advance.
    pub(crate) first_sack: Option<Nanos>,
    pub(crate) dup_acks: u32,
    pub(crate) cwnd: Cwnd,
    pub(crate) rate: Rate,
    /// Smoothed round trip and variance as this sender sees it (RFC 6298), nanoseconds.
    pub(crate) srtt: i64,
    pub(crate) rttvar: i64,
    pub(crate) last_rtt: i64,
    pub(crate) crowd: Crowd,
    pub(crate) last_rtt_at: Nanos,
    pub(crate) ip_id: IpId,
    pub(crate) ip_id_steps: u8,
    /// Round of one base RTT: start, bytes in it, bytes in the one before.
    pub(crate) round: (Nanos, u32, u32),
    pub(crate) fin: bool,
    /// How often a partial segment followed another unacknowledged one: Nagle's algorithm was off.
    pub(crate) nodelay_shown: u32,
    pub(crate) counts: Counts,
    pub(crate) copies: Copies,
}

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
    pub(crate) syn_repeats: u32,
    pub(crate) duplicates: u32,
    pub(crate) max_window: u32,
    pub(crate) delayed_ack: (i64, i64),
    pub(crate) min_timeout: i64,
}

impl Half {
    pub(crate) fn new() -> Half {
        Half {
            seen: false,
            acked: false,
            base: Seq(0),
            nxt: Seq(0),
            una: Seq(0),
            edge: Seq(0),
            edge_known: false,
            window: 0,
            raw_window: 0,
            scale: None,
            edge_unscaled: false,
            wscale: None,
            mss_option: None,
            mss: 0,
            mss_from_handshake: false,
            mss_learnt: false,
            max_payload: 0,
            small_end: Seq(0),
            last_data: Nanos(i64::MIN),
            last_frame: 0,
            last_len: 0,
            last_psh: false,
            last_una: Seq(0),
            send_ends: [Seq(0); 8],
            send_times: [Nanos(i64::MIN); 8],
            sends_at: 0,
            acks: Vec::new(),
            acks_at: 0,
            holes: Vec::new(),
            filled: None,
            recovery: None,
            recovered: None,
            flight_start: Nanos(i64::MIN),
            last_advance: Nanos(i64::MIN),
            full_end: None,
            full_delivered: false,
            first_sack: None,
            dup_acks: 0,
            cwnd: Cwnd::default(),
            rate: Rate::default(),
            srtt: 0,
            rttvar: 0,
            last_rtt: 0,
            crowd: Crowd::default(),
            last_rtt_at: Nanos(i64::MIN),
            ip_id: None,
            ip_id_steps: 0,
            round: (Nanos(i64::MIN), 0, 0),
            fin: false,
            nodelay_shown: 0,
            counts: Counts::default(),
            copies: Copies::default(),
        }
    }

    /// Starts the sequence space at `seq` (first payload byte) if nothing was known.
    pub(crate) fn start_at(&mut self, seq: Seq) {
        if !self.seen {
            self.seen = true;
            self.base = seq;
            self.nxt = seq;
            self.small_end = seq;
            if !self.acked {
                self.una = seq;
            }
        }
    }

    /// Reads what lies outside the first cache lines.
    pub(crate) fn touch(&self) -> u64 {
        let at = usize::from(self.acks_at);
        let ack = self.acks.get(at).map_or(0, |a| a.time.0 as u64);
        ack ^ self.send_times[0].0 as u64 ^ self.send_times[7].0 as u64 ^ self.copies.touch()
    }

    /// Bytes sent and not acknowledged, as far as the tap saw.
    pub(crate) fn outstanding(&self) -> u32 {
        if self.acked { self.nxt.minus(self.una).max(0) as u32 } else { 0 }
    }

    /// Follows the IP identifier: how many packets of this end are missing between the last one and this one,
    /// if this end counts its packets one by one (Linux does, per connection).
    pub(crate) fn missing_by_ip_id(&mut self, id: IpId) -> u16 {
        let (Some(before), Some(now)) = (self.ip_id, id) else {
            self.ip_id = id.filter(|&i| i != 0);
            return 0;
        };
        if now == 0 {
            return 0;
        }
        let step = now.wrapping_sub(before);
        self.ip_id = Some(now);
        let steady = self.counts_packets();
        match step {
            1 => {
                self.ip_id_steps = self.ip_id_steps.saturating_add(1);
                0
            }
            2..=16 if steady => step - 1,
            _ => {
                self.ip_id_steps = 0;
                0
            }
        }
    }

    /// Its packets are numbered one by one, so that one that is missing shows.
    pub(crate) fn counts_packets(&self) -> bool {
        self.ip_id_steps >= 3
    }

    /// When the data that ends at `end` passed, if it is among the last few segments.
    pub(crate) fn sent_at(&self, end: Seq) -> Option<Nanos> {
        let known = self.send_ends.iter().zip(&self.send_times);
        known.into_iter().find(|s| *s.0 == end && s.1.0 != i64::MIN).map(|s| *s.1)
    }

    /// Takes a data segment. `reorder_within` is the age below which a filled hole is reordering.
    pub(crate) fn on_data(&mut self, segment: &Segment, t: Nanos, reorder_within: Nanos) -> (Arrival, u32) {
        let (seq, end) = (segment.seq, segment.seq + segment.len);
        self.start_at(seq);
        if self.outstanding() == 0 {
            self.flight_start = t;
        }
        if segment.len > 0 && segment.len >= self.mss && self.full_end.is_none() {
            self.full_end = Some(end);
        }
        let closed = self.edge_known && !seq.before(self.edge);
        if segment.len <= 1 && end.at_or_before(self.nxt) && seq == self.nxt - 1 && self.una == self.nxt {
            self.counts.keepalives += 1;
            return (Arrival::Probe, 0);
        }
        if segment.len == 1 && closed && seq == self.nxt {
            // BSD and Windows probe a closed window with one new byte; it counts when it is sent again.
            self.counts.probes += 1;
            return (Arrival::Probe, 0);
        }
        let (arrival, new) = if !seq.before(self.nxt) {
            if seq.after(self.nxt) {
                self.open_hole(self.nxt, seq, t);
            }
            self.nxt = end;
            (Arrival::New, segment.len)
        } else if end.after(self.nxt) {
            let new = end.minus(self.nxt) as u32;
            self.nxt = end;
            self.counts.retransmitted += 1;
            (if seq.before(self.una) && self.acked { Arrival::New } else { Arrival::Repeat }, new)
        } else {
            match self.fill_hole(seq, end) {
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
                    let needless = self.acked && end.at_or_before(self.una);
                    (if needless { Arrival::Needless } else { Arrival::Repeat }, 0)
                }
            }
        };
        self.counts.bytes += u64::from(new);
        if new > 0 {
            self.learn_size(segment.len, segment.flags.psh());
        }
        if arrival == Arrival::New || new > 0 {
            let at = usize::from(self.sends_at & 7);
            self.send_ends[at] = end;
            self.send_times[at] = t;
            self.sends_at = self.sends_at.wrapping_add(1);
        } else if let Some(at) = self.send_ends.iter().position(|&s| s == end) {
            // Karn: a repeated segment gives no round-trip sample.
            self.send_times[at & 7] = Nanos(i64::MIN);
        }
        if self.is_small(segment.len) {
            self.small_end = end;
        }
        (arrival, new)
    }

    /// After the segment was judged: remembers it as the last.
    pub(crate) fn sent(&mut self, segment: &Segment, t: Nanos) {
        self.last_data = t;
        self.last_frame = segment.frame;
        self.last_len = segment.len;
        self.last_psh = segment.flags.psh();
        self.last_una = self.una;
    }

    /// The segment's last packet is smaller than the MSS (super-segments count by their tail).
    pub(crate) fn is_small(&self, len: u32) -> bool {
        self.mss > 0 && len > 0 && !len.is_multiple_of(self.mss)
    }

    /// Two equal payloads in a row that are the largest so far are full segments, whatever the options said:
    /// the path's MTU or further options made them smaller.
    fn learn_size(&mut self, len: u32, push: bool) {
        if len == self.max_payload
            && len == self.last_len
            && !self.last_psh
            && (len < self.mss || self.mss == 0)
        {
            self.mss = len;
            self.mss_learnt = true;
        }
        if len > self.max_payload {
            self.max_payload = len;
            let limit = u32::from(self.mss_option.unwrap_or(u16::MAX));
            if self.mss_from_handshake && len > self.mss && len <= limit {
                // No timestamps after all: the option bytes are payload.
                self.mss = len;
            }
        }
        // Without the handshake: a segment that is not pushed lies within a write, so that it is full (`tcp_push` marks
        // the end of each). More than Ethernet carries may be several that were merged.
        let within = !push && (536..=1_460).contains(&len);
        if !self.mss_from_handshake && within && (!self.mss_learnt || len > self.mss) {
            self.mss = len;
            self.mss_learnt = true;
        }
        if !self.mss_from_handshake && !self.mss_learnt {
            // Without a handshake only this is known: a segment that ends a write may be partial whatever its
            // size, and Ethernet carries at least 1,448 bytes.
            // No link carries a megabyte in one packet; larger lengths are made up.
            self.mss = self.mss.max(len.saturating_add(1)).clamp(1_448, 1 << 20);
        }
    }

    fn open_hole(&mut self, from: Seq, to: Seq, opened: Nanos) {
        // 32 holes are more than any sane reordering; beyond that the oldest is forgotten.
        if self.holes.len() >= 32 {
            self.holes.remove(0);
        }
        self.holes.push(Hole { from, to, opened });
    }

    /// Takes `seq..end` out of the holes: when the hole was opened and how many bytes it filled.
    fn fill_hole(&mut self, seq: Seq, end: Seq) -> Option<(Nanos, u32)> {
        let i = self.holes.iter().position(|h| seq.before(h.to) && h.from.before(end))?;
        let hole = self.holes[i];
        let from = hole.from.max(seq);
        let to = if end.before(hole.to) { end } else { hole.to };
        self.filled = Some(to);
        self.holes.remove(i);
        if to.before(hole.to) {
            self.holes.insert(i, Hole { from: to, ..hole });
        }
        if hole.from.before(from) {
            self.holes.insert(i, Hole { to: from, ..hole });
        }
        Some((hole.opened, to.minus(from).max(0) as u32))
    }

    /// Takes the acknowledgement in a segment of the peer. `horizon` is how far back ACKs must be known; `echoed`: its time
    /// stamp will be echoed by whatever is sent after it came.
    /// Returns the ACK's delay where it can be measured, and whether it covers bytes the capture lost.
    pub(crate) fn on_ack(
        &mut self,
        segment: &Segment,
        t: Nanos,
        shift: Option<u8>,
        horizon: Nanos,
        echoed: bool,
    ) -> AckSeen {
        let mut seen = AckSeen::default();
        let ack = segment.ack;
        if !self.acked {
            self.acked = true;
            if !self.seen {
                self.una = ack;
                self.start_at(ack);
            } else if ack.before(self.base) || ack.after(self.nxt) {
                self.una = ack;
            }
        }
        self.raw_window = self.raw_window.max(segment.window);
        // Without the scale only a closed window is known for what it is.
        let window = match shift {
            Some(shift) => u32::from(segment.window) << shift.min(14),
            None if segment.window == 0 => 0,
            None => 1 << 30,
        };
        let edge = ack + window;
        let hole = !self.holes.is_empty()
            || self.first_sack.is_some()
            || self.recovery.is_some()
            || self.filled.is_some_and(|end| end.after(self.una) && !end.after(ack));
        if self.edge_unscaled && shift.is_some() {
            // The scale has become known.
            self.edge_known = false;
            self.edge_unscaled = false;
        }
        let una_before = self.una;
        let (edge_before, window_before) = (self.edge, self.window);
        let advance = ack.after(self.una);
        if advance {
            seen.advance = ack.minus(self.una) as u32;
            self.una = ack;
            self.last_advance = t;
            if self.full_end.is_some_and(|end| !ack.before(end)) {
                self.full_delivered = true;
            }
            self.dup_acks = 0;
            if let Some(sent) = self.sent_at(ack) {
                seen.delay = Some(t - sent);
            }
            if !self.holes.is_empty() {
                let una = self.una;
                self.holes.retain(|h| {
                    let gone = h.to.at_or_before(una);
                    if gone {
                        seen.lost_by_capture =
                            seen.lost_by_capture.saturating_add(h.to.minus(h.from).max(0) as u32);
                    }
                    !gone
                });
            }
        }
        if ack.after(self.nxt) {
            // Acknowledged but not seen: lost by the capture, unless it still comes (two taps out of order).
            self.open_hole(self.nxt, ack, t);
            self.nxt = ack;
        }
        // A window of nothing ends at the ACK, whatever its scale.
        let shut = shift.is_none() && window == 0 && !ack.before(una_before);
        let update = edge.after(self.edge) || !self.edge_known || shut;
        let pure = segment.len == 0 && !segment.flags.fin();
        let repeat = !advance && ack == self.una && pure && self.edge_known;
        if repeat && window == self.window && self.nxt.after(self.una) {
            self.dup_acks += 1;
            self.first_sack.get_or_insert(t);
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
                self.first_sack.get_or_insert(t);
            }
        }
        if advance && self.first_sack.is_some() && segment.options.sack_len == 0 && self.recovery.is_none() {
            self.first_sack = None;
        }
        if self.seen && (advance || update || window != self.window) {
            self.push_ack(
                AckEvent {
                    time: t,
                    frame_and_bits: segment.frame << 2 | u64::from(hole) << 1 | u64::from(pure),
                    delay: seen.delay.unwrap_or(Nanos(i64::MIN)),
                    ack,
                    una_before,
                    edge,
                    edge_before: if self.edge_known { edge_before } else { edge },
                    window_before: if self.edge_known { window_before } else { window },
                    cwnd: self.cwnd.estimate,
                    stamp: segment.options.timestamps.filter(|_| echoed).map(|t| t.0),
                },
                horizon,
            );
        }
        if update {
            self.edge = edge;
            self.edge_unscaled = shift.is_none();
        }
        self.edge_known = true;
        self.window = window;
        seen
    }

    /// Keeps the last ACKs: four, and as many (up to 256) as the horizon needs.
    fn push_ack(&mut self, event: AckEvent, horizon: Nanos) {
        let n = self.acks.len();
        if n < 4 {
            self.acks.push(event);
            self.acks_at = 0;
            return;
        }
        let at = usize::from(self.acks_at) % n;
        if n < 256 && event.time - self.acks[at].time <= horizon {
            // Unroll the ring before growing it.
            self.acks.rotate_left(at);
            self.acks.push(event);
            self.acks_at = 0;
            return;
        }
        self.acks[at] = event;
        self.acks_at = ((at + 1) % n) as u16;
    }

    /// The known ACKs do not reach back to `time`.
    pub(crate) fn acks_known_since(&self, time: Nanos) -> bool {
        self.acks.len() < 4 || self.newest_first().last().is_none_or(|a| a.time <= time)
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &AckEvent> {
        let at = usize::from(self.acks_at).min(self.acks.len());
        let (a, b) = self.acks.split_at(at);
        a.iter().rev().chain(b.iter().rev())
    }

    /// Takes a round-trip sample of this sender (RFC 6298, 2).
    pub(crate) fn sample_rtt(&mut self, rtt: i64, t: Nanos) {
        if rtt <= 0 {
            return;
        }
        self.last_rtt = rtt;
        self.last_rtt_at = t;
        if self.srtt == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar += ((rtt - self.srtt).abs() - self.rttvar) / 4;
            self.srtt += (rtt - self.srtt) / 8;
        }
    }

    /// The retransmission timeout as the profile's stack would compute it.
    pub(crate) fn rto(&self, base_rtt: Nanos, profile: &Profile) -> Nanos {
        let (srtt, var) = if self.srtt > 0 { (self.srtt, self.rttvar) } else { (base_rtt.0, base_rtt.0 / 2) };
        Nanos(srtt) + Nanos(var).times(4).max(profile.rto_floor)
    }
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSeen {
    pub(crate) advance: u32,
    pub(crate) delay: Option<Nanos>,
    pub(crate) lost_by_capture: u32,
    pub(crate) dsack: Option<(Seq, Seq)>,
}
