//! Requests by server: counts and times, which server asks which other one, and that no moment of a request
//! counts twice.

use crate::wire::{CLIENT, SERVER, Tap, Wire, analyze, ms};
use tcpwhy_analysis::{Analysis, Analyzer, Config, Detail, Finding, Server, Totals};
use tcpwhy_base::{Cause, Endpoint, Nanos, Segment, Side};

pub(crate) fn end(host: u8, port: u16) -> Endpoint {
    Endpoint { ip: [10, 0, 0, host].into(), port }
}

/// Requests that begin at these times and are answered so much later, on one connection whose trips take no
/// time to speak of.
pub(crate) fn asked(client: Endpoint, server: Endpoint, requests: &[(i64, i64)]) -> Vec<Segment> {
    let mut w = Wire::new(Tap::Client, Nanos::micros(20));
    w.handshake();
    for &(at, took) in requests {
        w.at(ms(at)).client().data(100);
        w.at(ms(at + took)).server().data(50);
        w.at(ms(at + took) + Nanos::micros(20)).client().ack();
    }
    between(client, server, w)
}

pub(crate) fn together(parts: &[Vec<Segment>]) -> Analysis {
    let mut all = parts.concat();
    all.sort_by_key(|s| s.time);
    for (i, s) in all.iter_mut().enumerate() {
        s.frame = i as u64 + 1;
    }
    let analysis = analyze(&all);
    let said = counted_once(&analysis.totals, &analysis.findings);
    for detail in [Detail::None, Detail::Worst(1), Detail::All] {
        let mut kept = Analyzer::new(Config { detail });
        all.iter().for_each(|s| kept.push(s));
        let kept = kept.finish();
        assert_eq!(counted_once(&kept.totals, &kept.findings), said, "{detail:?}");
        let mut stream = Analyzer::streaming(Config { detail });
        for s in &all {
            stream.push(s);
            stream.ended().for_each(drop);
        }
        stream.end_all();
        stream.ended().for_each(drop);
        let (findings, totals) = stream.finish_stream();
        assert_eq!(counted_once(&totals, &findings), said, "{detail:?}, as they end");
    }
    analysis
}

/// Whom each server was asked by, and what is counted of each cause: the same whatever is kept.
fn counted_once(totals: &Totals, findings: &[Finding]) -> String {
    let within: Vec<_> = totals.servers.iter().map(|s| (s.server, s.within, &s.asks)).collect();
    let mut causes: Vec<_> = findings.iter().map(|f| (f.cause, f.side, f.of_requests())).collect();
    causes.sort_unstable_by_key(|c| (c.0.id(), c.2));
    format!("{within:?} {:?} {causes:?}", totals.request_budget().total())
}

fn server(analysis: &Analysis, end: Endpoint) -> &Server {
    analysis.totals.servers.iter().find(|s| s.server == end).expect("the server is known")
}

/// Four requests to a proxy at `.2`, each of which takes 50 ms; while it answers it asks `.3`, which takes
/// `inner` of that.
fn proxied(shift: i64, inner: i64) -> Analysis {
    let outer: Vec<(i64, i64)> = (1..=4).map(|k| (100 * k, 50)).collect();
    let legs: Vec<(i64, i64)> = outer.iter().map(|o| (o.0 + shift, inner)).collect();
    together(&[asked(end(1, 40_000), end(2, 80), &outer), asked(end(2, 50_000), end(3, 9001), &legs)])
}

/// Whoever looks at one connection alone is told that the time of its server was spent elsewhere.
#[test]
fn whom_a_server_asked_is_known_without_those_requests() {
    let mut analysis = proxied(5, 40);
    analysis.retain(|c| c.server == end(2, 80));
    assert_eq!(analysis.totals.servers.len(), 1);
    assert_eq!(analysis.totals.servers[0].asks, [end(3, 9001)]);
}

