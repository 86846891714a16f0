//! Which fix is offered first, with which of its lines, where the capture shows whom it is for.

use crate::session::hello_asked_for_again;
use crate::sums::together;
use crate::wire::{Tap, Wire, analyze, ms};
use tcpwhy_analysis::{Analysis, Finding};
use tcpwhy_base::{Cause, FixId, Program, Side, Tls, Told};

fn finding(analysis: &Analysis, cause: Cause) -> &Finding {
    analysis.findings.iter().find(|f| f.cause == cause).expect("the finding")
}

/// A client writes the head of a request, and its body after so many milliseconds.
fn uploads(program: Program, wait: i64) -> Analysis {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(180);
    w.at(ms(50)).server().ack();
    w.at(ms(30 + wait)).client().write(8 * 1448);
    w.after(ms(20)).server().ack();
    w.after(ms(1)).server().data(50);
    w.after(ms(20)).client().ack();
    let mut segments = w.segments();
    segments.iter_mut().filter(|s| s.len == 180).for_each(|s| s.program = Some(program));
    analyze(&segments)
}

/// curl sends the body 1 s after a head with `Expect: 100-continue` that nothing answered: no larger write
/// shortens that.
#[test]
fn an_upload_of_curl_that_waits_one_second_is_told_of_its_expect_header() {
    let told = |program, wait| {
        let analysis = uploads(program, wait);
        let pause = finding(&analysis, Cause::SenderPause);
        let first = &pause.fixes[0];
        (first.fix, first.how[0].contains("100-continue"), pause.fixes.len())
    };
    for wait in [960, 1_000, 1_090] {
        assert_eq!(told(Program::Libcurl, wait), (FixId::Application, true, 1), "{wait}");
    }
    for (program, wait) in [(Program::Libcurl, 900), (Program::Libcurl, 1_200), (Program::Go, 1_000)] {
        assert_eq!(told(program, wait), (FixId::Application, false, 2), "{program:?} {wait}");
    }
}

/// A server writes so many messages of `len` bytes, each `gap` milliseconds after the one before.
fn events(count: u32, len: u32, gap: i64) -> Analysis {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(180);
    for k in 1..=i64::from(count) {
        w.at(ms(50 + gap * k)).server().write(len);
        w.after(ms(0)).client().ack();
    }
    analyze(&w.segments())
}

/// A server writes so many pieces of 64 KiB, each so many milliseconds after the one before; what is said
/// first of its pauses.
fn pieces(gaps: impl Iterator<Item = i64>) -> (FixId, bool) {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(180);
    let mut t = 50;
    for gap in gaps {
        t += gap;
        w.at(ms(t)).server().write(45 * 1_448 + 376);
        w.after(ms(0)).client().ack();
    }
    let analysis = analyze(&w.segments());
    let first = &finding(&analysis, Cause::SenderPause).fixes[0];
    (first.fix, first.how[0].starts_with("Rate limit: ") && first.how[0].contains("limit_rate"))
}

/// Pauses as regular as a clock are a rate limit, or a clock; others are not, nor a few (rule 122).
#[test]
fn pauses_that_are_alike_are_told_to_be_a_rate_limit() {
    let alike = |n: usize, gap| pieces(std::iter::repeat_n(gap, n));
    assert_eq!(alike(60, 66), (FixId::Application, true));
    assert_eq!(alike(12, 500), (FixId::Application, true));
    assert_eq!(alike(60, 25), (FixId::Application, true));
    assert_eq!(alike(8, 66), (FixId::LargerWrites, false), "by chance");
    assert_eq!(pieces((0..60).map(|k| 40 + k * 37 % 50)), (FixId::LargerWrites, false));
}

