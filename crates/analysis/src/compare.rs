//! Two analyses side by side: exchanges matched by server and shape, how their durations and causes moved.
//!
//! An exchange is matched by the server's port (and its address, where both captures know it) and by the magnitude of
//! its request and response. Each capture's median and 95th percentile stand beside the difference of the medians, with
//! an interval from a bootstrap (Efron 1979): both sides are drawn again with replacement, and the middle 95 % of the
//! differences is what chance alone would allow. The random numbers are seeded, so the answer does not change.
//!
//! Whoever asks first on a connection waits for its opening too: that exchange is compared with it (rule 60).
//!
//! A header more or less moves all requests to another magnitude. Where none has a counterpart, all those of
//! a server are compared: what changes sizes often is a connection that is kept.
//!
//! A request that was made while another one was answered is a part of that one's time (rule 61): it has a
//! row of its own, but the headline is that of those that no other one contains.

mod chance;
mod within;

use crate::{Analysis, Connection, Exchange, Setup, Span, Totals};
use chance::{FEW, Of, change, change_by_connection};
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use tcpwhy_base::{Cause, Nanos};
use within::{Made, inner};

/// What exchanges have in common that are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// The server's port.
    pub port: u16,
    /// Its address, where both captures have it.
    pub ip: Option<IpAddr>,
    /// What the exchanges are called, where that is known: then their sizes tell nothing more, and are 0 here.
    pub name: Option<Box<str>>,
    /// Bits in the number of request bytes: requests of 2^(n-1) to 2^n - 1 bytes.
    pub request: u32,
    /// The same of the response.
    pub response: u32,
}

impl Shape {
    /// It stands for all exchanges of a server, whatever their size.
    pub fn is_of_any_size(&self) -> bool {
        self.name.is_none() && self.request == 0 && self.response == 0
    }

    /// That of all exchanges of the same server.
    fn of_any_size(&self) -> Shape {
        Shape { request: 0, response: 0, ..self.clone() }
    }

    fn key(&self) -> Key {
        (self.port, self.ip)
    }
}

/// A server as both captures know it: its port, and its address where that is in both.
type Key = (u16, Option<IpAddr>);

/// An exchange, and the opening of its connection where it waited for that.
#[derive(Clone, Copy)]
struct Request<'a> {
    /// Which connection of its side it is of.
    connection: usize,
    /// The numbers of connection and exchange.
    id: (u32, u32),
    exchange: &'a Exchange,
    setup: Option<&'a Setup>,
}

impl Request<'_> {
    fn spans(&self) -> impl Iterator<Item = &Span> {
        self.setup.iter().flat_map(|s| &s.spans).chain(&self.exchange.spans)
    }

    fn length(&self) -> i64 {
        let setup = self.setup.map_or(Nanos::ZERO, |s| s.end - s.start);
        (self.exchange.end - self.exchange.start + setup).0
    }
}

/// Before and after.
type Groups<'a> = BTreeMap<Shape, [Vec<Request<'a>>; 2]>;

/// What one side says of a shape or a cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// How many exchanges.
    pub count: u64,
    /// Median.
    pub median: Nanos,
    /// 95th percentile.
    pub p95: Nanos,
    /// Mean.
    pub mean: Nanos,
}

/// A quantity before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub before: Side,
    /// After.
    pub after: Side,
    /// What moved: the median of durations, the mean of times by cause.
    pub difference: Nanos,
    /// The middle 95 % of what the bootstrap gave for it.
    pub interval: (Nanos, Nanos),
    /// The same for the difference of the 95th percentiles.
    pub p95_interval: (Nanos, Nanos),
}

impl Change {
    /// Too few exchanges on one side for an interval to mean anything: of fewer than five values, the least and the
    /// greatest hold the median with less than 94 % (1 - 2 * 0.5^n).
    pub fn too_few(&self) -> bool {
        self.before.count.min(self.after.count) < FEW as u64
    }

    /// The interval does not hold zero.
    pub fn is_sure(&self) -> bool {
        !self.too_few() && excludes_zero(self.interval)
    }

    /// That of the 95th percentiles does not.
    pub fn is_sure_of_p95(&self) -> bool {
        !self.too_few() && excludes_zero(self.p95_interval)
    }
}

