//! Packets that the capture missed, though they came (rule 94), and such as came to the tap and no further.

use crate::wire::{Tap, Wire, analyze, ms, us};
use tcpwhy_analysis::Ended;
use tcpwhy_base::{Cause, Nanos, Tls};

/// The client's second write is held until the server's delayed ACK, five times. `missed` of these holds the
/// capture lacks.
fn held(missed: Option<u32>) -> Wire {
    let mut w = Wire::new(Tap::Client, us(200));
    w.handshake();
    for n in 0..5 {
        let start = ms(100 + 100 * n);
        w.at(start).client().data(10);
        w.at(start + ms(41)).server().ack();
        w.after(us(100)).client();
        let second = w.client().data(129);
        if missed == Some(n as u32) {
            second.unseen();
        }
        w.after(us(300)).server().ack();
        w.after(us(600)).server().data(25);
        w.after(us(150)).client().ack();
    }
    w
}

/// What the server's ACK tells of left with the ACK before it: the wait was Nagle's algorithm's, and no time
/// that the request was on its way.
#[test]
fn a_hold_whose_end_was_not_captured() {
    let budget = |missed| {
        let c = held(missed).connection();
        [Cause::NagleDelayedAck, Cause::Bandwidth, Cause::SenderPause, Cause::ServerThink]
            .map(|cause| c.budget.get(cause))
    };
    let whole = budget(None);
    assert!(whole[0] > ms(200) && whole[3] < ms(6), "{whole:?}");
    for n in 1..5 {
        let lacks = budget(Some(n));
        let differs = |i: usize| Nanos((whole[i] - lacks[i]).0.abs());
        assert!((0..4).all(|i| differs(i) < ms(1)), "{n}: {whole:?} {lacks:?}");
    }
}

/// An answer that acknowledges a request which never passed is no pause in the middle of the answer before.
/// What went by until the request had come at the latest is not known.
#[test]
fn a_request_that_was_not_captured() {
    let found = |acked_at_once: bool| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.handshake();
        for n in 0..3 {
            w.at(ms(100 + 300 * n)).client();
            let request = w.client().data(100);
            if n == 1 {
                request.unseen();
            }
            w.after(ms(10)).server();
            if acked_at_once {
                w.server().ack();
            }
            w.after(ms(100)).server().data(400);
            w.after(ms(10)).client().ack();
        }
        let c = w.connection();
        [Cause::SenderPause, Cause::Unexplained, Cause::ServerThink]
            .map(|cause| (c.budget.get(cause) + ms(1)).0 / 10_000_000)
    };
    // The first ACK of it tells when it had come.
    assert_eq!(found(true), [0, 20, 30]);
    assert_eq!(found(false), [0, 30, 20]);
}

/// A request that came to the server's tap five times, and of which its host acknowledged nothing, was not
/// repeated for nothing: who forgot the connection dropped it behind the tap. Where that acknowledges the
/// last of them, it had dropped the others (rule 100), and came back.
#[test]
fn what_its_host_never_acknowledged_was_not_repeated_for_nothing() {
    let causes = |acked: bool| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.after(ms(10)).server().data(50);
        w.after(ms(10)).client().ack();
        w.at(ms(1_000)).client().data(80);
        for after in [230, 460, 920, 1_840] {
            w.after(ms(after)).client().repeat(100, 80);
        }
        if acked {
            w.after(ms(20)).server().ack();
        }
        w.after(ms(2_000)).client().fin();
        let c = w.connection();
        [Cause::RetransmissionTimeout, Cause::KeepaliveOrDeadPeer]
            .map(|cause| c.budget.get(cause) > ms(1_500))
    };
    assert_eq!(causes(false), [false, true]);
    assert_eq!(causes(true), [true, false]);
}

/// An answered request and, two seconds later, one of so many bytes, behind which its client may close.
fn asked_again(bytes: u32, closes: bool) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(40));
    w.handshake();
    w.at(ms(50)).client().data(100);
    w.after(ms(40)).server().data(300);
    w.after(ms(1)).client().ack();
    w.at(ms(2_000)).client().data(bytes);
    if closes {
        w.client().fin();
    }
    w
}

/// A server, or a balancer before it, that is rid of an idle connection by a reset, which crosses the next request; a program that
/// ends with the request in its hands. Not what a client says last, nor an answer that has begun.
#[test]
fn a_reset_comes_instead_of_an_answer() {
    let reset = |bytes: u32, acked: bool, closes: bool, answered: bool| {
        let mut w = asked_again(bytes, closes);
        if acked {
            w.at(ms(2_040)).server().ack();
        }
        if answered {
            w.at(ms(2_040)).server().data(100);
        }
        w.at(ms(if acked { 2_100 } else { 2_010 })).server().rst();
        let c = w.connection();
        (c.reset_unheard, c.reset_heard)
    };
    assert_eq!(reset(100, false, false, false), (true, false));
    assert_eq!(reset(100, true, false, false), (false, true));
    assert_eq!(reset(100, true, false, true), (false, false));
    assert_eq!([reset(31, false, false, false), reset(100, false, true, false)], [(false, false); 2]);
}

