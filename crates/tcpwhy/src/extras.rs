//! What `explain` writes beside its answer: the page, an annotated copy, a figure, and the same for other tools.

use crate::args::{Beside, Explain};
use crate::failure::{say, told};
use crate::otlp::{Otlp, Sink};
use crate::output::Output;
use crate::source::{self, Source};
use crate::{annotate, figure, page};
use std::path::Path;
use tcpwhy_library::captures::Analysis;
use tcpwhy_report::{Capture, folded, perfetto};

/// Their outputs, opened before anything is read.
pub(crate) struct Extras<'a> {
    args: &'a Explain,
    page: Option<Output>,
    annotated: Option<Output>,
    figure: Option<Output>,
    folded: Option<Output>,
    perfetto: Option<Output>,
    otlp: Option<Sink>,
}

impl<'a> Extras<'a> {
    /// Opens those that are asked for.
    pub(crate) fn open(args: &'a Explain) -> anyhow::Result<Extras<'a>> {
        let open = |path: &Option<_>, option| {
            path.as_deref().map(|path: &Path| Output::beside(path, option)).transpose()
        };
        Ok(Extras {
            args,
            page: open(&args.beside.html, "--html")?,
            annotated: open(&args.beside.annotate, "--annotate")?,
            figure: open(&args.svg, "--svg")?,
            folded: open(&args.beside.folded, "--folded")?,
            perfetto: open(&args.beside.perfetto, "--perfetto")?,
            otlp: args.beside.otlp.as_ref().map(Sink::open).transpose()?,
        })
    }

    /// All files that an answer is written to, the answer itself first.
    pub(crate) fn files(args: &Explain) -> Vec<Option<&Path>> {
        let paths = [
            &args.output,
            &args.beside.html,
            &args.beside.annotate,
            &args.svg,
            &args.beside.folded,
            &args.beside.perfetto,
        ];
        let spans = args.beside.otlp.as_ref().and_then(Otlp::file);
        paths.into_iter().map(Option::as_deref).chain([spans]).collect()
    }

    /// Whether there is any that needs the whole analysis.
    pub(crate) fn are_wanted(args: &Explain) -> bool {
        Extras::read_again(args) || args.beside.folded.is_some() || args.beside.otlp.is_some()
    }

    /// Whether there is any that is about all connections, and not about those that lists begin with.
    pub(crate) fn need_all(args: &Explain) -> bool {
        let Beside { html: _, annotate, folded, perfetto, otlp, names, trace_context, .. } = &args.beside;
        let files = [annotate, folded, perfetto, &args.svg];
        files.into_iter().any(Option::is_some) || otlp.is_some() || *names || *trace_context
    }

    /// Whether there is any that needs packets: then the capture is read a second time.
    pub(crate) fn read_again(args: &Explain) -> bool {
        let files = [&args.beside.html, &args.beside.annotate, &args.svg, &args.beside.perfetto];
        files.into_iter().any(Option::is_some) || args.beside.names || args.beside.trace_context
    }

    /// Writes them. One that fails takes none of the others along.
    pub(crate) fn write(
        self,
        source: &Source<'_>,
        analysis: &Analysis,
        capture: &Capture,
        threads: usize,
    ) -> anyhow::Result<()> {
        let Extras { args, page, annotated, figure, folded, perfetto, otlp } = self;
        let written = [
            annotated.map(|out| annotate::write(out, source, analysis)),
            figure.map(|out| figure::write(out, source, analysis, capture, args.exchange)),
            page.map(|out| paged(out, args, source, analysis, capture, threads)),
            folded.map(|mut out| {
                let written = folded::write(&mut out, analysis);
                out.finish(written.map_err(Into::into))
            }),
            perfetto.map(|out| traced(out, args, source, analysis, capture)),
            otlp.map(|sink| sink.write(analysis, capture, args.quiet)),
        ];
        let mut failed = written.into_iter().flatten().filter_map(Result::err);
        let Some(first) = failed.next() else { return Ok(()) };
        failed.for_each(|e| say(&told(&e)));
        Err(first)
    }
}

fn paged(
    out: Output,
    args: &Explain,
    source: &Source<'_>,
    analysis: &Analysis,
    capture: &Capture,
    threads: usize,
) -> anyhow::Result<()> {
    page::write(out, source, analysis, capture, threads)?;
    if let Some(path) = args.beside.html.as_deref().filter(|_| !args.quiet) {
        say(&format!("the page is {}", path.display()));
    }
    Ok(())
}

fn traced(
    mut out: Output,
    args: &Explain,
    source: &Source<'_>,
    analysis: &Analysis,
    capture: &Capture,
) -> anyhow::Result<()> {
    let tracks = source.tracks(analysis, None, source::PAGE)?;
    let count = perfetto::count(analysis, &tracks);
    if count > perfetto::MANY && !args.quiet {
        say(&format!(
            "the trace has {count} tracks, with which the Perfetto UI is slow: --connection or --filter leaves fewer"
        ));
    }
    let written = perfetto::write(&mut out, analysis, &tracks, capture);
    out.finish(written.map_err(Into::into))
}
