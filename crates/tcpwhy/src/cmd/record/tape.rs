//! The file: whole blocks only, whatever happens to its disk.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Bytes that are given to the disk at once.
const ENOUGH: usize = 256 << 10;

/// A file to which each `write_all` is a block: it is cut behind the last whole one if it cannot be written any more.
#[derive(Debug)]
pub(super) struct Tape {
    file: File,
    /// What stood there before still does: until there are bytes of this recording, it may come to nothing.
    untouched: bool,
    /// Not written yet.
    waiting: Vec<u8>,
    /// Where blocks end in it.
    ends: Vec<usize>,
    /// What the file holds.
    written: u64,
}

impl Tape {
    /// Opens the file, which is made if it is not there; what it holds goes with the first bytes that are written.
    pub(super) fn open(path: &Path) -> io::Result<Tape> {
        Ok(Tape::of(File::options().write(true).create(true).truncate(false).open(path)?))
    }

    /// A file that is open for writing; what it holds goes with the first bytes that are written.
    pub(super) fn of(file: File) -> Tape {
        Tape { file, untouched: true, waiting: Vec::new(), ends: Vec::new(), written: 0 }
    }

    /// Bytes of whole blocks.
    pub(super) fn len(&self) -> u64 {
        self.written
    }

    /// Nothing of it stays.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        (self.waiting, self.ends, self.written) = (Vec::new(), Vec::new(), 0);
        self.file.set_len(0)
    }

    /// Writes as much as the disk takes; after a failure the file ends with a whole block.
    fn give(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.untouched) && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        let mut at = 0;
        while let Some(rest) = self.waiting.get(at..).filter(|r| !r.is_empty()) {
            match self.file.write(rest) {
                Ok(0) => return self.cut(at, io::ErrorKind::WriteZero.into()),
                Ok(n) => at += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return self.cut(at, e),
            }
        }
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        self.ends.clear();
        Ok(())
    }

    fn cut(&mut self, at: usize, why: io::Error) -> io::Result<()> {
        let whole = self.ends.iter().copied().take_while(|end| *end <= at).last().unwrap_or(0);
        self.written += whole as u64;
        // A pipe cannot be cut, and its reader has what it has.
        let _ = self.file.set_len(self.written);
        self.waiting.clear();
        self.ends.clear();
        Err(why)
    }
}

impl Write for Tape {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        self.waiting.extend(block);
        self.ends.push(self.waiting.len());
        if self.waiting.len() >= ENOUGH {
            self.give()?;
        }
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.give()
    }
}
