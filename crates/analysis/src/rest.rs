//! State that lies idle as bytes: a sixth of its room, and it comes back the same.
//!
//! Each value is written in turn, and tells nothing of which one it is. Most of a state is zero, none, or what was said just before: that
//! is one bit. Bits stand behind the bytes, backwards, so that both are read without their lengths; where they meet nothing is left, and
//! whatever is missing reads as zero. Numbers are LEB128; moments, sequence numbers, time stamps and frames may be told by how far they are
//! from the last one of their kind.

mod base;
mod forms;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use base::Protocol;
pub(crate) use forms::{Form, Frame, InRow, Mixed, Near};
pub(crate) use write::at_rest;

use std::collections::VecDeque;
use tcpwhy_base::Nanos;

/// State that is kept as bytes while nothing happens to it, and comes back the same.
pub(crate) trait Rest: Sized {
    /// Writes it.
    fn put(&self, to: &mut Packer);
    /// Reads what was written. Of other bytes it makes something, too.
    fn get(from: &mut Unpacker<'_>) -> Self;
}

/// What was said last of each kind that is told by how far it is from there.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    time: i64,
    seq: u32,
    stamp: u32,
    frame: u64,
}

/// Takes values, in room that is used again.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
    /// Bits, 64 together; so many more in `last`.
    bits: Vec<u64>,
    last: u64,
    more: u32,
    known: Known,
}

impl Packer {
    /// Begins anew, with moments about this one.
    pub(crate) fn begin(&mut self, base: Nanos) {
        self.bytes.clear();
        self.bits.clear();
        (self.last, self.more) = (0, 0);
        self.known = Known::default();
        base.put(self);
        self.known.time = base.0;
    }

    /// All that was taken, until it begins anew.
    pub(crate) fn end(&mut self) -> &[u8] {
        let rest = self.last.to_le_bytes();
        self.bytes.extend(rest[..self.more.div_ceil(8) as usize].iter().rev());
        for word in self.bits.iter().rev() {
            self.bytes.extend(word.to_be_bytes());
        }
        self.bits.clear();
        (self.last, self.more) = (0, 0);
        &self.bytes
    }

