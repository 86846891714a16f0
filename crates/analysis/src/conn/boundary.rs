//! Where exchanges begin and end by what kernels say of writes and reads (rule 76): at the client's write,
//! and at its read of the last byte. A kernel is believed beside its own host.

use super::{Conn, head};
use crate::output::Output;
use crate::profile::WAKE_UP;
use crate::release::{AT_ONCE, Wait, is_beside, release};
use crate::step::Step;
use crate::track::{Arrived, Moment, Repair};
use tcpwhy_base::{End, Held, Nanos, Segment, Tls, protocol};

/// So long a client waits for a server that speaks first (RFC 5321, 4.5.3.2.1).
const GREETING: Nanos = Nanos::secs(300);

impl Conn {
    /// The kernel of `s` can be asked, on the clock of this tap.
    fn is_told_of(&self, s: End) -> bool {
        !self.testimony.is_silent() && is_beside(&self.track.path_of(s))
    }

    /// The same packet was seen here, under other VLAN tags or tunnel ids (rule 30). In another file it may
    /// have been seen at the other end.
    pub(crate) fn has_twin(&self, segment: &Segment) -> bool {
        self.who.file == segment.file && self.track.has_twin(self.end_of(segment), segment)
    }

    /// The exchange that goes on, once it has an answer: when it began, and its last progress.
    pub(crate) fn ongoing(&self) -> Option<(Nanos, Nanos)> {
        let ex = self.ex.recorded();
        let answered = self.ex.is_active() && !self.ex.is_tls() && ex.bytes.server > 0;
        answered.then_some((ex.start, ex.last))
    }

    /// What held back the bytes of `s` as the last ACK came in.
    #[inline]
    pub(super) fn held_back(&self, s: End) -> Option<Held> {
        if self.is_told_of(s) { self.testimony.held(s) } else { None }
    }

    /// Whether this segment of `s`, which brings new bytes, begins another exchange; `None`: no kernel says.
    pub(super) fn told_to_end(&self, s: End, segment: &Segment) -> Option<bool> {
        if !self.is_told_of(s) {
            return None;
        }
        let write = self.testimony.write_of(s, segment.seq)?;
        let ex = self.ex.recorded();
        match s {
            End::Client => {
                let answer = self.track.flow(End::Server);
                // What was written before all of the answer that has come was read asks for nothing new; and
                // what the server had not read as it last wrote is still to be answered.
                let read = !write.read?.before(answer.nxt);
                let waiting = self.testimony.is_unanswered(End::Client, segment.seq);
                Some(ex.bytes.server > 0 && !answer.probed && read && !waiting)
            }
            // It was there before the pause: what held it was no pause of its application.
            End::Server => (write.at <= ex.last + AT_ONCE).then_some(false),
        }
    }

    /// This segment ends the exchange that goes on, and opens another.
    #[inline(always)]
    pub(super) fn opens_another(
        &mut self,
        s: End,
        segment: &Segment,
        t: Nanos,
        arrived: Arrived,
        missing: u16,
    ) -> bool {
        let ends = self.ex.is_active() && arrived.new > 0 && self.ends_before(s, segment, t);
        if ends && s == End::Client {
            self.hears_of_lost();
        }
        // Who still waits for bytes that never came has no answer yet (rule 106).
        ends && (s == End::Server || self.track.never_came(End::Server, t).is_none())
            && !self.ex.streams()
            && !self.is_held_across(s, segment, arrived, missing)
    }

    /// Nagle's algorithm held it for the ACK of a small segment of the exchange that goes on (rule 78): what
    /// came across meanwhile was not what its writer had waited for.
    fn is_held_across(&self, s: End, segment: &Segment, arrived: Arrived, missing: u16) -> bool {
        let since = self.ex.since();
        if !self.track.has_acked_small(s, arrived.before.small_end, since.time) {
            return false;
        }
        let passage = self.track.passage(s, segment, arrived, missing, since);
        matches!(release(&passage, &self.habits, None).wait, Wait::Nagle { .. })
    }

    pub(super) fn open(&mut self, s: End, segment: &Segment, t: Nanos, parts: &mut Output) {
        let asked = segment.tls.has(Tls::HANDSHAKE) || protocol::asks_for_encryption(head(segment));
        let hello = s == End::Client && asked;
        let first = self.ledger.is_first() && self.track.counts(End::Server).bytes == 0;
        let tls = hello && first && self.ledger.has_setup();
        self.track.resumes(s, t);
        if tls {
            if !segment.tls.is_none() {
                self.who.speaks("tls");
            }
            self.ledger.open_tls(t, segment, &self.track);
        } else {
            self.ledger.gap_until(s, (t, segment.frame), &self.track, parts);
        }
        self.ex.open(s, segment, t, tls, || parts.spare_steps());
    }

