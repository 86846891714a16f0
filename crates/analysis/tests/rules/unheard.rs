//! Rule 150: who waits for an answer when its capture ends has waited until then.

use crate::wire::{CLIENT, SERVER, Tap, Wire, ms};
use tcpwhy_analysis::{Analyzer, Config, Connection, Detail, Ended};
use tcpwhy_base::{Cause, Nanos, Observation, Segment, Watched};

/// A request of 60 ms that was answered, one that is acknowledged after 40 ms, and what else `then` adds.
fn asks(head: &[u8], answered: bool, then: impl Fn(&mut Wire)) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    if answered {
        w.at(ms(30)).client().data(100).says(head);
        w.at(ms(90)).server().data(200);
        w.at(ms(100)).client().ack();
    }
    w.at(ms(200)).client().data(100).says(head);
    w.at(ms(250)).server().ack();
    then(&mut w);
    w
}

/// Its connection, where the tap was watched for so long.
fn watched(w: &Wire, from: Nanos, to: Nanos) -> Connection {
    let mut analyzer = Analyzer::new(Config { detail: Detail::All });
    let segments = w.segments();
    segments.iter().for_each(|s| analyzer.push(s));
    let zero = segments[0].time;
    let watched = Watched { file: 0, apart: false, from: zero + from, to: zero + to };
    analyzer.observe(Observation::Watched(&watched));
    *analyzer.finish().connections.remove(0)
}

/// How long its last exchange took, and what it says of the wait.
fn last(c: &Connection) -> (Nanos, String) {
    let last = c.exchanges.last().expect("there is one");
    assert_eq!(last.ended, Ended::CaptureEnd);
    let tiled = last.spans.iter().map(|s| s.duration()).fold(Nanos::ZERO, |a, b| a + b);
    assert_eq!((tiled, last.end), (last.end - last.start, c.end));
    let think = last.spans.iter().find(|s| s.cause == Cause::ServerThink).expect("it waits for its server");
    (last.end - last.start, format!("{:.1}: {}", think.confidence, think.facts.sentence()))
}

const HTTP: &[u8] = b"GET / HT";
const ANY: &[u8] = &[0, 0, 0, 96, 0, 3, 0, 7];

#[test]
fn a_request_without_an_answer_waits_until_the_capture_ends() {
    let second = Nanos::secs(6) - ms(200);
    let said = |s: &str| s.to_owned();
    // HTTP answers each; of others it is known where it has answered before. The tap's last packet is 260 ms after
    // the first, half a trip behind the ACK.
    for (head, answered) in [(HTTP, true), (HTTP, false), (ANY, true)] {
        let c = watched(&asks(head, answered, |_| ()), ms(0), Nanos::secs(6));
        assert_eq!(last(&c), (second, said("0.7: Nothing came back for 5.80 s; then the capture ends.")));
    }
    // What TCP itself would repeat passes within a timeout.
    let c = watched(&asks(HTTP, true, |_| ()), ms(0), ms(470));
    assert_eq!(last(&c), (ms(270), said("0.8: Nothing came back for 270 ms; then the capture ends.")));
    // One that only tells may have told all.
    let c = watched(&asks(ANY, false, |_| ()), ms(0), Nanos::secs(6));
    let unheard =
        "0.8: Nothing came back for 60.0 ms; the capture goes on, without another packet of the connection.";
    assert_eq!(last(&c), (ms(60), said(unheard)));
    // Nothing is known of when nobody watched.
    let c = watched(&asks(HTTP, true, |_| ()), ms(400), Nanos::secs(6));
    assert_eq!(last(&c), (ms(60), said("0.8: Nothing came back for 60.0 ms; then the capture ends.")));
}

