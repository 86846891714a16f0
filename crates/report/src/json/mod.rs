//! The JSON contract, schema 1. Times are integer nanoseconds from the earliest packet. Documents are written
//! connection by connection; nothing is built up in memory.

mod buffer;
mod frames;
mod input;
mod model;
mod parts;
mod summary;
mod taps;
#[cfg(test)]
mod tests;
mod turn;
mod types;
mod values;
mod writer;

pub use buffer::Buffer;
pub use frames::{Example, Frames};
pub use input::{CaptureInfo, WarningInfo};
pub use model::{Combined, Model, NoEffect};
pub use parts::{Alternative, Asks, Exchange, Gap, Omitted, Setup, Span};
pub use summary::{Band, CauseTime, More, Owners, Requests, Server, Slow, Summary};
pub use taps::{Loss, Taps};
pub use types::{Connection, End, Ends, Explain, Finding, Fix, Path, Range, Stack};
pub(crate) use values::{ClassLetter, Shown, SpanCause};
pub use values::{Context, List, Pair, View};

use crate::Capture;
use crate::run::Run;
use std::collections::HashMap;
use std::io::{self, Write};
use std::thread;
use tcpwhy_analysis::{self as a, Analysis};
use tcpwhy_base::{Cause, Side};
use turn::{Turn, Writer};

/// The version of the contract.
pub const SCHEMA: u32 = 1;

/// Writes the whole document, with so many threads at most.
pub fn write(
    out: &mut (impl Write + Send),
    analysis: &Analysis,
    capture: &Capture,
    threads: usize,
) -> io::Result<()> {
    write_run(out, analysis, capture, threads, None)
}

/// Writes the whole document and, as a member more, the run whose capture it is (`docs/schema/run-1.json`).
pub fn write_run(
    out: &mut (impl Write + Send),
    analysis: &Analysis,
    capture: &Capture,
    threads: usize,
    run: Option<&Run>,
) -> io::Result<()> {
    write_with(out, analysis, capture, 0, run, |out, cx| connections(out, &analysis.connections, cx, threads))
}

/// Writes the document with the connections at these places alone; the others count as omitted.
pub fn write_of(
    out: &mut impl Write,
    analysis: &Analysis,
    capture: &Capture,
    places: &[usize],
) -> io::Result<()> {
    let omitted = analysis.connections.len().saturating_sub(places.len()) as u64;
    write_with(out, analysis, capture, omitted, None, |out, cx| {
        let mut bytes = Buffer::default();
        for (i, c) in places.iter().filter_map(|&at| analysis.connections.get(at)).enumerate() {
            bytes.clear();
            fill(&mut bytes, std::slice::from_ref(c), i == 0, cx)?;
            out.write_all(bytes.as_slice())?;
        }
        Ok(())
    })
}

fn write_with<'a, W: Write>(
    out: &mut W,
    analysis: &'a Analysis,
    capture: &'a Capture,
    omitted: u64,
    run: Option<&Run>,
    connections: impl FnOnce(&mut W, Context<'a>) -> io::Result<()>,
) -> io::Result<()> {
    let cx = Context::new(analysis, capture);
    write!(
        out,
        "{{\"tool\":\"tcpwhy\",\"version\":\"{}\",\"schema\":{SCHEMA},\n\"summary\":",
        env!("CARGO_PKG_VERSION")
    )?;
    let mut summary = Summary::new(analysis, capture);
    summary.connections_omitted += omitted;
    let mut bytes = Buffer::default();
    bytes.append(&summary)?;
    bytes.extend(b",\n\"connections\":[");
    out.write_all(bytes.as_slice())?;
    connections(out, cx)?;
    out.write_all(b"],\n\"findings\":[")?;
    for (i, finding) in analysis.findings.iter().enumerate() {
        bytes.clear();
        bytes.extend(if i == 0 { b"\n" } else { b",\n" });
        bytes.append(&Finding::new(finding, 0, i, cx))?;
        out.write_all(bytes.as_slice())?;
    }
    out.write_all(b"],\n\"capture\":")?;
    serde_json::to_writer(&mut *out, &CaptureInfo::new(capture))?;
    if let Some(run) = run {
        out.write_all(b",\n\"run\":")?;
        serde_json::to_writer(&mut *out, run)?;
    }
    out.write_all(b"}\n")
}

/// Connections that are turned into bytes at once: so many that handing them over costs nothing, so few that
/// their bytes stay in the cache.
const CHUNK: usize = 256;

