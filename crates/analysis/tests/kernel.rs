//! What a kernel says beside the packets: it overrides what they only let one infer, and the spans say so.

mod wire;

use tcpwhy_analysis::{Connection, Quality};
use tcpwhy_base::{Cause, Nanos, Seq, SocketChange, SocketEvent, SocketState, Source, Timer};
use wire::heard::{hear, says};
use wire::{CLIENT, SERVER, Tap, Wire, ms, us};

/// The client's first byte.
const FIRST: Seq = Seq(1_001);

/// What the client's kernel says at these times from the first packet.
fn client_says(w: &Wire, changes: &[(Nanos, SocketChange)]) -> Vec<SocketEvent> {
    says(w, CLIENT, changes)
}

/// The spans of the first exchange until `until`, in milliseconds from the first packet.
fn told(c: &Connection, until: i64) -> Vec<(Cause, Source, i64, i64)> {
    let at = |t: Nanos| (t - c.start).0 / 1_000_000;
    let spans = c.exchanges[0].spans.iter();
    spans.map(|s| (s.cause, s.source, at(s.start), at(s.end))).take_while(|s| s.3 <= until).collect()
}

/// 4 bytes at 30 ms, whose ACK comes 40 ms late at 90; 100 bytes leave with it.
fn held() -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(4);
    w.at(ms(80)).server().ack();
    w.at(ms(90)).client().data(100);
    w.at(ms(100)).server().data(50);
    w.at(ms(110)).client().ack();
    w
}

fn write(from: Seq, bytes: u32) -> SocketChange {
    SocketChange::Write { from, bytes, read: None }
}

#[test]
fn without_a_kernel_all_is_inferred() {
    let w = held();
    let c = hear(&w.segments(), &[]);
    assert_eq!(told(&c, 90), [(Cause::NagleDelayedAck, Source::Inferred, 30, 90)]);
    assert!(c.exchanges[0].spans[0].confidence < 0.9);
}

#[test]
fn a_write_within_the_wait_divides_it_between_the_writer_and_nagle() {
    let w = held();
    let events = client_says(&w, &[(ms(30), write(FIRST, 4)), (ms(60), write(FIRST + 4, 100))]);
    let c = hear(&w.segments(), &events);
    assert_eq!(
        told(&c, 90),
        [(Cause::SenderPause, Source::Kernel, 30, 60), (Cause::NagleDelayedAck, Source::Kernel, 60, 90),]
    );
    assert!(c.exchanges[0].spans[1].confidence > 0.95);
    // What follows is still inferred.
    assert_eq!(c.exchanges[0].spans.last().map(|s| s.source), Some(Source::Inferred));
}

#[test]
fn a_write_just_before_the_segment_leaves_nothing_to_nagle() {
    let w = held();
    let events = client_says(&w, &[(ms(30), write(FIRST, 4)), (ms(90) - us(50), write(FIRST + 4, 100))]);
    let c = hear(&w.segments(), &events);
    assert_eq!(told(&c, 90), [(Cause::SenderPause, Source::Kernel, 30, 90)]);
}

#[test]
fn with_nodelay_a_small_segment_is_not_held() {
    let w = held();
    let events = client_says(
        &w,
        &[(ms(25), SocketChange::NoDelay(true)), (ms(30), write(FIRST, 4)), (ms(60), write(FIRST + 4, 100))],
    );
    let c = hear(&w.segments(), &events);
    // The kernel says what it was not; what it was is still inferred.
    assert_eq!(told(&c, 90)[0].1, Source::Inferred);
}

#[test]
fn a_writer_that_waited_for_room_waited_for_the_send_buffer() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().write(2 * 1_448);
    w.at(ms(40)).server().ack();
    // Everything is acknowledged at 50; the next leaves ten milliseconds later.
    w.at(ms(60)).client().write(1_448);
    w.at(ms(70)).server().data(50);
    w.at(ms(80)).client().ack();
    let inferred = hear(&w.segments(), &[]);
    assert_eq!(told(&inferred, 60).last(), Some(&(Cause::SenderPause, Source::Inferred, 30, 60)));
    let events = client_says(
        &w,
        &[(ms(30), write(FIRST, 3 * 1_448)), (ms(60) - us(20), SocketChange::Room { since: ms(31) })],
    );
    let c = hear(&w.segments(), &events);
    assert_eq!(told(&c, 60).last(), Some(&(Cause::SendBuffer, Source::Kernel, 30, 60)));
    let why: Vec<String> =
        c.spans().map(|s| s.1).filter(|s| s.cause == Cause::SendBuffer).map(|s| s.facts.sentence()).collect();
    assert_eq!(why, ["The writer waited for room in its send buffer: so the sender's kernel says."]);
}

