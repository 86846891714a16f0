//! Two captures side by side: what is matched, medians, percentiles, and what chance alone would allow.

use crate::servers::{asked, end, together};
use crate::wire::{SERVER, Tap, Wire, ms};
use tcpwhy_analysis::{
    Analysis, Change, ComparedSide, Comparison, Connection, InAll, compare, compare_answers,
};
use tcpwhy_base::{Cause, Nanos};

/// One exchange after the other with these sizes, for each of which the server works so long.
fn talk(server: u8, exchanges: &[(u32, u32, Nanos)]) -> Analysis {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].end.ip = std::net::Ipv4Addr::new(10, 0, 0, server).into();
    w.handshake();
    for &(request, response, work) in exchanges {
        w.after(ms(10)).client().data(request);
        w.after(ms(10)).server().ack();
        w.after(work).server().data(response);
        w.after(ms(10)).client().ack();
    }
    w.analysis()
}

/// Exchanges of 100 and 50 bytes with these times of work, ms.
fn works(times: &[i64]) -> Analysis {
    talk(2, &times.iter().map(|&t| (100, 50, ms(t))).collect::<Vec<_>>())
}

fn compared(before: &[i64], after: &[i64]) -> Comparison {
    compare_answers(&works(before), &works(after)).expect("they share a server")
}

fn side(count: u64, median: i64, p95: i64, mean: Nanos) -> ComparedSide {
    ComparedSide { count, median: ms(median), p95: ms(p95), mean }
}

/// Medians and percentiles are values that occurred (nearest rank); each exchange has 20 ms on the way, and
/// the first of each side waited 20 ms for its connection.
#[test]
fn medians_percentiles_and_means() {
    let c = compared(&[100, 10, 60, 30], &[5, 10, 15, 20, 25]);
    assert_eq!(c.all.before, side(4, 50, 140, ms(75)));
    assert_eq!(c.all.after, side(5, 40, 45, ms(39)));
    assert_eq!((c.all.difference, c.unmatched), (ms(-10), [0, 0]));
    let many: Vec<i64> = (1..=100).collect();
    assert_eq!(compared(&many, &many).all.before, side(100, 70, 115, ms(70) + Nanos::micros(700)));
    let think = c.causes.iter().find(|x| x.0 == Cause::ServerThink).expect("the server's work");
    assert_eq!((think.1.before.mean, think.1.after.mean, think.1.difference), (ms(50), ms(15), ms(-35)));
    // The largest change first; the way did not change.
    let order: Vec<(Cause, Nanos)> = c.causes.iter().map(|x| (x.0, x.1.difference)).collect();
    let meant = [(Cause::ServerThink, -35), (Cause::Handshake, -1), (Cause::PathDelay, 0)];
    assert_eq!(order, meant.map(|(cause, n)| (cause, ms(n))));
    assert_eq!(c.setup.map(|s| (s.before.median, s.difference)), Some((ms(20), Nanos::ZERO)));
}

/// Half of the values are 10 and half are 110: of twenty drawn the median is one or the other. The interval
/// holds 95 % of the draws, so that it holds both; the mean of an evenly spread side moves by twice its
/// standard error.
#[test]
fn the_interval_is_what_chance_alone_would_allow() {
    let even: Vec<i64> = (0..20).map(|i| 10 + 100 * (i % 2)).collect();
    let later: Vec<i64> = even.iter().map(|t| t + 300).collect();
    let c = compared(&even, &later);
    assert_eq!((c.all.difference, c.all.interval), (ms(300), (ms(200), ms(400))));
    let think = c.causes.iter().find(|x| x.0 == Cause::ServerThink).expect("the server's work").1;
    // The deviation of one value is 50 ms, that of the difference of two means of twenty sqrt(2 / 20) of it:
    // 15.8; 1.96 of those make 31.
    let (low, high) = think.interval;
    assert!((low - ms(269)).0.abs() <= ms(6).0 && (high - ms(331)).0.abs() <= ms(6).0, "{low} {high}");
    assert!(c.all.is_sure() && think.is_sure());
}

/// Of four values the least and the greatest hold the median with 87 %, of five with 94 %.
#[test]
fn five_exchanges_are_enough_and_four_are_too_few() {
    let change = |n: usize| compared(&vec![10; n], &vec![60; n]).all;
    assert!(change(4).too_few() && !change(4).is_sure());
    assert!(!change(5).too_few() && change(5).is_sure());
    let uneven = compared(&[10; 4], &[60; 40]).all;
    assert!(uneven.too_few());
    let slower = Change { interval: (Nanos::ZERO, ms(1)), ..change(5) };
    let faster = Change { interval: (ms(-1), Nanos::ZERO), ..change(5) };
    assert!(!slower.is_sure() && !faster.is_sure());
    assert!(Change { interval: (Nanos(1), ms(1)), ..change(5) }.is_sure());
    assert!(Change { interval: (ms(-1), Nanos(-1)), ..change(5) }.is_sure());
}

