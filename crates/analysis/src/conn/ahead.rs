//! Requests that are sent ahead, before the answers to those before them have come (rule 104). An answer says
//! in its ACK what its sender had received when it left: what that does not cover, it does not answer, and
//! the server had something before it that was sent earlier.

use super::Conn;
use crate::parts::GRANTED_WITHIN_TLS;
use crate::release::{Doubt, Wait};
use crate::rest::at_rest;
use crate::step::Step;
use tcpwhy_base::{End, Nanos, Segment, Seq};

/// So many writes are remembered; who has more on their way is not judged by them.
const WRITES: usize = 16;
/// The most of so many answers in a row is how much their reader asks ahead: in a row of four somebody who
/// asks whenever an answer comes shows it, though answers and requests pass each other now before the tap and
/// now behind it. (Not derived: more of them would remember what a reader that asks less by now had done
/// before.)
const ROW: usize = 4;

/// The end of a write, and when it passed.
type Write = (Seq, Nanos);

/// What one end has sent ahead of the answers, since some answer has shown that it does.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// The latest writes, in a ring, and how many there were.
    writes: [Write; WRITES],
    count: u32,
    /// Since when all of them are here.
    since: Nanos,
    /// It has spoken last, and this was acknowledged when it began to: the rest no message of the other end
    /// had answered by then.
    speaks: bool,
    heard: Seq,
    /// The latest of its segments grants a window above TCP (rule 98): what comes may have waited for that.
    /// What the other end had sent when it began to speak.
    grants: bool,
    sent: Seq,
    /// How many writes, and bytes, the latest answers in a row did not cover, and how many writes more had
    /// come than answers.
    rows: [(u32, u32, u32); ROW],
    row: u32,
}

at_rest! { Ahead { writes, count, since, speaks, heard, grants, sent, rows, row } }

impl Ahead {
    /// It begins at this moment.
    pub(super) fn begins(t: Nanos) -> Ahead {
        Ahead { since: t, ..Ahead::default() }
    }

    /// Data passed, which `ends` a write, or not; `acknowledged` is what the other end has had, and so far it
    /// has `sent`.
    pub(super) fn speaks(&mut self, segment: &Segment, t: Nanos, acknowledged: Seq, sent: Seq, ends: bool) {
        // Within TLS a short request looks like a grant, which it can be behind as much as is granted alone.
        let much = sent.minus(self.sent).max(0).cast_unsigned() >= GRANTED_WITHIN_TLS;
        self.grants = segment.grants() && (segment.tls.is_none() || much);
        if !self.speaks {
            (self.speaks, self.heard, self.sent) = (true, acknowledged, sent);
        }
        if ends && !self.grants {
            self.writes[self.count as usize % WRITES] = (segment.seq + segment.len, t);
            self.count = self.count.saturating_add(1);
        }
    }

    /// The other end has spoken.
    pub(super) fn hears(&mut self) {
        self.speaks = false;
    }

    /// The latest first.
    fn latest(&self) -> impl Iterator<Item = &Write> {
        let n = self.count as usize;
        (1..=n.min(WRITES)).map(move |back| &self.writes[(n - back) % WRITES])
    }

