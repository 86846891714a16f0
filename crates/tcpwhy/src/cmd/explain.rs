use super::{endless_signal, stop_signal};
use crate::args::Explain;
use crate::extras::Extras;
use crate::failure::{Exit, Usage, is_broken_pipe, say};
use crate::input::Input;
use crate::live::{self, Style};
use crate::load::{self, Found};
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::source::Source;
use crate::spool::{self, Spool};
use crate::units::Bound;
use crate::{pages, select, shown, taps};
use anyhow::bail;
use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_library::captures::{
    Analysis, Captures, Meanwhile, ROWS, Read, Streamed, Window, taps as two_taps,
};
use tcpwhy_library::{Detail, Exchange};
use tcpwhy_report::text::{self, Layout};
use tcpwhy_report::{Answer, Capture, Warning, html, json, quality_warnings, time_of_day};
use tcpwhy_trace::Track;

/// Packets beside the spans of an exchange; more are neither read by anybody nor kept.
const PACKETS: usize = 100_000;
/// With `--follow`, a line is written so long after its connection closed: longer than a retransmission of
/// the last FIN takes.
const FOLLOWED: Nanos = Nanos::secs(2);

/// Reads the captures, analyses them, says what was found.
pub(crate) fn run(args: &Explain) -> anyhow::Result<Exit> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from.is_after(to)
    {
        bail!(Usage("--from lies after --to: no packet is between them".into()));
    }
    let stop = if args.follow { endless_signal()? } else { stop_signal()? };
    #[cfg(feature = "parquet")]
    if let Some(folder) = &args.parquet {
        return crate::fleet::run(args, folder, &stop);
    }
    output::refuse_overwriting(&Extras::files(args), &args.files)?;
    let extras = Extras::open(args)?;
    let twice = Extras::read_again(args) || args.exchange.is_some() || from_start(args) && !args.follow;
    let Found { mut inputs, unreadable, spools } = Found::among(&args.files, twice, args.quiet, &stop)?;
    let taps = if args.follow || args.apart {
        Ok(None)
    } else {
        two_taps::among(&mut inputs, args.filter.as_ref(), &stop)
    };
    let window = window(args, &inputs)?;
    let mut progress = Progress::new(args.quiet);
    let shared = Meanwhile::default();
    let captures = Captures::new(&inputs)
        .within(window)
        .filter(args.filter.as_ref())
        .detail(detail(args))
        .stopped_by(&stop)
        .following(args.follow)
        // By a number, or since the clock of one of several captures is wrong.
        .narrowed(args.connection.is_some() || inputs.len() > 1)
        .listing(listed(args, &inputs))
        .telling(&shared);
    let two = taps.as_ref().ok().and_then(Option::as_ref);
    if streams(args) && two.is_none() {
        return run_live(args, &captures, &stop, (unreadable, &spools), &shared, &mut progress);
    }
    let (mut analysis, mut read) = match two {
        Some(two) => captures.explain_taps(two, &mut progress.told())?,
        None => captures.explain(&mut progress.told())?,
    };
    spool::tell(&spools, &mut read);
    progress.clear();
    if let Some(exit) = load::say_problems(&inputs, &mut read, unreadable) {
        return Ok(exit);
    }
    // Who asks for a connection by its number gets it, whatever its clock.
    let aside = match args.connection {
        None => load::set_aside(&inputs, &read, &mut analysis),
        Some(_) => None,
    };
    narrow(args, &mut analysis)?;
    tcpwhy_library::replay(&mut analysis);
    let mut warnings = quality_warnings(&analysis.totals);
    warnings.extend(of_window(window, &read));
    warnings.extend(aside);
    warnings.extend(taps::warning(&taps, &inputs, &analysis));
    if !args.apart {
        warnings.extend(taps::twice(&inputs, &read, &analysis, &stop));
    }
    let connections = analysis.connection_count();
    let capture = load::capture(&inputs, read, connections, is_partial(args), warnings);
    let source = Source {
        inputs: &inputs,
        frames_before: &capture.frames_before,
        window,
        filter: args.filter.as_ref(),
    };
    name(args, &source, &mut analysis)?;
    // Who reads the text may have had enough of it; the page is wanted all the same.
    let said = answer(args, &source, &analysis, &capture);
    extras.write(&source, &analysis, &capture, threads())?;
    let exit = match said {
        Err(e) if !is_broken_pipe(&e) => return Err(e),
        // What was found is so, too, where nobody reads on.
        _ => exit(args, &analysis, &capture),
    };
    // The program ends here: giving back millions of small pieces of memory would only take time.
    std::mem::forget(analysis);
    Ok(exit)
}

/// `--from` or `--to` counts from the first packet.
fn from_start(args: &Explain) -> bool {
    [args.from, args.to].iter().flatten().any(|bound| matches!(bound, Bound::Offset(_)))
}

