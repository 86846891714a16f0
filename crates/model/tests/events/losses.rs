//! Losses: what is repeated when, and what the window does then.

use crate::script::*;
use tcpwhy_base::What;
use tcpwhy_model::{Profile, Scenario};

/// 12 Mbit/s down: a full segment each millisecond.
fn paced(s: Scenario) -> Scenario {
    link(s, 1, |l| l.rate = Some(12_000_000))
}

fn lost(down: u64, what: &[u64]) -> Scenario {
    let what: Vec<What> = what.iter().map(|&n| What::Data(n)).collect();
    lose(paced(request(path(40), &[100], &[down])), 1, &what)
}

/// RACK waits a quarter of the round trip, or until three segments were SACKed: the third SACK leaves at
/// 85.07, the repeat one way later. The ACKs of a flight are a millisecond apart, as its segments are.
#[test]
fn the_third_sack_repeats_a_lost_segment() {
    packets(
        &lost(20_000, &[3]),
        "0 > syn
        20 < syn ack 1
        40.04 > ack 1
        40.04 > 1..101 psh client_think
        60.04 < ack 101
        60.04 < 1..1449 server_think
        60.04 < 1449..2897
        60.04 < 2897..4345 lost
        60.04 < 4345..5793
        60.04 < 5793..7241
        60.04 < 7241..8689
        60.04 < 8689..10137
        60.04 < 10137..11585
        60.04 < 11585..13033
        60.04 < 13033..14481
        81.074666 > ack 1449
        82.074666 > ack 2897
        83.074666 > ack 2897 sack 4345..5793
        84.074666 > ack 2897 sack 4345..7241
        85.074666 > ack 2897 sack 4345..8689
        86.074666 > ack 2897 sack 4345..10137
        87.074666 > ack 2897 sack 4345..11585
        88.074666 > ack 2897 sack 4345..13033
        89.074666 > ack 2897 sack 4345..14481
        101.074666 < 14481..15929 slow_start
        101.074666 < 15929..17377
        102.074666 < 17377..18825 slow_start
        102.074666 < 18825..20001 psh
        105.074666 < 2897..4345 again fast_recovery
        122.074666 > ack 2897 sack 4345..15929
        123.074666 > ack 2897 sack 4345..17377
        124.074666 > ack 2897 sack 4345..18825
        124.893332 > ack 2897 sack 4345..20001
        126.074666 > ack 20001
        126.074666 > fin ack 20001
        146.074666 < fin ack 102",
    );
}

/// Two losses in two flights; the window falls to 0.7 of what it was by proportional rate reduction (RFC 6937).
#[test]
fn a_recovery_sends_one_segment_for_about_two_delivered() {
    some(
        &lost(60_000, &[3, 15]),
        |p| p.packet.from == 1 && p.packet.len > 0,
        "60.04 < 1..1449 server_think
        60.04 < 1449..2897
        60.04 < 2897..4345 lost
        60.04 < 4345..5793
        60.04 < 5793..7241
        60.04 < 7241..8689
        60.04 < 8689..10137
        60.04 < 10137..11585
        60.04 < 11585..13033
        60.04 < 13033..14481
        101.074666 < 14481..15929 slow_start
        101.074666 < 15929..17377
        102.074666 < 17377..18825 slow_start
        102.074666 < 18825..20273
        104.074666 < 20273..21721 lost slow_start
        104.074666 < 21721..23169
        105.074666 < 2897..4345 again fast_recovery
        106.074666 < 23169..24617 fast_recovery
        108.074666 < 24617..26065 fast_recovery
        109.074666 < 26065..27513 fast_recovery
        144.074666 < 27513..28961 fast_recovery
        145.074666 < 28961..30409 fast_recovery
        146.074666 < 20273..21721 again fast_recovery
        146.074666 < 30409..31857 fast_recovery
        147.074666 < 31857..33305 fast_recovery
        148.074666 < 33305..34753 fast_recovery
        149.074666 < 34753..36201 fast_recovery
        150.074666 < 36201..37649 fast_recovery
        185.074666 < 37649..39097 fast_recovery
        186.074666 < 39097..40545 fast_recovery
        188.074666 < 40545..41993 congestion_window
        188.074666 < 41993..43441
        190.074666 < 43441..44889 congestion_window
        190.074666 < 44889..46337
        192.074666 < 46337..47785 congestion_window
        192.074666 < 47785..49233
        227.074666 < 49233..50681 congestion_window
        227.074666 < 50681..52129
        227.074666 < 52129..53577
        230.074666 < 53577..55025 congestion_window
        230.074666 < 55025..56473
        232.074666 < 56473..57921 congestion_window
        232.074666 < 57921..59369
        234.074666 < 59369..60001 psh congestion_window",
    );
}

