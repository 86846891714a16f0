//! What was replayed of a finding, and how near the model comes to it.

use super::Layout;
use crate::figures::count;
use tcpwhy_analysis::{Fix, Replay};
use tcpwhy_base::Nanos;

/// That a simulation came to nothing changes no advice: who asks for all gets it.
pub(super) fn tells(r: &Replay, layout: &Layout) -> bool {
    layout.verbose || r.trustworthy()
}

/// Which part, how near the model comes, and what would have no effect.
pub(super) fn replayed(r: &Replay, fixes: &[Fix], requests: u64) -> String {
    let (modelled, observed, error) = (r.modelled, r.observed, r.error() * 100.0);
    let part = part(r, requests);
    if !r.trustworthy() {
        return format!(
            "Saving not predicted: the simulation of {part} ({modelled}) does not match this capture ({observed}, {error:+.0} %)."
        );
    }
    let scaled = if of_all(r) < requests { "; gains are scaled to all" } else { "" };
    let mut text =
        format!("Replayed: {part}: {modelled} simulated, {observed} measured ({error:+.0} %){scaled}.");
    // What wins a little is a fix, however little it is of the replayed part.
    let helps = |id| fixes.iter().any(|f| f.fix.info().id == id && f.saves.is_some_and(|s| s > Nanos::ZERO));
    let mut none: Vec<String> = Vec::new();
    for v in r
        .no_help
        .iter()
        .filter(|v| !helps(v.id))
        .filter(|v| v.place == "both" || !r.no_help.iter().any(|o| o.id == v.id && o.place == "both"))
    {
        let place = if v.place == "path" { String::new() } else { format!(" ({})", v.place) };
        none.push(format!("{}{place}", v.what));
    }
    if !none.is_empty() {
        text.push_str(&format!(" Would not help: {}.", none.join(", ")));
    }
    text
}

/// How many requests were replayed.
fn of_all(r: &Replay) -> u64 {
    u64::from((r.exchanges.1 + 1).saturating_sub(r.exchanges.0))
}

/// `connection 1, 10 of 32 requests`: without it a reader takes the times for those of the capture.
fn part(r: &Replay, requests: u64) -> String {
    let (n, c) = (of_all(r), r.connection);
    if n < requests {
        format!("connection {c}, {n} of {}", count(requests, "request"))
    } else {
        format!("connection {c}, {}", count(n, "request"))
    }
}
