//! One finding, and a list of them.

use super::Layout;
use super::style::{BOLD, DIM, FIX, count, of, percent, range, wrap};
use crate::Summary;
use crate::capture::local;
use std::cmp::Reverse;
use std::io::{self, Write};
use tcpwhy_analysis::Replay;
use tcpwhy_analysis::{Finding, Fix, Frames};
use tcpwhy_base::{Cause, Class, Kind, Nanos};

/// Text below the heading of a finding begins here.
const INDENT: usize = 10;
/// Findings below this share are named in one line, after the first.
const MINOR: f64 = 0.01;
/// What stands at the right goes no further than this.
const WIDE: usize = 100;

/// The findings: first TCP's, then the application's and the unexplained, then what is inherent in one line.
pub(super) fn list(
    out: &mut impl Write,
    findings: &[Finding],
    inherent: &[(Cause, Nanos)],
    summary: &Summary,
    layout: &Layout,
) -> io::Result<()> {
    let mut sorted: Vec<&Finding> =
        findings.iter().filter(|f| f.waited() > Nanos::ZERO || f.occurrences > 0).collect();
    sorted.sort_by_key(|f| rank(f));
    let of_class =
        |classes: &'static [Class]| sorted.iter().copied().filter(|f| classes.contains(&f.cause.class()));
    let mut minor = Vec::new();
    let mut shown = 0;
    for finding in of_class(&[Class::Tcp]).chain(of_class(&[Class::Application, Class::Unknown])) {
        let small = shown > 0 && finding.share < MINOR && finding.cause.info().kind == Kind::Span;
        if !layout.verbose && (small || shown >= layout.top) {
            minor.push(finding);
        } else {
            writeln!(out)?;
            one(out, finding, layout)?;
            shown += 1;
        }
    }
    if !minor.is_empty() {
        let names = minor.iter().map(|f| format!("{} {}", f.cause.id(), f.waited()));
        paragraph(out, "also", names, layout)?;
    }
    let inherent: Vec<String> = inherent
        .iter()
        .filter(|(cause, time)| cause.class() == Class::Inherent && *time > Nanos::ZERO)
        .map(|&(cause, time)| format!("{} {time} ({})", cause.id(), percent(summary.share(time))))
        .collect();
    if !inherent.is_empty() {
        paragraph(out, "the price of this path and these sizes", inherent.into_iter(), layout)?;
    }
    Ok(())
}

fn paragraph(
    out: &mut impl Write,
    head: &str,
    items: impl Iterator<Item = String>,
    layout: &Layout,
) -> io::Result<()> {
    writeln!(out)?;
    let text = format!("{head}: {}", items.collect::<Vec<_>>().join(", "));
    for (i, line) in wrap(&text, layout.width.saturating_sub(4).max(20)).iter().enumerate() {
        writeln!(out, "{}{DIM}{line}{DIM:#}", if i == 0 { "  " } else { "    " })?;
    }
    Ok(())
}

