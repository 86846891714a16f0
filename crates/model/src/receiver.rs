//! What an end knows as a receiver: its window, its buffer, the ACKs that it owes. `receive` changes it.

use crate::profile::{Profile, WindowRule};
use std::collections::VecDeque;
use tcpwhy_base::Nanos;

/// The receiving half of an end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    pub(crate) nxt: u64,
    /// Window right edge was last said with this acknowledgement.
    pub(crate) wup: u64,
    pub(crate) wnd: u64,
    pub(crate) ssthresh: u64,
    pub(crate) clamp: u64,
    pub(crate) buffer: u64,
    pub(crate) locked: bool,
    /// Payload in 1/256 of buffer memory.
    pub(crate) ratio: u64,
    pub(crate) memory: u64,
    /// Unread packets: end and memory.
    pub(crate) unread: VecDeque<(u64, u64)>,
    pub(crate) copied: u64,
    pub(crate) wscale: u8,
    /// Arrived out of order: ranges, ascending and disjoint; the newest block first for SACK.
    pub(crate) holes: Vec<(u64, u64)>,
    pub(crate) newest: Option<(u64, u64)>,
    pub(crate) duplicate: Option<(u64, u64)>,
    pub(crate) fin: Option<u64>,
    // Acknowledging.
    pub(crate) ato: Nanos,
    pub(crate) quick: u64,
    pub(crate) pingpong: u8,
    pub(crate) mss: u64,
    pub(crate) last_size: u64,
    pub(crate) last_data: Nanos,
    pub(crate) scheduled: bool,
    pub(crate) pushed: u8,
    pub(crate) now_ack: bool,
    pub(crate) delack: Option<Nanos>,
    pub(crate) full_segments: u64,
    // Growth of the buffer.
    pub(crate) space: u64,
    pub(crate) space_seq: u64,
    pub(crate) space_at: Nanos,
    pub(crate) rtt: Nanos,
    /// A packet came after the handshake.
    pub(crate) heard: bool,
    /// The right edge of the window whose filling is timed, and since when.
    pub(crate) round: Option<(u64, Nanos)>,
    /// The tick of the stamp that was echoed last.
    pub(crate) echoed: Option<i64>,
    pub(crate) stamp_recent: Nanos,
    pub(crate) last_ack_sent: u64,
}

impl Receiver {
    /// Nothing received; `rcvbuf` is the buffer that the application asked for.
    pub(crate) fn new(rcvbuf: Option<u64>, p: &Profile) -> Receiver {
        Receiver {
            clamp: u64::MAX,
            buffer: rcvbuf.unwrap_or(p.rmem[1]),
            locked: rcvbuf.is_some(),
            ratio: match p.window {
                WindowRule::Measured => 128,
                WindowRule::Fixed { scale } => 256 - (256 >> scale.min(8)),
                WindowRule::Whole => 256,
            },
            // The SYN counts as read.
            copied: 1,
            space_seq: 1,
            // `TCP_MSS_DEFAULT`, until segments show more.
            mss: 536,
            ..Receiver::default()
        }
    }

    /// A packet up to `end` waits to be read, and takes so much memory.
    pub(crate) fn queue(&mut self, end: u64, size: u64) {
        self.memory += size;
        let unread = &mut self.unread;
        if unread.back().is_none_or(|last| last.0 <= end) {
            unread.push_back((end, size));
        } else {
            let at = unread.partition_point(|u| u.0 <= end);
            unread.insert(at, (end, size));
        }
    }
}
