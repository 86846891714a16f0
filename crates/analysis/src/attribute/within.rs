//! Waits within a write: more of it was there to send, so that its program is not what they waited for (rule 149).

use crate::attribute::context::Context;
use crate::attribute::woken::{clocked, written};
use crate::release::Pause;
use crate::step::Step;
use tcpwhy_base::{Cause, Nanos, Source};

/// A pace gives a packet what it lets through in a millisecond (`tcp_tso_autosize`), twice that with a rate that
/// has become smaller; what waits for longer is behind two segments, which is the least (`tcp_min_tso_segs`).
const PACKET: Nanos = Nanos::millis(2);

/// How much faster the fastest pace is than the slowest of one rate (`bbr_high_gain` and `bbr_drain_gain`: 2.89, and one by it).
const GAINS: i64 = 9;

/// The pause of a step before which no write need have ended, of Linux, as its packets tell.
fn within<'a>(context: &Context, step: &'a Step) -> Option<&'a Pause> {
    let known = context.timer[step.sender].is_some() && step.source == Source::Inferred && !step.across;
    step.pause().filter(|p| p.goes_on && !p.there && known && step.loss.is_none())
}

/// What leaves in longer rows than a pace makes was written, be it into a cork (`MSG_MORE`), and what waits for much
/// longer behind as much; and where Nagle's algorithm holds, it may have held what was behind a full segment.
fn forget_what_is_no_pace(context: &Context, message: &mut [Step]) {
    let bytes_before = |left: &mut u32, step: &Step| {
        let before = *left;
        *left = if step.is_burst() {
            before.saturating_add(step.bytes)
        } else {
            step.bytes / step.releases.max(1)
        };
        before
    };
    // Nanoseconds for each byte.
    let each = |step: &Step, before: u32| {
        let wait = step.duration().0 / i64::from(step.releases.max(1));
        wait / i64::from(before.max(1))
    };
    let (mut left, mut fastest) = (0, i64::MAX);
    for step in &*message {
        let before = bytes_before(&mut left, step);
        if within(context, step).is_some() {
            fastest = fastest.min(each(step, before).max(1));
        }
    }
    let (mut left, pair) = (0, 2 * context.mss[message[0].sender]);
    for step in message {
        let before = bytes_before(&mut left, step);
        let little = before <= pair || step.duration() <= PACKET.times(i64::from(step.releases.max(1)));
        let paced = little && context.nagle_holds == 0 && each(step, before) <= fastest.saturating_mul(GAINS);
        if !paced {
            step.was_written();
        }
    }
}

/// Beside the sender: a full segment without PSH had left, windows had room and no ACK came, so that what was
/// behind it in the queue was spaced; not where twice as many pauses were its writer's. Gives whether any was.
pub(super) fn paced_within(context: &Context, steps: &[Step], limits: &mut [Cause]) -> bool {
    let spaced = |s: &Step| context.near(s.sender) && !s.pushed && within(context, s).is_some();
    let count =
        |which: &dyn Fn(&Step) -> bool| steps.iter().filter(|s| which(s)).map(|s| s.releases).sum::<u32>();
    let own = count(&spaced);
    if own == 0 || 2 * own <= count(&|s| written(s) && !spaced(s)) {
        return false;
    }
    for (_, limit) in steps.iter().zip(limits).filter(|(step, _)| spaced(step)) {
        *limit = Cause::Pacing;
    }
    true
}

/// What is known of such waits, message by message.
pub(super) fn judge_waits_within(context: &Context, steps: &mut [Step]) {
    let is_within = |s: &Step| within(context, s).is_some();
    let mut from = 0;
    while let Some(first) = steps[from..].iter().position(is_within).map(|k| k + from) {
        let sender = steps[first].sender;
        let of_another = |s: &Step| s.is_turn() || s.sender != sender;
        // The turn is where the message begins.
        let turn = steps[from..first].iter().rposition(of_another).map_or(from, |k| k + from);
        let begin = if steps[turn].sender == sender { turn } else { turn + 1 };
        from = steps[first + 1..].iter().position(of_another).map_or(steps.len(), |k| k + first + 1);
        let message = &mut steps[begin..from];
        if context.near(sender) {
            forget_what_is_no_pace(context, message);
        } else {
            judge_from_afar(context, message);
        }
    }
}

/// Seen from afar, with ACKs that a path brings early and late: where pauses took less of a message than the waits
/// that ACKs ended, PSH behind whole segments does not tell which these are. A writer of whole segments (a proxy
/// that passes on what came) is not clocked by ACKs.
fn judge_from_afar(context: &Context, message: &mut [Step]) {
    let time = |which: fn(&Step) -> bool| {
        let waits = message.iter().filter(|s| which(s));
        waits.fold(Nanos::ZERO, |time, s| time + s.duration())
    };
    if time(written) > time(clocked) {
        forget_what_is_no_pace(context, message);
    }
}
