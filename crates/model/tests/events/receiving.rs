//! The window that a receiver offers, and its buffer.

use crate::script::*;
use tcpwhy_model::{Profile, Scenario};

/// 12 Mbit/s: a full segment each millisecond.
fn paced(s: Scenario) -> Scenario {
    link(s, 1, |l| l.rate = Some(12_000_000))
}

/// SO_RCVBUF 4000 becomes 8000 of memory; 2920 of window until the first segment shows that payload is
/// 160/256 of it: two segments.
#[test]
fn a_small_receive_buffer_lets_two_segments_out_per_round_trip() {
    let s = host(request(path(40), &[100], &[12_000]), 0, |h| h.rcvbuf = Some(4000));
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        40 > 1..101 psh client_think
        60 < ack 101
        60 < 1..1449 server_think
        60 < 1449..2897 psh
        80 > ack 1449
        80 > ack 2897
        100 < 2897..4345 receive_window
        100 < 4345..5793 psh receive_window
        120 > ack 5793
        140 < 5793..7241 receive_window
        140 < 7241..8689 psh
        160 > ack 8689
        180 < 8689..10137 receive_window
        180 < 10137..11585 psh
        200 > ack 11585
        220 < 11585..12001 psh receive_window
        240 > ack 12001
        240 > fin ack 12001
        260 < fin ack 102",
    );
}

/// A reader that stops: the window closes, is asked for after 240 ms (RTO), twice that, four times, and opens
/// with the read.
#[test]
fn a_closed_window_is_probed_until_the_reader_is_back() {
    let s = host(request(path(40), &[100], &[30_000]), 0, |h| {
        (h.read_pauses, h.rcvbuf) = (vec![(5000, ms(3000))], Some(10_000));
    });
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        40 > 1..101 psh client_think
        60 < ack 101
        60 < 1..1449 server_think
        60 < 1449..2897
        60 < 2897..4345
        60 < 4345..5793
        60 < 5793..7241 psh
        60 < 7241..8689
        60 < 8689..8761
        80 > ack 1449
        80 > ack 2897
        80 > ack 4345
        80 > ack 8761
        100 < 8761..10209 receive_window
        100 < 10209..11585
        100 < 11585..13033 receive_window
        100 < 13033..13105 psh
        100 < 13105..14553
        100 < 14553..16001
        164 > delayed ack 16001
        436 < probe ack 101
        456 > ack 16001
        960 < probe ack 101
        980 > ack 16001
        1984 < probe ack 101
        2004 > ack 16001
        3080 > ack 16001
        3100 < 16001..17449 slow_reader
        3100 < 17449..18897
        3100 < 18897..20345
        3100 < 20345..21793 psh
        3100 < 21793..23241
        3100 < 23241..24689
        3100 < 24689..26137
        3120 > ack 17449
        3120 > ack 18897
        3120 > ack 20345
        3120 > ack 26137
        3140 < 26137..27585 receive_window
        3140 < 27585..29033 receive_window
        3140 < 29033..30001 psh
        3160 > ack 30001
        3160 > fin ack 30001
        3180 < fin ack 102",
    );
}

/// 100 kB/s: 1000 bytes each 10 ms.
#[test]
fn a_slow_reader_is_waited_for() {
    let s = host(request(path(40), &[100], &[20_000]), 0, |h| {
        (h.read_rate, h.read_chunk, h.rcvbuf) = (Some(100_000), 1000, Some(4000));
    });
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        40 > 1..101 psh client_think
        60 < ack 101
        60 < 1..1449 server_think
        60 < 1449..2897 psh
        80 > ack 1449
        80 > ack 2897
        100 < 2897..4345 receive_window
        100 < 4345..5793 psh receive_window
        120 > ack 5793
        120 > ack 5793
        140 < 5793..7241 receive_window
        140 < 7241..8689 psh receive_window
        160 > ack 8689
        160 > ack 8689
        180 < 8689..10137 receive_window
        180 < 10137..11585 psh receive_window
        200 > ack 11585
        200 > ack 11585
        220 < 11585..13033 receive_window
        220 < 13033..14481 psh receive_window
        240 > ack 14481
        240 > ack 14481
        260 < 14481..15929 receive_window
        260 < 15929..17377 psh receive_window
        280 > ack 17377
        280 > ack 17377
        300 < 17377..18825 receive_window
        300 < 18825..20001 psh receive_window
        320 > ack 20001
        320 > ack 20001
        320 > fin ack 20001
        340 < fin ack 102",
    );
}

