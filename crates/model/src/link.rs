//! One direction of the path in virtual time.

use crate::packet::{HEADERS, Packet, Passage, TIMESTAMPS};
use std::collections::VecDeque;
use tcpwhy_base::{Link, LossOf, Nanos, Random, What};

/// A direction at work.
#[derive(Debug)]
pub(crate) struct Pipe {
    link: Link,
    mtu: u64,
    random: Random,
    /// When the bottleneck will have sent everything that is in its queue.
    free_at: Nanos,
    /// Departures of what is queued: time, bytes, connection, service time.
    queue: VecDeque<(Nanos, u64, u32, Nanos)>,
    queued: u64,
    last_arrival: Nanos,
    data: u64,
    /// SYNs, data and ACKs of each connection, and copies seen of each chosen byte.
    counts: Vec<[u64; 3]>,
    copies: Vec<u32>,
    /// Bytes that a connection carries in this direction.
    total: u64,
    /// Several connections use it.
    shared: bool,
}

impl Pipe {
    pub(crate) fn new(link: &Link, mtu: u64, seed: u64, total: u64, shared: bool) -> Pipe {
        Pipe {
            copies: vec![0; link.drops.len()],
            link: link.clone(),
            mtu,
            random: Random(seed),
            free_at: Nanos::ZERO,
            queue: VecDeque::new(),
            queued: 0,
            last_arrival: Nanos::ZERO,
            data: 0,
            counts: Vec::new(),
            total,
            shared,
        }
    }

    /// Takes a packet; says how it fares, and whether it arrives twice.
    pub(crate) fn take(&mut self, packet: Packet, now: Nanos) -> (Passage, bool) {
        let mut passage = Passage {
            packet,
            sent: now,
            arrived: None,
            drained: now,
            service: Nanos::ZERO,
            foreign: Nanos::ZERO,
        };
        let bytes = packet.ip_bytes();
        let chosen = self.chosen(&packet);
        let of = match self.link.loss_of {
            LossOf::All => true,
            LossOf::Data => packet.len > 0,
            LossOf::Acks => packet.is_pure_ack(),
        };
        let unlucky = of && self.random.hits(self.link.loss_ppm);
        let hole = self.link.black_hole_over.is_some_and(|n| bytes > n);
        let within =
            |spans: &[(Nanos, Nanos)], t: Nanos| spans.iter().find(|s| t >= s.0 && t < s.0 + s.1).copied();
        let cut = within(&self.link.cuts, now).is_some();
        if chosen || unlucky || hole || cut || !self.serve(&packet, bytes, now, &mut passage) {
            return (passage, false);
        }
        let jitter = Nanos(self.random.below(self.link.jitter.0.max(0) as u64 + 1) as i64);
        let mut at = passage.drained + self.link.delay + jitter;
        if let Some((start, length)) = within(&self.link.pauses, at) {
            at = start + length;
        }
        at = at.max(self.last_arrival);
        let held = self.held(&packet);
        if !held {
            self.last_arrival = at;
        }
        if let (true, Some(r)) = (held, &self.link.reorder) {
            at += r.hold;
        }
        passage.arrived = Some(at);
        (passage, self.random.hits(self.link.duplicate_ppm))
    }

    /// The bottleneck: false if the queue has no room.
    fn serve(&mut self, packet: &Packet, bytes: u64, now: Nanos, passage: &mut Passage) -> bool {
        let Some(rate) = self.link.rate else { return true };
        while let Some(&(done, size, ..)) = self.queue.front()
            && done <= now
        {
            self.queue.pop_front();
            self.queued -= size;
        }
        let full = self.link.queue_bytes.is_some_and(|q| self.queued + bytes > q)
            || self.link.queue_packets.is_some_and(|q| self.queue.len() >= q);
        if full {
            return false;
        }
        let bits = u128::from(bytes + self.link.overhead) * 8;
        let service = Nanos((bits * 1_000_000_000 / u128::from(rate)).min(i64::MAX as u128) as i64);
        self.free_at = self.free_at.max(now) + service;
        if self.shared {
            let others = self.queue.iter().filter(|q| q.2 != packet.conn);
            passage.foreign = others.fold(Nanos::ZERO, |sum, q| sum + q.3.min(q.0 - now));
        }
        self.queue.push_back((self.free_at, bytes, packet.conn, service));
        self.queued += bytes;
        (passage.drained, passage.service) = (self.free_at, service);
        true
    }

    fn held(&mut self, packet: &Packet) -> bool {
        if packet.len == 0 {
            return false;
        }
        self.data += 1;
        let Some(r) = &self.link.reorder else { return false };
        r.every > 0 && self.data.is_multiple_of(r.every) || r.nth.contains(&self.data)
    }

    fn chosen(&mut self, packet: &Packet) -> bool {
        if self.link.drops.is_empty() {
            return false;
        }
        let conn = packet.conn as usize;
        if self.counts.len() <= conn {
            self.counts.resize(conn + 1, [0; 3]);
        }
        let kind = if packet.syn { 0 } else { if packet.len > 0 { 1 } else { 2 } };
        let Some(count) = self.counts.get_mut(conn).and_then(|c| c.get_mut(kind)) else { return false };
        *count += 1;
        let n = *count;
        let mss = self.mtu.saturating_sub(HEADERS + TIMESTAMPS);
        let mut hit = false;
        for (chosen, seen) in self.link.drops.iter().zip(&mut self.copies) {
            if chosen.connection != packet.conn {
                continue;
            }
            let mut covers = |at: u64, copies: u32| {
                // Byte 0 of the payload has sequence number 1.
                let carries = packet.len > 0
                    && packet.seq <= at + 1
                    && at + 1 < packet.seq + u64::from(packet.len)
                    && *seen < copies;
                *seen += u32::from(carries);
                carries
            };
            hit |= match chosen.what {
                What::Syn(k) => kind == 0 && n == k,
                What::Data(k) => kind == 1 && n == k,
                What::Ack(k) => kind == 2 && n == k,
                What::Seq { at, copies } => covers(at, copies),
                What::Last { back, copies } => {
                    covers(self.total.saturating_sub(1).saturating_sub(back * mss), copies)
                }
            };
        }
        hit
    }
}
