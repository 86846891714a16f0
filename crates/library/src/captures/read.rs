//! Captures to segments, in their order, into whatever takes them.

use super::ahead::Helper;
use super::company::{Alone, Company};
use super::reading::{Reading, Sink};
use super::{Capture, Captures, Progress, Read};
use crate::Reader;
use crate::clock::Clock;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tcpwhy_base::{Nanos, Part};
use tcpwhy_capture::{Dissector, Taker};

/// Frames between looks at the clock.
const LOOK: u64 = 4096;

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
                let file = u16::try_from(index).unwrap_or(u16::MAX);
                let clock = Clock::default();
                let (before, dissector) = (read.packets, &mut dissector);
                let (salt, first) = (0, Nanos::MAX);
                let reading = Reading { captures, part, sink, dissector, file, before, salt, clock, first };
                match helper {
                    None => read_one(reading, (index, input), (&mut reader, Alone), progress, &mut read),
                    Some(helper) => {
                        read_one(reading, (index, input), (&mut reader, helper), progress, &mut read);
                    }
                }
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
    (reader, company): (&mut Reader, impl Company),
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
    read.events_left_out += reader.events_left_out();
}
