//! The findings of a capture: summed over connections as they come, so that none of them needs to be kept.

use crate::findings::store::{At, Store};
use crate::findings::{
    self, Basis, Doubt, EVIDENCE, Rollup, Rollups, add_whole_connection_findings, finding, joined,
    may_have_whole_connection_findings,
};
use crate::fixes::{Brief, advise};
use crate::result::{Connection, Example, Extremes, Finding, Frames, Totals};
use crate::servers::{Servers, asked, find_upstreams, spent_within, upstreams};
use crate::{Analysis, Bases};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::cmp::Reverse;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Endpoint, Kind, Nanos, Side};

/// Connections named per finding.
const CONNECTIONS: usize = 20;

/// The basis of a connection is on its way from memory so many before it is summed.
const AHEAD: usize = 4;

/// Setups are counted, not judged; only that reuse would spare them all is not known.
const COUNTED: f64 = 0.9;

/// Sums over connections.
#[derive(Debug)]
pub(crate) struct Sums {
    measured: Nanos,
    all: Vec<Over>,
    /// Connections with one exchange or less, by client address and server.
    single: HashMap<(IpAddr, Endpoint), Single>,
    /// No more pairs of addresses than this are told apart.
    most_pairs: usize,
    servers: Servers,
    /// Whether fixes say how they are made.
    settings: bool,
}

/// Connections of one client address to one server with one exchange or less each.
#[derive(Debug)]
struct Single {
    /// The time of their setups.
    setup: Nanos,
    count: u64,
    first: (Brief, Frames, (Nanos, Nanos)),
}

/// A finding that grows over connections, and which of them lost most.
#[derive(Debug)]
struct Over {
    finding: Finding,
    doubt: Doubt,
    worst: Vec<(Nanos, Brief)>,
    /// The most that one lost, and the least among `worst`, once there is no more room.
    most: Nanos,
    least: Nanos,
}

/// What one connection adds to a finding.
struct Added {
    cause: Cause,
    side: Option<Side>,
    lost: Nanos,
    tail: Nanos,
    idle: Nanos,
    doubt: Doubt,
    occurrences: u64,
    range: Extremes,
}

impl Added {
    fn of(r: &Rollup) -> Added {
        Added {
            cause: r.cause,
            side: r.side,
            lost: r.lost,
            tail: r.tail,
            idle: r.idle,
            doubt: r.doubt,
            occurrences: r.occurrences,
            range: r.range,
        }
    }
}

impl Over {
    /// Keeps the connection if it is among those that lost most; of two that lost the same the first.
    fn remember(&mut self, lost: Nanos, c: &Connection) {
        if self.worst.len() < 4 * CONNECTIONS {
            self.worst.push((lost, Brief::of(c)));
        } else if lost > self.least {
            if let Some(least) = self.worst.iter_mut().min_by_key(|w| (w.0, Reverse(w.1.id)))
                && least.0 < lost
            {
                *least = (lost, Brief::of(c));
            }
            self.least = self.worst.iter().map(|w| w.0).min().unwrap_or_default();
        }
    }

    /// Adds what later connections lost to the same.
    fn absorb(&mut self, Over { finding: theirs, doubt, worst, most, least: _ }: Over) {
        self.doubt.add(doubt);
        let a = &mut self.finding;
        let room = EVIDENCE.saturating_sub(a.evidence.len());
        a.evidence.extend(theirs.evidence.into_iter().take(room));
        a.lost += theirs.lost;
        a.tail += theirs.tail;
        a.idle += theirs.idle;
        a.connection_count += theirs.connection_count;
        a.range = joined((a.occurrences, a.range), (theirs.occurrences, theirs.range));
        a.occurrences += theirs.occurrences;
        if most > self.most {
            self.most = most;
            (a.example, a.facts, a.text) = (theirs.example, theirs.facts, theirs.text);
        }
        self.worst.extend(worst);
        self.worst.sort_by_key(|w| (Reverse(w.0), w.1.id));
        self.worst.truncate(4 * CONNECTIONS);
        self.least = self.worst.iter().map(|w| w.0).min().unwrap_or_default();
    }
}

