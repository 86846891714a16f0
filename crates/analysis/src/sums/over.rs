//! A finding that grows over connections, in whatever order they come.

use crate::findings::{Doubt, EVIDENCE, Rollup, joined};
use crate::fixes::Brief;
use crate::result::{Connection, Example, Extremes, Finding, Frames};
use std::cmp::Reverse;
use tcpwhy_base::{Cause, Nanos, Side};

/// Connections named per finding.
pub(super) const CONNECTIONS: usize = 20;
/// Connections that are remembered for it: some of those may be left out of the answer later.
const REMEMBERED: usize = 4 * CONNECTIONS;

/// Where a connection stands among others: they come as they end, and stand in the order of their first
/// packets. Its number is the final one only after [`Order::renumber`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    frame: u64,
    start: Nanos,
    id: u32,
}

impl Order {
    #[inline]
    pub(crate) fn of(c: &Connection) -> Order {
        Order { frame: c.frames.0, start: c.start, id: c.id }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.id = number(self.id);
    }
}

/// Which of two connections counts: the one that lost more, of equal ones the first.
pub(crate) type Rank = (Nanos, Reverse<Order>);

/// A finding that grows, and which connections lost most.
#[derive(Debug)]
pub(super) struct Over {
    /// Without connections, evidence and fixes; its example is of the connection that ranks first.
    pub(super) finding: Finding,
    pub(super) doubt: Doubt,
    first: Rank,
    /// The first connection: as long as no span counts as an occurrence, the range is that of its own.
    begins: Order,
    /// Those of the first connections.
    evidence: Vec<(Order, Frames)>,
    worst: Vec<(Rank, Brief)>,
    /// The least among `worst`, once there is no more room.
    least: Option<Rank>,
}

/// What one connection adds to a finding.
pub(super) struct Added {
    pub(super) cause: Cause,
    pub(super) side: Option<Side>,
    lost: Nanos,
    tail: Nanos,
    idle: Nanos,
    doubt: Doubt,
    occurrences: u64,
    range: Extremes,
}

impl Added {
    pub(super) fn of(r: &Rollup) -> Added {
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

    /// Of a finding that is not of spans.
    pub(super) fn of_whole(f: &Finding) -> Added {
        Added {
            cause: f.cause,
            side: f.side,
            lost: f.lost,
            tail: f.tail,
            idle: f.idle,
            doubt: Doubt::default(),
            occurrences: f.occurrences,
            range: f.range,
        }
    }
}

impl Over {
    /// That of a first connection.
    pub(super) fn new(c: &Connection, mut finding: Finding, added: &Added) -> Over {
        let order = Order::of(c);
        let rank = (added.lost, Reverse(order));
        finding.example.connection = c.id;
        let evidence = finding.evidence.drain(..).map(|frames| (order, frames)).collect();
        Over {
            finding,
            doubt: added.doubt,
            first: rank,
            begins: order,
            evidence,
            worst: vec![(rank, Brief::of(c))],
            least: None,
        }
    }

    /// The cause, and the side that shows it.
    pub(super) fn key(&self) -> (Cause, Option<Side>) {
        (self.finding.cause, self.finding.side)
    }

    /// Adds another connection, whose finding is made where any of it stays; whether the connection is named now.
    pub(super) fn add(&mut self, c: &Connection, make: impl Fn() -> Finding, added: &Added) -> bool {
        let order = Order::of(c);
        let rank = (added.lost, Reverse(order));
        self.sum(added, 1, order);
        let has_room =
            self.evidence.len() < EVIDENCE || self.evidence.last().is_some_and(|last| order < last.0);
        let is_first = rank > self.first;
        if is_first || has_room {
            let made = make();
            if has_room {
                self.keep_evidence(made.evidence.iter().map(|&frames| (order, frames)));
            }
            if is_first {
                self.take_example(rank, Example { connection: c.id, ..made.example }, made);
            }
        }
        self.remember(rank, || Brief::of(c)) || is_first
    }

    /// The connections that it may name.
    pub(super) fn each_named(&self, name: &mut impl FnMut(u32)) {
        name(self.finding.example.connection);
        self.worst.iter().for_each(|w| name(w.1.id));
    }

    /// Adds what so many connections, of which this is the first, lost together.
    fn sum(&mut self, added: &Added, connections: u64, begins: Order) {
        self.doubt.add(added.doubt);
        let all = &mut self.finding;
        all.lost += added.lost;
        all.tail += added.tail;
        all.idle += added.idle;
        all.connection_count += connections;
        all.range = if all.occurrences == 0 && added.occurrences == 0 && begins < self.begins {
            added.range
        } else {
            joined((all.occurrences, all.range), (added.occurrences, added.range))
        };
        all.occurrences += added.occurrences;
        self.begins = self.begins.min(begins);
    }

    fn take_example(&mut self, rank: Rank, example: Example, of: Finding) {
        self.first = rank;
        let all = &mut self.finding;
        (all.example, all.facts, all.text) = (example, of.facts, of.text);
    }

    /// Takes what connections show, each by itself in order, and keeps that of the first ones.
    fn keep_evidence(&mut self, shown: impl Iterator<Item = (Order, Frames)>) {
        self.evidence.extend(shown);
        self.evidence.sort_by_key(|shown| shown.0);
        self.evidence.truncate(EVIDENCE);
    }

    /// Keeps the connection if it is among those that lost most, and says so.
    fn remember(&mut self, rank: Rank, brief: impl FnOnce() -> Brief) -> bool {
        let Some(least) = self.least else {
            self.worst.push((rank, brief()));
            if self.worst.len() == REMEMBERED {
                self.least = self.worst.iter().map(|w| w.0).min();
            }
            return true;
        };
        if rank <= least {
            return false;
        }
        if let Some(place) = self.worst.iter_mut().find(|w| w.0 == least) {
            *place = (rank, brief());
        }
        self.least = self.worst.iter().map(|w| w.0).min();
        true
    }

    /// Adds what other connections lost to the same.
    pub(super) fn absorb(&mut self, other: Over) {
        let Over { finding: theirs, doubt, first, begins, evidence, worst, least: _ } = other;
        self.sum(&Added { doubt, ..Added::of_whole(&theirs) }, theirs.connection_count, begins);
        if first > self.first {
            self.take_example(first, theirs.example, theirs);
        }
        self.keep_evidence(evidence.into_iter());
        for (rank, brief) in worst {
            _ = self.remember(rank, || brief);
        }
    }

    /// The connections by their final numbers.
    pub(super) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        let connection = &mut self.finding.example.connection;
        *connection = number(*connection);
        let worst = self.worst.iter_mut().map(|(rank, brief)| {
            brief.id = number(brief.id);
            &mut rank.1.0
        });
        let orders = worst.chain(self.evidence.iter_mut().map(|shown| &mut shown.0));
        let orders = orders
            .chain([&mut self.first.1.0, &mut self.begins])
            .chain(self.least.iter_mut().map(|rank| &mut rank.1.0));
        orders.for_each(|order| order.renumber(&number));
    }

    /// The finding with its evidence and connections, and these, worst first.
    pub(super) fn finish(self) -> (Finding, Doubt, Vec<Brief>) {
        let Over { finding: mut f, doubt, evidence, mut worst, .. } = self;
        worst.sort_by_key(|w| Reverse(w.0));
        f.evidence = evidence.into_iter().map(|shown| shown.1).collect();
        f.connections = worst.iter().take(CONNECTIONS).map(|w| w.1.id).collect();
        (f, doubt, worst.into_iter().map(|w| w.1).collect())
    }
}
