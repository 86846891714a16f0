use crate::budget::Budget;
use crate::requests::Distribution;
use hashbrown::HashSet;
use tcpwhy_base::{Cause, Endpoint, Nanos};

/// The requests to one address and port, over its connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Server {
    /// Who answered.
    pub server: Endpoint,
    /// How many connections to it.
    pub connections: u64,
    /// How many of them a reset answered at once.
    pub refused: u64,
    /// Setups and exchanges by cause.
    pub budget: Budget,
    /// Gaps before the last byte: no request was on its way on that connection.
    pub idle: Nanos,
    /// How long its exchanges took.
    pub times: Distribution,
    /// From the start of the first setup or exchange to the end of the last.
    pub range: Option<(Nanos, Nanos)>,
    /// Connections were in use at the same time, so that times may add up to more than passed.
    pub at_once: bool,
    /// Its requests were made while that server answered others.
    pub within: Option<Endpoint>,
    /// Whom it asked while it answered; some of them may be no part of what was chosen from the capture.
    pub asks: Vec<Endpoint>,
    /// Requests behind another one on the same connection, without what may be logins.
    pub(crate) in_series: u64,
    /// How long it paused within answers.
    pub(crate) pauses: Nanos,
}

/// An exchange that one host made with another while it answered one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Asked {
    /// Connection and exchange that were being answered.
    pub by: (u32, u32),
    /// Connection and exchange that were made meanwhile.
    pub to: (u32, u32),
    /// How long the latter took.
    pub time: Nanos,
}

impl Server {
    /// The time of its setups and exchanges, summed.
    pub fn requests(&self) -> Nanos {
        self.budget.total()
    }

    /// What passed from the first to the last.
    pub fn clock(&self) -> Nanos {
        self.range.map_or(Nanos::ZERO, |(first, last)| last - first)
    }
}

/// Some requests might have been one: they came one after the other on the same connection and, if another server asked for them, several
/// for each of its own.
pub(crate) fn ask_in_series(servers: &[Server]) -> bool {
    let count = |s: &Server| s.times.count();
    let outer = |s: &Server| servers.iter().find(|o| Some(o.server) == s.within);
    servers.iter().any(|s| s.in_series > 0 && outer(s).is_none_or(|o| count(s) >= 2 * count(o)))
}

/// Of what a server does, that which may be waiting for another one: its work, and, if it passes an answer on as that
/// comes, its pauses within it.
const WAITS: [Cause; 2] = [Cause::ServerThink, Cause::SenderPause];

/// How long the requests took that were made while that server answered.
pub(crate) fn asked_of(servers: &[Server], outer: &Server) -> Nanos {
    let legs = servers.iter().filter(|s| s.within == Some(outer.server));
    legs.fold(Nanos::ZERO, |sum, s| sum + s.requests())
}

/// What requests that took so long take of each of [`WAITS`]; none if they took longer than that.
fn taken_off(outer: &Server, asked: Nanos) -> Option<[Nanos; 2]> {
    let work = asked.min(outer.budget.get(WAITS[0]));
    let pauses = outer.pauses.min(outer.budget.get(WAITS[1]));
    (asked - work <= pauses).then_some([work, asked - work])
}

/// The time by cause that is counted by another one (rules 61 and 132). A server that waited for those it asked has their causes
/// in the place of its own waits. Where they took longer than it waited, it was passing on what it had of them: nobody
/// waited for them but for it, and its causes stand alone. Also how much of it clients paused.
pub(crate) fn counted_elsewhere(servers: &[Server]) -> (Budget, Nanos) {
    let (mut elsewhere, mut of_clients) = (Budget::default(), Nanos::ZERO);
    let outer = |s: &Server| servers.iter().find(|o| Some(o.server) == s.within);
    // Mostly none asks another one.
    let asking: HashSet<Endpoint> = servers.iter().filter_map(|s| s.within).collect();
    for server in servers.iter().filter(|s| s.within.is_some() || asking.contains(&s.server)) {
        let around = std::iter::successors(outer(server), |s| outer(s)).take(servers.len());
        if around.into_iter().any(|o| taken_off(o, asked_of(servers, o)).is_none()) {
            elsewhere.add_all(&server.budget);
            of_clients += (server.budget.get(WAITS[1]) - server.pauses).floor0();
        } else if let Some(taken) = taken_off(server, asked_of(servers, server)) {
            WAITS.into_iter().zip(taken).for_each(|(cause, time)| elsewhere.add(cause, time));
        }
    }
    (elsewhere, of_clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One request for each of the server before is what that one needs; of two, one might have asked for both.
    #[test]
    fn in_series_are_several_for_each_request_of_the_server_before() {
        let server = |port: u16, count: u64, in_series: u64, within: Option<u16>| {
            let end = |port| Endpoint { ip: [10, 0, 0, 2].into(), port };
            let mut times = Distribution::default();
            (0..count).for_each(|_| times.add(Nanos::millis(20), std::iter::empty()));
            let new = Server::new(end(port), Budget::default(), times);
            Server { in_series, within: within.map(end), ..new }
        };
        let asked =
            |count| ask_in_series(&[server(80, 8, 0, None), server(3306, count, count - 1, Some(80))]);
        assert_eq!([8, 15, 16].map(asked), [false, false, true]);
        assert_eq!([0, 1].map(|n| ask_in_series(&[server(80, 8, n, None)])), [false, true]);
    }
}
