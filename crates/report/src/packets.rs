//! The packets of a connection as graphs and ladders draw them: counted from the first sequence number of each
//! direction, beyond 32 bits, with what is odd about each.

use tcpwhy_base::{Nanos, TcpFlags};

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of its frame, counted through all inputs.
    pub frame: u64,
    /// When it passed, since the Unix epoch; never before the packet drawn last.
    pub time: Nanos,
    /// 0 from the client, 1 from the server.
    pub from: u8,
    /// Flags.
    pub flags: TcpFlags,
    /// Sequence number, counted from the first of its direction (a SYN is 0, the first byte 1).
    pub seq: i64,
    /// Acknowledgement number, counted likewise; 0 without the ACK flag.
    pub ack: i64,
    /// Payload bytes.
    pub len: u32,
    /// Window field, not scaled.
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
}

impl Packet {
    /// The sequence number after it: SYN and FIN count one each.
    pub fn seq_end(&self) -> i64 {
        self.seq + i64::from(self.len) + i64::from(self.flags.syn()) + i64::from(self.flags.fin())
    }

    /// The window in bytes, with the shift that its sender announced; a SYN's is never scaled (RFC 7323, 2.2).
    pub fn window_bytes(&self, shift: [u8; 2]) -> i64 {
        let shift = if self.flags.syn() { 0 } else { shift[usize::from(self.from & 1)] };
        i64::from(self.window) << shift.min(14)
    }
}

/// The packets of one connection, with what is needed to read them.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// Id of the connection.
    pub connection: u32,
    /// Window scale of client and server; 0 where unknown or not agreed.
    pub shift: [u8; 2],
    /// In the order in which they passed.
    pub packets: Vec<Packet>,
    /// How many there were; more than `packets` if they were thinned out.
    pub total: u64,
}
