//! Forms in which some fields are shorter than other values of their type.

use super::{Packer, Rest, Unpacker, unzigzag, zigzag};
use std::num::NonZeroU64;
use tcpwhy_base::{Nanos, Seq};

/// How a field of type `T` is written, where not as its type is.
pub(crate) trait Form<T> {
    fn write(value: &T, to: &mut Packer);
    fn read(from: &mut Unpacker<'_>) -> T;
}

/// A number that mostly is near the last one of its kind: it is told by how far it is from that, or by
/// itself, whichever is less. The same again is a bit. Zero, which mostly is none at all, says nothing of the
/// next.
pub(crate) struct Like<const KIND: usize>;

/// How many kinds there are.
pub(super) const KINDS: usize = 8;

/// A sequence number.
pub(super) type Number = Like<0>;
/// The right edge of a window.
pub(crate) type Edge = Like<1>;
/// A frame.
pub(crate) type Frame = Like<2>;
/// A time stamp of TCP.
pub(crate) type Near = Like<3>;
/// A window, as a receiver offers it.
pub(crate) type Size = Like<4>;
/// A window, as a sender has it.
pub(crate) type Flight = Like<5>;
/// The id of a connection.
pub(crate) type Whose = Like<6>;
/// A place in a histogram.
pub(crate) type Place = Like<7>;

#[inline]
fn put_like(to: &mut Packer, kind: usize, value: u64, far: i64, most: u32) {
    let last = &mut to.known.last[kind];
    if value == *last {
        to.bit(false);
        return;
    }
    if value != 0 {
        *last = value;
    }
    let near = zigzag(far);
    if near != 0 && near < value {
        to.bits(0b11, 2);
        to.some(near, most);
    } else {
        to.bits(0b01, 2);
        to.number(value, most);
    }
}

#[inline]
fn get_like(from: &mut Unpacker<'_>, kind: usize, most: u32) -> u64 {
    let last = from.known.last[kind];
    if !from.bit() {
        return last;
    }
    let value = if from.bit() {
        last.wrapping_add(unzigzag(from.some(most)) as u64) & (u64::MAX >> (64 - most))
    } else {
        from.number(most)
    };
    if value != 0 {
        from.known.last[kind] = value;
    }
    value
}

impl<const KIND: usize> Form<u32> for Like<KIND> {
    #[inline]
    fn write(value: &u32, to: &mut Packer) {
        // They begin anew behind the last.
        let far = value.wrapping_sub(to.known.last[KIND] as u32) as i32;
        put_like(to, KIND, u64::from(*value), far.into(), u32::BITS);
    }

    #[inline]
    fn read(from: &mut Unpacker<'_>) -> u32 {
        get_like(from, KIND, u32::BITS) as u32
    }
}

impl<const KIND: usize> Form<u64> for Like<KIND> {
    #[inline]
    fn write(value: &u64, to: &mut Packer) {
        let far = value.wrapping_sub(to.known.last[KIND]) as i64;
        put_like(to, KIND, *value, far, u64::BITS);
    }

    #[inline]
    fn read(from: &mut Unpacker<'_>) -> u64 {
        get_like(from, KIND, u64::BITS)
    }
}

impl<const KIND: usize> Form<u16> for Like<KIND> {
    #[inline]
    fn write(value: &u16, to: &mut Packer) {
        Self::write(&u32::from(*value), to);
    }

    #[inline]
    fn read(from: &mut Unpacker<'_>) -> u16 {
        let value: u32 = Self::read(from);
        value as u16
    }
}

impl<const KIND: usize> Form<Seq> for Like<KIND> {
    #[inline]
    fn write(value: &Seq, to: &mut Packer) {
        Self::write(&value.0, to);
    }

    #[inline]
    fn read(from: &mut Unpacker<'_>) -> Seq {
        Seq(Self::read(from))
    }
}

impl<const KIND: usize> Form<NonZeroU64> for Like<KIND> {
    fn write(value: &NonZeroU64, to: &mut Packer) {
        Self::write(&value.get(), to);
    }

