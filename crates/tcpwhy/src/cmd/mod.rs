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
mod signals;
pub(crate) mod slice;
#[cfg(feature = "tui")]
pub(crate) mod view;

use crate::failure::Usage;
use crate::output::Output;
use anyhow::bail;
use std::path::Path;

pub(crate) use signals::{end_signal, stop_signal, tidy_up};

/// Opens a second output beside the answer, which standard output is for.
pub(crate) fn extra(path: &Path, option: &str) -> anyhow::Result<Output> {
    if path.as_os_str() == "-" {
        bail!(Usage(format!("{option} -: standard output is for the answer; name a file")));
    }
    Output::open(Some(path), true)
}
