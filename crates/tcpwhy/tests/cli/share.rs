//! What is given away: pages, annotated copies, slices.

use crate::common::{Dir, smtp, tcpwhy};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tcpwhy_base::{Endpoint, Nanos, Segment, SocketChange, SocketEvent};
use tcpwhy_capture::{Dissector, Reader, Verdict, Writer};

fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let labs = std::fs::read_dir(root.join("lab"))
        .unwrap()
        .flat_map(|d| std::fs::read_dir(d.unwrap().path()).unwrap());
    let programs = std::fs::read_dir(root.join("programs")).unwrap();
    let files = std::fs::read_dir(root).unwrap().chain(labs).chain(programs).map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|p| p.to_str().unwrap().contains(".pcap")).collect();
    files.sort();
    files
}

fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().unwrap().to_owned()
}

/// A connection without what a slice changes: numbers of frames and connections, addresses, the moment of its start.
fn essence(mut c: Value) -> Value {
    fn walk(v: &mut Value, start: i64) {
        match v {
            Value::Object(map) => {
                for gone in [
                    "frames",
                    "id",
                    "tshark_stream",
                    "client",
                    "server",
                    "findings",
                    "quality",
                    "why",
                    "program",
                ] {
                    if map
                        .get(gone)
                        .is_some_and(|v| !v.is_number() || gone == "id" || gone == "tshark_stream")
                        && !is_pair(map)
                    {
                        map.remove(gone);
                    }
                }
                for (name, v) in map.iter_mut() {
                    match v.as_i64().filter(|_| {
                        name.ends_with("_ns")
                            && (name.starts_with("start")
                                || name.starts_with("end")
                                || name.starts_with("request_end")
                                || name.starts_with("response_start"))
                    }) {
                        Some(ns) => *v = json!(ns - start),
                        None => walk(v, start),
                    }
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|v| walk(v, start)),
            _ => {}
        }
    }
    fn is_pair(map: &serde_json::Map<String, Value>) -> bool {
        map.len() == 2 && map.contains_key("client") && map.contains_key("server")
    }
    let start = c["start_ns"].as_i64().unwrap();
    walk(&mut c, start);
    c
}

/// Slices of the first three connections say what the whole capture says of them; how many were compared.
fn slices_say_the_same(dir: &Path, file: &Path) -> usize {
    let whole = tcpwhy(&["explain", &text(file), "--json", "--exchanges", "all"]).json();
    let mut compared = 0;
    for c in whole["connections"].as_array().unwrap().iter().take(3) {
        for anonymize in [false, true] {
            let out = text(dir.join("slice.pcapng"));
            let id = c["id"].to_string();
            let mut args = vec!["slice", file.to_str().unwrap(), "--connection", &id, "-o", &out];
            args.extend(anonymize.then_some("--anonymize"));
            let ran = tcpwhy(&args);
            assert!(ran.code <= 1, "{}", ran.err);
            let sliced = tcpwhy(&["explain", &out, "--json", "--exchanges", "all"]).json();
            let list = sliced["connections"].as_array().unwrap();
            assert_eq!(list.len(), 1, "{} {id}", file.display());
            let shown = list[0].to_string();
            if anonymize {
                let address = c["client"].as_str().unwrap().rsplit_once(':').unwrap().0;
                assert!(!shown.contains(&format!("\"{address}:")), "{address}: {shown}");
            }
            assert_eq!(essence(list[0].clone()), essence(c.clone()), "{} {id}", file.display());
            for quality in ["snaplen", "window_scale_inferred"] {
                let has = |c: &Value| c["quality"].as_array().unwrap().contains(&quality.into());
                assert_eq!(has(&list[0]), has(c), "{} {id}: {quality}", file.display());
            }
            compared += 1;
        }
    }
    compared
}

#[test]
fn a_slice_says_the_same() {
    let dir = Dir::new();
    let compared: usize = captures().iter().map(|file| slices_say_the_same(&dir.0, file)).sum();
    assert!(compared > 60, "{compared}");
}

/// A capture in which the client's kernel says of each write when it was made, and the same of a connection that is not in it.
fn with_writes() -> std::io::Result<Vec<u8>> {
    let mut reader = Reader::open(Path::new(&smtp())).expect("a bundled capture");
    let (mut dissector, mut segment) = (Dissector::new(), Segment::EMPTY);
    let mut writer = Writer::pcapng(Vec::new())?;
    while let Ok(Some(frame)) = reader.next() {
        if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp
            && segment.dst.port == 25
            && segment.len > 0
        {
            let change = SocketChange::Write { from: segment.seq, bytes: segment.len, read: None };
            let (local, remote) = (segment.src, segment.dst);
            let time = Nanos(segment.time.0 - 1_000);
            writer.event(&SocketEvent { time, local, remote, change })?;
            let local = Endpoint { port: 9, ..local };
            writer.event(&SocketEvent { time, local, remote, change })?;
        }
        writer.write(&frame, None)?;
    }
    writer.finish()
}

/// What the kernel said of a connection goes with its packets, by the addresses that these have now.
#[test]
fn a_slice_keeps_what_the_kernel_said() {
    let dir = Dir::new();
    let file = dir.file("told.pcapng", &with_writes().unwrap());
    assert_eq!(slices_say_the_same(&dir.0, Path::new(&file)), 2);
    let out = text(dir.0.join("slice.pcapng"));
    let kernel = |file: &str| tcpwhy(&["explain", file, "--json"]).out.matches("\"kernel\"").count();
    assert!(kernel(&out) > 10 && kernel(&out) == kernel(&file), "{}", kernel(&out));
    let ran = tcpwhy(&["slice", &file, "--connection", "1", "--anonymize", "-o", &out]);
    assert!(ran.err.contains("what the kernel said of it is in it"), "{}", ran.err);
    let bytes = std::fs::read(&out).unwrap();
    assert!(!bytes.windows(4).any(|w| w == [127, 0, 0, 1]), "its addresses are these");
    let written = tcpwhy(&["slice", &smtp(), "--connection", "1", "-o", &out]);
    assert!(!written.err.contains("kernel"), "{}", written.err);
}

/// Headers that were cut stay cut: the options of a SYN are not known to be absent.
#[test]
fn a_slice_of_cut_headers_says_the_same() {
    let dir = Dir::new();
    let mut compared = 0;
    for name in ["zeek__tcp_missing-syn", "zeek__smtp_bdat", "tcpdump__mptcp-v1", "zeek__tcp_ssh-dups"] {
        let whole = format!("{}/../../captures/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
        let whole = std::fs::read(whole).unwrap();
        for most in [54, 60, 66] {
            let file = dir.0.join("cut.pcap");
            std::fs::write(&file, cut(&whole, most)).unwrap();
            compared += slices_say_the_same(&dir.0, &file);
        }
    }
    assert!(compared > 20, "{compared}");
}

/// A pcap file of little-endian order, of each packet at most so many bytes.
fn cut(pcap: &[u8], most: usize) -> Vec<u8> {
    let (head, mut rest) = pcap.split_at(24);
    let mut out = head.to_vec();
    while let Some((record, after)) = rest.split_at_checked(16) {
        let captured = u32::from_le_bytes(record[8..12].try_into().unwrap()) as usize;
        let (data, next) = after.split_at(captured);
        let data = &data[..captured.min(most)];
        out.extend(&record[..8]);
        out.extend((data.len() as u32).to_le_bytes());
        out.extend(&record[12..]);
        out.extend(data);
        rest = next;
    }
    out
}

/// No answer offers a fix to the client or the server and says beside another finding of that connection that
/// it would be vain there.
#[test]
fn no_fix_is_offered_and_called_vain() {
    let list = |f: &Value, of: &str| f[of].as_array().cloned().unwrap_or_default();
    let mut refuted = 0;
    for file in captures() {
        let json = tcpwhy(&["explain", &text(&file), "--json"]).json();
        for vain in json["findings"].as_array().unwrap() {
            for fix in list(vain, "refuted") {
                let of_both = |f: &&Value| {
                    let near = list(f, "connections").iter().any(|c| list(vain, "connections").contains(c));
                    near && (f["side"] == vain["side"] || fix["id"] == "reuse_connections")
                };
                let offers =
                    |f: &Value| list(f, "fixes").iter().any(|o| o["id"] == fix["id"] && o["saves_ns"] != 0);
                let other = json["findings"].as_array().unwrap().iter().filter(of_both).find(|f| offers(f));
                assert!(other.is_none(), "{}: {fix} of {vain} is offered by {other:?}", file.display());
                refuted += 1;
            }
        }
    }
    assert!(refuted > 50, "{refuted}");
}

#[test]
fn a_slice_holds_no_payload() {
    let dir = Dir::new();
    let out = text(dir.0.join("slice.pcapng"));
    assert_eq!(tcpwhy(&["slice", &smtp(), "--connection", "1", "--anonymize", "-o", &out]).code, 0);
    let bytes = std::fs::read(&out).unwrap();
    let has = |what: &[u8]| bytes.windows(what.len()).any(|w| w == what);
    assert!(!has(b"MAIL FROM") && !has(b"BDAT") && !has(b"220 "), "SMTP is spoken in the capture");
    assert!(!has(&[127, 0, 0, 1]), "its addresses are these");
    assert!(bytes.len() < 30_000, "{}", bytes.len());
}

#[test]
fn annotated_packets_are_the_same_packets() {
    let dir = Dir::new();
    let out = text(dir.0.join("notes.pcapng"));
    let ran = tcpwhy(&["explain", &smtp(), "--annotate", &out]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let plain = |file: &str| {
        let mut all = tcpwhy(&["explain", file, "--json"]).json();
        all["capture"]["files"] = Value::Null;
        all
    };
    assert_eq!(plain(&out), plain(&smtp()));
    let Ok(done) = Command::new("tshark")
        .args(["-r", &out, "-T", "fields", "-e", "frame.number", "-e", "frame.comment"])
        .output()
    else {
        crate::skips::skip(
            "comments as tshark reads them",
            "tshark is not installed",
            env!("CARGO_TARGET_TMPDIR"),
        );
        return;
    };
    let comments: BTreeMap<u64, String> = String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .filter_map(|l| l.split_once('\t').map(|(n, c)| (n.parse().unwrap(), c.to_owned())))
        .collect();
    assert_eq!(comments.len(), 184);
    let json = plain(&smtp());
    let mut checked = 0;
    for x in json["connections"][0]["exchanges"].as_array().unwrap() {
        for span in x["spans"].as_array().unwrap() {
            // Skip inherent causes.
            if ["path_delay", "bandwidth"].contains(&span["cause"].as_str().unwrap()) {
                continue;
            }
            for key in span["frames"]["key"].as_array().unwrap() {
                let comment = &comments[&key.as_u64().unwrap()];
                let evidence = format!(
                    "evidence of {} ({})",
                    span["cause"].as_str().unwrap(),
                    span["id"].as_str().unwrap()
                );
                assert!(comment.contains(&evidence), "{evidence} is not in {comment}");
                checked += 1;
            }
        }
    }
    assert!(checked > 80, "{checked}");
    assert!(
        comments[&102].starts_with(
            "tcpwhy: cause=nagle_delayed_ack ms=48.182 side=client connection=1 exchange=19 part=exchange "
        ),
        "{}",
        comments[&102]
    );
    assert!(comments[&102].contains("finding=f2"), "{}", comments[&102]);
}

#[test]
fn annotations_name_the_finding_of_their_side() {
    let capture = format!("{}/../../captures/loopback_write_write_read.pcap", env!("CARGO_MANIFEST_DIR"));
    let dir = Dir::new();
    let out = text(dir.0.join("notes.pcapng"));
    let ran = tcpwhy(&["explain", &capture, "--json", "--annotate", &out]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let document = ran.json();
    let notes = String::from_utf8_lossy(&std::fs::read(&out).unwrap()).into_owned();
    for side in ["client", "server"] {
        let finding = document["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["cause"] == "nagle_delayed_ack" && f["side"] == side)
            .unwrap();
        let id = format!("finding={}", finding["id"].as_str().unwrap());
        // A comment is one line of text among the bytes of the packets.
        let lines = notes.lines().filter(|l| l.contains(&format!(" side={side} connection=")));
        let nagle: Vec<_> = lines.filter(|l| l.contains("tcpwhy: cause=nagle_delayed_ack ")).collect();
        assert_eq!(nagle.len() as u64, finding["occurrences"].as_u64().unwrap() * 2, "{side}");
        assert!(nagle.iter().all(|l| l.contains(&id)), "{side}: {nagle:?} do not all name {id}");
    }
}

#[test]
fn bad_outputs_leave_nothing() {
    let dir = Dir::new();
    let copy = dir.file("a.pcap", &std::fs::read(smtp()).unwrap());
    for option in ["--html", "--annotate"] {
        tcpwhy(&["explain", &copy, "-q", option, "/nowhere/at/all"])
            .fails(3, &["cannot write /nowhere/at/all"]);
        tcpwhy(&["explain", &copy, "-q", option, &text(&dir.0)]).fails(3, &["directory"]);
        tcpwhy(&["explain", &copy, "-q", option, &copy]).fails(2, &["would be overwritten"]);
        let full = tcpwhy(&["explain", &copy, "-q", option, "/dev/full"]);
        assert_eq!(full.code, 3, "{}", full.err);
        assert!(full.err.contains("/dev/full"), "{}", full.err);
        let missing = text(dir.0.join("page"));
        assert_eq!(tcpwhy(&["explain", "no.pcap", option, &missing]).code, 3);
    }
    let none = text(dir.0.join("slice.pcapng"));
    tcpwhy(&["slice", &copy, "--connection", "7", "-o", &none]).fails(2, &["no such connection"]);
    let left: Vec<_> = std::fs::read_dir(&dir.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["a.pcap"]);
}

/// A slice says what was replaced and what stays, and where the number of a connection is from.
#[test]
fn a_slice_says_what_is_in_it() {
    let dir = Dir::new();
    let out = text(dir.0.join("slice.pcapng"));
    let sliced = tcpwhy(&["slice", &smtp(), "--connection", "1", "--anonymize", "-o", &out]);
    for part in [
        "addresses were replaced",
        "times, ports, sizes, sequence numbers, TTL",
        "the first word of HTTP and SSH",
    ] {
        assert!(sliced.code == 0 && sliced.err.contains(part), "{part:?} is not in\n{}", sliced.err);
    }
    let plain = tcpwhy(&["slice", &smtp(), "--connection", "1", "-o", &out]);
    assert!(
        plain.code == 0 && plain.err.contains("addresses are the true ones (--anonymize replaces them)"),
        "{}",
        plain.err
    );
    let file = smtp();
    let lists = format!("`tcpwhy {file}` lists the connections with their numbers");
    tcpwhy(&["slice", &file, "-o", &out]).fails(2, &["--connection says which", &lists]);
}

/// The capture may be the only one there is: no command writes onto what it reads, by whatever name.
#[test]
fn no_input_is_overwritten() {
    let dir = Dir::new();
    let bytes = std::fs::read(smtp()).unwrap();
    let input = dir.file("in.pcap", &bytes);
    let other = dir.file("other.pcap", &bytes);
    let scenario =
        dir.file("s.toml", b"title = 's'\n[workload]\nrequests = 1\nrequest = [10]\nresponse = [10]\n");
    let (link, hard) = (text(dir.0.join("link.pcap")), text(dir.0.join("hard.pcap")));
    std::os::unix::fs::symlink("in.pcap", &link).unwrap();
    std::fs::hard_link(&input, &hard).unwrap();
    let dotted = text(dir.0.join("./in.pcap"));
    for name in [&input, &link, &hard, &dotted] {
        for command in [
            vec!["explain", &input, "-o", name],
            vec!["explain", &input, "--json", "-o", name],
            vec!["explain", &input, "--jsonl", "-o", name],
            vec!["explain", &input, "--html", name],
            vec!["explain", &input, "--annotate", name],
            vec!["explain", &input, "--connection", "1", "--svg", name],
            vec!["compare", &other, &input, "-o", name],
            vec!["compare", &input, &other, "--json", "-o", name],
            vec!["compare", &input, &other, "--html", name],
            vec!["slice", &input, "--connection", "1", "-o", name],
            vec!["predict", "--like", &input, "--connection", "1", "-o", name],
            vec!["predict", "--like", &input, "--connection", "1", "--write", name],
        ] {
            tcpwhy(&command).fails(2, &["is an input and would be overwritten"]);
        }
    }
    tcpwhy(&["predict", &scenario, "-o", &scenario]).fails(2, &["would be overwritten"]);
    let page = text(dir.0.join("page"));
    tcpwhy(&["explain", &input, "-o", &page, "--html", &page]).fails(2, &["named for two outputs"]);
    tcpwhy(&["explain", &input, "--html", "-"]).fails(2, &["--html -", "name a file"]);
    assert_eq!((std::fs::read(&input).unwrap(), std::fs::read(&other).unwrap()), (bytes.clone(), bytes));
    assert!(!dir.0.join("page").exists() && !Path::new("-").exists());
}

/// What is written over keeps its permissions, and a symbolic link stays one.
#[test]
fn permissions_and_links_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = Dir::new();
    let (file, link) = (dir.file("old.json", b"old"), text(dir.0.join("link.json")));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("old.json", &link).unwrap();
    for name in [&file, &link] {
        std::fs::write(&file, "old").unwrap();
        assert_eq!(tcpwhy(&["explain", &smtp(), "--json", "-o", name]).code, 0);
        assert!(std::fs::read_to_string(&file).unwrap().contains("\"findings\""));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let dangling = text(dir.0.join("dangling.json"));
    std::os::unix::fs::symlink("new.json", &dangling).unwrap();
    assert_eq!(tcpwhy(&["explain", &smtp(), "--json", "-o", &dangling]).code, 0);
    assert!(dir.0.join("new.json").is_file() && std::fs::symlink_metadata(&dangling).unwrap().is_symlink());
    let mut slice = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    let sliced = slice.args(["slice", &smtp(), "--connection", "1", "-o", "-"]).output().unwrap();
    assert!(sliced.status.success() && sliced.stdout.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    assert!(!Path::new("-").exists());
}

#[test]
fn a_page_from_standard_input() {
    let dir = Dir::new();
    let page = text(dir.0.join("page.html"));
    let ran = crate::common::tcpwhy_with(&["-", "-q", "--html", &page], &std::fs::read(smtp()).unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("id=\"d-packets-0\"") && html.contains("standard input"));
    assert!(html.contains(
        "<h1>32 requests to 127.0.0.1:25 in 1.25 s (median 41.5 ms, p95 49.0 ms). 1.16 s (93 %) of it is Nagle × \
         delayed ACK. Idle between requests: 1.59 s.</h1>"
    ));
}
