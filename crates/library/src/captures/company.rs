//! How a thread reads an input: alone, or with others that read the same.

use super::Capture;
use super::ahead::{Helper, STRETCH, Stretch};
use super::reading::{Reading, Sink};
use crate::Reader;
use tcpwhy_base::{Part, Segment};
use tcpwhy_capture::{Counts, Dissector, Frame, Taker, Verdict};

/// Who else reads an input.
pub(super) trait Company {
    /// How many frames are given at once, of so many at the most.
    fn most(&self, reader: &Reader, most: u64) -> u64;
    /// Takes as many of the frames that are here.
    fn stretch<C: Capture, S: Sink>(
        &self,
        reader: &mut Reader,
        most: u64,
        reading: &mut Reading<'_, '_, C, S>,
    );
}

/// Nobody: all is put in place, and what it reads stays in registers.
pub(super) struct Alone;

impl Company for Alone {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Dissector::dissect")]
    fn most(&self, _: &Reader, most: u64) -> u64 {
        most
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Dissector::dissect")]
    fn stretch<C: Capture, S: Sink>(
        &self,
        reader: &mut Reader,
        most: u64,
        reading: &mut Reading<'_, '_, C, S>,
    ) {
        reader.give_here(most, reading);
    }
}

impl Company for Helper {
    /// All end a stretch at the same frames.
    fn most(&self, reader: &Reader, most: u64) -> u64 {
        most.min(STRETCH - reader.frames() % STRETCH)
    }

    /// As others did it, or for others as well.
    fn stretch<C: Capture, S: Sink>(
        &self,
        reader: &mut Reader,
        most: u64,
        reading: &mut Reading<'_, '_, C, S>,
    ) {
        let (offset, frames) = (reader.offset(), reader.frames());
        self.is_at(offset);
        if let Some(done) = self.take(frames) {
            reader.pass(done.frames, done.bytes, done.last);
            reading.dissector.passed(done.frames);
            (reading.clock, reading.first) = (done.clock, done.first);
            reading.sink.eat(&done.segments[..done.used]);
            self.give_back(self.me, done.segments);
            return;
        }
        let Some((of, segments)) = self.for_whom(offset, frames) else {
            reader.give_here(most, reading);
            return;
        };
        let mut before = counted(reading.dissector);
        let mut both =
            ForBoth { reading, part: self.part(of), dissector: Dissector::new(), segments, used: 0 };
        reader.give_here(most, &mut both);
        let ForBoth { reading, segments, used, .. } = both;
        let gave = reader.frames() - frames;
        before.0.tcp += gave;
        // Anything but TCP leaves more behind than a count.
        if gave == 0 || before != counted(reading.dissector) {
            self.give_back(of, segments);
            return;
        }
        let (bytes, last) = ((reader.offset() - offset) as usize, reader.last());
        let (clock, first) = (reading.clock.clone(), reading.first);
        self.put(of, Stretch { at: frames, segments, used, frames: gave, bytes, last, clock, first });
    }
}

/// What it has seen, and in how many wraps.
fn counted(dissector: &Dissector) -> (Counts, u64) {
    (dissector.counts().clone(), dissector.encapsulations().map(|(_, n)| n).sum())
}

/// Takes frames for its own part of the connections, and for another one.
struct ForBoth<'r, 'a, 'b, C, S> {
    reading: &'r mut Reading<'a, 'b, C, S>,
    part: Part,
    dissector: Dissector,
    segments: Box<[Segment]>,
    used: usize,
}

