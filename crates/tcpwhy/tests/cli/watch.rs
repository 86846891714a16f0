//! `tcpwhy watch` as any user: sockets of this host, which need no privileges.

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Requests in two writes each over loopback, until it is killed; says its port.
const STALLS: &str = "
import socket, sys, threading
def serve(listener):
    c = listener.accept()[0]
    while c.recv(204, socket.MSG_WAITALL):
        c.sendall(b'a' * 100)
listener = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=serve, args=[listener], daemon=True).start()
c = socket.create_connection(listener.getsockname())
print(listener.getsockname()[1], flush=True)
while True:
    c.send(b'h' * 4); c.send(b'b' * 200)
    c.recv(100, socket.MSG_WAITALL)
";

/// Connections that nobody accepts, more than fit; says its port.
const FULL: &str = "
import socket
listener = socket.create_server(('127.0.0.1', 0), backlog=1)
waiting = []
for _ in range(4):
    c = socket.socket(); c.setblocking(False); c.connect_ex(listener.getsockname()); waiting.append(c)
print(listener.getsockname()[1], flush=True)
input()
";

/// Four threads in connect() to a listener that is full and takes nobody, two that read what never comes;
/// says its port.
const STUCK: &str = "
import socket, threading
listener = socket.create_server(('127.0.0.1', 0), backlog=1)
to = listener.getsockname()
readers = [socket.create_connection(to) for _ in range(2)]
for c in readers:
    threading.Thread(target=c.recv, args=[1], daemon=True).start()
for _ in range(4):
    threading.Thread(target=socket.create_connection, args=[to], daemon=True).start()
print(to[1], flush=True)
input()
";

/// A server that turns to what has come a tenth of a second late; says its port.
const LATE: &str = "
import socket, threading, time
listener = socket.create_server(('127.0.0.1', 0))
to = listener.getsockname()
def ask():
    c = socket.create_connection(to)
    while True:
        c.sendall(b'x' * 100); c.recv(100, socket.MSG_WAITALL)
threading.Thread(target=ask, daemon=True).start()
s = listener.accept()[0]
print(to[1], flush=True)
while True:
    time.sleep(0.1)
    s.recv(100, socket.MSG_WAITALL); s.sendall(b'y' * 100)
";

/// A writer that hands over more than its reader takes, whose window is small; says its port.
const QUEUES: &str = "
import socket, threading, time
listener = socket.create_server(('127.0.0.1', 0))
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
c = socket.create_connection(listener.getsockname())
s = listener.accept()[0]
def read():
    while s.recv(65536):
        time.sleep(0.01)
threading.Thread(target=read, daemon=True).start()
print(listener.getsockname()[1], flush=True)
c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
while True:
    c.sendall(b'x' * 16384)
";

/// A program that is killed with the test.
pub(crate) struct Program(pub(crate) Child, pub(crate) String);

