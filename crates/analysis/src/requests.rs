//! How long requests took and what of, counted in bounded memory: a histogram for each connection, which those of a
//! server add up to.

use crate::budget::Budget;
use crate::fetch::fetch_whole;
use crate::packing::{Words, after, since};
use crate::rest::{Place, at_rest};
use tcpwhy_base::{CAUSES, Cause, Nanos};

/// A factor of two is counted in 512 steps: a quantile is right to a thousandth.
const FINE: u32 = 9;
/// What requests waited for is kept in 8 steps for each factor of two: requests of one band differ by an
/// eighth at most.
const COARSE: u32 = 3;

/// The requests of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    pub(crate) times: Distribution,
    /// When the first began and the last ended, the setup included.
    pub(crate) range: Option<(Nanos, Nanos)>,
}

at_rest! { Requests { times, range } }

impl Requests {
    pub(crate) fn clear(&mut self) {
        self.range = None;
        self.times.clear();
    }

    /// Adds them to others; where they are [one](crate::findings::Basis::told), that waited for `waits`.
    #[inline]
    pub(crate) fn add_to(
        &self,
        told: bool,
        times: &mut Distribution,
        waits: impl Iterator<Item = (Cause, Nanos)> + Clone,
    ) {
        if told {
            let duration = waits.clone().fold(Nanos::ZERO, |sum, wait| sum + wait.1);
            times.add(duration, waits);
        } else {
            times.add_all(&self.times);
        }
    }

    /// What lies outside of them will be needed.
    #[inline]
    pub(crate) fn fetch(&self) {
        self.times.fetch();
    }

    /// Somebody waited from `start` to `end`.
    pub(crate) fn cover(&mut self, start: Nanos, end: Nanos) {
        let range = self.range.get_or_insert((start, end));
        *range = (range.0.min(start), range.1.max(end));
    }

    /// They are one, which waited for these, and for nothing else.
    #[inline]
    pub(crate) fn is_one(&self, waits: impl Iterator<Item = (Cause, Nanos)>) -> bool {
        self.times.is_one(waits)
    }

    /// Appends them to words, as far as their connection does not say it.
    #[inline]
    pub(crate) fn pack(&self, words: &mut Vec<u64>, is_one: bool, start: Nanos) {
        if let Some((from, to)) = self.range {
            words.extend_from_slice(&[since(from, start), since(to, from)]);
        }
        if !is_one {
            self.times.pack(words);
        }
    }

    /// Takes from words what was appended; its own room is used again.
    #[inline]
    pub(crate) fn unpack(&mut self, from: &mut Words<'_>, has_range: bool, is_one: bool, start: Nanos) {
        self.range = has_range.then(|| {
            let [first, last] = from.take();
            let first = after(first, start);
            (first, after(last, first))
        });
        if is_one {
            self.times.clear();
        } else {
            self.times.unpack(from);
        }
    }
}

/// Durations of requests, with the time by cause of those that took about equally long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// How many, by fine step; ascending.
    counts: Vec<(u16, u32)>,
    /// Ascending by band, then by cause.
    cells: Vec<Cell>,
    longest: Nanos,
}

at_rest! { Distribution { counts as Place, cells, longest } }

/// The time of one cause in the requests of one band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    band: u16,
    cause: Cause,
    time: Nanos,
}

at_rest! { Cell { band as Place, cause, time } }

impl Cell {
    /// Cells ascend by it.
    #[inline]
    fn key(&self) -> u32 {
        u32::from(self.band) << 8 | self.cause as u32
    }
}

/// Requests that took about equally long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Band {
    /// They took at least so long.
    pub from: Nanos,
    /// And less than this.
    pub to: Nanos,
    /// How many.
    pub count: u64,
    /// Their time by cause, summed.
    pub budget: Budget,
}

