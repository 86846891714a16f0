//! What an exchange is called: from the first bytes of its request, as the protocol writes it there. Of a
//! request line the query is left out, of statements all but the first word, of keys everything. Names are
//! printable ASCII of bounded length, since anybody may have written the bytes.

use crate::Program;
use std::fmt::Write as _;

/// No more bytes of a request are looked at for its name.
pub const MOST: usize = 4096;
/// Characters of a name.
const LONGEST: usize = 80;

/// What the first bytes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// A name.
    Name(String),
    /// It may have one, but more bytes are needed to say it.
    More,
    /// No protocol that is known here.
    None,
}

/// The name of the request that begins with `bytes`, `to` a server that was guessed to be that program.
pub fn of_request(bytes: &[u8], to: Option<Program>) -> Naming {
    match (to, bytes.first()) {
        (_, None) => Naming::More,
        (Some(Program::MySql | Program::MariaDb), _) => mysql(bytes),
        (Some(Program::PostgreSql), _) => postgresql(bytes),
        (_, Some(b'*')) => redis(bytes),
        (_, Some(b'A'..=b'Z')) => http(bytes),
        _ => Naming::None,
    }
}

/// The name of a request of HTTP/1 whose line was not captured to its end: what there is of it.
pub fn of_cut(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let mut words = line.split(|&b| b == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let whole = words.next().is_some() || target.contains(&b'?');
    let known = is_word(method) && method.iter().all(u8::is_ascii_uppercase) && !target.is_empty();
    if !known || http(bytes) != Naming::More {
        return None;
    }
    let path = path(target);
    let more = if whole || path.ends_with('…') { "" } else { "…" };
    Some(format!("{} {path}{more}", printable(method)))
}

/// The status of a response of HTTP/1, of which an interim one (1xx) is none.
pub fn status_of(bytes: &[u8]) -> Option<u16> {
    let [version @ .., _, a, b, c] = bytes.get(..12)? else { return None };
    let digit = |d: &u8| d.is_ascii_digit().then(|| u16::from(d - b'0'));
    let status = digit(a)? * 100 + digit(b)? * 10 + digit(c)?;
    (version.starts_with(b"HTTP/1.") && status >= 200).then_some(status)
}

/// `METHOD target HTTP/1.x` (RFC 9112, 3): method and path.
fn http(bytes: &[u8]) -> Naming {
    let method = bytes.iter().take_while(|b| b.is_ascii_uppercase()).count();
    // The longest that is registered has 17 letters (UPDATEREDIRECTREF).
    if method > 20 || bytes.get(method).is_some_and(|&b| b != b' ') {
        return Naming::None;
    }
    let line = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
    if line.len() == bytes.len() {
        return if bytes.len() < MOST { Naming::More } else { Naming::None };
    }
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut words = line.split(|&b| b == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Naming::None;
    };
    if !version.starts_with(b"HTTP/1.") {
        return Naming::None;
    }
    Naming::Name(format!("{} {}", printable(method), path(target)))
}

/// The target without its query (RFC 9112, 3.2: a path, `*`, a whole address, or a host and port), and
/// without who asks.
fn path(target: &[u8]) -> String {
    let end = target.iter().position(|&b| b == b'?' || b == b'#').unwrap_or(target.len());
    let target = &target[..end];
    let user = target.iter().position(|&b| b == b'@');
    let scheme = target.windows(3).position(|w| w == b"://");
    match (scheme, user) {
        (Some(s), Some(u)) if s < u && !target[s + 3..u].contains(&b'/') => {
            format!("{}{}", printable(&target[..s + 3]), printable(&target[u + 1..]))
        }
        _ => printable(target),
    }
}

/// `*N\r\n$M\r\nVERB\r\n...` (RESP): the verb.
fn redis(bytes: &[u8]) -> Naming {
    let mut lines = bytes.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let number = |line: Option<&[u8]>, sign: u8| -> Option<usize> {
        std::str::from_utf8(line?.strip_prefix(&[sign])?).ok()?.parse().ok()
    };
    let ends = bytes.iter().filter(|&&b| b == b'\n').count();
    if ends < 3 {
        let plausible = bytes.len() < 64 && bytes[1..].first().is_none_or(u8::is_ascii_digit);
        return if plausible { Naming::More } else { Naming::None };
    }
    let (count, length) = (number(lines.next(), b'*'), number(lines.next(), b'$'));
    let verb = lines.next().unwrap_or_default();
    if count.is_none() || length != Some(verb.len()) || !is_word(verb) {
        return Naming::None;
    }
    Naming::Name(format!("Redis {}", printable(&verb.to_ascii_uppercase())))
}

/// Commands of the client/server protocol of MySQL that programs send ("Command Phase").
const MYSQL: &[(u8, &str)] = &[
    (0x01, "quit"),
    (0x02, "use"),
    (0x04, "list fields"),
    (0x09, "statistics"),
    (0x0d, "debug"),
    (0x0e, "ping"),
    (0x11, "change user"),
    (0x12, "binlog dump"),
    (0x17, "execute"),
    (0x18, "send long data"),
    (0x19, "close"),
    (0x1a, "reset statement"),
    (0x1b, "set option"),
    (0x1c, "fetch"),
    (0x1e, "binlog dump"),
    (0x1f, "reset connection"),
];

/// Length in three bytes, number of the packet, command: the first word of a statement, or the name of the command.
fn mysql(bytes: &[u8]) -> Naming {
    let [a, b, c, number, rest @ ..] = bytes else { return Naming::More };
    let length = u32::from_le_bytes([*a, *b, *c, 0]);
    // The answer to the greeting has number 1, a command 0.
    if *number == 1 && length >= 32 {
        return Naming::Name("MySQL login".into());
    }
    if *number != 0 || length == 0 {
        return Naming::None;
    }
    let Some((command, text)) = rest.split_first() else { return Naming::More };
    let prefix = match command {
        0x03 => "MySQL",
        0x16 => "MySQL prepare",
        command => {
            let known = MYSQL.iter().find(|k| k.0 == *command);
            return known.map_or(Naming::None, |k| Naming::Name(format!("MySQL {}", k.1)));
        }
    };
    // No parameters, in one set: what stands before a statement where query attributes are agreed (8.0.25).
    let text = text.strip_prefix(&[0, 1]).unwrap_or(text);
    statement(prefix, text, rest.len() >= length as usize)
}

/// Type, length and body of a message ("Message Formats"); the first of a connection has no type.
fn postgresql(bytes: &[u8]) -> Naming {
    if crate::program::spoken_to(bytes) == Some(Program::PostgreSql) {
        let startup = bytes.get(4..8) == Some(&[0, 3, 0, 0]) || bytes.get(4..8) == Some(&[0, 3, 0, 2]);
        return Naming::Name(if startup { "PostgreSQL startup" } else { "PostgreSQL encryption" }.into());
    }
    // A message without a type begins with the first byte of its length, which is none of a type.
    if bytes.len() < 8 && bytes.first() == Some(&0) {
        return Naming::More;
    }
    let [kind, a, b, c, d, body @ ..] = bytes else { return Naming::More };
    let length = u32::from_be_bytes([*a, *b, *c, *d]);
    if !(4..1 << 30).contains(&length) {
        return Naming::None;
    }
    let whole = body.len() + 4 >= length as usize;
    let name = match kind {
        b'Q' => return statement("PostgreSQL", body, whole),
        // The name of the statement stands before its text.
        b'P' => {
            return match body.iter().position(|&b| b == 0) {
                Some(end) => statement("PostgreSQL", &body[end + 1..], whole),
                None if whole || bytes.len() >= MOST => Naming::None,
                None => Naming::More,
            };
        }
        b'B' | b'E' => "execute",
        b'C' => "close",
        b'D' => "describe",
        b'F' => "call",
        b'S' | b'H' => "sync",
        b'X' => "terminate",
        b'd' | b'c' | b'f' => "copy",
        b'p' => "login",
        _ => return Naming::None,
    };
    Naming::Name(format!("PostgreSQL {name}"))
}

/// The first word of a statement, behind comments.
fn statement(prefix: &str, mut text: &[u8], whole: bool) -> Naming {
    let more = if whole || text.len() >= MOST { Naming::None } else { Naming::More };
    loop {
        text = text.trim_ascii_start();
        text = if let Some(rest) = text.strip_prefix(b"/*") {
            let Some(end) = rest.windows(2).position(|w| w == b"*/") else { return more };
            &rest[end + 2..]
        } else if let Some(rest) = text.strip_prefix(b"--") {
            let Some(end) = rest.iter().position(|&b| b == b'\n') else { return more };
            &rest[end + 1..]
        } else {
            break;
        };
    }
    let text = text.strip_prefix(b"(").unwrap_or(text);
    let n = text.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    // One byte more or less may begin a comment.
    if !whole && (n == text.len() || text.len() < 2) {
        return more;
    }
    if n == 0 || n > 24 {
        return Naming::None;
    }
    Naming::Name(format!("{prefix} {}", printable(&text[..n].to_ascii_uppercase())))
}

fn is_word(bytes: &[u8]) -> bool {
    (1..=24).contains(&bytes.len()) && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b))
}

