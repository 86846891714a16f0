//! One exchange as a time line: its spans in order, each with its packets.

use super::style::{BOLD, DIM, bytes, moment, of, wrap};
use super::{Layout, connection, findings, slowest};
use crate::Capture;
use crate::capture::local;
use crate::figures::percent;
use std::io::{self, Write};
use tcpwhy_analysis::{Connection, Exchange, Frames, Span};
use tcpwhy_base::{End, Ends, Nanos, TcpFlags};
use tcpwhy_trace::{Packet, Track};

/// Cells of the bar.
const BAR: usize = 24;
/// Packets shown at either end of a span with many.
const ENDS: usize = 5;
/// Spans shorter than this share of the exchange are drawn together where there are many.
const SHORT: f64 = 0.002;
/// So many spans are all drawn.
const FEW: usize = 40;

/// Writes the time line of one exchange. Without packets, the sentence says why.
pub fn exchange(
    out: &mut impl Write,
    c: &Connection,
    x: &Exchange,
    packets: Result<&Track, &str>,
    capture: &Capture,
    layout: &Layout,
) -> io::Result<()> {
    connection::header(out, c, capture, layout)?;
    let ended = slowest::ended(x);
    let ended = if ended.is_empty() { String::new() } else { format!(", {ended}") };
    writeln!(
        out,
        "\n{BOLD}exchange {}{BOLD:#}  {} at {}, request {}, response {}{ended}",
        x.id,
        x.end - x.start,
        moment(x.start, capture, layout),
        bytes(x.bytes[0]),
        bytes(x.bytes[1]),
    )?;
    let nothing = Track::default();
    let (track, none) = match packets {
        Ok(track) => (track, None),
        Err(why) => (&nothing, Some(why)),
    };
    let total = (x.end - x.start).0.max(1) as f64;
    let fold = !layout.verbose && x.spans.len() > FEW;
    let mut short: (usize, Nanos) = (0, Nanos::ZERO);
    for (i, span) in x.spans.iter().enumerate() {
        if fold && (span.duration().0 as f64) < SHORT * total {
            short = (short.0 + 1, short.1 + span.duration());
            continue;
        }
        folded(out, &mut short)?;
        self::span(out, x, span, layout)?;
        let last = i + 1 == x.spans.len();
        let within = track.packets.iter().filter(|p| p.time >= span.start && (p.time < span.end || last));
        self::packets(out, &within.copied().collect::<Vec<_>>(), track.shift, x, layout)?;
    }
    folded(out, &mut short)?;
    if let Some(why) = none {
        writeln!(out)?;
        findings::lines(out, why, 2, layout)?;
    }
    Ok(())
}

fn folded(out: &mut impl Write, short: &mut (usize, Nanos)) -> io::Result<()> {
    let (n, time) = std::mem::take(short);
    if n == 0 {
        return Ok(());
    }
    writeln!(out, "\n  {DIM}... {n} short spans, {time} in all (-v shows them){DIM:#}")
}

/// One span: offset, bar, length, cause, side, confidence, sentence.
fn span(out: &mut impl Write, x: &Exchange, span: &Span, layout: &Layout) -> io::Result<()> {
    let colour = of(span.cause);
    let (before, cells) = bar(x, span);
    let side = span.side.map(|s| format!("  side: {}", s.name())).unwrap_or_default();
    let detail = span.detail.map(|d| format!(" ({d})")).unwrap_or_default();
    let share = percent(span.duration().0 as f64 / (x.end - x.start).0.max(1) as f64);
    writeln!(
        out,
        "\n  {:>10}  {DIM}{}{DIM:#}{colour}{}{colour:#}{DIM}{}{DIM:#}  {BOLD}{:>8} {share:>5}{BOLD:#}  {colour}{}{colour:#}{detail}{side}",
        offset(span.start - x.start),
        "·".repeat(before),
        "█".repeat(cells),
        "·".repeat(BAR - before - cells),
        span.duration().to_string(),
        span.cause.id(),
    )?;
    let mut text = span.facts.sentence();
    if span.frames.first() != 0 {
        let frames = local(&span.frames, &layout.frames_before).0;
        let (chain, of) = (findings::chain(&frames), findings::of_file(&frames, layout));
        text.push_str(&format!(" Frames {chain}{of}."));
    }
    if span.confidence < 0.8 {
        let other: Vec<&str> = span.alternatives.iter().flatten().map(|a| a.0.id()).collect();
        let other =
            if other.is_empty() { String::new() } else { format!("; could be {}", other.join(" or ")) };
        text.push_str(&format!(" Confidence {:.0} %{other}.", span.confidence * 100.0));
    }
    for line in wrap(&text, layout.width.saturating_sub(14).max(20)) {
        writeln!(out, "{:14}{line}", "")?;
    }
    Ok(())
}

/// Cells before the bar, and of the bar: at least one.
fn bar(x: &Exchange, span: &Span) -> (usize, usize) {
    let total = i128::from((x.end - x.start).0.max(1));
    let at = |t: Nanos| ((i128::from((t - x.start).0) * BAR as i128 / total).clamp(0, BAR as i128)) as usize;
    let before = at(span.start).min(BAR - 1);
    (before, at(span.end).saturating_sub(before).clamp(1, BAR - before))
}

