//! What an end knows as a receiver: its window, its buffer, the ACKs that it owes. `receive` changes it.

use crate::profile::{Profile, WindowRule};
use std::collections::VecDeque;
use tcpwhy_base::Nanos;

/// The receiving half of an end.
#[derive(Clone, Debug, Default)]
pub(super) struct Receiver {
    pub(super) nxt: u64,
    /// Window right edge was last said with this acknowledgement.
    pub(super) wup: u64,
    pub(super) wnd: u64,
    pub(super) ssthresh: u64,
    pub(super) clamp: u64,
    pub(super) buffer: u64,
    pub(super) locked: bool,
    /// Payload in 1/256 of buffer memory.
    pub(super) ratio: u64,
    pub(super) memory: u64,
    /// Unread packets: end and memory.
    pub(super) unread: VecDeque<(u64, u64)>,
    pub(super) copied: u64,
    pub(super) wscale: u8,
    /// Arrived out of order: ranges, ascending and disjoint; the newest block first for SACK.
    pub(super) holes: Vec<(u64, u64)>,
    pub(super) newest: Option<(u64, u64)>,
    pub(super) duplicate: Option<(u64, u64)>,
    pub(super) fin: Option<u64>,
    // Acknowledging.
    pub(super) ato: Nanos,
    pub(super) quick: u64,
    pub(super) pingpong: u8,
    pub(super) mss: u64,
    pub(super) last_size: u64,
    pub(super) last_data: Nanos,
    pub(super) scheduled: bool,
    pub(super) pushed: u8,
    pub(super) now_ack: bool,
    pub(super) delack: Option<Nanos>,
    pub(super) full_segments: u64,
    // Growth of the buffer.
    pub(super) space: u64,
    pub(super) space_seq: u64,
    pub(super) space_at: Nanos,
    pub(super) rtt: Nanos,
    /// A packet came after the handshake.
    pub(super) heard: bool,
    /// The right edge of the window whose filling is timed, and since when.
    pub(super) round: Option<(u64, Nanos)>,
    /// The tick of the stamp that was echoed last.
    pub(super) echoed: Option<i64>,
    pub(super) stamp_recent: Nanos,
    pub(super) last_ack_sent: u64,
}

impl Receiver {
    /// Nothing received; `rcvbuf` is the buffer that the application asked for.
    pub(super) fn new(rcvbuf: Option<u64>, p: &Profile) -> Receiver {
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
    pub(super) fn queue(&mut self, end: u64, size: u64) {
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
