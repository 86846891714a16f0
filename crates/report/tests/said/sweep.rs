//! Many predictions: as a table, as CSV, as a drawing.

use crate::{coloured, same};
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_report::predict::{Axis, CauseName, Metric, Point, Sweep};

fn axis(name: &str, values: &[(&str, f64)]) -> Axis {
    Axis {
        name: name.into(),
        labels: values.iter().map(|v| v.0.to_owned()).collect(),
        values: values.iter().map(|v| v.1).collect(),
    }
}

fn point(total: Option<Nanos>, bytes: u64, cause: Option<Cause>) -> Point {
    Point { total, bytes, cause: cause.map(CauseName) }
}

/// Over the round trip alone.
fn one() -> Sweep {
    Sweep {
        axes: vec![axis("rtt", &[("1 ms", 1e6), ("10 ms", 1e7), ("100 ms", 1e8), ("1 s", 1e9)])],
        points: vec![
            point(Some(Nanos::millis(2)), 1_000_000, Some(Cause::SlowStart)),
            point(Some(Nanos::millis(20)), 1_000_000, Some(Cause::PathDelay)),
            point(None, 1_000_000, None),
            point(Some(Nanos::ZERO), 1_000_000, None),
        ],
        metric: Metric::Time,
    }
}

/// Over the round trip and the size of the response.
fn two(metric: Metric) -> Sweep {
    let time = |ms: i64, bytes| point(Some(Nanos::millis(ms)), bytes, Some(Cause::SlowStart));
    Sweep {
        axes: vec![
            axis("rtt", &[("1 ms", 1e6), ("100 ms", 1e8)]),
            axis("response & more", &[("1 kB", 1e3), ("1 MB", 1e6), ("<1 GB>", 1e9)]),
        ],
        points: vec![
            time(2, 1000),
            time(10, 1_000_000),
            time(9000, 1_000_000_000),
            time(200, 1000),
            point(None, 1_000_000, None),
            time(80_000, 1_000_000_000),
        ],
        metric,
    }
}

#[test]
fn tables() {
    let mut text = coloured(|out| one().table(out));
    text.push('\n');
    text.push_str(&coloured(|out| two(Metric::Time).table(out)));
    text.push('\n');
    text.push_str(&coloured(|out| two(Metric::Throughput).table(out)));
    let mut wide = one();
    wide.axes[0].name = "a name wider than its values".into();
    text.push('\n');
    text.push_str(&coloured(|out| wide.table(out)));
    same("sweep.txt", &text);
}

#[test]
fn lines_for_programs() {
    let mut text = coloured(|out| one().csv(out));
    text.push_str(&coloured(|out| two(Metric::Throughput).csv(out)));
    same("sweep.csv", &text);
}

#[test]
fn drawings() {
    same("sweep_time.svg", &coloured(|out| two(Metric::Time).svg(out)));
    same("sweep_throughput.svg", &coloured(|out| two(Metric::Throughput).svg(out)));
}

#[test]
fn a_single_value_stands_in_the_middle() {
    let sweep = Sweep {
        axes: vec![axis("mtu", &[("1500 B", 1500.0)])],
        points: vec![point(Some(Nanos::millis(7)), 1000, None)],
        metric: Metric::Time,
    };
    let figure = coloured(|out| sweep.svg(out));
    assert!(figure.contains("points=\"400.0,215.0\""), "{figure}");
    assert!(figure.contains(">time against mtu</text>"));
}

#[test]
fn without_an_axis_nothing_is_said() {
    let none = Sweep { axes: Vec::new(), points: Vec::new(), metric: Metric::Time };
    assert_eq!(coloured(|out| none.table(out)) + &coloured(|out| none.svg(out)), "");
    assert_eq!(coloured(|out| none.csv(out)), "total_ns,throughput_bps,cause\n");
}

#[test]
fn rates_are_said_in_their_unit() {
    let rate = |bits: u64| {
        // So many bits in a second.
        let sweep = Sweep {
            axes: vec![axis("x", &[("x", 1.0)])],
            points: vec![point(Some(Nanos::secs(8)), bits, None)],
            metric: Metric::Throughput,
        };
        let table = coloured(|out| sweep.table(out));
        table.lines().last().and_then(|l| l.trim().rsplit("  ").next().map(|c| c.trim().to_owned()))
    };
    for (bits, said) in [
        (0, "0.00 bit/s"),
        (9, "9.00 bit/s"),
        (10, "10 bit/s"),
        (999, "999 bit/s"),
        (1000, "1.00 kbit/s"),
        (9994, "9.99 kbit/s"),
        (9996, "10 kbit/s"),
        (999_999, "1000 kbit/s"),
        (1_000_000, "1.00 Mbit/s"),
        (999_000_000, "999 Mbit/s"),
        (1_000_000_000, "1.00 Gbit/s"),
        (40_000_000_000, "40 Gbit/s"),
    ] {
        assert_eq!(rate(bits).as_deref(), Some(said), "{bits}");
    }
}
