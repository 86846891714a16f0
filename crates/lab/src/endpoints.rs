//! The client and the server: blocking sockets, one thread for each connection, every call written down.

use crate::clock;
use crate::host::SERVER;
use crate::scenario::{Host, Scenario};
use crate::sys;
use crate::tcp_info::TcpInfo;
use crate::watch::{self, Watch, When, lock};
use crate::words;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::Scope;
use std::time::Duration;
use tcpwhy_base::{Cork, End, Nanos, Step, Turn, Workload};

/// Where the server listens.
pub(crate) const PORT: u16 = 9000;
/// Calls of all connections for which there is room before anything is measured.
const LOG: usize = 65_536;
/// How often an endpoint asks whether its bytes were acknowledged.
const ACK_POLL: Duration = Duration::from_micros(20);

/// What an application did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// `connect`.
    Connect,
    /// `accept` returned a connection.
    Accept,
    /// `write` or `send`.
    Write,
    /// `read`.
    Read,
    /// Work between request and response (server) or response and request (client).
    Think,
    /// A wait within a message.
    Pause,
    /// A wait before a read.
    ReadPause,
    /// Talker of its sending direction.
    Shutdown,
    /// `close`.
    Close,
    /// `close` with RST.
    Reset,
}

/// One call or wait of an application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Which end's application.
    #[serde(with = "words::end")]
    pub side: End,
    /// The client's port; 0 before it is known.
    pub port: u16,
    /// Request of this connection, from 0.
    pub request: u32,
    /// What.
    pub op: Op,
    /// When it was called, since the Unix epoch.
    pub start_ns: i64,
    /// When it returned.
    pub end_ns: i64,
    /// Bytes that a write or read moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Event {
    /// When it was called.
    pub fn start(&self) -> Nanos {
        Nanos(self.start_ns)
    }

    /// When it returned.
    pub fn end(&self) -> Nanos {
        Nanos(self.end_ns)
    }
}

/// What the endpoints of a run share.
pub(crate) struct Shared<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) watch: &'a Watch,
    pub(crate) events: &'a Mutex<Vec<Event>>,
}

/// The connection came to its end, wanted or not.
struct Over;

/// One end of one connection, as its application drives it.
struct Talker<'a> {
    shared: &'a Shared<'a>,
    side: End,
    host: &'a Host,
    stream: TcpStream,
    id: u64,
    port: u16,
    request: u32,
    log: Vec<Event>,
    buffer: Vec<u8>,
    /// Bytes read so far, and when the first read began.
    read: u64,
    read_began: Option<Nanos>,
    pauses_taken: usize,
}

impl<'a> Talker<'a> {
    fn note<T>(&mut self, op: Op, start: Nanos, bytes: Option<u64>, result: &io::Result<T>) {
        self.log.push(Event {
            side: self.side,
            port: self.port,
            request: self.request,
            op,
            start_ns: start.0,
            end_ns: clock::now().0,
            bytes,
            error: result.as_ref().err().map(ToString::to_string),
        });
    }

    fn wait(&mut self, op: Op, length: Nanos) -> Result<(), Over> {
        if length <= Nanos::ZERO {
            return Ok(());
        }
        let start = clock::now();
        let goes_on = self.shared.watch.nap(start + length);
        self.note(op, start, None, &Ok(()));
        if goes_on { Ok(()) } else { Err(Over) }
    }

    fn cork(&self, on: bool) {
        let _ = sys::set_option(self.stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_CORK, i32::from(on));
    }

    fn write_message(&mut self, steps: &[Step]) -> Result<(), Over> {
        if self.host.cork == Cork::Message {
            self.cork(true);
        }
        let last = steps.iter().rposition(|step| matches!(step, Step::Write(_)));
        for (i, &step) in steps.iter().enumerate() {
            match step {
                Step::Pause(length) => self.wait(Op::Pause, length)?,
                Step::Write(bytes) => self.write_part(bytes as usize, self.host.more && Some(i) != last)?,
            }
        }
        if self.host.cork == Cork::Message {
            self.cork(false);
        }
        Ok(())
    }

