//! Several captures as one, on all cores: the way that `tcpwhy explain` goes.
//!
//! [`explain`](Captures::explain) gives the answer over all of it: each core reads all and analyses a part of
//! the connections. [`stream`](Captures::stream) gives connections as they end, while reading goes on: one
//! thread reads, another one analyses. Two captures may be [two taps](taps) on the same connections. With one
//! core both take turns in one thread, and so does [`Explain`](crate::Explain) always.
//!
//! ```
//! use std::path::PathBuf;
//! use tcpwhy_library::captures::Captures;
//!
//! let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/");
//! let files = ["zeek__smtp_bdat.pcap", "missing.pcap"].map(|name| PathBuf::from(format!("{folder}{name}")));
//! let (analysis, read) = Captures::new(&files).explain(&mut |_, _| ())?;
//! assert_eq!((analysis.connections.len(), read.packets, read.opened), (1, 184, 1));
//! assert!(read.unreadable[0].contains("missing.pcap"));
//! # Ok::<(), tcpwhy_library::captures::Failed>(())
//! ```

mod abreast;
mod ahead;
#[cfg(test)]
mod bytes;
mod company;
pub(crate) mod given;
mod read;
mod reading;
mod said;
pub mod taps;
mod threads;

use crate::{Connection, Detail, Filter, Finding, Nanos, ReadError, Reader, Totals};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use tcpwhy_analysis::{Analyzer, Config};
use tcpwhy_capture::Counts;

pub use crate::clock::OddClock;
pub use tcpwhy_analysis::{Analysis, Bases, ROWS, Window};

/// To pass over a packet of another part takes some 70 instructions, to analyse one 800 to 4,000: with eight
/// parts passing over is up to half of the work of each, and more parts would win little.
const MAX_PARTS: usize = 8;

/// Something that can be read as a capture.
pub trait Capture: Sync {
    /// Opens it, or says in a sentence why not.
    fn open(&self) -> Result<Reader, String>;

    /// Opens one that grows: it is read on until `stop` is set.
    fn open_following(&self, stop: &Arc<AtomicBool>) -> Result<Reader, String>;

    /// How many bytes it has, where that is known.
    fn size(&self) -> Option<u64> {
        None
    }

    /// A sentence about an error in it.
    fn said(&self, error: &ReadError) -> String {
        error.to_string()
    }

    /// It can be read once.
    fn is_stream(&self) -> bool {
        false
    }
}

impl Capture for PathBuf {
    fn open(&self) -> Result<Reader, String> {
        Reader::open(self).map_err(|e| self.said(&e))
    }

    fn open_following(&self, stop: &Arc<AtomicBool>) -> Result<Reader, String> {
        Reader::open_following(self, Arc::clone(stop)).map_err(|e| self.said(&e))
    }

    fn size(&self) -> Option<u64> {
        std::fs::metadata(self).ok().filter(|m| m.is_file()).map(|m| m.len())
    }

    fn said(&self, error: &ReadError) -> String {
        format!("{}: {error}", self.display())
    }

    fn is_stream(&self) -> bool {
        self.as_os_str() == "-"
    }
}

/// Is told now and then how many packets were read; and of the capture that is being read, where its size is
/// known, how many bytes of how many.
pub type Progress<'a> = dyn FnMut(u64, Option<(u64, u64)>) + 'a;

/// Captures that are explained as one, in the order in which they are read.
#[derive(Clone, Copy, Debug)]
pub struct Captures<'a, C> {
    inputs: &'a [C],
    window: Option<Window>,
    filter: Option<&'a Filter>,
    detail: Detail,
    stop: Option<&'a Arc<AtomicBool>>,
    follow: bool,
    narrows: bool,
    listed: Option<usize>,
    meanwhile: Option<&'a Meanwhile>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failed {
    /// A thread of the analysis panicked, which is a fault of this library.
    Analysis,
    /// One of two taps could not be opened; the sentence of [`Capture::open`].
    Open(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failed::Analysis => "the analysis failed: please report this",
            Failed::Open(why) => why,
        })
    }
}

