//! The three-way handshake: SYNs, their retransmissions and refusals.

use crate::rest::{Frame, at_rest};
use crate::track::Tracker;
use crate::track::stamps::Stamps;
use tcpwhy_base::{End, Ends, Nanos, Segment, Seq, Trouble};

/// A moment and the frame that passed then.
pub(crate) type Moment = (Nanos, u64);

/// When the packets of a handshake passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// First and last SYN.
    pub(crate) syn: Option<Moment>,
    pub(crate) last_syn: Option<Moment>,
    /// First and last SYN-ACK.
    pub(crate) syn_ack: Option<Moment>,
    pub(crate) last_syn_ack: Option<Moment>,
    /// The last reset that answered a SYN.
    pub(crate) refused: Option<Moment>,
    /// The SYN that was refused first.
    pub(crate) refused_syn: Option<Moment>,
    /// SYNs before that one.
    pub(crate) syns_before: u32,
    /// Resets that answered SYNs.
    pub(crate) refusals: u32,
}

at_rest! {
    Passed {
        syn as Frame, last_syn as Frame, syn_ack as Frame, last_syn_ack as Frame, refused as Frame,
        refused_syn as Frame, syns_before, refusals,
    }
}

/// The server's kernel did not take the final ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NotTaken {
    /// Retransmissions of the first data.
    pub(crate) retransmissions: u32,
    /// SYN-ACKs after the handshake.
    pub(crate) syn_acks: u32,
    /// Such retransmissions that came to a tap at the server.
    pub(crate) arrived: u32,
}

at_rest! { NotTaken { retransmissions, syn_acks, arrived } }

/// Of a handshake: what the server's tap saw of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SynsThere {
    /// SYNs that arrived.
    pub(crate) arrived: u32,
    /// SYN-ACKs that left.
    pub(crate) answered: u32,
}

/// A handshake that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) passed: Passed,
    /// The first packet of it.
    pub(crate) first: Moment,
    pub(crate) syns: u32,
    /// SYN-ACKs before the client's final ACK.
    pub(crate) syn_acks: u32,
    /// The final ACK was seen.
    pub(crate) done: bool,
    /// Payload on the SYNs.
    pub(crate) bytes: Ends<u64>,
    /// What the tap at the server has seen of it, where there is one.
    pub(crate) there: Option<SynsThere>,
}

/// What is known of the handshake while it goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshake {
    /// Needed until it is over.
    passed: Option<Box<Passed>>,
    over: bool,
    /// A SYN, a SYN-ACK was seen; the final ACK was.
    syn_seen: bool,
    syn_ack_seen: bool,
    done: bool,
    syns: u32,
    syn_acks: u32,
    bytes: Ends<u64>,
    /// How long after the SYN the SYN-ACK came, microseconds, where nothing was sent twice; zero: not known.
    trip_us: u32,
    /// The options of a SYN were cut off.
    options_cut: bool,
    /// The scales of the windows that each end offers, where a kernel said that there are any.
    told_scales: Option<Ends<u8>>,
    not_taken: NotTaken,
    /// The server's first byte by another SYN-ACK than the one that counts: two hosts, or two lives of one,
    /// have answered (rule 91).
    other: Option<Seq>,
}

at_rest! {
    Handshake {
        passed, over, syn_seen, syn_ack_seen, done, syns, syn_acks, bytes, trip_us, options_cut,
        told_scales, not_taken, other,
    }
}

impl Tracker {
    /// A SYN-ACK passed by which the server begins at another number than by the one that counts.
    pub(super) fn note_other_beginning(&mut self, begins: Seq) {
        if self.half.server.has_sent_nothing() && begins != self.half.server.flow().base {
            self.handshake.other = Some(begins);
        }
    }

    /// Which of two SYN-ACKs counts is what the client says: one whose first byte it acknowledges does from then on.
    #[inline]
    pub(super) fn heeds_beginning(&mut self, s: End, ack: Seq) {
        if s == End::Client && self.handshake.other == Some(ack) {
            self.begins_anew(ack);
        }
    }

    #[cold]
    fn begins_anew(&mut self, ack: Seq) {
        let before = self.half.server.flow().base;
        if self.half.server.has_sent_nothing() {
            self.half.server.begins_anew(ack);
            self.stamps.server = Stamps::default();
            self.handshake.other = Some(before);
        }
    }

    /// The kernel of `s` says by which scales windows are to be read: that of the other end and its own;
    /// `None`: by none. It has agreed on them with the other end, whether their SYNs were seen or not.
    pub(crate) fn told_scales(&mut self, s: End, scales: Option<[u8; 2]>) {
        let told = scales.map(|[other, own]| Ends::of(|end| if end == s { own } else { other }.min(14)));
        self.scales = Some(told.unwrap_or_default());
        self.handshake.told_scales = told;
    }
}

impl Handshake {
    fn passed(&mut self) -> &mut Passed {
        self.passed.get_or_insert_default()
    }

