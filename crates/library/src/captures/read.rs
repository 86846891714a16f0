//! Captures to segments, in their order, into whatever takes them.

use super::threads::Said;
use super::{Capture, Captures, Progress, Read};
use crate::clock::Clock;
use std::sync::Arc;
use tcpwhy_base::{Nanos, Segment, SocketEvent};
use tcpwhy_capture::{Dissector, Verdict};

/// Frames between looks at the clock.
const LOOK: u64 = 4096;
/// A capture that goes on in another file hands the last packets of several queues to either of the two.
const ROTATED: Nanos = Nanos::millis(1);

/// Where segments go: they are written in place, then kept or not.
pub(super) trait Sink {
    /// Where the next segment is to be written.
    fn slot(&mut self) -> &mut Segment;
    /// What was written there counts.
    fn keep(&mut self);
    /// Takes what others said after the segments kept so far.
    fn hear(&mut self, said: Said);
    /// It wants what there is before the reader waits for more.
    fn is_eager(&self) -> bool;
    /// Passes on what there is.
    fn hand_over(&mut self);
}

pub(super) fn read_all<C: Capture>(
    captures: &Captures<'_, C>,
    sink: &mut impl Sink,
    progress: &mut Progress<'_>,
) -> Read {
    let mut read = Read::default();
    let mut dissector = Dissector::new();
    for (index, input) in captures.inputs.iter().enumerate() {
        if captures.stops() {
            read.interrupted = true;
            break;
        }
        read.frames_before.push(read.packets);
        if let Some(meanwhile) = captures.meanwhile {
            meanwhile.begin_input(read.packets);
        }
        read_one(captures, index, input, &mut dissector, sink, progress, &mut read);
    }
    read.counts = dissector.counts().clone();
    read.incomplete = dissector.incomplete();
    read.encapsulations = dissector.encapsulations().collect();
    read
}

fn read_one<C: Capture>(
    captures: &Captures<'_, C>,
    index: usize,
    input: &C,
    dissector: &mut Dissector,
    sink: &mut impl Sink,
    progress: &mut Progress<'_>,
    read: &mut Read,
) {
    let opened = match captures.stop {
        Some(stop) if captures.follow => input.open_following(stop),
        None if captures.follow => input.open_following(&Arc::default()),
        _ => input.open(),
    };
    let mut reader = match opened {
        Ok(reader) => reader,
        // Who interrupts while nothing has come yet has not damaged it.
        Err(_) if captures.stops() => return read.interrupted = true,
        Err(problem) => return read.unreadable.push(problem),
    };
    read.opened += 1;
    let before = read.packets;
    let file = u16::try_from(index).unwrap_or(u16::MAX);
    let size = input.size();
    let mut begun = false;
    // By the clock of this input: another one may have gone on for longer.
    let mut clock = Clock::default();
    let mut salt = 0;
    let mut heard = Vec::new();
    loop {
        if read.packets.is_multiple_of(LOOK) {
            progress(read.packets, size.map(|size| (reader.bytes_read(), size)));
        }
        if sink.is_eager() && !reader.is_ready() {
            if dissector.encapsulations().next().is_some() {
                captures.meanwhile.inspect(|meanwhile| meanwhile.set_wrapped());
            }
            sink.hand_over();
        }
        let next = reader.next_hearing(&mut heard);
        if captures.stops() {
            read.interrupted = true;
            break;
        }
        let frame = match next {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(e) => {
                read.damaged.push(input.said(&e));
                break;
            }
        };
        hear_all(captures, sink, &mut heard);
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
            captures.meanwhile.inspect(|meanwhile| meanwhile.begin(frame.time));
            (frame.time, frame.time)
        });
        clock.stamped(frame.time);
        *span = (span.0.min(frame.time), span.1.max(frame.time));
        let slot = sink.slot();
        if dissector.dissect(&frame, file, slot) == Verdict::Tcp {
            if captures.filter.is_none_or(|f| f.matches(slot)) {
                slot.link ^= salt;
                slot.frame += before;
                sink.keep();
            }
        } else if let Some(mut told) = dissector.too_big() {
            told.link ^= salt;
            told.frame += before;
            hear(captures, sink, Said::TooBig(told));
        }
    }
    hear_all(captures, sink, &mut heard);
    read.steps += clock.steps;
    read.odd_clocks.extend(clock.odd(index));
    read.drops += reader.capture_drops().unwrap_or(0);
}

/// Passes on what kernels said of connections that are wanted: a filter asks for ends alone.
#[inline]
fn hear_all<C: Capture>(captures: &Captures<'_, C>, sink: &mut impl Sink, heard: &mut Vec<SocketEvent>) {
    if heard.is_empty() {
        return;
    }
    heard.drain(..).for_each(|event| hear(captures, sink, Said::Socket(event)));
}

/// Passes on what was said of a connection, if that is wanted.
fn hear<C: Capture>(captures: &Captures<'_, C>, sink: &mut impl Sink, said: Said) {
    let (one, other) = said.ends();
    let [out, back] = [(one, other), (other, one)].map(|(src, dst)| Segment { src, dst, ..Segment::EMPTY });
    if captures.filter.is_none_or(|f| f.matches(&out) || f.matches(&back)) {
        sink.hear(said);
    }
}

/// An input that begins at `first` is another capture than those before it, and no continuation of the last.
fn overlaps(first: Nanos, (start, end): (Nanos, Nanos)) -> bool {
    first <= start && first < end || first + ROTATED < end
}
