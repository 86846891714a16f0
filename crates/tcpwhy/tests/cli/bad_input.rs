//! Inputs that are wrong: one clear sentence with the next step, the right exit code, and what could be read.

use crate::common::{ACK, Client, Dir, Pcap, SYN, ethernet, powerless, tcpwhy, tcpwhy_with};

#[test]
fn missing() {
    tcpwhy(&["/nowhere/a.pcap"]).fails(3, &["/nowhere/a.pcap: no such file", "Check"]);
    // A file whose length the kernel does not tell is not empty for that.
    #[cfg(target_os = "linux")]
    assert!(!tcpwhy(&["/proc/self/mem"]).err.contains("empty"));
}

/// An assistant's client shows the sentence to whoever set it up.
#[test]
fn no_folder_for_an_assistant() {
    let dir = Dir::new();
    let file = dir.file("a.pcap", b"");
    let refused = |root: &str, sentence: &str| {
        let done = tcpwhy(&["mcp", "--root", root]);
        assert_eq!((done.code, done.out.as_str()), (3, ""));
        assert_eq!(done.err, format!("tcpwhy: --root {root}: {sentence}\n"));
    };
    refused("/nowhere/at/all", "there is no such folder; name the one that holds the captures");
    refused(&file, "it is a file; name the folder that holds it");
    refused(&format!("{file}/below"), "a part of that path is a file; name a folder");
}

#[test]
fn a_directory() {
    let dir = Dir::new();
    let folder = dir.0.to_str().unwrap();
    tcpwhy(&[folder]).fails(3, &["no capture is in this folder"]);
    tcpwhy(&["explain", "--follow", folder]).fails(3, &["no capture is in this folder"]);
    dir.file("notes.txt", b"no capture");
    tcpwhy(&[folder]).fails(3, &["no capture is in this folder"]);
    tcpwhy(&[folder, "/nowhere/a.pcap"]).fails(3, &["/nowhere/a.pcap: no such file"]);
}

/// What calls itself a capture is named, if it is none; the others are explained.
#[test]
fn a_broken_capture_in_a_folder() {
    let dir = Dir::new();
    dir.file("whole.pcap", &Pcap::new().conversation(0, 2).bytes);
    dir.file("broken.pcap.1", b"rubbish");
    dir.file("notes.txt", b"no capture");
    let some = tcpwhy(&["--json", dir.0.to_str().unwrap()]);
    assert_eq!((some.code, some.json()["capture"]["connections"].as_u64()), (1, Some(1)));
    assert!(some.err.contains("broken.pcap.1: not a pcap"), "{}", some.err);
}

/// They are no damage, and take one line, however many they are; who names one is told that it is no capture.
#[test]
fn other_files_in_a_folder() {
    let dir = Dir::new();
    let folder = dir.0.to_str().unwrap();
    let whole = Pcap::new().conversation(0, 2).bytes.clone();
    dir.file("whole.pcap", &whole);
    let about = dir.file("a.pcap.json", b"{\"packets\": 1}");
    tcpwhy(&[folder]).fails(0, &["1 file is no capture and was passed over: ", "a.pcap.json"]);
    dir.file("notes.txt", b"no capture");
    tcpwhy(&["--json", folder]).fails(0, &["2 files are no captures and were passed over: ", "a.pcap.json"]);
    assert_eq!(tcpwhy(&["-q", folder]).err, "");
    tcpwhy(&[&about]).fails(3, &["a.pcap.json: not a pcap", "JSON"]);
    for both in [[folder, &about], [&about, folder]] {
        assert_eq!(tcpwhy(&both).code, 1, "it was named, too");
    }
    dir.file("cut.pcap", &whole[..whole.len() - 10]);
    let cut = tcpwhy(&[folder]);
    assert!(cut.code == 1 && cut.err.contains("cut.pcap: the file is cut"), "{}", cut.err);
}

