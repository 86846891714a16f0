//! The part of the page that needs no script: the verdict, where the time went, the findings, the connections.

use crate::Capture;
use crate::answer::{Answer, headline, sureness, tcp_time};
use crate::text::{bytes, guessed, listed, percent, range, saving, whose};
use std::fmt;
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, Connection, Finding};
use tcpwhy_base::{Kind, Owner};

/// Rows of the table of connections; the script shows all.
const ROWS: usize = 50;

/// Text that stands between tags or in a quoted attribute.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Control characters mean nothing in HTML, and could end a line of a terminal that shows the source.
                c if c.is_control() && c != '\n' => f.write_char(' ')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Writes it.
pub(crate) fn write(out: &mut impl Write, analysis: &Analysis, capture: &Capture) -> io::Result<()> {
    let answer = Answer::new(analysis);
    writeln!(out, "<p class=\"files\">{}</p>", Escaped(&capture.files.join(", ")))?;
    writeln!(out, "<h1>{}</h1>", Escaped(&headline(analysis, capture, &answer)))?;
    bar(out, &answer)?;
    let findings = listed(&analysis.findings);
    if !findings.is_empty() {
        writeln!(out, "<h2>What was found</h2>\n<ol>")?;
        for f in findings {
            finding(out, f)?;
        }
        writeln!(out, "</ol>")?;
    }
    if !capture.warnings.is_empty() {
        writeln!(out, "<h2>What the capture cannot show</h2>\n<ul>")?;
        for w in &capture.warnings {
            writeln!(out, "<li>{}</li>", Escaped(&w.text))?;
        }
        writeln!(out, "</ul>")?;
    }
    connections(out, analysis)
}

fn bar(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    if answer.causes.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<h2>Where the time went</h2>\n<table><tr><th>cause<th>whose<th>in requests<th>share<th>between</tr>"
    )?;
    for part in &answer.causes {
        let info = part.cause.info();
        writeln!(
            out,
            "<tr><td>{} <code>{}</code><td>{}<td>{}<td>{}<td>{}</tr>",
            Escaped(info.title),
            info.id,
            whose(part.cause, None),
            part.requests,
            Escaped(&percent(answer.share(part.requests))),
            part.idle
        )?;
    }
    writeln!(out, "</table>")
}

fn finding(out: &mut impl Write, f: &Finding) -> io::Result<()> {
    let info = f.cause.info();
    let known = f.cause.owner() != Owner::None;
    let sure = if known { format!(" · {}", sureness(f.confidence)) } else { String::new() };
    writeln!(
        out,
        "<li><h3>{} <small>{} · {} · {}{sure}</small></h3>",
        Escaped(info.title),
        f.of_requests(),
        Escaped(&percent(f.share_of_requests)),
        whose(f.cause, f.side)
    )?;
    let times = match (info.kind, f.occurrences) {
        (Kind::Span, 1) => "Once. ".into(),
        (Kind::Span, n) => format!("{n} times, {} each. ", range(f.range)),
        _ => String::new(),
    };
    writeln!(out, "<p>{times}{}</p>", Escaped(&f.why()))?;
    if !f.fixes.is_empty() {
        writeln!(out, "<ul>")?;
        for (i, fix) in f.fixes.iter().enumerate() {
            let saves = saving(f, fix, i == 0).map(|s| format!(", {s}")).unwrap_or_default();
            writeln!(out, "<li>{} ({}){saves}<ul>", Escaped(fix.fix.info().title), fix.place)?;
            for how in &fix.how {
                writeln!(out, "<li>{}</li>", Escaped(how))?;
            }
            writeln!(out, "</ul></li>")?;
        }
        writeln!(out, "</ul>")?;
        if let Some(guess) = f.fixes.iter().find_map(|fix| fix.guess) {
            writeln!(out, "<p>({})</p>", Escaped(&guessed(guess)))?;
        }
    }
    writeln!(out, "</li>")
}

fn connections(out: &mut impl Write, analysis: &Analysis) -> io::Result<()> {
    let all = &analysis.connections;
    if all.is_empty() {
        return Ok(());
    }
    let mut worst: Vec<&Connection> = all.iter().map(|c| &**c).collect();
    worst.sort_by_key(|c| (std::cmp::Reverse(tcp_time(c)), c.id));
    writeln!(
        out,
        "<h2>Connections</h2>\n<table><tr><th>id<th>client<th>server<th>duration<th>bytes<th>TCP</tr>"
    )?;
    for c in worst.iter().take(ROWS) {
        writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            c.id,
            c.client,
            c.server,
            c.end - c.start,
            bytes(c.bytes[0] + c.bytes[1]),
            tcp_time(c)
        )?;
    }
    writeln!(out, "</table>")?;
    let more = (all.len() as u64 + analysis.totals.not_kept).saturating_sub(ROWS as u64);
    if more > 0 {
        writeln!(out, "<p>and {more} more</p>")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_share_is_no_markup() {
        let mut f = crate::sample::analysis().findings.remove(0);
        f.share_of_requests = 0.0005;
        let mut out = Vec::new();
        finding(&mut out, &f).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert!(page.contains("· &lt;0.1 %") && !page.contains("<0.1"), "{page}");
    }

    #[test]
    fn markup_in_text_stays_text() {
        let shown = Escaped("<img src=x onerror='a(\"b\")'>&\u{1b}").to_string();
        assert_eq!(shown, "&lt;img src=x onerror=&#39;a(&quot;b&quot;)&#39;&gt;&amp; ");
    }
}
