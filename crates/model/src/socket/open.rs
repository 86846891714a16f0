//! Opening a connection: SYN, SYN-ACK, their repeats, and what both ends learn.

use super::{Socket, State, Timer};
use crate::packet::{HEADERS, Packet, TIMESTAMPS};
use tcpwhy_base::{Cause, Nanos};

impl Socket {
    fn syn(&mut self, has_ack: bool) -> Packet {
        let stamps = (self.p.timestamps).then_some((self.now, self.r.stamp_recent));
        let overhead = if self.p.timestamps { TIMESTAMPS } else { 0 };
        Packet {
            conn: self.conn,
            from: self.me,
            seq: 0,
            ack: self.r.nxt,
            syn: true,
            has_ack,
            // Never scaled (RFC 7323, 2.2).
            window: self.r.wnd.min(65_535),
            wscale: self.r.wscale,
            mss: (self.mtu_mss + overhead).min(65_535 - HEADERS) as u16,
            stamps,
            ..Packet::default()
        }
    }

    /// The client's `connect`.
    pub(crate) fn connect(&mut self, now: Nanos) {
        self.now = now;
        self.state = State::SynSent;
        let syn = self.syn(false);
        self.out.push(syn);
        self.nxt = 1;
        self.delivered_at = now;
        self.arm(self.p.rto_init, Timer::Syn);
    }

    pub(super) fn syn_timer(&mut self) {
        self.syn_repeats += 1;
        if self.syn_repeats > self.p.syn_retries + self.p.syn_linear {
            self.die();
            return;
        }
        if self.syn_repeats > self.p.syn_linear {
            self.backoff += 1;
        }
        let mut syn = self.syn(false);
        (syn.repeat, syn.cause) = (true, Some(Cause::SynRetransmit));
        self.out.push(syn);
        self.arm(self.rto(), Timer::Syn);
    }

    /// The server answers a SYN.
    pub(crate) fn accept_syn(&mut self, now: Nanos, syn: &Packet, cookie: bool) {
        self.now = now;
        if self.state == State::SynReceived {
            // The answer got lost, or is late: it is repeated.
            let mut answer = self.syn(true);
            (answer.repeat, answer.cause) = (true, Some(Cause::SynRetransmit));
            self.out.push(answer);
            return;
        }
        self.state = State::SynReceived;
        self.learn(syn);
        let answer = self.syn(true);
        self.out.push(answer);
        (self.nxt, self.delivered_at) = (1, now);
        self.rtt_from = now;
        self.cookie = cookie;
        // What stands in a cookie is not kept: nothing is repeated.
        if !cookie {
            self.arm(self.p.rto_init, Timer::SynAck);
        }
    }

    pub(super) fn synack_timer(&mut self) {
        self.syn_repeats += 1;
        if self.syn_repeats > self.p.synack_retries {
            self.die();
            return;
        }
        self.backoff += 1;
        let mut answer = self.syn(true);
        (answer.repeat, answer.cause) = (true, Some(Cause::SynRetransmit));
        self.out.push(answer);
        self.arm(self.rto(), Timer::SynAck);
    }

    /// The client gets the SYN-ACK.
    pub(crate) fn on_synack(&mut self, now: Nanos, packet: &Packet) {
        self.now = now;
        if self.state != State::SynSent {
            // A repeat: the third packet got lost.
            self.send_ack(false);
            return;
        }
        self.learn(packet);
        self.established(packet);
        self.send_ack(false);
    }

    /// The server gets the ACK of its SYN-ACK.
    pub(crate) fn on_third(&mut self, now: Nanos, packet: &Packet) {
        self.now = now;
        self.r.heard = true;
        self.established(packet);
    }

    fn learn(&mut self, packet: &Packet) {
        (self.r.nxt, self.r.wup) = (1, 1);
        let both = self.p.timestamps && packet.stamps.is_some();
        self.p.timestamps = both;
        let overhead = if both { TIMESTAMPS } else { 0 };
        let theirs = u64::from(packet.mss).saturating_sub(overhead).max(8);
        self.mtu_mss = self.mtu_mss.min(theirs);
        self.r.stamp_recent = packet.stamps.map_or(Nanos::ZERO, |s| s.0);
        let hint = self.mtu_mss.min(self.r.wnd / 2).clamp(88, 536);
        self.r.mss = hint;
    }

    fn established(&mut self, packet: &Packet) {
        self.state = State::Established;
        (self.timer, self.backoff) = (None, 0);
        self.una = 1;
        self.snd_wnd = packet.window;
        self.max_window = packet.window;
        self.wnd_end = packet.ack.max(1) + packet.window;
        (self.sml, self.usage_seq) = (1, 1);
        self.mss = self.half_window(self.mtu_mss);
        (self.last_sent, self.r.last_data, self.r.space_at) = (self.now, self.now, self.now);
        self.r.last_ack_sent = self.r.nxt;
        let from = match packet.stamps {
            Some((_, echo)) if echo > Nanos::ZERO => Some(echo),
            _ if self.syn_repeats == 0 => Some(self.rtt_from),
            _ => None,
        };
        if let Some(from) = from {
            let rtt = self.now - from;
            self.rtt.sample(rtt, 1, 1, &self.p.clone());
            self.rtt.note_min(rtt);
        }
        // More than one repeat says that the path is in trouble (`tcp_init_transfer`).
        if self.syn_repeats > 1 {
            self.cong.cwnd = 1;
        }
        let (srtt, cwnd, mss) = (self.rtt.srtt, self.cong.cwnd, self.mss);
        self.cong.bbr.start(self.now, srtt, cwnd, mss);
        if !self.sndbuf_locked {
            let want = 2 * self.initcwnd.max(10) * self.p.segment_memory(mss);
            self.sndbuf = self.sndbuf.max(want.min(self.p.wmem[2]));
        }
    }
}
