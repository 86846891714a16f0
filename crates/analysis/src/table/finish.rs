//! The end: connections are numbered by their first packets, summed up, and given out.

use super::held::{Held, TOGETHER};
use super::listed::{Listed, only_listed};
use super::lone::Lones;
use super::scan::{Scans, Silent};
use super::{Analyzer, Slot, WITH_FINDINGS};
use crate::fetch::fetch;
use crate::findings::store::{At, Place};
use crate::findings::{self, Basis};
use crate::outlines::Outline;
use crate::output::Output;
use crate::result::{Connection, Finding, Totals};
use crate::shared::Shared;
use crate::sums::{Rank, Sums, each_of};
use crate::{Analysis, Bases};
use hashbrown::HashSet;
use std::cmp::{Ordering, Reverse};
use tcpwhy_base::{Nanos, Part, Segment};

/// Stands for the slot of a connection that has none.
const NO_SLOT: u32 = u32::MAX;

impl Analyzer {
    /// The answer.
    pub fn finish(self) -> Analysis {
        Analyzer::finish_all(vec![self])
    }

    /// Ends the connections that still live, for [`Analyzer::finish_all`].
    pub fn end_live(&mut self) {
        self.let_them_go();
        (self.index, self.links) = Default::default();
        self.silent.reserve(self.live.len() - self.held);
        let mut last: Vec<Box<Held>> = Vec::with_capacity(TOGETHER);
        let mut live = std::mem::take(&mut self.live);
        for at in 0..live.len() {
            // What those behind it need is on its way from memory: where they lead first, then that.
            let behind = |n: usize| match live.get(at + n) {
                Some(Slot::Conn(held)) => Some(held),
                _ => None,
            };
            behind(2 * AHEAD).into_iter().for_each(|held| held.fetch_first());
            behind(AHEAD).into_iter().for_each(|held| held.fetch_state(&self.room));
            behind(AHEAD / 2).into_iter().for_each(|held| {
                held.fetch_lists(false);
                held.fetch_oldest(&self.room);
            });
            match std::mem::replace(&mut live[at], Slot::Free) {
                Slot::Free => {}
                Slot::Lone(at, id) => self.silent.push((at, id)),
                Slot::Conn(held) => last.push(held),
            }
            if last.len() == TOGETHER {
                self.end_last(&mut last);
            }
        }
        self.end_last(&mut last);
        self.add_over();
    }

    /// These still lived at the end of the capture.
    #[expect(clippy::vec_box, reason = "they come from where they were, and none is moved")]
    fn end_last(&mut self, last: &mut Vec<Box<Held>>) {
        Held::run_all(last.iter_mut().map(|held| &mut **held), &mut self.kept, &mut self.room);
        last.drain(..).for_each(|held| self.finish_held(held, true));
    }

    /// Ends the connections that still live; they are then the last that [`Analyzer::ended`] gives, in the order of
    /// their first packets.
    pub fn end_all(&mut self) {
        self.let_them_go();
        self.watched.or_all(self.totals.span);
        (self.index, self.links) = Default::default();
        let mut live: Vec<(u32, u32)> = Vec::new();
        for (slot, conn) in self.live.iter().enumerate() {
            match conn {
                Slot::Free => {}
                Slot::Lone(at, id) => self.silent.push((*at, *id)),
                Slot::Conn(held) => live.push((held.id(), slot as u32)),
            }
        }
        let Scans { mut listed, unlisted, finding } =
            Scans::among(std::slice::from_ref(self), self.totals.span);
        let listed = listed.pop().unwrap_or_default();
        live.extend(listed.iter().map(|silent| (silent.id, NO_SLOT)));
        live.sort_unstable();
        let mut listed = listed.into_iter();
        for (_, slot) in live {
            match slot {
                NO_SLOT => listed.next().into_iter().for_each(|silent| self.speak_of(silent)),
                _ => self.end(slot, true),
            }
        }
        self.totals.unlisted = unlisted.len() as u64;
        self.totals.connections += self.totals.unlisted;
        self.scan = finding.map(|(finding, _)| finding);
    }

