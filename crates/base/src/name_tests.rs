//! Names as programs send them; cut anywhere; and bytes that nobody meant.

use super::*;
use crate::Random;

fn name(bytes: &[u8], to: Option<Program>) -> Option<String> {
    match of_request(bytes, to) {
        Naming::Name(name) => Some(name),
        Naming::More | Naming::None => None,
    }
}

const REQUESTS: &[(&[u8], Option<Program>, &str)] = &[
    (b"POST /orders?card=1234#x HTTP/1.1\r\nHost: a\r\n\r\n", None, "POST /orders"),
    (b"GET / HTTP/1.0\r\n\r\n", Some(Program::Nginx), "GET /"),
    (b"GET http://u:p@a.example/x?y HTTP/1.1\r\n", None, "GET http://a.example/x"),
    (b"CONNECT a.example:443 HTTP/1.1\r\n", None, "CONNECT a.example:443"),
    (b"OPTIONS * HTTP/1.1\n", None, "OPTIONS *"),
    (b"GET /a\x1b[31m\xff HTTP/1.1\r\n", None, "GET /a%1B[31m%FF"),
    (b"*2\r\n$3\r\nget\r\n$6\r\nsecret\r\n", Some(Program::Redis), "Redis GET"),
    (b"*1\r\n$4\r\nPING\r\n", None, "Redis PING"),
    (b"\x12\0\0\0\x03select secret from", Some(Program::MySql), "MySQL SELECT"),
    (b"\x14\0\0\0\x03\0\x01/* app */ UPDATE t", Some(Program::MariaDb), "MySQL UPDATE"),
    (b"\x0a\0\0\0\x16SELECT ?;", Some(Program::MySql), "MySQL prepare SELECT"),
    (b"\x0a\0\0\0\x17\x01\0\0\0\0\x01\0\0\0", Some(Program::MySql), "MySQL execute"),
    (b"\x01\0\0\0\x0e", Some(Program::MySql), "MySQL ping"),
    (b"\x54\0\0\x01\x85\xa6", Some(Program::MySql), "MySQL login"),
    (b"Q\0\0\0\x0dSELECT 1\0", Some(Program::PostgreSql), "PostgreSQL SELECT"),
    (b"Q\0\0\0\x13-- why\n begin;\0\0", Some(Program::PostgreSql), "PostgreSQL BEGIN"),
    (b"P\0\0\0\x14s1\0INSERT INTO t\0\0\0", Some(Program::PostgreSql), "PostgreSQL INSERT"),
    (b"B\0\0\0\x0c\0\0\0\0\0\0\0\0", Some(Program::PostgreSql), "PostgreSQL execute"),
    (b"\0\0\0\x08\x04\xd2\x16\x2f", Some(Program::PostgreSql), "PostgreSQL encryption"),
];

#[test]
fn requests() {
    for &(bytes, to, expected) in REQUESTS {
        assert_eq!(name(bytes, to).as_deref(), Some(expected));
    }
    for (bytes, to) in [
        (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], None),
        (b"HELO example\r\n", None),
        (b"*2 stars\r\n\r\n\r\n", None),
        (b"Z\0\0\0\x05I", Some(Program::PostgreSql)),
        (b"\x01\0\0\0\x7f", Some(Program::MySql)),
    ] {
        assert_eq!(of_request(bytes, to), Naming::None, "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_cut_request_has_the_same_name_or_waits() {
    for &(bytes, to, expected) in REQUESTS {
        for end in 0..bytes.len() {
            match of_request(&bytes[..end], to) {
                Naming::Name(name) => assert_eq!(name, expected, "{end}"),
                Naming::More => {}
                Naming::None => panic!("{expected} at {end} is given up"),
            }
        }
    }
}

#[test]
fn a_short_capture_says_what_it_has() {
    let cut = |bytes: &[u8]| of_cut(bytes);
    assert_eq!(cut(b"GET /orders/la").as_deref(), Some("GET /orders/la…"));
    assert_eq!(cut(b"GET /orders?cust").as_deref(), Some("GET /orders"));
    assert_eq!(cut(b"GET /orders HTT").as_deref(), Some("GET /orders"));
    for none in [&b"GET "[..], b"GE", b"", b"\x16\x03\x01 a", b"220 mail"] {
        assert_eq!(cut(none), None);
    }
}

#[test]
fn long_names_are_cut() {
    let mut request = b"GET /".to_vec();
    request.extend([b'x'; 300]);
    request.extend(b" HTTP/1.1\r\n");
    let name = name(&request, None).expect("a name");
    assert_eq!(name.chars().count(), 4 + LONGEST + 1);
    assert_eq!(of_request(&[b'A'; MOST], None), Naming::None);
}

#[test]
fn status() {
    assert_eq!(status_of(b"HTTP/1.1 201 Created\r\n"), Some(201));
    assert_eq!(status_of(b"HTTP/1.0 404"), Some(404));
    for none in
        [&b"HTTP/1.1 100 Continue"[..], b"HTTP/1.1 20", b"HTTP/2.0 200 ", b"ICY 200 OK..", b"HTTP/1.1 2x0"]
    {
        assert_eq!(status_of(none), None);
    }
}

/// A ClientHello with this server name, in records of at most so many bytes.
fn hello(name: &[u8], record: usize) -> Vec<u8> {
    let mut list = vec![0];
    list.extend((name.len() as u16).to_be_bytes());
    list.extend(name);
    let mut extension = ((list.len()) as u16).to_be_bytes().to_vec();
    extension.extend(list);
    let mut extensions = vec![0, 43, 0, 3, 2, 3, 4, 0, 0];
    extensions.extend((extension.len() as u16).to_be_bytes());
    extensions.extend(extension);
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let mut message = vec![1, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(body);
    let mut out = Vec::new();
    for part in message.chunks(record) {
        out.extend([22, 3, 1]);
        out.extend((part.len() as u16).to_be_bytes());
        out.extend(part);
    }
    out
}

#[test]
fn server_names() {
    for record in [16_384, 40, 1] {
        let bytes = hello(b"api.example.com", record);
        assert_eq!(server_name(&bytes), Naming::Name("api.example.com".into()));
        for end in 0..bytes.len() {
            let cut = server_name(&bytes[..end]);
            let named = cut == Naming::Name("api.example.com".into());
            assert!(cut == Naming::More || named || end == 0 && cut == Naming::None, "{end}: {cut:?}");
        }
    }
    assert_eq!(server_name(b"GET / HTTP/1.1\r\n"), Naming::None);
    assert_eq!(server_name(b"\x16\x03\x01\0\x04\x02\0\0\0"), Naming::None);
}

#[test]
fn no_bytes_are_too_odd() {
    let mut random = Random(7);
    let programs = [None, Some(Program::MySql), Some(Program::PostgreSql), Some(Program::Redis)];
    for i in 0..40_000u64 {
        let seed = REQUESTS[(i % REQUESTS.len() as u64) as usize].0;
        let mut bytes = if i % 3 == 0 { hello(b"x", 30) } else { seed.to_vec() };
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.draw() as u8;
        }
        bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
        for to in programs {
            if let Some(name) = name(&bytes, to) {
                let ends = name.chars().all(|c| c.is_ascii_graphic() || c == ' ' || c == '…');
                assert!(ends && name.len() < 600, "{name}");
            }
        }
        let _ = (server_name(&bytes), of_cut(&bytes));
        let _ = status_of(&bytes);
        let _ = crate::TraceParent::in_headers(&bytes);
    }
}
