//! The state of a connection as its packets tell it: the only place that writes it. Takes segments; gives, for each
//! data segment, a [`Passage`], from which `release` decides what let it go.

mod acks;
mod beginning;
mod calm;
mod clock;
mod crowd;
mod departures;
mod flow;
mod half;
mod handshake;
mod holes;
mod last;
mod numbering;
mod passage;
mod queries;
mod rate;
mod reactions;
mod recovery;
mod renew;
mod scale;
mod silence;
mod stamps;
mod standing;

pub(crate) use acks::Ack;
pub(crate) use flow::CwndState;
pub(crate) use half::Counts;
pub(crate) use handshake::{Handshake, Moment, NotTaken, Opening, SynsThere};
pub(crate) use last::Last;
#[cfg(test)]
pub(crate) use passage::Before;
pub(crate) use passage::{Arrival, Arrived, Passage, PathView, Repeat, Since, was_free};
pub(crate) use rate::Left;
pub(crate) use reactions::Trip;
pub(crate) use recovery::{Recovered, Repair, Verdict};
use silence::Silence;

#[cfg(test)]
pub(crate) use {acks::Acks, flow::Flow, numbering::Numbering, rate::Rate, recovery::Recovery};

use crate::copies::{Copies, SOON};
use crate::profile::{Profile, delayed_from};
use crate::rest::{Frame, at_rest};
use crate::result::{Closed, Quality};
use clock::Clock;
use half::{Half, Reading, View};
use rate::train_pause;
use stamps::Stamps;
use tcpwhy_base::{End, Ends, Nanos, Segment, Trouble};

/// State of one connection.
#[derive(Debug)]
pub(crate) struct Tracker {
    half: Ends<Half>,
    profile: Ends<&'static Profile>,
    /// Shortest time from a packet passing the tap towards this end to its response passing back.
    reaction: Ends<Option<Nanos>>,
    /// What follows from both: a pause that ends a train of packets where no queue stands.
    pause: Nanos,
    handshake: Handshake,
    copies: Copies,
    clock: Clock,
    /// The time stamps that each end sent.
    stamps: Ends<Stamps>,
    /// A reaction that one window update proved, sooner than the one known.
    sooner: Ends<Option<Nanos>>,
    /// Who has reacted that soon without payload, or by a window that opened: no program had anything to do (rule 125).
    bare: Ends<bool>,
    /// The scales of the windows that each end offers, once both SYNs told them.
    scales: Option<Ends<u8>>,
    quality: Quality,
    /// Nothing was odd when its last packet had passed.
    calm: bool,
    closed: Closed,
    /// Who sent the first reset.
    reset_by: Option<End>,
    /// Some segment was no reset.
    not_only_resets: bool,
    silence: Option<Box<Silence>>,
    start: Nanos,
    now: Nanos,
    first_frame: u64,
    last_frame: u64,
}

at_rest! {
    Tracker {
        half, profile, reaction, pause, handshake, copies, clock, stamps, sooner, bare, scales, quality,
        calm, closed, reset_by, not_only_resets, silence, start, now, first_frame as Frame, last_frame as Frame,
    }
}

impl Tracker {
    /// A connection that begins with this segment (which [`Tracker::packet`] takes).
    pub(crate) fn new(segment: &Segment) -> Tracker {
        let mut quality = Quality::default();
        if !segment.flags.syn() {
            quality.set(Quality::MIDSTREAM);
        }
        Tracker {
            half: Ends::default(),
            profile: Ends::new(&Profile::UNKNOWN, &Profile::UNKNOWN),
            reaction: Ends::default(),
            pause: train_pause(None, Nanos::ZERO),
            handshake: Handshake::default(),
            copies: Copies::default(),
            clock: Clock::default(),
            stamps: Ends::default(),
            sooner: Ends::default(),
            bare: Ends::default(),
            scales: None,
            quality,
            calm: false,
            closed: Closed::Open,
            reset_by: None,
            not_only_resets: false,
            silence: None,
            start: segment.time,
            now: segment.time,
            first_frame: segment.frame,
            last_frame: segment.frame,
        }
    }

