//! Standard input that has to be read twice: written to a temporary file first, which goes when the program ends.

use crate::input::Input;
use anyhow::Context as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Beyond this the disk of somebody else might fill up: who has more has it in a file.
const MOST: u64 = 4 << 30;

/// The file; dropped, it is removed.
pub(crate) struct Spool {
    path: PathBuf,
}

impl Spool {
    /// Copies standard input until its end, or until `stop` is set.
    pub(crate) fn fill(stop: &AtomicBool) -> anyhow::Result<Spool> {
        let path = std::env::temp_dir().join(format!("tcpwhy-{}.capture", std::process::id()));
        let named =
            || format!("cannot keep standard input in {}: set TMPDIR to a place with room", path.display());
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).with_context(named)?;
        let spool = Spool { path: path.clone() };
        let mut input = io::stdin().lock();
        let mut buffer = vec![0; 256 << 10];
        let mut size = 0;
        while !stop.load(Ordering::Relaxed) {
            let n = match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e).context("cannot read standard input"),
            };
            size += n as u64;
            if size > MOST {
                anyhow::bail!(
                    "standard input is larger than 4 GiB: graphs need a second look, so write it to a file"
                );
            }
            file.write_all(&buffer[..n]).with_context(named)?;
        }
        // What was taken off the pipe is analysed; a second interrupt ends the program.
        stop.store(false, Ordering::Relaxed);
        Ok(spool)
    }

    /// The file as an input that is called what it was.
    pub(crate) fn input(&self) -> Input {
        Input { path: self.path.clone(), name: "standard input".into() }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // Nothing is lost if it stays; the system clears its temporary files.
        let _ = fs::remove_file(&self.path);
    }
}
