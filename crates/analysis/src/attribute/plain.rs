//! An exchange of one request and one answer that nothing held up: what the rules say of it in closed form.
//! Most exchanges of a busy server are such, and the spans of most are only summed. The segments of the
//! answer may follow its first one at once.

use crate::attribute::doubts::is_as_late_as_a_timer;
use crate::attribute::emit::HOSTS;
use crate::attribute::pieces::Pieces;
use crate::attribute::turns::{is_forty_millis, is_no_work};
use crate::confidence::{Rule, Sure, Tap};
use crate::facts::Facts;
use crate::findings::{Plain, Shown};
use crate::release::{Doubt, Habits, Wait, burst_within};
use crate::result::{Frames, Quality, Span};
use crate::step::Step;
use crate::track::{Tracker, Trip};
use tcpwhy_base::{Cause, End, Nanos, Side, Source};

/// The wait for the answer is all there is of it, but for what followed at once, and the answer was not on
/// its way for longer than a trip, nor may have been lost.
fn answer(steps: &[Step]) -> Option<(&Step, Option<&Step>)> {
    let (step, rest) = match steps {
        [step] => (step, None),
        [step, rest] if is_rest(rest) => (step, Some(rest)),
        _ => return None,
    };
    let plain = matches!(
        step.wait,
        Wait::Turn { on_the_way: Nanos::ZERO, unheard: Nanos::ZERO, doubt: Doubt::None, seen: None }
    );
    let own = step.sender == End::Server && step.source == Source::Inferred && !step.across;
    let took = step.end > step.start && step.burst == Nanos::ZERO && step.loss.is_none();
    (plain && own && took).then_some((step, rest))
}

/// What followed an answer's first segment at once, within one write.
fn is_rest(step: &Step) -> bool {
    step.is_burst()
        && step.sender == End::Server
        && step.loss.is_none()
        && !step.across
        && !step.pushed
        && step.bytes > 0
}

/// An exchange of which the way took `path` and the server the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainExchange {
    pub(crate) start: Nanos,
    pub(crate) path: Nanos,
    pub(crate) work: Nanos,
    pub(crate) rtt: Nanos,
    near: bool,
    first_frame: u64,
    last_frame: u64,
    rest: Option<Rest>,
}

/// The segments of the answer that followed the first at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    start: Nanos,
    time: Nanos,
    bytes: u32,
    frames: [u64; 3],
}

/// What [`attribute`](super::attribute) makes of the steps of such an exchange where no rate of the link is
/// known; `None`: it is another one.
#[inline]
pub(crate) fn plain(steps: &[Step], track: &mut Tracker, habits: &Habits) -> Option<PlainExchange> {
    let (step, rest) = answer(steps)?;
    // Both are asked, as by whoever knows a rate.
    let rates = End::BOTH.map(|d| track.rate(d).is_some());
    let track = &*track;
    let rtt = track.rtt()?;
    let simple = rates == [false, false]
        && track.trip_to(End::Server) == Trip::Shown
        && !track.quality().has(Quality::CAPTURE_DROPS)
        && track.split(habits.soonest_answer()).is_none();
    if !simple {
        return None;
    }
    let duration = step.duration();
    let mut think = duration - duration.min(track.reaction_or_zero(End::Server));
    if is_no_work(think, rtt) {
        think = Nanos::ZERO;
    }
    let path = (duration - think).min(rtt + rtt.part(64) + HOSTS).floor0();
    let near = track.near(End::Server);
    if habits.ticks(near).is_some() {
        return None; // it may be a cork
    }
    if !near
        && is_as_late_as_a_timer(duration - track.reaction_or_zero(End::Server), track.timer(End::Server))
    {
        return None; // more has to be asked
    }
    if rest.is_some_and(|rest| rest.duration() > rtt + burst_within(rtt, Nanos::ZERO)) {
        return None; // no rate accounts for it
    }
    let rest = rest.filter(|rest| rest.duration() > Nanos::ZERO).map(|rest| Rest {
        start: rest.start,
        time: rest.duration(),
        bytes: rest.bytes,
        frames: [rest.first_frame, rest.ack_frame.map_or(0, |f| f.get()), rest.last_frame],
    });
    let (first_frame, last_frame) = (step.first_frame, step.last_frame);
    let work = duration - path;
    Some(PlainExchange { start: step.start, path, work, rtt, near, first_frame, last_frame, rest })
}

impl PlainExchange {
    pub(crate) fn duration(&self) -> Nanos {
        self.path + self.work
    }

