//! What an application writes, and which of it may leave (`tcp_sendmsg`, `tcp_write_xmit`). The order of the limits is
//! the kernel's: pacing, congestion window, peer's window, Nagle or cork. The send buffer is asked only when a new
//! packet buffer is needed.

use super::{Hold, Seg, Skb, Socket, State, Timer};
use crate::packet::Packet;
use crate::profile::Nagle;
use tcpwhy_base::{Cause, Nanos};

/// How eagerly the queue is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// As the socket is set.
    Normal,
    /// Partial segments too: the writer sleeps.
    Eager,
    /// Held until more comes (MSG_MORE).
    More,
    /// One packet buffer, although more will come (`tcp_push_one`).
    One,
    /// One segment beyond the window: a tail-loss probe.
    Probe,
}

impl Socket {
    /// An application's `write`. Says how many bytes were taken; fewer than `bytes` means that it sleeps, and calls
    /// again with the rest, `resumed`, when `writer_woken` is set.
    pub(crate) fn write(
        &mut self,
        now: Nanos,
        bytes: u64,
        more: bool,
        resumed: bool,
        cause: Option<Cause>,
    ) -> u64 {
        self.now = now;
        self.writer_woken = false;
        self.app_cause = cause.or(self.app_cause);
        if !resumed {
            self.check_app_limited();
        }
        let mut left = bytes;
        while left > 0 {
            let goal = self.size_goal();
            let room = self.queue.back().filter(|s| !s.fin).map_or(0, |s| goal.saturating_sub(s.len));
            let room = if room == 0 {
                if !self.has_room() {
                    self.writer_waits = true;
                    if left < bytes {
                        self.mark_push_tail();
                        self.xmit(Mode::Eager);
                    }
                    self.app_cause = None;
                    return bytes - left;
                }
                self.after_idle();
                self.memory += self.p.skb_overhead;
                self.queue.push_back(Skb { len: 0, psh: false, fin: false });
                goal
            } else {
                room
            };
            let copy = room.min(left);
            left -= copy;
            self.memory += copy;
            self.write_seq += copy;
            let Some(tail) = self.queue.back_mut() else { break };
            // What a new call appends to is no end of a write any more.
            tail.psh &= resumed || left + copy < bytes;
            tail.len += copy;
            let full = tail.len >= goal;
            if left == 0 || !full {
                continue;
            }
            if self.forced_push() {
                self.mark_push_tail();
                self.xmit(Mode::Eager);
            } else if self.queue.len() == 1 {
                self.xmit(Mode::One);
            }
        }
        if !more || self.forced_push() {
            self.mark_push_tail();
        }
        self.xmit(if more { Mode::More } else { Mode::Normal });
        self.app_cause = None;
        bytes
    }

    /// Ends the own direction.
    pub(crate) fn shutdown(&mut self, now: Nanos) {
        self.now = now;
        if self.fin_queued || !matches!(self.state, State::Established | State::SynReceived) {
            return;
        }
        self.fin_queued = true;
        self.write_seq += 1;
        match self.queue.back_mut() {
            Some(tail) => (tail.fin, tail.psh) = (true, true),
            None => {
                self.memory += self.p.skb_overhead;
                self.queue.push_back(Skb { len: 0, psh: false, fin: true });
            }
        }
        self.xmit(Mode::Eager);
    }

    /// Sets or clears TCP_CORK; clearing sends what it held.
    pub(crate) fn cork(&mut self, now: Nanos, on: bool) {
        self.now = now;
        self.corked = on;
        if !on {
            self.push(false);
        }
    }

    /// Sends what may leave now (`tcp_push_pending_frames`); `delayed`: an ACK that a timer sent came in.
    pub(super) fn push(&mut self, delayed: bool) {
        if !self.queue.is_empty() {
            self.xmit_on(Mode::Normal, delayed);
        }
    }

    fn xmit(&mut self, mode: Mode) {
        self.xmit_on(mode, false);
    }

    /// A probe for a lost tail: new data if there are any (RFC 8985, 7.3).
    pub(super) fn xmit_probe(&mut self) -> bool {
        let before = self.nxt;
        self.hold = None;
        self.app_cause = Some(Cause::TailLossProbe);
        self.xmit_on(Mode::Probe, false);
        self.app_cause = None;
        self.nxt > before
    }

    fn has_room(&self) -> bool {
        self.memory < self.sndbuf && self.unsent() < self.lowat
    }

