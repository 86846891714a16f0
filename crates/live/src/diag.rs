//! Asking the kernel for TCP sockets: for all of them, which walks through its whole table, or for known ones.

use crate::LiveError;
use crate::parse::{Parsed, parse};
use crate::sample::Sample;
use crate::wire::flags::{DUMP, REQUEST};
use crate::wire::{
    INET_DIAG_CONG, INET_DIAG_INFO, INET_DIAG_SKMEMINFO, SOCK_DIAG_BY_FAMILY, TCPDIAG_GETSOCK,
};
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// A bit each, from 1.
const WANTED: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
/// All states but CLOSE (7); TIME_WAIT is 6.
const STATES: u32 = 0x1fff & !(1 << 7) & !1;
const TCP: u8 = 6;
/// The kernel fills at most so much at once.
const BUFFER: usize = 32 << 10;
/// Sockets that are asked for with one message: their answers, of less than 2 KiB with what the kernel adds,
/// have to fit into the receive buffer (`net.core.rmem_default`, 208 KiB).
const AT_ONCE: usize = 64;

/// Where sockets are asked for: the network namespace in which it was opened, whoever asks later.
#[derive(Debug)]
pub struct Diag {
    socket: OwnedFd,
    buffer: Vec<u8>,
    /// The kernel walks its table of connections once for both families.
    at_once: bool,
}

