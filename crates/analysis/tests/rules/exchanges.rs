//! Where exchanges are cut, and what lies between them.

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_analysis::Ended;
use tcpwhy_base::{Cause, Nanos};

fn opened(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w
}

#[test]
fn an_upload_is_cut_at_long_pauses() {
    // RTO is 220 ms, so that a second counts.
    let mut w = opened(Tap::Client);
    let mut t = 30;
    for pause in [900, 1100, 0] {
        w.at(ms(t)).client().data(100);
        w.at(ms(t + 10)).server().ack();
        t += pause;
    }
    w.at(ms(2050)).client().fin();
    w.at(ms(2060)).server().fin();
    w.at(ms(2070)).client().ack();
    let c = w.connection();
    let parts: Vec<_> = c.exchanges.iter().map(|e| (e.id, e.end - e.start, e.ended)).collect();
    assert_eq!(parts, [(1, ms(900), Ended::Complete), (2, ms(0), Ended::Complete)]);
    assert_eq!(c.exchanges[0].spans[0].cause, Cause::SenderPause);
    assert_eq!(c.exchanges[0].bytes[0] + c.exchanges[1].bytes[0], 300);
    assert_eq!(c.gaps[1].spans[0].cause, Cause::ClientThink);
    assert_eq!(c.gaps[1].end - c.gaps[1].start, ms(1100));
}

#[test]
fn a_pause_before_the_body_stays_in_the_exchange() {
    // Expect: 100-continue, and no answer within a second.
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(200);
    w.at(ms(40)).server().ack();
    w.at(ms(1230)).client().data(1000);
    w.at(ms(1240)).server().data(50);
    w.at(ms(1250)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..1250 1200>50
           sender_pause client 30..1230 #4-6
           path_delay network 1230..1250 #6-7",
    );
}

/// Who opened the connection waited for its first words, for as long as a client does.
#[test]
fn a_server_that_speaks_first() {
    let greeted = |left: Nanos| {
        let mut w = opened(Tap::Client);
        w.at(left).server().data(80);
        w.at(left + ms(10)).client().ack();
        w.at(left + ms(20)).client().data(100);
        w.at(left + ms(30)).server().data(50);
        w.at(left + ms(40)).client().ack();
        w
    };
    greeted(ms(40)).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         exchange 20..50 0>80
           path_delay network 20..30 #3-4
           server_think server 30..40 #3-4
           path_delay network 40..50 #3-4
         gap 50..60
           client_think client 50..60 #4-6
         exchange 60..80 100>50
           path_delay network 60..80 #6-7",
    );
    let waited = |left: Nanos| greeted(left).connection().exchanges[0].start;
    let zero = greeted(ms(40)).segments()[0].time;
    let latest = Nanos::secs(300) + ms(10);
    assert_eq!([latest, latest + ms(1)].map(|left| waited(left) - zero), [ms(20), latest + ms(11)]);
}

#[test]
fn requests_that_overlap_answers_make_one_exchange() {
    let mut w = opened(Tap::Middle);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(1448);
    w.server().data(300);
    w.at(ms(48)).client().data(100);
    w.at(ms(58)).server().data(400);
    w.at(ms(68)).client().ack();
    let c = w.connection();
    assert_eq!(c.exchanges.len(), 1);
    let e = &c.exchanges[0];
    assert_eq!((e.bytes, e.turns, e.duplex), ([200, 2148], 2, true));
}

#[test]
fn turns_in_series_are_exchanges_of_their_own() {
    let mut w = opened(Tap::Client);
    for i in 0..3 {
        w.at(ms(30 + 25 * i)).client().data(100);
        w.after(ms(10)).server().data(50);
        w.after(ms(10)).client().ack();
    }
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..50 100>50
           path_delay network 30..50 #4-5
         gap 50..55
           client_think client 50..55 #5-7
         exchange 55..75 100>50
           path_delay network 55..75 #7-8
         gap 75..80
           client_think client 75..80 #8-10
         exchange 80..100 100>50
           path_delay network 80..100 #10-11",
    );
    assert_eq!(c.exchanges[0].with_setup, Some(ms(50)));
    assert_eq!(c.exchanges[1].with_setup, None);
}

