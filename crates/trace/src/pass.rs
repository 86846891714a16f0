use crate::Packet;
use crate::tracker::Tracker;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Nanos, Segment};
use tcpwhy_capture::{Dissector, Filter, Frame, Reader, Verdict};

/// Segments that go from one thread to the other at once: 160 KB, which fit into a second cache beside those before.
const BATCH: usize = 1_024;
/// Batches on their way.
const IN_FLIGHT: usize = 4;

/// One frame as the second pass meets it.
#[derive(Debug)]
pub struct Met<'a> {
    /// The bytes.
    pub frame: Frame<'a>,
    /// Number of the frame through all inputs.
    pub number: u64,
    /// What the dissector made of it; only with `packet`.
    pub segment: &'a Segment,
    /// Place in the list of connections and the packet, if it belongs to one that is listed.
    pub packet: Option<(usize, Packet)>,
}

/// A second pass over the inputs of an analysis.
#[derive(Debug)]
pub struct Pass<'a> {
    tracker: Tracker,
    dissector: Dissector,
    segment: Segment,
    filter: Option<&'a Filter>,
}

impl<'a> Pass<'a> {
    /// For these connections; `filter` as in the first pass.
    pub fn new(connections: &[Box<Connection>], filter: Option<&'a Filter>) -> Pass<'a> {
        Pass::of(connections, |_| true, filter)
    }

    /// The same for those at the places that are `wanted`; packets of others may be met as well, or as none. Memory grows with what is
    /// wanted.
    pub fn of(
        connections: &[Box<Connection>],
        wanted: impl Fn(usize) -> bool,
        filter: Option<&'a Filter>,
    ) -> Pass<'a> {
        Pass {
            tracker: Tracker::new(connections, wanted),
            dissector: Dissector::new(),
            segment: Segment::EMPTY,
            filter,
        }
    }

    /// Reads one input and gives each frame to `each`, until it says `false`: then so does this. Inputs come in the order of
    /// the first pass, each behind `frames_before` others. Packets before `from` and after `to` are followed, but met as
    /// none. A damaged end is only an end here: the first pass has reported it.
    pub fn read<E>(
        &mut self,
        reader: &mut Reader,
        frames_before: u64,
        (from, to): (Nanos, Nanos),
        mut each: impl FnMut(&Met<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        while let Ok(Some(frame)) = reader.next() {
            let number = frames_before + frame.number;
            let wanted = self.dissector.dissect(&frame, 0, &mut self.segment) == Verdict::Tcp
                && self.filter.is_none_or(|f| f.matches(&self.segment));
            let packet = if wanted {
                self.segment.frame = number;
                self.tracker.take(&self.segment).filter(|_| (from..=to).contains(&frame.time))
            } else {
                None
            };
            if !each(&Met { frame, number, segment: &self.segment, packet })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for packets alone, in about half of the time: one thread reads and dissects, this one follows. `each` gets the numbers of all
    /// frames of TCP that pass the filter, with the packet if it belongs to a connection and to these times.
    pub fn packets(
        &mut self,
        reader: &mut Reader,
        frames_before: u64,
        (from, to): (Nanos, Nanos),
        mut each: impl FnMut(u64, Option<(usize, Packet)>) -> bool,
    ) -> bool {
        let Pass { tracker, dissector, filter, .. } = self;
        thread::scope(|scope| {
            let (full, batches) = sync_channel(IN_FLIGHT);
            let (empty, recycled) = channel();
            let mut dissected = Dissected { reader, dissector, filter: *filter, frames_before };
            scope.spawn(move || dissected.send_all(&full, &recycled));
            // Leaving drops both channels, which ends the other thread.
            for batch in batches {
                let Batch { segments, used } = &batch;
                for segment in &segments[..*used] {
                    let packet = tracker.take(segment).filter(|_| (from..=to).contains(&segment.time));
                    if !each(segment.frame, packet) {
                        return false;
                    }
                }
                // The reader has ended: nobody needs the room.
                let _ = empty.send(batch);
            }
            true
        })
    }
}

struct Batch {
    segments: Box<[Segment]>,
    used: usize,
}

impl Batch {
    fn new() -> Batch {
        Batch { segments: vec![Segment::EMPTY; BATCH].into(), used: 0 }
    }
}

/// What the thread does that reads.
struct Dissected<'a> {
    reader: &'a mut Reader,
    dissector: &'a mut Dissector,
    filter: Option<&'a Filter>,
    frames_before: u64,
}

impl Dissected<'_> {
    /// Sends all segments, until the input ends or nobody wants more.
    fn send_all(&mut self, full: &SyncSender<Batch>, recycled: &Receiver<Batch>) {
        let mut made = 1;
        let mut batch = Batch::new();
        while self.fill(&mut batch) {
            let next = if made < IN_FLIGHT + 2 {
                made += 1;
                Some(Batch::new())
            } else {
                recycled.recv().ok()
            };
            let Some(next) = next else { return };
            if full.send(std::mem::replace(&mut batch, next)).is_err() {
                return;
            }
        }
        // Nobody wants the rest: then so it is.
        let _ = full.send(batch);
    }

    /// Fills a batch; `false`: the input has ended.
    fn fill(&mut self, batch: &mut Batch) -> bool {
        batch.used = 0;
        while let Some(slot) = batch.segments.get_mut(batch.used) {
            let Ok(Some(frame)) = self.reader.next() else { return false };
            if self.dissector.dissect(&frame, 0, slot) == Verdict::Tcp
                && self.filter.is_none_or(|f| f.matches(slot))
            {
                slot.frame = self.frames_before + frame.number;
                batch.used += 1;
            }
        }
        true
    }
}
