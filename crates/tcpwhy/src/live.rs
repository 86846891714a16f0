//! `--jsonl`: lines are written while the input is still being read, so that memory does not grow with it. To
//! write a line takes as long as to analyse its connection: a thread of its own does it, where there are
//! several cores.

use crate::input::Input;
use crate::output::Output;
use crate::progress::Progress;
use crate::select;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use tcpwhy_base::Nanos;
use tcpwhy_library::Connection;
use tcpwhy_library::captures::{Captures, Meanwhile, Streamed, Take};
use tcpwhy_report::json::{self, Buffer, Context};

/// Bytes that are written at once.
const BLOCK: usize = 64 << 10;
/// Connections that are handed over at once, and how many such batches wait for who writes them: memory stays bounded.
const BATCH: usize = 64;
const IN_FLIGHT: usize = 8;

/// How lines are to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style<'a> {
    /// What the reader knows.
    pub(crate) shared: &'a Meanwhile,
    /// Set when nobody reads the lines any more.
    pub(crate) stop: &'a AtomicBool,
    /// Frames carry the index of their input.
    pub(crate) several: bool,
    /// Ids are tshark's, as long as nothing is wrapped in tags or tunnels.
    pub(crate) streams: bool,
    /// A connection is written so long after it closed, in the time of its packets.
    pub(crate) linger: Nanos,
    /// Exchanges that took no longer are only summed.
    pub(crate) slower_than: Option<Nanos>,
    /// All is to be read, for a verdict, also where nobody reads the lines to their end.
    pub(crate) reads_on: bool,
}

/// Reads everything, and writes the connections as they end; what could not be written is what was taken.
pub(crate) fn run(
    captures: &Captures<'_, Input>,
    out: &mut Output,
    style: Style<'_>,
    progress: &mut Progress,
) -> anyhow::Result<Streamed<io::Result<()>>> {
    let mut lines = Lines { out, style, bytes: Buffer::default(), written: Ok(()) };
    let live = |hand_over| Live { style, hand_over, unwritten: false };
    let streamed = if thread::available_parallelism().map_or(1, usize::from) < 2 {
        let live = live(Box::new(|batch| lines.write(&mut { batch })));
        captures.stream(style.linger, live, &mut progress.told())?.map(drop)
    } else {
        thread::scope(|scope| {
            let (send, receive) = sync_channel::<Batch>(IN_FLIGHT);
            let (give_back, written) = channel();
            let lines = &mut lines;
            let writer = scope.spawn(move || {
                for mut batch in receive {
                    lines.write(&mut batch);
                    // Nobody waits for it any more once all is read.
                    let _ = give_back.send(batch);
                }
            });
            let hand_over = Box::new(move |batch| {
                // Memory goes back where it came from: another thread's takes longer to free, and to get again.
                written.try_iter().for_each(drop::<Batch>);
                // Only a writer that has died takes nothing, which is reported when it is joined.
                let _ = send.send(batch);
            });
            // The writer ends when nobody can hand it anything any more.
            let streamed = captures.stream(style.linger, live(hand_over), &mut progress.told())?.map(drop);
            writer.join().map_err(|_| anyhow::anyhow!("writing failed: please report this"))?;
            Ok::<_, anyhow::Error>(streamed)
        })?
    };
    Ok(streamed.map(|()| lines.written))
}

/// As the analyzer gives them.
type Connections = Vec<Box<Connection>>;

/// Connections on their way to their lines, and what those need to know.
struct Batch {
    connections: Connections,
    start: Nanos,
    frames_before: Vec<u64>,
    streams: bool,
    /// There is no more for now: who waits for lines is to have them.
    flush: bool,
}

/// Hands over the connections that end.
struct Live<'a> {
    style: Style<'a>,
    hand_over: Box<dyn FnMut(Batch) + Send + 'a>,
    /// Something was handed over since it was last said to be all.
    unwritten: bool,
}

impl Live<'_> {
    fn batch(&self, connections: Connections) -> Batch {
        let mut frames_before = self.style.shared.frames_before();
        if self.style.several && frames_before.len() < 2 {
            frames_before.push(u64::MAX);
        }
        Batch {
            connections,
            start: self.style.shared.start().unwrap_or_default(),
            frames_before,
            streams: self.style.streams && !self.style.shared.is_wrapped(),
            flush: false,
        }
    }
}

impl Take for Live<'_> {
    fn take(&mut self, ended: &mut dyn Iterator<Item = Box<Connection>>) {
        loop {
            let connections: Connections = ended.take(BATCH).collect();
            if connections.is_empty() {
                return;
            }
            let batch = self.batch(connections);
            (self.hand_over)(batch);
            self.unwritten = true;
        }
    }

    fn pause(&mut self) {
        if std::mem::take(&mut self.unwritten) {
            let batch = Batch { flush: true, ..self.batch(Vec::new()) };
            (self.hand_over)(batch);
        }
    }
}

/// Writes lines.
struct Lines<'a> {
    out: &'a mut Output,
    style: Style<'a>,
    bytes: Buffer,
    written: io::Result<()>,
}

impl Lines<'_> {
    fn write(&mut self, batch: &mut Batch) {
        if self.written.is_ok() {
            self.written = self.try_write(batch);
        }
        if let Err(e) = &self.written
            && !(self.style.reads_on && e.kind() == io::ErrorKind::BrokenPipe)
        {
            self.style.stop.store(true, Relaxed);
        }
    }

    fn try_write(&mut self, batch: &mut Batch) -> io::Result<()> {
        let cx = Context::live(batch.start, &batch.frames_before, batch.streams);
        for connection in &mut batch.connections {
            if let Some(limit) = self.style.slower_than {
                select::only_slower_than(connection, limit);
            }
            json::connection_line(&mut self.bytes, connection, cx)?;
            if self.bytes.len() >= BLOCK {
                self.out.write_all(self.bytes.as_slice())?;
                self.bytes.clear();
            }
        }
        if batch.flush && !self.bytes.is_empty() {
            self.out.write_all(self.bytes.as_slice())?;
            self.bytes.clear();
            self.out.flush()?;
        }
        Ok(())
    }
}
