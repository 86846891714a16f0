//! What later packets of a connection refute is called something else.

use super::{Rollup, Rollups};
use crate::confidence::{Rule, Tap};
use crate::facts::Facts;
use crate::result::Span;
use tcpwhy_base::{Cause, Nanos, Side, Source};

/// What seemed to hold something, and did not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Acquitted {
    /// Nagle's algorithm of this side.
    Nagle(Side),
    /// A cork of either side.
    Cork,
}

impl Acquitted {
    /// The cause says that it held something of any side.
    fn is_of(self, cause: Cause) -> bool {
        match self {
            Acquitted::Nagle(_) => matches!(cause, Cause::Nagle | Cause::NagleDelayedAck),
            Acquitted::Cork => cause == Cause::Cork,
        }
    }

    fn is_of_side(self, side: Option<Side>) -> bool {
        match self {
            Acquitted::Nagle(own) => side == Some(own),
            Acquitted::Cork => true,
        }
    }
}

/// What a hold was if there was none.
fn as_wait(facts: Facts, wait: Nanos) -> Facts {
    match facts {
        Facts::Nagle { first, .. } => Facts::Wait { wait, outstanding: first, empty: Nanos::ZERO },
        Facts::Corked { .. } => Facts::Wait { wait, outstanding: 0, empty: wait },
        other => other,
    }
}

impl Rollups {
    /// `what` held nothing: its time is the writer's. Gives what was called so. Where Nagle's algorithm
    /// seemed to hold something of the other side as well, nothing changes: sums by cause do not tell them
    /// apart.
    pub(crate) fn acquit(&mut self, what: Acquitted) -> Vec<(Cause, Nanos)> {
        let held = |r: &Rollup| what.is_of(r.cause);
        if self.0.iter().any(|r| held(r) && !what.is_of_side(r.side)) {
            return Vec::new();
        }
        let refuted: Vec<Rollup> = self.0.extract_if(.., |r| held(r)).collect();
        let moved = refuted.iter().map(|r| (r.cause, r.lost)).collect();
        for mut r in refuted {
            r.cause = Cause::SenderPause;
            r.doubt.set(Rule::RefutedHold.at(Tap::Near).confidence);
            r.example.facts = as_wait(r.example.facts, r.example.time);
            r.evidence.clear();
            self.merge(&Rollups(vec![r]));
        }
        moved
    }
}

impl Span {
    /// The same for one span.
    pub(crate) fn acquit(&mut self, what: Acquitted) {
        if what.is_of(self.cause) && what.is_of_side(self.side) && self.source == Source::Inferred {
            let sure = Rule::RefutedHold.at(Tap::Near);
            self.cause = Cause::SenderPause;
            self.facts = as_wait(self.facts, self.duration());
            (self.confidence, self.alternatives) = (sure.confidence, sure.alternatives);
        }
    }
}
