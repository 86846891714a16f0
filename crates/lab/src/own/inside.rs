//! The process between the command and everybody else: it makes the network, watches the command, and ends
//! what is left.

use super::host;
use super::report::{Ended, NotRun, Report, Said};
use super::wire::{Link, Passed, Wire};
use super::{FORWARDED, Plan, descendants, refusal, tap};
use crate::network::Network;
use crate::sys::process::{self, Signals};
use crate::{LabError, clock, sys};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tcpwhy_base::{Asked, Nanos};

/// How long the server's command may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);
/// Two requests to end within this: it is meant.
const TWICE: Duration = Duration::from_secs(3);
/// Largest packet of a way out without a link.
const MTU: u32 = 1500;

/// Runs in the second process until its end.
pub(super) fn main(plan: &Plan, packets: File, control: &File) -> ! {
    let say = |said: &Said| {
        let line = serde_json::to_string(said).unwrap_or_default() + "\n";
        (&mut &*control).write_all(line.as_bytes())
    };
    let run = || {
        let mut inside = Inside::new(plan, packets, control)?;
        let _ = say(&Said::Started);
        inside.run(plan)
    };
    // A panic must not go on into what the first process does.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    let said = match done {
        Ok(Ok(report)) => Said::Done(report),
        Ok(Err(why)) => Said::Not(why),
        Err(_) => Said::Not(NotRun::Machine("the supervising process failed: please report this".into())),
    };
    descendants::end_all(true, &[]);
    let told = say(&said).is_ok();
    process::exit_now(i32::from(!told))
}

/// The threads that carry and capture packets.
struct Inside<'a> {
    control: &'a File,
    signals: Signals,
    stop: Arc<AtomicBool>,
    wire: Option<JoinHandle<io::Result<Passed>>>,
    tap: Option<JoinHandle<io::Result<u64>>>,
    writing: Option<tap::Writing>,
    server: Option<i32>,
    asked: Asked,
    forced: bool,
    /// The process outside has gone.
    alone: bool,
}

/// How something went that was waited for.
enum Heard {
    /// A child ended.
    Child(i32, std::process::ExitStatus),
    Nothing,
}

fn machine(e: LabError) -> NotRun {
    NotRun::Machine(e.to_string())
}

/// What a thread has to say at its end.
fn joined<T>(thread: std::thread::JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("panicked")))
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> NotRun {
    move |e| NotRun::Machine(format!("{what}: {e}"))
}

