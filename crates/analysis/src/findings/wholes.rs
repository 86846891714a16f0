//! What is said of a connection as a whole, not of spans.

use super::{Basis, Rollup};
use crate::profile::set_its_buffer;
use crate::result::{Connection, Example, Extremes, Finding, Quality};
use tcpwhy_base::{Cause, Nanos, Side};

/// Whether it is worth asking: those findings need a cost among the spans.
pub(crate) fn may_have_whole_connection_findings(c: &Connection, basis: &Basis) -> bool {
    let costs = [Cause::ReceiveWindow, Cause::SlowReader, Cause::SlowStart, Cause::IdleRestart];
    basis.quick_turns >= 10 || c.budget.0.iter().any(|b| costs.contains(&b.0))
}

pub(crate) fn add_whole_connection_findings(
    connection: &Connection,
    basis: &Basis,
    findings: &mut Vec<Finding>,
    total: f64,
) {
    let quick_turns = basis.quick_turns;
    let rtt = connection.path.rtt.unwrap_or(Nanos::ZERO);
    let longest = basis.rollups.0.iter().filter(|r| r.example.example.exchange > 0).max_by_key(|r| r.lost);
    // Of pure round trips there is no sum here: what is inherent is summed over the capture.
    let quick = || basis.quick.map(|q| q.example);
    let Some(e) = longest.map(|r| r.example.example).or_else(quick) else { return };
    let example = Example { connection: connection.id, ..e };
    let (first, mut idle) = (findings.len(), Nanos::ZERO);
    let mut add = |cause: Cause, side, lost: Nanos, occurrences: u64, why: String| {
        findings.push(Finding {
            lost,
            share: (lost.0 as f64 / total).min(1.0),
            occurrences,
            range: Extremes { shortest: Nanos::ZERO, longest: lost },
            ..Finding::of_wholes(cause, side, example, why)
        });
    };
    // Ten round trips in series that did nothing but travel.
    if quick_turns >= 10 && rtt > Nanos::millis(1) {
        // Beside the server the trips lie between requests.
        let trips = rtt.times(i64::from(quick_turns) - 1);
        let own = trips.min(connection.budget.get(Cause::PathDelay));
        idle = (trips - own).min(connection.gap_budget.get(Cause::PathDelay));
        // Where they waited for less than half of that, most were under way together.
        if (own + idle).times(2) >= trips {
            add(
                Cause::Chatty,
                Some(Side::Client),
                own + idle,
                u64::from(quick_turns),
                format!(
                    "{quick_turns} requests, one after the other, each waiting a round trip of {rtt} and hardly anything else."
                ),
            );
        }
    }
    // What a reader left in its buffer would fill a larger one as well.
    let window_time = connection.budget.get(Cause::ReceiveWindow);
    let known = !connection.quality.has(Quality::NO_WINDOW_SCALE);
    let scaled = connection.ends.iter().all(|e| e.wscale.is_some());
    let said = connection.ends.iter().any(|e| e.mss.is_some());
    // Scaling would only help a window that is at its limit without it, and of the end whose window was full.
    let at_limit = |r: &&Rollup| {
        let end = usize::from(r.side == Some(Side::Server));
        connection.ends[end].max_window.is_some_and(|w| (32_768..=65_535).contains(&w))
    };
    let full = basis.rollups.0.iter().filter(|r| r.cause == Cause::ReceiveWindow && r.side.is_some());
    let limited = full.filter(at_limit).fold(Nanos::ZERO, |sum, r| sum + r.lost);
    if limited > Nanos::ZERO && said && !scaled && known {
        let side = if connection.ends[0].wscale.is_none() { Side::Client } else { Side::Server };
        add(
            Cause::NoWindowScaling,
            Some(side),
            limited,
            1,
            format!(
                "The {} did not offer window scaling, so that no window exceeds 65,535 bytes.",
                side.name()
            ),
        );
    }
    if scaled {
        explicit_receive_buffer(connection, window_time, &mut add);
    }
    let sender = usize::from(connection.bytes[1] > connection.bytes[0]);
    let mss = connection.ends.iter().filter_map(|e| e.mss).min().unwrap_or(0);
    let held = connection.budget.get(Cause::SlowStart) + connection.budget.get(Cause::IdleRestart);
    if mss > 0 && mss < 1_220 && held > Nanos::ZERO {
        // Below what IPv6's minimum MTU allows (1280 - 60, RFC 8200 5): a tunnel or a clamp.
        let saved = Nanos((held.0 as f64 * (1.0 - f64::from(mss) / 1_460.0)) as i64);
        let side = if sender == 0 { Side::Client } else { Side::Server };
        add(
            Cause::SmallMss,
            Some(side),
            saved,
            1,
            format!("Segments carry at most {mss} bytes; 1,460 are usual on Ethernet."),
        );
    }
    findings[first..].iter_mut().filter(|f| f.cause == Cause::Chatty).for_each(|f| f.idle = idle);
}

/// A receiver that had its buffer set before the handshake.
fn explicit_receive_buffer(
    connection: &Connection,
    window_time: Nanos,
    add: &mut dyn FnMut(Cause, Option<Side>, Nanos, u64, String),
) {
    let receiver = usize::from(connection.bytes[0] > connection.bytes[1]);
    let end = &connection.ends[receiver];
    if window_time > Nanos::ZERO && set_its_buffer(end.os, end.wscale) {
        let side = if receiver == 0 { Side::Client } else { Side::Server };
        let scale = end.wscale.unwrap_or(0);
        let max = end.max_window.unwrap_or(0);
        add(
            Cause::ExplicitBuffer,
            Some(side),
            window_time,
            1,
            format!(
                "The {}'s window scale is {scale} (Linux chooses 7 or more by itself) and its window never exceeded {max} bytes: SO_RCVBUF or tcp_rmem was set by hand.",
                side.name()
            ),
        );
    }
}
