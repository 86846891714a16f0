//! Connections of a single packet: scans, floods, and what is none (rule 63).

use std::net::IpAddr;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Detail, Finding};
use tcpwhy_base::{Cause, Endpoint, Nanos, Segment, Seq, TcpFlags};

fn end(host: u8, port: u16) -> Endpoint {
    Endpoint { ip: [10, 0, 0, host].into(), port }
}

fn packet(n: usize, src: Endpoint, dst: Endpoint, flags: u16) -> Segment {
    Segment {
        time: Nanos::millis(n as i64),
        frame: n as u64 + 1,
        src,
        dst,
        seq: Seq(n as u32 * 1_000),
        flags: TcpFlags(flags),
        window: 1024,
        ..Segment::EMPTY
    }
}

/// SYNs of host 9 to so many ports of host 1, then a packet of somebody else so many milliseconds later.
fn scan(ports: u16, later: i64) -> Vec<Segment> {
    let mut all: Vec<Segment> =
        (0..ports).map(|n| packet(usize::from(n), end(9, 50_000), end(1, n + 1), TcpFlags::SYN)).collect();
    let mut last = packet(usize::from(ports), end(7, 40_000), end(8, 80), TcpFlags::ACK);
    last.time += Nanos::millis(later);
    all.push(last);
    all
}

fn analysis_of(segments: &[Segment], detail: Detail, shards: usize) -> Analysis {
    let mut analyzers: Vec<Analyzer> = (0..shards).map(|_| Analyzer::new(Config { detail })).collect();
    for segment in segments {
        analyzers[Analyzer::share(segment, shards)].push(segment);
    }
    Analyzer::finish_all(analyzers)
}

fn listed(analysis: &Analysis) -> Vec<u32> {
    analysis.connections.iter().map(|c| c.id).collect()
}

fn said(analysis: &Analysis) -> Option<String> {
    analysis.findings.iter().find(|f| f.cause == Cause::Scan).map(Finding::why)
}

#[test]
fn many_targets_of_one_address_are_one_finding() {
    let segments = scan(200, 1_000);
    for shards in [1, 2, 3] {
        let a = analysis_of(&segments, Detail::Worst(10), shards);
        assert_eq!(listed(&a), [1, 201], "the first of the scan, and who was no part of it");
        assert_eq!((a.totals.connections, a.totals.unlisted, a.connection_count()), (201, 199, 201));
        assert_eq!(a.totals.segments, 201);
        let f = a.findings.iter().find(|f| f.cause == Cause::Scan).unwrap();
        assert_eq!((f.occurrences, f.connection_count, f.lost), (200, 200, Nanos::ZERO));
        assert_eq!(
            (f.example.connection, f.connections.as_slice(), f.example.frames.first()),
            (1, &[1][..], 1)
        );
        assert!(!f.is_minor());
        assert_eq!(
            f.why(),
            "10.0.0.9 asked 200 ports of 10.0.0.1 with 200 SYNs: none was answered in the capture, and none repeated."
        );
    }
}

/// Of large groups two threads look at half each, where there are several analyzers.
#[test]
fn large_groups_are_the_same_from_any_number_of_analyzers() {
    let from = |n: usize| {
        let [high, low] = (n as u16).to_be_bytes();
        // Two ports of each address, every third of them IPv6.
        let ip = if n.is_multiple_of(3) {
            IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n as u16 / 2])
        } else {
            IpAddr::from([10, 1, high, low & !1])
        };
        Endpoint { ip, port: 40_000 + n as u16 % 2 }
    };
    let flood = |n: usize| packet(n, from(n * 7 % 9_001), end(1, 80), TcpFlags::SYN);
    let asks = |n: usize| packet(n, end(9, 50_000), from(n * 5 % 9_001), TcpFlags::SYN);
    let segments: Vec<Segment> = (0..9_000).flat_map(|n| [flood(2 * n), asks(2 * n + 1)]).collect();
    let of = |shards| {
        let a = analysis_of(&segments, Detail::Worst(10), shards);
        format!("{:?} {:?} {:?}", listed(&a), a.findings, a.totals.unlisted)
    };
    let one = of(1);
    assert!(one.contains("in the capture, and none repeated"), "{one}");
    for shards in [2, 3] {
        assert_eq!(of(shards), one);
    }
}

#[test]
fn all_are_listed_where_all_detail_is_wanted() {
    let a = analysis_of(&scan(200, 1_000), Detail::All, 2);
    assert_eq!(listed(&a), (1..=201).collect::<Vec<_>>());
    assert_eq!((a.totals.connections, a.totals.unlisted), (201, 0));
    assert!(said(&a).is_some());
}

#[test]
fn lines_leave_them_out_too() {
    let mut analyzer = Analyzer::streaming(Config { detail: Detail::Worst(10) });
    analyzer.push_all(&scan(200, 1_000));
    analyzer.end_all();
    let ids: Vec<u32> = analyzer.ended().map(|c| c.id).collect();
    let (findings, totals) = analyzer.finish_stream();
    assert_eq!((ids.as_slice(), totals.connections, totals.unlisted), (&[1, 201][..], 201, 199));
    assert_eq!(findings.iter().filter(|f| f.cause == Cause::Scan).count(), 1);
}

