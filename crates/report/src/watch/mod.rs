//! What `tcpwhy watch` says of a running host: as text for a terminal, as JSON for programs.

mod json;
mod text;

pub use json::{line, schema, write};
pub use text::{Layout, ends, facts, program, short, state, threads, write as text};

use crate::figures::count;
use tcpwhy_live::{Connection, Finding, Listener, Snapshot, findings_with, worst_first};

/// What is said: those connections and listeners of a snapshot that were asked for, and what they have in common.
#[derive(Debug)]
pub struct View {
    /// Kernel events were seen.
    pub events: bool,
    /// What was asked for, of the snapshot; of the connections that ended in the interval those that lost most.
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
    /// Keeps the connections and listeners that were asked for. Of those that ended, `snapshot` counts no others.
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
        let hidden = all - snapshot.connections.len() + snapshot.ended.hidden;
        snapshot.connections.extend(snapshot.ended.worst().cloned());
        worst_first(&mut snapshot.connections);
        let findings = findings_with(&snapshot.connections, &snapshot.ended);
        View { events, hidden, findings, snapshot, unseen }
    }

    /// How many connections the sums are of: those that are open, and those that ended in the interval.
    pub fn counts(&self) -> (usize, usize) {
        (self.snapshot.connections.iter().filter(|c| !c.ended).count(), self.snapshot.ended.connections)
    }

    /// `2 connections, and 40 that ended,`.
    pub fn heading(&self) -> String {
        let (open, ended) = self.counts();
        let open = count(open as u64, "connection");
        if ended == 0 { open } else { format!("{open}, and {ended} that ended,") }
    }
}
