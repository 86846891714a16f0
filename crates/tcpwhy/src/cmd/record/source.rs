//! What is recorded: packets and kernel events, put into the order of time.

use super::remarks::{Remarks, Who};
use super::slow::Slow;
use std::io;
use std::path::Path;
use tcpwhy_base::{Endpoint, Nanos, Observation, Segment, SocketEvent};
#[cfg(feature = "bpf")]
use tcpwhy_base::{SocketChange, SocketState};
use tcpwhy_lab::{Captured, Ring};
use tcpwhy_library::{
    Filter, packets::Dissector, packets::Frame, packets::Verdict, packets::Writer, packets::headers,
};
use tcpwhy_live::{Clock, LiveError};
#[cfg(feature = "bpf")]
use tcpwhy_live::{Diag, Events, Happened, Limit, Sample, State, What};

/// Linux "cooked" capture v2: <https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html>.
const COOKED: u32 = 276;
const COOKED_HEADER: usize = 20;

/// So many packets, or events, are taken at most before what was taken is written.
const AT_ONCE: usize = 1 << 16;
/// Bytes for a packet in the ring, those of the kernel's included: headers with tunnels around them, or a
/// whole packet of Ethernet.
const HEADERS: usize = 256;
const WHOLE: usize = 2048;
/// An event of a moment may be seen after packets that are later: the kernel fills both rings side by side.
const SETTLED: Nanos = Nanos::millis(50);

/// Something that will be written.
enum Seen {
    #[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "there are none"))]
    Event(SocketEvent, Option<Box<Who>>),
    /// Cooked bytes, and the length on the wire with that header.
    Packet(Nanos, Vec<u8>, u32),
}

impl Seen {
    /// An event comes before the packet that it sends.
    fn order(&self) -> (Nanos, bool) {
        match self {
            Seen::Event(event, _) => (event.time, false),
            Seen::Packet(time, ..) => (*time, true),
        }
    }
}

/// How much was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) packets: u64,
    pub(super) events: u64,
    /// Packets that the ring had no room for.
    pub(super) lost: u64,
    pub(super) events_lost: u64,
}

/// Where packets and events come from.
pub(super) struct Source<'a> {
    ring: Ring,
    #[cfg(feature = "bpf")]
    events: Option<Events>,
    /// Why there are no kernel events, or not all.
    pub(super) missing: Vec<String>,
    clock: Clock,
    filter: Option<&'a Filter>,
    payload: bool,
    dissector: Dissector,
    /// It looks at what is written, a moment later.
    again: Dissector,
    remarks: Remarks,
    /// Whether an exchange takes too long, where that is asked.
    slow: Option<Slow>,
    namespace: Option<&'a Path>,
    waiting: Vec<Seen>,
    pub(super) counts: Counts,
}

