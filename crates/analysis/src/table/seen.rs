//! How far a connection is whose packets all wait.

use tcpwhy_base::{Ends, TcpFlags};

/// What waiting packets say of how far a connection is: it closes when both ends have sent a FIN, or one a reset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    fins: Ends<bool>,
    reset: bool,
    pub(super) not_only_resets: bool,
}

impl Seen {
    /// Another one waits. `true`: it may close the connection.
    #[inline]
    pub(super) fn pass(&mut self, flags: TcpFlags, from_client: bool) -> bool {
        self.not_only_resets |= !flags.rst();
        if !flags.has(TcpFlags::FIN | TcpFlags::RST) {
            return false;
        }
        self.reset |= flags.rst();
        let fin = if from_client { &mut self.fins.client } else { &mut self.fins.server };
        *fin |= flags.fin() && !flags.rst();
        true
    }

    /// Nothing closed it.
    pub(super) fn is_open(self) -> bool {
        !(self.reset || self.fins.client && self.fins.server)
    }
}
