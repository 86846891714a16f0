//! As much of HTTP/1.1 as a browser on the same machine needs: one request a connection, bounded in every direction.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};
use tcpwhy_report::html::Escaped;

/// Request line and headers together.
const HEAD: u64 = 16 << 10;
/// For all of them: a browser sends them at once.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Who says nothing for so long has gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// For a whole answer: 20 MB over a slow tunnel.
const ANSWER_TIME: Duration = Duration::from_secs(600);
/// What is read of a request that was refused, so that the refusal arrives: closing with unread bytes would reset it.
const REST: u64 = 1 << 20;
const REST_TIME: Duration = Duration::from_secs(1);

/// A connection of which every read and write ends with the deadline at the latest.
pub(crate) struct Wire {
    stream: TcpStream,
    until: Instant,
    /// Of an answer to HEAD, so much of the end of its headers as has been written; None: all of it is wanted.
    ending: Option<usize>,
}

/// Behind the headers.
const END: &[u8] = b"\r\n\r\n";

impl Wire {
    pub(crate) fn new(stream: &TcpStream) -> io::Result<Wire> {
        Ok(Wire { stream: stream.try_clone()?, until: Instant::now() + ANSWER_TIME, ending: None })
    }

    /// What is written goes as far as the end of the headers: the answer to HEAD (RFC 9110, 9.3.2).
    pub(crate) fn only_head(&mut self) {
        self.ending = Some(0);
    }

    /// Another deadline, from now.
    pub(crate) fn within(&mut self, time: Duration) {
        self.until = Instant::now() + time;
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now()).min(PATIENCE);
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }

    /// Ends the connection so that what was written arrives.
    pub(crate) fn end(mut self) {
        self.within(REST_TIME);
        if self.stream.shutdown(Shutdown::Write).is_ok() {
            // Whatever is wrong with it now: it ends here.
            let _ = io::copy(&mut (&mut self).take(REST), &mut io::sink());
        }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        let Some(ending) = self.ending else { return self.stream.write(bytes) };
        let (len, _) = until_end(ending, bytes);
        let Some(head) = bytes.get(..len).filter(|head| !head.is_empty()) else { return Ok(bytes.len()) };
        let n = self.stream.write(head)?;
        self.ending = Some(until_end(ending, head.get(..n).unwrap_or_default()).1);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// How many of these bytes belong to the headers, of whose end so much stands before them, and how much of it
/// stands behind.
fn until_end(mut ending: usize, bytes: &[u8]) -> (usize, usize) {
    let mut len = 0;
    for byte in bytes {
        let Some(expected) = END.get(ending) else { break };
        ending = if byte == expected { ending + 1 } else { usize::from(*byte == b'\r') };
        len += 1;
    }
    (len, ending)
}

/// A request; its body is still on the wire.
pub(crate) struct Request {
    /// GET of a HEAD, too.
    pub(crate) method: String,
    /// It was HEAD.
    pub(crate) only_head: bool,
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    headers: HashMap<String, String>,
    pub(crate) body: BufReader<Wire>,
}

impl Request {
    /// Reads a request. `Ok(None)`: the other end went away. `Err`: the status to answer with.
    pub(crate) fn read(stream: &TcpStream) -> Result<Option<Request>, u16> {
        let mut wire = Wire::new(stream).map_err(|_| 400u16)?;
        wire.within(HEAD_TIME);
        let mut body = BufReader::new(wire);
        let mut head = (&mut body).take(HEAD);
        let mut line = |line: &mut String| -> Result<usize, u16> {
            line.clear();
            let n = head.read_line(line).map_err(|e| if is_late(&e) { 408 } else { 400u16 })?;
            if n > 0 && !line.ends_with('\n') {
                return Err(431);
            }
            Ok(n)
        };
        let mut text = String::new();
        if line(&mut text)? == 0 {
            return Ok(None);
        }
        let mut words = text.split_whitespace();
        let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
            return Err(400);
        };
        if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return Err(400);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let only_head = method == "HEAD";
        let method = if only_head { "GET" } else { method };
        let (method, path) = (method.to_owned(), decoded(path).ok_or(400u16)?);
        let pairs = query.split('&').filter(|p| !p.is_empty()).map(|p| p.split_once('=').unwrap_or((p, "")));
        let query: Option<HashMap<_, _>> =
            pairs.map(|(k, v)| Some((decoded(k)?, decoded(&v.replace('+', " "))?))).collect();
        let query = query.ok_or(400u16)?;
        let mut headers = HashMap::new();
        loop {
            if line(&mut text)? == 0 {
                return Err(400);
            }
            let field = text.trim_end();
            if field.is_empty() {
                break;
            }
            let (name, value) = field.split_once(':').ok_or(400u16)?;
            // Of two hosts or two lengths one would be wrong.
            if headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()).is_some()
                && ["Host", "Content-Length"].iter().any(|n| name.eq_ignore_ascii_case(n))
            {
                return Err(400);
            }
        }
        body.get_mut().within(ANSWER_TIME);
        Ok(Some(Request { method, only_head, path, query, headers, body }))
    }

    /// The length of the body; nothing if it is not said as a plain number (RFC 9110, section 8.6).
    pub(crate) fn length(&self) -> Option<u64> {
        let length = self.header("content-length")?;
        length.parse().ok().filter(|_| length.bytes().all(|b| b.is_ascii_digit()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

fn is_late(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

/// `%41` is `A`.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
            out.push((digit(bytes.next())? * 16 + digit(bytes.next())?) as u8);
        } else {
            out.push(b);
        }
    }
    String::from_utf8(out).ok().filter(|t| !t.contains('\0'))
}

/// A text as it stands in an address (RFC 3986, 2.1).
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for &b in text.as_bytes() {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            out.push(char::from(b));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

/// What is said with a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        507 => "Insufficient Storage",
        _ => "Error",
    }
}

