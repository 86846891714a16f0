//! Rolling spans up to findings, and the findings that are not spans.

mod acquit;
pub(crate) mod agree;
pub(crate) mod packed;
mod plain;
mod rest;
pub(crate) mod store;
mod wholes;

pub(crate) use acquit::Acquitted;
pub(crate) use plain::{Plain, Shown};
pub(crate) use wholes::{add_whole_connection_findings, may_have_whole_connection_findings};

use crate::facts::Facts;
use crate::requests::Requests;
use crate::result::{Connection, Example, Extremes, Finding, Frames, Span};
use std::cmp::Reverse;
use tcpwhy_base::{Cause, Class, Nanos, Side};

/// Below this, in percent, a cause is a guess among several: its rule names an alternative that is nearly as likely
/// (`confidence.rs`).
pub(crate) const UNSURE: i64 = 70;
/// Evidence kept per finding.
pub(crate) const EVIDENCE: usize = 6;

/// Where a span stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where {
    pub(crate) connection: u32,
    pub(crate) exchange: u32,
    pub(crate) gap: bool,
    /// After the last byte: no time that anybody waited.
    pub(crate) tail: bool,
}

impl Where {
    /// Nobody waits any more, of such a class (rule 27).
    fn is_over(&self, class: Class) -> bool {
        self.tail && matches!(class, Class::Application | Class::Unknown)
    }
}

/// What of a span is summed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) cause: Cause,
    pub(crate) side: Option<Side>,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) confidence: f32,
    pub(crate) folded: u32,
    /// The longest of what was folded into it; of one alone its own length.
    pub(crate) longest: Nanos,
    pub(crate) frames: &'a Frames,
    pub(crate) facts: &'a Facts,
}

/// The spans of one cause and side, summed as they come.
#[derive(Clone, Debug)]
pub(crate) struct Rollup {
    pub(crate) cause: Cause,
    pub(crate) side: Option<Side>,
    /// What of `lost` lies after the last byte.
    pub(crate) tail: Nanos,
    /// What of `lost` lies in gaps before that.
    pub(crate) idle: Nanos,
    pub(crate) doubt: Doubt,
    pub(crate) lost: Nanos,
    pub(crate) occurrences: u64,
    pub(crate) range: Extremes,
    pub(crate) example: Best,
    evidence: Vec<Frames>,
}

/// How sure the spans of requests are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// Time of requests that was judged with little confidence.
    pub(crate) unsure: Nanos,
    /// Confidence in percent times nanoseconds, and the nanoseconds: whole numbers, so that no order of adding matters.
    weighed: i64,
    time: i64,
}

impl Doubt {
    /// All of it with this confidence.
    fn set(&mut self, confidence: f32) {
        let percent = (f64::from(confidence) * 100.0).round() as i64;
        self.weighed = self.time.saturating_mul(percent);
        self.unsure = if percent < UNSURE { Nanos(self.time) } else { Nanos::ZERO };
    }

    pub(crate) fn add(&mut self, other: Doubt) {
        self.unsure += other.unsure;
        self.weighed = self.weighed.saturating_add(other.weighed);
        self.time = self.time.saturating_add(other.time);
    }

    /// The mean over the time, 0 to 1; without any time there is nothing to doubt.
    pub(crate) fn confidence(self) -> f64 {
        if self.time <= 0 { 1.0 } else { self.weighed as f64 / 100.0 / self.time as f64 }
    }
}

/// The span that shows a cause best.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    pub(crate) example: Example,
    time: Nanos,
    facts: Facts,
}

impl Best {
    #[cold]
    fn of(part: &Part<'_>, place: Where) -> Best {
        let example = Example {
            connection: place.connection,
            exchange: place.exchange,
            frames: *part.frames,
            start: part.start,
            end: part.end,
        };
        let time = if place.is_over(part.cause.class()) { Nanos::ZERO } else { part.end - part.start };
        Best { example, time, facts: *part.facts }
    }

    fn rank(&self) -> Rank {
        let of = &self.example;
        Rank {
            of_exchange: of.exchange > 0,
            is_doubt: is_doubt(&self.facts),
            time: self.time,
            order: (of.connection, of.frames.first()),
        }
    }
}

/// What of a span makes it an example.
#[derive(Clone, Copy, Debug)]
struct Rank {
    of_exchange: bool,
    is_doubt: bool,
    time: Nanos,
    order: (u32, u64),
}

impl Rank {
    /// An exchange tells more than a gap, a long span more than a short one, and of those that are about as
    /// long one whose cause is doubtful; of equal ones the first.
    #[inline]
    fn is_better_than(&self, other: &Rank) -> bool {
        if self.of_exchange != other.of_exchange {
            return self.of_exchange;
        }
        let about = |rank: &Rank| rank.time.0.max(1).ilog2();
        if self.is_doubt != other.is_doubt && about(self) == about(other) {
            return self.is_doubt;
        }
        self.time > other.time || self.time == other.time && self.order < other.order
    }
}

