//! What the readers of the formats give to the one that offers all.

use crate::error::Damage;
use std::io;
use tcpwhy_base::Nanos;

/// No packet is larger: the largest snap length that libpcap and Wireshark accept for any link type is
/// 128 MiB (D-Bus); a record beyond twice that is damage.
pub(crate) const MAX_RECORD: u32 = 256 << 20;

/// A packet record at the front of the buffer, before it is turned into a [`Frame`].
pub(crate) struct Record {
    pub(crate) time: Nanos,
    pub(crate) bad_time: bool,
    pub(crate) link_type: u32,
    pub(crate) len: u32,
    /// Bytes before the packet's.
    pub(crate) before: usize,
    pub(crate) caplen: usize,
    /// Bytes of the whole record.
    pub(crate) total: usize,
}

/// Why a format's reader stopped before the end.
pub(crate) enum Stop {
    Io(io::Error),
    Damage(Damage),
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Stop {
        Stop::Io(e)
    }
}
