//! Objects to bytes: the same bytes as `serde_json`'s compact form, in a third of its time. Names and nearly all texts
//! need no escape, which eight bytes at a time show; numbers are written in place.

use serde::Serialize;
use serde::ser::{self, Serializer};
use std::fmt::{self, Display, Write as _};
use std::{io, mem};
use tcpwhy_base::{Short, decimal};

/// Appends `value` to `out`.
pub(super) fn append(out: &mut Vec<u8>, value: &impl Serialize) -> io::Result<()> {
    value.serialize(To(out)).map_err(io::Error::other)
}

/// What the types of this crate never do, or what their own code says went wrong.
#[derive(Debug)]
pub(super) struct Failed(String);

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl ser::Error for Failed {
    fn custom<T: Display>(what: T) -> Failed {
        Failed(what.to_string())
    }
}

/// Some byte of a word is a control character, a quotation mark or a backslash (or, rarely, one above that looks so:
/// the slow way decides).
#[inline]
fn suspicious(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero = |w: u64| w.wrapping_sub(ONES) & !w;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5c))) & (ONES * 0x80) != 0
}

/// Nothing in a text needs an escape. What is left of it after whole words overlaps the last of them.
#[inline]
fn plain(text: &[u8]) -> bool {
    if let Some(last) = text.last_chunk() {
        let words = text.as_chunks().0.iter().chain([last]);
        !words.fold(false, |any, w| any | suspicious(u64::from_le_bytes(*w)))
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let word = u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
        !suspicious(word)
    } else {
        text.iter().all(|&b| b >= 0x20 && b != b'"' && b != b'\\')
    }
}

/// The text without its quotation marks.
#[inline]
fn text(out: &mut Vec<u8>, text: &str) {
    if plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        escaped(out, text);
    }
}

/// The text with them.
#[inline(never)]
fn string(out: &mut Vec<u8>, text: &str) {
    if plain(text.as_bytes()) {
        quoted(out, text.as_bytes());
    } else {
        out.push(b'"');
        escaped(out, text);
        out.push(b'"');
    }
}

/// Text that needs no escape, with quotation marks: words, which most are, are put together on the stack, so that there is
/// one copy, of a length that is known.
#[inline]
fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    fn short<const HALF: usize, const ALL: usize>(out: &mut Vec<u8>, text: &[u8]) -> Option<()> {
        let mut all = [b'"'; ALL];
        *all.get_mut(1..)?.first_chunk_mut::<HALF>()? = *text.first_chunk()?;
        *all.get_mut(1..text.len() + 1)?.last_chunk_mut::<HALF>()? = *text.last_chunk()?;
        let end = out.len() + text.len() + 2;
        out.extend_from_slice(&all);
        out.truncate(end);
        Some(())
    }
    let done = match text.len() {
        4..=8 => short::<4, 16>(out, text),
        9..=16 => short::<8, 24>(out, text),
        _ => None,
    };
    if done.is_none() {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    }
}

#[cold]
fn escaped(out: &mut Vec<u8>, text: &str) {
    // Writing into memory cannot fail.
    let quoted = serde_json::to_vec(text).unwrap_or_default();
    out.extend_from_slice(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
}

/// One digit is what most numbers are; the others need no copy of the code in each place.
#[inline]
fn number(out: &mut Vec<u8>, n: u64) {
    if n < 10 { out.push(b'0' + n as u8) } else { longer(out, n) }
}

#[inline(never)]
fn longer(out: &mut Vec<u8>, n: u64) {
    decimal(n, out);
}

/// Shares and confidences have six digits or fewer.
fn share(out: &mut Vec<u8>, x: f64) {
    const SMALLEST: f64 = 10.0;
    let millionths = (x * 1e6).round_ties_even();
    if x == 0.0 && x.is_sign_positive() {
        out.extend_from_slice(b"0.0");
    } else if (SMALLEST..1e6).contains(&millionths) && millionths / 1e6 == x {
        // Seven digits, of which the first becomes the point.
        let mut digits = Short::new();
        digits.number(1_000_000 + millionths as u64);
        let digits = digits.as_bytes();
        let zeros = digits.iter().rev().take_while(|&&d| d == b'0').count();
        out.extend_from_slice(b"0.");
        out.extend_from_slice(digits.get(1..digits.len() - zeros).unwrap_or_default());
    } else {
        // Writing into memory cannot fail.
        out.extend_from_slice(&serde_json::to_vec(&x).unwrap_or_default());
    }
}

/// Pieces of a text as they are displayed.
struct Pieces<'a>(&'a mut Vec<u8>);

impl fmt::Write for Pieces<'_> {
    #[inline]
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        text(self.0, piece);
        Ok(())
    }
}

struct To<'a>(&'a mut Vec<u8>);

/// An object or a list that is open.
struct Open<'a> {
    out: &'a mut Vec<u8>,
    /// What stands before the next part: the opening brace or bracket, then commas.
    before: u8,
}

impl<'a> Open<'a> {
    #[inline]
    fn next(&mut self) -> u8 {
        mem::replace(&mut self.before, b',')
    }

    #[inline]
    fn end(self, open: u8, close: u8) -> Result<(), Failed> {
        if self.before == open {
            self.out.push(open);
        }
        self.out.push(close);
        Ok(())
    }
}

/// Names up to so many bytes are written in one go.
const NAME: usize = 28;

fn foreign<T>() -> Result<T, Failed> {
    Err(Failed("a kind of value that the contract does not have".into()))
}

