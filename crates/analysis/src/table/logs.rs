//! Rooms in which packets of a connection wait: small ones as long as it is young, since most never have more packets, then larger ones.

use super::waiting::{Before, Packets, Place, take};
use crate::fetch::fetch;
use tcpwhy_base::Segment;

/// Places of a room. The first tells when the packet behind it passed.
const SIZES: [usize; 3] = [16, 32, 64];
const LARGEST: usize = SIZES.len() - 1;
/// Places of the largest in which packets wait. A plain one takes one of them, any other two.
pub(super) const MOST: usize = SIZES[LARGEST] - 1;
/// Rooms that are made, and given back, together.
const TOGETHER: usize = u32::BITS as usize;
/// So many pieces keep their memory while nothing is in them.
const SPARE: usize = 8;

/// The room in which packets of a connection wait, if any do: which size it has, and its number among those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Log(u32);

impl Log {
    /// None has this size.
    pub(super) const NONE: Log = Log(u32::MAX);
    const NUMBER: u32 = 30;

    #[inline]
    fn new(size: usize, number: u32) -> Log {
        Log((size as u32) << Log::NUMBER | number)
    }

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self == Log::NONE
    }

    #[inline]
    fn size(self) -> usize {
        (self.0 >> Log::NUMBER) as usize
    }

    #[inline]
    fn number(self) -> usize {
        (self.0 & ((1 << Log::NUMBER) - 1)) as usize
    }
}

/// Rooms of one size, which never move.
#[derive(Debug, Default)]
struct Rooms {
    pieces: Vec<Piece>,
    /// Pieces that have a free room. (Some may have given back their memory meanwhile.)
    open: Vec<u32>,
    /// Pieces that have no memory.
    gone: Vec<u32>,
    /// So many have memory, and nothing in them.
    empty: usize,
}

#[derive(Debug)]
struct Piece {
    /// None where all of them are free and the memory was given back.
    places: Box<[Place]>,
    /// A bit for each room that is free.
    free: u32,
}

impl Rooms {
    /// A free one, of so many places.
    #[inline]
    fn take(&mut self, size: usize) -> u32 {
        let number = loop {
            match self.open.last() {
                Some(&number) if self.pieces[number as usize].places.is_empty() => {
                    self.open.pop();
                    self.gone.push(number);
                }
                Some(&number) => break number,
                None => self.another(size),
            }
        };
        let piece = &mut self.pieces[number as usize];
        if piece.free == u32::MAX {
            self.empty -= 1;
        }
        let room = piece.free.trailing_zeros();
        piece.free &= piece.free.wrapping_sub(1);
        if piece.free == 0 {
            self.open.pop();
        }
        number * TOGETHER as u32 + room
    }

    #[cold]
    fn another(&mut self, size: usize) {
        let places = vec![Place::NONE; size * TOGETHER].into_boxed_slice();
        let number = self.gone.pop().unwrap_or(self.pieces.len() as u32);
        match self.pieces.get_mut(number as usize) {
            Some(piece) => piece.places = places,
            None => self.pieces.push(Piece { places, free: u32::MAX }),
        }
        self.open.push(number);
        self.empty += 1;
    }

    /// Is free again.
    #[inline]
    fn give_back(&mut self, number: usize) {
        let Some(piece) = self.pieces.get_mut(number / TOGETHER) else { return };
        if piece.free == 0 {
            self.open.push((number / TOGETHER) as u32);
        }
        piece.free |= 1 << (number % TOGETHER);
        if piece.free == u32::MAX {
            if self.empty < SPARE {
                self.empty += 1;
            } else {
                // Whoever ends all connections needs the memory for what becomes of them.
                piece.places = Box::default();
            }
        }
    }

    #[inline]
    fn get(&self, number: usize, size: usize) -> &[Place] {
        let (piece, at) = (self.pieces.get(number / TOGETHER), number % TOGETHER * size);
        piece.and_then(|piece| piece.places.get(at..at + size)).unwrap_or_default()
    }

    /// One of its places.
    #[inline(always)]
    fn place(&self, number: usize, size: usize, at: usize) -> Option<&Place> {
        let piece = self.pieces.get(number / TOGETHER)?;
        piece.places.get(number % TOGETHER * size + at)
    }

    /// Those from one of its places on.
    #[inline(always)]
    fn places_from(&mut self, number: usize, size: usize, at: usize) -> &mut [Place] {
        let (piece, first) = (self.pieces.get_mut(number / TOGETHER), number % TOGETHER * size);
        piece.and_then(|piece| piece.places.get_mut(first + at..first + size)).unwrap_or_default()
    }

    #[inline]
    fn get_mut(&mut self, number: usize, size: usize) -> &mut [Place] {
        let (piece, at) = (self.pieces.get_mut(number / TOGETHER), number % TOGETHER * size);
        piece.and_then(|piece| piece.places.get_mut(at..at + size)).unwrap_or_default()
    }
}

/// All rooms, by their sizes.
#[derive(Debug, Default)]
pub(super) struct Logs([Rooms; SIZES.len()]);

