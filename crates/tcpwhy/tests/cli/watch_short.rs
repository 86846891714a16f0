//! `tcpwhy watch`: answers that take less than a tick or two of the kernel's clock, and a query that goes on.

use crate::watch::{Program, json, watch};
use serde_json::Value;

/// A server that answers after 5 ms and a client that asks again at once; says their port.
const SHORT: &str = "
import socket, threading, time
listener = socket.create_server(('127.0.0.1', 0))
def ask():
    c = socket.create_connection(listener.getsockname())
    while True:
        c.sendall(b'x' * 100); c.recv(100, socket.MSG_WAITALL)
threading.Thread(target=ask, daemon=True).start()
s = listener.accept()[0]
print(listener.getsockname()[1], flush=True)
while True:
    s.recv(100, socket.MSG_WAITALL); time.sleep(0.005); s.sendall(b'y' * 100)
";

/// A query behind answers that were acknowledged at once, all within a tick, to a server that sleeps or sits in CALL;
/// says their port. The client looks for its answer later: no thread tells for it.
const QUERY: &str = "
import ctypes, os, select, socket, time
listener = socket.create_server(('127.0.0.1', 0))
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: it ends with its parent
    s = listener.accept()[0]
    while s.recv(4) != b'long':
        s.sendall(b'y')
    CALL
    os._exit(0)
c = socket.create_connection(listener.getsockname())
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for n in range(30):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    c.sendall(b'more'); c.recv(1)
c.sendall(b'long')
print(listener.getsockname()[1], flush=True)
select.poll().poll(30000)
";

/// Of the interval, at an end: the part of a cause.
fn part(document: &Value, role: &str, cause: &str) -> f64 {
    let rows = document["connections"].as_array().expect("rows");
    let row = rows.iter().find(|r| r["role"] == role).unwrap_or_else(|| panic!("{role}: {document:#}"));
    let parts = row["interval"].as_array().expect("parts");
    let of = |p: &Value| p["time_ns"].as_f64().expect("a time");
    let all: f64 = parts.iter().map(of).sum();
    parts.iter().filter(|p| p["cause"] == cause).map(of).sum::<f64>() / all
}

#[test]
fn a_server_that_answers_in_5_ms_is_named_at_both_ends() {
    let program = Program::start(SHORT);
    let mut last = Value::Null;
    // A busy machine may stop either of the two for long.
    for _ in 0..10 {
        last = json(&watch(&["--once", "--json", "--sampled", "--port", &program.1]));
        let think = ["client", "server"].map(|role| part(&last, role, "server_think"));
        let path = ["client", "server"].map(|role| part(&last, role, "path_delay"));
        if think.iter().all(|&part| part > 0.7) && path.iter().all(|&part| part < 0.1) {
            return;
        }
    }
    panic!("{last:#}");
}

#[test]
fn a_query_that_goes_on_is_its_servers_or_it_is_said_why_not() {
    for (call, told) in [("time.sleep(30)", true), ("select.poll().poll(30000)", false)] {
        let program = Program::start(&QUERY.replace("CALL", call));
        let document = json(&watch(&["--once", "--json", "--interval", "300ms", "--port", &program.1]));
        let think = part(&document, "server", "server_think");
        let rows = document["connections"].as_array().expect("rows");
        let row = rows.iter().find(|r| r["role"] == "server").expect("a server");
        // Unless the query fell into a later tick than the answer before it.
        assert!(think > 0.9 || !told, "{row:#}");
        assert_eq!(row["unexplained_why"].is_string(), think < 0.9, "{row:#}");
        if think < 0.9 {
            let text = watch(&["--once", "--interval", "300ms", "--port", &program.1]);
            let text = String::from_utf8(text.stdout).expect("text");
            assert!(text.contains("unexplained: bytes went both ways within one tick"), "{text}");
        }
    }
}
