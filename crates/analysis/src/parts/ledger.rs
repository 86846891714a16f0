//! The time of a connection as it is accounted for: every part that ends is added here, and handed on.

mod counted;
mod gaps;
mod refills;

pub(crate) use refills::GRANTED_WITHIN_TLS;

use self::refills::Refills;
use crate::attribute::{Context, PlainExchange, fold, join_neighbours, never_repaired, plain};
use crate::confidence::{Rule, Tap};
use crate::exchange::{MAX_SPANS, Recorded};
use crate::facts::Facts;
use crate::fetch::fetch_whole;
use crate::findings::{Acquitted, Basis, Quick, Rollups, Where};
use crate::output::Output;
use crate::parts::opening::{late_handshake, setup};
use crate::parts::sums::Sums;
use crate::parts::unfinished::{
    Unfinished, ends_at, give_up, given_up, late_read, name_the_silent, resets, tail,
};
use crate::release::Habits;
use crate::rest::{Frame, Whose, at_rest};
use crate::result::{Ended, Example, Exchange, Frames, Setup, Span};
use crate::track::{Moment, Opening, Tracker};
use tcpwhy_base::{Cause, Class, End, Ends, Nanos, Segment, Side, Source, Tls};

/// The parts of one connection so far.
#[derive(Debug)]
pub(crate) struct Ledger {
    connection: u32,
    file: u16,
    setup: Option<Setup>,
    /// How many exchanges have ended.
    exchanges: u32,
    /// The first of them began with the server.
    greeted: bool,
    /// Where the last part ended.
    upto: Moment,
    /// When the last exchange ended.
    last_response: Option<Nanos>,
    refills: Refills,
    sums: Sums,
}

at_rest! {
    Ledger {
        connection as Whose, file, setup, exchanges, greeted, upto as Frame, last_response, refills, sums,
    }
}

/// What is inherent is summed over the capture; the rest for each connection.
fn rollups_of<'a>(cause: Cause, own: &'a mut Rollups, parts: &'a mut Output) -> &'a mut Rollups {
    if cause.class() == Class::Inherent { parts.inherent_mut() } else { own }
}

impl Ledger {
    /// Nothing of it so far; `room` is used again.
    pub(crate) fn new(connection: u32, segment: &Segment, room: Basis) -> Ledger {
        Ledger {
            connection,
            file: segment.file,
            setup: None,
            exchanges: 0,
            greeted: false,
            upto: (segment.time, segment.frame),
            last_response: None,
            refills: Refills::default(),
            sums: Sums { rollups: room.rollups, requests: room.requests, ..Sums::default() },
        }
    }

    /// Becomes that in the room of an ended one.
    pub(crate) fn renew(&mut self, connection: u32, segment: &Segment, room: Basis) {
        let (mut budget, mut gap_budget) = self.sums.take_budgets();
        budget.0.clear();
        gap_budget.0.clear();
        *self = Ledger::new(connection, segment, room);
        (self.sums.budget, self.sums.gap_budget) = (budget, gap_budget);
    }

    /// What its sums are kept in will be needed.
    pub(crate) fn fetch_lists(&self) {
        fetch_whole(self.sums.rollups.0.as_slice());
        fetch_whole(self.sums.budget.0.as_slice());
        fetch_whole(self.sums.gap_budget.0.as_slice());
        self.sums.requests.fetch();
    }

    pub(crate) fn has_setup(&self) -> bool {
        self.setup.is_some()
    }

    /// So much of what the setup had from the client is a request. `false`: it had not.
    pub(crate) fn gives_request(&mut self, bytes: u64) -> bool {
        let had = self.setup.as_mut().and_then(|s| Some((s.bytes[0].checked_sub(bytes)?, s)));
        had.map(|(left, setup)| setup.bytes[0] = left).is_some()
    }

    /// The setup, when the last response ended, and the sums. Budgets are to be copied, so that they get the
    /// room that they need; that in which they grew is used again.
    pub(crate) fn close(&mut self) -> (Option<Setup>, Option<Nanos>, &mut Sums) {
        (self.setup.take(), self.last_response, &mut self.sums)
    }

