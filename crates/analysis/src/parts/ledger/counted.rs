//! Which exchanges there were.

use super::Ledger;
use crate::exchange::Recorded;

impl Ledger {
    /// No exchange has ended.
    pub(crate) fn is_first(&self) -> bool {
        self.exchanges == 0
    }

    /// What is within TLS may be HTTP/2.
    pub(crate) fn may_be_h2(&self) -> bool {
        self.refills.may_be_h2
    }

    /// The server spoke first: what its client says may be an answer to that, and ask for nothing.
    pub(crate) fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// One more has ended.
    #[inline]
    pub(super) fn count(&mut self, ex: &Recorded) {
        self.greeted |= self.exchanges == 0 && ex.bytes.client == 0;
        self.exchanges += 1;
    }
}
