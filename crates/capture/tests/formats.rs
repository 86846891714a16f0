//! File formats, byte by byte.

mod common;

use common::{Drip, read};
use proptest::prelude::*;
use std::io::{Cursor, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tcpwhy_base::{Endpoint, Held, Nanos, Seq, SocketChange, SocketEvent, SocketState, Timer};
use tcpwhy_capture::{Frame, Reader, Writer};

/// What can be seen of a frame: time, bad time, link type, bytes, original length.
type Plain = (i64, bool, u32, Vec<u8>, u32);

fn frames(data: &[u8]) -> (Vec<Plain>, Option<String>) {
    let mut all = Vec::new();
    let mut reader = match Reader::new(Box::new(Cursor::new(data.to_vec()))) {
        Ok(reader) => reader,
        Err(e) => return (all, Some(e.to_string())),
    };
    loop {
        match reader.next() {
            Ok(Some(f)) => {
                assert_eq!(f.number, all.len() as u64 + 1);
                all.push((f.time.0, f.bad_time, f.link_type, f.data.to_vec(), f.len));
            }
            Ok(None) => return (all, None),
            Err(e) => return (all, Some(e.to_string())),
        }
    }
}

/// Integers in one byte order, one after the other.
struct Bytes {
    big: bool,
    out: Vec<u8>,
}

impl Bytes {
    fn new(big: bool) -> Bytes {
        Bytes { big, out: Vec::new() }
    }
    fn u16(mut self, n: u16) -> Bytes {
        self.out.extend(if self.big { n.to_be_bytes() } else { n.to_le_bytes() });
        self
    }
    fn u32(mut self, n: u32) -> Bytes {
        self.out.extend(if self.big { n.to_be_bytes() } else { n.to_le_bytes() });
        self
    }
    fn u64(mut self, n: u64) -> Bytes {
        self.out.extend(if self.big { n.to_be_bytes() } else { n.to_le_bytes() });
        self
    }
    fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.out.extend(bytes);
        self
    }
    fn option(self, code: u16, value: &[u8]) -> Bytes {
        let pad = value.len().next_multiple_of(4) - value.len();
        self.u16(code).u16(value.len() as u16).raw(value).raw(&[0; 3][..pad])
    }
    /// This as the body of a pcapng block.
    fn block(self, kind: u32) -> Vec<u8> {
        let pad = self.out.len().next_multiple_of(4) - self.out.len();
        let n = self.out.len() as u32 + pad as u32 + 12;
        Bytes::new(self.big).u32(kind).u32(n).raw(&self.out).raw(&[0; 3][..pad]).u32(n).out
    }
}

fn pcap(big: bool, magic: u32, minor: u16, link: u32) -> Bytes {
    Bytes::new(big).u32(magic).u16(2).u16(minor).u32(0).u32(0).u32(65_535).u32(link)
}

fn section(big: bool) -> Vec<u8> {
    Bytes::new(big).u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX).block(0x0a0d_0d0a)
}

fn interface(big: bool, link: u16, snaplen: u32) -> Bytes {
    Bytes::new(big).u16(link).u16(0).u32(snaplen)
}

fn packet(big: bool, id: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let n = data.len() as u32;
    let fixed = Bytes::new(big).u32(id).u32((ticks >> 32) as u32).u32(ticks as u32).u32(n).u32(n + 1);
    fixed.raw(data).block(6)
}

#[test]
fn pcap_in_all_its_forms() {
    for big in [false, true] {
        for (magic, unit, bad) in [(0xa1b2_c3d4, 1000, 1_000_000), (0xa1b2_3c4d, 1, 1_000_000_000)] {
            let file = pcap(big, magic, 4, 0x5400_0001);
            let file = file.u32(7).u32(5).u32(2).u32(9).raw(b"ab").u32(7).u32(bad).u32(0).u32(0).out;
            let (seen, error) = frames(&file);
            assert_eq!(error, None);
            assert_eq!(seen[0], (7_000_000_000 + 5 * unit, false, 1, b"ab".to_vec(), 9), "FCS bits masked");
            assert_eq!(
                seen[1],
                (8_000_000_000, true, 1, vec![], 0),
                "an impossible fraction is kept and told"
            );
        }
        let modified = pcap(big, 0xa1b2_cd34, 4, 1).u32(1).u32(2).u32(2).u32(2).u32(3).u16(8).raw(&[0, 0]);
        assert_eq!(frames(&modified.raw(b"xy").out).0, [(1_000_002_000, false, 1, b"xy".to_vec(), 2)]);
        let old = pcap(big, 0xa1b2_c3d4, 2, 1).u32(1).u32(0).u32(9).u32(2).raw(b"xy").out;
        assert_eq!(frames(&old).0, [(1_000_000_000, false, 1, b"xy".to_vec(), 9)], "lengths swapped");
    }
}

