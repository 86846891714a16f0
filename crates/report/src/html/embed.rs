//! Bytes inside a page: deflated and in base64, so that nothing in them can be taken for markup.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::{self, Write};

/// Writes `<script type="text/plain" id="...">` around what `fill` writes, deflated and in base64.
pub(crate) fn block<W: Write + Send>(
    out: &mut W,
    id: &str,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, "<script type=\"text/plain\" id=\"{id}\">")?;
    let mut deflate = DeflateEncoder::new(Base64 { out: &mut *out, held: [0; 3], n: 0 }, Compression::new(7));
    fill(&mut deflate)?;
    deflate.finish()?.end()?;
    out.write_all(b"</script>\n")
}

/// RFC 4648, section 4.
struct Base64<'a, W: Write> {
    out: &'a mut W,
    held: [u8; 3],
    n: usize,
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn quartet([a, b, c]: [u8; 3]) -> [u8; 4] {
    let bits = u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c);
    [18, 12, 6, 0].map(|shift| ALPHABET[(bits >> shift) as usize & 63])
}

impl<W: Write> Base64<'_, W> {
    fn end(self) -> io::Result<()> {
        let mut four = quartet(self.held);
        match self.n {
            0 => return Ok(()),
            1 => four[2..].fill(b'='),
            _ => four[3] = b'=',
        }
        self.out.write_all(&four)
    }
}

impl<W: Write> Write for Base64<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = Vec::with_capacity(bytes.len() / 3 * 4 + 8);
        for &b in bytes {
            self.held[self.n] = b;
            self.n += 1;
            if self.n == 3 {
                text.extend_from_slice(&quartet(self.held));
                (self.held, self.n) = ([0; 3], 0);
            }
        }
        self.out.write_all(&text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_rfc() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            let mut out = Vec::new();
            let mut base64 = Base64 { out: &mut out, held: [0; 3], n: 0 };
            base64.write_all(plain.as_bytes()).unwrap();
            base64.end().unwrap();
            assert_eq!(out, coded.as_bytes());
        }
    }

    #[test]
    fn a_block_holds_no_markup() {
        let mut out = Vec::new();
        block(&mut out, "x", |w| w.write_all(b"</script><script>alert(1)</script>")).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('<').count(), 2, "{text}");
    }
}