    pub(super) fn unsent(&self) -> u64 {
        self.write_seq.saturating_sub(self.nxt)
    }

    /// Largest packet buffer: whole segments, at most half of the largest window seen (`tcp_xmit_size_goal`).
    fn size_goal(&self) -> u64 {
        let most = self.half_window(self.p.gso_max);
        (most / self.mss).max(1) * self.mss
    }

    /// `n`, or half of the largest window if that is less (`tcp_bound_to_half_wnd`).
    pub(super) fn half_window(&self, n: u64) -> u64 {
        let half = if self.max_window > 536 { self.max_window / 2 } else { self.max_window };
        if half > 0 { n.min(half.max(28)) } else { n }
    }

    fn forced_push(&self) -> bool {
        self.write_seq > self.pushed_seq + self.max_window / 2
    }

    fn mark_push_tail(&mut self) {
        if let Some(tail) = self.queue.back_mut() {
            tail.psh = true;
            self.pushed_seq = self.write_seq;
        }
    }

    /// After an idle time the window is a guess from long ago (`tcp_cwnd_restart`): it is halved for each timeout
    /// that passed, down to the initial window.
    fn after_idle(&mut self) {
        if !self.idle_restart || !self.rtx.is_empty() || self.paces() || !self.queue.is_empty() {
            return;
        }
        let mut idle = self.now - self.last_sent;
        let rto = self.rto();
        if idle <= rto || self.last_sent == Nanos::ZERO {
            return;
        }
        let before = self.cong.cwnd;
        self.cong.ssthresh = self.current_ssthresh();
        let least = self.initcwnd.min(before);
        while idle - rto > Nanos::ZERO && self.cong.cwnd > least {
            idle = idle - rto;
            self.cong.cwnd /= 2;
        }
        self.cong.cwnd = self.cong.cwnd.max(least);
        if self.cong.cwnd < before {
            self.before_idle = self.before_idle.max(before);
        }
        (self.stamp, self.used) = (self.now, 0);
    }

    pub(super) fn current_ssthresh(&self) -> u64 {
        self.cong.ssthresh.max(self.cong.cwnd * 3 / 4)
    }

    fn nagle_holds(&self, partial: bool, mode: Mode) -> bool {
        if !partial {
            return false;
        }
        match mode {
            Mode::Eager | Mode::Probe => false,
            Mode::More => true,
            _ if self.corked => true,
            _ if self.nodelay || self.rtx.is_empty() => false,
            _ => match self.p.nagle {
                Nagle::Minshall => self.sml > self.una && self.sml <= self.nxt,
                Nagle::Classic => true,
            },
        }
    }

    /// Segments of one packet buffer: about a millisecond of the pacing rate (`tcp_tso_autosize`).
    fn burst_segments(&self) -> u64 {
        let mut bytes = (self.pacing_rate() >> 10).min(self.p.gso_max);
        let r = (self.rtt.min.0 / 1000) >> 9;
        if r < 32 {
            bytes += self.p.gso_max >> r;
        }
        (bytes.min(self.p.gso_max) / self.mss).max(2)
    }

    fn xmit_on(&mut self, mode: Mode, delayed: bool) {
        if !matches!(self.state, State::Established) {
            return;
        }
        let (mut sent, mut limited) = (0, false);
        let before = self.hold.take();
        let mut cause = match before {
            // A hold that an application ended was its pause.
            Some(Hold::Nagle | Hold::Cork) if self.app_cause.is_some() => self.app_cause,
            Some(hold) => Some(self.cause_of(hold, delayed)),
            None => self.app_cause.take(),
        };
        while let Some(&skb) = self.queue.front() {
            if self.paces() && mode != Mode::Probe && self.next_pace > self.now && self.delivered_or_sent() {
                self.hold = Some(Hold::Pacing);
                self.pace = Some(self.next_pace);
                break;
            }
            let in_flight = self.in_flight();
            let quota = match self.cong.cwnd.saturating_sub(in_flight) {
                0 if mode == Mode::Probe => 1,
                0 => {
                    self.hold = Some(Hold::Cwnd);
                    break;
                }
                n => n,
            };
            let first = skb.len.min(self.mss);
            if self.nxt + first > self.wnd_end {
                self.hold = Some(Hold::Window);
                break;
            }
            let last = self.queue.len() == 1;
            let segments = skb.len.div_ceil(self.mss).max(1);
            let most = self.burst_segments().min(quota);
            let mut limit = self.mss;
            if segments == 1 {
                if last && !skb.fin && self.nagle_holds(skb.len < self.mss, mode) {
                    let cork = self.corked || mode == Mode::More;
                    self.hold = Some(if cork { Hold::Cork } else { Hold::Nagle });
                    break;
                }
            } else {
                if mode == Mode::Normal
                    && let Some(hold) = self.defers(&skb, last, in_flight)
                {
                    limited |= hold == Hold::Cwnd;
                    self.hold = Some(hold);
                    break;
                }
                limit = self.split_point(&skb, most, last, mode);
            }
            let n = if mode == Mode::Probe { limit.min(self.mss) } else { limit }.min(skb.len);
            sent += self.transmit(n, cause.take());
            if matches!(mode, Mode::One | Mode::Probe) {
                break;
            }
        }
        limited |= self.in_flight() >= self.cong.cwnd;
        if sent > 0 || limited {
            self.validate(limited);
        }
        if sent > 0 {
            self.last_burst = self.now;
            if mode != Mode::Probe {
                self.schedule_probe(false);
            }
        } else if self.rtx.is_empty() && !self.queue.is_empty() && self.timer.is_none() {
            self.arm(self.persist_base(), Timer::Persist);
        }
    }

