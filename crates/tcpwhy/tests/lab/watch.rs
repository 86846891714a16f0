//! `tcpwhy watch --sampled` beside the lab's runs: kernel TCP over an emulated link, looked at from the host
//! of either end. What it says is compared with the label of the run, which the lab works out from what
//! applications and kernels did.

use crate::common::{BIN, Dir, Ran, alone, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What was seen of a run.
struct Seen {
    /// The connection that was looked at longest, at client and server.
    ends: BTreeMap<String, Value>,
    label: Value,
}

/// Runs a scenario with a command in each of its network namespaces, which `--netns` is added to: what the
/// commands printed, and the run's label; NUMBER in an argument is another one for each. Again where the lab
/// says that the machine was too busy for exact times; none, after saying so, if it always is.
pub(crate) fn beside(scenario: &str, command: &[&str]) -> Option<(Vec<Vec<u8>>, Value)> {
    for _ in 0..6 {
        let dir = Dir::new();
        let (file, keep) = (dir.file("watched.toml", scenario), dir.0.join("kept"));
        let lab = ["lab", "run", &file, "--runs", "1", "--keep", keep.to_str().unwrap()];
        let mut lab =
            Command::new(BIN).args(lab).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut beside: BTreeMap<String, Child> = BTreeMap::new();
        let mut number = 0;
        while lab.try_wait().unwrap().is_none() {
            // The thread by which a namespace was found may be gone before it is entered: then by another one.
            beside.retain(|_, child| child.try_wait().unwrap().is_none());
            for (name, path) in namespaces(lab.id()) {
                beside.entry(name).or_insert_with(|| {
                    // With the signals of a terminal, whoever runs the test.
                    number += 1;
                    let command = command.iter().map(|a| a.replace("NUMBER", &number.to_string()));
                    let mut env = Command::new("env");
                    env.args(["--default-signal=INT", BIN]).args(command).args(["--netns", &path]);
                    env.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
                });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let ran = Ran::from(lab.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        let mut said = Vec::new();
        for child in beside.into_values() {
            let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            said.push(child.wait_with_output().unwrap().stdout);
        }
        let read =
            |name: &str| -> Value { serde_json::from_slice(&fs::read(keep.join(name)).unwrap()).unwrap() };
        if read("meta.json")["disturbed"] == false {
            return Some((said, read("label.json")));
        }
    }
    skip("the machine is too busy for exact runs of the lab")
}

/// What `watch` says of a run.
fn watched(scenario: &str) -> Option<Seen> {
    let (said, label) = beside(scenario, &["watch", "--jsonl", "--sampled"])?;
    let mut ends: BTreeMap<String, Value> = BTreeMap::new();
    for lines in said {
        for line in String::from_utf8(lines).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&row["type"], &row["source"]), (&"connection".into(), &"sampled".into()));
            tiles(&row);
            let old = ends.entry(row["role"].as_str().unwrap().into()).or_insert(Value::Null);
            if old["watched_ns"].as_i64() < row["watched_ns"].as_i64() {
                *old = row;
            }
        }
    }
    Some(Seen { ends, label })
}

/// Network namespaces of the threads of a process, without our own: name and file.
fn namespaces(pid: u32) -> BTreeMap<String, String> {
    let name = |path: &Path| fs::read_link(path).ok()?.to_str().map(str::to_owned);
    let own = name(Path::new("/proc/self/ns/net"));
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let files = tasks.map(|task| task.path().join("ns/net"));
    files
        .filter_map(|file| Some((name(&file)?, file.to_str()?.to_owned())))
        .filter(|(name, _)| Some(name) != own.as_ref())
        .collect()
}

/// All of the time that was looked at has a cause.
#[track_caller]
fn tiles(row: &Value) {
    let sum: i64 = row["total"].as_array().unwrap().iter().map(|p| p["time_ns"].as_i64().unwrap()).sum();
    assert!(sum <= row["watched_ns"].as_i64().unwrap(), "{row:#}");
}

impl Seen {
    /// Share of the time of causes at an end. The rest of the applications' time is left out: the client's
    /// pause behind its first bytes may look like a server that thinks, and where an end did nothing but
    /// think there is no other time.
    fn share(&self, end: &str, causes: &[&str]) -> f64 {
        let (mut named, mut all) = (0.0, 0.0);
        for part in self.ends[end]["total"].as_array().unwrap() {
            let time = part["time_ns"].as_f64().unwrap();
            let is_named = causes.iter().any(|c| part["cause"] == *c);
            named += if is_named { time } else { 0.0 };
            all += if is_named || part["class"] != "A" { time } else { 0.0 };
        }
        assert!(all > 0.0, "{:#}", self.ends[end]);
        named / all
    }

    /// The avoidable cause that took most of the time at an end.
    fn worst(&self, end: &str) -> &str {
        let parts = self.ends[end]["total"].as_array().unwrap();
        let worst = parts.iter().find(|p| p["class"] == "T");
        worst.map_or("none", |p| p["cause"].as_str().unwrap())
    }

    /// What `watch` calls worst at an end is what the run was made for, and nothing that its label
    /// contradicts: where the lab could not work out what most of the time was, that is empty.
    #[track_caller]
    fn agrees(&self, end: &str, made_for: &str) {
        let worst = self.worst(end);
        assert_eq!(worst, made_for, "{:#}", self.ends[end]["total"]);
        let check = &self.label["truth"]["captures"][end]["checks"][0];
        let dominant = check["dominant"].as_array().unwrap();
        assert!(dominant.is_empty() || dominant.iter().any(|c| c == worst), "{worst}: {check:#}");
    }
}

/// The pause gives `watch` the time to come, so that it sees how things are before anything is slow.
pub(crate) const UPLOAD: &str = "title = 'watched'\nsource = 'a test'\n[link]\nrtt_ms = 20\nrate_mbit = 100\n\
                      queue_bytes = 300000\n[workload]\nrequest = [1000, { pause_ms = 800 }, BYTES]\n";

#[test]
fn a_small_send_buffer() {
    let Some(_alone) = alone() else { return };
    let client = "[client]\nnodelay = true\nsndbuf = 16384\nwrite_chunk = 4096\n";
    let Some(seen) = watched(&format!("{}{client}", UPLOAD.replace("BYTES", "2500000"))) else { return };
    seen.agrees("client", "send_buffer");
    assert!(seen.share("client", &["send_buffer"]) > 0.7, "{:#}", seen.ends["client"]);
}

#[test]
fn a_small_receive_window() {
    let Some(_alone) = alone() else { return };
    let Some(seen) = watched(&format!("{}[server]\nrcvbuf = 32768\n", UPLOAD.replace("BYTES", "4000000")))
    else {
        return;
    };
    seen.agrees("client", "receive_window");
    let parts = seen.ends["client"]["total"].as_array().unwrap();
    let row = parts.iter().find(|p| p["class"] == "T").unwrap();
    assert_eq!(
        (&row["cause"], &row["at"], &row["side"]),
        (&"receive_window".into(), &"peer".into(), &"server".into())
    );
    let (counted, all) = (row["counted_ns"].as_f64().unwrap(), row["time_ns"].as_f64().unwrap());
    assert!(counted > 0.9 * all, "the kernel counts it: {row:#}");
}

#[test]
fn a_slow_reader_is_seen_from_both_ends() {
    let Some(_alone) = alone() else { return };
    let server = "[server]\nread_rate = 400000\nread_chunk = 16384\nrcvbuf = 65536\n";
    let Some(seen) = watched(&format!("{}{server}", UPLOAD.replace("BYTES", "1200000"))) else { return };
    for (end, at) in [("client", "peer"), ("server", "here")] {
        seen.agrees(end, "slow_reader");
        let parts = seen.ends[end]["total"].as_array().unwrap();
        assert!(parts.iter().any(|p| p["cause"] == "slow_reader" && p["at"] == at), "{parts:#?}");
    }
}

#[test]
fn losses() {
    let Some(_alone) = alone() else { return };
    let loss = "rtt_ms = 20\nup = { loss = 0.02, loss_of = 'data' }\n";
    let Some(seen) = watched(&UPLOAD.replace("BYTES", "2000000").replace("rtt_ms = 20\n", loss)) else {
        return;
    };
    let network = ["congestion_window", "fast_recovery", "retransmission_timeout", "tail_loss_probe"];
    assert!(seen.share("client", &network) > 0.6, "{:#}", seen.ends["client"]);
    assert!(seen.ends["client"]["kernel"]["retransmitted_packets"].as_u64() > Some(0));
    seen.agrees("client", "congestion_window");
}

#[test]
fn an_application_that_thinks() {
    let Some(_alone) = alone() else { return };
    let seen = watched(
        "title = 'watched'\nsource = 'a test'\n[link]\nrtt_ms = 10\n[client]\nnodelay = true\n[server]\nnodelay = true\n\
         [workload]\nrequests = 12\nrequest = [200]\nresponse = [500]\nthink_ms = 150\n",
    );
    let Some(seen) = seen else { return };
    assert!(seen.share("client", &["server_think"]) > 0.6, "{:#}", seen.ends["client"]);
    assert!(seen.share("server", &["server_think"]) > 0.6, "{:#}", seen.ends["server"]);
    for end in ["client", "server"] {
        let tcp: f64 =
            1.0 - seen.share(end, &["server_think", "path_delay", "handshake", "unexplained", "bandwidth"]);
        assert!(tcp < 0.05, "nothing is lost to TCP at the {end}: {:#}", seen.ends[end]);
    }
}

/// Buffers that programs set, and that connections wait for, are faults of the host at whose end they are.
#[test]
fn buffers_set_by_hand_are_faults() {
    let Some(_alone) = alone() else { return };
    for (buffer, bytes, id, cause, why) in [
        (
            "[client]\nnodelay = true\nsndbuf = 16384\nwrite_chunk = 4096\n",
            "3500000",
            "send-buffer",
            "send_buffer",
            "the program set SO_",
        ),
        ("[server]\nrcvbuf = 32768\n", "6000000", "receive-buffer", "receive_window", "the program set SO_"),
        (
            "[server]\nsysctl = { \"net.ipv4.tcp_rmem\" = \"4096 32768 32768\" }\n",
            "3000000",
            "receive-buffer",
            "receive_window",
            "net.ipv4.tcp_rmem allows no more",
        ),
    ] {
        let scenario = format!("{}{buffer}", UPLOAD.replace("BYTES", bytes));
        let Some((said, _)) = beside(&scenario, &["check", "--watch", "1m", "--json"]) else { return };
        // A namespace that was gone before it could be entered has nothing to say.
        let documents = said.iter().filter_map(|text| serde_json::from_slice::<Value>(text).ok());
        let found: Vec<Value> =
            documents.flat_map(|d| d["faults"].as_array().cloned().unwrap_or_default()).collect();
        assert!(found.iter().any(|f| f["id"] == id && f["cause"] == cause), "{id}: {found:#?}");
        let evidence = found.iter().find(|f| f["id"] == id).unwrap()["evidence"].as_str().unwrap();
        assert!(evidence.contains(why), "{evidence}");
    }
}
