//! Messages of a segment that take a few milliseconds: what the kernel's stamps in jiffies cannot tell of them, its
//! round trips and counts can.

use super::Stretch;
use crate::sample::{Info, Sample};
use std::cmp::Ordering;
use tcpwhy_base::Nanos;

impl Stretch<'_> {
    /// How much of a time in which all was sent and an ACK awaited the other end had what it was for, and waited
    /// for its own program: the ACK came with the answer, or with the next request. Ages in jiffies do not tell
    /// that of waits of a few milliseconds, but the kernel times each of them.
    ///
    /// A receiver may keep the ACK of less than two segments (`__tcp_ack_snd_check`, `net/ipv4/tcp_input.c`), and so
    /// the kernel lets a lone runt packet into its round trip but not into the shortest one (`tcp_clean_rtx_queue`,
    /// FLAG_ACK_MAYBE_DELAYED; `tcp_update_rtt_min`): what is between them, the other end has kept. But for a
    /// quarter of the shortest one, by which packets may be late for RACK (`tcp_rack_reo_wnd`). Where more was under
    /// way at a time, or ACKs came by themselves, the path may have had it.
    pub(super) fn kept_by_peer(&self, then: &Info, now: &Info, rest: Nanos) -> Nanos {
        let bare = then.bare_segs_in() != now.bare_segs_in();
        if now.min_rtt <= Nanos::ZERO || now.rtt <= now.min_rtt + now.min_rtt.part(4) || bare {
            return Nanos::ZERO;
        }
        // Little's law: what was acknowledged in this time, by how long each byte took, was under way on an average.
        let acked = i128::from(now.bytes_acked.saturating_sub(then.bytes_acked));
        let flight = acked * i128::from(now.rtt.0);
        if flight > i128::from(now.snd_mss) * i128::from(rest.0) || !is_lone(self.now) {
            return Nanos::ZERO;
        }
        let trips = i128::from(rest.0) * i128::from(now.min_rtt.0) / i128::from(now.rtt.0);
        rest - Nanos(i64::try_from(trips).unwrap_or(rest.0))
    }

    /// Of a stretch in which a message of one segment came, or one went, or both: how much of its idle time it was
    /// this end's turn, by the stamps of both. In jiffies they are right on an average, as differences. None: more
    /// than that came, which the path may have held up; or the order does not show.
    pub(super) fn own_turn(&self, then: &Info, now: &Info) -> Option<Nanos> {
        let came = now.bytes_received.saturating_sub(then.bytes_received);
        let written = |s: &Sample, i: &Info| i.bytes_acked + u64::from(s.wqueue);
        let spoke = written(self.now, now) > written(self.before, then);
        let unread = self.before.rqueue > 0 && self.now.rqueue > 0;
        if self.in_pieces || unread || came >= u64::from(now.snd_mss.max(1)) {
            return None;
        }
        let whole = self.elapsed;
        let bare = then.bare_segs_in().zip(now.bare_segs_in()).is_none_or(|(then, now)| then != now);
        if !bare && (self.was_answered || self.before.wqueue > 0) {
            // To wait for the other end with nothing unacknowledged takes an ACK without bytes.
            return (came > 0 || spoke).then_some(whole);
        }
        let (heard_ago, spoke_ago) = (now.last_data_recv.min(whole), now.last_data_sent.min(whole));
        if came == 0 {
            return spoke.then_some(whole - spoke_ago);
        }
        if now.data_segs_in?.wrapping_sub(then.data_segs_in?) != 1 {
            return None;
        }
        match (spoke, heard_ago.cmp(&spoke_ago)) {
            (false, _) => Some(heard_ago),
            (true, Ordering::Greater) => Some(heard_ago - spoke_ago),
            (true, Ordering::Less) => Some(whole - spoke_ago + heard_ago),
            (true, Ordering::Equal) if self.answered => Some(whole),
            (true, Ordering::Equal) => (now.last_ack_recv < now.last_data_recv).then_some(Nanos::ZERO),
        }
    }
}

