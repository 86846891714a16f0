//! What `tcpwhy run --json` says beside the answer about the capture: how the command ended, and figures of
//! its traffic that do not depend on the machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The member `run` of the document. Within schema 1 changes are additive.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "tcpwhy run, schema 1")]
pub struct Run {
    /// The command and its arguments, as a shell has to be told them; a long one is cut.
    pub command: String,
    /// With `--repeat` several, in their order.
    pub runs: Vec<Once>,
    /// With which tcpwhy ends.
    pub exit_code: u8,
    /// Why that is not the command's own, a sentence each: conditions and figures that did not hold.
    pub failed: Vec<String>,
    /// What lay between the ends; null: loopback as it is.
    pub link: Option<Link>,
    /// Where the command tried to reach beyond its network: address and port, with what is special about it.
    pub outside: Vec<String>,
    /// Names of processes that the command left behind, and that were ended.
    pub left_behind: Vec<String>,
    /// Packets that were not captured.
    pub missed: u64,
    /// What a distance would cost; null where there is one already, or nothing to tell it from.
    pub at_a_distance: Option<Far>,
    /// What `--baseline` guards.
    pub figures: Figures,
    /// Time of requests by cause, which `--compare` compares.
    pub causes_ns: BTreeMap<String, i64>,
}

/// One run of the command.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Once {
    /// From its start to its end.
    pub duration_ns: i64,
    /// What it returned; null if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// The emulated link.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Round trip time that was asked for.
    pub rtt_ns: i64,
    /// Bits a second of each direction.
    pub rate_bps: Option<f64>,
    /// Share of packets that was to be lost at random.
    pub loss: Option<f64>,
    /// Largest packet.
    pub mtu: u64,
    /// Packets that it delivered.
    pub delivered: u64,
    /// By how much it was late: median.
    pub late_p50_ns: i64,
    /// 99th percentile.
    pub late_p99_ns: i64,
    /// The machine was too busy for exact times.
    pub disturbed: bool,
    /// Packets that it lost, for whatever reason.
    pub lost: u64,
}

/// What a distance would cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Far {
    /// Round trips in a row, at least.
    pub round_trips_least: u64,
    /// At most.
    pub round_trips_most: u64,
    /// At each round trip time.
    pub costs: Vec<FarCost>,
    /// Share of the kinds of exchanges that the model replayed; of others only round trips are counted.
    pub replayed: f64,
}

/// At one round trip time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FarCost {
    /// The round trip time.
    pub rtt_ns: i64,
    /// How much longer all runs together take, at least.
    pub more_least_ns: i64,
    /// At most.
    pub more_most_ns: i64,
}

/// What does not depend on the machine, as far as the command does the same each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Connections opened.
    pub connections: u64,
    /// Requests with an answer; those that overlap on one connection are one.
    pub requests: u64,
    /// Round trips in a row; null where that does not show, or there was a distance.
    pub round_trips_in_a_row: Option<u64>,
    /// Payload of both directions.
    pub bytes: u64,
    /// Waits of 10 ms or more that TCP made, by cause.
    pub stalls: BTreeMap<String, u64>,
}

/// The JSON Schema of [`Run`].
pub fn schema() -> String {
    crate::schema::text::<Run>()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_committed() {
        crate::schema::tests::is_committed("run-1.json", &super::schema());
    }
}
