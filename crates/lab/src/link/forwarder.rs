//! The thread between the two TUN devices.
//!
//! It sleeps until shortly before the next delivery and then spins: on a kernel with 250 ticks a second and
//! virtual processors that need 50 us to wake, that was measured to deliver within 5 us of the deadline in the
//! median, where a timer alone was 30 to 100 us late.

use super::chooser::{Place, Seen};
use super::packet;
use super::pipe::{Fate, Pipe, Reason, Tally};
use crate::clock::{self, duration};
use crate::scenario::Scenario;
use crate::sys;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::time::Duration;
use tcpwhy_base::{End, Ends, Nanos, Segment};
use tcpwhy_capture::{Dissector, Frame, Verdict};

/// Bytes kept of each packet.
pub(crate) const SNAP: usize = 128;
/// Raw IP, as TUN devices carry it.
pub(crate) const LINK_TYPE: u32 = 101;
/// Spun for, before a delivery.
const SPIN: Nanos = Nanos::micros(60);
/// A gap above this is no work of the thread's own, which takes microseconds.
const STALL: Nanos = Nanos::millis(1);
/// How often the end is asked for when nothing happens.
const IDLE: Duration = Duration::from_millis(20);
/// Packets taken from one device before deliveries are looked at again.
const BATCH: usize = 8;

/// A packet as one host's device saw it.
#[derive(Clone, Debug)]
pub struct Record {
    /// When, since the Unix epoch.
    pub time: Nanos,
    /// Its whole length.
    pub len: u32,
    /// Its beginning.
    pub data: Box<[u8]>,
}

/// A packet that the link lost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lost {
    /// When it came to the link, since the Unix epoch.
    pub time_ns: i64,
    /// It came from the client.
    pub up: bool,
    /// Why.
    pub reason: Reason,
    /// The client's port.
    pub port: u16,
    /// First payload byte, counted from 0; none for SYN.
    pub relative: Option<u64>,
    /// Payload bytes.
    pub payload: u32,
    /// SYN or SYN-ACK.
    pub syn: bool,
}

impl Lost {
    /// When it came to the link.
    pub fn time(&self) -> Nanos {
        Nanos(self.time_ns)
    }

    /// Who had sent it.
    pub fn from(&self) -> End {
        if self.up { End::Client } else { End::Server }
    }
}

/// How late the link delivered, in nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Deliveries.
    pub count: usize,
    /// Median.
    pub p50_ns: i64,
    /// 99th percentile.
    pub p99_ns: i64,
    /// The worst.
    pub max_ns: i64,
    /// Time in which the link's thread did not run though it should have, in stretches of more than 1 ms.
    pub stalled_ns: i64,
    /// From the first packet to the last delivery.
    pub span_ns: i64,
}

/// What the link did.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    /// Captures at client and server.
    pub(crate) captures: Ends<Vec<Record>>,
    pub(crate) lost: Vec<Lost>,
    pub(crate) lateness: Lateness,
    /// By the sender.
    pub(crate) tallies: Ends<Tally>,
    pub(crate) real_time: bool,
    /// Packets that a host's kernel refused.
    pub(crate) refused: u64,
}

/// A packet on its way.
struct Due {
    at: Nanos,
    /// Keeps the order of those due at once.
    order: u64,
    to: End,
    packet: Vec<u8>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// Runs in a thread of its own until `stop`.
pub(crate) struct Forwarder {
    /// The devices of the hosts.
    tuns: Ends<File>,
    /// By the sender.
    pipes: Ends<Pipe>,
    dissector: Dissector,
    spin: Nanos,
    /// When the first packet came.
    start: Option<Nanos>,
    last_delivery: Nanos,
    due: BinaryHeap<Reverse<Due>>,
    spare: Vec<Vec<u8>>,
    order: u64,
    late: Vec<u32>,
    /// What a read fills: as much as a device gives at once. Kept, since to make the room of each packet anew
    /// clears it.
    room: Vec<u8>,
    /// Bytes before each packet that belong to the device.
    header: usize,
    done: Passage,
}

impl Forwarder {
    pub(crate) fn new(tuns: Ends<File>, pipes: Ends<Pipe>, scenario: &Scenario) -> Forwarder {
        // Where packets follow each other faster than a spin is long, the thread would never sleep.
        let gap = pipes.iter().filter_map(|p| p.full_packet(scenario.shared.mtu)).min();
        let spin = gap.map_or(SPIN, |gap| SPIN.min(gap.part(4)));
        Forwarder {
            tuns,
            pipes,
            dissector: Dissector::new(),
            spin,
            start: None,
            last_delivery: Nanos::ZERO,
            due: BinaryHeap::new(),
            spare: Vec::new(),
            order: 0,
            late: Vec::new(),
            room: if scenario.offload {
                vec![0; (64 << 10) + sys::OFFLOAD_HEADER]
            } else {
                vec![0; scenario.shared.mtu as usize + 4]
            },
            header: if scenario.offload { sys::OFFLOAD_HEADER } else { 0 },
            done: Passage::default(),
        }
    }

