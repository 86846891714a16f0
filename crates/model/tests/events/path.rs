//! A direction of the path: rate, queue, delay, jitter, pauses; and what applications do on it.

use crate::script::*;
use tcpwhy_base::{Nanos, Step, Turn};
use tcpwhy_model::run;

fn arrivals(s: &tcpwhy_model::Scenario) -> Vec<String> {
    let out = run(s).expect("possible");
    let down = out.passages.iter().filter(|p| p.packet.from == 1 && p.packet.len > 0);
    down.map(|p| {
        let at = p.arrived.map_or("lost".into(), time);
        format!(
            "{} at {at} drained {} service {} foreign {}",
            p.packet.seq,
            time(p.drained),
            time(p.service),
            time(p.foreign)
        )
    })
    .collect()
}

/// 1500 bytes take 1 ms at 12 Mbit/s, 38 bytes of Ethernet more 25.333 µs; the ACK before them 52 bytes, 34.666 µs.
#[test]
fn a_rate_spreads_a_flight() {
    let s = link(request(path(40), &[100], &[3000]), 1, |l| l.rate = Some(12_000_000));
    same(
        &arrivals(&s),
        "1 at 81.074666 drained 61.074666 service 1 foreign 0
        1449 at 82.074666 drained 62.074666 service 1 foreign 0
        2897 at 82.178666 drained 62.178666 service 0.104 foreign 0",
    );
    same(
        &arrivals(&link(s, 1, |l| l.overhead = 38)),
        "1 at 81.150666 drained 61.150666 service 1.025333 foreign 0
        1449 at 82.175999 drained 62.175999 service 1.025333 foreign 0
        2897 at 82.305332 drained 62.305332 service 0.129333 foreign 0",
    );
}

/// The queue holds five packets, the one being sent included, or as many bytes; the ACK is the first.
#[test]
fn a_queue_drops_what_it_does_not_hold() {
    let s = link(request(path(40), &[100], &[12_000]), 1, |l| l.rate = Some(12_000_000));
    let lost = |s: &tcpwhy_model::Scenario| {
        run(s).unwrap().passages.iter().filter(|p| p.arrived.is_none()).map(line).collect::<Vec<_>>()
    };
    same(&lost(&s), "");
    same(
        &lost(&link(s.clone(), 1, |l| l.queue_packets = Some(8))),
        "60.04 < 10137..11585 lost
        60.04 < 11585..12001 psh lost",
    );
    same(&lost(&link(s.clone(), 1, |l| l.queue_packets = Some(9))), "60.04 < 11585..12001 psh lost");
    same(&lost(&link(s.clone(), 1, |l| l.queue_packets = Some(10))), "");
    // 52 + 8 x 1500 + 468 are all.
    same(&lost(&link(s.clone(), 1, |l| l.queue_bytes = Some(12_519))), "60.04 < 11585..12001 psh lost");
    same(&lost(&link(s, 1, |l| l.queue_bytes = Some(12_520))), "");
}

/// What other connections have in the queue is told apart.
#[test]
fn the_packets_of_others_are_waited_for() {
    let mut s = link(request(path(40), &[100], &[3000]), 1, |l| l.rate = Some(12_000_000));
    (s.connections, s.stagger) = (2, Nanos::micros(100));
    same(
        &arrivals(&s),
        "1 at 81.074666 drained 61.074666 service 1 foreign 0
        1449 at 82.074666 drained 62.074666 service 1 foreign 0
        2897 at 82.178666 drained 62.178666 service 0.104 foreign 0
        1 at 83.213332 drained 63.213332 service 1 foreign 2.038666
        1449 at 84.213332 drained 64.213332 service 1 foreign 2.038666
        2897 at 84.317332 drained 64.317332 service 0.104 foreign 2.038666",
    );
}

#[test]
fn what_arrives_in_a_pause_arrives_at_its_end() {
    let s = |start, length| {
        link(request(path(40), &[100], &[3000]), 1, |l| l.pauses = vec![(Nanos(start), Nanos(length))])
    };
    // The answer arrives at 80 ms, and a run begins at 1 ns.
    same(
        &arrivals(&s(80_000_001, 5_000_000)),
        "1 at 85 drained 60 service 0 foreign 0
        1449 at 85 drained 60 service 0 foreign 0
        2897 at 85 drained 60 service 0 foreign 0",
    );
    same(
        &arrivals(&s(80_000_002, 5_000_000)),
        "1 at 80 drained 60 service 0 foreign 0
        1449 at 80 drained 60 service 0 foreign 0
        2897 at 80 drained 60 service 0 foreign 0",
    );
    same(
        &arrivals(&s(75_000_001, 5_000_000)),
        "1 at 80 drained 60 service 0 foreign 0
        1449 at 80 drained 60 service 0 foreign 0
        2897 at 80 drained 60 service 0 foreign 0",
    );
    same(
        &arrivals(&s(75_000_002, 5_000_000)),
        "1 at 80.000001 drained 60 service 0 foreign 0
        1449 at 80.000001 drained 60 service 0 foreign 0
        2897 at 80.000001 drained 60 service 0 foreign 0",
    );
}

