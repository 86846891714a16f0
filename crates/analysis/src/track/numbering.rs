//! Packets that the capture lacks, by the numbers that their sender gives them.

use crate::profile::Profile;
use crate::rest::at_rest;
use tcpwhy_base::IpId;

/// The IP identifiers of one end's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbering {
    /// The last one; zero: none.
    last: u16,
    /// How often in a row it went up by one.
    steps: u8,
    /// It did not, before it had so three times in a row.
    jumped: bool,
}

at_rest! { Numbering { last, steps, jumped } }

impl Numbering {
    /// Follows the identifier: how many packets are missing between the last one and this one, if their sender counts
    /// them one by one. Linux does, per connection (`ip_select_ident_segs`): of it two in a row are enough, but
    /// only the first time that one is left out, for who counts what goes to others too, or what it gets, leaves out many.
    #[inline]
    pub(crate) fn missing(&mut self, id: IpId, profile: &Profile) -> u16 {
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
            step => self.jumps(step, profile),
        }
    }

    #[cold]
    #[inline(never)]
    fn jumps(&mut self, step: u16, profile: &Profile) -> u16 {
        let missing = if (2..=16).contains(&step) { step - 1 } else { 0 };
        if self.is_steady() && missing > 0 {
            return missing;
        }
        let tells = self.steps > 0 && !self.jumped && profile.os == Some("Linux");
        (self.steps, self.jumped) = (0, true);
        if tells { missing } else { 0 }
    }

    /// Packets are numbered one by one, so that one that is missing shows.
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        self.steps >= 3
    }

    /// Of a sender whose last four were.
    #[cfg(test)]
    pub(crate) fn steady() -> Numbering {
        Numbering { last: 4, steps: 3, jumped: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_counter_leaves_out_is_missing() {
        let missing = |ids: &[u16], profile: &Profile| {
            let mut numbering = Numbering::default();
            ids.iter().map(|&id| numbering.missing(Some(id), profile)).collect::<Vec<u16>>()
        };
        // Four in a row of any stack; of Linux two, the first time.
        assert_eq!(missing(&[5, 6, 7, 8, 10, 13], &Profile::UNKNOWN), [0, 0, 0, 0, 1, 2]);
        assert_eq!(missing(&[5, 6, 7, 9, 10, 12], &Profile::UNKNOWN), [0; 6]);
        assert_eq!(missing(&[5, 6, 8, 9, 11, 12], &Profile::LINUX), [0, 0, 1, 0, 0, 0]);
        assert_eq!(missing(&[5, 7, 8, 10], &Profile::LINUX), [0; 4], "it counts others as well");
        assert_eq!(missing(&[5, 6, 23], &Profile::LINUX), [0; 3], "too many");
    }
}
