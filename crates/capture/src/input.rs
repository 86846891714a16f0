//! Bytes from a file or pipe: waiting for more at the end of a growing file, unpacking, and one refill
//! buffer from which records are taken without a copy.

use crate::abreast::Seat;
use crate::refill::{BUFFER, FIRST, read};
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// A decoder that meets damage throws away what it unpacked in that call: ask for little at a time.
const PACKED_READ: usize = 16 << 10;

/// How often a file that is followed is asked for more: fast to the eye, nothing to the processor.
const POLL: Duration = Duration::from_millis(100);

/// What the reader tells the lowest layer, and the other way round.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Wait at the end of the file for more.
    pub(crate) follow: AtomicBool,
    /// Stop waiting.
    pub(crate) stop: Arc<AtomicBool>,
    /// Bytes read so far, as stored: packed bytes if packed.
    pub(crate) bytes: AtomicU64,
}

/// The lowest layer. Waiting happens here, below the decoders, so that they never see an early end.
struct Tail {
    input: Box<dyn Read + Send>,
    shared: Arc<Shared>,
}

impl Read for Tail {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.shared.stop.load(Relaxed) {
                return Ok(0);
            }
            match self.input.read(buf) {
                Ok(0) if !buf.is_empty() && self.shared.follow.load(Relaxed) => thread::sleep(POLL),
                Ok(n) => {
                    self.shared.bytes.fetch_add(n as u64, Relaxed);
                    return Ok(n);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// Puts the waiting layer under `input` and, if its first bytes say that it is packed, a decoder above.
/// Gives the name of the packing as well.
pub(crate) fn open(
    input: Box<dyn Read + Send>,
    shared: &Arc<Shared>,
) -> io::Result<(Box<dyn Read + Send>, Option<&'static str>)> {
    let mut tail = Tail { input, shared: Arc::clone(shared) };
    let mut head = Vec::with_capacity(4);
    tail.by_ref().take(4).read_to_end(&mut head)?;
    let magic = head.clone();
    unpack(&magic, Cursor::new(head).chain(tail))
}

#[cfg(feature = "compress")]
fn unpack(
    magic: &[u8],
    all: impl Read + Send + 'static,
) -> io::Result<(Box<dyn Read + Send>, Option<&'static str>)> {
    Ok(match magic {
        // RFC 1952 2.3.1. Captures are often concatenated, hence many members.
        [0x1f, 0x8b, ..] => (Box::new(flate2::read::MultiGzDecoder::new(all)), Some("gzip")),
        // RFC 8878 3.1.1.
        [0x28, 0xb5, 0x2f, 0xfd] => (Box::new(zstd::stream::read::Decoder::new(all)?), Some("zstd")),
        // "LZ4 Frame Format Description", General Structure.
        [0x04, 0x22, 0x4d, 0x18] => (Box::new(Lz4::new(all)), Some("lz4")),
        _ => (Box::new(all), None),
    })
}

/// All frames of an lz4 stream; the decoder alone ends after each.
#[cfg(feature = "compress")]
struct Lz4<R: Read>(lz4_flex::frame::FrameDecoder<io::BufReader<R>>);

#[cfg(feature = "compress")]
impl<R: Read> Lz4<R> {
    fn new(input: R) -> Lz4<R> {
        Lz4(lz4_flex::frame::FrameDecoder::new(io::BufReader::with_capacity(1 << 16, input)))
    }
}

#[cfg(feature = "compress")]
impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.0.read(buf)?;
            if n > 0 || buf.is_empty() || io::BufRead::fill_buf(self.0.get_mut())?.is_empty() {
                return Ok(n);
            }
        }
    }
}

#[cfg(not(feature = "compress"))]
fn unpack(
    _magic: &[u8],
    all: impl Read + Send + 'static,
) -> io::Result<(Box<dyn Read + Send>, Option<&'static str>)> {
    Ok((Box::new(all), None))
}

/// Where bytes come from.
enum Source {
    Own(Box<dyn Read + Send>),
    Common(Seat),
}

