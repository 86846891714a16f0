use tcpwhy_analysis::Connection;
use tcpwhy_base::{End, Ends, Nanos, TcpFlags};

/// One packet of a connection, as graphs and ladders draw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of its frame, counted through all inputs.
    pub frame: u64,
    /// When it passed, since the Unix epoch; never before the packet that stands before it in the capture.
    pub time: Nanos,
    /// Who sent it.
    pub from: End,
    /// Flags.
    pub flags: TcpFlags,
    /// Sequence number, counted from the first of its direction (a SYN is 0, the first byte 1), beyond 32 bits.
    pub seq: i64,
    /// Acknowledgement number, counted likewise; 0 without the ACK flag.
    pub ack: i64,
    /// Payload bytes.
    pub len: u32,
    /// Window as it stands in the header.
    pub window: u16,
    /// Bits of [`marks`].
    pub marks: u8,
    /// SACK blocks, counted like `ack`; `sacks` of them.
    pub sack: [(i64, i64); 4],
    /// How many.
    pub sacks: u8,
}

/// What is odd about a packet; bits.
pub mod marks {
    /// Repeats bytes that passed this tap before.
    pub const RETRANSMITTED: u8 = 1;
    /// Fills a hole within a few milliseconds of its making: sent in order, came late.
    pub const OUT_OF_ORDER: u8 = 2;
    /// A pure ACK that repeats the one before, with the same window, while data is out.
    pub const DUPLICATE_ACK: u8 = 4;
    /// Advertises no window at all.
    pub const ZERO_WINDOW: u8 = 8;
    /// A keep-alive or a window probe.
    pub const PROBE: u8 = 16;
    /// Fills a hole later than that: the bytes were lost before this tap, and repeated.
    pub const LATE: u8 = 32;
    /// A copy of a packet that passed just before, which the analysis leaves out; no [`Track`](crate::Track) holds one.
    pub const COPY: u8 = 64;
}

impl Packet {
    /// The sequence number after it: SYN and FIN count one each.
    pub fn seq_end(&self) -> i64 {
        self.seq + i64::from(self.len) + i64::from(self.flags.syn()) + i64::from(self.flags.fin())
    }

    /// The acknowledgement number, if the ACK flag says that there is one.
    pub fn acknowledges(&self) -> Option<i64> {
        self.flags.ack().then_some(self.ack)
    }

    /// The window in bytes, with the shift that its sender announced; a SYN's is never scaled (RFC 7323, 2.2).
    pub fn window_bytes(&self, shift: Ends<u8>) -> i64 {
        let shift = if self.flags.syn() { 0 } else { shift[self.from] };
        i64::from(self.window) << shift.min(14)
    }

    /// A copy of a packet that passed just before.
    pub fn is_copy(&self) -> bool {
        self.marks & marks::COPY != 0
    }
}

/// The packets of one connection, with what is needed to read them.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// Id of the connection.
    pub connection: u32,
    /// Window scale of client and server; 0 where unknown or not agreed.
    pub shift: Ends<u8>,
    /// In the order in which they passed, without copies.
    pub packets: Vec<Packet>,
    /// How many there were; more than `packets` if they were thinned out.
    pub total: u64,
}

impl Track {
    /// Of this connection, without packets yet.
    pub fn new(c: &Connection) -> Track {
        // A scale is in force only if both announced one (RFC 7323, 2.2), and 14 is the largest (2.3).
        let shift = match (c.ends[0].wscale, c.ends[1].wscale) {
            (Some(client), Some(server)) => Ends::new(client.min(14), server.min(14)),
            _ => Ends::default(),
        };
        Track { connection: c.id, shift, ..Track::default() }
    }
}
