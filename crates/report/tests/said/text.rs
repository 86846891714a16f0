//! The first screen, one connection, and the answer to "why not".

use crate::{at, finding, plain, same, sample, span};
use tcpwhy_analysis::{
    Analysis, Budget, Closed, Connection, Distribution, End, Ended, Extremes, Omitted, Quality, Totals,
    Vantage,
};
use tcpwhy_base::{Cause, Nanos, Side};
use tcpwhy_report::text::{Layout, connection, overview, why_not};
use tcpwhy_report::{Answer, Capture, Warning, headline};

fn budget(times: &[(Cause, i64)]) -> Budget {
    let mut b = Budget::default();
    times.iter().for_each(|&(cause, ms)| b.add(cause, Nanos::millis(ms)));
    b
}

/// The connection of the sample under another number, with these times.
fn other(id: u32, ends_at: f64, times: &[(Cause, i64)], gaps: &[(Cause, i64)]) -> Connection {
    let mut c = sample::connection();
    (c.id, c.end) = (id, at(ends_at));
    (c.budget, c.gap_budget) = (budget(times), budget(gaps));
    (c.exchanges, c.path.rtt) = (Vec::new(), None);
    c
}

fn several() -> Analysis {
    let mut analysis = sample::analysis();
    let mut long = other(2, 95.0, &[], &[(Cause::SlowReader, 40)]);
    (long.bytes, long.exchanges_omitted.count) = ([1 << 20, 1 << 19], 1200);
    let others = [
        long,
        other(3, 60.0, &[], &[]),
        other(4, 60.0, &[(Cause::ServerThink, 90), (Cause::Nagle, 4)], &[]),
        other(5, 70.0, &[(Cause::ServerThink, 76), (Cause::Nagle, 4)], &[]),
    ];
    analysis.connections.extend(others.map(Box::new));
    analysis
}

#[test]
fn connections_stand_with_the_worst_first() {
    let capture = Capture {
        warnings: vec![
            Warning { code: "a", text: "once\u{1b}[2J is not counted...".into(), count: 1 },
            Warning {
                code: "b",
                text:
                    "a sentence so long that its end has to go to another line of the screen, below the first"
                        .into(),
                count: 2,
            },
        ],
        encapsulations: vec![("VLAN", 1), ("GRE", 2)],
        ..sample::capture()
    };
    let layout = Layout { top: 4, ..Layout::default() };
    same("several.txt", &plain(|out| overview(out, &several(), &capture, &layout)));
}

#[test]
fn without_findings_the_longest_exchange_is_shown() {
    let mut analysis = sample::analysis();
    let hint = |analysis: &Analysis| {
        let text = plain(|out| overview(out, analysis, &Capture::default(), &Layout::default()));
        text.lines().last().unwrap_or_default().to_owned()
    };
    analysis.findings.clear();
    analysis.connections[0].exchanges[1].end = at(116.0);
    assert_eq!(hint(&analysis), "see one: tcpwhy explain FILE --connection 1 --exchange 2");
    let mut nagle = finding(Cause::NagleDelayedAck, Some(Side::Client), 10, 1);
    (nagle.example.connection, nagle.example.exchange) = (7, 3);
    analysis.findings = vec![finding(Cause::Chatty, None, 50, 1), nagle];
    assert_eq!(
        hint(&analysis),
        "see one: tcpwhy explain FILE --connection 1 --exchange 1",
        "the exchange that waited longest for what took most, whatever the example is"
    );
    // Of two that mostly waited for it the longer one, as the list of the slowest has it first.
    let mut both = sample::analysis();
    both.findings = vec![finding(Cause::NagleDelayedAck, Some(Side::Client), 10, 1)];
    let mut longer = both.connections[0].exchanges[0].clone();
    longer.id = 3;
    longer.end += Nanos::millis(5);
    both.connections[0].exchanges.push(longer);
    assert_eq!(hint(&both), "see one: tcpwhy explain FILE --connection 1 --exchange 3");
    analysis.findings.insert(0, finding(Cause::ServerThink, Some(Side::Server), 50, 1));
    assert_eq!(hint(&analysis), "see one: tcpwhy explain FILE --connection 1 --exchange 2");
}