impl Program {
    pub(crate) fn start(text: &str) -> Program {
        let mut child = Command::new("python3")
            .args(["-c", text])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Program(child, line.trim().into())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With the signals of a terminal, whoever runs the test.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_tcpwhy"), "watch"]).args(arguments);
    command
}

pub(crate) fn watch(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

#[track_caller]
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_stall_is_named_with_its_program_and_what_helps() {
    let program = Program::start(STALLS);
    let done = watch(&["--once", "--json", "--sampled", "--port", &program.1]);
    assert_eq!(done.status.code(), Some(0));
    let document = json(&done);
    let row = &document["connections"][0];
    assert_eq!(row["role"], "client");
    assert_eq!(row["process"]["pid"], program.0.id());
    let nagle = |p: &&Value| ["nagle", "nagle_delayed_ack"].iter().any(|c| p["cause"] == *c);
    let time: i64 = row["interval"]
        .as_array()
        .unwrap()
        .iter()
        .filter(nagle)
        .map(|p| p["time_ns"].as_i64().unwrap())
        .sum();
    assert!(time * 2 > document["interval_ns"].as_i64().unwrap(), "{row:#}");
    let finding = &document["findings"][0];
    assert!(nagle(&finding), "{finding:#}");
    let fixes: Vec<&str> =
        finding["fixes"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert!(fixes.contains(&"nodelay") && fixes.contains(&"one_write"), "{fixes:?}");

    let text = watch(&["--once", "--port", &program.1, "--cause", "nagle_delayed_ack"]);
    let text = String::from_utf8(text.stdout).unwrap();
    let name = format!("({})", program.0.id());
    for words in ["Nagle held a small write", "fix: ", "not seen", &name] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

#[test]
fn selections_hide_the_rest() {
    let program = Program::start(STALLS);
    let pid = program.0.id().to_string();
    let count = |more: &[&str]| {
        let found = json(&watch(&[&["--once", "--json", "--interval", "500ms"], more].concat()));
        found["connections"].as_array().unwrap().len()
    };
    assert_eq!(count(&["--pid", &pid]), 2, "both ends are the same process's");
    assert_eq!(count(&["--pid", &pid, "--cause", "send_buffer"]), 0);
    assert_eq!(count(&["--pid", &pid, "--slower-than", "50ms"]), 1, "the client alone waits");
    assert_eq!(count(&["--pid", "1", "--port", &program.1]), 0);
}

#[test]
fn a_full_accept_queue_is_seen() {
    let program = Program::start(FULL);
    let document = json(&watch(&["--once", "--json", "--interval", "300ms", "--port", &program.1]));
    let listener = &document["listeners"][0];
    assert_eq!(
        (&listener["full"], &listener["queue"], &listener["backlog"]),
        (&true.into(), &2.into(), &1.into())
    );
    assert_eq!(listener["process"]["pid"], program.0.id());
    let rows = document["connections"].as_array().unwrap();
    let waits = |row: &&Value| row["role"] == "server" && row["interval"][0]["cause"] == "server_think";
    assert_eq!(rows.iter().filter(waits).count(), 2, "not accepted: {rows:#?}");
}

#[test]
fn ended_connections_are_lines_and_an_interrupt_ends_it() {
    let program = Program::start(STALLS);
    let arguments = ["--jsonl", "--interval", "200ms", "--port", &program.1];
    let watch = command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(3000));
    let port = program.1.clone();
    drop(program);
    std::thread::sleep(Duration::from_millis(500));
    Command::new("kill").args(["-INT", &watch.id().to_string()]).status().unwrap();
    let done = watch.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    let lines: Vec<Value> =
        String::from_utf8(done.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let client = lines.iter().find(|l| l["role"] == "client").unwrap();
    assert!(client["peer"].as_str().unwrap().ends_with(&port));
    assert!(client["watched_ns"].as_i64() > Some(300_000_000), "{client:#}");
    // The process is gone, too; its name was known before.
    assert!(client["process"]["name"].is_string(), "{client:#}");
}

/// `timeout` and service managers send no interrupt: what was seen is not lost to them.
#[test]
fn whatever_asks_it_to_end_gets_what_was_seen() {
    let program = Program::start(STALLS);
    for (signal, form, wanted) in [
        ("-TERM", "--jsonl", "\"role\":\"client\""),
        ("-TERM", "--json", "nagle_delayed_ack"),
        ("-HUP", "--json", "nagle_delayed_ack"),
    ] {
        // Longer than it is let run.
        let arguments = [form, "--interval", "1m", "--port", &program.1];
        let watch = command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(2000));
        Command::new("kill").args([signal, &watch.id().to_string()]).status().unwrap();
        let done = watch.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(130), "{signal} {form}");
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(said.contains(wanted), "{signal} {form}: {said}");
    }
}

#[test]
fn mistakes_are_told() {
    for (arguments, words) in [
        (&["--interval", "1ms"][..], "100ms to 1h"),
        (&["--json", "--jsonl"], "cannot be used with"),
        (&["--cause", "nagl"], "nagle"),
    ] {
        let done = watch(arguments);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
    let done = watch(&["--once", "--netns", "/nowhere"]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(3) && said.contains("/nowhere"), "{said}");
}

/// Kernel events measure each hold. Where they cannot be had, the answer says why, and goes on without.
#[test]
fn kernel_events_measure_what_is_held() {
    let program = Program::start(STALLS);
    let held = |d: &Value| {
        let events = &d["connections"][0]["events"]["nagle_delayed_ack"];
        (events["count"].as_i64().unwrap_or(0), events["time_ns"].as_i64().unwrap_or(0))
    };
    // Each hold is as long as the delayed ACK of Linux, 40 ms and a jiffy or two; on a machine that does
    // something else, too, a few are longer.
    let document =
        until(&["--once", "--json", "--all-events", "--interval", "2s", "--port", &program.1], |d| {
            let (count, time) = held(d);
            d["source"] != "kernel" || count >= 20 && (39..60).contains(&(time / count / 1_000_000))
        });
    if document["source"] != "kernel" {
        let unseen = document["unseen"].as_array().unwrap();
        let why = unseen.iter().find(|u| u["what"].as_str().unwrap().contains("small write")).unwrap();
        crate::skips::skip(
            "watch: kernel events",
            why["needs"].as_str().unwrap(),
            env!("CARGO_TARGET_TMPDIR"),
        );
        return;
    }
    let row = &document["connections"][0];
    let share =
        row["interval"].as_array().unwrap().iter().find(|p| p["cause"] == "nagle_delayed_ack").unwrap();
    assert_eq!((&share["source"], &share["counted_ns"]), (&"kernel".into(), &share["time_ns"]));
    assert!(
        share["time_ns"].as_i64().unwrap() * 10 > document["interval_ns"].as_i64().unwrap() * 9,
        "{row:#}"
    );
    assert_eq!(document["findings"][0]["source"], "kernel");
}

#[test]
fn without_capabilities_it_says_which_are_missing() {
    let program = Program::start(STALLS);
    let arguments = ["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_tcpwhy"), "watch"];
    let more = ["--once", "--json", "--interval", "500ms", "--port", &program.1];
    let done = Command::new("setpriv").args(arguments).args(more).output().unwrap();
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr).into_owned();
        crate::skips::skip("watch: without capabilities", &why, env!("CARGO_TARGET_TMPDIR"));
        return;
    }
    let document = json(&done);
    assert_eq!(document["source"], "sampled");
    let unseen = format!("{:#}", document["unseen"]);
    assert!(unseen.contains("CAP_BPF and CAP_PERFMON"), "{unseen}");
    let all: Vec<&str> =
        document["findings"].as_array().unwrap().iter().map(|f| f["cause"].as_str().unwrap()).collect();
    assert!(all.iter().any(|c| c.starts_with("nagle")), "{all:?}");
}

