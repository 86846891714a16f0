//! What is wrong with a host, by what happened on it while it was looked at. No folklore: without evidence
//! from this host and this time there is no line.

mod buffers;
mod counters;
mod groups;
mod paths;
mod ports;
mod rules;

pub use counters::{Counters, Settings};
pub use groups::Group;
#[cfg(target_os = "linux")]
pub use groups::groups;
pub use paths::Device;

use crate::connection::Connection;
use crate::sample::{Sample, State};
use crate::table::{Listener, Table};
use hashbrown::{HashMap, HashSet};
use std::net::IpAddr;
use tcpwhy_base::{Cause, Endpoint, FixId, Nanos};

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Its stable id, which is the heading of its section in docs/check.md.
    pub id: &'static str,
    /// What it is about: a listener, a destination; empty: the host.
    pub subject: String,
    /// The cause of lost time that it makes.
    pub cause: Cause,
    /// When it showed, since the check began: first and last.
    pub when: (Nanos, Nanos),
    /// What was seen, with the figures.
    pub evidence: String,
    /// Figures for programs.
    pub figures: Vec<(&'static str, u64)>,
    /// What helps.
    pub fixes: Vec<FixId>,
}

/// All ids, in the order in which faults are listed.
pub const IDS: [&str; 21] = [
    "listener-queue-full",
    "listener-behind",
    "listen-drops",
    "syn-cookies",
    "syn-queue-full",
    "connect-unanswered",
    "local-ports",
    "time-wait-limit",
    "memory-pressure",
    "memory-limit",
    "receive-queue-pruned",
    "backlog-drops",
    "send-buffer",
    "receive-buffer",
    "buffer-set",
    "buffer-clipped",
    "idle-restart",
    "path-mtu",
    "offload-off",
    "bad-checksums",
    "timestamps-rejected",
];

/// When a counter moved: first, last, by how much.
#[derive(Clone, Copy, Debug)]
struct Moved {
    first: Nanos,
    last: Nanos,
    by: u64,
}

/// What a receiver has seen of a transfer towards it.
#[derive(Clone, Copy, Debug, Default)]
struct Incoming {
    /// When it was seen first and last, and the bytes then.
    first: Nanos,
    last: (Nanos, u64),
    /// What came, and how long that took: only the time between looks in which anything came.
    bytes: u64,
    time: Nanos,
    /// The smallest round trip that the receiver estimated.
    round_trip: Nanos,
    window: u32,
    rcvbuf: u32,
    /// How often it was looked at, and how often more lay unread than might still come.
    looks: u32,
    unread: u32,
}

/// A host while it is looked at.
#[derive(Debug, Default)]
pub struct Audit {
    table: Table,
    settings: Settings,
    counters: Counters,
    moved: HashMap<&'static str, Moved>,
    listeners: HashMap<Endpoint, Seen>,
    /// Local ports, by own address and destination.
    destinations: HashMap<(IpAddr, Endpoint), ports::Ports>,
    /// Destinations that use no time stamps.
    unstamped: HashSet<Endpoint>,
    incoming: HashMap<u64, (Incoming, Sample)>,
    unanswered: HashMap<u64, (Endpoint, u8, Nanos)>,
    /// Buffers that programs set, by the sockets' cookies.
    locks: HashMap<u64, u32>,
    /// Buffers for which more was asked than is granted: by program, to send or not.
    clipped: HashMap<(String, bool), buffers::Clipped>,
    groups: HashMap<(bool, String), groups::Limited>,
    paths: HashMap<u64, paths::PathMtu>,
    devices: paths::Devices,
    /// Pages that TCP holds, and the most.
    pages: u64,
    start: Nanos,
    last: Nanos,
    looks: u32,
}

/// A listener over the time.
#[derive(Clone, Debug)]
struct Seen {
    listener: Listener,
    drops_before: u32,
    least: u32,
    /// When it was full first and last.
    full: Option<(Nanos, Nanos)>,
    since: Nanos,
}

impl Audit {
    /// Begins.
    pub fn new(settings: Settings, counters: Counters, time: Nanos) -> Audit {
        Audit { settings, counters, start: time, last: time, ..Audit::default() }
    }

