//! Whether an exchange takes longer than somebody is willing to wait.

use std::time::{Duration, Instant};
use tcpwhy_base::{Endpoint, Nanos, Observation, Segment};
use tcpwhy_library::packets::Ongoing;

/// After the last progress of a slow exchange, what ends it is recorded, too.
const QUIET: Duration = Duration::from_secs(1);
/// But not for longer than that.
const LONGEST: Duration = Duration::from_secs(10);

/// Looks at what is recorded.
#[derive(Debug)]
pub(super) struct Slow {
    most: Nanos,
    exchanges: Ongoing,
    met: Option<Met>,
}

/// An exchange that takes too long: the first of them.
#[derive(Debug)]
struct Met {
    ends: [Endpoint; 2],
    start: Nanos,
    last: Nanos,
    /// When that was seen, and when it last went on.
    seen: Instant,
    progress: Instant,
    /// Another one has begun on its connection.
    over: bool,
    /// The latest packet of all.
    now: Nanos,
}

impl Slow {
    /// Exchanges may take so long.
    pub(super) fn new(most: Nanos) -> Slow {
        Slow { most, exchanges: Ongoing::default(), met: None }
    }

    /// Takes what was seen next.
    pub(super) fn take(&mut self, seen: Observation<'_>) {
        self.exchanges.take(seen);
        if let Observation::Segment(segment) = seen {
            self.ask(segment);
        }
    }

    fn ask(&mut self, segment: &Segment) {
        let mut ends = [segment.src, segment.dst];
        ends.sort_unstable();
        if let Some(met) = &mut self.met {
            met.now = segment.time;
            if met.ends != ends || met.over {
                return;
            }
            match self.exchanges.of(segment) {
                Some((start, last)) if start == met.start => {
                    if last > met.last {
                        (met.last, met.progress) = (last, Instant::now());
                    }
                }
                _ => met.over = true,
            }
            return;
        }
        let Some((start, last)) = self.exchanges.of(segment) else { return };
        if last - start > self.most {
            let (seen, progress) = (Instant::now(), Instant::now());
            self.met = Some(Met { ends, start, last, seen, progress, over: false, now: segment.time });
        }
    }

    /// One took too long, and the next one has begun on its connection.
    pub(super) fn is_over(&self) -> bool {
        self.met.as_ref().is_some_and(|met| met.over)
    }

    /// One took too long, and it is over, or has gone on for long enough, or its beginning is about to leave
    /// the ring, whose oldest packet is of `oldest`. Gives which.
    pub(super) fn is_met(&self, oldest: Option<Nanos>) -> Option<String> {
        let met = self.met.as_ref()?;
        let leaves = oldest.is_some_and(|oldest| oldest + (met.now - oldest).part(2) > met.start);
        let over = met.over || leaves || met.progress.elapsed() >= QUIET || met.seen.elapsed() >= LONGEST;
        let [one, other] = met.ends;
        over.then(|| format!("an exchange between {one} and {other} took {}", met.last - met.start))
    }
}
