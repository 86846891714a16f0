//! The program from outside: what it prints, on which stream, and how it ends.

#[cfg(test)]
mod bad_input;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod check;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod common;
#[cfg(test)]
mod compared;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod names;
#[cfg(test)]
mod predict;
#[cfg(test)]
mod programs;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod record;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod refused;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod run;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod share;
#[cfg(test)]
#[path = "../../../../tests/skips.rs"]
mod skips;
#[cfg(test)]
mod taps;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod watch;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod watch_bad;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod watch_short;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod watch_sums;
