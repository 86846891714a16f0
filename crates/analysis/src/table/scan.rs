//! Connections of one packet: which of them are listed, and whether many of them are a scan (rule 63).

use super::Analyzer;
use super::lone::{At, Glance, WORD_V6};
use crate::result::{Example, Finding, Frames};
use crate::sums::each_of;
use hashbrown::HashSet;
use tcpwhy_base::{Cause, Nanos, Segment, Side};

/// Who asks so many others without an answer scans.
const TARGETS: usize = 25;
/// A SYN is repeated after this if it is not answered (RFC 6298, 2.1).
const FIRST_RTO: Nanos = Nanos::secs(1);
/// Other connections of one packet that are listed.
const LISTED: usize = 1_000;

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

/// Frame and time of connections that are not listed, in lists each of which ascends: there may be millions,
/// and to make one list of them takes longer than to look at several.
#[derive(Debug, Default)]
pub(super) struct Unlisted {
    lists: Vec<Vec<(u64, Nanos)>>,
}

impl Unlisted {
    /// `list` ascends.
    fn add(&mut self, list: Vec<(u64, Nanos)>) {
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
    /// The one at the other side.
    other: u64,
    /// Which of the silent ones of its analyzer.
    index: u32,
    /// The lower half of its frame: which came first is asked of no more than four billion packets.
    frame: u32,
}

/// SYNs that belong together.
#[derive(Debug)]
struct Group {
    /// They come from one address; else they go to one address and port.
    scan: bool,
    syns: u64,
    first: Earliest,
    among: Different,
}

/// A SYN before which none came: its frame, its analyzer, and which of the silent ones there it is.
type Earliest = (u64, usize, u32);

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
        // The example is listed, however many others there are.
        let example = groups.first().map(|g| (g.first.1, g.first.2 as usize));
        let lists_all = shards.iter().all(|s| s.lists_all);
        let mut others: Vec<(u64, Nanos, usize, usize)> = Vec::new();
        let is_listed = |i, n| lists_all || example == Some((i, n));
        for (i, sorted) in
            each_of(&mut refs(shards), |i, shard| sort_out(shard, &fate[i], |n| is_listed(i, n)))
                .into_iter()
                .enumerate()
        {
            scans.listed[i].extend(sorted.listed);
            scans.unlisted.add(sorted.unlisted);
            others.extend(sorted.others.into_iter().map(|(frame, time, n)| (frame, time, i, n)));
        }
        if others.len() > LISTED {
            others.select_nth_unstable(LISTED);
            let mut more: Vec<_> = others.drain(LISTED..).map(|(frame, time, ..)| (frame, time)).collect();
            more.sort_unstable();
            scans.unlisted.add(more);
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

/// `fate`: these belong to a scan; `is_listed`: these are listed all the same.
fn sort_out(shard: &Analyzer, fate: &[bool], is_listed: impl Fn(usize) -> bool) -> Sorted {
    // Where nothing is written no memory is taken.
    let mut sorted = Sorted { unlisted: Vec::with_capacity(shard.silent.len()), ..Sorted::default() };
    for (n, &(at, _)) in shard.silent.iter().enumerate() {
        let segment = shard.lones.glance(at);
        // Outside the window a connection has a number, and nothing else is said of it.
        if is_listed(n) || !is_in_window(shard, segment.time) {
            sorted.listed.push(shard.silent_at(n));
        } else if fate[n] {
            sorted.unlisted.push((segment.frame, segment.time));
        } else {
            sorted.others.push((segment.frame, segment.time, n));
        }
    }
    sorted.unlisted.sort_unstable();
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
    let mut all = vec![Vec::new(); shards.len()];
    attempts(shards, fate, &mut all, |syn| (syn.src_host, syn.dst));
    each_group(&all, |syns| groups.extend(group(shards, syns, true, end, fate)));
    // Of what no single address sent: is it for one server?
    attempts(shards, fate, &mut all, |syn| (syn.dst, syn.src));
    each_group(&all, |syns| groups.extend(group(shards, syns, false, end, fate)));
    groups.sort_by_key(|g| (std::cmp::Reverse(g.syns), g.first.0));
    groups
}

/// The SYNs of each analyzer that belong to no group yet, those of one end side by side, by the one at the other
/// side. They are read once and in the order in which they are kept, which is faster than to ask for them in
/// another one; so this is done for each end anew, in the same room.
fn attempts(
    shards: &[Analyzer],
    fate: &[Vec<bool>],
    all: &mut [Vec<Attempt>],
    ends: impl Fn(&Glance) -> (u64, u64) + Sync,
) {
    each_of(all, |i, found| {
        let shard = &shards[i];
        found.clear();
        found.reserve(fate[i].iter().filter(|&&taken| !taken).count());
        for ((index, &(at, _)), _) in (0..).zip(&shard.silent).zip(&fate[i]).filter(|(_, taken)| !**taken) {
            let syn = shard.lones.glance(at);
            if syn.asks && is_in_window(shard, syn.time) {
                let (end, other) = ends(&syn);
                found.push(Attempt { end, other, index, frame: syn.frame as u32 });
            }
        }
        found.sort_unstable_by_key(|a| (a.end, a.other, a.index));
    });
}

/// Acts on what each analyzer has of an end, for each end of which there are as many as a scan has.
fn each_group(all: &[Vec<Attempt>], mut act: impl FnMut(&[&[Attempt]])) {
    let likely = each_of(&mut all.iter().collect::<Vec<_>>(), |_, syns| {
        let of_ends = syns.chunk_by(|a, b| a.end == b.end);
        // What none has its share of they have not enough of together.
        of_ends.filter(|syns| syns.len() * all.len() >= TARGETS).map(|syns| syns[0].end).collect::<Vec<_>>()
    });
    let mut likely = likely.concat();
    likely.sort_unstable();
    likely.dedup();
    let of = |wanted: u64, syns: &[Attempt]| {
        let first = syns.partition_point(|a| a.end < wanted);
        first..first + syns[first..].partition_point(|a| a.end == wanted)
    };
    for wanted in likely {
        act(&all.iter().map(|syns| &syns[of(wanted, syns)]).collect::<Vec<_>>());
    }
}

/// With more attempts than this each analyzer's have a thread.
const MANY: usize = 4_096;

/// The group that these attempts of one end are, if they are as many as a scan has.
fn group(
    shards: &[Analyzer],
    syns: &[&[Attempt]],
    scan: bool,
    end_of_capture: Nanos,
    fate: &mut [Vec<bool>],
) -> Option<Group> {
    let count = syns.iter().map(|s| s.len()).sum();
    if count < TARGETS {
        return None;
    }
    let looked = of_each(&mut syns.to_vec(), count, |i, syns| look(&shards[i], syns, scan, end_of_capture));
    let ripe: HashSet<u64> = looked.iter().flat_map(|l| &l.ripe).copied().collect();
    let firsts = looked.iter().enumerate().filter_map(|(i, l)| l.first.map(|(frame, n)| (frame, i, n)));
    let first = firsts.min().filter(|_| ripe.len() >= TARGETS)?;
    of_each(&mut fate.iter_mut().zip(syns).collect::<Vec<_>>(), count, |_, (fate, syns)| {
        syns.iter().for_each(|a| fate[a.index as usize] = true);
    });
    Some(Group { scan, syns: count as u64, first, among: Different::among(syns, &looked) })
}

/// Does the same for each of some, in threads of their own if they have that many between them.
fn of_each<S: Send, T: Send>(all: &mut [S], many: usize, act: impl Fn(usize, &mut S) -> T + Sync) -> Vec<T> {
    if many > MANY { each_of(all, act) } else { all.iter_mut().enumerate().map(|(i, s)| act(i, s)).collect() }
}

/// What was found out about some attempts.
struct Looked {
    /// Frame and index of the earliest.
    first: Option<(u64, u32)>,
    /// Ends at the other side that had time for a second SYN; no more than are needed.
    ripe: HashSet<u64>,
    /// The addresses of those at the other side that are of IPv6, ascending.
    hosts_v6: Vec<u64>,
}

/// What is kept of attempts is hardly read again: they may be millions.
fn look(shard: &Analyzer, attempts: &[Attempt], scan: bool, end_of_capture: Nanos) -> Looked {
    let glance = |a: &Attempt| shard.lones.glance(shard.silent[a.index as usize].0);
    let mut ripe: HashSet<u64> = HashSet::new();
    for a in attempts {
        if glance(a).time + FIRST_RTO <= end_of_capture {
            ripe.insert(a.other);
        }
        if ripe.len() == TARGETS {
            break;
        }
    }
    let first = attempts.iter().min_by_key(|a| (a.frame, a.index));
    let of_v6 = attempts.iter().filter(|a| a.other & WORD_V6 != 0).map(glance);
    let mut hosts_v6: Vec<u64> = of_v6.map(|syn| if scan { syn.dst_host } else { syn.src_host }).collect();
    hosts_v6.sort_unstable();
    Looked { first: first.map(|a| (glance(a).frame, a.index)), ripe, hosts_v6 }
}

/// How many different ones there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Different {
    /// Addresses with their ports.
    ends: usize,
    addresses: usize,
}

impl Different {
    /// At the other side of these attempts, of which that was found out.
    fn among(syns: &[&[Attempt]], looked: &[Looked]) -> Different {
        let longest = syns.iter().max_by_key(|s| s.len()).copied().unwrap_or_default();
        // The halves below and from the middle are counted side by side; the ends of an address are in one of them.
        let middle = longest.get(longest.len() / 2).map_or(0, |a| a.other & !0xffff);
        let halves = |list: &&[Attempt]| list.partition_point(|a| a.other < middle);
        let below: Vec<&[Attempt]> = syns.iter().map(|l| &l[..halves(l)]).collect();
        let from: Vec<&[Attempt]> = syns.iter().map(|l| &l[halves(l)..]).collect();
        let total = syns.iter().map(|l| l.len()).sum();
        let counts = of_each(&mut [below, from], total, |_, lists| Different::in_all(lists, |a| a.other));
        let hosts_v6: Vec<&[u64]> = looked.iter().map(|l| l.hosts_v6.as_slice()).collect();
        let of_v6 = Different::in_all(&hosts_v6, |&host| host).ends;
        Different {
            ends: counts.iter().map(|c| c.ends).sum(),
            addresses: counts.iter().map(|c| c.addresses).sum::<usize>() + of_v6,
        }
    }

    /// In lists that ascend by words; addresses are those of IPv4, which stand in the words of their ends.
    fn in_all<T>(lists: &[&[T]], word: impl Fn(&T) -> u64) -> Different {
        let mut rest = lists.to_vec();
        let (mut different, mut last_address) = (Different::default(), None);
        while let Some(end) = rest.iter().filter_map(|r| r.first()).map(&word).min() {
            for rest in &mut rest {
                while let Some((first, behind)) = rest.split_first()
                    && word(first) == end
                {
                    *rest = behind;
                }
            }
            different.ends += 1;
            if end & WORD_V6 == 0 && last_address.replace(end >> 16) != Some(end >> 16) {
                different.addresses += 1;
            }
        }
        different
    }
}

/// What is said of the groups: the largest is the example.
fn finding(shards: &[Analyzer], groups: &[Group]) -> Option<(Finding, usize)> {
    let all: u64 = groups.iter().map(|g| g.syns).sum();
    let (largest, more) = (groups.first()?, groups.len() - 1);
    let (_, at, index) = largest.first;
    let (first, id) = (shards[at].attempt(index), shards[at].silent[index as usize].1);
    let (syns, Different { ends, addresses }) = (largest.syns, largest.among);
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
    Some((finding, at))
}
