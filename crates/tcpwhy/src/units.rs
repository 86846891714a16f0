//! What people type: whole numbers, durations and moments; what has other units is in [`quantity`].

pub(crate) mod quantity;

use jiff::Timestamp;
use tcpwhy_base::Nanos;

/// Where `--from` or `--to` lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// After the earliest packet.
    Offset(Nanos),
    /// Since the Unix epoch.
    At(Nanos),
}

impl Bound {
    /// Later than `other`, where the two can be compared without knowing when the capture starts.
    pub(crate) fn is_after(self, other: Bound) -> bool {
        match (self, other) {
            (Bound::Offset(a), Bound::Offset(b)) | (Bound::At(a), Bound::At(b)) => a > b,
            _ => false,
        }
    }

    /// Since the Unix epoch, for a capture that starts at `start`.
    pub(crate) fn resolve(self, start: Nanos) -> Nanos {
        match self {
            Bound::Offset(offset) => start + offset,
            Bound::At(time) => time,
        }
    }
}

/// A whole number within these bounds, and those of its type, which has no sign; who types something else is told them.
pub(crate) fn whole<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    let largest = u64::MAX >> (u64::BITS - 8 * size_of::<T>() as u32);
    move |text| {
        let bounds = match (least, most) {
            (0, u64::MAX) => ": write it as 10".into(),
            (_, u64::MAX) => format!(" of {least} or more"),
            _ => format!(" from {least} to {most}"),
        };
        let said = || format!("{text:?} is no whole number{bounds}");
        let too_large = || format!("{text:?} is too large: {} is the most", most.min(largest));
        let n: u64 = match text.parse() {
            Ok(n) => n,
            Err(_) if is_large(text) => return Err(too_large()),
            Err(_) => return Err(said()),
        };
        if n > most.min(largest) {
            return Err(too_large());
        }
        T::try_from(n).ok().filter(|_| n >= least).ok_or_else(said)
    }
}

/// Of an option with a value: a negative one is its value, not another option, be it `-4` or, of what has a
/// unit, `-40ms`.
pub(crate) fn negative(arg: clap::Arg) -> clap::Arg {
    let has_unit =
        |name: &clap::builder::Str| ["TIME", "RATE", "SIZE", "SHARE", "DISTANCE"].contains(&name.as_str());
    if arg.get_value_names().is_some_and(|names| names.iter().any(has_unit)) {
        return arg.allow_hyphen_values(true);
    }
    arg.allow_negative_numbers(true)
}

/// A number that is none only because nothing here counts so far.
fn is_large(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// `40ms`, `1.5s`, `200us`, `1m`.
pub(crate) fn duration(text: &str) -> Result<Nanos, String> {
    let help = || format!("{text:?} is no duration: write it as 40ms, 1.5s or 200us");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(help)?;
    let (number, unit) = text.split_at(split);
    let per = match unit.trim_start() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(help()),
    };
    scaled(number, per).ok_or_else(help)
}

/// A [`duration`] that the lab's link can be told: an hour at the most, of which `parts` make up its round trip.
#[cfg(target_os = "linux")]
pub(crate) fn on_the_way(
    parts: i64,
) -> impl Fn(&str) -> Result<Nanos, String> + Clone + Send + Sync + 'static {
    let most = Nanos::secs(3600 / parts);
    move |text| match duration(text)? {
        time if time > most => {
            Err(format!("{text:?} is too long: {} minutes are the most", most.0 / 60_000_000_000))
        }
        time => Ok(time),
    }
}

/// [`quantity::rate`] in megabits a second. Nothing tells here how it was understood: what may be bits or
/// bytes is refused.
#[cfg(target_os = "linux")]
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = quantity::rate(text)?;
    if rate.note.is_some() && !text.contains('B') {
        return Err(format!("{text:?} may be bits or bytes a second: write it as 20mbit or 20MB/s"));
    }
    Ok(rate.value as f64 / 1e6)
}

/// [`quantity::size`], up to what can be reckoned with.
#[cfg(target_os = "linux")]
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let size = quantity::size(text)?.value;
    if size < 1_000_000_000_000_000 { Ok(size) } else { Err(format!("{text:?} is larger than any size")) }
}