/// Writes the status and the headers. A value that would end its line is an error, and nothing is written: what it came
/// from could go on with headers and a page of its own.
pub(crate) fn head(out: &mut impl Write, status: u16, kind: &str, extra: &[(&str, &str)]) -> io::Result<()> {
    let mut lines = String::new();
    for (name, value) in extra {
        if value.contains(|c: char| c.is_ascii_control()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a header with a line end in it"));
        }
        lines.extend([name, ": ", value, "\r\n"]);
    }
    write!(
        out,
        "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         X-Frame-Options: DENY\r\n{lines}\r\n",
        reason(status)
    )
}

/// Not now, but in so many seconds; text, or where a person waits for a page, one that asks again by itself.
pub(crate) fn later(out: &mut impl Write, seconds: u32, is_page: bool, why: &str) -> io::Result<()> {
    let seconds = seconds.to_string();
    let headers = [("Retry-After", seconds.as_str()), ("Refresh", &seconds)];
    head(out, 503, "text/plain; charset=utf-8", if is_page { &headers } else { &headers[..1] })?;
    writeln!(out, "{why}")
}

/// A whole answer of text.
pub(crate) fn say(out: &mut impl Write, status: u16, text: &str) -> io::Result<()> {
    head(out, status, "text/plain; charset=utf-8", &[])?;
    writeln!(out, "{text}")
}

/// A whole answer of text for a person who waits for a page: with a way back.
pub(crate) fn sorry(out: &mut impl Write, status: u16, text: &str) -> io::Result<()> {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
    head(out, status, "text/html; charset=utf-8", &[("Content-Security-Policy", policy)])?;
    writeln!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\"><title>{} · \
         tcpwhy</title></head><body style=\"font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 \
         1rem\"><p>{}</p><p><a href=\"/\">← captures</a></p></body></html>",
        reason(status),
        Escaped(text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_ends_where_its_line_ends() {
        for value in ["x\r\nContent-Type: text/html", "x\n", "x\ry", "\0"] {
            let mut out = Vec::new();
            assert!(head(&mut out, 303, "text/plain", &[("Location", "/"), ("Set-Cookie", value)]).is_err());
            assert!(out.is_empty(), "nothing of it was written");
        }
        let mut out = Vec::new();
        head(&mut out, 303, "text/plain", &[("Location", "/")]).unwrap();
        assert!(String::from_utf8(out).unwrap().ends_with("\r\nLocation: /\r\n\r\n"));
    }

    /// However the bytes are cut.
    #[test]
    fn an_answer_to_head_ends_with_its_headers() {
        let answer = b"HTTP/1.1 200 OK\r\nA: \rb\r\n\r\nbody\r\n\r\n";
        let head = answer.len() - 8;
        for cut in 0..answer.len() {
            let (first, ending) = until_end(0, &answer[..cut]);
            let (second, _) = until_end(ending, &answer[cut..]);
            assert_eq!(first + second, head, "{cut}");
        }
    }

    #[test]
    fn percent_signs() {
        assert_eq!(escaped("a+b ä%/c"), "a%2Bb%20%C3%A4%25%2Fc");
        assert_eq!(decoded("a%20b%C3%A4").as_deref(), Some("a bä"));
        assert_eq!((decoded("%zz"), decoded("%4"), decoded("%00"), decoded("%ff")), (None, None, None, None));
    }
}
