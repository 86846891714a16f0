//! The findings of one answer do not contradict each other: what is offered for one of them is not called vain beside another.

use crate::fixes::place_of;
use crate::result::{Finding, NoEffect, Refuted};
use std::mem::take;
use tcpwhy_base::{Cause, FixId, Nanos};

/// Settings that change the same thing are tried in the model as one.
pub(crate) fn tried_as(fix: FixId) -> FixId {
    match fix {
        FixId::CorkWhole => FixId::OneWrite,
        FixId::Wmem => FixId::UnsetSndbuf,
        FixId::Rmem | FixId::BiggerWindow => FixId::UnsetRcvbuf,
        other => other,
    }
}

/// A change at `tried` is one that a fix at `place` makes, among others.
pub(crate) fn at_the_place(tried: &str, place: &str) -> bool {
    tried == place || matches!(tried, "path" | "both") || place == "host"
}

/// Beside a link that is full a fix is offered if it saves so many times less than its finding took, or more.
const WORTH: i64 = 8;

/// A fix that a finding offers.
struct Offer {
    by: usize,
    fix: FixId,
    place: &'static str,
}

/// Lets the findings agree, once each has its fixes and again once they were tried in the model.
pub(crate) fn agree(findings: &mut [Finding]) {
    inherit(findings);
    findings.iter_mut().for_each(bound);
    let worth = |f: &Finding, at: usize| f.fixes[at].saves.is_some_and(|s| s > Nanos::ZERO);
    let offers: Vec<Offer> = findings
        .iter()
        .enumerate()
        .flat_map(|(by, f)| (0..f.fixes.len()).filter(|&at| worth(f, at)).map(move |at| (by, &f.fixes[at])))
        .map(|(by, fix)| Offer { by, fix: fix.fix, place: fix.place })
        .collect();
    for at in 0..findings.len() {
        let mut refuted = take(&mut findings[at].refuted);
        let (cause, side) = (findings[at].cause, findings[at].side);
        refuted.retain(|r| {
            let place = place_of(r.fix.info().place, cause, side);
            !offers.iter().any(|o| o.fix == r.fix && o.place == place && beside(findings, o.by, at))
        });
        findings[at].refuted = refuted;
        if let Some(replay) = &mut findings[at].replay {
            replay.no_help.retain(|n| !offers.iter().any(|o| offers_it(o, n)));
        }
    }
}

/// No fix saves more than what there is of its finding.
fn bound(f: &mut Finding) {
    // Requests that nobody made save no time: what lies between them, after the last byte or in another finding.
    let most = f.to_save();
    let shared = f.link_full.filter(|full| full.time.times(2) > f.of_requests());
    // What one transfer gains alone others of its link lose (rule 99): replays are of one.
    for fix in f.fixes.iter_mut().filter(|fix| fix.saves.is_some()) {
        fix.replayed &= shared.is_none();
        let of_link = shared.is_some() && f.cause == Cause::Bandwidth;
        fix.saves = fix.saves.map(|saves| if of_link { most } else { saves.min(most) });
    }
    if let Some(full) = shared.filter(|_| most.times(WORTH) < f.of_requests()) {
        let because = format!("{} transfers filled the link meanwhile", full.link.transfers);
        f.refuted.extend(f.fixes.drain(..).map(|fix| Refuted { fix: fix.fix, because: because.clone() }));
    }
}

/// Both are about the same connection, as far as these are kept.
fn beside(findings: &[Finding], one: usize, other: usize) -> bool {
    let (a, b) = (&findings[one], &findings[other]);
    a.connections.iter().any(|c| b.connections.contains(c))
}

fn offers_it(offer: &Offer, vain: &NoEffect) -> bool {
    tried_as(offer.fix).info().id == vain.id && at_the_place(vain.place, offer.place)
}

/// What is said of a whole connection is the time of other findings: a fix that helps none of them helps it neither.
fn inherit(findings: &mut [Finding]) {
    for at in 0..findings.len() {
        let f = &findings[at];
        let made_of = f.cause.info().made_of;
        if made_of.is_empty() || f.fixes.is_empty() {
            continue;
        }
        let parts: Vec<&Finding> =
            findings.iter().filter(|p| made_of.contains(&p.cause) && p.side == f.side).collect();
        let vain = |fix: FixId| -> Option<Refuted> {
            let offered = parts.iter().any(|p| p.fixes.iter().any(|x| x.fix == fix));
            let why = || parts.iter().flat_map(|p| &p.refuted).find(|r| r.fix == fix).cloned();
            if offered { None } else { why() }
        };
        let refuted: Vec<Refuted> = f.fixes.iter().filter_map(|x| vain(x.fix)).collect();
        let f = &mut findings[at];
        f.fixes.retain(|x| !refuted.iter().any(|r| r.fix == x.fix));
        f.refuted.extend(refuted);
    }
}
