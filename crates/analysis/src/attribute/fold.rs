//! Fewer spans: neighbours that are parts of one flow, and repeated patterns of a long exchange.

use crate::facts::Facts;
use crate::result::Span;
use tcpwhy_base::Cause;

/// Joins spans of one cause and side that follow each other, where each is only a part of one flow.
pub(crate) fn join_neighbours(spans: &mut Vec<Span>) {
    spans.dedup_by(|next, last| {
        let flows = matches!(
            next.cause,
            Cause::Bandwidth
                | Cause::PathDelay
                | Cause::TlsHandshake
                | Cause::FastRecovery
                | Cause::SenderPause
        );
        let same = next.cause == last.cause
            && next.side == last.side
            && next.start == last.end
            && next.source == last.source
            && flows;
        if same {
            // Of several waits the longest is told.
            if let (Facts::Wait { wait: a, .. }, Facts::Wait { wait: b, .. }) = (last.facts, next.facts)
                && b > a
            {
                last.facts = next.facts;
            }
            last.end = next.end;
            last.frames = last.frames.join(next.frames);
            last.confidence = last.confidence.min(next.confidence);
            add_bytes(last, next);
            last.folded += if next.cause == Cause::SenderPause { next.folded } else { 0 };
        }
        same
    });
}

/// What passed in `next` passed in `kept` as well, which has its time already; at its rate, where that is not more than passed.
fn add_bytes(kept: &mut Span, next: &Span) {
    let time = kept.duration();
    if let (Facts::Bytes { bytes: a, bps }, Facts::Bytes { bytes: b, bps: other }) =
        (&mut kept.facts, next.facts)
    {
        *a = a.saturating_add(b);
        *bps = bps.or(other).filter(|&bps| f64::from(*a) * 8e9 >= time.0 as f64 * bps * 0.98);
    }
}

/// Folds a long list: within windows of spans, those of one cause and side become one, in the order of their first.
/// The sum of every cause stays exact; only the order within a window is lost.
pub(crate) fn fold(spans: &mut Vec<Span>, limit: usize) {
    let mut window = 8;
    while spans.len() > limit {
        let mut out: Vec<Span> = Vec::with_capacity(spans.len() / 2 + 1);
        for chunk in spans.chunks(window) {
            let mut at = chunk[0].start;
            let from = out.len();
            for span in chunk {
                match out[from..].iter_mut().find(|s| s.cause == span.cause && s.side == span.side) {
                    Some(kept) => {
                        kept.end += span.duration();
                        add_bytes(kept, span);
                        kept.frames = kept.frames.join(span.frames);
                        kept.folded += span.folded;
                        kept.confidence = kept.confidence.min(span.confidence);
                        kept.source = kept.source.min(span.source);
                    }
                    None => out.push(span.clone()),
                }
            }
            for span in &mut out[from..] {
                let duration = span.duration();
                span.start = at;
                at += duration;
                span.end = at;
                if span.folded > 1 {
                    span.detail = Some("repeated");
                }
            }
        }
        *spans = out;
        window *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Frames;
    use tcpwhy_base::{Nanos, Source};

    /// What is folded says the bytes of all of it, and the rate while that is not more than passed.
    #[test]
    fn folded_bytes_are_those_of_all() {
        let passed = |at: i64, bytes: u32| Span {
            cause: Cause::Bandwidth,
            detail: None,
            side: None,
            start: Nanos::millis(at),
            end: Nanos::millis(at + 1),
            frames: Frames::new(0, 1, 2, &[1]),
            confidence: 0.9,
            alternatives: [None, None],
            facts: Facts::Bytes { bytes, bps: Some(8e6) },
            folded: 1,
            source: Source::Inferred,
        };
        let told = |each: u32| {
            let mut spans: Vec<Span> = (0..8).map(|k| passed(k, each)).collect();
            fold(&mut spans, 1);
            spans.remove(0).facts
        };
        assert_eq!(told(1_000), Facts::Bytes { bytes: 8_000, bps: Some(8e6) });
        assert_eq!(told(900), Facts::Bytes { bytes: 7_200, bps: None });
    }
}
