//! One connection while it lives: its last sample, and its time by cause.

mod booked;
mod doubt;

use crate::facts::Facts;
use crate::judge::{JIFFY, Stretch, judge};
use crate::pause::Pause;
use crate::sample::{Process, Sample};
use crate::split::{Share, Split};
use tcpwhy_base::{Cause, Class, Nanos};

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It asked for the connection.
    Client,
    /// It was asked: somebody listens on its port.
    Server,
}

impl Role {
    /// The name in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }
}

/// Of the times that the kernel counts: what has been given to causes already. Counted in jiffies, they run
/// ahead of the clock and behind it by turns; so nothing is lost or counted twice.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    busy: Nanos,
    rwnd_limited: Nanos,
    sndbuf_limited: Nanos,
}

/// What others on this host tell of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// The accept queue of its listener has no room.
    pub(crate) queue_full: bool,
    /// The other end is here, too, and more lies unread there than may still come.
    pub(crate) peer_unread: bool,
    /// The other end is here, too, and a thread sits in a call to read from it.
    pub(crate) peer_reads: bool,
}

/// One connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// As it was last seen.
    pub sample: Sample,
    /// Which end this is.
    pub role: Role,
    /// Whose socket it is, if that can be seen.
    pub process: Option<Process>,
    /// How long it has been looked at.
    pub watched: Nanos,
    /// It was opened while others were looked at already: all of its life was seen.
    pub from_start: bool,
    /// It is gone.
    pub ended: bool,
    /// Time by cause since it is looked at.
    pub total: Split,
    /// What kernel events say of it, if they are seen.
    pub facts: Option<Facts>,
    /// What they had said when the interval began.
    marked: Facts,
    /// What they said in the last interval.
    pub news: Facts,
    /// Time by cause in the last interval.
    pub interval: Split,
    /// In the interval that goes on, and in the last one: bytes of the other end came while older ones of this end were
    /// unsent, so that somebody may wait behind those.
    hears: bool,
    pub(crate) heard: bool,
    /// Packets retransmitted in the last interval.
    pub sent_again: u32,
    /// Those before it.
    marked_again: u32,
    /// In the one that goes on.
    current: Split,
    /// Of it: estimated while events were not listened to.
    unheard: Split,
    /// Events of single writes and reads are not listened to.
    pub(crate) rests: bool,
    /// A write is held since before events were listened to.
    held_before: bool,
    /// The last sample that each cause showed at, of this interval and of the last one.
    shown: Vec<(Cause, Sample)>,
    evidence: Vec<(Cause, Sample)>,
    given: Given,
    largest_window: u32,
    largest_cwnd: u32,
    /// Estimated since bytes were last acknowledged: it may yet turn out that they were lost.
    pending: Split,
    /// Of the stretch in which bytes were last acknowledged: what Nagle's algorithm has held since then.
    began: Split,
    /// The time since bytes last came or were written.
    pause: Pause,
    /// Lists since it was last in one, and the time of those.
    misses: u8,
    absent: Nanos,
}

impl Connection {
    pub(crate) fn new(sample: Sample, role: Role, from_start: bool) -> Connection {
        let info = sample.info.unwrap_or_default();
        let given =
            Given { busy: info.busy, rwnd_limited: info.rwnd_limited, sndbuf_limited: info.sndbuf_limited };
        Connection {
            role,
            process: None,
            watched: Nanos::ZERO,
            from_start,
            ended: false,
            total: Split::default(),
            facts: None,
            marked: Facts::default(),
            news: Facts::default(),
            interval: Split::default(),
            hears: false,
            heard: false,
            sent_again: 0,
            marked_again: if from_start { 0 } else { info.total_retrans },
            current: Split::default(),
            unheard: Split::default(),
            rests: false,
            held_before: false,
            shown: Vec::new(),
            evidence: Vec::new(),
            given: if from_start { Given::default() } else { given },
            largest_window: info.snd_wnd.unwrap_or(0),
            largest_cwnd: info.cwnd,
            pending: Split::default(),
            began: Split::default(),
            pause: Pause::of(&sample),
            misses: 0,
            absent: Nanos::ZERO,
            sample,
        }
    }

