//! Findings that name a setting: the window and its scale, the buffer behind them, the segment size; and their fixes.

use crate::sums::{has, says};
use crate::wire::{CLIENT, SERVER, Tap, Wire, ms};
use tcpwhy_analysis::Analysis;
use tcpwhy_analysis::replay::predict;
use tcpwhy_base::{Cause, FixId};

const MSS: u32 = 1448;

/// The client uploads five windows of so many segments; the server offers no more, with this window scale.
fn window_limited(segments: u32, scale: Option<u8>, order: u32) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].window = segments * MSS;
    w.host[SERVER].wscale = scale;
    w.host[SERVER].order = order;
    w.handshake();
    for k in 0..5 {
        w.at(ms(30 + 20 * k)).client().write(segments * MSS);
        w.at(ms(40 + 20 * k)).server().ack();
    }
    w.at(ms(130)).client().data(100);
    w.at(ms(140)).server().data(50);
    w.at(ms(150)).client().ack();
    w
}

#[test]
fn a_receive_window_and_what_is_done_about_it() {
    let analysis = window_limited(3, Some(0), 0x342).analysis();
    says(
        &analysis,
        Cause::ReceiveWindow,
        "
        receive_window server lost 100 ms (0.667) tail 0 ns n 5 of 20.0 ms to 20.0 ms
        at 1.1 #6-7-10 evidence 6-7-10 10-11-14 14-15-18 18-19-22 22-23-24 in 1 [1]
        4344 bytes in flight filled the window that the receiver offered; one window per 20.0 ms round trip.
        unset_rcvbuf at server server 10.0.0.2:80 connection 1 side server saves 100 ms
        not rmem: the window scale is 0: the program set SO_RCVBUF before the handshake, and then tcp_rmem has no effect",
    );
}

/// A window that grows to twice its size in the same connection was not held down by a setting, but may have
/// begun with more.
#[test]
fn a_window_that_grows_by_itself_has_begun_small() {
    let scaled = |scale: u8, largest: u32| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.host[SERVER].window = 3 * MSS;
        w.host[SERVER].order = 0x342;
        w.host[SERVER].wscale = Some(scale);
        w.handshake();
        for k in 0..5 {
            w.at(ms(30 + 20 * k)).client().write(3 * MSS);
            w.at(ms(40 + 20 * k)).server().ack();
        }
        w.host[SERVER].window = largest;
        w.at(ms(130)).client().data(100);
        w.at(ms(140)).server().data(50);
        w.at(ms(150)).client().ack();
        w.analysis()
    };
    let grown = |largest: u32| scaled(2, largest);
    let refuted_of = |analysis: &Analysis, cause: Cause| {
        let f = analysis.findings.iter().find(|f| f.cause == cause).expect("a finding");
        let fixes: Vec<_> = f.fixes.iter().map(|fix| fix.fix.info().id).collect();
        let refuted: Vec<_> = f.refuted.iter().map(|r| (r.fix.info().id, r.because.clone())).collect();
        (fixes, refuted)
    };
    let refuted = |analysis: &Analysis| refuted_of(analysis, Cause::ReceiveWindow);
    let fixed = |analysis: &Analysis| {
        let f = analysis.findings.iter().find(|f| f.cause == Cause::ReceiveWindow).expect("a finding");
        f.fixes.iter().find(|fix| fix.fix == FixId::Rmem).expect("a fix").clone()
    };
    let because = "the window grew by itself from 4344 to 8688 bytes in the same connection".to_owned();
    assert_eq!(refuted(&grown(6 * MSS)), (vec!["rmem"], vec![("unset_rcvbuf", because.clone())]));
    let text = |largest: u32| fixed(&grown(largest)).how[0].contains("raise what it begins with");
    assert_eq!([text(6 * MSS), text(6 * MSS - 1)], [true, false]);
    // The finding that is made of that one does not offer what that one refutes.
    assert_eq!(refuted_of(&grown(6 * MSS), Cause::ExplicitBuffer), (vec![], vec![("unset_rcvbuf", because)]));
    assert_eq!(refuted(&grown(6 * MSS - 1)), (vec!["unset_rcvbuf", "rmem"], vec![]));
    // Within a buffer that was set before the handshake it grows as well, and would have begun larger.
    assert_eq!(refuted(&scaled(1, 6 * MSS)).0, ["unset_rcvbuf"]);
}

