//! What is known of a connection, for whoever asks.

use crate::profile::{Profile, TAKEN_WITHIN, WAKE_UP};
use crate::result::{Closed, Quality, Vantage};
use crate::track::flow::Flow;
use crate::track::half::{Counts, Half};
use crate::track::handshake::Handshake;
use crate::track::last::Last;
use crate::track::{PathView, Repair, Repeat, Tracker};
use tcpwhy_base::{End, Nanos, Segment, Seq};

/// What others may ask.
impl Tracker {
    pub(crate) fn flow(&self, s: End) -> &Flow {
        self.half[s].flow()
    }

    pub(crate) fn counts(&self, s: End) -> &Counts {
        self.half[s].counts()
    }

    pub(crate) fn profile(&self, s: End) -> &Profile {
        self.profile[s]
    }

    /// Data passed, and no SYN before it.
    pub(crate) fn began_with_data(&self) -> bool {
        !self.handshake.is_seen() && self.half.client.counts().bytes + self.half.server.counts().bytes > 0
    }

    pub(crate) fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    pub(crate) fn quality(&self) -> Quality {
        self.quality
    }

    /// How long the capture's clock stands still; zero if not for long.
    pub(crate) fn tick(&self) -> Nanos {
        self.clock.tick()
    }

    /// A proxy acknowledges for the server (rule 70): its SYN-ACK took four times as long as an ACK, and it
    /// has answered nothing sooner than that. How much farther the server is, beyond what a SYN queue or an
    /// address that had to be asked for first takes.
    pub(crate) fn split(&self, soonest_answer: Option<Nanos>) -> Option<Nanos> {
        let (syn, near) = (self.handshake.trip()?, self.reaction[End::Server]?);
        let far = syn - near;
        let slow = syn >= near.times(4) && far >= Nanos::millis(5) && !self.near(End::Server);
        (slow && soonest_answer? + syn.part(16) >= syn).then_some(far)
    }

    /// How long it may stand still, as far as so few packets tell.
    pub(crate) fn may_tick(&self) -> Nanos {
        self.clock.may_tick()
    }

    pub(crate) fn closed(&self) -> Closed {
        self.closed
    }

    /// Who sent the first reset.
    pub(crate) fn reset_by(&self) -> Option<End> {
        self.reset_by
    }

    /// When the first FIN of `s` passed.
    pub(crate) fn fin_of(&self, s: End) -> Option<Nanos> {
        self.half[s].fin()
    }

    /// The last so many bytes of `s` had not come when its peer sent its first FIN.
    pub(crate) fn came_too_late(&self, s: End, bytes: u64) -> bool {
        let half = &self.half[s];
        let first = half.flow().nxt - (bytes as u32 + u32::from(half.fin().is_some()));
        self.half[s.peer()].fin_acknowledges().is_some_and(|ack| !ack.after(first))
    }

    /// The first and the last packet.
    pub(crate) fn frames(&self) -> (u64, u64) {
        (self.first_frame, self.last_frame)
    }

    pub(crate) fn last_frame(&self) -> u64 {
        self.last_frame
    }

    pub(crate) fn start(&self) -> Nanos {
        self.start
    }

    /// The last packet.
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// It goes on until then, though no packet passes any more: its kernel says so.
    pub(crate) fn goes_on_until(&mut self, t: Nanos) {
        self.now = self.now.max(t);
    }

    /// Where the data of `s` ends that is known: its FIN is none.
    pub(crate) fn data_end(&self, s: End) -> Seq {
        self.flow(s).nxt - u32::from(self.fin_of(s).is_some())
    }

    /// It was seen to close. If all we saw is resets, we saw neither its beginning nor its end.
    pub(crate) fn lingers(&self) -> bool {
        self.closed != Closed::Open && self.not_only_resets
    }

    /// No packet of one end is in the capture.
    pub(crate) fn one_sided(&self) -> bool {
        self.half.iter().any(|half| half.counts().packets == 0)
    }

    /// Base round trip: both reaction times together; `None` until both are known.
    #[inline]
    pub(crate) fn rtt(&self) -> Option<Nanos> {
        Some(self.reaction.client? + self.reaction.server?)
    }

    /// Base round trip, or what is known of it, or zero.
    #[inline]
    pub(crate) fn rtt_or_zero(&self) -> Nanos {
        self.reaction_or_zero(End::Client) + self.reaction_or_zero(End::Server)
    }

    pub(crate) fn reaction(&self, s: End) -> Option<Nanos> {
        self.reaction[s]
    }

    /// The reaction time of one side, or zero.
    #[inline]
    pub(crate) fn reaction_or_zero(&self, s: End) -> Nanos {
        self.reaction[s].unwrap_or_default()
    }

