//! What a connection shows for or against a cause: the figures that a rule asks for, whether or not it held.

use crate::facts::bit_rate;
use crate::result::{Connection, Quality};
use tcpwhy_base::{Cause, Nanos};

/// Sentences with the measured figures that decide about `cause` on this connection.
pub fn evidence(connection: &Connection, cause: Cause) -> Vec<String> {
    let mut out = Vec::new();
    let c = connection;
    let both = |f: &dyn Fn(usize) -> String| format!("client {}, server {}", f(0), f(1));
    let rtt = c.path.rtt.map_or("unknown".into(), |r| r.to_string());
    match cause {
        Cause::Nagle | Cause::NagleDelayedAck | Cause::DelayedAck | Cause::Cork => {
            let habit = |i: usize| match c.ends[i].delayed_ack {
                Some((a, b)) if a == b => format!("late once, by {a}"),
                Some((a, b)) => format!("late by {a} to {b}"),
                None => "never late".into(),
            };
            out.push(format!("ACKs without data: {}.", both(&habit)));
            out.push(format!(
                "Base round trip {rtt}; an ACK counts as late from the larger of 8 ms and a quarter of it."
            ));
            if cause != Cause::DelayedAck {
                let off = |i: usize| {
                    if c.ends[i].nodelay_shown > 0 {
                        format!(
                            "sent a partial segment after an unacknowledged one {} times: Nagle is off",
                            c.ends[i].nodelay_shown
                        )
                    } else {
                        "never sent two partial segments without an ACK between".into()
                    }
                };
                out.push(format!("Nagle: {}.", both(&off)));
            }
        }
        Cause::ReceiveWindow
        | Cause::SlowReader
        | Cause::SillyWindow
        | Cause::NoWindowScaling
        | Cause::MutualBlock => {
            let window = |i: usize| match c.ends[i].max_window {
                Some(w) => format!("at most {w} bytes, {} zero windows", c.ends[i].zero_windows),
                None => "no window seen".into(),
            };
            out.push(format!("Windows offered: {}.", both(&window)));
            out.push(format!("Most bytes in flight: {}.", both(&|i| c.ends[i].max_flight.to_string())));
        }
        Cause::SendBuffer
        | Cause::SlowStart
        | Cause::IdleRestart
        | Cause::CongestionWindow
        | Cause::Pacing => {
            let flight = |i: usize| {
                let first = c.ends[i]
                    .initial_flight
                    .map_or("no flight that waited".into(), |f| format!("first flight {f} bytes"));
                format!("{first}, largest {} bytes", c.ends[i].max_flight)
            };
            out.push(format!("Flights: {}.", both(&flight)));
            out.push(format!("Repeated packets: {}.", both(&|i| c.retransmitted[i].to_string())));
        }
        Cause::FastRecovery
        | Cause::RetransmissionTimeout
        | Cause::TailLossProbe
        | Cause::SpuriousRecovery
        | Cause::PathMtu => {
            out.push(format!("Repeated packets: {}.", both(&|i| c.retransmitted[i].to_string())));
            out.push(format!("Packets in another order: {}.", both(&|i| c.ends[i].reordered.to_string())));
        }
        Cause::SynRetransmit | Cause::AcceptQueueFull | Cause::SynQueueFull | Cause::Refused => {
            out.push(format!(
                "SYNs and SYN-ACKs repeated: {}.",
                both(&|i| c.ends[i].syn_repeats.to_string())
            ));
        }
        Cause::Bandwidth | Cause::Queueing => out.push(match c.path.bandwidth_bps {
            Some(bps) => {
                format!("Trains of packets were spread out as by a link of {}.", bit_rate(bps as f64))
            }
            None => "No train of packets was long enough to show the rate of the link.".into(),
        }),
        Cause::KeepaliveOrDeadPeer => {
            out.push(format!("Keep-alives: {}.", both(&|i| c.ends[i].keepalives.to_string())));
        }
        _ => {}
    }
    if c.quality.has(Quality::ONE_SIDED) {
        out.push("Only one direction is in the capture: what its ACKs would show is missing.".into());
    }
    if c.quality.has(Quality::CAPTURE_DROPS) {
        out.push("The capture lost packets of this connection.".into());
    }
    if c.path.rtt.is_none_or(|r| r == Nanos::ZERO) {
        out.push("The round trip could not be measured.".into());
    }
    out
}