#[test]
fn pcapng_sections_interfaces_and_times() {
    let mut file = section(false);
    // Default: microseconds.
    file.extend(interface(false, 1, 0).block(1));
    let offset = 5i64.to_le_bytes();
    file.extend(interface(false, 101, 0).option(9, &[0x80 | 4]).option(14, &offset).u32(0).block(1));
    file.extend(
        interface(false, 113, 0).option(2, b"eth0").option(9, &[12]).option(13, &[4]).u32(0).block(1),
    );
    file.extend(Bytes::new(false).raw(b"secrets of TLS").block(10));
    file.extend(packet(false, 0, 5_000_001, b"abc"));
    file.extend(packet(false, 1, 24, b"de"));
    file.extend(packet(false, 2, 7_000_000_000_999, b""));
    file.extend(Bytes::new(false).u32(1).raw(b"names").block(4));
    // The second section begins in the other byte order and knows none of the interfaces.
    file.extend(section(true));
    file.extend(interface(true, 276, 4).option(9, &[9]).u32(0).block(1));
    file.extend(packet(true, 0, 42, b"f"));
    file.extend(Bytes::new(true).u32(6).raw(b"ghij").block(3));
    file.extend(Bytes::new(true).u16(0).u16(0).u32(0).u32(43).u32(1).u32(1).raw(b"k").block(2));
    file.extend(Bytes::new(true).raw(b"unknown").block(0x8000_0bad));
    let (seen, error) = frames(&file);
    assert_eq!(error, None);
    assert_eq!(
        seen,
        [
            (5_000_001_000, false, 1, b"abc".to_vec(), 4),
            (6_500_000_000, false, 101, b"de".to_vec(), 3),
            (7_000_000_000, false, 113, vec![], 1),
            (42, false, 276, b"f".to_vec(), 2),
            (42, true, 276, b"ghij".to_vec(), 6),
            (43, false, 276, b"k".to_vec(), 1),
        ]
    );
}

#[test]
fn capture_drops_of_all_sections() {
    let mut file = Vec::new();
    for _ in 0..2 {
        file.extend(section(false));
        file.extend(interface(false, 1, 0).block(1));
        for drops in [3u64, 5] {
            let counts = Bytes::new(false).u32(0).u32(0).u32(0);
            file.extend(
                counts.option(5, &drops.to_le_bytes()).option(7, &1u64.to_le_bytes()).u32(0).block(5),
            );
        }
    }
    let mut reader = Reader::new(Box::new(Cursor::new(file))).unwrap();
    assert_eq!(reader.capture_drops(), None);
    assert!(reader.next().unwrap().is_none());
    assert_eq!(reader.capture_drops(), Some(12), "the last count of each interface, twice 5 + 1");
}

