//! The end: connections are numbered by their first packets, summed up, and given out.

use super::lone::Lones;
use super::scan::{Scans, Silent};
use super::{Analyzer, Slot};
use crate::fetch::fetch;
use crate::findings::store::Place;
use crate::findings::{self, Basis};
use crate::output::Output;
use crate::result::{Connection, Finding, Totals};
use crate::sums::{Order, Rank, Sums, each_of};
use crate::{Analysis, Bases};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
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
        (self.index, self.links) = Default::default();
        self.silent.reserve(self.live.len() - self.held);
        let mut live = std::mem::take(&mut self.live);
        for at in 0..live.len() {
            // What those behind it need is on its way from memory: where they lead first, then that.
            let behind = |n: usize| match live.get(at + n) {
                Some(Slot::Conn(held)) => Some(held),
                _ => None,
            };
            behind(2 * AHEAD).into_iter().for_each(|held| held.fetch_first());
            behind(AHEAD).into_iter().for_each(|held| held.fetch_state());
            behind(AHEAD / 2).into_iter().for_each(|held| held.fetch_lists(false));
            match std::mem::replace(&mut live[at], Slot::Free) {
                Slot::Free => {}
                Slot::Lone(at, id) => self.silent.push((at, id)),
                Slot::Conn(held) => self.finish_held(held, true),
            }
        }
    }

    /// Ends the connections that still live; they are then the last that [`Analyzer::ended`] gives, in the order of
    /// their first packets.
    pub fn end_all(&mut self) {
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
        self.finish_one(conn, true);
    }

    /// The totals, and the findings over all connections that have ended.
    pub fn finish_stream(self) -> (Vec<Finding>, Totals) {
        self.finish_stream_with(true)
    }

    /// The same; without `settings` fixes do not say how they are made ([`Fix::how`](crate::Fix::how)), which is the most of what findings
    /// take.
    pub fn finish_stream_with(self, settings: bool) -> (Vec<Finding>, Totals) {
        let Analyzer { stream, sums, kept, mut totals, scan, .. } = self;
        let mut findings =
            stream.map(|s| s.findings(sums, kept.inherent(), &mut totals, settings)).unwrap_or_default();
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
        shards.iter_mut().for_each(Analyzer::end_live);
        let span = shards.iter().filter_map(|s| s.totals.span).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let scans = Scans::among(&shards, span);
        let lists = each_of(&mut shards, |shard, ended| {
            scans.listed[shard].iter().for_each(|&silent| ended.speak_of(silent));
            // Only its number is asked for from now on.
            ended.lones = Lones::default();
            ended.in_order()
        });
        let numbered =
            each_of(&mut shards, |shard, ended| ended.number(&lists, shard, scans.unlisted.counter()));
        drop(lists);
        let listed = shards.iter().map(|shard| shard.done.len()).sum();
        let mut totals = Totals::default();
        let mut kept: Option<Output> = None;
        let mut bases = Bases { places: Vec::with_capacity(listed), ..Bases::default() };
        let narrows = shards.iter().all(|shard| shard.narrows);
        let mut sums: Option<Sums> = None;
        let mut parts = Vec::with_capacity(shards.len());
        for (shard, Numbered { places, numbers, .. }) in shards.into_iter().zip(&numbered) {
            let number = |id: u32| numbers.get(id as usize).copied().unwrap_or(id);
            let Analyzer {
                done, bases: store, places: of, kept: part_kept, sums: of_part, totals: t, ..
            } = shard;
            match &mut sums {
                Some(sums) => sums.absorb(of_part),
                None => sums = Some(of_part),
            }
            parts.push((places.as_slice(), done.into_iter().zip(of)));
            bases.stores.push(store);
            totals.segments += t.segments;
            totals.duplicates += t.duplicates;
            totals.exchanges += t.exchanges;
            totals.measured += t.measured;
            totals.budget.add_all(&t.budget);
            totals.gap_budget.add_all(&t.gap_budget);
            totals.tail.add_all(&t.tail);
            totals.quality.iter_mut().zip(t.quality).for_each(|(count, more)| *count += more);
            totals.span = match (totals.span, t.span) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                (a, b) => a.or(b),
            };
            let empty = part_kept.like();
            kept.get_or_insert(empty).absorb(part_kept, number);
        }
        let mut done: Vec<Box<Connection>> = Vec::with_capacity(listed);
        let mut lost: Vec<Nanos> = Vec::with_capacity(listed);
        for at in 0..listed as u32 {
            let of_part = (0..).zip(&mut parts).find(|(_, (places, _))| places.first() == Some(&at));
            let Some((part, (places, ended))) = of_part else { continue };
            *places = &places[1..];
            if let Some((connection, place)) = ended.next() {
                done.push(connection);
                bases.places.push(Place::new(part, place.at));
                lost.push(place.lost);
            }
        }
        let inherent = kept.map(|k| k.give(&mut done)).unwrap_or_default();
        let mut outside: Vec<usize> = numbered.iter().flat_map(|n| n.outside.iter().copied()).collect();
        outside.sort_unstable();
        leave_out(&mut done, &outside);
        leave_out(&mut bases.places, &outside);
        leave_out(&mut lost, &outside);
        totals.unlisted = scans.unlisted.len() as u64;
        totals.connections = done.len() as u64 + totals.unlisted;
        let sums = sums.unwrap_or_else(Sums::whole);
        let mut findings = sums.findings(&inherent, |_| None, &done, &mut totals);
        if let Some((finding, shard)) = scans.finding {
            let example = finding.example.connection;
            let number = numbered[shard].numbers.get(example as usize).copied().unwrap_or(example);
            findings.push(finding.of_connection(number));
            findings::sort(&mut findings);
        }
        fill_worst(&mut done, &bases, lost);
        let basis = if narrows { bases } else { Bases::default() };
        Analysis { connections: done, findings, totals, basis }
    }
}

