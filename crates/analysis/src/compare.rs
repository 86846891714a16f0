//! Two analyses side by side: exchanges matched by server and shape, how their durations and causes moved.
//!
//! An exchange is matched by the server's port (and its address, where both captures know it) and by the magnitude of
//! its request and response. Each capture's median and 95th percentile stand beside the difference of the medians, with
//! an interval from a bootstrap (Efron 1979): both sides are drawn again with replacement, and the middle 95 % of the
//! differences is what chance alone would allow. The random numbers are seeded, so the answer does not change.
//!
//! A header more or less moves all requests to another magnitude. Where none has a counterpart, all those of
//! a server are compared, each with the opening of its connection: what changes sizes often is a connection
//! that is kept.

use crate::{Analysis, Connection, Exchange, Setup, Span};
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use tcpwhy_base::{Cause, Nanos};

/// Draws for an interval.
const DRAWS: usize = 1_000;
/// Samples drawn of each side; more make the interval no better to speak of.
const MOST: usize = 2_000;

/// Fewer values than these hold their median with less than 94 %.
const FEW: usize = 5;

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
    /// It stands for all exchanges of a server, whatever their size, with the openings of their connections.
    pub fn is_of_any_size(&self) -> bool {
        self.name.is_none() && self.request == 0 && self.response == 0
    }

    /// That of all exchanges of the same server.
    fn of_any_size(&self) -> Shape {
        Shape { request: 0, response: 0, ..self.clone() }
    }
}

/// An exchange, and the opening of the connection before it, where that counts.
#[derive(Clone, Copy)]
struct Request<'a> {
    /// Which connection of its side it is of.
    connection: usize,
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
}

impl Change {
    /// Too few exchanges on one side for an interval to mean anything: of fewer than five values, the least and the
    /// greatest hold the median with less than 94 % (1 - 2 * 0.5^n).
    pub fn too_few(&self) -> bool {
        self.before.count.min(self.after.count) < FEW as u64
    }

    /// The interval does not hold zero.
    pub fn is_sure(&self) -> bool {
        !self.too_few() && (self.interval.0 > Nanos::ZERO || self.interval.1 < Nanos::ZERO)
    }
}

/// The comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Durations by shape, the most time first.
    pub shapes: Vec<(Shape, Change)>,
    /// Durations of matched exchanges, as many of each shape, in proportion, on both sides.
    pub all: Change,
    /// Time of each cause in a matched exchange, the largest change first.
    pub causes: Vec<(Cause, Change)>,
    /// Setups of connections to the servers that match.
    pub setup: Option<Change>,
    /// Exchanges without a counterpart, before and after.
    pub unmatched: [u64; 2],
}

/// Compares the connections of two analyses, with all their exchanges in detail. `None`: they share no server.
pub fn compare(before: &[Connection], after: &[Connection]) -> Option<Comparison> {
    compared([before, after])
}

/// The same of whole answers.
pub fn compare_answers(before: &Analysis, after: &Analysis) -> Option<Comparison> {
    compared([&before.connections, &after.connections])
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
    fn key(&self, server: (u16, IpAddr)) -> Option<(u16, Option<IpAddr>)> {
        let (port, ip) = server;
        if self.by_address.contains(&port) {
            return self.same.contains(&server).then_some((port, Some(ip)));
        }
        self.ports.contains(&port).then_some((port, None))
    }
}

