//! Losses, timers, repairs, and what only looks like a loss.

use crate::wire::{CLIENT, Tap, Wire, analyze, ms};
use tcpwhy_analysis::{Analyzer, Config, Detail};
use tcpwhy_base::{Cause, Class, FixId, Nanos};

const MSS: u32 = 1448;

fn opened(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w
}

/// No time goes to TCP.
fn no_tcp(w: &Wire) {
    let c = w.connection();
    let tcp: Vec<_> = c.budget.0.iter().filter(|b| b.0.class() == Class::Tcp).collect();
    assert!(tcp.is_empty(), "{tcp:?}");
}

#[test]
fn the_timer_doubles_until_the_request_arrives() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(800).lost();
    w.client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 800).lost();
    w.at(ms(690)).client().repeat(0, 800).lost();
    w.at(ms(1570)).client().repeat(0, 800);
    w.at(ms(1580)).server().ack();
    w.at(ms(1590)).client().repeat(800, 100);
    w.at(ms(1600)).server().data(50);
    w.at(ms(1610)).client().ack();
    // The trip that the data would have taken anyway is the path's.
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..1610 900>50
           path_delay network 30..50 #5-6
           retransmission_timeout network 50..250 #5-6
           retransmission_timeout network 250..690 #6-7
           retransmission_timeout network 690..1570 #7-8
           retransmission_timeout network 1570..1590 #8-10
           retransmission_timeout network 1590..1610 #10-11",
    );
    assert_eq!(c.retransmitted, [4, 0]);
}

/// What is lost is missed a round trip after the last ACK that came in its order, which is told in few steps.
#[test]
fn the_last_ack_in_order_counts_for_the_loss_behind_it() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(MSS);
    w.client().data(MSS).lost();
    w.at(ms(40)).server().ack();
    w.at(ms(100)).client().data(100).lost();
    w.at(ms(310)).client().repeat(MSS, MSS);
    w.at(ms(320)).server().ack();
    w.at(ms(330)).client().repeat(2 * MSS, 100);
    w.at(ms(340)).server().data(50);
    w.at(ms(350)).client().ack();
    let timeout = |analyzer: Analyzer| {
        let mut analyzer = analyzer;
        analyzer.push_all(&w.segments());
        analyzer.finish().connections[0].budget.get(Cause::RetransmissionTimeout)
    };
    let all = || Analyzer::new(Config { detail: Detail::All });
    let long = timeout(all().by_the_long_way());
    assert!(long >= ms(200) && timeout(all()) == long, "{long:?}");
}

#[test]
fn a_probe_of_the_only_segment_is_answered_at_once() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 100);
    w.at(ms(260)).server().data(50);
    w.at(ms(270)).client().ack();
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..270 100>50
           path_delay network 30..50 #4-5
           tail_loss_probe network 50..250 #4-5
           tail_loss_probe network 250..270 #5-6",
    );
    assert_eq!(c.ends[CLIENT].min_rto, Some(ms(220)));
}

#[test]
fn a_probe_of_the_last_of_three_segments() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().write(2 * MSS);
    w.client().data(100).lost();
    w.at(ms(40)).server().ack();
    w.at(ms(72)).client().repeat(2 * MSS, 100);
    w.at(ms(82)).server().data(50);
    w.at(ms(92)).client().ack();
    let c = w.connection();
    let e = &c.exchanges[0];
    assert!(e.spans.iter().all(|s| matches!(s.cause, Cause::PathDelay | Cause::TailLossProbe)));
    assert_eq!((e.end - e.start, e.spans.last().map(|s| s.cause)), (ms(62), Some(Cause::TailLossProbe)));
    assert!(c.budget.get(Cause::TailLossProbe) >= ms(42));
}

#[test]
fn all_of_a_flight_lost() {
    let mut w = opened(Tap::Client);
    w.at(ms(30));
    for len in [MSS, MSS, 100] {
        w.client().data(len).lost();
    }
    w.at(ms(250)).client().repeat(0, MSS);
    w.at(ms(260)).server().ack();
    w.at(ms(270)).client().repeat(MSS, MSS);
    w.client().repeat(2 * MSS, 100);
    w.at(ms(280)).server().data(50);
    w.at(ms(290)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..290 2996>50
           path_delay network 30..50 #6-7
           retransmission_timeout network 50..250 #6-7
           retransmission_timeout network 250..270 #7-9
           retransmission_timeout network 270..290 #10-11",
    );
}

