//! What is said of bytes that kept a link busy, and of those that were late.

use super::Facts;
use std::fmt;
use tcpwhy_base::Nanos;

impl Facts {
    /// Of so many bytes that kept a link busy; `stood`: in a queue of their own host, zero where nothing tells.
    pub(crate) fn of_bytes(bytes: u32, bps: Option<f64>, stood: Nanos) -> Facts {
        if stood == Nanos::ZERO { Facts::Bytes { bytes, bps } } else { Facts::Stood { bytes, bps, stood } }
    }

    /// What that was made of.
    pub(crate) fn carried(&self) -> Option<(u32, Option<f64>, Nanos)> {
        match *self {
            Facts::Bytes { bytes, bps } => Some((bytes, bps, Nanos::ZERO)),
            Facts::Stood { bytes, bps, stood } => Some((bytes, bps, stood)),
            _ => None,
        }
    }
}

pub(super) fn passed(f: &mut fmt::Formatter<'_>, bytes: u32, bps: Option<f64>, stood: Nanos) -> fmt::Result {
    match bps {
        Some(bps) => write!(f, "{bytes} bytes passed; the bottleneck carries about {}.", bit_rate(bps))?,
        None => write!(f, "{bytes} bytes passed one after the other.")?,
    }
    if stood == Nanos::ZERO {
        return Ok(());
    }
    write!(
        f,
        " By their time stamps the sender had built them up to {stood} before they left its host: they stood in a queue there, of a shaper (`tc -s qdisc show`) or of a slow interface."
    )
}

/// `12.3 Mbit/s`.
pub fn bit_rate(bps: f64) -> String {
    let (value, unit) = match bps {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    if value < 9.995 { format!("{value:.2} {unit}") } else { format!("{value:.0} {unit}") }
}

pub(super) fn queue(f: &mut fmt::Formatter<'_>, rtt: Nanos, base: Nanos) -> fmt::Result {
    write!(
        f,
        "The round trip was {rtt} where {base} is possible: a queue that this connection's own bytes do not fill."
    )
}

pub(super) fn late_between(f: &mut fmt::Formatter<'_>, late: Nanos, rtt: Nanos) -> fmt::Result {
    write!(
        f,
        "Between the two taps it took {late} more than a round trip ({rtt}) and what as many bytes took before: a short queue, or something on the way stood still, a host's interrupts as well."
    )
}
