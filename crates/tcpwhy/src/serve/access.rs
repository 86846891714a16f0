//! Who may ask: only the server by its own name (against DNS rebinding), only from pages that came from here
//! (`Origin`), and only who has shown the token once: after that a cookie is proof, which is another secret
//! and no guess.

use super::door::household;
use super::http::Request;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens from one address, after which none of its tokens is looked at for a while. One that was made
/// up here has 128 bits and needs no such limit; who chose one may have chosen a word.
const GUESSES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(60);

/// The token of a server.
#[derive(Clone, Debug)]
pub(crate) enum Token {
    /// Made up: nobody guesses it.
    Made(String),
    /// The user's.
    Chosen(String),
}

impl Token {
    /// A new one.
    pub(crate) fn made() -> Token {
        Token::Made(secret())
    }

    fn text(&self) -> &str {
        match self {
            Token::Made(text) | Token::Chosen(text) => text,
        }
    }
}

/// 128 bits that nobody can guess.
pub(super) fn secret() -> String {
    let mut bytes = [0; 16];
    let system = std::fs::File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes));
    let word = || RandomState::new().hash_one(std::process::id());
    match system {
        Ok(()) => format!("{:032x}", u128::from_le_bytes(bytes)),
        // From the seeds that the system gives to hash maps.
        Err(_) => format!("{:016x}{:016x}", word(), word()),
    }
}

/// What a request is met with.
pub(super) enum Met {
    /// It is answered.
    Let,
    /// Its token is right: it gets this cookie, and the address without the token.
    Enters(String),
    /// It has the cookie and a token besides, which is left out of the address.
    Known,
    /// It is not answered but with this.
    Refused(u16, &'static str),
}

/// Whom a server answers.
pub(super) struct Access {
    address: SocketAddr,
    token: Option<Token>,
    session: String,
    /// What a browser sees first.
    first: String,
    wrong: Mutex<BTreeMap<IpAddr, (u32, Instant)>>,
}

impl Access {
    /// `first`: the path of what a browser sees first.
    pub(super) fn new(address: SocketAddr, token: Option<Token>, first: String) -> Access {
        Access { address, token, session: secret(), first, wrong: Mutex::default() }
    }

    /// The path of what a browser sees first.
    pub(super) fn first(&self) -> &str {
        &self.first
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Addresses under which a browser finds the server, the best first.
    pub(super) fn urls(&self) -> Vec<String> {
        // Who enters with the token is led on to what comes first.
        let path =
            self.token.as_ref().map_or_else(|| self.first.clone(), |t| format!("/?token={}", t.text()));
        let port = self.address.port();
        let hosts = match self.address.ip() {
            ip if ip.is_unspecified() => {
                let local =
                    if ip.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
                outward(ip).into_iter().chain([local]).collect()
            }
            ip => vec![ip],
        };
        hosts.into_iter().map(|ip| format!("http://{}{path}", SocketAddr::new(ip, port))).collect()
    }

    /// Judges a request from `peer`.
    pub(super) fn judge(&self, request: &Request, peer: IpAddr) -> Met {
        let host = request.header("host").unwrap_or_default();
        if !self.is_own(host) {
            let why = "this name is not that of the server: open it by the address that tcpwhy printed";
            return Met::Refused(403, why);
        }
        let foreign = request.header("origin").is_some_and(|origin| {
            origin.strip_prefix("http://").is_none_or(|o| !o.eq_ignore_ascii_case(host))
        });
        let from_afar = request.header("sec-fetch-site").is_some_and(|s| s == "cross-site");
        if foreign || from_afar && request.path != "/" {
            return Met::Refused(403, "another page asked for this: only pages from here may");
        }
        if request.method == "POST" && request.header("x-tcpwhy").is_none() {
            return Met::Refused(403, "only the page from here may send files");
        }
        let Some(token) = &self.token else { return Met::Let };
        let cookie = request.header("cookie").unwrap_or_default();
        let name = self.cookie();
        let mut kept = cookie.split(';').filter_map(|c| c.trim().split_once('=')).filter(|c| c.0 == name);
        let known = kept.any(|(_, value)| same(value, &self.session));
        match request.query.get("token") {
            None if known => Met::Let,
            None => Met::Refused(401, "the token is missing: open the address that tcpwhy printed"),
            Some(given) => self.try_token(token, given, known, peer),
        }
    }

    /// Only the own secret becomes a cookie: what stands in the address may be anybody's words.
    fn try_token(&self, token: &Token, given: &str, known: bool, peer: IpAddr) -> Met {
        if known {
            return Met::Known;
        }
        let peer = household(peer);
        let limited = matches!(token, Token::Chosen(_));
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.retain(|_, (_, last)| last.elapsed() < PAUSE);
        if limited && wrong.get(&peer).is_some_and(|w| w.0 >= GUESSES) {
            return Met::Refused(429, "too many wrong tokens came from your address: wait a minute");
        }
        if same(given, token.text()) {
            wrong.remove(&peer);
            let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie(), self.session);
            return Met::Enters(cookie);
        }
        if limited {
            let entry = wrong.entry(peer).or_insert((0, Instant::now()));
            *entry = (entry.0 + 1, Instant::now());
        }
        Met::Refused(401, "the token is wrong: open the address that tcpwhy printed")
    }

