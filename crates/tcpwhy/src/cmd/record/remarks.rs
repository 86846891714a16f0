//! What stands beside a packet for whoever looks at it in Wireshark: the process and thread that it is of,
//! and what it waited for as its kernel told, in a line.

use std::collections::{HashMap, VecDeque};
use tcpwhy_base::{Endpoint, Nanos, Segment, Seq, SocketChange, SocketEvent, SocketState, Timer};

/// Sockets that are known at once; with more nothing is said of new ones.
const MOST_SOCKETS: usize = 65_536;
/// Writes of a socket whose data has not left.
const MOST_WRITES: usize = 64;
/// Shorter waits are not worth a remark: a busy host takes as long.
const LEAST: Nanos = Nanos::millis(1);
/// The smallest MSS that everybody takes (RFC 9293, 3.7.1), until a SYN tells another.
const MSS: u32 = 536;

/// Who did something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) name: String,
}

/// What is known of one socket.
#[derive(Debug, Default)]
struct Socket {
    who: Option<Who>,
    /// Up to which number, and when.
    writes: VecDeque<(Seq, Nanos)>,
    nodelay: Option<bool>,
    corked: Option<bool>,
    timer: Option<(Timer, Nanos)>,
    room: Option<(Nanos, Nanos)>,
    read: Option<(Nanos, Nanos)>,
    mss: u32,
    /// When the last packet of the other end came.
    heard: Option<Nanos>,
}

/// Of all sockets of this host.
#[derive(Debug, Default)]
pub(super) struct Remarks(HashMap<(Endpoint, Endpoint), Socket>);

impl Remarks {
    /// Takes in what a kernel said.
    pub(super) fn hear(&mut self, event: &SocketEvent, who: Option<&Who>) {
        let key = (event.local, event.remote);
        if matches!(event.change, SocketChange::State(SocketState { open: false, .. })) {
            self.0.remove(&key);
            return;
        }
        let full = self.0.len() >= MOST_SOCKETS && !self.0.contains_key(&key);
        if full {
            return;
        }
        let socket = self.0.entry(key).or_default();
        if who.is_some_and(|w| socket.who.as_ref() != Some(w)) {
            socket.who = who.cloned();
        }
        match event.change {
            SocketChange::Write { from, bytes, .. } => {
                if socket.writes.len() >= MOST_WRITES {
                    socket.writes.pop_front();
                }
                socket.writes.push_back((from + bytes, event.time));
            }
            SocketChange::NoDelay(on) => socket.nodelay = Some(on),
            SocketChange::Cork(on) => socket.corked = Some(on),
            SocketChange::Timer(timer) => socket.timer = Some((timer, event.time)),
            SocketChange::Room { since } => socket.room = Some((since, event.time)),
            SocketChange::Read { since, .. } => socket.read = Some((since, event.time)),
            _ => {}
        }
    }

    /// Whose packet this is, and what there is to say of it.
    pub(super) fn of(&mut self, segment: &Segment) -> (Option<(u32, u32)>, Option<String>) {
        let [sent, got] = [(segment.src, segment.dst), (segment.dst, segment.src)];
        let receiver = self.0.get_mut(&got).and_then(|socket| {
            socket.heard = Some(segment.time);
            socket.who.as_ref().map(|w| (w.process, w.thread))
        });
        let Some(sender) = self.0.get_mut(&sent) else { return (receiver, None) };
        let remark = sender.remark(segment);
        (sender.who.as_ref().map(|w| (w.process, w.thread)).or(receiver), remark)
    }
}

impl Socket {
    fn remark(&mut self, segment: &Segment) -> Option<String> {
        if let Some(mss) = segment.options.mss.filter(|_| segment.flags.syn()) {
            self.mss = mss.into();
        }
        let just = |at: Nanos| at <= segment.time && segment.time - at <= LEAST;
        let who = self
            .who
            .as_ref()
            .map_or_else(|| "its application".to_owned(), |w| format!("{}({})", w.name, w.process));
        let timer = self.timer.take_if(|(_, at)| just(*at)).map(|(timer, _)| timer);
        let data = segment.len > 0;
        let mut said = match timer {
            Some(Timer::Retransmission) if data => Some("the retransmission timer sent this".to_owned()),
            Some(Timer::Probe) if data => Some("a tail loss probe: its timer sent this".to_owned()),
            Some(Timer::DelayedAck) if !data => Some("the timer of a delayed ACK sent this".to_owned()),
            _ => None,
        };
        if let Some((since, until)) = self.room.take_if(|(_, until)| data && just(*until)) {
            said = Some(format!("{who} had waited {} for room in its send buffer", until - since));
        }
        if let Some((since, until)) = self.read.take_if(|(_, until)| just(*until)) {
            said = said
                .or_else(|| Some(format!("{who} had just read what had lain there for {}", until - since)));
        }
        if data {
            let late = self.late(segment, &who);
            said = said.or(late);
        }
        said
    }

