//! Which packets are copies of one that has passed: a mirror port, a second interface or a tap at the other
//! end of a path shows packets twice.

use crate::rest::{InRow, Mixed, Near, at_rest};
use std::collections::VecDeque;
use tcpwhy_base::{End, Ends, Nanos, Segment, TcpFlags, Trouble};

/// The last packets of a connection, by which copies are known.
///
/// Rule 29. Copies come within a millisecond and have the same IP identifier, which a retransmission has not
/// on most stacks; where there is none, only packets with payload (or SYN or FIN) within 100 µs count. No
/// retransmission comes that soon: timers start at 200 ms, others need a trip.
///
/// Rule 88. What a station of 802.11 sends again is the same packet, and the frame says so.
///
/// Rule 42. Later ones are known by what no repeat can have; once there was one, more are expected as late.
/// Where nearly every packet came twice, one that has not is due.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    recent: Ends<Recent>,
    /// How late the latest copy was that came after more than a millisecond.
    late: Nanos,
}

at_rest! { Copies { recent, late } }

/// The last packets of one direction.
#[derive(Clone, Debug, Default)]
struct Recent {
    /// The parts of their traces, each apart: all contents are compared at once.
    /// The first of them is the first packet of all, whose copy tells of late ones however many pass before it.
    contents: [u32; 8],
    passed: [u32; 8],
    tails: [u16; 8],
    at: u8,
    /// Packets of different content had the same identifier, so that it tells nothing.
    same_identifiers: bool,
    /// The identifier of the last one.
    identifier: u16,
    /// Its TTL, and whether packets came over ways of different length, or twice: among them may be copies of
    /// any that went before.
    ttl: u8,
    ways: bool,
    /// So many came without a copy yet, and so many copies came.
    single: u8,
    twice: u8,
    /// Those before, once late copies are known or may be there.
    #[expect(clippy::box_collection, reason = "hardly any connection has them, and each holds two of these")]
    more: Option<Box<VecDeque<Trace>>>,
}

at_rest! {
    Recent {
        contents as Mixed, passed as InRow, tails as Mixed, at, same_identifiers, identifier, ttl, ways,
        single, twice, more,
    }
}

/// A packet as far as its copy is known by it. Of the hash of its content there are 47 bits: with 31 of them
/// one packet in 3 * 10^8 is like one of the eight before it by chance, and like one of a thousand, where
/// copies come late, one in two million.
#[derive(Clone, Copy, Debug, Default)]
struct Trace {
    /// The lowest 32 bits are compared first. All in one word, so that a trace is passed on in two registers:
    /// where it went through memory, what was written narrow was read wide, which waits for the cache.
    content: u64,
    /// Its TTL, then when it passed, in µs modulo 2^24.
    passed: u32,
}

at_rest! { Trace { content as Mixed, passed as Near } }

/// What a packet is to an earlier one with the same content.
#[derive(Clone, Copy, Debug)]
struct Likeness {
    /// By so much later; less than nothing where the file is not in order.
    later: Nanos,
    /// It passed more routers, or fewer.
    another_hop: bool,
}

/// A copy of a millisecond or less.
pub(crate) const SOON: Nanos = Nanos::millis(1);
/// Timers without an estimate of the round trip do not run out earlier (RFC 6298, 2.1), nor do those of keep-alives.
const LATEST: Nanos = Nanos::secs(1);
/// So many packets are kept of one direction where copies come late.
const MOST: usize = 1_024;

