//! Captures to segments, in their order, into whatever takes them.

use super::said::Said;
use super::{Capture, Captures, Progress, Read};
use crate::Reader;
use crate::clock::Clock;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tcpwhy_base::{Nanos, Part, Segment, SocketEvent};
use tcpwhy_capture::{Dissector, Frame, Taker, Verdict};

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

/// An input, as far as it could be opened.
pub(super) enum Opened {
    Reader(Box<Reader>),
    /// A sentence says why not.
    Not(String),
    /// Reading was stopped before.
    Stopped,
}

impl Opened {
    /// Opens the input at `index`.
    pub(super) fn at<C: Capture>(captures: &Captures<'_, C>, index: usize) -> Opened {
        let Some(input) = captures.inputs.get(index).filter(|_| !captures.stops()) else {
            return Opened::Stopped;
        };
        let opened = match captures.stop {
            Some(stop) if captures.follow => input.open_following(stop),
            None if captures.follow => input.open_following(&Arc::default()),
            _ => input.open(),
        };
        match opened {
            Ok(reader) => Opened::Reader(Box::new(reader)),
            // Who interrupts while nothing has come yet has not damaged it.
            Err(_) if captures.stops() => Opened::Stopped,
            Err(problem) => Opened::Not(problem),
        }
    }
}

/// All inputs, each opened by the reader itself.
pub(super) fn read_all<C: Capture>(
    captures: &Captures<'_, C>,
    sink: &mut impl Sink,
    progress: &mut Progress<'_>,
) -> Read {
    read_part(captures, Part::ALL, |index| Opened::at(captures, index), sink, progress)
}

/// Of all inputs, which `open` opens, the connections of a part.
pub(super) fn read_part<C: Capture>(
    captures: &Captures<'_, C>,
    part: Part,
    mut open: impl FnMut(usize) -> Opened,
    sink: &mut impl Sink,
    progress: &mut Progress<'_>,
) -> Read {
    let mut read = Read::default();
    let mut dissector = Dissector::new();
    for (index, input) in captures.inputs.iter().enumerate() {
        let opened = open(index);
        if matches!(opened, Opened::Stopped) {
            read.interrupted = true;
            break;
        }
        read.frames_before.push(read.packets);
        if let Some(meanwhile) = captures.meanwhile {
            meanwhile.begin_input(read.packets);
        }
        match opened {
            Opened::Reader(mut reader) => {
                read.opened += 1;
                let file = u16::try_from(index).unwrap_or(u16::MAX);
                let clock = Clock::default();
                let (before, dissector) = (read.packets, &mut dissector);
                let (salt, first) = (0, Nanos::MAX);
                let reading = Reading { captures, part, sink, dissector, file, before, salt, clock, first };
                read_one(reading, (index, input), &mut reader, progress, &mut read);
            }
            Opened::Not(problem) => read.unreadable.push(problem),
            Opened::Stopped => {}
        }
    }
    read.counts = dissector.counts().clone();
    read.incomplete = dissector.incomplete();
    read.encapsulations = dissector.encapsulations().collect();
    read
}

fn read_one<C: Capture, S: Sink>(
    mut reading: Reading<'_, '_, C, S>,
    (index, input): (usize, &C),
    reader: &mut Reader,
    progress: &mut Progress<'_>,
    read: &mut Read,
) {
    let captures = reading.captures;
    let size = input.size();
    let stop = reader.stop_flag();
    let mut begun = false;
    let mut heard = Vec::new();
    loop {
        let until_look = LOOK - read.packets % LOOK;
        if until_look == LOOK {
            progress(read.packets, size.map(|size| (reader.bytes_read(), size)));
        }
        if captures.stops() {
            // Several that read the same bytes all stop where those end that one of them has.
            read.interrupted = true;
            stop.store(true, Relaxed);
        }
        if begun {
            reader.give_here(until_look, &mut reading);
            let packets = reading.before + reader.frames();
            let looks = packets - read.packets == until_look;
            read.packets = packets;
            if looks {
                continue;
            }
        }
        if reading.sink.is_eager() && !reader.is_ready() {
            if reading.dissector.encapsulations().next().is_some() {
                captures.meanwhile.inspect(|meanwhile| meanwhile.set_wrapped());
            }
            reading.sink.hand_over();
        }
        let next = reader.next_hearing(&mut heard);
        let frame = match next {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(_) if captures.stops() => break,
            Err(e) => {
                read.damaged.push(input.said(&e));
                break;
            }
        };
        reading.hear_all(&mut heard);
        read.packets += 1;
        read.bad_times += u64::from(frame.bad_time);
        if !begun {
            begun = true;
            reading.begin(frame.time, read);
        }
        reading.take(&frame);
    }
    read.interrupted |= captures.stops();
    reading.hear_all(&mut heard);
    reading.end(index, read);
    read.drops += reader.capture_drops().unwrap_or(0);
}

