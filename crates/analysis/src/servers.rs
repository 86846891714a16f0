//! Requests by server: sums over its connections, and which server asks which other one for its answers.

use crate::budget::Budget;
use crate::facts::Facts;
use crate::findings::Basis;
use crate::findings::packed::waits_after_setup;
use crate::outlines::Outline;
use crate::requests::Distribution;
use crate::result::{Asked, Connection, Example, Server, Span, Vantage, asked_of};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Endpoint, Nanos, Side};

/// Requests of servers that took the most time are looked for within those of others.
const UPSTREAMS: usize = 64;
/// Exchanges of one server at once among which the one is looked for that another one was made for.
const MOST_OPEN: usize = 4_096;

/// Sums by server.
#[derive(Debug)]
pub(crate) struct Servers {
    index: HashMap<Endpoint, u32>,
    all: Vec<Sum>,
    /// No more servers than this are told apart.
    most: usize,
    omitted: u64,
    /// Of no server more stretches are told apart in which it was used.
    stretches: usize,
}

/// What is summed of one server.
#[derive(Debug)]
struct Sum {
    server: Server,
    seen: Seen,
    /// When its connections were used, as long as no two were at once; ascending.
    used: Vec<(Nanos, Nanos)>,
}

/// Where the clients of a server are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clients {
    On(IpAddr),
    /// On more than one address of the loopback.
    Loopback,
    Anywhere,
}

impl Clients {
    #[inline]
    fn and(self, ip: IpAddr) -> Clients {
        match self {
            Clients::On(known) if known == ip => self,
            Clients::On(known) if known.is_loopback() && ip.is_loopback() => Clients::Loopback,
            Clients::Loopback if ip.is_loopback() => self,
            _ => Clients::Anywhere,
        }
    }

    /// Of both.
    fn with(self, other: Clients) -> Clients {
        match other {
            Clients::On(ip) => self.and(ip),
            Clients::Loopback if self == Clients::Loopback => self,
            Clients::Loopback if matches!(self, Clients::On(ip) if ip.is_loopback()) => other,
            _ => Clients::Anywhere,
        }
    }

    /// All are on the host of that address.
    fn are_on(self, host: IpAddr) -> bool {
        match self {
            Clients::On(ip) => ip == host || ip.is_loopback() && host.is_loopback(),
            Clients::Loopback => host.is_loopback(),
            Clients::Anywhere => false,
        }
    }

    fn on_loopback(self) -> bool {
        match self {
            Clients::On(ip) => ip.is_loopback(),
            Clients::Loopback => true,
            Clients::Anywhere => false,
        }
    }
}

/// Where the connections to a server were seen from, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    clients: Clients,
    /// Some of them beside the client, beside the server, anywhere else.
    at: [bool; 3],
}

impl Seen {
    /// Of one connection. One that was cut off by the end of the capture, or was never answered, does not tell where
    /// that was.
    fn of(c: &Connection) -> Seen {
        let at = [Vantage::Client, Vantage::Server, Vantage::Middle].map(|vantage| c.vantage == vantage);
        Seen { clients: Clients::On(c.client.ip), at }
    }

    /// Of both.
    fn with(self, other: Seen) -> Seen {
        let at = std::array::from_fn(|i| self.at[i] || other.at[i]);
        Seen { clients: self.clients.with(other.clients), at }
    }
}

/// The clients of `inner` are on the host of `outer`: at its address, or on its loopback, where the capture was made
/// there, or somewhere else beside the capture where `outer` is on loopback and passes requests on. What is on loopback
/// is seen on its own host alone.
fn asks((outer, of_outer): (&Server, &Seen), (inner, of_inner): (&Server, &Seen)) -> bool {
    let clients = of_inner.clients;
    clients.are_on(outer.server.ip)
        || clients.on_loopback() && of_outer.at == [false, true, false]
        || outer.server.ip.is_loopback() && of_inner.at == [true, false, false] && passes_on(outer, inner)
}

