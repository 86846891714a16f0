//! Connections of one packet: which of them are listed, and whether many of them are a scan (rule 63).

use super::Analyzer;
use super::lone::{At, Glance};
use crate::result::{Example, Finding, Frames};
use crate::sums::{each_of, side_by_side};
use hashbrown::HashSet;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Endpoint, Nanos, Segment, Side};

/// Who asks so many others without an answer scans.
const TARGETS: usize = 25;
/// A SYN is repeated after this if it is not answered (RFC 6298, 2.1).
const FIRST_RTO: Nanos = Nanos::secs(1);
/// Other connections of one packet that are listed.
const LISTED: usize = 1_000;

/// The bit that tells the word of an IPv6 end.
const V6: u64 = 1 << 63;

/// A connection of one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silent {
    pub(super) at: At,
    pub(super) id: u32,
}

/// What becomes of connections of one packet.
#[derive(Debug, Default)]
pub(super) struct Scans {
    /// Those that are listed, of each analyzer, by id.
    pub(super) listed: Vec<Vec<Silent>>,
    pub(super) unlisted: Unlisted,
    /// What is said of scans, and which analyzer knows its example.
    pub(super) finding: Option<(Finding, usize)>,
}

/// Frame and time of connections that are not listed, in lists each of which ascends: there may be millions, and to make one list of them
/// takes longer than to look at several.
#[derive(Debug, Default)]
pub(super) struct Unlisted {
    lists: Vec<Vec<(u64, Nanos)>>,
}

impl Unlisted {
    fn add(&mut self, mut list: Vec<(u64, Nanos)>) {
        if !list.is_sorted() {
            list.sort_unstable();
        }
        self.lists.push(list);
    }

    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// Tells of one connection after the other, each later than the last, how many came before it.
    pub(super) fn counter(&self) -> impl FnMut((u64, Nanos)) -> usize {
        let mut rest: Vec<&[(u64, Nanos)]> = self.lists.iter().map(Vec::as_slice).collect();
        let mut count = 0;
        move |listed| {
            for list in &mut rest {
                while let Some((first, later)) = list.split_first()
                    && *first < listed
                {
                    count += 1;
                    *list = later;
                }
            }
            count
        }
    }
}

/// A SYN that nobody answered, by one of its ends.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    end: u64,
    shard: u32,
    /// Which of the silent ones of that analyzer.
    index: u32,
}

/// SYNs that belong together.
#[derive(Debug)]
struct Group {
    /// They come from one address; else they go to one address and port.
    scan: bool,
    syns: u64,
    /// The earliest.
    first: Attempt,
    frame: u64,
    /// Different addresses and ports at the other end, and different addresses.
    ends: usize,
    addresses: usize,
}

impl Scans {
    /// Decides, when every connection has ended.
    pub(super) fn among(shards: &[Analyzer], span: Option<(Nanos, Nanos)>) -> Scans {
        let mut scans = Scans { listed: shards.iter().map(|_| Vec::new()).collect(), ..Scans::default() };
        let count: usize = shards.iter().map(|s| s.silent.len()).sum();
        if count == 0 {
            return scans;
        }
        let mut fate: Vec<Vec<bool>> = shards.iter().map(|s| vec![false; s.silent.len()]).collect();
        let groups = groups(shards, span.map_or(Nanos::ZERO, |s| s.1), &mut fate);
        if let Some(example) = groups.first().map(|g| g.first) {
            fate[example.shard as usize][example.index as usize] = false;
        }
        let lists_all = shards.iter().all(|s| s.lists_all);
        let mut others: Vec<(u64, Nanos, usize, usize)> = Vec::new();
        for (i, sorted) in each_of(&mut refs(shards), |i, shard| sort_out(shard, &fate[i], lists_all))
            .into_iter()
            .enumerate()
        {
            scans.listed[i].extend(sorted.listed);
            scans.unlisted.add(sorted.unlisted);
            others.extend(sorted.others.into_iter().map(|(frame, time, n)| (frame, time, i, n)));
        }
        if others.len() > LISTED {
            others.select_nth_unstable(LISTED);
            scans.unlisted.add(others.drain(LISTED..).map(|(frame, time, ..)| (frame, time)).collect());
        }
        others.iter().for_each(|&(_, _, i, n)| scans.listed[i].push(shards[i].silent_at(n)));
        scans.listed.iter_mut().for_each(|l| l.sort_unstable_by_key(|silent| silent.id));
        scans.finding = finding(shards, &groups);
        scans
    }
}

/// What becomes of those of one analyzer.
#[derive(Default)]
struct Sorted {
    listed: Vec<Silent>,
    /// Frame and time.
    unlisted: Vec<(u64, Nanos)>,
    /// The same, and which they are: of all analyzers the first are listed.
    others: Vec<(u64, Nanos, usize)>,
}

