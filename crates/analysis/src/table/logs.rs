//! Rooms in which packets of a connection wait: small ones as long as it is young, since most never have more packets, then large ones.

use super::waiting::{Packets, Place, take};
use crate::fetch::fetch;
use tcpwhy_base::{Nanos, Segment};

/// Places of a small room and of a large one. The first of each tells when the packet behind it passed.
const SMALL: usize = 16;
const LARGE: usize = 64;
/// Places of a large room in which packets wait. A plain one takes one of them, any other two.
pub(super) const MOST: usize = LARGE - 1;
/// Rooms that are made, and given back, together.
const TOGETHER: usize = u32::BITS as usize;
/// So many pieces with nothing in them keep their memory.
const SPARE: usize = 8;

/// The room in which packets of a connection wait, if any do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Log(u32);

impl Log {
    pub(super) const NONE: Log = Log(u32::MAX);
    const IS_LARGE: u32 = 1 << 31;

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self == Log::NONE
    }

    #[inline]
    fn is_large(self) -> bool {
        self.0 & Log::IS_LARGE != 0
    }

    #[inline]
    fn number(self) -> usize {
        (self.0 & !Log::IS_LARGE) as usize
    }
}

/// Rooms of one size, which never move.
#[derive(Debug, Default)]
struct Rooms<const N: usize> {
    pieces: Vec<Piece<N>>,
    /// Pieces that have a free room.
    open: Vec<u32>,
}

#[derive(Debug)]
struct Piece<const N: usize> {
    /// None where all of them are free and the memory was given back.
    rooms: Box<[[Place; N]]>,
    /// A bit for each that is free.
    free: u32,
}

impl<const N: usize> Rooms<N> {
    /// A free one.
    #[inline]
    fn take(&mut self) -> u32 {
        let number = match self.open.last() {
            Some(&number) => number,
            None => self.another(),
        };
        let piece = &mut self.pieces[number as usize];
        if piece.rooms.is_empty() {
            piece.make();
        }
        let room = piece.free.trailing_zeros();
        piece.free &= piece.free.wrapping_sub(1);
        if piece.free == 0 {
            self.open.pop();
        }
        number * TOGETHER as u32 + room
    }

    #[cold]
    fn another(&mut self) -> u32 {
        let number = self.pieces.len() as u32;
        self.pieces.push(Piece { rooms: Box::default(), free: u32::MAX });
        self.open.push(number);
        number
    }

    /// Is free again.
    #[inline]
    fn give_back(&mut self, number: usize) {
        let Some(piece) = self.pieces.get_mut(number / TOGETHER) else { return };
        if piece.free == 0 {
            self.open.push((number / TOGETHER) as u32);
        }
        piece.free |= 1 << (number % TOGETHER);
        // Whoever ends all connections needs the memory for what becomes of them.
        if piece.free == u32::MAX && self.open.len() > SPARE {
            piece.rooms = Box::default();
        }
    }

    #[inline]
    fn get(&self, number: usize) -> &[Place] {
        let piece = self.pieces.get(number / TOGETHER);
        piece.and_then(|piece| piece.rooms.get(number % TOGETHER)).map_or(&[], |room| room)
    }

    #[inline]
    fn get_mut(&mut self, number: usize) -> &mut [Place] {
        let piece = self.pieces.get_mut(number / TOGETHER);
        piece.and_then(|piece| piece.rooms.get_mut(number % TOGETHER)).map_or(&mut [], |room| room)
    }
}

impl<const N: usize> Piece<N> {
    #[cold]
    fn make(&mut self) {
        self.rooms = vec![[Place::NONE; N]; TOGETHER].into_boxed_slice();
    }
}

/// All rooms.
#[derive(Debug, Default)]
pub(super) struct Logs {
    small: Rooms<SMALL>,
    large: Rooms<LARGE>,
}