    /// A connection of one packet is listed: it is made a connection after all.
    fn speak_of(&mut self, Silent { at, id }: Silent) {
        let segment = self.lones.take(at);
        let mut conn = self.room.conn(id, &segment, &mut self.kept);
        conn.push(&segment, &mut self.kept);
        self.finish_one(conn, true, true);
    }

    /// The totals, and the findings over all connections that have ended.
    pub fn finish_stream(self) -> (Vec<Finding>, Totals) {
        self.finish_stream_with(true)
    }

    /// The same; without `settings` fixes do not say how they are made ([`Fix::how`](crate::Fix::how)), which
    /// is the most of what findings take.
    pub fn finish_stream_with(self, settings: bool) -> (Vec<Finding>, Totals) {
        let Analyzer { stream, sums, mut kept, mut totals, scan, .. } = self;
        let outlines = kept.take_outlines().map(|o| o.list().collect()).unwrap_or_default();
        let made = stream.map(|s| s.findings(sums, kept.inherent(), outlines, &mut totals, settings));
        let mut findings = made.unwrap_or_default();
        findings.extend(scan);
        findings::sort(&mut findings);
        (findings, totals)
    }

    /// Which of `n` analyzers takes the segments of this connection, where several work side by side.
    pub fn share(segment: &Segment, n: usize) -> usize {
        Part::index(&segment.src, &segment.dst, n)
    }

    /// The answer of several that each ate the segments [`Analyzer::share`] gave them: the same as if one had eaten
    /// all.
    pub fn finish_all(analyzers: Vec<Analyzer>) -> Analysis {
        let mut shards: Vec<Analyzer> = analyzers;
        let span = shards.iter().filter_map(|s| s.totals.span).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        for shard in &mut shards {
            shard.watched.or_all(span);
            shard.end_live();
        }
        let scans = Scans::among(&shards, span);
        let lists = each_of(&mut shards, |shard, ended| {
            ended.leave_out_unlisted();
            scans.listed[shard].iter().for_each(|&silent| ended.speak_of(silent));
            ended.add_over();
            // Only its number is asked for from now on.
            ended.lones = Lones::default();
            ended.in_order()
        });
        let mut numbered =
            each_of(&mut shards, |shard, ended| ended.number(&lists, shard, scans.unlisted.counter()));
        drop(lists);
        let mut totals = Totals::default();
        let mut kept: Option<Output> = None;
        let mut sums: Option<Sums> = None;
        let mut outlines: Option<Vec<Outline>> = None;
        let narrows = shards.iter().all(|shard| shard.narrows);
        let listed = shards.iter().find_map(|shard| shard.listed.as_ref()).map(Listed::most);
        let (mut lists, mut most_lost, mut stores) =
            (Vec::with_capacity(shards.len()), Vec::new(), Vec::new());
        for (part, (shard, Numbered { ids, numbers })) in (0..).zip(shards.into_iter().zip(&mut numbered)) {
            let number = |id: u32| numbers.get(id as usize).copied().unwrap_or(id);
            let Analyzer {
                done,
                bases,
                places,
                most_lost: of_part,
                kept: mut part_kept,
                sums: part_sums,
                ..
            } = shard;
            totals.add_all(shard.totals);
            match &mut sums {
                Some(sums) => sums.absorb(part_sums),
                None => sums = Some(part_sums),
            }
            most_lost.extend(of_part.into_all().map(|((lost, Reverse(mut order)), at)| {
                order.renumber(number);
                ((lost, Reverse(order)), Place::new(part, at))
            }));
            lists.push(List {
                ids: std::mem::take(ids).into_iter().peekable(),
                part,
                done: done.into_iter(),
                places: places.into_iter(),
            });
            stores.push(bases);
            if let Some(of_part) = part_kept.take_outlines() {
                outlines.get_or_insert_default().extend(of_part.list());
            }
            let empty = part_kept.like();
            kept.get_or_insert(empty).absorb(part_kept, number);
        }
        let (mut done, places) = merged(lists);
        let inherent = kept.map(|k| k.give(&mut done)).unwrap_or_default();
        let sums = sums.unwrap_or_else(Sums::whole);
        let scan = scans.finding.map(|(finding, shard)| {
            let example = finding.example.connection;
            let number = numbered[shard].numbers.get(example as usize).copied().unwrap_or(example);
            finding.of_connection(number)
        });
        most_lost.sort_unstable_by_key(|most| Reverse(most.0));
        most_lost.truncate(WITH_FINDINGS);
        if let Some(most) = listed {
            let mut named: HashSet<u32> = most_lost.iter().map(|most| most.0.1.0.id()).collect();
            sums.each_named(|id| _ = named.insert(id));
            named.extend(inherent.0.iter().map(|r| r.example.example.connection));
            named.extend(scan.as_ref().map(|scan| scan.example.connection));
            only_listed(&mut done, most, &named);
        }
        totals.unlisted = scans.unlisted.len() as u64;
        totals.not_kept = totals.connections - done.len() as u64;
        totals.connections += totals.unlisted;
        let shared = Shared::among(&done, &totals.budget);
        let mut findings = sums.findings(&inherent, |_| None, (&done, outlines), shared, &mut totals);
        findings.extend(scan);
        findings::sort(&mut findings);
        let bases = Bases { stores, places };
        fill_worst(&mut done, &bases, &most_lost);
        let basis = if narrows { bases } else { Bases::default() };
        Analysis { connections: done, findings, totals, basis }
    }
}

