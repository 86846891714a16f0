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
            tell_longest(last, next);
            // Parts of one flow are one; pauses are as many as they are, and so is what was folded.
            if next.cause == Cause::SenderPause || last.folded > 1 || next.folded > 1 {
                count_both(last, next);
            }
            last.end = next.end;
            last.frames = last.frames.join(next.frames);
            last.confidence = last.confidence.min(next.confidence);
            add_bytes(last, next);
        }
        same
    });
}

/// Both are in `kept` from now on, whose end is still its own.
fn count_both(kept: &mut Span, next: &Span) {
    kept.longest_folded = kept.longest().max(next.longest());
    kept.folded += next.folded;
}

/// Of several waits the longest is told.
fn tell_longest(kept: &mut Span, next: &Span) {
    let wait = |facts| match facts {
        Facts::Wait { wait, .. } | Facts::Tail { wait, .. } => Some(wait),
        _ => None,
    };
    if let (Some(a), Some(b)) = (wait(kept.facts), wait(next.facts))
        && b > a
    {
        kept.facts = next.facts;
    }
}

/// What passed in `next` passed in `kept` as well, which has its time already. The link was busy all of that
/// time, so it gave no more than passed: less than the rate that is known of one of them, where it became
/// slower meanwhile.
#[inline]
fn add_bytes(kept: &mut Span, next: &Span) {
    let time = kept.duration();
    if let (Some((a, bps, stood)), Some((b, other, longer))) = (kept.facts.carried(), next.facts.carried()) {
        let bytes = a.saturating_add(b);
        let passed = f64::from(bytes) * 8e9 / time.0.max(1) as f64;
        let bps = bps.or(other).map(|bps| if passed < bps * 0.98 { passed } else { bps });
        kept.facts = Facts::of_bytes(bytes, bps, stood.max(longer));
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
                        count_both(kept, span);
                        kept.end += span.duration();
                        tell_longest(kept, span);
                        add_bytes(kept, span);
                        kept.frames = kept.frames.join(span.frames);
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
                    span.detail = Some(Span::REPEATED);
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

    /// What is folded says the bytes of all of it, and the rate, which is that of what passed where the link
    /// became slower.
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
            longest_folded: Nanos::ZERO,
            source: Source::Inferred,
        };
        let told = |each: u32| {
            let mut spans: Vec<Span> = (0..8).map(|k| passed(k, each)).collect();
            fold(&mut spans, 1);
            spans.remove(0).facts
        };
        assert_eq!(told(1_000), Facts::Bytes { bytes: 8_000, bps: Some(8e6) });
        assert_eq!(told(900), Facts::Bytes { bytes: 7_200, bps: Some(7.2e6) });
    }

    /// Pauses that are told as one, and what is folded, keep how long the longest lasted, and what is said of it.
    #[test]
    fn the_longest_of_those_folded_is_known() {
        let pause = |at: i64, lasts: i64| Span {
            cause: Cause::SenderPause,
            detail: None,
            side: None,
            start: Nanos::millis(at),
            end: Nanos::millis(at + lasts),
            frames: Frames::new(0, 1, 2, &[1]),
            confidence: 0.9,
            alternatives: [None, None],
            facts: Facts::Wait { wait: Nanos::millis(lasts), outstanding: 0, empty: Nanos::ZERO },
            folded: 1,
            longest_folded: Nanos::ZERO,
            source: Source::Inferred,
        };
        let apart = [pause(0, 3), pause(10, 40), pause(60, 7), pause(80, 1)];
        let beside = [pause(0, 3), pause(3, 40), pause(43, 7), pause(50, 1)];
        for (mut spans, act) in [
            (apart.to_vec(), (|spans| fold(spans, 1)) as fn(&mut Vec<Span>)),
            (beside.to_vec(), join_neighbours),
            (beside.to_vec(), |spans| fold(spans, 2)),
        ] {
            act(&mut spans);
            let [all] = &spans[..] else { panic!("they are one: {spans:?}") };
            let longest = Nanos::millis(40);
            assert_eq!((all.folded, all.duration(), all.longest()), (4, Nanos::millis(51), longest));
            assert!(matches!(all.facts, Facts::Wait { wait, .. } if wait == longest));
        }
    }

    /// What was folded is joined as well, and folded again: each is counted, and none is longer than the longest.
    #[test]
    fn what_was_folded_is_joined() {
        let passed = |at: i64, lasts: i64, folded: u32, longest: i64| Span {
            folded,
            longest_folded: Nanos::millis(longest),
            ..Span::new(
                Cause::Bandwidth,
                None,
                Nanos::millis(at),
                Nanos::millis(at + lasts),
                Frames::new(0, 1, 2, &[1]),
            )
        };
        let mut spans = vec![passed(0, 20, 2, 15), passed(20, 60, 3, 30), passed(80, 40, 1, 0)];
        join_neighbours(&mut spans);
        let [all] = &spans[..] else { panic!("they are one: {spans:?}") };
        assert_eq!((all.folded, all.duration(), all.longest()), (6, Nanos::millis(120), Nanos::millis(40)));
    }
}