#[test]
fn the_timer_that_fired_is_known_by_name() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(1_000).lost();
    w.at(ms(250)).client().repeat(0, 1_000);
    w.at(ms(260)).server().data(50);
    w.at(ms(270)).client().ack();
    let cause = |c: &Connection| {
        let spans = &c.exchanges[0].spans;
        let loss = spans.iter().find(|s| s.cause != Cause::PathDelay);
        loss.map(|s| (s.cause, s.source))
    };
    let inferred = hear(&w.segments(), &[]);
    assert_eq!(cause(&inferred), Some((Cause::TailLossProbe, Source::Inferred)));
    let events = client_says(&w, &[(ms(250) - us(10), SocketChange::Timer(Timer::Retransmission))]);
    let c = hear(&w.segments(), &events);
    assert_eq!(cause(&c), Some((Cause::RetransmissionTimeout, Source::Kernel)));
}

#[test]
fn far_from_its_host_a_kernel_is_not_believed() {
    let mut w = held();
    w.tap = Tap::Server;
    let events = client_says(&w, &[(ms(30), write(FIRST, 4)), (ms(60), write(FIRST + 4, 100))]);
    let c = hear(&w.segments(), &events);
    assert!(c.exchanges[0].spans.iter().all(|s| s.source == Source::Inferred));
    assert_eq!(w.host[CLIENT].isn + 1, FIRST);
}

/// A write comes before what it sends: that of a connection of which nothing has passed is kept for it, and
/// for no other.
#[test]
fn what_is_said_before_the_first_packet_is_kept() {
    let w = held();
    let events = client_says(
        &w,
        &[(us(-50), SocketChange::NoDelay(true)), (ms(30), write(FIRST, 4)), (ms(60), write(FIRST + 4, 100))],
    );
    let by_kernel = |events: &[SocketEvent]| {
        hear(&w.segments(), events).exchanges[0]
            .spans
            .iter()
            .any(|s| s.cause == Cause::NagleDelayedAck && s.source == Source::Kernel)
    };
    // As above: with that option the kernel says only what it was not.
    assert!(!by_kernel(&events));
    assert!(by_kernel(&events[1..]));
    let mut others = events.clone();
    others[0].remote.port += 1;
    assert!(by_kernel(&others));
}

/// Over loopback the tap is beside both hosts, whichever of them happens to answer sooner.
#[test]
fn on_a_short_path_a_kernel_is_believed_at_either_tap() {
    for tap in [Tap::Client, Tap::Server] {
        let mut w = Wire::new(tap, us(100));
        w.handshake();
        w.at(ms(30)).client().data(4);
        w.at(ms(70)).server().ack();
        w.at(ms(70) + us(50)).client().data(100);
        w.at(ms(70) + us(120)).server().data(50);
        w.at(ms(70) + us(180)).client().ack();
        let events = client_says(&w, &[(ms(30) - us(60), write(FIRST, 4)), (ms(31), write(FIRST + 4, 100))]);
        let c = hear(&w.segments(), &events);
        let sources: Vec<_> = c.exchanges[0]
            .spans
            .iter()
            .filter(|s| s.cause == Cause::NagleDelayedAck)
            .map(|s| s.source)
            .collect();
        assert_eq!(sources, [Source::Kernel], "{tap:?}");
    }
}

/// An answer of one small segment: the application worked until it wrote, the cork held it until its timer.
#[test]
fn a_cork_holds_the_first_segment_of_an_answer() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(250)).server().data(700);
    w.at(ms(260)).client().ack();
    let written = |on: bool, at: i64| {
        let from = w.host[SERVER].isn + 1;
        says(&w, SERVER, &[(ms(at), SocketChange::Cork(on)), (ms(at), write(from, 700))])
    };
    let told = |events: &[SocketEvent]| {
        let all = told(&hear(&w.segments(), events), 999).into_iter();
        // Its host needs a moment for the way.
        all.filter(|s| s.0 != Cause::PathDelay)
            .map(|s| (s.0, s.1, (s.2 + 2) / 5 * 5, (s.3 + 2) / 5 * 5))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&[]), [(Cause::ServerThink, Source::Inferred, 30, 240)]);
    assert_eq!(
        told(&written(true, 35)),
        [(Cause::ServerThink, Source::Kernel, 30, 35), (Cause::Cork, Source::Kernel, 35, 240)]
    );
    // Written just before it left, nothing held it.
    assert_eq!(told(&written(true, 240)), [(Cause::ServerThink, Source::Kernel, 30, 240)]);
    // And without a cork no option did.
    assert_eq!(told(&written(false, 35)), [(Cause::ServerThink, Source::Inferred, 30, 240)]);
}

