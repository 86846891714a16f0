//! The findings of a capture: summed over connections as they come, so that none of them needs to be kept.

mod over;
mod single;

pub(crate) use over::{Order, Rank};

use crate::beyond::{doubt_the_distance, doubt_the_trip};
use crate::findings::store::{At, Place, Store};
use crate::findings::{
    self, Basis, Rollup, Rollups, Where, add_whole_connection_findings, finding,
    may_have_whole_connection_findings,
};
use crate::fixes::{Brief, advise};
use crate::in_turn::in_turn;
use crate::login::Sizes;
use crate::outlines::{Outline, longest};
use crate::result::{Connection, Example, Extremes, Finding, Span, Totals, ask_in_series};
use crate::servers::{Servers, asked, find_upstreams, spent_within, upstreams};
use crate::shared::Shared;
use crate::{Analysis, Bases};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use over::{Added, Over};
use single::Single;
use std::cmp::Reverse;
use std::fmt::Write;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Class, Endpoint, Kind, Nanos, Side};

/// The basis of a connection is on its way from memory so many before it is summed.
const AHEAD: usize = 4;

/// Setups are counted, not judged; only that reuse would spare them all is not known.
const COUNTED: f64 = 0.9;

/// What is as large on each connection may be asked for anew each time, and a kept one asks for it as well.
const ALIKE: f64 = 0.6;

/// Connections that are many.
const MANY: u64 = 3;

/// With more pairs of a client address and a server than this, the first connection of the one that is named
/// may not be kept where only some are: which that will be is known at the end only, and each takes more than
/// a kilobyte.
const NAMED_PAIRS: usize = 8_192;

/// Sums over connections.
#[derive(Debug)]
pub(crate) struct Sums {
    measured: Nanos,
    all: Vec<Over>,
    /// Connections with one exchange or less, by client address and server; or with one behind what may be the same login.
    single: HashMap<(IpAddr, Endpoint, Sizes), Single>,
    /// No more pairs of addresses than this are told apart.
    most_pairs: usize,
    servers: Servers,
    /// Whether fixes say how they are made.
    settings: bool,
}

impl Sums {
    /// No connection yet.
    pub(crate) fn new(most_pairs: usize, most_servers: usize, stretches: usize) -> Sums {
        Sums {
            measured: Nanos::ZERO,
            all: Vec::new(),
            single: HashMap::new(),
            most_pairs,
            servers: Servers::new(most_servers, stretches),
            settings: true,
        }
    }

    /// No connection yet; all pairs of addresses and all servers are told apart.
    pub(crate) fn whole() -> Sums {
        Sums::new(usize::MAX, usize::MAX, usize::MAX)
    }

    /// Findings whose fixes do not say how they are made.
    pub(crate) fn without_settings(mut self) -> Sums {
        self.settings = false;
        self
    }

    /// Adds a connection; whether a finding may name it.
    pub(crate) fn add(&mut self, c: &Connection, basis: &Basis) -> bool {
        self.servers.add(c, basis);
        self.measured += c.measured();
        let mut named = false;
        for r in &basis.rollups.0 {
            named |= self.add_finding(c, || finding(r, 1.0), &Added::of(r));
        }
        if may_have_whole_connection_findings(c, basis) {
            let mut special = Vec::new();
            add_whole_connection_findings(c, basis, &mut special, 1.0);
            for f in special {
                named |= self.add_finding(c, || f.clone(), &Added::of_whole(&f));
            }
        }
        // How many exchanges it had is known of a whole one.
        if !basis.cut {
            named |= self.add_single(c, basis.file);
        }
        named
    }

    /// The connections that findings may name.
    pub(crate) fn each_named(&self, mut name: impl FnMut(u32)) {
        self.all.iter().for_each(|over| over.each_named(&mut name));
        if self.single.len() <= NAMED_PAIRS {
            self.single.values().for_each(|single| name(single.first.brief.id));
        }
    }

    fn add_finding(&mut self, c: &Connection, make: impl Fn() -> Finding, added: &Added) -> bool {
        match self.all.iter_mut().find(|over| over.key() == (added.cause, added.side)) {
            Some(over) => over.add(c, make, added),
            None => {
                self.all.push(Over::new(c, make(), added));
                true
            }
        }
    }

