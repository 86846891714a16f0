//! Where the parts of connections go as they end: the detail that was asked for is kept, the rest is only summed.
//! Holds the buffers that are used again for every exchange.

use crate::Detail;
use crate::findings::Rollups;
use crate::result::{Connection, Exchange, Gap, Span};
use crate::step::Step;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpwhy_base::{Cause, Nanos};

/// Spare buffers kept, at most.
const SPARE: usize = 1_024;

/// The exchanges and gaps kept in detail: all, none, or the longest of the capture.
#[derive(Debug)]
pub(crate) struct Output {
    limit: usize,
    exchanges: Longest<Exchange>,
    gaps: Longest<Gap>,
    /// The sums of what is inherent, over all connections.
    pub(crate) inherent: Rollups,
    spans: Vec<Vec<Span>>,
    steps: Vec<Vec<Step>>,
    /// Room for the limit of each step while they are attributed.
    pub(crate) limits: Vec<Cause>,
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
            exchanges: Longest::new(),
            gaps: Longest::new(),
            inherent: Rollups::default(),
            spans: Vec::new(),
            steps: Vec::new(),
            limits: Vec::new(),
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

    /// An empty buffer for steps: a connection holds one only while an exchange goes on.
    pub(crate) fn spare_steps(&mut self) -> Vec<Step> {
        self.steps.pop().unwrap_or_default()
    }

    pub(crate) fn give_back_steps(&mut self, mut steps: Vec<Step>) {
        steps.clear();
        if self.steps.len() < SPARE && steps.capacity() <= 64 {
            self.steps.push(steps);
        }
    }

    /// Whether an exchange of this length would be kept.
    pub(crate) fn wants_exchange(&self, duration: Nanos) -> bool {
        self.exchanges.wants(duration, self.limit)
    }

    /// Whether a gap of this length would be kept.
    pub(crate) fn wants_gap(&self, duration: Nanos) -> bool {
        self.gaps.wants(duration, self.limit)
    }

    pub(crate) fn exchange(&mut self, connection: u32, exchange: Exchange) {
        let key = (exchange.end - exchange.start, Reverse((exchange.end, connection)));
        self.exchanges.add(connection, key, exchange, self.limit);
    }

    pub(crate) fn gap(&mut self, connection: u32, gap: Gap) {
        let key = (gap.end - gap.start, Reverse((gap.end, connection)));
        self.gaps.add(connection, key, gap, self.limit);
    }

    /// Takes over what another one kept; `number` gives the connections' final numbers.
    pub(crate) fn absorb(&mut self, mut other: Output, number: impl Fn(u32) -> u32) {
        for (id, exchange) in other.exchanges.items {
            if self.wants_exchange(exchange.end - exchange.start) {
                self.exchange(number(id), exchange);
            }
        }
        for (id, gap) in other.gaps.items {
            if self.wants_gap(gap.end - gap.start) {
                self.gap(number(id), gap);
            }
        }
        other.inherent.renumber(number);
        self.inherent.merge(&other.inherent);
    }

    /// Hands everything kept to its connection; `connections` ascend by id from 1 without a hole.
    pub(crate) fn give(self, connections: &mut [Connection]) -> Rollups {
        for (id, exchange) in self.exchanges.items {
            if let Some(c) = connections.get_mut(id as usize - 1) {
                c.exchanges.push(exchange);
            }
        }
        for (id, gap) in self.gaps.items {
            if let Some(c) = connections.get_mut(id as usize - 1) {
                c.gaps.push(gap);
            }
        }
        for c in connections {
            c.exchanges.sort_unstable_by_key(|e| e.id);
            c.gaps.sort_unstable_by_key(|g| g.start);
        }
        self.inherent
    }
}

/// What the kept ones are ordered by: the longest first, of equal ones the earliest.
type Rank = (Nanos, Reverse<(Nanos, u32)>);

/// The `limit` longest, with a heap that knows the shortest of them.
#[derive(Debug)]
struct Longest<T> {
    heap: BinaryHeap<Reverse<(Rank, usize)>>,
    items: Vec<(u32, T)>,
}

impl<T> Longest<T> {
    fn new() -> Longest<T> {
        Longest { heap: BinaryHeap::new(), items: Vec::new() }
    }

    fn wants(&self, duration: Nanos, limit: usize) -> bool {
        self.items.len() < limit || self.heap.peek().is_some_and(|Reverse((least, _))| duration >= least.0)
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
