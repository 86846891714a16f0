//! Losses, timers, repairs, and what only looks like a loss.

use crate::wire::{CLIENT, Tap, Wire, ms};
use tcpwhy_base::{Cause, Class, Nanos};

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
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 100).lost();
    w.at(ms(690)).client().repeat(0, 100).lost();
    w.at(ms(1570)).client().repeat(0, 100);
    w.at(ms(1580)).server().data(50);
    w.at(ms(1590)).client().ack();
    let c = w.tells("");
    assert_eq!(c.retransmitted, [3, 0]);
    assert_eq!(c.ends[CLIENT].min_rto, Some(ms(220)));
}

#[test]
fn a_probe_of_the_only_segment_is_answered_at_once() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 100);
    w.at(ms(260)).server().data(50);
    w.at(ms(270)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..270 100>50
           path_delay network 30..50 #4-5
           tail_loss_probe network 50..270 #4-6",
    );
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
    w.tells("");
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
    w.tells("");
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
    w.at(ms(50)).client().repeat(2 * MSS, MSS);
    w.at(ms(60)).server().data(50);
    w.at(ms(70)).client().ack();
    w.tells("");
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
    w.tells("");
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
    w.tells("");
}

#[test]
fn a_flow_stopped_by_a_needless_timeout() {
    // All ACKs come 230 ms late, 20 ms after the timer: too early to answer the repeat's arrival at the server.
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().write(4 * MSS);
    w.at(ms(250)).client().repeat(0, MSS);
    w.at(ms(242)).server().ack();
    w.at(ms(252)).client().write(2 * MSS);
    w.at(ms(262)).server().data(50);
    w.at(ms(272)).client().ack();
    w.tells("");
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
    w.tells("");
}

#[test]
fn the_server_dropped_the_final_ack() {
    // Its accept queue is full: it takes no data, repeats its SYN-ACK, and has room when the data comes once more.
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 100).lost();
    w.at(ms(690)).client().repeat(0, 100).lost();
    w.at(ms(1010)).server().syn_ack();
    w.at(ms(1020)).client().ack();
    w.at(ms(1570)).client().repeat(0, 100);
    w.at(ms(1580)).server().data(50);
    w.at(ms(1590)).client().ack();
    w.tells("");
}

#[test]
fn a_peer_that_is_gone() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(100)).client().data(100).lost();
    w.at(ms(320)).client().repeat(100, 100).lost();
    w.at(ms(760)).client().repeat(100, 100).lost();
    w.at(ms(1640)).client().repeat(100, 100).lost();
    w.at(ms(3400)).client().rst();
    w.tells("");
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
    let c = w.tells("");
    assert_eq!((c.ends[CLIENT].probes, c.ends[CLIENT].keepalives), (0, 3));
    assert_eq!(c.budget.get(Cause::KeepaliveOrDeadPeer), Nanos::ZERO);
}
