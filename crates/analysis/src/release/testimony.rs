//! What the kernels of a connection's hosts have said, kept until the segments pass that it is about.

use super::witnessed::AT_ONCE;
use crate::rest::at_rest;
use std::collections::VecDeque;
use tcpwhy_base::{End, Ends, Held, Nanos, Segment, Seq, SocketChange, SocketEvent, Timer, Witness};

/// Writes whose data has not passed yet; of more than this the oldest are forgotten.
const MOST_WRITES: usize = 1_024;
/// Times for which data lay unread; as many are kept.
const MOST_READS: usize = 256;
/// Where writes began whose data has passed; as many are kept.
const MOST_BEGUN: usize = 64;

/// What two kernels have said, if any did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testimony(Option<Box<Ends<Host>>>);

at_rest! { Testimony(value) }

/// What one kernel has said of its socket.
#[derive(Clone, Debug, Default)]
struct Host {
    heard: bool,
    writes: VecDeque<Write>,
    /// Where writes before them began.
    begun: VecDeque<Seq>,
    /// Up to where it had read as it last wrote.
    answered: Option<Seq>,
    unread: VecDeque<Unread>,
    /// It tells of such times: where there is none, there was none.
    tells_reads: bool,
    /// What last held back its unsent bytes.
    held: Option<Held>,
    /// When the timer of a delayed ACK last fired.
    ack_timer: Option<Nanos>,
    last: Witness,
}

at_rest! { Host { heard, writes, begun, answered, unread, tells_reads, held, ack_timer, last } }

/// A write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    from: Seq,
    to: Seq,
    /// When it began.
    pub(crate) at: Nanos,
    /// Up to where its writer had read by then.
    pub(crate) read: Option<Seq>,
}

at_rest! { Write { from, to, at, read } }

/// From when until when data lay unread.
#[derive(Clone, Copy, Debug)]
struct Unread {
    since: Nanos,
    until: Nanos,
    /// It was read up to there, and more was left.
    upto: Seq,
    more: bool,
}

at_rest! { Unread { since, until, upto, more } }

impl Host {
    /// Makes room for another time for which data lay unread: what lies there since a read that left more lay there
    /// before it, too.
    fn forget_oldest(&mut self) {
        let oldest = self.unread.pop_front().filter(|u| u.more);
        if let Some((oldest, next)) = oldest.zip(self.unread.front_mut()) {
            next.since = oldest.since;
        }
    }
}

impl Testimony {
    /// Takes what the kernel of `s` said.
    pub(crate) fn hear(&mut self, s: End, event: &SocketEvent) {
        let host = &mut self.0.get_or_insert_default()[s];
        host.heard = true;
        match event.change {
            SocketChange::Write { from, bytes, read } => {
                if host.writes.len() >= MOST_WRITES {
                    host.writes.pop_front();
                }
                host.writes.push_back(Write { from, to: from + bytes, at: event.time, read });
                host.answered = read;
            }
            SocketChange::Room { since } => host.last.room = Some((since, event.time)),
            SocketChange::NoDelay(on) => host.last.nodelay = Some(on),
            SocketChange::Cork(on) => host.last.corked = Some(on),
            SocketChange::Timer(Timer::DelayedAck) => host.ack_timer = Some(event.time),
            SocketChange::Timer(timer) => host.last.timer = Some((timer, event.time)),
            SocketChange::Read { since, upto, left } => {
                if host.unread.len() >= MOST_READS {
                    host.forget_oldest();
                }
                host.unread.push_back(Unread { since, until: event.time, upto, more: left > 0 });
            }
            SocketChange::State(state) => host.tells_reads = state.reads,
            SocketChange::Cwnd(bytes) => host.last.cwnd = Some(bytes),
            SocketChange::Held(held) => host.held = Some(held),
        }
    }

