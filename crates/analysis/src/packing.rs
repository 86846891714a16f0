//! Numbers as bytes, seven bits in each: small ones take one.

/// Appends a number.
#[inline]
pub(crate) fn put(bytes: &mut Vec<u8>, mut n: u64) {
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

    fn take_long(&mut self) -> u64 {
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
    }
}
