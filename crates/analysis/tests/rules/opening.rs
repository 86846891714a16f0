//! Opening a connection: SYNs that nobody answers, queues, refusals, TLS.

use crate::wire::{Tap, Wire, analyze, ms, us};
use tcpwhy_analysis::{Finding, Quality};
use tcpwhy_base::{Cause, FixId, Nanos, Seq, Side, Tls};

/// SYNs at these times (ms); the last one is answered.
fn syns(times: &[i64]) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    for (i, &t) in times.iter().enumerate() {
        let packet = w.at(ms(t)).client().syn();
        if i + 1 < times.len() {
            packet.lost();
        }
    }
    w.after(ms(10)).server().syn_ack();
    w.after(ms(10)).client().ack();
    w
}

#[test]
fn a_handshake_takes_one_round_trip() {
    syns(&[0]).tells(
        "setup 0..20
           handshake network 0..20 #1-3",
    );
}

/// A packet lives two minutes, and so does its answer (rule 11).
#[test]
fn a_handshake_longer_than_packets_live() {
    for (rtt, told) in [
        (240_000, "setup 0..240000\n handshake network 0..240000 #1-3"),
        (240_002, "setup 0..240002\n unexplained nobody 0..240002 #1-3"),
    ] {
        let mut w = Wire::new(Tap::Client, ms(rtt));
        w.client().syn();
        w.after(ms(rtt / 2)).server().syn_ack();
        w.after(ms(rtt / 2)).client().ack();
        w.tells(told);
    }
}

#[test]
fn a_handshake_whose_last_ack_is_missing() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.client().syn();
    w.at(ms(10)).server().syn_ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-2",
    );
}

#[test]
fn syns_a_second_apart() {
    let c = syns(&[0, 1000, 2000, 3000]).tells(
        "setup 0..3020
           syn_retransmit nobody 0..3000 #1-4
           handshake network 3000..3020 #4-6",
    );
    let repeats = &c.setup.as_ref().unwrap().spans[0];
    let other: Vec<Cause> = repeats.alternatives.iter().flatten().map(|a| a.0).collect();
    assert_eq!(other, [Cause::AcceptQueueFull, Cause::SynQueueFull]);
    assert_eq!(c.ends[0].syn_repeats, 3);
}

#[test]
fn syns_by_a_doubling_timer() {
    syns(&[0, 1000, 3000, 7000]).tells(
        "setup 0..7020
           syn_retransmit nobody 0..7000 #1-4
           handshake network 7000..7020 #4-6",
    );
}

#[test]
fn syns_dropped_by_the_server_are_seen_at_its_tap() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.client().syn().lost();
    w.at(ms(1000)).client().syn();
    w.at(ms(1010)).server().syn_ack();
    w.at(ms(1020)).client().ack();
    w.tells(
        "setup 0..1020
           syn_retransmit server 0..1000 #1-2
           handshake network 1000..1020 #2-4",
    );
}

#[test]
fn syns_that_nobody_answers() {
    let mut w = Wire::new(Tap::Client, ms(20));
    for t in [0, 1000, 3000, 7000] {
        w.at(ms(t)).client().syn().lost();
    }
    w.tells(
        "setup 0..7000
           syn_retransmit nobody 0..7000 #1-4",
    );
}

#[test]
fn a_syn_ack_lost_behind_the_servers_tap() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.client().syn();
    w.at(ms(10)).server().syn_ack().lost();
    w.at(ms(1010)).server().syn_ack();
    w.at(ms(1020)).client().ack();
    w.tells(
        "setup 0..1020
           syn_retransmit nobody 0..1000 #1-3
           handshake network 1000..1020 #3-4",
    );
}

/// How the server's host and the client's are apart: within what hosts need to wake up no tap is beside one of them alone.
#[test]
fn a_tap_beside_both_ends_does_not_tell_whether_a_syn_came() {
    let repeated = |way: i64| {
        let mut w = Wire::new(Tap::Server, us(way));
        w.client().syn().lost();
        w.at(ms(1000)).client().syn();
        w.after(us(way / 2)).server().syn_ack();
        w.after(us(way / 2)).client().ack();
        w.after(us(way / 2)).client().data(100);
        w.after(ms(5)).server().data(50);
        w.after(us(way)).client().ack();
        let mut analysis = w.analysis();
        let at = analysis.findings.iter().position(|f| f.cause == Cause::SynRetransmit).unwrap();
        analysis.findings.swap_remove(at)
    };
    let fixes = |f: &Finding| f.fixes.iter().map(|f| f.fix).take(2).collect::<Vec<_>>();
    let near = repeated(100);
    assert_eq!(near.side, None);
    assert!(near.why().contains(": it was lost, or the server's host ignored it"), "{}", near.why());
    assert_eq!(fixes(&near), [FixId::Firewall, FixId::ListenBacklog], "the way first, which has the time");
    let far = repeated(102);
    assert_eq!(far.side, Some(Side::Server));
    assert!(far.why().contains("though it had reached the server's tap"), "{}", far.why());
    assert_eq!(fixes(&far), [FixId::ListenBacklog, FixId::Firewall]);
}

