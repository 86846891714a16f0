//! Two captures side by side: what is matched, medians, percentiles, and what chance alone would allow.

use crate::wire::{SERVER, Tap, Wire, ms};
use tcpwhy_analysis::{Analysis, Change, ComparedSide, Comparison, compare_answers};
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

/// Medians and percentiles are values that occurred (nearest rank); each exchange has 20 ms on the way.
#[test]
fn medians_percentiles_and_means() {
    let c = compared(&[100, 10, 60, 30], &[5, 10, 15, 20, 25]);
    assert_eq!(c.all.before, side(4, 50, 120, ms(70)));
    assert_eq!(c.all.after, side(5, 35, 45, ms(35)));
    assert_eq!((c.all.difference, c.unmatched), (ms(-15), [0, 0]));
    let many: Vec<i64> = (1..=100).collect();
    assert_eq!(compared(&many, &many).all.before, side(100, 70, 115, ms(70) + Nanos::micros(500)));
    let think = c.causes.iter().find(|x| x.0 == Cause::ServerThink).expect("the server's work");
    assert_eq!((think.1.before.mean, think.1.after.mean, think.1.difference), (ms(50), ms(15), ms(-35)));
    // The largest change first; the way did not change.
    let order: Vec<(Cause, Nanos)> = c.causes.iter().map(|x| (x.0, x.1.difference)).collect();
    assert_eq!(order, [(Cause::ServerThink, ms(-35)), (Cause::PathDelay, Nanos::ZERO)]);
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
    assert!(c.all.after.p95 == ms(51) && c.causes.iter().all(|x| x.0 != Cause::Handshake));
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