fn packets(
    out: &mut impl Write,
    packets: &[Packet],
    shift: Ends<Option<u8>>,
    x: &Exchange,
    layout: &Layout,
) -> io::Result<()> {
    let fold = !layout.verbose && packets.len() > 2 * ENDS + 1;
    for (i, p) in packets.iter().enumerate() {
        if fold && i == ENDS {
            writeln!(out, "{:14}{DIM}... {} packets{DIM:#}", "", packets.len() - 2 * ENDS)?;
        }
        if !fold || i < ENDS || i + ENDS >= packets.len() {
            packet(out, p, shift, x, layout)?;
        }
    }
    Ok(())
}

fn packet(
    out: &mut impl Write,
    p: &Packet,
    shift: Ends<Option<u8>>,
    x: &Exchange,
    layout: &Layout,
) -> io::Result<()> {
    let frame = local(&Frames::new(0, p.frame, p.frame, &[]), &layout.frames_before).0.first();
    let arrow = if p.from == End::Client { "client >" } else { "< server" };
    let ack = p.acknowledges().map(|a| format!(" ack {a}")).unwrap_or_default();
    writeln!(
        out,
        "{:14}{DIM}{:>6}{DIM:#} {:>10}  {arrow}  {:<7} seq {}{ack} len {} win {}",
        "",
        frame,
        offset(p.time - x.start),
        flags(p.flags),
        p.seq,
        p.len,
        window(p, shift),
    )
}

/// `64256`, or `502 (unscaled)` as it stands in the header, where the scale is not known.
fn window(p: &Packet, shift: Ends<Option<u8>>) -> String {
    match p.window_bytes(shift) {
        Some(bytes) => bytes.to_string(),
        // No scale makes anything of nothing.
        None if p.window == 0 => "0".into(),
        None => format!("{} (unscaled)", p.window),
    }
}

/// `+40.123 ms`: milliseconds throughout, so that the eye can subtract.
fn offset(time: Nanos) -> String {
    format!("{:+.3} ms", time.as_ms())
}

/// The flags by their letters, as tcpdump writes them.
pub fn flags(flags: TcpFlags) -> String {
    const LETTERS: [(u16, &str); 7] = [
        (TcpFlags::SYN, "SYN"),
        (TcpFlags::FIN, "FIN"),
        (TcpFlags::RST, "RST"),
        (TcpFlags::PSH, "P"),
        (TcpFlags::URG, "U"),
        (TcpFlags::ECE, "E"),
        (TcpFlags::CWR, "W"),
    ];
    let mut set: Vec<&str> = LETTERS.iter().filter(|(bit, _)| flags.has(*bit)).map(|l| l.1).collect();
    if flags.ack() {
        set.push(".");
    }
    set.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_short() {
        assert_eq!(flags(TcpFlags(TcpFlags::SYN | TcpFlags::ACK)), "SYN.");
        assert_eq!(flags(TcpFlags(TcpFlags::PSH | TcpFlags::ACK)), "P.");
    }

    #[test]
    fn a_time_line_holds_every_span_and_packet() {
        let c = crate::sample::connection();
        let x = &c.exchanges[0];
        let packet = |frame, time| Packet {
            frame,
            time,
            from: if frame % 2 == 0 { End::Client } else { End::Server },
            flags: TcpFlags(TcpFlags::ACK),
            seq: 1,
            ack: 1,
            len: 10,
            window: 512,
            marks: 0,
            sack: [(0, 0); 4],
            sacks: 0,
        };
        let packets = vec![packet(4, x.start), packet(5, x.spans[1].start), packet(6, x.end)];
        let track = Track { connection: 1, packets, total: 3, ..Track::default() };
        let mut text = Vec::new();
        exchange(&mut text, &c, x, Ok(&track), &Capture::default(), &Layout::default()).unwrap();
        let text = String::from_utf8(text).unwrap();
        for span in &x.spans {
            assert!(text.contains(span.cause.id()), "{text}");
        }
        assert_eq!(text.matches("client >  ").count() + text.matches("< server").count(), 3, "{text}");
        // Each file counts its own packets, as in the evidence.
        let layout = Layout { frames_before: vec![0, 3], ..Layout::default() };
        let mut second = Vec::new();
        exchange(&mut second, &c, x, Ok(&track), &Capture::default(), &layout).unwrap();
        let second = String::from_utf8(second).unwrap();
        let shown = |line: &&str| line.contains("client >  ") || line.contains("< server");
        let number = |line: &str| line.split("\u{1b}[2m").nth(1)?.split('\u{1b}').next()?.trim().parse().ok();
        let numbers = |text: &str| text.lines().filter(shown).filter_map(number).collect::<Vec<u64>>();
        assert_eq!((numbers(&text), numbers(&second)), (vec![4, 5, 6], vec![1, 2, 3]), "{second}");
        let mut bare = Vec::new();
        exchange(&mut bare, &c, x, Err("Packets need a file."), &Capture::default(), &Layout::default())
            .unwrap();
        assert!(String::from_utf8(bare).unwrap().contains("Packets need a file."));
    }
}
