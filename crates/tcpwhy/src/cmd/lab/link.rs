//! `tcpwhy lab link`: any command behind an emulated link.

use super::{describe, failed, kept};
use crate::args::lab::Link as Args;
use crate::cmd::end_signal;
use crate::failure::{Exit, Usage, say};
use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tcpwhy_base::{End, Nanos, What};
use tcpwhy_lab::{Calibration, LabError, Network, Process, Scenario, Traffic, calibrate};

/// How long the server's command may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);
/// What every machine's link has given so far, with a wide margin (the slowest: 1,062 Mbit/s).
const CERTAIN_MBIT: f64 = 200.0;

/// Runs the command and ends as it does.
pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let scenario = match scenario(args) {
        Ok(scenario) => scenario,
        Err(LabError::Scenario(why)) => return Err(Usage(why).into()),
        Err(e) => return Ok(failed(&e)),
    };
    if let Some(folder) = &args.keep {
        kept::is_no_experiment(folder)?;
    }
    let stop = end_signal()?;
    if let Err(e) = can_give(&scenario, &stop) {
        return Ok(failed(&e));
    }
    let (status, traffic) = match behind(args, &scenario, &stop) {
        Ok(Some(done)) => done,
        Ok(None) => return Ok(Exit::Interrupted),
        Err(e) => return Ok(failed(&e)),
    };
    if let Some(directory) = &args.keep {
        traffic
            .write_captures(directory)
            .map_err(|e| anyhow::anyhow!("cannot write into {}: {e}", directory.display()))?;
    }
    say(&summary(&scenario, &traffic));
    // As shells say it: 128 and the number of the signal.
    let code = status.code().or(status.signal().map(|s| 128 + s)).unwrap_or(1);
    Ok(Exit::Program(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// Refuses a rate that the link of this machine cannot give. Only high rates are worth the three seconds of measuring.
fn can_give(scenario: &Scenario, stop: &AtomicBool) -> Result<(), LabError> {
    let modest = Calibration { rate_mbit: CERTAIN_MBIT, ..Calibration::default() };
    let Some(rate) = modest.exceeded(scenario) else { return Ok(()) };
    let found = calibrate(stop)?.rate_mbit;
    if stop.load(Relaxed) || rate <= found {
        return Ok(());
    }
    Err(LabError::Scenario(format!(
        "{rate} Mbit/s asked for, but the link of this machine gives {found:.0} Mbit/s at most: choose a lower --rate, \
         or leave it out"
    )))
}

/// The link as a scenario, so that `--set` means here what it means there.
fn scenario(args: &Args) -> Result<Scenario, LabError> {
    let ms = |n: Nanos| n.0 as f64 / 1e6;
    let mut set: Vec<String> = Vec::new();
    let mut put = |key: &str, value: String| set.push(format!("{key}={value}"));
    if let Some(rtt) = args.rtt.map(ms).or(args.delay.map(|d| 2.0 * ms(d))) {
        put("link.rtt_ms", rtt.to_string());
    }
    if let Some(rate) = args.rate {
        put("link.rate_mbit", rate.to_string());
    }
    if let Some(bytes) = args.queue {
        put("link.queue_bytes", bytes.to_string());
    }
    if let Some(seed) = args.seed {
        put("seed", seed.to_string());
    }
    if let Some(mtu) = args.mtu {
        put("link.mtu", mtu.to_string());
    }
    for way in ["up", "down"] {
        if let Some(jitter) = args.jitter {
            put(&format!("link.{way}.jitter_ms"), ms(jitter).to_string());
        }
        if let Some(loss) = args.loss {
            put(&format!("link.{way}.loss"), loss.to_string());
        }
    }
    for item in &args.set {
        if !["link.", "client.", "server.", "seed="].iter().any(|start| item.starts_with(start)) {
            let why = format!("--set {item}: keys of link, client and server, such as link.down.loss=0.01");
            return Err(LabError::Scenario(why));
        }
    }
    set.extend(args.set.iter().cloned());
    let scenario = Scenario::parse("title = 'link'\n[workload]\nrequest = [1]\n", &set)?;
    let drops = scenario.shared.links.iter().flat_map(|link| &link.drops);
    if drops.into_iter().any(|chosen| matches!(chosen.what, What::Last { .. })) {
        return Err(LabError::Scenario(
            "drops of what=\"last\" count back from the last byte, and nobody knows beforehand how many bytes a command sends: \
             choose what=\"seq\" with at=BYTE, or \"syn\", \"data\" or \"ack\" with n=[N]"
                .into(),
        ));
    }
    Ok(scenario)
}

/// How the command ended and what passed; nothing if it was interrupted before it ran.
fn behind(
    args: &Args,
    scenario: &Scenario,
    stop: &AtomicBool,
) -> Result<Option<(ExitStatus, Traffic)>, LabError> {
    let network = Network::new(scenario)?;
    let mut server = None;
    if let Some(command) = &args.server {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(std::process::Stdio::null());
        let running = network.spawn_alone(End::Server, shell)?;
        if !listens(&network, &running, stop)? {
            return Ok(None);
        }
        server = Some(running);
    }
    let [program, arguments @ ..] = args.command.as_slice() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(arguments);
    // A shell at a terminal wants its process groups; whatever else is kept apart, so that nothing outlives us.
    let client = if std::io::stdin().is_terminal() {
        network.spawn(End::Client, command)?
    } else {
        network.spawn_alone(End::Client, command)?
    };
    while !client.is_finished() && !stop.load(Relaxed) {
        std::thread::sleep(POLL);
    }
    // The terminal has told the command too; it may have something to say.
    let told = Instant::now();
    while !client.is_finished() && told.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(POLL);
    }
    let status = if client.is_finished() {
        client.wait().map_err(|why| LabError::Failed { what: "wait for the command".into(), why })?
    } else {
        drop(client);
        ExitStatus::from_raw(libc_sigint())
    };
    drop(server);
    Ok(Some((status, network.finish()?)))
}

/// The status of a process that SIGINT ended.
fn libc_sigint() -> i32 {
    signal_hook::consts::SIGINT
}

/// Waits until something listens on the server's host; says no if the user does not want to wait.
fn listens(network: &Network, server: &Process, stop: &AtomicBool) -> Result<bool, LabError> {
    let start = Instant::now();
    while network.listening(End::Server)?.is_empty() {
        if stop.load(Relaxed) {
            return Ok(false);
        }
        if server.is_finished() || start.elapsed() > PATIENCE {
            let why = if server.is_finished() {
                "it ended".to_owned()
            } else {
                format!("it has run for {} s", PATIENCE.as_secs())
            };
            let why = std::io::Error::other(format!("{why}, and nothing listens on a TCP port"));
            return Err(LabError::Failed { what: "the server's command".into(), why });
        }
        std::thread::sleep(POLL);
    }
    Ok(true)
}

fn summary(scenario: &Scenario, traffic: &Traffic) -> String {
    let lost = |t: &tcpwhy_lab::Tally| t.lost.values().sum::<u64>();
    format!(
        "link: {}; {} packets up ({} lost), {} down ({} lost), late by {} (median), {} (99 %){}",
        describe::link(scenario),
        traffic.up.packets,
        lost(&traffic.up),
        traffic.down.packets,
        lost(&traffic.down),
        Nanos(traffic.lateness.p50_ns),
        Nanos(traffic.lateness.p99_ns),
        if traffic.disturbed { "; the machine was busy: times are not exact" } else { "" },
    )
}