impl Band {
    /// This coarse step, without requests.
    fn of(step: u16) -> Band {
        let (from, to) = (lower(step, COARSE), lower(step + 1, COARSE));
        Band { from, to, count: 0, budget: Budget::default() }
    }

    /// The time of one of them by cause, on average; the longest first.
    pub fn mean(&self) -> Vec<(Cause, Nanos)> {
        let n = i64::try_from(self.count.max(1)).unwrap_or(i64::MAX);
        let mut mean: Vec<_> = self.budget.0.iter().map(|&(cause, time)| (cause, time.part(n))).collect();
        mean.sort_by_key(|m| (std::cmp::Reverse(m.1), m.0));
        mean
    }
}

impl Distribution {
    /// What lies outside of it will be needed.
    #[inline]
    fn fetch(&self) {
        fetch_whole(self.counts.as_slice());
        fetch_whole(self.cells.as_slice());
    }

    /// Adds a request that took so long and waited for these.
    pub fn add(&mut self, duration: Nanos, waits: impl Iterator<Item = (Cause, Nanos)>) {
        self.count_more(step(duration, FINE), 1);
        self.longest = self.longest.max(duration);
        self.add_waits(step(duration, COARSE), waits);
    }

    fn count_more(&mut self, step: u16, n: u32) {
        match self.counts.binary_search_by_key(&step, |c| c.0) {
            Ok(i) => self.counts[i].1 = self.counts[i].1.saturating_add(n),
            Err(i) => self.counts.insert(i, (step, n)),
        }
    }

    fn add_waits(&mut self, band: u16, waits: impl Iterator<Item = (Cause, Nanos)>) {
        // Most waits of a request are of one cause or two, and all of them stand side by side.
        let first = self.cells.partition_point(|c| c.band < band);
        for (cause, time) in waits {
            let before = self.cells[first..].iter().take_while(|c| c.band == band && c.cause < cause).count();
            match self.cells.get_mut(first + before).filter(|c| c.band == band && c.cause == cause) {
                Some(cell) => cell.time += time,
                None => self.cells.insert(first + before, Cell { band, cause, time }),
            }
        }
    }

    fn add_time(&mut self, band: u16, cause: Cause, time: Nanos) {
        match self.cells.binary_search_by_key(&(band, cause), |c| (c.band, c.cause)) {
            Ok(i) => self.cells[i].time += time,
            Err(i) => self.cells.insert(i, Cell { band, cause, time }),
        }
    }

    /// What was called one thing was another.
    pub(crate) fn rename(&mut self, from: Cause, to: Cause) {
        let renamed: Vec<Cell> = self.cells.extract_if(.., |c| c.cause == from).collect();
        renamed.iter().for_each(|c| self.add_time(c.band, to, c.time));
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Distribution) {
        if self.counts.is_empty() {
            self.clone_from(other);
            return;
        }
        if let &[(step, n)] = other.counts.as_slice() {
            // They took equally long, so that what they waited for is of one band. Mostly they are one.
            self.count_more(step, n);
            self.longest = self.longest.max(other.longest);
            let band = other.cells.first().map_or(0, |c| c.band);
            debug_assert!(other.cells.iter().all(|c| c.band == band), "a fine step lies in one coarse one");
            self.add_waits(band, other.cells.iter().map(|c| (c.cause, c.time)));
            return;
        }
        // Both are in order: what comes next lies behind what came before, mostly near; where the first lies
        // nobody knows.
        let mut at = first_of(&self.counts, &other.counts, |c| c.0);
        for &(step, n) in &other.counts {
            at += before(&self.counts[at..], |c| c.0 < step);
            match self.counts.get_mut(at) {
                Some(c) if c.0 == step => c.1 = c.1.saturating_add(n),
                _ => self.counts.insert(at, (step, n)),
            }
        }
        let mut at = first_of(&self.cells, &other.cells, Cell::key);
        for c in &other.cells {
            at += before(&self.cells[at..], |s| s.key() < c.key());
            match self.cells.get_mut(at) {
                Some(s) if s.key() == c.key() => s.time += c.time,
                _ => self.cells.insert(at, *c),
            }
        }
        self.longest = self.longest.max(other.longest);
    }

