//! When a receiver acknowledges: quick ACKs, ping-pong mode, the delayed ACK's timer, fixed rules.

use crate::script::*;
use tcpwhy_base::Step::{Pause, Write};
use tcpwhy_model::{Acks, Profile};

/// Write, write, read with Nagle at both ends, 10 ms away: the first request finds quick ACKs; replies within the ACK
/// timeout then make both ends wait for 40 ms, rounded up past the tick.
#[test]
fn ping_pong_mode_delays_acks_until_the_timer() {
    let mut s = both(request(path(10), &[100, 100], &[100, 50]), |h| h.nodelay = false);
    s.workload.requests = 3;
    packets(
        &s,
        "0 > syn
        5 < syn ack 1
        10 > ack 1
        10 > 1..101 psh client_think
        15 < ack 101
        20 > 101..201 psh nagle
        25 < ack 201
        25 < 1..101 psh server_think          # a reply 0 ms after data: ping-pong
        30 > ack 101
        35 < 101..151 psh nagle
        40 > ack 151
        40 > 201..301 psh client_think        # and here
        88 < delayed ack 301                  # 45 + 40 = 85, past the tick
        93 > 301..401 psh nagle_delayed_ack
        98 < ack 401                          # the timer ended ping-pong mode
        98 < 151..251 psh server_think
        144 > delayed ack 251                 # 103 + 40 = 143
        149 < 251..301 psh nagle_delayed_ack
        154 > ack 301
        154 > 401..501 psh client_think
        200 < delayed ack 501                 # 159 + 40 = 199
        205 > 501..601 psh nagle_delayed_ack
        210 < ack 601
        210 < 301..401 psh server_think
        256 > delayed ack 401                 # 215 + 40 = 255
        261 < 401..451 psh nagle_delayed_ack
        266 > ack 451
        266 > fin ack 451
        271 < fin ack 602",
    );
}

/// Two small packets make a read that empties the queue acknowledge even in ping-pong mode (`__tcp_cleanup_rbuf`,
/// ICSK_ACK_PUSHED2); one does not. The server's application runs 1 ms after its data came.
#[test]
fn two_small_packets_are_acknowledged_by_the_read() {
    let asked = |up: &[u64]| {
        let mut s = request(path(10), up, &[10]);
        s.workload.requests = 2;
        s.workload.turns[0].think = ms(20);
        s.hosts[1].stack.wake = ms(1);
        s
    };
    let second = |p: &tcpwhy_model::Passage| p.sent > ms(36) && p.sent < ms(70);
    some(
        &asked(&[100, 100]),
        second,
        "41 > ack 11
        41 > 201..301 psh client_think
        41 > 301..401 psh
        47 < ack 401           # 46, and 1 ms until the application reads
        67 < 11..21 psh server_think",
    );
    some(
        &asked(&[100]),
        second,
        "41 > ack 11
        41 > 101..201 psh client_think
        67 < 11..21 psh server_think",
    );
}

/// Sixteen quick ACKs (TCP_MAX_QUICKACKS) of bytes that nobody reads, then the timer. It would double each
/// time that it runs out, but never waits longer than a round trip, or 40 ms (`tcp_send_delayed_ack`). The
/// writes are 60 ms apart: more than that, less than a timeout, which would bring quick ACKs back.
#[test]
fn quick_acks_run_out() {
    let up = (0..20).flat_map(|_| [Write(10), Pause(ms(60))]).collect();
    let s = host(steps(path(2), up, vec![]), 1, |h| h.read_pauses = vec![(0, ms(5000))]);
    some(
        &s,
        |p| p.packet.from == 1 && p.sent > ms(800) && p.sent < ms(1300),
        "843 < ack 151
        903 < ack 161           # the sixteenth: 3 + 15 x 60
        1004 < delayed ack 171  # 963 + 40 = 1003
        1064 < delayed ack 181  # 1023 + 40
        1124 < delayed ack 191  # 1083 + 40
        1184 < delayed ack 201  # 1143 + 40
        1244 < delayed ack 202  # the FIN, 1203 + 40",
    );
    // 250 ms apart is more than the timeout of 204 ms: quick ACKs again each time (`tcp_event_data_recv`).
    let up = (0..20).flat_map(|_| [Write(10), Pause(ms(250))]).collect();
    let s = host(steps(path(2), up, vec![]), 1, |h| h.read_pauses = vec![(0, ms(9000))]);
    some(
        &s,
        |p| p.packet.from == 1 && p.sent > ms(4400) && p.sent < ms(4900),
        "4503 < ack 191\n 4753 < ack 201",
    );
}

