//! Receiving: what arrived, when it is acknowledged, and which window is offered (`tcp_data_queue`,
//! `__tcp_ack_snd_check`, `__tcp_select_window`, `tcp_rcv_space_adjust`).

use super::receiver::Receiver;
use super::{Socket, State};
use crate::packet::Packet;
use crate::profile::{Acks, Profile, WindowRule};
use tcpwhy_base::Nanos;

/// Segments smaller than this do not make the window grow (`tcp_event_data_recv`).
const SMALL: u64 = 128;
/// Time stamps tick in milliseconds (`TCP_TS_HZ`).
const STAMP_TICK: i64 = 1_000_000;
/// Smallest segment size that a repetition teaches (`tcp_measure_rcv_mss`: TCP_MSS_DEFAULT less options).
const SMALLEST_MSS: u64 = 536 - 12;

impl Receiver {
    /// Bytes of window in so much buffer.
    fn window_in(&self, buffer: u64) -> u64 {
        buffer.saturating_mul(self.ratio) / 256
    }

    fn buffer_for(&self, window: u64) -> u64 {
        window.saturating_mul(256) / self.ratio.max(1)
    }

    /// Window and scale of the SYN (`tcp_select_initial_window`).
    pub(super) fn first_window(&mut self, p: &Profile, mss: u64) {
        let whole = self.window_in(self.buffer);
        let mss = mss.max(1);
        // The scale is for memory that is all payload, unless the buffer is fixed.
        let largest = if self.locked { whole } else { p.rmem[2].max(p.rmem_max).max(whole) };
        self.clamp = largest.max(1);
        self.wscale = (0..14).find(|s| largest >> s <= 65_535).unwrap_or(14);
        let space = if whole > mss { whole / mss * mss } else { whole };
        let most = p.first_window.min(65_535);
        self.wnd = space.min(if most > mss { most / mss * mss } else { most });
        self.ssthresh = self.wnd;
        self.space = self.wnd.min(10 * mss);
        if !self.locked {
            self.clamp = whole.saturating_sub(mss).max(self.wnd);
        }
    }

    /// A window clamp that grows takes the threshold along, to what is offered (`tcp_set_window_clamp`).
    fn set_clamp(&mut self, clamp: u64) {
        if clamp > self.clamp {
            self.ssthresh = self.ssthresh.max(self.wnd.min(clamp));
        } else {
            self.ssthresh = self.ssthresh.min(clamp);
        }
        self.clamp = clamp;
        self.space = self.space.min(clamp);
    }

    /// What is left of the offered window.
    fn left(&self) -> u64 {
        (self.wup + self.wnd).saturating_sub(self.nxt)
    }

    fn free(&self) -> u64 {
        self.window_in(self.buffer.saturating_sub(self.memory))
    }

    fn offer(&mut self) -> u64 {
        let free = self.free();
        let allowed = self.window_in(self.buffer);
        let full = self.clamp.min(allowed);
        let mss = self.mss.min(full);
        if mss == 0 {
            return 0;
        }
        let mut free = free;
        if free < full / 2 {
            self.quick = 0;
            free = free >> self.wscale << self.wscale;
            if free < allowed / 16 || free < mss {
                return 0;
            }
        }
        free = free.min(self.ssthresh);
        if self.wscale > 0 {
            return (free + (1 << self.wscale) - 1) >> self.wscale << self.wscale;
        }
        let now = self.wnd;
        if now + mss <= free || now > free {
            free / mss * mss
        } else if mss == full && free > now + full / 2 {
            free
        } else {
            now
        }
    }

    /// Half a window of segments is acknowledged one by one; two, where the window is less than two segments
    /// (`tcp_incr_quickack`).
    fn refill_quick(&mut self, most: u64) {
        let n = match self.wnd / (2 * self.mss.max(1)) {
            0 => 2,
            n => n,
        };
        self.quick = self.quick.max(n.min(most));
    }
}

impl Socket {
    /// The window for the next packet: never moves the edge back. Its field and shift.
    pub(super) fn select_window(&mut self) -> (u64, u8) {
        let left = self.r.left();
        let offer = self.r.offer();
        let shift = self.r.wscale;
        let wnd = if offer < left { (left + (1 << shift) - 1) >> shift << shift } else { offer };
        let wnd = wnd.min(65_535 << shift);
        (self.r.wnd, self.r.wup) = (wnd, self.r.nxt);
        (wnd >> shift << shift, shift)
    }

    /// SACK blocks: a duplicate first, the newest block next.
    pub(super) fn sack_blocks(&mut self, out: &mut [(u64, u64); 3]) -> u8 {
        let holes = self.r.holes.iter().copied().filter(|&b| Some(b) != self.r.newest);
        let all = self.r.duplicate.into_iter().chain(self.r.newest).chain(holes);
        let mut n = 0;
        for (slot, block) in out.iter_mut().zip(all) {
            *slot = block;
            n += 1;
        }
        n
    }