    /// Of all of it.
    pub(crate) fn frames(&self, file: u16) -> Frames {
        let answer = self.frames_of_answer(file);
        self.rest.map_or(answer, |rest| answer.join(rest.frames_in(file)))
    }

    /// Until the first segment of the answer.
    fn frames_of_answer(&self, file: u16) -> Frames {
        let (first, last) = (self.first_frame, self.last_frame);
        Frames::new(file, first, last, &[first, 0, last])
    }

    /// How long what followed that at once took.
    #[inline]
    pub(crate) fn after_first(&self) -> Nanos {
        self.rest.map_or(Nanos::ZERO, |rest| rest.time)
    }

    /// When the way there began, and how long it was; and the same of the way back.
    pub(crate) fn trips(&self) -> [(Nanos, Nanos); 2] {
        // With nothing between them both ways are one span.
        let first = if self.work == Nanos::ZERO { self.path } else { self.path.part(2) };
        [(self.start, first), (self.start + first + self.work, self.path - first)]
    }

    fn tap(&self) -> Tap {
        if self.near { Tap::Near } else { Tap::Far }
    }

    /// How sure the way is.
    #[inline]
    fn is_way(&self) -> Sure {
        Rule::RoundTrip.at(self.tap())
    }

    /// How sure the server's work is.
    #[inline]
    fn is_work(&self) -> Sure {
        if is_forty_millis(self.work) {
            Rule::ThinkOfFortyMillis.at(self.tap())
        } else {
            Rule::Think.at(self.tap())
        }
    }

    /// The first frame that shows it.
    pub(crate) fn first_frame(&self) -> u64 {
        self.first_frame
    }

    /// The way, as it is summed.
    #[inline]
    pub(crate) fn way(&self) -> Plain {
        Plain {
            cause: Cause::PathDelay,
            side: Some(Side::Network),
            pieces: self.trips(),
            confidence: self.is_way().confidence,
        }
    }

    /// What shows the way.
    pub(crate) fn shows_way(&self, file: u16) -> Shown {
        (self.frames_of_answer(file), Facts::RoundTrip { rtt: self.rtt })
    }

    /// The server's work, as it is summed.
    #[inline]
    pub(crate) fn think(&self) -> Plain {
        Plain {
            cause: Cause::ServerThink,
            side: Some(Side::Server),
            pieces: [(self.start + self.trips()[0].1, self.work), (Nanos::ZERO, Nanos::ZERO)],
            confidence: self.is_work().confidence,
        }
    }

    /// What shows that.
    pub(crate) fn shows_think(&self, file: u16) -> Shown {
        let path = if self.near { Nanos::ZERO } else { self.path };
        (self.frames_of_answer(file), Facts::Think { seen: self.duration(), path })
    }

    /// What followed the first segment, as it is summed.
    #[inline]
    pub(crate) fn bytes(&self) -> Option<(Plain, Rest)> {
        let rest = self.rest?;
        let plain = Plain {
            cause: Cause::Bandwidth,
            side: Some(Side::Network),
            pieces: [(rest.start, rest.time), (Nanos::ZERO, Nanos::ZERO)],
            confidence: self.is_rest().confidence,
        };
        Some((plain, rest))
    }

    /// How sure that is.
    #[inline]
    fn is_rest(&self) -> Sure {
        Rule::OwnBytes.at(self.tap())
    }

    /// The spans that the rules make of it, to hold this against them.
    pub(crate) fn spans(&self, file: u16) -> Vec<Span> {
        let way = (self.way(), self.is_way(), self.shows_way(file).1);
        let think = (self.think(), self.is_work(), self.shows_think(file).1);
        let mut spans = Pieces::around(self.start, self.frames_of_answer(file), &way, &think).made();
        if let Some((plain, rest)) = self.bytes() {
            let (frames, facts) = rest.shows(file);
            let (rest, none) =
                ((plain, self.is_rest(), facts), Plain { pieces: Default::default(), ..plain });
            let none = (none, self.is_rest(), facts);
            Pieces::around(plain.pieces[0].0, frames, &none, &rest).spans(&mut spans);
        }
        spans
    }
}

impl Rest {
    /// The first frame that shows it.
    pub(crate) fn first_frame(&self) -> u64 {
        self.frames[0]
    }

    /// What shows it.
    pub(crate) fn shows(&self, file: u16) -> Shown {
        (self.frames_in(file), Facts::of_bytes(self.bytes, None, Nanos::ZERO))
    }

    fn frames_in(&self, file: u16) -> Frames {
        Frames::new(file, self.frames[0], self.frames[2], &self.frames)
    }
}