    /// Another list is made.
    pub(crate) fn awaits_look(&mut self) {
        self.misses = self.misses.saturating_add(1);
    }

    /// The list that is made has it.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.misses == 0
    }

    /// The list has it not, nor had the one before.
    pub(crate) fn is_gone(&self) -> bool {
        self.misses > 1
    }

    /// The list has it not; it may be in the next one, `elapsed` and more after it was last seen.
    pub(crate) fn is_passed_over(&mut self, elapsed: Nanos) {
        self.absent += elapsed;
    }

    /// Whether a thread sits in a call to read from it, or the one that does so is elsewhere.
    pub(crate) fn is_read(&mut self, reads: bool) {
        self.pause.reads = Some(reads);
    }

    /// A thread sits in a call to read from it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.pause.reads == Some(true)
    }

    /// What the socket says `elapsed` later.
    pub(crate) fn observe(&mut self, now: &Sample, elapsed: Nanos, known: Known) {
        let elapsed = elapsed + std::mem::take(&mut self.absent);
        self.misses = 0;
        self.watched += elapsed;
        let (busy, rwnd_limited, sndbuf_limited) = self.count(now, elapsed);
        if let Some(info) = &now.info {
            self.largest_window = self.largest_window.max(info.snd_wnd.unwrap_or(0));
            let again = self.sample.info.is_some_and(|then| info.total_retrans > then.total_retrans);
            // An ECN mark takes from it as a loss does (TCP_CA_CWR).
            let reduced = again || info.ca_state >= 2;
            // While a loss is repaired the window is on its way to the threshold.
            let target = info.cwnd.min(info.ssthresh);
            self.largest_cwnd = if reduced { target } else { self.largest_cwnd.max(info.cwnd) };
        }
        // Who ends a pause has made it.
        for (share, to) in self.pause.ends(&self.sample, now, self.role == Role::Client) {
            self.move_booked(share, to);
        }
        let shares = judge(&Stretch {
            before: &self.sample,
            now,
            elapsed,
            busy,
            rwnd_limited,
            sndbuf_limited,
            here_is_client: self.role == Role::Client,
            queue_full: known.queue_full,
            peer_unread: known.peer_unread,
            reads: self.pause.reads,
            peer_reads: known.peer_reads,
            in_pieces: self.pause.in_pieces || self.pause.goes_on_as_before,
            answered: self.pause.answered,
            was_answered: self.pause.was_answered,
            largest_window: self.largest_window,
            largest_cwnd: self.largest_cwnd,
        });
        let blamed = |s: &&Share| s.cause.class() == Class::Tcp || s.cause == Cause::SlowReader;
        for share in shares.iter().filter(blamed) {
            self.shown.retain(|(cause, _)| *cause != share.cause);
            self.shown.push((share.cause, now.clone()));
        }
        if self.rests || self.held_before {
            shares.iter().for_each(|share| self.unheard.add(*share));
            self.held_before &= is_held(now) && acked(now) == acked(&self.sample);
        }
        self.pause.goes_on(&self.sample, now, &shares);
        self.book(now, shares, known.peer_unread);
        self.hears |= hears_behind(&self.sample, now);
        self.sample = now.clone();
    }

    /// From now on events of single writes and reads are listened to.
    pub(crate) fn hear(&mut self) {
        self.held_before = is_held(&self.sample);
    }

    /// What of the kernel's counts is new, none more than the time that has passed.
    fn count(&mut self, now: &Sample, elapsed: Nanos) -> (Nanos, Nanos, Nanos) {
        let Some(info) = &now.info else { return Default::default() };
        let given = &mut self.given;
        let busy = (info.busy - given.busy).floor0().min(elapsed);
        let rwnd_limited = (info.rwnd_limited - given.rwnd_limited).floor0().min(busy);
        let sndbuf_limited = (info.sndbuf_limited - given.sndbuf_limited).floor0().min(busy - rwnd_limited);
        given.rwnd_limited += rwnd_limited;
        given.sndbuf_limited += sndbuf_limited;
        // A surplus of more than jiffies is none of rounding (a process that slept for long): it is let go.
        let late = (info.busy - given.busy - busy).floor0();
        given.busy += busy + (late - JIFFY.times(2)).floor0();
        (busy, rwnd_limited, sndbuf_limited)
    }

    /// What kernel events said up to now overrides what samples said of the interval that goes on.
    pub(crate) fn witness(&mut self, facts: Facts) {
        self.facts = Some(facts);
        let before = self.marked.measured();
        let mut measured: Vec<_> = facts.measured().into();
        for (now, then) in measured.iter_mut().zip(before) {
            now.2 = (now.2 - then.2).floor0();
        }
        let old = self.current.clone();
        self.current.measure(&measured, &self.unheard);
        self.total.replace(&old, &self.current);
        self.complete(&facts);
    }

    /// What was measured has passed, even if the connection was there at one look only, or at none of a busy machine's.
    fn complete(&mut self, facts: &Facts) {
        let measured = facts.measured();
        let sum = measured.iter().fold(Nanos::ZERO, |sum, m| sum + m.2);
        if !self.from_start || sum <= self.watched {
            return;
        }
        for (cause, at, time) in measured {
            let time = time - self.total.time(|c| c == cause);
            let share = Share { cause, at, time, counted: time };
            self.total.add(share);
            self.current.add(share);
        }
        self.watched = self.watched.max(self.total.total());
    }

    /// Ends an interval.
    pub(crate) fn mark(&mut self) {
        self.interval = std::mem::take(&mut self.current);
        self.unheard = Split::default();
        self.heard = std::mem::take(&mut self.hears);
        self.evidence = std::mem::take(&mut self.shown);
        let facts = self.facts.unwrap_or_default();
        self.news = facts.since(&self.marked);
        self.marked = facts;
        let again = self.sample.info.map_or(self.marked_again, |i| i.total_retrans);
        self.sent_again = again.saturating_sub(self.marked_again);
        self.marked_again = again;
    }

    /// The last sample of the last interval at which this cause showed; else the last of all.
    pub fn sample_of(&self, cause: Cause) -> &Sample {
        self.evidence.iter().find(|(of, _)| *of == cause).map_or(&self.sample, |(_, sample)| sample)
    }

    /// Time in the last interval that need not have passed.
    pub fn lost(&self) -> Nanos {
        self.interval.time(|cause| cause.class() == tcpwhy_base::Class::Tcp)
    }
}

