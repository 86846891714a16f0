//! Servers that work on few requests at a time, so that the others wait for their turn (rule 161).
//!
//! A capture shows when a request was there and when its answer began. Whether an application worked on it all of that
//! time, or first on others, shows where several waited at once: answers then come one by one, as evenly as the work takes,
//! and how long each took is how many stood before it.

use crate::result::{Connection, Exchange, InTurn, Server, Vantage};
use std::collections::BTreeMap;
use tcpwhy_base::{Cause, Endpoint, Nanos, Side};

/// So many answers for each request that is worked on at a time are enough to tell work from chance: that the variance
/// of sixteen is a quarter of what it should be happens once in a thousand times (chi squared of 16 degrees of freedom:
/// 0.001 is at 3.9).
const ENOUGH: usize = 16;
/// A quarter of the variance is half of the deviation. Less is left of how long requests took where their turn is known,
/// and less than that of answers that come by chance.
const LEFT: f64 = 0.25;
/// More workers than these are not told apart: so many answers come in any order.
const MOST: usize = 64;
/// Of more requests to one server nothing is said: each would be looked at as often as there may be workers.
const MANY: u64 = 65_536;
/// A queue that cost less than an eighth of the time is not what to look for.
const WORTH: i64 = 8;
/// Slower than any link today, bits a second: ISDN had as much.
const NO_LINK: f64 = 64_000.0;
/// Header of Ethernet, IPv4 and TCP with time stamps.
const HEADERS: u64 = 66;

/// A request, as its server had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    /// It was there.
    arrived: Nanos,
    /// Its answer began.
    answered: Nanos,
    /// Payload of that.
    bytes: u64,
}

/// The requests that one server worked on in turn, of the server whose requests waited longest for others.
///
/// Looks at servers of which all exchanges are kept, since each that is missing was somebody's turn, and at those that asked
/// no other one that is seen: that one's turn it is.
pub(crate) fn in_turn(servers: &[Server], connections: &[Box<Connection>], of_work: Nanos) -> Option<InTurn> {
    let may_be = |s: &&Server| s.asks.is_empty() && (ENOUGH as u64..=MANY).contains(&s.times.count());
    let mut all: BTreeMap<Endpoint, (u64, Vec<&Connection>)> =
        servers.iter().filter(may_be).map(|s| (s.server, (s.times.count(), Vec::new()))).collect();
    if all.is_empty() {
        return None;
    }
    for c in connections.iter().filter(|c| !c.exchanges.is_empty()) {
        all.get_mut(&c.server).into_iter().for_each(|of| of.1.push(c));
    }
    all.into_iter()
        .filter_map(|(server, (exchanges, to))| {
            if to.iter().map(|c| c.exchanges.len() as u64).sum::<u64>() != exchanges {
                return None;
            }
            let to = to.as_slice();
            let mut requests: Vec<Work> =
                to.iter().flat_map(|c| c.exchanges.iter().filter_map(work)).collect();
            requests.sort_unstable();
            let turns = turns(server, &requests)?;
            let enough = turns.waited.times(WORTH) >= of_work;
            (enough && !may_be_a_link(to, &requests, &turns)).then_some(turns)
        })
        .max_by_key(|turns| turns.waited)
}

/// What the server had of an exchange that was answered: the trips are no time of it.
fn work(x: &Exchange) -> Option<Work> {
    let (asked, began) = (x.request_end?, x.response_start?);
    let works = x.spans.iter().filter(|s| (s.cause, s.side) == (Cause::ServerThink, Some(Side::Server)));
    let within = works.filter(|s| s.start >= asked && s.end <= began);
    let hull = within.fold(None, |hull: Option<(Nanos, Nanos)>, s| {
        Some(hull.map_or((s.start, s.end), |h| (h.0.min(s.start), h.1.max(s.end))))
    });
    // What was answered at once was there half way between.
    let middle = asked + (began - asked).part(2);
    let (arrived, answered) = hull.unwrap_or((middle, middle));
    Some(Work { arrived, answered, bytes: x.bytes[1] })
}

