//! The answer as a whole: the figures that text, page and terminal view show.

use super::values::{Budget, OwnerName, Shown, SpanCause, unit};
use crate::Capture;
use crate::answer::{Answer, headline, slow, slowest, worst};
use schemars::JsonSchema;
use serde::Serialize;
use tcpwhy_analysis::{self as a, Analysis};
use tcpwhy_base::{Endpoint, Nanos, Owner};

/// Whose time it was, and where it went. Shares are of `request_ns`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Summary {
    /// The verdict in a few sentences.
    pub headline: String,
    /// All requests.
    #[serde(flatten)]
    pub all: Requests,
    /// `request_ns` by who has to act.
    pub owners: Owners,
    /// All time by cause: by that of requests, the longest first.
    pub causes: Vec<CauseTime>,
    /// The part of `request_ns` whose cause was judged with little confidence (below 0.7); what is `unexplained` is not
    /// among it.
    pub unsure_ns: i64,
    /// Requests by who answered them, the one that took most time first; at most a thousand.
    pub servers: Vec<Server>,
    /// Connections to other servers.
    pub servers_omitted: u64,
    /// Connections of a single packet without payload that are not listed: those of a scan (see the finding),
    /// and of others all but the first thousand. They are part of the count of connections, and have numbers.
    /// `--exchanges all` lists them.
    pub connections_omitted: u64,
    /// The longest exchanges over all connections that are kept in detail, the longest first; at most ten.
    pub slowest: Vec<Slow>,
}

/// How many requests, and how long they took.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Requests {
    /// How many requests (exchanges); over the whole capture those that were made while another one was
    /// answered (see `servers`) are part of that one: neither they nor their time count twice.
    pub requests: u64,
    /// The time of requests and of setups, added up.
    pub request_ns: i64,
    /// Gaps between requests, before the last byte of each connection, added up: no request was on its way.
    pub idle_ns: i64,
    /// From the start of the first request or setup to the end of the last.
    pub clock_ns: i64,
    /// Connections were in use at the same time: `request_ns` and `idle_ns` are no one's time.
    pub at_once: bool,
    /// How many of them took time: where nothing came back, or all packets have one stamp, nobody knows how
    /// long they took. The percentiles are of these, unless there are none.
    pub timed: u64,
    /// Of a hundred requests fifty took no longer; this and the other percentile are right to a thousandth.
    pub median_ns: Option<i64>,
    /// Ninety-five took no longer.
    pub p95_ns: Option<i64>,
    /// The longest.
    pub max_ns: Option<i64>,
}

impl Requests {
    fn new(
        times: &a::Distribution,
        [requests, idle, clock]: [Nanos; 3],
        count: u64,
        at_once: bool,
    ) -> Requests {
        let ns = |p| times.percentile(p).map(|t| t.0);
        Requests {
            requests: count,
            request_ns: requests.0,
            idle_ns: idle.0,
            clock_ns: clock.0,
            at_once,
            timed: times.timed(),
            median_ns: ns(50),
            p95_ns: ns(95),
            max_ns: ns(100),
        }
    }
}

/// The requests to one address and port.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Server {
    /// Address and port.
    #[schemars(with = "String")]
    pub server: Shown<Endpoint>,
    /// The server that makes these requests while it answers its own, where one does: each lies within one of
    /// that one's and their time is part of it.
    #[schemars(with = "Option<String>")]
    pub within: Option<Shown<Endpoint>>,
    /// How many connections.
    pub connections: u64,
    /// How many of them a reset answered at once.
    pub refused: u64,
    /// All requests to it.
    #[serde(flatten)]
    pub all: Requests,
    /// `request_ns` by cause.
    pub causes: Budget,
    /// The requests that took about as long as the median.
    pub typical: Option<Band>,
    /// The requests that took about as long as the 95th percentile.
    pub slow: Option<Band>,
    /// What these have more of than typical ones, where that is a tenth of their time or more.
    pub slow_because: Option<More>,
    /// All requests by how long they took, the shortest first: eight bands for each factor of two, those without
    /// requests left out.
    pub distribution: Vec<Band>,
}

/// Requests that took about equally long.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Band {
    /// They took at least so long.
    pub from_ns: i64,
    /// And less than this.
    pub to_ns: i64,
    /// How many.
    pub requests: u64,
    /// Their time by cause, added up.
    pub causes: Budget,
}

/// A cause and what there is more of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct More {
    /// Which.
    pub cause: SpanCause,
    /// How much more, on average.
    pub more_ns: i64,
}

