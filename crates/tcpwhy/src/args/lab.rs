//! The arguments of `tcpwhy lab`.

use crate::units;
use clap::{Args, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use tcpwhy_base::Nanos;

/// Two hosts made of network namespaces, an emulated link between them, and the kernel's own TCP.
#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the experiments
    List,
    /// Print an experiment: what it shows, what is expected of it, its file
    Show(Show),
    /// Make experiments and print what was measured beside what was published and what theory says
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Run any command behind an emulated link, as a shell does
    #[command(after_help = LINK_HELP)]
    Link(Box<Link>),
    /// Measure what the link of this machine costs and can
    Calibrate(Calibrate),
    /// Make a set of captures whose causes are known: causes by round trip times by sizes, at both ends
    #[command(after_help = DATASET_HELP)]
    Dataset(Dataset),
    /// Work out the labels of kept runs again
    Label(Relabel),
}

const DATASET_HELP: &str = "\
All of it takes about a quarter of an hour. What is in the folder already is kept, so that an interrupted set can be \
completed. Its data sheet is DIR/DATASHEET.md, its index DIR/index.json.

Exit codes: 0 done, 2 usage, 3 the machine lacks what the lab needs, 130 interrupted.";

const RUN_HELP: &str = "\
Keys for --set are those of the scenario's file: link.rtt_ms=100, client.nodelay=true, workload.requests=20, \
server.sysctl.net.ipv4.tcp_slow_start_after_idle=0. docs/lab.md lists them all.

A scenario file with [programs] is a program: its lines go to sh, as root, on this machine. Run only yours; tcpwhy lab show \
FILE prints it.

Exit codes: 0 every figure was as published, explained or expected (skipped ones do not count), 2 usage, 3 the \
machine lacks what a single experiment needs, 4 a figure was not as expected, 130 interrupted.";

const LINK_HELP: &str = "\
The command runs on the client's host, 10.77.0.1; the server's, 10.77.0.2, has what --server starts. Neither reaches \
anything else. The exit code is the command's, 2 for usage, 3 if the machine lacks something.

Process numbers are counted anew for each of the two (for the command only where standard input is no terminal), but /proc is this \
machine's: ps and pgrep show other numbers than kill takes. A /proc of their own: -- unshare --mount-proc COMMAND.

Example: tcpwhy lab link --delay 20ms --rate 100mbit --server 'python3 -m http.server' -- curl -s 10.77.0.2:8000";

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Name of an experiment, or a file
    #[arg(value_name = "NAME|FILE")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Names of experiments, files, or all
    #[arg(required = true, value_name = "NAME|FILE|all")]
    pub(crate) names: Vec<String>,
    /// Change a key of the scenario (can be given more than once)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Keep captures of both ends and what the kernel said: in DIR, or with several experiments in DIR/NAME
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) keep: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Make each experiment so many times; the median counts
    #[arg(long, value_name = "N", value_parser = units::whole::<u32>(1, 1000))]
    pub(crate) runs: Option<u32>,
    /// Published counts and sizes instead of reduced ones
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Dataset {
    /// Where to write
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
    /// Only runs whose name holds this (can be given more than once)
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// Name the runs and make none
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Relabel {
    /// Folders of kept runs
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folders: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Link {
    /// Delay of each direction (20ms, 500us)
    #[arg(long, value_name = "TIME", value_parser = units::on_the_way(2), conflicts_with = "rtt")]
    pub(crate) delay: Option<Nanos>,
    /// Round trip time; half of it in each direction
    #[arg(long, value_name = "TIME", value_parser = units::on_the_way(1))]
    pub(crate) rtt: Option<Nanos>,
    /// Added to the delay at random, up to this; the order stays
    #[arg(long, value_name = "TIME", value_parser = units::on_the_way(1))]
    pub(crate) jitter: Option<Nanos>,
    /// Rate of each direction, in IP bytes (100mbit, 1.5gbit, 256kbit)
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub(crate) rate: Option<f64>,
    /// What may wait for the rate; the rest is lost (64kb, 1mb)
    #[arg(long, value_name = "SIZE", value_parser = units::size, requires = "rate")]
    pub(crate) queue: Option<u64>,
    /// Random loss in both directions (1%)
    #[arg(long, value_name = "SHARE", value_parser = units::quantity::share)]
    pub(crate) loss: Option<f64>,
    /// What jitter and losses are drawn from: with the same number the dice fall the same way [default: 1, each time]
    #[arg(long, value_name = "N", value_parser = units::whole::<u32>(0, u64::MAX))]
    pub(crate) seed: Option<u32>,
    /// Largest IP packet that the hosts send
    #[arg(long, value_name = "BYTES", value_parser = units::whole::<u32>(68, 65535))]
    pub(crate) mtu: Option<u32>,
    /// Any other key of a scenario's link, client or server: link.down.loss=0.01, client.congestion=bbr
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// A shell command on the server's host; the client's starts when it listens on a port
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server: Option<String>,
    /// Keep captures of both ends
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) keep: Option<PathBuf>,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}
