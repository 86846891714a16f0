//! Formats of numbers, just below and above where they change.

use tcpwhy_analysis::{Budget, Extremes, Quality, Totals};
use tcpwhy_base::{Cause, Nanos, Owner};
use tcpwhy_report::text::{percent, range, wrap};
use tcpwhy_report::{Answer, bytes, quality_warnings, rfc3339, worst};

#[test]
fn percents() {
    for (share, said) in [
        (-0.5, "0 %"),
        (0.0, "0 %"),
        (1e-12, "<0.1 %"),
        (0.000_999, "<0.1 %"),
        (0.001, "0.1 %"),
        (0.009_49, "0.9 %"),
        (0.009_51, "1 %"),
        (0.0149, "1 %"),
        (0.0151, "2 %"),
        (0.994, "99 %"),
        (1.0, "100 %"),
    ] {
        assert_eq!(percent(share), said, "{share}");
    }
}

#[test]
fn sizes() {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    for (n, said) in [
        (1, "1 B"),
        (KIB - 1, "1023 B"),
        (KIB, "1.00 KiB"),
        (10_234, "9.99 KiB"),
        (10_235, "10.0 KiB"),
        (102_348, "99.9 KiB"),
        (102_349, "100 KiB"),
        (MIB - 52, "1024 KiB"),
        (MIB - 51, "1.00 MiB"),
        (5 * MIB / 2, "2.50 MiB"),
        (3 * MIB * KIB, "3.00 GiB"),
        (4 * MIB * MIB, "4.00 TiB"),
        (2048 * MIB * MIB, "2048 TiB"),
        (u64::MAX, "16777216 TiB"),
    ] {
        assert_eq!(bytes(n), said, "{n}");
    }
}

#[test]
fn ranges_name_a_unit_once() {
    let said = |a: i64, b: i64| range(Extremes { shortest: Nanos::micros(a), longest: Nanos::micros(b) });
    assert_eq!(said(40_000, 40_049), "40.0 ms", "both are said alike");
    assert_eq!(said(40_000, 40_051), "40.0-40.1 ms");
    assert_eq!(said(999, 1000), "999 µs to 1.00 ms".replace("999 µs", &Nanos::micros(999).to_string()));
    assert_eq!(said(40_000, 2_000_000), "40.0 ms to 2.00 s");
}

#[test]
fn lines_are_as_long_as_may_be() {
    assert_eq!(wrap("ab cd ef", 5), ["ab cd", "ef"]);
    assert_eq!(wrap("ab cd ef", 4), ["ab", "cd", "ef"]);
    assert_eq!(wrap("ab cd ef", 8), ["ab cd ef"]);
    assert_eq!(wrap("µµ µµ x", 5), ["µµ µµ", "x"], "letters count, not bytes");
}

#[test]
fn moments_beyond_the_calendar_are_still_said() {
    assert_eq!(rfc3339(Nanos(-1)), "1969-12-31T23:59:59.999999999Z");
    assert_eq!(rfc3339(Nanos::MAX), "2262-04-11T23:47:16.854775807Z");
}

#[test]
fn what_limits_a_connection_is_counted() {
    let with = |quality: &[Quality]| {
        let mut c = crate::sample::connection();
        c.quality = Quality(quality.iter().fold(0, |all, q| all | q.0));
        c
    };
    let all = [
        with(&[Quality::SNAPLEN, Quality::MIDSTREAM]),
        with(&[Quality::SNAPLEN, Quality::OFFLOAD]),
        with(&[Quality::ENCAPSULATED, Quality::DUPLICATES]),
        with(&[Quality::ONE_SIDED, Quality::CAPTURE_DROPS, Quality::TIME_WENT_BACK]),
        with(&[Quality::NO_WINDOW_SCALE]),
        with(&[Quality::SCALE_INFERRED]),
        with(&[Quality::COARSE_CLOCK]),
        with(&[Quality::SPLIT]),
    ];
    let mut totals = Totals::default();
    all.iter().for_each(|c| totals.add_connection(c));
    let said = quality_warnings(&totals);
    let counts: Vec<(&str, u64)> = said.iter().map(|w| (w.code, w.count)).collect();
    assert_eq!(
        counts,
        [
            ("midstream", 1),
            ("one_sided", 1),
            ("snaplen", 2),
            ("capture_drops", 1),
            ("time_went_back", 1),
            ("duplicates", 1),
            ("no_window_scale", 1),
            ("window_scale_inferred", 1),
            ("coarse_clock", 1),
            ("split", 1),
        ],
        "segments of an offload and tunnels limit nothing"
    );
    let text: String = said.iter().map(|w| format!("{}: {}.\n", w.code, w.text)).collect();
    crate::same("quality.txt", &text);
}