#[test]
fn a_hole_repaired_with_sack_at_the_sender() {
    let mut w = opened(Tap::Client);
    w.at(ms(30));
    for i in 0..10 {
        let packet = w.client().data(MSS);
        if i == 2 {
            packet.lost();
        }
    }
    w.at(ms(40)).server().ack();
    w.at(ms(51)).client().repeat(2 * MSS, MSS);
    w.at(ms(61)).server().data(50);
    w.at(ms(71)).client().ack();
    let c = w.connection();
    assert_eq!(c.retransmitted, [1, 0]);
    let e = &c.exchanges[0];
    assert!(e.spans.iter().all(|s| matches!(s.cause, Cause::PathDelay | Cause::FastRecovery)));
    assert_eq!((e.end - e.start, e.spans.last().map(|s| s.cause)), (ms(41), Some(Cause::FastRecovery)));
    // From when the lost data would have been acknowledged to when the repeat was.
    assert!(c.budget.get(Cause::FastRecovery) >= ms(21));
}

#[test]
fn a_hole_repaired_late_at_the_receiver() {
    let mut w = opened(Tap::Server);
    w.at(ms(30));
    for i in 0..10 {
        let packet = w.client().data(MSS);
        if i == 2 {
            packet.lost_before_tap();
        }
    }
    w.at(ms(40)).server().ack();
    w.at(ms(50)).client().repeat(2 * MSS, MSS);
    w.at(ms(60)).server().data(50);
    w.at(ms(70)).client().ack();
    // The receiver sits before the hole all the while.
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..50 14480>50
           fast_recovery network 30..50 #12-14
         gap 50..70
           client_think client 50..70 #15-16",
    );
}

#[test]
fn a_packet_overtaken_within_half_a_round_trip_is_no_loss() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(MSS);
    w.client().data(MSS).late(ms(4));
    w.client().data(MSS);
    w.client().data(100);
    w.at(ms(44)).server().data(50);
    w.at(ms(54)).client().ack();
    let c = w.connection();
    assert_eq!(c.retransmitted, [0, 0]);
    assert_eq!(c.ends[CLIENT].reordered, 1);
    no_tcp(&w);
}

#[test]
fn a_repeat_that_was_not_needed_is_no_loss() {
    // The server's ACK is lost; the client repeats by its timer, and a DSACK says that the request was there. The
    // server thinks all the while.
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(80)).server().ack().lost_before_tap();
    w.at(ms(250)).client().repeat(0, 100);
    w.at(ms(260)).server().ack();
    w.at(ms(400)).server().data(50);
    w.at(ms(410)).client().ack();
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..410 100>50
           path_delay network 30..40 #4-7
           server_think server 40..400 #4-7
           path_delay network 400..410 #4-7",
    );
    assert_eq!(c.retransmitted, [1, 0]);
}

#[test]
fn a_flow_stopped_by_a_needless_timeout() {
    // The ACKs come 2 ms after the timer: too soon to be the answer to the repeat.
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().write(4 * MSS);
    w.at(ms(250)).client().repeat(0, MSS);
    w.at(ms(242)).server().ack();
    w.at(ms(252)).client().write(2 * MSS);
    w.at(ms(262)).server().data(50);
    w.at(ms(272)).client().ack();
    let c = w.connection();
    let first = &c.exchanges[0].spans;
    assert!(first.iter().all(|s| matches!(s.cause, Cause::PathDelay | Cause::SpuriousRecovery)));
    assert!(c.budget.get(Cause::SpuriousRecovery) >= ms(202), "{:?}", c.budget);
}

#[test]
fn after_a_loss_the_window_is_smaller() {
    let mut w = opened(Tap::Client);
    w.at(ms(30));
    for i in 0..10 {
        let packet = w.client().data(MSS);
        if i == 2 {
            packet.lost();
        }
    }
    w.at(ms(40)).server().ack();
    w.at(ms(50)).client().repeat(2 * MSS, MSS);
    w.at(ms(60)).server().ack();
    w.at(ms(70)).client().write(7 * MSS);
    w.at(ms(80)).server().ack();
    w.at(ms(90)).client().write(7 * MSS);
    w.at(ms(100)).server().data(50);
    w.at(ms(110)).client().ack();
    let c = w.connection();
    let spans = &c.exchanges[0].spans;
    let [.., window, path] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((window.cause, window.duration()), (Cause::CongestionWindow, ms(20)));
    assert_eq!((window.frames.first(), window.frames.last()), (23, 31));
    assert_eq!((path.cause, path.duration()), (Cause::PathDelay, ms(20)));
    assert_eq!(c.budget.get(Cause::CongestionWindow), ms(20));
    assert_eq!(c.budget.get(Cause::FastRecovery) + c.budget.get(Cause::PathDelay), ms(60));
}

