//! Rooms in which packets of a connection wait: small ones as long as it is young, since most never have more
//! packets, then larger ones, and several of those as long as they take no more memory than its state would.

use super::rooms::Rooms;
use super::waiting::{Head, PLAIN, keeps, take};
use crate::fetch::{fetch, fetch_whole};
use tcpwhy_base::{Nanos, Segment};

/// There are rooms of so many sizes, each twice as large as the one before.
const SIZES: usize = 3;
/// Bytes of a room of this size, besides its head.
const fn bytes_of(size: usize) -> usize {
    512 << size
}
/// Several of this size follow each other.
const SEVERAL: usize = 1;
/// Where a connection has a state there is one of this size.
const ONLY: usize = 2;
/// Behind so many bytes of that a packet may have no room.
pub(super) const FULL: usize = bytes_of(ONLY) - PLAIN;
/// Behind so many it is full after six or more packets. Meanwhile seven others become as full: of connections
/// that speak as often each becomes so once in 80 packets, eight of them in 640, of which each of a thousand
/// has less than one.
pub(super) const NEARLY_FULL: usize = FULL - 6 * PLAIN;
/// Rooms of a connection without a state: with their heads 10 KB, where a state and what it keeps elsewhere
/// takes 7 to 11.
const ROOMS: u32 = 9;

/// The room in which the latest packets of a connection wait, if any do: which size it has, and its number
/// among those. Where it is not the first, its head says where that is.
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
    pub(super) fn is_large(self) -> bool {
        (SEVERAL..SIZES).contains(&self.size())
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
    rooms: [Rooms; SIZES],
    /// Packets wait in several.
    crowded: bool,
    /// Some connection has begun the last but one of those that it may have.
    ends_soon: bool,
}

