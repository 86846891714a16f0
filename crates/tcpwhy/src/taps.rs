//! What is said of two captures of the same connections, at both of their ends.

use crate::input::Input;
use crate::shown;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tcpwhy_base::{Endpoint, Nanos};
use tcpwhy_library::Connection;
use tcpwhy_library::captures::taps::{Taps, Unpaired, among};
use tcpwhy_library::captures::{Analysis, Read};
use tcpwhy_report::Warning;

/// Two inputs hold the same connections, seen from two ends.
pub(crate) fn are_two(inputs: [&Input; 2], stop: &Arc<AtomicBool>) -> bool {
    let mut inputs = inputs.map(Input::clone);
    matches!(among(&mut inputs, None, stop), Ok(Some(_)))
}

/// What is said of two inputs that have seen the same connections.
pub(crate) fn warning(
    taps: &Result<Option<Taps>, Unpaired>,
    inputs: &[Input],
    analysis: &Analysis,
) -> Option<Warning> {
    let [first, second] = inputs else { return None };
    let taps = match taps {
        Ok(taps) => taps.as_ref()?,
        Err(_) => {
            let text = format!(
                "{} and {} hold the same connections, but no clock fits both: packets would have arrived before they left. Was a \
                 clock set meanwhile? They are explained apart.",
                first.base(),
                second.base()
            );
            return Some(Warning { code: "clocks", text, count: 1 });
        }
    };
    let (n, clock) = (taps.pairing.connections(), &taps.pairing.clock);
    let of = if n == 1 { "one connection is".into() } else { format!("{n} connections are") };
    let away = Nanos(clock.offset.0.abs());
    let ahead = match away {
        Nanos::ZERO => "agrees with it".into(),
        _ => format!("is {away} {}", side(clock.offset)),
    };
    let drift = match clock.drift_ppb {
        0 => String::new(),
        ppb => {
            format!(" and runs {:.1} ppm {}", ppb.abs() as f64 / 1e3, if ppb > 0 { "fast" } else { "slow" })
        }
    };
    let mut text = format!(
        "Two taps: {of} in both captures and explained once. Times are those of {}; the clock of {} {ahead}{drift}, by the packets \
         that passed both; that is off by {} at most, and right where both ways take equally long.",
        first.base(),
        second.base(),
        clock.residual
    );
    text += &losses(analysis);
    if taps.pairing.translated > 0 {
        text += &format!(
            " The addresses of {} of them were translated on the way; their first sequence numbers are the same.",
            taps.pairing.translated
        );
    }
    let alone = taps.pairing.alone[0] + taps.pairing.alone[1];
    if alone > 0 {
        text += &format!(" {alone} with a handshake are in one of them only, and explained from that.");
    }
    Some(Warning { code: "two_taps", text, count: n as u64 })
}

/// One with as many bytes that began so soon before or after is the same one: the clocks of two hosts may differ.
const NEAR: Nanos = Nanos::secs(60);

/// What is said where several captures, which overlap in time, hold the same connections: those count twice.
pub(crate) fn twice(
    inputs: &[Input],
    read: &Read,
    analysis: &Analysis,
    stop: &Arc<AtomicBool>,
) -> Option<Warning> {
    if read.overlapping == 0 {
        return None;
    }
    let (pairs, count) = same_in_two(&read.frames_before, &analysis.connections);
    let (&(a, b), _) = pairs.iter().max_by_key(|(pair, n)| (**n, std::cmp::Reverse(**pair)))?;
    let (first, second) = (inputs.get(a)?, inputs.get(b)?);
    let of = analysis.connections.len();
    let more = match pairs.len() - 1 {
        0 => String::new(),
        1 => ", and so do two others".into(),
        n => format!(", and so do {n} other pairs"),
    };
    let [one, other] = [first, second].map(|input| shown::argument(input.path.as_os_str()));
    let next = if are_two([first, second], stop) {
        format!(
            "they were captured at both ends: `tcpwhy explain {one} {other}` explains them as one, each connection once"
        )
    } else {
        "leave one of them out".into()
    };
    let text = format!(
        "{count} of {of} connections count twice, with all their time: {} and {} hold the same ones{more}; {next}",
        shown::name(&first.name),
        shown::name(&second.name)
    );
    Some(Warning { code: "counted_twice", text, count: 1 })
}

/// Which pairs of captures hold how many of the same connections, and how many connections are in two or more.
fn same_in_two(
    frames_before: &[u64],
    connections: &[Box<Connection>],
) -> (HashMap<(usize, usize), u64>, u64) {
    let file =
        |c: &Connection| frames_before.partition_point(|&before| before < c.frames.0).saturating_sub(1);
    let mut known: HashMap<(Endpoint, Endpoint), Vec<&Connection>> = HashMap::new();
    let (mut pairs, mut count) = (HashMap::new(), 0);
    for c in connections {
        // Who is the client may have been told in one of them alone.
        let others = known.entry((c.client.min(c.server), c.client.max(c.server))).or_default();
        let other = others.iter().find(|o| file(o) != file(c) && are_same(o, c));
        if let Some(other) = other {
            let (a, b) = (file(other), file(c));
            *pairs.entry((a.min(b), a.max(b))).or_default() += 1;
            count += 1;
        }
        others.push(c);
    }
    (pairs, count)
}

/// Ports are not used by two connections at once.
fn are_same(a: &Connection, b: &Connection) -> bool {
    let apart = Nanos((a.start - b.start).0.abs());
    let bytes = |c: &Connection| c.bytes[0] + c.bytes[1];
    a.start < b.end && b.start < a.end || apart < NEAR && bytes(a) == bytes(b)
}

/// How many packets never came from one tap to the other, and on which way.
fn losses(analysis: &Analysis) -> String {
    let known = || analysis.connections.iter().filter_map(|c| c.taps.as_deref());
    let comparable = known().filter(|t| t.comparable.iter().all(|&c| c));
    let sum = comparable.fold([[0; 2]; 2], |sum: [[u64; 2]; 2], t| {
        [0, 1].map(|end| [sum[end][0] + t.lost[end], sum[end][1] + t.sent[end]])
    });
    let of = |[lost, sent]: [u64; 2], way: &str| format!("{lost} of {sent} on the way to the {way}");
    match sum {
        [[_, 0], [_, 0]] => {
            " Packets are joined or split between the taps, so that losses cannot be told one by one.".into()
        }
        [[0, _], [0, _]] => " No packet was lost between the taps.".into(),
        [there, back] => format!(" Packets lost: {}, {}.", of(there, "server"), of(back, "client")),
    }
}

fn side(offset: Nanos) -> &'static str {
    if offset > Nanos::ZERO { "ahead" } else { "behind" }
}
