//! The first sentences of small made-up analyses.

use super::*;
use crate::sample;
use tcpwhy_analysis::{Facts, Quality, Totals};

fn said(times: &[(Cause, i64)]) -> String {
    said_of(Totals::default(), times)
}

fn said_of(totals: Totals, times: &[(Cause, i64)]) -> String {
    let analysis = analysis_of(totals, times);
    headline(&analysis, &Capture::default(), &Answer::new(&analysis))
}

fn analysis_of(mut totals: Totals, times: &[(Cause, i64)]) -> Analysis {
    (totals.exchanges, totals.connections) = (34, 1);
    times.iter().for_each(|&(cause, ms)| totals.budget.add(cause, Nanos::millis(ms)));
    totals.servers = sample::servers(&totals.budget);
    Analysis { connections: vec![Box::new(sample::connection())], totals, ..Analysis::default() }
}

#[test]
fn a_fault_of_tcp() {
    assert_eq!(
        said(&[(Cause::NagleDelayedAck, 1162), (Cause::ServerThink, 1670)]),
        "34 requests to 10.0.0.2:25 in 2.83 s (median 20.0 ms, p95 45.0 ms). 59 % (1.67 s) the server application \
         worked. 1.16 s (41 %) of it is Nagle × delayed ACK."
    );
    assert!(
        said(&[(Cause::SlowStart, 300), (Cause::DelayedAck, 200), (Cause::PathDelay, 500)])
            .ends_with("500 ms (50 %) of it is TCP's, most of that slow start (300 ms).")
    );
}

#[test]
fn most_is_more_than_half_and_lost_packets_are_one_thing_however_that_was_found() {
    use Cause::{FastRecovery, Queueing, RetransmissionTimeout, TailLossProbe};
    let path = |times: &[(Cause, i64)]| {
        let text = said(&[times, &[(Cause::PathDelay, 100)]].concat());
        text.rsplit_once(" of it is ").expect("a verdict").1.to_owned()
    };
    assert_eq!(path(&[(FastRecovery, 2310), (RetransmissionTimeout, 2290), (Queueing, 60)]), "lost packets.");
    assert_eq!(path(&[(RetransmissionTimeout, 950), (TailLossProbe, 50)]), "timeouts after lost packets.");
    assert_eq!(
        path(&[(FastRecovery, 300), (TailLossProbe, 210), (Queueing, 490)]),
        "the path's, most of that lost packets (510 ms)."
    );
    // Half, as far as it is printed.
    let half = path(&[(Queueing, 10_040), (FastRecovery, 10_038)]);
    assert!(half.starts_with("the path's, among it ") && half.ends_with("(10.0 s)."), "{half}");
    assert_eq!(
        path(&[(FastRecovery, 300), (TailLossProbe, 200), (Queueing, 500)]),
        "the path's, among it queues on the path (500 ms)."
    );
}

#[test]
fn a_server_is_named_with_what_it_has_of_a_time() {
    let said = |cause: Cause, of: &[i64]| {
        let mut totals = Totals::default();
        for (&ms, port) in of.iter().zip(1..) {
            let mut budget = tcpwhy_analysis::Budget::default();
            budget.add(cause, Nanos::millis(ms));
            totals.budget.add_all(&budget);
            let mut servers = sample::servers(&budget);
            servers[0].server.port = port;
            totals.servers.extend(servers);
        }
        let analysis =
            Analysis { connections: vec![Box::new(sample::connection())], totals, ..Analysis::default() };
        let text = headline(&analysis, &Capture::default(), &Answer::new(&analysis));
        text.rsplit_once(" is ").expect("a verdict").1.to_owned()
    };
    let distance = |of: &[i64]| said(Cause::PathDelay, of);
    assert_eq!(distance(&[100]), "the distance.");
    assert_eq!(distance(&[10, 90]), "the distance, in requests to 10.0.0.2:2.");
    assert_eq!(distance(&[11, 89]), "the distance, 89.0 ms of that in requests to 10.0.0.2:2.");
    assert_eq!(distance(&[24, 25, 23, 22, 6]), "the distance, 25.0 ms of that in requests to 10.0.0.2:2.");
    assert_eq!(distance(&[24, 24, 24, 22, 6]), "the distance, spread over many servers.");
    assert_eq!(said(Cause::SlowStart, &[60, 40]), "slow start, 60.0 ms of that in requests to 10.0.0.2:1.");
}