impl Copies {
    /// Whether `segment`, which `from` sent, is one. `since_last`: how long ago the packet before it passed, in either
    /// direction.
    #[inline(always)]
    pub fn is_copy(&mut self, from: End, segment: &Segment, since_last: Nanos) -> bool {
        let trace = Trace::of(segment);
        let recent = &mut self.recent[from];
        // What is sent again there may lie behind all that its station had queued since.
        if segment.trouble.has(Trouble::AIR) {
            recent.ways = true;
        }
        if let Some(like) = recent.find(trace) {
            let identified = segment.ip_id.is_some_and(|id| id != 0);
            let carries = segment.len > 0 || segment.flags.has(TcpFlags::SYN | TcpFlags::FIN);
            if like.later <= SOON && (identified || carries && since_last <= Nanos::micros(100)) {
                // Those of a burst come behind all of it.
                recent.ways |= identified;
                recent.count_copy();
                return true;
            }
            let identified = identified && !recent.same_identifiers;
            let stamped = segment.options.timestamps.is_some();
            let retried = segment.trouble.has(Trouble::RETRY);
            let again = retried && (identified || stamped) && like.later < LATEST;
            let due = identified && like.later < LATEST && recent.is_due();
            if again {
                recent.count_copy();
                return true;
            }
            if like.later > SOON && (due || is_late_copy(segment, like, identified, self.late)) {
                self.late = self.late.max(like.later);
                recent.count_copy();
                return true;
            }
        }
        recent.keep(trace, segment, self.late);
        false
    }

    /// There was one that came after more than a millisecond.
    #[inline(always)]
    pub(crate) fn are_late(&self) -> bool {
        self.late > Nanos::ZERO
    }

    /// How many routers its latest packet might still have passed; zero: it sent none.
    pub(crate) fn ttl(&self, from: End) -> u8 {
        self.recent[from].ttl
    }

    /// Whether a packet of `from` like this one passed within a second before or after it, as far as
    /// identifiers and time stamps tell. It is not kept.
    pub(crate) fn has_twin(&self, from: End, segment: &Segment) -> bool {
        let recent = &self.recent[from];
        let identified = segment.ip_id.is_some_and(|id| id != 0) && !recent.same_identifiers;
        let known = identified || segment.options.timestamps.is_some();
        known && recent.find(Trace::of(segment)).is_some_and(|like| like.later < LATEST)
    }
}

/// Whether a packet that is like an earlier one is its copy although it comes after more than a millisecond.
/// A repeat takes the same way and, on most stacks, has another identifier; a pure ACK is never repeated; a
/// SYN not within a second.
fn is_late_copy(segment: &Segment, like: Likeness, identified: bool, late: Nanos) -> bool {
    let stamped = segment.options.timestamps.is_some();
    let known = identified || stamped;
    if like.later >= LATEST {
        return false;
    }
    let opens = segment.flags.syn();
    let carries = segment.len > 0 || opens || segment.flags.fin();
    // The path that copies take may grow a queue, which takes a while to double the trip.
    let as_before = late > Nanos::ZERO && like.later <= late.times(2) + SOON;
    like.another_hop && known
        || identified && !carries
        || known && opens
        || as_before && (known && carries || opens || like.another_hop)
}

impl Recent {
    /// Packets come twice here, this one has not yet, and few others have not: of a packet that was lost on
    /// the way only one end has seen the first, and what repeats it has another identifier or comes in pairs
    /// itself.
    fn is_due(&self) -> bool {
        self.single > 0 && self.twice >= 8 && u16::from(self.single) * 4 <= u16::from(self.twice)
    }

    fn count_copy(&mut self) {
        self.single = self.single.saturating_sub(1);
        self.twice = self.twice.saturating_add(1);
    }

    /// An earlier packet of the same content, at most 8 s older.
    #[inline]
    fn find(&self, trace: Trace) -> Option<Likeness> {
        // Nearly always there is none, which all eight at once show without a branch.
        let any = self.contents.iter().fold(false, |any, &c| any | (c == trace.head()));
        if any || self.more.is_some() { self.nearest(trace) } else { None }
    }

    #[cold]
    fn nearest(&self, trace: Trace) -> Option<Likeness> {
        let same = |t: &Trace| t.is_like(trace);
        let soon = (0..self.contents.len()).map(|n| self.at_place(n)).filter(same);
        let soon = soon.map(|t| trace.like(t)).min_by_key(|l| l.later.0.abs());
        // Copies come in the order of the packets, so that the first of them is among the oldest.
        let first =
            || self.more.iter().flat_map(|more| more.iter()).find(|t| same(t)).map(|t| trace.like(*t));
        soon.or_else(first)
    }

