//! Forms in which some fields are shorter than other numbers of their type.

use super::{Packer, Rest, Unpacker, unzigzag, zigzag};
use std::num::NonZeroU64;

/// How a field of type `T` is written, where not as its type is.
pub(crate) trait Form<T> {
    fn write(value: &T, to: &mut Packer);
    fn read(from: &mut Unpacker<'_>) -> T;
}

/// Writes a number by how far it is from the last one of its kind, or by itself, whichever is less. The same again is a bit. Gives what
/// is the last one then: zero, which mostly is none at all, says nothing of the next.
pub(super) fn put_near(to: &mut Packer, value: u64, far: i64, last: u64) -> u64 {
    to.bit(value != last);
    if value == last {
        return last;
    }
    let near = zigzag(far);
    let is_near = near < value;
    to.bit(is_near);
    if is_near {
        to.leb(near);
    } else {
        to.number(value);
    }
    if value == 0 { last } else { value }
}

/// The value that was written so, and what is the last one then.
pub(super) fn get_near(from: &mut Unpacker<'_>, last: u64) -> (u64, u64) {
    if !from.bit() {
        return (last, last);
    }
    let value = if from.bit() { last.wrapping_add(unzigzag(from.leb()) as u64) } else { from.number() };
    (value, if value == 0 { last } else { value })
}

/// The same of numbers of 32 bits, which begin anew behind the last.
pub(super) fn put_near_32(to: &mut Packer, value: u32, last: u32) -> u32 {
    let far = value.wrapping_sub(last) as i32;
    put_near(to, value.into(), far.into(), last.into()) as u32
}

pub(super) fn get_near_32(from: &mut Unpacker<'_>, last: u32) -> (u32, u32) {
    let (value, last) = get_near(from, last.into());
    (value as u32, last as u32)
}

/// A number near the last such one: a time stamp of TCP.
pub(crate) struct Near;

impl Form<u32> for Near {
    fn write(value: &u32, to: &mut Packer) {
        to.known.stamp = put_near_32(to, *value, to.known.stamp);
    }

    fn read(from: &mut Unpacker<'_>) -> u32 {
        let value;
        (value, from.known.stamp) = get_near_32(from, from.known.stamp);
        value
    }
}

/// A frame.
pub(crate) struct Frame;

impl Form<u64> for Frame {
    fn write(value: &u64, to: &mut Packer) {
        let last = to.known.frame;
        to.known.frame = put_near(to, *value, value.wrapping_sub(last) as i64, last);
    }

    fn read(from: &mut Unpacker<'_>) -> u64 {
        let value;
        (value, from.known.frame) = get_near(from, from.known.frame);
        value
    }
}

impl Form<NonZeroU64> for Frame {
    fn write(value: &NonZeroU64, to: &mut Packer) {
        Frame::write(&value.get(), to);
    }

    fn read(from: &mut Unpacker<'_>) -> NonZeroU64 {
        NonZeroU64::new(Frame::read(from)).unwrap_or(NonZeroU64::MIN)
    }
}

/// A frame with its time.
impl<T: Rest> Form<(T, u64)> for Frame {
    fn write(value: &(T, u64), to: &mut Packer) {
        value.0.put(to);
        Frame::write(&value.1, to);
    }

    fn read(from: &mut Unpacker<'_>) -> (T, u64) {
        (T::get(from), Frame::read(from))
    }
}

impl<T, F: Form<T>> Form<Option<T>> for F {
    fn write(value: &Option<T>, to: &mut Packer) {
        to.bit(value.is_some());
        if let Some(value) = value {
            F::write(value, to);
        }
    }

    fn read(from: &mut Unpacker<'_>) -> Option<T> {
        from.bit().then(|| F::read(from))
    }
}

/// Numbers that grow from one to the next.
pub(crate) struct InRow;

impl<const N: usize> Form<[u32; N]> for InRow {
    fn write(value: &[u32; N], to: &mut Packer) {
        value.iter().fold(0, |last, &number| put_near_32(to, number, last));
    }

    fn read(from: &mut Unpacker<'_>) -> [u32; N] {
        let mut last = 0;
        std::array::from_fn(|_| {
            let value;
            (value, last) = get_near_32(from, last);
            value
        })
    }
}

/// Numbers of which all bits are as likely, or that are zero.
pub(crate) struct Mixed;

impl Form<u32> for Mixed {
    fn write(value: &u32, to: &mut Packer) {
        to.bit(*value != 0);
        if *value != 0 {
            to.bytes(&value.to_le_bytes());
        }
    }

    fn read(from: &mut Unpacker<'_>) -> u32 {
        if from.bit() { u32::from_le_bytes(from.bytes()) } else { 0 }
    }
}

impl Form<u16> for Mixed {
    fn write(value: &u16, to: &mut Packer) {
        to.bit(*value != 0);
        if *value != 0 {
            to.bytes(&value.to_le_bytes());
        }
    }

    fn read(from: &mut Unpacker<'_>) -> u16 {
        if from.bit() { u16::from_le_bytes(from.bytes()) } else { 0 }
    }
}

impl<T, const N: usize> Form<[T; N]> for Mixed
where
    Mixed: Form<T>,
{
    fn write(value: &[T; N], to: &mut Packer) {
        value.iter().for_each(|number| Mixed::write(number, to));
    }

    fn read(from: &mut Unpacker<'_>) -> [T; N] {
        std::array::from_fn(|_| Mixed::read(from))
    }
}