/// So many connections have findings of their own: those that lost most to TCP.
const WITH_FINDINGS: usize = 1_000;

/// Those that have lost most so far, by what findings of theirs are made of being kept.
#[derive(Debug, Default)]
pub(super) struct MostLost(BinaryHeap<Reverse<Rank>>);

impl MostLost {
    /// Whether a connection that lost so much to TCP is among them now.
    pub(super) fn take(&mut self, lost: Nanos, c: &Connection) -> bool {
        let rank = (lost, Reverse(Order::of(c)));
        if self.0.len() < WITH_FINDINGS {
            self.0.push(Reverse(rank));
            return true;
        }
        let Some(mut least) = self.0.peek_mut().filter(|least| rank > least.0) else { return false };
        *least = Reverse(rank);
        true
    }
}

/// A connection that has ended: its first frame, when that came, its number and its place in its analyzer.
type Ended = (u64, Nanos, u32, u32);

/// What is known of the connections of an analyzer once it is known which the others have.
struct Numbered {
    /// Where they stand in the list of all, in the order of their first packets.
    places: Vec<u32>,
    /// What became of their numbers.
    numbers: Vec<u32>,
    /// Places of those that are not in the window.
    outside: Vec<usize>,
}

/// What is asked of connections is on its way from memory so many before.
const AHEAD: usize = 8;

impl Analyzer {
    /// The connections that have ended by their first packets.
    fn in_order(&self) -> Vec<Ended> {
        let done = self.done.iter().enumerate().map(|(at, c)| {
            if let Some(next) = self.done.get(at + AHEAD) {
                fetch(&next.frames);
                fetch(&next.start);
                fetch(&next.id);
            }
            (c.frames.0, c.start, c.id, at as u32)
        });
        let ids = self.next_id as usize;
        if self.done.len() < ids / 2 {
            return sorted(done);
        }
        // Nearly all that began are here, and got their numbers in that order.
        let mut order: Vec<Ended> = vec![(0, Nanos::ZERO, 0, NO_SLOT); ids];
        done.clone().for_each(|one| order[one.2 as usize] = one);
        order.retain(|one| one.3 != NO_SLOT);
        if order.len() == self.done.len() && order.is_sorted() { order } else { sorted(done) }
    }
}

