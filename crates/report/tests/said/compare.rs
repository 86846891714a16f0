//! Before against after: as text, as JSON, as a page.

use crate::{coloured, same};
use tcpwhy_analysis::{Change, ComparedSide, Comparison, InAll, Shape};
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_report::compare::{difference, in_all, json, page, shape, text, verdict};

const NAMES: [&str; 2] = ["a<1>.pcap", "b.pcap"];

fn change(n: [u64; 2], ms: [i64; 2], interval: (i64, i64)) -> Change {
    let side = |i: usize| ComparedSide {
        count: n[i],
        median: Nanos::millis(ms[i]),
        p95: Nanos::millis(2 * ms[i]),
        mean: Nanos::millis(ms[i] + 1),
    };
    Change {
        before: side(0),
        after: side(1),
        difference: Nanos::millis(ms[1] - ms[0]),
        interval: (Nanos::millis(interval.0), Nanos::millis(interval.1)),
        p95_interval: (Nanos::millis(2 * interval.0), Nanos::millis(2 * interval.1)),
    }
}

fn of(port: u16, ip: Option<[u8; 4]>, request: u32, response: u32) -> Shape {
    Shape { port, ip: ip.map(Into::into), name: None, request, response }
}

fn sums(exchanges: u64, openings: u64, ms: i64) -> InAll {
    InAll { exchanges, openings, time: Nanos::millis(ms) }
}

/// Faster, by less of one cause; one shape may be chance, one is seen too rarely.
fn better() -> Comparison {
    Comparison {
        shapes: vec![
            (of(443, Some([10, 0, 0, 2]), 8, 21), change([20, 21], [100, 60], (-45, -35))),
            (of(80, None, 10, 11), change([9, 9], [10, 11], (-1, 3))),
            (of(80, None, 0, 1), change([4, 9], [10, 30], (18, 22))),
        ],
        within: vec![(of(5432, Some([10, 0, 0, 3]), 7, 9), change([40, 41], [20, 21], (-1, 3)))],
        all: change([33, 39], [80, 60], (-30, -10)),
        mean: change([33, 39], [81, 61], (-31, -11)),
        openings: [30, 9],
        in_all: [sums(35, 31, 2_900), sums(39, 9, 2_400)],
        causes: vec![
            (Cause::PathDelay, change([33, 39], [9, 8], (-2, 1))),
            (Cause::NagleDelayedAck, change([33, 39], [40, 0], (-42, -38))),
            (Cause::ServerThink, change([33, 39], [10, 14], (3, 5))),
        ],
        setup: Some(change([12, 13], [10, 10], (-1, 1))),
        unmatched: [2, 0],
    }
}

/// Slower, without a word on why.
fn worse() -> Comparison {
    Comparison {
        all: change([5, 6], [50, 75], (20, 30)),
        shapes: (0..14).map(|i| (of(i, None, 1, 64), change([5, 6], [50, 75], (20, 30)))).collect(),
        ..Comparison::default()
    }
}

fn said(c: &Comparison) -> String {
    coloured(|out| text(out, c, NAMES))
}

#[test]
fn as_text() {
    let mut all = said(&better());
    for c in [worse(), Comparison::default()] {
        all.push_str("---\n");
        all.push_str(&said(&c));
    }
    same("compare.txt", &all);
}

#[test]
fn as_json() {
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let document = coloured(|out| json(out, &better(), NAMES));
    assert!(document.contains(&version));
    same("compare.json", &document.replace(&version, "\"version\": \"-\""));
}

#[test]
fn as_a_page() {
    let body = |c: &Comparison| {
        let text = coloured(|out| page(out, c, NAMES));
        let (head, body) = text.split_once("<style>").expect("a page has a style");
        let (_, body) = body.split_once("</style>").expect("a style ends");
        format!("{head}{body}").replace(env!("CARGO_PKG_VERSION"), "-")
    };
    let mut short = worse();
    short.shapes.truncate(1);
    let without = body(&short);
    let main = without.split_once("<main>").expect("a page has a main part").1;
    same("compare.html", &format!("{}{main}", body(&better())));
}

#[test]
fn verdicts() {
    let with = |n: [u64; 2], ms: [i64; 2], interval: (i64, i64)| {
        verdict(&Comparison { all: change(n, ms, interval), ..Comparison::default() })
    };
    assert_eq!(
        with([5, 5], [100, 59], (-45, -35)),
        "41 % faster: the median exchange took 100 ms before and 59.0 ms after (5 and 5 exchanges)."
    );
    assert!(with([5, 5], [100, 141], (35, 45)).starts_with("41 % slower: "));
    assert!(with([5, 5], [100, 199], (90, 110)).starts_with("99 % slower: "));
    assert!(with([5, 5], [100, 1570], (1400, 1500)).starts_with("15.7 times as long: "));
    assert!(with([5, 5], [100, 200], (90, 110)).starts_with("2.0 times as long: "));
    assert!(with([5, 5], [1570, 100], (-1500, -1400)).starts_with("15.7 times as fast: "));
    assert!(with([5, 5], [100, 51], (-50, -48)).starts_with("49 % faster: "));
    assert!(with([5, 5], [100, 141], (0, 45)).starts_with("no difference beyond chance: "));
    assert!(with([4, 5], [100, 141], (35, 45)).starts_with("too few exchanges to judge: "));
    assert!(
        with([0, 5], [100, 141], (35, 45)).starts_with("No exchange of the one capture has a counterpart")
    );
    let named = |ms: [i64; 2], interval| {
        let causes = vec![
            (Cause::ServerThink, change([9, 9], [50, 10], (-60, 20))),
            (Cause::Nagle, change([9, 9], ms, interval)),
        ];
        verdict(&Comparison { causes, all: change([9, 9], [90, 80], (-11, -9)), ..Comparison::default() })
    };
    assert!(
        named([40, 0], (-41, -39)).ends_with(" The largest change: 40.0 ms less of nagle in each exchange.")
    );
    assert!(
        named([0, 40], (39, 41)).ends_with(" The largest change: 40.0 ms more of nagle in each exchange.")
    );
}

