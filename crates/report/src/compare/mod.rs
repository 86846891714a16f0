//! Before against after: as text, as JSON, as a page.

mod json;
mod page;

pub use json::{json, schema};
pub use page::{begin, page};

use crate::text::{bytes, count, percent};
use std::io::{self, Write};
use tcpwhy_analysis::{Change, ComparedSide, Comparison, Shape};
use tcpwhy_base::Nanos;

/// Rows of each table in text.
const ROWS: usize = 12;

/// Said before what is compared by the server alone.
const ANY_SIZE: &str = "All sizes differ, so each server's exchanges are compared as they are: ";

/// The answer in a sentence or two.
pub fn verdict(c: &Comparison) -> String {
    let (a, b) = (c.all.before, c.all.after);
    if a.count == 0 {
        return "No exchange of the one capture has a counterpart in the other: their requests and responses differ in \
                size."
            .into();
    }
    let cause = c.causes.iter().find(|(_, change)| change.is_sure());
    let cause = cause.map(|(cause, change)| {
        let word = if change.difference < Nanos::ZERO { "less" } else { "more" };
        // The whole may vary by more than what moved.
        let moved = if c.all.is_sure() || c.mean.is_sure() { "The largest change" } else { "Not by chance" };
        format!(" {moved}: {} {word} of {} in each exchange.", abs(change.difference), cause.id())
    });
    let any = by_server(c);
    let together = if any { format!(", together {} and {}", sum(&a), sum(&b)) } else { String::new() };
    let found = if any { ANY_SIZE } else { "" };
    let all = c.shapes.iter().fold([0, 0], |n, (_, s)| [n[0] + s.before.count, n[1] + s.after.count]);
    let mix =
        if c.shapes.is_empty() || all == [a.count, b.count] { "" } else { ", in the same mix of sizes" };
    let [before, after] = c.openings;
    let openings = if c.openings == [a.count, b.count] {
        ", each with the opening of its connection".to_owned()
    } else if before * b.count == after * a.count {
        // As many, in proportion: nothing comes of it.
        String::new()
    } else {
        format!(", {before} and {after} of them with the opening of their connection")
    };
    format!(
        "{found}{} ({} and {}{openings}{mix}{together}).{}",
        moved(c),
        a.count,
        count(b.count, "exchange"),
        cause.unwrap_or_default()
    )
}

/// Whether it became faster, and from what to what.
fn moved(c: &Comparison) -> String {
    let (a, b) = (c.all.before, c.all.after);
    let medians =
        |moved: &str| format!("{moved}: the median exchange took {} before and {} after", a.median, b.median);
    if c.all.too_few() {
        medians("too few exchanges to judge")
    } else if c.all.is_sure() {
        medians(&direction(c.all.difference, a.median, b.median))
    } else if c.mean.is_sure() {
        // Where some became slower, the one in the middle may be as it was.
        let (from, to) = (c.mean.before.mean, c.mean.after.mean);
        format!(
            "{} in the mean: an exchange took {from} before and {to} after; the median is {} and {}, which may be chance",
            direction(c.mean.difference, from, to),
            a.median,
            b.median
        )
    } else {
        medians("no difference beyond chance")
    }
}

/// `41 % slower`. Nor is "98 % faster" or "1470 % slower" a figure that anybody can picture.
fn direction(difference: Nanos, before: Nanos, after: Nanos) -> String {
    let ratio = |more: Nanos, less: Nanos| more.0 as f64 / less.0.max(1) as f64;
    let faster = difference < Nanos::ZERO;
    let times = if faster { ratio(before, after) } else { ratio(after, before) };
    let share = || percent((difference.0 as f64 / before.0.max(1) as f64).abs());
    match (times >= 2.0, faster) {
        (true, true) => format!("{times:.1} times as fast"),
        (true, false) => format!("{times:.1} times as long"),
        (false, true) => format!("{} faster", share()),
        (false, false) => format!("{} slower", share()),
    }
}

/// All exchanges of a server are compared, since none has a counterpart of its size.
fn by_server(c: &Comparison) -> bool {
    !c.shapes.is_empty() && c.shapes.iter().all(|s| s.0.is_of_any_size())
}

/// How long all of them took.
fn sum(side: &ComparedSide) -> Nanos {
    side.mean.times(i64::try_from(side.count).unwrap_or(i64::MAX))
}

fn abs(t: Nanos) -> Nanos {
    Nanos(t.0.saturating_abs())
}

