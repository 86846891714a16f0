//! What the same connections would cost at a distance: the workload of each shape of exchange replayed in the
//! model over a longer path, and which of them follow one another.
//!
//! Exchanges of one connection follow one another. Of exchanges on different connections nobody can say
//! whether the second waited for the first, so there are two bounds: the connection that grows most, and the
//! costliest sequence of halves of exchanges that do not overlap. A half is the way of the request or of the
//! answer: a request to a server within which that server asks another counts for both. Where no two overlap
//! but one within the other, nothing was done beside something else, and the second bound is taken for the
//! answer.

use crate::Analysis;
use crate::replay::{Over, extract, extract_with};
use crate::result::{Connection, Exchange, TRUST};
use std::collections::BTreeMap;
use tcpwhy_base::{Endpoint, Nanos};
use tcpwhy_model::{Congestion, Question};

/// Events that all replays together may spend: about a second.
const EVENTS: u64 = 1_000_000;
/// Shapes of exchanges that are replayed; of others round trips are counted.
const SHAPES: usize = 128;
/// Segments of a path are this large, whatever those of loopback were.
const MTU: u64 = 1500;
/// Distances below this are no distance.
const NEAR: Nanos = Nanos::micros(500);

/// What a distance would cost.
#[derive(Clone, Debug, Default)]
pub struct Distance {
    /// Round trips in a row: no fewer, no more than.
    pub trips: (u64, u64),
    /// For each round trip time asked about, how much longer it takes: no less, no more than.
    pub costs: Vec<Cost>,
    /// What grows most, at the last of these.
    pub most: Option<Grows>,
    /// Shares of the exchanges that the model replayed: of the others only round trips are counted.
    pub replayed: f64,
}

/// At one round trip time. Below zero: it takes less, as the smaller segments of a path are held less often.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The round trip time.
    pub rtt: Nanos,
    /// No less.
    pub least: Nanos,
    /// No more.
    pub most: Nanos,
}

/// Exchanges of one shape with one server.
#[derive(Clone, Debug)]
pub struct Grows {
    /// With whom.
    pub server: Endpoint,
    /// An example.
    pub connection: u32,
    /// Bytes of its request and its answer, about.
    pub bytes: [u64; 2],
    /// How many there are.
    pub count: u64,
    /// How much longer each takes.
    pub each: Nanos,
    /// They are setups of connections.
    pub setups: bool,
}

/// What is told apart: who is asked, how large request and answer are (in sixteenths of a power of two), how old the
/// connection is: its congestion window grows with each exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    server: Endpoint,
    sizes: [u32; 2],
    age: u32,
    turns: u32,
}

/// What exchanges of a shape cost at each distance, in nanoseconds.
#[derive(Clone, Debug)]
struct Priced {
    extra: Vec<i64>,
    replayed: bool,
    example: (u32, [u64; 2]),
    count: u64,
}

/// A stretch of time with a price; `weights`: round trips (in halves), then nanoseconds for each distance.
struct Piece {
    start: Nanos,
    end: Nanos,
    weights: Vec<i64>,
}

/// Where the connections are imagined to be.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere<'a> {
    /// The round trip times asked about.
    pub rtts: &'a [Nanos],
    /// What the hosts control congestion with: it does not show on a path without one.
    pub congestion: Congestion,
}

