//! The result beside the kept captures, for `tcpwhy serve`.

use super::experiment::Outcome;
use super::print;
use crate::failure::say;
use crate::lab_result::{FILE, Figure, LabResult, Tap};
use std::fs;
use std::path::Path;
use tcpwhy_lab::Verdict;

/// Takes the result of an earlier run away: its captures are about to be written over.
pub(super) fn forget(folder: &Path) {
    // None there is as good; one that cannot be removed cannot be replaced either, and that is said.
    let _ = fs::remove_file(folder.join(FILE));
}

/// Writes the result. That it cannot be written is no reason to lose the experiment.
pub(super) fn write(folder: &Path, o: &Outcome) {
    if let Err(why) = of(folder, o).write(folder) {
        say(&format!("{}: the result is not in the folder: {why:#}", o.name));
    }
}

fn of(folder: &Path, o: &Outcome) -> LabResult {
    let [published, measured, theory] =
        o.compared().map(|v| v.map(|value| Figure { value, shown: o.unit.show(value) }));
    let made = o.last.is_some();
    let taps = ["client", "server"].map(|end| Tap { end: end.into(), file: format!("cap.{end}.pcap") });
    LabResult {
        tool: "tcpwhy lab".into(),
        schema: 1,
        name: o.name.clone(),
        title: o.title.clone(),
        source: o.source.clone(),
        at: o.at.clone(),
        verdict: serde_json::to_value(o.verdict)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default(),
        said: match (&o.skipped, o.verdict) {
            (None, verdict) => verdict.words().into(),
            (Some(_), Verdict::NotAsExpected) => "FAILED".into(),
            (Some(_), _) => "skipped".into(),
        },
        measure: o.measure.clone(),
        published,
        measured,
        theory,
        scaled: o.scaled.is_some(),
        note: print::note(o),
        disturbed: o.disturbed,
        captures: taps.into_iter().filter(|t| made && folder.join(&t.file).is_file()).collect(),
        label: made.then(|| label(folder)).flatten(),
    }
}

/// What the truth says about the causes.
fn label(folder: &Path) -> Option<String> {
    let label: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("label.json")).ok()?).ok()?;
    Some(label["truth"]["verdict"].as_str()?.to_owned())
}
