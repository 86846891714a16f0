//! An exchange of one request and one answer that nothing held up: what the rules say of it in closed form. Most exchanges of a
//! busy server are such, and the spans of most are only summed.

use crate::attribute::doubts::is_as_late_as_a_timer;
use crate::attribute::emit::HOSTS;
use crate::attribute::pieces::{Piece, Pieces};
use crate::attribute::waits::{is_forty_millis, is_no_work};
use crate::confidence::{Rule, Tap};
use crate::facts::Facts;
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

/// What [`attribute`](super::attribute) makes of the steps of such an exchange where no rate of the link is known; `None`: it is another one.
pub(crate) fn plain(steps: &[Step], track: &mut Tracker, habits: &Habits, file: u16) -> Option<Pieces> {
    let step = answer(steps)?;
    // Both are asked, as by whoever knows a rate.
    let rates = End::BOTH.map(|d| track.rate(d));
    let track = &*track;
    let rtt = track.rtt()?;
    let simple = rates == [None, None]
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
    think = duration - path;
    let near = track.near(End::Server);
    if !near
        && is_as_late_as_a_timer(duration - track.reaction_or_zero(End::Server), track.timer(End::Server))
    {
        return None; // more has to be asked
    }
    let tap = if near { Tap::Near } else { Tap::Far };
    let trip = |time| Piece {
        cause: Cause::PathDelay,
        side: Some(Side::Network),
        time,
        sure: Rule::RoundTrip.at(tap),
        facts: Facts::RoundTrip { rtt },
    };
    let work = Piece {
        cause: Cause::ServerThink,
        side: Some(Side::Server),
        time: think,
        sure: if is_forty_millis(think) { Rule::ThinkOfFortyMillis.at(tap) } else { Rule::Think.at(tap) },
        facts: Facts::Think { seen: duration, path: if near { Nanos::ZERO } else { path } },
    };
    // With nothing between them both ways are one span.
    let first = if think == Nanos::ZERO { path } else { path.part(2) };
    Some(Pieces {
        start: step.start,
        frames: Frames::new(file, step.first_frame, step.last_frame, &[step.first_frame, 0, step.last_frame]),
        list: [trip(first), work, trip(path - first)],
    })
}