    fn delivered_or_sent(&self) -> bool {
        // The first ten packets are not paced (`tcp_bbr.c`: pacing starts with the first rate).
        self.nxt > 1 + 10 * self.mss
    }

    /// Waits for a larger burst, if more window will come soon (`tcp_tso_should_defer`).
    fn defers(&self, skb: &Skb, last: bool, in_flight: u64) -> Option<Hold> {
        use super::Ca;
        if matches!(self.ca, Ca::Recovery | Ca::Loss) || self.now - self.last_burst > Nanos::millis(1) {
            return None;
        }
        let window = self.wnd_end - self.nxt;
        let cong = (self.cong.cwnd - in_flight) * self.mss;
        let limit = window.min(cong);
        if limit >= self.burst_segments() * self.mss || !last && limit >= skb.len {
            return None;
        }
        if limit >= self.snd_wnd.min(self.cong.cwnd * self.mss) / 3 {
            return None;
        }
        let head = self.rtx.front()?;
        if self.now - head.sent < self.rtt.srtt.part(2) || skb.fin {
            return None;
        }
        if cong < window {
            (cong <= skb.len).then_some(Hold::Cwnd)
        } else {
            (window <= skb.len).then_some(Hold::Window)
        }
    }

    /// How much of a packet buffer leaves: whole segments, and the tail if Nagle lets it (`tcp_mss_split_point`).
    fn split_point(&self, skb: &Skb, most: u64, last: bool, mode: Mode) -> u64 {
        let window = self.wnd_end - self.nxt;
        let max = self.mss * most;
        let needed = skb.len.min(window);
        if max <= needed {
            return max;
        }
        let partial = needed % self.mss;
        if last && !skb.fin && self.nagle_holds(partial != 0, mode) { needed - partial } else { needed }
    }

    /// Sends the first `n` bytes of the queue as segments; how many.
    fn transmit(&mut self, n: u64, cause: Option<Cause>) -> u64 {
        let Some(front) = self.queue.front_mut() else { return 0 };
        let whole = n >= front.len;
        let (psh, fin) = (whole && front.psh, whole && front.fin);
        front.len -= n;
        if whole {
            self.queue.pop_front();
        } else {
            // The rest is a packet buffer of its own now.
            self.memory += self.p.skb_overhead;
        }
        let idle = self.rtx.is_empty();
        if idle {
            (self.delivered_at, self.last_burst) = (self.now.max(self.delivered_at), self.last_burst);
            self.cong.on_restart(self.now - self.last_sent, self.now);
            self.delivered_at = self.now;
        }
        let (mut left, mut segments, mut cause) = (n, 0, cause);
        let end_all = self.nxt + n;
        loop {
            let len = left.min(self.mss);
            left -= len;
            let last = left == 0;
            let (seq, fin) = (self.nxt, fin && last);
            let end = seq + len + u64::from(fin);
            self.rtx.push_back(Seg {
                seq,
                end,
                fin,
                psh: psh && last,
                sent: self.now,
                first: self.now,
                sacked: false,
                lost: false,
                retrans: false,
                ever: false,
                overhead: if last { self.p.skb_overhead } else { 0 },
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                app_limited: self.app_limited_until > self.delivered,
            });
            self.nxt = end;
            segments += 1;
            let packet =
                Packet { len: len as u32, fin, psh: psh && last, cause: cause.take(), ..self.packet(seq) };
            self.out.push(packet);
            if last {
                break;
            }
        }
        if n < segments * self.mss {
            self.sml = end_all + u64::from(fin);
        }
        if self.paces() {
            let rate = self.pacing_rate();
            let time = Nanos((u128::from(n) * 1_000_000_000 / u128::from(rate)) as i64);
            self.next_pace = self.next_pace.max(self.now) + time;
        }
        self.prr_out += segments;
        self.data_sent();
        if idle || matches!(self.timer, Some((_, Timer::Probe | Timer::Persist)) | None) {
            self.rearm();
        }
        segments
    }

