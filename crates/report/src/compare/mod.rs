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
const ANY_SIZE: &str = "All sizes differ, so each server's exchanges are compared as they are, with the openings of connections: ";

/// The answer in a sentence or two.
pub fn verdict(c: &Comparison) -> String {
    let (a, b) = (c.all.before, c.all.after);
    let ratio = |more: Nanos, less: Nanos| more.0 as f64 / less.0.max(1) as f64;
    if a.count == 0 {
        return "No exchange of the one capture has a counterpart in the other: their requests and responses differ in \
                size."
            .into();
    }
    let moved = if c.all.too_few() {
        "too few exchanges to judge".to_owned()
    } else if !c.all.is_sure() {
        "no difference beyond chance".to_owned()
    } else if c.all.difference < Nanos::ZERO {
        // Nor is "98 % faster".
        let times = ratio(a.median, b.median);
        if times >= 2.0 {
            format!("{times:.1} times as fast")
        } else {
            format!("{} faster", relative(&c.all))
        }
    } else {
        let times = ratio(b.median, a.median);
        // "1470 % slower" is no figure that anybody can picture.
        if times >= 2.0 {
            format!("{times:.1} times as long")
        } else {
            format!("{} slower", relative(&c.all))
        }
    };
    let cause = c.causes.iter().find(|(_, change)| change.is_sure());
    let cause = cause.map(|(cause, change)| {
        let word = if change.difference < Nanos::ZERO { "less" } else { "more" };
        format!(" The largest change: {} {word} of {} in each exchange.", abs(change.difference), cause.id())
    });
    let any = by_server(c);
    let together = if any { format!(", together {} and {}", sum(&a), sum(&b)) } else { String::new() };
    let found = if any { ANY_SIZE } else { "" };
    let all = c.shapes.iter().fold([0, 0], |n, (_, s)| [n[0] + s.before.count, n[1] + s.after.count]);
    let mix =
        if c.shapes.is_empty() || all == [a.count, b.count] { "" } else { ", in the same mix of sizes" };
    format!(
        "{found}{moved}: the median exchange took {} before and {} after ({} and {}{mix}{together}).{}",
        a.median,
        b.median,
        a.count,
        count(b.count, "exchange"),
        cause.unwrap_or_default()
    )
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

/// The difference as a share of what was.
pub fn relative(c: &Change) -> String {
    let before = (c.before.median.0.max(1)) as f64;
    percent((c.difference.0 as f64 / before).abs())
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
        return format!("{server}, any size, with openings");
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
        for (s, change) in c.shapes.iter().take(ROWS) {
            let n = format!("{} ({} and {})", shape(s), change.before.count, change.after.count);
            row(out, &n, change)?;
        }
        if c.shapes.len() > ROWS {
            writeln!(out, "  and {} more shapes: --json lists them", c.shapes.len() - ROWS)?;
        }
        if let Some(setup) = &c.setup {
            row(out, "opening a connection", setup)?;
        }
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
