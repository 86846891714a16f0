//! The flight log: which segments left together, when, and what had held them.

use crate::scenario::Scenario;
use crate::sim::Outcome;
use tcpwhy_base::{Cause, Nanos};

/// Segments of one direction that left together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Connection, from 0.
    pub conn: u32,
    /// 0: sent by the client, 1: by the server.
    pub from: u8,
    /// When its first segment left.
    pub start: Nanos,
    /// When its last segment left.
    pub end: Nanos,
    /// When the first of its segments that came arrived; none: all were lost.
    pub arrived: Option<Nanos>,
    /// When the last of its segments that came arrived; none: all were lost.
    pub complete: Option<Nanos>,
    /// How many segments.
    pub segments: u32,
    /// Payload of its segments, in bytes.
    pub bytes: u64,
    /// What had held its first segment.
    pub cause: Option<Cause>,
    /// Since the packet with data before it, of either side, had left or arrived at this side.
    pub waited: Nanos,
    /// Segments that repeat earlier ones, and that were lost.
    pub repeats: u32,
    /// Segments that were lost on the way.
    pub lost: u32,
    /// A SYN or SYN-ACK, not data.
    pub syn: bool,
}

/// The flights of a run, in order. Segments belong to one flight while less than a quarter of the round trip (or a
/// millisecond, on short paths) lies between them and the other side sends no data.
pub fn flights(scenario: &Scenario, outcome: &Outcome) -> Vec<Flight> {
    let apart = scenario.rtt().part(4).max(Nanos::millis(1));
    let mut out: Vec<Flight> = Vec::new();
    // The open flight of each connection, and when each side last sent or got data.
    let mut open: Vec<Option<usize>> = vec![None; outcome.connections.len()];
    let mut touched: Vec<[Nanos; 2]> = vec![[Nanos::ZERO; 2]; outcome.connections.len()];
    for p in &outcome.passages {
        let k = &p.packet;
        if k.len == 0 && !k.syn {
            continue;
        }
        let id = k.conn as usize;
        let (Some(slot), Some(seen)) = (open.get_mut(id), touched.get_mut(id)) else { continue };
        let mine = usize::from(k.from);
        let joins = slot.and_then(|i| out.get(i)).is_some_and(|f| {
            f.from == k.from && !f.syn && !k.syn && p.sent - f.end <= apart && (k.repeat == (f.repeats > 0))
        });
        let i = match *slot {
            Some(i) if joins => i,
            _ => {
                out.push(Flight {
                    conn: k.conn,
                    from: k.from,
                    start: p.sent,
                    end: p.sent,
                    arrived: None,
                    complete: None,
                    segments: 0,
                    bytes: 0,
                    cause: k.cause,
                    waited: (p.sent - seen[mine].min(p.sent)).floor0(),
                    repeats: 0,
                    lost: 0,
                    syn: k.syn,
                });
                out.len() - 1
            }
        };
        *slot = Some(i);
        if let Some(f) = out.get_mut(i) {
            f.end = p.sent;
            f.segments += 1;
            f.bytes += u64::from(k.len);
            f.repeats += u32::from(k.repeat);
            f.lost += u32::from(p.arrived.is_none());
            f.arrived = f.arrived.or(p.arrived);
            f.complete = f.complete.max(p.arrived);
        }
        seen[mine] = p.sent;
        if let Some(at) = p.arrived {
            seen[1 - mine] = seen[1 - mine].max(at);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::{Step, Turn, Workload};

    #[test]
    fn slow_start_doubles_its_flights() {
        let mut s = Scenario::with_path(Nanos::millis(100), None, None, 1500);
        let response = vec![Step::Write(100_000)];
        s.workload =
            Workload::serial(Turn { request: vec![Step::Write(100)], response, ..Turn::default() }, 1);
        let out = crate::run(&s).expect("possible");
        let all = flights(&s, &out);
        let down: Vec<u32> = all.iter().filter(|f| f.from == 1 && !f.syn).map(|f| f.segments).collect();
        assert_eq!(down[..2], [10, 20], "{down:?}");
        assert!(all[0].syn && all[1].syn);
        let second = all.iter().filter(|f| f.from == 1 && !f.syn).nth(1).expect("two flights");
        assert_eq!(second.cause, Some(Cause::SlowStart));
        assert!((second.waited.as_ms() - 100.0).abs() < 1.0, "{:?}", second.waited);
    }
}