#[test]
fn a_peer_that_is_gone() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(100)).client().data(800).lost();
    w.client().data(100).lost();
    w.at(ms(320)).client().repeat(100, 800).lost();
    w.at(ms(760)).client().repeat(100, 800).lost();
    w.at(ms(3400)).client().rst();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..50 100>50
           path_delay network 30..50 #4-5
         gap 50..100
           client_think client 50..100 #5-7
         exchange 100..3400 900>0 rst
           path_delay network 100..120 #8-9
           retransmission_timeout network 120..320 #8-9
           retransmission_timeout network 320..760 #9-10
           keepalive_or_dead_peer server 760..3400 #10-11",
    );
}

#[test]
fn keep_alives_of_an_idle_connection() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    for i in 1..4 {
        w.at(ms(50 + 75_000 * i)).client().probe();
        w.after(ms(10)).server().ack();
    }
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..50 100>50
           path_delay network 30..50 #4-5
         gap 50..225070
           client_think client 50..225070 #5-12",
    );
    assert_eq!((c.ends[CLIENT].probes, c.ends[CLIENT].keepalives), (0, 3));
    assert_eq!(c.budget.get(Cause::KeepaliveOrDeadPeer), Nanos::ZERO);
}

/// Of three keep-alives the first is answered; then its client gives up (rule 101).
#[test]
fn keep_alives_that_nobody_answers() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(1_050)).client().probe();
    w.after(ms(10)).server().ack();
    w.at(ms(2_070)).client().probe();
    w.at(ms(3_070)).client().probe();
    w.at(ms(4_070)).client().rst();
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..50 100>50
           path_delay network 30..50 #4-5
         gap 50..4070
           client_think client 50..2070 #5-9
           keepalive_or_dead_peer server 2070..4070 #9-11",
    );
    let last = c.gaps.last().unwrap().spans.last().unwrap();
    assert_eq!(last.facts.sentence(), "The peer did not answer for 2.00 s; 2 probes or repeats.");
}

#[test]
fn a_repeat_after_reordering_behind_the_tap() {
    // The third segment is held up behind the tap; three later ones are reported, so that it is sent again; then a
    // DSACK says that both came. New data had gone out meanwhile.
    let mut w = opened(Tap::Client);
    w.at(ms(30));
    for _ in 0..10 {
        w.client().data(MSS);
    }
    w.overtaken(7, ms(21));
    w.at(ms(40)).server().ack();
    w.at(ms(51)).client().repeat(2 * MSS, MSS);
    w.at(ms(52)).client().write(2 * MSS);
    w.at(ms(62)).server().ack();
    w.at(ms(82)).server().data(50);
    w.at(ms(92)).client().ack();
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::FastRecovery), Nanos::ZERO);
    assert!(c.budget.get(Cause::SpuriousRecovery) >= ms(22), "{:?}", c.budget);
    assert_eq!(
        c.exchanges[0].spans.last().map(|s| (s.cause, s.duration())),
        Some((Cause::PathDelay, ms(20)))
    );
}

#[test]
fn full_segments_vanish_and_small_ones_pass() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(100)).client().data(MSS).lost();
    w.client().data(MSS).lost();
    for t in [320, 760, 1640] {
        w.at(ms(t)).client().repeat(100, MSS).lost();
    }
    // The kernel probes the path's MTU and finds a size that passes.
    w.at(ms(3400)).client().repeat(100, 1000);
    w.at(ms(3410)).server().ack();
    w.at(ms(3420)).client().repeat(1100, 1000);
    w.client().repeat(2100, 896);
    w.at(ms(3430)).server().data(50);
    w.at(ms(3440)).client().ack();
    let c = w.connection();
    assert!(c.exchanges[1].spans.iter().all(|s| matches!(s.cause, Cause::PathDelay | Cause::PathMtu)));
    assert!(c.budget.get(Cause::PathMtu) >= ms(3300), "{:?}", c.budget);
}

#[test]
fn an_ack_too_soon_after_the_repeat_was_for_the_first_copy() {
    // A host without DSACK; its delayed ACK passes the repeat on the way.
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(241)).server().ack();
    w.at(ms(250)).client().repeat(0, 100);
    w.at(ms(400)).server().data(50).segment.options.sack_len = 0;
    w.at(ms(410)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..410 100>50
           path_delay network 30..40 #4-7
           server_think server 40..400 #4-7
           path_delay network 400..410 #4-7",
    );
}

