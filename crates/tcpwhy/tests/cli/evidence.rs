//! Evidence leads to what it speaks of: the file, the packet, the connection.

use crate::common::{Dir, tcpwhy};
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
