//! Standard input and pipes that have a name, whose reader an interrupt ends even while nothing comes.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set by the interrupt that asks for an answer about what was read.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Who waits for such an input ends at `stop`.
pub(crate) fn ends_at(stop: &Arc<AtomicBool>) {
    let _ = STOP.set(Arc::clone(stop));
}

/// Reads until the end or the interrupt. Nothing is buffered: what was read is with who asked for it.
pub(crate) struct Stdin(system::Input);

impl Stdin {
    pub(crate) fn open() -> io::Result<Stdin> {
        system::open().map(Stdin)
    }

    /// Opens the pipe at `path`, whose writer may come later; `None` if there is no pipe.
    pub(crate) fn of_pipe(path: &Path) -> Option<io::Result<Stdin>> {
        system::is_pipe(path).then(|| system::open_pipe(path).map(Stdin))
    }

    /// Whether a pipe is there that is opened so: to open it in any other way may take for ever.
    pub(crate) fn is_pipe(path: &Path) -> bool {
        system::is_pipe(path)
    }

    /// Whether a pipe is there at all, such as that of `<(zcat a.pcap.gz)`: what was read of it is gone.
    pub(crate) fn is_any_pipe(path: &Path) -> bool {
        system::is_any_pipe(path)
    }
}

impl Read for Stdin {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let stopped = || STOP.get().is_some_and(|stop| stop.load(Relaxed));
        while !stopped() {
            if system::has_bytes(&self.0)? {
                match self.0.read(buf) {
                    // Somebody else who reads the same pipe was faster.
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
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
    use std::os::unix::fs::FileTypeExt as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::path::Path;

    pub(super) type Input = File;

    /// How long an interrupt may go unnoticed that another thread was told of.
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

    pub(super) fn open() -> io::Result<File> {
        Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
    }

    /// Elsewhere than on Linux a pipe whose writer has not come yet looks as one whose writers have gone.
    pub(super) fn is_pipe(path: &Path) -> bool {
        cfg!(target_os = "linux") && is_any_pipe(path)
    }

    pub(super) fn is_any_pipe(path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|m| m.file_type().is_fifo())
    }

    /// Without waiting for a writer: [`has_bytes`] does, and can be interrupted.
    pub(super) fn open_pipe(path: &Path) -> io::Result<File> {
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        File::options().read(true).custom_flags(nonblocking).open(path)
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
    use std::path::Path;

    pub(super) type Input = io::Stdin;

    pub(super) fn open() -> io::Result<io::Stdin> {
        Ok(io::stdin())
    }

    pub(super) fn is_pipe(_: &Path) -> bool {
        false
    }

    pub(super) fn is_any_pipe(_: &Path) -> bool {
        false
    }

    pub(super) fn open_pipe(_: &Path) -> io::Result<io::Stdin> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn has_bytes(_: &io::Stdin) -> io::Result<bool> {
        Ok(true)
    }
}
