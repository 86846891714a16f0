//! Outcomes for a person.

use super::describe;
use super::experiment::Outcome;
use crate::shown;
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;
use std::path::Path;
use tcpwhy_base::Nanos;
use tcpwhy_lab::{Calibration, Exchange, Lost, Run, Scenario, Verdict};
use tcpwhy_report::predict::patterns;

/// How many exchanges, losses and errors are listed.
const LISTED: usize = 8;

/// One line about the link of this machine.
pub(super) fn calibration(c: &Calibration) -> String {
    let disturbed = if c.disturbed { "; the machine was busy meanwhile" } else { "" };
    format!(
        "link of this machine: {} for a round trip without delay, at most {:.0} Mbit/s at MTU 1500 ({:.0} with \
         segments of 64 KB), late by {} (median), {} (99 %){disturbed}",
        tcpwhy_lab::Unit::Ms.show(c.path_ms),
        c.rate_mbit,
        c.rate_offload_mbit,
        Nanos(c.lateness.p50_ns),
        Nanos(c.lateness.p99_ns),
    )
}

/// The name of a row.
pub(super) fn label(name: &str, at: Option<&str>) -> String {
    at.map_or_else(|| name.to_owned(), |at| format!("{name} {at}"))
}

/// The head of the table.
pub(super) fn head(width: usize) -> String {
    let [published, measured, theory] = ["published", "measured", "theory"];
    format!(
        "{:<width$}  {published:>12}  {measured:>12}  {theory:>12}  {:>9}  verdict",
        "scenario", "link late"
    )
}

/// One experiment in the table.
pub(super) fn row(o: &Outcome, width: usize) -> String {
    let label = label(&o.name, o.at.as_deref());
    if let Some(why) = &o.skipped {
        let word = if o.verdict == Verdict::NotAsExpected { "FAILED" } else { "SKIP" };
        return format!("{label:<width$}  {word}: {why}");
    }
    let [published, measured, theory] =
        o.compared().map(|v| v.map_or_else(|| "-".to_owned(), |v| o.unit.show(v)));
    let style = style(o.verdict);
    format!(
        "{label:<width$}  {published:>12}  {measured:>12}  {theory:>12}  {:>9}  {style}{}{style:#}{}{}",
        Nanos(o.lateness.p99_ns).to_string(),
        o.verdict.words(),
        if o.scaled.is_some() { " (scaled)" } else { "" },
        if o.disturbed && o.verdict != Verdict::Disturbed { " (busy machine)" } else { "" },
    )
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::AsPublished | Verdict::AsExpected => AnsiColor::Green.on_default(),
        Verdict::Explained => AnsiColor::Cyan.on_default(),
        Verdict::NotAsExpected | Verdict::Disturbed => AnsiColor::Red.on_default().bold(),
        Verdict::NotJudged => Style::new(),
    }
}

/// What stands below the table: curves, why figures deviate, what does not fit, the sums.
pub(super) fn foot(results: &[Outcome], plots: &[&str]) -> String {
    let mut text = String::new();
    for name in plots {
        let points: Vec<&Outcome> = results.iter().filter(|o| o.name == *name).collect();
        text += &plot(&points);
    }
    let mut section = |title: &str, of: &dyn Fn(&Outcome) -> Option<String>| {
        let mut lines: Vec<String> =
            results.iter().filter_map(|o| of(o).map(|why| format!("  {}: {why}", o.name))).collect();
        lines.dedup();
        if !lines.is_empty() {
            let _ = write!(text, "\n{title}\n{}\n", lines.join("\n"));
        }
    };
    let made = |o: &Outcome, verdicts: &[Verdict]| {
        note(o).filter(|_| o.skipped.is_none() && verdicts.contains(&o.verdict))
    };
    section("why figures are not the published ones", &|o| made(o, &[Verdict::Explained]));
    section("chance decides", &chance);
    section("not as expected", &|o| made(o, &[Verdict::NotAsExpected, Verdict::Disturbed]));
    let count = |of: &dyn Fn(&Outcome) -> bool| results.iter().filter(|o| of(o)).count();
    let verdict = |v: Verdict| count(&|o| o.verdict == v && o.skipped.is_none());
    let _ = write!(
        text,
        "\n{} as published, {} deviate and are explained, {} as expected, {} NOT as expected, {} disturbed, {} not \
         judged, {} skipped\n",
        verdict(Verdict::AsPublished),
        verdict(Verdict::Explained),
        verdict(Verdict::AsExpected),
        count(&|o| o.verdict == Verdict::NotAsExpected),
        verdict(Verdict::Disturbed),
        verdict(Verdict::NotJudged),
        count(&|o| o.skipped.is_some() && o.verdict != Verdict::NotAsExpected),
    );
    text
}

