//! `--jsonl`: lines are written while the input is still being read, so that memory does not grow with it.

use crate::output::Output;
use crate::pipeline::{self, Eater, Heard};
use crate::select;
use crate::shared::Shared;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_analysis::{Analyzer, Config, Finding, Totals, Window};
use tcpwhy_base::{Nanos, Segment};
use tcpwhy_report::json::{self, Context};

/// Bytes that are written at once.
const BLOCK: usize = 64 << 10;

/// How lines are to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style<'a> {
    /// What the reader knows.
    pub(crate) shared: &'a Shared,
    /// Set when nobody reads the lines any more.
    pub(crate) stop: &'a AtomicBool,
    /// Frames carry the index of their input.
    pub(crate) several: bool,
    /// Ids are tshark's, as long as nothing is wrapped in tags or tunnels.
    pub(crate) streams: bool,
    /// A connection is written so long after it closed, in the time of its packets.
    pub(crate) linger: Nanos,
    /// Exchanges that took no longer are only summed.
    pub(crate) slower_than: Option<Nanos>,
}

/// Analyses segments and writes the connections that end.
pub(crate) struct Live<'a> {
    analyzer: Analyzer,
    out: &'a mut Output,
    style: Style<'a>,
    bytes: Vec<u8>,
    written: io::Result<()>,
}

/// What is left when all connections have been written.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) findings: Vec<Finding>,
    pub(crate) totals: Totals,
    pub(crate) written: io::Result<()>,
}

impl<'a> Live<'a> {
    pub(crate) fn new(
        config: Config,
        window: Option<Window>,
        out: &'a mut Output,
        style: Style<'a>,
    ) -> Live<'a> {
        let analyzer = Analyzer::streaming(config).within(window).lingering(style.linger);
        Live { analyzer, out, style, bytes: Vec::with_capacity(2 * BLOCK), written: Ok(()) }
    }

    /// Writes those that have ended.
    fn write(&mut self) {
        let mut frames_before = None;
        let streams = self.style.streams && !self.style.shared.is_wrapped();
        for mut connection in self.analyzer.ended() {
            if self.written.is_err() {
                continue;
            }
            let frames_before = frames_before.get_or_insert_with(|| {
                let mut before = self.style.shared.frames_before();
                if self.style.several && before.len() < 2 {
                    before.push(u64::MAX);
                }
                before
            });
            if let Some(limit) = self.style.slower_than {
                select::only_slower_than(&mut connection, limit);
            }
            let cx = Context::live(self.style.shared.start().unwrap_or_default(), frames_before, streams);
            self.written = json::connection_line(&mut self.bytes, &connection, cx);
            if self.bytes.len() >= BLOCK && self.written.is_ok() {
                self.written = self.out.write_all(&self.bytes);
                self.bytes.clear();
            }
        }
    }

    fn flush(&mut self) {
        if self.written.is_ok() && !self.bytes.is_empty() {
            self.written = self.out.write_all(&self.bytes).and_then(|()| self.out.flush());
            self.bytes.clear();
        }
    }

    /// After the end.
    pub(crate) fn finish(self) -> Ended {
        let (findings, totals) = self.analyzer.finish_stream();
        Ended { findings, totals, written: self.written }
    }
}

impl Eater for Live<'_> {
    const EAGER: bool = true;

    fn eat(&mut self, segments: &[Segment], heard: &[Heard], starving: bool) {
        pipeline::observe_all(&mut self.analyzer, segments, heard);
        self.write();
        if starving {
            self.flush();
        }
        if self.written.is_err() {
            self.style.stop.store(true, Relaxed);
        }
    }

    fn end(&mut self) {
        self.analyzer.end_all();
        self.write();
        self.flush();
    }
}