/// Connections that were only summed count among those that the table leaves out.
#[test]
fn connections_that_are_not_kept_are_counted() {
    let mut analysis = sample::analysis();
    let kept = analysis.connections.len() as u64;
    analysis.totals.not_kept = 7;
    let layout = Layout { top: 1, ..Layout::default() };
    let text = plain(|out| overview(out, &analysis, &sample::capture(), &layout));
    let left = format!("and {} more: --top {}", kept + 6, kept + 7);
    assert!(text.contains(&left), "{text}");
    let mut json = Vec::new();
    tcpwhy_report::json::write(&mut json, &analysis, &sample::capture(), 1).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["summary"]["connections_omitted"], 7);
}

#[test]
fn verdicts() {
    let said = |times: &[(Cause, i64)], sides: &[Option<Side>], more: &dyn Fn(&mut Analysis)| {
        let mut analysis = sample::analysis();
        analysis.findings =
            std::iter::zip(times, sides).map(|(&(cause, ms), &side)| finding(cause, side, ms, 1)).collect();
        analysis.totals.budget = budget(times);
        analysis.totals.servers = sample::servers(&analysis.totals.budget);
        more(&mut analysis);
        headline(&analysis, &Capture::default(), &Answer::new(&analysis))
    };
    let mut text = String::new();
    let mut add = |said: String| {
        text.push_str(&said);
        text.push('\n');
    };
    let server = Some(Side::Server);
    for (times, sides) in [
        (&[(Cause::ServerThink, 950), (Cause::Nagle, 50)][..], &[][..]),
        (&[(Cause::ServerThink, 951), (Cause::Nagle, 49)], &[]),
        (&[(Cause::Nagle, 40), (Cause::DelayedAck, 40), (Cause::PathDelay, 920)], &[]),
        (&[(Cause::Nagle, 640), (Cause::FastRecovery, 320), (Cause::PathDelay, 40)], &[]),
        (&[(Cause::FastRecovery, 300), (Cause::Queueing, 100), (Cause::Bandwidth, 600)], &[]),
        (&[(Cause::PathMtu, 1000)], &[]),
        (&[(Cause::ClientThink, 1000)], &[]),
        (&[(Cause::SenderPause, 1000)], &[server]),
        (&[(Cause::SlowReader, 1000)], &[server]),
        (&[(Cause::AcceptQueueFull, 1000)], &[server]),
        (&[(Cause::MutualBlock, 1000)], &[]),
        (&[(Cause::ApplicationWindow, 1000)], &[]),
        (&[(Cause::Refused, 1000)], &[]),
        (&[(Cause::PathDelay, 1000)], &[]),
        (&[(Cause::Handshake, 1000)], &[]),
        (&[(Cause::Unexplained, 600), (Cause::Nagle, 400)], &[]),
        (&[(Cause::Unexplained, 990), (Cause::Nagle, 10)], &[]),
        (&[], &[]),
    ] {
        add(said(times, sides, &|_| {}));
    }
    let work = &[(Cause::ServerThink, 1000)][..];
    let one = |a: &mut Analysis| a.totals.exchanges = 1;
    add(said(work, &[], &|a| {
        one(a);
        a.totals.servers[0].times = Distribution::default();
        a.totals.servers[0].times.add(Nanos::millis(1000), std::iter::empty());
    }));
    add(said(work, &[], &|a| a.totals.exchanges = 0));
    add(said(work, &[None], &|a| a.findings[0].unsure = Nanos::millis(250)));
    add(said(work, &[None], &|a| a.findings[0].unsure = Nanos::millis(249)));
    add(said(work, &[], &|a| (a.totals.servers[0].at_once, a.totals.servers[0].connections) = (true, 8)));
    let another = |a: &mut Analysis, within| {
        let mut s = a.totals.servers[0].clone();
        s.server.port = 9001;
        (s.budget, s.within) = (budget(&[(Cause::Nagle, 400), (Cause::ServerThink, 200)]), within);
        a.totals.budget.add_all(&s.budget);
        a.totals.exchanges += 2;
        a.totals.servers.push(s);
    };
    add(said(work, &[], &|a| another(a, None)));
    add(said(work, &[], &|a| another(a, Some(a.connections[0].server))));
    add(said(&[], &[], &|a| a.totals.two_sided = 0));
    let unusable = Warning { code: "unusable", text: String::new(), count: 1 };
    for (packets, tcp_packets, partial, warnings) in [
        (0, 0, true, vec![]),
        (1, 0, false, vec![]),
        (2, 0, true, vec![unusable.clone()]),
        (2, 0, false, vec![unusable]),
        (2, 1, false, vec![]),
    ] {
        let capture = Capture { packets, tcp_packets, partial, warnings, ..Capture::default() };
        add(headline(&Analysis::default(), &capture, &Answer::default()));
    }
    same("verdicts.txt", &text);
}

