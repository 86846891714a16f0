//! Two hosts made out of network namespaces, joined by an emulated link; a client and a server over the kernel's own
//! TCP; captures at both ends; and the truth about what happened: application events, `tcp_info`, counters, the link's
//! own log.
//!
//! Takes a [`Scenario`], gives a [`Run`]; from the truth recorded in it, and from nothing an analysis found,
//! a [`Label`] says what its time went to. Nothing outside of the namespaces is changed, and they have no
//! name: when the process ends, however it ends, the kernel removes them with their devices, routes and
//! sockets.
//!
//! Root, `/dev/net/tun` and the command `ip` are needed:
//!
//! ```
//! use tcpwhy_lab::{LabError, Scenario, run};
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     title = "a pause within a request"
//!     link.rtt_ms = 20
//!     client.nodelay = true
//!
//!     [workload]
//!     request = [200, { pause_ms = 41 }, 800]
//!     response = [100]
//!     "#,
//!     &[],
//! )?;
//! match run(&scenario) {
//!     // Captures of both ends, what was measured, the label.
//!     Ok(run) => {
//!         assert_eq!(run.exchanges.len(), 1);
//!         let folder = std::env::temp_dir().join(format!("tcpwhy-lab-example-{}", std::process::id()));
//!         run.write(&folder)?;
//!         std::fs::remove_dir_all(&folder)?;
//!     }
//!     Err(LabError::Missing { what, why, advice }) => eprintln!("{what}: {why}; {advice}"),
//!     Err(other) => return Err(other.into()),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calibrate;
mod clock;
mod connects;
mod endpoints;
mod experiment;
mod figures;
mod formula;
mod groups;
mod host;
mod kept;
mod label;
mod link;
mod machine;
mod matrix;
mod measure;
mod network;
pub mod own;
mod processes;
mod programs;
mod run;
mod scenario;
#[expect(unsafe_code, reason = "system calls without a safe function in the standard library")]
mod sys;
mod tcp_info;
mod verdict;
mod watch;
mod words;

pub use calibrate::{Calibration, calibrate};
pub use connects::Connect;
pub use endpoints::{Event, Op};
pub use experiment::{run, run_until};
pub use figures::median;
pub use formula::Formula;
pub use label::{Check, Held, Label, Part, Tap, Told, held};
pub use link::{Lateness, Lost, Reason, Record, Tally};
pub use machine::Machine;
pub use matrix::{Cell, cells};
pub use measure::{Measure, Statistic, Subject, Unit};
pub use network::{Network, Traffic};
pub use processes::Process;
pub use run::{Exchange, Run};
pub use scenario::{
    Against, Bind, Connects, Control, Expect, Hop, Host, Kernel, Need, Programs, Scenario, Stated, Sweep, Way,
};
pub use sys::ring::{Captured, Device, Ring};
pub use tcp_info::TcpInfo;
pub use verdict::{Figures, Verdict};
pub use watch::{Sample, When};

/// Why an experiment could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario makes no sense.
    #[error("scenario: {0}")]
    Scenario(String),
    /// This machine lacks something.
    #[error("{what}: {why}; {advice}")]
    Missing {
        /// What was attempted.
        what: String,
        /// What the kernel said.
        why: String,
        /// What the reader can do.
        advice: String,
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

/// A new file in place of whatever has its name: a symbolic link there, which somebody may have put, is not followed.
pub fn new_file(path: &std::path::Path) -> std::io::Result<std::fs::File> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => std::fs::File::create_new(path),
    }
}

impl LabError {
    fn missing(what: impl Into<String>, why: impl ToString, advice: impl Into<String>) -> LabError {
        LabError::Missing { what: what.into(), why: why.to_string(), advice: advice.into() }
    }

    fn failed(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> LabError {
        move |why| LabError::Failed { what: what.into(), why }
    }
}
