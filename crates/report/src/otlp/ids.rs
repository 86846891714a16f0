//! Ids of traces and spans. They are made from what they name, so that the same capture gives the same ids,
//! and a file that is sent twice is one trace.

use std::net::IpAddr;
use tcpwhy_analysis::{Connection, Part, SpanId};

/// Ids within one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids {
    trace: [u64; 2],
}

/// The finalizer of SplitMix64: each bit of the result depends on each of `z`.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Ids {
    pub(super) fn new(c: &Connection) -> Ids {
        let mut trace = [1, 2];
        for end in [c.client, c.server] {
            let ip = match end.ip {
                IpAddr::V4(ip) => u128::from(ip.to_bits()),
                IpAddr::V6(ip) => ip.to_bits(),
            };
            for word in [ip as u64, (ip >> 64) as u64, end.port.into()] {
                trace = trace.map(|t| mix(t ^ word));
            }
        }
        for word in [c.start.0 as u64, c.id.into()] {
            trace = trace.map(|t| mix(t ^ word));
        }
        Ids { trace }
    }

    /// The trace, in 32 digits.
    pub(super) fn trace(self) -> String {
        format!("{:016x}{:016x}", self.trace[0], self.trace[1])
    }

    fn id(self, [part, number, span]: [u64; 3]) -> String {
        let id = mix(self.trace[0] ^ mix(part ^ mix(number ^ mix(span))));
        // Zero is no id.
        format!("{:016x}", id.max(1))
    }

    /// The span of the connection, in 16 digits.
    pub(super) fn connection(self) -> String {
        self.id([0, 0, 0])
    }

    /// That of a part.
    pub(super) fn part(self, part: Part) -> String {
        self.span(SpanId { connection: 0, part, number: 0 })
    }

    /// That of a stretch of time.
    pub(super) fn span(self, id: SpanId) -> String {
        let (part, number) = match id.part {
            Part::Setup => (1, 0),
            Part::Exchange(n) => (2, n.into()),
            Part::Gap(n) => (3, n.into()),
        };
        self.id([part, number, id.number.into()])
    }
}
