//! The inputs: their names, their order, and what is said when one cannot be read.

use crate::stdin::Stdin;
use crate::{items, shown};
use std::fs;
use std::io;
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
        self.check().map_err(|why| shown::text(&why).into_owned())?;
        Reader::open_following(&self.path, Arc::clone(stop)).map_err(|e| Input::said(self, &e))
    }

    fn size(&self) -> Option<u64> {
        fs::metadata(&self.path).ok().filter(|m| m.is_file()).map(|m| m.len())
    }

    fn said(&self, error: &ReadError) -> String {
        Input::said(self, error)
    }

    fn is_stream(&self) -> bool {
        self.is_stdin()
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
        self.path.file_name().map_or_else(|| self.name.clone(), |n| n.to_string_lossy().into_owned())
    }

    /// Whether it can be read a second time.
    pub(crate) fn is_stdin(&self) -> bool {
        is_stdin(&self.path)
    }

    /// Opens it, or says in one sentence why not and what to do.
    pub(crate) fn open(&self) -> Result<Reader, String> {
        self.opened().map_err(|why| shown::text(&why).into_owned())
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
        if fs::metadata(&self.path).is_ok_and(|m| m.is_file() && m.len() == 0) {
            return Err(format!(
                "{}: the file is empty. Did the capture program see packets, and was it stopped? tcpdump -U \
                 writes each packet at once",
                self.name
            ));
        }
        Reader::open(&self.path).map_err(|e| self.said(&e))
    }

    /// An error of the reader with the name of the input, once.
    pub(crate) fn said(&self, error: &ReadError) -> String {
        let said = error.to_string();
        let said = if said.contains(&self.name) { said } else { format!("{}: {said}", self.name) };
        shown::text(&said).into_owned()
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
}

/// Looks at files, and in folders for the captures in them; what is no capture there is passed over. What an interrupt (`stop`) leaves
/// unopened is an input all the same.
pub(crate) fn in_order(paths: &[PathBuf], stop: &AtomicBool) -> Ordered {
    if let [one] = paths
        && !one.is_dir()
    {
        return Ordered { inputs: vec![Input::new(one)], ..Ordered::default() };
    }
    let mut timed: Vec<(Option<Nanos>, Input)> = Vec::new();
    let mut unreadable = Vec::new();
    let mut foreign = Vec::new();
    for item in items::among(paths, None) {
        let input = Input::new(&item.path);
        match input.open() {
            // What is wrong within the file is said when it is read.
            Ok(mut reader) => timed.push((reader.next().ok().flatten().map(|f| f.time), input)),
            Err(_) if stop.load(Relaxed) => timed.push((None, input)),
            Err(_) if item.is_foreign() => foreign.push(input.name),
            Err(problem) => unreadable.push(problem),
        }
    }
    if timed.is_empty() && unreadable.is_empty() {
        let folders: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        let folders = folders.join(", ");
        unreadable.push(format!("{}: no capture is in this folder. Check the name", shown::text(&folders)));
    }
    timed.sort_by_key(|(first, _)| first.unwrap_or(Nanos::MAX));
    let inputs: Vec<Input> = timed.into_iter().map(|t| t.1).collect();
    let foreign = if inputs.is_empty() { None } else { passed_over(&foreign) };
    Ordered { inputs, unreadable, foreign }
}

fn passed_over(foreign: &[String]) -> Option<String> {
    let first = foreign.first()?;
    Some(match foreign.len() {
        1 => format!("1 file is no capture and was passed over: {first}"),
        n => format!("{n} files are no captures and were passed over: {first}, ..."),
    })
}
