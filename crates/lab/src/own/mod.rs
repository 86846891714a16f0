//! A program in a network of its own, without root: a user namespace and a network namespace, in which
//! nothing is but loopback, at a distance if asked for. The program keeps everything else: its files, its
//! environment, its directory, its terminal, its user. What it sends is captured while it runs.
//!
//! There are two processes. The one inside makes the network and is the parent of the program and of whatever
//! that leaves behind; when it ends, or the one outside does, however it ends, all of them end, and the
//! network with them.

mod descendants;
mod host;
mod inside;
mod netlink;
mod refusal;
mod report;
mod tap;
mod wire;

pub use report::{Ended, Lost, NotRun, Outside, Report};

use crate::scenario::Scenario;
use crate::sys::process::{self, Signals};
use report::Said;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tcpwhy_base::Asked;

/// Signals that are passed on to the program.
const FORWARDED: [i32; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

/// What to run.
#[derive(Debug)]
pub struct Plan {
    /// What lies between the two ends; none: loopback as it is. Its workload is not looked at.
    pub link: Option<Scenario>,
    /// A shell command on a host of its own behind the link; needs one.
    pub server: Option<OsString>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// How many times, one after the other.
    pub repeat: u32,
}

/// A run that goes on.
#[derive(Debug)]
pub struct Running {
    /// The capture, to be read while it is made; it ends with the run.
    pub packets: File,
    control: BufReader<File>,
    over: Arc<AtomicBool>,
    /// Children that this process had before, by whatever it was before.
    spared: Vec<i32>,
    /// The process inside has said its last word.
    ended: bool,
}

impl Plan {
    /// Makes the network and starts the program in it. This process must have no other threads yet.
    ///
    /// From now on signals that ask for an end go to the program. When it has ended, the first sets `stop`
    /// and the second calls `end` with its number.
    pub fn start(&self, stop: &Arc<AtomicBool>, end: fn(i32)) -> Result<Running, NotRun> {
        let failed = |what: &'static str| move |e: io::Error| NotRun::Machine(format!("{what}: {e}"));
        let spared = descendants::children();
        // Before there are two: no signal may find one of them without it.
        let signals = Signals::new(&FORWARDED).map_err(failed("wait for signals"))?;
        process::adopt_orphans().map_err(failed("adopt processes"))?;
        let (packets, packets_in) = process::pipe(true).map_err(failed("make a pipe"))?;
        let (control, control_in) = process::pipe(false).map_err(failed("make a pipe"))?;
        let Some(inside) = process::fork().map_err(failed("start a process"))? else {
            drop((packets, control));
            inside::main(self, packets_in, &control_in);
        };
        drop((packets_in, control_in));
        let over = Arc::new(AtomicBool::new(false));
        let mut running = Running {
            packets,
            control: BufReader::new(control),
            over: Arc::clone(&over),
            spared,
            ended: false,
        };
        let stop = Arc::clone(stop);
        let forward = move || forward(&signals, inside, &over, &stop, end);
        let thread = thread::Builder::new().name("signals".into()).spawn(forward);
        thread.map_err(failed("start a thread"))?;
        match running.heard() {
            Some(Said::Started) => Ok(running),
            Some(Said::Not(why)) => Err(why),
            _ => Err(NotRun::Machine("the supervising process was ended before the command ran".into())),
        }
    }
}

impl Running {
    /// What became of it; to be asked when `packets` has ended.
    pub fn finish(mut self) -> Result<Report, NotRun> {
        match self.heard() {
            Some(Said::Done(report)) => {
                self.ended = true;
                Ok(report)
            }
            Some(Said::Not(why)) => Err(why),
            _ => Err(NotRun::Machine(
                "the supervising process was killed: how the command ended is not known".into(),
            )),
        }
    }

    fn heard(&mut self) -> Option<Said> {
        let mut line = String::new();
        self.control.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

impl Drop for Running {
    /// The process inside has ended or does so now; whoever outlived it belongs to this one.
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // Whoever still writes packets is told that nobody reads them, instead of waiting for that.
        if let Ok(nothing) = File::open("/dev/null") {
            self.packets = nothing;
        }
        let mut line = String::new();
        // Its end closes the pipe.
        while self.control.read_line(&mut line).is_ok_and(|n| n > 0) {
            line.clear();
        }
        if !self.ended {
            descendants::end_all(true, &self.spared);
        }
    }
}

fn forward(signals: &Signals, inside: i32, over: &AtomicBool, stop: &AtomicBool, end: fn(i32)) {
    let mut asked = Asked::default();
    loop {
        if process::wait(&[signals.as_fd()], None, None).is_err() {
            return;
        }
        while let Some(signal) = signals.next() {
            if !over.load(Relaxed) {
                // What a terminal sends has reached everybody.
                if signal.by_process {
                    process::kill(inside, signal.number);
                }
                continue;
            }
            stop.store(true, Relaxed);
            if asked.again(Instant::now(), Duration::MAX) {
                end(signal.number);
            }
        }
    }
}
