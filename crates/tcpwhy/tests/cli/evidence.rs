//! Evidence leads to what it speaks of: the file, the packet, the connection.

use crate::common::{Client, Dir, Pcap, SYN, tcpwhy};
use std::fs;

fn bundled(name: &str) -> String {
    format!("{}/../../captures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Evidence of a folder names its file, and packets are numbered as in the evidence, by the file.
#[test]
fn evidence_of_a_folder_can_be_opened() {
    let dir = Dir::new();
    for (name, from) in [("a.pcap", "zeek__smtp_bdat.pcap"), ("b.pcap", "loopback_write_write_read.pcap")] {
        fs::copy(bundled(from), dir.0.join(name)).unwrap();
    }
    let folder = dir.0.display().to_string();
    let ran = tcpwhy(&[&folder, "--connection", "2", "--exchange", "1"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("frames 1 to 246 of b.pcap"), "{words}");
    assert!(words.contains("Frames 4>6 of b.pcap. 4 +0.000 ms client >"), "{words}");
    // Of names that are not enough to tell them apart the whole is said.
    let (one, two) = (dir.0.join("one"), dir.0.join("two"));
    for (folder, name) in [(&one, "a.pcap"), (&two, "b.pcap")] {
        fs::create_dir(folder).unwrap();
        fs::rename(dir.0.join(name), folder.join("cap.pcap")).unwrap();
    }
    let ran = tcpwhy(&[&folder, "--connection", "2"]);
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("frames 1 to 246 of {}", two.join("cap.pcap").display())), "{words}");
}

/// What speaks for a cause is asked of the connections that have it.
#[test]
fn a_question_about_a_cause_begins_where_it_was_found() {
    let path = bundled("PcapPlusPlus__pcapng-example.pcapng");
    let ran = tcpwhy(&[&path, "--why-not", "slow_reader"]);
    let first = ran.out.lines().find(|line| line.contains("- connection ")).unwrap();
    assert!(first.contains("connection 1:"), "{}", ran.out);
}

/// Then of those where it may have been: their SYNs were repeated, and no packet tells who dropped them.
#[test]
fn a_question_about_a_cause_goes_on_where_it_may_have_been() {
    let path = bundled("lab/accept_overflow_abort0/cap.client.pcap.zst");
    let ran = tcpwhy(&[&path, "--why-not", "accept_queue_full"]);
    let shown: Vec<&str> = ran.out.lines().filter(|line| line.contains("- connection ")).collect();
    assert_eq!(shown.len(), 3, "{}", ran.out);
    assert!(shown.iter().all(|line| !line.contains("client 0, server 0")), "{}", ran.out);
}

/// The slowest waits are the openings there, in which the listener dropped SYNs; and what is not listed is
/// said, with what lists it.
#[test]
fn slow_openings_are_among_the_slowest_and_the_others_can_be_seen() {
    let path = bundled("lab/accept_overflow_abort0/cap.client.pcap.zst");
    let rows = |more: &[&str]| {
        let ran = tcpwhy(&[&[path.as_str()], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        let table = ran.out.lines().skip_while(|line| !line.contains("exchange       start")).skip(1);
        let rows = table.take_while(|line| !line.is_empty()).map(|line| line.trim().to_owned());
        rows.collect::<Vec<_>>()
    };
    let few = rows(&[]);
    assert!(few.len() == 4 && few[..3].iter().all(|row| row.contains("opening")), "{few:#?}");
    assert_eq!(few[3], "and 10 shorter: --top 13");
    let all = rows(&["--top", "13"]);
    let openings = all.iter().filter(|row| row.contains("opening")).count();
    assert_eq!((all.len(), openings), (13, 5), "{all:#?}");
    assert_eq!(rows(&["--top", "5"]).last().unwrap(), "and 8 shorter: --top 13");
    // Most of the time lies in openings, which are in no exchange: one of them is worth a look.
    let hint = tcpwhy(&[&path]).out;
    assert!(hint.trim_end().ends_with("--connection 7"), "{hint}");
    let left_out = rows(&["--exchanges", "worst=2"]);
    assert_eq!(left_out[3], "and 10 shorter: --top 7, or --exchanges all --top 13");
}

/// A scan is said first: the connection that stands for all of it is not one that anybody had.
#[test]
fn a_scan_is_not_one_connection() {
    let (dir, mut pcap) = (Dir::new(), Pcap::new());
    for n in 0..1_440 {
        pcap.hosts = (1, 2 + (n % 240) as u8);
        pcap.client_port = 40_000 + n;
        pcap.tcp(u64::from(n) * 10_000, Client, SYN, 0, 0, 0);
    }
    let said = tcpwhy(&[&dir.file("scan.pcap", &pcap.bytes)]).out.replace('\n', " ");
    assert!(
        said.starts_with("10.0.0.1 asked 240 addresses (240 with their ports) with 1440 SYNs: none"),
        "{said}"
    );
}