/// The repeat is lost too: what was sent after it shows it.
#[test]
fn a_lost_repeat_is_repeated() {
    let s = lose(paced(request(path(40), &[100], &[60_000])), 1, &[What::Seq { at: 3000, copies: 2 }]);
    some(
        &s,
        |p| p.packet.from == 1 && p.packet.len > 0,
        "60.04 < 1..1449 server_think
        60.04 < 1449..2897
        60.04 < 2897..4345 lost
        60.04 < 4345..5793
        60.04 < 5793..7241
        60.04 < 7241..8689
        60.04 < 8689..10137
        60.04 < 10137..11585
        60.04 < 11585..13033
        60.04 < 13033..14481
        101.074666 < 14481..15929 slow_start
        101.074666 < 15929..17377
        102.074666 < 17377..18825 slow_start
        102.074666 < 18825..20273
        104.074666 < 20273..21721 slow_start
        104.074666 < 21721..23169
        105.074666 < 2897..4345 again lost fast_recovery
        106.074666 < 23169..24617 fast_recovery
        108.074666 < 24617..26065 fast_recovery
        109.074666 < 26065..27513 fast_recovery
        144.074666 < 27513..28961 fast_recovery
        145.074666 < 28961..30409 fast_recovery
        146.074666 < 30409..31857 fast_recovery
        147.074666 < 31857..33305 fast_recovery
        148.074666 < 2897..4345 again fast_recovery
        148.074666 < 33305..34753 fast_recovery
        149.074666 < 34753..36201 fast_recovery
        150.074666 < 36201..37649 fast_recovery
        185.074666 < 37649..39097 fast_recovery
        186.074666 < 39097..40545 fast_recovery
        187.074666 < 40545..41993 fast_recovery
        188.074666 < 41993..43441 fast_recovery
        190.074666 < 43441..44889 congestion_window
        190.074666 < 44889..46337
        192.074666 < 46337..47785 congestion_window
        192.074666 < 47785..49233
        226.074666 < 49233..50681 congestion_window
        228.074666 < 50681..52129 congestion_window
        228.074666 < 52129..53577
        229.074666 < 53577..55025 congestion_window
        229.074666 < 55025..56473
        231.074666 < 56473..57921 congestion_window
        233.074666 < 57921..59369 congestion_window
        233.074666 < 59369..60001 psh",
    );
}

/// Two losses; the first repeat is lost again and again, the second's is SACKed: no sample of the round trip
/// (Karn), as the echo is that of a segment long before. So the second timeout comes after twice 244 ms, past
/// the next edge of 32 ms: 368 + 488 = 856, and 864.
#[test]
fn the_sack_of_a_repeat_is_no_sample() {
    let s = lose(
        paced(request(path(40), &[100], &[10_000])),
        1,
        &[What::Seq { at: 1448, copies: 4 }, What::Data(3)],
    );
    some(
        &s,
        |p| p.packet.from == 1 && p.packet.repeat,
        "104.074666 < 1449..2897 again lost fast_recovery
        104.983999 < 2897..4345 again fast_recovery
        145.983999 < 1449..2897 again lost fast_recovery
        368 < 1449..2897 again lost retransmission_timeout
        864 < 1449..2897 again retransmission_timeout",
    );
}

/// Linux 3.10: three duplicate ACKs; the next hole when the first is filled (RFC 6582).
#[test]
fn three_duplicate_acks_repeat_the_head() {
    let s = both(lost(20_000, &[3, 5]), |h| h.stack.profile = Profile::named("linux-3.10").unwrap());
    some(
        &s,
        |p| p.packet.from == 1 && p.packet.len > 0,
        "60.04 < 1..1449 server_think
        60.04 < 1449..2897
        60.04 < 2897..4345 lost
        60.04 < 4345..5793
        60.04 < 5793..7241 lost
        60.04 < 7241..8689
        60.04 < 8689..10137 psh
        60.04 < 10137..11585
        60.04 < 11585..13033
        60.04 < 13033..14481
        101.074666 < 14481..15929 slow_start
        101.074666 < 15929..17377
        102.074666 < 17377..18825 slow_start
        102.074666 < 18825..20001 psh
        105.074666 < 2897..4345 again fast_recovery
        146.074666 < 5793..7241 again fast_recovery",
    );
    // Two are not enough: the probe, at twice the round trip and 2 ms.
    let s = both(lost(7240, &[3]), |h| h.stack.profile = Profile::named("linux-3.10").unwrap());
    some(
        &s,
        |p| p.packet.from == 1 && p.packet.len > 0,
        "60.04 < 1..1449 server_think
        60.04 < 1449..2897
        60.04 < 2897..4345 lost
        60.04 < 4345..5793
        60.04 < 5793..7241 psh
        186 < 5793..7241 psh again tail_loss_probe
        227 < 2897..4345 again fast_recovery",
    );
}