    fn at_place(&self, n: usize) -> Trace {
        let n = n & 7;
        let content = u64::from(self.tails[n]) << 32 | u64::from(self.contents[n]);
        Trace { content, passed: self.passed[n] }
    }

    #[inline]
    fn keep(&mut self, trace: Trace, segment: &Segment, late: Nanos) {
        let identifier = segment.ip_id.unwrap_or(0);
        self.single = self.single.saturating_add(1);
        if identifier == self.identifier && identifier != 0 {
            self.same_identifiers = true;
        }
        self.identifier = identifier;
        if segment.ttl != self.ttl {
            self.ways |= self.at > 0;
            self.ttl = segment.ttl;
        }
        let place = usize::from(self.at & 7);
        // Place 0 is filled once.
        let next = if self.at >= 7 { 1 } else { self.at + 1 };
        if late > Nanos::ZERO || self.ways {
            self.keep_more(self.at_place(place), trace);
        }
        (self.contents[place], self.tails[place], self.passed[place]) =
            (trace.head(), trace.tail(), trace.passed);
        self.at = next;
    }

    #[cold]
    fn keep_more(&mut self, leaves: Trace, now: Trace) {
        let old = |t: &Trace| now.like(*t).later >= LATEST;
        let more = self.more.get_or_insert_default();
        while more.len() >= MOST || more.front().is_some_and(old) {
            more.pop_front();
        }
        if leaves.content != 0 {
            more.push_back(leaves);
        }
    }
}

impl Trace {
    const TIME: u32 = (1 << 24) - 1;
    const CONTENT: u64 = (1 << 48) - 1;
    /// Digits of pi.
    const SEEDS: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