#[test]
fn what_both_sides_did_is_not_said_of_one() {
    let said = |cause: Cause, client: i64, server: i64| {
        let of = |side, ms| {
            let mut f = sample::analysis().findings.swap_remove(0);
            (f.cause, f.side, f.lost, f.idle, f.tail) =
                (cause, Some(side), Nanos::millis(ms), Nanos::ZERO, Nanos::ZERO);
            f
        };
        let findings = [of(Side::Client, client), of(Side::Server, server), of(Side::Client, client)];
        clause(cause, side(&findings, cause))
    };
    assert_eq!(
        said(Cause::SenderPause, 13_200, 1620),
        "the applications paused in the middle of a message (the client for 26.4 s)"
    );
    assert_eq!(
        said(Cause::SenderPause, 10, 2000),
        "the server application paused in the middle of a message"
    );
    assert_eq!(said(Cause::SlowReader, 30, 940), "the ends did not read (the server for 940 ms)");
    assert_eq!(said(Cause::ServerThink, 0, 90), "the server application worked");
}

#[test]
fn what_the_server_may_have_ignored_is_not_the_paths_alone() {
    let mut totals = Totals::default();
    totals.exchanges = 1;
    let times = [(Cause::SynRetransmit, 1000), (Cause::RetransmissionTimeout, 900)];
    times.iter().for_each(|&(cause, ms)| totals.budget.add(cause, Nanos::millis(ms)));
    let mut finding = sample::analysis().findings.swap_remove(0);
    (finding.cause, finding.lost) = (Cause::SynRetransmit, Nanos::secs(1));
    let mut analysis =
        Analysis { connections: vec![Box::new(sample::connection())], totals, ..Analysis::default() };
    for (side, whose) in [
        (None, "the path's or the server's"),
        (Some(Side::Server), "the path's or the server's"),
        (Some(Side::Network), "the path's"),
    ] {
        finding.side = side;
        analysis.findings = vec![finding.clone()];
        let text = headline(&analysis, &Capture::default(), &Answer::new(&analysis));
        let end = format!(" 1.90 s (100 %) of it is {whose}, most of that lost or unanswered SYNs (1.00 s).");
        assert!(text.ends_with(&end), "{text}");
    }
}

#[test]
fn a_capture_that_begins_in_the_middle_says_so_where_it_is_about_such_connections() {
    let waited = |begun: &[(bool, i64)]| {
        let one = |&(begun, ms): &(bool, i64)| {
            let mut c = sample::connection();
            c.budget = tcpwhy_analysis::Budget::default();
            c.budget.add(Cause::ServerThink, Nanos::millis(ms));
            if begun {
                c.quality.set(Quality::MIDSTREAM);
            }
            Box::new(c)
        };
        let connections: Vec<_> = begun.iter().map(one).collect();
        let mut totals = Totals::default();
        for c in &connections {
            totals.add_connection(c);
            totals.budget.add_all(&c.budget);
            totals.connections += 1;
        }
        middle(&Analysis { connections, totals, ..Analysis::default() })
    };
    let of = |begun: &[bool]| waited(&begun.iter().map(|&b| (b, 10)).collect::<Vec<_>>());
    assert_eq!((of(&[]), of(&[false]), of(&[true, false, false])), (None, None, None));
    let one = "The capture begins in the middle of the connection: how it was opened is not known.";
    assert_eq!(of(&[true]).as_deref(), Some(one));
    assert!(of(&[true, true]).is_some_and(|t| t.contains("of all 2 connections: how they were")));
    assert!(of(&[true, true, false]).is_some_and(|t| t.contains("of 2 of 3 connections")));
    let silent = waited(&[(true, 10), (true, 0), (false, 0)]);
    assert!(silent.is_some_and(|t| t.contains("of 2 of 3 connections")), "as many as the note counts");
}

