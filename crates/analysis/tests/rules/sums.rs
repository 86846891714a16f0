//! Findings, their fixes, and what does not help: sums over spans and connections, with every figure.

use crate::wire::{CLIENT, Tap, Wire, analyze, ms, us};
use std::fmt::Write as _;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Detail, Example, Extremes, Finding, Parameter, Quality};
use tcpwhy_base::{Cause, Class, FixId, Nanos, Program, Segment, Told};

const MSS: u32 = 1448;

/// One after the other on one clock: each with a client port of its own, this long after the one before.
pub(crate) fn together(wires: &[Wire], apart: Nanos) -> Vec<Segment> {
    begun(wires, |n| apart.times(n as i64))
}

/// Each moved by a time of its own.
pub(crate) fn begun(wires: &[Wire], at: impl Fn(usize) -> Nanos) -> Vec<Segment> {
    let mut all = Vec::new();
    for (n, wire) in wires.iter().enumerate() {
        for mut s in wire.segments() {
            let client = if s.src == wire.host[CLIENT].end { &mut s.src } else { &mut s.dst };
            client.port += n as u16;
            s.time += at(n);
            all.push(s);
        }
    }
    all.sort_by_key(|s| s.time);
    for (i, s) in all.iter_mut().enumerate() {
        s.frame = i as u64 + 1;
    }
    all
}

/// All that a finding says, on a line each: sums; example, evidence, connections; the sentence; fixes with the figures that fill
/// them; what has no effect.
fn said(f: &Finding) -> String {
    let side = f.side.map_or("nobody", |s| s.name());
    let mut out = format!("{} {side} lost {} ({:.3})", f.cause.id(), f.lost, f.share);
    let Extremes { shortest: least, longest: most } = f.range;
    let _ = writeln!(out, " tail {} n {} of {least} to {most}", f.tail, f.occurrences);
    let Example { connection, exchange, frames, .. } = f.example;
    let keys =
        |frames: &tcpwhy_analysis::Frames| frames.keys().map(|k| k.to_string()).collect::<Vec<_>>().join("-");
    let evidence: Vec<String> = f.evidence.iter().map(keys).collect();
    let _ = write!(out, "at {connection}.{exchange} #{} evidence {}", keys(&frames), evidence.join(" "));
    let _ = writeln!(out, " in {} {:?}", f.connection_count, f.connections);
    let _ = writeln!(out, "{}", f.why());
    for fix in &f.fixes {
        let _ = write!(out, "{} at {}", fix.fix.info().id, fix.place);
        for (name, value) in &fix.parameters {
            match value {
                Parameter::Number(n) => _ = write!(out, " {name} {n}"),
                Parameter::Text(t) => _ = write!(out, " {name} {t}"),
            }
        }
        let _ = writeln!(out, " saves {}", fix.saves.unwrap_or(Nanos(-1)));
        // Next steps have a story of their own.
        let lines = fix.how.iter().filter(|_| fix.fix != FixId::Application);
        for line in lines.filter(|line| !fix.fix.info().how.iter().any(|h| line.ends_with(h.text))) {
            let _ = writeln!(out, "{line}");
        }
    }
    for refuted in &f.refuted {
        let _ = writeln!(out, "not {}: {}", refuted.fix.info().id, refuted.because);
    }
    for none in f.no_effect() {
        let _ = writeln!(out, "no effect: {} at {}: {}", none.id, none.place, none.what);
    }
    out
}

#[track_caller]
pub(crate) fn says(analysis: &Analysis, cause: Cause, expected: &str) {
    same(&analysis.findings.iter().filter(|f| f.cause == cause).map(said).collect::<String>(), expected);
}

#[track_caller]
fn same(found: &str, expected: &str) {
    let lines =
        |text: &str| text.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect::<Vec<_>>();
    assert!(lines(found) == lines(expected), "the finding says\n{found}\nthe test expects\n{expected}");
}

pub(crate) fn has(analysis: &Analysis, cause: Cause) -> bool {
    analysis.findings.iter().any(|f| f.cause == cause)
}

