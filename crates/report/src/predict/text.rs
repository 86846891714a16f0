//! A prediction for people: the total, who waits for whom, where the time goes, what helps.

use super::types::{Distribution, Fix, Observed, Pattern, Prediction, Step};
use crate::figures::count;
use crate::text::style::{BOLD, DIM, FIX, WARN, of, wrap};
use crate::text::{bytes, percent};
use std::io::{self, Write};
use tcpwhy_base::{Nanos, Owner, Side};

/// Rows of fixes that are shown.
const FIXES: usize = 8;

/// Writes it, `width` columns wide.
pub fn text(out: &mut impl Write, p: &Prediction, width: usize, verbose: bool) -> io::Result<()> {
    headline(out, p, width)?;
    writeln!(out)?;
    diagram(out, p, width)?;
    budget(out, p)?;
    fixes(out, p, width, verbose)?;
    for note in &p.assumed {
        for (i, line) in wrap(note, width.saturating_sub(10)).iter().enumerate() {
            let head = if i == 0 { "assumed:" } else { "" };
            writeln!(out, "{DIM}{head:<9}{line}{DIM:#}")?;
        }
    }
    Ok(())
}

fn headline(out: &mut impl Write, p: &Prediction, width: usize) -> io::Result<()> {
    let s = &p.settings;
    let (up, down) = (s.request_writes.iter().sum(), s.response_writes.iter().sum());
    let size = |n: u64, typed: &Option<String>| match typed {
        _ if n == 0 => "nothing".into(),
        Some(typed) => typed.clone(),
        None => bytes(n),
    };
    let connection = match s.connection.as_str() {
        "new" => " on a new connection",
        "warm" => " on a connection in use",
        "idle" => " on a connection that was idle",
        _ => "",
    };
    let each = if s.requests > 1 { " each" } else { "" };
    let line = format!(
        "{} up, {} down{each}, {} away{connection}",
        size(up, &s.typed[0]),
        size(down, &s.typed[1]),
        away(Nanos(s.rtt_ns))
    );
    let total = Nanos(p.total_ns);
    let requests = if s.requests > 1 {
        format!(" for {}", count(u64::from(s.requests), "request"))
    } else {
        String::new()
    };
    let took = match (p.complete, p.given_up) {
        (true, _) => format!("{total}{requests}"),
        (_, true) => format!("never{requests}, given up after {total} or more"),
        _ => format!("more than {total}{requests}, not finished"),
    };
    let rest = format!("{took}: {line}");
    for (i, l) in wrap(&rest, width).iter().enumerate() {
        if i == 0 { writeln!(out, "{BOLD}{l}{BOLD:#}")? } else { writeln!(out, "  {l}")? }
    }
    if !p.complete {
        let why = if p.given_up { "A connection was given up" } else { "The run met its limit" };
        writeln!(out, "{WARN}{why} before everything was transferred.{WARN:#}")?;
    }
    if let Some(d) = &p.distribution {
        distribution(out, d, width)?;
    }
    p.observed.map_or(Ok(()), |o| observed(out, p, o, width))
}

/// How near the model comes: its time of what the capture shows beside that, which is not the time above
/// where that has pauses, or was taken elsewhere.
fn observed(out: &mut impl Write, p: &Prediction, o: Observed, width: usize) -> io::Result<()> {
    let word =
        if o.trustworthy { "" } else { "; not trustworthy, as it misses the present by more than 15 %" };
    let style = if o.trustworthy { DIM } else { WARN };
    let error = format!("{:+.1} %", o.error * 100.0);
    let (modelled, shown) = (Nanos(o.modelled_ns).to_string(), Nanos(o.total_ns));
    let line = if modelled == Nanos(p.total_ns).to_string() {
        format!("The capture shows {shown}: the model is off by {error}{word}.")
    } else {
        let what = if p.settings.requests > 1 {
            "without the pauses between requests"
        } else {
            "as seen where the capture was taken"
        };
        format!("{modelled} {what}; the capture shows {shown} of that: the model is off by {error}{word}.")
    };
    wrap(&line, width).iter().try_for_each(|l| writeln!(out, "{style}{l}{style:#}"))
}

