//! The findings of a capture: summed over connections as they come, so that none of them needs to be kept.

use crate::Analysis;
use crate::findings::{
    self, Basis, EVIDENCE, Rollup, Rollups, add_whole_connection_findings, finding, joined,
    may_have_whole_connection_findings,
};
use crate::fixes::{Brief, fixes_for};
use crate::result::{Connection, Example, Extremes, Finding, Frames};
use hashbrown::HashMap;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Endpoint, Nanos, Side};

/// Connections named per finding.
const CONNECTIONS: usize = 20;

/// Sums over connections.
#[derive(Debug)]
pub(crate) struct Sums {
    measured: Nanos,
    all: Vec<Over>,
    /// Connections with one exchange or less, by client address and server.
    single: HashMap<(IpAddr, Endpoint), Single>,
    /// No more pairs of addresses than this are told apart.
    most_pairs: usize,
}

/// Connections of one client address to one server with one exchange or less each.
#[derive(Debug)]
struct Single {
    /// The time of their setups.
    setup: Nanos,
    count: u64,
    first: (Brief, Frames),
}

/// A finding that grows over connections, and which of them lost most.
#[derive(Debug)]
struct Over {
    finding: Finding,
    worst: Vec<(Nanos, Brief)>,
    most: Nanos,
}

impl Sums {
    /// No connection yet.
    pub(crate) fn new(most_pairs: usize) -> Sums {
        Sums { measured: Nanos::ZERO, all: Vec::new(), single: HashMap::new(), most_pairs }
    }

    /// Adds a connection.
    pub(crate) fn add(&mut self, c: &Connection, basis: &Basis) {
        self.measured += c.measured();
        for r in &basis.rollups.0 {
            let sums = (r.cause, r.side, r.tail, r.lost, r.occurrences, r.range);
            self.add_finding(c, || finding(r, 1.0), sums);
        }
        if may_have_whole_connection_findings(c, basis) {
            let mut special = Vec::new();
            add_whole_connection_findings(c, basis, &mut special, 1.0);
            for f in special {
                let sums = (f.cause, f.side, f.tail, f.lost, f.occurrences, f.range);
                self.add_finding(c, || f.clone(), sums);
            }
        }
        self.add_single(c, basis.file);
    }

    fn add_finding(
        &mut self,
        c: &Connection,
        make: impl Fn() -> Finding,
        (cause, side, tail, lost, n, range): (Cause, Option<Side>, Nanos, Nanos, u64, Extremes),
    ) {
        let Some(over) = self.all.iter_mut().find(|o| (o.finding.cause, o.finding.side) == (cause, side))
        else {
            let mut finding = make();
            finding.example.connection = c.id;
            self.all.push(Over { finding, worst: vec![(lost, Brief::of(c))], most: lost });
            return;
        };
        let a = &mut over.finding;
        let room = EVIDENCE.saturating_sub(a.evidence.len());
        a.lost += lost;
        a.tail += tail;
        a.connection_count += 1;
        a.range = joined((a.occurrences, a.range), (n, range));
        a.occurrences += n;
        if lost > over.most || room > 0 {
            let f = make();
            a.evidence.extend(f.evidence.iter().take(room));
            if lost > over.most {
                over.most = lost;
                a.example = Example { connection: c.id, ..f.example };
                a.facts = f.facts;
                a.text = f.text;
            }
        }
        if over.worst.len() < 4 * CONNECTIONS {
            over.worst.push((lost, Brief::of(c)));
        } else if let Some(least) = over.worst.iter_mut().min_by_key(|w| w.0).filter(|w| w.0 < lost) {
            *least = (lost, Brief::of(c));
        }
    }

    fn add_single(&mut self, c: &Connection, file: u16) {
        let Some(setup) = &c.setup else { return };
        let exchanges = c.exchanges.len() as u64 + c.exchanges_omitted.count;
        if exchanges > 1 || c.bytes[0] == 0 {
            return;
        }
        let pair = (c.client.ip, c.server);
        if self.single.len() >= self.most_pairs && !self.single.contains_key(&pair) {
            return;
        }
        let first = || (Brief::of(c), Frames::new(file, c.frames.0, c.frames.1, &[c.frames.0]));
        let single = self.single.entry(pair).or_insert_with(|| Single {
            setup: Nanos::ZERO,
            count: 0,
            first: first(),
        });
        single.setup += setup.end - setup.start;
        single.count += 1;
        if c.id < single.first.0.id {
            // Ended later, begun earlier.
            single.first = first();
        }
    }

