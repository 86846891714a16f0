//! What may leave: Nagle's algorithm, cork, the send buffer, the congestion window and its growth, idle times, pacing.

use crate::script::*;
use tcpwhy_base::Step::{Pause, Write};
use tcpwhy_base::{Cork, Turn};
use tcpwhy_model::{Congestion, Nagle, Scenario};

fn with_nagle(s: Scenario) -> Scenario {
    both(s, |h| h.nodelay = false)
}

/// Minshall's rule asks whether an earlier partial segment is out, the classic one whether anything is.
#[test]
fn a_tail_after_full_segments_waits_only_under_the_classic_rule() {
    let s = with_nagle(request(path(40), &[3000], &[10]));
    some(
        &s,
        |p| p.packet.from == 0 && p.packet.len > 0,
        "40 > 1..1449 client_think
        40 > 1449..2897
        40 > 2897..3001 psh",
    );
    some(
        &both(s, |h| h.stack.profile.nagle = Nagle::Classic),
        |p| p.packet.from == 0 && p.packet.len > 0,
        "40 > 1..1449 client_think
        40 > 1449..2897
        80 > 2897..3001 psh nagle",
    );
}

/// 1448 bytes are a segment, 1447 are not: a second small write waits for the ACK of the first only behind the latter.
#[test]
fn a_full_segment_is_none_that_nagle_waits_for() {
    let first = |n: u64| with_nagle(request(path(40), &[n, 100], &[10]));
    let sent = |p: &tcpwhy_model::Passage| p.packet.from == 0 && p.packet.len > 0;
    some(&first(1448), sent, "40 > 1..1449 psh client_think\n 40 > 1449..1549 psh");
    // One byte more comes into the segment; 99 wait.
    some(&first(1447), sent, "40 > 1..1448 psh client_think\n 80 > 1448..1548 psh nagle");
    // Three small ones: what waits grows until it fills a segment.
    some(
        &with_nagle(request(path(40), &[100, 1000, 448, 5], &[10])),
        sent,
        "40 > 1..101 psh client_think\n 40 > 101..1549 psh nagle\n 80 > 1549..1554 psh nagle",
    );
}

/// A packet leaves when its data have been copied, and calls of `write` are that far apart: 1000 bytes at 1 MB/s.
#[test]
fn a_message_in_pieces_takes_the_time_of_its_copies() {
    let s = host(request(path(10), &[3000], &[10]), 0, |h| {
        h.write_chunk = Some(1000);
        h.stack.copy_rate = 1_000_000;
    });
    packets(
        &s,
        "0 > syn
        5 < syn ack 1
        10 > ack 1
        11 > 1..1001 psh client_think
        12 > 1001..2001 psh
        13 > 2001..3001 psh
        16 < ack 1001
        17 < ack 2001
        18 < ack 3001
        18 < 1..11 psh server_think
        23 > ack 11
        23 > fin ack 11
        28 < fin ack 3002",
    );
}

/// 1000 bytes at 10 kB/s take 100 ms before they leave, in one call or in two; what a socket's packet buffers
/// hold more than one of is copied while the first is on its way.
#[test]
fn a_copy_comes_before_its_packet() {
    let s = host(request(path(10), &[1000], &[10]), 0, |h| h.stack.copy_rate = 10_000);
    let end = |s: &Scenario| tcpwhy_model::run(s).unwrap().turns[0].end.map(time);
    assert_eq!(end(&s), Some("120".into()));
    assert_eq!(end(&host(s, 0, |h| h.write_chunk = Some(500))), Some("120".into()));
    // The first 65,215 bytes of 100,000 take 652.15 ms at 100 kB/s; nobody waits for the copy of the rest.
    let large = host(request(path(10), &[100_000], &[10]), 0, |h| h.stack.copy_rate = 100_000);
    let sent =
        tcpwhy_model::run(&large).unwrap().passages.iter().find(|p| p.packet.len > 0).map(|p| time(p.sent));
    assert_eq!(sent, Some("662.15".into()));
}

