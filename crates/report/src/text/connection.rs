//! One connection: what is known of it, its findings, its exchanges.

use super::slowest::Listed;
use super::style::{BOLD, DIM, bit_rate, bytes, moment, wrap};
use super::table::{Align, Table};
use super::{Layout, findings, slowest};
use crate::capture::local;
use crate::figures::count;
use crate::{Answer, Capture, headline};
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, Connection, End, Frames, Quality, Vantage};

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
    slowest::table(out, c.exchanges.iter().map(|x| Listed::exchange(c, x)).collect(), capture, layout)?;
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
    // Beside its receiver what is in flight is acknowledged as it passes.
    let afar = [Vantage::Server, Vantage::Client].map(|there| c.vantage == there);
    row("most in flight", &|i, e| {
        (e.max_flight > 0 && afar.get(i) != Some(&true)).then(|| bytes(e.max_flight))
    });
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

/// From its first packet to its last.
fn when(c: &Connection, capture: &Capture, layout: &Layout) -> String {
    format!("{} to {}", moment(c.start, capture, layout), moment(c.end, capture, layout))
}