    /// The final ACK was seen.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Its end is known, or was guessed.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn syns(&self) -> u32 {
        self.syns
    }

    pub(crate) fn not_taken(&self) -> NotTaken {
        self.not_taken
    }

    /// Some packet of it was seen.
    pub(crate) fn is_seen(&self) -> bool {
        self.syn_seen || self.syn_ack_seen
    }

    /// Whether the window scales are known: both SYNs were seen whole, or the SYN-ACK refused scaling (it may only
    /// carry the option if the SYN did, RFC 7323, 2.2).
    #[inline]
    pub(crate) fn scale_known(&self, server_scales: bool) -> bool {
        !self.options_cut && self.syn_ack_seen && (self.syn_seen || !server_scales)
    }

    /// The scale that a kernel said.
    pub(crate) fn told_scale(&self, s: End) -> Option<u8> {
        self.told_scales.map(|scales| scales[s])
    }

    /// The final ACK would come next.
    #[inline]
    pub(crate) fn awaits_final_ack(&self) -> bool {
        !self.over && self.syn_ack_seen
    }

    /// There were two answers to its SYN, and an ACK may yet tell which counts (rule 91).
    pub(crate) fn has_two_beginnings(&self) -> bool {
        self.other.is_some()
    }

    /// Payload of the client that came with its SYN.
    pub(crate) fn client_bytes(&self) -> u64 {
        self.bytes.client
    }

    /// Options of a SYN or SYN-ACK were cut off.
    pub(crate) fn has_cut_options(&self) -> bool {
        self.options_cut
    }

    /// The options of a SYN or SYN-ACK: may they be cut off?
    pub(crate) fn reads_options(&mut self, segment: &Segment) {
        if segment.options.damaged || segment.trouble.has(Trouble::CUT_HEADER) {
            self.options_cut = true;
        }
    }

    /// A SYN passed. `false`: one had passed before.
    pub(crate) fn syn(&mut self, from: End, segment: &Segment, t: Nanos) -> bool {
        let first = !self.syn_seen;
        self.syns += 1;
        self.syn_seen = true;
        if !self.over {
            let passed = self.passed();
            passed.syn.get_or_insert((t, segment.frame));
            passed.last_syn = Some((t, segment.frame));
        }
        if segment.len > 0 && self.syns == 1 && !self.over {
            self.bytes[from] = u64::from(segment.len);
        }
        first
    }

    /// A SYN-ACK had passed before.
    pub(crate) fn is_syn_ack_again(&self) -> bool {
        self.syn_ack_seen
    }

    /// The server sends its SYN-ACK although the client has acknowledged one. Of two that differ nobody knows
    /// which that was for.
    pub(crate) fn syn_ack_after_it(&mut self) {
        self.not_taken.syn_acks += u32::from(self.other.is_none());
    }

    /// The client's first data was sent again.
    pub(crate) fn first_data_again(&mut self) {
        self.not_taken.retransmissions += 1;
    }

    /// So often the first data came again to a tap at the server.
    pub(crate) fn first_data_arrived_again(&mut self, times: u32) {
        self.not_taken.arrived = times;
    }

    /// A SYN-ACK passed. Gives the server's reaction time, where nothing was sent twice (Karn).
    pub(crate) fn syn_ack(&mut self, segment: &Segment, t: Nanos) -> Option<Nanos> {
        self.syn_acks += 1;
        self.syn_ack_seen = true;
        let once = self.syns == 1 && self.syn_acks == 1;
        let passed = self.passed();
        passed.syn_ack.get_or_insert((t, segment.frame));
        passed.last_syn_ack = Some((t, segment.frame));
        let trip = passed.last_syn.filter(|_| once).map(|syn| (t - syn.0).max(Nanos(1)));
        self.trip_us = trip.map_or(0, |trip| u32::try_from(trip.0 / 1_000).unwrap_or(0));
        trip
    }

    /// How long after the SYN the SYN-ACK came, where that is known.
    pub(crate) fn trip(&self) -> Option<Nanos> {
        (self.trip_us > 0).then(|| Nanos::micros(i64::from(self.trip_us)))
    }

    /// The server took so much of the data on the client's SYN.
    pub(crate) fn syn_data_taken(&mut self, bytes: u64) {
        self.bytes.client = bytes;
    }

    /// A reset answered the SYN.
    pub(crate) fn refused(&mut self, t: Nanos, frame: u64) {
        let syns = self.syns;
        let passed = self.passed();
        passed.refused = Some((t, frame));
        passed.refusals += 1;
        if passed.refusals == 1 {
            passed.refused_syn = passed.last_syn;
            passed.syns_before = syns.saturating_sub(1);
        }
    }

    /// The client's first ACK of the SYN-ACK. Gives the client's reaction time, where only one SYN-ACK was sent; `None`
    /// if there was none.
    pub(crate) fn final_ack(&mut self, t: Nanos) -> Option<Option<Nanos>> {
        let syn_ack = self.passed().last_syn_ack?;
        self.done = true;
        Some((self.syn_acks == 1).then(|| (t - syn_ack.0).max(Nanos(1))))
    }

    /// It is over; `there`: what a tap at the server saw of it. `None` if no packet of it was seen.
    pub(crate) fn conclude(&mut self, there: Option<SynsThere>) -> Option<Opening> {
        let passed = *self.passed.take().unwrap_or_default();
        let first = match (passed.syn, passed.syn_ack) {
            (Some(a), Some(b)) => a.min(b),
            (one, other) => one.or(other)?,
        };
        self.over = true;
        let Handshake { syns, syn_acks, done, bytes, .. } = *self;
        Some(Opening { passed, first, syns, syn_acks, done, bytes, there })
    }

    /// When the last packet of a handshake passed that led to nothing.
    pub(crate) fn last_packet(&self) -> Option<Moment> {
        let h = self.passed.as_deref()?;
        // A SYN-ACK behind a reset is none of a host, but may be there.
        let later = h.last_syn.max(h.last_syn_ack);
        h.refused.max(h.refused.and(later)).or(h.last_syn_ack).or(h.last_syn)
    }
}