/// With three replies needed for ping-pong mode (5.1 to 5.19) the third request still finds quick ACKs.
#[test]
fn ping_pong_mode_needs_as_many_replies_as_the_kernel_says() {
    let delayed = |pingpong: u8| {
        let mut s = both(request(path(10), &[100, 100], &[100]), |h| h.nodelay = false);
        s.workload.requests = 6;
        s.hosts.iter_mut().for_each(|h| h.stack.profile.acks = Acks::Adaptive { pingpong });
        let out = tcpwhy_model::run(&s).unwrap();
        out.turns.iter().map(|t| time(t.end.unwrap() - t.start)).collect::<Vec<_>>()
    };
    // The second: 35 + 40 past the tick is 76, and three trips; the third: 96 + 40 is 140.
    assert_eq!(delayed(1), ["20", "61", "64", "64", "64", "64"]);
    // The third reply switches quick ACKs off, the timer of the fourth request on again.
    assert_eq!(delayed(3), ["20", "20", "20", "61", "20", "20"]);
}

/// Windows acknowledges every second full segment, or after 40 ms; its ticks are 1 ms. Without PSH rule and
/// time stamps.
#[test]
fn windows_waits_for_two_segments_or_40_ms() {
    let s = both(request(path(40), &[100, 100], &[4000, 100]), |h| {
        h.nodelay = false;
        h.stack.profile = Profile::named("windows").unwrap();
    });
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        40 > 1..101 psh client_think
        101 < delayed ack 101              # 60 + 40, past the tick
        121 > 101..201 psh nagle_delayed_ack
        141 < 1..1461 server_think         # 1500 - 40
        141 < 1461..2921                   # the tail waits: the classic rule
        161 > ack 2921                     # two full segments
        181 < 2921..4101 psh nagle         # 4000 + 100 - 2920
        201 > fin ack 4101
        221 < fin ack 202",
    );
}

/// XNU acknowledges a segment with PSH at once; its Nagle lets a tail follow full segments.
#[test]
fn macos_acknowledges_what_was_pushed() {
    let s = both(request(path(40), &[100, 100], &[4000, 100]), |h| {
        h.nodelay = false;
        h.stack.profile = Profile::named("macos").unwrap();
    });
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        40 > 1..101 psh client_think
        60 < ack 101
        80 > 101..201 psh nagle
        100 < ack 201
        100 < 1..1449 server_think
        100 < 1449..2897
        100 < 2897..4001 psh
        120 > ack 2897
        120 > ack 4001
        140 < 4001..4101 psh nagle
        160 > ack 4101
        160 > fin ack 4101
        180 < ack 202
        180 < fin ack 202
        200 > ack 4102",
    );
}

/// FreeBSD: no PSH rule, the classic rule of Nagle, time stamps.
#[test]
fn freebsd_waits_for_two_segments_or_40_ms() {
    let s = both(request(path(40), &[100, 100], &[4000, 100]), |h| {
        h.nodelay = false;
        h.stack.profile = Profile::named("freebsd").unwrap();
    });
    some(
        &s,
        |p| p.sent > ms(40) && p.sent < ms(202),
        "101 < delayed ack 101
        121 > 101..201 psh nagle_delayed_ack
        141 < 1..1449 server_think
        141 < 1449..2897
        161 > ack 2897
        181 < 2897..4101 psh nagle
        201 > fin ack 4101",
    );
}

/// TCP_QUICKACK: no timer, whatever the mode.
#[test]
fn quickack_acknowledges_at_once() {
    let mut s = request(path(10), &[100], &[10]);
    s.workload.requests = 2;
    s.workload.turns[0].think = ms(20);
    s.hosts[1].stack.wake = ms(1);
    s.hosts[1].quickack = true;
    some(
        &s,
        |p| p.packet.from == 1 && p.sent > ms(40),
        "46 < ack 201\n 67 < 11..21 psh server_think\n 77 < ack 202\n 78 < fin ack 202",
    );
}
