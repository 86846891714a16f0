//! The rules, each with the kernel's behind it.

use super::{Audit, Fault, Incoming, Moved, Seen};
use crate::connection::{Connection, Role};
use crate::sample::{Process, Sample};
use tcpwhy_base::{Cause, Class, FixId, Nanos};

/// Counters whose growth is evidence.
pub(super) const COUNTERS: [&str; 21] = [
    "ListenOverflows",
    "ListenDrops",
    "TCPReqQFullDoCookies",
    "TCPReqQFullDrop",
    "SyncookiesSent",
    "SyncookiesRecv",
    "SyncookiesFailed",
    "TCPTimeWaitOverflow",
    "TCPMemoryPressures",
    "TCPAbortOnMemory",
    "PruneCalled",
    "RcvPruned",
    "OfoPruned",
    "TCPRcvCollapsed",
    "TCPRcvQDrop",
    "TCPBacklogDrop",
    "InCsumErrors",
    "PAWSTimewait",
    "PAWSEstab",
    "TCPZeroWindowDrop",
    "InType3",
];

/// A connection has to lose so much of the time that it is looked at,
const SHARE: f64 = 0.2;
/// and so long, before a setting is blamed for it.
const LEAST: Nanos = Nanos::millis(200);
/// A queue that is never empty is behind only after so long.
const BEHIND: Nanos = Nanos::secs(1);
const BEHIND_LOOKS: u32 = 5;

/// Nothing of these connections is kept: neither is the SYN-ACK repeated nor a reset sent.
const BEHIND_COOKIES: &str = ", also behind SYN cookies: clients that take themselves for connected, which only what they send again \
    can bring in";

impl Audit {
    pub(super) fn faults(&self, connections: &[Connection]) -> Vec<Fault> {
        let mut out: Vec<Fault> = Vec::new();
        out.extend(self.listeners.values().filter_map(|l| self.listener(l)));
        out.extend(self.drops_of_nobody());
        out.extend(self.syns());
        out.extend(self.unanswered());
        out.extend(self.local_ports());
        out.extend(self.memory());
        out.extend(self.by_counters());
        out.extend(connections.iter().filter_map(|c| self.send_buffer(c)));
        out.extend(self.incoming.values().filter_map(|(seen, s)| self.receive_buffer(seen, s, connections)));
        out.extend(connections.iter().filter_map(|c| self.idle_restart(c)));
        out.extend(self.set(connections));
        out.extend(self.clipped());
        out.extend(super::groups::limits(&self.groups));
        out.extend(self.paths());
        out.extend(self.offloads());
        out
    }

    pub(super) fn moved(&self, name: &str) -> Option<Moved> {
        self.moved.get(name).copied()
    }

    fn grown(&self, name: &str) -> u64 {
        self.moved(name).map_or(0, |m| m.by)
    }