#[test]
fn a_request_without_an_answer() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().ack();
    w.at(ms(5000)).client().fin();
    w.at(ms(5010)).server().fin();
    w.at(ms(5020)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..5000 100>0 silent
           path_delay network 30..40 #4-4
           server_think server 40..4990 #4-4
           path_delay network 4990..5000 #4-4
         gap 5000..5020
           client_think client 5000..5020 #4-8",
    );
}

#[test]
fn a_reset_instead_of_an_answer() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    w.at(ms(80)).server().ack();
    w.at(ms(140)).server().rst();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..130 100>0 rst
           server_think server 30..130 #4-6",
    );
}

#[test]
fn a_client_that_waits_for_the_close() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(540)).server().fin();
    w.at(ms(551)).client().fin();
    w.at(ms(561)).server().ack();
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..50 100>50
           path_delay network 30..50 #4-5
         gap 50..571
           client_think client 50..571 #5-9",
    );
    assert_eq!(c.closed_after, Some(ms(500)));
}

/// A push of the server crosses the first of two small writes; the second waits for the ACK of the first, and
/// acknowledges the push as well. It leaves with that ACK, a wake-up (1 ms) later at most: Nagle held it, and
/// it asks for nothing new (rule 78).
#[test]
fn what_was_held_opens_no_exchange() {
    let with = |late: Nanos| {
        let mut w = opened(Tap::Client);
        w.at(ms(30)).client().data(4);
        w.server().data(500);
        w.at(ms(80)).server().ack();
        w.at(ms(90) + late).client().data(60);
        w.after(ms(10)).server().data(50);
        w.after(ms(10)).client().ack();
        w
    };
    with(ms(1)).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..111 64>550 turns 2 duplex
           path_delay network 30..40 #4-5
           nagle_delayed_ack client 40..91 #5-7
           path_delay network 91..111 #7-8",
    );
    assert_eq!(with(ms(1) + us(1)).connection().exchanges.len(), 2);
}

/// Beside the server, which sent 500 bytes and then 300: the client's next request acknowledges all but the
/// last segment, which is still on its way to it. One that acknowledges neither was not asked after reading,
/// and belongs to the exchange that goes on (rule 7).
#[test]
fn the_last_segment_may_be_on_its_way() {
    let exchanges = |asked: i64| {
        let mut w = opened(Tap::Server);
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(500);
        w.at(ms(45)).server().data(300);
        w.at(ms(asked)).client().data(100);
        w.after(ms(10)).server().data(50);
        w.after(ms(10)).client().ack();
        w.connection().exchanges.len()
    };
    assert_eq!([49, 50].map(exchanges), [1, 2]);
}

/// A client closes its side 200 ms after its last byte, and the answer comes 500 ms after that: who reads up to the end
/// could not begin before (rule 144). A protocol whose requests tell where they end says who worked; nor does a
/// client wait that closes at once.
#[test]
fn a_request_may_end_with_the_fin_of_its_client() {
    for tap in [Tap::Client, Tap::Server] {
        let told = |closes: Nanos, says: &[u8]| {
            let mut w = Wire::new(tap, ms(20));
            w.handshake();
            w.at(ms(30)).client().data(100).says(says);
            w.at(ms(30) + closes).client().fin();
            w.at(ms(740)).server().data(500);
            w.server().fin();
            w.at(ms(750)).client().ack();
            let c = w.connection();
            let whole = c.exchanges[0].spans.iter();
            let unexplained =
                whole.filter(|s| s.cause == Cause::Unexplained).map(|s| (s.confidence, s.alternatives[0]));
            assert_eq!(c.exchanges.len(), 1);
            let ms = |cause| (c.budget.get(cause).0 + 500_000) / 1_000_000;
            let named = unexplained.map(|(c, other)| (c <= 0.5, other.map(|o| o.0))).collect::<Vec<_>>();
            (ms(Cause::ServerThink), ms(Cause::Unexplained), named)
        };
        let guess = vec![(true, Some(Cause::SenderPause))];
        assert_eq!(told(ms(200), b"\x01\x02\x03\x04abcd"), (500, 200, guess), "{tap:?}");
        assert_eq!(told(ms(200), b"GET / HT"), (700, 0, vec![]), "{tap:?}");
        assert_eq!(told(ms(10), b"\x01\x02\x03\x04abcd"), (700, 0, vec![]), "{tap:?}");
    }
}
