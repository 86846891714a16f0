//! `tcpwhy serve`, asked byte by byte as a browser would not.

use crate::common::{Dir, Pcap, kill, program, smtp, tcpwhy};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

const TOKEN: &str = "0123456789abcdef0123";

/// A server on loopback that ends with the test.
struct Server {
    child: Child,
    said: BufReader<ChildStderr>,
    address: String,
    token: String,
    /// The path that it prints.
    first: String,
}

impl Server {
    fn start(dir: &Dir, args: &[&str]) -> Server {
        Server::start_with(dir, args, &[])
    }

    fn start_with(dir: &Dir, args: &[&str], environment: &[(&str, &str)]) -> Server {
        Server::of(&[dir.0.as_path()], args, environment)
    }

    fn of(paths: &[&Path], args: &[&str], environment: &[(&str, &str)]) -> Server {
        let mut child = program()
            .arg("serve")
            .args(paths)
            .args(["--port", "0"])
            .args(args)
            .env_remove("TCPWHY_TOKEN")
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "the server says its address");
        }
        let rest = line.rsplit_once("http://").unwrap().1;
        let (address, rest) = rest.split_once('/').unwrap();
        let first = format!("/{}", rest.split(' ').next().unwrap());
        let token = first.strip_prefix("/?token=").unwrap_or_default().to_owned();
        Server { child, said, address: address.into(), token, first }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// The whole answer to these bytes.
    fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // Refused before all of it was sent: there is an answer all the same.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The whole answer to `GET target` with more header lines.
    fn get(&self, target: &str, headers: &str) -> String {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.address).as_bytes())
    }

    /// The header line that a browser sends after it came with the token.
    fn cookie(&self) -> String {
        let answer = self.get(&format!("/?token={}", self.token), "");
        let cookie = answer.lines().find_map(|l| l.strip_prefix("Set-Cookie: ")).expect("a cookie");
        format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
    }

    /// Asks it to end; its exit code.
    fn end(&mut self, signal: &str) -> Option<i32> {
        kill(&self.child, signal);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn served() -> Dir {
    let dir = Dir::new();
    dir.file("a.pcap", &fs::read(smtp()).unwrap());
    dir
}

#[track_caller]
fn is(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status} was expected: {answer:.300}");
}

/// What stands in the address of a link may be anybody's words. With the cookie of a person who is logged in, it must
/// become neither a header nor a cookie.
#[test]
fn the_token_of_an_address_is_never_sent_back() {
    let dir = served();
    let server = Server::start(&dir, &["--token", TOKEN]);
    let cookie = server.cookie();
    let split = "/?token=x;%20Domain=evil.example%0d%0aContent-Type:%20text/html%0d%0a%0d%0a<script>alert(1)</script>";
    let answer = server.get(split, &cookie);
    assert!(!answer.contains("script") && !answer.contains("evil"), "{answer}");
    is(&answer, 303);
    assert!(!answer.contains("Set-Cookie"), "a wrong token must not replace the right cookie: {answer}");

    let answer = server.get("/?token=wrong", &cookie);
    is(&answer, 303);
    assert!(!answer.contains("Set-Cookie"), "{answer}");
    is(&server.get("/?token=wrong", ""), 401);
    assert!(server.get("/api/list", &cookie).contains("a.pcap"));
}

#[test]
fn a_token_is_asked_for_on_loopback_too() {
    let dir = served();
    let server = Server::start(&dir, &[]);
    assert_eq!(server.token.len(), 32);
    for target in ["/", "/api/list", "/api/events", "/view?name=a.pcap", "/api/packets?name=a.pcap"] {
        is(&server.get(target, ""), 401);
    }
    let post = format!(
        "POST /api/upload?name=x HTTP/1.1\r\nHost: {}\r\nX-Tcpwhy: 1\r\nContent-Length: 3\r\n\r\nabc",
        server.address
    );
    is(&server.send(post.as_bytes()), 401);
    let entered = server.get(&format!("/?token={}", server.token), "");
    assert!(
        entered.contains("; HttpOnly; SameSite=Strict; Path=/\r\n") && entered.contains("Location: /\r\n")
    );
    assert!(!entered.contains(&server.token), "the cookie is not the token: {entered}");
    let cookie = server.cookie();
    let port = server.address.rsplit_once(':').unwrap().1;
    assert!(cookie.starts_with(&format!("Cookie: tcpwhy-{port}=")), "{cookie}");
    assert!(server.get("/api/list", &cookie).contains("a.pcap"));
    let other = cookie.replace(port, "1");
    is(&server.get("/api/list", &other), 401);
    is(&server.get("/api/list", &format!("{};{}", other.trim_end(), &cookie[8..])), 200);
}

