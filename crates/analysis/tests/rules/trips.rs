//! What nothing but answers tells of the way, in a capture that begins within a connection (rule 125).

use crate::wire::{SERVER, Tap, Wire, analyze, ms, us};
use tcpwhy_analysis::{Analysis, Span};
use tcpwhy_base::{Cause, Nanos};

/// Requests in series, each answered after 5 ms; the client asks again 50 µs after the answer has come. What the
/// server sends has so many routers left. `rtt`: what only the first packet of a connection would tell.
fn asked(rtt: Nanos, ttl: u8, also: impl Fn(i64, &mut Wire)) -> Analysis {
    let mut w = Wire::new(Tap::Client, rtt);
    w.host[SERVER].ttl = ttl;
    w.handshake();
    let opened = w.packets.len();
    w.after(rtt).client().data(100);
    for k in 0..20 {
        also(k, &mut w);
        w.after(rtt.part(2) + ms(5)).server().data(50);
        w.after(rtt.part(2) + us(50)).client().data(100);
    }
    analyze(&w.segments()[opened..])
}

/// All but the first exchange, before which nothing is known of the client.
fn spans(analysis: &Analysis) -> Vec<&Span> {
    analysis.connections[0].exchanges.iter().skip(1).flat_map(|x| &x.spans).collect()
}

fn of(analysis: &Analysis, cause: Cause) -> Nanos {
    let of = spans(analysis).into_iter().filter(|s| s.cause == cause);
    of.fold(Nanos::ZERO, |sum, s| sum + s.duration())
}

fn said(analysis: &Analysis, cause: Cause) -> (String, f64) {
    let f = analysis.findings.iter().find(|f| f.cause == cause);
    f.map(|f| (f.why(), f.confidence)).unwrap_or_default()
}

/// Nearly all of it is of this cause, as a guess, which says so and has the other one beside it.
fn is_guessed(a: &Analysis, [cause, other]: [Cause; 2], says: &str) {
    let (its, others) = (of(a, cause), of(a, other));
    assert!(its > ms(80) && others < ms(5), "{its} {others}");
    let (text, confidence) = said(a, cause);
    assert!(text.contains(says) && confidence < 0.7, "{text} {confidence}");
    let guess = spans(a).into_iter().find(|s| s.cause == cause).expect("a span of that cause");
    assert_eq!(guess.alternatives[0].map(|a| a.0), Some(other));
}

/// The README's way to look at a database that is in use: 98 % of it was "the distance, sure".
#[test]
fn between_hosts_on_one_link_the_answer_took_work() {
    let causes = [Cause::ServerThink, Cause::PathDelay];
    is_guessed(&asked(us(20), 64, |_, _| ()), causes, "has passed no router");
}

#[test]
fn behind_routers_nobody_can_tell() {
    let causes = [Cause::PathDelay, Cause::ServerThink];
    is_guessed(&asked(us(20), 57, |_, _| ()), causes, "may be much shorter");
}

/// The first request takes longer than ACKs are delayed: the ACK of that shows no trip of 40 ms, nor any shorter one.
#[test]
fn a_delayed_ack_shows_no_trip() {
    let late = |k, w: &mut Wire| {
        if k == 0 {
            w.after(ms(40)).server().ack();
        }
    };
    is_guessed(&asked(us(20), 57, late), [Cause::PathDelay, Cause::ServerThink], "may be much shorter");
}

/// An ACK without an answer shows the trip, on whatever path.
#[test]
fn a_bare_ack_tells() {
    for ttl in [64, 57] {
        let early = |k, w: &mut Wire| {
            if k == 2 {
                w.after(us(10)).server().ack();
            }
        };
        let a = asked(us(20), ttl, early);
        let late = spans(&a).into_iter().rfind(|s| s.cause == Cause::ServerThink).unwrap();
        assert!(late.duration() > Nanos::micros(4_900) && late.confidence > 0.8, "{late:?}");
        // As late as the answers: then the way is that long.
        let late = |k, w: &mut Wire| {
            if k % 3 == 2 {
                w.at(w.now + us(5_020)).server().ack();
            }
        };
        let a = asked(us(20), ttl, late);
        let way = spans(&a).into_iter().rfind(|s| s.cause == Cause::PathDelay).unwrap();
        assert!(way.duration() > Nanos::micros(4_900) && way.confidence > 0.8, "{way:?}");
    }
}

/// A delayed ACK would have come before: all but that was the way.
#[test]
fn what_no_delayed_ack_explains_is_the_way() {
    let a = asked(ms(150), 64, |_, _| ());
    assert!(of(&a, Cause::PathDelay) > ms(19 * 150), "{}", of(&a, Cause::PathDelay));
    let way = spans(&a).into_iter().rfind(|s| s.cause == Cause::PathDelay).unwrap();
    assert!(way.confidence > 0.8, "{way:?}");
}