/// `port 25, request 128-255 B, response 16-31 B`.
pub fn shape(s: &Shape) -> String {
    let range = |bits: u32| match bits {
        0 => "nothing".to_owned(),
        1 => "1 B".into(),
        64.. => "at least 8 EiB".into(),
        n => {
            let (least, most) = (bytes(1 << (n - 1)), bytes((1 << n) - 1));
            match (least.split_once(' '), most.split_once(' ')) {
                // The unit once, where it is the same.
                (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}-{most}"),
                _ => format!("{least} to {most}"),
            }
        }
    };
    let server = s.ip.map_or_else(|| format!("port {}", s.port), |ip| format!("{ip}:{}", s.port));
    if let Some(name) = &s.name {
        return format!("{server}, {name}");
    }
    if s.is_of_any_size() {
        return format!("{server}, any size");
    }
    format!("{server}, request {}, response {}", range(s.request), range(s.response))
}

/// `-40.1 ms (-41.0 to -39.2 ms)`, with a mark if it may be chance.
pub fn difference(c: &Change) -> String {
    let signed = |t: Nanos| format!("{}{}", if t > Nanos::ZERO { "+" } else { "" }, t);
    if c.too_few() {
        return format!("{} (too few to judge)", signed(c.difference));
    }
    let chance = if c.is_sure() { "" } else { " ~" };
    format!("{} [{}, {}]{chance}", signed(c.difference), signed(c.interval.0), signed(c.interval.1))
}

/// `in all: 30 exchanges and 30 openings of connections took 1.24 s before; 30 and 1 took 641 ms after`.
pub fn in_all(c: &Comparison) -> String {
    let [a, b] = &c.in_all;
    format!(
        "in all: {} and {} of connections took {} before; {} and {} took {} after",
        count(a.exchanges, "exchange"),
        count(a.openings, "opening"),
        a.time,
        b.exchanges,
        b.openings,
        b.time
    )
}

/// Writes it for people.
pub fn text(out: &mut impl Write, c: &Comparison, names: [&str; 2]) -> io::Result<()> {
    writeln!(out, "{}\n\n  before: {}\n  after:  {}", verdict(c), names[0], names[1])?;
    let row = |out: &mut dyn Write, name: &str, change: &Change| {
        let (a, b) = (change.before, change.after);
        writeln!(
            out,
            "  {:>9} {:>9}  {:>9} {:>9}  {:<36} {name}",
            a.median.to_string(),
            b.median.to_string(),
            a.p95.to_string(),
            b.p95.to_string(),
            difference(change)
        )
    };
    if !c.shapes.is_empty() {
        writeln!(
            out,
            "\n  median before, after   p95 before, after   change of the median [95 % interval]   exchanges of"
        )?;
        let numbered = |name: &str, c: &Change| format!("{name} ({} and {})", c.before.count, c.after.count);
        let within = "  made while those were answered, and a part of their time";
        for (head, shapes) in [("", &c.shapes), (within, &c.within)] {
            if !head.is_empty() && !shapes.is_empty() {
                writeln!(out, "{head}")?;
            }
            for (s, change) in shapes.iter().take(ROWS) {
                row(out, &numbered(&shape(s), change), change)?;
            }
            if shapes.len() > ROWS {
                writeln!(out, "  and {} more shapes: --json lists them", shapes.len() - ROWS)?;
            }
        }
        if let Some(setup) = &c.setup {
            row(out, &numbered("opening a connection", setup), setup)?;
        }
        writeln!(out, "\n  {}", in_all(c))?;
    }
    if !c.causes.is_empty() {
        writeln!(
            out,
            "\n  mean before, after      change of the mean [95 % interval]     cause, in each exchange"
        )?;
        for (cause, change) in c.causes.iter().take(ROWS) {
            writeln!(
                out,
                "  {:>9} {:>9}      {:<36}   {}",
                change.before.mean.to_string(),
                change.after.mean.to_string(),
                difference(change),
                cause.id()
            )?;
        }
    }
    let [a, b] = c.unmatched;
    if a + b > 0 {
        writeln!(out, "\n  without a counterpart: {} before, {b} after", count(a, "exchange"))?;
    }
    if c.causes.iter().map(|x| &x.1).chain([&c.all]).any(|x| !x.is_sure() && !x.too_few()) {
        writeln!(out, "\n  ~ the interval holds zero: it may be chance")?;
    }
    Ok(())
}
