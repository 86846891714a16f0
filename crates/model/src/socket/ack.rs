//! What an arriving acknowledgement does: the window's edge, what is delivered, round trips, congestion control
//! (`tcp_ack`).

use super::{Ca, Socket, State, Timer};
use crate::bbr::{Delivery, per_second};
use crate::cong::Trains;
use crate::packet::Packet;
use crate::profile::Congestion;
use tcpwhy_base::Nanos;

/// What one acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    /// Segments, cumulatively or selectively.
    pub(super) delivered: u64,
    pub(super) advanced: bool,
    pub(super) newly_sacked: u64,
    /// Data acknowledged that was repeated.
    pub(super) repeated: bool,
    pub(super) newly_lost: u64,
}

impl Socket {
    /// A packet of the peer, on an open connection.
    pub(crate) fn input(&mut self, now: Nanos, packet: &Packet) {
        self.now = now;
        if packet.rst {
            self.die();
            return;
        }
        if packet.has_ack && !packet.syn {
            if packet.is_pure_ack() {
                self.note_echo(packet);
            }
            self.r.heard = true;
            self.on_ack(packet);
        }
        let asks = packet.probe || packet.syn;
        if packet.len > 0 || packet.fin {
            self.receive(packet);
        }
        self.push(packet.delayed);
        self.check_space();
        if packet.len > 0 || packet.fin {
            self.ack_data();
        } else if asks {
            self.send_ack(false);
        }
    }

    fn on_ack(&mut self, packet: &Packet) {
        if packet.ack > self.nxt {
            return;
        }
        if let Some((stamp, _)) = packet.stamps
            && packet.seq <= self.r.last_ack_sent
        {
            self.r.stamp_recent = self.r.stamp_recent.max(stamp);
        }
        if packet.ack < self.una {
            return;
        }
        let edge = packet.ack + packet.window;
        let opened = edge > self.wnd_end;
        let same_window = packet.window == self.snd_wnd;
        (self.wnd_end, self.snd_wnd) = (edge, packet.window);
        self.max_window = self.max_window.max(packet.window);
        self.mss = self.half_window(self.mtu_mss);
        self.reader_away = packet.reader_away;
        let was_out = !self.rtx.is_empty();
        let mut acked = Acked::default();
        let mut samples = Samples::default();
        self.take_sacks(packet, &mut acked, &mut samples);
        self.clean(packet.ack, &mut acked, &mut samples);
        let rtt = self.measure(packet, &acked, &samples);
        if !was_out {
            if opened && matches!(self.timer, Some((_, Timer::Persist))) && !self.queue.is_empty() {
                (self.timer, self.backoff) = (None, 0);
            }
            return;
        }
        if packet.is_pure_ack() && !acked.advanced && !opened && same_window {
            self.dupacks += 1;
        } else if acked.advanced {
            self.dupacks = 0;
        }
        if acked.advanced {
            (self.backoff, self.retransmits) = (0, if self.ca == Ca::Loss { self.retransmits } else { 0 });
        }
        self.probe_answered(packet);
        self.repair(packet, &mut acked);
        self.control(&acked, &samples, rtt);
        if acked.advanced && !matches!(self.timer, Some((_, Timer::Reorder))) && !self.schedule_probe(true) {
            self.rearm();
        }
        self.resend_lost();
    }

    /// Drops what is acknowledged from the queue of the unacknowledged.
    fn clean(&mut self, ack: u64, acked: &mut Acked, samples: &mut Samples) {
        if ack <= self.una {
            return;
        }
        (self.una, acked.advanced) = (ack, true);
        while let Some(seg) = self.rtx.front_mut() {
            if seg.end > ack {
                // A part of a segment that was cut smaller.
                if seg.seq < ack {
                    self.memory = self.memory.saturating_sub(ack - seg.seq);
                    self.delivered += ack - seg.seq;
                    seg.seq = ack;
                }
                break;
            }
            let seg = *seg;
            self.rtx.pop_front();
            self.memory = self.memory.saturating_sub(seg.len() + seg.overhead);
            if seg.sacked {
                self.sacked -= 1;
            } else {
                acked.delivered += 1;
                self.delivered += seg.len();
                samples.take(&seg);
                self.rack(&seg);
                if self.sacked > 0 && !seg.ever {
                    self.reordered |= self.rack_sent > seg.sent && seg.lost;
                }
            }
            if seg.lost {
                self.lost -= 1;
            }
            if seg.retrans {
                self.retrans -= 1;
            }
            acked.repeated |= seg.ever;
        }
        self.delivered_at = self.now;
    }

    fn measure(&mut self, packet: &Packet, acked: &Acked, samples: &Samples) -> Option<Nanos> {
        if acked.delivered == 0 {
            return None;
        }
        let by_stamp = packet.stamps.filter(|s| s.1 > Nanos::ZERO && acked.advanced).map(|s| self.now - s.1);
        // Karn's rule: a repeated segment gives no sample, but its time stamp does.
        let first = samples.first.filter(|_| !acked.repeated).map(|t| self.now - t).or(by_stamp);
        if let Some(rtt) = first {
            self.rtt.sample(rtt, self.una, self.nxt, &self.p);
        }
        let last = samples.last.map(|t| self.now - t);
        if let Some(rtt) = last {
            self.rtt.note_min(rtt);
        }
        last
    }

