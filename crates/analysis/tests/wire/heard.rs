//! What a kernel says beside the packets of a wire.

use super::Wire;
use super::told::alike_at_rest;
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Nanos, Observation, Segment, SocketChange, SocketEvent};

/// What the kernel of a host says at these times from the first packet.
pub(crate) fn says(w: &Wire, host: usize, changes: &[(Nanos, SocketChange)]) -> Vec<SocketEvent> {
    let zero = w.segments()[0].time;
    let [local, remote] = [w.host[host].end, w.host[1 - host].end];
    changes.iter().map(|&(at, change)| SocketEvent { time: zero + at, local, remote, change }).collect()
}

/// The only connection, from packets and kernel events in the order of time.
pub(crate) fn hear(segments: &[Segment], events: &[SocketEvent]) -> Connection {
    let mut seen: Vec<Observation<'_>> = events.iter().map(Observation::Socket).collect();
    seen.extend(segments.iter().map(Observation::Segment));
    // Of one moment the call comes first, then what it sends.
    seen.sort_by_key(|o| o.time());
    let mut analysis = alike_at_rest(|analyzer| seen.iter().for_each(|&o| analyzer.observe(o)));
    *analysis.connections.remove(0)
}