#[test]
fn without_a_token_it_says_what_that_means() {
    let dir = served();
    let mut server = Server::start(&dir, &["--no-token"]);
    assert!(server.token.is_empty());
    is(&server.get("/api/list", ""), 200);
    let mut line = String::new();
    server.said.read_line(&mut line).unwrap();
    assert!(line.contains("every user and program of this machine can read"), "{line}");
    let refused = tcpwhy(&["serve", "--no-token", "--listen", "0.0.0.0", "--port", "0"]);
    refused.fails(2, &["--no-token", "beyond loopback"]);
}

#[test]
fn a_token_of_ones_own() {
    let dir = served();
    let server = Server::start_with(&dir, &[], &[("TCPWHY_TOKEN", "from-the-environment")]);
    assert_eq!(server.token, "from-the-environment");
    let file = dir.file("token", b"from-a-file\nnot this\n");
    assert_eq!(Server::start(&dir, &["--token-file", &file]).token, "from-a-file");
    for args in [["--token", "short"], ["--token", "with space"], ["--token-file", "/dev/null"]] {
        let refused = tcpwhy(&["serve", "--port", "0", args[0], args[1]]);
        refused.fails(2, &[args[0], "at least eight"]);
    }
    // One that was chosen may be a word of a dictionary.
    for _ in 0..10 {
        is(&server.get("/?token=a-wrong-guess", ""), 401);
    }
    let guessed = server.get("/?token=from-the-environment", "");
    is(&guessed, 429);
}

#[test]
fn beyond_loopback_the_address_can_be_opened_and_the_danger_is_named() {
    let dir = served();
    let mut server = Server::start(&dir, &["--listen", "0.0.0.0"]);
    assert!(server.address.starts_with("127.0.0.1:"), "the last of them is the own: {}", server.address);
    let mut line = String::new();
    server.said.read_line(&mut line).unwrap();
    assert!(line.contains("HTTP is not encrypted"), "{line}");
    is(&server.get("/", ""), 401);
}

