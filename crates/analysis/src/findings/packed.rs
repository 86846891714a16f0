//! What findings are made of, as words: a connection that has ended needs a fifth of the room so.

use super::{Basis, Best, Doubt, Quick, Rollup};
use crate::facts::Facts;
use crate::packing::{Words, after, since};
use crate::result::{Connection, Example, Extremes, Frames};
use tcpwhy_base::{CAUSES, Cause, Nanos, Side};

/// The bases of some ended connections, one behind the other. Times count from the start of their connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    pub(super) words: Vec<u64>,
    /// The figures of examples stay as they are.
    pub(super) facts: Vec<Facts>,
}

const SIDES: [Option<Side>; 4] = [None, Some(Side::Client), Some(Side::Server), Some(Side::Network)];

/// Bits that begin a basis. The last: its requests are one, and the budget of the connection says all of it.
const OUTSIDE: u64 = 1;
const CUT: u64 = 2;
const QUICK: u64 = 4;
const RANGE: u64 = 8;
const ONE: u64 = 16;

/// Bits that begin a rollup: it is of one span and all else follows from that ([`single`]); its evidence is
/// none, or the frames of its example; the rest are of the first form, whose span counts for no occurrence,
/// whose time is after the last byte, idle, unsure; the number of its exchange has a word of its own.
const SINGLE: u64 = 1;
const NO_EVIDENCE: u64 = 2;
const ONE_EVIDENCE: u64 = 4;
const NONE: u64 = 8;
const TAIL: u64 = 16;
const IDLE: u64 = 32;
const UNSURE: u64 = 64;
const LATE: u64 = 128;

/// Where in that word the rest begins: cause, side, confidence in percent (of a rollup of several spans which
/// of its figures are [`unusual`]), what is said beside frames, and the exchange.
const CAUSE: u32 = 8;
const SIDE: u32 = 16;
const PERCENT: u32 = 18;
const FRAMES: u32 = 25;
const EXCHANGE: u32 = 44;

/// What a number of so many bits says that begins there.
#[inline]
fn part(word: u64, at: u32, bits: u32) -> u64 {
    word >> at & ((1 << bits) - 1)
}

#[inline]
fn bit(set: bool, bit: u64) -> u64 {
    if set { bit } else { 0 }
}

impl Piece {
    /// Keeps the basis of this connection, which begins at the word that it tells.
    pub(super) fn keep(&mut self, basis: &Basis, c: &Connection) -> usize {
        let at = self.words.len();
        let words = &mut self.words;
        let (requests, rollups) = (&basis.requests, &basis.rollups.0);
        let is_one = requests.is_one(waits_after_setup(c));
        let bits = bit(basis.outside, OUTSIDE)
            | bit(basis.cut, CUT)
            | bit(basis.quick.is_some(), QUICK)
            | bit(requests.range.is_some(), RANGE)
            | bit(is_one, ONE);
        // There are no more rollups than causes of each side.
        words.extend_from_slice(&[
            bits | u64::from(basis.file) << 16 | u64::from(basis.quick_turns) << 32,
            (self.facts.len() as u64) << 16 | rollups.len() as u64 & 0xffff,
        ]);
        requests.pack(words, is_one, c.start);
        if let Some(quick) = &basis.quick {
            put_example(words, &quick.example, c.start, quick.duration);
        }
        for r in rollups {
            put_rollup(words, r, c.start);
        }
        self.facts.extend(rollups.iter().map(|r| r.example.facts));
        at
    }