/// Corked data leave when the probe timer takes them: RTO past its tick, as nothing is in flight.
#[test]
fn a_cork_that_stays_is_drawn_by_the_timer() {
    let s = steps(path(40), vec![Write(100), Pause(ms(500)), Write(200)], vec![Write(10)]);
    packets(
        &both(s, |h| h.cork = Cork::Always),
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        284 > 1..101 psh cork      # 40 + 240 = 280, past the tick
        304 < ack 101
        784 > 101..301 psh cork    # 540 + 240
        804 < ack 301
        1048 < 1..11 psh cork      # 804 + 240
        1068 > ack 11
        1068 > fin ack 11
        1088 < ack 302
        1088 < fin ack 302",
    );
}

#[test]
fn cork_and_more_hold_a_message_together() {
    let sent = |p: &tcpwhy_model::Passage| p.packet.len > 0;
    let s = steps(path(40), vec![Write(100), Pause(ms(50)), Write(200)], vec![Write(10)]);
    some(&both(s.clone(), |h| h.cork = Cork::Message), sent, "90 > 1..301 psh cork\n 110 < 1..11 psh cork");
    some(
        &both(s.clone(), |h| h.more = true),
        sent,
        "90 > 1..301 psh sender_pause\n 110 < 1..11 psh server_think",
    );
    some(
        &s,
        sent,
        "40 > 1..101 psh client_think\n 90 > 101..301 psh sender_pause\n 110 < 1..11 psh server_think",
    );
}

/// A server that closes sends what Nagle held, with the FIN.
#[test]
fn closing_sends_what_nagle_held() {
    let mut s = with_nagle(request(path(40), &[100], &[30, 40]));
    let down = |p: &tcpwhy_model::Passage| p.packet.from == 1 && p.packet.len > 0;
    some(&s, down, "60 < 1..31 psh server_think\n 100 < 31..71 psh nagle");
    s.workload.server_closes = true;
    some(&s, down, "60 < 1..31 psh server_think\n 60 < 31..71 fin psh nagle");
}

/// SO_SNDBUF 3000 becomes 6000 (socket(7)). A packet buffer costs its bytes and 832; one more is begun while
/// less than all is used: 4 x 1832 = 7328 > 6000 > 3 x 1832, and 7 x 932 = 6524 > 6000 > 6 x 932. The writer
/// wakes once a third is free.
#[test]
fn a_send_buffer_counts_packet_buffers() {
    let writes = |n: u64| {
        let s = request(path(10), &[100], &[2 * n * (8000 / n)]);
        host(s, 1, |h| (h.sndbuf, h.write_chunk) = (Some(3000), Some(n)))
    };
    bursts(
        &writes(1000),
        "10 > 1 x 100 client_think
        15 < 4 x 4000 server_think
        25 < 4 x 4000 send_buffer
        35 < 4 x 4000 send_buffer
        45 < 4 x 4000 send_buffer",
    );
    let out = tcpwhy_model::run(&writes(100)).unwrap();
    let sizes: Vec<u32> = tcpwhy_model::flights(&writes(100), &out)
        .iter()
        .filter(|f| f.from == 1 && !f.syn)
        .map(|f| f.segments)
        .collect();
    assert_eq!(sizes[..4], [7; 4]);
    // Without the doubling of Linux there is room for two: 1832 < 3000.
    let plain = host(writes(1000), 1, |h| h.stack.profile.doubles_buffers = false);
    let out = tcpwhy_model::run(&plain).unwrap();
    let sizes: Vec<u32> = tcpwhy_model::flights(&plain, &out)
        .iter()
        .filter(|f| f.from == 1 && !f.syn)
        .map(|f| f.segments)
        .collect();
    assert_eq!(sizes[0], 3, "4608 is the least: 3 x 1832 = 5496");
}

/// TCP_NOTSENT_LOWAT counts what waits, not what is out: a write of 4096 bytes is taken while less than the mark waits.
#[test]
fn a_mark_for_unsent_data_stops_the_writer() {
    let s = |mark: u64| {
        host(request(path(10), &[100], &[60_000]), 1, |h| {
            (h.notsent_lowat, h.write_chunk) = (Some(mark), Some(4096));
        })
    };
    let causes = |mark| {
        let out = tcpwhy_model::run(&s(mark)).unwrap();
        let late = out.passages.iter().filter(|p| p.packet.from == 1 && p.packet.cause.is_some());
        late.map(|p| format!("{} {}", p.packet.seq, p.packet.cause.unwrap().id())).collect::<Vec<_>>()
    };
    same(
        &causes(u64::MAX),
        "1 server_think
        13737 slow_start
        16633 slow_start
        19529 slow_start
        22425 slow_start
        25321 slow_start
        28217 slow_start
        32561 slow_start
        36905 slow_start
        42697 slow_start
        45593 slow_start
        51385 slow_start
        57177 slow_start",
    );
    same(
        &causes(1448),
        "1 server_think
        13737 slow_start
        16633 slow_start
        19529 slow_start
        22425 slow_start
        25321 slow_start
        28217 slow_start
        32561 slow_start
        36905 slow_start
        42697 slow_start
        45593 send_buffer",
    );
}

