//! Objects to bytes: the same bytes as `serde_json`'s compact form, in a third of its time. Names and nearly all texts
//! need no escape, which many bytes at a time show; numbers are written in place.

use serde::Serialize;
use serde::ser::{self, Serializer};
use std::fmt::{self, Display, Write as _};
use std::mem;
use tcpwhy_base::{EIGHT, all_eight_digits, eight_digits, four_digits};

/// What is left of the room. It stays in registers, where a vector is looked at and its length written for each word.
pub(super) type Room<'a> = &'a mut [u8];

/// The room behind what was written.
pub(super) type Written<'a> = Result<Room<'a>, Failed>;

/// There is too little room, or a kind of value that the contract does not have. Without a word of its own a
/// [`Written`] is no larger than a room.
#[derive(Debug)]
pub(super) struct Failed;

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it finds no room")
    }
}

impl std::error::Error for Failed {}

impl ser::Error for Failed {
    fn custom<T: Display>(_: T) -> Failed {
        Failed
    }
}

/// Writes `value` where there is room.
#[inline]
pub(super) fn write<'a>(room: Room<'a>, value: &impl Serialize) -> Written<'a> {
    value.serialize(To(room))
}

/// Bytes of a length that is known.
#[inline(always)]
#[expect(clippy::inline_always, reason = "two or three instructions")]
fn put<'a, const N: usize>(room: Room<'a>, bytes: &[u8; N]) -> Written<'a> {
    let (to, rest) = room.split_first_chunk_mut().ok_or(Failed)?;
    *to = *bytes;
    Ok(rest)
}

/// The first `len` of so many bytes, all of which are copied.
#[inline(always)]
#[expect(clippy::inline_always, reason = "some instructions")]
fn put_first<const N: usize>(room: Room<'_>, bytes: [u8; N], len: usize) -> Written<'_> {
    *room.first_chunk_mut().ok_or(Failed)? = bytes;
    room.get_mut(len..).ok_or(Failed)
}

/// Copies bytes to as many: of a few their beginning and their end, which overlap, each of a length that is known.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "some instructions")]
    fn halves<const HALF: usize>(to: &mut [u8], from: &[u8]) -> Option<()> {
        *to.first_chunk_mut::<HALF>()? = *from.first_chunk()?;
        *to.last_chunk_mut::<HALF>()? = *from.last_chunk()?;
        Some(())
    }
    let done = match from.len() {
        4..=8 => halves::<4>(to, from),
        9..=16 => halves::<8>(to, from),
        17..=32 => halves::<16>(to, from),
        _ => None,
    };
    if done.is_none() {
        to.copy_from_slice(from);
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

/// Some of sixteen bytes, which are compared side by side, is a control character, a quotation mark or a backslash.
#[inline]
fn any_suspicious(bytes: &[u8; 16]) -> bool {
    bytes.iter().fold(false, |any, &b| any | (b < 0x20) | (b == b'"') | (b == b'\\'))
}

/// Nothing in a text needs an escape. What is left of it after whole words overlaps the last of them.
#[inline(always)]
fn plain(text: &[u8]) -> bool {
    if let Some(last) = text.last_chunk() {
        let mut any = any_suspicious(last);
        for word in text.as_chunks().0 {
            any |= any_suspicious(word);
        }
        !any
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        !suspicious(u64::from_le_bytes(*first)) && !suspicious(u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let word = u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
        !suspicious(word)
    } else {
        text.iter().all(|&b| b >= 0x20 && b != b'"' && b != b'\\')
    }
}

/// The text without its quotation marks.
#[inline]
fn text<'a>(room: Room<'a>, text: &str) -> Written<'a> {
    if !plain(text.as_bytes()) {
        return escaped(room, text);
    }
    let (to, rest) = room.split_at_mut_checked(text.len()).ok_or(Failed)?;
    copy(to, text.as_bytes());
    Ok(rest)
}

/// The text with them.
#[inline(never)]
fn string<'a>(room: Room<'a>, text: &str) -> Written<'a> {
    if plain(text.as_bytes()) {
        quoted(room, text.as_bytes())
    } else {
        put(escaped(put(room, b"\"")?, text)?, b"\"")
    }
}

/// Text that needs no escape, with quotation marks.
#[inline(never)]
fn quoted<'a>(room: Room<'a>, text: &[u8]) -> Written<'a> {
    let (to, rest) = room.split_at_mut_checked(text.len() + 2).ok_or(Failed)?;
    if let [before, to @ .., behind] = to {
        *before = b'"';
        *behind = b'"';
        copy(to, text);
    }
    Ok(rest)
}