/// The SYN-ACK passed the tap and did not arrive: no queue of the server was full, so none is to be enlarged.
#[test]
fn a_syn_repeated_after_its_answer_is_the_paths_loss() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.client().syn();
    w.at(ms(10)).server().syn_ack().lost();
    w.at(ms(1000)).client().syn();
    w.at(ms(1010)).server().syn_ack();
    w.at(ms(1020)).client().ack();
    let analysis = w.analysis();
    let repeats = analysis.findings.iter().find(|f| f.cause == Cause::SynRetransmit).unwrap();
    assert_eq!(repeats.side, Some(Side::Network));
    let fixes: Vec<FixId> = repeats.fixes.iter().map(|f| f.fix).collect();
    assert_eq!(fixes, [FixId::FixLoss, FixId::Firewall, FixId::ReuseConnections]);
}

#[test]
fn a_reset_answers_the_syn() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.client().syn();
    w.at(ms(10)).server().rst();
    let c = w.tells(
        "setup 0..20
           refused server 0..20 #1-2",
    );
    assert!(c.exchanges.is_empty());
}

/// Rule 39. Windows tries a refused connect twice more, half a second after each reset.
#[test]
fn resets_answer_each_syn_however_often_it_is_tried() {
    let mut w = Wire::new(Tap::Client, ms(20));
    for t in [0, 520, 1040] {
        w.at(ms(t)).client().syn();
        w.at(ms(t + 10)).server().rst();
    }
    let c = w.tells(
        "setup 0..1060
           refused server 0..1060 #1-6",
    );
    let said = c.setup.expect("a setup").spans[0].facts.sentence();
    assert!(said.starts_with("3 resets answered the client's SYNs:"), "{said}");
}

/// The other side of rule 39: what came before the first reset was lost.
#[test]
fn a_syn_that_was_lost_before_one_was_refused() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.client().syn().lost();
    for t in [1000, 1520] {
        w.at(ms(t)).client().syn();
        w.at(ms(t + 10)).server().rst();
    }
    w.tells(
        "setup 0..1540
           syn_retransmit nobody 0..1000 #1-2
           refused server 1000..1540 #2-5",
    );
}

#[test]
fn tls_1_2_takes_two_round_trips_of_setup() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.client().data(300).tls(Tls::HANDSHAKE);
    w.at(ms(30)).server().data(1448).tls(Tls::HANDSHAKE);
    w.at(ms(40)).client().data(200).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER);
    w.at(ms(50)).server().data(100).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER);
    w.at(ms(60)).client().data(400).tls(Tls::DATA);
    w.at(ms(70)).server().data(500).tls(Tls::DATA);
    w.at(ms(80)).client().ack();
    let c = w.tells(
        "setup 0..60 500>1548
           handshake network 0..20 #1-3
           tls_handshake network 20..60 #4-7
         exchange 60..80 400>500
           path_delay network 60..80 #8-9",
    );
    assert_eq!(c.protocol, Some("tls"));
    assert_eq!(c.bytes, [900, 2048]);
}

#[test]
fn tls_1_3_takes_one_round_trip_of_setup() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.client().data(300).tls(Tls::HANDSHAKE);
    w.at(ms(30)).server().data(1000).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER | Tls::DATA);
    w.at(ms(40)).client().data(80).tls(Tls::CHANGE_CIPHER | Tls::DATA);
    w.client().data(400).tls(Tls::DATA);
    w.at(ms(50)).server().data(500).tls(Tls::DATA);
    w.at(ms(60)).client().ack();
    w.tells(
        "setup 0..40 300>1000
           handshake network 0..20 #1-3
           tls_handshake network 20..40 #4-5
         exchange 40..60 480>500
           path_delay network 40..60 #7-8",
    );
}