#[test]
fn a_few_are_no_scan() {
    let a = analysis_of(&scan(24, 1_000), Detail::Worst(10), 1);
    assert_eq!((a.connections.len(), a.totals.unlisted, said(&a)), (25, 0, None));
    assert!(said(&analysis_of(&scan(25, 1_000), Detail::Worst(10), 1)).is_some());
}

#[test]
fn what_could_still_be_repeated_is_no_scan() {
    // The last of 25 passed 999 ms before the end.
    assert_eq!(said(&analysis_of(&scan(25, 998), Detail::Worst(10), 1)), None);
    assert!(said(&analysis_of(&scan(25, 999), Detail::Worst(10), 1)).is_some());
}

#[test]
fn a_syn_that_is_repeated_or_answered_is_a_connection() {
    for flags in [TcpFlags::SYN, TcpFlags::RST | TcpFlags::ACK] {
        let mut segments = scan(25, 2_000);
        let first = segments[3];
        let mut second = packet(100, first.src, first.dst, flags);
        (second.time, second.seq) = (Nanos::secs(1), first.seq);
        if flags != TcpFlags::SYN {
            (second.src, second.dst, second.ack) = (first.dst, first.src, first.seq + 1);
        }
        segments.insert(25, second);
        let a = analysis_of(&segments, Detail::Worst(10), 1);
        assert_eq!((a.connections.len(), said(&a)), (26, None));
        assert_eq!(a.connections[3].packets, if flags == TcpFlags::SYN { [2, 0] } else { [1, 1] });
    }
}

#[test]
fn another_syn_between_the_same_ends_is_another_attempt() {
    // The same ports are asked twice, with other sequence numbers.
    let mut segments = scan(100, 2_000);
    let again: Vec<Segment> = (0..100)
        .map(|n| packet(usize::from(n) + 200, end(9, 50_000), end(1, n + 1), TcpFlags::SYN))
        .collect();
    segments.splice(100..100, again);
    let a = analysis_of(&segments, Detail::Worst(10), 2);
    assert_eq!((a.totals.connections, a.totals.unlisted), (201, 199));
    assert!(said(&a).unwrap().starts_with("10.0.0.9 asked 100 ports of 10.0.0.1 with 200 SYNs:"));
}

#[test]
fn a_flood_comes_from_many_to_one() {
    let mut segments: Vec<Segment> =
        (0..100).map(|n| packet(n, end(n as u8 + 100, 1_000), end(1, 80), TcpFlags::SYN)).collect();
    segments.push(packet(2_000, end(7, 40_000), end(8, 80), TcpFlags::ACK));
    let a = analysis_of(&segments, Detail::Worst(10), 2);
    assert_eq!((listed(&a), a.totals.unlisted), (vec![1, 101], 99));
    assert!(said(&a).unwrap().starts_with("100 addresses sent 10.0.0.1:80 100 SYNs: none was answered"));
}

#[test]
fn others_of_one_packet_are_listed_up_to_a_thousand() {
    // ACKs of as many connections: the capture was short, and nobody scanned.
    let stray = |n: usize| {
        let ip = [10, 1, (n >> 8) as u8, n as u8].into();
        packet(n, Endpoint { ip, port: 40_000 }, end(1, 443), TcpFlags::ACK)
    };
    let segments: Vec<Segment> = (0..1_500).map(stray).collect();
    let a = analysis_of(&segments, Detail::Worst(10), 2);
    assert_eq!(listed(&a), (1..=1_000).collect::<Vec<_>>());
    assert_eq!((a.totals.connections, a.totals.unlisted, said(&a)), (1_500, 500, None));
}

/// Whoever stands beside it, the example of a scan is a connection that is listed.
#[test]
fn the_example_is_listed_beside_a_thousand_others() {
    let stray = |n: usize| {
        let ip = [10, 1, (n >> 8) as u8, n as u8].into();
        packet(n, Endpoint { ip, port: 40_000 }, end(1, 443), TcpFlags::ACK)
    };
    let mut segments: Vec<Segment> = (0..1_500).map(stray).collect();
    for mut of_scan in scan(200, 1_000) {
        of_scan.time += Nanos::millis(1_500);
        of_scan.frame += 1_500;
        segments.push(of_scan);
    }
    for shards in [1, 2, 3] {
        let a = analysis_of(&segments, Detail::Worst(10), shards);
        let example = a.findings.iter().find(|f| f.cause == Cause::Scan).unwrap().example.connection;
        assert_eq!((example, listed(&a).len()), (1_501, 1_001));
        assert!(listed(&a).contains(&example));
        assert_eq!((a.totals.connections, a.totals.unlisted), (1_701, 700));
    }
}
