//! Ending the parts of a connection: gaps, exchanges, and the connection itself.

use crate::attribute::{Context, fold, join_neighbours};
use crate::conn::{CLIENT, Conn, SERVER, UNKNOWN};
use crate::exchange::MAX_SPANS;
use crate::facts::Facts;
use crate::findings::{Rollups, Where};
use crate::half::Arrival;
use crate::output::Output;
use crate::place::Part;
use crate::release::Before;
use crate::result::{Closed, Connection, End, Ended, Exchange, Frames, Gap, Omitted, Path, Quality, Span};
use crate::step::Step;
use tcpwhy_base::{Cause, Class, Nanos, Segment, Side};

/// Detail of the time after the last exchange of a closed connection.
pub(crate) const CLOSE: &str = "close";

impl Conn {
    /// The step to the first segment with application data after a TLS handshake.
    pub(crate) fn last_tls_step(&mut self, s: usize, segment: &Segment, t: Nanos, before: Before) -> Step {
        let mut step = self.step(s, segment, t, Arrival::New, before, 0);
        step.bytes = 0;
        step
    }

    /// Turns the steps recorded so far into spans, to bound memory.
    pub(crate) fn turn_over_steps(&mut self, parts: &mut Output) {
        let mut carry = self.ex.carry;
        let mut steps = std::mem::take(&mut self.ex.steps);
        let mut done = std::mem::take(&mut self.ex.done);
        let context = Context::of(self);
        context.attribute(&mut steps, &mut carry, &mut done, &mut parts.limits);
        if done.len() > 2 * MAX_SPANS {
            fold(&mut done, MAX_SPANS);
        }
        self.ex.done = done;
        self.ex.steps = steps;
        self.ex.carry = carry;
    }

    /// Closes the gap from the last part to `t`, where `s` speaks.
    pub(crate) fn gap_until(&mut self, s: usize, t: Nanos, frame: u64, parts: &mut Output) {
        if t <= self.mark {
            self.mark = self.mark.max(t);
            return;
        }
        let length = t - self.mark;
        let first = self.exchanges == 0;
        // From a tap away from the speaker the trip to it and back is not its thinking (rule 13).
        let unseen = self.half[1 - s].counts.packets == 0;
        let path = if first && self.setup.is_some() && s == CLIENT {
            Nanos::ZERO
        } else {
            self.turn_of(s).min(length)
        };
        let think = length - path;
        let (cause, side) = match s {
            // What the other side had sent by then is not in the capture.
            _ if unseen => (Cause::Unexplained, None),
            CLIENT => (Cause::ClientThink, Some(Side::Client)),
            _ => (Cause::ServerThink, Some(Side::Server)),
        };
        let frames = Frames::new(self.file, self.mark_frame.min(frame), frame, &[self.mark_frame, frame]);
        let mut spans = parts.spare_spans();
        let mut at = self.mark;
        let mut push = |cause, side, time: Nanos, facts| {
            if time > Nanos::ZERO {
                spans.push(Span {
                    cause,
                    detail: None,
                    side,
                    start: at,
                    end: at + time,
                    frames,
                    confidence: 0.9,
                    alternatives: [None, None],
                    facts,
                    folded: 1,
                });
                at += time;
            }
        };
        let rtt = self.rtt_or_zero();
        let facts = match unseen {
            true => Facts::OneSided,
            false => Facts::Think { seen: length, path: if self.near(s) { Nanos::ZERO } else { path } },
        };
        push(Cause::PathDelay, Some(Side::Network), path.part(2), Facts::RoundTrip { rtt });
        push(cause, side, think, facts);
        push(Cause::PathDelay, Some(Side::Network), path - path.part(2), Facts::RoundTrip { rtt });
        self.emit_gap(t, spans, false, parts);
    }

