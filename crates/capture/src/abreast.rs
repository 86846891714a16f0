//! One stream for several readers, each in a thread of its own: its bytes are read (and unpacked) once, by
//! whoever needs them first, and lie once in memory for all.

use crate::refill::{BUFFER, read};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// So many pieces the first reader may be before the last: enough that unequal work evens out, few enough to
/// stay in the third cache.
const AHEAD: u64 = 16;

/// No more bytes than those pieces mostly have, for large packets make large pieces; a piece that is larger
/// alone is the only one ahead.
const AHEAD_BYTES: usize = AHEAD as usize * BUFFER;

/// So much of a piece may lie before what was read, which is read before it is known how much that is: what
/// is left of the piece before, mostly less than a frame.
const LEFT: usize = 1 << 14;

/// What is known of a piece beside its bytes.
pub(crate) struct Piece {
    /// Where its bytes are.
    pub(crate) range: Range<usize>,
    /// What went wrong behind them.
    pub(crate) failed: Option<io::Error>,
}

/// What was read, in room that has more.
struct Chunk {
    room: Vec<u8>,
    range: Range<usize>,
    failed: Option<io::Error>,
}

impl Chunk {
    /// Puts bytes before it.
    fn begin_with(&mut self, left: &[u8]) {
        let Range { start, end } = self.range;
        if let Some(begin) = start.checked_sub(left.len()) {
            self.room[begin..start].copy_from_slice(left);
            self.range.start = begin;
        } else {
            self.room = [left, &self.room[start..end]].concat();
            self.range = 0..left.len() + (end - start);
        }
    }
}

/// What is read by turns.
struct Input {
    input: Box<dyn Read + Send>,
    /// The most that is asked for at once.
    most: usize,
    /// What was read before anybody needed it.
    ahead: Option<Chunk>,
}

impl Input {
    /// What comes next, up to `size` bytes of it.
    fn next(&mut self, mut room: Vec<u8>, size: usize) -> Chunk {
        // Room that large frames once needed is no reason to read more.
        let size = LEFT + size;
        room.resize(size, 0);
        // What is unpacked little by little fills a piece all the same: with small ones, readers would wait
        // for each other.
        let wanted = if self.most < size { size } else { LEFT + 1 };
        let (end, failed) = read(&mut *self.input, &mut room, LEFT, wanted, self.most);
        Chunk { room, range: LEFT..end, failed }
    }

    /// `left`, and what comes next: `n` bytes, if there are so many.
    fn piece(&mut self, room: impl FnOnce() -> Vec<u8>, size: usize, left: &[u8], n: usize) -> Chunk {
        let mut chunk = match self.ahead.take() {
            Some(chunk) => chunk,
            None => self.next(room(), size),
        };
        chunk.begin_with(left);
        let Range { start, end } = chunk.range;
        if end - start < n && chunk.failed.is_none() {
            let (end, failed) = read(&mut *self.input, &mut chunk.room, end, start + n, self.most);
            (chunk.range.end, chunk.failed) = (end, failed);
        }
        chunk
    }
}

/// The place of one reader at a stream that several read. Dropped, the others wait for it no more.
pub(crate) struct Seat {
    common: Arc<Common>,
    me: usize,
}

/// A stream that several readers read.
struct Common {
    /// Held while it is read.
    input: Mutex<Input>,
    state: Mutex<State>,
    /// The last reader went on.
    moved: Condvar,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Kept>,
    /// Pieces that all have passed, before those.
    passed: u64,
    /// Which piece each reader needs next; those that have gone need none.
    next: Vec<u64>,
    spare: Vec<Vec<u8>>,
}

impl State {
    /// Whether that piece may be read before those that are here have been passed by all. The last reader
    /// never waits: what is here begins with what it needs next, and where nothing is, there is room.
    fn has_room_for(&self, wanted: u64) -> bool {
        let ahead: usize = self.pieces.iter().map(|kept| kept.bytes.len()).sum();
        wanted < self.passed.saturating_add(AHEAD) && (self.pieces.is_empty() || ahead < AHEAD_BYTES)
    }
}

struct Kept {
    /// Where in the stream it begins.
    offset: u64,
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
    failed: Option<io::Error>,
}