    /// How many requests.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|c| u64::from(c.1)).sum()
    }

    /// How many of them took time: where nothing came back, or all packets have one stamp, nobody knows how
    /// long they took.
    pub fn timed(&self) -> u64 {
        let none = self.counts.first().filter(|c| c.0 == 0).map_or(0, |c| u64::from(c.1));
        self.count() - none
    }

    /// The longest.
    pub fn longest(&self) -> Nanos {
        self.longest
    }

    /// So many of a hundred of those that took [time](Self::timed) took no longer (nearest rank), to a
    /// thousandth; `None` without requests.
    pub fn percentile(&self, p: u64) -> Option<Nanos> {
        let rank = self.rank(p);
        let mut below = 0;
        let (step, _) = self.counts.iter().find(|c| {
            below += u64::from(c.1);
            below >= rank
        })?;
        // The one at the top is known exactly; of the others the middle of their step.
        let top = self.counts.last().is_some_and(|last| last.0 == *step);
        let (from, to) = (lower(*step, FINE), lower(*step + 1, FINE));
        Some(if top && rank == self.count() {
            self.longest
        } else {
            (from + (to - from).part(2)).min(self.longest)
        })
    }

    /// The requests that took about as long as that percentile.
    pub fn around(&self, p: u64) -> Option<Band> {
        let rank = self.rank(p);
        let (mut below, mut last, mut count) = (0, None, 0);
        for &(fine, n) in &self.counts {
            let band = step(lower(fine, FINE), COARSE);
            if last != Some(band) {
                if last.is_some() && below >= rank {
                    break;
                }
                (last, count) = (Some(band), 0);
            }
            below += u64::from(n);
            count += u64::from(n);
        }
        last.map(|band| {
            let mut found = Band { count, ..Band::of(band) };
            let first = self.cells.partition_point(|c| c.band < band);
            let cells = self.cells[first..].iter().take_while(|c| c.band == band);
            cells.for_each(|cell| found.budget.add(cell.cause, cell.time));
            found
        })
    }

    /// The place of that percentile among all, where those that took no time come first.
    fn rank(&self, p: u64) -> u64 {
        let (all, timed) = (self.count(), self.timed());
        let of = if timed == 0 { all } else { timed };
        all - of + (of * p).div_ceil(100).max(1)
    }

    /// All of them, the shortest first; bands without requests are left out.
    pub fn bands(&self) -> Vec<Band> {
        let mut bands: Vec<Band> = Vec::new();
        let mut cells = self.cells.iter().peekable();
        let mut last = None;
        for &(fine, n) in &self.counts {
            let band = step(lower(fine, FINE), COARSE);
            if last != Some(band) {
                bands.push(Band::of(band));
                last = Some(band);
                let Some(new) = bands.last_mut() else { continue };
                while let Some(cell) = cells.next_if(|c| c.band == band) {
                    new.budget.add(cell.cause, cell.time);
                }
            }
            if let Some(band) = bands.last_mut() {
                band.count += u64::from(n);
            }
        }
        bands
    }

    fn clear(&mut self) {
        self.counts.clear();
        self.cells.clear();
        self.longest = Nanos::ZERO;
    }

    /// It is that of one request that waited for these, and for nothing else.
    #[inline]
    fn is_one(&self, mut waits: impl Iterator<Item = (Cause, Nanos)>) -> bool {
        let band = step(self.longest, COARSE);
        self.counts == [(step(self.longest, FINE), 1)]
            && self.longest == self.cells.iter().fold(Nanos::ZERO, |sum, cell| sum + cell.time)
            && self.cells.iter().all(|c| c.band == band && waits.next() == Some((c.cause, c.time)))
            && waits.next().is_none()
    }

    /// Appends it to words.
    fn pack(&self, words: &mut Vec<u64>) {
        let is_short = self.cells.iter().all(|cell| (0..SHORT_CELL).contains(&cell.time.0));
        words.push(self.counts.len() as u64 | (self.cells.len() as u64) << 32 | u64::from(!is_short) << 63);
        if self.counts.is_empty() {
            return;
        }
        words.push(self.longest.0 as u64);
        words.extend(self.counts.iter().map(|&(step, n)| u64::from(step) << 32 | u64::from(n)));
        let head = |cell: &Cell| u64::from(cell.band) << 8 | cell.cause as u64;
        if is_short {
            words.extend(self.cells.iter().map(|cell| head(cell) << 40 | cell.time.0 as u64));
        } else {
            words.extend(self.cells.iter().flat_map(|cell| [head(cell), cell.time.0 as u64]));
        }
    }

    /// Takes from words what was appended; its own room is used again.
    fn unpack(&mut self, from: &mut Words<'_>) {
        self.clear();
        let head = from.take_one();
        let (counts, cells) = (head as u32 as usize, (head >> 32 & 0x7fff_ffff) as usize);
        if counts == 0 {
            return;
        }
        self.longest = Nanos(from.take_one() as i64);
        self.counts
            .extend(from.take_list(counts).iter().map(|&[count]| ((count >> 32) as u16, count as u32)));
        let cell = |head: u64, time: u64| {
            let cause = CAUSES.get((head & 0xff) as usize).map_or(Cause::Unexplained, |c| c.cause);
            Cell { band: (head >> 8) as u16, cause, time: Nanos(time as i64) }
        };
        if head >> 63 == 0 {
            let of = |&[word]: &[u64; 1]| cell(word >> 40, word & (SHORT_CELL as u64 - 1));
            self.cells.extend(from.take_list(cells).iter().map(of));
        } else {
            self.cells.extend(from.take_list(cells).iter().map(|&[head, time]| cell(head, time)));
        }
    }
}

