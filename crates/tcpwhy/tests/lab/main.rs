//! `tcpwhy lab` from outside: what it says, how it ends, and that it leaves everything as it found it.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod arguments;
#[cfg(test)]
mod common;
#[cfg(test)]
mod experiments;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod left_as_found;
#[cfg(test)]
mod missing;
#[cfg(test)]
mod record;
#[cfg(test)]
#[path = "../../../../tests/skips.rs"]
mod skips;
#[cfg(test)]
mod watch;
