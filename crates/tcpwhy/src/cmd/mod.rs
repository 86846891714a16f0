//! One file per command.

pub(crate) mod causes;
#[cfg(target_os = "linux")]
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod extcap;
#[cfg(target_os = "linux")]
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod predict;
#[cfg(target_os = "linux")]
pub(crate) mod record;
#[cfg(target_os = "linux")]
pub(crate) mod run;
pub(crate) mod serve;
mod signals;
pub(crate) mod slice;
#[cfg(feature = "tui")]
pub(crate) mod view;
#[cfg(target_os = "linux")]
pub(crate) mod watch;
pub(crate) mod wireshark;

#[cfg(feature = "tui")]
pub(crate) use signals::end_signals;
#[cfg(target_os = "linux")]
pub(crate) use signals::{PassedOn, asked_signal};
pub(crate) use signals::{end_signal, endless_signal, stop_signal, tidy_up};
