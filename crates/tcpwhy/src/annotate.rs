//! `--annotate`: the same packets as pcapng, with comments that say what tcpwhy says of them.

use crate::output::Output;
use crate::source::Source;
use std::collections::HashMap;
use std::fmt::Write as _;
use tcpwhy_base::{Cause, Class, Nanos, Side};
use tcpwhy_library::{Connection, Span, captures::Analysis, parts::Part, parts::SpanId};
use tcpwhy_library::{packets::Frame, packets::Writer};
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
                let name = analysis.connections.get(c).and_then(|c| name_of(c, placed.0));
                line(&mut comment, placed, name, &findings);
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

/// `tcpwhy: cause=nagle_delayed_ack ms=48.182 side=client connection=1 exchange=19 part=exchange span=1.19.1
/// finding=f1 name=GET /`: pairs of key and value, which the plugin for Wireshark reads. The name stands
/// last, since it may hold spaces.
fn line(
    comment: &mut String,
    (id, span): Placed<'_>,
    name: Option<&str>,
    findings: &HashMap<(Cause, Option<Side>), String>,
) {
    let _ = write!(comment, "tcpwhy: cause={} ms={}", span.cause.id(), ms(span.duration()));
    if let Some(side) = span.side {
        let _ = write!(comment, " side={}", side.name());
    }
    let _ = write!(comment, " connection={}", id.connection);
    let part = match id.part {
        Part::Setup => "setup",
        Part::Exchange(id) => {
            let _ = write!(comment, " exchange={id}");
            "exchange"
        }
        Part::Gap(_) => "gap",
    };
    let _ = write!(comment, " part={part} span={id}");
    if let Some(finding) = findings.get(&(span.cause, span.side)) {
        let _ = write!(comment, " finding={finding}");
    }
    if let Some(name) = name {
        let _ = write!(comment, " name={name}");
    }
}

/// What the exchange of a span is called.
fn name_of(c: &Connection, id: SpanId) -> Option<&str> {
    let Part::Exchange(id) = id.part else { return None };
    let at = c.exchanges.binary_search_by_key(&id, |x| x.id).ok()?;
    c.exchanges[at].name()
}

/// The span that holds `time`; of two that meet there, the one that ends: the packet released it.
fn at<'a, 'b>(list: &'b [Placed<'a>], time: Nanos) -> Option<&'b Placed<'a>> {
    let i = list.partition_point(|p| p.1.end < time);
    list.get(i).filter(|p| p.1.start <= time)
}

/// Milliseconds, to the nanosecond: `42.799`. Behind a clock that was set there are more digits than a
/// floating-point number has.
fn ms(time: Nanos) -> String {
    let (whole, rest) = (time.0 / 1_000_000, time.0 % 1_000_000);
    let text = format!("{whole}.{rest:06}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_digit_is_lost() {
        let said = [0, 1, 42_799_000, 40_000_000, 1_472_003_999_360_434_207].map(|ns| ms(Nanos(ns)));
        assert_eq!(said, ["0", "0.000001", "42.799", "40", "1472003999360.434207"]);
    }
}