/// For each of these round trip times. Meant for connections over loopback or a near network; at a distance
/// already, it says nothing.
pub fn distance(analysis: &Analysis, to: Elsewhere<'_>) -> Option<Distance> {
    let rtts = to.rtts;
    let near = |c: &Connection| c.path.rtt.is_some_and(|rtt| rtt < NEAR);
    let all: Vec<&Connection> = analysis.connections.iter().map(|c| &**c).filter(|c| near(c)).collect();
    if all.len() < analysis.connections.len() || all.is_empty() {
        return None;
    }
    let mut shapes: BTreeMap<Shape, Priced> = BTreeMap::new();
    let mut left = EVENTS;
    for c in &all {
        for (i, x) in c.exchanges.iter().enumerate() {
            let count = shapes.len();
            let priced = shapes.entry(shape(c, x)).or_insert_with(|| {
                let replayed = (count < SHAPES).then(|| replayed(c, x, to, &mut left)).flatten();
                Priced {
                    replayed: replayed.is_some(),
                    extra: replayed.unwrap_or_else(|| counted(1, rtts)),
                    example: (c.id, x.bytes),
                    count: 0,
                }
            });
            priced.count += share(c.exchange_count(), c.exchanges.len(), i);
        }
    }
    let mut pieces = Vec::new();
    // Of each connection; below zero where a path does less harm than loopback does (smaller segments, other holds).
    let mut longest: Vec<Option<i64>> = vec![None; rtts.len() + 1];
    for c in &all {
        let mut own = vec![0; rtts.len() + 1];
        for piece in pieces_of(c, &shapes, rtts) {
            own.iter_mut().zip(&piece.weights).for_each(|(sum, w)| *sum += w);
            pieces.push(piece);
        }
        longest.iter_mut().zip(&own).for_each(|(most, &sum)| *most = (*most).max(Some(sum)));
    }
    let longest: Vec<i64> = longest.into_iter().map(Option::unwrap_or_default).collect();
    pieces.sort_by_key(|p| (p.end, p.start));
    let in_turns = in_turns(&all);
    let most: Vec<i64> = if in_turns {
        // Each waits for the one before: all of the sequence with most round trips, also what becomes shorter.
        let sequence = chain(&pieces, 0).1;
        (0..=rtts.len()).map(|which| sequence.iter().map(|&i| pieces[i].weights[which]).sum()).collect()
    } else {
        (0..=rtts.len()).map(|which| chain(&pieces, which).0).collect()
    };
    let exchanges: u64 = shapes.values().map(|p| p.count).sum();
    let by_model: u64 = shapes.values().filter(|p| p.replayed).map(|p| p.count).sum();
    let cost = |(n, &rtt): (usize, &Nanos)| {
        // What costs less than nothing is left out of the costliest sequence, though it has to be.
        let (least, most) = if most[0] <= longest[0] {
            (longest[n + 1], longest[n + 1])
        } else if in_turns {
            (most[n + 1], most[n + 1])
        } else {
            (longest[n + 1], most[n + 1].max(longest[n + 1]))
        };
        Cost { rtt, least: Nanos(least), most: Nanos(most) }
    };
    let least_trips = if in_turns { most[0] } else { longest[0] };
    let trips = |halves: i64| u64::try_from(halves / 2).unwrap_or(0);
    Some(Distance {
        trips: (trips(least_trips), trips(most[0].max(longest[0]))),
        costs: rtts.iter().enumerate().map(cost).collect(),
        most: grows_most(&all, &shapes, rtts),
        replayed: if exchanges == 0 { 1.0 } else { by_model as f64 / exchanges as f64 },
    })
}

/// The four bits behind the first, and how many there are: sizes within a sixteenth of each other.
fn size(n: u64) -> u32 {
    match n.checked_ilog2() {
        None => 0,
        Some(bits) => bits * 16 + ((n << 4 >> bits) as u32 & 15) + 1,
    }
}

fn shape(c: &Connection, x: &Exchange) -> Shape {
    Shape { server: c.server, sizes: x.bytes.map(size), age: x.id.max(1).ilog2().min(4), turns: x.turns }
}

/// A round trip each, and nothing for what TCP adds. An exchange is one: within, ends take turns only where
/// both send at once.
fn counted(trips: i64, rtts: &[Nanos]) -> Vec<i64> {
    rtts.iter().map(|rtt| rtt.times(trips).0).collect()
}

