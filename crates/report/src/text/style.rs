//! Colours, numbers and lines.

use crate::text::Layout;
use crate::{Capture, time_of_day};
use anstyle::{AnsiColor, Style};
use tcpwhy_analysis::Extremes;
use tcpwhy_base::{Cause, Class, Nanos, Owner};

/// Headings and verdicts.
pub(crate) const BOLD: Style = Style::new().bold();
/// What can be skipped.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Warnings.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// What to do.
pub(crate) const FIX: Style = AnsiColor::Green.on_default();

/// The colour of a cause: by who has to act; what the distance and the rate cost has its own.
pub(crate) fn of(cause: Cause) -> Style {
    match (cause.owner(), cause.class()) {
        (Owner::Tcp, _) => AnsiColor::Red.on_default(),
        (Owner::Application, _) => AnsiColor::Cyan.on_default(),
        (Owner::Path, Class::Inherent) => AnsiColor::Blue.on_default(),
        (Owner::Path, _) => AnsiColor::Yellow.on_default(),
        (Owner::None, _) => AnsiColor::Magenta.on_default(),
    }
}

/// `40.0-44.5 ms each`: the unit once, where it is the same.
pub fn range(of: Extremes) -> String {
    let (a, b) = (of.shortest.to_string(), of.longest.to_string());
    if a == b {
        return a;
    }
    match (a.split_once(' '), b.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}-{b}"),
        _ => format!("{a} to {b}"),
    }
}

/// `139 B`, `2.31 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A rate in bits a second.
pub(crate) fn bit_rate(bps: u64) -> String {
    let (value, unit) = match bps as f64 {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    if value < 9.995 { format!("{value:.2} {unit}") } else { format!("{value:.0} {unit}") }
}

/// A moment: since the start of the capture, or the time of day.
pub(super) fn moment(time: Nanos, capture: &Capture, layout: &Layout) -> String {
    if layout.absolute {
        return time_of_day(time);
    }
    let ns = (time - capture.start()).0;
    let sign = if ns < 0 { "-" } else { "" };
    let us = ns.unsigned_abs() / 1000;
    format!("{sign}{}.{:06} s", us / 1_000_000, us % 1_000_000)
}

/// Words of `text` in lines of at most `width` characters (longer words stand alone); a number stays with its unit.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let mut word = word.to_owned();
        while let Some(unit) = words.next_if(|next| is_unit_of(next, &word)) {
            word.push(' ');
            word.push_str(unit);
        }
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// `word` is the unit of the number before it.
fn is_unit_of(word: &str, before: &str) -> bool {
    const UNITS: [&str; 12] = ["%", "s", "ms", "µs", "ns", "min", "h", "B", "KiB", "MiB", "GiB", "TiB"];
    before.ends_with(|c: char| c.is_ascii_digit())
        && UNITS.contains(&word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%'))
}

/// `text` made safe for one line: control characters become spaces.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{count, percent};

    #[test]
    fn numbers_for_people() {
        let percents: Vec<String> = [0.0, 0.0002, 0.004, 0.0094, 0.41, 0.999].map(percent).into();
        assert_eq!(percents, ["0 %", "<0.1 %", "0.4 %", "0.9 %", "41 %", "100 %"]);
        let sizes: Vec<String> = [0, 1023, 1024, 10_240, 2_422_000, 1 << 40].map(bytes).into();
        assert_eq!(sizes, ["0 B", "1023 B", "1.00 KiB", "10.0 KiB", "2.31 MiB", "1.00 TiB"]);
        let said = |shortest, longest| range(Extremes { shortest, longest });
        assert_eq!(said(Nanos::micros(40_000), Nanos::micros(44_500)), "40.0-44.5 ms");
        assert_eq!(said(Nanos::micros(400), Nanos::millis(44)), "400 µs to 44.0 ms");
        assert_eq!(said(Nanos::millis(40), Nanos::millis(40)), "40.0 ms");
        assert_eq!(bit_rate(12_300_000), "12 Mbit/s");
        assert_eq!(count(1, "exchange") + &count(2, "exchange"), "1 exchange2 exchanges");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("it took 5.2 s, 40 %) of it", 12), ["it took", "5.2 s, 40 %)", "of it"]);
        assert_eq!(wrap("5 of s", 3), ["5", "of", "s"]);
        assert_eq!(wrap("incomprehensible a", 4), ["incomprehensible", "a"]);
        assert!(wrap("", 10).is_empty());
    }

    #[test]
    fn moments_count_from_the_start() {
        let capture = Capture { span: Some((Nanos::secs(10), Nanos::secs(20))), ..Capture::default() };
        assert_eq!(moment(Nanos::millis(11_500), &capture, &Layout::default()), "1.500000 s");
        let absolute = Layout { absolute: true, ..Layout::default() };
        assert_eq!(moment(Nanos::millis(11_500), &capture, &absolute), "1970-01-01 00:00:11.500000 (UTC)");
    }
}
