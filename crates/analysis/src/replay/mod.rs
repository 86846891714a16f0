//! What each fix would do: the workload of a finding's example is taken out of the capture, replayed in the model, and
//! replayed again with the fix. The model is first asked to reproduce what was seen, and its error stands beside.

mod extract;
mod reader;

pub(crate) use extract::extract_with;
pub use extract::{Extract, extract};
pub(crate) use reader::Over;

use crate::Analysis;
use crate::findings::agree::{agree, at_the_place, tried_as};
use crate::place::Part;
use crate::result::{Connection, Finding, Fix, NoEffect, Refuted, Replay, Together};
use tcpwhy_base::{Cause, Class, FixId, Nanos, Side};
use tcpwhy_model::{Change, POPULAR, Question, Story, combine};

/// Events that one explanation may spend on replays: some tenths of a second.
const EVENTS: u64 = 400_000;
/// Findings that are replayed, worst first, and their least share of the time.
const FINDINGS: usize = 8;
const SHARE: f64 = 0.01;
/// Fills the findings of a capture with predictions, as far as examples can be replayed within the budget.
pub fn predict(analysis: &mut Analysis) {
    let mut left = EVENTS;
    let worth = |f: &&mut Finding| {
        f.cause.class() != Class::Application && f.cause.class() != Class::Unknown && f.share >= SHARE
    };
    // They stand worst first.
    for f in analysis.findings.iter_mut().filter(worth).take(FINDINGS) {
        let found = analysis.connections.binary_search_by_key(&f.example.connection, |c| c.id);
        if let Ok(at) = found {
            replay(f, &analysis.connections[at], &mut left);
        }
    }
    hear_each_other(analysis);
    agree(&mut analysis.findings);
}

/// What a replay says of a change holds for every finding whose time lies in the replayed part: where that finding was not
/// replayed itself, the change saves it no more than all of that part.
fn hear_each_other(analysis: &mut Analysis) {
    let said: Vec<(usize, Replay)> =
        analysis.findings.iter().enumerate().filter_map(|(at, f)| Some((at, *f.replay.clone()?))).collect();
    for (by, replay) in said.iter().filter(|(_, replay)| replay.trustworthy()) {
        let Ok(at) = analysis.connections.binary_search_by_key(&replay.connection, |c| c.id) else {
            continue;
        };
        let c = &analysis.connections[at];
        for (_, f) in analysis.findings.iter_mut().enumerate().filter(|(at, _)| at != by) {
            let all = f.of_requests();
            if all <= Nanos::ZERO || lost_in(f, c, replay.exchanges) < all {
                continue;
            }
            for fix in f.fixes.iter_mut().filter(|fix| !fix.replayed) {
                let tried =
                    |n: &&NoEffect| n.id == tried_as(fix.fix).info().id && at_the_place(n.place, fix.place);
                if let Some(most) = replay.no_help.iter().filter(tried).map(|n| n.saves).max() {
                    fix.saves = Some(most.clamp(Nanos::ZERO, all));
                    fix.replayed = true;
                }
            }
            drop_what_saves_nothing(f, &[]);
        }
    }
}

fn replay(f: &mut Finding, c: &Connection, left: &mut u64) {
    let Ok(x) = extract(c, f.example.exchange) else { return };
    let Some((question, modelled)) = fitted(&x, left) else { return };
    let mut done = Replay {
        connection: c.id,
        exchanges: x.exchanges,
        observed: x.observed,
        modelled,
        assumed: x.assumed.clone(),
        together: None,
        no_help: Vec::new(),
    };
    let (lost_here, most) = (lost_in(f, c, x.exchanges), f.of_requests());
    let cause = Some((f.cause, f.side));
    let Some((_, cause_before)) = spent(&question, x.end, cause, left) else { return };
    let trusted = done.trustworthy();
    let changes = question.changes();
    let mut helping: Vec<(Nanos, &Change)> = Vec::new();
    for change in &changes {
        if change.comparison && !f.fixes.iter().any(|fix| fix.fix == change.fix) {
            continue;
        }
        let Some((time, cause_after)) = spent(&change.question, x.end, cause, left) else { continue };
        let gain = modelled - time;
        // A change may help elsewhere too: of this finding it saves no more than this cause loses.
        let here = if cause_before > Nanos::ZERO { gain.min(cause_before - cause_after) } else { gain };
        if gain.times(50) >= modelled {
            // Pipelining changes the application, so it is not combined with settings.
            if !change.comparison && change.fix != FixId::FewerRoundTrips {
                helping.push((time, change));
            }
        } else if POPULAR.contains(&change.fix) && !change.comparison {
            let (id, place, what) = (change.fix.info().id, change.place, change.what.clone());
            done.no_help.push(NoEffect { id, place, what, saves: gain });
        }
        for fix in f.fixes.iter_mut().filter(|fix| matches(change, fix.fix, fix.place)) {
            if fix.predicted.is_some_and(|t| t <= time) {
                continue;
            }
            fix.predicted = Some(time);
            if trusted && lost_here > Nanos::ZERO && most > Nanos::ZERO {
                // What the example gains, for each nanosecond of this cause in it, over all of the finding; never
                // more than the spans of requests hold.
                let all = here.0.max(0) as i128 * most.0 as i128 / lost_here.0 as i128;
                fix.saves = Some(Nanos(all as i64).min(most));
                fix.replayed = true;
            }
        }
    }
    if trusted {
        drop_what_saves_nothing(f, &done.no_help);
    }
    helping.sort_by_key(|h| h.0);
    done.together = together(&helping, x.end, left);
    f.replay = Some(Box::new(done));
}

