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
use tcpwhy_analysis::Analysis;

/// The version of the contract.
pub const SCHEMA: u32 = 1;

/// Writes the whole document.
pub fn write(out: &mut impl Write, analysis: &Analysis, capture: &Capture) -> io::Result<()> {
    let cx = Context::new(analysis, capture);
    write!(
        out,
        "{{\"tool\":\"tcpwhy\",\"version\":\"{}\",\"schema\":{SCHEMA},\n\"connections\":[",
        env!("CARGO_PKG_VERSION")
    )?;
    for (i, connection) in analysis.connections.iter().enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &Connection::new(connection, cx))?;
    }
    out.write_all(b"],\n\"findings\":[")?;
    for (i, finding) in worst_first(analysis).enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &Finding::new(finding, 0, i, cx))?;
    }
    out.write_all(b"],\n\"capture\":")?;
    serde_json::to_writer(&mut *out, &CaptureInfo::new(capture))?;
    out.write_all(b"}\n")
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

fn worst_first(analysis: &Analysis) -> impl Iterator<Item = &tcpwhy_analysis::Finding> {
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
