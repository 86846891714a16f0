//! Numbers as bytes, seven bits in each: small ones take one.

/// Appends a number.
#[inline]
pub(crate) fn put(bytes: &mut Vec<u8>, n: u64) {
    if n < 0x80 {
        bytes.push(n as u8);
    } else {
        put_long(bytes, n);
    }
}

/// Most take two to four bytes, which are written at once.
fn put_long(bytes: &mut Vec<u8>, n: u64) {
    let goes_on = |shift: u32| (n >> shift) as u8 | 0x80;
    let ends = |shift: u32| (n >> shift) as u8;
    match n {
        0..0x4000 => bytes.extend_from_slice(&[goes_on(0), ends(7)]),
        0x4000..0x20_0000 => bytes.extend_from_slice(&[goes_on(0), goes_on(7), ends(14)]),
        0x20_0000..0x1000_0000 => {
            bytes.extend_from_slice(&[goes_on(0), goes_on(7), goes_on(14), ends(21)]);
        }
        _ if n >> 56 == 0 => put_longer(bytes, n),
        _ => put_longest(bytes, n),
    }
}

/// Up to 56 bits at once: they are spread in three steps, as [`Numbers::take`] puts them together.
fn put_longer(bytes: &mut Vec<u8>, n: u64) {
    let more = n & 0x0fff_ffff | (n & 0x00ff_ffff_f000_0000) << 4;
    let fourteens = more & 0x0000_3fff_0000_3fff | (more & 0x0fff_c000_0fff_c000) << 2;
    let sevens = fourteens & 0x007f_007f_007f_007f | (fourteens & 0x3f80_3f80_3f80_3f80) << 1;
    // All bytes before the highest that holds something go on.
    let last = (63 - sevens.leading_zeros()) & !7;
    let word = sevens | 0x8080_8080_8080_8080 & ((1 << last) - 1);
    let end = bytes.len() + last as usize / 8 + 1;
    bytes.extend_from_slice(&word.to_le_bytes());
    bytes.truncate(end);
}

#[cold]
fn put_longest(bytes: &mut Vec<u8>, mut n: u64) {
    while n > 0x7f {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}

/// Appends a number of either sign: the sign is the lowest bit.
pub(crate) fn put_signed(bytes: &mut Vec<u8>, n: i64) {
    put(bytes, (n << 1 ^ n >> 63) as u64);
}

/// Takes numbers back, in their order. After the last one there are zeros.
#[derive(Debug)]
pub(crate) struct Numbers<'a>(pub(crate) &'a [u8]);

impl Numbers<'_> {
    #[inline]
    pub(crate) fn take(&mut self) -> u64 {
        match self.0.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.0 = rest;
                u64::from(byte)
            }
            _ => self.take_long(),
        }
    }

    /// Of eight bytes at once, while there are as many: the first without its highest bit is the last of the number, and what lies before
    /// it is put together in three steps, sevens to fourteens to twenty-eights.
    fn take_long(&mut self) -> u64 {
        let word = self.0.first_chunk().map_or(u64::MAX, |&head| u64::from_le_bytes(head));
        let ends = !word & 0x8080_8080_8080_8080;
        if ends == 0 {
            return self.take_longest();
        }
        let bits = ends.trailing_zeros() + 1;
        self.0 = &self.0[bits as usize / 8..];
        let sevens = word & (u64::MAX >> (64 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
        let fourteens = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
        let more = fourteens & 0x0000_3fff_0000_3fff | (fourteens & 0x3fff_0000_3fff_0000) >> 2;
        more & 0x0000_0000_0fff_ffff | (more & 0x0fff_ffff_0000_0000) >> 4
    }

    fn take_longest(&mut self) -> u64 {
        let (mut n, mut shift) = (0, 0);
        while let Some((&byte, rest)) = self.0.split_first() {
            self.0 = rest;
            n |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift > 63 {
                break;
            }
        }
        n
    }

    /// A number of things that follow: no more than there are bytes.
    pub(crate) fn take_count(&mut self) -> usize {
        usize::try_from(self.take()).unwrap_or(usize::MAX).min(self.0.len())
    }

    pub(crate) fn take_signed(&mut self) -> i64 {
        let n = self.take();
        (n >> 1) as i64 ^ -((n & 1) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let some = [0, 1, -1, 63, 64, -64, -65, 127, 128, 1 << 40, -(1 << 40), i64::MAX, i64::MIN];
        let mut bytes = Vec::new();
        some.iter().for_each(|&n| put_signed(&mut bytes, n));
        some.iter().for_each(|&n| put(&mut bytes, n as u64));
        let mut numbers = Numbers(&bytes);
        some.iter().for_each(|&n| assert_eq!(numbers.take_signed(), n));
        some.iter().for_each(|&n| assert_eq!(numbers.take(), n as u64));
        assert_eq!((numbers.take(), numbers.take_signed()), (0, 0));
        assert_eq!(Numbers(&[0xff; 20]).take(), u64::MAX);
        // Each length, alone and before others.
        for bits in 0..64 {
            for n in [1_u64 << bits, (1_u64 << bits) - 1, u64::MAX >> bits] {
                let mut bytes = Vec::new();
                put(&mut bytes, n);
                let mut one_by_one = Vec::new();
                put_longest(&mut one_by_one, n);
                assert_eq!(bytes, one_by_one);
                assert_eq!(Numbers(&bytes).take(), n);
                bytes.extend([0xff; 9]);
                let mut numbers = Numbers(&bytes);
                assert_eq!((numbers.take(), numbers.0.len()), (n, 9));
            }
        }
    }
}
