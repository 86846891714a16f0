//! What moved from one list of values to another one, and what chance alone would allow.

use super::{Change, Request, Side};
use std::collections::BTreeMap;
use tcpwhy_base::Nanos;

/// Draws for an interval.
const DRAWS: usize = 1_000;
/// Samples drawn of each side; more make the interval no better to speak of.
const MOST: usize = 2_000;

/// Fewer values than these hold their median with less than 94 %.
pub(super) const FEW: usize = 5;

/// Of sorted values.
fn median(sorted: &[i64]) -> i64 {
    quantile(sorted, 1, 2)
}

fn mean(values: &[i64]) -> i64 {
    let sum: i128 = values.iter().map(|&v| i128::from(v)).sum();
    (sum / (values.len().max(1) as i128)) as i64
}

/// The smallest value that `part` of `of` do not exceed (nearest rank).
fn quantile(sorted: &[i64], part: usize, of: usize) -> i64 {
    let rank = (sorted.len() * part).div_ceil(of).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

fn p95(sorted: &[i64]) -> i64 {
    quantile(sorted, 95, 100)
}

fn side(sorted: &[i64]) -> Side {
    Side {
        count: sorted.len() as u64,
        median: Nanos(median(sorted)),
        p95: Nanos(p95(sorted)),
        mean: Nanos(mean(sorted)),
    }
}

/// The middle 95 % of what was drawn.
fn middle(mut drawn: Vec<i64>) -> (Nanos, Nanos) {
    drawn.sort_unstable();
    (Nanos(quantile(&drawn, 25, 1000)), Nanos(quantile(&drawn, 975, 1000)))
}

/// An interval of a mean from a few values is too narrow by what Student's t is wider than the normal
/// distribution, and by sqrt(n / (n - 1)), since draws vary about their own mean (Hesterberg 2015). A half
/// more for six values.
fn widened((low, high): (Nanos, Nanos), about: Nanos, values: usize) -> (Nanos, Nanos) {
    const Z: f64 = 1.96;
    let df = values.saturating_sub(1).max(1) as f64;
    // Abramowitz and Stegun 26.7.5.
    let t =
        Z + (Z.powi(3) + Z) / (4.0 * df) + (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * df * df);
    let permille = (1000.0 * t / Z * (1.0 + 1.0 / df).sqrt()) as i128;
    let wide = |end: Nanos| {
        let from = i128::from((end - about).0) * permille / 1000;
        about + Nanos(i64::try_from(from).unwrap_or(0))
    };
    (wide(low), wide(high))
}

/// What the difference is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Median,
    Mean,
}

impl Of {
    fn sorted(self, values: &[i64]) -> i64 {
        match self {
            Of::Median => median(values),
            Of::Mean => mean(values),
        }
    }
}

pub(super) fn change(mut before: Vec<i64>, mut after: Vec<i64>, of: Of) -> Change {
    before.sort_unstable();
    after.sort_unstable();
    let (a, b) = (thin(&before), thin(&after));
    let mut random = Random::new();
    let mut draw = |from: &[i64]| -> [i64; 2] {
        let mut drawn: Vec<i64> = from.iter().map(|_| from[random.below(from.len())]).collect();
        drawn.sort_unstable();
        [of.sorted(&drawn), p95(&drawn)]
    };
    // One value has no spread that could be drawn from: the interval is the point then.
    let (differences, of_p95): (Vec<i64>, Vec<i64>) = (0..DRAWS)
        .map(|_| {
            let (to, from) = (draw(&b), draw(&a));
            (to[0].saturating_sub(from[0]), to[1].saturating_sub(from[1]))
        })
        .unzip();
    let difference = Nanos(of.sorted(&after)) - Nanos(of.sorted(&before));
    let interval = middle(differences);
    Change {
        interval: match of {
            Of::Median => interval,
            Of::Mean => widened(interval, difference, before.len().min(after.len())),
        },
        before: side(&before),
        after: side(&after),
        difference,
        p95_interval: middle(of_p95),
    }
}

