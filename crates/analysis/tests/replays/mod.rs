//! What is taken out of a capture to be played again, and what the model says of each fix.

use super::golden::{self, is_fixed, millis};
use super::{analyze, draw};
use std::fmt::Write as _;
use tcpwhy_analysis::{Analysis, replay};
use tcpwhy_base::{Cause, FixId, Nanos, Random, Step, Turn, Workload};
use tcpwhy_model::{Scenario, run};

/// Scenarios whose packets are explained with all predictions.
const REPLAYED: u64 = 40;

/// What is said of the findings of a scenario: the figures of each, its fixes, and its replay.
fn predictions(n: u64, found: &Analysis) -> String {
    let mut out = String::new();
    for f in &found.findings {
        let Some(r) = &f.replay else { continue };
        let side = f.side.map_or("nobody", |s| s.name());
        let _ = writeln!(out, "{n} {} {side} lost {} share {:.4}", f.cause.id(), millis(f.lost), f.share);
        let (observed, modelled) = (millis(r.observed), millis(r.modelled));
        let [from, to] = [r.exchanges.0, r.exchanges.1];
        let _ = writeln!(out, "  exchanges {from} to {to}: {observed} observed, {modelled} in the model");
        r.assumed.iter().for_each(|a| out.push_str(&format!("  {a}\n")));
        for fix in &f.fixes {
            let saves = fix.saves.map(millis).unwrap_or_default();
            let with =
                fix.predicted.map_or_else(|| "not replayed".into(), |t| format!("{} with it", millis(t)));
            let basis = if fix.replayed { "saves" } else { "saves at most" };
            let _ = writeln!(out, "  {} at {}: {basis} {saves}, {with}", fix.fix.info().id, fix.place);
        }
        if let Some(t) = &r.together {
            let names: Vec<String> =
                t.changes.iter().map(|x| format!("{} at {}", x.0.info().id, x.1)).collect();
            let _ = writeln!(out, "  together: {}: {}", names.join(" + "), millis(t.predicted));
        }
        for none in &r.no_help {
            let _ = writeln!(
                out,
                "  no help: {} at {} ({}): {}",
                none.id,
                none.place,
                none.what,
                millis(none.saves)
            );
        }
    }
    out
}

/// The workload that is taken out of a capture, and what the model says of each fix, to the microsecond: both are
/// deterministic.
#[test]
fn what_the_model_replays() {
    if !is_fixed("ORACLE_SEED") {
        return;
    }
    let mut out = String::new();
    for n in 0..REPLAYED {
        let s = draw(&mut Random(7_000_003 + n));
        let played = run(&s).expect("what is drawn is possible");
        let turn = &s.workload.turns[0];
        // Half of them from the other end.
        let end = u8::from(Turn::bytes(&turn.response) > Turn::bytes(&turn.request)) ^ u8::from(n % 4 == 0);
        let mut found = analyze(&played, end);
        replay::predict(&mut found);
        out.push_str(&predictions(n, &found));
    }
    golden::compare("replays", &out);
}

/// The workload and the settings that are taken out of a connection, a line each.
fn workload(n: u64, x: &replay::Extract) -> String {
    let s = &x.question.scenario;
    let link = (s.links[0].delay, s.links[0].rate, s.mtu);
    let mut out =
        format!("{n} {}.{} at {} {} {link:?}", x.exchanges.0, x.exchanges.1, x.end, millis(x.observed));
    let _ = writeln!(
        out,
        " skip {} of {} requests, {} tls",
        x.question.skip, s.workload.requests, s.workload.tls
    );
    for (h, l) in s.hosts.iter().zip(&s.links) {
        let buffers = (h.sndbuf, h.write_chunk, h.rcvbuf, &h.read_pauses);
        let lost: Vec<String> = l.drops.iter().map(|d| format!("{:?}", d.what)).collect();
        let _ = writeln!(out, "  {} {:?} {buffers:?} {}", h.nodelay, h.initcwnd, lost.join(" "));
    }
    for t in &s.workload.turns {
        let _ = writeln!(out, "  {} {:?} {} {:?}", millis(t.before), t.request, millis(t.think), t.response);
    }
    out
}

/// What is taken out of captures at both ends: sizes and writes, pauses, work, buffers, losses.
#[test]
fn what_is_taken_out_to_be_replayed() {
    if !is_fixed("ORACLE_SEED") {
        return;
    }
    let mut out = String::new();
    for n in 0..2 * REPLAYED {
        let s = draw(&mut Random(9_000_011 + n));
        let played = run(&s).expect("what is drawn is possible");
        let found = analyze(&played, (n % 2) as u8);
        for c in &found.connections {
            // The longest, and the middle of it.
            match replay::extract(c, 1 + n as u32 % 4) {
                Ok(x) => out.push_str(&workload(n, &x)),
                Err(why) => _ = writeln!(out, "{n} {why}"),
            }
        }
    }
    golden::compare("workloads", &out);
}

