//! What the kernels of a connection's hosts have said, kept until the segments pass that it is about.

use std::collections::VecDeque;
use tcpwhy_base::{End, Ends, Nanos, Segment, Seq, SocketChange, SocketEvent, Timer, Witness};

/// Writes whose data has not passed yet; of more than this the oldest are forgotten.
const MOST_WRITES: usize = 1_024;
/// Times for which data lay unread; as many are kept.
const MOST_READS: usize = 256;

/// What two kernels have said, if any did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testimony(Option<Box<Ends<Host>>>);

/// What one kernel has said of its socket.
#[derive(Clone, Debug, Default)]
struct Host {
    heard: bool,
    writes: VecDeque<Write>,
    /// From when until when data lay unread.
    unread: VecDeque<(Nanos, Nanos)>,
    /// It tells of such times: where there is none, there was none.
    tells_reads: bool,
    /// When the timer of a delayed ACK last fired.
    ack_timer: Option<Nanos>,
    last: Witness,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    from: Seq,
    to: Seq,
    at: Nanos,
}

impl Testimony {
    /// Takes what the kernel of `s` said.
    pub(crate) fn hear(&mut self, s: End, event: &SocketEvent) {
        let host = &mut self.0.get_or_insert_default()[s];
        host.heard = true;
        match event.change {
            SocketChange::Write { from, bytes } => {
                if host.writes.len() >= MOST_WRITES {
                    host.writes.pop_front();
                }
                host.writes.push_back(Write { from, to: from + bytes, at: event.time });
            }
            SocketChange::Room { since } => host.last.room = Some((since, event.time)),
            SocketChange::NoDelay(on) => host.last.nodelay = Some(on),
            SocketChange::Cork(on) => host.last.corked = Some(on),
            SocketChange::Timer(Timer::DelayedAck) => host.ack_timer = Some(event.time),
            SocketChange::Timer(timer) => host.last.timer = Some((timer, event.time)),
            SocketChange::Read { since, .. } => {
                if host.unread.len() >= MOST_READS {
                    host.unread.pop_front();
                }
                host.unread.push_back((since, event.time));
            }
            SocketChange::State(state) => host.tells_reads = state.reads,
            SocketChange::Cwnd(bytes) => host.last.cwnd = Some(bytes),
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
        while host.writes.front().is_some_and(|w| w.to.at_or_before(segment.seq)) {
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
        let within = host.unread.iter().rev().take_while(|(_, until)| *until > from);
        Some(
            within.fold(Nanos::ZERO, |sum, &(since, until)| sum + (until.min(to) - since.max(from)).floor0()),
        )
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
        heard.hear(End::Client, &event(5, SocketChange::Write { from: Seq(100), bytes: 20 }));
        heard.hear(End::Client, &event(7, SocketChange::Write { from: Seq(120), bytes: 20 }));
        heard.hear(End::Client, &event(9, SocketChange::Timer(Timer::Probe)));
        let written = |heard: &mut Testimony, seq| heard.about(End::Client, &at(seq)).and_then(|w| w.written);
        assert_eq!(written(&mut heard, 90), None);
        assert_eq!(written(&mut heard, 110), Some(Nanos(5)));
        assert_eq!(written(&mut heard, 120), Some(Nanos(7)));
        assert_eq!(heard.about(End::Client, &at(130)).and_then(|w| w.timer), Some((Timer::Probe, Nanos(9))));
        assert_eq!(heard.about(End::Server, &at(130)), None);
    }
}