/// The stretch of time that is asked about.
fn window(args: &Explain, inputs: &[Input]) -> anyhow::Result<Option<Window>> {
    if args.from.is_none() && args.to.is_none() {
        return Ok(None);
    }
    let first = || inputs.first()?.open().ok()?.next().ok().flatten().map(|frame| frame.time);
    let again = from_start(args) && !(args.follow && inputs.iter().any(Input::is_stream));
    let start = if again { first() } else { None };
    if from_start(args) && args.follow && start.is_none() {
        bail!(Usage(
            "--from and --to as times after the first packet need that packet: with --follow, write a time of day".into()
        ));
    }
    let at = |bound: Option<Bound>, none| bound.map_or(none, |b| b.resolve(start.unwrap_or_default()));
    let window = Window { from: at(args.from, Nanos(i64::MIN)), to: at(args.to, Nanos::MAX) };
    // A time of day and one after the first packet can be told apart only now.
    if window.from > window.to {
        bail!(Usage("--from lies after --to: no packet is between them".into()));
    }
    Ok(Some(window))
}

/// What is said of an answer about a part of the time.
fn of_window(window: Option<Window>, read: &Read) -> Option<Warning> {
    let (window, (start, end)) = (window?, read.span?);
    let (from, to) = (window.from.max(start), window.to.min(end));
    if from > end || to < start {
        let (what, at) = if from > end { ("ends before", end) } else { ("begins after", start) };
        let text = format!(
            "The capture {what} the stretch that was asked for, with a packet at {} ({}): nothing of it is accounted for.",
            at - start,
            time_of_day(at)
        );
        return Some(Warning { code: "window", text, count: 1 });
    }
    Some(Warning {
        code: "window",
        text: format!(
            "This is about {} to {} of {}. All of it was followed, so that numbers, round trips and windows are those of the \
             whole; times are those within, bytes and packets those of whole connections and exchanges.",
            (from - start).floor0(),
            (to - start).floor0(),
            end - start
        ),
        count: 1,
    })
}

/// Looks for what exchanges are called, if that is wanted.
pub(crate) fn name(args: &Explain, source: &Source<'_>, analysis: &mut Analysis) -> anyhow::Result<()> {
    if !args.beside.names && !args.beside.trace_context {
        return Ok(());
    }
    let found = source.names(analysis, args.beside.trace_context)?;
    found.tell(analysis, args.beside.names);
    Ok(())
}

