//! Packets that are late, arrive twice, or are lost by choice.

use crate::script::*;
use tcpwhy_base::{LossOf, Reorder, What};
use tcpwhy_model::Scenario;

/// 12 Mbit/s down: a full segment each millisecond.
fn paced(s: Scenario) -> Scenario {
    link(s, 1, |l| l.rate = Some(12_000_000))
}

/// A segment 30 ms late is repeated after the reordering window, and the D-SACK tells that it was not lost.
#[test]
fn a_late_segment_is_repeated_for_nothing() {
    let late = |n: u64, hold: i64| {
        link(paced(request(path(40), &[100], &[10_000])), 1, |l| {
            l.reorder = Some(Reorder { every: 0, nth: vec![n], hold: ms(hold) });
        })
    };
    packets(
        &late(2, 30),
        "0 > syn
        20 < syn ack 1
        40.04 > ack 1
        40.04 > 1..101 psh client_think
        60.04 < ack 101
        60.04 < 1..1449 server_think
        60.04 < 1449..2897
        60.04 < 2897..4345
        60.04 < 4345..5793
        60.04 < 5793..7241
        60.04 < 7241..8689
        60.04 < 8689..10001 psh
        81.074666 > ack 1449
        83.074666 > ack 1449 sack 2897..4345
        84.074666 > ack 1449 sack 2897..5793
        85.074666 > ack 1449 sack 2897..7241
        86.074666 > ack 1449 sack 2897..8689
        86.983999 > ack 1449 sack 2897..10001
        105.074666 < 1449..2897 again fast_recovery
        112.074666 > ack 10001
        112.074666 > fin ack 10001
        126.074666 > dsack ack 10001 sack 1449..2897
        132.074666 < fin ack 102
        152.109332 > ack 10002",
    );
    // 1 ms: nothing notices but the receiver.
    some(
        &late(2, 1),
        |p| p.sent > ms(80),
        "81.074666 > ack 1449
        83.074666 > ack 2897
        83.074666 > ack 4345
        84.074666 > ack 5793
        85.074666 > ack 7241
        86.074666 > ack 8689
        86.983999 > ack 10001
        86.983999 > fin ack 10001
        106.983999 < fin ack 102",
    );
    // Only packets with payload are counted: there are seven.
    some(&late(8, 30), |p| p.packet.sacks > 0, "");
}

#[test]
fn every_so_many_segments_are_held() {
    let s = link(paced(request(path(40), &[100], &[10_000])), 1, |l| {
        l.reorder = Some(Reorder { every: 3, nth: vec![], hold: ms(1) });
    });
    some(&s, |p| p.packet.sacks > 0, "86.983999 > ack 7241 sack 8689..10001");
}

/// Everything arrives twice: each copy is told with a D-SACK.
#[test]
fn copies_are_told() {
    let s = link(paced(request(path(40), &[100], &[3000])), 1, |l| l.duplicate_ppm = 1_000_000);
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40.04 > ack 1
        40.04 > ack 1
        40.04 > 1..101 psh client_think
        60.04 < ack 101
        60.04 < 1..1449 server_think
        60.04 < 1449..2897
        60.04 < 2897..3001 psh
        81.074666 > ack 1449
        81.074666 > dsack ack 1449 sack 1..1449
        82.074666 > ack 2897
        82.074666 > dsack ack 2897 sack 1449..2897
        82.178666 > ack 3001
        82.178666 > dsack ack 3001 sack 2897..3001
        82.178666 > fin ack 3001
        102.178666 < fin ack 102
        122.213332 > dsack ack 3002 sack 3001..3002",
    );
}

/// All ACKs without data are lost: the answer arrives, the server repeats.
#[test]
fn only_acks_are_lost() {
    let of = |loss_of| {
        link(request(path(40), &[100], &[3000]), 0, |l| (l.loss_of, l.loss_ppm) = (loss_of, 1_000_000))
    };
    some(
        &of(LossOf::Acks),
        |p| p.sent < ms(400),
        "0 > syn
        20 < syn ack 1
        40 > lost ack 1
        40 > 1..101 psh client_think
        60 < ack 101
        60 < 1..1449 server_think
        60 < 1449..2897
        60 < 2897..3001 psh
        80 > lost ack 1449
        80 > lost ack 2897
        80 > lost ack 3001
        80 > fin ack 3001
        100 < fin ack 102",
    );
    some(
        &of(LossOf::Data),
        |p| p.sent < ms(600) && p.packet.from == 0,
        "0 > syn
        40 > ack 1
        40 > 1..101 psh lost client_think
        284 > 1..101 psh again lost tail_loss_probe
        528 > 1..101 psh again lost retransmission_timeout",
    );
    some(
        &of(LossOf::All),
        |p| p.sent < ms(2000),
        "0 > syn lost
        1024 > syn again lost syn_retransmit",
    );
}

/// The nth packet with payload, the nth without, a byte, the last bytes.
#[test]
fn packets_are_chosen() {
    let gone = |what: What| {
        let s = lose(request(path(40), &[100], &[5000]), 1, &[what]);
        let out = tcpwhy_model::run(&s).unwrap();
        out.passages.iter().filter(|p| p.arrived.is_none()).map(line).collect::<Vec<_>>()
    };
    same(&gone(What::Syn(1)), "20 < syn lost ack 1");
    same(&gone(What::Data(2)), "60 < 1449..2897 lost");
    same(&gone(What::Ack(1)), "60 < lost ack 101");
    // Byte 1447 is the last of the first segment.
    same(&gone(What::Seq { at: 1447, copies: 1 }), "60 < 1..1449 lost server_think");
    same(&gone(What::Seq { at: 1448, copies: 1 }), "60 < 1449..2897 lost");
    same(&gone(What::Last { back: 0, copies: 1 }), "60 < 4345..5001 psh lost");
    same(
        &gone(What::Last { back: 1, copies: 2 }),
        "60 < 2897..4345 lost
        116 < 2897..4345 again lost fast_recovery",
    );
    same(&gone(What::Data(40)), "");
}
