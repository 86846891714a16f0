//! Several threads write to one place in turns, each what it made itself: what it writes is in its own cache then.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Whose turn it is.
pub(super) struct Turn<'a, W> {
    state: Mutex<State<'a, W>>,
    moved: Condvar,
}

struct State<'a, W> {
    out: &'a mut W,
    /// The piece that is to be written next.
    next: usize,
    written: io::Result<()>,
}

/// A thread that writes some pieces; if it panics, the others wait for none of its.
pub(super) struct Writer<'t, 'a, W: Write>(pub(super) &'t Turn<'a, W>);

impl<W: Write> Writer<'_, '_, W> {
    /// Writes this piece behind those before it, or says why there is none. `false`: no piece is written any more.
    pub(super) fn write(&self, piece: usize, bytes: io::Result<&[u8]>) -> bool {
        self.0.write(piece, bytes)
    }
}

impl<W: Write> Drop for Writer<'_, '_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().written = Err(io::Error::other("a thread that wrote has panicked"));
            self.0.moved.notify_all();
        }
    }
}

impl<'a, W: Write> Turn<'a, W> {
    pub(super) fn new(out: &'a mut W) -> Turn<'a, W> {
        Turn { state: Mutex::new(State { out, next: 0, written: Ok(()) }), moved: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<'a, W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, piece: usize, bytes: io::Result<&[u8]>) -> bool {
        let mut state = self.state();
        while state.next != piece && state.written.is_ok() {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.written.is_ok() {
            let written = bytes.and_then(|bytes| state.out.write_all(bytes));
            state.written = written;
            state.next += 1;
        }
        let goes_on = state.written.is_ok();
        drop(state);
        self.moved.notify_all();
        goes_on
    }

    /// What came of it.
    pub(super) fn end(self) -> io::Result<()> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    /// Three threads write thirty pieces; of one of them `fill` may say that there is none, or panic.
    fn written(
        out: &mut (impl Write + Send),
        fill: impl Fn(usize) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        let turn = Turn::new(out);
        thread::scope(|scope| {
            for worker in 0..3 {
                let (turn, fill) = (&turn, &fill);
                scope.spawn(move || {
                    let writer = Writer(turn);
                    for piece in (worker..30).step_by(3) {
                        let bytes = [piece as u8; 2];
                        if !writer.write(piece, fill(piece).map(|()| &bytes[..])) {
                            break;
                        }
                    }
                });
            }
        });
        turn.end()
    }

    #[test]
    fn pieces_stand_in_their_order() {
        let mut out = Vec::new();
        written(&mut out, |_| Ok(())).unwrap();
        assert_eq!(out, (0..30).flat_map(|piece| [piece; 2]).collect::<Vec<u8>>());
    }

    #[test]
    fn what_cannot_be_made_or_written_ends_it() {
        let mut out = Vec::new();
        let missing = |piece| if piece == 7 { Err(io::Error::other("no seventh")) } else { Ok(()) };
        assert_eq!(written(&mut out, missing).unwrap_err().to_string(), "no seventh");
        assert_eq!(out.len(), 14);
        let mut room = [0; 9];
        let error = written(&mut room.as_mut_slice(), |_| Ok(())).unwrap_err();
        assert_eq!((error.kind(), room), (io::ErrorKind::WriteZero, [0, 0, 1, 1, 2, 2, 3, 3, 4]));
    }

    #[test]
    fn nobody_waits_for_one_that_panicked() {
        let mut out = Vec::new();
        let dies = |piece| if piece == 4 { panic!("a fault") } else { Ok(()) };
        // The scope says so; before, the others have stopped.
        assert!(catch_unwind(AssertUnwindSafe(|| written(&mut out, dies))).is_err());
        assert!(out.len() <= 8 && out.is_sorted(), "{out:?}");
    }
}