impl Logs {
    /// A packet waits, if all of it can be kept and there is room: behind those that take so many places, the latest of which passed then (the first one is
    /// that itself). How many it takes; none: it does not wait. A room is made where there is none.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        log: &mut Log,
        behind: usize,
        latest: Nanos,
        segment: &Segment,
        from_client: bool,
    ) -> u8 {
        let places = match *log {
            log if log.is_large() && !log.is_none() => self.large.get_mut(log.number()),
            Log::NONE => return self.take_first(log, latest, segment, from_client),
            log => self.small.get_mut(log.number()),
        };
        match take(places, behind, latest, segment, from_client) {
            0 if !log.is_large() && behind + 2 >= SMALL - 1 => {
                self.enlarge(log);
                take(self.large.get_mut(log.number()), behind, latest, segment, from_client)
            }
            n => n,
        }
    }

    /// The first one of a young connection.
    #[inline(never)]
    fn take_first(&mut self, log: &mut Log, latest: Nanos, segment: &Segment, from_client: bool) -> u8 {
        *log = Log(self.small.take());
        take(self.small.get_mut(log.number()), 0, latest, segment, from_client)
    }

    /// Moves into a large room.
    #[cold]
    fn enlarge(&mut self, log: &mut Log) {
        let to = self.large.take();
        let from = self.small.get(log.number());
        self.large.get_mut(to as usize)[..from.len()].copy_from_slice(from);
        self.small.give_back(log.number());
        *log = Log(to | Log::IS_LARGE);
    }

    /// A large one, for a connection that will have many.
    pub(super) fn large(&mut self) -> Log {
        Log(self.large.take() | Log::IS_LARGE)
    }

    /// It is free again.
    #[inline]
    pub(super) fn give_back(&mut self, log: Log) {
        if log.is_large() {
            self.large.give_back(log.number());
        } else {
            self.small.give_back(log.number());
        }
    }

    #[inline]
    fn places(&self, log: Log) -> &[Place] {
        if log.is_none() {
            &[]
        } else if log.is_large() {
            self.large.get(log.number())
        } else {
            self.small.get(log.number())
        }
    }

    /// The place behind so many is on its way.
    #[inline]
    pub(super) fn fetch_place(&self, log: Log, behind: usize) {
        self.places(log).get(behind + 1).into_iter().for_each(fetch);
    }

    /// So many are on their way.
    #[inline]
    pub(super) fn fetch_first(&self, log: Log, n: usize) {
        // Each other one begins a cache line.
        self.places(log).iter().take(n + 1).step_by(2).for_each(fetch);
    }

    /// The packets that take so many places.
    #[inline]
    pub(super) fn read(&self, log: Log, n: usize) -> Packets<'_> {
        Packets::of(self.places(log).get(..=n).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(second: i64) -> Segment {
        Segment { time: Nanos::secs(second), frame: second as u64, ..Segment::EMPTY }
    }

    /// Those of a connection come back in their order, from the room in which they began and from that into which they moved; whatever others do.
    #[test]
    fn packets_stay_in_order_as_rooms_change() {
        let mut logs = Logs::default();
        let mut all: Vec<(Log, usize)> = (0..100).map(|_| (Log::NONE, 0)).collect();
        for second in 0..40 {
            for (log, n) in all.iter_mut().skip(second as usize) {
                let latest = Nanos::secs(second - i64::from(*n > 0));
                let places = logs.take(log, *n, latest, &segment(second), true);
                assert_eq!(places, 1, "behind {n}");
                *n += usize::from(places);
            }
            // Half of those that stop go, and their rooms are used by others.
            if second % 2 == 1 {
                let (log, n) = std::mem::replace(&mut all[second as usize], (Log::NONE, 0));
                assert_eq!(logs.read(log, n).count(), n);
                logs.give_back(log);
            }
        }
        for (log, n) in &all {
            let seconds: Vec<_> = logs.read(*log, *n).map(|packet| packet.time()).collect();
            assert_eq!(seconds, (0..*n as i64).map(Nanos::secs).collect::<Vec<_>>());
            assert_eq!(log.is_large() && !log.is_none(), *n >= SMALL);
        }
        assert!(all.iter().any(|(log, _)| log.is_large()));
        assert!(all.iter().any(|(log, _)| !log.is_large() && !log.is_none()));
    }

    /// The last place takes a plain packet, or half of another one, which does not wait then.
    #[test]
    fn what_has_no_room_does_not_wait() {
        let take = |behind, head_len| {
            let mut logs = Logs::default();
            let mut log = logs.large();
            let segment = Segment { head_len, ..Segment::EMPTY };
            logs.take(&mut log, behind, Nanos::ZERO, &segment, true)
        };
        assert_eq!([take(MOST - 2, 0), take(MOST - 1, 0), take(MOST, 0), take(MOST + 1, 0)], [1, 1, 0, 0]);
        assert_eq!([take(MOST - 2, 1), take(MOST - 1, 1), take(MOST, 1)], [2, 0, 0]);
    }

    /// Memory of many rooms goes back when none is used, and they can be used again.
    #[test]
    fn rooms_are_given_back() {
        let mut logs = Logs::default();
        for _ in 0..2 {
            let mut all: Vec<Log> = (0..TOGETHER * 20).map(|_| logs.large()).collect();
            let numbers: std::collections::BTreeSet<_> = all.iter().map(|log| log.number()).collect();
            assert_eq!((numbers.len(), logs.large.pieces.len()), (TOGETHER * 20, 20));
            for log in &mut all {
                assert_eq!(logs.take(log, 0, Nanos::secs(1), &segment(1), true), 1);
            }
            all.into_iter().for_each(|log| logs.give_back(log));
            let kept = logs.large.pieces.iter().filter(|piece| !piece.rooms.is_empty()).count();
            assert_eq!((kept, logs.large.open.len()), (SPARE, 20));
        }
    }
}
