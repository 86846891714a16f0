//! Standard input, whose reader an interrupt ends even while nothing comes.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set by the interrupt that asks for an answer about what was read.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Who waits for standard input ends at `stop`.
pub(crate) fn ends_at(stop: &Arc<AtomicBool>) {
    let _ = STOP.set(Arc::clone(stop));
}

/// Reads standard input until its end or the interrupt. Nothing is buffered: what was read is with who asked for it.
pub(crate) struct Stdin(system::Input);

impl Stdin {
    pub(crate) fn open() -> io::Result<Stdin> {
        system::open().map(Stdin)
    }
}

impl Read for Stdin {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let stopped = || STOP.get().is_some_and(|stop| stop.load(Relaxed));
        while !stopped() {
            if system::has_bytes(&self.0)? {
                return self.0.read(buf);
            }
        }
        Ok(0)
    }
}

#[cfg(unix)]
mod system {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd as _;

    pub(super) type Input = File;

    /// How long an interrupt may go unnoticed that another thread was told of.
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

    pub(super) fn open() -> io::Result<File> {
        Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
    }

    /// There are bytes, or there will be none. A read alone goes on after a signal (`SA_RESTART`).
    pub(super) fn has_bytes(input: &File) -> io::Result<bool> {
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&LOOK)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;

    pub(super) type Input = io::Stdin;

    pub(super) fn open() -> io::Result<io::Stdin> {
        Ok(io::stdin())
    }

    pub(super) fn has_bytes(_: &io::Stdin) -> io::Result<bool> {
        Ok(true)
    }
}