    /// All findings, worst first, with fixes. `inherent`: rollups of class I over the whole capture. `brief`: looks up the
    /// connection of a rollup's example.
    pub(crate) fn findings(
        mut self,
        inherent: &Rollups,
        brief: impl Fn(&Rollup) -> Option<Brief>,
    ) -> Vec<Finding> {
        let total = self.measured.0.max(1) as f64;
        let mut found: Vec<Finding> = Vec::with_capacity(self.all.len());
        for mut over in std::mem::take(&mut self.all) {
            over.worst.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.id.cmp(&b.1.id)));
            let mut f = over.finding;
            f.share = (f.waited().0 as f64 / total).min(1.0);
            f.connections = over.worst.iter().take(CONNECTIONS).map(|w| w.1.id).collect();
            if let Some((_, worst)) = over.worst.first() {
                f.fixes = fixes_for(f.cause, f.side, f.lost, worst, &f.facts);
            }
            found.push(f);
        }
        for r in &inherent.0 {
            if let Some(brief) = brief(r) {
                let mut f = finding(r, total);
                f.connections = vec![brief.id];
                f.fixes = fixes_for(f.cause, f.side, f.lost, &brief, &f.facts);
                f.evidence.clear();
                found.push(f);
            }
        }
        found.extend(self.short_connections(total));
        findings::sort(&mut found);
        found
    }

    /// Many connections from one client address to one server with an exchange or less each: reuse saves all setups
    /// but one.
    fn short_connections(self, total: f64) -> Option<Finding> {
        let groups = self.single.into_iter().filter(|(_, g)| g.count >= 3);
        let ((_, server), Single { setup, count: n, first: (c, frames) }) =
            groups.min_by(|(_, a), (_, b)| b.setup.cmp(&a.setup).then(a.first.0.id.cmp(&b.first.0.id)))?;
        let lost = setup - setup.part(n as i64);
        let text = format!(
            "{n} connections to {server} with one exchange each; their setups took {setup} together."
        );
        Some(Finding {
            cause: Cause::ShortConnections,
            side: Some(Side::Client),
            lost,
            share: (lost.0 as f64 / total).min(1.0),
            tail: Nanos::ZERO,
            occurrences: n,
            range: Extremes { shortest: Nanos::ZERO, longest: setup.part(n as i64) },
            connections: vec![c.id],
            connection_count: n,
            example: Example { connection: c.id, exchange: 0, frames },
            facts: crate::Facts::None,
            text: Some(text.into_boxed_str()),
            evidence: vec![frames],
            fixes: fixes_for(Cause::ShortConnections, Some(Side::Client), lost, &c, &crate::Facts::None),
            replay: None,
        })
    }
}

/// The findings over connections that ascend by id, each with its basis: worst first, with fixes. `inherent`: rollups of
/// class I over all of them.
pub(crate) fn findings_over(connections: &[Connection], bases: &[Basis], inherent: &Rollups) -> Vec<Finding> {
    let mut sums = Sums::new(usize::MAX);
    connections.iter().zip(bases).for_each(|(c, basis)| sums.add(c, basis));
    sums.findings(inherent, |r| {
        let at = connections.binary_search_by_key(&r.example.example.connection, |c| c.id).ok()?;
        Some(Brief::of(&connections[at]))
    })
}

impl Analysis {
    /// Leaves only the connections that `wanted` chooses: totals and findings are then theirs. What is inherent is
    /// summed over the whole capture only, so it is no finding any more.
    pub fn retain(&mut self, wanted: impl Fn(&Connection) -> bool) {
        let keep: Vec<bool> = self.connections.iter().map(wanted).collect();
        let mut each = keep.iter();
        self.connections.retain(|_| each.next() == Some(&true));
        let mut each = keep.iter();
        self.basis.0.retain(|_| each.next() == Some(&true));
        let totals = &mut self.totals;
        totals.measured = Nanos::ZERO;
        totals.exchanges = 0;
        (totals.budget, totals.gap_budget) = Default::default();
        for c in &self.connections {
            totals.measured += c.measured();
            totals.budget.add_all(&c.budget);
            totals.gap_budget.add_all(&c.gap_budget);
            totals.exchanges += c.exchanges.len() as u64 + c.exchanges_omitted.count;
        }
        self.findings = findings_over(&self.connections, &self.basis.0, &Rollups::default());
    }
}