impl Logs {
    /// A packet waits, if all of it can be kept and there is room: behind those that take so many bytes of
    /// the latest room, the latest of which passed at this time. A room is taken where there is none, a
    /// larger one where it is full, and another one where that is, among many connections. How many bytes are
    /// taken of the latest room then; none: it does not wait.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        log: &mut Log,
        behind: usize,
        latest: Nanos,
        segment: &Segment,
        from_client: bool,
    ) -> u16 {
        if behind > 0
            && let Some(rooms) = self.rooms.get_mut(log.size())
            && let Some((head, free)) = rooms.room_from(log.number(), bytes_of(log.size()), behind)
            && let n = take(head, free, latest, segment, from_client)
            && n > 0
        {
            return (behind + n) as u16;
        }
        self.take_in_another(log, behind, latest, segment, from_client)
    }

    /// The same where it is the first, or may not be kept, or where no room is left.
    #[inline(never)]
    fn take_in_another(
        &mut self,
        log: &mut Log,
        mut behind: usize,
        latest: Nanos,
        segment: &Segment,
        from_client: bool,
    ) -> u16 {
        if !keeps(segment) {
            return 0;
        }
        if log.is_none() {
            *log = self.of_size(0);
        } else if behind > 0 && !log.is_large() {
            self.enlarge(log, behind);
        } else if behind > 0 {
            if !self.go_on_in_another(log, behind) {
                return 0;
            }
            behind = 0;
        }
        let rooms = self.rooms.get_mut(log.size());
        let room = rooms.and_then(|rooms| rooms.room_from(log.number(), bytes_of(log.size()), behind));
        let Some((head, free)) = room else { return 0 };
        if behind == 0 && head.before().0 == 0 {
            head.file = segment.file;
        }
        (behind + take(head, free, latest, segment, from_client)) as u16
    }

    /// Moves so many bytes from the smallest room into the next, with their head.
    fn enlarge(&mut self, log: &mut Log, used: usize) {
        let to = self.of_size(SEVERAL);
        let [from, into, _] = &mut self.rooms;
        if let Some((from_head, from)) = from.room_from(log.number(), bytes_of(0), 0)
            && let Some((into_head, into)) = into.room_from(to.number(), bytes_of(SEVERAL), 0)
        {
            *into_head = *from_head;
            if let (Some(into), Some(from)) = (into.get_mut(..used), from.get(..used)) {
                into.copy_from_slice(from);
            }
        }
        self.give_back_one(*log);
        *log = to;
    }

    /// So many bytes are used of a room, and another one follows, if there may be as many.
    fn go_on_in_another(&mut self, log: &mut Log, used: usize) -> bool {
        let (before, first) = self.rooms_before(*log);
        if !self.crowded || log.size() != SEVERAL || before + 1 >= ROOMS {
            return false;
        }
        self.ends_soon |= before + 3 >= ROOMS;
        let first = if before == 0 { log.number() as u32 } else { first };
        let next = self.of_size(SEVERAL);
        let full = self.head_mut(*log);
        let goes_on = full.map(|full| full.go_on_in(used, next.number() as u32, (before + 1, first)));
        self.head_mut(next).into_iter().zip(goes_on).for_each(|(head, goes_on)| *head = goes_on);
        *log = next;
        true
    }

    /// A free one.
    fn of_size(&mut self, size: usize) -> Log {
        Log::new(size, self.rooms[size].take(bytes_of(size)))
    }

    /// One for a connection that has a state, which none follows.
    pub(super) fn only(&mut self) -> Log {
        self.of_size(ONLY)
    }

    /// Among many connections packets of each wait in several rooms.
    #[inline]
    pub(super) fn set_crowded(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    /// Whether the packet that was taken last began the last room but one; asked once.
    #[inline]
    pub(super) fn ends_soon(&mut self) -> bool {
        std::mem::take(&mut self.ends_soon)
    }

    /// It is free again, with those before it.
    #[inline]
    pub(super) fn give_back(&mut self, log: Log) {
        let (before, mut number) = self.rooms_before(log);
        for _ in 0..before {
            let full = Log::new(SEVERAL, number);
            number = self.head(full).map_or(0, |head| head.goes_on_in().1);
            self.give_back_one(full);
        }
        self.give_back_one(log);
    }

    #[inline]
    fn give_back_one(&mut self, log: Log) {
        self.rooms.get_mut(log.size()).into_iter().for_each(|rooms| rooms.give_back(log.number()));
    }

    /// So many bytes of a room.
    #[inline]
    fn bytes(&self, log: Log, n: usize) -> &[u8] {
        let rooms = self.rooms.get(log.size());
        rooms.and_then(|rooms| rooms.bytes(log.number(), bytes_of(log.size())).get(..n)).unwrap_or_default()
    }

    #[inline]
    fn head(&self, log: Log) -> Option<&Head> {
        self.rooms.get(log.size()).and_then(|rooms| rooms.head(log.number()))
    }

    #[inline]
    fn head_mut(&mut self, log: Log) -> Option<&mut Head> {
        self.rooms.get_mut(log.size()).and_then(|rooms| rooms.head_mut(log.number()))
    }

    /// So many rooms are full before this one, and the number of the first.
    #[inline]
    fn rooms_before(&self, log: Log) -> (u32, u32) {
        // None before others.
        if log.size() == SEVERAL { self.head(log).map_or((0, 0), Head::before) } else { (0, 0) }
    }

    /// What the packet behind so many bytes will need is on its way.
    #[inline]
    pub(super) fn fetch_place(&self, log: Log, behind: usize) {
        if let Some(rooms) = self.rooms.get(log.size()) {
            rooms.head(log.number()).into_iter().for_each(fetch);
            rooms.byte(log.number(), bytes_of(log.size()), behind).into_iter().for_each(fetch);
        }
    }

    /// So many bytes of the latest room are on their way.
    #[inline]
    pub(super) fn fetch_latest(&self, log: Log, n: usize) {
        self.head(log).into_iter().for_each(fetch);
        fetch_whole(self.bytes(log, n));
    }

    /// Those of the first room are on their way, if that is another one. What the latest says of it is there.
    #[inline]
    pub(super) fn fetch_first(&self, log: Log) {
        match self.rooms_before(log) {
            (0, _) => {}
            (_, first) => self.fetch_latest(Log::new(SEVERAL, first), bytes_of(SEVERAL)),
        }
    }

    /// The input that the first of those that wait came from.
    #[inline]
    pub(super) fn file(&self, log: Log) -> u16 {
        self.head(log).map_or(0, |head| head.file)
    }

    /// Room after room, the packets of a connection, of which those in the latest take so many bytes.
    #[inline]
    pub(super) fn read(&self, log: Log, n: usize) -> Reading<'_> {
        let (before, first) = self.rooms_before(log);
        Reading { logs: self, before, number: first, latest: Some((log, n)) }
    }
}

