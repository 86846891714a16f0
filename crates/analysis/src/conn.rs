//! One connection while it lives: hands its segments from room to room, and keeps no state of TCP of its own.
//!
//! The tracker takes a segment and says what it was; what released it is decided, recorded as a step of the exchange
//! that goes on, and learnt from; parts that end go to the ledger.

mod ahead;
mod both_ways;
mod boundary;
mod calm;
mod finish;
mod pending;
mod renew;
mod rest;
mod tickets;
mod tls;
mod told;

pub(crate) use renew::{ends_of, is_of_client};

use self::ahead::{Ahead, Asked};
use self::both_ways::Crossed;
use self::pending::Pending;
use self::tickets::Tickets;
use crate::exchange::Recorder;
use crate::findings::Basis;
use crate::output::Output;
use crate::parts::{Identity, Ledger};
use crate::release::{Habits, Release, Testimony, Wait, burst_within, hindsight, release};
use crate::result::Closed;
use crate::step::Step;
use crate::taps::{Role, Until};
use crate::track::{Arrival, Arrived, CwndState, Moment, Repair, Tracker};
use tcpwhy_base::{End, Ends, Nanos, Segment, TcpFlags, program, protocol};

/// State of one connection.
#[derive(Debug)]
pub(crate) struct Conn {
    who: Identity,
    track: Tracker,
    habits: Habits,
    testimony: Testimony,
    ex: Recorder,
    ledger: Ledger,
    role: Role,
    tickets: Tickets,
    ahead: Option<Box<Ahead>>,
    asked: Asked,
    pending: Pending,
    crossed: Ends<Crossed>,
}

