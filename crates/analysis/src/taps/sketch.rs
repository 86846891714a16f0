//! Which connections two captures have both seen. Of each capture only a bounded sketch is kept: the handshakes of its
//! connections, and the packets whose hash is smallest, which are the same packets in both.

use super::clock::{Both, Clock};
use crate::copies::SOON;
use hashbrown::HashMap;
use std::collections::BinaryHeap;
use tcpwhy_base::{Endpoint, Nanos, Segment, Seq};

/// Connections of which the handshake is kept; of more than these only the sampled packets tell.
const MOST_CONNECTIONS: usize = 1 << 18;
/// Packets that are kept.
const MOST_PACKETS: usize = 1 << 14;
/// So many equal packets, with equal addresses, make a connection the same one where no handshake was seen.
const SURE: u32 = 3;
/// Taps that are nearer than this are at one place: one of them tells nothing that the other does not.
const APART: Nanos = Nanos::micros(20);

/// Both ends, the lower one first.
type Tuple = (Endpoint, Endpoint);

fn tuple(a: Endpoint, b: Endpoint) -> Tuple {
    if a <= b { (a, b) } else { (b, a) }
}

/// The first numbers of both directions.
type Numbers = (Seq, Seq);

/// A handshake as it passed.
#[derive(Clone, Copy, Debug)]
struct Opened {
    client: Endpoint,
    server: Endpoint,
    numbers: Option<Numbers>,
    syn: (Seq, Nanos),
    syn_ack: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    time: Nanos,
    src: Endpoint,
    dst: Endpoint,
    /// Two such packets passed: it cannot be told which is which.
    twice: bool,
}

/// What is kept of a capture.
#[derive(Debug, Default)]
pub struct Sketch {
    opened: HashMap<Tuple, Opened>,
    samples: HashMap<u64, Sample>,
    /// Their hashes, the largest first.
    hashes: BinaryHeap<u64>,
    /// Hashes from here on are not kept any more.
    full: Option<u64>,
}

impl Sketch {
    /// Takes one segment.
    pub fn take(&mut self, segment: &Segment) {
        if segment.flags.syn() {
            self.take_syn(segment);
        }
        if segment.flags.ack() || segment.flags.syn() {
            self.sample(segment);
        }
    }

    fn take_syn(&mut self, segment: &Segment) {
        let key = tuple(segment.src, segment.dst);
        if segment.flags.ack() {
            let Some(opened) = self.opened.get_mut(&key) else { return };
            if opened.client == segment.dst && opened.numbers.is_none() && segment.ack == opened.syn.0 + 1 {
                opened.numbers = Some((opened.syn.0, segment.seq));
                opened.syn_ack = segment.time;
            }
        } else if self.opened.len() < MOST_CONNECTIONS {
            self.opened.entry(key).or_insert(Opened {
                client: segment.src,
                server: segment.dst,
                numbers: None,
                syn: (segment.seq, segment.time),
                syn_ack: segment.time,
            });
        }
    }

    fn sample(&mut self, segment: &Segment) {
        let hash = hash(segment);
        if self.full.is_some_and(|full| hash >= full) {
            return;
        }
        if let Some(known) = self.samples.get_mut(&hash) {
            // A copy of the same passing (rule 29), as of a mirror port: the first one counts.
            let apart = (segment.time - known.time).0.unsigned_abs();
            known.twice |= apart > SOON.0.unsigned_abs();
            known.time = known.time.min(segment.time);
            return;
        }
        let Segment { time, src, dst, .. } = *segment;
        self.samples.insert(hash, Sample { time, src, dst, twice: false });
        self.hashes.push(hash);
        if self.hashes.len() > MOST_PACKETS
            && let Some(largest) = self.hashes.pop()
        {
            self.samples.remove(&largest);
            self.full = Some(largest);
        }
    }
}