/// A reader that stops for half a second again and again, and a writer that sleeps meanwhile.
const SLEEPS: &str = "
import socket, threading, time
def serve(listener):
    c = listener.accept()[0]
    while c.recv(1 << 20):
        time.sleep(0.5)
listener = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=serve, args=[listener], daemon=True).start()
c = socket.create_connection(listener.getsockname())
while True:
    c.sendall(b'x' * (1 << 20))
";

#[test]
fn each_wait_is_a_line() {
    let dir = crate::common::Dir::new();
    let file = dir.0.join("lines");
    // A shell lets its background programs ignore interrupts.
    let script = format!(
        "python3 -c \"{SLEEPS}\" & sleeps=$!\n\
         env --default-signal=INT \"$0\" watch --events --slower-than 100ms >\"$1\" 2>\"$1.said\" & watch=$!\n\
         n=0; while ! grep -q blocked \"$1\" && kill -0 $watch && [ $((n += 1)) -lt 1200 ]; do sleep 0.05; done\n\
         kill -INT $watch; wait $watch; code=$?; kill $sleeps; cat \"$1.said\" >&2; exit $code"
    );
    let Some(done) = crate::record::apart(&script, &file) else { return };
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.code() == Some(3) {
        crate::skips::skip("watch --events", &said, env!("CARGO_TARGET_TMPDIR"));
        return;
    }
    assert_eq!(done.status.code(), Some(130), "{said}");
    let lines = std::fs::read_to_string(&file).unwrap();
    // Timers fire beside it: a probe asks for what the reader has not acknowledged.
    let line = lines.lines().find(|l| l.contains("blocked")).unwrap();
    // 12:00:03.217 python3(812) blocked 491 ms on ...
    assert!(line.get(12..21) == Some(" python3(") && line.contains(") blocked "), "{line}");
    let why = "on a full send buffer to 127.0.0.1:";
    assert!(
        line.contains(why) && line.contains("; it held what the receive window of the other end"),
        "{line}"
    );
}

