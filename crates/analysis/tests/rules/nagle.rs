//! Nagle's algorithm, delayed ACKs, corks, and what looks like them.

use crate::wire::{SERVER, Tap, Wire, analyze, ms, us};
use tcpwhy_base::{Cause, Nanos};

/// Two hosts 20 ms apart; the client begins to talk 10 ms after the handshake, at 30 ms.
fn opened(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w
}

/// The client writes 4 bytes, then 100; the server acknowledges the first after `delay`, which lets the rest go.
fn two_writes(tap: Tap, delay: i64) -> Wire {
    let mut w = opened(tap);
    w.at(ms(30)).client().data(4);
    w.at(ms(40 + delay)).server().ack();
    w.at(ms(50 + delay)).client().data(100);
    w.at(ms(60 + delay)).server().data(50);
    w.at(ms(70 + delay)).client().ack();
    w
}

#[test]
fn a_held_write_and_a_delayed_ack_at_the_client() {
    let c = two_writes(Tap::Client, 40).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..110 104>50
           nagle_delayed_ack client 30..90 #4-6
           path_delay network 90..110 #6-7",
    );
    // Once may be chance, and the moment of the write cannot be seen.
    let span = &c.exchanges[0].spans[0];
    assert!(span.confidence < 0.9);
    assert_eq!(span.alternatives[0].map(|a| a.0), Some(Cause::SenderPause));
    assert_eq!(span.frames.keys().collect::<Vec<_>>(), [4, 5, 6]);
}

#[test]
fn a_held_write_and_a_delayed_ack_at_the_server_takes_delay_and_round_trip() {
    two_writes(Tap::Server, 40).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..90 104>50
           nagle_delayed_ack client 30..90 #4-6
         gap 90..110
           client_think client 90..110 #7-8",
    );
}

#[test]
fn a_held_write_and_a_delayed_ack_in_the_middle() {
    two_writes(Tap::Middle, 40).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..100 104>50
           nagle_delayed_ack client 30..90 #4-6
           path_delay network 90..100 #6-7
         gap 100..110
           client_think client 100..110 #7-8",
    );
}

#[test]
fn a_held_write_and_a_prompt_ack_at_the_client() {
    two_writes(Tap::Client, 0).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..70 104>50
           nagle client 30..50 #4-6
           path_delay network 50..70 #6-7",
    );
}

#[test]
fn a_held_write_and_a_prompt_ack_at_the_server() {
    two_writes(Tap::Server, 0).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..50 104>50
           nagle client 30..50 #4-6
         gap 50..70
           client_think client 50..70 #7-8",
    );
}

#[test]
fn a_server_that_writes_its_header_alone() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(4);
    w.at(ms(90)).client().ack();
    w.at(ms(100)).server().data(200);
    w.at(ms(110)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..110 100>204
           path_delay network 30..50 #4-5
           nagle_delayed_ack server 50..110 #5-7",
    );
}

#[test]
fn the_lock_repeated_is_sure() {
    let mut w = opened(Tap::Client);
    for round in 0..3 {
        let t = 100 * round;
        w.at(ms(30 + t)).client().data(4);
        w.at(ms(80 + t)).server().ack();
        w.at(ms(90 + t)).client().data(100);
        w.at(ms(100 + t)).server().data(50);
        w.at(ms(110 + t)).client().ack();
    }
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::NagleDelayedAck), ms(180));
    assert!(c.exchanges[2].spans[0].confidence >= 0.9);
}

/// Full segments out, the tail leaves with their late ACK.
fn tail_after_full_segments(order: u32, ttl: u8) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[0].order = order;
    w.host[0].ttl = ttl;
    w.handshake();
    w.at(ms(30)).client().write(2 * 1448);
    w.at(ms(80)).server().ack();
    w.at(ms(90)).client().data(88);
    w.at(ms(100)).server().data(50);
    w.at(ms(110)).client().ack();
    w
}

#[test]
fn linux_holds_no_tail_behind_full_segments() {
    tail_after_full_segments(0x342, 64).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..110 2984>50
           delayed_ack client 30..90 #5-7
           path_delay network 90..110 #7-8",
    );
}

#[test]
fn windows_holds_a_tail_behind_full_segments() {
    let c = tail_after_full_segments(0x432, 128).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..110 2984>50
           nagle_delayed_ack client 30..90 #5-7
           path_delay network 90..110 #7-8",
    );
    assert_eq!(c.ends[0].os, Some("Windows"));
}

/// From then on no limit holds so little: what comes with a late ACK comes by chance (rule 68).
#[test]
fn two_partial_segments_at_once_show_that_nagle_is_off() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(4);
    w.client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(60)).client().data(4);
    w.at(ms(110)).server().ack();
    w.at(ms(120)).client().data(100);
    w.at(ms(130)).server().data(50);
    w.at(ms(140)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..50 104>50
           path_delay network 30..50 #5-6
         gap 50..60
           client_think client 50..60 #6-8
         exchange 60..140 104>50
           sender_pause client 60..120 #8-10
           path_delay network 120..140 #10-11",
    );
}

