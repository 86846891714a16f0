//! Rooms of one size, in pieces of memory that are made and given back together.

use super::waiting::Place;

/// Rooms that are made, and given back, together.
const TOGETHER: usize = u32::BITS as usize;
/// So many pieces keep their memory while nothing is in them.
const SPARE: usize = 8;

/// Rooms of one size, which never move.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    pieces: Vec<Piece>,
    /// Pieces that have a free room. (Some may have given back their memory meanwhile.)
    open: Vec<u32>,
    /// Pieces that have no memory.
    gone: Vec<u32>,
    /// So many have memory, and nothing in them.
    empty: usize,
}

#[derive(Debug)]
struct Piece {
    /// None where all of them are free and the memory was given back.
    places: Box<[Place]>,
    /// A bit for each room that is free.
    free: u32,
}

impl Rooms {
    /// A free one, of so many places.
    #[inline]
    pub(super) fn take(&mut self, size: usize) -> u32 {
        let number = loop {
            match self.open.last() {
                Some(&number) if self.pieces[number as usize].places.is_empty() => {
                    self.open.pop();
                    self.gone.push(number);
                }
                Some(&number) => break number,
                None => self.another(size),
            }
        };
        let piece = &mut self.pieces[number as usize];
        if piece.free == u32::MAX {
            self.empty -= 1;
        }
        let room = piece.free.trailing_zeros();
        piece.free &= piece.free.wrapping_sub(1);
        if piece.free == 0 {
            self.open.pop();
        }
        number * TOGETHER as u32 + room
    }

    #[cold]
    fn another(&mut self, size: usize) {
        let places = vec![Place::NONE; size * TOGETHER].into_boxed_slice();
        let number = self.gone.pop().unwrap_or(self.pieces.len() as u32);
        match self.pieces.get_mut(number as usize) {
            Some(piece) => piece.places = places,
            None => self.pieces.push(Piece { places, free: u32::MAX }),
        }
        self.open.push(number);
        self.empty += 1;
    }

    /// Is free again.
    #[inline]
    pub(super) fn give_back(&mut self, number: usize) {
        let Some(piece) = self.pieces.get_mut(number / TOGETHER) else { return };
        if piece.free == 0 {
            self.open.push((number / TOGETHER) as u32);
        }
        piece.free |= 1 << (number % TOGETHER);
        if piece.free == u32::MAX {
            if self.empty < SPARE {
                self.empty += 1;
            } else {
                // Whoever ends all connections needs the memory for what becomes of them.
                piece.places = Box::default();
            }
        }
    }

    #[cfg(test)]
    pub(super) fn are_free(&self) -> bool {
        self.pieces.iter().all(|piece| piece.free == u32::MAX)
    }

    #[inline]
    pub(super) fn get(&self, number: usize, size: usize) -> &[Place] {
        let (piece, at) = (self.pieces.get(number / TOGETHER), number % TOGETHER * size);
        piece.and_then(|piece| piece.places.get(at..at + size)).unwrap_or_default()
    }

    /// One of its places.
    #[inline(always)]
    pub(super) fn place(&self, number: usize, size: usize, at: usize) -> Option<&Place> {
        let piece = self.pieces.get(number / TOGETHER)?;
        piece.places.get(number % TOGETHER * size + at)
    }

    /// Those from one of its places on.
    #[inline(always)]
    pub(super) fn places_from(&mut self, number: usize, size: usize, at: usize) -> &mut [Place] {
        let (piece, first) = (self.pieces.get_mut(number / TOGETHER), number % TOGETHER * size);
        piece.and_then(|piece| piece.places.get_mut(first + at..first + size)).unwrap_or_default()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: usize, size: usize) -> &mut [Place] {
        let (piece, at) = (self.pieces.get_mut(number / TOGETHER), number % TOGETHER * size);
        piece.and_then(|piece| piece.places.get_mut(at..at + size)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SIZE: usize = 16;

    /// Memory of many rooms goes back when none is used, and they can be used again.
    #[test]
    fn rooms_are_given_back() {
        let mut rooms = Rooms::default();
        for _ in 0..2 {
            let all: BTreeSet<u32> = (0..TOGETHER * 20).map(|_| rooms.take(SIZE)).collect();
            assert_eq!((all.len(), rooms.pieces.len(), rooms.are_free()), (TOGETHER * 20, 20, false));
            all.iter().for_each(|&number| assert_eq!(rooms.get(number as usize, SIZE).len(), SIZE));
            all.into_iter().for_each(|number| rooms.give_back(number as usize));
            let kept = rooms.pieces.iter().filter(|piece| !piece.places.is_empty()).count();
            assert_eq!((kept, rooms.empty, rooms.open.len() + rooms.gone.len()), (SPARE, SPARE, 20));
            // Whoever takes one room again and again has memory at once, and always the same.
            let first = rooms.take(SIZE);
            rooms.give_back(first as usize);
            for _ in 0..3 {
                let again = rooms.take(SIZE);
                assert_eq!((again, rooms.empty), (first, SPARE - 1));
                rooms.give_back(again as usize);
                assert_eq!(rooms.empty, SPARE);
            }
        }
    }
}