    /// A browser sends cookies to every port of a host: each server has a name of its own.
    fn cookie(&self) -> String {
        format!("tcpwhy-{}", self.address.port())
    }

    fn is_own(&self, host: &str) -> bool {
        let port = self.address.port();
        let name = match host.strip_suffix(&format!(":{port}")) {
            Some(name) => name,
            None if port == 80 => host,
            None => return false,
        };
        let ip = match name.strip_prefix('[').map(|n| n.strip_suffix(']')) {
            Some(inner) => inner.and_then(|n| n.parse::<Ipv6Addr>().ok()).map(IpAddr::V6),
            None => name.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        };
        match ip {
            Some(ip) => ip == self.address.ip() || self.address.ip().is_unspecified() || ip.is_loopback(),
            None => name.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// The own address towards other machines. Connecting a datagram socket chooses one and sends nothing; the targets are
/// reserved for documentation (RFC 5737, RFC 3849).
fn outward(unspecified: IpAddr) -> Option<IpAddr> {
    let target = if unspecified.is_ipv4() { "192.0.2.1:9" } else { "[2001:db8::1]:9" };
    let socket = UdpSocket::bind((unspecified, 0)).ok()?;
    socket.connect(target).ok()?;
    socket.local_addr().ok().map(|a| a.ip()).filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
}

/// Equal, in a time that does not tell where they differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Access {
        Access::new(address.parse().unwrap(), Some(Token::made()), "/".into())
    }

    #[test]
    fn own_names() {
        let v4 = at("127.0.0.1:4280");
        for own in ["127.0.0.1:4280", "localhost:4280", "LOCALHOST:4280", "[::1]:4280", "127.0.0.2:4280"] {
            assert!(v4.is_own(own), "{own}");
        }
        for other in [
            "127.0.0.1",
            "127.0.0.1:4281",
            "[127.0.0.1]:4280",
            "[127.0.0.1]]:4280",
            "[::1]]:4280",
            "::1:4280",
            "192.0.2.1:4280",
            "evil.example:4280",
            "localhost.evil.example:4280",
            ":4280",
            "",
        ] {
            assert!(!v4.is_own(other), "{other}");
        }
        assert!(at("0.0.0.0:80").is_own("192.0.2.1") && !at("0.0.0.0:80").is_own("evil.example"));
    }

    #[test]
    fn addresses_that_others_can_open() {
        let urls = at("0.0.0.0:4280").urls();
        assert!(urls.iter().all(|u| !u.contains("0.0.0.0") && u.contains("/?token=")), "{urls:?}");
        assert!(urls.last().unwrap().starts_with("http://127.0.0.1:4280/"));
        assert!(at("[::]:4280").urls().last().unwrap().starts_with("http://[::1]:4280/"));
        assert_eq!(
            Access::new("127.0.0.1:1".parse().unwrap(), None, "/".into()).urls(),
            ["http://127.0.0.1:1/"]
        );
    }

    #[test]
    fn secrets_differ() {
        assert_eq!(secret().len(), 32);
        assert_ne!(secret(), secret());
    }

    #[test]
    fn guesses_come_to_an_end() {
        let access =
            Access::new("127.0.0.1:1".parse().unwrap(), Some(Token::Chosen("password".into())), "/".into());
        let token = access.token.clone().unwrap();
        let from =
            |peer: &str, given: &str| match access.try_token(&token, given, false, peer.parse().unwrap()) {
                Met::Refused(status, _) => status,
                _ => 200,
            };
        for _ in 0..GUESSES {
            assert_eq!(from("192.0.2.1", "wrong"), 401);
        }
        assert_eq!(from("192.0.2.1", "password"), 429, "the right one is not told from others");
        assert_eq!(from("192.0.2.2", "password"), 200, "others are not shut out");
        assert!(matches!(access.try_token(&token, "x", true, "192.0.2.1".parse().unwrap()), Met::Known));
    }
}
