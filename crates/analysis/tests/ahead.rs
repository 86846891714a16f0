//! Segments whose connections are looked up before others have had their turn.

use std::net::IpAddr;
use tcpwhy_analysis::{Analyzer, Config, Detail};
use tcpwhy_base::{Endpoint, Nanos, Segment, Seq, TcpFlags};

fn all_detail() -> Analyzer {
    Analyzer::new(Config { detail: Detail::All })
}

/// A connection that has gone while its next packet was on the way: whoever has its place then does not get
/// that packet.
#[test]
fn a_place_that_another_one_got_meanwhile_is_not_used() {
    let packet = |port: u16, second: i64, flags: u16| {
        let end = |last: u8, port| Endpoint { ip: [192, 0, 2, last].into(), port };
        Segment {
            time: Nanos::secs(second),
            frame: second as u64 + 1,
            src: end(1, port),
            dst: end(2, 80),
            flags: TcpFlags(flags),
            ..Segment::EMPTY
        }
    };
    let (ack, rst) = (TcpFlags::ACK, TcpFlags::RST);
    let before = [packet(1, 0, ack), packet(1, 1, rst | ack), packet(2, 2, ack), packet(2, 3, ack)];
    // The first goes after 240 s, the third gets its place, and then one more of the first comes.
    let then = [packet(2, 300, ack), packet(3, 301, ack), packet(3, 302, ack), packet(1, 303, ack)];
    let mut analyzer = all_detail().crowded_from(0);
    analyzer.push_all(&before);
    analyzer.push_all(&then);
    let all: Vec<Segment> = before.into_iter().chain(then).collect();
    let mut one = all_detail();
    all.iter().for_each(|segment| one.push(segment));
    assert_eq!(format!("{:?}", analyzer.finish()), format!("{:?}", one.finish()));
}

/// Packets of one connection that follow each other go to its state at once: until one is of another, of
/// another link, or decides something.
#[test]
fn packets_that_follow_each_other_are_taken_as_one_by_one() {
    let mut drawn = 1_u32;
    let mut draw = |of: u32| {
        drawn = drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (drawn >> 16) % of
    };
    // Addresses of IPv6 which differ in what their words do not tell.
    let [one, like_one, other] = [7, 1 << 84 | 23, 9].map(|ip: u128| IpAddr::V6(ip.into()));
    let ends = |pair: usize| {
        let v4 = |last: u8| IpAddr::from([192, 0, 2, last]);
        let [a, b] = [[v4(1), v4(2)], [v4(1), v4(3)], [one, other], [like_one, other], [one, like_one]][pair];
        [a, b].map(|ip| Endpoint { ip, port: 443 })
    };
    let (mut segments, mut sent) = (Vec::new(), [[0_u32; 2]; 10]);
    // Which of ten connections, two each of the same ends on different links, and which way, until another
    // one is drawn.
    let (mut which, mut way, mut time) = (0, 0, 0);
    for n in 0..6_000 {
        if draw(6) == 0 {
            which = draw(10) as usize;
        }
        if draw(3) == 0 {
            way = draw(2) as usize;
        }
        let flags = match draw(60) {
            0 => TcpFlags::FIN | TcpFlags::ACK,
            1 => TcpFlags::SYN,
            2 => TcpFlags::RST,
            3 => TcpFlags::SYN | TcpFlags::ACK,
            _ => TcpFlags::ACK,
        };
        time += i64::from(if draw(200) == 0 { 250_000_000 } else { draw(2_000) });
        let ends = ends(which / 2);
        let len = draw(3) * 100;
        segments.push(Segment {
            time: Nanos::micros(time),
            frame: n + 1,
            src: ends[way],
            dst: ends[1 - way],
            link: which as u32 % 2,
            seq: Seq(sent[which][way]),
            ack: Seq(sent[which][1 - way]),
            len,
            flags: TcpFlags(flags),
            window: 500,
            ip_id: Some(n as u16),
            ..Segment::EMPTY
        });
        sent[which][way] += len;
    }
    let mut one = all_detail();
    segments.iter().for_each(|segment| one.push(segment));
    let one = format!("{:?}", one.finish());
    for size in [2, 7, 256, segments.len()] {
        let mut several = all_detail();
        segments.chunks(size).for_each(|some| several.push_all(some));
        assert!(format!("{:?}", several.finish()) == one, "{size} at once");
    }
}