#[test]
fn the_cause_to_name_took_most() {
    let mut b = Budget::default();
    assert_eq!(worst(&b), None);
    b.add(Cause::ServerThink, Nanos(50));
    b.add(Cause::Nagle, Nanos(50));
    assert_eq!(worst(&b), Some((Cause::ServerThink, Nanos(50))), "of equal ones the first of the table");
    b.add(Cause::Nagle, Nanos(1));
    assert_eq!(worst(&b), Some((Cause::Nagle, Nanos(51))));
}

#[test]
fn an_answer_divides_the_time() {
    let mut analysis = crate::sample::analysis();
    let totals = &mut analysis.totals;
    totals.gap_budget.add(Cause::ClientThink, Nanos::millis(5));
    totals.tail.add(Cause::ClientThink, Nanos::millis(5));
    let answer = Answer::new(&analysis);
    assert_eq!((answer.requests, answer.idle, answer.count), (Nanos::millis(75), Nanos::millis(15), 2));
    let part = |cause| {
        let p = answer.part(cause);
        [p.requests, p.idle, p.after].map(|t| t.0 / 1_000_000)
    };
    assert_eq!(part(Cause::NagleDelayedAck), [40, 0, 0]);
    assert_eq!(part(Cause::Handshake), [10, 0, 0]);
    assert_eq!(part(Cause::ClientThink), [0, 15, 5]);
    assert_eq!(part(Cause::Cork), [0, 0, 0]);
    let order: Vec<Cause> = answer.causes.iter().map(|p| p.cause).collect();
    assert_eq!(order, [Cause::NagleDelayedAck, Cause::ServerThink, Cause::Handshake, Cause::ClientThink]);
    let owners = Owner::ALL.map(|o| answer.of(o).0 / 1_000_000);
    assert_eq!(owners, [25, 40, 10, 0], "application, tcp, path, none");
    assert_eq!((answer.share(Nanos::millis(15)), answer.share(Nanos::millis(99))), (0.2, 1.0));
    assert_eq!(answer.share(Nanos::millis(-1)), 0.0);
    assert_eq!(Answer::default().share(Nanos::millis(1)), 0.0);
}

#[test]
fn what_one_server_asks_of_another_counts_once() {
    let mut analysis = crate::sample::analysis();
    let mut leg = analysis.totals.servers[0].clone();
    leg.server.port = 9001;
    leg.within = Some(analysis.connections[0].server);
    leg.budget = Budget::default();
    leg.budget.add(Cause::SlowStart, Nanos::millis(20));
    analysis.totals.budget.add_all(&leg.budget);
    analysis.totals.exchanges += 2;
    analysis.totals.servers.push(leg);
    let answer = Answer::new(&analysis);
    assert_eq!((answer.requests, answer.count, answer.connections), (Nanos::millis(75), 2, 1));
    assert_eq!(
        answer.part(Cause::ServerThink).requests,
        Nanos::millis(5),
        "20 of 25 it waited for the other"
    );
    assert_eq!(answer.part(Cause::SlowStart).requests, Nanos::millis(20));
    assert_eq!(answer.sum(|_| true), answer.requests);
}