fn excludes_zero((low, high): (Nanos, Nanos)) -> bool {
    low > Nanos::ZERO || high < Nanos::ZERO
}

/// What the requests to the servers that are compared took in all, whether each has a counterpart or not;
/// none of those that lie within others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InAll {
    /// How many.
    pub exchanges: u64,
    /// Openings of connections.
    pub openings: u64,
    /// Their time.
    pub time: Nanos,
}

/// The comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Durations by shape, the most time first; an exchange that waited for the opening of its connection has
    /// that with it.
    pub shapes: Vec<(Shape, Change)>,
    /// The same of exchanges that were made while others were answered.
    pub within: Vec<(Shape, Change)>,
    /// Durations of matched exchanges that no other one contains, as many of each shape, in proportion, on
    /// both sides.
    pub all: Change,
    /// Of the same the means.
    pub mean: Change,
    /// How many of the same waited for the opening of their connection.
    pub openings: [u64; 2],
    /// Time of each cause in one of the same, the largest change first. What a server waited for another one
    /// has that one's causes.
    pub causes: Vec<(Cause, Change)>,
    /// Setups of connections to the servers that match.
    pub setup: Option<Change>,
    /// What all of it took, before and after.
    pub in_all: [InAll; 2],
    /// Exchanges without a counterpart, before and after.
    pub unmatched: [u64; 2],
}

/// Compares the connections of two analyses, with all their exchanges in detail. `None`: they share no server.
/// Requests that were made while others were answered are not told from those.
pub fn compare(before: &[Connection], after: &[Connection]) -> Option<Comparison> {
    compared([(before, None), (after, None)])
}

/// The same with what is known of the servers, so that a request that was made for another one counts as part
/// of it.
pub fn compare_with_totals(
    before: (&[Connection], &Totals),
    after: (&[Connection], &Totals),
) -> Option<Comparison> {
    compared([before, after].map(|(connections, totals)| (connections, Some(totals))))
}

/// The same of whole answers.
pub fn compare_answers(before: &Analysis, after: &Analysis) -> Option<Comparison> {
    compared([before, after].map(|a| (&a.connections[..], Some(&a.totals))))
}

/// Which servers are in both analyses. Where an address is in both, those of its port are told apart by it;
/// else the port has to do.
struct Servers {
    same: HashSet<(u16, IpAddr)>,
    /// Ports with an address that is in both, and ports that are in both.
    by_address: HashSet<u16>,
    ports: HashSet<u16>,
}

impl Servers {
    fn new(sides: [HashSet<(u16, IpAddr)>; 2]) -> Servers {
        let same: HashSet<_> = sides[0].intersection(&sides[1]).copied().collect();
        let [before, after] = sides.each_ref().map(|s| s.iter().map(|e| e.0).collect::<HashSet<u16>>());
        let by_address = same.iter().map(|e| e.0).collect();
        Servers { same, by_address, ports: before.intersection(&after).copied().collect() }
    }

    /// What is held against what has the same; `None`: nothing is.
    fn key(&self, server: (u16, IpAddr)) -> Option<Key> {
        let (port, ip) = server;
        if self.by_address.contains(&port) {
            return self.same.contains(&server).then_some((port, Some(ip)));
        }
        self.ports.contains(&port).then_some((port, None))
    }
}

/// The exchange that waited for the opening of its connection: the first that took any time. (A session
/// ticket of TLS 1.2 is no request that anybody waits for.)
fn carrier(c: &Connection) -> Option<u32> {
    let first = c.exchanges.first().filter(|x| x.with_setup.is_some())?;
    Some(c.exchanges.iter().find(|x| x.end > x.start).unwrap_or(first).id)
}

/// What two captures have of the servers that are in both.
#[derive(Default)]
struct Found<'a> {
    groups: Groups<'a>,
    setups: [Vec<i64>; 2],
    in_all: HashMap<Key, [InAll; 2]>,
    unmatched: [u64; 2],
}

