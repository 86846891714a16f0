//! One end of a connection as a sender, and what the other end says about it: the only writer of a [`Flow`].
//!
//! Takes segments of one connection in capture order; gives, for each, what is new in it. Knows no exchanges.

mod calm;
mod heard;
mod never;
mod sent;
mod window;

pub(crate) use calm::Calm;

use crate::track::acks::Acks;
use crate::track::crowd::Crowd;
use crate::track::flow::Flow;
use crate::track::holes::Holes;
use crate::track::passage::PathView;
use crate::track::rate::Rate;
use crate::track::scale::Scale;
use crate::{profile::Profile, rest::Size, rest::at_rest};
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

at_rest! {
    Counts {
        packets, bytes, retransmitted, zero_windows, probes, keepalives, reordered, syn_retransmissions,
        duplicates, max_window as Size, delayed_ack, min_timeout,
    }
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
    /// Its time stamps tick by the millisecond.
    pub(crate) fine_stamps: bool,
    /// One of its time stamps that passed before, and when: away from it that of its SYN.
    pub(crate) passed: Option<(u32, Nanos)>,
    /// The fastest reaction of the peer, or zero.
    pub(crate) peer_reaction: Nanos,
    /// Base round trip, or zero.
    pub(crate) rtt: Nanos,
}

impl View {
    /// The soonest that the peer answers what passes the tap.
    fn soonest_answer(&self) -> Nanos {
        let peer = PathView::new(Some(self.peer_reaction), Some(self.rtt - self.peer_reaction));
        peer.own() - peer.early()
    }
}

/// The ends of recent data segments, and when they passed.
#[derive(Clone, Debug)]
struct Sends {
    ends: [Seq; 8],
    /// The smallest number where the slot is empty or its segment was sent twice.
    times: [Nanos; 8],
    at: u8,
    /// How many segments in a row, each alone in flight, nobody acknowledged until it was sent again (rule 75).
    alone: u8,
}

at_rest! { Sends { ends, times, at, alone } }

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

    /// Bytes from `seq` to the first end of a segment after it, among the last few; zero if none is known.
    fn first_after(&self, seq: Seq) -> u32 {
        let known = self.ends.iter().zip(&self.times).filter(|s| *s.1 != Sends::NONE);
        known.map(|s| s.0.minus(seq)).filter(|&n| n > 0).min().unwrap_or(0) as u32
    }

    /// When the data that ends at `end` passed, if it is among the last few segments.
    #[inline(always)]
    fn time_of(&self, end: Seq) -> Option<Nanos> {
        // Mostly it is the last one.
        let last = usize::from(self.at.wrapping_sub(1) & 7);
        if self.ends[last] == end && self.times[last] != Sends::NONE {
            return Some(self.times[last]);
        }
        self.time_of_any(end)
    }

    #[inline(never)]
    fn time_of_any(&self, end: Seq) -> Option<Nanos> {
        let known = |i: &usize| self.ends[*i] == end && self.times[*i] != Sends::NONE;
        (0..8).find(known).map(|i| self.times[i])
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
    /// The right edge that an ACK moved first, and when: data beyond it left after that.
    moved: Option<Seq>,
    moved_at: Nanos,
    /// The edge was set without knowing the scale.
    edge_unscaled: bool,
    /// Options of this end's SYN.
    wscale: Option<u8>,
    mss_option: Option<u16>,
    mss_from_handshake: bool,
    mss_learnt: bool,
    max_payload: u32,
    /// End of the first full segment, and whether one was ever acknowledged.
    full_end: Seq,
    full_sent: bool,
    full_delivered: bool,
    rate: Rate,
    crowd: Crowd,
    /// The end of what left with the first segment of the flight, once any did.
    together: Seq,
    some_together: bool,
    /// When its first FIN passed, and what that acknowledged, once one did.
    fin: (Nanos, Option<Seq>),
}

at_rest! {
    Half {
        flow, counts, acks, holes, sends, scale, moved, moved_at, edge_unscaled, wscale, mss_option,
        mss_from_handshake, mss_learnt, max_payload, full_end, full_sent, full_delivered, rate, crowd,
        together, some_together, fin,
    }
}

