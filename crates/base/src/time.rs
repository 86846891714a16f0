use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Integer nanoseconds: a moment (since the Unix epoch, or since the start of a capture) or a length of time.
/// Arithmetic saturates, so that hostile time stamps cannot overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub i64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// The largest value.
    pub const MAX: Nanos = Nanos(i64::MAX);

    /// `us` microseconds.
    pub const fn micros(us: i64) -> Nanos {
        Nanos(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds.
    pub const fn millis(ms: i64) -> Nanos {
        Nanos(ms.saturating_mul(1_000_000))
    }

    /// `s` seconds.
    pub const fn secs(s: i64) -> Nanos {
        Nanos(s.saturating_mul(1_000_000_000))
    }

    /// Milliseconds as a float, for printing only.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self / n`.
    #[must_use]
    pub const fn part(self, n: i64) -> Nanos {
        Nanos(self.0 / n)
    }

    /// `self * n`.
    #[must_use]
    pub const fn times(self, n: i64) -> Nanos {
        Nanos(self.0.saturating_mul(n))
    }

    /// At least zero.
    #[must_use]
    pub fn floor0(self) -> Nanos {
        self.max(Nanos::ZERO)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    /// A length of time with three significant digits and its unit: `41.5 ms`, `2.83 s`, `52 µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let (unit, per) = match ns {
            0..1_000 => return write!(f, "{sign}{ns} ns"),
            1_000..999_500 => ("µs", 1e3),
            999_500..999_500_000 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        let value = ns as f64 / per;
        let digits = if value < 9.995 {
            2
        } else if value < 99.95 {
            1
        } else {
            0
        };
        write!(f, "{sign}{value:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits() {
        let shown: Vec<String> =
            [0, 999, 1_000, 52_340, 999_600, 41_480_000, 999_600_000, 2_832_150_000, 123_400_000_000]
                .iter()
                .map(|&ns| Nanos(ns).to_string())
                .collect();
        assert_eq!(
            shown,
            ["0 ns", "999 ns", "1.00 µs", "52.3 µs", "1.00 ms", "41.5 ms", "1.00 s", "2.83 s", "123 s"]
        );
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
        assert_eq!(Nanos(i64::MIN) - Nanos(1), Nanos(i64::MIN));
    }
}
