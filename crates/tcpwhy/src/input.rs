//! The inputs: their names, their order, and what is said when one cannot be read.

use crate::spool::{self, Spool};
use crate::stdin::Stdin;
use crate::{items, shown};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_base::Nanos;
use tcpwhy_library::captures::Capture;
use tcpwhy_library::{ReadError, Reader};

/// An input that could be opened.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Where it is; `-` is standard input.
    pub(crate) path: PathBuf,
    /// What it is called in messages.
    pub(crate) name: String,
}

impl Capture for Input {
    fn open(&self) -> Result<Reader, String> {
        Input::open(self)
    }

    fn open_following(&self, stop: &Arc<AtomicBool>) -> Result<Reader, String> {
        // A pipe whose writers have ended does not grow any more.
        if self.is_stdin() || Stdin::is_pipe(&self.path) {
            return Input::open(self);
        }
        self.check().map_err(|why| shown::name(&why).into_owned())?;
        Reader::open_following(&self.path, Arc::clone(stop)).map_err(|e| Input::said(self, &e))
    }

    fn size(&self) -> Option<u64> {
        fs::metadata(&self.path).ok().filter(|m| m.is_file()).map(|m| m.len())
    }

    fn said(&self, error: &ReadError) -> String {
        Input::said(self, error)
    }

    fn is_stream(&self) -> bool {
        Input::is_stream(self)
    }
}

impl Input {
    /// A file, or `-` for standard input.
    pub(crate) fn new(path: &Path) -> Input {
        let name = if is_stdin(path) { "standard input".into() } else { path.display().to_string() };
        Input { path: path.into(), name }
    }

    /// Its name without directories, for short lines.
    pub(crate) fn base(&self) -> String {
        // The file that keeps a pipe has no name that says anything.
        let own = self.path.file_name().filter(|n| self.name.ends_with(&*n.to_string_lossy()));
        own.map_or_else(|| self.name.clone(), |n| n.to_string_lossy().into_owned())
    }

    /// Whether it can be read once: standard input, or a pipe with a name.
    pub(crate) fn is_stream(&self) -> bool {
        self.is_stdin() || Stdin::is_any_pipe(&self.path)
    }

    fn is_stdin(&self) -> bool {
        is_stdin(&self.path)
    }

    /// What it brings, if it is a stream.
    pub(crate) fn stream(&self) -> io::Result<Box<dyn Read>> {
        if self.is_stdin() {
            return Ok(Box::new(Stdin::open()?));
        }
        Ok(match Stdin::of_pipe(&self.path) {
            Some(pipe) => Box::new(pipe?),
            None => Box::new(fs::File::open(&self.path)?),
        })
    }

    /// Opens it, or says in one sentence why not and what to do.
    pub(crate) fn open(&self) -> Result<Reader, String> {
        self.opened().map_err(|why| shown::name(&why).into_owned())
    }

    fn opened(&self) -> Result<Reader, String> {
        if self.is_stdin() {
            let input = Stdin::open().map_err(|e| format!("{}: {e}", self.name))?;
            return Reader::new(Box::new(input)).map_err(|e| self.said(&e));
        }
        self.check()?;
        if let Some(pipe) = Stdin::of_pipe(&self.path) {
            let pipe = pipe.map_err(|e| self.cannot_open(&e))?;
            return Reader::new(Box::new(pipe)).map_err(|e| self.said(&e));
        }
        if self.is_empty() {
            return Err(format!(
                "{}: the file is empty. Did the capture program see packets, and was it stopped? tcpdump -U \
                 writes each packet at once",
                self.name
            ));
        }
        Reader::open(&self.path).map_err(|e| self.said(&e))
    }

    /// A file that holds nothing. Of those that the kernel makes (`/proc`) no length is told.
    fn is_empty(&self) -> bool {
        let told = fs::metadata(&self.path).is_ok_and(|m| m.is_file() && m.len() == 0);
        told && fs::File::open(&self.path).and_then(|mut file| file.read(&mut [0])).is_ok_and(|n| n == 0)
    }

    /// An error of the reader with the name of the input, once.
    pub(crate) fn said(&self, error: &ReadError) -> String {
        let said = error.to_string();
        let said = if said.contains(&self.name) { said } else { format!("{}: {said}", self.name) };
        shown::name(&said).into_owned()
    }

    fn cannot_open(&self, error: &io::Error) -> String {
        let name = &self.name;
        match error.kind() {
            io::ErrorKind::NotFound if name == "version" => {
                format!("{name}: no such file. Check the name; the version is said by tcpwhy --version")
            }
            io::ErrorKind::NotFound => format!("{name}: no such file. Check the name"),
            io::ErrorKind::PermissionDenied => denied(name),
            _ => format!("{name}: {error}. Check the path"),
        }
    }