    fn write_part(&mut self, bytes: usize, more: bool) -> Result<(), Over> {
        let mut left = bytes;
        while left > 0 {
            let most = self.host.write_chunk.map_or(left, |n| n as usize);
            let mut chunk = left.min(most).min(self.buffer.len());
            if self.host.stack.classic_nagle {
                let mss = self.segment();
                let full = chunk - chunk % mss;
                if full > 0 {
                    chunk = full;
                } else {
                    self.all_acknowledged()?;
                }
            }
            let start = clock::now();
            let data = self.buffer.get(..chunk).unwrap_or_default();
            let sent = if self.host.stack.epoll {
                sys::send_when_writable(self.stream.as_fd(), data, more, &self.shared.watch.stop)
            } else {
                sys::send(self.stream.as_fd(), data, more)
            };
            let moved = sent.as_ref().map_or(0, |&n| n);
            self.note(Op::Write, start, Some(moved as u64), &sent);
            if moved == 0 {
                return Err(Over);
            }
            left -= moved;
        }
        Ok(())
    }

    /// Payload of a full segment.
    fn segment(&self) -> usize {
        let info = TcpInfo::of(self.stream.as_fd());
        info.and_then(|i| i.get("snd_mss")).map_or(1448, |n| (n as usize).max(1))
    }

    /// Waits as the classic Nagle rule does: until everything written has been acknowledged.
    fn all_acknowledged(&self) -> Result<(), Over> {
        while sys::unacknowledged(self.stream.as_fd()).is_ok_and(|n| n > 0) {
            if self.shared.watch.stop.load(Relaxed) {
                return Err(Over);
            }
            std::thread::sleep(ACK_POLL);
        }
        Ok(())
    }

    /// Says whether all of it came; else the peer ended its direction before the first byte.
    fn read_message(&mut self, bytes: u64) -> Result<bool, Over> {
        let mut left = bytes;
        while left > 0 {
            let mut chunk = left.min(self.host.read_chunk);
            if let Some(&(at, length)) = self.host.read_pauses.get(self.pauses_taken) {
                if self.read >= at {
                    self.pauses_taken += 1;
                    self.wait(Op::ReadPause, length)?;
                    continue;
                }
                chunk = chunk.min(at - self.read);
            }
            let start = clock::now();
            let began = *self.read_began.get_or_insert(start);
            let buffer = self.buffer.get_mut(..chunk as usize).unwrap_or_default();
            let got = self.stream.read(buffer);
            let moved = got.as_ref().map_or(0, |&n| n as u64);
            self.note(Op::Read, start, Some(moved), &got);
            match got {
                Ok(0) if left == bytes => return Ok(false),
                Ok(0) | Err(_) => return Err(Over),
                Ok(_) => {}
            }
            left -= moved;
            self.read += moved;
            if self.host.quickack {
                let _ = sys::set_option(self.stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
            }
            if self.host.stack.reset_after_bytes.is_some_and(|n| self.read >= n) {
                let _ = sys::reset_on_close(self.stream.as_fd());
                self.note(Op::Reset, clock::now(), None, &Ok(()));
                return Err(Over);
            }
            if let Some(rate) = self.host.read_rate {
                let then = began + Nanos((self.read as f64 / rate as f64 * 1e9) as i64);
                self.wait(Op::ReadPause, then - clock::now())?;
            }
        }
        Ok(true)
    }

    /// Ends the own direction and waits for the other's end.
    fn finish(&mut self) {
        self.shared.watch.sample(Some(self.id), When::Done);
        let start = clock::now();
        let done = self.stream.shutdown(Shutdown::Write);
        self.note(Op::Shutdown, start, None, &done);
        // What still comes is read, or closing would send RST.
        let mut rest = [0; 16 << 10];
        while done.is_ok() && self.stream.read(&mut rest).is_ok_and(|n| n > 0) {}
    }

    fn close(mut self) {
        self.shared.watch.sample(Some(self.id), When::End);
        self.shared.watch.leave(self.id);
        self.note(Op::Close, clock::now(), None, &Ok(()));
        // Dropping the stream closes it.
        lock(self.shared.events).append(&mut self.log);
    }
}

fn before(fd: BorrowedFd<'_>, host: &Host) -> io::Result<()> {
    let tcp = libc::IPPROTO_TCP;
    let number = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
    if let Some(n) = host.sndbuf {
        sys::set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, number(n))?;
    }
    if let Some(n) = host.rcvbuf {
        sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, number(n))?;
    }
    if host.nodelay {
        sys::set_option(fd, tcp, libc::TCP_NODELAY, 1)?;
    }
    if let Some(n) = host.notsent_lowat {
        sys::set_option(fd, tcp, libc::TCP_NOTSENT_LOWAT, number(n))?;
    }
    if let Some([idle, interval, count]) = host.stack.keepalive {
        sys::set_option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
        sys::set_option(fd, tcp, libc::TCP_KEEPIDLE, idle)?;
        sys::set_option(fd, tcp, libc::TCP_KEEPINTVL, interval)?;
        sys::set_option(fd, tcp, libc::TCP_KEEPCNT, count)?;
    }
    Ok(())
}