    /// Takes all sockets but those in TIME_WAIT.
    pub fn sockets(&mut self, sockets: &[Sample], time: Nanos) {
        self.table.feed(sockets, time);
        (self.last, self.looks) = (time, self.looks + 1);
        let now = time - self.start;
        for s in sockets.iter().filter(|s| s.state == State::Listen) {
            let drops = s.memory.map_or(0, |m| m.drops);
            let listener = Listener {
                local: s.local,
                queue: s.rqueue,
                backlog: s.wqueue,
                drops,
                inode: s.inode,
                process: None,
                most: s.rqueue,
            };
            // Of several that share a port (SO_REUSEPORT) one stands for all: their queues have the same limit.
            let seen = self.listeners.entry(s.local).or_insert_with(|| Seen {
                listener: listener.clone(),
                drops_before: drops,
                least: s.rqueue,
                full: None,
                since: now,
            });
            let most = seen.listener.most.max(s.rqueue);
            seen.least = seen.least.min(s.rqueue);
            if listener.is_full() {
                seen.full = Some((seen.full.map_or(now, |f| f.0), now));
            }
            seen.listener = Listener { most, ..listener };
        }
        for s in sockets {
            if s.state == State::SynSent && s.retransmits > 0 {
                self.unanswered.insert(s.cookie, (s.peer, s.retransmits, now));
            }
            self.stamps(s);
            self.receives(s, now);
            self.path_mtu(s, now);
        }
    }

    fn receives(&mut self, s: &Sample, now: Nanos) {
        let Some(info) = s.info.filter(|i| i.bytes_received > 0) else { return };
        let (seen, sample) = self.incoming.entry(s.cookie).or_insert_with(|| {
            let first = Incoming { first: now, last: (now, info.bytes_received), ..Incoming::default() };
            (first, s.clone())
        });
        let new = info.bytes_received.saturating_sub(seen.last.1);
        if new > 0 {
            (seen.bytes, seen.time) = (seen.bytes + new, seen.time + (now - seen.last.0));
        }
        seen.last = (now, info.bytes_received);
        if info.rcv_rtt > Nanos::ZERO {
            let least = if seen.round_trip > Nanos::ZERO { seen.round_trip } else { info.rcv_rtt };
            seen.round_trip = least.min(info.rcv_rtt);
        }
        seen.window = seen.window.max(info.rcv_wnd.unwrap_or(0));
        seen.rcvbuf = s.memory.map_or(0, |m| m.rcvbuf);
        seen.looks += 1;
        seen.unread += u32::from(s.rqueue > info.rcv_wnd.unwrap_or(u32::MAX));
        *sample = s.clone();
    }

    /// Takes the counters, and how many pages TCP holds.
    pub fn counted(&mut self, counters: Counters, pages: u64, time: Nanos) {
        let now = time - self.start;
        for name in rules::COUNTERS {
            let by = counters.since(&self.counters, name);
            if by > 0 {
                let moved = self.moved.entry(name).or_insert(Moved { first: now, last: now, by: 0 });
                (moved.last, moved.by) = (now, moved.by + by);
            }
        }
        self.counters = counters;
        self.pages = self.pages.max(pages);
    }

    /// Inodes of sockets, and whose they are.
    pub fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    /// What is wrong, in the order of [`IDS`].
    pub fn finish(mut self) -> (Vec<Fault>, Nanos) {
        let snapshot = self.table.interval();
        for seen in self.listeners.values_mut() {
            let named = snapshot.listeners.iter().find(|l| l.local == seen.listener.local);
            seen.listener.process = named.and_then(|l| l.process.clone());
        }
        let ended = self.table.take_ended();
        let connections: Vec<Connection> = snapshot.connections.into_iter().chain(ended).collect();
        let mut faults = self.faults(&connections);
        let rank = |f: &Fault| IDS.iter().position(|id| *id == f.id);
        faults.sort_by_key(|f| (rank(f), f.subject.clone()));
        (faults, self.last - self.start)
    }
}
