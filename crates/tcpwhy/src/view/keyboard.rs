//! Waiting for keys, and noticing that the terminal has gone: crossterm reads the end of a terminal that hung
//! up without end, and no signal can stop it there.

#[cfg(unix)]
pub(crate) use unix::Keyboard;

#[cfg(not(unix))]
pub(crate) struct Keyboard;

#[cfg(not(unix))]
impl Keyboard {
    pub(crate) fn open() -> std::io::Result<Self> {
        Ok(Self)
    }

    /// False once the terminal has gone, which does not show here.
    pub(crate) fn wait(&self, _most: std::time::Duration) -> bool {
        true
    }
}

#[cfg(unix)]
mod unix {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::fs::File;
    use std::io::{self, IsTerminal};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::time::Duration;

    /// Where keys come from: standard input, or the controlling terminal where that is a capture (as
    /// crossterm does it).
    pub(crate) struct Keyboard {
        tty: Option<File>,
    }

    impl Keyboard {
        pub(crate) fn open() -> io::Result<Self> {
            let tty = if io::stdin().is_terminal() { None } else { Some(File::open("/dev/tty")?) };
            Ok(Self { tty })
        }

        /// Waits for a key, a signal, or so long; false once the terminal has gone (its window was closed,
        /// the connection to it was lost).
        pub(crate) fn wait(&self, most: Duration) -> bool {
            let stdin = io::stdin();
            let fd: BorrowedFd<'_> = self.tty.as_ref().map_or_else(|| stdin.as_fd(), AsFd::as_fd);
            let mut polled = [PollFd::new(&fd, PollFlags::IN)];
            let most = Timespec { tv_sec: 0, tv_nsec: i64::from(most.subsec_nanos()) };
            // An interrupted wait is one that ended early.
            let _ = poll(&mut polled, Some(&most));
            !polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
        }
    }
}