/// What there is to say beside the verdict: why it was not made, why the figure is not the published one, or what was
/// expected instead.
pub(super) fn note(o: &Outcome) -> Option<String> {
    match (&o.skipped, o.verdict) {
        (Some(why), _) => Some(why.clone()),
        (None, Verdict::Explained) => o.deviation.as_ref().map(|why| format!("{why} ({})", checked(o))),
        (None, Verdict::NotAsExpected | Verdict::Disturbed) => Some(expectation(o)),
        _ => None,
    }
}

/// How the reason of a deviation was checked.
fn checked(o: &Outcome) -> String {
    let Some(c) = &o.control else { return "not checked by a run of its own".to_owned() };
    let measured = c.measured.map_or_else(|| "nothing".to_owned(), |m| o.unit.show(m));
    format!("checked: with {} it is {measured}, {} expected", c.set, o.unit.show(c.expected))
}

/// What was expected, and by how much the figure may differ.
fn expectation(o: &Outcome) -> String {
    let unit = o.unit;
    if o.control.as_ref().is_some_and(|c| !c.confirmed) {
        let why = o.deviation.as_deref().unwrap_or_default();
        return format!("the reason given ({why}) was not confirmed; {}", checked(o));
    }
    let measured = o.measured.map_or_else(|| "nothing was measured".to_owned(), |m| unit.show(m));
    let mut text = format!("{} {measured}", o.measure.as_deref().unwrap_or("figure"));
    if let (Some(expected), Some(allowed)) = (o.figures.expected, o.allowed) {
        let _ = write!(text, ", expected {} to within {}", unit.show(expected), unit.show(allowed));
    }
    if o.runs.len() > 1 {
        let all: Vec<String> = o.runs.iter().map(|&r| unit.show(r)).collect();
        let _ = write!(text, " (runs: {})", all.join(", "));
    }
    text
}

/// Measured figures over the values of a sweep, both axes logarithmic as far as the figures are.
fn plot(points: &[&Outcome]) -> String {
    const BAR: f64 = 50.0;
    let figures: Vec<(String, f64, Option<f64>)> = points
        .iter()
        .filter_map(|o| Some((o.at.clone().unwrap_or_default(), o.measured?, o.figures.theory)))
        .collect();
    let Some(first) = points.first() else { return String::new() };
    let top = figures.iter().map(|f| f.1.max(f.2.unwrap_or(0.0))).fold(0.0, f64::max);
    if top <= 0.0 {
        return String::new();
    }
    let width = figures.iter().map(|f| f.0.len()).max().unwrap_or(0);
    let mut text = format!("\n{} (# measured, | theory)\n", first.title);
    for (at, measured, theory) in &figures {
        let column = |v: f64| (v / top * BAR).round().clamp(0.0, BAR) as usize;
        let mut bar: Vec<char> = std::iter::repeat_n('#', column(*measured)).collect();
        bar.resize(BAR as usize + 1, ' ');
        if let Some(cell) = theory.and_then(|t| bar.get_mut(column(t))) {
            *cell = '|';
        }
        let bar: String = bar.into_iter().collect();
        let _ = writeln!(text, "  {at:<width$}  {}  {}", bar, first.unit.show(*measured));
    }
    text
}

