//! `tcpwhy summarize`: the tables of many captures to sums by cause, server and day. One pass over the
//! columns that are needed, a file at a time on each core; memory grows with servers and days, not with rows.

mod page;
mod scan;
mod shown;
mod text;

use crate::args::Summarize;
use crate::failure::{Exit, Usage, say};
use crate::input::denied_folder;
use crate::output::{self, Output};
use anyhow::bail;
use scan::Scan;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_library::parts::Distribution;
use tcpwhy_tables::{Error, Table};

/// Sums of some of the rows.
#[derive(Clone, Debug, Default)]
struct Group {
    connections: u64,
    /// Setup and exchanges by cause.
    requests: BTreeMap<Cause, Nanos>,
    /// Between exchanges by cause.
    idle: BTreeMap<Cause, Nanos>,
    times: Distribution,
}

/// Address and port.
type Server = (Arc<str>, u16);

/// An exchange that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slow {
    duration: Nanos,
    start: Nanos,
    capture: Arc<str>,
    connection: i64,
    exchange: i64,
    server: Server,
    /// What most of it went into.
    most: Option<(Cause, Nanos)>,
}

/// Everything that is said.
#[derive(Debug, Default)]
struct Summary {
    all: Group,
    servers: HashMap<Server, Group>,
    days: BTreeMap<String, Group>,
    captures: HashSet<Arc<str>>,
    worst: Vec<Slow>,
}

impl Group {
    fn add(&mut self, other: &Group) {
        self.connections += other.connections;
        for (mine, theirs) in [(&mut self.requests, &other.requests), (&mut self.idle, &other.idle)] {
            theirs.iter().for_each(|(&cause, &time)| *mine.entry(cause).or_default() += time);
        }
        self.times.add_all(&other.times);
    }

    /// The time of requests.
    fn total(&self) -> Nanos {
        self.requests.values().fold(Nanos::ZERO, |sum, &time| sum + time)
    }

    /// The causes of requests, most time first.
    fn ranked(&self) -> Vec<(Cause, Nanos)> {
        let mut all: Vec<_> = self.requests.iter().map(|(&cause, &time)| (cause, time)).collect();
        all.sort_by_key(|&(cause, time)| (std::cmp::Reverse(time), cause));
        all
    }
}

impl Summary {
    fn add(&mut self, other: Summary, top: usize) {
        self.all.add(&other.all);
        other
            .servers
            .into_iter()
            .for_each(|(server, group)| self.servers.entry(server).or_default().add(&group));
        other.days.into_iter().for_each(|(day, group)| self.days.entry(day).or_default().add(&group));
        self.captures.extend(other.captures);
        self.worst.extend(other.worst);
        self.keep(top);
    }

    /// Only so many of the slowest are kept.
    fn keep(&mut self, top: usize) {
        self.worst.sort_by(|a, b| {
            let name = |s: &Slow| (s.start, Arc::clone(&s.capture), s.connection, s.exchange);
            b.duration.cmp(&a.duration).then_with(|| name(a).cmp(&name(b)))
        });
        self.worst.truncate(top);
    }

    /// Servers, those first whose requests took most time.
    fn ranked(&self) -> Vec<(&Server, &Group)> {
        let mut all: Vec<_> = self.servers.iter().collect();
        all.sort_by(|a, b| b.1.total().cmp(&a.1.total()).then_with(|| a.0.cmp(b.0)));
        all
    }

    /// The days before this one, and those from it on.
    fn split(&self, at: &str) -> [Group; 2] {
        let mut sides = [Group::default(), Group::default()];
        self.days.iter().for_each(|(day, group)| sides[usize::from(day.as_str() >= at)].add(group));
        sides
    }
}

