//! Which inputs are done, and which files hold them: a line for each set of files, on the disk before the
//! files take their names.

use crate::failure::Usage;
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tcpwhy_tables::{SCHEMA, Table, Written};

/// Engines read no files whose names begin so.
const NAME: &str = "_manifest.jsonl";

/// By what an input is known again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    path: String,
    bytes: u64,
    modified_ns: u64,
}

/// An input that is done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    /// Connections, exchanges, spans, findings.
    pub(crate) rows: [usize; 4],
    /// How it is damaged, or why it was left aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// It was left aside for its clock, and has no rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) aside: bool,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    tool: String,
    tables: u32,
}

/// Every other line.
#[derive(Serialize, Deserialize)]
struct Set {
    set: u64,
    files: Vec<String>,
    inputs: Vec<Done>,
}

/// What the manifest says of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    New,
    /// It is done; how it is damaged, if it is.
    Same(Option<String>),
    /// A file of this name is done, and it was another one.
    Other,
}

/// An open manifest. While it is open no other run writes to the folder.
#[derive(Debug)]
pub(crate) struct Manifest {
    file: File,
    path: PathBuf,
    done: HashMap<String, Done>,
    sets: u64,
}

impl Stamp {
    /// What the system says of the file; standard input and what cannot be found have no size.
    pub(crate) fn of(path: &Path) -> Stamp {
        let whole = path.canonicalize().unwrap_or_else(|_| path.into());
        let meta = fs::metadata(&whole).ok().filter(fs::Metadata::is_file);
        let modified = meta.as_ref().and_then(|m| m.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        Stamp {
            path: whole.to_string_lossy().into_owned(),
            bytes: meta.map_or(0, |m| m.len()),
            modified_ns: modified.and_then(|t| u64::try_from(t.as_nanos()).ok()).unwrap_or(0),
        }
    }
}

impl Manifest {
    /// Opens or begins the manifest of this folder, and puts right what a run left that was ended by force.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Manifest> {
        let path = folder.join(NAME);
        let there = path.exists();
        if !there && let Some(table) = tables().find(|t| folder.join(t.name()).exists()) {
            bail!(Usage(format!(
                "{} holds {} and no {NAME}: choose a folder of its own for tables",
                folder.display(),
                table.name()
            )));
        }
        let cannot = || format!("cannot write {}", path.display());
        let mut options = File::options();
        let mut file = options.read(true).append(true).create(true).open(&path).with_context(cannot)?;
        if file.try_lock().is_err() {
            bail!(
                "{}: another run writes to it; wait for its end, or choose another folder",
                folder.display()
            );
        }
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(cannot)?;
        // A line that was not written to its end says nothing: the files of its set have no names.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64).with_context(cannot)?;
            file.seek(SeekFrom::End(0)).with_context(cannot)?;
        }
        let mut manifest = Manifest { file, path, done: HashMap::new(), sets: 0 };
        let files = manifest.read(&text[..whole])?;
        tidy_up(folder, &files);
        Ok(manifest)
    }

    /// Takes in its lines; gives the names of all files in it.
    fn read(&mut self, text: &str) -> anyhow::Result<HashSet<String>> {
        let mut lines = text.lines();
        let Some(first) = lines.next() else {
            let head = Head { tool: "tcpwhy".into(), tables: SCHEMA };
            self.append(&serde_json::to_string(&head)?)?;
            return Ok(HashSet::new());
        };
        let damaged = || format!("{} is damaged: choose another folder", self.path.display());
        let head: Head = serde_json::from_str(first).with_context(damaged)?;
        if head.tables != SCHEMA {
            bail!(Usage(format!(
                "{} is of tables of schema {}, and this program writes schema {SCHEMA}: choose another folder",
                self.path.display(),
                head.tables
            )));
        }
        let mut files = HashSet::new();
        for line in lines {
            let set: Set = serde_json::from_str(line)
                .with_context(|| format!("{} is damaged: choose another folder", self.path.display()))?;
            self.sets = self.sets.max(set.set);
            files.extend(set.files);
            self.done.extend(set.inputs.into_iter().map(|done| (done.stamp.path.clone(), done)));
        }
        Ok(files)
    }

    /// A number that no set has.
    pub(crate) fn next_set(&mut self) -> u64 {
        self.sets += 1;
        self.sets
    }

    /// What is known of this input. Standard input is never done.
    pub(crate) fn before(&self, stamp: &Stamp) -> Before {
        match self.done.get(&stamp.path) {
            Some(_) if stamp.path == "-" => Before::New,
            None => Before::New,
            Some(known) if known.stamp == *stamp => {
                Before::Same(known.problem.clone().filter(|_| !known.aside))
            }
            Some(_) => Before::Other,
        }
    }

    /// These inputs are in these files.
    pub(crate) fn commit(&mut self, written: &Written, inputs: &[Done]) -> anyhow::Result<()> {
        let set = written
            .files
            .first()
            .and_then(|name| name.rsplit_once("set-")?.1.strip_suffix(".parquet")?.parse().ok());
        let set =
            Set { set: set.unwrap_or(self.sets), files: written.files.clone(), inputs: inputs.to_vec() };
        self.append(&serde_json::to_string(&set)?)?;
        self.done.extend(set.inputs.into_iter().map(|done| (done.stamp.path.clone(), done)));
        Ok(())
    }

    fn append(&mut self, line: &str) -> anyhow::Result<()> {
        let written =
            self.file.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn tables() -> impl Iterator<Item = Table> {
    Table::ALL.into_iter().chain(Table::WATCH)
}

/// Files without names get theirs if the manifest knows them, and go if it does not. Files that it knows and
/// that are gone were removed by somebody who does not need that day any more.
fn tidy_up(folder: &Path, known: &HashSet<String>) {
    for table in tables() {
        for day in fs::read_dir(folder.join(table.name())).into_iter().flatten().flatten() {
            for file in fs::read_dir(day.path()).into_iter().flatten().flatten() {
                let name = file.file_name();
                let whole = name.to_str().and_then(|n| n.strip_prefix('.')?.strip_suffix(".part"));
                let Some(whole) = whole else { continue };
                let relative = format!("{}/{}/{whole}", table.name(), day.file_name().to_string_lossy());
                // What fails here shows when the file is needed.
                let _ = match known.contains(&relative) {
                    true => fs::rename(file.path(), file.path().with_file_name(whole)),
                    false => fs::remove_file(file.path()),
                };
            }
        }
    }
}
