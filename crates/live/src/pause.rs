//! The time in which nothing is under way. Whose it was shows when it is over: the end that speaks next had to.

use crate::judge::{JIFFY, think};
use crate::sample::Sample;
use crate::split::{Share, Split, Where};
use tcpwhy_base::{Cause, Nanos};

/// What is known of the pause that goes on, or may begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pause {
    /// Whether a thread sits in a call to read from the socket, or the one that does so is elsewhere.
    pub(crate) reads: Option<bool>,
    /// The last message came in pieces, with pauses between them.
    pub(crate) in_pieces: bool,
    /// The end that has just spoken had spoken last, too.
    pub(crate) goes_on_as_before: bool,
    /// What this end sent last was acknowledged by bytes of the other end: that has spoken last.
    pub(crate) answered: bool,
    /// It was so at the look before.
    pub(crate) was_answered: bool,
    /// What it was taken for up to now.
    booked: Split,
    /// Who spoke before it, if one end alone did.
    after: Option<Where>,
}

impl Pause {
    /// Of a socket that is seen for the first time.
    pub(crate) fn of(s: &Sample) -> Pause {
        // One segment without data ended the handshake.
        let bare = s.info.and_then(|i| i.bare_segs_in());
        Pause { answered: s.wqueue == 0 && heard(s) > 0 && bare.is_some_and(|n| n <= 1), ..Pause::default() }
    }

    /// Whose bytes acknowledged what this end sent last.
    fn acknowledges(&mut self, then: &Sample, now: &Sample) {
        let bare = |s: &Sample| s.info.and_then(|i| i.bare_segs_in());
        let acked = |s: &Sample| s.info.map_or(0, |i| i.bytes_acked);
        self.was_answered = self.answered;
        if now.wqueue > 0 {
            self.answered = false;
        } else if acked(now) > acked(then) {
            self.answered = heard(now) > heard(then) && bare(now).is_some() && bare(now) == bare(then);
        } else if heard(now) > heard(then) {
            // All was acknowledged before.
            self.answered = true;
        }
    }

    /// Where bytes end it: what it was taken for, and what it was.
    pub(crate) fn ends(
        &mut self,
        then: &Sample,
        now: &Sample,
        here_is_client: bool,
    ) -> Vec<(Share, (Cause, Where))> {
        self.goes_on_as_before = false;
        self.acknowledges(then, now);
        let speaker = match (heard(now) > heard(then), written(now) > written(then)) {
            (false, false) => return Vec::new(),
            (true, true) => None,
            (true, false) => Some(Where::Peer),
            (false, true) => Some(Where::Here),
        };
        let booked = std::mem::take(&mut self.booked);
        let again = speaker.is_some() && speaker == self.after;
        let round_trip = now.info.map_or(Nanos::ZERO, |i| i.rtt);
        self.after = speaker;
        let Some(at) = speaker else {
            self.in_pieces = false;
            return Vec::new();
        };
        // What comes to this end in the pace of its round trips may wait for windows there.
        let is_long = at == Where::Here || booked.total() > round_trip.times(2) + JIFFY.times(2);
        self.goes_on_as_before = again;
        self.in_pieces = again && (is_long || self.in_pieces);
        let was = match (again, is_long) {
            (false, _) => think(at, here_is_client),
            (true, true) => Cause::SenderPause,
            (true, false) => Cause::Unexplained,
        };
        booked.shares().into_iter().map(|share| (share, (was, at))).collect()
    }

    /// Since nobody has spoken its program has been at something else: what nobody's turn was, was its own.
    pub(crate) fn settle(&mut self, here_is_client: bool) -> Option<(Share, (Cause, Where))> {
        let unsure = self.unsure()?;
        let to = (think(Where::Here, here_is_client), Where::Here);
        self.reads = Some(false);
        self.booked.move_to(unsure, to);
        Some((unsure, to))
    }

    /// What of the pause that goes on is unexplained because stamps do not tell which bytes were the last.
    pub(crate) fn unsure(&self) -> Option<Share> {
        let is_unsure = |s: &Share| (s.cause, s.at) == (Cause::Unexplained, Where::Here);
        self.booked.shares().into_iter().find(is_unsure).filter(|_| !self.in_pieces)
    }

