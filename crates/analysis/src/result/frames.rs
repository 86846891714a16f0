//! Which frames prove something.

use crate::packing::{Numbers, put};

/// Frame numbers that prove something, 1-based as Wireshark counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    first: u64,
    /// From `first` to the highest frame involved; saturates.
    span: u32,
    /// The frames that decide, as distance from `first`, ascending; `n` of them.
    key: [u32; 3],
    n: u8,
    /// Index of the input file.
    pub file: u16,
}

impl Frames {
    /// Frames `a` to `b` (in any order) with `key` as evidence; keys of zero, outside or doubled are dropped, and of
    /// more than three the first ones are kept.
    pub fn new(file: u16, a: u64, b: u64, key: &[u64]) -> Frames {
        if let Some(frames) = Frames::of_ends(file, a, b, key) {
            return frames;
        }
        let (first, last) = (a.min(b), a.max(b));
        let distance = |frame: u64| u32::try_from(frame - first).unwrap_or(u32::MAX);
        let mut frames = Frames { first, span: distance(last), key: [0; 3], n: 0, file };
        for &k in key {
            let n = usize::from(frames.n);
            if n < 3 && k != 0 && k >= first && k <= last {
                frames.insert(distance(k), n);
            }
        }
        frames
    }

    /// What [`Frames::new`] makes of the most usual ones: the ends themselves decide, and perhaps one between them.
    #[inline(always)]
    fn of_ends(file: u16, a: u64, b: u64, key: &[u64]) -> Option<Frames> {
        let (from, between, to) = match *key {
            [from, to] => (from, from, to),
            [from, between, to] => (from, between, to),
            _ => return None,
        };
        let (ends, span) = ((from, to) == (a, b), b.wrapping_sub(a));
        if !ends || a == 0 || a >= b || span > u64::from(u32::MAX) {
            return None;
        }
        let span = span as u32;
        let inner = between > a && between < b;
        let key = if inner { [0, (between - a) as u32, span] } else { [0, span, 0] };
        Some(Frames { first: a, span, key, n: 2 + u8::from(inner), file })
    }

    /// Adds a key frame to `n`, in its place, if it is not there.
    #[inline]
    fn insert(&mut self, key: u32, n: usize) {
        let mut at = n;
        while at > 0 && self.key[at - 1] >= key {
            at -= 1;
        }
        if at < n && self.key[at] == key {
            return;
        }
        // No more than two: a call to move bytes would take longer.
        for i in (at..n).rev() {
            self.key[i + 1] = self.key[i];
        }
        self.key[at] = key;
        self.n += 1;
    }

    /// Lowest frame involved.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Highest frame involved.
    pub fn last(&self) -> u64 {
        self.first + u64::from(self.span)
    }

    /// The smallest set that covers both, keeping this one's key frames first.
    #[must_use]
    pub fn join(self, other: Frames) -> Frames {
        if self == other {
            return self;
        }
        let mut keys = [0u64; 6];
        for (slot, key) in keys.iter_mut().zip(self.keys().chain(other.keys())) {
            *slot = key;
        }
        Frames::new(self.file, self.first.min(other.first), self.last().max(other.last()), &keys)
    }

    /// The frames that decide, ascending.
    pub fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.key[..usize::from(self.n)].iter().map(|&k| self.first + u64::from(k))
    }

    /// Appends them to bytes.
    pub(crate) fn pack(&self, bytes: &mut Vec<u8>) {
        put(bytes, u64::from(self.file) << 2 | u64::from(self.n));
        put(bytes, self.first);
        put(bytes, u64::from(self.span));
        self.key[..usize::from(self.n)].iter().for_each(|&key| put(bytes, u64::from(key)));
    }

    /// Takes from bytes what was appended.
    pub(crate) fn unpack(from: &mut Numbers<'_>) -> Frames {
        let head = from.take();
        let n = (head & 3) as u8;
        let (first, span) = (from.take(), from.take() as u32);
        let mut key = [0; 3];
        key[..usize::from(n)].iter_mut().for_each(|key| *key = from.take() as u32);
        Frames { first, span, key, n, file: (head >> 2) as u16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_once_each_within() {
        let keys = |keys: &[u64]| Frames::new(0, 20, 10, keys).keys().collect::<Vec<_>>();
        assert_eq!(keys(&[15, 12, 15, 18, 13]), [12, 15, 18]);
        assert_eq!(keys(&[20, 10, 20]), [10, 20]);
        assert_eq!(keys(&[9, 21, 0, 11]), [11]);
        assert_eq!(keys(&[18, 12, 15]), [12, 15, 18]);
        assert_eq!(Frames::new(0, 0, 5, &[0, 1]).keys().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn usual_ones_are_as_any() {
        let some =
            [0, 1, 2, 5, 9, u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::from(u32::MAX) + 2, u64::MAX];
        for (a, b) in some.iter().flat_map(|&a| some.iter().map(move |&b| (a, b))) {
            for (from, to) in [(a, b), (b, a), (a, 7)] {
                // A zero more is dropped, and takes another way.
                assert_eq!(Frames::new(1, a, b, &[from, to]), Frames::new(1, a, b, &[from, to, 0, 0]));
                for between in some {
                    let (three, more) = ([from, between, to], [from, between, to, 0]);
                    assert_eq!(Frames::new(1, a, b, &three), Frames::new(1, a, b, &more));
                }
            }
        }
    }

    #[test]
    fn joined_they_cover_both() {
        let (a, b) = (Frames::new(0, 10, 20, &[10, 15, 20]), Frames::new(0, 18, 30, &[18, 30]));
        assert_eq!(a.join(a), Frames::new(0, 10, 20, &[10, 15, 20, 10, 15, 20]));
        assert_eq!(a.join(b), Frames::new(0, 10, 30, &[10, 15, 20]));
        assert_eq!(b.join(a), Frames::new(0, 10, 30, &[18, 30, 10]));
    }
}
