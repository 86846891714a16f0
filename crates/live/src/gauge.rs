//! What a run of the programs takes on this machine, by the statistics of its kernel. Those cost as much as a
//! short program does, for all programs of the machine, and are on for a second a minute at most.

use std::time::{Duration, Instant};
use tcpwhy_base::Nanos;

/// How often it is measured: the clock of a processor and its neighbours change.
const EVERY: Duration = Duration::from_secs(60);
/// The longest that the statistics are on.
const PATIENCE: Duration = Duration::from_secs(1);
/// A figure is that of so many runs or more.
const RUNS: u64 = 500;
/// The middle one of so many figures counts: a machine that stands still in the middle of a run spoils one.
const FIGURES: usize = 3;

/// What programs have taken, and how often they have run, while statistics were on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) time: Duration,
    pub(crate) runs: u64,
}

/// Measures now and then. `T` keeps the statistics on while it lives.
#[derive(Debug)]
pub(crate) struct Gauge<T> {
    on: Option<T>,
    began: Option<Instant>,
    last: Taken,
    figures: Vec<Nanos>,
}

impl<T> Default for Gauge<T> {
    fn default() -> Gauge<T> {
        Gauge { on: None, began: None, last: Taken::default(), figures: Vec::new() }
    }
}

impl<T> Gauge<T> {
    /// To be called at each look while the programs listen, which ran so often since the last one. `begin`
    /// turns the statistics on, if that is permitted. Gives what a run takes each time that it has been
    /// measured.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        runs: u64,
        begin: impl FnOnce() -> Option<T>,
        taken: impl FnOnce() -> Taken,
    ) -> Option<Nanos> {
        let since = self.began.map(|began| now.saturating_duration_since(began));
        if self.on.is_none() {
            // Where they seldom run there is nothing to measure, and nothing to save.
            if runs >= RUNS && since.is_none_or(|since| since >= EVERY) {
                (self.on, self.began) = (begin(), Some(now));
                self.figures.clear();
                self.last = taken();
            }
            return None;
        }
        let total = taken();
        let runs = total.runs.saturating_sub(self.last.runs);
        if runs >= RUNS {
            let time = total.time.saturating_sub(self.last.time).as_nanos() / u128::from(runs);
            self.figures.push(Nanos(i64::try_from(time).unwrap_or(i64::MAX)));
            self.last = total;
        }
        if self.figures.len() < FIGURES && since.is_some_and(|since| since < PATIENCE) {
            return None;
        }
        self.stop();
        self.figures.sort_unstable();
        self.figures.get(self.figures.len() / 2).copied()
    }

    /// The programs rest.
    pub(crate) fn stop(&mut self) {
        self.on = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    /// Looks every 10 ms at programs that run so often between two looks and take so long for a run. At how
    /// many looks statistics were on, and what was measured when.
    fn looked(n: u32, of: impl Fn(u32) -> (u64, u64)) -> (u32, Vec<(u32, i64)>) {
        let (start, key) = (Instant::now(), Rc::new(()));
        let (mut gauge, mut total) = (Gauge::default(), Taken::default());
        let (mut looks_on, mut measured) = (0, Vec::new());
        for i in 0..n {
            let on = Rc::strong_count(&key) > 1;
            looks_on += u32::from(on);
            let (runs, each) = of(i);
            if on {
                total.runs += runs;
                total.time += Duration::from_nanos(runs * each);
            }
            let now = start + Duration::from_millis(10) * i;
            if let Some(each) = gauge.read(now, runs, || Some(Rc::clone(&key)), || total) {
                measured.push((i, each.0));
            }
        }
        (looks_on, measured)
    }

    #[test]
    fn the_middle_of_three_figures_a_minute_counts() {
        // The second is that of a machine that stood still.
        let (on, measured) = looked(6_003, |i| (1_000, if i % 3 == 2 { 9_000 } else { 200 + u64::from(i) }));
        assert_eq!((on, measured), (5, vec![(3, 203)]));
        let (on, measured) = looked(6_004, |_| (600, 150));
        assert_eq!((on, measured), (6, vec![(3, 150), (6_003, 150)]));
    }

    #[test]
    fn statistics_are_on_for_a_second_and_no_longer() {
        // Too few between two looks: they are gathered.
        let once = |after: u64| move |i| if i == 7 { (500, 150) } else { (after, 150) };
        assert_eq!(looked(2_000, once(20)), (75, vec![(82, 150)]));
        assert_eq!(looked(2_000, once(1)), (100, vec![]));
    }

    #[test]
    fn where_they_seldom_run_nothing_is_measured() {
        assert_eq!(looked(20_000, |_| (499, 150)), (0, vec![]));
    }

    #[test]
    fn without_permission_there_is_no_figure() {
        let mut gauge = Gauge::<()>::default();
        let now = Instant::now();
        for s in 0..200 {
            assert_eq!(gauge.read(now + Duration::from_secs(s), RUNS, || None, Taken::default), None);
        }
    }
}
