//! Reading and dissecting in one thread, the analysis in others; batches of segments go across and their
//! buffers come back. With one core both take turns in one thread.

use crate::input::Input;
use crate::progress::Progress;
use crate::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Window};
use tcpwhy_base::{Nanos, Observation, Segment, SocketEvent};
use tcpwhy_capture::{Counts, Dissector, Filter, Verdict};

/// Segments in a batch: enough that handing over costs nothing, few enough to stay in the cache.
const BATCH: usize = 1024;
/// Batches on their way at once.
const IN_FLIGHT: usize = 8;
/// Segments that one thread reads before it analyses them: the state of their connections is fetched together, and they
/// are still in the first cache.
const TURN: usize = 64;
/// Frames between looks at the clock.
const LOOK: u64 = 4096;
/// Captures on several queues mix packets of the last milliseconds; a second back is a clock that was set.
const STEP: Nanos = Nanos::secs(1);
/// A capture that goes on in another file hands the last packets of several queues to either of the two.
const ROTATED: Nanos = Nanos::millis(1);

/// What to read.
pub(crate) struct Settings<'a> {
    /// In the order in which they are read.
    pub(crate) inputs: &'a [Input],
    /// What alone is accounted for; everything is read and followed.
    pub(crate) window: Option<Window>,
    /// Packets wanted.
    pub(crate) filter: Option<&'a Filter>,
    /// For the analysis.
    pub(crate) config: Config,
    /// Set when the user asked to stop.
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// Read on while the inputs grow.
    pub(crate) follow: bool,
    /// To be told what lines need to know that are written while reading goes on.
    pub(crate) shared: Option<&'a Shared>,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Frames in the inputs before each.
    pub(crate) frames_before: Vec<u64>,
    /// Frames.
    pub(crate) packets: u64,
    /// What the dissector made of them.
    pub(crate) counts: Counts,
    /// Packets of which fragments are missing.
    pub(crate) incomplete: u64,
    /// What packets were wrapped in.
    pub(crate) encapsulations: Vec<(&'static str, u64)>,
    /// Packets that the capture program says it lost.
    pub(crate) drops: u64,
    /// Earliest and latest frame.
    pub(crate) span: Option<(Nanos, Nanos)>,
    /// Sentences about inputs that could not be opened.
    pub(crate) unreadable: Vec<String>,
    /// Sentences about inputs that ended in damage.
    pub(crate) damaged: Vec<String>,
    /// Inputs that were opened.
    pub(crate) opened: usize,
    /// Frames with impossible time stamps.
    pub(crate) bad_times: u64,
    /// Frames stamped more than [`STEP`] before an earlier one.
    pub(crate) steps: u64,
    /// Inputs whose time overlaps that of an earlier one.
    pub(crate) overlapping: u64,
    /// The user stopped it.
    pub(crate) interrupted: bool,
}

/// More analyzers than this wait for the reader.
const MAX_SHARDS: usize = 8;

/// Reads everything and analyses it.
pub(crate) fn run(settings: &Settings<'_>, progress: &mut Progress) -> anyhow::Result<(Analysis, Read)> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        let mut turns = Turns::new(Analyzer::new(settings.config).within(settings.window));
        let read = read_all(settings, &mut turns, progress);
        turns.hand_over();
        return Ok((turns.eater.finish(), read));
    }
    // Reading takes a fraction of the time that the analysis takes, so there is an analyzer for every core.
    let eaters =
        (0..cores.min(MAX_SHARDS)).map(|_| Analyzer::new(settings.config).within(settings.window)).collect();
    let (read, analyzers) = side_by_side(settings, eaters, progress)?;
    Ok((Analyzer::finish_all(analyzers), read))
}

/// Reads everything into one eater, and gives it back when there is no more.
pub(crate) fn run_into<E: Eater>(
    settings: &Settings<'_>,
    eater: E,
    progress: &mut Progress,
) -> anyhow::Result<(E, Read)> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        let mut turns = Turns::new(eater);
        let read = read_all(settings, &mut turns, progress);
        turns.hand_over();
        turns.eater.end();
        return Ok((turns.eater, read));
    }
    let (read, mut eaters) = side_by_side(settings, vec![eater], progress)?;
    let eater = eaters.pop().ok_or_else(|| anyhow::anyhow!("the analysis is lost"))?;
    Ok((eater, read))
}

/// Reading in this thread, and each eater in one of its own.
fn side_by_side<E: Eater>(
    settings: &Settings<'_>,
    eaters: Vec<E>,
    progress: &mut Progress,
) -> anyhow::Result<(Read, Vec<E>)> {
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(eaters.len());
        let mut sink = Batches { shards: Vec::with_capacity(eaters.len()), last: 0, eager: E::EAGER };
        for eater in eaters {
            let (send, receive) = sync_channel(IN_FLIGHT);
            let (give_back, recycled) = channel();
            workers.push(scope.spawn(move || eat_all(eater, &receive, &give_back)));
            sink.shards.push(Shard { batch: Batch::new(), send, recycled, made: 1 });
        }
        let read = read_all(settings, &mut sink, progress);
        sink.hand_over();
        drop(sink);
        let mut done = Vec::with_capacity(workers.len());
        for worker in workers {
            done.push(worker.join().map_err(|_| anyhow::anyhow!("the analysis failed: please report this"))?);
        }
        Ok((read, done))
    })
}

