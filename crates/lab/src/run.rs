//! One experiment from beginning to end.

use crate::endpoints::{self, Event, Op, Shared};
use crate::host::{self, CLIENT, Namespace, SERVER};
use crate::link::{Forwarder, Lateness, Lost, Passage, Pipe, Record, Tally};
use crate::machine::{self, Burners, Jiffies, Machine};
use crate::scenario::{Scenario, Workload};
use crate::watch::{POLL, Sample, Watch, lock};
use crate::{LabError, clock};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tcpwhy_base::Nanos;
use tcpwhy_capture::{Frame, Writer};

/// Raw IP.
const LINK_TYPE: u32 = 101;

/// What a run left: both captures and the truth.
#[derive(Debug)]
pub struct Run {
    /// At client and server.
    pub captures: [Vec<Record>; 2],
    /// Everything that is known of how it came about.
    pub truth: Truth,
}

/// What the applications, the kernel and the link say happened. Times are nanoseconds since the Unix epoch, on the
/// captures' clock.
#[derive(Debug, Serialize)]
pub struct Truth {
    /// The experiment.
    pub scenario: Scenario,
    /// From the first `connect` to the last byte that an application read.
    pub elapsed_ns: i64,
    /// The time limit ended the run.
    pub cut_off: bool,
    /// Each request and its answer as the client's application saw them.
    pub exchanges: Vec<Exchange>,
    /// What the link lost, in order.
    pub lost: Vec<Lost>,
    /// How late the link delivered.
    pub lateness: Lateness,
    /// Lateness beyond 5 % of the round trip time at the 99th percentile (and 0.2 ms), or stolen time above 5 %:
    /// figures of this run are not exact.
    pub disturbed: bool,
    /// What the link did, by direction.
    pub up: Tally,
    /// What the link did, by direction.
    pub down: Tally,
    /// Packets that a host's kernel refused.
    pub refused: u64,
    /// The machine.
    pub machine: Machine,
    /// Settings of the client's host.
    pub client_sysctls: BTreeMap<String, String>,
    /// Settings of the server's host that differ from the client's.
    pub server_sysctls: BTreeMap<String, String>,
    /// Counters of the client's host that moved.
    pub client_counters: BTreeMap<String, i64>,
    /// Counters of the server's host that moved.
    pub server_counters: BTreeMap<String, i64>,
    /// What the applications did, in order.
    pub events: Vec<Event>,
    /// Socket states, in order.
    pub samples: Vec<Sample>,
}

/// A request and its answer as the client's application saw them.
#[derive(Clone, Debug, Serialize)]
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
    clock::now();
    let mtu = scenario.link.mtu;
    let hosts =
        [Namespace::new(CLIENT, &scenario.client, mtu)?, Namespace::new(SERVER, &scenario.server, mtu)?];
    let w = &scenario.workload;
    let (up, down) = w.totals();
    let pipes = [
        Pipe::new(&scenario.link, &scenario.link.up, up, scenario.seed),
        Pipe::new(&scenario.link, &scenario.link.down, down, scenario.seed ^ 0x5eed),
    ];
    let clone = |f: &File| f.try_clone().map_err(LabError::failed("share a device"));
    let tuns = [clone(&hosts[0].tun)?, clone(&hosts[1].tun)?];
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let virtual_machine = machine::is_virtual();
    let burners = virtual_machine.then(|| Burners::start(processors));
    let before = [hosts[0].counters()?, hosts[1].counters()?];
    let jiffies = Jiffies::now();

    let forwarder = Forwarder::new(tuns, pipes, mtu);
    let stop_link = Arc::new(AtomicBool::new(false));
    let link = {
        let stop = Arc::clone(&stop_link);
        thread::Builder::new().name("lab-link".into()).spawn(move || forwarder.run(&stop))
    };
    let link = link.map_err(LabError::failed("start a thread"))?;
    let watch = Watch::default();
    let events = Mutex::new(Vec::new());
    let shared = Shared { scenario, watch: &watch, events: &events };
    let applications = applications(&shared, &hosts);
    // What is still on its way: the last ACKs and FINs.
    let drain = Duration::from_millis(300) + Duration::from_secs_f64(scenario.link.rtt_ms / 250.0);
    thread::sleep(drain);
    stop_link.store(true, Relaxed);
    let passage = link.join().unwrap_or_else(|_| Err(io::Error::other("panicked")));
    let (steal, busy) = Jiffies::now().since(jiffies);
    let burning = burners.as_ref().map_or(0, Burners::count);
    drop(burners);
    let cut_off = applications?;
    let passage = passage.map_err(LabError::failed("forward packets"))?;
    let after = [hosts[0].counters()?, hosts[1].counters()?];

    let mut events = std::mem::take(&mut *lock(&events));
    events.sort_by_key(|e| (e.start_ns, e.end_ns));
    let machine = Machine {
        kernel: machine::kernel(),
        processors,
        virtual_machine,
        real_time: passage.real_time,
        burners: burning,
        steal,
        busy,
    };
    let [first, second] = hosts;
    let server_sysctls =
        second.sysctls.into_iter().filter(|(name, value)| first.sysctls.get(name) != Some(value)).collect();
    let Passage { captures, lost, lateness, tallies: [up, down], refused, .. } = passage;
    let allowed = (scenario.link.rtt_ms * 0.05 * 1e6).max(200e3) as i64;
    let truth = Truth {
        scenario: scenario.clone(),
        elapsed_ns: elapsed(&events),
        cut_off,
        exchanges: exchanges(&events, w),
        lost,
        disturbed: lateness.p99_ns > allowed || steal > 0.05,
        lateness,
        up,
        down,
        refused,
        machine,
        client_sysctls: first.sysctls,
        server_sysctls,
        client_counters: host::moved(&before[0], &after[0]),
        server_counters: host::moved(&before[1], &after[1]),
        events,
        samples: watch.samples(),
    };
    Ok(Run { captures, truth })
}

