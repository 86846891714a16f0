//! Writes spans one after the other from a step.

use crate::attribute::context::{Carry, Context, HALF_SEGMENT};
use crate::attribute::doubts::against;
use crate::confidence::{Rule, Sure, Tap};
use crate::facts::Facts;
use crate::release::{Wait, burst_within};
use crate::result::{Frames, Span};
use crate::step::Step;
use tcpwhy_base::{Cause, End, Nanos, Side, Source};

/// What hosts need to wake up, for each turn.
pub(crate) const HOSTS: Nanos = Nanos::micros(100);

/// Where the next span of a step begins, and what they share.
pub(super) struct Emit<'a> {
    context: &'a Context,
    step: &'a Step,
    tap: Tap,
    at: Nanos,
    source: Source,
    carry: &'a mut Carry,
    /// Those of the step, once a span needed them.
    frames: Option<Frames>,
    spans: &'a mut Vec<Span>,
}

impl<'a> Emit<'a> {
    /// For the spans of `step`, whose payload counts from now on.
    pub(super) fn new(
        context: &'a Context,
        step: &'a Step,
        carry: &'a mut Carry,
        spans: &'a mut Vec<Span>,
    ) -> Emit<'a> {
        carry.pass(step.sender, step.bytes);
        carry.answered |= step.sender == End::Server && !step.again;
        carry.trips += i64::from(carry.answered && carry.spoke == End::Server && step.sender == End::Client);
        carry.spoke = step.sender;
        let tap = if step.across { Tap::Near } else { context.tap[step.sender] };
        Emit { context, step, tap, at: step.start, source: Source::Inferred, carry, frames: None, spans }
    }

    /// Where the next span begins.
    pub(super) fn at(&self) -> Nanos {
        self.at
    }

    /// What follows is as whoever decided about the step says.
    pub(super) fn as_decided(&mut self) {
        self.source = self.step.source;
    }

    /// What follows is as a kernel says.
    pub(super) fn as_told(&mut self) {
        self.source = Source::Kernel;
    }

    /// What follows is inferred.
    pub(super) fn as_inferred(&mut self) {
        self.source = Source::Inferred;
    }

    /// How much of `time` the payload of `d` can have kept the link busy in, at the rate where that is known (rule 45).
    #[inline]
    pub(super) fn reserve(&mut self, context: &Context, d: End, time: Nanos) -> Nanos {
        let Some(per_byte) = context.per_byte[d] else {
            return if self.carry.unpaid[d] > HALF_SEGMENT { time } else { Nanos::ZERO };
        };
        let unpaid = &mut self.carry.unpaid[d];
        let granted = time.min(Nanos((*unpaid as f64 * per_byte) as i64)).floor0();
        *unpaid -= (granted.0 as f64 / per_byte).ceil() as i64;
        granted
    }

    /// The link was busy with payload of `d` for a time that was reserved; `bytes` passed. Near their sender it carried
    /// some of them later.
    #[inline]
    pub(super) fn carried(&mut self, context: &Context, d: End, time: Nanos, bytes: u32) {
        if time <= Nanos::ZERO {
            return;
        }
        let per_byte = context.per_byte[d];
        let bytes = match per_byte {
            Some(p) => {
                let took = (time.0 as f64 / p).ceil() as u32;
                if context.near(d) { took } else { took.max(bytes) }
            }
            None if bytes == 0 => (self.carry.unpaid[d] - HALF_SEGMENT).max(0) as u32,
            _ => bytes,
        };
        if per_byte.is_none() {
            self.carry.unpaid[d] = HALF_SEGMENT;
        }
        let stood = match self.step.wait {
            Wait::Standing { under_way } => under_way,
            _ => Nanos::ZERO,
        };
        let facts = Facts::of_bytes(bytes, per_byte.map(|p| 8e9 / p), stood);
        self.network(Rule::OwnBytes, Cause::Bandwidth, time, facts);
    }

    /// As much of `time` as the payload of `d` can have kept the link busy in. Gives how much that was.
    #[inline]
    pub(super) fn bandwidth(&mut self, context: &Context, d: End, time: Nanos, bytes: u32) -> Nanos {
        let granted = self.reserve(context, d, time);
        self.carried(context, d, granted, bytes);
        granted
    }

    /// Segments followed each other at once: at the pace of the link as far as that explains it, else of the hosts.
    #[inline]
    pub(super) fn burst(&mut self, context: &Context, d: End, time: Nanos) {
        let bytes = self.step.bytes;
        let granted = self.reserve(context, d, time);
        let apart = burst_within(context.rtt, context.may_tick);
        // The write before had ended, so its segment was not followed by this one at a link's pace (rule 67).
        let fine = context.may_tick == Nanos::ZERO;
        let written = fine && !self.step.across && self.step.pushed && bytes > 0 && bytes <= context.mss[d];
        if written && (granted < time || context.per_byte[d].is_none()) {
            let facts = Facts::NextWrite { wait: time };
            // On a path that is shorter than what hosts need their time would pass for distance.
            let hosts = if context.rtt < HOSTS { Nanos::ZERO } else { self.trip(context, time) };
            let trip = Facts::RoundTrip { rtt: context.rtt };
            self.network(Rule::NextWrite, Cause::PathDelay, hosts, trip);
            self.span(Rule::NextWrite, Cause::SenderPause, Some(Side::from(d)), time - hosts, facts);
        } else if context.per_byte[d].is_none() && time > context.rtt + apart {
            // No rate accounts for it: a queue, or a writer that went on behind a tail that was held (rule 72).
            let facts = Facts::Wait { wait: time, outstanding: bytes, empty: Nanos::ZERO };
            self.span(Rule::SpacedWithoutRate, Cause::Unexplained, None, time, facts);
        } else if granted == time {
            self.carried(context, d, time, bytes);
        } else if context.per_byte[d].is_some()
            && time > apart.times(i64::from(bytes / context.mss[d]).max(1))
        {
            // It was on its way, but the link carries it in less: something else was in the queue, or its
            // rate changes (rule 72).
            self.carried(context, d, granted, bytes);
            let facts = Facts::Wait { wait: time, outstanding: bytes, empty: Nanos::ZERO };
            self.span(Rule::AlmostSaturated, Cause::Unexplained, None, time - granted, facts);
        } else if bytes > 0 {
            self.network(Rule::OwnBytes, Cause::Bandwidth, time, Facts::Bytes { bytes, bps: None });
        } else {
            self.network(Rule::RoundTrip, Cause::PathDelay, time, Facts::RoundTrip { rtt: context.rtt });
        }
    }

    /// It had left before: at its pace the link carries less than it did, for others share it or it is slower
    /// now; else the path held it up.
    pub(super) fn on_its_way(&mut self, context: &Context, (under_way, even): (Nanos, bool), time: Nanos) {
        if even {
            let facts = Facts::Bytes { bytes: self.step.bytes, bps: None };
            self.network(Rule::PaceOfLink, Cause::Bandwidth, time, facts);
        } else {
            // Between two taps the time of its own bytes in that queue is theirs, where the link's rate is known.
            let sender = self.step.sender;
            let own = match context.per_byte[sender] {
                Some(_) if self.step.across => self.bandwidth(context, sender, time, self.step.bytes),
                _ => Nanos::ZERO,
            };
            let facts = Facts::Queue { rtt: context.rtt + under_way, base: context.rtt };
            self.network(Rule::Queue, Cause::Queueing, time - own, facts);
        }
    }

    /// How much of `time` can have been the way: a round trip for each turn (rule 45), with what hosts need to wake up.
    pub(super) fn trip(&mut self, context: &Context, time: Nanos) -> Nanos {
        let each = context.rtt + context.rtt.part(64) + HOSTS;
        let granted = time.min(each.times(self.carry.trips) - self.carry.travelled).floor0();
        self.carry.travelled += granted;
        granted
    }

    /// What was lost would have taken this trip anyway (rule 14).
    pub(super) fn owe_trip(&mut self, trip: Nanos) {
        self.carry.owed = trip;
    }

    /// How much of `time` is what is still owed of that trip.
    pub(super) fn trip_owed(&mut self, context: &Context, time: Nanos) -> Nanos {
        let owed = self.carry.owed.min(time);
        self.carry.owed = self.carry.owed - owed;
        self.trip(context, owed)
    }

    /// Something about the path.
    #[inline(always)]
    pub(super) fn network(&mut self, rule: Rule, cause: Cause, time: Nanos, facts: Facts) {
        self.span(rule, cause, Some(Side::Network), time, facts);
    }

    /// Most rules find that there is no time left for them: what they would say of it is not made then.
    #[inline(always)]
    pub(super) fn span(&mut self, rule: Rule, cause: Cause, side: Option<Side>, time: Nanos, facts: Facts) {
        if time > Nanos::ZERO {
            self.span_of_time(rule, cause, side, time, &facts);
        }
    }

    #[inline(never)]
    fn span_of_time(&mut self, rule: Rule, cause: Cause, side: Option<Side>, time: Nanos, facts: &Facts) {
        let mut sure = rule.at(self.tap);
        let (mut cause, mut side) = (cause, side);
        if self.source != Source::Kernel
            && let Some(evidence) = against(self.context, self.step, rule)
        {
            (sure, cause, side) = sure.against(cause, side, evidence);
        }
        self.with(sure, cause, side, time, facts);
    }

    /// Packets never passed the tap: a loss, or else this cause.
    pub(super) fn missing(&mut self, rule: Rule, cause: Cause, otherwise: Cause, time: Nanos, facts: Facts) {
        let mut sure = rule.at(self.tap);
        if let [_, Some(other)] = &mut sure.alternatives {
            other.0 = otherwise;
        }
        if time > Nanos::ZERO {
            self.with(sure, cause, Some(Side::Network), time, &facts);
        }
    }

    #[inline(always)]
    fn with(&mut self, mut sure: Sure, cause: Cause, side: Option<Side>, time: Nanos, facts: &Facts) {
        if self.source == Source::Kernel {
            sure = Rule::Witnessed.at(self.tap);
        } else if self.context.capture_drops {
            sure = sure.beside_drops(cause);
        } else if !self.context.measured {
            sure = sure.without_trip(cause);
        }
        let (step, file) = (self.step, self.context.file);
        let frames = *self.frames.get_or_insert_with(|| {
            let keys = [step.first_frame, step.ack_frame.map_or(0, |f| f.get()), step.last_frame];
            Frames::new(file, step.first_frame, step.last_frame, &keys)
        });
        self.spans.push(Span {
            cause,
            detail: None,
            side,
            start: self.at,
            end: self.at + time,
            frames,
            confidence: sure.confidence,
            alternatives: sure.alternatives,
            facts: *facts,
            folded: 1,
            longest_folded: Nanos::ZERO,
            source: self.source,
        });
        self.at += time;
    }
}