/// Small messages at long gaps: there was nothing to read ahead, and nothing is promised (rule 110).
#[test]
fn who_had_nothing_to_say_is_not_told_to_read_ahead() {
    let told = |count, len, gap| {
        let analysis = events(count, len, gap);
        let pause = finding(&analysis, Cause::SenderPause);
        let first = &pause.fixes[0];
        let plain =
            first.how[0].contains("nothing to gain") && first.saves.is_none() && pause.fixes.len() == 1;
        // What took as long as a timeout was being made, and no buffer hides that; nor a clock.
        let alike = count >= 10;
        assert_eq!(plain || gap > 200 || alike, first.fix == FixId::Application, "{first:?}");
        assert!(plain || pause.fixes.iter().any(|fix| fix.fix == FixId::LargerWrites));
        plain
    };
    assert!(told(15, 40, 300) && told(15, 1_448, 300) && told(15, 14_480, 300));
    // A WebSocket's messages: no round trip has a segment of them, whether they come as regularly or not.
    assert!(told(40, 400, 60) && told(8, 200, 80) && told(40, 200, 15));
    // Blocks that a window may hold, a steady writer of more than a segment without an idle time, and one that only
    // began late.
    assert_eq!([told(15, 20 * 1_448, 300), told(40, 1_600, 60), told(3, 40, 300)], [false; 3]);
    // A writer of that many small pieces, one straight after the other, sends more than events.
    assert!(!told(400, 1_200, 5));
}

/// Slow start of a later request of a connection is none that keeping it saves.
#[test]
fn a_connection_that_was_kept_is_not_to_be_kept() {
    let offered = |before: u32| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.handshake();
        w.at(ms(20));
        for segments in std::iter::repeat_n(&[1][..], before as usize).chain([&[10, 20][..]]) {
            w.after(ms(10)).client().data(100);
            w.after(ms(10));
            for n in segments {
                w.server().write(n * 1_448);
                w.after(ms(10)).client().ack();
                w.after(ms(10));
            }
        }
        let analysis = w.analysis();
        let slow = finding(&analysis, Cause::SlowStart);
        slow.fixes.iter().any(|fix| fix.fix == FixId::ReuseConnections)
    };
    assert_eq!([offered(0), offered(1), offered(5)], [true, false, false]);
}

/// What can be asked for together is a question of the server's protocol, where nothing tells what the client is.
#[test]
fn round_trips_in_series_are_told_the_way_of_the_server_s_protocol() {
    let told = |client: Option<Program>, server: Option<Program>| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        for k in 0..20 {
            w.at(ms(30 + 21 * k)).client().data(40);
            w.at(ms(40 + 21 * k)).server().data(5);
        }
        let mut segments = w.segments();
        for s in &mut segments {
            s.program = if s.len == 40 { client } else { server.filter(|_| s.len == 5) };
        }
        let analysis = analyze(&segments);
        let fix = &finding(&analysis, Cause::Chatty).fixes[0];
        assert_eq!(fix.fix, FixId::FewerRoundTrips);
        (fix.how[0].split(':').next().unwrap_or_default().to_owned(), fix.guess)
    };
    let redis = Some((Program::Redis, Told::FirstBytes));
    assert_eq!(told(None, Some(Program::Redis)), ("Redis".into(), redis));
    assert_eq!(told(None, Some(Program::Nginx)), ("Any".into(), None), "the table has no row");
    let ssh = Some((Program::OpenSsh, Told::FirstBytes));
    assert_eq!(told(Some(Program::OpenSsh), Some(Program::Redis)), ("OpenSSH".into(), ssh));
}

/// A handshake of TLS with these records of server and client in turn, behind a question in the clear if
/// there is an answer to it.
fn tls(asked: Option<&[u8]>, turns: &[(u8, u8)]) -> Analysis {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    if let Some(answer) = asked {
        w.client().data(8).says(b"\0\0\0\x08\x04\xd2\x16\x2f");
        w.after(ms(10)).server().data(1).says(answer);
        w.after(ms(10));
    }
    if !turns.is_empty() {
        w.client().data(300).tls(Tls::HANDSHAKE);
    }
    for &(server, client) in turns {
        w.after(ms(10)).server().data(1000).tls(server);
        w.after(ms(10)).client().data(80).tls(client);
    }
    let kind = if turns.is_empty() { 0 } else { Tls::DATA };
    w.client().data(400).tls(kind);
    w.after(ms(10)).server().data(500).tls(kind);
    w.after(ms(10)).client().ack();
    let mut segments = w.segments();
    // As the first bytes say to whom they are.
    segments.iter_mut().filter(|s| s.len == 1).for_each(|s| s.program = Some(Program::PostgreSql));
    analyze(&segments)
}

