//! From bytes to frames.

use crate::error::{Damage, Looks, ReadError};
use crate::input::{self, Buffer, Shared};
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::record::{Record, Stop};
use crate::snoop::{self, Snoop};
use crate::stamps::{self, ASKED, FAR};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_base::{Nanos, SocketEvent};

/// What tells when the next record was stamped is within so many bytes.
const GLANCE: usize = 24;
/// Of what lies behind a packet so many bytes are looked at.
const PEEKED: usize = 1 << 18;

/// One captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// 1-based number in its file, as Wireshark counts.
    pub number: u64,
    /// When it passed the tap, since the Unix epoch.
    pub time: Nanos,
    /// The time stamp was impossible (a second or more of fractions), far from those of the packets before
    /// and behind it, which agree (the time is then that of the packet before), or absent (pcapng simple
    /// packet).
    pub bad_time: bool,
    /// Link type, as in <https://www.tcpdump.org/linktypes.html>.
    pub link_type: u32,
    /// The captured bytes.
    pub data: &'a [u8],
    /// How long the packet was on the wire; never less than was captured.
    pub len: u32,
}

/// What takes frames, one after the other. (A closure would not be put in place for each format.)
pub trait Taker {
    /// The next frame.
    fn take(&mut self, frame: &Frame<'_>);
}

#[derive(Clone)]
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
    Snoop(Snoop),
}

/// Reads frames from a pcap, pcapng or snoop stream, packed or not. After an error, and after the end, it gives
/// `None`; all frames before have been delivered then.
pub struct Reader {
    buffer: Buffer,
    format: Format,
    shared: Arc<Shared>,
    path: String,
    packing: Option<&'static str>,
    frames: u64,
    /// Time of the frame before.
    last: Nanos,
    done: bool,
}

impl Reader {
    /// Reads from anything; the file header is read now.
    pub fn new(input: Box<dyn Read + Send>) -> Result<Reader, ReadError> {
        Reader::start(input, "the input".to_owned(), Arc::default())
    }

