//! Rooms of one size, in pieces of memory that are made and given back together.

use super::waiting::Head;

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
    heads: Box<[Head]>,
    /// What is in them, one behind the other.
    bytes: Box<[u8]>,
    /// A bit for each room that is free.
    free: u32,
}

impl Rooms {
    /// A free one, of so many bytes.
    #[inline]
    pub(super) fn take(&mut self, size: usize) -> u32 {
        let number = loop {
            match self.open.last() {
                Some(&number) if self.pieces[number as usize].heads.is_empty() => {
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
        piece.heads.get_mut(room as usize).into_iter().for_each(|head| *head = Head::NEW);
        if piece.free == 0 {
            self.open.pop();
        }
        number * TOGETHER as u32 + room
    }

    #[cold]
    fn another(&mut self, size: usize) {
        let heads = vec![Head::NEW; TOGETHER].into_boxed_slice();
        let bytes = vec![0; size * TOGETHER].into_boxed_slice();
        let number = self.gone.pop().unwrap_or(self.pieces.len() as u32);
        match self.pieces.get_mut(number as usize) {
            Some(piece) => (piece.heads, piece.bytes) = (heads, bytes),
            None => self.pieces.push(Piece { heads, bytes, free: u32::MAX }),
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
                (piece.heads, piece.bytes) = Default::default();
            }
        }
    }

    #[cfg(test)]
    pub(super) fn are_free(&self) -> bool {
        self.pieces.iter().all(|piece| piece.free == u32::MAX)
    }

    #[inline]
    pub(super) fn head(&self, number: usize) -> Option<&Head> {
        self.pieces.get(number / TOGETHER)?.heads.get(number % TOGETHER)
    }

    #[inline]
    pub(super) fn head_mut(&mut self, number: usize) -> Option<&mut Head> {
        self.pieces.get_mut(number / TOGETHER)?.heads.get_mut(number % TOGETHER)
    }

    #[inline]
    pub(super) fn bytes(&self, number: usize, size: usize) -> &[u8] {
        let (piece, at) = (self.pieces.get(number / TOGETHER), number % TOGETHER * size);
        piece.and_then(|piece| piece.bytes.get(at..at + size)).unwrap_or_default()
    }

    /// Its head, and its bytes from this one on.
    #[inline(always)]
    pub(super) fn room_from(
        &mut self,
        number: usize,
        size: usize,
        at: usize,
    ) -> Option<(&mut Head, &mut [u8])> {
        let (piece, first) = (self.pieces.get_mut(number / TOGETHER)?, number % TOGETHER * size);
        let head = piece.heads.get_mut(number % TOGETHER)?;
        Some((head, piece.bytes.get_mut(first + at..first + size)?))
    }

    /// One of its bytes.
    #[inline(always)]
    pub(super) fn byte(&self, number: usize, size: usize, at: usize) -> Option<&u8> {
        self.pieces.get(number / TOGETHER)?.bytes.get(number % TOGETHER * size + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SIZE: usize = 192;

    /// Memory of many rooms goes back when none is used, and they can be used again.
    #[test]
    fn rooms_are_given_back() {
        let mut rooms = Rooms::default();
        for _ in 0..2 {
            let all: BTreeSet<u32> = (0..TOGETHER * 20).map(|_| rooms.take(SIZE)).collect();
            assert_eq!((all.len(), rooms.pieces.len(), rooms.are_free()), (TOGETHER * 20, 20, false));
            all.iter().for_each(|&number| assert_eq!(rooms.bytes(number as usize, SIZE).len(), SIZE));
            all.into_iter().for_each(|number| rooms.give_back(number as usize));
            let kept = rooms.pieces.iter().filter(|piece| !piece.heads.is_empty()).count();
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
