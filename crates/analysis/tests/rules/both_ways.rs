//! Both ends send at the same time (rule 112).

use crate::wire::{Tap, Wire, ms, us};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, FixId, Nanos};

/// The hosts are so far apart, there and back.
const TRIP: Nanos = Nanos::millis(20);
const MSS: u32 = 1_448;

/// What happens at a host, in this order where it happens at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// So many segments have come to the server, or their ACK to the client.
    Arrives(u32),
    Acknowledged(u32),
    /// The server answers some of what it has read.
    Answers,
}

/// A client that writes all at once, with a congestion window that begins at ten segments and grows with each ACK, and a server that acknowledges every other
/// segment and answers with a hundred bytes what eight of them asked for, a little later.
fn stream(segments: u32, tap: Tap) -> Connection {
    let mut w = Wire::new(tap, TRIP);
    w.server().window(4 << 20);
    w.handshake();
    let way = TRIP.part(2);
    let mut events = BinaryHeap::new();
    let (mut left, mut read) = (segments, 0);
    let mut flies = |w: &mut Wire, events: &mut BinaryHeap<_>, t: Nanos, most: u32| {
        for n in 0..most.min(left) {
            let at = t + us(1).times(i64::from(n));
            w.at(at).client().data(MSS);
            if n % 2 == 1 {
                events.push(Reverse((at + way, Event::Arrives(2))));
            }
        }
        left -= most.min(left);
    };
    flies(&mut w, &mut events, ms(30), 10);
    let mut last = Nanos::ZERO;
    while let Some(Reverse((t, event))) = events.pop() {
        last = t;
        match event {
            Event::Arrives(n) => {
                w.at(t).server().ack();
                events.push(Reverse((t + way, Event::Acknowledged(n))));
                read += n;
                if read % 8 == 0 {
                    events.push(Reverse((t + us(150), Event::Answers)));
                }
            }
            Event::Acknowledged(n) => flies(&mut w, &mut events, t + us(15), 2 * n),
            Event::Answers => _ = w.at(t).server().data(100),
        }
    }
    w.at(last + ms(50)).client().fin();
    w.at(last + ms(60)).server().fin();
    w.at(last + ms(70)).client().ack();
    w.connection()
}

#[test]
fn a_stream_with_answers_in_between_is_one() {
    for tap in [Tap::Client, Tap::Server] {
        let c = stream(1_200, tap);
        // Seven flights: 10, 20, ... 640 segments.
        let (slow, way) = (c.budget.get(Cause::SlowStart), c.budget.get(Cause::PathDelay));
        assert!(
            slow > TRIP.times(5) && slow < TRIP.times(6) + ms(1) && way < ms(1),
            "{tap:?}: {:?}",
            c.budget
        );
        let fixes = c.findings.iter().flat_map(|f| &f.fixes);
        assert!(fixes.clone().all(|fix| fix.fix != FixId::FewerRoundTrips), "{fixes:?}");
        assert_eq!(c.exchanges.len(), 1, "{tap:?}");
    }
}

/// A client that keeps `out` requests of so many bytes out, which a server answers at once, that has acknowledged none of their segments before: all of what is
/// on its way of a request came with one interrupt.
fn requests(out: i64, bytes: u32, tap: Tap) -> Connection {
    let mut w = Wire::new(tap, TRIP);
    w.server().window(4 << 20);
    w.handshake();
    let way = TRIP.part(2);
    let mut due: BinaryHeap<_> = (0..out).map(|n| Reverse((ms(30) + us(200).times(n), false))).collect();
    let (mut asked, mut last) = (0, Nanos::ZERO);
    while let Some(Reverse((t, answers))) = due.pop() {
        last = t;
        if answers {
            w.at(t).server().data(100);
            due.push(Reverse((t + way + us(20), false)));
        } else if asked < 30 * out {
            asked += 1;
            w.at(t).client().write(bytes);
            due.push(Reverse((t + way + us(100), true)));
        }
    }
    w.at(last + ms(50)).client().fin();
    w.at(last + ms(60)).server().fin();
    w.at(last + ms(70)).client().ack();
    w.connection()
}

#[test]
fn who_asks_for_more_with_each_answer_takes_turns() {
    for tap in [Tap::Client, Tap::Server] {
        let c = requests(4, 16_384, tap);
        let of = |cause| c.budget.get(cause);
        let (way, other) = (of(Cause::PathDelay), of(Cause::SlowStart) + of(Cause::ServerThink));
        assert!(other < TRIP.times(3), "{tap:?}: {:?}", c.budget);
        // At the server the way of answers and requests lies between the exchanges.
        assert!(way > TRIP.times(24) || matches!(tap, Tap::Server), "{tap:?}: {:?}", c.budget);
    }
}

/// One request after the other, each of two initial windows, whose answer acknowledges all of it; and full segments, fewer at once than an initial window.
#[test]
fn large_requests_and_small_flights_are_no_streams() {
    for tap in [Tap::Client, Tap::Server] {
        let c = requests(1, 20 * MSS, tap);
        assert_eq!(c.exchanges.len(), 30, "{tap:?}");
        let c = requests(3, MSS, tap);
        assert_eq!(c.budget.get(Cause::SlowStart), Nanos::ZERO, "{tap:?}: {:?}", c.budget);
    }
}