impl Default for Half {
    fn default() -> Half {
        Half {
            flow: Flow::default(),
            counts: Counts::default(),
            acks: Acks::default(),
            holes: Holes::default(),
            sends: Sends { ends: [Seq(0); 8], times: [Sends::NONE; 8], at: 0, alone: 0 },
            scale: None,
            moved: None,
            moved_at: Nanos::ZERO,
            edge_unscaled: false,
            wscale: None,
            mss_option: None,
            mss_from_handshake: false,
            mss_learnt: false,
            max_payload: 0,
            full_end: Seq(0),
            full_sent: false,
            full_delivered: false,
            rate: Rate::default(),
            crowd: Crowd::default(),
            together: Seq(0),
            some_together: false,
            fin: (Nanos::ZERO, None),
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

    /// What lies outside of it will be needed.
    #[inline]
    pub(crate) fn fetch_lists(&self) {
        self.acks.fetch();
        self.rate.fetch();
    }

    #[inline]
    pub(crate) fn acks(&self) -> &Acks {
        &self.acks
    }

    pub(crate) fn fin(&self) -> Option<Nanos> {
        self.fin.1.map(|_| self.fin.0)
    }

    /// What its first FIN acknowledged.
    pub(crate) fn fin_acknowledges(&self) -> Option<Seq> {
        self.fin.1
    }

    pub(crate) fn alone(&self) -> u8 {
        self.sends.alone
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
    #[inline]
    pub(crate) fn rate(&mut self) -> Option<f64> {
        if self.rate.has_no_train() { None } else { self.rate.estimate() }
    }

    /// What was learnt of the bottleneck was learnt with a wrong round trip.
    pub(crate) fn forget_rate(&mut self) {
        self.rate = Rate::default();
        self.crowd = Crowd::default();
    }

    /// How its data arrives.
    pub(crate) fn arrivals(&self) -> &Rate {
        &self.rate
    }

    /// Some of its bytes did not pass the tap when their turn was.
    pub(crate) fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Bytes were acknowledged that the capture lacks.
    pub(crate) fn has_unseen_bytes(&self) -> bool {
        self.flow.acked && self.holes.any_acknowledged(self.flow.una)
    }
}

/// Opening and closing.
impl Half {
    /// Becomes a new one; the list of ACKs keeps its room.
    pub(crate) fn renew(&mut self) {
        let acks = std::mem::take(&mut self.acks).emptied();
        *self = Half { acks, ..Half::default() };
    }

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

    /// Nothing has passed behind its SYN.
    pub(crate) fn has_sent_nothing(&self) -> bool {
        self.flow.nxt == self.flow.base && self.counts.bytes == 0
    }

    /// Its sequence space begins elsewhere, and nothing of the one before has passed (rule 91).
    pub(crate) fn begins_anew(&mut self, seq: Seq) {
        let flow = &mut self.flow;
        (flow.base, flow.nxt, flow.una, flow.small_end) = (seq, seq, seq, seq);
        (flow.edge_known, flow.has_hole, flow.dup_acks) = (false, false, 0);
        self.moved = None;
        self.holes = Holes::default();
        self.acks = std::mem::take(&mut self.acks).emptied();
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

    /// An ACK moved the right edge, which was there before.
    #[inline]
    fn moves(&mut self, edge: Seq, t: Nanos) {
        if self.moved.is_none() {
            (self.moved, self.moved_at) = (Some(edge), t);
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
        let again = self.fin.1.is_some();
        if again && segment.len == 0 {
            self.counts.retransmitted += 1;
        }
        self.fin = if again { self.fin } else { (t, Some(segment.ack)) };
        let flow = &mut self.flow;
        let end = segment.seq + segment.len;
        if flow.seen && !end.before(flow.nxt) {
            if end.after(flow.nxt) {
                // It overtook data (rule 41).
                self.holes.open(flow.nxt, end, t, segment.options.timestamps.map(|s| s.0));
            }
            flow.nxt = end + 1;
        }
    }
}

/// Packets, whatever they carry.
impl Half {
    /// A packet passed.
    #[inline(always)]
    pub(crate) fn packet(&mut self, duplicate: bool) {
        self.counts.packets += u64::from(!duplicate);
        self.counts.duplicates += u32::from(duplicate);
    }

    /// Whether its stack ignores the stamps of pure ACKs.
    pub(crate) fn ignores_acks(&mut self, so: bool) {
        self.flow.ignores_acks = so;
    }

    /// How many packets are missing before this one, by the sender's numbers.
    #[inline(always)]
    pub(crate) fn missing_before(&mut self, segment: &Segment, profile: &Profile) -> u16 {
        let missing = self.flow.numbering.missing(segment.ip_id, profile);
        if missing > 0
            && segment.len == 0
            && let Some(last) = &mut self.flow.last
        {
            last.skipped = last.skipped.saturating_add(missing as u8);
        }
        missing
    }

    /// It offers this window, bytes.
    #[inline]
    pub(crate) fn offers(&mut self, window: u32) {
        self.counts.max_window = self.counts.max_window.max(window);
    }

    /// It offers nothing.
    pub(crate) fn closes_window(&mut self) {
        self.counts.zero_windows += 1;
    }

    /// A probe: no payload, one below the next number (`tcp_xmit_probe_skb`). `true`: a keep-alive, the window is open.
    #[inline(always)]
    pub(crate) fn note_probe(&mut self, segment: &Segment) -> bool {
        let flow = &mut self.flow;
        if segment.len > 0 || !flow.seen || segment.seq != flow.nxt - 1 || segment.flags.fin() {
            return false;
        }
        let shut = flow.edge_known && flow.edge.minus(flow.nxt) < flow.mss.max(1) as i32;
        if shut {
            self.counts.probes += 1;
            flow.probed = true;
        } else {
            self.counts.keepalives += 1;
        }
        !shut
    }

    /// Its ACK came so much later than its fastest one: that is a habit.
    pub(crate) fn delays_acks(&mut self, by: Nanos) {
        let (least, most) = self.counts.delayed_ack.unwrap_or((by, by));
        self.counts.delayed_ack = Some((least.min(by), most.max(by)));
    }

    /// The peer offers a window whose scale its SYN did not tell: the scale, once it is sure.
    pub(crate) fn unscaled_window(&mut self, segment: &Segment) -> Option<u8> {
        let scale = self.scale.get_or_insert_with(|| Box::new(Scale::new()));
        scale.offered(segment.ack, segment.window);
        scale.known()
    }

    /// A round-trip sample of this sender.
    #[inline]
    pub(crate) fn sample_rtt(&mut self, rtt: Nanos, t: Nanos) {
        self.flow.rtt.take(rtt, t);
    }
}