impl Diag {
    /// Of this thread's network namespace.
    pub fn open() -> Result<Diag, LiveError> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG));
        let socket = socket.map_err(|e| LiveError::Missing {
            what: "cannot ask the kernel for its sockets".into(),
            why: io::Error::from(e).to_string(),
            advice: "this takes a kernel with CONFIG_INET_DIAG",
        })?;
        Ok(Diag { socket, buffer: vec![0; BUFFER], at_once: true })
    }

    /// All TCP sockets but those in TIME_WAIT. What changes while the kernel lists them may be there twice or
    /// be missing.
    pub fn sockets(&mut self, out: &mut Vec<Sample>) -> Result<(), LiveError> {
        self.list(STATES & !(1 << 6), out)
    }

    /// Those in TIME_WAIT, too.
    pub fn all(&mut self, out: &mut Vec<Sample>) -> Result<(), LiveError> {
        self.list(STATES, out)
    }

    /// Listeners alone, which the kernel keeps in a smaller table.
    pub fn listeners(&mut self, out: &mut Vec<Sample>) -> Result<(), LiveError> {
        self.list(1 << 10, out)
    }

    /// Sockets that are known, each by itself, behind what is in `out` already. Those that are gone are missing.
    pub fn again<'a>(
        &mut self,
        known: impl Iterator<Item = &'a Sample>,
        out: &mut Vec<Sample>,
    ) -> Result<(), LiveError> {
        let mut known = known.peekable();
        let mut requests = Vec::with_capacity(AT_ONCE * LEN_OF_ONE);
        while known.peek().is_some() {
            requests.clear();
            let asked = known.by_ref().take(AT_ONCE).map(|s| requests.extend(request_of_one(s))).count();
            if let Err(why) = self.ask_for(&requests, asked, out) {
                // No answer may be left for the next question.
                while recv(&self.socket, &mut self.buffer, RecvFlags::DONTWAIT).is_ok() {}
                return Err(LiveError::Failed { what: "the kernel does not tell of a socket".into(), why });
            }
        }
        Ok(())
    }

    /// The kernel answers each request before the call that sends them returns.
    fn ask_for(&mut self, requests: &[u8], asked: usize, out: &mut Vec<Sample>) -> io::Result<()> {
        const ENOENT: i32 = 2;
        const ESTALE: i32 = 116;
        send(&self.socket, requests, SendFlags::empty())?;
        for _ in 0..asked {
            let (n, _) = recv(&self.socket, &mut self.buffer, RecvFlags::DONTWAIT)?;
            match parse(self.buffer.get(..n).unwrap_or_default(), out) {
                Parsed::More | Parsed::Refused(ENOENT | ESTALE) => {}
                Parsed::Refused(number) => return Err(io::Error::from_raw_os_error(number)),
                Parsed::Done | Parsed::Malformed => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(())
    }

    fn list(&mut self, states: u32, out: &mut Vec<Sample>) -> Result<(), LiveError> {
        out.clear();
        if self.at_once && self.dump(&request_of_all(states), out).is_err() {
            // The older request may be gone one day.
            self.at_once = false;
            out.clear();
        }
        if !self.at_once {
            for family in [AddressFamily::INET, AddressFamily::INET6] {
                self.dump(&request(family, states), out).map_err(|why| LiveError::Failed {
                    what: "the kernel does not list its sockets".into(),
                    why,
                })?;
            }
        }
        Ok(())
    }

    fn dump(&mut self, request: &[u8], out: &mut Vec<Sample>) -> io::Result<()> {
        send(&self.socket, request, SendFlags::empty())?;
        loop {
            let (n, _) = recv(&self.socket, &mut self.buffer, RecvFlags::empty())?;
            match parse(self.buffer.get(..n).unwrap_or_default(), out) {
                Parsed::More if n > 0 => {}
                Parsed::Done => return Ok(()),
                Parsed::Refused(number) => return Err(io::Error::from_raw_os_error(number)),
                Parsed::More | Parsed::Malformed => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn request(family: AddressFamily, states: u32) -> [u8; 72] {
    message(
        SOCK_DIAG_BY_FAMILY,
        DUMP,
        &[(16, &[family.as_raw() as u8, TCP, WANTED]), (20, &states.to_ne_bytes())],
    )
}

const LEN_OF_ONE: usize = 72;

/// For one socket: `struct nlmsghdr` and `struct inet_diag_req_v2` with a whole `struct inet_diag_sockid`.
fn request_of_one(s: &Sample) -> [u8; LEN_OF_ONE] {
    // An IPv4 address stands in the first of four words.
    let place = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => [ip.to_bits().to_be(), 0, 0, 0].map(u32::to_ne_bytes).concat(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let family = if s.local.ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let (local, peer) = (place(s.local.ip), place(s.peer.ip));
    message(
        SOCK_DIAG_BY_FAMILY,
        0,
        &[
            (16, &[family.as_raw() as u8, TCP, WANTED]),
            (24, &s.local.port.to_be_bytes()),
            (26, &s.peer.port.to_be_bytes()),
            (28, &local),
            (44, &peer),
            (60, &s.device.to_ne_bytes()),
            // Its lower half comes first.
            (64, &(s.cookie as u32).to_ne_bytes()),
            (68, &((s.cookie >> 32) as u32).to_ne_bytes()),
        ],
    )
}

/// `struct nlmsghdr` and the older `struct inet_diag_req`, which knows of no family: the walk through a large
/// table, which is most of what a list of few sockets costs, is done once.
fn request_of_all(states: u32) -> [u8; 76] {
    message(TCPDIAG_GETSOCK, DUMP, &[(19, &[WANTED]), (68, &states.to_ne_bytes())])
}

fn message<const N: usize>(kind: u16, flags: u16, fields: &[(usize, &[u8])]) -> [u8; N] {
    let mut out = [0; N];
    let mut put = |at: usize, bytes: &[u8]| {
        for (to, from) in out.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    };
    put(0, &u32::try_from(N).unwrap_or_default().to_ne_bytes());
    put(4, &kind.to_ne_bytes());
    put(6, &(REQUEST | flags).to_ne_bytes());
    fields.iter().for_each(|(at, bytes)| put(*at, bytes));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn own_sockets_are_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(here).unwrap();
        client.write_all(b"unread").unwrap();
        let mut samples = Vec::new();
        Diag::open().unwrap().sockets(&mut samples).unwrap();
        // Family by family it is the same list.
        let mut again = Vec::new();
        let mut diag = Diag::open().unwrap();
        diag.at_once = false;
        diag.sockets(&mut again).unwrap();
        let is_own = |s: &&Sample| s.local.port == here.port() || s.peer.port == here.port();
        let own = |all: &[Sample]| {
            let mut own: Vec<_> = all.iter().filter(is_own).map(|s| (s.cookie, s.local, s.inode)).collect();
            own.sort_unstable();
            own
        };
        assert_eq!(own(&samples), own(&again));
        let of = |local: u16, peer: u16| {
            samples.iter().find(|s| s.local.port == local && s.peer.port == peer).unwrap()
        };
        let port = client.local_addr().unwrap().port();
        let (listening, waiting, sent) = (of(here.port(), 0), of(here.port(), port), of(port, here.port()));
        assert_eq!((listening.rqueue, listening.state), (1, crate::State::Listen));
        // Nobody has accepted it, so that it is no file yet.
        assert_eq!((waiting.inode, waiting.rqueue), (0, 6));
        assert_eq!(sent.info.map(|i| i.bytes_acked), Some(7));
        assert!(
            sent.inode != 0
                && sent.memory.is_some_and(|m| m.sndbuf > 0)
                && !sent.congestion.name().is_empty()
        );
    }

    /// Over IPv4, over IPv6, and over IPv4 with a socket of IPv6: each is found again by itself, and is
    /// missing once it is gone.
    #[test]
    fn a_known_socket_is_asked_for_by_itself() {
        for (at, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            // Without IPv6 there is nothing to ask.
            let Ok(listener) = TcpListener::bind(at) else { continue };
            let port = listener.local_addr().unwrap().port();
            let mut client = TcpStream::connect((to, port)).unwrap();
            client.write_all(b"unread").unwrap();
            let (mut all, mut again, mut diag) = (Vec::new(), Vec::new(), Diag::open().unwrap());
            diag.sockets(&mut all).unwrap();
            all.retain(|s| s.peer.port == port || (s.local.port == port && s.state != crate::State::Listen));
            assert_eq!(all.len(), 2, "{all:#?}");
            diag.again(all.iter(), &mut again).unwrap();
            let name = |s: &Sample| (s.cookie, s.local, s.peer, s.inode, s.rqueue, s.memory.is_some());
            assert_eq!(all.iter().map(name).collect::<Vec<_>>(), again.iter().map(name).collect::<Vec<_>>());
            // Another socket at the same ports is another one.
            let other: Vec<Sample> =
                all.iter().map(|s| Sample { cookie: s.cookie + 1, ..s.clone() }).collect();
            again.clear();
            diag.again(other.iter(), &mut again).unwrap();
            assert!(again.is_empty(), "{again:#?}");
            diag.listeners(&mut again).unwrap();
            assert!(again.iter().any(|s| s.local.port == port));
            assert!(again.iter().all(|s| s.state == crate::State::Listen), "{again:#?}");
            let first = client.local_addr().unwrap().port();
            drop((client, listener));
            again.clear();
            diag.again(all.iter().filter(|s| s.local.port == first), &mut again).unwrap();
            assert!(again.iter().all(|s| s.state != crate::State::Established), "{again:#?}");
        }
    }
}
