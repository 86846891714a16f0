//! Counts the packets of one direction and says which were chosen to be lost.

use std::collections::HashMap;
use tcpwhy_base::{Chosen, End, Segment, What};

/// What the link must know of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// The client's.
    pub(crate) port: u16,
    pub(crate) seq: u32,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) payload: u32,
}

impl Seen {
    pub(crate) fn of(segment: &Segment, from: End) -> Seen {
        let (syn, fin) = (segment.flags.syn(), segment.flags.fin());
        let client = if from == End::Client { segment.src } else { segment.dst };
        Seen { port: client.port, seq: segment.seq.0, syn, fin, payload: segment.len }
    }
}

/// State of one direction.
#[derive(Debug)]
pub(crate) struct Chooser {
    rules: Vec<Chosen>,
    /// Payload bytes of this direction over a whole connection, and of a full segment.
    total: u64,
    mss: u64,
    flows: HashMap<u16, Flow>,
    /// Connections in the order of their first packet.
    connections: u32,
}

#[derive(Debug, Default)]
struct Flow {
    /// Which connection it is, from 0.
    connection: u32,
    isn: Option<u32>,
    syns: u32,
    data: u32,
    acks: u32,
    /// Copies that each rule has taken.
    taken: Vec<u32>,
}

/// What is known of a packet after counting it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// First payload byte, counted from 0.
    pub(crate) relative: Option<u64>,
    /// The how-manieth packet with payload of its connection.
    pub(crate) nth_data: u32,
    /// A rule wants it lost.
    pub(crate) chosen: bool,
}

impl Chooser {
    pub(crate) fn new(rules: &[Chosen], total: u64, mtu: u64) -> Chooser {
        // IP and TCP headers with the time stamp option.
        let mss = mtu.saturating_sub(52).max(1);
        Chooser { rules: rules.to_vec(), total, mss, flows: HashMap::new(), connections: 0 }
    }

    pub(crate) fn count(&mut self, seen: &Seen) -> Place {
        let (connections, rules) = (&mut self.connections, self.rules.len());
        let flow = self.flows.entry(seen.port).or_insert_with(|| {
            *connections += 1;
            Flow { connection: *connections - 1, taken: vec![0; rules], ..Flow::default() }
        });
        let relative = if seen.syn {
            flow.isn = Some(seen.seq);
            flow.syns += 1;
            None
        } else {
            if seen.payload > 0 {
                flow.data += 1;
            } else {
                flow.acks += 1;
            }
            flow.isn.map(|isn| u64::from(seen.seq.wrapping_sub(isn).wrapping_sub(1)))
        };
        let covers = |at: u64| {
            seen.payload > 0 && relative.is_some_and(|r| r <= at && at < r + u64::from(seen.payload))
        };
        let mut chosen = false;
        for (rule, taken) in self.rules.iter().zip(&mut flow.taken) {
            let (hit, copies) = match rule.what {
                What::Syn(n) => (seen.syn && n == u64::from(flow.syns), u32::MAX),
                What::Data(n) => (seen.payload > 0 && n == u64::from(flow.data), u32::MAX),
                What::Ack(n) => (seen.payload == 0 && !seen.syn && n == u64::from(flow.acks), u32::MAX),
                What::Seq { at, copies } => (covers(at), copies),
                What::Last { back, copies } => {
                    let at = self.total.wrapping_sub(1).checked_sub(back.saturating_mul(self.mss));
                    (self.total > 0 && at.is_some_and(covers), copies)
                }
            };
            if hit && rule.connection == flow.connection && *taken < copies {
                *taken += 1;
                chosen = true;
            }
        }
        let nth_data = if seen.payload > 0 { flow.data } else { 0 };
        Place { relative, nth_data, chosen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(seq: u32, payload: u32, syn: bool) -> Seen {
        Seen { port: 1, seq, syn, fin: false, payload }
    }

    fn chosen(what: What, connection: u32, total: u64, segments: &[Seen]) -> Vec<bool> {
        let mut chooser = Chooser::new(&[Chosen { what, connection }], total, 1500);
        segments.iter().map(|s| chooser.count(s).chosen).collect()
    }

    #[test]
    fn by_place() {
        // A sequence number that wraps.
        let syn = segment(u32::MAX - 10, 0, true);
        let s = |relative: u32, len| segment(u32::MAX.wrapping_sub(9).wrapping_add(relative), len, false);
        let all = [syn, s(0, 1448), s(1448, 1448), s(2896, 104), s(1448, 1448), s(1448, 1448), s(3000, 0)];
        let rule = |at, copies| What::Seq { at, copies };
        assert_eq!(chosen(rule(1500, 1), 0, 3000, &all), [false, false, true, false, false, false, false]);
        assert_eq!(chosen(rule(1500, 2), 0, 3000, &all), [false, false, true, false, true, false, false]);
        let last = |back| What::Last { back, copies: 9 };
        assert_eq!(chosen(last(0), 0, 3000, &all), [false, false, false, true, false, false, false]);
        assert_eq!(chosen(last(1), 0, 3000, &all), [false, false, true, false, true, true, false]);
        assert_eq!(chosen(What::Syn(1), 0, 0, &all)[..2], [true, false]);
        assert_eq!(chosen(What::Syn(1), 1, 0, &all)[..2], [false, false]);
        assert_eq!(chosen(What::Ack(1), 0, 0, &all), [false, false, false, false, false, false, true]);
    }
}
