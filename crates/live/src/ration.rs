//! How long kernel events may be listened to: programs that run for each write, read and segment take at most
//! a two-hundredth of the processors, however many there are of those.

use tcpwhy_base::Nanos;

/// What a run takes with all that belongs to it, by the statistics of Linux 6.18 (`make watch-costs`), until
/// that of this machine is known.
const RUN: Nanos = Nanos(80);
/// A part of the processors' time: one in so many. Where small requests keep them busy, the programs that
/// answer have three fifths of that time (9 µs of 15 µs for each, `make watch-costs`; the rest is interrupts'
/// and the idle loop's), and what listens is to take less than a hundredth of theirs.
const PART: i64 = 200;
/// What may be saved up: so much of that part. Shorter turns would cut most waits in two.
const SAVED: Nanos = Nanos::secs(1);

/// What they may take, and have taken.
#[derive(Debug)]
pub struct Ration {
    processors: i64,
    saved: Nanos,
    last: Nanos,
    runs: u64,
    each: Nanos,
}

impl Ration {
    /// On a machine of so many processors, from the beginning of the clock.
    pub fn new(processors: u32) -> Ration {
        let (zero, processors) = (Nanos::ZERO, processors.into());
        let mut ration = Ration { processors, saved: zero, last: zero, runs: 0, each: RUN };
        ration.saved = ration.most();
        ration
    }

    /// As much as can be saved.
    fn most(&self) -> Nanos {
        Nanos(SAVED.0 / PART * self.processors)
    }

    /// A run takes so long on this machine.
    pub fn costs(&mut self, each: Nanos) {
        self.each = each.max(Nanos(1));
    }

    /// At `now` programs have run so often in all. Gives how often since the last count.
    pub fn count(&mut self, now: Nanos, runs: u64) -> u64 {
        let earned = Nanos((now - self.last).floor0().0 / PART * self.processors);
        let more = runs.saturating_sub(self.runs);
        let spent = Nanos(i64::try_from(more).unwrap_or(i64::MAX).saturating_mul(self.each.0));
        (self.last, self.runs) = (now, runs);
        self.saved = (self.saved + earned).min(self.most()) - spent;
        more
    }

    /// Whether to listen from now on, if it is wanted: one that listens goes on until all is spent, one that
    /// does not begins when all is saved again.
    pub fn allows(&self, listens: bool) -> bool {
        if listens { self.saved > Nanos::ZERO } else { self.saved >= self.most() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processors: 10 ms of each second. 1.2 million runs take 96, or 240.
    #[test]
    fn no_more_than_a_two_hundredth_of_the_processors_is_taken() {
        assert!((5_750..6_500).contains(&listened(None)));
        assert!((2_300..2_700).contains(&listened(Some(Nanos(200)))));
    }

    /// How many ms of a minute it listens, where a run takes so long.
    fn listened(each: Option<Nanos>) -> i64 {
        let (mut ration, mut runs, mut listens, mut listened) = (Ration::new(2), 0, true, 0);
        each.into_iter().for_each(|each| ration.costs(each));
        for ms in 1..=60_000 {
            runs += if listens { 1_200 } else { 0 };
            listened += i64::from(listens);
            ration.count(Nanos::millis(ms), runs);
            listens = ration.allows(listens);
        }
        let taken = Nanos(i64::try_from(runs).unwrap() * each.unwrap_or(RUN).0);
        // What was saved in the beginning comes to it.
        assert!((Nanos::millis(575)..=Nanos::millis(612)).contains(&taken), "{taken}");
        listened
    }

    #[test]
    fn few_events_are_all_heard() {
        let mut ration = Ration::new(2);
        for n in 1..=1_000 {
            ration.count(Nanos::millis(10 * n), (n as u64) * 1_000);
            assert!(ration.allows(true), "{n}");
        }
        // A reading that goes back is none.
        ration.count(Nanos::ZERO, 0);
        assert!(ration.allows(true));
    }
}
