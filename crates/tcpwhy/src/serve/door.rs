//! Who is let in, before anybody knows whether they may ask: connections whose request has not come yet. They
//! are few, and where there are too many the oldest of whoever holds most gives way, so that nobody can shut
//! others out by waiting.

use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Connections whose request has not come yet: of one address, and in all.
const OF_ONE: usize = 32;
const IN_ALL: usize = 96;
/// Requests that are answered at once; a browser opens six.
const ANSWERS: usize = 32;
/// Event streams at once, which stay for as long as a page is open.
const STREAMS: usize = 16;

/// Counts those that wait and those that are answered.
#[derive(Default)]
pub(super) struct Door {
    waiting: Mutex<Vec<(u64, IpAddr, TcpStream)>>,
    next: AtomicU64,
    answers: AtomicUsize,
    streams: AtomicUsize,
}

/// A connection whose request is awaited.
pub(super) struct Waiting<'a> {
    door: &'a Door,
    id: u64,
}

/// A place among those that are answered.
pub(super) struct Place<'a>(&'a AtomicUsize);

impl Door {
    /// Lets a connection wait for its request.
    pub(super) fn enter(&self, stream: &TcpStream) -> std::io::Result<Waiting<'_>> {
        let (peer, copy) = (household(stream.peer_addr()?.ip()), stream.try_clone()?);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push((id, peer, copy));
        let count = |who: IpAddr| waiting.iter().filter(|w| w.1 == who).count();
        let too_many = if count(peer) > OF_ONE {
            Some(peer)
        } else if waiting.len() > IN_ALL {
            waiting.iter().map(|w| w.1).max_by_key(|&who| count(who))
        } else {
            None
        };
        if let Some(oldest) = too_many.and_then(|who| waiting.iter().position(|w| w.1 == who)) {
            // Its thread sees the end of the connection and goes.
            let _ = waiting.remove(oldest).2.shutdown(Shutdown::Both);
        }
        Ok(Waiting { door: self, id })
    }

    /// A place for an answer, if there is one.
    pub(super) fn answer(&self) -> Option<Place<'_>> {
        Place::of(&self.answers, ANSWERS)
    }

    /// A place for an event stream, if there is one.
    pub(super) fn stream(&self) -> Option<Place<'_>> {
        Place::of(&self.streams, STREAMS)
    }

    /// Whether somebody has the first page open.
    pub(super) fn has_streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed) > 0
    }

    /// Whether somebody is being answered.
    pub(super) fn is_busy(&self) -> bool {
        self.answers.load(Ordering::Relaxed) + self.streams.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.door.waiting.lock().unwrap_or_else(PoisonError::into_inner).retain(|w| w.0 != self.id);
    }
}

impl<'a> Place<'a> {
    pub(super) fn of(taken: &'a AtomicUsize, most: usize) -> Option<Place<'a>> {
        let place = Place(taken);
        if taken.fetch_add(1, Ordering::Relaxed) < most { Some(place) } else { None }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One address for all that one user has: a network of IPv6 has 2^64.
pub(super) fn household(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpListener;

    #[test]
    fn the_oldest_gives_way() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let door = Door::default();
        let pair = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let mut all: Vec<_> = (0..OF_ONE + 2).map(|_| pair()).collect();
        let inside: Vec<_> = all.iter().map(|(_, stream)| door.enter(stream).unwrap()).collect();
        for (client, _) in &mut all[..2] {
            assert_eq!(client.read(&mut [0]).unwrap(), 0, "closed");
        }
        let (client, _) = &mut all[2];
        client.set_nonblocking(true).unwrap();
        assert!(client.read(&mut [0]).is_err(), "open");
        assert_eq!(door.waiting.lock().unwrap().len(), OF_ONE);
        drop(inside);
        assert!(door.waiting.lock().unwrap().is_empty());
    }

    #[test]
    fn places_come_back() {
        let door = Door::default();
        let streams: Vec<_> = (0..STREAMS).filter_map(|_| door.stream()).collect();
        assert!(streams.len() == STREAMS && door.stream().is_none() && door.answer().is_some());
        drop(streams);
        assert!(door.stream().is_some() && !door.is_busy());
    }

    #[test]
    fn one_household() {
        let of = |text: &str| household(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3::4"), "2001:db8:1:2::");
        assert_eq!((of("::ffff:192.0.2.1"), of("192.0.2.1")), ("192.0.2.1".into(), "192.0.2.1".into()));
    }
}