    /// A packet with data or FIN.
    pub(super) fn receive(&mut self, packet: &Packet) {
        let (seq, end) = (packet.seq, packet.end());
        if packet.fin {
            self.r.fin = Some(end);
        }
        if end <= self.r.nxt {
            // A copy: say at once what is here, and that it was one (RFC 2883).
            self.r.duplicate = Some((seq, end));
            self.r.refill_quick(self.p.quickacks);
            (self.r.pingpong, self.r.scheduled, self.r.now_ack) = (0, true, true);
            return;
        }
        if seq > self.r.nxt + self.r.left().max(1) {
            (self.r.scheduled, self.r.now_ack) = (true, true);
            return;
        }
        self.queue_for_reading(packet);
        if seq > self.r.nxt {
            self.insert_hole(seq, end);
            (self.r.scheduled, self.r.now_ack) = (true, true);
            return;
        }
        self.r.nxt = end;
        let had_holes = !self.r.holes.is_empty();
        while let Some(&(from, to)) = self.r.holes.first()
            && from <= self.r.nxt
        {
            self.r.nxt = self.r.nxt.max(to);
            self.r.holes.remove(0);
        }
        self.r.newest = self.r.newest.filter(|b| b.1 > self.r.nxt);
        if had_holes {
            // A gap that was filled is told at once (RFC 5681, 4.2).
            self.r.now_ack = true;
        }
        self.event(packet);
    }

    fn queue_for_reading(&mut self, packet: &Packet) {
        let size = self.p.received_size(u64::from(packet.len));
        self.r.queue(packet.end(), size);
    }

    fn insert_hole(&mut self, seq: u64, end: u64) {
        let mut block = (seq, end);
        self.r.holes.retain(|&b| {
            let joins = b.0 <= block.1 && block.0 <= b.1;
            if joins {
                block = (block.0.min(b.0), block.1.max(b.1));
            }
            !joins
        });
        let at = self.r.holes.partition_point(|b| b.0 < block.0);
        self.r.holes.insert(at, block);
        self.r.newest = Some(block);
    }

    /// Data in order: what it teaches (`tcp_event_data_recv`).
    fn event(&mut self, packet: &Packet) {
        let len = u64::from(packet.len);
        self.r.scheduled = true;
        self.measure_round(packet, len);
        self.measure_mss(len, packet.psh);
        self.measure_window_round();
        let now = self.now;
        if let Acks::Adaptive { .. } = self.p.acks {
            let (min, most) = (self.p.delack_min, self.p.quickacks);
            if self.r.ato == Nanos::ZERO {
                self.r.refill_quick(most);
                self.r.ato = min;
            } else {
                let gap = now - self.r.last_data;
                if gap <= min.part(2) {
                    self.r.ato = self.r.ato.part(2) + min.part(2);
                } else if gap < self.r.ato {
                    self.r.ato = (self.r.ato.part(2) + gap).min(self.rtt.rto(&self.p));
                } else if gap > self.rtt.rto(&self.p) {
                    self.r.refill_quick(most);
                }
            }
        } else {
            self.r.full_segments += u64::from(len >= self.r.mss);
        }
        self.r.last_data = now;
        if len >= SMALL {
            self.grow_window(len);
        }
    }

    /// The peer's segment size, as far as it shows (`tcp_measure_rcv_mss`).
    fn measure_mss(&mut self, len: u64, psh: bool) {
        let before = std::mem::take(&mut self.r.last_size);
        if len >= self.r.mss {
            if self.p.window == WindowRule::Measured && len != self.r.mss {
                let old = self.r.ratio;
                self.r.ratio = (len * 256 / self.p.received_size(len).max(1)).clamp(1, 255);
                if old != self.r.ratio {
                    self.r.set_clamp(self.r.window_in(self.r.buffer));
                }
            }
            self.r.mss = len.min(self.mtu_mss.max(536));
            // Exactly one segment with PSH: probably the end of a write, and more may not come.
            if len == self.r.mss && psh {
                self.r.pushed = self.r.pushed.max(1);
            }
            return;
        }
        if len >= SMALLEST_MSS {
            self.r.last_size = len;
            if len == before {
                self.r.mss = len;
                return;
            }
        }
        self.r.pushed = (self.r.pushed + 1).min(2);
    }

    /// What an echo says is the tick in which its stamp left: milliseconds, by the host's clock (`tcp_rtt_tsopt_us`).
    fn stamp_tick(&self, t: Nanos) -> i64 {
        (t - self.phase).0.div_euclid(STAMP_TICK)
    }