/// The bytes of a stream from `offset` on: as many as were asked for, contiguous.
pub(crate) struct Buffer {
    source: Source,
    /// Shared with the other readers of a common stream only.
    data: Arc<Vec<u8>>,
    start: usize,
    end: usize,
    /// The most that is asked for at once.
    most: usize,
    /// Where in the stream `start` is.
    offset: u64,
    /// What went wrong as more was looked at than was needed.
    failed: Option<io::Error>,
}

impl Buffer {
    pub(crate) fn new(input: Box<dyn Read + Send>, packed: bool) -> Buffer {
        let most = if packed { PACKED_READ } else { usize::MAX };
        let (source, data) = (Source::Own(input), Arc::new(vec![0; FIRST]));
        Buffer { source, data, start: 0, end: 0, most, offset: 0, failed: None }
    }

    /// A buffer for each of several readers, who see the same bytes from here on. One who reads a common
    /// stream already stays alone.
    pub(crate) fn abreast(self, readers: usize) -> Vec<Buffer> {
        let Buffer { source: Source::Own(input), data, start, end, most, offset, failed: None } = self else {
            return vec![self];
        };
        let seats = Seat::at(input, most, readers).into_iter().map(Source::Common);
        let each =
            |source| Buffer { source, data: Arc::clone(&data), start, end, most, offset, failed: None };
        seats.map(each).collect()
    }

    /// What is here now.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.data.get(self.start..self.end).unwrap_or_default()
    }

    /// The stream offset of `bytes`.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Makes `n` bytes available; false if the stream ends before.
    #[inline]
    pub(crate) fn need(&mut self, n: usize) -> io::Result<bool> {
        if self.end - self.start >= n { Ok(true) } else { self.fill(n) }
    }

    /// Makes `n` bytes available, if there are so many, that are only looked at: what goes wrong is told when
    /// they are needed.
    pub(crate) fn peek(&mut self, n: usize) {
        if let Err(e) = self.need(n) {
            self.failed = Some(e);
        }
    }

    #[cold]
    fn fill(&mut self, n: usize) -> io::Result<bool> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        let (start, end, most) = (self.start, self.end, self.most);
        let failed = match &mut self.source {
            Source::Own(input) => {
                let data = Arc::make_mut(&mut self.data);
                if end == data.len() && end < BUFFER {
                    data.resize(BUFFER, 0);
                }
                data.copy_within(start..end, 0);
                let (end, failed) = read(input, data, end - start, n, most);
                (self.start, self.end) = (0, end);
                failed
            }
            Source::Common(seat) => {
                let piece = seat.next(self.offset, &mut self.data, start..end, n)?;
                (self.start, self.end) = (piece.range.start, piece.range.end);
                if self.end - self.start >= n {
                    // What went wrong behind that is told when more is needed.
                    self.failed = piece.failed;
                    None
                } else {
                    piece.failed
                }
            }
        };
        failed.map_or(Ok(self.end - self.start >= n), Err)
    }

    /// Moves on by `n` bytes, which are available.
    #[inline]
    pub(crate) fn consume(&mut self, n: usize) {
        let n = n.min(self.end - self.start);
        self.start += n;
        self.offset += n as u64;
    }

    /// `n` bytes that lie `back` bytes behind: those of the record just consumed.
    #[inline]
    pub(crate) fn behind(&self, back: usize, n: usize) -> &[u8] {
        let from = self.start.saturating_sub(back);
        self.data.get(from..from.saturating_add(n)).unwrap_or_default()
    }

    /// Moves on by `n` bytes without keeping them; false if the stream ends before.
    pub(crate) fn skip(&mut self, mut n: u64) -> io::Result<bool> {
        loop {
            let here = ((self.end - self.start) as u64).min(n);
            self.consume(here as usize);
            n -= here;
            if n == 0 {
                return Ok(true);
            }
            if !self.need(1)? {
                return Ok(false);
            }
        }
    }
}