/// The work of a server that may be a cork (rule 115).
#[inline]
fn is_doubt(facts: &Facts) -> bool {
    matches!(facts, Facts::TimedAnswer { .. })
}

/// An exchange that took hardly more than a round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quick {
    pub(crate) example: Example,
    pub(crate) duration: Nanos,
}

/// What findings of a connection are made of, beside what its answer says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Basis {
    pub(crate) rollups: Rollups,
    /// Exchanges that took hardly more than a round trip.
    pub(crate) quick_turns: u32,
    /// The longest of them.
    pub(crate) quick: Option<Quick>,
    /// How long its requests took.
    pub(crate) requests: Requests,
    /// They are one, and what that waited for is said by the budget of the connection: none is in `requests`.
    pub(crate) told: bool,
    /// Nothing of it lies in the window that is looked at.
    pub(crate) outside: bool,
    /// A part of it lies outside.
    pub(crate) cut: bool,
    /// Input file of its first packet.
    pub(crate) file: u16,
}

impl Basis {
    /// The same room without anything in it.
    pub(crate) fn emptied(mut self) -> Basis {
        self.rollups.0.clear();
        self.requests.clear();
        Basis { rollups: self.rollups, requests: self.requests, ..Basis::default() }
    }
}

/// A connection that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) connection: Box<Connection>,
    pub(crate) basis: Basis,
}

impl Finished {
    /// Only this part of its time is accounted for; without one, nothing of it.
    pub(crate) fn leave(&mut self, part: Option<(Nanos, Nanos)>) {
        let whole = (self.connection.start, self.connection.end);
        self.basis.outside = part.is_none();
        self.basis.cut = part != Some(whole);
        (self.connection.start, self.connection.end) = part.unwrap_or(whole);
    }
}

/// The sums of one connection (or of what is inherent, over all of them).
#[derive(Clone, Debug, Default)]
pub(crate) struct Rollups(pub(crate) Vec<Rollup>);

impl Rollups {
    /// The connection of every example by its final number.
    pub(crate) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        for r in &mut self.0 {
            let connection = &mut r.example.example.connection;
            *connection = number(*connection);
        }
    }

    /// Adds a span. TCP's causes keep some evidence of their own, the others only their longest span.
    #[inline]
    pub(crate) fn add(&mut self, span: &Span, place: Where) {
        let part = Part {
            cause: span.cause,
            side: span.side,
            start: span.start,
            end: span.end,
            confidence: span.confidence,
            folded: span.folded,
            longest: span.longest(),
            frames: &span.frames,
            facts: &span.facts,
        };
        self.add_part(&part, place);
    }

    /// The same of a span that is nothing but summed, and need not be made.
    #[inline]
    pub(crate) fn add_part(&mut self, part: &Part<'_>, place: Where) {
        match self.0.iter_mut().find(|r| r.cause == part.cause && r.side == part.side) {
            Some(r) => r.add_part(part, place),
            None => self.keep(Rollup::beginning(part, place)),
        }
    }

    /// Most connections have two or three, and hold them while they live.
    #[cold]
    fn keep(&mut self, rollup: Rollup) {
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(self.0.len().max(2));
        }
        self.0.push(rollup);
    }

    /// Adds the sums of others.
    pub(crate) fn merge(&mut self, other: &Rollups) {
        for o in &other.0 {
            match self.0.iter_mut().find(|r| r.cause == o.cause && r.side == o.side) {
                None => self.0.push(o.clone()),
                Some(r) => {
                    r.lost += o.lost;
                    r.tail += o.tail;
                    r.idle += o.idle;
                    r.doubt.add(o.doubt);
                    r.range = joined((r.occurrences, r.range), (o.occurrences, o.range));
                    r.occurrences += o.occurrences;
                    let room = EVIDENCE.saturating_sub(r.evidence.len());
                    r.evidence.extend(o.evidence.iter().take(room));
                    if o.example.rank().is_better_than(&r.example.rank()) {
                        r.example = o.example;
                    }
                }
            }
        }
    }
}

impl Rollup {
    /// With a first part.
    fn beginning(part: &Part<'_>, place: Where) -> Rollup {
        let mut rollup = Rollup {
            cause: part.cause,
            side: part.side,
            tail: Nanos::ZERO,
            idle: Nanos::ZERO,
            doubt: Doubt::default(),
            lost: Nanos::ZERO,
            occurrences: 0,
            range: part.each(),
            example: Best::of(part, place),
            evidence: Vec::new(),
        };
        rollup.add_part(part, place);
        rollup
    }

