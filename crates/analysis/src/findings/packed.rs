//! What findings are made of, as bytes: a connection that has ended needs a tenth of the room so.

use super::{Basis, Best, Doubt, Quick, Rollup};
use crate::facts::Facts;
use crate::packing::{Numbers, put, put_signed};
use crate::requests::Requests;
use crate::result::{Example, Extremes, Frames};
use tcpwhy_base::{CAUSES, Cause, Nanos, Side};

/// Where a basis begins among the bytes of its store.
pub(crate) type At = u64;

/// The bases of ended connections. Times count from the start of their connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    bytes: Vec<u8>,
    /// The figures of examples stay as they are.
    facts: Vec<Facts>,
}

const SIDES: [Option<Side>; 4] = [None, Some(Side::Client), Some(Side::Server), Some(Side::Network)];

/// Bits before a basis.
const OUTSIDE: u64 = 1;
const CUT: u64 = 2;
const QUICK: u64 = 4;
const RANGE: u64 = 8;

/// Bits that begin a rollup, below its side and its cause: it is of one span and all else follows from that ([`single`]); its
/// evidence is none, or the frames of its example; the rest are of the first form, whose span counts for no occurrence, whose time
/// is after the last byte, idle, unsure.
const SINGLE: u64 = 1;
const NO_EVIDENCE: u64 = 2;
const ONE_EVIDENCE: u64 = 4;
const NONE: u64 = 8;
const TAIL: u64 = 16;
const IDLE: u64 = 32;
const UNSURE: u64 = 64;

impl Store {
    /// Keeps the basis of a connection that began then.
    pub(crate) fn keep(&mut self, basis: &Basis, start: Nanos) -> At {
        let at = self.bytes.len() as At;
        let bytes = &mut self.bytes;
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        let requests = &basis.requests;
        let bits = bit(basis.outside, OUTSIDE) | bit(basis.cut, CUT);
        let bits = bits | bit(basis.quick.is_some(), QUICK) | bit(requests.range.is_some(), RANGE);
        put(bytes, bits);
        put(bytes, u64::from(basis.file));
        put(bytes, u64::from(basis.quick_turns));
        if let Some(quick) = &basis.quick {
            put_example(bytes, &quick.example, start);
            put_signed(bytes, quick.duration.0);
        }
        if let Some((from, to)) = requests.range {
            put_signed(bytes, from.0.wrapping_sub(start.0));
            put_signed(bytes, to.0.wrapping_sub(from.0));
        }
        requests.times.pack(bytes);
        put(bytes, basis.rollups.0.len() as u64);
        put(bytes, self.facts.len() as u64);
        for r in &basis.rollups.0 {
            put_rollup(bytes, r, start);
            self.facts.push(r.example.facts);
        }
        at
    }

    /// Writes a basis into `basis`, whose room is used again: that of the connection with this number, which began then.
    pub(crate) fn read(&self, at: At, connection: u32, start: Nanos, basis: &mut Basis) {
        let mut from = Numbers(self.bytes.get(at as usize..).unwrap_or_default());
        let from = &mut from;
        let bits = from.take();
        basis.outside = bits & OUTSIDE != 0;
        basis.cut = bits & CUT != 0;
        basis.file = from.take() as u16;
        basis.quick_turns = from.take() as u32;
        basis.quick = (bits & QUICK != 0).then(|| Quick {
            example: take_example(from, connection, start),
            duration: Nanos(from.take_signed()),
        });
        take_requests(from, bits, start, &mut basis.requests);
        let rollups = from.take_count();
        let facts = from.take() as usize;
        basis.rollups.0.truncate(rollups);
        for n in 0..rollups {
            let facts = self.facts.get(facts.saturating_add(n)).copied().unwrap_or_default();
            let room = basis.rollups.0.get_mut(n).map(|r| std::mem::take(&mut r.evidence));
            let rollup = take_rollup(from, connection, start, facts, room.unwrap_or_default());
            match basis.rollups.0.get_mut(n) {
                Some(old) => *old = rollup,
                None => basis.rollups.0.push(rollup),
            }
        }
    }
}

fn take_requests(from: &mut Numbers<'_>, bits: u64, start: Nanos, requests: &mut Requests) {
    requests.range = (bits & RANGE != 0).then(|| {
        let first = from.take_signed().wrapping_add(start.0);
        (Nanos(first), Nanos(from.take_signed().wrapping_add(first)))
    });
    requests.times.unpack(from);
}

fn put_example(bytes: &mut Vec<u8>, example: &Example, start: Nanos) {
    put(bytes, u64::from(example.exchange));
    example.frames.pack(bytes);
    put_signed(bytes, example.start.0.wrapping_sub(start.0));
    put_signed(bytes, example.end.0.wrapping_sub(example.start.0));
}

fn take_example(from: &mut Numbers<'_>, connection: u32, zero: Nanos) -> Example {
    let exchange = from.take() as u32;
    let frames = Frames::unpack(from);
    let start = from.take_signed().wrapping_add(zero.0);
    let end = from.take_signed().wrapping_add(start);
    Example { connection, exchange, frames, start: Nanos(start), end: Nanos(end) }
}

/// The confidence of a rollup of one span, in percent, where so few numbers say all of it: most are such.
fn single(r: &Rollup) -> Option<i64> {
    let (time, of) = (r.lost, &r.example.example);
    let percent = if time.0 > 0 { r.doubt.weighed / time.0 } else { 0 };
    let all_or_none = |part: Nanos| part == time || part == Nanos::ZERO;
    let is_single = r.occurrences <= 1
        && r.range == Extremes::of(time)
        && r.example.time == time
        && of.end.0.wrapping_sub(of.start.0) == time.0
        && r.doubt.time == time.0
        && r.doubt.weighed == percent.wrapping_mul(time.0)
        && all_or_none(r.tail)
        && all_or_none(r.idle)
        && all_or_none(r.doubt.unsure);
    is_single.then_some(percent)
}

