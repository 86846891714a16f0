//! Where exchanges begin and end by what a kernel says of writes and reads (rule 76).

mod wire;

use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, Held, Nanos, Segment, Seq, SocketChange, SocketEvent, Source};
use wire::heard::{hear, says};
use wire::{CLIENT, SERVER, Tap, Wire, ms, us};

fn analyse(segments: &[Segment], events: &[SocketEvent]) -> Connection {
    let c = hear(segments, events);
    // Whoever says where they are, parts lie side by side.
    let setup = c.setup.iter().map(|s| (s.start, s.end));
    let exchanges = c.exchanges.iter().map(|x| (x.start, x.end));
    let mut parts: Vec<_> = setup.chain(exchanges).chain(c.gaps.iter().map(|g| (g.start, g.end))).collect();
    parts.sort_unstable();
    assert!(parts.windows(2).all(|two| two[0].1 == two[1].0), "{parts:?}");
    for x in &c.exchanges {
        let sum = x.spans.iter().fold(Nanos::ZERO, |sum, s| sum + (s.end - s.start));
        assert_eq!(sum, x.end - x.start);
    }
    c
}

/// From when until when each exchange is, in milliseconds from the first packet.
fn exchanges(c: &Connection) -> Vec<(i64, i64)> {
    let at = |t: Nanos| (t - c.start).0 / 1_000_000;
    c.exchanges.iter().map(|x| (at(x.start), at(x.end))).collect()
}

fn of(c: &Connection, cause: Cause) -> Vec<(Source, i64)> {
    let spans = c.spans().map(|s| s.1).filter(|s| s.cause == cause);
    spans.map(|s| (s.source, (s.end - s.start).0 / 1_000_000)).collect()
}

fn write(from: Seq, bytes: u32, read: Seq) -> SocketChange {
    SocketChange::Write { from, bytes, read: Some(read) }
}

fn first(w: &Wire, host: usize) -> Seq {
    w.host[host].isn + 1
}

/// The second piece of a request waits for the ACK of the first, and that comes with an early answer.
#[test]
fn what_was_written_before_the_answer_was_read_belongs_to_its_request() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(4);
    w.at(ms(50)).server().data(25);
    w.at(ms(60)).client().data(100);
    w.at(ms(90)).server().data(500);
    w.at(ms(100)).client().ack();
    let (from, none) = (first(&w, CLIENT), first(&w, SERVER));
    assert_eq!(exchanges(&analyse(&w.segments(), &[])), [(30, 60), (60, 100)]);
    let told = |at, read| {
        let events = says(&w, CLIENT, &[(ms(30), write(from, 4, none)), (at, write(from + 4, 100, read))]);
        exchanges(&analyse(&w.segments(), &events))
    };
    assert_eq!(told(ms(31), none), [(30, 100)]);
    // Written after the answer was read it asks for something else.
    assert_eq!(told(ms(60) - us(20), none + 25), [(30, 60), (60, 100)]);
}

/// Two requests side by side; the third is written as the first has its answer, and the second has none yet.
#[test]
fn what_the_server_had_not_read_as_it_wrote_is_still_to_be_answered() {
    let mut w = Wire::new(Tap::Server, us(100));
    w.handshake();
    w.at(ms(30)).client().data(10);
    w.at(ms(31)).client().data(10);
    w.at(ms(40)).server().data(500);
    w.at(ms(41)).client().data(10);
    w.at(ms(60)).server().data(500);
    w.at(ms(80)).server().data(500);
    w.at(ms(81)).client().ack();
    let (ask, answer) = (first(&w, CLIENT), first(&w, SERVER));
    let asks = [
        (ms(30), write(ask, 10, answer)),
        (ms(31), write(ask + 10, 10, answer)),
        (ms(41), write(ask + 20, 10, answer + 500)),
    ];
    let told = |reads: u32| {
        let answers = [
            (ms(40), write(answer, 500, ask + reads)),
            (ms(60), write(answer + 500, 500, ask + 20)),
            (ms(80), write(answer + 1_000, 500, ask + 30)),
        ];
        exchanges(&analyse(&w.segments(), &[says(&w, CLIENT, &asks), says(&w, SERVER, &answers)].concat()))
    };
    assert_eq!(exchanges(&analyse(&w.segments(), &[])).len(), 2);
    assert_eq!(told(10).len(), 1);
    // It had read both, and so has answered them.
    assert_eq!(told(20).len(), 2);
    // Half of a request is none: the rest of it, which it did not want, is not answered later.
    assert_eq!(told(15).len(), 2);
}

