//! Where the parts of connections go as they end: the detail that was asked for is kept, the rest is only summed.
//! Holds the buffers that are used again for every exchange.

use crate::Detail;
use crate::findings::{Basis, Rollups};
use crate::leftover::leave_out_kept;
use crate::outlines::{OUTLINED, Outlines};
use crate::result::{Connection, Exchange, Gap, Span};
use crate::step::Step;
use crate::window::Window;
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpwhy_base::{Cause, Nanos};

/// Spare buffers kept, at most.
const SPARE: usize = 1_024;
/// Room for so many steps is used again.
const MOST_STEPS: usize = 5;

/// The exchanges and gaps kept in detail: all, none, or the longest of the capture (or of each connection).
#[derive(Debug)]
pub(crate) struct Output {
    limit: usize,
    kept: Kept,
    /// Where connections leave as they end, each keeps its own; those that are live and keep any.
    own: Option<HashMap<u32, Kept>>,
    /// The sums of what is inherent, over all connections.
    inherent: Rollups,
    /// Only what lies within is accounted for.
    window: Option<Window>,
    spans: Vec<Vec<Span>>,
    steps: Vec<Vec<Step>>,
    bases: Vec<Basis>,
    /// Room for the limit of each step while they are attributed.
    limits: Vec<Cause>,
    /// Connections of which any was kept, where somebody asks.
    holders: Option<HashSet<u32>>,
    /// Everything goes the long way.
    long_way: bool,
    /// The times of the longest, where fewer are kept than tell who asks whom.
    outlines: Option<Box<Outlines>>,
}

impl Output {
    pub(crate) fn new(detail: Detail) -> Output {
        let limit = match detail {
            Detail::All => usize::MAX,
            Detail::Worst(n) => n,
            Detail::None => 0,
        };
        Output {
            limit,
            kept: Kept::default(),
            own: None,
            inherent: Rollups::default(),
            window: None,
            spans: Vec::new(),
            steps: Vec::new(),
            bases: Vec::new(),
            limits: Vec::new(),
            holders: None,
            long_way: false,
            outlines: (limit < OUTLINED).then(Box::default),
        }
    }

    /// One that keeps the longest of each connection.
    pub(crate) fn by_connection(detail: Detail) -> Output {
        Output { own: Some(HashMap::new()), outlines: Some(Box::default()), ..Output::new(detail) }
    }

    /// From now on only what lies within is accounted for.
    pub(crate) fn look_within(&mut self, window: Option<Window>) {
        self.window = window;
    }

    /// From now on nothing takes a short cut.
    pub(crate) fn goes_the_long_way(&mut self) {
        self.long_way = true;
    }

    /// What nothing is odd about may be told in fewer steps, which say the same.
    #[inline]
    pub(crate) fn takes_short_cuts(&self) -> bool {
        !self.long_way
    }

    /// The sums of what is inherent, over all connections.
    pub(crate) fn inherent(&self) -> &Rollups {
        &self.inherent
    }

    /// The same, to add to.
    pub(crate) fn inherent_mut(&mut self) -> &mut Rollups {
        &mut self.inherent
    }

    /// Room for the limit of each step while they are attributed.
    pub(crate) fn limits(&mut self) -> &mut Vec<Cause> {
        &mut self.limits
    }

    /// What is kept of this connection alone.
    fn kept_of(&self, connection: u32) -> Option<&Kept> {
        match &self.own {
            None => Some(&self.kept),
            Some(own) => own.get(&connection),
        }
    }

    fn keep_of(&mut self, connection: u32) -> &mut Kept {
        match &mut self.own {
            None => &mut self.kept,
            Some(own) => own.entry(connection).or_default(),
        }
    }

    /// Hands a connection that has ended what is kept of it alone.
    pub(crate) fn give_own(&mut self, connection: &mut Connection) {
        let Some(kept) = self.own.as_mut().and_then(|own| own.remove(&connection.id)) else { return };
        connection.exchanges = kept.exchanges.items.into_iter().map(|(_, x)| x).collect();
        connection.gaps = kept.gaps.items.into_iter().map(|(_, g)| g).collect();
        in_order(connection);
    }

