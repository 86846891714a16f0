//! The figures of the answer: the one place from which text, page, JSON and terminal view take every sum and share.

mod headline;

pub use headline::headline;

use std::cmp::Reverse;
use tcpwhy_analysis::{Analysis, Budget, Connection, Distribution, Exchange, Finding, Server};
use tcpwhy_base::{Cause, Class, Endpoint, Kind, Nanos, Owner};

/// Below this share of requests nothing is wrong with whoever owns the time.
pub(crate) const NOTHING_WRONG: f64 = 0.05;

/// How the time of a capture, or of the connections that were asked for, divides.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The time of requests and setups: what shares are of. No moment of a request counts twice.
    pub requests: Nanos,
    /// Gaps between requests, before the last byte of each connection.
    pub idle: Nanos,
    /// How many requests; those that were made while another one was answered are part of that one.
    pub count: u64,
    /// How many connections they were made on.
    pub connections: u64,
    /// From the start of the first to the end of the last.
    pub clock: Nanos,
    /// How many servers they were to, or to whom those were made that one of these asked meanwhile.
    pub servers: usize,
    /// The time of requests by server and cause.
    pub held: Vec<(Endpoint, Budget)>,
    /// Servers that asked another one while they answered, and whom.
    pub asks: Vec<(Endpoint, Endpoint)>,
    /// Connections were in use at the same time, so that times may add up to more than passed.
    pub at_once: bool,
    /// How long requests took.
    pub times: Distribution,
    /// All time by cause: by that of requests, the longest first.
    pub causes: Vec<Part>,
    /// Connections on which the client closed only after the server had, and how long that was after the last byte.
    pub closed_after: (u64, Nanos),
    /// Time of requests whose cause was judged with little confidence; what is not explained is not among it.
    pub unsure: Nanos,
    /// Connections that carried nothing, and how long opening them took: no request waited for that.
    pub empty: (u64, Nanos),
}

/// The time of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub cause: Cause,
    /// In requests and setups.
    pub requests: Nanos,
    /// Between requests.
    pub idle: Nanos,
    /// After the last byte of connections: nobody waited.
    pub after: Nanos,
}

impl Answer {
    /// Of a whole analysis.
    pub fn new(analysis: &Analysis) -> Answer {
        let totals = &analysis.totals;
        let idle = totals.idle_budget();
        let outer = || totals.servers.iter().filter(|s| s.within.is_none());
        let legs: u64 = totals.servers.iter().filter(|s| s.within.is_some()).map(|s| s.times.count()).sum();
        let mut times = Distribution::default();
        outer().for_each(|s| times.add_all(&s.times));
        let (clock, beside) = clock(outer());
        Answer {
            servers: totals.servers.len(),
            held: totals.servers.iter().map(|s| (s.server, s.budget.clone())).collect(),
            asks: totals.servers.iter().flat_map(|s| s.asks.iter().map(|&a| (s.server, a))).collect(),
            requests: totals.requests(),
            idle: idle.total(),
            count: totals.exchanges - legs.min(totals.exchanges),
            connections: outer().map(|s| s.connections).sum::<u64>() + totals.servers_omitted,
            clock,
            at_once: (beside || outer().any(|s| s.at_once)) && totals.requests() > clock,
            times,
            causes: parts(&totals.request_budget(), &idle, &totals.tail),
            closed_after: totals.closed_after,
            unsure: unsure(&analysis.findings),
            empty: totals.empty,
        }
    }

    /// `time` as a share of the time of requests, 0 to 1.
    pub fn share(&self, time: Nanos) -> f64 {
        if self.requests.0 <= 0 { 0.0 } else { (time.0 as f64 / self.requests.0 as f64).clamp(0.0, 1.0) }
    }

    /// The time of one cause.
    pub fn part(&self, cause: Cause) -> Part {
        let none = Part { cause, requests: Nanos::ZERO, idle: Nanos::ZERO, after: Nanos::ZERO };
        self.causes.iter().find(|p| p.cause == cause).copied().unwrap_or(none)
    }

    /// The time of requests that is an owner's.
    pub fn of(&self, owner: Owner) -> Nanos {
        self.sum(|cause| cause.owner() == owner)
    }

    /// The time of requests of the causes that are `meant`.
    pub fn sum(&self, meant: impl Fn(Cause) -> bool) -> Nanos {
        let parts = self.causes.iter().filter(|p| meant(p.cause));
        parts.fold(Nanos::ZERO, |sum, p| sum + p.requests)
    }
}

/// From the first to the last over servers, and whether the times of two overlap.
fn clock<'a>(servers: impl Iterator<Item = &'a Server>) -> (Nanos, bool) {
    let mut ranges: Vec<(Nanos, Nanos)> = servers.filter_map(|s| s.range).collect();
    ranges.sort_unstable();
    let mut all: Option<(Nanos, Nanos)> = None;
    let mut overlap = false;
    for (first, last) in ranges {
        let range = all.get_or_insert((first, first));
        overlap |= first < range.1;
        range.1 = range.1.max(last);
    }
    (all.map_or(Nanos::ZERO, |(first, last)| last - first), overlap)
}