/// The round trip is estimated once for a connection: what it says of fifty exchanges is one measurement, and
/// no better than how long they took.
#[test]
fn exchanges_do_not_measure_their_path_each() {
    let talked = |rtt: Nanos, noise: &[i64]| {
        let mut w = Wire::new(Tap::Client, rtt);
        w.handshake();
        for us in noise.iter().cycle().take(50) {
            w.after(ms(50)).client().data(100);
            w.after(rtt.part(2) + ms(5) + Nanos::micros(*us)).server().data(50);
            w.after(rtt.part(2)).client().ack();
        }
        w.analysis()
    };
    let path = |after: &Analysis, noise: &[i64]| {
        let c = compare_answers(&talked(ms(20), noise), after).expect("they share a server");
        c.causes.into_iter().find(|c| c.0 == Cause::PathDelay).expect("there is a path").1
    };
    let noise = [0, 900, 300, 1_500, 40];
    // 20 µs more each, to the nanosecond: that may be how the first round trips went.
    let same = path(&talked(ms(20) + Nanos::micros(20), &noise), &noise);
    assert!(!same.is_sure() && same.difference > Nanos::ZERO, "{same:?}");
    let farther = path(&talked(ms(22), &noise), &noise);
    assert!(farther.is_sure(), "{farther:?}");
}

/// Work that varies by milliseconds beside a short way: the way is not said to have changed by more than it takes.
#[test]
fn a_way_does_not_change_by_more_than_it_takes() {
    let talked = || {
        let mut w = Wire::new(Tap::Client, Nanos::micros(14));
        w.handshake();
        for n in 0..30 {
            w.after(ms(50)).client().data(100);
            w.after(ms(1 + 7 * (n % 5))).server().data(50);
            w.after(Nanos::micros(7)).client().ack();
        }
        w.analysis()
    };
    let c = compare_answers(&talked(), &talked()).expect("they share a server");
    let of = |cause| c.causes.iter().find(|c| c.0 == cause).expect("its time").1;
    let path = of(Cause::PathDelay);
    let (mean, (low, high)) = (path.before.mean, path.interval);
    assert!(mean > Nanos::ZERO && mean < ms(1), "{path:?}");
    assert_eq!((low, high, path.is_sure()), (Nanos::ZERO - mean, mean, false), "{path:?}");
    assert!(of(Cause::ServerThink).interval.0 < ms(-1), "the work may have");
}

/// Exchanges match by the magnitude of their bytes: from 64 to 127 is one, 128 is the next.
#[test]
fn exchanges_match_by_magnitude_and_server() {
    let shapes = |a: &Analysis, b: &Analysis| {
        let c = compare_answers(a, b).expect("they share a server");
        let of: Vec<_> = c.shapes.iter().map(|s| (s.0.request, s.0.response, s.1.before.count)).collect();
        (of, c.unmatched)
    };
    let one = talk(2, &[(64, 50, ms(1)), (127, 50, ms(1)), (128, 50, ms(90))]);
    let other = talk(2, &[(100, 50, ms(1)), (200, 50, ms(1)), (100, 1_400, ms(1))]);
    // The most time first.
    assert_eq!(shapes(&one, &other), (vec![(8, 6, 1), (7, 6, 2)], [0, 1]));
    // The same port at another address will do, if that is all there is.
    let elsewhere = talk(3, &[(100, 50, ms(1))]);
    assert_eq!(shapes(&one, &elsewhere), (vec![(7, 6, 2)], [1, 0]));
    let ip = |a: &Analysis| compare_answers(&one, a).expect("they share a server").shapes[0].0.ip;
    assert_eq!((ip(&other).map(|ip| ip.to_string()), ip(&elsewhere)), (Some("10.0.0.2".into()), None));
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].end.port = 81;
    w.handshake();
    w.after(ms(10)).client().data(100);
    w.after(ms(10)).server().data(50);
    assert!(compare_answers(&one, &w.analysis()).is_none());
}

