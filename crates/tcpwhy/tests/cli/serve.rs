//! `tcpwhy serve`, asked byte by byte as a browser would not.

use crate::common::{Dir, smtp};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

const TOKEN: &str = "0123456789abcdef0123";

/// A server on loopback that ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(dir: &Dir, args: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .arg("serve")
            .arg(&dir.0)
            .args(["--port", "0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It says its address on one of the two, which the other must not hold up.
        let said = BufReader::new(child.stderr.take().unwrap());
        let address = said
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("http://")?.1.split('/').next()?.to_owned()))
            .expect("the server says its address");
        Server { child, address }
    }

    /// The whole answer to `GET target` with more header lines.
    fn get(&self, target: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What stands in the address of a link may be anybody's words. With the cookie of a person who is logged in, it must
/// become neither a header nor a cookie.
#[test]
fn the_token_of_an_address_is_never_sent_back() {
    let dir = Dir::new();
    dir.file("a.pcap", &std::fs::read(smtp()).unwrap());
    let server = Server::start(&dir, &["--token", TOKEN]);
    let cookie = format!("Cookie: tcpwhy={TOKEN}\r\n");

    let split = "/?token=x;%20Domain=evil.example%0d%0aContent-Type:%20text/html%0d%0a%0d%0a<script>alert(1)</script>";
    let answer = server.get(split, &cookie);
    assert!(!answer.contains("script") && !answer.contains("evil"), "{answer}");
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    assert!(!answer.contains("Set-Cookie"), "a wrong token must not replace the right cookie: {answer}");

    let answer = server.get("/?token=wrong", &cookie);
    assert!(answer.starts_with("HTTP/1.1 303") && !answer.contains("Set-Cookie"), "{answer}");
    assert!(server.get("/?token=wrong", "").starts_with("HTTP/1.1 401"));

    let answer = server.get(&format!("/?token={TOKEN}"), "");
    assert!(answer.contains(&format!("Set-Cookie: tcpwhy={TOKEN}; HttpOnly")), "{answer}");
    assert!(server.get("/api/list", &cookie).contains("a.pcap"));
}