    /// Where the last part ended.
    pub(crate) fn upto(&self) -> Moment {
        self.upto
    }

    /// A snapshot of the connection for the spans of its steps.
    pub(crate) fn context(&self, track: &mut Tracker, habits: &Habits) -> Context {
        Context::of(track, habits, self.is_first(), self.file)
    }
}

/// Setup.
impl Ledger {
    /// The handshake ended at `end`.
    pub(crate) fn open(&mut self, opening: &Opening, track: &Tracker, end: Moment, parts: &mut Output) {
        // A stray packet may stand before the SYN: nobody had asked for anything yet.
        self.gap_until(End::Client, opening.first, track, parts);
        self.setup = Some(setup(opening, track, self.file, end));
        self.upto = end;
    }

    /// TLS begins with this segment of the client.
    pub(crate) fn open_tls(&mut self, t: Nanos, segment: &Segment, track: &Tracker) {
        self.refills.may_be_h2 = !segment.tls.is_none() && !segment.tls.has(Tls::NO_H2);
        let (upto, frame) = self.upto;
        let near = track.near(End::Client);
        let path = if near { Nanos::ZERO } else { track.reaction_or_zero(End::Client) };
        if let Some(setup) = self.setup.as_mut().filter(|_| t > upto) {
            let sure = Rule::TlsThink.at(Tap::Near);
            setup.spans.push(Span {
                cause: Cause::ClientThink,
                detail: None,
                side: Some(Side::Client),
                start: upto,
                end: t,
                frames: Frames::new(self.file, frame, segment.frame, &[segment.frame]),
                confidence: sure.confidence,
                alternatives: sure.alternatives,
                facts: Facts::Think { seen: t - upto, path },
                folded: 1,
                longest_folded: Nanos::ZERO,
                source: Source::Inferred,
            });
            setup.end = t;
        }
        self.upto = (t, segment.frame);
    }

    /// What was recorded is the TLS handshake, in which the client waited so often for an answer: it belongs
    /// to the setup. A server that was asked in the clear may have `refused` it.
    pub(crate) fn close_tls(
        &mut self,
        (mut recorded, trips, refused): (Recorded, u32, bool),
        track: &mut Tracker,
        habits: &Habits,
        parts: &mut Output,
    ) {
        let mut spans = Vec::new();
        let context = self.context(track, habits);
        let steps = recorded.attribute(&context, &mut spans, parts.limits());
        parts.give_back_steps(steps);
        let again = self.setup.as_ref().is_some_and(|setup| setup.tls_asked_again);
        for span in spans.iter_mut().filter(|s| matches!(s.cause, Cause::PathDelay | Cause::Bandwidth)) {
            span.cause = Cause::TlsHandshake;
            match span.facts {
                Facts::RoundTrip { rtt } if refused => span.facts = Facts::EncryptionRefused { rtt },
                Facts::RoundTrip { rtt } if again => span.facts = Facts::KeyAskedAgain { rtt },
                _ => {}
            }
        }
        join_neighbours(&mut spans);
        if let Some(setup) = self.setup.as_mut() {
            setup.end = recorded.last;
            setup.bytes[0] += recorded.bytes.client;
            setup.bytes[1] += recorded.bytes.server;
            setup.tls_trips += trips;
            setup.spans.append(&mut spans);
        }
        self.upto = (recorded.last, recorded.last_frame);
    }

    /// The TLS handshake did not end: some of it never came (rule 106), which one end waited for until it closed.
    pub(crate) fn hangs(&mut self, track: &Tracker) {
        let (start, frame) = self.upto;
        let waited = |s: End| track.fin_of(s.peer()).filter(|&fin| fin > start).unwrap_or(track.now());
        let lost = End::BOTH.into_iter().find_map(|s| Some((track.never_came(s, waited(s))?, waited(s))));
        let (Some((lost, end)), Some(setup)) = (lost.filter(|l| l.1 > start), self.setup.as_mut()) else {
            return;
        };
        let (rule, cause) = never_repaired(lost.whole);
        let sure = rule.at(Tap::Near);
        setup.spans.push(Span {
            cause,
            detail: None,
            side: Some(Side::Network),
            start,
            end,
            frames: Frames::new(self.file, frame, track.last_frame(), &[frame, track.last_frame()]),
            confidence: sure.confidence,
            alternatives: sure.alternatives,
            facts: Facts::Missing { packets: 0, wait: end - start },
            folded: 1,
            longest_folded: Nanos::ZERO,
            source: Source::Inferred,
        });
        setup.end = end;
        self.upto = (end, track.last_frame());
    }