impl Servers {
    /// No more servers than these are told apart, and of each no more stretches in which it was used.
    pub(crate) fn new(most: usize, stretches: usize) -> Servers {
        Servers { index: HashMap::new(), all: Vec::new(), most, omitted: 0, stretches }
    }

    /// The place of a server; a new one comes with where its first connection was seen.
    fn place(&mut self, server: Endpoint, seen: Seen) -> Option<u32> {
        if let Some(&at) = self.index.get(&server) {
            return Some(at);
        }
        if self.all.len() >= self.most {
            return None;
        }
        let at = u32::try_from(self.all.len()).ok()?;
        self.index.insert(server, at);
        let new = Server {
            server,
            connections: 0,
            refused: 0,
            budget: Budget::default(),
            idle: Nanos::ZERO,
            times: Distribution::default(),
            range: None,
            at_once: false,
            within: None,
            asks: Vec::new(),
            in_series: 0,
            pauses: Nanos::ZERO,
        };
        self.all.push(Sum { server: new, seen, used: Vec::new() });
        Some(at)
    }

    /// Adds a connection, whose requests may be [told](crate::findings::Basis::told) by its budget.
    pub(crate) fn add(&mut self, c: &Connection, basis: &Basis) {
        let (requests, seen) = (&basis.requests, Seen::of(c));
        let Some(at) = self.place(c.server, seen) else {
            self.omitted += 1;
            return;
        };
        let sum = &mut self.all[at as usize];
        sum.seen = sum.seen.with(seen);
        let server = &mut sum.server;
        server.connections += 1;
        server.refused += u64::from(c.budget.get(Cause::Refused) > Nanos::ZERO);
        server.budget.add_all(&c.budget);
        server.idle += c.idle();
        server.pauses += pauses(basis);
        server.in_series += c.exchange_count().saturating_sub(1 + c.login());
        requests.add_to(basis.told, &mut server.times, waits_after_setup(c));
        if let Some(range) = requests.range {
            sum.use_during(range, self.stretches);
        }
    }

    /// Adds those of other connections.
    pub(crate) fn absorb(&mut self, other: Servers) {
        self.omitted += other.omitted;
        for Sum { server: theirs, seen, used } in other.all {
            let Some(at) = self.place(theirs.server, seen) else {
                self.omitted += theirs.connections;
                continue;
            };
            let sum = &mut self.all[at as usize];
            sum.seen = sum.seen.with(seen);
            let server = &mut sum.server;
            server.connections += theirs.connections;
            server.refused += theirs.refused;
            server.budget.add_all(&theirs.budget);
            server.idle += theirs.idle;
            server.pauses += theirs.pauses;
            server.in_series += theirs.in_series;
            server.times.add_all(&theirs.times);
            used.into_iter().for_each(|range| sum.use_during(range, self.stretches));
            if theirs.at_once {
                sum.is_used_at_once(theirs.range);
            }
        }
    }

    /// The servers, the one that took most time first, and where each was seen from; and how many
    /// connections are to others.
    pub(crate) fn list(self) -> (Vec<Server>, Vec<Seen>, u64) {
        let mut all = self.all;
        all.sort_by_key(|s| (Reverse(s.server.requests()), s.server.server));
        let (servers, seen) = all.into_iter().map(|s| (s.server, s.seen)).unzip();
        (servers, seen, self.omitted)
    }
}

impl Sum {
    /// A connection was used from and until then. They come in any order, which does not matter but where
    /// there are more stretches than are told apart: the earliest two become one then.
    fn use_during(&mut self, (first, last): (Nanos, Nanos), stretches: usize) {
        let Server { range, at_once, .. } = &mut self.server;
        let hull = range.get_or_insert((first, last));
        *hull = (hull.0.min(first), hull.1.max(last));
        if *at_once {
            return;
        }
        // Mostly behind all others.
        let is_last = self.used.last().is_none_or(|used| *used <= (first, last));
        let at = if is_last { self.used.len() } else { self.used.partition_point(|u| *u < (first, last)) };
        let before = at.checked_sub(1).and_then(|at| self.used.get(at));
        let after = self.used.get(at);
        if before.is_some_and(|used| used.1 > first) || after.is_some_and(|used| used.0 < last) {
            self.is_used_at_once(None);
            return;
        }
        self.used.insert(at, (first, last));
        if self.used.len() > stretches {
            self.used[1].0 = self.used[0].0;
            self.used.remove(0);
        }
    }

