//! Until when a request without an answer waited: until the last packet of its capture, of whatever protocol.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tcpwhy_library::captures::{Analysis, Captures};
use tcpwhy_library::packets::{Frame, Writer};
use tcpwhy_library::{Connection, Explain, Filter, Nanos, Reader};

/// A packet between these ports: flags, numbers and payload.
fn packet((from, to): (u16, u16), flags: u8, (seq, ack): (u32, u32), payload: &[u8]) -> Vec<u8> {
    let mut data = vec![2; 12];
    data.extend([8, 0, 0x45, 0]);
    data.extend((40 + payload.len() as u16).to_be_bytes());
    data.extend([0, 0, 0x40, 0, 63, if flags == 0 { 17 } else { 6 }, 0, 0]);
    let (client, server) = ([10, 0, 0, 200], [192, 168, 1, 2]);
    data.extend(if to == 80 { [client, server] } else { [server, client] }.concat());
    [from, to].map(u16::to_be_bytes).iter().for_each(|port| data.extend(port));
    [seq, ack].map(u32::to_be_bytes).iter().for_each(|number| data.extend(number));
    data.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    data.extend(payload);
    data
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// A connection of this client that asks `at` and gets nothing but an ACK, 20 ms later.
fn hangs(client: u16, at: i64) -> Vec<(i64, Vec<u8>)> {
    let (out, back) = ((client, 80), (80, client));
    let asked = 101 + REQUEST.len() as u32;
    vec![
        (at, packet(out, 2, (100, 0), &[])),
        (at + 10, packet(back, 0x12, (900, 101), &[])),
        (at + 10, packet(out, 0x10, (101, 901), &[])),
        (at + 10, packet(out, 0x18, (101, 901), REQUEST)),
        (at + 20, packet(back, 0x10, (901, asked), &[])),
    ]
}

fn write(name: &str, packets: &[(i64, Vec<u8>)]) -> PathBuf {
    let mut writer = Writer::pcap(Vec::new(), 1).unwrap();
    for (ms, data) in packets {
        writer.write(&Frame::new(Nanos::millis(1_000_000 + ms), 1, data), None).unwrap();
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

/// When connections end, as they are numbered.
fn ends(connections: &[Connection]) -> Vec<i64> {
    connections.iter().map(|c| (c.end - Nanos::millis(1_000_000)).0 / 1_000_000).collect()
}

fn of_captures(paths: &[PathBuf]) -> Vec<i64> {
    let (analysis, _): (Analysis, _) = Captures::new(paths).explain(&mut |_, _| ()).unwrap();
    let connections: Vec<Connection> = analysis.connections.into_iter().map(|c| *c).collect();
    ends(&connections)
}

/// Each way of reading says the same, whatever part of the capture it looks at.
#[test]
fn the_last_packet_counts_be_it_of_another_protocol() {
    let last = (5_000, packet((53, 5_353), 0, (0, 0), &[]));
    let packets: Vec<_> = [hangs(40_000, 0), hangs(40_001, 100), vec![last]].concat();
    let path = write("last.pcap", &packets);
    assert_eq!(ends(&Explain::new().file(&path).unwrap().connections), [5_000, 5_000]);
    assert_eq!(of_captures(std::slice::from_ref(&path)), [5_000, 5_000]);
    let one = Filter::parse("port 40001").unwrap();
    assert_eq!(ends(&Explain::new().filter(one).file(&path).unwrap().connections), [5_000]);
    for k in 0..3 {
        let part = Explain::new().part(k, 3).file(&path).unwrap().connections;
        assert!(ends(&part).iter().all(|&end| end == 5_000), "{k}");
    }
    let mut given = Vec::new();
    Explain::new().each(Reader::open(&path).unwrap(), |c| {
        given.push(c.clone());
        ControlFlow::Continue(())
    });
    assert_eq!(ends(&given), [5_000, 5_000]);
}

/// A capture that goes on in another file goes on; one that begins later has not seen what was between, and one that
/// overlaps is another one.
#[test]
fn of_several_captures_the_one_that_watched_it_counts() {
    let first = write("a.pcap", &[hangs(40_000, 0), hangs(40_001, 900)].concat());
    let goes_on = write("b.pcap", &hangs(40_002, 1_900));
    let later = write("c.pcap", &[hangs(40_003, 5_000), hangs(40_004, 6_000)].concat());
    let overlaps = write("d.pcap", &[hangs(40_005, 5_500), hangs(40_006, 9_000)].concat());
    let all = [first, goes_on, later, overlaps];
    assert_eq!(of_captures(&all), [1_920, 1_920, 1_920, 6_020, 6_020, 9_020, 9_020]);
}

/// What passed within an hour without a packet nobody knows: the capture may have been put together.
#[test]
fn a_capture_with_a_hole_was_not_watched_there() {
    let hour = 3_600_000;
    for (hole, first) in [(hour, 20 + hour + 20), (hour + 1, 20)] {
        let path = write("hole.pcap", &[hangs(40_000, 0), hangs(40_001, 20 + hole)].concat());
        assert_eq!(of_captures(&[path]), [first, 20 + hole + 20], "{hole} ms");
    }
}

/// A clock that was set does not tell how long anybody waited.
#[test]
fn a_clock_that_was_set_does_not_count() {
    let packets: Vec<_> = [hangs(40_000, 0), hangs(40_001, 20_000), hangs(40_002, 5_000)].concat();
    assert_eq!(of_captures(&[write("set.pcap", &packets)])[0], 20);
    let month = 31 * 86_400_000;
    assert_eq!(of_captures(&[write("jump.pcap", &[hangs(40_000, 0), hangs(40_001, month)].concat())])[0], 20);
}