/// What opening connections took that carried nothing is no time of requests, and not the verdict.
#[test]
fn handshakes_of_empty_connections_are_told_apart() {
    let times = [(Cause::Handshake, 3_050), (Cause::ServerThink, 200), (Cause::PathDelay, 300)];
    let empty = |n, ms| {
        let mut totals = Totals::default();
        totals.empty = (n, Nanos::millis(ms));
        totals
    };
    let with = said_of(empty(100, 3_020), &times);
    assert!(with.starts_with("34 requests to 10.0.0.2:25 in 530 ms "), "{with}");
    assert!(with.contains("Nothing is wrong with TCP here: 57 % (300 ms) is the distance."), "{with}");
    let told = "100 connections carried nothing (health checks do that): no request waited for the handshakes of those, 3.02 s of what is listed.";
    assert!(with.ends_with(told), "{with}");
    assert!(said_of(empty(1, 30), &times).contains("1 connection carried nothing (health checks do that): no request waited for the handshakes of that one, 30.0 ms"));
    assert!(said(&times).contains("86 % (3.05 s) is opening connections."));
    // Without any request they are all that there is.
    let mut totals = empty(100, 3_050);
    totals.budget.add(Cause::Handshake, Nanos::millis(3_050));
    totals.connections = 100;
    let analysis =
        Analysis { connections: vec![Box::new(sample::connection())], totals, ..Analysis::default() };
    let alone = headline(&analysis, &Capture::default(), &Answer::new(&analysis));
    assert!(alone.contains("without a request, in 3.05 s") && !alone.contains("carried nothing"), "{alone}");
}

#[test]
fn answers_that_resets_cut_off_are_told() {
    assert_eq!(cut_off(0), None);
    let lost = "before its server had closed: if more was to come, that is lost.";
    assert_eq!(cut_off(1), Some(format!("One answer ended with a reset of its connection {lost}")));
    let two = format!("2 answers ended with a reset of their connections {lost}");
    assert_eq!(cut_off(2).as_ref(), Some(&two));
    let mut totals = Totals::default();
    totals.cut_off = 2;
    assert!(said_of(totals, &[(Cause::Bandwidth, 20)]).ends_with(&two));
}

#[test]
fn resets_instead_of_answers_are_told() {
    assert_eq!(reset([0, 0]), None);
    let begins = |resets, with: &str| {
        let said = reset(resets).unwrap_or_default();
        assert!(said.starts_with(with), "{said}");
    };
    begins(
        [1, 0],
        "One request met a reset instead of an answer, before its server had acknowledged a byte:",
    );
    begins(
        [2, 0],
        "2 requests met resets instead of an answer, before their server had acknowledged a byte:",
    );
    begins([0, 1], "One request met a reset instead of an answer, though its server had it:");
    begins(
        [1, 2],
        "3 requests met resets instead of an answer, 1 of them before their server had acknowledged a byte",
    );
    // Something is wrong, though it is not TCP.
    let mut totals = Totals::default();
    assert!(said_of(totals.clone(), &[(Cause::ServerThink, 20)]).contains("Nothing is wrong with TCP here"));
    totals.reset = [0, 2];
    assert!(!said_of(totals, &[(Cause::ServerThink, 20)]).contains("Nothing is wrong"));
}

#[test]
fn requests_that_clients_gave_up_are_told() {
    let waits = |waits: &[i64]| {
        let mut totals = Totals::default();
        for &ms in waits {
            let mut c = crate::sample::analysis().connections.remove(0);
            c.gave_up = Some(Nanos::millis(ms));
            totals.add_connection(&c);
        }
        gave_up(totals.gave_up).unwrap_or_default()
    };
    assert_eq!(waits(&[]), "");
    assert_eq!(waits(&[500]), "One request was given up by its client after 500 ms, before its answer came.");
    let three =
        "3 requests were given up by their clients after 480 ms to 1.20 s, before their answers came.";
    assert_eq!(waits(&[500, 1_200, 480]), three);
}

