//! Figures measured on Linux 6.18 (cubic, HZ=250, an emulated link between two namespaces;
//! `scripts/model_measured.json`) as targets, within 10 %
//! unless the measurement itself spreads more.

mod buffers;
mod common;
mod losses;
mod opening;
mod patterns;
mod slow_start;
mod small_writes;
