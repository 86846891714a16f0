//! `tcpwhy lab run`.

use super::experiment::{Beside, Outcome, Setting};
use super::{catalogue, failed, kept, print};
use crate::args::lab::Run;
use crate::cmd::end_signal;
use crate::failure::{Exit, Usage, say};
use crate::shown;
use serde::Serialize;
use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use tcpwhy_lab::{Against, Calibration, Control, LabError, Scenario, Verdict, calibrate};

/// One experiment to make: a scenario, or one value of its sweep.
struct Planned {
    name: String,
    at: Option<String>,
    scenario: Scenario,
    /// The scenario without what the reason of a deviation blames.
    control: Option<(Control, Scenario)>,
    /// The scenario as it is without `--set`.
    unchanged: Option<Scenario>,
    /// The run that its figure is stated against.
    against: Option<Scenario>,
    folder: String,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    calibration: &'a Calibration,
    interrupted: bool,
    results: &'a [Outcome],
}

/// Makes the experiments, one at a time because they would disturb each other.
pub(super) fn run(args: &Run) -> anyhow::Result<Exit> {
    let planned = match plan(args)? {
        Ok(planned) => planned,
        Err(e) => return Ok(failed(&e)),
    };
    let table = planned.len() > 1;
    let folders: Option<Vec<PathBuf>> =
        args.keep.as_deref().map(|keep| planned.iter().map(|p| folder(keep, p, table)).collect());
    for (p, folder) in planned.iter().zip(folders.iter().flatten()) {
        kept::may_keep(folder, &p.name, p.at.as_deref())?;
    }
    warn_of_programs(args, &planned);
    let stop = end_signal()?;
    let calibration = match calibrate(&stop) {
        Ok(calibration) => calibration,
        Err(e) => return Ok(failed(&e)),
    };
    let setting =
        Setting { calibration: &calibration, stop: &stop, runs: args.runs, set: &args.set, full: args.full };
    let width = planned.iter().map(|p| print::label(&p.name, p.at.as_deref()).len()).max().unwrap_or(0);
    if !args.json && table {
        print(&format!("{}\n\n{}", print::calibration(&calibration), print::head(width)))?;
    }
    let mut results = Vec::new();
    for (n, p) in planned.iter().enumerate() {
        if stop.load(Relaxed) {
            break;
        }
        let keep = folders.as_ref().map(|folders| &*folders[n]);
        let control = p.control.as_ref().map(|(control, scenario)| (control, scenario));
        let beside = Beside { control, against: p.against.as_ref(), unchanged: p.unchanged.as_ref() };
        let outcome = match setting.make(&p.name, &p.scenario, p.at.clone(), beside, keep) {
            Ok(outcome) => outcome,
            // One experiment that fails is no reason to drop the others.
            Err(e) if table => {
                let mut outcome = Outcome::new(&p.name, &p.scenario, p.at.clone(), <_>::default());
                outcome.verdict = Verdict::NotAsExpected;
                outcome.skipped = Some(shown::text(&format!("failed: {e}")).into_owned());
                outcome
            }
            Err(e) => return Ok(failed(&e)),
        };
        if let Some(folder) = keep {
            kept::write(folder, &outcome);
        }
        if !args.json {
            print(&if table {
                print::row(&outcome, width)
            } else {
                print::one(&outcome, &p.scenario, &calibration, keep)
            })?;
        }
        results.push(outcome);
    }
    let interrupted = stop.load(Relaxed);
    if args.json {
        let document = Document { schema: 1, calibration: &calibration, interrupted, results: &results };
        print(&(serde_json::to_string_pretty(&document)?))?;
    } else if table {
        print(&print::foot(&results, &planned_sweeps(&planned)))?;
    }
    Ok(exit(&results, planned.len(), interrupted))
}

/// A file with `[programs]` is a program: who runs it should know it before.
fn warn_of_programs(args: &Run, planned: &[Planned]) {
    for file in args.names.iter().filter(|n| *n != "all" && !catalogue::is_own(n)) {
        let Ok((name, _)) = catalogue::find(file) else { continue };
        if planned.iter().any(|p| p.name == name && p.scenario.programs.is_some()) {
            let argument = shown::argument(file.as_ref());
            say(&format!(
                "{file} runs programs on this machine, as the user that you are: run only yours (tcpwhy lab show {argument} \
                 prints it)"
            ));
        }
    }
}