/// How runs spread, and what they fall into.
fn distribution(out: &mut impl Write, d: &Distribution, width: usize) -> io::Result<()> {
    let (least, most) = (Nanos(d.least_ns), Nanos(d.most_ns));
    let p95 = Nanos(d.p95_ns);
    if d.losses_drawn {
        let line = format!(
            "{} runs with other losses take {least} to {most}: half of them at most {}, 95 of 100 at most {p95}. \
             Shown is the one in the middle.",
            d.runs,
            Nanos(d.median_ns)
        );
        return wrap(&line, width.saturating_sub(2))
            .iter()
            .try_for_each(|l| writeln!(out, "  {WARN}{l}{WARN:#}"));
    }
    let what = "moments of ticks and wake-ups";
    let line = if d.requests.is_empty() {
        let n = d.runs;
        format!(
            "Chance decides ({what}): {}; 95 of 100 at most {p95}.",
            patterns(&d.patterns, &format!("{n} runs"))
        )
    } else {
        let all: u64 = d.requests.iter().map(|p| p.count).sum();
        let each = patterns(&d.requests, &format!("{all} requests"));
        format!("Chance decides ({what}): {each}. Of {} runs, 95 of 100 take at most {p95}.", d.runs)
    };
    wrap(&line, width.saturating_sub(2)).iter().try_for_each(|l| writeln!(out, "  {WARN}{l}{WARN:#}"))
}

/// `usually 8.70 ms; in 3 of 20 runs 53.0 ms (Nagle held ...)`: `of` is what they are of.
pub fn patterns(all: &[Pattern], of: &str) -> String {
    let each = all.iter().enumerate().map(|(i, p)| {
        let time = Nanos(p.median_ns);
        if i == 0 {
            return format!("usually {time}");
        }
        let why = p.cause.map_or(String::new(), |c| {
            let side = p.side.map_or(String::new(), |s| format!(" at the {}", s.0.name()));
            let side = if p.side.is_some_and(|s| s.0 == Side::Network) { String::new() } else { side };
            let (more, word) = (Nanos(p.more_ns.abs()), if p.more_ns < 0 { "less" } else { "more" });
            format!(" ({more} {word} {}{side}: {})", c.0.id(), c.0.info().title)
        });
        format!("in {} of {of} {time}{why}", p.count)
    });
    each.collect::<Vec<_>>().join("; ")
}

fn at(ns: i64) -> String {
    let ms = ns as f64 / 1e6;
    if ms.abs() < 10.0 { format!("{ms:.2}") } else { format!("{ms:.1}") }
}

/// One line a step: its time, an arrow for its direction, what it is, and what it had waited for.
fn diagram(out: &mut impl Write, p: &Prediction, width: usize) -> io::Result<()> {
    writeln!(out, "{DIM}      ms  client      server{DIM:#}")?;
    let half = p.diagram.len() / 2;
    for (i, step) in p.diagram.iter().enumerate() {
        if p.diagram_omitted > 0 && i == half {
            writeln!(out, "{DIM}          ... {} more ...{DIM:#}", p.diagram_omitted)?;
        }
        row(out, step, width)?;
    }
    writeln!(out)
}

fn row(out: &mut impl Write, step: &Step, width: usize) -> io::Result<()> {
    let client = step.side.0 == Side::Client;
    let arrow = match (step.segments, step.arrived_ns) {
        (0, _) if client => "   o      |",
        (0, _) => "   |      o",
        (_, None) if client => "   |---x  |",
        (_, None) => "   |  x---|",
        _ if client => "   |----->|",
        _ => "   |<-----|",
    };
    let arrives = match step.arrived_ns {
        Some(t) if step.segments > 0 => format!(", there at {}", at(t)),
        None if step.segments > 0 => ", lost".into(),
        _ => String::new(),
    };
    let line = format!("{}{arrives}", step.what);
    let why = match step.cause {
        Some(c) if step.waited_ns > 0 => format!("waited {}: {}", Nanos(step.waited_ns), c.0.id()),
        _ => String::new(),
    };
    let style = step.cause.map_or(DIM, |c| of(c.0));
    let room = width.saturating_sub(28);
    if why.is_empty() {
        return writeln!(out, "{:>8}{arrow}   {line}", at(step.start_ns));
    }
    if line.chars().count() + why.chars().count() + 2 <= room {
        writeln!(out, "{:>8}{arrow}   {line}; {style}{why}{style:#}", at(step.start_ns))
    } else {
        writeln!(out, "{:>8}{arrow}   {line}", at(step.start_ns))?;
        writeln!(out, "{:>8}   |      |     {style}{why}{style:#}", "")
    }
}

fn budget(out: &mut impl Write, p: &Prediction) -> io::Result<()> {
    let sum: i64 = p.budget.iter().map(|s| s.time_ns).sum();
    if !p.complete && sum == 0 {
        return Ok(());
    }
    let part = if p.complete { "" } else { ", of what was finished" };
    writeln!(out, "{BOLD}where the time goes{part}{BOLD:#}")?;
    // Less than a ten-thousandth is nobody's time.
    for s in p.budget.iter().filter(|s| s.time_ns > 0 && s.share >= 0.0001) {
        let style = of(s.cause.0);
        let side = s.side.map_or(String::new(), |s| format!("  {DIM}({}){DIM:#}", s.0.name()));
        let time = Nanos(s.time_ns).to_string();
        writeln!(
            out,
            "  {time:>8} {:>6}  {style}{:<18}{style:#} {}{side}",
            percent(s.share),
            s.cause.0.id(),
            s.title
        )?;
    }
    let rest = p.total_ns - sum;
    // What is left lies between the requests, and before the application runs; of an upload it is the way of
    // what left last.
    let between = if p.settings.requests > 1 { "between the requests, " } else { "" };
    if p.complete && rest > p.total_ns / 200 {
        writeln!(
            out,
            "  {:>8}         {DIM}{between}the last bytes' way, and until the applications ran{DIM:#}",
            Nanos(rest).to_string()
        )?;
    }
    writeln!(out)
}

