//! The system calls that the standard library does not have, each behind a safe function. All `unsafe` of the
//! crate is here: namespaces, TUN, scheduling, and socket options that must be set before `connect` or `listen`.

use std::ffi::{c_int, c_short, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Moves this thread alone into a new network namespace.
pub(crate) fn new_network() -> io::Result<()> {
    // SAFETY: takes no pointers; of what threads share, only the network namespace is unshared.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Moves this thread alone into the network namespace behind `namespace`.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes an open descriptor; the kernel checks that it is a network namespace.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Makes a TUN device without packet information in this thread's network namespace. It is gone when the
/// descriptor is closed, by whatever end of the process.
pub(crate) fn tun(name: &str) -> io::Result<OwnedFd> {
    let path = c"/dev/net/tun";
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path ends in NUL, and the descriptor is ours alone from here on.
    let fd = unsafe { OwnedFd::from_raw_fd(check(libc::open(path.as_ptr(), flags))?) };
    // SAFETY: an all-zero ifreq is valid: its members are plain integers and bytes.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    Ok(fd)
}

/// Waits until one of the two is readable, at most `timeout`.
pub(crate) fn wait_readable(fds: [BorrowedFd<'_>; 2], timeout: Duration) -> io::Result<()> {
    let mut polled = fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let time = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    };
    // SAFETY: two pollfds and a timespec that outlive the call; a null signal mask changes none.
    match check(unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &raw const time, std::ptr::null()) }) {
        Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e),
        _ => Ok(()),
    }
}

/// This thread's timers run to the nanosecond instead of 50 us late.
pub(crate) fn precise_timers() -> io::Result<()> {
    // SAFETY: takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) }).map(drop)
}

/// Real-time priority for this thread.
pub(crate) fn real_time(priority: i32) -> io::Result<()> {
    // SAFETY: an all-zero sched_param is valid, and it outlives the call; 0 is this thread.
    unsafe {
        let mut param: libc::sched_param = zeroed();
        param.sched_priority = priority;
        check(libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param)).map(drop)
    }
}

/// This thread runs on one processor only, and only when that has nothing else to do.
pub(crate) fn idle_on(cpu: usize) -> io::Result<()> {
    // SAFETY: both structures are plain integers, valid when zero, and outlive the calls. CPU_SET checks its
    // index against the size of the set.
    unsafe {
        let param: libc::sched_param = zeroed();
        check(libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param))?;
        // So that /proc/stat counts its time apart, as nice. A thread's own on Linux.
        libc::nice(19);
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(cpu, &mut set);
        check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)).map(drop)
    }
}

/// A TCP socket over IPv4.
pub(crate) fn tcp_socket() -> io::Result<OwnedFd> {
    // SAFETY: takes integers; the descriptor is ours alone.
    unsafe {
        let fd = check(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn address(to: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(to.ip().octets()) },
        sin_zero: [0; 8],
    }
}

/// Connects, blocking; `SO_SNDTIMEO` bounds it.
pub(crate) fn connect(fd: BorrowedFd<'_>, to: SocketAddrV4) -> io::Result<()> {
    let address = address(to);
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: an address of the size that is passed, which outlives the call.
    check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), size) }).map(drop)
}

/// Binds to `port` of any address and listens.
pub(crate) fn listen(fd: BorrowedFd<'_>, port: u16, backlog: i32) -> io::Result<()> {
    let address = address(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: an address of the size that is passed, which outlives the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) })?;
    // SAFETY: takes integers only.
    check(unsafe { libc::listen(fd.as_raw_fd(), backlog) }).map(drop)
}

/// Ends both directions; a blocked `accept`, `read` or `write` on it returns.
pub(crate) fn shut_down(fd: BorrowedFd<'_>) {
    // SAFETY: takes integers only. That the socket may be unconnected does not matter.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Sets an option whose value is a C `int`.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    set(fd, level, name, &value)
}

/// Sets how long a call on the socket may block: `SO_RCVTIMEO` or `SO_SNDTIMEO`.
pub(crate) fn set_timeout(fd: BorrowedFd<'_>, name: c_int, time: Duration) -> io::Result<()> {
    let value = libc::timeval {
        tv_sec: time.as_secs() as libc::time_t,
        tv_usec: libc::suseconds_t::from(time.subsec_micros() as i32),
    };
    set(fd, libc::SOL_SOCKET, name, &value)
}

/// `close` will send RST and throw away what was not sent.
pub(crate) fn reset_on_close(fd: BorrowedFd<'_>) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: 0 })
}

fn set<T: Copy>(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and size belong to one value that outlives the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size) })
        .map(drop)
}

/// Reads an option into `into` and says how many bytes of it the kernel filled.
pub(crate) fn option(fd: BorrowedFd<'_>, level: c_int, name: c_int, into: &mut [u8]) -> io::Result<usize> {
    let mut size = into.len() as libc::socklen_t;
    let start: *mut c_void = into.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `size` bytes, which is the length of the slice.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, start, &raw mut size) })?;
    Ok(size as usize)
}

/// Writes to a socket; `more` is `MSG_MORE`.
pub(crate) fn send(fd: BorrowedFd<'_>, data: &[u8], more: bool) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 };
    // SAFETY: pointer and length are those of the slice.
    let sent = unsafe { libc::send(fd.as_raw_fd(), data.as_ptr().cast(), data.len(), flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
