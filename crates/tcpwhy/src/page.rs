//! `--html`: the page, with the packets of the second pass.

use crate::output::Output;
use crate::pages;
use crate::source::{self, Source};
use tcpwhy_library::captures::Analysis;
use tcpwhy_report::Capture;
use tcpwhy_report::html::{self, Extras};

/// Writes the page to `out`; the file takes its name only if all of it was written.
pub(crate) fn write(
    mut out: Output,
    source: &Source<'_>,
    analysis: &Analysis,
    capture: &Capture,
    threads: usize,
) -> anyhow::Result<()> {
    let listed = html::listed(analysis);
    let written = source.tracks(analysis, listed.as_deref(), source::PAGE).and_then(|tracks| {
        let extras = Extras { pages: pages::PAGES, tracks: &tracks, listed: listed.as_deref(), served: None };
        Ok(html::write(&mut out, analysis, capture, &extras, threads)?)
    });
    out.finish(written)
}
