//! Findings as text: their order, what is folded, where lines break, what is said of a replay.

use crate::{finding, fix, plain, same, sample};
use tcpwhy_analysis::{Analysis, Budget, Facts, Finding, Frames, NoEffect, Replay, Totals};
use tcpwhy_base::{Cause, FixId, Nanos, Side};
use tcpwhy_report::Capture;
use tcpwhy_report::text::{Layout, overview, saving};

const CLIENT: Option<Side> = Some(Side::Client);
const SERVER: Option<Side> = Some(Side::Server);

fn vain(id: &'static str, place: &'static str, what: &str) -> NoEffect {
    NoEffect { id, place, what: what.into(), saves: Nanos::ZERO }
}

fn replay(observed: i64, modelled: i64) -> Box<Replay> {
    Box::new(Replay {
        connection: 1,
        exchanges: (1, 2),
        observed: Nanos::millis(observed),
        modelled: Nanos::millis(modelled),
        assumed: Vec::new(),
        together: None,
        no_help: vec![
            vain("initcwnd", "server", "a larger first flight"),
            vain("quickack", "both", "no delayed ACKs"),
            vain("quickack", "client", "no delayed ACKs"),
            vain("faster_link", "path", "a faster link"),
            vain("nodelay", "client", "what the fix itself does"),
        ],
    })
}

/// One of each kind.
fn mixed() -> Vec<Finding> {
    let mut nagle = finding(Cause::NagleDelayedAck, SERVER, 1162, 27);
    nagle.connection_count = 3;
    let frames = |a, b, key: &[u64]| Frames::new(0, a, b, key);
    nagle.evidence = vec![frames(0, 0, &[])];
    nagle.evidence.extend((1..=6).map(|i| frames(10 * i, 10 * i + 2, &[10 * i, 10 * i + 2])));
    nagle.fixes = vec![
        fix(FixId::Nodelay, "client", &["Any: setsockopt(fd, TCP_NODELAY)", "second way"], Some(1111), true),
        fix(FixId::OneWrite, "server", &[], Some(900), true),
        fix(FixId::Quickack, "path", &["third"], None, false),
    ];
    nagle.replay = Some(replay(1200, 1180));
    let mut timeout = finding(Cause::RetransmissionTimeout, None, 1300, 1);
    timeout.replay = Some(replay(1000, 1151));
    timeout.evidence = vec![frames(7, 7, &[])];
    timeout.fixes = vec![
        fix(
            FixId::FixLoss,
            "path",
            &[
                "How to find out where packets are lost takes more than a line: look at the counters of every hop on the way.",
            ],
            Some(300),
            false,
        ),
        fix(FixId::RtoMin, "host", &["ip route change ... rto_min 50ms"], Some(200), false),
    ];
    let mut server = finding(Cause::ServerThink, SERVER, 5000, 12);
    server.fixes = vec![fix(FixId::Application, "server", &["Profile it."], Some(5000), false)];
    server.replay = Some(replay(5000, 5000));
    let mut chatty = finding(Cause::Chatty, CLIENT, 300, 4);
    chatty.facts = Facts::None;
    chatty.fixes = vec![fix(FixId::FewerRoundTrips, "client", &["Ask for more at once."], None, false)];
    let mut tail = finding(Cause::SlowReader, SERVER, 400, 2);
    tail.tail = Nanos::millis(250);
    vec![
        finding(Cause::Unexplained, CLIENT, 500, 3),
        server,
        chatty,
        finding(Cause::DelayedAck, CLIENT, 99, 2),
        finding(Cause::Nagle, CLIENT, 100, 2),
        finding(Cause::SmallMss, CLIENT, 5, 1),
        finding(Cause::ClientThink, CLIENT, 20, 1),
        finding(Cause::TailLossProbe, SERVER, 0, 0),
        finding(Cause::NoWindowScaling, None, 0, 2),
        finding(Cause::Cork, CLIENT, 600, 0),
        tail,
        timeout,
        nagle,
    ]
}