    /// Whether the application, and not the network, was slow until this call: then what is in flight and
    /// what follows until it has been delivered says nothing about bandwidth (`tcp_rate_check_app_limited`,
    /// at the start of `sendmsg`).
    pub(super) fn check_app_limited(&mut self) {
        let nothing_waits = self.write_seq.saturating_sub(self.nxt) < self.mss && self.lost <= self.retrans;
        if nothing_waits && self.in_flight() < self.cong.cwnd {
            // Until more than that has been delivered (`tcp_rate_gen`).
            self.app_limited_until = self.delivered + self.nxt.saturating_sub(self.una) + 1;
        }
    }

    /// By how much trains of ACKs may be longer (`hystart_ack_delay`).
    fn ack_delay(&self) -> Nanos {
        let bursts = self.p.gso_max.saturating_mul(4 * 1_000_000_000);
        match self.pacing_rate() {
            0 => Nanos::ZERO,
            _ if !self.p.hystart_ack_delay => Nanos::ZERO,
            rate => Nanos((bursts / rate).min(1_000_000) as i64),
        }
    }

    /// The congestion window after this acknowledgement.
    fn control(&mut self, acked: &Acked, samples: &Samples, rtt: Option<Nanos>) {
        if let Some(rtt) = rtt {
            let trains = Trains { paced: self.paces(), delay: self.ack_delay() };
            self.cong.on_sample(self.now, rtt, self.una, self.nxt, trains);
        }
        if self.cong.kind == Congestion::Bbr {
            if acked.delivered == 0 {
                return;
            }
            let elapsed = samples.base.map(|b| self.now - b.1).filter(|&e| e > Nanos::ZERO);
            let before = samples.base.map_or(self.delivered, |b| b.0);
            let d = Delivery {
                now: self.now,
                rate: elapsed.map(|e| per_second(self.delivered - before, e)),
                app_limited: samples.app_limited,
                before,
                delivered: self.delivered,
                rtt,
                acked: acked.delivered,
                in_flight: self.in_flight(),
                mss: self.mss,
            };
            self.cong.cwnd = self.cong.bbr.on_ack(self.cong.cwnd, d);
            return;
        }
        match self.ca {
            Ca::Recovery | Ca::Cwr => self.reduce(acked, acked.newly_lost),
            _ if acked.delivered > 0 && acked.advanced && self.uses_window() => {
                let (now, per_ack) = (self.now, self.p.growth_per_ack);
                self.cong.on_ack(now, acked.delivered, per_ack);
            }
            _ => {}
        }
    }

    /// Proportional rate reduction (RFC 6937): of what is delivered as much leaves as the new window is of
    /// the old one, a half (Reno) or 7/10 (cubic).
    pub(super) fn reduce(&mut self, acked: &Acked, newly_lost: u64) {
        let in_flight = self.in_flight();
        self.prr_delivered += acked.delivered;
        let ssthresh = self.cong.ssthresh;
        let send = if in_flight > ssthresh {
            (ssthresh * self.prr_delivered).div_ceil(self.prior_cwnd.max(1)).saturating_sub(self.prr_out)
        } else {
            let mut n = self.prr_delivered.saturating_sub(self.prr_out).max(acked.delivered);
            n += u64::from(acked.advanced && newly_lost == 0);
            n.min(ssthresh - in_flight)
        };
        self.cong.cwnd = in_flight + send.max(u64::from(self.prr_out == 0));
    }

    /// Sets the retransmission timer anew.
    pub(super) fn rearm(&mut self) {
        if self.rtx.is_empty() {
            if matches!(self.timer, Some((_, Timer::Rto | Timer::Probe | Timer::Reorder))) {
                self.timer = None;
            }
            return;
        }
        let mut wait = self.rto();
        if matches!(self.timer, Some((_, Timer::Probe | Timer::Reorder)))
            && let Some(head) = self.rtx.front()
        {
            wait = (head.sent + wait - self.now).max(Nanos(self.p.clock.tick()));
        }
        self.arm(wait, Timer::Rto);
    }

    /// Arms the tail-loss probe (RFC 8985, 7.2; `tcp_schedule_loss_probe`); says whether it did.
    pub(super) fn schedule_probe(&mut self, advanced: bool) -> bool {
        let open = matches!(self.ca, Ca::Open | Ca::Cwr);
        if !self.p.tail_loss_probe || self.rtx.is_empty() || !open || self.state != State::Established {
            return false;
        }
        let tick = Nanos(self.p.clock.tick());
        let mut wait = if self.rtt.srtt > Nanos::ZERO {
            let more = if self.packets_out() == 1 { self.p.rto_min } else { Nanos::millis(2) };
            self.rtt.srtt.times(2) + more
        } else {
            self.p.rto_init
        };
        let rto = match self.rtx.front() {
            Some(head) if !advanced => head.sent + self.rto() - self.now,
            _ => self.rto(),
        };
        if rto > Nanos::ZERO {
            wait = wait.min(rto);
        }
        self.arm(wait.max(tick), Timer::Probe);
        true
    }
}

/// Send times of what was just delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Samples {
    /// Of the first segment that was sent only once, and the last.
    pub(super) first: Option<Nanos>,
    pub(super) last: Option<Nanos>,
    /// Delivered bytes and their time when the newest segment left.
    pub(super) base: Option<(u64, Nanos)>,
    pub(super) app_limited: bool,
}

impl Samples {
    pub(super) fn take(&mut self, seg: &super::Seg) {
        if !seg.ever {
            self.first = self.first.or(Some(seg.sent));
            self.last = Some(seg.sent);
        }
        if self.base.is_none_or(|b| seg.delivered >= b.0) {
            // The slower of sending and acknowledging counts: a burst's own length is in the send times.
            self.base = Some((seg.delivered, seg.delivered_at));
            self.app_limited = seg.app_limited;
        }
    }
}
