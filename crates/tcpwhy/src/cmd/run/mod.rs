//! `tcpwhy run`: a command in a network of its own, captured and explained.

mod ci;
mod end;
mod figures;
mod link;
mod said;

use self::end::End;
use crate::args::Explain;
use crate::args::run::Run;
use crate::cmd::explain;
use crate::extras::Extras;
use crate::failure::{Exit, Usage, exit_of, is_broken_pipe, say, told};
use crate::input::Input;
use crate::output::{self, Output};
use crate::source::Source;
use crate::temporary::{self, Temporary};
use crate::{load, shown};
use anyhow::Context as _;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tcpwhy_lab::own::{NotRun, Plan, Report, Running};
use tcpwhy_library::captures::Captures;
use tcpwhy_library::model::Congestion;
use tcpwhy_library::{Detail, captures::Analysis, parts::Distance, parts::Elsewhere};
use tcpwhy_report::{Answer, Capture, Warning, headline, quality_warnings};

/// Where a run is kept that is proposed to be.
const KEPT: &str = "tcpwhy-kept";
/// Longest command that is shown whole.
const SHOWN: usize = 60;
/// Exchanges that are kept in detail.
const DETAIL: Detail = Detail::Worst(5_000);

/// Runs the command, says what was found, ends as the command did.
pub(crate) fn run(args: &Run) -> anyhow::Result<Exit> {
    match run_it(args) {
        Err(e) if exit_of(&e) != Exit::Usage => {
            say(&told(&e));
            Ok(Exit::Program(NOT_OURS))
        }
        other => other,
    }
}

/// What a command must not return to be told from us (env(1), timeout(1)).
const NOT_OURS: u8 = 125;

fn run_it(args: &Run) -> anyhow::Result<Exit> {
    let plan = Plan {
        link: link::scenario(args).map_err(Usage)?,
        server: args.server.clone(),
        command: args.command.clone(),
        repeat: args.repeat,
    };
    let kept = args.keep.as_ref().map(|folder| folder.join("run.pcap"));
    let name = kept.clone().unwrap_or_else(|| PathBuf::from("run"));
    let questions = args.explain(name);
    let mut outputs = Extras::files(&questions);
    outputs.push(kept.as_deref());
    output::refuse_overwriting(&outputs, &[])?;
    figures::can_be_read(args)?;
    let extras = Extras::open(&questions)?;
    let out = answer_to(args)?;
    let keep = Kept::open(args, kept.as_deref(), &questions)?;
    // Before the first thread: the process is about to be doubled.
    let stop = Arc::new(AtomicBool::new(false));
    let running = match plan.start(&stop, give_up) {
        Ok(running) => running,
        Err(why) => return Ok(not_run(&why)),
    };
    let (ran, inputs) = explained(running, keep, &stop, &args.command)?;
    let Ran { report, mut analysis, mut capture, kept: _kept, cut } = match ran {
        Ok(ran) => ran,
        Err(why) => return Ok(not_run(&why)),
    };
    explain::narrow(&questions, &mut analysis)?;
    tcpwhy_library::replay(&mut analysis);
    capture.warnings.extend(missed(&report));
    let source =
        Source { inputs: &inputs, frames_before: &capture.frames_before, window: None, filter: None };
    explain::name(&questions, &source, &mut analysis)?;
    let to = Elsewhere { rtts: &said::DISTANCES, congestion: congestion() };
    let far = if plan.link.is_none() { tcpwhy_library::distance(&analysis, to) } else { None };
    let packets = (capture.packets, capture.tcp_packets);
    let about = About { args, plan: &plan, report: &report, analysis: &analysis, packets, far: far.as_ref() };
    let mut end = end::of(&about)?;
    // How it ended is the last line, and what could not be written is a part of that.
    let written = extras.write(&source, &analysis, &capture, explain::threads());
    if let Some(e) = cut.or(written.err()) {
        say(&told(&e));
        end.run.exit_code = if end.run.exit_code == 0 { NOT_OURS } else { end.run.exit_code };
    }
    answer(out, &about, &questions, &source, &capture, &end)?;
    Ok(Exit::Program(end.run.exit_code))
}