impl Seat {
    /// Places for so many readers; at most `most` bytes are asked for at once.
    pub(crate) fn at(input: Box<dyn Read + Send>, most: usize, readers: usize) -> Vec<Seat> {
        let state = State { next: vec![0; readers], ..State::default() };
        let input = Input { input, most, ahead: None };
        let common = Common { input: Mutex::new(input), state: Mutex::new(state), moved: Condvar::new() };
        let common = Arc::new(common);
        (0..readers).map(|me| Seat { common: Arc::clone(&common), me }).collect()
    }

    /// The next piece, after the one that `before` holds, of which `left` is not done with. It begins at
    /// `offset`, with that, and has `n` bytes if the stream has so many. All readers see the same bytes and
    /// so ask alike: the first of them makes the piece.
    pub(crate) fn next(
        &self,
        offset: u64,
        before: &mut Arc<Vec<u8>>,
        left: Range<usize>,
        n: usize,
    ) -> io::Result<Piece> {
        let Seat { common, me } = self;
        // Small at first, for behind what a small file begins with there is mostly nothing.
        let size = (before.len() * 2).min(BUFFER);
        let wanted = match common.wait(*me) {
            Ok(here) => here,
            Err(wanted) => {
                // A decoder that panicked took the stream with it.
                let mut input = common.input.lock().map_err(|_| io::Error::other("reading it failed"))?;
                // Another one may have read it meanwhile.
                if !common.has(wanted) {
                    let left = before.get(left).unwrap_or_default();
                    let Chunk { room, range, failed } = input.piece(|| common.room(), size, left, n);
                    common.state().pieces.push_back(Kept { offset, bytes: Arc::new(room), range, failed });
                }
                wanted
            }
        };
        let piece = common.take(*me, wanted, offset, before)?;
        if piece.failed.is_none() && !piece.range.is_empty() {
            common.read_ahead(wanted + 1, size);
        }
        Ok(piece)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.common.state();
        if let Some(next) = state.next.get_mut(self.me) {
            *next = u64::MAX;
        }
        self.common.pass(&mut state);
    }
}

impl Common {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which piece is next for reader `me`, once it is not far before the last reader; an error: it is not here yet.
    fn wait(&self, me: usize) -> Result<u64, u64> {
        let mut state = self.state();
        loop {
            let wanted = state.next.get(me).copied().unwrap_or(u64::MAX);
            if wanted < state.passed + state.pieces.len() as u64 {
                return Ok(wanted);
            }
            if state.has_room_for(wanted) {
                return Err(wanted);
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether that piece is here.
    fn has(&self, wanted: u64) -> bool {
        let state = self.state();
        wanted < state.passed + state.pieces.len() as u64
    }

    /// Room for a piece: that of one which all have passed, if there is any.
    fn room(&self) -> Vec<u8> {
        self.state().spare.pop().unwrap_or_default()
    }

    /// Reads what that piece will have behind what is left of the one before, unless it is here or another
    /// one reads: so nobody has to wait for it who comes to its end meanwhile.
    fn read_ahead(&self, next: u64, size: usize) {
        // Who panicked tells of it.
        let Ok(mut input) = self.input.try_lock() else { return };
        if input.ahead.is_none() && !self.has(next) {
            input.ahead = Some(input.next(self.room(), size));
        }
    }

    /// Gives reader `me` that piece instead of the one before.
    fn take(&self, me: usize, wanted: u64, offset: u64, before: &mut Arc<Vec<u8>>) -> io::Result<Piece> {
        let mut state = self.state();
        let at = wanted.saturating_sub(state.passed) as usize;
        let Some(kept) = state.pieces.get(at).filter(|kept| kept.offset == offset) else {
            return Err(io::Error::other("its readers parted"));
        };
        let piece = Piece { range: kept.range.clone(), failed: kept.failed.as_ref().map(again) };
        let before = mem::replace(before, Arc::clone(&kept.bytes));
        if let Some(next) = state.next.get_mut(me) {
            *next += 1;
        }
        self.pass(&mut state);
        // Who leaves a piece last gives back its room.
        if let Ok(room) = Arc::try_unwrap(before) {
            state.spare.push(room);
        }
        Ok(piece)
    }

    /// Lets go of what all have passed.
    fn pass(&self, state: &mut State) {
        let last = state.next.iter().copied().min().unwrap_or(u64::MAX);
        while state.passed < last && state.pieces.pop_front().is_some() {
            state.passed += 1;
            self.moved.notify_all();
        }
    }
}

/// A copy of the error, for another reader.
fn again(e: &io::Error) -> io::Error {
    match e.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(e.kind(), e.to_string()),
    }
}