/// An exchange that took long.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Slow {
    /// Id of its connection.
    pub connection: u32,
    /// Its id within that.
    pub exchange: u32,
    /// Who answered.
    #[schemars(with = "String")]
    pub server: Shown<Endpoint>,
    /// When it began.
    pub start_ns: i64,
    /// How long it took.
    pub duration_ns: i64,
    /// What most of its time went to.
    pub cause: Option<SpanCause>,
    /// The time of that.
    pub cause_ns: i64,
}

/// Servers that are listed.
const SERVERS: usize = 1_000;
/// Exchanges that are listed.
const SLOWEST: usize = 10;

impl Server {
    fn new(s: &a::Server) -> Server {
        Server {
            server: Shown(s.server),
            within: s.within.map(Shown),
            connections: s.connections,
            refused: s.refused,
            all: Requests::new(&s.times, [s.requests(), s.idle, s.clock()], s.times.count(), s.at_once),
            causes: Budget(s.budget.clone()),
            typical: s.times.around(50).map(Band::from),
            slow: s.times.around(95).map(Band::from),
            slow_because: slow(&s.times)
                .map(|(cause, more)| More { cause: SpanCause(cause), more_ns: more.0 }),
            distribution: s.times.bands().into_iter().map(Band::from).collect(),
        }
    }
}

impl From<a::Band> for Band {
    fn from(b: a::Band) -> Band {
        Band { from_ns: b.from.0, to_ns: b.to.0, requests: b.count, causes: Budget(b.budget) }
    }
}

impl Slow {
    fn new((c, x): (&a::Connection, &a::Exchange), capture: &Capture) -> Slow {
        let mut budget = a::Budget::default();
        x.spans.iter().for_each(|s| budget.add(s.cause, s.duration()));
        let most = worst(&budget);
        Slow {
            connection: c.id,
            exchange: x.id,
            server: Shown(c.server),
            start_ns: (x.start - capture.start()).0,
            duration_ns: (x.end - x.start).0,
            cause: most.map(|m| SpanCause(m.0)),
            cause_ns: most.map_or(0, |m| m.1.0),
        }
    }
}

/// Time by who has to act.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Owners {
    /// Who wrote or runs the programs.
    pub application: i64,
    /// The two TCP stacks and their settings.
    pub tcp: i64,
    /// The network between.
    pub path: i64,
    /// Not known.
    pub none: i64,
}

/// The time of one cause.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CauseTime {
    /// Which.
    pub cause: SpanCause,
    /// Who has to act.
    pub owner: OwnerName,
    /// In requests and setups.
    pub requests_ns: i64,
    /// That as a share of `request_ns`; they add up to 1.
    #[schemars(range(min = 0, max = 1))]
    pub share_of_requests: f64,
    /// Between requests.
    pub idle_ns: i64,
    /// After the last byte of connections: nobody waited.
    pub after_last_byte_ns: i64,
}

impl Summary {
    /// Of an analysis.
    pub fn new(analysis: &Analysis, capture: &Capture) -> Summary {
        let answer = Answer::new(analysis);
        let of = |owner| answer.of(owner).0;
        let times = [answer.requests, answer.idle, answer.clock];
        Summary {
            headline: headline(analysis, capture, &answer),
            all: Requests::new(&answer.times, times, answer.count, answer.at_once),
            owners: Owners {
                application: of(Owner::Application),
                tcp: of(Owner::Tcp),
                path: of(Owner::Path),
                none: of(Owner::None),
            },
            causes: answer
                .causes
                .iter()
                .map(|p| CauseTime {
                    cause: SpanCause(p.cause),
                    owner: OwnerName(p.cause.owner()),
                    requests_ns: p.requests.0,
                    share_of_requests: unit(answer.share(p.requests)),
                    idle_ns: p.idle.0,
                    after_last_byte_ns: p.after.0,
                })
                .collect(),
            unsure_ns: answer.unsure.0,
            servers: analysis.totals.servers.iter().take(SERVERS).map(Server::new).collect(),
            servers_omitted: analysis.totals.servers_omitted
                + analysis.totals.servers.iter().skip(SERVERS).map(|s| s.connections).sum::<u64>(),
            connections_omitted: analysis.totals.unlisted + analysis.totals.not_kept,
            slowest: slowest(analysis, SLOWEST).into_iter().map(|x| Slow::new(x, capture)).collect(),
        }
    }
}
