//! One file per command.

pub(crate) mod causes;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod explain;
#[cfg(target_os = "linux")]
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod predict;
pub(crate) mod serve;
pub(crate) mod slice;
#[cfg(feature = "tui")]
pub(crate) mod view;

use crate::failure::Usage;
use crate::output::Output;
use anyhow::bail;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Opens a second output beside the answer, which standard output is for.
pub(crate) fn extra(path: &Path, option: &str) -> anyhow::Result<Output> {
    if path.as_os_str() == "-" {
        bail!(Usage(format!("{option} -: standard output is for the answer; name a file")));
    }
    Output::open(Some(path), true)
}

/// Set by the first interrupt; the second ends the program at once.
pub(crate) fn stop_signal() -> anyhow::Result<Arc<AtomicBool>> {
    stopped_by(&[SIGINT])
}

/// The same by whatever asks a program to end, for those that must put something back first.
pub(crate) fn end_signal() -> anyhow::Result<Arc<AtomicBool>> {
    stopped_by(&[SIGINT, SIGTERM])
}

fn stopped_by(signals: &[i32]) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in signals {
        // In this order: what is asked first is whether it was set before.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
