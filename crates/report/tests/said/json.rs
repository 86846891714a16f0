//! The JSON document, whole: each object on a line of its own.

use crate::{coloured, finding, fix, same, sample};
use std::io;
use tcpwhy_analysis::{
    Analysis, Connection, End, Ended, Extremes, Finding, Frames, NoEffect, Omitted, Parameter, Quality,
    Replay, Together,
};
use tcpwhy_base::{Cause, FixId, Nanos, Side, Source};
use tcpwhy_report::json::{Buffer, Context, connection_line, finding_ids, last_lines, write, write_lines};
use tcpwhy_report::{Capture, Warning};

/// `text` with a line for each object that holds another one, or stands in a list.
fn broken(text: &str) -> String {
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0, false, false);
    for c in text.chars() {
        if !quoted && c == '{' && depth < 7 {
            out = out.trim_end_matches('\n').to_owned();
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        }
        out.push(c);
        match c {
            '"' if !escaped => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    out.trim_start().to_owned()
}

fn document(analysis: &Analysis, capture: &Capture) -> String {
    let text = coloured(|out| write(out, analysis, capture, 1));
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version));
    text.replace(&version, "\"version\":\"-\"")
}

/// A finding with all that there can be.
fn replayed() -> Finding {
    let mut f = finding(Cause::NagleDelayedAck, Some(Side::Server), 1162, 27);
    (f.tail, f.share) = (Nanos::millis(2), 0.123_456_78);
    f.connections = vec![1, 2];
    f.connection_count = 3;
    f.example.exchange = 0;
    f.evidence = vec![Frames::new(0, 4, 6, &[4, 5, 6]), Frames::new(0, 8, 8, &[])];
    let mut nodelay = fix(FixId::Nodelay, "client", &["one \"way\"", "another"], Some(1111), true);
    nodelay.parameters =
        vec![("port", Parameter::Number(-25)), ("option", Parameter::Text("TCP_NODELAY".into()))];
    f.fixes = vec![nodelay, fix(FixId::OneWrite, "server", &[], None, false)];
    let vain = NoEffect { id: "initcwnd", place: "server", what: "more".into(), saves: Nanos(-5) };
    f.replay = Some(Box::new(Replay {
        connection: 1,
        exchanges: (1, 2),
        observed: Nanos::millis(1000),
        modelled: Nanos::millis(900),
        assumed: vec!["no loss".into()],
        together: Some(Together {
            changes: vec![(FixId::Nodelay, "client"), (FixId::Rmem, "server")],
            predicted: Nanos::millis(12),
        }),
        no_help: vec![vain],
    }));
    f
}

/// A connection of which much is known.
fn known() -> Connection {
    let mut c = sample::connection();
    (c.id, c.roles_inferred, c.opened_by_handshake) = (2, true, false);
    (c.setup, c.protocol) = (None, None);
    c.closed = tcpwhy_analysis::Closed::Rst;
    c.vantage = tcpwhy_analysis::Vantage::Middle;
    c.quality = Quality(Quality::MIDSTREAM.0 | Quality::SNAPLEN.0);
    (c.path.rtt, c.path.bandwidth_bps, c.path.offloaded) = (None, Some(12_300_000), true);
    c.path.halves = [Some(Nanos(1)), Some(Nanos(2))];
    let end = &mut c.ends[0];
    *end = End::default();
    (end.mss, end.wscale, end.initial_flight) = (Some(1460), Some(7), Some(14_600));
    (end.max_window, end.max_flight) = (Some(65_535), 1);
    end.delayed_ack = Some(Extremes { shortest: Nanos::millis(40), longest: Nanos::millis(44) });
    (end.zero_windows, end.probes, end.keepalives) = (1, 2, 3);
    (end.reordered, end.syn_repeats, end.duplicates) = (4, 5, 6);
    c.ends[1] = End::default();
    c.ends[1].min_rto = Some(Nanos::millis(204));
    let omitted = |count| Omitted { count, duration: Nanos(7), bytes: [8, 9], budget: c.budget.clone() };
    (c.exchanges_omitted, c.gaps_omitted) = (omitted(1), omitted(2));
    (c.closed_after, c.findings_omitted) = (Some(Nanos::millis(80)), 4);
    let x = &mut c.exchanges[0];
    (x.request_end, x.response_start, x.ended, x.duplex, x.turns) = (None, None, Ended::CaptureEnd, true, 3);
    let s = &mut x.spans[0];
    (s.detail, s.side, s.source, s.folded, s.confidence) =
        (Some("detail"), None, Source::Kernel, 12, 0.333_36);
    s.alternatives = [Some((Cause::Cork, 0.25)), Some((Cause::DelayedAck, 0.000_4))];
    c
}

#[test]
fn whole() {
    let mut analysis = sample::analysis();
    analysis.connections.push(Box::new(known()));
    analysis.totals.add_connection(&known());
    analysis.totals.connections += 1;
    analysis.findings.insert(0, replayed());
    let mut without = finding(Cause::SynQueueFull, None, 0, 1);
    (without.lost, without.share) = (Nanos(-3), f64::NAN);
    without.example.connection = 0;
    analysis.findings.push(without);
    same("document.json", &broken(&document(&analysis, &sample::capture())));
}

#[test]
fn a_replay_with_changes_together_in_a_line() {
    let mut analysis = sample::analysis();
    analysis.findings.insert(0, replayed());
    let mut lines = Vec::new();
    write_lines(&mut lines, &analysis, &sample::capture()).expect("memory can be written");
    let finding = lines.split(|&b| b == b'\n').map(serde_json::from_slice::<serde_json::Value>);
    let finding = finding.flatten().find(|line| line["type"] == "finding").expect("there is a finding");
    assert!(finding["model"]["together"]["fixes"][0][1].is_string(), "{finding}");
}

