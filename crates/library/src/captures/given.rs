//! A capture that is opened already, read and analysed in the thread of the caller, as
//! [`Explain`](crate::Explain) does it.

use super::read::read_given;
use super::reading::Sink;
use super::said::Said;
use super::{Captures, Read};
use crate::{Filter, ReadError, Reader};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_analysis::Analyzer;
use tcpwhy_base::{Part, Segment};

/// Segments that are read before they are analysed: the state of their connections is fetched together, and they are
/// still in the first cache.
const TURN: usize = 64;

/// Is called after each turn, and at the end; it may break off.
pub(crate) type After<'a> = dyn FnMut(&mut Analyzer) -> ControlFlow<()> + 'a;

/// What is wanted of a capture.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) part: Part,
    pub(crate) filter: Option<&'a Filter>,
    /// Reading stops soon after this is set.
    pub(crate) stop: Option<&'a AtomicBool>,
}

/// Gives the analyzer all of the capture; what was read, and the damage that it ended in.
pub(crate) fn read(
    mut reader: Reader,
    wanted: Wanted<'_>,
    analyzer: &mut Analyzer,
    after: &mut After<'_>,
) -> (Read, Option<ReadError>) {
    let captures = Captures::<PathBuf>::new(&[]).filter(wanted.filter);
    let segments = Box::new([Segment::EMPTY; TURN]);
    let mut turns = Turns { segments, used: 0, analyzer, after, stop: wanted.stop };
    let (mut read, damage) = read_given(&captures, wanted.part, &mut reader, &mut turns);
    if !read.interrupted {
        turns.push();
        read.interrupted = (turns.after)(turns.analyzer).is_break();
    }
    (read, damage)
}

/// Reading and analysis in turns of so many frames.
struct Turns<'a, 'b> {
    segments: Box<[Segment; TURN]>,
    used: usize,
    analyzer: &'a mut Analyzer,
    after: &'a mut After<'b>,
    stop: Option<&'a AtomicBool>,
}

impl Turns<'_, '_> {
    fn push(&mut self) {
        self.analyzer.push_all(&self.segments[..self.used]);
        self.used = 0;
    }
}

impl Sink for Turns<'_, '_> {
    /// Counted in frames: of what is no TCP, or filtered away, none becomes a segment.
    const LOOK: u64 = TURN as u64;

    fn look(&mut self) -> ControlFlow<()> {
        self.push();
        if self.stop.is_some_and(|stop| stop.load(Relaxed)) {
            return ControlFlow::Break(());
        }
        (self.after)(self.analyzer)
    }
    #[inline]
    fn slot(&mut self) -> &mut Segment {
        &mut self.segments[self.used % TURN]
    }
    #[inline]
    fn keep(&mut self) {
        self.used += 1;
    }
    fn hear(&mut self, said: Said) {
        self.push();
        self.analyzer.observe(said.observation());
    }
    fn is_eager(&self) -> bool {
        false
    }
    fn hand_over(&mut self) {}
}
