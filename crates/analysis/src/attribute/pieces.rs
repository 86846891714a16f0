//! A gap, or an exchange that nothing held up, as its few spans would say it: most of them are only summed,
//! and spans are made of those alone that are kept.

use crate::confidence::Sure;
use crate::facts::Facts;
use crate::findings::Plain;
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
    /// What lies between two trips, each with how sure it is and its figures.
    pub(crate) fn around(
        start: Nanos,
        frames: Frames,
        trips: &(Plain, Sure, Facts),
        between: &(Plain, Sure, Facts),
    ) -> Pieces {
        let piece = |(plain, sure, facts): &(Plain, Sure, Facts), n: usize| Piece {
            cause: plain.cause,
            side: plain.side,
            time: plain.pieces[n].1,
            sure: *sure,
            facts: *facts,
        };
        Pieces { start, frames, list: [piece(trips, 0), piece(between, 0), piece(trips, 1)] }
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
                longest_folded: Nanos::ZERO,
                source: Source::Inferred,
            });
            at = end;
        }
    }
}