/// A connection of which much is known.
fn known() -> Connection {
    let mut c = sample::connection();
    c.findings.clear();
    (c.roles_inferred, c.opened_by_handshake, c.protocol) = (true, false, None);
    (c.closed, c.vantage, c.quality) =
        (Closed::Fin, Vantage::Middle, Quality(Quality::SNAPLEN.0 | Quality::MIDSTREAM.0));
    (c.path.rtt, c.path.bandwidth_bps) = (None, Some(12_300_000));
    c.retransmitted = [0, 3];
    let end = &mut c.ends[0];
    *end = End::default();
    (end.mss, end.wscale, end.initial_flight) = (Some(1460), Some(7), Some(14_600));
    (end.max_window, end.max_flight, end.os) = (Some(65_535), 1, Some("Linux"));
    end.delayed_ack = Some(Extremes { shortest: Nanos::millis(40), longest: Nanos::millis(44) });
    end.min_rto = Some(Nanos::millis(204));
    (end.zero_windows, end.probes, end.keepalives) = (1, 2, 3);
    (end.reordered, end.syn_repeats, end.duplicates) = (4, 5, 6);
    c.ends[1] = End::default();
    (c.ends[1].max_flight, c.ends[1].zero_windows) = (2048, 7);
    c.exchanges_omitted = Omitted { count: 3, duration: Nanos::millis(70), ..Omitted::default() };
    let mut reset = c.exchanges[1].clone();
    (reset.id, reset.ended, reset.start) = (3, Ended::Rst, at(72.0));
    reset.spans = vec![span(Cause::ServerThink, None, 72.0, 90.0)];
    let mut silent = c.exchanges[0].clone();
    (silent.id, silent.ended, silent.spans) = (4, Ended::Silent, Vec::new());
    let mut cut = c.exchanges[1].clone();
    (cut.id, cut.ended) = (5, Ended::CaptureEnd);
    cut.spans = vec![span(Cause::ServerThink, None, 70.0, 89.0), span(Cause::Nagle, None, 89.0, 90.0)];
    c.exchanges.extend([reset, silent, cut]);
    c
}

/// What is left of an analysis for one connection.
fn alone(c: Connection) -> Analysis {
    let mut totals = Totals::default();
    totals.connections = 1;
    totals.add_connection(&c);
    (totals.budget, totals.gap_budget) = (c.budget.clone(), c.gap_budget.clone());
    totals.exchanges = c.exchanges.len() as u64 + c.exchanges_omitted.count;
    totals.servers = sample::servers(&c.budget);
    Analysis { findings: c.findings.clone(), connections: vec![Box::new(c)], totals, ..Analysis::default() }
}

#[test]
fn all_that_is_known_of_a_connection() {
    same(
        "connection_known.txt",
        &plain(|out| connection(out, &alone(known()), &known(), &sample::capture(), &Layout::default())),
    );
}

