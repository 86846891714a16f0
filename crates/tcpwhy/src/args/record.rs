//! `tcpwhy record`.

use crate::units;
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use tcpwhy_base::Nanos;

/// What the exit codes mean here.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done, or ^C without --for and COMMAND; with COMMAND its own (128 + n if signal n ended it; 126 it cannot be \
executed, 127 there is no such command); 2 usage, 3 packets could not be seen or the file not be written (what is there \
can be read), 130 interrupted.";

#[derive(Debug, Args)]
pub(crate) struct Record {
    /// Write to FILE; what was there is replaced
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// End after so long (60s, 5m) [default: at ^C, or when COMMAND ends]
    #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with = "command")]
    pub(crate) time: Option<Nanos>,
    /// Keep the last SIZE only, in memory (64mb), and write FILE when that is wanted: by --when, at SIGUSR1
    /// (each time another file), at the end
    #[arg(long, value_name = "SIZE", value_parser = ring)]
    pub(crate) ring: Option<u64>,
    /// With --ring: write FILE and end once an exchange has taken longer than that: 'exchange>200ms'
    #[arg(long, value_name = "CONDITION", value_parser = condition, requires = "ring")]
    pub(crate) when: Option<Nanos>,
    /// Keep what packets carry, too, as far as it fits into 1900 bytes of each
    #[arg(long)]
    pub(crate) payload: bool,
    /// Of another network namespace: a file such as /proc/PID/ns/net or /run/netns/NAME
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) netns: Option<PathBuf>,
    /// Only these packets, in the words of tcpdump: host 10.0.0.1 and port 443
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// Record while this runs
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// How long to record.
fn time(text: &str) -> Result<Nanos, String> {
    match units::duration(text)? {
        Nanos::ZERO => Err("nothing passes in no time; a minute is --for 60s".into()),
        time => Ok(time),
    }
}

/// `exchange>200ms`, and the time.
fn condition(text: &str) -> Result<Nanos, String> {
    let time = text.split_once('>').filter(|(what, _)| what.trim() == "exchange");
    let (_, time) = time.ok_or_else(|| format!("{text:?} is no condition: write it as 'exchange>200ms'"))?;
    units::duration(time.trim())
}

/// So much holds some hundred packets with what led to them.
const LEAST: u64 = 64_000;

/// What memory is to hold of a recording.
fn ring(text: &str) -> Result<u64, String> {
    let size = units::size(text)?;
    if size < LEAST { Err(format!("{text:?} holds hardly a packet: 64kb or more")) } else { Ok(size) }
}