/// With these findings, in the order in which an analysis has them.
fn analysis(mut findings: Vec<Finding>) -> Analysis {
    findings.sort_by_key(|f| std::cmp::Reverse(f.lost));
    let mut budget = Budget::default();
    budget.add(Cause::PathDelay, Nanos::millis(700));
    budget.add(Cause::Handshake, Nanos::millis(100));
    budget.add(Cause::Bandwidth, Nanos::ZERO);
    budget.add(Cause::ServerThink, Nanos::millis(5000));
    budget.add(Cause::RetransmissionTimeout, Nanos::millis(4200));
    let servers = sample::servers(&budget);
    let mut totals = Totals::default();
    (totals.budget, totals.servers) = (budget, servers);
    (totals.measured, totals.exchanges) = (Nanos::secs(10), 7);
    Analysis { connections: vec![Box::new(sample::connection())], findings, totals, ..Analysis::default() }
}

fn said(findings: Vec<Finding>, layout: &Layout) -> String {
    let quiet = Layout { quiet: true, ..layout.clone() };
    plain(|out| overview(out, &analysis(findings), &Capture::default(), &quiet))
}

#[test]
fn at_80_columns() {
    same("findings_80.txt", &said(mixed(), &Layout::default()));
}

#[test]
fn at_120_columns_nothing_stands_beyond_100() {
    same("findings_120.txt", &said(mixed(), &Layout { width: 120, ..Layout::default() }));
}

#[test]
fn at_40_columns_fixes_are_broken() {
    same("findings_40.txt", &said(mixed().split_off(11), &Layout { width: 40, ..Layout::default() }));
}

#[test]
fn in_full() {
    let layout = Layout { verbose: true, width: 100, ..Layout::default() };
    same("findings_verbose.txt", &said(mixed(), &layout));
}

#[test]
fn the_first_two_of_many() {
    let text = said(mixed(), &Layout { top: 2, ..Layout::default() });
    let (_, smaller) = text.split_once("  smaller: ").unwrap();
    assert_eq!(
        smaller.split_whitespace().collect::<Vec<_>>().join(" "),
        "nagle_delayed_ack at the server 1.16 s, cork at the client 600 ms, unexplained at the client 500 ms, \
         chatty at the client 300 ms, slow_reader at the server 150 ms, nagle at the client 100 ms, delayed_ack at \
         the client 99.0 ms, client_think 20.0 ms, small_mss at the client 5.00 ms"
    );
    // Nothing is smaller than what stands nowhere.
    let none = said(mixed(), &Layout { top: 0, ..Layout::default() });
    assert!(none.contains("  causes: ") && !none.contains("smaller"), "{none}");
}

#[test]
fn what_is_below_a_hundredth_and_a_millisecond_is_named_in_one_line() {
    let shown = |ms: i64, longest: Nanos| {
        let mut small = finding(Cause::DelayedAck, CLIENT, ms, 1000);
        small.range.longest = longest;
        small.fixes = vec![fix(FixId::Quickack, "client", &["unasked"], Some(1), false)];
        let text = said(vec![finding(Cause::Nagle, CLIENT, 1000, 1), small], &Layout::default());
        assert_eq!(text.contains("unasked"), !text.contains("smaller"), "{text}");
        text.split_once("  smaller: ").map(|(_, rest)| rest.lines().next().unwrap_or_default().to_owned())
    };
    let most = Nanos(999_999);
    assert_eq!(shown(99, most).as_deref(), Some("delayed_ack at the client 99.0 ms"));
    assert_eq!(shown(100, most), None, "a hundredth");
    assert_eq!(shown(99, Nanos::millis(1)), None, "a millisecond at once");
    // Said of a whole connection, it has no spans: its cost counts.
    let text = |ms| said(vec![finding(Cause::SmallMss, CLIENT, ms, 1)], &Layout::default());
    assert!(!text(1).contains("smaller") && text(0).lines().all(|l| !l.contains("egments")));
}

#[test]
fn a_fix_stands_in_one_line_as_long_as_two_blanks_are_left() {
    let one = || {
        let mut f = finding(Cause::Nagle, None, 1000, 1);
        f.fixes = vec![fix(FixId::Nodelay, "host", &[], Some(300), false)];
        f
    };
    let title = FixId::Nodelay.info().title;
    let saves = "saves up to 300 ms";
    let used = 10 + 5 + title.len() + saves.len();
    let lines = |width| {
        let text = said(vec![one()], &Layout { width, ..Layout::default() });
        let fix = text.lines().skip_while(|l| !l.contains("fix: ")).take(2);
        fix.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(used + 2)[0], format!("{:10}fix: {title}  {saves}", ""));
    assert_eq!(lines(used + 3)[0], format!("{:10}fix: {title}   {saves}", ""));
    assert_eq!(lines(used + 1), [format!("{:10}fix: {title}", ""), format!("{:15}{saves}", "")]);
}

