//! Asking the kernel for all TCP sockets.

use crate::LiveError;
use crate::parse::{Parsed, parse};
use crate::sample::Sample;
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// `INET_DIAG_INFO`, `_CONG` and `_SKMEMINFO`, a bit each, from 1.
const WANTED: u8 = 1 << (2 - 1) | 1 << (4 - 1) | 1 << (7 - 1);
/// All states but TIME_WAIT (6) and CLOSE (7).
const STATES: u32 = 0x1fff & !(1 << 6) & !(1 << 7) & !1;
const TCP: u8 = 6;
/// The kernel fills at most so much at once.
const BUFFER: usize = 32 << 10;

/// Where sockets are asked for: the network namespace in which it was opened.
#[derive(Debug)]
pub struct Diag {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Diag {
    /// Of this thread's network namespace, or of the one behind a file such as `/proc/PID/ns/net`.
    pub fn open(namespace: Option<&Path>) -> Result<Diag, LiveError> {
        let socket = match namespace {
            None => socket(),
            // A socket belongs to the namespace in which it was made; the thread that makes it is gone afterwards.
            Some(path) => {
                let namespace = File::open(path).map_err(|why| LiveError::Failed {
                    what: format!("cannot open {}", path.display()),
                    why,
                })?;
                let made = std::thread::scope(|scope| {
                    let thread = scope.spawn(|| {
                        let kind = Some(LinkNameSpaceType::Network);
                        move_into_link_name_space(namespace.as_fd(), kind).map_err(|e| (true, e))?;
                        socket().map_err(|e| (false, e))
                    });
                    thread.join()
                });
                match made {
                    Ok(Ok(socket)) => Ok(socket),
                    Ok(Err((true, e))) => {
                        return Err(LiveError::Missing {
                            what: format!("cannot enter the network namespace {}", path.display()),
                            why: io::Error::from(e).to_string(),
                            advice: "this takes CAP_SYS_ADMIN: run it as root",
                        });
                    }
                    Ok(Err((false, e))) => Err(e),
                    Err(_) => Err(rustix::io::Errno::NOMEM),
                }
            }
        };
        let socket = socket.map_err(|e| LiveError::Missing {
            what: "cannot ask the kernel for its sockets".into(),
            why: io::Error::from(e).to_string(),
            advice: "this takes a kernel with CONFIG_INET_DIAG",
        })?;
        Ok(Diag { socket, buffer: vec![0; BUFFER] })
    }

    /// All TCP sockets but those in TIME_WAIT. What changes while the kernel lists them may be there twice or be missing.
    pub fn sockets(&mut self, out: &mut Vec<Sample>) -> Result<(), LiveError> {
        out.clear();
        for family in [AddressFamily::INET, AddressFamily::INET6] {
            self.dump(family, out).map_err(|why| LiveError::Failed {
                what: "the kernel does not list its sockets".into(),
                why,
            })?;
        }
        Ok(())
    }

    fn dump(&mut self, family: AddressFamily, out: &mut Vec<Sample>) -> io::Result<()> {
        send(&self.socket, &request(family), SendFlags::empty())?;
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

fn socket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn request(family: AddressFamily) -> [u8; 72] {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const REQUEST_AND_DUMP: u16 = 0x1 | 0x100 | 0x200;
    let mut out = [0; 72];
    let mut put = |at: usize, bytes: &[u8]| {
        for (to, from) in out.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    };
    put(0, &72u32.to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST_AND_DUMP.to_ne_bytes());
    put(16, &[family.as_raw() as u8, TCP, WANTED]);
    put(20, &STATES.to_ne_bytes());
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
        Diag::open(None).unwrap().sockets(&mut samples).unwrap();
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

    #[test]
    fn what_is_no_namespace_is_refused() {
        let error = Diag::open(Some(Path::new("/dev/null"))).unwrap_err().to_string();
        assert!(error.contains("/dev/null"), "{error}");
        assert!(Diag::open(Some(Path::new("/nowhere"))).is_err());
    }
}