/// What one analyzer lists, in order.
struct List {
    /// Their final numbers.
    ids: std::iter::Peekable<std::vec::IntoIter<u32>>,
    part: u32,
    done: std::vec::IntoIter<Box<Connection>>,
    /// Where what findings of each are made of begins, if that is kept of all.
    places: std::vec::IntoIter<At>,
}

/// The lists of several analyzers as one.
#[expect(clippy::vec_box, reason = "none is moved")]
fn merged(mut lists: Vec<List>) -> (Vec<Box<Connection>>, Vec<Place>) {
    let all = lists.iter().map(|list| list.done.len()).sum();
    let mut done = Vec::with_capacity(all);
    let mut places = Vec::with_capacity(lists.iter().map(|list| list.places.len()).sum());
    while let Some(next) = lists
        .iter_mut()
        .filter_map(|list| Some((list.ids.peek().copied()?, list)))
        .min_by_key(|list| list.0)
        .map(|list| list.1)
    {
        next.ids.next();
        done.extend(next.done.next());
        places.extend(next.places.next().map(|at| Place::new(next.part, at)));
    }
    (done, places)
}

/// A connection that has ended: its first frame, when that came, its number, and its place among those that
/// are listed, as far as they are all.
pub(super) type Ended = (u64, Nanos, u32, u32);

/// Stands for the place of one that has none.
pub(super) const NO_PLACE: u32 = u32::MAX;

/// What is known of the connections of an analyzer once it is known which the others have.
struct Numbered {
    /// The numbers of those that are listed, in the order of their first packets.
    ids: Vec<u32>,
    /// What became of their numbers.
    numbers: Vec<u32>,
}

/// What is asked of connections is on its way from memory so many before.
const AHEAD: usize = 8;

impl Analyzer {
    /// The connections that have ended by their first packets.
    fn in_order(&mut self) -> Vec<Ended> {
        let mut ended = std::mem::take(&mut self.ended);
        let ids = self.next_id as usize;
        if ended.is_sorted() || ended.len() < ids / 2 {
            ended.sort_unstable();
            return ended;
        }
        // Nearly all that began are here, and got their numbers in that order.
        let none: Ended = (0, Nanos::ZERO, NO_SLOT, NO_PLACE);
        let mut order: Vec<Ended> = vec![none; ids];
        ended.iter().for_each(|&one| order[one.2 as usize] = one);
        order.retain(|one| one.2 != NO_SLOT);
        if order.len() == ended.len() && order.is_sorted() {
            return order;
        }
        ended.sort_unstable();
        ended
    }

