//! `tcpwhy run`.

use super::{Beside, Explain};
use crate::threshold::Threshold;
use crate::units;
use crate::words::CauseParser;
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use tcpwhy_base::{Cause, Nanos};

/// What the exit codes mean here.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: that of the command (128 + n if signal n ended it); 4 if what a --fail-if names, or more than a --baseline \
allows, was found and the command returned 0; 125 tcpwhy failed, 126 the command cannot be executed, 127 there is no such command; 2 usage, before \
anything was run.";

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Round trip time between the two ends; without --server loopback itself takes that long (127.0.0.1; ::1
    /// is then off)
    #[arg(long, value_name = "TIME", value_parser = units::on_the_way(1), help_heading = "Distance")]
    pub(crate) rtt: Option<Nanos>,
    /// Rate of each direction, in IP bytes (100mbit, 1.5gbit, 256kbit)
    #[arg(long, value_name = "RATE", value_parser = units::rate, help_heading = "Distance")]
    pub(crate) rate: Option<f64>,
    /// What may wait for the rate; the rest is lost (64kb, 1mb) [default: what the rate carries in a round
    /// trip, at least 64 KiB]
    #[arg(long, value_name = "SIZE", value_parser = units::size, requires = "rate", help_heading = "Distance")]
    pub(crate) queue: Option<u64>,
    /// Random loss in both directions (0.1%)
    #[arg(long, value_name = "SHARE", value_parser = units::quantity::share, help_heading = "Distance")]
    pub(crate) loss: Option<f64>,
    /// What losses are drawn from: with the same number the dice fall the same way [default: 1, each time]
    #[arg(long, value_name = "N", value_parser = units::whole::<u32>(0, u64::MAX), requires = "loss", help_heading = "Distance")]
    pub(crate) seed: Option<u32>,
    /// Largest IP packet at a distance [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = units::whole::<u32>(576, 9000), help_heading = "Distance")]
    pub(crate) mtu: Option<u32>,
    /// A shell command on a host of its own ($TCPWHY_SERVER, 10.77.0.2); COMMAND starts when it listens on a port
    #[arg(long, value_name = "COMMAND", help_heading = "Distance")]
    pub(crate) server: Option<OsString>,
    /// Run it N times, one after the other, until one fails
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = units::whole::<u32>(1, u64::MAX))]
    pub(crate) repeat: u32,

    /// End with code 4 if a cause, or all of an owner (tcp, application, path; also: inherent, unknown),
    /// holds more than a share of the time of requests, or a time, and the command returned 0:
    /// nagle_delayed_ack>5%, tcp>200ms
    #[arg(long, value_name = "CONDITION", help_heading = "Questions")]
    pub(crate) fail_if: Vec<Threshold>,
    /// Guard figures that do not depend on the machine (round trips in a row, stalls by cause, bytes,
    /// connections): the first run writes FILE, later ones end with code 4 if one has grown by more than a
    /// tenth
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Questions")]
    pub(crate) baseline: Option<PathBuf>,
    /// Say what has changed since an earlier run: FILE is what --json -o FILE wrote
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Questions")]
    pub(crate) compare: Option<PathBuf>,
    /// Say what speaks for a cause and what is missing for it
    #[arg(long, value_name = "CAUSE", value_parser = CauseParser, hide_possible_values = true, conflicts_with = "json", help_heading = "Questions")]
    pub(crate) why_not: Option<Cause>,

    /// One JSON document (docs/schema/explain-1.json), on standard output after that of the command, or in --output
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write the answer to FILE instead of standard error, whole or not at all; what was there is replaced
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) beside: Beside,
    /// Also write DIR/junit.xml and DIR/summary.md, and tell GitHub, Azure or TeamCity where they run this
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub(crate) ci: Option<PathBuf>,
    /// Keep the capture, as DIR/run.pcap
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub(crate) keep: Option<PathBuf>,
    /// The verdict and the findings only
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub(crate) quiet: bool,
    /// All fixes and warnings in full
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Rows in tables [default: 10; 3 of the slowest exchanges]
    #[arg(long, value_name = "N", value_parser = units::whole::<usize>(0, u64::MAX), help_heading = "Output")]
    pub(crate) top: Option<usize>,
    /// List only exchanges that took longer (40ms, 1.5s, 200us)
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Output")]
    pub(crate) slower_than: Option<Nanos>,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

impl Run {
    /// What `explain` is asked about the capture: the questions and the output that were asked for here.
    pub(crate) fn explain(&self, capture: PathBuf) -> Explain {
        Explain {
            files: vec![capture],
            json: self.json,
            jsonl: false,
            output: self.output.clone(),
            svg: None,
            #[cfg(feature = "parquet")]
            parquet: None,
            beside: self.beside.clone(),
            quiet: self.quiet,
            verbose: self.verbose,
            top: self.top,
            absolute_times: false,
            exchanges: None,
            slower_than: self.slower_than,
            from: None,
            to: None,
            filter: None,
            connection: None,
            exchange: None,
            why_not: self.why_not,
            fail_if: Vec::new(),
            follow: false,
            apart: false,
        }
    }

    /// There is something between the ends.
    pub(crate) fn has_link(&self) -> bool {
        self.rtt.is_some()
            || self.rate.is_some()
            || self.loss.is_some()
            || self.mtu.is_some()
            || self.server.is_some()
    }
}