fn buffer(host: &Host, w: &Workload) -> io::Result<Vec<u8>> {
    // A part is written in one call, so the largest part decides, up to a size that no kernel takes at once.
    let steps = w.turns.iter().flat_map(|t| t.request.iter().chain(&t.response));
    let writes = steps.filter_map(|step| if let Step::Write(bytes) = step { Some(*bytes) } else { None });
    let largest = writes.max().unwrap_or(0);
    let size = largest.min(64 << 20).max(host.read_chunk).max(1) as usize;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    while buffer.len() < size {
        let piece = [0x77; 4096]; // copied fast in builds for tests, too
        buffer.extend_from_slice(&piece[..piece.len().min(size - buffer.len())]);
    }
    Ok(buffer)
}

fn real_time() {
    let _ = sys::real_time(5);
    let _ = sys::precise_timers();
}

/// One client: its connections one after the other.
pub(crate) fn client(shared: &Shared<'_>) {
    real_time();
    let w = &shared.scenario.shared.workload;
    let gap = w.turn(0).map_or(Nanos::ZERO, |turn| turn.before);
    let mut left = w.requests;
    let mut first = true;
    while left > 0 && !shared.watch.stop.load(Relaxed) {
        if !first && gap > Nanos::ZERO && !shared.watch.nap(clock::now() + gap) {
            return;
        }
        first = false;
        let Some(mut end) = connect(shared) else { return };
        let n = left.min(w.requests_each());
        let done = converse(&mut end, w, n);
        if done.is_ok() {
            end.finish();
        }
        end.close();
        left -= n;
        if done.is_err() {
            return;
        }
    }
}

fn connect<'a>(shared: &'a Shared<'a>) -> Option<Talker<'a>> {
    let host = shared.scenario.host(End::Client);
    let start = clock::now();
    let made = || -> io::Result<(TcpStream, u64, u16, Nanos)> {
        let fd = sys::tcp_socket()?;
        before(fd.as_fd(), host)?;
        let id = shared.watch.join(&fd, End::Client, 0)?;
        let patience = clock::duration(shared.scenario.patience);
        sys::set_timeout(fd.as_fd(), libc::SO_RCVTIMEO, patience)?;
        let start = clock::now();
        let done = sys::connect(fd.as_fd(), SocketAddrV4::new(SERVER, PORT));
        let stream = TcpStream::from(fd);
        let port = stream.local_addr().map_or(0, |a| a.port());
        match done {
            Ok(()) => {
                shared.watch.set_port(id, port);
                Ok((stream, id, port, start))
            }
            Err(e) => {
                shared.watch.leave(id);
                Err(e)
            }
        }
    };
    match made() {
        Ok((stream, id, port, start)) => {
            let mut end = Talker::new(shared, End::Client, stream, id, port)?;
            end.note(Op::Connect, start, None, &Ok(()));
            Some(end)
        }
        Err(e) => {
            lock(shared.events).push(Event {
                side: End::Client,
                port: 0,
                request: 0,
                op: Op::Connect,
                start_ns: start.0,
                end_ns: clock::now().0,
                bytes: None,
                error: Some(e.to_string()),
            });
            None
        }
    }
}