impl Analyzer {
    /// Puts the connections that have ended in order, and gives them the numbers that they have among those of all analyzers: those of
    /// their first packets. Those that are not listed have numbers all the same: they are those of a run that lists all. `lists`: what has
    /// ended in each analyzer, in order, of which this is the one at `own`.
    fn number(
        &mut self,
        lists: &[Vec<Ended>],
        own: usize,
        mut left_out_before: impl FnMut((u64, Nanos)) -> usize,
    ) -> Numbered {
        let list = &lists[own];
        let (mut places, mut outside) = (Vec::with_capacity(list.len()), Vec::new());
        let mut numbers = vec![0; self.next_id as usize];
        for (n, (before, &(frame, start, id, at))) in before_each(lists, own).zip(list).enumerate() {
            list.get(n + AHEAD).into_iter().for_each(|next| fetch(&self.done[next.3 as usize].id));
            let number = (before + 1 + left_out_before((frame, start))) as u32;
            numbers[id as usize] = number;
            self.done[at as usize].id = number;
            if self.outside.binary_search(&at).is_ok() {
                outside.push(before);
            }
            places.push(before as u32);
        }
        let from: Vec<u32> = list.iter().map(|one| one.3).collect();
        rearrange(&mut self.places, from.clone());
        rearrange(&mut self.done, from);
        self.sums.renumber(|id| numbers.get(id as usize).copied().unwrap_or(id));
        Numbered { places, numbers, outside }
    }
}

fn sorted(all: impl Iterator<Item = Ended>) -> Vec<Ended> {
    let mut all: Vec<Ended> = all.collect();
    all.sort_unstable();
    all
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

/// Leaves out what stands at these places, which ascend.
fn leave_out<T>(list: &mut Vec<T>, places: &[usize]) {
    if !places.is_empty() {
        let mut at = 0..;
        list.retain(|_| at.next().is_none_or(|at| places.binary_search(&at).is_err()));
    }
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

fn fill_worst(connections: &mut [Box<Connection>], bases: &Bases, lost: Vec<Nanos>) {
    let mut order: Vec<(Nanos, usize)> = lost.into_iter().zip(0..).collect();
    if order.len() > WITH_FINDINGS {
        order.select_nth_unstable_by_key(WITH_FINDINGS, |&(lost, i)| (Reverse(lost), i));
        order.truncate(WITH_FINDINGS);
    }
    let mut basis = Basis::default();
    for (_, i) in order {
        bases.read(i, &connections[i], &mut basis);
        find(&mut connections[i], &basis);
    }
}

pub(super) fn find(connection: &mut Connection, basis: &Basis) {
    connection.findings = findings::of_connection(connection, basis);
    connection.findings_omitted = 0;
}

#[cfg(test)]
mod tests {
    use super::{Ended, before_each, leave_out, rearrange, sorted};
    use crate::{Analyzer, Config, Detail};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use tcpwhy_base::{Endpoint, Nanos, Segment, TcpFlags};

    #[test]
    fn places_are_those_of_one_list() {
        let one = |frame: u64, id: u32| -> Ended { (frame, Nanos(frame as i64 / 3), id, 2) };
        let all: Vec<Ended> = (0..60).map(|n| one(n * n % 41, n as u32)).collect();
        for shards in 1..5 {
            let of = |shard: usize| all.iter().copied().filter(move |one| one.2 as usize % shards == shard);
            let lists: Vec<Vec<Ended>> = (0..shards).map(|shard| sorted(of(shard))).collect();
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
    fn what_is_left_out_is_all_that_goes() {
        for places in [&[][..], &[0], &[9], &[0, 1, 5, 9], &[2, 3], &[9, 40]] {
            let mut list: Vec<usize> = (0..10).collect();
            leave_out(&mut list, places);
            assert_eq!(list, (0..10).filter(|at| !places.contains(at)).collect::<Vec<_>>());
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
            let plain = sorted(done.map(|(at, c)| (c.frames.0, c.start, c.id, at as u32)));
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
