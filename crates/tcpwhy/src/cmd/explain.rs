use super::stop_signal;
use crate::args::Explain;
use crate::extras::Extras;
use crate::failure::{Exit, Usage, say};
use crate::input::Input;
use crate::live::{Live, Style};
use crate::load::{self, Found};
use crate::output::{self, Output};
use crate::pipeline::{self, Settings};
use crate::progress::Progress;
use crate::shared::Shared;
use crate::source::Source;
use crate::{pages, select, shown};
use anyhow::bail;
use std::io::Write;
use tcpwhy_analysis::{Analysis, Config, Detail, Exchange};
use tcpwhy_base::Cause;
use tcpwhy_report::text::{self, Layout};
use tcpwhy_report::{Capture, Summary, json, quality_warnings, quality_warnings_of};
use tcpwhy_trace::Track;

/// Packets beside the spans of an exchange; more are neither read by anybody nor kept.
const PACKETS: usize = 100_000;

/// Reads the captures, analyses them, says what was found.
pub(crate) fn run(args: &Explain) -> anyhow::Result<Exit> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from.is_after(to)
    {
        bail!(Usage("--from lies after --to: no packet is between them".into()));
    }
    let stop = stop_signal()?;
    let outputs = [&args.output, &args.html, &args.annotate, &args.svg].map(Option::as_deref);
    output::refuse_overwriting(&outputs, &args.files)?;
    let extras = Extras::open(args)?;
    let Found { inputs, unreadable, spool } = Found::among(&args.files, Extras::are_wanted(args), &stop)?;
    let mut progress = Progress::new(args.quiet);
    let shared = Shared::default();
    let settings = Settings {
        inputs: &inputs,
        from: args.from,
        to: args.to,
        filter: args.filter.as_ref(),
        config: Config { detail: detail(args) },
        stop: &stop,
        follow: args.follow,
        shared: Some(&shared),
    };
    if streams(args) {
        return run_live(args, &settings, unreadable, &shared, &mut progress);
    }
    let (mut analysis, mut read) = pipeline::run(&settings, &mut progress)?;
    read.interrupted |= spool.as_ref().is_some_and(|s| s.interrupted);
    progress.clear();
    if let Some(exit) = load::say_problems(&inputs, &mut read, unreadable) {
        return Ok(exit);
    }
    narrow(args, &mut analysis)?;
    tcpwhy_analysis::replay::predict(&mut analysis);
    let warnings = quality_warnings(&analysis.connections);
    let connections = analysis.connections.len() as u64;
    let capture = load::capture(&inputs, read, connections, is_partial(args), warnings);
    let source = Source {
        inputs: &inputs,
        frames_before: &capture.frames_before,
        from: args.from,
        to: args.to,
        filter: args.filter.as_ref(),
    };
    // Who reads the text may have had enough of it; the page is wanted all the same.
    let said = answer(args, &source, &analysis, &capture);
    extras.write(&source, &analysis, &capture, threads())?;
    said?;
    let exit = exit(args, &analysis, &capture);
    // The program ends here: giving back millions of small pieces of memory would only take time.
    std::mem::forget(analysis);
    Ok(exit)
}

/// Leaves in the analysis what is asked about.
fn narrow(args: &Explain, analysis: &mut Analysis) -> anyhow::Result<()> {
    if let Some(which) = &args.connection {
        select::connections(analysis, which).map_err(Usage)?;
    }
    if let Some(limit) = args.slower_than {
        select::slower_than(analysis, limit);
    }
    Ok(())
}

/// Writes the answer: a document, lines or text.
fn answer(args: &Explain, source: &Source<'_>, analysis: &Analysis, capture: &Capture) -> anyhow::Result<()> {
    let mut out = Output::open(args.output.as_deref(), args.json || args.jsonl)?;
    let written = if args.json {
        json::write(&mut out, analysis, capture, threads()).map_err(Into::into)
    } else if args.jsonl {
        json::write_lines(&mut out, analysis, capture).map_err(Into::into)
    } else {
        let layout = layout(args, source.inputs, capture, &out);
        say_it(&mut out, args, source, analysis, capture, &layout)
    };
    out.finish(written)
}

/// Lines are written as connections end, unless one is asked for by a number that only the end tells, or packets are drawn,
/// for which the connections must be known.
fn streams(args: &Explain) -> bool {
    args.jsonl && args.connection.is_none() && !Extras::are_wanted(args)
}

fn detail(args: &Explain) -> Detail {
    match args.exchanges {
        // The exchange that is asked for must not be among those left out.
        _ if args.exchange.is_some() => Detail::All,
        Some(detail) => detail,
        None if streams(args) => Detail::Worst(10),
        None => Detail::Worst(1_000),
    }
}

