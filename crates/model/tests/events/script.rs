//! A run as a list of packets, one line each, to be compared with what a test says.

use std::fmt::Write;
use tcpwhy_base::{Chosen, Link, Nanos, Step, Turn, What, Workload};
use tcpwhy_model::{Host, Outcome, Passage, Scenario, flights, run, stories};

/// Milliseconds, to the nanosecond, without needless digits.
pub(crate) fn time(t: Nanos) -> String {
    let sign = if t.0 < 0 { "-" } else { "" };
    let ns = t.0.unsigned_abs();
    let text = format!("{sign}{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// One packet: when it left, whose it is (`>` the client's, `<` the server's), of which connection (the first
/// is not named), what it holds, and why it left no earlier. Payload is `first..next` in sequence numbers (1
/// is the first byte).
pub(crate) fn line(p: &Passage) -> String {
    let k = &p.packet;
    let mut out = format!("{} {}", time(p.sent), if k.from == 0 { '>' } else { '<' });
    if k.conn > 0 {
        write!(out, " @{}", k.conn).expect("a string");
    }
    if k.syn {
        out += " syn";
    }
    if k.len > 0 {
        write!(out, " {}..{}", k.seq, k.seq + u64::from(k.len)).expect("a string");
    }
    for (on, word) in [
        (k.fin, " fin"),
        (k.rst, " rst"),
        (k.psh, " psh"),
        (k.probe, " probe"),
        (k.dsack, " dsack"),
        (k.delayed, " delayed"),
        (k.repeat, " again"),
        (p.arrived.is_none(), " lost"),
    ] {
        out += if on { word } else { "" };
    }
    if k.has_ack && k.len == 0 {
        write!(out, " ack {}", k.ack).expect("a string");
    }
    for (from, to) in k.sack.iter().take(usize::from(k.sacks)) {
        write!(out, " sack {from}..{to}").expect("a string");
    }
    if let Some(cause) = k.cause {
        write!(out, " {}", cause.id()).expect("a string");
    }
    out
}

/// The lines of a script: what follows `#` and empty lines say nothing, spaces count once.
fn lines(script: &str) -> Vec<String> {
    let words = |l: &str| l.split('#').next().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
    script.lines().map(words).filter(|l| !l.is_empty()).collect()
}

/// Compares lines with a script.
#[track_caller]
pub(crate) fn same(got: &[String], script: &str) {
    let want = lines(script);
    let first = (0..got.len().max(want.len())).find(|&i| got.get(i) != want.get(i));
    let shown = |at: usize| (at + 1, got.get(at), want.get(at));
    assert!(first.is_none(), "line, got, wanted: {:?}; all:\n{}", first.map(shown), got.join("\n"));
}

/// Runs a scenario and compares all its packets.
#[track_caller]
pub(crate) fn packets(s: &Scenario, script: &str) -> Outcome {
    let out = run(s).expect("possible");
    same(&out.passages.iter().map(line).collect::<Vec<_>>(), script);
    out
}

/// Runs a scenario and compares those packets that `wanted` picks.
#[track_caller]
pub(crate) fn some(s: &Scenario, wanted: impl Fn(&Passage) -> bool, script: &str) -> Outcome {
    let out = run(s).expect("possible");
    same(&out.passages.iter().filter(|p| wanted(p)).map(line).collect::<Vec<_>>(), script);
    out
}

/// Runs a scenario and compares the windows that the client's bare ACKs offer: each that differs from the one before.
#[track_caller]
pub(crate) fn windows(s: &Scenario, script: &str) {
    let out = run(s).expect("possible");
    let mut acks: Vec<&Passage> =
        out.passages.iter().filter(|p| p.packet.from == 0 && p.packet.is_pure_ack()).collect();
    acks.dedup_by_key(|p| p.packet.window);
    let said = |p: &&Passage| format!("{} ack {} window {}", time(p.sent), p.packet.ack, p.packet.window);
    same(&acks.iter().map(said).collect::<Vec<_>>(), script);
}

/// Runs a scenario and compares its flights: when the first and the last segment left, how many there were,
/// their payload.
#[track_caller]
pub(crate) fn bursts(s: &Scenario, script: &str) -> Outcome {
    let out = run(s).expect("possible");
    let said = |f: &tcpwhy_model::Flight| {
        let mut text = format!("{} {}", time(f.start), if f.from == 0 { '>' } else { '<' });
        if f.end > f.start {
            write!(text, " until {}", time(f.end)).expect("a string");
        }
        write!(text, " {} x {}", f.segments, f.bytes).expect("a string");
        for (n, word) in [(f.repeats, "again"), (f.lost, "lost")] {
            if n > 0 {
                write!(text, " {n} {word}").expect("a string");
            }
        }
        if let Some(cause) = f.cause {
            write!(text, " {}", cause.id()).expect("a string");
        }
        text
    };
    same(&flights(s, &out).iter().filter(|f| !f.syn).map(said).collect::<Vec<_>>(), script);
    out
}

/// Runs a scenario and compares what the spans of every connection say at one end: setup, then each exchange.
#[track_caller]
pub(crate) fn spans(s: &Scenario, end: u8, script: &str) {
    let out = run(s).expect("possible");
    let mut got = Vec::new();
    for story in stories(s, &out, end) {
        let said = |x: &tcpwhy_model::Span| {
            let side = x.side.map_or(String::new(), |side| format!(" {side:?}").to_lowercase());
            format!("{}..{} {}{side}", time(x.start), time(x.end), x.cause.id())
        };
        got.extend(story.setup.iter().map(said));
        for x in &story.exchanges {
            let setup = if x.setup { " setup" } else { "" };
            got.push(format!("turn {}{setup} {}..{}", x.turn, time(x.start), time(x.end)));
            got.extend(x.spans.iter().map(said));
        }
    }
    same(&got, script);
}

/// A path of `rtt` ms without a bottleneck between hosts whose applications run at once, whose copies take no time and
/// whose ticks (4 ms) fall on the moment of `connect`. Nagle's algorithm is off at both.
pub(crate) fn path(rtt: i64) -> Scenario {
    let mut s = Scenario::with_path(Nanos::millis(rtt), None, None, 1500);
    for h in &mut s.hosts {
        h.nodelay = true;
        (h.stack.wake, h.stack.turn, h.stack.copy_rate) = (Nanos::ZERO, Nanos::ZERO, u64::MAX);
        // A run starts at 1 ns.
        h.stack.phase = Nanos(1);
    }
    s
}

/// One request on it: calls of `write` up and down.
pub(crate) fn request(mut s: Scenario, up: &[u64], down: &[u64]) -> Scenario {
    let writes = |sizes: &[u64]| sizes.iter().map(|&n| Step::Write(n)).collect();
    s.workload = Workload::serial(Turn { request: writes(up), response: writes(down), ..Turn::default() }, 1);
    s
}

/// Messages of writes and pauses.
pub(crate) fn steps(mut s: Scenario, up: Vec<Step>, down: Vec<Step>) -> Scenario {
    s.workload = Workload::serial(Turn { request: up, response: down, ..Turn::default() }, 1);
    s
}

/// A change of both hosts.
pub(crate) fn both(mut s: Scenario, change: impl Fn(&mut Host)) -> Scenario {
    s.hosts.iter_mut().for_each(change);
    s
}

/// A change of one host: 0 the client, 1 the server.
pub(crate) fn host(mut s: Scenario, side: usize, change: impl FnOnce(&mut Host)) -> Scenario {
    change(&mut s.hosts[side]);
    s
}

/// A change of one direction: 0 up, 1 down.
pub(crate) fn link(mut s: Scenario, direction: usize, change: impl FnOnce(&mut Link)) -> Scenario {
    change(&mut s.links[direction]);
    s
}

/// Packets of a direction that are lost.
pub(crate) fn lose(s: Scenario, direction: usize, what: &[What]) -> Scenario {
    link(s, direction, |l| l.drops = what.iter().map(|&what| Chosen { what, connection: 0 }).collect())
}

/// Milliseconds.
pub(crate) fn ms(n: i64) -> Nanos {
    Nanos::millis(n)
}
