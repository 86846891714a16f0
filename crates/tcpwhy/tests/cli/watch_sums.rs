//! `tcpwhy watch`: what its sums hold, and whose turn it is.

use crate::watch::{Program, json, watch};
use serde_json::Value;

/// Requests in two writes each over loopback, a connection for each ten; says its port.
const SHORT: &str = "
import socket, threading
def serve(c):
    while c.recv(204, socket.MSG_WAITALL):
        c.sendall(b'a' * 100)
def accept(listener):
    while True:
        threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()
listener = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=accept, args=[listener], daemon=True).start()
print(listener.getsockname()[1], flush=True)
while True:
    with socket.create_connection(listener.getsockname()) as c:
        # Past the quick ACKs of its beginning.
        for _ in range(20):
            c.sendall(b'a' * 204); c.recv(100, socket.MSG_WAITALL)
        for _ in range(10):
            c.send(b'h' * 4); c.send(b'b' * 200)
            c.recv(100, socket.MSG_WAITALL)
";

/// A client that uploads in pieces while the server sits in recv(), a server that greets late, and one that
/// works for as long as its client waits, which asks again at once; says their ports.
const TURNS: &str = "
import socket, threading, time
def serve(work):
    listener = socket.create_server(('127.0.0.1', 0))
    threading.Thread(target=lambda: work(listener.accept()[0]), daemon=True).start()
    return socket.create_connection(listener.getsockname()), listener.getsockname()[1]
def take(c):
    while c.recv(65536): pass
def greet(c):
    time.sleep(60); c.sendall(b'220 ready')
def answer(c):
    while c.recv(100):
        time.sleep(0.2); c.sendall(b'a' * 100)
def upload(c):
    while True:
        c.sendall(b'x' * 10000); time.sleep(0.4)
def ask(c):
    while True:
        c.sendall(b'r' * 100); c.recv(100)
ports = []
for server, client in ((take, upload), (greet, lambda c: c.recv(9)), (answer, ask)):
    c, port = serve(server)
    threading.Thread(target=client, args=[c], daemon=True).start()
    ports.append(str(port))
print(*ports, flush=True)
input()
";

/// At both ends it is the same end's turn.
#[test]
fn a_pause_is_of_the_end_that_the_other_waits_for() {
    let program = Program::start(TURNS);
    let turns: [&[&str]; 3] = [&["sender_pause", "client_think"], &["server_think"], &["server_think"]];
    for ((port, causes), end) in program.1.split(' ').zip(turns).zip(["client", "server", "server"]) {
        let document = json(&watch(&["--once", "--json", "--sampled", "--interval", "2s", "--port", port]));
        let rows = document["connections"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "{document:#}");
        for row in rows {
            let parts = row["interval"].as_array().unwrap();
            let time = |p: &Value| p["time_ns"].as_f64().unwrap();
            let all: f64 = parts.iter().map(time).sum();
            let its = |p: &&Value| causes.iter().any(|c| p["cause"] == *c) && p["side"] == end;
            let those: f64 = parts.iter().filter(its).map(time).sum();
            assert!(those > 0.75 * all, "{causes:?} at {end}: {row:#}");
        }
    }
}

/// Of a connection for a few requests each, those that are over by the end of the interval count as well.
#[test]
fn connections_that_ended_are_counted() {
    let program = Program::start(SHORT);
    let done = watch(&["--once", "--json", "--sampled", "--interval", "3s", "--port", &program.1]);
    let document = json(&done);
    assert!(document["connections_ended"].as_u64() >= Some(4), "{document:#}");
    let finding = document["findings"].as_array().unwrap().iter().find(|f| f["cause"] == "nagle_delayed_ack");
    let finding = finding.unwrap_or_else(|| panic!("{document:#}"));
    let of = |name: &str| finding[name].as_f64().unwrap();
    assert!(of("connections") > 2.0 && of("lost_ns") > 0.5 * of("of_ns"), "{finding:#}");
    // Of which one connection alone saw less than half a second.
    assert!(of("lost_ns") > 8e8, "{finding:#}");
    assert!(document["connections"].as_array().unwrap().iter().any(|c| c["ended"] == true));
    let text = watch(&["--once", "--interval", "3s", "--port", &program.1]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains(" that ended, in the last ") && text.contains("  ended\n"), "{text}");
}
