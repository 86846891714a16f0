//! Both captures of an experiment, explained as one.

use crate::common::{Dir, tcpwhy};
use serde_json::Value;

fn bundled(name: &str) -> String {
    format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))
}

fn both(experiment: &str) -> [String; 2] {
    ["client", "server"].map(|end| bundled(&format!("captures/lab/{experiment}/cap.{end}.pcap.zst")))
}

fn warning<'a>(json: &'a Value, code: &str) -> Option<&'a Value> {
    json["capture"]["warnings"].as_array().unwrap().iter().find(|w| w["code"] == code)
}

/// Setup and exchanges are tiled by their spans.
fn is_tiled(connection: &Value) {
    let parts = connection["exchanges"].as_array().unwrap().iter().chain([&connection["setup"]]);
    for part in parts.filter(|p| !p.is_null()) {
        let mut at = &part["start_ns"];
        for span in part["spans"].as_array().unwrap() {
            assert_eq!(&span["start_ns"], at);
            at = &span["end_ns"];
        }
        assert_eq!(at, &part["end_ns"]);
    }
}

#[test]
fn two_captures_of_a_connection_are_one_answer_in_either_order() {
    let [client, server] = both("loss_tail_tlp");
    let json = tcpwhy(&["--json", &client, &server]).json();
    assert_eq!(json["capture"]["connections"], 1);
    let said = warning(&json, "two_taps").unwrap()["text"].as_str().unwrap();
    assert!(said.contains("1 of 19 on the way to the client"), "{said}");
    let c = &json["connections"][0];
    is_tiled(c);
    let taps = &c["taps"];
    assert_eq!((&taps["lost"]["client"], &taps["lost"]["server"]), (&0.into(), &1.into()));
    let loss = &taps["losses"][0];
    assert_eq!((&loss["from"], &loss["file"], &loss["syn"]), (&"server".into(), &1.into(), &false.into()));
    let other = tcpwhy(&["--json", &server, &client]).json();
    assert_eq!(other["connections"][0]["exchanges"], c["exchanges"]);
    assert_eq!(other["connections"][0]["taps"], *taps);
}

#[test]
fn a_syn_that_never_came_to_the_server_is_the_path_s_and_no_longer_queue_is_offered() {
    let [client, server] = both("loss_syn_1");
    let json = tcpwhy(&["--json", &client, &server]).json();
    let found = json["findings"].as_array().unwrap().iter().find(|f| f["cause"] == "syn_retransmit").unwrap();
    assert_eq!(found["side"], "network");
    let fixes: Vec<_> = found["fixes"].as_array().unwrap().iter().map(|f| f["id"].clone()).collect();
    assert!(!fixes.contains(&"listen_backlog".into()) && !fixes.is_empty(), "{fixes:?}");
    let said = found["why"].as_str().unwrap();
    assert!(said.contains("never came to the server's tap"), "{said}");
}

/// While its loss is repaired a sender does not go by ACKs alone: what left late then was no application (it
/// had all been written).
#[test]
fn who_repairs_a_loss_does_not_pause() {
    let [client, server] = both("loss_middle_one");
    let json = tcpwhy(&["--json", &client, &server]).json();
    let budget = &json["connections"][0]["budget"];
    assert!(budget.get("sender_pause").is_none(), "{budget}");
    assert!(budget["congestion_window"].as_i64() > Some(3_000_000), "{budget}");
}

/// A server with TCP_NODELAY that writes a row of 700 bytes every millisecond, over 20 ms: the clock that
/// shows beside it counts where the other tap is explained, too (rule 92). It was a full send buffer there,
/// with most of the time promised of a larger one.
#[test]
fn a_writer_with_a_clock_of_its_own_fills_no_buffer() {
    let [client, server] =
        ["client", "server"].map(|end| bundled(&format!("captures/taps/rows.{end}.pcap.zst")));
    for files in [&[&server][..], &[&client, &server]] {
        let budget =
            tcpwhy(&[&["--json"], &files.iter().map(|f| f.as_str()).collect::<Vec<_>>()[..]].concat());
        let budget = budget.json()["connections"][0]["budget"].clone();
        assert!(budget.get("send_buffer").is_none(), "{files:?}: {budget}");
        assert!(budget["sender_pause"].as_i64() > Some(550_000_000), "{files:?}: {budget}");
    }
}

/// Lines of 200 bytes every half a millisecond under Nagle's algorithm: segments are full, and pass evenly.
/// By their time stamps they left so before any ACK came, which no link sets apart (rule 116). It was the
/// bandwidth of a link of 3 Mbit/s, sure.
#[test]
fn lines_that_nagle_joins_are_no_link() {
    let files = ["client", "server"].map(|end| bundled(&format!("captures/taps/lines.{end}.pcap.zst")));
    let [client, server] = files.each_ref().map(String::as_str);
    for files in [&[client][..], &[server], &[client, server]] {
        let json = tcpwhy(&[&["--json"], files].concat()).json();
        let budget = &json["connections"][0]["budget"];
        assert!(budget["sender_pause"].as_i64() > Some(930_000_000), "{files:?}: {budget}");
        assert!(budget["bandwidth"].as_i64() < Some(50_000_000), "{files:?}: {budget}");
    }
}

