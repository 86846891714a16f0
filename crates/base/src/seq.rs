use std::ops::{Add, Sub};

/// A TCP sequence number. Comparison is modulo 2^32 (RFC 9293, 3.4): `a` is before `b` if the way
/// from `a` up to `b` is shorter than the way down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// `self < other` modulo 2^32.
    #[inline]
    pub const fn before(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// `self > other` modulo 2^32.
    #[inline]
    pub const fn after(self, other: Seq) -> bool {
        other.before(self)
    }

    /// `self <= other` modulo 2^32.
    #[inline]
    pub const fn at_or_before(self, other: Seq) -> bool {
        !self.after(other)
    }

    /// Signed distance `self - other`, right while the two are within 2 GiB of each other.
    #[inline]
    pub const fn minus(self, other: Seq) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// The later of the two.
    #[inline]
    #[must_use]
    pub const fn max(self, other: Seq) -> Seq {
        if self.before(other) { other } else { self }
    }
}

impl Add<u32> for Seq {
    type Output = Seq;
    #[inline]
    fn add(self, n: u32) -> Seq {
        Seq(self.0.wrapping_add(n))
    }
}

impl Sub<u32> for Seq {
    type Output = Seq;
    #[inline]
    fn sub(self, n: u32) -> Seq {
        Seq(self.0.wrapping_sub(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let (a, b) = (Seq(u32::MAX - 10), Seq(20));
        assert!(a.before(b) && b.after(a) && !b.before(a));
        assert_eq!(b.minus(a), 31);
        assert_eq!(a.minus(b), -31);
        assert_eq!(a.max(b), b);
        assert_eq!(a + 31, b);
        assert!(a.at_or_before(a));
    }
}