/// What can be printed, cut to what can be read.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().min(LONGEST));
    for &b in bytes.iter().take(LONGEST) {
        if b.is_ascii_graphic() {
            text.push(b.into());
        } else {
            // Writing into memory cannot fail.
            let _ = write!(text, "%{b:02X}");
        }
    }
    if bytes.len() > LONGEST {
        text.push('…');
    }
    text
}

/// The server name in a ClientHello (RFC 8446, 4.1.2; RFC 6066, 3), which begins with these bytes of TLS records.
pub fn server_name(bytes: &[u8]) -> Naming {
    let Some(hello) = handshake(bytes) else { return Naming::None };
    match read_server_name(&hello.0) {
        Ok(Some(name)) => Naming::Name(printable(name)),
        Ok(None) => Naming::None,
        Err(Cut) if hello.1 || bytes.len() >= MOST => Naming::None,
        Err(Cut) => Naming::More,
    }
}

/// The body of the first handshake message as far as it is here, out of its records; and whether all of it is.
fn handshake(mut bytes: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut message = Vec::new();
    while !bytes.is_empty() {
        let [kind, rest @ ..] = bytes else { break };
        if *kind != 22 || rest.first().is_some_and(|&major| major != 3) {
            return if message.is_empty() { None } else { Some((message, true)) };
        }
        let [_, _, a, b, body @ ..] = rest else { break };
        let length = usize::from(u16::from_be_bytes([*a, *b]));
        message.extend_from_slice(body.get(..length).unwrap_or(body));
        bytes = body.get(length..).unwrap_or_default();
    }
    match message.as_slice() {
        [1, a, b, c, ..] => {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let body = message.split_off(4);
            let whole = body.len() >= length;
            Some((body, whole))
        }
        [] | [1] | [1, ..] => Some((Vec::new(), false)),
        _ => None,
    }
}

