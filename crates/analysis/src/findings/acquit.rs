//! What later packets of a connection refute is called something else.

use super::{Rollup, Rollups};
use crate::confidence::{Rule, Tap};
use crate::facts::Facts;
use crate::result::Span;
use tcpwhy_base::{Cause, Nanos, Side, Source};

/// Causes that say that Nagle's algorithm held something.
const HOLDS: [Cause; 2] = [Cause::Nagle, Cause::NagleDelayedAck];

/// What a hold was if there was none.
fn as_wait(facts: Facts, wait: Nanos) -> Facts {
    match facts {
        Facts::Nagle { first, .. } => Facts::Wait { wait, outstanding: first, empty: Nanos::ZERO },
        other => other,
    }
}

impl Rollups {
    /// Nagle's algorithm of `side` held nothing: its time is the writer's. Gives what was called so. Where it seemed to hold something
    /// of the other side as well, nothing changes: sums by cause do not tell them apart.
    pub(crate) fn acquit(&mut self, side: Side) -> Vec<(Cause, Nanos)> {
        let held = |r: &Rollup| HOLDS.contains(&r.cause);
        if self.0.iter().any(|r| held(r) && r.side != Some(side)) {
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
    pub(crate) fn acquit(&mut self, side: Side) {
        if HOLDS.contains(&self.cause) && self.side == Some(side) && self.source == Source::Inferred {
            let sure = Rule::RefutedHold.at(Tap::Near);
            self.cause = Cause::SenderPause;
            self.facts = as_wait(self.facts, self.duration());
            (self.confidence, self.alternatives) = (sure.confidence, sure.alternatives);
        }
    }
}