/// Answers of 500 bytes that a server holds with MSG_MORE to the kernel's timer (228 to 243 ms), and that it
/// sends after 228 ms of sleep: seen alone at either end, and at both. It is the kernel's clock that tells
/// them apart, which shows beside the server (rule 115).
#[test]
fn a_corked_answer_leaves_with_the_kernels_clock() {
    let largest = |name: &str, ends: &[&str]| {
        let files: Vec<_> =
            ends.iter().map(|end| bundled(&format!("captures/taps/{name}.{end}.pcap.zst"))).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let json = tcpwhy(&[&["--json"], &files[..]].concat()).json();
        let finding = &json["findings"][0];
        (finding["cause"].as_str().unwrap().to_owned(), finding["confidence"].as_f64().unwrap())
    };
    for ends in [&["client"][..], &["server"], &["client", "server"]] {
        assert_eq!(largest("corked", ends), ("cork".into(), 0.85), "{ends:?}");
        let (cause, sure) = largest("sleeping", ends);
        assert_eq!((cause.as_str(), sure > 0.9), ("server_think", ends.contains(&"server")), "{ends:?}");
    }
    let said = tcpwhy(&[&bundled("captures/taps/sleeping.client.pcap.zst")]).out;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("the server application worked, or its kernel held answers until a timer"),
        "{said}"
    );
    assert!(said.contains("shows `timer:(persist`"), "{said}");
    assert!(!said.contains("Nothing is wrong"), "{said}");
}

#[test]
fn all_experiments_are_recognised_and_tiled() {
    let lab = bundled("captures/lab");
    let mut seen = 0;
    for entry in std::fs::read_dir(lab).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let [client, server] = both(&name);
        if !std::path::Path::new(&server).exists() {
            continue;
        }
        let json = tcpwhy(&["--json", "--exchanges", "all", &client, &server]).json();
        assert!(warning(&json, "two_taps").is_some(), "{name}: {}", json["capture"]["warnings"]);
        let alone = tcpwhy(&["--json", &client]).json();
        assert_eq!(json["capture"]["connections"], alone["capture"]["connections"], "{name}");
        json["connections"].as_array().unwrap().iter().for_each(is_tiled);
        seen += 1;
    }
    assert!(seen >= 10, "{seen} experiments");
}

#[test]
fn the_page_the_lines_and_an_exchange_are_of_the_one_answer() {
    let [client, server] = both("loss_tail_tlp");
    let dir = Dir::new();
    let page = dir.file("page.html", b"");
    let done = tcpwhy(&[&client, &server, "--connection", "1", "--exchange", "1", "--html", &page]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("seq "), "{}", done.out);
    assert!(std::fs::metadata(&page).unwrap().len() > 10_000);
    let lines = tcpwhy(&["--jsonl", &client, &server]).out;
    assert_eq!(lines.lines().filter(|l| l.contains("\"type\":\"connection\"")).count(), 1, "{lines}");
    let apart = tcpwhy(&["--json", "--apart", &client, &server]).json();
    assert_eq!(apart["capture"]["connections"], 2);
    assert!(warning(&apart, "two_taps").is_none());
}

/// What takes captures of different times says that these are of one, and where they are one answer.
#[test]
fn two_ends_are_not_compared_and_are_told_in_tables() {
    let [client, server] = both("loss_tail_tlp");
    let run = |arguments: &[&str]| {
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(arguments).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, said) = run(&["compare", &client, &server]);
    assert!(
        code == Some(2) && said.contains("seen from two ends") && said.contains("tcpwhy explain "),
        "{said}"
    );
    let dir = Dir::new();
    let tables = dir.0.join("tables");
    let tables = tables.to_str().unwrap();
    let (code, said) = run(&["explain", &client, &server, "--parquet", tables]);
    if !said.contains("parquet") || code == Some(0) {
        assert!(code == Some(0) && said.contains("tables have each of them twice"), "{said}");
    }
}

/// A folder of captures, some of which hold the same connections: these count twice, and it is said what to do.
#[test]
fn a_folder_of_both_ends_says_that_all_counts_twice() {
    let (dir, pairs) = (Dir::new(), [both("loss_tail_tlp"), both("loss_syn_1")]);
    let copy = |file: &str, to: &str| std::fs::copy(file, dir.0.join(to)).expect("room for a small file");
    for (n, [client, server]) in pairs.iter().enumerate() {
        copy(client, &format!("{n}.client.pcap.zst"));
        copy(server, &format!("{n}.server.pcap.zst"));
    }
    let folder = dir.0.to_str().expect("a name of letters");
    let json = tcpwhy(&["--json", folder]).json();
    let said = warning(&json, "counted_twice").expect("it is said");
    let text = said["text"].as_str().expect("a sentence");
    let next = format!(
        "`tcpwhy explain {folder}/0.client.pcap.zst {folder}/0.server.pcap.zst` explains them as one"
    );
    assert!(
        text.starts_with("2 of 4 connections count twice")
            && text.contains(&next)
            && text.contains("and so do two others"),
        "{text}"
    );
    let headline = json["summary"]["headline"].as_str().expect("a verdict");
    assert!(headline.contains("What is in two of the captures counts twice here."), "{headline}");
    assert!(
        warning(&tcpwhy(&["--json", "--apart", folder]).json(), "counted_twice").is_none(),
        "it is meant"
    );
    // The same capture by two names.
    let dir = Dir::new();
    let [a, b] = ["a.pcap.zst", "b.pcap.zst"].map(|name| dir.0.join(name));
    for to in [&a, &b] {
        std::fs::copy(&pairs[0][0], to).expect("room for a small file");
    }
    let json = tcpwhy(&["--json", a.to_str().expect("letters"), b.to_str().expect("letters")]).json();
    let said = warning(&json, "counted_twice").expect("it is said")["text"].to_string();
    assert!(said.contains("leave one of them out"), "{said}");
    // What follows one another in time is not the same.
    let apart = [bundled("captures/zeek__smtp_bdat.pcap"), pairs[0][0].clone()];
    let json = tcpwhy(&["--json", &apart[0], &apart[1]]).json();
    assert!(warning(&json, "counted_twice").is_none());
}
