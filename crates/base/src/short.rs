use std::fmt;

/// A text of up to 48 bytes, put together without the formatting machinery: addresses and times are written by the
/// million.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    bytes: [u8; Short::ROOM],
    len: usize,
}

impl Short {
    const ROOM: usize = 48;

    /// Nothing yet.
    pub const fn new() -> Short {
        Short { bytes: [0; Short::ROOM], len: 0 }
    }

    /// Appends `text`; what finds no room is left out.
    #[inline]
    pub fn text(&mut self, text: &str) {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let text = text.get(..text.floor_char_boundary(room.len())).unwrap_or_default();
        for (slot, &byte) in room.iter_mut().zip(text.as_bytes()) {
            *slot = byte;
        }
        self.len += text.len();
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte;
            self.len += 1;
        }
    }

    /// Appends a number.
    #[inline]
    pub fn number(&mut self, n: u64) {
        self.digits(n, 1);
    }

    /// Appends a number with leading zeros up to `width` digits.
    #[inline]
    pub fn digits(&mut self, mut n: u64, width: usize) {
        // 2^64 has 20 digits.
        let mut digits = [b'0'; 20];
        let mut used = 0;
        for slot in digits.iter_mut().rev() {
            if n == 0 && used >= width {
                break;
            }
            *slot = b'0' + (n % 10) as u8;
            n /= 10;
            used += 1;
        }
        for &digit in &digits[digits.len() - used..] {
            self.byte(digit);
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
    fn what_finds_no_room_is_left_out() {
        let mut short = Short::new();
        short.text(&"µ".repeat(40));
        short.number(5);
        assert_eq!(short.as_str(), "µ".repeat(24));
    }
}
