//! `--annotate`: the same packets as pcapng, with comments that say what tcpwhy says of them.

use crate::output::Output;
use crate::source::Source;
use std::collections::HashMap;
use std::fmt::Write as _;
use tcpwhy_analysis::{Analysis, Part, Span, SpanId};
use tcpwhy_base::{Cause, Class, Nanos, Side};
use tcpwhy_capture::{Frame, Writer};
use tcpwhy_report::json;

/// A span and where it stands.
type Placed<'a> = (SpanId, &'a Span);

/// Writes the copy; the file takes its name only if all of it was written.
pub(crate) fn write(mut out: Output, source: &Source<'_>, analysis: &Analysis) -> anyhow::Result<()> {
    let written = frames(&mut out, source, analysis);
    out.finish(written)
}

fn frames(out: &mut Output, source: &Source<'_>, analysis: &Analysis) -> anyhow::Result<()> {
    let spans: Vec<Vec<Placed<'_>>> = analysis.connections.iter().map(|c| c.spans().collect()).collect();
    let mut keys: HashMap<u64, Vec<(usize, usize)>> = HashMap::new();
    for (c, list) in spans.iter().enumerate() {
        // Skip inherent causes.
        let news = list.iter().enumerate().filter(|(_, (_, span))| span.cause.class() != Class::Inherent);
        for (i, (_, span)) in news {
            for key in span.frames.keys() {
                keys.entry(key).or_default().push((c, i));
            }
        }
    }
    let findings = json::finding_ids(&analysis.findings);
    let mut writer = Writer::pcapng(out)?;
    source.read_again(&analysis.connections, |met| {
        let mut comment = String::new();
        if let Some((c, packet)) = met.packet {
            let list = spans.get(c).map_or(&[][..], Vec::as_slice);
            if let Some(&placed) = at(list, packet.time) {
                line(&mut comment, placed, &findings);
            }
            if packet.is_copy() {
                comment.push_str("\na copy of a packet just before: left out of the analysis");
            }
            for &(_, i) in keys.get(&met.number).into_iter().flatten().filter(|k| k.0 == c) {
                let (id, span) = list[i];
                let (cause, why) = (span.cause.id(), span.facts.sentence());
                let _ = write!(comment, "\nevidence of {cause} ({id}): {why}");
            }
        }
        // A time before 1970 cannot be written.
        let frame = Frame { time: met.frame.time.floor0(), ..met.frame };
        let comment = comment.trim();
        writer.write(&frame, (!comment.is_empty()).then_some(comment))?;
        Ok(true)
    })?;
    writer.finish()?;
    Ok(())
}

/// `tcpwhy: nagle_delayed_ack 48.2 ms, side client, connection 1 exchange 19 (span 1.19.1, finding f1)`.
fn line(comment: &mut String, (id, span): Placed<'_>, findings: &HashMap<(Cause, Option<Side>), String>) {
    let side = span.side.map(|s| format!(", side {}", s.name())).unwrap_or_default();
    let finding =
        findings.get(&(span.cause, span.side)).map(|f| format!(", finding {f}")).unwrap_or_default();
    let (cause, time, connection) = (span.cause.id(), span.duration(), id.connection);
    let place = match id.part {
        Part::Setup => "opening".to_owned(),
        Part::Exchange(id) => format!("exchange {id}"),
        Part::Gap(_) => "between exchanges".to_owned(),
    };
    let _ =
        write!(comment, "tcpwhy: {cause} {time}{side}, connection {connection} {place} (span {id}{finding})");
}

/// The span that holds `time`; of two that meet there, the one that ends: the packet released it.
fn at<'a, 'b>(list: &'b [Placed<'a>], time: Nanos) -> Option<&'b Placed<'a>> {
    let i = list.partition_point(|p| p.1.end < time);
    list.get(i).filter(|p| p.1.start <= time)
}