    /// The server may have asked for another ClientHello.
    pub(crate) fn asks_again(&mut self, asked: bool) {
        if let Some(setup) = &mut self.setup {
            setup.tls_asked_again |= asked;
        }
    }

    /// The last words of TLS: like the first ones they belong to no request.
    pub(crate) fn goodbye(&mut self, bytes: Ends<u64>) {
        if let Some(setup) = &mut self.setup {
            setup.bytes[0] += bytes.client;
            setup.bytes[1] += bytes.server;
        }
    }

    /// The connection ends: the setup counts.
    pub(crate) fn sum_setup(&mut self, rtt: Option<Nanos>, parts: &mut Output) {
        let Some(setup) = &mut self.setup else { return };
        late_handshake(&mut setup.spans, rtt);
        let Some((start, end)) = parts.within(setup.start, setup.end) else {
            self.setup = None;
            return;
        };
        (setup.start, setup.end) = (start, end);
        parts.cut(&mut setup.spans);
        let place = Where { connection: self.connection, exchange: 0, gap: false, tail: false };
        self.sums.requests.cover(setup.start, setup.end);
        for span in &setup.spans {
            self.sums.budget.add(span.cause, span.duration());
            rollups_of(span.cause, &mut self.sums.rollups, parts).add(span, place);
        }
    }
}

/// What later packets refute.
impl Ledger {
    /// Nothing was held: what seemed so was its writer (rules 25 and 66).
    #[cold]
    pub(crate) fn acquit(&mut self, what: Acquitted, parts: &mut Output) {
        let sums = &mut self.sums;
        let refuted = sums.rollups.acquit(what);
        if refuted.is_empty() {
            return;
        }
        for (cause, time) in refuted {
            sums.budget.subtract(cause, time);
            sums.budget.add(Cause::SenderPause, time);
            sums.requests.times.rename(cause, Cause::SenderPause);
        }
        let setup = self.setup.iter_mut().flat_map(|s| &mut s.spans);
        setup.for_each(|span| span.acquit(what));
        parts.each_span(self.connection, |span| span.acquit(what));
    }
}

/// What the end of an exchange is judged by.
pub(crate) struct Ending<'a> {
    pub(crate) track: &'a mut Tracker,
    pub(crate) habits: &'a Habits,
    pub(crate) protocol: Option<&'static str>,
    /// How it ended if not by a response.
    pub(crate) unfinished: Option<Unfinished>,
    /// When the client had read all of that, if its kernel says it was late.
    pub(crate) read: Option<Nanos>,
}

/// Exchanges.
impl Ledger {
    /// Ends the exchange that was recorded, where nothing held it up and only its sums are asked for; it
    /// ended with a response. `false`: it is another one, and has not ended.
    #[inline]
    pub(crate) fn finish_plain(
        &mut self,
        ex: &Recorded,
        protocol: Option<&'static str>,
        (track, habits): (&mut Tracker, &Habits),
        parts: &mut Output,
    ) -> bool {
        let Some(steps) = ex.all_steps() else { return false };
        if cfg!(debug_assertions) {
            self.check_plain(ex, track, habits);
        }
        let may_be_given_up = track.reset_by() == Some(End::Client);
        if may_be_given_up || !parts.sees_all() || parts.wants_exchange(self.connection, ex.start, ex.last) {
            return false;
        }
        let Some(plain) = plain(steps, track, habits) else { return false };
        let refills = self.refills_after(ex, protocol, track);
        if refills.seen {
            return false;
        }
        self.refills = refills;
        self.count(ex);
        (self.upto, self.last_response) = ((ex.last, ex.last_frame), Some(ex.last));
        self.sum_plain(ex, &plain, parts);
        true
    }

