//! Rooms in which packets of a connection wait: small ones as long as it is young, since most never have more packets, then larger ones,
//! and several of those as long as they take no more memory than its state would.

use super::rooms::Rooms;
use super::waiting::{Before, Packets, Place, keeps, take};
use crate::fetch::fetch;
use tcpwhy_base::Segment;

/// Places of a room. The first tells when the packet behind it passed.
const SIZES: [usize; 3] = [16, 32, 64];
const LARGEST: usize = SIZES.len() - 1;
/// Places of the largest in which packets wait. A plain one takes one of them, any other two.
pub(super) const MOST: usize = SIZES[LARGEST] - 1;
/// Rooms of a connection without a state: 10 KB, where a state and what it keeps elsewhere takes 7 to 11.
const ROOMS: u32 = 5;

/// The room in which the latest packets of a connection wait, if any do: which size it has, and its number among those. Where it is not the
/// first, its first place says where that is.
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

    /// More wait than take less than what comes out of them.
    #[inline]
    pub(super) fn is_largest(self) -> bool {
        self.size() == LARGEST
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

/// All rooms, by their sizes.
#[derive(Debug, Default)]
pub(super) struct Logs {
    rooms: [Rooms; SIZES.len()],
    /// Packets wait in several.
    crowded: bool,
}

impl Logs {
    /// A packet waits, if all of it can be kept and there is room: behind those that take so many places of the latest room, which were
    /// before it. A room is taken where there is none, a larger one where it is full, and another one where that is, among
    /// many connections. How many places are taken of the latest room then; none: it does not wait.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        log: &mut Log,
        behind: usize,
        before: Before,
        segment: &Segment,
        from_client: bool,
    ) -> u8 {
        let free = match self.rooms.get_mut(log.size()) {
            Some(rooms) if behind > 0 => rooms.places_from(log.number(), SIZES[log.size()], behind + 1),
            // The first one, before which something is to be said.
            _ => &mut [],
        };
        match take(free, before, segment, from_client) {
            0 => self.take_in_another(log, behind, before, segment, from_client),
            n => behind as u8 + n,
        }
    }

    /// The same where it is the first, or may not be kept, or where no room is left.
    #[inline(never)]
    fn take_in_another(
        &mut self,
        log: &mut Log,
        mut behind: usize,
        before: Before,
        segment: &Segment,
        from_client: bool,
    ) -> u8 {
        if !keeps(segment) {
            return 0;
        }
        if log.is_none() {
            *log = self.of_size(0);
        } else if behind > 0 && log.size() < LARGEST {
            self.enlarge(log);
        } else if behind > 0 {
            if !self.go_on_in_another(log, behind) {
                return 0;
            }
            behind = 0;
        }
        let rooms = self.rooms.get_mut(log.size());
        let [since, places @ ..] =
            rooms.map(|rooms| rooms.get_mut(log.number(), SIZES[log.size()])).unwrap_or_default()
        else {
            return 0;
        };
        if behind == 0 {
            since.say(before);
        }
        let n = take(places.get_mut(behind..).unwrap_or_default(), before, segment, from_client);
        behind as u8 + n
    }

    /// Moves into a room of the next size, with what stands before the packets: before a smaller one there is none.
    fn enlarge(&mut self, log: &mut Log) {
        let larger = log.size() + 1;
        let to = self.of_size(larger);
        if let Ok([from, into]) = self.rooms.get_disjoint_mut([log.size(), larger]) {
            let from = from.get_mut(log.number(), SIZES[log.size()]);
            into.get_mut(to.number(), SIZES[larger])
                .iter_mut()
                .zip(from)
                .for_each(|(into, from)| *into = *from);
        }
        self.give_back_one(*log);
        *log = to;
    }

    /// So many places are used of one of the largest, and another one follows, if there may be as many.
    fn go_on_in_another(&mut self, log: &mut Log, used: usize) -> bool {
        let Some(since) = self.since(*log).filter(|since| self.crowded && !since.is_only()) else {
            return false;
        };
        let (before, first) = since.rooms_before();
        if before + 1 >= ROOMS {
            return false;
        }
        let next = self.of_size(LARGEST);
        self.since_mut(*log).into_iter().for_each(|since| since.go_on_in(used, next.number() as u32));
        let first = if before == 0 { log.number() as u32 } else { first };
        self.since_mut(next).into_iter().for_each(|since| since.set_rooms_before(before + 1, first));
        *log = next;
        true
    }

    /// A free one.
    fn of_size(&mut self, size: usize) -> Log {
        Log::new(size, self.rooms[size].take(SIZES[size]))
    }

    /// One of the largest, for a connection that has a state: the only one.
    pub(super) fn only(&mut self) -> Log {
        let log = self.of_size(LARGEST);
        self.since_mut(log).into_iter().for_each(Place::set_only);
        log
    }

    /// Among many connections packets of each wait in several rooms.
    #[inline]
    pub(super) fn set_crowded(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    /// It is free again, with those before it.
    #[inline]
    pub(super) fn give_back(&mut self, log: Log) {
        let (before, mut number) = self.rooms_before(log);
        for _ in 0..before {
            let full = Log::new(LARGEST, number);
            number = self.since(full).map_or(0, |since| since.goes_on_in().1);
            self.give_back_one(full);
        }
        self.give_back_one(log);
    }

    #[inline]
    fn give_back_one(&mut self, log: Log) {
        self.rooms.get_mut(log.size()).into_iter().for_each(|rooms| rooms.give_back(log.number()));
    }

    #[inline]
    fn places(&self, log: Log) -> &[Place] {
        self.rooms.get(log.size()).map_or(&[], |rooms| rooms.get(log.number(), SIZES[log.size()]))
    }

    /// What stands before its packets.
    #[inline]
    fn since(&self, log: Log) -> Option<&Place> {
        self.rooms.get(log.size()).and_then(|rooms| rooms.place(log.number(), SIZES[log.size()], 0))
    }

    /// So many rooms are full before this one, and the number of the first.
    #[inline]
    fn rooms_before(&self, log: Log) -> (u32, u32) {
        // None before smaller ones.
        if log.is_largest() { self.since(log).map_or((0, 0), Place::rooms_before) } else { (0, 0) }
    }

    fn since_mut(&mut self, log: Log) -> Option<&mut Place> {
        self.rooms
            .get_mut(log.size())
            .and_then(|rooms| rooms.get_mut(log.number(), SIZES[log.size()]).first_mut())
    }

    /// The place behind so many is on its way.
    #[inline]
    pub(super) fn fetch_place(&self, log: Log, behind: usize) {
        let rooms = self.rooms.get(log.size());
        let place = rooms.and_then(|rooms| rooms.place(log.number(), SIZES[log.size()], behind + 1));
        place.into_iter().for_each(fetch);
    }

    /// So many of the latest room are on their way.
    #[inline]
    pub(super) fn fetch_latest(&self, log: Log, n: usize) {
        // Each other one begins a cache line, where the allocator gives room so.
        self.places(log).iter().take(n + 1).step_by(2).for_each(fetch);
    }

    /// Those of the first room are on their way, if that is another one. What the latest says of it is there.
    #[inline]
    pub(super) fn fetch_first(&self, log: Log) {
        match self.rooms_before(log) {
            (0, _) => {}
            (_, first) => self.fetch_latest(Log::new(LARGEST, first), MOST),
        }
    }

    #[inline(always)]
    fn packets(&self, log: Log, n: usize) -> Packets<'_> {
        Packets::of(self.places(log).get(..=n).unwrap_or_default())
    }

    /// Room after room, the packets of a connection, of which those in the latest take so many places.
    #[inline]
    pub(super) fn read(&self, log: Log, n: usize) -> Reading<'_> {
        let (before, first) = self.rooms_before(log);
        Reading { logs: self, before, number: first, latest: Some((log, n)) }
    }
}

