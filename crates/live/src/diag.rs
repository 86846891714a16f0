//! Asking the kernel for all TCP sockets.

use crate::LiveError;
use crate::parse::{Parsed, parse};
use crate::sample::Sample;
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::io;
use std::os::fd::OwnedFd;

/// `INET_DIAG_INFO`, `_CONG` and `_SKMEMINFO`, a bit each, from 1.
const WANTED: u8 = 1 << (2 - 1) | 1 << (4 - 1) | 1 << (7 - 1);
/// All states but CLOSE (7); TIME_WAIT is 6.
const STATES: u32 = 0x1fff & !(1 << 7) & !1;
const TCP: u8 = 6;
/// The kernel fills at most so much at once.
const BUFFER: usize = 32 << 10;

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

    /// All TCP sockets but those in TIME_WAIT. What changes while the kernel lists them may be there twice or be missing.
    pub fn sockets(&mut self, out: &mut Vec<Sample>) -> Result<(), LiveError> {
        self.list(STATES & !(1 << 6), out)
    }

    /// Those in TIME_WAIT, too.
    pub fn all(&mut self, out: &mut Vec<Sample>) -> Result<(), LiveError> {
        self.list(STATES, out)
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
        let mut interrupted = false;
        loop {
            let (n, _) = recv(&self.socket, &mut self.buffer, RecvFlags::empty())?;
            match parse(self.buffer.get(..n).unwrap_or_default(), out, &mut interrupted) {
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
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    let fields: [(usize, &[u8]); 2] =
        [(16, &[family.as_raw() as u8, TCP, WANTED]), (20, &states.to_ne_bytes())];
    message(SOCK_DIAG_BY_FAMILY, &fields)
}

/// `struct nlmsghdr` and the older `struct inet_diag_req`, which knows of no family: the walk through a large table, which is
/// most of what a list of few sockets costs, is done once.
fn request_of_all(states: u32) -> [u8; 76] {
    const TCPDIAG_GETSOCK: u16 = 18;
    message(TCPDIAG_GETSOCK, &[(19, &[WANTED]), (68, &states.to_ne_bytes())])
}

fn message<const N: usize>(kind: u16, fields: &[(usize, &[u8])]) -> [u8; N] {
    const REQUEST_AND_DUMP: u16 = 0x1 | 0x100 | 0x200;
    let mut out = [0; N];
    let mut put = |at: usize, bytes: &[u8]| {
        for (to, from) in out.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    };
    put(0, &u32::try_from(N).unwrap_or_default().to_ne_bytes());
    put(4, &kind.to_ne_bytes());
    put(6, &REQUEST_AND_DUMP.to_ne_bytes());
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
}