#[test]
fn exchanges_that_are_left_out_are_said_with_what_left_them_out() {
    let c = known();
    let said = |slower_than, all_exchanges| {
        let layout = Layout { slower_than, all_exchanges, width: 120, ..Layout::default() };
        let text = plain(|out| connection(out, &alone(c.clone()), &c, &sample::capture(), &layout));
        text.lines().last().expect("lines").to_owned()
    };
    let limit = Some(Nanos::millis(48));
    let each = [said(None, false), said(limit, true), said(limit, false)];
    assert_eq!(
        each,
        [
            "  3 more exchanges (70.0 ms) are left out of the detail: --exchanges all",
            "  3 more exchanges (70.0 ms) are left out of the detail: not longer than 48.0 ms (--slower-than)",
            "  3 more exchanges (70.0 ms) are left out of the detail, by --slower-than or for their number \
         (--exchanges all)",
        ]
    );
}

#[test]
fn one_connection_in_files_with_the_first_exchanges() {
    let mut c = sample::connection();
    c.gap_budget = Budget::default();
    (c.closed, c.vantage) = (Closed::Rst, Vantage::Unknown);
    let layout = Layout {
        top: 1,
        width: 100,
        files: vec!["a.pcap".into(), "b.pcap".into()],
        frames_before: vec![0, 4],
        ..Layout::default()
    };
    let mut text = plain(|out| connection(out, &alone(c.clone()), &c, &Capture::default(), &layout));
    (c.vantage, c.opened_by_handshake) = (Vantage::Server, true);
    c.exchanges.clear();
    text.push_str("---\n");
    text.push_str(&plain(|out| connection(out, &alone(c.clone()), &c, &sample::capture(), &layout)));
    same("connection_files.txt", &text);
}

#[test]
fn colours_are_those_of_the_classes() {
    let mut c = sample::connection();
    let mut unexplained = finding(Cause::Unexplained, None, 5, 1);
    unexplained.text = Some("No idea.".into());
    c.findings.push(unexplained);
    let text =
        crate::coloured(|out| connection(out, &alone(c.clone()), &c, &sample::capture(), &Layout::default()));
    same("connection_colours.txt", &text.replace('\u{1b}', "^"));
}

#[test]
fn why_a_cause_is_not_named() {
    let mut analysis = sample::analysis();
    let ask = |analysis: &Analysis, cause| {
        plain(|out| why_not(out, analysis, cause, &[], None, &Layout::default()))
    };
    let mut text = ask(&analysis, Cause::ClientThink);
    let mut twice = finding(Cause::Cork, Some(Side::Client), 900, 2);
    (twice.tail, twice.idle) = (Nanos::millis(100), Nanos::millis(50));
    analysis.findings.extend([twice, finding(Cause::Cork, Some(Side::Server), 100, 1)]);
    text.push_str(&ask(&analysis, Cause::Cork));
    let think = &mut analysis.connections[0].exchanges[0].spans[1];
    think.alternatives[1] = Some((Cause::SenderPause, 0.1));
    analysis.connections[0].gaps[0].spans[0].alternatives[0] = Some((Cause::SenderPause, 0.3));
    text.push_str(&ask(&analysis, Cause::SenderPause));
    text.push_str(&ask(&Analysis::default(), Cause::SenderPause));
    same("why_not_others.txt", &text);
}

/// An answer that tells no length ends where the server closes.
#[test]
fn who_closes_behind_the_server_may_have_waited_for_that() {
    let said = |connections: u64, time: i64| {
        let mut analysis = sample::analysis();
        analysis.totals.closed_after = (connections, Nanos::millis(time));
        let text = plain(|out| overview(out, &analysis, &sample::capture(), &Layout::default()));
        let on = ["On one connection the client", "On 3 connections the client"].map(|on| text.contains(on));
        (on, text.contains("when nobody waited"))
    };
    let sure = said(0, 0).1;
    assert_eq!(said(1, 2_000), ([true, false], false));
    assert_eq!(said(3, 2_000), ([false, true], false));
    assert_eq!([said(0, 0), said(1, 0)], [([false; 2], sure); 2]);
}
