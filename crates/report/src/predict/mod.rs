//! What a prediction says, as text and JSON. The types here are the contract of `tcpwhy predict --json`, schema 1;
//! whoever ran the model fills them.

mod sweep;
mod text;
mod types;

pub use sweep::{Axis, Metric, Point, Sweep};
pub use text::{patterns, text};
pub use types::{
    CauseName, Distribution, Fix, Observed, Pattern, Prediction, SCHEMA, Settings, Share, SideName, Step,
    Together, schema,
};