#[test]
fn of_nothing() {
    let empty = document(&Analysis::default(), &Capture::default());
    let (head, rest) = empty.split_once("\n\"summary\":").expect("a summary stands in it");
    let (summary, rest) = rest.split_once('\n').expect("on a line of its own");
    assert!(
        summary.contains("\"requests\":0,\"request_ns\":0,")
            && summary.contains("\"unsure_ns\":0,\"servers\":[]")
    );
    let empty = format!("{head}\n{rest}");
    assert_eq!(
        empty,
        "{\"tool\":\"tcpwhy\",\"version\":\"-\",\"schema\":1,\n\"connections\":[],\n\"findings\":[],\n\"capture\":{\"files\":[],\
         \"packets\":0,\"tcp_packets\":0,\"start\":null,\"duration_ns\":0,\"connections\":0,\"encapsulations\":{},\"warnings\":[]}}\n"
    );
}

#[test]
fn each_part_begins_a_line() {
    let mut analysis = sample::analysis();
    let mut second = sample::connection();
    second.id = 2;
    analysis.connections.push(Box::new(second));
    let text = document(&analysis, &sample::capture());
    let starts: Vec<&str> = text.lines().map(|l| l.get(..9).unwrap_or(l)).collect();
    assert_eq!(
        starts,
        [
            "{\"tool\":\"",
            "\"summary\"",
            "\"connecti",
            "{\"id\":1,\"",
            "{\"id\":2,\"",
            "\"findings",
            "{\"id\":\"f1",
            "{\"id\":\"f2",
            "\"capture\""
        ]
        .map(|s| s.get(..9).unwrap_or(s)),
        "{text}"
    );
    assert_eq!(text.matches("},\n{").count(), 2);
    assert!(
        text.contains("}],\n\"findings\":[\n")
            && text.contains("}],\n\"capture\":{")
            && text.ends_with("}}\n")
    );
}

#[test]
fn streams_are_numbered_as_by_tshark_where_that_is_known() {
    let bare = || Capture { encapsulations: Vec::new(), ..sample::capture() };
    let stream = |change: fn(&mut Analysis, &mut Capture)| {
        let (mut analysis, mut capture) = (sample::analysis(), bare());
        change(&mut analysis, &mut capture);
        let text = document(&analysis, &capture);
        let (_, rest) = text.split_once("\"tshark_stream\":").expect("a connection has one");
        rest.split_once(',').map_or(String::new(), |(n, _)| n.to_owned())
    };
    assert_eq!(stream(|_, _| {}), "0");
    assert_eq!(stream(|a, _| a.connections[0].id = 5), "4");
    assert_eq!(stream(|_, c| c.partial = true), "null");
    assert_eq!(stream(|_, c| c.connections = 2), "null");
    assert_eq!(stream(|_, c| c.frames_before = vec![0, 100]), "null");
    assert_eq!(stream(|_, c| c.encapsulations = vec![("GRE", 1)]), "null");
    assert_eq!(stream(|a, _| a.totals.add_quality(Quality::ENCAPSULATED)), "null");
}

#[test]
fn while_a_capture_goes_on_lines_are_the_same() {
    let (analysis, capture) = (sample::analysis(), sample::capture());
    let lines = coloured(|out| write_lines(out, &analysis, &capture));
    let cx = Context::live(capture.start(), &capture.frames_before, false);
    let written = |fill: &dyn Fn(&mut Buffer) -> io::Result<()>| {
        let mut buffer = Buffer::default();
        fill(&mut buffer).unwrap();
        String::from_utf8(buffer.as_slice().to_vec()).unwrap()
    };
    let live = written(&|out| {
        analysis.connections.iter().try_for_each(|c| connection_line(out, c, cx))?;
        last_lines(out, &analysis, &capture, cx)
    });
    assert_eq!(lines, live);
    let starts: Vec<&str> = live.lines().map(|l| l.split_once(",\"").map_or(l, |(start, _)| start)).collect();
    assert_eq!(
        starts,
        [
            "{\"type\":\"connection\"",
            "{\"type\":\"finding\"",
            "{\"type\":\"finding\"",
            "{\"type\":\"summary\"",
            "{\"type\":\"capture\""
        ]
    );
    let of_tshark = Context::live(capture.start(), &capture.frames_before, true);
    let line = written(&|out| connection_line(out, &analysis.connections[0], of_tshark));
    assert!(line.contains("\"tshark_stream\":0,"));
}

#[test]
fn findings_are_numbered_as_they_stand_in_the_answer() {
    let mut findings = sample::analysis().findings;
    findings.insert(1, finding(Cause::Cork, None, 30, 1));
    let mut ids: Vec<(String, Cause)> = finding_ids(&findings).into_iter().map(|(k, id)| (id, k.0)).collect();
    ids.sort();
    let expected = [("f1", Cause::NagleDelayedAck), ("f2", Cause::Cork), ("f3", Cause::ServerThink)];
    assert_eq!(ids, expected.map(|(id, cause)| (id.to_owned(), cause)));
}

#[test]
fn what_a_warning_says_is_escaped() {
    let odd = "tab\t quote\" slash\\ µs \u{1}";
    let capture = Capture {
        warnings: vec![Warning { code: "odd", text: odd.into(), count: 1 }],
        files: vec![odd.into()],
        ..Capture::default()
    };
    for text in [
        document(&Analysis::default(), &capture),
        coloured(|out| write_lines(out, &Analysis::default(), &capture)),
    ] {
        assert_eq!(text.matches("tab\\t quote\\\" slash\\\\ µs \\u0001").count(), 2, "{text}");
    }
}