impl<'a> Found<'a> {
    /// Takes in a connection to one of them.
    fn add(&mut self, side: usize, connection: usize, key: Key, c: &'a Connection) {
        let (carrier, (port, ip)) = (carrier(c), key);
        let in_all = &mut self.in_all.entry(key).or_default()[side];
        if let Some(setup) = &c.setup {
            let time = setup.end - setup.start;
            self.setups[side].push(time.0);
            in_all.openings += 1;
            in_all.time += time;
        }
        for x in &c.exchanges {
            in_all.exchanges += 1;
            in_all.time += x.end - x.start;
            let bits = |n: u64| 64 - n.leading_zeros();
            let name: Option<Box<str>> = x.name().map(Into::into);
            let [request, response] = x.bytes.map(|n| if name.is_some() { 0 } else { bits(n) });
            let shape = Shape { port, ip, name, request, response };
            let setup = c.setup.as_ref().filter(|_| carrier == Some(x.id));
            let request = Request { connection, id: (c.id, x.id), exchange: x, setup };
            self.groups.entry(shape).or_default()[side].push(request);
        }
    }

    /// The servers with exchanges on both sides.
    fn on_both_sides(&self) -> HashSet<Key> {
        let has = |i: usize| self.groups.iter().filter(move |g| !g.1[i].is_empty()).map(|g| g.0.key());
        let before: HashSet<Key> = has(0).collect();
        has(1).filter(|key| before.contains(key)).collect()
    }

    /// Leaves those out that have no counterpart.
    fn matched(&mut self, groups: Groups<'a>) -> Groups<'a> {
        let mut groups = by_size_or_server(groups);
        groups.retain(|_, [a, b]| {
            let matched = !a.is_empty() && !b.is_empty();
            if !matched {
                self.unmatched[0] += a.len() as u64;
                self.unmatched[1] += b.len() as u64;
            }
            matched
        });
        groups
    }
}

fn compared<C: Borrow<Connection>>(sides: [(&[C], Option<&Totals>); 2]) -> Option<Comparison> {
    let end_of = |c: &Connection| (c.server.port, c.server.ip);
    let servers = Servers::new(sides.map(|a| a.0.iter().map(|c| end_of(c.borrow())).collect()));
    let mut found = Found::default();
    let mut shared = false;
    for (side, (connections, _)) in sides.into_iter().enumerate() {
        for (connection, c) in connections.iter().map(Borrow::<Connection>::borrow).enumerate() {
            match servers.key(end_of(c)) {
                Some(key) => {
                    shared = true;
                    found.add(side, connection, key, c);
                }
                None => found.unmatched[side] += c.exchanges.len() as u64,
            }
        }
    }
    if !shared {
        return None;
    }
    let on_both = found.on_both_sides();
    let inner = inner(sides.map(|s| s.1), &servers, &on_both);
    let (asked, groups) = std::mem::take(&mut found.groups)
        .into_iter()
        .partition::<Groups<'_>, _>(|(shape, _)| inner.contains(&shape.key()));
    let (groups, asked) = (found.matched(groups), found.matched(asked));
    let both = [0, 1].map(|i| alike(&groups, i));
    let made = sides.map(|(connections, totals)| Made::new(connections.iter().map(Borrow::borrow), totals));
    let all = change(lengths(&both[0]), lengths(&both[1]), Of::Median);
    let outermost = found.in_all.iter().filter(|e| on_both.contains(e.0) && !inner.contains(e.0));
    let in_all = outermost.fold([InAll::default(); 2], |sums, (_, sides)| {
        [0, 1].map(|i| InAll {
            exchanges: sums[i].exchanges + sides[i].exchanges,
            openings: sums[i].openings + sides[i].openings,
            time: sums[i].time + sides[i].time,
        })
    });
    let [before, after] = std::mem::take(&mut found.setups);
    let setup = (!before.is_empty() && !after.is_empty()).then(|| change(before, after, Of::Median));
    Some(Comparison {
        shapes: rows(&groups),
        within: rows(&asked),
        all,
        mean: change(lengths(&both[0]), lengths(&both[1]), Of::Mean),
        openings: both.each_ref().map(|list| list.iter().filter(|x| x.setup.is_some()).count() as u64),
        causes: causes(&both, &made),
        setup,
        in_all,
        unmatched: found.unmatched,
    })
}

/// The most time first.
fn rows(groups: &Groups<'_>) -> Vec<(Shape, Change)> {
    let of = |[a, b]: &[Vec<Request<'_>>; 2]| change(lengths(a), lengths(b), Of::Median);
    let mut rows: Vec<(Shape, Change)> = groups.iter().map(|(s, sides)| (s.clone(), of(sides))).collect();
    rows.sort_by_key(|(s, c)| {
        (std::cmp::Reverse(c.before.mean.0.saturating_mul(c.before.count as i64)), s.clone())
    });
    rows
}

/// Of one side as many exchanges of each shape, in proportion, as of the other: else a side with more of the
/// slow ones would be the slower one. Of each shape the lesser of its two shares counts; those of a shape
/// that are too many are left out evenly by their length.
fn alike<'a>(groups: &Groups<'a>, side: usize) -> Vec<Request<'a>> {
    let totals = [0, 1].map(|i| groups.values().map(|g| g[i].len()).sum::<usize>().max(1) as f64);
    let share = |g: &[Vec<Request<'_>>; 2]| {
        let [a, b] = [0, 1].map(|i| g[i].len() as f64 / totals[i]);
        a.min(b)
    };
    // So many there would be if all shapes had as many as the scarcest.
    let least = groups.values().map(|g| g[side].len() as f64 / share(g)).fold(f64::INFINITY, f64::min);
    let mut all = Vec::new();
    for group in groups.values() {
        let mut own = group[side].clone();
        own.sort_by_key(Request::length);
        let wanted = ((least * share(group)).round() as usize).min(own.len());
        all.extend((0..wanted).filter_map(|n| own.get((2 * n + 1) * own.len() / (2 * wanted)).copied()));
    }
    all
}

