//! A capture to its answer, in the thread of the caller.

use crate::clock::{Clock, OddClock};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_analysis::{Analysis, Analyzer, Config, Connection, Detail, Finding, Totals, replay};
use tcpwhy_base::{Endpoint, Nanos, Observation, Part, Segment, SocketEvent};
use tcpwhy_capture::{Counts, Dissector, Filter, ReadError, Reader, Verdict};

/// Segments that are read before they are analysed: the state of their connections is fetched together, and they are
/// still in the first cache.
const TURN: usize = 64;

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

    /// Only part `k` of `n`, from 0 on: each connection is in one part, so that `n` processes or machines share a capture. Each
    /// reads all of it, which is the smaller part of the work. Connections are numbered so that no two of the parts have the
    /// same number; findings are those of the part.
    #[must_use]
    pub fn part(mut self, k: u32, n: u32) -> Explain {
        self.part = (k, n.max(1));
        self
    }

    /// Findings of [`each`](Explain::each) without the settings of their fixes ([`Fix::how`](tcpwhy_analysis::Fix::how)): to put those into
    /// words takes as long as a hundred packets, which counts where captures are small and many.
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
        let input = self.read(reader, &mut analyzer, |_| ControlFlow::Continue(()));
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

    fn stops(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Relaxed))
    }

    /// Gives segments to the analyzer, some at a time, and what kernels said of connections in its place; then it is the turn of `after`.
    fn read(
        &self,
        mut reader: Reader,
        analyzer: &mut Analyzer,
        mut after: impl FnMut(&mut Analyzer) -> ControlFlow<()>,
    ) -> Input {
        let mut input = Input::default();
        let (mut dissector, mut clock) = (Dissector::new(), Clock::default());
        let mut segments = Box::new([Segment::EMPTY; TURN]);
        let (mut used, mut heard) = (0, Vec::new());
        let part = self.wanted();
        loop {
            // Counted in frames: of what is no TCP, or filtered away, none becomes a segment.
            if input.packets % TURN as u64 == 0 && input.packets > 0 {
                analyzer.push_all(&segments[..used]);
                used = 0;
                if self.stops() || after(analyzer).is_break() {
                    input.stopped = true;
                    break;
                }
            }
            let frame = match reader.next_hearing(&mut heard) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(damage) => {
                    input.damage = Some(damage);
                    break;
                }
            };
            if !heard.is_empty() {
                analyzer.push_all(&segments[..used]);
                used = 0;
                self.hear(&mut heard, analyzer);
            }
            input.packets += 1;
            let (first, last) = input.span.unwrap_or((frame.time, frame.time));
            input.span = Some((first.min(frame.time), last.max(frame.time)));
            clock.stamped(frame.time);
            let slot = &mut segments[used];
            let verdict = dissector.dissect_of(part, &frame, 0, slot);
            let is_tcp = verdict == Some(Verdict::Tcp);
            if verdict == Some(Verdict::NotTcp)
                && let Some(told) = dissector.too_big()
            {
                analyzer.push_all(&segments[..used]);
                used = 0;
                if self.wants(told.src, told.dst) {
                    analyzer.observe(Observation::TooBig(&told));
                }
                continue;
            }
            if is_tcp && self.filter.as_ref().is_none_or(|filter| filter.matches(slot)) {
                used += 1;
            }
        }
        if !input.stopped {
            analyzer.push_all(&segments[..used]);
            self.hear(&mut heard, analyzer);
            input.stopped = after(analyzer).is_break();
        }
        input.odd_clock = clock.odd(0);
        input.counts = dissector.counts().clone();
        input.encapsulations = dissector.encapsulations().collect();
        input.drops = reader.capture_drops().unwrap_or(0);
        input.events_left_out = reader.events_left_out();
        input
    }

    /// A filter asks for ends alone.
    fn hear(&self, heard: &mut Vec<SocketEvent>, analyzer: &mut Analyzer) {
        for event in heard.drain(..) {
            if self.wants(event.local, event.remote) {
                analyzer.observe(Observation::Socket(&event));
            }
        }
    }

    /// The connection between these ends is asked for.
    fn wants(&self, one: Endpoint, other: Endpoint) -> bool {
        let matches = |src, dst| {
            let either = Segment { src, dst, ..Segment::EMPTY };
            self.filter.as_ref().is_none_or(|filter| filter.matches(&either))
        };
        self.wanted().has(&one, &other) && (matches(one, other) || matches(other, one))
    }
}