impl<'a> Inside<'a> {
    fn new(plan: &Plan, packets: File, control: &'a File) -> Result<Inside<'a>, NotRun> {
        clock::now();
        process::adopt_orphans().map_err(failed("adopt processes"))?;
        let signals: Vec<i32> = FORWARDED.into_iter().chain([libc::SIGCHLD]).collect();
        let signals = Signals::new(&signals).map_err(failed("wait for signals"))?;
        new_network().map_err(|e| NotRun::Machine(refusal::sentence(&e)))?;
        let mut inside = Inside {
            control,
            signals,
            stop: Arc::new(AtomicBool::new(false)),
            wire: None,
            tap: None,
            writing: None,
            server: None,
            asked: Asked::default(),
            forced: false,
            alone: false,
        };
        inside.set_up(plan, packets)?;
        Ok(inside)
    }

    fn set_up(&mut self, plan: &Plan, packets: File) -> Result<(), NotRun> {
        // The first use of what was given: AppArmor lets a namespace be made and then nothing be done in it.
        host::loopback().map_err(|e| NotRun::Machine(refusal::sentence(&e)))?;
        host::save_no_metrics();
        let Some(link) = &plan.link else {
            let ring = host::tap_loopback().map_err(machine)?;
            let stop = Arc::clone(&self.stop);
            self.tap = Some(spawn("own-tap", move || tap::of_loopback(ring, packets, &stop))?);
            // Without it, what lies outside is not reached either, and not named.
            if let Ok(port) = host::uplink(None, MTU) {
                self.start_wire(Wire::new(vec![port], None))?;
            }
            return Ok(());
        };
        let mtu = u32::try_from(link.shared.mtu).unwrap_or(MTU);
        let ports = match &plan.server {
            None => {
                let port = host::uplink(None, mtu).map_err(machine)?;
                host::reroute_loopback().map_err(machine)?;
                vec![port]
            }
            Some(server) => {
                let there = host::uplink(Some(Network::SERVER), mtu).map_err(machine)?;
                self.start_server(server)?;
                sys::new_network().map_err(failed("a second network"))?;
                host::loopback().map_err(failed("switch on lo"))?;
                host::save_no_metrics();
                let here = host::uplink(Some(Network::CLIENT), mtu).map_err(machine)?;
                vec![here, there]
            }
        };
        let (tap, writing) = tap::Tap::new(packets).map_err(failed("capture"))?;
        self.writing = Some(writing);
        self.start_wire(Wire::new(ports, Some(Link::new(link, tap))))?;
        if plan.server.is_some() { self.wait_for_server() } else { Ok(()) }
    }

    fn start_wire(&mut self, wire: Wire) -> Result<(), NotRun> {
        let stop = Arc::clone(&self.stop);
        self.wire = Some(spawn("own-wire", move || wire.run(&stop))?);
        Ok(())
    }

    fn start_server(&mut self, command: &OsStr) -> Result<(), NotRun> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::null());
        self.server = Some(start(with_addresses(&mut shell))?);
        Ok(())
    }

    /// Until something listens on the server's host.
    fn wait_for_server(&mut self) -> Result<(), NotRun> {
        let start = Instant::now();
        let Some(server) = self.server else { return Ok(()) };
        loop {
            let looked = Instant::now();
            if listens(server) {
                return Ok(());
            }
            // The kernel goes through its whole table for a look, which is large on a large host.
            let why = match self.hear(Some(POLL.max(10 * looked.elapsed()))) {
                Heard::Child(id, status) if id == server => format!("it ended ({status})"),
                _ if self.forced || self.asked.any() || self.alone => "interrupted".into(),
                _ if start.elapsed() > PATIENCE => format!("it has run for {} s", PATIENCE.as_secs()),
                _ => continue,
            };
            let why = format!("the server's command: {why}, and nothing listens on a TCP port");
            return Err(NotRun::Machine(why));
        }
    }

    fn run(&mut self, plan: &Plan) -> Result<Report, NotRun> {
        let mut report = Report::default();
        for _ in 0..plan.repeat.max(1) {
            let [program, arguments @ ..] = plan.command.as_slice() else { break };
            let mut command = Command::new(program);
            command.args(arguments);
            if plan.server.is_some() {
                with_addresses(&mut command);
            }
            let start_time = Instant::now();
            let id = start(&mut command)?;
            let status = self.wait_for(id);
            let duration_ns = i64::try_from(start_time.elapsed().as_nanos()).unwrap_or(i64::MAX);
            let (code, signal) = status.map_or((None, None), |s| {
                use std::os::unix::process::ExitStatusExt as _;
                (s.code(), s.signal())
            });
            report.runs.push(Ended { duration_ns, code, signal });
            if self.forced || self.alone || self.asked.any() {
                break;
            }
        }
        report.left = self.end_descendants();
        if let Some(link) = &plan.link {
            // What is on its way: the last ACKs and FINs.
            let rest = link.shared.rtt().times(2).min(Nanos::secs(1)) + Nanos::millis(20);
            thread::sleep(clock::duration(rest));
        }
        self.finish(plan, &mut report)?;
        report.forced = self.forced;
        Ok(report)
    }

    /// Ends what the command has left behind; whom, the server excepted, which is expected to be there.
    fn end_descendants(&mut self) -> Vec<String> {
        let server: Vec<i32> = self
            .server
            .iter()
            .flat_map(|&s| descendants::of(s).into_iter().map(|m| m.0).chain([s]))
            .collect();
        let left = descendants::all().into_iter().filter(|(id, _)| !server.contains(id));
        let names = left.map(|member| member.1).collect();
        descendants::end_all(self.forced || self.alone, &[]);
        names
    }

    fn finish(&mut self, plan: &Plan, report: &mut Report) -> Result<(), NotRun> {
        self.stop.store(true, Relaxed);
        if let Some(wire) = self.wire.take() {
            let passed = joined(wire).map_err(failed("the link"))?;
            let Passed { lateness, real_time, outside, lost, missed } = passed;
            let allowed = plan.link.as_ref().map_or(Nanos::MAX, |l| {
                // 3 % of the round trip.
                Nanos(l.shared.rtt().0 * 3 / 100).max(Nanos::micros(200))
            });
            report.disturbed =
                lateness.p99_ns > allowed.0 || lateness.stalled_ns as f64 > lateness.span_ns as f64 * 0.02;
            (report.lateness, report.real_time, report.outside) = (lateness, real_time, outside);
            (report.lost, report.missed) = (lost, missed);
        }
        if let Some(tap) = self.tap.take() {
            report.missed = joined(tap).map_err(failed("the capture"))?;
        }
        if let Some(writing) = self.writing.take() {
            match joined(writing) {
                // That nobody reads any more is no failure of the run.
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => return Err(failed("the capture")(e)),
                _ => {}
            }
        }
        Ok(())
    }

    fn wait_for(&mut self, id: i32) -> Option<std::process::ExitStatus> {
        loop {
            // The server or an orphan may end first.
            if let Heard::Child(child, status) = self.hear(None)
                && child == id
            {
                return Some(status);
            }
            if self.alone || self.forced {
                process::kill(id, libc::SIGKILL);
            }
        }
    }

    /// Waits for the next thing that happens: the end of a child, a signal to pass on, the end of the process outside.
    fn hear(&mut self, timeout: Option<Duration>) -> Heard {
        loop {
            if let Ok(Some((child, status))) = process::reap() {
                return Heard::Child(child, status);
            }
            // Once alone, its pipe would be reported again and again.
            let control = (!self.alone).then(|| self.control.as_fd());
            let gone =
                process::wait(&[self.signals.as_fd()], control, timeout.or(self.alone.then_some(POLL)));
            if gone.unwrap_or(false) {
                self.alone = true;
                return Heard::Nothing;
            }
            let mut some = false;
            while let Some(signal) = self.signals.next() {
                some = true;
                if signal.number != libc::SIGCHLD {
                    self.pass_on(signal);
                }
            }
            if !some || self.forced {
                return Heard::Nothing;
            }
        }
    }

    fn pass_on(&mut self, signal: process::Signal) {
        let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&signal.number);
        if ends && self.asked.again(Instant::now(), TWICE) {
            self.forced = true;
        }
        // A terminal has told the whole group.
        if signal.by_process {
            // The command; the server is ended afterwards.
            for id in descendants::children().into_iter().filter(|id| Some(*id) != self.server) {
                process::kill(id, signal.number);
            }
        }
    }
}