/// Linux chooses a scale of 7 or more by itself: a smaller one says that the buffer was set.
#[test]
fn an_explicit_buffer_is_said_of_a_small_scale_only() {
    let analysis = window_limited(3, Some(6), 0x342).analysis();
    says(&analysis, Cause::ExplicitBuffer, "
        explicit_buffer server lost 100 ms (0.667) tail 0 ns n 1 of 0 ns to 100 ms
        at 1.1 #6-7-10 evidence 6-7-10 in 1 [1]
        The server's window scale is 6 (Linux chooses 7 or more by itself) and its window never exceeded 4344 bytes: SO_RCVBUF or tcp_rmem was set by hand.
        unset_rcvbuf at server server 10.0.0.2:80 connection 1 side server saves 100 ms");
    for (scale, order, time) in [(7, 0x342, 3), (6, 0x432, 3), (14, 0x342, 3), (6, 0x342, 200)] {
        let mut w = window_limited(time, Some(scale), order);
        if time == 200 {
            // A window that is never filled.
            w = Wire::new(Tap::Client, ms(20));
            w.host[SERVER].wscale = Some(scale);
            w.handshake();
            w.at(ms(30)).client().data(100);
            w.at(ms(140)).server().data(50);
        }
        assert!(!has(&w.analysis(), Cause::ExplicitBuffer), "{scale} {order:x}");
    }
}

/// Linux takes the scale of the limit: what is raised already is not advised, but what the window begins with.
#[test]
fn a_limit_that_is_raised_already_is_not_advised() {
    let first = |scale: u8| {
        let analysis = window_limited(3, Some(scale), 0x342).analysis();
        let f = analysis.findings.into_iter().find(|f| f.cause == Cause::ReceiveWindow).expect("a finding");
        let fix = f.fixes.into_iter().next().expect("a fix");
        (fix.fix.info().id, fix.how[0].contains("The limit is 32 MiB or more already"))
    };
    assert_eq!([9, 10].map(first), [("unset_rcvbuf", false), ("rmem", true)]);
}

/// What a program set before the handshake shows in the scale (rule 164): a scale that small comes of no `tcp_rmem`, and one that large of no
/// small buffer. Between the two it may be either.
#[test]
fn what_the_scale_says_was_set_or_not_is_not_advised_otherwise() {
    let said = |scale: u8, segments: u32, order: u32| {
        let mut analysis = window_limited(segments, Some(scale), order).analysis();
        predict(&mut analysis);
        let f = analysis.findings.into_iter().find(|f| f.cause == Cause::ReceiveWindow).expect("a finding");
        let fixes: Vec<_> = f.fixes.iter().map(|x| (x.fix, x.predicted.is_some())).collect();
        let refuted: Vec<_> = f.refuted.iter().map(|r| (r.fix, r.because.clone())).collect();
        (fixes, refuted)
    };
    let (unset, rmem) = (FixId::UnsetRcvbuf, FixId::Rmem);
    let set = "the window scale is 1: the program set SO_RCVBUF before the handshake, and then tcp_rmem has no effect";
    assert_eq!(said(1, 40, 0x342), (vec![(unset, true)], vec![(rmem, set.to_owned())]));
    // Another system has other sizes of its own.
    assert_eq!(said(1, 40, 0x432), (vec![(unset, true), (rmem, true)], vec![]));
    // It may be a lowered `tcp_rmem`: what raising it saves nobody can predict.
    assert_eq!(
        [2, 6].map(|scale| said(scale, 40, 0x342)),
        [2, 6].map(|_| (vec![(unset, true), (rmem, false)], vec![]))
    );
    assert_eq!(said(9, 60, 0x342).0, [(unset, true), (rmem, true)]);
    let none = "the window scale is 10, and the window was 86016 bytes later: no buffer as small as that had been set before the \
                handshake";
    assert_eq!(said(10, 60, 0x342), (vec![(rmem, true)], vec![(unset, none.to_owned())]));
    // Whoever sets one behind the handshake has a small window and a large scale.
    assert_eq!(said(10, 40, 0x342), (vec![(rmem, true), (unset, true)], vec![]));
}

/// A download into a buffer that the client set: the fix is at the client.
#[test]
fn an_explicit_buffer_of_the_client() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.host[CLIENT].window = 4 * MSS;
    w.host[CLIENT].wscale = Some(2);
    w.handshake();
    w.at(ms(30)).client().data(100);
    for k in 0..5 {
        w.at(ms(40 + 20 * k)).server().write(4 * MSS);
        w.at(ms(50 + 20 * k)).client().ack();
    }
    w.at(ms(140)).server().data(100);
    w.at(ms(150)).client().ack();
    let analysis = w.analysis();
    says(&analysis, Cause::ExplicitBuffer, "
        explicit_buffer client lost 100 ms (0.769) tail 0 ns n 1 of 0 ns to 100 ms
        at 1.1 #8-9-13 evidence 8-9-13 in 1 [1]
        The client's window scale is 2 (Linux chooses 7 or more by itself) and its window never exceeded 5792 bytes: SO_RCVBUF or tcp_rmem was set by hand.
        unset_rcvbuf at client server 10.0.0.2:80 connection 1 side client saves 100 ms");
    says(
        &analysis,
        Cause::ReceiveWindow,
        "
        receive_window client lost 100 ms (0.769) tail 0 ns n 5 of 20.0 ms to 20.0 ms
        at 1.1 #8-9-13 evidence 8-9-13 13-14-18 18-19-23 23-24-28 28-29-30 in 1 [1]
        5792 bytes in flight filled the window that the receiver offered; one window per 20.0 ms round trip.
        unset_rcvbuf at client server 10.0.0.2:80 connection 1 side client saves 100 ms
        rmem at client server 10.0.0.2:80 connection 1 side client saves 100 ms",
    );
}

/// Without scaling no window exceeds 65,535 bytes; one that is not half of that was not limited by it.
#[test]
fn no_window_scaling_is_said_of_a_window_at_its_limit() {
    let limited = |window: u32| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.host[CLIENT].window = 16_000;
        w.host[SERVER].window = window;
        w.host[SERVER].wscale = None;
        w.handshake();
        for k in 0..5 {
            w.at(ms(30 + 20 * k)).client().write(window);
            w.at(ms(40 + 20 * k)).server().ack();
        }
        w.at(ms(130)).client().data(100);
        w.at(ms(140)).server().data(50);
        w.at(ms(150)).client().ack();
        w.analysis()
    };
    says(
        &limited(65_535),
        Cause::NoWindowScaling,
        "
        no_window_scaling server lost 100 ms (0.667) tail 0 ns n 1 of 0 ns to 100 ms
        at 1.1 #49-50-96 evidence 49-50-96 in 1 [1]
        The server did not offer window scaling, so that no window exceeds 65,535 bytes.
        window_scaling at host server 10.0.0.2:80 connection 1 side server saves 100 ms",
    );
    assert!(!has(&limited(32_767), Cause::NoWindowScaling));
    assert!(has(&limited(32_768), Cause::NoWindowScaling));
    assert!(has(&limited(32_767), Cause::ReceiveWindow));
}

