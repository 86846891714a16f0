//! The far end of the ways out: it gives packets back after the time that the link takes, and answers for a
//! world that is not there.

use super::host::LINK_HEADER;
use super::report::{Lost, Outside};
use super::tap::Tap;
use crate::clock::{self, duration};
use crate::link::{Fate, Lateness, Pipe, Reason, unreachable};
use crate::scenario::Scenario;
use crate::sys::{self, process, ring::Ring};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tcpwhy_base::{End, Ends, Nanos};

/// Spun for, before a delivery (see `link/forwarder.rs`).
const SPIN: Nanos = Nanos::micros(60);
/// A gap above this is no work of the thread's own.
const STALL: Nanos = Nanos::millis(1);
const IDLE: Duration = Duration::from_millis(20);
const BATCH: usize = 8;
/// Connections whose client is known; with more, all are learnt anew.
const FLOWS: usize = 1 << 20;
/// Destinations that are named.
const NAMED: usize = 64;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// What joins the hosts.
pub(crate) struct Link {
    pipes: Ends<Pipe>,
    spin: Nanos,
    tap: Tap,
    /// Ends of connections that sent a SYN, where both ends share a host: address and port of both.
    clients: HashSet<[u8; 12]>,
    due: BinaryHeap<Reverse<Due>>,
    order: u64,
    late: Histogram,
    start: Option<Nanos>,
    last_delivery: Nanos,
    lost: Lost,
}

/// A frame on its way.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanos,
    /// Keeps the order of those due at once; no two have the same.
    order: u64,
    to: usize,
    down: bool,
    frame: Vec<u8>,
}

/// Runs in a thread of its own.
pub(crate) struct Wire {
    /// One: loopback comes back to where it left; two: client and server.
    ports: Vec<Ring>,
    link: Option<Link>,
    outside: BTreeMap<Outside, u64>,
}

/// What the wire saw.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) lateness: Lateness,
    pub(crate) real_time: bool,
    pub(crate) outside: Vec<(Outside, u64)>,
    pub(crate) lost: Lost,
    pub(crate) missed: u64,
}

impl Link {
    pub(crate) fn new(scenario: &Scenario, tap: Tap) -> Link {
        let pipes = Pipe::both(scenario);
        let gap = pipes.iter().filter_map(|p| p.full_packet(scenario.shared.mtu)).min();
        Link {
            // Where packets follow each other faster than a spin is long, the thread would never sleep.
            spin: gap.map_or(SPIN, |gap| SPIN.min(gap.part(4))),
            pipes,
            tap,
            clients: HashSet::new(),
            due: BinaryHeap::new(),
            order: 0,
            late: Histogram::default(),
            start: None,
            last_delivery: Nanos::ZERO,
            lost: Lost::default(),
        }
    }

    /// Who of a connection on one host has sent this.
    fn sender(&mut self, packet: &[u8]) -> End {
        let Some((ends, flags)) = tcp_ends(packet) else { return End::Client };
        let [a, b, c, d, e, f, g, h, i, j, k, l] = ends;
        let peer = [e, f, g, h, a, b, c, d, k, l, i, j];
        if flags & 0x12 == 2 {
            if self.clients.len() >= FLOWS {
                self.clients.clear();
            }
            self.clients.remove(&peer);
            self.clients.insert(ends);
        }
        if self.clients.contains(&peer) { End::Server } else { End::Client }
    }

    fn accept(&mut self, frame: &[u8], from: End, to: usize) {
        let now = clock::now();
        let start = *self.start.get_or_insert(now);
        let packet = frame.get(LINK_HEADER..).unwrap_or_default();
        if from == End::Client {
            self.tap.take(now, packet);
        }
        let mut send = |at: Nanos| {
            self.order += 1;
            let down = from == End::Server;
            self.due.push(Reverse(Due {
                at: start + at,
                order: self.order,
                to,
                down,
                frame: frame.to_vec(),
            }));
        };
        match self.pipes[from].pass(packet, None, now - start).0 {
            Fate::Lost(Reason::Queue) => self.lost.queue += 1,
            Fate::Lost(_) => self.lost.chance += 1,
            Fate::Arrives(at) => send(at),
            Fate::ArrivesTwice(at) => {
                send(at);
                send(at);
            }
        }
    }

    /// How long until the next delivery, less what is spun for.
    fn until_next(&self) -> Option<Nanos> {
        let Reverse(next) = self.due.peek()?;
        Some(next.at - clock::now() - self.spin)
    }

