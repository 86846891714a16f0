use std::fmt;

/// Four digits of a number below 10^4, each in a byte, the first one in the lowest: both halves are divided
/// side by side in one word, by a multiplication that is exact for so few digits.
#[inline]
const fn four(n: u32) -> u32 {
    let hundreds = (n * 5_243) >> 19;
    let halves = hundreds | ((n - 100 * hundreds) << 16);
    let tens = ((halves * 103) >> 10) & 0x000f_000f;
    tens | ((halves - 10 * tens) << 8)
}

/// Eight digits of a number below 10^8, each in a byte, the first one in the lowest.
#[inline]
fn eight(n: u64) -> u64 {
    let halves = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let quarters = hundreds | ((halves - 100 * hundreds) << 16);
    let tens = ((quarters * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((quarters - 10 * tens) << 8)
}

/// All numbers below this have eight digits or fewer.
pub const EIGHT: u64 = 10_u64.pow(8);
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// The digits of a number below 10^4 as text, and how many they are: what stands behind those is to be overwritten. So
/// many bytes at once are copied without a call.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call takes as long as a short number")]
pub const fn four_digits(n: u32) -> ([u8; 4], usize) {
    // One digit at least is written.
    let digits = four(n);
    let zeros = (digits | (1 << 24)).trailing_zeros() & !7;
    (((digits | ZEROS as u32) >> zeros).to_le_bytes(), 4 - zeros as usize / 8)
}

/// The digits of a number from 1 to 10^8 - 1 as text, and how many they are: what stands behind those is to
/// be overwritten.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call takes as long as a short number")]
pub fn eight_digits(n: u64) -> ([u8; 8], usize) {
    let digits = eight(n);
    let zeros = (digits | (1 << 56)).trailing_zeros() & !7;
    (((digits | ZEROS) >> zeros).to_le_bytes(), 8 - zeros as usize / 8)
}

/// The digits of a number below 10^8 with zeros before them.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call takes as long as a short number")]
pub fn all_eight_digits(n: u64) -> [u8; 8] {
    (eight(n) | ZEROS).to_le_bytes()
}

/// The digits of each byte as text, the first one in the lowest byte.
static OCTETS: [u32; 256] = {
    let mut octets = [0; 256];
    let mut n = 0;
    while n < 256 {
        let (digits, len) = four_digits(n as u32);
        octets[n] = u32::from_le_bytes(digits) & (u32::MAX >> (32 - 8 * len));
        n += 1;
    }
    octets
};

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

    /// Appends one character, unless it finds no room.
    #[inline]
    pub fn ascii(&mut self, character: u8) {
        if self.len < Short::ROOM && character.is_ascii() {
            self.bytes[self.len] = character;
            self.len += 1;
        }
    }

    /// Appends a byte in decimal digits and what stands behind it, in one copy.
    #[inline]
    pub fn octet(&mut self, n: u8, behind: u8) {
        let len = 2 + usize::from(n > 9) + usize::from(n > 99);
        if self.len + len <= Short::ROOM && behind.is_ascii() {
            let all = OCTETS[usize::from(n)] | u32::from(behind) << (8 * (len - 1));
            self.first_of(all.to_le_bytes(), len);
        }
    }

    /// Appends a number, unless it finds no room.
    #[inline]
    pub fn number(&mut self, n: u64) {
        let before = self.len;
        self.decimal(n);
        if self.len > Short::ROOM {
            self.len = before;
        }
    }

    fn decimal(&mut self, n: u64) {
        if n < 10_000 {
            let (digits, len) = four_digits(n as u32);
            self.first_of(digits, len);
        } else if n < EIGHT {
            let (digits, len) = eight_digits(n);
            self.first_of(digits, len);
        } else {
            self.decimal(n / EIGHT);
            self.first_of(all_eight_digits(n % EIGHT), 8);
        }
    }

    /// Takes the first `len` of so many bytes, for which there is room.
    #[inline]
    fn first_of<const N: usize>(&mut self, digits: [u8; N], len: usize) {
        if let Some(room) = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut) {
            *room = digits;
            self.len += len;
        }
    }

    /// Appends a number with leading zeros up to `width` digits.
    #[inline]
    pub fn digits(&mut self, n: u64, width: usize) {
        let mut ten = 1_u64;
        for _ in 1..width {
            ten = ten.saturating_mul(10);
            if n < ten {
                self.ascii(b'0');
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
    fn bytes_of_addresses() {
        for n in 0..=255 {
            let mut short = Short::new();
            short.octet(n, b'.');
            short.ascii(b'x');
            assert_eq!(short.as_str(), format!("{n}.x"));
        }
        let mut full = Short::new();
        full.text(&"x".repeat(45));
        full.octet(123, b'.');
        full.octet(12, b'.');
        full.octet(7, b'.');
        full.ascii(b'x');
        assert_eq!(full.as_str(), "x".repeat(45) + "12.");
        full = Short::new();
        full.octet(1, 0xff);
        full.ascii(0xff);
        assert_eq!(full.as_str(), "");
    }

    #[test]
    fn digits_of_all_lengths() {
        let tens = (0..20).map(|n| 10_u64.pow(n));
        for n in (0..100_000)
            .chain((0..10_000_000_000).step_by(99_991))
            .chain(tens.flat_map(|ten| [ten - 1, ten, ten + 1, ten.saturating_mul(7)]))
        {
            let mut text = Short::new();
            text.number(n);
            assert_eq!(text.as_str(), n.to_string());
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
