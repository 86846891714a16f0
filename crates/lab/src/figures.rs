//! Figures out of a run.

use crate::endpoints::Op;
use crate::measure::{Measure, Statistic, Subject};
use crate::run::Run;

impl Run {
    /// The figure; none if the run has nothing of the kind.
    pub fn figure(&self, measure: &Measure) -> Option<f64> {
        match measure {
            Measure::Elapsed => Some(self.elapsed_ns as f64 / 1e6),
            Measure::Throughput => {
                let bytes: u64 = self.payload();
                (self.elapsed_ns > 0).then(|| bytes as f64 * 8e3 / self.elapsed_ns as f64)
            }
            Measure::Errors => Some(self.events.iter().filter(|e| e.error.is_some()).count() as f64),
            Measure::Queue => {
                Some(self.traffic.up.queue_max_ns.max(self.traffic.down.queue_max_ns) as f64 / 1e6)
            }
            Measure::Counter { server, name } => {
                let counters =
                    if *server { &self.traffic.server_counters } else { &self.traffic.client_counters };
                Some(counters.get(name).map_or(0.0, |&n| n as f64))
            }
            Measure::Of(subject, Statistic::Failed) => Some(subject.failed(self) as f64),
            Measure::Of(subject, statistic) => statistic.of(&subject.figures(self)),
        }
    }
}

impl Subject {
    /// In milliseconds, in the order of time; what failed is left out.
    fn figures(self, run: &Run) -> Vec<f64> {
        let ms = |ns: i64| ns as f64 / 1e6;
        match self {
            Subject::Exchange => {
                run.exchanges.iter().filter(|e| e.complete).map(|e| ms(e.end_ns - e.start_ns)).collect()
            }
            Subject::Connect if run.connects.is_empty() => run
                .events
                .iter()
                .filter(|e| e.op == Op::Connect && e.error.is_none())
                .map(|e| ms(e.end_ns - e.start_ns))
                .collect(),
            Subject::Connect => {
                run.connects.iter().filter(|c| c.error.is_none()).map(|c| ms(c.took_ns)).collect()
            }
            Subject::Processor => {
                run.connects.iter().filter(|c| c.error.is_none()).map(|c| ms(c.processor_ns)).collect()
            }
            Subject::Program => run.printed_s.iter().map(|s| s * 1e3).collect(),
        }
    }

    fn failed(self, run: &Run) -> usize {
        match self {
            Subject::Exchange => run.exchanges.iter().filter(|e| !e.complete).count(),
            Subject::Connect | Subject::Processor => {
                let events = run.events.iter().filter(|e| e.op == Op::Connect && e.error.is_some());
                events.count() + run.connects.iter().filter(|c| c.error.is_some()).count()
            }
            Subject::Program => 0,
        }
    }
}

impl Statistic {
    fn of(self, all: &[f64]) -> Option<f64> {
        let tenth = (all.len() / 10).max(1).min(all.len());
        match self {
            Statistic::Median => median(all),
            Statistic::Mean => (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64),
            Statistic::Max => all.iter().copied().reduce(f64::max),
            Statistic::First => all.first().copied(),
            Statistic::Last => all.last().copied(),
            Statistic::Total => Some(all.iter().sum()),
            Statistic::Begin => median(all.get(..tenth).unwrap_or_default()),
            Statistic::End => median(all.get(all.len() - tenth..).unwrap_or_default()),
            Statistic::Slow => Some(all.iter().filter(|&&ms| ms > 900.0).count() as f64),
            Statistic::Count | Statistic::Failed => Some(all.len() as f64),
        }
    }
}

/// The middle, or the mean of the two in the middle.
pub fn median(all: &[f64]) -> Option<f64> {
    let mut sorted = all.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some((sorted.get(low)? + sorted.get(high)?) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics() {
        let all = [5.0, 1.0, 1000.0, 2.0];
        let of = |s: Statistic| s.of(&all).unwrap();
        assert_eq!(of(Statistic::Median), 3.5);
        assert_eq!(of(Statistic::Mean), 252.0);
        assert_eq!((of(Statistic::Begin), of(Statistic::End)), (5.0, 2.0));
        assert_eq!((of(Statistic::Slow), of(Statistic::Count)), (1.0, 4.0));
        assert_eq!(Statistic::Median.of(&[]), None);
    }
}