impl<'a> Source<'a> {
    pub(super) fn open(
        namespace: Option<&'a Path>,
        filter: Option<&'a Filter>,
        payload: bool,
        slow: Option<Nanos>,
    ) -> anyhow::Result<Source<'a>> {
        let slot = if payload { WHOLE } else { HEADERS };
        let ring = tcpwhy_live::within(namespace, || Ring::of_all_devices(slot).map_err(no_packets))?;
        let netns = tcpwhy_live::namespace_number(namespace)?;
        #[cfg(feature = "bpf")]
        let (events, missing) = match Events::open(netns) {
            Ok(events) => {
                let missing = events.missing.clone();
                (Some(events), missing)
            }
            Err(why) => (None, vec![why]),
        };
        #[cfg(not(feature = "bpf"))]
        let missing = vec![format!("this program was built without them (feature bpf; namespace {netns})")];
        let clock = Clock::read();
        #[cfg(feature = "bpf")]
        let waiting = match &events {
            Some(events) => already_open(namespace, filter, clock.now(), events.tells_reads)?,
            None => Vec::new(),
        };
        #[cfg(not(feature = "bpf"))]
        let waiting = Vec::new();
        Ok(Source {
            ring,
            #[cfg(feature = "bpf")]
            events,
            missing,
            clock,
            filter,
            payload,
            dissector: Dissector::new(),
            again: Dissector::new(),
            remarks: Remarks::default(),
            slow: slow.map(Slow::new),
            namespace,
            waiting,
            counts: Counts::default(),
        })
    }

    /// Whether there are kernel events at all.
    pub(super) fn has_events(&self) -> bool {
        #[cfg(feature = "bpf")]
        return self.events.is_some();
        #[cfg(not(feature = "bpf"))]
        false
    }

    /// An exchange took too long, and is over: which.
    pub(super) fn is_slow(&self, oldest: Option<Nanos>) -> Option<String> {
        self.slow.as_ref()?.is_met(oldest)
    }

    /// Blocks that say how the sockets are set up that are open, as of `time`: what told that may have left the ring.
    pub(super) fn open_sockets(&self, time: Nanos) -> Vec<u8> {
        #[cfg(feature = "bpf")]
        if let Some(events) = &self.events {
            let open = already_open(self.namespace, self.filter, time, events.tells_reads);
            let mut out = Writer::pcapng(Vec::new());
            // The section has begun already.
            let begun = out.as_mut().map_or(0, |out| out.out().len());
            if let Ok(out) = &mut out {
                for seen in open.unwrap_or_default() {
                    if let Seen::Event(event, _) = seen {
                        let _ = out.event(&event);
                    }
                }
            }
            return out.and_then(Writer::finish).map_or_else(|_| Vec::new(), |mut all| all.split_off(begun));
        }
        let _ = (time, self.namespace);
        Vec::new()
    }

    /// Takes what there is and writes what is settled; at the end all of it.
    pub(super) fn take<W: io::Write>(&mut self, out: &mut Writer<W>, end: bool) -> io::Result<()> {
        self.clock = Clock::read();
        let now = self.clock.now();
        #[cfg(feature = "bpf")]
        self.take_events();
        self.take_packets();
        self.waiting.sort_by_key(Seen::order);
        let until = if end { Nanos(i64::MAX) } else { now - SETTLED };
        let settled = self.waiting.partition_point(|seen| seen.order().0 <= until);
        let settled: Vec<Seen> = self.waiting.drain(..settled).collect();
        for seen in settled {
            if self.slow.as_ref().is_some_and(Slow::is_over) {
                // What follows would drive out what is wanted.
                break;
            }
            match seen {
                Seen::Event(event, who) => {
                    self.remarks.hear(&event, who.as_deref());
                    if let Some(slow) = &mut self.slow {
                        slow.take(Observation::Socket(&event));
                    }
                    out.event(&event)?;
                    self.counts.events += 1;
                }
                Seen::Packet(time, data, len) => {
                    let frame = Frame { len, ..Frame::new(time, COOKED, &data) };
                    let mut segment = Segment::EMPTY;
                    let is_tcp = self.again.dissect(&frame, 0, &mut segment) == Verdict::Tcp;
                    let (process, remark) = if is_tcp { self.remarks.of(&segment) } else { (None, None) };
                    if let Some(slow) = self.slow.as_mut().filter(|_| is_tcp) {
                        slow.take(Observation::Segment(&segment));
                    }
                    out.write_of(&frame, remark.as_deref(), process)?;
                    self.counts.packets += 1;
                }
            }
        }
        self.counts.lost += self.ring.drops()?;
        if end {
            #[cfg(feature = "bpf")]
            if let Some(events) = &self.events {
                self.counts.events_lost = events.lost();
            }
            let counts = self.counts;
            out.statistics(now, counts.packets + counts.lost, counts.lost)?;
        }
        Ok(())
    }

    #[cfg(feature = "bpf")]
    fn take_events(&mut self) {
        let Source { events: Some(events), clock, filter, waiting, .. } = self else { return };
        // As for packets, below: what comes in meanwhile waits.
        for event in std::iter::from_fn(|| events.next()).take(AT_ONCE) {
            if is_wanted(*filter, event.local, event.remote) {
                let who = event
                    .process
                    .as_ref()
                    .map(|p| Box::new(Who { process: p.pid, thread: event.thread, name: p.name.clone() }));
                waiting.extend(changes(&event, clock).map(|e| Seen::Event(e, who.clone())));
            }
        }
    }

    fn take_packets(&mut self) {
        let Source { ring, filter, payload: whole, dissector, waiting, .. } = self;
        let mut segment = Segment::EMPTY;
        // What comes in meanwhile waits: a fast link must not keep this from being written.
        for _ in 0..AT_ONCE {
            let taken = ring.next(|packet| {
                if packet.device.will_come_back() {
                    return;
                }
                let mut data = cooked(&packet);
                let len = packet.len.saturating_add(COOKED_HEADER as u32);
                let frame = Frame { len, ..Frame::new(packet.time, COOKED, &data) };
                if dissector.dissect(&frame, 0, &mut segment) != Verdict::Tcp {
                    // What a router says of a segment that was too large is kept whole.
                    if dissector.too_big().is_some_and(|told| is_wanted(*filter, told.src, told.dst)) {
                        waiting.push(Seen::Packet(packet.time, data, len));
                    }
                    return;
                }
                if filter.is_some_and(|f| !f.matches(&segment)) {
                    return;
                }
                if !*whole {
                    // Of a fragment nobody knows where payload begins; an IP header has 20 bytes at least
                    // (RFC 791, 3.1).
                    let kept = headers(&frame).map_or(COOKED_HEADER + 20, <[u8]>::len);
                    data.truncate(kept);
                }
                waiting.push(Seen::Packet(packet.time, data, len));
            });
            if taken.is_none() {
                return;
            }
        }
    }
}