#[cold]
fn escaped<'a>(room: Room<'a>, text: &str) -> Written<'a> {
    // Writing into memory cannot fail.
    let quoted = serde_json::to_vec(text).unwrap_or_default();
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let (to, rest) = room.split_at_mut_checked(inner.len()).ok_or(Failed)?;
    to.copy_from_slice(inner);
    Ok(rest)
}

/// One digit is what most numbers are; the others need no copy of the code in each place.
#[inline]
fn number(room: Room<'_>, n: u64) -> Written<'_> {
    if n < 10 { put(room, &[b'0' + n as u8]) } else { longer(room, n) }
}

#[inline(never)]
fn longer(room: Room<'_>, n: u64) -> Written<'_> {
    if n < 10_000 {
        let (digits, len) = four_digits(n as u32);
        return put_first(room, digits, len);
    }
    if n < EIGHT {
        let (digits, len) = eight_digits(n);
        return put_first(room, digits, len);
    }
    let high = n / EIGHT;
    let room = if high < 10_000 {
        let (digits, len) = four_digits(high as u32);
        put_first(room, digits, len)?
    } else {
        longer(room, high)?
    };
    put(room, &all_eight_digits(n % EIGHT))
}

/// Shares and confidences have six digits or fewer.
#[inline(never)]
fn share(room: Room<'_>, x: f64) -> Written<'_> {
    // What is not a whole number of millionths is found out below, however it is rounded.
    let millionths = (x * 1e6 + 0.5) as u64;
    if (10..1_000_000).contains(&millionths) && millionths as f64 / 1e6 == x {
        // The first two of eight digits are zeros: the point takes the second one's place. Zeros at the end
        // are left out.
        let [_, _, a, b, c, d, e, f] = all_eight_digits(millionths);
        let digits = [b'0', b'.', a, b, c, d, e, f];
        let zeros = (u64::from_le_bytes(digits) ^ u64::from_le_bytes([b'0'; 8])).leading_zeros() / 8;
        put_first(room, digits, 8 - zeros as usize)
    } else {
        other(room, x)
    }
}

#[inline(never)]
fn other(room: Room<'_>, x: f64) -> Written<'_> {
    if x == 0.0 && x.is_sign_positive() {
        return put(room, b"0.0");
    }
    // Writing into memory cannot fail.
    let text = serde_json::to_vec(&x).unwrap_or_default();
    let (to, rest) = room.split_at_mut_checked(text.len()).ok_or(Failed)?;
    to.copy_from_slice(&text);
    Ok(rest)
}

/// Pieces of a text as they are displayed.
struct Pieces<'a>(Room<'a>);

impl fmt::Write for Pieces<'_> {
    #[inline]
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.0 = text(mem::take(&mut self.0), piece).map_err(|_| fmt::Error)?;
        Ok(())
    }
}

struct To<'a>(Room<'a>);

/// An object or a list that is open.
struct Open<'a> {
    room: Room<'a>,
    /// What stands before the next part: the opening brace or bracket, then commas.
    before: u8,
}

impl<'a> Open<'a> {
    /// The room behind what stands before the next part.
    #[inline]
    fn next(&mut self) -> Written<'a> {
        put(mem::take(&mut self.room), &[mem::replace(&mut self.before, b',')])
    }

    #[inline]
    fn end(self, open: u8, close: u8) -> Written<'a> {
        if self.before == open { put(self.room, &[open, close]) } else { put(self.room, &[close]) }
    }
}

/// Names up to so many bytes are written in one go.
const NAME: usize = 28;

fn foreign<T>() -> Result<T, Failed> {
    Err(Failed)
}

impl<'a> Serializer for To<'a> {
    type Ok = Room<'a>;
    type Error = Failed;
    type SerializeSeq = Open<'a>;
    type SerializeMap = Open<'a>;
    type SerializeStruct = Open<'a>;
    type SerializeTuple = Open<'a>;
    type SerializeTupleStruct = ser::Impossible<Room<'a>, Failed>;
    type SerializeTupleVariant = ser::Impossible<Room<'a>, Failed>;
    type SerializeStructVariant = ser::Impossible<Room<'a>, Failed>;