    /// Puts what is due into the devices.
    fn deliver(&mut self, ports: &[Ring]) {
        loop {
            let now = clock::now();
            if self.due.peek().is_none_or(|Reverse(next)| next.at > now) {
                return;
            }
            let Some(Reverse(due)) = self.due.pop() else { return };
            self.late.count(now - due.at);
            self.last_delivery = now;
            if due.down {
                // First: the host answers within the write.
                self.tap.take(now, due.frame.get(LINK_HEADER..).unwrap_or_default());
            }
            if ports.get(due.to).is_some_and(|port| port.send(&due.frame).is_err()) {
                self.lost.refused += 1;
            }
        }
    }
}

impl Wire {
    pub(crate) fn new(ports: Vec<Ring>, link: Option<Link>) -> Wire {
        Wire { ports, link, outside: BTreeMap::new() }
    }

    pub(crate) fn run(mut self, stop: &AtomicBool) -> io::Result<Passed> {
        let real_time = self.link.is_some() && sys::real_time(10).is_ok();
        sys::precise_timers()?;
        let (mut last, mut waited, mut stalled) = (clock::now(), Nanos::ZERO, Nanos::ZERO);
        while !stop.load(Relaxed) {
            let now = clock::now();
            let gap = now - last - waited;
            // Before the first packet nothing can be late.
            if gap > STALL && self.link.as_ref().is_some_and(|l| l.start.is_some()) {
                stalled += gap;
            }
            (last, waited) = (now, Nanos::ZERO);
            if let Some(link) = &mut self.link {
                link.deliver(&self.ports);
            }
            let taken: Vec<bool> = (0..self.ports.len()).map(|port| self.take(port)).collect();
            if taken.contains(&true) {
                continue;
            }
            // Asked for only now: what was just taken may be due first.
            let wait = match self.link.as_ref().and_then(Link::until_next) {
                Some(left) if left <= Nanos::ZERO => continue,
                Some(left) => duration(left).min(IDLE),
                None => IDLE,
            };
            let ports: Vec<_> = self.ports.iter().map(Ring::as_fd).collect();
            process::wait(&ports, None, Some(wait))?;
            // What is beyond the time asked for is lateness of this thread.
            waited = Nanos(i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX));
        }
        let missed: u64 = self.ports.iter().map(|port| port.drops().unwrap_or(0)).sum();
        let outside = self.outside.into_iter().collect();
        let Some(link) = self.link else {
            return Ok(Passed { outside, ..Passed::default() });
        };
        let span = link.start.map_or(Nanos::ZERO, |start| link.last_delivery - start);
        let lateness = Lateness { stalled_ns: stalled.0, span_ns: span.0.max(0), ..link.late.lateness() };
        let lost = Lost { refused: link.lost.refused + missed, ..link.lost };
        Ok(Passed { lateness, real_time, outside, lost, missed: link.tap.finish() })
    }

    /// Takes packets from one port; says whether there may be more.
    fn take(&mut self, at: usize) -> bool {
        let Wire { ports, link, outside } = self;
        let pair = ports.len() == 2;
        let from_pair = if at == 0 { End::Client } else { End::Server };
        let mut answers: Vec<Vec<u8>> = Vec::new();
        let Some(port) = ports.get_mut(at) else { return false };
        for _ in 0..BATCH {
            let taken = port.next(|captured| {
                let packet = captured.data.get(LINK_HEADER..).unwrap_or_default();
                let Some(&[a, b, c, d]) = packet.get(16..20).filter(|_| packet[0] >> 4 == 4) else { return };
                match link {
                    Some(link) if a == 127 || (pair && [a, b, c] == [10, 77, 0]) => {
                        let from = if pair { from_pair } else { link.sender(packet) };
                        link.accept(captured.data, from, if pair { 1 - at } else { at });
                    }
                    // To many, or to the whole net: nobody waits for an answer.
                    _ if a >= 224 => {}
                    _ => answers.extend(refuse(outside, captured.data, [a, b, c, d])),
                }
            });
            if taken.is_none() {
                answers.iter().for_each(|frame| {
                    let _ = port.send(frame);
                });
                return false;
            }
        }
        answers.iter().for_each(|frame| {
            let _ = port.send(frame);
        });
        true
    }
}