/// The only packet of an answer is lost far from the tap, and repeated after a round trip and the 200 ms of the timer's
/// floor. `work` is what the server took before.
fn lost_answer(work: Nanos) -> Wire {
    let mut w = opened(Tap::Client);
    for k in 0..4 {
        w.at(ms(30 + 40 * k)).client().data(100);
        w.after(ms(10)).server().data(100);
    }
    w.at(ms(200)).client().data(100);
    w.at(ms(210) + work).server().data(100).lost_before_tap();
    w.after(ms(220)).server().repeat(400, 100);
    w
}

#[test]
fn an_answer_lost_before_the_tap_is_missing_from_the_servers_count() {
    for work in [Nanos::ZERO, ms(100)] {
        let c = lost_answer(work).connection();
        // The fastest reaction is one nanosecond here.
        let near = |cause, time: Nanos| (c.budget.get(cause) - time).0.abs() <= 1;
        assert!(near(Cause::TailLossProbe, ms(220)) && near(Cause::ServerThink, work), "{:?}", c.budget);
        let found = lost_answer(work).analysis();
        let f = found.findings.iter().find(|f| f.cause == Cause::TailLossProbe).expect("a finding");
        assert_eq!(f.fixes.first().map(|fix| fix.fix), Some(FixId::FixLoss), "{:?}", f.refuted);
    }
}

/// Two segments are lost, and the probe repeats the second: one timer. Two copies of one segment take three.
#[test]
fn timers_of_lost_answers_are_counted_by_copies() {
    let talk = |lost: [(u32, u32); 2], after: Nanos, repeat: (u32, u32)| {
        let mut w = opened(Tap::Client);
        for k in 0..4 {
            w.at(ms(30 + 40 * k)).client().data(100);
            w.after(ms(10)).server().data(100);
        }
        w.at(ms(200)).client().data(100);
        w.at(ms(210)).server().repeat(lost[0].0, lost[0].1).lost_before_tap();
        w.server().repeat(lost[1].0, lost[1].1).lost_before_tap();
        w.after(after).server().repeat(repeat.0, repeat.1);
        w.connection()
    };
    let near = |time: Nanos, expected: Nanos| (time - expected).0.abs() <= 1;
    let c = talk([(400, MSS), (400 + MSS, 100)], ms(220), (400 + MSS, 100));
    assert!(near(c.budget.get(Cause::TailLossProbe), ms(220)), "{:?}", c.budget);
    let c = talk([(400, 100), (400, 100)], ms(660), (400, 100));
    assert!(near(c.budget.get(Cause::RetransmissionTimeout), ms(660)), "{:?}", c.budget);
    // There was not the time for both: something else is missing.
    let c = talk([(400, 100), (400, 100)], ms(300), (400, 100));
    assert!(near(c.budget.get(Cause::ServerThink), ms(300)), "{:?}", c.budget);
}

#[test]
fn an_answer_late_by_a_timer_may_have_been_lost() {
    let uncounted = |work| {
        let mut segments = lost_answer(work).segments();
        segments.iter_mut().for_each(|s| s.ip_id = None);
        let c = analyze(&segments).connections.remove(0);
        let mut spans = c.exchanges.into_iter().flat_map(|e| e.spans);
        spans.find(|s| s.cause == Cause::ServerThink).unwrap()
    };
    // Its other answers came in a quarter of that: as rarely late as something is lost.
    for (work, confidence) in [(Nanos::ZERO, 0.525), (ms(120), 0.56)] {
        let span = uncounted(work);
        assert_eq!((span.duration(), span.confidence), (ms(220) + work, confidence));
        assert_eq!(span.alternatives[0].unwrap().0, Cause::RetransmissionTimeout);
    }
}

#[test]
fn a_late_answer_with_nothing_missing_is_the_server() {
    let mut w = opened(Tap::Client);
    for k in 0..4 {
        w.at(ms(30 + 40 * k)).client().data(100);
        w.after(ms(10)).server().data(100);
    }
    w.at(ms(200)).client().data(100);
    w.at(ms(250)).server().ack();
    w.at(ms(430)).server().data(100);
    let span =
        w.connection().exchanges[4].spans.iter().find(|s| s.cause == Cause::ServerThink).cloned().unwrap();
    assert_eq!((span.duration(), span.confidence), (ms(220), 0.9 * 0.95));
}
