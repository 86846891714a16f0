//! The result beside the kept captures, for `tcpwhy serve`.

use super::experiment::Outcome;
use super::print;
use crate::failure::{Usage, say};
use crate::lab_result::{FILE, Figure, LabResult, Tap};
use crate::shown;
use std::fs;
use std::path::Path;
use tcpwhy_lab::Verdict;

/// What the lab writes beside a result.
const KEPT: [&str; 4] = ["cap.client.pcap", "cap.server.pcap", "meta.json", "label.json"];

/// Refuses a folder that holds something else than an earlier run of this experiment, which alone may be written over.
pub(super) fn may_keep(folder: &Path, name: &str, at: Option<&str>) -> Result<(), Usage> {
    let place = || shown::name(&folder.display().to_string()).into_owned();
    let other = match LabResult::read(&folder.join(FILE)) {
        Ok(there) if (there.name.as_str(), there.at.as_deref()) == (name, at) => return Ok(()),
        Ok(there) => super::print::label(&there.name, there.at.as_deref()),
        Err(_) if KEPT.iter().any(|file| folder.join(file).exists()) => "something else".to_owned(),
        Err(_) => return Ok(()),
    };
    Err(Usage(format!(
        "--keep {}: it holds the captures of {}, which would be written over: name another folder, or remove them",
        place(),
        shown::name(&other)
    )))
}

/// Refuses a folder with the captures of an experiment, for captures of a command.
pub(super) fn is_no_experiment(folder: &Path) -> Result<(), Usage> {
    let there = [FILE, "meta.json", "label.json"].iter().any(|file| folder.join(file).exists());
    if there { may_keep(folder, "", None) } else { Ok(()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An experiment of this name, at this value of its sweep, kept in `folder`.
    fn keeps(folder: &Path, name: &str, at: Option<&str>) {
        let text = serde_json::json!({
            "tool": "tcpwhy lab", "schema": 1, "name": name, "title": "", "at": at, "verdict": "made",
            "said": "made", "disturbed": false, "captures": [],
        });
        fs::write(folder.join(FILE), text.to_string()).unwrap();
        fs::write(folder.join("cap.client.pcap"), "").unwrap();
    }

    #[test]
    fn only_an_earlier_run_of_the_same_is_written_over() {
        let folder = std::env::temp_dir().join(format!("tcpwhy-kept-{}", std::process::id()));
        assert!(may_keep(&folder, "a", None).is_ok(), "there is none yet");
        fs::create_dir_all(&folder).unwrap();
        assert!(may_keep(&folder, "a", None).is_ok() && is_no_experiment(&folder).is_ok());
        keeps(&folder, "a", Some("link.rtt_ms=10"));
        assert!(may_keep(&folder, "a", Some("link.rtt_ms=10")).is_ok());
        for (name, at) in [("a", None), ("a", Some("link.rtt_ms=20")), ("b", Some("link.rtt_ms=10"))] {
            let why = may_keep(&folder, name, at).unwrap_err().0;
            assert!(why.contains("holds the captures of a ") && why.contains("name another folder"), "{why}");
        }
        assert!(is_no_experiment(&folder).is_err());
        // Captures of a command behind a link say nothing of themselves.
        fs::remove_file(folder.join(FILE)).unwrap();
        assert!(may_keep(&folder, "a", None).unwrap_err().0.contains("something else"));
        assert!(is_no_experiment(&folder).is_ok());
        fs::remove_dir_all(&folder).unwrap();
    }
}
