//! Connections end in another order than they began: what is said of them together does not show it.

use std::cmp::Reverse;
use std::net::IpAddr;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Connection, Detail};
use tcpwhy_base::{Cause, Class, Endpoint, Nanos, Owner, Segment, Seq, TcpFlags};

/// More than have findings of their own.
const CONNECTIONS: u16 = 1_300;

/// More than are kept before some are left out, and more than pairs of clients and servers are told apart.
const MANY: u16 = 9_000;

/// So many connections. Each repeats its request after 300 to 399 ms, of which many lost equally much, and
/// they close in the order turned round, long before the last packet: all have ended by then.
fn captured(connections: u16) -> Vec<Segment> {
    captured_with(connections, |_| true, |k| -i64::from(k))
}

/// The same, of which these lose their request, and close so many milliseconds later than the others.
fn captured_with(connections: u16, loses: impl Fn(u16) -> bool, later: impl Fn(u16) -> i64) -> Vec<Segment> {
    let (ack, rst) = (TcpFlags::ACK, TcpFlags::RST);
    let mut all = Vec::new();
    for k in 1..=connections {
        let client = Endpoint { ip: [10, 0, (k >> 8) as u8, k as u8].into(), port: 40_000 + k % 3 };
        let server = Endpoint { ip: [10, 9, 0, 1].into(), port: 80 };
        let start = i64::from(k) * 10;
        let again = if loses(k) { start + 304 + i64::from(k % 100) } else { start + 4 };
        let close = 1_000_000 + later(k);
        for (ms, from_client, seq, acks, len, flags) in [
            (start, true, 100, 0, 0, TcpFlags::SYN),
            (start + 2, false, 900, 101, 0, TcpFlags::SYN | ack),
            (start + 2, true, 101, 901, 0, ack),
            (start + 4, true, 101, 901, 50, ack),
            (again, true, 101, 901, if loses(k) { 50 } else { 0 }, ack),
            (again + 2, false, 901, 151, 70, ack),
            (again + 2, true, 151, 971, 0, ack),
            (close, true, 151, 971, 0, rst | ack),
        ] {
            let (src, dst) = if from_client { (client, server) } else { (server, client) };
            all.push(Segment {
                time: Nanos::millis(ms),
                src,
                dst,
                seq: Seq(seq),
                ack: Seq(acks),
                len,
                flags: TcpFlags(flags),
                window: 64_000,
                ..Segment::EMPTY
            });
        }
    }
    let [client, server] = [7, 8].map(|last| Endpoint { ip: [10, 8, 0, last].into(), port: 443 });
    for (ms, src, dst) in [(2_000_000, client, server), (2_000_001, server, client)] {
        let flags = TcpFlags(ack);
        all.push(Segment { time: Nanos::millis(ms), src, dst, len: 1, flags, ..Segment::EMPTY });
    }
    all.sort_by_key(|s| s.time);
    (1..).zip(&mut all).for_each(|(frame, s)| s.frame = frame);
    all
}

fn analyzed(segments: &[Segment], shards: usize, new: impl Fn() -> Analyzer) -> Analysis {
    let mut analyzers: Vec<Analyzer> = (0..shards).map(|_| new()).collect();
    segments.iter().for_each(|segment| analyzers[Analyzer::share(segment, shards)].push(segment));
    Analyzer::finish_all(analyzers)
}

#[test]
fn those_that_lost_most_are_named_the_first_of_equal_ones_first() {
    let segments = captured(CONNECTIONS);
    let new = || Analyzer::new(Config { detail: Detail::None });
    let whole = analyzed(&segments, 1, new);
    // What is expected is counted here.
    let repeated = Cause::RetransmissionTimeout;
    let mut by_loss: Vec<(Reverse<Nanos>, u32)> =
        whole.connections.iter().map(|c| (Reverse(c.budget.get(repeated)), c.id)).collect();
    by_loss.sort_unstable();
    let named: Vec<u32> = by_loss.iter().take(20).map(|c| c.1).collect();
    assert_eq!(named[..3], [99, 199, 299]);
    let mut with_findings: Vec<(Reverse<Nanos>, u32)> =
        whole.connections.iter().map(|c| (Reverse(c.budget.of_class(Class::Tcp)), c.id)).collect();
    with_findings.sort_unstable();
    let mut with_findings: Vec<u32> = with_findings.iter().take(1_000).map(|c| c.1).collect();
    with_findings.sort_unstable();
    for shards in 1..=3 {
        for analysis in
            [analyzed(&segments, shards, new), analyzed(&segments, shards, || new().never_narrowed())]
        {
            let f = analysis.findings.iter().find(|f| f.cause == repeated).unwrap();
            assert_eq!((f.connections.as_slice(), f.example.connection), (named.as_slice(), 99));
            assert_eq!(f.connection_count, u64::from(CONNECTIONS));
            // The example's leads, then those of the first connections: until the request was repeated, and
            // what came of it.
            let frames: Vec<u64> = f.evidence.iter().map(|frames| frames.first()).collect();
            let requests = |k: u8| {
                let ip = IpAddr::from([10, 0, 0, k]);
                segments.iter().filter(move |s| s.len == 50 && s.src.ip == ip).map(|s| s.frame)
            };
            let first: Vec<u64> = requests(99).take(1).chain((1..=3).flat_map(requests)).take(6).collect();
            assert_eq!(frames, first);
            let own: Vec<u32> =
                analysis.connections.iter().filter(|c| !c.findings.is_empty()).map(|c| c.id).collect();
            assert_eq!(own, with_findings, "{shards} analyzers");
            let said = |a: &Analysis| format!("{:?} {:?} {:?}", a.connections, a.findings, a.totals);
            assert!(said(&analysis) == said(&whole), "{shards} analyzers");
        }
    }
}