/// What a kernel said, and how many segments of its batch came before.
pub(crate) type Heard = (usize, SocketEvent);

/// Gives an analyzer both in their order.
pub(crate) fn observe_all(analyzer: &mut Analyzer, segments: &[Segment], heard: &[Heard]) {
    let mut rest = segments;
    for (n, (before, event)) in heard.iter().enumerate() {
        let since = before - n.checked_sub(1).and_then(|n| heard.get(n)).map_or(0, |last| last.0);
        let (first, after) = rest.split_at(since.min(rest.len()));
        analyzer.push_all(first);
        analyzer.observe(Observation::Socket(event));
        rest = after;
    }
    analyzer.push_all(rest);
}

/// What takes segments in.
pub(crate) trait Eater: Send {
    /// It wants segments as soon as there are any.
    const EAGER: bool;
    /// Takes them, and what kernels said, each with how many of these segments came before; `starving` if there is no more for
    /// now.
    fn eat(&mut self, segments: &[Segment], heard: &[Heard], starving: bool);
    /// There will be no more.
    fn end(&mut self);
}

impl Eater for Analyzer {
    const EAGER: bool = false;

    fn eat(&mut self, segments: &[Segment], heard: &[Heard], _: bool) {
        observe_all(self, segments, heard);
    }

    fn end(&mut self) {
        self.end_live();
    }
}

/// Where segments go: they are written in place, then kept or not.
trait Sink {
    /// Where the next segment is to be written.
    fn slot(&mut self) -> &mut Segment;
    /// What was written there counts.
    fn keep(&mut self);
    /// Takes what a kernel said after the segments kept so far.
    fn hear(&mut self, event: SocketEvent);
    /// It wants what there is before the reader waits for more.
    fn is_eager(&self) -> bool;
    /// Passes on what there is.
    fn hand_over(&mut self);
}

/// Everything in one thread.
struct Turns<E> {
    segments: Box<[Segment; TURN]>,
    used: usize,
    heard: Vec<Heard>,
    eater: E,
}

impl<E> Turns<E> {
    fn new(eater: E) -> Turns<E> {
        Turns { segments: Box::new([Segment::EMPTY; TURN]), used: 0, heard: Vec::new(), eater }
    }
}

impl<E: Eater> Sink for Turns<E> {
    #[inline]
    fn slot(&mut self) -> &mut Segment {
        &mut self.segments[self.used % TURN]
    }
    #[inline]
    fn keep(&mut self) {
        self.used += 1;
        if self.used == TURN {
            self.eater.eat(&self.segments[..], &self.heard, false);
            self.used = 0;
            self.heard.clear();
        }
    }
    fn hear(&mut self, event: SocketEvent) {
        self.heard.push((self.used, event));
    }
    fn is_eager(&self) -> bool {
        E::EAGER
    }
    fn hand_over(&mut self) {
        self.eater.eat(&self.segments[..self.used], &self.heard, true);
        self.used = 0;
        self.heard.clear();
    }
}

/// Segments on their way from one thread to the other.
struct Batch {
    segments: Box<[Segment]>,
    used: usize,
    heard: Vec<Heard>,
}

impl Batch {
    fn new() -> Batch {
        Batch { segments: vec![Segment::EMPTY; BATCH].into(), used: 0, heard: Vec::new() }
    }
}

/// Deals the segments out to the analyzers.
struct Batches {
    shards: Vec<Shard>,
    /// The one that got the last: mostly the next goes there too, and is written in place.
    last: usize,
    eager: bool,
}

/// Collects batches for one analyzer.
struct Shard {
    batch: Batch,
    send: SyncSender<Batch>,
    recycled: Receiver<Batch>,
    made: usize,
}

impl Shard {
    fn hand_over(&mut self) {
        let empty = if self.made < IN_FLIGHT + 2 {
            self.made += 1;
            Batch::new()
        } else {
            // Only a dead analysis gives nothing back; its death is reported when it is joined.
            self.recycled.recv().unwrap_or_else(|_| Batch::new())
        };
        let full = std::mem::replace(&mut self.batch, empty);
        let _ = self.send.send(full);
    }
}

impl Sink for Batches {
    #[inline]
    fn slot(&mut self) -> &mut Segment {
        let batch = &mut self.shards[self.last].batch;
        &mut batch.segments[batch.used]
    }
    #[inline]
    fn keep(&mut self) {
        let (n, last) = (self.shards.len(), self.last);
        let written = self.slot();
        let to = Analyzer::share(written, n);
        if to != last {
            let segment = *written;
            self.last = to;
            *self.slot() = segment;
        }
        let shard = &mut self.shards[self.last];
        shard.batch.used += 1;
        if shard.batch.used == BATCH {
            shard.hand_over();
        }
    }
    fn hear(&mut self, event: SocketEvent) {
        let either = Segment { src: event.local, dst: event.remote, ..Segment::EMPTY };
        let to = Analyzer::share(&either, self.shards.len());
        if let Some(shard) = self.shards.get_mut(to) {
            shard.batch.heard.push((shard.batch.used, event));
            if shard.batch.heard.len() >= BATCH {
                shard.hand_over();
            }
        }
    }
    fn is_eager(&self) -> bool {
        self.eager
    }
    fn hand_over(&mut self) {
        let has = |s: &&mut Shard| s.batch.used > 0 || !s.batch.heard.is_empty();
        self.shards.iter_mut().filter(has).for_each(Shard::hand_over);
    }
}