/// A fix that wins nothing in a replay to be trusted is no fix: what is proposed and what would not help never meet. Less than a
/// hundredth is nothing, as in `predict`: one write or one packet less moves that much about.
fn drop_what_saves_nothing(f: &mut Finding, no_help: &[NoEffect]) {
    let all = f.of_requests();
    let useless = |fix: &Fix| match fix.replayed {
        true => fix.saves.is_none_or(|s| s.0.saturating_mul(100) < all.0),
        false => {
            let at_its_place = |n: &&NoEffect| n.place == fix.place || n.place == "both";
            no_help.iter().filter(at_its_place).any(|n| n.id == fix.fix.info().id)
        }
    };
    let (none, some): (Vec<Fix>, Vec<Fix>) = std::mem::take(&mut f.fixes).into_iter().partition(useless);
    f.fixes = some;
    let because = || "a replay of the example with it loses as much to this".to_owned();
    f.refuted.extend(none.into_iter().map(|fix| Refuted { fix: fix.fix, because: because() }));
}

/// The question, corrected once where a buffer that does not show exactly makes the time.
fn fitted(x: &Extract, left: &mut u64) -> Option<(Question, Nanos)> {
    let mut question = x.question.clone();
    let mut time = time_of(&question, x.end, left)?;
    for _ in 0..2 {
        let ratio = time.0 as f64 / x.observed.0.max(1) as f64;
        let fits = question.scenario.hosts.iter().any(|h| h.sndbuf.is_some() || h.rcvbuf.is_some());
        if !fits || (0.97..1.03).contains(&ratio) || !(0.3..3.0).contains(&ratio) {
            break;
        }
        let mut next = question.clone();
        for h in &mut next.scenario.hosts {
            for buffer in [&mut h.sndbuf, &mut h.rcvbuf].into_iter().flatten() {
                *buffer = ((*buffer as f64 * ratio) as u64).max(2304);
            }
        }
        let better = time_of(&next, x.end, left)?;
        if (better - x.observed).0.abs() >= (time - x.observed).0.abs() {
            break;
        }
        (question, time) = (next, better);
    }
    Some((question, time))
}

/// Time of the exchanges that count, with the setup, at the tap's end; none if it costs too much.
fn time_of(question: &Question, end: u8, left: &mut u64) -> Option<Nanos> {
    spent(question, end, None, left).map(|s| s.0)
}

/// That time, and what of it a cause takes.
fn spent(
    question: &Question,
    end: u8,
    cause: Option<(Cause, Option<Side>)>,
    left: &mut u64,
) -> Option<(Nanos, Nanos)> {
    let mut question = question.clone();
    question.max_events = *left;
    let answer = question.ask().ok()?;
    *left = left.saturating_sub(answer.outcome.events);
    if !answer.complete {
        return None;
    }
    let time = |s: &Story| {
        let setup = s.setup.iter().fold(Nanos::ZERO, |t, x| t + (x.end - x.start));
        s.exchanges.iter().fold(setup, |t, x| t + (x.end - x.start))
    };
    let stories = question.stories(&answer, end);
    let total = stories.iter().map(time).fold(Nanos::ZERO, |a, b| a + b);
    // The model names no side where the analysis says that it is the network's.
    let same = |of: Option<Side>, b: Option<Side>| of == b || b.is_none() && of == Some(Side::Network);
    let of_cause = stories
        .iter()
        .flat_map(Story::budget)
        .filter(|b| cause.is_some_and(|(cause, side)| cause == b.0 && same(side, b.1)));
    Some((total, of_cause.fold(Nanos::ZERO, |t, b| t + b.2)))
}

/// Time of the finding's cause in the replayed part.
fn lost_in(f: &Finding, c: &Connection, (first, last): (u32, u32)) -> Nanos {
    let replayed = |part| match part {
        Part::Setup => first == 1,
        Part::Exchange(id) => (first..=last).contains(&id),
        Part::Gap(_) => false,
    };
    let made_of = f.cause.info().made_of;
    let of = c.spans().filter(|(id, _)| replayed(id.part)).map(|(_, span)| span).filter(|s| {
        if made_of.is_empty() { s.cause == f.cause && s.side == f.side } else { made_of.contains(&s.cause) }
    });
    of.fold(Nanos::ZERO, |t, s| t + s.duration())
}

/// Whether a change is what a fix of the table proposes, at that place.
fn matches(change: &Change, fix: FixId, place: &str) -> bool {
    change.fix == tried_as(fix)
        && (change.place == place
            || matches!(change.place, "path")
            || place == "host" && change.place == "both")
}

/// The best changes together. The first that cannot be replayed within the budget is the last that is tried.
fn together(helping: &[(Nanos, &Change)], end: u8, left: &mut u64) -> Option<Together> {
    const TRIED: usize = 5;
    // An example is a small part of a finding: what takes 2 % of what is left counts.
    let worth = |best: Nanos, now: Nanos| now.times(50) < best.times(49);
    let mut spent = false;
    let time = |question: &Question| {
        let time = if spent { None } else { time_of(question, end, left) };
        spent = time.is_none();
        time
    };
    let (chosen, predicted) = combine(&helping[..helping.len().min(TRIED)], worth, time)?;
    let changes: Vec<_> = chosen.iter().map(|&i| (helping[i].1.fix, helping[i].1.place)).collect();
    // One change at both ends is a combination, too: fixes are listed by end.
    let several = changes.len() > 1 || changes.first().is_some_and(|c| c.1 == "both");
    several.then_some(Together { changes, predicted })
}
