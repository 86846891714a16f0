//! The first screen: verdict, findings, warnings, connections.

use super::requests::short;
use super::slowest::Listed;
use super::style::{BOLD, DIM, WARN, bytes, of, plain};
use super::table::{Align, Table, WIDE};
use super::{Layout, findings};
use crate::figures::count;
use crate::{Answer, Capture, headline, tcp_time, worst};
use std::cmp::Reverse;
use std::io::{self, Write};
use std::ops::Add as _;
use tcpwhy_analysis::{Analysis, Connection, Exchange, Quality, Span};
use tcpwhy_base::{Kind, Nanos};

/// Writes the first screen.
pub fn overview(
    out: &mut impl Write,
    analysis: &Analysis,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    let answer = Answer::new(analysis);
    if let Some(limit) = layout.slower_than.filter(|_| !layout.quiet && !analysis.connections.is_empty()) {
        slower_than(out, analysis, limit, capture, layout)?;
    }
    for line in super::style::wrap(&headline(analysis, capture, &answer), layout.width.max(40)) {
        writeln!(out, "{BOLD}{line}{BOLD:#}")?;
    }
    if !analysis.connections.is_empty() {
        super::bar::whole(out, &answer, layout)?;
        findings::list(out, &analysis.findings, &answer, layout)?;
    }
    if layout.quiet {
        return Ok(());
    }
    warnings(out, capture, layout)?;
    wrapped(out, capture)?;
    if analysis.connections.is_empty() {
        return Ok(());
    }
    super::requests::requests(out, analysis, &answer, capture, layout)?;
    connections(out, analysis, layout)?;
    hint(out, analysis, layout)
}

/// The exchanges that were asked for, before all that is said of the capture.
fn slower_than(
    out: &mut impl Write,
    analysis: &Analysis,
    limit: Nanos,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    let all = || analysis.connections.iter().flat_map(|c| c.exchanges.iter().map(move |x| (&**c, x)));
    match all().count() as u64 {
        0 => writeln!(out, "No exchange took longer than {limit}.")?,
        n => writeln!(
            out,
            "{} of all connections took longer than {limit}, the slowest first:",
            count(n, "exchange")
        )?,
    }
    super::slowest::table(out, all().map(|(c, x)| Listed::exchange(c, x)).collect(), capture, layout)?;
    writeln!(out)
}

/// What the capture cannot show.
fn warnings(out: &mut impl Write, capture: &Capture, layout: &Layout) -> io::Result<()> {
    for (i, w) in capture.warnings.iter().enumerate() {
        if i == 0 {
            writeln!(out)?;
        }
        // What is said of a connection as a whole is counted by connections.
        let whole = Quality::NAMES.iter().any(|(_, code)| *code == w.code);
        let times = match w.count {
            0 | 1 => String::new(),
            n if whole => format!(" (on {n} connections)"),
            n => format!(" ({n} times)"),
        };
        let text = format!("{}{times}.", plain(w.text.trim_end_matches('.')));
        for (i, line) in super::style::wrap(&text, layout.width.saturating_sub(8).max(20)).iter().enumerate()
        {
            let head = if i == 0 { "note: " } else { "      " };
            writeln!(out, "  {WARN}{head}{WARN:#}{line}")?;
        }
    }
    Ok(())
}

