//! One file per command.

pub(crate) mod causes;
pub(crate) mod completions;
pub(crate) mod explain;
#[cfg(target_os = "linux")]
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod predict;