/// No more is under way than one packet of less than a segment.
pub(crate) fn is_lone(s: &Sample) -> bool {
    s.info.is_some_and(|i| i.unacked <= 1 && s.wqueue < i.snd_mss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::judge;
    use crate::judge::tests::{sample, stretch};
    use crate::split::Where;
    use tcpwhy_base::Cause;

    /// A receiver may keep the ACK of a lone packet until it answers: the kernel's round trip has that, the shortest
    /// one has not.
    #[test]
    fn what_a_lone_ack_took_beyond_a_trip_was_the_other_ends() {
        let tenths = |change: &dyn Fn(&mut Sample, &mut Info), acked: u64, bare: u32| {
            let at = |later: bool| {
                sample(|s, i| {
                    (s.wqueue, i.unacked, i.last_data_sent) = (100, 1, Nanos::millis(4));
                    (i.min_rtt, i.rtt) = (Nanos::millis(2), Nanos::millis(8));
                    (i.segs_in, i.data_segs_in) = (Some(9), Some(8));
                    change(s, i);
                    if later {
                        i.bytes_acked += acked;
                        i.segs_in = Some(9 + bare);
                    }
                })
            };
            let (before, now) = (at(false), at(true));
            let all = judge(&Stretch { busy: Nanos::millis(20), ..stretch(&before, &now) });
            assert_eq!(all.iter().fold(Nanos::ZERO, |sum, s| sum + s.time), Nanos::millis(20), "{all:?}");
            let of =
                |cause| all.iter().filter(|s| s.cause == cause).map(|s| s.time.0 / 2_000_000).sum::<i64>();
            (of(Cause::PathDelay), of(Cause::ServerThink))
        };
        // Of each 8 ms a trip takes 2.
        assert_eq!(tenths(&|_, _| (), 0, 0), (2, 7), "and a half each");
        assert_eq!(tenths(&|_, i| i.min_rtt = Nanos::micros(13), 0, 0), (0, 9));
        assert_eq!(tenths(&|s, i| (s.wqueue, i.unacked) = (0, 0), 200, 0), (2, 7), "it has come");
        // All of it may have been the trip.
        let path = (10, 0);
        assert_eq!(tenths(&|_, i| i.min_rtt = Nanos::ZERO, 0, 0), path, "never measured");
        assert_eq!(tenths(&|_, i| i.rtt = Nanos::micros(2500), 0, 0), path, "as late as packets may be");
        assert_eq!(tenths(&|_, _| (), 0, 1), path, "an ACK came by itself");
        assert_eq!(tenths(&|s, i| (s.wqueue, i.unacked) = (2000, 2), 0, 0), path, "its own queue");
        assert_eq!(
            tenths(&|s, i| (s.wqueue, i.unacked) = (0, 0), 90_000, 0),
            path,
            "its own queue, now empty"
        );
    }

    /// Ages of the last bytes each way, of which one segment came, in 20 ms: whose time it was.
    #[test]
    fn short_messages_are_told_by_their_stamps() {
        let own = |heard: Option<i64>, spoke: Option<i64>, bare: u32, change: &dyn Fn(&mut Stretch<'_>)| {
            let at = |later: bool| {
                sample(|_, i| {
                    (i.segs_in, i.data_segs_in) = (Some(9), Some(8));
                    if !later {
                        return;
                    }
                    let came = u32::from(heard.is_some());
                    i.bytes_received += u64::from(came) * 100;
                    i.bytes_acked += u64::from(spoke.is_some()) * 100;
                    (i.segs_in, i.data_segs_in) = (Some(9 + came + bare), Some(8 + came));
                    i.last_data_recv = Nanos::millis(heard.unwrap_or(80));
                    i.last_data_sent = Nanos::millis(spoke.unwrap_or(80));
                    i.last_ack_recv = i.last_data_recv;
                })
            };
            let (before, now) = (at(false), at(true));
            let mut stretch = Stretch { here_is_client: false, ..stretch(&before, &now) };
            change(&mut stretch);
            let all = judge(&stretch);
            let here = all.iter().filter(|s| (s.cause, s.at) == (Cause::ServerThink, Where::Here));
            let told = all.iter().all(|s| s.cause != Cause::Unexplained);
            told.then_some(here.map(|s| s.time.0 / 1_000_000).sum::<i64>())
        };
        let none: &dyn Fn(&mut Stretch<'_>) = &|_| ();
        assert_eq!(own(Some(8), None, 0, none), Some(8), "a request came");
        assert_eq!(own(None, Some(8), 1, none), Some(12), "an answer went");
        assert_eq!(own(Some(16), Some(4), 1, none), Some(12), "both");
        assert_eq!(own(Some(4), Some(16), 1, none), Some(8), "an answer, and the next request");
        assert_eq!(own(Some(8), Some(8), 1, none), None, "within one tick");
        assert_eq!(own(Some(8), Some(8), 1, &|s| s.answered = true), Some(20));
        assert_eq!(own(Some(8), Some(4), 0, &|s| s.was_answered = true), Some(20), "no ACK let it wait");
        assert_eq!(own(Some(8), None, 0, &|s| s.in_pieces = true), None, "more may come");
    }
}
