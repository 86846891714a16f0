//! What captures of real programs are told to show (`captures/programs`).

use crate::common::tcpwhy;

/// Real programs over HTTP/2 and TLS: the small window is told, and who has to enlarge it.
#[test]
fn a_small_window_of_http_2_is_told_within_tls() {
    for (name, side, share) in [("h2_download", "client", 30), ("h2_upload", "server", 30)] {
        let file = format!("{}/../../captures/programs/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
        let json = tcpwhy(&["explain", &file, "--json"]).json();
        let found = json["findings"].as_array().unwrap().iter().find(|f| f["cause"] == "application_window");
        let found = found.unwrap_or_else(|| panic!("{name}"));
        assert!(found["share_of_requests"].as_f64().unwrap() * 100.0 > f64::from(share), "{name}: {found}");
        assert_eq!((&found["side"], &found["fixes"][0]["where"]), (&side.into(), &side.into()), "{name}");
        let chatty = json["findings"].as_array().unwrap().iter().any(|f| f["cause"] == "chatty");
        assert!(!chatty, "{name}: these are no small requests");
        // Grants are turns, for what comes may have waited for them: no stream goes on behind one (rules 98 and 112).
        let requests = json["summary"]["requests"].as_i64();
        assert!(name != "h2_upload" || requests == Some(9), "{name}: {requests:?}");
    }
}

/// Programs that write 1,400 bytes every 4 ms over 60 ms, and 4 KB every 3 ms over 20 ms, with an ACK shortly
/// before most of their writes: no buffer held them (rules 92 and 103).
#[test]
fn a_steady_writer_fills_no_buffer() {
    for (name, paused) in [("steady_writer.pcap", 900), ("clocked_writer.pcap.gz", 640)] {
        let file = format!("{}/../../captures/programs/{name}", env!("CARGO_MANIFEST_DIR"));
        let json = tcpwhy(&["explain", &file, "--json"]).json();
        let causes = json["summary"]["causes"].as_array().unwrap();
        let time = |cause: &str| {
            let of = causes.iter().find(|c| c["cause"] == cause);
            of.map_or(0, |c| c["requests_ns"].as_i64().unwrap() / 1_000_000)
        };
        assert!(time("sender_pause") > paused && time("send_buffer") < 20, "{name}: {causes:?}");
    }
}

/// A client keeps four requests out. A server that works 20 ms for each is busy all the time, however far it
/// is, and more at once would gain nothing; one that answers at once leaves nothing but the way (rule 104).
#[test]
fn requests_that_are_sent_ahead() {
    let captures = [
        ("asked_ahead", true),
        ("asked_ahead_idle", false),
        ("h2_ahead", true),
        // Beside the server: of others that it had before it, too (rule 105).
        ("asked_ahead_server", true),
    ];
    for (name, busy) in captures {
        let file = format!("{}/../../captures/programs/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
        let json = tcpwhy(&["explain", &file, "--json"]).json();
        let share = |cause: &str| {
            let of = json["summary"]["causes"].as_array().unwrap().iter().find(|c| c["cause"] == cause);
            of.map_or(0.0, |c| c["share_of_requests"].as_f64().unwrap())
        };
        let (work, way) = (share("server_think"), share("path_delay"));
        // Answers of nginx come now before the last request is there and now after it, so that the way has a
        // part (it had 82 %).
        let (least, most) = match name {
            "h2_ahead" => (0.5, 0.35),
            // The server's pauses between answers, before it had shown that requests cross them, are its own
            // as well (it was 28 % work and 27 % way).
            "asked_ahead_server" => (0.7, 0.06),
            _ => (0.8, 0.1),
        };
        assert!(
            if busy { work > least && way < most } else { work < 0.01 && way > 0.9 },
            "{name}: {work} {way}"
        );
        let chatty = json["findings"].as_array().unwrap().iter().any(|f| f["cause"] == "chatty");
        assert_eq!(chatty, !busy, "{name}");
    }
}

/// What a capture spent on each cause, milliseconds of requests, and how many requests there are.
fn spent(name: &str) -> (impl Fn(&str) -> i64, i64, serde_json::Value) {
    let file = format!("{}/../../captures/programs/{name}", env!("CARGO_MANIFEST_DIR"));
    let json = tcpwhy(&["explain", &file, "--json"]).json();
    let causes = json["summary"]["causes"].as_array().unwrap().clone();
    let time = move |cause: &str| {
        let of = causes.iter().find(|c| c["cause"] == cause);
        of.map_or(0, |c| c["requests_ns"].as_i64().unwrap() / 1_000_000)
    };
    let total = json["summary"]["requests"].as_i64().unwrap();
    (time, total, json)
}

/// `redis-cli --pipe` sends a megabyte over 30 ms, and reads the answers meanwhile: slow start and the
/// window, at both ends (rule 112).
#[test]
fn answers_that_cross_a_stream_are_no_turns() {
    for name in ["redis_pipe_client.pcap.gz", "redis_pipe_server.pcap.gz"] {
        let (time, requests, json) = spent(name);
        let (slow, window) = (time("slow_start"), time("receive_window"));
        assert!(slow > 130 && slow + window > 200 && time("path_delay") < 10, "{name}: {slow} {window}");
        assert!(requests < 10, "{name}: {requests}");
        let chatty = json["findings"].as_array().unwrap().iter().any(|f| f["cause"] == "chatty");
        assert!(!chatty, "{name}: it asks for all at once");
    }
}

/// Four requests of 16 KB are out, which Linux pushes several times each, to a server that answers at once:
/// it had nothing before it (rule 104).
#[test]
fn large_requests_that_are_sent_ahead() {
    let (time, ..) = spent("large_ahead.pcap.gz");
    let (work, way) = (time("server_think"), time("path_delay"));
    assert!(work < 10 && way > 1_400, "{work} {way}");
}

/// Three downloads fill a link together: what held each of them is no fault, and a faster link alone helps
/// all (rule 99).
#[test]
fn downloads_side_by_side_share_a_link() {
    let file = format!("{}/../../captures/programs/three_downloads.pcap.gz", env!("CARGO_MANIFEST_DIR"));
    let json = tcpwhy(&["explain", &file, "--json"]).json();
    let headline = json["summary"]["headline"].as_str().unwrap();
    assert!(headline.contains("3 transfers side by side filled the link"), "{headline}");
    let findings = json["findings"].as_array().unwrap();
    let saves = |f: &serde_json::Value| f["fixes"][0]["saves_ns"].as_i64().unwrap_or(0);
    let of = |cause: &str| findings.iter().find(|f| f["cause"] == cause).unwrap();
    let (queue, link) = (of("queueing"), of("bandwidth"));
    assert!(queue["fixes"].as_array().unwrap().is_empty(), "{queue}");
    assert!(queue["refuted"][0]["because"].as_str().unwrap().contains("3 transfers"), "{queue}");
    assert_eq!(queue["link_full"]["transfers"], 3);
    let both = link["requests_ns"].as_i64().unwrap() + link["link_full"]["time_ns"].as_i64().unwrap();
    assert_eq!((saves(link), &link["fixes"][0]["basis"]), (both, &"bound".into()));
    let pauses = of("sender_pause")["requests_ns"].as_i64().unwrap();
    assert!(pauses < 100_000_000, "their server wrote all at once: {pauses}");
}

/// Six requests at once, six times, to a server that works on one at a time: most of the time they waited for each other,
/// which more workers spare (rule 161): 1.07 s would be left, and with six of them 1.23 s were.
#[test]
fn requests_that_wait_for_their_turn() {
    let file = format!("{}/../../captures/programs/one_worker.pcap", env!("CARGO_MANIFEST_DIR"));
    let json = tcpwhy(&["explain", &file, "--json"]).json();
    let headline = json["summary"]["headline"].as_str().unwrap();
    assert!(headline.contains("2.61 s of that on other requests first"), "{headline}");
    let findings = json["findings"].as_array().unwrap();
    let work = findings.iter().find(|f| f["cause"] == "server_think").unwrap();
    let turns = &work["in_turn"];
    assert_eq!((&turns["at_once"], &turns["most"], &turns["requests"]), (&1.into(), &6.into(), &36.into()));
    let each = turns["each_ns"].as_i64().unwrap();
    assert!((27_000_000..33_000_000).contains(&each), "30 ms, more or less by a tenth: {each}");
    let first = &work["fixes"][0];
    assert_eq!((&first["id"], &first["saves_ns"]), (&"more_workers".into(), &turns["waited_ns"]));
    let text = tcpwhy(&["explain", &file]).out;
    assert!(text.contains("fix: Work on more requests at once (on the server)"), "{text}");
}

/// Real programs in TLS 1.3: a server that works is no pause in an answer, though its library has sent
/// tickets and settings before, and Nagle's algorithm holds what clients say first (rule 109).
#[test]
fn what_libraries_say_within_tls_is_no_answer() {
    let ms = |value: &serde_json::Value| value.as_i64().unwrap() / 1_000_000;
    for (name, requests, nagle) in
        [("tls13_wget", 1, 72), ("tls13_h2", 1, 0), ("tls13_small_writes", 4, 4 * 30)]
    {
        let file = format!("{}/../../captures/programs/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
        let json = tcpwhy(&["explain", &file, "--json"]).json();
        let causes = json["summary"]["causes"].as_array().unwrap();
        let time = |cause: &str| {
            causes.iter().filter(|c| c["cause"] == cause).map(|c| ms(&c["requests_ns"])).sum::<i64>()
        };
        let held = time("nagle") + time("nagle_delayed_ack");
        assert!((nagle..nagle + 3).contains(&held), "{name}: {causes:?}");
        assert!(time("sender_pause") < 2, "{name}: {causes:?}");
        if name != "tls13_small_writes" {
            assert!((200..210).contains(&time("server_think")), "{name}: {causes:?}");
        }
        let connections = json["connections"].as_array().unwrap();
        let all = connections.iter().map(|c| c["exchanges"].as_array().unwrap().len()).sum::<usize>();
        assert_eq!(all, requests, "{name}");
    }
}
