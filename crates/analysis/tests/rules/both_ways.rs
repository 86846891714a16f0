//! Both ends send at the same time (rule 112).

use crate::wire::{Tap, Wire, ms, us};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, FixId, Nanos};

/// The hosts are so far apart, there and back.
const TRIP: Nanos = Nanos::millis(20);
const MSS: u32 = 1_448;

/// Both ends close from this moment on.
fn closed(mut w: Wire, t: Nanos) -> Connection {
    w.at(t).client().fin();
    w.at(t + ms(10)).server().fin();
    w.at(t + ms(20)).client().ack();
    w.connection()
}

/// What happens at a host, in this order where it happens at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// So many segments have come to the server, or their ACK to the client.
    Arrives(u32),
    Acknowledged(u32),
    /// The server answers some of what it has read.
    Answers,
}

/// A client that writes all at once, with a congestion window that begins at ten segments and grows with each
/// ACK, and a server that acknowledges every other segment and answers with a hundred bytes what eight of
/// them asked for, a little later.
fn stream(segments: u32, tap: Tap) -> Wire {
    limited(segments, 4 << 20, tap)
}

/// The same, of which the server takes no more at once than its window.
fn limited(segments: u32, window: u32, tap: Tap) -> Wire {
    let mut w = Wire::new(tap, TRIP);
    w.server().window(window);
    w.handshake();
    let way = TRIP.part(2);
    let mut events = BinaryHeap::new();
    let (mut left, mut read, mut sent, mut heard) = (segments, 0, 0, 0);
    let mut flies = |w: &mut Wire, events: &mut BinaryHeap<_>, t: Nanos, (heard, most): (u32, u32)| {
        let most = most.min((window / MSS + heard - sent) / 2 * 2);
        sent += most.min(left);
        for n in 0..most.min(left) {
            let at = t + us(1).times(i64::from(n));
            w.at(at).client().data(MSS);
            if n % 2 == 1 {
                events.push(Reverse((at + way, Event::Arrives(2))));
            }
        }
        left -= most.min(left);
    };
    flies(&mut w, &mut events, ms(30), (0, 10));
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
            Event::Acknowledged(n) => {
                heard += n;
                flies(&mut w, &mut events, t + us(15), (heard, 2 * n));
            }
            Event::Answers => _ = w.at(t).server().data(100),
        }
    }
    w.at(last);
    w
}

#[test]
fn a_stream_with_answers_in_between_is_one() {
    for tap in [Tap::Client, Tap::Server] {
        let w = stream(1_200, tap);
        let last = w.now;
        let c = closed(w, last + ms(50));
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

/// A window of eight segments is full from the first flight on, which is less than an initial window.
#[test]
fn a_small_window_of_a_stream() {
    for tap in [Tap::Client, Tap::Server] {
        let w = limited(80, 8 * MSS, tap);
        let last = w.now;
        let c = closed(w, last + ms(50));
        let (window, way) = (c.budget.get(Cause::ReceiveWindow), c.budget.get(Cause::PathDelay));
        assert!(window > TRIP.times(6) && way < TRIP, "{tap:?}: {:?}", c.budget);
    }
}

/// What the client asks for when all has been answered is another request.
#[test]
fn a_request_behind_a_stream() {
    for tap in [Tap::Client, Tap::Server] {
        let mut w = stream(1_200, tap);
        let t = w.now + ms(300);
        w.at(t).client().data(200);
        w.at(t + ms(10)).server().data(500);
        w.at(t + ms(20)).client().ack();
        let c = closed(w, t + ms(100));
        assert_eq!(c.exchanges.len(), 2, "{tap:?}");
    }
}

/// A client that keeps `out` requests of so many bytes out, which a server answers at once, that has
/// acknowledged none of their segments before: all of what is on its way of a request came with one
/// interrupt.
fn requests(out: i64, bytes: u32, tap: Tap) -> Connection {
    acknowledged(out, bytes, (us(200), Nanos::ZERO), tap)
}

/// The first of them `apart`; where the server takes time for each, that it has come is acknowledged before.
fn acknowledged(out: i64, bytes: u32, (apart, work): (Nanos, Nanos), tap: Tap) -> Connection {
    let mut w = Wire::new(tap, TRIP);
    w.server().window(4 << 20);
    w.handshake();
    let way = TRIP.part(2);
    let mut due: BinaryHeap<_> = (0..out).map(|n| Reverse((ms(30) + apart.times(n), 0))).collect();
    let (mut asked, mut last) = (0, Nanos::ZERO);
    while let Some(Reverse((t, what))) = due.pop() {
        last = t;
        if what == 2 {
            w.at(t).server().data(100);
            due.push(Reverse((t + way + us(20), 0)));
        } else if what == 1 {
            w.at(t).server().ack();
        } else if asked < 30 * out {
            asked += 1;
            w.at(t).client().write(bytes);
            if work > Nanos::ZERO {
                due.push(Reverse((t + way, 1)));
            }
            due.push(Reverse((t + way + us(100) + work, 2)));
        }
    }
    closed(w, last + ms(50))
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

/// One request after the other, each of two initial windows, whose answer acknowledges all of it; and full
/// segments, fewer at once than an initial window.
#[test]
fn large_requests_and_small_flights_are_no_streams() {
    for tap in [Tap::Client, Tap::Server] {
        let c = requests(1, 20 * MSS, tap);
        assert_eq!(c.exchanges.len(), 30, "{tap:?}");
        let c = requests(3, MSS, tap);
        assert_eq!(c.budget.get(Cause::SlowStart), Nanos::ZERO, "{tap:?}: {:?}", c.budget);
    }
}

/// Four requests of 16 KB out, 5 ms apart, each of which is acknowledged at once and answered 5 ms later:
/// there was room before the answer came.
#[test]
fn room_that_was_there_before_lets_nothing_go() {
    let c = acknowledged(4, 16_384, (ms(5), ms(5)), Tap::Client);
    assert_eq!(c.budget.get(Cause::SlowStart), Nanos::ZERO, "{:?}", c.budget);
}
