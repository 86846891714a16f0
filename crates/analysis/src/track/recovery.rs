//! Losses of one direction: when a recovery begins, what it turns out to be, and when it ends.

use crate::rest::{Frame, at_rest};
use crate::track::Tracker;
use tcpwhy_base::{End, Nanos, Seq, TooBig};

/// How a loss is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    Fast,
    Timeout,
    Probe,
    /// The data had arrived.
    Spurious,
    /// Full segments vanish on the path while smaller ones pass.
    BlackHole,
    /// A router said that they are too large; larger packets than this do not go on (zero: it did not say).
    TooBig {
        mtu: u16,
    },
}

at_rest! {
    enum Repair {
        0 => Fast, 1 => Timeout, 2 => Probe, 3 => Spurious, 4 => BlackHole, 5 => TooBig { mtu },
    }
}

/// A segment that was too large for the rest of its way, as a router said in this frame (rule 89).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooLarge {
    pub(crate) seq: Seq,
    /// The largest packet that goes on; zero where the router does not say.
    pub(crate) mtu: u16,
    pub(crate) frame: u64,
}

at_rest! { TooLarge { seq, mtu, frame as Frame } }

/// A loss from its first sign to the ACK that covers the recovery point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    pub(crate) kind: Repair,
    /// Highest sequence number sent when it began.
    point: Seq,
    /// Where the data ended that had been sent by then.
    data_end: Seq,
    /// Last retransmission, the range of its data, and whether it had a FIN.
    last: Nanos,
    range: (Seq, Seq),
    fin: bool,
    pub(crate) retransmissions: u32,
    /// Wait before the first of them.
    first_wait: Nanos,
}

at_rest! { Recovery { kind, point, data_end, last, range, fin, retransmissions, first_wait } }

/// What an acknowledgement says of the losses of its data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    /// Bytes that arrived twice (RFC 2883), where the recovery that sent them again had ended before.
    pub(crate) late_duplicate: Option<u32>,
    /// The latest losses were of another kind than was thought.
    pub(crate) renamed: Option<Repair>,
    /// A recovery has ended.
    pub(crate) ended: Option<Recovered>,
}

/// A recovery that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovered {
    pub(crate) kind: Repair,
    pub(crate) at: Nanos,
    /// Its retransmission was not needed.
    pub(crate) spurious: bool,
    /// It sent the last segment again: nothing newer had been sent.
    pub(crate) last_segment: bool,
}

impl Tracker {
    /// A router said that a segment of `s` was too large (rule 89).
    pub(crate) fn too_big(&mut self, s: End, told: &TooBig) {
        let mtu = u16::try_from(told.mtu).unwrap_or(u16::MAX);
        self.half[s].told_too_big(TooLarge { seq: told.seq, mtu, frame: told.frame });
    }
}

impl Recovery {
    pub(crate) fn new(kind: Repair, point: Seq, t: Nanos, range: (Seq, Seq), first_wait: Nanos) -> Recovery {
        Recovery { kind, point, data_end: point, last: t, range, fin: false, retransmissions: 1, first_wait }
    }

    /// The same; the FIN behind the data had been `sent` before (rule 140).
    pub(crate) fn behind_fin(self, sent: bool) -> Recovery {
        Recovery { data_end: self.point - u32::from(sent), ..self }
    }

    /// What was sent again last had a FIN, or had none.
    pub(crate) fn with_fin(&mut self, fin: bool) {
        self.fin = fin;
    }

    /// Data was sent again at `t`. `never_through`: a full segment, and none of that size ever came through while
    /// smaller ones did. Gives another name for the losses so far, where this tells.
    pub(crate) fn again(
        &mut self,
        kind: Repair,
        t: Nanos,
        range: (Seq, Seq),
        never_through: bool,
    ) -> Option<Repair> {
        self.retransmissions += 1;
        // A probe is followed by the timeout it came before, undoubled; a timeout by one twice as long.
        let doubled = (t - self.last).times(2) >= self.first_wait.times(3);
        let backed_off =
            self.retransmissions == 2 && self.kind == Repair::Probe && kind == Repair::Timeout && doubled;
        // The same again, and now it is known that the copy before it did not come either (rule 100).
        let lost_after_all =
            kind == Repair::Timeout && self.kind == Repair::Spurious && self.range.0 == range.0;
        self.last = t;
        self.range = range;
        if let Repair::TooBig { .. } = kind {
            let known = std::mem::replace(&mut self.kind, kind) == kind;
            return (!known).then_some(kind);
        }
        if kind == Repair::Timeout && !matches!(self.kind, Repair::BlackHole | Repair::TooBig { .. }) {
            self.kind = kind;
        }
        // The same full segment again and again (RFC 4821, 1; tcp_mtu_probing acts after tcp_retries1 timeouts).
        if never_through && self.retransmissions >= 2 && self.kind == Repair::Timeout {
            self.kind = Repair::BlackHole;
            return Some(Repair::BlackHole);
        }
        (backed_off || lost_after_all).then_some(Repair::Timeout)
    }

