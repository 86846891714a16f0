//! The data segment before the one that passes.

use crate::rest::{Near, at_rest};
use tcpwhy_base::{Nanos, Seq};

/// A data segment that has passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub(crate) time: Nanos,
    pub(crate) len: u32,
    /// The sequence number behind all that had passed then.
    pub(crate) end: Seq,
    pub(crate) psh: bool,
    /// It has PSH and may be the end of several full ones that left as one packet, on which Linux sets that
    /// wherever the write ends (rule 87).
    pub(crate) whole: bool,
    /// Packets that are missing since, before pure ACKs (rule 35).
    pub(crate) skipped: u8,
    /// Acknowledged when it passed.
    pub(crate) una: Seq,
    /// Its time stamp.
    pub(crate) stamp: Option<u32>,
}

at_rest! { Last { time, len, end, psh, whole, skipped, una, stamp as Near } }
