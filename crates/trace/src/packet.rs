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

    /// The window in bytes, with the shift of its sender; a SYN's is never scaled (RFC 7323, 2.2). `None`: the shift is
    /// not known, and the window in the header may stand for 16,384 times as much (2.3).
    pub fn window_bytes(&self, shift: Ends<Option<u8>>) -> Option<i64> {
        let shift = if self.flags.syn() { Some(0) } else { shift[self.from] };
        shift.map(|shift| i64::from(self.window) << shift.min(14))
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
    /// By how many bits the windows of client and server are shifted: 0 where scaling was not agreed, `None`
    /// where that is not known.
    pub shift: Ends<Option<u8>>,
    /// In the order in which they passed, without copies.
    pub packets: Vec<Packet>,
    /// How many there were; more than `packets` if they were thinned out.
    pub total: u64,
}

impl Track {
    /// Of this connection, without packets yet.
    pub fn new(c: &Connection) -> Track {
        let shift = Ends::new(c.ends[0].window_shift, c.ends[1].window_shift);
        Track { connection: c.id, shift, ..Track::default() }
    }
}
