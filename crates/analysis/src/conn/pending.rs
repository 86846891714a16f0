//! What a server has still before it, as the tap beside it sees (rule 105): how many writes of its client it
//! has not answered.

use super::Conn;
use crate::release::{Doubt, Wait};
use crate::rest::at_rest;
use crate::step::Step;
use tcpwhy_base::{End, Nanos};

/// So many of the client's messages, and of the server's answers to nothing new, are remembered: what a
/// connection did before that it need not do now. (Not derived from a protocol: more of them would go by what
/// a client did that asks one by one by now.)
const RECENT: u8 = 8;

/// Writes of the client beyond those of the server, with what shows that this counts requests. (Small: each
/// connection has one.)
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Of more than a byte holds some are forgotten.
    count: u8,
    /// The least of them, lately, with which the server answered though the client had said nothing since its
    /// last answer: as many, and there is something to answer, whatever else was counted.
    least: u8,
    /// So many such answers came since; whether something was asked since, and whether it had then been as
    /// few once more: where requests are of more writes than answers, it grows and grows.
    since_least: u8,
    /// So many messages of the client came since one that had left before an answer came to it; and whether
    /// the server has spoken last.
    since_crossed: u8,
}

at_rest! { Pending { count, least, since_least, since_crossed } }

/// The server has spoken last.
const ANSWERED: u8 = 128;
/// Something was asked since; it was as few again.
const LATER: u8 = 64;
const AGAIN: u8 = 128;

impl Default for Pending {
    fn default() -> Pending {
        Pending { count: 0, least: u8::MAX, since_least: 0, since_crossed: RECENT }
    }
}

impl Pending {
    /// The client begins a message; it `crosses` an answer.
    pub(super) fn begins(&mut self, crosses: bool) {
        let (last, since) = (self.since_crossed & ANSWERED, self.since_crossed & !ANSWERED);
        self.since_crossed = last | if crosses { 0 } else { RECENT.min(since + 1) };
    }

    /// The client has sent a request.
    pub(super) fn asks(&mut self) {
        self.count = self.count.saturating_add(1);
        self.since_crossed &= !ANSWERED;
        self.since_least |= LATER;
    }

    /// The server has ended a write.
    #[inline]
    pub(super) fn is_answered(&mut self) {
        if self.since_crossed & ANSWERED != 0 {
            self.goes_on();
        }
        self.since_crossed |= ANSWERED;
        self.count = self.count.saturating_sub(1);
    }

    /// The server has answered with nothing new to answer.
    fn goes_on(&mut self) {
        let (known, since) = (self.since_least & AGAIN, (self.since_least & !(AGAIN | LATER)) + 1);
        if self.count == 0 {
            // More writes than requests: nothing is known.
            (self.least, self.since_least) = (u8::MAX, 0);
        } else if self.count <= self.least {
            let again = self.least < u8::MAX && self.since_least & LATER != 0;
            (self.least, self.since_least) = (self.count, if again { AGAIN } else { known });
        } else if since >= RECENT {
            (self.least, self.since_least) = (self.count, 0);
        } else {
            self.since_least += 1;
        }
    }

    /// There is something to answer.
    fn is_some(&self) -> bool {
        self.count >= self.least && self.since_least & AGAIN != 0 && self.since_crossed & !ANSWERED < RECENT
    }
}

impl Conn {
    /// The tap is beside a server that had requests of its client before it, which asks ahead, when the
    /// client sent this: it came no later than one that the last answer had called for.
    #[inline]
    pub(super) fn had_others_before_it(&self, t: Nanos) -> bool {
        self.pending.is_some() && self.is_soon_beside_server(t)
    }

    #[inline(never)]
    fn is_soon_beside_server(&self, t: Nanos) -> bool {
        let way = self.track.reaction_or_zero(End::Client);
        let jitter = way.part(8).max(Nanos::millis(1));
        self.is_beside_server() && t - self.ex.recorded().last <= way + jitter
    }

    /// Four times nearer to it than to its client, as one is beside a reader (`attribute/waits.rs`), and
    /// nobody else tells.
    fn is_beside_server(&self) -> bool {
        let own = self.track.reaction_or_zero(End::Server);
        own.times(4) <= self.track.reaction_or_zero(End::Client)
            && self.role.is_only()
            && self.testimony.is_silent()
    }

    /// What passed between two segments, the second of `s`, is the server's work: it had requests before it
    /// all the time.
    #[inline]
    pub(super) fn works_on_others(&self, s: End, step: &Step) -> Option<Wait> {
        let at_work = match step.wait {
            // What goes on with a write is no request that came then.
            Wait::Turn { doubt: Doubt::None, seen: None, .. } => s == End::Client && step.pushed,
            // The next answer.
            Wait::Pause(pause) => s == End::Server && step.pushed && pause.flight == 0 && !pause.there,
            _ => false,
        };
        if !at_work || !self.pending.is_some() {
            return None;
        }
        let known = match s {
            End::Client => self.is_soon_beside_server(step.end),
            End::Server => self.is_beside_server(),
        };
        known.then_some(Wait::Behind { idle: Nanos::ZERO, bytes: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests (`r`), answers (`a`), messages of the client that begin (`b`) and cross (`c`).
    fn after(what: &str) -> Pending {
        let mut pending = Pending::default();
        for c in what.chars() {
            match c {
                'r' => pending.asks(),
                'a' => pending.is_answered(),
                c => pending.begins(c == 'c'),
            }
        }
        pending
    }

    #[test]
    fn who_answers_unasked_had_something_to_answer() {
        // Four are asked for; with three left it answered again, twice; the next request crosses that.
        let twice = "brrrraacrra";
        assert!(after(&format!("{twice}acr")).is_some());
        assert_eq!(after(&format!("{twice}acr")).least, 3);
        // Once is no more than it may have counted too many; nobody asks ahead; or nothing was answered unasked.
        assert!(!after("brrrraacr").is_some());
        assert!(!after("brrrraabrraabr").is_some());
        assert!(!after("brrrracracracr").is_some());
        // All have been answered; then one more than asked.
        assert!(!after(&format!("{twice}acraaa")).is_some());
        assert_eq!(after("brraaa").least, u8::MAX);
        // One that nothing ever answers is counted, and is in the least as well.
        let one_more = after("brrrrracaaacrrraaacr");
        assert_eq!((one_more.least, one_more.is_some()), (2, true));
        assert!(!after("brrrrracaaacrrraaa").is_some());
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let (some, row) = ("brrrraacrraacr", "bra".repeat(usize::from(RECENT)));
        assert!(after(&format!("{some}{}", &row[3..])).is_some());
        assert!(!after(&format!("{some}{row}")).is_some());
        // More writes than answers: the count grows, and the least with it.
        for n in 1..60 {
            for more in ["crrraa", "crrrrraaa", "crrracraaa"] {
                let drift = after(&(more.to_owned() + "r").repeat(n));
                assert!(!drift.is_some(), "{n} {more}: {drift:?}");
            }
        }
        assert_eq!(after(&"br".repeat(300)).count, u8::MAX);
    }
}
