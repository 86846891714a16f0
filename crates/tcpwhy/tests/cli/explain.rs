//! What `tcpwhy explain` does with captures that are right.

use crate::common::{ACK, Client, Dir, FIN, Pcap, Server, program, tcpwhy, tcpwhy_with};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

fn conversation(dir: &Dir) -> String {
    dir.file("talk.pcap", &Pcap::new().conversation(0, 5).bytes)
}

#[test]
fn a_slow_server_is_named_and_tcp_acquitted() {
    let dir = Dir::new();
    let ran = tcpwhy(&[&conversation(&dir)]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(
        ran.out.replace('\n', " ").starts_with(
            "5 requests to 10.0.0.2:80 in 310 ms (median 60.0 ms, p95 60.0 ms). Nothing is wrong with TCP here: 81 % \
             (250 ms) the server application worked. Idle between requests: 170 ms."
        ),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("The server application worked"), "{}", ran.out);
    assert!(!ran.out.contains('\x1b'), "no colours outside a terminal");
}

#[test]
fn json_is_the_same_from_a_pipe() {
    let dir = Dir::new();
    let path = conversation(&dir);
    let mut file = tcpwhy(&["explain", "--json", &path]).json();
    let mut pipe = tcpwhy_with(&["-", "--json"], &std::fs::read(&path).unwrap()).json();
    assert_eq!(file["capture"]["files"][0], path);
    assert_eq!(pipe["capture"]["files"][0], "standard input");
    for json in [&mut file, &mut pipe] {
        json["capture"]["files"] = Value::Null;
    }
    assert_eq!(file, pipe);
    assert_eq!(file["tool"], "tcpwhy");
    assert_eq!(file["connections"][0]["tshark_stream"], 0);
    assert_eq!(file["capture"]["duration_ns"], 480_050_000);
}

#[test]
fn lines_are_whole_objects() {
    let dir = Dir::new();
    let ran = tcpwhy(&["--jsonl", &conversation(&dir)]);
    let kinds: Vec<Value> =
        ran.out.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["type"].clone()).collect();
    assert_eq!(kinds.first(), Some(&"connection".into()));
    assert_eq!(kinds.last(), Some(&"capture".into()));
}

/// One that closes at once, and another whose packets go on for five minutes.
fn one_ends_early() -> Vec<u8> {
    let mut pcap = Pcap::new();
    pcap.conversation(0, 1);
    let (a, b) = (101, 201);
    pcap.tcp(100_000, Client, FIN | ACK, a, b, 0);
    pcap.tcp(110_000, Server, FIN | ACK, b, a + 1, 0);
    pcap.tcp(110_050, Client, ACK, a + 1, b + 1, 0);
    pcap.client_port = 40_001;
    pcap.conversation(300_000_000, 2);
    pcap.bytes
}

#[test]
fn a_line_comes_before_the_input_ends() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["--jsonl", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&one_ends_early()).unwrap();
    input.flush().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    // The input is still open: this would wait for ever if lines came at the end.
    let first = next();
    assert_eq!(
        (&first["type"], &first["id"], &first["closed"]),
        (&"connection".into(), &1.into(), &"fin".into())
    );
    assert_eq!(first["client"], "10.0.0.1:40000");
    drop(input);
    let second = next();
    assert_eq!((&second["id"], &second["closed"]), (&2.into(), &"open".into()));
    let rest: Vec<Value> = std::iter::repeat_with(next).take_while(|l| l["type"] == "finding").collect();
    assert!(!rest.is_empty());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn lines_keep_the_detail_of_each_connection() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    pcap.conversation(0, 20);
    pcap.client_port = 40_001;
    pcap.conversation(1_000, 3);
    let path = dir.file("two.pcap", &pcap.bytes);
    let kept = |args: &[&str]| -> Vec<(usize, u64)> {
        let ran = tcpwhy(&[&["--jsonl", &path][..], args].concat());
        let lines = ran.out.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
        let connections = lines.filter(|l| l["type"] == "connection");
        let count = |l: &Value| l["exchanges_omitted"]["count"].as_u64().unwrap_or(0);
        connections.map(|l| (l["exchanges"].as_array().unwrap().len(), count(&l))).collect()
    };
    assert_eq!(kept(&[]), [(10, 10), (3, 0)]);
    assert_eq!(kept(&["--exchanges", "worst=2"]), [(2, 18), (2, 1)]);
    assert_eq!(kept(&["--exchanges", "all"]), [(20, 0), (3, 0)]);
    assert_eq!(kept(&["--exchanges", "none"]), [(0, 20), (0, 3)]);
    assert_eq!(kept(&["--connection", "2"]), [(3, 0)]);
}