/// One finding in full.
pub(super) fn one(out: &mut impl Write, f: &Finding, layout: &Layout) -> io::Result<()> {
    let info = f.cause.info();
    let colour = of(info.class);
    let note = match (info.class, f.side) {
        (Class::Application, _) => "not TCP".into(),
        (Class::Unknown, _) | (_, None) => String::new(),
        (_, Some(side)) => format!("side: {}", side.name()),
    };
    let lost = f.waited().to_string();
    let head = format!("{lost:>8} {:>5}  ", percent(f.share));
    let used = 2 + head.chars().count() + info.title.chars().count();
    let space = layout.width.min(WIDE).saturating_sub(used + note.chars().count()).max(2);
    write!(out, "  {BOLD}{head}{BOLD:#}{colour}{}{colour:#}", info.title)?;
    if note.is_empty() {
        writeln!(out)?
    } else {
        writeln!(out, "{:space$}{DIM}{note}{DIM:#}", "")?
    }
    let mut text = String::new();
    if info.kind == Kind::Span && f.occurrences > 0 {
        text = match f.occurrences {
            1 => "Once. ".into(),
            n => format!("{n} times, {} each. ", range(f.range)),
        };
    }
    if f.connection_count > 1 {
        text.push_str(&format!("On {}. ", count(f.connection_count, "connection")));
    }
    text.push_str(&f.why());
    lines(out, &text, INDENT, layout)?;
    if let Some(frames) = frames(&f.evidence, f.occurrences, layout) {
        lines(out, &frames, INDENT, layout)?;
    }
    // What an application should do with its own time is no answer of ours, unless somebody asks.
    let wanted = match info.class {
        _ if layout.verbose => f.fixes.len(),
        Class::Application if info.kind == Kind::Span => 0,
        _ => 2,
    };
    for (i, fix) in f.fixes.iter().take(wanted).enumerate() {
        self::fix(out, if i == 0 || layout.verbose { "fix: " } else { " or: " }, fix, layout)?;
    }
    if let Some(text) = f.replay.as_deref().filter(|_| wanted > 0).map(|r| replayed(r, &f.fixes)) {
        lines(out, &text, INDENT, layout)?;
    }
    let none: Vec<String> = f.no_effect().into_iter().map(|v| v.what).collect();
    if !none.is_empty() {
        lines(out, &format!("Would not help: {}.", none.join("; ")), INDENT, layout)?;
    }
    Ok(())
}

/// The order of findings: TCP's first, of these what wins most, then what took longest. A finding that a replay shows to
/// win little does not stand before one that wins much of the same time.
pub fn rank(f: &Finding) -> impl Ord + use<> {
    let wins = |f: &&Fix| f.saves.is_some_and(|s| s > Nanos::ZERO);
    let best = f.fixes.iter().filter(wins).find(|f| f.replayed).or_else(|| f.fixes.iter().find(wins));
    let tcp = f.cause.class() == Class::Tcp;
    let won = best.and_then(|f| f.saves).unwrap_or_else(|| f.waited());
    (!tcp, Reverse(if tcp { won } else { Nanos::ZERO }), Reverse(f.waited()))
}

/// What a fix saves: `saves 1.11 s, predicted`. All fixes of a finding are bounded by the same time, which is said of the
/// `first` alone; what a replay says is each one's own.
pub fn saving(fix: &Fix, first: bool) -> Option<String> {
    let saves = fix.saves.filter(|&s| s > Nanos::ZERO && (fix.replayed || first))?;
    Some(if fix.replayed { format!("saves {saves}, predicted") } else { format!("saves up to {saves}") })
}

fn fix(out: &mut impl Write, lead: &str, fix: &Fix, layout: &Layout) -> io::Result<()> {
    let indent = INDENT;
    let place = match fix.place {
        "client" | "server" => format!(" (on the {})", fix.place),
        "path" => " (on the path)".into(),
        _ => String::new(),
    };
    let what = format!("{}{place}", fix.fix.info().title);
    let saves = saving(fix, lead == "fix: ").unwrap_or_default();
    let used = indent + 5 + what.chars().count() + saves.chars().count();
    if used + 2 <= layout.width || saves.is_empty() {
        let space = layout.width.min(WIDE).saturating_sub(used).max(2);
        write!(out, "{:indent$}{FIX}{lead}{what}{FIX:#}", "")?;
        if saves.is_empty() { writeln!(out)? } else { writeln!(out, "{:space$}{BOLD}{saves}{BOLD:#}", "")? }
    } else {
        for (i, line) in wrap(&what, layout.width.saturating_sub(indent + 5).max(20)).iter().enumerate() {
            writeln!(out, "{:indent$}{FIX}{}{line}{FIX:#}", "", if i == 0 { lead } else { "     " })?;
        }
        writeln!(out, "{:indent$}     {BOLD}{saves}{BOLD:#}", "")?;
    }
    let wanted = if layout.verbose { fix.how.len() } else { 1 };
    for how in fix.how.iter().take(wanted) {
        let width = layout.width.saturating_sub(indent + 7).max(20);
        let how = how.strip_prefix("Any: ").unwrap_or(how);
        for (i, line) in wrap(how, width).iter().enumerate() {
            writeln!(out, "{:indent$}     {}{line}", "", if i == 0 { "" } else { "  " })?;
        }
    }
    Ok(())
}

