use crate::Packet;
use crate::tracker::Tracker;
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Nanos, Segment, SocketEvent};
use tcpwhy_capture::{Dissector, Filter, Frame, Reader, Verdict};

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

    /// For the connections at the places that are `wanted`, `filter` as in the first pass; packets of others
    /// may be met as well, or as none. Memory grows with what is wanted.
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

    /// Reads one input and gives each frame to `each`, until it says `false`: then so does this. Inputs come
    /// in the order of the first pass, each behind `frames_before` others. Packets before `from` and after
    /// `to` are followed, but met as none. A damaged end is only an end here: the first pass has reported it.
    pub fn read<E>(
        &mut self,
        reader: &mut Reader,
        frames_before: u64,
        times: (Nanos, Nanos),
        each: impl FnMut(&Met<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        self.read_hearing(
            reader,
            frames_before,
            times,
            |heard| {
                heard.clear();
                Ok(())
            },
            each,
        )
    }

    /// The same; `hear` takes what kernels said since the frame before, ahead of each frame and at the end.
    pub fn read_hearing<E>(
        &mut self,
        reader: &mut Reader,
        frames_before: u64,
        (from, to): (Nanos, Nanos),
        mut hear: impl FnMut(&mut Vec<SocketEvent>) -> Result<(), E>,
        mut each: impl FnMut(&Met<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let mut heard = Vec::new();
        while let Ok(Some(frame)) = reader.next_hearing(&mut heard) {
            if !heard.is_empty() {
                hear(&mut heard)?;
            }
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
        hear(&mut heard)?;
        Ok(true)
    }
}