fn lengths(list: &[Request<'_>]) -> Vec<i64> {
    list.iter().map(Request::length).collect()
}

/// Exchanges of one size stand for themselves. Where none has a counterpart, all of a server stand together.
fn by_size_or_server(groups: Groups<'_>) -> Groups<'_> {
    if groups.values().any(|[a, b]| !a.is_empty() && !b.is_empty()) {
        return groups;
    }
    let mut all = Groups::new();
    for (shape, sides) in groups {
        // What has a name is another request where the names differ.
        let shape = if shape.name.is_none() { shape.of_any_size() } else { shape };
        let into = all.entry(shape).or_default();
        into.iter_mut().zip(sides).for_each(|(into, side)| into.extend(side));
    }
    all
}

/// Time of each cause for each exchange, zeros included: so their means add up to the mean duration.
fn causes(both: &[Vec<Request<'_>>; 2], made: &[Made<'_>; 2]) -> Vec<(Cause, Change)> {
    let times = [0, 1].map(|i| both[i].iter().map(|x| made[i].times(x)).collect::<Vec<_>>());
    let mut present: Vec<Cause> = times.iter().flatten().flat_map(|t| t.0.iter().map(|e| e.0)).collect();
    present.sort_unstable();
    present.dedup();
    let changed = |cause| {
        let of = times.each_ref().map(|all| all.iter().map(|t| t.get(cause).0).collect::<Vec<_>>());
        match cause {
            // The round trip is estimated once for a connection: its exchanges are no measurements of it that
            // differ by chance.
            Cause::PathDelay => change_by_connection(both, &of),
            _ => {
                let [before, after] = of;
                change(before, after, Of::Mean)
            }
        }
    };
    let mut out: Vec<(Cause, Change)> = present.into_iter().map(|cause| (cause, changed(cause))).collect();
    out.sort_by_key(|(cause, c)| (std::cmp::Reverse(c.difference.0.unsigned_abs()), *cause));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that has another address each time, on the same port: each is looked up, not held against all others.
    #[test]
    fn many_addresses_on_one_port() {
        let of = |side: u8, n: u16| (443, [10, side, n.to_be_bytes()[0], n.to_be_bytes()[1]].into());
        let all = |side| (0..20_000).map(|n| of(side, n)).collect();
        let servers = Servers::new([all(0), all(1)]);
        assert!((0..20_000).all(|n| servers.key(of(0, n)) == Some((443, None))));
        // One address is in both: the others have nothing to be held against.
        let servers = Servers::new([all(0), [of(0, 7), (80, of(0, 1).1)].into()]);
        assert_eq!(servers.key(of(0, 7)), Some((443, Some(of(0, 7).1))));
        assert_eq!((servers.key(of(0, 8)), servers.key((80, of(0, 1).1))), (None, None));
    }
}
