//! What `tcpwhy watch` says of a running host: as text for a terminal, as JSON for programs.

mod json;
mod text;

pub use json::{line, schema, write};
pub use text::{Layout, ends, facts, program, short, threads, write as text};

use tcpwhy_live::{Connection, Finding, Listener, Snapshot, findings};

/// What is said: those connections and listeners of a snapshot that were asked for, and what they have in common.
#[derive(Debug)]
pub struct View {
    /// Kernel events were seen.
    pub events: bool,
    /// What was asked for, of the snapshot.
    pub snapshot: Snapshot,
    /// Connections that were not.
    pub hidden: usize,
    /// What the shown ones lost time to.
    pub findings: Vec<Finding>,
    /// What cannot be seen, and what would bring it.
    pub unseen: Vec<Unseen>,
}

/// Something that cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// What.
    pub what: String,
    /// What would bring it: a capability, or that nothing does.
    pub needs: String,
}

impl View {
    /// Keeps the connections and listeners that were asked for.
    pub fn new(
        events: bool,
        mut snapshot: Snapshot,
        wanted: impl Fn(&Connection) -> bool,
        listens: impl Fn(&Listener) -> bool,
        unseen: Vec<Unseen>,
    ) -> View {
        let all = snapshot.connections.len();
        snapshot.connections.retain(wanted);
        snapshot.listeners.retain(listens);
        let ends = |s: &tcpwhy_live::Stuck| {
            snapshot.connections.iter().any(|c| {
                c.sample.peer == s.peer && c.process.as_ref().is_some_and(|p| p.pid == s.process.pid)
            })
        };
        let stuck = std::mem::take(&mut snapshot.stuck).into_iter().filter(ends).collect();
        snapshot.stuck = stuck;
        let findings = findings(&snapshot.connections);
        View { events, hidden: all - snapshot.connections.len(), findings, snapshot, unseen }
    }
}