    #[inline]
    fn serialize_bool(self, v: bool) -> Written<'a> {
        if v { put(self.0, b"true") } else { put(self.0, b"false") }
    }
    fn serialize_i8(self, v: i8) -> Written<'a> {
        self.serialize_i64(v.into())
    }
    fn serialize_i16(self, v: i16) -> Written<'a> {
        self.serialize_i64(v.into())
    }
    fn serialize_i32(self, v: i32) -> Written<'a> {
        self.serialize_i64(v.into())
    }
    #[inline]
    fn serialize_i64(self, v: i64) -> Written<'a> {
        let room = if v < 0 { put(self.0, b"-")? } else { self.0 };
        number(room, v.unsigned_abs())
    }
    fn serialize_u8(self, v: u8) -> Written<'a> {
        self.serialize_u64(v.into())
    }
    fn serialize_u16(self, v: u16) -> Written<'a> {
        self.serialize_u64(v.into())
    }
    fn serialize_u32(self, v: u32) -> Written<'a> {
        self.serialize_u64(v.into())
    }
    #[inline]
    fn serialize_u64(self, v: u64) -> Written<'a> {
        number(self.0, v)
    }
    fn serialize_f32(self, v: f32) -> Written<'a> {
        self.serialize_f64(v.into())
    }
    #[inline]
    fn serialize_f64(self, v: f64) -> Written<'a> {
        share(self.0, v)
    }
    fn serialize_char(self, v: char) -> Written<'a> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }
    #[inline]
    fn serialize_str(self, v: &str) -> Written<'a> {
        string(self.0, v)
    }
    /// Text that needs no escape.
    #[inline]
    fn serialize_bytes(self, v: &[u8]) -> Written<'a> {
        debug_assert!(plain(v), "this would need an escape");
        quoted(self.0, v)
    }
    /// Texts may be given as bytes.
    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
    #[inline]
    fn serialize_none(self) -> Written<'a> {
        put(self.0, b"null")
    }
    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Written<'a> {
        v.serialize(self)
    }
    fn serialize_unit(self) -> Written<'a> {
        self.serialize_none()
    }
    fn serialize_unit_struct(self, _: &'static str) -> Written<'a> {
        foreign()
    }
    #[inline]
    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Written<'a> {
        self.serialize_bytes(name.as_bytes())
    }
    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Written<'a> {
        v.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Written<'a> {
        foreign()
    }
    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'a>, Failed> {
        Ok(Open { room: self.0, before: b'[' })
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
        Ok(Open { room: self.0, before: b'{' })
    }
    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'a>, Failed> {
        Ok(Open { room: self.0, before: b'{' })
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
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Written<'a> {
        let mut pieces = Pieces(put(self.0, b"\"")?);
        write!(pieces, "{value}").map_err(|_| Failed)?;
        put(pieces.0, b"\"")
    }
}

impl<'a> ser::SerializeSeq for Open<'a> {
    type Ok = Room<'a>;
    type Error = Failed;
    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failed> {
        self.room = v.serialize(To(self.next()?))?;
        Ok(())
    }
    #[inline]
    fn end(self) -> Written<'a> {
        self.end(b'[', b']')
    }
}

impl<'a> ser::SerializeTuple for Open<'a> {
    type Ok = Room<'a>;
    type Error = Failed;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failed> {
        ser::SerializeSeq::serialize_element(self, v)
    }
    fn end(self) -> Written<'a> {
        ser::SerializeSeq::end(self)
    }
}

impl<'a> ser::SerializeMap for Open<'a> {
    type Ok = Room<'a>;
    type Error = Failed;
    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
        self.room = key.serialize(To(self.next()?))?;
        Ok(())
    }
    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failed> {
        self.room = v.serialize(To(put(mem::take(&mut self.room), b":")?))?;
        Ok(())
    }
    #[inline]
    fn end(self) -> Written<'a> {
        self.end(b'{', b'}')
    }
}

impl<'a> ser::SerializeStruct for Open<'a> {
    type Ok = Room<'a>;
    type Error = Failed;
    /// Names are identifiers: nothing in them needs an escape.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "with the name known its copy is two instructions")]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, v: &T) -> Result<(), Failed> {
        let len = name.len();
        let room = if len <= NAME {
            let mut key = [0; NAME + 4];
            key[0] = mem::replace(&mut self.before, b',');
            key[1] = b'"';
            key[2..len + 2].copy_from_slice(name.as_bytes());
            key[len + 2] = b'"';
            key[len + 3] = b':';
            let (to, rest) = mem::take(&mut self.room).split_at_mut_checked(len + 4).ok_or(Failed)?;
            to.copy_from_slice(&key[..len + 4]);
            rest
        } else {
            put(quoted(self.next()?, name.as_bytes())?, b":")?
        };
        self.room = v.serialize(To(room))?;
        Ok(())
    }
    #[inline]
    fn end(self) -> Written<'a> {
        self.end(b'{', b'}')
    }
}

#[cfg(test)]
mod tests;