/// Rooms that are read: all of each, and how many bytes of it are used.
#[derive(Clone, Debug)]
pub(super) struct Reading<'a> {
    logs: &'a Logs,
    /// So many are full, of which this is the next.
    before: u32,
    number: u32,
    latest: Option<(Log, usize)>,
}

impl<'a> Iterator for Reading<'a> {
    type Item = (&'a [u8], usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(&'a [u8], usize)> {
        if self.before > 0 {
            return Some(self.next_full());
        }
        let (log, n) = self.latest.take()?;
        Some((self.logs.bytes(log, bytes_of(log.size())), n))
    }
}

impl<'a> Reading<'a> {
    #[inline(never)]
    fn next_full(&mut self) -> (&'a [u8], usize) {
        let full = Log::new(SEVERAL, self.number);
        let (used, next) = self.logs.head(full).map_or((0, 0), Head::goes_on_in);
        (self.before, self.number) = (self.before - 1, next);
        // The next one is needed after this one.
        match self.latest {
            Some((log, n)) if self.before == 0 => self.logs.fetch_latest(log, n),
            _ => self.logs.fetch_latest(Log::new(SEVERAL, next), bytes_of(SEVERAL)),
        }
        (self.logs.bytes(full, bytes_of(SEVERAL)), used)
    }
}

#[cfg(test)]
mod tests {
    use super::super::waiting::{BEFORE_ALL, Unpacked};
    use super::*;
    use tcpwhy_base::{Endpoint, Ends};

    /// A connection whose packets wait: where, so many bytes, and when each passed, with which number, of which input.
    #[derive(Clone, Default)]
    struct Waiting {
        log: Option<Log>,
        used: u16,
        said: Vec<(Nanos, u64, u16)>,
    }

    impl Waiting {
        fn log(&self) -> Log {
            self.log.unwrap_or(Log::NONE)
        }

        /// Whether it waits.
        fn take(&mut self, logs: &mut Logs, segment: &Segment) -> bool {
            let latest = self.said.iter().map(|said| said.0).max().unwrap_or(BEFORE_ALL);
            let mut log = self.log();
            let used = logs.take(&mut log, self.used.into(), latest, segment, true);
            self.log = Some(log);
            if used > 0 {
                (self.used, _) = (used, self.said.push((segment.time, segment.frame, segment.file)));
            }
            used > 0
        }

        /// Those that come back.
        fn read(&self, logs: &Logs) -> Vec<(Nanos, u64, u16)> {
            let nobody = Ends::of(|_| Endpoint { ip: [0; 4].into(), port: 0 });
            let (mut unpacked, mut all) = (Unpacked::of(&nobody, 0, logs.file(self.log())), Vec::new());
            for (bytes, used) in logs.read(self.log(), self.used.into()) {
                let mut at = 0;
                while at < used {
                    let (s, n) = unpacked.next(&bytes[at..]).expect("a packet");
                    let segment = unpacked.segment(s);
                    all.push((segment.time, segment.frame, segment.file));
                    at += n;
                }
            }
            all
        }
    }

    fn segment(second: i64, odd: bool) -> Segment {
        let time = Nanos::secs(second) + Nanos::millis(second % 7);
        Segment {
            time,
            frame: second as u64,
            head_len: odd.into(),
            file: 3 + u16::from(odd),
            ..Segment::EMPTY
        }
    }

