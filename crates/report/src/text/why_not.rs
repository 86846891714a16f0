//! What speaks for a cause, and what is missing for it.

use super::style::BOLD;
use super::{Layout, findings, markdown::render};
use crate::Answer;
use crate::figures::{count, percent};
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, missing};
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
    let answer = Answer::new(analysis);
    let found: Vec<_> = analysis.findings.iter().filter(|f| f.cause == cause).collect();
    writeln!(out, "{BOLD}why not {}?{BOLD:#}", cause.id())?;
    for f in &found {
        let beside = [(f.idle, "between requests"), (f.tail, "after the last byte")];
        let beside = beside.iter().filter(|(time, _)| *time > Nanos::ZERO);
        let beside: String = beside.map(|(time, when)| format!("; {time} {when}")).collect();
        let of = if beside.is_empty() { "" } else { " of requests" };
        let text = format!(
            "It was found: {}, {}{of} ({}){beside}.",
            count(f.occurrences, "time"),
            f.of_requests(),
            percent(f.share_of_requests)
        );
        findings::lines(out, &text, 2, layout)?;
    }
    let time = answer.part(cause).requests;
    if found.is_empty() && time > Nanos::ZERO {
        findings::lines(
            out,
            &format!("It holds {time} ({}), too little for a finding.", percent(answer.share(time))),
            2,
            layout,
        )?;
    } else if found.is_empty() {
        let instead = instead(&answer);
        findings::lines(out, &format!("It was not found. The time went to: {instead}."), 2, layout)?;
    }
    if cause.info().live_only {
        findings::lines(out, "A capture cannot show it: only a look at the live host can.", 2, layout)?;
    }
    let nothing = found.is_empty() && time <= Nanos::ZERO && !cause.info().live_only;
    for line in missing(&analysis.connections, cause).iter().filter(|_| nothing) {
        findings::lines(out, line, 2, layout)?;
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
        for line in render(text, layout.width.saturating_sub(2)).lines() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// The largest parts of the time.
fn instead(answer: &Answer) -> String {
    let parts = answer.causes.iter().filter(|p| p.requests > Nanos::ZERO).take(4);
    let parts: Vec<String> = parts
        .map(|p| format!("{} {} ({})", p.cause.id(), p.requests, percent(answer.share(p.requests))))
        .collect();
    if parts.is_empty() { "nothing at all".into() } else { parts.join(", ") }
}

/// Spans in detail that name `cause` as an alternative, and their time.
fn alternatives(analysis: &Analysis, cause: Cause) -> (u64, Nanos) {
    let spans = analysis.connections.iter().flat_map(|c| c.spans()).map(|(_, span)| span);
    let named = spans.filter(|s| s.alternatives.iter().flatten().any(|a| a.0 == cause));
    named.fold((0, Nanos::ZERO), |(n, time), s| (n + 1, time + s.duration()))
}