/// The kernel held the end of a piece, whose writer slept with its cork set: that held up nobody (rule 151).
#[test]
fn a_cork_within_a_pause_is_the_writers_whatever_its_kernel_held() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(50)).server().write(2 * 1_448);
    w.after(ms(10)).client().ack();
    w.at(ms(300)).server().data(100);
    w.after(ms(10)).client().ack();
    let caused = |w: &Wire, writes: &[(i64, u32, u32)]| {
        let from = w.host[SERVER].isn + 1;
        let mut said = vec![(ms(45), SocketChange::Cork(true))];
        said.extend(writes.iter().map(|&(at, skip, len)| (ms(at), write(from + skip, len))));
        let spans = told(&hear(&w.segments(), &says(w, SERVER, &said)), 999).into_iter();
        let long = spans.filter(|s| s.3 - s.2 > 50 && s.0 != Cause::ServerThink);
        long.map(|s| (s.0, (s.3 - s.2) / 100)).collect::<Vec<_>>()
    };
    assert_eq!(caused(&w, &[(49, 0, 2_996)]), [(Cause::Cork, 2)], "nothing behind it");
    w.at(ms(900)).server().write(2 * 1_448);
    w.after(ms(10)).client().ack();
    assert_eq!(caused(&w, &[(49, 0, 2_996), (900, 2_996, 2_896)]), [(Cause::SenderPause, 8)]);
}

/// A window that is full: of data that nobody reads, or of what has just come.
#[test]
fn the_kernel_of_the_receiver_tells_a_slow_reader_from_a_small_window() {
    const MSS: u32 = 1_448;
    let mut w = Wire::new(Tap::Server, ms(20));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    for k in 0..4 {
        w.at(ms(30 + 50 * k)).client().write(3 * MSS);
        w.at(ms(70 + 50 * k)).server().ack();
    }
    w.at(ms(230)).server().data(50);
    let cause = |events: &[SocketEvent]| {
        let c = hear(&w.segments(), events);
        let spans = c.exchanges[0].spans.iter().map(|s| (s.cause, s.source));
        let full = |c: &Cause| matches!(c, Cause::ReceiveWindow | Cause::SlowReader);
        spans.filter(|(cause, _)| full(cause)).collect::<Vec<_>>()
    };
    let state = |reads| {
        SocketChange::State(SocketState {
            open: true,
            scales: Some([7, 0]),
            buffers: [1, 1],
            set: [false; 2],
            reads,
        })
    };
    let late: Vec<_> = (0..3)
        .map(|k| {
            let since = w.segments()[0].time + ms(30 + 50 * k);
            (ms(60 + 50 * k) - us(10), SocketChange::Read { since, upto: FIRST, left: 0 })
        })
        .collect();
    let before = |change| vec![(us(-5), change)];
    let kernel = |cause| vec![(cause, Source::Kernel); 3];
    assert_eq!(cause(&says(&w, SERVER, &before(state(true)))), kernel(Cause::ReceiveWindow));
    let all = [before(state(true)), late.clone()].concat();
    assert_eq!(cause(&says(&w, SERVER, &all)), kernel(Cause::SlowReader));
    // A kernel that does not tell of reads has said nothing of them.
    let inferred = cause(&[]);
    assert!(!inferred.is_empty() && inferred.iter().all(|c| c.1 == Source::Inferred), "{inferred:?}");
    assert_eq!(cause(&says(&w, SERVER, &before(state(false)))), inferred);
    // What lay unread for less than half of the time had made no difference.
    let short: Vec<_> = late
        .iter()
        .map(|&(at, _)| {
            (at, SocketChange::Read { since: w.segments()[0].time + at - ms(9), upto: FIRST, left: 0 })
        })
        .collect();
    let all = [before(state(true)), short].concat();
    assert_eq!(cause(&says(&w, SERVER, &all)), kernel(Cause::ReceiveWindow));
}