    fn emit_gap(&mut self, end: Nanos, spans: Vec<Span>, tail: bool, parts: &mut Output) {
        let start = self.mark;
        self.mark = end;
        self.all_gaps.count += 1;
        self.all_gaps.duration += end - start;
        for span in &spans {
            self.gap_budget.add(span.cause, span.duration());
            let place = Where { connection: self.id, exchange: 0, gap: true, tail };
            rollups_of(span, &mut self.rollups, parts).add(span, place);
        }
        if parts.wants_gap(self.id, end - start) {
            parts.gap(self.id, Gap { start, end, spans: spans.clone() });
        }
        parts.give_back_spans(spans);
    }

    /// Ends the exchange that is being recorded. `unfinished` is how it ended if not by an answer.
    pub(crate) fn finish_exchange(&mut self, parts: &mut Output, unfinished: Option<Ended>) {
        if !self.ex.active {
            return;
        }
        let answered = self.ex.bytes[SERVER] > 0;
        let splits: Vec<Nanos> = if answered {
            Vec::new()
        } else {
            self.ex.steps.iter().filter(|s| s.split).map(|s| s.end).collect()
        };
        if splits.is_empty() {
            self.emit_exchange(parts, unfinished);
            return;
        }
        // Rule 9: a one-way transfer is one exchange per run without a long pause.
        let steps = std::mem::take(&mut self.ex.steps);
        let total = self.ex.bytes;
        let (final_last, final_frame) = (self.ex.last, self.ex.last_frame);
        let mut left = total[CLIENT];
        let runs: Vec<&[Step]> = split_runs(&steps);
        let last_run = runs.len() - 1;
        for (i, run) in runs.into_iter().enumerate() {
            // The first step of every run but the first is the pause itself.
            let (pause, own) = if i == 0 { (None, run) } else { (run.first(), &run[1..]) };
            if let Some(pause) = pause {
                self.gap_until(CLIENT, pause.end, pause.frames[2], parts);
                self.ex.active = true;
                self.ex.start = pause.end;
                self.ex.first_frame = pause.frames[2];
                self.ex.turns = 1;
            }
            let opening = pause.map_or(self.ex.first_bytes, |p| u64::from(p.bytes));
            let bytes = own.iter().map(|s| u64::from(s.bytes)).sum::<u64>() + opening;
            let bytes = if i == last_run { left } else { bytes.min(left) };
            left -= bytes;
            self.ex.bytes = [bytes, 0];
            self.ex.steps = own.to_vec();
            let end = own.last().map_or(self.ex.start, |s| s.end);
            self.ex.last = if i == last_run { final_last } else { end };
            self.ex.last_frame = if i == last_run {
                final_frame
            } else {
                own.last().map_or(self.ex.first_frame, |s| s.frames[2])
            };
            self.ex.request_end = Some(self.ex.last);
            self.emit_exchange(parts, if i == last_run { unfinished } else { None });
        }
    }

