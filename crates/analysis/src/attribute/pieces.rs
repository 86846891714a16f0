//! A gap, or an exchange that nothing held up, as its few spans would say it: most of them are only summed, and spans are made of those
//! alone that are kept.

use crate::confidence::Sure;
use crate::facts::Facts;
use crate::findings::Part;
use crate::result::{Frames, Span};
use tcpwhy_base::{Cause, Nanos, Side, Source};

/// What one of the spans would be; of no time: there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) cause: Cause,
    pub(crate) side: Option<Side>,
    pub(crate) time: Nanos,
    pub(crate) sure: Sure,
    pub(crate) facts: Facts,
}

/// All of them, one behind the other, which the same frames prove.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    pub(crate) start: Nanos,
    pub(crate) frames: Frames,
    /// A trip is on its way before and after what is between.
    pub(crate) list: [Piece; 3],
}

impl Pieces {
    /// What is summed of each.
    #[inline(always)]
    pub(crate) fn each(&self, mut add: impl FnMut(&Part<'_>)) {
        let mut at = self.start;
        for piece in &self.list {
            if piece.time > Nanos::ZERO {
                let end = at + piece.time;
                add(&Part {
                    cause: piece.cause,
                    side: piece.side,
                    start: at,
                    end,
                    confidence: piece.sure.confidence,
                    folded: 1,
                    frames: &self.frames,
                    facts: &piece.facts,
                });
                at = end;
            }
        }
    }

    /// The spans.
    pub(crate) fn made(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        self.spans(&mut spans);
        spans
    }

    /// The same, into `spans`.
    pub(crate) fn spans(&self, spans: &mut Vec<Span>) {
        let mut at = self.start;
        for piece in self.list.iter().filter(|p| p.time > Nanos::ZERO) {
            let end = at + piece.time;
            spans.push(Span {
                cause: piece.cause,
                detail: None,
                side: piece.side,
                start: at,
                end,
                frames: self.frames,
                confidence: piece.sure.confidence,
                alternatives: piece.sure.alternatives,
                facts: piece.facts,
                folded: 1,
                source: Source::Inferred,
            });
            at = end;
        }
    }
}
