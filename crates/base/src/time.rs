use crate::Short;
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
    #[inline]
    pub const fn micros(us: i64) -> Nanos {
        Nanos(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds.
    #[inline]
    pub const fn millis(ms: i64) -> Nanos {
        Nanos(ms.saturating_mul(1_000_000))
    }

    /// `s` seconds.
    #[inline]
    pub const fn secs(s: i64) -> Nanos {
        Nanos(s.saturating_mul(1_000_000_000))
    }

    /// Milliseconds as a float, for printing only.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self / n`.
    #[must_use]
    #[inline]
    pub const fn part(self, n: i64) -> Nanos {
        Nanos(self.0 / n)
    }

    /// `self * n`.
    #[must_use]
    #[inline]
    pub const fn times(self, n: i64) -> Nanos {
        Nanos(self.0.saturating_mul(n))
    }

    /// `self * part / whole`, exact to the nanosecond however long that is, as a float would not be; `whole`
    /// of zero or less gives zero.
    #[must_use]
    pub const fn share(self, part: Nanos, whole: Nanos) -> Nanos {
        if whole.0 <= 0 {
            return Nanos::ZERO;
        }
        match self.0.checked_mul(part.0) {
            Some(product) => Nanos(product / whole.0),
            None => {
                let share = self.0 as i128 * part.0 as i128 / whole.0 as i128;
                if share > i64::MAX as i128 || share < i64::MIN as i128 {
                    beyond(share < 0)
                } else {
                    Nanos(share as i64)
                }
            }
        }
    }

    /// As a moment since the Unix epoch: day and time of day in UTC, to the millisecond.
    pub fn utc(self) -> String {
        let (days, rest) = (self.0.div_euclid(86_400_000_000_000), self.0.rem_euclid(86_400_000_000_000));
        // Years begin in March, so that the leap day is the last of its year: 146,097 days are 400 years.
        let shifted = days + 719_468;
        let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
        let year = year + era * 400 + i64::from(month <= 2);
        let ms = rest / 1_000_000;
        let (h, m, s, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
        format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}.{ms:03}")
    }

    /// At least zero.
    #[must_use]
    #[inline]
    pub fn floor0(self) -> Nanos {
        self.max(Nanos::ZERO)
    }
}

/// What lies beyond an end of time. A branch that is never taken costs less than to saturate without one.
#[cold]
const fn beyond(negative: bool) -> Nanos {
    Nanos(if negative { i64::MIN } else { i64::MAX })
}

impl Add for Nanos {
    type Output = Nanos;
    #[inline]
    fn add(self, other: Nanos) -> Nanos {
        match self.0.checked_add(other.0) {
            Some(sum) => Nanos(sum),
            None => beyond(self.0 < 0),
        }
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    #[inline]
    fn sub(self, other: Nanos) -> Nanos {
        match self.0.checked_sub(other.0) {
            Some(difference) => Nanos(difference),
            None => beyond(self.0 < 0),
        }
    }
}

impl fmt::Display for Nanos {
    /// A length of time with three significant digits and its unit: `41.5 ms`, `2.83 s`, `52 µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let (unit, per) = match ns {
            0..1_000 => return write!(f, "{sign}{ns} ns"),
            1_000..999_500 => (" µs", 1_000),
            999_500..999_500_000 => (" ms", 1_000_000),
            _ => (" s", 1_000_000_000),
        };
        // Ten days: beyond that the thousandths would not fit.
        let ns_known = ns.min(864_000_000_000_000);
        let (digits, scale) = match ns_known.saturating_mul(1_000) {
            n if n < 9_995 * per => (2, 100),
            n if n < 99_950 * per => (1, 10),
            _ => (0, 1),
        };
        let (whole, rest) = (ns_known * scale / per, ns_known * scale % per);
        if ns_known < ns || rest * 2 == per {
            // A tie is rounded as the nearest binary fraction is.
            return write!(f, "{sign}{:.digits$}{unit}", ns as f64 / per as f64);
        }
        let rounded = whole + u64::from(rest * 2 > per);
        let mut short = Short::new();
        short.text(sign);
        short.number(rounded / scale);
        if digits > 0 {
            short.ascii(b'.');
            short.digits(rounded % scale, digits);
        }
        short.text(unit);
        f.write_str(short.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates() {
        let some = [i64::MIN, i64::MIN + 1, -2, -1, 0, 1, 2, i64::MAX - 1, i64::MAX];
        for (a, b) in some.into_iter().flat_map(|a| some.map(|b| (a, b))) {
            assert_eq!(Nanos(a) + Nanos(b), Nanos(a.saturating_add(b)), "{a} + {b}");
            assert_eq!(Nanos(a) - Nanos(b), Nanos(a.saturating_sub(b)), "{a} - {b}");
        }
    }

    #[test]
    fn shares_are_exact() {
        assert_eq!(
            Nanos(3_000_000_000_000_000_123).share(Nanos(1), Nanos(1)),
            Nanos(3_000_000_000_000_000_123)
        );
        // A float is right to some hundred nanoseconds there.
        let century = Nanos(3_155_760_000_000_000_199);
        assert_eq!(
            century.share(Nanos(2_999_999_999), Nanos(3_000_000_000)),
            Nanos(3_155_759_998_948_080_198)
        );
        assert_eq!(Nanos(100).share(Nanos(2), Nanos(3)), Nanos(66));
        assert_eq!(Nanos::MAX.share(Nanos(2), Nanos(1)), Nanos::MAX);
        assert_eq!(Nanos(5).share(Nanos(1), Nanos::ZERO), Nanos::ZERO);
    }

    #[test]
    fn days_of_the_calendar() {
        let utc = |s: i64| (Nanos::secs(s) + Nanos::millis(7)).utc();
        assert_eq!(utc(0), "1970-01-01 00:00:00.007");
        assert_eq!(utc(-1), "1969-12-31 23:59:59.007");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59.007");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00.007");
        assert_eq!(utc(951_868_800), "2000-03-01 00:00:00.007");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00:00.007", "2100 is no leap year");
        assert_eq!(utc(1_798_761_599), "2026-12-31 23:59:59.007");
    }

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

    /// The same as with floating point, which is slow.
    #[test]
    fn digits_are_those_of_the_value() {
        let by_value = |ns: u64| {
            let (unit, per) = match ns {
                0..1_000 => return format!("{ns} ns"),
                1_000..999_500 => ("µs", 1e3),
                999_500..999_500_000 => ("ms", 1e6),
                _ => ("s", 1e9),
            };
            let value = ns as f64 / per;
            let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
            format!("{value:.digits$} {unit}")
        };
        let mut n = 88_172_645_463_325_252_u64;
        let edges =
            [9_995, 9_994, 99_950, 99_949, 999_499, 1_005_000, 1_015_000, 2_500, 10_050_000, 99_949_999];
        let edges =
            edges.into_iter().chain([9_994_999_999, 9_995_000_000, 864_000_000_000_001, i64::MAX as u64]);
        let random = (0..20_000).map(|i| {
            n ^= n << 13;
            n ^= n >> 7;
            n ^= n << 17;
            n >> (1 + i % 60)
        });
        for ns in edges.chain(random) {
            assert_eq!(Nanos(ns as i64).to_string(), by_value(ns), "{ns}");
        }
        assert_eq!(Nanos(-1_234_567).to_string(), "-1.23 ms");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
        assert_eq!(Nanos(i64::MIN) - Nanos(1), Nanos(i64::MIN));
    }
}
