use crate::{Met, Track};
use tcpwhy_analysis::Connection;
use tcpwhy_base::Nanos;

/// Collects the packets of one connection between two moments.
#[derive(Debug)]
pub struct Stretch {
    /// Place of the connection in the list.
    at: usize,
    last_frame: u64,
    from: Nanos,
    to: Nanos,
    most: usize,
    track: Track,
}

impl Stretch {
    /// Of the connection `at` this place of the list that the pass was made for: `from` and `to` inclusive,
    /// at most `most` packets.
    pub fn new(
        connections: &[Box<Connection>],
        at: usize,
        (from, to): (Nanos, Nanos),
        most: usize,
    ) -> Stretch {
        let c = connections.get(at);
        Stretch {
            at,
            last_frame: c.map_or(0, |c| c.frames.1),
            from,
            to,
            most,
            track: c.map(|c| Track::new(c)).unwrap_or_default(),
        }
    }

    /// Takes what the pass met; `false`: nothing more is wanted. What comes before the stretch is needed to
    /// count from, so the pass must begin with the connection.
    pub fn take(&mut self, met: &Met<'_>) -> bool {
        if let Some((at, packet)) = met.packet
            && at == self.at
            && !packet.is_copy()
            && packet.time >= self.from
            && packet.time <= self.to
        {
            self.track.packets.push(packet);
            self.track.total += 1;
        }
        met.number < self.last_frame && self.track.packets.len() < self.most
    }

    /// What was collected.
    pub fn finish(self) -> Track {
        self.track
    }
}