#[test]
fn requests_that_came_too_late_are_told() {
    assert_eq!(too_late(0), None);
    let one = "One request came to a server that had just closed its connection and answered with a reset:";
    assert!(too_late(1).is_some_and(|t| t.starts_with(one)));
    let mut totals = Totals::default();
    totals.too_late = 3;
    let said = said_of(totals, &[(Cause::Bandwidth, 20)]);
    assert!(
        said.contains(
            "3 requests came to a server that had just closed their connections and answered with resets:"
        ),
        "{said}"
    );
}

#[test]
fn quantiles_are_of_the_requests_whose_time_is_known() {
    let said = |without: u64, with: u64| {
        let mut totals = Totals::default();
        totals.exchanges = without + with;
        totals.budget.add(Cause::ServerThink, Nanos::millis(20));
        let mut times = tcpwhy_analysis::Distribution::default();
        (0..without).for_each(|_| times.add(Nanos::ZERO, std::iter::empty()));
        (0..with).for_each(|_| times.add(Nanos::millis(20), std::iter::empty()));
        totals.servers = sample::servers(&totals.budget);
        totals.servers[0].times = times;
        let analysis =
            Analysis { connections: vec![Box::new(sample::connection())], totals, ..Analysis::default() };
        headline(&analysis, &Capture::default(), &Answer::new(&analysis))
    };
    let head = "35 requests to 10.0.0.2:25 in 20.0 ms";
    let part = said(21, 14);
    let of = "(median 20.0 ms, p95 20.0 ms, of the 14 whose time the capture shows)";
    assert!(part.starts_with(&format!("{head} {of}.")), "{part}");
    assert!(said(0, 35).starts_with(&format!("{head} (median 20.0 ms, p95 20.0 ms).")));
    assert!(said(35, 0).starts_with(&format!("{head}.")), "no time is known");
}

/// Which of the two it was does not show: neither is named alone.
#[test]
fn answers_that_may_be_corked_are_no_work_for_sure() {
    let mut analysis =
        analysis_of(Totals::default(), &[(Cause::ServerThink, 2_736), (Cause::PathDelay, 240)]);
    let mut finding = sample::analysis().findings.swap_remove(0);
    (finding.cause, finding.side, finding.lost) =
        (Cause::ServerThink, Some(Side::Server), Nanos::millis(2_736));
    finding.facts = Facts::TimedAnswer { wait: Nanos::millis(228), held: 500, ticks: 0 };
    finding.unsure = Nanos::millis(2_052);
    let said = |analysis: &Analysis| headline(analysis, &Capture::default(), &Answer::new(analysis));
    analysis.findings = vec![finding];
    let text = said(&analysis);
    assert!(
        text.contains("worked, or its kernel held answers until a timer (TCP_CORK, MSG_MORE)."),
        "{text}"
    );
    assert!(!text.contains("Nothing is wrong"), "{text}");
    analysis.findings[0].unsure = Nanos::millis(1_000);
    assert!(
        said(&analysis)
            .contains("Nothing is wrong with TCP here: 92 % (2.74 s) the server application worked.")
    );
}

#[test]
fn nothing_wrong_is_said_as_plainly() {
    assert!(
        said(&[(Cause::Nagle, 20), (Cause::ServerThink, 5900), (Cause::PathDelay, 160)])
            .ends_with("Nothing is wrong with TCP here: 97 % (5.90 s) the server application worked.")
    );
    assert!(
        said(&[(Cause::SlowReader, 4250), (Cause::Bandwidth, 380)])
            .ends_with("Nothing is wrong with TCP here: 92 % (4.25 s) the peer did not read.")
    );
    // Nor where packets were lost, or a part is not explained.
    let wrong = |causes: &[(Cause, i64)]| {
        let text = said(causes);
        assert!(!text.contains("Nothing is wrong"), "{text}");
        text
    };
    assert!(
        wrong(&[(Cause::RetransmissionTimeout, 400), (Cause::PathDelay, 600)])
            .ends_with(" 60 % (600 ms) is the distance. 400 ms (40 %) of it is timeouts after lost packets.")
    );
    assert!(wrong(&[(Cause::Unexplained, 90)]).contains("100 % (90.0 ms) could not be explained"));
    wrong(&[(Cause::Unexplained, 30), (Cause::PathDelay, 70)]);
    wrong(&[(Cause::FastRecovery, 90), (Cause::PathDelay, 10)]);
}

