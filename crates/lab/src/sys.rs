//! The system calls that the standard library does not have, each behind a safe function. All `unsafe` of the
//! crate is here: namespaces, TUN, scheduling, and socket options that must be set before `connect` or `listen`.

pub(crate) mod device;
pub(crate) mod process;
pub(crate) mod ring;

use std::ffi::{c_int, c_short, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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

/// Processes that this thread starts from now on are in a process namespace of their own: the first is its number 1,
/// and when that ends, the kernel ends all others.
pub(crate) fn new_processes() -> io::Result<()> {
    // SAFETY: takes no pointers; what changes is where children of this thread are born.
    check(unsafe { libc::unshare(libc::CLONE_NEWPID) }).map(drop)
}

/// The program will be killed when the thread that starts it ends, whatever ends it.
pub(crate) fn dies_with_thread(command: &mut Command) {
    // SAFETY: between fork and exec only one system call is made, which takes integers.
    unsafe {
        command.pre_exec(|| {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)).map(drop)
        });
    }
}

/// As many open files as this process may have: `wanted` where its privileges allow that (CAP_SYS_RESOURCE, up to
/// `fs.nr_open`), else as many as the hard limit says. Returns how many.
pub(crate) fn many_files(wanted: u64) -> io::Result<u64> {
    // SAFETY: an all-zero rlimit is valid, and it outlives all calls.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        let most = limit.rlim_max.max(wanted);
        let raised = libc::rlimit { rlim_cur: most, rlim_max: most };
        if check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised)).is_ok() {
            return Ok(most);
        }
        limit.rlim_cur = limit.rlim_max;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)).map(|_| limit.rlim_cur)
    }
}

/// Processor time that this thread has used.
pub(crate) fn processor_time() -> Duration {
    // SAFETY: an all-zero timespec is valid, and it outlives the call.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        time
    };
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// A socket that sends whole IPv4 packets, whatever their source address.
pub(crate) fn raw_socket() -> io::Result<OwnedFd> {
    // SAFETY: takes integers; the descriptor is ours alone.
    unsafe {
        let fd = check(libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_RAW))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Sends a whole IPv4 packet to an address.
pub(crate) fn send_raw(fd: BorrowedFd<'_>, packet: &[u8], to: Ipv4Addr) -> io::Result<()> {
    let address = address(SocketAddrV4::new(to, 0));
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: pointer and length are those of the slice; an address of the size that is passed.
    let sent = unsafe {
        let start = packet.as_ptr().cast();
        libc::sendto(fd.as_raw_fd(), start, packet.len(), 0, (&raw const address).cast(), size)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bytes that were written to a TCP socket and not yet acknowledged.
pub(crate) fn unacknowledged(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: c_int = 0;
    // SAFETY: TIOCOUTQ, which is SIOCOUTQ, writes one int, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Makes a TUN device without packet information in this thread's network namespace. It is gone when the
/// descriptor is closed, by whatever end of the process.
/// With `offload` each packet has a header of [`OFFLOAD_HEADER`] bytes before it and may be a segment of 64 KB.
pub(crate) fn tun(name: &str, offload: bool) -> io::Result<OwnedFd> {
    let path = c"/dev/net/tun";
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path ends in NUL, and the descriptor is ours alone from here on.
    let fd = unsafe { OwnedFd::from_raw_fd(check(libc::open(path.as_ptr(), flags))?) };
    // SAFETY: an all-zero ifreq is valid: its members are plain integers and bytes.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    let header = if offload { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | header) as c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    if offload {
        let what = libc::c_ulong::from(libc::TUN_F_CSUM | libc::TUN_F_TSO4);
        // SAFETY: takes an integer in the place of the pointer.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD as _, what) })?;
    }
    Ok(fd)
}

/// `struct virtio_net_hdr`.
pub(crate) const OFFLOAD_HEADER: usize = 10;

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

/// Binds to an address; port 0 lets the kernel choose.
pub(crate) fn bind(fd: BorrowedFd<'_>, to: SocketAddrV4) -> io::Result<()> {
    let address = address(to);
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: an address of the size that is passed, which outlives the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) }).map(drop)
}

/// Binds to `port` of any address and listens.
pub(crate) fn listen(fd: BorrowedFd<'_>, port: u16, backlog: i32) -> io::Result<()> {
    bind(fd, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
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

/// Writes to a socket when `epoll` says that it can be written, as an event loop does. Ends without a byte if `stop`.
pub(crate) fn send_when_writable(
    fd: BorrowedFd<'_>,
    data: &[u8],
    more: bool,
    stop: &AtomicBool,
) -> io::Result<usize> {
    // SAFETY: takes integers; the descriptor is ours alone.
    let poll = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
    let mut event = libc::epoll_event { events: libc::EPOLLOUT as u32, u64: 0 };
    // SAFETY: an event that outlives the call.
    check(unsafe { libc::epoll_ctl(poll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event) })?;
    while !stop.load(Relaxed) {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | if more { libc::MSG_MORE } else { 0 };
        // SAFETY: pointer and length are those of the slice.
        let sent = unsafe { libc::send(fd.as_raw_fd(), data.as_ptr().cast(), data.len(), flags) };
        match usize::try_from(sent) {
            Ok(n) => return Ok(n),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(io::Error::last_os_error()),
        }
        // SAFETY: room for one event, which outlives the call.
        check(unsafe { libc::epoll_wait(poll.as_raw_fd(), &raw mut event, 1, 50) })?;
    }
    Ok(0)
}