/// The way for the program in sight stands first; of a next step behind the line that says when to look.
#[test]
fn the_program_in_sight_is_told_its_own_way() {
    let with = |program: Option<Program>| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        for k in 0..5 {
            w.at(ms(200 * k + 30)).client().data(4);
            w.at(ms(200 * k + 80)).server().ack();
            w.at(ms(200 * k + 90)).client().data(100);
            w.at(ms(200 * k + 130)).server().data(50);
            w.at(ms(200 * k + 140)).client().ack();
        }
        let mut segments = w.segments();
        for s in &mut segments {
            s.program = program.filter(|_| s.len > 0);
        }
        let analysis = analyze(&segments);
        let first = |cause, id: FixId| {
            let f = analysis.findings.iter().find(|f| f.cause == cause).expect("a finding");
            let fix = f.fixes.iter().find(|fix| fix.fix == id).expect("a fix");
            let words = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
            (fix.how.iter().take(2).map(words).collect::<Vec<_>>().join(" "), fix.guess)
        };
        let ends = analysis.connections[0].ends.each_ref().map(|e| e.program);
        let next = first(Cause::ServerThink, FixId::Application);
        (ends, first(Cause::NagleDelayedAck, FixId::Nodelay), next)
    };
    let python = Some((Program::Python, Told::FirstBytes));
    let said = |text: &str, guess| (text.to_owned(), guess);
    let (ends, fix, next) = with(Some(Program::Python));
    assert_eq!(ends, [python, python]);
    assert_eq!((fix, next), (said("Python: Any:", python), said("Any: Python:", python)));
    let (ends, fix, next) = with(None);
    assert_eq!(ends, [None, None]);
    assert_eq!((fix, next), (said("Any: Java:", None), said("Any: Linux:", None)));
    // One of which the table has no row changes nothing.
    assert_eq!(with(Some(Program::Envoy)).1, said("Any: Java:", None));
}

/// A next step says when to look: the wall-clock time of the longest wait, and the ports that name the process.
#[test]
fn a_next_step_says_when_and_where_to_look() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(150)).server().data(50);
    w.at(ms(160)).client().ack();
    let mut segments = w.segments();
    let start = segments[0].time;
    for s in &mut segments {
        // The whole of the wait, though it begins and ends between two milliseconds.
        s.time = s.time - start + Nanos::secs(951_827_696) + us(300);
    }
    let analysis = analyze(&segments);
    let f = analysis.findings.iter().find(|f| f.cause == Cause::ServerThink).expect("a finding");
    assert_eq!(
        f.fixes[0].how[0],
        "Any: Look in its log, trace or profile for 2000-02-29 12:34:56.040 to 2000-02-29 12:34:56.151 (UTC), connection 10.0.0.1:40000 > 10.0.0.2:80: TCP had nothing to send, so no socket option shortens this; it may itself have waited for another server, or on purpose (a long poll, a blocking command)"
    );
    assert!(
        f.fixes[0].how[1].starts_with("Linux: `ss -tanp 'sport = :80'` names the process"),
        "{:?}",
        f.fixes[0].how
    );
}

/// Of connections that lost alike the first are named, however many come.
#[test]
fn the_first_of_many_equal_connections_stay_named() {
    let one = |work: i64| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.at(ms(40 + work)).server().data(50);
        w.at(ms(50 + work)).client().ack();
        w
    };
    let mut wires: Vec<Wire> = (0..81).map(|_| one(100)).collect();
    wires.push(one(200));
    let analysis = analyze(&together(&wires, ms(1000)));
    let f = analysis.findings.iter().find(|f| f.cause == Cause::ServerThink).expect("a finding");
    assert_eq!(f.connections[..4], [82, 1, 2, 3]);
}

/// So many requests in series over a path of this round trip. For the first of them the server worked a tenth of it.
pub(crate) fn requests(n: i64, rtt: Nanos) -> Wire {
    requests_with_work(n, rtt, rtt.part(10))
}

/// The same, and the server answers each at once.
fn pure_requests(n: i64, rtt: Nanos) -> Wire {
    requests_with_work(n, rtt, Nanos::ZERO)
}