#[cfg(unix)]
#[test]
fn unreadable() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    let path = dir.file("a.pcap", &Pcap::new().bytes);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        // Root may read everything, unless the capabilities are taken away.
        std::fs::set_permissions(&dir.0, std::fs::Permissions::from_mode(0o755)).unwrap();
        powerless(&[&path]).fails(3, &["no permission", "sudo cat"]);
    } else {
        tcpwhy(&[&path]).fails(3, &["no permission", "sudo cat"]);
    }
}

/// What is in a folder that may not be read is not known: it is not told to be empty, nor passed over.
#[cfg(unix)]
#[test]
fn unreadable_folders() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&dir.0, 0o755);
    dir.file("a.pcap", &Pcap::new().conversation(0, 2).bytes);
    let tables = dir.0.join("tables");
    let (root, inner) = (dir.0.to_str().unwrap(), tables.to_str().unwrap());
    if cfg!(feature = "parquet") {
        assert_eq!(tcpwhy(&[root, "--parquet", inner]).code, 0);
    } else {
        std::fs::create_dir(&tables).unwrap();
    }
    mode(&tables, 0o000);
    let readable = std::fs::read_dir(&tables).is_ok();
    // Root may read everything, unless the capabilities are taken away.
    let run = if readable { powerless } else { tcpwhy };
    let denied = ["no permission to read this folder"];
    run(&[inner]).fails(3, &denied);
    run(&["explain", "--follow", inner]).fails(3, &denied);
    run(&["serve", "--port", "0", inner]).fails(3, &denied);
    let some = run(&["--json", root]);
    assert_eq!((some.code, some.json()["capture"]["connections"].as_u64()), (1, Some(1)), "{}", some.err);
    assert!(some.err.contains("tables: no permission"), "{}", some.err);
    if cfg!(feature = "parquet") {
        run(&["summarize", inner]).fails(3, &denied);
        run(&["summarize", &format!("{root}/nowhere")]).fails(3, &["no such folder. Check the name"]);
        run(&["summarize", &format!("{root}/a.pcap")]).fails(2, &["a file, not a folder with tables"]);
        mode(&tables, 0o755);
        mode(&tables.join("spans"), 0o000);
        let some = run(&["summarize", inner]);
        assert!(some.code == 1 && some.err.contains("spans: no permission"), "{} {}", some.code, some.err);
        mode(&tables.join("spans"), 0o755);
    }
    // Listed, and no more.
    mode(&dir.0, 0o644);
    let none = run(&[root]);
    assert!(none.code == 3 && none.err.contains("a.pcap: no permission"), "{} {}", none.code, none.err);
    mode(&dir.0, 0o755);
    mode(&tables, 0o755);
}

#[test]
fn empty() {
    let dir = Dir::new();
    tcpwhy(&[&dir.file("a.pcap", b"")]).fails(3, &["empty", "tcpdump -U"]);
    tcpwhy_with(&["-"], b"").fails(3, &["standard input", "empty"]);
}

#[test]
fn not_a_capture() {
    let dir = Dir::new();
    let text = dir.file("a.pcap", b"12:00:00.000 IP 10.0.0.1.80 > 10.0.0.2.40000: Flags [S]\n");
    tcpwhy(&[&text]).fails(3, &["not a pcap or pcapng capture", "text", "tcpdump -w"]);
}

/// Each says what was left out, and what to loosen.
#[test]
fn nothing_left() {
    let dir = Dir::new();
    let path = dir.file("a.pcap", &Pcap::new().conversation(0, 3).bytes);
    tcpwhy(&[&path, "--from", "5", "--to", "2"]).fails(2, &["--from lies after --to"]);
    // One of them after the first packet, the other one a time of day.
    tcpwhy(&[&path, "--from", "2099-01-01T00:00:00Z", "--to", "2"]).fails(2, &["--from lies after --to"]);
    for (left_out, said) in [
        (["--from", "100"], "loosen --filter, --from or --to"),
        (["--filter", "port 9"], "loosen --filter, --from or --to"),
    ] {
        let ran = tcpwhy(&[&[path.as_str()][..], &left_out].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains(said), "{left_out:?}: {}", ran.out);
    }
}