impl Sums {
    /// No connection yet.
    pub(crate) fn new(most_pairs: usize, most_servers: usize) -> Sums {
        Sums {
            measured: Nanos::ZERO,
            all: Vec::new(),
            single: HashMap::new(),
            most_pairs,
            servers: Servers::new(most_servers),
            settings: true,
        }
    }

    /// Findings whose fixes do not say how they are made.
    pub(crate) fn without_settings(mut self) -> Sums {
        self.settings = false;
        self
    }

    /// Adds a connection.
    pub(crate) fn add(&mut self, c: &Connection, basis: &Basis) {
        self.servers.add(c, &basis.requests, basis.told);
        self.measured += c.measured();
        for r in &basis.rollups.0 {
            self.add_finding(c, || finding(r, 1.0), Added::of(r));
        }
        if may_have_whole_connection_findings(c, basis) {
            let mut special = Vec::new();
            add_whole_connection_findings(c, basis, &mut special, 1.0);
            for f in special {
                let added = Added {
                    cause: f.cause,
                    side: f.side,
                    lost: f.lost,
                    tail: f.tail,
                    idle: f.idle,
                    doubt: Doubt::default(),
                    occurrences: f.occurrences,
                    range: f.range,
                };
                self.add_finding(c, || f.clone(), added);
            }
        }
        // How many exchanges it had is known of a whole one.
        if !basis.cut {
            self.add_single(c, basis.file);
        }
    }

    fn add_finding(
        &mut self,
        c: &Connection,
        make: impl Fn() -> Finding,
        Added { cause, side, lost, tail, idle, doubt, occurrences: n, range }: Added,
    ) {
        let Some(over) = self.all.iter_mut().find(|o| (o.finding.cause, o.finding.side) == (cause, side))
        else {
            let mut finding = make();
            finding.example.connection = c.id;
            self.all.push(Over {
                finding,
                doubt,
                worst: vec![(lost, Brief::of(c))],
                most: lost,
                least: Nanos::ZERO,
            });
            return;
        };
        over.doubt.add(doubt);
        let a = &mut over.finding;
        let room = EVIDENCE.saturating_sub(a.evidence.len());
        a.lost += lost;
        a.tail += tail;
        a.idle += idle;
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
        over.remember(lost, c);
    }