/// `fate`: these belong to a scan.
fn sort_out(shard: &Analyzer, fate: &[bool], lists_all: bool) -> Sorted {
    // Where nothing is written no memory is taken.
    let mut sorted = Sorted { unlisted: Vec::with_capacity(shard.silent.len()), ..Sorted::default() };
    for (n, &(at, _)) in shard.silent.iter().enumerate() {
        let segment = shard.lones.glance(at);
        // Outside the window a connection has a number, and nothing else is said of it.
        if lists_all || !is_in_window(shard, segment.time) {
            sorted.listed.push(shard.silent_at(n));
        } else if fate[n] {
            sorted.unlisted.push((segment.frame, segment.time));
        } else {
            sorted.others.push((segment.frame, segment.time, n));
        }
    }
    sorted
}

fn refs(shards: &[Analyzer]) -> Vec<&Analyzer> {
    shards.iter().collect()
}

impl Analyzer {
    fn silent_at(&self, n: usize) -> Silent {
        let (at, id) = self.silent[n];
        Silent { at, id }
    }

    fn attempt(&self, n: u32) -> Segment {
        self.lones.get(self.silent[n as usize].0)
    }
}

fn is_in_window(shard: &Analyzer, time: Nanos) -> bool {
    shard.kept.within(time, time).is_some()
}

/// Finds the groups, the largest first, and marks their members.
fn groups(shards: &[Analyzer], end: Nanos, fate: &mut [Vec<bool>]) -> Vec<Group> {
    let mut groups = Vec::new();
    for of_source in attempts(shards, fate, |syn| word(&host(&syn.src))).chunk_by(|a, b| a.end == b.end) {
        groups.extend(group(shards, of_source, true, end, fate));
    }
    // Of what no single address sent: is it for one server?
    for to_server in attempts(shards, fate, |syn| word(&syn.dst)).chunk_by(|a, b| a.end == b.end) {
        groups.extend(group(shards, to_server, false, end, fate));
    }
    groups.sort_by_key(|g| (std::cmp::Reverse(g.syns), g.frame));
    groups
}

/// The SYNs that belong to no group yet, those of one end side by side. Each analyzer's are read in the order in which they are kept,
/// and sorted by themselves.
fn attempts(shards: &[Analyzer], fate: &[Vec<bool>], end: impl Fn(&Glance) -> u64 + Sync) -> Vec<Attempt> {
    let of_one = |i: usize, shard: &mut &Analyzer| {
        let mut found: Vec<Attempt> = Vec::with_capacity(shard.silent.len());
        for (n, (&(at, _), _)) in
            shard.silent.iter().zip(&fate[i]).enumerate().filter(|(_, (_, taken))| !**taken)
        {
            let syn = shard.lones.glance(at);
            if syn.flags.syn() && !syn.flags.ack() && is_in_window(shard, syn.time) {
                found.push(Attempt { end: end(&syn), shard: i as u32, index: n as u32 });
            }
        }
        found.sort_unstable_by_key(|a| (a.end, a.index));
        found
    };
    let mut each = each_of(&mut refs(shards), of_one).into_iter();
    let mut all = each.next().unwrap_or_default();
    each.for_each(|more| all.extend(more));
    // Sorted runs are merged.
    all.sort_by_key(|a| (a.end, a.shard, a.index));
    all
}

/// The group that these attempts are, if they are as many as a scan has.
fn group(
    shards: &[Analyzer],
    attempts: &[Attempt],
    scan: bool,
    end_of_capture: Nanos,
    fate: &mut [Vec<bool>],
) -> Option<Group> {
    if attempts.len() < TARGETS {
        return None;
    }
    let look = |some: &[Attempt]| look(shards, some, scan, end_of_capture);
    let looked = if shards.len() > 1 && attempts.len() > MANY {
        let (one, other) = attempts.split_at(attempts.len() / 2);
        let (other, one) = side_by_side(|| look(other), || look(one));
        one.with(other)
    } else {
        look(attempts)
    };
    let Looked { first, ripe, ends, hosts } = looked;
    let (frame, first) = first.filter(|_| ripe.len() >= TARGETS)?;
    for a in attempts {
        fate[a.shard as usize][a.index as usize] = true;
    }
    let syns = attempts.len() as u64;
    Some(Group { scan, syns, first, frame, addresses: hosts.among(&ends), ends: ends.len() })
}

/// With more attempts than this each half of a group has a thread.
const MANY: usize = 4_096;

/// What was found out about some attempts.
struct Looked {
    /// The earliest, and its frame.
    first: Option<(u64, Attempt)>,
    /// Ends at the other side that had time for a second SYN; no more than are needed.
    ripe: HashSet<u64>,
    /// All ends at the other side, ascending.
    ends: Vec<u64>,
    hosts: Hosts,
}