fn is_wanted(filter: Option<&Filter>, local: Endpoint, remote: Endpoint) -> bool {
    let [out, back] =
        [(local, remote), (remote, local)].map(|(src, dst)| Segment { src, dst, ..Segment::EMPTY });
    filter.is_none_or(|f| f.matches(&out) || f.matches(&back))
}

/// What the kernel says of connections that are open when recording begins: their SYNs, which told the scales
/// of windows, have passed.
#[cfg(feature = "bpf")]
fn already_open(
    namespace: Option<&Path>,
    filter: Option<&Filter>,
    time: Nanos,
    reads: bool,
) -> Result<Vec<Seen>, LiveError> {
    let mut sockets = Vec::new();
    tcpwhy_live::within(namespace, || Diag::open()?.sockets(&mut sockets))?;
    let open = |s: &&Sample| s.state == State::Established && is_wanted(filter, s.local, s.peer);
    let event = |s: &Sample| {
        let buffers = s.memory.map_or([0; 2], |m| [m.sndbuf, m.rcvbuf]);
        let scales = s.info?.scales;
        let change = SocketChange::State(SocketState { open: true, scales, buffers, set: [false; 2], reads });
        Some(Seen::Event(SocketEvent { time, local: s.local, remote: s.peer, change }, None))
    };
    Ok(sockets.iter().filter(open).filter_map(event).collect())
}

/// What an analysis takes of an event.
#[cfg(feature = "bpf")]
fn changes(event: &Happened, clock: &Clock) -> impl Iterator<Item = SocketEvent> {
    let one = |change| [Some(change), None, None];
    let changes = match event.what {
        What::Write { from, bytes, read, nodelay, corked } => [
            nodelay.map(SocketChange::NoDelay),
            corked.map(SocketChange::Cork),
            Some(SocketChange::Write { from, bytes, read }),
        ],
        What::Blocked { since, limit: Limit::Buffer, .. } => {
            one(SocketChange::Room { since: clock.epoch(since) })
        }
        // What else kept a writer waiting shows in packets.
        What::Blocked { .. } => [None; 3],
        What::Read { since, upto, left } => one(SocketChange::Read { since: clock.epoch(since), upto, left }),
        What::State(state) => one(SocketChange::State(state)),
        What::Held(held) => one(SocketChange::Held(held)),
        What::Timer(timer) => one(SocketChange::Timer(timer)),
    };
    let (time, local, remote) = (clock.epoch(event.time), event.local, event.remote);
    changes.into_iter().flatten().map(move |change| SocketEvent { time, local, remote, change })
}

fn no_packets(why: io::Error) -> LiveError {
    let what = "cannot see packets".into();
    if why.kind() == io::ErrorKind::PermissionDenied {
        let advice = "this takes CAP_NET_RAW: run it as root";
        return LiveError::Missing { what, why: why.to_string(), advice };
    }
    LiveError::Failed { what, why }
}

/// With the header of a cooked capture.
fn cooked(packet: &Captured<'_>) -> Vec<u8> {
    let device = packet.device;
    let mut out = Vec::with_capacity(COOKED_HEADER + packet.data.len());
    out.extend(device.protocol.to_be_bytes());
    out.extend([0, 0]);
    out.extend(device.index.to_be_bytes());
    out.extend(device.hardware.to_be_bytes());
    out.extend([device.way, device.from.1]);
    out.extend(device.from.0);
    out.extend(packet.data);
    out
}
