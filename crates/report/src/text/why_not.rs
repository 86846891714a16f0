//! What speaks for a cause, and what is missing for it.

use super::style::{BOLD, count, percent};
use super::{Layout, findings};
use crate::Summary;
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, Connection};
use tcpwhy_base::{Cause, Nanos};

/// Says whether `cause` was found and, if not, where the time went instead, what was looked at (`evidence`), and
/// what it would take (`recognised`, a part of its page).
pub fn why_not(
    out: &mut impl Write,
    analysis: &Analysis,
    cause: Cause,
    evidence: &[String],
    recognised: Option<&str>,
    layout: &Layout,
) -> io::Result<()> {
    let summary = Summary::new(analysis);
    let found: Vec<_> = analysis.findings.iter().filter(|f| f.cause == cause).collect();
    writeln!(out, "\n{BOLD}why not {}?{BOLD:#}", cause.id())?;
    for f in &found {
        let text =
            format!("It was found: {}, {} ({}).", count(f.occurrences, "time"), f.waited(), percent(f.share));
        findings::lines(out, &text, 2, layout)?;
    }
    let time = analysis.totals.budget.get(cause) + analysis.totals.gap_budget.get(cause);
    if found.is_empty() && time > Nanos::ZERO {
        findings::lines(
            out,
            &format!("It holds {time} ({}), too little for a finding.", percent(summary.share(time))),
            2,
            layout,
        )?;
    } else if found.is_empty() {
        let instead = instead(analysis, &summary);
        findings::lines(out, &format!("It was not found. The time went to: {instead}."), 2, layout)?;
    }
    if cause.info().live_only {
        findings::lines(out, "A capture cannot show it: only a look at the live host can.", 2, layout)?;
    }
    let (others, time) = alternatives(analysis, cause);
    if others > 0 {
        let text = format!(
            "It could not be ruled out for {} ({time}) with another cause: see `alternatives` in --json.",
            count(others, "span")
        );
        findings::lines(out, &text, 2, layout)?;
    }
    for line in evidence {
        findings::lines(out, &format!("- {line}"), 2, layout)?;
    }
    if let Some(text) = recognised {
        writeln!(out, "\n  It takes:\n")?;
        for line in text.lines() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// The largest parts of the time.
fn instead(analysis: &Analysis, summary: &Summary) -> String {
    let mut all = analysis.totals.budget.clone();
    all.add_all(&analysis.totals.gap_budget);
    all.0.sort_by_key(|e| std::cmp::Reverse(e.1));
    let parts = all.0.iter().take(4).map(|&(c, t)| format!("{} {t} ({})", c.id(), percent(summary.share(t))));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "nothing at all".into() } else { parts.join(", ") }
}

/// Spans in detail that name `cause` as an alternative, and their time.
fn alternatives(analysis: &Analysis, cause: Cause) -> (u64, Nanos) {
    let spans = analysis.connections.iter().flat_map(Connection::spans).map(|(_, span)| span);
    let named = spans.filter(|s| s.alternatives.iter().flatten().any(|a| a.0 == cause));
    named.fold((0, Nanos::ZERO), |(n, time), s| (n + 1, time + s.duration()))
}