/// The last segment is lost: a probe after two round trips and 200 ms (one segment is out), then the window
/// is reduced as the probe repaired something: the next answer leaves with 7 of 10 segments.
#[test]
fn a_tail_loss_probe_repairs_the_tail_and_costs_window() {
    let tail = |n: u64| {
        let mut s = lose(request(path(40), &[100], &[2000]), 1, &[What::Data(n)]);
        s.workload.requests = 2;
        s.workload.turns.push(tcpwhy_base::Turn {
            response: vec![tcpwhy_base::Step::Write(30_000)],
            ..s.workload.turns[0].clone()
        });
        s
    };
    bursts(
        &tail(2),
        "40 > 1 x 100 client_think
        60 < 2 x 2000 1 lost server_think
        344 < 1 x 552 1 again tail_loss_probe
        364 > 1 x 100 client_think
        384 < 7 x 10136 server_think
        424 < 8 x 11584 congestion_window
        464 < 6 x 8280 congestion_window",
    );
    bursts(
        &tail(9),
        "40 > 1 x 100 client_think
        60 < 2 x 2000 server_think
        80 > 1 x 100 client_think
        100 < 10 x 14480 1 lost server_think
        140 < 11 x 15520 slow_start
        140 < 1 x 1448 1 again fast_recovery
        180 < 1 x 1448 1 again fast_recovery",
    );
}

/// The probe is lost as well: the timeout, and the next one after twice as long.
#[test]
fn after_a_lost_probe_the_timeouts_double() {
    let s = lose(request(path(40), &[100], &[2000]), 1, &[What::Last { back: 0, copies: 4 }]);
    some(
        &s,
        |p| p.packet.from == 1 && p.packet.len > 0,
        "60 < 1..1449 server_think
        60 < 1449..2001 psh lost
        344 < 1449..2001 psh again lost tail_loss_probe
        588 < 1449..2001 psh again lost retransmission_timeout
        1088 < 1449..2001 psh again lost retransmission_timeout
        2080 < 1449..2001 psh again retransmission_timeout",
    );
}

/// All segments of a flight are lost: the probe (100 + 2 x 40 + 2, past the tick of 4 ms and the next:
/// several are out) is SACKed and shows it; then the window opens by one for each delivered.
#[test]
fn a_lost_flight_is_found_by_the_probe() {
    let s = link(request(path(40), &[100], &[30_000]), 1, |l| l.cuts = vec![(ms(90), ms(70))]);
    bursts(
        &s,
        "40 > 1 x 100 client_think
        60 < 10 x 14480 server_think
        100 < 11 x 15520 11 lost slow_start
        188 < 1 x 1040 1 again tail_loss_probe
        228 < 1 x 1448 1 again fast_recovery
        268 < 2 x 2896 2 again fast_recovery
        308 < 4 x 5792 4 again fast_recovery
        348 < 3 x 4344 3 again fast_recovery",
    );
}

/// The probe is lost too: a timeout 240 ms after it, then slow start from one segment.
#[test]
fn a_timeout_starts_again_with_one_segment() {
    let s = link(request(path(40), &[100], &[30_000]), 1, |l| l.cuts = vec![(ms(90), ms(170))]);
    bursts(
        &s,
        "40 > 1 x 100 client_think
        60 < 10 x 14480 server_think
        100 < 11 x 15520 11 lost slow_start
        188 < 1 x 1040 1 again 1 lost tail_loss_probe
        432 < 1 x 1448 1 again retransmission_timeout
        472 < 2 x 2896 2 again retransmission_timeout
        512 < 4 x 5792 4 again retransmission_timeout
        552 < 4 x 5384 4 again retransmission_timeout",
    );
}

