//! The ladder of an exchange, with the places of all that is drawn.

use crate::{at, packet, same, sample, span};
use tcpwhy_analysis::{Connection, Exchange, Span};
use tcpwhy_base::{Cause, End, Nanos, Side, TcpFlags};
use tcpwhy_report::svg::ladder;
use tcpwhy_trace::{Packet, Track, marks};

const PSH_ACK: u16 = TcpFlags::PSH | TcpFlags::ACK;

/// An exchange from 10 to 55 ms.
fn exchange(spans: Vec<Span>) -> (Connection, Exchange) {
    let c = sample::connection();
    let mut x = c.exchanges[0].clone();
    x.spans = spans;
    (c, x)
}

fn track(packets: Vec<Packet>) -> Track {
    Track { connection: 1, total: packets.len() as u64, packets, ..Track::default() }
}

/// 10.24 ms and so many steps of 256 ns into the capture, in milliseconds: moments that drawings do not round.
fn exact(steps: u32) -> f64 {
    (10_240_000.0 + 256.0 * f64::from(steps)) / 1e6
}

/// The words of all arrows.
fn arrows(figure: &str) -> Vec<&str> {
    let words = figure.lines().filter(|l| l.contains("ui-monospace"));
    words.filter_map(|l| l.split_once('>')?.1.split_once('<').map(|(text, _)| text)).collect()
}

#[test]
fn of_an_exchange() {
    let (c, x) = exchange(vec![
        span(Cause::NagleDelayedAck, Some(Side::Client), 10.0, 50.0),
        span(Cause::ServerThink, Some(Side::Server), 50.0, 54.9),
        span(Cause::PathDelay, Some(Side::Network), 54.9, 54.901),
        span(Cause::Nagle, None, 54.901, 55.0),
    ]);
    let mut again = packet(6, 52.0, End::Client, PSH_ACK, [40, 1, 100], 500);
    again.marks = marks::RETRANSMITTED;
    let mut late = packet(7, 54.9, End::Server, TcpFlags::ACK, [1, 140, 0], 500);
    late.marks = marks::LATE;
    let mut odd = packet(8, 54.95, End::Server, TcpFlags::ACK, [1, 140, 0], 500);
    odd.marks = marks::OUT_OF_ORDER;
    let packets = vec![
        packet(2, 9.999, End::Client, PSH_ACK, [1, 1, 9], 500),
        packet(3, 10.0, End::Client, PSH_ACK, [1, 1, 39], 500),
        packet(4, 10.019, End::Server, TcpFlags::ACK, [1, 40, 0], 500),
        packet(5, 50.0, End::Client, PSH_ACK, [40, 1, 100], 500),
        again,
        late,
        odd,
        packet(9, 55.0, End::Server, PSH_ACK, [1, 140, 8], 500),
        packet(10, 55.001, End::Client, TcpFlags::ACK, [140, 9, 0], 500),
    ];
    same("ladder.svg", &ladder(&c, &x, &track(packets), &[0, 6]));
}

#[test]
fn runs_of_more_than_nine_are_folded() {
    let (c, x) = exchange(vec![span(Cause::Bandwidth, None, 10.0, 55.0)]);
    let run = |n: u64| {
        let one = |i: u64| {
            let from = if i.is_multiple_of(3) { End::Client } else { End::Server };
            packet(i, 10.0 + i as f64, from, TcpFlags::ACK, [1, 1, 100], 9)
        };
        ladder(&c, &x, &track((1..=n).map(one).collect()), &[0])
    };
    assert_eq!(arrows(&run(9)).len(), 9);
    assert_eq!(
        arrows(&run(10)),
        ["1 . 100 B", "2 . 100 B", "3 . 100 B", "… 4 packets, 300 B", "8 . 100 B", "9 . 100 B", "10 . 100 B"]
    );
    let folded = run(12);
    assert_eq!(arrows(&folded)[3], "… 6 packets, 400 B", "of both directions, with the bytes of the greater");
    let width = folded.lines().filter(|l| l.contains("stroke-width=\"4\"")).count();
    assert_eq!(width, 1, "what is folded is drawn thicker");
}

