//! Reading a capture where its failure ends one request and nothing else.

use super::Sorry;
use super::folder::Named;
use crate::input::Input;
use crate::load::{self, Loaded};
use crate::progress::{Progress, Report};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use tcpwhy_library::Detail;
use tcpwhy_report::Warning;

/// Too many wait for their turn already.
pub(super) fn busy() -> Sorry {
    (503, "other captures are being read: try again in some seconds".into())
}

/// What an analysis is for.
pub(super) struct Wanted {
    /// So many connections are kept to be listed; all.
    pub(super) listed: Option<usize>,
    pub(super) detail: Detail,
    /// What fixes would save, which takes the model.
    pub(super) gains: bool,
    /// What exchanges are called, which takes a second look.
    pub(super) names: bool,
}

/// Reads and analyses a capture, or two of the same connections as one, in a thread of its own, so that a
/// failure of the analysis ends one request and not the lock. The caller has a turn.
pub(super) fn read_apart(
    captures: &[Named],
    wanted: Wanted,
    report: Report,
    stop: &Arc<AtomicBool>,
) -> Result<Loaded, Sorry> {
    let name = captures.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" and ");
    let inputs = || {
        let input = |(name, entry): &Named| Input { path: entry.path.clone(), name: name.clone() };
        captures.iter().map(input).collect::<Vec<_>>()
    };
    let read = move || {
        let mut progress = Progress::to(report);
        let mut loaded =
            load::load_inputs(inputs(), Vec::new(), wanted.detail, wanted.listed, &mut progress, stop);
        if let Ok(Ok(loaded)) = &mut loaded {
            if wanted.gains {
                tcpwhy_library::replay(&mut loaded.analysis);
            }
            if wanted.names {
                loaded.name()?;
            }
        }
        loaded
    };
    let read = thread::scope(|scope| {
        let reading = thread::Builder::new().spawn_scoped(scope, read);
        reading.map(thread::ScopedJoinHandle::join)
    });
    match read {
        Ok(Ok(Ok(Ok(loaded)))) if captures.len() > 1 => two_ends(loaded, &name),
        Ok(Ok(Ok(Ok(loaded)))) => Ok(loaded),
        Ok(Ok(Ok(Err(_)))) => Err((422, format!("{name} cannot be read: {}", why(&inputs())))),
        Ok(Ok(Err(e))) => Err((422, format!("{name}: {e:#}"))),
        Ok(Err(_)) => Err((422, format!("{name}: the analysis failed: please report this"))),
        Err(_) => Err(busy()),
    }
}

/// Captures that have nothing to do with each other are not shown as if they had.
fn two_ends(loaded: Loaded, name: &str) -> Result<Loaded, Sorry> {
    let said = |code: &str| loaded.capture.warnings.iter().find(|w: &&Warning| w.code == code);
    if said("two_taps").is_some() {
        return Ok(loaded);
    }
    let why = said("clocks").map(|w| w.text.clone());
    let none = || format!("{name} hold no connection that was captured in both: open each by itself");
    Err((422, why.unwrap_or_else(none)))
}

/// What is wrong with a file, in one sentence.
fn why(inputs: &[Input]) -> String {
    let wrong = inputs.iter().find_map(|input| input.open().err());
    wrong.unwrap_or_else(|| "it holds nothing that tcpwhy knows".into())
}
