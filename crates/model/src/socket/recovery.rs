//! Losses: what is lost (RACK, RFC 8985; three duplicate ACKs before), how it is repeated, timeouts, probes, and the
//! undoing of repairs that were not needed (RFC 3522).

use super::ack::{Acked, Samples};
use super::{Ca, Seg, Socket, Timer};
use crate::packet::Packet;
use tcpwhy_base::{Cause, Nanos};

/// Duplicate ACKs that show a loss (RFC 5681, 3.2; `tcp_reordering`).
const DUPLICATES: u64 = 3;
/// Timeouts that say that a path is a black hole (`tcp_retries1`), and the size that is tried then (`tcp_base_mss`).
const BLACK_HOLE: u32 = 3;
const BASE_MSS: u64 = 1024;
/// Timeouts after which a connection is given up (`tcp_retries2`).
const GIVE_UP: u32 = 15;

impl Socket {
    /// Marks what the SACK blocks of `packet` cover.
    pub(super) fn take_sacks(&mut self, packet: &Packet, acked: &mut Acked, samples: &mut Samples) {
        for &(from, to) in packet.sack.iter().take(usize::from(packet.sacks)) {
            if to <= packet.ack {
                continue;
            }
            let start = self.rtx.partition_point(|s| s.seq < from);
            for i in start..self.rtx.len() {
                let Some(seg) = self.rtx.get_mut(i) else { break };
                if seg.end > to {
                    break;
                }
                if seg.sacked {
                    continue;
                }
                seg.sacked = true;
                let (was_lost, was_retrans) = (seg.lost, seg.retrans);
                (seg.lost, seg.retrans) = (false, false);
                let seg = *seg;
                self.sacked += 1;
                self.lost -= u64::from(was_lost);
                self.retrans -= u64::from(was_retrans);
                self.delivered += seg.len();
                self.delivered_at = self.now;
                acked.delivered += 1;
                acked.newly_sacked += 1;
                acked.repeated |= seg.ever;
                samples.take(&seg);
                self.rack(&seg);
            }
        }
    }

    /// The newest delivered transmission (RFC 8985, 6.2, step 2).
    pub(super) fn rack(&mut self, seg: &Seg) {
        let rtt = self.now - seg.sent;
        if seg.ever && rtt < self.rtt.min {
            return;
        }
        if (seg.sent, seg.end) >= (self.rack_sent, self.rack_end) {
            (self.rack_sent, self.rack_end, self.rack_rtt) = (seg.sent, seg.end, rtt);
        }
    }

    fn reordering_window(&self) -> Nanos {
        if !self.reordered && (matches!(self.ca, Ca::Recovery | Ca::Loss) || self.sacked >= DUPLICATES) {
            return Nanos::ZERO;
        }
        if self.rtt.min == Nanos::MAX { Nanos::ZERO } else { self.rtt.min.part(4).min(self.rtt.srtt) }
    }

    /// Marks as lost what was sent before something that was delivered, a reordering window ago.
    fn detect(&mut self) -> u64 {
        let mut found = 0;
        if !self.p.rack {
            let shown = self.sacked.max(u64::from(self.dupacks)) >= DUPLICATES;
            if shown && let Some(head) = self.rtx.front_mut().filter(|s| !s.lost && !s.sacked && !s.ever) {
                head.lost = true;
                found = 1;
            }
            self.lost += found;
            return found;
        }
        if self.rack_sent == Nanos::ZERO || self.rtx.front().is_none_or(|s| s.first > self.rack_sent) {
            return 0;
        }
        let allowed = self.rack_rtt + self.reordering_window();
        let mut wait = None;
        for seg in &mut self.rtx {
            if seg.first > self.rack_sent {
                break;
            }
            let waiting = !seg.sacked && (!seg.lost || seg.retrans);
            if !waiting || (seg.sent, seg.end) >= (self.rack_sent, self.rack_end) {
                continue;
            }
            let left = allowed - (self.now - seg.sent);
            if left > Nanos::ZERO {
                wait = wait.max(Some(left));
                continue;
            }
            if seg.retrans {
                seg.retrans = false;
                self.retrans -= 1;
            }
            if !seg.lost {
                seg.lost = true;
                self.lost += 1;
            }
            found += 1;
        }
        if let Some(wait) = wait {
            self.arm(wait + Nanos::millis(2), Timer::Reorder);
        }
        found
    }