    /// It left later than it had been written.
    fn late(&mut self, segment: &Segment, who: &str) -> Option<String> {
        let end = segment.seq + segment.len;
        let mut written = None;
        while let Some(&(upto, at)) = self.writes.front() {
            if upto.after(end) {
                // It carries a part of this write, which may be the last one that it carries.
                written = segment.seq.before(upto).then_some(at).filter(|_| written.is_none()).or(written);
                break;
            }
            if upto.after(segment.seq) {
                written = Some(at);
            }
            self.writes.pop_front();
        }
        let wait = segment.time - written?;
        if wait <= LEAST {
            return None;
        }
        let partial = segment.len < if self.mss > 0 { self.mss.saturating_sub(40) } else { MSS };
        let freed = self.heard.is_some_and(|at| at <= segment.time && segment.time - at <= LEAST);
        Some(match (self.corked, self.nodelay) {
            (Some(true), _) if partial => {
                format!("{wait} after {who} wrote it: held by TCP_CORK or MSG_MORE")
            }
            (_, Some(false)) if partial && freed => {
                format!("{wait} after {who} wrote it: held by Nagle's algorithm until the ACK before this")
            }
            _ => format!("{wait} after {who} wrote it"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::TcpFlags;

    const AT: fn(i64) -> Nanos = Nanos::millis;

    fn end(port: u16) -> Endpoint {
        Endpoint { ip: [10, 0, 0, 1].into(), port }
    }

    fn packet(at: Nanos, seq: u32, len: u32) -> Segment {
        let flags = TcpFlags(TcpFlags::ACK);
        Segment { time: at, src: end(1), dst: end(2), seq: Seq(seq), len, flags, ..Segment::EMPTY }
    }

    fn heard(changes: &[(Nanos, SocketChange)]) -> Remarks {
        let who = Who { process: 812, thread: 815, name: "client".into() };
        let mut remarks = Remarks::default();
        for &(time, change) in changes {
            remarks.hear(&SocketEvent { time, local: end(1), remote: end(2), change }, Some(&who));
        }
        remarks
    }

    fn write(from: u32, bytes: u32) -> SocketChange {
        SocketChange::Write { from: Seq(from), bytes, read: None }
    }

    #[test]
    fn a_packet_says_what_it_waited_for() {
        let held = [(AT(1), write(0, 100)), (AT(2), SocketChange::NoDelay(false)), (AT(2), write(100, 50))];
        let mut remarks = heard(&held);
        assert_eq!(remarks.of(&packet(AT(1), 0, 100)), (Some((812, 815)), None));
        // The ACK that frees it is of the same process: it is received there.
        let ack = Segment { src: end(2), dst: end(1), ..packet(AT(42), 0, 0) };
        assert_eq!(remarks.of(&ack), (Some((812, 815)), None));
        let said = "40.0 ms after client(812) wrote it: held by Nagle's algorithm until the ACK before this";
        assert_eq!(remarks.of(&packet(AT(42), 100, 50)).1.as_deref(), Some(said));
        // Sent again it is no news.
        assert_eq!(remarks.of(&packet(AT(300), 100, 50)).1, None);
        let mut remarks = heard(&[(AT(1), SocketChange::Cork(true)), (AT(1), write(0, 100))]);
        let corked = "200 ms after client(812) wrote it: held by TCP_CORK or MSG_MORE";
        assert_eq!(remarks.of(&packet(AT(201), 0, 100)).1.as_deref(), Some(corked));
    }

    #[test]
    fn timers_and_waits_are_named() {
        let timer = |which| heard(&[(AT(9), SocketChange::Timer(which))]);
        let sent = timer(Timer::Retransmission).of(&packet(AT(9), 0, 100)).1;
        assert_eq!(sent.as_deref(), Some("the retransmission timer sent this"));
        let acked = timer(Timer::DelayedAck).of(&packet(AT(9), 0, 0)).1;
        assert_eq!(acked.as_deref(), Some("the timer of a delayed ACK sent this"));
        assert_eq!(timer(Timer::Probe).of(&packet(AT(20), 0, 100)).1, None, "long ago");
        let room = heard(&[(AT(500), SocketChange::Room { since: AT(9) })]).of(&packet(AT(500), 0, 100)).1;
        assert_eq!(room.as_deref(), Some("client(812) had waited 491 ms for room in its send buffer"));
        let read = SocketChange::Read { since: AT(9), upto: Seq(4), left: 0 };
        let read = heard(&[(AT(209), read)]).of(&packet(AT(209), 0, 0)).1;
        assert_eq!(read.as_deref(), Some("client(812) had just read what had lain there for 200 ms"));
    }

    #[test]
    fn what_ends_is_forgotten() {
        let state = SocketState { open: false, scales: None, buffers: [0; 2], set: [false; 2], reads: true };
        let mut remarks = heard(&[(AT(1), write(0, 100)), (AT(2), SocketChange::State(state))]);
        assert_eq!(remarks.of(&packet(AT(42), 0, 100)), (None, None));
        assert!(remarks.0.is_empty());
    }
}