    #[inline]
    fn add_part(&mut self, part: &Part<'_>, place: Where) {
        let (time, class) = (part.end - part.start, part.cause.class());
        self.lost += time;
        self.doubt.add_time(time, part.confidence, place.gap);
        // Time after the last byte counts, but is no wait of anybody (rule 27), and shows nothing.
        let over = place.is_over(class);
        let shows = if over { Nanos::ZERO } else { time };
        if over {
            self.tail += time;
        } else {
            if place.gap {
                self.idle += time;
            }
            let n = u64::from(part.folded.max(1));
            self.range = joined((self.occurrences, self.range), (n, part.each()));
            self.occurrences += n;
        }
        // Mostly it is no better example, which its length alone shows.
        let of_exchange = place.exchange > 0;
        if shows >= self.example.time
            || of_exchange != (self.example.example.exchange > 0)
            || is_doubt(part.facts)
        {
            let order = (place.connection, part.frames.first());
            let rank = Rank { of_exchange, is_doubt: is_doubt(part.facts), time: shows, order };
            if rank.is_better_than(&self.example.rank()) {
                self.example = Best::of(part, place);
            }
        }
        if class == Class::Tcp || place.gap && class == Class::Application && !over {
            self.keep_evidence(part.frames);
        }
    }
}

impl Part<'_> {
    /// Of spans that were folded into one the longest is known, and the mean: the shortest is no longer than
    /// that of the others.
    fn each(&self) -> Extremes {
        let time = self.end - self.start;
        // A stretch of time that was chosen may leave no more of it than that.
        if self.folded <= 1 || self.longest >= time {
            return Extremes::of(time);
        }
        let longest = self.longest;
        Extremes { shortest: Nanos((time - longest).0 / i64::from(self.folded - 1)), longest }
    }
}

/// Shortest and longest of two groups of spans, each with its number; an empty one says nothing.
pub(crate) fn joined(a: (u64, Extremes), b: (u64, Extremes)) -> Extremes {
    match (a.0, b.0) {
        (_, 0) => a.1,
        (0, _) => b.1,
        _ => Extremes { shortest: a.1.shortest.min(b.1.shortest), longest: a.1.longest.max(b.1.longest) },
    }
}

pub(crate) fn finding(r: &Rollup, total: f64) -> Finding {
    Finding {
        cause: r.cause,
        side: r.side,
        lost: r.lost,
        share: ((r.lost - r.tail).0 as f64 / total).min(1.0),
        share_of_requests: 0.0,
        tail: r.tail,
        idle: r.idle,
        counted_elsewhere: Nanos::ZERO,
        link_full: None,
        in_turn: None,
        confidence: r.doubt.confidence(),
        unsure: r.doubt.unsure,
        occurrences: r.occurrences,
        range: r.range,
        connections: Vec::new(),
        connection_count: 1,
        example: r.example.example,
        facts: r.example.facts,
        text: None,
        evidence: if r.evidence.is_empty() { vec![r.example.example.frames] } else { r.evidence.clone() },
        names: Vec::new(),
        more_names: false,
        fixes: Vec::new(),
        refuted: Vec::new(),
        replay: None,
    }
}

/// The example leads the evidence: what is said of a finding, the first frames beside it and the link are of one span.
pub(crate) fn lead_with_examples(findings: &mut [Finding]) {
    for f in findings.iter_mut().filter(|f| !f.evidence.is_empty()) {
        let frames = f.example.frames;
        match f.evidence.iter().position(|&e| e == frames) {
            Some(at) => f.evidence[..=at].rotate_right(1),
            None => {
                f.evidence.insert(0, frames);
                f.evidence.truncate(EVIDENCE);
            }
        }
    }
}

/// Worst first: by all the time lost, as the document promises. What is printed ranks by the time of requests in it.
pub(crate) fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|f| (Reverse(f.lost), f.cause, f.side));
}

/// Gives each its share of so much time of requests.
pub(crate) fn share(findings: &mut [Finding], requests: Nanos) {
    let of = requests.0.max(1) as f64;
    for f in findings {
        f.share_of_requests = (f.of_requests().0 as f64 / of).clamp(0.0, 1.0);
    }
}

/// The findings of one connection, worst first, without fixes (`fixes_on` has them).
pub(crate) fn of_connection(connection: &Connection, basis: &Basis) -> Vec<Finding> {
    let total = connection.measured().0.max(1) as f64;
    let mut findings: Vec<Finding> = basis.rollups.0.iter().map(|r| finding(r, total)).collect();
    add_whole_connection_findings(connection, basis, &mut findings, total);
    share(&mut findings, connection.budget.total());
    lead_with_examples(&mut findings);
    sort(&mut findings);
    findings
}
