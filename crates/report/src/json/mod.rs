//! The JSON contract, schema 1. Times are integer nanoseconds from the earliest packet. Documents are written
//! connection by connection; nothing is built up in memory.

mod frames;
mod parts;
#[cfg(test)]
mod tests;
mod types;
mod values;

pub use frames::{Example, Frames};
pub use parts::{Alternative, Exchange, Gap, Omitted, Setup, Span};
pub use types::{CaptureInfo, Connection, End, Ends, Explain, Finding, Fix, Path, Range, Stack, WarningInfo};
pub use values::{Context, List, Pair, View};

use crate::Capture;
use schemars::generate::SchemaSettings;
use std::io::{self, Write};
use std::sync::mpsc::sync_channel;
use std::thread;
use tcpwhy_analysis::{self as a, Analysis};

/// The version of the contract.
pub const SCHEMA: u32 = 1;

/// Writes the whole document, with so many threads at most.
pub fn write(out: &mut impl Write, analysis: &Analysis, capture: &Capture, threads: usize) -> io::Result<()> {
    let cx = Context::new(analysis, capture);
    write!(
        out,
        "{{\"tool\":\"tcpwhy\",\"version\":\"{}\",\"schema\":{SCHEMA},\n\"connections\":[",
        env!("CARGO_PKG_VERSION")
    )?;
    connections(out, &analysis.connections, cx, threads)?;
    out.write_all(b"],\n\"findings\":[")?;
    for (i, finding) in worst_first(analysis).enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &Finding::new(finding, 0, i, cx))?;
    }
    out.write_all(b"],\n\"capture\":")?;
    serde_json::to_writer(&mut *out, &CaptureInfo::new(capture))?;
    out.write_all(b"}\n")
}

/// Connections that are turned into bytes at once.
const CHUNK: usize = 256;

/// Writes connections in their order. Where there are many, threads turn them into bytes in turns.
fn connections(
    out: &mut impl Write,
    list: &[a::Connection],
    cx: Context<'_>,
    threads: usize,
) -> io::Result<()> {
    let chunks = || list.chunks(CHUNK).enumerate();
    if threads < 2 || list.len() < 4 * CHUNK {
        return chunks().try_for_each(|(i, chunk)| out.write_all(&bytes(chunk, i == 0, cx)?));
    }
    thread::scope(|scope| {
        let turns = (0..threads).map(|worker| {
            let (send, receive) = sync_channel(2);
            let mine = chunks().skip(worker).step_by(threads);
            scope.spawn(move || {
                for (i, chunk) in mine {
                    if send.send(bytes(chunk, i == 0, cx)).is_err() {
                        // Writing has failed, and nobody waits for more.
                        break;
                    }
                }
            });
            receive
        });
        let turns: Vec<_> = turns.collect();
        for (i, _) in chunks() {
            let bytes = turns[i % threads].recv().map_err(io::Error::other)?;
            out.write_all(&bytes?)?;
        }
        Ok(())
    })
}

fn bytes(chunk: &[a::Connection], first: bool, cx: Context<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(chunk.len() * 2048);
    for (i, connection) in chunk.iter().enumerate() {
        bytes.extend_from_slice(if first && i == 0 { b"\n" } else { b",\n" });
        serde_json::to_writer(&mut bytes, &Connection::new(connection, cx))?;
    }
    Ok(bytes)
}

/// Writes one object a line, each with `type`: connections, then findings, then the capture.
pub fn write_lines(out: &mut impl Write, analysis: &Analysis, capture: &Capture) -> io::Result<()> {
    let cx = Context::new(analysis, capture);
    for connection in &analysis.connections {
        line(out, "connection", &Connection::new(connection, cx))?;
    }
    for (i, finding) in worst_first(analysis).enumerate() {
        line(out, "finding", &Finding::new(finding, 0, i, cx))?;
    }
    line(out, "capture", &CaptureInfo::new(capture))
}

/// The JSON Schema of the document that [`write()`] makes.
pub fn schema() -> String {
    let root =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Explain<'_>>();
    let mut text = serde_json::to_string_pretty(&root).unwrap_or_default();
    text.push('\n');
    text
}

/// The id of the finding over the capture that holds `cause`, as in the document: `f1` is the worst.
pub fn finding_id(analysis: &Analysis, cause: tcpwhy_base::Cause) -> Option<String> {
    worst_first(analysis).position(|f| f.cause == cause).map(|i| format!("f{}", i + 1))
}

fn worst_first(analysis: &Analysis) -> impl Iterator<Item = &a::Finding> {
    let mut sorted: Vec<_> = analysis.findings.iter().collect();
    sorted.sort_by_key(|f| std::cmp::Reverse(f.lost));
    sorted.into_iter()
}

fn line(out: &mut impl Write, kind: &str, object: &impl serde::Serialize) -> io::Result<()> {
    write!(out, "{{\"type\":\"{kind}\",")?;
    serde_json::to_writer(AfterBrace { out, begun: false }, object)?;
    out.write_all(b"\n")
}

/// Passes everything on but the first byte: the opening brace of an object that is already open.
struct AfterBrace<'a, W: Write> {
    out: &'a mut W,
    begun: bool,
}

impl<W: Write> Write for AfterBrace<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skip = usize::from(!self.begun && !bytes.is_empty());
        self.out.write_all(&bytes[skip..])?;
        self.begun |= skip == 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
