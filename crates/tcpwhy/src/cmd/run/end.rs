//! How a run ends: the exit code, and what speaks for it.

use super::{About, NOT_OURS, figures};
use crate::shown;
use std::path::Path;
use tcpwhy_lab::own::Ended;
use tcpwhy_report::Answer;
use tcpwhy_report::run::{Far, FarCost, Link, Once, Run};

/// How it all ends.
pub(super) struct End {
    /// For the document.
    pub(super) run: Run,
    /// What to say besides: about the baseline, about an earlier run.
    pub(super) notes: Vec<String>,
}

/// Judges conditions and baseline, compares with an earlier run.
pub(super) fn of(about: &About<'_>) -> anyhow::Result<End> {
    let (args, analysis) = (about.args, about.analysis);
    let answer = Answer::new(analysis);
    let mut run = document(about, &answer);
    let mut notes = Vec::new();
    run.failed = args.fail_if.iter().filter_map(|t| t.held(analysis, &answer)).collect();
    let unjudged = !args.fail_if.is_empty() && analysis.connections.is_empty();
    if unjudged {
        notes.push("--fail-if cannot be judged: there was no TCP connection".to_owned());
    }
    let failed = about.report.runs.iter().map(Ended::exit).find(|&code| code != 0);
    if let Some(path) = &args.baseline {
        baseline(path, failed, &mut run, &mut notes)?;
    }
    if let Some(path) = &args.compare {
        notes.extend(figures::compared(&figures::earlier(path)?, &run));
    }
    run.exit_code = match failed {
        Some(code) => code,
        None if unjudged => NOT_OURS,
        None if !run.failed.is_empty() => 4,
        None => 0,
    };
    Ok(End { run, notes })
}

fn baseline(path: &Path, failed: Option<u8>, run: &mut Run, notes: &mut Vec<String>) -> anyhow::Result<()> {
    // What a failed command did is nothing to be held to.
    if let (Some(_), false) = (failed, path.exists()) {
        notes.push("--baseline: nothing was written, because the command failed".into());
        return Ok(());
    }
    match figures::guard(path, &run.command, &run.figures)? {
        figures::Guarded::Written => notes.push(format!(
            "--baseline: {} did not exist and was written: keep it with the tests",
            shown::argument(path.as_os_str())
        )),
        figures::Guarded::Grown(all) => run.failed.extend(all),
    }
    Ok(())
}

fn document(about: &About<'_>, answer: &Answer) -> Run {
    let (args, report) = (about.args, about.report);
    let once = |e: &Ended| Once { duration_ns: e.duration_ns, exit_code: e.code, signal: e.signal };
    let (late, lost) = (&report.lateness, report.lost);
    let link = about.plan.link.as_ref().map(|link| Link {
        rtt_ns: link.shared.rtt().0,
        rate_bps: args.rate.map(|mbit| mbit * 1e6),
        loss: args.loss,
        mtu: link.shared.mtu,
        delivered: late.count as u64,
        late_p50_ns: late.p50_ns,
        late_p99_ns: late.p99_ns,
        disturbed: report.disturbed,
        lost: lost.chance + lost.queue + lost.refused,
    });
    let far = about.far.map(|far| Far {
        round_trips_least: far.trips.0,
        round_trips_most: far.trips.1,
        costs: far
            .costs
            .iter()
            .map(|c| FarCost { rtt_ns: c.rtt.0, more_least_ns: c.least.0, more_most_ns: c.most.0 })
            .collect(),
        replayed: far.replayed,
    });
    Run {
        command: super::command(&args.command),
        runs: report.runs.iter().map(once).collect(),
        exit_code: 0,
        failed: Vec::new(),
        link,
        outside: report.outside.iter().map(|(place, _)| place.to_string()).collect(),
        left_behind: report.left.clone(),
        missed: report.missed,
        at_a_distance: far,
        figures: figures::of(about.analysis, about.far),
        causes_ns: answer.causes.iter().map(|p| (p.cause.id().to_owned(), p.requests.0)).collect(),
    }
}