/// Of what a packet keeps on its way, addresses left out: those may be translated.
fn hash(segment: &Segment) -> u64 {
    let (stamp, echo) = segment.options.timestamps.unwrap_or((0, 0));
    let words = [
        u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0),
        u64::from(segment.len) << 32 | u64::from(segment.flags.0),
        u64::from(stamp) << 32 | u64::from(echo),
    ];
    // The finaliser of splitmix64 (Steele, Lea, Flood 2014) over each word.
    words.into_iter().fold(0x9E37_79B9_7F4A_7C15, |h, w| {
        let mut z = (h ^ w).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    })
}

/// What a connection of the second capture is in the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paired {
    /// Client and server as the first capture has them, each with the one of the second.
    pub ends: [(Endpoint, Endpoint); 2],
    /// The first tap is the one beside the client.
    pub first_is_client: bool,
}

/// Two captures of the same connections.
#[derive(Debug)]
pub struct Pairing {
    /// How the clock of the second goes.
    pub clock: Clock,
    /// By the ends in the second capture, the lower one first.
    connections: HashMap<Tuple, Paired>,
    /// The ends in the first capture.
    firsts: HashMap<Tuple, bool>,
    /// Connections whose addresses are others in the second capture.
    pub translated: usize,
    /// Connections with a handshake in one of the captures alone.
    pub alone: [usize; 2],
}

impl Pairing {
    /// How many connections both have seen.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Of a segment of the first capture: whether its connection is in the second as well, and the first tap
    /// is beside its client.
    pub fn of_first(&self, segment: &Segment) -> Option<bool> {
        self.firsts.get(&tuple(segment.src, segment.dst)).copied()
    }

    /// The connections of which the first tap is beside the client.
    pub fn first_is_client(&self) -> usize {
        self.connections.values().filter(|p| p.first_is_client).count()
    }

    /// Of a segment of the second capture: the same, with its addresses and its time as the first has them.
    pub fn of_second(&self, segment: &mut Segment) -> Option<bool> {
        let paired = self.connections.get(&tuple(segment.src, segment.dst))?;
        let of = |end: Endpoint| paired.ends.iter().find(|e| e.1 == end).map_or(end, |e| e.0);
        (segment.src, segment.dst) = (of(segment.src), of(segment.dst));
        Some(paired.first_is_client)
    }
}

/// Why two captures are not two taps on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpaired {
    /// No connection is surely in both.
    Strangers,
    /// They were made at one place.
    OnePlace,
    /// No clock fits: packets would have arrived before they left.
    Clocks,
}

/// Finds the connections that both captures have seen, and the clock of the second.
pub fn pair(first: &Sketch, second: &Sketch) -> Result<Pairing, Unpaired> {
    let both: Vec<(Sample, Sample)> = first
        .samples
        .iter()
        .filter_map(|(hash, a)| Some((*a, *second.samples.get(hash)?)))
        .filter(|(a, b)| !a.twice && !b.twice)
        .collect();
    let mut connections = by_handshake(first, second);
    by_packets(&both, first, second, &mut connections);
    let opened = !connections.is_empty();
    if !opened {
        // None was answered, or none but by a reset: their SYNs are the same.
        connections = unanswered(first, second, |b, a| b > a);
    }
    if connections.is_empty() {
        return Err(Unpaired::Strangers);
    }
    let passed = passed(&both, &connections);
    let apart = passed.iter().map(|b| (b.times.1 - b.times.0).0);
    let (least, most) = (apart.clone().min().unwrap_or(0), apart.max().unwrap_or(0));
    let one_way = passed.iter().all(|b| b.onward);
    if Nanos(most.saturating_sub(least)) < APART && !(one_way && least >= APART.0) {
        return Err(Unpaired::OnePlace);
    }
    let clock = if one_way { Clock::one_way(&passed) } else { Clock::fit(&passed) };
    let clock = clock.ok_or(Unpaired::Clocks)?;
    if opened {
        connections.extend(unanswered(first, second, |b, a| clock.to_first(b) > a));
    }
    let firsts: HashMap<Tuple, bool> =
        connections.values().map(|p| (tuple(p.ends[0].0, p.ends[1].0), p.first_is_client)).collect();
    let translated = connections.values().filter(|p| p.ends.iter().any(|e| e.0 != e.1)).count();
    let made = |s: &Sketch, has: &dyn Fn(&Tuple) -> bool| {
        s.opened.iter().filter(|(k, o)| o.numbers.is_some() && !has(k)).count()
    };
    let alone = [made(first, &|k| firsts.contains_key(k)), made(second, &|k| connections.contains_key(k))];
    Ok(Pairing { clock, connections, firsts, translated, alone })
}

