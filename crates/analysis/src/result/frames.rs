//! Which frames prove something.

use crate::packing::Words;
use crate::rest::{Form, Frame, Packer, Rest, Unpacker};

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

/// Of most the ends decide, which say their keys.
impl Rest for Frames {
    fn put(&self, to: &mut Packer) {
        let Frames { first, span, key, n, file } = self;
        Frame::write(first, to);
        span.put(to);
        n.put(to);
        file.put(to);
        let is_of_ends = self.is_of_ends();
        is_of_ends.put(to);
        match n {
            2 if is_of_ends => {}
            3 if is_of_ends => key[1].put(to),
            _ => key.put(to),
        }
    }

    fn get(from: &mut Unpacker<'_>) -> Frames {
        let (first, span, n, file) = (Frame::read(from), u32::get(from), u8::get(from), u16::get(from));
        let key = match n {
            _ if !bool::get(from) => Rest::get(from),
            2 => [0, span, 0],
            _ => [0, u32::get(from), span],
        };
        // More cannot decide.
        Frames { first, span, key, n: n.min(3), file }
    }
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

    /// What [`Frames::new`] makes of the most usual ones: none decides, or the ends themselves do, and
    /// perhaps one between them.
    #[inline(always)]
    fn of_ends(file: u16, a: u64, b: u64, key: &[u64]) -> Option<Frames> {
        let (from, between, to) = match *key {
            [] if a <= b && b - a <= u64::from(u32::MAX) => {
                return Some(Frames { first: a, span: (b - a) as u32, key: [0; 3], n: 0, file });
            }
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
        if let Some(frames) = self.join_behind(other) {
            return frames;
        }
        let mut keys = [0u64; 6];
        for (slot, key) in keys.iter_mut().zip(self.keys().chain(other.keys())) {
            *slot = key;
        }
        Frames::new(self.file, self.first.min(other.first), self.last().max(other.last()), &keys)
    }

    /// What [`Frames::join`] makes of what begins no earlier, which is how spans follow each other.
    #[inline]
    fn join_behind(self, other: Frames) -> Option<Frames> {
        let last = self.last().max(other.last());
        // Distances that saturate are none.
        if other.first < self.first || last - self.first >= u64::from(u32::MAX) {
            return None;
        }
        let (apart, n) = ((other.first - self.first) as u32, usize::from(other.n));
        let mut frames = Frames { span: (last - self.first) as u32, ..self };
        for key in &other.key[..n] {
            let n = usize::from(frames.n);
            if n == 3 {
                break;
            }
            frames.insert(apart + key, n);
        }
        Some(frames)
    }

    /// The frames that decide, ascending.
    #[inline]
    pub fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.key[..usize::from(self.n)].iter().map(|&k| self.first + u64::from(k))
    }

    /// What of them is said beside their words, in 19 bits.
    #[inline]
    pub(crate) fn brief(&self) -> u64 {
        u64::from(self.file) << 3 | u64::from(self.n & 3) << 1 | u64::from(self.is_of_ends())
    }

    /// The ends decide, and perhaps one between them: most are such.
    #[inline]
    fn is_of_ends(&self) -> bool {
        match self.n {
            2 => self.key == [0, self.span, 0],
            3 => self.key[0] == 0 && self.key[2] == self.span,
            _ => false,
        }
    }

    /// Appends their words.
    #[inline]
    pub(crate) fn pack(&self, words: &mut Vec<u64>) {
        let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [from, between, to] = self.key;
        if self.is_of_ends() {
            words.extend_from_slice(&[self.first, two(self.span, between)]);
        } else {
            words.extend_from_slice(&[self.first, two(self.span, from), two(between, to)]);
        }
    }

    /// Takes from words what was appended, with what was said beside.
    #[inline]
    pub(crate) fn unpack(brief: u64, from: &mut Words<'_>) -> Frames {
        let n = (brief >> 1 & 3) as u8;
        let [first, word] = from.take();
        let (span, other) = (word as u32, (word >> 32) as u32);
        let key = match (brief & 1, n) {
            (0, _) => {
                let more = from.take_one();
                [other, more as u32, (more >> 32) as u32]
            }
            (_, 3) => [0, other, span],
            _ => [0, span, 0],
        };
        Frames { first, span, key, n, file: (brief >> 3) as u16 }
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
            assert_eq!(Frames::new(1, a, b, &[]), Frames::new(1, a, b, &[0]));
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

    /// What follows is joined as anything is, which of all keys takes the first three.
    #[test]
    fn what_follows_is_joined_as_any() {
        let far = u64::from(u32::MAX);
        let keys: [&[u64]; 7] = [&[], &[10], &[14], &[10, 20], &[12, 18], &[10, 15, 20], &[12, 15, 19]];
        let all = |from: u64| keys.map(|keys| keys.iter().map(|k| k - 10 + from).collect::<Vec<_>>());
        let some = [1, 7, 10, 13, 20, 25, far - 20, far - 10, far, far + 40];
        let each = some.into_iter().flat_map(|from| {
            all(from)
                .into_iter()
                .flat_map(move |keys| [10, 14].map(|long| Frames::new(2, from, from + long, &keys)))
        });
        let each: Vec<Frames> = each.collect();
        for (a, b) in each.iter().flat_map(|a| each.iter().map(move |b| (*a, *b))) {
            // Zeros are dropped, and take the way of any.
            let mut keys: Vec<u64> = a.keys().chain(b.keys()).collect();
            keys.resize(8, 0);
            let any = Frames::new(2, a.first.min(b.first), a.last().max(b.last()), &keys);
            assert_eq!(a.join(b), if a == b { a } else { any }, "{a:?} {b:?}");
        }
    }

    #[test]
    fn they_come_back_from_words() {
        let big = u64::from(u32::MAX);
        let keys: [&[u64]; 8] =
            [&[], &[10], &[20], &[10, 20], &[12, 18], &[10, 15, 20], &[10, 15], &[12, 15, 20]];
        for (file, keys) in [0, 3, u16::MAX].iter().flat_map(|file| keys.map(|keys| (*file, keys))) {
            for to in [20, 10 + big, u64::MAX] {
                let frames = Frames::new(file, 10, to, keys);
                let ends = Frames::new(file, 10, to, &[10, 15, to]);
                let mut words = Vec::new();
                frames.pack(&mut words);
                ends.pack(&mut words);
                let mut from = Words(&words);
                assert!(frames.brief() < 1 << 19);
                assert_eq!(Frames::unpack(frames.brief(), &mut from), frames);
                assert_eq!(Frames::unpack(ends.brief(), &mut from), ends);
                assert!(from.0.is_empty());
            }
        }
    }
}
