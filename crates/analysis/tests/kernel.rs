//! What a kernel says beside the packets: it overrides what they only let one infer, and the spans say so.

mod wire;

use tcpwhy_analysis::{Analyzer, Config, Connection, Detail};
use tcpwhy_base::{
    Cause, Endpoint, Nanos, Observation, Segment, Seq, SocketChange, SocketEvent, Source, Timer,
};
use wire::{CLIENT, Tap, Wire, ms, us};

/// The client's first byte.
const FIRST: Seq = Seq(1_001);

/// What the client's kernel says at these times from the first packet.
fn client_says(w: &Wire, changes: &[(Nanos, SocketChange)]) -> Vec<SocketEvent> {
    let zero = w.segments()[0].time;
    let [local, remote]: [Endpoint; 2] = [w.host[0].end, w.host[1].end];
    changes.iter().map(|&(at, change)| SocketEvent { time: zero + at, local, remote, change }).collect()
}

/// The only connection, from packets and kernel events in the order of time.
fn analyse(segments: &[Segment], events: &[SocketEvent]) -> Connection {
    let mut seen: Vec<Observation<'_>> = events.iter().map(Observation::Socket).collect();
    seen.extend(segments.iter().map(Observation::Segment));
    // Of one moment the call comes first, then what it sends.
    seen.sort_by_key(|o| o.time());
    let mut analyzer = Analyzer::new(Config { detail: Detail::All });
    seen.into_iter().for_each(|o| analyzer.observe(o));
    *analyzer.finish().connections.remove(0)
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
    SocketChange::Write { from, bytes }
}

#[test]
fn without_a_kernel_all_is_inferred() {
    let w = held();
    let c = analyse(&w.segments(), &[]);
    assert_eq!(told(&c, 90), [(Cause::NagleDelayedAck, Source::Inferred, 30, 90)]);
    assert!(c.exchanges[0].spans[0].confidence < 0.8);
}

#[test]
fn a_write_within_the_wait_divides_it_between_the_writer_and_nagle() {
    let w = held();
    let events = client_says(&w, &[(ms(30), write(FIRST, 4)), (ms(60), write(FIRST + 4, 100))]);
    let c = analyse(&w.segments(), &events);
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
    let c = analyse(&w.segments(), &events);
    assert_eq!(told(&c, 90), [(Cause::SenderPause, Source::Kernel, 30, 90)]);
}

#[test]
fn with_nodelay_a_small_segment_is_not_held() {
    let w = held();
    let events = client_says(
        &w,
        &[(ms(25), SocketChange::NoDelay(true)), (ms(30), write(FIRST, 4)), (ms(60), write(FIRST + 4, 100))],
    );
    let c = analyse(&w.segments(), &events);
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
    let inferred = analyse(&w.segments(), &[]);
    assert_eq!(told(&inferred, 60).last(), Some(&(Cause::SenderPause, Source::Inferred, 30, 60)));
    let events = client_says(
        &w,
        &[(ms(30), write(FIRST, 3 * 1_448)), (ms(60) - us(20), SocketChange::Room { since: ms(31) })],
    );
    let c = analyse(&w.segments(), &events);
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
    let inferred = analyse(&w.segments(), &[]);
    assert_eq!(cause(&inferred), Some((Cause::TailLossProbe, Source::Inferred)));
    let events = client_says(&w, &[(ms(250) - us(10), SocketChange::Timer(Timer::Retransmission))]);
    let c = analyse(&w.segments(), &events);
    assert_eq!(cause(&c), Some((Cause::RetransmissionTimeout, Source::Kernel)));
}

#[test]
fn far_from_its_host_a_kernel_is_not_believed() {
    let mut w = held();
    w.tap = Tap::Server;
    let events = client_says(&w, &[(ms(30), write(FIRST, 4)), (ms(60), write(FIRST + 4, 100))]);
    let c = analyse(&w.segments(), &events);
    assert!(c.exchanges[0].spans.iter().all(|s| s.source == Source::Inferred));
    assert_eq!(w.host[CLIENT].isn + 1, FIRST);
}

/// A write comes before what it sends: that of a connection of which nothing has passed is kept for it, and for no other.
#[test]
fn what_is_said_before_the_first_packet_is_kept() {
    let w = held();
    let events = client_says(
        &w,
        &[(us(-50), SocketChange::NoDelay(true)), (ms(30), write(FIRST, 4)), (ms(60), write(FIRST + 4, 100))],
    );
    let by_kernel = |events: &[SocketEvent]| {
        analyse(&w.segments(), events).exchanges[0]
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
        let c = analyse(&w.segments(), &events);
        let sources: Vec<_> = c.exchanges[0]
            .spans
            .iter()
            .filter(|s| s.cause == Cause::NagleDelayedAck)
            .map(|s| s.source)
            .collect();
        assert_eq!(sources, [Source::Kernel], "{tap:?}");
    }
}