/// The bytes end too early.
struct Cut;

fn take<'a>(from: &mut &'a [u8], n: usize) -> Result<&'a [u8], Cut> {
    let (taken, rest) = from.split_at_checked(n).ok_or(Cut)?;
    *from = rest;
    Ok(taken)
}

/// A length of one or two bytes.
fn length(from: &mut &[u8], bytes: usize) -> Result<usize, Cut> {
    Ok(take(from, bytes)?.iter().fold(0, |n, &b| n << 8 | usize::from(b)))
}

fn read_server_name(mut hello: &[u8]) -> Result<Option<&[u8]>, Cut> {
    let rest = &mut hello;
    // Version and random number; then session, ciphers and compressions behind their lengths.
    take(rest, 34)?;
    for bytes in [1, 2, 1] {
        let n = length(rest, bytes)?;
        take(rest, n)?;
    }
    let mut all = length(rest, 2)?;
    while all >= 4 {
        let (kind, n) = (length(rest, 2)?, length(rest, 2)?);
        let mut body = take(rest, n)?;
        all = all.saturating_sub(4 + n);
        if kind == 0 {
            // A list of names, of which hosts are kind 0.
            length(&mut body, 2)?;
            let (kind, n) = (length(&mut body, 1)?, length(&mut body, 2)?);
            return Ok(take(&mut body, n).ok().filter(|_| kind == 0));
        }
    }
    Ok(None)
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
