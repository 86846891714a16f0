//! One connection: what is known of it, its findings, its exchanges.

use super::style::{BOLD, DIM, bit_rate, bytes, moment, of, wrap};
use super::table::{Align, Table, WIDE};
use super::{Layout, findings};
use crate::capture::local;
use crate::figures::{count, percent};
use crate::{Answer, Capture, headline, worst};
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, Budget, Connection, End, Exchange, Frames, Quality, Vantage};
use tcpwhy_base::{Cause, Nanos};

/// Writes all that is known of the one connection that is left in an analysis.
pub fn connection(
    out: &mut impl Write,
    analysis: &Analysis,
    c: &Connection,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    let answer = Answer::new(analysis);
    header(out, c, capture, layout)?;
    ends(out, c)?;
    writeln!(out)?;
    findings::lines(out, &headline(analysis, capture, &answer), 2, layout)?;
    super::bar::whole(out, &answer, layout)?;
    findings::list(out, &analysis.findings, &answer, layout)?;
    exchanges(out, c.exchanges.iter().map(|x| (c, x)), capture, layout)?;
    left_out(out, c, layout)
}

/// How many exchanges are not told, and what tells them.
fn left_out(out: &mut impl Write, c: &Connection, layout: &Layout) -> io::Result<()> {
    let left = &c.exchanges_omitted;
    if left.count == 0 {
        return Ok(());
    }
    let are = if left.count == 1 { "is" } else { "are" };
    let why = match layout.slower_than {
        None => ": --exchanges all".into(),
        Some(limit) if layout.all_exchanges => format!(": not longer than {limit} (--slower-than)"),
        // By which of the two each was left out is not kept.
        Some(_) => ", by --slower-than or for their number (--exchanges all)".to_owned(),
    };
    let said = format!(
        "{} ({}) {are} left out of the detail{why}",
        count(left.count, "more exchange"),
        left.duration
    );
    wrap(&said, layout.width.saturating_sub(2)).iter().try_for_each(|l| writeln!(out, "  {DIM}{l}{DIM:#}"))
}

/// Who, when, where.
pub(super) fn header(
    out: &mut impl Write,
    c: &Connection,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    let protocol = c.protocol.map(|p| format!("  {p}")).unwrap_or_default();
    writeln!(out, "{BOLD}connection {}  {} > {}{BOLD:#}{protocol}", c.id, c.client, c.server)?;
    let opened =
        if c.opened_by_handshake { "opened by a handshake" } else { "already open when the capture began" };
    let closed = match c.closed {
        tcpwhy_analysis::Closed::Fin => "closed by FIN",
        tcpwhy_analysis::Closed::Rst => "closed by a reset",
        tcpwhy_analysis::Closed::Open => "still open at the end",
    };
    let roles = if c.roles_inferred { "; who is the client is inferred" } else { "" };
    let vantage = match c.vantage {
        Vantage::Client => "captured at the client",
        Vantage::Server => "captured at the server",
        Vantage::Middle => "captured between the ends",
        Vantage::Unknown => "where it was captured does not show",
    };
    let frames = Frames::new(0, c.frames.0, c.frames.1, &[]);
    let frames = local(&frames, &layout.frames_before).0;
    let (first, last, of) = (frames.first(), frames.last(), findings::of_file(&frames, layout));
    let mut facts = vec![
        format!("{}, frames {first} to {last}{of}", when(c, capture, layout)),
        format!("{opened}, {closed}{roles}"),
        vantage.into(),
    ];
    facts.push(c.path.rtt.map_or("round trip not known".into(), |rtt| format!("round trip {rtt}")));
    if let Some(bps) = c.path.bandwidth_bps {
        facts.push(format!("bottleneck about {}", bit_rate(bps)));
    }
    let limits: Vec<&str> = Quality::names(c.quality).collect();
    if !limits.is_empty() {
        facts.push(format!("quality: {}", limits.join(", ")));
    }
    findings::lines(out, &facts.join("; "), 2, layout)
}

