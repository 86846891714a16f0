//! Which fix is offered first, with which of its lines, where the capture shows whom it is for.

use crate::wire::{Tap, Wire, analyze, ms};
use tcpwhy_analysis::{Analysis, Finding};
use tcpwhy_base::{Cause, FixId, Program, Told};

fn finding(analysis: &Analysis, cause: Cause) -> &Finding {
    analysis.findings.iter().find(|f| f.cause == cause).expect("the finding")
}

/// A client writes the head of a request, and its body after so many milliseconds.
fn uploads(program: Program, wait: i64) -> Analysis {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(180);
    w.at(ms(50)).server().ack();
    w.at(ms(30 + wait)).client().write(8 * 1448);
    w.after(ms(20)).server().ack();
    w.after(ms(1)).server().data(50);
    w.after(ms(20)).client().ack();
    let mut segments = w.segments();
    segments.iter_mut().filter(|s| s.len == 180).for_each(|s| s.program = Some(program));
    analyze(&segments)
}

/// curl sends the body 1 s after a head with `Expect: 100-continue` that nothing answered: no larger write shortens that.
#[test]
fn an_upload_of_curl_that_waits_one_second_is_told_of_its_expect_header() {
    let told = |program, wait| {
        let analysis = uploads(program, wait);
        let pause = finding(&analysis, Cause::SenderPause);
        let first = &pause.fixes[0];
        (first.fix, first.how[0].contains("100-continue"), pause.fixes.len())
    };
    for wait in [960, 1_000, 1_090] {
        assert_eq!(told(Program::Libcurl, wait), (FixId::Application, true, 1), "{wait}");
    }
    for (program, wait) in [(Program::Libcurl, 900), (Program::Libcurl, 1_200), (Program::Go, 1_000)] {
        assert_eq!(told(program, wait), (FixId::LargerWrites, false, 2), "{program:?} {wait}");
    }
}

/// What can be asked for together is a question of the server's protocol, where nothing tells what the client is.
#[test]
fn round_trips_in_series_are_told_the_way_of_the_server_s_protocol() {
    let told = |client: Option<Program>, server: Option<Program>| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        for k in 0..20 {
            w.at(ms(30 + 21 * k)).client().data(40);
            w.at(ms(40 + 21 * k)).server().data(5);
        }
        let mut segments = w.segments();
        for s in &mut segments {
            s.program = if s.len == 40 { client } else { server.filter(|_| s.len == 5) };
        }
        let analysis = analyze(&segments);
        let fix = &finding(&analysis, Cause::Chatty).fixes[0];
        assert_eq!(fix.fix, FixId::FewerRoundTrips);
        (fix.how[0].split(':').next().unwrap_or_default().to_owned(), fix.guess)
    };
    let redis = Some((Program::Redis, Told::FirstBytes));
    assert_eq!(told(None, Some(Program::Redis)), ("Redis".into(), redis));
    assert_eq!(told(None, Some(Program::Nginx)), ("Any".into(), None), "the table has no row");
    let ssh = Some((Program::OpenSsh, Told::FirstBytes));
    assert_eq!(told(Some(Program::OpenSsh), Some(Program::Redis)), ("OpenSSH".into(), ssh));
}
