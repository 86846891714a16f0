//! The work without the interpreter's lock, and an interrupt that ends it.

use crate::source::Source;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tcpwhy_capture::ReadError;
use tcpwhy_library::Explain;
use tcpwhy_tables::Rows;

/// Between looks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// What was made of all inputs.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) rows: Rows,
    pub(crate) packets: u64,
    pub(crate) damaged: Vec<(String, String)>,
    pub(crate) failed: Vec<(String, ReadError)>,
}

/// Runs it in a thread of its own. KeyboardInterrupt, or what a handler of signals raises, sets the flag and is raised here once the
/// work has ended.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Arc<AtomicBool>) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let (send, mut receive) = channel();
    let worker = thread::spawn(move || {
        // Who waits may have been interrupted.
        let _ = send.send(work(theirs));
    });
    let mut raised = None;
    let done = loop {
        let (back, got) = py.detach(move || {
            let got = receive.recv_timeout(LOOK);
            (receive, got)
        });
        receive = back;
        match got {
            Ok(done) => break Some(done),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals() {
                    stop.store(true, Relaxed);
                    raised = raised.or(Some(error));
                }
            }
        }
    };
    py.detach(|| worker.join().ok());
    match (raised, done) {
        (Some(error), _) => Err(error),
        (None, Some(done)) => Ok(done),
        (None, None) => Err(crate::TcpwhyError::new_err("the analysis failed: please report this")),
    }
}

/// Explains each input by itself, `threads` at a time (0: one for each core).
pub(crate) fn explain(sources: &[Source], explain: &Explain, threads: usize, stop: &AtomicBool) -> Done {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let n = if threads == 0 { cores() } else { threads }.min(sources.len());
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(usize, Done)>> = Mutex::default();
    let worker = || {
        while let Some((at, source)) =
            Some(next.fetch_add(1, Relaxed)).and_then(|i| Some((i, sources.get(i)?)))
        {
            let done = one(source, explain);
            all.lock().unwrap_or_else(PoisonError::into_inner).push((at, done));
            if stop.load(Relaxed) {
                break;
            }
        }
    };
    thread::scope(|scope| {
        (1..n).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|(at, _)| *at);
    let mut sum = Done::default();
    for (_, done) in all {
        sum.rows.append(done.rows);
        sum.packets += done.packets;
        sum.damaged.extend(done.damaged);
        sum.failed.extend(done.failed);
    }
    sum.rows.sort();
    sum
}

fn one(source: &Source, explain: &Explain) -> Done {
    let mut done = Done::default();
    let name = source.name();
    let reader = match source.open() {
        Ok(reader) => reader,
        Err(error) => {
            done.failed.push((name, error));
            return done;
        }
    };
    let capture: Arc<str> = name.as_str().into();
    let ended = explain.each(reader, |connection| {
        done.rows.add(&capture, connection);
        ControlFlow::Continue(())
    });
    let start = ended.input.span.map_or_else(Default::default, |s| s.0);
    done.rows.add_findings(&capture, start, ended.findings);
    done.packets = ended.input.packets;
    done.damaged.extend(ended.input.damage.map(|damage| (name, damage.to_string())));
    done
}
