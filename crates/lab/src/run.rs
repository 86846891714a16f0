//! What a run left, as a value.

use crate::connects::Connect;
use crate::endpoints::{Event, Op};
use crate::network::Traffic;
use crate::scenario::Scenario;
use crate::watch::Sample;
use serde::{Deserialize, Serialize};
use std::fmt;
use tcpwhy_base::Nanos;

/// What a run left: the captures, and the truth about how they came to be. Serialised, it is the truth alone. Times
/// are nanoseconds since the Unix epoch, on the captures' clock.
#[derive(Debug, Serialize)]
pub struct Run {
    /// The experiment.
    pub scenario: Scenario,
    /// From the first `connect` to the last byte that an application read.
    pub elapsed_ns: i64,
    /// The time limit, or the user, ended the run.
    pub cut_off: bool,
    /// Connections that were only made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connects: Vec<Connect>,
    /// Times in seconds that client programs printed, or took.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub printed_s: Vec<f64>,
    /// Each request and its answer as the client's application saw them.
    pub exchanges: Vec<Exchange>,
    /// What link and hosts say.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// What the applications did, in order.
    pub events: Vec<Event>,
    /// Socket states, in order.
    pub samples: Vec<Sample>,
}

/// A request and its answer as the client's application saw them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exchange {
    /// The client's port.
    pub port: u16,
    /// Which of the connection, from 0.
    pub request: u32,
    /// The first write was called (the server speaks first: the first read).
    pub start_ns: i64,
    /// The last read returned (one-way up: the server's).
    pub end_ns: i64,
    /// All of request and answer arrived.
    pub complete: bool,
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unfinished = if self.complete { "" } else { " (unfinished)" };
        write!(f, "{}{unfinished}", Nanos(self.end_ns - self.start_ns))
    }
}

impl Run {
    /// Payload bytes that applications read.
    pub fn payload(&self) -> u64 {
        self.events.iter().filter(|e| e.op == Op::Read).filter_map(|e| e.bytes).sum()
    }

    /// A few lines for a person.
    pub fn summary(&self) -> String {
        let t = &self.traffic;
        let mut text = format!("{}\n  {} in all", self.scenario.title, Nanos(self.elapsed_ns));
        if self.cut_off {
            text += " (cut off at the time limit)";
        }
        let each: Vec<String> = self.exchanges.iter().take(8).map(Exchange::to_string).collect();
        let more = if self.exchanges.len() > each.len() { ", …" } else { "" };
        text += &format!("; {} exchanges: {}{more}\n", self.exchanges.len(), each.join(", "));
        for (name, tally) in [("up", &t.up), ("down", &t.down)] {
            text += &format!("  {name}: {} packets, lost {:?}", tally.packets, tally.lost);
            if tally.queue_max_ns > 0 {
                let (max, mean) = (Nanos(tally.queue_max_ns), Nanos(tally.queue_mean_ns));
                text += &format!(", queue at most {} bytes = {max}, mean {mean}", tally.queue_max_bytes);
            }
            text += "\n";
        }
        for error in self.events.iter().filter(|e| e.error.is_some()).take(4) {
            text += &format!(
                "  {} {:?}: {}\n",
                error.side.name(),
                error.op,
                error.error.as_deref().unwrap_or("")
            );
        }
        text += &format!(
            "  link late by {} (median), {} (99 %), {} at most; stolen {:.1} %, busy {:.0} %{}\n",
            Nanos(t.lateness.p50_ns),
            Nanos(t.lateness.p99_ns),
            Nanos(t.lateness.max_ns),
            t.machine.steal * 100.0,
            t.machine.busy * 100.0,
            if t.disturbed { "; DISTURBED" } else { "" },
        );
        text
    }
}