/// Of data that lies unread the kernel tells only when it is read: what its window held before that is judged again.
#[test]
fn a_read_tells_of_what_passed_before_it() {
    const MSS: u32 = 1_448;
    let mut w = Wire::new(Tap::Server, ms(20));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    w.at(ms(30)).client().write(3 * MSS);
    w.at(ms(64)).server().window(MSS).ack();
    w.at(ms(74)).client().data(MSS);
    w.at(ms(90)).server().window(0).ack();
    w.at(ms(300)).server().window(3 * MSS).ack();
    w.at(ms(310)).client().write(3 * MSS);
    w.at(ms(330)).server().data(50);
    let since = w.segments()[0].time + ms(30);
    let state = SocketState { open: true, scales: None, buffers: [1, 1], set: [false; 2], reads: true };
    let told = |read: bool| {
        let mut changes = vec![(us(-5), SocketChange::State(state))];
        changes.extend(read.then_some((ms(290) - us(5), SocketChange::Read { since, upto: FIRST, left: 0 })));
        let c = hear(&w.segments(), &says(&w, SERVER, &changes));
        let spans = c.exchanges[0].spans.iter().filter(|s| s.source == Source::Kernel);
        spans.map(|s| (s.cause, (s.end - s.start).0 / 10_000_000)).collect::<Vec<_>>()
    };
    assert_eq!(told(true), [(Cause::SlowReader, 4), (Cause::SlowReader, 23)]);
    assert_eq!(told(false), [(Cause::ReceiveWindow, 4), (Cause::ReceiveWindow, 23)]);
}

/// What a sender waits for is what an ACK brings: a reader that stops within the last round trip has held nothing yet.
#[test]
fn a_reader_holds_what_leaves_a_round_trip_after_it_stopped() {
    const MSS: u32 = 1_448;
    let mut w = Wire::new(Tap::Server, ms(100));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    w.at(ms(150)).client().write(3 * MSS);
    w.at(ms(240)).server().ack();
    w.at(ms(290)).client().write(3 * MSS);
    w.at(ms(600)).server().ack();
    w.at(ms(650)).client().write(3 * MSS);
    w.at(ms(700)).server().data(50);
    let first = w.segments()[0].time;
    let state = SocketState { open: true, scales: None, buffers: [1, 1], set: [false; 2], reads: true };
    // The first flight came 150 ms after the SYN, and lay there until the last ACK but one.
    let read = SocketChange::Read { since: first + ms(150), upto: FIRST, left: 0 };
    let changes = [(us(-5), SocketChange::State(state)), (ms(550) - us(20), read)];
    let c = hear(&w.segments(), &says(&w, SERVER, &changes));
    let spans = c.exchanges[0].spans.iter().filter(|s| s.source == Source::Kernel);
    let causes: Vec<_> = spans.map(|s| s.cause).collect();
    assert_eq!(causes, [Cause::ReceiveWindow, Cause::SlowReader]);
}

/// The scales of windows were agreed on before the capture began; the kernel knows them.
#[test]
fn the_kernel_knows_the_scales_of_a_connection_that_was_open_before() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[CLIENT].wscale = Some(5);
    w.handshake();
    w.at(ms(30)).client().data(4);
    w.at(ms(50)).server().data(40_000);
    w.at(ms(60)).client().ack();
    let segments = &w.segments()[3..];
    let cut = hear(segments, &[]);
    assert!(cut.quality.has(Quality::NO_WINDOW_SCALE) || cut.quality.has(Quality::SCALE_INFERRED));
    let state =
        SocketState { open: true, scales: Some([7, 5]), buffers: [1, 1], set: [false; 2], reads: true };
    let c = hear(segments, &says(&w, CLIENT, &[(ms(25), SocketChange::State(state))]));
    assert!(!c.quality.has(Quality::NO_WINDOW_SCALE) && !c.quality.has(Quality::SCALE_INFERRED));
    assert_eq!([c.ends[CLIENT].wscale, c.ends[SERVER].wscale], [Some(5), Some(7)]);
    // Without scaling windows are as they stand.
    let none = SocketChange::State(SocketState { scales: None, ..state });
    let c = hear(segments, &says(&w, CLIENT, &[(ms(25), none)]));
    assert!(!c.quality.has(Quality::NO_WINDOW_SCALE));
    assert_eq!([c.ends[CLIENT].wscale, c.ends[SERVER].wscale], [None, None]);
}