#[test]
fn packets_at_the_end_of_a_span_belong_to_the_next() {
    let (c, x) =
        exchange(vec![span(Cause::Nagle, None, 10.0, 30.0), span(Cause::ServerThink, None, 30.0, 55.0)]);
    let mut packets: Vec<Packet> = Vec::new();
    for i in 0..9 {
        packets.push(packet(i + 1, 10.0 + i as f64, End::Client, TcpFlags::ACK, [1, 1, 1], 9));
    }
    for i in 9..18 {
        packets.push(packet(i + 1, 30.0, End::Client, TcpFlags::ACK, [1, 1, 1], 9));
    }
    assert_eq!(arrows(&ladder(&c, &x, &track(packets), &[0])).len(), 18, "nine in each");
}

#[test]
fn at_most_120_rows_are_drawn() {
    let spans = (0..45).map(|i| span(Cause::Nagle, None, 10.0 + f64::from(i), 11.0 + f64::from(i))).collect();
    let (c, x) = exchange(spans);
    let rows = |n: u64| {
        let one = |i: u64| packet(i + 1, 10.0 + (i / 3) as f64, End::Client, TcpFlags::ACK, [1, 1, 1], 9);
        let figure = ladder(&c, &x, &track((0..n).map(one).collect()), &[0]);
        let more = figure.lines().find(|l| l.contains(">and ")).map(str::to_owned);
        (arrows(&figure).len(), more.and_then(|l| Some(l.split_once('>')?.1.replace("</text>", ""))))
    };
    assert_eq!(rows(120), (120, None));
    assert_eq!(rows(121), (120, Some("and 1 more".into())));
}

#[test]
fn waits_take_room_from_20_microseconds_on() {
    let (c, x) = exchange(vec![span(Cause::Nagle, None, 10.0, 55.0)]);
    let mut after = 0;
    let heights = |ms: &[f64]| {
        let all = ms
            .iter()
            .enumerate()
            .map(|(i, &t)| packet(i as u64 + 1, t, End::Client, TcpFlags::ACK, [1, 1, 1], 9));
        let figure = ladder(&c, &x, &track(all.collect()), &[0]);
        let lines = figure.lines().filter(|l| l.starts_with("<line x1=\"104.0\"") && l.contains("#1f5fa6"));
        let y = lines.filter_map(|l| l.split("y1=\"").nth(1)?.split('"').next()?.parse::<f64>().ok());
        y.collect::<Vec<f64>>()
    };
    let y = heights(&[0, 78, 79, 196, 100_000].map(|n| {
        after += n;
        exact(after)
    }));
    let steps: Vec<f64> = y.windows(2).map(|w| ((w[1] - w[0]) * 10.0).round() / 10.0).collect();
    // 20 after 19.968 us; then 9 log2(1 + t / 50 us) more, for 20.224 us and 50.176 us, and 70 at most.
    // Places are rounded to tenths.
    assert_eq!(steps, [20.0, 24.4, 29.1, 90.0]);
}

#[test]
fn a_short_span_is_named_for_those_who_point_at_it() {
    let titles = |to: u32| {
        let (from, to) = (exact(0), exact(to));
        let (c, x) = exchange(vec![
            span(Cause::Cork, None, 10.0, from),
            span(Cause::Nagle, None, from, to),
            span(Cause::Cork, None, to, 55.0),
        ]);
        let packets = [0, 78].map(|n| packet(1, exact(n), End::Client, TcpFlags::ACK, [1, 1, 1], 9)).to_vec();
        let figure = ladder(&c, &x, &track(packets), &[0]);
        figure
            .lines()
            .filter(|l| l.contains("fill-opacity=\"0\"><title>"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // Between the two arrows lie 20 pixels for 19.968 us: 9 pixels are 8.986 us.
    assert_eq!(
        titles(35),
        [
            "<rect x=\"104\" y=\"116.8\" width=\"566\" height=\"9.0\" fill-opacity=\"0\"><title>nagle 8.96 µs</title></rect>"
        ]
    );
    assert_eq!(titles(36), Vec::<String>::new());
}

#[test]
fn times_beside_the_arrows_count_from_the_start() {
    let (c, mut x) = exchange(vec![span(Cause::Nagle, None, 10.0, 200.0)]);
    x.end = at(200.0);
    let packets = [10.0, 109.999, 110.0, 110.06]
        .map(|ms| packet(1, ms, End::Server, TcpFlags::ACK, [1, 1, 0], 9))
        .to_vec();
    let figure = ladder(&c, &x, &track(packets), &[]);
    let times = figure.lines().filter_map(|l| l.split_once(">+")?.1.strip_suffix("</text>"));
    assert_eq!(times.collect::<Vec<_>>(), ["0.000 ms", "99.999 ms", "100.0 ms", "100.1 ms"]);
    assert_eq!(x.end - x.start, Nanos::millis(190));
}