    fn emit_exchange(&mut self, parts: &mut Output, unfinished: Option<Ended>) {
        let mut spans = parts.spare_spans();
        spans.append(&mut self.ex.done);
        let mut steps = std::mem::take(&mut self.ex.steps);
        let mut carry = self.ex.carry;
        let context = Context::of(self);
        context.attribute(&mut steps, &mut carry, &mut spans, &mut parts.limits);
        parts.give_back_steps(steps);
        let mut end = self.ex.last;
        if unfinished.is_some() {
            end = self.add_unfinished_tail(end, &mut spans);
        }
        fold(&mut spans, MAX_SPANS);
        join_neighbours(&mut spans);
        self.exchanges += 1;
        let id = self.exchanges;
        if self.is_window_refill() {
            for span in spans.iter_mut().filter(|s| s.cause == Cause::PathDelay) {
                span.cause = Cause::ApplicationWindow;
                span.side = Some(Side::Client);
                span.confidence = 0.6;
                span.alternatives = [Some((Cause::PathDelay, 0.4)), None];
            }
        }
        let duration = end - self.ex.start;
        self.mark = end;
        self.mark_frame = self.ex.last_frame;
        self.last_response_end = end;
        self.all_exchanges.count += 1;
        self.all_exchanges.duration += duration;
        for side in [CLIENT, SERVER] {
            self.all_exchanges.bytes[side] += self.ex.bytes[side];
        }
        let mut other = Nanos::ZERO;
        for span in &spans {
            self.budget.add(span.cause, span.duration());
            let place = Where { connection: self.id, exchange: id, gap: false, tail: false };
            rollups_of(span, &mut self.rollups, parts).add(span, place);
            if !matches!(span.cause, Cause::PathDelay) {
                other += span.duration();
            }
        }
        if self.ex.turns <= 1 && other.times(4) < duration {
            self.quick_turns += 1;
        }
        if parts.wants_exchange(self.id, duration) {
            let ex = &self.ex;
            let with_setup = (id == 1).then(|| self.setup.as_ref().map(|s| end - s.start)).flatten();
            let exchange = Exchange {
                id,
                start: ex.start,
                request_end: ex.request_end.filter(|_| ex.bytes[CLIENT] > 0),
                response_start: ex.response_start,
                end,
                with_setup,
                bytes: ex.bytes,
                turns: ex.turns.max(1),
                duplex: ex.duplex,
                ended: unfinished.unwrap_or(Ended::Complete),
                spans: spans.clone(),
            };
            parts.exchange(self.id, exchange);
        }
        parts.give_back_spans(spans);
        self.ex.reset();
    }

    /// A flow-control window above TCP ran out and was refilled: where HTTP/2 or SSH is seen in clear, the third time in
    /// a row that the server stops after the same number of bytes until a few bytes of the client come, which come
    /// at once.
    fn is_window_refill(&mut self) -> bool {
        let ex = &self.ex;
        let at_once = ex.start - self.last_response_end
            <= self.turn_of(CLIENT) + self.rtt_or_zero().part(8).max(Nanos::millis(1));
        let small = ex.bytes[CLIENT] <= 128 && ex.bytes[SERVER] >= 4_096 && ex.turns <= 1;
        let same = ex.bytes[SERVER].abs_diff(self.refills.0) <= ex.bytes[SERVER] / 16;
        let again = if small && same && at_once { self.refills.1 + 1 } else { 0 };
        self.refills = (ex.bytes[SERVER], again);
        again >= 2 && matches!(self.protocol, Some("http/2" | "ssh"))
    }

    /// Rule 10: what is unfinished ends at the last packet.
    fn add_unfinished_tail(&mut self, end: Nanos, spans: &mut Vec<Span>) -> Nanos {
        let until = self.now;
        if until <= end {
            return end;
        }
        let sender = usize::from(self.ex.last_sender);
        let half = &self.half[sender];
        let wait = until - end;
        // Half of the trip lies before the peer's work and half after it, as before an answer that came.
        let path = if self.near(1 - sender) { Nanos::ZERO } else { self.turn_of(1 - sender).min(wait) };
        let stuck = half.outstanding() > 0;
        let closed_window = self.window_shut(sender);
        let both_closed =
            closed_window && self.window_shut(1 - sender) && self.half[1 - sender].counts.bytes > 0;
        let peer = Some(if sender == CLIENT { Side::Server } else { Side::Client });
        let silent = Facts::Silent {
            wait,
            tries: half.counts.probes + half.recovery.as_ref().map_or(0, |r| r.repeats),
        };
        let in_flight =
            self.closed == Closed::Open && wait < half.rto(self.rtt_or_zero(), &self.profile[sender]);
        let (cause, side, confidence, facts) = if stuck && in_flight && !closed_window {
            // The capture ended while the data was on its way.
            (Cause::PathDelay, Some(Side::Network), 0.7, Facts::RoundTrip { rtt: self.rtt_or_zero() })
        } else if both_closed {
            (Cause::MutualBlock, None, 0.8, Facts::Closed { window: half.window })
        } else if closed_window && !stuck {
            (Cause::SlowReader, peer, 0.85, Facts::Closed { window: half.window })
        } else if stuck {
            (Cause::KeepaliveOrDeadPeer, peer, 0.8, silent)
        } else if sender == CLIENT {
            (Cause::ServerThink, peer, 0.8, Facts::Think { seen: wait, path })
        } else {
            (Cause::ClientThink, peer, 0.8, Facts::Think { seen: wait, path })
        };
        let frames = Frames::new(
            self.file,
            self.ex.last_frame.min(self.last_frame),
            self.last_frame,
            &[self.ex.last_frame, self.last_frame],
        );
        let trip = Facts::RoundTrip { rtt: self.rtt_or_zero() };
        let path = if matches!(facts, Facts::Think { .. }) { path } else { Nanos::ZERO };
        let travel = (Cause::PathDelay, Some(Side::Network), 0.8, trip);
        let mut start = end;
        for (what, upto) in [
            (travel, end + path.part(2)),
            ((cause, side, confidence, facts), until - (path - path.part(2))),
            (travel, until),
        ] {
            if upto <= start {
                continue;
            }
            let (cause, side, confidence, facts) = what;
            spans.push(Span {
                cause,
                detail: None,
                side,
                start,
                end: upto,
                frames,
                confidence,
                alternatives: [None, None],
                facts,
                folded: 1,
            });
            start = upto;
        }
        self.ex.last_frame = self.last_frame;
        until
    }