impl<'a> Serializer for To<'a> {
    type Ok = ();
    type Error = Failed;
    type SerializeSeq = Open<'a>;
    type SerializeMap = Open<'a>;
    type SerializeStruct = Open<'a>;
    type SerializeTuple = Open<'a>;
    type SerializeTupleStruct = ser::Impossible<(), Failed>;
    type SerializeTupleVariant = ser::Impossible<(), Failed>;
    type SerializeStructVariant = ser::Impossible<(), Failed>;

    #[inline]
    fn serialize_bool(self, v: bool) -> Result<(), Failed> {
        self.0.extend_from_slice(if v { b"true" } else { b"false" });
        Ok(())
    }
    fn serialize_i8(self, v: i8) -> Result<(), Failed> {
        self.serialize_i64(v.into())
    }
    fn serialize_i16(self, v: i16) -> Result<(), Failed> {
        self.serialize_i64(v.into())
    }
    fn serialize_i32(self, v: i32) -> Result<(), Failed> {
        self.serialize_i64(v.into())
    }
    #[inline]
    fn serialize_i64(self, v: i64) -> Result<(), Failed> {
        if v < 0 {
            self.0.push(b'-');
        }
        number(self.0, v.unsigned_abs());
        Ok(())
    }
    fn serialize_u8(self, v: u8) -> Result<(), Failed> {
        self.serialize_u64(v.into())
    }
    fn serialize_u16(self, v: u16) -> Result<(), Failed> {
        self.serialize_u64(v.into())
    }
    fn serialize_u32(self, v: u32) -> Result<(), Failed> {
        self.serialize_u64(v.into())
    }
    #[inline]
    fn serialize_u64(self, v: u64) -> Result<(), Failed> {
        number(self.0, v);
        Ok(())
    }
    fn serialize_f32(self, v: f32) -> Result<(), Failed> {
        self.serialize_f64(v.into())
    }
    fn serialize_f64(self, v: f64) -> Result<(), Failed> {
        share(self.0, v);
        Ok(())
    }
    fn serialize_char(self, v: char) -> Result<(), Failed> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }
    #[inline]
    fn serialize_str(self, v: &str) -> Result<(), Failed> {
        string(self.0, v);
        Ok(())
    }
    /// Text that needs no escape.
    fn serialize_bytes(self, v: &[u8]) -> Result<(), Failed> {
        debug_assert!(plain(v), "this would need an escape");
        quoted(self.0, v);
        Ok(())
    }
    /// Texts may be given as bytes.
    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
    #[inline]
    fn serialize_none(self) -> Result<(), Failed> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }
    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<(), Failed> {
        v.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Failed> {
        self.serialize_none()
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Failed> {
        foreign()
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<(), Failed> {
        self.serialize_bytes(name.as_bytes())
    }
    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Result<(), Failed> {
        v.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Failed> {
        foreign()
    }
    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'a>, Failed> {
        Ok(Open { out: self.0, before: b'[' })
    }
    fn serialize_tuple(self, _: usize) -> Result<Open<'a>, Failed> {
        self.serialize_seq(None)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Failed> {
        foreign()
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Failed> {
        foreign()
    }
    #[inline]
    fn serialize_map(self, _: Option<usize>) -> Result<Open<'a>, Failed> {
        Ok(Open { out: self.0, before: b'{' })
    }
    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'a>, Failed> {
        Ok(Open { out: self.0, before: b'{' })
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Failed> {
        foreign()
    }
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Failed> {
        self.0.push(b'"');
        write!(Pieces(self.0), "{value}").map_err(ser::Error::custom)?;
        self.0.push(b'"');
        Ok(())
    }
}

impl ser::SerializeSeq for Open<'_> {
    type Ok = ();
    type Error = Failed;
    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failed> {
        let before = self.next();
        self.out.push(before);
        v.serialize(To(self.out))
    }
    #[inline]
    fn end(self) -> Result<(), Failed> {
        self.end(b'[', b']')
    }
}

impl ser::SerializeTuple for Open<'_> {
    type Ok = ();
    type Error = Failed;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failed> {
        ser::SerializeSeq::serialize_element(self, v)
    }
    fn end(self) -> Result<(), Failed> {
        ser::SerializeSeq::end(self)
    }
}

impl ser::SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Failed;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
        let before = self.next();
        self.out.push(before);
        key.serialize(To(self.out))
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failed> {
        self.out.push(b':');
        v.serialize(To(self.out))
    }
    #[inline]
    fn end(self) -> Result<(), Failed> {
        self.end(b'{', b'}')
    }
}

impl ser::SerializeStruct for Open<'_> {
    type Ok = ();
    type Error = Failed;
    /// Names are identifiers: nothing in them needs an escape.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "with the name known its copy is two instructions")]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, v: &T) -> Result<(), Failed> {
        let before = self.next();
        let len = name.len();
        if len <= NAME {
            let mut key = [0; NAME + 4];
            key[0] = before;
            key[1] = b'"';
            key[2..len + 2].copy_from_slice(name.as_bytes());
            key[len + 2] = b'"';
            key[len + 3] = b':';
            self.out.extend_from_slice(&key[..len + 4]);
        } else {
            self.out.extend_from_slice(&[before, b'"']);
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b"\":");
        }
        v.serialize(To(self.out))
    }
    #[inline]
    fn end(self) -> Result<(), Failed> {
        self.end(b'{', b'}')
    }
}

#[cfg(test)]
mod tests;
