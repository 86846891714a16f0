//! Reading, dissecting and analysis in turns in one thread; or the analysis, where it waits for what takes
//! its connections, in another one: batches of segments go across and their buffers come back.

use super::read::read_all;
use super::reading::Sink;
use super::said::Said;
use super::{Capture, Captures, Failed, Progress, Read, Take};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use tcpwhy_analysis::Analyzer;
use tcpwhy_base::Segment;

/// Segments in a batch, and what was said beside them at the most: enough that handing over costs nothing,
/// few enough to stay in the cache.
pub(super) const BATCH: usize = 1024;
/// Batches on their way at once.
const IN_FLIGHT: usize = 8;
/// Segments that one thread reads before it analyses them: several groups whose connections are fetched while
/// others are worked on, and still in the second cache.
const TURN: usize = 256;

/// Reads everything into one eater, in this thread, and gives it back when there is no more.
pub(super) fn in_turns<C: Capture, E: Eater>(
    captures: &Captures<'_, C>,
    eater: E,
    progress: &mut Progress<'_>,
) -> (E, Read) {
    let mut turns = Turns::new(eater);
    let read = read_all(captures, &mut turns, progress);
    (turns.end(), read)
}

/// Reading in this thread, and the eater in another one.
pub(super) fn side_by_side<C: Capture, E: Eater>(
    captures: &Captures<'_, C>,
    eater: E,
    progress: &mut Progress<'_>,
) -> Result<(E, Read), Failed> {
    thread::scope(|scope| {
        let (send, receive) = sync_channel(IN_FLIGHT);
        let (give_back, recycled) = channel();
        let worker = scope.spawn(move || eat_all(eater, &receive, &give_back));
        let mut sink = Batches { batch: Batch::new(), send, recycled, made: 1, eager: E::EAGER };
        let read = read_all(captures, &mut sink, progress);
        sink.hand_over();
        drop(sink);
        let eater = worker.join().map_err(|_| Failed::Analysis)?;
        Ok((eater, read))
    })
}

/// What was said, and how many segments of its batch came before.
pub(super) type Heard = (usize, Said);

/// Gives an analyzer both in their order.
fn observe_all(analyzer: &mut Analyzer, segments: &[Segment], heard: &[Heard]) {
    let mut rest = segments;
    for (n, (before, said)) in heard.iter().enumerate() {
        let since = before - n.checked_sub(1).and_then(|n| heard.get(n)).map_or(0, |last| last.0);
        let (first, after) = rest.split_at(since.min(rest.len()));
        analyzer.push_all(first);
        analyzer.observe(said.observation());
        rest = after;
    }
    analyzer.push_all(rest);
}

/// What takes segments in.
pub(super) trait Eater: Send {
    /// It wants segments as soon as there are any.
    const EAGER: bool;
    /// Takes them, and what others said, each with how many of these segments came before; `starving` if
    /// there is no more for now.
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

/// Analyses segments, and gives away the connections that end.
#[derive(Debug)]
pub(super) struct Ending<T> {
    analyzer: Analyzer,
    take: T,
}

impl<T: Take> Ending<T> {
    pub(super) fn new(analyzer: Analyzer, take: T) -> Ending<T> {
        Ending { analyzer, take }
    }

    pub(super) fn parts(self) -> (Analyzer, T) {
        (self.analyzer, self.take)
    }
}

impl<T: Take> Eater for Ending<T> {
    const EAGER: bool = true;

    fn eat(&mut self, segments: &[Segment], heard: &[Heard], starving: bool) {
        observe_all(&mut self.analyzer, segments, heard);
        self.take.take(&mut self.analyzer.ended());
        if starving {
            self.take.pause();
        }
    }

    fn end(&mut self) {
        self.analyzer.end_all();
        self.take.take(&mut self.analyzer.ended());
        self.take.pause();
    }
}

/// Reading and analysis in one thread.
pub(super) struct Turns<E> {
    segments: Box<[Segment; TURN]>,
    used: usize,
    heard: Vec<Heard>,
    eater: E,
}

impl<E> Turns<E> {
    pub(super) fn new(eater: E) -> Turns<E> {
        Turns { segments: Box::new([Segment::EMPTY; TURN]), used: 0, heard: Vec::new(), eater }
    }
}

impl<E: Eater> Turns<E> {
    /// Gives it what there is.
    fn turn(&mut self, starving: bool) {
        self.eater.eat(&self.segments[..self.used], &self.heard, starving);
        self.used = 0;
        self.heard.clear();
    }

    /// Gives it what is left, and back.
    pub(super) fn end(mut self) -> E {
        self.hand_over();
        self.eater.end();
        self.eater
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
    fn hear(&mut self, said: Said) {
        self.heard.push((self.used, said));
        // There may be no segments for as long as there are packets.
        if self.heard.len() >= BATCH {
            self.turn(false);
        }
    }
    fn eat(&mut self, segments: &[Segment]) {
        if self.used > 0 || !self.heard.is_empty() {
            self.turn(false);
        }
        // As many as are taken at once elsewhere.
        segments.chunks(TURN).for_each(|turn| self.eater.eat(turn, &[], false));
    }
    fn is_eager(&self) -> bool {
        E::EAGER
    }
    fn hand_over(&mut self) {
        self.turn(true);
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

/// Collects batches for the other thread.
struct Batches {
    batch: Batch,
    send: SyncSender<Batch>,
    recycled: Receiver<Batch>,
    made: usize,
    eager: bool,
}

impl Batches {
    #[inline(never)]
    fn send(&mut self) {
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
        &mut self.batch.segments[self.batch.used]
    }
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Dissector::dissect")]
    fn keep(&mut self) {
        self.batch.used += 1;
        if self.batch.used == BATCH {
            self.send();
        }
    }
    fn hear(&mut self, said: Said) {
        self.batch.heard.push((self.batch.used, said));
        if self.batch.heard.len() >= BATCH {
            self.send();
        }
    }
    fn is_eager(&self) -> bool {
        self.eager
    }
    fn hand_over(&mut self) {
        if self.batch.used > 0 || !self.batch.heard.is_empty() {
            self.send();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::{Nanos, Seq, TooBig};

    /// How much came, and the most of it at once.
    #[derive(Default)]
    struct Counts {
        heard: usize,
        most: usize,
    }

    impl Eater for Counts {
        const EAGER: bool = false;

        fn eat(&mut self, _: &[Segment], heard: &[Heard], _: bool) {
            self.heard += heard.len();
            self.most = self.most.max(heard.len());
        }

        fn end(&mut self) {}
    }

    /// Where routers speak and there is no TCP, nothing piles up.
    #[test]
    fn what_is_said_does_not_wait_for_segments() {
        let Segment { src, dst, link, .. } = Segment::EMPTY;
        let told = TooBig { time: Nanos(1), frame: 1, src, dst, link, seq: Seq(0), mtu: 1_400 };
        let said = Said::TooBig(told);
        let mut turns = Turns::new(Counts::default());
        (0..5 * BATCH + 7).for_each(|_| turns.hear(said));
        let Counts { heard, most } = turns.end();
        assert_eq!((heard, most), (5 * BATCH + 7, BATCH));
    }
}