fn requests_with_work(n: i64, rtt: Nanos, work: Nanos) -> Wire {
    let mut w = Wire::new(Tap::Client, rtt);
    w.handshake();
    for k in 0..n {
        w.at(ms(30) + (rtt + ms(5)).times(k)).client().data(100);
        w.after(rtt.part(2) + if k == 0 { work } else { Nanos::ZERO }).server().data(50);
        w.after(rtt.part(2)).client().ack();
    }
    w
}

#[test]
fn ten_requests_in_series_are_chatty_and_nine_are_not() {
    says(
        &requests(10, ms(20)).analysis(),
        Cause::Chatty,
        "
        chatty client lost 180 ms (0.655) tail 0 ns n 10 of 0 ns to 180 ms
        at 1.1 #4-5 evidence 4-5 in 1 [1]
        10 requests, one after the other, each waiting a round trip of 20.0 ms and hardly anything else.
        fewer_round_trips at client server 10.0.0.2:80 connection 1 side client saves 180 ms",
    );
    assert!(!has(&requests(9, ms(20)).analysis(), Cause::Chatty));
    // Nothing but round trips: no span of theirs is summed by connection.
    says(
        &pure_requests(10, ms(20)).analysis(),
        Cause::Chatty,
        "
        chatty client lost 180 ms (0.655) tail 0 ns n 10 of 0 ns to 180 ms
        at 1.1 #4-5 evidence 4-5 in 1 [1]
        10 requests, one after the other, each waiting a round trip of 20.0 ms and hardly anything else.
        fewer_round_trips at client server 10.0.0.2:80 connection 1 side client saves 180 ms",
    );
    // Beside the server the trips lie between requests, and no request takes long.
    let mut w = Wire::new(Tap::Server, ms(20));
    w.handshake();
    for k in 0..10 {
        w.at(ms(30) + us(20_100 * k)).client().data(100);
        w.after(ms(10) + us(100)).server().data(50);
    }
    let analysis = w.analysis();
    let chatty = analysis.findings.iter().find(|f| f.cause == Cause::Chatty).expect("ten requests in series");
    let saves = chatty.fixes[0].saves.expect("a bound");
    let all = [chatty.lost, chatty.idle, chatty.of_requests(), saves].map(|time| time.0 / 1_000_000);
    assert_eq!(all, [180, 179, 1, 180]);
    // A millisecond a trip is not worth it.
    assert!(!has(&requests(10, ms(1) - Nanos(10)).analysis(), Cause::Chatty));
    assert!(has(&requests(10, ms(1)).analysis(), Cause::Chatty));
}

/// Writes of 4 and 100 bytes, four times, held until the ACK that comes 40 ms late.
fn held(rounds: i64) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    for k in 0..rounds {
        w.at(ms(30 + 100 * k)).client().data(4);
        w.at(ms(80 + 100 * k)).server().ack();
        w.at(ms(90 + 100 * k)).client().data(100);
        w.at(ms(100 + 100 * k)).server().data(50);
        w.at(ms(110 + 100 * k)).client().ack();
    }
    w
}

#[test]
fn held_writes_and_their_fixes() {
    says(
        &held(4).analysis(),
        Cause::NagleDelayedAck,
        "
        nagle_delayed_ack client lost 240 ms (0.585) tail 0 ns n 4 of 60.0 ms to 60.0 ms
        at 1.1 #4-5-6 evidence 4-5-6 9-10-11 14-15-16 19-20-21 in 1 [1]
        4 bytes were sent; the next 100 waited for their ACK, which was 40.0 ms late, and left with it.
        one_write at client server 10.0.0.2:80 connection 1 side client saves 240 ms
        nodelay at client server 10.0.0.2:80 connection 1 side client saves 240 ms
        cork_whole at client server 10.0.0.2:80 connection 1 side client saves 240 ms",
    );
}

