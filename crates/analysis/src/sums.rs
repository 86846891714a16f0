//! The findings of a capture: summed over connections as they come, so that none of them needs to be kept.

use crate::findings::{
    self, EVIDENCE, Rollup, Rollups, add_whole_connection_findings, finding, joined,
    may_have_whole_connection_findings,
};
use crate::fixes::fixes_for;
use crate::result::{Connection, Finding, Frames};
use hashbrown::HashMap;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Endpoint, Nanos, Side};

/// Connections named per finding.
const CONNECTIONS: usize = 20;

/// What fixes need to know of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    pub(crate) id: u32,
    pub(crate) server: Endpoint,
    /// The smaller of the MSS options.
    pub(crate) mss: Option<u32>,
    pub(crate) rtt: Option<Nanos>,
    pub(crate) bandwidth_bps: Option<u64>,
    pub(crate) bytes: [u64; 2],
    pub(crate) exchanges_omitted: u64,
    file: u16,
    frames: (u64, u64),
}

impl Brief {
    pub(crate) fn of(c: &Connection) -> Brief {
        Brief {
            id: c.id,
            server: c.server,
            mss: c.ends.iter().filter_map(|e| e.mss).min(),
            rtt: c.path.rtt,
            bandwidth_bps: c.path.bandwidth_bps,
            bytes: c.bytes,
            exchanges_omitted: c.exchanges_omitted.count,
            file: c.file,
            frames: c.frames,
        }
    }
}

/// Sums over connections.
#[derive(Debug)]
pub(crate) struct Sums {
    measured: Nanos,
    all: Vec<Over>,
    /// Connections with one exchange or less, by client address and server: the time of their setups, how many, the first.
    single: HashMap<(IpAddr, Endpoint), (Nanos, u64, Brief)>,
    /// No more pairs of addresses than this are told apart.
    most_pairs: usize,
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
    pub(crate) fn add(&mut self, c: &Connection) {
        self.measured += c.measured();
        for r in &c.rollups.0 {
            let sums = (r.cause, r.side, r.tail, r.lost, r.occurrences, r.range);
            self.add_finding(c, || finding(r, 1.0), sums);
        }
        if may_have_whole_connection_findings(c) {
            let mut special = Vec::new();
            add_whole_connection_findings(c, &mut special, 1.0);
            for f in special {
                let sums = (f.cause, f.side, f.tail, f.lost, f.occurrences, f.range);
                self.add_finding(c, || f.clone(), sums);
            }
        }
        self.add_single(c);
    }

    fn add_finding(
        &mut self,
        c: &Connection,
        make: impl Fn() -> Finding,
        (cause, side, tail, lost, n, range): (Cause, Option<Side>, Nanos, Nanos, u64, (Nanos, Nanos)),
    ) {
        let Some(over) = self.all.iter_mut().find(|o| (o.finding.cause, o.finding.side) == (cause, side))
        else {
            let mut finding = make();
            finding.example.0 = c.id;
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
                a.example = (c.id, f.example.1, f.example.2);
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

    fn add_single(&mut self, c: &Connection) {
        let Some(setup) = &c.setup else { return };
        let exchanges = c.exchanges.len() as u64 + c.exchanges_omitted.count;
        if exchanges > 1 || c.bytes[0] == 0 {
            return;
        }
        let pair = (c.client.ip, c.server);
        if self.single.len() >= self.most_pairs && !self.single.contains_key(&pair) {
            return;
        }
        let sum = self.single.entry(pair).or_insert_with(|| (Nanos::ZERO, 0, Brief::of(c)));
        sum.0 += setup.end - setup.start;
        sum.1 += 1;
        if c.id < sum.2.id {
            // Ended later, begun earlier.
            sum.2 = Brief::of(c);
        }
    }

    /// All findings, worst first, with fixes. `inherent` holds the sums of what is inherent; `brief` knows the
    /// connections of its examples.
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
        let groups = self.single.into_iter().filter(|(_, g)| g.1 >= 3);
        let ((_, server), (setup, n, c)) =
            groups.min_by(|(_, a), (_, b)| b.0.cmp(&a.0).then(a.2.id.cmp(&b.2.id)))?;
        let lost = setup - setup.part(n as i64);
        let frames = Frames::new(c.file, c.frames.0, c.frames.1, &[c.frames.0]);
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
            range: (Nanos::ZERO, setup.part(n as i64)),
            connections: vec![c.id],
            connection_count: n,
            example: (c.id, 0, frames),
            facts: crate::Facts::None,
            text: Some(text.into_boxed_str()),
            evidence: vec![frames],
            fixes: fixes_for(Cause::ShortConnections, Some(Side::Client), lost, &c, &crate::Facts::None),
            replay: None,
        })
    }
}

/// The findings over these connections, ascending by id: worst first, with fixes. `inherent` holds the sums of what is
/// inherent.
pub fn findings_over(connections: &[Connection], inherent: &Rollups) -> Vec<Finding> {
    let mut sums = Sums::new(usize::MAX);
    connections.iter().for_each(|c| sums.add(c));
    sums.findings(inherent, |r| {
        let at = connections.binary_search_by_key(&r.example.connection, |c| c.id).ok()?;
        Some(Brief::of(&connections[at]))
    })
}
