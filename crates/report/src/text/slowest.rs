//! Tables of exchanges and openings, the longest first.

use super::Layout;
use super::style::{DIM, bytes, moment, of};
use super::table::{Align, Table, WIDE};
use crate::figures::percent;
use crate::{Capture, worst};
use std::cmp::Reverse;
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, Budget, Connection, Exchange, Span};
use tcpwhy_base::{Cause, Nanos};

/// Exchanges that are kept in detail, if no other number is asked for.
const KEPT: u64 = 1_000;

/// A row: an exchange, or the opening of its connection.
#[derive(Clone, Copy)]
pub(super) struct Listed<'a> {
    connection: &'a Connection,
    /// `None`: the opening.
    exchange: Option<&'a Exchange>,
    start: Nanos,
    end: Nanos,
    spans: &'a [Span],
    bytes: [u64; 2],
}

impl<'a> Listed<'a> {
    /// An exchange of a connection.
    pub(super) fn exchange(connection: &'a Connection, x: &'a Exchange) -> Listed<'a> {
        let (start, end, bytes) = (x.start, x.end, x.bytes);
        Listed { connection, exchange: Some(x), start, end, spans: &x.spans, bytes }
    }

    /// The opening of a connection, if more of it went to something else than the handshake's own trips.
    fn slow_opening(connection: &'a Connection) -> Option<Listed<'a>> {
        let setup = connection.setup.as_ref()?;
        let (start, end, bytes) = (setup.start, setup.end, setup.bytes);
        let slow = worst(&spent(&setup.spans)).is_some_and(|(cause, _)| cause != Cause::Handshake);
        slow.then_some(Listed { connection, exchange: None, start, end, spans: &setup.spans, bytes })
    }

    fn name(&self) -> Option<&'a str> {
        self.exchange.and_then(Exchange::name)
    }

    fn duration(&self) -> Nanos {
        self.end - self.start
    }

    /// The longest first, and an opening before the exchanges that it is as long as.
    fn order(&self) -> impl Ord + use<> {
        (Reverse(self.duration()), self.connection.id, self.exchange.map(|x| x.id))
    }
}

/// The time of spans by cause.
pub(super) fn spent(spans: &[Span]) -> Budget {
    let mut budget = Budget::default();
    spans.iter().for_each(|s| budget.add(s.cause, s.duration()));
    budget
}

/// The slowest of all connections, and how to see the others.
pub(super) fn of_all(
    out: &mut impl Write,
    analysis: &Analysis,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    let kept = analysis.connections.iter().flat_map(|c| c.exchanges.iter().map(|x| Listed::exchange(c, x)));
    let openings = analysis.connections.iter().filter_map(|c| Listed::slow_opening(c));
    let mut all: Vec<Listed<'_>> = kept.chain(openings).collect();
    all.sort_unstable_by_key(Listed::order);
    let rows = all.len();
    let kept = all.iter().filter(|l| l.exchange.is_some()).count() as u64;
    // Those that are not kept in detail are none of the longest.
    let unkept = analysis.totals.exchanges.saturating_sub(kept);
    all.truncate(layout.slowest);
    write(out, &all, capture, layout)?;
    let shorter = (rows - all.len()) as u64 + unkept;
    let every = rows as u64 + unkept;
    // Where not even all connections are kept, more rows keep them.
    let next = if analysis.totals.not_kept > 0 { every.min(KEPT) } else { rows as u64 };
    let more = match (rows - all.len(), unkept) {
        (0, 0) => return Ok(()),
        (_, 0) => format!("--top {next}"),
        (0, _) => format!("--exchanges all --top {every}"),
        (_, _) => format!("--top {next}, or --exchanges all --top {every}"),
    };
    writeln!(out, "  {DIM}and {shorter} shorter: {more}{DIM:#}")
}

/// All of these, as far as there are rows for them.
pub(super) fn table(
    out: &mut impl Write,
    mut all: Vec<Listed<'_>>,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    all.sort_unstable_by_key(Listed::order);
    let rows = all.len();
    all.truncate(layout.top);
    write(out, &all, capture, layout)?;
    let left = rows - all.len();
    if left > 0 {
        writeln!(out, "  {DIM}and {left} shorter: --top {rows}{DIM:#}")?;
    }
    Ok(())
}

/// The rows as they are; none: nothing.
fn write(out: &mut impl Write, rows: &[Listed<'_>], capture: &Capture, layout: &Layout) -> io::Result<()> {
    use Align::{Left, Right};
    let Some(first) = rows.first() else { return Ok(()) };
    let wide = layout.width >= WIDE;
    let several = rows.iter().any(|l| l.connection.id != first.connection.id);
    let only = |is: bool, heads: &'static [(&'static str, Align)]| if is { heads } else { &[] };
    let named = rows.iter().any(|l| l.name().is_some());
    // A name needs the room of the start.
    let start = wide || !named;
    let heads = [
        only(several || wide, &[("connection", Right)]),
        &[("exchange", Right)],
        only(start, &[("start", Right)]),
        &[("duration", Right)],
        only(wide, &[("request", Right), ("response", Right)]),
        only(named, &[("name", Left)]),
        &[("", Left), ("most of it", Left)],
    ];
    let mut table = Table::new(&heads.concat());
    for listed in rows {
        let worst = worst(&spent(listed.spans));
        let share = |time: Nanos| percent(time.0 as f64 / listed.duration().0.max(1) as f64);
        let mut row = Vec::with_capacity(8);
        if several || wide {
            row.push(listed.connection.id.to_string());
        }
        row.push(listed.exchange.map_or_else(|| "opening".into(), |x| x.id.to_string()));
        if start {
            row.push(moment(listed.start, capture, layout));
        }
        row.push(listed.duration().to_string());
        if wide {
            row.extend(listed.bytes.map(bytes));
        }
        if named {
            row.push(named_within(listed, layout.width.saturating_sub(if wide { 84 } else { 62 }).max(18)));
        }
        // Between the numbers of several connections there is no room for both.
        let most = |(cause, time): (Cause, Nanos)| match (several || named) && !wide {
            true => format!("{} {}", cause.id(), share(time)),
            false => format!("{} {time} ({})", cause.id(), share(time)),
        };
        row.extend([listed.exchange.map_or("", ended).into(), worst.map_or_else(|| "-".into(), most)]);
        table.row(row);
        if let Some((cause, _)) = worst {
            table.colour_last(of(cause));
        }
    }
    writeln!(out)?;
    table.write(out)
}

/// What an exchange is called, and the status, in at most `room` characters.
fn named_within(listed: &Listed<'_>, room: usize) -> String {
    let status = listed
        .exchange
        .and_then(|x| x.named.as_ref())
        .and_then(|n| n.status)
        .map(|s| format!(" {s}"))
        .unwrap_or_default();
    let name = listed.name().unwrap_or("-");
    let room = room.saturating_sub(status.len());
    if name.chars().count() <= room {
        return format!("{name}{status}");
    }
    let cut: String = name.chars().take(room.saturating_sub(1)).collect();
    format!("{cut}…{status}")
}

/// How an exchange ended, if it is worth a word.
pub(super) fn ended(x: &Exchange) -> &'static str {
    use tcpwhy_analysis::Ended;
    match x.ended {
        Ended::Complete => "",
        Ended::Rst => "reset",
        Ended::Silent => "no answer",
        Ended::CaptureEnd => "unfinished",
    }
}