#[test]
fn what_leaves_in_a_cut_is_lost() {
    let lost = |start, length| {
        let s = link(request(path(40), &[100], &[10]), 1, |l| l.cuts = vec![(Nanos(start), Nanos(length))]);
        run(&s).unwrap().passages.iter().filter(|p| p.arrived.is_none()).map(line).collect::<Vec<_>>()
    };
    same(
        &lost(60_000_001, 1),
        "60 < lost ack 101
        60 < 1..11 psh lost server_think",
    );
    same(&lost(60_000_002, 1), "");
    same(&lost(59_000_001, 1_000_000), "");
    same(
        &lost(59_000_002, 1_000_000),
        "60 < lost ack 101
        60 < 1..11 psh lost server_think",
    );
}

/// Jitter is added, from nothing to all of it, and keeps the order.
#[test]
fn jitter_keeps_the_order() {
    let s = link(request(path(40), &[100], &[60_000]), 1, |l| l.jitter = ms(3));
    let out = run(&s).unwrap();
    let down: Vec<i64> =
        out.passages.iter().filter(|p| p.packet.from == 1).map(|p| (p.arrived.unwrap() - p.sent).0).collect();
    let all: Vec<Nanos> =
        out.passages.iter().filter(|p| p.packet.from == 1).map(|p| p.arrived.unwrap()).collect();
    assert!(all.is_sorted());
    assert!(down.iter().all(|d| (20_000_000..=23_000_000).contains(d)), "{down:?}");
    let (least, most) = (down.iter().min().unwrap(), down.iter().max().unwrap());
    assert!(most - least > 2_000_000, "{least} {most}");
}

/// A run is cut off after its limit, not at it: the last ACK arrives at 120 ms.
#[test]
fn the_limit_belongs_to_the_run() {
    let mut s = request(path(40), &[100], &[10]);
    s.limit = ms(80);
    let out = run(&s).unwrap();
    assert!(!out.turns.is_empty());
    let ends = |limit: Nanos| {
        let mut s = request(path(40), &[100], &[10]);
        s.limit = limit;
        let out = run(&s).unwrap();
        (out.cut_off, out.complete(), time(out.elapsed), out.turns.first().and_then(|t| t.end).map(time))
    };
    assert_eq!(ends(ms(3000)), (false, true, "80".into(), Some("80".into())));
    assert_eq!(ends(ms(120)), (false, true, "80".into(), Some("80".into())));
    assert_eq!(ends(ms(120) - Nanos(1)), (true, false, "80".into(), Some("80".into())));
    assert_eq!(ends(ms(79)), (true, false, "60".into(), None));
}

/// The next connection begins when the one before is closed, and after the turn's own wait.
#[test]
fn connections_follow_one_another() {
    let mut s = request(path(40), &[100], &[30]);
    (s.workload.requests, s.workload.reconnect_every) = (3, 2);
    s.workload.turns[0].before = ms(5);
    let out = run(&s).unwrap();
    let turns: Vec<_> = out.turns.iter().map(|t| (t.conn, t.turn, time(t.start), t.end.map(time))).collect();
    let row = |conn, turn, start: &str, end: &str| (conn, turn, start.to_owned(), Some(end.to_owned()));
    assert_eq!(turns, [row(0, 0, "40", "80"), row(0, 1, "85", "125"), row(1, 0, "210", "250")]);
    let begun: Vec<_> = out.connections.iter().map(|c| (time(c.start), c.connected.map(time))).collect();
    assert_eq!(begun, [("0".into(), Some("40".into())), ("170".to_owned(), Some("210".into()))]);
}

/// Opening turns come first; what is pipelined is written before the first answer is read.
#[test]
fn pipelined_requests_leave_together() {
    let mut s = request(path(40), &[100], &[30]);
    let opening = Turn { request: vec![Step::Write(5)], response: vec![Step::Write(6)], ..Turn::default() };
    s.workload.turns.insert(0, opening);
    (s.workload.repeat_from, s.workload.pipeline, s.workload.requests) = (1, true, 2);
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        40 > 1..6 psh client_think
        40 > 6..106 psh client_think
        40 > 106..206 psh client_think
        60 < ack 6
        60 < ack 106
        60 < ack 206
        60 < 1..7 psh server_think
        60 < 7..37 psh server_think
        60 < 37..67 psh server_think
        80 > ack 7
        80 > ack 37
        80 > ack 67
        80 > fin ack 67
        100 < fin ack 207",
    );
    spans(
        &s,
        0,
        "0..40 handshake
        turn 0 40..40
        turn 1 40..80",
    );
    spans(
        &s,
        1,
        "20..60 handshake
        turn 0 60..60
        turn 1 60..60",
    );
    s.workload.pipeline = false;
    s.workload.tls = 1;
    spans(
        &s,
        0,
        "0..40 handshake
        turn 0 setup 40..80
        40..80 tls_handshake
        turn 1 80..120
        80..120 path_delay
        turn 2 120..160
        120..160 path_delay",
    );
}

