//! The reader of a connection, as far as it shows: how much it takes before its window is full, and when it
//! did not read.

use crate::facts::Facts;
use crate::profile::set_its_buffer;
use crate::result::{Connection, Exchange, Span, Vantage};
use tcpwhy_base::{Cause, Class, Nanos, Side};
use tcpwhy_model::{Host, WindowRule};

/// Over which path the replay goes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Over {
    /// The one that was seen.
    SamePath,
    /// Another one: what the first lost is not lost there, and kernels size their buffers anew (`tcp_rcv_space_adjust`,
    /// `tcp_sndbuf_expand`): only those that an application had set stay what they were.
    AnotherPath,
}

/// Sets the receive buffer of end `n`, and each stop of its application: about where it was, for as long as the sender
/// waited for it. It stops there whatever else is changed. `before`: bytes that came to it before `list`, and over
/// which path it goes.
pub(super) fn stops(
    h: &mut Host,
    c: &Connection,
    n: usize,
    list: &[Exchange],
    (before, over): (u64, Over),
    assumed: &mut Vec<String>,
) {
    let side = if n == 0 { Side::Client } else { Side::Server };
    let spans = || list.iter().flat_map(|x| &x.spans).filter(|s| s.side == Some(side));
    let full: Vec<&Span> = spans().filter(|s| s.cause == Cause::ReceiveWindow).collect();
    let stopped: Vec<&Span> = spans().filter(|s| s.cause == Cause::SlowReader).collect();
    let window = c.ends[n].max_window.filter(|&w| w > 0);
    // Flights show beside the sender only: elsewhere one that filled it may look smaller.
    let beside = matches!((c.vantage, n), (Vantage::Client, 0) | (Vantage::Server, 1));
    let filled = |w: &u64| !stopped.is_empty() || beside || c.ends[1 - n].max_flight * 2 > *w;
    if let Some(window) = window.filter(filled).filter(|_| !full.is_empty() || !stopped.is_empty()) {
        let was_set = set_its_buffer(c.ends[n].os, c.ends[n].wscale);
        // Where nothing was scaled the window tells what it may grow to.
        let unscaled = c.ends[n].wscale.is_none();
        if over == Over::SamePath || was_set || unscaled {
            buffer(h, window, &full, was_set, side, assumed);
        }
    }
    if stopped.is_empty() {
        return;
    }
    let mut at = before;
    for x in list {
        let len = x.bytes[1 - n];
        stops_of(h, x, side, (at, len), window.unwrap_or(0), c.path.bandwidth_bps);
        at += len;
    }
    let time = stopped.iter().fold(Nanos::ZERO, |t, s| t + s.duration());
    let times = stopped.iter().fold(0_u64, |n, s| n + u64::from(s.folded.max(1)));
    let often =
        if times == 1 { format!("once, for {time}") } else { format!("{times} times, for {time} in all") };
    assumed.push(format!("The {} stopped reading {often}; it does so with every change, too.", side.name()));
}

/// The buffer holds the largest window. Where smaller windows were filled before, or none was but for unread data, the
/// kernel had sized it, and there is no SO_RCVBUF to be taken away.
fn buffer(h: &mut Host, window: u64, full: &[&Span], was_set: bool, side: Side, assumed: &mut Vec<String>) {
    let flight = |s: &&Span| match s.facts {
        Facts::Window { flight, .. } => Some(u64::from(flight)),
        _ => None,
    };
    let least = full.iter().filter_map(flight).min();
    let window = window.max(2304);
    let grew = full.is_empty() || least.is_some_and(|f| 2 * f <= window);
    h.stack.profile.window = WindowRule::Whole;
    if grew && !was_set {
        // It begins with what the stack begins with, and ends here (`tcp_rmem`).
        let rmem = &mut h.stack.profile.rmem;
        (rmem[1], rmem[2]) = (rmem[1].min(window), window);
        assumed.push(format!("The {}'s window grows up to {window} bytes, its largest.", side.name()));
    } else {
        (h.stack.profile.doubles_buffers, h.stack.profile.rmem_max) = (false, u64::MAX / 2);
        h.rcvbuf = Some(window);
        assumed.push(format!("The {}'s receive buffer is {window} bytes, its largest window.", side.name()));
    }
}

/// The stops within one exchange, whose `len` bytes to the reader begin at `from` of the stream.
fn stops_of(h: &mut Host, x: &Exchange, side: Side, (from, len): (u64, u64), window: u64, bps: Option<u64>) {
    let stop = |s: &Span| s.cause == Cause::SlowReader && s.side == Some(side);
    // While an application works or waits, nothing moves.
    let moves = |s: &&Span| s.cause.class() != Class::Application;
    let moving = x.spans.iter().filter(moves).fold(Nanos::ZERO, |t, s| t + s.duration());
    let (mut moved, mut closed_before) = (Nanos::ZERO, from);
    for s in &x.spans {
        if !stop(s) {
            moved = if moves(&s) { moved + s.duration() } else { moved };
            continue;
        }
        // The window closed here; what it holds had not been read when the application stopped.
        let share = u128::from(len) * moved.0.max(0) as u128 / moving.0.max(1) as u128;
        let closed = from + (share as u64).min(len);
        let last = h.read_pauses.last().map_or(0, |p| p.0);
        let at = closed.saturating_sub(window).max(from + 1).max(last);
        // It filled meanwhile, at the rate of the link.
        let unread = (closed - closed_before).min(window);
        let filling = bps.map_or(0, |bps| u128::from(unread) * 8_000_000_000 / u128::from(bps.max(1)));
        h.read_pauses.push((at, s.duration() + Nanos(filling as i64)));
        closed_before = closed;
    }
}
