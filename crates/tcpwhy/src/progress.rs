//! A line on standard error for inputs that take more than a second, if it is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Before this nothing is shown, and after it at most so often.
const FIRST: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(200);

/// Shows how far reading is.
pub(crate) struct Progress {
    next: Option<Instant>,
    began: Instant,
    shown: bool,
    /// Told instead of standard error.
    report: Option<Report>,
}

/// Is told how many packets were read, and bytes of how many.
pub(crate) type Report = Box<dyn FnMut(u64, Option<(u64, u64)>) + Send>;

impl Progress {
    /// Silent if `quiet` or if standard error is no terminal.
    pub(crate) fn new(quiet: bool) -> Progress {
        let began = Instant::now();
        let wanted = !quiet && io::stderr().is_terminal();
        Progress { next: wanted.then(|| began + FIRST), began, shown: false, report: None }
    }

    /// Tells somebody else, from the first.
    pub(crate) fn to(report: Report) -> Progress {
        let began = Instant::now();
        Progress { next: Some(began), began, shown: false, report: Some(report) }
    }

    /// To be called now and then, such as every few thousand packets.
    /// `bytes`: how many were read, of how many.
    fn tick(&mut self, packets: u64, bytes: Option<(u64, u64)>) {
        let Some(next) = self.next else { return };
        let now = self.began + self.began.elapsed();
        if now < next {
            return;
        }
        self.next = Some(now + AGAIN);
        if let Some(report) = &mut self.report {
            return report(packets, bytes);
        }
        self.shown = true;
        let seconds = self.began.elapsed().as_secs_f64();
        let rate = packets as f64 / seconds / 1e6;
        let part = match bytes {
            Some((read, size)) if size > 0 => {
                format!("{:.0} %, ", (read as f64 * 100.0 / size as f64).min(100.0))
            }
            _ => String::new(),
        };
        // A progress line that cannot be shown is no loss.
        let _ = write!(io::stderr(), "\r\x1b[K{part}{packets} packets, {seconds:.0} s, {rate:.1} million/s");
    }

    /// What reading tells.
    pub(crate) fn told(&mut self) -> impl FnMut(u64, Option<(u64, u64)>) {
        |packets, bytes| self.tick(packets, bytes)
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