/// What packets were wrapped in.
fn wrapped(out: &mut impl Write, capture: &Capture) -> io::Result<()> {
    let names: Vec<String> =
        capture.encapsulations.iter().map(|(name, n)| format!("{name} ({})", count(*n, "packet"))).collect();
    if names.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  {DIM}seen through: {}{DIM:#}", names.join(", "))
}

/// The connections, worst first.
fn connections(out: &mut impl Write, analysis: &Analysis, layout: &Layout) -> io::Result<()> {
    use Align::{Left, Right};
    let mut sorted: Vec<(Nanos, &Connection)> =
        analysis.connections.iter().map(|c| (tcp_time(c), &**c)).collect();
    sorted.sort_by_key(|(tcp, c)| (Reverse((*tcp, c.end - c.start)), c.id));
    let wide = layout.width >= WIDE;
    let more = |heads: &'static [(&'static str, Align)]| if wide { heads } else { &[] };
    let heads = [
        &[("id", Right), ("client > server", Left), ("duration", Right), ("requests", Right)][..],
        more(&[("bytes", Right), ("RTT", Right), ("TCP", Right)]),
        &[("worst cause", Left)],
    ];
    let mut table = Table::new(&heads.concat());
    let listed = || sorted.iter().take(layout.top).map(|s| s.1);
    let worst_of = |c: &Connection| worst(&c.budget).or_else(|| worst(&c.gap_budget));
    let ids = listed().map(|c| c.id.to_string().len()).max().unwrap_or(2).max(2);
    let causes = listed().filter_map(worst_of).map(|w| w.0.id().len()).max().unwrap_or(0).max(11);
    let others = ids + causes + 2 * (8 + 2) + 3 * 2 + 3 + if wide { 30 } else { 0 };
    let room = layout.width.saturating_sub(others).max(20) / 2;
    for (tcp, c) in sorted.iter().take(layout.top) {
        let worst = worst_of(c);
        let mut row = vec![
            c.id.to_string(),
            format!("{} > {}", short(c.client, room), short(c.server, room)),
            (c.end - c.start).to_string(),
            (c.exchanges.len() as u64 + c.exchanges_omitted.count).to_string(),
        ];
        if wide {
            row.extend([
                bytes(c.bytes[0] + c.bytes[1]),
                c.path.rtt.map_or_else(|| "-".into(), |t| t.to_string()),
                if *tcp > Nanos::ZERO { tcp.to_string() } else { "-".into() },
            ]);
        }
        row.push(worst.map_or_else(|| "-".into(), |w| w.0.id().into()));
        table.row(row);
        if let Some((cause, _)) = worst {
            table.colour_last(of(cause));
        }
    }
    writeln!(out)?;
    table.write(out)?;
    let all = sorted.len() as u64 + analysis.totals.not_kept;
    let left = all.saturating_sub(layout.top as u64);
    if left > 0 {
        writeln!(out, "  {DIM}and {left} more: --top {all}{DIM:#}")?;
    }
    if analysis.totals.unlisted > 0 {
        let unlisted = count(analysis.totals.unlisted, "connection");
        writeln!(out, "  {DIM}and {unlisted} of a single packet: --exchanges all{DIM:#}")?;
    }
    Ok(())
}

/// How to look closer: the longest exchange of those that mostly waited for what holds most time; else the
/// one that waited longest for it, or the longest of all.
fn hint(out: &mut impl Write, analysis: &Analysis, layout: &Layout) -> io::Result<()> {
    let worst = findings::listed(&analysis.findings).into_iter().find(|f| f.cause.info().kind == Kind::Span);
    // At either end: a request may wait for the same at both.
    let of_worst = |spans: &[Span]| match worst {
        Some(f) => {
            let times = spans.iter().filter(|s| s.cause == f.cause).map(Span::duration);
            times.fold(Nanos::ZERO, Nanos::add)
        }
        None => Nanos::ZERO,
    };
    let spent = |x: &Exchange| of_worst(&x.spans);
    // What opening a connection waited for is in no exchange.
    let opened = |c: &Connection| c.setup.as_ref().map_or(Nanos::ZERO, |setup| of_worst(&setup.spans));
    let opening = analysis.connections.iter().map(|c| (opened(c), Reverse(c.id))).max();
    let all = analysis.connections.iter().flat_map(|c| c.exchanges.iter().map(move |x| (c.id, x)));
    let first = |(c, x): &(u32, &Exchange)| {
        let (spent, time) = (spent(x), x.end - x.start);
        let mostly = spent > Nanos::ZERO && spent.times(2) >= time;
        (mostly, if mostly { time } else { spent }, time, Reverse((*c, x.id)))
    };
    match all.max_by_key(first) {
        Some((c, x)) => {
            let line = match opening.filter(|o| o.0 > spent(x)) {
                Some((_, Reverse(c))) => format!("see one: {} --connection {c}", layout.command),
                None => format!("see one: {} --connection {c} --exchange {}", layout.command, x.id),
            };
            let broken = line.chars().count() > layout.width;
            writeln!(out, "\n{}", if broken { line.replacen(": ", ":\n  ", 1) } else { line })
        }
        None => Ok(()),
    }
}