/// Sums up the tables of a folder.
pub(crate) fn run(args: &Summarize) -> anyhow::Result<Exit> {
    if let Err(e) = std::fs::metadata(&args.folder)
        && e.kind() == std::io::ErrorKind::NotFound
    {
        bail!("{}: no such folder. Check the name", args.folder.display());
    }
    if args.folder.is_file() {
        bail!(Usage(format!(
            "{0}: a file, not a folder with tables; if it is a capture, `tcpwhy explain {1} --parquet FOLDER` writes some",
            args.folder.display(),
            crate::shown::argument(args.folder.as_ref())
        )));
    }
    let (files, denied) = files(&args.folder);
    if let (true, Some(why)) = (files.is_empty(), denied.first()) {
        bail!("{why}");
    }
    if files.is_empty() && Table::WATCH.iter().any(|t| args.folder.join(t.name()).is_dir()) {
        bail!(Usage(format!(
            "{}: these are tables of `tcpwhy watch`, which have no requests: ask an engine (docs/schema/tables-1.md)",
            args.folder.display()
        )));
    }
    if files.is_empty() {
        bail!(Usage(format!(
            "{}: no tables are in it; `tcpwhy explain CAPTURES --parquet {}` writes them",
            args.folder.display(),
            crate::shown::argument(args.folder.as_ref())
        )));
    }
    let (mut summary, problems) = over(&files, &|scan, file| scan.file(file), args.top);
    scan::say_most(&mut summary.worst, &files);
    denied.iter().for_each(|why| say(why));
    problems.iter().for_each(|problem| say(&problem.to_string()));
    if problems.len() == files.len() {
        return Ok(Exit::Unreadable);
    }
    output::refuse_overwriting(&[args.output.as_deref(), args.html.as_deref()], &[])?;
    if let Some(path) = &args.html {
        let mut out = Output::beside(path, "--html")?;
        let written = page::write(&mut out, &summary, args).map_err(Into::into);
        out.finish(written)?;
    }
    let mut out = Output::open(args.output.as_deref(), args.json)?;
    let written = if args.json {
        serde_json::to_writer_pretty(&mut out, &shown::Document::new(&summary, args))
            .map_err(Into::into)
            .and_then(|()| Ok(out.write_all(b"\n")?))
    } else {
        text::write(&mut out, &summary, args).map_err(Into::into)
    };
    out.finish(written)?;
    Ok(if problems.is_empty() && denied.is_empty() { Exit::Done } else { Exit::Damaged })
}

/// A file of a table.
#[derive(Clone, Debug)]
struct Part {
    path: PathBuf,
    table: Table,
    day: String,
}

/// The files of tables that are read, in an order that does not depend on the file system; and sentences
/// about folders that may not be read.
fn files(folder: &Path) -> (Vec<Part>, Vec<String>) {
    let (mut out, mut denied) = (Vec::new(), Vec::new());
    let mut list = |folder: &Path| {
        denied.extend(denied_folder(folder));
        fs::read_dir(folder).into_iter().flatten().flatten()
    };
    for table in [Table::Connections, Table::Exchanges, Table::Spans] {
        for day in list(&folder.join(table.name())) {
            let name = day.file_name().to_string_lossy().into_owned();
            let Some(day_name) = name.strip_prefix("day=") else { continue };
            for file in list(&day.path()) {
                let path = file.path();
                let hidden = file.file_name().as_encoded_bytes().starts_with(b".");
                if !hidden && path.extension().is_some_and(|e| e == "parquet") {
                    out.push(Part { path, table, day: day_name.into() });
                }
            }
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    denied.sort();
    // It stands for all that is in it.
    denied.splice(0..0, denied_folder(folder));
    (out, denied)
}

/// Scans the files on all cores. One that cannot be read costs only itself.
fn over(
    files: &[Part],
    scan: &(impl Fn(&mut Scan, &Part) -> Result<(), Error> + Sync),
    top: usize,
) -> (Summary, Vec<Error>) {
    let next = AtomicUsize::new(0);
    let all: Mutex<(Summary, Vec<Error>)> = Mutex::default();
    let worker = || {
        let mut mine = Scan::new(top);
        let mut problems = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Relaxed)) {
            problems.extend(scan(&mut mine, file).err());
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.add(mine.summary, top);
        all.1.extend(problems);
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from).min(files.len());
        (1..cores).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
    let (summary, mut problems) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    problems.sort_by_key(ToString::to_string);
    (summary, problems)
}
