//! Which of many connections are kept, where an answer lists only some: those that any list begins with, and
//! those that something is said of.

use super::Analyzer;
use crate::result::Connection;
use crate::sums::{Order, Rank};
use hashbrown::HashSet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpwhy_base::{Class, Nanos, Owner};

/// Where only some connections are [listed](Analyzer::listing), tables by whatever they are sorted begin with
/// the same so many rows as if all were.
pub const ROWS: usize = 1_000;

/// What a list is sorted by; of equal ones the first come first.
type Place = (Nanos, Nanos, Reverse<Order>);

/// The largest of what has come so far.
#[derive(Debug)]
pub(super) struct Most<T> {
    most: usize,
    heap: BinaryHeap<Reverse<T>>,
}

impl<T: Ord + Copy> Most<T> {
    pub(super) fn new(most: usize) -> Most<T> {
        Most { most, heap: BinaryHeap::new() }
    }

    /// Whether one that comes now would be among them.
    pub(super) fn wants(&self, one: &T) -> bool {
        self.heap.len() < self.most || self.heap.peek().is_some_and(|least| *one > least.0)
    }

    /// Takes one in, and says whether it is among them now.
    pub(super) fn take(&mut self, one: T) -> bool {
        if self.heap.len() < self.most {
            self.heap.push(Reverse(one));
            return true;
        }
        let Some(mut least) = self.heap.peek_mut().filter(|least| one > least.0) else { return false };
        *least = Reverse(one);
        true
    }

    /// The same of one that has come.
    fn has(&self, one: &T) -> bool {
        self.heap.peek().is_some_and(|least| *one >= least.0)
    }

    pub(super) fn into_all(self) -> impl Iterator<Item = T> {
        self.heap.into_iter().map(|one| one.0)
    }

    fn all(&self) -> impl Iterator<Item = &T> {
        self.heap.iter().map(|one| &one.0)
    }
}

/// The connections that lists begin with.
#[derive(Debug)]
pub(super) struct Listed {
    /// A page lists so many.
    most: usize,
    lists: [Most<Place>; 4],
    /// With so many kept, those are left out again that no list begins with any more.
    full: usize,
}

impl Listed {
    /// Those of a page that lists so many.
    pub(super) fn new(most: usize) -> Listed {
        let rows = || Most::new(most.min(ROWS));
        Listed { most, lists: [Most::new(most), rows(), rows(), rows()], full: 2 * most.max(ROWS) }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// What lists are sorted by: pages by what was lost to TCP and its path, and by the time of requests;
    /// tables by the time that is TCP's, and how long they lasted, or nothing else; fixes of their own go to
    /// the longest.
    fn places(c: &Connection) -> [Place; 4] {
        let first = Reverse(Order::of(c));
        let of_tcp = c.budget.0.iter().filter(|e| e.0.owner() == Owner::Tcp);
        let of_tcp = of_tcp.fold(Nanos::ZERO, |sum, e| sum + e.1);
        let total = c.budget.total();
        [
            (c.budget.of_class(Class::Tcp), total, first),
            (of_tcp, c.end - c.start, first),
            (of_tcp, Nanos::ZERO, first),
            (total, Nanos::ZERO, first),
        ]
    }

    /// Whether a list begins with a connection now.
    pub(super) fn take(&mut self, c: &Connection) -> bool {
        let each = self.lists.iter_mut().zip(Listed::places(c));
        each.fold(false, |any, (list, place)| list.take(place) || any)
    }

    /// The same of one that has come.
    fn has(&self, c: &Connection) -> bool {
        self.lists.iter().zip(Listed::places(c)).any(|(list, place)| list.has(&place))
    }
}

/// Leaves of what several analyzers kept what one would have kept.
#[expect(clippy::vec_box, reason = "none is moved")]
pub(super) fn only_listed(done: &mut Vec<Box<Connection>>, most: usize, named: &HashSet<u32>) {
    let mut listed = Listed::new(most);
    done.iter().for_each(|c| _ = listed.take(c));
    let tells = |c: &Connection| !c.exchanges.is_empty() || !c.gaps.is_empty();
    done.retain(|c| listed.has(c) || tells(c) || named.contains(&c.id));
}

/// Those that have lost most, by what findings of theirs are made of being kept, and where that is.
pub(super) type MostLost = Most<(Rank, crate::findings::store::At)>;

impl Analyzer {
    /// The same, where the answer lists the first so many of a page, the first [`ROWS`] of tables, and those
    /// that something is said of: the others are summed, and are counted by
    /// [`Totals::not_kept`](crate::Totals::not_kept). Memory does not grow with them then, but for 24 bytes
    /// of each.
    #[must_use]
    pub fn listing(mut self, most: usize) -> Analyzer {
        self.narrows = false;
        self.kept.knows_holders();
        self.listed = Some(Listed::new(most));
        self
    }

    /// Leaves out what no list begins with any more, and nothing is said of.
    pub(super) fn leave_out_unlisted(&mut self) {
        let Some(listed) = &self.listed else { return };
        let mut named: HashSet<u32> = HashSet::new();
        self.sums.each_named(|id| _ = named.insert(id));
        self.kept.each_holder(|id| _ = named.insert(id));
        named.extend(self.most_lost.all().map(|most| most.0.1.0.id()));
        self.done.retain(|c| listed.has(c) || named.contains(&c.id));
        let full = (2 * self.done.len()).max(listed.full);
        self.listed.iter_mut().for_each(|listed| listed.full = full);
    }

    /// The same, if so many are kept that it is worth looking.
    #[inline]
    pub(super) fn leave_out_some(&mut self) {
        if self.listed.as_ref().is_some_and(|listed| self.done.len() >= listed.full) {
            self.leave_out_unlisted();
        }
    }
}