    /// Ends the exchange that was recorded.
    pub(crate) fn finish_exchange(
        &mut self,
        recorded: Recorded,
        ending: &mut Ending<'_>,
        parts: &mut Output,
    ) {
        if !recorded.splits() {
            self.emit_exchange(recorded, ending, parts);
            return;
        }
        let unfinished = ending.unfinished.take();
        let mut runs = recorded.runs().into_iter().peekable();
        while let Some(run) = runs.next() {
            if let Some(pause) = run.pause {
                self.gap_until(End::Client, pause, ending.track, parts);
            }
            ending.unfinished = unfinished.filter(|_| runs.peek().is_none());
            self.emit_exchange(run.recorded, ending, parts);
        }
    }

    fn emit_exchange(&mut self, mut ex: Recorded, ending: &mut Ending<'_>, parts: &mut Output) {
        self.refills = self.refills_after(&ex, ending.protocol, ending.track);
        let mut spans = parts.spare_spans();
        let context = self.context(ending.track, ending.habits);
        let steps = ex.attribute(&context, &mut spans, parts.limits());
        parts.give_back_steps(steps);
        let (mut end, mut joined) = ((ex.last, ex.last_frame), true);
        let track = &*ending.track;
        if ending.unfinished.is_some() {
            name_the_silent(&ex, track, &mut spans);
        }
        let over = ending.unfinished.map(|how| (how, ends_at(&ex, track))).filter(|over| over.1.0 > end.0);
        if let Some((how, over)) = over {
            tail(&ex, (track, how), over, self.file, &mut spans);
            (end, joined) = (over, false);
        }
        if let Some(read) = ending.read.filter(|read| joined && *read > end.0) {
            spans.push(late_read(&ex, self.file, read));
            end.0 = read;
        }
        if spans.len() > MAX_SPANS {
            fold(&mut spans, MAX_SPANS);
            joined = false;
        }
        if !joined {
            join_neighbours(&mut spans);
        }
        let gave_up = given_up(&ex, track, ending.unfinished.is_some());
        let complete = give_up(&mut spans, gave_up, &mut end.0);
        self.count(&ex);
        let id = self.exchanges;
        let refilled = if self.refills.seen { Some(self.refills) } else { self.refills.within(&ex, track) };
        if let Some(refills) = refilled {
            let bytes = self.refills.seen.then_some(ex.bytes.client.max(ex.bytes.server));
            refills.rename(&mut spans, bytes, track);
        }
        self.upto = end;
        self.last_response = Some(end.0);
        let whole = (ex.start, end.0);
        let ended = ending.unfinished.map_or(complete, |how| how.ended);
        self.sums.gave_up = gave_up.map(|(_, waited)| waited);
        (self.sums.too_late, self.sums.reset) = resets(&ex, track, ending.protocol);
        self.sums.cut_off = ended == Ended::Rst && ex.bytes.server > 0 && ex.last_sender == End::Server;
        let Some((start, end)) = parts.within(whole.0, whole.1) else { return parts.give_back_spans(spans) };
        parts.cut(&mut spans);
        let cut = (start, end) != whole;
        self.sum_exchange(&ex, &spans, (start, end), cut, parts);
        if parts.wants_exchange(self.connection, start, end) {
            let seen = |t: &Nanos| (start..=end).contains(t);
            let setup = self
                .setup
                .as_ref()
                .filter(|s| id == 1 && !cut && parts.within(s.start, s.end).is_some_and(|p| p.0 == s.start));
            let exchange = Exchange {
                id,
                start,
                request_end: ex.request_end.filter(|t| ex.bytes.client > 0 && seen(t)),
                response_start: ex.response_start.filter(seen),
                end,
                with_setup: setup.map(|s| end - s.start),
                cut,
                bytes: ex.bytes.into_array(),
                turns: ex.turns.max(1),
                duplex: ex.duplex,
                ended,
                spans: spans.clone(),
                named: None,
            };
            parts.exchange(self.connection, exchange);
        }
        parts.give_back_spans(spans);
    }

