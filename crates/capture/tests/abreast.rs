//! Several readers of one stream: each sees what one alone would see, none gets far before the others, and
//! one that is gone holds nobody up.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{self, Read};
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tcpwhy_base::{Nanos, Part, Segment};
use tcpwhy_capture::{Dissector, Frame, Reader, Taker, Verdict, Writer};

/// What a reader gives: a line for each frame, and how it ends.
#[derive(Default)]
struct Lines(Vec<String>);

impl Taker for Lines {
    fn take(&mut self, f: &Frame<'_>) {
        let sum = f.data.iter().fold(0u32, |sum, &b| sum.rotate_left(5) ^ u32::from(b));
        self.0.push(format!("{} {} {} {} {} {sum}", f.number, f.time.0, f.bad_time, f.link_type, f.len));
    }
}

/// In rows or one by one.
fn lines(mut reader: Reader, rows: bool) -> Vec<String> {
    let mut lines = Lines::default();
    loop {
        if rows && !lines.0.is_empty() {
            reader.give_here(1_000, &mut lines);
        }
        match reader.next() {
            Ok(Some(frame)) => lines.take(&frame),
            Ok(None) => break,
            Err(e) => {
                lines.0.push(e.to_string());
                break;
            }
        }
    }
    lines.0.push(format!("{} at {}, dropped {:?}", reader.frames(), reader.offset(), reader.capture_drops()));
    lines.0
}

fn all_alike(alone: Reader, several: Reader, what: &str) {
    let expected = lines(alone, false);
    let readers = several.abreast(3);
    assert_eq!(readers.len(), 3);
    let threads: Vec<_> =
        (0..).zip(readers).map(|(i, reader)| thread::spawn(move || lines(reader, i != 1))).collect();
    for (i, one) in threads.into_iter().enumerate() {
        assert!(one.join().unwrap() == expected, "{what}: reader {i} sees something else");
    }
}

/// Captures of the project, packed ones as well, and each of them cut.
fn captures() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let captures: Vec<_> = all.filter(|path| path.to_string_lossy().contains(".pcap")).collect();
    assert!(captures.len() > 20);
    captures
}

#[test]
fn each_reader_sees_every_frame() {
    for path in captures() {
        let what = path.display().to_string();
        if cfg!(not(feature = "compress")) && what.ends_with(".gz") {
            continue;
        }
        all_alike(Reader::open(&path).unwrap(), Reader::open(&path).unwrap(), &what);
        let bytes = std::fs::read(&path).unwrap();
        let cut = || {
            let bytes = bytes[..bytes.len() * 9 / 10].to_vec();
            Reader::new(Box::new(io::Cursor::new(bytes)))
        };
        if let (Ok(alone), Ok(several)) = (cut(), cut()) {
            all_alike(alone, several, &format!("{what}, cut"));
        }
        let turned_over = || {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            bytes[middle..middle + 8].iter_mut().for_each(|byte| *byte ^= 0x55);
            Reader::new(Box::new(io::Cursor::new(bytes)))
        };
        if let (Ok(alone), Ok(several)) = (turned_over(), turned_over()) {
            all_alike(alone, several, &format!("{what}, turned over"));
        }
    }
}

/// `count` frames of 1,000 bytes: more than lies between the first and the last reader.
fn large(count: i64) -> Vec<u8> {
    let mut writer = Writer::pcap(Vec::new(), 1).unwrap();
    let mut data = vec![0; 1_000];
    for i in 0..count {
        data[40..48].copy_from_slice(&i.to_be_bytes());
        writer.write(&Frame::new(Nanos::millis(i), 1, &data), None).unwrap();
    }
    writer.finish().unwrap()
}

/// Frames of which more is left at the end of a piece than there is room for before what was read ahead.
#[test]
fn large_frames_are_put_together() {
    let mut writer = Writer::pcap(Vec::new(), 1).unwrap();
    for i in 0..60_i64 {
        let data: Vec<u8> = (0..20_000 + i * 1_777).map(|at| (at * 31 + i) as u8).collect();
        writer.write(&Frame::new(Nanos::millis(i), 1, &data), None).unwrap();
    }
    let bytes = writer.finish().unwrap();
    for end in [bytes.len(), bytes.len() - 5_000, bytes.len() / 2] {
        let reader = || Reader::new(Box::new(io::Cursor::new(bytes[..end].to_vec()))).unwrap();
        all_alike(reader(), reader(), &format!("{end} bytes of large frames"));
    }
}