/// Connections with the same first numbers in both directions: 64 bits that no other has.
fn by_handshake(first: &Sketch, second: &Sketch) -> HashMap<Tuple, Paired> {
    let mut known: HashMap<Numbers, Option<&Opened>> = HashMap::new();
    for opened in first.opened.values() {
        if let Some(numbers) = opened.numbers {
            known.entry(numbers).and_modify(|k| *k = None).or_insert(Some(opened));
        }
    }
    let of = |b: &Opened| {
        let a = (*known.get(&b.numbers?)?)?;
        // The SYN reaches the second tap later than the first, or the SYN-ACK does.
        let there = b.syn.1 - a.syn.1;
        let back = b.syn_ack - a.syn_ack;
        let ends = [(a.client, b.client), (a.server, b.server)];
        Some((tuple(b.client, b.server), Paired { ends, first_is_client: there > back }))
    };
    second.opened.values().filter_map(of).collect()
}

/// Connections of which both have seen the SYN, and neither what it was answered with, if it was: the same
/// ends and the same first number. `later`: the second time is later than the first.
fn unanswered(
    first: &Sketch,
    second: &Sketch,
    later: impl Fn(Nanos, Nanos) -> bool,
) -> HashMap<Tuple, Paired> {
    let of = |(key, b): (&Tuple, &Opened)| {
        let a = first.opened.get(key)?;
        let same = (a.client, a.syn.0) == (b.client, b.syn.0);
        let first_is_client = later(b.syn.1, a.syn.1);
        let paired = Paired { ends: [(a.client, b.client), (a.server, b.server)], first_is_client };
        (same && a.numbers.is_none() && b.numbers.is_none()).then_some((*key, paired))
    };
    second.opened.iter().filter_map(of).collect()
}

/// Connections without a handshake in one of the captures: enough equal packets between equal addresses.
fn by_packets(
    both: &[(Sample, Sample)],
    first: &Sketch,
    second: &Sketch,
    connections: &mut HashMap<Tuple, Paired>,
) {
    let mut seen: HashMap<Tuple, Vec<(Sample, Sample)>> = HashMap::new();
    for &(a, b) in both.iter().filter(|(a, b)| a.src == b.src && a.dst == b.dst) {
        let key = tuple(a.src, a.dst);
        let whole = |s: &Sketch| s.opened.get(&key).is_some_and(|o| o.numbers.is_some());
        if !(connections.contains_key(&key) || whole(first) && whole(second)) {
            seen.entry(key).or_default().push((a, b));
        }
    }
    for (key, packets) in seen {
        // With equal ports it does not matter who is called the client.
        let (server, client) = if key.0.port <= key.1.port { key } else { (key.1, key.0) };
        let late = |to_server: bool| {
            let of = packets.iter().filter(|p| (p.0.dst == server) == to_server);
            let mut late: Vec<Nanos> = of.map(|(a, b)| b.time - a.time).collect();
            late.sort_unstable();
            late.get(late.len() / 2).copied()
        };
        if packets.len() as u32 >= SURE
            && let (Some(there), Some(back)) = (late(true), late(false))
        {
            let ends = [(client, client), (server, server)];
            connections.insert(key, Paired { ends, first_is_client: there > back });
        }
    }
}

/// The packets of these connections that passed both taps.
fn passed(both: &[(Sample, Sample)], connections: &HashMap<Tuple, Paired>) -> Vec<Both> {
    let of = |(a, b): &(Sample, Sample)| {
        let paired = connections.get(&tuple(b.src, b.dst))?;
        let to_server = b.src == paired.ends[0].1;
        Some(Both { times: (a.time, b.time), onward: to_server == paired.first_is_client })
    };
    both.iter().filter_map(of).collect()
}
