//! What is said: connections that open, ask, answer, lose something and close.

use crate::packets::{ACK, FIN, MILLISECOND, Output, PSH, SECOND, SYN, Segment};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

const MSS: u32 = 1448;
const START: u64 = 1_700_000_000 * SECOND;

/// A small generator of random numbers (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// A connection that makes up its next exchange whenever it has nothing left to send.
struct Flow {
    client: (u32, u16),
    server: (u32, u16),
    rtt: u64,
    time: u64,
    up: u32,
    down: u32,
    queue: VecDeque<Segment>,
    chance: Chance,
}

impl Flow {
    fn new(n: u64, time: u64) -> Flow {
        let mut chance = Chance(n.wrapping_mul(0x1234_5677) ^ 42);
        let rtt = MILLISECOND * (1 + chance.below(80)) + chance.below(MILLISECOND);
        let client = (0x0A00_0000 | (n / 28_000 + 1) as u32, 32_768 + (n % 28_000) as u16);
        let server = (0xC633_6400 | ((n % 50) as u32 + 1), 443);
        let (up, down) = (chance.next() as u32, chance.next() as u32);
        Flow { client, server, rtt, time, up, down, queue: VecDeque::new(), chance }
    }

    fn send(&mut self, up: bool, flags: u8, length: u32) {
        let (seq, ack) = if up { (self.up, self.down) } else { (self.down, self.up) };
        self.queue.push_back(Segment { time: self.time, up, flags, seq, ack, length, sack: None });
        let moved = length + u32::from(flags & (SYN | FIN) != 0);
        if up {
            self.up = self.up.wrapping_add(moved);
        } else {
            self.down = self.down.wrapping_add(moved);
        }
    }

    fn open(&mut self) {
        let down = std::mem::take(&mut self.down);
        self.send(true, SYN, 0);
        self.down = down;
        self.time += self.rtt;
        self.send(false, SYN | ACK, 0);
        self.time += 20_000;
        self.send(true, ACK, 0);
    }

    fn close(&mut self) {
        self.time += 50_000;
        self.send(true, FIN | ACK, 0);
        self.time += self.rtt;
        self.send(false, FIN | ACK, 0);
        self.time += 15_000;
        self.send(true, ACK, 0);
    }

    /// A request, the server's work, a response of up to `most` segments in flights of ten and twenty.
    fn exchange(&mut self, most: u64) {
        let request = 100 + self.chance.below(1_200) as u32;
        self.send(true, PSH | ACK, request);
        self.time += self.rtt + self.chance.below(8 * MILLISECOND);
        let segments = 1 + self.chance.below(most) as u32;
        let lost = if segments > 5 && self.chance.below(60) == 0 { segments / 2 } else { u32::MAX };
        let mut hole = None;
        for n in 0..segments {
            if n == 10 || n == 30 {
                self.time += self.rtt - 20_000 * 10.min(self.rtt / 40_000);
            }
            self.time += 12_000 + self.chance.below(3_000);
            let last = n + 1 == segments;
            let length = if last { 200 + self.chance.below(1_000) as u32 } else { MSS };
            if n == lost {
                hole = Some(self.down);
                self.down = self.down.wrapping_add(length);
                continue;
            }
            self.send(false, if last { PSH | ACK } else { ACK }, length);
            if let Some(at) = hole {
                self.time += 2_000;
                let sack = Some((at.wrapping_add(MSS), self.down));
                self.queue.push_back(Segment {
                    time: self.time,
                    up: true,
                    flags: ACK,
                    seq: self.up,
                    ack: at,
                    length: 0,
                    sack,
                });
            } else if n % 2 == 1 || last {
                self.time += 2_000;
                self.send(true, ACK, 0);
            }
        }
        if let Some(at) = hole {
            self.time += self.rtt;
            self.queue.push_back(Segment {
                time: self.time,
                up: false,
                flags: ACK,
                seq: at,
                ack: self.up,
                length: MSS,
                sack: None,
            });
            self.time += 3_000;
            self.send(true, ACK, 0);
        }
    }

    fn pause(&mut self, most: u64) {
        self.time += self.chance.below(most);
    }
}

/// Writes the segments of all flows in order of time; `refill` adds to a flow that has run dry or ends it.
fn merge(
    mut flows: Vec<Flow>,
    mut out: Output,
    limit: u64,
    mut refill: impl FnMut(&mut Flow, usize) -> bool,
) -> io::Result<()> {
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (n, flow) in flows.iter().enumerate() {
        heap.push(Reverse((flow.time, n)));
    }
    while let Some(Reverse((_, n))) = heap.pop() {
        let flow = &mut flows[n];
        if flow.queue.is_empty() && !refill(flow, n) {
            continue;
        }
        let Some(segment) = flow.queue.pop_front() else { continue };
        out.put(flow.client, flow.server, &segment)?;
        if out.packets >= limit {
            break;
        }
        let next = flow.queue.front().map_or(flow.time, |s| s.time);
        heap.push(Reverse((next, n)));
    }
    out.done()
}