    /// Says `ready` when it has the priority that it can get.
    pub(crate) fn run(mut self, stop: &AtomicBool, ready: &Sender<()>) -> io::Result<Passage> {
        self.done.real_time = sys::real_time(10).is_ok();
        sys::precise_timers()?;
        let _ = ready.send(());
        let (mut last, mut waited, mut stalled) = (clock::now(), Nanos::ZERO, Nanos::ZERO);
        while !stop.load(Relaxed) {
            let now = clock::now();
            let gap = now - last - waited;
            // Before the first packet nothing can be late.
            if gap > STALL && self.start.is_some() {
                stalled += gap;
            }
            (last, waited) = (now, Nanos::ZERO);
            self.deliver()?;
            let busy = self.take(End::Client)? | self.take(End::Server)?;
            let wait = match self.due.peek() {
                _ if busy => continue,
                Some(Reverse(next)) => {
                    let left = next.at - clock::now() - self.spin;
                    if left <= Nanos::ZERO {
                        continue;
                    }
                    duration(left).min(IDLE)
                }
                None => IDLE,
            };
            waited = Nanos(i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX));
            sys::wait_readable([self.tuns.client.as_fd(), self.tuns.server.as_fd()], wait)?;
        }
        self.done.tallies = Ends::new(self.pipes.client.tally(), self.pipes.server.tally());
        let span = self.start.map_or(Nanos::ZERO, |start| self.last_delivery - start);
        self.done.lateness =
            Lateness { stalled_ns: stalled.0, span_ns: span.0.max(0), ..lateness(self.late) };
        Ok(self.done)
    }

    /// Puts what is due into the devices.
    fn deliver(&mut self) -> io::Result<()> {
        loop {
            let now = clock::now();
            if self.due.peek().is_none_or(|Reverse(due)| due.at > now) {
                return Ok(());
            }
            let Some(Reverse(due)) = self.due.pop() else { return Ok(()) };
            self.late.push(u32::try_from((now - due.at).0).unwrap_or(u32::MAX));
            self.last_delivery = now;
            // Recorded first: the host answers within the write.
            self.done.captures[due.to].push(record(now, due.packet.get(self.header..).unwrap_or_default()));
            match (&self.tuns[due.to]).write(&due.packet) {
                Ok(_) => {}
                // Not before the device is up, or with a header that the host refuses.
                Err(e) if e.raw_os_error() == Some(libc::EIO) => self.done.refused += 1,
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => self.done.refused += 1,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.done.refused += 1,
                Err(e) => return Err(e),
            }
            self.spare.push(due.packet);
        }
    }

    /// Takes packets out of one device; says whether there may be more.
    fn take(&mut self, from: End) -> io::Result<bool> {
        for _ in 0..BATCH {
            match (&self.tuns[from]).read(&mut self.room) {
                Ok(n) => {
                    let mut packet = self.spare.pop().unwrap_or_default();
                    packet.clear();
                    packet.extend_from_slice(self.room.get(..n).unwrap_or_default());
                    self.accept(packet, from);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    fn accept(&mut self, whole: Vec<u8>, from: End) {
        let packet = whole.get(self.header..).unwrap_or_default();
        if packet.first().is_none_or(|b| b >> 4 != 4) {
            return;
        }
        let now = clock::now();
        let start = *self.start.get_or_insert(now);
        self.done.captures[from].push(record(now, packet));
        let seen = self.see(packet, from);
        let pipe = &mut self.pipes[from];
        let (fate, place) = pipe.pass(packet, seen.as_ref(), now - start);
        match fate {
            Fate::Lost(reason) => {
                let told = pipe.told_mtu().filter(|&m| packet.len() > m as usize);
                if let Some(told) = told.filter(|_| reason == Reason::TooLarge)
                    && let Some(icmp) = packet::fragmentation_needed(packet, told)
                {
                    // From a router right behind the sender.
                    self.send(now, from, icmp);
                }
                self.log(now, from, reason, seen.unwrap_or_default(), &place);
                self.spare.push(whole);
            }
            Fate::Arrives(at) => self.send(start + at, from.peer(), whole),
            Fate::ArrivesTwice(at) => {
                self.send(start + at, from.peer(), whole.clone());
                self.send(start + at, from.peer(), whole);
            }
        }
    }

    fn send(&mut self, at: Nanos, to: End, packet: Vec<u8>) {
        self.order += 1;
        self.due.push(Reverse(Due { at, order: self.order, to, packet }));
    }

    /// The segment in a packet; none in what is no TCP.
    fn see(&mut self, packet: &[u8], from: End) -> Option<Seen> {
        let frame = Frame::new(Nanos::ZERO, LINK_TYPE, packet);
        let mut segment = Segment::EMPTY;
        let verdict = self.dissector.dissect(&frame, 0, &mut segment);
        (verdict == Verdict::Tcp).then(|| Seen::of(&segment, from))
    }

    fn log(&mut self, now: Nanos, from: End, reason: Reason, seen: Seen, place: &Place) {
        self.done.lost.push(Lost {
            time_ns: now.0,
            up: from == End::Client,
            reason,
            port: seen.port,
            relative: place.relative,
            payload: seen.payload,
            syn: seen.syn,
        });
    }
}

fn record(time: Nanos, packet: &[u8]) -> Record {
    let data = packet.get(..SNAP).unwrap_or(packet).into();
    Record { time, len: packet.len() as u32, data }
}

fn lateness(mut late: Vec<u32>) -> Lateness {
    late.sort_unstable();
    let at = |share: f64| {
        let index = (late.len().saturating_sub(1) as f64 * share) as usize;
        late.get(index).map_or(0, |&ns| i64::from(ns))
    };
    Lateness { count: late.len(), p50_ns: at(0.5), p99_ns: at(0.99), max_ns: at(1.0), ..Lateness::default() }
}