    /// The path as this end sees it.
    pub(crate) fn path_of(&self, s: End) -> PathView {
        PathView::new(self.reaction[s], self.reaction[s.peer()])
    }

    /// The tap is nearer to this side than to the other.
    pub(crate) fn near(&self, s: End) -> bool {
        self.reaction_or_zero(s) <= self.reaction_or_zero(s.peer())
    }

    /// Where the tap is. A fifth of the round trip is near enough to an end.
    pub(crate) fn vantage(&self) -> Vantage {
        let (Some(c), Some(s)) = (self.reaction.client, self.reaction.server) else {
            return Vantage::Unknown;
        };
        let nearer = if c <= s { Vantage::Client } else { Vantage::Server };
        // Loopback, the same host or rack: no matter.
        let short = c + s < Nanos::micros(500);
        if short || c.times(4) <= s || s.times(4) <= c { nearer } else { Vantage::Middle }
    }

    /// Whether the window scales were in the handshake.
    #[inline]
    pub(crate) fn scale_known(&self) -> bool {
        self.scales.is_some()
    }

    /// The scale of the windows that `s` offers: from the SYNs, or read from how the windows move.
    #[inline]
    pub(crate) fn window_shift(&self, s: End) -> Option<u8> {
        match &self.scales {
            Some(scales) => Some(scales[s]),
            None => self.half[s.peer()].scale()?.known(),
        }
    }

    /// The largest window of the peer of `d` as it stands in the header and the scales that it may have, where that is
    /// not known.
    pub(crate) fn unscaled_window(&self, d: End) -> Option<(u16, u8, u8)> {
        let (low, high) = self.half[d].scale().and_then(|s| s.range()).unwrap_or((0, 14));
        let unknown = self.window_shift(d.peer()).is_none();
        unknown.then_some((self.half[d].flow().raw_window, low, high))
    }

    /// The scale option of `s`; without its SYN, the scale read from how its window moved.
    pub(crate) fn scale_of(&self, s: End) -> Option<u8> {
        let told = || self.handshake.told_scale(s);
        self.half[s]
            .wscale()
            .or_else(told)
            .or_else(|| (!self.scale_known()).then(|| self.window_shift(s)).flatten())
    }

    pub(crate) fn mss_option(&self, s: End) -> Option<u16> {
        self.half[s].mss_option()
    }

    /// The retransmission timeout of `s`.
    pub(crate) fn rto(&self, s: End) -> Nanos {
        self.flow(s).rto(self.rtt_or_zero(), self.profile[s])
    }

    /// The shortest time after which `s` sends again what was lost: a round trip and the floor of its timeout.
    #[inline]
    pub(crate) fn timer(&self, s: End) -> Nanos {
        self.rtt_or_zero() + self.profile[s].rto_floor
    }

    /// A pause longer than this splits a one-way transfer.
    pub(crate) fn long_pause(&self, s: End) -> Nanos {
        Nanos::secs(1).max(self.rto(s).times(2))
    }

    /// A window that had less room than a segment opened for `s` one reaction time ago (rule 57).
    pub(crate) fn reopened(&self, s: End, t: Nanos) -> bool {
        let (half, reaction) = (&self.half[s], self.reaction_or_zero(s));
        let (nxt, mss) = (half.flow().nxt, half.flow().mss.max(1) as i32);
        let soon = reaction + reaction.part(8) + WAKE_UP;
        let mut acks = half.acks().newest_first().take_while(|a| t - a.time <= soon);
        acks.any(|a| a.pure() && a.edge_before.minus(nxt) < mss && a.edge.minus(nxt) >= mss)
    }

    /// A packet of `s` like this one passed within a second.
    pub(crate) fn has_twin(&self, s: End, segment: &Segment) -> bool {
        self.copies.has_twin(s, segment)
    }

    /// A pure ACK after `since` was the first of what `s` had sent up to `small_end`, where its last partial
    /// segment ends.
    pub(crate) fn has_acked_small(&self, s: End, small_end: Seq, since: Nanos) -> bool {
        let mut acks = self.half[s].acks().newest_first().take_while(|a| a.time > since);
        acks.any(|a| a.pure() && small_end.after(a.una_before) && !small_end.after(a.ack))
    }

    /// How many segments of `s` in a row, each alone in flight, nobody acknowledged until it was sent again.
    pub(crate) fn alone(&self, s: End) -> u8 {
        self.half[s].alone()
    }

    /// What `s` sends stands in a queue of its host before it passes.
    pub(crate) fn stands(&self, s: End) -> bool {
        self.half[s].arrivals().stands()
    }

    /// The bottleneck's rate in one direction, bits per second.
    #[inline]
    pub(crate) fn rate(&mut self, d: End) -> Option<f64> {
        self.half[d].rate()
    }