#[test]
fn an_application_pause_of_41_ms_is_not_the_ack() {
    for ack in [40, 69] {
        let mut w = opened(Tap::Client);
        w.at(ms(30)).client().data(4);
        w.at(ms(ack)).server().ack();
        w.at(ms(71)).client().data(100);
        w.at(ms(81)).server().data(50);
        w.at(ms(91)).client().ack();
        // The later ACK is still on its way to the client when it writes again.
        let (second, third) = if ack == 40 { (6, 7) } else { (5, 7) };
        w.tells(&format!(
            "setup 0..20
               handshake network 0..20 #1-3
             gap 20..30
               client_think client 20..30 #3-4
             exchange 30..91 104>50
               sender_pause client 30..71 #4-{second}
               path_delay network 71..91 #{second}-{third}",
        ));
    }
}

#[test]
fn an_answer_after_45_ms_that_carries_the_ack_is_the_servers_think() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(85)).server().data(50);
    w.at(ms(95)).client().ack();
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..95 100>50
           path_delay network 30..40 #4-5
           server_think server 40..85 #4-5
           path_delay network 85..95 #4-5",
    );
    // Seen once, it may be a delayed ACK that something waited for.
    let think = &c.exchanges[0].spans[1];
    assert!(think.confidence <= 0.5);
    assert_eq!(think.alternatives[0].map(|a| a.0), Some(Cause::DelayedAck));
}

#[test]
fn an_answer_after_45_ms_at_the_server() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    w.at(ms(85)).server().data(50);
    w.at(ms(95)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..75 100>50
           server_think server 30..75 #4-5
         gap 75..95
           client_think client 75..95 #5-6",
    );
}

#[test]
fn a_delayed_ack_before_the_answer_cost_nothing() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(80)).server().ack();
    w.at(ms(140)).server().data(50);
    w.at(ms(150)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..150 100>50
           path_delay network 30..40 #4-6
           server_think server 40..140 #4-6
           path_delay network 140..150 #4-6",
    );
}

#[test]
fn one_full_segment_at_a_time_waits_for_delayed_acks() {
    for tap in [Tap::Client, Tap::Server] {
        let mut w = opened(tap);
        w.at(ms(30)).client().data(1448);
        w.at(ms(80)).server().ack();
        w.at(ms(90)).client().data(1448);
        w.at(ms(140)).server().ack();
        w.at(ms(150)).client().data(1448);
        w.at(ms(160)).server().data(50);
        w.at(ms(170)).client().ack();
        let end = if tap == Tap::Client {
            "exchange 30..170 4344>50
               delayed_ack client 30..90 #4-6
               delayed_ack client 90..150 #6-8
               path_delay network 150..170 #8-9"
        } else {
            "exchange 30..150 4344>50
               delayed_ack client 30..90 #4-6
               delayed_ack client 90..150 #6-8
             gap 150..170
               client_think client 150..170 #9-10"
        };
        let c = w.tells(&format!(
            "setup 0..20
               handshake network 0..20 #1-3
             gap 20..30
               client_think client 20..30 #3-4
             {end}"
        ));
        let tcpwhy_analysis::Extremes { shortest: least, longest: most } =
            c.ends[SERVER].delayed_ack.unwrap();
        assert!(least >= ms(40) - Nanos(1) && most <= ms(40));
    }
}

#[test]
fn a_buffer_smaller_than_two_large_segments() {
    // Loopback: the segment is so large that the send buffer holds one, and the receiver waits for the second.
    let mut w = Wire::new(Tap::Client, us(40));
    for host in &mut w.host {
        host.mss = 65_495;
    }
    w.handshake();
    w.at(ms(1)).client().data(65_483);
    w.after(ms(40)).server().ack();
    w.after(us(20)).client().data(65_483);
    w.after(ms(40)).server().ack();
    w.after(us(20)).client().data(65_483);
    w.after(us(20)).server().data(50);
    w.after(us(20)).client().ack();
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::SillyWindow), ms(80) + us(40));
}

#[test]
fn a_corked_write_leaves_with_the_timer() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().ack();
    w.at(ms(270)).client().data(100);
    // The ACK comes 5 ms later than the one before, and the timer ends with a tick: 248 ms after the other one.
    w.at(ms(285)).server().ack();
    w.at(ms(518)).client().data(100);
    w.at(ms(528)).server().data(50);
    w.at(ms(538)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..538 300>50
           cork client 30..270 #4-6
           cork client 270..518 #6-8
           path_delay network 518..538 #8-9",
    );
}

#[test]
fn one_write_with_the_timing_of_a_cork_is_a_pause() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().ack();
    w.at(ms(270)).client().data(100);
    w.at(ms(280)).server().data(50);
    w.at(ms(290)).client().ack();
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..290 200>50
           sender_pause client 30..270 #4-6
           path_delay network 270..290 #6-7",
    );
    let pause = &c.exchanges[0].spans[0];
    assert_eq!(pause.alternatives[0].map(|a| a.0), Some(Cause::Cork));
}