    /// The connections by their final numbers.
    pub(crate) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.all.iter_mut().for_each(|over| over.renumber(&number));
        for single in self.single.values_mut() {
            single.first.renumber(&number);
        }
    }

    /// Adds the sums of other connections; all have their final numbers.
    pub(crate) fn absorb(&mut self, other: Sums) {
        self.measured += other.measured;
        self.servers.absorb(other.servers);
        for theirs in other.all {
            match self.all.iter_mut().find(|over| over.key() == theirs.key()) {
                Some(over) => over.absorb(theirs),
                None => self.all.push(theirs),
            }
        }
        for (pair, theirs) in other.single {
            let known = self.single.len();
            match self.single.entry(pair) {
                Entry::Occupied(mut single) => single.get_mut().absorb(theirs),
                Entry::Vacant(room) if known < self.most_pairs => {
                    room.insert(theirs);
                }
                Entry::Vacant(_) => {}
            }
        }
    }

    fn add_single(&mut self, c: &Connection, file: u16) -> bool {
        let Some(setup) = &c.setup else { return false };
        let login = c.login();
        if c.exchange_count() > 1 + login || c.bytes[0] == 0 {
            return false;
        }
        let pair = (c.client.ip, c.server, c.opening.first(login));
        let before = if login > 0 { c.opening.before() } else { Nanos::ZERO };
        if self.single.len() >= self.most_pairs && !self.single.contains_key(&pair) {
            return false;
        }
        let order = Order::of(c);
        let single = self.single.entry(pair).or_insert_with(|| Single::new(c, file));
        single.add(c, file, setup.end - setup.start + before);
        single.first.order == order && self.single.len() <= NAMED_PAIRS
    }

    /// All findings, worst first, with fixes; the servers go into the totals. `inherent`: rollups of class I
    /// over the whole capture. `brief`: what is known of the connection of a rollup's example, if that is not
    /// among `connections`, which is what is kept of them. `outlines`: of the longest exchanges, if they are not those.
    pub(crate) fn findings(
        mut self,
        inherent: &Rollups,
        brief: impl Fn(&Rollup) -> Option<Brief>,
        (connections, outlines): (&[Box<Connection>], Option<Vec<Outline>>),
        shared: Shared,
        totals: &mut Totals,
    ) -> Vec<Finding> {
        let servers = std::mem::replace(&mut self.servers, Servers::new(0, 0));
        let seen;
        (totals.servers, seen, totals.servers_omitted) = servers.list();
        let outlines = || outlines.map_or_else(|| Outline::of_kept(connections), longest);
        find_upstreams(&mut totals.servers, &seen, outlines);
        totals.asked = asked(&totals.servers, connections);
        // Of servers that are not told apart it is not known.
        let none_in_series = totals.servers_omitted == 0 && !ask_in_series(&totals.servers);
        let total = self.measured.0.max(1) as f64;
        let mut found: Vec<Finding> = Vec::with_capacity(self.all.len());
        // What is left out of the detail of a connection is known last.
        let of_kept = |brief: &Brief| known(connections, brief.id).map_or(*brief, Brief::of);
        for over in std::mem::take(&mut self.all) {
            let (mut f, doubt, worst) = over.finish();
            f.link_full = shared.of(f.cause, f.side);
            f.share = (f.waited().0 as f64 / total).min(1.0);
            if f.cause.info().kind == Kind::Span {
                (f.confidence, f.unsure) = (doubt.confidence(), doubt.unsure);
            }
            let works = (f.cause, f.side) == (Cause::ServerThink, Some(Side::Server));
            f.in_turn = works.then(|| in_turn(&totals.servers, connections, f.of_requests())).flatten();
            if works
                && let Some((at, example, facts)) = spent_within(&f.example, connections, &totals.servers)
            {
                (f.example, f.facts) = (example, facts);
                advise(&mut f, &Brief::of(at), self.settings);
                found.push(f);
                continue;
            }
            // The connection that the figures of the example are from, which is the worst or one that lost as much.
            let example = worst.iter().find(|brief| brief.id == f.example.connection);
            if let Some(brief) = example.or(worst.first()) {
                advise(&mut f, &of_kept(brief), self.settings);
            }
            doubt_the_trip(&mut f, connections);
            found.push(f);
        }
        for r in &inherent.0 {
            let of_known = known(connections, r.example.example.connection).map(Brief::of);
            if let Some(brief) = of_known.or_else(|| brief(r)) {
                // It is that of all connections, and so are the requests.
                let brief = Brief { requests: totals.exchanges, none_in_series, ..brief };
                let mut f = finding(r, total);
                f.connections = vec![brief.id];
                f.link_full = shared.of(f.cause, f.side);
                doubt_the_distance(&mut f, connections);
                doubt_the_trip(&mut f, connections);
                advise(&mut f, &brief, self.settings);
                f.evidence.clear();
                found.push(f);
            }
        }
        found.extend(self.short_connections(total, of_kept));
        // What one server waited for another one is said by the causes of that one's requests.
        let (elsewhere, of_clients) = totals.counted_elsewhere();
        count_elsewhere(&mut found, (Cause::SenderPause, Side::Client), of_clients);
        for &(cause, time) in &elsewhere.0 {
            let others = if cause == Cause::SenderPause { of_clients } else { Nanos::ZERO };
            count_elsewhere(&mut found, (cause, Side::Server), time - others);
        }
        totals.shared_links = shared.links;
        findings::share(&mut found, totals.requests());
        findings::agree::agree(&mut found);
        findings::lead_with_examples(&mut found);
        findings::sort(&mut found);
        found
    }

    /// Many connections from one client address to one server with an exchange or less each: reuse saves the
    /// setups of those that opened while one of the others might have been used.
    fn short_connections(self, total: f64, of_kept: impl Fn(&Brief) -> Brief) -> Option<Finding> {
        let settings = self.settings;
        let groups = self.single.into_iter().filter(|(_, g)| g.count >= MANY);
        let groups = groups.map(|((_, server, login), single)| ((server, login.0), single.spared(), single));
        let ((server, login), (lost, at_once), Single { setup, count: n, first, .. }) = groups
            .filter(|(_, (lost, _), _)| *lost > Nanos::ZERO)
            .min_by(|(_, (a, _), x), (_, (b, _), y)| b.cmp(a).then(x.first.order.cmp(&y.first.order)))?;
        let mut text = if login == 0 {
            format!("{n} connections to {server} with one exchange each; their setups took {setup} together.")
        } else {
            format!(
                "{n} connections to {server} with one request each behind {login} that were as large on all of them, as those of a login are; with these their setups took {setup} together."
            )
        };
        if at_once > 1 {
            _ = write!(text, " {at_once} of them are needed side by side.");
        }
        let (start, end) = first.time;
        let example = Example { connection: first.brief.id, exchange: 0, frames: first.frames, start, end };
        // What the client asks for with its request does not show: its server did so.
        let side = if first.brief.server_closed { Side::Server } else { Side::Client };
        let mut finding = Finding {
            lost,
            share: (lost.0 as f64 / total).min(1.0),
            occurrences: n,
            range: Extremes { shortest: Nanos::ZERO, longest: setup.part(n as i64) },
            connections: vec![first.brief.id],
            connection_count: n,
            confidence: if login == 0 { COUNTED } else { ALIKE },
            ..Finding::of_wholes(Cause::ShortConnections, Some(side), example, text)
        };
        advise(&mut finding, &of_kept(&first.brief), settings);
        Some(finding)
    }
}

