//! Experiments and commands behind a link.

use crate::common::{BIN, Dir, alone, lab};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

const SMALL: &str = "title = 'small'\nsource = 'a test'\n[link]\nrtt_ms = 10\n[client]\nnodelay = true\n\
                     [server]\nnodelay = true\n[workload]\nrequests = 5\nrequest = [100]\nresponse = [200]\n";

#[test]
fn figures_and_verdicts() {
    let Some(_alone) = alone() else { return };
    let dir = Dir::new();
    let expect = "[expect]\nmeasure = 'exchange median'\npublished = { value = 10, text = 'said' }\n\
                  theory = { value = 'rtt + path' }\ntolerance = 0.1\nslack = 0.3\nruns = 2\n";
    let file = dir.file("small.toml", &format!("{SMALL}{expect}"));
    let keep = dir.0.join("kept");
    let ran = lab(&["run", &file, "--json", "--keep", keep.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let json = ran.json();
    let result = &json["results"][0];
    assert_eq!(result["verdict"], "as_published");
    assert_eq!((result["unit"].as_str(), result["runs"].as_array().unwrap().len()), (Some("ms"), 2));
    let measured = result["measured"].as_f64().unwrap();
    assert!((9.9..11.3).contains(&measured), "{measured}");
    let path = json["calibration"]["path_ms"].as_f64().unwrap();
    assert!(path > 0.0 && (result["theory"].as_f64().unwrap() - 10.0 - path).abs() < 1e-9);
    // What was kept can be explained.
    for side in ["client", "server"] {
        let capture = keep.join(format!("cap.{side}.pcap"));
        let explained = Command::new(BIN).arg(&capture).arg("--json").output().unwrap();
        let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
        assert_eq!(explained["connections"].as_array().unwrap().len(), 1);
    }
    let truth: serde_json::Value =
        serde_json::from_slice(&std::fs::read(keep.join("meta.json")).unwrap()).unwrap();
    assert_eq!(truth["exchanges"].as_array().unwrap().len(), 5);

    // Beside it stands the result, for `tcpwhy serve`.
    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(keep.join("lab-result.json")).unwrap()).unwrap();
    assert_eq!((&result["name"], &result["verdict"]), (&"small".into(), &"as_published".into()));
    assert_eq!(result["published"], serde_json::json!({ "value": 10.0, "shown": "10.0 ms" }));
    assert_eq!(result["measured"]["value"].as_f64(), Some(measured));
    assert_eq!(result["scaled"], false);
    assert_eq!(
        result["captures"],
        serde_json::json!([{ "end": "client", "file": "cap.client.pcap" }, { "end": "server", "file": "cap.server.pcap" }])
    );
    let label: serde_json::Value =
        serde_json::from_slice(&std::fs::read(keep.join("label.json")).unwrap()).unwrap();
    assert_eq!(result["label"], label["truth"]["verdict"]);

    // In words; at another delay only the formula counts.
    let text = lab(&["run", &file, "--set", "link.rtt_ms=20", "--runs", "1"]);
    text.fails(
        0,
        &["small  (small)", "a test", "RTT 20 ms", "10 ms: said", "verdict    as expected", "link late"],
    );
}

/// Each request waits for the delayed ACK's 40 ms in each run: that is no chance. A busy machine may make a
/// wait some milliseconds longer.
#[test]
fn what_all_runs_wait_for_is_no_pattern() {
    let Some(_alone) = alone() else { return };
    let dir = Dir::new();
    let held = SMALL.replace("nodelay = true", "nodelay = false").replace("[100]", "[100, 100]");
    let ran = lab(&["run", &dir.file("held.toml", &held), "--runs", "3", "--json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let result = &ran.json()["results"][0];
    assert_eq!(result["runs"].as_array().unwrap().len(), 3);
    let patterns = result["requests"].as_array().map_or(&[][..], Vec::as_slice);
    let whole = |p: &&serde_json::Value| p["more_ns"].as_i64().unwrap().abs() > 20_000_000;
    assert!(result["disturbed"] == true || !patterns.iter().any(|p| whole(&p)), "{}", result["requests"]);
}

#[test]
fn a_figure_that_does_not_fit() {
    let Some(_alone) = alone() else { return };
    let dir = Dir::new();
    let file = dir.file(
        "wrong.toml",
        &format!("{SMALL}[expect]\nmeasure = 'exchange count'\ntheory = {{ value = 7 }}\n"),
    );
    lab(&["run", &file]).fails(4, &["NOT as expected", "5, expected 7"]);
    let text = "published = { value = 7 }\nvalue = 5\ndeviation = 'because'\n";
    let file = dir.file("told.toml", &format!("{SMALL}[expect]\nmeasure = 'exchange count'\n{text}"));
    lab(&["run", &file]).fails(0, &["deviates, explained: because"]);
}

/// The figure of another experiment is compared with what the unchanged one has in theory, and cannot be wrong.
#[test]
fn what_was_set_is_no_failure_of_the_experiment() {
    let Some(_alone) = alone() else { return };
    let dir = Dir::new();
    let expect = "[expect]\nmeasure = 'exchange count'\ntheory = { value = '5 * 1' }\n";
    let file = dir.file("set.toml", &format!("{SMALL}{expect}"));
    lab(&["run", &file]).fails(0, &["as expected"]);
    let ran = lab(&["run", &file, "--set", "workload.requests=3"]);
    ran.fails(
        0,
        &[
            "not judged",
            "changed    workload.requests. 3 instead of 5 (theory of the unchanged one): 2 less.",
        ],
    );
}

#[test]
fn a_sweep_is_a_table_and_a_plot() {
    let Some(_alone) = alone() else { return };
    let dir = Dir::new();
    let more = "[sweep]\nkey = 'link.rtt_ms'\nvalues = [5, 10]\nplot = true\n[expect]\nmeasure = 'exchange median'\n\
                theory = { value = 'rtt' }\nslack = 1\n";
    let ran = lab(&["run", &dir.file("sweep.toml", &format!("{SMALL}{more}"))]);
    ran.fails(0, &["sweep link.rtt_ms=5 ", "sweep link.rtt_ms=10", "# measured", "2 as expected"]);
}

#[test]
fn commands_behind_a_link() {
    let Some(_alone) = alone() else { return };
    lab(&["link", "--", "sh", "-c", "exit 7"]).fails(7, &["link: RTT 0 ms"]);
    lab(&["link", "--", "/nowhere/program"]).fails(3, &["/nowhere/program", "No such file"]);
    lab(&["link", "--server", "true", "--", "true"]).fails(3, &["it ended, and nothing listens"]);
    let dir = Dir::new();
    let keep = dir.0.to_str().unwrap();
    let server = "python3 -c 'import socket; s = socket.create_server((\"\", 8000)); c = s.accept()[0]; \
                  c.recv(9); c.sendall(b\"hello\"); c.close()'";
    let client = "import socket, time; t = time.time(); c = socket.create_connection((\"10.77.0.2\", 8000)); \
                  c.sendall(b\"x\"); print(c.recv(9).decode(), int((time.time() - t) * 1000))";
    let link = ["link", "--delay", "20ms", "--rate", "100mbit", "--queue", "64kb", "--mtu", "1400"];
    let ran =
        lab(&[&link[..], &["--server", server, "--keep", keep, "--", "python3", "-c", client]].concat());
    if ran.err.contains("python3") {
        return crate::common::skip("no python3").unwrap_or_default();
    }
    ran.fails(0, &["hello ", "RTT 40 ms", "100 Mbit/s", "queue 64 KB", "MTU 1400"]);
    // Two round trips; an interpreter on a busy machine takes longer, but nothing makes it faster.
    let ms: u32 = ran.out.trim().trim_start_matches("hello ").parse().unwrap();
    assert!((80..1000).contains(&ms), "{ms} ms");
    assert!(dir.0.join("cap.client.pcap").is_file() && dir.0.join("cap.server.pcap").is_file());
}

/// The dice fall as the seed says, which the line names where there are any.
#[test]
fn losses_are_those_of_the_seed() {
    let Some(_alone) = alone() else { return };
    let program = "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                   for n in range(400): s.sendto(b\"x\", (\"10.77.0.2\", 9))\n\
                   import time; time.sleep(0.1)";
    let lost = |seed: &[&str]| {
        let link = ["link", "--set", "link.up.loss=0.1"];
        let ran = lab(&[&link[..], seed, &["--", "python3", "-c", program]].concat());
        let line = ran.err.lines().find(|line| line.contains("link: RTT")).unwrap_or_default().to_owned();
        let said = line.split("seed ").nth(1).and_then(|s| s.split(';').next()).unwrap_or("none").to_owned();
        let lost = line.split(" packets up (").nth(1).and_then(|s| s.split(' ').next()).map(str::to_owned);
        (said, lost)
    };
    if lab(&["link", "--", "python3", "-c", ""]).err.contains("No such file") {
        return crate::common::skip("no python3").unwrap_or_default();
    }
    let (one, again) = (lost(&[]), lost(&["--seed", "1"]));
    assert_eq!((one.0.as_str(), &one), ("1", &again));
    let others = ["2", "3", "4"].map(|seed| lost(&["--seed", seed]));
    assert!(others.iter().any(|other| other.1 != one.1) && others[0].0 == "2", "{one:?} {others:?}");
    assert_eq!(lost(&["--set", "seed=4"]), others[2]);
    assert!(!lab(&["link", "--seed", "7", "--", "true"]).err.contains("seed"));
}

/// A thread that wakes every millisecond holds up the kernel's grace periods where all processors are busy.
#[test]
fn who_waits_for_a_program_sleeps() {
    let Some(_alone) = alone() else { return };
    let mut child = Command::new(BIN)
        .args(["lab", "link", "--", "sh", "-c", "echo ready; exec sleep 3"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let woken = || {
        let threads = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
        let named = |t: &fs::DirEntry| {
            fs::read_to_string(t.path().join("comm")).is_ok_and(|name| name == "lab-program\n")
        };
        let of = threads.filter(named).map(|t| fs::read_to_string(t.path().join("status")).unwrap());
        let count = |text: String| {
            let line = text.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:")).unwrap();
            line.trim().parse::<u64>().unwrap()
        };
        of.map(count).collect::<Vec<u64>>()
    };
    let before = woken();
    std::thread::sleep(Duration::from_secs(1));
    let after = woken();
    assert_eq!((before.len(), after.len()), (1, 1));
    assert!(after[0] - before[0] < 150, "{} times in a second", after[0] - before[0]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