    /// Adds the sums of connections that come after these.
    fn absorb(&mut self, other: Sums) {
        self.measured += other.measured;
        self.servers.absorb(other.servers);
        for theirs in other.all {
            let key = |o: &Over| (o.finding.cause, o.finding.side);
            match self.all.iter_mut().find(|o| key(o) == key(&theirs)) {
                Some(over) => over.absorb(theirs),
                None => self.all.push(theirs),
            }
        }
        for (pair, theirs) in other.single {
            let known = self.single.len();
            match self.single.entry(pair) {
                Entry::Occupied(mut single) => {
                    single.get_mut().setup += theirs.setup;
                    single.get_mut().count += theirs.count;
                }
                Entry::Vacant(room) if known < self.most_pairs => {
                    room.insert(theirs);
                }
                Entry::Vacant(_) => {}
            }
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
        let first =
            || (Brief::of(c), Frames::new(file, c.frames.0, c.frames.1, &[c.frames.0]), (c.start, c.end));
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

    /// All findings, worst first, with fixes; the servers go into the totals. `inherent`: rollups of class I over the whole
    /// capture. `brief`: looks up the connection of a rollup's example. `connections`: what is kept of them.
    pub(crate) fn findings(
        mut self,
        inherent: &Rollups,
        brief: impl Fn(&Rollup) -> Option<Brief>,
        connections: &[Box<Connection>],
        totals: &mut Totals,
    ) -> Vec<Finding> {
        let servers = std::mem::replace(&mut self.servers, Servers::new(0));
        let clients;
        (totals.servers, clients, totals.servers_omitted) = servers.list();
        find_upstreams(&mut totals.servers, &clients, connections);
        totals.asked = asked(&totals.servers, connections);
        let total = self.measured.0.max(1) as f64;
        let mut found: Vec<Finding> = Vec::with_capacity(self.all.len());
        for mut over in std::mem::take(&mut self.all) {
            over.worst.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.id.cmp(&b.1.id)));
            let mut f = over.finding;
            f.share = (f.waited().0 as f64 / total).min(1.0);
            if f.cause.info().kind == Kind::Span {
                (f.confidence, f.unsure) = (over.doubt.confidence(), over.doubt.unsure);
            }
            f.connections = over.worst.iter().take(CONNECTIONS).map(|w| w.1.id).collect();
            if (f.cause, f.side) == (Cause::ServerThink, Some(Side::Server))
                && let Some((at, example, facts)) = spent_within(&f.example, connections, &totals.servers)
            {
                (f.example, f.facts) = (example, facts);
                advise(&mut f, &Brief::of(at), self.settings);
                found.push(f);
                continue;
            }
            // The connection that the figures of the example are from, which is the worst or one that lost as much.
            let example = over.worst.iter().find(|w| w.1.id == f.example.connection);
            if let Some((_, brief)) = example.or(over.worst.first()) {
                advise(&mut f, brief, self.settings);
            }
            found.push(f);
        }
        for r in &inherent.0 {
            if let Some(brief) = brief(r) {
                // It is that of all connections, and so are the requests.
                let brief = Brief { requests: totals.exchanges, ..brief };
                let mut f = finding(r, total);
                f.connections = vec![brief.id];
                advise(&mut f, &brief, self.settings);
                f.evidence.clear();
                found.push(f);
            }
        }
        found.extend(self.short_connections(total));
        // What one server waited for another one is said by the causes of that one's requests.
        let works = |f: &&mut Finding| (f.cause, f.side) == (Cause::ServerThink, Some(Side::Server));
        if let Some(f) = found.iter_mut().find(works) {
            f.counted_elsewhere = totals.counted_twice();
        }
        findings::share(&mut found, totals.requests());
        findings::agree::agree(&mut found);
        findings::lead_with_examples(&mut found);
        findings::sort(&mut found);
        found
    }

    /// Many connections from one client address to one server with an exchange or less each: reuse saves all setups
    /// but one.
    fn short_connections(self, total: f64) -> Option<Finding> {
        let settings = self.settings;
        let groups = self.single.into_iter().filter(|(_, g)| g.count >= 3);
        let ((_, server), Single { setup, count: n, first: (c, frames, (start, end)) }) =
            groups.min_by(|(_, a), (_, b)| b.setup.cmp(&a.setup).then(a.first.0.id.cmp(&b.first.0.id)))?;
        let lost = setup - setup.part(n as i64);
        let text = format!(
            "{n} connections to {server} with one exchange each; their setups took {setup} together."
        );
        let example = Example { connection: c.id, exchange: 0, frames, start, end };
        let mut finding = Finding {
            lost,
            share: (lost.0 as f64 / total).min(1.0),
            occurrences: n,
            range: Extremes { shortest: Nanos::ZERO, longest: setup.part(n as i64) },
            connections: vec![c.id],
            connection_count: n,
            confidence: COUNTED,
            ..Finding::of_wholes(Cause::ShortConnections, Some(Side::Client), example, text)
        };
        advise(&mut finding, &c, settings);
        Some(finding)
    }
}

