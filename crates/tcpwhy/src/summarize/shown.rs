//! The document of `--json`: its own types, so that an inner rename changes no output (docs/schema/summarize-1.md).

use super::{Group, Server, Slow, Summary};
use crate::args::Summarize;
use serde::Serialize;
use std::collections::BTreeMap;
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_report::rfc3339;

/// Version of the document.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
pub(super) struct Document {
    tool: &'static str,
    version: &'static str,
    schema: u32,
    captures: usize,
    #[serde(flatten)]
    all: Sums,
    servers: Vec<ServerRow>,
    servers_omitted: usize,
    days: Vec<DayRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<Split>,
    worst: Vec<Worst>,
}

#[derive(Serialize)]
struct Sums {
    connections: u64,
    exchanges: u64,
    request_ns: i64,
    budget: BTreeMap<&'static str, i64>,
    idle_budget: BTreeMap<&'static str, i64>,
    median_ns: Option<i64>,
    p95_ns: Option<i64>,
    longest_ns: i64,
}

#[derive(Serialize)]
struct ServerRow {
    server: String,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Serialize)]
struct DayRow {
    day: String,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Serialize)]
struct Split {
    at: String,
    before: Sums,
    after: Sums,
}

#[derive(Serialize)]
struct Worst {
    capture: String,
    connection: i64,
    exchange: i64,
    server: String,
    start: String,
    duration_ns: i64,
    cause: Option<&'static str>,
    cause_ns: i64,
}

impl Document {
    pub(super) fn new(summary: &Summary, args: &Summarize) -> Document {
        let ranked = summary.ranked();
        let row = |(server, group): &(&Server, &Group)| ServerRow {
            server: endpoint(server),
            sums: Sums::new(group),
        };
        Document {
            tool: "tcpwhy",
            version: env!("CARGO_PKG_VERSION"),
            schema: SCHEMA,
            captures: summary.captures.len(),
            all: Sums::new(&summary.all),
            servers: ranked.iter().take(args.top).map(row).collect(),
            servers_omitted: ranked.len().saturating_sub(args.top),
            days: summary
                .days
                .iter()
                .map(|(day, g)| DayRow { day: day.clone(), sums: Sums::new(g) })
                .collect(),
            split: args.split.as_ref().map(|at| {
                let [before, after] = summary.split(at);
                Split { at: at.clone(), before: Sums::new(&before), after: Sums::new(&after) }
            }),
            worst: summary.worst.iter().map(Worst::new).collect(),
        }
    }
}

impl Sums {
    fn new(group: &Group) -> Sums {
        Sums {
            connections: group.connections,
            exchanges: group.times.count(),
            request_ns: group.total().0,
            budget: budget(&group.requests),
            idle_budget: budget(&group.idle),
            median_ns: group.times.percentile(50).map(|t| t.0),
            p95_ns: group.times.percentile(95).map(|t| t.0),
            longest_ns: group.times.longest().0,
        }
    }
}

impl Worst {
    fn new(slow: &Slow) -> Worst {
        Worst {
            capture: slow.capture.to_string(),
            connection: slow.connection,
            exchange: slow.exchange,
            server: endpoint(&slow.server),
            start: rfc3339(slow.start),
            duration_ns: slow.duration.0,
            cause: slow.most.map(|m| m.0.id()),
            cause_ns: slow.most.map_or(0, |m| m.1.0),
        }
    }
}

fn budget(times: &BTreeMap<Cause, Nanos>) -> BTreeMap<&'static str, i64> {
    times.iter().map(|(cause, time)| (cause.id(), time.0)).collect()
}

/// Address and port as they are written.
pub(super) fn endpoint((ip, port): &Server) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}
