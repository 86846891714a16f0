//! Where the bases of ended connections are kept until all of them are summed.

use super::Basis;
use super::packed::Piece;
use crate::fetch::fetch_whole;
use crate::result::Connection;

/// Where a basis begins in its store.
pub(crate) type At = u64;

/// A store, and where a basis begins there: one word, since there are as many as connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(u64);

impl Place {
    /// More words than this no store has.
    const STORE: u32 = 48;

    #[inline]
    pub(crate) fn new(store: u32, at: At) -> Place {
        Place(u64::from(store) << Place::STORE | at)
    }

    /// Which store, and where.
    #[inline]
    pub(crate) fn parts(self) -> (usize, At) {
        ((self.0 >> Place::STORE) as usize, self.0 & ((1 << Place::STORE) - 1))
    }
}

/// The bases of ended connections. It grows by pieces: to move a hundred megabytes into larger room would
/// take as long as to write them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    pieces: Vec<Piece>,
}

impl Store {
    /// No basis begins behind so many words of a piece: a quarter of a megabyte.
    pub(super) const FULL: usize = 1 << 15;
    /// Words of a connection with one request.
    const MOSTLY: usize = 32;

    /// Keeps the basis of this connection.
    pub(crate) fn keep(&mut self, basis: &Basis, c: &Connection) -> At {
        let next = match self.pieces.last() {
            None => Some(Piece::default()),
            // Room for what the last may have in it; of one that ends behind that, a little more is moved.
            Some(last) if last.words.len() >= Store::FULL => Some(Piece {
                words: Vec::with_capacity(Store::FULL + Store::FULL / 32),
                facts: Vec::with_capacity(last.facts.len() + last.facts.len() / 16),
            }),
            Some(_) => None,
        };
        self.pieces.extend(next);
        let before = (self.pieces.len() - 1) * Store::FULL;
        self.pieces.last_mut().map_or(0, |piece| (before + piece.keep(basis, c)) as At)
    }

    /// What most have there is on its way from memory.
    pub(crate) fn fetch(&self, at: At) {
        let words = self.pieces.get(at as usize / Store::FULL).map(|piece| &piece.words);
        words.and_then(|all| all.get(at as usize % Store::FULL..)).into_iter().for_each(|rest| {
            fetch_whole(&rest[..rest.len().min(Store::MOSTLY)]);
        });
    }

    /// Writes the basis of this connection into `basis`, whose room is used again.
    pub(crate) fn read(&self, at: At, c: &Connection, basis: &mut Basis) {
        match self.pieces.get(at as usize / Store::FULL) {
            Some(piece) => piece.read(at as usize % Store::FULL, c, basis),
            None => *basis = Basis::default(),
        }
    }
}
