//! What libraries say to each other within TLS is no word of an application (rule 109): Finished, tickets,
//! settings of HTTP/2.

use crate::wire::{SERVER, Tap, Wire, ms, us};
use tcpwhy_analysis::{Connection, Ended};
use tcpwhy_base::{Cause, FixId, Nanos, Tls};

/// Two hosts 20 ms apart, in TLS up to the server's part of the handshake; the client's is due at 40 ms. Of
/// the server's it may be `captured` that some is encrypted.
fn hello(tap: Tap, offers: u8, captured: bool) -> Wire {
    hello_to(80, tap, offers, captured)
}

/// The same to this port.
fn hello_to(port: u16, tap: Tap, offers: u8, captured: bool) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.host[SERVER].end.port = port;
    w.handshake();
    w.client().data(300).tls(Tls::HANDSHAKE | offers);
    let encrypted = if captured { Tls::DATA } else { 0 };
    w.at(ms(30)).server().data(1000).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER | encrypted);
    w
}

const FINISHED: u8 = Tls::CHANGE_CIPHER | Tls::DATA | Tls::FINISHED;

/// The client has said its Finished.
fn finished(tap: Tap) -> Wire {
    let mut w = hello(tap, Tls::NO_H2, true);
    w.at(ms(40)).client().data(80).tls(FINISHED);
    w
}

/// And has asked for something behind it.
fn asked(tap: Tap, bytes: u32) -> Wire {
    let mut w = finished(tap);
    w.at(ms(40) + us(100)).client().data(bytes).tls(Tls::DATA);
    w
}

/// The request waits for the ACK of the Finished, which comes with a ticket.
fn held(mut w: Wire) -> Wire {
    w.at(ms(40)).client().data(80).tls(FINISHED);
    w.at(ms(50)).server().data(255).tls(Tls::DATA);
    w.at(ms(50) + us(30)).server().data(255).tls(Tls::DATA);
    w.at(ms(60)).client().data(100).tls(Tls::DATA);
    w.at(ms(70)).server().data(500).tls(Tls::DATA);
    w.at(ms(80)).client().ack();
    w
}

#[test]
fn a_request_that_nagle_holds_behind_the_finished() {
    for captured in [true, false] {
        held(hello(Tap::Client, Tls::NO_H2, captured)).tells(
            "setup 0..40 380>1510
               handshake network 0..20 #1-3
               tls_handshake network 20..40 #4-5
             exchange 40..80 100>500
               nagle client 40..60 #6-8
               path_delay network 60..80 #8-10",
        );
    }
    let c = held(hello(Tap::Server, Tls::NO_H2, true)).connection();
    assert_eq!((c.exchanges.len(), c.budget.get(Cause::Nagle)), (1, ms(20)));
}

/// A change of keys that was written for itself holds all that follows it.
fn held_in_the_handshake() -> Wire {
    let mut w = hello(Tap::Client, Tls::NO_H2, false);
    w.at(ms(40)).client().data(6).tls(Tls::CHANGE_CIPHER);
    w.at(ms(90)).server().ack();
    w.at(ms(100)).client().data(225).tls(Tls::DATA);
    w.at(ms(110)).server().data(255).tls(Tls::DATA);
    w.at(ms(160)).server().data(500).tls(Tls::DATA);
    w.at(ms(170)).client().ack();
    w
}

#[test]
fn what_ends_the_handshake_may_be_held_too() {
    let c = held_in_the_handshake().connection();
    assert_eq!(c.budget.get(Cause::NagleDelayedAck), ms(60));
    assert_eq!((c.exchanges.len(), c.budget.get(Cause::ServerThink)), (1, ms(50)));
}

/// The library writes the first piece: who asks cannot write both at once.
#[test]
fn what_is_held_within_tls_asks_for_no_larger_write() {
    let mut later = Wire::new(Tap::Client, ms(20));
    later.handshake();
    later.client().data(4).tls(Tls::DATA);
    later.at(ms(30)).server().ack();
    later.at(ms(40)).client().data(100).tls(Tls::DATA);
    later.at(ms(50)).server().data(50).tls(Tls::DATA);
    later.at(ms(60)).client().ack();
    for (w, fixes) in [
        (held(hello(Tap::Client, Tls::NO_H2, true)), [FixId::Nodelay, FixId::ReuseConnections]),
        (held_in_the_handshake(), [FixId::Nodelay, FixId::ReuseConnections]),
        (later, [FixId::OneWrite, FixId::Nodelay]),
    ] {
        let analysis = w.analysis();
        let held = |c| matches!(c, Cause::Nagle | Cause::NagleDelayedAck);
        let found = analysis.findings.iter().find(|f| held(f.cause)).unwrap();
        assert_eq!(found.fixes.iter().map(|f| f.fix).take(2).collect::<Vec<_>>(), fixes);
    }
}

