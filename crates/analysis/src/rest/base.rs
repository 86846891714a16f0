//! Types of which all crates know.

use super::forms::{Form, Number};
use super::{KNOWN, Known, Packer, Rest, Unpacker, at_rest, unzigzag, zigzag};
use std::net::IpAddr;
use tcpwhy_base::protocol::BEGINNINGS;
use tcpwhy_base::{
    CAUSES, Cause, End, Endpoint, Ends, Held, Nanos, Program, Seq, Side, Source, Timer, Told, Witness,
};

/// One that was said before is told by its place. A moment is told by how far it is from the last one, a
/// length of time by itself: whichever is less. Most clocks of captures tick by the microsecond. The ends of
/// time, which stand for none, are one of those that are whole and less than that.
impl Rest for Nanos {
    #[inline]
    fn put(&self, to: &mut Packer) {
        if self.0 == 0 { to.bit(false) } else { put_time(self.0, to) }
    }

    #[inline]
    fn get(from: &mut Unpacker<'_>) -> Nanos {
        if from.bit() { Nanos(get_time(from)) } else { Nanos::ZERO }
    }
}

/// What follows the bit that it is not zero: whether it was said; and if not, whether it is near the last
/// moment, and in microseconds.
const SAID: u64 = 1;
const NEAR: u64 = 1 << 1;
const MICROS: u64 = 1 << 2;

fn put_time(value: i64, to: &mut Packer) {
    let place = Known::place(value);
    if to.known.times[place] == value {
        to.bits(1 | (SAID | (place as u64) << 1) << 1, 2 + KNOWN);
        return;
    }
    to.known.times[place] = value;
    let far = value.wrapping_sub(to.known.time);
    let (number, bits) = match value {
        i64::MIN => (0, MICROS),
        i64::MAX => (0, MICROS | NEAR),
        _ if far.unsigned_abs() < value.unsigned_abs() => (far, NEAR),
        _ => (value, 0),
    };
    if bits == NEAR {
        to.known.time = value;
    }
    let is_whole = number != 0 && number % 1_000 == 0;
    let (number, bits) = if is_whole { (number / 1_000, bits | MICROS) } else { (number, bits) };
    to.bits(1 | bits << 1, 4);
    to.some(zigzag(number) + 1, u64::BITS);
}

fn get_time(from: &mut Unpacker<'_>) -> i64 {
    if from.bit() {
        return from.known.times[from.few(KNOWN) as usize];
    }
    let (near, micros) = (from.bit(), from.bit());
    let number = unzigzag(from.some(u64::BITS) - 1);
    let value = match (near, micros) {
        (false, true) if number == 0 => i64::MIN,
        (true, true) if number == 0 => i64::MAX,
        (false, true) => number.wrapping_mul(1_000),
        (false, false) => number,
        (true, _) => {
            let far = if micros { number.wrapping_mul(1_000) } else { number };
            from.known.time = from.known.time.wrapping_add(far);
            from.known.time
        }
    };
    from.known.times[Known::place(value)] = value;
    value
}

impl Rest for Seq {
    #[inline]
    fn put(&self, to: &mut Packer) {
        Number::write(self, to);
    }

    #[inline]
    fn get(from: &mut Unpacker<'_>) -> Seq {
        Number::read(from)
    }
}

impl<T: Rest> Rest for Ends<T> {
    fn put(&self, to: &mut Packer) {
        let Ends { client, server } = self;
        client.put(to);
        server.put(to);
    }

    fn get(from: &mut Unpacker<'_>) -> Ends<T> {
        Ends { client: T::get(from), server: T::get(from) }
    }
}

impl<T, F: Form<T>> Form<Ends<T>> for F {
    fn write(value: &Ends<T>, to: &mut Packer) {
        let Ends { client, server } = value;
        F::write(client, to);
        F::write(server, to);
    }

    fn read(from: &mut Unpacker<'_>) -> Ends<T> {
        Ends { client: F::read(from), server: F::read(from) }
    }
}

impl Rest for Cause {
    fn put(&self, to: &mut Packer) {
        (*self as u8).put(to);
    }

    fn get(from: &mut Unpacker<'_>) -> Cause {
        let number = usize::from(u8::get(from));
        CAUSES.get(number).unwrap_or(&CAUSES[0]).cause
    }
}

impl Rest for Program {
    fn put(&self, to: &mut Packer) {
        (*self as u8).put(to);
    }

    fn get(from: &mut Unpacker<'_>) -> Program {
        let number = usize::from(u8::get(from));
        Program::ALL.get(number).copied().unwrap_or(Program::ALL[0])
    }
}

impl Rest for IpAddr {
    fn put(&self, to: &mut Packer) {
        to.bit(self.is_ipv6());
        let mut word = |bytes: &[u8; 4]| to.bits(u32::from_be_bytes(*bytes).into(), u32::BITS);
        match self {
            IpAddr::V4(ip) => word(&ip.octets()),
            IpAddr::V6(ip) => ip.octets().as_chunks().0.iter().for_each(word),
        }
    }

    fn get(from: &mut Unpacker<'_>) -> IpAddr {
        let is_v6 = from.bit();
        let mut word = || from.few(u32::BITS) as u32;
        if is_v6 {
            let words = [(); 4].map(|()| u128::from(word()));
            words.into_iter().fold(0, |bits, word| bits << 32 | word).to_be_bytes().into()
        } else {
            word().to_be_bytes().into()
        }
    }
}

/// A protocol: TLS, or one that is told by first bytes.
pub(crate) struct Protocol;

fn protocols() -> impl Iterator<Item = &'static str> {
    std::iter::once("tls").chain(BEGINNINGS.iter().map(|row| row.1))
}

impl Form<&'static str> for Protocol {
    fn write(value: &&'static str, to: &mut Packer) {
        to.one_of(protocols(), value);
    }

    fn read(from: &mut Unpacker<'_>) -> &'static str {
        from.one_of(protocols()).unwrap_or("tls")
    }
}

at_rest! { Endpoint { ip, port } }
at_rest! { enum End { Client, Server } }
at_rest! { enum Side { Client, Server, Network } }
at_rest! { enum Source { Inferred, Kernel } }
at_rest! { enum Told { FirstBytes, Port } }
at_rest! { enum Timer { Retransmission, Probe, DelayedAck } }
at_rest! { enum Held { 0 => Nothing, 1 => CongestionWindow { slow_start }, 2 => Window, 3 => Other } }
at_rest! { Witness { written, room, nodelay, corked, timer, cwnd } }
