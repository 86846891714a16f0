//! What `explain` writes beside its answer: the page, an annotated copy, a figure.

use crate::args::Explain;
use crate::failure::say;
use crate::output::Output;
use crate::source::Source;
use crate::{annotate, figure, page};
use std::path::Path;
use tcpwhy_analysis::Analysis;
use tcpwhy_report::Capture;

/// Their outputs, opened before anything is read.
pub(crate) struct Extras<'a> {
    args: &'a Explain,
    page: Option<Output>,
    annotated: Option<Output>,
    figure: Option<Output>,
}

impl<'a> Extras<'a> {
    /// Opens those that are asked for.
    pub(crate) fn open(args: &'a Explain) -> anyhow::Result<Extras<'a>> {
        let open = |path: &Option<_>, option| {
            path.as_deref().map(|path: &Path| Output::beside(path, option)).transpose()
        };
        Ok(Extras {
            args,
            page: open(&args.html, "--html")?,
            annotated: open(&args.annotate, "--annotate")?,
            figure: open(&args.svg, "--svg")?,
        })
    }

    /// Whether there is any: then the capture is read a second time.
    pub(crate) fn are_wanted(args: &Explain) -> bool {
        args.html.is_some() || args.annotate.is_some() || args.svg.is_some()
    }

    /// Writes them.
    pub(crate) fn write(
        self,
        source: &Source<'_>,
        analysis: &Analysis,
        capture: &Capture,
        threads: usize,
    ) -> anyhow::Result<()> {
        if let Some(annotated) = self.annotated {
            annotate::write(annotated, source, analysis)?;
        }
        if let Some(figure) = self.figure {
            figure::write(figure, source, analysis, capture, self.args.exchange)?;
        }
        if let Some(page) = self.page {
            page::write(page, source, analysis, capture, threads)?;
            if let Some(path) = self.args.html.as_deref().filter(|_| !self.args.quiet) {
                say(&format!("the page is {}", path.display()));
            }
        }
        Ok(())
    }
}