    fn read(from: &mut Unpacker<'_>) -> NonZeroU64 {
        NonZeroU64::new(Self::read(from)).unwrap_or(NonZeroU64::MIN)
    }
}

/// How much there is of it in some places.
impl Form<Vec<(u16, u32)>> for Place {
    fn write(value: &Vec<(u16, u32)>, to: &mut Packer) {
        value.len().put(to);
        for (place, count) in value {
            Place::write(place, to);
            count.put(to);
        }
    }

    fn read(from: &mut Unpacker<'_>) -> Vec<(u16, u32)> {
        let len = from.len();
        (0..len).map(|_| (Place::read(from), u32::get(from))).collect()
    }
}

/// How much there is of it in each place, mostly nothing.
impl<const N: usize> Form<Box<[u16; N]>> for Place {
    fn write(value: &Box<[u16; N]>, to: &mut Packer) {
        let some = || value.iter().enumerate().filter(|(_, count)| **count != 0);
        some().count().put(to);
        for (place, count) in some() {
            Place::write(&(place as u16), to);
            count.put(to);
        }
    }

    fn read(from: &mut Unpacker<'_>) -> Box<[u16; N]> {
        let mut value = Box::new([0; N]);
        for _ in 0..from.len() {
            let place: u16 = Place::read(from);
            let count = u16::get(from);
            value.get_mut(usize::from(place)).into_iter().for_each(|known| *known = count);
        }
        value
    }
}

/// A frame with its time.
impl Form<(Nanos, u64)> for Frame {
    fn write(value: &(Nanos, u64), to: &mut Packer) {
        value.0.put(to);
        Frame::write(&value.1, to);
    }

    fn read(from: &mut Unpacker<'_>) -> (Nanos, u64) {
        (Nanos::get(from), Frame::read(from))
    }
}

impl<T, F: Form<T>> Form<Option<T>> for F {
    #[inline]
    fn write(value: &Option<T>, to: &mut Packer) {
        to.bit(value.is_some());
        if let Some(value) = value {
            F::write(value, to);
        }
    }

    #[inline]
    fn read(from: &mut Unpacker<'_>) -> Option<T> {
        from.bit().then(|| F::read(from))
    }
}

/// A length of time of which only its number is kept.
pub(crate) struct Time;

impl Form<i64> for Time {
    fn write(value: &i64, to: &mut Packer) {
        Nanos(*value).put(to);
    }

    fn read(from: &mut Unpacker<'_>) -> i64 {
        Nanos::get(from).0
    }
}

/// Numbers that grow from one to the next.
pub(crate) struct InRow;

impl<const N: usize> Form<[u32; N]> for InRow {
    fn write(value: &[u32; N], to: &mut Packer) {
        let mut last = 0;
        for number in value {
            let far = number.wrapping_sub(last) as i32;
            to.number(zigzag(far.into()), u32::BITS);
            last = *number;
        }
    }

    fn read(from: &mut Unpacker<'_>) -> [u32; N] {
        let mut last = 0_u32;
        std::array::from_fn(|_| {
            last = last.wrapping_add(unzigzag(from.number(u32::BITS)) as u32);
            last
        })
    }
}

/// Numbers of which all bits are as likely, or that are zero.
pub(crate) struct Mixed;

macro_rules! mixed {
    ($($int:ty),*) => { $(
        impl Form<$int> for Mixed {
            #[inline]
            fn write(value: &$int, to: &mut Packer) {
                to.bit(*value != 0);
                if *value != 0 {
                    to.bits((*value).into(), <$int>::BITS);
                }
            }

            #[inline]
            fn read(from: &mut Unpacker<'_>) -> $int {
                if from.bit() { from.bits(<$int>::BITS) as $int } else { 0 }
            }
        }
    )* };
}

mixed!(u16, u32, u64);

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
