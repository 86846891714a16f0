//! What is told of a run, by the process inside to the one outside.

use crate::link::Lateness;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// How the command ended and what happened beside it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// In their order.
    pub runs: Vec<Ended>,
    /// Where it tried to reach beyond its network, and packets.
    pub outside: Vec<(Outside, u64)>,
    /// Names of processes that it left behind and that were ended.
    pub left: Vec<String>,
    /// The user asked for its end twice, and it was killed.
    pub forced: bool,
    /// How late the link delivered.
    pub lateness: Lateness,
    /// The link was late by more than 3 % of the round trip time (and 0.2 ms) for more than one packet of a
    /// hundred, or did not run for more than 2 % of the time: times are not exact.
    pub disturbed: bool,
    /// The link ran at real-time priority.
    pub real_time: bool,
    /// What the link lost.
    pub lost: Lost,
    /// Packets that were not captured: the machine was too busy.
    pub missed: u64,
}

/// One run of the command.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// From its start to its end.
    pub duration_ns: i64,
    /// What it returned.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Ended {
    /// As shells say it: what it returned, or 128 and the number of the signal.
    pub fn exit(&self) -> u8 {
        let code = self.code.or(self.signal.map(|s| 128 + s)).unwrap_or(255);
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

/// Somebody beyond the network of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Outside {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its port; none for what is neither TCP nor UDP.
    pub port: Option<u16>,
    /// By UDP.
    pub udp: bool,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(port) = self.port else { return write!(f, "{}", self.address) };
        let what = match (self.udp, port) {
            (true, 53) => " (UDP, a name server)",
            (true, _) => " (UDP)",
            _ => "",
        };
        write!(f, "{}:{port}{what}", self.address)
    }
}

/// Packets that the link lost, by reason.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Lost {
    /// By the dice.
    pub chance: u64,
    /// The queue was full.
    pub queue: u64,
    /// A kernel or a full buffer of ours refused them.
    pub refused: u64,
}

/// Why there was no run.
#[derive(Clone, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum NotRun {
    /// The machine or its rules.
    #[error("{0}")]
    Machine(String),
    /// There is no such command.
    #[error("{0}")]
    NotFound(String),
    /// It cannot be executed.
    #[error("{0}")]
    NotRunnable(String),
}

/// What goes through the pipe, a line each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    Started,
    Not(NotRun),
    Done(Report),
}
