//! The window that a receiver offers, and its buffer.

use crate::script::*;
use tcpwhy_model::{Profile, Scenario};

/// 12 Mbit/s: a full segment each millisecond.
fn paced(s: Scenario) -> Scenario {
    link(s, 1, |l| l.rate = Some(12_000_000))
}

/// SO_RCVBUF 4000 becomes 8000 of memory; 2920 of window until the first segment shows that payload is 160/256 of it: two
/// segments.
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
        120 > ack 4345
        140 < 4345..5793 psh receive_window
        140 < 5793..7241
        160 > ack 7241
        180 < 7241..8689 psh receive_window
        180 < 8689..10137
        200 > ack 10137
        220 < 10137..11585 psh receive_window
        220 < 11585..12001 psh
        240 > ack 12001
        240 > fin ack 12001
        260 < fin ack 102",
    );
}

/// A reader that stops: the window closes, is asked for after 240 ms (RTO), twice that, four times, and opens with the read.
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
        3100 < 16001..17449 receive_window
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
        120 > ack 4345
        140 < 4345..5793 psh receive_window
        140 < 5793..7241
        160 > ack 7241
        160 > ack 7241
        180 < 7241..8689 psh receive_window
        180 < 8689..10137 receive_window
        200 > ack 10137
        200 > ack 10137
        220 < 10137..11585 psh receive_window
        220 < 11585..13033 receive_window
        240 > ack 13033
        240 > ack 13033
        260 < 13033..14481 psh receive_window
        260 < 14481..15929 receive_window
        280 > ack 15929
        280 > ack 15929
        300 < 15929..17377 psh receive_window
        300 < 17377..18825 receive_window
        320 > ack 18825
        320 > ack 18825
        340 < 18825..20001 psh receive_window
        360 > ack 20001
        360 > fin ack 20001
        380 < fin ack 102",
    );
}

/// The window grows by two segments with each (`tcp_grow_window`) to what the buffer holds, then the buffer by what the
/// application reads in a round trip (`tcp_rcv_space_adjust`).
#[test]
fn the_window_follows_what_is_read() {
    windows(
        &paced(request(path(40), &[100], &[150_000])),
        "40.04 ack 1 window 64512
        81.074666 ack 1449 window 67584
        82.074666 ack 2897 window 70144
        83.074666 ack 4345 window 73216
        84.074666 ack 5793 window 76288
        85.074666 ack 7241 window 78848
        86.074666 ack 8689 window 80896
        87.074666 ack 10137 window 80896
        88.074666 ack 11585 window 80896
        89.074666 ack 13033 window 80896
        90.074666 ack 14481 window 80896
        122.074666 ack 15929 window 80896
        123.074666 ack 17377 window 80896
        124.074666 ack 18825 window 80896
        125.074666 ack 20273 window 80896
        126.074666 ack 21721 window 80896
        127.074666 ack 23169 window 80896
        128.074666 ack 24617 window 80896
        129.074666 ack 26065 window 80896
        130.074666 ack 27513 window 80896
        131.074666 ack 28961 window 80896
        132.074666 ack 30409 window 80896
        133.074666 ack 31857 window 80896
        135.074666 ack 34753 window 80896
        137.074666 ack 37649 window 80896
        139.074666 ack 40545 window 80896
        141.074666 ack 43441 window 80896
        164.074666 ack 46337 window 83456
        165.074666 ack 47785 window 86528
        166.074666 ack 49233 window 89600
        167.074666 ack 50681 window 92160
        168.074666 ack 52129 window 95232
        169.074666 ack 53577 window 98304
        170.074666 ack 55025 window 100864
        171.074666 ack 56473 window 103936
        172.074666 ack 57921 window 107008
        173.074666 ack 59369 window 109568
        174.074666 ack 60817 window 112640
        175.074666 ack 62265 window 115712
        176.074666 ack 63713 window 118272
        177.074666 ack 65161 window 121344
        178.074666 ack 66609 window 124416
        179.074666 ack 68057 window 126976
        180.074666 ack 69505 window 130048
        181.074666 ack 70953 window 132608
        182.074666 ack 72401 window 135680
        183.074666 ack 73849 window 138752
        184.074666 ack 75297 window 141312
        185.074666 ack 76745 window 144384
        186.074666 ack 78193 window 147456
        187.074666 ack 79641 window 150016
        188.074666 ack 81089 window 153088
        189.074666 ack 82537 window 156160
        190.074666 ack 83985 window 158720
        191.074666 ack 85433 window 161792
        192.074666 ack 86881 window 164864
        193.074666 ack 88329 window 167424
        194.074666 ack 89777 window 170496
        195.074666 ack 91225 window 170496
        197.074666 ack 94121 window 170496
        199.074666 ack 97017 window 170496
        201.074666 ack 99913 window 170496
        205.074666 ack 102809 window 170496
        206.074666 ack 104257 window 173568
        207.074666 ack 105705 window 176640
        208.074666 ack 107153 window 179200
        209.074666 ack 108601 window 182272
        210.074666 ack 110049 window 185344
        211.074666 ack 111497 window 187904
        212.074666 ack 112945 window 190976
        213.074666 ack 114393 window 194048
        214.074666 ack 115841 window 196608
        215.074666 ack 117289 window 199680
        216.074666 ack 118737 window 202752
        217.074666 ack 120185 window 205312
        218.074666 ack 121633 window 208384
        219.074666 ack 123081 window 211456
        220.074666 ack 124529 window 214016
        221.074666 ack 125977 window 217088
        222.074666 ack 127425 window 219648
        223.074666 ack 128873 window 222720
        224.074666 ack 130321 window 225792
        225.074666 ack 131769 window 228352
        226.074666 ack 133217 window 231424
        227.074666 ack 134665 window 234496
        228.074666 ack 136113 window 237056
        229.074666 ack 137561 window 240128
        230.074666 ack 139009 window 243200
        231.074666 ack 140457 window 245760
        232.074666 ack 141905 window 248832
        233.074666 ack 143353 window 251904
        234.074666 ack 144801 window 254464
        235.074666 ack 146249 window 257536
        236.074666 ack 147697 window 260608
        237.074666 ack 149145 window 263168
        237.679999 ack 150001 window 266240",
    );
}

