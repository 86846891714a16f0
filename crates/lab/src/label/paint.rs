//! A tap's time, cut into what it went to.

use super::limits::{Sender, Wait};
use super::truth::Truth;
use super::wire::{Direction, Flow};
use crate::Lost;
use std::collections::{BTreeMap, HashSet};
use tcpwhy_base::{Cause, End, Ends, Nanos, Turn};

/// A stretch, and what it went to; no cause where the truth does not say.
pub(super) type Span = (Nanos, Nanos, Option<Cause>);

/// Where two readings of the rules are both fair, labels hold what lies between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A loss owns its time from when its ACK was due.
    Loss,
    /// The link's own time comes first, also within a repair; a loss owns its time from its departure.
    Link,
    /// The link's rate is not known.
    NoRate,
}

/// All readings.
pub(super) const READINGS: [Reading; 3] = [Reading::Loss, Reading::Link, Reading::NoRate];

/// Disjoint spans in order; later paint covers earlier.
#[derive(Debug, Default)]
pub(super) struct Canvas(BTreeMap<Nanos, (Nanos, Option<Cause>)>);

impl Canvas {
    pub(super) fn paint(&mut self, from: Nanos, to: Nanos, cause: Option<Cause>) {
        if to <= from {
            return;
        }
        self.clear(from, to);
        self.0.insert(from, (to, cause));
    }

    /// Paints only over what `which` accepts.
    fn paint_over(&mut self, from: Nanos, to: Nanos, cause: Cause, which: impl Fn(Option<Cause>) -> bool) {
        let hit: Vec<Span> = self
            .spans()
            .skip_while(|s| s.1 <= from)
            .take_while(|s| s.0 < to)
            .filter(|s| which(s.2))
            .collect();
        for (start, end, _) in hit {
            self.paint(start.max(from), end.min(to), Some(cause));
        }
    }

    fn clear(&mut self, from: Nanos, to: Nanos) {
        let hit: Vec<Nanos> = self
            .0
            .range(..to)
            .rev()
            .take_while(|(_, (end, _))| *end > from)
            .map(|(start, _)| *start)
            .collect();
        for start in hit {
            let Some((end, cause)) = self.0.remove(&start) else { continue };
            if start < from {
                self.0.insert(start, (from, cause));
            }
            if end > to {
                self.0.insert(to, (end, cause));
            }
        }
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.0.iter().map(|(start, (end, cause))| (*start, *end, *cause))
    }
}

/// When the link was busy with packets of one direction, on the clock of its sending end.
pub(super) fn busy(truth: &Truth, flows: &[Flow], sender: End) -> Vec<(Nanos, Nanos)> {
    let own = truth.scenario.link(sender);
    let Some(rate) = own.rate else { return Vec::new() };
    let lost: HashSet<Nanos> = truth.lost.iter().filter(|l| l.from() == sender).map(Lost::time).collect();
    let mut packets: Vec<(Nanos, u64)> = flows
        .iter()
        .flat_map(|f| &f.taps[sender])
        .filter(|p| p.from == sender && !lost.contains(&p.time))
        // IP and TCP headers with the time stamp option.
        .map(|p| (p.time, p.len + 52 + own.overhead))
        .collect();
    packets.sort_unstable();
    let mut all: Vec<(Nanos, Nanos)> = Vec::new();
    for (time, bytes) in packets {
        let length = Nanos((bytes as f64 * 8e9 / rate as f64) as i64);
        match all.last_mut() {
            Some(last) if last.1 >= time => last.1 += length,
            _ => all.push((time, time + length)),
        }
    }
    all
}

/// One connection, ready to be painted.
pub(super) struct Scene<'a> {
    pub(super) truth: &'a Truth,
    pub(super) flow: &'a Flow,
    pub(super) directions: &'a Ends<Direction>,
    pub(super) busy: &'a Ends<Vec<(Nanos, Nanos)>>,
}

/// A wait of a sender where its segment and the one before it, each when sent and when there, are seen by the receiver.
fn wait_afar(
    wait: &Wait,
    first: bool,
    own: (Nanos, Nanos),
    before: Option<(Nanos, Nanos)>,
) -> (Nanos, Nanos) {
    let shift = |t: Nanos| own.1 - (own.0 - t);
    let from = match before {
        Some((sent, there)) if !first && sent == wait.from => there,
        Some((_, there)) => shift(wait.from).max(there),
        // Nothing passed before the first segment of a direction: its wait is as long here as at its sender.
        None => shift(wait.from),
    };
    (from, shift(wait.to).max(from))
}

/// Setup and exchanges of one connection at one tap.
#[derive(Debug, Default)]
pub(super) struct Painted {
    /// Spans with a cause that is not the background.
    pub(super) spans: Vec<Span>,
    /// The length of setup and exchanges.
    pub(super) total: Nanos,
}