/// Below this the time of a cell and what it is of are one word: 18 minutes.
const SHORT_CELL: i64 = 1 << 40;

/// How many of a list come first, where those stand at its beginning: mostly they are few, and sometimes
/// nearly all, which is found in steps that double.
#[inline]
fn before<T>(list: &[T], first: impl Fn(&T) -> bool) -> usize {
    let few = list.iter().take(FEW).take_while(|item| first(item)).count();
    if few < FEW { few } else { many_before(list, first) }
}

/// So many are looked at one by one.
const FEW: usize = 4;

#[inline(never)]
fn many_before<T>(list: &[T], first: impl Fn(&T) -> bool) -> usize {
    let (mut from, mut to) = (FEW, 2 * FEW);
    while to <= list.len() && first(&list[to - 1]) {
        (from, to) = (to, 2 * to);
    }
    from + list[from..list.len().min(to)].partition_point(first)
}

/// The place of the first of `other` in a list, where both ascend.
fn first_of<T, K: Ord + Copy>(list: &[T], other: &[T], key: impl Fn(&T) -> K) -> usize {
    other.first().map_or(0, |first| {
        let first = key(first);
        list.partition_point(|known| key(known) < first)
    })
}

/// The step of a duration, with `2^bits` steps for each factor of two; below that many nanoseconds each is its own.
fn step(duration: Nanos, bits: u32) -> u16 {
    let ns = u64::try_from(duration.0).unwrap_or(0);
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(bits + 1);
    // 63 factors of two in 512 steps each: below 2^15.
    (u64::from(shift) * (1 << bits) + (ns >> shift)) as u16
}