fn fixes(out: &mut impl Write, p: &Prediction, width: usize, verbose: bool) -> io::Result<()> {
    let most = if verbose { usize::MAX } else { FIXES };
    if p.observed.is_some_and(|o| !o.trustworthy) {
        // What cannot tell the present cannot tell what would change it.
        let line =
            "no advice: the model misses what the capture shows, and nobody knows what it misses of a change";
        for l in wrap(line, width) {
            writeln!(out, "{WARN}{l}{WARN:#}")?;
        }
        return writeln!(out);
    }
    if !p.complete {
        let line = "no advice: what a change saves of a run that is not finished is not known";
        writeln!(out, "{WARN}{line}{WARN:#}")?;
        return writeln!(out);
    }
    if p.fixes.is_empty() {
        writeln!(out, "{BOLD}no change of settings helps{BOLD:#}: this is the price of {}", price(p))?;
    } else {
        writeln!(out, "{BOLD}what would help{BOLD:#}, each by itself, run again")?;
        for fix in p.fixes.iter().take(most) {
            fix_row(out, fix, verbose)?;
        }
        if p.fixes.len() > most {
            writeln!(out, "  {DIM}{} more with -v{DIM:#}", p.fixes.len() - most)?;
        }
    }
    if let Some(t) = &p.together {
        let names: Vec<String> = t.fixes.iter().filter_map(|&i| p.fixes.get(i)).map(short).collect();
        let line = format!(
            "together: {} instead of {}: {}",
            Nanos(t.predicted_ns),
            Nanos(p.total_ns),
            names.join(" + ")
        );
        for l in wrap(&line, width.saturating_sub(2)) {
            writeln!(out, "  {FIX}{l}{FIX:#}")?;
        }
    }
    // What takes a hundredth longer does harm; less is nothing.
    let harms = |f: &&Fix| f.saves_ns.saturating_mul(100) <= -p.total_ns.max(1);
    let (slower, vain) = p.no_help.iter().partition::<Vec<&Fix>, _>(harms);
    group(out, "for comparison", &p.comparisons.iter().collect::<Vec<_>>(), verbose)?;
    group(out, "would not help: less than 1 %, or nothing", &vain, verbose)?;
    group(out, "would make it slower", &slower, verbose)?;
    writeln!(out)
}

/// What takes most of the time, where no setting does.
fn price(p: &Prediction) -> &'static str {
    let of = |owner| p.budget.iter().filter(|s| s.cause.0.owner() == owner).map(|s| s.time_ns).sum::<i64>();
    if 2 * of(Owner::Application) > p.total_ns {
        "what the applications do"
    } else {
        "the path and the sizes"
    }
}

/// A round trip. Of one below a microsecond, as where both ends' reactions fell on the same stamp, no more is
/// known than that.
fn away(rtt: Nanos) -> String {
    let least = Nanos::micros(1);
    if rtt < least { format!("less than {least}") } else { rtt.to_string() }
}

fn group(out: &mut impl Write, title: &str, fixes: &[&Fix], verbose: bool) -> io::Result<()> {
    if fixes.is_empty() {
        return Ok(());
    }
    writeln!(out, "{BOLD}{title}{BOLD:#}")?;
    let most = if verbose { usize::MAX } else { 6 };
    fixes.iter().take(most).try_for_each(|f| fix_row(out, f, false))
}

fn short(fix: &Fix) -> String {
    if fix.place == "path" { fix.what.clone() } else { format!("{} ({})", fix.what, fix.place) }
}

fn fix_row(out: &mut impl Write, fix: &Fix, verbose: bool) -> io::Result<()> {
    let gain = match fix.saves_ns {
        0 => "±0".to_owned(),
        n if n > 0 => format!("-{}", Nanos(n)),
        n => format!("+{}", Nanos(-n)),
    };
    writeln!(out, "  {gain:>9} -> {:<9} {FIX}{}{FIX:#}", Nanos(fix.predicted_ns).to_string(), short(fix))?;
    if verbose {
        for how in &fix.how {
            writeln!(out, "{:>26}{DIM}{how}{DIM:#}", "")?;
        }
    }
    Ok(())
}
