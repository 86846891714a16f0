//! Objects to bytes: the same bytes as `serde_json`'s compact form, in a third of its time. Names and nearly all texts
//! need no escape, which eight bytes at a time show; numbers are written in place.

use serde::Serialize;
use serde::ser::{self, Serializer};
use std::fmt::{self, Display, Write as _};
use std::io;
use tcpwhy_base::decimal;

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

/// The text without its quotation marks.
#[inline]
fn text(out: &mut Vec<u8>, text: &str) {
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let mut any = words.iter().fold(false, |any, w| any | suspicious(u64::from_le_bytes(*w)));
    any |= rest.iter().any(|&b| b < 0x20 || b == b'"' || b == b'\\');
    if any {
        escaped(out, text);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

#[cold]
fn escaped(out: &mut Vec<u8>, text: &str) {
    // Writing into memory cannot fail.
    let quoted = serde_json::to_vec(text).unwrap_or_default();
    out.extend_from_slice(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
}

#[inline]
fn number(out: &mut Vec<u8>, n: u64) {
    if n < 10 {
        return out.push(b'0' + n as u8);
    }
    let (digits, len) = decimal(n);
    let end = out.len() + len;
    out.extend_from_slice(&digits);
    out.truncate(end);
}

/// Shares and confidences mostly have three digits or fewer.
fn share(out: &mut Vec<u8>, x: f64) {
    let thousandths = (x * 1e3).round();
    if thousandths > 0.0 && thousandths < 1e3 && thousandths / 1e3 == x {
        let n = thousandths as usize;
        let digit = |n: usize| b'0' + (n % 10) as u8;
        let digits = [b'0', b'.', digit(n / 100), digit(n / 10), digit(n)];
        let zeros = digits.iter().rev().take_while(|&&d| d == b'0').count();
        out.extend_from_slice(&digits[..digits.len() - zeros]);
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
    begun: bool,
    close: u8,
}

impl<'a> Open<'a> {
    #[inline]
    fn new(out: &'a mut Vec<u8>, open: u8, close: u8) -> Open<'a> {
        out.push(open);
        Open { out, begun: false, close }
    }

    #[inline]
    fn comma(&mut self) {
        if self.begun {
            self.out.push(b',');
        }
        self.begun = true;
    }

    #[inline]
    fn end(self) -> Result<(), Failed> {
        self.out.push(self.close);
        Ok(())
    }
}

fn foreign<T>() -> Result<T, Failed> {
    Err(Failed("a kind of value that the contract does not have".into()))
}

impl<'a> Serializer for To<'a> {
    type Ok = ();
    type Error = Failed;
    type SerializeSeq = Open<'a>;
    type SerializeMap = Open<'a>;
    type SerializeStruct = Open<'a>;
    type SerializeTuple = ser::Impossible<(), Failed>;
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
        self.0.push(b'"');
        text(self.0, v);
        self.0.push(b'"');
        Ok(())
    }
    fn serialize_bytes(self, _: &[u8]) -> Result<(), Failed> {
        foreign()
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
        self.serialize_str(name)
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
        Ok(Open::new(self.0, b'[', b']'))
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Failed> {
        foreign()
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
        Ok(Open::new(self.0, b'{', b'}'))
    }
    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'a>, Failed> {
        Ok(Open::new(self.0, b'{', b'}'))
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
        self.comma();
        v.serialize(To(self.out))
    }
    fn end(self) -> Result<(), Failed> {
        self.end()
    }
}

impl ser::SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Failed;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
        self.comma();
        key.serialize(To(self.out))
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failed> {
        self.out.push(b':');
        v.serialize(To(self.out))
    }
    fn end(self) -> Result<(), Failed> {
        self.end()
    }
}

impl ser::SerializeStruct for Open<'_> {
    type Ok = ();
    type Error = Failed;
    /// Names are identifiers: nothing in them needs an escape.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "with the name known its copy is two instructions")]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, v: &T) -> Result<(), Failed> {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        v.serialize(To(self.out))
    }
    fn end(self) -> Result<(), Failed> {
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn same(value: &impl Serialize) {
        let mut ours = Vec::new();
        append(&mut ours, value).unwrap();
        let theirs = serde_json::to_vec(value).unwrap();
        assert_eq!(String::from_utf8(ours), String::from_utf8(theirs));
    }

    #[derive(Serialize)]
    struct Everything<'a> {
        none: Option<u8>,
        some: Option<i64>,
        yes: bool,
        list: &'a [f64],
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u8>,
        map: BTreeMap<&'a str, u64>,
    }

    #[test]
    fn numbers() {
        for n in [0, 1, 9, 10, 99, 100, 101, 999, 1000, 12_345, u64::MAX, u64::from(u32::MAX)] {
            same(&n);
        }
        for n in [i64::MIN, -1, 0, 7, i64::MAX] {
            same(&n);
        }
        for n in 0..=1000 {
            same(&(f64::from(n) / 1e3));
            same(&(f64::from(n) / 1e6));
        }
        for x in [0.333_333, 1e-9, 1.0, 2.5, -0.5, f64::NAN, f64::INFINITY] {
            same(&x);
        }
    }

    #[test]
    fn texts() {
        for c in 0..300 {
            let c = char::from_u32(c).unwrap();
            for before in 0..10 {
                same(&format!("{}{c}and then some more", "x".repeat(before)));
            }
        }
        for t in ["", "10.0.0.1:80", "µs and µs and µs", "\"\\\u{7f}\u{1f}", "𝄞"] {
            same(&t);
        }
    }

    #[test]
    fn every_width_of_number_is_written_alike() {
        same(&(i8::MIN));
        same(&(i16::MIN));
        same(&(i32::MIN));
        same(&(u8::MAX));
        same(&(u16::MAX));
        same(&0.25_f32);
        same(&'\u{1}');
        same(&'µ');
        same(&());
    }

    #[derive(Serialize)]
    enum Kinds {
        Unit,
        New(u8),
        Tuple(u8, u8),
        Struct { field: u8 },
    }

    #[derive(Serialize)]
    struct New(u8);

    #[derive(Serialize)]
    struct Nothing;

    #[derive(Serialize)]
    struct Two(u8, u8);

    #[test]
    fn what_the_contract_does_not_have_is_refused() {
        same(&Kinds::Unit);
        same(&New(7));
        struct Bytes;
        impl Serialize for Bytes {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_bytes(b"x")
            }
        }
        let refused = |done: io::Result<()>| done.is_err_and(|e| e.to_string().contains("contract"));
        let mut out = Vec::new();
        assert!(refused(append(&mut out, &Kinds::New(1))));
        assert!(refused(append(&mut out, &Kinds::Tuple(1, 2))));
        assert!(refused(append(&mut out, &Kinds::Struct { field: 1 })));
        assert!(refused(append(&mut out, &Nothing)));
        assert!(refused(append(&mut out, &Two(1, 2))));
        assert!(refused(append(&mut out, &(1, 2))));
        assert!(refused(append(&mut out, &Bytes)));
        assert!(out.is_empty());
    }

    #[test]
    fn objects() {
        let map = BTreeMap::from([("a", 1), ("b\n", 2)]);
        let list = [0.5, 0.25];
        same(&Everything { none: None, some: Some(-3), yes: true, list: &list, left_out: None, map });
        same(&Everything {
            none: Some(1),
            some: None,
            yes: false,
            list: &[],
            left_out: Some(2),
            map: BTreeMap::new(),
        });
    }
}
