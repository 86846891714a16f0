//! Captures to segments, in their order, into whatever takes them.

use super::ahead::Helper;
use super::company::{Alone, Company};
use super::reading::{Reading, Sink};
use super::{Capture, Captures, Progress, Read};
use crate::{ReadError, Reader};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tcpwhy_base::Part;
use tcpwhy_capture::{Dissector, Taker};

/// An input, as far as it could be opened.
pub(super) enum Opened {
    Reader(Box<Reader>, Option<Helper>),
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
            Ok(reader) => Opened::Reader(Box::new(reader), None),
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
            Opened::Reader(mut reader, helper) => {
                read.opened += 1;
                let to = (&mut *sink, &mut dissector);
                let reading = Reading::new((captures, part), to, index, read.packets);
                let size = input.size();
                let damage = match helper {
                    None => read_one(reading, (index, size), (&mut reader, Alone), progress, &mut read),
                    Some(helper) => {
                        read_one(reading, (index, size), (&mut reader, helper), progress, &mut read)
                    }
                };
                read.damaged.extend(damage.map(|e| input.said(&e)));
            }
            Opened::Not(problem) => read.unreadable.push(problem),
            Opened::Stopped => {}
        }
    }
    read.count(&dissector);
    read
}

/// Of a capture that is opened already, the connections of a part; and the damage that it ended in.
pub(super) fn read_given<C: Capture>(
    captures: &Captures<'_, C>,
    part: Part,
    reader: &mut Reader,
    sink: &mut impl Sink,
) -> (Read, Option<ReadError>) {
    let (mut read, mut dissector) = (Read { opened: 1, ..Read::default() }, Dissector::new());
    let reading = Reading::new((captures, part), (sink, &mut dissector), 0, 0);
    let damage = read_one(reading, (0, None), (reader, Alone), &mut |_, _| (), &mut read);
    read.count(&dissector);
    (read, damage)
}

impl Read {
    fn count(&mut self, dissector: &Dissector) {
        self.counts = dissector.counts().clone();
        self.incomplete = dissector.incomplete();
        self.encapsulations = dissector.encapsulations().collect();
    }
}

/// Reads an input to its end, or to the damage that it gives; `size`: how many bytes it has, where that is known.
fn read_one<C: Capture, S: Sink>(
    mut reading: Reading<'_, '_, C, S>,
    (index, size): (usize, Option<u64>),
    (reader, company): (&mut Reader, impl Company),
    progress: &mut Progress<'_>,
    read: &mut Read,
) -> Option<ReadError> {
    let captures = reading.captures;
    let stop = reader.stop_flag();
    let mut begun = false;
    let (mut heard, mut damage) = (Vec::new(), None);
    loop {
        let until_look = S::LOOK - read.packets % S::LOOK;
        if until_look == S::LOOK {
            progress(read.packets, size.map(|size| (reader.bytes_read(), size)));
            if begun && reading.sink.look().is_break() {
                read.interrupted = true;
                break;
            }
        }
        if captures.stops() {
            // Several that read the same bytes all stop where those end that one of them has.
            read.interrupted = true;
            stop.store(true, Relaxed);
        }
        if begun {
            let most = company.most(reader, until_look);
            company.stretch(reader, most, &mut reading);
            let packets = reading.before + reader.frames();
            let goes_on = packets - read.packets == most;
            read.packets = packets;
            if goes_on {
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
                damage = Some(e);
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
    read.events_left_out += reader.events_left_out();
    damage
}
