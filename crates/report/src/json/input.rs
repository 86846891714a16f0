//! The input as a whole, and what limits what can be said of it.

use super::values::Wrappings;
use crate::{Capture, rfc3339};
use schemars::JsonSchema;
use serde::Serialize;

/// The input as a whole.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CaptureInfo<'a> {
    /// Names of the inputs, in the order in which they were read.
    pub files: &'a [String],
    /// Frames read, TCP or not.
    pub packets: u64,
    /// TCP packets among them.
    pub tcp_packets: u64,
    /// Moment 0 (RFC 3339 with nanoseconds); null without any packet.
    pub start: Option<String>,
    /// Earliest to latest frame.
    pub duration_ns: i64,
    /// Connections listed.
    pub connections: u64,
    /// What packets were wrapped in, and how many.
    pub encapsulations: Wrappings<'a>,
    /// What limits what can be said.
    pub warnings: Vec<WarningInfo<'a>>,
}

impl<'a> CaptureInfo<'a> {
    pub(super) fn new(capture: &'a Capture) -> CaptureInfo<'a> {
        CaptureInfo {
            files: &capture.files,
            packets: capture.packets,
            tcp_packets: capture.tcp_packets,
            start: capture.span.map(|s| rfc3339(s.0)),
            duration_ns: capture.duration().0,
            connections: capture.connections,
            encapsulations: Wrappings(&capture.encapsulations),
            warnings: capture
                .warnings
                .iter()
                .map(|w| WarningInfo { code: w.code, text: &w.text, count: w.count })
                .collect(),
        }
    }
}

/// Something that limits what can be said.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WarningInfo<'a> {
    /// Stable word for programs.
    pub code: &'static str,
    /// A plain sentence with the next step.
    pub text: &'a str,
    /// How often.
    pub count: u64,
}
