//! What is written beside the answer, by `explain` and, of its capture, by `run`.

use crate::otlp::Otlp;
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct Beside {
    /// Also write a page with graphs: one file that opens anywhere and asks nothing of the network
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Also write the packets as pcapng with comments: cause, span and finding, for Wireshark
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) annotate: Option<PathBuf>,
    /// Also write the time by server, cause and side as folded stacks, for flame graph tools
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) folded: Option<PathBuf>,
    /// Also write a trace for ui.perfetto.dev: connections, exchanges, causes, bytes in flight, windows
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Make the spans of --otlp children of the application's, where a request in clear text carries `traceparent`
    #[arg(long, requires = "otlp", help_heading = "Output")]
    pub(crate) trace_context: bool,
    /// Call exchanges by their requests, from the first bytes: HTTP/1 method and path, Redis verb, MySQL and
    /// PostgreSQL command; within TLS the server's name alone, for all of a connection. No query, no key,
    /// nothing else is kept
    #[arg(long, help_heading = "Output")]
    pub(crate) names: bool,
    /// Also write exchanges and their causes as spans of OpenTelemetry (OTLP/JSON lines), or send them to a collector
    /// (http://localhost:4318)
    #[arg(long, value_name = "FILE|URL", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) otlp: Option<Otlp>,
}