    /// Bookkeeping of a sent data packet: the ACK travelled with it, and a prompt reply is ping-pong.
    pub(super) fn data_sent(&mut self) {
        self.ack_left();
        self.last_sent = self.now;
        if self.adaptive() && self.now - self.r.last_data < self.r.ato {
            self.r.pingpong = self.r.pingpong.saturating_add(1);
        }
    }

    /// Whether the window is in use (`tcp_cwnd_validate`); if not for a timeout, it shrinks towards what is used.
    fn validate(&mut self, limited: bool) {
        let out = self.packets_out();
        if self.una >= self.usage_seq || limited || !self.cwnd_limited && out > self.max_out {
            self.cwnd_limited = limited;
            self.max_out = out;
            self.usage_seq = self.nxt;
        }
        if self.uses_window() {
            (self.used, self.stamp) = (0, self.now);
            return;
        }
        self.used = self.used.max(out);
        if self.idle_restart && !self.paces() && self.now - self.stamp >= self.rto() {
            let used = self.used.max(self.initcwnd);
            if self.ca == super::Ca::Open && !self.writer_waits && used < self.cong.cwnd {
                self.cong.ssthresh = self.current_ssthresh();
                self.cong.cwnd = (self.cong.cwnd + used) / 2;
            }
            (self.used, self.stamp) = (0, self.now);
        }
    }

    /// The window may grow (`tcp_is_cwnd_limited`).
    pub(super) fn uses_window(&self) -> bool {
        self.cwnd_limited || self.cong.slow_start() && self.cong.cwnd < 2 * self.max_out
    }

    fn persist_base(&self) -> Nanos {
        self.rtt.rto(&self.p).max(self.p.probe_min)
    }

    /// Nothing is in flight and data wait: what fits into the window leaves, or a probe without data
    /// (`tcp_write_wakeup`).
    pub(super) fn persist_timer(&mut self) {
        if !self.rtx.is_empty() || self.queue.is_empty() {
            return;
        }
        let window = self.wnd_end.saturating_sub(self.nxt);
        let held = self.hold.take();
        if window > 0 {
            let Some(front) = self.queue.front_mut() else { return };
            let n = front.len.min(window).min(self.mss);
            front.psh = true;
            let cause = match held {
                Some(Hold::Window) if !self.reader_away => Cause::SillyWindow,
                Some(hold) => self.cause_of(hold, false),
                None => Cause::Unexplained,
            };
            self.backoff = 0;
            self.transmit(n, Some(cause));
            self.push(false);
            return;
        }
        self.hold = held;
        let mut probe = self.packet(self.una.saturating_sub(1));
        probe.probe = true;
        self.out.push(probe);
        self.backoff += 1;
        let wait = self.persist_base().times(1 << self.backoff.min(16)).min(self.p.rto_max);
        self.arm(wait, Timer::Persist);
    }

    /// Room came (`tcp_check_space`): an automatic buffer grows, and a sleeping writer is woken once a third is free.
    pub(super) fn check_space(&mut self) {
        if !self.writer_waits {
            return;
        }
        if !self.sndbuf_locked && self.in_flight() < self.cong.cwnd {
            let segments = self.initcwnd.max(self.cong.cwnd).max(4);
            let factor = if self.paces() { 3 } else { 2 };
            let want = factor * segments * self.p.segment_memory(self.mss);
            self.sndbuf = self.sndbuf.max(want.min(self.p.wmem[2]));
        }
        let room = self.sndbuf.saturating_sub(self.memory);
        if self.has_room() && room >= self.memory / 2 {
            (self.writer_waits, self.writer_woken) = (false, true);
        }
    }
}