    /// What of the time from `start` to `end` is accounted for.
    pub(crate) fn within(&self, start: Nanos, end: Nanos) -> Option<(Nanos, Nanos)> {
        match self.window {
            None => Some((start, end)),
            Some(window) => window.part(start, end),
        }
    }

    /// All of the time is accounted for.
    pub(crate) fn sees_all(&self) -> bool {
        self.window.is_none()
    }

    /// Leaves of the spans what is accounted for.
    pub(crate) fn cut(&self, spans: &mut Vec<Span>) {
        if let Some(window) = self.window {
            window.cut(spans);
        }
    }

    /// An empty one with the same limit.
    pub(crate) fn like(&self) -> Output {
        let mut new = Output::new(Detail::None);
        new.limit = self.limit;
        new
    }

    /// An empty buffer for spans.
    pub(crate) fn spare_spans(&mut self) -> Vec<Span> {
        self.spans.pop().unwrap_or_default()
    }

    pub(crate) fn give_back_spans(&mut self, mut spans: Vec<Span>) {
        spans.clear();
        if self.spans.len() < 4 {
            self.spans.push(spans);
        }
    }

    /// Room for the sums of a connection.
    pub(crate) fn spare_basis(&mut self) -> Basis {
        self.bases.pop().unwrap_or_default()
    }

    pub(crate) fn give_back_basis(&mut self, basis: Basis) {
        if self.bases.len() < SPARE {
            self.bases.push(basis.emptied());
        }
    }

    /// An empty buffer for steps: a connection holds one only while an exchange goes on. Only small ones come back, for
    /// most exchanges have few steps; what comes back grows no more when the next exchange needs as many.
    pub(crate) fn spare_steps(&mut self) -> Vec<Step> {
        self.steps.pop().unwrap_or_default()
    }

    pub(crate) fn give_back_steps(&mut self, mut steps: Vec<Step>) {
        steps.clear();
        if self.steps.len() < SPARE && steps.capacity() <= MOST_STEPS {
            self.steps.push(steps);
        }
    }

    /// Whether an exchange of this time would be kept.
    pub(crate) fn wants_exchange(&self, connection: u32, start: Nanos, end: Nanos) -> bool {
        match self.kept_of(connection) {
            Some(kept) => kept.exchanges.wants(rank(connection, start, end), self.limit),
            None => self.limit > 0,
        }
    }

    /// Whether a gap of this time would be kept.
    pub(crate) fn wants_gap(&self, connection: u32, start: Nanos, end: Nanos) -> bool {
        match self.kept_of(connection) {
            Some(kept) => kept.gaps.wants(rank(connection, start, end), self.limit),
            None => self.limit > 0,
        }
    }

    pub(crate) fn exchange(&mut self, connection: u32, exchange: Exchange) {
        let key = rank(connection, exchange.start, exchange.end);
        let limit = self.limit;
        self.keep_of(connection).exchanges.add(connection, key, exchange, limit);
        self.holders.iter_mut().for_each(|known| _ = known.insert(connection));
    }

    pub(crate) fn gap(&mut self, connection: u32, gap: Gap) {
        let key = rank(connection, gap.start, gap.end);
        let limit = self.limit;
        self.keep_of(connection).gaps.add(connection, key, gap, limit);
        self.holders.iter_mut().for_each(|known| _ = known.insert(connection));
    }

    /// The times of the longest exchanges, where they are not those of what is kept.
    #[inline]
    pub(crate) fn outlines(&mut self) -> Option<&mut Outlines> {
        self.outlines.as_deref_mut()
    }

    /// An exchange has ended, kept or not.
    #[inline]
    pub(crate) fn outline(&mut self, which: (u32, u32), times: (Nanos, Nanos, Nanos), answered: bool) {
        if let Some(outlines) = &mut self.outlines {
            outlines.add(which, times, answered);
        }
    }

    /// All of them, where no more will come.
    pub(crate) fn take_outlines(&mut self) -> Option<Box<Outlines>> {
        self.outlines.take()
    }

    /// Every span that is kept of the exchanges of a connection.
    pub(crate) fn each_span(&mut self, connection: u32, change: impl FnMut(&mut Span)) {
        let of = |kept: &&mut (u32, Exchange)| kept.0 == connection;
        let kept = self.keep_of(connection).exchanges.items.iter_mut().filter(of);
        kept.flat_map(|(_, exchange)| &mut exchange.spans).for_each(change);
    }

