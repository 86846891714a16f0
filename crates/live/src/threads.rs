//! Threads that wait in a call for a peer: `/proc/PID/task/TID/syscall` names the call and the file of each
//! sleeping thread.

use crate::connection::Connection;
use crate::sample::Process;
use hashbrown::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use tcpwhy_base::{Endpoint, Nanos};

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// The handshake.
    Connect,
    /// A connection from a listener.
    Accept,
    /// Bytes.
    Receive,
    /// Room for bytes.
    Send,
}

impl Call {
    /// The name in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            Call::Connect => "connect",
            Call::Accept => "accept",
            Call::Receive => "recv",
            Call::Send => "send",
        }
    }

    /// By the number of the system call; those whose first argument is a file.
    fn from_number(number: u64) -> Option<Call> {
        #[cfg(target_arch = "x86_64")]
        return Some(match number {
            // read, readv, recvfrom, recvmsg, recvmmsg
            0 | 19 | 45 | 47 | 299 => Call::Receive,
            // write, writev, sendto, sendmsg, sendmmsg
            1 | 20 | 44 | 46 | 307 => Call::Send,
            42 => Call::Connect,
            43 | 288 => Call::Accept,
            _ => return None,
        });
        #[cfg(target_arch = "aarch64")]
        return Some(match number {
            63 | 65 | 207 | 212 | 243 => Call::Receive,
            64 | 66 | 206 | 211 | 269 => Call::Send,
            203 => Call::Connect,
            202 | 242 => Call::Accept,
            _ => return None,
        });
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            let _ = number;
            None
        }
    }
}

/// A thread inside a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its process.
    pub pid: u32,
    /// Itself.
    pub tid: u32,
    /// In what.
    pub call: Call,
    /// On which socket.
    pub inode: u32,
    /// For how long it has been seen there.
    pub waited: Nanos,
}

/// Threads of a process that wait in the same call for the same peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Whose they are.
    pub process: Process,
    /// In what.
    pub call: Call,
    /// For whom.
    pub peer: Endpoint,
    /// How many.
    pub threads: usize,
    /// How many threads the process has.
    pub of: usize,
    /// How long the longest of them has been seen there.
    pub longest: Nanos,
}

/// Groups them by process, call and peer: connects and sends before reads, which are idle more often than
/// not; the largest first.
pub fn stuck(waiting: &[Waiting], counts: &HashMap<u32, usize>, connections: &[Connection]) -> Vec<Stuck> {
    let by_inode: HashMap<u32, &Connection> = connections.iter().map(|c| (c.sample.inode, c)).collect();
    let mut out: Vec<Stuck> = Vec::new();
    for w in waiting {
        let Some(c) = by_inode.get(&w.inode) else { continue };
        let (peer, pid) = (c.sample.peer, w.pid);
        match out.iter_mut().find(|s| (s.process.pid, s.call, s.peer) == (pid, w.call, peer)) {
            Some(s) => (s.threads, s.longest) = (s.threads + 1, s.longest.max(w.waited)),
            None => {
                let Some(process) = c.process.clone() else { continue };
                let of = counts.get(&pid).copied().unwrap_or(1);
                let process = Process { pid, ..process };
                out.push(Stuck { process, call: w.call, peer, threads: 1, of, longest: w.waited });
            }
        }
    }
    out.sort_by_key(|s| {
        (s.call == Call::Receive, std::cmp::Reverse((s.threads, s.longest)), s.process.pid, s.peer)
    });
    out
}

/// So many threads are asked at each look whether they read.
const ASKED: usize = 64;

/// A thread that was seen in a call to read from a socket.
#[derive(Clone, Copy, Debug)]
struct Reader {
    pid: u32,
    tid: u32,
    file: u64,
}

/// A call that a thread sleeps in. A loop makes the same call again and again: by how often it was woken they
/// are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inside {
    text: String,
    inode: u32,
    woken: Option<u64>,
}

/// Threads as they were at the last look.
#[derive(Debug, Default)]
pub struct Threads {
    /// By thread: where it is, which is the same as long as it is inside, and the first time of that.
    seen: HashMap<u32, (Inside, Nanos)>,
    /// Who was seen to read, by the socket's inode.
    readers: HashMap<u32, Reader>,
    /// Where among them to go on asking.
    turn: usize,
    /// How many threads each process has.
    pub counts: HashMap<u32, usize>,
    /// Processes whose calls this user may not see.
    pub hidden: u32,
}

