//! One experiment from beginning to end.

use crate::connects::{self, Connect};
use crate::endpoints::{self, Event, Op, Shared};
use crate::groups::Groups;
use crate::label::Label;
use crate::network::{Network, Traffic};
use crate::scenario::Scenario;
use crate::watch::{POLL, Sample, Watch, lock};
use crate::{LabError, clock, groups, new_file, programs, watch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tcpwhy_base::{End, Nanos, Turn, Workload};

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

/// Makes the hosts and the link, runs the workload, and takes everything down.
pub fn run(scenario: &Scenario) -> Result<Run, LabError> {
    run_until(scenario, &AtomicBool::new(false))
}

/// The same, cut off when `stop` becomes true.
pub fn run_until(scenario: &Scenario, stop: &AtomicBool) -> Result<Run, LabError> {
    let w = &scenario.shared.workload;
    programs::remove_orphans();
    groups::remove_orphans();
    if let Some(p) = &scenario.programs {
        programs::installed(p)?;
    }
    let network = Network::new(scenario)?;
    let groups = Groups::new(scenario)?;
    let watch = Watch::default();
    let events = Mutex::new(Vec::new());
    let (mut made, mut printed_s) = (Vec::new(), Vec::new());
    let start = clock::now();
    let cut_off = if let Some(c) = &scenario.connects {
        connects::run(scenario, c, &network, &watch, stop, &mut made)?
    } else if let Some(p) = &scenario.programs {
        programs::run(scenario, p, &network, stop, &mut printed_s)?
    } else {
        applications(&Shared { scenario, watch: &watch, events: &events }, &network, &groups, stop)?
    };
    let took = clock::now() - start;
    let traffic = network.finish()?;
    let mut events = std::mem::take(&mut *lock(&events));
    events.sort_by_key(|e| (e.start_ns, e.end_ns));
    Ok(Run {
        scenario: scenario.clone(),
        elapsed_ns: if events.is_empty() { took.0 } else { elapsed(&events) },
        cut_off,
        connects: made,
        printed_s,
        exchanges: exchanges(&events, w),
        traffic,
        events,
        samples: watch.samples(),
    })
}

/// Runs client and server to their end; says whether the time limit cut them off.
fn applications(
    shared: &Shared<'_>,
    network: &Network,
    groups: &Groups,
    stop: &AtomicBool,
) -> Result<bool, LabError> {
    let scenario = shared.scenario;
    let limit = clock::now() + scenario.shared.limit;
    let mut cut_off = false;
    thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let server = watch::thread().spawn_scoped(scope, move || {
            let made = network
                .enter(End::Server)
                .and_then(|()| groups.join(End::Server))
                .and_then(|()| endpoints::listener(shared).map_err(LabError::failed("listen")));
            match made {
                Ok(listener) => {
                    let _ = ready.send(Ok(()));
                    endpoints::server(scope, shared, &listener);
                }
                Err(e) => {
                    let _ = ready.send(Err(e));
                }
            }
        });
        let server = server.map_err(LabError::failed("start a thread"))?;
        let listening = is_ready.recv().unwrap_or_else(|_| {
            Err(LabError::Failed { what: "start the server".into(), why: io::Error::other("panicked") })
        });
        let over = || clock::now() > limit || stop.load(Relaxed) || shared.watch.stop.load(Relaxed);
        let mut clients = Vec::new();
        for n in 0..if listening.is_ok() { scenario.shared.connections } else { 0 } {
            let stagger = scenario.shared.stagger.times(i64::from(n));
            let client = move || {
                network.enter(End::Client)?;
                groups.join(End::Client)?;
                if shared.watch.nap(clock::now() + stagger) {
                    endpoints::client(shared);
                }
                Ok(())
            };
            match watch::thread().spawn_scoped(scope, client) {
                Ok(client) => clients.push(client),
                Err(e) => shared.watch.refuse(e),
            }
            if over() {
                break;
            }
        }
        if let Err(e) = watch::thread().spawn_scoped(scope, || shared.watch.sample_all(scenario)) {
            shared.watch.refuse(e);
        }
        while clients.iter().any(|c| !c.is_finished()) {
            thread::sleep(POLL);
            if over() {
                cut_off = true;
                break;
            }
        }
        // The server's connections end with the client's; give them the time that their last packets need.
        if !cut_off {
            let patience = Duration::from_millis(50) + clock::duration(scenario.shared.rtt().times(4));
            thread::sleep(patience);
        }
        shared.watch.end_all();
        let _ = server.join();
        for client in clients {
            match client.join() {
                Ok(result) => result?,
                Err(_) => {
                    let why = io::Error::other("panicked");
                    return Err(LabError::Failed { what: "the client".into(), why });
                }
            }
        }
        listening
    })?;
    match shared.watch.refused() {
        Some(e) => Err(LabError::missing(
            format!("{} connections at once", scenario.shared.connections),
            e,
            "each takes a thread and buffers at both ends: raise the limit (ulimit -u, ulimit -v, pids.max), or make fewer \
             with --set workload.connections=…",
        )),
        None => Ok(cut_off),
    }
}

