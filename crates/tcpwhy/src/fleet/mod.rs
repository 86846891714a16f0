//! `--parquet`: captures, each by itself, to tables. Workers take one after the other; what they have
//! finished is told by a manifest, from which the next call goes on.

mod batch;
pub(crate) mod manifest;

use crate::args::Explain;
use crate::failure::{Exit, Usage, say};
use crate::input::Input;
use crate::items::{self, Item};
use crate::{load, shown, taps, warnings};
use anyhow::{Context as _, bail};
use batch::Batch;
use manifest::{Before, Done, Manifest, Stamp};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;
use tcpwhy_library::Explain as Explainer;
use tcpwhy_library::captures::OddClock;
use tcpwhy_library::{ReadError, Reader};
use tcpwhy_report::{bytes, count};
use tcpwhy_tables::Table;

/// What was done, over all workers.
#[derive(Debug, Default)]
struct Tally {
    captures: u64,
    rows: [usize; 4],
    bytes: u64,
    before: u64,
    foreign: u64,
    damaged: u64,
    unread: u64,
    aside: u64,
}

/// What the workers share.
struct Work<'a> {
    args: &'a Explain,
    folder: &'a Path,
    items: &'a [Item],
    next: AtomicUsize,
    manifest: Mutex<Manifest>,
    tally: Mutex<Tally>,
    /// Set by an interrupt, or by the worker that failed.
    stop: &'a Arc<AtomicBool>,
}

/// Makes the folder of tables, if it is not there. The folder that it is in has to be: a name that was misspelt makes none.
pub(crate) fn make(folder: &Path) -> anyhow::Result<()> {
    match std::fs::create_dir(folder) {
        Err(e) if !folder.is_dir() => Err(e).with_context(|| format!("cannot make {}", folder.display())),
        _ => Ok(()),
    }
}

/// Explains the files and folders that are named, and writes tables into `folder`.
pub(crate) fn run(args: &Explain, folder: &Path, stop: &Arc<AtomicBool>) -> anyhow::Result<Exit> {
    let begun = Instant::now();
    make(folder)?;
    let manifest = Manifest::open(folder)?;
    let items = items::among(&args.files, Some(folder));
    if items.is_empty() {
        bail!(Usage(
            "no file is in the folders that were named: name captures, or a folder with captures".into()
        ));
    }
    if let [first, second] = args.files.as_slice()
        && !args.apart
        && taps::are_two([&Input::new(first), &Input::new(second)], stop)
    {
        // Each file has its own rows, whatever else is asked about.
        say(&format!(
            "{} and {} hold the same connections, seen from two ends: tables have each of them twice, once by each end",
            shown::argument(first.as_os_str()),
            shown::argument(second.as_os_str())
        ));
    }
    let work = Work {
        args,
        folder,
        items: &items,
        next: AtomicUsize::new(0),
        manifest: Mutex::new(manifest),
        tally: Mutex::default(),
        stop,
    };
    let cores = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let ended: Vec<anyhow::Result<()>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(|| work.work())).collect();
        let lost = || Err(anyhow::anyhow!("the analysis failed: please report this"));
        workers.into_iter().map(|w| w.join().unwrap_or_else(|_| lost())).collect()
    });
    for failed in ended {
        // What it could not write to, and why, stands in the error; what was written whole stays.
        failed.map_err(|e| {
            anyhow::anyhow!(
                "{e:#}; put that right, and the same command goes on from the captures that are done"
            )
        })?;
    }
    let tally = work.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tell(args, folder, &tally, begun)?;
    Ok(if stop.load(Relaxed) {
        say(
            "interrupted: the tables hold the captures that were finished; the same command goes on from there",
        );
        Exit::Interrupted
    } else if tally.captures + tally.before == 0 {
        if tally.unread == 0 {
            say("none of the files is a capture");
        }
        Exit::Unreadable
    } else if tally.damaged + tally.unread > 0 {
        Exit::Damaged
    } else {
        Exit::Done
    })
}

