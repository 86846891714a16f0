//! A flow-control window of HTTP/2 within TLS: what is granted shows by its size alone.

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, Nanos, Side, Tls};

const CREDIT: u8 = Tls::DATA | Tls::CREDIT;

/// A client that speaks TLS 1.3 over 20 ms, as far as its first request; `hello` is told of its ClientHello.
fn encrypted(tap: Tap, hello: u8) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w.client().data(300).tls(Tls::HANDSHAKE | hello);
    w.at(ms(30)).server().data(1448).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER | Tls::DATA);
    w.at(ms(40)).client().data(80).tls(Tls::CHANGE_CIPHER | Tls::DATA);
    w.client().data(200).tls(Tls::DATA);
    w
}

/// The server sends so many bytes six times, and the client says so much of it, at once or later.
fn download(mut w: Wire, bytes: u32, (len, tls): (u32, u8), pause: Nanos) -> Connection {
    for _ in 0..6 {
        w.after(ms(10)).server().write(bytes);
        w.after(ms(10) + pause).client().data(len).tls(tls);
    }
    w.after(ms(10)).server().data(300).tls(Tls::DATA);
    w.after(ms(10)).client().ack();
    w.connection()
}

/// The client sends 40 kB six times, whenever the server says that it may.
fn upload(mut w: Wire) -> Connection {
    for _ in 0..6 {
        w.client().write(40_000);
        w.after(ms(10)).server().data(84).tls(CREDIT);
        w.after(ms(10));
    }
    w.client().write(500);
    w.after(ms(10)).server().data(300).tls(Tls::DATA);
    w.after(ms(10)).client().ack();
    w.connection()
}

fn above(c: &Connection) -> Nanos {
    c.budget.get(Cause::ApplicationWindow)
}

#[test]
fn what_is_granted_within_tls_is_told_by_its_size() {
    let windows = |hello: u8, bytes: u32, grant: (u32, u8), pause: Nanos| {
        above(&download(encrypted(Tap::Client, hello), bytes, grant, pause))
    };
    let none = Nanos::ZERO;
    // From the second grant in a row on it is no chance: of the five that let more come.
    assert_eq!(windows(0, 40_000, (42, CREDIT), none), ms(80));
    assert_eq!(windows(0, 16_384, (110, CREDIT), none), ms(80));
    assert_eq!(windows(0, 16_383, (42, CREDIT), none), none, "a small answer, as any");
    assert_eq!(windows(0, 40_000, (42, Tls::DATA), none), none, "of another size");
    assert_eq!(windows(Tls::NO_H2, 40_000, (42, CREDIT), none), none, "HTTP/2 is not spoken");
    // Who grants does so at once, within 1 ms or an eighth of the round trip.
    assert_eq!(windows(0, 40_000, (42, CREDIT), ms(2)), ms(80));
    assert_eq!(windows(0, 40_000, (42, CREDIT), ms(3)), none);
}

#[test]
fn who_grants_too_little_has_to_act() {
    let side = |c: &Connection| {
        let spans = c.exchanges.iter().flat_map(|e| &e.spans).filter(|s| s.cause == Cause::ApplicationWindow);
        let told: Vec<_> = spans.map(|s| (s.side, s.facts.sentence())).collect();
        assert!(!told.is_empty() && told.iter().all(|s| *s == told[0]), "{told:?}");
        told[0].clone()
    };
    let words = |credit: u32| {
        format!(
            "40000 bytes were all that the receiving end had granted above TCP: the next left when a message of {credit} bytes had come \
             from there (round trip 20.0 ms)."
        )
    };
    let down = download(encrypted(Tap::Client, 0), 40_000, (42, CREDIT), Nanos::ZERO);
    assert_eq!(side(&down), (Some(Side::Client), words(42)));
    let up = upload(encrypted(Tap::Client, 0));
    assert_eq!(side(&up), (Some(Side::Server), words(84)));
    assert_eq!(above(&up), ms(80));
}

/// A server that works before it sends more had no more.
#[test]
fn what_is_made_meanwhile_was_not_held() {
    let windows = |works: Nanos| {
        let mut w = encrypted(Tap::Client, 0);
        for _ in 0..6 {
            w.after(ms(10) + works).server().write(40_000);
            w.after(ms(10)).client().data(42).tls(CREDIT);
        }
        w.after(ms(10)).server().data(300).tls(Tls::DATA);
        w.after(ms(10)).client().ack();
        above(&w.connection())
    };
    assert_eq!((windows(ms(2)), windows(ms(3))), (ms(80), Nanos::ZERO));
}

/// What grows from one grant to the next, or fills TCP's window, was let go by an ACK beside it, as far as
/// can be seen afar from who sends.
#[test]
fn grants_beside_acks_say_nothing_afar() {
    let windows = |tap: Tap, sizes: [u32; 5]| {
        let mut w = encrypted(tap, 0);
        for n in sizes {
            w.client().write(n);
            w.after(ms(10)).server().data(42).tls(CREDIT);
            w.after(ms(10));
        }
        w.client().write(500);
        w.after(ms(10)).server().data(300).tls(Tls::DATA);
        w.after(ms(10)).client().ack();
        let c = w.connection();
        above(&c) + c.gap_budget.get(Cause::ApplicationWindow)
    };
    let growing = [17_000, 20_000, 24_000, 29_000, 35_000];
    assert!(windows(Tap::Client, growing) > Nanos::ZERO);
    assert_eq!(windows(Tap::Server, growing), Nanos::ZERO);
    assert!(windows(Tap::Server, [40_000; 5]) > Nanos::ZERO);
    assert_eq!(windows(Tap::Server, [60_000; 5]), Nanos::ZERO, "the window has 65,535 bytes");
}

/// Beside the server its trips lie between what looks like requests.
#[test]
fn beside_the_server_windows_are_refilled_between() {
    let c = upload(encrypted(Tap::Server, 0));
    assert_eq!(c.gap_budget.get(Cause::ApplicationWindow), ms(80), "{:?} {:?}", c.budget, c.gap_budget);
    let c = download(encrypted(Tap::Server, 0), 40_000, (42, CREDIT), Nanos::ZERO);
    assert_eq!(c.gap_budget.get(Cause::ApplicationWindow), ms(80), "{:?} {:?}", c.budget, c.gap_budget);
    let c = download(encrypted(Tap::Server, Tls::NO_H2), 40_000, (42, CREDIT), Nanos::ZERO);
    assert_eq!(c.gap_budget.get(Cause::ApplicationWindow), Nanos::ZERO);
}

/// Beside the server what is granted while the rest of it is on its way lies within one exchange: its trips
/// are the window's, but where the client says more than that.
#[test]
fn grants_that_pass_data_are_turns_of_one_exchange() {
    let windows = |grant: (u32, u8)| {
        let mut w = encrypted(Tap::Server, 0);
        let start = w.now;
        w.after(us(100)).server().write(16_384);
        w.after(us(900)).server().write(16_384);
        for k in 1..8 {
            for half in [0, 1] {
                w.at(start + ms(20 * k + half)).client().data(grant.0).tls(grant.1);
                w.after(us(100)).server().write(16_384);
            }
        }
        let c = w.connection();
        assert_eq!(c.exchanges.len() + c.exchanges_omitted.count as usize, 1, "{:?}", c.exchanges);
        above(&c) > ms(50)
    };
    assert_eq!([windows((35, CREDIT)), windows((350, Tls::DATA))], [true, false]);
}