#[test]
fn lines_say_the_same_as_the_document() {
    let dir = Dir::new();
    let path = dir.file("two.pcap", &one_ends_early());
    let mut document = tcpwhy(&["--json", &path]).json();
    // Those exchanges have been written and forgotten.
    document["summary"]["slowest"] = Value::Array(Vec::new());
    let ran = tcpwhy(&["--jsonl", &path]);
    let mut connections = Vec::new();
    let mut findings = Vec::new();
    for line in ran.out.lines() {
        let mut object = serde_json::from_str::<Value>(line).unwrap();
        let kind = object.as_object_mut().unwrap().remove("type").unwrap();
        match kind.as_str().unwrap() {
            "connection" => connections.push(object),
            "finding" => findings.push(object),
            kind => assert_eq!(object, document[kind]),
        }
    }
    assert_eq!(Value::Array(connections), document["connections"]);
    // The model needs the connections of the examples, which have been written and forgotten.
    assert!(findings.iter().all(|f| f.get("model").is_none()));
    let mut told = document["findings"].clone();
    for finding in told.as_array_mut().unwrap().iter_mut().chain(&mut findings) {
        finding.as_object_mut().unwrap().remove("model");
        for fix in finding["fixes"].as_array_mut().unwrap() {
            let fix = fix.as_object_mut().unwrap();
            fix.retain(|key, _| !["saves_ns", "predicted_ns", "basis"].contains(&key.as_str()));
        }
    }
    assert_eq!(Value::Array(findings), told);
}

#[test]
fn output_goes_to_a_file_whole_or_not_at_all() {
    let dir = Dir::new();
    let (path, out) = (conversation(&dir), dir.0.join("out.json"));
    let ran = tcpwhy(&["--json", "-o", out.to_str().unwrap(), &path]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let written = std::fs::read_to_string(&out).unwrap();
    assert_eq!(written, tcpwhy(&["--json", &path]).out);
    // A question that cannot be answered leaves the old file alone and nothing beside it.
    tcpwhy(&["-o", out.to_str().unwrap(), &path, "--connection", "1", "--exchange", "99"])
        .fails(2, &["--exchange 99", "5 exchanges"]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), written);
    assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 2);
    tcpwhy(&["-o", "/nowhere/out", &path])
        .fails(3, &["cannot write /nowhere/out", "make its folder first (mkdir -p)"]);
    tcpwhy(&["-o", dir.0.to_str().unwrap(), &path]).fails(3, &["directory"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said() {
    let dir = Dir::new();
    tcpwhy(&["--json", "-o", "/dev/full", &conversation(&dir)])
        .fails(3, &["cannot write /dev/full", "No space left", "free some room there"]);
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let dir = Dir::new();
    for form in ["--json", "--jsonl"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .args([form, &conversation(&dir)])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), String::from_utf8(done.stderr).unwrap().as_str()), (Some(0), ""));
    }
}

#[test]
fn conditions_end_with_code_4() {
    let dir = Dir::new();
    let path = conversation(&dir);
    let ran = tcpwhy(&[&path, "--json", "--fail-if", "server_think>50%", "--fail-if", "tcp>5%"]);
    ran.fails(4, &["server_think>50% holds, so this fails"]);
    assert_eq!(ran.json()["capture"]["connections"], 1);
    assert_eq!(tcpwhy(&[&path, "--fail-if", "tcp>5%"]).code, 0);
    assert_eq!(tcpwhy(&[&path, "--fail-if", "application>10ms"]).code, 4);
    assert_eq!(tcpwhy(&[&path, "--fail-if", "gremlins>5%"]).code, 2);
}

