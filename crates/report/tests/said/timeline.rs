//! The time line of an exchange.

use crate::{at, packet, plain, same, sample, span};
use tcpwhy_analysis::{Connection, Ended, Facts, Frames, Span};
use tcpwhy_base::{Cause, End, Ends, Nanos, Side, TcpFlags};
use tcpwhy_report::Capture;
use tcpwhy_report::text::{Layout, exchange, flag_letters};
use tcpwhy_trace::Track;

const PSH_ACK: u16 = TcpFlags::PSH | TcpFlags::ACK;

fn said(c: &Connection, track: Result<&Track, &str>, layout: &Layout) -> String {
    plain(|out| exchange(out, c, &c.exchanges[0], track, &sample::capture(), layout))
}

/// What follows the heading.
fn body(text: &str) -> &str {
    text.split_once("\nexchange ").map_or("", |(_, body)| body)
}

fn with_spans(spans: Vec<Span>) -> Connection {
    let mut c = sample::connection();
    c.exchanges[0].spans = spans;
    c
}

#[test]
fn spans_with_their_packets() {
    let mut nagle = span(Cause::NagleDelayedAck, Some(Side::Client), 10.0, 50.0);
    (nagle.detail, nagle.frames) = (Some("the last part"), Frames::new(0, 4, 6, &[4, 5, 6]));
    let mut think = span(Cause::ServerThink, None, 50.0, 54.0);
    (think.confidence, think.frames) = (0.79, Frames::new(0, 6, 9, &[]));
    think.alternatives = [Some((Cause::DelayedAck, 0.15)), Some((Cause::PathDelay, 0.06))];
    think.facts = Facts::RoundTrip { rtt: Nanos::millis(10) };
    let mut path = span(Cause::PathDelay, Some(Side::Network), 54.0, 55.0);
    path.confidence = 0.5;
    let mut c = with_spans(vec![nagle, think, path]);
    c.exchanges[0].ended = Ended::Rst;
    let packets = vec![
        packet(3, 9.9, End::Client, PSH_ACK, [1, 1, 100], 500),
        packet(4, 10.0, End::Client, PSH_ACK, [101, 1, 39], 500),
        packet(5, 49.999_999, End::Server, TcpFlags::ACK, [1, 140, 0], 400),
        packet(6, 50.0, End::Server, TcpFlags::RST, [1, 140, 0], 0),
        packet(7, 55.0, End::Server, PSH_ACK | TcpFlags::FIN | TcpFlags::ECE, [1, 140, 8], 400),
    ];
    let track = Track { packets, shift: Ends::new(Some(0), Some(7)), ..Track::default() };
    let files = Layout {
        files: vec!["a.pcap".into(), "b.pcap".into()],
        frames_before: vec![0, 4],
        absolute: true,
        width: 60,
        ..Layout::default()
    };
    let mut text = said(&c, Ok(&track), &Layout::default());
    text.push_str("---\n");
    text.push_str(&said(&c, Err("Packets need a file, and this answer came without one."), &files));
    same("timeline.txt", &text);
}

#[test]
fn confidence_is_said_below_four_fifths() {
    let with = |confidence| {
        let mut s = span(Cause::ServerThink, None, 10.0, 55.0);
        s.confidence = confidence;
        said(&with_spans(vec![s]), Err(""), &Layout::default())
    };
    assert!(!with(0.8).contains("Confidence"));
    assert!(with(0.799).contains(" Confidence 80 %."));
    assert!(with(0.25).contains(" Confidence 25 %."));
}

#[test]
fn a_window_without_its_scale_says_so() {
    let c = with_spans(vec![span(Cause::ServerThink, None, 10.0, 55.0)]);
    let packets = vec![
        packet(3, 10.0, End::Client, TcpFlags::SYN, [0, 0, 0], 64_240),
        packet(4, 11.0, End::Client, PSH_ACK, [1, 1, 100], 98),
        packet(5, 12.0, End::Server, TcpFlags::ACK, [1, 101, 0], 98),
        packet(6, 13.0, End::Client, TcpFlags::ACK, [101, 1, 0], 0),
    ];
    let track = Track { packets, shift: Ends::new(None, Some(7)), ..Track::default() };
    let text = said(&c, Ok(&track), &Layout::default());
    let windows: Vec<&str> = text.lines().filter_map(|l| l.split_once(" win ").map(|w| w.1)).collect();
    assert_eq!(windows, ["64240", "98 (unscaled)", "12544", "0"]);
}

