//! Every core reads all of the captures and analyses its part of the connections: nothing but bytes goes from
//! one to another, and none waits for what another one makes of them.

use super::ahead::Helper;
use super::read::{Opened, read_part};
use super::threads::{Eater, Turns};
use super::{Capture, Captures, Failed, Progress, Read};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tcpwhy_base::Part;

/// So many inputs the first thread may be before the last: small ones are many.
const AHEAD: usize = 16;

/// Gives each eater its part of the connections, in a thread of its own, and gives all of them back.
pub(super) fn abreast<C: Capture, E: Eater>(
    captures: &Captures<'_, C>,
    eaters: Vec<E>,
    progress: &mut Progress<'_>,
) -> Result<(Read, Vec<E>), Failed> {
    let n = eaters.len();
    let shelf = Shelf::new(n);
    let eat = |me: usize, eater: E, captures: &Captures<'_, C>, progress: &mut Progress<'_>| {
        let seat = Seat { shelf: &shelf, me };
        let mut turns = Turns::new(eater);
        let open = |index| seat.open(captures, index);
        let read = read_part(captures, Part::new(me, n), open, &mut turns, progress);
        (turns.end(), read)
    };
    // What is told while reading goes on is told once.
    let silent = Captures { meanwhile: None, ..*captures };
    thread::scope(|scope| {
        let mut eaters = eaters.into_iter().enumerate();
        let Some((me, first)) = eaters.next() else { return Err(Failed::Analysis) };
        let (eat, silent) = (&eat, &silent);
        let others: Vec<_> =
            eaters.map(|(me, eater)| scope.spawn(move || eat(me, eater, silent, &mut |_, _| ()).0)).collect();
        let (first, read) = eat(me, first, captures, progress);
        let mut done = vec![first];
        for other in others {
            done.push(other.join().map_err(|_| Failed::Analysis)?);
        }
        Ok((read, done))
    })
}

/// Inputs that some threads have begun and others not yet.
struct Shelf {
    state: Mutex<State>,
    /// The last thread went on.
    moved: Condvar,
}

struct State {
    /// Which input each thread opens next; those that have gone open none.
    next: Vec<usize>,
    opened: VecDeque<Kept>,
    /// Inputs that all have opened, before those.
    passed: usize,
}

/// An opened input: what each thread has not fetched yet.
type Kept = Vec<Option<Opened>>;

/// The place of one thread; dropped, the others wait for it no more, even where it panicked.
struct Seat<'a> {
    shelf: &'a Shelf,
    me: usize,
}

impl Shelf {
    fn new(threads: usize) -> Shelf {
        let state = State { next: vec![0; threads], opened: VecDeque::new(), passed: 0 };
        Shelf { state: Mutex::new(state), moved: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat<'_> {
    /// The input at `index`, opened once for all.
    fn open<C: Capture>(&self, captures: &Captures<'_, C>, index: usize) -> Opened {
        let mut state = self.shelf.state();
        while index >= state.passed + AHEAD {
            state = self.shelf.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if index >= state.passed + state.opened.len() {
            let kept = for_all(captures, index, &state.next);
            state.opened.push_back(kept);
        }
        let at = index.saturating_sub(state.passed);
        let mine = state.opened.get_mut(at).and_then(|kept| kept.get_mut(self.me)?.take());
        if let Some(next) = state.next.get_mut(self.me) {
            *next = index + 1;
        }
        self.pass(&mut state);
        mine.unwrap_or(Opened::Stopped)
    }

    /// Lets go of what all have fetched.
    fn pass(&self, state: &mut State) {
        let last = state.next.iter().copied().min().unwrap_or(usize::MAX);
        while state.passed < last && state.opened.pop_front().is_some() {
            state.passed += 1;
            self.shelf.moved.notify_all();
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut state = self.shelf.state();
        if let Some(next) = state.next.get_mut(self.me) {
            *next = usize::MAX;
        }
        // Nobody would read on in these.
        for kept in &mut state.opened {
            _ = kept.get_mut(self.me).and_then(Option::take);
        }
        self.pass(&mut state);
    }
}

/// Opens an input for all threads that are still there.
fn for_all<C: Capture>(captures: &Captures<'_, C>, index: usize, next: &[usize]) -> Kept {
    let there = next.iter().map(|&next| next != usize::MAX);
    match Opened::at(captures, index) {
        Opened::Reader(reader, _) => {
            // One that has gone drops its reader at once.
            let readers = reader.abreast(next.len()).into_iter();
            let mut readers = readers.zip(Helper::all(next.len()));
            let reader = |(reader, helper)| Opened::Reader(Box::new(reader), Some(helper));
            there.map(|is| readers.next().filter(|_| is).map(reader)).collect()
        }
        Opened::Not(why) => there.map(|is| is.then(|| Opened::Not(why.clone()))).collect(),
        Opened::Stopped => there.map(|is| is.then_some(Opened::Stopped)).collect(),
    }
}