/// In an abbreviated handshake of TLS 1.2 the server has changed before the client, and may speak first.
#[test]
fn a_server_that_speaks_first_in_a_resumed_session_ends_the_handshake() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.client().data(300).tls(Tls::HANDSHAKE);
    w.at(ms(30)).server().data(140).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER);
    w.at(ms(40)).client().data(60).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER);
    w.at(ms(50)).server().data(70).tls(Tls::DATA);
    w.at(ms(60)).client().data(400).tls(Tls::DATA);
    w.at(ms(70)).server().data(500).tls(Tls::DATA);
    w.at(ms(80)).client().ack();
    let c = w.connection();
    let end = c.setup.as_ref().map(|s| s.end - c.start);
    assert!(end.is_some_and(|end| end >= ms(60) && end < ms(61)), "{end:?}");
}

/// PostgreSQL asks in the clear whether TLS may begin: a round trip, the server's work, then TLS.
#[test]
fn tls_that_is_asked_for_in_the_clear_is_setup() {
    let ask = b"\0\0\0\x08\x04\xd2\x16\x2f";
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.client().data(8).says(ask);
    w.at(ms(130)).server().data(1).says(b"S");
    w.at(ms(140)).client().data(300).tls(Tls::HANDSHAKE);
    w.at(ms(150)).server().data(1000).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER | Tls::DATA);
    w.at(ms(160)).client().data(480).tls(Tls::CHANGE_CIPHER | Tls::DATA);
    w.at(ms(170)).server().data(500).tls(Tls::DATA);
    w.at(ms(180)).client().ack();
    let c = w.tells(
        "setup 0..160 308>1001
           handshake network 0..20 #1-3
           tls_handshake network 20..30 #4-5
           server_think server 30..130 #4-5
           tls_handshake network 130..160 #4-7
         exchange 160..180 480>500
           path_delay network 160..180 #8-9",
    );
    assert_eq!(c.protocol, Some("tls"));
    // The server does not want it: the first message in the clear is a request, and before it stands what asking took.
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.client().data(8).says(ask);
    w.at(ms(30)).server().data(1).says(b"N");
    w.at(ms(40)).client().data(90).says(b"\0\0\0\x5a\0\x03\0\0");
    w.at(ms(50)).server().data(400);
    w.at(ms(60)).client().ack();
    let c = w.tells(
        "setup 0..40 8>1
           handshake network 0..20 #1-3
           tls_handshake network 20..40 #4-5
         exchange 40..60 90>400
           path_delay network 40..60 #6-7",
    );
    assert_eq!(c.protocol, None);
}

#[test]
fn think_within_tls_keeps_its_cause() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.client().data(300).tls(Tls::HANDSHAKE);
    w.at(ms(130)).server().data(1000).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER | Tls::DATA);
    w.at(ms(140)).client().data(80).tls(Tls::CHANGE_CIPHER | Tls::DATA);
    w.at(ms(150)).server().data(500).tls(Tls::DATA);
    w.at(ms(160)).client().ack();
    w.tells(
        "setup 0..140 300>1000
           handshake network 0..20 #1-3
           tls_handshake network 20..30 #4-5
           server_think server 30..130 #4-5
           tls_handshake network 130..140 #4-5
         exchange 140..160 80>500
           path_delay network 140..160 #6-7",
    );
}

#[test]
fn the_server_dropped_the_final_ack() {
    // Its accept queue is full: it takes no data, repeats its SYN-ACK, and has room when the data comes once more.
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 100).lost();
    w.at(ms(690)).client().repeat(0, 100).lost();
    w.at(ms(1010)).server().syn_ack();
    w.at(ms(1020)).client().ack();
    w.at(ms(1570)).client().repeat(0, 100);
    w.at(ms(1580)).server().data(50);
    w.at(ms(1590)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..1590 100>50
           accept_queue_full server 30..250 #4-5
           accept_queue_full server 250..690 #5-6
           accept_queue_full server 690..1570 #6-9
           accept_queue_full server 1570..1590 #9-10",
    );
}

/// Beside the server it is seen that data came and was not acknowledged, which a Linux that had taken the connection would have
/// done: no repeated SYN-ACK is needed for that. At the client's tap it may be lost as well.
#[test]
fn beside_the_server_unanswered_data_shows_a_full_accept_queue() {
    let dropped = |tap| {
        let mut w = Wire::new(tap, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100).lost();
        w.at(ms(250)).client().repeat(0, 100).lost();
        w.at(ms(690)).client().repeat(0, 100);
        w.at(ms(700)).server().data(50);
        w.at(ms(710)).client().ack();
        w
    };
    dropped(Tap::Server).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..690 100>50
           accept_queue_full server 30..250 #4-5
           accept_queue_full server 250..690 #5-6
         gap 690..710
           client_think client 690..710 #7-8",
    );
    let c = dropped(Tap::Client).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..710 100>50
           path_delay network 30..50 #4-5
           retransmission_timeout network 50..250 #4-5
           retransmission_timeout network 250..690 #5-6
           retransmission_timeout network 690..710 #6-7",
    );
    let lost = &c.exchanges[0].spans[1];
    assert_eq!((lost.confidence, lost.alternatives[0]), (0.6, Some((Cause::AcceptQueueFull, 0.3))));
}