/// Leaves in the analysis what is asked about.
pub(crate) fn narrow(args: &Explain, analysis: &mut Analysis) -> anyhow::Result<()> {
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

/// Lines are written as connections end, unless one is asked for by a number that only the end tells, or
/// packets are drawn, for which the connections must be known.
fn streams(args: &Explain) -> bool {
    args.jsonl && args.connection.is_none() && !Extras::are_wanted(args)
}

/// How many connections are kept to be listed, where nothing is about all of them.
fn listed(args: &Explain, inputs: &[Input]) -> Option<usize> {
    let of_one = args.connection.is_some() || args.exchange.is_some();
    let of_all = args.json || args.jsonl || args.why_not.is_some() || Extras::need_all(args);
    let rows = args.top.is_some_and(|top| top > ROWS);
    let more = args.exchanges.is_some() || args.slower_than.is_some() || rows || inputs.len() > 1;
    let most = if args.beside.html.is_some() { html::LISTED } else { ROWS };
    (!of_one && !of_all && !more).then_some(most)
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
    captures: &Captures<'_, Input>,
    stop: &AtomicBool,
    (unreadable, spools): (Vec<String>, &[Spool]),
    shared: &Meanwhile,
    progress: &mut Progress,
) -> anyhow::Result<Exit> {
    let mut out = Output::open(args.output.as_deref(), true)?;
    let several = captures.inputs().len() > 1;
    let judged = !args.fail_if.is_empty();
    let style = Style {
        shared,
        stop,
        several,
        streams: !several && !is_partial(args),
        // Somebody waits for the lines; else late packets are worth waiting for.
        linger: if args.follow { FOLLOWED } else { Nanos::MAX },
        slower_than: args.slower_than,
        // Of an input that may never end nobody waits for the end.
        reads_on: judged && !args.follow,
    };
    let Streamed { taken, findings, totals, mut read, .. } = live::run(captures, &mut out, style, progress)?;
    spool::tell(spools, &mut read);
    progress.clear();
    let taken = match taken {
        // Whoever has read enough of the lines may want the verdict all the same.
        Err(e) if !(judged && e.kind() == io::ErrorKind::BrokenPipe) => {
            return out.finish(Err(e.into())).map(|()| Exit::Done);
        }
        taken => taken,
    };
    if let Some(exit) = load::say_problems(captures.inputs(), &mut read, unreadable) {
        return Ok(exit);
    }
    // Lines count from the first frame, be it the earliest or not.
    read.span = read.span.map(|(earliest, latest)| (shared.start().unwrap_or(earliest), latest));
    let analysis = Analysis { findings, totals, ..Analysis::default() };
    let mut warnings = quality_warnings(&analysis.totals);
    warnings.extend(of_window(captures.window(), &read));
    let connections = analysis.totals.connections;
    let capture = load::capture(captures.inputs(), read, connections, is_partial(args), warnings);
    let mut bytes = json::Buffer::default();
    let cx = json::Context::live(capture.start(), &capture.frames_before, style.streams);
    let last = json::last_lines(&mut bytes, &analysis, &capture, cx);
    let written = taken.and(last).and_then(|()| out.write_all(bytes.as_slice()));
    match out.finish(written.map_err(Into::into)) {
        Err(e) if !(judged && is_broken_pipe(&e)) => Err(e),
        _ => Ok(exit(args, &analysis, &capture)),
    }
}

/// The exit code of an answer that was written. About a part of the input, or about nothing, no condition can
/// be judged.
fn exit(args: &Explain, analysis: &Analysis, capture: &Capture) -> Exit {
    let held: Vec<String> = if args.fail_if.is_empty() {
        Vec::new()
    } else {
        let answer = Answer::new(analysis);
        args.fail_if.iter().filter_map(|t| t.held(analysis, &answer)).collect()
    };
    held.iter().for_each(|reason| say(reason));
    let warned = |codes: &[&str]| capture.warnings.iter().any(|w| codes.contains(&w.code));
    // To be asked to end is how --follow ends.
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

/// The text: what was asked, an exchange, a connection, or the first screen.
pub(crate) fn say_it(
    out: &mut impl Write,
    args: &Explain,
    source: &Source<'_>,
    analysis: &Analysis,
    capture: &Capture,
    layout: &Layout,
) -> anyhow::Result<()> {
    if let Some(cause) = args.why_not {
        let page = pages::page(cause.info());
        let recognised = pages::section(&page, "recognises");
        let evidence = evidence(analysis, cause);
        text::why_not(out, analysis, cause, &evidence, recognised.as_deref(), layout)?;
        return Ok(());
    }
    match (analysis.connections.as_slice(), args.exchange) {
        ([c], Some(id)) if args.connection.is_some() => {
            let Some(x) = c.exchanges.iter().find(|x| x.id == id) else {
                let choice = select::numbers(c);
                bail!(Usage(format!("--exchange {id}: connection {} has {choice}", c.id)));
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
        ([c], None) if args.connection.is_some() => text::connection(out, analysis, c, capture, layout)?,
        _ => text::overview(out, analysis, capture, layout)?,
    }
    Ok(())
}

/// The packets of an exchange; or the sentence that says why there are none.
fn packets(source: &Source<'_>, analysis: &Analysis, id: u32, x: &Exchange) -> Result<Track, String> {
    source.stretch(analysis, id, (x.start, x.end), PACKETS).map_err(|e| format!("{e:#}"))
}

/// What the connections show for or against a cause: those that it took most time of, then those where it may
/// have taken most, then those with most bytes.
fn evidence(analysis: &Analysis, cause: Cause) -> Vec<String> {
    let mut first: Vec<_> = analysis.connections.iter().map(|c| &**c).collect();
    let named = |c: &tcpwhy_library::Connection| {
        let spans = c.spans().map(|(_, span)| span);
        let doubtful = spans.filter(|s| s.alternatives.iter().flatten().any(|a| a.0 == cause));
        doubtful.fold(Nanos::ZERO, |sum, s| sum + s.duration())
    };
    first.sort_by_cached_key(|c| std::cmp::Reverse((c.budget.get(cause), named(c), c.bytes[0] + c.bytes[1])));
    let about = |c: &tcpwhy_library::Connection| {
        let id = c.id;
        tcpwhy_library::evidence(c, cause).into_iter().map(move |line| format!("connection {id}: {line}"))
    };
    first.into_iter().take(3).flat_map(about).collect()
}

pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

pub(crate) fn layout(args: &Explain, inputs: &[Input], capture: &Capture, out: &Output) -> Layout {
    let files: Vec<String> = args.files.iter().map(|f| shown::argument(f.as_os_str())).collect();
    Layout {
        width: out.width.unwrap_or(80).clamp(60, 140),
        verbose: args.verbose,
        quiet: args.quiet,
        absolute: args.absolute_times,
        files: names(inputs),
        frames_before: capture.frames_before.clone(),
        command: format!("tcpwhy explain {}", files.join(" ")),
        slower_than: args.slower_than,
        all_exchanges: matches!(detail(args), Detail::All),
        ..Layout::default()
    }
    .with_rows(args.top)
}

/// What evidence calls the files, where there are several: by their own names, if these tell them apart.
fn names(inputs: &[Input]) -> Vec<String> {
    if inputs.len() < 2 {
        return Vec::new();
    }
    let own: Vec<String> = inputs.iter().map(Input::base).collect();
    let apart = own.iter().collect::<HashSet<_>>().len() == own.len();
    let named = inputs.iter().zip(&own).map(|(input, own)| if apart { own } else { &input.name });
    named.map(|name| shown::name(name).into_owned()).collect()
}

fn is_partial(args: &Explain) -> bool {
    args.filter.is_some() || args.from.is_some() || args.to.is_some()
}