    /// Those of a connection come back in their order, from the room in which they began and from that into
    /// which they moved; whatever others do.
    #[test]
    fn packets_stay_in_order_as_rooms_change() {
        let mut logs = Logs::default();
        let mut all = vec![Waiting::default(); 100];
        for second in 0..60 {
            for waiting in all.iter_mut().skip(second as usize) {
                assert!(waiting.take(&mut logs, &segment(second, false)));
            }
            // Half of those that stop go, and their rooms are used by others.
            if second % 2 == 1 {
                let waiting = std::mem::take(&mut all[second as usize]);
                assert_eq!(waiting.read(&logs), waiting.said);
                logs.give_back(waiting.log());
            }
        }
        for waiting in &all {
            assert_eq!(waiting.read(&logs), waiting.said);
            assert!(usize::from(waiting.used) <= bytes_of(waiting.log().size()));
            // None moves before it has to.
            assert!(!waiting.log().is_large() || usize::from(waiting.used) > bytes_of(0) - PLAIN);
        }
    }

    /// Room after room among many connections, of plain packets and of odd ones, as many as may; then all of
    /// them are free.
    #[test]
    fn packets_wait_in_several_rooms() {
        let mut logs = Logs::default();
        for (long, rooms) in [0, 1, 40, 150, 2_000].into_iter().flat_map(|long| [(long, 1), (long, ROOMS)]) {
            logs.set_crowded(rooms > 1);
            let mut all = vec![Waiting::default(); 7];
            for n in 0..long {
                for (i, waiting) in all.iter_mut().enumerate() {
                    // Of some, one in three has first bytes of payload, and is of another input; one passed
                    // before the one before it.
                    let odd = n % 3 == 0 && i % 2 == 0;
                    let waits = waiting.take(&mut logs, &segment(n - i64::from(n % 5 == 4) * 2, odd));
                    assert!(waits || logs.rooms_before(waiting.log()).0 + 1 == rooms, "{n} of {long}");
                }
            }
            for waiting in &all {
                assert_eq!(waiting.read(&logs), waiting.said);
                let full = waiting.said.len() < long as usize;
                assert!(full || long < 2_000);
                assert!(!full || logs.rooms_before(waiting.log()).0 + 1 == rooms);
            }
            all.into_iter().for_each(|waiting| logs.give_back(waiting.log()));
            assert!(logs.rooms.iter().all(Rooms::are_free), "{long}");
        }
    }

    /// The room of a connection with a state is the only one, among however many.
    #[test]
    fn none_follows_the_only_one() {
        let mut logs = Logs { crowded: true, ..Logs::default() };
        let mut waiting = Waiting { log: Some(logs.only()), ..Waiting::default() };
        let all = (0..1_000).take_while(|&second| waiting.take(&mut logs, &segment(second, false))).count();
        assert_eq!((waiting.read(&logs), waiting.said.len()), (waiting.said.clone(), all));
        assert!((FULL + 1..=bytes_of(ONLY)).contains(&waiting.used.into()));
        assert!(usize::from(waiting.used) / all < 32);
        logs.give_back(waiting.log());
        assert!(logs.rooms.iter().all(Rooms::are_free));
    }

    /// What cannot be kept takes no room.
    #[test]
    fn what_cannot_be_kept_takes_no_room() {
        let mut logs = Logs { crowded: true, ..Logs::default() };
        let (mut log, mut odd) = (logs.only(), segment(1, false));
        odd.options.sack_len = 1;
        for behind in [0, 50, FULL, bytes_of(ONLY)] {
            assert_eq!(logs.take(&mut log, behind, BEFORE_ALL, &odd, true), 0);
        }
        let mut none = Log::NONE;
        assert_eq!(logs.take(&mut none, 0, BEFORE_ALL, &odd, true), 0);
        logs.give_back(log);
        assert!(none.is_none() && logs.rooms.iter().all(Rooms::are_free));
    }
}