fn only(c: &Connection) -> (usize, [u64; 2], u32) {
    (c.exchanges.len(), c.exchanges[0].bytes, c.exchanges[0].turns)
}

#[test]
fn tickets_are_no_answer() {
    // Both at once, and apart: at a server that works 100 ms.
    for (tap, apart) in [(Tap::Client, us(10)), (Tap::Client, ms(2)), (Tap::Server, ms(2))] {
        let mut w = asked(tap, 100);
        w.at(ms(50) + us(200)).server().data(255).tls(Tls::DATA);
        w.after(apart).server().data(255).tls(Tls::DATA);
        w.at(ms(150) + us(100)).server().data(500).tls(Tls::DATA);
        w.at(ms(160) + us(100)).client().ack();
        let c = w.connection();
        assert_eq!(only(&c), (1, [100, 500], 1), "{apart}");
        let x = &c.exchanges[0];
        // Beside the server a nanosecond is its reaction.
        let (trip, own) = if tap == Tap::Client { (ms(20), 0) } else { (ms(0), 1) };
        assert_eq!(x.response_start.unwrap() - x.start, ms(100) + trip, "{apart}");
        assert_eq!(c.budget.get(Cause::ServerThink), ms(100) - Nanos(own), "{apart}");
        assert_eq!(c.setup.unwrap().bytes, [380, 1510]);
    }
}

/// An answer that goes on after a pause is one of which a part was late, once it is known to be more than tickets.
#[test]
fn an_answer_of_more_than_tickets_pauses() {
    let mut w = asked(Tap::Client, 100);
    w.at(ms(50) + us(100)).server().write(3_000);
    w.at(ms(150)).server().data(500).tls(Tls::DATA);
    w.at(ms(160)).client().ack();
    let c = w.connection();
    assert_eq!((c.budget.get(Cause::SenderPause), c.exchanges[0].bytes), (ms(100) - us(100), [100, 3_500]));
}

#[test]
fn nobody_asks_by_a_finished() {
    let mut w = finished(Tap::Client);
    w.at(ms(50)).server().data(510).tls(Tls::DATA);
    // Closed, with a close_notify or without.
    for notify in [0, 24] {
        let mut w = w.clone();
        w.at(ms(65));
        if notify > 0 {
            w.client().data(notify).tls(Tls::DATA);
        }
        w.client().fin();
        w.at(ms(75)).server().fin();
        w.at(ms(85)).client().ack();
        let c = w.connection();
        assert_eq!((c.exchanges.len(), c.setup.unwrap().bytes), (0, [380 + u64::from(notify), 1510]));
    }
    // Or kept for a request that comes later.
    w.at(ms(560)).client().data(100).tls(Tls::DATA);
    w.at(ms(570)).server().data(500).tls(Tls::DATA);
    w.at(ms(580)).client().ack();
    w.tells(
        "setup 0..40 380>1510
           handshake network 0..20 #1-3
           tls_handshake network 20..40 #4-5
         gap 40..560
           client_think client 40..560 #6-8
         exchange 560..580 100>500
           path_delay network 560..580 #8-9",
    );
}

/// A server that speaks first, so many milliseconds after it has sent its tickets; the client answers after `reply`.
fn greets(port: u16, later: i64, reply: Nanos) -> Connection {
    let mut w = hello_to(port, Tap::Client, 0, true);
    w.at(ms(40)).client().data(80).tls(FINISHED);
    w.at(ms(50)).server().data(510).tls(Tls::DATA);
    w.at(ms(60)).client().ack();
    w.at(ms(50 + later)).server().data(60).tls(Tls::DATA);
    w.at(ms(60 + later) + reply).client().data(40).tls(Tls::DATA);
    w.after(ms(10)).server().data(50).tls(Tls::DATA);
    w.after(ms(10)).client().ack();
    w.connection()
}

