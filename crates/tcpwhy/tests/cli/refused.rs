//! A writer that does not sleep, beside what it says of itself: until there was room it was refused (EAGAIN
//! or a short write), and from then until it wrote it was late.

use crate::common::Dir;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// So many refusals of each of two connections; the second one comes so late to each.
const REFUSALS: i64 = 20;
const LATE_NS: i64 = 60_000_000;

/// Says of each connection its port, refusals by EAGAIN, and nanoseconds: until it was told of room, and from
/// then until it wrote.
const WRITER: &str = "
import json, select, socket, sys, threading, time
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
listener.bind(('127.0.0.1', 0)); listener.listen()
def read(c):
    while c.recv(1 << 20):
        time.sleep(0.03)
for late, chunk in ((0, 65536), (0.06, 4096)):
    c = socket.create_connection(listener.getsockname())
    threading.Thread(target=read, args=[listener.accept()[0]], daemon=True).start()
    c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
    c.setblocking(False)
    said = dict(port=c.getsockname()[1], refused=0, room=0, late=0, times=0)
    while True:
        try:
            if c.send(b'x' * chunk) == chunk:
                continue
        except BlockingIOError:
            said['refused'] += 1
        if said['times'] == int(sys.argv[1]):
            break
        said['times'] += 1
        begins = time.monotonic_ns()
        select.select([], [c], [])
        room = time.monotonic_ns()
        if late:
            time.sleep(late)
        said['room'] += room - begins
        said['late'] += time.monotonic_ns() - room
    print(json.dumps(said), flush=True)
    c.close()
";

/// What the writer says of its two connections.
fn truth(said: &[u8]) -> Vec<Value> {
    let said = String::from_utf8_lossy(said).into_owned();
    let lines = said.lines().filter(|l| l.starts_with('{'));
    let all: Vec<Value> = lines.map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(all.len(), 2, "{said}");
    all
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value}"))
}

/// Within a fifth of what the writer measured, and a millisecond for each time: it reads the clock when it runs again.
#[track_caller]
fn is_about(is: i64, said: i64, what: &Value) {
    assert!((is - said).abs() <= said / 5 + REFUSALS * 1_000_000, "{is}, the writer says {said}: {what:#}");
}

#[test]
fn watch_tells_a_refused_writer_from_a_late_one() {
    let dir = Dir::new();
    let file = dir.0.join("lines");
    // Short connections until one is told of: then it looks.
    let script = format!(
        "env --default-signal=INT \"$0\" watch --jsonl --all-events --interval 200ms >\"$1\" & watch=$!\n\
         n=0; while ! [ -s \"$1\" ] && kill -0 $watch && [ $((n += 1)) -lt 200 ]; do \
         python3 -c \"import socket, time; l = socket.create_server(('127.0.0.1', 0)); \
         c = socket.create_connection(l.getsockname()); time.sleep(0.1)\"; done\n\
         [ $(ls -l /proc/$watch/fd | grep -c bpf_link) -gt 2 ] || {{ kill $watch; exit 75; }}\n\
         python3 -c \"{WRITER}\" {REFUSALS}; sleep 1; kill -INT $watch; wait $watch"
    );
    let Some(done) = crate::record::apart(&script, &file) else { return };
    if done.status.code() == Some(75) {
        crate::skips::skip("watch: refused writers", "no kernel events", env!("CARGO_TARGET_TMPDIR"));
        return;
    }
    let lines = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for (said, late) in truth(&done.stdout).iter().zip([false, true]) {
        let end = format!("127.0.0.1:{}", said["port"]);
        let line = lines.iter().find(|l| l["local"] == end.as_str());
        let events = &line.unwrap_or_else(|| panic!("{end}: {lines:#?}"))["events"];
        // The first one is cut short, the second one refused.
        assert_eq!(events["refused_writes"], said["refused"], "{events:#}");
        assert_eq!(number(&said["refused"]) > 0, late, "{said}");
        assert_eq!(number(&events["no_room"]["count"]), REFUSALS, "{events:#}");
        let (room, after) =
            (number(&events["no_room"]["time_ns"]), number(&events["late_writer"]["time_ns"]));
        is_about(room + after, number(&said["room"]) + number(&said["late"]), events);
        is_about(room, number(&said["room"]), events);
        if late {
            assert_eq!(number(&events["late_writer"]["count"]), REFUSALS, "{events:#}");
            assert!(after >= REFUSALS * LATE_NS, "{events:#}");
        }
    }
}

/// Nobody was blocked by the buffer: the first connection waits for its reader, the second one for its writer.
#[test]
fn explain_of_a_record_tells_them_apart() {
    let dir = Dir::new();
    let file = dir.0.join("refused.pcapng");
    let script = format!("\"$0\" record -o \"$1\" -- python3 -c \"{WRITER}\" {REFUSALS}");
    let Some(done) = crate::record::apart(&script, &file) else { return };
    if String::from_utf8_lossy(&done.stderr).contains("without ") {
        crate::skips::skip("record: refused writers", "no kernel events", env!("CARGO_TARGET_TMPDIR"));
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(["explain", "--json", "--exchanges", "all"]).arg(&file);
    let explained = command.output().unwrap();
    let document: Value = serde_json::from_slice(&explained.stdout).unwrap();
    let mut shares = Vec::new();
    for (said, late) in truth(&done.stdout).iter().zip([false, true]) {
        let end = format!("127.0.0.1:{}", said["port"]);
        let all = document["connections"].as_array().unwrap();
        let connection = all.iter().find(|c| c["client"] == end.as_str()).unwrap();
        let time = |causes: &[&str]| -> i64 {
            let exchanges = connection["exchanges"].as_array().unwrap().iter();
            let spans = exchanges.flat_map(|e| e["spans"].as_array().unwrap());
            let of = spans.filter(|s| causes.iter().any(|c| s["cause"] == *c));
            of.map(|s| number(&s["end_ns"]) - number(&s["start_ns"])).sum()
        };
        let (reader, writer) = (time(&["slow_reader", "receive_window"]), time(&["sender_pause"]));
        assert_eq!(time(&["send_buffer"]), 0, "{connection:#}");
        // While it is late the reader takes what the kernel still holds, which is half of that time. On a
        // busy machine the prompt one is woken late, too.
        if late {
            assert!(writer > REFUSALS * LATE_NS / 4, "{reader} {writer}: {connection:#}");
        }
        shares.push(writer as f64 / (reader + writer).max(1) as f64);
    }
    assert!(shares[0] < shares[1], "{shares:?}");
}