/// What holds a request belongs to it, not to the pause before it.
#[test]
fn a_request_begins_when_it_is_written() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(45)).server().data(100);
    w.at(ms(55)).client().ack();
    w.at(ms(300)).client().data(100);
    w.at(ms(315)).server().data(100);
    w.at(ms(325)).client().ack();
    let (ask, answer) = (first(&w, CLIENT), first(&w, SERVER));
    assert_eq!(exchanges(&analyse(&w.segments(), &[])), [(30, 55), (300, 325)]);
    let told = |corked| {
        let changes = [
            (ms(30), write(ask, 100, answer)),
            (ms(100), SocketChange::Cork(corked)),
            (ms(100), write(ask + 100, 100, answer + 100)),
        ];
        analyse(&w.segments(), &says(&w, CLIENT, &changes))
    };
    let held = told(true);
    assert_eq!(exchanges(&held), [(30, 55), (100, 325)]);
    assert_eq!(of(&held, Cause::Cork), [(Source::Kernel, 200)]);
    assert_eq!(held.exchanges.iter().map(|x| x.bytes).collect::<Vec<_>>(), [[100, 100]; 2]);
    // Without a cork nobody knows what held it; its writer did not.
    let late = told(false);
    assert_eq!(exchanges(&late), [(30, 55), (100, 325)]);
    assert_eq!(of(&late, Cause::SenderPause), []);
}

/// The answer had come, and lay there.
#[test]
fn a_request_ends_when_its_answer_is_read() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(50)).server().data(500);
    w.at(ms(60)).client().ack();
    w.at(ms(300)).client().data(100);
    w.at(ms(315)).server().data(500);
    w.at(ms(325)).client().ack();
    let zero = w.segments()[0].time;
    let answer = first(&w, SERVER);
    let told = |read: &[(i64, u32, u32)]| {
        let mut since = zero + ms(60);
        let mut changes = Vec::new();
        for &(at, upto, left) in read {
            changes.push((ms(at), SocketChange::Read { since, upto: answer + upto, left }));
            since = zero + ms(at);
        }
        analyse(&w.segments(), &says(&w, CLIENT, &changes))
    };
    assert_eq!(exchanges(&told(&[])), [(30, 60), (300, 325)]);
    let late = told(&[(260, 500, 0)]);
    assert_eq!(exchanges(&late), [(30, 260), (300, 325)]);
    assert_eq!(of(&late, Cause::ReaderLate), [(Source::Kernel, 200)]);
    // In two pieces.
    assert_eq!(exchanges(&told(&[(160, 200, 300), (270, 500, 0)])), [(30, 270), (300, 325)]);
    // What was left was read within a millisecond, or never.
    assert_eq!(exchanges(&told(&[(160, 200, 300)])), [(30, 160), (300, 325)]);
}