/// The window grows by two segments with each (`tcp_grow_window`: 64,240 + 2896 = 67,136, rounded up to 512)
/// to what the buffer holds beside the one unread segment: (131,072 - 2304) x 160 / 256 = 80,480. What was
/// read in a round trip then doubles the buffer (`tcp_rcv_space_adjust`).
#[test]
fn the_window_follows_what_is_read() {
    windows(
        &paced(request(path(40), &[100], &[99_000])),
        "40.04 ack 1 window 64512
        81.074666 ack 1449 window 67584
        82.074666 ack 2897 window 70656
        83.074666 ack 4345 window 73728
        84.074666 ack 5793 window 76800
        85.074666 ack 7241 window 79872
        86.074666 ack 8689 window 80896
        164.074666 ack 46337 window 83968
        165.074666 ack 47785 window 87040
        166.074666 ack 49233 window 90112
        167.074666 ack 50681 window 92160
        168.074666 ack 52129 window 95232
        169.074666 ack 53577 window 98304
        170.074666 ack 55025 window 101376
        171.074666 ack 56473 window 104448
        172.074666 ack 57921 window 107520
        173.074666 ack 59369 window 109568
        174.074666 ack 60817 window 112640
        175.074666 ack 62265 window 115712
        176.074666 ack 63713 window 118784
        177.074666 ack 65161 window 121856
        178.074666 ack 66609 window 124928
        179.074666 ack 68057 window 126976
        180.074666 ack 69505 window 130048
        181.074666 ack 70953 window 133120
        182.074666 ack 72401 window 136192
        183.074666 ack 73849 window 139264
        184.074666 ack 75297 window 141312
        185.074666 ack 76745 window 144384
        186.074666 ack 78193 window 147456
        187.074666 ack 79641 window 150528
        188.074666 ack 81089 window 151552
        200.466666 ack 99001 window 152576",
    );
}

/// To Linux 6.12 sixteen segments are added to what was read; here from a buffer of 20,000 bytes.
#[test]
fn before_6_13_sixteen_segments_are_added() {
    let s = both(paced(request(path(40), &[100], &[40_000])), |h| {
        h.stack.profile = Profile::named("linux-6.12").unwrap();
        h.stack.profile.rmem[1] = 20_000;
    });
    windows(
        &s,
        "40.04 ack 1 window 8832
        81.074666 ack 1449 window 11136
        86.205332 ack 8833 window 11776
        123.074666 ack 11729 window 14720
        124.074666 ack 13177 window 17536
        126.074666 ack 14625 window 20480
        127.074666 ack 16073 window 23296
        128.074666 ack 17521 window 26240
        129.074666 ack 18969 window 29184
        130.074666 ack 20417 window 32000
        164.074666 ack 21865 window 34944
        165.074666 ack 23313 window 37888
        166.074666 ack 24761 window 40704
        167.074666 ack 26209 window 43648
        168.074666 ack 27657 window 46464
        169.074666 ack 29105 window 49408
        170.074666 ack 30553 window 52352
        171.074666 ack 32001 window 55168
        172.074666 ack 33449 window 57472",
    );
    let new = both(s, |h| h.stack.profile.drs_extra = 0);
    windows(
        &new,
        "40.04 ack 1 window 8832
        81.074666 ack 1449 window 11136
        86.205332 ack 8833 window 11776
        123.074666 ack 11729 window 14720
        124.074666 ack 13177 window 17536
        126.074666 ack 14625 window 20480
        127.074666 ack 16073 window 23296
        128.074666 ack 17521 window 26240
        129.074666 ack 18969 window 26368
        165.074666 ack 23313 window 27648",
    );
}

