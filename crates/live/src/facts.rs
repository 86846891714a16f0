//! What kernel events say of a socket: sums, from when it was first seen.

use crate::split::Where;
use tcpwhy_base::{Cause, Nanos};

/// Waits of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// How long together.
    pub time: Nanos,
    /// The longest.
    pub longest: Nanos,
}

/// What the kernel saw of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Small writes that Nagle's algorithm held for about a round trip.
    pub nagle: Waits,
    /// Those that were held for far longer.
    pub nagle_delayed_ack: Waits,
    /// Small writes that a cork held for a millisecond or more.
    pub cork: Waits,
    /// Times that a writer slept in a call, for want of buffer.
    pub blocked: Waits,
    /// Writes that were refused with EAGAIN.
    pub refused: u64,
    /// Segments retransmitted because others had arrived.
    pub fast_retransmits: u64,
    /// Segments retransmitted after a timeout.
    pub timeouts: u64,
    /// Segments retransmitted as probes of the end of a flight.
    pub loss_probes: u64,
    /// Times that data lay readable for a millisecond or more, until the application read.
    pub unread: Waits,
    /// Writes that found a segment or more of unsent bytes before them, until their first byte left; one at a time.
    pub queued: Waits,
    /// From the last segment until the retransmission timer sent again.
    pub timeout: Waits,
    /// From the last segment until a probe of the end of a flight was sent.
    pub probe: Waits,
    /// Writes that were refused, or went half way: until there was room again, or until the program tried
    /// again without.
    pub no_room: Waits,
    /// From when there was room after such a write until the program wrote, where that took a millisecond or more.
    pub late_writer: Waits,
}

/// 64-bit words of a socket's sums, as `bpf/watch.bpf.c` lays them out.
#[cfg(any(all(target_os = "linux", feature = "bpf"), test))]
pub(crate) const WORDS: usize = 48;

impl Facts {
    /// From the sums of the program: the socket's cookie, and what was seen of it.
    #[cfg(any(all(target_os = "linux", feature = "bpf"), test))]
    pub(crate) fn decode(sums: &[u64; WORDS]) -> (u64, Facts) {
        let &[
            cookie,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            i,
            j,
            k,
            l,
            refused,
            fast_retransmits,
            timeouts,
            loss_probes,
            m,
            n,
            o,
            p,
            q,
            r,
            s,
            t,
            u,
            v,
            w,
            x,
            y,
            z,
            aa,
            ab,
            ac,
            ad,
            ..,
        ] = sums;
        let ns = |n: u64| Nanos(i64::try_from(n).unwrap_or(i64::MAX));
        let waits = |count, time, longest| Waits { count, time: ns(time), longest: ns(longest) };
        let facts = Facts {
            nagle: waits(a, b, c),
            nagle_delayed_ack: waits(d, e, f),
            cork: waits(g, h, i),
            blocked: waits(j, k, l),
            refused,
            fast_retransmits,
            timeouts,
            loss_probes,
            unread: waits(m, n, o),
            queued: waits(p, q, r),
            timeout: waits(s, t, u),
            probe: waits(v, w, x),
            no_room: waits(y, z, aa),
            late_writer: waits(ab, ac, ad),
        };
        (cookie, facts)
    }

    /// What is new since then. A longest wait is not a sum: it stays as it is.
    pub fn since(&self, then: &Facts) -> Facts {
        let waits = |now: Waits, then: Waits| Waits {
            count: now.count.saturating_sub(then.count),
            time: (now.time - then.time).floor0(),
            longest: now.longest,
        };
        Facts {
            nagle: waits(self.nagle, then.nagle),
            nagle_delayed_ack: waits(self.nagle_delayed_ack, then.nagle_delayed_ack),
            cork: waits(self.cork, then.cork),
            blocked: waits(self.blocked, then.blocked),
            refused: self.refused.saturating_sub(then.refused),
            fast_retransmits: self.fast_retransmits.saturating_sub(then.fast_retransmits),
            timeouts: self.timeouts.saturating_sub(then.timeouts),
            loss_probes: self.loss_probes.saturating_sub(then.loss_probes),
            unread: waits(self.unread, then.unread),
            queued: waits(self.queued, then.queued),
            timeout: waits(self.timeout, then.timeout),
            probe: waits(self.probe, then.probe),
            no_room: waits(self.no_room, then.no_room),
            late_writer: waits(self.late_writer, then.late_writer),
        }
    }

    /// Causes whose time the kernel measures, and where they lie, with all of that time.
    pub(crate) fn measured(&self) -> [(Cause, Where, Nanos); 6] {
        [
            (Cause::Nagle, Where::Here, self.nagle.time),
            (Cause::NagleDelayedAck, Where::Here, self.nagle_delayed_ack.time),
            (Cause::Cork, Where::Here, self.cork.time),
            (Cause::RetransmissionTimeout, Where::Path, self.timeout.time),
            (Cause::TailLossProbe, Where::Path, self.probe.time),
            (Cause::ReaderLate, Where::Here, self.unread.time),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_as_they_are_laid_out() {
        let mut words = [0; WORDS];
        for (n, word) in words.iter_mut().enumerate() {
            *word = n as u64;
        }
        let (cookie, facts) = Facts::decode(&words);
        assert_eq!((cookie, facts.nagle.count, facts.nagle_delayed_ack.time), (0, 1, Nanos(5)));
        assert_eq!((facts.cork.longest, facts.blocked.count, facts.refused), (Nanos(9), 10, 13));
        assert_eq!((facts.fast_retransmits, facts.timeouts, facts.loss_probes), (14, 15, 16));
        assert_eq!((facts.unread.count, facts.queued.time, facts.probe.longest), (17, Nanos(21), Nanos(28)));
        assert_eq!((facts.no_room.count, facts.late_writer.longest), (29, Nanos(34)));
    }
}