/// The shortest duration of a step.
fn lower(step: u16, bits: u32) -> Nanos {
    let step = u64::from(step);
    let shift = (step >> bits).saturating_sub(1);
    Nanos(i64::try_from((step - (shift << bits)) << shift).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_tile_all_durations() {
        for bits in [FINE, COARSE] {
            let mut at = 0;
            for n in 0..(55 << bits) - 1 {
                let from = lower(n, bits);
                assert!(from.0 >= at && (n == 0 || from.0 > at), "{n}: {from}");
                at = from.0;
                assert_eq!(step(from, bits), n);
                assert_eq!(step(lower(n + 1, bits) - Nanos(1), bits), n);
            }
        }
        assert_eq!(step(Nanos::MAX, FINE), (53 << 9) + 1023);
        assert_eq!(step(Nanos(-1), FINE), 0);
    }

    #[test]
    fn what_took_no_time_has_no_part_in_percentiles() {
        let mut d = Distribution::default();
        (0..21).for_each(|_| d.add(Nanos::ZERO, std::iter::empty()));
        assert_eq!(
            (d.timed(), d.percentile(50), d.percentile(95)),
            (0, Some(Nanos::ZERO), Some(Nanos::ZERO))
        );
        (1..=14).for_each(|ms| d.add(Nanos::millis(ms), std::iter::empty()));
        assert_eq!((d.count(), d.timed(), d.percentile(100)), (35, 14, Some(Nanos::millis(14))));
        let median = d.percentile(50).unwrap();
        assert!((median - Nanos::millis(7)).0.abs() < 7_000, "{median}");
        assert!(d.around(0).is_some_and(|band| band.count == 1 && band.from > Nanos::ZERO));
    }

    #[test]
    fn percentiles_are_right_to_a_thousandth() {
        let mut d = Distribution::default();
        assert_eq!((d.percentile(50), d.around(50)), (None, None));
        for us in (1..=1000).rev() {
            d.add(Nanos::micros(us), [(Cause::Nagle, Nanos(us)), (Cause::PathDelay, Nanos(1))].into_iter());
        }
        for (p, us) in [(0, 1), (50, 500), (95, 950), (99, 990), (100, 1000)] {
            let said = d.percentile(p).unwrap().0;
            assert!((said - us * 1000).abs() <= us, "{p}: {said}");
        }
        assert_eq!((d.count(), d.longest()), (1000, Nanos::micros(1000)));
        assert_eq!(d.percentile(100), Some(Nanos::micros(1000)));
        assert_eq!(d.bands().iter().map(|b| b.count).sum::<u64>(), 1000);
        // That of a percentile is the one of all bands that it lies in.
        for p in 0..=100 {
            let mut below = 0;
            let with = d.bands().into_iter().find(|band| {
                below += band.count;
                below >= d.rank(p)
            });
            assert_eq!(d.around(p), with, "{p}");
        }
        let typical = d.around(50).unwrap();
        assert!(typical.from <= Nanos::micros(500) && Nanos::micros(500) < typical.to);
    }

    #[test]
    fn what_comes_before_is_found() {
        for len in 0..40 {
            let list: Vec<usize> = (0..len).collect();
            (0..=len).for_each(|n| assert_eq!(before(&list, |&i| i < n), n, "{len}"));
        }
    }

    #[test]
    fn adding_up_is_the_same_as_counting_together() {
        let durations = [7, 600, 601, 90_000, 90_001, 5_000_000_000];
        let mut together = Distribution::default();
        durations.iter().for_each(|&d| together.add(Nanos(d), std::iter::empty()));
        for n in 0..durations.len() {
            let mut parts = [Distribution::default(), Distribution::default()];
            durations
                .iter()
                .enumerate()
                .for_each(|(i, &d)| parts[usize::from(i < n)].add(Nanos(d), std::iter::empty()));
            let [mut a, b] = parts;
            a.add_all(&b);
            assert_eq!(a, together);
        }
        assert_eq!(together.percentile(100), Some(Nanos(5_000_000_000)));
        assert_eq!(together.percentile(1), Some(Nanos(7)));
    }
}
