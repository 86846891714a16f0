//! One stream for several readers, each in a thread of its own: its bytes are read (and unpacked) once, by whoever needs them first, and
//! lie once in memory for all.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// So many pieces the first reader may be before the last: enough that unequal work evens out, few enough to stay in the third cache.
const AHEAD: u64 = 16;

/// What is known of a piece beside its bytes.
pub(crate) struct Piece {
    /// How many there are.
    pub(crate) end: usize,
    /// What went wrong behind them.
    pub(crate) failed: Option<io::Error>,
}

/// The place of one reader at a stream that several read. Dropped, the others wait for it no more.
pub(crate) struct Seat {
    common: Arc<Common>,
    me: usize,
}

/// A stream that several readers read.
struct Common {
    /// Held while it is read.
    input: Mutex<Box<dyn Read + Send>>,
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

struct Kept {
    /// Where in the stream it begins.
    offset: u64,
    bytes: Arc<Vec<u8>>,
    end: usize,
    failed: Option<io::Error>,
}

impl Seat {
    /// Places for so many readers.
    pub(crate) fn at(input: Box<dyn Read + Send>, readers: usize) -> Vec<Seat> {
        let state = State { next: vec![0; readers], ..State::default() };
        let common = Common { input: Mutex::new(input), state: Mutex::new(state), moved: Condvar::new() };
        let common = Arc::new(common);
        (0..readers).map(|me| Seat { common: Arc::clone(&common), me }).collect()
    }

    /// The next piece, after the one that `before` holds. It begins at `offset`, with what is left of `before`. All readers see the same bytes
    /// and so ask alike: the first of them has `read` make the piece, in the room that it is given, and say how many bytes of that it filled.
    pub(crate) fn next(
        &self,
        offset: u64,
        before: &mut Arc<Vec<u8>>,
        read: impl FnOnce(&mut dyn Read, &mut Vec<u8>, &[u8]) -> (usize, Option<io::Error>),
    ) -> io::Result<Piece> {
        let Seat { common, me } = self;
        let wanted = match common.wait(*me) {
            Ok(here) => here,
            Err(wanted) => {
                // A decoder that panicked took the stream with it.
                let mut input = common.input.lock().map_err(|_| io::Error::other("reading it failed"))?;
                // Another one may have read it meanwhile.
                let room = common.room_for(wanted);
                if let Some(mut room) = room {
                    let (end, failed) = read(&mut **input, &mut room, before);
                    common.state().pieces.push_back(Kept { offset, bytes: Arc::new(room), end, failed });
                }
                wanted
            }
        };
        common.take(*me, wanted, offset, before)
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
            if wanted < state.passed.saturating_add(AHEAD) {
                return Err(wanted);
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Room for the piece, unless it is here.
    fn room_for(&self, wanted: u64) -> Option<Vec<u8>> {
        let mut state = self.state();
        let is_here = wanted < state.passed + state.pieces.len() as u64;
        (!is_here).then(|| state.spare.pop().unwrap_or_default())
    }

    /// Gives reader `me` that piece instead of the one before.
    fn take(&self, me: usize, wanted: u64, offset: u64, before: &mut Arc<Vec<u8>>) -> io::Result<Piece> {
        let mut state = self.state();
        let at = wanted.saturating_sub(state.passed) as usize;
        let Some(kept) = state.pieces.get(at).filter(|kept| kept.offset == offset) else {
            return Err(io::Error::other("its readers parted"));
        };
        let piece = Piece { end: kept.end, failed: kept.failed.as_ref().map(again) };
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

/// The same error for another reader.
fn again(e: &io::Error) -> io::Error {
    match e.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(e.kind(), e.to_string()),
    }
}