/// Two hosts answer one address, each with its own first number: the client takes the one, then the other, and only that speaks (rule 91).
/// `from`: how many bytes behind the second number its data begins; what is missing there the capture lost.
fn answered_twice(second: u32, from: u32) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.client().syn();
    w.at(ms(10)).server().syn_ack();
    w.at(ms(12)).server().syn_ack().segment.seq = Seq(second);
    w.at(ms(20)).client().ack();
    w.client().data(100);
    w.at(ms(240)).client().repeat(0, 100);
    // The same numbers again, behind the second first one.
    w.at(ms(500)).client().repeat(0, 100).segment.ack = Seq(second + 1);
    w.host[1].nxt = Seq(second + 1 + from);
    w.at(ms(510)).server().data(1448);
    w.server().data(52);
    w.at(ms(520)).client().ack().segment.ack = Seq(second + 1 + from + 1500);
    w.at(ms(620)).client().data(100).segment.ack = Seq(second + 1 + from + 1500);
    w.at(ms(630)).server().data(40);
    w.at(ms(640)).client().ack().segment.ack = Seq(second + 1 + from + 1540);
    w
}

#[test]
fn what_the_client_acknowledges_tells_which_syn_ack_counts() {
    // Before the first number, and behind it.
    for second in [7, 3_000_000_000] {
        let c = answered_twice(second, 0).connection();
        assert!(!c.quality.has(Quality::CAPTURE_DROPS), "{second}");
        assert_eq!(c.budget.get(Cause::AcceptQueueFull), Nanos::ZERO, "{:?}", c.budget);
        assert_eq!(c.bytes[1], 1_540);
        // Bytes that the capture lacks behind the second number are still missing.
        let lacks = answered_twice(second, 2_000).connection();
        assert!(lacks.quality.has(Quality::CAPTURE_DROPS), "{second}");
    }
}

/// The server's SYN-ACK with the same number again is that of a server that has not taken the final ACK (rule 11); where another number came in
/// between, nobody knows which of them it did not take.
#[test]
fn a_repeated_syn_ack_of_one_of_two_tells_nothing_of_a_queue() {
    let full = |second: Option<u32>| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.client().syn();
        w.at(ms(10)).server().syn_ack();
        if let Some(second) = second {
            w.at(ms(12)).server().syn_ack().segment.seq = Seq(second);
        }
        w.at(ms(20)).client().ack();
        w.client().data(100).lost();
        w.at(ms(240)).client().repeat(0, 100).lost();
        w.at(ms(600)).server().syn_ack();
        w.at(ms(680)).client().repeat(0, 100);
        w.at(ms(690)).server().data(50);
        w.at(ms(700)).client().ack();
        w.connection().budget.get(Cause::AcceptQueueFull) > Nanos::ZERO
    };
    assert_eq!([full(None), full(Some(7)), full(Some(500_000))], [true, false, true]);
}

/// Eighty bytes come with the SYN, and the server takes them (TCP Fast Open): they are the request, on which it works from then on (rule 117).
#[test]
fn what_a_syn_carries_is_the_request() {
    for tap in [Tap::Client, Tap::Server] {
        let mut w = Wire::new(tap, ms(40));
        w.handshake();
        w.at(ms(120)).server().data(500);
        w.after(ms(20)).client().ack();
        let mut segments = w.segments();
        for (n, segment) in segments.iter_mut().enumerate() {
            match (n, segment.src.port == 80) {
                (0, _) => segment.len = 80,
                (_, true) => segment.ack = segment.ack + 80,
                (_, false) => segment.seq = segment.seq + 80,
            }
        }
        let c = analyze(&segments).connections.remove(0);
        let wait = if tap == Tap::Client { ms(100) } else { ms(60) };
        assert_eq!(c.exchanges.len(), 1);
        assert_eq!((c.exchanges[0].bytes, c.setup.as_ref().unwrap().bytes), ([80, 500], [0, 0]));
        assert_eq!(c.budget.get(Cause::ServerThink), wait, "{tap:?}: {:?}", c.budget);
    }
}