#[test]
fn one_exchange_is_a_time_line_of_its_packets() {
    let dir = Dir::new();
    let path = conversation(&dir);
    let ran = tcpwhy(&[&path, "--connection", "1", "--exchange", "2"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("exchange 2  60.0 ms"), "{}", ran.out);
    assert!(ran.out.contains("server_think"), "{}", ran.out);
    assert!(ran.out.contains("client >  P.      seq 101 ack 201 len 100 win 1048576"), "{}", ran.out);
    assert!(ran.out.contains("< server  P.      seq 201 ack 201 len 200"), "{}", ran.out);
    let piped =
        tcpwhy_with(&["-", "--connection", "40000", "--exchange", "2"], &std::fs::read(&path).unwrap()).out;
    assert!(piped.contains("client >  P."), "{piped}");
}

#[test]
fn connections_are_named_in_several_ways() {
    let dir = Dir::new();
    let path = conversation(&dir);
    for which in ["1", "40000", ":80", "10.0.0.1:40000", "10.0.0.2:80>10.0.0.1:40000"] {
        let ran = tcpwhy(&[&path, "--connection", which]);
        assert!(ran.out.starts_with("connection 1  10.0.0.1:40000 > 10.0.0.2:80"), "{which}: {}", ran.out);
    }
    tcpwhy(&[&path, "--connection", "7"]).fails(2, &["no such connection"]);
    tcpwhy(&[&path, "--connection", "the slow one"]).fails(2, &["write a number"]);
}

#[test]
fn packets_are_chosen_by_time_and_filter() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    pcap.conversation(0, 5);
    pcap.client_port = 50_000;
    let path = dir.file("two.pcap", &pcap.conversation(600_000, 2).bytes);
    let connections = |more: &[&str]| {
        let json = tcpwhy(&[&["--json", &path], more].concat()).json();
        (json["capture"]["connections"].as_u64().unwrap(), json["connections"][0]["tshark_stream"].clone())
    };
    assert_eq!(connections(&[]), (2, 0.into()));
    assert_eq!(connections(&["--from", "0.59"]), (1, Value::Null));
    assert_eq!(connections(&["--to", "+590ms"]), (1, Value::Null));
    assert_eq!(connections(&["--from", "2023-11-14T22:13:20.59Z"]), (1, Value::Null));
    assert_eq!(connections(&["--filter", "port 50000"]), (1, Value::Null));
    assert_eq!(connections(&["--filter", "host 10.9.9.9"]).0, 0);
    // All of the file was read: the number is that of the whole.
    assert_eq!(connections(&["--connection", "2"]), (1, 1.into()));
    assert_eq!(tcpwhy(&[&path, "--filter", "port"]).code, 2);
}

#[test]
fn a_stretch_of_time_is_a_zoom_of_the_whole() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/loopback_write_write_read.pcap");
    let explain = |more: &[&str]| tcpwhy(&[&["--json", "--exchanges", "all", path], more].concat()).json();
    let whole = explain(&[]);
    let c = &whole["connections"][0];
    let rtt = c["path"]["rtt_ns"].as_i64().unwrap();
    let number = |v: &Value| v.as_i64().unwrap();
    let cuts: Vec<i64> = (0..=5).map(|i| number(&whole["capture"]["duration_ns"]) * i / 5).collect();
    let (mut numbers, mut sums) = (Vec::new(), std::collections::BTreeMap::new());
    let add = |sums: &mut std::collections::BTreeMap<String, i64>, c: &Value| {
        for (cause, ns) in ["budget", "gap_budget"].iter().flat_map(|k| c[*k].as_object().unwrap()) {
            *sums.entry(cause.clone()).or_default() += number(ns);
        }
    };
    for pair in cuts.windows(2) {
        let at = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let part = explain(&["--from", &at(pair[0]), "--to", &at(pair[1])]);
        assert_eq!(part["capture"]["warnings"][0]["code"], "window");
        for c in part["connections"].as_array().unwrap() {
            add(&mut sums, c);
            assert_eq!(c["path"]["rtt_ns"], rtt);
            for x in c["exchanges"].as_array().unwrap() {
                numbers.push(number(&x["id"]));
                let spans = x["spans"].as_array().unwrap().iter().filter(|s| s["cause"] == "path_delay");
                let way: i64 = spans.map(|s| number(&s["end_ns"]) - number(&s["start_ns"])).sum();
                assert!(way <= rtt * number(&x["turns"]), "exchange {}: {way} of {rtt}", x["id"]);
            }
        }
    }
    let mut all = std::collections::BTreeMap::new();
    add(&mut all, c);
    assert_eq!(sums, all);
    numbers.dedup();
    assert_eq!(numbers, (1..=c["exchanges"].as_array().unwrap().len() as i64).collect::<Vec<_>>());
    let text = tcpwhy(&[path, "--from", "0.1", "--to", "0.2"]).out.replace("\n        ", " ");
    assert!(text.contains("This is about 100 ms to 200 ms of "), "{text}");
    let beyond = tcpwhy(&[path, "--from", "99"]).out.replace("\n        ", " ");
    assert!(
        beyond.contains("The capture ends before the stretch that was asked for, with a packet at "),
        "{beyond}"
    );
    assert!(!beyond.contains("This is about"), "{beyond}");
    let rows = tcpwhy(&[path, "--slower-than", "1us", "--absolute-times"]).out;
    assert!(
        rows.lines().next().is_some_and(|l| l.contains(" took longer than 1.00 µs, the slowest first:")),
        "{rows}"
    );
    assert!(rows.contains(" (UTC)") && !rows.contains("000Z"), "{rows}");
}

