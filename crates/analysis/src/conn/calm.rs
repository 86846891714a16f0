//! Data about which nothing is odd (see `track/calm`).

use super::Conn;
use crate::output::Output;
use tcpwhy_base::{End, Nanos, Segment};

impl Conn {
    /// Such packets may come: a TLS handshake and one that is not over have rules of their own.
    #[inline(always)]
    pub(super) fn may_be_calm(&self) -> bool {
        !self.ex.is_tls() && self.ledger.has_setup()
    }

    /// The next bytes of `s`.
    #[inline(always)]
    pub(super) fn on_calm_data(&mut self, s: End, segment: &Segment, t: Nanos, parts: &mut Output) {
        let arrived = self.track.calm_data(s, segment, t);
        self.progress(s, segment, t, arrived, 0, parts);
        self.track.sent(s, segment, t);
    }
}
