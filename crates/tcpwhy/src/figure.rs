//! `--svg`: the graph of a connection, or the ladder of an exchange.

use crate::failure::Usage;
use crate::output::Output;
use crate::source::{self, Source};
use anyhow::bail;
use std::io::Write;
use tcpwhy_library::captures::Analysis;
use tcpwhy_report::{Capture, svg};
use tcpwhy_trace::Track;

/// Writes it; the file takes its name only if all of it was written.
pub(crate) fn write(
    mut out: Output,
    source: &Source<'_>,
    analysis: &Analysis,
    capture: &Capture,
    exchange: Option<u32>,
) -> anyhow::Result<()> {
    let [c] = analysis.connections.as_slice() else {
        let n = analysis.connections.len();
        bail!(Usage(format!("--svg draws one connection, and {n} are meant: name it by its id")));
    };
    let tracks = source.tracks(analysis, None, source::PAGE)?;
    let none = Track::default();
    let track = tracks.first().unwrap_or(&none);
    let drawn = match exchange {
        None => svg::graph(c, track, None),
        Some(id) => match c.exchanges.iter().find(|x| x.id == id) {
            Some(x) => svg::ladder(c, x, track, &capture.frames_before),
            None => bail!(Usage(format!("--exchange {id}: connection {} has no such exchange", c.id))),
        },
    };
    out.write_all(drawn.as_bytes())?;
    out.finish(Ok(()))
}