impl Looked {
    /// And of others.
    fn with(mut self, mut other: Looked) -> Looked {
        self.first = match (self.first, other.first) {
            (Some(one), Some(another)) if another.0 < one.0 => Some(another),
            (one, another) => one.or(another),
        };
        self.ripe.extend(other.ripe);
        self.ends.append(&mut other.ends);
        // Sorted runs are merged.
        self.ends.sort();
        self.ends.dedup();
        self.hosts.of_v6.append(&mut other.hosts.of_v6);
        self
    }
}

/// What is kept of attempts is read once: they may be millions.
fn look(shards: &[Analyzer], attempts: &[Attempt], scan: bool, end_of_capture: Nanos) -> Looked {
    let other = |s: &Glance| if scan { s.dst } else { s.src };
    let mut first: Option<(u64, Attempt)> = None;
    let mut ripe: HashSet<u64> = HashSet::new();
    let (mut ends, mut hosts) = (Vec::with_capacity(attempts.len()), Hosts::default());
    for a in attempts {
        let shard = &shards[a.shard as usize];
        let syn = shard.lones.glance(shard.silent[a.index as usize].0);
        let (end, word) = (other(&syn), word(&other(&syn)));
        if ripe.len() < TARGETS && syn.time + FIRST_RTO <= end_of_capture {
            ripe.insert(word);
        }
        if first.is_none_or(|(frame, _)| syn.frame < frame) {
            first = Some((syn.frame, *a));
        }
        ends.push(word);
        hosts.pass(&end);
    }
    ends.sort_unstable();
    ends.dedup();
    Looked { first, ripe, ends, hosts }
}

/// Counts addresses: those of IPv4 stand in the words of their ends.
#[derive(Default)]
struct Hosts {
    of_v6: Vec<u64>,
}

impl Hosts {
    fn pass(&mut self, end: &Endpoint) {
        if end.ip.is_ipv6() {
            self.of_v6.push(word(&host(end)));
        }
    }

    /// How many addresses there are; `ends` are the words of all ends, ascending.
    fn among(mut self, ends: &[u64]) -> usize {
        self.of_v6.sort_unstable();
        self.of_v6.dedup();
        let of_v4 = &ends[..ends.partition_point(|&word| word < V6)];
        self.of_v6.len() + of_v4.chunk_by(|a, b| a >> 16 == b >> 16).count()
    }
}

/// What is said of the groups: the largest is the example.
fn finding(shards: &[Analyzer], groups: &[Group]) -> Option<(Finding, usize)> {
    let all: u64 = groups.iter().map(|g| g.syns).sum();
    let (largest, more) = (groups.first()?, groups.len() - 1);
    let shard = &shards[largest.first.shard as usize];
    let first = shard.attempt(largest.first.index);
    let id = shard.silent[largest.first.index as usize].1;
    let (syns, ends, addresses) = (largest.syns, largest.ends, largest.addresses);
    let mut text = match (largest.scan, addresses) {
        (true, 1) => {
            format!("{} asked {ends} ports of {} with {syns} SYNs", first.src.ip, first.dst.ip)
        }
        (true, _) => {
            format!("{} asked {addresses} addresses ({ends} with their ports) with {syns} SYNs", first.src.ip)
        }
        (false, 1) => format!("{} sent {} {syns} SYNs", first.src.ip, first.dst),
        (false, _) => format!("{addresses} addresses sent {} {syns} SYNs", first.dst),
    };
    text += ": none was answered in the capture, and none repeated.";
    if more > 0 {
        text += &format!(" There are {more} more such groups, {all} SYNs in all.");
    }
    let frames = Frames::new(first.file, first.frame, first.frame, &[first.frame]);
    let example = Example { connection: id, exchange: 0, frames, start: first.time, end: first.time };
    let finding = Finding {
        occurrences: all,
        connections: vec![id],
        connection_count: all,
        ..Finding::of_wholes(Cause::Scan, Some(Side::Client), example, text)
    };
    Some((finding, largest.first.shard as usize))
}

fn host(end: &Endpoint) -> Endpoint {
    Endpoint { port: 0, ..*end }
}

/// An address and port in 64 bits; of IPv6 a mix of its bits, which two of a million addresses share once in millions of
/// captures.
fn word(end: &Endpoint) -> u64 {
    let address = match end.ip {
        IpAddr::V4(ip) => return u64::from(ip.to_bits()) << 16 | u64::from(end.port),
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let mix = |n: u64| (n ^ n >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = mix(mix(address as u64) ^ (address >> 64) as u64);
    mix(mixed ^ u64::from(end.port)) | V6
}