/// Beside the server no request waits for a trip of the path, be there idle times that do: a nearer server saves none of what is seen there.
#[test]
fn no_nearer_server_beside_the_server() {
    for (tap, offered) in [(Tap::Client, true), (Tap::Server, false)] {
        let mut w = Wire::new(tap, ms(20));
        w.handshake();
        for k in 0..4 {
            w.at(ms(30 + 200 * k)).client().data(100);
            w.after(ms(15)).server().data(50);
            w.after(ms(10)).client().ack();
        }
        let analysis = w.analysis();
        let f = analysis.findings.iter().find(|f| f.cause == Cause::PathDelay).expect("the finding");
        for fix in [FixId::CloserServer, FixId::FewerRoundTrips] {
            assert_eq!(f.fixes.iter().any(|x| x.fix == fix), offered, "{fix:?} {tap:?}: {}", said(f));
        }
        // A nearer server is not called vain: it shortens the handshake.
        let vain: Vec<(FixId, bool)> =
            f.refuted.iter().map(|r| (r.fix, r.because.contains("from the server's side"))).collect();
        let expected = [(FixId::FewerRoundTrips, true)];
        assert_eq!(vain, if offered { &[][..] } else { &expected[..] }, "{tap:?}");
    }
}

/// Over connections: the worst is the example, six spans are evidence, twenty connections are named, the worst first.
#[test]
fn findings_over_many_connections() {
    let mut wires = vec![held(1); 30];
    wires[7] = held(3);
    wires[19] = held(2);
    wires.extend([requests(2, ms(20)), requests(3, ms(20))]);
    let analysis = analyze(&together(&wires, ms(1_000)));
    says(&analysis, Cause::NagleDelayedAck, "
        nagle_delayed_ack client lost 1.98 s (0.525) tail 0 ns n 33 of 60.0 ms to 60.0 ms
        at 8.1 #60-61-62 evidence 60-61-62 4-5-6 12-13-14 20-21-22 28-29-30 36-37-38 in 30 [8, 20, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
        4 bytes were sent; the next 100 waited for their ACK, which was 40.0 ms late, and left with it.
        one_write at client server 10.0.0.2:80 connection 8 side client saves 1.98 s
        nodelay at client server 10.0.0.2:80 connection 8 side client saves 1.98 s
        cork_whole at client server 10.0.0.2:80 connection 8 side client saves 1.98 s");
    says(&analysis, Cause::PathDelay, "
        path_delay network lost 760 ms (0.201) tail 0 ns n 46 of 1 ns to 20.0 ms
        at 1.1 #6-7 evidence  in 1 [1]
        One round trip (20.0 ms), which the distance sets.
        fewer_round_trips at client server 10.0.0.2:80 connection 1 side network saves 760 ms
        closer_server at server server 10.0.0.2:80 connection 1 side network saves 760 ms
        Any: Each round trip costs 20.0 ms on this path; light in fibre needs about 1 ms for every 100 km of distance, there and back");
    says(&analysis, Cause::ClientThink, "
        client_think client lost 391 ms (0.104) tail 0 ns n 38 of 3.00 ms to 20.0 ms
        at 8.0 #63-65 evidence 63-65 3-4 11-12 19-20 27-28 35-36 in 32 [8, 20, 32, 31, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17]
        For 20.0 ms TCP had nothing to send: the application had not written.
        application at client server 10.0.0.2:80 connection 8 side client saves 0 ns");
    let order: Vec<&str> = analysis.findings.iter().map(|f| f.cause.id()).collect();
    assert_eq!(
        order,
        ["nagle_delayed_ack", "path_delay", "handshake", "short_connections", "client_think", "server_think"]
    );
}

/// Of many that lost as much the first are named.
#[test]
fn of_equal_connections_the_first_are_named() {
    let analysis = analyze(&together(&vec![held(1); 100], ms(1_000)));
    let f = analysis.findings.iter().find(|f| f.cause == Cause::NagleDelayedAck).expect("the finding");
    assert_eq!(f.connections, (1..=20).collect::<Vec<u32>>());
    assert_eq!((f.connection_count, f.example.connection, f.evidence.len()), (100, 1, 6));
    // A worse one among the last is the first.
    let mut wires = vec![held(1); 100];
    wires[97] = held(2);
    let analysis = analyze(&together(&wires, ms(1_000)));
    let f = analysis.findings.iter().find(|f| f.cause == Cause::NagleDelayedAck).expect("the finding");
    assert_eq!((f.connections[0], f.connections.len(), f.example.connection), (98, 20, 98));
}

/// A wait within an exchange is a better example than a longer one between two.
#[test]
fn an_exchange_is_a_better_example_than_a_gap() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    // Nobody waits so long for a greeting.
    w.at(ms(320_000)).server().data(80);
    w.at(ms(320_020)).client().data(100);
    w.at(ms(320_060)).server().data(50);
    let analysis = w.analysis();
    let f = analysis.findings.iter().find(|f| f.cause == Cause::ServerThink).expect("the server's work");
    assert_eq!((f.example.exchange, f.range.longest > ms(300_000), f.occurrences), (2, true, 2));
}

/// A connection's own findings have shares of its own time, and no fixes.
#[test]
fn findings_of_one_connection() {
    let own = |n: usize| -> String {
        let analysis = analyze(&together(&[held(1), requests(11, ms(20)), held(3)], ms(1_000)));
        analysis.connections[n].findings.iter().map(said).collect()
    };
    same(
        &own(2),
        "
        nagle_delayed_ack client lost 180 ms (0.581) tail 0 ns n 3 of 60.0 ms to 60.0 ms
        at 3.1 #48-49-50 evidence 48-49-50 53-54-55 58-59-60 in 1 []
        4 bytes were sent; the next 100 waited for their ACK, which was 40.0 ms late, and left with it.
        client_think client lost 50.0 ms (0.161) tail 0 ns n 3 of 10.0 ms to 20.0 ms
        at 3.0 #51-53 evidence 51-53 47-48 56-58 in 1 []
        For 20.0 ms TCP had nothing to send: the application had not written.",
    );
    same(
        &own(1),
        "
        chatty client lost 200 ms (0.667) tail 0 ns n 11 of 0 ns to 200 ms
        at 2.1 #12-13 evidence 12-13 in 1 []
        11 requests, one after the other, each waiting a round trip of 20.0 ms and hardly anything else.
        client_think client lost 58.0 ms (0.193) tail 0 ns n 11 of 3.00 ms to 10.0 ms
        at 2.0 #11-12 evidence 11-12 13-15 16-18 19-21 22-24 25-27 in 1 []
        For 10.0 ms TCP had nothing to send: the application had not written.
        server_think server lost 2.00 ms (0.007) tail 0 ns n 1 of 2.00 ms to 2.00 ms
        at 2.1 #12-13 evidence 12-13 in 1 []
        The next byte came 22.0 ms after the other side's last one; 20.0 ms of that was the trip.",
    );
}

/// The rate is known: what the window would have to hold is said. 120 segments came 0.6 ms apart, 19.3 Mbit/s.
#[test]
fn figures_of_the_path_fill_the_fixes() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.host[CLIENT].window = 20 * MSS;
    w.host[CLIENT].wscale = Some(0);
    w.handshake();
    w.at(ms(30)).client().data(100);
    for k in 0..6 {
        let at = ms(40 + 30 * k);
        for n in 0..20 {
            w.at(at).server().data(MSS);
            w.overtaken(0, tcpwhy_base::Nanos::micros(200 * n));
        }
        for n in 0..20 {
            w.at(at + ms(10) + tcpwhy_base::Nanos::micros(200 * n)).client().ack();
        }
    }
    w.at(ms(240)).server().data(100);
    let analysis = w.analysis();
    says(
        &analysis,
        Cause::ReceiveWindow,
        "
        ",
    );
    says(
        &analysis,
        Cause::ExplicitBuffer,
        "
        ",
    );
}

/// Two threads sum up half of the connections each: findings say the same, to the last figure, with the worst early or late.
#[test]
fn findings_do_not_depend_on_who_summed_them_up() {
    let mut wires: Vec<Wire> =
        (0..130).map(|n| if n % 5 == 0 { requests(3, ms(20)) } else { held(1 + n % 3) }).collect();
    // A cause that few have: the evidence of both halves is kept.
    (wires[3], wires[100]) = (requests_with_work(2, ms(20), ms(30)), requests_with_work(1, ms(20), ms(40)));
    for worst in [10, 70, 120] {
        wires[worst] = held(9 + worst as i64 / 10);
        let segments = together(&wires, ms(1_000));
        let whole: Vec<String> = analyze(&segments).findings.iter().map(said).collect();
        assert!(whole.len() > 1);
        for n in 2..=3 {
            let mut shards: Vec<Analyzer> =
                (0..n).map(|_| Analyzer::new(Config { detail: Detail::All })).collect();
            segments.iter().for_each(|s| shards[Analyzer::share(s, n)].push(s));
            let joined: Vec<String> = Analyzer::finish_all(shards).findings.iter().map(said).collect();
            assert_eq!(joined, whole, "{n} analyzers");
        }
    }
}

/// Totals and findings over the connections that are left: those of the others are gone.
#[test]
fn what_is_left_has_totals_and_findings_of_its_own() {
    let wires = [held(1), requests(4, ms(20)), held(3)];
    let mut analysis = analyze(&together(&wires, ms(1_000)));
    let all = analysis.totals.clone();
    analysis.retain(|c| c.id != 2);
    assert_eq!(analysis.connections.iter().map(|c| c.id).collect::<Vec<_>>(), [1, 3]);
    let (mut budget, mut gaps) = (tcpwhy_analysis::Budget::default(), tcpwhy_analysis::Budget::default());
    analysis.connections.iter().for_each(|c| budget.add_all(&c.budget));
    analysis.connections.iter().for_each(|c| gaps.add_all(&c.gap_budget));
    let totals = &analysis.totals;
    assert_eq!((&totals.budget, &totals.gap_budget, totals.exchanges), (&budget, &gaps, 4));
    assert_eq!(totals.measured, analysis.connections.iter().fold(Nanos::ZERO, |t, c| t + c.measured()));
    assert!(totals.measured < all.measured && all.exchanges == 8);
    // The worst is the one with three.
    let named = |a: &Analysis| {
        let found = a.findings.iter().filter(|f| f.cause.class() != Class::Inherent);
        found.map(|f| (f.cause.id(), f.connections.clone())).collect::<Vec<_>>()
    };
    assert_eq!(named(&analysis), [("nagle_delayed_ack", vec![3, 1]), ("client_think", vec![3, 1])]);
    analysis.retain(|c| c.id == 1);
    assert_eq!(named(&analysis), [("nagle_delayed_ack", vec![1]), ("client_think", vec![1])]);
    let inherent = analysis.findings.iter().filter(|f| f.cause.class() == Class::Inherent);
    let told: Vec<_> = inherent.map(|f| (f.cause, f.lost)).collect();
    let c = &analysis.connections[0];
    let sum = |cause| c.budget.get(cause) + c.gap_budget.get(cause);
    assert!(!told.is_empty() && told.iter().all(|&(cause, lost)| lost == sum(cause)), "{told:?}");
    analysis.retain(|_| false);
    assert_eq!(
        (named(&analysis).len(), analysis.totals.measured, analysis.totals.exchanges),
        (0, Nanos::ZERO, 0)
    );
}

/// What limits a connection that is left out limits nothing that is said of the others.
#[test]
fn what_is_left_has_limits_of_its_own() {
    let mut segments = together(&[held(1), held(2)], ms(1_000));
    // Of the first connection the beginning is missing.
    assert!(segments.drain(..2).all(|s| s.flags.syn()));
    let mut analysis = analyze(&segments);
    let begun = |a: &Analysis| a.totals.with_quality(Quality::MIDSTREAM);
    assert_eq!((analysis.connections.len(), begun(&analysis)), (2, 1));
    analysis.retain(|c| !c.quality.has(Quality::MIDSTREAM));
    assert_eq!((analysis.connections.len(), begun(&analysis)), (1, 0));
}