    /// Opens a file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Reader, ReadError> {
        let (input, name) = open_path(path)?;
        Reader::start(input, name, Arc::default())
    }

    /// Opens a file that is still being written, even one that is still empty: at its end the reader waits
    /// for more until `stop` is set.
    pub fn open_following(path: &Path, stop: Arc<AtomicBool>) -> Result<Reader, ReadError> {
        let (input, name) = open_path(path)?;
        Reader::start(input, name, Arc::new(Shared { follow: true.into(), stop, ..Shared::default() }))
    }

    fn start(input: Box<dyn Read + Send>, path: String, shared: Arc<Shared>) -> Result<Reader, ReadError> {
        let failed = |e| ReadError::Io { path: path.clone(), frames: 0, offset: 0, source: e };
        let (input, packing) = input::open(input, &shared).map_err(failed)?;
        let mut buffer = Buffer::new(input, packing.is_some());
        // 24 bytes are the header of a pcap file and the fixed part of a pcapng section.
        let whole = match buffer.need(24) {
            Ok(whole) => whole,
            // A decoder that fails on its first bytes: judge what it gave, if anything.
            Err(e) if packing.is_some() && e.raw_os_error().is_none() => {
                let what = Damage::Packed(e.to_string());
                return Err(ReadError::Damaged { what, frame: 1, offset: 0 });
            }
            Err(e) => return Err(failed(e)),
        };
        let head = buffer.bytes().first_chunk::<24>();
        let format = if let Some(pcap) = head.and_then(Pcap::begin) {
            buffer.consume(24);
            Format::Pcap(pcap)
        } else if Pcapng::begins(buffer.bytes()) {
            Format::Pcapng(Pcapng::default())
        } else if let Some(snoop) = Snoop::begin(buffer.bytes()) {
            buffer.consume(snoop::FILE_HEADER);
            Format::Snoop(snoop)
        } else {
            let known = buffer.bytes().first_chunk::<4>().is_some_and(Pcap::is_magic);
            // A better look, unless that could mean to wait for ever.
            if !shared.follow.load(Relaxed) {
                _ = buffer.need(512);
            }
            let head = buffer.bytes().get(..512).unwrap_or(buffer.bytes());
            let looks = if known && !whole { Looks::Short } else { Looks::judge(head) };
            return Err(ReadError::NotCapture(match packing {
                Some(packing) => Looks::Inside(packing, Box::new(looks)),
                None => looks,
            }));
        };
        Ok(Reader { buffer, format, shared, path, packing, frames: 0, last: Nanos::ZERO, done: false })
    }

    /// So many readers of what is to come, each for a thread of its own: the same frames to all of them,
    /// their bytes read and unpacked once. None of them gets far before the slowest, so all have to be read;
    /// one that is dropped is not waited for. A reader that is one of several already is given back alone.
    pub fn abreast(self, readers: usize) -> Vec<Reader> {
        let Reader { buffer, format, shared, path, packing, frames, last, done } = self;
        let each = |buffer| Reader {
            buffer,
            format: format.clone(),
            shared: Arc::clone(&shared),
            path: path.clone(),
            packing,
            frames,
            last,
            done,
        };
        buffer.abreast(readers).into_iter().map(each).collect()
    }

    /// The next frame; `None` at the end.
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "the frame borrows the buffer, an Iterator cannot")]
    #[expect(clippy::inline_always, reason = "a frame returned through memory costs a third of the reading")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        self.take(None)
    }

    /// The next frame; `None` at the end. What a kernel said between the frame before and this one is added to `heard`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `next`")]
    pub fn next_hearing(&mut self, heard: &mut Vec<SocketEvent>) -> Result<Option<Frame<'_>>, ReadError> {
        self.take(Some(heard))
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `next`")]
    fn take(&mut self, heard: Option<&mut Vec<SocketEvent>>) -> Result<Option<Frame<'_>>, ReadError> {
        let whole = match &self.format {
            _ if self.done => None,
            Format::Pcap(pcap) => pcap.whole(self.buffer.bytes()),
            Format::Pcapng(pcapng) => pcapng.whole(self.buffer.bytes()),
            Format::Snoop(snoop) => snoop.whole(self.buffer.bytes()),
        };
        if let Some(record) = whole {
            return Ok(Some(self.frame(record)));
        }
        match self.advance(heard) {
            Ok(Some(record)) => Ok(Some(self.frame(record))),
            Ok(None) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Gives `taker` the frames that are here to their ends, at most `most` of them, as [`Reader::next`]
    /// would. It stops before one that needs more than a glance into the buffer, and where that is the next
    /// one gives none. Counters stay in registers meanwhile, which with `next` alone go through memory for
    /// each frame.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `next`")]
    pub fn give_here(&mut self, most: u64, taker: &mut impl Taker) {
        if self.done {
            return;
        }
        let mut run = Run { bytes: self.buffer.bytes(), frames: self.frames, last: self.last, most };
        let before = run.bytes.len();
        match &self.format {
            Format::Pcap(pcap) if pcap.is_usual() => run.go(|bytes| pcap.whole_usual(bytes), taker),
            Format::Pcapng(pcapng) if pcapng.is_usual() => run.go(|bytes| pcapng.whole_usual(bytes), taker),
            // Seldom, and read one by one all the same.
            Format::Pcap(_) | Format::Pcapng(_) | Format::Snoop(_) => {}
        }
        let Run { bytes, frames, last, .. } = run;
        (self.frames, self.last) = (frames, last);
        self.buffer.consume(before - bytes.len());
    }

    /// Goes over frames that another reader of this stream [gave](Reader::give_here) from here on: so many,
    /// in so many bytes, the last of them stamped so.
    pub fn pass(&mut self, frames: u64, bytes: usize, last: Nanos) {
        self.frames += frames;
        self.last = last;
        self.buffer.consume(bytes);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `next`")]
    fn frame(&mut self, r: Record) -> Frame<'_> {
        let odd = r.bad_time || self.is_far(r.time);
        let (time, bad_time) = if odd { self.judge(&r) } else { (r.time, false) };
        self.last = time;
        self.frames += 1;
        self.buffer.consume(r.total);
        Frame {
            number: self.frames,
            time,
            bad_time,
            link_type: r.link_type,
            data: self.buffer.behind(r.total - r.before, r.caplen),
            len: r.len,
        }
    }

    /// A packet that was stamped so lies far before or behind the last one, or is the first.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `next`")]
    fn is_far(&self, time: Nanos) -> bool {
        is_far(time, self.last)
    }

    /// The time of the record at the front of the buffer, and whether its stamp was wrong: those behind it tell.
    #[cold]
    fn judge(&mut self, r: &Record) -> (Nanos, bool) {
        // A pcapng simple packet has no time: that of the packet before is nearest to the truth.
        if r.bad_time && r.time == Nanos::ZERO {
            return (self.last, true);
        }
        if !self.is_far(r.time) {
            return (r.time, r.bad_time);
        }
        let before = (self.frames > 0).then_some(self.last);
        let asked = if before.is_some() { ASKED } else { 2 };
        let mut behind = [Nanos::ZERO; ASKED];
        let (mut known, mut at) = (0, r.total);
        while known < asked && at < PEEKED {
            // What is not here yet of a file that is still being written cannot be asked.
            if !self.shared.follow.load(Relaxed) {
                self.buffer.peek(at + GLANCE);
            }
            let head = self.buffer.bytes().get(at..).unwrap_or_default();
            let glance = match &self.format {
                Format::Pcap(pcap) => pcap.glance(head),
                Format::Pcapng(pcapng) => pcapng.glance(head),
                Format::Snoop(snoop) => snoop.glance(head),
            };
            let Some((time, total)) = glance else { break };
            at = at.saturating_add(total);
            if let Some(time) = time {
                behind[known] = time;
                known += 1;
                // Nearly always it was a pause, after which the next packet goes on.
                if before.is_some() && stamps::mended(before, r.time, &behind[..1]).is_none() {
                    break;
                }
            }
        }
        let mended = stamps::mended(before, r.time, &behind[..known]);
        (mended.unwrap_or(r.time), r.bad_time || mended.is_some())
    }

    /// The next record where more than a glance into the buffer is needed.
    #[inline(never)]
    fn advance(&mut self, heard: Option<&mut Vec<SocketEvent>>) -> Result<Option<Record>, ReadError> {
        if self.done {
            return Ok(None);
        }
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.buffer),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.buffer),
            Format::Snoop(snoop) => snoop.next(&mut self.buffer),
        };
        if let Format::Pcapng(pcapng) = &mut self.format {
            match heard {
                Some(heard) => heard.append(pcapng.heard()),
                None => pcapng.heard().clear(),
            }
        }
        match found {
            Ok(Some(record)) => Ok(Some(record)),
            Ok(None) => {
                self.done = true;
                Ok(None)
            }
            Err(stop) => self.end(stop),
        }
    }

    #[cold]
    fn end(&mut self, stop: Stop) -> Result<Option<Record>, ReadError> {
        self.done = true;
        let (frame, offset) = (self.frames + 1, self.buffer.offset());
        match stop {
            // Who stops a reader that waits has not damaged the file.
            Stop::Damage(Damage::Cut) if self.shared.stop.load(Relaxed) => Ok(None),
            Stop::Damage(what) => Err(ReadError::Damaged { what, frame, offset }),
            Stop::Io(_) if self.shared.stop.load(Relaxed) => Ok(None),
            Stop::Io(e) if self.packing.is_some() && e.raw_os_error().is_none() => {
                Err(ReadError::Damaged { what: Damage::Packed(e.to_string()), frame, offset })
            }
            Stop::Io(source) => {
                Err(ReadError::Io { path: self.path.clone(), frames: self.frames, offset, source })
            }
        }
    }

    /// The next frame is here to its end: [`Reader::next`] will not wait for bytes, be it to ask those behind
    /// it when it passed.
    #[inline]
    pub fn is_ready(&self) -> bool {
        let bytes = self.buffer.bytes();
        let whole = match &self.format {
            _ if self.done => None,
            Format::Pcap(pcap) => pcap.whole(bytes),
            Format::Pcapng(pcapng) => pcapng.whole(bytes),
            Format::Snoop(snoop) => snoop.whole(bytes),
        };
        whole.is_some_and(|r| !self.is_far(r.time))
    }

    /// When the last frame that was delivered passed the tap.
    pub fn last(&self) -> Nanos {
        self.last
    }

    /// How many frames were delivered.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Where in the unpacked stream the next record begins (after damage: the damaged one).
    pub fn offset(&self) -> u64 {
        self.buffer.offset()
    }

    /// Bytes read so far as they are stored, packed or not: against the file's size, the progress.
    pub fn bytes_read(&self) -> u64 {
        self.shared.bytes.load(Relaxed)
    }

    /// The packing that was removed: `gzip`, `zstd` or `lz4`.
    pub fn packing(&self) -> Option<&'static str> {
        self.packing
    }

    /// Packets that the capture program says it lost (pcapng interface statistics, snoop records); `None` if it says
    /// nothing, which is so for every pcap.
    pub fn capture_drops(&self) -> Option<u64> {
        match &self.format {
            Format::Pcap(_) => None,
            Format::Pcapng(pcapng) => pcapng.drops(),
            Format::Snoop(snoop) => snoop.drops(),
        }
    }

    /// Events of a kernel (pcapng of `record`) that were left out, since there were too many of them between
    /// two packets.
    pub fn events_left_out(&self) -> u64 {
        match &self.format {
            Format::Pcapng(pcapng) => pcapng.unheard(),
            Format::Pcap(_) | Format::Snoop(_) => 0,
        }
    }

    /// Whether to wait at the end of the input for more, which suits a file that is still being written.
    pub fn follow(&mut self, on: bool) {
        self.shared.follow.store(on, Relaxed);
    }

    /// Setting this ends the reading at the next need for bytes, also while the reader waits.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.stop)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.path)
            .field("packing", &self.packing)
            .field("frames", &self.frames)
            .field("offset", &self.offset())
            .finish_non_exhaustive()
    }
}