    /// State changes that an acknowledgement brings (`tcp_fastretrans_alert`).
    pub(super) fn repair(&mut self, packet: &Packet, acked: &mut Acked) {
        if acked.advanced && self.ca != Ca::Open && self.may_undo(packet) || self.all_needless(packet) {
            self.undo_reduction();
        }
        if matches!(self.ca, Ca::Recovery | Ca::Cwr | Ca::Loss) && self.una >= self.high {
            if self.ca != Ca::Loss && !self.paces() {
                self.cong.cwnd = self.cong.ssthresh;
            }
            // What the D-SACK of the last repeat shows may still be undone (`tcp_try_undo_dsack`).
            (self.ca, self.retransmits, self.repairs_since) = (Ca::Open, 0, None);
        }
        if self.sacked > 0 || self.dupacks > 0 || matches!(self.ca, Ca::Recovery | Ca::Loss) {
            acked.newly_lost = self.detect();
        }
        if self.lost > 0 && matches!(self.ca, Ca::Open | Ca::Cwr) {
            self.enter_recovery();
        }
        if !self.p.rack && self.ca == Ca::Recovery && acked.advanced && self.lost == 0 {
            // A partial acknowledgement shows the next hole (RFC 6582).
            if let Some(head) = self.rtx.front_mut().filter(|s| !s.sacked && !s.ever) {
                head.lost = true;
                self.lost += 1;
            }
        }
    }

    fn enter_recovery(&mut self) {
        if self.ca == Ca::Open {
            self.begin_reduction();
        }
        (self.ca, self.high) = (Ca::Recovery, self.nxt);
        (self.had_loss, self.repair) = (true, Cause::FastRecovery);
    }

    fn begin_reduction(&mut self) {
        (self.undo, self.undo_repeats) = (Some((self.cong.cwnd, self.cong.ssthresh, self.now)), None);
        (self.prior_cwnd, self.before_idle) = (self.cong.cwnd, 0);
        (self.prr_delivered, self.prr_out) = (0, 0);
        self.cong.ssthresh = self.cong.on_loss();
    }

    /// The original arrived: its time stamp is older than the repeat (Eifel, RFC 3522).
    fn may_undo(&self, packet: &Packet) -> bool {
        let Some((_, _, since)) = self.undo else { return false };
        // Time stamps count milliseconds: within one, nothing can be told.
        let tick = |t: Nanos| t.0 / 1_000_000;
        self.p.undo
            && packet.stamps.is_some_and(|s| s.1 > Nanos::ZERO && tick(s.1) < tick(since))
            && self.retransmits_seen()
    }

    /// A D-SACK shows that the last repeat that could have been needed was not (RFC 3708).
    fn all_needless(&mut self, packet: &Packet) -> bool {
        let (Some(left), true) = (&mut self.undo_repeats, packet.dsack && self.undo.is_some()) else {
            return false;
        };
        *left = left.saturating_sub(1);
        *left == 0 && self.p.undo
    }

    fn retransmits_seen(&self) -> bool {
        matches!(self.ca, Ca::Loss | Ca::Recovery)
    }

    fn undo_reduction(&mut self) {
        if let Some((cwnd, ssthresh, _)) = self.undo.take() {
            (self.cong.cwnd, self.cong.ssthresh) = (self.cong.cwnd.max(cwnd), ssthresh);
        }
        for seg in &mut self.rtx {
            seg.lost = false;
        }
        (self.lost, self.undo_repeats, self.repairs_since) = (0, None, None);
        (self.ca, self.retransmits, self.had_loss) = (Ca::Open, 0, false);
        self.repair = Cause::SpuriousRecovery;
    }

    /// Repeats what is lost, as far as the window goes.
    pub(super) fn resend_lost(&mut self) {
        if self.lost <= self.retrans || !matches!(self.ca, Ca::Recovery | Ca::Loss) {
            return;
        }
        let mut i = 0;
        while self.in_flight() < self.cong.cwnd && i < self.rtx.len() {
            let Some(seg) = self.rtx.get(i) else { break };
            if seg.lost && !seg.retrans && !seg.sacked {
                let why = self.repair;
                self.resend(i, why);
                self.prr_out += 1;
            }
            i += 1;
        }
        if !matches!(self.timer, Some((_, Timer::Reorder | Timer::Rto))) {
            self.rearm();
        }
    }