    /// No kernel was heard.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.0.is_none()
    }

    /// What is known about this segment of `s`; `None` if its kernel was never heard.
    #[inline]
    pub(crate) fn about(&mut self, s: End, segment: &Segment) -> Option<Witness> {
        let host = &mut self.0.as_deref_mut()?[s];
        if !host.heard {
            return None;
        }
        while let Some(write) = host.writes.front().filter(|w| w.to.at_or_before(segment.seq)) {
            if host.begun.len() >= MOST_BEGUN {
                host.begun.pop_front();
            }
            host.begun.push_back(write.from);
            host.writes.pop_front();
        }
        // What is sent as one segment is there when its last byte is.
        let end = segment.seq + segment.len;
        let first = host.writes.front().filter(|w| w.from.at_or_before(segment.seq));
        let write = first.and_then(|_| host.writes.iter().rev().find(|w| w.from.before(end)));
        Some(Witness { written: write.map(|w| w.at), ..host.last })
    }

    /// How much of a time data lay that `s` did not read; `None` if its kernel does not tell.
    #[inline]
    pub(crate) fn unread(&self, s: End, from: Nanos, to: Nanos) -> Option<Nanos> {
        let host = self.host(s).filter(|host| host.tells_reads)?;
        let within = host.unread.iter().rev().take_while(|u| u.until > from);
        Some(within.fold(Nanos::ZERO, |sum, u| sum + (u.until.min(to) - u.since.max(from)).floor0()))
    }

    /// What held back the unsent bytes of `s` as the last ACK came in.
    pub(crate) fn held(&self, s: End) -> Option<Held> {
        self.host(s)?.held
    }

    /// The write of `s` that this number is of, unless its data has passed.
    pub(crate) fn write_of(&self, s: End, seq: Seq) -> Option<&Write> {
        let mut writes = self.host(s)?.writes.iter();
        writes.find(|w| w.from.at_or_before(seq) && w.to.after(seq))
    }

    /// A write of `s` began with this number, and `peer` had not read it as it last wrote: that was no answer to it.
    pub(crate) fn is_unanswered(&self, s: End, nxt: Seq) -> bool {
        let answered = self.host(s.peer()).and_then(|host| host.answered);
        let begun = |seq| {
            self.host(s).is_some_and(|host| {
                host.begun.contains(&seq) || host.writes.iter().any(|write| write.from == seq)
            })
        };
        answered.is_some_and(|answered| answered.before(nxt) && begun(answered))
    }

    /// When `s` read the last of the data that it had been sent up to `end`, if that lay there from `from` on and was
    /// read late (rule 141).
    pub(crate) fn read_all(&self, s: End, from: Nanos, end: Seq) -> Option<Nanos> {
        let unread = &self.host(s)?.unread;
        let late = || unread.iter().rev().take_while(|u| u.until > from);
        // Read piece by piece it lay there since then, too.
        late().last().filter(|first| first.since <= from + AT_ONCE)?;
        // What was left by a late read was read within a millisecond of it, where no other late one is told.
        let all = late().filter(|u| !u.upto.before(end)).last();
        all.or_else(|| late().next()).map(|last| last.until)
    }

    fn host(&self, s: End) -> Option<&Host> {
        self.0.as_deref().map(|hosts| &hosts[s]).filter(|host| host.heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: i64, change: SocketChange) -> SocketEvent {
        let nobody = Segment::EMPTY.src;
        SocketEvent { time: Nanos(at), local: nobody, remote: nobody, change }
    }

    #[test]
    fn a_segment_is_asked_for_its_own_write() {
        let mut heard = Testimony::default();
        let at = |seq| Segment { seq: Seq(seq), len: 10, ..Segment::EMPTY };
        assert_eq!(heard.about(End::Client, &at(0)), None);
        heard.hear(End::Client, &event(5, SocketChange::Write { from: Seq(100), bytes: 20, read: None }));
        heard.hear(End::Client, &event(7, SocketChange::Write { from: Seq(120), bytes: 20, read: None }));
        heard.hear(End::Client, &event(9, SocketChange::Timer(Timer::Probe)));
        let written = |heard: &mut Testimony, seq| heard.about(End::Client, &at(seq)).and_then(|w| w.written);
        assert_eq!(written(&mut heard, 90), None);
        assert_eq!(written(&mut heard, 110), Some(Nanos(5)));
        assert_eq!(written(&mut heard, 120), Some(Nanos(7)));
        assert_eq!(heard.about(End::Client, &at(130)).and_then(|w| w.timer), Some((Timer::Probe, Nanos(9))));
        assert_eq!(heard.about(End::Server, &at(130)), None);
    }
}
