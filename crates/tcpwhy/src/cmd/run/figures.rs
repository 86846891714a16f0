//! Figures of a run that do not depend on the machine: made, written down, guarded, compared.

use crate::output::Output;
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use tcpwhy_base::{Class, Nanos};
use tcpwhy_library::{captures::Analysis, parts::Distance};
use tcpwhy_report::run::{Figures, Run};

/// A shorter wait may be the machine's.
const STALL: Nanos = Nanos::millis(10);
/// What may be more than the baseline says: a tenth, and one.
const SLACK: u64 = 10;

/// Of an analysis; `far` knows the round trips in a row.
pub(super) fn of(analysis: &Analysis, far: Option<&Distance>) -> Figures {
    let mut stalls: BTreeMap<String, u64> = BTreeMap::new();
    for c in &analysis.connections {
        for (_, span) in c.spans() {
            if span.cause.class() == Class::Tcp && span.duration() >= STALL {
                *stalls.entry(span.cause.id().into()).or_default() += 1;
            }
        }
    }
    Figures {
        connections: analysis.totals.connections,
        requests: analysis.totals.exchanges,
        round_trips_in_a_row: far.filter(|f| f.trips.0 == f.trips.1).map(|f| f.trips.0),
        bytes: analysis.connections.iter().map(|c| c.bytes[0] + c.bytes[1]).sum(),
        stalls,
    }
}

/// The file of a baseline.
#[derive(Serialize, Deserialize)]
struct Baseline {
    tcpwhy_baseline: u32,
    command: String,
    figures: Figures,
}

/// Complains before anything is run.
pub(super) fn can_be_read(args: &crate::args::run::Run) -> anyhow::Result<()> {
    if let Some(path) = &args.compare {
        earlier(path)?;
    }
    if let Some(path) = args.baseline.as_ref().filter(|p| p.exists()) {
        written(path)?;
    }
    Ok(())
}

fn written(path: &Path) -> anyhow::Result<Baseline> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    serde_json::from_str(&text)
        .map_err(|e| anyhow::anyhow!("{name} is no baseline ({e}): remove it, and the next run writes one"))
}

/// What `--baseline` came to.
pub(super) enum Guarded {
    /// There was none: it was written.
    Written,
    /// Sentences about figures that grew.
    Grown(Vec<String>),
}

/// Writes the figures if there is no such file; else says what has grown beyond them.
pub(super) fn guard(path: &Path, command: &str, now: &Figures) -> anyhow::Result<Guarded> {
    if path.exists() {
        return Ok(Guarded::Grown(grown(&written(path)?.figures, now)));
    }
    let baseline = Baseline { tcpwhy_baseline: 1, command: command.into(), figures: now.clone() };
    let mut out = Output::beside(path, "--baseline")?;
    let text = serde_json::to_string_pretty(&baseline)? + "\n";
    let written = out.write_all(text.as_bytes());
    out.finish(written.map_err(Into::into))?;
    Ok(Guarded::Written)
}

fn grown(old: &Figures, now: &Figures) -> Vec<String> {
    let mut all = vec![
        ("connections opened".to_owned(), old.connections, now.connections),
        ("requests".to_owned(), old.requests, now.requests),
        ("bytes".to_owned(), old.bytes, now.bytes),
    ];
    if let (Some(old), Some(now)) = (old.round_trips_in_a_row, now.round_trips_in_a_row) {
        all.push(("round trips in a row".into(), old, now));
    }
    for cause in old.stalls.keys().chain(now.stalls.keys()).collect::<BTreeSet<_>>() {
        let of = |f: &Figures| f.stalls.get(cause).copied().unwrap_or(0);
        all.push((format!("stalls by {cause}"), of(old), of(now)));
    }
    let more = |(what, old, now): (String, u64, u64)| {
        (now > old + old / SLACK + 1).then(|| format!("--baseline: {what}: {now}, and {old} before"))
    };
    all.into_iter().filter_map(more).collect()
}

/// The run of an earlier `tcpwhy run --json`.
pub(super) fn earlier(path: &Path) -> anyhow::Result<Run> {
    #[derive(Deserialize)]
    struct Document {
        run: Option<Run>,
    }
    let name = path.display();
    let text = fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let document: Document = serde_json::from_slice(&text).map_err(|e| {
        anyhow::anyhow!("{name} is no JSON of tcpwhy run ({e}): tcpwhy run --json -o {name} writes one")
    })?;
    document.run.ok_or_else(|| anyhow::anyhow!("{name} has no run: tcpwhy run --json -o {name} writes one"))
}

/// The middle one; of an even number the mean of the two in the middle.
pub(super) fn median(durations: impl Iterator<Item = i64>) -> Nanos {
    let mut all: Vec<i64> = durations.collect();
    all.sort_unstable();
    let at = |n: usize| all.get(n).copied().unwrap_or(0);
    let (below, above) = (at(all.len().saturating_sub(1) / 2), at(all.len() / 2));
    Nanos(below.midpoint(above))
}

/// Before beside now, a line each for what differs.
pub(super) fn compared(old: &Run, now: &Run) -> Vec<String> {
    let median = |run: &Run| median(run.runs.iter().map(|r| r.duration_ns));
    let mut lines = vec![format!("compared: {} before, {} now", median(old), median(now))];
    let mut figure = |what: &str, old: u64, now: u64| {
        if old != now {
            lines.push(format!("  {what}: {old} before, {now} now"));
        }
    };
    let (a, b) = (&old.figures, &now.figures);
    figure("connections opened", a.connections, b.connections);
    figure("requests", a.requests, b.requests);
    figure("bytes", a.bytes, b.bytes);
    if let (Some(a), Some(b)) = (a.round_trips_in_a_row, b.round_trips_in_a_row) {
        figure("round trips in a row", a, b);
    }
    let causes: BTreeSet<&String> = old.causes_ns.keys().chain(now.causes_ns.keys()).collect();
    let time = |run: &Run, cause: &str| run.causes_ns.get(cause).copied().unwrap_or(0);
    let mut causes: Vec<_> = causes.into_iter().map(|c| (c, time(old, c), time(now, c))).collect();
    causes.sort_by_key(|(_, a, b)| std::cmp::Reverse((b - a).abs()));
    // Below a hundredth of the longer run a difference says nothing.
    let least = median(old).max(median(now)).0 / 100;
    for (cause, a, b) in causes.into_iter().filter(|(_, a, b)| (b - a).abs() > least) {
        lines.push(format!("  {cause}: {} before, {} now", Nanos(a), Nanos(b)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        let median = |all: &[i64]| median(all.iter().copied()).0;
        assert_eq!((median(&[]), median(&[7]), median(&[9, 1])), (0, 7, 5));
        assert_eq!((median(&[30, 10, 20]), median(&[40, 10, 30, 21])), (20, 25));
    }

    #[test]
    fn a_tenth_and_one_may_be_chance() {
        let figures = |requests, stalls: u64| Figures {
            requests,
            stalls: [("nagle".to_owned(), stalls)].into(),
            ..Figures::default()
        };
        assert_eq!(grown(&figures(100, 0), &figures(111, 1)), [""; 0]);
        assert_eq!(grown(&figures(100, 0), &figures(112, 0)), ["--baseline: requests: 112, and 100 before"]);
        assert_eq!(grown(&figures(9, 0), &figures(5, 2)), ["--baseline: stalls by nagle: 2, and 0 before"]);
    }
}