    /// Puts those that are listed in order, and gives them the numbers that they have among those of all
    /// analyzers: those of their first packets. Those that are not listed have numbers all the same: they are
    /// those of a run that lists all. `lists`: what has ended in each analyzer, in order, of which this is
    /// the one at `own`.
    fn number(
        &mut self,
        lists: &[Vec<Ended>],
        own: usize,
        mut left_out_before: impl FnMut((u64, Nanos)) -> usize,
    ) -> Numbered {
        let list = &lists[own];
        let mut numbers = vec![0; self.next_id as usize];
        let (mut ids, mut from) = (Vec::with_capacity(self.done.len()), Vec::with_capacity(self.done.len()));
        for (n, (before, &(frame, start, id, at))) in before_each(lists, own).zip(list).enumerate() {
            let behind = list.get(n + AHEAD).and_then(|next| self.done.get(next.3 as usize));
            behind.into_iter().for_each(|next| fetch(&next.id));
            let number = (before + 1 + left_out_before((frame, start))) as u32;
            numbers[id as usize] = number;
            if let Some(connection) = self.done.get_mut(at as usize) {
                connection.id = number;
                ids.push(number);
                from.push(at);
            }
        }
        let number = |id: u32| numbers.get(id as usize).copied().unwrap_or(id);
        if self.listed.is_some() {
            // Which they are was not known before.
            self.done.iter_mut().for_each(|connection| connection.id = number(connection.id));
            self.done.sort_unstable_by_key(|connection| connection.id);
            ids = self.done.iter().map(|connection| connection.id).collect();
        } else {
            if self.narrows {
                rearrange(&mut self.places, from.clone());
            }
            rearrange(&mut self.done, from);
        }
        self.sums.renumber(number);
        Numbered { ids, numbers }
    }
}

/// How many of all come before each of one list. Lists are in order; of equal ones those of the first list come first.
fn before_each(lists: &[Vec<Ended>], list: usize) -> impl Iterator<Item = usize> {
    let key = |one: &Ended| (one.0, one.1);
    let mut others: Vec<(bool, &[Ended])> =
        lists.iter().enumerate().filter(|o| o.0 != list).map(|(o, all)| (o < list, all.as_slice())).collect();
    let mut passed = 0;
    lists[list].iter().enumerate().map(move |(own, one)| {
        for (is_first, rest) in &mut others {
            let later = rest.iter().position(|other| match key(other).cmp(&key(one)) {
                Ordering::Less => false,
                Ordering::Equal => !*is_first,
                Ordering::Greater => true,
            });
            let (before, later) = rest.split_at(later.unwrap_or(rest.len()));
            passed += before.len();
            *rest = later;
        }
        own + passed
    })
}

/// Puts at each place what stands at the place that `from` names, without room for another list.
fn rearrange<T>(list: &mut [T], mut from: Vec<u32>) {
    for first in 0..from.len() {
        let mut at = first;
        loop {
            let next = std::mem::replace(&mut from[at], at as u32) as usize;
            if next == first || next == at {
                break;
            }
            list.swap(at, next);
            at = next;
        }
    }
}

/// Gives those that lost most findings of their own.
fn fill_worst(connections: &mut [Box<Connection>], bases: &Bases, most_lost: &[(Rank, Place)]) {
    let mut basis = Basis::default();
    for &((_, Reverse(order)), place) in most_lost {
        if let Ok(at) = connections.binary_search_by_key(&order.id(), |c| c.id) {
            bases.read_from(place, &connections[at], &mut basis);
            find(&mut connections[at], &basis);
        }
    }
}

pub(super) fn find(connection: &mut Connection, basis: &Basis) {
    connection.findings = findings::of_connection(connection, basis);
    connection.findings_omitted = 0;
}

#[cfg(test)]
mod tests {
    use super::{Ended, before_each, rearrange};
    use crate::{Analyzer, Config, Detail};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use tcpwhy_base::{Endpoint, Nanos, Segment, TcpFlags};

