//! Writes spans one after the other from a step.

use crate::confidence::{Rule, Sure, Tap};
use crate::facts::Facts;
use crate::result::{Frames, Span};
use crate::step::Step;
use tcpwhy_base::{Cause, Nanos, Side, Source};

/// Where the next span of a step begins, and what they share.
pub(super) struct Emit<'a> {
    file: u16,
    step: &'a Step,
    tap: Tap,
    at: Nanos,
    source: Source,
    spans: &'a mut Vec<Span>,
}

impl<'a> Emit<'a> {
    pub(super) fn new(file: u16, step: &'a Step, tap: Tap, spans: &'a mut Vec<Span>) -> Emit<'a> {
        Emit { file, step, tap, at: step.start, source: Source::Inferred, spans }
    }

    /// Where the next span begins.
    pub(super) fn at(&self) -> Nanos {
        self.at
    }

    /// What follows is as whoever decided about the step says.
    pub(super) fn as_decided(&mut self) {
        self.source = self.step.source;
    }

    /// What follows is inferred.
    pub(super) fn as_inferred(&mut self) {
        self.source = Source::Inferred;
    }

    /// The link was busy with the connection's own bytes.
    #[inline]
    pub(super) fn bandwidth(&mut self, time: Nanos, bytes: u32, per_byte: Option<f64>) {
        if time <= Nanos::ZERO {
            return;
        }
        let facts = Facts::Bytes { bytes, bps: per_byte.map(|p| 8e9 / p) };
        self.network(Rule::OwnBytes, Cause::Bandwidth, time, facts);
    }

    /// Something about the path.
    pub(super) fn network(&mut self, rule: Rule, cause: Cause, time: Nanos, facts: Facts) {
        self.span(rule, cause, Some(Side::Network), time, facts);
    }

    pub(super) fn span(&mut self, rule: Rule, cause: Cause, side: Option<Side>, time: Nanos, facts: Facts) {
        if time > Nanos::ZERO {
            self.with(rule.at(self.tap), cause, side, time, facts);
        }
    }

    /// Packets never passed the tap: a loss, or else this cause.
    pub(super) fn missing(&mut self, rule: Rule, cause: Cause, otherwise: Cause, time: Nanos, facts: Facts) {
        let mut sure = rule.at(self.tap);
        if let [_, Some(other)] = &mut sure.alternatives {
            other.0 = otherwise;
        }
        if time > Nanos::ZERO {
            self.with(sure, cause, Some(Side::Network), time, facts);
        }
    }

    fn with(&mut self, sure: Sure, cause: Cause, side: Option<Side>, time: Nanos, facts: Facts) {
        let sure = if self.source == Source::Kernel { Rule::Witnessed.at(self.tap) } else { sure };
        let step = self.step;
        let keys = [step.first_frame, step.ack_frame.map_or(0, |f| f.get()), step.last_frame];
        self.spans.push(Span {
            cause,
            detail: None,
            side,
            start: self.at,
            end: self.at + time,
            frames: Frames::new(self.file, step.first_frame, step.last_frame, &keys),
            confidence: sure.confidence,
            alternatives: sure.alternatives,
            facts,
            folded: 1,
            source: self.source,
        });
        self.at += time;
    }
}
