//! `tcpwhy watch`: what its sums hold, and whose turn it is.

use crate::watch::{Program, json, watch};

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
