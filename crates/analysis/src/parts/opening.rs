//! The spans of a connection's setup.

use crate::confidence::{Rule, Tap};
use crate::facts::Facts;
use crate::result::{Frames, Setup, Span};
use crate::track::{Moment, Opening, Tracker};
use tcpwhy_base::{Cause, End, Nanos, Side, Source};

/// What leaves now arrives within a segment's lifetime of two minutes (RFC 9293, 3.4.1), and so does its answer.
const LONGEST_TRIP: Nanos = Nanos::secs(240);

/// A way that is shorter than what hosts need to wake up does not tell on which side of the tap it lies.
const SHORTEST_WAY: Nanos = Nanos::micros(100);

/// Writes spans one after the other.
struct Spans {
    file: u16,
    end: Nanos,
    at: Moment,
    spans: Vec<Span>,
}

impl Spans {
    fn add(
        &mut self,
        rule: Rule,
        cause: Cause,
        side: Option<Side>,
        upto: Moment,
        keys: &[u64],
        facts: Facts,
    ) {
        let upto = (upto.0.min(self.end), upto.1);
        if upto.0 <= self.at.0 {
            return;
        }
        // The rules of an opening are as sure at any tap.
        let sure = rule.at(Tap::Near);
        self.spans.push(Span {
            cause,
            detail: None,
            side,
            start: self.at.0,
            end: upto.0,
            frames: Frames::new(self.file, self.at.1, upto.1, keys),
            confidence: sure.confidence,
            alternatives: sure.alternatives,
            facts,
            folded: 1,
            longest_folded: Nanos::ZERO,
            source: Source::Inferred,
        });
        self.at = upto;
    }
}

/// The setup from its first packet up to `end`.
pub(super) fn setup(opening: &Opening, track: &Tracker, file: u16, end: Moment) -> Setup {
    let h = &opening.passed;
    let first = opening.first;
    // Mostly it is one.
    let mut out = Spans { file, end: end.0, at: first, spans: Vec::with_capacity(1) };
    let network = Some(Side::Network);
    let round_trip = Facts::RoundTrip { rtt: track.rtt().unwrap_or_default() };
    let frame = |at: Option<Moment>| at.map_or(0, |m| m.1);
    syn_retransmissions(opening, track, &mut out);
    if let (Some(one), Some(last)) = (h.syn_ack, h.last_syn_ack)
        && opening.syn_acks > 1
        && last.0 > one.0
    {
        let facts = Facts::SynRepeats {
            repeats: opening.syn_acks - 1,
            over: last.0 - one.0,
            syn_ack: true,
            at_server: false,
            answered: false,
        };
        out.add(Rule::HandshakeBeforeRetransmission, Cause::Handshake, network, one, &[one.1], round_trip);
        out.add(Rule::SynAckRetransmitted, Cause::SynRetransmit, None, last, &[one.1, last.1], facts);
    }
    if let Some(rst) = h.refused {
        let upto = (end.0, end.1.max(rst.1));
        let facts = Facts::Refused { resets: h.refusals };
        out.add(Rule::Refused, Cause::Refused, Some(Side::Server), upto, &[rst.1], facts);
    } else if h.syn_ack.is_some() || opening.done {
        let keys = [frame(h.last_syn), frame(h.last_syn_ack), end.1];
        let wait = end.0 - out.at.0;
        if wait > LONGEST_TRIP {
            out.add(Rule::HandshakeUnseen, Cause::Unexplained, None, end, &keys, Facts::WrongClock { wait });
        }
        out.add(Rule::Handshake, Cause::Handshake, network, end, &keys, round_trip);
    } else if opening.syns > 1 {
        let facts = Facts::Unanswered { syns: opening.syns, over: end.0 - first.0 };
        out.add(Rule::NeverAnswered, Cause::SynRetransmit, None, end, &[frame(h.last_syn)], facts);
    } else {
        // One SYN and no answer in the capture, yet the connection went on.
        out.add(Rule::HandshakeUnseen, Cause::Unexplained, None, end, &[first.1], Facts::OneSided);
    }
    Setup {
        start: first.0,
        end: end.0,
        bytes: opening.bytes.into_array(),
        tls_trips: 0,
        tls_asked_again: false,
        spans: out.spans,
    }
}

