//! Where the time between two samples of one socket went. Pure: two samples, what was seen before, and a
//! length of time.
//!
//! The kernel counts three times itself (`tcp_chrono` in `net/ipv4/tcp_output.c`): with anything unsent or
//! unacknowledged, of that stopped by the receive window, of that stopped by the send buffer. What is left of
//! the first is neither of the others and no single cause; it goes to what the socket waits for at the second
//! sample. What is not busy is the applications', or the other end's transfer.

mod short;

pub(crate) use short::is_lone;

use crate::sample::{Info, Sample, State};
use crate::split::{Share, Where};
use std::cmp::Ordering;
use tcpwhy_base::{Cause, Nanos};

/// A jiffy at HZ=100, the longest of Linux: how exact ages and counted times are.
pub(crate) const JIFFY: Nanos = Nanos::millis(10);
/// Of the congestion window or of a window that the kernel may leave unused for a while (`tcp_tso_win_divisor`).
const TSO_WIN_DIVISOR: u64 = 3;
/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = 0x7fff_ffff;

/// The time between two samples of one socket.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// At its beginning.
    pub before: &'a Sample,
    /// At its end.
    pub now: &'a Sample,
    /// How long.
    pub elapsed: Nanos,
    /// Of it: anything unsent or unacknowledged; at most `elapsed`.
    pub busy: Nanos,
    /// Of that: stopped by the receive window.
    pub rwnd_limited: Nanos,
    /// Of that: stopped by the send buffer.
    pub sndbuf_limited: Nanos,
    /// This end asked for the connection.
    pub here_is_client: bool,
    /// A request whose listener's accept queue is full: its last ACK is dropped, however often it comes
    /// (`tcp_v4_syn_recv_sock`).
    pub queue_full: bool,
    /// The other end is a socket of this host, too, where more lies unread than may still come.
    pub peer_unread: bool,
    /// A thread of this host that reads from the socket sits in that call, or is elsewhere; None: no such
    /// thread is known.
    pub reads: Option<bool>,
    /// The other end is a socket of this host, too, and a thread sits in a call to read from it.
    pub peer_reads: bool,
    /// The last bytes came in pieces, the same way and with pauses between them: another may come.
    pub in_pieces: bool,
    /// What this end sent last was acknowledged by bytes of the other end, which it has sent after that.
    pub answered: bool,
    /// It was so at its beginning.
    pub was_answered: bool,
    /// The largest window that the other end ever offered.
    pub largest_window: u32,
    /// The largest congestion window since something was last sent again.
    pub largest_cwnd: u32,
}

/// Time by cause, at most seven rows.
pub fn judge(s: &Stretch<'_>) -> Vec<Share> {
    let whole = |cause, at| vec![Share { cause, at, time: s.elapsed, counted: Nanos::ZERO }];
    match (s.before.state, s.now.state) {
        (State::SynReceived, _) if s.queue_full => return whole(Cause::AcceptQueueFull, Where::Here),
        (State::SynSent | State::SynReceived, _) if s.before.retransmits.max(s.now_repeats()) > 0 => {
            return whole(Cause::SynRetransmit, Where::Path);
        }
        (State::SynSent | State::SynReceived, _) => return whole(Cause::Handshake, Where::Path),
        (_, State::FinWait2) => return Vec::new(),
        (_, State::Established | State::CloseWait) if s.before.inode == 0 && s.now.inode == 0 => {
            // No file: accept() has not taken it.
            return whole(Cause::ServerThink, Where::Here);
        }
        _ => {}
    }
    let (Some(then), Some(now)) = (&s.before.info, &s.now.info) else { return Vec::new() };
    let rest = (s.busy - s.rwnd_limited - s.sndbuf_limited).floor0();
    let counted = |(cause, at), time| Share { cause, at, time, counted: time };
    let estimated = |(cause, at), time| Share { cause, at, time, counted: Nanos::ZERO };
    let mut out = Vec::with_capacity(7);
    if s.rwnd_limited > Nanos::ZERO {
        out.push(counted(s.window(then, now), s.rwnd_limited));
    }
    if s.sndbuf_limited > Nanos::ZERO {
        out.push(counted((Cause::SendBuffer, Where::Here), s.sndbuf_limited));
    }
    // A repair that began and ended between the samples took a round trip or so.
    let over = now.total_retrans > then.total_retrans && now.ca_state < 3 && now.retransmits == 0;
    let repair = if over { now.rtt.min(rest) } else { Nanos::ZERO };
    if repair > Nanos::ZERO {
        out.push(estimated((Cause::FastRecovery, Where::Path), repair));
    }
    let mut some = |what, time| {
        if time > Nanos::ZERO {
            out.push(estimated(what, time));
        }
    };
    let rest = rest - repair;
    if rest > Nanos::ZERO {
        let what = s.sending(then, now);
        // A wait that is no longer than a trip by its age may have been for the other end for the most of it.
        let kept = if what.0 == Cause::PathDelay { s.kept_by_peer(then, now, rest) } else { Nanos::ZERO };
        some(what, rest - kept);
        some(s.think(Where::Peer), kept);
    }
    let idle = s.elapsed - s.busy;
    match s.own_turn(then, now).map(|own| own.min(idle)) {
        Some(own) => {
            some(s.think(Where::Peer), idle - own);
            some(s.think(Where::Here), own);
        }
        None => some(s.idle(then, now), idle),
    }
    out
}

