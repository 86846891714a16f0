//! What one end sends: its data, and what that says of its segments and its windows.

use crate::profile::{NO_WAIT, WAKE_UP};
use crate::track::acks::Acks;
use crate::track::crowd::Mark;
use crate::track::flow::{Flow, LEAST_MSS};
use crate::track::half::{Half, View};
use crate::track::last::Last;
use crate::track::passage::{Arrival, Arrived, Before, Repeat};
use crate::track::rate::Left;
use crate::track::recovery::{Recovery, Repair, TooLarge};
use crate::track::standing::{Standing, UnderWay};
use tcpwhy_base::{Nanos, Segment, Seq, TcpFlags};

/// Until another message has begun.
const FROM_NOW_ON: Nanos = Nanos(i64::MAX / 2);

/// Of stamps that tick by the millisecond: those of what left so far apart differ.
const LONGER_THAN_A_TICK: Nanos = Nanos::millis(2);

/// Its data.
impl Half {
    /// Takes a data segment.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, segment: &Segment, t: Nanos, view: &View) -> Arrived {
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
        if segment.len > 0 && segment.len >= flow.mss && !self.full_sent {
            (self.full_end, self.full_sent) = (end, true);
        }
        let probe = Arrived { arrival: Arrival::Probe, new: 0, repeat: Repeat::Open, before };
        let shut = flow.edge_known && !seq.before(flow.edge);
        if segment.len <= 1 && end.at_or_before(flow.nxt) && seq == flow.nxt - 1 && flow.una == flow.nxt {
            self.counts.keepalives += 1;
            return probe;
        }
        if segment.len == 1 && shut && seq == flow.nxt {
            // BSD and Windows probe a closed window with one new byte; it counts when it is sent again.
            self.counts.probes += 1;
            flow.probed = true;
            return probe;
        }
        let (arrival, new) = self.arrival(segment, t, view);
        self.counts.bytes += u64::from(new);
        if new > 0 {
            self.learn_size(segment.len, segment.flags.psh());
        }
        if segment.flags.has(TcpFlags::CWR) {
            self.reduced();
        }
        if arrival == Arrival::New || new > 0 {
            self.sends.push(end, t);
        } else if arrival != Arrival::Retransmission {
            self.sends.sent_twice(end);
        }
        if self.flow.is_small(segment.len) {
            self.ends_small(end);
        }
        Arrived { arrival, new, repeat: Repeat::Open, before }
    }

    /// Its congestion window is smaller since it heard of a mark: it says so once for each (RFC 3168, 6.1.2).
    #[cold]
    fn reduced(&mut self) {
        let flow = &mut self.flow;
        if flow.recovery.is_none() {
            let flight = flow.outstanding().max(flow.flight_by_rounds());
            flow.cwnd.lost(flight);
        }
    }

    /// A segment that was not full ends there.
    #[inline]
    pub(super) fn ends_small(&mut self, end: Seq) {
        let flow = &mut self.flow;
        let another_in_flight = flow.una.before(flow.small_end) && flow.small_end.before(end);
        flow.small_end = end;
        if another_in_flight && let Some(leaving) = self.rate.leaving() {
            leaving.written = Some(end);
        }
    }

    /// The segment ends a write, and nothing was in flight before it: a timer may have written it, which does
    /// so at the same time after each ACK.
    pub(crate) fn may_be_timed(&self, segment: &Segment) -> bool {
        let ends = segment.flags.psh() && segment.len < self.flow.mss.max(LEAST_MSS);
        segment.len > 0 && ends && self.flow.outstanding() == 0
    }

    /// It sends a small segment again that was alone in flight. Three times in a row, and none acknowledged
    /// without that: its timer is shorter than the peer takes, for nobody loses each of them (rule 75).
    pub(crate) fn alone_again(&mut self) -> bool {
        self.sends.alone = self.sends.alone.saturating_add(1);
        self.sends.alone >= 3
    }

    /// When what ends there passed, if it is among the last few segments and did so once.
    pub(crate) fn passed_at(&self, end: Seq) -> Option<Nanos> {
        self.sends.time_of(end)
    }

    /// What it sends again up to `end` may have been lost.
    pub(crate) fn sent_twice(&mut self, end: Seq) {
        self.sends.sent_twice(end);
    }

    /// Where the segment stands among what has passed, and how much of it is new.
    #[inline(always)]
    fn arrival(&mut self, segment: &Segment, t: Nanos, view: &View) -> (Arrival, u32) {
        let (seq, end) = (segment.seq, segment.seq + segment.len);
        let stamp = segment.options.timestamps.map(|s| s.0);
        let flow = &mut self.flow;
        if !seq.before(flow.nxt) {
            if seq.after(flow.nxt) {
                self.holes.open(flow.nxt, seq, t, stamp);
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
        let apart = view.fine_stamps && view.rtt >= LONGER_THAN_A_TICK;
        match self.holes.fill(seq, end, stamp, apart) {
            // A hole younger than half a round trip was reordering: a repair takes at least one trip back and forth
            // from the receiver, and half of one at a tap in the middle.
            Some(f) if f.was_overtaken || t - f.opened < view.rtt.part(2).max(Nanos::micros(100)) => {
                self.counts.reordered += 1;
                (Arrival::Reordered, f.bytes)
            }
            Some(f) => {
                self.counts.retransmitted += 1;
                (Arrival::Repaired { opened: f.opened }, f.bytes)
            }
            None => {
                self.counts.retransmitted += 1;
                let spurious = flow.acked && end.at_or_before(flow.una);
                (if spurious { Arrival::Spurious } else { Arrival::Retransmission }, 0)
            }
        }
    }

    /// New bytes up to `end` passed: since the ACK without which they could not have left, if they lie beyond
    /// the window before it.
    #[inline(always)]
    pub(crate) fn goes_beyond(&mut self, end: Seq, t: Nanos) -> Option<Nanos> {
        let edge = self.moved?;
        end.after(edge).then(|| {
            self.moved = None;
            t - self.moved_at
        })
    }

    /// New bytes passed: what they say of the rate and of the flight.
    #[inline(always)]
    pub(crate) fn on_new_bytes(&mut self, segment: &Segment, t: Nanos, view: &View) {
        if view.near {
            let end = segment.seq + segment.len;
            self.crowd.asked(Mark::End(end), t);
            self.leaves_beside(segment, t, view);
            if view.rtt - view.peer_reaction > WAKE_UP {
                self.passes_afar(segment, t, view);
            }
            match self.flow.flight_start {
                Some(start) if t - start <= view.rtt.part(64).max(Nanos::micros(50)) => {
                    (self.together, self.some_together) = (end, true);
                }
                _ => {}
            }
        } else {
            self.crowd.answered(segment, t, self.flow.mss);
            let pause = match self.flow.last {
                // a write has ended short: what comes next leaves when the application writes again, not when
                // the link lets it
                Some(last) if last.psh && last.len < self.flow.mss => Nanos::ZERO,
                _ if self.goes_on(segment, t, view) => Nanos::MAX,
                _ => view.train_pause,
            };
            self.passes_afar(segment, t, view);
            let told = self.rate.told(t);
            let left = self.left_afar(segment, t, view);
            let left = told.or(left);
            self.rate.pass(t, segment.len, pause, left);
            self.flow.paced = self.rate.is_paced();
        }
        self.flow.round.pass(t, segment.len, view.rtt.max(Nanos::micros(50)));
    }

    /// A segment with new bytes that was waited for: what it says of how its message begins (rule 116).
    #[inline(always)]
    pub(crate) fn was_waited_for(&mut self, segment: &Segment, t: Nanos, rtt: Nanos) {
        let flow = &mut self.flow;
        let decided = match &flow.last {
            Some(last) if t - last.time <= rtt => {
                flow.beginning.goes_on() && flow.beginning.goes_further(segment, t, last, flow.mss, rtt)
            }
            last => flow.beginning.begins(t, last.as_ref(), flow.mss, rtt),
        };
        if decided {
            self.heeds_beginning();
        }
    }

    #[cold]
    fn heeds_beginning(&mut self) {
        let others = self.flow.packed.filter(|&packed| packed < FROM_NOW_ON);
        let apart = self.flow.beginning.apart;
        self.flow.packed = if apart { Some(FROM_NOW_ON) } else { others };
        self.rate.began(apart);
    }

    /// It sends packets of several segments with PSH on each, as Linux does: what it spaces shows in those;
    /// or its message began so (rule 116). Other flows are taken for clocked by their ACKs, which the link
    /// has set apart.
    pub(super) fn is_packed(&self, t: Nanos, view: &View) -> bool {
        self.flow.packed.is_some_and(|packed| t - packed <= view.rtt.times(2))
    }

    /// Beside its sender it left as it passed: when, is kept of flows with several segments in flight (rule 87).
    #[inline]
    fn leaves_beside(&mut self, segment: &Segment, t: Nanos, view: &View) {
        let flow = &mut self.flow;
        let flight = flow.outstanding();
        // Of small ones several are less.
        if flight >= 4 * flow.mss.min(segment.len).max(1) {
            self.rate.has_several();
        }
        let stands = self.rate.stands();
        let Some(leaving) = self.rate.leaving() else { return };
        leaving.departures.push(segment.seq + segment.len, t, flight);
        // What follows at once waited for nothing, and had been under way no shorter than the one before it.
        let wait = flow.last.map_or(Nanos::ZERO, |last| t - last.time);
        let begins = leaving.standing.is_none() && view.fine_stamps;
        if wait > NO_WAIT || stands || begins {
            self.stood_below(segment, t, wait, view);
        }
    }

    /// How long it stood in a queue of its own host before it passed, `wait` after the one before it (rule 93).
    #[inline(never)]
    fn stood_below(&mut self, segment: &Segment, t: Nanos, wait: Nanos, view: &View) {
        let stands = self.rate.stands();
        let Some(leaving) = self.rate.leaving() else { return };
        // Farther away it may have been late on its way.
        let beside = view.fine_stamps && view.rtt - view.peer_reaction <= WAKE_UP;
        let Some((stamp, _)) = segment.options.timestamps.filter(|_| beside) else {
            leaving.under_way = UnderWay::default();
            return;
        };
        let (first, at) = view.passed.unwrap_or((stamp, t));
        let standing = leaving.standing.get_or_insert_with(|| Standing::begins(first, at));
        leaving.under_way = standing.passes(stamp, t, wait);
        if leaving.under_way.surely >= wait && has_heard(&self.acks, segment, t - wait) {
            standing.is_refuted();
            leaving.under_way = UnderWay::default();
        }
        let (shown, under_way) = (standing.is_shown(), leaving.under_way);
        if !shown && stands {
            self.rate.stands_no_more();
        } else if shown {
            // The link is before the tap: what passes is as far apart as it lets it through, and its ACKs
            // tell no better.
            if !stands {
                self.rate.begins_to_stand();
            }
            let surely = under_way.surely >= wait && wait > NO_WAIT;
            self.rate.stood(t, segment.len, surely, under_way.perhaps >= wait);
        }
    }

    /// Away from its sender: how long it had been on its way, of segments that were waited for (rule 96).
    #[inline]
    fn passes_afar(&mut self, segment: &Segment, t: Nanos, view: &View) {
        let Some(last) = self.flow.last.filter(|_| view.fine_stamps) else { return };
        let wait = t - last.time;
        if wait > NO_WAIT {
            self.waited_for(segment, t, wait, view);
        }
    }

    fn waited_for(&mut self, segment: &Segment, t: Nanos, wait: Nanos, view: &View) {
        if self.counts.bytes >= u64::from(4 * self.flow.mss) {
            self.rate.has_several();
        }
        let even = self.rate.is_even(t);
        let Some(leaving) = self.rate.leaving() else { return };
        leaving.waited_for = (t, even);
        let Some((stamp, _)) = segment.options.timestamps else {
            leaving.under_way = UnderWay::default();
            return;
        };
        let standing = leaving.standing.get_or_insert_with(|| Standing::since_the_syn(view.passed, stamp, t));
        leaving.under_way = standing.passes(stamp, t, wait);
    }

    /// When it left by its time stamp, of a clock that ticks by the millisecond. Clocks run apart by up to
    /// 500 ppm (RFC 5905, `MAXFREQ`).
    fn left_afar(&mut self, segment: &Segment, t: Nanos, view: &View) -> Option<Left> {
        self.flow.packed?;
        let stamp = segment.options.timestamps.filter(|_| view.fine_stamps)?.0;
        let packed = self.is_packed(t, view);
        if self.counts.bytes >= u64::from(4 * self.flow.mss) {
            self.rate.has_several();
        }
        let leaving = self.rate.leaving()?;
        let (first, least, since) = leaving.soonest.unwrap_or((stamp, Nanos::MAX, t));
        let at = Nanos::millis(i64::from(stamp.wrapping_sub(first) as i32));
        let after = t - at;
        let least = if least == Nanos::MAX { after } else { after.min(least + (t - since).part(2_000)) };
        leaving.soonest = Some((first, least, t));
        let whole = packed && self.flow.recovery.is_none() && self.holes.is_empty();
        whole.then(|| Left { at, queued: after - least - view.rtt.part(8), tick: Nanos::millis(1) })
    }

    /// It belongs to the train of the segment before, however far apart the link has set them (rule 36): both
    /// left in the same millisecond; or the write went on (no PSH), they are alike, and come as far apart as
    /// the two before, sooner than a window of one segment lets them, or when no ACK can just have reached
    /// their sender (rule 82).
    fn goes_on(&self, segment: &Segment, t: Nanos, view: &View) -> bool {
        let Some(last) = self.flow.last.filter(|l| l.len == segment.len && !l.psh) else { return false };
        let stamp = segment.options.timestamps.map(|s| s.0);
        let together = view.fine_stamps && stamp.is_some() && stamp == last.stamp;
        together
            || self.rate.is_even(t)
                && ((t - last.time).times(4) <= view.rtt.times(3)
                    || self.nothing_released(t, last.time, view))
    }

    /// No ACK passed the tap as long before `t` as its sender takes to react, and no timer runs as short:
    /// only the link can have kept a segment in the middle of a write so long (rule 82).
    fn nothing_released(&self, t: Nanos, last: Nanos, view: &View) -> bool {
        let own = view.rtt - view.peer_reaction;
        let late = own + own.part(4) + WAKE_UP;
        let timer = view.rtt + Nanos::millis(190);
        let known = view.peer_reaction > Nanos::ZERO && own > Nanos::ZERO && self.flow.recovery.is_none();
        known && t - last < timer && self.acks.newest_first().next().is_some_and(|a| t - a.time > late)
    }

    /// After the segment was judged: remembers it as the last.
    #[inline(always)]
    pub(crate) fn sent(&mut self, segment: &Segment, t: Nanos) {
        let flow = &mut self.flow;
        flow.cwnd.flies(flow.outstanding(), flow.mss);
        flow.probed = false;
        let last = Last::of(segment, t, flow);
        if last.whole {
            flow.packed = flow.packed.max(Some(t));
        }
        flow.last = Some(last);
    }

    /// A router says that a segment of it was too large. As the kernel has it, that counts of what is in
    /// flight alone: others may have made it up (`tcp_v4_err`; RFC 5927, 4).
    pub(crate) fn told_too_big(&mut self, told: TooLarge) {
        let flow = &mut self.flow;
        if flow.acked && !told.seq.before(flow.una) && told.seq.before(flow.nxt) {
            flow.too_big = Some(Box::new(told));
        }
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
        if let Repair::TooBig { mtu } = kind {
            self.fits(mtu, segment);
        }
        let flow = &mut self.flow;
        let small_ones_pass = flow.acked && (flow.una.after(flow.base) || opened);
        let full = segment.len >= flow.mss && !self.full_delivered;
        let first = self.sends.first_after(segment.seq);
        // Of a large flight, which is repeated at once, only the last ends are known.
        let was_full =
            first == flow.mss || kind == Repair::Fast && first > 0 && first.is_multiple_of(flow.mss);
        let cut = matches!(kind, Repair::Timeout | Repair::Fast) && is_cut(flow, segment) && was_full;
        let fin = segment.flags.fin();
        if let Some(recovery) = flow.recovery.as_mut() {
            recovery.with_fin(fin);
            return recovery.again(kind, t, range, full && small_ones_pass || cut);
        }
        let kind = if cut { Repair::BlackHole } else { kind };
        let mut recovery = Recovery::new(kind, flow.nxt, t, range, wait).behind_fin(self.fin.1.is_some());
        recovery.with_fin(fin);
        flow.recovery = Some(Box::new(recovery));
        // Who heeds a router's word sends again with the window that it has (`tcp_simple_retransmit`); no
        // timer is as short.
        let heeded = matches!(kind, Repair::TooBig { .. }) && wait < Nanos::millis(190);
        if kind != Repair::Probe && !heeded {
            let flight = flow.outstanding().max(flow.flight_by_rounds());
            flow.cwnd.lost(flight);
        }
        cut.then_some(kind)
    }

    /// It sends again what was too large, in full segments of the size that a router told: from now on those are full.
    fn fits(&mut self, mtu: u16, segment: &Segment) {
        let headers = if segment.src.ip.is_ipv4() { 40 } else { 60 };
        let stamps = if segment.options.timestamps.is_some() { 12 } else { 0 };
        let fits = u32::from(mtu).saturating_sub(headers + stamps);
        if fits > 0 && fits < self.flow.mss && segment.len.is_multiple_of(fits) {
            self.flow.mss = fits;
        }
    }

    /// Two equal payloads in a row that are the largest so far are full segments, whatever the options said:
    /// the path's MTU or further options made them smaller.
    pub(super) fn learn_size(&mut self, len: u32, push: bool) {
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

/// A repeat with room for a full segment that is smaller by more than options can take (40 bytes): its sender
/// took the size for what was lost (rule 59).
fn is_cut(flow: &Flow, segment: &Segment) -> bool {
    segment.len + 40 < flow.mss && flow.edge_known && flow.edge.minus(segment.seq) >= flow.mss as i32
}

/// The segment echoes the stamp of an ACK that came after `since`, and no ACK before had that: it was built after that.
fn has_heard(acks: &Acks, segment: &Segment, since: Nanos) -> bool {
    let Some((_, echo)) = segment.options.timestamps else { return false };
    let is_older = |stamp: u32| (stamp.wrapping_sub(echo) as i32) < 0;
    let known = || acks.newest_first().filter_map(|a| Some((a.time, a.stamp?)));
    known().any(|(at, stamp)| at > since && stamp == echo)
        && known().find(|&(at, _)| at <= since).is_some_and(|(_, stamp)| is_older(stamp))
}