impl<C: Capture, S: Sink> Taker for ForBoth<'_, '_, '_, C, S> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for Dissector::dissect")]
    fn take(&mut self, frame: &Frame<'_>) {
        let ForBoth { reading, part, dissector, segments, used } = self;
        reading.take(frame);
        let Some(slot) = segments.get_mut(*used) else { return };
        if dissector.dissect_of(*part, frame, reading.file, slot) == Some(Verdict::Tcp)
            && reading.captures.filter.is_none_or(|f| f.matches(slot))
        {
            slot.link ^= reading.salt;
            slot.frame += reading.before;
            *used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Captures;
    use super::super::bytes::Bytes;
    use super::super::read::{Opened, read_part};
    use super::super::said::Said;
    use super::*;
    use crate::captures::Read;
    use tcpwhy_base::Nanos;
    use tcpwhy_capture::Writer;

    /// What comes of a part, and how much of it another thread had dissected.
    struct Kept {
        slot: Segment,
        segments: Vec<Segment>,
        by_others: usize,
    }

    impl Sink for Kept {
        fn slot(&mut self) -> &mut Segment {
            &mut self.slot
        }
        fn keep(&mut self) {
            self.segments.push(self.slot);
        }
        fn hear(&mut self, _: Said) {}
        fn eat(&mut self, segments: &[Segment]) {
            self.by_others += segments.len();
            self.segments.extend_from_slice(segments);
        }
        fn is_eager(&self) -> bool {
            false
        }
        fn hand_over(&mut self) {}
    }

    /// So many frames of one connection, with one of another each 20; every third stretch of them has a UDP
    /// packet, one a fragment, and the clock is set back once.
    fn capture(frames: u32) -> Bytes {
        let mut writer = Writer::pcap(Vec::new(), 1).expect("memory has room");
        for n in 0..frames {
            let odd = |every: u32| n / STRETCH as u32 % every == 1 && n % STRETCH as u32 == 100;
            let (protocol, fragment) = (if odd(3) { 17 } else { 6 }, if odd(7) { 0x20 } else { 0x40 });
            let port = if n % 20 == 7 { 1_000 + (n % 4_000) as u16 } else { 20_000 };
            let mut data = vec![2; 12];
            data.extend([8, 0, 0x45, 0, 0, 41]);
            data.extend([
                (n >> 8) as u8,
                n as u8,
                fragment,
                0,
                63,
                protocol,
                0,
                0,
                10,
                0,
                0,
                200,
                192,
                168,
                1,
                2,
            ]);
            data.extend(port.to_be_bytes());
            data.extend([1, 0xbb]);
            data.extend(n.to_be_bytes());
            data.extend([0, 0, 0, 9, 0x50, 0x18, 0x20, 0, 0, 0, 0, 0, 7]);
            let back = if n > frames / 2 { 5_000_000 } else { 0 };
            let time = Nanos::micros(i64::from(n) * 100 + 10_000_000 - back);
            writer.write(&Frame::new(time, 1, &data), None).expect("memory has room");
        }
        Bytes(writer.finish().expect("memory has room"))
    }

    fn read(input: &[Bytes], (me, of): (usize, usize), mut opened: Option<Opened>) -> (Kept, Read) {
        let captures = Captures::new(input);
        let mut kept = Kept { slot: Segment::EMPTY, segments: Vec::new(), by_others: 0 };
        let open = |at| opened.take().unwrap_or_else(|| Opened::at(&captures, at));
        let read = read_part(&captures, Part::new(me, of), open, &mut kept, &mut |_, _| ());
        (kept, read)
    }

    /// Whoever is behind gets what it would have made itself, and what is counted is the same; of stretches
    /// with anything but TCP it gets nothing.
    #[test]
    fn what_others_dissect_is_the_same() {
        let input = [capture(40_000)];
        let mut helped = 0;
        // One goes through all of it before the other one begins: what threads do side by side, one after the other.
        for order in [&[0, 1][..], &[1, 0], &[3, 1, 2, 0], &[0, 2, 1, 3]] {
            let n = order.len();
            let all = input[0].open().expect("a capture").abreast(n).into_iter().zip(Helper::all(n));
            let mut all: Vec<_> = all.map(|(r, h)| Some(Opened::Reader(Box::new(r), Some(h)))).collect();
            for &me in order {
                let (alone, plain) = read(&input, (me, n), None);
                let (kept, read) = read(&input, (me, n), all[me].take());
                assert_eq!(kept.segments.len(), alone.segments.len());
                for (one, other) in kept.segments.iter().zip(&alone.segments) {
                    assert_eq!(format!("{one:?}"), format!("{other:?}"));
                }
                let facts =
                    |read: &Read| (read.packets, read.counts.clone(), read.span, read.steps, read.incomplete);
                assert_eq!(facts(&read), facts(&plain));
                assert!(me != order[0] || kept.by_others == 0, "nobody is before the first");
                helped += kept.by_others;
            }
        }
        assert!((10_000..30_000).contains(&helped), "{helped}");
    }
}