/// `connections` side by side, each with one exchange after the other.
pub(crate) fn flows(packets: u64, connections: usize, path: &str) -> io::Result<()> {
    let all = (0..connections as u64).map(|n| Flow::new(n, START + n * 50_000)).collect();
    let mut opened = vec![false; connections];
    merge(all, Output::new(path)?, packets, |flow, n| {
        if std::mem::replace(&mut opened[n], true) {
            flow.pause(400 * MILLISECOND);
            flow.exchange(16);
        } else {
            flow.open();
        }
        true
    })
}

/// Connections of one request each.
pub(crate) fn short(connections: u64, path: &str) -> io::Result<()> {
    // a slot is a client that opens one connection after the other
    let slots = 1_000.min(connections);
    let mut next = slots;
    let mut current: Vec<bool> = vec![false; slots as usize];
    let all = (0..slots).map(|n| Flow::new(n, START + n * 50_000)).collect();
    merge(all, Output::new(path)?, u64::MAX, |flow, n| {
        if std::mem::replace(&mut current[n], true) {
            if next >= connections {
                return false;
            }
            *flow = Flow::new(next, flow.time + 100_000);
            next += 1;
        }
        flow.open();
        flow.exchange(3);
        flow.close();
        true
    })
}

/// Connections of four exchanges that stay open: a pool that keeps what it has.
pub(crate) fn idle(connections: u64, path: &str) -> io::Result<()> {
    let slots = 1_000.min(connections);
    let mut next = slots;
    let mut parts = vec![0; slots as usize];
    let all = (0..slots).map(|n| Flow::new(n, START + n * 50_000)).collect();
    merge(all, Output::new(path)?, u64::MAX, |flow, n| {
        match parts[n] {
            0 => flow.open(),
            1..=4 => {
                flow.pause(20 * MILLISECOND);
                flow.exchange(16);
            }
            _ if next >= connections => return false,
            _ => {
                *flow = Flow::new(next, flow.time + 100_000);
                flow.open();
                next += 1;
                parts[n] = 0;
            }
        }
        parts[n] += 1;
        true
    })
}

/// One transfer.
pub(crate) fn elephant(packets: u64, path: &str) -> io::Result<()> {
    let mut out = Output::new(path)?;
    let mut flow = Flow::new(7, START);
    flow.rtt = 20 * MILLISECOND;
    flow.open();
    flow.send(true, PSH | ACK, 300);
    flow.time += flow.rtt;
    // 1 Gbit/s: a segment every 12 us; in flight 1,600; an ACK passes for every second segment
    let mut count = 0u64;
    while flow.queue.len() as u64 + out.packets < packets {
        flow.time += 12_000;
        if count > 4_000 && count.is_multiple_of(150_000) {
            let at = flow.down;
            flow.down = flow.down.wrapping_add(MSS);
            for _ in 0..1_600 {
                flow.time += 12_000;
                flow.send(false, ACK, MSS);
                let sack = Some((at.wrapping_add(MSS), flow.down));
                let time = flow.time + 1_000;
                flow.queue.push_back(Segment {
                    time,
                    up: true,
                    flags: ACK,
                    seq: flow.up,
                    ack: at,
                    length: 0,
                    sack,
                });
            }
            flow.time += 5_000;
            let (time, ack) = (flow.time, flow.up);
            flow.queue.push_back(Segment {
                time,
                up: false,
                flags: ACK,
                seq: at,
                ack,
                length: MSS,
                sack: None,
            });
            flow.time += 3_000;
            flow.send(true, ACK, 0);
        }
        flow.send(false, ACK, MSS);
        count += 1;
        if count.is_multiple_of(2) {
            flow.time += 1_000;
            flow.send(true, ACK, 0);
        }
        while let Some(segment) = flow.queue.pop_front() {
            out.put(flow.client, flow.server, &segment)?;
        }
    }
    out.done()
}

/// `connections` side by side that say one byte and hear one, again and again: hardly ever are two packets in
/// a row of the same.
pub(crate) fn echo(exchanges: u64, connections: usize, path: &str) -> io::Result<()> {
    let all = (0..connections as u64).map(|n| Flow::new(n, START + n * 3_000)).collect();
    let mut said = vec![0; connections];
    merge(all, Output::new(path)?, u64::MAX, |flow, n| {
        if said[n] > exchanges {
            return false;
        }
        match said[n] {
            0 => flow.open(),
            n if n == exchanges => flow.close(),
            _ => {
                flow.pause(20 * MILLISECOND);
                flow.send(true, PSH | ACK, 1);
                flow.time += flow.rtt;
                flow.send(false, PSH | ACK, 1);
                flow.time += 40_000;
                flow.send(true, ACK, 0);
            }
        }
        said[n] += 1;
        true
    })
}

/// SYNs from as many addresses to the ports of one, ten microseconds apart.
pub(crate) fn scan(syns: u64, path: &str) -> io::Result<()> {
    let mut out = Output::new(path)?;
    let mut chance = Chance(3);
    for n in 0..syns {
        let client = (0x1400_0000 + n as u32, 1_024 + (chance.next() as u16 & 0x7fff));
        let server = (0xC633_6401, 80);
        let seq = chance.next() as u32;
        let time = START + n * 10_000;
        out.put(client, server, &Segment { time, up: true, flags: SYN, seq, ack: 0, length: 0, sack: None })?;
    }
    out.done()
}
