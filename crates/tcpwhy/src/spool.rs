//! Standard input that has to be read twice: written to a temporary file first, which goes when the program ends.

use crate::input::Input;
use crate::stdin::Stdin;
use crate::temporary::Temporary;
use anyhow::Context as _;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Beyond this the disk of somebody else might fill up: who has more has it in a file.
const MOST: u64 = 4 << 30;

/// The file; dropped, it is removed.
pub(crate) struct Spool {
    file: Temporary,
    /// An interrupt ended it before its end.
    pub(crate) interrupted: bool,
}

impl Spool {
    /// Copies standard input until its end, or until `stop` is set.
    pub(crate) fn fill(stop: &AtomicBool) -> anyhow::Result<Spool> {
        let folder = std::env::temp_dir();
        let named =
            || format!("cannot keep standard input in {}: set TMPDIR to a place with room", folder.display());
        let (mut file, temporary) =
            Temporary::file(&folder, "tcpwhy-", ".capture", true).with_context(named)?;
        let mut input = Stdin::open().context("cannot read standard input")?;
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
        let interrupted = stop.swap(false, Ordering::Relaxed);
        Ok(Spool { file: temporary, interrupted })
    }

    /// The file as an input that is called what it was.
    pub(crate) fn input(&self) -> Input {
        Input { path: self.file.path().into(), name: "standard input".into() }
    }
}
