use std::fmt;

/// Four digits of a number below 10^4, each in a byte, the first one in the lowest: both halves are divided side by side in
/// one word, by a multiplication that is exact for so few digits.
#[inline]
fn four(n: u32) -> u32 {
    let hundreds = (n * 5_243) >> 19;
    let halves = hundreds | ((n - 100 * hundreds) << 16);
    let tens = ((halves * 103) >> 10) & 0x000f_000f;
    tens | ((halves - 10 * tens) << 8)
}

/// The same for eight digits of a number below 10^8.
#[inline]
fn eight(n: u64) -> u64 {
    let halves = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let quarters = hundreds | ((halves - 100 * hundreds) << 16);
    let tens = ((quarters * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((quarters - 10 * tens) << 8)
}

/// Digits as text. Behind those that count stands what is to be cut off again: so many bytes at once are copied
/// without a call.
pub trait Digits {
    /// Takes the first `len` of four bytes.
    fn four(&mut self, digits: [u8; 4], len: usize);
    /// Takes the first `len` of eight bytes.
    fn eight(&mut self, digits: [u8; 8], len: usize);
}

const EIGHT: u64 = 10_u64.pow(8);
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// Writes a number in decimal digits.
#[inline]
pub fn decimal(n: u64, out: &mut impl Digits) {
    if n < EIGHT {
        return up_to_eight(n, out);
    }
    let high = n / EIGHT;
    if high < EIGHT {
        up_to_eight(high, out);
    } else {
        up_to_eight(high / EIGHT, out);
        out.eight((eight(high % EIGHT) | ZEROS).to_le_bytes(), 8);
    }
    out.eight((eight(n % EIGHT) | ZEROS).to_le_bytes(), 8);
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "a call takes as long as a short number")]
fn up_to_eight(n: u64, out: &mut impl Digits) {
    if n < 10_000 {
        // One digit at least is written.
        let digits = four(n as u32);
        let zeros = (digits | (1 << 24)).trailing_zeros() & !7;
        out.four(((digits | ZEROS as u32) >> zeros).to_le_bytes(), 4 - zeros as usize / 8);
    } else {
        let digits = eight(n);
        let zeros = digits.trailing_zeros() & !7;
        out.eight(((digits | ZEROS) >> zeros).to_le_bytes(), 8 - zeros as usize / 8);
    }
}

/// A text of up to 48 bytes, put together without the formatting machinery: addresses and times are written by the
/// million.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// Behind the text there is room for as many digits as are written at once.
    bytes: [u8; Short::ROOM + 24],
    len: usize,
}

impl Short {
    const ROOM: usize = 48;

    /// Nothing yet.
    pub const fn new() -> Short {
        Short { bytes: [0; Short::ROOM + 24], len: 0 }
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
        let before = self.len;
        decimal(n, self);
        if self.len > Short::ROOM {
            self.len = before;
        }
    }

    /// Appends a number with leading zeros up to `width` digits.
    #[inline]
    pub fn digits(&mut self, n: u64, width: usize) {
        let mut ten = 1_u64;
        for _ in 1..width {
            ten = ten.saturating_mul(10);
            if n < ten {
                self.text("0");
            }
        }
        self.number(n);
    }

    /// The bytes of what was put together.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// What was put together.
    #[inline]
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl Digits for Short {
    #[inline]
    fn four(&mut self, digits: [u8; 4], len: usize) {
        if let Some(room) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            *room = digits;
            self.len += len;
        }
    }

    #[inline]
    fn eight(&mut self, digits: [u8; 8], len: usize) {
        if let Some(room) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            *room = digits;
            self.len += len;
        }
    }
}

impl Digits for Vec<u8> {
    #[inline]
    fn four(&mut self, digits: [u8; 4], len: usize) {
        let end = self.len() + len;
        self.extend_from_slice(&digits);
        self.truncate(end);
    }

    #[inline]
    fn eight(&mut self, digits: [u8; 8], len: usize) {
        let end = self.len() + len;
        self.extend_from_slice(&digits);
        self.truncate(end);
    }
}

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
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
        for n in (0..100_000)
            .chain((0..10_000_000_000).step_by(99_991))
            .chain(tens.flat_map(|ten| [ten - 1, ten, ten + 1, ten.saturating_mul(7)]))
        {
            let mut text = Vec::new();
            decimal(n, &mut text);
            assert_eq!(str::from_utf8(&text).unwrap(), n.to_string());
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
