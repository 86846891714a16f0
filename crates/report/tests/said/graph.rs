//! The graph of a connection, with the places of all that is drawn.

use crate::{at, packet, same, sample, span};
use tcpwhy_analysis::{Connection, Span};
use tcpwhy_base::{Cause, End, Ends, Nanos, TcpFlags};
use tcpwhy_report::svg::graph;
use tcpwhy_trace::{Packet, Track, marks};

const ACK: u16 = TcpFlags::ACK;

/// What is drawn between the definitions and the legend.
fn body(figure: &str) -> &str {
    let (_, body) = figure.split_once("</defs>\n").expect("a figure has definitions");
    body
}

/// The lines of `figure` that hold `what`.
fn with<'a>(figure: &'a str, what: &str) -> Vec<&'a str> {
    figure.lines().filter(|l| l.contains(what)).collect()
}

/// A connection of so many milliseconds from the server, with these spans in one exchange.
fn connection(ms: f64, bytes: [u64; 2], spans: Vec<Span>) -> Connection {
    let mut c = sample::connection();
    (c.end, c.bytes, c.setup) = (at(ms), bytes, None);
    c.gaps.clear();
    c.exchanges.truncate(1);
    let x = &mut c.exchanges[0];
    (x.start, x.end, x.spans) = (at(0.0), at(ms), spans);
    c
}

fn track(packets: Vec<Packet>, shift: u8) -> Track {
    Track { connection: 1, total: packets.len() as u64, packets, shift: Ends::new(Some(shift), Some(shift)) }
}

/// A response of four segments: the second is lost and sent again, the third reported by SACK.
fn download() -> (Connection, Track) {
    let c = connection(
        100.0,
        [100, 4000],
        vec![
            span(Cause::ServerThink, None, 0.0, 40.0),
            span(Cause::PathDelay, None, 40.0, 40.4),
            span(Cause::PathDelay, None, 40.4, 60.0),
            span(Cause::FastRecovery, None, 60.0, 75.0),
            span(Cause::Nagle, None, 75.0, 75.01),
            span(Cause::Bandwidth, None, 75.01, 90.0),
            span(Cause::ClientThink, None, 90.0, 97.0),
            span(Cause::Nagle, None, 97.0, 100.0),
        ],
    );
    let mut sack = packet(7, 62.0, End::Client, ACK, [101, 1001, 0], 8);
    (sack.sack[0], sack.sack[1], sack.sacks) = ((2001, 3001), (3001, 3501), 2);
    let mut again = packet(8, 72.0, End::Server, ACK, [1001, 101, 1000], 9);
    again.marks = marks::RETRANSMITTED;
    let mut late = packet(9, 74.0, End::Server, ACK, [3001, 101, 1000], 9);
    late.marks = marks::LATE | marks::OUT_OF_ORDER;
    let mut odd = packet(10, 75.0, End::Server, ACK, [3501, 101, 500], 9);
    odd.marks = marks::OUT_OF_ORDER;
    let packets = vec![
        packet(1, 0.0, End::Client, TcpFlags::SYN, [0, 0, 0], 4000),
        packet(2, 10.0, End::Server, TcpFlags::SYN | ACK, [0, 1, 0], 4000),
        packet(3, 20.0, End::Client, ACK, [1, 1, 100], 8),
        packet(4, 40.0, End::Server, ACK, [1, 101, 1000], 9),
        packet(5, 50.0, End::Server, ACK, [2001, 101, 1000], 9),
        packet(6, 60.0, End::Client, ACK, [101, 1001, 0], 8),
        sack,
        again,
        late,
        odd,
        packet(11, 80.0, End::Client, ACK, [101, 4001, 0], 4),
        packet(12, 85.0, End::Client, ACK, [101, 3001, 0], 4),
        packet(13, 90.0, End::Client, ACK | TcpFlags::RST, [101, 9001, 0], 4),
        packet(14, 95.0, End::Server, ACK | TcpFlags::FIN, [4001, 101, 0], 4),
    ];
    (c, track(packets, 8))
}

#[test]
fn of_a_connection() {
    let (c, track) = download();
    same("graph.svg", &graph(&c, &track, None));
}

#[test]
fn of_an_exchange_what_came_before_is_kept() {
    let (mut c, track) = download();
    let x = &mut c.exchanges[0];
    (x.start, x.end) = (at(60.0), at(80.0));
    let x = x.clone();
    same("graph_exchange.svg", body(&graph(&c, &track, Some(&x))));
}

#[test]
fn of_an_upload() {
    let (mut c, mut track) = download();
    c.bytes = [4000, 3999];
    for p in &mut track.packets {
        p.from = p.from.peer();
    }
    let figure = graph(&c, &track, None);
    assert_eq!(with(&figure, "client to server").len(), 1);
    let (c, track) = download();
    let down = graph(&c, &track, None);
    assert_eq!(with(&down, "server to client").len(), 1);
    assert_eq!(with(&figure, "<path"), with(&down, "<path"), "both directions are drawn alike");
    let mut even = c;
    even.bytes = [7, 7];
    assert_eq!(with(&graph(&even, &track, None), "server to client").len(), 1);
}

#[test]
fn nothing_is_drawn_of_no_packets() {
    let (c, _) = download();
    same("graph_empty.svg", body(&graph(&c, &Track::default(), None)));
}

