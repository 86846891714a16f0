//! Two captures of the same connections, at both of their ends: read side by side, on one clock.

use super::threads::BATCH;
use super::{Capture, Captures, Failed, Progress, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_analysis::taps::{Sketch, pair};
use tcpwhy_analysis::{Analysis, Analyzer};
use tcpwhy_base::{Nanos, Observation, Segment, SocketEvent, TooBig, Watched};
use tcpwhy_capture::{Dissector, Filter, Reader, Verdict};

pub use tcpwhy_analysis::taps::{Clock, Paired, Pairing, Unpaired};

/// Frames of each capture that are looked at first: captures that share nothing in these are not read twice.
const FIRST: u64 = 1 << 18;

/// Two captures that belong together.
#[derive(Debug)]
pub struct Taps {
    /// Which connections both have seen, and how their clocks go.
    pub pairing: Pairing,
    /// Frames in the first.
    frames: u64,
}

/// Looks whether two inputs are two taps on the same connections; the one beside more of the clients becomes
/// the first. `Err`: why they are not, though both have seen the same connections.
pub fn among<C: Capture>(
    inputs: &mut [C],
    filter: Option<&Filter>,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Taps>, Unpaired> {
    let [first, second] = inputs else { return Ok(None) };
    if first.is_stream() || second.is_stream() {
        return Ok(None);
    }
    let sketch = |input: &C, most| sketch_of(input, filter, stop, most);
    let (Some(a), Some(b)) = (sketch(first, FIRST), sketch(second, FIRST)) else { return Ok(None) };
    let whole = a.1 < FIRST && b.1 < FIRST;
    if let Err(why) = pair(&a.0, &b.0)
        && (whole || why == Unpaired::Strangers)
    {
        return if why == Unpaired::Clocks { Err(why) } else { Ok(None) };
    }
    let (a, b) = if whole {
        (a, b)
    } else {
        let (Some(a), Some(b)) = (sketch(first, u64::MAX), sketch(second, u64::MAX)) else { return Ok(None) };
        (a, b)
    };
    let found = |a: &(Sketch, u64), b: &(Sketch, u64)| match pair(&a.0, &b.0) {
        Ok(pairing) => Ok(Some(Taps { pairing, frames: a.1 })),
        Err(Unpaired::Clocks) => Err(Unpaired::Clocks),
        Err(_) => Ok(None),
    };
    let taps = found(&a, &b)?;
    if let Some(t) = &taps
        && t.pairing.first_is_client() * 2 < t.pairing.connections()
    {
        std::mem::swap(first, second);
        return found(&b, &a);
    }
    Ok(taps)
}

/// The sketch of a capture, and how many frames it is of.
fn sketch_of<C: Capture>(
    input: &C,
    filter: Option<&Filter>,
    stop: &Arc<AtomicBool>,
    most: u64,
) -> Option<(Sketch, u64)> {
    let mut reader = input.open().ok()?;
    let (mut dissector, mut segment, mut sketch) = (Dissector::new(), Segment::EMPTY, Sketch::default());
    let mut frames = 0;
    while frames < most && !stop.load(Relaxed) {
        // Damage is said when the file is read for the answer.
        let Ok(Some(frame)) = reader.next() else { break };
        frames += 1;
        if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp
            && filter.is_none_or(|f| f.matches(&segment))
        {
            sketch.take(&segment);
        }
    }
    Some((sketch, frames))
}

/// One of the two while it is read.
struct Tap<'a, C> {
    input: &'a C,
    reader: Reader,
    dissector: Dissector,
    file: u16,
    /// Frames in the file before it.
    before: u64,
    heard: Vec<SocketEvent>,
    /// When it has something to give.
    due: Option<Nanos>,
    /// A segment, unless that much was said that it is given at once.
    next: Option<Segment>,
    /// What was said before that.
    said: Vec<SocketEvent>,
    too_big: Vec<TooBig>,
}

/// Reads both and analyses them as one.
pub(super) fn explain<C: Capture>(
    captures: &Captures<'_, C>,
    taps: &Taps,
    progress: &mut Progress<'_>,
) -> Result<(Analysis, Read), Failed> {
    let mut read = Read { frames_before: vec![0, taps.frames], ..Read::default() };
    let mut open = Vec::new();
    for (file, input) in captures.inputs.iter().enumerate() {
        let reader = input.open().map_err(Failed::Open)?;
        let before = if file == 0 { 0 } else { taps.frames };
        let (heard, said, too_big) = Default::default();
        let dissector = Dissector::new();
        open.push(Tap {
            input,
            reader,
            dissector,
            file: file as u16,
            before,
            heard,
            due: None,
            next: None,
            said,
            too_big,
        });
    }
    read.opened = open.len();
    let mut analyzer = Analyzer::new(captures.config()).within(captures.window).with_second_tap();
    for tap in &mut open {
        tap.advance(captures, &taps.pairing.clock, &mut read);
    }
    while !captures.stops() {
        progress(read.packets, None);
        let Some(tap) = open.iter_mut().filter(|t| t.due.is_some()).min_by_key(|t| t.due) else { break };
        tap.give(taps, &mut analyzer);
        tap.advance(captures, &taps.pairing.clock, &mut read);
    }
    read.interrupted = captures.stops();
    for tap in &mut open {
        tap.end(taps, &mut analyzer, &mut read);
    }
    Ok((analyzer.finish(), read))
}

impl<C: Capture> Tap<'_, C> {
    /// Reads on to the next segment that is wanted, or until much was said.
    fn advance(&mut self, captures: &Captures<'_, C>, clock: &Clock, read: &mut Read) {
        (self.next, self.due) = (None, None);
        loop {
            let frame = match self.reader.next_hearing(&mut self.heard) {
                Ok(Some(frame)) => frame,
                Ok(None) => return,
                Err(e) => return read.damaged.push(self.input.said(&e)),
            };
            self.said.append(&mut self.heard);
            let time = if self.file > 0 { clock.to_first(frame.time) } else { frame.time };
            read.packets += 1;
            read.bad_times += u64::from(frame.bad_time);
            let span = read.span.get_or_insert((time, time));
            *span = (span.0.min(time), span.1.max(time));
            let mut segment = Segment::EMPTY;
            if self.dissector.dissect(&frame, self.file, &mut segment) == Verdict::Tcp
                && captures.filter.is_none_or(|f| f.matches(&segment))
            {
                segment.frame += self.before;
                segment.time = time;
                (self.next, self.due) = (Some(segment), Some(time));
                return;
            }
            if let Some(mut told) = self.dissector.too_big() {
                (told.frame, told.time) = (told.frame + self.before, time);
                self.too_big.push(told);
            }
            // There may be no segments for as long as there are packets.
            if self.too_big.len() + self.said.len() >= BATCH {
                self.due = Some(time);
                return;
            }
        }
    }

    /// Gives the segment to the analyzer, if it has one, and what was said before it.
    fn give(&mut self, taps: &Taps, analyzer: &mut Analyzer) {
        self.tell(taps, analyzer);
        let Some(mut segment) = self.next.take() else { return };
        match self.is_explained(taps, &mut segment) {
            Some(true) => analyzer.observe(Observation::Segment(&segment)),
            Some(false) => analyzer.observe(Observation::Elsewhere(&segment)),
            None => {
                // Connections that one tap alone has seen stay apart.
                segment.link ^= u32::from(self.file).wrapping_mul(0x9E37_79B9);
                analyzer.observe(Observation::Segment(&segment));
            }
        }
    }

    /// Whether this tap is the one beside the client of a connection that both have seen.
    fn is_explained(&self, taps: &Taps, segment: &mut Segment) -> Option<bool> {
        let first =
            if self.file == 0 { taps.pairing.of_first(segment)? } else { taps.pairing.of_second(segment)? };
        // Tags and tunnels are of one side of the path.
        segment.link = 0;
        Some(first == (self.file == 0))
    }

    fn tell(&mut self, taps: &Taps, analyzer: &mut Analyzer) {
        for mut told in std::mem::take(&mut self.too_big) {
            let mut ends = Segment { src: told.src, dst: told.dst, link: told.link, ..Segment::EMPTY };
            if self.is_explained(taps, &mut ends).is_none() {
                ends.link ^= u32::from(self.file).wrapping_mul(0x9E37_79B9);
            }
            (told.src, told.dst, told.link) = (ends.src, ends.dst, ends.link);
            analyzer.observe(Observation::TooBig(&told));
        }
        for mut event in std::mem::take(&mut self.said) {
            let mut ends = Segment { src: event.local, dst: event.remote, ..Segment::EMPTY };
            let here = self.is_explained(taps, &mut ends);
            (event.local, event.remote) = (ends.src, ends.dst);
            if self.file > 0 {
                event.time = taps.pairing.clock.to_first(event.time);
            }
            match here {
                Some(false) => analyzer.observe(Observation::SocketElsewhere(&event)),
                _ => analyzer.observe(Observation::Socket(&event)),
            }
        }
    }

    fn end(&mut self, taps: &Taps, analyzer: &mut Analyzer, read: &mut Read) {
        self.said.append(&mut self.heard);
        self.tell(taps, analyzer);
        let last = self.reader.last();
        let to = if self.file > 0 { taps.pairing.clock.to_first(last) } else { last };
        // Each of its connections began in the capture that explains it.
        let watched = Watched { file: self.file, apart: true, from: Nanos(i64::MIN), to };
        analyzer.observe(Observation::Watched(&watched));
        read.counts.add(self.dissector.counts());
        read.incomplete += self.dissector.incomplete();
        for (name, n) in self.dissector.encapsulations() {
            match read.encapsulations.iter_mut().find(|e| e.0 == name) {
                Some(known) => known.1 += n,
                None => read.encapsulations.push((name, n)),
            }
        }
        read.drops += self.reader.capture_drops().unwrap_or(0);
        read.events_left_out += self.reader.events_left_out();
    }
}