/// What the model says of this exchange, beyond what it says of it as it was.
fn replayed(c: &Connection, x: &Exchange, to: Elsewhere<'_>, left: &mut u64) -> Option<Vec<i64>> {
    let found = extract(c, x.id).ok()?;
    let (first, last) = found.exchanges;
    let n = usize::try_from(x.id.checked_sub(first)?).ok()?;
    let handshakes = found.question.scenario.workload.tls;
    let mut time = |question: &Question| {
        let turns = turns(question, left)?;
        // Those of a TLS handshake come first and belong to the setup.
        let own = turns.get(handshakes..)?;
        (own.len() == (last - first) as usize + 1).then(|| own.get(n).copied())?
    };
    let modelled = time(&found.question)?;
    // A model that misses the capture has no more to give back than what the exchange took.
    let took = x.end - x.start;
    let missed = (modelled - took).0 as f64 > TRUST * took.0 as f64;
    let here = if missed { took } else { modelled };
    let elsewhere = extract_with(c, x.id, Over::AnotherPath).ok()?;
    let at = |rtt: &Nanos| {
        let mut question = elsewhere.question.clone();
        for link in &mut question.scenario.links {
            link.delay = rtt.part(2);
            // What memory gave is not what a path gives.
            link.rate = None;
        }
        question.scenario.mtu = question.scenario.mtu.min(MTU);
        for host in &mut question.scenario.hosts {
            host.stack.profile.congestion = to.congestion;
        }
        // It may also be less: smaller segments are held less often.
        Some((time(&question)? - here).0)
    };
    to.rtts.iter().map(at).collect()
}

/// How long each turn takes that counts; none if that would cost too much.
fn turns(question: &Question, left: &mut u64) -> Option<Vec<Nanos>> {
    let answer = Question { max_events: *left, ..question.clone() }.ask().ok()?;
    *left = left.saturating_sub(answer.outcome.events);
    answer.complete.then_some(answer.turns)
}

/// The setup and the halves of all exchanges of a connection. Those that are not kept in detail are shared
/// out among the others.
fn pieces_of(c: &Connection, shapes: &BTreeMap<Shape, Priced>, rtts: &[Nanos]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if let Some(setup) = c.setup.as_ref().filter(|_| c.opened_by_handshake) {
        let trips = 1 + i64::from(setup.tls_trips);
        let weights = [2 * trips].into_iter().chain(rtts.iter().map(|rtt| rtt.0 * trips)).collect();
        pieces.push(Piece { start: setup.start, end: setup.end, weights });
    }
    let kept = c.exchanges.len();
    let all = i64::try_from(c.exchange_count()).unwrap_or(i64::MAX);
    if kept == 0 && all > 0 {
        let weights = [2 * all].into_iter().chain(counted(all, rtts)).collect();
        let start = c.setup.as_ref().map_or(c.start, |s| s.end).min(c.end);
        pieces.push(Piece { start, end: c.end, weights });
    }
    for (i, x) in c.exchanges.iter().enumerate() {
        let Some(priced) = shapes.get(&shape(c, x)) else { continue };
        let count = share(c.exchange_count(), kept, i) as i64;
        // A half of each round trip for the way of the request, and one for that of the answer.
        let weights: Vec<i64> =
            [count].into_iter().chain(priced.extra.iter().map(|&ns| ns.saturating_mul(count) / 2)).collect();
        let turns = x.response_start.or(x.request_end).unwrap_or(x.start).max(x.start).min(x.end);
        let asked = x.request_end.unwrap_or(turns).max(x.start).min(turns);
        pieces.push(Piece { start: x.start, end: asked, weights: weights.clone() });
        pieces.push(Piece { start: turns, end: x.end, weights });
    }
    pieces
}

/// How many of `all` exchanges the one at this place stands for, where so many are kept in detail.
fn share(all: u64, kept: usize, place: usize) -> u64 {
    let upto = |n: usize| u128::from(all) * n as u128 / kept.max(1) as u128;
    (upto(place + 1) - upto(place)) as u64
}

/// The largest sum of weights of pieces that do not overlap, and which these are; they are sorted by their ends.
fn chain(pieces: &[Piece], which: usize) -> (i64, Vec<usize>) {
    // The best sum of the first so many, and if the last of them is in it, how many came before that one.
    let mut best: Vec<(i64, Option<usize>)> = vec![(0, None)];
    for (i, piece) in pieces.iter().enumerate() {
        // One that takes no time at all comes after those that end when it begins, not after itself.
        let before = pieces[..i].partition_point(|p| p.end <= piece.start);
        let (with, without) = (best[before].0 + piece.weights[which], best[i].0);
        best.push(if with > without { (with, Some(before)) } else { (without, None) });
    }
    let (mut at, mut chosen) = (pieces.len(), Vec::new());
    while at > 0 {
        match best[at].1 {
            Some(before) => {
                chosen.push(at - 1);
                at = before;
            }
            None => at -= 1,
        }
    }
    (best[pieces.len()].0, chosen)
}

