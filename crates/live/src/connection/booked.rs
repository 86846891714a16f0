//! What each interval between two looks was for, and what a wait turns out to have been once the next look shows it:
//! a timer's, a reader's, a delayed ACK's.

use super::Connection;
use crate::judge::JIFFY;
use crate::sample::{Sample, State};
use crate::split::{Share, Split, Where};
use tcpwhy_base::{Cause, Nanos};

impl Connection {
    pub(super) fn book(&mut self, now: &Sample, shares: Vec<Share>, peer_unread: bool) {
        // What is sent again to who takes nothing finds that out: the wait was for that one.
        let repaired = self.repair(now).map(|timer| match now.probes(peer_unread) {
            true => (Cause::SlowReader, Where::Peer),
            false => (timer, Where::Path),
        });
        let progress = match (&self.sample.info, &now.info) {
            (Some(then), Some(info)) => info.bytes_acked > then.bytes_acked,
            _ => false,
        };
        let anew = progress || self.sample.state != now.state;
        if anew {
            // The ACK that it waited for has come.
            self.began = Split::default();
        }
        if let Some(to) = repaired {
            // Who did not read had the window shut, whatever was sent into it.
            self.move_pending(|s| (s.cause != Cause::SlowReader).then_some(to));
        } else if shares.iter().any(|s| s.cause == Cause::NagleDelayedAck) {
            // It was held all the time, and the ACK is late only now.
            self.move_pending(|s| (s.cause == Cause::Nagle).then_some((Cause::NagleDelayedAck, s.at)));
            for share in std::mem::take(&mut self.began).shares() {
                self.move_booked(share, (Cause::NagleDelayedAck, share.at));
            }
        }
        if progress {
            self.kept_by_peer(now);
        }
        if anew {
            self.pending = Split::default();
        }
        let waiting = now.info.is_some_and(|i| i.unacked > 0) || now.state == State::SynSent;
        for share in shares {
            let share = match repaired {
                Some((cause, at)) if share.cause == Cause::FastRecovery => Share { cause, at, ..share },
                _ => share,
            };
            self.total.add(share);
            self.current.add(share);
            if waiting && share.counted == Nanos::ZERO {
                match progress {
                    false => self.pending.add(share),
                    // No timer has waited for all of it, but who holds the bytes now has all of it already.
                    true if share.cause == Cause::Nagle => self.began.add(share),
                    true => {}
                }
            }
        }
    }

    /// What was sent again without any sign that packets behind it had arrived: the wait before it was for a timer.
    fn repair(&self, now: &Sample) -> Option<Cause> {
        if now.state == State::SynSent {
            return (now.retransmits > self.sample.retransmits).then_some(Cause::SynRetransmit);
        }
        let (then, info) = (self.sample.info.as_ref()?, now.info.as_ref()?);
        if matches!(self.sample.state, State::SynSent | State::SynReceived) {
            // What was sent again until it was open was its SYN.
            return (info.total_retrans > then.total_retrans).then_some(Cause::SynRetransmit);
        }
        if info.total_retrans <= then.total_retrans
            || then.sacked > 0
            || then.ca_state == 3
            || info.ca_state == 3
        {
            return None;
        }
        if info.ca_state == 4 || info.retransmits > 0 {
            return Some(Cause::RetransmissionTimeout);
        }
        // Both timers may have fired and been answered since: a probe comes before the timeout (RFC 8985, 7.2).
        let waited = self.pending.total();
        match waited {
            w if w >= then.rto => Some(Cause::RetransmissionTimeout),
            w if w > then.min_rtt + JIFFY => Some(Cause::TailLossProbe),
            _ => None,
        }
    }

    /// What was estimated since the last progress becomes something else.
    fn move_pending(&mut self, becomes: impl Fn(&Share) -> Option<(Cause, Where)>) {
        for share in self.pending.shares() {
            if let Some(to) = becomes(&share) {
                self.move_booked(share, to);
            }
        }
    }