/// Runs client and server to their end; says whether the time limit cut them off.
fn applications(shared: &Shared<'_>, hosts: &[Namespace; 2]) -> Result<bool, LabError> {
    let scenario = shared.scenario;
    let limit = clock::now() + clock::from_ms(scenario.limit_s * 1000.0);
    let mut cut_off = false;
    thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let server = scope.spawn(move || {
            let made = hosts[1]
                .enter()
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
        let listening = is_ready.recv().unwrap_or_else(|_| {
            Err(LabError::Failed { what: "start the server".into(), why: io::Error::other("panicked") })
        });
        let clients: Vec<_> = (0..if listening.is_ok() { scenario.workload.connections } else { 0 })
            .map(|n| {
                let stagger = clock::from_ms(scenario.workload.stagger_ms * f64::from(n));
                scope.spawn(move || {
                    hosts[0].enter()?;
                    if shared.watch.nap(clock::now() + stagger) {
                        endpoints::client(shared);
                    }
                    Ok(())
                })
            })
            .collect();
        scope.spawn(|| shared.watch.sample_all(scenario));
        while clients.iter().any(|c| !c.is_finished()) {
            thread::sleep(POLL);
            if clock::now() > limit {
                cut_off = true;
                break;
            }
        }
        // The server's connections end with the client's; give them the time that their last packets need.
        if !cut_off {
            let patience = Duration::from_millis(50) + Duration::from_secs_f64(scenario.link.rtt_ms / 250.0);
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
    Ok(cut_off)
}

/// Calls that move payload, or tried to.
fn moves(e: &&Event) -> bool {
    matches!(e.op, Op::Write | Op::Read) && (e.bytes != Some(0) || e.error.is_some())
}

fn elapsed(events: &[Event]) -> i64 {
    let start = events.iter().find(|e| e.op == Op::Connect).map_or(0, |e| e.start_ns);
    let client = |e: &&Event| moves(e) && e.side == "client" || e.op == Op::Connect;
    // Of the server only what arrived: its read of a request that never comes is no part of the work.
    let server = |e: &&Event| e.side == "server" && e.op == Op::Read && e.bytes.is_some_and(|n| n > 0);
    events.iter().filter(|e| client(e) || server(e)).map(|e| e.end_ns - start).max().unwrap_or(0)
}

fn exchanges(events: &[Event], w: &Workload) -> Vec<Exchange> {
    let mut all: BTreeMap<(u16, u32), (Exchange, u64, u64)> = BTreeMap::new();
    for e in events.iter().filter(moves).filter(|e| e.side == "client") {
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
    let arrived = |e: &&Event| e.side == "server" && e.op == Op::Read && e.bytes.is_some_and(|n| n > 0);
    for e in events.iter().filter(arrived) {
        if let Some((exchange, up, _)) = all.get_mut(&(e.port, e.request)) {
            exchange.end_ns = exchange.end_ns.max(e.end_ns);
            *up += e.bytes.unwrap_or(0);
        }
    }
    let mut all: Vec<Exchange> = all
        .into_values()
        .map(|(exchange, up, down)| {
            let turn = w.turn(exchange.request);
            let complete = up == Workload::bytes(&turn.request) && down == Workload::bytes(&turn.response);
            Exchange { complete, ..exchange }
        })
        .collect();
    all.sort_by_key(|e| e.start_ns);
    all
}

impl Run {
    /// Writes `cap.client.pcap`, `cap.server.pcap` and `meta.json` into a directory, made if need be.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        for (name, capture) in ["cap.client.pcap", "cap.server.pcap"].iter().zip(&self.captures) {
            let mut writer = Writer::pcap(BufWriter::new(File::create(directory.join(name))?), LINK_TYPE)?;
            for record in capture {
                let frame = Frame { len: record.len, ..Frame::new(record.time, LINK_TYPE, &record.data) };
                writer.write(&frame, None)?;
            }
            writer.finish()?;
        }
        let mut meta = BufWriter::new(File::create(directory.join("meta.json"))?);
        serde_json::to_writer(&mut meta, &self.truth)?;
        meta.write_all(b"\n")?;
        meta.flush()
    }

    /// A few lines for a person.
    pub fn summary(&self) -> String {
        let t = &self.truth;
        let mut text = format!("{}\n  {} in all", t.scenario.title, Nanos(t.elapsed_ns));
        if t.cut_off {
            text += " (cut off at the time limit)";
        }
        let each: Vec<String> = t.exchanges.iter().take(8).map(Exchange::to_string).collect();
        let more = if t.exchanges.len() > each.len() { ", …" } else { "" };
        text += &format!("; {} exchanges: {}{more}\n", t.exchanges.len(), each.join(", "));
        for (name, tally) in [("up", &t.up), ("down", &t.down)] {
            text += &format!("  {name}: {} packets, lost {:?}", tally.packets, tally.lost);
            if tally.queue_max_ns > 0 {
                let (max, mean) = (Nanos(tally.queue_max_ns), Nanos(tally.queue_mean_ns));
                text += &format!(", queue at most {} bytes = {max}, mean {mean}", tally.queue_max_bytes);
            }
            text += "\n";
        }
        for error in t.events.iter().filter(|e| e.error.is_some()).take(4) {
            text += &format!("  {} {:?}: {}\n", error.side, error.op, error.error.as_deref().unwrap_or(""));
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