#[test]
fn headers_cut_off() {
    let dir = Dir::new();
    let whole = Pcap::new().conversation(0, 1).bytes.clone();
    // Each frame is kept up to the middle of its TCP header.
    let mut cut = whole[..24].to_vec();
    let mut at = 24;
    while at < whole.len() {
        let len = u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap()) as usize;
        cut.extend(&whole[at..at + 8]);
        cut.extend(40u32.to_le_bytes());
        cut.extend(&whole[at + 12..at + 16 + 40]);
        at += 16 + len;
    }
    let ran = tcpwhy(&[&dir.file("a.pcap", &cut)]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("none with a whole TCP header") && ran.out.contains("-s 128"), "{}", ran.out);
}

#[test]
fn nobody_answers() {
    let dir = Dir::new();
    let ran = tcpwhy(&[&dir.file("a.pcap", &Pcap::new().tcp(0, Client, SYN, 0, 0, 0).bytes)]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let said = "1 connection to 10.0.0.2:80, without a request. The capture holds packets of one end only: no answer, and no time";
    assert!(ran.out.replace('\n', " ").starts_with(said), "{}", ran.out);
}

#[test]
fn no_packets_and_no_tcp() {
    let dir = Dir::new();
    let none = tcpwhy(&[&dir.file("none.pcap", &Pcap::new().bytes)]);
    assert_eq!((none.code, none.err.as_str()), (0, ""));
    assert!(none.out.contains("no packets"), "{}", none.out);
    let udp = dir.file("udp.pcap", &Pcap::new().udp(0).udp(10).bytes);
    let ran = tcpwhy(&[&udp]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("2 packets, none of them TCP"), "{}", ran.out);
    let json = tcpwhy(&[&udp, "--json"]).json();
    assert_eq!(json["connections"].as_array().unwrap().len(), 0);
    assert_eq!(json["capture"]["packets"], 2);
    assert_eq!(json["capture"]["warnings"][0]["code"], "no_tcp");
}

#[test]
fn unknown_link_type() {
    let dir = Dir::new();
    let path = dir.file("a.pcap", &Pcap::with_link(147).frame(0, &[0; 60]).bytes);
    tcpwhy(&[&path]).fails(3, &["link type 147", "Ethernet"]);
}

#[test]
fn a_syn_that_icmp_answers() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    pcap.tcp(0, Client, SYN, 0, 0, 0);
    // Behind the headers of the file, of its record, and of Ethernet: what is quoted.
    let said = [&[3, 10, 0, 0, 0, 0, 0, 0], &pcap.bytes[24 + 16 + 14..]].concat();
    pcap.frame(100, &ethernet(1, 2, 1, 9, &said));
    let json = tcpwhy(&["--json", &dir.file("a.pcap", &pcap.bytes)]).json();
    let warning = &json["capture"]["warnings"][0];
    assert_eq!((&warning["code"], &warning["count"]), (&"unreachable".into(), &1.into()));
    let text = warning["text"].as_str().unwrap();
    assert!(text.starts_with("packets to 10.0.0.2:80 were answered by ICMP"), "{text}");
}

#[test]
fn cut() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    let whole = pcap.conversation(0, 3).bytes.len();
    pcap.tcp(400_000, Client, ACK, 301, 601, 50);
    let ran = tcpwhy(&[&dir.file("a.pcap", &pcap.bytes[..whole + 30]), "--json"]);
    ran.fails(1, &["cut in the middle of packet 16", "everything before was read"]);
    let json = ran.json();
    assert_eq!(json["capture"]["packets"], 15);
    assert_eq!(json["capture"]["warnings"][0]["code"], "damaged");
    assert_eq!(json["connections"][0]["bytes"]["client"], 300);
}