/// Before 6.6 half of the buffer is window (`tcp_adv_win_scale` = 1): 87,380 / 2 less a segment of 1460 at
/// first, rounded up to 64.
#[test]
fn a_fixed_share_of_the_buffer() {
    let s = both(paced(request(path(40), &[100], &[50_000])), |h| {
        h.stack.profile = Profile::named("linux-4.19").unwrap();
    });
    windows(
        &s,
        "40.04 ack 1 window 29312
        81.074666 ack 1449 window 32128
        82.074666 ack 2897 window 35072
        83.074666 ack 4345 window 37888
        84.074666 ack 5793 window 40832
        85.074666 ack 7241 window 42240
        123.074666 ack 17377 window 45184
        124.074666 ack 18825 window 48128
        125.074666 ack 20273 window 50944
        126.074666 ack 21721 window 53888
        127.074666 ack 23169 window 56832
        128.074666 ack 24617 window 59648
        129.074666 ack 26065 window 62592
        130.074666 ack 27513 window 64000",
    );
}

/// A reader that stops with the default buffer: below half of it the window is rounded down to its scale (512), below a
/// sixteenth it is closed (`__tcp_select_window`).
#[test]
fn a_window_closes_below_a_sixteenth_of_the_buffer() {
    let stops =
        |n: u64| host(paced(request(path(40), &[100], &[n])), 0, |h| h.read_pauses = vec![(1000, ms(2000))]);
    windows(
        &stops(100_000),
        "40.04 ack 1 window 64512
        81.074666 ack 1449 window 67584
        82.074666 ack 2897 window 70656
        83.074666 ack 4345 window 73728
        84.074666 ack 5793 window 76800
        85.074666 ack 7241 window 75776
        86.074666 ack 8689 window 74752
        87.074666 ack 10137 window 73728
        88.074666 ack 11585 window 72704
        89.074666 ack 13033 window 71680
        90.074666 ack 14481 window 70656
        122.074666 ack 15929 window 69632
        123.074666 ack 17377 window 68608
        124.074666 ack 18825 window 67584
        125.074666 ack 20273 window 66560
        126.074666 ack 21721 window 65536
        127.074666 ack 23169 window 64512
        128.074666 ack 24617 window 63488
        129.074666 ack 26065 window 62464
        130.074666 ack 27513 window 61440
        131.074666 ack 28961 window 60416
        166.074666 ack 49233 window 40960
        207.074666 ack 73849 window 16384
        256 ack 89777 window 1024
        564.717333 ack 90801 window 0
        2081.074666 ack 90801 window 76800
        2122.074666 ack 92249 window 79872
        2123.074666 ack 93697 window 81920
        2124.074666 ack 95145 window 84992
        2125.074666 ack 96593 window 88064
        2126.074666 ack 98041 window 91136
        2127.074666 ack 99489 window 94208
        2127.450666 ack 100001 window 97280",
    );
    // With a scale of 0 the window falls in whole segments.
    windows(
        &host(stops(30_000), 0, |h| h.rcvbuf = Some(20_000)),
        "40.04 ack 1 window 18980
        81.074666 ack 1449 window 21720
        83.074666 ack 4345 window 20272
        84.074666 ack 5793 window 18824
        85.074666 ack 7241 window 17376
        86.074666 ack 8689 window 15928
        87.074666 ack 10137 window 14480
        88.074666 ack 11585 window 13032
        122.074666 ack 15929 window 8688
        168 ack 24617 window 0
        2081.074666 ack 24617 window 21720
        2122.074666 ack 26065 window 23168",
    );
}

