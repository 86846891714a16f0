//! The plain data that every other crate of tcpwhy speaks: time, sequence numbers, segments, the table of
//! causes, the table of fixes, workloads, and the path and hosts over which they run. No I/O, no clock, no allocation
//! but for text that a table renders.
//!
//! Every stretch of time of a connection has a cause, and a row of one table says all that is to be said of it:
//!
//! ```
//! use tcpwhy_base::{Cause, Class, Evidence, Figures, Likeness, Nanos};
//!
//! let cause = Cause::from_id("send_buffer").expect("an id of the table");
//! let row = cause.info();
//! assert_eq!(row.class, Class::Tcp);
//! assert_eq!(row.what, "the send buffer was full of unacknowledged data while the windows had room");
//!
//! // What speaks for it, and what it is confused with beside the sender.
//! assert_eq!(row.evidence, [Evidence::Flights, Evidence::Retransmissions]);
//! assert!(row.looks_like(&[Likeness::Close]).eq([Cause::CongestionWindow]));
//!
//! // What to do, with the figures of a capture.
//! let fix = row.fixes[0].info();
//! let figures = Figures(vec![("have_bytes", "30600".into()), ("need_bytes", "250000".into())]);
//! let lines: Vec<String> = fix.how.iter().filter_map(|how| figures.fill(how.text)).collect();
//! assert!(lines.iter().any(|line| line.contains("250000")));
//!
//! assert_eq!(Nanos::micros(17_630).to_string(), "17.6 ms");
//! ```

mod asked;
mod cause;
mod end;
mod fix;
pub mod name;
mod observe;
pub mod program;
pub mod protocol;
mod random;
mod scenario;
mod segment;
mod seq;
mod short;
pub mod tcp_info;
mod time;
mod trace_parent;
mod workload;

pub use asked::Asked;
pub use cause::{
    Alike, CAUSES, Cause, CauseInfo, Class, Evidence, Flagged, Group, Kind, Likeness, Owner, SizedBy,
};
pub use end::{End, Ends};
pub use fix::{FIXES, Figures, FixId, FixInfo, How, OVERSHOOT, Place, Shown, Unless};
pub use observe::{
    Held, Observation, SocketChange, SocketEvent, SocketState, Source, Timer, TooBig, Watched, Witness,
};
pub use program::{Program, Told};
pub use random::Random;
pub use scenario::{Chosen, Cork, Host, Link, LossOf, Reorder, Scenario, What};
pub use segment::{Endpoint, IpId, Part, Segment, TcpFlags, TcpOptions, Tls, Trouble};
pub use seq::Seq;
pub use short::{EIGHT, Short, all_eight_digits, eight_digits, four_digits};
pub use time::Nanos;
pub use trace_parent::{MOST as MOST_HEADERS, TraceParent};
pub use workload::{Step, Turn, Workload};

/// Which of the two ends of a connection, or the path between them, something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The end that sent the SYN (or is inferred to have).
    Client,
    /// The end that listened.
    Server,
    /// The path between them.
    Network,
}

impl Side {
    /// The name in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
            Side::Network => "network",
        }
    }
}
