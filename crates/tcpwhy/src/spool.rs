//! Standard input and pipes that have to be read twice, or beside other inputs: written to a temporary file
//! first, which goes when the program ends.

use crate::temporary::Temporary;
use anyhow::Context as _;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tcpwhy_library::captures;

/// Beyond this the disk of somebody else might fill up: who has more has it in a file.
const MOST: u64 = 4 << 30;

/// The file; dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Spool {
    file: Temporary,
    /// What it holds is called so.
    pub(crate) name: String,
    /// An interrupt ended it before its end.
    pub(crate) interrupted: bool,
}

impl Spool {
    /// Copies what can be read once and is called `name` until its end, or until `stop` is set.
    pub(crate) fn fill(
        name: &str,
        stream: io::Result<Box<dyn Read>>,
        stop: &AtomicBool,
    ) -> anyhow::Result<Spool> {
        let folder = std::env::temp_dir();
        let named = || format!("cannot keep {name} in {}: set TMPDIR to a place with room", folder.display());
        let unread = || format!("cannot read {name}");
        let (mut file, temporary) =
            Temporary::file(&folder, "tcpwhy-", ".capture", true).with_context(named)?;
        let mut input = stream.with_context(unread)?;
        let mut buffer = vec![0; 256 << 10];
        let mut size = 0;
        while !stop.load(Ordering::Relaxed) {
            let n = match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e).with_context(unread),
            };
            size += n as u64;
            if size > MOST {
                anyhow::bail!("{name} is larger than 4 GiB: it has to be read twice, so write it to a file");
            }
            file.write_all(&buffer[..n]).with_context(named)?;
        }
        let interrupted = stop.load(Ordering::Relaxed);
        Ok(Spool { file: temporary, name: name.to_owned(), interrupted })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }
}

/// Whether an interrupt ended one of them.
pub(crate) fn interrupted(spools: &[Spool]) -> bool {
    spools.iter().any(|spool| spool.interrupted)
}

/// An interrupt ended the reading: the file ends where it came, be it within a packet.
pub(crate) fn tell(spools: &[Spool], read: &mut captures::Read) {
    read.interrupted |= interrupted(spools);
    read.damaged.retain(|said| !spools.iter().any(|s| s.interrupted && said.starts_with(&s.name)));
}
