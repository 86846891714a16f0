//! Buffers that programs set: how large they are, and what was asked for.

use super::rules::whose;
use super::{Audit, Fault};
use crate::connection::Connection;
use crate::sample::Process;
use hashbrown::HashMap;
use tcpwhy_base::{Cause, FixId, Nanos};

/// `SOCK_SNDBUF_LOCK`, `SOCK_RCVBUF_LOCK`.
const LOCKS: [u32; 2] = [1, 2];

/// A buffer for which more was asked than the host grants.
#[derive(Clone, Debug)]
pub(super) struct Clipped {
    process: Process,
    bytes: u64,
    calls: u64,
    when: (Nanos, Nanos),
}

/// Connections with a buffer of one size that one program set.
struct Set<'a> {
    process: Option<&'a Process>,
    buffer: u64,
    connections: u64,
    round_trip: Nanos,
}

impl Audit {
    /// Takes which sockets have buffers that were set, by their cookies.
    pub fn locked(&mut self, locks: HashMap<u64, u32>) {
        self.locks.extend(locks);
    }

    /// Takes a call of setsockopt() for a buffer: of `process`, so many bytes, to send (else to receive).
    pub fn asked(&mut self, process: &Process, send: bool, bytes: u64, time: Nanos) {
        let now = time - self.start;
        let granted = if send { self.settings.wmem_max } else { self.settings.rmem_max };
        if granted.is_none_or(|most| bytes <= most) {
            return;
        }
        let seen = self.clipped.entry((process.name.clone(), send)).or_insert_with(|| Clipped {
            process: process.clone(),
            bytes,
            calls: 0,
            when: (now, now),
        });
        (seen.bytes, seen.calls, seen.when.1) = (seen.bytes.max(bytes), seen.calls + 1, now);
    }

    /// `sk_setsockopt` takes the smaller of what is asked for and `net.core.wmem_max` or `rmem_max`, and says nothing.
    pub(super) fn clipped(&self) -> impl Iterator<Item = Fault> {
        self.clipped.iter().map(|((name, send), c)| {
            let way = Way::of(*send);
            let granted = way.granted(self).unwrap_or(0);
            Fault {
                id: "buffer-clipped",
                subject: format!("{name}:{}", way.option),
                cause: way.cause,
                when: c.when,
                evidence: format!(
                    "{} asked for a {} of {} bytes ({}), and {} grants {granted}; the kernel does not size it any more",
                    whose(Some(&c.process)),
                    way.name,
                    c.bytes,
                    way.option,
                    way.setting
                ),
                figures: vec![("asked_bytes", c.bytes), ("granted_bytes", granted), ("calls", c.calls)],
                fixes: vec![way.unset, way.raise],
            }
        })
    }

    /// A buffer that was set is not sized by the kernel any more (`sk_userlocks`). Only those are told that
    /// are smaller than what it could grow to.
    pub(super) fn set(&self, connections: &[Connection]) -> Vec<Fault> {
        let mut out = Vec::new();
        for (lock, way) in LOCKS.into_iter().zip([Way::of(true), Way::of(false)]) {
            let mut sets: Vec<Set<'_>> = Vec::new();
            for c in connections {
                let locked = self.locks.get(&c.sample.cookie).is_some_and(|l| l & lock != 0);
                let (true, Some(memory), Some(info)) = (locked, c.sample.memory, c.sample.info) else {
                    continue;
                };
                let buffer = u64::from(if lock == 1 { memory.sndbuf } else { memory.rcvbuf });
                if way.grows_to(self).is_none_or(|most| buffer >= most) {
                    continue;
                }
                let name = |p: Option<&Process>| p.map(|p| p.name.clone());
                let process = c.process.as_ref();
                let same = sets.iter_mut().find(|s| s.buffer == buffer && name(s.process) == name(process));
                match same {
                    Some(s) => {
                        s.connections += 1;
                        s.round_trip = s.round_trip.max(info.min_rtt);
                    }
                    None => sets.push(Set { process, buffer, connections: 1, round_trip: info.min_rtt }),
                }
            }
            out.extend(sets.iter().map(|s| self.set_by(s, &way)));
        }
        out
    }

    fn set_by(&self, s: &Set<'_>, way: &Way) -> Fault {
        let most = way.grows_to(self).unwrap_or(0);
        let rate = (s.round_trip > Nanos::ZERO).then(|| fits(way.send, s.buffer, s.round_trip));
        let exact = way.granted(self).filter(|most| s.buffer == 2 * most);
        let exact = exact.map_or("", |_| " (all that the host grants: it may have asked for more)");
        let plural = if s.connections == 1 { "" } else { "s" };
        Fault {
            id: "buffer-set",
            subject: format!("{}:{}", s.process.map_or("?", |p| p.name.as_str()), way.option),
            cause: way.cause,
            when: (Nanos::ZERO, self.last - self.start),
            evidence: format!(
                "{} set {} to {}{exact} on {} connection{plural}: the kernel does not size that buffer any more, which could grow to \
                 {most} bytes{}",
                whose(s.process),
                way.option,
                s.buffer / 2,
                s.connections,
                rate.unwrap_or_default()
            ),
            figures: vec![
                ("buffer_bytes", s.buffer),
                ("connections", s.connections),
                ("round_trip_ns", s.round_trip.0.unsigned_abs()),
            ],
            fixes: vec![way.unset],
        }
    }
}

/// What fits through such a buffer. Of a send buffer it is no limit: room is asked for only before a new
/// segment, and one that was begun is filled up to 64 KB (`tcp_sendmsg_locked`).
fn fits(send: bool, buffer: u64, round_trip: Nanos) -> String {
    let rate = buffer as f64 / round_trip.0 as f64 * 1e3;
    let (most, more) = if send {
        ("about", " (more where it writes large pieces: a segment that was begun is filled up, to 64 KB)")
    } else {
        ("at most", "")
    };
    format!(
        "; over the longest of their round trips, {round_trip}, {most} {rate:.1} MB/s fit through it{more}"
    )
}

/// The one buffer or the other.
struct Way {
    send: bool,
    name: &'static str,
    option: &'static str,
    setting: &'static str,
    cause: Cause,
    unset: FixId,
    raise: FixId,
}

impl Way {
    fn of(send: bool) -> Way {
        let (name, option, setting) = if send {
            ("send buffer", "SO_SNDBUF", "net.core.wmem_max")
        } else {
            ("receive buffer", "SO_RCVBUF", "net.core.rmem_max")
        };
        let (cause, unset, raise) = if send {
            (Cause::SendBuffer, FixId::UnsetSndbuf, FixId::Wmem)
        } else {
            (Cause::ReceiveWindow, FixId::UnsetRcvbuf, FixId::Rmem)
        };
        Way { send, name, option, setting, cause, unset, raise }
    }

    fn granted(&self, audit: &Audit) -> Option<u64> {
        if self.send { audit.settings.wmem_max } else { audit.settings.rmem_max }
    }

    fn grows_to(&self, audit: &Audit) -> Option<u64> {
        if self.send { audit.settings.tcp_wmem_max } else { audit.settings.tcp_rmem_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transfer through SO_SNDBUF 32768 over 40 ms ran at 2.6 MB/s.
    #[test]
    fn a_send_buffer_is_no_limit_of_a_rate() {
        let said = |send| fits(send, 65_536, Nanos::millis(40));
        assert!(said(true).contains("40.0 ms, about 1.6 MB/s fit through it (more where"), "{}", said(true));
        assert!(said(false).ends_with("40.0 ms, at most 1.6 MB/s fit through it"), "{}", said(false));
    }
}
