//! `--annotate`: the same packets as pcapng, with comments that say what tcpwhy says of them.

use crate::output::Output;
use crate::record::{self, Source};
use std::collections::HashMap;
use std::fmt::Write as _;
use tcpwhy_analysis::{Analysis, Connection, Span};
use tcpwhy_base::{Cause, Class, Nanos};
use tcpwhy_capture::{Frame, Writer};
use tcpwhy_report::json;

/// A span and where it stands: `1.19.1` is the first of exchange 19 of connection 1.
struct Placed<'a> {
    span: &'a Span,
    id: String,
    place: String,
}

/// Writes the copy; the file takes its name only if all of it was written.
pub(crate) fn write(mut out: Output, source: &Source<'_>, analysis: &Analysis) -> anyhow::Result<()> {
    let written = frames(&mut out, source, analysis);
    out.finish(written)
}

fn frames(out: &mut Output, source: &Source<'_>, analysis: &Analysis) -> anyhow::Result<()> {
    let spans: Vec<Vec<Placed<'_>>> = analysis.connections.iter().map(placed).collect();
    let mut keys: HashMap<u64, Vec<(usize, usize)>> = HashMap::new();
    for (c, list) in spans.iter().enumerate() {
        for (i, placed) in list.iter().enumerate() {
            // The price of the path is no news.
            for key in placed.span.frames.keys().filter(|_| placed.span.cause.class() != Class::Inherent) {
                keys.entry(key).or_default().push((c, i));
            }
        }
    }
    let findings: HashMap<Cause, String> = analysis
        .findings
        .iter()
        .filter_map(|f| Some((f.cause, json::finding_id(analysis, f.cause)?)))
        .collect();
    let mut writer = Writer::pcapng(out)?;
    record::again(source, analysis, |met| {
        let mut comment = String::new();
        if let Some((c, packet)) = met.packet {
            let list = spans.get(c).map_or(&[][..], Vec::as_slice);
            if let Some(placed) = at(list, packet.time) {
                line(&mut comment, placed, &findings);
            }
            if met.copy {
                comment.push_str("\na copy of a packet just before: left out of the analysis");
            }
            for &(_, i) in keys.get(&met.number).into_iter().flatten().filter(|k| k.0 == c) {
                let placed = &list[i];
                let _ = write!(
                    comment,
                    "\nevidence of {} ({}): {}",
                    placed.span.cause.id(),
                    placed.id,
                    placed.span.facts.sentence()
                );
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
fn line(comment: &mut String, placed: &Placed<'_>, findings: &HashMap<Cause, String>) {
    let span = placed.span;
    let side = span.side.map(|s| format!(", side {}", s.name())).unwrap_or_default();
    let finding = findings.get(&span.cause).map(|f| format!(", finding {f}")).unwrap_or_default();
    let _ = write!(
        comment,
        "tcpwhy: {} {}{side}, {} (span {}{finding})",
        span.cause.id(),
        span.duration(),
        placed.place,
        placed.id
    );
}

/// The span that holds `time`; of two that meet there, the one that ends: the packet released it.
fn at<'a, 'b>(list: &'b [Placed<'a>], time: Nanos) -> Option<&'b Placed<'a>> {
    let i = list.partition_point(|p| p.span.end < time);
    list.get(i).filter(|p| p.span.start <= time)
}

/// All spans of a connection in the order of their time, with the ids that they have in JSON.
fn placed(c: &Connection) -> Vec<Placed<'_>> {
    let mut out: Vec<Placed<'_>> = Vec::new();
    let parts = c
        .setup
        .iter()
        .map(|s| (&s.spans, "s".to_owned(), "opening".to_owned()))
        .chain(c.exchanges.iter().map(|x| (&x.spans, x.id.to_string(), format!("exchange {}", x.id))))
        .chain(
            c.gaps
                .iter()
                .enumerate()
                .map(|(i, g)| (&g.spans, format!("g{}", i + 1), "between exchanges".to_owned())),
        );
    for (spans, part, place) in parts {
        for (i, span) in spans.iter().enumerate() {
            out.push(Placed {
                span,
                id: format!("{}.{part}.{}", c.id, i + 1),
                place: format!("connection {} {place}", c.id),
            });
        }
    }
    out.sort_by_key(|p| (p.span.start, p.span.end));
    out
}
