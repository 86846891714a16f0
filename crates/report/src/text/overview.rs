//! The first screen: verdict, findings, warnings, connections.

use super::style::{BOLD, DIM, WARN, bytes, count, of, percent, plain};
use super::table::{Align, Table};
use super::{Layout, findings};
use crate::summary::{NOTHING_WRONG, tcp_time, worst};
use crate::{Capture, Summary};
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, Connection};
use tcpwhy_base::{Cause, Class, Nanos};

/// Writes the first screen.
pub fn overview(
    out: &mut impl Write,
    analysis: &Analysis,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    let summary = Summary::new(analysis);
    for line in super::style::wrap(&verdict(analysis, capture, &summary), layout.width.max(40)) {
        writeln!(out, "{BOLD}{line}{BOLD:#}")?;
    }
    if !analysis.connections.is_empty() {
        findings::list(out, &analysis.findings, &analysis.totals.budget.0, &summary, layout)?;
    }
    if layout.quiet {
        return Ok(());
    }
    warnings(out, capture, layout)?;
    wrapped(out, capture)?;
    if analysis.connections.is_empty() {
        return Ok(());
    }
    connections(out, analysis, layout)?;
    if layout.list_exchanges {
        let all = analysis.connections.iter().flat_map(|c| c.exchanges.iter().map(move |x| (c, x)));
        super::connection::exchanges(out, all, capture, layout)?;
    }
    hint(out, analysis, layout)
}

/// The verdict in one or two sentences.
pub fn verdict(analysis: &Analysis, capture: &Capture, summary: &Summary) -> String {
    if analysis.connections.is_empty() {
        return match (capture.packets, capture.tcp_packets) {
            (0, _) => {
                "The capture holds no packets. Was the capture filter right, and did traffic pass?".into()
            }
            (n, 0) if capture.partial => {
                format!("{}, but no TCP is left: loosen --filter, --from or --to.", count(n, "packet"))
            }
            (n, 0) if capture.warnings.iter().any(|w| w.code == "unusable") => format!(
                "{}, none with a whole TCP header: they are cut too short. Capture with `tcpdump -s 128` or more.",
                count(n, "packet")
            ),
            (n, 0) => format!(
                "No TCP in this capture: {}, none of them TCP. Capture with `tcpdump tcp`, and where the TCP \
                 traffic passes.",
                count(n, "packet")
            ),
            (_, n) => format!(
                "{}, but no connection is left: loosen --filter, --from or --to.",
                count(n, "TCP packet")
            ),
        };
    }
    let on = format!(
        "{} on {}, {}.",
        summary.total,
        count(analysis.connections.len() as u64, "connection"),
        count(analysis.totals.exchanges, "exchange")
    );
    if summary.total <= Nanos::ZERO {
        return if analysis.connections.iter().all(|c| c.packets.contains(&0)) {
            format!("{on} The capture holds no answer to any of them, and no time between their packets.")
        } else {
            format!("{on} No time passed in which anybody waited.")
        };
    }
    let share = summary.share(summary.tcp);
    if share >= NOTHING_WRONG {
        return format!("{on} {} ({}) is TCP and can be won back.", summary.tcp, percent(share));
    }
    let Some((cause, time)) = summary.dominant else { return on };
    let share = percent(summary.share(time));
    match cause.class() {
        Class::Unknown => format!("{on} {share} ({time}) could not be explained from this capture."),
        _ => format!("{on} Nothing is wrong with TCP here: {share} ({time}) is {}.", part(cause)),
    }
}

/// What a part of the time that is not TCP's fault is called.
fn part(cause: Cause) -> &'static str {
    match cause {
        Cause::ServerThink => "the server application",
        Cause::ClientThink => "the client application",
        Cause::SenderPause => "the sending application",
        Cause::PathDelay => "the distance",
        Cause::Bandwidth => "the link, busy with these bytes",
        Cause::Handshake => "opening connections",
        Cause::TlsHandshake => "TLS handshakes",
        other => other.info().what,
    }
}

