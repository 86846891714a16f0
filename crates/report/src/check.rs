//! What `tcpwhy check` says of a host: as text for people, as JSON for programs.

use crate::figures::count;
use crate::text::style::{BOLD, DIM, FIX, of, wrap};
use crate::watch::Unseen;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use tcpwhy_base::{Figures, FixId, Nanos};
use tcpwhy_live::check::Fault;

/// A fault, and whether somebody said that it is known.
#[derive(Debug)]
pub struct Line {
    /// The fault.
    pub fault: Fault,
    /// Somebody knows.
    pub acknowledged: bool,
}

/// What a check found.
#[derive(Debug)]
pub struct Checked {
    /// In the order of their ids.
    pub lines: Vec<Line>,
    /// How long the host was looked at.
    pub watched: Nanos,
    /// When that began, since the Unix epoch.
    pub start: Nanos,
    /// What cannot be seen.
    pub unseen: Vec<Unseen>,
}

/// The document.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "tcpwhy check, schema 1")]
struct Document<'a> {
    /// `tcpwhy`.
    tool: &'static str,
    version: &'static str,
    schema: u32,
    /// When it began (RFC 3339).
    start: String,
    /// How long the host was looked at.
    watched_ns: i64,
    faults: Vec<Row<'a>>,
    /// What cannot be seen.
    unseen: Vec<UnseenRow<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Row<'a> {
    /// Stable; a heading in docs/check.md.
    id: &'static str,
    /// What it is about: a listener, a connection, a destination; empty: the host.
    subject: &'a str,
    /// The cause of lost time that it makes (docs/schema/causes.json).
    cause: &'static str,
    /// Who has to act: `application`, `tcp`, `path` or `none`.
    owner: &'static str,
    acknowledged: bool,
    /// When it showed, from the start: first and last.
    first_ns: i64,
    last_ns: i64,
    evidence: &'a str,
    figures: BTreeMap<&'static str, u64>,
    fixes: Vec<FixRow>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FixRow {
    id: &'static str,
    title: &'static str,
    how: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct UnseenRow<'a> {
    what: &'a str,
    needs: &'a str,
}

fn how(fix: FixId) -> Vec<String> {
    let known = Figures::default();
    let rows = fix.info().how.iter();
    rows.filter_map(|h| Some(format!("{}: {}", h.system, known.fill(h.text)?))).collect()
}

