//! A run of the model as a capture file: headers as they pass one end, and in comments what had held each packet.

use crate::headers::{self, Names};
use std::io::{self, Write};
use tcpwhy_base::Nanos;
use tcpwhy_library::model::{Answer, EPOCH, Question, Span, Story, stories, tap};
use tcpwhy_library::{packets::Frame, packets::Writer};

/// The stretches of time of one connection whose end no packet has shown yet.
struct Waiting {
    spans: std::vec::IntoIter<Span>,
    next: Option<Span>,
}

impl Waiting {
    fn new(story: &Story) -> Waiting {
        let mut spans = story.setup.clone();
        spans.extend(story.exchanges.iter().flat_map(|x| &x.spans));
        let mut spans = spans.into_iter();
        Waiting { next: spans.next(), spans }
    }

    /// What was over when a packet passed, a line each. What ends between two packets with data (a trip, work) is told
    /// by the second of them.
    fn over(&mut self, at: Nanos, data: bool) -> Option<String> {
        let mut lines: Vec<String> = Vec::new();
        while let Some(s) = self.next.filter(|s| s.end <= at && (data || s.end == at)) {
            let side = s.side.map(|side| format!(" ({})", side.name())).unwrap_or_default();
            let (from, to) = ((EPOCH + s.start).0, (EPOCH + s.end).0);
            lines.push(format!("{}{side}: {}, {from}..{to}", s.cause.info().id, s.end - s.start));
            self.next = self.spans.next();
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Writes what passes `end` (0 the client, 1 the server) as pcapng; how many packets.
pub(crate) fn write(out: impl Write, question: &Question, answer: &Answer, end: u8) -> io::Result<u64> {
    let stories = stories(&question.scenario, &answer.outcome, end);
    let mut waiting: Vec<Waiting> = stories.iter().map(Waiting::new).collect();
    let (mut names, mut bytes, mut packets) = (Names::default(), Vec::new(), 0);
    let mut writer = Writer::pcapng(out)?;
    for t in tap(&answer.outcome, end) {
        let s = t.segment;
        let len = headers::write(&s, &mut names, &mut bytes);
        let mut frame = Frame::new(s.time, headers::link(&s), &bytes);
        frame.len = len.max(frame.len);
        let over = waiting.get_mut(t.conn as usize).and_then(|w| w.over(s.time - EPOCH, s.len > 0));
        writer.write(&frame, over.as_deref())?;
        packets += 1;
    }
    writer.finish()?;
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tcpwhy_analysis::{Analyzer, Config, Detail, Part};
    use tcpwhy_base::{Cause, Step, Turn, Workload};
    use tcpwhy_capture::{Dissector, Reader, Verdict};
    use tcpwhy_library::model::Scenario;

    /// Time by cause, as `explain` tells it from the bytes of the file.
    fn explained(file: &[u8]) -> BTreeMap<Cause, i64> {
        let mut reader = Reader::new(Box::new(std::io::Cursor::new(file.to_vec()))).expect("a capture");
        let (mut dissector, mut segment) = (Dissector::new(), tcpwhy_base::Segment::EMPTY);
        let mut analyzer = Analyzer::new(Config { detail: Detail::All });
        while let Some(frame) = reader.next().expect("whole") {
            if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp {
                analyzer.push(&segment);
            }
        }
        let mut sums = BTreeMap::new();
        for c in &analyzer.finish().connections {
            for (_, s) in c.spans().filter(|(id, _)| !matches!(id.part, Part::Gap(_))) {
                *sums.entry(s.cause).or_default() += (s.end - s.start).0;
            }
        }
        sums
    }

    /// Time by cause, as the comments of the file say.
    fn commented(file: &[u8]) -> BTreeMap<Cause, i64> {
        let mut sums = BTreeMap::new();
        let text = String::from_utf8_lossy(file);
        for cause in tcpwhy_base::CAUSES.iter() {
            let whole = |at: &usize| !text[..*at].ends_with(|c: char| c == '_' || c.is_ascii_alphanumeric());
            for at in text.match_indices(cause.id).map(|m| m.0).filter(whole) {
                let line = text[at..].split(['\n', '\0']).next().unwrap_or_default();
                let times = line.rsplit_once(", ").and_then(|(_, t)| t.split_once(".."));
                let digits = |t: &str| t.chars().take_while(char::is_ascii_digit).collect::<String>();
                let (Some((from, to)), true) = (times, line[cause.id.len()..].starts_with([':', ' '])) else {
                    continue;
                };
                let (from, to): (i64, i64) = (from.parse().unwrap(), digits(to).parse().unwrap());
                *sums.entry(cause.cause).or_default() += to - from;
            }
        }
        sums
    }

    /// Small writes over 20 ms: Nagle's algorithm and delayed ACKs at the client, and 30 ms of work.
    #[test]
    fn the_causes_in_the_comments_are_what_explain_finds() {
        let mut s = Scenario::with_path(Nanos::millis(20), Some(100_000_000), Some(600_000), 1500);
        s.hosts[1].nodelay = true;
        let turn = Turn {
            before: Nanos::millis(100),
            request: vec![Step::Write(200), Step::Write(900)],
            think: Nanos::millis(30),
            response: vec![Step::Write(60_000)],
        };
        s.workload = Workload::serial(turn, 6);
        let question = Question { scenario: s, skip: 0, max_events: tcpwhy_library::model::MAX_EVENTS };
        let answer = question.ask().expect("possible");
        for end in [0, 1] {
            let mut file = Vec::new();
            let packets = write(&mut file, &question, &answer, end).expect("written");
            assert!(packets > 250, "{packets}");
            let (labels, found) = (commented(&file), explained(&file));
            let total: i64 = labels.values().sum();
            assert_eq!(total, found.values().sum::<i64>(), "the comments tile setup and exchanges");
            for cause in [Cause::NagleDelayedAck, Cause::ServerThink, Cause::SlowStart, Cause::Handshake] {
                let (label, said) = (labels[&cause], found.get(&cause).copied().unwrap_or(0));
                assert!((label - said).abs() * 50 < total, "{cause:?} at {end}: {label} {said}");
            }
        }
    }
}