    /// Writes the basis that begins at this word into `basis`, whose room is used again.
    pub(super) fn read(&self, at: usize, c: &Connection, basis: &mut Basis) {
        let mut from = Words(self.words.get(at..).unwrap_or_default());
        let from = &mut from;
        let [head, lists] = from.take();
        basis.outside = head & OUTSIDE != 0;
        basis.cut = head & CUT != 0;
        basis.file = (head >> 16) as u16;
        basis.quick_turns = (head >> 32) as u32;
        basis.told = head & ONE != 0;
        basis.requests.unpack(from, head & RANGE != 0, basis.told, c.start);
        basis.quick = (head & QUICK != 0).then(|| {
            let (example, duration) = take_example(from, c.id, c.start);
            Quick { example, duration }
        });
        let facts = self.facts.get((lists >> 16) as usize..).unwrap_or_default();
        let rollups = (lists as u16 as usize).min(facts.len());
        basis.rollups.0.truncate(rollups);
        for (n, &facts) in facts.iter().take(rollups).enumerate() {
            if n == basis.rollups.0.len() {
                basis.rollups.0.push(nothing());
            }
            let rollup = &mut basis.rollups.0[n];
            take_rollup(from, c.start, rollup);
            rollup.example.facts = facts;
            rollup.example.example.connection = c.id;
        }
    }
}

/// What a connection waited for beside the causes of its setup: mostly what its one request did.
#[inline]
pub(crate) fn waits_after_setup(c: &Connection) -> impl Iterator<Item = (Cause, Nanos)> + Clone {
    let setup = c.setup.as_ref().map_or(&[][..], |setup| &setup.spans);
    c.budget.0.iter().copied().filter(move |wait| setup.iter().all(|span| span.cause != wait.0))
}

/// The bit of an example beside its frames: the time that belongs to it is its own.
const WHOLE: u64 = 1 << 51;

/// With a time that belongs to it.
fn put_example(words: &mut Vec<u64>, example: &Example, start: Nanos, time: Nanos) {
    let (lasts, time) = (since(example.end, example.start), time.0 as u64);
    words.extend_from_slice(&[
        u64::from(example.exchange) | example.frames.brief() << 32 | bit(lasts == time, WHOLE),
        since(example.start, start),
        lasts,
    ]);
    if lasts != time {
        words.push(time);
    }
    example.frames.pack(words);
}

fn take_example(from: &mut Words<'_>, connection: u32, zero: Nanos) -> (Example, Nanos) {
    let [head, start, lasts] = from.take();
    let time = if head & WHOLE != 0 { lasts } else { from.take_one() };
    let frames = Frames::unpack(part(head, 32, 19), from);
    let start = after(start, zero);
    let example = Example { connection, exchange: head as u32, frames, start, end: after(lasts, start) };
    (example, Nanos(time as i64))
}

/// The confidence of a rollup of one span, in percent, where so few numbers say all of it: most are such.
fn single(r: &Rollup) -> Option<u64> {
    let (time, of) = (r.lost, &r.example.example);
    let percent = if time.0 > 0 { r.doubt.weighed / time.0 } else { 0 };
    let all_or_none = |part: Nanos| part == time || part == Nanos::ZERO;
    let is_single = r.occurrences <= 1
        && (0..128).contains(&percent)
        && r.range == Extremes::of(time)
        && r.example.time == time
        && of.end.0.wrapping_sub(of.start.0) == time.0
        && r.doubt.time == time.0
        && r.doubt.weighed == percent.wrapping_mul(time.0)
        && all_or_none(r.tail)
        && all_or_none(r.idle)
        && all_or_none(r.doubt.unsure);
    is_single.then_some(percent as u64)
}

/// Figures of a rollup that is not of one span, and what they mostly are where the span of its example lasts so long.
fn unusual(r: &Rollup, lasts: u64) -> [(u64, u64); 5] {
    [
        (r.doubt.time as u64, r.lost.0 as u64),
        (r.occurrences, u64::from(r.occurrences != 0)),
        (r.range.shortest.0 as u64, lasts),
        (r.range.longest.0 as u64, lasts),
        (r.example.time.0 as u64, lasts),
    ]
}

