use crate::args::Explain;
use crate::failure::{Exit, Usage, say};
use crate::input::{self, Input};
use crate::output::Output;
use crate::pipeline::{self, Read, Settings};
use crate::progress::Progress;
use crate::select;
use anyhow::bail;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tcpwhy_analysis::{Analysis, Config};
use tcpwhy_report::{Capture, Summary, Warning, json, quality_warnings};

/// Reads the captures, analyses them, says what was found.
pub(crate) fn run(args: &Explain) -> anyhow::Result<Exit> {
    let stdin = args.files.iter().filter(|f| f.as_os_str() == "-").count();
    if stdin > 0 && args.files.len() > 1 {
        bail!(Usage("standard input (-) cannot be joined with other inputs: write it to a file first".into()));
    }
    let stop = stop_signal()?;
    let (inputs, unreadable) = input::in_order(&args.files);
    let mut progress = Progress::new(args.quiet);
    let settings = Settings {
        inputs: &inputs,
        from: args.from,
        to: args.to,
        config: Config { detail: args.exchanges },
        stop: &stop,
    };
    let (mut analysis, mut read) = pipeline::run(&settings, &mut progress)?;
    progress.clear();
    read.unreadable.splice(0..0, unreadable);
    for problem in read.unreadable.iter().chain(&read.damaged) {
        say(problem);
    }
    if read.opened == 0 {
        return Ok(Exit::Unreadable);
    }
    if let Some(which) = &args.connection {
        select::connections(&mut analysis, which).map_err(Usage)?;
    }
    if let Some(limit) = args.slower_than {
        select::slower_than(&mut analysis, limit);
    }
    let capture = capture(&inputs, &read, &analysis);
    let mut out = Output::open(args.output.as_deref(), args.json || args.jsonl)?;
    if args.json {
        json::write(&mut out, &analysis, &capture)?;
    } else if args.jsonl {
        json::write_lines(&mut out, &analysis, &capture)?;
    }
    out.finish()?;
    let summary = Summary::new(&analysis);
    let mut held = false;
    for reason in args.fail_if.iter().filter_map(|t| t.held(&analysis, &summary)) {
        say(&reason);
        held = true;
    }
    Ok(match () {
        () if held => Exit::Held,
        () if !read.unreadable.is_empty() || !read.damaged.is_empty() => Exit::Damaged,
        () => Exit::Done,
    })
}

/// Set by the first interrupt; the second ends the program at once.
fn stop_signal() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::SIGINT;
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&stop))?;
    signal_hook::flag::register(SIGINT, Arc::clone(&stop))?;
    Ok(stop)
}

fn capture(inputs: &[Input], read: &Read, analysis: &Analysis) -> Capture {
    let mut warnings: Vec<Warning> = Vec::new();
    warnings.extend(quality_warnings(&analysis.connections));
    Capture {
        files: inputs.iter().map(|i| i.name.clone()).collect(),
        packets: read.packets,
        tcp_packets: read.tcp,
        span: read.span,
        connections: analysis.connections.len() as u64,
        warnings,
    }
}
