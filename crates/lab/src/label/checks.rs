//! From painted time to what an answer is checked against.

use super::paint::Painted;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tcpwhy_base::{CAUSES, Cause, Class, Kind, Likeness, Nanos};

/// Below this share of a capture's time a cause is not the dominant one (the rule of the words: dominant
/// avoidable cause).
const DOMINANT: f64 = 0.05;
/// What is within so much of the largest may come first too.
const CLOSE: f64 = 0.75;
/// Shorter sums drown in what hosts need for a wake-up.
const NOISE_MS: f64 = 2.0;
/// Readings between which a label does not choose: what the link and a loss could both have held up is the
/// loss's, or the link's.
const FAIR: [usize; 2] = [0, 1];
/// More of unknown causes than this, and nothing is asked.
const UNKNOWN: f64 = 0.10;

/// What an answer about some connections at one end is checked against.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// `all`.
    pub connections: &'static str,
    /// `cause`, `dominant`, `clean` or `any`.
    pub kind: &'static str,
    /// Right answers.
    pub dominant: Vec<&'static str>,
    /// Half right: this end can hardly tell them from the right one.
    pub weak: Vec<&'static str>,
    /// Sums over some causes.
    pub parts: Vec<Part>,
    /// None of these above 2 %.
    pub forbidden: Vec<&'static str>,
    /// Of a control: what may hold its time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inherent: Vec<&'static str>,
    /// Of a control: avoidable causes that may show nevertheless.
    pub exempt: Vec<&'static str>,
    /// Whose it may be; null: not asked.
    pub side: Option<Vec<&'static str>>,
    /// Whether this end can see it.
    pub observable: &'static str,
    /// Where the figures come from.
    pub basis: String,
    /// Setup and exchanges.
    pub weight_ms: f64,
}

/// A sum over causes.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Which.
    pub causes: Vec<&'static str>,
    /// How long.
    pub ms: f64,
    /// How far off an answer may be.
    pub tolerance_ms: f64,
}

/// Right answers for a cause, and half right ones at this tap. `far`: that of who received most.
fn answers(cause: Cause, far: bool) -> (Vec<Cause>, Vec<Cause>) {
    let half: &[Likeness] = if far { &[Likeness::Close, Likeness::FromAfar] } else { &[Likeness::Close] };
    let right = std::iter::once(cause).chain(cause.info().looks_like(&[Likeness::Same]));
    (right.collect(), cause.info().looks_like(half).collect())
}

/// From outside it may look like an application that was not there.
fn like_a_pause(cause: Cause, far: bool) -> bool {
    answers(cause, far).1.iter().any(|c| c.class() == Class::Application)
}

/// Time by cause over all connections, by reading.
#[derive(Debug, Default)]
pub(super) struct Sums {
    total: [Nanos; 3],
    causes: BTreeMap<Cause, ([Nanos; 3], usize)>,
    unknown: Nanos,
}

impl Sums {
    pub(super) fn add(&mut self, reading: usize, painted: &Painted) {
        self.total[reading] += painted.total;
        for &(start, end, cause) in &painted.spans {
            match cause {
                Some(cause) => {
                    let entry = self.causes.entry(cause).or_default();
                    entry.0[reading] += end - start;
                    entry.1 += usize::from(reading == 0);
                }
                None if reading == 0 => self.unknown += end - start,
                None => {}
            }
        }
    }

    /// Milliseconds of some causes, and by how much fair readings differ.
    fn of(&self, causes: &[Cause]) -> (f64, f64, usize) {
        let sum = |reading: usize| {
            let of = |c: &Cause| self.causes.get(c).map_or(0.0, |e| e.0[reading].as_ms());
            causes.iter().map(of).sum::<f64>()
        };
        let (loss, link, no_rate) = (sum(0), sum(1), sum(2));
        let middle = (loss + link) / 2.0;
        // An answer that does not know the link's rate may give its share to the limit; not much more than that.
        let slack = (loss - link).abs() / 2.0 + (no_rate - loss).max(0.0).min(0.1 * middle);
        let count = causes.iter().filter_map(|c| self.causes.get(c)).map(|e| e.1).sum();
        (middle, slack, count)
    }

