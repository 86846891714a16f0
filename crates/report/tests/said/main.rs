//! What is said, whole: outputs of small made-up analyses against committed files in `snapshots`, and numbers just
//! below and above the boundaries. `UPDATE=1 cargo test -p tcpwhy-report` rewrites the files; their diff is what a
//! change of a sentence or a place does.

mod captured;
mod compare;
mod findings;
mod graph;
mod json;
mod ladder;
mod numbers;
mod page;
mod predict;
#[path = "../../src/sample.rs"]
mod sample;
mod sweep;
mod text;
mod timeline;

use std::{env, fs, io, path::Path};
use tcpwhy_analysis::{Extremes, Finding, Fix, Frames, Span};
use tcpwhy_base::{Cause, End, FixId, Kind, Nanos, Side, TcpFlags};
use tcpwhy_report::{Capture, Warning};
use tcpwhy_trace::Packet;

/// `text` is what the committed file holds.
#[track_caller]
fn same(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(name);
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, text).expect("the folder of snapshots can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} differs (UPDATE=1 rewrites it):\n{text}", path.display());
}

/// What `write` writes, without colours.
fn plain(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    anstream::adapter::strip_str(&coloured(write)).to_string()
}

/// What `write` writes.
fn coloured(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("memory can be written");
    String::from_utf8(out).expect("texts are UTF-8")
}

/// So many milliseconds into the capture.
fn at(ms: f64) -> Nanos {
    sample::START + Nanos((ms * 1e6).round() as i64)
}

/// A stretch of time without anything odd.
fn span(cause: Cause, side: Option<Side>, from: f64, to: f64) -> Span {
    let mut span = Span::new(cause, side, at(from), at(to), Frames::default());
    span.confidence = 0.9;
    span
}

/// A finding of `ms` milliseconds in `n` spans, of a whole of 10 s.
fn finding(cause: Cause, side: Option<Side>, ms: i64, n: u64) -> Finding {
    let mut f = sample::connection().findings.swap_remove(1);
    let each = Nanos::micros(ms * 1000 / (n.max(1) as i64));
    (f.cause, f.side, f.lost, f.occurrences) = (cause, side, Nanos::millis(ms), n);
    f.range = Extremes { shortest: each - Nanos::micros(100), longest: each + Nanos::micros(100) };
    (f.share, f.share_of_requests) = (ms as f64 / 10_000.0, ms as f64 / 10_000.0);
    f.text = (cause.info().kind == Kind::Span).then(|| format!("Why of {}.", cause.id()).into());
    f
}

/// A fix that saves so much at most, or as a replay predicts.
fn fix(id: FixId, place: &'static str, how: &[&str], saves: Option<i64>, replayed: bool) -> Fix {
    let mut fix = Fix::new(id, place);
    fix.how = how.iter().map(|h| (*h).to_owned()).collect();
    fix.saves = saves.map(Nanos::millis);
    fix.predicted = replayed.then(|| Nanos::millis(321));
    fix.replayed = replayed;
    fix
}

/// A packet: frame, milliseconds, who sent it, flags, sequence and acknowledgement number, payload, window field.
fn packet(frame: u64, ms: f64, from: End, flags: u16, numbers: [i64; 3], window: u16) -> Packet {
    let [seq, ack, len] = numbers;
    Packet {
        frame,
        time: at(ms),
        from,
        flags: TcpFlags(flags),
        seq,
        ack,
        len: u32::try_from(len).expect("a length is not negative"),
        window,
        marks: 0,
        sack: [(0, 0); 4],
        sacks: 0,
    }
}