/// Which of them waited for an opening is said where that differs, or all did.
#[test]
fn openings_are_said() {
    let of = |n: [u64; 2], openings| {
        let all = change(n, [100, 59], (-45, -35));
        let said = verdict(&Comparison { all, openings, ..Comparison::default() });
        said.split_once(" exchanges").expect("it counts them").1.to_owned()
    };
    assert_eq!(of([30, 30], [30, 1]), ", 30 and 1 of them with the opening of their connection).");
    assert_eq!(of([30, 15], [30, 15]), ", each with the opening of its connection).");
    assert_eq!(of([30, 15], [2, 1]), ").");
    assert_eq!(of([30, 30], [0, 0]), ").");
}

/// A mean moves where the median does not: some requests became slower.
#[test]
fn means_are_said_where_the_median_says_nothing() {
    let with = |all, mean| verdict(&Comparison { all, mean, ..Comparison::default() });
    let same = change([30, 30], [20, 20], (-1, 1));
    assert_eq!(
        with(same, change([30, 30], [20, 30], (5, 15))),
        "48 % slower in the mean: an exchange took 21.0 ms before and 31.0 ms after; the median is 20.0 ms and 20.0 ms, \
         which may be chance (30 and 30 exchanges)."
    );
    assert!(
        with(same, change([30, 30], [120, 30], (-105, -75))).starts_with("3.9 times as fast in the mean: ")
    );
    assert!(with(same, change([30, 30], [20, 30], (-1, 15))).starts_with("no difference beyond chance: "));
    assert!(
        with(change([4, 4], [20, 20], (-1, 1)), change([4, 4], [20, 30], (5, 15))).starts_with("too few")
    );
}

#[test]
fn sums_are_said() {
    let c = Comparison { in_all: [sums(30, 30, 1_240), sums(1, 1, 41)], ..Comparison::default() };
    assert_eq!(
        in_all(&c),
        "in all: 30 exchanges and 30 openings of connections took 1.24 s before; 1 and 1 took 41.0 ms after"
    );
}

/// One cause may be sure where the whole varies by more than that.
#[test]
fn a_cause_moves_where_the_whole_does_not() {
    let causes = vec![(Cause::TlsHandshake, change([8, 8], [80, 40], (-41, -39)))];
    let all = change([8, 8], [221, 179], (-78, 22));
    let said = verdict(&Comparison { all, causes, ..Comparison::default() });
    assert!(said.starts_with("no difference beyond chance: "), "{said}");
    assert!(said.ends_with(" Not by chance: 40.0 ms less of tls_handshake in each exchange."), "{said}");
}

/// What is compared by the server alone says so, and how long all of it took.
#[test]
fn a_comparison_of_any_size_is_told_from_others() {
    let moved = change([5, 5], [100, 59], (-45, -35));
    let any = Comparison { shapes: vec![(of(80, None, 0, 0), moved)], all: moved, ..Comparison::default() };
    assert_eq!(
        verdict(&any),
        "All sizes differ, so each server's exchanges are compared as they are: 41 % faster: \
         the median exchange took 100 ms before and 59.0 ms after (5 and 5 exchanges, together 505 ms and 300 ms)."
    );
    assert_eq!(shape(&any.shapes[0].0), "port 80, any size");
}

#[test]
fn differences() {
    assert_eq!(difference(&change([5, 5], [0, 40], (39, 41))), "+40.0 ms [+39.0 ms, +41.0 ms]");
    assert_eq!(difference(&change([5, 5], [40, 0], (-41, -39))), "-40.0 ms [-41.0 ms, -39.0 ms]");
    assert_eq!(difference(&change([5, 5], [40, 40], (-1, 0))), "0 ns [-1.00 ms, 0 ns] ~");
    assert_eq!(difference(&change([4, 5], [0, 40], (39, 41))), "+40.0 ms (too few to judge)");
}

#[test]
fn shapes_say_from_where_to_where() {
    let bytes = |bits| {
        let text = shape(&of(80, None, bits, 1));
        let text = text.strip_prefix("port 80, request ").and_then(|t| t.strip_suffix(", response 1 B"));
        text.unwrap_or_default().to_owned()
    };
    let said: Vec<String> = [0, 1, 2, 8, 10, 11, 12, 20, 21, 63, 64].map(bytes).into();
    assert_eq!(
        said,
        [
            "nothing",
            "1 B",
            "2-3 B",
            "128-255 B",
            "512-1023 B",
            "1.00-2.00 KiB",
            "2.00-4.00 KiB",
            "512 KiB to 1.00 MiB",
            "1.00-2.00 MiB",
            "4194304-8388608 TiB",
            "at least 8 EiB"
        ]
    );
    assert_eq!(shape(&of(443, Some([10, 0, 0, 2]), 0, 1)), "10.0.0.2:443, request nothing, response 1 B");
}