/// An answer of nothing ends the turn at the server; think time is the server's, pauses are the sender's.
#[test]
fn one_way_and_thinking() {
    let s = request(path(40), &[100], &[]);
    let out = packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        40 > 1..101 psh client_think
        40 > fin ack 1
        60 < ack 101
        60 < ack 102
        60 < fin ack 102
        80 > ack 2",
    );
    assert_eq!(out.turns[0].end.map(time), Some("60".into()));
    let mut s =
        steps(path(40), vec![Step::Write(10)], vec![Step::Write(10), Step::Pause(ms(7)), Step::Write(10)]);
    s.workload.turns[0].think = ms(30);
    s.hosts[0].stack.wake = Nanos::micros(300);
    s.hosts[1].stack.wake = Nanos::micros(500);
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        40 > 1..11 psh client_think
        60 < ack 11
        90.5 < 1..11 psh server_think
        97.5 < 11..21 psh sender_pause
        110.5 > ack 11
        117.5 > ack 21
        117.8 > fin ack 21
        138.3 < fin ack 12",
    );
    spans(
        &s,
        0,
        "0..40 handshake
        turn 0 40..117.5
        40..60 path_delay
        60..90.5 server_think server
        90.5..110.5 path_delay
        110.5..117.5 sender_pause server",
    );
    spans(
        &s,
        1,
        "20..60 handshake
        turn 0 60..97.5
        60..90.5 server_think server
        90.5..97.5 sender_pause server",
    );
}

/// Spans at the client: what a loss, a window and slow start cost.
#[test]
fn spans_name_what_held_a_packet() {
    let rate = |s| link(s, 1, |l| l.rate = Some(12_000_000));
    spans(
        &rate(request(path(40), &[100], &[40_000])),
        0,
        "0..40.04 handshake
        turn 0 40.04..138.711999
        40.04..80.04 path_delay
        80.04..90.074666 bandwidth
        90.074666..121.074666 slow_start server
        121.074666..138.711999 bandwidth",
    );
    spans(
        &rate(request(path(40), &[100], &[40_000])),
        1,
        "20..60.04 handshake
        turn 0 60.04..109.074666
        60.04..70.074666 bandwidth
        70.074666..101.074666 slow_start server
        101.074666..109.074666 bandwidth",
    );
    let tail =
        lose(rate(request(path(40), &[100], &[3000])), 1, &[tcpwhy_base::What::Last { back: 0, copies: 2 }]);
    spans(
        &tail,
        0,
        "0..40.04 handshake
        turn 0 40.04..616.104
        40.04..80.04 path_delay
        80.04..82.074666 bandwidth
        82.074666..122.074666 path_delay
        122.074666..616.104 retransmission_timeout",
    );
    spans(
        &tail,
        1,
        "20..60.04 handshake
        turn 0 60.04..596
        60.04..100.04 path_delay
        100.04..348 tail_loss_probe
        348..596 retransmission_timeout",
    );
    let asked = lose(request(path(40), &[100], &[10]), 0, &[tcpwhy_base::What::Data(1)]);
    spans(
        &asked,
        0,
        "0..40 handshake
        turn 0 40..324
        40..80 path_delay
        80..324 tail_loss_probe",
    );
    spans(
        &asked,
        1,
        "20..60 handshake
        turn 0 304..304",
    );
    let small = host(rate(request(path(40), &[100], &[8000])), 0, |h| h.rcvbuf = Some(4000));
    spans(
        &small,
        0,
        "0..40.04 handshake
        turn 0 40.04..164.615999
        40.04..80.04 path_delay
        80.04..82.074666 bandwidth
        82.074666..121.074666 receive_window client
        121.074666..123.074666 bandwidth
        123.074666..163.074666 receive_window client
        163.074666..164.615999 bandwidth",
    );
    let syn = lose(request(path(40), &[100], &[10]), 0, &[tcpwhy_base::What::Syn(1)]);
    spans(
        &syn,
        0,
        "0..1024 syn_retransmit
        1024..1064 handshake
        turn 0 1064..1104
        1064..1104 path_delay",
    );
    let stall = both(request(path(40), &[100, 100], &[10, 10]), |h| {
        h.nodelay = false;
        h.stack.profile = tcpwhy_model::Profile::named("windows").unwrap();
    });
    spans(
        &stall,
        0,
        "0..40 handshake
        turn 0 40..242
        40..121 nagle_delayed_ack client
        121..161 path_delay
        161..242 nagle_delayed_ack server",
    );
    spans(
        &stall,
        1,
        "20..60 handshake
        turn 0 60..222
        60..141 nagle_delayed_ack client
        141..222 nagle_delayed_ack server",
    );
}