    /// From now on it is known of which connections anything is kept.
    pub(crate) fn knows_holders(&mut self) {
        self.holders = Some(HashSet::new());
    }

    /// A connection has ended: whether anything was kept of it, or it is the example of what is inherent.
    pub(crate) fn held_any(&mut self, connection: u32) -> bool {
        let held = self.holders.as_mut().is_some_and(|known| known.remove(&connection));
        held || self.inherent.0.iter().any(|r| r.example.example.connection == connection)
    }

    /// Every connection of which anything is kept now, and those of the examples of what is inherent.
    pub(crate) fn each_holder(&self, mut of: impl FnMut(u32)) {
        self.kept.exchanges.items.iter().for_each(|kept| of(kept.0));
        self.kept.gaps.items.iter().for_each(|kept| of(kept.0));
        self.inherent.0.iter().for_each(|r| of(r.example.example.connection));
    }

    /// Takes over what another one kept; `number` gives the connections' final numbers.
    pub(crate) fn absorb(&mut self, mut other: Output, number: impl Fn(u32) -> u32) {
        for (id, exchange) in other.kept.exchanges.items {
            if self.wants_exchange(number(id), exchange.start, exchange.end) {
                self.exchange(number(id), exchange);
            }
        }
        for (id, gap) in other.kept.gaps.items {
            if self.wants_gap(number(id), gap.start, gap.end) {
                self.gap(number(id), gap);
            }
        }
        other.inherent.renumber(number);
        self.inherent.merge(&other.inherent);
    }

    /// Hands everything kept to its connection; `connections` ascend by id.
    pub(crate) fn give(self, connections: &mut [Box<Connection>]) -> Rollups {
        let mut got: Vec<usize> = Vec::new();
        for (id, exchange) in self.kept.exchanges.items {
            if let Ok(at) = connections.binary_search_by_key(&id, |c| c.id) {
                connections[at].exchanges.push(exchange);
                got.push(at);
            }
        }
        for (id, gap) in self.kept.gaps.items {
            if let Ok(at) = connections.binary_search_by_key(&id, |c| c.id) {
                connections[at].gaps.push(gap);
                got.push(at);
            }
        }
        got.sort_unstable();
        got.dedup();
        for at in got {
            in_order(&mut connections[at]);
            leave_out_kept(&mut connections[at]);
        }
        self.inherent
    }
}

fn in_order(c: &mut Connection) {
    c.exchanges.sort_unstable_by_key(|e| e.id);
    c.gaps.sort_unstable_by_key(|g| g.start);
}

/// Exchanges and gaps.
#[derive(Debug, Default)]
struct Kept {
    exchanges: Longest<Exchange>,
    gaps: Longest<Gap>,
}

/// What the kept ones are ordered by: the longest first, of equal ones the earliest.
type Rank = (Nanos, Reverse<(Nanos, u32)>);

#[inline]
fn rank(connection: u32, start: Nanos, end: Nanos) -> Rank {
    (end - start, Reverse((end, connection)))
}

/// The `limit` longest, with a heap that knows the shortest of them.
#[derive(Debug)]
struct Longest<T> {
    heap: BinaryHeap<Reverse<(Rank, usize)>>,
    items: Vec<(u32, T)>,
}

impl<T> Default for Longest<T> {
    fn default() -> Longest<T> {
        Longest { heap: BinaryHeap::new(), items: Vec::new() }
    }
}

impl<T> Longest<T> {
    #[inline]
    fn wants(&self, rank: Rank, limit: usize) -> bool {
        self.items.len() < limit || self.heap.peek().is_some_and(|Reverse((least, _))| rank > *least)
    }

    fn add(&mut self, connection: u32, rank: Rank, item: T, limit: usize) {
        if self.items.len() < limit {
            if limit != usize::MAX {
                self.heap.push(Reverse((rank, self.items.len())));
            }
            self.items.push((connection, item));
            return;
        }
        let Some(mut shortest) = self.heap.peek_mut() else { return };
        let Reverse((least, at)) = *shortest;
        if rank > least {
            *shortest = Reverse((rank, at));
            self.items[at] = (connection, item);
        }
    }
}