    pub(super) fn move_booked(&mut self, share: Share, to: (Cause, Where)) {
        for split in [&mut self.total, &mut self.current, &mut self.unheard, &mut self.pending] {
            split.move_to(share, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{ms, sample};
    use crate::connection::{Known, Role};
    use crate::facts::Facts;

    /// The timer shows the loss; the wait before it looked like a trip and a thinking server.
    #[test]
    fn a_wait_that_ends_with_a_timeout_was_for_the_timeout() {
        let at = |t: i64, again: u32| {
            sample(|s, i| {
                (s.wqueue, i.unacked, i.total_retrans) = (1000, 1, again);
                (i.busy, i.last_data_sent) = (Nanos::millis(t), Nanos::millis(t));
                (i.retransmits, i.ca_state) = if again > 0 { (1, 4) } else { (0, 0) };
            })
        };
        let mut c = Connection::new(at(0, 0), Role::Client, true);
        for t in (20..=220).step_by(20) {
            c.observe(&at(t, 0), Nanos::millis(20), Known::default());
        }
        assert_eq!(ms(&c.total), [(Cause::ServerThink, 200), (Cause::PathDelay, 20)]);
        c.mark();
        c.observe(&at(240, 1), Nanos::millis(20), Known::default());
        assert_eq!(ms(&c.total), [(Cause::RetransmissionTimeout, 240)]);
        c.mark();
        assert_eq!(ms(&c.interval), [(Cause::RetransmissionTimeout, 20)], "no more than its own time");
    }

    /// Repeats into a window that was shut behind what had left are probes: nothing was lost, and no timer is to be set.
    #[test]
    fn what_is_sent_again_into_a_shut_window_waits_for_its_reader() {
        let at = |t: i64, again: u32, window: u32, unsent: u32| {
            sample(|s, i| {
                (s.wqueue, i.unacked, i.notsent, i.total_retrans) = (10_000 + unsent, 1, unsent, again);
                (i.busy, i.last_data_sent) = (Nanos::millis(t), Nanos::millis(t));
                (i.retransmits, i.ca_state) = if again > 0 { (1, 4) } else { (0, 0) };
                i.snd_wnd = Some(window);
            })
        };
        let timeouts = Facts {
            timeout: crate::Waits { count: 1, time: Nanos::millis(220), longest: Nanos::millis(220) },
            ..Facts::default()
        };
        let causes = |shut: u32, unread: bool, then: u32, unsent: u32| {
            let known = Known { peer_unread: unread, ..Known::default() };
            let mut c = Connection::new(at(0, 0, shut, unsent), Role::Server, true);
            for t in (20..=300).step_by(20) {
                c.observe(&at(t, u32::from(t > 220), shut, unsent), Nanos::millis(20), known);
            }
            // It reads again, and what lay in flight is sent once more.
            c.observe(&at(320, 2, then, unsent), Nanos::millis(20), Known::default());
            c.witness(timeouts);
            ms(&c.total)
        };
        let (reader, timer) = (Cause::SlowReader, Cause::RetransmissionTimeout);
        assert_eq!(causes(0, false, 0, 40_000), [(reader, 320)]);
        // All had been sent: until the first repeat it looked as if it was on its way, and then thought about.
        assert_eq!(causes(0, false, 0, 0), [(reader, 320)]);
        assert_eq!(causes(0, false, 65_536, 40_000), [(reader, 300), (timer, 20)]);
        // Of a reader on this host its buffer tells, be its window what it was.
        assert_eq!(causes(11_000, true, 65_536, 40_000), [(reader, 300), (timer, 20)]);
        assert_eq!(causes(65_536, false, 65_536, 40_000)[0].0, timer);
    }

    /// Stall upon stall, each some looks long: the first look of each says nothing of its ACK yet.
    #[test]
    fn a_hold_is_the_delayed_acks_from_its_first_look_on() {
        let look = Nanos::millis(10);
        for (ages, expected) in [(&[4, 14, 24, 34][..], Cause::NagleDelayedAck), (&[4][..], Cause::Nagle)] {
            let mut busy = Nanos::ZERO;
            let mut at = |acked: u64, age: i64| {
                let s = sample(|s, i| {
                    (s.wqueue, i.notsent, i.unacked) = (204, 200, 1);
                    (i.bytes_acked, i.last_data_sent) = (acked, Nanos::millis(age));
                    (i.busy, i.min_rtt) = (busy, Nanos::micros(10));
                });
                busy += look;
                s
            };
            let mut c = Connection::new(at(0, 34), Role::Client, true);
            for hold in 1..=5 {
                ages.iter().for_each(|&age| c.observe(&at(hold, age), look, Known::default()));
            }
            let looks = 5 * i64::try_from(ages.len()).unwrap();
            assert_eq!(ms(&c.total), [(expected, 10 * looks)]);
        }
    }

    #[test]
    fn a_lost_syn_makes_all_of_the_handshake_its_own() {
        let at = |again| sample(|s, _| (s.state, s.retransmits) = (State::SynSent, again));
        let mut c = Connection::new(at(0), Role::Client, true);
        for again in [0, 0, 1, 1] {
            c.observe(&at(again), Nanos::millis(400), Known::default());
        }
        assert_eq!(ms(&c.total), [(Cause::SynRetransmit, 1600)]);
        // The kernel still counts its SYN when it is open.
        let mut c = Connection::new(at(0), Role::Client, true);
        c.observe(&at(0), Nanos::millis(400), Known::default());
        c.observe(
            &sample(|_, i| (i.total_retrans, i.retransmits) = (1, 1)),
            Nanos::millis(900),
            Known::default(),
        );
        assert_eq!(c.total.time(|cause| cause == Cause::RetransmissionTimeout), Nanos::ZERO);
        assert!(ms(&c.total).contains(&(Cause::SynRetransmit, 400)), "{:?}", ms(&c.total));
    }
}
