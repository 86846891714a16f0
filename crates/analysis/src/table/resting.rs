//! Where states lie that are kept as bytes.

use crate::conn::Conn;
use crate::rest::Packer;

/// A state among those that lie idle, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rested(u32);

impl Rested {
    pub(super) const NONE: Rested = Rested(u32::MAX);
}

/// States that lie idle.
#[derive(Debug, Default)]
pub(super) struct Resting {
    states: Vec<Box<[u8]>>,
    free: Vec<u32>,
    packer: Packer,
    woken: i64,
}

impl Resting {
    pub(super) fn keep(&mut self, conn: &Conn) -> Rested {
        let bytes: Box<[u8]> = conn.put_to_rest(&mut self.packer).into();
        // One of four, of those that are not large, is compared as a whole; it takes longer than all else in
        // tests. Large ones have more of the same: steps of one exchange by the thousand. (`conn::rest`
        // compares each of a capture with all kinds of packets.)
        if bytes.len().is_multiple_of(4) && bytes.len() < 4 << 10 {
            debug_assert_eq!(
                format!("{:?}", Conn::from_rest(&bytes)),
                format!("{conn:?}"),
                "it comes back as it was"
            );
        }
        match self.free.pop() {
            Some(at) => {
                self.states[at as usize] = bytes;
                Rested(at)
            }
            None => {
                self.states.push(bytes);
                Rested(self.states.len() as u32 - 1)
            }
        }
    }

    /// So many lie idle.
    pub(super) fn len(&self) -> usize {
        self.states.len() - self.free.len()
    }

    /// How many have gone on since this was last asked.
    #[inline]
    pub(super) fn woken(&mut self) -> i64 {
        std::mem::take(&mut self.woken)
    }

    /// The last one has not gone on but ended.
    pub(super) fn has_ended(&mut self) {
        self.woken -= 1;
    }

    /// It goes on. Nothing: it did not lie idle.
    pub(super) fn wake(&mut self, rested: &mut Rested) -> Option<Conn> {
        let Rested(at) = std::mem::replace(rested, Rested::NONE);
        let bytes = std::mem::take(self.states.get_mut(at as usize)?);
        self.free.push(at);
        self.woken += 1;
        Some(Conn::from_rest(&bytes))
    }
}
