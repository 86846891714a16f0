//! How far a connection is whose packets all wait.

use tcpwhy_base::TcpFlags;

/// What waiting packets say of how far a connection is: it closes when both ends have sent a FIN, or one a
/// reset. A bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen(u8);

const CLIENT_FIN: u8 = 1;
const SERVER_FIN: u8 = 2;
const RESET: u8 = 4;
const NOT_ONLY_RESETS: u8 = 8;
const GOES: u8 = 16;

impl Seen {
    /// Another one waits. `true`: it may close the connection.
    #[inline]
    pub(super) fn pass(&mut self, flags: TcpFlags, from_client: bool) -> bool {
        if !flags.rst() {
            self.0 |= NOT_ONLY_RESETS;
        }
        if !flags.has(TcpFlags::FIN | TcpFlags::RST) {
            return false;
        }
        self.0 |= match (flags.rst(), from_client) {
            (true, _) => RESET,
            (false, true) => CLIENT_FIN,
            (false, false) => SERVER_FIN,
        };
        true
    }

    /// Nothing closed it.
    pub(super) fn is_open(self) -> bool {
        self.0 & RESET == 0 && self.0 & (CLIENT_FIN | SERVER_FIN) != CLIENT_FIN | SERVER_FIN
    }

    /// Some packet was no reset.
    #[inline]
    pub(super) fn not_only_resets(self) -> bool {
        self.0 & NOT_ONLY_RESETS != 0
    }

    /// It ends before another packet comes to it.
    #[inline]
    pub(super) fn goes(self) -> bool {
        self.0 & GOES != 0
    }

    pub(super) fn set_goes(&mut self, goes: bool) {
        self.0 = if goes { self.0 | GOES } else { self.0 & !GOES };
    }

    /// Says so from now on.
    pub(super) fn set_not_only_resets(&mut self, is_so: bool) {
        self.0 = if is_so { self.0 | NOT_ONLY_RESETS } else { self.0 & !NOT_ONLY_RESETS };
    }
}