    /// `sk_acceptq_is_full`: more than the backlog wait. Its own drops tell which listener `ListenOverflows` is about.
    fn listener(&self, seen: &Seen) -> Option<Fault> {
        let l = &seen.listener;
        let whose = whose(l.process.as_ref());
        let dropped = l.drops.saturating_sub(seen.drops_before);
        let overflows = self.moved("ListenOverflows");
        let fixes = vec![FixId::AcceptFaster, FixId::ListenBacklog];
        let figures = |more: &[(&'static str, u64)]| {
            let mut figures = vec![("most_queued", l.most.into()), ("backlog", u64::from(l.backlog))];
            figures.extend(more);
            figures
        };
        if seen.full.is_some() || dropped > 0 && overflows.is_some() {
            let set = match self.settings.somaxconn {
                Some(max) if u64::from(l.backlog) >= max => {
                    format!("net.core.somaxconn is {max}: listen() may have asked for more")
                }
                Some(max) => {
                    format!("the program asked listen() for {}; net.core.somaxconn allows {max}", l.backlog)
                }
                None => format!("the limit is {}", l.backlog),
            };
            let lost = match (dropped, overflows) {
                (0, None) => "no connection was dropped yet".into(),
                (_, o) => format!(
                    "SYNs or handshakes were dropped (ListenOverflows grew by {} in this network namespace){}",
                    o.map_or(0, |m| m.by),
                    // `cookie_v4_check` counts the cookie before `tcp_v4_syn_recv_sock` finds the queue full.
                    if self.grown("SyncookiesRecv") > 0 { BEHIND_COOKIES } else { "" }
                ),
            };
            let when = overflows.map_or_else(|| seen.full.unwrap_or_default(), |m| (m.first, m.last));
            return Some(Fault {
                id: "listener-queue-full",
                subject: l.local.to_string(),
                cause: Cause::AcceptQueueFull,
                when,
                evidence: format!(
                    "{whose} does not accept fast enough: up to {} connections waited, {} fit; {lost}; {set}",
                    l.most,
                    l.backlog.saturating_add(1)
                ),
                figures: figures(&[
                    ("overflows", overflows.map_or(0, |m| m.by)),
                    ("cookies_received", self.grown("SyncookiesRecv")),
                ]),
                fixes,
            });
        }
        let long = self.last - self.start - seen.since;
        (seen.least > 0 && long >= BEHIND && self.looks >= BEHIND_LOOKS).then(|| Fault {
            id: "listener-behind",
            subject: l.local.to_string(),
            cause: Cause::ServerThink,
            when: (seen.since, self.last - self.start),
            evidence: format!(
                "{whose} never had accepted all: between {} and {} connections waited at each of {} looks",
                seen.least, l.most, self.looks
            ),
            figures: figures(&[("least_queued", seen.least.into())]),
            fixes: vec![FixId::AcceptFaster],
        })
    }

    /// Overflows of a listener that is gone, or that shares its port.
    fn drops_of_nobody(&self) -> Option<Fault> {
        let moved = self.moved("ListenOverflows")?;
        let known = self.listeners.values().any(|s| s.full.is_some() || s.listener.drops > s.drops_before);
        (!known).then(|| Fault {
            id: "listen-drops",
            subject: String::new(),
            cause: Cause::AcceptQueueFull,
            when: (moved.first, moved.last),
            evidence: format!(
                "{} SYNs or handshakes met a full accept queue; its listener was not seen",
                moved.by
            ),
            figures: vec![("overflows", moved.by)],
            fixes: vec![FixId::AcceptFaster, FixId::ListenBacklog],
        })
    }

    fn syns(&self) -> Vec<Fault> {
        let mut out = Vec::new();
        if let Some(m) = self.moved("TCPReqQFullDoCookies").or_else(|| self.moved("SyncookiesSent")) {
            let failed = self.grown("SyncookiesFailed");
            out.push(Fault {
                id: "syn-cookies",
                subject: String::new(),
                cause: Cause::SynQueueFull,
                when: (m.first, m.last),
                evidence: format!(
                    "{} SYNs met a full queue and were answered with cookies ({failed} cookies did not fit): a SYN-ACK that is lost \
                     is not repeated, and without time stamps window scaling and SACK are lost",
                    m.by
                ),
                figures: vec![("cookies", m.by), ("failed", failed)],
                fixes: vec![FixId::ListenBacklog],
            });
        }
        if let Some(m) = self.moved("TCPReqQFullDrop") {
            let cookies = self
                .settings
                .syncookies
                .map_or_else(String::new, |n| format!("; net.ipv4.tcp_syncookies is {n}"));
            out.push(Fault {
                id: "syn-queue-full",
                subject: String::new(),
                cause: Cause::SynQueueFull,
                when: (m.first, m.last),
                evidence: format!("{} SYNs met a full queue and were dropped{cookies}", m.by),
                figures: vec![("dropped", m.by)],
                fixes: vec![FixId::ListenBacklog, FixId::SynCookies],
            });
        }
        out
    }

    /// connect() that gets no answer, by destination.
    fn unanswered(&self) -> Vec<Fault> {
        let mut out: Vec<Fault> = Vec::new();
        // Where the listener is on this host and full, it is the fault.
        let full = self.listeners.values().filter(|s| s.full.is_some()).map(|s| s.listener.local);
        let full: Vec<_> = full.collect();
        let explained = |peer: &tcpwhy_base::Endpoint| {
            full.iter().any(|l| l.port == peer.port && (l.ip == peer.ip || l.ip.is_unspecified()))
        };
        for (peer, again, now) in self.unanswered.values().filter(|(peer, ..)| !explained(peer)) {
            let subject = peer.to_string();
            match out.iter_mut().find(|f| f.subject == subject) {
                Some(f) => {
                    f.when = (f.when.0.min(*now), f.when.1.max(*now));
                    f.figures.iter_mut().for_each(|(name, n)| {
                        *n = if *name == "connections" { *n + 1 } else { (*n).max(u64::from(*again) + 1) };
                    });
                }
                None => out.push(Fault {
                    id: "connect-unanswered",
                    subject,
                    cause: Cause::SynRetransmit,
                    when: (*now, *now),
                    evidence: String::new(),
                    figures: vec![("connections", 1), ("most_syns", u64::from(*again) + 1)],
                    fixes: vec![FixId::Firewall, FixId::ListenBacklog],
                }),
            }
        }
        for f in &mut out {
            let of = |name| f.figures.iter().find(|(n, _)| *n == name).map_or(0, |(_, v)| *v);
            let plural = if of("connections") == 1 { "" } else { "s" };
            f.evidence = format!(
                "{} connection{plural} to it wait{} for the handshake: up to {} SYNs of one are unanswered",
                of("connections"),
                if plural.is_empty() { "s" } else { "" },
                of("most_syns")
            );
        }
        out
    }

    fn memory(&self) -> Option<Fault> {
        let now = self.last - self.start;
        let pressure = self.moved("TCPMemoryPressures").or_else(|| self.moved("TCPAbortOnMemory"));
        let [_, limit, most] = self.settings.tcp_mem.unwrap_or_default();
        let over = limit > 0 && self.pages > limit;
        (pressure.is_some() || over).then(|| Fault {
            id: "memory-pressure",
            subject: String::new(),
            cause: Cause::MemoryPressure,
            when: pressure.map_or((now, now), |m| (m.first, m.last)),
            evidence: format!(
                "TCP holds {} pages; {}; {} connections were ended for it",
                self.pages,
                match limit {
                    0 => "net.ipv4.tcp_mem, which only the first network namespace shows, says how many are too many".into(),
                    _ => format!("above {limit} it is short of memory, above {most} it gets none (net.ipv4.tcp_mem)"),
                },
                self.grown("TCPAbortOnMemory")
            ),
            figures: vec![("pages", self.pages), ("pressure_pages", limit), ("aborted", self.grown("TCPAbortOnMemory"))],
            fixes: Cause::MemoryPressure.info().fixes.to_vec(),
        })
    }

    /// What one counter proves by itself.
    fn by_counters(&self) -> Vec<Fault> {
        let mut out = Vec::new();
        let mut put = |id, cause: Cause, names: &[&'static str], what: &str, fixes: &[FixId]| {
            let moved: Vec<(&'static str, Moved)> =
                names.iter().filter_map(|&n| Some((n, self.moved(n)?))).collect();
            let (Some(first), Some(last)) =
                (moved.iter().map(|(_, m)| m.first).min(), moved.iter().map(|(_, m)| m.last).max())
            else {
                return;
            };
            let grown: Vec<String> = moved.iter().map(|(n, m)| format!("{n} grew by {}", m.by)).collect();
            out.push(Fault {
                id,
                subject: String::new(),
                cause,
                when: (first, last),
                evidence: format!("{what} ({})", grown.join(", ")),
                figures: moved.iter().map(|(n, m)| (*n, m.by)).collect(),
                fixes: fixes.to_vec(),
            });
        };
        put(
            "time-wait-limit",
            Cause::PortExhaustion,
            &["TCPTimeWaitOverflow"],
            "connections that had closed were forgotten before their time: net.ipv4.tcp_max_tw_buckets is reached",
            &[FixId::ReuseConnections],
        );
        put(
            "receive-queue-pruned",
            Cause::MemoryPressure,
            &["PruneCalled", "RcvPruned", "OfoPruned", "TCPRcvCollapsed", "TCPRcvQDrop"],
            "received data found no room in its buffer: it was packed closer, or thrown away and retransmitted",
            &[FixId::ReadFaster, FixId::UnsetRcvbuf, FixId::Rmem],
        );
        put(
            "backlog-drops",
            Cause::HostDelay,
            &["TCPBacklogDrop"],
            "packets were dropped because their socket was in use for too long: a busy processor, or very many small segments",
            Cause::HostDelay.info().fixes,
        );
        put(
            "bad-checksums",
            Cause::FastRecovery,
            &["InCsumErrors"],
            "segments came with a wrong checksum and were thrown away",
            &[FixId::FixLoss],
        );
        put(
            "timestamps-rejected",
            Cause::SynRetransmit,
            &["PAWSTimewait", "PAWSEstab"],
            "segments were thrown away for their time stamps: several hosts behind one address, or a clock that went back",
            &[],
        );
        out
    }

    /// A buffer that is set by hand, clipped, or at its limit, and that a connection waits for.
    fn send_buffer(&self, c: &Connection) -> Option<Fault> {
        let (share, time) = share(c, Cause::SendBuffer)?;
        let buffer = u64::from(c.sample.memory?.sndbuf);
        let (why, fixes) = if self.settings.tcp_wmem_max.is_some_and(|max| buffer >= max) {
            ("the third value of net.ipv4.tcp_wmem allows no more".to_owned(), vec![FixId::Wmem])
        } else if let Some(max) = self.settings.wmem_max.filter(|&max| buffer == 2 * max) {
            let why = format!("the program set SO_SNDBUF, and net.core.wmem_max ({max}) granted no more");
            (why, vec![FixId::UnsetSndbuf, FixId::Wmem])
        } else {
            let why =
                format!("the program set SO_SNDBUF to {}, and so the kernel does not size it", buffer / 2);
            (why, vec![FixId::UnsetSndbuf])
        };
        Some(Fault {
            id: "send-buffer",
            subject: subject(c),
            cause: Cause::SendBuffer,
            when: (Nanos::ZERO, self.last - self.start),
            evidence: format!(
                "{} waited {time} ({share:.0} %) for room in its send buffer of {buffer} bytes while both windows had room; {why}",
                whose(c.process.as_ref())
            ),
            figures: vec![("buffer_bytes", buffer), ("waited_ns", time.0.unsigned_abs())],
            fixes,
        })
    }

    /// A window's worth comes in each round trip: the window is the limit. The kernel's own sizing keeps it
    /// at twice of what came in the last one (`tcp_rcv_space_adjust`), so three quarters are seen only where
    /// it may not grow.
    fn receive_buffer(&self, seen: &Incoming, s: &Sample, connections: &[Connection]) -> Option<Fault> {
        let (bytes, long) = (seen.bytes, seen.time);
        if seen.unread * 4 > seen.looks || long < LEAST || seen.window == 0 || seen.round_trip <= Nanos::ZERO
        {
            return None;
        }
        let each_trip = bytes as f64 / long.0 as f64 * seen.round_trip.0 as f64;
        // Less than a few windows says nothing of a rate.
        if each_trip * 4.0 < f64::from(seen.window) * 3.0 || bytes < u64::from(seen.window) * 4 {
            return None;
        }
        let buffer = u64::from(seen.rcvbuf);
        let (why, fixes) = if self.settings.tcp_rmem_max.is_some_and(|max| buffer >= max) {
            ("the third value of net.ipv4.tcp_rmem allows no more".to_owned(), vec![FixId::Rmem])
        } else if let Some(max) = self.settings.rmem_max.filter(|&max| buffer == 2 * max) {
            let why = format!("the program set SO_RCVBUF, and net.core.rmem_max ({max}) granted no more");
            (why, vec![FixId::UnsetRcvbuf, FixId::Rmem])
        } else {
            let why =
                format!("the program set SO_RCVBUF to {}, and so the kernel does not size it", buffer / 2);
            (why, vec![FixId::UnsetRcvbuf])
        };
        let c = connections.iter().find(|c| c.sample.cookie == s.cookie)?;
        Some(Fault {
            id: "receive-buffer",
            subject: subject(c),
            cause: Cause::ReceiveWindow,
            when: (seen.first, seen.last.0),
            evidence: format!(
                "{} received {each_trip:.0} bytes in each round trip of {}, and offers a window of {}: that is the limit; {why}",
                whose(c.process.as_ref()),
                seen.round_trip,
                seen.window
            ),
            figures: vec![("window_bytes", seen.window.into()), ("buffer_bytes", buffer)],
            fixes,
        })
    }

    fn idle_restart(&self, c: &Connection) -> Option<Fault> {
        // It is idle for most of its time, or there would be no restart.
        let (share, time) = share_of(c, Cause::IdleRestart, |cause| cause.class() != Class::Application)?;
        (self.settings.slow_start_after_idle != Some(0)).then(|| Fault {
            id: "idle-restart",
            subject: subject(c),
            cause: Cause::IdleRestart,
            when: (Nanos::ZERO, self.last - self.start),
            evidence: format!(
                "{} waited {time} ({share:.0} % of the time in which anything was under way) for a congestion window that had shrunk while it was idle \
                 (net.ipv4.tcp_slow_start_after_idle is 1)",
                whose(c.process.as_ref())
            ),
            figures: vec![("waited_ns", time.0.unsigned_abs())],
            fixes: vec![FixId::NoIdleRestart],
        })
    }
}

/// Per cent and time that a connection lost to a cause, if that is enough to blame a setting for it.
fn share(c: &Connection, cause: Cause) -> Option<(f64, Nanos)> {
    share_of(c, cause, |_| true)
}

/// Per cent of the time of some causes.
fn share_of(c: &Connection, cause: Cause, of: impl Fn(Cause) -> bool) -> Option<(f64, Nanos)> {
    let time = c.total.time(|of| of == cause);
    let share = time.0 as f64 / c.total.time(of).0.max(1) as f64;
    (time >= LEAST && share >= SHARE).then_some((share * 100.0, time))
}

fn subject(c: &Connection) -> String {
    let arrow = if c.role == Role::Client { '>' } else { '<' };
    format!("{} {arrow} {}", c.sample.local, c.sample.peer)
}

pub(super) fn whose(process: Option<&Process>) -> String {
    match process {
        Some(p) => format!("{}({})", p.name, p.pid),
        None => "its program".into(),
    }
}