fn compared<C: Borrow<Connection>>(sides: [&[C]; 2]) -> Option<Comparison> {
    let end_of = |c: &Connection| (c.server.port, c.server.ip);
    let servers = Servers::new(sides.map(|a| a.iter().map(|c| end_of(c.borrow())).collect()));
    let mut groups = Groups::new();
    let mut setups: [Vec<i64>; 2] = Default::default();
    let mut unmatched = [0; 2];
    let mut shared = false;
    for (side, connections) in sides.into_iter().enumerate() {
        for (connection, c) in connections.iter().map(Borrow::<Connection>::borrow).enumerate() {
            let Some((port, ip)) = servers.key(end_of(c)) else {
                unmatched[side] += c.exchanges.len() as u64;
                continue;
            };
            shared = true;
            setups[side].extend(c.setup.iter().map(|s| (s.end - s.start).0));
            for x in &c.exchanges {
                let bits = |n: u64| 64 - n.leading_zeros();
                let name: Option<Box<str>> = x.name().map(Into::into);
                let [request, response] = x.bytes.map(|n| if name.is_some() { 0 } else { bits(n) });
                let shape = Shape { port, ip, name, request, response };
                let setup = c.setup.as_ref().filter(|_| x.with_setup.is_some());
                groups.entry(shape).or_default()[side].push(Request { connection, exchange: x, setup });
            }
        }
    }
    if !shared {
        return None;
    }
    let mut groups = by_size_or_server(groups);
    groups.retain(|_, [a, b]| {
        let matched = !a.is_empty() && !b.is_empty();
        if !matched {
            unmatched[0] += a.len() as u64;
            unmatched[1] += b.len() as u64;
        }
        matched
    });
    let mut shapes: Vec<(Shape, Change)> =
        groups.iter().map(|(s, [a, b])| (s.clone(), change(lengths(a), lengths(b), median))).collect();
    shapes.sort_by_key(|(s, c)| {
        (std::cmp::Reverse(c.before.mean.0.saturating_mul(c.before.count as i64)), s.clone())
    });
    let both = [0, 1].map(|i| alike(&groups, i));
    let all = change(lengths(&both[0]), lengths(&both[1]), median);
    let setup = (!setups[0].is_empty() && !setups[1].is_empty())
        .then(|| change(std::mem::take(&mut setups[0]), std::mem::take(&mut setups[1]), median));
    Some(Comparison { shapes, all, causes: causes(&both), setup, unmatched })
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

/// Exchanges of one size stand for themselves. Where none has a counterpart, all of a server stand together,
/// openings included.
fn by_size_or_server(mut groups: Groups<'_>) -> Groups<'_> {
    if groups.values().any(|[a, b]| !a.is_empty() && !b.is_empty()) {
        groups.values_mut().flatten().flatten().for_each(|x| x.setup = None);
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
fn causes(both: &[Vec<Request<'_>>; 2]) -> Vec<(Cause, Change)> {
    let mut present: Vec<Cause> = both.iter().flatten().flat_map(|x| x.spans().map(|s| s.cause)).collect();
    present.sort_unstable();
    present.dedup();
    let time = |x: &Request<'_>, cause: Cause| -> i64 {
        x.spans().filter(|s| s.cause == cause).map(|s| s.duration().0).sum()
    };
    let of = |list: &[Request<'_>], cause: Cause| list.iter().map(|x| time(x, cause)).collect::<Vec<_>>();
    let changed = |cause| match cause {
        // The round trip is estimated once for a connection: its exchanges are no measurements of it that
        // differ by chance.
        Cause::PathDelay => change_by_connection(both, |x| time(x, cause)),
        _ => change(of(&both[0], cause), of(&both[1], cause), mean),
    };
    let mut out: Vec<(Cause, Change)> = present.into_iter().map(|cause| (cause, changed(cause))).collect();
    out.sort_by_key(|(cause, c)| (std::cmp::Reverse(c.difference.0.unsigned_abs()), *cause));
    out
}

/// Of sorted values.
fn median(sorted: &[i64]) -> i64 {
    quantile(sorted, 1, 2)
}

fn mean(values: &[i64]) -> i64 {
    let sum: i128 = values.iter().map(|&v| i128::from(v)).sum();
    (sum / (values.len().max(1) as i128)) as i64
}

/// The smallest value that `part` of `of` do not exceed (nearest rank).
fn quantile(sorted: &[i64], part: usize, of: usize) -> i64 {
    let rank = (sorted.len() * part).div_ceil(of).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

fn side(sorted: &[i64]) -> Side {
    Side {
        count: sorted.len() as u64,
        median: Nanos(median(sorted)),
        p95: Nanos(quantile(sorted, 95, 100)),
        mean: Nanos(mean(sorted)),
    }
}

fn change(mut before: Vec<i64>, mut after: Vec<i64>, of: fn(&[i64]) -> i64) -> Change {
    before.sort_unstable();
    after.sort_unstable();
    let (a, b) = (thin(&before), thin(&after));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut draw = |from: &[i64]| -> i64 {
        let mut drawn: Vec<i64> = from.iter().map(|_| from[random.below(from.len())]).collect();
        drawn.sort_unstable();
        of(&drawn)
    };
    // One value has no spread that could be drawn from: the interval is the point then.
    let mut differences: Vec<i64> = (0..DRAWS).map(|_| draw(&b).saturating_sub(draw(&a))).collect();
    differences.sort_unstable();
    Change {
        before: side(&before),
        after: side(&after),
        difference: Nanos(of(&after)) - Nanos(of(&before)),
        interval: (Nanos(quantile(&differences, 25, 1000)), Nanos(quantile(&differences, 975, 1000))),
    }
}

/// Of the means of what each exchange has, where connections are drawn again, each with all its exchanges.
fn change_by_connection(both: &[Vec<Request<'_>>; 2], time: impl Fn(&Request<'_>) -> i64) -> Change {
    let sides = both.each_ref().map(|list| {
        let mut sums: BTreeMap<usize, (i128, i128)> = BTreeMap::new();
        for x in list {
            let (sum, count) = sums.entry(x.connection).or_default();
            (*sum, *count) = (*sum + i128::from(time(x)), *count + 1);
        }
        let mut values: Vec<i64> = list.iter().map(&time).collect();
        values.sort_unstable();
        (values, sums.into_values().collect::<Vec<_>>())
    });
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut draw = |from: &[(i128, i128)]| -> i64 {
        let drawn = (0..from.len().min(MOST)).map(|_| from[random.below(from.len())]);
        let (sum, count) = drawn.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        (sum / count.max(1)) as i64
    };
    let [(before, from), (after, to)] = &sides;
    let mut differences: Vec<i64> = (0..DRAWS).map(|_| draw(to).saturating_sub(draw(from))).collect();
    differences.sort_unstable();
    // A handful of connections have no spread to draw from. What the estimate is wrong by lies on the work
    // beside it, so that it is known no better than how long they took together.
    let more = if from.len().min(to.len()) < FEW {
        let Change { difference, interval: (low, high), .. } =
            change(lengths(&both[0]), lengths(&both[1]), mean);
        (difference - low).max(high - difference).0
    } else {
        0
    };
    let (low, high) = (quantile(&differences, 25, 1000) - more, quantile(&differences, 975, 1000) + more);
    let (before, after) = (side(before), side(after));
    Change {
        before,
        after,
        difference: after.mean - before.mean,
        // However much work lies beside it, an estimate is not wrong by more than all of it: none gets
        // shorter by more than it takes, nor, the other way round, longer.
        interval: (Nanos(low).max(Nanos::ZERO - before.mean), Nanos(high).min(after.mean)),
    }
}

/// At most [`MOST`] of sorted values, evenly.
fn thin(sorted: &[i64]) -> Vec<i64> {
    let step = sorted.len().div_ceil(MOST).max(1);
    sorted.iter().skip(step / 2).step_by(step).copied().collect()
}

/// xorshift64* (Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let x = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(x) * n as u128) >> 64) as usize
    }
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

    #[test]
    fn quantiles_are_values() {
        let values: Vec<i64> = (1..=100).collect();
        assert_eq!((median(&values), quantile(&values, 95, 100), quantile(&[7], 95, 100)), (50, 95, 7));
    }

    #[test]
    fn what_moved_is_sure_and_what_did_not_is_not() {
        let noisy = |base: i64| (0..200).map(|i| base + (i * 7919) % 100).collect::<Vec<i64>>();
        let moved = change(noisy(1000), noisy(800), median);
        assert!(moved.is_sure() && moved.interval.1 < Nanos::ZERO, "{moved:?}");
        assert!(moved.interval.0 <= moved.difference && moved.difference <= moved.interval.1);
        let same = change(noisy(1000), noisy(1000), median);
        assert!(!same.is_sure() && same.difference == Nanos::ZERO, "{same:?}");
        assert_eq!(change(noisy(1), noisy(5), mean), change(noisy(1), noisy(5), mean));
    }
}
