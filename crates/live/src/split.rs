//! Time by cause.

use tcpwhy_base::{Cause, Class, Nanos, Side};

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
        if time <= Nanos::ZERO {
            return;
        }
        self.add(Share { cause: to.0, at: to.1, time, counted: Nanos::ZERO });
    }

    /// What was estimated of these causes becomes what was measured. What it is more is taken from what was
    /// estimated else, the longest first; what it is less was the trip, but for waits that are measured only
    /// when they are over, perhaps in a later interval. What of it was estimated while nobody listened,
    /// `unheard`, stays. The sum stays.
    pub(crate) fn measure(&mut self, measured: &[(Cause, Where, Nanos)], unheard: &Split) {
        let is_measured = |cause: Cause| measured.iter().any(|m| m.0 == cause);
        let kept = |s: &Share| unheard.of(s.cause, s.at).min(s.time);
        for share in self.shares().into_iter().filter(|s| is_measured(s.cause) && !goes_on(s.cause)) {
            let time = share.time - kept(&share);
            self.move_to(Share { time, ..share }, (Cause::PathDelay, Where::Path));
        }
        for &(cause, at, time) in measured {
            let had = if goes_on(cause) { self.time(|c| c == cause) } else { Nanos::ZERO };
            let mut wanted = (time - had).floor0();
            for share in self.shares().into_iter().filter(|s| !is_measured(s.cause) && may_be(cause, s)) {
                let part = (share.time - share.counted).min(wanted);
                self.move_to(Share { time: part, ..share }, (cause, at));
                wanted = wanted - part;
            }
            if let Some(row) = self.0.iter_mut().find(|s| s.cause == cause && s.at == at) {
                row.counted = if goes_on(cause) { row.time.min(time) } else { row.time - kept(row) };
            }
        }
    }

    /// Takes all of `old` out and puts `new` in.
    pub(crate) fn replace(&mut self, old: &Split, new: &Split) {
        for share in &old.0 {
            if let Some(row) = self.0.iter_mut().find(|s| s.cause == share.cause && s.at == share.at) {
                row.time = (row.time - share.time).floor0();
                row.counted = (row.counted - share.counted).floor0();
            }
        }
        new.0.iter().for_each(|share| self.add(*share));
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

    /// The time of a cause at a place.
    pub(crate) fn of(&self, cause: Cause, at: Where) -> Nanos {
        self.0.iter().find(|s| s.cause == cause && s.at == at).map_or(Nanos::ZERO, |s| s.time)
    }

    /// The time of causes for which this holds.
    pub fn time(&self, of: impl Fn(Cause) -> bool) -> Nanos {
        self.0.iter().filter(|s| of(s.cause)).fold(Nanos::ZERO, |sum, s| sum + s.time)
    }
}

/// Its waits may be longer than an interval.
pub(crate) fn goes_on(cause: Cause) -> bool {
    matches!(cause, Cause::RetransmissionTimeout | Cause::TailLossProbe | Cause::ReaderLate)
}

/// A program that reads late is nothing that a sender waits for at the same time; and what timers send into a window that
/// is shut repairs nothing.
fn may_be(cause: Cause, share: &Share) -> bool {
    if matches!(cause, Cause::RetransmissionTimeout | Cause::TailLossProbe)
        && share.cause == Cause::SlowReader
    {
        return false;
    }
    cause != Cause::ReaderLate || (share.cause.class() == Class::Application && share.at == Where::Here)
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

    /// 30 ms were taken for a trip, and 5 for Nagle; the kernel knows of 20 that Nagle held.
    #[test]
    fn what_is_measured_overrides_what_was_estimated() {
        let ms = Nanos::millis;
        let mut split = Split::default();
        split.add(share(Cause::PathDelay, 30));
        split.add(share(Cause::Nagle, 5));
        split.add(Share { counted: ms(10), ..share(Cause::ReceiveWindow, 10) });
        let mut all = split.clone();
        all.add(share(Cause::PathDelay, 100));
        let (old, none) = (split.clone(), Split::default());
        split.measure(&[(Cause::Nagle, Where::Here, ms(20)), (Cause::Cork, Where::Here, Nanos::ZERO)], &none);
        let of = |split: &Split, cause: Cause| split.time(|c| c == cause);
        assert_eq!((of(&split, Cause::Nagle), of(&split, Cause::PathDelay)), (ms(20), ms(15)));
        assert_eq!((of(&split, Cause::ReceiveWindow), split.total()), (ms(10), ms(45)));
        all.replace(&old, &split);
        assert_eq!(
            (of(&all, Cause::Nagle), of(&all, Cause::PathDelay), all.total()),
            (ms(20), ms(115), ms(145))
        );
        // More than there is cannot have passed in it: a hold that began before.
        split.measure(&[(Cause::Nagle, Where::Here, ms(500))], &none);
        assert_eq!((of(&split, Cause::Nagle), split.total()), (ms(35), ms(45)));
    }

    /// Of 30 ms that were taken for Nagle 10 were of a time in which nobody listened; in the rest it was 5.
    #[test]
    fn what_nobody_listened_to_stays_estimated() {
        let ms = Nanos::millis;
        let (mut split, mut unheard) = (Split::default(), Split::default());
        split.add(share(Cause::Nagle, 30));
        split.add(share(Cause::PathDelay, 20));
        unheard.add(share(Cause::Nagle, 10));
        split.measure(&[(Cause::Nagle, Where::Here, ms(5))], &unheard);
        let nagle = split.shares().into_iter().find(|s| s.cause == Cause::Nagle).unwrap();
        assert_eq!((nagle.time, nagle.counted, split.total()), (ms(15), ms(5), ms(50)));
    }

    /// A timeout is measured when it is over: of this interval no more is known than that it went on.
    #[test]
    fn waits_that_go_on_keep_what_was_estimated() {
        let ms = Nanos::millis;
        let mut split = Split::default();
        split.add(share(Cause::RetransmissionTimeout, 30));
        split.add(share(Cause::ServerThink, 50));
        split.add(share(Cause::PathDelay, 20));
        split.measure(
            &[(Cause::RetransmissionTimeout, Where::Here, ms(10)), (Cause::ReaderLate, Where::Here, ms(90))],
            &Split::default(),
        );
        let of = |cause: Cause| split.time(|c| c == cause);
        assert_eq!((of(Cause::RetransmissionTimeout), of(Cause::ReaderLate)), (ms(30), ms(50)));
        assert_eq!((of(Cause::PathDelay), split.total()), (ms(20), ms(100)));
    }
}