/// Rooms that are read.
#[derive(Clone, Debug)]
pub(super) struct Reading<'a> {
    logs: &'a Logs,
    /// So many are full, of which this is the next.
    before: u32,
    number: u32,
    latest: Option<(Log, usize)>,
}

impl<'a> Iterator for Reading<'a> {
    type Item = Packets<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Packets<'a>> {
        if self.before > 0 {
            return Some(self.next_full());
        }
        let (log, n) = self.latest.take()?;
        Some(self.logs.packets(log, n))
    }
}

impl<'a> Reading<'a> {
    #[inline(never)]
    fn next_full(&mut self) -> Packets<'a> {
        let full = Log::new(LARGEST, self.number);
        let (used, next) = self.logs.since(full).map_or((0, 0), Place::goes_on_in);
        (self.before, self.number) = (self.before - 1, next);
        // The next one is needed after this one.
        match self.latest {
            Some((log, n)) if self.before == 0 => self.logs.fetch_latest(log, n),
            _ => self.logs.fetch_latest(Log::new(LARGEST, next), MOST),
        }
        self.logs.packets(full, used)
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
                let taken = logs.take(log, *n, before, &segment(second), true);
                assert_eq!(usize::from(taken), *n + 1);
                *n += 1;
            }
            // Half of those that stop go, and their rooms are used by others.
            if second % 2 == 1 {
                let (log, n) = std::mem::replace(&mut all[second as usize], (Log::NONE, 0));
                assert_eq!(logs.read(log, n).flatten().count(), n);
                logs.give_back(log);
            }
        }
        for (log, n) in &all {
            let seconds: Vec<_> = logs.read(*log, *n).flatten().map(|packet| packet.time()).collect();
            assert_eq!(seconds, (0..*n as i64).map(Nanos::secs).collect::<Vec<_>>());
            let size = SIZES.get(log.size()).copied().unwrap_or_default();
            assert_eq!(size, [0, 16, 32, 64].into_iter().find(|&size| *n < size.max(1)).unwrap_or(64), "{n}");
        }
    }

    /// The last place takes a plain packet, or half of another one, which does not wait then.
    #[test]
    fn what_has_no_room_does_not_wait() {
        // Nor does another room follow the only one, among however many.
        let take = |behind, head_len| {
            let mut logs = Logs { crowded: true, ..Logs::default() };
            let mut log = logs.only();
            let segment = Segment { head_len, ..Segment::EMPTY };
            logs.take(&mut log, behind, Before::nothing(&segment), &segment, true)
        };
        assert_eq!(
            [take(MOST - 2, 0), take(MOST - 1, 0), take(MOST, 0), take(MOST + 1, 0)],
            [MOST - 1, MOST, 0, 0].map(|n| n as u8)
        );
        assert_eq!([take(MOST - 2, 1), take(MOST - 1, 1), take(MOST, 1)], [MOST, 0, 0].map(|n| n as u8));
    }

    /// Room after room among many connections, with packets of one place and of two, as many as may; then all of them are free.
    #[test]
    fn packets_wait_in_several_rooms() {
        let mut logs = Logs::default();
        for (long, rooms) in [0, 1, 40, 150, 1_000].into_iter().flat_map(|long| [(long, 1), (long, 5)]) {
            logs.set_crowded(rooms > 1);
            let mut all = vec![(Log::NONE, 0, Vec::<(Nanos, u64)>::new()); 7];
            for n in 0..long {
                for (i, (log, waits, said)) in all.iter_mut().enumerate() {
                    // Of some, one in three has first bytes of payload; one passed before the one before it.
                    let head_len = u8::from(n % 3 == 0 && i % 2 == 0);
                    let time = Nanos::secs(n - i64::from(n % 5 == 4));
                    let segment = Segment { time, frame: n as u64, head_len, ..Segment::EMPTY };
                    let latest = said.iter().map(|said| said.0).max().unwrap_or(time);
                    let before = Before { latest, file: 0 };
                    let now = logs.take(log, usize::from(*waits), before, &segment, true);
                    if now > 0 {
                        *waits = now;
                        said.push((time, n as u64));
                    }
                    let whole = rooms * MOST;
                    let (least, most) =
                        if i % 2 == 0 { (whole * 3 / 4 - 5, whole * 3 / 4) } else { (whole, whole) };
                    assert!(now > 0 || (least..=most).contains(&said.len()), "{} of {most}", said.len());
                }
            }
            for (log, waits, said) in &all {
                let packets = logs.read(*log, usize::from(*waits)).flatten();
                assert_eq!(packets.map(|packet| (packet.time(), packet.frame())).collect::<Vec<_>>(), *said);
            }
            all.into_iter().for_each(|(log, ..)| logs.give_back(log));
            assert!(logs.rooms.iter().all(Rooms::are_free), "{long}");
        }
    }

    /// What cannot be kept takes no room.
    #[test]
    fn what_cannot_be_kept_takes_no_room() {
        let mut logs = Logs { crowded: true, ..Logs::default() };
        let (mut log, mut odd) = (logs.only(), segment(1));
        (odd.options.sack_len, odd.time) = (1, Nanos::ZERO);
        for behind in [0, 5, MOST] {
            assert_eq!(logs.take(&mut log, behind, Before::nothing(&odd), &odd, true), 0);
        }
        let mut none = Log::NONE;
        assert_eq!(logs.take(&mut none, 0, Before::nothing(&odd), &odd, true), 0);
        logs.give_back(log);
        assert!(none.is_none() && logs.rooms.iter().all(Rooms::are_free));
    }
}