/// A packet that was stamped `time` lies far before or behind `last`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as for `next`")]
fn is_far(time: Nanos, last: Nanos) -> bool {
    // Of both sides at once: what lies before wraps around.
    time.0.wrapping_sub(last.0).wrapping_add(FAR.0) as u64 > 2 * FAR.0 as u64
}

/// Frames that are taken from the buffer one after the other.
struct Run<'a> {
    bytes: &'a [u8],
    frames: u64,
    last: Nanos,
    most: u64,
}

impl Run<'_> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `next`")]
    fn go(&mut self, whole: impl Fn(&[u8]) -> Option<Record>, taker: &mut impl Taker) {
        let Run { mut bytes, mut frames, mut last, most } = *self;
        let end = frames.saturating_add(most);
        while frames < end
            && let Some(r) = whole(bytes)
            && !r.bad_time
            && !is_far(r.time, last)
            && let Some((record, behind)) = bytes.split_at_checked(r.total)
            && let Some(data) = record.get(r.before..r.before + r.caplen)
        {
            (bytes, last) = (behind, r.time);
            frames += 1;
            taker.take(&Frame {
                number: frames,
                time: r.time,
                bad_time: false,
                link_type: r.link_type,
                data,
                len: r.len,
            });
        }
        (self.bytes, self.frames, self.last) = (bytes, frames, last);
    }
}

fn open_path(path: &Path) -> Result<(Box<dyn Read + Send>, String), ReadError> {
    if path.as_os_str() == "-" {
        return Ok((Box::new(io::stdin()), "standard input".to_owned()));
    }
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => Ok((Box::new(file), name)),
        Err(source) => Err(ReadError::Open { path: name, source }),
    }
}
