//! Where the answer goes: standard output, or a file that appears whole or not at all.

use anyhow::Context as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// An open output. Dropped without [`Output::finish`], it leaves no trace.
pub(crate) struct Output {
    to: BufWriter<Box<dyn Write + Send>>,
    name: String,
    pending: Option<Pending>,
    /// Columns of the terminal that shows it; `None` if it is none.
    pub(crate) width: Option<usize>,
}

impl Output {
    /// The file at `path`, or standard output. `plain` bytes hold no colours to be looked for.
    pub(crate) fn open(path: Option<&Path>, plain: bool) -> anyhow::Result<Output> {
        let Some(path) = path else {
            let shown = io::stdout().is_terminal() && !plain;
            let columns = || terminal_size::terminal_size().map_or(80, |(w, _)| usize::from(w.0));
            let to: Box<dyn Write + Send> =
                if plain { Box::new(raw_stdout()) } else { Box::new(anstream::stdout()) };
            return Ok(Output {
                to: buffer(to),
                name: "standard output".into(),
                pending: None,
                width: shown.then(columns),
            });
        };
        // A device or a pipe cannot be renamed over.
        let (file, pending) = if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            (File::options().write(true).open(path).with_context(|| cannot_write(path))?, None)
        } else {
            let (file, pending) = Pending::create(path).with_context(|| cannot_write(path))?;
            (file, Some(pending))
        };
        let to: Box<dyn Write + Send> =
            if plain { Box::new(file) } else { Box::new(anstream::StripStream::new(file)) };
        Ok(Output { to: buffer(to), name: path.display().to_string(), pending, width: None })
    }

    /// If everything was written, the file takes its name; else it goes.
    pub(crate) fn finish(mut self, written: anyhow::Result<()>) -> anyhow::Result<()> {
        let done = written.and_then(|()| Ok(self.to.flush()?)).and_then(|()| match self.pending.take() {
            None => Ok(()),
            Some(pending) => Ok(pending.rename()?),
        });
        // What failed in writing is about the output; anything else speaks for itself.
        done.map_err(
            |e| if e.is::<io::Error>() { e.context(format!("cannot write {}", self.name)) } else { e },
        )
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn buffer(to: Box<dyn Write + Send>) -> BufWriter<Box<dyn Write + Send>> {
    BufWriter::with_capacity(256 << 10, to)
}

/// Standard output without the line buffer of [`io::stdout`].
#[cfg(unix)]
fn raw_stdout() -> impl Write + Send {
    use std::os::fd::AsFd;
    let stdout = io::stdout();
    match stdout.as_fd().try_clone_to_owned() {
        Ok(fd) => Either::File(File::from(fd)),
        Err(_) => Either::Stdout(stdout),
    }
}

#[cfg(not(unix))]
fn raw_stdout() -> impl Write + Send {
    io::stdout()
}

#[cfg(unix)]
enum Either {
    File(File),
    Stdout(io::Stdout),
}

#[cfg(unix)]
impl Write for Either {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Either::File(f) => f.write(bytes),
            Either::Stdout(s) => s.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Either::File(f) => f.flush(),
            Either::Stdout(s) => s.flush(),
        }
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// A temporary file in the directory of its target.
struct Pending {
    temporary: PathBuf,
    target: PathBuf,
    renamed: bool,
}

impl Pending {
    fn create(target: &Path) -> io::Result<(File, Pending)> {
        if target.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory: name a file"));
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let temporary = target.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = File::options().write(true).create_new(true).open(&temporary)?;
        Ok((file, Pending { temporary, target: target.into(), renamed: false }))
    }

    fn rename(mut self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.target)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.renamed {
            // The error that brought us here is the one to report.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