    /// A bare acknowledgement. One that header prediction does not take (the client's first packet; another window than before; SACK
    /// blocks) is no sample, but its echo is used up for data that come with the same one (`tcp_rcv_established`).
    pub(super) fn note_echo(&mut self, packet: &Packet) {
        let predicted = self.r.heard && packet.window == self.snd_wnd && packet.sacks == 0;
        if let Some((_, echo)) = packet.stamps
            && !predicted
        {
            self.r.echoed = Some(self.stamp_tick(echo));
        }
    }

    fn measure_round(&mut self, packet: &Packet, len: u64) {
        let Some((_, echo)) = packet.stamps.filter(|s| s.1 > Nanos::ZERO) else { return };
        let (now, echo) = (self.stamp_tick(self.now), self.stamp_tick(echo));
        if Some(echo) != self.r.echoed {
            self.r.echoed = Some(echo);
            let sample = match now - echo {
                // Within one tick: no sample since Linux 6.16, a whole one before.
                0 if self.p.drs_reads_queue => Nanos::ZERO,
                n => Nanos(n.max(1) * STAMP_TICK),
            };
            if len >= self.r.mss && sample > Nanos::ZERO {
                self.note_round(sample, len);
            }
        }
    }

    /// How long a window of bytes takes to arrive is no less than a round trip: the shortest counts (`tcp_rcv_rtt_measure`).
    fn measure_window_round(&mut self) {
        let (now, r) = (self.now, &mut self.r);
        if let Some((edge, since)) = r.round {
            if r.nxt < edge {
                return;
            }
            let sample = (now - since).max(Nanos::micros(1));
            if r.rtt == Nanos::ZERO || sample < r.rtt {
                r.rtt = sample;
            }
        }
        r.round = Some((r.nxt + r.wnd, now));
    }

    /// Falls at once, rises slowly and, since Linux 6.16, only while nothing waits to be read (`tcp_rcv_rtt_update`).
    fn note_round(&mut self, sample: Nanos, len: u64) {
        let read = self.r.copied + len >= self.r.nxt;
        if self.r.rtt == Nanos::ZERO || sample < self.r.rtt && self.p.drs_reads_queue {
            self.r.rtt = sample;
        } else if read || !self.p.drs_reads_queue {
            self.r.rtt = self.r.rtt - self.r.rtt.part(8) + sample.part(8);
        }
    }

    fn grow_window(&mut self, len: u64) {
        let r = &mut self.r;
        let room = r.clamp.min(r.window_in(r.buffer.saturating_sub(r.memory))).saturating_sub(r.ssthresh);
        if room == 0 {
            return;
        }
        let mss = self.mtu_mss;
        let fits = r.window_in(self.p.received_size(len)) <= len;
        let step = if fits { 2 * mss } else { grow_little(r, &self.p, len) };
        if step > 0 {
            r.ssthresh += room.min(step.max(2 * len));
            r.quick |= 1;
        }
    }

    /// After data arrived: an ACK now, or later (`__tcp_ack_snd_check`).
    pub(super) fn ack_data(&mut self) {
        if !self.r.scheduled {
            return;
        }
        let now = match self.p.acks {
            Acks::Adaptive { pingpong } => {
                let unacked = self.r.nxt - self.r.wup;
                let window = self.r.wnd;
                unacked > self.r.mss && self.r.offer() >= window
                    || self.quickack
                    || self.r.quick > 0 && self.r.pingpong < pingpong
            }
            Acks::Fixed { every, push_now, .. } => {
                self.r.full_segments >= every || push_now && self.r.pushed > 0
            }
        };
        if now || self.r.now_ack || !self.r.holes.is_empty() {
            self.send_ack(false);
        } else {
            self.delay_ack();
        }
    }

    fn delay_ack(&mut self) {
        let Acks::Adaptive { pingpong } = self.p.acks else {
            if let (Acks::Fixed { delay, .. }, None) = (self.p.acks, self.r.delack) {
                self.r.delack = Some(self.fires(delay));
            }
            return;
        };
        let min = self.p.delack_min;
        let mut ato = self.r.ato;
        if ato > min {
            let most = if self.r.pingpong >= pingpong || self.r.pushed > 0 {
                self.p.delack_max
            } else {
                Nanos::millis(500)
            };
            let most = if self.rtt.srtt > Nanos::ZERO { most.min(self.rtt.srtt.max(min)) } else { most };
            ato = ato.min(most);
        }
        ato = ato.min(self.p.delack_max);
        let at = self.fires(ato);
        match self.r.delack {
            Some(then) if then <= self.now + ato.part(4) => self.send_ack(false),
            Some(then) => self.r.delack = Some(then.min(at)),
            None => self.r.delack = Some(at),
        }
    }

