//! Whether processors have time to spare. Where they have none, each look takes one from a program that was
//! at work, and all that this program was about to answer waits: how often that happens counts, more than for
//! how long.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

/// Seconds since the start, and those in which processors were idle, all of them together; in hundredths.
const UPTIME: &str = "/proc/uptime";
/// Between two readings: twenty of those hundredths.
const APART: Duration = Duration::from_millis(200);

/// Reads how idle the processors are, now and then.
#[derive(Debug)]
pub(crate) struct Spare {
    file: Option<File>,
    last: Option<(f64, f64)>,
    read: Instant,
    has_none: bool,
}

impl Default for Spare {
    fn default() -> Spare {
        let mut spare =
            Spare { file: File::open(UPTIME).ok(), last: None, read: Instant::now(), has_none: false };
        spare.last = spare.times();
        spare
    }
}

impl Spare {
    /// Whether less than half of a processor was idle lately. Not known: false.
    pub(crate) fn has_none(&mut self) -> bool {
        if self.read.elapsed() >= APART {
            self.read = Instant::now();
            let times = self.times();
            self.has_none = self.last.zip(times).is_some_and(|(then, now)| is_busy(then, now));
            self.last = times;
        }
        self.has_none
    }

    fn times(&self) -> Option<(f64, f64)> {
        let mut buffer = [0; 64];
        let n = self.file.as_ref()?.read_at(&mut buffer, 0).ok()?;
        times(std::str::from_utf8(buffer.get(..n)?).ok()?)
    }
}

fn times(text: &str) -> Option<(f64, f64)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

/// Two readings, of the time and of the idle time.
fn is_busy(then: (f64, f64), now: (f64, f64)) -> bool {
    let (passed, idle) = (now.0 - then.0, now.1 - then.1);
    passed > 0.0 && idle < passed / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_processors_are_counted_together() {
        assert_eq!(times("350735.47 234388.90\n"), Some((350_735.47, 234_388.90)));
        for damaged in ["", "1.5\n", "x 1\n"] {
            assert_eq!(times(damaged), None, "{damaged}");
        }
        for (idle, busy) in [(0.0, true), (0.09, true), (0.11, false), (0.4, false)] {
            assert_eq!(is_busy((100.0, 50.0), (100.2, 50.0 + idle)), busy, "{idle}");
        }
        // No time has passed: nothing is known.
        assert!(!is_busy((100.0, 50.0), (100.0, 50.0)));
        assert!(Spare::default().last.is_some());
    }
}