/// RFC 3339, or an offset from the start: seconds, or a duration, with or without `+`.
pub(crate) fn bound(text: &str) -> Result<Bound, String> {
    let offset = text.strip_prefix('+').unwrap_or(text);
    if let Some(seconds) = scaled(offset, 1_000_000_000) {
        return Ok(Bound::Offset(seconds));
    }
    if let Ok(d) = duration(offset) {
        return Ok(Bound::Offset(d));
    }
    let at: Timestamp = text.parse().map_err(|_| {
        format!("{text:?} is no moment: write 2024-05-01T12:00:00Z, or an offset such as 2.5 or +1.5s")
    })?;
    let ns = i64::try_from(at.as_nanosecond());
    Ok(Bound::At(Nanos(
        ns.map_err(|_| format!("{text:?} is later than April 2262, or as long before 1970"))?,
    )))
}

/// `digits[.digits]` times `per`, in integers.
fn scaled(number: &str, per: i64) -> Option<Nanos> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = part * i128::from(per) / 10i128.pow(fraction.len() as u32);
    Some(Nanos(whole.checked_mul(per)?.checked_add(i64::try_from(part).ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        let port = whole::<u16>(1, 65_535);
        assert_eq!(port("443"), Ok(443));
        for (text, said) in [
            ("0", "is no whole number from 1 to 65535"),
            ("-1", "is no whole number from 1 to 65535"),
            ("", "is no whole number from 1 to 65535"),
            ("65536", "is too large: 65535 is the most"),
        ] {
            assert_eq!(port(text), Err(format!("{text:?} {said}")));
        }
        let exchange = whole::<u32>(1, u64::MAX);
        assert_eq!(exchange("4294967295"), Ok(u32::MAX));
        for text in ["4294967296", "1000000000000", "99999999999999999999999"] {
            assert_eq!(exchange(text), Err(format!("{text:?} is too large: 4294967295 is the most")));
        }
        let rows = whole::<u64>(0, u64::MAX);
        assert_eq!(rows("18446744073709551615"), Ok(u64::MAX));
        let large = "18446744073709551616";
        assert_eq!(rows(large), Err(format!("{large:?} is too large: 18446744073709551615 is the most")));
        assert_eq!(rows("x"), Err("\"x\" is no whole number: write it as 10".to_owned()));
    }

    #[test]
    fn durations() {
        assert_eq!(duration("40ms"), Ok(Nanos::millis(40)));
        assert_eq!(duration("1.5s"), Ok(Nanos::millis(1500)));
        assert_eq!(duration("200us"), Ok(Nanos::micros(200)));
        assert_eq!(duration("0.000000001s"), Ok(Nanos(1)));
        for wrong in ["", "40", "ms", ".", "1.2.3s", "-1s", "4 parsecs", "99999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn rates_and_sizes() {
        assert_eq!((rate("100mbit"), rate("1.5Gbit"), rate("256kbit")), (Ok(100.0), Ok(1500.0), Ok(0.256)));
        assert_eq!((rate("100Mbps"), rate("20MB/s")), (Ok(100.0), Ok(160.0)));
        assert!(rate("1mb").is_err_and(|said| said.contains("bits or bytes")));
        assert_eq!((size("64kb"), size("64KiB"), size("1500b")), (Ok(64_000), Ok(65_536), Ok(1500)));
        assert_eq!((size("64k"), size("1500")), (Ok(65_536), Ok(1500)));
        for wrong in ["99999999999mb", "64mbit", "-1b"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn times_on_the_way() {
        assert_eq!((on_the_way(1)("60m"), on_the_way(2)("1s")), (Ok(Nanos::secs(3600)), Ok(Nanos::secs(1))));
        let long = on_the_way(1)("1000000s");
        assert_eq!(long, Err("\"1000000s\" is too long: 60 minutes are the most".into()));
        assert!(on_the_way(2)("31m").is_err() && on_the_way(1)("40").is_err());
    }

    #[test]
    fn moments() {
        let at = |text| bound(text).unwrap_or(Bound::Offset(Nanos::ZERO));
        assert!(at("2.5").is_after(at("2")) && !at("2").is_after(at("2")));
        assert!(at("2026-01-02T00:00:00Z").is_after(at("2026-01-01T00:00:00Z")));
        assert!(!at("2026-01-02T00:00:00Z").is_after(at("2")), "not comparable before the capture is read");
        assert_eq!(bound("2.5"), Ok(Bound::Offset(Nanos::millis(2500))));
        assert_eq!(bound("+1.5s"), Ok(Bound::Offset(Nanos::millis(1500))));
        assert_eq!(bound("1970-01-01T00:00:01.5Z"), Ok(Bound::At(Nanos::millis(1500))));
        assert!(bound("yesterday").is_err());
    }
}
