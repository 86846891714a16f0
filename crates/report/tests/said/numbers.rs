//! Formats of numbers, just below and above where they change.

use tcpwhy_analysis::{Budget, Extremes, Quality};
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_report::text::{percent, range, wrap};
use tcpwhy_report::{Summary, bytes, quality_warnings, rfc3339, worst};

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
    ];
    let said = quality_warnings(&all);
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
        ],
        "segments of an offload and tunnels limit nothing"
    );
    let text: String = said.iter().map(|w| format!("{}: {}.\n", w.code, w.text)).collect();
    crate::same("quality.txt", &text);
}

#[test]
fn the_cause_to_name_is_of_tcp_from_a_twentieth_on() {
    let budget = |tcp: i64| {
        let mut b = Budget::default();
        b.add(Cause::ServerThink, Nanos(100 - tcp));
        b.add(Cause::Nagle, Nanos(tcp - 1));
        b.add(Cause::DelayedAck, Nanos(1));
        worst(&b)
    };
    assert_eq!(budget(5), Some((Cause::ServerThink, Nanos(95))), "the worst of TCP alone counts: 4 of 100");
    assert_eq!(budget(6), Some((Cause::Nagle, Nanos(5))));
    assert_eq!(worst(&Budget::default()), None);
}

#[test]
fn a_summary_divides_the_time() {
    let mut analysis = crate::sample::analysis();
    let summary = Summary::new(&analysis);
    assert_eq!((summary.total, summary.tcp), (Nanos::millis(90), Nanos::millis(40)));
    assert_eq!(summary.dominant, Some((Cause::ServerThink, Nanos::millis(25))));
    let time = |analysis: &_, cause| Summary::new(analysis).time(analysis, cause).0 / 1_000_000;
    assert_eq!(time(&analysis, Cause::NagleDelayedAck), 40, "as found");
    assert_eq!(time(&analysis, Cause::Handshake), 10, "without a finding, as in the budget");
    assert_eq!(time(&analysis, Cause::ClientThink), 0, "gaps are not in it");
    assert_eq!(time(&analysis, Cause::Chatty), 0, "not found, and without spans");
    let mut more = analysis.findings[1].clone();
    (more.lost, more.tail) = (Nanos::millis(9), Nanos::millis(2));
    assert_eq!(more.cause, Cause::NagleDelayedAck);
    analysis.findings.push(more);
    assert_eq!(time(&analysis, Cause::NagleDelayedAck), 47, "of both sides, without what nobody waited for");
    assert_eq!(Summary::new(&analysis).tcp, Nanos::millis(47));
    assert_eq!((summary.share(Nanos::millis(45)), summary.share(Nanos::millis(99))), (0.5, 1.0));
    assert_eq!(summary.share(Nanos::millis(-1)), 0.0);
    let nothing = Summary { total: Nanos::ZERO, ..summary };
    assert_eq!(nothing.share(Nanos::millis(1)), 0.0);
}
