//! `tcpwhy serve`: the page over HTTP, for a folder of captures. Own code over [`std::net`], one thread a request: the
//! only user sits before the same machine, and an asynchronous runtime would be 47 crates for that.
//!
//! What a stranger can take is bounded before anybody asks who it is (`door`), then `access` says who may ask, and what
//! takes memory takes turns (`turn`). `docs/security.md` has the figures.

mod access;
mod apart;
mod compare;
mod door;
mod events;
mod folder;
pub(crate) mod http;
mod judge;
mod results;
mod start;
mod turn;
mod upload;
mod view;

pub(crate) use access::Token;

use crate::failure::say;
use crate::load::Loaded;
use crate::temporary::Temporary;
use access::{Access, Met};
use door::Door;
use folder::{Entry, Folder, Named};
use http::{Request, Wire};
use judge::Judged;
use results::Results;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use turn::Turns;
use upload::Room;

/// Captures that are read and drawn at once, and requests that wait for that.
const TURNS: (usize, usize) = (1, 24);
/// Zooms, each of at most 40 MB, that are read at once, and those that wait for that.
const ZOOMS: (usize, usize) = (2, 24);

/// A server that is ready to run.
pub(crate) struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// Why a capture is not shown: the status, and a sentence.
type Sorry = (u16, String);

/// Packets, bytes and all bytes of each capture that is being read.
type States = BTreeMap<String, (u64, u64, u64)>;

/// A capture that was read, or two as one, in the state of `entries`, with its page if somebody asked for it.
struct Kept {
    name: String,
    entries: Vec<Named>,
    loaded: Arc<Loaded>,
    page: Option<Arc<Temporary>>,
}

struct Shared {
    folder: Folder,
    results: Results,
    judged: Judged,
    access: Access,
    door: Door,
    room: Room,
    kept: Mutex<Vec<Kept>>,
    progress: Arc<Mutex<States>>,
    stop: Arc<AtomicBool>,
    turns: Turns,
    zooms: Turns,
    /// Exchanges are called by their requests.
    names: bool,
}

impl Server {
    /// Listens on `address` for a capture, a folder, or two captures that open as one. `limit`: bytes of a
    /// dropped file; `names`: exchanges are called by their requests.
    pub(crate) fn new(
        paths: &[PathBuf],
        address: SocketAddr,
        token: Option<Token>,
        (limit, names): (u64, bool),
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Server> {
        let listener = TcpListener::bind(address).map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => {
                anyhow::anyhow!("port {} is taken: choose another with --port, or --port 0", address.port())
            }
            _ => anyhow::anyhow!("cannot listen on {address}: {e}"),
        })?;
        let address = listener.local_addr()?;
        let store = Temporary::folder(&std::env::temp_dir(), "tcpwhy-serve-")?;
        let folder = Folder::new(paths, store)?;
        let first =
            folder.both().map_or_else(|| "/".into(), |name| format!("/view?name={}", http::escaped(&name)));
        let shared = Shared {
            folder,
            results: Results::default(),
            judged: Judged::default(),
            access: Access::new(address, token, first),
            door: Door::default(),
            room: Room::new(limit),
            kept: Mutex::default(),
            progress: Arc::default(),
            stop,
            turns: Turns::new(TURNS.0, TURNS.1),
            zooms: Turns::new(ZOOMS.0, ZOOMS.1),
            names,
        };
        Ok(Server { listener, shared: Arc::new(shared) })
    }

    /// How many captures there are now.
    pub(crate) fn count(&self) -> usize {
        self.shared.folder.list().len()
    }

    /// The port that is listened on.
    pub(crate) fn port(&self) -> u16 {
        self.shared.access.port()
    }

    /// Says where a browser finds it.
    pub(crate) fn announce(&self) {
        let urls = self.shared.access.urls();
        say(&format!("open {} (end with ^C)", urls.join(" or ")));
    }

    /// Answers until it is told to stop. Nothing that was dropped stays behind.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.listener.set_nonblocking(true)?;
        let shared = Arc::clone(&self.shared);
        // Without this thread the list has no verdicts but those of captures that were opened.
        let judging = thread::Builder::new().spawn(move || judge::run(&shared));
        while !self.shared.stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let shared = Arc::clone(&self.shared);
                    // Without a thread the connection is closed: there will be others.
                    let _ = thread::Builder::new().spawn(move || {
                        // Who closed the window early does not wait for an answer.
                        let _ = stream.set_nonblocking(false).and_then(|()| shared.meet(&stream));
                    });
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(20)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // One that went away before it was accepted, or too many open files: neither is the end.
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
        // It lets go at its next look, too, so that nothing of it is left open.
        if let Ok(judging) = judging {
            let _ = judging.join();
        }
        // Answers end at their next look at the flag; who only holds a connection open is not waited for.
        for _ in 0..50 {
            if !self.shared.door.is_busy() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        self.shared.folder.remove_store();
        Ok(())
    }
}

