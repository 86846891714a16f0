//! Real captures, against what tshark 4.0 said of them. They lie in `$TCPWHY_CAPTURES`, else the large set
//! beside the repository, else the small one in it; without any the tests say SKIP.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "../../../tests/skips.rs"]
mod skips;

use common::{Seen, read};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Where we count otherwise than tshark: file, TCP packets more or less, payload bytes more or less, and why.
const DIFFERENCES: &[(&str, i64, i64, &str)] = &[(
    "zeek__tcp_reassembly.pcap",
    0,
    64,
    "five frames are shorter than their IP length, though not cut by a snap length: tshark takes the frame, we \
     the IP header, and the ACKs that follow cover the IP length",
)];

fn captures() -> Option<Vec<PathBuf>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = match std::env::var_os("TCPWHY_CAPTURES") {
        Some(dir) => PathBuf::from(dir),
        None => {
            let places = [here.join("../../../shared/captures"), here.join("../../captures")];
            places.into_iter().find(|dir| dir.join("reference").is_dir()).unwrap_or_default()
        }
    };
    let Ok(entries) = fs::read_dir(&dir) else {
        skip(&format!("no captures in {}; set TCPWHY_CAPTURES", dir.display()));
        return None;
    };
    let mut files: Vec<_> = entries.map(|e| e.unwrap().path()).filter(|p| reference(p).is_file()).collect();
    files.sort();
    if files.is_empty() {
        skip(&format!("no captures with a reference in {}", dir.display()));
        return None;
    }
    Some(files)
}

fn skip(why: &str) {
    skips::skip("captures beside tshark", why, env!("CARGO_TARGET_TMPDIR"));
}

fn reference(file: &Path) -> PathBuf {
    let name = format!("{}.json", file.file_name().unwrap_or_default().to_string_lossy());
    file.with_file_name("reference").join(name)
}

#[test]
fn tcp_packets_and_payload_as_tshark_counts() {
    let Some(files) = captures() else { return };
    let mut wrong = Vec::new();
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy();
        let said: Value = serde_json::from_slice(&fs::read(reference(file)).unwrap()).unwrap();
        let said = &said["tshark"];
        let seen = read(&fs::read(file).unwrap(), usize::MAX);
        let packets = seen.segments.len() as i64 - said["tcp_packets"].as_i64().unwrap();
        let streams = said["streams"].as_array().unwrap();
        let bytes = if streams.len() as i64 == said["streams_total"].as_i64().unwrap() {
            let theirs: i64 = streams
                .iter()
                .flat_map(|s| s["bytes"].as_array().unwrap())
                .map(|n| n.as_i64().unwrap())
                .sum();
            seen.segments.iter().map(|s| i64::from(s.len)).sum::<i64>() - theirs
        } else {
            0
        };
        let explained = DIFFERENCES.iter().find(|d| d.0 == name).map_or((0, 0), |d| (d.1, d.2));
        if (packets, bytes) != explained {
            wrong.push(format!("{name}: {packets:+} TCP packets, {bytes:+} payload bytes"));
        }
    }
    assert!(wrong.is_empty(), "of {} files:\n{}", files.len(), wrong.join("\n"));
}

#[test]
fn the_same_whatever_the_reads() {
    let Some(files) = captures() else { return };
    for file in files.iter().filter(|f| f.metadata().unwrap().len() < 200_000) {
        let data = fs::read(file).unwrap();
        let whole = read(&data, usize::MAX);
        for step in [1, 7, 4096] {
            let drip = read(&data, step);
            assert_eq!((drip.frames, &drip.error), (whole.frames, &whole.error), "{}", file.display());
            assert_eq!(drip.lines(), whole.lines(), "{} by {step}", file.display());
        }
    }
}

#[test]
fn cut_anywhere() {
    let Some(files) = captures() else { return };
    for file in &files {
        let data = fs::read(file).unwrap();
        let packed = data.starts_with(&[0x1f, 0x8b]);
        if packed && data.len() > 300_000 {
            continue;
        }
        let whole = read(&data, usize::MAX);
        // About 60 places, all different in what they cut: headers, packets, the last byte.
        let step = (data.len() / 60).max(1);
        let first = (0..40).chain([data.len() - 1]);
        for at in first.chain((40..data.len()).step_by(step | 1)).filter(|&at| at < data.len()) {
            let cut = read(&data[..at], usize::MAX);
            check_cut(&cut, &whole, &format!("{} cut at {at}", file.display()));
        }
    }
}

fn check_cut(cut: &Seen, whole: &Seen, what: &str) {
    assert!(cut.frames <= whole.frames, "{what}");
    assert_eq!(cut.lines()[..], whole.lines()[..cut.segments.len()], "{what}");
    if let Some(error) = &cut.error {
        let named =
            ["not a pcap", "cut in the middle of packet", "damaged"].iter().any(|m| error.contains(m));
        assert!(named, "{what}: {error}");
    }
    // A cut is told unless it falls between two packets or blocks, where nothing shows it.
    if cut.error.is_none() && cut.frames < whole.frames && whole.error.is_none() {
        let numbers: Vec<u64> = cut.segments.iter().map(|s| s.frame).collect();
        assert!(numbers.iter().all(|&n| n <= cut.frames), "{what}");
    }
}

#[test]
fn bytes_turned_over() {
    let Some(files) = captures() else { return };
    // A fixed generator (Numerical Recipes' LCG): the same bytes every time.
    let mut seed = 1u32;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % below
    };
    for file in files.iter().filter(|f| f.metadata().unwrap().len() < 100_000) {
        let data = fs::read(file).unwrap();
        for _ in 0..40 {
            let mut bad = data.clone();
            for _ in 0..1 + random(20) {
                let at = random(bad.len());
                bad[at] = random(256) as u8;
            }
            read(&bad, usize::MAX);
        }
    }
}
