//! The end of an exchange, and of the connection.

use super::Conn;
use crate::exchange::may_close;
use crate::findings::Finished;
use crate::output::Output;
use crate::parts::{Ending, Unfinished, how_unfinished, is_goodbye, summary};
use crate::result::Quality;
use crate::track::{Arrival, Arrived};
use tcpwhy_base::{End, Nanos, Program, Segment};

impl Conn {
    /// In which capture it began.
    pub(crate) fn file(&self) -> u16 {
        self.who.file
    }

    /// Ends the exchange that is recorded; `unfinished` is how it ended if not by a response.
    pub(super) fn end_exchange(&mut self, unfinished: Option<Unfinished>, parts: &mut Output) {
        let read = self.read_late();
        let protocol = self.who.protocol;
        if unfinished.is_none() && read.is_none() && parts.takes_short_cuts() {
            let host = (&mut self.track, &self.habits);
            if self.ledger.finish_plain(self.ex.recorded(), protocol, host, parts) {
                self.ex.forget(parts);
                return;
            }
        }
        let recorded = self.ex.take();
        let mut ending = Ending { track: &mut self.track, habits: &self.habits, protocol, unfinished, read };
        self.ledger.finish_exchange(recorded, &mut ending, parts);
    }

    /// Ends the connection: closes what is open and makes its summary (without the parts given away). Nothing
    /// comes after that. `watched`: its capture ended before it, and when that was.
    pub(crate) fn finish(&mut self, watched: Option<Nanos>, parts: &mut Output) -> Finished {
        self.hears_of_lost();
        if self.ex.is_tls() {
            self.close_tls(self.ex.recorded().answers(), false, parts);
            self.ledger.hangs(&self.track);
        }
        self.end_tickets(parts);
        let goodbye =
            || is_goodbye(self.ex.recorded(), &self.track, self.who.protocol, self.ledger.may_be_h2());
        // Behind a handshake of TLS whose client has asked for nothing the first words may be the last.
        let later = self.ledger.has_setup() && (!self.ledger.is_first() || !self.tickets.are_over());
        if self.ex.is_active() && later && goodbye() {
            // Its time is that after the last byte.
            self.ledger.goodbye(self.ex.take().bytes);
        } else if self.ex.is_active() {
            let who = (self.who.protocol, self.is_asked());
            let unfinished = how_unfinished(self.ex.recorded(), &self.track, who, watched);
            if let Some(until) = unfinished.and_then(|how| how.waits_until) {
                self.track.goes_on_until(until);
            }
            // An answer may be read behind the last packet.
            if let Some(read) = self.read_late().filter(|_| unfinished.is_none()) {
                self.track.goes_on_until(read);
            }
            self.end_exchange(unfinished, parts);
        } else {
            self.finish_silent_setup(parts);
        }
        self.ledger.closing_gap(&self.track, parts);
        self.ledger.sum_setup(self.track.rtt(), parts);
        for what in self.habits.acquitted() {
            self.ledger.acquit(what, parts);
        }
        summary(self.who, &mut self.track, &self.habits, &mut self.ledger)
    }

    /// Its client is the end that asks: it spoke first, or it is known what it speaks to.
    fn is_asked(&self) -> bool {
        let program = self.who.programs[End::Server].or_else(|| Program::of_port(self.who.ends.server.port));
        !self.ledger.is_greeted() || program.is_some()
    }

    /// A `close_notify` with which a server answers its client's FIN: nobody waits for it (rule 40).
    #[inline]
    pub(super) fn is_goodbye_of_server(&self, s: End, segment: &Segment, arrived: Arrived) -> bool {
        let short = s == End::Server && may_close(segment) && arrived.arrival == Arrival::New;
        short
            && self.who.protocol == Some("tls")
            && self.ledger.has_setup()
            && self.track.fin_of(End::Client).is_some()
            && segment.ack == self.track.flow(End::Client).nxt
            && (!self.ex.is_active() || self.ex.recorded().bytes.server > 0)
    }

    /// Nothing but SYNs (and perhaps a reset) was seen: the setup is all there is.
    fn finish_silent_setup(&mut self, parts: &mut Output) {
        if !self.ledger.has_setup() {
            let last = self.track.handshake().last_packet();
            self.open_ledger(last.unwrap_or((self.track.now(), self.track.last_frame())), parts);
        }
        if self.ledger.has_setup() && self.track.counts(End::Client).packets == 0 {
            self.track.limit(Quality::ONE_SIDED);
        }
    }
}