/// What a new network of this host begins with; loopback does not show it.
fn congestion() -> Congestion {
    match std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default().trim() {
        "bbr" => Congestion::Bbr,
        "reno" => Congestion::Reno,
        // Linux's own default, also instead of those that the model does not know.
        _ => Congestion::Cubic,
    }
}

/// All that is known of a run.
pub(super) struct About<'a> {
    args: &'a Run,
    plan: &'a Plan,
    report: &'a Report,
    analysis: &'a Analysis,
    /// All that passed, and those of TCP.
    packets: (u64, u64),
    /// What a distance would cost.
    far: Option<&'a Distance>,
}

/// A second request to end, while the answer is made.
fn give_up(signal: i32) {
    temporary::remove_all();
    std::process::exit(128 + signal);
}

fn not_run(why: &NotRun) -> Exit {
    say(&why.to_string());
    Exit::Program(match why {
        NotRun::Machine(_) => NOT_OURS,
        NotRun::NotRunnable(_) => 126,
        NotRun::NotFound(_) => 127,
    })
}

/// Text goes beside what the command prints, a document where it can be read from.
fn answer_to(args: &Run) -> anyhow::Result<Output> {
    match &args.output {
        None if !args.json => Ok(Output::standard_error()),
        path => Output::open(path.as_deref(), args.json),
    }
}

/// Where the capture is kept, if it is to be read twice or wanted later.
enum Kept {
    Nowhere,
    Here(File, PathBuf),
    Meanwhile(File, Temporary),
}

impl Kept {
    fn open(args: &Run, path: Option<&Path>, questions: &Explain) -> anyhow::Result<Kept> {
        if let (Some(path), Some(folder)) = (path, &args.keep) {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            let file =
                tcpwhy_lab::new_file(path).with_context(|| format!("cannot write {}", path.display()))?;
            return Ok(Kept::Here(file, path.into()));
        }
        if Extras::read_again(questions) {
            let folder = std::env::temp_dir();
            let made = Temporary::file(&folder, "tcpwhy-", ".capture", true);
            let (file, temporary) =
                made.with_context(|| format!("cannot write into {}", folder.display()))?;
            return Ok(Kept::Meanwhile(file, temporary));
        }
        Ok(Kept::Nowhere)
    }
}

/// What is known when the command has ended.
struct Ran {
    report: Report,
    analysis: Analysis,
    capture: Capture,
    /// Keeps what is read a second time.
    kept: Kept,
    /// Why not all of it was kept: what is told is of what passed before.
    cut: Option<anyhow::Error>,
}

/// Analyses what passes while it does, or when all of it is in a file.
fn explained(
    mut running: Running,
    mut kept: Kept,
    stop: &Arc<AtomicBool>,
    command: &[OsString],
) -> anyhow::Result<(Result<Ran, NotRun>, Vec<Input>)> {
    let name = self::command(command);
    let (path, cut) = match &mut kept {
        Kept::Nowhere => (PathBuf::from(format!("/proc/self/fd/{}", running.packets.as_raw_fd())), None),
        Kept::Here(file, path) => (path.clone(), keep(&mut running.packets, file)),
        Kept::Meanwhile(file, temporary) => (temporary.path().into(), keep(&mut running.packets, file)),
    };
    let what = || format!("cannot write {}; what follows is of the packets until then", path.display());
    let cut = cut.map(|e| anyhow::Error::from(e).context(what()));
    let name = if matches!(kept, Kept::Here(..)) { path.display().to_string() } else { name };
    let inputs = vec![Input { path, name }];
    let captures = Captures::new(&inputs).detail(DETAIL).stopped_by(stop);
    let (analysis, mut read) = captures.explain(&mut |_, _| ())?;
    let report = match running.finish() {
        Ok(report) => report,
        Err(why) => return Ok((Err(why), inputs)),
    };
    load::say_problems(&inputs, &mut read, Vec::new());
    let warnings = quality_warnings(&analysis.totals);
    let capture = load::capture(&inputs, read, analysis.connection_count(), false, warnings);
    let capture = Capture { of_command: true, ..capture };
    Ok((Ok(Ran { report, analysis, capture, kept, cut }), inputs))
}