/// Slow start adds what was acknowledged: 10, 20, 40. A buffer of 2 x 10 segments of 2304 bytes of memory
/// (46,080) holds the first 46,336 bytes; it has grown when the third flight leaves.
#[test]
fn slow_start_doubles() {
    bursts(
        &request(path(40), &[100], &[100_000]),
        "40 > 1 x 100 client_think
        60 < 10 x 14480 server_think
        100 < 20 x 28960 slow_start
        140 < 40 x 56560 slow_start",
    );
}

/// Linux before 3.13 counts ACKs: with one for each two segments the window grows by half.
#[test]
fn growth_by_acks_is_slower() {
    let s = link(request(path(40), &[100], &[60_000]), 1, |l| l.rate = Some(120_000_000));
    bursts(
        &both(s, |h| (h.stack.profile.growth_per_ack, h.stack.profile.quickacks) = (true, 0)),
        "40.004 > 1 x 100 client_think
        60.004 < 10 x 14480 server_think
        100.107466 < until 101.007466 18 x 26064 slow_start
        140.307466 < until 141.107466 14 x 19456 slow_start",
    );
}

/// 42 segments (60,000 bytes) raise the window to 10, 20, 40, 52. 340 ms after the last of them one timeout
/// (240 ms) has passed: half of 52; after 740 ms more of it is gone than is ever taken, the initial window is
/// left.
#[test]
fn an_idle_time_halves_the_window_for_each_timeout() {
    let mut s = request(path(40), &[100], &[60_000]);
    s.workload.requests = 4;
    s.workload.turns[0].before = ms(700);
    s.workload.turns.push(Turn { before: ms(300), ..s.workload.turns[0].clone() });
    bursts(
        &s,
        "40 > 1 x 100 client_think
        60 < 10 x 14480 server_think
        100 < 20 x 28960 slow_start
        140 < 12 x 16560 slow_start
        460 > 1 x 100 client_think
        480 < 26 x 37648 server_think
        520 < 16 x 22352 idle_restart
        1240 > 1 x 100 client_think
        1260 < 10 x 14480 server_think
        1300 < 20 x 28960 idle_restart
        1340 < 12 x 16560 idle_restart
        1660 > 1 x 100 client_think
        1680 < 26 x 37648 server_think
        1720 < 16 x 22352 idle_restart",
    );
    s.hosts[1].stack.idle_restart = Some(false);
    bursts(
        &s,
        "40 > 1 x 100 client_think
        60 < 10 x 14480 server_think
        100 < 20 x 28960 slow_start
        140 < 12 x 16560 slow_start
        460 > 1 x 100 client_think
        480 < 42 x 60000 server_think
        1200 > 1 x 100 client_think
        1220 < 42 x 60000 server_think
        1540 > 1 x 100 client_think
        1560 < 42 x 60000 server_think",
    );
}