impl Threads {
    /// Looks at all threads of these processes, at `time` on a clock that does not jump.
    pub fn look(&mut self, pids: impl IntoIterator<Item = u32>, time: Nanos) -> Vec<Waiting> {
        let mut before = std::mem::take(&mut self.seen);
        self.hidden = 0;
        self.counts.clear();
        let mut out = Vec::new();
        let pids: HashSet<u32> = pids.into_iter().collect();
        self.readers.retain(|_, reader| pids.contains(&reader.pid));
        for pid in pids {
            let folder = Path::new("/proc").join(pid.to_string());
            let Ok(tasks) = fs::read_dir(folder.join("task")) else { continue };
            let mut refused = false;
            for task in tasks.flatten() {
                let Some(tid) = task.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else {
                    continue;
                };
                *self.counts.entry(pid).or_default() += 1;
                let text = match fs::read_to_string(task.path().join("syscall")) {
                    Ok(text) => text,
                    Err(e) => {
                        refused |= e.kind() == std::io::ErrorKind::PermissionDenied;
                        continue;
                    }
                };
                let Some((call, file)) = call_of(&text) else { continue };
                let target = fs::read_link(folder.join("fd").join(file.to_string()));
                let Some(inode) = target.ok().and_then(|t| socket_of(t.to_str()?)) else { continue };
                let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
                let inside = Inside { text, inode, woken: woken(&status) };
                let since =
                    before.remove(&tid).filter(|(old, _)| *old == inside).map_or(time, |(_, since)| since);
                self.seen.insert(tid, (inside, since));
                if call == Call::Receive {
                    self.readers.insert(inode, Reader { pid, tid, file });
                }
                out.push(Waiting { pid, tid, call, inode, waited: time - since });
            }
            self.hidden += u32::from(refused);
        }
        out
    }

    /// Whether those that were seen to read from these sockets do so now, by inode; of many sockets of some at a time.
    pub fn reading(&mut self, inodes: impl Iterator<Item = u32>) -> HashMap<u32, bool> {
        if self.readers.is_empty() {
            return HashMap::new();
        }
        let known: Vec<(u32, Reader)> =
            inodes.filter_map(|inode| Some((inode, *self.readers.get(&inode)?))).collect();
        let from = if self.turn < known.len() { self.turn } else { 0 };
        self.turn = from + ASKED;
        let mut out = HashMap::new();
        for (inode, Reader { pid, tid, file }) in known.into_iter().skip(from).take(ASKED) {
            match fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")) {
                Ok(text) => drop(out.insert(inode, call_of(&text) == Some((Call::Receive, file)))),
                Err(_) => drop(self.readers.remove(&inode)),
            }
        }
        out
    }
}

/// Calls that wait for many files at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Many {
    /// Those of an epoll file, the first argument.
    Epoll,
    /// Those of a list in the memory of the program, or of a ring: poll, select, io_uring_enter.
    Listed,
}

impl Many {
    fn from_number(number: u64) -> Option<Many> {
        #[cfg(target_arch = "x86_64")]
        return match number {
            232 | 281 | 441 => Some(Many::Epoll),
            7 | 23 | 270 | 271 | 426 => Some(Many::Listed),
            _ => None,
        };
        #[cfg(target_arch = "aarch64")]
        return match number {
            22 | 441 => Some(Many::Epoll),
            72 | 73 | 426 => Some(Many::Listed),
            _ => None,
        };
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            let _ = number;
            Some(Many::Listed)
        }
    }
}

/// Of sockets of a process those for bytes of which none of its threads waits: all work, sleep, or wait for something
/// else. Left out are those of which that does not show, as with poll() and select(), or may not be looked at.
pub fn elsewhere(pid: u32, inodes: &[u32]) -> Vec<u32> {
    let folder = Path::new("/proc").join(pid.to_string());
    let Ok(tasks) = fs::read_dir(folder.join("task")) else { return Vec::new() };
    let (mut calls, mut seen) = (Vec::new(), false);
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("syscall")) {
            Ok(text) => {
                seen = true;
                if may_wait(&text) {
                    calls.push(text);
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Vec::new(),
            // It has ended.
            Err(_) => {}
        }
    }
    let nobody = |inode: u32| calls.iter().all(|text| waits_for(text, inode, &folder) == Some(false));
    inodes.iter().copied().filter(|&inode| seen && nobody(inode)).collect()
}