#[test]
fn as_they_end_the_same_is_said() {
    let segments = captured(CONNECTIONS);
    let whole = analyzed(&segments, 1, || Analyzer::new(Config { detail: Detail::None }));
    let mut analyzer = Analyzer::streaming(Config { detail: Detail::None });
    analyzer.push_all(&segments);
    let ended: Vec<u32> = analyzer.ended().map(|c| c.id).collect();
    assert!(
        ended.len() == usize::from(CONNECTIONS) && ended.is_sorted_by(|a, b| a > b),
        "they close backwards"
    );
    analyzer.end_all();
    let (findings, _) = analyzer.finish_stream();
    assert_eq!(format!("{findings:?}"), format!("{:?}", whole.findings));
}

/// What is left when an answer is narrowed is what those alone would have given.
#[test]
fn a_narrowed_answer_is_that_of_what_is_left() {
    let segments = captured(CONNECTIONS);
    let new = || Analyzer::new(Config { detail: Detail::None });
    let mut narrowed = analyzed(&segments, 2, new);
    narrowed.retain(|c| c.id % 2 == 0);
    let f = narrowed.findings.iter().find(|f| f.cause == Cause::RetransmissionTimeout).unwrap();
    assert_eq!(f.connections[..3], [98, 198, 298]);
    assert_eq!(f.connection_count, u64::from(CONNECTIONS / 2));
}

/// Where only some are listed, these are the ones that any list begins with and all that is named, and the
/// rest of the answer is the same.
#[test]
fn lists_begin_with_the_same() {
    // Few lose anything: how long the others lasted decides which are listed, and that is no matter of their order.
    let segments = captured_with(MANY, |k| k % 200 == 0, |k| i64::from(k) * 7_919 % 9_001 * 10);
    let new = || Analyzer::new(Config { detail: Detail::Worst(30) });
    let whole = analyzed(&segments, 1, new);
    let by_id = |a: &Analysis, id: u32| {
        let at = a.connections.binary_search_by_key(&id, |c| c.id);
        at.ok().map(|at| format!("{:?}", a.connections[at]))
    };
    let mut wanted: Vec<u32> = whole.findings.iter().flat_map(|f| f.connections.clone()).collect();
    wanted.extend(whole.findings.iter().map(|f| f.example.connection));
    wanted.extend(whole.connections.iter().filter(|c| !c.exchanges.is_empty()).map(|c| c.id));
    wanted.extend(whole.connections.iter().filter(|c| !c.findings.is_empty()).map(|c| c.id));
    let of_tcp = |c: &Connection| {
        let mine = c.budget.0.iter().filter(|e| e.0.owner() == Owner::Tcp);
        mine.fold(Nanos::ZERO, |sum, e| sum + e.1)
    };
    type Sorted<'a> = &'a dyn Fn(&Connection) -> (Nanos, Nanos);
    let lists: [Sorted<'_>; 4] = [
        &|c| (c.budget.of_class(Class::Tcp), c.budget.total()),
        &|c| (of_tcp(c), c.end - c.start),
        &|c| (of_tcp(c), Nanos::ZERO),
        &|c| (c.budget.total(), Nanos::ZERO),
    ];
    for list in lists {
        let mut sorted: Vec<_> = whole.connections.iter().map(|c| (Reverse(list(c)), c.id)).collect();
        sorted.sort_unstable();
        wanted.extend(sorted.iter().take(100).map(|c| c.1));
    }
    let mut listed = None;
    for shards in 1..=3 {
        let some = analyzed(&segments, shards, || new().listing(100));
        let kept = some.connections.len();
        assert!(kept < 1_500, "{kept} of {MANY}");
        assert_eq!(some.totals.not_kept, u64::from(MANY) + 1 - kept as u64);
        assert_eq!(some.connection_count(), u64::from(MANY) + 1);
        assert!(wanted.iter().all(|&id| by_id(&some, id) == by_id(&whole, id)), "{shards} analyzers");
        assert_eq!(format!("{:?}", some.findings), format!("{:?}", whole.findings));
        let ids: Vec<u32> = some.connections.iter().map(|c| c.id).collect();
        assert_eq!(&ids, listed.get_or_insert_with(|| ids.clone()), "{shards} analyzers list others");
        let mut totals = some.totals.clone();
        totals.not_kept = 0;
        assert_eq!(format!("{totals:?}"), format!("{:?}", whole.totals));
    }
}
