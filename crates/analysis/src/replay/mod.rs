//! What each fix would do: the workload of a finding's example is taken out of the capture, replayed in the model, and
//! replayed again with the fix. The model is first asked to reproduce what was seen, and its error stands beside.

mod extract;
mod large;
mod reader;
mod reuse;
mod runs;
mod spent;

pub(crate) use extract::extract_with;
pub use extract::{Extract, extract};
pub(crate) use reader::Over;

use crate::Analysis;
use crate::findings::agree::{agree, at_the_place, tried_as};
use crate::place::Part;
use crate::profile::set_its_buffer;
use crate::result::{Connection, Finding, Fix, NoEffect, Refuted, Replay};
use reuse::Reuse;
use runs::Runs;
use spent::Spent;
use tcpwhy_base::{Cause, Class, FixId, Nanos, Side};
use tcpwhy_model::{Change, POPULAR};

/// Findings that are replayed, worst first, and their least share of the time.
const FINDINGS: usize = 8;
const SHARE: f64 = 0.01;
/// Fills the findings of a capture with predictions, as far as examples can be replayed within the budget.
pub fn predict(analysis: &mut Analysis) {
    let all = analysis.totals.connections.saturating_sub(analysis.totals.unlisted);
    let reuse = Reuse::among(&analysis.connections, all);
    let mut runs = Runs::new(reuse, refuted(&analysis.findings));
    let worth = |f: &&mut Finding| {
        f.cause.class() != Class::Application && f.cause.class() != Class::Unknown && f.share >= SHARE
    };
    // They stand worst first.
    let mut lacking = Vec::new();
    for f in analysis.findings.iter_mut().filter(worth).take(FINDINGS) {
        let found = analysis.connections.binary_search_by_key(&f.example.connection, |c| c.id);
        if let Ok(at) = found
            && replay(f, &analysis.connections[at], &mut runs).is_err()
        {
            lacking.push((f.cause, f.side));
        }
    }
    hear_each_other(analysis, &lacking);
    Reuse::among(&analysis.connections, all).spares(&mut analysis.findings);
    agree(&mut analysis.findings);
}

/// Changes that the capture speaks against, and that no finding offers: however fast they are in the model,
/// nobody is told to make them.
fn refuted(findings: &[Finding]) -> Vec<FixId> {
    let offered = |fix: FixId| findings.iter().flat_map(|f| &f.fixes).any(|x| tried_as(x.fix) == fix);
    let all = findings.iter().flat_map(|f| &f.refuted).map(|r| tried_as(r.fix));
    all.filter(|&fix| !offered(fix)).collect()
}

