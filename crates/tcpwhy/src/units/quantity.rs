//! Sizes, rates, distances and shares as people type them. What can be read in two ways is read in one, and
//! which is said.

use tcpwhy_base::Nanos;

/// A value, and what to tell about how it was understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Understood {
    pub(crate) value: u64,
    pub(crate) note: Option<String>,
    /// As it was typed.
    pub(crate) typed: String,
}

impl Understood {
    /// As it was typed, where that names its unit.
    pub(crate) fn with_unit(&self) -> Option<String> {
        let (number, unit) = self.typed.split_at(self.typed.find(|c: char| c.is_ascii_alphabetic())?);
        Some(format!("{} {unit}", number.trim()))
    }
}

/// `digits[.digits]` and what follows them.
fn split(text: &str) -> Option<(f64, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let value: f64 = number.parse().ok()?;
    Some((value, unit.trim()))
}

fn whole(value: f64, per: f64) -> Option<u64> {
    let n = value * per;
    (n.is_finite() && n <= 9e18).then_some(n.round() as u64)
}

/// Bytes: `16KiB`, `16k` (1024 each), `20kB`, `20MB` (1000 each), `1448`.
pub(crate) fn size(text: &str) -> Result<Understood, String> {
    let help = || format!("{text:?} is no size: write bytes as 1448, 16KiB, 20kB, 3MB, 2GB or 1TB");
    let (value, unit) = split(text.trim()).ok_or_else(help)?;
    let lower = unit.to_ascii_lowercase();
    let per: f64 = match lower.as_str() {
        "" | "b" | "byte" | "bytes" => 1.0,
        "k" | "ki" | "kib" => 1024.0,
        "m" | "mi" | "mib" => 1_048_576.0,
        "g" | "gi" | "gib" => 1_073_741_824.0,
        "t" | "ti" | "tib" => 1_099_511_627_776.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kbit" | "mbit" | "gbit" | "kbps" | "mbps" | "gbps" => {
            return Err(format!("{text:?} is a rate in bits; a size is in bytes: 16KiB, 20kB or 3MB"));
        }
        _ => return Err(help()),
    };
    let value = whole(value, per).ok_or_else(|| format!("{text:?} is larger than any size"))?;
    // In `mb` the case that tells bits from bytes is lost.
    let doubtful = matches!(unit, "kb" | "mb" | "gb" | "Kb" | "Mb" | "Gb");
    let note = doubtful.then(|| {
        let clear = lower.replace("kb", "kB").replace("mb", "MB").replace("gb", "GB");
        format!("{text} is read as bytes: {value} of them (written clearly: {clear})")
    });
    Ok(Understood { value, note, typed: text.trim().to_owned() })
}

/// Bits a second: `20mbit`, `20Mbps`, `1gbit/s`; with a capital B bytes: `20MB/s`.
pub(crate) fn rate(text: &str) -> Result<Understood, String> {
    let help = || format!("{text:?} is no rate: write it as 20mbit, 1gbit, 256kbit or 20MB/s");
    let (value, unit) = split(text.trim()).ok_or_else(help)?;
    if value == 0.0 {
        return Err(format!(
            "{text:?} is a rate of 0, at which nothing passes: for a link without a limit leave the option out"
        ));
    }
    let unit = unit.strip_suffix("/s").unwrap_or(unit);
    let lower = unit.to_ascii_lowercase();
    let prefix = match lower.bytes().next() {
        Some(b'k') => 1e3,
        Some(b'm') => 1e6,
        Some(b'g') => 1e9,
        _ => 1.0,
    };
    let bytes = unit.ends_with('B');
    let per = match lower.as_str() {
        "bit" | "bps" | "kbit" | "mbit" | "gbit" | "kbps" | "mbps" | "gbps" if !bytes => prefix,
        "kb" | "mb" | "gb" if bytes => prefix * 8.0,
        "kb" | "mb" | "gb" => prefix,
        "kib" | "mib" | "gib" => {
            return Err(format!("{text:?}: write a bandwidth in bits (20mbit) or decimal bytes (20MB/s)"));
        }
        "" => return Err(format!("{text:?} has no unit: write {text}mbit, {text}kbit or {text}bit")),
        _ => return Err(help()),
    };
    let value = whole(value, per).filter(|bits| *bits > 0).ok_or_else(help)?;
    let doubtful = matches!(lower.as_str(), "kb" | "mb" | "gb");
    let note = doubtful.then(|| {
        let mbit = value as f64 / 1e6;
        let (what, other) = if bytes { ("bytes", "mbit for bits") } else { ("bits", "MB/s for bytes") };
        format!("{text} is read as {what} a second, {mbit} Mbit/s (write {other})")
    });
    Ok(Understood { value, note, typed: text.trim().to_owned() })
}

