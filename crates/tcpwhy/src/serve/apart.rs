//! Reading a capture where its failure ends one request and nothing else.

use super::Sorry;
use crate::input::Input;
use crate::load::{self, Loaded};
use crate::progress::{Progress, Report};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use tcpwhy_library::Detail;

/// Too many wait for their turn already.
pub(super) fn busy() -> Sorry {
    (503, "other captures are being read: try again in some seconds".into())
}

/// What an analysis is for.
pub(super) struct Wanted {
    pub(super) detail: Detail,
    /// What fixes would save, which takes the model.
    pub(super) gains: bool,
    /// What exchanges are called, which takes a second look.
    pub(super) names: bool,
}

/// Reads and analyses a capture, in a thread of its own, so that a failure of the analysis ends one request and not the
/// lock. The caller has a turn.
pub(super) fn read_apart(
    path: &Path,
    name: &str,
    wanted: Wanted,
    report: Report,
    stop: &Arc<AtomicBool>,
) -> Result<Loaded, Sorry> {
    let read = move || {
        let input = Input { path: path.into(), name: name.to_owned() };
        let mut progress = Progress::to(report);
        let mut loaded = load::load_inputs(vec![input], Vec::new(), wanted.detail, &mut progress, stop);
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
        Ok(Ok(Ok(Ok(loaded)))) => Ok(loaded),
        Ok(Ok(Ok(Err(_)))) => Err((422, format!("{name} cannot be read: {}", why(path, name)))),
        Ok(Ok(Err(e))) => Err((422, format!("{name}: {e:#}"))),
        Ok(Err(_)) => Err((422, format!("{name}: the analysis failed: please report this"))),
        Err(_) => Err(busy()),
    }
}

/// What is wrong with a file, in one sentence.
fn why(path: &Path, name: &str) -> String {
    let input = Input { path: path.into(), name: name.to_owned() };
    input.open().err().unwrap_or_else(|| "it holds nothing that tcpwhy knows".into())
}
