//! Time by cause.

use tcpwhy_base::{Cause, Nanos, Side};

/// At which of the two ends a cause lies, seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Where {
    /// At this host.
    Here,
    /// At the other end.
    Peer,
    /// Between them.
    Path,
}

impl Where {
    /// The name in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Where::Here => "here",
            Where::Peer => "peer",
            Where::Path => "path",
        }
    }

    /// As the analysis of captures names it, for an end that is client or server.
    pub const fn side(self, here_is_client: bool) -> Side {
        match (self, here_is_client) {
            (Where::Path, _) => Side::Network,
            (Where::Here, true) | (Where::Peer, false) => Side::Client,
            _ => Side::Server,
        }
    }
}

/// Time of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The cause.
    pub cause: Cause,
    /// Where it lies.
    pub at: Where,
    /// How long.
    pub time: Nanos,
    /// Of it: counted by the kernel itself, not estimated from samples.
    pub counted: Nanos,
}

/// Time by cause and place; a handful of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split(Vec<Share>);

impl Split {
    /// Adds time.
    pub fn add(&mut self, share: Share) {
        if share.time <= Nanos::ZERO {
            return;
        }
        match self.0.iter_mut().find(|s| s.cause == share.cause && s.at == share.at) {
            Some(row) => {
                row.time += share.time;
                row.counted += share.counted;
            }
            None => self.0.push(share),
        }
    }

    /// Moves time to another cause, as far as it is there.
    pub(crate) fn move_to(&mut self, from: Share, to: (Cause, Where)) {
        let Some(row) = self.0.iter_mut().find(|s| s.cause == from.cause && s.at == from.at) else { return };
        let time = row.time.min(from.time);
        row.time = row.time - time;
        row.counted = row.counted.min(row.time);
        self.add(Share { cause: to.0, at: to.1, time, counted: Nanos::ZERO });
    }

    /// The longest first.
    pub fn shares(&self) -> Vec<Share> {
        let mut all: Vec<Share> = self.0.iter().copied().filter(|s| s.time > Nanos::ZERO).collect();
        all.sort_by_key(|s| (std::cmp::Reverse(s.time), s.cause, s.at));
        all
    }

    /// All of it.
    pub fn total(&self) -> Nanos {
        self.0.iter().fold(Nanos::ZERO, |sum, s| sum + s.time)
    }

    /// The time of causes for which this holds.
    pub fn time(&self, of: impl Fn(Cause) -> bool) -> Nanos {
        self.0.iter().filter(|s| of(s.cause)).fold(Nanos::ZERO, |sum, s| sum + s.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(cause: Cause, ms: i64) -> Share {
        Share { cause, at: Where::Here, time: Nanos::millis(ms), counted: Nanos::ZERO }
    }

    #[test]
    fn no_more_is_moved_than_is_there() {
        let mut split = Split::default();
        split.add(share(Cause::SendBuffer, 30));
        split.add(share(Cause::PathDelay, 10));
        let to = (Cause::RetransmissionTimeout, Where::Path);
        split.move_to(share(Cause::PathDelay, 40), to);
        split.move_to(share(Cause::Nagle, 5), to);
        let shares: Vec<_> = split.shares().iter().map(|s| (s.cause, s.time)).collect();
        let ms = Nanos::millis;
        assert_eq!(shares, [(Cause::SendBuffer, ms(30)), (Cause::RetransmissionTimeout, ms(10))]);
        assert_eq!(split.total(), ms(40));
    }
}
