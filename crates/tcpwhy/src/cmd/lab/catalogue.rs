//! The experiments that the program carries with it.

use super::describe;
use crate::args::lab::Show;
use crate::failure::{Exit, Usage};
use crate::shown;
use anstyle::Style;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use tcpwhy_lab::Scenario;

/// The files of `scenarios/`, by name.
pub(super) const SCENARIOS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// The name and the text of an experiment.
pub(super) fn find(name: &str) -> anyhow::Result<(String, String)> {
    if let Some((name, text)) = SCENARIOS.iter().find(|s| s.0 == name) {
        return Ok(((*name).into(), (*text).into()));
    }
    let path = Path::new(name);
    if path.exists() || name.contains('/') || name.ends_with(".toml") {
        let text = fs::read_to_string(path).map_err(|e| anyhow::anyhow!("{name}: {e}"))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        return Ok((shown::name(&stem).into_owned(), text));
    }
    let near: Vec<&str> =
        SCENARIOS.iter().map(|s| s.0).filter(|n| n.contains(name) || name.contains(n)).take(5).collect();
    let hint = if near.is_empty() || name.is_empty() {
        "`tcpwhy lab list` names all".into()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Err(Usage(format!("{name:?} is no experiment and no file; {hint}")).into())
}

/// Whether the program carries this experiment with it.
pub(super) fn is_own(name: &str) -> bool {
    SCENARIOS.iter().any(|s| s.0 == name)
}

/// All experiments, by their source.
pub(super) fn list() -> anyhow::Result<Exit> {
    let mut rows: Vec<(String, &str, String)> = Vec::new();
    for (name, text) in SCENARIOS {
        let scenario = Scenario::parse(text, &[])?;
        rows.push((scenario.source.unwrap_or_else(|| "rules of TCP".into()), name, scenario.title));
    }
    rows.sort();
    let (bold, mut text, mut last) = (Style::new().bold(), String::new(), String::new());
    for (source, name, title) in rows {
        if source != last {
            let _ = writeln!(text, "{}{bold}{source}{bold:#}", if last.is_empty() { "" } else { "\n" });
            last = source;
        }
        let _ = writeln!(text, "  {name:<28} {title}");
    }
    text += "\ntcpwhy lab show NAME prints one, sudo tcpwhy lab run NAME makes it\n";
    anstream::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}

/// One experiment in words, then its file.
pub(super) fn show(args: &Show) -> anyhow::Result<Exit> {
    let (name, file) = find(&args.name)?;
    let scenario = match Scenario::parse(&file, &[]) {
        Ok(scenario) => scenario,
        Err(e) => return Ok(super::failed(&e)),
    };
    let text = format!("{}\n{file}", describe::scenario(&name, &scenario));
    let text = shown::text(&text);
    anstream::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}