#[test]
fn before_6_13_sixteen_segments_are_added() {
    let s = both(paced(request(path(40), &[100], &[120_000])), |h| {
        h.stack.profile = Profile::named("linux-6.12").unwrap();
        h.stack.profile.rmem[1] = 20_000;
    });
    windows(
        &s,
        "40.04 ack 1 window 8768
        81.074666 ack 1449 window 11072
        82.074666 ack 2897 window 11072
        83.074666 ack 4345 window 11072
        85.074666 ack 7241 window 11072
        86.162666 ack 8769 window 11072
        123.074666 ack 11665 window 14016
        124.074666 ack 13113 window 16896
        126.074666 ack 14561 window 19776
        127.074666 ack 16009 window 22656
        128.074666 ack 17457 window 25600
        129.074666 ack 18905 window 28480
        129.733332 ack 19841 window 31360
        164.074666 ack 21289 window 34240
        164.450666 ack 21801 window 37184
        165.450666 ack 23249 window 40064
        166.450666 ack 24697 window 42944
        167.450666 ack 26145 window 45824
        168.450666 ack 27593 window 48768
        169.450666 ack 29041 window 51648
        170.450666 ack 30489 window 54528
        171.450666 ack 31937 window 57408
        172.450666 ack 33385 window 60352
        173.450666 ack 34833 window 63232
        174.450666 ack 36281 window 66112
        175.450666 ack 37729 window 67712
        176.450666 ack 39177 window 67712
        178.450666 ack 42073 window 67712
        180.450666 ack 44969 window 67712
        182.450666 ack 47865 window 67712
        184.450666 ack 50761 window 67712
        206.074666 ack 53657 window 70592
        207.074666 ack 55105 window 73536
        208.074666 ack 56553 window 76416
        209.074666 ack 58001 window 79296
        210.074666 ack 59449 window 82176
        211.074666 ack 60897 window 85120
        212.074666 ack 62345 window 88000
        213.074666 ack 63793 window 90880
        214.074666 ack 65241 window 93760
        215.074666 ack 66689 window 96704
        216.074666 ack 68137 window 99584
        217.074666 ack 69585 window 102464
        218.074666 ack 71033 window 105344
        219.074666 ack 72481 window 108288
        220.074666 ack 73929 window 111168
        221.074666 ack 75377 window 114048
        222.074666 ack 76825 window 116928
        223.074666 ack 78273 window 119872
        224.074666 ack 79721 window 122752
        225.074666 ack 81169 window 125632
        226.074666 ack 82617 window 128512
        227.074666 ack 84065 window 131456
        228.074666 ack 85513 window 134336
        229.074666 ack 86961 window 137216
        230.074666 ack 88409 window 140096
        231.074666 ack 89857 window 143040
        232.074666 ack 91305 window 145920
        233.074666 ack 92753 window 148800
        234.074666 ack 94201 window 151680
        235.074666 ack 95649 window 154624
        236.074666 ack 97097 window 157504
        237.074666 ack 98545 window 160384
        238.074666 ack 99993 window 163264
        239.074666 ack 101441 window 166208
        240.074666 ack 102889 window 169088
        241.074666 ack 104337 window 171968
        242.074666 ack 105785 window 174848
        243.074666 ack 107233 window 177792
        244.074666 ack 108681 window 180672
        245.074666 ack 110129 window 183552
        246.074666 ack 111577 window 186432
        247.074666 ack 113025 window 189376
        248.074666 ack 114473 window 192256
        249.074666 ack 115921 window 195136
        250.074666 ack 117369 window 198016
        251.074666 ack 118817 window 200960
        251.898666 ack 120001 window 203840",
    );
    let new = both(s, |h| h.stack.profile.drs_extra = 0);
    windows(
        &new,
        "40.04 ack 1 window 8768
        81.074666 ack 1449 window 11072
        82.074666 ack 2897 window 11072
        83.074666 ack 4345 window 11072
        85.074666 ack 7241 window 11072
        86.162666 ack 8769 window 11072
        123.074666 ack 11665 window 14016
        124.074666 ack 13113 window 16128
        127.074666 ack 16009 window 16128
        129.074666 ack 18905 window 16128
        129.733332 ack 19841 window 16128
        164.450666 ack 21801 window 19072
        165.450666 ack 23249 window 21952
        166.450666 ack 24697 window 24832
        167.450666 ack 26145 window 27712
        168.450666 ack 27593 window 30656
        169.450666 ack 29041 window 32384
        170.450666 ack 30489 window 32384
        171.618666 ack 32137 window 33024
        173.485332 ack 34833 window 33024
        206.450666 ack 37729 window 35904
        207.450666 ack 39177 window 38784
        208.450666 ack 40625 window 41728
        208.650666 ack 40873 window 44608
        209.650666 ack 42321 window 47488
        210.485332 ack 43521 window 49792
        212.485332 ack 46417 window 49792
        213.485332 ack 47865 window 49792
        215.485332 ack 50761 window 49792
        217.485332 ack 53657 window 49792
        219.485332 ack 56553 window 49792
        221.485332 ack 59449 window 49792
        223.485332 ack 62345 window 49792
        225.485332 ack 65241 window 49792
        247.450666 ack 68137 window 49792
        248.450666 ack 69585 window 52672
        249.450666 ack 71033 window 55616
        250.450666 ack 72481 window 58496
        251.253332 ack 73633 window 61376
        252.253332 ack 75081 window 64256
        252.485332 ack 75377 window 67200
        253.485332 ack 76825 window 70080
        254.485332 ack 78273 window 72960
        255.485332 ack 79721 window 75840
        256.485332 ack 81169 window 78784
        257.485332 ack 82617 window 81664
        258.485332 ack 84065 window 84544
        259.485332 ack 85513 window 87424
        260.485332 ack 86961 window 90368
        261.485332 ack 88409 window 93248
        262.485332 ack 89857 window 96128
        263.485332 ack 91305 window 99008
        264.485332 ack 92753 window 101952
        265.485332 ack 94201 window 104832
        266.485332 ack 95649 window 107712
        267.485332 ack 97097 window 110592
        268.485332 ack 98545 window 113536
        269.485332 ack 99993 window 116416
        270.485332 ack 101441 window 119296
        271.485332 ack 102889 window 122176
        272.485332 ack 104337 window 125120
        273.485332 ack 105785 window 128000
        274.485332 ack 107233 window 130880
        275.485332 ack 108681 window 133760
        276.485332 ack 110129 window 136704
        277.485332 ack 111577 window 139584
        278.485332 ack 113025 window 142464
        279.485332 ack 114473 window 145344
        279.893332 ack 115033 window 148288
        288.450666 ack 116481 window 151168
        289.450666 ack 117929 window 154048
        290.450666 ack 119377 window 156928
        290.901332 ack 120001 window 159872",
    );
}