#[test]
fn a_greeting_within_tls_is_waited_for() {
    for (port, later, reply) in [
        (7_001, 30, us(200)),
        // Where one is expected, and where no tickets come so late, the client may take its time.
        (993, 30, ms(80)),
        (7_001, 2_000, ms(80)),
    ] {
        let c = greets(port, later, reply);
        let (greeting, rest) = c.exchanges.split_first().unwrap();
        assert_eq!((rest.len(), greeting.bytes[1]), (1, 60), "{port} {later}");
        assert_eq!(c.budget.get(Cause::ServerThink), ms(later), "{port} {later}");
    }
}

/// Tickets come in the middle of an upload: its client goes on with it, whatever it has heard.
#[test]
fn tickets_do_not_cut_an_upload() {
    let mut w = asked(Tap::Client, 1_000);
    w.client().write(9_000);
    w.at(ms(50)).server().data(255).tls(Tls::DATA);
    w.at(ms(50) + us(20)).server().data(255).tls(Tls::DATA);
    w.at(ms(60) + us(50)).client().write(20_000);
    w.at(ms(70) + us(50)).server().ack();
    w.at(ms(80) + us(50)).client().write(500);
    w.at(ms(190)).server().data(300).tls(Tls::DATA);
    w.at(ms(200)).client().ack();
    let c = w.connection();
    assert_eq!(only(&c), (1, [30_500, 300], 1));
    assert_eq!(c.exchanges[0].response_start.unwrap() - c.exchanges[0].start, ms(160) - us(100));
}

/// A client in the middle of a write, or that has not heard them, goes on with its request, though a single
/// ticket came a whole trip after its last words.
#[test]
fn a_ticket_is_no_end_of_what_goes_on() {
    // At the server what left before it was heard passes behind it.
    for (tap, within, next) in [(Tap::Server, false, ms(45)), (Tap::Client, true, ms(60) + us(200))] {
        let mut w = asked(tap, 1_000);
        w.client().write(9_000);
        if within {
            w.client().data(1_448);
        }
        w.at(ms(50) + us(110)).server().data(255).tls(Tls::DATA);
        w.at(next).client().write(3_000);
        w.at(ms(170)).server().data(300).tls(Tls::DATA);
        w.at(ms(180)).client().ack();
        let c = w.connection();
        assert_eq!((c.exchanges.len(), c.exchanges[0].turns), (1, 1), "{tap:?}");
    }
}

/// What Nagle's algorithm holds behind the first ticket is the rest of the same words: the hold is the
/// server's, and the trip before it the path's.
#[test]
fn a_server_with_nagle_on_holds_what_follows_its_ticket() {
    let mut w = asked(Tap::Client, 100);
    w.at(ms(50) + us(200)).server().data(255).tls(Tls::DATA);
    w.at(ms(100) + us(200)).client().ack();
    w.at(ms(110) + us(200)).server().data(755).tls(Tls::DATA);
    w.at(ms(120) + us(200)).client().ack();
    let c = w.connection();
    assert_eq!((c.exchanges.len(), c.budget.get(Cause::NagleDelayedAck)), (1, ms(60)));
    // The request has come 100 µs before the ticket leaves, which is no work.
    assert_eq!(c.budget.get(Cause::PathDelay), ms(20) + us(100));
}

/// What comes in the middle of an upload may be its answer, if nothing else does.
#[test]
fn an_upload_may_be_answered_early() {
    let mut w = asked(Tap::Client, 1_000);
    w.client().write(9_000);
    w.at(ms(50) + us(100)).server().data(255).tls(Tls::DATA);
    w.at(ms(59)).client().write(3_000);
    w.at(ms(69)).server().ack();
    w.at(ms(100)).client().fin();
    w.at(ms(110)).server().fin();
    w.at(ms(120)).client().ack();
    let c = w.connection();
    assert_eq!((c.exchanges.len(), c.exchanges[0].ended), (1, Ended::Complete));
    assert_eq!(c.exchanges[0].bytes, [13_000, 255]);
}

