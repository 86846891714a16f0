//! Programs on a host. Each has a thread of its own, which is its parent: the kernel kills a program when that
//! thread ends, and with a process namespace also everything that the program started, so that nothing is left
//! behind however this process ends.

use crate::network::Network;
use crate::sys::process;
use crate::{LabError, sys, watch};
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread::{JoinHandle, Scope, ScopedJoinHandle};
use std::time::Duration;
use tcpwhy_base::End;

/// How often it is asked whether a program is to be killed. (On a busy machine a thread that wakes every
/// millisecond held up grace periods of the whole kernel, by a second and more.)
const POLL: Duration = Duration::from_millis(20);

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Alone: in a process namespace, so that all it starts ends with it, at real-time priority if asked for.
    Alone {
        /// Inherited by all it starts.
        real_time: bool,
    },
    /// As from a shell, with this terminal.
    Shell,
}

/// A running program. Dropped, it is killed.
#[derive(Debug)]
pub struct Process {
    kill: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<ExitStatus>>>,
}

impl Process {
    /// It has ended, or could not be waited for.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        let panicked = || Err(io::Error::other("panicked"));
        self.thread.take().map_or_else(panicked, |t| t.join().unwrap_or_else(|_| panicked()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // How it ended is of no interest to anybody.
            let _ = thread.join();
        }
    }
}

impl Network {
    /// Starts a program on a host as a shell would: it shares this terminal.
    pub fn spawn(&self, side: End, command: Command) -> Result<Process, LabError> {
        self.start(side, command, Kind::Shell)
    }

    /// Starts a program on a host and keeps it apart: all that it starts ends with it.
    pub fn spawn_alone(&self, side: End, command: Command) -> Result<Process, LabError> {
        self.start(side, command, Kind::Alone { real_time: false })
    }

    pub(crate) fn start(&self, side: End, mut command: Command, kind: Kind) -> Result<Process, LabError> {
        let what = format!("start {}", command.get_program().to_string_lossy());
        let kill = Arc::new(AtomicBool::new(false));
        let killed = Arc::clone(&kill);
        let namespace = self.host(side).share()?;
        let (say, said) = channel();
        let parent = move || {
            let entered =
                sys::enter_network(namespace.as_fd()).map_err(LabError::failed("enter a namespace"));
            let born = entered.and_then(|()| {
                if let Kind::Alone { real_time } = kind {
                    sys::new_processes().map_err(LabError::failed("a process namespace"))?;
                    if real_time {
                        let _ = sys::real_time(5);
                    }
                }
                sys::dies_with_thread(&mut command);
                command.spawn().map_err(LabError::failed(what))
            });
            let mut child = match born {
                Ok(child) => {
                    let _ = say.send(Ok(()));
                    child
                }
                Err(e) => {
                    let _ = say.send(Err(e));
                    return Err(io::Error::other("not started"));
                }
            };
            let end = process::end_of(i32::try_from(child.id()).unwrap_or(0));
            loop {
                if let Some(status) = child.try_wait()? {
                    return Ok(status);
                }
                if killed.load(Relaxed) {
                    child.kill()?;
                    return child.wait();
                }
                match &end {
                    Ok(end) => process::wait(&[end.as_fd()], None, Some(POLL)).map(drop)?,
                    // Before Linux 5.3.
                    Err(_) => std::thread::sleep(POLL.div_f64(4.0)),
                }
            }
        };
        let thread = std::thread::Builder::new().name("lab-program".into());
        let thread = thread.spawn(parent).map_err(LabError::failed("start a thread"))?;
        let process = Process { kill, thread: Some(thread) };
        said.recv()
            .unwrap_or_else(|_| Err(LabError::failed("start a thread")(io::Error::other("it ended"))))?;
        Ok(process)
    }

    /// Runs `work` in a thread on a host.
    pub(crate) fn on<'s, T: Send + 's>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        side: End,
        work: impl FnOnce() -> Result<T, LabError> + Send + 's,
    ) -> Result<ScopedJoinHandle<'s, Result<T, LabError>>, LabError> {
        let work = move || self.enter(side).and_then(|()| work());
        watch::thread().spawn_scoped(scope, work).map_err(LabError::failed("start a thread"))
    }
}