/// What the capture cannot show.
fn warnings(out: &mut impl Write, capture: &Capture, layout: &Layout) -> io::Result<()> {
    for (i, w) in capture.warnings.iter().enumerate() {
        if i == 0 {
            writeln!(out)?;
        }
        let times = if w.count > 1 { format!(" ({} times)", w.count) } else { String::new() };
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
        analysis.connections.iter().map(|c| (tcp_time(c), c)).collect();
    sorted.sort_by_key(|(tcp, c)| (std::cmp::Reverse((*tcp, c.end - c.start)), c.id));
    let mut table = Table::new(&[
        ("id", Right),
        ("client > server", Left),
        ("duration", Right),
        ("exchanges", Right),
        ("bytes", Right),
        ("RTT", Right),
        ("TCP", Right),
        ("worst cause", Left),
    ]);
    for (tcp, c) in sorted.iter().take(layout.top) {
        let worst = worst(&c.budget).or_else(|| worst(&c.gap_budget));
        table.row([
            c.id.to_string(),
            format!("{} > {}", c.client, c.server),
            (c.end - c.start).to_string(),
            (c.exchanges.len() as u64 + c.exchanges_omitted.count).to_string(),
            bytes(c.bytes[0] + c.bytes[1]),
            c.path.rtt.map_or_else(|| "-".into(), |t| t.to_string()),
            if *tcp > Nanos::ZERO { tcp.to_string() } else { "-".into() },
            worst.map_or_else(|| "-".into(), |w| w.0.id().into()),
        ]);
        if let Some((cause, _)) = worst {
            table.colour_last(of(cause.class()));
        }
    }
    writeln!(out)?;
    table.write(out)?;
    let left = sorted.len().saturating_sub(layout.top);
    if left > 0 {
        writeln!(out, "  {DIM}and {left} more: --top {}{DIM:#}", sorted.len())?;
    }
    Ok(())
}

/// How to look closer: the exchange of the worst finding's example, or the longest.
fn hint(out: &mut impl Write, analysis: &Analysis, layout: &Layout) -> io::Result<()> {
    let by_finding = analysis
        .findings
        .iter()
        .filter(|f| f.cause.class() == Class::Tcp && f.example.exchange != 0)
        .max_by_key(|f| f.waited())
        .map(|f| (f.example.connection, f.example.exchange));
    let longest = || {
        let all = analysis.connections.iter().flat_map(|c| c.exchanges.iter().map(move |x| (c.id, x)));
        all.max_by_key(|(_, x)| x.end - x.start).map(|(c, x)| (c, x.id))
    };
    match by_finding.or_else(longest) {
        Some((c, x)) => writeln!(out, "\nsee one: {} --connection {c} --exchange {x}", layout.command),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_analysis::Totals;

    fn summary(total: i64, tcp: i64, dominant: Cause, time: i64) -> Summary {
        Summary {
            total: Nanos::millis(total),
            tcp: Nanos::millis(tcp),
            dominant: Some((dominant, Nanos::millis(time))),
        }
    }

    fn said(summary: &Summary) -> String {
        let totals = Totals { exchanges: 34, ..Totals::default() };
        let analysis =
            Analysis { connections: vec![crate::sample::connection()], totals, ..Analysis::default() };
        verdict(&analysis, &Capture::default(), summary)
    }

    #[test]
    fn a_fault_of_tcp() {
        assert_eq!(
            said(&summary(2832, 1162, Cause::ClientThink, 1582)),
            "2.83 s on 1 connection, 34 exchanges. 1.16 s (41 %) is TCP and can be won back."
        );
    }

    #[test]
    fn nothing_wrong_is_said_as_plainly() {
        assert_eq!(
            said(&summary(6080, 20, Cause::ServerThink, 5900)),
            "6.08 s on 1 connection, 34 exchanges. Nothing is wrong with TCP here: 97 % (5.90 s) is the server \
             application."
        );
        assert!(
            said(&summary(100, 0, Cause::Unexplained, 90)).contains("90 % (90.0 ms) could not be explained")
        );
    }

    #[test]
    fn empty_captures() {
        let analysis = Analysis::default();
        let said = |packets, tcp_packets| {
            let capture = Capture { packets, tcp_packets, ..Capture::default() };
            verdict(&analysis, &capture, &Summary::new(&analysis))
        };
        assert!(said(0, 0).contains("no packets"));
        assert!(said(7, 0).contains("7 packets, none of them TCP"));
        assert!(said(7, 7).contains("--filter"));
    }
}