/// HyStart ends slow start when the round trip has grown by an eighth, at least 4 ms: at 5 Mbit/s a segment
/// takes 2.4 ms.
#[test]
fn hystart_ends_slow_start_when_the_queue_grows() {
    let s = link(request(path(40), &[100], &[150_000]), 1, |l| l.rate = Some(5_000_000));
    some(
        &s,
        |p| p.packet.from == 1 && p.packet.cause.is_some() && p.sent > ms(140),
        "144.9792 < 43441..44889 slow_start
        147.3792 < 46337..47785 send_buffer
        149.7792 < 49233..50681 slow_start
        152.1792 < 52129..53577 slow_start
        154.5792 < 55025..56473 slow_start
        156.9792 < 57921..59369 slow_start
        159.3792 < 60817..62265 slow_start
        161.7792 < 63713..65161 slow_start
        164.1792 < 66609..68057 slow_start
        166.5792 < 69505..70953 slow_start
        168.9792 < 72401..73849 slow_start
        171.3792 < 75297..76745 slow_start
        176.1792 < 78193..79641 slow_start
        180.9792 < 83985..85433 slow_start
        185.7792 < 89777..91225 slow_start
        190.5792 < 95569..97017 slow_start
        195.3792 < 101361..102809 slow_start
        197.7792 < 107153..108601 slow_start
        200.1792 < 110049..111497 slow_start
        202.5792 < 112945..114393 slow_start
        204.9792 < 115841..117289 slow_start
        207.3792 < 118737..120185 slow_start
        209.7792 < 121633..123081 slow_start
        212.1792 < 124529..125977 slow_start
        214.5792 < 127425..128873 send_buffer
        216.9792 < 128873..130321 congestion_window
        219.3792 < 130321..131769 congestion_window
        221.7792 < 131769..133217 congestion_window
        224.1792 < 133217..134665 congestion_window
        226.5792 < 134665..136113 congestion_window
        228.9792 < 136113..137561 congestion_window
        231.3792 < 137561..139009 congestion_window
        233.7792 < 139009..140457 congestion_window
        236.1792 < 140457..141905 congestion_window
        238.5792 < 141905..143353 congestion_window
        240.9792 < 143353..144801 congestion_window
        243.3792 < 144801..146249 congestion_window
        245.7792 < 146249..147697 congestion_window
        248.1792 < 147697..149145 congestion_window
        250.5792 < 149145..150001 psh congestion_window",
    );
    // At 12 Mbit/s ACKs come each one or two milliseconds: a train of them that is longer than half the round
    // trip (20.5 ms) ends slow start.
    let s = link(request(path(40), &[100], &[200_000]), 1, |l| l.rate = Some(12_000_000));
    some(
        &s,
        |p| p.packet.from == 1 && p.packet.cause.is_some() && p.sent > ms(211),
        "212.074666 < 175209..176657 congestion_window
        215.074666 < 178105..179553 congestion_window
        217.074666 < 182449..183897 psh congestion_window
        219.074666 < 185345..186793 congestion_window
        221.074666 < 188241..189689 congestion_window
        225.074666 < 191137..192585 congestion_window
        227.074666 < 194033..195481 congestion_window
        229.074666 < 198377..199825 congestion_window",
    );
}

/// BBR at 12 Mbit/s: the first ten packets are not paced; then two segments in the time that the initial
/// window's rate, at 2.885 times, gives them.
#[test]
fn bbr_paces_two_segments_at_a_time() {
    let s = link(request(path(40), &[100], &[100_000]), 1, |l| l.rate = Some(12_000_000));
    some(
        &both(s, |h| h.stack.congestion = Some(Congestion::Bbr)),
        |p| p.packet.from == 1 && p.packet.cause.is_some(),
        "60.04 < 1..1449 server_think
        101.074666 < 14481..15929 slow_start
        103.848753 < 17377..18825 pacing
        106.62284 < 20273..21721 pacing
        109.396927 < 23169..24617 pacing
        112.171014 < 26065..27513 pacing
        114.945101 < 28961..30409 pacing
        117.719188 < 31857..33305 pacing
        120.493275 < 34753..36201 pacing
        123.267362 < 37649..39097 pacing
        126.041449 < 40545..41993 pacing
        142.074666 < 43441..44889 slow_start
        144.848753 < 46337..47785 pacing
        147.52082 < 49233..50681 pacing
        150.192887 < 52129..53577 pacing
        152.864954 < 55025..56473 pacing
        155.537021 < 57921..59369 pacing
        158.209088 < 60817..62265 pacing
        160.881155 < 63713..65161 pacing
        163.362767 < 66609..68057 pacing
        165.655515 < 69505..70953 pacing
        167.801367 < 72401..73849 pacing
        169.947219 < 75297..76745 pacing
        171.975555 < 78193..79641 pacing
        174.003891 < 81089..82537 pacing
        176.032227 < 83985..85433 pacing
        178.060563 < 86881..88329 pacing
        180.088899 < 89777..91225 psh pacing
        181.103067 < 91225..92673 pacing
        183.131403 < 94121..95569 pacing
        185.159739 < 97017..98465 pacing
        186.559392 < 99913..100001 psh pacing",
    );
}
