//! Before against after as a page: plain HTML, no script.

use super::{difference, in_all, shape, verdict};
use crate::html::Escaped;
use std::io::{self, Write};
use tcpwhy_analysis::{Change, Comparison};
use tcpwhy_base::Nanos;

const STYLE: &str = include_str!("../../assets/compare.css");

/// Writes it.
pub fn page(out: &mut impl Write, c: &Comparison, names: [&str; 2]) -> io::Result<()> {
    begin(out, "before and after")?;
    writeln!(
        out,
        "<p class=\"names\">before <b>{}</b> · after <b>{}</b></p>\n<h1>{}</h1>",
        Escaped(names[0]),
        Escaped(names[1]),
        Escaped(&capital(&verdict(c)))
    )?;
    causes(out, c)?;
    shapes(out, c)?;
    let [a, b] = c.unmatched;
    if a + b > 0 {
        writeln!(
            out,
            "<p>Without a counterpart: {} before, {b} after.</p>",
            crate::text::count(a, "exchange")
        )?;
    }
    writeln!(
        out,
        "<p class=\"dim\">Intervals hold the middle 95 % of what a bootstrap gives; ~ marks those that hold zero, which may be \
         chance. tcpwhy {}</p>\n</main></body></html>",
        env!("CARGO_PKG_VERSION")
    )
}

/// The beginning of a page without scripts, up to its `main`: style, and a policy that lets nothing else in.
pub fn begin(out: &mut impl Write, title: &str) -> io::Result<()> {
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" \
         content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{} · tcpwhy</title>\n\
         <style>{STYLE}</style></head>\n<body><main>",
        Escaped(title)
    )
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

/// The mean exchange of both sides as bars, and a table.
fn causes(out: &mut impl Write, c: &Comparison) -> io::Result<()> {
    if c.causes.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section><h2>Where the time of an exchange goes</h2>")?;
    let longest = c.all.before.mean.max(c.all.after.mean).0.max(1) as f64;
    for (name, of) in [
        ("before", (|c: &Change| c.before.mean) as fn(&Change) -> Nanos),
        ("after", |c: &Change| c.after.mean),
    ] {
        let total = of(&c.all);
        write!(out, "<div class=\"row\"><span>{name} {total}</span><div class=\"bar\">")?;
        let mut parts: Vec<_> = c.causes.iter().map(|(cause, change)| (*cause, of(change))).collect();
        parts.sort_by_key(|p| p.0);
        for (cause, time) in parts.iter().filter(|p| p.1 > Nanos::ZERO) {
            write!(
                out,
                "<i class=\"g-{}\" style=\"width:{:.3}%\" title=\"{} {time}\"></i>",
                cause.info().group.id(),
                time.0 as f64 / longest * 100.0,
                cause.id()
            )?;
        }
        writeln!(out, "</div></div>")?;
    }
    writeln!(
        out,
        "<div class=\"scroll\"><table><tr><th>cause<th class=\"n\">before<th class=\"n\">after<th>change of the mean</tr>"
    )?;
    for (cause, change) in &c.causes {
        writeln!(
            out,
            "<tr><td><i class=\"patch g-{}\"></i>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"{}\">{}</tr>",
            cause.info().group.id(),
            Escaped(cause.info().title),
            change.before.mean,
            change.after.mean,
            direction(change),
            difference(change)
        )?;
    }
    writeln!(out, "</table></div></section>")
}

fn shapes(out: &mut impl Write, c: &Comparison) -> io::Result<()> {
    if c.shapes.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section><h2>Exchanges</h2><div class=\"scroll\"><table><tr><th>exchanges of<th class=\"n\">number<th class=\"n\">median \
         before<th class=\"n\">after<th class=\"n\">p95 before<th class=\"n\">after<th>change of the median</tr>"
    )?;
    let rows = c.shapes.iter().map(|(s, change)| (shape(s), change));
    let within = c.within.iter().map(|(s, change)| (format!("within those: {}", shape(s)), change));
    let setup = c.setup.iter().map(|s| ("opening a connection".to_owned(), s));
    for (name, change) in rows.chain(within).chain(setup) {
        let (a, b) = (change.before, change.after);
        writeln!(
            out,
            "<tr><td>{}<td class=\"n\">{} · {}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td \
             class=\"{}\">{}</tr>",
            Escaped(&name),
            a.count,
            b.count,
            a.median,
            b.median,
            a.p95,
            b.p95,
            direction(change),
            difference(change)
        )?;
    }
    writeln!(out, "</table></div><p>{}.</p></section>", capital(&in_all(c)))
}

fn direction(c: &Change) -> &'static str {
    match c.difference {
        _ if !c.is_sure() => "same",
        d if d < Nanos::ZERO => "better",
        _ => "worse",
    }
}