fn put_rollup(bytes: &mut Vec<u8>, r: &Rollup, start: Nanos) {
    let bit = |set: bool, bit: u64| if set { bit } else { 0 };
    let (single, of) = (single(r), &r.example.example);
    let side = match r.side {
        None => 0,
        Some(Side::Client) => 1,
        Some(Side::Server) => 2,
        Some(Side::Network) => 3,
    };
    let bits = bit(single.is_some(), SINGLE)
        | bit(r.evidence.is_empty(), NO_EVIDENCE)
        | bit(r.evidence == [of.frames], ONE_EVIDENCE)
        | bit(r.occurrences == 0, NONE)
        | bit(r.tail != Nanos::ZERO, TAIL)
        | bit(r.idle != Nanos::ZERO, IDLE)
        | bit(r.doubt.unsure != Nanos::ZERO, UNSURE);
    put(bytes, (r.cause as u64) << 9 | side << 7 | bits);
    put_signed(bytes, r.lost.0);
    match single {
        Some(percent) => {
            put_signed(bytes, percent);
            put(bytes, u64::from(of.exchange));
            of.frames.pack(bytes);
            put_signed(bytes, of.start.0.wrapping_sub(start.0));
        }
        None => {
            for time in [r.tail, r.idle, r.doubt.unsure] {
                put_signed(bytes, time.0);
            }
            put_signed(bytes, r.doubt.weighed);
            put_signed(bytes, r.doubt.time);
            put(bytes, r.occurrences);
            put_signed(bytes, r.range.shortest.0);
            put_signed(bytes, r.range.longest.0);
            put_signed(bytes, r.example.time.0);
            put_example(bytes, of, start);
        }
    }
    if bits & (NO_EVIDENCE | ONE_EVIDENCE) == 0 {
        put(bytes, r.evidence.len() as u64);
        r.evidence.iter().for_each(|frames| frames.pack(bytes));
    }
}

fn take_rollup(
    from: &mut Numbers<'_>,
    connection: u32,
    start: Nanos,
    facts: Facts,
    mut evidence: Vec<Frames>,
) -> Rollup {
    let head = from.take();
    let lost = Nanos(from.take_signed());
    let mut rollup = if head & SINGLE != 0 {
        let part = |bit| if head & bit != 0 { lost } else { Nanos::ZERO };
        let percent = from.take_signed();
        let exchange = from.take() as u32;
        let frames = Frames::unpack(from);
        let begin = Nanos(from.take_signed().wrapping_add(start.0));
        let end = Nanos(begin.0.wrapping_add(lost.0));
        let doubt = Doubt { unsure: part(UNSURE), weighed: percent.wrapping_mul(lost.0), time: lost.0 };
        Rollup {
            cause: Cause::Unexplained,
            side: None,
            tail: part(TAIL),
            idle: part(IDLE),
            doubt,
            lost,
            occurrences: u64::from(head & NONE == 0),
            range: Extremes::of(lost),
            example: Best {
                example: Example { connection, exchange, frames, start: begin, end },
                time: lost,
                facts,
            },
            evidence: Vec::new(),
        }
    } else {
        let [tail, idle, unsure] = std::array::from_fn(|_| Nanos(from.take_signed()));
        let doubt = Doubt { unsure, weighed: from.take_signed(), time: from.take_signed() };
        let occurrences = from.take();
        let [shortest, longest, time] = std::array::from_fn(|_| Nanos(from.take_signed()));
        let example = Best { example: take_example(from, connection, start), time, facts };
        let range = Extremes { shortest, longest };
        let (cause, side, evidence) = (Cause::Unexplained, None, Vec::new());
        Rollup { cause, side, tail, idle, doubt, lost, occurrences, range, example, evidence }
    };
    evidence.clear();
    match head & (NO_EVIDENCE | ONE_EVIDENCE) {
        0 => evidence.extend((0..from.take_count()).map(|_| Frames::unpack(from))),
        NO_EVIDENCE => {}
        _ => evidence.push(rollup.example.example.frames),
    }
    rollup.evidence = evidence;
    rollup.cause = CAUSES.get((head >> 9) as usize).map_or(Cause::Unexplained, |c| c.cause);
    rollup.side = SIDES[(head >> 7 & 3) as usize];
    rollup
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Rollups, Where};
    use crate::result::Span;
    use tcpwhy_base::Source;

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

    #[test]
    fn bases_come_back_whole() {
        for start in [0, -5_000, 1_700_000_000_000_000_000] {
            let (mut store, all) = (Store::default(), bases(start));
            let places: Vec<At> = all.iter().map(|basis| store.keep(basis, Nanos(start))).collect();
            let mut read = Basis::default();
            for (basis, &at) in all.iter().zip(&places).chain(all.iter().zip(&places).rev()) {
                store.read(at, 7, Nanos(start), &mut read);
                assert_eq!(format!("{read:?}"), format!("{basis:?}"));
            }
        }
    }

    #[test]
    fn what_is_no_basis_is_read_as_something() {
        let mut read = Basis::default();
        for n in 0..=255 {
            let store = Store { bytes: vec![n; 300], facts: Vec::new() };
            for at in [0, 150, 299, 300, u64::MAX] {
                store.read(at, 1, Nanos::ZERO, &mut read);
            }
        }
    }
}
