//! Work that takes memory: so much of it at once, the rest waits in a queue that has an end.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Who waits longer is told to come back.
const PATIENCE: Duration = Duration::from_secs(60);

/// Turns to be had.
pub(super) struct Turns {
    /// Free ones, and how many wait.
    state: Mutex<(usize, usize)>,
    freed: Condvar,
    queue: usize,
}

/// A turn; dropped, it is over.
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    /// So many at once, and so many that wait.
    pub(super) fn new(at_once: usize, queue: usize) -> Turns {
        Turns { state: Mutex::new((at_once, 0)), freed: Condvar::new(), queue }
    }

    /// Waits for a turn; none where too many wait already or it takes too long.
    pub(super) fn take(&self) -> Option<Turn<'_>> {
        self.take_within(PATIENCE)
    }

    /// A turn that nobody else wants now.
    pub(super) fn take_if_free(&self) -> Option<Turn<'_>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let free = state.0 > 0 && state.1 == 0;
        state.0 -= usize::from(free);
        free.then(|| Turn(self))
    }

    /// Whether somebody waits for one.
    pub(super) fn is_wanted(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 > 0
    }

    fn take_within(&self, patience: Duration) -> Option<Turn<'_>> {
        let until = Instant::now() + patience;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0 == 0 && state.1 >= self.queue {
            return None;
        }
        state.1 += 1;
        while state.0 == 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.freed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.1 -= 1;
        let free = state.0 > 0;
        state.0 -= usize::from(free);
        // Only a turn that was taken may be given back.
        free.then(|| Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_a_queue_with_an_end() {
        let turns = Turns::new(1, 1);
        let first = turns.take().unwrap();
        assert!(turns.take_within(Duration::from_millis(1)).is_none(), "it takes too long");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| turns.take().is_some());
            while turns.state.lock().unwrap().1 == 0 {
                std::thread::yield_now();
            }
            assert!(turns.take().is_none(), "the queue is full");
            assert!(turns.is_wanted() && turns.take_if_free().is_none());
            drop(first);
            assert!(second.join().unwrap(), "who waited gets it");
        });
        assert!(turns.take().is_some() && !turns.is_wanted());
        let free = turns.take_if_free();
        assert!(free.is_some() && turns.take_if_free().is_none(), "one at a time");
    }
}