    /// An answer that acknowledges `ack` ended the wait from `start` to `t`, all that was written ends at
    /// `nxt`, there and back it is `trip` at least, and so many writes more than answers had been counted:
    /// since when the other end had, all the time, a write before it that nothing had answered. `None`:
    /// nothing says so.
    pub(super) fn is_answered(
        &mut self,
        (ack, nxt): (Seq, Seq),
        (start, t): (Nanos, Nanos),
        trip: Nanos,
        counted: u32,
    ) -> Option<Nanos> {
        let under_way = || self.latest().take_while(|write| write.0.after(ack));
        let not_covered = under_way().count() as u32;
        // What had not come when the answer left has taken as long: there is a queue.
        let trip = under_way().last().map_or(trip, |write| trip.max(t - write.1));
        // What no message had answered as its writer went on, this one may answer: it was there a trip after
        // it had passed.
        let oldest = self.latest().take_while(|write| write.0.after(self.heard)).last();
        let known = oldest.filter(|_| self.count as usize <= WRITES || self.is_within(self.heard));
        let there = known.map(|write| start.max(write.1 + trip));
        if not_covered == 0 {
            self.row = 0;
            return there;
        }
        self.rows[self.row as usize % ROW] = (not_covered, nxt.minus(ack).max(0).cast_unsigned(), counted);
        self.row = self.row.saturating_add(1);
        // All are here, and those before them have arrived.
        if start < self.since + trip {
            return there;
        }
        let fewer = self.fewer_than_asked(nxt, start, trip)?;
        Some(there.map_or(fewer, |there| there.min(fewer)))
    }

    /// As many are asked for at once as were on their way and the one that is answered, or as many as have
    /// been counted, if that is always the same: since when fewer than those were on their way, so that the
    /// other end had some.
    fn fewer_than_asked(&self, nxt: Seq, start: Nanos, trip: Nanos) -> Option<Nanos> {
        let row = &self.rows[..ROW.min(self.row as usize)];
        let most = |of: fn(&(u32, u32, u32)) -> u32| row.iter().map(of).max().unwrap_or_default();
        let (writes, bytes, counted) = (most(|r| r.0), most(|r| r.1), most(|r| r.2));
        let steady = row.len() == ROW && row.iter().all(|r| r.2 == counted);
        let arrived = |write: &Write| start.max(write.1 + trip);
        // Where the ring does not reach back so far, as little is known as of what has arrived long ago.
        let since = |n: u32| {
            let known = n < WRITES as u32;
            known.then(|| self.latest().nth(n as usize).map_or(start, arrived))
        };
        if steady && counted > writes + 1 {
            return since(counted - 1);
        }
        let behind = |write: &&Write| nxt.minus(write.0).max(0).cast_unsigned();
        let by_bytes = self.latest().take_while(|write| behind(write) <= bytes).last().map_or(start, arrived);
        since(writes).map(|by_writes| by_writes.max(by_bytes))
    }

    /// The ring reaches back to what ends here.
    fn is_within(&self, seq: Seq) -> bool {
        self.latest().any(|write| !write.0.after(seq))
    }
}

/// How many writes of the client have no answer yet, as far as one write answers one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    unanswered: u16,
    /// Those of the client's last message.
    last: u16,
}

at_rest! { Asked { unanswered, last } }

impl Asked {
    /// The client begins to speak, behind an answer; where `all` that it had sent has been acknowledged, no
    /// more are without an answer than its last message had but one, for what was no request is not to be
    /// counted for ever.
    fn begins(&mut self, all: bool) {
        if all {
            self.unanswered = self.unanswered.min(self.last.saturating_sub(1));
        }
        self.last = 0;
    }

    fn asks(&mut self) {
        self.last = self.last.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
    }

    #[inline]
    fn is_answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }
}

impl Conn {
    /// A segment with new bytes passed, behind `before`: of the server, or of the client, which `begins` to
    /// speak or goes on.
    #[inline(always)]
    pub(super) fn counts(&mut self, s: End, segment: &Segment, t: Nanos, begins: bool, before: Seq) {
        let ends = self.track.flow(s).ends_a_write(segment);
        if s == End::Server {
            if ends {
                self.asked.is_answered();
                self.pending.is_answered();
            }
            self.ahead.iter_mut().for_each(|ahead| ahead.hears());
        } else if begins | ends {
            self.asks_for(segment, t, (begins, ends), before);
        }
    }

