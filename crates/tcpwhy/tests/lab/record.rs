//! `tcpwhy record` beside the lab's runs: what `explain` then says with the kernel as witness is what the
//! label of the run says.

use crate::common::{BIN, Dir, alone, skip};
use crate::watch::{UPLOAD, beside};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Nanoseconds by cause and source.
type Times = BTreeMap<(String, String), i64>;

/// Time in requests by cause and source where most kernel events were seen, which is at the sender; and what
/// the label says of the client's capture. Again where the recording came too late to see most of these
/// bytes.
fn recorded(bytes: u64, options: &str) -> Option<(Times, Value)> {
    let scenario = format!("{}{options}", UPLOAD.replace("BYTES", &bytes.to_string()));
    for _ in 0..3 {
        let dir = Dir::new();
        let file = dir.0.join("NUMBER.pcapng");
        let (_, label) = beside(&scenario, &["record", "-o", file.to_str().unwrap()])?;
        let files = fs::read_dir(&dir.0).unwrap().map(|entry| entry.unwrap().path());
        // Blocks of their type, in a file whose words are aligned.
        let events = |path: &PathBuf| {
            let bytes = fs::read(path).unwrap();
            bytes.chunks_exact(4).filter(|word| **word == 0x8000_0bad_u32.to_le_bytes()).count()
        };
        let Some((events, path)) = files.map(|path| (events(&path), path)).max() else { continue };
        if events == 0 {
            return skip("there are no kernel events");
        }
        let done = Command::new(BIN).arg("explain").arg(path).arg("--json").output().unwrap();
        let document: Value = serde_json::from_slice(&done.stdout).unwrap();
        let connections = document["connections"].as_array().unwrap();
        let seen: u64 = connections.iter().map(|c| c["bytes"]["client"].as_u64().unwrap()).sum();
        if seen > bytes / 10 * 9 {
            return Some((
                times(connections),
                label["truth"]["captures"]["client"]["checks"][0]["dominant"].clone(),
            ));
        }
    }
    skip("the machine is too busy: no recording came in time")
}

fn times(connections: &[Value]) -> Times {
    let mut times = Times::new();
    let exchanges = connections.iter().flat_map(|c| c["exchanges"].as_array().unwrap());
    for span in exchanges.flat_map(|e| e["spans"].as_array().unwrap()) {
        let name = |key: &str| span[key].as_str().unwrap().to_owned();
        let long = span["end_ns"].as_i64().unwrap() - span["start_ns"].as_i64().unwrap();
        *times.entry((name("cause"), name("source"))).or_default() += long;
    }
    times
}

fn time(times: &Times, cause: &str, source: &str) -> i64 {
    times.get(&(cause.to_owned(), source.to_owned())).copied().unwrap_or(0)
}

#[test]
fn the_kernel_says_that_the_send_buffer_was_full() {
    let Some(_alone) = alone() else { return };
    let client = "[client]\nnodelay = true\nsndbuf = 16384\nwrite_chunk = 4096\n";
    let Some((times, dominant)) = recorded(2_500_000, client) else { return };
    let all = dominant.as_array().unwrap();
    assert!(all.is_empty() || all.iter().any(|c| c == "send_buffer"), "{dominant}");
    let (told, inferred) = (time(&times, "send_buffer", "kernel"), time(&times, "send_buffer", "inferred"));
    assert!(told > 1_000_000_000 && told > 9 * inferred, "{times:?}");
}

/// A writer on a full send buffer that does not sleep, but is refused and told when there is room.
#[test]
fn the_kernel_says_that_a_writer_was_refused_for_want_of_buffer() {
    let Some(_alone) = alone() else { return };
    let client = "[client]\nnodelay = true\nsndbuf = 16384\nwrite_chunk = 4096\nepoll = true\n";
    let Some((times, _)) = recorded(2_500_000, client) else { return };
    let (told, inferred) = (time(&times, "send_buffer", "kernel"), time(&times, "send_buffer", "inferred"));
    assert!(told > 1_000_000_000 && told > 4 * inferred, "{times:?}");
    let paused = time(&times, "sender_pause", "kernel") + time(&times, "sender_pause", "inferred");
    // At most the pause of the scenario: it wrote as soon as it was told of room.
    assert!(paused < 1_000_000_000, "{times:?}");
}

/// A writer also sleeps where the network is the limit: that is no fault of its buffer.
#[test]
fn a_writer_that_sleeps_for_the_network_is_not_put_down_to_its_buffer() {
    let Some(_alone) = alone() else { return };
    let Some((times, _)) = recorded(9_000_000, "") else { return };
    let link = time(&times, "bandwidth", "inferred");
    assert!(link > 300_000_000, "{times:?}");
    // But for moments: from the ACK that made room until the writer has woken up nothing else holds it.
    assert!(time(&times, "send_buffer", "kernel") < link / 100, "{times:?}");
}