#[test]
fn a_replay_is_believed_up_to_15_percent() {
    let laid_out = |modelled, layout: &Layout| {
        let mut f = finding(Cause::Nagle, CLIENT, 1000, 1);
        f.fixes = vec![fix(FixId::Nodelay, "client", &[], None, false)];
        f.replay = Some(replay(1000, modelled));
        let text = said(vec![f], layout);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let with = |modelled| laid_out(modelled, &Layout { verbose: true, ..Layout::default() });
    assert!(!laid_out(1151, &Layout::default()).contains("simulat"), "nobody asked for it");
    assert!(with(1150).contains(": 1.15 s simulated, 1.00 s measured (+15 %)"));
    assert!(with(1151).contains("does not match this capture (1.00 s, +15 %)."));
    assert!(with(849).contains("does not match this capture (1.00 s, -15 %)."));
}

/// A gain of all servers is not had at one of them, unless it holds nearly all of the time.
#[test]
fn where_a_finding_spans_servers_a_fix_is_said_of_so_many() {
    let said = |cause, of: &[i64], connections, id| {
        let mut f = finding(cause, None, of.iter().sum(), 9);
        f.connection_count = connections;
        f.fixes = vec![fix(id, "server", &[], Some(1), false)];
        let named = tcpwhy_analysis::Parameter::Text("10.0.0.2:1".into());
        f.fixes[0].parameters.push(("server", named));
        let mut analysis = analysis(vec![f]);
        let one = |(&ms, port): (&i64, u16)| {
            let mut budget = Budget::default();
            budget.add(cause, Nanos::millis(ms));
            let mut server = sample::servers(&budget).remove(0);
            server.server.port = port;
            server
        };
        analysis.totals.servers = of.iter().zip(1..).map(one).collect();
        plain(|out| {
            overview(out, &analysis, &Capture::default(), &Layout { quiet: true, ..Layout::default() })
        })
    };
    let closer = |of: &[i64], connections| said(Cause::FastRecovery, of, connections, FixId::CloserServer);
    for text in [closer(&[100, 900], 2), closer(&[899, 101], 2)] {
        assert!(text.contains("nearer to each other (on 2 servers)"), "{text}");
    }
    assert!(closer(&[900, 100], 2).contains("nearer to each other (on 10.0.0.2:1)"), "nearly all");
    assert!(closer(&[100, 900], 1).contains("nearer to each other (on 10.0.0.2:1)"), "one connection");
    let inherent = said(Cause::PathDelay, &[100, 900], 1, FixId::CloserServer);
    assert!(inherent.contains("nearer to each other (on 2 servers)"), "connections are not counted");
    assert!(closer(&[100], 2).contains("nearer to each other (on the server)"));
    assert!(
        said(Cause::FastRecovery, &[100, 900], 2, FixId::Application).contains(" (on 10.0.0.2:1)"),
        "where to look next"
    );
}

#[test]
fn a_replay_says_what_of_the_capture_it_is() {
    let of = |exchanges| {
        let mut f = finding(Cause::Nagle, CLIENT, 1000, 1);
        f.fixes = vec![fix(FixId::Nodelay, "client", &[], Some(900), true)];
        f.replay = Some(Box::new(Replay { exchanges, no_help: Vec::new(), ..*replay(753, 719) }));
        said(vec![f], &Layout { width: 120, ..Layout::default() })
    };
    let part = "Replayed: connection 1, 5 of 7 requests: 719 ms simulated, 753 ms measured (-5 %); gains are scaled to all.";
    assert!(of((3, 7)).contains(part), "{}", of((3, 7)));
    let all = "Replayed: connection 1, 7 requests: 719 ms simulated, 753 ms measured (-5 %).";
    assert!(of((1, 7)).contains(all), "{}", of((1, 7)));
}

#[test]
fn what_a_replay_assumes_is_told_to_who_asks_for_all() {
    let laid_out = |verbose| {
        let mut f = finding(Cause::Nagle, CLIENT, 1000, 1);
        f.fixes = vec![fix(FixId::Nodelay, "client", &[], None, false)];
        let mut replay = replay(1000, 1000);
        replay.assumed = vec!["No loss.".into(), "One link.".into()];
        f.replay = Some(replay);
        said(vec![f], &Layout { verbose, ..Layout::default() })
    };
    assert!(laid_out(true).contains("Assumed: No loss. One link."));
    assert!(!laid_out(false).contains("Assumed"));
}

#[test]
fn a_replay_that_two_findings_share_is_said_once() {
    let shared = |verbose| {
        let both = [Cause::Nagle, Cause::DelayedAck].map(|cause| {
            let mut f = finding(cause, CLIENT, 1000, 1);
            f.fixes = vec![fix(FixId::Nodelay, "client", &[], None, false)];
            f.replay = Some(replay(1000, 1000));
            f
        });
        said(both.to_vec(), &Layout { verbose, ..Layout::default() }).matches("Replayed: ").count()
    };
    assert_eq!([shared(false), shared(true)], [1, 2]);
}

#[test]
fn of_the_applications_own_time_a_next_step_is_said_that_saves_nothing() {
    let mut f = finding(Cause::ServerThink, SERVER, 1000, 1);
    f.fixes = vec![fix(
        FixId::Application,
        "server",
        &["Any: At noon.", "Python: dump.", "Go: dump."],
        Some(5000),
        false,
    )];
    f.replay = Some(replay(1000, 1000));
    let text = said(vec![f.clone()], &Layout::default());
    assert!(text.contains("next: Look into the application") && text.contains("At noon."), "{text}");
    assert!(text.contains("Python: dump.") && !text.contains("Go: dump."), "{text}");
    assert!(!text.contains("saves") && !text.contains("Replayed"), "{text}");
    let text = said(vec![f.clone()], &Layout { verbose: true, ..Layout::default() });
    assert!(text.contains("Go: dump.") && !text.contains("-v shows"), "{text}");
    // What was guessed is said as a guess.
    f.fixes[0].guess = Some((tcpwhy_base::Program::Python, tcpwhy_base::Told::Port));
    let text = said(vec![f], &Layout { width: 120, ..Layout::default() });
    assert!(text.contains("(Python is a guess from the port; -v shows other systems)"), "{text}");
}

#[test]
fn savings() {
    let found = finding(Cause::NagleDelayedAck, CLIENT, 40, 1);
    let saves = |ns: Option<i64>, replayed, first| {
        let mut f = fix(FixId::Nodelay, "client", &[], None, replayed);
        f.saves = ns.map(Nanos);
        saving(&found, &f, first)
    };
    assert_eq!(saves(Some(1000), true, false).as_deref(), Some("saves 1.00 µs, predicted"));
    assert_eq!(saves(Some(1000), false, true).as_deref(), Some("saves up to 1.00 µs"));
    assert_eq!(saves(Some(1000), false, false), None, "the same bound is not said twice");
    assert_eq!(saves(Some(0), true, true), None);
    assert_eq!(saves(Some(-1), true, true), None);
    assert_eq!(saves(None, true, true), None);
}

#[test]
fn frames_of_several_files_are_named_with_theirs() {
    let mut f = finding(Cause::Nagle, CLIENT, 1000, 4);
    let frames = |a, b, key: &[u64]| Frames::new(0, a, b, key);
    f.evidence = vec![frames(3, 5, &[3, 5]), frames(8, 9, &[]), frames(12, 12, &[]), frames(19, 22, &[20])];
    let layout = Layout {
        files: vec!["a.pcap".into(), "b.pcap".into()],
        frames_before: vec![0, 10],
        width: 100,
        ..Layout::default()
    };
    let text = said(vec![f.clone()], &layout);
    assert!(text.contains("frames 3>5, 8-9 of a.pcap, 2, 10 of b.pcap\n"), "{text}");
    f.occurrences = 5;
    assert!(said(vec![f], &layout).contains(" 2, 10 of b.pcap, ...\n"));
}

#[test]
fn settings_that_do_nothing_are_said() {
    let mut f = finding(Cause::AcceptQueueFull, SERVER, 1000, 1);
    f.fixes = vec![fix(FixId::ListenBacklog, "server", &["listen(fd, 1024)"], Some(1000), false)];
    same("findings_vain.txt", &said(vec![f], &Layout::default()));
}
