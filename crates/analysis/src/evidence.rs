//! What a connection shows for or against a cause: the figures that its rule asks for, whether or not it held. The table
//! of causes says which these are.

use crate::facts::bit_rate;
use crate::result::{Connection, Quality};
use tcpwhy_base::{Cause, Evidence, Nanos};

/// Sentences with the measured figures that decide about `cause` on this connection.
pub fn evidence(connection: &Connection, cause: Cause) -> Vec<String> {
    let c = connection;
    let mut out: Vec<String> = cause.info().evidence.iter().map(|&e| sentence(c, e)).collect();
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

fn sentence(c: &Connection, evidence: Evidence) -> String {
    let both = |f: &dyn Fn(usize) -> String| format!("client {}, server {}", f(0), f(1));
    match evidence {
        Evidence::LateAcks => {
            let habit = |i: usize| match c.ends[i].delayed_ack {
                Some(by) if by.shortest == by.longest => format!("late once, by {}", by.longest),
                Some(by) => format!("late by {} to {}", by.shortest, by.longest),
                None => "never late".into(),
            };
            let rtt = c.path.rtt.map_or("unknown".into(), |r| r.to_string());
            format!(
                "ACKs without data: {}. Base round trip {rtt}; an ACK counts as late from the larger of 8 ms and a quarter of it.",
                both(&habit)
            )
        }
        Evidence::SmallSegments => {
            let off = |i: usize| match c.ends[i].nodelay_shown {
                0 => "never sent two partial segments without an ACK between".into(),
                n => {
                    format!("sent a partial segment after an unacknowledged one {n} times: Nagle is off")
                }
            };
            format!("Nagle: {}.", both(&off))
        }
        Evidence::Windows => {
            let window = |i: usize| match c.ends[i].max_window {
                Some(w) => format!("at most {w} bytes, {} zero windows", c.ends[i].zero_windows),
                None => "no window seen".into(),
            };
            format!("Windows offered: {}.", both(&window))
        }
        Evidence::InFlight => {
            format!("Most bytes in flight: {}.", both(&|i| c.ends[i].max_flight.to_string()))
        }
        Evidence::Flights => {
            let flight = |i: usize| {
                let first = c.ends[i]
                    .initial_flight
                    .map_or("no flight that waited".into(), |f| format!("first flight {f} bytes"));
                format!("{first}, largest {} bytes", c.ends[i].max_flight)
            };
            format!("Flights: {}.", both(&flight))
        }
        Evidence::Retransmissions => {
            format!("Repeated packets: {}.", both(&|i| c.retransmitted[i].to_string()))
        }
        Evidence::Order => {
            format!("Packets in another order: {}.", both(&|i| c.ends[i].reordered.to_string()))
        }
        Evidence::SynRetransmissions => {
            format!("SYNs and SYN-ACKs repeated: {}.", both(&|i| c.ends[i].syn_repeats.to_string()))
        }
        Evidence::Rate => match c.path.bandwidth_bps {
            Some(bps) => {
                format!("Trains of packets were spread out as by a link of {}.", bit_rate(bps as f64))
            }
            None => "No train of packets was long enough to show the rate of the link.".into(),
        },
        Evidence::KeepAlives => format!("Keep-alives: {}.", both(&|i| c.ends[i].keepalives.to_string())),
        Evidence::SegmentSize => {
            let mss = |i: usize| c.ends[i].mss.map_or("not seen".into(), |m| format!("{m} bytes"));
            format!("Segment sizes offered: {}.", both(&mss))
        }
    }
}