/// Of the means of what each exchange has, where connections are drawn again, each with all its exchanges.
pub(super) fn change_by_connection(both: &[Vec<Request<'_>>; 2], times: &[Vec<i64>; 2]) -> Change {
    let sums = [0, 1].map(|i| {
        let mut sums: BTreeMap<usize, (i128, i128)> = BTreeMap::new();
        for (x, &time) in both[i].iter().zip(&times[i]) {
            let (sum, count) = sums.entry(x.connection).or_default();
            (*sum, *count) = (*sum + i128::from(time), *count + 1);
        }
        sums.into_values().collect::<Vec<_>>()
    });
    let mut random = Random::new();
    let mut draw = |from: &[(i128, i128)]| -> i64 {
        let drawn = (0..from.len().min(MOST)).map(|_| from[random.below(from.len())]);
        let (sum, count) = drawn.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        (sum / count.max(1)) as i64
    };
    let [from, to] = &sums;
    let differences = (0..DRAWS).map(|_| draw(to).saturating_sub(draw(from))).collect();
    let of_all = [0, 1].map(|i| mean(&times[i]));
    let difference = Nanos(of_all[1]) - Nanos(of_all[0]);
    let (low, high) = widened(middle(differences), difference, from.len().min(to.len()));
    // A handful of connections have no spread to draw from. What the estimate is wrong by lies on the work
    // beside it, so that it is known no better than how long that took together; openings have none of it.
    let more = if from.len().min(to.len()) < FEW {
        let work = |i: usize| both[i].iter().map(|x| (x.exchange.end - x.exchange.start).0).collect();
        let Change { difference, interval: (low, high), .. } = change(work(0), work(1), Of::Mean);
        (difference - low).max(high - difference)
    } else {
        Nanos::ZERO
    };
    let [before, after] = times.each_ref().map(|times| {
        let mut times = times.clone();
        times.sort_unstable();
        side(&times)
    });
    Change {
        difference,
        // However much work lies beside it, an estimate is not wrong by more than all of it: none gets
        // shorter by more than it takes, nor, the other way round, longer.
        interval: ((low - more).max(Nanos::ZERO - before.mean), (high + more).min(after.mean)),
        ..change(times[0].clone(), times[1].clone(), Of::Mean)
    }
}

/// At most [`MOST`] of sorted values, evenly.
fn thin(sorted: &[i64]) -> Vec<i64> {
    let step = sorted.len().div_ceil(MOST).max(1);
    sorted.iter().skip(step / 2).step_by(step).copied().collect()
}

/// xorshift64* (Vigna 2016).
struct Random(u64);

impl Random {
    /// The same numbers each time.
    fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let x = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(x) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values() {
        let values: Vec<i64> = (1..=100).collect();
        assert_eq!((median(&values), quantile(&values, 95, 100), quantile(&[7], 95, 100)), (50, 95, 7));
    }

    #[test]
    fn what_moved_is_sure_and_what_did_not_is_not() {
        let noisy = |base: i64| (0..200).map(|i| base + (i * 7919) % 100).collect::<Vec<i64>>();
        let moved = change(noisy(1000), noisy(800), Of::Median);
        assert!(moved.is_sure() && moved.interval.1 < Nanos::ZERO, "{moved:?}");
        assert!(moved.interval.0 <= moved.difference && moved.difference <= moved.interval.1);
        let same = change(noisy(1000), noisy(1000), Of::Median);
        assert!(!same.is_sure() && same.difference == Nanos::ZERO, "{same:?}");
        assert_eq!(change(noisy(1), noisy(5), Of::Mean), change(noisy(1), noisy(5), Of::Mean));
    }

    /// Student's t for 4, 5 and 19 degrees of freedom: 2.776, 2.571, 2.093; it is 1.96 of very many.
    #[test]
    fn few_values_tell_less_of_a_mean() {
        for (values, t) in [(5, 2.776), (6, 2.571), (20, 2.093), (100_000, 1.96)] {
            let n = values as f64;
            let meant = 500.0 + 1_000_000.0 * t / 1.96 * (n / (n - 1.0)).sqrt();
            let (low, high) = widened((Nanos(-999_500), Nanos(1_000_500)), Nanos(500), values);
            assert!((high.0 as f64 / meant - 1.0).abs() < 0.02, "{values}: {high}, {meant}");
            assert_eq!(high - Nanos(500), Nanos(500) - low);
        }
    }

    /// One long value of ten is their 95th percentile, and chance; five of ten are not.
    #[test]
    fn a_percentile_is_drawn_too() {
        let with = |long: usize| (0..10).map(|i| if i < long { 900 } else { 20 }).collect::<Vec<i64>>();
        let of = |long| change(with(0), with(long), Of::Median);
        assert!(!of(1).is_sure_of_p95() && of(1).after.p95 == Nanos(900));
        assert!(of(5).is_sure_of_p95() && !of(0).is_sure_of_p95());
        let few = change(vec![20; 4], vec![900; 40], Of::Median);
        assert!(few.p95_interval.0 > Nanos::ZERO && !few.is_sure_of_p95());
    }
}
