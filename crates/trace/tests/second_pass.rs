//! The second pass says of packets what the analysis made of them.

use std::convert::Infallible;
use std::io::Cursor;
use std::path::Path;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Detail};
use tcpwhy_base::{End, Ends, Nanos, Segment, TcpFlags};
use tcpwhy_capture::{Dissector, Filter, Frame, Reader, Verdict, Writer};
use tcpwhy_trace::{Packet, Pass, Stretch, Tracks, marks};

const ETHERNET: u32 = 1;
const SYN: u16 = TcpFlags::SYN;
const ACK: u16 = TcpFlags::ACK;

/// One packet of a story: when in µs, who, flags, sequence and acknowledgement number, bytes.
type Line = (i64, End, u16, u32, u32, usize);

/// The story as packets over IPv6, which has no identifier by which a copy could be told from a retransmission.
fn ipv6(story: &[Line]) -> Vec<u8> {
    let mut writer = Writer::pcap(Vec::new(), ETHERNET).expect("memory takes it");
    for &(micros, from, flags, seq, ack, len) in story {
        let ends = match from {
            End::Client => [(1u8, 40_000u16), (2, 80)],
            End::Server => [(2, 80), (1, 40_000)],
        };
        let mut bytes = vec![0; 12];
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend((20 + len as u16).to_be_bytes());
        bytes.extend([6, 64]);
        for (host, _) in ends {
            bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        ends.iter().for_each(|(_, port)| bytes.extend(port.to_be_bytes()));
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend((5 << 12 | flags).to_be_bytes());
        bytes.extend([0xff, 0xff, 0, 0, 0, 0]);
        bytes.resize(bytes.len() + len, b'x');
        writer
            .write(&Frame::new(Nanos::secs(1_000) + Nanos::micros(micros), ETHERNET, &bytes), None)
            .expect("memory takes it");
    }
    writer.finish().expect("memory takes it")
}

fn reader(file: &[u8]) -> Reader {
    Reader::new(Box::new(Cursor::new(file.to_vec()))).expect("a capture")
}

fn analysed(file: &[u8]) -> Analysis {
    let mut reader = reader(file);
    let (mut dissector, mut segment) = (Dissector::new(), Segment::EMPTY);
    let mut analyzer = Analyzer::new(Config { detail: Detail::All });
    while let Ok(Some(frame)) = reader.next() {
        if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp {
            analyzer.push(&segment);
        }
    }
    analyzer.finish()
}

/// All packets of the capture with the places of their connections.
fn packets(file: &[u8], analysis: &Analysis, filter: Option<&Filter>) -> Vec<(usize, Packet)> {
    packets_of(file, Pass::new(&analysis.connections, filter))
}

fn packets_of(file: &[u8], mut pass: Pass<'_>) -> Vec<(usize, Packet)> {
    let mut out = Vec::new();
    let whole = (Nanos(i64::MIN), Nanos::MAX);
    let done: Result<bool, Infallible> = pass.read(&mut reader(file), 0, whole, |met| {
        out.extend(met.packet);
        Ok(true)
    });
    assert_eq!(done, Ok(true));
    out
}

/// A request whose data packets all pass twice within 20 µs, as a mirror port shows them, and one real retransmission.
fn mirrored() -> Vec<u8> {
    use End::{Client, Server};
    ipv6(&[
        (0, Client, SYN, 99, 0, 0),
        (10_000, Server, SYN | ACK, 499, 100, 0),
        (10_100, Client, ACK, 100, 500, 0),
        (10_200, Client, ACK, 100, 500, 1000),
        (10_220, Client, ACK, 100, 500, 1000),
        (10_300, Client, ACK, 1100, 500, 1000),
        (10_320, Client, ACK, 1100, 500, 1000),
        (250_000, Client, ACK, 1100, 500, 1000),
        (260_000, Server, ACK, 500, 2100, 300),
        (260_015, Server, ACK, 500, 2100, 300),
        (260_400, Client, ACK, 2100, 800, 0),
    ])
}

#[test]
fn copies_without_an_identifier_are_copies_and_no_retransmissions() {
    let file = mirrored();
    let analysis = analysed(&file);
    let c = &analysis.connections[0];
    assert_eq!((c.ends[0].duplicates, c.ends[1].duplicates, c.retransmitted), (2, 1, [1, 0]));
    let odd: Vec<(u64, u8)> = packets(&file, &analysis, None)
        .iter()
        .filter(|p| p.1.marks != 0)
        .map(|p| (p.1.frame, p.1.marks))
        .collect();
    assert_eq!(
        odd,
        [(5, marks::COPY), (7, marks::COPY), (8, marks::RETRANSMITTED), (10, marks::COPY)],
        "frame and marks"
    );
}

#[test]
fn a_track_holds_no_copies() {
    let file = mirrored();
    let analysis = analysed(&file);
    let mut tracks = Tracks::new(&analysis.connections, 1_000);
    let times = (analysis.connections[0].start + Nanos::micros(10_250), Nanos::MAX);
    let mut stretch = Stretch::new(&analysis.connections, 0, times, 2);
    let mut pass = Pass::new(&analysis.connections, None);
    let whole = (Nanos(i64::MIN), Nanos::MAX);
    let read: Result<bool, Infallible> = pass.read(&mut reader(&file), 0, whole, |met| {
        tracks.take(met);
        Ok(true)
    });
    assert_eq!(read, Ok(true));
    let [track] = &tracks.finish()[..] else { unreachable!("one connection") };
    assert_eq!((track.total, track.packets.len(), track.connection), (8, 8, 1));
    let last = track.packets.last().unwrap();
    assert_eq!(
        (last.from, last.seq, last.ack, last.window_bytes(Ends::new(Some(7), None))),
        (End::Client, 2001, 301, Some(65535 << 7))
    );
    let server = Packet { from: End::Server, ..*last };
    assert_eq!(server.window_bytes(Ends::new(Some(7), None)), None, "its scale is not known");
    let syn = Packet { flags: TcpFlags(TcpFlags::SYN), ..server };
    assert_eq!(syn.window_bytes(Ends::default()), Some(65535), "a SYN's is never scaled");

    let read: Result<bool, Infallible> = Pass::new(&analysis.connections, None).read(
        &mut reader(&file),
        0,
        whole,
        |met| Ok(stretch.take(met)),
    );
    assert_eq!(read, Ok(false), "it ends where enough is known");
    let frames: Vec<u64> = stretch.finish().packets.iter().map(|p| p.frame).collect();
    assert_eq!(frames, [6, 8]);
}

#[test]
fn filters_and_bounds_are_those_of_the_first_pass() {
    let file = mirrored();
    let analysis = analysed(&file);
    let filter = Filter::parse("src port 80").unwrap();
    let of_server: Vec<u64> = packets(&file, &analysis, Some(&filter)).iter().map(|p| p.1.frame).collect();
    assert_eq!(of_server, [2, 9, 10]);
    let mut frames = Vec::new();
    let start = analysis.connections[0].start;
    let within = (start + Nanos::micros(10_300), start + Nanos::micros(250_000));
    let read: Result<bool, Infallible> =
        Pass::new(&analysis.connections, None).read(&mut reader(&file), 100, within, |met| {
            frames.extend(met.packet.map(|_| met.number));
            Ok(true)
        });
    assert_eq!(read, Ok(true));
    assert_eq!(
        frames,
        Vec::<u64>::new(),
        "frames behind 100 others belong to no connection of this analysis"
    );
    let read: Result<bool, Infallible> =
        Pass::new(&analysis.connections, None).read(&mut reader(&file), 0, within, |met| {
            frames.extend(met.packet.map(|_| met.number));
            Ok(true)
        });
    assert_eq!((read, frames), (Ok(true), vec![6, 7, 8]));
}

#[test]
fn bundled_captures_have_the_copies_that_the_analysis_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let (mut captures, mut copies, mut less) = (0, 0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(file) = std::fs::read(&path) else { continue };
        if Reader::new(Box::new(Cursor::new(file.clone()))).is_err() {
            continue;
        }
        let analysis = analysed(&file);
        let mut counted = vec![Ends::<u32>::default(); analysis.connections.len()];
        let all = packets(&file, &analysis, None);
        for wanted in 0..analysis.connections.len().min(3) {
            // Followed alone, a connection has the packets and marks that it has beside others.
            let alone = packets_of(&file, Pass::of(&analysis.connections, |place| place == wanted, None));
            let of = |list: &[(usize, Packet)]| -> Vec<(u64, u8)> {
                list.iter().filter(|p| p.0 == wanted).map(|p| (p.1.frame, p.1.marks)).collect()
            };
            assert_eq!(of(&alone), of(&all), "{}", path.display());
            // Only connections between its ends are followed beside it: later ones from the same port.
            let ends = |place: usize| {
                let c = &analysis.connections[place];
                (c.client.min(c.server), c.client.max(c.server))
            };
            assert!(alone.iter().all(|p| ends(p.0) == ends(wanted)), "{}", path.display());
            less += usize::from(alone.len() < all.len());
        }
        for (i, packet) in all {
            counted[i][packet.from] += u32::from(packet.is_copy());
        }
        for (c, counted) in analysis.connections.iter().zip(counted) {
            let of = c.ends.each_ref().map(|end| end.duplicates);
            assert_eq!(counted.into_array(), of, "{}, connection {}", path.display(), c.id);
            copies += of[0] + of[1];
        }
        captures += 1;
    }
    assert!(captures > 20 && copies > 150, "{captures} captures with {copies} copies");
    assert!(less > 10, "{less} connections were followed without others");
}