/// A network without a name: as root in this machine's user namespace, else in one of its own.
fn new_network() -> io::Result<()> {
    match process::user() {
        0 => match sys::new_network() {
            // Root without its powers, as in a container.
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => process::new_user_and_network(),
            other => other,
        },
        _ => process::new_user_and_network(),
    }
}

fn with_addresses(command: &mut Command) -> &mut Command {
    command
        .env("TCPWHY_SERVER", Network::SERVER.to_string())
        .env("TCPWHY_CLIENT", Network::CLIENT.to_string())
}

/// Starts a program that ends when this process does.
fn start(command: &mut Command) -> Result<i32, NotRun> {
    let program = command.get_program().to_owned();
    sys::dies_with_thread(command);
    process::hears_signals(command);
    match command.spawn() {
        // Its end is waited for like that of any other child.
        Ok(child) => Ok(i32::try_from(child.id()).unwrap_or(0)),
        Err(e) => Err(not_started(&program, &e)),
    }
}

fn not_started(program: &OsStr, e: &io::Error) -> NotRun {
    let name = program.to_string_lossy();
    let path = Path::new(program);
    let is_path = path.components().count() > 1 || name.contains('/');
    match e.kind() {
        io::ErrorKind::NotFound if is_path && path.exists() => {
            NotRun::NotRunnable(format!("{name}: what its first line names to run it does not exist"))
        }
        io::ErrorKind::NotFound if is_path => {
            NotRun::NotFound(format!("{name}: no such file. Check the name"))
        }
        // execvp(3) says so too where it may not look into a directory of PATH.
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if !is_path && !is_in_path(program) => {
            NotRun::NotFound(format!(
                "{name}: no such command in PATH. Check the name, or write ./{name} for a file here; for shell syntax use sh -c '…'"
            ))
        }
        io::ErrorKind::PermissionDenied => {
            NotRun::NotRunnable(format!("{name}: no permission to execute it. Is it a program (chmod +x)?"))
        }
        _ => NotRun::NotRunnable(format!("{name}: cannot be executed: {e}")),
    }
}

fn is_in_path(program: &OsStr) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Something listens on a TCP port in the network of this process.
fn listens(id: i32) -> bool {
    let tables = ["tcp", "tcp6"].map(|t| fs::read_to_string(format!("/proc/{id}/net/{t}")));
    // Number, local address, remote address, state: 0A is LISTEN.
    let listening = |line: &str| line.split_whitespace().nth(3) == Some("0A");
    tables.iter().flatten().flat_map(|text| text.lines().skip(1)).any(listening)
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NotRun> {
    thread::Builder::new().name(name.into()).spawn(work).map_err(failed("start a thread"))
}