    fn sum_exchange(
        &mut self,
        ex: &Recorded,
        spans: &[Span],
        (start, end): (Nanos, Nanos),
        cut: bool,
        parts: &mut Output,
    ) {
        let place = self.count_exchange(ex, (start, end), parts);
        let (duration, sums) = (end - start, &mut self.sums);
        sums.requests.times.add(duration, spans.iter().map(|s| (s.cause, s.duration())));
        let mut other = Nanos::ZERO;
        for span in spans {
            sums.budget.add(span.cause, span.duration());
            rollups_of(span.cause, &mut sums.rollups, parts).add(span, place);
            if span.cause != Cause::PathDelay {
                other += span.duration();
            }
        }
        if ex.turns <= 1 && other.times(4) < duration && !cut {
            let frames = || spans.iter().map(|s| s.frames).reduce(Frames::join);
            self.count_quick(spans.first().map(|s| s.start), duration, frames);
        }
    }

    /// What [`Ledger::sum_exchange`] does for an exchange of which no spans are kept.
    fn sum_plain(&mut self, ex: &Recorded, plain: &PlainExchange, parts: &mut Output) {
        let place = self.count_exchange(ex, (ex.start, ex.last), parts);
        let (duration, sums) = (ex.last - ex.start, &mut self.sums);
        let rest = plain.after_first();
        let by_cause =
            [(Cause::PathDelay, plain.path), (Cause::ServerThink, plain.work), (Cause::Bandwidth, rest)];
        sums.requests.times.add(duration, by_cause.into_iter().filter(|c| c.1 > Nanos::ZERO));
        by_cause.iter().for_each(|&(cause, time)| sums.budget.add(cause, time));
        let (first, file) = (plain.first_frame(), self.file);
        parts.inherent_mut().add_plain(&plain.way(), place, first, || plain.shows_way(file));
        if plain.work > Nanos::ZERO {
            sums.rollups.add_plain(&plain.think(), place, first, || plain.shows_think(file));
        }
        if let Some((bytes, rest)) = plain.bytes() {
            parts.inherent_mut().add_plain(&bytes, place, rest.first_frame(), || rest.shows(file));
        }
        if ex.turns <= 1 && (plain.work + rest).times(4) < duration {
            self.count_quick(Some(plain.start), duration, || Some(plain.frames(file)));
        }
    }

    /// One more exchange.
    fn count_exchange(&mut self, ex: &Recorded, (start, end): (Nanos, Nanos), parts: &mut Output) -> Where {
        let times = (start, ex.asked_within(start, end), end);
        parts.outline((self.connection, self.exchanges), times, ex.bytes.server > 0);
        self.sums.count((start, end), [ex.bytes.client, ex.bytes.server]);
        Where { connection: self.connection, exchange: self.exchanges, gap: false, tail: false }
    }

    /// One that took hardly more than a round trip; `start`: where its first span begins.
    fn count_quick(
        &mut self,
        start: Option<Nanos>,
        duration: Nanos,
        frames: impl FnOnce() -> Option<Frames>,
    ) {
        let (connection, exchange, sums) = (self.connection, self.exchanges, &mut self.sums);
        sums.quick_turns += 1;
        if sums.quick.is_none_or(|q| duration > q.duration)
            && let (Some(start), Some(frames)) = (start, frames())
        {
            let example = Example { connection, exchange, frames, start, end: start + duration };
            sums.quick = Some(Quick { example, duration });
        }
    }

    /// Of an exchange in closed form the rules say the same.
    fn check_plain(&self, ex: &Recorded, track: &mut Tracker, habits: &Habits) {
        let steps = ex.all_steps();
        let Some(plain) = steps.and_then(|s| plain(s, track, habits)) else { return };
        let context = self.context(track, habits);
        let mut spans = Vec::new();
        ex.clone().attribute(&context, &mut spans, &mut Vec::new());
        assert_eq!(format!("{spans:?}"), format!("{:?}", plain.spans(self.file)));
    }

    /// How often a window above TCP was refilled, after this exchange.
    #[inline]
    fn refills_after(&self, ex: &Recorded, protocol: Option<&'static str>, track: &Tracker) -> Refills {
        self.refills.after(ex, protocol, track, self.last_response)
    }
}