/// Kilometres: `15000km`, `9000mi`.
pub(crate) fn distance(text: &str) -> Result<f64, String> {
    let help = || format!("{text:?} is no distance: write it as 15000km or 9000mi");
    let (value, unit) = split(text.trim()).ok_or_else(help)?;
    let km = match unit.to_ascii_lowercase().as_str() {
        "km" => value,
        "mi" | "miles" => value * 1.609_344,
        _ => return Err(help()),
    };
    // The longest way around the earth, and back.
    if km <= 80_000.0 { Ok(km) } else { Err(format!("{text:?} is more than twice around the earth")) }
}

/// Light in fibre goes about 200 km in a millisecond.
pub(crate) fn round_trip(km: f64) -> Nanos {
    Nanos((km * 2.0 / 200.0 * 1e6) as i64)
}

/// A share of at most 1: `1%`, `0.1%`, `0.01`. All is `100%`: who writes 1 may mean one in a hundred.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let help = || format!("{text:?} is no share: write it as 1% or 0.01");
    let (value, unit) = split(text.trim()).ok_or_else(help)?;
    match unit {
        "%" if value <= 100.0 => Ok(value / 100.0),
        "" if value < 1.0 => Ok(value),
        _ => Err(help()),
    }
}

/// A [`share`] in parts per million, below all.
pub(crate) fn share_ppm(text: &str) -> Result<u32, String> {
    let ppm = (share(text)? * 1e6).round();
    if (0.0..1e6).contains(&ppm) { Ok(ppm as u32) } else { Err(format!("{text:?}: 0 to below 100 %")) }
}

/// `4,2048`: sizes of writes.
pub(crate) fn sizes(text: &str) -> Result<Vec<u64>, String> {
    text.split(',').map(|part| Ok(size(part)?.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes() {
        let n = |t: &str| size(t).map(|u| u.value);
        assert_eq!(n("16KiB"), Ok(16384));
        assert_eq!(n("16k"), Ok(16384));
        assert_eq!(n("20kB"), Ok(20_000));
        assert_eq!(n("1.5MiB"), Ok(1_572_864));
        assert_eq!(n("0"), Ok(0));
        assert!(size("20mb").is_ok_and(|u| u.note.is_some_and(|n| n.contains("bytes: 20000000"))));
        assert!(size("20MB").is_ok_and(|u| u.note.is_none()));
        assert!(size("20mbit").is_err_and(|e| e.contains("bytes")));
        for wrong in ["", "k", "-1k", "1.2.3k", "12 parsecs", "99999999999999999999GB", "nan", "1e5"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_is_said_as_it_was_typed() {
        let said = |t: &str| size(t).ok().and_then(|u| u.with_unit());
        assert_eq!(said("30KB").as_deref(), Some("30 KB"));
        assert_eq!(said(" 1.5 MiB ").as_deref(), Some("1.5 MiB"));
        assert_eq!(said("1448"), None);
    }

    #[test]
    fn rates_are_bits_unless_they_say_bytes() {
        let n = |t: &str| rate(t).map(|u| u.value);
        assert_eq!(n("20mbit"), Ok(20_000_000));
        assert_eq!(n("1Gbit/s"), Ok(1_000_000_000));
        assert_eq!(n("20Mbps"), Ok(20_000_000));
        assert_eq!(n("20MB/s"), Ok(160_000_000));
        assert_eq!(n("256kbit"), Ok(256_000));
        let doubtful = rate("20mb");
        assert!(
            doubtful.is_ok_and(|u| u.value == 20_000_000 && u.note.is_some_and(|n| n.contains("20 Mbit/s")))
        );
        for wrong in ["20", "", "mbit", "-5mbit", "1e3mbit", "1..2mbit", "20MiB/s", "20mm", "0mbit", "0.1bit"]
        {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        assert!(rate("0").is_err_and(|e| e.contains("leave the option out")));
    }

    #[test]
    fn distances_and_shares() {
        assert_eq!(distance("15000km").map(round_trip), Ok(Nanos::millis(150)));
        assert!(distance("15000").is_err() && distance("1000000km").is_err());
        assert_eq!(
            (share("1%"), share("0%"), share("100%"), share("0.01")),
            (Ok(0.01), Ok(0.0), Ok(1.0), Ok(0.01))
        );
        for wrong in ["", "1", "101%", "-1%", "%", "1%%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
        assert_eq!(share_ppm("1%"), Ok(10_000));
        assert_eq!(share_ppm("0.001"), Ok(1000));
        assert!(share_ppm("99.99999%").is_err() && share_ppm("99.999%") == Ok(999_990));
        assert!(share_ppm("100%").is_err() && share_ppm("2").is_err() && share_ppm("x").is_err());
        assert_eq!(sizes("4,2KiB"), Ok(vec![4, 2048]));
        assert!(sizes("4,,5").is_err());
    }
}
