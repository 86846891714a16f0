//! The time between exchanges.

use super::refills::soon;
use super::{Ledger, rollups_of};
use crate::attribute::Pieces;
use crate::confidence::{Rule, Tap};
use crate::facts::Facts;
use crate::findings::{Plain, Where};
use crate::output::Output;
use crate::result::{Closed, Frames, Gap, Quality, Span};
use crate::track::{Moment, Tracker};
use tcpwhy_base::{Cause, Class, End, Nanos, Side, Source};

/// Gaps.
impl Ledger {
    /// Closes the gap from the last part to `to`, where `s` speaks.
    pub(crate) fn gap_until(&mut self, s: End, to: Moment, track: &Tracker, parts: &mut Output) {
        let (t, frame) = to;
        let (from, from_frame) = self.upto;
        if t <= from {
            return;
        }
        let length = t - from;
        // From a tap away from the speaker the trip to it and back is not its thinking.
        let unseen = track.counts(s.peer()).packets == 0;
        let after_setup = self.exchanges == 0 && self.setup.is_some() && s == End::Client;
        let path = if after_setup { Nanos::ZERO } else { track.reaction_or_zero(s).min(length) };
        let path_seen = if track.near(s) { Nanos::ZERO } else { path };
        let facts = Facts::Think { seen: length, path: path_seen };
        let drops = track.quality().has(Quality::CAPTURE_DROPS);
        let half = path.part(2);
        let think = length - path;
        let sure = |cause| {
            let sure = Rule::GapThink.at(Tap::Near);
            if drops { sure.beside_drops(cause) } else { sure }
        };
        let plain = |cause, side, pieces| Plain { cause, side, pieces, confidence: sure(cause).confidence };
        let (cause, side, facts) = match s {
            // What the other side had sent by then is not in the capture.
            _ if unseen => (Cause::Unexplained, None, Facts::OneSided),
            End::Client => (Cause::ClientThink, Some(Side::Client), facts),
            End::Server => (Cause::ServerThink, Some(Side::Server), facts),
        };
        // A trip is on its way before and after what is between.
        let trips =
            plain(Cause::PathDelay, Some(Side::Network), [(from, half), (from + half + think, path - half)]);
        let wait = plain(cause, side, [(from + half, think), (Nanos::ZERO, Nanos::ZERO)]);
        let (file, rtt) = (self.file, track.rtt_or_zero());
        let frames = move || Frames::new(file, from_frame.min(frame), frame, &[from_frame, frame]);
        let trip_facts = Facts::RoundTrip { rtt };
        // Beside the server, the trips of a refilled window lie between what looks like requests.
        let refill =
            s == End::Client && self.refills.seen && path_seen > Nanos::ZERO && length <= soon(track);
        if !refill && parts.sees_all() && !parts.wants_gap(self.connection, from, t) {
            self.upto.0 = t;
            let sums = &mut self.sums;
            sums.gaps.count += 1;
            sums.gaps.duration += length;
            sums.gap_budget.add(Cause::PathDelay, path);
            sums.gap_budget.add(cause, think);
            let place = Where { connection: self.connection, exchange: 0, gap: true, tail: false };
            let first = from_frame.min(frame);
            parts.inherent_mut().add_plain(&trips, place, first, || (frames(), trip_facts));
            sums.rollups.add_plain(&wait, place, first, || (frames(), facts));
            return;
        }
        let mut spans = parts.spare_spans();
        let trips = (trips, sure(trips.cause), trip_facts);
        Pieces::around(from, frames(), &trips, &(wait, sure(cause), facts)).spans(&mut spans);
        if refill {
            self.refills.rename(&mut spans, None, track);
        }
        self.emit_gap(t, spans, false, parts);
    }

    /// The time from the last part to the last packet.
    pub(crate) fn closing_gap(&mut self, track: &Tracker, parts: &mut Output) {
        let (from, from_frame) = self.upto;
        let (now, last_frame) = (track.now(), track.last_frame());
        if now <= from {
            return;
        }
        // Keep-alives that are answered are no news (rule 101); the peer that answers none may be gone.
        let silence = track.silence().filter(|_| !track.one_sided());
        let until =
            silence.map_or((now, last_frame), |(silence, _)| (silence.since.max(from), silence.frame));
        let mut spans = parts.spare_spans();
        if until.0 > from {
            let (cause, side, facts) = if track.one_sided() {
                (Cause::Unexplained, None, Facts::OneSided)
            } else {
                let facts = Facts::Think { seen: until.0 - from, path: Nanos::ZERO };
                (Cause::ClientThink, Some(Side::Client), facts)
            };
            let closes = silence.is_none() && track.closed() != Closed::Open;
            let mut span = self.closing_span(track, (from, from_frame), until, (cause, side, facts));
            span.detail = closes.then_some(Span::CLOSE);
            spans.push(span);
        }
        if let Some((silence, peer)) = silence.filter(|_| until.0 < now) {
            let facts = Facts::Silent { wait: now - until.0, tries: silence.tries };
            let what = (Cause::KeepaliveOrDeadPeer, Some(Side::from(peer)), facts);
            spans.push(self.closing_span(track, until, (now, last_frame), what));
        }
        self.emit_gap(now, spans, true, parts);
    }

    fn closing_span(
        &self,
        track: &Tracker,
        (start, first): (Nanos, u64),
        (end, last): (Nanos, u64),
        (cause, side, facts): (Cause, Option<Side>, Facts),
    ) -> Span {
        let sure = Rule::ClosingGap.at(Tap::Near);
        let drops = track.quality().has(Quality::CAPTURE_DROPS);
        let sure = if drops { sure.beside_drops(cause) } else { sure };
        Span {
            cause,
            detail: None,
            side,
            start,
            end,
            frames: Frames::new(self.file, first.min(last), last, &[first, last]),
            confidence: sure.confidence,
            alternatives: sure.alternatives,
            facts,
            folded: 1,
            longest_folded: Nanos::ZERO,
            source: Source::Inferred,
        }
    }

    fn emit_gap(&mut self, end: Nanos, mut spans: Vec<Span>, tail: bool, parts: &mut Output) {
        let start = self.upto.0;
        self.upto.0 = end;
        let Some((start, end)) = parts.within(start, end) else { return parts.give_back_spans(spans) };
        parts.cut(&mut spans);
        self.sums.gaps.count += 1;
        self.sums.gaps.duration += end - start;
        let place = Where { connection: self.connection, exchange: 0, gap: true, tail };
        for span in &spans {
            self.sums.gap_budget.add(span.cause, span.duration());
            rollups_of(span.cause, &mut self.sums.rollups, parts).add(span, place);
            if tail && matches!(span.cause.class(), Class::Application | Class::Unknown) {
                // One span: the time after the last byte.
                self.sums.tail = Some((span.cause, span.duration()));
            }
        }
        if parts.wants_gap(self.connection, start, end) {
            parts.gap(self.connection, Gap { start, end, spans: spans.clone() });
        }
        parts.give_back_spans(spans);
    }
}