/// What is not known to be a wait ends with the last packet.
#[test]
fn what_may_be_no_wait_ends_with_its_last_packet() {
    let end = |w: &Wire| {
        let c = watched(w, ms(0), Nanos::secs(60));
        let first = c.start;
        (c.end - first, c.exchanges.last().map(|x| x.end - first))
    };
    let waits = end(&asks(HTTP, true, |_| ()));
    assert_eq!(waits, (Nanos::secs(60), Some(Nanos::secs(60))));
    // An answer has come.
    let answered = end(&asks(HTTP, true, |w| {
        w.at(ms(300)).server().data(50);
    }));
    assert_eq!(answered, (ms(310), Some(ms(310))));
    // A request that nobody acknowledged would have been repeated: the tap saw no more of the connection.
    let mut unacked = Wire::new(Tap::Client, ms(20));
    unacked.handshake();
    unacked.at(ms(30)).client().data(100).says(HTTP);
    unacked.at(ms(90)).server().data(200);
    unacked.at(ms(100)).client().data(100).says(HTTP);
    assert_eq!(end(&unacked), (ms(100), Some(ms(100))));
    // What the server acknowledges with later shows that an answer had left, which never came.
    let lost = end(&asks(HTTP, true, |w| {
        w.at(ms(300)).server().data(50).lost_before_tap();
        w.at(ms(400)).server().ack();
    }));
    assert_eq!(lost.0, ms(410));
    // Where the server spoke first the client may be who answers, unless it is known what it speaks.
    for (head, until) in [(ANY, ms(260)), (HTTP, Nanos::secs(60))] {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(90)).server().data(200);
        w.at(ms(200)).client().data(100).says(head);
        w.at(ms(250)).server().ack();
        assert_eq!(end(&w).0, until);
    }
    // One end closes.
    for close in [CLIENT, SERVER] {
        let closed = end(&asks(HTTP, true, |w| {
            _ = w.at(ms(300)).end(close).fin();
        }));
        assert!(closed.0 < ms(400), "{closed:?}");
    }
    // Words of five bytes at most ask for nothing.
    for (len, until) in [(5, ms(260)), (6, Nanos::secs(60))] {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.at(ms(90)).server().data(200);
        w.at(ms(200)).client().data(len);
        w.at(ms(250)).server().ack();
        assert_eq!(end(&w).0, until, "{len} bytes");
    }
    // A client that goes on without an answer after a long pause tells, and does not ask.
    let tells = end(&asks(ANY, true, |w| {
        w.at(Nanos::secs(5)).client().data(100);
        w.after(ms(50)).server().ack();
    }));
    assert_eq!(tells.0, Nanos::secs(5) + ms(60));
}

/// Whether one analyzer takes all of the connections or several do, and whether they leave as they end or not, the
/// last packet of all of them is that of the capture.
#[test]
fn the_last_packet_is_that_of_all_connections() {
    let hangs = asks(HTTP, true, |_| ()).segments();
    let mut goes_on = asks(HTTP, true, |w| {
        w.at(Nanos::secs(9)).server().data(50);
    });
    goes_on.at(Nanos::secs(9) + ms(10)).client().ack();
    let mut other: Vec<Segment> = goes_on.segments();
    for s in &mut other {
        let client = if s.src.port == hangs[0].src.port { &mut s.src } else { &mut s.dst };
        client.port += 1;
        s.frame += 100;
    }
    let mut both: Vec<Segment> = [hangs, other].concat();
    both.sort_by_key(|s| s.time);
    let new = || Analyzer::new(Config { detail: Detail::All });
    let ends = |connections: Vec<Connection>| connections.iter().map(|c| c.end).collect::<Vec<_>>();
    let mut one = new();
    both.iter().for_each(|s| one.push(s));
    let one = ends(one.finish().connections.into_iter().map(|c| *c).collect());
    let last = both.iter().map(|s| s.time).max().expect("there are packets");
    assert_eq!(one, [last, last]);
    let mut several: Vec<Analyzer> = (0..2).map(|_| new()).collect();
    both.iter().for_each(|s| several[usize::from(s.frame > 100)].push(s));
    assert_eq!(ends(Analyzer::finish_all(several).connections.into_iter().map(|c| *c).collect()), one);
    let mut streaming = Analyzer::streaming(Config { detail: Detail::All });
    both.iter().for_each(|s| streaming.push(s));
    streaming.end_all();
    assert_eq!(ends(streaming.ended().map(|c| *c).collect()), one);
}
