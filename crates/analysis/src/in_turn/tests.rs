use super::*;
use crate::result::{Frames, Setup, Span};

const MS: fn(i64) -> Nanos = Nanos::millis;

fn end(last: u8, port: u16) -> Endpoint {
    Endpoint { ip: [10, 0, 0, last].into(), port }
}

/// A request each, of connections of their own, that were there and answered then (us), in answers of so many bytes.
#[expect(clippy::vec_box, reason = "an analysis holds them so")]
fn requests(all: &[(i64, i64)], bytes: u64) -> Vec<Box<Connection>> {
    let mut connections = Vec::new();
    for (id, &(from, to)) in (1..).zip(all) {
        let (from, to) = (Nanos::micros(from), Nanos::micros(to));
        let mut c = Connection::new(id, [end(1, 4_000 + id as u16), end(2, 80)], from, to);
        let span = Span::new(Cause::ServerThink, Some(Side::Server), from, to, Frames::new(0, 1, 2, &[1]));
        let mut x = Exchange::new(1, from, to, vec![span]);
        (x.request_end, x.response_start) = (Some(from), Some(to));
        x.bytes = [100, bytes];
        c.exchanges = vec![x];
        c.budget.add(Cause::ServerThink, to - from);
        c.vantage = Vantage::Client;
        connections.push(Box::new(c));
    }
    connections
}

/// How many of how many at once, how long each takes (us), and how long they waited.
fn found(connections: &[Box<Connection>]) -> Option<(u32, u32, i64, Nanos)> {
    let mut sums = crate::servers::Servers::new(8, 8);
    let mut work = Nanos::ZERO;
    for c in connections {
        let mut basis = crate::findings::Basis::default();
        for x in &c.exchanges {
            basis.requests.times.add(x.end - x.start, std::iter::empty());
        }
        work += c.budget.total();
        sums.add(c, &basis);
    }
    let (servers, ..) = sums.list();
    let turns = in_turn(&servers, connections, work)?;
    Some((turns.at_once, turns.most, turns.each.0 / 1_000, turns.waited))
}

/// Numbers from 0 to 999 in no order that shows (a linear congruence; Knuth, MMIX).
fn drawn() -> impl FnMut() -> i64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % 1_000) as i64
    }
}

/// Bursts of so many requests, each 10 s behind the other, to a server of so many workers, each of which takes
/// as long as `takes` says (us).
fn bursts(n: usize, of: usize, workers: usize, mut takes: impl FnMut() -> i64) -> Vec<(i64, i64)> {
    let mut all = Vec::new();
    for burst in 0..n as i64 {
        let at = burst * 10_000_000;
        let mut free = vec![at; workers];
        for i in 0..of as i64 {
            let arrived = at + i;
            let (next, _) = free.iter().enumerate().min_by_key(|f| f.1).unwrap_or((0, &at));
            let answered = free[next].max(arrived) + takes();
            free[next] = answered;
            all.push((arrived, answered));
        }
    }
    all
}

#[test]
fn a_server_that_works_on_one_at_a_time() {
    let mut number = drawn();
    let all = bursts(4, 5, 1, || 40_000 + 20 * number());
    let (at_once, most, each, waited) = found(&requests(&all, 10)).expect("they wait in turn");
    assert_eq!((at_once, most), (1, 5));
    assert!((45_000..55_000).contains(&each), "{each}");
    // In each burst 0, 1, 2, 3 and 4 turns are waited for.
    assert!(waited > MS(4 * 10 * 45) && waited < MS(4 * 10 * 55), "{waited}");
}

#[test]
fn a_server_of_three_workers() {
    let mut number = drawn();
    let all = bursts(6, 12, 3, || 48_000 + 4 * number());
    let (at_once, most, each, _) = found(&requests(&all, 10)).expect("they wait in turn");
    assert_eq!((at_once, most), (3, 12));
    assert!((48_000..52_000).contains(&each), "{each}");
}