#[test]
fn damage_is_told_with_place_and_next_step() {
    let good = pcap(false, 0xa1b2_c3d4, 4, 1).u32(1).u32(0).u32(2).u32(2).raw(b"ab").out;
    let mut cut = good.clone();
    cut.extend(&good[24..41]);
    let (seen, error) = frames(&cut);
    assert_eq!(seen.len(), 1);
    let error = error.unwrap();
    assert!(error.contains("cut in the middle of packet 2, which begins at byte 42"), "{error}");
    assert!(error.contains("copy it again"), "{error}");

    let lying = Bytes { big: false, out: good.clone() }.u32(1).u32(0).u32(0x7fff_ffff).u32(9).out;
    assert!(frames(&lying).1.unwrap().contains("packet 2 claims 2147483647 bytes"));

    let mut file = section(false);
    file.extend(interface(false, 1, 0).block(1));
    file.extend(packet(false, 0, 1, b"ab"));
    let before = file.len();
    for (bad, part) in [
        (packet(false, 3, 1, b"ab"), "interface 3"),
        (vec![6, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0], "claims 8 bytes"),
        ([&packet(false, 0, 1, b"ab")[..32], &[1, 2, 3, 4]].concat(), "its end"),
        (section(true)[..8].iter().copied().chain([9; 20]).collect(), "byte-order mark"),
        (packet(false, 0, 1, b"ab")[..20].to_vec(), "cut in the middle of packet 2"),
    ] {
        let (seen, error) = frames(&[&file[..], &bad].concat());
        assert_eq!(seen.len(), 1, "what was before was read");
        let error = error.unwrap();
        assert!(error.contains(part) && error.contains(&format!("byte {before}")), "{error}");
    }
}

#[test]
fn what_is_no_capture_is_named() {
    for (bytes, part) in [
        (&b""[..], "it is empty"),
        (b"\xd4\xc3\xb2\xa1\x02\0", "ends inside the file header"),
        (b"\xd4", "ends inside the file header"),
        (&[0; 100], "zero bytes"),
        (b"<!DOCTYPE html>\n<html>", "HTML"),
        (b"{\"frames\": []}", "JSON"),
        (b"12:00:00.1 IP 10.0.0.1.80 > 10.0.0.2.1: Flags [S]", "tcpdump -w"),
        (b"BZh91AY&SY", "bunzip2"),
        (b"snoop\0\0\0\0\0\0\x03\0\0\0\x04", "editcap"),
        (b"\x01\x02\x03\x04\x05", "it begins with 01 02 03 04"),
    ] {
        let error = read(bytes, usize::MAX).error.unwrap();
        assert!(error.starts_with("not a pcap or pcapng capture: ") && error.contains(part), "{error}");
        assert_eq!(read(bytes, 1).error.unwrap(), error, "however it arrives");
    }
}

/// RFC 1761: a header of 16 bytes, records of 24 and the packet, padded.
#[test]
fn snoop() {
    let file = |kind: u32| Bytes::new(true).raw(b"snoop\0\0\0").u32(2).u32(kind);
    let record = |b: Bytes, len: u32, drops: u32, data: &[u8], pad: u32| {
        let caplen = data.len() as u32;
        b.u32(len)
            .u32(caplen)
            .u32(24 + caplen + pad)
            .u32(drops)
            .u32(7)
            .u32(9)
            .raw(data)
            .raw(&vec![0; pad as usize])
    };
    let out = record(record(file(4), 60, 0, b"abcde", 3), 4, 2, b"abcd", 0).out;
    let frame = |data: &[u8], len| (7_000_009_000, false, 1, data.to_vec(), len);
    assert_eq!(frames(&out), (vec![frame(b"abcde", 60), frame(b"abcd", 4)], None));
    let mut reader = Reader::new(Box::new(Cursor::new(out.clone()))).unwrap();
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.capture_drops(), Some(2));
    for (kind, link) in [(0, 1), (2, 6), (8, 10), (26, 226), (5, 1 << 31 | 5)] {
        assert_eq!(frames(&record(file(kind), 1, 0, b"a", 0).out).0[0].2, link);
    }
    // Without its padding, cut in the packet and in the header; an empty one; lengths that contradict each other.
    let one = record(file(4), 60, 0, b"abcde", 3).out;
    assert_eq!(frames(&one[..one.len() - 3]), (vec![frame(b"abcde", 60)], None));
    assert_eq!(frames(&file(4).out), (vec![], None));
    for cut in [one.len() - 4, 30] {
        let (read, error) = frames(&one[..cut]);
        assert!(read.is_empty() && error.is_some_and(|e| e.contains("byte 16")), "{cut}");
    }
    let short = file(4).u32(5).u32(5).u32(28).u32(0).u32(7).u32(9).raw(b"abcde").out;
    assert!(frames(&short).1.is_some());
    let huge = file(4).u32(5).u32(u32::MAX).u32(u32::MAX).u32(0).u32(7).u32(9).out;
    assert!(frames(&huge).1.is_some());
}