/// A client with a timeout of half a second closes, and its kernel resets the answer that comes a second later: the request lasts
/// until it gave up (rule 163), which is known at both taps, and that its FIN is acknowledged late is no late ACK of the
/// request (rule 51). Who closes its own side alone takes the answer.
#[test]
fn a_client_gives_up_before_the_answer() {
    let given_up = |tap: Tap, resets: bool| {
        let mut w = Wire::new(tap, ms(20));
        w.handshake();
        w.at(ms(50)).client().data(100).says(b"GET / HT");
        w.after(ms(20)).server().ack();
        w.at(ms(530)).client().fin();
        w.after(ms(60)).server().ack();
        w.at(ms(1_550)).server().data(300);
        if resets {
            w.after(ms(20)).client().rst();
        } else {
            w.after(ms(20)).client().ack();
        }
        let c = w.connection();
        let x = &c.exchanges[0];
        let unexplained = c.budget.get(Cause::Unexplained) + c.gap_budget.get(Cause::Unexplained);
        assert_eq!(unexplained, Nanos::ZERO, "{tap:?}");
        (c.gave_up, x.end - x.start > ms(1_400), x.ended, c.budget.get(Cause::ServerThink) > ms(440))
    };
    for tap in [Tap::Client, Tap::Server] {
        assert_eq!(given_up(tap, true), (Some(ms(480)), false, Ended::Silent, true), "{tap:?}");
        let (gave_up, long, ended, _) = given_up(tap, false);
        assert_eq!((gave_up, long, ended), (None, true, Ended::Complete), "{tap:?}");
    }
}

/// A request that crosses the server's FIN is answered by a reset: who keeps connections longer than its
/// server meets that. An alert of TLS asks for nothing.
#[test]
fn a_request_may_come_too_late() {
    let late = |bytes: u32, crosses: bool, closes: bool, tls: u8| {
        let mut w = asked_again(bytes, closes);
        // Sent before the request is there, or behind it.
        let closed = ms(if crosses { 2_010 } else { 2_025 });
        w.at(closed).server().fin();
        if !closes {
            w.at(closed + ms(21)).client().fin();
        }
        w.at(closed + ms(50)).server().rst();
        let mut segments = w.segments();
        segments.iter_mut().filter(|s| s.len == bytes).for_each(|s| s.tls = Tls(tls));
        analyze(&segments).connections[0].too_late
    };
    let too_late = |bytes, crosses, closes| late(bytes, crosses, closes, 0);
    assert!(too_late(100, true, false));
    assert!(!too_late(31, true, false) && !too_late(100, false, false));
    // Within TLS the record tells: an alert by its type, or, of TLS 1.3, a record of that size.
    let within = |bytes, tls| late(bytes, true, false, tls);
    assert!(!within(31, Tls::ALERT) && !within(23, Tls::ALERT) && !within(24, Tls::DATA));
    assert!(within(31, Tls::DATA) && within(25, Tls::DATA) && within(23, Tls::DATA));
    // Behind a last word its client closes as well (SSH says that it goes).
    assert!(!too_late(100, true, true));
}

/// The server's last flight of TLS was not captured: what its client waited until it had come belongs to the
/// setup, none of it is lost.
#[test]
fn the_end_of_a_tls_handshake_that_was_not_captured() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.client().data(300).tls(Tls::HANDSHAKE);
    w.at(ms(80)).server().data(1_000).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER | Tls::DATA).unseen();
    w.at(ms(81)).client().ack();
    w.at(ms(90)).client().data(80).tls(Tls::CHANGE_CIPHER | Tls::DATA);
    w.client().data(400).tls(Tls::DATA);
    w.at(ms(110)).server().data(500).tls(Tls::DATA);
    let c = w.connection();
    let setup = c.setup.expect("a handshake");
    let ends: Vec<_> = setup.spans.windows(2).map(|s| (s[0].end, s[1].start)).collect();
    assert!(ends.iter().all(|(end, start)| end == start), "{ends:?}");
    let told = setup.spans.iter().fold(Nanos::ZERO, |sum, span| sum + span.duration());
    assert_eq!((told, setup.end - setup.start), (ms(90), ms(90)));
}