    /// This side may send less than a segment, and the window that it was last offered says so.
    fn window_shut(&self, side: usize) -> bool {
        let half = &self.half[side];
        let small = half.mss.max(1);
        half.edge_known && half.window < small && half.edge.minus(half.nxt) < small as i32
    }

    /// How the exchange that is open when the connection ends has ended.
    fn how_unfinished(&self, capture_end: bool) -> Option<Ended> {
        let ex = &self.ex;
        let sender = usize::from(ex.last_sender);
        let half = &self.half[sender];
        let fin_space = u32::from(half.fin);
        let delivered = half.acked && half.outstanding() <= fin_space;
        let one_sided = self.half[0].counts.packets == 0 || self.half[1].counts.packets == 0;
        if self.window_shut(sender)
            && self.now - ex.last > half.rto(self.rtt_or_zero(), &self.profile[sender])
        {
            // Probed, or at least waited for: more was to come.
            return Some(match self.closed {
                Closed::Rst => Ended::Rst,
                Closed::Open if capture_end => Ended::CaptureEnd,
                _ => Ended::Silent,
            });
        }
        if ex.bytes[SERVER] > 0 && (delivered || sender == SERVER && self.closed != Closed::Open) {
            return None;
        }
        // A transfer in one direction that was acknowledged is complete; a request that others like it got an
        // answer to is not.
        // A client that waited longer than rule 9's pause before it closed had expected an answer.
        let closed_at = self.fin_seen[CLIENT].unwrap_or(self.now);
        let waited = closed_at - ex.last > self.long_pause(CLIENT);
        if ex.bytes[SERVER] == 0
            && delivered
            && self.closed == Closed::Fin
            && self.half[SERVER].counts.bytes == 0
            && !waited
        {
            return None;
        }
        if one_sided {
            return None;
        }
        Some(match self.closed {
            Closed::Rst => Ended::Rst,
            Closed::Fin => Ended::Silent,
            Closed::Open if capture_end => Ended::CaptureEnd,
            Closed::Open => Ended::Silent,
        })
    }

    /// Ends the connection: closes what is open and makes its summary (without the parts given away).
    pub(crate) fn finish(mut self, capture_end: bool, parts: &mut Output) -> Connection {
        if self.ex.active && self.ex.in_tls {
            self.flush_tls(parts);
        }
        if self.ex.active {
            let unfinished = self.how_unfinished(capture_end);
            self.finish_exchange(parts, unfinished);
        } else {
            self.finish_silent_setup();
        }
        self.close_gap(parts);
        if let Some(setup) = &self.setup {
            for span in &setup.spans {
                self.budget.add(span.cause, span.duration());
                let place = Where { connection: self.id, exchange: 0, gap: false, tail: false };
                rollups_of(span, &mut self.rollups, parts).add(span, place);
            }
        }
        self.summary()
    }