    /// Two of its connections were, some time in this.
    fn is_used_at_once(&mut self, within: Option<(Nanos, Nanos)>) {
        let Server { range, at_once, .. } = &mut self.server;
        *at_once = true;
        *range = match (*range, within) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.used = Vec::new();
    }
}

/// Finds the servers that are asked by another one while that answers (a proxy and what is behind it; rule
/// 61): the asking host is where the other one answers, and each request lies within one of the other's,
/// after it was asked and before it has answered. Of those the one that took least is the nearest.
///
/// What encloses a long one is longer, so that the longest `outlines` tell it.
pub(crate) fn find_upstreams(servers: &mut [Server], seen: &[Seen], outlines: impl FnOnce() -> Vec<Outline>) {
    let candidates = || servers.iter().zip(seen).take(UPSTREAMS);
    // Mostly clients come from somewhere else, and no exchange has to be looked at.
    let mut known: HashSet<Endpoint> = HashSet::new();
    for inner in candidates() {
        let outer = candidates().filter(|o| o.0.server != inner.0.server && asks(*o, inner));
        outer.for_each(|outer| known.extend([inner.0.server, outer.0.server]));
    }
    if known.is_empty() {
        return;
    }
    let mut detail: HashMap<Endpoint, Detail> = HashMap::new();
    for outline in outlines().into_iter().filter(|o| known.contains(&o.server)) {
        detail.entry(outline.server).or_default().exchanges.push(outline);
    }
    detail.values_mut().for_each(Detail::order);
    let within: Vec<Option<Endpoint>> = servers
        .iter()
        .zip(seen)
        .map(|upstream| {
            let mine = detail.get(&upstream.0.server)?;
            // Those that took least stand last.
            let outer = candidates().rev().filter(|o| o.0.requests() > upstream.0.requests());
            outer
                .into_iter()
                .filter(|o| asks(*o, upstream))
                .find(|o| encloses(o.0, detail.get(&o.0.server), upstream.0, mine))
                .map(|o| o.0.server)
        })
        .collect();
    for (server, within) in servers.iter_mut().zip(within) {
        server.within = within;
    }
    forget_parallel(servers);
    let upstreams: Vec<(Endpoint, Endpoint)> = upstreams(servers).collect();
    for server in servers {
        server.asks = upstreams.iter().filter(|l| l.0 == server.server).map(|l| l.1).collect();
    }
}

/// Who asks whom.
pub(crate) fn upstreams(servers: &[Server]) -> impl Iterator<Item = (Endpoint, Endpoint)> {
    servers.iter().filter_map(|s| Some((s.within?, s.server)))
}

/// An exchange that is answered: from the last byte of its request, until the last of its response, and which it is.
struct Answer {
    from: Nanos,
    to: Nanos,
    of: (u32, u32),
    /// The latest end of those so far.
    latest: Nanos,
}

/// Which exchange was made for which other one: it lies between the end of that one's request and the end of
/// its answer, and of no other one's.
pub(crate) fn asked(servers: &[Server], connections: &[Box<Connection>]) -> Vec<Asked> {
    let mut all = Vec::new();
    let to = |server: Endpoint| connections.iter().filter(move |c| c.server == server);
    for outer in servers.iter().filter(|s| !s.asks.is_empty()) {
        let mut answers: Vec<Answer> = to(outer.server)
            .flat_map(|c| c.exchanges.iter().map(|x| (c.id, x)))
            .map(|(c, x)| {
                let from = x.request_end.unwrap_or(x.start);
                Answer { from, to: x.end, of: (c, x.id), latest: x.end }
            })
            .collect();
        answers.sort_by_key(|a| (a.from, a.of));
        let mut latest = Nanos(i64::MIN);
        for answer in &mut answers {
            latest = latest.max(answer.to);
            answer.latest = latest;
        }
        for (c, x) in
            outer.asks.iter().flat_map(|&s| to(s)).flat_map(|c| c.exchanges.iter().map(|x| (c.id, x)))
        {
            let begun = answers.partition_point(|a| a.from <= x.start);
            let open = answers[..begun].iter().rev().take_while(|a| a.latest >= x.end);
            let mut around = open.take(MOST_OPEN).filter(|a| a.to >= x.end);
            if let (Some(answer), None) = (around.next(), around.next()) {
                all.push(Asked { by: answer.of, to: (c, x.id), time: x.end - x.start });
            }
        }
    }
    all.sort_unstable();
    all
}