/// The two ends side by side; rows without news are left out.
fn ends(out: &mut impl Write, c: &Connection) -> io::Result<()> {
    use Align::{Left, Right};
    let mut table = Table::new(&[("", Left), ("client", Right), ("server", Right)]);
    let mut row = |name: &str, of: &dyn Fn(usize, &End) -> Option<String>| {
        let cells = [of(0, &c.ends[0]), of(1, &c.ends[1])];
        if cells.iter().any(Option::is_some) {
            let [a, b] = cells.map(|c| c.unwrap_or_else(|| "-".into()));
            table.row([name.into(), a, b]);
        }
    };
    let some = |n: u32| (n > 0).then(|| n.to_string());
    row("bytes", &|i, _| Some(bytes(c.bytes[i])));
    row("packets", &|i, _| Some(c.packets[i].to_string()));
    row("retransmitted", &|i, _| (c.retransmitted[i] > 0).then(|| c.retransmitted[i].to_string()));
    row("MSS", &|_, e| e.mss.map(|m| m.to_string()));
    row("window scale", &|_, e| e.wscale.map(|w| w.to_string()));
    row("largest window", &|_, e| e.max_window.map(bytes));
    row("first flight", &|_, e| e.initial_flight.map(bytes));
    row("most in flight", &|_, e| (e.max_flight > 0).then(|| bytes(e.max_flight)));
    row("stack", &|_, e| e.os.map(str::to_owned));
    row("delays ACKs by", &|_, e| e.delayed_ack.map(super::range));
    row("shortest timeout", &|_, e| e.min_rto.map(|t| t.to_string()));
    row("SYN repeats", &|_, e| some(e.syn_repeats));
    row("zero windows", &|_, e| some(e.zero_windows));
    row("window probes", &|_, e| some(e.probes));
    row("keep-alives", &|_, e| some(e.keepalives));
    row("reordered", &|_, e| some(e.reordered));
    row("copies left out", &|_, e| some(e.duplicates));
    writeln!(out)?;
    table.write(out)
}

/// A table of exchanges, the longest first.
pub(super) fn exchanges<'a>(
    out: &mut impl Write,
    all: impl Iterator<Item = (&'a Connection, &'a Exchange)>,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    use Align::{Left, Right};
    let mut sorted: Vec<(&Connection, &Exchange)> = all.collect();
    if sorted.is_empty() {
        return Ok(());
    }
    sorted.sort_by_key(|(c, x)| (std::cmp::Reverse(x.end - x.start), c.id, x.id));
    let wide = layout.width >= WIDE;
    let several = sorted.iter().any(|(c, _)| c.id != sorted[0].0.id);
    let only = |is: bool, heads: &'static [(&'static str, Align)]| if is { heads } else { &[] };
    let named = sorted.iter().take(layout.top).any(|(_, x)| x.name().is_some());
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
    for (c, x) in sorted.iter().take(layout.top) {
        let worst = worst(&spent(x));
        let share = |time: Nanos| percent(time.0 as f64 / (x.end - x.start).0.max(1) as f64);
        let mut row = Vec::with_capacity(8);
        if several || wide {
            row.push(c.id.to_string());
        }
        row.push(x.id.to_string());
        if start {
            row.push(moment(x.start, capture, layout));
        }
        row.push((x.end - x.start).to_string());
        if wide {
            row.extend(x.bytes.map(bytes));
        }
        if named {
            row.push(name(x, layout.width.saturating_sub(if wide { 84 } else { 62 }).max(18)));
        }
        // Between the numbers of several connections there is no room for both.
        let most = |(cause, time): (Cause, Nanos)| match (several || named) && !wide {
            true => format!("{} {}", cause.id(), share(time)),
            false => format!("{} {time} ({})", cause.id(), share(time)),
        };
        row.extend([ended(x).into(), worst.map_or_else(|| "-".into(), most)]);
        table.row(row);
        if let Some((cause, _)) = worst {
            table.colour_last(of(cause));
        }
    }
    writeln!(out)?;
    table.write(out)?;
    let left = sorted.len().saturating_sub(layout.top);
    if left > 0 {
        writeln!(out, "  {DIM}and {left} shorter: --top {}{DIM:#}", sorted.len())?;
    }
    Ok(())
}

/// What an exchange is called, and the status, in at most `room` characters.
fn name(x: &Exchange, room: usize) -> String {
    let status = x.named.as_ref().and_then(|n| n.status).map(|s| format!(" {s}")).unwrap_or_default();
    let name = x.name().unwrap_or("-");
    let room = room.saturating_sub(status.len());
    if name.chars().count() <= room {
        return format!("{name}{status}");
    }
    let cut: String = name.chars().take(room.saturating_sub(1)).collect();
    format!("{cut}…{status}")
}

/// The time of an exchange by cause.
pub(super) fn spent(x: &Exchange) -> Budget {
    let mut budget = Budget::default();
    x.spans.iter().for_each(|s| budget.add(s.cause, s.duration()));
    budget
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

/// From its first packet to its last.
fn when(c: &Connection, capture: &Capture, layout: &Layout) -> String {
    format!("{} to {}", moment(c.start, capture, layout), moment(c.end, capture, layout))
}