    /// Bytes that the capture lacks, known only at the end.
    pub(crate) fn misses_bytes(&self) -> bool {
        self.half.iter().any(|half| half.has_unseen_bytes())
    }

    /// Limits of what can be said that show at the end.
    pub(crate) fn limit(&mut self, quality: Quality) {
        self.quality.set(quality);
    }

    /// Stamped before what has passed, and with nothing that has not: a file behind another one has the
    /// packet again, for no repeat is older than what it repeats (rule 64).
    #[cold]
    pub(super) fn passed_before(&self, s: End, segment: &Segment) -> bool {
        let (flow, other) = (self.flow(s), self.flow(s.peer()));
        let end = segment.seq + segment.len + u32::from(segment.flags.syn());
        let edge = segment.ack + (u32::from(segment.window) << self.window_shift(s).unwrap_or(0));
        let opens = segment.flags.syn() && self.handshake.is_seen();
        let told = other.acked && other.edge_known;
        let acks = !segment.flags.ack() || told && !segment.ack.after(other.una) && !edge.after(other.edge);
        let closes = segment.flags.fin() && self.fin_of(s).is_none();
        let known = segment.time >= self.start && !segment.flags.rst() && !closes;
        known && flow.seen && !end.after(flow.nxt) && (opens || acks)
    }

    /// Stamped by its sender before another packet of it that has passed, and with nothing that has not:
    /// where copies come late, one of what passed before that was known (rule 42).
    #[cold]
    pub(super) fn sent_before(&self, s: End, segment: &Segment) -> bool {
        let older = segment.options.timestamps.is_some_and(|(stamp, _)| self.stamps[s].is_older(stamp));
        older && self.passed_before(s, segment)
    }

    /// What has passed a tap beside its receiver has come, and no ACK of it had left yet when `s` sent it
    /// again (rule 74). Not where the receiver may have dropped it: before it ever took anything (a full
    /// accept queue), beyond its window, or at a hole. Elsewhere a third segment in a row that was alone
    /// (rule 75).
    #[cold]
    pub(super) fn repeat(&mut self, s: End, segment: &Segment) -> Repeat {
        let (flow, peer, path) = (self.flow(s), self.flow(s.peer()), self.path_of(s));
        let beside = path.peer_reaction.is_some() && path.peer().times(4) <= path.own();
        let end = segment.seq + segment.len;
        let taken = flow.acked && flow.una.after(flow.base) || peer.nxt.after(peer.base);
        // Beside the receiver all before it has come as well, where nothing is missing.
        let whole = (beside || segment.seq.at_or_before(flow.una)) && !flow.has_hole && flow.dup_acks == 0;
        let repaired = flow.recovery.as_ref().is_some_and(|r| r.kind != Repair::Spurious);
        let room = flow.edge_known && end.at_or_before(flow.edge);
        let alone = segment.seq == flow.una && segment.seq_end() == flow.nxt && flow.is_small(segment.len);
        if !taken || !whole || !room || repaired && !beside || self.half[s].has_holes() {
            return Repeat::Open;
        }
        if beside && self.was_dropped_behind(s, segment) {
            return Repeat::DroppedBehind;
        }
        if repaired {
            return Repeat::Open;
        }
        // What comes twice it says at once, in an option that its SYN allowed (RFC 2883; `tcp_dsack`): rule
        // 33 asks for that.
        let says_so = self.profile(s.peer()).os == Some("Linux");
        let needless = beside || alone && !says_so && flow.recovery.is_none() && self.half[s].alone_again();
        if needless { Repeat::Needless } else { Repeat::Open }
    }

    /// It passed a tap beside its receiver, which lost it behind that (rule 100): what that has sent since
    /// does not acknowledge it, or an earlier copy was not answered, while what comes twice is acknowledged
    /// at once.
    fn was_dropped_behind(&self, s: End, segment: &Segment) -> bool {
        let (flow, peer) = (self.flow(s), self.flow(s.peer()));
        if self.path_of(s).peer() > WAKE_UP {
            return false;
        }
        let passed = self.half[s].passed_at(segment.seq + segment.len).or(flow.flight_start);
        let later = |last: &Last| passed.is_some_and(|passed| last.time - passed > TAKEN_WITHIN);
        let copied = flow.recovery.as_ref().and_then(|r| r.last_of(segment.seq));
        peer.last.as_ref().is_some_and(later) || copied.is_some_and(|copied| self.now - copied > TAKEN_WITHIN)
    }

    /// What lies outside of it will be needed.
    pub(crate) fn fetch_lists(&self) {
        self.half.iter().for_each(Half::fetch_lists);
    }
}