#[test]
fn short_exchanges_are_summed_not_lost() {
    let dir = Dir::new();
    let path = conversation(&dir);
    let all = tcpwhy(&["--json", &path]).json();
    let some = tcpwhy(&["--json", "--slower-than", "70ms", &path]).json();
    let (a, s) = (&all["connections"][0], &some["connections"][0]);
    assert_eq!(s["exchanges"].as_array().unwrap().len(), 0);
    assert_eq!(s["exchanges_omitted"]["count"], 5);
    assert_eq!(s["exchanges_omitted"]["request_bytes"], 500);
    assert_eq!(s["budget"], a["budget"]);
}

#[test]
fn the_captures_of_a_folder_are_explained_together() {
    let dir = Dir::new();
    let cut = Pcap::new().conversation(0, 2).bytes.len();
    let whole = Pcap::new().conversation(0, 4).bytes.clone();
    std::fs::create_dir(dir.0.join("deeper")).unwrap();
    let first = dir.file("deeper/z_first.pcap", &whole[..cut]);
    let second = dir.file("a_second.pcap", &[&whole[..24], &whole[cut..]].concat());
    dir.file("notes.txt", b"no capture");
    let folder = dir.0.to_str().unwrap();
    let json = tcpwhy(&["--json", folder]).json();
    assert_eq!(json["capture"]["files"], serde_json::json!([first, second]));
    assert_eq!(json["capture"]["connections"], 1, "rotated files hold one connection");
    assert_eq!(tcpwhy(&["--json", &second, &first]).json(), json, "as if they were named");
    tcpwhy(&["--json", "-o", &first, folder]).fails(2, &["is an input and would be overwritten"]);
    let beside = dir.0.join("answer.json");
    let beside = beside.to_str().unwrap();
    for _ in 0..2 {
        assert_eq!(
            tcpwhy(&["--json", "-o", beside, folder]).code,
            0,
            "an answer in the folder is no capture"
        );
    }
}

#[test]
fn inputs_are_read_in_the_order_of_their_packets() {
    let dir = Dir::new();
    let cut = Pcap::new().conversation(0, 2).bytes.len();
    let whole = Pcap::new().conversation(0, 4).bytes.clone();
    let first = dir.file("z_first.pcap", &whole[..cut]);
    let second = dir.file("a_second.pcap", &[&whole[..24], &whole[cut..]].concat());
    let json = tcpwhy(&["--json", &second, &first]).json();
    assert_eq!(json["capture"]["files"][0], first);
    assert_eq!(json["capture"]["connections"], 1, "rotated files hold one connection");
    let c = &json["connections"][0];
    assert_eq!(c["bytes"]["client"], 400);
    assert_eq!(c["frames"]["file"], 0);
    assert_eq!(c["tshark_stream"], Value::Null);
    assert_eq!(c["exchanges"][3]["spans"][0]["frames"]["file"], 1);
    assert_eq!(
        (&c["frames"]["first"], &c["frames"]["last"], &c["frames"]["last_file"]),
        (&1.into(), &8.into(), &1.into())
    );
    let text = tcpwhy(&[&second, &first, "--connection", "1", "--exchange", "4"]).out;
    assert!(text.contains(" of a_second.pcap"), "{text}");
    assert!(text.contains("seq 301 ack 601 len 100"), "{text}");
}

#[test]
fn inputs_that_overlap_are_kept_apart() {
    let dir = Dir::new();
    let bytes = Pcap::new().conversation(0, 3).bytes.clone();
    let json = tcpwhy(&["--json", &dir.file("a.pcap", &bytes), &dir.file("b.pcap", &bytes)]).json();
    assert_eq!(json["capture"]["connections"], 2);
    assert_eq!(json["connections"][1]["bytes"]["client"], 300);
    assert_eq!(json["capture"]["warnings"][0]["code"], "overlapping_inputs");
}