/// Whether a call is one that bytes may end.
fn may_wait(text: &str) -> bool {
    let number = text.split_whitespace().next().and_then(|n| n.parse().ok());
    number.is_some_and(|n| Call::from_number(n) == Some(Call::Receive) || Many::from_number(n).is_some())
}

/// Whether a thread in this call waits for bytes of the socket.
fn waits_for(text: &str, inode: u32, folder: &Path) -> Option<bool> {
    if let Some((call, file)) = call_of(text) {
        let target = fs::read_link(folder.join("fd").join(file.to_string()));
        let is_it = target.ok().and_then(|t| socket_of(t.to_str()?)) == Some(inode);
        return Some(call == Call::Receive && is_it);
    }
    let mut words = text.split_whitespace();
    let Some(number) = words.next().and_then(|n| n.parse().ok()) else {
        // It runs, or is in none.
        return Some(false);
    };
    match Many::from_number(number) {
        None => Some(false),
        Some(Many::Listed) => None,
        Some(Many::Epoll) => {
            let file = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
            let about = fs::read_to_string(folder.join("fdinfo").join(file.to_string())).ok()?;
            let is_epoll = |file: &str| {
                let target = fs::read_link(folder.join("fd").join(file));
                target.is_ok_and(|t| t.to_str() == Some("anon_inode:[eventpoll]"))
            };
            awaits(&about, inode, is_epoll)
        }
    }
}

/// Whether an epoll file tells of bytes of the socket: `tfd: 5 events: 19 data: 5 pos:0 ino:2b1c sdev:8`
/// (`ep_show_fdinfo`, `fs/eventpoll.c`), events and inodes hexadecimal. None: it holds another one, which may.
fn awaits(about: &str, inode: u32, is_epoll: impl Fn(&str) -> bool) -> Option<bool> {
    const EPOLLIN: u32 = 1;
    let hex = |word: &str| u32::from_str_radix(word, 16).ok();
    let mut nested = false;
    for line in about.lines().filter_map(|l| l.strip_prefix("tfd:")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ino = words.iter().find_map(|w| hex(w.strip_prefix("ino:")?));
        let events = words.iter().skip_while(|w| **w != "events:").nth(1).and_then(|w| hex(w));
        // One that is armed once and has fired keeps no event (EPOLLONESHOT).
        if ino == Some(inode) && events.is_none_or(|e| e & EPOLLIN != 0) {
            return Some(true);
        }
        nested |= words.first().is_some_and(|file| is_epoll(file));
    }
    (!nested).then_some(false)
}

/// `45 0x3 0x7ffd…`: the number of the call and its arguments, then two pointers; `running` or `-1` if it is in none.
fn call_of(text: &str) -> Option<(Call, u64)> {
    let mut words = text.split_whitespace();
    let call = Call::from_number(words.next()?.parse().ok()?)?;
    let file = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    Some((call, file))
}

/// How often a thread has gone to sleep, of `/proc/PID/task/TID/status`.
fn woken(status: &str) -> Option<u64> {
    status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
}

/// The control groups of a process, one for each hierarchy: `/system.slice/nginx.service`.
pub fn control_groups(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    // 0::/path, or 4:memory:/path
    text.lines().filter_map(|l| Some(l.splitn(3, ':').nth(2)?.to_owned())).collect()
}