/// In the middle of a connection, with nothing known of the path: the second write passes just after a
/// delayed ACK, but its time stamp says that the ACK had not come when it left.
#[test]
fn a_write_that_echoes_an_older_stamp_was_not_released_by_the_ack() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(60)).server().data(50);
    w.at(ms(110)).client().ack();
    w.at(us(100_900)).server().data(50);
    w.at(ms(112)).client().ack();
    let held = |stamps: bool| {
        let mut segments = w.segments();
        if !stamps {
            segments.iter_mut().for_each(|s| s.options.timestamps = None);
        }
        let c = analyze(&segments[6..]).connections.remove(0);
        c.budget.get(Cause::Nagle) + c.budget.get(Cause::NagleDelayedAck)
    };
    assert_eq!(held(true), Nanos::ZERO);
    // Nothing else speaks against it.
    assert!(held(false) > Nanos::ZERO);
}

/// The server writes 4 bytes and then 2,048: the second write begins with a full segment, and its tail is
/// held until the first is acknowledged. Without the handshake the full segment shows by not being pushed.
#[test]
fn a_held_tail_in_the_middle_of_a_connection() {
    let mut w = opened(Tap::Client);
    for k in 0..4 {
        let t = ms(100 * k);
        w.at(ms(30) + t).client().data(60);
        w.at(ms(40) + t).server().data(4);
        w.server().data(1448);
        w.at(ms(50) + t).client().ack();
        w.at(ms(60) + t).server().data(600);
        w.at(ms(70) + t).client().ack();
    }
    let c = analyze(&w.segments()[3..]).connections.remove(0);
    assert_eq!(c.budget.get(Cause::Nagle), ms(80), "{:?}", c.budget);
}

/// Held across a turn: the client spoke between the two writes. The sentence tells how much was to be acknowledged.
#[test]
fn a_hold_across_a_turn_says_what_was_to_be_acknowledged() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(45)).client().data(80);
    w.at(ms(50)).client().ack();
    w.at(ms(60)).server().data(60);
    w.at(ms(70)).client().ack();
    let c = w.connection();
    let spans = c.exchanges.iter().flat_map(|e| &e.spans);
    let said: Vec<_> = spans.filter(|s| s.cause == Cause::Nagle).map(|s| s.facts.sentence()).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("the ACK of the 50 bytes before them"), "{said:?}");
}

/// A writer that has Nagle off waits 107 ms between two writes, just when a delayed ACK comes or a little
/// later; then it shows that it has Nagle off (rule 66).
#[test]
fn what_did_not_follow_its_acks_was_not_held() {
    let causes = |acks: &[i64], waits: &[i64], shows: bool| {
        let mut w = opened(Tap::Server);
        for (n, (&ack, &wait)) in acks.iter().zip(waits).enumerate() {
            let t = ms(200 * n as i64);
            w.at(ms(30) + t).client().data(4);
            w.at(ms(40) + t + us(ack)).server().ack();
            w.at(ms(30) + t + us(wait)).client().data(100);
            w.at(ms(40) + t + us(wait)).server().data(50);
            w.at(ms(50) + t + us(wait)).client().ack();
        }
        if shows {
            w.at(ms(2_000)).client().data(4);
            w.after(us(40)).client().data(100);
            w.after(ms(10)).server().data(50);
        }
        let c = w.connection();
        let kept: Nanos = c
            .exchanges
            .iter()
            .flat_map(|e| &e.spans)
            .filter(|s| s.cause == Cause::SenderPause)
            .fold(Nanos::ZERO, |sum, s| sum + (s.end - s.start));
        assert_eq!(kept, c.budget.get(Cause::SenderPause));
        let found: Nanos = c
            .findings
            .iter()
            .filter(|f| f.cause == Cause::SenderPause)
            .fold(Nanos::ZERO, |sum, f| sum + f.lost);
        assert_eq!(found, kept);
        (c.budget.get(Cause::NagleDelayedAck) > Nanos::ZERO, kept > Nanos::ZERO)
    };
    let (held, written) = ((true, false), (false, true));
    // All a little more than a wake-up late, and none.
    assert_eq!(causes(&[42_000; 4], &[63_001; 4], true), written);
    assert_eq!(causes(&[42_000; 4], &[63_000; 4], true), held);
    assert_eq!(causes(&[42_000; 4], &[63_001; 4], false), held);
    // Its waits stay the same while the ACKs move, or move with them.
    assert_eq!(causes(&[42_000, 43_200, 44_000], &[64_000; 3], true), written);
    assert_eq!(causes(&[42_000, 43_200, 44_000], &[62_000, 63_200, 64_000], true), held);
    // Once is chance.
    assert_eq!(causes(&[42_000], &[62_000], true), written);
    assert_eq!(causes(&[42_000], &[62_000], false), held);
}