/// The connection with this number, among some that ascend by it.
fn known(connections: &[Box<Connection>], id: u32) -> Option<&Connection> {
    let at = connections.binary_search_by_key(&id, |c| c.id).ok()?;
    connections.get(at).map(|c| &**c)
}

/// The findings over connections that ascend by id, each with its basis: worst first, with fixes.
fn findings_over(
    connections: &[Box<Connection>],
    bases: &Bases,
    shared: Shared,
    totals: &mut Totals,
) -> Vec<Finding> {
    let mut sums = Sums::whole();
    let mut basis = Basis::default();
    for (i, c) in connections.iter().enumerate() {
        Connection::fetch_behind(connections, i);
        bases.fetch(i + AHEAD);
        bases.read(i, c, &mut basis);
        sums.add(c, &basis);
    }
    sums.findings(&inherent_of(connections), |_| None, (connections, None), shared, totals)
}

/// What is inherent in these connections: it is summed over the whole capture, and so made again of their
/// spans, where they have all of them.
fn inherent_of(connections: &[Box<Connection>]) -> Rollups {
    let mut sums = Rollups::default();
    if connections.iter().any(|c| c.exchanges_omitted.count > 0 || c.gaps_omitted.count > 0) {
        return sums;
    }
    for c in connections {
        let mut add = |spans: &[Span], exchange: u32, gap: bool, tail: bool| {
            let place = Where { connection: c.id, exchange, gap, tail };
            spans.iter().filter(|s| s.cause.class() == Class::Inherent).for_each(|s| sums.add(s, place));
        };
        c.setup.iter().for_each(|setup| add(&setup.spans, 0, false, false));
        c.exchanges.iter().for_each(|x| add(&x.spans, x.id, false, false));
        let last = c.exchanges.last().map_or(c.start, |x| x.end);
        c.gaps.iter().for_each(|gap| add(&gap.spans, 0, true, gap.start >= last));
    }
    sums
}