impl<'a> Talker<'a> {
    /// None, and the end of the run, where there is no memory for it.
    fn new(shared: &'a Shared<'a>, side: End, stream: TcpStream, id: u64, port: u16) -> Option<Talker<'a>> {
        let host = shared.scenario.host(side);
        let buffer =
            buffer(host, &shared.scenario.shared.workload).map_err(|e| shared.watch.refuse(e)).ok()?;
        let end = Talker {
            shared,
            side,
            host,
            stream,
            id,
            port,
            request: 0,
            log: Vec::with_capacity(
                (LOG / shared.scenario.shared.connections.max(1) as usize).clamp(64, 4096),
            ),
            buffer,
            read: 0,
            read_began: None,
            pauses_taken: 0,
        };
        if host.cork == Cork::Always {
            end.cork(true);
        }
        Some(end)
    }
}

fn converse(end: &mut Talker<'_>, w: &Workload, requests: u32) -> Result<(), Over> {
    for n in 0..requests {
        end.request = n;
        let Some(turn) = w.turn(n as usize) else { break };
        if n > 0 {
            end.wait(Op::Think, turn.before)?;
        }
        end.write_message(&turn.request)?;
        if !w.pipeline {
            answer(end, w, n)?;
        }
    }
    for n in 0..if w.pipeline { requests } else { 0 } {
        end.request = n;
        answer(end, w, n)?;
    }
    Ok(())
}

fn answer(end: &mut Talker<'_>, w: &Workload, n: u32) -> Result<(), Over> {
    let bytes = w.turn(n as usize).map_or(0, |turn| Turn::bytes(&turn.response));
    if bytes > 0 && !end.read_message(bytes)? { Err(Over) } else { Ok(()) }
}

/// A listening socket in the calling thread's namespace.
pub(crate) fn listener(shared: &Shared<'_>) -> io::Result<TcpListener> {
    let host = shared.scenario.host(End::Server);
    let fd = sys::tcp_socket()?;
    before(fd.as_fd(), host)?;
    sys::listen(fd.as_fd(), PORT, i32::try_from(host.backlog).unwrap_or(i32::MAX))?;
    shared.watch.join(&fd, End::Server, 0)?;
    Ok(TcpListener::from(fd))
}

/// The server: accepts until the run is over, a thread for each connection.
pub(crate) fn server<'s>(scope: &'s Scope<'s, '_>, shared: &'s Shared<'s>, listener: &TcpListener) {
    real_time();
    let host = shared.scenario.host(End::Server);
    if !shared.watch.nap(clock::now() + host.accept_start) {
        return;
    }
    while shared.watch.nap(clock::now() + host.accept_delay) {
        let start = clock::now();
        let Ok((stream, from)) = listener.accept() else { return };
        let Ok(id) = shared.watch.join(&stream, End::Server, from.port()) else { return };
        let connection = move || {
            real_time();
            let Some(mut end) = Talker::new(shared, End::Server, stream, id, from.port()) else { return };
            end.note(Op::Accept, start, None, &Ok(()));
            if serve(&mut end, shared.scenario).is_ok() {
                end.finish();
            }
            end.close();
        };
        if let Err(e) = watch::thread().spawn_scoped(scope, connection) {
            return shared.watch.refuse(e);
        }
    }
}

fn serve(end: &mut Talker<'_>, scenario: &Scenario) -> Result<(), Over> {
    let w = &scenario.shared.workload;
    let most = w.requests_each();
    for n in 0.. {
        end.request = n;
        let Some(turn) = w.turn(n as usize) else { return Ok(()) };
        let request = Turn::bytes(&turn.request);
        if request == 0 && n >= most {
            return Ok(());
        }
        if request > 0 && !end.read_message(request)? {
            return Ok(());
        }
        if scenario.no_answer {
            continue;
        }
        end.wait(Op::Think, turn.think)?;
        end.write_message(&turn.response)?;
        if w.server_closes && n + 1 >= most {
            return Ok(());
        }
    }
    Ok(())
}