    /// Takes a packet of `s`, whatever it is. Gives its time, never before an earlier one's; `None` for the
    /// duplicate of a packet that passed before.
    #[inline(always)]
    pub(crate) fn packet(&mut self, s: End, segment: &Segment) -> Option<Nanos> {
        if segment.time < self.now {
            self.quality.set(Quality::TIME_WENT_BACK);
        }
        let since = segment.time - self.now;
        self.now = self.now.max(segment.time);
        self.last_frame = self.last_frame.max(segment.frame);
        if segment.trouble.0 != 0 {
            self.note_trouble(segment);
        }
        let duplicate = since < Nanos::ZERO - SOON && self.passed_before(s, segment)
            || self.copies.is_copy(s, segment, since)
            || self.copies.are_late() && self.sent_before(s, segment);
        self.half[s].packet(duplicate);
        if duplicate {
            self.quality.set(Quality::DUPLICATES);
            return None;
        }
        self.not_only_resets |= !segment.flags.rst();
        self.clock.stamped(segment.time);
        if let Some((stamp, echo)) = segment.options.timestamps {
            self.take_stamps(s, segment, stamp, echo);
        }
        Some(self.now)
    }

    fn note_trouble(&mut self, segment: &Segment) {
        for (trouble, quality) in [
            (Trouble::CUT_HEADER, Quality::SNAPLEN),
            (Trouble::ZERO_IP_LEN, Quality::OFFLOAD),
            (Trouble::ENCAPSULATED, Quality::ENCAPSULATED),
        ] {
            if segment.trouble.has(trouble) {
                self.quality.set(quality);
            }
        }
    }

    /// How many packets of `s` are missing before this one, by their numbers.
    #[inline(always)]
    pub(crate) fn missing_before(&mut self, s: End, segment: &Segment) -> u16 {
        self.half[s].missing_before(segment, self.profile[s])
    }

    /// Takes a SYN or SYN-ACK.
    pub(crate) fn syn(&mut self, s: End, segment: &Segment, t: Nanos) {
        let is_syn_ack = segment.flags.ack();
        if is_syn_ack && s == End::Client || self.began_with_data() {
            return; // nobody answers a SYN of its own, and behind data one opens nothing
        }
        self.handshake.reads_options(segment);
        if self.half[s].syn(segment) {
            self.profile[s] = Profile::from_syn(segment);
        }
        let counts = if is_syn_ack {
            self.syn_ack(segment, t)
        } else {
            if !self.handshake.syn(s, segment, t) {
                self.half[s].syn_again();
            } else if segment.len > 0 && !self.handshake.is_over() {
                self.half[s].syn_data(segment); // behind its end nobody takes it
            }
            true
        };
        if counts {
            self.half[s].offers(u32::from(segment.window));
        }
        self.scales = self.scales_of_syns();
    }

    /// `false`: the handshake was over.
    fn syn_ack(&mut self, segment: &Segment, t: Nanos) -> bool {
        if self.handshake.is_syn_ack_again() {
            self.half.server.syn_again();
            self.note_other_beginning(segment.seq + 1);
        }
        // Again after the handshake (or after data, where the capture began later).
        let on_syn = self.handshake.client_bytes();
        if self.handshake.is_over() || self.half.client.counts().bytes > on_syn {
            self.handshake.syn_ack_after_it();
            return false;
        }
        if let Some(reaction) = self.handshake.syn_ack(segment, t) {
            self.reacted(End::Server, reaction, true);
        }
        let taken = self.half.client.syn_acknowledged(segment, on_syn);
        self.handshake.syn_data_taken(taken);
        self.learn_mss(segment);
        true
    }

    /// From the SYNs, if they tell: 0 if either end did not offer scaling.
    fn scales_of_syns(&self) -> Option<Ends<u8>> {
        let options = Ends::of(|s| self.half[s].wscale());
        let known = self.handshake.scale_known(options.server.is_some());
        let scales = Some(
            options
                .client
                .zip(options.server)
                .map_or(Ends::default(), |(client, server)| Ends { client, server }),
        );
        scales.filter(|_| known)
    }

    /// The payload of a full segment: the smaller of both MSS options, less the timestamp option (RFC 6691),
    /// which is on each of them if the SYN-ACK has it (RFC 7323, 3.2), or may be if options were cut off.
    fn learn_mss(&mut self, syn_ack: &Segment) {
        let (Some(a), Some(b)) = (self.half.client.mss_option(), self.half.server.mss_option()) else {
            return;
        };
        let stamped = syn_ack.options.timestamps.is_some() || self.handshake.has_cut_options();
        let mss = u32::from(a.min(b)).saturating_sub(if stamped { 12 } else { 0 }).max(1);
        self.half.iter_mut().for_each(|half| half.set_mss(mss));
    }

    /// Takes an ACK of the client that may complete the handshake: `true` if it does.
    #[inline(always)]
    pub(crate) fn completes_handshake(&mut self, s: End, segment: &Segment, t: Nanos) -> bool {
        if !self.handshake.awaits_final_ack() || s != End::Client || segment.flags.syn() {
            return false;
        }
        let Some(reaction) = self.handshake.final_ack(t) else { return false };
        if let Some(reaction) = reaction {
            self.reacted(End::Client, reaction, true);
        }
        true
    }