/// Which connection it is.
impl Conn {
    /// Begins with this segment (which [`Conn::push`] takes); `room` is used again.
    pub(crate) fn new(id: u32, segment: &Segment, room: Basis) -> Conn {
        Conn {
            who: renew::identity(id, segment),
            track: Tracker::new(segment),
            habits: Habits::default(),
            testimony: Testimony::default(),
            ex: Recorder::default(),
            ledger: Ledger::new(id, segment, room),
            role: Role::default(),
            tickets: Tickets::default(),
            ahead: None,
            asked: Asked::default(),
            pending: Pending::default(),
            crossed: Ends::default(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.who.id
    }

    /// Its last packet.
    pub(crate) fn now(&self) -> Nanos {
        self.track.now()
    }

    /// It was seen to close.
    pub(crate) fn lingers(&self) -> bool {
        self.track.lingers()
    }

    /// Nothing closed it yet.
    pub(crate) fn is_open(&self) -> bool {
        self.track.closed() == Closed::Open
    }

    /// Which end sent the segment.
    #[inline]
    pub(crate) fn end_of(&self, segment: &Segment) -> End {
        if segment.src == self.who.ends.client { End::Client } else { End::Server }
    }

    /// What lies outside of it will be needed.
    pub(crate) fn fetch_lists(&self) {
        self.track.fetch_lists();
        self.ex.fetch_steps();
        self.ledger.fetch_lists();
    }

    /// A packet of the other direction under other VLAN tags or tunnel ids belongs here (rule 30): only one
    /// direction was seen so far, and the packet acknowledges what that direction sent.
    pub(crate) fn is_answered_by(&self, segment: &Segment) -> bool {
        let s = self.end_of(segment);
        let sent = self.track.flow(s.peer());
        let known = segment.src == self.who.ends[s] && segment.dst == self.who.ends[s.peer()];
        known
            && self.track.counts(s).packets == 0
            && segment.flags.ack()
            && sent.seen
            && !segment.ack.before(sent.base)
            && segment.ack.at_or_before(sent.nxt + 1)
    }

    /// The segment belongs here: neither does it begin another connection, nor did this one close so long ago that
    /// nothing of it can still be on its way.
    #[inline]
    pub(crate) fn goes_on_with(&self, segment: &Segment, linger: Nanos) -> bool {
        let gone = self.lingers() && segment.time > self.now() + linger;
        !gone && !self.is_reused_by(segment)
    }

    /// A segment that begins another connection on the same 4-tuple: a SYN with another sequence number after
    /// data or a close (RFC 9293, 3.6.1).
    #[inline]
    fn is_reused_by(&self, segment: &Segment) -> bool {
        segment.flags.syn() && !segment.flags.ack() && self.is_another_syn(segment)
    }

    fn is_another_syn(&self, segment: &Segment) -> bool {
        let flow = self.track.flow(self.end_of(segment));
        if !flow.seen {
            return self.track.closed() != Closed::Open;
        }
        flow.base != segment.seq + 1
    }
}

/// Taking segments.
impl Conn {
    /// Takes one segment.
    #[inline]
    pub(crate) fn push(&mut self, segment: &Segment, parts: &mut Output) {
        self.push_from(self.end_of(segment), segment, parts);
    }

    /// The same, of this end.
    pub(crate) fn push_from(&mut self, s: End, segment: &Segment, parts: &mut Output) {
        // The end is a constant in each of both: what is kept of it lies at a known place then.
        match s {
            End::Client => self.push_of(End::Client, segment, parts),
            End::Server => self.push_of(End::Server, segment, parts),
        }
    }

    #[inline(always)]
    fn push_of(&mut self, s: End, segment: &Segment, parts: &mut Output) {
        let Some(t) = self.track.packet(s, segment) else { return };
        if let Some(left) = self.role.passes(s, segment) {
            self.track.told_left(s, t, left);
        }
        let missing = self.track.missing_before(s, segment);
        if missing == 0 && self.track.is_calm(s, segment) && self.may_be_calm() {
            self.track.calm_ack(s, segment, t);
            if segment.len > 0 {
                self.on_calm_data(s, segment, t, parts);
            }
            return;
        }
        self.push_any(s, (segment, t, missing), parts);
        self.track.look_whether_calm(parts.takes_short_cuts());
    }

    /// Whatever it is.
    #[inline]
    fn push_any(&mut self, s: End, (segment, t, missing): (&Segment, Nanos, u16), parts: &mut Output) {
        if segment.flags.has(TcpFlags::SYN | TcpFlags::RST) {
            if segment.flags.syn() {
                self.track.syn(s, segment, t);
            }
            if segment.flags.rst() {
                self.track.reset(s, segment, t);
                return;
            }
        }
        if segment.flags.ack() {
            if self.track.completes_handshake(s, segment, t) {
                self.open_ledger((t, segment.frame), parts);
            }
            if !segment.flags.syn() {
                self.on_ack(s, segment, t);
                self.track.hears_of_unseen(s, segment, t);
            }
        }
        // Data on a SYN was counted with the handshake.
        if segment.len > 0 && !segment.flags.syn() {
            self.on_data(s, segment, t, missing, parts);
        }
        if segment.flags.fin() {
            if s == End::Client {
                self.hears_of_lost();
            }
            self.track.fin(s, segment, t);
        }
    }

    /// The handshake ended at `end`, if there was one.
    fn open_ledger(&mut self, end: Moment, parts: &mut Output) {
        if let Some(opening) = self.track.conclude_handshake(self.role.syns_there()) {
            self.ledger.open(&opening, &self.track, end, parts);
        }
    }

    /// `s` acknowledges data of the other half.
    #[inline(always)]
    fn on_ack(&mut self, s: End, segment: &Segment, t: Nanos) {
        let d = s.peer();
        let verdict = self.track.ack(s, segment, t);
        if let Some(bytes) = verdict.late_duplicate {
            self.ex.late_duplicate(d, bytes);
        }
        if let Some(kind) = verdict.renamed {
            self.ex.rename_losses(d, kind);
        }
        if let Some(recovery) = verdict.ended {
            self.ex.recovered(d, &recovery);
        }
    }

    /// The first data of an end: what is spoken, and which programs speak.
    #[cold]
    fn meet(&mut self, s: End, segment: &Segment) {
        if self.who.protocol.is_none()
            && let Some(protocol) = protocol_of(segment)
        {
            self.who.speaks(protocol);
            if protocol == "http/2" {
                self.tickets.begin_in_the_clear();
            }
        }
        self.who.runs(s, segment.program);
        if s == End::Client {
            self.who.runs(End::Server, program::spoken_to(head(segment)));
        }
    }

    #[inline(always)]
    fn on_data(&mut self, s: End, segment: &Segment, t: Nanos, missing: u16, parts: &mut Output) {
        if self.track.counts(s).bytes == 0 {
            self.meet(s, segment);
        }
        let arrived = self.track.data(s, segment, t);
        if arrived.arrival == Arrival::Probe {
            return;
        }
        if arrived.arrival == Arrival::Spurious && !self.track.near(s) {
            self.ex.stalled(s, self.track.profile(s).rto_floor);
        }
        if !self.ledger.has_setup() && self.track.handshake().is_seen() {
            // Data without a SYN-ACK in the capture: what there is of a setup ends here.
            self.open_ledger((t, self.track.last_frame()), parts);
        }
        let mut repair = None;
        if arrived.is_progress() && self.is_goodbye_of_server(s, segment, arrived) {
            self.ledger.goodbye(Ends::new(0, u64::from(arrived.new)));
        } else if arrived.is_progress() {
            repair = self.progress(s, segment, t, arrived, missing, parts);
        }
        if arrived.arrival == Arrival::Retransmission {
            let kind = repair.unwrap_or(Repair::Fast);
            if let Some(renamed) = self.track.retransmits(s, segment, t, kind) {
                self.ex.rename_losses(s, renamed);
            }
        }
        self.track.sent(s, segment, t);
    }

    /// The exchange goes on: cuts exchanges, and records the step that led to this segment. Gives how it
    /// repairs a loss, if it does.
    #[inline(always)]
    fn progress(
        &mut self,
        s: End,
        segment: &Segment,
        t: Nanos,
        arrived: Arrived,
        missing: u16,
        parts: &mut Output,
    ) -> Option<Repair> {
        let turns = self.ex.is_active() && self.ex.recorded().last_sender != s;
        let goes_on = turns && self.goes_on_across(s, segment, arrived, missing);
        let begins = s == End::Client && (!self.ex.is_active() || turns && !goes_on);
        if self.ex.is_tls() {
            if self.hear_tls(s, segment, t, arrived, parts) {
                return None;
            }
        } else if !self.tickets.are_over() && self.is_of_session(s, (segment, t), (arrived, missing), parts) {
            return None;
        } else if self.opens_another(s, segment, t, arrived, missing) {
            self.end_exchange(None, parts);
        }
        let mut repair = None;
        if self.ex.is_active() {
            if !self.follows_at_once(s, segment, t, arrived) {
                repair = self.record(s, segment, t, arrived, missing);
            }
        } else {
            repair = self.open_written(s, segment, t, arrived, missing, parts);
        }
        self.ex.progress(s, segment, t, arrived.new);
        self.counts(s, segment, t, begins, arrived.before.nxt);
        if self.ex.is_full() {
            let context = self.ledger.context(&mut self.track, &self.habits);
            self.ex.turn_over(&context, parts.limits());
        }
        repair
    }

    /// This segment with new bytes begins another exchange (rules 7 and 9).
    fn ends_before(&self, s: End, segment: &Segment, t: Nanos) -> bool {
        if let Some(ends) = self.told_to_end(s, segment) {
            return ends;
        }
        let ex = self.ex.recorded();
        match s {
            // A server that probes a shut window has more of its answer (rule 57).
            End::Client => {
                let answered = ex.response_start.is_some();
                let answer = self.track.flow(End::Server);
                answered && !answer.probed && self.has_read_all(segment, t) && !self.had_others_before_it(t)
            }
            End::Server => {
                let spoke = ex.bytes.client == 0 && ex.bytes.server > 0;
                let paused = spoke && t - ex.last > self.track.long_pause(s);
                paused && !self.track.flow(s).probed && !self.track.reopened(s, t)
            }
        }
    }

    /// The client had all of the response when it sent this.
    fn has_read_all(&self, segment: &Segment, t: Nanos) -> bool {
        let server = self.track.flow(End::Server);
        if !segment.ack.before(server.nxt) || !segment.flags.ack() {
            return true;
        }
        // At a server tap the response may still be on its way when the next request passes.
        // Whoever has seen nothing of it has not read it (rule 8).
        let unread = server.nxt.minus(segment.ack).max(0) as u32;
        let some = u64::from(unread) < self.ex.recorded().bytes.server;
        !self.track.near(End::Client)
            && some
            && server.outstanding() > 0
            && server.quiet_at(t) < self.track.reaction_or_zero(End::Client)
            && unread <= server.last_len()
    }

    /// New data that followed its sender's last at once, within the step that is already there: what
    /// [`Conn::record`] would make of it, which is most of a bulk transfer. `false`: nothing was recorded.
    #[inline(always)]
    fn follows_at_once(&mut self, s: End, segment: &Segment, t: Nanos, arrived: Arrived) -> bool {
        let flow = self.track.flow(s);
        let plain = matches!(arrived.arrival, Arrival::New | Arrival::Reordered)
            && self.testimony.is_silent()
            && self.role.is_only();
        // Two partial segments within a burst teach that Nagle's algorithm is off.
        if !plain || arrived.before.small_end == arrived.before.nxt || flow.recovery.is_some() {
            return false;
        }
        let within = burst_within(self.track.rtt_or_zero(), self.track.tick());
        self.ex.goes_on_at_once(s, segment, t, within)
    }

    /// Decides what released the segment, learns from it, and records it. Gives how it repairs a loss, if it does.
    fn record(
        &mut self,
        s: End,
        segment: &Segment,
        t: Nanos,
        arrived: Arrived,
        missing: u16,
    ) -> Option<Repair> {
        let (since, frame) = (self.ex.since(), self.ex.recorded().last_frame);
        // Where it is to be: as a pair, both would be copied.
        let mut before = None;
        let mut step = self.judge(s, segment, t, arrived, missing, &mut before);
        let rtt = self.track.rtt_or_zero();
        if !self.role.is_only() {
            if self.role.tells() {
                self.tell_late_reader(s, before.as_mut().unwrap_or(&mut step));
            }
            let ticks = self.habits.ticks(true);
            let until = Until { sender: s, segment, time: t, since, frame, ticks };
            (before, step) = self.settle(&until, before, step, rtt);
        }
        self.heed_reader(s, &mut step);
        for first in self.before_work(s, before.as_mut().unwrap_or(&mut step)).into_iter().flatten() {
            self.ex.push(&first, rtt);
        }
        if let Some(before) = &before {
            self.ex.push(before, rtt);
        }
        self.ex.push(&step, rtt);
        step.repair()
    }

    /// Decides what released the segment and learns from it: its step, and one `before` it if the wait had two reasons.
    #[inline]
    fn judge(
        &mut self,
        s: End,
        segment: &Segment,
        t: Nanos,
        arrived: Arrived,
        missing: u16,
        before: &mut Option<Step>,
    ) -> Step {
        let since = self.ex.since();
        self.track.was_waited_for(s, segment, t);
        if since.speaker != s {
            self.ex.next_message(t);
            self.track.resumes(s, t);
        }
        let witness = self.testimony.about(s, segment);
        let passage = self.track.passage(s, segment, arrived, missing, since);
        let release = release(&passage, &self.habits, witness.as_ref());
        if let Some(seen) = hindsight(&passage) {
            self.ex.looks_back(s, seen);
        }
        let ex = self.ex.recorded();
        let split = release.may_split()
            && s == End::Client
            && ex.bytes.server == 0
            && passage.waited() > self.track.long_pause(s);
        let mut step = Step::new(&passage, &release, ex.last_frame, split);
        step.held = self.held_back(s);
        self.habits.learn(&passage, &release);
        let idle = !arrived.before.nxt.after(passage.flow.una);
        if let Some(window) = self.track_learns(s, t, arrived.arrival, &release, idle) {
            (step.cwnd, step.before) = window;
        }
        if s == End::Server
            && step.is_turn()
            && let Some(wait) = self.behind_others(&step, segment)
        {
            step.rename(wait);
        }
        if let Some(wait) = self.works_on_others(s, &step).or_else(|| self.still_lacks(s, &mut step)) {
            step.rename(wait);
        }
        if let Some(at) = release.written {
            *before = Some(step.cut_written(at, since.speaker != s));
        }
        if let Some(freed) = release.freed {
            before.get_or_insert(step.cut_freed(freed));
        }
        if let Some((at, wait)) = release.unseen {
            *before = Some(step.cut_unseen(at, wait));
            if since.speaker == s {
                self.ex.turns_unseen();
            }
        }
        step
    }

    /// What a release says of its sender's state; `idle`: nothing was in flight before. Gives what it says of its window.
    fn track_learns(
        &mut self,
        s: End,
        t: Nanos,
        arrival: Arrival,
        release: &Release,
        idle: bool,
    ) -> Option<(CwndState, u32)> {
        match release.wait {
            Wait::Loss { .. } if arrival == Arrival::Retransmission => self.track.sent_again(s),
            Wait::Loss { .. } => self.track.lost_before_tap(s),
            Wait::Acked(acked) if release.ack.is_some() => {
                return Some(self.track.flew(s, acked.flight, release.loss.is_some()));
            }
            // The window falls back in the middle of a message as between two, if the writer paused with nothing in
            // flight (`tcp_slow_start_after_idle_check` is asked for what is newly written).
            Wait::Pause(pause) if idle && !pause.there => self.track.resumes(s, t),
            _ => {}
        }
        None
    }
}

/// What is spoken, where the first bytes say so.
fn protocol_of(segment: &Segment) -> Option<&'static str> {
    let tls = (!segment.tls.is_none()).then_some("tls");
    tls.or_else(|| protocol::beginning(head(segment)).map(|(_, name)| name))
}

fn head(segment: &Segment) -> &[u8] {
    &segment.head[..usize::from(segment.head_len).min(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What lives beside it on the heap (ACKs, steps, sums) is as much again. 16 bytes of it lead to what a
    /// second tap says, 16 are for when the server first answered anything (rules 35 and 70), 32 for what
    /// routers say and for a second SYN-ACK (rules 89 and 91), 64 for when packets left (rule 87), 16 for
    /// when SYNs did by their time stamps (rule 96), 16 for what libraries say within TLS (rule 109), 16 for
    /// what is asked ahead (rule 104), 16 for what goes both ways (rule 112), 8 lead to answers on a kernel's
    /// ticks (rule 115), 64 are for how messages begin (rule 116), 16 lead to what is known to have been sent
    /// and never passed (rule 106), 16 are for the latest flight behind a loss (rule 55), 16 for how large its first
    /// requests were (rule 166).
    #[test]
    fn its_state_is_small() {
        assert!(size_of::<Conn>() <= 3_056, "{}", size_of::<Conn>());
    }
}