/// What a replay says of a change holds for every finding whose time lies in the replayed part: where that
/// finding was not replayed itself, the change saves it no more than all of that part. Of what replays are
/// `lacking` they say nothing.
fn hear_each_other(analysis: &mut Analysis, lacking: &[(Cause, Option<Side>)]) {
    let said: Vec<(usize, Replay)> =
        analysis.findings.iter().enumerate().filter_map(|(at, f)| Some((at, *f.replay.clone()?))).collect();
    for (by, replay) in said.iter().filter(|(_, replay)| replay.trustworthy()) {
        let Ok(at) = analysis.connections.binary_search_by_key(&replay.connection, |c| c.id) else {
            continue;
        };
        let c = &analysis.connections[at];
        for (_, f) in analysis.findings.iter_mut().enumerate().filter(|(at, _)| at != by) {
            let all = f.of_requests();
            let said = !lacking.contains(&(f.cause, f.side));
            if !said || all <= Nanos::ZERO || lost_in(f, c, replay.exchanges) < all {
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

/// The replay lacks what the finding is about.
struct Lacking;

fn replay(f: &mut Finding, c: &Connection, runs: &mut Runs<'_>) -> Result<(), Lacking> {
    let Some((example, left)) = runs.example(c, f.example.exchange) else { return Ok(()) };
    let (exchanges, modelled) = (example.x.exchanges, example.before.time);
    let mut done = Replay {
        connection: c.id,
        exchanges,
        observed: example.x.observed,
        modelled,
        assumed: example.x.assumed.clone(),
        together: None,
        no_help: Vec::new(),
    };
    let (lost_here, most) = (lost_in(f, c, exchanges), f.of_requests());
    let cause = (f.cause, f.side);
    let cause_before = example.before.by(cause);
    let trusted = done.trustworthy();
    // Where within a message a program paused is not replayed, nor what a window does behind that: if the most
    // of this time, a hundredth of all or more, is in no replay, none can say that a fix of it is for nothing.
    let lacks = |time: Nanos| time.times(2) < lost_here;
    let shows = lost_here.times(100) >= done.observed;
    if trusted && shows && lacks(cause_before) && !lacks(done.observed - modelled) {
        return Err(Lacking);
    }
    let fixes: Vec<FixId> = f.fixes.iter().map(|fix| fix.fix).collect();
    example.try_all(|change| fixes.contains(&change.fix), left);
    for (change, spent) in example.tried(|change| fixes.contains(&change.fix)) {
        let (time, gain) = (spent.time, modelled - spent.time);
        // A change may help elsewhere too: of this finding it saves no more than this cause loses.
        let here = if cause_before > Nanos::ZERO {
            gain.min(held_by(&example.before, cause) - held_by(spent, cause))
        } else {
            gain
        };
        if !example.helps(spent) && POPULAR.contains(&change.fix) && !change.comparison {
            let (id, place, what) = (change.fix.info().id, change.place, change.what.clone());
            done.no_help.push(NoEffect { id, place, what, saves: gain });
        }
        let made = |fix: &&mut Fix| matches(change, fix.fix, fix.place) && !has_no_effect_where_set(fix, c);
        // How a receive window grows with packets that take more memory the model does not know (rule 167).
        let grows = change.fix == FixId::LargerMtu && c.budget.get(Cause::ReceiveWindow) > Nanos::ZERO;
        for fix in f.fixes.iter_mut().filter(made) {
            if fix.predicted.is_some_and(|t| t <= time) {
                continue;
            }
            fix.predicted = (!grows).then_some(time);
            if trusted && lost_here > Nanos::ZERO && most > Nanos::ZERO {
                // What the example gains, for each nanosecond of this cause in it, over all of the finding; never
                // more than the spans of requests hold.
                let all = here.0.max(0) as i128 * most.0 as i128 / lost_here.0 as i128;
                fix.saves = Some(Nanos(all as i64).min(most));
                fix.replayed = !grows;
            }
        }
    }
    if trusted {
        drop_what_saves_nothing(f, &done.no_help);
    }
    done.together = example.together(left);
    f.replay = Some(Box::new(done));
    Ok(())
}

/// What a cause took, and what comes in its place: on a connection that is kept, and lies idle, a window
/// grows again as on a new one.
fn held_by(spent: &Spent, cause: (Cause, Option<Side>)) -> Nanos {
    let again =
        if cause.0 == Cause::SlowStart { spent.by((Cause::IdleRestart, cause.1)) } else { Nanos::ZERO };
    spent.by(cause) + again
}

/// A fix that wins nothing in a replay to be trusted is no fix: what is proposed and what would not help
/// never meet. Less than a hundredth is nothing, as in `predict`: one write or one packet less moves that
/// much about.
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
/// A scale that small says that SO_RCVBUF was set, or that `tcp_rmem` was lowered: what to raise of that has its effect in the second case
/// alone, and which of them it was no capture tells (rule 164).
fn has_no_effect_where_set(fix: &Fix, c: &Connection) -> bool {
    let end = &c.ends[usize::from(fix.place == "server")];
    fix.fix == FixId::Rmem && set_its_buffer(end.os, end.wscale)
}

fn matches(change: &Change, fix: FixId, place: &str) -> bool {
    change.fix == tried_as(fix)
        && (change.place == place
            || matches!(change.place, "path")
            || place == "host" && change.place == "both")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Example, Frames};

    /// A window that grew by itself needs no other buffer, but may begin with more; without scaling nothing
    /// of the kind helps.
    #[test]
    fn what_is_refuted_and_nowhere_offered_is_not_combined() {
        let refuting = |offered: &[FixId]| {
            let example = Example::new(1, 1, Frames::new(0, 1, 2, &[1]), Nanos::ZERO, Nanos::millis(10));
            let mut f = Finding::new(Cause::ReceiveWindow, Some(Side::Client), Nanos::millis(10), example);
            f.fixes = offered.iter().map(|&fix| Fix::new(fix, "client")).collect();
            f.refuted = vec![Refuted::new(FixId::UnsetRcvbuf, "so it is")];
            refuted(&[f])
        };
        assert_eq!(refuting(&[]), [FixId::UnsetRcvbuf]);
        assert_eq!(refuting(&[FixId::Initcwnd]), [FixId::UnsetRcvbuf]);
        assert!(refuting(&[FixId::Rmem]).is_empty());
    }
}
