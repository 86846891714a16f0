use super::server::counted_elsewhere;
use super::{Asked, Connection, Extremes, Quality, Server, SharedLink};
use crate::budget::Budget;
use tcpwhy_base::{Cause, Nanos};

/// Totals over a capture.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Totals {
    /// TCP segments eaten.
    pub segments: u64,
    /// Of these, copies left out.
    pub duplicates: u64,
    /// Connections.
    pub connections: u64,
    /// Of these, connections of a single packet without payload that are not listed: those of scans, and of
    /// others all but the first thousand.
    pub unlisted: u64,
    /// Of these, connections that are not listed since only [some](crate::Analyzer::listing) were asked for.
    pub not_kept: u64,
    /// Of these, connections with packets of both ends.
    pub two_sided: u64,
    /// Connections whose beginning is not in the capture, and how long somebody waited on these.
    pub midstream: (u64, Nanos),
    /// Connections that were opened and closed without a byte between, and how long the handshakes of these
    /// took: no request waited for them.
    pub empty: (u64, Nanos),
    /// Connections that a reset ended while an answer was under way.
    pub cut_off: u64,
    /// Connections whose last request came to a server that had closed.
    pub too_late: u64,
    /// Connections whose last request ended with a reset of a server that had acknowledged nothing of it, or that had it.
    pub reset: [u64; 2],
    /// Connections whose last request its client gave up, and the shortest and the longest wait before that.
    pub gave_up: (u64, Extremes),
    /// Connections on which the client closed only after the server had, and how long that was after the last byte.
    pub closed_after: (u64, Nanos),
    /// Earliest and latest segment.
    pub span: Option<(Nanos, Nanos)>,
    /// Setup + exchanges, over all connections.
    pub budget: Budget,
    /// Gaps.
    pub gap_budget: Budget,
    /// The part of `gap_budget` after the last bytes of connections.
    pub tail: Budget,
    /// Exchanges.
    pub exchanges: u64,
    /// By whom they were answered, the one that took most time first.
    pub servers: Vec<Server>,
    /// Of the exchanges kept in detail, those that lie within one other alone, to whose server theirs is the
    /// upstream; ascending.
    pub asked: Vec<Asked>,
    /// Links that several transfers filled together, in the order of time.
    pub shared_links: Vec<SharedLink>,
    /// Connections to servers that are not among these, since there were too many to tell apart.
    pub servers_omitted: u64,
    /// Setup, exchanges and the gaps before the last byte, over all connections: what shares are of.
    pub measured: Nanos,
    /// Connections that show each of [`Quality::NAMES`].
    pub quality: [u64; Quality::NAMES.len()],
}

impl Totals {
    /// Takes in what a connection took.
    pub(crate) fn add_times(&mut self, c: &Connection) {
        self.measured += c.measured();
        self.budget.add_all(&c.budget);
        self.gap_budget.add_all(&c.gap_budget);
        if let Some((cause, time)) = c.tail {
            self.tail.add(cause, time);
        }
        self.exchanges += c.exchange_count();
    }

    /// Takes in those of other connections, of other servers.
    pub(crate) fn add_all(&mut self, other: Totals) {
        self.segments += other.segments;
        self.duplicates += other.duplicates;
        self.connections += other.connections;
        self.two_sided += other.two_sided;
        self.midstream = (self.midstream.0 + other.midstream.0, self.midstream.1 + other.midstream.1);
        self.empty = (self.empty.0 + other.empty.0, self.empty.1 + other.empty.1);
        self.cut_off += other.cut_off;
        self.too_late += other.too_late;
        self.reset = [0, 1].map(|i| self.reset[i] + other.reset[i]);
        self.add_given_up(other.gave_up);
        self.closed_after =
            (self.closed_after.0 + other.closed_after.0, self.closed_after.1 + other.closed_after.1);
        self.exchanges += other.exchanges;
        self.measured += other.measured;
        self.budget.add_all(&other.budget);
        self.gap_budget.add_all(&other.gap_budget);
        self.tail.add_all(&other.tail);
        self.quality.iter_mut().zip(other.quality).for_each(|(count, more)| *count += more);
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }

    /// Takes in what a connection shows of itself.
    pub fn add_connection(&mut self, c: &Connection) {
        self.add_quality(c.quality);
        self.two_sided += u64::from(!c.packets.contains(&0));
        if c.was_empty() {
            self.empty = (self.empty.0 + 1, self.empty.1 + c.budget.get(Cause::Handshake));
        }
        self.cut_off += u64::from(c.cut_off);
        self.too_late += u64::from(c.too_late);
        self.reset[0] += u64::from(c.reset_unheard);
        self.reset[1] += u64::from(c.reset_heard);
        self.add_given_up(c.gave_up.map_or_else(Default::default, |waited| (1, Extremes::of(waited))));
        if let Some(after) = c.closed_after.filter(|_| !c.too_late) {
            self.closed_after = (self.closed_after.0 + 1, self.closed_after.1 + after);
        }
        if c.quality.has(Quality::MIDSTREAM) {
            self.midstream = (self.midstream.0 + 1, self.midstream.1 + c.budget.total());
        }
    }

    fn add_given_up(&mut self, (count, waited): (u64, Extremes)) {
        let (known, all) = &mut self.gave_up;
        if count > 0 {
            let shortest = if *known > 0 { all.shortest.min(waited.shortest) } else { waited.shortest };
            *all = Extremes { shortest, longest: all.longest.max(waited.longest) };
            *known += count;
        }
    }

    /// The time of requests and setups. A request that was made while another one was answered is part of that one:
    /// nobody waited for both.
    pub fn requests(&self) -> Nanos {
        self.budget.total() - self.counted_twice()
    }

    /// The same by cause: what a server waited for another one is not its own work.
    pub fn request_budget(&self) -> Budget {
        let mut budget = self.budget.clone();
        self.counted_elsewhere().0.0.iter().for_each(|&(cause, time)| budget.subtract(cause, time));
        budget
    }

    /// What is [counted twice](Totals::counted_twice), by cause: of a server what it waited for those that it asked, or
    /// of these what it did not wait for; and how much of that clients paused.
    pub(crate) fn counted_elsewhere(&self) -> (Budget, Nanos) {
        counted_elsewhere(&self.servers)
    }

    /// Gaps before the last byte by cause: no request was on its way.
    pub fn idle_budget(&self) -> Budget {
        let mut budget = self.gap_budget.clone();
        self.tail.0.iter().for_each(|&(cause, time)| budget.subtract(cause, time));
        budget
    }

    /// The time of requests that were made while another one was answered.
    pub fn counted_twice(&self) -> Nanos {
        let within = self.servers.iter().filter(|s| s.within.is_some());
        within.fold(Nanos::ZERO, |sum, s| sum + s.requests())
    }

    /// Counts what limits what can be said of a connection.
    pub fn add_quality(&mut self, quality: Quality) {
        for (count, (bit, _)) in self.quality.iter_mut().zip(Quality::NAMES) {
            *count += u64::from(quality.has(bit));
        }
    }

    /// How many connections show it.
    pub fn with_quality(&self, wanted: Quality) -> u64 {
        let counts = Quality::NAMES.iter().zip(&self.quality);
        counts.filter(|((bit, _), _)| wanted.has(*bit)).map(|(_, &count)| count).sum()
    }
}