#[test]
fn what_could_be_avoided_is_named_and_something_is_wrong() {
    let full =
        |ms| said(&[(Cause::ServerThink, 560), (Cause::AcceptQueueFull, ms), (Cause::PathDelay, 440 - ms)]);
    let text = full(430);
    assert!(
        text.ends_with(
            " 56 % (560 ms) the server application worked. 43 % (430 ms) the peer accepted connections late: its \
             accept queue was full."
        ) && !text.contains("Nothing is wrong"),
        "{text}"
    );
    assert!(!full(100).contains("Nothing is wrong"), "a tenth");
    assert!(full(99).contains("Nothing is wrong") && !full(99).contains("accept queue"));
    // An application that reads late does its own work late.
    assert!(said(&[(Cause::ServerThink, 560), (Cause::SlowReader, 440)]).contains("Nothing is wrong"));
}

#[test]
fn a_server_that_asked_another_one_may_have_waited_for_that() {
    let mut budget = tcpwhy_analysis::Budget::default();
    budget.add(Cause::ServerThink, Nanos::secs(5));
    let mut servers = sample::servers(&budget);
    let mut said = |with: bool| {
        let other = Endpoint { ip: [10, 0, 0, 3].into(), port: 9001 };
        servers[0].asks = if with { vec![other] } else { Vec::new() };
        let mut totals = Totals::default();
        (totals.budget, totals.servers) = (budget.clone(), servers.clone());
        let analysis =
            Analysis { connections: vec![Box::new(sample::connection())], totals, ..Analysis::default() };
        headline(&analysis, &Capture::default(), &Answer::new(&analysis))
    };
    assert!(
        said(false)
            .ends_with("Nothing is wrong with TCP here: 100 % (5.00 s) the server application worked.")
    );
    let text = said(true);
    assert!(text.ends_with(
        "in 5.00 s. 100 % (5.00 s) the server application worked, or waited for 10.0.0.3:9001, whose connections are \
         left out here."
    ), "{text}");
}

#[test]
fn one_request_of_many_that_took_most() {
    let said = |longest| {
        let mut times = tcpwhy_analysis::Distribution::default();
        for t in [10, 10, longest] {
            times.add(Nanos::millis(t), std::iter::empty());
        }
        let requests = Nanos::millis(20 + longest);
        one_of_many(&Answer { times, requests, count: 3, ..Answer::default() })
    };
    assert_eq!(said(20), None, "half");
    assert_eq!(said(21).as_deref(), Some("One request took 21.0 ms of it (51 %)."));
}

#[test]
fn captures_that_lie_years_apart() {
    assert_eq!(span(Nanos::secs(2 * 86_400) - Nanos(1)), "172800 s");
    assert_eq!(span(Nanos::secs(2 * 86_400)), "2 days");
}

#[test]
fn empty_captures() {
    let analysis = Analysis::default();
    let part_of = |partial, packets, tcp_packets| {
        let capture = Capture { packets, tcp_packets, partial, ..Capture::default() };
        headline(&analysis, &capture, &Answer::new(&analysis))
    };
    let said = |packets, tcp_packets| part_of(false, packets, tcp_packets);
    assert!(said(0, 0).contains("no packets"));
    for packets in [0, 7] {
        let capture = Capture { packets, of_command: true, ..Capture::default() };
        let said = headline(&analysis, &capture, &Answer::new(&analysis));
        assert!(said.contains("passed the network of the command"), "{said}");
        assert!(!said.contains("filter") && !said.contains("tcpdump"), "nobody filtered: {said}");
    }
    assert!(said(7, 0).contains("7 packets, none of them TCP"));
    assert!(!said(7, 7).contains("--filter"), "nobody gave one");
    assert!(part_of(true, 7, 7).contains("--filter"));
}