/// Calls that move payload, or tried to.
fn moves(e: &&Event) -> bool {
    matches!(e.op, Op::Write | Op::Read) && (e.bytes != Some(0) || e.error.is_some())
}

fn elapsed(events: &[Event]) -> i64 {
    let start = events.iter().find(|e| e.op == Op::Connect).map_or(0, |e| e.start_ns);
    let client = |e: &&Event| moves(e) && e.side == End::Client || e.op == Op::Connect;
    // Of the server only what arrived: its read of a request that never comes is no part of the work.
    let server = |e: &&Event| e.side == End::Server && e.op == Op::Read && e.bytes.is_some_and(|n| n > 0);
    events.iter().filter(|e| client(e) || server(e)).map(|e| e.end_ns - start).max().unwrap_or(0)
}

fn exchanges(events: &[Event], w: &Workload) -> Vec<Exchange> {
    let mut all: BTreeMap<(u16, u32), (Exchange, u64, u64)> = BTreeMap::new();
    for e in events.iter().filter(moves).filter(|e| e.side == End::Client) {
        let new = Exchange {
            port: e.port,
            request: e.request,
            start_ns: e.start_ns,
            end_ns: e.end_ns,
            complete: false,
        };
        let (exchange, _, down) = all.entry((e.port, e.request)).or_insert((new, 0, 0));
        exchange.end_ns = exchange.end_ns.max(e.end_ns);
        if e.op == Op::Read {
            *down += e.bytes.unwrap_or(0);
        }
    }
    // The end of a request without an answer is known to the server only.
    let arrived = |e: &&Event| e.side == End::Server && e.op == Op::Read && e.bytes.is_some_and(|n| n > 0);
    for e in events.iter().filter(arrived) {
        if let Some((exchange, up, _)) = all.get_mut(&(e.port, e.request)) {
            exchange.end_ns = exchange.end_ns.max(e.end_ns);
            *up += e.bytes.unwrap_or(0);
        }
    }
    let mut all: Vec<Exchange> = all
        .into_values()
        .map(|(exchange, up, down)| {
            let turn = w.turn(exchange.request as usize);
            let whole = |t: &Turn| up == Turn::bytes(&t.request) && down == Turn::bytes(&t.response);
            let complete = turn.is_some_and(whole);
            Exchange { complete, ..exchange }
        })
        .collect();
    all.sort_by_key(|e| e.start_ns);
    all
}

impl Run {
    /// Payload bytes that applications read.
    pub fn payload(&self) -> u64 {
        self.events.iter().filter(|e| e.op == Op::Read).filter_map(|e| e.bytes).sum()
    }

    /// Writes `cap.client.pcap`, `cap.server.pcap`, `meta.json` and `label.json` into a directory, made if need be.
    /// The label of real programs only excludes causes: nobody wrote down what they called.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        self.traffic.write_captures(directory)?;
        let mut meta = BufWriter::new(new_file(&directory.join("meta.json"))?);
        serde_json::to_writer(&mut meta, self)?;
        meta.write_all(b"\n")?;
        meta.flush()?;
        Label::of(self).map_err(io::Error::other)?.write(directory)
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
