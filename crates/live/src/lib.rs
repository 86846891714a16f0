//! Where the time of the connections of a running host goes, from what its kernel says of its sockets.
//!
//! `Diag` asks the kernel for all sockets (`sock_diag`, which needs no privileges) and gives [`Sample`]s,
//! `Rounds` does so as cheaply as that can be had. [`Table`] is fed with them, as often as one likes, and
//! keeps for each connection how much of its time went by which cause; what it says of the last interval and
//! since the beginning is a [`Snapshot`]. The rules are in
//! [`judge`]: pure functions of two samples of one socket.
//!
//! `Kernel` (feature `bpf`) attaches programs to tracepoints and gives [`Facts`]: what was held, who slept,
//! what was sent again. Where there are facts, they override what samples say ([`Table::witness`]). `Events`
//! gives single events ([`Happened`]).
//!
//! [`check`] keeps what happens on the host as a whole beside the rules that make a fault of it.
//!
//! What the kernel counts itself (busy, limited by the receive window, limited by the send buffer) is
//! counted, what lies between is estimated from the states at the samples; which is which, the split says
//! ([`Share::counted`]).
//!
//! A sender whose buffer of 32 KiB is full, looked at every 20 ms (on Linux the samples come from `Diag`):
//!
//! ```
//! use tcpwhy_base::{Cause, Endpoint, Nanos};
//! use tcpwhy_live::{Congestion, Info, Memory, Sample, State, Table};
//!
//! let end = |port| Endpoint { ip: [10, 0, 0, 1].into(), port };
//! let mut table = Table::default();
//! for n in 0..5 {
//!     let time = Nanos::millis(20 * n);
//!     let info = Info { cwnd: 40, unacked: 8, snd_mss: 1448, busy: time, snd_wnd: Some(1 << 20), ..Info::default() };
//!     let sample = Sample {
//!         cookie: 2,
//!         local: end(40_000),
//!         peer: end(443),
//!         device: 0,
//!         state: State::Established,
//!         inode: 5,
//!         rqueue: 0,
//!         wqueue: 11_584,
//!         retransmits: 0,
//!         expires: None,
//!         info: Some(info),
//!         memory: Some(Memory { sndbuf: 32_768, wmem_queued: 30_000, ..Memory::default() }),
//!         congestion: Congestion::new(b"cubic"),
//!     };
//!     table.feed(&[sample], time);
//! }
//! let connection = &table.interval().connections[0];
//! let most = &connection.interval.shares()[0];
//! assert_eq!((most.cause, most.time), (Cause::SendBuffer, Nanos::millis(80)));
//! ```

mod advice;
pub mod check;
#[cfg(target_os = "linux")]
mod clock;
mod connection;
#[cfg(target_os = "linux")]
mod container;
#[cfg(target_os = "linux")]
mod diag;
mod events;
mod facts;
#[cfg(any(all(target_os = "linux", feature = "bpf"), test))]
mod gauge;
mod hint;
mod judge;
#[cfg(all(target_os = "linux", feature = "bpf"))]
mod kernel;
#[cfg(target_os = "linux")]
mod links;
mod losses;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod netlink;
mod parse;
mod pause;
#[cfg(all(target_os = "linux", feature = "bpf"))]
mod probe;
#[cfg(target_os = "linux")]
mod process;
mod ration;
#[cfg(target_os = "linux")]
mod rounds;
mod sample;
#[cfg(target_os = "linux")]
mod spare;
mod split;
mod table;
mod threads;
mod wire;

pub use advice::{Advice, Finding, findings, findings_with};
#[cfg(target_os = "linux")]
pub use clock::Clock;
pub use connection::{Connection, Role};
#[cfg(target_os = "linux")]
pub use diag::Diag;
pub use events::{Happened, Limit, What};
pub use facts::{Facts, Waits};
pub use judge::{Stretch, judge};
#[cfg(all(target_os = "linux", feature = "bpf"))]
pub use kernel::{Events, Kernel};
#[cfg(target_os = "linux")]
pub use links::Links;
pub use losses::Ended;
#[cfg(target_os = "linux")]
pub use namespace::{namespace_number, proc_text, process_time, processor_time, within};
pub use parse::{Parsed, parse};
#[cfg(all(target_os = "linux", feature = "bpf"))]
pub use probe::{Asked, Probe};
#[cfg(target_os = "linux")]
pub use process::Processes;
pub use ration::Ration;
#[cfg(target_os = "linux")]
pub use rounds::Rounds;
pub use sample::{Congestion, Info, Memory, Process, Sample, State};
#[cfg(target_os = "linux")]
use spare::Spare;
pub use split::{Share, Split, Where};
pub use table::{Listener, Snapshot, Table, worst_first};
pub use threads::{Call, Stuck, Threads, Waiting, control_groups, elsewhere, stuck};

/// Why the kernel could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Something that this kernel or user has not.
    #[error("{what}: {why}; {advice}")]
    Missing {
        /// What was attempted.
        what: String,
        /// What the kernel said.
        why: String,
        /// What the reader can do.
        advice: &'static str,
    },
    /// Something failed that should not.
    #[error("{what}: {why}")]
    Failed {
        /// What was attempted.
        what: String,
        /// What the kernel said.
        why: std::io::Error,
    },
}