/// Nothing was lost, the path stood still: time stamps show that the repeats were not needed, the window comes back.
#[test]
fn a_needless_timeout_is_undone() {
    let still = link(request(path(40), &[100], &[30_000]), 1, |l| l.pauses = vec![(ms(70), ms(700))]);
    bursts(
        &still,
        "40 > 1 x 100 client_think
        60 < 10 x 14480 server_think
        148 < 1 x 1448 tail_loss_probe
        284 > 1 x 100 1 again tail_loss_probe
        392 < 1 x 1448 1 again retransmission_timeout
        528 > 1 x 100 1 again retransmission_timeout
        789.999999 < 10 x 14072 slow_start",
    );
    bursts(
        &both(still, |h| h.stack.profile.undo = false),
        "40 > 1 x 100 client_think
        60 < 10 x 14480 server_think
        148 < 1 x 1448 tail_loss_probe
        284 > 1 x 100 1 again tail_loss_probe
        392 < 1 x 1448 1 again retransmission_timeout
        528 > 1 x 100 1 again retransmission_timeout
        789.999999 < 10 x 14480 10 again retransmission_timeout
        789.999999 < 7 x 10136 retransmission_timeout
        829.999999 < 3 x 3936 congestion_window",
    );
}

/// A timeout is given up after fifteen repeats (`tcp_retries2`); from 120 s on they are 120 s apart.
#[test]
fn a_connection_dies_after_fifteen_timeouts() {
    let s = link(request(path(40), &[100], &[3000]), 1, |l| l.black_hole_over = Some(1400));
    let out = some(
        &s,
        |p| p.packet.repeat && p.packet.from == 1,
        "116 < 1..1449 again lost fast_recovery
        360 < 1..1449 again lost retransmission_timeout
        864 < 1..1449 again lost retransmission_timeout
        1856 < 1..1449 again lost retransmission_timeout
        3808 < 1..1449 again lost retransmission_timeout
        7680 < 1..1449 again lost retransmission_timeout
        15616 < 1..1449 again lost retransmission_timeout
        31232 < 1..1449 again lost retransmission_timeout
        63488 < 1..1449 again lost retransmission_timeout
        126976 < 1..1449 again lost retransmission_timeout
        247808 < 1..1449 again lost retransmission_timeout
        368640 < 1..1449 again lost retransmission_timeout
        489472 < 1..1449 again lost retransmission_timeout
        610304 < 1..1449 again lost retransmission_timeout
        731136 < 1..1449 again lost retransmission_timeout
        851968 < 1..1449 again lost retransmission_timeout",
    );
    assert!(out.connections[0].dead && !out.complete() && !out.cut_off);
}

/// `tcp_mtu_probing` = 1: when repeats have gone on for as long as three doublings of the shortest timeout
/// take (3 s), the segments shrink to 1024 bytes.
#[test]
fn a_black_hole_is_left_by_smaller_segments() {
    let s = link(request(path(40), &[100], &[3000]), 1, |l| l.black_hole_over = Some(1400));
    some(
        &host(s.clone(), 1, |h| h.stack.mtu_probing = true),
        |p| p.sent > ms(50),
        "60 < ack 101
        60 < 1..1449 lost server_think
        60 < 1449..2897 lost
        60 < 2897..3001 psh
        80 > ack 1 sack 2897..3001
        116 < 1..1449 again lost fast_recovery
        360 < 1..1449 again lost retransmission_timeout
        864 < 1..1449 again lost retransmission_timeout
        1856 < 1..1449 again lost retransmission_timeout
        3808 < 1..1025 again retransmission_timeout
        3828 > ack 1025 sack 2897..3001
        3848 < 1025..1449 again retransmission_timeout
        3848 < 1449..2473 again retransmission_timeout
        3868 > ack 1449 sack 2897..3001
        3868 > ack 2473 sack 2897..3001
        3888 < 2473..2897 again retransmission_timeout
        3908 > ack 3001
        3908 > fin ack 3001
        3928 < fin ack 102",
    );
    // 52 bytes of headers: what is no larger passes.
    some(&link(s.clone(), 1, |l| l.black_hole_over = Some(1500)), |p| p.arrived.is_none(), "");
    let just = link(s, 1, |l| l.black_hole_over = Some(1499));
    some(
        &just,
        |p| p.arrived.is_none() && p.sent < ms(100),
        "60 < 1..1449 lost server_think
        60 < 1449..2897 lost",
    );
}