    #[test]
    fn places_are_those_of_one_list() {
        let one = |frame: u64, id: u32| -> Ended { (frame, Nanos(frame as i64 / 3), id, 2) };
        let all: Vec<Ended> = (0..60).map(|n| one(n * n % 41, n as u32)).collect();
        for shards in 1..5 {
            let of = |shard: usize| all.iter().copied().filter(move |one| one.2 as usize % shards == shard);
            let sorted = |shard| {
                let mut list: Vec<Ended> = of(shard).collect();
                list.sort_unstable();
                list
            };
            let lists: Vec<Vec<Ended>> = (0..shards).map(sorted).collect();
            let mut expected: Vec<_> = (0..shards)
                .flat_map(|shard| lists[shard].iter().map(move |&one| ((one.0, one.1), shard, one)))
                .collect();
            expected.sort_unstable();
            let mut listed = vec![None; all.len()];
            for shard in 0..shards {
                for (place, &one) in before_each(&lists, shard).zip(&lists[shard]) {
                    assert_eq!(listed[place].replace(((one.0, one.1), shard, one)), None);
                }
            }
            assert_eq!(listed.into_iter().flatten().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn what_ended_is_in_the_order_of_first_packets() {
        let end = |last: u8, port: u16| Endpoint { ip: [192, 0, 2, last].into(), port };
        // Whether frames ascend or not, and whether many of the connections are not listed.
        for (backwards, silent) in [(false, 0), (false, 40), (true, 0), (true, 40)] {
            let mut analyzer = Analyzer::new(Config { detail: Detail::None });
            for n in 0..20 + silent {
                let frame = if backwards { 1_000 - u64::from(n) } else { u64::from(n) + 1 };
                let (src, dst) = (end(1, 1_000 + n), end(2, 80));
                for i in 0..if n < 20 { 2 } else { 1 } {
                    analyzer.push(&Segment {
                        time: Nanos(i64::from(n * 10 + i)),
                        frame,
                        src: if i == 0 { src } else { dst },
                        dst: if i == 0 { dst } else { src },
                        flags: TcpFlags(if i == 0 { TcpFlags::SYN } else { TcpFlags::ACK | TcpFlags::RST }),
                        ..Segment::EMPTY
                    });
                }
            }
            analyzer.end_live();
            let done = analyzer.done.iter().enumerate();
            let mut plain: Vec<Ended> = done.map(|(at, c)| (c.frames.0, c.start, c.id, at as u32)).collect();
            plain.sort_unstable();
            assert_eq!((plain.len(), analyzer.in_order()), (20, plain));
        }
    }

    #[test]
    fn both_directions_go_to_one_analyzer_and_each_gets_some() {
        let v4 = |n| IpAddr::V4(Ipv4Addr::from_bits(n));
        let v6 = |n| IpAddr::V6(Ipv6Addr::from_bits(u128::from(n) << 64 | 1));
        for n in [1, 2, 3, 7, 8] {
            let mut got = vec![0; n];
            for port in 0..2_000 {
                // Ports in their order, and every second one as Linux gives them out; hosts in their order.
                for (ip, port) in [(v4(7), port), (v4(7), port * 2), (v4(port.into()), 80), (v6(port), 80)] {
                    let (src, dst) = (Endpoint { ip, port }, Endpoint { ip: v4(0xc0a8_0001), port: 443 });
                    let out = Segment { src, dst, ..Segment::EMPTY };
                    let back = Segment { src: dst, dst: src, ..Segment::EMPTY };
                    let to = Analyzer::share(&out, n);
                    assert_eq!(Analyzer::share(&back, n), to);
                    got[to] += 1;
                }
            }
            assert!(got.iter().all(|&some| some > 8_000 / n / 2), "{got:?}");
        }
        assert_eq!(Analyzer::share(&Segment::EMPTY, 0), 0);
    }

    #[test]
    fn lists_are_rearranged_in_place() {
        // All orders of six: every form of cycles.
        let mut from: Vec<u32> = (0..6).collect();
        let mut orders = 0;
        each_order(&mut from, 0, &mut |from| {
            let mut list: Vec<usize> = (10..16).collect();
            rearrange(&mut list, from.to_vec());
            assert!(list.iter().zip(from).all(|(&item, &at)| item == 10 + at as usize), "{from:?}: {list:?}");
            orders += 1;
        });
        assert_eq!(orders, 720);
        rearrange::<u8>(&mut [], Vec::new());
    }

    fn each_order(list: &mut Vec<u32>, at: usize, tell: &mut impl FnMut(&[u32])) {
        if at == list.len() {
            return tell(list);
        }
        for i in at..list.len() {
            list.swap(at, i);
            each_order(list, at + 1, tell);
            list.swap(at, i);
        }
    }
}
