//! `compare`: what moved between two captures, and what CI is told of it.

use crate::common::{ACK, Client, Dir, FIN, Pcap, Server, smtp, tcpwhy};
use serde_json::{Value, json};

fn lab(name: &str) -> String {
    format!("{}/../../captures/lab/{name}/cap.client.pcap.zst", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn before_and_after() {
    let dir = Dir::new();
    let (slow, fast) = (lab("small_split_nagle"), lab("small_split_nodelay"));
    let page = dir.0.join("compare.html").to_str().unwrap().to_owned();
    let ran = tcpwhy(&["compare", &slow, &fast, "--json", "--html", &page, "--fail-if", "median>5%"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    let median = |side: &str| json["exchanges"][side]["median_ns"].as_i64().unwrap();
    // The medians, counted another way.
    for (side, file) in [("before", &slow), ("after", &fast)] {
        let whole = tcpwhy(&["explain", file, "--json", "--exchanges", "all"]).json();
        let all = whole["connections"].as_array().unwrap().iter();
        let took = |part: &Value| part["end_ns"].as_i64().unwrap() - part["start_ns"].as_i64().unwrap();
        let mut lengths: Vec<i64> = Vec::new();
        for c in all {
            let mut of: Vec<i64> = c["exchanges"].as_array().unwrap().iter().map(took).collect();
            // The first waited for its connection, too.
            of[0] += took(&c["setup"]);
            lengths.extend(of);
        }
        lengths.sort_unstable();
        assert_eq!(median(side), lengths[lengths.len().div_ceil(2) - 1]);
        assert_eq!(json["exchanges"][side]["count"], json!(lengths.len()));
    }
    assert_eq!(json["exchanges"]["difference_ns"], json!(median("after") - median("before")));
    assert_eq!(json["causes"][0]["cause"], "nagle_delayed_ack");
    assert_eq!(json["causes"][0]["sure"], true);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(
        html.contains(" times as fast") && html.contains("default-src 'none'") && !html.contains("<script")
    );
    // The other way round it is worse, and CI is told.
    for (growth, code) in [
        ("median>5%", 4),
        ("nagle_delayed_ack>1ms", 4),
        ("p95>10ms", 4),
        ("mean>10ms", 4),
        ("median>1m", 0),
        ("fast_recovery", 0),
    ] {
        let ran = tcpwhy(&["compare", &fast, &slow, "-q", "--fail-if", growth]);
        assert_eq!(ran.code, code, "{growth}: {}{}", ran.out, ran.err);
    }
    let same = tcpwhy(&["compare", &slow, &slow]);
    assert!(same.out.starts_with("no difference beyond chance"), "{}", same.out);
    tcpwhy(&["compare", &slow, &smtp()]).fails(3, &["share no server", ":9000", ":25"]);
    tcpwhy(&["compare", "-", &smtp()]).fails(2, &["two files"]);
    assert_eq!(tcpwhy(&["compare", "no.pcap", &smtp()]).code, 3);
}

/// Ten requests on a connection each, or on one: what CI is told of. Two of ten that are slower may be
/// chance, also where the 95th percentile is one of them.
#[test]
fn openings_fail_in_ci() {
    let dir = Dir::new();
    let capture = |name: &str, of: &dyn Fn(&mut Pcap)| {
        let mut pcap = Pcap::new();
        of(&mut pcap);
        dir.file(name, &pcap.bytes)
    };
    let kept = capture("kept.pcap", &|pcap| _ = pcap.conversation(0, 10));
    let own = capture("own.pcap", &|pcap| {
        for n in 0..10 {
            pcap.client_port += 1;
            pcap.conversation(300_000 * n, 1);
            let at = 300_000 * n + 200_000;
            pcap.tcp(at, Client, FIN | ACK, 101, 201, 0).tcp(at + 10_000, Server, FIN | ACK, 201, 102, 0);
            pcap.tcp(at + 10_050, Client, ACK, 102, 202, 0);
        }
    });
    for (fail_if, code) in
        [("median>5%", 4), ("mean>5%", 4), ("p95>5%", 0), ("handshake>1ms", 4), ("server_think>1ms", 0)]
    {
        let ran = tcpwhy(&["compare", &kept, &own, "-q", "--fail-if", fail_if]);
        assert_eq!(ran.code, code, "{fail_if}: {}{}", ran.out, ran.err);
        let back = tcpwhy(&["compare", &own, &kept, "-q", "--fail-if", fail_if]);
        assert_eq!(back.code, 0, "{fail_if}: {}{}", back.out, back.err);
        let same = tcpwhy(&["compare", &own, &own, "-q", "--fail-if", fail_if]);
        assert_eq!(same.code, 0, "{fail_if}: {}{}", same.out, same.err);
    }
    let said = tcpwhy(&["compare", &own, &kept]).out;
    assert!(
        said.contains("14 % faster: the median exchange took 70.0 ms before and 60.0 ms after"),
        "{said}"
    );
    assert!(said.contains("10 and 1 of them with the opening of their connection"), "{said}");
    let json = tcpwhy(&["compare", &own, &kept, "--json"]).json();
    assert_eq!(json["openings"], json!({ "before": 10, "after": 1 }));
    assert_eq!(json["in_all"]["after"]["exchanges"], 10);
}