/// Bytes that are written at once: more than a buffered writer holds, which would copy less.
const WRITTEN: usize = 256 << 10;

/// Writes connections in their order. Where there are many, threads turn them into bytes in turns.
fn connections(
    out: &mut (impl Write + Send),
    list: &[Box<a::Connection>],
    cx: Context<'_>,
    threads: usize,
) -> io::Result<()> {
    let alone = threads < 2 || list.len() < CHUNK;
    // One thread alone waits for no turn, and needs less room so; of few each thread gets several pieces.
    let chunk = if alone || list.len() < 16 * CHUNK { CHUNK / 4 } else { CHUNK };
    let chunks = || list.chunks(chunk).enumerate();
    if alone {
        let mut bytes = Buffer::default();
        chunks().try_for_each(|(i, chunk)| {
            fill(&mut bytes, chunk, i == 0, cx)?;
            if bytes.len() >= WRITTEN {
                out.write_all(bytes.as_slice())?;
                bytes.clear();
            }
            Ok::<_, io::Error>(())
        })?;
        return out.write_all(bytes.as_slice());
    }
    let turn = Turn::new(out);
    let write = |worker: usize| {
        let (writer, mut bytes) = (Writer(&turn), Buffer::default());
        for (i, chunk) in chunks().skip(worker).step_by(threads) {
            bytes.clear();
            let filled = fill(&mut bytes, chunk, i == 0, cx);
            if !writer.write(i, filled.map(|()| bytes.as_slice())) {
                // Writing has failed, and nobody waits for more.
                break;
            }
        }
    };
    thread::scope(|scope| {
        (1..threads).for_each(|worker| drop(scope.spawn(move || write(worker))));
        write(0);
    });
    turn.end()
}

/// Appends a chunk of connections.
fn fill(bytes: &mut Buffer, chunk: &[Box<a::Connection>], first: bool, cx: Context<'_>) -> io::Result<()> {
    for (i, connection) in chunk.iter().enumerate() {
        a::Connection::fetch_behind(chunk, i);
        bytes.extend(if first && i == 0 { b"\n" } else { b",\n" });
        bytes.append(&Connection::new(connection, cx))?;
    }
    Ok(())
}

/// Writes one object a line, each with `type`: connections, then findings, then the summary and the capture.
pub fn write_lines(out: &mut impl Write, analysis: &Analysis, capture: &Capture) -> io::Result<()> {
    let cx = Context::new(analysis, capture);
    let mut bytes = Buffer::default();
    for connection in &analysis.connections {
        bytes.clear();
        connection_line(&mut bytes, connection, cx)?;
        out.write_all(bytes.as_slice())?;
    }
    bytes.clear();
    last_lines(&mut bytes, analysis, capture, cx)?;
    out.write_all(bytes.as_slice())
}

/// Appends the line of one connection.
pub fn connection_line(bytes: &mut Buffer, connection: &a::Connection, cx: Context<'_>) -> io::Result<()> {
    line(bytes, "connection", &Connection::new(connection, cx))
}

/// Appends the lines after the connections: the findings, the summary, the capture.
pub fn last_lines(
    bytes: &mut Buffer,
    analysis: &Analysis,
    capture: &Capture,
    cx: Context<'_>,
) -> io::Result<()> {
    for (i, finding) in analysis.findings.iter().enumerate() {
        line(bytes, "finding", &Finding::new(finding, 0, i, cx))?;
    }
    line(bytes, "summary", &Summary::new(analysis, capture))?;
    line(bytes, "capture", &CaptureInfo::new(capture))
}

/// The JSON Schema of the document that [`write()`] makes.
pub fn schema() -> String {
    crate::schema::text::<Explain<'_>>()
}

/// The ids of the findings over the capture, as in the document: `f1` is the worst. A cause that both sides show has a
/// finding for each.
pub fn finding_ids(findings: &[a::Finding]) -> HashMap<(Cause, Option<Side>), String> {
    findings.iter().enumerate().map(|(i, f)| ((f.cause, f.side), format!("f{}", i + 1))).collect()
}

fn line(bytes: &mut Buffer, kind: &str, object: &impl serde::Serialize) -> io::Result<()> {
    bytes.extend(b"{\"type\":\"");
    bytes.extend(kind.as_bytes());
    bytes.extend(b"\"");
    let brace = bytes.len();
    bytes.append(object)?;
    // The object goes on where its type has begun; none is empty.
    if let Some(brace) = bytes.byte_mut(brace) {
        *brace = b',';
    }
    bytes.extend(b"\n");
    Ok(())
}
