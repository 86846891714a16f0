//! State that lies idle as bytes: an eighth of its room for most, and it comes back the same.
//!
//! Each value is written in turn, as bits, and tells nothing of which one it is. Most of a state is zero,
//! none, or what was said before: that is a bit, or a few. Of a number there is how many bits it has, and
//! those; moments, sequence numbers, frames and others may be told by how far they are from the last one of
//! their kind. Whatever is missing reads as zero.

mod base;
mod forms;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use base::Protocol;
pub(crate) use forms::{Edge, Flight, Form, Frame, InRow, Mixed, Near, Place, Size, Time, Whose};
pub(crate) use write::at_rest;

use forms::KINDS;
use std::collections::VecDeque;
use tcpwhy_base::Nanos;

/// State that is kept as bytes while nothing happens to it, and comes back the same.
pub(crate) trait Rest: Sized {
    /// Writes it.
    fn put(&self, to: &mut Packer);
    /// Reads what was written. Of other bytes it makes something, too.
    fn get(from: &mut Unpacker<'_>) -> Self;
}

/// What both sides know when a value comes.
#[derive(Debug)]
struct Known {
    /// The last moment.
    time: i64,
    /// Moments and lengths of time that were said, each where its bits say.
    times: [i64; 1 << KNOWN],
    /// The last number of each kind that is told by how far it is from there.
    last: [u64; KINDS],
}

/// So many bits say where a known moment is.
const KNOWN: u32 = 6;

impl Known {
    const NOTHING: Known = Known { time: 0, times: [0; 1 << KNOWN], last: [0; KINDS] };

    #[inline]
    fn place(time: i64) -> usize {
        ((time as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - KNOWN)) as usize
    }
}

/// Takes values, in room that is used again.
#[derive(Debug)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
    /// So many bits more.
    bits: u64,
    more: u32,
    known: Known,
}

impl Default for Packer {
    fn default() -> Packer {
        Packer { bytes: Vec::new(), bits: 0, more: 0, known: Known::NOTHING }
    }
}

impl Packer {
    /// Begins anew, with moments about this one.
    pub(crate) fn begin(&mut self, base: Nanos) {
        self.bytes.clear();
        (self.bits, self.more) = (0, 0);
        self.known = Known::NOTHING;
        base.put(self);
        self.known.time = base.0;
    }

    /// All that was taken since.
    pub(crate) fn end(&mut self) -> &[u8] {
        let bytes = self.bits.to_le_bytes();
        self.bytes.extend(&bytes[..self.more.div_ceil(8) as usize]);
        (self.bits, self.more) = (0, 0);
        &self.bytes
    }

    /// The lowest `n` bits of these, which are less than 64; those above are zero.
    #[inline]
    fn bits(&mut self, bits: u64, n: u32) {
        self.bits |= bits << self.more;
        let more = self.more + n;
        if more < 64 {
            self.more = more;
            return;
        }
        self.bytes.extend_from_slice(&self.bits.to_le_bytes());
        // What had no room there.
        self.bits = bits >> 1 >> (63 - self.more);
        self.more = more - 64;
    }

    #[inline]
    fn bit(&mut self, set: bool) {
        self.bits(set.into(), 1);
    }

    /// A number of so many bits at most: how many it has, less one, then all below the first.
    #[inline]
    fn some(&mut self, number: u64, most: u32) {
        let (n, at) = (number.max(1).ilog2(), most.ilog2());
        let below = number & !(1 << n);
        if n + at < 64 {
            self.bits(u64::from(n) | below << at, n + at);
        } else {
            self.bits(n.into(), at);
            self.bits(below, n);
        }
    }

    /// The same, where zero is a bit.
    #[inline]
    fn number(&mut self, number: u64, most: u32) {
        self.bit(number != 0);
        if number != 0 {
            self.some(number, most);
        }
    }

    /// The number of the first of `all` that is like it; it must be there.
    pub(crate) fn one_of<T: PartialEq>(&mut self, mut all: impl Iterator<Item = T>, value: &T) {
        let at = all.position(|known| known == *value);
        debug_assert!(at.is_some(), "it is not known by a number");
        (at.unwrap_or(0) as u8).put(self);
    }
}

