//! One direction of the link in virtual time: from a packet and the moment it came to the moment it is delivered,
//! or the reason why it is not. It reads no clock.

use super::chooser::{Chooser, Place, Seen};
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use tcpwhy_base::{Ends, Link, LossOf, Nanos, Random};

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// By choice of the scenario.
    Chosen,
    /// By the dice.
    Random,
    /// The queue was full.
    Queue,
    /// Larger than what passes.
    TooLarge,
    /// The path was cut.
    Cut,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost(Reason),
    Arrives(Nanos),
    ArrivesTwice(Nanos),
}

/// What one direction did, for the record.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// Packets that the host sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Losses by reason.
    pub lost: BTreeMap<Reason, u64>,
    /// Packets held to be overtaken.
    pub held: u64,
    /// Packets delivered twice.
    pub duplicated: u64,
    /// Most bytes that waited.
    pub queue_max_bytes: u64,
    /// Longest wait for the rate, the packet's own sending excluded.
    pub queue_max_ns: i64,
    /// Mean of that wait.
    pub queue_mean_ns: i64,
}

/// The state of one direction.
#[derive(Debug)]
pub(crate) struct Pipe {
    link: Link,
    /// Larger packets are lost and their sender told.
    path_mtu: Option<u64>,
    /// Nanoseconds for one byte.
    per_byte: Option<f64>,
    /// The nodes behind this one.
    hops: Vec<Pipe>,
    chooser: Chooser,
    dice: Random,
    /// When the packets that wait for the rate will have been sent, and their bytes.
    waiting: VecDeque<(Nanos, u64)>,
    waiting_bytes: u64,
    free_at: f64,
    last_delivery: Nanos,
    waited: i128,
    pub(crate) tally: Tally,
}

impl Pipe {
    /// By the sender. The directions roll different dice.
    pub(crate) fn both(scenario: &Scenario) -> Ends<Pipe> {
        let s = &scenario.shared;
        let totals = s.workload.totals();
        let pipe = |n: usize, seed: u64| {
            let node = |link: &Link, path_mtu, seed| Pipe::new(link, path_mtu, s.mtu, totals[n], seed);
            let way = &scenario.ways[n];
            let hops =
                way.hops.iter().zip(1..).map(|(hop, k)| node(&hop.link, hop.path_mtu, seed.wrapping_add(k)));
            Pipe { hops: hops.collect(), ..node(&s.links[n], way.path_mtu, seed) }
        };
        Ends::new(pipe(0, s.seed), pipe(1, s.seed ^ 0x5eed))
    }

