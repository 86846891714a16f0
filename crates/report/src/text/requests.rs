//! Requests by server, a typical and a slow one side by side, and the slowest of all.

use super::style::{DIM, of};
use super::table::{Align, Table};
use super::{Layout, bar, slowest};
use crate::answer::{Answer, slow};
use crate::figures::{count, percent};
use crate::{Capture, worst};
use std::cmp::Reverse;
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, Server};
use tcpwhy_base::{Endpoint, Nanos};

/// Of fewer requests none is typical.
const ENOUGH: u64 = 5;

/// All of it.
pub(super) fn requests(
    out: &mut impl Write,
    analysis: &Analysis,
    answer: &Answer,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    let servers = &analysis.totals.servers;
    if servers.len() > 1 {
        table(out, analysis, layout)?;
    }
    let most = if layout.verbose { layout.top } else { 1 };
    // Those first whose own time, without that of those they ask, is longest.
    let own = |s: &Server| {
        let asked = servers.iter().filter(|leg| leg.within == Some(s.server));
        s.requests() - asked.fold(Nanos::ZERO, |sum, leg| sum + leg.requests())
    };
    let mut typical_of: Vec<&Server> = servers.iter().filter(|s| s.times.count() >= ENOUGH).collect();
    typical_of.sort_by_key(|s| (Reverse(own(s)), s.server));
    for server in typical_of.into_iter().take(most) {
        typical(out, server, servers.len() > 1, answer, layout)?;
    }
    if analysis.totals.exchanges >= ENOUGH && layout.slower_than.is_none() {
        slowest::of_all(out, analysis, capture, layout)?;
    }
    Ok(())
}

/// A row for each server; those that another one asks stand below it.
fn table(out: &mut impl Write, analysis: &Analysis, layout: &Layout) -> io::Result<()> {
    use Align::{Left, Right};
    let servers = &analysis.totals.servers;
    let mut table = Table::new(&[
        ("requests to", Left),
        ("count", Right),
        ("median", Right),
        ("p95", Right),
        ("max", Right),
        ("most of it", Left),
    ]);
    let mut rows: Vec<(usize, &Server)> = Vec::new();
    for server in servers.iter().filter(|s| s.within.is_none()) {
        below(servers, server, 0, &mut rows);
    }
    let room = layout.width.saturating_sub(60).max(12);
    for (depth, s) in rows.iter().take(layout.top) {
        // Of a request of one packet nothing came back: it took no time that anybody saw.
        let seen = |p| s.times.percentile(p).filter(|&t| t > Nanos::ZERO);
        let time = |p| seen(p).map_or_else(|| "-".into(), |t: Nanos| t.to_string());
        let worst = worst(&s.budget);
        let share = |t: Nanos| percent(t.0 as f64 / s.requests().0.max(1) as f64);
        let lead = if *depth == 0 { String::new() } else { format!("{}└ ", "  ".repeat(depth - 1)) };
        let name = short(s.server, room.saturating_sub(lead.chars().count()));
        table.row([
            format!("{lead}{name}"),
            s.times.count().to_string(),
            time(50),
            time(95),
            time(100),
            worst.map_or_else(|| "-".into(), |(cause, t)| format!("{} {}", cause.id(), share(t))),
        ]);
        if let Some((cause, _)) = worst {
            table.colour_last(of(cause));
        }
    }
    writeln!(out)?;
    table.write(out)?;
    if rows.iter().any(|r| r.0 > 0) {
        writeln!(out, "  {DIM}└ asked by the server above while it answers: part of that one's time{DIM:#}")?;
    }
    let left = rows.len().saturating_sub(layout.top) as u64 + analysis.totals.servers_omitted;
    if left > 0 {
        writeln!(out, "  {DIM}and {}: --top {}{DIM:#}", count(left, "more server"), rows.len())?;
    }
    Ok(())
}

/// `server` and those that it asks.
fn below<'a>(servers: &'a [Server], server: &'a Server, depth: usize, rows: &mut Vec<(usize, &'a Server)>) {
    rows.push((depth, server));
    // Each is within one that took longer, so there is no circle.
    for leg in servers.iter().filter(|s| s.within == Some(server.server)) {
        below(servers, leg, depth + 1, rows);
    }
}

/// Where the time of a typical request and of a slow one goes, in bars of one scale.
fn typical(
    out: &mut impl Write,
    server: &Server,
    several: bool,
    answer: &Answer,
    layout: &Layout,
) -> io::Result<()> {
    let (Some(typical), Some(tail)) = (server.times.around(50), server.times.around(95)) else {
        return Ok(());
    };
    if typical.from == tail.from {
        return Ok(());
    }
    let to = if several { format!(" to {}", server.server) } else { String::new() };
    writeln!(out, "\n  {DIM}a typical request{to} and a slow one (p95){DIM:#}")?;
    let mean = |band: &tcpwhy_analysis::Band| {
        let times = band.mean();
        let sum = times.iter().fold(Nanos::ZERO, |sum, t| sum + t.1);
        (times, sum)
    };
    let (longest, room) = (mean(&tail).1.0.max(1), layout.width.saturating_sub(12).clamp(20, 60));
    for band in [&typical, &tail] {
        let (times, sum) = mean(band);
        write!(out, "  {:>8}  ", sum.to_string())?;
        let cells = ((sum.0 as f64 / longest as f64) * room as f64).round() as usize;
        bar::draw(out, answer, &times, cells.clamp(1, room))?;
        writeln!(out)?;
        for line in bar::names(&times, layout.width.saturating_sub(12).max(20)) {
            writeln!(out, "{:12}{line}", "")?;
        }
    }
    match slow(&server.times) {
        Some((cause, more)) => {
            writeln!(out, "{:12}what the slow ones have more of: {} (+{more})", "", cause.id())
        }
        None => Ok(()),
    }
}

/// An address and port in at most `room` characters: the middle is left out.
pub(super) fn short(end: Endpoint, room: usize) -> String {
    let whole = end.to_string();
    let n = whole.chars().count();
    if n <= room || room < 9 {
        return whole;
    }
    let tail = (room - 1).div_ceil(2);
    let head: String = whole.chars().take(room - 1 - tail).collect();
    let tail: String = whole.chars().skip(n - tail).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_addresses_lose_their_middle() {
        let end = Endpoint { ip: "2001:db8:1:2:3:4:5:6".parse().unwrap(), port: 443 };
        assert_eq!(short(end, 40), "[2001:db8:1:2:3:4:5:6]:443");
        assert_eq!(short(end, 26), "[2001:db8:1:2:3:4:5:6]:443");
        assert_eq!(short(end, 20), "[2001:db8…4:5:6]:443");
        assert_eq!(short(end, 5), short(end, 40), "what is left would say nothing");
    }
}
