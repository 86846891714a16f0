//! Where the answer goes: standard output, or a file that appears whole or not at all.

use crate::closed;
use crate::failure::Usage;
use crate::items;
use crate::temporary::Temporary;
use anyhow::{Context as _, bail};
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

/// Refuses an output that is one of the inputs, by whatever name or in a folder of them, and two outputs with
/// one name. `-` and devices are no files that could be lost.
pub(crate) fn refuse_overwriting(outputs: &[Option<&Path>], inputs: &[PathBuf]) -> anyhow::Result<()> {
    let outputs: Vec<&Path> = outputs.iter().flatten().copied().filter(|p| !is_dash(p)).collect();
    let inputs = if outputs.is_empty() { Vec::new() } else { items::among(inputs, None) };
    for (n, path) in outputs.iter().enumerate() {
        if inputs.iter().any(|i| same_file(&i.path, path) && !i.is_foreign()) {
            bail!(Usage(format!(
                "{} is an input and would be overwritten: choose another name",
                path.display()
            )));
        }
        if outputs[..n].iter().any(|other| same_name(other, path)) {
            bail!(Usage(format!("{} is named for two outputs: give each its own name", path.display())));
        }
    }
    Ok(())
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Both are one regular file, be it by another path, a symbolic link or a hard link.
fn same_file(a: &Path, b: &Path) -> bool {
    let (Ok(a_meta), Ok(b_meta)) = (fs::metadata(a), fs::metadata(b)) else { return false };
    if !a_meta.is_file() || !b_meta.is_file() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (a_meta.dev(), a_meta.ino()) == (b_meta.dev(), b_meta.ino())
    }
    #[cfg(not(unix))]
    {
        matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
    }
}

/// Two names of what would become one file, whether it exists yet or not. A device may be written to twice.
fn same_name(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let path = followed(path);
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    let is_device = fs::metadata(a).is_ok_and(|m| !m.is_file() && !m.is_dir());
    !is_device && (same_file(a, b) || place(a).is_some_and(|a| place(b) == Some(a)))
}

impl Output {
    /// Opens a second output beside the answer, which standard output is for; `option` is what names it.
    pub(crate) fn beside(path: &Path, option: &str) -> anyhow::Result<Output> {
        if path.as_os_str() == "-" {
            bail!(Usage(format!("{option} -: standard output is for the answer; name a file")));
        }
        Output::open(Some(path), true)
    }

    /// Standard error, for an answer beside what somebody else prints.
    pub(crate) fn standard_error() -> Output {
        let columns = || terminal_size::terminal_size_of(io::stderr()).map_or(80, |(w, _)| usize::from(w.0));
        let width = io::stderr().is_terminal().then(columns);
        Output {
            to: buffer(Box::new(anstream::stderr())),
            name: "standard error".into(),
            pending: None,
            width,
        }
    }

    /// The file at `path`, or standard output (none, or `-`). `plain` bytes hold no colours to be looked for.
    /// [`refuse_overwriting`] comes first.
    pub(crate) fn open(path: Option<&Path>, plain: bool) -> anyhow::Result<Output> {
        let Some(path) = path.filter(|p| !is_dash(p)) else {
            closed::is_open().context("cannot write standard output")?;
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

/// Documents and lines come in pieces of this size and more, which are not copied once again.
fn buffer(to: Box<dyn Write + Send>) -> BufWriter<Box<dyn Write + Send>> {
    BufWriter::with_capacity(64 << 10, to)
}

/// Standard output without the line buffer of [`io::stdout`].
#[cfg(unix)]
fn raw_stdout() -> impl Write + Send {
    use std::os::fd::AsFd;
    let stdout = io::stdout();
    match stdout.as_fd().try_clone_to_owned() {
        Ok(fd) => {
            #[cfg(target_os = "linux")]
            widen(&fd);
            Either::File(File::from(fd))
        }
        Err(_) => Either::Stdout(stdout),
    }
}

/// A pipe that holds more than the usual 64 KiB: who reads it and who writes wait for each other half as often.
#[cfg(target_os = "linux")]
fn widen(fd: &std::os::fd::OwnedFd) {
    const PIPE: usize = 1 << 20;
    // What is no pipe has no size, and where too much is in use it stays as it is.
    if rustix::pipe::fcntl_getpipe_size(fd).is_ok_and(|size| size < PIPE) {
        let _ = rustix::pipe::fcntl_setpipe_size(fd, PIPE);
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

/// Where symbolic links lead, also where nothing stands yet. As many as the kernel follows (`MAXSYMLINKS`).
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..40 {
        let Ok(to) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(to);
    }
    path
}

/// A temporary file in the directory of its target, which it replaces once everything was written. A symbolic link
/// stays one: what it leads to is replaced; and permissions of what was there stay.
struct Pending {
    temporary: Temporary,
    target: PathBuf,
}

impl Pending {
    fn create(path: &Path) -> io::Result<(File, Pending)> {
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory: name a file"));
        }
        let target = followed(path);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (file, temporary) = Temporary::file(folder, &format!(".{name}."), ".part", false)?;
        if let Ok(there) = fs::metadata(&target) {
            file.set_permissions(there.permissions())?;
        }
        Ok((file, Pending { temporary, target }))
    }

    fn rename(self) -> io::Result<()> {
        fs::rename(self.temporary.path(), &self.target)?;
        self.temporary.forget();
        Ok(())
    }
}