    #[inline(never)]
    fn asks_for(&mut self, segment: &Segment, t: Nanos, (begins, ends): (bool, bool), before: Seq) {
        let acknowledged = self.track.flow(End::Client).una;
        if begins {
            self.asked.begins(!before.after(acknowledged));
            // It had left before all that the server has said came.
            let answers = self.track.flow(End::Server).nxt;
            self.pending.begins(segment.flags.ack() && segment.ack.before(answers));
        }
        if ends && self.tickets.are_over() && !(segment.tls.is_none() && segment.grants()) {
            self.asked.asks();
            self.pending.asks();
        }
        let sent = self.track.flow(End::Server).nxt;
        self.ahead.iter_mut().for_each(|ahead| ahead.speaks(segment, t, acknowledged, sent, ends));
    }

    /// What this answer waited for since the client last spoke, if the server had other requests before it.
    #[inline(never)]
    pub(super) fn behind_others(&mut self, turn: &Step, answer: &Segment) -> Option<Wait> {
        let Wait::Turn { doubt: Doubt::None, seen: None, .. } = turn.wait else { return None };
        let asked = self.track.flow(End::Client).nxt;
        if self.ahead.is_none() {
            if answer.ack.before(asked) {
                self.ahead = Some(Box::new(Ahead::begins(turn.end)));
            }
            return None;
        }
        let trip = self.track.reaction(End::Server)?;
        if !self.role.is_only() || !self.testimony.is_silent() || !answer.flags.ack() {
            return None;
        }
        let counted = self.asked.unanswered.into();
        let ahead = self.ahead.as_mut()?;
        let at = ahead.is_answered((answer.ack, asked), (turn.start, turn.end), trip, counted)?;
        let bytes = asked.minus(answer.ack).max(0).cast_unsigned();
        let idle = at - turn.start;
        // Behind a whole trip it worked by all accounts (rule 13).
        (at < turn.end && idle < trip && !ahead.grants).then_some(Wait::Behind { idle, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::protocol::WINDOW_UPDATE;
    use tcpwhy_base::{TcpFlags, Tls};

    const TRIP: Nanos = Nanos::millis(20);

    fn ms(n: i64) -> Nanos {
        Nanos::millis(n)
    }

    /// Writes of a hundred bytes each, at these milliseconds, in one message, up to `heard` of which are acknowledged.
    fn written(at: &[i64], heard: u32) -> Ahead {
        let mut ahead = Ahead::begins(ms(-1_000));
        for (n, &t) in (0..).zip(at) {
            let flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
            let segment = Segment { seq: Seq(n * 100), len: 100, flags, ..Segment::EMPTY };
            ahead.speaks(&segment, ms(t), Seq(heard), Seq(0), true);
        }
        ahead
    }

    /// Since when the server is said to have had something before it.
    fn busy(ahead: &mut Ahead, ack: u32, wait: (i64, i64)) -> Option<Nanos> {
        let nxt = Seq(ahead.count * 100);
        ahead.is_answered((Seq(ack), nxt), (ms(wait.0), ms(wait.1)), TRIP, 0)
    }

    #[test]
    fn fewer_are_on_their_way_than_it_asks_for() {
        // One is on its way when the answer leaves, so two are asked for; the first of them was there after
        // 20 ms, or 24.
        assert_eq!(busy(&mut written(&[0, 14], 200), 100, (14, 28)), Some(ms(20)));
        assert_eq!(busy(&mut written(&[4, 14], 200), 100, (14, 28)), Some(ms(24)));
        // It was known to be there before the wait began.
        assert_eq!(busy(&mut written(&[-9, 14], 200), 100, (14, 28)), Some(ms(14)));
    }

    #[test]
    fn what_nothing_has_answered_was_there() {
        // The answer covers all: it may be for any, but the first that no answer had covered was there at 30 ms.
        assert_eq!(busy(&mut written(&[0, 10, 25], 100), 300, (25, 50)), Some(ms(30)));
        assert_eq!(busy(&mut written(&[0, 10, 25], 300), 300, (25, 50)), None);
        // Of two that are asked for the second was there at 25 ms, but the first had no answer.
        assert_eq!(busy(&mut written(&[0, 5, 14], 0), 200, (14, 28)), Some(ms(20)));
    }

    #[test]
    fn a_queue_makes_the_trip_longer() {
        // 28 ms after it had been sent it had not come.
        assert_eq!(busy(&mut written(&[0, 2, 9], 300), 100, (9, 30)), Some(ms(28)));
    }

    #[test]
    fn large_and_small_requests() {
        let mut ahead = written(&[0, 5, 14], 300);
        (ahead.writes[0].0, ahead.writes[1].0) = (Seq(50), Seq(120));
        // Two writes with 200 bytes are on their way: three are asked for, and more than 200 bytes; with the
        // second of them there are fewer.
        assert_eq!(busy(&mut ahead, 100, (14, 22)), Some(ms(25)));
    }

    #[test]
    fn more_than_can_be_remembered() {
        let at: Vec<i64> = (0..20).collect();
        // Of all that are on their way the first are not known any more.
        assert_eq!(busy(&mut written(&at, 2_000), 200, (19, 25)), None);
        assert_eq!(busy(&mut written(&at, 100), 2_000, (19, 45)), None);
        let mut ahead = written(&at, 1_000);
        assert_eq!(busy(&mut ahead, 2_000, (19, 45)), Some(ms(30)));
        // What was sent before this began may be on its way.
        ahead.since = ms(0);
        assert_eq!(busy(&mut ahead, 1_900, (19, 38)), Some(ms(30)));
        ahead.heard = Seq(2_000);
        assert_eq!(busy(&mut ahead, 1_900, (19, 38)), None);
    }

    #[test]
    fn grants_ask_for_nothing() {
        let mut ahead = written(&[0], 100);
        let flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        let mut grant = Segment { seq: Seq(100), len: 13, flags, ..Segment::EMPTY };
        grant.head[..5].copy_from_slice(&WINDOW_UPDATE);
        ahead.speaks(&grant, ms(9), Seq(100), Seq(0), true);
        assert_eq!((ahead.count, ahead.grants), (1, true));
        ahead.speaks(
            &Segment { seq: Seq(113), len: 100, flags, ..Segment::EMPTY },
            ms(10),
            Seq(100),
            Seq(0),
            true,
        );
        assert_eq!((ahead.count, ahead.grants), (2, false));
        // Within TLS what is as short as a grant may be a request, but behind a whole window.
        for (sent, grants) in [(16_383, false), (16_384, true), (40_000, true)] {
            let mut ahead = written(&[0], 100);
            ahead.hears();
            let tls = Tls(Tls::DATA | Tls::CREDIT);
            let seq = Seq(100);
            ahead.speaks(
                &Segment { seq, len: 47, flags, tls, ..Segment::EMPTY },
                ms(9),
                seq,
                Seq(sent),
                true,
            );
            assert_eq!((ahead.count, ahead.grants), (2 - u32::from(grants), grants));
            assert_eq!(ahead.sent, Seq(sent));
        }
    }

    #[test]
    fn what_was_no_request_is_not_counted_for_ever() {
        let mut asked = Asked::default();
        let mut speak = |s: End, writes: u32, all: bool| {
            match s {
                End::Client => {
                    asked.begins(all);
                    (0..writes).for_each(|_| asked.asks());
                }
                End::Server => (0..writes).for_each(|_| asked.is_answered()),
            }
            asked.unanswered
        };
        // Four are asked for, and one more with each answer.
        assert_eq!((speak(End::Client, 4, true), speak(End::Server, 1, false)), (4, 3));
        assert_eq!((speak(End::Client, 1, true), speak(End::Server, 1, false)), (4, 3));
        assert_eq!((speak(End::Client, 1, false), speak(End::Server, 1, false)), (4, 3));
        // All has been acknowledged, and the last message was one write, which has its answer.
        assert_eq!((speak(End::Client, 2, true), speak(End::Server, 1, false)), (2, 1));
        assert_eq!((speak(End::Client, 2, true), speak(End::Server, 3, false)), (3, 0));
    }
}