#[cfg(feature = "compress")]
#[test]
fn packed_captures() {
    let plain = pcap(false, 0xa1b2_c3d4, 4, 1).u32(1).u32(0).u32(2).u32(2).raw(b"ab").out;
    let gz = |data: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(data).unwrap();
        packer.finish().unwrap()
    };
    let zst = |data: &[u8]| zstd::encode_all(data, 3).unwrap();
    let lz4 = |data: &[u8]| {
        let mut packer = lz4_flex::frame::FrameEncoder::new(Vec::new());
        packer.write_all(data).unwrap();
        packer.finish().unwrap()
    };
    type Pack<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let pack: [(&str, Pack<'_>); 3] = [("gzip", &gz), ("zstd", &zst), ("lz4", &lz4)];
    for (name, pack) in pack {
        // Two members after each other, as `cat a.gz b.gz` makes them, cut inside the packet.
        let packed = [pack(&plain[..30]), pack(&plain[30..])].concat();
        let (seen, error) = frames(&packed);
        assert_eq!((seen.len(), error), (1, None), "{name}");
        let reader = Reader::new(Box::new(Cursor::new(packed.clone()))).unwrap();
        assert_eq!(reader.packing(), Some(name));
        let inside = read(&pack(b"hello, world"), usize::MAX).error.unwrap();
        assert!(inside.contains(&format!("packed with {name}, and inside: it is text")), "{inside}");
        for n in 4..packed.len() {
            let (seen, error) = frames(&packed[..n]);
            assert!(seen.len() == 1 || error.is_some(), "{name} cut at {n}");
        }
    }
}

#[test]
fn following_a_file_that_grows() {
    let file = std::env::temp_dir().join(format!("tcpwhy-follow-{}.pcap", std::process::id()));
    let mut out = std::fs::File::create(&file).unwrap();
    let bytes = pcap(false, 0xa1b2_c3d4, 4, 1).u32(1).u32(0).u32(2).u32(2).raw(b"ab").out;
    let stop = std::sync::Arc::default();
    let (sender, frames) = std::sync::mpsc::channel();
    let reading = std::thread::spawn({
        let (file, stop) = (file.clone(), std::sync::Arc::clone(&stop));
        move || {
            let mut reader = Reader::open_following(&file, stop).unwrap();
            while let Some(frame) = reader.next().unwrap() {
                sender.send(frame.data.to_vec()).unwrap();
            }
        }
    });
    // The header, then half a record, then the rest: the reader waits each time.
    for part in [&bytes[..24], &bytes[24..35], &bytes[35..], &bytes[24..], &bytes[24..30]] {
        std::thread::sleep(Duration::from_millis(20));
        out.write_all(part).unwrap();
    }
    let wait = Duration::from_secs(20);
    assert_eq!(frames.recv_timeout(wait).unwrap(), b"ab");
    assert_eq!(frames.recv_timeout(wait).unwrap(), b"ab");
    stop.store(true, Relaxed);
    reading.join().unwrap();
    assert!(frames.try_recv().is_err(), "half a packet at the stop is no error and no packet");
    std::fs::remove_file(&file).unwrap();
}

/// One stamp that lies far from those around it is none, in each format and however the bytes arrive; other
/// blocks between the packets do not matter, damage behind them is told when it is reached.
#[test]
fn one_stamp_far_from_its_neighbours() {
    const S: u64 = 1_000_000;
    for (wrong, mended) in [(4_000_000, Some(3)), (16, Some(3)), (0, Some(3)), (14, None), (11, None)] {
        let times = [10, 11, 12, wrong, 13, 14, 15, 16].map(|s| s * S + 7);
        let mut classic = pcap(false, 0xa1b2_c3d4, 4, 1);
        let mut ng = section(true);
        ng.extend(interface(true, 1, 0).block(1));
        let mut snoop = Bytes::new(true).raw(b"snoop\0\0\0").u32(2).u32(4);
        for time in times {
            let (s, us) = ((time / S) as u32, (time % S) as u32);
            classic = classic.u32(s).u32(us).u32(2).u32(2).raw(b"ab");
            ng.extend(packet(true, 0, time, b"ab"));
            ng.extend(Bytes::new(true).raw(b"names").block(4));
            snoop = snoop.u32(2).u32(2).u32(28).u32(0).u32(s).u32(us).raw(b"ab..");
        }
        for file in [classic.out, ng, snoop.out] {
            let (seen, error) = frames(&file);
            assert_eq!((seen.len(), error), (8, None));
            let odd = seen.iter().position(|f| f.1);
            // A second ahead or behind may be another queue's.
            assert_eq!(odd, mended, "{wrong}");
            assert_eq!(
                seen[3].0,
                if odd.is_some() { 12_000_007_000 } else { wrong as i64 * 1_000_000_000 + 7_000 }
            );
            for step in [1, 33] {
                let mut dripping = Reader::new(Box::new(Drip { data: file.clone(), at: 0, step })).unwrap();
                for frame in &seen {
                    assert_eq!(dripping.next().unwrap().unwrap().time.0, frame.0);
                }
            }
        }
    }
    // What is asked about reaches into damage: it is told where it is.
    let record = |b: Bytes, s: u32| b.u32(s).u32(0).u32(2).u32(2).raw(b"ab");
    let whole = [10, 99, 11].into_iter().fold(pcap(true, 0xa1b2_c3d4, 4, 1), record).out;
    let (seen, error) = frames(&[&whole, &whole[24..34]].concat());
    assert_eq!(seen.iter().map(|f| f.0 / 1_000_000_000).collect::<Vec<_>>(), [10, 10, 11]);
    assert!(error.is_some_and(|e| e.contains("middle of packet 4")));
}

#[test]
fn a_missing_file() {
    let error = Reader::open("/nonexistent/x.pcap".as_ref()).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot open /nonexistent/x.pcap") && error.contains("check the name"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        base in 0..4_294_967_293_999_999_999i64,
        list in prop::collection::vec(
            (0..2_000_000_000i64, 0usize..3, prop::collection::vec(any::<u8>(), 0..80), 0u32..2000,
             prop::option::of(".{0,30}")),
            0..20,
        ),
        step in 1usize..500,
    ) {
        let mut ng = Writer::pcapng(Vec::new()).unwrap();
        let mut classic = Writer::pcap(Vec::new(), 1).unwrap();
        let (mut all, mut ethernet) = (Vec::new(), Vec::new());
        for (time, link, data, more, comment) in &list {
            let link_type = [1, 101, 113][*link];
            let len = data.len() as u32 + more;
            let time = base + time;
            let frame = Frame { len, ..Frame::new(Nanos(time), link_type, data) };
            ng.write(&frame, comment.as_deref()).unwrap();
            let plain: Plain = (time, false, link_type, data.clone(), len);
            if link_type == 1 {
                classic.write(&frame, None).unwrap();
                ethernet.push(plain.clone());
            }
            all.push(plain);
        }
        let ng = ng.finish().unwrap();
        prop_assert_eq!(frames(&ng), (all, None));
        prop_assert_eq!(frames(&classic.finish().unwrap()), (ethernet, None));
        let mut dripping = Reader::new(Box::new(Drip { data: ng, at: 0, step })).unwrap();
        let mut n = 0;
        while dripping.next().unwrap().is_some() {
            n += 1;
        }
        prop_assert_eq!(n, list.len());
    }
}

