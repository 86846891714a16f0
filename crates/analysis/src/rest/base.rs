//! Types of which all crates know.

use super::forms::{Form, get_near_32, put_near_32};
use super::{Packer, Rest, Unpacker, at_rest, unzigzag, zigzag};
use std::net::IpAddr;
use tcpwhy_base::protocol::BEGINNINGS;
use tcpwhy_base::{
    CAUSES, Cause, End, Endpoint, Ends, Held, Nanos, Program, Seq, Side, Source, Timer, Told, Witness,
};

/// A moment is told by how far it is from the last one, a length of time by itself: whichever is less. Most clocks of captures tick by
/// the microsecond. The ends of time, which stand for none, are zero of a form that no zero has.
impl Rest for Nanos {
    fn put(&self, to: &mut Packer) {
        let Nanos(value) = *self;
        to.bit(value != 0);
        if value == 0 {
            return;
        }
        if value == i64::MIN || value == i64::MAX {
            to.bit(value == i64::MAX);
            to.bit(true);
            to.leb(0);
            return;
        }
        let far = value.wrapping_sub(to.known.time);
        let near = far.unsigned_abs() < value.unsigned_abs();
        let number = if near { far } else { value };
        let whole = number != 0 && number % 1_000 == 0;
        to.bit(near);
        to.bit(whole);
        to.leb(zigzag(if whole { number / 1_000 } else { number }));
        if near {
            to.known.time = value;
        }
    }

    fn get(from: &mut Unpacker<'_>) -> Nanos {
        if !from.bit() {
            return Nanos::ZERO;
        }
        let (near, whole) = (from.bit(), from.bit());
        let number = unzigzag(from.leb());
        if whole && number == 0 {
            return Nanos(if near { i64::MAX } else { i64::MIN });
        }
        let number = if whole { number.wrapping_mul(1_000) } else { number };
        if !near {
            return Nanos(number);
        }
        from.known.time = from.known.time.wrapping_add(number);
        Nanos(from.known.time)
    }
}

impl Rest for Seq {
    fn put(&self, to: &mut Packer) {
        to.known.seq = put_near_32(to, self.0, to.known.seq);
    }

    fn get(from: &mut Unpacker<'_>) -> Seq {
        let value;
        (value, from.known.seq) = get_near_32(from, from.known.seq);
        Seq(value)
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
        match self {
            IpAddr::V4(ip) => to.bytes(&ip.octets()),
            IpAddr::V6(ip) => to.bytes(&ip.octets()),
        }
    }

    fn get(from: &mut Unpacker<'_>) -> IpAddr {
        if from.bit() { from.bytes::<16>().into() } else { from.bytes::<4>().into() }
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
