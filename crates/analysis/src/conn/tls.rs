//! The handshake of TLS, which belongs to the setup (rule 12).

use super::Conn;
use crate::output::Output;
use crate::track::{Arrival, Arrived};
use tcpwhy_base::{End, Nanos, Segment};

impl Conn {
    /// A segment within TLS's handshake, or the one that ends it. `true`: it belongs to that, too, and to no exchange.
    pub(super) fn hear_tls(
        &mut self,
        s: End,
        segment: &Segment,
        t: Nanos,
        arrived: Arrived,
        parts: &mut Output,
    ) -> bool {
        if !segment.tls.is_none() {
            self.who.speaks("tls");
        }
        let ends = self.ex.tls_ends(s, segment);
        self.tickets.hear_handshake(s, segment, ends);
        if !ends {
            return false;
        }
        if self.ex.asked_again {
            self.tickets.agree();
        }
        self.end_tls(s, segment, t, arrived, parts);
        self.is_finished_alone(s, segment, arrived)
    }

    /// The trip to the segment that ends the TLS handshake belongs to it.
    fn end_tls(&mut self, s: End, segment: &Segment, t: Nanos, arrived: Arrived, parts: &mut Output) {
        let arrived = Arrived { arrival: Arrival::New, ..arrived };
        let trips = self.ex.recorded().answers();
        let mut before = None;
        let step = self.judge(s, segment, t, arrived, 0, &mut before);
        let rtt = self.track.rtt_or_zero();
        if let Some(before) = before {
            self.ex.push(&before, rtt);
        }
        self.ex.push(&step.without_payload(), rtt);
        self.ex.ends_at(segment, t);
        // Of TLS its last segment is a record, too.
        self.close_tls(trips, segment.tls.is_none(), parts);
    }

    pub(super) fn close_tls(&mut self, trips: u32, refused: bool, parts: &mut Output) {
        self.ledger.asks_again(self.ex.asked_again);
        let recorded = self.ex.take();
        self.ledger.close_tls((recorded, trips, refused), &mut self.track, &self.habits, parts);
    }
}