/// Half of the buffer is window (`tcp_adv_win_scale` = 1), before 6.6.
#[test]
fn a_fixed_share_of_the_buffer() {
    let s = both(paced(request(path(40), &[100], &[60_000])), |h| {
        h.stack.profile = Profile::named("linux-4.19").unwrap();
    });
    windows(
        &s,
        "40.04 ack 1 window 29248
        81.074666 ack 1449 window 32128
        82.074666 ack 2897 window 35008
        83.074666 ack 4345 window 37888
        84.074666 ack 5793 window 40832
        85.074666 ack 7241 window 42240
        86.074666 ack 8689 window 42240
        87.074666 ack 10137 window 42240
        88.074666 ack 11585 window 42240
        89.074666 ack 13033 window 42240
        90.074666 ack 14481 window 42240
        122.074666 ack 15929 window 42240
        123.074666 ack 17377 window 42240
        124.074666 ack 18825 window 42240
        125.074666 ack 20273 window 42240
        126.074666 ack 21721 window 42240
        128.074666 ack 24617 window 42240
        130.074666 ack 27513 window 42240
        131.074666 ack 28961 window 42240
        133.074666 ack 31857 window 42240
        135.074666 ack 34753 window 42240
        137.074666 ack 37649 window 42240
        139.074666 ack 40545 window 42240
        141.074666 ack 43441 window 42240
        164.074666 ack 46337 window 45184
        165.074666 ack 47785 window 48064
        166.074666 ack 49233 window 50944
        167.074666 ack 50681 window 53824
        168.074666 ack 52129 window 56768
        169.074666 ack 53577 window 59648
        170.074666 ack 55025 window 62528
        171.074666 ack 56473 window 65408
        172.074666 ack 57921 window 68352
        173.074666 ack 59369 window 71232
        173.530666 ack 60001 window 74112",
    );
}