    /// What an answer is checked against. `far`: this is the tap of who received most; `asked`: everything
    /// came to its end.
    pub(super) fn check(&self, far: bool, asked: bool, rtt: Nanos) -> Check {
        let total = self.total[0].as_ms().max(1e-6);
        let unknown = self.unknown.as_ms() / total;
        let avoidable = |c: &Cause| c.class() == Class::Tcp;
        let own = || self.causes.keys().copied().filter(avoidable);
        let small = DOMINANT * total >= NOISE_MS
            && own().map(|c| self.of(&[c]).0).sum::<f64>() + self.unknown.as_ms() < DOMINANT / 2.0 * total;
        let tops = self.tops(own().collect());
        let kind = match &tops {
            _ if !asked || unknown > UNKNOWN => "any",
            Some(tops) if !tops.iter().any(|t| like_a_pause(t.1, far)) => "cause",
            // Where an application's pause may be the half right answer, all classes stand to choice.
            Some(tops) if tops.iter().all(|t| t.0 > total / 2.0) => "dominant",
            Some(_) => "any",
            None if small => "clean",
            None => "any",
        };
        let (mut dominant, mut weak) = (BTreeSet::new(), BTreeSet::new());
        for &(_, cause) in tops.iter().flatten().filter(|_| matches!(kind, "cause" | "dominant")) {
            let (right, half) = answers(cause, far);
            dominant.extend(right);
            weak.extend(half);
        }
        let ids = |set: &BTreeSet<Cause>| set.iter().map(|c| c.info().id).collect::<Vec<_>>();
        let parts = if kind == "any" { Vec::new() } else { self.parts(total, rtt) };
        let weak: BTreeSet<Cause> = weak.difference(&dominant).copied().collect();
        let inherent: BTreeSet<Cause> = self
            .causes
            .keys()
            .copied()
            .filter(|c| !avoidable(c))
            .chain([Cause::PathDelay, Cause::Bandwidth, Cause::Handshake])
            .collect();
        Check {
            connections: "all",
            kind,
            dominant: ids(&dominant),
            weak: ids(&weak),
            parts,
            forbidden: if asked { self.forbidden() } else { Vec::new() },
            inherent: if kind == "clean" { ids(&inherent) } else { Vec::new() },
            exempt: Vec::new(),
            side: None,
            observable: if kind == "any" { "partly" } else { "yes" },
            basis: self.basis(total),
            weight_ms: round(total),
        }
    }

    /// What may come first, with its milliseconds, in each of the two readings that are fair; none, where it
    /// is too little in one of them: then not to name it is fair as well.
    fn tops(&self, causes: Vec<Cause>) -> Option<Vec<(f64, Cause)>> {
        let mut out = Vec::new();
        for reading in FAIR {
            let total = self.total[reading].as_ms();
            let sum = |c: Cause| self.causes.get(&c).map_or(0.0, |e| e.0[reading].as_ms());
            let most = causes.iter().map(|&c| sum(c)).fold(0.0, f64::max);
            if most < (DOMINANT * total).max(NOISE_MS) {
                return None;
            }
            out.extend(causes.iter().map(|&c| (sum(c), c)).filter(|t| t.0 >= CLOSE * most));
        }
        Some(out)
    }

    fn parts(&self, total: f64, rtt: Nanos) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut taken = BTreeSet::new();
        for &cause in self.causes.keys().filter(|c| c.class() != Class::Inherent) {
            let family = cause.info().family;
            let causes = if family.is_empty() { &[cause][..] } else { family };
            if !taken.insert(causes[0]) {
                continue;
            }
            let (ms, slack, count) = self.of(causes);
            if ms < DOMINANT * total || ms < 3.0 {
                continue;
            }
            // A twentieth; what passes between a kernel's decision and the tap, each time; a tenth of a round trip for
            // where the borders of a wait lie.
            let borders = (rtt.as_ms() / 10.0).max(2.0) + 0.15 * count as f64;
            parts.push(Part {
                causes: causes.iter().map(|c| c.info().id).collect(),
                ms: round(ms),
                tolerance_ms: round(0.05 * ms + borders.min(0.5 * ms) + slack),
            });
        }
        parts
    }

    /// Avoidable causes that took no time at all, nor any that could be taken for them.
    fn forbidden(&self) -> Vec<&'static str> {
        let mut seen: BTreeSet<Cause> = BTreeSet::new();
        for &cause in self.causes.keys() {
            for far in [false, true] {
                let (right, weak) = answers(cause, far);
                seen.extend(right.into_iter().chain(weak).chain(cause.info().family.iter().copied()));
            }
        }
        if self.unknown > Nanos::ZERO {
            return Vec::new();
        }
        CAUSES
            .iter()
            .filter(|row| row.class == Class::Tcp && row.kind == Kind::Span && !seen.contains(&row.cause))
            // How slow start ends and how repairs go over into the smaller window is a matter of degree.
            .filter(|row| {
                !matches!(
                    row.cause,
                    Cause::CongestionWindow
                        | Cause::Queueing
                        | Cause::HostDelay
                        | Cause::Pacing
                        | Cause::SpuriousRecovery
                )
            })
            .map(|row| row.id)
            .collect()
    }

    fn basis(&self, total: f64) -> String {
        let mut known: Vec<(f64, &str, usize)> = self
            .causes
            .iter()
            .map(|(&c, e)| (self.of(&[c]).0, c.info().id, e.1))
            .filter(|k| k.0 >= 0.01 * total)
            .collect();
        known.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut text: Vec<String> =
            known.iter().map(|(ms, id, n)| format!("{id} {ms:.1} ms in {n}")).collect();
        if self.unknown.as_ms() >= 0.01 * total {
            text.push(format!("not known {:.1} ms", self.unknown.as_ms()));
        }
        format!("of {total:.1} ms: {}", text.join(", "))
    }
}

fn round(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}