fn put_rollup(words: &mut Vec<u64>, r: &Rollup, start: Nanos) {
    let (single, of) = (single(r), &r.example.example);
    let side = match r.side {
        None => 0,
        Some(Side::Client) => 1,
        Some(Side::Server) => 2,
        Some(Side::Network) => 3,
    };
    let lasts = since(of.end, of.start);
    let percent = single.unwrap_or_else(|| {
        let words = unusual(r, lasts);
        (0..).zip(words).fold(0, |bits, (at, (word, usual))| bits | bit(word != usual, 1 << at))
    });
    let exchange = u64::from(of.exchange);
    let is_late = exchange >> (64 - EXCHANGE) != 0;
    let bits = bit(single.is_some(), SINGLE)
        | bit(r.evidence.is_empty(), NO_EVIDENCE)
        | bit(r.evidence == [of.frames], ONE_EVIDENCE)
        | bit(r.occurrences == 0, NONE)
        | bit(r.tail != Nanos::ZERO, TAIL)
        | bit(r.idle != Nanos::ZERO, IDLE)
        | bit(r.doubt.unsure != Nanos::ZERO, UNSURE)
        | bit(is_late, LATE);
    let head = bits
        | (r.cause as u64) << CAUSE
        | side << SIDE
        | percent << PERCENT
        | of.frames.brief() << FRAMES
        | exchange << EXCHANGE;
    words.extend_from_slice(&[head, r.lost.0 as u64, since(of.start, start)]);
    of.frames.pack(words);
    if is_late {
        words.push(exchange);
    }
    if single.is_none() {
        words.extend_from_slice(&[lasts, r.doubt.weighed as u64]);
        let none_or_some = [r.tail, r.idle, r.doubt.unsure].map(|time| time.0 as u64);
        words.extend(none_or_some.into_iter().filter(|&time| time != 0));
        words.extend(unusual(r, lasts).into_iter().filter(|word| word.0 != word.1).map(|word| word.0));
    }
    if bits & (NO_EVIDENCE | ONE_EVIDENCE) == 0 {
        words.push(r.evidence.len() as u64);
        for frames in &r.evidence {
            words.push(frames.brief());
            frames.pack(words);
        }
    }
}

/// What a rollup is written into.
fn nothing() -> Rollup {
    Rollup {
        cause: Cause::Unexplained,
        side: None,
        tail: Nanos::ZERO,
        idle: Nanos::ZERO,
        doubt: Doubt::default(),
        lost: Nanos::ZERO,
        occurrences: 0,
        range: Extremes::default(),
        example: Best {
            example: Example {
                connection: 0,
                exchange: 0,
                frames: Frames::default(),
                start: Nanos::ZERO,
                end: Nanos::ZERO,
            },
            time: Nanos::ZERO,
            facts: Facts::None,
        },
        evidence: Vec::new(),
    }
}