#[test]
fn a_name_stands_in_its_band_if_it_fits() {
    // 860 pixels for 103 % of a second; "nagle 102 ms" needs 12 letters of 6.3 and 10, 85.6 in all; "nagle" 41.5.
    let names = |ms: f64| {
        let c = connection(1000.0, [0, 0], vec![span(Cause::Nagle, None, 0.0, ms)]);
        let figure = graph(&c, &Track::default(), None);
        let text = with(&figure, ">nagle").concat();
        text.rsplit_once('>').map(|_| text.split(['>', '<']).nth(2).unwrap_or_default().to_owned())
    };
    assert_eq!(names(49.6), None);
    assert_eq!(names(49.8).as_deref(), Some("nagle"));
    assert_eq!(names(102.4).as_deref(), Some("nagle"));
    assert_eq!(names(102.6).as_deref(), Some("nagle 103 ms"));
}

#[test]
fn neighbours_of_one_cause_share_a_name() {
    let spans =
        |gap: f64| vec![span(Cause::Nagle, None, 0.0, 400.0), span(Cause::Nagle, None, 400.0 + gap, 1000.0)];
    let named = |gap| {
        let figure = graph(&connection(1000.0, [0, 0], spans(gap)), &Track::default(), None);
        with(&figure, ">nagle").len()
    };
    // A pixel is 1.198 ms here.
    assert_eq!((named(0.0), named(1.19), named(1.21)), (1, 1, 2));
}

#[test]
fn a_window_far_above_what_is_in_flight_is_left_out() {
    let drawn = |window: u16| {
        let c = connection(100.0, [0, 1000], Vec::new());
        let packets = vec![
            packet(1, 0.0, End::Client, ACK, [1, 1, 0], window),
            packet(2, 10.0, End::Server, ACK, [1, 1, 1000], 9),
            packet(3, 50.0, End::Client, ACK, [1, 1001, 0], window),
        ];
        let figure = graph(&c, &track(packets, 0), None);
        let panel = figure.split_once("In flight, and the window").expect("a second panel").1;
        (with(panel, "stroke-dasharray").len(), figure.contains("in flight"))
    };
    assert_eq!(drawn(3999).0, 1);
    assert_eq!(drawn(4000).0, 0);
}

#[test]
fn a_window_without_its_scale_is_not_drawn() {
    let (c, mut t) = download();
    let edges = |t: &Track| with(&graph(&c, t, None), "stroke-dasharray=\"5 3\"").len();
    assert_eq!(edges(&t), 2, "edge and window");
    t.shift.server = None;
    assert_eq!(edges(&t), 2, "the client's windows bound what the server sends");
    t.shift.client = None;
    assert_eq!(edges(&t), 0);
}

#[test]
fn an_edge_far_above_the_data_does_not_press_it_down() {
    let top = |window: u16| {
        let c = connection(100.0, [0, 1000], Vec::new());
        let packets = vec![
            packet(1, 0.0, End::Client, ACK, [1, 1, 0], window),
            packet(2, 10.0, End::Server, ACK, [1, 1, 1000], 9),
        ];
        let figure = graph(&c, &track(packets, 0), None);
        let panel = figure.split_once("Sequence numbers").expect("a first panel").1;
        let panel = panel.split_once("In flight").expect("a second panel").0;
        with(panel, "text-anchor=\"end\"").len()
    };
    // To the edge: 0 to 3 KiB, each named; else quarters of the one KiB of data.
    assert_eq!((top(2999), top(3000)), (4, 5));
}

#[test]
fn of_very_many_packets_each_pixel_shows_the_extremes() {
    let many = |n: u64| {
        let c = connection(1000.0, [0, 1000 * n], vec![span(Cause::Bandwidth, None, 0.0, 1000.0)]);
        let mut packets = Vec::new();
        for i in 0..n as i64 {
            // In five milliseconds, with a step back at each tenth.
            let ms = 5.0 * i as f64 / n as f64;
            let seq = 1 + 100 * (if i % 10 == 9 { i - 5 } else { i });
            packets.push(packet(i as u64 * 2 + 1, ms, End::Server, ACK, [seq, 1, 100], 9));
            packets.push(packet(i as u64 * 2 + 2, ms, End::Client, ACK, [1, (seq - 50).max(1), 0], 2000));
        }
        packets.push(packet(2 * n + 1, 900.0, End::Client, ACK, [1, 100 * n as i64, 0], 2000));
        graph(&c, &track(packets, 0), None)
    };
    same("graph_many.svg", body(&many(1501)));
    let single = many(1500);
    let segments = with(&single, "stroke=\"#1f5fa6\" stroke-width=\"1.4\"").concat();
    assert_eq!(segments.matches('V').count(), 1500, "up to 1500 are drawn one by one");
}

#[test]
fn a_moment_is_named_in_the_unit_of_the_step() {
    let axis = |ns: i64| {
        let mut c = connection(1.0, [0, 0], Vec::new());
        c.end = c.start + Nanos(ns);
        let figure = graph(&c, &Track::default(), None);
        let labels = with(&figure, "text-anchor=\"middle\"").into_iter().map(|l| {
            l.split_once('>').and_then(|(_, t)| t.split_once('<')).map_or("", |(t, _)| t).to_owned()
        });
        let labels: Vec<String> = labels.collect();
        labels[..labels.len() / 2].join(", ")
    };
    let text = [
        800,
        4_000,
        700_000,
        3_900_000,
        4_000_000,
        77_000_000,
        3_800_000_000,
        3_900_000_000,
        300_000_000_000,
    ]
    .map(|ns| format!("{}: {}\n", Nanos(ns), axis(ns)));
    same("graph_axes.txt", &text.concat());
}
