//! What travels on the virtual wire, and what is written down about it.

use tcpwhy_base::{Cause, Nanos};

/// Header bytes of IPv4 and TCP without options.
pub const HEADERS: u64 = 40;
/// The timestamps option, padded.
pub const TIMESTAMPS: u64 = 12;

/// A TCP packet. Sequence numbers count from the connection's start: 0 is the SYN, 1 the first byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// Connection, from 0.
    pub conn: u32,
    /// 0: sent by the client, 1: by the server.
    pub from: u8,
    /// First sequence number.
    pub seq: u64,
    /// Acknowledgement.
    pub ack: u64,
    /// Payload bytes.
    pub len: u32,
    /// SYN flag.
    pub syn: bool,
    /// ACK flag.
    pub has_ack: bool,
    /// FIN flag.
    pub fin: bool,
    /// PSH flag.
    pub psh: bool,
    /// RST flag.
    pub rst: bool,
    /// Window as the receiver reads it, in bytes.
    pub window: u64,
    /// Shift of the window field; in a SYN, the option.
    pub wscale: u8,
    /// MSS option (SYN).
    pub mss: u16,
    /// The sender's time stamp and the one it echoes.
    pub stamps: Option<(Nanos, Nanos)>,
    /// SACK blocks.
    pub sack: [(u64, u64); 3],
    /// How many of them hold something.
    pub sacks: u8,
    /// Repeats bytes (or the SYN).
    pub repeat: bool,
    /// An ACK that a timer sent.
    pub delayed: bool,
    /// Why it left no earlier; none for one that nothing held.
    pub cause: Option<Cause>,
    /// The first SACK block tells of a duplicate (RFC 2883).
    pub dsack: bool,
    /// Asks whether the window is open again.
    pub probe: bool,
    /// The sender's application does not read.
    pub reader_away: bool,
}

impl Packet {
    /// Bytes of the IP packet.
    pub fn ip_bytes(&self) -> u64 {
        let options = if self.syn {
            20
        } else {
            let stamps = if self.stamps.is_some() { TIMESTAMPS } else { 0 };
            stamps + if self.sacks > 0 { 4 + 8 * u64::from(self.sacks) } else { 0 }
        };
        HEADERS + options + u64::from(self.len)
    }

    /// The sequence number after it.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.syn) + u64::from(self.fin)
    }

    /// Carries nothing but an ACK.
    pub fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.syn && !self.fin && !self.rst
    }
}

/// A packet with its way over the link.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// The packet.
    pub packet: Packet,
    /// When it left its host.
    pub sent: Nanos,
    /// When it came to the other host; none: lost.
    pub arrived: Option<Nanos>,
    /// When the bottleneck had sent it (its last bit); `sent` if the link has no rate.
    pub drained: Nanos,
    /// How long the bottleneck took for it alone.
    pub service: Nanos,
    /// How long it waited behind packets of other connections.
    pub foreign: Nanos,
}