    /// Adds what of a stretch was a pause. Nobody has yet accepted what has no file: its server has to.
    pub(crate) fn goes_on(&mut self, then: &Sample, now: &Sample, shares: &[Share]) {
        let moved = heard(now) > heard(then) || written(now) > written(then);
        if moved {
            // What is known of threads was so before.
            self.reads = None;
        }
        let waits = |s: &&Share| {
            matches!(s.cause, Cause::ClientThink | Cause::ServerThink)
                || (s.cause, s.at) == (Cause::Unexplained, Where::Here)
        };
        if now.inode != 0 {
            // What was told of the time until somebody spoke is over.
            let new = |s: &&Share| {
                !moved || s.cause == Cause::Unexplained || self.after.is_some_and(|spoke| spoke != s.at)
            };
            shares.iter().filter(waits).filter(new).for_each(|share| self.booked.add(*share));
        }
    }
}

fn heard(s: &Sample) -> u64 {
    s.info.map_or(0, |i| i.bytes_received)
}

/// Whether they were sent or not.
fn written(s: &Sample) -> u64 {
    s.info.map_or(0, |i| i.bytes_acked) + u64::from(s.wqueue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Connection, Known, Role};
    use crate::sample::Info;

    /// What is said of a server's end after some looks, 10 ms apart: bytes that have come, and that were
    /// written, by then.
    fn seen(looks: &[(u64, u64)], rtt: i64) -> Vec<(Cause, Where, i64)> {
        let mut ages = (Nanos::ZERO, Nanos::ZERO);
        let mut before = (0, 0);
        let mut sample = |&(bytes_received, bytes_acked): &(u64, u64)| {
            let look = Nanos::millis(10);
            ages = (
                if bytes_received > before.0 { Nanos::ZERO } else { ages.0 + look },
                if bytes_acked > before.1 { Nanos::ZERO } else { ages.1 + look },
            );
            before = (bytes_received, bytes_acked);
            let (last_data_recv, last_data_sent) = ages;
            let rtt = Nanos::millis(rtt);
            let info =
                Info { bytes_received, bytes_acked, rtt, last_data_recv, last_data_sent, ..Info::default() };
            Sample { info: Some(info), ..Sample::open(80, 40_000) }
        };
        let mut c = Connection::new(sample(&(0, 0)), Role::Server, true);
        for look in looks {
            c.observe(&sample(look), Nanos::millis(10), Known::default());
        }
        let mut all: Vec<_> =
            c.total.shares().iter().map(|s| (s.cause, s.at, s.time.0 / 1_000_000)).collect();
        all.sort_by_key(|&(cause, at, ms)| (std::cmp::Reverse(ms), at, cause));
        all
    }

    fn looks(of: &[(u64, u64, usize)]) -> Vec<(u64, u64)> {
        of.iter().flat_map(|&(received, written, n)| std::iter::repeat_n((received, written), n)).collect()
    }

    #[test]
    fn a_pause_is_of_the_end_that_ends_it() {
        let receiving = |ms| (Cause::Unexplained, Where::Peer, ms);
        // A request, half a second, an answer.
        let answered = looks(&[(100, 0, 51), (100, 100, 1)]);
        let expected = [(Cause::ServerThink, Where::Here, 510), receiving(10)];
        assert_eq!(seen(&answered, 1), expected);
        // An upload in three pieces: the client's pauses; whether more comes nobody knows.
        let uploads = looks(&[(100, 0, 51), (200, 0, 51), (300, 0, 11)]);
        let expected =
            [(Cause::SenderPause, Where::Peer, 1000), (Cause::Unexplained, Where::Here, 100), receiving(30)];
        assert_eq!(seen(&uploads, 1), expected);
        // More had come, indeed; and then the answer.
        let over = looks(&[(100, 0, 51), (200, 0, 51), (200, 100, 1)]);
        let expected =
            [(Cause::ServerThink, Where::Here, 510), (Cause::SenderPause, Where::Peer, 500), receiving(20)];
        assert_eq!(seen(&over, 1), expected);
        // Pieces in the pace of the round trip are a transfer.
        let flights = looks(&[(100, 0, 10), (200, 0, 10), (300, 0, 1)]);
        assert_eq!(seen(&flights, 100), [receiving(210)]);
        // A server that pushes what nobody asked for.
        let pushes = looks(&[(0, 0, 30), (0, 100, 30), (0, 200, 1)]);
        let all = seen(&pushes, 1);
        assert_eq!(all[0], (Cause::ServerThink, Where::Here, 310), "{all:?}");
        assert_eq!(all[1], (Cause::SenderPause, Where::Here, 290), "{all:?}");
    }
}