/// So much time of a cause is counted by other ones, first of what is at that side: what servers waited for, or what
/// nobody did.
fn count_elsewhere(found: &mut [Finding], (cause, side): (Cause, Side), time: Nanos) {
    let mut of_cause: Vec<&mut Finding> =
        found.iter_mut().filter(|f| f.cause == cause && cause.info().kind == Kind::Span).collect();
    of_cause.sort_by_key(|f| (f.side != Some(side), Reverse(f.of_requests())));
    let mut left = time;
    for f in of_cause {
        let here = left.min(f.of_requests()).floor0();
        f.counted_elsewhere += here;
        left = left - here;
        let most = f.of_requests();
        f.fixes.iter_mut().for_each(|fix| fix.saves = fix.saves.map(|saves| saves.min(most)));
    }
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

    /// Writes the basis at this place, of the connection `c`, into `basis`; where there is none, an empty one.
    pub(crate) fn read_from(&self, place: Place, c: &Connection, basis: &mut Basis) {
        let (store, at) = place.parts();
        match self.stores.get(store) {
            Some(store) => store.read(at, c, basis),
            None => *basis = Basis::default(),
        }
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
        self.connections.len() as u64 + self.totals.unlisted + self.totals.not_kept
    }

    /// Leaves only the connections that `wanted` chooses: totals and findings are then theirs; those of what is
    /// inherent, if no detail of them was left out.
    pub fn retain(&mut self, wanted: impl Fn(&Connection) -> bool) {
        let keep: Vec<bool> = self.connections.iter().map(|c| wanted(c)).collect();
        // What they filled beside those that are left out they filled all the same.
        let shared = Shared::of_some(&self.connections, &self.totals.budget, &wanted);
        let mut each = keep.iter();
        self.connections.retain(|_| each.next() == Some(&true));
        let mut each = keep.iter();
        self.basis.places.retain(|_| each.next() == Some(&true));
        let totals = &mut self.totals;
        // A server that waited for another one still did where that one's requests are left out.
        let upstreams: Vec<_> = upstreams(&totals.servers).collect();
        totals.measured = Nanos::ZERO;
        totals.exchanges = 0;
        (totals.connections, totals.unlisted, totals.not_kept) = (self.connections.len() as u64, 0, 0);
        (totals.budget, totals.gap_budget, totals.tail) = Default::default();
        (totals.quality, totals.two_sided, totals.midstream) = Default::default();
        for c in &self.connections {
            totals.add_times(c);
            totals.add_connection(c);
        }
        self.findings = findings_over(&self.connections, &self.basis, shared, totals);
        for server in &mut totals.servers {
            server.asks = upstreams.iter().filter(|l| l.0 == server.server).map(|l| l.1).collect();
        }
    }
}