/// Connections whose time for late packets is over end several at once: what comes for one of them before
/// that is a connection of its own all the same.
#[test]
fn what_is_about_to_end_takes_no_more_packets() {
    let packet = |port: u16, from_client: bool, ms: i64, flags: u16| {
        let ends =
            [Endpoint { ip: [192, 0, 2, 1].into(), port }, Endpoint { ip: [192, 0, 2, 2].into(), port: 80 }];
        let (src, dst) = if from_client { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
        let (time, flags) = (Nanos::millis(ms), TcpFlags(flags | TcpFlags::ACK));
        Segment { time, frame: ms as u64 + 1, src, dst, flags, ..Segment::EMPTY }
    };
    for closed in 1..20_u16 {
        let mut all: Vec<Segment> = Vec::new();
        for n in 0..closed {
            let ms = i64::from(n) * 3;
            all.push(packet(1_000 + n, true, ms, 0));
            all.push(packet(1_000 + n, true, ms + 1, TcpFlags::FIN));
            all.push(packet(1_000 + n, false, ms + 2, TcpFlags::FIN));
        }
        // Another one's packet, by which their time is over, and then one more of each.
        all.extend([packet(99, true, 5_000, 0), packet(99, false, 5_001, 0)]);
        for n in 0..closed {
            all.push(packet(1_000 + n, true, 5_100 + i64::from(n), 0));
            all.push(packet(1_000 + n, false, 5_200 + i64::from(n), 0));
        }
        let answer = |crowd, one_by_one: bool| {
            let mut analyzer = all_detail().crowded_from(crowd).lingering(Nanos::secs(1));
            if one_by_one {
                all.iter().for_each(|segment| analyzer.push(segment));
            } else {
                // What is looked up together is looked up before any of it is taken.
                let (before, late) = all.split_at(all.len() - usize::from(closed) * 2);
                analyzer.push_all(before);
                analyzer.push_all(late);
            }
            analyzer.finish()
        };
        let whole = answer(0, false);
        assert_eq!(whole.totals.connections, u64::from(closed) * 2 + 1);
        for (crowd, one_by_one) in [(0, true), (usize::MAX, false), (usize::MAX, true)] {
            assert_eq!(format!("{:?}", answer(crowd, one_by_one)), format!("{whole:?}"), "{closed}");
        }
    }
}

/// Among many connections more packets come than may wait: what waits runs through the rules with what waits
/// in others, be they as far or not, and the answer is that of each one alone.
#[test]
fn connections_that_are_full_run_side_by_side_as_alone() {
    let end = |last: u8, port| Endpoint { ip: [192, 0, 2, last].into(), port };
    let mut all: Vec<Segment> = Vec::new();
    // A request, an answer of one to three segments, and its ACK; each connection has as many packets as the
    // others, in another rhythm.
    let mut sent = [[1_u32; 2]; 20];
    for n in 0..1_000_u32 {
        for (which, sent) in sent.iter_mut().enumerate() {
            let rhythm = which as u32 % 3 + 3;
            let (from_client, len) = match n % rhythm {
                0 => (true, 100),
                last if last + 1 == rhythm => (true, 0),
                _ => (false, 400),
            };
            let ends = [end(1, 40_000 + which as u16), end(2, 80)];
            let (from, to) = if from_client { (0, 1) } else { (1, 0) };
            all.push(Segment {
                time: Nanos::micros(i64::from(n) * 900 + which as i64 * 7),
                frame: all.len() as u64 + 1,
                src: ends[from],
                dst: ends[to],
                seq: Seq(sent[from]),
                ack: Seq(sent[to]),
                flags: TcpFlags(TcpFlags::ACK | if len > 0 { TcpFlags::PSH } else { 0 }),
                window: 5_000,
                len,
                ..Segment::EMPTY
            });
            sent[from] += len;
        }
    }
    let mut alone = all_detail().crowded_from(usize::MAX);
    all.iter().for_each(|segment| alone.push(segment));
    let mut together = all_detail().crowded_from(0);
    all.chunks(256).for_each(|some| together.push_all(some));
    let (alone, together) = (alone.finish(), together.finish());
    assert!(alone.connections.iter().all(|c| c.exchanges.len() > 150), "{:?}", alone.totals);
    assert!(format!("{alone:?}") == format!("{together:?}"));
}
