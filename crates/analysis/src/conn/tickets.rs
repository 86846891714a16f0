//! What libraries at both ends say to each other before the application's words, or among the first of them
//! (rule 109): in TLS 1.3 the client's Finished asks for nothing, and the server's tickets answer nothing;
//! nor do SETTINGS of HTTP/2, within TLS or in the clear.

use super::{Conn, head};
use crate::exchange::Mark;
use crate::output::Output;
use crate::release::{AT_ONCE, Wait, burst_within, release};
use crate::rest::at_rest;
use crate::track::{Arrived, Moment, Since};
use tcpwhy_base::protocol::{
    GREET_WITHIN_TLS, H2_PREFACE_LEN, SETTINGS_ACK, SETTINGS_ACK_LEN, TLS_ADDS, TLS_HEAD, is_settings,
};
use tcpwhy_base::{End, Ends, Nanos, Segment, Tls};

/// How far they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// There is none of it, or no more.
    #[default]
    Over,
    /// The server has encrypted a part of its handshake: this is TLS 1.3.
    Agreed,
    /// The client has said its Finished, and nothing else.
    Finished,
    /// It has asked, too.
    Asked,
    /// The server has said what may be tickets.
    Perhaps,
    /// It answers; the client may have to say yet that it has the server's settings.
    Answered,
}

at_rest! { enum Stage { Over, Agreed, Finished, Asked, Perhaps, Answered } }

/// What is known of tickets and settings.
#[derive(Clone, Debug, Default)]
pub(super) struct Tickets {
    stage: Stage,
    /// The client has changed to the keys of the session, and said nothing of its handshake in the clear since then.
    changed: bool,
    /// This is TLS 1.3, in which there are tickets; in older ones they belong to the handshake.
    newer: bool,
    /// How often the server has said what may be the settings of HTTP/2.
    settings: u8,
    /// They had left before the client's last words came to their server, or two of them are as long: what
    /// the client says next is no answer to them.
    crossed: bool,
    /// Payload of the first segment of what may be tickets.
    len: u32,
    /// The exchange before that.
    before: Option<Box<Mark>>,
}

at_rest! { Tickets { stage, changed, newer, settings, crossed, len, before } }

impl Tickets {
    #[inline(always)]
    pub(super) fn are_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// A segment of the handshake, or the one with application data that `ends` it. This is TLS 1.3 if a part
    /// of the server's handshake is encrypted (RFC 8446, 2), or if the client changes keys and says no more
    /// of it in the clear (D.4; RFC 5246, 7.3): where the rest of the server's was not captured.
    pub(super) fn hear_handshake(&mut self, s: End, segment: &Segment, ends: bool) {
        let tls = segment.tls;
        if s == End::Server {
            if tls.has(Tls::DATA) && !ends {
                self.agree();
            }
        } else if tls.has(Tls::HANDSHAKE) {
            self.changed = false;
        } else if tls.has(Tls::CHANGE_CIPHER) {
            self.changed = true;
        }
        if ends && self.changed {
            self.agree();
        }
    }

    /// This is TLS 1.3.
    pub(super) fn agree(&mut self) {
        (self.stage, self.newer) = (Stage::Agreed, true);
    }

    /// HTTP/2 has begun in the clear.
    pub(super) fn begin_in_the_clear(&mut self) {
        self.stage = Stage::Asked;
    }

    /// The client has ended the handshake, and asks for nothing yet.
    fn await_request(&self) -> bool {
        self.stage == Stage::Finished
    }

    fn are_said(&mut self, len: u32, mark: Mark, crossed: bool) {
        self.crossed = crossed || len == self.len;
        (self.stage, self.len, self.before) = (Stage::Perhaps, len, Some(Box::new(mark)));
    }

    fn end(&mut self) {
        *self = Tickets::default();
    }
}

impl Conn {
    /// The handshake has ended with this segment, and nothing was asked by it.
    pub(super) fn is_finished_alone(&mut self, s: End, segment: &Segment, arrived: Arrived) -> bool {
        let newer = self.tickets.newer && s == End::Client;
        if !newer && !self.ledger.may_be_h2() {
            self.tickets.end();
            return false;
        }
        (self.tickets.stage, self.tickets.newer) = (Stage::Asked, newer);
        let greets = GREET_WITHIN_TLS.contains(&self.who.ends.server.port);
        if greets || !newer || !segment.tls.has(Tls::FINISHED) {
            return false;
        }
        self.tickets.stage = Stage::Finished;
        self.ledger.goodbye(Ends::new(u64::from(arrived.new), 0));
        true
    }