    /// When it last sent again what begins at `seq`.
    pub(crate) fn last_of(&self, seq: Seq) -> Option<Nanos> {
        (self.range.0 == seq).then_some(self.last)
    }

    /// What it sent again last by a timer is not acknowledged by `una`, nor will be, so long after: that copy
    /// was lost as well.
    pub(crate) fn in_vain(&self, una: Seq, t: Nanos, latest: Nanos) -> Option<Repair> {
        let timed = matches!(self.kind, Repair::Timeout | Repair::BlackHole | Repair::TooBig { .. });
        (timed && una.at_or_before(self.range.0) && t - self.last > latest).then_some(self.kind)
    }

    /// Everything before `una` is acknowledged. A full segment that came through after all: the path was gone for all
    /// sizes. Gives the new name of the losses, if so.
    pub(crate) fn came_through(&mut self, una: Seq, mss: u32) -> Option<Repair> {
        let bytes = self.range.1.minus(self.range.0).max(0) as u32;
        if self.kind != Repair::BlackHole || bytes < mss || una.before(self.range.1) {
            return None;
        }
        self.kind = Repair::Timeout;
        Some(Repair::Timeout)
    }

    /// Whether it ends with the ACK of everything before `una` at `t`. `signs`: duplicate ACKs or SACKs had
    /// come before; `soonest`: the fastest answer of the far end, less what a jitter may take from it.
    pub(crate) fn ended(&self, una: Seq, t: Nanos, signs: bool, soonest: Nanos) -> Option<Recovered> {
        // After one timer retransmission, with no sign of a later arrival before it, data that was sent only once is
        // acknowledged: the first copies had all arrived (F-RTO, RFC 5682).
        let one = self.retransmissions == 1 && matches!(self.kind, Repair::Timeout | Repair::Probe);
        let arrived = one && !signs && una.after(self.range.1 + u32::from(self.fin));
        if !arrived && una.before(self.point) {
            return None;
        }
        // An ACK sooner after the retransmission than the far end can respond was for the original (Eifel,
        // RFC 3522; RFC 8985, 6.2, step 2, and `tcp_rack_advance` hold it to the shortest round trip).
        let early = self.retransmissions == 1 && t - self.last < soonest;
        let spurious = arrived || early || self.kind == Repair::Spurious;
        let kind = if spurious { Repair::Spurious } else { self.kind };
        // A probe of the last segment had nothing newer to send (RFC 8985, 7.3); nobody waits for a FIN (rule 140).
        Some(Recovered { kind, at: t, spurious, last_segment: self.range.1 == self.data_end })
    }

    /// A duplicate of `left..right` was reported (RFC 2883): was that what it had sent again?
    pub(crate) fn reported(&mut self, left: Seq, right: Seq) {
        if self.range.0 == left || self.range.1 + u32::from(self.fin) == right {
            self.kind = Repair::Spurious;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe() -> Recovery {
        let range = (Seq(1_000), Seq(2_000));
        Recovery::new(Repair::Probe, Seq(2_000), Nanos::millis(300), range, Nanos::millis(200))
    }

    #[test]
    fn a_probe_that_was_followed_by_a_doubled_timeout_was_one() {
        let mut r = probe();
        let again = |r: &mut Recovery, at| r.again(Repair::Timeout, at, (Seq(1_000), Seq(2_000)), false);
        assert_eq!(again(&mut r, Nanos::millis(599)), None);
        let mut r = probe();
        assert_eq!(again(&mut r, Nanos::millis(600)), Some(Repair::Timeout));
    }

    #[test]
    fn only_full_segments_that_never_pass_are_a_black_hole() {
        let mut r = probe();
        let range = (Seq(1_000), Seq(2_000));
        assert_eq!(r.again(Repair::Timeout, Nanos::millis(500), range, true), Some(Repair::BlackHole));
        assert_eq!(r.came_through(Seq(1_999), 1_000), None);
        assert_eq!(r.came_through(Seq(2_000), 1_000), Some(Repair::Timeout));
    }

    #[test]
    fn an_ack_sooner_than_the_far_end_reacts_was_for_the_original() {
        let end = |at| probe().ended(Seq(2_000), Nanos::millis(at), false, Nanos::millis(20)).unwrap();
        assert!(end(319).spurious);
        assert!(!end(320).spurious);
        assert!(probe().ended(Seq(1_500), Nanos::millis(400), false, Nanos::millis(20)).is_none());
    }
}
