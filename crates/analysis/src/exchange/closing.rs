//! What may be the end of TLS by its record, and an exchange of which nothing is recorded yet.

use super::{Carry, Recorded};
use tcpwhy_base::{End, Ends, Nanos, Segment, Tls};

/// A `close_notify` (RFC 8446, 6.1): an alert of two bytes makes a record of 24 bytes in TLS 1.3, of at most
/// 31 in TLS 1.2 (with an explicit nonce).
pub(crate) const ALERT: u64 = 31;
/// Two bytes, their type and a tag in a record (RFC 8446, 5.2 and 6.1).
const ALERT_OF_1_3: u32 = 24;

/// It may be a `close_notify`: an alert by its type, which TLS 1.3 hides, but not its size. Where no record
/// begins in it nothing is known.
pub(crate) const fn may_close(segment: &Segment) -> bool {
    segment.len <= ALERT as u32 && (!segment.tls.has(Tls::DATA) || segment.len == ALERT_OF_1_3)
}

impl Default for Recorded {
    fn default() -> Recorded {
        Recorded {
            start: Nanos::ZERO,
            first_frame: 0,
            request_end: None,
            response_start: None,
            last: Nanos::ZERO,
            last_frame: 0,
            last_sender: End::Client,
            bytes: Ends::default(),
            first_bytes: 0,
            may_close: false,
            turns: 0,
            duplex: false,
            streams: false,
            credit: Ends::default(),
            steps: Vec::new(),
            done: Vec::new(),
            carry: Carry::default(),
        }
    }
}