    /// New bytes behind the handshake. `true`: they are no part of an exchange; what was none before does not
    /// go on as an answer.
    #[cold]
    pub(super) fn is_of_session(
        &mut self,
        s: End,
        (segment, t): (&Segment, Nanos),
        (arrived, missing): (Arrived, u16),
        parts: &mut Output,
    ) -> bool {
        let server = s == End::Server;
        match self.tickets.stage {
            Stage::Finished if !server && self.ex.is_active() => {
                let held = self.held_behind_finished(s, segment, arrived, missing).is_some();
                self.forget_greeting(held || !self.replies_at_once(segment, t), parts);
            }
            Stage::Finished if self.ex.is_active() => self.look_back(s, (segment, t), (arrived, missing)),
            Stage::Asked if server => self.may_be_tickets(segment, t),
            Stage::Perhaps | Stage::Answered if !server && self.acknowledges_settings(segment) => {
                self.ledger.goodbye(Ends::new(u64::from(arrived.new), 0));
                return true;
            }
            Stage::Perhaps => self.look_back(s, (segment, t), (arrived, missing)),
            Stage::Answered if !server => self.tickets.end(),
            _ => {}
        }
        false
    }

    /// The client speaks as soon as it has heard all that the server said.
    fn replies_at_once(&self, segment: &Segment, t: Nanos) -> bool {
        let trip = self.track.reaction_or_zero(End::Client);
        let heard = segment.flags.ack() && !segment.ack.before(self.track.flow(End::Server).nxt);
        heard && t - self.ex.recorded().last <= trip + trip.part(8) + AT_ONCE
    }

    /// What the server has said since the client's Finished was no greeting if it is `unheard`, without a
    /// reply, and came before the client's timer would have run out: tickets.
    fn forget_greeting(&mut self, unheard: bool, parts: &mut Output) {
        let soon = self.ex.recorded().last - self.ledger.upto().0 <= self.track.rto(End::Client);
        if unheard && soon {
            self.ledger.goodbye(Ends::new(0, self.ex.recorded().bytes.server));
            self.ex.forget(parts);
        } else {
            self.tickets.end();
        }
    }

    /// The connection ends: what the server has said since the client's Finished may be all there is.
    pub(super) fn end_tickets(&mut self, parts: &mut Output) {
        if self.tickets.await_request() && self.ex.is_active() {
            self.forget_greeting(true, parts);
        }
    }

    /// A small record of the server, the first since the request: tickets, or the settings of HTTP/2, or the answer.
    fn may_be_tickets(&mut self, segment: &Segment, t: Nanos) {
        let asked = self.ex.is_active() && self.ex.recorded().bytes.client > 0;
        if asked && self.ex.recorded().response_start.is_none() {
            // What came in the middle of the request was no answer.
            self.forget_answer();
        }
        let small = self.tickets.newer && segment.len < self.track.flow(End::Server).mss;
        let small = small && segment.tls.has(Tls::DATA) && !segment.grants();
        if asked && (small || self.may_be_settings(segment)) {
            let (trip, ex) = (self.track.reaction_or_zero(End::Server), self.ex.recorded());
            let crossed = ex.last_sender == End::Client && t - ex.last < trip - trip.part(8);
            self.tickets.are_said(segment.len, self.ex.mark(), crossed);
        } else {
            self.answers();
        }
    }

    /// What the server says may be its settings of HTTP/2, or that it has the client's: twice at most.
    fn may_be_settings(&mut self, segment: &Segment) -> bool {
        let told = if self.speaks_h2() { is_settings(head(segment)) } else { self.may_be_h2(segment) };
        let may_be = told && self.tickets.settings < 2 && !segment.grants() && segment.len <= H2_PREFACE_LEN;
        self.tickets.settings += u8::from(may_be);
        may_be
    }

    /// The client says that it has the server's settings of HTTP/2, and asks for nothing.
    fn acknowledges_settings(&self, segment: &Segment) -> bool {
        if self.speaks_h2() {
            return segment.len == SETTINGS_ACK_LEN && head(segment).starts_with(&SETTINGS_ACK);
        }
        let is_ack = |added| segment.len == TLS_HEAD + SETTINGS_ACK_LEN + added;
        self.may_be_h2(segment) && TLS_ADDS.into_iter().any(is_ack)
    }