/// Where a server's own time is mostly that of a server which it asked meanwhile (rule 61): that one's
/// connection, the longest span of its work within, and what is said of it. As deep as is seen.
pub(crate) fn spent_within<'a>(
    example: &Example,
    connections: &'a [Box<Connection>],
    servers: &[Server],
) -> Option<(&'a Connection, Example, Facts)> {
    if servers.iter().all(|s| s.within.is_none()) {
        return None;
    }
    let mut found = None;
    let mut at = *example;
    for _ in 0..servers.len() {
        let outer = connections.iter().find(|c| c.id == at.connection)?.server;
        let inner = |c: &&Connection| servers.iter().any(|s| s.server == c.server && s.within == Some(outer));
        let spans = connections.iter().map(|c| &**c).filter(inner).flat_map(|c| {
            let works = |s: &&Span| s.cause == Cause::ServerThink && at.start <= s.start && s.end <= at.end;
            c.exchanges.iter().flat_map(move |x| x.spans.iter().filter(works).map(move |s| (c, x.id, s)))
        });
        let Some((c, exchange, span)) = spans.max_by_key(|s| (s.2.duration(), Reverse((s.0.id, s.1)))) else {
            break;
        };
        if span.duration().0 < (at.end - at.start).0 / 2 {
            break;
        }
        at = Example { connection: c.id, exchange, frames: span.frames, start: span.start, end: span.end };
        found = Some((c, at, span.facts));
    }
    found
}

/// What is known of the exchanges of one server.
#[derive(Default)]
struct Detail {
    /// From the last byte of a request to the last of its response, ascending by start; the end is the latest so far.
    answers: Vec<(Nanos, Nanos)>,
    /// The same from the first byte of a request.
    whole: Vec<(Nanos, Nanos)>,
    exchanges: Vec<Outline>,
}

impl Detail {
    fn order(&mut self) {
        self.answers = self.exchanges.iter().map(|x| (x.asked, x.end)).collect();
        self.whole = self.exchanges.iter().map(|x| (x.start, x.end)).collect();
        for times in [&mut self.answers, &mut self.whole] {
            times.sort_unstable();
            let mut latest = Nanos(i64::MIN);
            for (_, end) in times {
                latest = latest.max(*end);
                *end = latest;
            }
        }
    }
}

fn encloses(outer: &Server, detail: Option<&Detail>, upstream: &Server, mine: &Detail) -> bool {
    let Some(detail) = detail.filter(|_| outer.server != upstream.server) else { return false };
    let lies_in = |times: &[(Nanos, Nanos)]| {
        let (mut all, mut inside) = (0, 0);
        for x in &mine.exchanges {
            let i = times.partition_point(|a| a.0 <= x.start);
            let within = i > 0 && times[i - 1].1 >= x.end;
            // Where the capture ended before an answer came, nothing tells when that would have been.
            all += usize::from(within || !x.cut);
            inside += usize::from(within);
        }
        // A request in twenty may be something else: a check whether the server lives.
        all > 0 && inside * 20 >= all * 19
    };
    lies_in(&detail.answers) || passes_on(outer, upstream) && lies_in(&detail.whole)
}

/// What passes requests on asks no more often than it is asked.
fn passes_on(outer: &Server, inner: &Server) -> bool {
    inner.times.count() <= outer.times.count()
}