#[test]
fn many_packets_are_folded_from_twelve_on() {
    let c = with_spans(vec![span(Cause::ServerThink, None, 10.0, 55.0)]);
    let shown = |n: u64, verbose| {
        let packets = (1..=n).map(|i| packet(i, 10.0, End::Client, TcpFlags::ACK, [1, 1, 0], 9)).collect();
        let track = Track { packets, ..Track::default() };
        let text = said(&c, Ok(&track), &Layout { verbose, ..Layout::default() });
        let lines = body(&text).lines().filter(|l| l.contains("client >") || l.contains("packets"));
        let first = lines.map(|l| l.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
        first.map(|l| l.trim_end_matches(" +0.000").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(11, false), (1..=11).map(|i| i.to_string()).collect::<Vec<_>>());
    assert_eq!(shown(12, false), ["1", "2", "3", "4", "5", "... 2", "8", "9", "10", "11", "12"]);
    assert_eq!(shown(12, true).len(), 12);
}

#[test]
fn short_spans_are_drawn_together_where_there_are_more_than_forty() {
    // 45 ms: 90 µs are a five-hundredth.
    let spans = |n: usize, short: i64| {
        let mut spans = vec![span(Cause::ServerThink, None, 10.0, 20.0)];
        for i in 0..n - 2 {
            let mut s = span(Cause::PathDelay, None, 20.0 + i as f64, 0.0);
            s.end = s.start + Nanos(short);
            spans.push(s);
        }
        spans.push(span(Cause::ServerThink, None, 54.0, 55.0));
        with_spans(spans)
    };
    let folded = |c: &Connection, verbose| {
        let text = said(c, Err(""), &Layout { verbose, ..Layout::default() });
        let line = text.lines().find(|l| l.contains("short spans")).map(|l| l.trim().to_owned());
        (body(&text).matches("path_delay").count(), line)
    };
    assert_eq!(folded(&spans(40, 89_999), false), (38, None));
    assert_eq!(
        folded(&spans(41, 89_999), false),
        (0, Some("... 39 short spans, 3.51 ms in all (-v shows them)".into()))
    );
    assert_eq!(folded(&spans(41, 89_999), true), (39, None));
    assert_eq!(folded(&spans(41, 90_000), false), (39, None));
}

#[test]
fn bars_are_at_least_a_cell_and_stay_within_the_line() {
    let bars = |from: f64, to: f64| {
        let text = said(&with_spans(vec![span(Cause::Nagle, None, from, to)]), Err(""), &Layout::default());
        let line = text.lines().find(|l| l.contains('█')).unwrap_or_default().to_owned();
        let bar = line.chars().filter(|c| "·█".contains(*c)).collect::<String>();
        (bar.find('█').map(|at| at / '·'.len_utf8()), bar.matches('█').count(), bar.chars().count())
    };
    assert_eq!(bars(10.0, 55.0), (Some(0), 24, 24));
    assert_eq!(bars(10.0, 10.1), (Some(0), 1, 24));
    assert_eq!(bars(54.9, 55.0), (Some(23), 1, 24));
    assert_eq!(bars(55.0, 55.0), (Some(23), 1, 24));
    assert_eq!(bars(32.5, 43.75), (Some(12), 6, 24));
    assert_eq!(bars(5.0, 90.0), (Some(0), 24, 24));
}

#[test]
fn flags_are_written_as_tcpdump_does() {
    let all = [
        TcpFlags::SYN,
        TcpFlags::FIN,
        TcpFlags::RST,
        TcpFlags::PSH,
        TcpFlags::URG,
        TcpFlags::ECE,
        TcpFlags::CWR,
        TcpFlags::ACK,
    ];
    assert_eq!(all.map(|f| flag_letters(TcpFlags(f))), ["SYN", "FIN", "RST", "P", "U", "E", "W", "."]);
    let together = all.iter().fold(0, |sum, f| sum | f);
    assert_eq!(flag_letters(TcpFlags(together)), "SYNFINRSTPUEW.");
    assert_eq!(flag_letters(TcpFlags(0)), "");
}

#[test]
fn moments_before_the_capture_are_negative() {
    let capture = Capture { span: Some((at(10.000_001), at(90.0))), ..Capture::default() };
    let c = sample::connection();
    let text = plain(|out| exchange(out, &c, &c.exchanges[0], Err(""), &capture, &Layout::default()));
    assert!(body(&text).starts_with("1  45.0 ms at -0.000000 s, request 139 B, response 8 B\n"), "{text}");
    let text = plain(|out| {
        exchange(
            out,
            &c,
            &c.exchanges[1],
            Err(""),
            &Capture { span: None, ..capture.clone() },
            &Layout::default(),
        )
    });
    assert!(body(&text).starts_with("2  20.0 ms at 1700000000.070000 s"), "{text}");
}