fn socket_of(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    #[test]
    fn what_is_no_call_is_left_out() {
        for text in ["running", "-1 0x7ffe 0x7f00", "", "45", "45 3 4", "999999 0x1", "45 0x"] {
            assert_eq!(call_of(text), None, "{text}");
        }
        assert_eq!(
            woken("Name:\tx\nvoluntary_ctxt_switches:\t45\nnonvoluntary_ctxt_switches:\t7\n"),
            Some(45)
        );
        assert_eq!((woken("nonvoluntary_ctxt_switches:\t7\n"), woken("")), (None, None));
        assert_eq!(socket_of("socket:[77]"), Some(77));
        assert_eq!((socket_of("pipe:[77]"), socket_of("socket:[]")), (None, None));
    }

    /// 5 waits for bytes, 6 for room, 7 has fired and is not armed anew; 8 is another epoll file.
    #[test]
    fn what_an_epoll_file_waits_for() {
        let about = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1057\n\
                     tfd:        5 events:       19 data:                5  pos:0 ino:2b1c sdev:8\n\
                     tfd:        6 events:        4 data:                6  pos:0 ino:2b1d sdev:8\n\
                     tfd:        7 events: 40000000 data:                7  pos:0 ino:2b1e sdev:8\n";
        let nested =
            format!("{about}tfd:        8 events:       19 data:                8  pos:0 ino:421 sdev:f\n");
        let awaits = |about: &str, inode| awaits(about, inode, |file| file == "8");
        assert_eq!(
            [0x2b1c, 0x2b1d, 0x2b1e, 0x2b1f].map(|ino| awaits(about, ino)),
            [true, false, false, false].map(Some)
        );
        assert_eq!([0x2b1c, 0x2b1f].map(|ino| awaits(&nested, ino)), [Some(true), None]);
    }

    /// Calls are told by their numbers, and what a list in memory holds is not known.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn who_waits_for_a_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode = socket_of(link.to_str().unwrap()).unwrap();
        let file = listener.as_raw_fd();
        let waits = |text: &str| waits_for(text, inode, Path::new("/proc/self"));
        assert_eq!(
            waits(&format!("45 0x{file:x} 0x7f 0x1 0x0 0x0 0x0 0x7ffe 0x7f00")),
            Some(true),
            "recvfrom"
        );
        assert_eq!(
            waits(&format!("44 0x{file:x} 0x7f 0x1 0x0 0x0 0x0 0x7ffe 0x7f00")),
            Some(false),
            "sendto"
        );
        assert_eq!(waits("230 0x0 0x0 0x7f 0x0 0x0 0x0 0x7ffe 0x7f00"), Some(false), "clock_nanosleep");
        assert_eq!(waits("running"), Some(false));
        assert_eq!(waits("7 0x7ffe 0x1 0xffffffff 0x0 0x0 0x0 0x7ffe 0x7f00"), None, "poll");
        assert_eq!(
            ["7 0x1", "232 0x3", "0 0x3", "230 0x0", "running"].map(may_wait),
            [true, true, true, false, false]
        );
    }

    /// A loop that reads into the same place makes the same call each time.
    #[test]
    fn a_call_that_returns_is_not_the_one_before() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut writer, _) = listener.accept().unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", reader.as_raw_fd())).unwrap();
        let inode = socket_of(link.to_str().unwrap()).unwrap();
        let read = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&read);
        let reads = std::thread::spawn(move || {
            let mut buffer = [0];
            while reader.read(&mut buffer).unwrap() > 0 {
                count.fetch_add(1, Relaxed);
            }
        });
        let (mut threads, start, mut seen) = (Threads::default(), Instant::now(), 0);
        while seen < 20 && threads.hidden == 0 {
            let time = Nanos(start.elapsed().as_nanos().try_into().unwrap());
            for w in threads.look([std::process::id()], time).iter().filter(|w| w.inode == inode) {
                assert_eq!((w.call, w.waited), (Call::Receive, Nanos::ZERO));
                seen += 1;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "never seen");
            let before = read.load(Relaxed);
            writer.write_all(&[0]).unwrap();
            while read.load(Relaxed) == before {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        drop(writer);
        reads.join().unwrap();
    }

    #[test]
    fn a_reader_is_seen_for_as_long_as_it_waits() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (writer, _) = listener.accept().unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", reader.as_raw_fd())).unwrap();
        let inode = socket_of(link.to_str().unwrap()).unwrap();
        let waits = std::thread::spawn(move || reader.read(&mut [0]));
        let (mut threads, start) = (Threads::default(), Instant::now());
        let seen = loop {
            let time = Nanos(start.elapsed().as_nanos().try_into().unwrap());
            let all = threads.look([std::process::id()], time);
            let of = all.into_iter().find(|w| w.inode == inode);
            if of.is_some_and(|w| w.waited > Nanos::millis(30)) || threads.hidden > 0 {
                break of;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "never seen: {of:?}");
            std::thread::sleep(Duration::from_millis(10));
        };
        drop(writer);
        waits.join().unwrap().unwrap();
        if let Some(seen) = seen {
            assert_eq!((seen.call, seen.pid), (Call::Receive, std::process::id()));
        }
    }
}