/// Writes down where a packet was to go; the frame that says that nothing is there.
fn refuse(outside: &mut BTreeMap<Outside, u64>, frame: &[u8], to: [u8; 4]) -> Option<Vec<u8>> {
    let (link_header, packet) = frame.split_at_checked(LINK_HEADER)?;
    let protocol = *packet.get(9)?;
    let header = usize::from(*packet.first()? & 15) * 4;
    let port = match packet.get(header + 2..header + 4) {
        Some(&[high, low]) if protocol == TCP || protocol == UDP => Some(u16::from_be_bytes([high, low])),
        _ => None,
    };
    let there = Outside { address: to.into(), port, udp: protocol == UDP };
    if outside.len() < NAMED || outside.contains_key(&there) {
        *outside.entry(there).or_default() += 1;
    }
    // A connection takes "no such network" for its answer, as without a route; a UDP socket only "nobody at this port"
    // (`icmp_err_convert`).
    let answer = unreachable(packet, if protocol == UDP { 3 } else { 0 })?;
    Some([link_header, &answer].concat())
}

/// Addresses and ports of a TCP packet over IPv4, and its flags.
fn tcp_ends(packet: &[u8]) -> Option<([u8; 12], u8)> {
    let header = usize::from(*packet.first()? & 15) * 4;
    if *packet.get(9)? != TCP {
        return None;
    }
    let mut ends = [0; 12];
    ends[..8].copy_from_slice(packet.get(12..20)?);
    ends[8..].copy_from_slice(packet.get(header..header + 4)?);
    Some((ends, *packet.get(header + 13)?))
}

/// How late deliveries were, in bounded memory: microseconds up to one millisecond, then tenths of milliseconds.
struct Histogram {
    fine: [u64; 1000],
    coarse: [u64; 1000],
    count: u64,
    max: Nanos,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { fine: [0; 1000], coarse: [0; 1000], count: 0, max: Nanos::ZERO }
    }
}

impl Histogram {
    fn count(&mut self, late: Nanos) {
        let us = usize::try_from(late.0 / 1000).unwrap_or(0);
        match self.fine.get_mut(us) {
            Some(bucket) => *bucket += 1,
            None => self.coarse[(us / 100).min(999)] += 1,
        }
        (self.count, self.max) = (self.count + 1, self.max.max(late));
    }

    /// Percentiles are the upper edges of their buckets.
    fn lateness(&self) -> Lateness {
        let edges = (1..=1000).map(|us| us * 1_000).chain((1..=1000).map(|n| n * 100_000));
        let at = |share: f64| {
            let wanted = (self.count as f64 * share).ceil() as u64;
            let mut sum = 0;
            let found = self.fine.iter().chain(&self.coarse).zip(edges.clone()).find(|(n, _)| {
                sum += **n;
                sum >= wanted
            });
            found.map_or(0, |(_, edge)| edge).min(self.max.0)
        };
        let (p50_ns, p99_ns) = if self.count == 0 { (0, 0) } else { (at(0.5), at(0.99)) };
        Lateness { count: self.count as usize, p50_ns, p99_ns, max_ns: self.max.0, ..Lateness::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_edges_of_buckets() {
        let mut late = Histogram::default();
        assert_eq!(late.lateness().p99_ns, 0);
        for us in 0..100 {
            late.count(Nanos::micros(us) + Nanos(500));
        }
        let found = late.lateness();
        assert_eq!((found.p50_ns, found.p99_ns, found.max_ns), (50_000, 99_000, 99_500));
        late.count(Nanos::secs(9));
        assert_eq!(late.lateness().max_ns, 9_000_000_000);
    }

    #[test]
    fn the_world_outside_is_named_once() {
        let mut frame = vec![0; LINK_HEADER + 40];
        frame[14] = 0x45;
        frame[14 + 9] = TCP;
        frame[14 + 22..14 + 24].copy_from_slice(&443u16.to_be_bytes());
        let mut outside = BTreeMap::new();
        for _ in 0..3 {
            let answer = refuse(&mut outside, &frame, [1, 2, 3, 4]).unwrap();
            // ICMP: no such network.
            assert_eq!((answer[14 + 9], answer[14 + 20], answer[14 + 21]), (1, 3, 0));
        }
        let there = Outside { address: [1, 2, 3, 4].into(), port: Some(443), udp: false };
        assert_eq!(outside.into_iter().collect::<Vec<_>>(), [(there, 3)]);
    }
}
