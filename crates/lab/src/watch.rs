//! The sockets that are open, so that another thread can read their state and end them at the time limit.

use crate::clock;
use crate::scenario::Scenario;
use crate::sys;
use crate::tcp_info::TcpInfo;
use crate::words;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tcpwhy_base::{End, Nanos};

/// Of a thread: a buffer of 16 KiB is the largest thing on it.
const STACK: usize = 512 << 10;

/// When a socket's state was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// At an interval.
    During,
    /// When the application had nothing more to do with it.
    Done,
    /// Before `close`.
    End,
}

/// A socket's state at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// When, since the Unix epoch.
    pub time_ns: i64,
    /// Whose socket.
    #[serde(with = "words::end")]
    pub side: End,
    /// The client's port.
    pub port: u16,
    /// What made it be read.
    pub when: When,
    /// What the kernel said.
    pub info: TcpInfo,
}

#[derive(Debug)]
struct Live {
    id: u64,
    side: End,
    port: u16,
    fd: OwnedFd,
}

/// Shared by all threads of a run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    live: Mutex<(u64, Vec<Live>)>,
    samples: Mutex<Vec<Sample>>,
    pub(crate) stop: AtomicBool,
    /// Why there was no thread or no memory for a connection.
    refused: Mutex<Option<io::Error>>,
}

/// For a thread of a run. Endpoints need little of the memory that one usually gets.
pub(crate) fn thread() -> thread::Builder {
    thread::Builder::new().stack_size(STACK)
}

impl Watch {
    /// Takes a second descriptor of the socket; until `leave`, the socket lives.
    pub(crate) fn join(&self, fd: &impl AsFd, side: End, port: u16) -> io::Result<u64> {
        let fd = fd.as_fd().try_clone_to_owned()?;
        let (next, all) = &mut *lock(&self.live);
        *next += 1;
        all.push(Live { id: *next, side, port, fd });
        Ok(*next)
    }

    /// The client's port is known only after `connect`.
    pub(crate) fn set_port(&self, id: u64, port: u16) {
        for live in lock(&self.live).1.iter_mut().filter(|l| l.id == id) {
            live.port = port;
        }
    }

    pub(crate) fn leave(&self, id: u64) {
        lock(&self.live).1.retain(|l| l.id != id);
    }

    pub(crate) fn sample(&self, id: Option<u64>, when: When) {
        let live = lock(&self.live);
        for l in live.1.iter().filter(|l| l.port != 0 && id.is_none_or(|id| id == l.id)) {
            if let Some(info) = TcpInfo::of(l.fd.as_fd()) {
                let sample = Sample { time_ns: clock::now().0, side: l.side, port: l.port, when, info };
                lock(&self.samples).push(sample);
            }
        }
    }

    /// Samples until the run is over. Below the applications' priority, above everybody else's: it holds a lock
    /// that they want.
    pub(crate) fn sample_all(&self, scenario: &Scenario) {
        let every = scenario.sample;
        if every <= Nanos::ZERO {
            return;
        }
        let _ = sys::real_time(4);
        let mut next = clock::now();
        while !self.stop.load(Relaxed) {
            self.sample(None, When::During);
            next = (next + every).max(clock::now());
            clock::sleep_until(next);
        }
    }

    /// Ends every socket; whoever is blocked on one returns.
    pub(crate) fn end_all(&self) {
        self.stop.store(true, Relaxed);
        for live in &lock(&self.live).1 {
            sys::shut_down(live.fd.as_fd());
        }
    }

    /// Without all its connections the run is none: it ends.
    pub(crate) fn refuse(&self, why: io::Error) {
        lock(&self.refused).get_or_insert(why);
        self.stop.store(true, Relaxed);
    }

    /// Why there was no thread or no memory for a connection.
    pub(crate) fn refused(&self) -> Option<io::Error> {
        lock(&self.refused).take()
    }

    /// Sleeps, but not beyond the end of the run; says whether the run goes on.
    pub(crate) fn nap(&self, until: Nanos) -> bool {
        const STEP: Nanos = Nanos::millis(50);
        loop {
            if self.stop.load(Relaxed) {
                return false;
            }
            let left = until - clock::now();
            if left <= Nanos::ZERO {
                return true;
            }
            std::thread::sleep(clock::duration(left.min(STEP)));
        }
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        let mut samples = std::mem::take(&mut *lock(&self.samples));
        samples.sort_by_key(|s| s.time_ns);
        samples
    }
}

/// What a thread left behind that panicked is still what it was.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often threads are asked whether they are done.
pub(crate) const POLL: Duration = Duration::from_millis(5);