/// The window of the other end, which nothing filled, says nothing of the one that was full.
#[test]
fn no_window_scaling_is_not_said_because_of_the_other_end_s_window() {
    let limited = |client: u32| {
        let mut w = window_limited(4, None, 0x342);
        w.host[CLIENT].window = client;
        w.analysis()
    };
    assert!(has(&limited(16_000), Cause::ReceiveWindow));
    assert!(!has(&limited(60_000), Cause::NoWindowScaling));
}

/// What IPv6's least MTU allows is 1,220 bytes: below that a tunnel or a clamp cuts.
#[test]
fn a_small_mss_is_below_1220_bytes() {
    let analysis = |mss: u16| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.host[CLIENT].mss = mss;
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.after(ms(10));
        for n in [10, 20, 40] {
            let full = w.mss();
            w.server().write(n * full);
            w.after(ms(10)).client().ack();
            w.after(ms(10));
        }
        w.analysis()
    };
    says(&analysis(1_219), Cause::SmallMss, "
        small_mss server lost 6.60 ms (0.094) tail 0 ns n 1 of 0 ns to 6.60 ms
        at 1.1 #14-15-35 evidence 14-15-35 in 1 [1]
        Segments carry at most 1219 bytes; 1,460 are usual on Ethernet.
        larger_mtu at path server 10.0.0.2:80 connection 1 side server saves 6.60 ms
        Linux: `ip link set dev DEV mtu 9000` at both ends and on every switch and tunnel between; prove it first with `ping -M do -s 8972 10.0.0.2`
        clamp_mss at path server 10.0.0.2:80 connection 1 side server saves 6.60 ms
        Any: If a clamp is there already and too low: set it to the path MTU less 40 (IPv4) or 60 (IPv6); it was 1219");
    says(&analysis(1_219), Cause::SlowStart, "
        slow_start server lost 40.0 ms (0.571) tail 0 ns n 2 of 20.0 ms to 20.0 ms
        at 1.1 #14-15-35 evidence 14-15-35 35-36-76 in 1 [1]
        12070 bytes (10 segments) were in flight and the next left with the ACK (round trip 20.0 ms).
        reuse_connections at client server 10.0.0.2:80 connection 1 side server saves 40.0 ms
        initcwnd at server server 10.0.0.2:80 connection 1 side server segments 71 saves 40.0 ms
        Linux: `ip route change default via GATEWAY dev DEV initcwnd 71` on the sending host: the message then goes in one flight; a burst that a thin link may drop, so better on a route for known peers
        smaller_response at server server 10.0.0.2:80 connection 1 side server saves 40.0 ms
        larger_mtu at path server 10.0.0.2:80 connection 1 side server saves 40.0 ms
        Linux: `ip link set dev DEV mtu 9000` at both ends and on every switch and tunnel between; prove it first with `ping -M do -s 8972 10.0.0.2`");
    assert!(!has(&analysis(1_220), Cause::SmallMss));
    assert!(has(&analysis(1_220), Cause::SlowStart));
}

/// Two segments at a time, whose ACKs are late: buffers of two segments do that, but not where more had been in flight
/// (rule 145).
#[test]
fn a_buffer_that_held_more_is_not_too_small() {
    let told = |before: u32| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.handshake();
        w.at(ms(30)).client().window(1 << 20).data(100);
        w.at(ms(60)).server().write(before * MSS);
        w.at(ms(70)).client().ack();
        for n in 0..5 {
            w.at(ms(80 + 220 * n)).server().write(2 * MSS);
            w.at(ms(80 + 220 * n + 210)).client().ack();
        }
        let analysis = w.analysis();
        let f = analysis.findings.iter().find(|f| f.cause == Cause::DelayedAck).expect("a finding");
        let offered = f.fixes.iter().any(|fix| fix.fix == FixId::BiggerWindow);
        let refuted = f.refuted.iter().find(|r| r.fix == FixId::BiggerWindow).map(|r| r.because.as_str());
        (offered, refuted.map(|because| because.split(' ').next().unwrap().to_owned()))
    };
    assert_eq!(told(2), (true, None));
    assert_eq!(told(3), (true, None));
    assert_eq!(told(4), (false, Some((4 * MSS).to_string())));
}
