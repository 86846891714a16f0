//! Whatever ends a run, nothing of it is left: no namespace, device, route, sysctl, process or file; and what is
//! another's stays.

use crate::common::{BIN, Dir, alone, lab, skip};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Of the sleeping programs that are ours, so that they can be told from everybody else's.
const MARK: &str = "86399.71";

/// What must be the same before and after.
#[derive(Debug, PartialEq, Eq)]
struct State {
    links: String,
    routes: String,
    named: String,
    sysctls: String,
    /// Namespaces that some thread is in, but for those of other programs that come and go: none has our device.
    ours: BTreeSet<String>,
    processes: BTreeSet<String>,
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl State {
    fn now() -> State {
        let mut sysctls = String::new();
        for file in
            ["tcp_congestion_control", "tcp_no_metrics_save", "tcp_slow_start_after_idle", "ip_forward"]
        {
            sysctls += &fs::read_to_string(format!("/proc/sys/net/ipv4/{file}")).unwrap();
        }
        let (mut ours, mut processes) = (BTreeSet::new(), BTreeSet::new());
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let tun = fs::read_to_string(entry.path().join("net/dev")).unwrap_or_default().contains("why0");
            if tun {
                ours.insert(command.clone());
            }
            if command.contains(MARK) {
                processes.insert(command);
            }
        }
        State {
            links: output("ip", &["-o", "link"]),
            routes: output("ip", &["route", "show", "table", "all"]),
            named: output("ip", &["netns", "list"]),
            sysctls,
            ours,
            processes,
        }
    }
}