#[test]
fn a_lying_length() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    pcap.conversation(0, 3);
    for word in [pcap.epoch + 1, 0, u32::MAX, u32::MAX] {
        pcap.bytes.extend(word.to_le_bytes());
    }
    let ran = tcpwhy(&[&dir.file("a.pcap", &pcap.bytes), "--json"]);
    ran.fails(1, &["packet 16 claims 4294967295 bytes"]);
    assert_eq!(ran.json()["capture"]["packets"], 15);
}

#[test]
fn the_clock_steps_back() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    pcap.conversation(0, 2);
    pcap.epoch -= 3600;
    pcap.tcp(500_000, Client, ACK, 201, 401, 50);
    let json = tcpwhy(&[&dir.file("a.pcap", &pcap.bytes), "--json"]).json();
    let codes: Vec<&str> =
        json["capture"]["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"clock_step"), "{codes:?}");
    assert!(json["capture"]["duration_ns"].as_i64().unwrap() > 3_500_000_000_000);
    for c in json["connections"].as_array().unwrap() {
        assert!(c["start_ns"].as_i64().unwrap() >= 0);
        assert!(c["end_ns"].as_i64() >= c["start_ns"].as_i64());
    }
}

/// One packet that is stamped hours or years away from those around it stretches nothing, wherever it stands;
/// that is said.
#[test]
fn one_stamp_far_from_all_others() {
    let dir = Dir::new();
    let whole = Pcap::new().conversation(0, 5).bytes.clone();
    let mut records = vec![24];
    while let Some(&at) = records.last()
        && at < whole.len()
    {
        let length = u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap());
        records.push(at + 16 + length as usize);
    }
    records.pop();
    let about = |bytes: &[u8]| {
        let json = tcpwhy(&[&dir.file("a.pcap", bytes), "--json", "--exchanges", "all"]).json();
        let codes: Vec<String> = json["capture"]["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w["code"].as_str().unwrap().to_owned())
            .collect();
        (json, codes)
    };
    let plain = about(&whole).0;
    let lasts = plain["capture"]["duration_ns"].as_i64().unwrap();
    let year: i64 = 365 * 86_400;
    for (n, &at) in records.iter().enumerate() {
        let inside = n > 0 && n + 1 < records.len();
        for moved in [year, -year, 3_600, -3_600, 5] {
            if !(inside || moved.abs() == year) {
                continue;
            }
            let mut bytes = whole.clone();
            let secs = i64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())) + moved;
            bytes[at..at + 4].copy_from_slice(&(secs as u32).to_le_bytes());
            let (json, codes) = about(&bytes);
            assert!(codes.contains(&"bad_time".into()), "packet {n} by {moved}: {codes:?}");
            assert!(!codes.contains(&"clock_step".into()), "packet {n} by {moved}: {codes:?}");
            let ran = json["capture"]["duration_ns"].as_i64().unwrap();
            assert!((lasts - 100_000_000..=lasts).contains(&ran), "packet {n} by {moved}: {ran}");
            assert_eq!(json["summary"]["requests"].as_u64(), Some(5), "packet {n} by {moved}");
            let c = &json["connections"][0];
            assert!(c["end_ns"].as_i64() <= Some(lasts), "packet {n} by {moved}: {c}");
        }
    }
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let dir = Dir::new();
    let good = dir.file("good.pcap", &Pcap::new().conversation(0, 3).bytes);
    let ran = tcpwhy(&["/nowhere/a.pcap", &good, "--json"]);
    ran.fails(1, &["no such file"]);
    assert_eq!(ran.json()["capture"]["connections"], 1);
    let ran = tcpwhy(&["/nowhere/a.pcap", "/nowhere/b.pcap"]);
    assert_eq!(ran.code, 3);
    assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);
    assert_eq!(ran.out, "");
}

