//! What a worker has read and not yet made known: rows, files that have no names yet, and the inputs that
//! they hold. Either all inputs in it are whole, or it holds the one that is being read alone; so that one
//! can be dropped.

use super::manifest::Done;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tcpwhy_base::Nanos;
use tcpwhy_library::{Connection, Finding};
use tcpwhy_tables::{Rows, Writer, Written};

/// Rows that are held at once, about 50 MB; a group of rows has so many.
const ROWS: usize = 1 << 18;
/// Groups in a set of files.
const GROUPS: usize = 16;
/// Work that an end by force may cost.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Batch {
    folder: PathBuf,
    rows: Rows,
    /// How many of them are of inputs that were read to their ends.
    whole: [usize; 4],
    /// Rows of the input that is being read and that were spilt already.
    spilt: Option<[usize; 4]>,
    writer: Option<Writer>,
    groups: usize,
    inputs: Vec<Done>,
    since: Instant,
}

impl Batch {
    pub(super) fn new(folder: &Path) -> Batch {
        Batch {
            folder: folder.into(),
            rows: Rows::new(),
            whole: [0; 4],
            spilt: None,
            writer: None,
            groups: 0,
            inputs: Vec::new(),
            since: Instant::now(),
        }
    }

    /// Another input begins.
    pub(super) fn begin(&mut self) {
        self.whole = self.rows.lengths();
        self.spilt = None;
        if self.inputs.is_empty() {
            self.since = Instant::now();
        }
    }

    pub(super) fn add(&mut self, capture: &Arc<str>, connection: &Connection) {
        self.rows.add(capture, connection);
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= ROWS
    }

    /// It should be made known.
    pub(super) fn is_due(&self) -> bool {
        self.groups >= GROUPS || self.since.elapsed() >= PATIENCE
    }

    /// Commits all but the input that is being read.
    pub(super) fn leave_own(
        &mut self,
        commit: impl FnOnce(&mut Batch) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if self.inputs.is_empty() {
            return Ok(());
        }
        let own = self.rows.split_off(self.whole);
        commit(self)?;
        self.rows = own;
        self.whole = [0; 4];
        Ok(())
    }

    /// Writes all rows to files, of the set that `set` numbers.
    pub(super) fn spill(&mut self, set: impl FnOnce() -> u64) -> anyhow::Result<()> {
        let own = self.rows.lengths();
        let sum = self.spilt.get_or_insert_default();
        sum.iter_mut().zip(own.into_iter().zip(self.whole)).for_each(|(sum, (n, before))| *sum += n - before);
        self.write(set)
    }

    fn write(&mut self, set: impl FnOnce() -> u64) -> anyhow::Result<()> {
        let writer =
            self.writer.get_or_insert_with(|| Writer::new(&self.folder, format!("set-{:06}", set())));
        writer.write(std::mem::take(&mut self.rows))?;
        self.whole = [0; 4];
        self.groups += 1;
        Ok(())
    }

    /// Nothing of the input that is being read is kept.
    pub(super) fn drop_own(&mut self) {
        if self.spilt.take().is_some() {
            self.writer = None;
            self.groups = 0;
        }
        self.rows.truncate(self.whole);
    }

    /// The input was read to its end; gives how many rows it has.
    pub(super) fn end(&mut self, capture: &Arc<str>, start: Nanos, findings: Vec<Finding>) -> [usize; 4] {
        self.rows.add_findings(capture, start, findings);
        let spilt = self.spilt.take().unwrap_or_default();
        let mut rows = self.rows.lengths();
        for ((n, before), spilt) in rows.iter_mut().zip(self.whole).zip(spilt) {
            *n = *n - before + spilt;
        }
        self.whole = self.rows.lengths();
        rows
    }

    pub(super) fn done(&mut self, done: Done) {
        self.inputs.push(done);
    }

    /// Ends the files, and takes out what they hold. `None`: nothing.
    pub(super) fn take(&mut self, set: impl FnOnce() -> u64) -> anyhow::Result<Option<(Written, Vec<Done>)>> {
        if self.inputs.is_empty() {
            return Ok(None);
        }
        if !self.rows.is_empty() {
            self.write(set)?;
        }
        self.groups = 0;
        self.since = Instant::now();
        let written = self.writer.take().map(Writer::finish).transpose()?.unwrap_or_default();
        Ok(Some((written, std::mem::take(&mut self.inputs))))
    }
}