/// When all round trips are known: a handshake that took twice as long as they do, and longer by more than a
/// SYN queue or an address that is asked for takes (the bounds of rule 70), was not the distance alone.
pub(super) fn late_handshake(spans: &mut [Span], rtt: Option<Nanos>) {
    let Some(rtt) = rtt.filter(|&rtt| rtt > Nanos::ZERO) else { return };
    for span in spans {
        let late = span.duration() - rtt;
        if span.cause == Cause::Handshake && late >= rtt.max(Nanos::millis(5)) {
            let sure = Rule::HandshakeLate.at(Tap::Near);
            span.facts = Facts::LateOpening { late, rtt };
            (span.confidence, span.alternatives) = (sure.confidence, sure.alternatives);
        }
    }
}

/// The wait for the last SYN, if there were several. SYNs that were refused were answered (rule 39): of those only what
/// came before the first reset was lost.
fn syn_retransmissions(opening: &Opening, track: &Tracker, out: &mut Spans) {
    let h = &opening.passed;
    if h.refused.is_some() {
        if let (Some(syn), Some(last), true) = (h.syn, h.refused_syn, h.syns_before > 0) {
            let facts = Facts::SynRepeats {
                repeats: h.syns_before,
                over: last.0 - syn.0,
                syn_ack: false,
                at_server: false,
                answered: false,
            };
            out.add(Rule::SynUnanswered, Cause::SynRetransmit, None, last, &[syn.1, last.1], facts);
        }
        return;
    }
    let (Some(syn), Some(last), true) = (h.syn, h.last_syn, opening.syns > 1) else { return };
    if let Some((lost, at_server)) = lost_between(opening)
        && (h.syn_ack.is_some() || at_server)
    {
        let (repeats, over) = (opening.syns - 1, last.0 - syn.0);
        let repeated = Facts::SynRepeats { repeats, over, syn_ack: false, at_server: true, answered: false };
        let facts = Facts::SynsLost { repeats, over, there: lost[0], back: lost[1] };
        let (rule, side, facts) = if at_server && h.syn_ack.is_none() {
            let facts = Facts::SynsIgnored { syns: opening.syns, over };
            (Rule::SynIgnoredAtServer, Side::Server, facts)
        } else if at_server {
            (Rule::SynIgnoredAtServer, Side::Server, repeated)
        } else {
            (Rule::SynLostBetweenTaps, Side::Network, facts)
        };
        out.add(rule, Cause::SynRetransmit, Some(side), last, &[syn.1, last.1], facts);
        return;
    }
    // Answered each time: the SYN-ACK (or the ACK of it) was lost on its way.
    let answered = h.syn_ack.is_some_and(|(t, _)| t < last.0);
    let at_server = !answered && reached_server(opening, track);
    let over = last.0 - syn.0;
    let facts = if h.syn_ack.is_none() {
        Facts::Unanswered { syns: opening.syns, over }
    } else {
        Facts::SynRepeats { repeats: opening.syns - 1, over, syn_ack: false, at_server, answered }
    };
    // Which of them it was shows only at the server (its counters, or this tap).
    let (rule, side) = if answered {
        (Rule::SynAnsweredBefore, Some(Side::Network))
    } else if at_server {
        (Rule::SynIgnoredAtServer, Some(Side::Server))
    } else {
        (Rule::SynUnanswered, None)
    };
    out.add(rule, Cause::SynRetransmit, side, last, &[syn.1, last.1], facts);
}

/// Where a tap at the server has seen the handshake: how many SYNs were lost on the way there, how many
/// SYN-ACKs on the way back; and whether the server left more of them without an answer.
fn lost_between(opening: &Opening) -> Option<([u32; 2], bool)> {
    let there = opening.there.filter(|t| t.arrived > 0)?;
    let lost = [opening.syns.saturating_sub(there.arrived), there.answered.saturating_sub(opening.syn_acks)];
    let dropped = there.arrived.saturating_sub(there.answered);
    Some((lost, dropped > lost[0] + lost[1]))
}

/// Several SYNs passed a tap at the server, which answered only the last: it dropped them.
fn reached_server(opening: &Opening, track: &Tracker) -> bool {
    let beside = |server: Nanos, client: Nanos| client > SHORTEST_WAY && client > server.times(4);
    let h = &opening.passed;
    let reactions = track.reaction(End::Server).zip(track.reaction(End::Client));
    let this_time =
        h.syn_ack.zip(h.last_syn).map(|(syn_ack, syn)| (syn_ack.0 - syn.0, track.now() - syn_ack.0));
    [reactions, this_time].into_iter().flatten().any(|(server, client)| beside(server, client))
}
