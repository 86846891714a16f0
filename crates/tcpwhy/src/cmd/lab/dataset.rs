//! `tcpwhy lab dataset` and `tcpwhy lab label`: captures whose causes are known.

use super::failed;
use crate::args::lab::{Dataset, Relabel};
use crate::cmd::end_signal;
use crate::failure::{Exit, Usage, say};
use crate::shown;
use anyhow::Context as _;
use serde::Serialize;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use tcpwhy_lab::{Cell, LabError, Label, cells, run_until};

/// A run that the machine disturbed is made again, so often.
const ATTEMPTS: u32 = 3;
const SHEET: &str = include_str!("../../../../../docs/datasheet.md");

/// What other programs need to find their way.
#[derive(Serialize)]
struct Index {
    schema: u32,
    tcpwhy: &'static str,
    kernel: String,
    runs: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    row: String,
    rtt_ms: f64,
    size: usize,
    /// Per end: kind of the check, right answers, packets.
    captures: Vec<Capture>,
}

#[derive(Serialize)]
struct Capture {
    file: String,
    end: String,
    kind: &'static str,
    dominant: Vec<&'static str>,
    packets: usize,
}

/// Makes the matrix, one run at a time because they would disturb each other.
pub(super) fn make(args: &Dataset) -> anyhow::Result<Exit> {
    let chosen = match choose(args) {
        Ok(chosen) => chosen,
        Err(e) => return Ok(failed(&e)),
    };
    if chosen.is_empty() {
        let only = args.only.join(", ");
        return Err(Usage(format!(
            "no run of the matrix is named {only}: `tcpwhy lab dataset --list` names them"
        ))
        .into());
    }
    let mut out = anstream::stdout().lock();
    if args.list {
        for cell in &chosen {
            writeln!(out, "{}", cell.name)?;
        }
        return Ok(Exit::Done);
    }
    let Some(folder) = &args.folder else {
        return Err(Usage("lab dataset needs a folder to write to, or --list".into()).into());
    };
    let unwritable = || format!("{}: choose a folder that can be written", folder.display());
    fs::create_dir_all(folder).with_context(unwritable)?;
    fs::write(folder.join("DATASHEET.md"), SHEET).with_context(unwritable)?;
    let stop = end_signal()?;
    let mut index =
        Index { schema: 1, tcpwhy: env!("CARGO_PKG_VERSION"), kernel: String::new(), runs: Vec::new() };
    for (n, cell) in chosen.iter().enumerate() {
        let place = folder.join(&cell.name);
        // What is there already is kept, so that an interrupted set can be completed.
        let label = if place.join("label.json").exists() {
            Label::read(&place)
        } else {
            one(cell, &place, &stop, &mut index.kernel)
        };
        if stop.load(Relaxed) {
            break;
        }
        match label {
            Ok(label) => {
                writeln!(out, "{:>4}/{} {:<28} {}", n + 1, chosen.len(), cell.name, label.truth.verdict)?;
                index.runs.push(entry(cell, &label));
            }
            Err(e @ LabError::Missing { .. }) if index.runs.is_empty() => return Ok(failed(&e)),
            Err(e) => writeln!(out, "{:>4}/{} {:<28} SKIP: {e}", n + 1, chosen.len(), cell.name)?,
        }
    }
    let file = tcpwhy_lab::new_file(&folder.join("index.json")).with_context(unwritable)?;
    serde_json::to_writer_pretty(file, &index)?;
    if stop.load(Relaxed) {
        let made = index.runs.len();
        say(&format!(
            "interrupted: {made} of {} runs are in {}; the same command goes on",
            chosen.len(),
            folder.display()
        ));
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}

fn choose(args: &Dataset) -> Result<Vec<Cell>, LabError> {
    let mut all = cells()?;
    let wanted =
        |cell: &Cell| args.only.is_empty() || args.only.iter().any(|text| cell.name.contains(text.as_str()));
    all.retain(wanted);
    Ok(all)
}

fn one(cell: &Cell, place: &Path, stop: &AtomicBool, kernel: &mut String) -> Result<Label, LabError> {
    let mut attempt = 1;
    loop {
        let run = run_until(&cell.scenario, stop)?;
        if run.traffic.disturbed && attempt < ATTEMPTS && !stop.load(Relaxed) {
            attempt += 1;
            continue;
        }
        kernel.clone_from(&run.traffic.machine.kernel);
        if !stop.load(Relaxed) {
            let failed = |why| LabError::Failed { what: place.display().to_string(), why };
            run.write(place).map_err(failed)?;
        }
        return Label::of(&run);
    }
}

fn entry(cell: &Cell, label: &Label) -> Entry {
    let capture = |(end, tap): (&&'static str, &tcpwhy_lab::Tap)| Capture {
        file: format!("{}/{}", cell.name, tap.file),
        end: (*end).to_owned(),
        kind: tap.checks.first().map_or("any", |c| c.kind),
        dominant: tap.checks.first().map(|c| c.dominant.clone()).unwrap_or_default(),
        packets: tap.packets,
    };
    Entry {
        name: cell.name.clone(),
        row: cell.row.clone(),
        rtt_ms: cell.rtt_ms,
        size: cell.size,
        captures: label.truth.captures.iter().map(capture).collect(),
    }
}

/// Tells the labels of kept runs anew, from the truth that was written down.
pub(super) fn relabel(args: &Relabel) -> anyhow::Result<Exit> {
    let mut out = anstream::stdout().lock();
    for folder in &args.folders {
        match Label::read(folder) {
            Ok(label) => {
                label.write(folder).with_context(|| format!("{}: cannot be written", folder.display()))?;
                let folder = folder.display().to_string();
                writeln!(out, "{}\n  {}", shown::name(&folder), label.truth.verdict)?;
            }
            Err(e) => {
                say(&format!(
                    "{e}; it must be the folder of a run that `lab run --keep` or `lab dataset` made"
                ));
                return Ok(Exit::Unreadable);
            }
        }
    }
    Ok(Exit::Done)
}