    /// The time from the last part to the last packet.
    fn close_gap(&mut self, parts: &mut Output) {
        if self.now <= self.mark {
            return;
        }
        let wait = self.now - self.mark;
        let frames = Frames::new(
            self.file,
            self.mark_frame.min(self.last_frame),
            self.last_frame,
            &[self.mark_frame, self.last_frame],
        );
        let keepalives = self.half[0].counts.keepalives + self.half[1].counts.keepalives;
        let quiet = self.closed == Closed::Open && keepalives > 0;
        let (cause, side, facts) = if quiet {
            (Cause::KeepaliveOrDeadPeer, None, Facts::Silent { wait, tries: keepalives })
        } else if self.half[0].counts.packets == 0 || self.half[1].counts.packets == 0 {
            (Cause::Unexplained, None, Facts::OneSided)
        } else {
            (Cause::ClientThink, Some(Side::Client), Facts::Think { seen: wait, path: Nanos::ZERO })
        };
        let span = Span {
            cause,
            detail: (self.closed != Closed::Open).then_some(CLOSE),
            side,
            start: self.mark,
            end: self.now,
            frames,
            confidence: 0.8,
            alternatives: [None, None],
            facts,
            folded: 1,
        };
        let end = self.now;
        let mut spans = parts.spare_spans();
        spans.push(span);
        self.emit_gap(end, spans, true, parts);
    }

    fn summary(mut self) -> Connection {
        let one_sided = self.half[0].counts.packets == 0 || self.half[1].counts.packets == 0;
        let syn_only = self.half[CLIENT].counts.packets == u64::from(self.handshake.syns);
        if one_sided && !syn_only {
            self.quality.set(Quality::ONE_SIDED);
        }
        let unseen = |h: &crate::half::Half| {
            h.acked && h.holes.iter().any(|x| x.to.minus(x.from) > 1 && !x.to.after(h.una))
        };
        if !one_sided && self.half.iter().any(unseen) {
            self.quality.set(Quality::CAPTURE_DROPS);
        }
        if !self.scale_known() && !syn_only {
            // A window that was never half used, even if it had no scale, needs none.
            let idle = |d: usize| self.half[d].cwnd.max_flight < u32::from(self.half[d].raw_window) / 2;
            let known = [CLIENT, SERVER].into_iter().all(|d| idle(d) || self.window_shift(1 - d).is_some());
            self.quality.set(if known { Quality::SCALE_INFERRED } else { Quality::NO_WINDOW_SCALE });
        }
        let vantage = self.vantage();
        let bps = self.bandwidth();
        let offloaded = self.quality.has(Quality::OFFLOAD);
        let rtt = self.rtt();
        let halves = [0, 1].map(|i: usize| (self.turn[i] != UNKNOWN).then_some(self.turn[i]));
        let ends = [0, 1].map(|i: usize| self.end_of(i));
        let closed_after = self.closed_after();
        self.rollups.shrink();
        Connection {
            id: self.id,
            client: self.ends[CLIENT],
            server: self.ends[SERVER],
            roles_inferred: self.roles_inferred,
            start: self.start,
            end: self.now,
            opened_by_handshake: !self.quality.has(Quality::MIDSTREAM),
            closed: self.closed,
            vantage,
            protocol: self.protocol,
            path: Path { rtt, halves, bandwidth_bps: bps, offloaded },
            ends,
            bytes: [self.half[0].counts.bytes, self.half[1].counts.bytes],
            packets: [self.half[0].counts.packets, self.half[1].counts.packets],
            retransmitted: [self.half[0].counts.retransmitted, self.half[1].counts.retransmitted],
            quality: self.quality,
            setup: self.setup,
            exchanges: Vec::new(),
            exchanges_omitted: self.all_exchanges,
            gaps: Vec::new(),
            gaps_omitted: self.all_gaps,
            budget: self.budget,
            gap_budget: self.gap_budget,
            closed_after,
            findings: Vec::new(),
            rollups: self.rollups,
            quick_turns: self.quick_turns,
            file: self.file,
            frames: (self.first_frame, self.last_frame),
        }
    }

