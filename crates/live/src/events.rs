//! What kernel events say one by one, and their programs' records.

use crate::sample::Process;
use tcpwhy_base::{Endpoint, Held, Nanos, Seq, SocketState, Timer};

/// Something that happened to a socket of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// When, on the monotonic clock.
    pub time: Nanos,
    /// The socket's end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// Whose doing it was; of a timer nobody's.
    pub process: Option<Process>,
    /// And which of its threads.
    pub thread: u32,
    /// What.
    pub what: What,
}

/// What can happen to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A write begins.
    Write {
        /// The sequence number of its first byte.
        from: Seq,
        /// How many bytes.
        bytes: u32,
        /// Up to which number of the other end the writer had read, where that is told.
        read: Option<Seq>,
        /// Nagle's algorithm is off, where that was not known before or is new.
        nodelay: Option<bool>,
        /// Partial segments are held back, where that was not known before or is new.
        corked: Option<bool>,
    },
    /// A writer that had no room in its send buffer goes on.
    Blocked {
        /// When it had begun to wait.
        since: Nanos,
        /// It slept in the call; else it was refused, and called again.
        asleep: bool,
        /// What it waited for.
        limit: Limit,
    },
    /// An application reads what had lain there for more than a millisecond.
    Read {
        /// Since when.
        since: Nanos,
        /// Up to which number of the other end.
        upto: Seq,
        /// Bytes that are left.
        left: u32,
    },
    /// The connection opens or ends.
    State(SocketState),
    /// What holds back unsent bytes is another thing than before.
    Held(Held),
    /// A timer fires.
    Timer(Timer),
}

/// What a writer without room waited for in truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The buffer alone: all was sent, and both windows had room.
    Buffer,
    /// The other end's window.
    Window,
    /// The congestion window, or whatever else held back what was in the buffer.
    Network,
    /// Itself: there was room before it wrote again.
    Writer,
}

/// Bytes of a record, as `bpf/events.bpf.c` lays it out.
#[cfg(any(all(target_os = "linux", feature = "bpf"), test))]
pub(crate) const RECORD: usize = 96;

/// `AF_INET`.
#[cfg(any(all(target_os = "linux", feature = "bpf"), test))]
const INET: u16 = 2;

/// `TCP_ESTABLISHED`.
#[cfg(any(all(target_os = "linux", feature = "bpf"), test))]
const ESTABLISHED: u32 = 1;

impl Happened {
    /// From a record of the programs; `None` if it is none.
    #[cfg(any(all(target_os = "linux", feature = "bpf"), test))]
    pub(crate) fn decode(record: &[u8]) -> Option<Happened> {
        let record: &[u8; RECORD] = record.first_chunk()?;
        let long = |at: usize| record.get(at..at + 8)?.first_chunk().map(|b| u64::from_ne_bytes(*b));
        let word = |at: usize| record.get(at..at + 4)?.first_chunk().map(|b| u32::from_ne_bytes(*b));
        let short = |at: usize| record.get(at..at + 2)?.first_chunk().map(|b| u16::from_ne_bytes(*b));
        let nanos = |ns: u64| Nanos(i64::try_from(ns).unwrap_or(i64::MAX));
        let (pid, a, b) = (word(24)?, word(28)?, word(32)?);
        let (family, options) = (short(36)?, short(38)?);
        let end = |at: usize, port: usize| {
            let bytes: &[u8; 16] = record.get(at..at + 16)?.first_chunk()?;
            use std::net::IpAddr;
            let ip = if family == INET {
                IpAddr::from(*bytes.first_chunk::<4>()?)
            } else {
                // An IPv6 socket may speak IPv4: so its packets say.
                IpAddr::from(*bytes).to_canonical()
            };
            Some(Endpoint { ip, port: short(port)? })
        };
        let name: &[u8] = record.get(76..92)?;
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        let process = (pid != 0).then(|| Process {
            pid,
            name: String::from_utf8_lossy(name).into_owned(),
            container: None,
            container_name: None,
        });
        let what = match word(16)? {
            1 => What::Write {
                from: Seq(a),
                bytes: b,
                read: (long(8)? >> 32 != 0).then_some(Seq(long(8)? as u32)),
                nodelay: (options & 0x8000 != 0).then_some(options & 1 != 0),
                corked: (options & 0x8000 != 0).then_some(options & 2 != 0),
            },
            2 => What::Blocked { since: nanos(long(8)?), asleep: b != 0, limit: limit(a) },
            3 => What::Timer(match a {
                0 => Timer::Retransmission,
                1 => Timer::Probe,
                _ => Timer::DelayedAck,
            }),
            4 => What::Read { since: nanos(long(8)?), upto: Seq(a), left: b },
            6 => What::Held(Held::from_number(a, b & 1 != 0)?),
            5 => {
                let buffers = long(8)?;
                What::State(SocketState {
                    open: a == ESTABLISHED,
                    scales: (b & 1 != 0).then_some([(b >> 8) as u8 & 15, (b >> 16) as u8 & 15]),
                    buffers: [buffers as u32, (buffers >> 32) as u32],
                    set: [b & 1 << 24 != 0, b & 1 << 25 != 0],
                    // That depends on what is attached.
                    reads: false,
                })
            }
            _ => return None,
        };
        let (time, local, remote, thread) = (nanos(long(0)?), end(44, 40)?, end(60, 42)?, word(92)?);
        Some(Happened { time, local, remote, process, thread, what })
    }
}