    #[inline]
    fn bit(&mut self, set: bool) {
        self.last |= u64::from(set) << self.more;
        self.more += 1;
        if self.more == 64 {
            self.bits.push(self.last);
            (self.last, self.more) = (0, 0);
        }
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// LEB128, whatever it is.
    #[inline]
    fn leb(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Zero is a bit.
    #[inline]
    fn number(&mut self, number: u64) {
        self.bit(number != 0);
        if number != 0 {
            self.leb(number);
        }
    }

    /// The number of the first of `all` that is like it; it must be there.
    pub(crate) fn one_of<T: PartialEq>(&mut self, mut all: impl Iterator<Item = T>, value: &T) {
        let at = all.position(|known| known == *value);
        debug_assert!(at.is_some(), "it is not known by a number");
        at.unwrap_or(0).put(self);
    }
}

/// Gives back values in the order in which they were taken.
#[derive(Debug)]
pub(crate) struct Unpacker<'a> {
    /// Those that were not read yet: numbers from the front, bits from the back.
    left: &'a [u8],
    /// Bits of the one read last, below one that is set behind them.
    bits: u32,
    known: Known,
}

impl<'a> Unpacker<'a> {
    /// Reads these.
    pub(crate) fn of(bytes: &'a [u8]) -> Unpacker<'a> {
        let mut from = Unpacker { left: bytes, bits: 1, known: Known::default() };
        from.known.time = Nanos::get(&mut from).0;
        from
    }

    #[inline]
    fn bit(&mut self) -> bool {
        if self.bits <= 1 {
            let last = match self.left.split_last() {
                Some((&last, left)) => {
                    self.left = left;
                    last
                }
                None => 0,
            };
            self.bits = u32::from(last) | 0x100;
        }
        let bit = self.bits & 1 == 1;
        self.bits >>= 1;
        bit
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        match self.left.split_first() {
            Some((&first, left)) => {
                self.left = left;
                first
            }
            None => 0,
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        match self.left.split_first_chunk() {
            Some((&bytes, left)) => {
                self.left = left;
                bytes
            }
            None => std::array::from_fn(|_| self.byte()),
        }
    }

    #[inline]
    fn leb(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    #[inline]
    fn number(&mut self) -> u64 {
        if self.bit() { self.leb() } else { 0 }
    }

    /// How long a list is. Each value takes a bit at least.
    fn len(&mut self) -> usize {
        let len = usize::get(self);
        len.min(8 * self.left.len() + 8)
    }

    /// What has this number in `all`.
    pub(crate) fn one_of<T>(&mut self, mut all: impl Iterator<Item = T>) -> Option<T> {
        let at = usize::get(self);
        all.nth(at)
    }
}

/// Small numbers for those near zero on either side.
#[inline]
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

#[inline]
fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

macro_rules! unsigned {
    ($($int:ty),*) => { $(
        impl Rest for $int {
            #[inline]
            fn put(&self, to: &mut Packer) {
                to.number(*self as u64);
            }

            #[inline]
            fn get(from: &mut Unpacker<'_>) -> $int {
                from.number() as $int
            }
        }
    )* };
}

unsigned!(u16, u32, u64, usize);

macro_rules! signed {
    ($($int:ty),*) => { $(
        impl Rest for $int {
            #[inline]
            fn put(&self, to: &mut Packer) {
                to.number(zigzag(i64::from(*self)));
            }

            #[inline]
            fn get(from: &mut Unpacker<'_>) -> $int {
                unzigzag(from.number()) as $int
            }
        }
    )* };
}

signed!(i32, i64);

/// Round ones have few digits at the front, which would make large numbers.
macro_rules! float {
    ($($float:ty, $bits:ty);*) => { $(
        impl Rest for $float {
            fn put(&self, to: &mut Packer) {
                self.to_bits().swap_bytes().put(to);
            }

            fn get(from: &mut Unpacker<'_>) -> $float {
                <$float>::from_bits(<$bits>::get(from).swap_bytes())
            }
        }
    )* };
}

float!(f32, u32; f64, u64);

impl Rest for u8 {
    #[inline]
    fn put(&self, to: &mut Packer) {
        to.bit(*self != 0);
        if *self != 0 {
            to.bytes.push(*self);
        }
    }

    #[inline]
    fn get(from: &mut Unpacker<'_>) -> u8 {
        if from.bit() { from.byte() } else { 0 }
    }
}

impl Rest for bool {
    #[inline]
    fn put(&self, to: &mut Packer) {
        to.bit(*self);
    }

    #[inline]
    fn get(from: &mut Unpacker<'_>) -> bool {
        from.bit()
    }
}

impl<T: Rest> Rest for Option<T> {
    #[inline]
    fn put(&self, to: &mut Packer) {
        to.bit(self.is_some());
        if let Some(value) = self {
            value.put(to);
        }
    }

    #[inline]
    fn get(from: &mut Unpacker<'_>) -> Option<T> {
        from.bit().then(|| T::get(from))
    }
}

impl<T: Rest> Rest for Box<T> {
    fn put(&self, to: &mut Packer) {
        T::put(self, to);
    }

    fn get(from: &mut Unpacker<'_>) -> Box<T> {
        Box::new(T::get(from))
    }
}

impl<T: Rest> Rest for Vec<T> {
    fn put(&self, to: &mut Packer) {
        self.len().put(to);
        self.iter().for_each(|value| value.put(to));
    }

    fn get(from: &mut Unpacker<'_>) -> Vec<T> {
        let len = from.len();
        (0..len).map(|_| T::get(from)).collect()
    }
}

impl<T: Rest> Rest for VecDeque<T> {
    fn put(&self, to: &mut Packer) {
        self.len().put(to);
        self.iter().for_each(|value| value.put(to));
    }

    fn get(from: &mut Unpacker<'_>) -> VecDeque<T> {
        Vec::get(from).into()
    }
}

impl<T: Rest, const N: usize> Rest for [T; N] {
    fn put(&self, to: &mut Packer) {
        self.iter().for_each(|value| value.put(to));
    }

    fn get(from: &mut Unpacker<'_>) -> [T; N] {
        std::array::from_fn(|_| T::get(from))
    }
}

impl<A: Rest, B: Rest> Rest for (A, B) {
    #[inline]
    fn put(&self, to: &mut Packer) {
        self.0.put(to);
        self.1.put(to);
    }

    #[inline]
    fn get(from: &mut Unpacker<'_>) -> (A, B) {
        (A::get(from), B::get(from))
    }
}

impl<A: Rest, B: Rest, C: Rest> Rest for (A, B, C) {
    #[inline]
    fn put(&self, to: &mut Packer) {
        self.0.put(to);
        self.1.put(to);
        self.2.put(to);
    }

    #[inline]
    fn get(from: &mut Unpacker<'_>) -> (A, B, C) {
        (A::get(from), B::get(from), C::get(from))
    }
}