    #[inline]
    fn of(segment: &Segment) -> Trace {
        let tsval = segment.options.timestamps.map_or(0, |t| t.0);
        let numbers = u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0);
        let sizes = u64::from(segment.len) << 32 | u64::from(tsval);
        let rest = u64::from(segment.flags.0) << 48
            | u64::from(segment.window) << 32
            | u64::from(segment.ip_id.unwrap_or(0)) << 16
            | u64::from(segment.options.sack_len);
        // All bits of two words reach all of the product's halves together (as in folded hashes of keys).
        let product = u128::from(numbers ^ Trace::SEEDS[0]) * u128::from(sizes ^ Trace::SEEDS[1]);
        let both = product as u64 ^ (product >> 64) as u64;
        let mut hash = (both ^ rest).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
        // The file's own times: a merged file may hold the copy much later.
        let micros = (segment.time.0 / 1_000) as u32 & Trace::TIME;
        // Never zero, which is an empty place.
        let content = hash & Trace::CONTENT | 1;
        Trace { content, passed: u32::from(segment.ttl) << 24 | micros }
    }

    #[inline]
    fn head(self) -> u32 {
        self.content as u32
    }

    #[inline]
    fn tail(self) -> u16 {
        (self.content >> 32) as u16
    }

    /// Their content is the same.
    #[inline]
    fn is_like(self, other: Trace) -> bool {
        self.content == other.content
    }

    /// What it is to an earlier one. A file out of order has the later one a little earlier.
    #[inline]
    fn like(self, earlier: Trace) -> Likeness {
        let micros = self.passed.wrapping_sub(earlier.passed) & Trace::TIME;
        let micros = if micros > Trace::TIME / 2 { i64::from(micros) - (1 << 24) } else { i64::from(micros) };
        let later = Nanos::micros(micros);
        let later = if later < Nanos::ZERO - SOON { LATEST } else { later };
        Likeness { later, another_hop: (self.passed ^ earlier.passed) >> 24 != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of five million packets of one transfer two had the same 31 bits, and one of them was taken for a copy.
    #[test]
    fn content_is_the_same_only_if_all_bits_of_it_are() {
        let of =
            |head: u32, tail: u16, passed| Trace { content: u64::from(tail) << 32 | u64::from(head), passed };
        let trace = of(7, 8, 9);
        assert!(trace.is_like(of(7, 8, 1)));
        assert!(!trace.is_like(of(7, 9, 9)) && !trace.is_like(of(9, 8, 9)));
        // The first packet, whose place is left out of turn, and those after it come back with all their bits.
        let mut recent = Recent::default();
        for n in 0..20_u16 {
            let trace = of(u32::from(n) * 2 + 1, n, n.into());
            assert!(recent.find(trace).is_none());
            recent.keep(trace, &Segment::EMPTY, Nanos::ZERO);
            assert!(recent.find(trace).is_some());
            assert!(recent.find(of(trace.head(), n + 1, n.into())).is_none());
        }
    }

    /// Whether a second packet like the first, so many µs later, is a copy of it.
    fn again_after(micros: i64, change: impl Fn(&mut Segment)) -> bool {
        again(Copies::default(), micros, change, |_| {})
    }

    fn again(
        mut copies: Copies,
        micros: i64,
        change: impl Fn(&mut Segment),
        then: impl Fn(&mut Segment),
    ) -> bool {
        let mut segment = Segment { len: 100, ttl: 64, ..Segment::EMPTY };
        change(&mut segment);
        assert!(!copies.is_copy(End::Client, &segment, Nanos::ZERO));
        segment.time += Nanos::micros(micros);
        then(&mut segment);
        copies.is_copy(End::Client, &segment, Nanos::micros(micros))
    }

    const SYN: fn(&mut Segment) = |s| (s.flags, s.len) = (TcpFlags(TcpFlags::SYN), 0);
    const STAMPED: fn(&mut Segment) = |s| s.options.timestamps = Some((1, 1));

    #[test]
    fn an_identifier_makes_copies_of_a_millisecond() {
        let identified = |s: &mut Segment| s.ip_id = Some(7);
        assert!(again_after(1_000, identified));
        assert!(!again_after(1_001, identified));
        // A file out of order has the later one earlier.
        assert!(again_after(-1_000, identified));
        assert!(!again_after(-1_001, identified));
        assert!(again_after(900, |s| (s.ip_id, s.len) = (Some(7), 0)));
    }

    #[test]
    fn without_one_only_data_of_100_microseconds_counts() {
        assert!(again_after(100, |s| s.ip_id = None));
        assert!(again_after(100, |s| s.ip_id = Some(0)));
        assert!(!again_after(101, |s| s.ip_id = None));
        assert!(!again_after(100, |s| s.len = 0));
    }

    #[test]
    fn another_hop_makes_a_copy_of_a_second() {
        let after =
            |micros, change: fn(&mut Segment)| again(Copies::default(), micros, change, |s| s.ttl = 63);
        assert!(after(999_999, |s| s.ip_id = Some(7)));
        assert!(!after(1_000_000, |s| s.ip_id = Some(7)));
        assert!(after(999_999, STAMPED));
        // Neither an identifier nor a stamp: perhaps another route for a repeat.
        assert!(!after(5_000, |_| {}));
    }

    #[test]
    fn what_is_never_repeated_is_a_copy_of_a_second() {
        let ack = |s: &mut Segment| (s.ip_id, s.len) = (Some(7), 0);
        assert!(again_after(999_999, ack));
        assert!(!again_after(1_000_000, ack));
        // Without an identifier it is a duplicate ACK.
        assert!(!again_after(2_000, |s| s.len = 0));
        let syn = |s: &mut Segment| {
            SYN(s);
            s.ip_id = Some(7);
        };
        assert!(again_after(999_999, syn));
        assert!(!again_after(1_000_000, syn));
        // A refused connect is tried again after half a second.
        assert!(!again_after(500_000, SYN));
    }

    #[test]
    fn what_a_station_sends_again_is_a_copy_of_a_second() {
        let retry = |s: &mut Segment| s.trouble = Trouble(Trouble::RETRY);
        let after = |micros, change: fn(&mut Segment)| again(Copies::default(), micros, change, retry);
        for change in [STAMPED, |s: &mut Segment| s.ip_id = Some(7)] {
            assert!(after(999_999, change));
            assert!(!after(1_000_000, change));
            assert!(!again_after(2_000, change), "no frame says so");
        }
        // With neither it may repeat what the tap had missed.
        assert!(!after(2_000, |_| {}));
    }

    #[test]
    fn identifiers_that_stay_the_same_tell_nothing() {
        let mut copies = Copies::default();
        let mut segment = Segment { ip_id: Some(7), ttl: 64, ..Segment::EMPTY };
        assert!(!copies.is_copy(End::Client, &segment, Nanos::ZERO));
        segment.ack = segment.ack + 100;
        assert!(!copies.is_copy(End::Client, &segment, Nanos::ZERO));
        segment.time += Nanos::millis(5);
        assert!(!copies.is_copy(End::Client, &segment, Nanos::millis(5)));
    }

    #[test]
    fn after_a_late_copy_data_may_be_as_late_again() {
        let learnt = || {
            let mut copies = Copies::default();
            let mut syn = Segment { ip_id: Some(7), ttl: 64, ..Segment::EMPTY };
            SYN(&mut syn);
            assert!(!copies.is_copy(End::Server, &syn, Nanos::ZERO));
            syn.time += Nanos::millis(10);
            assert!(copies.is_copy(End::Server, &syn, Nanos::millis(10)));
            copies
        };
        let data = |s: &mut Segment| s.ip_id = Some(8);
        assert!(again(learnt(), 21_000, data, |_| {}));
        assert!(!again(learnt(), 21_001, data, |_| {}));
        assert!(again(learnt(), 21_000, STAMPED, |_| {}));
        assert!(!again(learnt(), 21_000, |_| {}, |_| {}));
        assert!(again(learnt(), 21_000, |_| {}, |s| s.ttl = 63));
    }

    #[test]
    fn where_each_packet_came_twice_one_that_has_not_is_due() {
        let of = |n: u16| Segment {
            ip_id: Some(n + 1),
            ttl: 64,
            len: 100,
            time: Nanos::micros(10_000 * i64::from(n)),
            ..Segment::EMPTY
        };
        // So many pairs, and of the last packet a second one after 6 ms; then a third.
        let third = |pairs: u16| {
            let mut copies = Copies::default();
            let mut is_copy = |n, micros| {
                let segment = Segment { time: of(n).time + Nanos::micros(micros), ..of(n) };
                copies.is_copy(End::Client, &segment, Nanos::micros(400))
            };
            for n in 0..pairs {
                assert!(!is_copy(n, 0) && is_copy(n, 400));
            }
            assert!(!is_copy(pairs, 0));
            (is_copy(pairs, 6_000), pairs)
        };
        assert_eq!(third(8), (true, 8));
        assert_eq!(third(7), (false, 7));
        // All have come twice: it is a repeat of a stack that uses identifiers again.
        let mut copies = Copies::default();
        for n in 0..20 {
            for micros in [0, 400] {
                let segment = Segment { time: of(n).time + Nanos::micros(micros), ..of(n) };
                copies.is_copy(End::Client, &segment, Nanos::micros(400));
            }
        }
        let again = Segment { time: of(19).time + Nanos::millis(6), ..of(19) };
        assert!(!copies.is_copy(End::Client, &again, Nanos::millis(6)));
    }

    #[test]
    fn as_many_packets_are_kept_as_pass_until_the_copies_come() {
        let mut copies = Copies { late: Nanos::millis(10), ..Copies::default() };
        let of = |n: i64| Segment {
            ip_id: Some(n as u16 + 1),
            ttl: 64,
            len: 100,
            time: Nanos::micros(10 * n),
            ..Segment::EMPTY
        };
        for n in 0..1_000 {
            assert!(!copies.is_copy(End::Client, &of(n), Nanos::micros(10)));
        }
        for n in 0..1_000 {
            let copy = Segment { time: of(n).time + Nanos::millis(10), ..of(n) };
            assert!(copies.is_copy(End::Client, &copy, Nanos::micros(10)), "{n}");
        }
    }
}
