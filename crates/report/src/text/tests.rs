use super::*;
use crate::sample;
use std::{env, fs, path::Path};
use tcpwhy_base::Nanos;

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
    let layout =
        Layout { verbose: true, width: 100, list_exchanges: true, absolute: true, ..Layout::default() };
    overview(&mut text, &sample::analysis(), &sample::capture(), &layout).unwrap();
    compare("verbose.txt", text);
}

#[test]
fn one_connection() {
    let mut text = Vec::new();
    connection(&mut text, &sample::connection(), &sample::capture(), &Layout::default()).unwrap();
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
fn what_wins_most_stands_first() {
    let analysis = sample::analysis();
    let first =
        analysis.findings.iter().find(|f| f.cause.class() == tcpwhy_base::Class::Tcp).unwrap().clone();
    let mut longer = first.clone();
    longer.lost = first.lost + Nanos::millis(1);
    assert!(rank(&longer) < rank(&first), "the longer one, as nothing else tells them apart");
    longer.fixes[0].replayed = true;
    longer.fixes[0].saves = Some(Nanos::micros(10));
    assert!(rank(&first) < rank(&longer), "a replay says that it wins little");
}