/// All of it but its figures and which connection it is of.
#[inline]
fn take_rollup(from: &mut Words<'_>, zero: Nanos, r: &mut Rollup) {
    let [head, lost, start] = from.take();
    let lost = Nanos(lost as i64);
    let frames = Frames::unpack(part(head, FRAMES, 19), from);
    let exchange = if head & LATE != 0 { from.take_one() } else { head >> EXCHANGE };
    r.cause = CAUSES.get(part(head, CAUSE, 8) as usize).map_or(Cause::Unexplained, |c| c.cause);
    r.side = SIDES[part(head, SIDE, 2) as usize];
    r.lost = lost;
    let of = &mut r.example.example;
    (of.exchange, of.frames, of.start) = (exchange as u32, frames, after(start, zero));
    if head & SINGLE != 0 {
        let all_if = |bit| if head & bit != 0 { lost } else { Nanos::ZERO };
        of.end = Nanos(of.start.0.wrapping_add(lost.0));
        (r.tail, r.idle, r.example.time) = (all_if(TAIL), all_if(IDLE), lost);
        let weighed = (part(head, PERCENT, 7) as i64).wrapping_mul(lost.0);
        r.doubt = Doubt { unsure: all_if(UNSURE), weighed, time: lost.0 };
        r.occurrences = u64::from(head & NONE == 0);
        r.range = Extremes::of(lost);
    } else {
        let [lasts, weighed] = from.take();
        let mut word = |is_there: bool, usual: u64| if is_there { from.take_one() } else { usual };
        let [tail, idle, unsure] = [TAIL, IDLE, UNSURE].map(|bit| Nanos(word(head & bit != 0, 0) as i64));
        let mut next = |at: u32, usual: u64| word(head >> PERCENT >> at & 1 != 0, usual);
        of.end = after(lasts, of.start);
        let time = next(0, lost.0 as u64) as i64;
        r.occurrences = next(1, u64::from(head & NONE == 0));
        let [shortest, longest, best] = [2, 3, 4].map(|at| Nanos(next(at, lasts) as i64));
        r.range = Extremes { shortest, longest };
        (r.tail, r.idle, r.example.time) = (tail, idle, best);
        r.doubt = Doubt { unsure, weighed: weighed as i64, time };
    }
    r.evidence.clear();
    match head & (NO_EVIDENCE | ONE_EVIDENCE) {
        0 => {
            let n = usize::try_from(from.take_one()).unwrap_or(usize::MAX).min(from.0.len());
            r.evidence.extend((0..n).map(|_| Frames::unpack(from.take_one(), from)));
        }
        NO_EVIDENCE => {}
        _ => r.evidence.push(frames),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::store::{At, Store};
    use crate::findings::{Rollups, Where};
    use crate::requests::Requests;
    use crate::result::{Setup, Span};
    use tcpwhy_base::{Endpoint, Source};

    fn span(cause: Cause, side: Option<Side>, at: i64, frame: u64) -> Span {
        Span {
            cause,
            detail: None,
            side,
            start: Nanos(at),
            end: Nanos(at + 1_234_567 * (frame as i64 + 1)),
            frames: Frames::new(
                3,
                frame,
                frame + 70_000,
                &[frame, frame + 5, frame + 70_000][..frame as usize % 4],
            ),
            confidence: 0.6,
            alternatives: [None; 2],
            facts: Facts::RoundTrip { rtt: Nanos(at) },
            folded: 1 + frame as u32 % 3,
            longest_folded: Nanos::ZERO,
            source: Source::Inferred,
        }
    }

    /// Bases with more and more spans, of all causes and sides, in requests, gaps and after the last byte.
    fn bases(start: i64) -> Vec<Basis> {
        (0..40_u64)
            .map(|n| {
                let mut basis = Basis { rollups: Rollups::default(), ..Basis::default() };
                for m in 0..n {
                    let cause = CAUSES[(n * 7 + m * m) as usize % CAUSES.len()].cause;
                    let span = span(cause, SIDES[(n + m) as usize % 4], start + m as i64 * 1_000, n * m);
                    let gap = m % 3 == 0;
                    let exchange = if gap { 0 } else { m as u32 };
                    basis.rollups.add(&span, Where { connection: 7, exchange, gap, tail: gap && m % 2 == 0 });
                    basis.requests.times.add(span.duration(), [(cause, span.duration())].into_iter());
                    basis.requests.cover(span.start, span.end);
                    let example = Example {
                        connection: 7,
                        exchange: m as u32,
                        frames: span.frames,
                        start: span.start,
                        end: span.end,
                    };
                    basis.quick = (m % 2 == 1).then_some(Quick { example, duration: span.duration() });
                }
                basis.quick_turns = n as u32 * 1_000_000;
                (basis.outside, basis.cut, basis.file) = (n % 5 == 4, n % 4 == 3, n as u16);
                basis
            })
            .collect()
    }

    fn connection(start: i64) -> Connection {
        let end = |last: u8| Endpoint { ip: [192, 0, 2, last].into(), port: 80 };
        Connection::new(7, [end(1), end(2)], Nanos(start), Nanos(start))
    }

    /// What was read, with the one request that the budget of its connection tells of.
    fn whole(read: &Basis, c: &Connection) -> String {
        let mut whole = Basis { requests: Requests::default(), told: false, ..read.clone() };
        whole.requests.range = read.requests.range;
        read.requests.add_to(read.told, &mut whole.requests.times, waits_after_setup(c));
        format!("{whole:?}")
    }

    #[test]
    fn bases_come_back_whole() {
        for start in [0, -5_000, 1_700_000_000_000_000_000] {
            let (mut store, all, c) = (Store::default(), bases(start), connection(start));
            let places: Vec<At> = all.iter().map(|basis| store.keep(basis, &c)).collect();
            // Behind more than a piece has room for.
            (0..Store::FULL).for_each(|_| _ = store.keep(&all[0], &c));
            let later: Vec<At> = all.iter().map(|basis| store.keep(basis, &c)).collect();
            let mut read = Basis::default();
            for (basis, &at) in all.iter().zip(&places).chain(all.iter().zip(&later).rev()) {
                store.read(at, &c, &mut read);
                assert_eq!(whole(&read, &c), format!("{basis:?}"));
            }
        }
    }

    #[test]
    fn one_request_comes_back_from_the_budget() {
        let (mut c, mut read) = (connection(1_000), Basis::default());
        let waits = [(Cause::Handshake, 20), (Cause::ServerThink, 50), (Cause::PathDelay, 7)];
        let waits = waits.map(|(cause, time)| (cause, Nanos(time)));
        waits.iter().for_each(|&(cause, time)| c.budget.add(cause, time));
        let all = c.budget.0.clone();
        let after: Vec<_> = all.iter().copied().filter(|w| w.0 != Cause::Handshake).collect();
        let setup = Setup {
            start: Nanos(1_000),
            end: Nanos(1_020),
            bytes: [0, 0],
            tls_trips: 0,
            tls_asked_again: false,
            spans: vec![span(Cause::Handshake, None, 1_000, 0)],
        };
        let two = |cause, time| [after[0], (cause, Nanos(time))];
        for (setup, waits, longest, is_one) in [
            (Some(&setup), &after[..], 57, true),
            (None, &after[..], 57, false),
            (None, &all[..], 77, true),
            (Some(&setup), &all[..], 77, false),
            (Some(&setup), &after[..1], 50, false),
            (Some(&setup), &two(Cause::Nagle, after[1].1.0)[..], 57, false),
            (Some(&setup), &two(after[1].0, 1)[..], 57, false),
            (Some(&setup), &after[..], 58, false),
            // It lasts too long for a word with its cause, or is no time at all.
            (Some(&setup), &two(Cause::Nagle, 1 << 40)[..], 1 << 42, false),
            (Some(&setup), &two(Cause::Nagle, -1)[..], 1 << 42, false),
        ] {
            c.setup = setup.cloned();
            let mut basis = Basis::default();
            basis.requests.cover(Nanos(2_000), Nanos(2_070));
            basis.requests.times.add(Nanos(longest), waits.iter().copied());
            assert_eq!(basis.requests.is_one(waits_after_setup(&c)), is_one, "{waits:?}");
            let mut store = Store::default();
            let at = store.keep(&basis, &c);
            store.read(at, &c, &mut read);
            assert_eq!(whole(&read, &c), format!("{basis:?}"));
            // With a second one it is something else.
            basis.requests.times.add(Nanos(longest), waits.iter().copied());
            assert!(!basis.requests.is_one(waits_after_setup(&c)));
            let at = store.keep(&basis, &c);
            store.read(at, &c, &mut read);
            assert_eq!(whole(&read, &c), format!("{basis:?}"));
        }
    }

    #[test]
    fn what_is_no_basis_is_read_as_something() {
        let (mut read, c) = (Basis::default(), connection(0));
        for n in (0..=255).chain((0..64).map(|n| 1 << n)).chain((0..64).map(|n| !(1 << n))) {
            let piece = Piece { words: vec![n; 300], facts: vec![Facts::None; 40] };
            for at in [0, 150, 299, 300, usize::MAX] {
                piece.read(at, &c, &mut read);
            }
        }
    }
}