    /// The timer of a delayed ACK (`tcp_delack_timer_handler`).
    pub(super) fn delayed_ack_timer(&mut self) {
        self.r.delack = None;
        if !self.r.scheduled {
            return;
        }
        if let Acks::Adaptive { pingpong } = self.p.acks {
            if self.r.pingpong >= pingpong {
                (self.r.pingpong, self.r.ato) = (0, self.p.delack_min);
            } else {
                self.r.ato = self.r.ato.times(2).min(self.rtt.rto(&self.p));
            }
        }
        self.send_ack(true);
    }

    /// A pure acknowledgement.
    pub(super) fn send_ack(&mut self, delayed: bool) {
        if !matches!(self.state, State::Established) {
            return;
        }
        let nxt = self.nxt;
        let mut packet = self.packet(nxt);
        packet.delayed = delayed;
        self.out.push(packet);
        self.ack_left();
    }

    /// An ACK left, alone or with data (`tcp_event_ack_sent`).
    pub(super) fn ack_left(&mut self) {
        if self.r.scheduled && self.r.quick > 0 {
            self.r.quick -= 1;
            if self.r.quick == 0 {
                self.r.ato = self.p.delack_min;
            }
        }
        self.r.delack = None;
        (self.r.scheduled, self.r.now_ack, self.r.pushed, self.r.full_segments) = (false, false, 0, 0);
    }

    /// Bytes that a read would give, and whether the peer's end was reached.
    pub(crate) fn readable(&self) -> (u64, bool) {
        let fin = self.r.fin.is_some_and(|f| self.r.nxt >= f);
        ((self.r.nxt - u64::from(fin)).saturating_sub(self.r.copied), fin)
    }

    /// An application's `read` of at most `most` bytes.
    pub(crate) fn read(&mut self, now: Nanos, most: u64) -> u64 {
        self.now = now;
        let n = self.readable().0.min(most);
        if n == 0 {
            return 0;
        }
        self.r.copied += n;
        while let Some(&(end, size)) = self.r.unread.front()
            && end <= self.r.copied
        {
            self.r.memory = self.r.memory.saturating_sub(size);
            self.r.unread.pop_front();
        }
        self.grow_buffer();
        self.after_read();
        n
    }

    /// An ACK that a read makes due (`__tcp_cleanup_rbuf`).
    fn after_read(&mut self) {
        let mut due = false;
        if let Acks::Adaptive { pingpong } = self.p.acks
            && self.r.scheduled
        {
            let drained = self.r.unread.is_empty();
            let pushed = self.r.pushed >= 2 || self.r.pushed == 1 && self.r.pingpong < pingpong;
            due = self.r.nxt - self.r.wup > self.r.mss || drained && pushed;
        }
        if !due {
            let left = self.r.left();
            if 2 * left <= self.r.clamp {
                let new = self.r.offer();
                due = new > 0 && new >= 2 * left;
            }
        }
        if due {
            self.send_ack(false);
        }
    }

    /// Dynamic right-sizing (`tcp_rcv_space_adjust`): the buffer follows what the application reads in a round trip.
    fn grow_buffer(&mut self) {
        let r = &mut self.r;
        let time = self.now - r.space_at;
        if r.rtt == Nanos::ZERO || time < r.rtt {
            return;
        }
        let mut copied = r.copied - r.space_seq;
        if self.p.drs_reads_queue {
            // What waits to be read shows that the application, not the window, was slow.
            copied = copied.saturating_sub(r.nxt.saturating_sub(r.copied));
        }
        if copied > r.space {
            if !r.locked {
                let mut window = 2 * copied + self.p.drs_extra * self.mtu_mss;
                let grow = u128::from(window) * u128::from(copied - r.space) / u128::from(r.space.max(1));
                window = window.saturating_add(2 * grow.min(1 << 40) as u64);
                let buffer = r.buffer_for(window).min(self.p.rmem[2]);
                if buffer > r.buffer {
                    r.buffer = buffer;
                    r.clamp = r.window_in(buffer);
                }
            }
            r.space = copied;
        }
        (r.space_seq, r.space_at) = (r.copied, self.now);
    }
}

/// Growth for segments that waste buffer memory, while the window is small (`__tcp_grow_window`).
fn grow_little(r: &Receiver, p: &Profile, len: u64) -> u64 {
    let mut size = r.window_in(p.received_size(len)) / 2;
    let mut window = r.window_in(p.rmem[2]) / 2;
    while window > 0 && r.ssthresh <= window {
        if size <= len {
            return 2 * r.mss;
        }
        (size, window) = (size / 2, window / 2);
    }
    0
}