/// With a worker for each, however long each takes, and however the times are spread.
#[test]
fn answers_that_come_by_themselves_are_no_turns() {
    let mut number = drawn();
    assert_eq!(found(&requests(&bursts(8, 12, 12, || 50_000), 10)), None);
    assert_eq!(found(&requests(&bursts(8, 12, 12, || 10_000 + 90 * number()), 10)), None);
    let exponential = |n: i64| (-50_000.0 * ((n as f64 + 0.5) / 1_000.0).ln()) as i64;
    for _ in 0..50 {
        assert_eq!(found(&requests(&bursts(8, 12, 12, || exponential(number())), 10)), None);
    }
    // Slow for a while, at a steady rate.
    let slow = |i: i64| (i * 20_000, i * 20_000 + if i > 60 { 500_000 } else { 50_000 } + 10 * number());
    let all: Vec<_> = (0..120).map(slow).collect();
    assert_eq!(found(&requests(&all, 10)), None);
}

/// Fewer than sixteen for each that is worked on may be chance; and each that is not known was somebody's turn.
#[test]
fn too_few_or_not_all_tell_nothing() {
    let all = |bursts_of: usize| requests(&bursts(3, bursts_of, 1, || 50_000), 10);
    assert_eq!((found(&all(5)), found(&all(6)).is_some()), (None, true));
    let mut some = all(6);
    some[3].exchanges.clear();
    let mut sums = crate::servers::Servers::new(8, 8);
    for c in &all(6) {
        let mut basis = crate::findings::Basis::default();
        basis.requests.times.add(MS(50), std::iter::empty());
        sums.add(c, &basis);
    }
    let (servers, ..) = sums.list();
    assert!(in_turn(&servers, &all(6), MS(1_000)).is_some());
    assert_eq!(in_turn(&servers, &some, MS(1_000)), None);
    // A queue of less than an eighth of what the finding is about.
    assert_eq!(in_turn(&servers, &all(6), Nanos::secs(100)), None);
}

/// One after the other nobody waits for a turn.
#[test]
fn one_at_a_time_from_one_client() {
    let mut number = drawn();
    let all: Vec<_> = (0..40).map(|i| (i * 200_000, i * 200_000 + 20_000 + 100 * number())).collect();
    assert_eq!(found(&requests(&all, 10)), None);
}

/// A kilobyte each 20 ms is 0.4 Mbit/s: a link may be as slow, unless something shows that it is none.
#[test]
fn a_narrow_link_looks_the_same() {
    let all = || requests(&bursts(3, 6, 1, || 20_000), 1_000);
    assert_eq!(found(&all()), None);
    let mut beside = all();
    beside.iter_mut().for_each(|c| c.vantage = Vantage::Server);
    assert!(found(&beside).is_some());
    let mut faster = all();
    faster[0].path.bandwidth_bps = Some(700_000);
    assert_eq!(found(&faster), None);
    faster[0].path.bandwidth_bps = Some(900_000);
    assert!(found(&faster).is_some());
    // One that opened while several waited, in less than a turn; in more.
    for (took, shows) in [(10, true), (30, false)] {
        let mut opened = all();
        let (from, to) = (MS(20), MS(20 + took));
        let trip = Span::new(Cause::Handshake, None, from, to, Frames::new(0, 1, 2, &[1]));
        let bytes = [0, 0];
        opened[7].setup = Some(Setup {
            start: from,
            end: to,
            bytes,
            tls_trips: 0,
            tls_asked_again: false,
            spans: vec![trip],
        });
        assert_eq!(found(&opened).is_some(), shows, "{took}");
    }
}

/// The variance of the logarithm of times that come by chance: of one pi squared by six, of two less by one.
#[test]
fn what_chance_makes() {
    assert!((of_chance(1) - 1.644_934).abs() < 1e-6);
    assert!((of_chance(2) - 0.644_934).abs() < 1e-6);
    assert!((of_chance(5) - 0.221_323).abs() < 1e-6);
}