/// A header less moves all requests to another magnitude: they are compared by their server, each with the
/// opening before it.
#[test]
fn without_one_size_in_common_the_exchanges_of_a_server_are_compared() {
    let one = talk(2, &[(200, 50, ms(1)), (200, 50, ms(1))]);
    let kept = talk(2, &[(100, 50, ms(1)), (100, 50, ms(31)), (100, 50, ms(31))]);
    let c = compare_answers(&one, &kept).expect("they share a server");
    let shape = &c.shapes[0].0;
    assert!(c.shapes.len() == 1 && shape.is_of_any_size() && shape.ip.is_some() && c.unmatched == [0, 0]);
    assert_eq!((c.all.before.count, c.all.after.count), (2, 3));
    // 20 ms of the opening, then 21 and 51 ms of the exchanges.
    assert_eq!((c.all.before.p95, c.all.before.median, c.all.after.median), (ms(41), ms(21), ms(51)));
    let opening = c.causes.iter().find(|x| x.0 == Cause::Handshake).expect("the openings").1;
    assert_eq!((opening.before.mean, opening.after.mean), (ms(10), Nanos(6_666_666)));
    // One size in common is enough: the others have no counterpart, and openings stand apart.
    let some = talk(2, &[(200, 50, ms(1)), (100, 50, ms(1))]);
    let c = compare_answers(&some, &kept).expect("they share a server");
    assert_eq!((c.unmatched, c.shapes[0].0.is_of_any_size()), ([1, 0], false));
    assert_eq!((c.all.before.median, c.all.after.p95, c.openings), (ms(21), ms(51), [0, 1]));
}

/// More than 2,000 values are thinned evenly: what is drawn from stays the same distribution.
#[test]
fn many_values_are_thinned_evenly() {
    let many: Vec<i64> = (0..4_500).map(|i| i % 90).collect();
    let later: Vec<i64> = many.iter().map(|t| t + 30).collect();
    let c = compared(&many, &later).all;
    assert_eq!((c.difference, c.before.count), (ms(30), 4_500));
    let (low, high) = c.interval;
    assert!(low > ms(25) && low < ms(30) && high > ms(30) && high < ms(35), "{low} {high}");
}

/// Twenty-six slow exchanges and six quick ones, and the other way round: nothing became faster, there were
/// others of each.
#[test]
fn as_many_of_each_size_are_compared() {
    let side = |slow: usize, quick: usize| {
        let mut all = vec![(2_000, 50, ms(40)); slow];
        all.extend(vec![(100, 50, ms(1)); quick]);
        talk(2, &all)
    };
    let c = compare_answers(&side(26, 6), &side(6, 26)).expect("they share a server");
    assert_eq!((c.all.before.count, c.all.after.count, c.all.difference), (12, 12, Nanos::ZERO));
    assert!(!c.all.is_sure() && c.causes.iter().all(|(_, change)| !change.is_sure()), "{c:?}");
    // One mix, but more of it: all count.
    let c = compare_answers(&side(20, 10), &side(6, 3)).expect("they share a server");
    assert_eq!((c.all.before.count, c.all.after.count), (30, 9));
}

/// So many requests with 20 ms of way and 5 of work, on so many connections, each of which takes 20 ms to
/// open.
fn opened(connections: usize, requests: usize) -> Vec<Connection> {
    let each = vec![(100, 50, ms(5)); requests / connections];
    (0..connections).flat_map(|_| talk(2, &each).connections).map(|c| *c).collect()
}

/// The same requests, each on a connection of its own or all on one: whoever asks waits for the opening too.
#[test]
fn the_opening_of_a_connection_counts_with_the_request_that_waited_for_it() {
    let (kept, own) = (opened(1, 30), opened(30, 30));
    let c = compare(&kept, &own).expect("they share a server");
    assert_eq!((c.all.before.median, c.all.after.median, c.openings), (ms(25), ms(45), [1, 30]));
    assert!(c.all.is_sure() && c.mean.is_sure(), "{c:?}");
    let of = |c: &Comparison, cause| c.causes.iter().find(|x| x.0 == cause).expect("its time").1;
    let handshake = of(&c, Cause::Handshake);
    assert!(handshake.is_sure() && handshake.after.mean == ms(20), "{handshake:?}");
    let path = of(&c, Cause::PathDelay);
    assert!(!path.is_sure() && path.interval == (Nanos::ZERO, Nanos::ZERO), "{path:?}");
    let sums = |openings, time| InAll { exchanges: 30, openings, time };
    assert_eq!(c.in_all, [sums(1, ms(30 * 25 + 20)), sums(30, ms(30 * 45))]);
    let same = compare(&own, &own).expect("they share a server");
    assert!(!same.all.is_sure() && !same.mean.is_sure() && same.causes.iter().all(|x| !x.1.is_sure()));
}

/// Ten openings for thirty requests instead of one: the request in the middle waits for none, yet all wait
/// longer.
#[test]
fn openings_of_some_show_in_the_mean() {
    let c = compare(&opened(1, 30), &opened(10, 30)).expect("they share a server");
    assert!(!c.all.is_sure() && c.all.difference == Nanos::ZERO);
    assert!(c.mean.is_sure() && c.mean.difference == ms(6), "{:?}", c.mean);
    assert!(c.causes[0].0 == Cause::Handshake && c.causes[0].1.is_sure());
    // Three instead of two may be chance.
    let c = compare(&opened(2, 30), &opened(3, 30)).expect("they share a server");
    assert!(!c.mean.is_sure() && c.causes.iter().all(|x| !x.1.is_sure()), "{c:?}");
}