    /// The handshake is over; `None` if there was none to see.
    pub(crate) fn conclude_handshake(&mut self, there: Option<SynsThere>) -> Option<Opening> {
        self.handshake.conclude(there)
    }

    /// Takes a reset of `s`.
    pub(crate) fn reset(&mut self, s: End, segment: &Segment, t: Nanos) {
        let ack = segment.flags.ack();
        if ack && s == End::Server && !self.handshake.is_over() && !self.half.server.flow().seen {
            self.handshake.refused(t, segment.frame);
        } else if ack {
            self.half[s.peer()].reset_acknowledges(segment.ack);
        }
        self.closed = Closed::Rst;
        self.reset_by.get_or_insert(s);
    }

    /// Takes a FIN of `s`.
    pub(crate) fn fin(&mut self, s: End, segment: &Segment, t: Nanos) {
        self.half[s].closes(segment, t);
        let both = self.half.iter().all(|half| half.fin().is_some());
        if both && self.closed == Closed::Open {
            self.closed = Closed::Fin;
        }
    }

    /// `s` acknowledges data of the other half: what that says of its losses.
    #[inline(always)]
    pub(crate) fn ack(&mut self, s: End, segment: &Segment, t: Nanos) -> Verdict {
        let d = s.peer();
        self.heeds_beginning(s, segment.ack);
        let reaction = self.reaction_or_zero(d);
        let (own, other) = self.half.pair_mut(s);
        if segment.window == 0 && !segment.flags.fin() {
            own.closes_window();
        }
        let shift = match &self.scales {
            Some(scales) => Some(scales[s]),
            None => other.unscaled_window(segment),
        };
        if let Some(shift) = shift {
            own.offers(u32::from(segment.window) << shift);
        }
        let keepalive = own.note_probe(segment);
        // A stamp is kept for the echo if its segment begins at or below the last ACK sent (RFC 7323, 4.3);
        // with data of `s` still unacknowledged that need not be so.
        let echoed = own.flow().acked && segment.seq.at_or_before(own.flow().una);
        let horizon = reaction + reaction.part(4) + Nanos::millis(2);
        let seen = other.on_ack(segment, t, &Reading { shift, horizon, echoed });
        if seen.lost_by_capture > 1 {
            let other_direction = other.counts().packets > 0;
            self.quality.set(if other_direction { Quality::CAPTURE_DROPS } else { Quality::ONE_SIDED });
        }
        if let Some(delay) = seen.delay {
            self.on_ack_delay(s, segment, t, delay);
        }
        if keepalive {
            self.asks_whether_alive(s, segment, t);
        }
        let mut verdict = Verdict::default();
        if let Some((left, right)) = seen.dsack {
            verdict.late_duplicate = self.half[d].on_dsack(left, right);
        }
        if seen.advance > 0 {
            let view = self.view(d);
            let stamp = segment.options.timestamps.map(|t| t.0);
            let initial = self.profile[d].initial_window;
            self.half[d].after_advance(seen.advance, t, stamp, initial, &view);
            (verdict.renamed, verdict.ended) = self.half[d].recovers(t, &view, segment.len == 0);
        }
        verdict
    }

    /// An ACK of `s` came so long after the data that it acknowledges.
    #[inline(always)]
    fn on_ack_delay(&mut self, s: End, segment: &Segment, t: Nanos, delay: Nanos) {
        let d = s.peer();
        if !self.half[d].has_holes() && self.reaction[s].is_none_or(|known| delay < known) {
            self.reacts_within(s, delay.max(Nanos(1)), segment.len == 0);
        } else if segment.len == 0 && !self.bare[s] {
            self.reacted_bare(s, delay);
        }
        let rtt = delay + self.reaction_or_zero(d);
        self.half[d].sample_rtt(rtt, t);
        if let Some(fastest) = self.reaction[s].filter(|_| segment.len == 0) {
            let excess = delay - fastest;
            // More than half a second is no delayed ACK (RFC 9293, 3.8.6.3).
            if excess > delayed_from(self.rtt_or_zero()) && excess <= Nanos::millis(500) {
                self.half[s].delays_acks(excess);
            }
        }
    }