#[test]
fn what_a_proxy_asks_for_counts_once() {
    let analysis = proxied(5, 40);
    let leg = server(&analysis, end(3, 9001));
    assert_eq!(leg.within, Some(end(2, 80)));
    assert_eq!(server(&analysis, end(2, 80)).within, None);
    assert_eq!(server(&analysis, end(2, 80)).asks, [end(3, 9001)]);
    assert_eq!(leg.asks, []);
    let totals = &analysis.totals;
    assert_eq!(totals.counted_twice(), leg.requests());
    assert_eq!(totals.requests() + leg.requests(), totals.budget.total());
    // 50 ms each for the one who asked first, and the setup.
    assert_eq!(totals.requests().0 / 1_000_000, 4 * 50);
    let think = analysis.findings.iter().find(|f| f.cause == Cause::ServerThink).expect("servers work");
    assert_eq!(think.of_requests(), totals.request_budget().get(Cause::ServerThink));
    assert_eq!(think.lost - think.of_requests(), leg.requests());
    let shares: f64 = analysis.findings.iter().map(|f| f.share_of_requests).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

#[test]
fn what_outlasts_the_answer_is_no_part_of_it() {
    let analysis = proxied(15, 40);
    assert_eq!(server(&analysis, end(3, 9001)).within, None, "each ends 5 ms after it");
    assert_eq!(analysis.totals.requests(), analysis.totals.budget.total());
}

#[test]
fn a_server_on_another_host_than_the_one_that_asks_is_no_leg() {
    let outer: Vec<(i64, i64)> = (1..=4).map(|k| (100 * k, 50)).collect();
    let beside: Vec<(i64, i64)> = outer.iter().map(|o| (o.0 + 5, 40)).collect();
    let analysis =
        together(&[asked(end(1, 40_000), end(2, 80), &outer), asked(end(1, 50_000), end(3, 9001), &beside)]);
    assert_eq!(server(&analysis, end(3, 9001)).within, None);
}

/// A proxy that is asked from afar and asks a backend on its own loopback, captured on its host: its address
/// is another one than that of the leg's client.
#[test]
fn a_backend_on_the_loopback_of_the_host_where_the_capture_was_made_is_a_leg() {
    let proxied = |tap: Tap| {
        let mut w = Wire::new(tap, ms(20));
        w.handshake();
        for k in 1..=4 {
            w.at(ms(100 * k)).client().data(100);
            w.at(ms(100 * k + 60)).server().data(50);
            w.at(ms(100 * k + 70)).client().ack();
        }
        let loopback = |port| Endpoint { ip: [127, 0, 0, 1].into(), port };
        // The proxy has each request 10 ms after it was asked.
        let legs: Vec<(i64, i64)> = (1..=4).map(|k| (100 * k + 15, 40)).collect();
        let front = w.host[SERVER].end;
        // The capture ends with the first packet of another connection, which does not tell where it was made.
        let mut last = w.segments()[..1].to_vec();
        (last[0].time, last[0].src.port) = (last[0].time + ms(600), 40_999);
        let analysis = together(&[w.segments(), asked(loopback(50_000), loopback(9001), &legs), last]);
        server(&analysis, loopback(9001)).within.map(|outer| outer == front)
    };
    assert_eq!([Tap::Server, Tap::Client].map(proxied), [Some(true), None]);
}

/// Three at once in one request of 50 ms took longer together than it waited: they are counted side by side.
#[test]
fn requests_in_parallel_are_not_taken_off() {
    let mut parts = vec![asked(end(1, 40_000), end(2, 80), &[(100, 50), (200, 50)])];
    for n in 0..3 {
        parts.push(asked(end(2, 50_000 + n), end(3 + n as u8, 9001), &[(105, 40), (205, 40)]));
    }
    let analysis = together(&parts);
    assert!(analysis.totals.servers.iter().all(|s| s.within.is_none()));
}

#[test]
fn counts_times_and_idle_time_of_a_server() {
    let first = asked(end(1, 40_000), end(2, 80), &[(100, 10), (300, 30)]);
    let second = asked(end(1, 40_001), end(2, 80), &[(100, 20), (300, 200)]);
    let alone = |parts: &[Vec<Segment>]| {
        let analysis = together(parts);
        let s = server(&analysis, end(2, 80)).clone();
        let quantiles = [50, 95, 100].map(|p| s.times.percentile(p).map_or(0, |t| t.0 / 1_000_000));
        (s.connections, s.times.count(), quantiles, s.at_once)
    };
    assert_eq!(alone(std::slice::from_ref(&first)), (1, 2, [10, 30, 30], false));
    let both = together(&[first.clone(), second.clone()]);
    let s = server(&both, end(2, 80));
    assert_eq!((s.connections, s.times.count(), s.at_once), (2, 4, true));
    assert_eq!(s.idle, both.totals.idle_budget().total());
    assert_eq!(s.requests(), both.totals.requests());
    assert_eq!(s.times.percentile(100).map(|t| t.0 / 1_000_000), Some(200));
    let slow = s.times.around(95).expect("there are requests");
    assert_eq!((slow.count, slow.mean()[0].0), (1, Cause::ServerThink));
}

/// What a proxy waited for is the work of the server that it asked: that one is named, with a span of its own.
#[test]
fn the_example_of_work_is_where_it_was_done() {
    let think = |analysis: &Analysis| {
        let f = analysis.findings.iter().find(|f| f.cause == Cause::ServerThink).expect("somebody worked");
        let c = analysis.connections.iter().find(|c| c.id == f.example.connection).expect("it is listed");
        (c.server, f.why(), f.fixes[0].parameters.clone())
    };
    let (at, why, parameters) = think(&proxied(5, 40));
    assert_eq!(at, end(3, 9001));
    assert!(why.contains("40.0 ms"), "{why}");
    assert!(format!("{parameters:?}").contains("10.0.0.3:9001"), "{parameters:?}");
    // Most of the time is the proxy's own.
    assert_eq!(think(&proxied(5, 20)).0, end(2, 80));
}

/// Each exchange names those that were made to answer it, down to the last hop; where two are open at once
/// nobody can tell for which.
#[test]
fn an_exchange_names_those_that_were_made_for_it() {
    let outer: Vec<(i64, i64)> = (1..=4).map(|k| (100 * k, 50)).collect();
    let legs: Vec<(i64, i64)> = outer.iter().map(|o| (o.0 + 5, 40)).collect();
    let last: Vec<(i64, i64)> = outer.iter().map(|o| (o.0 + 10, 20)).collect();
    let chain = [
        asked(end(1, 40_000), end(2, 80), &outer),
        asked(end(2, 50_000), end(3, 9001), &legs),
        asked(end(3, 60_000), end(4, 5432), &last),
    ];
    let analysis = together(&chain);
    let id = |server| analysis.connections.iter().find(|c| c.server == server).expect("it is there").id;
    let [proxy, app, base] = [end(2, 80), end(3, 9001), end(4, 5432)].map(id);
    let hops: Vec<_> = analysis.totals.asked.iter().map(|a| (a.by, a.to, a.time.0 / 1_000_000)).collect();
    let each = |from: u32, to: u32, time: i64| (1..=4).map(move |n| ((from, n), (to, n), time));
    let mut wanted: Vec<_> = each(proxy, app, 40).chain(each(app, base, 20)).collect();
    wanted.sort_unstable();
    assert_eq!(hops, wanted);

    // Of two clients at once, both are being answered meanwhile.
    let crowd = [chain[0].clone(), asked(end(1, 40_001), end(2, 80), &outer), chain[1].clone()];
    let analysis = together(&crowd);
    assert!(!server(&analysis, end(2, 80)).asks.is_empty() && analysis.totals.asked.is_empty());
}

/// A transfer of `n` full segments `every` so often, from that time on.
fn streamed(
    client: Endpoint,
    server: Endpoint,
    (at, wait): (i64, i64),
    (n, every): (i64, i64),
) -> Vec<Segment> {
    let mut w = Wire::new(Tap::Client, Nanos::micros(20));
    w.at(ms(at) - Nanos::micros(40)).handshake();
    w.at(ms(at)).client().data(100);
    for k in 0..n {
        w.at(ms(at + wait + k * every)).server().data(400);
        w.at(ms(at + wait + k * every) + Nanos::micros(20)).client().ack();
    }
    between(client, server, w)
}

/// The same between these two.
fn between(client: Endpoint, server: Endpoint, w: Wire) -> Vec<Segment> {
    let of = [w.host[CLIENT].end, w.host[SERVER].end];
    let mut segments = w.segments();
    for e in segments.iter_mut().flat_map(|s| [&mut s.src, &mut s.dst]) {
        *e = if *e == of[0] { client } else { server };
    }
    segments
}

/// An upload in five pieces, 40 ms apart, from that time on, which is answered so much later, in two pieces.
fn uploaded(client: Endpoint, server: Endpoint, at: i64, wait: i64) -> Vec<Segment> {
    let mut w = Wire::new(Tap::Client, Nanos::micros(20));
    w.at(ms(at) - Nanos::micros(40)).handshake();
    for k in 0..5 {
        w.at(ms(at + k * 40)).client().data(400);
        w.at(ms(at + k * 40) + Nanos::micros(20)).server().ack();
    }
    for later in [wait, wait + 30] {
        w.at(ms(at + 160 + later)).server().data(50);
        w.at(ms(at + 160 + later) + Nanos::micros(20)).client().ack();
    }
    between(client, server, w)
}

/// A proxy that passes a request on as it comes: whoever waits there waits for the client.
#[test]
fn what_a_proxy_passes_on_of_a_request_counts_once() {
    let upload = || uploaded(end(1, 40_000), end(2, 80), 100, 12);
    let one = together(&[upload()]);
    let analysis = together(&[upload(), uploaded(end(2, 50_000), end(3, 9001), 101, 8)]);
    assert_eq!(server(&analysis, end(3, 9001)).within, Some(end(2, 80)));
    assert_eq!(analysis.totals.request_budget(), one.totals.request_budget());
    let pauses = |a: &Analysis, side| {
        let found = a.findings.iter().find(|f| (f.cause, f.side) == (Cause::SenderPause, Some(side)));
        found.map(|f| f.of_requests())
    };
    for (side, least) in [(Side::Client, ms(150)), (Side::Server, ms(25))] {
        assert_eq!(pauses(&analysis, side), pauses(&one, side));
        assert!(pauses(&one, side).is_some_and(|time| time > least));
    }
    // Two for one request are not passed on.
    let twice = together(&[upload(), asked(end(2, 50_000), end(3, 9001), &[(110, 30), (150, 30)])]);
    assert_eq!(server(&twice, end(3, 9001)).within, None);
}

/// What a proxy passes on as it comes it waits for at first, and between its pieces: not even the second is its own.
#[test]
fn what_a_proxy_passes_on_in_pieces_counts_once() {
    let front = streamed(end(1, 40_000), end(2, 80), (100, 30), (5, 40));
    let back = streamed(end(2, 50_000), end(3, 9001), (101, 28), (5, 40));
    let analysis = together(&[front, back]);
    let (outer, leg) = (server(&analysis, end(2, 80)), server(&analysis, end(3, 9001)));
    assert_eq!(leg.within, Some(end(2, 80)));
    assert!(leg.requests() > outer.budget.get(Cause::ServerThink), "more than until the first piece");
    let totals = &analysis.totals;
    assert_eq!(totals.requests(), outer.requests());
    let of_requests = totals.request_budget();
    assert_eq!(of_requests.total(), outer.requests());
    // What the other one's requests waited for stands in the place of what it waited.
    let handshakes = outer.budget.get(Cause::Handshake) + leg.budget.get(Cause::Handshake);
    assert!(leg.budget.get(Cause::Handshake) > Nanos::ZERO);
    assert_eq!(of_requests.get(Cause::Handshake), handshakes);
    for cause in [Cause::ServerThink, Cause::SenderPause] {
        let found = analysis.findings.iter().find(|f| f.cause == cause).expect("both wait");
        assert_eq!(found.of_requests(), of_requests.get(cause), "{cause:?}");
        // Each counts once, and the proxy has next to nothing of it.
        assert!(found.of_requests() < leg.budget.get(cause) + ms(4), "{cause:?}");
        assert!(found.fixes.iter().all(|fix| fix.saves.is_none_or(|saves| saves <= found.of_requests())));
    }
}

/// A proxy that takes longer to pass an answer on than it waits for it: nobody waits for those it asks but for it.
#[test]
fn what_a_proxy_is_slow_to_pass_on_is_its_own_time() {
    // To its client each round trip takes 40 ms, and it has no more than a segment in flight.
    let mut w = Wire::new(Tap::Server, ms(40));
    w.handshake();
    w.at(ms(100)).client().data(100);
    let mut at = ms(100) + ms(20) + ms(10);
    for _ in 0..8 {
        w.at(at).server().data(1448);
        w.at(at + ms(20)).client().ack();
        at += ms(40) + Nanos::micros(50);
    }
    let front = w.host[SERVER].end;
    let loopback = |port| Endpoint { ip: [127, 0, 0, 1].into(), port };
    let back = streamed(loopback(50_000), loopback(9001), (121, 8), (6, 45));
    let analysis = together(&[w.segments(), back]);
    let (outer, leg) = (server(&analysis, front), server(&analysis, loopback(9001)));
    assert_eq!(leg.within, Some(front));
    assert!(leg.requests() > outer.budget.get(Cause::ServerThink) + outer.budget.get(Cause::SenderPause));
    assert_eq!(analysis.totals.requests(), outer.requests());
    assert_eq!(analysis.totals.request_budget(), outer.budget);
    let shares: f64 = analysis.findings.iter().map(|f| f.share_of_requests).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

/// A proxy on the loopback of the host where the capture was made, which asks somebody else from that host's address.
#[test]
fn what_a_proxy_beside_its_clients_asks_for_is_a_leg() {
    let within = |tap: Tap, outer: &[(i64, i64)]| {
        let mut w = Wire::new(tap, ms(20));
        w.handshake();
        for k in 1..=4 {
            w.at(ms(100 * k)).client().data(100);
            w.at(ms(100 * k + 30)).server().data(50);
            w.at(ms(100 * k + 40)).client().ack();
        }
        // The capture ends while both wait for an answer.
        w.at(ms(500)).client().data(100);
        let local = Endpoint { ip: [127, 0, 0, 1].into(), port: 3128 };
        let client = Endpoint { ip: [127, 0, 0, 1].into(), port: 50_000 };
        let far = w.host[SERVER].end;
        let local_part = asked(client, local, &[outer, &[(485, 100)]].concat());
        let mut all = vec![w.segments(), local_part];
        let end = all[0].last().map_or(Nanos::ZERO, |s| s.time);
        all.iter_mut().for_each(|part| part.retain(|s| s.time <= end));
        let analysis = together(&all);
        server(&analysis, far).within == Some(local)
    };
    let each: Vec<(i64, i64)> = (1..=4).map(|k| (100 * k - 15, 80)).collect();
    assert!(within(Tap::Client, &each));
    assert!(!within(Tap::Server, &each), "captured somewhere else");
    assert!(
        !within(Tap::Client, &[(60, 500)]),
        "one question, four others while it waits: none is passed on"
    );
}