/// One experiment in full.
pub(super) fn one(o: &Outcome, scenario: &Scenario, c: &Calibration, keep: Option<&Path>) -> String {
    let mut text = describe::scenario(&o.name, scenario);
    text.push('\n');
    let mut line = |label: &str, words: String| {
        let _ = writeln!(text, "  {label:<10} {words}");
    };
    if let Some(why) = &o.skipped {
        line("SKIP", why.clone());
        return text;
    }
    let unit = o.unit;
    let show = |v: f64| unit.show(v);
    if let Some(measured) = o.measured {
        let scaled = o.scaled.map(|s| format!(" ({} at the published size)", show(s))).unwrap_or_default();
        let of = if o.runs.len() > 1 { format!(", median of {} runs", o.runs.len()) } else { String::new() };
        line("figure", format!("{}{scaled}{of}", show(measured)));
    }
    if let Some(words) = chance(o) {
        line("chance", words);
    }
    if let Some(theory) = o.figures.theory.filter(|_| o.verdict != Verdict::NotJudged) {
        line("in theory", show(theory));
    }
    if let Some(words) = changed(o) {
        line("changed", words);
    }
    let style = style(o.verdict);
    let why = match (o.verdict, &o.deviation) {
        (Verdict::Explained, Some(why)) => format!(": {why} ({})", checked(o)),
        (Verdict::NotAsExpected | Verdict::Disturbed, _) => format!(": {}", expectation(o)),
        _ => String::new(),
    };
    line("verdict", format!("{style}{}{style:#}{why}", o.verdict.words()));
    if o.cut_off {
        line("", "cut off by the time limit or by the user".into());
    }
    if let Some(run) = &o.last {
        details(run, &mut line);
    }
    let disturbed = if o.disturbed { "; DISTURBED: figures of this run are not exact" } else { "" };
    line(
        "link late",
        format!(
            "{} (median), {} (99 %), {} at most; stolen by the hypervisor {:.1} %, processors busy {:.0} %{disturbed}",
            Nanos(o.lateness.p50_ns),
            Nanos(o.lateness.p99_ns),
            Nanos(o.lateness.max_ns),
            o.steal * 100.0,
            o.busy * 100.0,
        ),
    );
    line("path", format!("{} of each round trip is the machine's own", tcpwhy_lab::Unit::Ms.show(c.path_ms)));
    if let Some(directory) = keep {
        line("kept in", shown::name(&directory.display().to_string()).into_owned());
    }
    text
}

/// `usually 8.70 ms; in 3 of 240 requests 46.0 ms (40.1 ms more nagle_delayed_ack: ...)`.
fn chance(o: &Outcome) -> Option<String> {
    let all: u64 = o.requests.iter().map(|p| p.count).sum();
    (all > 0).then(|| patterns(&o.requests, &format!("{all} requests")))
}

/// What was set, and what that did to the figure: `client.nodelay, server.nodelay. 11.1 ms instead of 94.0 ms
/// (theory of the unchanged one): 82.9 ms less.`
fn changed(o: &Outcome) -> Option<String> {
    if o.changed.is_empty() {
        return None;
    }
    let mut text = format!("{}.", o.changed.join(", "));
    if let (Some(measured), Some(unchanged)) = (o.measured, o.unchanged) {
        let difference = measured - unchanged;
        let _ = write!(
            text,
            " {} instead of {} (theory of the unchanged one): {} {}.",
            o.unit.show(measured),
            o.unit.show(unchanged),
            o.unit.show(difference.abs()),
            if difference < 0.0 { "less" } else { "more" }
        );
    }
    Some(shown::text(&text).into_owned())
}

