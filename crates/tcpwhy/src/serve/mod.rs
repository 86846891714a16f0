//! `tcpwhy serve`: the page over HTTP, for a folder of captures. Own code over [`std::net`], one thread a request: the
//! only user sits before the same machine, and an asynchronous runtime would be 47 crates for that.
//!
//! Who may ask: only the address that is listened on, by its own name (against DNS rebinding), from pages that came from
//! here (`Origin`), and beyond loopback only with the token.

mod events;
mod folder;
mod http;
mod results;
mod start;
mod upload;

use crate::cmd::causes;
use crate::failure::say;
use crate::input::Input;
use crate::load::{self, Loaded};
use crate::progress::Progress;
use crate::record::{self, shift};
use crate::tracks;
use folder::{Entry, Folder};
use http::Request;
use results::Results;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tcpwhy_analysis::Detail;
use tcpwhy_base::Nanos;
use tcpwhy_report::html::{self, Extras, Served};
use tcpwhy_report::packets::Track;

/// Requests at once; a browser opens six.
const THREADS: usize = 32;
/// Captures kept analysed.
const KEPT: usize = 4;
/// Packets in an answer to a zoom; a screen has some thousand columns.
const MOST_PACKETS: usize = 400_000;

/// A server that is ready to run.
pub(crate) struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// Packets, bytes and all bytes of each capture that is being read.
type States = BTreeMap<String, (u64, u64, u64)>;

struct Shared {
    folder: Folder,
    results: Results,
    address: SocketAddr,
    /// Asked for beyond loopback.
    token: Option<String>,
    limit: u64,
    loaded: Mutex<Vec<(String, Entry, Arc<Loaded>)>>,
    progress: Arc<Mutex<States>>,
    busy: AtomicUsize,
    dropped: AtomicU64,
    stop: Arc<AtomicBool>,
    turn: Mutex<()>,
}

/// 128 bits that nobody can guess, from the seeds that the system gives to hash maps.
fn secret() -> String {
    let word = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", word(), word())
}

