//! The answer of the analysis as a story, and packets as text.

use std::fmt::Write as _;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Connection, Detail, Ended, Span};
use tcpwhy_base::{Nanos, Segment};

/// Runs the analysis with all detail.
pub(crate) fn analyze(segments: &[Segment]) -> Analysis {
    let mut analyzer = Analyzer::new(Config { detail: Detail::All });
    for segment in segments {
        analyzer.push(segment);
    }
    analyzer.finish()
}

/// What an analyzer says with all detail that gets these packets, and that it says the same where connections
/// lie idle after each.
pub(crate) fn alike_at_rest(give: impl Fn(&mut Analyzer)) -> Analysis {
    let of = |mut analyzer: Analyzer| {
        give(&mut analyzer);
        analyzer.finish()
    };
    let analyzer = || Analyzer::new(Config { detail: Detail::All });
    let analysis = of(analyzer());
    assert_eq!(format!("{:?}", of(analyzer().rests_always())), format!("{analysis:?}"));
    analysis
}

/// A connection as text: a line for each part, below it a line for each span.
pub(crate) fn tell(connection: &Connection, zero: Nanos) -> String {
    let at = |t: Nanos| millis(t - zero);
    let mut parts: Vec<(Nanos, Nanos, String)> = Vec::new();
    let spans = |out: &mut String, spans: &[Span]| {
        let instant = |t: &Span| t.duration() == Nanos(1);
        for (i, span) in spans.iter().enumerate().filter(|(_, s)| !instant(s)) {
            let side = span.side.map_or("nobody", |s| s.name());
            let end = spans.get(i + 1).filter(|s| instant(s)).map_or(span.end, |s| s.end);
            let (from, to) = (at(span.start), at(end));
            let (first, last) = (span.frames.first(), span.frames.last());
            let _ = writeln!(out, "  {} {side} {from}..{to} #{first}-{last}", span.cause.id());
        }
    };
    if let Some(setup) = &connection.setup {
        let mut text = format!("setup {}..{}", at(setup.start), at(setup.end));
        if setup.bytes != [0, 0] {
            let _ = write!(text, " {}>{}", setup.bytes[0], setup.bytes[1]);
        }
        text.push('\n');
        spans(&mut text, &setup.spans);
        parts.push((setup.start, setup.end, text));
    }
    for gap in &connection.gaps {
        let mut text = format!("gap {}..{}\n", at(gap.start), at(gap.end));
        spans(&mut text, &gap.spans);
        parts.push((gap.start, gap.end, text));
    }
    for exchange in &connection.exchanges {
        let [request, response] = exchange.bytes;
        let mut text = format!("exchange {}..{} {request}>{response}", at(exchange.start), at(exchange.end));
        if exchange.turns != 1 {
            let _ = write!(text, " turns {}", exchange.turns);
        }
        if exchange.duplex {
            text.push_str(" duplex");
        }
        if exchange.ended != Ended::Complete {
            let _ = write!(text, " {}", exchange.ended.name());
        }
        text.push('\n');
        spans(&mut text, &exchange.spans);
        parts.push((exchange.start, exchange.end, text));
    }
    parts.sort_by_key(|p| (p.0, p.1));
    parts.into_iter().map(|p| p.2).collect()
}

#[track_caller]
pub(crate) fn same_story(told: &str, story: &str, segments: &[Segment]) {
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|l| l.trim().to_string()).filter(|l| !l.is_empty()).collect()
    };
    let same = lines(told) == lines(story);
    let packets = packets(segments);
    assert!(same, "the analysis tells\n{told}\nthe test expects\n{story}\nof\n{packets}");
}

/// Milliseconds with as many decimals as needed.
fn millis(t: Nanos) -> String {
    let sign = if t.0 < 0 { "-" } else { "" };
    let ns = t.0.unsigned_abs();
    let text = format!("{sign}{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The packets of a capture as text, one a line.
pub(crate) fn packets(segments: &[Segment]) -> String {
    let mut text = String::new();
    for s in segments {
        let time = millis(s.time - segments[0].time);
        let o = &s.options;
        let sack: Vec<_> = o.sack[..usize::from(o.sack_len).min(4)].iter().map(|b| (b.0.0, b.1.0)).collect();
        let _ = write!(text, "#{} {time} {} > {} seq {} len {}", s.frame, s.src, s.dst, s.seq.0, s.len);
        let _ = write!(text, " ack {} win {} flags {:#x} id {:?}", s.ack.0, s.window, s.flags.0, s.ip_id);
        if s.link != 0 || !s.tls.is_none() {
            let _ = write!(text, " link {} tls {}", s.link, s.tls.0);
        }
        let _ = writeln!(text, " ts {:?} mss {:?} ws {:?} sack {sack:?}", o.timestamps, o.mss, o.wscale);
    }
    text
}
