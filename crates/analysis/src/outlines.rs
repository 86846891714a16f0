//! When the longest exchanges began and ended: what tells which server asked another one while it answered, also where
//! no detail of them is kept, or where it has left with its connection.

use crate::result::Connection;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpwhy_base::{Endpoint, Nanos};

/// As many as an answer keeps in detail if nothing else is asked for, so that each form of it tells the same.
pub(crate) const OUTLINED: usize = 1_000;

/// An exchange, by its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    pub(crate) server: Endpoint,
    pub(crate) start: Nanos,
    /// The last byte of its request, or its start.
    pub(crate) asked: Nanos,
    pub(crate) end: Nanos,
    /// The capture, or who asked, may have ended before the answer came.
    pub(crate) cut: bool,
}

/// The longest first, of equal ones the earliest.
type Rank = (Nanos, Reverse<(Nanos, u32)>);

/// One whose connection may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    rank: Rank,
    asked: Nanos,
    exchange: u32,
    answered: bool,
}

impl Known {
    fn connection(&self) -> u32 {
        self.rank.1.0.1
    }
}

/// What is known of a connection that has any.
#[derive(Clone, Copy, Debug, Default)]
struct Of {
    outlines: usize,
    /// Its server, and how many exchanges it had, once it has ended.
    ended: Option<(Endpoint, u64)>,
}

/// The longest of a capture.
#[derive(Debug, Default)]
pub(crate) struct Outlines {
    longest: BinaryHeap<Reverse<Known>>,
    of: HashMap<u32, Of>,
}

impl Outlines {
    /// An exchange has ended; `asked`: when its request had.
    #[inline]
    pub(crate) fn add(
        &mut self,
        (connection, exchange): (u32, u32),
        (start, asked, end): (Nanos, Nanos, Nanos),
        answered: bool,
    ) {
        let rank = (end - start, Reverse((end, connection)));
        let full = self.longest.len() == OUTLINED;
        if !full || self.longest.peek().is_some_and(|Reverse(least)| rank > least.rank) {
            self.keep(Known { rank, asked, exchange, answered }, full);
        }
    }

    fn keep(&mut self, new: Known, full: bool) {
        if full
            && let Some(Reverse(gone)) = self.longest.pop()
            && let Some(of) = self.of.get_mut(&gone.connection())
        {
            of.outlines -= 1;
            if of.outlines == 0 {
                self.of.remove(&gone.connection());
            }
        }
        self.of.entry(new.connection()).or_default().outlines += 1;
        self.longest.push(Reverse(new));
    }

    /// A connection has ended.
    pub(crate) fn end(&mut self, c: &Connection) {
        if let Some(of) = self.of.get_mut(&c.id) {
            of.ended = Some((c.server, c.exchange_count()));
        }
    }

    /// Those of connections that have ended.
    pub(crate) fn list(self) -> impl Iterator<Item = Outline> {
        let Outlines { longest, of } = self;
        longest.into_iter().filter_map(move |Reverse(known)| {
            let (server, exchanges) = of.get(&known.connection())?.ended?;
            let Known { rank: (time, Reverse((end, _))), asked, exchange, answered } = known;
            let cut = !answered && u64::from(exchange) == exchanges;
            Some(Outline { server, start: end - time, asked, end, cut })
        })
    }
}

impl Outline {
    /// Those of exchanges that are kept in detail.
    pub(crate) fn of_kept(connections: &[Box<Connection>]) -> Vec<Outline> {
        let of = |c: &'_ Connection| {
            let (server, last) = (c.server, c.exchanges.last().map(|x| x.id));
            let outline = move |x: &crate::result::Exchange| Outline {
                server,
                start: x.start,
                asked: x.request_end.unwrap_or(x.start),
                end: x.end,
                cut: x.bytes[1] == 0 && Some(x.id) == last,
            };
            c.exchanges.iter().map(outline).collect::<Vec<_>>()
        };
        longest(connections.iter().flat_map(|c| of(c)).collect())
    }
}

/// The longest of these: as many as are known where no detail is kept.
pub(crate) fn longest(mut all: Vec<Outline>) -> Vec<Outline> {
    if all.len() > OUTLINED {
        all.select_nth_unstable_by_key(OUTLINED, |x| (Reverse(x.end - x.start), x.end, x.server));
        all.truncate(OUTLINED);
    }
    all
}