/// A fault of the program itself costs the capture that shows it: its name is said, nothing of it stays, the
/// others are done; and the next call, without the fault, completes the tables.
#[cfg(all(debug_assertions, feature = "parquet"))]
#[test]
fn a_worker_that_dies() {
    let dir = Dir::new();
    for name in ["a.pcap", "b.pcap", "c.pcap"] {
        dir.file(name, &Pcap::new().conversation(0, 3).bytes);
    }
    let (folder, tables) = (dir.0.to_str().unwrap(), dir.0.join("tables"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command
        .args(["explain", folder, "--parquet", tables.to_str().unwrap()])
        .env("TCPWHY_TEST_PANIC", "b.pcap");
    let done = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("b.pcap: the analysis failed on it, and nothing of it is kept"), "{err}");
    assert!(out.starts_with("2 captures") && out.contains("2 connections, 6 exchanges"), "{out}");
    let again = tcpwhy(&["explain", folder, "--parquet", tables.to_str().unwrap()]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(
        again.out.starts_with("1 capture in ") && again.out.contains("2 were done before"),
        "{}",
        again.out
    );
}

/// One clock that nobody had set would be all that is left of the sums over a folder: that capture is left
/// aside, and named.
#[test]
fn a_broken_clock_in_a_folder_spoils_no_sum() {
    for late in [86_400 * 400, -3_600] {
        let dir = Dir::new();
        dir.file("good.pcap", &Pcap::new().conversation(0, 5).bytes);
        let mut broken = Pcap::new();
        broken.client_port = 50_000;
        broken.conversation(0, 5);
        broken.epoch = (1_700_000_000i64 + late) as u32;
        let n = 1 + 5 * 100;
        broken.tcp(700_000, Client, ACK | 8, n, 1 + 5 * 200, 100);
        broken.tcp(750_000, crate::common::Server, ACK | 8, 1 + 5 * 200, n + 100, 200);
        // A packet of a connection that has no time of its own.
        broken.client_port = 50_001;
        broken.tcp(750_000, Client, ACK | 8, 1, 1, 100);
        dir.file("odd.pcap", &broken.bytes);
        let done = tcpwhy(&["--json", dir.0.to_str().unwrap()]);
        let json = done.json();
        assert_eq!(json["summary"]["requests"].as_u64(), Some(5), "{late}");
        let idle = json["summary"]["idle_ns"].as_i64().unwrap();
        assert!(idle < 1_000_000_000, "{late}: {idle}");
        let warnings = json["capture"]["warnings"].as_array().unwrap();
        let said =
            warnings.iter().filter_map(|w| w["text"].as_str()).find(|t| t.contains("odd.pcap left aside"));
        assert!(said.is_some_and(|t| t.contains("2 of 3 connections")), "{warnings:?}");
        // Who asks for it by its number gets it.
        assert_eq!(tcpwhy(&[dir.0.to_str().unwrap(), "--connection", "2"]).code, 0);
        #[cfg(feature = "parquet")]
        no_rows_of_a_broken_clock(&dir);
    }
}

/// Among several captures it has no rows, and is done; alone it has them.
#[cfg(feature = "parquet")]
fn no_rows_of_a_broken_clock(dir: &Dir) {
    let at = |name: &str| dir.0.join(name).to_str().unwrap().to_owned();
    let folder = dir.0.to_str().unwrap();
    let done = tcpwhy(&["explain", folder, "--parquet", &at("tables")]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains(" 1 connection, 5 exchanges"), "{}", done.out);
    assert!(done.out.contains("1 are left aside for their clocks"), "{}", done.out);
    assert!(done.err.contains("odd.pcap: left aside, because the clock "), "{}", done.err);
    let again = tcpwhy(&["explain", folder, "--parquet", &at("tables")]);
    assert!(again.out.contains("2 were done before"), "{}{}", again.out, again.err);
    assert_eq!(again.code, 0, "{}", again.err);
    let sums = tcpwhy(&["summarize", &at("tables"), "--json"]);
    assert!(!sums.out.contains("odd.pcap"), "{}", sums.out);
    let alone = tcpwhy(&["explain", &at("odd.pcap"), "--parquet", &at("alone")]);
    assert!(alone.out.contains(" 2 connections, 7 exchanges"), "{}{}", alone.out, alone.err);
}

/// A capture that is cut short is damaged each time that it is named, not only when its rows are written.
#[cfg(feature = "parquet")]
#[test]
fn a_cut_capture_is_damaged_when_it_is_named_again() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    pcap.conversation(0, 30);
    let captures = dir.0.join("captures");
    std::fs::create_dir(&captures).unwrap();
    std::fs::write(captures.join("cut.pcap"), &pcap.bytes[..pcap.bytes.len() - 9]).unwrap();
    let tables = dir.0.join("tables");
    let run = || tcpwhy(&["explain", captures.to_str().unwrap(), "--parquet", tables.to_str().unwrap()]);
    for before in [false, true, true] {
        let done = run();
        assert_eq!(done.code, 1, "{}", done.err);
        assert!(done.err.contains("cut.pcap: "), "{}", done.err);
        assert_eq!(done.out.contains("1 were done before"), before, "{}", done.out);
        assert!(done.out.contains("1 are damaged"), "{}", done.out);
    }
}

/// Captures of different hosts that overlap in time have good clocks.
#[test]
fn captures_that_overlap_are_no_clock_that_ran_backwards() {
    let dir = Dir::new();
    for port in [40_000, 50_000] {
        let mut pcap = Pcap::new();
        pcap.client_port = port;
        pcap.conversation(0, 30);
        dir.file(&format!("{port}.pcap"), &pcap.bytes);
    }
    let json = tcpwhy(&["--json", dir.0.to_str().unwrap()]).json();
    let codes: Vec<_> =
        json["capture"]["warnings"].as_array().unwrap().iter().map(|w| w["code"].clone()).collect();
    assert!(!codes.contains(&"clock_step".into()), "{codes:?}");
    assert_eq!(json["summary"]["requests"].as_u64(), Some(60));
}

/// What of a damaged capture could be read is asked about, and the code says that there was more.
#[test]
fn a_damaged_capture_to_predict_from() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    pcap.conversation(0, 3);
    let whole = dir.file("whole.pcap", &pcap.bytes);
    let cut = dir.file("cut.pcap", &pcap.bytes[..pcap.bytes.len() - 10]);
    assert_eq!(tcpwhy(&["predict", "--like", &whole]).code, 0);
    tcpwhy(&["predict", "--like", &cut]).fails(1, &["cut in the middle of packet"]);
}