impl Server {
    /// Listens on `address`. `limit`: bytes of a dropped file.
    pub(crate) fn new(
        path: Option<&Path>,
        address: SocketAddr,
        token: Option<String>,
        limit: u64,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Server> {
        let listener = TcpListener::bind(address).map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => {
                anyhow::anyhow!("port {} is taken: choose another with --port, or --port 0", address.port())
            }
            _ => anyhow::anyhow!("cannot listen on {address}: {e}"),
        })?;
        let address = listener.local_addr()?;
        let token = if address.ip().is_loopback() { token } else { Some(token.unwrap_or_else(secret)) };
        let store =
            std::env::temp_dir().join(format!("tcpwhy-serve-{}-{}", std::process::id(), &secret()[..8]));
        let folder = Folder::new(path, store)?;
        let shared = Shared {
            folder,
            results: Results::default(),
            address,
            token,
            limit,
            loaded: Mutex::default(),
            progress: Arc::default(),
            busy: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            stop,
            turn: Mutex::new(()),
        };
        Ok(Server { listener, shared: Arc::new(shared) })
    }

    /// Where a browser finds it.
    pub(crate) fn url(&self) -> String {
        let token = self.shared.token.as_ref().map(|t| format!("?token={t}")).unwrap_or_default();
        format!("http://{}/{token}", self.shared.address)
    }

    /// How many captures there are now.
    pub(crate) fn count(&self) -> usize {
        self.shared.folder.list().len()
    }

    /// Answers until it is told to stop.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        self.listener.set_nonblocking(true)?;
        while !self.shared.stop.load(Ordering::Relaxed) {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let shared = Arc::clone(&self.shared);
                    if shared.busy.fetch_add(1, Ordering::Relaxed) >= THREADS {
                        shared.busy.fetch_sub(1, Ordering::Relaxed);
                        let _ = http::say(&mut &stream, 503, "too many requests at once: try again");
                        continue;
                    }
                    thread::spawn(move || {
                        // Who closed the window early does not wait for an answer.
                        let _ = stream.set_nonblocking(false).and_then(|()| shared.answer(&stream));
                        shared.busy.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(20)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // One that went away before it was accepted, or too many open files: neither is the end.
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
        // Threads that still answer hold the folder; they end at their next look at the flag.
        for _ in 0..50 {
            if Arc::strong_count(&self.shared) == 1 {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Shared {
    fn answer(&self, stream: &TcpStream) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(64 << 10, stream);
        let mut request = match Request::read(stream) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(status) => {
                http::say(&mut out, status, "this is no request that tcpwhy understands")?;
                return out.flush();
            }
        };
        if let Some((status, why)) = self.refusal(&request) {
            http::say(&mut out, status, why)?;
            out.flush()?;
            return Ok(());
        }
        // The token goes into a cookie, so that it does not stay in the address. Only our own: what stands in the address
        // may be anybody's words, and who has the cookie already keeps it.
        if let (Some(token), Some(given)) = (&self.token, request.query.get("token")) {
            let cookie = format!("tcpwhy={token}; HttpOnly; SameSite=Strict; Path=/");
            let kept = [("Set-Cookie", cookie.as_str()), ("Location", "/")];
            let headers = if same(given, token) { &kept[..] } else { &kept[1..] };
            http::head(&mut out, 303, "text/plain", headers)?;
            return out.flush();
        }
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => self.start(&mut out)?,
            ("GET", "/view") => self.view(&mut out, &request)?,
            ("GET", "/api/packets") => self.packets(&mut out, &request)?,
            ("GET", "/api/list") => json(&mut out, &self.list(&self.folder.look()))?,
            ("GET", "/api/lab") => json(&mut out, &self.results.list(&self.folder.look()))?,
            ("GET", "/api/events") => self.events(&mut out)?,
            ("POST", "/api/upload") => self.upload(&mut out, &mut request)?,
            ("GET" | "POST", _) => http::say(&mut out, 404, "there is nothing here: the captures are at /")?,
            _ => http::say(&mut out, 405, "only GET and POST are understood")?,
        }
        out.flush()
    }

    /// Why this request is not answered.
    fn refusal(&self, request: &Request) -> Option<(u16, &'static str)> {
        let host = request.header("host").unwrap_or_default();
        if !self.is_own(host) {
            return Some((
                403,
                "this name is not that of the server: open it by the address that tcpwhy printed",
            ));
        }
        if let Some(origin) = request.header("origin")
            && origin.strip_prefix("http://").is_none_or(|o| !o.eq_ignore_ascii_case(host))
        {
            return Some((403, "another page asked for this: only pages from here may"));
        }
        if request.header("sec-fetch-site").is_some_and(|s| s == "cross-site") && request.path != "/" {
            return Some((403, "another page asked for this: only pages from here may"));
        }
        if request.method == "POST" && request.header("x-tcpwhy").is_none() {
            return Some((403, "only the page from here may send files"));
        }
        let token = self.token.as_ref()?;
        let given = request.query.get("token").map(String::as_str);
        let cookie = request.header("cookie").unwrap_or_default();
        let kept = cookie.split(';').find_map(|c| c.trim().strip_prefix("tcpwhy="));
        let right = [given, kept].into_iter().flatten().any(|t| same(t, token));
        (!right).then_some((401, "the token is missing: open the address that tcpwhy printed"))
    }

    fn is_own(&self, host: &str) -> bool {
        let port = self.address.port();
        let name = match host.strip_suffix(&format!(":{port}")) {
            Some(name) => name,
            None if port == 80 => host,
            None => return false,
        };
        let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match ip {
            Ok(ip) => ip == self.address.ip() || (self.address.ip().is_unspecified() || ip.is_loopback()),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }

    /// The analysis of a capture, from memory if it has not changed since.
    fn load(&self, name: &str) -> Result<Arc<Loaded>, (u16, String)> {
        let entry =
            self.folder.find(name).ok_or_else(|| (404, format!("there is no capture {name} here")))?;
        // One at a time: two windows on one capture read it once.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, loaded)) = kept.iter().find(|k| k.0 == name && k.1 == entry) {
            return Ok(Arc::clone(loaded));
        }
        kept.retain(|k| k.0 != name);
        drop(kept);
        let input = Input { path: entry.path.clone(), name: name.to_owned() };
        // A thread of its own, so that a failure of the analysis ends one request and not the lock.
        let loaded = thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let (states, named) = (Arc::clone(&self.progress), name.to_owned());
                let mut progress = Progress::to(Box::new(move |packets, bytes| {
                    let (read, total) = bytes.unwrap_or_default();
                    let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
                    states.insert(named.clone(), (packets, read, total));
                }));
                let mut loaded = load::load_inputs(
                    vec![input],
                    Vec::new(),
                    Detail::Worst(1000),
                    &mut progress,
                    &self.stop,
                );
                if let Ok(Ok(loaded)) = &mut loaded {
                    tcpwhy_analysis::replay::predict(&mut loaded.analysis);
                }
                loaded
            });
            reading.join()
        });
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        match loaded {
            Ok(Ok(Ok(loaded))) => {
                let loaded = Arc::new(loaded);
                let mut kept = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push((name.to_owned(), entry, Arc::clone(&loaded)));
                let extra = kept.len().saturating_sub(KEPT);
                kept.drain(..extra);
                Ok(loaded)
            }
            Ok(Ok(Err(_))) => Err((422, format!("{name} cannot be read: {}", why(&entry.path, name)))),
            Ok(Err(e)) => Err((422, format!("{name}: {e:#}"))),
            Err(_) => Err((422, format!("{name}: the analysis failed: please report this"))),
        }
    }

    fn view(&self, out: &mut impl Write, request: &Request) -> io::Result<()> {
        let name = request.query.get("name").map_or("", String::as_str);
        let loaded = match self.load(name) {
            Ok(loaded) => loaded,
            Err((status, why)) => return http::sorry(out, status, &why),
        };
        // The packets are asked for by the window: the page needs fewer of a large connection.
        let tracks = match tracks::collect(&loaded.source(), &loaded.analysis, tracks::ROOM / 2) {
            Ok(tracks) => tracks,
            Err(e) => return http::sorry(out, 422, &format!("{name}: {e:#}")),
        };
        http::head(out, 200, "text/html; charset=utf-8", &[])?;
        let extras = Extras { pages: causes::PAGES, tracks: &tracks, served: Some(Served { name }) };
        html::write(out, &loaded.analysis, &loaded.capture, &extras, 1)
    }

    /// The packets of a connection between two moments.
    fn packets(&self, out: &mut impl Write, request: &Request) -> io::Result<()> {
        let number = |name: &str| request.query.get(name).and_then(|v| v.parse::<i64>().ok());
        let (Some(name), Some(id), Some(from), Some(to)) =
            (request.query.get("name"), number("connection"), number("from"), number("to"))
        else {
            return http::say(out, 400, "name, connection, from and to are needed");
        };
        let loaded = match self.load(name) {
            Ok(loaded) => loaded,
            Err((status, why)) => return http::say(out, status, &why),
        };
        let start = loaded.capture.start();
        let (from, to) = (start + Nanos(from), start + Nanos(to));
        let Some(i) = loaded.analysis.connections.iter().position(|c| i64::from(c.id) == id) else {
            return http::say(out, 404, "there is no such connection");
        };
        let c = &loaded.analysis.connections[i];
        let mut track = Track { connection: c.id, shift: shift(c), ..Track::default() };
        // What came before is needed to count from, so reading begins with the connection.
        let read = record::again(&loaded.source(), &loaded.analysis, |met| {
            if let Some((at, packet)) = met.packet
                && at == i
                && !met.copy
                && packet.time >= from
                && packet.time <= to
            {
                track.packets.push(packet);
            }
            Ok(met.number <= c.frames.1 && track.packets.len() <= MOST_PACKETS)
        });
        track.total = track.packets.len() as u64;
        match read {
            Ok(()) if track.packets.len() > MOST_PACKETS => {
                http::say(out, 413, "too many packets: look closer")
            }
            Ok(()) => {
                http::head(out, 200, "application/octet-stream", &[])?;
                out.write_all(&html::encode_track(&track, start))
            }
            Err(e) => http::say(out, 422, &format!("{e:#}")),
        }
    }
}

/// What is wrong with a file, in one sentence.
fn why(path: &Path, name: &str) -> String {
    let input = Input { path: path.into(), name: name.to_owned() };
    input.open().err().unwrap_or_else(|| "it holds nothing that tcpwhy knows".into())
}

fn json(out: &mut impl Write, text: &str) -> io::Result<()> {
    http::head(out, 200, "application/json", &[])?;
    out.write_all(text.as_bytes())
}

/// Equal, in a time that does not tell where they differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

/// Says where the server is.
pub(crate) fn announce(server: &Server) {
    say(&format!("open {} (end with ^C)", server.url()));
}
