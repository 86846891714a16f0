//! Processes and signals: what a supervisor needs that stays between a program and everybody else.

use super::check;
use std::ffi::c_int;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::time::Duration;

/// A new user namespace and in it a network namespace, for this process, which has one thread: in them it may do what
/// root may. It stays the user that it is; other users there are none.
pub(crate) fn new_user_and_network() -> io::Result<()> {
    // SAFETY: take no pointers.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: takes no pointers; the kernel refuses it to a process with several threads.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) })?;
    // user_namespaces(7): a process maps its own group only after it has given up to change the others.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// The effective user.
pub(crate) fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// A second process like this one; `None` in it, its number in the first. Refused where there are threads:
/// they would be missing in the second, with what they hold.
pub(crate) fn fork() -> io::Result<Option<c_int>> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this process has threads"));
    }
    // SAFETY: there is one thread, so that the child finds everything as it was.
    match check(unsafe { libc::fork() })? {
        0 => Ok(None),
        child => Ok(Some(child)),
    }
}

/// Ends this process without running what others have left to be run at its end.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: takes an integer.
    unsafe { libc::_exit(code) }
}

/// Processes whose parent ends become children of this one (`PR_SET_CHILD_SUBREAPER`).
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong, 0, 0, 0) }).map(drop)
}

/// Sends a signal. That there is no such process any more does not matter.
pub(crate) fn kill(process: c_int, signal: c_int) {
    // SAFETY: takes integers only.
    unsafe { libc::kill(process, signal) };
}

/// A descriptor that is readable once this process has ended.
pub(crate) fn end_of(process: c_int) -> io::Result<OwnedFd> {
    // SAFETY: takes integers only; the descriptor is ours alone.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(process), 0 as libc::c_long);
        Ok(OwnedFd::from_raw_fd(check(c_int::try_from(fd).unwrap_or(-1))?))
    }
}

/// A child that has ended; none if none has. An error means that there are no children.
pub(crate) fn reap() -> io::Result<Option<(c_int, ExitStatus)>> {
    let mut status = 0;
    // SAFETY: writes one integer, which outlives the call.
    match check(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) })? {
        0 => Ok(None),
        child => Ok(Some((child, ExitStatus::from_raw(status)))),
    }
}

/// The two ends of a new pipe: to read, to write. `large`: of a megabyte, where the limits of this user allow it.
pub(crate) fn pipe(large: bool) -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which are ours alone.
    let (read, write) = unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    if large {
        // SAFETY: takes integers. A smaller pipe does as well.
        unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, 1 << 20) };
    }
    Ok((read.into(), write.into()))
}

/// A signal that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal {
    /// Which.
    pub(crate) number: c_int,
    /// A process sent it; else the kernel did, as for ^C at a terminal, and then to the whole group.
    pub(crate) by_process: bool,
}

/// The signals that were blocked before any [`Signals`].
static MASK: OnceLock<libc::sigset_t> = OnceLock::new();

/// The program will hear the signals that this process heard before any [`Signals`]: what is blocked is inherited.
pub(crate) fn hears_signals(command: &mut Command) {
    let Some(&mask) = MASK.get() else { return };
    // SAFETY: between fork and exec only one system call is made; the set is a copy.
    unsafe {
        command.pre_exec(move || {
            check(libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut())).map(drop)
        });
    }
}

/// Signals as something to be read. They are blocked in this thread and in those that it starts.
#[derive(Debug)]
pub(crate) struct Signals(File);

impl Signals {
    /// Those of `wanted` that this process was not started to ignore, as `nohup` does.
    pub(crate) fn new(wanted: &[c_int]) -> io::Result<Signals> {
        // SAFETY: all-zero sets are valid and outlive the calls; the descriptor is ours alone.
        unsafe {
            let mut set: libc::sigset_t = zeroed();
            libc::sigemptyset(&raw mut set);
            for &signal in wanted {
                let mut now: libc::sigaction = zeroed();
                check(libc::sigaction(signal, std::ptr::null(), &raw mut now))?;
                if now.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&raw mut set, signal);
                }
            }
            let mut before: libc::sigset_t = zeroed();
            check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut before))?;
            let _ = MASK.set(before);
            let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            Ok(Signals(File::from(OwnedFd::from_raw_fd(fd))))
        }
    }

    /// The next, if one has come.
    pub(crate) fn next(&self) -> Option<Signal> {
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        let n = (&self.0).read(&mut bytes).ok()?;
        if n < bytes.len() {
            return None;
        }
        // SAFETY: the kernel has filled the whole structure, which is plain integers.
        let info = unsafe { bytes.as_ptr().cast::<libc::signalfd_siginfo>().read_unaligned() };
        // sigaction(2): what kill, tkill and sigqueue send is not above 0.
        Some(Signal { number: info.ssi_signo as c_int, by_process: info.ssi_code <= 0 })
    }
}

impl std::os::fd::AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until one of `readable` is, or the other end of `writable` is closed; without a timeout as long as that takes.
/// Says whether `writable` is of no use any more.
pub(crate) fn wait(
    readable: &[BorrowedFd<'_>],
    writable: Option<BorrowedFd<'_>>,
    timeout: Option<Duration>,
) -> io::Result<bool> {
    let polled = |fd: &BorrowedFd<'_>, events| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    let mut all: Vec<libc::pollfd> = readable.iter().map(|fd| polled(fd, libc::POLLIN)).collect();
    // Asked for nothing, it is told only about errors.
    all.extend(writable.iter().map(|fd| polled(fd, 0)));
    let time = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(t.subsec_nanos() as i32),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: pointer and length are those of the vector, a timespec or null; a null mask changes no signals.
    let polled =
        check(unsafe { libc::ppoll(all.as_mut_ptr(), all.len() as libc::nfds_t, time, std::ptr::null()) });
    match polled {
        Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e),
        Err(_) => Ok(false),
        Ok(_) => Ok(writable.is_some() && all.last().is_some_and(|p| p.revents != 0)),
    }
}
