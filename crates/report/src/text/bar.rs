//! Stacked bars: where the time of requests went, and where that of a typical and of a slow one.

use super::Layout;
use super::style::{DIM, of, wrap};
use crate::answer::Answer;
use crate::figures::percent;
use std::io::{self, Write};
use tcpwhy_base::{Cause, Nanos};

/// Parts side by side are told apart without colours; further ones share the last.
const SHADES: [&str; 5] = ["█", "▓", "▒", "░", "·"];
/// Below this share a cause is not named beside the bar.
const NAMED: f64 = 0.01;
/// No bar is longer.
const LONGEST: usize = 72;

/// The shade of a cause: by its place in the answer, the same in all bars.
fn shade(answer: &Answer, cause: Cause) -> &'static str {
    let place = answer.causes.iter().position(|p| p.cause == cause).unwrap_or(usize::MAX);
    SHADES.get(place).copied().unwrap_or("·")
}

/// `cells` of a bar, divided as the times are; what is too short for a cell leaves it to its neighbour.
fn cells(times: &[(Cause, Nanos)], cells: usize) -> Vec<(Cause, usize)> {
    let total: i128 = times.iter().map(|t| i128::from(t.1.0)).sum();
    let (mut sum, mut at) = (0, 0);
    let mut parts = Vec::with_capacity(times.len());
    for &(cause, time) in times {
        sum += i128::from(time.0);
        // Rounded to the nearest cell.
        let end = ((2 * sum * cells as i128 + total) / (2 * total.max(1))) as usize;
        if end > at {
            parts.push((cause, end - at));
        }
        at = end.max(at);
    }
    parts
}

/// A bar of so many cells.
pub(super) fn draw(
    out: &mut impl Write,
    answer: &Answer,
    times: &[(Cause, Nanos)],
    length: usize,
) -> io::Result<()> {
    for (cause, n) in cells(times, length) {
        let style = of(cause);
        write!(out, "{style}{}{style:#}", shade(answer, cause).repeat(n))?;
    }
    Ok(())
}

/// The bar below the headline, with the names of its parts; none where one cause has all of the time.
pub(super) fn whole(out: &mut impl Write, answer: &Answer, layout: &Layout) -> io::Result<()> {
    let spent = answer.causes.iter().filter(|p| p.requests > Nanos::ZERO);
    let times: Vec<(Cause, Nanos)> = spent.map(|p| (p.cause, p.requests)).collect();
    let named = times.iter().filter(|t| answer.share(t.1) >= NAMED);
    if named.clone().count() < 2 {
        return Ok(());
    }
    write!(out, "\n  ")?;
    draw(out, answer, &times, layout.width.saturating_sub(4).clamp(20, LONGEST))?;
    writeln!(out)?;
    let small: Nanos =
        times.iter().filter(|t| answer.share(t.1) < NAMED).fold(Nanos::ZERO, |sum, t| sum + t.1);
    // Blanks within a name would let a line break there.
    let name =
        |t: &(Cause, Nanos)| format!("{} {} {}", shade(answer, t.0), t.0.id(), percent(answer.share(t.1)));
    let mut names: Vec<String> = named.map(name).collect();
    if small > Nanos::ZERO {
        names.push(format!("rest {}", percent(answer.share(small))));
    }
    let mut line = String::new();
    for name in names {
        if !line.is_empty()
            && line.chars().count() + 2 + name.chars().count() > layout.width.saturating_sub(4)
        {
            writeln!(out, "  {DIM}{line}{DIM:#}")?;
            line.clear();
        }
        line.push_str(if line.is_empty() { "" } else { "  " });
        line.push_str(&name);
    }
    writeln!(out, "  {DIM}{line}{DIM:#}")
}

/// `nagle_delayed_ack 44.0 ms, server_think 7.17 ms`: the parts of one request, in lines below its bar.
pub(super) fn names(times: &[(Cause, Nanos)], width: usize) -> Vec<String> {
    let total = times.iter().fold(Nanos::ZERO, |sum, t| sum + t.1);
    let named = times.iter().filter(|t| t.1.0 as f64 >= NAMED * total.0 as f64);
    let parts: Vec<String> = named.map(|t| format!("{} {}", t.0.id(), t.1)).collect();
    wrap(&parts.join(", "), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_fill_the_bar_exactly() {
        let of = |times: &[i64], n| {
            let times: Vec<_> = times.iter().map(|&t| (Cause::Nagle, Nanos(t))).collect();
            cells(&times, n).iter().map(|c| c.1).collect::<Vec<_>>()
        };
        assert_eq!(of(&[50, 30, 20], 10), [5, 3, 2]);
        assert_eq!(of(&[1, 1, 1], 10), [3, 4, 3]);
        assert_eq!(of(&[99, 1], 10), [10], "half a cell at least");
        assert_eq!(of(&[95, 5], 10), [10], "the first is rounded up to the whole");
        assert_eq!(of(&[94, 6], 10), [9, 1]);
        assert_eq!(of(&[i64::MAX / 2, i64::MAX / 2], 4), [2, 2]);
        assert!(of(&[], 10).is_empty());
    }
}
