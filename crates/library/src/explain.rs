//! A capture to its answer, in the thread of the caller.

use crate::captures::given::{self, After, Wanted};
use crate::clock::OddClock;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Connection, Detail, Finding, Totals, replay};
use tcpwhy_base::{Nanos, Part};
use tcpwhy_capture::{Counts, Filter, ReadError, Reader};

/// How a capture is to be explained.
#[derive(Clone, Debug)]
pub struct Explain {
    filter: Option<Filter>,
    detail: Detail,
    stop: Option<Arc<AtomicBool>>,
    part: (u32, u32),
    settings: bool,
}

/// The answer for a whole capture.
#[derive(Debug)]
#[non_exhaustive]
pub struct Explained {
    /// In the order of their first packets.
    pub connections: Vec<Connection>,
    /// Over all connections, worst first, with fixes, replayed in the model where that is possible.
    pub findings: Vec<Finding>,
    /// Sums over all connections.
    pub totals: Totals,
    /// What was read.
    pub input: Input,
}

/// What is left when connections were given out as they ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// Over all connections, worst first; what a fix saves is a bound: nothing was replayed.
    pub findings: Vec<Finding>,
    /// Sums over all connections.
    pub totals: Totals,
    /// What was read.
    pub input: Input,
}

/// What was read of a capture.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Input {
    /// Frames.
    pub packets: u64,
    /// What they were.
    pub counts: Counts,
    /// What they were wrapped in (VLAN, GRE, ...), and how many.
    pub encapsulations: Vec<(&'static str, u64)>,
    /// Earliest and latest frame.
    pub span: Option<(Nanos, Nanos)>,
    /// Its clock ran backwards or jumped: no time across such a step means anything, and no sum with it.
    pub odd_clock: Option<OddClock>,
    /// Packets that the capture program says it lost.
    pub drops: u64,
    /// Events of a kernel that were left out: too many stood between two packets.
    pub events_left_out: u64,
    /// Where and how the capture is damaged. Everything before that was read.
    pub damage: Option<ReadError>,
    /// Reading was stopped before the end.
    pub stopped: bool,
}

impl Default for Explain {
    fn default() -> Explain {
        Explain::new()
    }
}

impl Explain {
    /// All packets, all detail.
    pub fn new() -> Explain {
        Explain { filter: None, detail: Detail::All, stop: None, part: (0, 1), settings: true }
    }

    /// Only packets that match.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Explain {
        self.filter = Some(filter);
        self
    }

    /// Which exchanges are kept with their spans; the others are summed in
    /// [`exchanges_omitted`](Connection::exchanges_omitted).
    #[must_use]
    pub fn detail(mut self, detail: Detail) -> Explain {
        self.detail = detail;
        self
    }

    /// Only part `k` of `n`, from 0 on: each connection is in one part, so that `n` processes or machines
    /// share a capture. Each reads all of it, which is the smaller part of the work. Connections are numbered
    /// so that no two of the parts have the same number; findings are those of the part.
    #[must_use]
    pub fn part(mut self, k: u32, n: u32) -> Explain {
        self.part = (k, n.max(1));
        self
    }

    /// Findings of [`each`](Explain::each) without the settings of their fixes
    /// ([`Fix::how`](tcpwhy_analysis::Fix::how)): to put those into words takes as long as a hundred packets,
    /// which counts where captures are small and many.
    #[must_use]
    pub fn without_settings(mut self) -> Explain {
        self.settings = false;
        self
    }

    /// Reading stops soon after this is set, by another thread or a signal.
    #[must_use]
    pub fn stopped_by(mut self, stop: Arc<AtomicBool>) -> Explain {
        self.stop = Some(stop);
        self
    }

    /// Explains a file; `-` is standard input.
    pub fn file(&self, path: impl AsRef<Path>) -> Result<Explained, ReadError> {
        Ok(self.all(Reader::open(path.as_ref())?))
    }

    /// Explains the bytes of a capture.
    pub fn bytes(&self, bytes: impl Into<Vec<u8>>) -> Result<Explained, ReadError> {
        self.reader(std::io::Cursor::new(bytes.into()))
    }

    /// Explains what a reader gives.
    pub fn reader(&self, input: impl Read + Send + 'static) -> Result<Explained, ReadError> {
        Ok(self.all(Reader::new(Box::new(input))?))
    }

    /// Explains a capture whose header was read.
    pub fn all(&self, reader: Reader) -> Explained {
        let mut analyzer = Analyzer::new(self.config()).never_narrowed();
        let input = self.read(reader, &mut analyzer, &mut |_| ControlFlow::Continue(()));
        let mut analysis: Analysis = analyzer.finish();
        replay::predict(&mut analysis);
        let Analysis { connections, mut findings, totals, .. } = analysis;
        let mut connections: Vec<Connection> = connections.into_iter().map(|c| *c).collect();
        connections.iter_mut().for_each(|c| c.id = self.number(c.id));
        self.renumber(&mut findings);
        Explained { connections, findings, totals, input }
    }

    /// Gives connections to `each` as they end, until that breaks off: the remaining ones are then not given out, and
    /// [`stopped`](Input::stopped) is set.
    pub fn each(&self, reader: Reader, mut each: impl FnMut(&Connection) -> ControlFlow<()>) -> Ended {
        let mut analyzer = Analyzer::streaming(self.config());
        let mut give = |analyzer: &mut Analyzer| {
            analyzer.ended().try_for_each(|mut connection| {
                connection.id = self.number(connection.id);
                each(&connection)
            })
        };
        let mut input = self.read(reader, &mut analyzer, &mut give);
        if !input.stopped {
            analyzer.end_all();
            input.stopped = give(&mut analyzer).is_break();
        }
        let (mut findings, totals) = analyzer.finish_stream_with(self.settings);
        self.renumber(&mut findings);
        Ended { findings, totals, input }
    }

    /// The number of a connection among those of all parts.
    fn number(&self, id: u32) -> u32 {
        let (k, n) = self.part;
        id.saturating_sub(1).saturating_mul(n).saturating_add(k % n + 1)
    }

    fn renumber(&self, findings: &mut [Finding]) {
        for finding in findings {
            let example = Some(&mut finding.example.connection).filter(|id| **id > 0);
            finding.connections.iter_mut().chain(example).for_each(|id| *id = self.number(*id));
        }
    }

    /// The part that is asked for.
    fn wanted(&self) -> Part {
        let (k, n) = self.part;
        Part::new(k as usize, n as usize)
    }

    fn config(&self) -> Config {
        Config { detail: self.detail }
    }

    /// Gives the capture to the analyzer, some at a time; then it is the turn of `after`.
    fn read(&self, reader: Reader, analyzer: &mut Analyzer, after: &mut After<'_>) -> Input {
        let (part, filter, stop) = (self.wanted(), self.filter.as_ref(), self.stop.as_deref());
        let (read, damage) = given::read(reader, Wanted { part, filter, stop }, analyzer, after);
        Input {
            packets: read.packets,
            counts: read.counts,
            encapsulations: read.encapsulations,
            span: read.span,
            odd_clock: read.odd_clocks.first().copied(),
            drops: read.drops,
            events_left_out: read.events_left_out,
            damage,
            stopped: read.interrupted,
        }
    }
}
