//! SYN, SYN-ACK and their repeats; the queues of a listener.

use crate::script::*;
use tcpwhy_base::What;
use tcpwhy_model::{Profile, run};

/// Ticks last 4 ms. From 63 ticks on a timer is rounded up to 8 of them, from 504 on to 64, past the next edge
/// (`calc_wheel_index`): 1 s runs out after 1024 ms.
#[test]
fn syns_are_repeated_each_second_four_times_and_then_after_twice_as_long() {
    let s = lose(request(path(40), &[100], &[3000]), 0, &[1, 2, 3, 4, 5, 6].map(What::Syn));
    packets(
        &s,
        "0 > syn lost
        1024 > syn again lost syn_retransmit   # tcp_syn_linear_timeouts: four times the same second
        2048 > syn again lost syn_retransmit
        3072 > syn again lost syn_retransmit
        4096 > syn again lost syn_retransmit
        5120 > syn again lost syn_retransmit   # after this one 2 s: (5120 + 2000 + 32) / 32, rounded down
        7136 > syn again syn_retransmit
        7156 < syn ack 1
        7176 > ack 1
        7176 > 1..101 psh client_think
        7196 < ack 101
        7196 < 1..1449 server_think
        7196 < 1449..2897
        7196 < 2897..3001 psh
        7216 > ack 1449
        7216 > ack 2897
        7216 > ack 3001
        7216 > fin ack 3001
        7236 < fin ack 102",
    );
}

/// Linux 6.1 doubles at once: 1, 2, 4 s.
#[test]
fn before_6_5_each_repeat_doubles_the_wait() {
    let old = |h: &mut tcpwhy_model::Host| h.stack.profile = Profile::named("linux-6.1").unwrap();
    let s = lose(both(request(path(40), &[100], &[100]), old), 0, &[1, 2, 3].map(What::Syn));
    some(
        &s,
        |p| p.packet.syn,
        "0 > syn lost
        1024 > syn again lost syn_retransmit
        3040 > syn again lost syn_retransmit   # (1024 + 2000 + 32) / 32 = 95.5
        7168 > syn again syn_retransmit        # 4 s are 1000 ticks, of 64 each: (3040 + 4000 + 256) / 256 = 28.5
        7188 < syn ack 1",
    );
}

/// After more than one repeat the window is one segment (`tcp_init_transfer`).
#[test]
fn two_repeated_syns_leave_one_segment_of_window() {
    let up = |lost: &[u64]| {
        let what: Vec<What> = lost.iter().map(|&n| What::Syn(n)).collect();
        lose(request(path(40), &[3000], &[10]), 0, &what)
    };
    bursts(&up(&[1]), "1064 > 3 x 3000 client_think\n 1084 < 1 x 10 server_think");
    bursts(
        &up(&[1, 2]),
        "2088 > 1 x 1448 client_think
        2128 > 2 x 1552 slow_start
        2148 < 1 x 10 server_think",
    );
}

#[test]
fn a_connect_is_given_up_after_all_repeats() {
    // Six (tcp_syn_retries), and four linear ones.
    let s = link(request(path(40), &[100], &[100]), 0, |l| l.loss_ppm = 1_000_000);
    let out = run(&s).unwrap();
    assert_eq!(out.passages.len(), 11);
    assert!(out.connections[0].dead && out.connections[0].connected.is_none() && !out.complete());
    // 2, 4, 8 and 16 s after those of the second: edges of 256 ms; 32 s: edges of 2048 ms.
    let sent: Vec<String> = out.passages[5..].iter().map(|p| time(p.sent)).collect();
    assert_eq!(sent, ["5120", "7136", "11264", "19456", "35584", "69632"]);
}

/// Nothing but SYN-ACKs is lost: both ends repeat, the client's SYN draws an answer at once.
#[test]
fn a_lost_syn_ack_is_repeated_by_either_end() {
    let s = lose(request(path(40), &[100], &[10]), 1, &[What::Syn(1)]);
    some(
        &s,
        |p| p.packet.syn || p.packet.from == 0 && p.packet.is_pure_ack(),
        "0 > syn
        20 < syn lost ack 1
        1024 > syn again syn_retransmit
        1024 < syn again ack 1 syn_retransmit   # 20 + 1000, past the edge of 32 ms
        1044 < syn again ack 1 syn_retransmit   # the answer to the SYN that came at 1044
        1044 > ack 1
        1064 > ack 1                            # and a challenge ACK to a SYN on an open connection
        1084 > ack 11",
    );
}

/// The server speaks first; its SYN-ACK has to come again before it can.
#[test]
fn a_lost_third_packet_holds_a_server_that_speaks_first() {
    let s = lose(request(path(40), &[], &[10]), 0, &[What::Ack(1)]);
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > lost ack 1
        1024 < syn again ack 1 syn_retransmit
        1044 > ack 1
        1064 < 1..11 psh server_think
        1084 > ack 11
        1084 > fin ack 11
        1104 < ack 2
        1104 < fin ack 2",
    );
    let spoken = lose(request(path(40), &[100], &[10]), 0, &[What::Ack(1)]);
    some(&spoken, |p| p.packet.len > 0, "40 > 1..101 psh client_think\n 60 < 1..11 psh server_think");
}