/// Connections that say nothing, or a byte now and then, and event streams that nobody reads shut nobody out.
#[test]
fn who_waits_shuts_nobody_out() {
    let dir = served();
    let server = Server::start(&dir, &[]);
    let cookie = server.cookie();
    let idle: Vec<TcpStream> = (0..300).map(|_| server.connect()).collect();
    let slow: Vec<TcpStream> = (0..60).map(|_| server.connect()).collect();
    slow.iter().for_each(|mut s| s.write_all(b"G").unwrap());
    is(&server.get("/api/list", &cookie), 200);
    drop((idle, slow));

    let request = format!("GET /api/events HTTP/1.1\r\nHost: {}\r\n{cookie}\r\n", server.address);
    let mut streams: Vec<TcpStream> = (0..40).map(|_| server.connect()).collect();
    streams.iter_mut().for_each(|s| s.write_all(request.as_bytes()).unwrap());
    let mut open = 0;
    for stream in &mut streams {
        let mut line = String::new();
        BufReader::new(&mut *stream).read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200") || line.starts_with("HTTP/1.1 503"), "{line}");
        open += u32::from(line.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(open, 16);
    is(&server.get("/api/list", &cookie), 200);
}

/// A request that comes byte by byte has five seconds, however often a byte comes.
#[test]
fn a_request_has_a_deadline() {
    let dir = served();
    let server = Server::start(&dir, &[]);
    let mut stream = server.connect();
    let began = Instant::now();
    let mut writer = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        for byte in "GET / HTTP/1.1\r\n".bytes().chain(std::iter::repeat(b'x')) {
            std::thread::sleep(Duration::from_millis(200));
            if writer.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    is(&answer, 408);
    let took = began.elapsed();
    assert!(took > Duration::from_secs(4) && took < Duration::from_secs(15), "{took:?}");
}

/// The headers of what GET gives, and nothing behind them; also of the stream of events, which has no end.
#[test]
fn head_is_get_without_a_body() {
    let dir = served();
    let server = Server::start(&dir, &[]);
    let cookie = server.cookie();
    for (target, status) in
        [("/", 200), ("/view?name=a.pcap", 200), ("/api/list", 200), ("/api/events", 200), ("/x", 404)]
    {
        let request = format!("HEAD {target} HTTP/1.1\r\nHost: {}\r\n{cookie}\r\n", server.address);
        let answer = server.send(request.as_bytes());
        is(&answer, status);
        assert!(
            answer.ends_with("\r\n\r\n") && answer.matches("\r\n\r\n").count() == 1,
            "{target}: {answer:.500}"
        );
        if target != "/api/events" {
            let whole = server.get(target, &cookie);
            let (head, body) = whole.split_once("\r\n\r\n").unwrap();
            // Each page has a number of its own there.
            let headers = |text: &str| -> Vec<String> {
                let all = text.trim_end().lines().filter(|l| !l.contains("nonce-"));
                all.map(str::to_owned).collect()
            };
            assert_eq!((headers(head), body.is_empty()), (headers(&answer), false), "{target}");
        }
    }
    let refused = format!("PUT / HTTP/1.1\r\nHost: {}\r\n{cookie}\r\n", server.address);
    is(&server.send(refused.as_bytes()), 405);
}

/// A page is made once, however many ask for it, and memory does not grow with them.
#[test]
fn views_at_once_are_bounded() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    for n in 0..40 {
        pcap.client_port = 40_000 + n;
        pcap.conversation(u64::from(n) * 1000, 300);
    }
    dir.file("big.pcap", &pcap.bytes);
    let server = Server::start(&dir, &[]);
    let cookie = server.cookie();
    let answers: Vec<String> = std::thread::scope(|scope| {
        let asking: Vec<_> =
            (0..24).map(|_| scope.spawn(|| server.get("/view?name=big.pcap", &cookie))).collect();
        asking.into_iter().map(|a| a.join().unwrap()).collect()
    });
    let done: Vec<&String> = answers.iter().filter(|a| a.starts_with("HTTP/1.1 200")).collect();
    assert!(!done.is_empty() && done.iter().all(|a| a.ends_with("</html>\n") && a.len() == done[0].len()));
    for refused in answers.iter().filter(|a| !a.starts_with("HTTP/1.1 200")) {
        is(refused, 503);
        assert!(refused.contains("Retry-After: "), "{refused}");
    }
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap().trim();
    let peak: u64 = peak.trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 250_000, "{peak} kB at the most");
}

/// Small captures are judged while the list is looked at, and only then.
#[test]
fn the_list_says_what_each_capture_says() {
    let dir = served();
    dir.file("bad.pcap", b"this is no capture");
    let server = Server::start(&dir, &[]);
    let cookie = server.cookie();
    let list = || -> serde_json::Value {
        let answer = server.get("/api/list", &cookie);
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    std::thread::sleep(Duration::from_millis(600));
    assert!(list()[0]["said"].is_null(), "nobody looks");
    let mut looking = server.connect();
    let head = format!("GET /api/events HTTP/1.1\r\nHost: {}\r\n{cookie}\r\n", server.address);
    looking.write_all(head.as_bytes()).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let rows = loop {
        let rows = list();
        if rows.as_array().unwrap().iter().all(|r| !r["said"].is_null()) {
            break rows;
        }
        assert!(Instant::now() < until, "{rows}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let explained = tcpwhy(&["explain", "--quiet", "--json", &smtp()]).json();
    let spans = explained["findings"].as_array().unwrap();
    let most = spans.iter().max_by_key(|f| f["requests_ns"].as_i64().unwrap()).unwrap();
    let (a, bad) = (&rows[0]["said"], &rows[1]["said"]);
    assert_eq!((&a["title"], &a["owner"]), (&most["title"], &most["owner"]), "{rows}");
    let shares = [&a["share"], &most["share_of_requests"]].map(|s| s.as_f64().unwrap());
    assert!((shares[0] - shares[1]).abs() < 1e-5, "{rows}");
    assert!(
        a["sentence"].as_str().unwrap().contains("Nagle") || a["sentence"].as_str().unwrap().contains("TCP")
    );
    assert!(bad["nothing"].as_str().unwrap().contains("bad.pcap"), "{rows}");
}

#[test]
fn two_captures_beside_each_other() {
    let dir = served();
    dir.file("b.pcap", &fs::read(smtp()).unwrap());
    dir.file("bad.pcap", b"this is no capture");
    let server = Server::start(&dir, &["--no-token"]);
    let page = server.get("/compare?before=a.pcap&after=b.pcap", "");
    is(&page, 200);
    let html = dir.0.join("c.html").to_str().unwrap().to_owned();
    let told = tcpwhy(&["compare", &smtp(), &smtp(), "--html", &html]);
    assert_eq!(told.code, 0, "{}", told.err);
    let file = fs::read_to_string(html).unwrap();
    let body = |text: &str| text[text.find("<h1>").unwrap()..].to_owned();
    assert_eq!(body(&page), body(&file), "the same as on the command line");
    is(&server.get("/compare?before=a.pcap&after=../a.pcap", ""), 404);
    is(&server.get("/compare?before=a.pcap", ""), 404);
    is(&server.get("/compare?before=a.pcap&after=bad.pcap", ""), 422);
}

/// Two captures of a connection, one at each end: one page, and its packets on a zoom.
#[test]
fn two_ends_of_a_connection_are_one_page() {
    let dir = served();
    let lab = format!("{}/../../captures/lab/loss_tail_tlp", env!("CARGO_MANIFEST_DIR"));
    for end in ["client", "server"] {
        let bytes = fs::read(format!("{lab}/cap.{end}.pcap.zst")).unwrap();
        dir.file(&format!("{end}.pcap.zst"), &bytes);
    }
    let server = Server::start(&dir, &["--no-token"]);
    let both = "client.pcap.zst%20%2B%20server.pcap.zst";
    // The second time it comes from memory.
    for _ in 0..2 {
        let page = server.get(&format!("/view?name={both}"), "");
        is(&page, 200);
        assert!(
            page.contains("Two taps: one connection is in both captures and explained once"),
            "{page:.300}"
        );
        assert!(page.contains("1 of 19 on the way to the client"));
    }
    let zoom = format!("/api/packets?name={both}&connection=1&from=0&to=1000000000");
    is(&server.get(&zoom, ""), 200);
    let others = server.get("/view?name=client.pcap.zst%20%2B%20a.pcap", "");
    is(&others, 422);
    assert!(others.contains("hold no connection that was captured in both"), "{others}");
    is(&server.get("/view?name=client.pcap.zst%20%2B%20..%2Fa.pcap", ""), 404);
}

/// Two ends named on the command line: the address that it prints is that page, with a token after one step. The captures of two
/// hosts may have the same name.
#[test]
fn two_ends_are_opened_as_one_from_the_start() {
    let dir = served();
    let lab = format!("{}/../../captures/lab/loss_tail_tlp", env!("CARGO_MANIFEST_DIR"));
    let [client, server] = ["client", "server"].map(|end| {
        fs::create_dir(dir.0.join(end)).unwrap();
        let bytes = fs::read(format!("{lab}/cap.{end}.pcap.zst")).unwrap();
        dir.file(&format!("{end}/cap.pcap.zst"), &bytes);
        dir.0.join(end).join("cap.pcap.zst")
    });
    let paths = [client.as_path(), server.as_path()];
    let open = Server::of(&paths, &["--no-token"], &[]);
    assert!(open.first.starts_with("/view?name="), "{}", open.first);
    let page = open.get(&open.first, "");
    is(&page, 200);
    assert!(page.contains("Two taps: one connection is in both captures and explained once"), "{page:.300}");
    assert_eq!(open.get("/api/list", "").matches("cap.pcap.zst\"").count(), 2, "each is listed, too");
    let kept = Server::of(&paths, &["--token", TOKEN], &[]);
    let cookie = kept.cookie();
    let enters = kept.get(&kept.first, "");
    is(&enters, 303);
    let to = enters.lines().find_map(|l| l.strip_prefix("Location: ")).unwrap();
    assert_eq!(to, open.first);
    is(&kept.get(to, ""), 401);
    is(&kept.get(to, &cookie), 200);
    is(&kept.get("/", &cookie), 200);

    let [a, client, folder] =
        [dir.0.join("a.pcap"), client, dir.0.clone()].map(|p| p.to_str().unwrap().to_owned());
    let refused = |args: &[&str], why: &str| {
        let told = tcpwhy(&[&["serve", "--port", "0"], args].concat());
        assert_eq!(told.code, 2, "{}", told.err);
        assert!(told.err.contains(why), "{}", told.err);
    };
    refused(&[&client, &a], "hold no connection that was captured at two ends");
    refused(&[&client, &client], "hold no connection that was captured at two ends");
    refused(&[&folder, &a], "serve takes one folder, or two captures");
    refused(&[&client, &a, &a], "no more were expected");
}

#[test]
fn files_that_are_dropped_have_room_and_an_end() {
    let dir = served();
    let server = Server::start(&dir, &["--max-upload", "1"]);
    let cookie = server.cookie();
    let capture = fs::read(smtp()).unwrap();
    let upload = |length: &str, body: &[u8]| {
        let head = format!(
            "POST /api/upload?name=x.pcap HTTP/1.1\r\nHost: {}\r\nX-Tcpwhy: 1\r\n{cookie}Content-Length: {length}\r\n\r\n",
            server.address
        );
        server.send(&[head.as_bytes(), body].concat())
    };
    for wrong in ["+5", "-1", " 5 5", "0x5", "", "18446744073709551616"] {
        is(&upload(wrong, b"abcde"), 411);
    }
    is(&upload("1048577", b""), 413);
    is(&upload("3", b"abc"), 415);
    let mut padded = capture;
    padded.resize(1 << 20, 0);
    // What was refused takes no room: four times a whole one fits.
    for n in 0..5 {
        is(&upload("1048576", &padded), if n < 4 { 200 } else { 507 });
    }
}

#[test]
fn names_that_are_not_its_own() {
    let dir = served();
    let server = Server::start(&dir, &["--no-token"]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    for (host, status) in [
        ("localhost", 200),
        ("[::1]", 200),
        ("[127.0.0.1]", 403),
        ("[127.0.0.1]]", 403),
        ("127.0.0.1.evil.example", 403),
        ("evil.example", 403),
    ] {
        is(&server.send(format!("GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n").as_bytes()), status);
    }
}

/// What was dropped goes with the server, also while somebody holds a connection open, whatever ends it.
#[test]
fn nothing_stays_behind() {
    for signal in ["INT", "TERM", "HUP"] {
        let (dir, tmp) = (served(), Dir::new());
        let mut server = Server::start_with(&dir, &[], &[("TMPDIR", tmp.0.to_str().unwrap())]);
        let cookie = server.cookie();
        let capture = fs::read(smtp()).unwrap();
        let head = format!(
            "POST /api/upload?name=x.pcap HTTP/1.1\r\nHost: {}\r\nX-Tcpwhy: 1\r\n{cookie}Content-Length: {}\r\n\r\n",
            server.address,
            capture.len()
        );
        is(&server.send(&[head.as_bytes(), &capture].concat()), 200);
        assert_eq!(fs::read_dir(&tmp.0).unwrap().count(), 1, "its store");
        let idle = server.connect();
        assert_eq!(server.end(signal), Some(0), "{signal}");
        assert_eq!(fs::read_dir(&tmp.0).unwrap().count(), 0, "{signal}");
        drop(idle);
    }
}