/// Something came between these two looks, and what had been written before the first of them had not all left at the
/// second.
fn hears_behind(before: &Sample, now: &Sample) -> bool {
    let (Some(then), Some(info)) = (&before.info, &now.info) else { return false };
    let written = then.bytes_acked + u64::from(before.wqueue);
    let sent = info.bytes_acked + u64::from(now.wqueue.saturating_sub(info.notsent));
    info.bytes_received > then.bytes_received && sent < written
}

/// Less than a segment is unsent.
fn is_held(s: &Sample) -> bool {
    s.info.is_some_and(|i| i.notsent > 0 && i.notsent < i.snd_mss)
}

fn acked(s: &Sample) -> Option<u64> {
    s.info.map(|i| i.bytes_acked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Info;

    pub(super) fn sample(change: impl FnOnce(&mut Sample, &mut Info)) -> Sample {
        let mut info = Info {
            snd_mss: 1448,
            cwnd: 10,
            rto: Nanos::millis(220),
            rtt: Nanos::millis(20),
            min_rtt: Nanos::millis(20),
            snd_wnd: Some(65_536),
            ..Info::default()
        };
        let mut s = Sample::open(40_000, 80);
        change(&mut s, &mut info);
        s.info = Some(info);
        s
    }

    pub(super) fn ms(split: &Split) -> Vec<(Cause, i64)> {
        split.shares().iter().map(|s| (s.cause, s.time.0 / 1_000_000)).collect()
    }

    /// One message, be it as large as it is, has nobody who waits behind it; a request that comes meanwhile has.
    #[test]
    fn who_is_heard_while_older_bytes_are_unsent_waits_behind_them() {
        let at = |acked: u64, queue: u32, notsent: u32, received: u64| {
            sample(|s, i| {
                (s.wqueue, i.notsent, i.bytes_acked, i.bytes_received) = (queue, notsent, acked, received);
            })
        };
        let heard = |now: Sample| {
            let mut c = Connection::new(at(1_000, 50_000, 40_000, 100), Role::Server, true);
            c.observe(&now, Nanos::millis(20), Known::default());
            c.mark();
            let heard = c.heard;
            c.mark();
            assert!(!c.heard, "it is of one interval");
            heard
        };
        // 51,000 bytes were written: with 31,000 acknowledged and 20,000 under way all of them have left.
        assert!(heard(at(30_999, 50_000, 30_000, 101)));
        assert!(!heard(at(31_000, 50_000, 30_000, 101)), "the answer was sent, and the next request came");
        assert!(!heard(at(30_999, 50_000, 30_000, 100)), "nothing came");
    }

    #[test]
    fn counted_times_are_given_once_however_they_are_rounded() {
        let at = |busy: i64, rwnd: i64| {
            sample(|s, i| {
                (s.wqueue, i.unacked) = (1000, 1);
                (i.busy, i.rwnd_limited) = (Nanos::millis(busy), Nanos::millis(rwnd));
            })
        };
        let mut c = Connection::new(at(0, 0), Role::Client, true);
        for (busy, rwnd) in [(24, 24), (24, 24), (60, 60), (64, 60)] {
            c.observe(&at(busy, rwnd), Nanos::millis(16), Known::default());
        }
        assert_eq!((c.watched, c.total.total()), (Nanos::millis(64), Nanos::millis(64)));
        let window = c.total.time(|cause| cause == Cause::ReceiveWindow);
        assert!((Nanos::millis(52)..=Nanos::millis(60)).contains(&window), "{window}");
    }

    /// However often they are asked for: events of an interval are counted once.
    #[test]
    fn events_override_samples_for_their_interval() {
        let held = |ms: i64| Facts {
            nagle: crate::Waits { count: 1, time: Nanos::millis(ms), longest: Nanos::ZERO },
            ..Facts::default()
        };
        let at = |t: i64| sample(|s, i| (s.wqueue, i.unacked, i.busy) = (1000, 1, Nanos::millis(t)));
        let mut c = Connection::new(at(0), Role::Client, true);
        for (t, expected) in [
            (20, [(Cause::Nagle, 15), (Cause::PathDelay, 5)]),
            (40, [(Cause::PathDelay, 18), (Cause::Nagle, 2)]),
        ] {
            c.observe(&at(t), Nanos::millis(20), Known::default());
            let sum = if t == 20 { 15 } else { 17 };
            c.witness(held(sum));
            c.witness(held(sum));
            c.mark();
            assert_eq!(ms(&c.interval), expected);
            assert_eq!(c.news.nagle.time, Nanos::millis(if t == 20 { 15 } else { 2 }));
        }
        assert_eq!(ms(&c.total), [(Cause::PathDelay, 23), (Cause::Nagle, 17)]);
    }

    #[test]
    fn what_was_measured_between_two_looks_has_passed() {
        let probe = crate::Waits { count: 1, time: Nanos::millis(240), longest: Nanos::millis(240) };
        let facts = Facts { probe, ..Facts::default() };
        for (from_start, expected) in [(true, vec![(Cause::TailLossProbe, 240)]), (false, vec![])] {
            let mut c = Connection::new(sample(|_, _| ()), Role::Server, from_start);
            c.witness(facts);
            c.witness(facts);
            assert_eq!((ms(&c.total), c.watched), (expected, c.total.total()));
        }
    }
}