/// The findings over connections that ascend by id, each with its basis: worst first, with fixes. `inherent`: rollups of
/// class I over all of them. `threads`: two may be used.
pub(crate) fn findings_over(
    connections: &[Box<Connection>],
    bases: &Bases,
    inherent: &Rollups,
    threads: bool,
    totals: &mut Totals,
) -> Vec<Finding> {
    let over = |begin: usize, connections: &[Box<Connection>], mut sums: Sums| {
        let mut basis = Basis::default();
        for (i, c) in (begin..).zip(connections) {
            Connection::fetch_behind(connections, i - begin);
            bases.fetch(i + AHEAD);
            bases.read(i, c, &mut basis);
            sums.add(c, &basis);
        }
        sums
    };
    let sums = Sums::new(usize::MAX, usize::MAX);
    let sums = if threads {
        // Each is fetched from memory once.
        let middle = connections.len() / 2;
        let (first, second) = connections.split_at(middle);
        let later = Sums { servers: Servers::of_later(), ..Sums::new(usize::MAX, usize::MAX) };
        let (later, mut sums) = side_by_side(|| over(middle, second, later), || over(0, first, sums));
        sums.absorb(later);
        sums
    } else {
        over(0, connections, sums)
    };
    let brief = |r: &Rollup| {
        let at = connections.binary_search_by_key(&r.example.example.connection, |c| c.id).ok()?;
        Some(Brief::of(&connections[at]))
    };
    sums.findings(inherent, brief, connections, totals)
}

/// Does one thing in a thread of its own, and the other meanwhile.
pub(crate) fn side_by_side<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        match one.join() {
            Ok(one) => (one, other),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Does the same for each analyzer, in a thread of its own where there are several.
pub(crate) fn each_of<S: Send, T: Send>(shards: &mut [S], act: impl Fn(usize, &mut S) -> T + Sync) -> Vec<T> {
    let Some((first, others)) = shards.split_first_mut() else { return Vec::new() };
    std::thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> =
            (1..).zip(others).map(|(i, shard)| scope.spawn(move || act(i, shard))).collect();
        let mut all = vec![act(0, first)];
        for thread in threads {
            match thread.join() {
                Ok(one) => all.push(one),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

impl Bases {
    fn store(&self, i: usize) -> Option<(&Store, At)> {
        let (store, at) = self.places.get(i)?.parts();
        Some((self.stores.get(store)?, at))
    }

    /// That of the connection at `i` is on its way from memory.
    fn fetch(&self, i: usize) {
        self.store(i).into_iter().for_each(|(store, at)| store.fetch(at));
    }

    /// Writes the basis of the connection at `i`, which is `c`, into `basis`; where there is none, an empty one.
    pub(crate) fn read(&self, i: usize, c: &Connection, basis: &mut Basis) {
        match self.store(i) {
            Some((store, at)) => store.read(at, c, basis),
            None => *basis = Basis::default(),
        }
    }
}

impl Analysis {
    /// How many connections there are, listed or not.
    pub fn connection_count(&self) -> u64 {
        self.connections.len() as u64 + self.totals.unlisted
    }

    /// Leaves only the connections that `wanted` chooses: totals and findings are then theirs. What is inherent is
    /// summed over the whole capture only, so it is no finding any more.
    pub fn retain(&mut self, wanted: impl Fn(&Connection) -> bool) {
        let keep: Vec<bool> = self.connections.iter().map(|c| wanted(c)).collect();
        let mut each = keep.iter();
        self.connections.retain(|_| each.next() == Some(&true));
        let mut each = keep.iter();
        self.basis.places.retain(|_| each.next() == Some(&true));
        let totals = &mut self.totals;
        // A server that waited for another one still did where that one's requests are left out.
        let upstreams: Vec<_> = upstreams(&totals.servers).collect();
        totals.measured = Nanos::ZERO;
        totals.exchanges = 0;
        (totals.connections, totals.unlisted) = (self.connections.len() as u64, 0);
        (totals.budget, totals.gap_budget, totals.tail) = Default::default();
        totals.quality = Default::default();
        for c in &self.connections {
            totals.add_times(c);
            totals.add_quality(c.quality);
        }
        self.findings = findings_over(&self.connections, &self.basis, &Rollups::default(), false, totals);
        for server in &mut totals.servers {
            server.asks = upstreams.iter().filter(|l| l.0 == server.server).map(|l| l.1).collect();
        }
    }
}