#[test]
fn the_writer_refuses_what_a_format_cannot_hold() {
    let mut classic = Writer::pcap(Vec::new(), 1).unwrap();
    assert!(classic.write(&Frame::new(Nanos(0), 101, b""), None).is_err());
    assert!(classic.write(&Frame::new(Nanos(0), 1, b""), Some("comment")).is_err());
    assert!(classic.write(&Frame::new(Nanos(-1), 1, b""), None).is_err());
    assert!(classic.write(&Frame::new(Nanos::MAX, 1, b""), None).is_err());
    let long = "é".repeat(40_000);
    let mut ng = Writer::pcapng(Vec::new()).unwrap();
    ng.write(&Frame::new(Nanos::MAX, 1, b"x"), Some(&long)).unwrap();
    assert_eq!(frames(&ng.finish().unwrap()).0.len(), 1, "a comment too long is cut");
}

/// What a kernel said comes back between the packets where it was written, in whichever order of bytes;
/// blocks of others, of later layouts, and cut ones are passed over.
#[test]
fn kernel_events_stand_between_packets() {
    let end = |ip: &str, port| Endpoint { ip: ip.parse().unwrap(), port };
    let event = |time: i64, change| SocketEvent {
        time: Nanos(time),
        local: end("10.0.0.1", 40_000),
        remote: end("2001:db8::1", 443),
        change,
    };
    let state = SocketState {
        open: true,
        scales: Some([7, 14]),
        buffers: [16_384, 131_072],
        set: [false, true],
        reads: true,
    };
    let all = [
        event(5, SocketChange::NoDelay(true)),
        event(6, SocketChange::Write { from: Seq(u32::MAX), bytes: 204, read: None }),
        event(6, SocketChange::Write { from: Seq(1), bytes: 4, read: Some(Seq(0)) }),
        event(9, SocketChange::Room { since: Nanos(7) }),
        event(10, SocketChange::Timer(Timer::Retransmission)),
        event(11, SocketChange::Timer(Timer::Probe)),
        event(12, SocketChange::Cwnd(14_480)),
        event(12, SocketChange::Held(Held::CongestionWindow { slow_start: true })),
        event(12, SocketChange::Held(Held::Other)),
        event(13, SocketChange::Cork(true)),
        event(14, SocketChange::Read { since: Nanos(8), upto: Seq(77), left: 4_096 }),
        event(15, SocketChange::Timer(Timer::DelayedAck)),
        event(16, SocketChange::State(state)),
        event(17, SocketChange::State(SocketState { open: false, scales: None, ..state })),
    ];
    let mut writer = Writer::pcapng(Vec::new()).unwrap();
    writer.event(&all[0]).unwrap();
    writer.write(&Frame::new(Nanos(5), 1, b"one"), None).unwrap();
    all[1..4].iter().for_each(|e| writer.event(e).unwrap());
    writer.write(&Frame::new(Nanos(11), 1, b"two"), None).unwrap();
    all[4..].iter().for_each(|e| writer.event(e).unwrap());
    writer.statistics(Nanos(13), 9, 7).unwrap();
    let mut file = writer.finish().unwrap();
    let body = file.len();
    // Somebody else's, a later layout, and one that is too short.
    file.extend(Bytes::new(false).u32(1).raw(&[0; 64]).block(0x8000_0bad));
    file.extend(Bytes::new(false).u32(32_473).u16(2).raw(&[0; 62]).block(0x8000_0bad));
    file.extend(Bytes::new(false).u32(32_473).u16(1).block(0x8000_0bad));
    for cut in 0..file.len() {
        let mut reader = Reader::new(Box::new(Cursor::new(file[..cut].to_vec())));
        while let Ok(reader) = &mut reader
            && let Ok(Some(_)) = reader.next_hearing(&mut Vec::new())
        {}
    }
    let mut reader = Reader::new(Box::new(Cursor::new(file))).unwrap();
    let mut heard = Vec::new();
    let mut before = Vec::new();
    while reader.next_hearing(&mut heard).unwrap().is_some() {
        before.push(heard.len());
    }
    assert_eq!((heard, before), (all.to_vec(), vec![1, 4]));
    assert_eq!(reader.capture_drops(), Some(7));
    assert!(body > 0 && Writer::pcap(Vec::new(), 1).unwrap().event(&all[0]).is_err());

    let big = Bytes::new(true).u32(32_473).u16(1).u16(4).u64(77).u16(1).u16(2).raw(&[0; 32]);
    let mut file = section(true);
    file.extend(big.u32(1).u32(0).u64(0).block(0x8000_0bad));
    let mut heard = Vec::new();
    assert!(Reader::new(Box::new(Cursor::new(file))).unwrap().next_hearing(&mut heard).unwrap().is_none());
    assert_eq!((heard[0].time, heard[0].change), (Nanos(77), SocketChange::Timer(Timer::Probe)));
}