impl Scene<'_> {
    pub(super) fn paint(&self, tap: End, reading: Reading) -> Painted {
        let mut canvas = Canvas::default();
        let mut total = self.setup(tap, &mut canvas);
        let w = &self.truth.scenario.shared.workload;
        let senders = Ends::of(|s| Sender::new(self.truth, &self.directions[s], self.flow.port, s));
        let asked = self.truth.exchanges.iter().filter(|e| e.port == self.flow.port).count();
        let mut done = Ends::<u64>::default();
        let mut parts = Vec::new();
        for n in 0..asked {
            let Some(turn) = w.turn(n) else { break };
            let to = Ends::new(
                done.client + Turn::bytes(&turn.request),
                done.server + Turn::bytes(&turn.response),
            );
            if let Some((start, end)) = self.exchange(tap, &senders, done, to, &mut canvas) {
                parts.push((start, end));
                total += end - start;
            }
            done = to;
        }
        self.link_and_loss(tap, reading, &senders, &mut canvas);
        self.not_taken(tap, &mut canvas);
        let inside = |s: Span| {
            let cut = |&(from, to): &(Nanos, Nanos)| {
                let (start, end) = (s.0.max(from), s.1.min(to));
                (end > start).then_some((start, end, s.2))
            };
            let first = parts.partition_point(|p| p.1 <= s.0);
            parts[first..].iter().take_while(|p| p.0 < s.1).filter_map(cut).collect::<Vec<_>>()
        };
        let setup_end = parts.first().map_or(Nanos(i64::MAX), |p| p.0);
        let spans = canvas.spans().flat_map(|s| {
            let mut all = inside(s);
            if s.0 < setup_end {
                all.push((s.0, s.1.min(setup_end), s.2));
            }
            all
        });
        Painted { spans: spans.collect(), total }
    }

    /// Up to the client's first ACK of the SYN-ACK.
    fn setup(&self, tap: End, canvas: &mut Canvas) -> Nanos {
        let packets = &self.flow.taps[tap];
        let syns: Vec<Nanos> =
            packets.iter().filter(|p| p.from == End::Client && p.syn).map(|p| p.time).collect();
        let (Some(&first), Some(&last)) = (syns.first(), syns.last()) else { return Nanos::ZERO };
        let answered = packets.iter().find(|p| p.from == End::Client && !p.syn && p.time > last);
        let end = answered.map_or(last, |p| p.time);
        canvas.paint(first, end, Some(Cause::Handshake));
        // Only the listener's queue drops what the link let through.
        let counted = |name: &str| self.truth.server_counters.get(name).is_some_and(|&n| n > 0);
        let cause = match () {
            () if !counted("TcpExtListenDrops") => Cause::SynRetransmit,
            () if counted("TcpExtTCPReqQFullDrop") && !counted("TcpExtListenOverflows") => {
                Cause::SynQueueFull
            }
            () => Cause::AcceptQueueFull,
        };
        canvas.paint(first, last, Some(cause));
        end - first
    }

    /// The client holds a connection for made that the server's full queue did not take: what it sends is
    /// dropped until there is room. A connection that was taken acknowledges its first data when a timer of
    /// 40 ms ends, at the latest.
    fn not_taken(&self, tap: End, canvas: &mut Canvas) {
        let overflows = self.truth.server_counters.get("TcpExtListenOverflows").is_some_and(|&n| n > 0);
        let first = self.flow.taps[tap].iter().find(|p| p.from == End::Client && p.len > 0);
        let d = &self.directions.client;
        let came = self.flow.taps.server.iter().find(|p| p.from == End::Client && p.len > 0);
        let late = matches!((came, d.said(1)), (Some(p), Some(said)) if said - p.time > Nanos::millis(100));
        let taken = if tap == End::Client { d.heard(1) } else { d.said(1) };
        if let (true, Some(first), Some(taken)) = (overflows && late, first, taken) {
            canvas.paint_over(first.time, taken, Cause::AcceptQueueFull, |c| c.is_some());
        }
    }

    /// Paints one exchange and says when it was, as it passed the tap.
    fn exchange(
        &self,
        tap: End,
        senders: &Ends<Sender<'_>>,
        from: Ends<u64>,
        to: Ends<u64>,
        canvas: &mut Canvas,
    ) -> Option<(Nanos, Nanos)> {
        let passed = Ends::of(|s| (to[s] > from[s]).then(|| self.passage(tap, s, from[s], to[s])).flatten());
        let start = passed.client.or(passed.server)?.0;
        let end = passed.server.or(passed.client)?.1.max(passed.client.map_or(start, |s| s.1));
        canvas.paint(start, end, Some(Cause::PathDelay));
        if let (Some(arrived), Some(written)) =
            (self.directions.client.arrived(to.client), senders.server.written(from.server + 1))
            && to.client > from.client
            && to.server > from.server
        {
            canvas.paint(arrived.max(start), written.min(end), Some(Cause::ServerThink));
        }
        for (s, sender) in End::BOTH.into_iter().zip(senders.iter()) {
            let segments = &self.directions[s].segments;
            let begin = segments.partition_point(|x| x.end <= from[s]);
            let finish = segments.partition_point(|x| x.start < to[s]);
            for i in begin..finish {
                for wait in sender.waits(i, i == begin) {
                    let (from, to) = self.at_tap(tap, s, sender, &wait, i == begin);
                    canvas.paint(from, to, wait.cause);
                }
            }
        }
        Some((start, end))
    }

    /// First and last passage of a message's bytes.
    fn passage(&self, tap: End, sender: End, from: u64, to: u64) -> Option<(Nanos, Nanos)> {
        let d = &self.directions[sender];
        if tap != sender {
            return Some((d.arrived(from + 1)?, d.arrived(to)?));
        }
        let last = d.segments.partition_point(|s| s.end < to);
        let last = d.segments.get(last)?.sent;
        // Repeats count as long as their bytes were not acknowledged.
        let counts = |r: &&super::wire::Segment| {
            r.end > from && r.start < to && d.heard(r.end).is_none_or(|heard| heard > r.sent)
        };
        let repeat = d.repeats.iter().rev().find(counts).map_or(last, |r| r.sent);
        Some((d.first_sent(from)?, last.max(repeat)))
    }

    /// A wait of the sender as it passes the tap.
    fn at_tap(&self, tap: End, s: End, sender: &Sender<'_>, wait: &Wait, first: bool) -> (Nanos, Nanos) {
        if tap == s {
            return (wait.from, wait.to);
        }
        let d = &self.directions[s];
        let own = d.segments[wait.segment];
        let there = |i| d.there(i, |segment| sender.was_lost(segment));
        let Some(arrived) = there(wait.segment) else { return (wait.from, wait.from) };
        let before = wait.segment.checked_sub(1).map(|b| (d.segments[b].sent, there(b).unwrap_or(arrived)));
        wait_afar(wait, first, (own.sent, arrived), before)
    }

    fn link_and_loss(&self, tap: End, reading: Reading, senders: &Ends<Sender<'_>>, canvas: &mut Canvas) {
        let limited = |cause: Option<Cause>| {
            cause.is_some_and(|c| c.class() == tcpwhy_base::Class::Tcp && !matches!(c, Cause::SynRetransmit))
        };
        let link = |canvas: &mut Canvas| {
            if reading == Reading::NoRate {
                return;
            }
            for (s, busy) in End::BOTH.into_iter().zip(self.busy.iter()) {
                let delay = if s == tap { Nanos::ZERO } else { self.one_way(s) };
                for &(from, to) in busy {
                    canvas.paint_over(from + delay, to + delay, Cause::Bandwidth, limited);
                }
            }
        };
        if reading != Reading::Link {
            link(canvas);
        }
        for (s, sender) in End::BOTH.into_iter().zip(senders.iter()) {
            for repair in sender.repairs() {
                let d = &self.directions[s];
                // Seen by its sender, a loss lasts until its repair is heard of; by the receiver, until it is there.
                let (begin, end) = if s == tap {
                    (repair.lost, d.heard(repair.upto).unwrap_or(Nanos(i64::MAX)))
                } else {
                    (repair.lost + self.one_way(s), d.arrived(repair.upto).unwrap_or(Nanos(i64::MAX)))
                };
                let due = if reading == Reading::Link { begin } else { begin + sender.rtt };
                let due = due.min(repair.repair.max(begin));
                canvas.paint_over(due, end, repair.cause, |c| c.is_some());
            }
            for (sent, end) in sender.needless() {
                let d = &self.directions[s];
                let heard = if s == tap { d.heard(end) } else { d.arrived(end) };
                if let Some(heard) = heard.filter(|&h| h > sent) {
                    canvas.paint(sent, heard, None);
                }
            }
        }
        if reading == Reading::Link {
            link(canvas);
        }
    }

    fn one_way(&self, sender: End) -> Nanos {
        self.truth.scenario.link(sender).delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_before_anything_was_sent_is_as_long_at_the_other_end() {
        let ms = Nanos::millis;
        let wait = Wait { segment: 0, from: ms(10), to: ms(210), cause: Some(Cause::Cork) };
        let own = (ms(210), ms(220));
        assert_eq!(wait_afar(&wait, true, own, None), (ms(20), ms(220)));
        // What came before covers what it waited until then; of the same message it is where the wait begins.
        assert_eq!(wait_afar(&wait, true, own, Some((ms(100), ms(112)))), (ms(112), ms(220)));
        assert_eq!(wait_afar(&wait, false, own, Some((ms(10), ms(25)))), (ms(25), ms(220)));
    }

    #[test]
    fn later_paint_covers() {
        let ms = Nanos::millis;
        let mut canvas = Canvas::default();
        canvas.paint(ms(0), ms(10), Some(Cause::PathDelay));
        canvas.paint(ms(2), ms(4), Some(Cause::Nagle));
        canvas.paint(ms(3), ms(12), Some(Cause::SlowStart));
        canvas.paint_over(ms(1), ms(5), Cause::Bandwidth, |c| c == Some(Cause::Nagle));
        let all: Vec<Span> = canvas.spans().collect();
        let span = |a, b, c| (ms(a), ms(b), Some(c));
        assert_eq!(
            all,
            [span(0, 2, Cause::PathDelay), span(2, 3, Cause::Bandwidth), span(3, 12, Cause::SlowStart),]
        );
    }
}