/// What is offered for a TLS handshake, with what it saves, and whether a newer version is refuted.
fn offered(analysis: &Analysis) -> (Vec<(FixId, i64)>, bool) {
    let f = finding(analysis, Cause::TlsHandshake);
    let fixes = f.fixes.iter().map(|x| (x.fix, x.saves.map_or(0, |s| s.0 / 1_000_000))).collect();
    let because = "the handshake took one round trip already";
    (fixes, f.refuted.iter().any(|r| r.fix == FixId::Tls13 && r.because == because))
}

const V13: &[(u8, u8)] = &[(Tls::HANDSHAKE | Tls::CHANGE_CIPHER | Tls::DATA, Tls::CHANGE_CIPHER | Tls::DATA)];
const V12: &[(u8, u8)] = &[
    (Tls::HANDSHAKE, Tls::HANDSHAKE | Tls::CHANGE_CIPHER),
    (Tls::HANDSHAKE | Tls::CHANGE_CIPHER, Tls::DATA),
];

/// A newer version of TLS is offered where the handshake took more than one round trip, and saves one of them.
#[test]
fn a_newer_version_of_tls_saves_one_round_trip_where_there_are_two() {
    let (newer, kept, resumed) = (FixId::Tls13, FixId::ReuseConnections, FixId::TlsResumption);
    let one = tls(None, V13);
    assert_eq!(offered(&one), (vec![(kept, 20), (resumed, 20)], true));
    let worth = &finding(&one, Cause::TlsHandshake).fixes[1].how[0];
    assert!(worth.contains("not a round trip"), "{worth}");
    let two = tls(None, V12);
    assert_eq!(offered(&two), (vec![(newer, 20), (resumed, 20), (kept, 40)], false));
    assert!(!finding(&two, Cause::TlsHandshake).fixes[1].how[0].contains("not a round trip"));
}

/// What asks in the clear whether TLS may begin takes a round trip that no version of it saves; a refusal is
/// no handshake at all.
#[test]
fn what_asks_for_tls_is_not_told_of_a_newer_version() {
    let (newer, kept, resumed) = (FixId::Tls13, FixId::ReuseConnections, FixId::TlsResumption);
    let first = |analysis: &Analysis, fix| {
        let f = finding(analysis, Cause::TlsHandshake);
        let fix = f.fixes.iter().find(|x| x.fix == fix).expect("the fix");
        (fix.how[0].contains("sslmode=disable"), f.why().contains("the server refused it"))
    };
    let refused = tls(Some(b"N"), &[]);
    assert_eq!(offered(&refused), (vec![(kept, 20)], false));
    assert_eq!(first(&refused, kept), (true, true));
    let taken = tls(Some(b"S"), V13);
    assert_eq!(offered(&taken), (vec![(kept, 40), (resumed, 20)], true));
    assert_eq!(first(&taken, kept), (true, false));
    let older = tls(Some(b"S"), V12);
    assert_eq!(offered(&older), (vec![(newer, 20), (resumed, 20), (kept, 60)], false));
    assert!(!first(&tls(None, V13), kept).0, "nobody asked");
}

/// A first window takes the largest message, be there others before and behind it in the connection.
#[test]
fn a_larger_first_window_is_that_of_one_message() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.handshake();
    w.at(ms(30));
    for flights in [&[5][..], &[10, 20, 40], &[60]] {
        w.client().data(100);
        for segments in flights {
            w.after(ms(10)).server().write(segments * 1448);
            w.after(ms(10)).client().ack();
        }
        w.after(ms(30));
    }
    let analysis = w.analysis();
    let f = finding(&analysis, Cause::SlowStart);
    let fix = f.fixes.iter().find(|x| x.fix == FixId::Initcwnd).expect("the fix");
    assert!(fix.how.iter().any(|how| how.contains("initcwnd 71`")), "{:?}", fix.how);
}

