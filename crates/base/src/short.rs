use std::fmt;

/// 2^64 has so many digits.
const DIGITS: usize = 20;

/// All pairs of digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// The decimal digits of a number, and how many there are. Behind them stands what is to be cut off again: so many bytes
/// at once are copied without a call.
#[inline]
pub fn decimal(n: u64) -> ([u8; DIGITS], usize) {
    digits(n, 1)
}

/// The same with leading zeros up to `width` digits.
#[inline]
fn digits(mut n: u64, width: usize) -> ([u8; DIGITS], usize) {
    let mut text = [b'0'; 2 * DIGITS];
    let mut at = DIGITS;
    // Four at a time: of such a small number the pairs cost less.
    while n >= 10_000 {
        let four = (n % 10_000) as u32;
        at -= 4;
        text[at..at + 2].copy_from_slice(&PAIRS[(four / 100) as usize]);
        text[at + 2..at + 4].copy_from_slice(&PAIRS[(four % 100) as usize]);
        n /= 10_000;
    }
    if n >= 100 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[(n % 100) as usize]);
        n /= 100;
    }
    if n >= 10 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[n as usize]);
    } else {
        at -= 1;
        text[at] = b'0' + n as u8;
    }
    at = at.min(DIGITS - width.min(DIGITS));
    (text[at..].first_chunk().copied().unwrap_or([b'0'; DIGITS]), DIGITS - at)
}

/// A text of up to 48 bytes, put together without the formatting machinery: addresses and times are written by the
/// million.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// Behind the text there is room for any number.
    bytes: [u8; Short::ROOM + DIGITS],
    len: usize,
}

impl Short {
    const ROOM: usize = 48;

    /// Nothing yet.
    pub const fn new() -> Short {
        Short { bytes: [0; Short::ROOM + DIGITS], len: 0 }
    }

    /// Appends `text`; what finds no room is left out.
    #[inline]
    pub fn text(&mut self, text: &str) {
        let room = Short::ROOM - self.len.min(Short::ROOM);
        let whole = text.len() <= room;
        let text = if whole { text } else { text.get(..text.floor_char_boundary(room)).unwrap_or_default() };
        if let Some(slot) = self.bytes.get_mut(self.len..self.len + text.len()) {
            slot.copy_from_slice(text.as_bytes());
            self.len += text.len();
        }
    }

    /// Appends a number, unless it finds no room.
    #[inline]
    pub fn number(&mut self, n: u64) {
        self.digits(n, 1);
    }

    /// Appends a number with leading zeros up to `width` digits.
    #[inline]
    pub fn digits(&mut self, n: u64, width: usize) {
        let (text, len) = digits(n, width);
        if self.len + len <= Short::ROOM
            && let Some(room) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut)
        {
            *room = text;
            self.len += len;
        }
    }

    /// What was put together.
    #[inline]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl Default for Short {
    fn default() -> Short {
        Short::new()
    }
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_texts_and_numbers_together() {
        let mut short = Short::new();
        short.text("µ ");
        for n in [0, 7, 10, 123, u64::MAX] {
            short.number(n);
            short.text(",");
        }
        short.digits(7, 3);
        assert_eq!(short.as_str(), "µ 0,7,10,123,18446744073709551615,007");
    }

    #[test]
    fn digits_of_all_lengths() {
        let tens = (0..20).map(|n| 10_u64.pow(n));
        for n in (0..20_000).chain(tens.flat_map(|ten| [ten - 1, ten, ten + 1, ten.saturating_mul(7)])) {
            let (text, len) = decimal(n);
            assert_eq!(str::from_utf8(&text[..len]).unwrap(), n.to_string());
        }
    }

    #[test]
    fn what_finds_no_room_is_left_out() {
        let mut short = Short::new();
        short.text(&"µ".repeat(40));
        short.number(5);
        assert_eq!(short.as_str(), "µ".repeat(24));
    }
}
