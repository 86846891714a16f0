//! `tcpwhy watch`.

use crate::units;
use crate::words::CauseParser;
use clap::{Args, ValueHint};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tcpwhy_base::{Cause, Nanos};

/// What the exit codes mean here.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done (--once, or q in the terminal), 2 usage, 3 the kernel could not be asked, 130 interrupted (^C or \
SIGTERM; what was seen until then is printed).";

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Connections with this port at either end, and listeners on it
    #[arg(long, value_name = "PORT", value_parser = units::whole::<u16>(1, 65_535), help_heading = "Selection")]
    pub(crate) port: Option<u16>,
    /// Connections and listeners of this process
    #[arg(long, value_name = "PID", value_parser = units::whole::<u32>(1, u64::MAX), help_heading = "Selection")]
    pub(crate) pid: Option<u32>,
    /// Connections and listeners of processes in this control group or below it: as in /proc/PID/cgroup, or
    /// below /sys/fs/cgroup
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath, help_heading = "Selection")]
    pub(crate) cgroup: Option<String>,
    /// Connections that spent at least 5 % of the interval on this
    #[arg(long, value_name = "CAUSE", value_parser = CauseParser, hide_possible_values = true, help_heading = "Selection")]
    pub(crate) cause: Option<Cause>,
    /// Connections that lost more than this in the interval to what can be avoided (40ms, 1.5s)
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Selection")]
    pub(crate) slower_than: Option<Nanos>,
    /// Of another network namespace: a file such as /proc/PID/ns/net or /run/netns/NAME (needs root)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Selection")]
    pub(crate) netns: Option<PathBuf>,

    /// How often the answer is made anew; sockets are looked at far more often
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "1s")]
    pub(crate) interval: Nanos,
    /// Attach to no kernel events, which take CAP_BPF and CAP_PERFMON: only estimate
    #[arg(long)]
    pub(crate) sampled: bool,
    /// Listen to all kernel events that something waits for, whatever that costs; else programs in the kernel
    /// take at most a two-hundredth of the processors, and samples tell of the rest
    #[cfg(feature = "bpf")]
    #[arg(long, conflicts_with = "sampled")]
    pub(crate) all_events: bool,
    /// A line for each wait as it ends, until ^C: writers without room in their buffer (for more than 10 ms,
    /// or --slower-than), timers that send again. Takes CAP_BPF and CAP_PERFMON
    #[cfg(feature = "bpf")]
    #[arg(long, conflicts_with_all = ["once", "json", "jsonl", "cause", "sampled", "verbose", "metrics"])]
    #[cfg_attr(feature = "parquet", arg(conflicts_with = "parquet"))]
    pub(crate) events: bool,
    /// One interval, then end
    #[arg(long)]
    pub(crate) once: bool,

    /// Serve OpenMetrics to Prometheus at http://ADDRESS/metrics until ^C, and print nothing (with --jsonl,
    /// only those lines); a port alone is one of this host's loopback (docs/watch.md)
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with_all = ["once", "json", "cause", "slower_than", "verbose"], help_heading = "Output")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Write tables into this folder, a set of files for each hour, and print nothing (with --jsonl, only
    /// those lines); until ^C or --once (docs/schema/tables-1.md)
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["json", "cause", "slower_than", "verbose"], help_heading = "Output")]
    pub(crate) parquet: Option<PathBuf>,
    /// One JSON document of the last interval (docs/schema/watch-1.json): with --once, or when interrupted
    #[arg(long, conflicts_with = "jsonl", help_heading = "Output")]
    pub(crate) json: bool,
    /// A JSON object a line for each connection that ends (docs/schema/lines.md); at the end those still open
    #[arg(long, help_heading = "Output")]
    pub(crate) jsonl: bool,
    /// All fixes, listeners and what cannot be seen in full
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Connections that are listed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = units::whole::<usize>(0, u64::MAX), help_heading = "Output")]
    pub(crate) top: usize,
}

/// Long enough for a few samples, short enough to be waited for.
fn interval(text: &str) -> Result<Nanos, String> {
    let interval = units::duration(text)?;
    if (Nanos::millis(100)..=Nanos::secs(3600)).contains(&interval) {
        Ok(interval)
    } else {
        Err("the interval is from 100ms to 1h".into())
    }
}

/// An address with a port, or a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = || Some(SocketAddr::from((Ipv4Addr::LOCALHOST, text.parse::<u16>().ok()?)));
    text.parse().ok().or_else(port).ok_or_else(|| "an address and a port, such as 127.0.0.1:9469".into())
}
