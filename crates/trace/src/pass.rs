use crate::Packet;
use crate::tracker::Tracker;
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Nanos, Segment};
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
    /// Earliest frame so far.
    start: Option<Nanos>,
}

impl<'a> Pass<'a> {
    /// For these connections; `filter` as in the first pass.
    pub fn new(connections: &[Connection], filter: Option<&'a Filter>) -> Pass<'a> {
        Pass {
            tracker: Tracker::new(connections),
            dissector: Dissector::new(),
            segment: Segment::EMPTY,
            filter,
            start: None,
        }
    }

    /// Reads one input and gives each frame to `each`, until it says `false`: then so does this. Inputs come in the order of
    /// the first pass, each behind `frames_before` others. `bounds` tells the earliest and the latest time wanted, of a
    /// capture that starts at the moment it is given. A damaged end is only an end here: the first pass has reported it.
    pub fn read<E>(
        &mut self,
        reader: &mut Reader,
        frames_before: u64,
        bounds: impl FnOnce(Nanos) -> (Nanos, Nanos),
        mut each: impl FnMut(&Met<'_>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let mut bounds = Some(bounds);
        let (mut from, mut to) = (Nanos(i64::MIN), Nanos::MAX);
        while let Ok(Some(frame)) = reader.next() {
            let start = self.start.map_or(frame.time, |s| s.min(frame.time));
            self.start = Some(start);
            if let Some(bounds) = bounds.take() {
                (from, to) = bounds(start);
            }
            let number = frames_before + frame.number;
            let wanted = frame.time >= from
                && frame.time <= to
                && self.dissector.dissect(&frame, 0, &mut self.segment) == Verdict::Tcp
                && self.filter.is_none_or(|f| f.matches(&self.segment));
            let packet = if wanted {
                self.segment.frame = number;
                self.tracker.take(&self.segment)
            } else {
                None
            };
            if !each(&Met { frame, number, segment: &self.segment, packet })? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