    /// One node. `total`: payload bytes that this direction of a connection will carry.
    fn new(link: &Link, path_mtu: Option<u64>, mtu: u64, total: u64, seed: u64) -> Pipe {
        Pipe {
            per_byte: link.rate.map(|rate| 8e9 / rate as f64),
            path_mtu,
            hops: Vec::new(),
            chooser: Chooser::new(&link.drops, total, mtu),
            dice: Random(seed),
            link: link.clone(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            free_at: 0.0,
            last_delivery: Nanos::ZERO,
            waited: 0,
            tally: Tally::default(),
        }
    }

    /// Time between two full packets at this rate.
    pub(crate) fn full_packet(&self, mtu: u64) -> Option<Nanos> {
        self.per_byte.map(|ns| Nanos((ns * mtu as f64) as i64))
    }

    /// `now` and the result are counted from the first packet on the link.
    pub(crate) fn pass(&mut self, packet: &[u8], seen: Option<&Seen>, now: Nanos) -> (Fate, Place) {
        self.tally.packets += 1;
        self.tally.bytes += packet.len() as u64;
        let place = seen.map(|seen| self.chooser.count(seen)).unwrap_or_default();
        let fate = match self.loses(packet, seen, &place, now) {
            Some(reason) => Err(reason),
            None => self.queue(packet.len() as u64, now),
        };
        let fate = match fate {
            Err(reason) => {
                *self.tally.lost.entry(reason).or_default() += 1;
                Fate::Lost(reason)
            }
            Ok(departs) => self.deliver(departs, &place),
        };
        (self.go_on(fate, packet, seen), place)
    }

    /// Lets a packet pass the other nodes, in the time at which it will reach each.
    fn go_on(&mut self, mut fate: Fate, packet: &[u8], seen: Option<&Seen>) -> Fate {
        for hop in &mut self.hops {
            let (at, twice) = match fate {
                Fate::Lost(_) => return fate,
                Fate::Arrives(at) => (at, false),
                Fate::ArrivesTwice(at) => (at, true),
            };
            fate = match hop.pass(packet, seen, at).0 {
                Fate::Arrives(at) if twice => Fate::ArrivesTwice(at),
                other => other,
            };
            if let Fate::Lost(reason) = fate {
                // Of the whole direction, wherever it was lost.
                *self.tally.lost.entry(reason).or_default() += 1;
            }
        }
        fate
    }

    /// The size that a lost packet's sender is to be told.
    pub(crate) fn told_mtu(&self) -> Option<u64> {
        self.path_mtu.into_iter().chain(self.hops.iter().filter_map(Pipe::told_mtu)).min()
    }

    /// Every queue of this direction together.
    pub(crate) fn tally(self) -> Tally {
        let mut tally = self.tally;
        for hop in self.hops.into_iter().map(Pipe::tally) {
            tally.queue_max_bytes = tally.queue_max_bytes.max(hop.queue_max_bytes);
            tally.queue_max_ns = tally.queue_max_ns.max(hop.queue_max_ns);
            tally.queue_mean_ns += hop.queue_mean_ns;
            tally.held += hop.held;
            tally.duplicated += hop.duplicated;
        }
        tally
    }

    fn loses(&mut self, packet: &[u8], seen: Option<&Seen>, place: &Place, now: Nanos) -> Option<Reason> {
        let data = seen.is_some_and(|s| s.payload > 0);
        let subject = match self.link.loss_of {
            LossOf::All => true,
            LossOf::Data => data,
            LossOf::Acks => seen.is_some_and(|s| s.payload == 0 && !s.syn && !s.fin),
        };
        if place.chosen {
            Some(Reason::Chosen)
        } else if [self.link.black_hole_over, self.path_mtu]
            .iter()
            .flatten()
            .any(|&n| packet.len() as u64 > n)
        {
            Some(Reason::TooLarge)
        } else if self.link.cuts.iter().any(|&(from, length)| from <= now && now < from + length) {
            Some(Reason::Cut)
        } else if subject && self.dice.hits(self.link.loss_ppm) {
            Some(Reason::Random)
        } else {
            None
        }
    }

    /// The drop-tail queue in front of the rate: when the packet has been sent.
    fn queue(&mut self, bytes: u64, now: Nanos) -> Result<Nanos, Reason> {
        let Some(per_byte) = self.per_byte else { return Ok(now) };
        while self.waiting.front().is_some_and(|&(sent, _)| sent <= now) {
            let (_, bytes) = self.waiting.pop_front().unwrap_or_default();
            self.waiting_bytes -= bytes;
        }
        if self.link.queue_bytes.is_some_and(|limit| self.waiting_bytes + bytes > limit)
            || self.link.queue_packets.is_some_and(|limit| self.waiting.len() >= limit)
        {
            return Err(Reason::Queue);
        }
        let starts = self.free_at.max(now.0 as f64);
        // Kept as a float, so that the rate is exact over many packets.
        self.free_at = starts + (bytes + self.link.overhead) as f64 * per_byte;
        let departs = Nanos(self.free_at as i64);
        self.waiting.push_back((departs, bytes));
        self.waiting_bytes += bytes;
        let wait = starts as i64 - now.0;
        self.waited += i128::from(wait);
        self.tally.queue_max_bytes = self.tally.queue_max_bytes.max(self.waiting_bytes);
        self.tally.queue_max_ns = self.tally.queue_max_ns.max(wait);
        self.tally.queue_mean_ns = (self.waited / i128::from(self.tally.packets)) as i64;
        Ok(departs)
    }

    fn deliver(&mut self, departs: Nanos, place: &Place) -> Fate {
        let mut at = departs + self.link.delay;
        at += Nanos(self.dice.below(self.link.jitter.0.max(0) as u64) as i64);
        for &(from, length) in &self.link.pauses {
            if from <= at && at < from + length {
                at = from + length;
            }
        }
        at = at.max(self.last_delivery);
        if let Some(reorder) = &self.link.reorder {
            let n = u64::from(place.nth_data);
            if n > 0 && (reorder.nth.contains(&n) || (reorder.every > 0 && n.is_multiple_of(reorder.every))) {
                self.tally.held += 1;
                // Not remembered as the last delivery: the next ones overtake it.
                return Fate::Arrives(at + reorder.hold);
            }
        }
        self.last_delivery = at;
        if self.dice.hits(self.link.duplicate_ppm) {
            self.tally.duplicated += 1;
            return Fate::ArrivesTwice(at);
        }
        Fate::Arrives(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe(text: &str) -> Pipe {
        let text = format!("title = 't'\nworkload.request = [1]\n[link]\n{text}");
        Pipe::both(&Scenario::parse(&text, &[]).unwrap()).client
    }

    fn arrival(pipe: &mut Pipe, bytes: usize, now: Nanos) -> Option<Nanos> {
        match pipe.pass(&vec![0; bytes], None, now).0 {
            Fate::Arrives(at) => Some(at),
            _ => None,
        }
    }

    #[test]
    fn rate_and_queue_are_exact() {
        // 1500 bytes at 12 Mbit/s take 1 ms; room for three of them.
        let mut p = pipe("rtt_ms = 20\nrate_mbit = 12\nqueue_bytes = 4500");
        let at = |ms| Some(Nanos::millis(ms));
        let mut next = |now| arrival(&mut p, 1500, Nanos::millis(now));
        assert_eq!([next(0), next(0), next(0), next(0)], [at(11), at(12), at(13), None]);
        assert_eq!([next(1), next(1)], [at(14), None]);
        assert_eq!(next(100), at(111));
        assert_eq!(p.tally.lost[&Reason::Queue], 2);
        assert_eq!(p.tally.queue_max_bytes, 4500);
    }

    #[test]
    fn losses_where_asked() {
        let mut p = pipe("[link.up]\nloss = 0.05");
        let lost = (0..100_000).filter(|_| arrival(&mut p, 100, Nanos::ZERO).is_none()).count();
        // Four standard deviations of a binomial.
        assert!((4_724..=5_276).contains(&lost), "{lost}");
        let mut p = pipe("[link.up]\nblack_hole_over = 1300");
        assert_eq!(arrival(&mut p, 1301, Nanos::ZERO), None);
        assert!(arrival(&mut p, 1300, Nanos::ZERO).is_some());
    }

    #[test]
    fn nodes_in_a_chain() {
        // 12 Mbit/s here, 6 Mbit/s and room for two there: packets leave the first every 1 ms, the second every 2.
        let text =
            "rtt_ms = 20\nrate_mbit = 12\n[[link.up.hops]]\ndelay_ms = 5\nrate_mbit = 6\nqueue_bytes = 3000";
        let mut p = pipe(text);
        let got: Vec<_> = (0..5).map(|_| arrival(&mut p, 1500, Nanos::ZERO)).collect();
        let ms = |n| Some(Nanos::millis(n));
        // The nth reaches the second node at 10 + n; the fourth finds two there.
        assert_eq!(got, [ms(18), ms(20), ms(22), None, ms(24)]);
        assert_eq!(p.tally.lost[&Reason::Queue], 1);
        assert_eq!(
            pipe("[link.up]\npath_mtu = 1400\n[[link.up.hops]]\npath_mtu = 1300").told_mtu(),
            Some(1300)
        );
    }

    #[test]
    fn pauses_and_cuts() {
        let text = "rtt_ms = 20\n[link.up]\npauses = [{ at_ms = 100, for_ms = 500 }]\ncuts = [{ at_ms = 700, for_ms = 10 }]";
        let mut p = pipe(text);
        let got: Vec<_> = [80, 90, 595, 700, 710].map(|ms| arrival(&mut p, 1, Nanos::millis(ms))).into();
        let want = [Some(90), Some(600), Some(605), None, Some(720)].map(|ms| ms.map(Nanos::millis));
        assert_eq!(got, want);
    }
}