impl std::error::Error for Failed {}

/// What was read.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Read {
    /// Frames in the inputs before each.
    pub frames_before: Vec<u64>,
    /// Frames.
    pub packets: u64,
    /// What the dissector made of them.
    pub counts: Counts,
    /// Packets of which fragments are missing.
    pub incomplete: u64,
    /// What packets were wrapped in.
    pub encapsulations: Vec<(&'static str, u64)>,
    /// Packets that the capture program says it lost.
    pub drops: u64,
    /// Events of a kernel that were left out: too many stood between two packets.
    pub events_left_out: u64,
    /// Earliest and latest frame.
    pub span: Option<(Nanos, Nanos)>,
    /// Sentences about inputs that could not be opened.
    pub unreadable: Vec<String>,
    /// Sentences about inputs that ended in damage.
    pub damaged: Vec<String>,
    /// Inputs that were opened.
    pub opened: usize,
    /// Frames with impossible time stamps.
    pub bad_times: u64,
    /// Frames stamped more than a second before an earlier one.
    pub steps: u64,
    /// Inputs whose clock ran backwards or jumped.
    pub odd_clocks: Vec<OddClock>,
    /// Inputs whose time overlaps that of an earlier one.
    pub overlapping: u64,
    /// It was [stopped](Captures::stopped_by).
    pub interrupted: bool,
}

/// What is left when connections were given out as they ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Streamed<T> {
    /// What took them.
    pub taken: T,
    /// Over all connections, worst first; what a fix saves is a bound: nothing was replayed.
    pub findings: Vec<Finding>,
    /// Sums over all connections.
    pub totals: Totals,
    /// What was read.
    pub read: Read,
}

/// Takes connections as they end, in the thread of the analysis.
pub trait Take: Send {
    /// Some that have ended.
    fn take(&mut self, ended: &mut dyn Iterator<Item = Box<Connection>>);
    /// There are no more for now, because there are no more packets; or they were the last.
    fn pause(&mut self);
}

impl<T> Streamed<T> {
    /// With what `of` makes of what took the connections.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Streamed<U> {
        let Streamed { taken, findings, totals, read } = self;
        Streamed { taken: of(taken), findings, totals, read }
    }
}

impl<'a, C: Capture> Captures<'a, C> {
    /// All of these, all detail.
    pub fn new(inputs: &'a [C]) -> Captures<'a, C> {
        Captures {
            inputs,
            window: None,
            filter: None,
            detail: Detail::All,
            stop: None,
            follow: false,
            narrows: true,
            listed: None,
            meanwhile: None,
        }
    }

    /// Which exchanges are kept with their spans.
    #[must_use]
    pub fn detail(mut self, detail: Detail) -> Captures<'a, C> {
        self.detail = detail;
        self
    }

    /// Only packets that match.
    #[must_use]
    pub fn filter(mut self, filter: Option<&'a Filter>) -> Captures<'a, C> {
        self.filter = filter;
        self
    }

    /// Only this stretch of time is accounted for; all is read and followed.
    #[must_use]
    pub fn within(mut self, window: Option<Window>) -> Captures<'a, C> {
        self.window = window;
        self
    }

    /// Reading stops soon after this is set, by another thread or a signal.
    #[must_use]
    pub fn stopped_by(mut self, stop: &'a Arc<AtomicBool>) -> Captures<'a, C> {
        self.stop = Some(stop);
        self
    }

    /// Reads on while the captures grow, until it is stopped.
    #[must_use]
    pub fn following(mut self, follow: bool) -> Captures<'a, C> {
        self.follow = follow;
        self
    }

