//! Messages of netlink: what all of its families have in common (`linux/netlink.h`), from bytes.

use crate::wire::flags::{DUMP, REQUEST};
use crate::wire::{HEADER, NLMSG_DONE, NLMSG_ERROR, u16_at, u32_at};
use rustix::net::netlink::GENERIC;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::io;
use std::os::fd::OwnedFd;

/// `NLA_TYPE_MASK`: without the bits for nested and byte order.
const KIND: u16 = 0x3fff;
/// More than the kernel puts into one answer.
const BUFFER: usize = 64 << 10;

/// A socket to one of its families, of the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Netlink(OwnedFd);

impl Netlink {
    pub(crate) fn route() -> io::Result<Netlink> {
        Netlink::open(None)
    }

    pub(crate) fn generic() -> io::Result<Netlink> {
        Netlink::open(Some(GENERIC))
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Netlink> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        Ok(Netlink(socket))
    }

    /// Asks, and gives the body of each message of the answer, without its header.
    pub(crate) fn ask(
        &self,
        kind: u16,
        dump: bool,
        body: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut request = Vec::with_capacity(HEADER + body.len());
        request.extend(u32::try_from(HEADER + body.len()).unwrap_or_default().to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend((REQUEST | if dump { DUMP } else { 0 }).to_ne_bytes());
        request.extend([0; 8]);
        request.extend(body);
        send(&self.0, &request, SendFlags::empty())?;
        let mut buffer = vec![0; BUFFER];
        loop {
            let (n, _) = recv(&self.0, &mut buffer, RecvFlags::empty())?;
            let mut rest = buffer.get(..n).unwrap_or_default();
            while let (Some(len), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
                let body = rest.get(HEADER..len as usize).ok_or(io::ErrorKind::InvalidData)?;
                match kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => match u32_at(body, 0) {
                        Some(0) => return Ok(()),
                        n => {
                            return Err(io::Error::from_raw_os_error((n.unwrap_or(0) as i32).wrapping_neg()));
                        }
                    },
                    _ => each(body),
                }
                rest = rest.get((len as usize).next_multiple_of(4)..).unwrap_or_default();
            }
            if !dump || n == 0 {
                return Ok(());
            }
        }
    }
}

/// Attributes: what each is, and its bytes.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & KIND;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// An attribute.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(4 + value.len()).unwrap_or_default();
    let mut out = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the bytes are: no panic, and an end.
    #[test]
    fn damaged_attributes_end() {
        let whole = [attribute(1, b"ab"), attribute(0x8002, b"")].concat();
        assert_eq!(attributes(&whole).collect::<Vec<_>>(), [(1, &b"ab"[..]), (2, &b""[..])]);
        for cut in 0..whole.len() {
            assert!(attributes(&whole[..cut]).count() <= 2);
        }
        for short in [[0, 0, 1, 0], [3, 0, 1, 0], [255, 255, 1, 0]] {
            assert_eq!(attributes(&short).count(), 0);
        }
    }
}