/// What is read at once stays as much, whatever was left of the pieces before.
#[test]
fn large_frames_make_no_piece_larger() {
    let mut writer = Writer::pcap(Vec::new(), 1).unwrap();
    let data = vec![7; 61_000];
    (0..400).for_each(|i| writer.write(&Frame::new(Nanos::millis(i), 1, &data), None).unwrap());
    let bytes = writer.finish().unwrap();
    let end = bytes.len();
    let (reader, read) = Source::reader(bytes, end, false);
    let mut reader = reader.abreast(1).remove(0);
    let mut frames = 0;
    while read.load(Relaxed) < end {
        assert!(reader.next().unwrap().is_some());
        frames += 1;
        // A piece, and the next one.
        assert!(read.load(Relaxed) - reader.offset() as usize <= 640 << 10, "frame {frames}");
    }
    assert!(frames > 300);
}

/// Counts what was read, and fails once, or panics, behind `end` bytes.
struct Source {
    bytes: io::Cursor<Vec<u8>>,
    read: Arc<AtomicUsize>,
    end: usize,
    panics: bool,
    failed: bool,
}

impl Source {
    fn reader(bytes: Vec<u8>, end: usize, panics: bool) -> (Reader, Arc<AtomicUsize>) {
        let read = Arc::new(AtomicUsize::new(0));
        let source =
            Source { bytes: io::Cursor::new(bytes), read: Arc::clone(&read), end, panics, failed: false };
        (Reader::new(Box::new(source)).unwrap(), read)
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.end - self.read.load(Relaxed);
        if left == 0 {
            assert!(!self.panics, "a decoder has a fault");
            // Who asks again is told that there is no more, which is another error or none.
            return if mem::replace(&mut self.failed, true) {
                Ok(0)
            } else {
                Err(io::Error::from_raw_os_error(5))
            };
        }
        let room = buf.len().min(left);
        let n = self.bytes.read(&mut buf[..room])?;
        self.read.fetch_add(n, Relaxed);
        Ok(n)
    }
}

#[test]
fn an_error_comes_to_all_behind_the_same_frame() {
    let bytes = large(20_000);
    for end in [100_000, 3_000_000, 12_345_678] {
        let [alone, several] = [(); 2].map(|()| Source::reader(bytes.clone(), end, false).0);
        all_alike(alone, several, "a disk that fails");
    }
}

/// What is packed comes in other portions to one reader alone than to several, and an error of it behind other bytes.
#[cfg(feature = "compress")]
#[test]
fn packed_captures_are_unpacked_alike() {
    use std::io::Write;
    let mut noise = 1_u32;
    let mut bytes = large(10_000);
    for record in bytes[24..].chunks_exact_mut(1_016) {
        for byte in &mut record[100..] {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (noise >> 24) as u8;
        }
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&bytes).unwrap();
    let packed = packed.finish().unwrap();
    assert!(packed.len() > 5_000_000);
    let middle = packed.len() / 2;
    let of = |bytes: &[u8]| Source::reader(bytes.to_vec(), usize::MAX, false).0;
    all_alike(of(&packed), of(&packed), "packed");
    all_alike(of(&packed[..middle]), of(&packed[..middle]), "packed, cut");
    let mut turned_over = packed.clone();
    turned_over[middle] ^= 0x55;
    all_alike(of(&turned_over), of(&turned_over), "packed, turned over");
    let fails = || Source::reader(packed.clone(), middle, false).0;
    all_alike(fails(), fails(), "packed, on a disk that fails");
}

#[test]
fn a_source_that_panics_holds_nobody_up() {
    let readers = Source::reader(large(20_000), 5_000_000, true).0.abreast(3);
    let threads: Vec<_> =
        readers.into_iter().map(|reader| thread::spawn(move || lines(reader, true))).collect();
    let ends: Vec<_> = threads.into_iter().map(thread::JoinHandle::join).collect();
    // One of them met it; the others say that reading failed.
    assert_eq!(ends.iter().filter(|end| end.is_err()).count(), 1);
    for lines in ends.into_iter().flatten() {
        assert!(lines[lines.len() - 2].contains("reading it failed"), "{lines:?}");
    }
}