    fn bandwidth(&mut self) -> Option<u64> {
        let busier = if self.half[0].counts.bytes >= self.half[1].counts.bytes { 0 } else { 1 };
        if self.half[busier].counts.bytes < 100_000 {
            return None;
        }
        self.half[busier].rate.estimate().map(|b| b as u64)
    }

    fn end_of(&self, i: usize) -> End {
        let h = &self.half[i];
        let c = &h.counts;
        End {
            mss: h.mss_option.map(u32::from),
            wscale: h.wscale.or_else(|| (!self.scale_known()).then(|| self.window_shift(i)).flatten()),
            initial_flight: (h.cwnd.initial > 0).then_some(u64::from(h.cwnd.initial)),
            max_window: (c.max_window > 0).then_some(u64::from(c.max_window)),
            max_flight: u64::from(h.cwnd.max_flight),
            os: self.profile[i].os,
            delayed_ack: (c.delayed_ack.1 > 0).then_some((Nanos(c.delayed_ack.0), Nanos(c.delayed_ack.1))),
            min_rto: (c.min_timeout > 0).then_some(Nanos(c.min_timeout)),
            nodelay_shown: h.nodelay_shown,
            zero_windows: c.zero_windows,
            probes: c.probes,
            keepalives: c.keepalives,
            reordered: c.reordered,
            syn_repeats: c.syn_repeats,
            duplicates: c.duplicates,
        }
    }

    /// A client that acts only when the server closes: from the end of the response to the server's FIN.
    fn closed_after(&self) -> Option<Nanos> {
        let server = self.fin_seen[SERVER]?;
        let client = self.fin_seen[CLIENT].unwrap_or(Nanos::MAX);
        (server < client && self.last_response_end.0 != i64::MIN && server > self.last_response_end)
            .then(|| server - self.last_response_end)
    }
}

/// What is inherent is summed over the capture; the rest for each connection.
fn rollups_of<'a>(span: &Span, own: &'a mut Rollups, parts: &'a mut Output) -> &'a mut Rollups {
    if span.cause.class() == Class::Inherent { &mut parts.inherent } else { own }
}

/// Runs of steps; each after the first begins with a step that splits.
fn split_runs(steps: &[Step]) -> Vec<&[Step]> {
    let mut runs = Vec::new();
    let mut from = 0;
    for (i, step) in steps.iter().enumerate() {
        if step.split {
            runs.push(&steps[from..i]);
            from = i;
        }
    }
    runs.push(&steps[from..]);
    runs
}

/// What is left after taking the parts kept in detail out of the sums.
pub(crate) fn leave_out(connection: &mut Connection) {
    let mut omitted: Omitted = std::mem::take(&mut connection.exchanges_omitted);
    let mut gaps: Omitted = std::mem::take(&mut connection.gaps_omitted);
    (omitted.budget, gaps.budget) = (connection.budget.clone(), connection.gap_budget.clone());
    for (id, span) in connection.spans() {
        let of = if matches!(id.part, Part::Gap(_)) { &mut gaps } else { &mut omitted };
        of.budget.subtract(span.cause, span.duration());
    }
    for exchange in &connection.exchanges {
        omitted.count -= 1;
        omitted.duration = omitted.duration - (exchange.end - exchange.start);
        omitted.bytes[0] -= exchange.bytes[0];
        omitted.bytes[1] -= exchange.bytes[1];
    }
    for gap in &connection.gaps {
        gaps.count -= 1;
        gaps.duration = gaps.duration - (gap.end - gap.start);
    }
    (connection.exchanges_omitted, connection.gaps_omitted) = (omitted, gaps);
}