/// The last answer of a connection is one as well (rule 141): behind its FIN, in pieces without end, and when no packet
/// passes any more.
#[test]
fn the_last_answer_ends_when_it_is_read() {
    let told = |closes: &str, reads: &[(i64, u32, u32)]| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.at(ms(50)).server();
        match closes {
            "with it" => w.server().last_data(5_000),
            _ => w.server().data(5_000),
        };
        w.at(ms(60)).client().ack();
        if closes != "never" {
            w.at(ms(900)).client().fin();
            w.at(ms(910)).server().fin();
            w.at(ms(920)).client().ack();
        }
        let mut since = w.segments()[0].time + ms(60);
        let mut changes = vec![];
        for &(at, upto, left) in reads {
            let upto = first(&w, SERVER) + upto;
            changes.push((ms(at), SocketChange::Read { since, upto, left }));
            since = w.segments()[0].time + ms(at);
        }
        let c = analyse(&w.segments(), &says(&w, CLIENT, &changes));
        let late = of(&c, Cause::ReaderLate).iter().map(|l| l.1).sum::<i64>();
        let tail = c.tail.map(|(_, time)| time.0 / 1_000_000);
        (exchanges(&c), late, tail, (c.end - c.start).0 / 1_000_000)
    };
    assert_eq!(told("later", &[(500, 5_000, 0)]), (vec![(30, 500)], 440, Some(420), 920));
    // The FIN came with it, and lies behind what is read.
    assert_eq!(told("with it", &[(500, 5_000, 1)]), (vec![(30, 500)], 440, Some(420), 920));
    // The recording ended first.
    assert_eq!(told("never", &[(500, 5_000, 0)]), (vec![(30, 500)], 440, None, 500));
    assert_eq!(told("never", &[(500, 3_000, 2_000)]), (vec![(30, 500)], 440, None, 500));
    // More pieces than are kept.
    let pieces: Vec<_> =
        (0..400).map(|n| (100 + 2 * n, 10 * (n as u32 + 1), 4_990 - 10 * n as u32)).collect();
    assert_eq!(told("later", &pieces), (vec![(30, 898)], 838, Some(22), 920));
}

/// An event loop that is busy elsewhere is not work on this request.
#[test]
fn a_server_that_reads_late_does_not_think_meanwhile() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(140)).server().data(500);
    w.at(ms(150)).client().ack();
    // The first packet passes there at 10 ms.
    let since = w.segments()[0].time + ms(30);
    let (ask, answer) = (first(&w, CLIENT), first(&w, SERVER));
    let changes = [
        (ms(110), SocketChange::Read { since, upto: ask + 100, left: 0 }),
        (ms(130), write(answer, 500, ask + 100)),
    ];
    let c = analyse(&w.segments(), &says(&w, SERVER, &changes));
    assert_eq!(of(&c, Cause::ReaderLate), [(Source::Kernel, 80)]);
    assert_eq!(of(&c, Cause::ServerThink), [(Source::Kernel, 19)]);
    let bare = analyse(&w.segments(), &[]);
    assert_eq!(of(&bare, Cause::ServerThink), [(Source::Inferred, 99)]);
}

/// Which window was full the flights only let one guess; the sender's kernel knows, as each ACK comes in (rule 77).
#[test]
fn what_holds_unsent_bytes_is_told() {
    const MSS: u32 = 1_448;
    let mut w = Wire::new(Tap::Client, ms(40));
    w.handshake();
    for k in 0..4 {
        w.at(ms(50 + 40 * k)).client().write(10 * MSS);
        w.at(ms(70 + 40 * k)).server().ack();
    }
    w.at(ms(205)).server().data(50);
    w.at(ms(225)).client().ack();
    let told = |held: Held| {
        let changes = [
            (ms(49), write(first(&w, CLIENT), 40 * MSS, first(&w, SERVER))),
            (ms(60), SocketChange::Held(held)),
        ];
        analyse(&w.segments(), &says(&w, CLIENT, &changes))
    };
    let waits =
        |held: Held, cause: Cause| of(&told(held), cause).iter().filter(|s| s.0 == Source::Kernel).count();
    assert_eq!(waits(Held::CongestionWindow { slow_start: true }, Cause::SlowStart), 3);
    assert_eq!(waits(Held::CongestionWindow { slow_start: false }, Cause::CongestionWindow), 3);
    assert_eq!(waits(Held::Window, Cause::ReceiveWindow), 3);
    // It names neither window: what packets show stands.
    let inferred = of(&analyse(&w.segments(), &[]), Cause::SlowStart).len();
    assert_eq!(of(&told(Held::Other), Cause::SlowStart), vec![(Source::Inferred, 40); inferred]);
}
