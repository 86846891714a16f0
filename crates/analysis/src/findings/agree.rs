//! The findings of one answer do not contradict each other: what is offered for one of them is not called
//! vain beside another.

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

/// Beside a link that is full a fix is offered if it may save an eighth of its finding, what a link that
/// counts as busy may be idle (rule 99).
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
            // A connection that is kept is kept at both ends: which has to change differs by who closes it.
            let there = |o: &Offer| o.place == place || r.fix == FixId::ReuseConnections;
            !offers.iter().any(|o| o.fix == r.fix && there(o) && beside(findings, o.by, at))
        });
        findings[at].refuted = refuted;
        if let Some(replay) = &mut findings[at].replay {
            replay.no_help.retain(|n| !offers.iter().any(|o| offers_it(o, n)));
        }
    }
}

/// No fix saves more than what there is of its finding, and a faster link what transfers waited for it in
/// other findings as well.
fn bound(f: &mut Finding) {
    // Requests that nobody made save no time: what lies between them, after the last byte or in another finding.
    let most = f.to_save();
    // Where that is most of it.
    let shared = f.link_full.filter(|full| full.time.times(2) > f.of_requests());
    // What one transfer gains alone others of its link lose (rule 99): replays are of one.
    for fix in f.fixes.iter_mut().filter(|fix| fix.saves.is_some()) {
        fix.replayed &= shared.is_none();
        fix.predicted = fix.predicted.filter(|_| shared.is_none());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Example, Fix, Frames, LinkFull, SharedLink};
    use tcpwhy_base::Side;

    const MS: fn(i64) -> Nanos = Nanos::millis;

    /// What is left of a fix that a replay of one connection says to save 800 ms, where so much of a finding
    /// of a second passed while a link was full: what it saves, and whether that is the replay's word.
    fn beside_full_link(cause: Cause, full: i64) -> Option<(Nanos, bool)> {
        let example = Example::new(1, 1, Frames::new(0, 1, 2, &[1]), MS(0), MS(1_000));
        let mut f = Finding::new(cause, Some(Side::Server), MS(1_000), example);
        let ip = |last: u8| [10, 0, 0, last].into();
        let (from, to, range) = (ip(2), ip(1), (MS(0), MS(1_000)));
        let link = SharedLink { from, to, transfers: 3, range, bytes: 1_000_000, bandwidth_bps: 8_000_000 };
        f.link_full = Some(LinkFull { time: MS(full), link });
        let mut fix = Fix::new(FixId::FixLoss, "path");
        (fix.saves, fix.predicted, fix.replayed) = (Some(MS(800)), Some(MS(200)), true);
        f.fixes = vec![fix];
        bound(&mut f);
        assert_eq!(f.fixes.len() + f.refuted.len(), 1, "it is offered, or is said not to be");
        assert!(
            f.fixes.iter().all(|fix| fix.predicted.is_some() == fix.replayed),
            "no replay says how long it took"
        );
        f.fixes.first().and_then(|fix| Some((fix.saves?, fix.replayed)))
    }

    /// What one transfer gains others of its link lose: a fix saves what the link was idle for, and is not
    /// offered for less than an eighth; where it was full for most of the time, no replay of one connection
    /// tells. A faster link saves the time of all.
    #[test]
    fn a_full_link_leaves_little_to_save() {
        let window = |full| beside_full_link(Cause::CongestionWindow, full);
        assert_eq!([window(100), window(500)], [Some((MS(800), true)), Some((MS(500), true))]);
        assert_eq!([window(501), window(875)], [Some((MS(499), false)), Some((MS(125), false))]);
        assert_eq!(window(876), None);
        let link = |full| beside_full_link(Cause::Bandwidth, full);
        assert_eq!([link(500), link(3_000)], [Some((MS(800), true)), Some((MS(4_000), false))]);
    }
}