    /// Takes the data in a segment of `s`.
    #[inline(always)]
    pub(crate) fn data(&mut self, s: End, segment: &Segment, t: Nanos) -> Arrived {
        let view = self.view(s);
        let mut arrived = self.half[s].on_data(segment, t, &view);
        if arrived.arrival == Arrival::Probe && segment.seq != self.half[s].flow().nxt {
            self.asks_whether_alive(s, segment, t);
        }
        let mss = self.half[s].flow().mss;
        if mss > 0 && segment.len > mss {
            self.quality.set(Quality::OFFLOAD);
        }
        if arrived.new > 0 {
            self.half[s].on_new_bytes(segment, t, &view);
            self.left_after_update(s, segment.seq + segment.len, t);
        } else if arrived.arrival == Arrival::Retransmission {
            arrived.repeat = self.repeat(s, segment);
            if arrived.repeat != Repeat::Needless {
                self.half[s].sent_twice(segment.seq + segment.len);
            }
        }
        arrived
    }

    /// The data segment that `s` has just sent, with all that is known of it.
    #[inline]
    pub(crate) fn passage<'a>(
        &'a self,
        s: End,
        segment: &'a Segment,
        arrived: Arrived,
        missing: u16,
        since: Since,
    ) -> Passage<'a> {
        let (own, peer) = (&self.half[s], &self.half[s.peer()]);
        let path = PathView::new(self.reaction[s], self.reaction[s.peer()]);
        Passage {
            segment,
            time: self.now,
            sender: s,
            arrived,
            missing,
            since,
            flow: own.flow(),
            peer: peer.flow(),
            acks: own.acks(),
            peer_acks: peer.acks(),
            profile: self.profile[s],
            path,
            largest_window: self.window_shift(s.peer()).map(|_| peer.counts().max_window),
            one_sided: peer.counts().packets == 0,
            capture_drops: self.quality.has(Quality::CAPTURE_DROPS),
            rate: (!path.is_near()).then(|| own.arrivals()),
            departed: own.arrivals(),
            tick: self.clock.tick(),
        }
    }

    /// `s` begins to send after the other side, or after a pause.
    pub(crate) fn resumes(&mut self, s: End, t: Nanos) {
        let rtt = self.rtt_or_zero();
        self.half[s].resumes(t, rtt, self.profile[s]);
    }

    /// A segment of `s` with new bytes passed that was waited for.
    #[inline(always)]
    pub(crate) fn was_waited_for(&mut self, s: End, segment: &Segment, t: Nanos) {
        if self.profile[s].fine_stamps {
            let rtt = self.rtt_or_zero();
            self.half[s].was_waited_for(segment, t, rtt);
        }
    }

    /// A flight of `s` waited for an ACK. Gives what is known of its window during that wait, and what flew
    /// before a loss or an idle time made it smaller.
    pub(crate) fn flew(&mut self, s: End, bytes: u32, repairing: bool) -> (CwndState, u32) {
        let near = self.near(s);
        self.half[s].flew(bytes, repairing, near);
        let cwnd = &self.half[s].flow().cwnd;
        (cwnd.state(), cwnd.before())
    }

    /// A loss of `s` before the tap was repaired.
    pub(crate) fn lost_before_tap(&mut self, s: End) {
        self.half[s].lost_before_tap();
    }

    /// `s` sent data again that had passed, while it was speaking: perhaps the first after a handshake that the server
    /// did not take.
    pub(crate) fn sent_again(&mut self, s: End) {
        let flow = self.half[s].flow();
        if self.handshake.is_done() && !flow.una.after(flow.base) && s == End::Client {
            self.handshake.first_data_again();
        }
    }

    /// What the tap at the server saw of the first data.
    pub(crate) fn told_not_taken(&mut self, there: NotTaken) {
        self.handshake.first_data_arrived_again(there.retransmissions);
    }

    /// `s` sent data again, to repair a loss in this way. Gives another name for the losses so far, where this tells.
    pub(crate) fn retransmits(
        &mut self,
        s: End,
        segment: &Segment,
        t: Nanos,
        kind: Repair,
    ) -> Option<Repair> {
        let opened = self.handshake.is_done();
        self.half[s].retransmits(segment, t, kind, opened)
    }

    /// The segment was judged.
    #[inline(always)]
    pub(crate) fn sent(&mut self, s: End, segment: &Segment, t: Nanos) {
        self.half[s].sent(segment, t);
    }

    #[inline(always)]
    fn view(&self, s: End) -> View {
        let (own, peer) = (self.reaction_or_zero(s), self.reaction_or_zero(s.peer()));
        let crowded = self.half[s].crowded_rtt();
        let (near, stamps) = (own <= peer, &self.stamps[s]);
        View {
            near,
            fine_stamps: self.profile[s].fine_stamps,
            passed: if near { stamps.asked() } else { stamps.opening() },
            train_pause: if crowded == Nanos::ZERO { self.pause } else { train_pause(self.rtt(), crowded) },
            peer_reaction: peer,
            rtt: own + peer,
        }
    }
}