    /// HTTP/2 is spoken in the clear.
    fn speaks_h2(&self) -> bool {
        self.who.protocol == Some("http/2")
    }

    /// It may be HTTP/2 within TLS.
    fn may_be_h2(&self, segment: &Segment) -> bool {
        self.ledger.may_be_h2() && segment.tls.has(Tls::DATA)
    }

    /// What may have been tickets is followed by this. The server's next words after a pause are its answer,
    /// or tickets as long as the first; and a client that had not said all of its request goes on with it.
    fn look_back(&mut self, s: End, (segment, t): (&Segment, Nanos), (arrived, missing): (Arrived, u16)) {
        let (since, said) = (self.ex.since(), self.ex.recorded().bytes.server + u64::from(segment.len));
        let at_once = t - since.time <= burst_within(self.track.rtt_or_zero(), self.track.tick());
        let alike = segment.len == self.tickets.len;
        // It was in the middle of its request, or has not heard them.
        let (client, server) = (self.track.flow(End::Client), self.track.flow(End::Server));
        let goes_on = client.last.is_some_and(|l| !l.psh) || segment.ack.before(server.nxt);
        let few = !segment.grants() && (alike || said < u64::from(server.mss));
        match (s, self.tickets.before.take()) {
            // The same words go on.
            (End::Server, before) if at_once && few => {
                self.tickets.crossed |= alike;
                self.tickets.before = before;
            }
            (End::Server, Some(mark)) if !at_once => {
                // What Nagle's algorithm held for the ACK of the first one is the rest of these words.
                let goes_back =
                    self.is_held(s, segment, arrived, missing, since) || self.forget_tickets(&mark);
                if goes_back && (alike || self.may_be_settings(segment)) {
                    self.tickets.before = Some(mark);
                } else {
                    self.answers();
                }
            }
            // They may have been an answer all the same, if nothing else comes.
            (End::Client, Some(mark)) if (goes_on || self.tickets.crossed) && self.ex.go_back_to(&mark) => {
                self.tickets.stage = Stage::Asked;
            }
            (End::Server, _) => self.answers(),
            _ => self.tickets.end(),
        }
    }

    /// This is the answer.
    fn answers(&mut self) {
        self.tickets.end();
        if self.ledger.may_be_h2() || self.speaks_h2() {
            self.tickets.stage = Stage::Answered;
        }
    }

    /// The exchange is what it was before them, if it can be.
    fn forget_tickets(&mut self, mark: &Mark) -> bool {
        let goes_back = self.ex.go_back_to(mark);
        if goes_back {
            self.forget_answer();
        }
        goes_back
    }

    /// The bytes of what was no answer belong to the setup.
    fn forget_answer(&mut self) {
        let bytes = self.ex.forget_answer();
        self.ledger.goodbye(Ends::new(0, bytes));
    }

    /// Nagle's algorithm held it.
    fn is_held(&self, s: End, segment: &Segment, arrived: Arrived, missing: u16, since: Since) -> bool {
        let passage = self.track.passage(s, segment, arrived, missing, since);
        matches!(release(&passage, &self.habits, None).wait, Wait::Nagle { .. })
    }

    /// Nagle's algorithm held the first request since the client's Finished, behind which it was written
    /// (rule 109): since then.
    fn held_behind_finished(
        &self,
        s: End,
        segment: &Segment,
        arrived: Arrived,
        missing: u16,
    ) -> Option<Moment> {
        let (time, frame) = self.ledger.upto();
        let since = Since { time, speaker: s, message: time, recovered: None };
        self.is_held(s, segment, arrived, missing, since).then_some((time, frame))
    }

    /// The client's first words since its Finished: since when they were held, if they were.
    pub(super) fn asks(
        &mut self,
        s: End,
        segment: &Segment,
        arrived: Arrived,
        missing: u16,
    ) -> Option<Moment> {
        if s != End::Client || !self.tickets.await_request() {
            return None;
        }
        self.tickets.stage = Stage::Asked;
        self.held_behind_finished(s, segment, arrived, missing)
    }

    /// The server speaks first, after the client's Finished: tickets, or a greeting.
    pub(super) fn awaits_greeting(&self) -> bool {
        self.tickets.await_request()
    }

    /// It has begun with this segment.
    pub(super) fn is_greeted(&mut self, segment: &Segment) {
        if self.tickets.await_request() {
            (self.tickets.len, self.tickets.before) = (segment.len, Some(Box::new(self.ex.mark())));
        }
    }
}