/// Writes connections while reading goes on.
fn run_live(
    args: &Explain,
    settings: &Settings<'_>,
    unreadable: Vec<String>,
    shared: &Shared,
    progress: &mut Progress,
) -> anyhow::Result<Exit> {
    let mut out = Output::open(args.output.as_deref(), true)?;
    let several = settings.inputs.len() > 1;
    let style = Style {
        shared,
        stop: settings.stop,
        several,
        streams: !several && !is_partial(args),
        slower_than: args.slower_than,
    };
    let live = Live::new(settings.config, &mut out, style);
    let (live, mut read) = pipeline::run_into(settings, live, progress)?;
    let ended = live.finish();
    progress.clear();
    if let Err(e) = ended.written {
        return out.finish(Err(e.into())).map(|()| Exit::Done);
    }
    if let Some(exit) = load::say_problems(settings.inputs, &mut read, unreadable) {
        return Ok(exit);
    }
    // Lines count from the first frame, be it the earliest or not.
    read.span = read.span.map(|(earliest, latest)| (shared.start().unwrap_or(earliest), latest));
    let analysis = Analysis { findings: ended.findings, totals: ended.totals, ..Analysis::default() };
    let warnings = quality_warnings_of(&analysis.totals);
    let connections = analysis.totals.connections;
    let capture = load::capture(settings.inputs, read, connections, is_partial(args), warnings);
    let mut bytes = Vec::new();
    let cx = json::Context::live(capture.start(), &capture.frames_before, style.streams);
    let last = json::last_lines(&mut bytes, &analysis.findings, &capture, cx);
    let written = last.and_then(|()| out.write_all(&bytes));
    out.finish(written.map_err(Into::into))?;
    Ok(exit(args, &analysis, &capture))
}

/// The exit code of an answer that was written. About a part of the input, or about nothing, no condition can be judged.
fn exit(args: &Explain, analysis: &Analysis, capture: &Capture) -> Exit {
    let summary = Summary::new(analysis);
    let held: Vec<String> = args.fail_if.iter().filter_map(|t| t.held(analysis, &summary)).collect();
    held.iter().for_each(|reason| say(reason));
    let warned = |codes: &[&str]| capture.warnings.iter().any(|w| codes.contains(&w.code));
    // To interrupt is how --follow ends.
    if warned(&["interrupted"]) && !args.follow {
        say(&format!("interrupted: this is about the {} packets before", capture.packets));
        return Exit::Interrupted;
    }
    if !args.fail_if.is_empty() && capture.connections == 0 {
        say(
            "--fail-if cannot be judged: no TCP connection is left. Look at the file, --filter, --from and --to",
        );
        return Exit::Unreadable;
    }
    let damaged = warned(&["unreadable", "damaged"]);
    match (held.is_empty(), damaged) {
        (false, _) => Exit::Held,
        (true, true) => Exit::Damaged,
        (true, false) => Exit::Done,
    }
}

/// The text: an exchange, a connection, or the first screen.
fn say_it(
    out: &mut Output,
    args: &Explain,
    source: &Source<'_>,
    analysis: &Analysis,
    capture: &Capture,
    layout: &Layout,
) -> anyhow::Result<()> {
    match (analysis.connections.as_slice(), args.exchange) {
        ([c], Some(id)) if args.connection.is_some() => {
            let Some(x) = c.exchanges.iter().find(|x| x.id == id) else {
                let n = c.exchanges.len() as u64 + c.exchanges_omitted.count;
                bail!(Usage(format!(
                    "--exchange {id}: connection {} has {n} exchanges to choose from",
                    c.id
                )));
            };
            let packets = packets(source, analysis, c.id, x);
            let shown = packets.as_ref().map_err(String::as_str);
            text::exchange(out, c, x, shown, capture, layout)?;
        }
        (many, Some(_)) if args.connection.is_some() => {
            bail!(Usage(format!(
                "--exchange needs one connection, and {} are meant: name it by its id",
                many.len()
            )));
        }
        ([c], None) if args.connection.is_some() => text::connection(out, c, capture, layout)?,
        _ => text::overview(out, analysis, capture, layout)?,
    }
    if let Some(cause) = args.why_not {
        let page = pages::page(cause.info());
        let recognised = pages::section(&page, "recognises");
        text::why_not(out, analysis, cause, &evidence(analysis, cause), recognised.as_deref(), layout)?;
    }
    Ok(())
}

/// The packets of an exchange; or the sentence that says why there are none.
fn packets(source: &Source<'_>, analysis: &Analysis, id: u32, x: &Exchange) -> Result<Track, String> {
    if source.inputs.iter().any(Input::is_stdin) {
        return Err("The packets beside the spans need a second look at the capture: save standard input to a file and \
                    explain that."
            .into());
    }
    source.stretch(analysis, id, (x.start, x.end), PACKETS).map_err(|e| format!("{e:#}"))
}

/// What the connections with most bytes show for or against a cause.
fn evidence(analysis: &Analysis, cause: Cause) -> Vec<String> {
    let mut largest: Vec<_> = analysis.connections.iter().collect();
    largest.sort_by_key(|c| std::cmp::Reverse(c.bytes[0] + c.bytes[1]));
    let about = |c: &tcpwhy_analysis::Connection| {
        let id = c.id;
        tcpwhy_analysis::evidence(c, cause).into_iter().map(move |line| format!("connection {id}: {line}"))
    };
    largest.into_iter().take(3).flat_map(about).collect()
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

fn layout(args: &Explain, inputs: &[Input], capture: &Capture, out: &Output) -> Layout {
    let files: Vec<String> = args.files.iter().map(|f| shown::argument(f.as_os_str())).collect();
    Layout {
        width: out.width.unwrap_or(80).clamp(60, 140),
        verbose: args.verbose,
        quiet: args.quiet,
        top: args.top,
        absolute: args.absolute_times,
        files: if files.len() > 1 {
            inputs.iter().map(|i| shown::name(&i.base()).into_owned()).collect()
        } else {
            Vec::new()
        },
        frames_before: capture.frames_before.clone(),
        command: format!("tcpwhy explain {}", files.join(" ")),
        list_exchanges: args.slower_than.is_some(),
    }
}

fn is_partial(args: &Explain) -> bool {
    args.filter.is_some() || args.from.is_some() || args.to.is_some()
}