/// The document, ended by a line break.
pub fn json(out: &mut impl Write, checked: &Checked) -> io::Result<()> {
    let document = Document {
        tool: "tcpwhy",
        version: env!("CARGO_PKG_VERSION"),
        schema: 1,
        start: crate::rfc3339(checked.start),
        watched_ns: checked.watched.0,
        faults: checked.lines.iter().map(row).collect(),
        unseen: checked.unseen.iter().map(|u| UnseenRow { what: &u.what, needs: &u.needs }).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn row(line: &Line) -> Row<'_> {
    let f = &line.fault;
    Row {
        id: f.id,
        subject: &f.subject,
        cause: f.cause.id(),
        owner: f.cause.owner().id(),
        acknowledged: line.acknowledged,
        first_ns: f.when.0.0,
        last_ns: f.when.1.0,
        evidence: &f.evidence,
        figures: f.figures.iter().copied().collect(),
        fixes: f
            .fixes
            .iter()
            .map(|&fix| FixRow { id: fix.info().id, title: fix.info().title, how: how(fix) })
            .collect(),
    }
}

/// For people, `width` columns wide; `verbose`: all fixes, and what is acknowledged in full.
pub fn text(out: &mut impl Write, checked: &Checked, width: usize, verbose: bool) -> io::Result<()> {
    let (known, new): (Vec<&Line>, Vec<&Line>) = checked.lines.iter().partition(|l| l.acknowledged);
    let known_text = if known.is_empty() { String::new() } else { format!(", {} acknowledged", known.len()) };
    let found = match new.len() {
        0 => "nothing is wrong with the host that shows (what connections wait for: tcpwhy watch)".to_owned(),
        n => count(n as u64, "fault"),
    };
    writeln!(out, "{BOLD}looked for {}: {found}{known_text}{BOLD:#}", checked.watched)?;
    for line in &new {
        fault(out, line, width, verbose)?;
    }
    for line in &known {
        if verbose {
            fault(out, line, width, verbose)?;
        } else {
            let subject = Some(&line.fault.subject).filter(|s| !s.is_empty()).map(|s| format!("  {s}"));
            writeln!(out, "\n{DIM}{}{} (acknowledged){DIM:#}", line.fault.id, subject.unwrap_or_default())?;
        }
    }
    if verbose {
        for u in &checked.unseen {
            paragraph(out, &format!("not seen: {} ({})", u.what, u.needs), 0, width)?;
        }
    } else if !checked.unseen.is_empty() {
        let names: Vec<&str> = checked.unseen.iter().map(|u| u.what.as_str()).collect();
        paragraph(out, &format!("not seen (-v: why): {}", names.join("; ")), 0, width)?;
    }
    Ok(())
}

fn fault(out: &mut impl Write, line: &Line, width: usize, verbose: bool) -> io::Result<()> {
    let f = &line.fault;
    let colour = of(f.cause);
    write!(out, "\n{colour}{}{colour:#}", f.id)?;
    // The host as a whole has no name.
    if !f.subject.is_empty() {
        write!(out, "  {BOLD}{}{BOLD:#}", f.subject)?;
    }
    writeln!(out)?;
    paragraph(out, &f.evidence, 4, width)?;
    let most = if verbose { f.fixes.len() } else { 2 };
    for (n, &fix) in f.fixes.iter().take(most).enumerate() {
        let lead = if n == 0 || verbose { "fix: " } else { " or: " };
        writeln!(out, "    {FIX}{lead}{}{FIX:#}", fix.info().title)?;
        let lines = how(fix);
        for how in lines.iter().take(if verbose { lines.len() } else { 1 }) {
            paragraph(out, how.strip_prefix("Any: ").unwrap_or(how), 9, width)?;
        }
    }
    Ok(())
}

fn paragraph(out: &mut impl Write, text: &str, indent: usize, width: usize) -> io::Result<()> {
    for line in wrap(text, width.saturating_sub(indent).max(20)) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

/// The JSON Schema of the document.
pub fn schema() -> String {
    crate::schema::text::<Document<'_>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::Cause;
    use tcpwhy_live::check::IDS;

    fn checked() -> Checked {
        let fault = |id, subject: &str| Fault {
            id,
            subject: subject.into(),
            cause: Cause::AcceptQueueFull,
            when: (Nanos::ZERO, Nanos::secs(1)),
            evidence: "up to 9 connections waited, 9 fit".into(),
            figures: vec![("backlog", 8)],
            fixes: vec![FixId::AcceptFaster, FixId::ListenBacklog],
        };
        Checked {
            lines: vec![
                Line { fault: fault("listener-queue-full", "0.0.0.0:80"), acknowledged: false },
                Line { fault: fault("listen-drops", ""), acknowledged: true },
            ],
            watched: Nanos::secs(10),
            start: Nanos::ZERO,
            unseen: vec![Unseen { what: "a".into(), needs: "b".into() }],
        }
    }

    #[test]
    fn the_schema_is_committed_and_kept() {
        crate::schema::tests::is_committed("check-1.json", &schema());
        let mut text = Vec::new();
        json(&mut text, &checked()).unwrap();
        let document = serde_json::from_slice(&text).unwrap();
        assert_eq!(crate::schema::tests::faults(&schema(), &document), Vec::<String>::new());
        assert_eq!(document["faults"][0]["figures"]["backlog"], 8);
    }

    #[test]
    fn text_keeps_what_is_known_short() {
        let mut text = Vec::new();
        super::text(&mut text, &checked(), 80, false).unwrap();
        let text = String::from_utf8(anstream::adapter::strip_bytes(&text).into_vec()).unwrap();
        assert!(text.starts_with("looked for 10.0 s: 1 fault, 1 acknowledged\n"), "{text}");
        assert!(text.contains("\nlisten-drops (acknowledged)\n"), "{text}");
        assert_eq!(text.matches("fix: ").count(), 1, "{text}");
        assert!(text.ends_with("not seen (-v: why): a\n"), "{text}");
        let mut text = Vec::new();
        super::text(&mut text, &checked(), 80, true).unwrap();
        let text = String::from_utf8(anstream::adapter::strip_bytes(&text).into_vec()).unwrap();
        assert!(
            text.contains("\nlisten-drops\n") && text.contains("\nlistener-queue-full  0.0.0.0:80\n"),
            "{text}"
        );
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
    }

    /// The page of an id is its section.
    #[test]
    fn every_id_has_its_section_and_no_other_has() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/check.md");
        let page = std::fs::read_to_string(path).unwrap();
        let sections: Vec<&str> = page.lines().filter_map(|l| l.strip_prefix("### ")).collect();
        assert_eq!(sections, IDS);
    }
}