    /// Whether the answer may be narrowed later ([`Analysis::retain`]): if not, which is never so by itself,
    /// a tenth less memory and time is needed where connections are many.
    #[must_use]
    pub fn narrowed(mut self, may_be: bool) -> Captures<'a, C> {
        self.narrows = may_be;
        self
    }

    /// The answer lists the first so many connections of a page, the first [`ROWS`] of tables, and those that
    /// something is said of; the others are only summed ([`Totals::not_kept`]), and it may not be
    /// [narrowed](Captures::narrowed). `None`: it lists all.
    #[must_use]
    pub fn listing(mut self, most: Option<usize>) -> Captures<'a, C> {
        self.listed = most;
        self
    }

    /// Tells there what is known while reading goes on.
    #[must_use]
    pub fn telling(mut self, meanwhile: &'a Meanwhile) -> Captures<'a, C> {
        self.meanwhile = Some(meanwhile);
        self
    }

    /// The captures.
    pub fn inputs(&self) -> &'a [C] {
        self.inputs
    }

    /// The stretch of time that is accounted for.
    pub fn window(&self) -> Option<Window> {
        self.window
    }

    /// Reads everything and analyses it. Nothing is replayed yet ([`replay`](crate::replay)).
    pub fn explain(&self, progress: &mut Progress<'_>) -> Result<(Analysis, Read), Failed> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let new = || {
            let analyzer = Analyzer::new(self.config()).within(self.window);
            match self.listed {
                Some(most) => analyzer.listing(most),
                None if self.narrows => analyzer,
                None => analyzer.never_narrowed(),
            }
        };
        if cores < 2 {
            let (analyzer, read) = threads::in_turns(self, new(), progress);
            return Ok((analyzer.finish(), read));
        }
        let eaters = (0..cores.min(MAX_PARTS)).map(|_| new()).collect();
        let (read, analyzers) = abreast::abreast(self, eaters, progress)?;
        Ok((Analyzer::finish_all(analyzers), read))
    }

    /// Reads two captures of the same connections side by side, and analyses them as one.
    pub fn explain_taps(
        &self,
        taps: &taps::Taps,
        progress: &mut Progress<'_>,
    ) -> Result<(Analysis, Read), Failed> {
        taps::explain(self, taps, progress)
    }

    /// Gives connections to `take` as they end; `linger`: so long after they were closed, in the time of
    /// packets, as late ones may come.
    pub fn stream<T: Take>(
        &self,
        linger: Nanos,
        take: T,
        progress: &mut Progress<'_>,
    ) -> Result<Streamed<T>, Failed> {
        let analyzer = Analyzer::streaming(self.config()).within(self.window).lingering(linger);
        let eater = threads::Ending::new(analyzer, take);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (eater, read) = if cores < 2 {
            threads::in_turns(self, eater, progress)
        } else {
            threads::side_by_side(self, eater, progress)?
        };
        let (analyzer, taken) = eater.parts();
        let (findings, totals) = analyzer.finish_stream();
        Ok(Streamed { taken, findings, totals, read })
    }

    fn config(&self) -> Config {
        Config { detail: self.detail }
    }

    fn stops(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Relaxed))
    }
}

/// What the thread that reads knows, and one that writes already needs to.
#[derive(Debug, Default)]
pub struct Meanwhile {
    start: OnceLock<Nanos>,
    frames_before: Mutex<Vec<u64>>,
    wrapped: AtomicBool,
}

impl Meanwhile {
    fn begin(&self, time: Nanos) {
        self.start.get_or_init(|| time);
    }

    fn begin_input(&self, frames_before: u64) {
        self.frames_before.lock().unwrap_or_else(PoisonError::into_inner).push(frames_before);
    }

    fn set_wrapped(&self) {
        self.wrapped.store(true, Relaxed);
    }

    /// Whether any packet so far was wrapped in tags or tunnels.
    pub fn is_wrapped(&self) -> bool {
        self.wrapped.load(Relaxed)
    }

    /// The time of the first frame, if there was one.
    pub fn start(&self) -> Option<Nanos> {
        self.start.get().copied()
    }

    /// Frames in the inputs before each that was begun.
    pub fn frames_before(&self) -> Vec<u64> {
        self.frames_before.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
