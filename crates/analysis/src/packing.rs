//! Numbers as words, one after the other: what is kept of many is a list of them.

use tcpwhy_base::Nanos;

/// A time as a word: how long after another one.
#[inline]
pub(crate) fn since(time: Nanos, zero: Nanos) -> u64 {
    time.0.wrapping_sub(zero.0) as u64
}

/// The time that a word says.
#[inline]
pub(crate) fn after(word: u64, zero: Nanos) -> Nanos {
    Nanos(zero.0.wrapping_add(word as i64))
}

/// Takes words back, in their order. After the last one there are zeros.
#[derive(Debug)]
pub(crate) struct Words<'a>(pub(crate) &'a [u64]);

impl Words<'_> {
    /// The next ones.
    #[inline]
    pub(crate) fn take<const N: usize>(&mut self) -> [u64; N] {
        match self.0.split_first_chunk() {
            Some((&words, rest)) => {
                self.0 = rest;
                words
            }
            None => self.take_last(),
        }
    }

    /// There are fewer.
    #[cold]
    fn take_last<const N: usize>(&mut self) -> [u64; N] {
        let mut words = [0; N];
        words.iter_mut().zip(self.0).for_each(|(word, &known)| *word = known);
        self.0 = &[];
        words
    }

    /// The next one.
    #[inline]
    pub(crate) fn take_one(&mut self) -> u64 {
        let [word] = self.take();
        word
    }

    /// The next ones, so many of each `N`, but no more than there are.
    #[inline]
    pub(crate) fn take_list<const N: usize>(&mut self, n: usize) -> &[[u64; N]] {
        let (list, _) = self.0.as_chunks();
        let list = &list[..n.min(list.len())];
        self.0 = &self.0[list.len() * N..];
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let words = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut from = Words(&words);
        assert_eq!((from.take_one(), from.take()), (1, [2, 3]));
        assert_eq!(from.take_list::<2>(2), [[4, 5], [6, 7]]);
        assert_eq!((from.take(), from.take_one()), ([8, 0, 0], 0));
        let mut from = Words(&words);
        assert_eq!(from.take_list::<3>(9), [[1, 2, 3], [4, 5, 6]]);
        assert_eq!((from.take_list::<3>(9).len(), from.take()), (0, [7, 8]));
    }

    #[test]
    fn times_come_back() {
        let some = [0, 1, -1, 1 << 40, i64::MAX, i64::MIN].map(Nanos);
        for (time, zero) in some.iter().flat_map(|&time| some.map(|zero| (time, zero))) {
            assert_eq!(after(since(time, zero), zero), time);
        }
    }
}