/// No two exchanges overlap, unless one lies within the other.
fn in_turns(all: &[&Connection]) -> bool {
    let stretches = all.iter().flat_map(|c| {
        let setup = c.setup.iter().map(|s| (s.start, s.end));
        setup.chain(c.exchanges.iter().map(|x| (x.start, x.end)))
    });
    nested(&mut stretches.collect::<Vec<_>>())
}

fn nested(stretches: &mut [(Nanos, Nanos)]) -> bool {
    stretches.sort_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
    let mut open: Vec<Nanos> = Vec::new();
    stretches.iter().all(|&(start, end)| {
        while open.last().is_some_and(|&last| last <= start) {
            open.pop();
        }
        let fits = open.last().is_none_or(|&last| end <= last);
        open.push(end);
        fits
    })
}

fn grows_most(all: &[&Connection], shapes: &BTreeMap<Shape, Priced>, rtts: &[Nanos]) -> Option<Grows> {
    type Sum = (u64, i64, (u32, [u64; 2]));
    // Of whatever age their connections were: count, cost of all, example.
    let mut alike: BTreeMap<(Endpoint, [u32; 2]), Sum> = BTreeMap::new();
    for (shape, priced) in shapes {
        let sum = alike.entry((shape.server, shape.sizes)).or_insert((0, 0, priced.example));
        sum.0 += priced.count;
        sum.1 += priced.extra.last().unwrap_or(&0) * i64::try_from(priced.count).unwrap_or(0);
    }
    let exchanges = alike.into_iter().map(|((server, _), (count, cost, (connection, bytes)))| {
        let each = Nanos(cost).part(i64::try_from(count).unwrap_or(1).max(1));
        Grows { server, connection, bytes, count, each, setups: false }
    });
    let mut servers: BTreeMap<Endpoint, (u64, u32)> = BTreeMap::new();
    for c in all.iter().filter(|c| c.opened_by_handshake) {
        servers.entry(c.server).or_insert((0, c.id)).0 += 1;
    }
    let setups = servers.into_iter().filter_map(|(server, (count, connection))| {
        Some(Grows { server, connection, bytes: [0; 2], count, each: *rtts.last()?, setups: true })
    });
    exchanges.chain(setups).max_by_key(|g| i128::from(g.each.0) * i128::from(g.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start: i64, end: i64, weight: i64) -> Piece {
        Piece { start: Nanos(start), end: Nanos(end), weights: vec![weight] }
    }

    #[test]
    fn the_costliest_sequence() {
        // A request within which two others are made and answered, and one beside all of them.
        let mut pieces = [
            piece(0, 10, 1),
            piece(90, 100, 1),
            piece(20, 30, 1),
            piece(30, 40, 1),
            piece(50, 60, 1),
            piece(60, 60, 1),
            piece(5, 95, 5),
        ];
        pieces.sort_by_key(|p| (p.end, p.start));
        let (sum, chosen) = chain(&pieces, 0);
        assert_eq!((sum, chosen.len()), (6, 6));
        assert!(chosen.iter().all(|&i| pieces[i].weights[0] == 1));
        assert_eq!(chain(&[], 0), (0, Vec::new()));
    }

    #[test]
    fn one_within_the_other_is_no_overlap() {
        let nested = |all: &[(i64, i64)]| {
            nested(&mut all.iter().map(|&(a, b)| (Nanos(a), Nanos(b))).collect::<Vec<_>>())
        };
        assert!(nested(&[(0, 10), (10, 20), (12, 18), (13, 14), (14, 18), (30, 40)]));
        assert!(!nested(&[(0, 10), (9, 20)]));
        assert!(!nested(&[(0, 100), (10, 50), (20, 60)]));
    }

    #[test]
    fn sizes_are_alike_within_a_sixteenth() {
        assert_eq!(size(1000), size(1020));
        assert_ne!(size(1000), size(1100));
        assert_ne!(size(900), size(1000));
        assert_eq!((size(0), size(1)), (0, 1));
    }
}