#[cfg(test)]
mod tests {
    use super::super::bytes::Bytes;
    use super::*;
    use tcpwhy_base::{Endpoint, SocketChange};
    use tcpwhy_capture::{Frame, Writer};

    /// Kernels that speak where there is no TCP: what they say does not pile up, and its turn comes by its time.
    #[test]
    fn what_is_said_does_not_wait_for_segments() {
        let mut writer = Writer::pcapng(Vec::new()).expect("memory has room");
        let end = |port| Endpoint { ip: [10, 0, 0, 1].into(), port };
        let all = 2 * BATCH + 7;
        for n in 0..all as i64 {
            let (time, change) = (Nanos(n), SocketChange::NoDelay(true));
            let said = SocketEvent { time, local: end(1), remote: end(2), change };
            writer.event(&said).expect("memory has room");
            writer.write(&Frame::new(time, 1, b"no TCP"), None).expect("memory has room");
        }
        let input = Bytes(writer.finish().expect("memory has room"));
        let reader = input.open().expect("a capture");
        let inputs = [Bytes(Vec::new())];
        let captures = Captures::new(&inputs);
        let (dissector, due, next) = (Dissector::new(), None, None);
        let (heard, said, too_big) = Default::default();
        let mut tap =
            Tap { input: &input, reader, dissector, file: 0, before: 0, heard, due, next, said, too_big };
        let (offset, since, residual) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        let clock = Clock { offset, drift_ppb: 0, since, residual, packets: 0 };
        let mut read = Read::default();
        for (much, due) in [(BATCH, Some(BATCH)), (BATCH, Some(2 * BATCH)), (7, None)] {
            tap.advance(&captures, &clock, &mut read);
            assert_eq!((tap.said.len(), tap.due), (much, due.map(|n| Nanos(n as i64 - 1))));
            assert!(tap.next.is_none());
            tap.said.clear();
        }
        assert_eq!(read.packets, all as u64);
    }
}