/// Gives back values in the order in which they were taken.
#[derive(Debug)]
pub(crate) struct Unpacker<'a> {
    /// Those of which no bit was taken out.
    bytes: &'a [u8],
    /// So many bits were taken out and not read; those above are zero, or the next ones.
    word: u64,
    have: u32,
    known: Known,
}

impl<'a> Unpacker<'a> {
    /// Reads these.
    pub(crate) fn of(bytes: &'a [u8]) -> Unpacker<'a> {
        let mut from = Unpacker { bytes, word: 0, have: 0, known: Known::NOTHING };
        from.known.time = Nanos::get(&mut from).0;
        from
    }

    /// Takes out bits, so that there are 56 at least.
    #[inline]
    fn take_out(&mut self) {
        match self.bytes.first_chunk() {
            Some(&next) => {
                self.word |= u64::from_le_bytes(next) << self.have;
                // Whole bytes: the bits of others that are there come again in the same place.
                let bytes = (63 - self.have) >> 3;
                self.bytes = &self.bytes[bytes as usize..];
                self.have += 8 * bytes;
            }
            None => self.take_out_last(),
        }
    }

    /// The last bytes, and zeros behind them.
    #[cold]
    #[inline(never)]
    fn take_out_last(&mut self) {
        while self.have < 56 {
            if let Some((&next, left)) = self.bytes.split_first() {
                self.word |= u64::from(next) << self.have;
                self.bytes = left;
            }
            self.have += 8;
        }
    }

    /// So many, which are no more than 56.
    #[inline]
    fn few(&mut self, n: u32) -> u64 {
        if self.have < n {
            self.take_out();
        }
        let bits = self.word & ((1 << n) - 1);
        self.word >>= n;
        self.have -= n;
        bits
    }

    /// So many, which are less than 64.
    #[inline]
    fn bits(&mut self, n: u32) -> u64 {
        if n <= 56 {
            return self.few(n);
        }
        let low = self.few(32);
        low | self.few(n - 32) << 32
    }

    #[inline]
    fn bit(&mut self) -> bool {
        self.few(1) == 1
    }

    #[inline]
    fn some(&mut self, most: u32) -> u64 {
        // How many there are was not known before, so that whether there are enough would be guessed wrong.
        self.take_out();
        let at = most.ilog2();
        let n = (self.word & ((1 << at) - 1)) as u32;
        if n + at <= 56 {
            let number = self.word >> at & ((1 << n) - 1) | 1 << n;
            self.word >>= n + at;
            self.have -= n + at;
            return number;
        }
        self.few(at);
        self.bits(n) | 1 << n
    }

    #[inline]
    fn number(&mut self, most: u32) -> u64 {
        if self.bit() { self.some(most) } else { 0 }
    }

    /// How many bits were not read, or a few more.
    fn left(&self) -> usize {
        8 * self.bytes.len() + self.have as usize
    }

    /// How long a list is. Each of its values takes a bit at least.
    fn len(&mut self) -> usize {
        usize::get(self).min(self.left())
    }

    /// What has this number in `all`.
    pub(crate) fn one_of<T>(&mut self, mut all: impl Iterator<Item = T>) -> Option<T> {
        let at = u8::get(self);
        all.nth(at.into())
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
                to.number(*self as u64, <$int>::BITS);
            }

            #[inline]
            fn get(from: &mut Unpacker<'_>) -> $int {
                from.number(<$int>::BITS) as $int
            }
        }
    )* };
}

unsigned!(u8, u16, u32, u64, usize);

macro_rules! signed {
    ($($int:ty),*) => { $(
        impl Rest for $int {
            #[inline]
            fn put(&self, to: &mut Packer) {
                to.number(zigzag(i64::from(*self)), <$int>::BITS);
            }

            #[inline]
            fn get(from: &mut Unpacker<'_>) -> $int {
                unzigzag(from.number(<$int>::BITS)) as $int
            }
        }
    )* };
}

signed!(i32, i64);

/// Round ones have few digits, all at the front, which would make large numbers.
macro_rules! float {
    ($($float:ty, $bits:ty);*) => { $(
        impl Rest for $float {
            fn put(&self, to: &mut Packer) {
                self.to_bits().reverse_bits().put(to);
            }

            fn get(from: &mut Unpacker<'_>) -> $float {
                <$float>::from_bits(<$bits>::get(from).reverse_bits())
            }
        }
    )* };
}

float!(f32, u32; f64, u64);

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