    /// What the file system can tell before anything is read.
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let meta = fs::metadata(&self.path).map_err(|e| self.cannot_open(&e))?;
        if meta.is_dir() {
            let why = denied_folder(&self.path);
            return Err(why.unwrap_or_else(|| {
                format!(
                    "{name}: this is a directory. Name the captures in it, such as {}/*.pcap",
                    shown::argument(name.as_ref())
                )
            }));
        }
        if Stdin::is_pipe(&self.path) {
            return Ok(());
        }
        match fs::File::open(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(denied(name)),
            _ => Ok(()),
        }
    }
}

fn denied(name: &str) -> String {
    let argument = shown::argument(name.as_ref());
    format!("{name}: no permission to read it. Ask its owner, or pipe it in: sudo cat {argument} | tcpwhy -")
}

/// What is said of a folder that may not be read, if it is one: what is in it is not known.
pub(crate) fn denied_folder(path: &Path) -> Option<String> {
    let denied = fs::read_dir(path).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
    denied.then(|| {
        format!(
            "{}: no permission to read this folder. Ask its owner, or run this as a user who may",
            path.display()
        )
    })
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What was found where captures are looked for.
#[derive(Debug, Default)]
pub(crate) struct Ordered {
    /// In the order of their first packets.
    pub(crate) inputs: Vec<Input>,
    /// Sentences about those that cannot be read.
    pub(crate) unreadable: Vec<String>,
    /// What lay in a folder beside captures, in one sentence.
    pub(crate) foreign: Option<String>,
    /// Streams among them, kept to be read again.
    pub(crate) spools: Vec<Spool>,
}

impl Ordered {
    /// Keeps what can be read once alone; what cannot be read is no input, nor one that an interrupt ended
    /// before it brought anything.
    fn kept(&mut self, stream: &Input, stop: &AtomicBool) -> anyhow::Result<Option<Input>> {
        if !stream.is_stdin()
            && let Err(problem) = stream.check()
        {
            self.unreadable.push(shown::text(&problem).into_owned());
            return Ok(None);
        }
        let spool = Spool::fill(&stream.name, stream.stream(), stop)?;
        // It is called what it was.
        let input = Input { path: spool.path().into(), name: spool.name.clone() };
        let is_none = spool.interrupted && input.size() == Some(0);
        self.spools.push(spool);
        Ok((!is_none).then_some(input))
    }
}

/// Looks at files, and in folders for the captures in them; what is no capture there is passed over. What an
/// interrupt (`stop`) leaves unopened is an input all the same. Streams are kept in files where they are read
/// `twice`, or are not the only input.
pub(crate) fn in_order(paths: &[PathBuf], twice: bool, stop: &AtomicBool) -> anyhow::Result<Ordered> {
    let mut found = Ordered::default();
    if let [one] = paths
        && !one.is_dir()
    {
        let input = Input::new(one);
        let input = if twice && input.is_stream() { found.kept(&input, stop)? } else { Some(input) };
        found.inputs.extend(input);
    } else {
        among(paths, &mut found, stop)?;
    }
    if spool::interrupted(&found.spools) {
        // What was taken off a pipe is analysed; a second interrupt ends the program.
        stop.store(false, Relaxed);
    }
    Ok(found)
}

/// The inputs, each of them opened, in the order of their first packets.
fn among(paths: &[PathBuf], found: &mut Ordered, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut timed: Vec<(Option<Nanos>, Input)> = Vec::new();
    let mut foreign = Vec::new();
    for item in items::among(paths, None) {
        let mut input = Input::new(&item.path);
        if input.is_stream() {
            let Some(kept) = found.kept(&input, stop)? else { continue };
            input = kept;
        }
        match input.open() {
            // What is wrong within the file is said when it is read.
            Ok(mut reader) => timed.push((reader.next().ok().flatten().map(|f| f.time), input)),
            Err(_) if stop.load(Relaxed) => timed.push((None, input)),
            Err(_) if item.is_foreign() => foreign.push(input.name),
            Err(problem) => found.unreadable.push(problem),
        }
    }
    if timed.is_empty() && found.unreadable.is_empty() && found.spools.is_empty() {
        let folders: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        let folders = folders.join(", ");
        found
            .unreadable
            .push(format!("{}: no capture is in this folder. Check the name", shown::name(&folders)));
    }
    timed.sort_by_key(|(first, _)| first.unwrap_or(Nanos::MAX));
    found.inputs = timed.into_iter().map(|t| t.1).collect();
    found.foreign = if found.inputs.is_empty() { None } else { passed_over(&foreign) };
    Ok(())
}

fn passed_over(foreign: &[String]) -> Option<String> {
    let first = shown::name(foreign.first()?);
    Some(match foreign.len() {
        1 => format!("1 file is no capture and was passed over: {first}"),
        n => format!("{n} files are no captures and were passed over: {first}, ..."),
    })
}
