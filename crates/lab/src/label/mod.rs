//! What the time of a run went to, told from the truth alone: the applications' calls, the link's log, socket
//! states and counters, and the packets' times at both ends. Neither what a scenario intends nor what an
//! analysis finds is asked.
//!
//! A segment that left late was held by something: by the application if it had not written yet, else by what
//! the kernel asks before it sends. [`limits`] says which, for each segment; [`paint`] lays those waits, the
//! link's busy times and the losses over the time of setup and exchanges as one tap saw them; [`checks`]
//! makes of the sums what an answer can be held against. Where the truth does not say, the time is not known,
//! and where that is much, nothing is asked.

mod checks;
mod excluded;
mod limits;
mod paint;
mod truth;
mod wire;

use crate::endpoints::PORT;
use crate::link::Record;
use crate::{LabError, Run};
use checks::Sums;
pub use checks::{Check, Part};
use paint::{READINGS, Scene};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use tcpwhy_base::{Cause, End, Ends, Nanos};
use truth::Truth;
use wire::Direction;

/// What an answer about a run's captures is checked against.
#[derive(Debug, Serialize)]
pub struct Label {
    /// The experiment's title.
    pub title: String,
    /// The truth.
    pub truth: Told,
}

/// The truth, by capture.
#[derive(Debug, Serialize)]
pub struct Told {
    /// Sums in words, for people.
    pub verdict: String,
    /// `client` and `server`.
    pub captures: BTreeMap<&'static str, Tap>,
}

/// One capture.
#[derive(Debug, Serialize)]
pub struct Tap {
    /// Its name.
    pub file: String,
    /// Packets in it.
    pub packets: usize,
    /// Connections in it.
    pub connections: usize,
    /// What to check.
    pub checks: Vec<Check>,
}

impl Label {
    /// Of a run that has just been made.
    pub fn of(run: &Run) -> Result<Label, LabError> {
        Ok(tell(&Truth::of(run), &run.traffic.captures))
    }

    /// Of a run that was kept, from `meta.json` and the captures beside it.
    pub fn read(directory: &Path) -> Result<Label, LabError> {
        let (truth, captures) = Truth::read(directory)?;
        Ok(tell(&truth, &captures))
    }

    /// Writes `label.json`.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let mut file = crate::new_file(&directory.join("label.json"))?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")
    }
}

/// A stretch of a connection that neither path nor application took, at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The client's port.
    pub port: u16,
    /// From when, on the captures' clock.
    pub from: Nanos,
    /// Until when.
    pub to: Nanos,
    /// What the truth says.
    pub cause: Cause,
}

/// What the exchanges of a run went to beyond path and application, as its label has it; of real programs
/// nothing is known.
pub fn held(run: &Run) -> Vec<Held> {
    let truth = &Truth::of(run);
    if truth.scenario.programs.is_some() {
        return Vec::new();
    }
    let flows = wire::flows(&run.traffic.captures, PORT);
    let busy = &Ends::of(|sender| paint::busy(truth, &flows, sender));
    let of = |flow: &wire::Flow| {
        let directions = &Ends::of(|sender| Direction::new(flow, sender));
        let painted = Scene { truth, flow, directions, busy }.paint(End::Client, READINGS[0]);
        let held = |s: paint::Span| Some(Held { port: flow.port, from: s.0, to: s.1, cause: s.2? });
        painted.spans.into_iter().filter_map(held).collect::<Vec<_>>()
    };
    flows.iter().flat_map(of).collect()
}

fn tell(truth: &Truth, captures: &Ends<Vec<Record>>) -> Label {
    if let Some(programs) = &truth.scenario.programs {
        let flows = wire::flows(captures, programs.port.or_else(|| wire::asked(captures)).unwrap_or(PORT));
        let repeated = flows
            .iter()
            .any(|f| f.taps.iter().any(|t| t.iter().filter(|p| p.syn && p.from == End::Client).count() > 1));
        let check = excluded::check(truth, repeated);
        let verdict = check.basis.clone();
        return label(truth, captures, &flows, verdict, |_| check.clone());
    }
    let flows = wire::flows(captures, PORT);
    let busy = Ends::of(|sender| paint::busy(truth, &flows, sender));
    let mut sums = Ends::<Sums>::default();
    let mut moved = Ends::<u64>::default();
    for flow in &flows {
        let directions = Ends::of(|sender| Direction::new(flow, sender));
        for (sum, d) in moved.iter_mut().zip(directions.iter()) {
            *sum += d.segments.last().map_or(0, |s| s.end);
        }
        let scene = Scene { truth, flow, directions: &directions, busy: &busy };
        for tap in End::BOTH {
            for (n, reading) in READINGS.into_iter().enumerate() {
                sums[tap].add(n, &scene.paint(tap, reading));
            }
        }
    }
    let w = &truth.scenario.shared.workload;
    // Nothing is asked of what overlaps or never ended, nor of SYNs that nobody sent.
    let forged = truth.scenario.connects.as_ref().is_some_and(|c| c.half_open > 0);
    let whole = truth.exchanges.iter().all(|e| e.complete) && !truth.cut_off && !truth.disturbed;
    let asked = whole && !w.pipeline && !forged;
    let rtt = truth.scenario.shared.rtt();
    // The tap of who received most sees the sender's limits from afar.
    let checks = Ends::of(|tap| sums[tap].check(moved[tap.peer()] > moved[tap], asked, rtt));
    let verdict = format!("client: {}; server: {}", checks.client.basis, checks.server.basis);
    label(truth, captures, &flows, verdict, |tap| checks[tap].clone())
}

fn label(
    truth: &Truth,
    captures: &Ends<Vec<Record>>,
    flows: &[wire::Flow],
    verdict: String,
    check: impl Fn(End) -> Check,
) -> Label {
    let of = |tap: End| {
        let name = tap.name();
        let found = Tap {
            file: format!("cap.{name}.pcap"),
            packets: captures[tap].len(),
            connections: flows.iter().filter(|f| !f.taps[tap].is_empty()).count(),
            checks: vec![check(tap)],
        };
        (name, found)
    };
    let captures = End::BOTH.into_iter().map(of).collect();
    Label { title: truth.scenario.title.clone(), truth: Told { verdict, captures } }
}