/// How long the server paused within answers.
fn pauses(of: &Basis) -> Nanos {
    let paused =
        of.rollups.0.iter().filter(|r| (r.cause, r.side) == (Cause::SenderPause, Some(Side::Server)));
    paused.fold(Nanos::ZERO, |sum, r| sum + (r.lost - r.tail - r.idle))
}

/// Requests that ran beside each other within one, and took longer together than all of it, are no part of it: they are
/// counted as what they are, side by side.
fn forget_parallel(servers: &mut [Server]) {
    loop {
        let full = servers.iter().find(|o| asked_of(servers, o) > o.requests()).map(|o| o.server);
        let Some(outer) = full else { return };
        servers.iter_mut().filter(|s| s.within == Some(outer)).for_each(|s| s.within = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether any of these were used at once, in the order given; 64 stretches are told apart.
    fn at_once(ranges: &[(i64, i64)]) -> bool {
        at_once_among(ranges, 64)
    }

    fn at_once_among(ranges: &[(i64, i64)], stretches: usize) -> bool {
        let mut servers = Servers::new(1, stretches);
        let server = Endpoint { ip: "10.0.0.1".parse().unwrap(), port: 80 };
        let seen = Seen { clients: Clients::Anywhere, at: [false; 3] };
        let at = servers.place(server, seen).unwrap();
        ranges
            .iter()
            .for_each(|&(a, b)| servers.all[at as usize].use_during((Nanos(a), Nanos(b)), stretches));
        servers.all[at as usize].server.at_once
    }

    #[test]
    fn no_order_makes_connections_overlap() {
        for (ranges, expected) in [
            ([(0, 1), (5, 6), (10, 11)], false),
            ([(0, 1), (1, 10), (10, 11)], false),
            ([(0, 0), (1, 1), (2, 2)], false),
            ([(0, 5), (4, 6), (10, 11)], true),
            ([(0, 11), (5, 6), (20, 21)], true),
            ([(3, 3), (0, 5), (20, 21)], true),
        ] {
            let [a, b, c] = ranges;
            for order in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
                assert_eq!(at_once(&order), expected, "{order:?}");
            }
        }
        // One after the other, as long as it goes.
        let many: Vec<(i64, i64)> = (0..1_000).map(|i| (10 * i, 10 * i + 5)).collect();
        assert!(!at_once(&many));
        // In whatever order, where all are told apart; else the two that are earliest count as one.
        let turned: Vec<(i64, i64)> = many.iter().rev().copied().collect();
        let mixed: Vec<(i64, i64)> = (0..1_000).map(|i| many[i * 7 % 1_000]).collect();
        assert!(!at_once_among(&turned, usize::MAX) && !at_once_among(&mixed, usize::MAX));
        assert!(!at_once(&turned) && at_once(&mixed));
    }

    /// Where clients are does not depend on how their connections were dealt, and is what each of them says.
    #[test]
    fn clients_are_where_all_of_them_are() {
        let ips: Vec<IpAddr> = ["10.0.0.1", "10.0.0.2", "127.0.0.1", "127.0.0.2", "::1"]
            .iter()
            .map(|ip| ip.parse().unwrap())
            .collect();
        let together = |ips: &[IpAddr]| ips[1..].iter().fold(Clients::On(ips[0]), |all, &ip| all.and(ip));
        let on = |host: IpAddr, ip: IpAddr| ip == host || ip.is_loopback() && host.is_loopback();
        for n in 0..125 {
            let three = [ips[n % 5], ips[n / 5 % 5], ips[n / 25]];
            let all = together(&three);
            for host in &ips {
                assert_eq!(all.are_on(*host), three.iter().all(|&ip| on(*host, ip)), "{three:?} {host}");
            }
            for split in 1..3 {
                let (first, second) = three.split_at(split);
                let dealt = together(first).with(together(second));
                assert!(ips.iter().all(|&host| dealt.are_on(host) == all.are_on(host)), "{three:?}");
            }
        }
    }
}
