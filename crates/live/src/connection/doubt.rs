//! What looks do not tell while they are made: whose a wait was, which only its end or the threads of the program show.

use super::{Connection, Role};
use crate::judge::{is_lone, think};
use crate::sample::Sample;
use crate::split::{Share, Where};
use tcpwhy_base::{Cause, Nanos};

impl Connection {
    /// Nothing tells whose turn it is in the pause that goes on, but perhaps its threads.
    pub(crate) fn is_unsure(&self) -> bool {
        self.pause.unsure().is_some()
    }

    /// Its program waits for nothing from it, in that pause.
    pub(crate) fn is_elsewhere(&mut self) {
        if let Some((share, to)) = self.pause.settle(self.role == Role::Client) {
            self.move_booked(share, to);
        }
    }

    /// Why a part of the last interval is unexplained that is worth a word: nothing told whose turn it was.
    pub fn doubt(&self) -> Option<&'static str> {
        let unsure = self.interval.of(Cause::Unexplained, Where::Here);
        if unsure.times(20) < self.interval.total() || unsure == Nanos::ZERO {
            return None;
        }
        Some(match self.pause.in_pieces {
            true => "bytes went the same way with pauses between them, and nothing tells whether more follow",
            false => {
                "bytes went both ways within one tick of the kernel's clock (up to 10 ms), and neither ACKs nor the \
                 calls that its program is in tell which were the last"
            }
        })
    }

    /// A lone packet whose ACK came with bytes, or a program's next ones: what it took beyond a trip, while no look
    /// knew that yet, was the other end's.
    pub(super) fn kept_by_peer(&mut self, now: &Sample) {
        let (Some(then), Some(info)) = (self.sample.info, now.info) else { return };
        let with_bytes =
            info.bytes_received > then.bytes_received && info.bare_segs_in() == then.bare_segs_in();
        if info.bare_segs_in().is_none()
            || !with_bytes
            || !is_lone(&self.sample)
            || info.min_rtt <= Nanos::ZERO
        {
            return;
        }
        let to = (think(Where::Peer, self.role == Role::Client), Where::Peer);
        for share in self.pending.shares().into_iter().filter(|s| s.cause == Cause::PathDelay) {
            let time = share.time - info.min_rtt;
            if time > info.min_rtt.part(4) {
                self.move_booked(Share { time, ..share }, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Known;
    use crate::connection::tests::{ms, sample};

    /// The first request of a connection: no look knows yet that its ACK waits for the answer.
    #[test]
    fn what_the_first_answer_took_was_the_servers() {
        let at = |t: i64, over: bool, bare: u32| {
            sample(|s, i| {
                (i.busy, i.last_data_sent) = (Nanos::millis(t), Nanos::millis(t));
                (i.min_rtt, i.rtt) = (Nanos::millis(1), Nanos::millis(1));
                (i.segs_in, i.data_segs_in, i.bytes_acked) = (Some(1), Some(0), 1);
                match over {
                    false => (s.wqueue, i.unacked) = (100, 1),
                    true => {
                        (i.segs_in, i.data_segs_in) = (Some(2 + bare), Some(1));
                        (i.bytes_acked, i.bytes_received, i.rtt) = (101, 100, Nanos::micros(1875));
                    }
                }
            })
        };
        for (bare, expected) in [(0, Cause::ServerThink), (1, Cause::PathDelay)] {
            let mut c = Connection::new(at(0, false, 0), Role::Client, true);
            c.observe(&at(7, false, 0), Nanos::millis(7), Known::default());
            assert_eq!(ms(&c.total), [(Cause::PathDelay, 7)]);
            c.observe(&at(8, true, bare), Nanos::millis(1), Known::default());
            assert_eq!(ms(&c.total)[0].0, expected, "{:?}", c.total);
            assert_eq!(c.total.total(), Nanos::millis(8));
        }
    }

    /// A question and the answer before it within one tick, and then its server works for long.
    #[test]
    fn a_query_that_goes_on_is_its_servers() {
        let at = |t: i64, segs_in: u32| {
            sample(|_, i| {
                (i.bytes_received, i.bytes_acked) = (300, 300);
                let age = Nanos::millis(t);
                (i.last_data_recv, i.last_data_sent, i.last_ack_recv) = (age, age, age);
                (i.segs_in, i.data_segs_in) = (Some(segs_in), Some(3));
            })
        };
        // Its last bytes were acknowledged by the question: there was no ACK but that of the handshake.
        // Or there was one.
        for (segs_in, told) in [(4, true), (5, false)] {
            let mut c = Connection::new(at(100, segs_in), Role::Server, false);
            for look in 1..=9 {
                c.observe(&at(100 + 100 * look, segs_in), Nanos::millis(100), Known::default());
            }
            let cause = if told { Cause::ServerThink } else { Cause::Unexplained };
            assert_eq!((ms(&c.total), c.is_unsure()), (vec![(cause, 900)], !told));
            let mut silent = c.clone();
            silent.mark();
            let why = silent.doubt();
            assert!(
                if told { why.is_none() } else { why.is_some_and(|w| w.contains("one tick")) },
                "{why:?}"
            );
            // Its threads wait for nothing.
            c.is_elsewhere();
            c.observe(&at(1100, segs_in), Nanos::millis(100), Known::default());
            c.mark();
            assert_eq!((ms(&c.total), c.doubt()), (vec![(Cause::ServerThink, 1000)], None));
            assert_eq!(c.interval, c.total);
        }
    }
}