/// A rotated capture: the second file begins with a packet that is older than the last of the first.
#[test]
fn files_that_overlap_by_a_millisecond_are_one_capture() {
    let dir = Dir::new();
    let bytes = Pcap::new().conversation(0, 3).bytes.clone();
    let (header, mut at, mut ends) = (&bytes[..24], 24, vec![24]);
    while at < bytes.len() {
        at += 16 + u32::from_le_bytes(*bytes[at + 8..].first_chunk().unwrap()) as usize;
        ends.push(at);
    }
    let time = |at: usize| {
        let of = |n: usize| i64::from(u32::from_le_bytes(*bytes[at + n..].first_chunk().unwrap()));
        of(0) * 1_000_000_000 + of(4) * unit(header)
    };
    let middle = ends.len() / 2;
    let connections = |back: i64| {
        // The last packet of the first file is stamped so much later than the first one of the second.
        let mut first = bytes[..ends[middle]].to_vec();
        let stamp = time(ends[middle]) + back;
        let at = ends[middle - 1];
        first[at..at + 4].copy_from_slice(&((stamp / 1_000_000_000) as u32).to_le_bytes());
        first[at + 4..at + 8].copy_from_slice(&((stamp % 1_000_000_000 / unit(header)) as u32).to_le_bytes());
        let second = [header, &bytes[ends[middle]..]].concat();
        let json = tcpwhy(&["--json", &dir.file("a.pcap", &first), &dir.file("b.pcap", &second)]).json();
        json["capture"]["connections"].as_u64()
    };
    assert_eq!(connections(1_000_000), Some(1));
    assert_eq!(connections(1_001_000), Some(2));
}

/// Nanoseconds per unit of a pcap file's fractions.
fn unit(header: &[u8]) -> i64 {
    if header.starts_with(&0xa1b2_3c4d_u32.to_le_bytes()) { 1 } else { 1_000 }
}

#[test]
fn a_question_about_a_cause() {
    let dir = Dir::new();
    let path = conversation(&dir);
    let ran = tcpwhy(&[&path, "--why-not", "slow_start"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("why not slow_start?"), "{}", ran.out);
    assert!(ran.out.contains("It was not found. The time went to: server_think"), "{}", ran.out);
    assert!(tcpwhy(&[&path, "--why-not", "server_think"]).out.contains("It was found: 5 times"));
}

#[cfg(unix)]
#[test]
fn a_growing_file_is_followed_until_interrupted() {
    use std::io::Write;
    use std::{thread, time::Duration};
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    let half = pcap.conversation(0, 2).bytes.len() + 9;
    pcap = Pcap::new();
    pcap.conversation(0, 4);
    let path = dir.file("grows.pcap", &pcap.bytes[..half]);
    let child = program()
        .args(["--json", "--follow", &path])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(400));
    std::fs::File::options().append(true).open(&path).unwrap().write_all(&pcap.bytes[half..]).unwrap();
    thread::sleep(Duration::from_millis(800));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let json: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["capture"]["packets"], 19);
    assert_eq!(json["connections"][0]["bytes"]["client"], 400);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_reading_not_the_answer() {
    use std::io::Write;
    use std::{thread, time::Duration};
    let mut child =
        program().args(["--json", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pcap = Pcap::new();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&pcap.conversation(0, 3).bytes).unwrap();
    thread::sleep(Duration::from_millis(400));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    thread::sleep(Duration::from_millis(100));
    let at = pcap.bytes.len();
    // Nobody reads it any more: the pipe may be closed.
    let _ = input.write_all(&pcap.conversation(400_000, 3).bytes[at..]);
    drop(input);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    let json: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["capture"]["packets"], 15);
    assert_eq!(json["capture"]["warnings"][0]["code"], "interrupted");
}

/// A real session: 27 stalls of Nagle against delayed ACKs, told apart from the client's own pauses.
#[test]
fn the_public_smtp_session() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/zeek__smtp_bdat.pcap");
    let json = tcpwhy(&["--json", path]).json();
    let worst = json["findings"].as_array().unwrap().iter().find(|f| f["class"] == "T").unwrap();
    assert_eq!(worst["cause"], "nagle_delayed_ack");
    assert_eq!(worst["occurrences"], 27);
    assert_eq!(worst["side"], "client");
    assert!((1_150_000_000..1_175_000_000).contains(&worst["lost_ns"].as_i64().unwrap()), "{worst}");
    // What is said, the first frames beside it and the example are of one span.
    assert_eq!(worst["evidence"][0]["key"], serde_json::json!([100, 101, 102]));
    assert_eq!(worst["example"]["frames"], worst["evidence"][0]);
    assert_eq!(worst["evidence"][1]["key"], serde_json::json!([16, 17, 18]));
    let text = tcpwhy(&[path]);
    assert!(
        text.out.contains("1.16 s\n(93 %) of it is Nagle × delayed ACK. Idle between requests: 1.59 s."),
        "{}",
        text.out
    );
}