/// Keeps what passes. Where that fails the rest is let go, so that the command ends as it would have.
fn keep(packets: &mut File, file: &mut File) -> Option<io::Error> {
    let failed = io::copy(packets, file).err()?;
    // The pipe ends with the command, whatever it gives until then.
    _ = io::copy(packets, &mut io::sink());
    Some(failed)
}

/// What the capture lacks.
fn missed(report: &Report) -> Option<Warning> {
    (report.missed > 0).then(|| Warning {
        code: "capture_drops_reported",
        text: "packets were not captured because the machine was too busy: times and causes around them may be wrong; run \
               it with less beside it"
            .into(),
        count: report.missed,
    })
}

/// Says it: the document or the text, and for CI systems both.
fn answer(
    mut out: Output,
    about: &About<'_>,
    questions: &Explain,
    source: &Source<'_>,
    capture: &Capture,
    end: &End,
) -> anyhow::Result<()> {
    let (args, analysis) = (about.args, about.analysis);
    let lines = said::lines(about, end);
    let mut text = Vec::new();
    if !args.json || args.ci.is_some() {
        if !analysis.connections.is_empty() {
            let mut layout = explain::layout(questions, source.inputs, capture, &out);
            if args.keep.is_none() {
                layout.command = again(std::env::args_os());
            }
            explain::say_it(&mut text, questions, source, analysis, capture, &layout)?;
        }
        for line in &lines {
            writeln!(text, "{}", shown::name(line))?;
        }
    }
    let written = if args.json {
        let run = Some(&end.run);
        tcpwhy_report::json::write_run(&mut out, analysis, capture, explain::threads(), run)
    } else {
        out.write_all(&text)
    };
    // Who reads it may have had enough: how the command ended is known all the same.
    out.finish(written.map_err(Into::into)).or_else(|e| if is_broken_pipe(&e) { Ok(()) } else { Err(e) })?;
    if args.json {
        lines.iter().for_each(|line| say(line));
    }
    let Some(folder) = &args.ci else { return Ok(()) };
    let conditions: Vec<String> = args.fail_if.iter().map(ToString::to_string).collect();
    ci::write(
        folder,
        &ci::Said {
            run: &end.run,
            headline: &headline(analysis, capture, &Answer::new(analysis)),
            conditions: &conditions,
            text: &String::from_utf8_lossy(&anstream::adapter::strip_bytes(&text).into_vec()),
        },
    )
}

/// What to type to look closer at what was not kept: the same once more with `--keep`, then the explanation.
fn again(typed: impl Iterator<Item = OsString>) -> String {
    let mut words: Vec<String> = typed.skip(1).map(|w| shown::word(&w)).collect();
    let at = words.iter().position(|w| w == "run").map_or(0, |at| at + 1);
    words.splice(at..at, ["--keep".to_owned(), KEPT.to_owned()]);
    format!("tcpwhy {}; tcpwhy explain {KEPT}/run.pcap", words.join(" "))
}

/// As a shell has to be told it, cut.
pub(super) fn command(words: &[OsString]) -> String {
    let whole = words.iter().map(|w| shown::word(w)).collect::<Vec<_>>().join(" ");
    if whole.chars().count() <= SHOWN {
        return whole;
    }
    whole.chars().take(SHOWN).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_proposed_can_be_pasted() {
        let said = |words: &[&str]| again(words.iter().map(OsString::from));
        assert_eq!(
            said(&["/usr/bin/tcpwhy", "run", "--rtt", "20ms", "--", "./a b.sh", "run"]),
            "tcpwhy run --keep tcpwhy-kept --rtt 20ms -- './a b.sh' run; tcpwhy explain tcpwhy-kept/run.pcap"
        );
    }
}