/// A session ticket of TLS 1.2 stands before the first request as an exchange that took no time: nobody
/// waited for it, but the request behind it waited for the opening.
#[test]
fn an_exchange_without_time_waits_for_no_opening() {
    let with_ticket = || -> Vec<Connection> {
        let mut connections = opened(5, 5);
        for c in &mut connections {
            let first = &mut c.exchanges[0];
            let mut ticket = first.clone();
            (ticket.start, ticket.end, ticket.bytes) = (first.start, first.start, [0, 69]);
            ticket.spans.clear();
            (first.id, first.with_setup) = (2, None);
            c.exchanges.insert(0, ticket);
        }
        connections
    };
    let c = compare(&opened(1, 5), &with_ticket()).expect("they share a server");
    assert_eq!((c.openings, c.all.after.median, c.unmatched), ([1, 5], ms(45), [0, 5]));
}

/// Ten requests to a proxy, each of which opens a connection to what is behind it if `opens`, and asks it
/// four times; what is behind it is asked by nobody else.
fn tiers(opens: bool) -> Analysis {
    let front: Vec<(i64, i64)> = (1..=10).map(|k| (500 * k, if opens { 300 } else { 100 })).collect();
    let mut parts = vec![asked(end(1, 40_000), end(2, 80), &front)];
    let legs = |at: i64| (0..4).map(move |n| (at + 20 + 15 * n, 10));
    let all: Vec<(i64, i64)> = front.iter().flat_map(|f| legs(f.0)).collect();
    if opens {
        for (n, leg) in front.iter().enumerate() {
            let client = end(2, 50_000 + n as u16);
            parts.push(asked(client, end(3, 3306), &legs(leg.0).collect::<Vec<_>>()));
        }
    } else {
        parts.push(asked(end(2, 50_000), end(3, 3306), &all));
    }
    together(&parts)
}

/// What a client waits for is the answer of the server that it asked; what that one asked meanwhile is a part
/// of it. Forty requests to a database that took as long as before say nothing of the ten that three times as
/// long.
#[test]
fn requests_within_others_are_rows_of_their_own() {
    let (pooled, opening) = (tiers(false), tiers(true));
    let c = compare_answers(&pooled, &opening).expect("they share servers");
    assert_eq!((c.all.before.count, c.all.after.count), (10, 10));
    assert!(c.all.is_sure() && c.all.difference == ms(200), "{:?}", c.all);
    let rows = |list: &[(tcpwhy_analysis::Shape, Change)]| -> Vec<(u16, u64)> {
        list.iter().map(|(s, change)| (s.port, change.before.count)).collect()
    };
    assert_eq!((rows(&c.shapes), rows(&c.within)), (vec![(80, 10)], vec![(3306, 40)]));
    assert_eq!((c.in_all[0].exchanges, c.in_all[1].exchanges), (10, 10));
    // By cause it is all of the ten, and what the proxy waited for has the causes of that.
    for (side, analysis) in [pooled, opening].iter().enumerate() {
        let of = |change: &Change| if side == 0 { change.before.mean.0 } else { change.after.mean.0 };
        let sum: i64 = c.causes.iter().map(|x| of(&x.1)).sum();
        assert!((sum - of(&c.mean)).abs() < 10, "{side}: {sum} {:?}", c.mean);
        let own = |port| analysis.connections.iter().filter(move |x| x.server.port == port);
        let path = |port: u16| own(port).map(|x| x.budget.get(Cause::PathDelay).0).sum::<i64>();
        let said = c.causes.iter().find(|x| x.0 == Cause::PathDelay).map_or(0, |x| of(&x.1));
        assert_eq!(said, (path(80) + path(3306)) / 10, "{side}");
    }
    // Where nobody stands before it that is compared as well, what is behind counts itself.
    let direct = together(&[asked(end(1, 40_000), end(3, 3306), &[(100, 10), (200, 10)])]);
    let c = compare_answers(&direct, &tiers(false)).expect("they share a server");
    assert_eq!((rows(&c.shapes), c.within.len()), (vec![(3306, 2)], 0));
    // Without knowing who asks whom, all count alike.
    let own = |a: Analysis| a.connections.into_iter().map(|c| *c).collect::<Vec<_>>();
    let c = compare(&own(tiers(false)), &own(tiers(true))).expect("they share servers");
    assert_eq!((rows(&c.shapes).len(), c.within.len(), c.all.is_sure()), (2, 0, false));
}
