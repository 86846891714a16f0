//! Experiments without requests and answers: connections that are only made, and real programs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Connections that are made one after the other and closed at once, to see what making them costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Connects {
    /// How many.
    pub count: u32,
    /// Wait before each.
    pub pause_ms: f64,
    /// Client and server are on the client's host, joined by its loopback device.
    pub loopback: bool,
    /// What the client does before `connect`.
    pub bind: Bind,
    /// Connections stay open instead of being closed by the client.
    pub keep: bool,
    /// SYNs from hosts that do not exist, sent before: they stay half open at the server.
    pub half_open: u32,
    /// How long one `connect` may take.
    pub patience_ms: f64,
}

impl Default for Connects {
    fn default() -> Connects {
        Connects {
            count: 1,
            pause_ms: 0.0,
            loopback: false,
            bind: Bind::No,
            keep: false,
            half_open: 0,
            patience_ms: 60_000.0,
        }
    }
}

/// What a client does about its port before `connect`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bind {
    /// Nothing: `connect` chooses.
    #[default]
    No,
    /// `bind` to port 0: `bind` chooses, without knowing the target.
    Zero,
    /// `bind` to port 0 with `IP_BIND_ADDRESS_NO_PORT`: only the address is bound, `connect` chooses the port.
    Late,
}

/// Programs of this machine as server and client. Commands go to `sh -c` in a directory of their own, with the
/// variables `SERVER` and `CLIENT` (addresses) and `DIR` (that directory). When the client ends, all end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Programs {
    /// What must be installed.
    pub needs: Vec<Need>,
    /// Files to make in the directory before anything runs.
    pub files: BTreeMap<String, String>,
    /// Runs to its end before the server starts.
    pub prepare: Option<String>,
    /// Runs until the client has ended.
    pub server: Option<String>,
    /// The server is ready when something listens on this port.
    pub port: Option<u16>,
    /// Runs to its end once the server is ready, but is not measured.
    pub fill: Option<String>,
    /// Runs on the client's host. Each line that it prints and that is a number is a time in seconds; if there is
    /// none, the time of the whole command is taken.
    pub client: String,
    /// How often the client runs.
    pub repeat: u32,
}

/// A command and the Debian package that has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Looked for in `PATH` and the `sbin` directories.
    pub command: String,
    /// Named where it is missing.
    pub package: String,
}