    /// Repeats one segment, cut to the size that is believed to pass.
    fn resend(&mut self, i: usize, why: Cause) {
        let Some(seg) = self.rtx.get_mut(i) else { return };
        let mss = self.mss.max(1);
        if seg.len() > mss {
            let mut rest = *seg;
            (seg.end, seg.fin, seg.psh, seg.overhead) = (seg.seq + mss, false, false, 0);
            rest.seq = seg.end;
            self.lost += u64::from(rest.lost);
            self.retrans += u64::from(rest.retrans);
            self.rtx.insert(i + 1, rest);
        }
        let Some(seg) = self.rtx.get_mut(i) else { return };
        let (seq, len, fin, psh) = (seg.seq, seg.len(), seg.fin, seg.psh);
        if why != Cause::TailLossProbe {
            self.repairs_since.get_or_insert(self.now);
            self.undo_repeats = Some(self.undo_repeats.unwrap_or(0) + 1);
        }
        (seg.sent, seg.ever) = (self.now, true);
        (seg.delivered, seg.delivered_at) = (self.delivered, self.delivered_at);
        if !seg.retrans {
            seg.retrans = true;
            self.retrans += u64::from(seg.lost);
            if !seg.lost {
                // A probe repeats what is not known to be lost: it counts as one packet.
                seg.retrans = false;
            }
        }
        let packet = Packet { len: len as u32, fin, psh, repeat: true, cause: Some(why), ..self.packet(seq) };
        self.out.push(packet);
        self.data_sent();
    }

    /// The retransmission timer (`tcp_retransmit_timer`).
    pub(super) fn retransmit_timer(&mut self) {
        if self.rtx.is_empty() {
            return;
        }
        self.retransmits += 1;
        if self.retransmits > GIVE_UP {
            self.die();
            return;
        }
        if self.mtu_probing && self.black_hole() {
            self.mtu_mss = self.mtu_mss.min(BASE_MSS);
            self.mss = self.half_window(self.mtu_mss);
        }
        if self.snd_wnd == 0 {
            self.repair = Cause::SlowReader;
        } else {
            self.repair = Cause::RetransmissionTimeout;
        }
        if self.ca != Ca::Loss {
            if self.ca == Ca::Open {
                self.begin_reduction();
            }
            if let Some(u) = &mut self.undo {
                u.2 = self.now;
            }
        }
        self.cong.on_timeout();
        (self.ca, self.high, self.had_loss) = (Ca::Loss, self.nxt, true);
        (self.lost, self.retrans, self.probe_high) = (0, 0, None);
        for seg in &mut self.rtx {
            seg.retrans = false;
            seg.lost = !seg.sacked;
            self.lost += u64::from(seg.lost);
        }
        self.cong.cwnd = 1;
        let first = self.rtx.iter().position(|s| s.lost).unwrap_or(0);
        let why = self.repair;
        self.resend(first, why);
        self.backoff += 1;
        self.arm(self.rto(), Timer::Rto);
    }

    /// Repeats go on for as long as so many timeouts would take if the first were the shortest
    /// (`retransmits_timed_out`): the count does not matter.
    fn black_hole(&self) -> bool {
        let allowed = self.p.rto_min.times((2 << BLACK_HOLE) - 1);
        self.retransmits > 1 && self.repairs_since.is_some_and(|t| self.now - t >= allowed)
    }

    /// The tail-loss probe (RFC 8985, 7.3).
    pub(super) fn loss_probe(&mut self) {
        if self.rtx.is_empty() {
            return;
        }
        if self.probe_high.is_none() {
            let new = self.nxt + self.queue.front().map_or(0, |s| s.len.min(self.mss)) <= self.wnd_end
                && self.queue.front().is_some_and(|s| s.len > 0)
                && self.xmit_probe();
            if !new {
                let last = self.rtx.len() - 1;
                self.repair = Cause::TailLossProbe;
                self.resend(last, Cause::TailLossProbe);
            }
            self.probe_high = Some((self.nxt, !new));
        }
        self.arm(self.rto(), Timer::Rto);
    }

    /// An acknowledgement at or above the probe: it arrived, and if it repeated something, that had been lost.
    pub(super) fn probe_answered(&mut self, packet: &Packet) {
        let Some((high, repeated)) = self.probe_high else { return };
        if packet.ack < high {
            return;
        }
        self.probe_high = None;
        if repeated && !packet.dsack && self.ca == Ca::Open {
            self.begin_reduction();
            (self.ca, self.high, self.had_loss) = (Ca::Cwr, self.nxt, true);
            self.undo = None;
        }
    }

    /// The reordering window is over: what is still missing is lost.
    pub(super) fn reorder_timer(&mut self) {
        let found = self.detect();
        if found > 0 {
            if matches!(self.ca, Ca::Open | Ca::Cwr) {
                self.enter_recovery();
            }
            self.reduce(&Acked::default(), found);
            self.resend_lost();
        }
        if !matches!(self.timer, Some((_, Timer::Reorder))) {
            self.rearm();
        }
    }
}