/// HTTP/2: settings go to and fro while the server works 100 ms, in TLS 1.3 behind tickets.
fn with_settings(newer: bool, answer: u32) -> Connection {
    let (finished, tickets) = (if newer { FINISHED } else { 0 }, if newer { 255 } else { 0 });
    let mut w = hello(Tap::Client, 0, newer);
    if newer {
        w.at(ms(40)).client().data(80).tls(finished);
    } else {
        w.at(ms(40)).client().data(120).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER);
        w.at(ms(50)).server().data(51).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER);
        w.at(ms(60));
    }
    w.client().data(86).tls(Tls::DATA);
    w.client().data(62).tls(Tls::DATA);
    w.after(ms(10)).server().ack();
    if tickets > 0 {
        w.server().data(tickets).tls(Tls::DATA);
        w.server().data(tickets).tls(Tls::DATA);
    }
    w.after(ms(1)).server().data(71).tls(Tls::DATA);
    w.after(ms(10)).client().data(if newer { 31 } else { 38 }).tls(Tls::DATA);
    w.after(ms(99));
    w.server().data(answer).tls(Tls::DATA);
    w.after(ms(10)).client().ack();
    w.connection()
}

#[test]
fn settings_are_no_answer() {
    for newer in [true, false] {
        let c = with_settings(newer, 481);
        assert_eq!(only(&c), (1, [148, 481], 1), "{newer}");
        assert_eq!(c.budget.get(Cause::ServerThink), ms(110), "{newer}");
    }
}

/// The same in the clear, as gRPC has it within a data centre.
#[test]
fn settings_in_the_clear_are_no_answer() {
    let told = |first: &[u8], len: u32| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.client().data(64).says(b"PRI * HT");
        w.client().data(40).says(&[0, 0, 31, 1, 5, 0, 0, 0]);
        w.at(ms(30)).server().data(len).says(first);
        w.at(ms(40)).client().data(9).says(&[0, 0, 0, 4, 1, 0, 0, 0]);
        w.at(ms(130)).server().data(300).says(&[0, 0, 50, 1, 4, 0, 0, 0]);
        w.at(ms(140)).client().ack();
        let c = w.connection();
        (only(&c), c.budget.get(Cause::ServerThink))
    };
    // SETTINGS and what may follow it; HEADERS are an answer, and so is more than a server has to say first.
    assert_eq!(told(&[0, 0, 18, 4, 0, 0, 0, 0], 49), ((1, [104, 300], 1), ms(100)));
    assert_eq!(told(&[0, 0, 18, 1, 4, 0, 0, 0], 49), ((1, [104, 349], 1), Nanos::ZERO));
    assert_eq!(told(&[0, 0, 18, 4, 0, 0, 0, 0], 700), ((1, [104, 1_000], 1), Nanos::ZERO));
}

/// A quick answer beside them stays one, though the client has to say yet that it has the settings.
#[test]
fn a_small_answer_beside_settings_stays() {
    let mut w = hello(Tap::Client, 0, true);
    w.at(ms(40)).client().data(80).tls(FINISHED);
    w.client().data(148).tls(Tls::DATA);
    w.at(ms(50)).server().data(255).tls(Tls::DATA);
    w.server().data(300).tls(Tls::DATA);
    w.at(ms(60)).client().data(31).tls(Tls::DATA);
    for _ in 0..2 {
        w.after(ms(30)).client().data(60).tls(Tls::DATA);
        w.after(ms(10)).server().data(200).tls(Tls::DATA);
    }
    w.after(ms(10)).client().ack();
    let c = w.connection();
    let bytes: Vec<_> = c.exchanges.iter().map(|x| x.bytes).collect();
    assert_eq!(bytes, [[148, 555], [60, 200], [60, 200]]);
    assert!(c.exchanges.iter().all(|x| x.response_start.is_some() && x.turns == 1));
}