/// One line about it all.
fn tell(args: &Explain, folder: &Path, tally: &Tally, begun: Instant) -> anyhow::Result<()> {
    if args.quiet {
        return Ok(());
    }
    // The name of a table is that of many rows.
    let row = |(table, n): (&Table, usize)| count(n as u64, table.name().trim_end_matches('s'));
    let rows: Vec<String> = Table::ALL.iter().zip(tally.rows).map(row).collect();
    let mut line = format!(
        "{} in {:.1} s: {}; {} written to {}",
        count(tally.captures, "capture"),
        begun.elapsed().as_secs_f64(),
        rows.join(", "),
        bytes(tally.bytes),
        folder.display()
    );
    for (n, what) in [
        (tally.before, "were done before"),
        (tally.damaged, "are damaged: what could be read is there"),
        (tally.aside, "are left aside for their clocks, without rows"),
        (tally.unread, "could not be read"),
        (tally.foreign, "are no captures"),
    ] {
        if n > 0 {
            line.push_str(&format!("; {n} {what}"));
        }
    }
    writeln!(anstream::stdout().lock(), "{line}")?;
    Ok(())
}

impl Work<'_> {
    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn manifest(&self) -> std::sync::MutexGuard<'_, Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one input after the other. Where it fails the others stop too: what they would write to has the
    /// same fault.
    fn work(&self) -> anyhow::Result<()> {
        let mut batch = Batch::new(self.folder);
        let mut go_on = || {
            while !self.stop.load(Relaxed)
                && let Some(item) = self.items.get(self.next.fetch_add(1, Relaxed))
            {
                self.one(item, &mut batch)?;
                if batch.is_due() {
                    self.commit(&mut batch)?;
                }
            }
            self.commit(&mut batch)
        };
        let ended = go_on();
        if ended.is_err() {
            self.stop.store(true, Relaxed);
        }
        ended
    }

    /// What the batch holds is on the disk, and the manifest says so.
    fn commit(&self, batch: &mut Batch) -> anyhow::Result<()> {
        let Some((written, inputs)) = batch.take(|| self.manifest().next_set())? else { return Ok(()) };
        let mut tally = self.tally();
        tally.bytes += written.bytes;
        tally.captures += inputs.len() as u64;
        for done in &inputs {
            tally.rows.iter_mut().zip(done.rows).for_each(|(sum, n)| *sum += n);
        }
        drop(tally);
        self.manifest().commit(&written, &inputs)?;
        Ok(written.publish(self.folder)?)
    }

    /// Explains one input, unless that is done.
    fn one(&self, item: &Item, batch: &mut Batch) -> anyhow::Result<()> {
        let input = Input::new(&item.path);
        let stamp = Stamp::of(&item.path);
        match self.manifest().before(&stamp) {
            Before::New => {}
            Before::Same(problem) => {
                let mut tally = self.tally();
                tally.before += 1;
                // What could be read of it is all that the tables have, today as then.
                if let Some(problem) = problem {
                    say(&problem);
                    tally.damaged += 1;
                }
                return Ok(());
            }
            Before::Other => {
                return self.unread(&format!(
                    "{}: it has changed since its rows were written, and they stay as they are; write to another folder",
                    input.name
                ));
            }
        }
        let reader = match self.open(item, &input) {
            Ok(reader) => reader,
            Err(None) => return Ok(()),
            // Who interrupts while nothing has come yet has not damaged it.
            Err(Some(_)) if self.stop.load(Relaxed) => return Ok(()),
            Err(Some(problem)) => return self.unread(&problem),
        };
        // A fault of ours costs the capture that shows it, and no other.
        let explained = panic::catch_unwind(AssertUnwindSafe(|| self.explain(&input, stamp, reader, batch)));
        explained.unwrap_or_else(|_| {
            batch.drop_own();
            self.unread(&format!(
                "{}: the analysis failed on it, and nothing of it is kept: please report this",
                input.name
            ))
        })
    }

    /// `Err(None)`: a file of a folder that is no capture.
    fn open(&self, item: &Item, input: &Input) -> Result<Reader, Option<String>> {
        if item.found {
            match Reader::open(&item.path) {
                Ok(reader) => return Ok(reader),
                Err(ReadError::NotCapture(_)) => {
                    self.tally().foreign += 1;
                    return Err(None);
                }
                Err(_) => {}
            }
        }
        input.open().map_err(Some)
    }

    fn unread(&self, problem: &str) -> anyhow::Result<()> {
        say(problem);
        self.tally().unread += 1;
        Ok(())
    }

    fn explain(&self, input: &Input, stamp: Stamp, reader: Reader, batch: &mut Batch) -> anyhow::Result<()> {
        let capture: Arc<str> = input.name.as_str().into();
        batch.begin();
        let fails = cfg!(debug_assertions).then(|| std::env::var("TCPWHY_TEST_PANIC").ok()).flatten();
        assert!(fails.is_none_or(|name| !capture.ends_with(&name)), "as asked for");
        let mut failed = None;
        let mut explainer = Explainer::new().without_settings().stopped_by(Arc::clone(self.stop));
        if let Some(filter) = &self.args.filter {
            explainer = explainer.filter(filter.clone());
        }
        let ended = explainer.each(reader, |connection| {
            batch.add(&capture, connection);
            if !batch.is_full() {
                return ControlFlow::Continue(());
            }
            // What was whole before this input gets files of its own, so that this one can still be dropped.
            let set = || self.manifest().next_set();
            let spilt = batch.leave_own(|batch| self.commit(batch)).and_then(|()| batch.spill(set));
            match spilt {
                Ok(()) => ControlFlow::Continue(()),
                Err(e) => {
                    failed = Some(e);
                    ControlFlow::Break(())
                }
            }
        });
        if ended.input.stopped {
            batch.drop_own();
            return failed.map_or(Ok(()), Err);
        }
        if stamp != Stamp::of(&input.path) {
            batch.drop_own();
            return self.unread(&format!(
                "{}: it is still being written, so nothing of it is kept; the same command reads it once it is closed",
                input.name
            ));
        }
        if let Some(clock) = ended.input.odd_clock.filter(|_| self.items.len() > 1) {
            return self.set_aside(input, stamp, &clock, batch);
        }
        let mut problem = ended.input.damage.as_ref().map(|damage| input.said(damage));
        if let (0, Some(&(link, _))) = (ended.input.counts.tcp, ended.input.counts.unknown_links.first()) {
            problem = problem.or_else(|| Some(format!("{}: {}", input.name, warnings::unknown_link(link))));
        }
        if let Some(problem) = &problem {
            say(problem);
            self.tally().damaged += 1;
        }
        let start = ended.input.span.map_or_else(Default::default, |s| s.0);
        let rows = batch.end(&capture, start, ended.findings);
        batch.done(Done { stamp, rows, problem, aside: false });
        Ok(())
    }

    /// One of several captures whose clock nobody had set would be all that is left of sums over the tables:
    /// it has no rows, and that is how it is done.
    fn set_aside(
        &self,
        input: &Input,
        stamp: Stamp,
        clock: &OddClock,
        batch: &mut Batch,
    ) -> anyhow::Result<()> {
        batch.drop_own();
        let how = load::how_odd(std::slice::from_ref(clock)).unwrap_or_default();
        let problem = format!(
            "{}: left aside, because the clock {how}, and no sum with such times means anything; explain it alone, with tables in \
             another folder",
            input.name
        );
        say(&problem);
        self.tally().aside += 1;
        batch.done(Done { stamp, rows: [0; 4], problem: Some(problem), aside: true });
        Ok(())
    }
}