impl Logs {
    /// A packet waits, if all of it can be kept and there is room: behind those that take so many places, which were before it. A room is
    /// taken where there is none, and a larger one where it is full. How many places it takes; none: it does not wait.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        log: &mut Log,
        behind: usize,
        before: Before,
        segment: &Segment,
        from_client: bool,
    ) -> u8 {
        let free = match self.0.get_mut(log.size()) {
            Some(rooms) if behind > 0 => rooms.places_from(log.number(), SIZES[log.size()], behind + 1),
            // The first one, before which something is to be said.
            _ => &mut [],
        };
        match take(free, before, segment, from_client) {
            0 => self.take_in_larger(log, behind, before, segment, from_client),
            n => n,
        }
    }

    /// The same where it is the first, or may not be kept, or where no room is left.
    #[inline(never)]
    fn take_in_larger(
        &mut self,
        log: &mut Log,
        behind: usize,
        before: Before,
        segment: &Segment,
        from_client: bool,
    ) -> u8 {
        let size = SIZES.get(log.size()).copied().unwrap_or_default();
        if behind + 2 >= size {
            let larger = if log.is_none() { 0 } else { log.size() + 1 };
            if larger > LARGEST {
                return 0;
            }
            self.enlarge(log, larger);
        }
        let places = self.0.get_mut(log.size()).map(|rooms| rooms.get_mut(log.number(), SIZES[log.size()]));
        let Some([since, places @ ..]) = places else { return 0 };
        if behind == 0 {
            *since = Place::since(before);
        }
        take(places.get_mut(behind..).unwrap_or_default(), before, segment, from_client)
    }

    /// Moves into a larger room.
    fn enlarge(&mut self, log: &mut Log, larger: usize) {
        let to = self.of_size(larger);
        if let Ok([from, into]) = self.0.get_disjoint_mut([log.size(), larger]) {
            let from = from.get_mut(log.number(), SIZES[log.size()]);
            into.get_mut(to.number(), SIZES[larger])
                .iter_mut()
                .zip(from)
                .for_each(|(into, from)| *into = *from);
        }
        self.give_back(*log);
        *log = to;
    }

    fn of_size(&mut self, size: usize) -> Log {
        Log::new(size, self.0[size].take(SIZES[size]))
    }

    /// One of the largest, for a connection that will have many.
    pub(super) fn largest(&mut self) -> Log {
        self.of_size(LARGEST)
    }

    /// It is free again.
    #[inline]
    pub(super) fn give_back(&mut self, log: Log) {
        self.0.get_mut(log.size()).into_iter().for_each(|rooms| rooms.give_back(log.number()));
    }

    #[inline]
    fn places(&self, log: Log) -> &[Place] {
        self.0.get(log.size()).map_or(&[], |rooms| rooms.get(log.number(), SIZES[log.size()]))
    }

    /// The place behind so many is on its way.
    #[inline]
    pub(super) fn fetch_place(&self, log: Log, behind: usize) {
        let rooms = self.0.get(log.size());
        let place = rooms.and_then(|rooms| rooms.place(log.number(), SIZES[log.size()], behind + 1));
        place.into_iter().for_each(fetch);
    }

    /// So many are on their way.
    #[inline]
    pub(super) fn fetch_first(&self, log: Log, n: usize) {
        // Each other one begins a cache line, where the allocator gives room so.
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
    use tcpwhy_base::Nanos;

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
                let before = Before { latest: Nanos::secs(second - i64::from(*n > 0)), file: 0 };
                let places = logs.take(log, *n, before, &segment(second), true);
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
            let size = SIZES.get(log.size()).copied().unwrap_or_default();
            assert_eq!(size, [0, 16, 32, 64].into_iter().find(|&size| *n < size.max(1)).unwrap_or(64), "{n}");
        }
    }

    /// The last place takes a plain packet, or half of another one, which does not wait then.
    #[test]
    fn what_has_no_room_does_not_wait() {
        let take = |behind, head_len| {
            let mut logs = Logs::default();
            let mut log = logs.largest();
            let segment = Segment { head_len, ..Segment::EMPTY };
            logs.take(&mut log, behind, Before::nothing(&segment), &segment, true)
        };
        assert_eq!([take(MOST - 2, 0), take(MOST - 1, 0), take(MOST, 0), take(MOST + 1, 0)], [1, 1, 0, 0]);
        assert_eq!([take(MOST - 2, 1), take(MOST - 1, 1), take(MOST, 1)], [2, 0, 0]);
    }

    /// Memory of many rooms goes back when none is used, and they can be used again.
    #[test]
    fn rooms_are_given_back() {
        let mut logs = Logs::default();
        for _ in 0..2 {
            let mut all: Vec<Log> = (0..TOGETHER * 20).map(|_| logs.largest()).collect();
            let numbers: std::collections::BTreeSet<_> = all.iter().map(|log| log.number()).collect();
            assert_eq!((numbers.len(), logs.0[LARGEST].pieces.len()), (TOGETHER * 20, 20));
            for log in &mut all {
                assert_eq!(logs.take(log, 0, Before::nothing(&segment(1)), &segment(1), true), 1);
            }
            all.into_iter().for_each(|log| logs.give_back(log));
            let rooms = &logs.0[LARGEST];
            let kept = rooms.pieces.iter().filter(|piece| !piece.places.is_empty()).count();
            assert_eq!((kept, rooms.empty, rooms.open.len() + rooms.gone.len()), (SPARE, SPARE, 20));
            // Whoever takes one room again and again has memory at once, and always the same.
            let first = logs.largest();
            logs.give_back(first);
            for _ in 0..3 {
                let again = logs.largest();
                assert_eq!((again, logs.0[LARGEST].empty), (first, SPARE - 1));
                logs.give_back(again);
                assert_eq!(logs.0[LARGEST].empty, SPARE);
            }
        }
    }
}
