//! How fast a capture is read and dissected on one core:
//! `cargo run --release -p tcpwhy-capture --example speed -- FILE [RUNS]`, or `--make FILE PACKETS` for a
//! file of 72-byte packets without payload.

use std::env;
use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;
use tcpwhy_base::Segment;
use tcpwhy_capture::{Dissector, Reader, Verdict};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--make", file, packets] => make(file, packets.parse()?),
        [file] => run(file, 5),
        [file, runs] => run(file, runs.parse()?),
        _ => Err("usage: speed FILE [RUNS] | speed --make FILE PACKETS".into()),
    }
}

fn run(file: &str, runs: u32) -> Result<(), Box<dyn Error>> {
    for _ in 0..runs {
        let begin = Instant::now();
        let mut reader = Reader::open(Path::new(file))?;
        while let Some(frame) = reader.next()? {
            black_box(frame);
        }
        let reading = begin.elapsed();

        let begin = Instant::now();
        let mut reader = Reader::open(Path::new(file))?;
        let mut dissector = Dissector::new();
        let mut segment = Segment::EMPTY;
        let (mut tcp, mut bytes) = (0u64, 0u64);
        while let Some(frame) = reader.next()? {
            if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp {
                tcp += 1;
                bytes += u64::from(black_box(&segment).len);
            }
        }
        let both = begin.elapsed();
        let frames = reader.frames();
        let rate = |time: std::time::Duration| frames as f64 / time.as_secs_f64() / 1e6;
        println!(
            "{frames} frames, {tcp} TCP, {bytes} payload bytes: read {:.1} M/s, read and dissect {:.1} M/s",
            rate(reading),
            rate(both)
        );
    }
    Ok(())
}

/// Ethernet, IPv4, TCP with timestamps, cut to 56 bytes after the record header's 16 (72 in all), or whole.
fn make(file: &str, packets: u64) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
    let header: [u32; 6] = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1];
    for word in header {
        out.write_all(&word.to_le_bytes())?;
    }
    for n in 0..packets {
        let flow = (n % 20_000) as u32;
        let mut p = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 5, 220];
        p.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 1, 0, 2]);
        p.extend(((flow % 60_000) as u16 + 1024).to_be_bytes());
        p.extend([0, 80]);
        p.extend((n as u32).to_be_bytes());
        p.extend([0, 0, 0, 1, 0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        p.extend((n as u32).to_be_bytes());
        p.extend([0, 0, 0, 9]);
        for word in [(n / 1_000_000) as u32, (n % 1_000_000 * 1000) as u32, p.len() as u32, 1514] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(&p)?;
    }
    out.flush()?;
    Ok(())
}
