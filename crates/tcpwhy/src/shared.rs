//! What one thread reads while another writes already.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use tcpwhy_base::Nanos;

/// What the reader knows and lines need to.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The time of the first frame: moment 0.
    start: OnceLock<Nanos>,
    /// Frames in the inputs before each that was begun.
    frames_before: Mutex<Vec<u64>>,
    /// Packets were wrapped in tags or tunnels.
    wrapped: AtomicBool,
}

impl Shared {
    /// The first frame was read.
    pub(crate) fn begin(&self, time: Nanos) {
        self.start.get_or_init(|| time);
    }

    /// Another input begins, after so many frames.
    pub(crate) fn begin_input(&self, frames_before: u64) {
        self.frames_before.lock().unwrap_or_else(PoisonError::into_inner).push(frames_before);
    }

    /// Packets are wrapped in tags or tunnels.
    pub(crate) fn set_wrapped(&self) {
        self.wrapped.store(true, Relaxed);
    }

    /// Whether any packet so far was.
    pub(crate) fn is_wrapped(&self) -> bool {
        self.wrapped.load(Relaxed)
    }

    /// Moment 0, if there was a frame.
    pub(crate) fn start(&self) -> Option<Nanos> {
        self.start.get().copied()
    }

    /// Frames in the inputs before each that was begun.
    pub(crate) fn frames_before(&self) -> Vec<u64> {
        self.frames_before.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