/// How near the model comes, and what would have no effect.
fn replayed(r: &Replay, fixes: &[Fix]) -> String {
    let mut text = if r.trustworthy() {
        format!("Replayed in the model: {} against {} seen.", r.modelled, r.observed)
    } else {
        let percent = r.error() * 100.0;
        return format!(
            "No prediction: the model gives {} where {} were seen ({percent:+.0} %).",
            r.modelled, r.observed
        );
    };
    // What wins a little is a fix, however little it is of the replayed part.
    let helps = |id| fixes.iter().any(|f| f.fix.info().id == id && f.saves.is_some_and(|s| s > Nanos::ZERO));
    let mut none: Vec<String> = Vec::new();
    for v in r
        .no_help
        .iter()
        .filter(|v| !helps(v.id))
        .filter(|v| v.place == "both" || !r.no_help.iter().any(|o| o.id == v.id && o.place == "both"))
    {
        let place = if v.place == "path" { String::new() } else { format!(" ({})", v.place) };
        none.push(format!("{}{place}", v.what));
    }
    if !none.is_empty() {
        text.push_str(&format!(" Would not help: {}.", none.join(", ")));
    }
    text
}

/// `text` wrapped and indented.
pub(super) fn lines(out: &mut impl Write, text: &str, indent: usize, layout: &Layout) -> io::Result<()> {
    for line in wrap(text, layout.width.saturating_sub(indent).max(20)) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

/// `frames 16>17>18, 22>23>24, ...`.
fn frames(evidence: &[Frames], occurrences: u64, layout: &Layout) -> Option<String> {
    let mut text = String::new();
    let mut shown = 0;
    let named = evidence.iter().filter(|f| f.first() != 0).take(5);
    let mut rest = named.map(|f| local(f, &layout.frames_before).0).peekable();
    while let Some(frames) = rest.next() {
        text.push_str(if shown == 0 { "frames " } else { ", " });
        text.push_str(&chain(&frames));
        // The file is named once for its run of frames.
        if rest.peek().is_none_or(|next| next.file != frames.file) {
            text.push_str(&of_file(&frames, layout));
        }
        shown += 1;
    }
    if occurrences > shown {
        text.push_str(", ...");
    }
    (shown > 0).then_some(text)
}

/// `16>17>18`, or `16-18` where no frame of it is singled out.
pub(super) fn chain(frames: &Frames) -> String {
    let keys: Vec<String> = frames.keys().map(|k| k.to_string()).collect();
    match keys.len() {
        0 if frames.first() == frames.last() => frames.first().to_string(),
        0 => format!("{}-{}", frames.first(), frames.last()),
        _ => keys.join(">"),
    }
}

/// ` of b.pcap`, where there are several files.
pub(super) fn of_file(frames: &Frames, layout: &Layout) -> String {
    layout.files.get(usize::from(frames.file)).map(|f| format!(" of {f}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_chained() {
        let of = |keys: &[u64]| Frames::new(0, 16, 18, keys);
        let one = Layout::default();
        let frames = |f: &[Frames], n, layout: &Layout| super::frames(f, n, layout);
        assert_eq!(
            frames(&[of(&[16, 17, 18]), of(&[])], 27, &one).as_deref(),
            Some("frames 16>17>18, 16-18, ...")
        );
        assert_eq!(frames(&[of(&[17])], 1, &one).as_deref(), Some("frames 17"));
        assert_eq!(frames(&[], 1, &one), None);
        let two = Layout { files: vec!["a.pcap".into(), "b.pcap".into()], ..one };
        assert_eq!(frames(&[of(&[17])], 1, &two).as_deref(), Some("frames 17 of a.pcap"));
    }
}