/// Where nothing waits, the programs that run for each write and read are detached; where something does,
/// they measure it again.
#[test]
fn kernel_events_rest_where_nothing_waits() {
    let dir = crate::common::Dir::new();
    let file = dir.0.join("lines");
    let script = format!(
        "links() {{ ls -l /proc/$watch/fd | grep -c bpf_link; }}\n\
         until_links() {{ n=0; while [ $(links) $1 2 ] && kill -0 $watch && [ $((n += 1)) -lt 1200 ]; do sleep 0.05; done; }}\n\
         env --default-signal=INT \"$0\" watch --jsonl --all-events --interval 200ms >\"$1\" & watch=$!\n\
         n=0; while [ ! -e /proc/$watch/fd/4 ] && [ $((n += 1)) -lt 200 ]; do sleep 0.05; done; sleep 1\n\
         [ $(links) -gt 2 ] || {{ echo no kernel events >&2; kill $watch; exit 75; }}\n\
         until_links -ge; echo rests $(links)\n\
         python3 -c \"{STALLS}\" >/dev/null & stalls=$!\n\
         until_links -lt; echo listens $(links); sleep 2\n\
         kill $stalls; sleep 1; kill -INT $watch; wait $watch"
    );
    let Some(done) = crate::record::apart(&script, &file) else { return };
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.code() == Some(75) {
        crate::skips::skip("watch: events rest", "no kernel events", env!("CARGO_TARGET_TMPDIR"));
        return;
    }
    assert!(said.contains("rests 1") && said.contains("listens 7"), "{said}");
    let lines = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let client = lines.iter().find(|l| l["role"] == "client").unwrap();
    let held = &client["events"]["nagle_delayed_ack"];
    let (count, longest) = (held["count"].as_i64().unwrap(), held["longest_ns"].as_i64().unwrap());
    assert!(count > 0 && longest < 4_000_000_000, "{client:#}");
    // What samples saw before it was measured is part of it.
    let time = |of: &str| {
        let all = client[of].as_array().unwrap();
        let nagle = all.iter().filter(|p| p["cause"].as_str().unwrap().starts_with("nagle"));
        nagle.map(|p| p["time_ns"].as_i64().unwrap()).sum::<i64>()
    };
    assert!(time("total") >= held["time_ns"].as_i64().unwrap(), "{client:#}");
}

/// The answer of one interval, asked for again until it is as wanted: programs may need a while to come there.
fn until(arguments: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    let mut document = Value::Null;
    for _ in 0..60 {
        document = json(&watch(arguments));
        if wanted(&document) {
            return document;
        }
    }
    panic!("not what was wanted: {document:#}");
}

#[test]
fn threads_inside_a_call_are_counted_by_peer() {
    let program = Program::start(STUCK);
    let arguments = ["--once", "--json", "--interval", "300ms", "--sampled", "--port", &program.1];
    let of = |document: &Value, call: &str| {
        let all = document["threads"].as_array().unwrap();
        all.iter().find(|t| t["call"] == call).cloned().unwrap_or_default()
    };
    let document = until(&arguments, |d| {
        let hidden = format!("{}", d["unseen"]).contains("in which calls");
        hidden || (of(d, "connect")["threads"] == 4 && of(d, "recv")["threads"] == 2)
    });
    if document["threads"].as_array().is_none_or(Vec::is_empty) {
        crate::skips::skip(
            "watch: threads",
            "/proc/PID/task/TID/syscall is hidden",
            env!("CARGO_TARGET_TMPDIR"),
        );
        return;
    }
    let connects = of(&document, "connect");
    assert_eq!(connects["process"]["pid"], program.0.id());
    assert_eq!(connects["peer"], format!("127.0.0.1:{}", program.1));
    // The main thread, too.
    assert_eq!(connects["of"], 7, "{connects:#}");
    let text = watch(&["--once", "--interval", "500ms", "--port", &program.1]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("4 of 7 threads of python3("), "{text}");
}