impl Stretch<'_> {
    /// Handshake packets sent again, if the handshake still goes on.
    fn now_repeats(&self) -> u8 {
        match self.now.state {
            State::SynSent | State::SynReceived => self.now.retransmits,
            _ => 0,
        }
    }

    /// What a sender waits for that neither window nor send buffer stops.
    fn sending(&self, then: &Info, now: &Info) -> (Cause, Where) {
        if now.ca_state == 4 || now.retransmits > 0 {
            return match self.now.probes(self.peer_unread) {
                true => (Cause::SlowReader, Where::Peer),
                false => (Cause::RetransmissionTimeout, Where::Path),
            };
        }
        if now.ca_state == 3 {
            return (Cause::FastRecovery, Where::Path);
        }
        let mss = now.snd_mss.max(1);
        let unacknowledged = self.now.wqueue.saturating_sub(now.notsent);
        let window_has_room = now.snd_wnd.is_none_or(|w| w >= unacknowledged.saturating_add(mss));
        if now.notsent >= mss {
            let (flight, cwnd) = (u64::from(now.in_flight()), u64::from(now.cwnd));
            return if flight * TSO_WIN_DIVISOR >= cwnd * (TSO_WIN_DIVISOR - 1) {
                self.full_congestion_window(now)
            } else if !window_has_room {
                self.window(then, now)
            } else {
                self.below_tcp(now)
            };
        }
        if self.buffer_is_full() && now.in_flight() < now.cwnd && window_has_room {
            return (Cause::SendBuffer, Where::Here);
        }
        // The trip there and back, as exactly as an age in jiffies tells it.
        let trip_is_over = now.last_data_sent > now.min_rtt + now.min_rtt.part(4).max(JIFFY);
        match (now.notsent > 0, now.unacked > 0) {
            (true, true) if trip_is_over => (Cause::NagleDelayedAck, Where::Here),
            (true, true) => (Cause::Nagle, Where::Here),
            (true, false) => (Cause::Cork, Where::Here),
            // All is sent, and long enough ago to have arrived: its ACK waits for what the other end does with it.
            (false, _) if trip_is_over => self.think(Where::Peer),
            (false, _) => (Cause::PathDelay, Where::Path),
        }
    }

    /// A writer that waits, or does not get on: the kernel lets it write again when a third is free
    /// (`sk_stream_write_space`).
    fn buffer_is_full(&self) -> bool {
        self.now.wqueue > 0
            && self.now.memory.is_some_and(|m| u64::from(m.wmem_queued) * 3 >= u64::from(m.sndbuf) * 2)
    }

    /// The congestion window is used up: a pipe that is full, or a window that is still, or again, too small.
    fn full_congestion_window(&self, now: &Info) -> (Cause, Where) {
        if now.lags() {
            return (Cause::Bandwidth, Where::Path);
        }
        if now.cwnd < self.largest_cwnd {
            // Without a loss only idleness takes from a window (RFC 5681, 4.1; RFC 7661).
            return (Cause::IdleRestart, Where::Here);
        }
        match now.ssthresh {
            INFINITE => (Cause::SlowStart, Where::Here),
            ssthresh if now.cwnd < ssthresh => (Cause::SlowStart, Where::Here),
            _ => (Cause::CongestionWindow, Where::Path),
        }
    }

    /// All windows have room, and yet bytes wait: a rate that is paced, or a queue under TCP.
    fn below_tcp(&self, now: &Info) -> (Cause, Where) {
        if now.max_pacing_rate < u64::MAX && now.pacing_rate >= now.max_pacing_rate {
            return (Cause::Pacing, Where::Here);
        }
        if self.now.congestion.name() == "bbr" {
            // Its start paces at 2.89 times what arrives, everything after at 1.25 times at most.
            let starts = now.pacing_rate > now.delivery_rate.saturating_mul(2);
            let cause = if starts { Cause::SlowStart } else { Cause::Bandwidth };
            return (cause, if starts { Where::Here } else { Where::Path });
        }
        (Cause::HostDelay, Where::Here)
    }

    /// The receive window: closed or shrunk because nobody reads, which the other end shows where it can be
    /// asked, or simply too small.
    fn window(&self, then: &Info, now: &Info) -> (Cause, Where) {
        // Less than a segment fits: no buffer is so small, for a segment is at most half of the largest window
        // (`tcp_bound_to_half_wnd`), and a receiver says zero only when unread data has left less than a segment or
        // a sixteenth of its buffer free (`__tcp_select_window`). What was counted may have passed before it opened.
        let shut = |i: &Info| i.snd_wnd.is_some_and(|w| w < i.snd_mss.max(1));
        let shrunk = now.snd_wnd.is_some_and(|w| u64::from(w) * 2 < u64::from(self.largest_window));
        let unread = shut(then) || shut(now) || shrunk || self.peer_unread;
        (if unread { Cause::SlowReader } else { Cause::ReceiveWindow }, Where::Peer)
    }

    /// Nothing to send and nothing unacknowledged: whose turn is it?
    fn idle(&self, then: &Info, now: &Info) -> (Cause, Where) {
        if self.before.rqueue > 0 && self.now.rqueue > 0 {
            // More lies unread than may still come: the sender soon feels it, or does already.
            let closing = now.rcv_wnd.is_some_and(|w| self.now.rqueue >= w);
            return (if closing { Cause::SlowReader } else { Cause::ReaderLate }, Where::Here);
        }
        let (heard, spoke) = (now.bytes_received > then.bytes_received, now.bytes_acked > then.bytes_acked);
        if heard && !spoke {
            // A transfer towards this end: what holds it up is known where it is sent.
            return (Cause::Unexplained, Where::Peer);
        }
        // Who sits in a call to read waits for the other end, unless that does, too.
        match (self.reads == Some(true) && self.now.rqueue == 0, self.peer_reads) {
            (true, false) => self.think(Where::Peer),
            (false, true) => self.think(Where::Here),
            _ if self.in_pieces => (Cause::Unexplained, Where::Here),
            _ => self.turn(now).map_or((Cause::Unexplained, Where::Here), |at| self.think(at)),
        }
    }

    /// Whose turn it is where nothing is under way: that of the end to which the last bytes came. None: that
    /// does not show.
    fn turn(&self, now: &Info) -> Option<Where> {
        let client = if self.here_is_client { Where::Here } else { Where::Peer };
        // The client's SYN counts as one byte.
        let spoke = now.bytes_acked > u64::from(self.here_is_client);
        match (now.bytes_received > 0, spoke) {
            (false, false) => return Some(client),
            (true, false) => return Some(Where::Here),
            (false, true) => return Some(Where::Peer),
            (true, true) => {}
        }
        match now.last_data_recv.cmp(&now.last_data_sent) {
            Ordering::Less => Some(Where::Here),
            Ordering::Greater => Some(Where::Peer),
            // Within the same jiffy. Who reads here is at something else;
            Ordering::Equal if self.reads == Some(false) => Some(Where::Here),
            // who acknowledges with bytes has sent them after it had what it acknowledges;
            Ordering::Equal if self.answered => Some(Where::Here),
            // an ACK that came later is one of what this end sent: the other's last bytes brought theirs with them.
            Ordering::Equal if now.last_ack_recv < now.last_data_recv => Some(Where::Peer),
            // A request and its answer, or an answer and the next request.
            Ordering::Equal => None,
        }
    }

    fn think(&self, at: Where) -> (Cause, Where) {
        (think(at, self.here_is_client), at)
    }
}