    /// Opens an exchange when it was written, where that is known. Gives how this segment repairs a loss, if it does.
    pub(super) fn open_written(
        &mut self,
        s: End,
        segment: &Segment,
        t: Nanos,
        arrived: Arrived,
        missing: u16,
        parts: &mut Output,
    ) -> Option<Repair> {
        if let Some(since) = self.greets(s, t) {
            self.open(s, segment, since.0, parts);
            self.ex.asked_by(s.peer(), since);
            let asked = self.asks_in_syn(since.0, 0);
            self.is_greeted(segment);
            let repair = self.record(s, segment, t, arrived, missing);
            if asked {
                self.ex.was_at_work();
            }
            return repair;
        }
        self.track.was_waited_for(s, segment, t);
        let held = self.asks(s, segment, arrived, missing);
        let written = held.map(|h| h.0).or_else(|| self.written_before(s, segment, t));
        self.open(s, segment, written.unwrap_or(t), parts);
        if s == End::Client {
            self.asks_in_syn(t, arrived.new);
        }
        if let Some(since) = held {
            self.ex.asked_by(s, since);
        }
        written.and_then(|_| self.record_opening(s, segment, t, arrived, missing))
    }

    /// These are the first bytes of a connection whose opening was seen, and a server's: who opened it waited
    /// for them since then (rule 9), or would have given up.
    fn greets(&self, s: End, t: Nanos) -> Option<Moment> {
        let first = s == End::Server && self.ledger.is_first() && self.ledger.has_setup();
        let on_syn = self.track.handshake().client_bytes();
        let silent = first && (self.track.counts(End::Client).bytes == on_syn || self.awaits_greeting());
        let opened = self.ledger.upto();
        (silent && t > opened.0 && t - opened.0 <= GREETING).then_some(opened)
    }

    /// What the client's SYN carried and the server took is the request, or its beginning (TCP Fast Open, RFC
    /// 7413), if the client has sent nothing since but `new` bytes. Gives whether there was any.
    fn asks_in_syn(&mut self, t: Nanos, new: u32) -> bool {
        let on_syn = self.track.handshake().client_bytes();
        let asks = on_syn > 0
            && self.ledger.is_first()
            && self.track.counts(End::Client).bytes == on_syn + u64::from(new)
            && self.ledger.gives_request(on_syn);
        if asks {
            self.ex.asked_before(on_syn, t);
        }
        asks
    }

    /// When what opens an exchange was written, if that was earlier than it left, and not before the last one ended.
    fn written_before(&self, s: End, segment: &Segment, t: Nanos) -> Option<Nanos> {
        if !self.is_told_of(s) || !segment.tls.is_none() {
            return None;
        }
        let write = self.testimony.write_of(s, segment.seq)?;
        (t - write.at > AT_ONCE && write.at > self.ledger.upto().0).then_some(write.at)
    }

    /// What opened the exchange left later than it had been written: what it waited for is its first step.
    fn record_opening(
        &mut self,
        s: End,
        segment: &Segment,
        t: Nanos,
        arrived: Arrived,
        missing: u16,
    ) -> Option<Repair> {
        let mut before = None;
        let step = self.judge(s, segment, t, arrived, missing, &mut before);
        let rtt = self.track.rtt_or_zero();
        if let Some(before) = before {
            self.ex.push(&before.opens(), rtt);
        }
        let step = step.opens();
        self.ex.push(&step, rtt);
        step.repair()
    }

    /// What of the wait for an answer of `s` was before its application had all that it answers, cut off from it.
    pub(super) fn before_work(&self, s: End, turn: &mut Step) -> [Option<Step>; 2] {
        [self.late_reader(s, turn), self.unended(s, turn)]
    }

    /// What the application of `s` had not read yet it could not answer: cuts that off from the wait for its answer.
    fn late_reader(&self, s: End, turn: &mut Step) -> Option<Step> {
        self.read_within(s, turn).map(|read| turn.cut_unread(read))
    }

    /// The same, for the other tap, which sees the wait from afar: says so of the wait.
    pub(super) fn tell_late_reader(&self, s: End, turn: &mut Step) {
        if let Some(read) = self.read_within(s, turn) {
            turn.unread = Some(read - turn.start);
        }
    }

    /// The client closed its side later than a program does that has nothing more to say, and before the answer
    /// came: a server that reads up to the end had not all of the request until then (rule 144). Cuts that off from the
    /// wait for its answer, where no protocol is known, whose requests tell themselves where they end.
    fn unended(&self, s: End, turn: &mut Step) -> Option<Step> {
        let closed =
            self.track.fin_of(End::Client).filter(|_| s == End::Server && self.who.protocol.is_none())?;
        let late = closed - turn.start > self.track.rtt_or_zero().max(WAKE_UP);
        let within = matches!(turn.wait, Wait::Turn { .. }) && late && closed < turn.end;
        within.then(|| turn.cut_unended(closed))
    }

    /// When the application of `s` had read what it was to answer, if that was late.
    fn read_within(&self, s: End, turn: &Step) -> Option<Nanos> {
        if !turn.is_turn() || !self.is_told_of(s) {
            return None;
        }
        let read = self.testimony.read_all(s, turn.start, self.track.data_end(s.peer()))?;
        (read < turn.end).then_some(read)
    }

    /// When the client had read all of the response that is the last, if that was late.
    pub(super) fn read_late(&self) -> Option<Nanos> {
        let ex = self.ex.recorded();
        if ex.bytes.server == 0 || ex.last_sender != End::Server || !self.is_told_of(End::Client) {
            return None;
        }
        self.testimony.read_all(End::Client, ex.last, self.track.data_end(End::Server))
    }
}
