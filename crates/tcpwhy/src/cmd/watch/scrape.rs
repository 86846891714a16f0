//! Who asks for metrics, and what they get: the text of the last interval, over HTTP.

use crate::failure::say;
use crate::serve::http::{self, Request, Wire};
use anyhow::anyhow;
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Requests that are answered at once; a few servers ask every few seconds.
const ANSWERS: usize = 16;
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What is served, in threads that end with the program.
pub(super) struct Scrape {
    text: Arc<Mutex<Arc<str>>>,
}

impl Scrape {
    /// Listens, and says where.
    pub(super) fn open(address: SocketAddr) -> anyhow::Result<Scrape> {
        let listener = TcpListener::bind(address).map_err(|e| match e.kind() {
            ErrorKind::AddrInUse => {
                anyhow!("{address} is taken, perhaps by another `tcpwhy watch --metrics`")
            }
            _ => anyhow!("cannot listen on {address}: {e}"),
        })?;
        let address = listener.local_addr()?;
        say(&format!("metrics at http://{address}/metrics (end with ^C)"));
        if !address.ip().is_loopback() {
            say(
                "whoever reaches that address may read them: names of programs, and what their connections wait for",
            );
        }
        let text: Arc<Mutex<Arc<str>>> = Arc::new(Mutex::new(Arc::from("# EOF\n")));
        let (served, busy) = (Arc::clone(&text), Arc::new(AtomicUsize::new(0)));
        thread::Builder::new().name("metrics".into()).spawn(move || {
            loop {
                match listener.accept() {
                    Ok((stream, _)) => begin(stream, address.ip(), &served, &busy),
                    // One that went away before it was accepted, or too many open files: neither is the end.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        })?;
        Ok(Scrape { text })
    }

    /// From now on this is served.
    pub(super) fn set(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }
}

/// Answers in a thread, if there are not too many.
fn begin(stream: TcpStream, own: IpAddr, served: &Arc<Mutex<Arc<str>>>, busy: &Arc<AtomicUsize>) {
    let (text, busy) = (Arc::clone(&served.lock().unwrap_or_else(PoisonError::into_inner)), Arc::clone(busy));
    if busy.fetch_add(1, Relaxed) >= ANSWERS {
        busy.fetch_sub(1, Relaxed);
        return;
    }
    let done = Arc::clone(&busy);
    let spawned = thread::Builder::new().spawn(move || {
        // Who went away does not wait for an answer.
        let _ = answer(&stream, own, &text);
        busy.fetch_sub(1, Relaxed);
    });
    if spawned.is_err() {
        done.fetch_sub(1, Relaxed);
    }
}

fn answer(stream: &TcpStream, own: IpAddr, text: &str) -> io::Result<()> {
    let mut wire = Wire::new(stream)?;
    match Request::read(stream) {
        Ok(None) => return Ok(()),
        Ok(Some(request)) if !is_meant(request.header("host"), own) => {
            http::say(&mut wire, 403, "this address has another name")?;
        }
        Ok(Some(request)) if request.only_head => {
            wire.only_head();
            let status = if request.path == "/metrics" { 200 } else { 404 };
            http::head(&mut wire, status, KIND, &[])?;
        }
        Ok(Some(request)) => match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/metrics") => {
                http::head(&mut wire, 200, KIND, &[])?;
                wire.write_all(text.as_bytes())?;
            }
            ("GET", _) => http::say(&mut wire, 404, "there is nothing here: the metrics are at /metrics")?,
            _ => http::say(&mut wire, 405, "only GET and HEAD are understood")?,
        },
        Err(status) => http::say(&mut wire, status, "this is no request that tcpwhy understands")?,
    }
    wire.end();
    Ok(())
}

/// On loopback only those get an answer that ask for loopback: a page whose name was made to point here does not.
fn is_meant(host: Option<&str>, own: IpAddr) -> bool {
    if !own.is_loopback() {
        return true;
    }
    let Some(host) = host else { return false };
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_asked_for_by_its_name() {
        let own: IpAddr = [127, 0, 0, 1].into();
        for (host, meant) in [
            (Some("127.0.0.1:9469"), true),
            (Some("localhost"), true),
            (Some("[::1]:9469"), true),
            (Some("evil.example:9469"), false),
            (Some("10.0.0.1"), false),
            (None, false),
        ] {
            assert_eq!(is_meant(host, own), meant, "{host:?}");
        }
        assert!(is_meant(Some("db7.example"), [10, 0, 0, 7].into()));
    }
}
