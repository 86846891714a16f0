//! What a connection shows for or against a cause: the figures that its rule asks for, whether or not it
//! held. The table of causes says which these are.

use crate::facts::bit_rate;
use crate::place::Part;
use crate::result::{Connection, Quality};
use tcpwhy_base::{Cause, Class, Evidence, Nanos};

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
                    format!(
                        "sent a partial segment after an unacknowledged one {n} times, which Nagle's algorithm does not let go"
                    )
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
            None => {
                "No train of packets was long enough to show the rate of the link for the whole connection."
                    .into()
            }
        },
        Evidence::KeepAlives => format!("Keep-alives: {}.", both(&|i| c.ends[i].keepalives.to_string())),
        Evidence::SegmentSize => {
            let mss = |i: usize| c.ends[i].mss.map_or("not seen".into(), |m| format!("{m} bytes"));
            format!("Segment sizes offered: {}.", both(&mss))
        }
    }
}

/// Which condition of the rule for `cause` no connection meets, with the figures that come nearest; then the
/// longest wait, and what it was for instead.
pub fn missing(connections: &[Box<Connection>], cause: Cause) -> Vec<String> {
    let mut out: Vec<String> =
        cause.info().evidence.iter().filter_map(|&e| unmet(connections, cause, e)).collect();
    out.extend(longest_wait(connections, cause));
    out
}

/// What `evidence` lacks on all of them.
fn unmet(connections: &[Box<Connection>], cause: Cause, evidence: Evidence) -> Option<String> {
    let ends = || connections.iter().flat_map(|c| c.ends.iter());
    let none = |what: &str, n: u64| (n == 0).then(|| format!("Missing: {what}"));
    match evidence {
        Evidence::LateAcks => {
            none("an ACK that came late.", ends().filter(|e| e.delayed_ack.is_some()).count() as u64)
        }
        Evidence::SmallSegments => {
            let shown: u64 = ends().map(|e| u64::from(e.nodelay_shown)).sum();
            let off = connections.iter().filter(|c| c.ends.iter().any(|e| e.nodelay_shown > 0)).count();
            let held = "Missing: a partial segment that left with the ACK of the data before it.";
            Some(match shown {
                0 => held.into(),
                n => format!(
                    "{held} Partial segments left behind unacknowledged data {n} times (on {off} of {} connections), so Nagle's algorithm was off there.",
                    connections.len()
                ),
            })
        }
        Evidence::Windows => {
            let full = connections.iter().flat_map(|c| {
                (0..2).filter_map(move |s| {
                    Some((c.ends[s].max_flight, c.ends[1 - s].max_window.filter(|&w| w > 0)?, c.id))
                })
            });
            let share = |f: &(u64, u64, u32)| f.0 as f64 / f.1 as f64;
            let (flight, window, id) = full.max_by(|a, b| share(a).total_cmp(&share(b)))?;
            Some(format!(
                "Missing: waits that ended when the peer's window opened. The fullest held {flight} of at most {window} bytes ({:.1} %, connection {id}).",
                100.0 * share(&(flight, window, id))
            ))
        }
        Evidence::Flights => {
            let largest = connections
                .iter()
                .flat_map(|c| c.ends.iter().map(move |e| (e, c.id)))
                .max_by_key(|e| e.0.max_flight)?;
            let (end, id) = largest;
            let waited = ends().filter(|e| e.initial_flight.is_some()).count() as u64;
            let segments = end.mss.filter(|&m| m > 0).map_or(String::new(), |m| {
                format!(", in segments of {m}: {:.1}", end.max_flight as f64 / f64::from(m))
            });
            let what = format!(
                "a flight that ended at its limit and waited for an ACK though more was to be sent. The largest had {} bytes{segments} (connection {id}).",
                end.max_flight
            );
            none(&what, waited)
        }
        Evidence::Retransmissions => {
            let n = connections.iter().map(|c| c.retransmitted[0] + c.retransmitted[1]).sum();
            // What a window has become after a loss is one way of several.
            if cause.info().group == tcpwhy_base::Group::Loss {
                none("a packet that was sent again.", n)
            } else {
                None
            }
        }
        Evidence::SynRetransmissions => {
            let repeats = ends().map(|e| u64::from(e.syn_repeats)).sum();
            none("a SYN or SYN-ACK that was sent again, and first data that nobody acknowledged.", repeats)
        }
        Evidence::KeepAlives => {
            none("a keep-alive or probe without an answer.", ends().map(|e| u64::from(e.keepalives)).sum())
        }
        Evidence::Rate => {
            let rates = connections.iter().filter(|c| c.path.bandwidth_bps.is_some()).count() as u64;
            none("a train of packets that a link had spread out.", rates)
        }
        Evidence::InFlight | Evidence::Order | Evidence::SegmentSize => None,
    }
}

/// The longest wait within requests: one of TCP's, if there is one.
fn longest_wait(connections: &[Box<Connection>], cause: Cause) -> Option<String> {
    let waits = connections.iter().flat_map(|c| {
        c.spans().filter_map(move |(id, span)| match id.part {
            Part::Exchange(exchange) if span.cause != cause => Some((c.id, exchange, span)),
            _ => None,
        })
    });
    let tcp = |span: &crate::result::Span| span.cause.class() == Class::Tcp;
    let (connection, exchange, span) =
        waits.max_by_key(|w| (tcp(w.2), w.2.duration(), std::cmp::Reverse((w.0, w.1))))?;
    let whose = if tcp(span) { " that TCP made" } else { "" };
    Some(format!(
        "The longest wait{whose} took {} (connection {connection}, exchange {exchange}) and was {}: {}",
        span.duration(),
        span.cause.id(),
        span.facts.sentence()
    ))
}
