//! Packets that the capture lacks, by the numbers that their sender gives them.

use crate::rest::at_rest;
use tcpwhy_base::IpId;

/// The IP identifiers of one end's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbering {
    /// The last one; zero: none.
    last: u16,
    /// How often in a row it went up by one.
    steps: u8,
}

at_rest! { Numbering { last, steps } }

impl Numbering {
    /// Follows the identifier: how many packets are missing between the last one and this one, if their sender counts
    /// them one by one. Linux does, per connection (`ip_select_ident_segs`): of it two in a row are enough to
    /// see that nobody on the way gave them others; of a stack that may count what it sends to others, too, four are.
    #[inline]
    pub(crate) fn missing(&mut self, id: IpId, is_linux: impl FnOnce() -> bool) -> u16 {
        let Some(now) = id else {
            self.last = 0;
            return 0;
        };
        if now == 0 {
            return 0;
        }
        let before = std::mem::replace(&mut self.last, now);
        if before == 0 {
            return 0;
        }
        match now.wrapping_sub(before) {
            1 => {
                self.steps = self.steps.saturating_add(1);
                0
            }
            step @ 2..=16 if self.is_steady() || self.steps > 0 && is_linux() => step - 1,
            _ => {
                self.steps = 0;
                0
            }
        }
    }

    /// Packets are numbered one by one, so that one that is missing shows.
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        self.steps >= 3
    }

    /// Of a sender whose last four were.
    #[cfg(test)]
    pub(crate) fn steady() -> Numbering {
        Numbering { last: 4, steps: 3 }
    }
}