#[test]
fn an_exchange_that_is_not_there_is_answered_with_the_numbers_that_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/zeek__smtp_bdat.pcap");
    let asked = |more: &[&str], said: &str| {
        tcpwhy(&[&[path, "--connection", "1", "--exchange", "99"], more].concat())
            .fails(2, &["--exchange 99: connection 1 has ", said]);
    };
    asked(&[], "has 32 exchanges to choose from: 1 to 32");
    asked(&["--from", "1", "--to", "1.5"], "has 6 exchanges to choose from: 13 to 18");
    asked(&["--slower-than", "48ms"], "has 4 exchanges to choose from: 12, 19 to 20, 31");
    asked(&["--slower-than", "80ms"], "has 1 exchange to choose from: 31");
    asked(&["--slower-than", "9s"], "has no exchange to choose from");
}

#[test]
fn what_is_left_out_by_a_limit_is_not_offered_by_another_option() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/zeek__smtp_bdat.pcap");
    let asked = ["--connection", "1", "--slower-than", "48ms", "--exchanges", "all"];
    let text = tcpwhy(&[&[path], asked.as_slice()].concat()).out;
    let end = text.lines().rev().take(2).collect::<Vec<_>>();
    assert_eq!(
        end,
        [
            "  (--slower-than)",
            "  28 more exchanges (995 ms) are left out of the detail: not longer than 48.0 ms"
        ]
    );
}
