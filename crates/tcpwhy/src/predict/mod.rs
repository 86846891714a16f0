//! What `predict` needs between its arguments and the model: quantities, the question, the answer, sweeps.

pub(crate) mod answer;
pub(crate) mod args;
pub(crate) mod capture;
#[cfg(target_os = "linux")]
pub(crate) mod from_scenario;
pub(crate) mod like;
mod parallel;
pub(crate) mod question;
mod range;
pub(crate) mod runs;
pub(crate) mod sweep;