/// Replays stop when so many events are spent: of how many findings, and of their fixes, a time is predicted.
#[test]
fn how_far_the_budget_of_replays_reaches() {
    let reach = [30_000, 300_000, 600_000, 1_000_000, 1_500_000, 3_000_000, 30_000_000].map(|bytes| {
        let mut s = Scenario::with_path(Nanos::millis(20), Some(100_000_000), Some(100_000), 1500);
        let (request, response) = (vec![Step::Write(40), Step::Write(400)], vec![Step::Write(bytes)]);
        let turn = Turn { before: Nanos::millis(300), request, think: Nanos::millis(5), response };
        s.workload = Workload::serial(turn, 4);
        s.hosts[0].nodelay = false;
        let mut found = analyze(&run(&s).expect("possible"), 1);
        replay::predict(&mut found);
        let replays = found.findings.iter().filter_map(|f| f.replay.as_ref());
        let fixes = found.findings.iter().flat_map(|f| &f.fixes).filter(|f| f.predicted.is_some());
        let useless = found.findings.iter().filter_map(|f| f.replay.as_ref()).map(|r| r.no_help.len());
        (bytes, replays.count(), fixes.count(), useless.sum::<usize>())
    });
    // Bytes, findings, fixes, and what is of no help and nowhere offered.
    assert_eq!(
        reach,
        [
            (30_000, 6, 10, 0),
            (300_000, 8, 12, 0),
            (600_000, 8, 13, 0),
            (1_000_000, 8, 13, 0),
            (1_500_000, 8, 13, 0),
            (3_000_000, 7, 10, 0),
            (30_000_000, 3, 6, 0),
        ]
    );
}

/// A download at a round trip of 20 ms and so many Mbit/s, in writes of 16 KB, which a small buffer holds up
/// if Nagle's algorithm does not.
fn download(bytes: u64, sndbuf: Option<u64>, mbit: u64) -> Scenario {
    let mut s = Scenario::with_path(Nanos::millis(20), Some(mbit * 1_000_000), Some(10_000_000), 1500);
    let (request, response) = (vec![Step::Write(100)], vec![Step::Write(bytes)]);
    s.workload = Workload::serial(Turn { before: Nanos::ZERO, request, think: Nanos::ZERO, response }, 1);
    (s.hosts[1].sndbuf, s.hosts[1].write_chunk, s.hosts[1].nodelay) = (sndbuf, Some(16_384), true);
    s
}

/// A transfer that is too large for all of its replays: what its beginning promises is what the whole of it does.
#[test]
fn the_beginning_of_a_large_transfer_stands_for_all_of_it() {
    let time = |s: &Scenario| run(s).expect("possible").elapsed;
    let cases = [
        (download(60_000_000, Some(16_384), 400), FixId::UnsetSndbuf, download(60_000_000, None, 400)),
        (download(120_000_000, None, 300), FixId::FasterLink, download(120_000_000, None, 600)),
    ];
    for (seen, fix, with) in cases {
        let bytes = seen.workload.totals()[1];
        let mut found = analyze(&run(&seen).expect("possible"), 1);
        replay::predict(&mut found);
        let f = &found.findings[0];
        let r = f.replay.as_ref().expect("a replay");
        assert!(
            r.assumed.iter().any(|a| a.starts_with(&format!("Of its {}.0 MB", bytes / 1_000_000))),
            "{:?}",
            r.assumed
        );
        assert!(r.error().abs() < 0.03, "{} instead of {}", r.modelled, r.observed);
        let fix = f.fixes.iter().find(|x| x.fix == fix).expect("the fix");
        let (gain, truth) = (r.modelled - fix.predicted.expect("a time"), time(&seen) - time(&with));
        let off = (gain - truth).0 as f64 / r.observed.0 as f64;
        assert!(fix.replayed && off.abs() < 0.03, "{gain} instead of {truth}");
    }
}

/// A buffer a little smaller may be filled by as many packets: it is made smaller again.
#[test]
fn a_buffer_is_corrected_until_it_shows() {
    for bytes in [3_000_000, 9_000_000, 60_000_000] {
        let mut found = analyze(&run(&download(bytes, Some(65_536), 200)).expect("possible"), 1);
        replay::predict(&mut found);
        let r = found.findings[0].replay.as_ref().expect("a replay");
        assert!(r.error().abs() < 0.13, "{bytes} bytes: {} instead of {}", r.modelled, r.observed);
    }
}

/// Each request has a connection of its own. Kept connections save all handshakes but one; slow start only
/// where they do not lie idle so long that their window is taken back.
#[test]
fn a_kept_connection_lies_idle_between_requests() {
    let saved = |pause: Nanos| {
        let mut s = Scenario::with_path(Nanos::millis(60), None, None, 1500);
        let (request, response) = (vec![Step::Write(100)], vec![Step::Write(60_000)]);
        let turn = Turn { before: pause, request, think: Nanos::ZERO, response };
        s.workload = Workload { reconnect_every: 1, ..Workload::serial(turn, 4) };
        let mut found = analyze(&run(&s).expect("possible"), 1);
        replay::predict(&mut found);
        [Cause::Handshake, Cause::SlowStart].map(|cause| {
            let f = found.findings.iter().find(|f| f.cause == cause).expect("a finding");
            let fix = f.fixes.iter().find(|fix| fix.fix == FixId::ReuseConnections && fix.replayed);
            fix.and_then(|fix| fix.saves).map(|saves| saves.0 / 10_000_000)
        })
    };
    assert_eq!(saved(Nanos::ZERO), [Some(18), Some(35)], "three of four, in hundredths of a second");
    assert_eq!(saved(Nanos::millis(1_500)), [Some(18), None]);
}