#[cfg(any(all(target_os = "linux", feature = "bpf"), test))]
fn limit(number: u32) -> Limit {
    match number {
        0 => Limit::Buffer,
        1 => Limit::Window,
        2 => Limit::Network,
        _ => Limit::Writer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_are_laid_out() {
        let mut record = [0u8; RECORD];
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &7_000u64.to_ne_bytes());
        put(8, &5_000u64.to_ne_bytes());
        put(16, &1u32.to_ne_bytes());
        put(24, &812u32.to_ne_bytes());
        put(28, &99u32.to_ne_bytes());
        put(32, &204u32.to_ne_bytes());
        put(36, &INET.to_ne_bytes());
        put(38, &0x8001u16.to_ne_bytes());
        put(40, &40_000u16.to_ne_bytes());
        put(42, &443u16.to_ne_bytes());
        put(44, &[10, 0, 0, 1]);
        put(60, &[10, 0, 0, 7]);
        put(76, b"nginx");
        put(92, &815u32.to_ne_bytes());
        let seen = Happened::decode(&record).unwrap();
        assert_eq!((seen.time, seen.local.to_string()), (Nanos(7_000), "10.0.0.1:40000".into()));
        assert_eq!(seen.remote.to_string(), "10.0.0.7:443");
        assert_eq!(seen.process.map(|p| (p.pid, p.name)), Some((812, "nginx".into())));
        assert_eq!(seen.thread, 815);
        let write =
            |read| What::Write { from: Seq(99), bytes: 204, read, nodelay: Some(true), corked: Some(false) };
        assert_eq!(seen.what, write(None));
        record[8..16].copy_from_slice(&(1u64 << 32 | 77).to_ne_bytes());
        assert_eq!(Happened::decode(&record).map(|h| h.what), Some(write(Some(Seq(77)))));
        record[8..16].copy_from_slice(&5_000u64.to_ne_bytes());
        record[16] = 2;
        record[28] = 1;
        let blocked = What::Blocked { since: Nanos(5_000), asleep: true, limit: Limit::Window };
        assert_eq!(Happened::decode(&record).map(|h| h.what), Some(blocked));
        record[36] = 10;
        record[44..60].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 9]);
        assert_eq!(Happened::decode(&record).unwrap().local.to_string(), "10.0.0.9:40000");
        record[16] = 4;
        assert_eq!(
            Happened::decode(&record).map(|h| h.what),
            Some(What::Read { since: Nanos(5_000), upto: Seq(1), left: 204 })
        );
        record[16] = 5;
        record[8..16].copy_from_slice(&(16_384u64 | 65_536 << 32).to_ne_bytes());
        record[32..36].copy_from_slice(&0x0107_0801_u32.to_ne_bytes());
        let state = SocketState {
            open: true,
            scales: Some([8, 7]),
            buffers: [16_384, 65_536],
            set: [true, false],
            reads: false,
        };
        assert_eq!(Happened::decode(&record).map(|h| h.what), Some(What::State(state)));
        record[16] = 6;
        record[28..32].copy_from_slice(&2u32.to_ne_bytes());
        let held = What::Held(Held::CongestionWindow { slow_start: true });
        assert_eq!(Happened::decode(&record).map(|h| h.what), Some(held));
        record[16] = 9;
        assert_eq!(Happened::decode(&record), None);
        assert_eq!(Happened::decode(&record[..95]), None);
    }
}
