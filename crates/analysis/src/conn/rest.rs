//! A connection in which nothing happens is kept as bytes, and goes on from there.

use super::Conn;
use crate::rest::{Packer, Rest, Unpacker, at_rest};

at_rest! { Conn { who, track, habits, testimony, ex, ledger, role } }

impl Conn {
    /// All of its state, with moments about that of its last packet.
    pub(crate) fn put_to_rest<'a>(&self, to: &'a mut Packer) -> &'a [u8] {
        to.begin(self.now());
        self.put(to);
        to.end()
    }

    /// The connection whose state these bytes are.
    pub(crate) fn from_rest(bytes: &[u8]) -> Conn {
        Conn::get(&mut Unpacker::of(bytes))
    }

    /// Goes to rest and comes back, by which nothing changes.
    pub(crate) fn rest_once(&mut self, to: &mut Packer) {
        let back = Conn::from_rest(self.put_to_rest(to));
        debug_assert_eq!(format!("{back:?}"), format!("{self:?}"));
        *self = back;
    }
}