fn parts(requests: &Budget, idle: &Budget, after: &Budget) -> Vec<Part> {
    let mut all = requests.clone();
    all.add_all(idle);
    all.add_all(after);
    let part = |&(cause, _): &(Cause, Nanos)| Part {
        cause,
        requests: requests.get(cause),
        idle: idle.get(cause),
        after: after.get(cause),
    };
    let mut parts: Vec<Part> = all.0.iter().map(part).collect();
    parts.sort_by_key(|p| (Reverse((p.requests, p.idle, p.after)), p.cause));
    parts
}

fn unsure(findings: &[Finding]) -> Nanos {
    let spans = findings.iter().filter(|f| f.cause.info().kind == Kind::Span);
    spans.filter(|f| f.cause != Cause::Unexplained).fold(Nanos::ZERO, |sum, f| sum + f.unsure)
}

/// How many of these servers hold time of a finding, unless nearly all of it is that of `named`: what is done
/// there alone does not save it. The page asks the same (`spread` in web/src/parts.ts).
pub(crate) fn spread(f: &Finding, named: &str, held: &[(Endpoint, Budget)]) -> Option<usize> {
    let of =
        || held.iter().map(|(server, budget)| (server, budget.get(f.cause))).filter(|h| h.1 > Nanos::ZERO);
    let all = of().fold(Nanos::ZERO, |sum, h| sum + h.1);
    let own = of().find(|h| h.0.to_string() == named).map_or(Nanos::ZERO, |h| h.1);
    // Connections are not counted of what is inherent: nearly all have it.
    let on_several = f.connection_count > 1 || f.cause.class() == Class::Inherent;
    let several = on_several && of().count() > 1 && own.times(10) < all.times(9);
    several.then(|| of().count())
}

/// A confidence as it is told: in three digits, as more would claim what nobody knows.
pub(crate) fn rounded(confidence: f64) -> f64 {
    if confidence.is_finite() { (confidence.clamp(0.0, 1.0) * 1e3).round() / 1e3 } else { 0.0 }
}

/// How sure something is, in a word: what is said so is right in nearly all of the time, in most, or is a
/// guess. The page asks the same (`sureness` in web/src/parts.ts) of what JSON holds, so that here, too, it
/// is asked of what is told.
pub fn sureness(confidence: f64) -> &'static str {
    match rounded(confidence) {
        c if c >= 0.9 => "sure",
        c if c >= 0.7 => "likely",
        _ => "a guess",
    }
}

/// The time of a connection's setup and exchanges that TCP owns.
pub fn tcp_time(c: &Connection) -> Nanos {
    let of_tcp = c.budget.0.iter().filter(|e| e.0.owner() == Owner::Tcp);
    of_tcp.fold(Nanos::ZERO, |sum, e| sum + e.1)
}

/// The cause with most time.
pub fn worst(budget: &Budget) -> Option<(Cause, Nanos)> {
    budget.0.iter().max_by_key(|e| (e.1, Reverse(e.0))).copied()
}

/// What slow requests (the 95th percentile) have that typical ones (the median) have not: the cause that grew
/// most, if it is worth a word.
pub(crate) fn slow(times: &Distribution) -> Option<(Cause, Nanos)> {
    let (typical, tail) = (times.around(50)?, times.around(95)?);
    let usual = typical.mean();
    let of = |cause| usual.iter().find(|t| t.0 == cause).map_or(Nanos::ZERO, |t| t.1);
    let more = tail.mean().into_iter().map(|(cause, time)| (cause, time - of(cause)));
    more.max_by_key(|m| (m.1, Reverse(m.0))).filter(|m| m.1.times(10) >= typical.from && m.1 > Nanos::ZERO)
}

/// The longest exchanges of those that are kept in detail.
pub(crate) fn slowest(analysis: &Analysis, n: usize) -> Vec<(&Connection, &Exchange)> {
    let mut all: Vec<(&Connection, &Exchange)> =
        analysis.connections.iter().flat_map(|c| c.exchanges.iter().map(move |x| (&**c, x))).collect();
    all.sort_by_key(|(c, x)| (Reverse(x.end - x.start), c.id, x.id));
    all.truncate(n);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_sure_it_is_is_asked_of_what_is_told() {
        let words = [0.899_4, 0.899_6, 0.9, 0.699_4, 0.699_6].map(sureness);
        assert_eq!(words, ["likely", "sure", "sure", "a guess", "likely"]);
        assert_eq!([0.899_96, f64::NAN, 2.0].map(rounded), [0.9, 0.0, 1.0]);
    }
}