/// No silly window: a reader that comes back for 2000 bytes each 100 ms frees memory bit by bit, and nothing
/// is offered until a sixteenth of the buffer's window is free: 81,920 / 16 = 5120 (RFC 1122, 4.2.3.3).
#[test]
fn a_closed_window_opens_by_a_sixteenth_at_least() {
    let mut s = paced(request(path(40), &[100], &[100_000]));
    s.hosts[0].read_pauses = vec![(1000, ms(2000))];
    s.hosts[0].read_pauses.extend((1..16).map(|n| (1000 + 2000 * n, ms(100))));
    some(
        &s,
        |p| p.packet.from == 0 && p.sent > ms(500) && p.sent < ms(3500),
        "564.717333 > ack 90801
        884.034666 > ack 90801
        1428.034666 > ack 90801
        2484.034666 > ack 90801
        2681.074666 > ack 90801
        2722.074666 > ack 92249
        2768 > delayed ack 95921
        2981.074666 > ack 95921
        3022.074666 > ack 97369
        3068 > delayed ack 100001
        3181.074666 > ack 100001
        3481.074666 > ack 100001",
    );
    windows(
        &s,
        "40.04 ack 1 window 64512
        81.074666 ack 1449 window 67584
        82.074666 ack 2897 window 70656
        83.074666 ack 4345 window 73728
        84.074666 ack 5793 window 76800
        85.074666 ack 7241 window 75776
        86.074666 ack 8689 window 74752
        87.074666 ack 10137 window 73728
        88.074666 ack 11585 window 72704
        89.074666 ack 13033 window 71680
        90.074666 ack 14481 window 70656
        122.074666 ack 15929 window 69632
        123.074666 ack 17377 window 68608
        124.074666 ack 18825 window 67584
        125.074666 ack 20273 window 66560
        126.074666 ack 21721 window 65536
        127.074666 ack 23169 window 64512
        128.074666 ack 24617 window 63488
        129.074666 ack 26065 window 62464
        130.074666 ack 27513 window 61440
        131.074666 ack 28961 window 60416
        166.074666 ack 49233 window 40960
        207.074666 ack 73849 window 16384
        256 ack 89777 window 1024
        564.717333 ack 90801 window 0
        2681.074666 ack 90801 window 5120
        2722.074666 ack 92249 window 4096
        2768 ack 95921 window 1024
        2981.074666 ack 95921 window 5120
        3022.074666 ack 97369 window 4096
        3068 ack 100001 window 2048
        3181.074666 ack 100001 window 5120
        3481.074666 ack 100001 window 11264
        3581.074666 ack 100001 window 76800",
    );
}

/// What begins at the edge of the window is in it: the FIN behind 2920 bytes that fill it, of which the first
/// were lost.
#[test]
fn a_fin_at_the_edge_of_the_window_is_taken() {
    let mut s = lose(request(path(40), &[100], &[2920]), 1, &[tcpwhy_base::What::Data(1)]);
    s.hosts[0].rcvbuf = Some(4000);
    s.workload.server_closes = true;
    packets(
        &s,
        "0 > syn
        20 < syn ack 1
        40 > ack 1
        40 > 1..101 psh client_think
        60 < ack 101
        60 < 1..1449 lost server_think
        60 < 1449..2897 psh
        60 < 2897..2921 psh
        60 < fin ack 101
        80 > ack 1 sack 1449..2897
        80 > ack 1 sack 1449..2921
        80 > ack 1 sack 1449..2922
        100 < 1..1449 again fast_recovery
        120 > ack 2922
        120 > ack 2922
        120 > fin ack 2922",
    );
}

/// Where a round trip is less than a tick of the time stamps, the time in which a window arrives counts as
/// one (`tcp_rcv_rtt_measure`): 64 KB at 1 Gbit/s take half a millisecond, so that what is read in that time
/// makes the window grow. The kernel offered 1000 KB from the third of such requests on (labelled capture
/// post300k_split_2writes).
#[test]
fn a_window_that_fills_within_a_tick_grows() {
    let mut s = Scenario::with_path(tcpwhy_base::Nanos::micros(200), Some(1_000_000_000), None, 1500);
    s.workload =
        tcpwhy_base::Workload::serial(request(path(1), &[200, 307_200], &[120]).workload.turns[0].clone(), 5);
    let out = tcpwhy_model::run(&s).expect("possible");
    let offered = |p: &tcpwhy_model::Passage| (p.packet.from == 1).then_some(p.packet.window);
    let most = out.passages.iter().filter_map(offered).max();
    assert!(most.is_some_and(|w| w > 600_000), "{most:?}");
}