/// An input while it is read.
struct Reading<'a, 'b, C, S> {
    captures: &'a Captures<'b, C>,
    part: Part,
    sink: &'a mut S,
    dissector: &'a mut Dissector,
    file: u16,
    /// Frames in the inputs before it.
    before: u64,
    /// Keeps its connections apart from those of the inputs that it overlaps.
    salt: u32,
    /// By the clock of this input: another one may have gone on for longer.
    clock: Clock,
    /// Its earliest frame.
    first: Nanos,
}

impl<C: Capture, S: Sink> Reading<'_, '_, C, S> {
    /// Its first frame.
    fn begin(&mut self, time: Nanos, read: &mut Read) {
        match read.span {
            Some(span) if overlaps(time, span) => {
                read.overlapping += 1;
                self.salt = (u32::from(self.file) + 1).wrapping_mul(0x9E37_79B9);
            }
            Some(_) => {}
            None => _ = self.captures.meanwhile.inspect(|meanwhile| meanwhile.begin(time)),
        }
    }

    /// Passes on what kernels said of connections that are wanted.
    #[inline]
    fn hear_all(&mut self, heard: &mut Vec<SocketEvent>) {
        if heard.is_empty() {
            return;
        }
        heard.drain(..).for_each(|event| self.hear(Said::Socket(event)));
    }

    /// Passes on what was said of a connection, if that is wanted: a filter asks for ends alone.
    fn hear(&mut self, said: Said) {
        let (one, other) = said.ends();
        let [out, back] =
            [(one, other), (other, one)].map(|(src, dst)| Segment { src, dst, ..Segment::EMPTY });
        let wanted = self.captures.filter.is_none_or(|f| f.matches(&out) || f.matches(&back));
        if wanted && self.part.has(&one, &other) {
            self.sink.hear(said);
        }
    }

    fn end(self, index: usize, read: &mut Read) {
        if let Some(latest) = self.clock.latest() {
            let (start, end) = read.span.unwrap_or((self.first, latest));
            read.span = Some((start.min(self.first), end.max(latest)));
        }
        read.steps += self.clock.steps;
        read.odd_clocks.extend(self.clock.odd(index));
    }
}

// All of it is put in place, that for single frames as well: else its fields would have to be in memory.
impl<C: Capture, S: Sink> Taker for Reading<'_, '_, C, S> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Dissector::dissect")]
    fn take(&mut self, frame: &Frame<'_>) {
        self.clock.stamped(frame.time);
        self.first = self.first.min(frame.time);
        let slot = self.sink.slot();
        let Some(verdict) = self.dissector.dissect_of(self.part, frame, self.file, slot) else { return };
        if verdict == Verdict::Tcp {
            if self.captures.filter.is_none_or(|f| f.matches(slot)) {
                slot.link ^= self.salt;
                slot.frame += self.before;
                self.sink.keep();
            }
        } else if let Some(mut told) = self.dissector.too_big() {
            told.link ^= self.salt;
            told.frame += self.before;
            self.hear(Said::TooBig(told));
        }
    }
}

/// An input that begins at `first` is another capture than those before it, and no continuation of the last.
fn overlaps(first: Nanos, (start, end): (Nanos, Nanos)) -> bool {
    first <= start && first < end || first + ROTATED < end
}
