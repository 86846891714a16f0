use super::*;
use crate::sample;
use std::{env, fs, path::Path};
use tcpwhy_analysis::{Finding, Frames, Span};
use tcpwhy_base::Cause;

/// `UPDATE=1 cargo test -p tcpwhy-report` rewrites the snapshots.
fn compare(name: &str, text: Vec<u8>) {
    let text = anstream::adapter::strip_str(std::str::from_utf8(&text).unwrap()).to_string();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(name);
    if env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} differs (UPDATE=1 rewrites it):\n{text}", path.display());
}

#[test]
fn the_first_screen() {
    let mut text = Vec::new();
    overview(&mut text, &sample::analysis(), &sample::capture(), &Layout::default()).unwrap();
    compare("overview.txt", text);
}

#[test]
fn everything_in_full() {
    let mut text = Vec::new();
    let layout = Layout {
        verbose: true,
        width: 100,
        slower_than: Some(Nanos::ZERO),
        absolute: true,
        ..Layout::default()
    };
    overview(&mut text, &sample::analysis(), &sample::capture(), &layout).unwrap();
    compare("verbose.txt", text);
}

#[test]
fn one_connection() {
    let mut text = Vec::new();
    let analysis = sample::analysis();
    connection(&mut text, &analysis, &analysis.connections[0], &sample::capture(), &Layout::default())
        .unwrap();
    compare("connection.txt", text);
}

#[test]
fn a_question() {
    let mut text = Vec::new();
    let ask = |text: &mut Vec<u8>, cause, evidence: &[String], page| {
        why_not(text, &sample::analysis(), cause, evidence, page, &Layout::default()).unwrap();
    };
    ask(&mut text, tcpwhy_base::Cause::NagleDelayedAck, &[], None);
    ask(&mut text, tcpwhy_base::Cause::DelayedAck, &["no ACK came late".into()], Some("- A late ACK."));
    ask(&mut text, tcpwhy_base::Cause::HostDelay, &[], None);
    compare("why_not.txt", text);
}

#[test]
fn a_fix_that_the_capture_refutes_is_not_offered_and_it_is_said_why() {
    let mut f = sample::analysis().findings.into_iter().find(|f| !f.fixes.is_empty()).unwrap();
    let refuted = tcpwhy_analysis::Refuted::new(f.fixes[0].fix, "one was seen at work");
    f.refuted.push(refuted);
    let said = |f: &Finding, verbose| {
        let mut out = Vec::new();
        let layout = Layout { verbose, width: 120, ..Layout::default() };
        findings::one(&mut out, f, &mut findings::Said::default(), &layout).unwrap();
        String::from_utf8(out)
            .unwrap()
            .contains("Not offered: \"Set TCP_NODELAY on the writing side\", because one was seen at work.")
    };
    assert!(!said(&f, false) && said(&f, true), "another one is offered");
    f.fixes.clear();
    assert!(said(&f, false), "none is left");
}

#[test]
fn what_took_longer_is_listed_over_all_connections_or_it_is_said_that_nothing_did() {
    let said = |analysis: &tcpwhy_analysis::Analysis, limit| {
        let mut out = Vec::new();
        let layout = Layout { slower_than: Some(Nanos::millis(limit)), ..Layout::default() };
        overview(&mut out, analysis, &sample::capture(), &layout).unwrap();
        String::from_utf8(out).unwrap()
    };
    let mut analysis = sample::analysis();
    let n = analysis.connections[0].exchanges.len();
    let text = said(&analysis, 0);
    assert!(text.starts_with(&format!("{n} exchanges of all connections took longer than 0 ns")), "{text}");
    analysis.connections[0].exchanges.clear();
    assert!(said(&analysis, 70).starts_with("No exchange took longer than 70.0 ms.\n"));
}

/// The exchange to look at is the one that waited longest, also where stamps lie as far apart as they can.
#[test]
fn hostile_times_are_looked_at_closer() {
    let mut analysis = sample::analysis();
    let far = |n: usize| {
        let span = Span::new(Cause::NagleDelayedAck, None, Nanos::ZERO, Nanos::MAX, Frames::default());
        vec![span; n]
    };
    let x = analysis.connections[0].exchanges[0].clone();
    let [mut once, mut twice] = [x.clone(), x];
    (once.id, once.start, once.end, once.spans) = (11, Nanos::ZERO, Nanos(i64::MAX - 1), far(1));
    (twice.id, twice.start, twice.end, twice.spans) = (12, Nanos::ZERO, Nanos::MAX, far(2));
    for (hostile, seen) in [(once, 11), (twice, 12)] {
        analysis.connections[0].exchanges.push(hostile);
        let mut text = Vec::new();
        overview(&mut text, &analysis, &sample::capture(), &Layout::default()).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(&format!("--exchange {seen}\n")), "{text}");
    }
}
