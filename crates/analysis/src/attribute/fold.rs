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
            let time = last.duration();
            if let (Facts::Bytes { bytes: a, bps }, Facts::Bytes { bytes: b, bps: other }) =
                (&mut last.facts, next.facts)
            {
                *a = a.saturating_add(b);
                *bps = bps.or(other).filter(|&bps| f64::from(*a) * 8e9 >= time.0 as f64 * bps * 0.98);
            }
            last.folded += if next.cause == Cause::SenderPause { next.folded } else { 0 };
        }
        same
    });
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