impl Shared {
    /// Reads the request of a connection and answers it. Who is refused counts among those that wait until all of it is
    /// over.
    fn meet(&self, stream: &TcpStream) -> io::Result<()> {
        let waiting = self.door.enter(stream)?;
        let mut wire = Wire::new(stream)?;
        let mut request = match Request::read(stream) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(status) => {
                http::say(&mut wire, status, "this is no request that tcpwhy understands")?;
                wire.end();
                return Ok(());
            }
        };
        if request.only_head {
            wire.only_head();
        }
        let is_stream = (request.method.as_str(), request.path.as_str()) == ("GET", "/api/events");
        let place = || if is_stream { self.door.stream() } else { self.door.answer() };
        match self.access.judge(&request, stream.peer_addr()?.ip()) {
            Met::Refused(status, why) => http::say(&mut wire, status, why)?,
            // The token goes into a cookie, so that it does not stay in the address.
            Met::Enters(cookie) => {
                let to = self.access.first();
                http::head(&mut wire, 303, "text/plain", &[("Set-Cookie", &cookie), ("Location", to)])?;
            }
            Met::Known => http::head(&mut wire, 303, "text/plain", &[("Location", self.access.first())])?,
            Met::Let => match place() {
                Some(_place) => {
                    drop(waiting);
                    self.answer(&mut wire, &mut request)?;
                    wire.end();
                    return Ok(());
                }
                None => {
                    let why = "too many requests at once: try again";
                    http::later(&mut wire, 2, matches!(request.path.as_str(), "/view" | "/compare"), why)?;
                }
            },
        }
        wire.end();
        Ok(())
    }

    fn answer(&self, wire: &mut Wire, request: &mut Request) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(64 << 10, wire);
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => self.start(&mut out)?,
            ("GET", "/view") => self.view(&mut out, request)?,
            ("GET", "/compare") => self.compare(&mut out, request)?,
            ("GET", "/api/packets") => self.packets(&mut out, request)?,
            ("GET", "/api/list") => json(&mut out, &self.list(&self.folder.look()))?,
            ("GET", "/api/lab") => json(&mut out, &self.results.list(&self.folder.look()))?,
            ("GET", "/api/events") if request.only_head => {
                http::head(&mut out, 200, "text/event-stream", &[])?
            }
            ("GET", "/api/events") => self.events(&mut out)?,
            ("POST", "/api/upload") => self.upload(&mut out, request)?,
            ("GET" | "POST", _) => http::say(&mut out, 404, "there is nothing here: the captures are at /")?,
            _ => http::say(&mut out, 405, "only GET, HEAD and POST are understood")?,
        }
        out.flush()
    }
}

fn json(out: &mut impl Write, text: &str) -> io::Result<()> {
    http::head(out, 200, "application/json", &[])?;
    out.write_all(text.as_bytes())
}