/// The state is what it was, at the latest after three seconds.
#[track_caller]
fn same(before: &State, after: &str) {
    let start = Instant::now();
    loop {
        let now = State::now();
        if now == *before {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(3), "after {after}: {now:?} instead of {before:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn start(arguments: &[&str]) -> Child {
    // With the signals of a terminal: a shell's job in the background is started to ignore ^C, and that is inherited.
    let mut command = Command::new("env");
    command
        .args(["--default-signal=HUP,INT,TERM", BIN, "lab"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Waits until something holds.
fn until(what: &str, holds: impl Fn(&State) -> bool) {
    let start = Instant::now();
    while !holds(&State::now()) {
        assert!(start.elapsed() < Duration::from_secs(30), "{what} never happened");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Removes the foreign namespace, whatever happens.
struct Foreign(&'static str);

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", self.0]).status();
    }
}

#[test]
fn whatever_ends_it() {
    let Some(_alone) = alone() else { return };
    let foreign = Foreign("tcpwhy-lab-1-0");
    // Of two that mount /run/netns at the same time, as the first ones on a machine do, one may fail.
    let add = || Command::new("ip").args(["netns", "add", foreign.0]).output().unwrap();
    let mut added = add();
    for _ in 0..5 {
        if !added.status.success() {
            std::thread::sleep(Duration::from_millis(200));
            added = add();
        }
    }
    if !added.status.success() {
        let said = String::from_utf8_lossy(&added.stderr).into_owned();
        return skip(&format!("ip netns add does not work here: {}", said.trim())).unwrap_or_default();
    }
    let dir = Dir::new();
    // A directory that looks like one of ours but was not made by us.
    let other = std::env::temp_dir().join("tcpwhy-lab-4194305-0");
    fs::create_dir_all(&other).unwrap();
    let before = State::now();
    assert!(before.named.contains(foreign.0));

    let good =
        dir.file("good.toml", "title = 'a'\n[link]\nrtt_ms = 1\n[workload]\nrequest = [1]\nresponse = [1]\n");
    let long = dir.file(
        "long.toml",
        "title = 'b'\n[link]\nrtt_ms = 10\nrate_mbit = 10\nqueue_bytes = 50000\n[workload]\nrequest = [900000000]\n",
    );
    // A server that starts others, as real ones do.
    let programs = dir.file(
        "programs.toml",
        &format!(
            "title = 'c'\n[programs]\nserver = 'sleep {MARK} & (setsid sleep {MARK} &) ; sleep {MARK}'\n\
             client = 'setsid sleep {MARK} & sleep {MARK}'\n"
        ),
    );
    let failing = dir.file(
        "failing.toml",
        &format!("title = 'd'\n[programs]\nserver = 'setsid sleep {MARK} & sleep {MARK}'\nclient = 'sleep 0.2; false'\n"),
    );

    assert_eq!(lab(&["run", &good]).code, 0);
    same(&before, "success");
    assert_eq!(lab(&["run", &failing]).code, 3);
    same(&before, "a failure");

    for (name, file, code) in
        [("-INT", &long, 130), ("-TERM", &long, 130), ("-HUP", &long, 130), ("-INT", &programs, 130)]
    {
        let mut child = start(&["run", &good, file]);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        // The first experiment's row, then the second runs.
        while !said.lines().any(|l| l.starts_with("good ")) {
            assert_ne!(out.read_line(&mut said).unwrap(), 0, "{said}");
        }
        std::thread::sleep(Duration::from_millis(700));
        signal(&child, name);
        let status = child.wait().unwrap();
        out.read_to_string(&mut said).unwrap();
        assert_eq!(status.code(), Some(code), "{said}");
        assert!(said.contains("not judged") && said.contains("skipped"), "what was measured so far: {said}");
        same(&before, name);
    }

    let mut child = start(&["run", &long]);
    // The calibration has its own namespaces: what lasts is the transfer.
    std::thread::sleep(Duration::from_secs(6));
    child.kill().unwrap();
    child.wait().unwrap();
    same(&before, "SIGKILL in a transfer");

    let mut child = start(&["run", &programs]);
    until("the programs run", |s| s.processes.iter().any(|p| p.starts_with("sleep")));
    std::thread::sleep(Duration::from_millis(300));
    child.kill().unwrap();
    child.wait().unwrap();
    same(&before, "SIGKILL while programs run");
    let orphan = |id: u32| {
        fs::read_dir(std::env::temp_dir())
            .unwrap()
            .flatten()
            .any(|e| e.file_name().to_string_lossy().starts_with(&format!("tcpwhy-lab-{id}-")))
    };
    assert!(orphan(child.id()), "a killed run cannot remove its directory");
    assert_eq!(lab(&["run", &failing]).code, 3);
    assert!(!orphan(child.id()), "the next run does");
    assert!(other.is_dir(), "and leaves what is not ours");
    let _ = fs::remove_dir(&other);

    let groups = "/sys/fs/cgroup/memory";
    if std::path::Path::new(groups).join("memory.kmem.tcp.limit_in_bytes").exists() {
        let group = |id: u32| {
            let start = format!("tcpwhy-lab-{id}-");
            fs::read_dir(groups)
                .unwrap()
                .flatten()
                .any(|e| e.file_name().to_string_lossy().starts_with(&start))
        };
        let mut child = start(&["run", &long, "--set", "server.tcp_memory=1000000"]);
        let begun = Instant::now();
        while !group(child.id()) && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(group(child.id()), "a killed run cannot remove its control group");
        assert_eq!(lab(&["run", &good]).code, 0);
        assert!(!group(child.id()), "the next run does");
        same(&before, "SIGKILL with a control group");
    }

    let mut child = start(&["link", "--delay", "5ms", "--server", "sleep 1", "--", "true"]);
    assert_eq!(child.wait().unwrap().code(), Some(3), "a server that never listens");
    let mut child = start(&["link", "--", "sh", "-c", &format!("setsid sleep {MARK} & sleep {MARK}")]);
    until("the command runs", |s| s.processes.iter().any(|p| p.starts_with("sleep")));
    child.kill().unwrap();
    child.wait().unwrap();
    same(&before, "SIGKILL of a command behind a link");
    assert!(State::now().named.contains(foreign.0), "the foreign namespace is there");
}

/// As `timeout` does: one to the program, one to its group. Captures are written for one request to end.
#[test]
fn two_signals_at_once_are_one_request() {
    let Some(_alone) = alone() else { return };
    let dir = Dir::new();
    let keep = dir.0.join("kept");
    let command = "echo ready; exec sleep 100";
    let mut child = Command::new(BIN)
        .args(["lab", "link", "--keep", keep.to_str().unwrap(), "--", "sh", "-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    signal(&child, "-TERM");
    std::thread::sleep(Duration::from_millis(20));
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    for end in ["client", "server"] {
        assert!(keep.join(format!("cap.{end}.pcap")).exists(), "{end}");
    }
}