/// The application at an end has to say something.
pub(crate) fn think(at: Where, here_is_client: bool) -> Cause {
    if (at == Where::Here) == here_is_client { Cause::ClientThink } else { Cause::ServerThink }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Congestion, Memory};

    pub(super) fn sample(change: impl FnOnce(&mut Sample, &mut Info)) -> Sample {
        let mut info = Info {
            snd_mss: 1448,
            cwnd: 10,
            ssthresh: INFINITE,
            rtt: Nanos::millis(20),
            min_rtt: Nanos::millis(20),
            last_data_sent: Nanos::millis(4),
            last_data_recv: Nanos::millis(50),
            last_ack_recv: Nanos::millis(4),
            bytes_received: 100,
            bytes_acked: 1000,
            max_pacing_rate: u64::MAX,
            snd_wnd: Some(65_536),
            rcv_wnd: Some(65_536),
            ..Info::default()
        };
        let mut s = Sample {
            memory: Some(Memory { sndbuf: 32_768, rcvbuf: 131_072, ..Memory::default() }),
            congestion: Congestion::new(b"cubic"),
            ..Sample::open(40_000, 80)
        };
        change(&mut s, &mut info);
        s.info = Some(info);
        s
    }

    /// 20 ms of the client's end, in which nothing is under way.
    pub(super) fn stretch<'a>(before: &'a Sample, now: &'a Sample) -> Stretch<'a> {
        Stretch {
            before,
            now,
            elapsed: Nanos::millis(20),
            busy: Nanos::ZERO,
            rwnd_limited: Nanos::ZERO,
            sndbuf_limited: Nanos::ZERO,
            here_is_client: true,
            queue_full: false,
            peer_unread: false,
            reads: None,
            peer_reads: false,
            in_pieces: false,
            answered: false,
            was_answered: false,
            largest_window: 65_536,
            largest_cwnd: 10,
        }
    }

    /// The cause of the whole of 20 ms, of which so much is busy.
    fn cause(busy: i64, before: &Sample, now: &Sample) -> (Cause, Where) {
        let stretch = Stretch { busy: Nanos::millis(busy), ..stretch(before, now) };
        let all = judge(&stretch);
        assert_eq!(all.iter().fold(Nanos::ZERO, |sum, s| sum + s.time), stretch.elapsed, "{all:?}");
        (all[0].cause, all[0].at)
    }

    fn waits(change: impl Fn(&mut Sample, &mut Info)) -> Cause {
        cause(20, &sample(&change), &sample(&change)).0
    }

    #[test]
    fn what_a_sender_waits_for() {
        let queued = |s: &mut Sample, i: &mut Info, sent: u32, notsent: u32| {
            (s.wqueue, i.notsent, i.unacked) = (sent + notsent, notsent, sent.div_ceil(1448));
        };
        assert_eq!(waits(|s, i| queued(s, i, 1000, 0)), Cause::PathDelay);
        assert_eq!(waits(|s, i| queued(s, i, 4, 200)), Cause::Nagle);
        let old = |i: &mut Info| i.last_data_sent = Nanos::millis(36);
        assert_eq!(waits(|s, i| (queued(s, i, 4, 200), old(i)).1), Cause::NagleDelayedAck);
        assert_eq!(waits(|s, i| (queued(s, i, 1000, 0), old(i)).1), Cause::ServerThink);
        assert_eq!(waits(|s, i| queued(s, i, 0, 200)), Cause::Cork);
        assert_eq!(waits(|s, i| queued(s, i, 14_480, 50_000)), Cause::SlowStart);
        assert_eq!(waits(|s, i| (queued(s, i, 14_480, 50_000), i.ssthresh = 8).1), Cause::CongestionWindow);
        assert_eq!(waits(|s, i| (queued(s, i, 5_792, 50_000), i.cwnd = 4).1), Cause::IdleRestart);
        let full_pipe = |i: &mut Info| i.rtt = Nanos::millis(27);
        assert_eq!(waits(|s, i| (queued(s, i, 14_480, 50_000), full_pipe(i)).1), Cause::Bandwidth);
        assert_eq!(waits(|s, i| queued(s, i, 2_896, 50_000)), Cause::HostDelay);
        assert_eq!(waits(|s, i| (queued(s, i, 2_896, 50_000), i.snd_wnd = Some(3_000)).1), Cause::SlowReader);
        assert_eq!(waits(|s, i| (queued(s, i, 2_896, 0), i.ca_state = 3).1), Cause::FastRecovery);
        let again = |i: &mut Info, window: u32| (i.retransmits, i.snd_wnd) = (1, Some(window));
        assert_eq!(waits(|s, i| (queued(s, i, 2_896, 0), again(i, 1)).1), Cause::RetransmissionTimeout);
        assert_eq!(waits(|s, i| (queued(s, i, 2_896, 0), again(i, 0)).1), Cause::SlowReader);
    }

    #[test]
    fn a_full_send_buffer_is_the_limit_only_where_the_windows_have_room() {
        let full = |s: &mut Sample, i: &mut Info| {
            (s.wqueue, i.unacked) = (11_584, 8);
            s.memory = Some(Memory { sndbuf: 32_768, wmem_queued: 21_846, ..Memory::default() });
        };
        assert_eq!(waits(full), Cause::SendBuffer);
        assert_eq!(waits(|s, i| (full(s, i), i.cwnd = 8).1), Cause::PathDelay);
        assert_eq!(waits(|s, i| (full(s, i), i.snd_wnd = Some(12_000)).1), Cause::PathDelay);
        let less = |s: &mut Sample| {
            s.memory = Some(Memory { sndbuf: 32_768, wmem_queued: 21_845, ..Memory::default() })
        };
        assert_eq!(waits(|s, i| (full(s, i), less(s)).1), Cause::PathDelay);
    }

    /// A look that begins while nobody reads has never seen the window open.
    #[test]
    fn a_window_that_holds_no_segment_is_its_readers() {
        let at = |window: u32| {
            sample(|s, i| {
                (s.wqueue, i.notsent, i.snd_wnd) = (50_000, 50_000, Some(window));
            })
        };
        let whose = |then: u32, now: u32| {
            let (before, now) = (at(then), at(now));
            let limited = Nanos::millis(20);
            let largest_window = now.info.and_then(|i| i.snd_wnd).unwrap_or(0).max(then);
            let s =
                Stretch { busy: limited, rwnd_limited: limited, largest_window, ..stretch(&before, &now) };
            judge(&s)[0].cause
        };
        assert_eq!(whose(0, 0), Cause::SlowReader);
        assert_eq!(whose(1447, 1447), Cause::SlowReader);
        assert_eq!(whose(0, 65_536), Cause::SlowReader, "it was shut until it opened");
        assert_eq!(whose(1448, 1448), Cause::ReceiveWindow);
    }

    #[test]
    fn a_repair_between_two_samples_takes_a_round_trip_of_them() {
        let full = |again: u32| {
            sample(|s, i| {
                (s.wqueue, i.notsent, i.unacked) = (64_480, 50_000, 10);
                (i.ssthresh, i.rtt, i.total_retrans) = (8, Nanos::millis(5), again);
            })
        };
        let (before, now) = (full(0), full(2));
        let stretch = Stretch { busy: Nanos::millis(20), ..stretch(&before, &now) };
        let all: Vec<_> = judge(&stretch).iter().map(|s| (s.cause, s.time.0 / 1_000_000)).collect();
        assert_eq!(all, [(Cause::FastRecovery, 5), (Cause::CongestionWindow, 15)]);
    }

    #[test]
    fn whose_turn_it_is() {
        let at = |change: &dyn Fn(&mut Sample, &mut Info)| cause(0, &sample(change), &sample(change));
        assert_eq!(at(&|_, _| ()), (Cause::ServerThink, Where::Peer));
        assert_eq!(at(&|_, i| i.last_data_recv = Nanos::millis(1)), (Cause::ClientThink, Where::Here));
        assert_eq!(at(&|_, i| (i.bytes_received, i.bytes_acked) = (0, 1)), (Cause::ClientThink, Where::Here));
        assert_eq!(at(&|s, _| s.inode = 0), (Cause::ServerThink, Where::Here), "nobody accepted it");
        assert_eq!(at(&|s, _| s.rqueue = 10), (Cause::ReaderLate, Where::Here), "unread");
        assert_eq!(at(&|s, _| s.rqueue = 70_000), (Cause::SlowReader, Where::Here));
        let (then, now) = (sample(|_, _| ()), sample(|_, i| i.bytes_received = 90_000));
        assert_eq!(cause(0, &then, &now), (Cause::Unexplained, Where::Peer));
    }

    /// Threads in recv() tell, and what nobody knows is nobody's.
    #[test]
    fn whose_turn_it_is_where_threads_are_known() {
        let whose = |reads, peer_reads, in_pieces, unread| {
            let s = sample(|s, _| s.rqueue = unread);
            let before = sample(|_, _| ());
            let stretch = Stretch { reads, peer_reads, in_pieces, ..stretch(&before, &s) };
            let all = judge(&stretch);
            (all[0].cause, all[0].at)
        };
        let (server, client) = ((Cause::ServerThink, Where::Peer), (Cause::ClientThink, Where::Here));
        // This end spoke last.
        assert_eq!(whose(None, false, false, 0), server);
        assert_eq!(whose(None, true, false, 0), client, "the server waits for more");
        assert_eq!(whose(Some(true), true, false, 0), server, "both read, the last bytes tell");
        assert_eq!(whose(Some(false), false, false, 0), server, "it does something else meanwhile");
        assert_eq!(whose(Some(true), false, true, 0), server);
        assert_eq!(whose(Some(true), true, true, 0), (Cause::Unexplained, Where::Here));
        assert_eq!(whose(None, false, true, 0), (Cause::Unexplained, Where::Here));
        assert_eq!(whose(Some(true), true, false, 10), client, "it is about to read");
    }

    /// The stamps are made with the socket, and count jiffies: the bytes and the last ACK tell what they leave open.
    #[test]
    fn whose_turn_it_is_where_the_stamps_are_equal() {
        let turn = |here_is_client, received, acked, ack_ms| {
            let s = sample(|_, i| {
                (i.bytes_received, i.bytes_acked) = (received, acked);
                (i.last_data_recv, i.last_data_sent) = (Nanos::millis(50), Nanos::millis(50));
                i.last_ack_recv = Nanos::millis(ack_ms);
            });
            let whose = &judge(&Stretch { here_is_client, ..stretch(&s, &s) })[0];
            (whose.cause != Cause::Unexplained).then_some(whose.at)
        };
        let (here, peer) = (Some(Where::Here), Some(Where::Peer));
        // A request that came in the same jiffy as its socket was made, and a greeting that nobody has answered.
        assert_eq!((turn(false, 100, 0, 50), turn(true, 100, 1, 50)), (here, here));
        // A request of one byte, and a server that spoke first.
        assert_eq!((turn(true, 0, 2, 50), turn(false, 0, 1, 50)), (peer, peer));
        // Nobody has said anything.
        assert_eq!((turn(true, 0, 1, 50), turn(false, 0, 0, 50)), (here, peer));
        // Both have, in one jiffy: with an ACK behind it this end did last, else nothing tells.
        assert_eq!((turn(true, 100, 100, 10), turn(false, 100, 100, 10)), (peer, peer));
        assert_eq!((turn(true, 100, 100, 50), turn(false, 100, 100, 50)), (None, None));
        // But for an ACK that came with bytes only.
        let s = sample(|_, i| i.last_data_sent = i.last_data_recv);
        let whose = &judge(&Stretch { here_is_client: false, answered: true, ..stretch(&s, &s) })[0];
        assert_eq!((whose.cause, whose.at), (Cause::ServerThink, Where::Here));
    }

    #[test]
    fn handshakes() {
        let asks = |again| sample(|s, _| (s.state, s.retransmits) = (State::SynSent, again));
        let open = sample(|s, _| s.retransmits = 3);
        assert_eq!(cause(0, &asks(0), &asks(0)).0, Cause::Handshake);
        assert_eq!(cause(0, &asks(0), &asks(1)).0, Cause::SynRetransmit);
        assert_eq!(cause(0, &asks(1), &open).0, Cause::SynRetransmit);
        assert_eq!(cause(0, &asks(0), &open).0, Cause::Handshake);
        let request = sample(|s, _| (s.state, s.retransmits) = (State::SynReceived, 1));
        let of_queue = |queue_full| Stretch {
            here_is_client: false,
            queue_full,
            largest_window: 0,
            ..stretch(&request, &request)
        };
        let of = |queue_full| judge(&of_queue(queue_full))[0].cause;
        assert_eq!((of(false), of(true)), (Cause::SynRetransmit, Cause::AcceptQueueFull));
    }

    #[test]
    fn what_the_kernel_counts_is_taken_as_it_is() {
        let s = sample(|s, i| (s.wqueue, i.snd_wnd) = (9_000, Some(65_000)));
        let stretch = Stretch {
            busy: Nanos::millis(18),
            rwnd_limited: Nanos::millis(12),
            sndbuf_limited: Nanos::millis(4),
            ..stretch(&s, &s)
        };
        let all = judge(&stretch);
        let counted: Vec<_> =
            all.iter().map(|s| (s.cause, s.time.0 / 1_000_000, s.counted.0 / 1_000_000)).collect();
        assert_eq!(
            counted,
            [
                (Cause::ReceiveWindow, 12, 12),
                (Cause::SendBuffer, 4, 4),
                (Cause::PathDelay, 2, 0),
                (Cause::ServerThink, 2, 0)
            ]
        );
    }
}
