//! Several cores read the same captures: they stop at the same packet, and go through many inputs in one order.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_library::captures::{Analysis, Capture, Captures};
use tcpwhy_library::packets::{Frame, Writer};
use tcpwhy_library::{Nanos, Reader};

/// Somebody stops the reading behind so many bytes.
struct Stopping {
    bytes: Vec<u8>,
    at: u64,
    stop: Arc<AtomicBool>,
}

struct Source {
    bytes: io::Cursor<Vec<u8>>,
    at: u64,
    stop: Arc<AtomicBool>,
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.bytes.position() >= self.at {
            self.stop.store(true, Relaxed);
        }
        self.bytes.read(buf)
    }
}

impl Capture for Stopping {
    fn open(&self) -> Result<Reader, String> {
        let (bytes, stop) = (io::Cursor::new(self.bytes.clone()), Arc::clone(&self.stop));
        Reader::new(Box::new(Source { bytes, at: self.at, stop })).map_err(|e| e.to_string())
    }

    fn open_following(&self, _: &Arc<AtomicBool>) -> Result<Reader, String> {
        self.open()
    }
}

/// Segments of 500 connections in turns.
fn interleaved(segments: u32) -> Vec<u8> {
    let mut writer = Writer::pcap(Vec::new(), 1).unwrap();
    for n in 0..segments {
        let mut data = vec![2; 12];
        data.extend([8, 0, 0x45, 0, 0, 41, 0, 0, 0x40, 0, 63, 6, 0, 0, 10, 0, 0, 200, 192, 168, 1, 2]);
        data.extend((20_000 + (n % 500) as u16).to_be_bytes());
        data.extend([1, 0xbb]);
        data.extend((n / 500).to_be_bytes());
        data.extend([0, 0, 0, 9, 0x50, 0x18, 0x20, 0, 0, 0, 0, 0, 7]);
        writer.write(&Frame::new(Nanos::micros(i64::from(n)), 1, &data), None).unwrap();
    }
    writer.finish().unwrap()
}

fn packets(analysis: &Analysis) -> u64 {
    analysis.connections.iter().map(|c| c.packets.iter().sum::<u64>()).sum()
}

#[test]
fn all_stop_at_the_same_packet() {
    let bytes = interleaved(200_000);
    for at in [0, 1_000_000, 7_654_321] {
        let stop = Arc::new(AtomicBool::new(false));
        let input = [Stopping { bytes: bytes.clone(), at, stop: Arc::clone(&stop) }];
        let (analysis, read) = Captures::new(&input).stopped_by(&stop).explain(&mut |_, _| ()).unwrap();
        assert!(read.interrupted && read.damaged.is_empty());
        assert!(read.packets < 200_000);
        assert_eq!(packets(&analysis), read.packets);
        // What was read before is in the answer.
        assert!(read.packets >= at / 72, "{} packets", read.packets);
    }
}

#[test]
fn many_inputs_are_read_in_one_order() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let name = |name: &str| folder.join(name);
    let once = ["zeek__smtp_bdat.pcap", "missing.pcap", "zeek__tcp_reassembly.pcap", "README.md"];
    // More than lie between the first and the last thread.
    let inputs: Vec<PathBuf> = once.iter().cycle().take(80).map(|n| name(n)).collect();
    let (analysis, read) = Captures::new(&inputs).explain(&mut |_, _| ()).unwrap();
    let frames = |path: PathBuf| {
        let mut reader = Reader::open(&path).unwrap();
        while let Ok(Some(_)) = reader.next() {}
        reader.frames()
    };
    let each = [frames(name(once[0])), 0, frames(name(once[2])), 0];
    let before = (0..80).scan(0, |sum, i| Some(std::mem::replace(sum, *sum + each[i % 4])));
    assert_eq!(read.frames_before, before.collect::<Vec<_>>());
    assert_eq!((read.opened, read.unreadable.len()), (40, 40));
    assert!(read.unreadable.chunks(2).all(|two| two[0].contains("missing") && two[1].contains("README")));
    assert_eq!(packets(&analysis), read.counts.tcp);
}