#[test]
fn a_reader_that_comes_late_is_told_from_one_that_works() {
    let program = Program::start(LATE);
    for more in ["--sampled", "--all-events"] {
        let arguments = ["--once", "--json", "--interval", "1s", "--port", &program.1, more];
        let share = |document: &Value| {
            let rows = document["connections"].as_array().unwrap();
            let server = rows.iter().find(|r| r["role"] == "server")?;
            server["interval"].as_array()?.iter().find(|p| p["cause"] == "reader_late").cloned()
        };
        let document = until(&arguments, |d| {
            let time = share(d).and_then(|p| p["time_ns"].as_i64()).unwrap_or(0);
            time * 2 > d["interval_ns"].as_i64().unwrap()
        });
        let share = share(&document).unwrap();
        assert_eq!((&share["class"], &share["at"]), (&"A".into(), &"here".into()));
        assert!(document["findings"].as_array().unwrap().is_empty(), "nothing is lost to TCP: {document:#}");
    }
}

#[test]
fn control_groups_choose() {
    let program = Program::start(STALLS);
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", program.0.id())).unwrap();
    let own = groups.lines().filter_map(|l| l.splitn(3, ':').nth(2)).max_by_key(|path| path.len()).unwrap();
    let count = |group: &str| {
        let arguments = ["--once", "--json", "--sampled", "--interval", "200ms", "--port", &program.1];
        let found = json(&watch(&[&arguments[..], &["--cgroup", group]].concat()));
        found["connections"].as_array().unwrap().len()
    };
    assert_eq!((count(own), count("/no/such/group")), (2, 0), "{own}");
    let none = watch(&["--once", "--json", "--sampled", "--interval", "200ms", "--cgroup", "/no/such/group"]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(said.contains("no process is in a control group /no/such/group now"), "{said}");
}

#[test]
fn writes_behind_unsent_bytes_are_a_queue() {
    // The reader answers, as to requests that stand behind the rest.
    let program = Program::start(&QUEUES.replace("time.sleep(0.01)", "time.sleep(0.01); s.sendall(b'.')"));
    let queue =
        |d: &Value| d["findings"].as_array().unwrap().iter().find(|f| f["cause"] == "send_queue").cloned();
    let arguments = ["--once", "--json", "--all-events", "--interval", "3s", "--port", &program.1];
    let document = until(&arguments, |d| d["source"] != "kernel" || queue(d).is_some());
    let Some(finding) = queue(&document) else {
        crate::skips::skip("watch: send_queue", "it takes kernel events", env!("CARGO_TARGET_TMPDIR"));
        return;
    };
    assert_eq!((&finding["class"], &finding["source"]), (&"T".into(), &"kernel".into()));
    assert_eq!(finding["fixes"][0]["id"], "notsent_lowat", "{finding:#}");
    let rows = document["connections"].as_array().unwrap();
    let client = rows.iter().find(|r| r["role"] == "client").unwrap();
    assert!(client["events"]["queued_writes"]["count"].as_i64() > Some(0), "{client:#}");
    let causes = client["interval"].as_array().unwrap();
    assert!(causes.iter().all(|p| p["cause"] != "send_queue"), "it is no time of its own: {client:#}");
}

/// A file that is sent has a queue of its own, and nobody waits behind that.
#[test]
fn writes_of_one_message_wait_for_nobody() {
    let program = Program::start(QUEUES);
    let queued = |d: &Value| {
        let rows = d["connections"].as_array().unwrap();
        rows.iter().any(|r| r["events"]["queued_writes"]["time_ns"].as_i64() > Some(500_000_000))
    };
    let arguments = ["--once", "--json", "--all-events", "--interval", "3s", "--port", &program.1];
    let document = until(&arguments, |d| d["source"] != "kernel" || queued(d));
    if !queued(&document) {
        crate::skips::skip("watch: no send_queue", "it takes kernel events", env!("CARGO_TARGET_TMPDIR"));
        return;
    }
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.iter().all(|f| f["cause"] != "send_queue"), "{document:#}");
}