fn eat_all<E: Eater>(
    mut eater: E,
    receive: &Receiver<Batch>,
    give_back: &std::sync::mpsc::Sender<Batch>,
) -> E {
    let mut waiting = receive.recv().ok();
    while let Some(mut batch) = waiting {
        let next = receive.try_recv().ok();
        eater.eat(&batch.segments[..batch.used], &batch.heard, next.is_none());
        batch.used = 0;
        batch.heard.clear();
        // The reader has ended: nobody needs the buffer.
        let _ = give_back.send(batch);
        waiting = next.or_else(|| receive.recv().ok());
    }
    eater.end();
    eater
}

fn read_all(settings: &Settings<'_>, sink: &mut impl Sink, progress: &mut Progress) -> Read {
    let mut read = Read::default();
    let mut dissector = Dissector::new();
    for (index, input) in settings.inputs.iter().enumerate() {
        if settings.stop.load(Ordering::Relaxed) {
            read.interrupted = true;
            break;
        }
        read.frames_before.push(read.packets);
        if let Some(shared) = settings.shared {
            shared.begin_input(read.packets);
        }
        read_one(settings, index, input, &mut dissector, sink, progress, &mut read);
    }
    read.counts = dissector.counts().clone();
    read.incomplete = dissector.incomplete();
    read.encapsulations = dissector.encapsulations().collect();
    read
}

fn read_one(
    settings: &Settings<'_>,
    index: usize,
    input: &Input,
    dissector: &mut Dissector,
    sink: &mut impl Sink,
    progress: &mut Progress,
    read: &mut Read,
) {
    let opened = if settings.follow { input.open_following(settings.stop) } else { input.open() };
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(problem) => return read.unreadable.push(problem),
    };
    read.opened += 1;
    let before = read.packets;
    let file = u16::try_from(index).unwrap_or(u16::MAX);
    let size = input.size();
    let mut begun = false;
    let mut salt = 0;
    let mut heard = Vec::new();
    loop {
        if read.packets.is_multiple_of(LOOK) {
            progress.tick(read.packets, size.map(|size| (reader.bytes_read(), size)));
        }
        if sink.is_eager() && !reader.is_ready() {
            if dissector.encapsulations().next().is_some() {
                settings.shared.inspect(|shared| shared.set_wrapped());
            }
            sink.hand_over();
        }
        let frame = match reader.next_hearing(&mut heard) {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(e) => {
                read.damaged.push(input.said(&e));
                break;
            }
        };
        if settings.stop.load(Ordering::Relaxed) {
            read.interrupted = true;
            break;
        }
        hear_all(settings, sink, &mut heard);
        read.packets += 1;
        read.bad_times += u64::from(frame.bad_time);
        if !begun {
            begun = true;
            if read.span.is_some_and(|span| overlaps(frame.time, span)) {
                read.overlapping += 1;
                salt = (u32::from(file) + 1).wrapping_mul(0x9E37_79B9);
            }
        }
        let span = read.span.get_or_insert_with(|| {
            settings.shared.inspect(|shared| shared.begin(frame.time));
            (frame.time, frame.time)
        });
        read.steps += u64::from(frame.time + STEP < span.1);
        *span = (span.0.min(frame.time), span.1.max(frame.time));
        let slot = sink.slot();
        if dissector.dissect(&frame, file, slot) == Verdict::Tcp
            && settings.filter.is_none_or(|f| f.matches(slot))
        {
            slot.link ^= salt;
            slot.frame += before;
            sink.keep();
        }
    }
    hear_all(settings, sink, &mut heard);
    read.drops += reader.capture_drops().unwrap_or(0);
}

/// Passes on what kernels said of connections that are wanted: a filter asks for ends alone.
#[inline]
fn hear_all(settings: &Settings<'_>, sink: &mut impl Sink, heard: &mut Vec<SocketEvent>) {
    if heard.is_empty() {
        return;
    }
    for event in heard.drain(..) {
        let [out, back] = [(event.local, event.remote), (event.remote, event.local)]
            .map(|(src, dst)| Segment { src, dst, ..Segment::EMPTY });
        if settings.filter.is_none_or(|f| f.matches(&out) || f.matches(&back)) {
            sink.hear(event);
        }
    }
}

/// An input that begins at `first` is another capture than those before it, and no continuation of the last.
fn overlaps(first: Nanos, (start, end): (Nanos, Nanos)) -> bool {
    first <= start && first < end || first + ROTATED < end
}