fn exit(results: &[Outcome], planned: usize, interrupted: bool) -> Exit {
    if interrupted {
        say(&format!("interrupted: {} of {planned} experiments were made", results.len()));
        return Exit::Interrupted;
    }
    if results.iter().any(|r| r.verdict == Verdict::NotAsExpected) {
        return Exit::Held;
    }
    match results {
        [only] if only.skipped.is_some() => Exit::Unreadable,
        _ => Exit::Done,
    }
}

/// Everything is read before anything runs.
fn plan(args: &Run) -> anyhow::Result<Result<Vec<Planned>, LabError>> {
    let all = args.names.iter().any(|n| n == "all");
    if all && args.names.len() > 1 {
        return Err(Usage("all stands alone: it is every experiment of the program".into()).into());
    }
    if all && !args.set.is_empty() {
        return Err(Usage("--set changes one experiment: name it instead of all".into()).into());
    }
    let chosen: Vec<(String, String)> = if all {
        catalogue::SCENARIOS.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    } else {
        args.names.iter().map(|n| catalogue::find(n)).collect::<anyhow::Result<_>>()?
    };
    let mut planned = Vec::new();
    for (name, text) in chosen {
        match plan_one(&name, &text, args) {
            Ok(some) => planned.extend(some),
            Err(LabError::Scenario(why)) => return Ok(Err(LabError::Scenario(format!("{name}: {why}")))),
            Err(e) => return Ok(Err(e)),
        }
    }
    apart(&mut planned);
    Ok(Ok(planned))
}

/// Experiments of the same name, as of files in two folders, are kept in folders of their own.
fn apart(planned: &mut [Planned]) {
    let mut taken = HashSet::new();
    for p in planned {
        let name = p.folder.clone();
        for n in 2.. {
            if taken.insert(p.folder.clone()) {
                break;
            }
            p.folder = format!("{name}-{n}");
        }
    }
}

fn plan_one(name: &str, text: &str, args: &Run) -> Result<Vec<Planned>, LabError> {
    let plain = Scenario::parse(text, &args.set)?;
    let full = plain.expect.as_ref().filter(|_| args.full).map(|e| e.full.clone()).unwrap_or_default();
    let read = |more: Option<(String, toml::Value)>| {
        Scenario::parse_with(text, full.clone().into_iter().chain(more), &args.set)
    };
    let unchanged = |more: Option<(String, toml::Value)>| {
        let plain = || Scenario::parse_with(text, full.clone().into_iter().chain(more), &[]);
        (!args.set.is_empty()).then(plain).transpose()
    };
    let against = plain.expect.as_ref().and_then(|e| e.against.as_ref());
    let beside = |more: Option<(String, toml::Value)>| {
        let set = |a: &Against| full.clone().into_iter().chain(more).chain(a.set.clone());
        against.map(|a| Scenario::parse_with(text, set(a), &args.set)).transpose()
    };
    // Controls are made with reduced counts; one that is compared with the figure itself has to be of its size.
    let control = plain.expect.as_ref().and_then(|e| e.control.clone());
    let control =
        control.filter(|c| full.is_empty() || !c.value.to_string().contains("measured")).map(|control| {
            let with = Scenario::parse_with(text, control.set.clone(), &args.set)?;
            Ok((control, with))
        });
    let Some(sweep) = &plain.sweep else {
        return Ok(vec![Planned {
            name: name.into(),
            at: None,
            scenario: read(None)?,
            control: control.transpose()?,
            unchanged: unchanged(None)?,
            against: beside(None)?,
            folder: name.into(),
        }]);
    };
    let one = |value: &toml::Value| {
        Ok(Planned {
            name: name.into(),
            at: Some(shown::name(&format!("{}={value}", sweep.key)).into_owned()),
            scenario: read(Some((sweep.key.clone(), value.clone())))?,
            control: None,
            unchanged: unchanged(Some((sweep.key.clone(), value.clone())))?,
            against: beside(Some((sweep.key.clone(), value.clone())))?,
            folder: format!("{name}-{value}").replace(['/', '"'], "_"),
        })
    };
    sweep.values.iter().map(one).collect()
}

/// Names of the experiments whose sweeps are to be drawn.
fn planned_sweeps(planned: &[Planned]) -> Vec<&str> {
    let mut names: Vec<&str> = planned
        .iter()
        .filter(|p| p.scenario.sweep.as_ref().is_some_and(|s| s.plot))
        .map(|p| p.name.as_str())
        .collect();
    names.dedup();
    names
}

fn folder(keep: &Path, planned: &Planned, several: bool) -> PathBuf {
    if several { keep.join(&planned.folder) } else { keep.to_owned() }
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}