/// Rule 40. A client says goodbye and closes: that is no request, and its way is time after the last byte.
/// Longer, without its FIN in time, or answered with more than a goodbye of TLS it may be one.
#[test]
fn goodbyes() {
    let with_hello = |hello: u8, bytes: u32, tls: bool, fin: i64, answer: u32| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        let bits = |b: u8| if tls { b } else { 0 };
        w.at(ms(30)).client().data(300).tls(bits(Tls::HANDSHAKE | hello));
        w.at(ms(40)).server().data(900).tls(bits(Tls::HANDSHAKE | Tls::CHANGE_CIPHER));
        w.at(ms(52)).client().data(100).tls(bits(Tls::DATA));
        w.at(ms(62)).server().data(50).tls(bits(Tls::DATA));
        w.at(ms(90)).client().data(bytes).tls(bits(Tls::ALERT));
        w.at(ms(90 + fin)).client().fin();
        if answer > 0 {
            w.at(ms(100 + fin)).server().data(answer).tls(bits(Tls::ALERT));
        }
        w.at(ms(100 + fin)).server().fin();
        w.after(ms(11)).client().ack();
        let c = w.connection();
        let after: Nanos = c.gaps.iter().map(|g| g.end - g.start).fold(Nanos::ZERO, |a, b| a + b);
        (c.exchanges.len() + usize::from(c.setup.is_some_and(|s| s.tls_trips == 1)), after)
    };
    let exchanges =
        |bytes: u32, tls: bool, fin: i64, answer: u32| with_hello(Tls::NO_H2, bytes, tls, fin, answer);
    // The handshake and the request; 18 ms before the goodbye, 21 behind it.
    assert_eq!(exchanges(31, true, 0, 0), (2, ms(39)));
    assert_eq!(exchanges(31, true, 20, 0), (2, ms(59)));
    // A last word, and the alert.
    assert_eq!([62, 63].map(|bytes| exchanges(bytes, true, 0, 0).0), [2, 3]);
    // GOAWAY, where HTTP/2 may be spoken, and the alert.
    assert_eq!([79, 80].map(|bytes| with_hello(0, bytes, true, 0, 0).0), [2, 3]);
    assert_eq!(exchanges(31, true, 21, 0).0, 3);
    assert_eq!(exchanges(31, true, 0, 31), (2, ms(39)));
    assert_eq!(exchanges(32, true, 0, 31).0, 3);
    assert_eq!(exchanges(31, true, 0, 32).0, 3);
    // The handshake is a request without TLS.
    assert_eq!(exchanges(5, false, 0, 0), (2, ms(39) + ms(12)));
    assert_eq!([exchanges(6, false, 0, 0).0, exchanges(5, false, 0, 1).0], [3, 3]);
}

/// A server of TLS 1.3 that asks for another ClientHello, and one request.
pub(crate) fn hello_asked_for_again() -> Wire {
    hello_asked_for_again_by(Tls::HANDSHAKE | Tls::CHANGE_CIPHER)
}

fn hello_asked_for_again_by(records: u8) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.client().data(300).tls(Tls::HANDSHAKE);
    w.at(ms(30)).server().data(99).tls(records);
    w.at(ms(40)).client().data(332).tls(Tls::CHANGE_CIPHER | Tls::HANDSHAKE);
    w.at(ms(50)).server().data(1000).tls(Tls::HANDSHAKE | Tls::DATA);
    w.at(ms(60)).client().data(80).tls(Tls::DATA);
    w.client().data(400).tls(Tls::DATA);
    w.at(ms(70)).server().data(500).tls(Tls::DATA);
    w.at(ms(80)).client().ack();
    w
}

/// A HelloRetryRequest takes a round trip more; the ChangeCipherSpec beside it changes nothing (RFC 8446, 2.1 and D.4).
#[test]
fn a_hello_that_is_asked_for_again_takes_another_round_trip() {
    let w = hello_asked_for_again();
    let c = w.tells(
        "setup 0..60 632>1099
           handshake network 0..20 #1-3
           tls_handshake network 20..60 #4-7
         exchange 60..80 480>500
           path_delay network 60..80 #9-10",
    );
    assert!(c.setup.is_some_and(|s| s.tls_asked_again && s.tls_trips == 2));
}

/// The record behind it was not captured: its own random number tells (RFC 8446, 4.1.3).
#[test]
fn a_hello_that_is_asked_for_again_is_told_by_its_first_bytes() {
    for records in [Tls::HANDSHAKE | Tls::ASKS_AGAIN, Tls::HANDSHAKE | Tls::ASKS_AGAIN | Tls::CHANGE_CIPHER] {
        let c = hello_asked_for_again_by(records).connection();
        assert!(c.setup.is_some_and(|s| s.tls_asked_again && s.tls_trips == 2));
    }
    let c = hello_asked_for_again_by(Tls::HANDSHAKE).connection();
    assert!(c.setup.is_some_and(|s| !s.tls_asked_again && s.tls_trips == 2), "as TLS 1.2 has it");
}
