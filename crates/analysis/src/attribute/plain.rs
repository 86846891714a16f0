//! An exchange of one request and one answer that nothing held up: what the rules say of it in closed form. Most exchanges of a
//! busy server are such, and the spans of most are only summed.

use crate::attribute::doubts::is_as_late_as_a_timer;
use crate::attribute::emit::HOSTS;
use crate::attribute::pieces::Pieces;
use crate::attribute::turns::{is_forty_millis, is_no_work};
use crate::confidence::{Rule, Sure, Tap};
use crate::facts::Facts;
use crate::findings::{Plain, Shown};
use crate::release::{Doubt, Habits, Wait};
use crate::result::{Frames, Quality};
use crate::step::Step;
use crate::track::Tracker;
use tcpwhy_base::{Cause, End, Nanos, Side, Source};

/// The wait for the answer is all there is of it, and the answer was not on its way for longer than a trip, nor may have been lost.
fn answer(steps: &[Step]) -> Option<&Step> {
    let [step] = steps else { return None };
    let plain = matches!(
        step.wait,
        Wait::Turn { on_the_way: Nanos::ZERO, unheard: Nanos::ZERO, doubt: Doubt::None, seen: None }
    );
    let own = step.sender == End::Server && step.source == Source::Inferred && !step.across;
    let took = step.end > step.start && step.burst == Nanos::ZERO && step.loss.is_none();
    (plain && own && took).then_some(step)
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
}

/// What [`attribute`](super::attribute) makes of the steps of such an exchange where no rate of the link is known; `None`: it is another one.
#[inline]
pub(crate) fn plain(steps: &[Step], track: &mut Tracker, habits: &Habits) -> Option<PlainExchange> {
    let step = answer(steps)?;
    // Both are asked, as by whoever knows a rate.
    let rates = End::BOTH.map(|d| track.rate(d).is_some());
    let track = &*track;
    let rtt = track.rtt()?;
    let simple = rates == [false, false]
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
    if !near
        && is_as_late_as_a_timer(duration - track.reaction_or_zero(End::Server), track.timer(End::Server))
    {
        return None; // more has to be asked
    }
    let (first_frame, last_frame) = (step.first_frame, step.last_frame);
    Some(PlainExchange { start: step.start, path, work: duration - path, rtt, near, first_frame, last_frame })
}

impl PlainExchange {
    pub(crate) fn duration(&self) -> Nanos {
        self.path + self.work
    }

    pub(crate) fn frames(&self, file: u16) -> Frames {
        let (first, last) = (self.first_frame, self.last_frame);
        Frames::new(file, first, last, &[first, 0, last])
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
        (self.frames(file), Facts::RoundTrip { rtt: self.rtt })
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
        (self.frames(file), Facts::Think { seen: self.duration(), path })
    }

    /// What the rules make spans of, to hold this against them.
    pub(crate) fn pieces(&self, file: u16) -> Pieces {
        let way = (self.way(), self.is_way(), self.shows_way(file).1);
        let think = (self.think(), self.is_work(), self.shows_think(file).1);
        Pieces::around(self.start, self.frames(file), &way, &think)
    }
}