/// How much of the stream a reader takes until it has to wait.
fn read_until_it_waits(read: &AtomicUsize) -> usize {
    let began = Instant::now();
    let mut before = usize::MAX;
    while before != read.load(Relaxed) && began.elapsed() < Duration::from_secs(20) {
        before = read.load(Relaxed);
        thread::sleep(Duration::from_millis(200));
    }
    before
}

#[test]
fn none_gets_far_before_the_last_until_that_is_gone() {
    let (reader, read) = Source::reader(large(40_000), usize::MAX, false);
    let mut readers = reader.abreast(2);
    let (slow, fast) = (readers.pop().unwrap(), readers.pop().unwrap());
    let fast = thread::spawn(move || lines(fast, true));
    let before = read_until_it_waits(&read);
    assert!(!fast.is_finished());
    assert!((1 << 20..8 << 20).contains(&before), "{before} bytes");
    drop(slow);
    assert_eq!(fast.join().unwrap().len(), 40_001);
    assert!(read.load(Relaxed) > 40_000_000);
}

/// Packets of some megabytes each: not as many pieces of them are ahead as of others, and all come to the end.
#[test]
fn large_packets_are_few_ahead() {
    let mut writer = Writer::pcap(Vec::new(), 1).unwrap();
    let data = vec![7; 3 << 20];
    (0..16).for_each(|i| writer.write(&Frame::new(Nanos::millis(i), 1, &data), None).unwrap());
    let bytes = writer.finish().unwrap();
    let (reader, read) = Source::reader(bytes, usize::MAX, false);
    let mut readers = reader.abreast(2);
    let (slow, fast) = (readers.pop().unwrap(), readers.pop().unwrap());
    let fast = thread::spawn(move || lines(fast, true));
    let before = read_until_it_waits(&read);
    assert!(!fast.is_finished() && before < 12 << 20, "{before} bytes");
    assert_eq!(lines(slow, true), fast.join().unwrap());
    assert!(read.load(Relaxed) > 48 << 20);
}

#[test]
fn the_next_piece_is_here_before_it_is_needed() {
    let bytes = large(2_000);
    let end = bytes.len();
    let (reader, read) = Source::reader(bytes, end, false);
    let mut readers = reader.abreast(2);
    let (first, second) = readers.split_at_mut(1);
    let begun = read.load(Relaxed);
    while read.load(Relaxed) == begun {
        assert!(first[0].next().unwrap().is_some());
    }
    // It is at the beginning of its first piece, of twice the bytes with which a stream begins, and as many
    // lie behind that.
    let (here, piece) = (read.load(Relaxed), 128 << 10);
    assert!(here - first[0].offset() as usize > piece * 3 / 2);
    // Who comes later finds that, and reads what is behind it.
    while read.load(Relaxed) == here {
        assert!(second[0].next().unwrap().is_some());
    }
    assert!(here - second[0].offset() as usize > piece / 2);
}

/// The parts of all connections are all of them, and what is counted is everything in each.
#[test]
fn parts_make_up_the_whole() {
    let of = |path: &Path, part: Part| {
        let (mut reader, mut dissector) = (Reader::open(path).unwrap(), Dissector::new());
        let (mut segment, mut lines) = (Segment::EMPTY, Vec::new());
        while let Ok(Some(frame)) = reader.next() {
            match dissector.dissect_of(part, &frame, 0, &mut segment) {
                Some(Verdict::Tcp) => {
                    assert!(part.has(&segment.src, &segment.dst) && part.has(&segment.dst, &segment.src));
                    lines.push((segment.frame, format!("{segment:?}")));
                }
                None => assert_ne!(part, Part::ALL),
                Some(_) => {}
            }
        }
        (lines, dissector.counts().clone(), dissector.incomplete())
    };
    let mut shared = 0;
    for path in captures() {
        if cfg!(not(feature = "compress")) && path.to_string_lossy().ends_with(".gz") {
            continue;
        }
        let all = of(&path, Part::ALL);
        let parts = [0, 1, 2].map(|mine| of(&path, Part::new(mine, 3)));
        shared += usize::from(parts.iter().filter(|part| !part.0.is_empty()).count() > 1);
        assert!(parts.iter().all(|part| (&part.1, part.2) == (&all.1, all.2)), "{}", path.display());
        let mut lines: Vec<_> = parts.into_iter().flat_map(|part| part.0).collect();
        lines.sort();
        assert_eq!(lines, all.0, "{}", path.display());
    }
    assert!(shared > 3, "{shared} captures have several connections");
}
