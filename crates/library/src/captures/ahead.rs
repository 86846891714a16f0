//! What a thread that is far ahead of another one dissects for it, instead of waiting: where one connection
//! is nearly all of a capture, one core would read, dissect and analyse, and the others pass over it.
//!
//! All readers of a capture [give](tcpwhy_capture::Reader::give_here) the same stretches of frames. Of one in
//! which there is nothing but TCP, no state is left behind but counts and times, so that it may be passed
//! over by whoever has its segments already.

use crate::clock::Clock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tcpwhy_base::{Nanos, Part, Segment};

/// Frames of a stretch, at the most: their segments stay in the second cache.
pub(super) const STRETCH: u64 = 512;
/// Who is so many bytes ahead, a piece of those that all read, has time for others.
const LEAD: u64 = 1 << 18;
/// So many stretches at most lie ready for one thread, of small packets as many as it may be behind: with
/// fewer, those behind them would be passed over by whoever has time. They take 8 MB.
const READY: usize = 96;

/// A stretch of frames, dissected.
pub(super) struct Stretch {
    /// Frames of its input before it.
    pub(super) at: u64,
    /// The segments in it of one part of the connections, the first `used` of these.
    pub(super) segments: Box<[Segment]>,
    pub(super) used: usize,
    /// Its frames, and their bytes.
    pub(super) frames: u64,
    pub(super) bytes: usize,
    /// When the last of them was stamped.
    pub(super) last: Nanos,
    /// The clock of the input behind it, and its earliest frame.
    pub(super) clock: Clock,
    pub(super) first: Nanos,
}

/// What threads that read one input do for each other.
struct Common {
    threads: Vec<Thread>,
}

/// One of them.
struct Thread {
    /// How far it is, bytes.
    at: AtomicU64,
    /// How many stretches lie ready.
    ready: AtomicUsize,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    ready: VecDeque<Stretch>,
    /// Somebody dissects, or has dissected, what lies before this frame.
    claimed: u64,
    spare: Vec<Box<[Segment]>>,
}

/// The place of one thread; dropped, nothing is done for it any more.
pub(super) struct Helper {
    common: Arc<Common>,
    pub(super) me: usize,
}

impl Helper {
    /// For so many threads.
    pub(super) fn all(threads: usize) -> Vec<Helper> {
        let new = || Thread { at: AtomicU64::new(0), ready: AtomicUsize::new(0), inbox: Mutex::default() };
        let common = Arc::new(Common { threads: (0..threads).map(|_| new()).collect() });
        (0..threads).map(|me| Helper { common: Arc::clone(&common), me }).collect()
    }

    fn thread(&self, of: usize) -> Option<&Thread> {
        self.common.threads.get(of)
    }

    /// The connections of that thread.
    pub(super) fn part(&self, of: usize) -> Part {
        Part::new(of, self.common.threads.len())
    }

    /// It is there, in bytes.
    pub(super) fn is_at(&self, offset: u64) {
        self.thread(self.me).into_iter().for_each(|me| me.at.store(offset, Relaxed));
    }

    /// What another thread has dissected for this one from that frame on.
    pub(super) fn take(&self, frames: u64) -> Option<Stretch> {
        let me = self.thread(self.me).filter(|me| me.ready.load(Relaxed) > 0)?;
        let mut inbox = me.inbox();
        let mut found = None;
        while let Some(stretch) = inbox.ready.pop_front_if(|stretch| stretch.at <= frames) {
            if stretch.at == frames {
                found = Some(stretch);
                break;
            }
            inbox.spare.push(stretch.segments);
        }
        me.ready.store(inbox.ready.len(), Relaxed);
        found
    }

    /// Room of a stretch for that thread is used again.
    pub(super) fn give_back(&self, of: usize, room: Box<[Segment]>) {
        if let Some(thread) = self.thread(of) {
            thread.inbox().spare.push(room);
        }
    }

    /// Which thread is so far behind that it is worth to dissect for it what this one reads next, from that
    /// frame on; and room for that.
    pub(super) fn for_whom(&self, offset: u64, frames: u64) -> Option<(usize, Box<[Segment]>)> {
        let others = self.common.threads.iter().enumerate().filter(|(of, _)| *of != self.me);
        let (of, last) = others.min_by_key(|(_, thread)| thread.at.load(Relaxed))?;
        let far = last.at.load(Relaxed).saturating_add(LEAD) <= offset;
        if !far || last.ready.load(Relaxed) >= READY {
            return None;
        }
        let mut inbox = last.inbox();
        if frames < inbox.claimed {
            return None;
        }
        inbox.claimed = frames + 1;
        let room = inbox.spare.pop();
        drop(inbox);
        Some((of, room.unwrap_or_else(|| vec![Segment::EMPTY; STRETCH as usize].into())))
    }

    /// This lies ready for that thread.
    pub(super) fn put(&self, of: usize, stretch: Stretch) {
        let Some(thread) = self.thread(of) else { return };
        let mut inbox = thread.inbox();
        inbox.ready.push_back(stretch);
        thread.ready.store(inbox.ready.len(), Relaxed);
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.is_at(u64::MAX);
    }
}

impl Thread {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