fn details(run: &Run, line: &mut impl FnMut(&str, String)) {
    let list = |all: Vec<String>, more: bool| all.join(", ") + if more { ", ..." } else { "" };
    let shown = |all: usize| all > LISTED;
    if !run.exchanges.is_empty() {
        let each: Vec<String> = run.exchanges.iter().take(LISTED).map(Exchange::to_string).collect();
        line("exchanges", format!("{}: {}", run.exchanges.len(), list(each, shown(run.exchanges.len()))));
    }
    if !run.connects.is_empty() {
        let each: Vec<String> = run
            .connects
            .iter()
            .take(LISTED)
            .map(|c| c.error.clone().unwrap_or_else(|| Nanos(c.took_ns).to_string()))
            .collect();
        line("connects", format!("{}: {}", run.connects.len(), list(each, shown(run.connects.len()))));
    }
    if !run.printed_s.is_empty() {
        let each: Vec<String> =
            run.printed_s.iter().take(LISTED).map(|s| tcpwhy_lab::Unit::Ms.show(s * 1e3)).collect();
        line("times", list(each, shown(run.printed_s.len())));
    }
    let lost: Vec<String> = run.traffic.lost.iter().take(LISTED).map(lost).collect();
    if !lost.is_empty() {
        line("lost", format!("{}: {}", run.traffic.lost.len(), list(lost, shown(run.traffic.lost.len()))));
    }
    for (name, tally) in [("queue up", &run.traffic.up), ("queue down", &run.traffic.down)] {
        if tally.queue_max_ns > 0 {
            let (max, mean) = (Nanos(tally.queue_max_ns), Nanos(tally.queue_mean_ns));
            line(name, format!("at most {} bytes or {max}, mean {mean}", tally.queue_max_bytes));
        }
    }
    for event in run.events.iter().filter(|e| e.error.is_some()).take(4) {
        let what = format!("{:?}", event.op).to_lowercase();
        line(
            "failed",
            format!("{} {what}: {}", event.side.name(), event.error.as_deref().unwrap_or_default()),
        );
    }
    let counters = |side: &std::collections::BTreeMap<String, i64>| {
        const TELLING: [&str; 17] = [
            "TcpExtListenOverflows",
            "TcpExtListenDrops",
            "TcpExtTCPReqQFullDoCookies",
            "TcpExtTCPReqQFullDrop",
            "TcpExtTCPTimeouts",
            "TcpExtTCPLossProbes",
            "TcpExtTCPSpuriousRTOs",
            "TcpExtTCPSlowStartRetrans",
            "TcpExtTCPFastRetrans",
            "TcpExtTCPLostRetransmit",
            "TcpExtTCPZeroWindowDrop",
            "TcpExtTCPToZeroWindowAdv",
            "TcpExtPruneCalled",
            "TcpExtTCPRcvCollapsed",
            "TcpExtTCPRcvQDrop",
            "TcpExtTCPAbortOnTimeout",
            "TcpExtTCPDSACKRecv",
        ];
        let moved = TELLING.iter().filter_map(|n| Some(format!("{n} {}", side.get(*n)?)));
        moved.collect::<Vec<_>>().join(", ")
    };
    for (name, side) in [("client", &run.traffic.client_counters), ("server", &run.traffic.server_counters)] {
        let moved = counters(side);
        if !moved.is_empty() {
            line("counters", format!("{name}: {moved}"));
        }
    }
}

fn lost(lost: &Lost) -> String {
    let way = if lost.up { "up" } else { "down" };
    let what = match (lost.syn, lost.relative, lost.payload) {
        (true, ..) => "SYN".to_owned(),
        (_, _, 0) => "ACK".to_owned(),
        (_, Some(at), n) => format!("bytes {at}-{}", at + u64::from(n)),
        (_, None, n) => format!("{n} bytes"),
    };
    format!("{way} {what} ({})", format!("{:?}", lost.reason).to_lowercase())
}