/// A repeated SYN-ACK on an open connection draws an ACK and nothing else: what was deferred stays where it
/// is. Nine segments are out, the last two wait for a larger burst as the ACK of the first is due soon
/// (`tcp_tso_should_defer`).
#[test]
fn a_repeated_syn_ack_pushes_nothing() {
    use tcpwhy_base::Step::{Pause, Write};
    let up = vec![
        Write(1448),
        Pause(ms(800)),
        Write(1448 * 8),
        Pause(tcpwhy_base::Nanos::micros(500)),
        Write(1448 * 2),
    ];
    some(
        &steps(path(1500), up, vec![Write(10)]),
        |p| p.packet.from == 0,
        "0 > syn
        1024 > syn again syn_retransmit
        1500 > ack 1
        1500 > 1..1449 psh client_think
        2300 > 1449..2897 sender_pause
        2300 > 2897..4345
        2300 > 4345..5793
        2300 > 5793..7241
        2300 > 7241..8689
        2300 > 8689..10137
        2300 > 10137..11585
        2300 > 11585..13033 psh
        2510 > ack 1
        2524 > ack 1
        3000 > 13033..14481 slow_start
        3000 > 14481..15929 psh
        4500 > ack 11
        4500 > fin ack 11",
    );
}

/// Four clients at once, a backlog of 1, a server that first accepts after 2 s and takes 10 ms for each.
#[test]
fn an_accept_queue_holds_one_more_than_its_limit() {
    let mut s = request(path(40), &[100], &[30]);
    s.connections = 4;
    let h = &mut s.hosts[1];
    (h.backlog, h.accept_delay, h.accept_start) = (1, ms(10), ms(2000));
    some(
        &s,
        |p| p.packet.len > 0,
        "40 > 1..101 psh client_think
        40 > @1 1..101 psh client_think
        40 > @2 1..101 psh client_think
        40 > @3 1..101 psh client_think
        284 > @2 1..101 psh again tail_loss_probe   # 40 + 2 x 40 + 200 (one segment), past the tick
        284 > @3 1..101 psh again tail_loss_probe
        528 > @2 1..101 psh again retransmission_timeout   # 284 + 240
        528 > @3 1..101 psh again retransmission_timeout
        1024 > @2 1..101 psh again retransmission_timeout  # 528 + 480, past an edge of 32 ms
        1024 > @3 1..101 psh again retransmission_timeout
        2000 < 1..31 psh server_think
        2010 < @1 1..31 psh server_think
        2016 > @2 1..101 psh again retransmission_timeout  # the queue is empty: let in by this one
        2016 > @3 1..101 psh again retransmission_timeout
        2036 < @2 1..31 psh server_think
        2046 < @3 1..31 psh server_think",
    );
}

/// Without cookies a SYN is dropped while more handshakes than the backlog go on.
#[test]
fn a_full_syn_queue_drops_or_answers_with_a_cookie() {
    let syns = |cookies: bool, backlog: u32| {
        let mut s = request(path(40), &[100], &[30]);
        (s.connections, s.stagger) = (4, ms(1));
        s.hosts[1].backlog = backlog;
        s.hosts[1].stack.profile.syncookies = cookies;
        s
    };
    let shown = |p: &tcpwhy_model::Passage| p.packet.syn && p.packet.from == 1;
    some(
        &syns(false, 1),
        shown,
        "20 < syn ack 1
        21 < @1 syn ack 1
        1044 < @2 syn ack 1   # the SYN came at 22 and was dropped; 1024 + 20
        1044 < @3 syn ack 1",
    );
    some(
        &syns(false, 3),
        shown,
        "20 < syn ack 1\n 21 < @1 syn ack 1\n 22 < @2 syn ack 1\n 23 < @3 syn ack 1",
    );
    some(&syns(true, 1), shown, "20 < syn ack 1\n 21 < @1 syn ack 1\n 22 < @2 syn ack 1\n 23 < @3 syn ack 1");
}

/// What a cookie answered is not remembered: its SYN-ACK is not repeated, a full queue resets nobody (`tcp_check_req`).
#[test]
fn overflow_is_told_with_a_reset_if_the_server_is_set_so() {
    let mut s = request(path(40), &[100], &[30]);
    (s.connections, s.stagger) = (3, ms(1));
    let h = &mut s.hosts[1];
    (h.backlog, h.accept_start) = (1, ms(2000));
    h.stack.profile.abort_on_overflow = true;
    let out =
        some(&s, |p| p.packet.from == 1 && p.packet.conn == 2 && p.sent < ms(1500), "22 < @2 syn ack 1");
    assert!(out.complete(), "the third was answered with a cookie, and let in later");
    s.hosts[1].stack.profile.syncookies = false;
    s.hosts[1].backlog = 2;
    (s.connections, s.stagger) = (5, ms(30));
    let resets = |s: &tcpwhy_model::Scenario| {
        let out = run(s).unwrap();
        let rows: Vec<String> = out.passages.iter().filter(|p| p.packet.rst).map(line).collect();
        (rows, out.connections.iter().map(|c| c.dead).collect::<Vec<_>>())
    };
    // The queue holds three from 120 on: the fourth's SYN came at 110, its ACK comes at 150; the fifth's SYN,
    // at 140, is dropped at once, or answered where a full queue does not matter to SYNs (before Linux 4.10).
    let (rows, dead) = resets(&s);
    assert_eq!(rows, ["150 < @3 rst"]);
    assert_eq!(dead, [false, false, false, true, false]);
    s.hosts[1].stack.profile.drops_syn_when_full = false;
    let (rows, dead) = resets(&s);
    assert_eq!(rows, ["150 < @3 rst", "180 < @4 rst"]);
    assert_eq!(dead, [false, false, false, true, true]);
}
