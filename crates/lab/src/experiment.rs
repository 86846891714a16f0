//! One experiment from beginning to end: a [`Scenario`] to a [`Run`].

use crate::endpoints::{self, Event, Op, Shared};
use crate::groups::Groups;
use crate::network::Network;
use crate::run::{Exchange, Run};
use crate::scenario::Scenario;
use crate::watch::{POLL, Watch, lock};
use crate::{LabError, clock, connects, groups, programs, watch};
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tcpwhy_base::{End, Turn, Workload};

/// Makes the hosts and the link, runs the workload, and takes everything down.
pub fn run(scenario: &Scenario) -> Result<Run, LabError> {
    run_until(scenario, &AtomicBool::new(false))
}

/// Runs a scenario as [`run`] does, cut off when `stop` becomes true.
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
        let panicked = |what: &str| LabError::Failed { what: what.into(), why: io::Error::other("panicked") };
        server.join().map_err(|_| panicked("the server"))?;
        for client in clients {
            client.join().map_err(|_| panicked("the client"))??;
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