/// The number of requests that these, which ascend by when they were there, tell was worked on at a time.
fn turns(server: Endpoint, requests: &[Work]) -> Option<InTurn> {
    let mut answers: Vec<Nanos> = requests.iter().map(|r| r.answered).collect();
    answers.sort_unstable();
    let most = most_at_once(requests, &answers);
    let took = variance(requests.iter().map(|r| r.answered - r.arrived));
    let candidates = (1..most.min(MOST)).take_while(|at_once| at_once * ENOUGH <= requests.len());
    let spread = |&at_once: &usize| variance(work_alone(requests, &answers, at_once));
    let (at_once, left) = candidates.map(|n| (n, spread(&n))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    // Requests that come evenly are answered evenly, whoever works on them.
    let came =
        variance(requests.iter().skip(at_once).zip(requests).map(|(r, before)| r.arrived - before.arrived));
    if [took, came, of_chance(at_once)].iter().any(|without| left > LEFT * without) {
        return None;
    }
    let mut each: Vec<Nanos> = work_alone(requests, &answers, at_once).collect();
    let all = requests.iter().fold(Nanos::ZERO, |sum, r| sum + (r.answered - r.arrived));
    let waited = all - each.iter().fold(Nanos::ZERO, |sum, &work| sum + work);
    each.sort_unstable();
    let each = *each.get(each.len() / 2)?;
    Some(InTurn::new(server, (requests.len(), most), at_once, (each, waited.floor0())))
}

/// How long each answer took, the first one first, if so many are worked on at a time: from when its request was there, or
/// from when a place was free, which is when the answer so many before it began.
fn work_alone<'a>(
    requests: &'a [Work],
    answers: &'a [Nanos],
    at_once: usize,
) -> impl Iterator<Item = Nanos> + Clone + 'a {
    let free = move |i: usize| i.checked_sub(at_once).and_then(|before| answers.get(before)).copied();
    let begins =
        requests.iter().enumerate().map(move |(i, r)| free(i).map_or(r.arrived, |at| r.arrived.max(at)));
    answers.iter().zip(begins).map(|(&answered, begins)| answered - begins)
}

/// How many requests were there and not answered, at most.
fn most_at_once(requests: &[Work], answers: &[Nanos]) -> usize {
    let open = |(i, r): (usize, &Work)| i + 1 - answers.partition_point(|&at| at <= r.arrived).min(i + 1);
    requests.iter().enumerate().map(open).max().unwrap_or(0)
}

/// The variance of the logarithms of some times: of their ratios to each other, whatever their scale.
fn variance(times: impl Iterator<Item = Nanos> + Clone) -> f64 {
    // A capture's clock may have no more than microseconds.
    let logs = times.map(|t| (t.0.max(1_000) as f64).ln());
    let (n, sum) = logs.clone().fold((0.0, 0.0), |(n, sum), x| (n + 1.0, sum + x));
    let mean = sum / n;
    logs.fold(0.0, |sum, x| sum + (x - mean) * (x - mean)) / (n - 1.0)
}

/// The same of what answers take that come independently of each other: so many of them in a row take a time of the gamma
/// distribution of that shape, of whose logarithm the trigamma function is the variance: pi squared by six, less one by the
/// square of each smaller number.
fn of_chance(at_once: usize) -> f64 {
    let one = std::f64::consts::PI.powi(2) / 6.0;
    (1..at_once).fold(one, |left, n| left - 1.0 / (n * n) as f64)
}

/// Answers also come one by one through a narrow link. It was none where the tap is beside the server, where nothing is as slow,
/// where twice as much has passed, or where a connection opened in less than a turn while several waited.
fn may_be_a_link(to: &[&Connection], requests: &[Work], turns: &InTurn) -> bool {
    let bytes: u64 = requests.iter().map(|r| r.bytes + HEADERS).sum();
    let each = bytes as f64 / requests.len() as f64;
    let pace = each * f64::from(turns.at_once) * 8e9 / turns.each.0.max(1) as f64;
    let beside = to.iter().all(|c| c.vantage == Vantage::Server);
    let faster = to.iter().filter_map(|c| c.path.bandwidth_bps).any(|rate| rate as f64 >= 2.0 * pace);
    let waiting = |at: Nanos| {
        let there = requests.partition_point(|r| r.arrived <= at);
        requests[..there].iter().filter(|r| r.answered > at).count() > turns.at_once as usize
    };
    let turn = turns.each.part(i64::from(turns.at_once));
    // Mostly one of the first shows it.
    let mut setups = to.iter().filter_map(|c| c.setup.as_ref()).take(1_000);
    let opened = setups.any(|s| {
        let trip = s.spans.iter().find(|span| span.cause == Cause::Handshake);
        trip.is_some_and(|trip| trip.duration() < turn && waiting(trip.start) && waiting(trip.end))
    });
    !(beside || faster || opened || pace < NO_LINK)
}

#[cfg(test)]
mod tests;