/// Who greets late mostly looks up a name; who answers late does not, unless it took as long as a resolver
/// needs to give up.
#[test]
fn a_late_greeting_is_told_of_reverse_lookups() {
    let first = |greets: i64, works: i64| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(20 + greets)).server().data(80);
        w.after(ms(10)).client().ack();
        w.after(ms(10)).client().data(40);
        w.after(ms(10 + works)).server().data(80);
        w.after(ms(10)).client().ack();
        let analysis = analyze(&w.segments());
        let fixes = &finding(&analysis, Cause::ServerThink).fixes;
        let fix = fixes.iter().find(|f| f.fix == FixId::Application).expect("it is offered");
        fix.how[0].contains("lookup of the client's name")
    };
    assert_eq!([first(3_000, 50), first(50, 3_000)], [true, false]);
    let late = [5_006, 10_010, 30_020, 7_000, 10_150, 4_995, 35_010];
    assert_eq!(late.map(|works| first(50, works)), [true, true, true, false, false, false, false]);
}

/// Where the server closes each connection behind its answer, it is the one that has to keep them.
#[test]
fn who_closes_first_has_to_keep_connections() {
    let told = |by_server: bool| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.after(ms(10)).server().data(50);
        let (first, second) = if by_server { (1, 0) } else { (0, 1) };
        w.after(ms(10)).end(first).fin();
        w.after(ms(20)).end(second).fin();
        let analysis = analyze(&together(&vec![w; 3], ms(100)));
        let short = finding(&analysis, Cause::ShortConnections);
        let fix = &short.fixes[0];
        (short.side, fix.fix, fix.place, fix.how[0].contains("keepalive_timeout"))
    };
    assert_eq!(told(true), (Some(Side::Server), FixId::ReuseConnections, "server", true));
    assert_eq!(told(false), (Some(Side::Client), FixId::ReuseConnections, "client", false));
}

/// A server of TLS 1.3 that asks for another key takes two round trips, and a newer version is none.
#[test]
fn tls_1_3_is_not_offered_where_it_asked_again() {
    let analysis = hello_asked_for_again().analysis();
    let handshake = finding(&analysis, Cause::TlsHandshake);
    assert!(handshake.why().contains("One round trip (20.0 ms) went to another key"), "{}", handshake.why());
    // A session that is resumed takes as many round trips.
    let offered: Vec<FixId> = handshake.fixes.iter().map(|f| f.fix).collect();
    assert_eq!(offered, [FixId::ReuseConnections, FixId::TlsResumption]);
    assert!(handshake.fixes[1].how[0].contains("not a round trip"), "{:?}", handshake.fixes[1].how);
    assert!(
        handshake.refuted.iter().any(|r| r.fix == FixId::Tls13 && r.because.contains("HelloRetryRequest"))
    );
}

/// A peer that is gone changes nothing: who waits for it does.
#[test]
fn a_dead_peer_is_noticed_at_the_other_end() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    for _ in 0..4 {
        w.after(ms(1_000)).client().repeat(0, 100);
    }
    w.after(ms(5_000)).client().rst();
    let analysis = w.analysis();
    let gone = finding(&analysis, Cause::KeepaliveOrDeadPeer);
    assert_eq!((gone.side, gone.fixes[0].place), (Some(Side::Server), "client"));
}

/// Rule 107. Who gives up before the third repeat, seven timeouts of 220 ms after what it sent, ends
/// connections that would have gone on: a shorter silence is no reason to notice dead peers sooner. (The trip
/// is 1 ns longer here.)
#[test]
fn nobody_is_told_to_give_up_before_three_repeats() {
    let told = |silence: i64| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100).lost();
        w.at(ms(30 + silence)).client().rst();
        let analysis = analyze(&w.segments());
        let silent = finding(&analysis, Cause::KeepaliveOrDeadPeer);
        let fixes = (silent.fixes.iter().map(|f| f.fix).collect::<Vec<_>>(), silent.refuted.len());
        (fixes, silent.refuted.first().map(|r| r.because.contains("three repeats (1.54 s)")))
    };
    assert_eq!(told(1_540), ((vec![], 1), Some(true)));
    assert_eq!(told(1_541), ((vec![FixId::UserTimeout], 0), None));
}
