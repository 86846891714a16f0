//! What captures do to the truth: cut, copied, one-sided, out of order.

use crate::wire::{CLIENT, SERVER, Tap, Wire, analyze, ms, tell, us};
use tcpwhy_analysis::{Quality, Totals};
use tcpwhy_base::{Cause, Seq};

/// Three exchanges, the second with a write that Nagle held.
fn talk(tap: Tap, isn: [u32; 2]) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.host[0].isn = Seq(isn[0]);
    w.host[0].nxt = Seq(isn[0]);
    w.host[1].isn = Seq(isn[1]);
    w.host[1].nxt = Seq(isn[1]);
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().write(8 * 1448);
    w.at(ms(50)).client().ack();
    w.at(ms(130)).client().data(4);
    w.at(ms(180)).server().ack();
    w.at(ms(190)).client().data(100);
    w.at(ms(200)).server().data(50);
    w.at(ms(210)).client().ack();
    w.at(ms(230)).client().data(100);
    w.at(ms(240)).server().data(50);
    w.at(ms(250)).client().ack();
    w
}

const TALK: &str = "setup 0..20
      handshake network 0..20 #1-3
    gap 20..30
      client_think client 20..30 #3-4
    exchange 30..50 100>11584
      path_delay network 30..50 #4-5
    gap 50..130
      client_think client 50..130 #12-14
    exchange 130..210 104>50
      nagle_delayed_ack client 130..190 #14-16
      path_delay network 190..210 #16-17
    gap 210..230
      client_think client 210..230 #17-19
    exchange 230..250 100>50
      path_delay network 230..250 #19-20";

#[test]
fn sequence_numbers_wrap_inside_a_transfer() {
    talk(Tap::Client, [1000, 500_000]).tells(TALK);
    talk(Tap::Client, [u32::MAX - 150, u32::MAX - 5000]).tells(TALK);
    talk(Tap::Client, [u32::MAX - 1, u32::MAX]).tells(TALK);
}

#[test]
fn a_capture_that_begins_in_the_middle() {
    let w = talk(Tap::Client, [1000, 500_000]);
    let segments = &w.segments()[3..];
    let c = analyze(segments).connections.remove(0);
    assert!(c.quality.has(Quality::MIDSTREAM) && c.quality.has(Quality::NO_WINDOW_SCALE));
    assert!(c.roles_inferred && !c.opened_by_handshake && c.setup.is_none());
    assert_eq!(c.client.port, 40_000);
    // How late the ACK was cannot be known yet; that a small write was held, can.
    let [held, path] = &c.exchanges[1].spans[..] else { panic!("{:?}", c.exchanges[1].spans) };
    assert!(matches!(held.cause, Cause::Nagle | Cause::NagleDelayedAck));
    assert_eq!((held.duration(), path.cause, path.duration()), (ms(60), Cause::PathDelay, ms(20)));
    assert_eq!(c.exchanges.len(), 3);
}

#[test]
fn packets_of_one_end_only() {
    let mut w = talk(Tap::Client, [1000, 500_000]);
    w.at(ms(300)).client().data(100);
    w.at(ms(350)).client().data(100);
    let segments: Vec<_> = w.segments().into_iter().filter(|s| s.src == w.host[CLIENT].end).collect();
    let c = analyze(&segments).connections.remove(0);
    assert!(c.quality.has(Quality::ONE_SIDED));
    let text = tell(&c, segments[0].time);
    for span in c.exchanges.iter().flat_map(|e| &e.spans) {
        assert_eq!(span.cause, Cause::Unexplained, "{text}");
        assert!(span.facts.sentence().contains("one direction"), "{}", span.facts.sentence());
    }
    assert!(c.budget.get(Cause::Unexplained) > ms(100), "{text}");
}

/// Without ACKs nobody knows when a loss was repaired: what is sent again two milliseconds later followed no
/// timer, nor did all that came behind it.
#[test]
fn a_repeat_in_one_direction_alone_tells_no_more_than_its_timer() {
    let repeated = |after: i64| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        (0..10).for_each(|k| _ = w.at(ms(30 + k)).client().data(1_448));
        w.at(ms(39 + after)).client().repeat(0, 1_448);
        (1..10).for_each(|k| _ = w.at(ms(39 + after + 2 * k)).client().data(1_448));
        let segments: Vec<_> = w.segments().into_iter().filter(|s| s.src == w.host[CLIENT].end).collect();
        analyze(&segments).connections.remove(0).budget.get(Cause::RetransmissionTimeout)
    };
    assert_eq!(repeated(2), ms(0));
    assert_eq!(repeated(189), ms(0));
    assert_eq!(repeated(300), ms(300));
}

#[test]
fn a_reused_4_tuple_is_another_connection() {
    let mut w = talk(Tap::Client, [1000, 500_000]);
    w.at(ms(300)).client().fin();
    w.at(ms(310)).server().fin();
    w.at(ms(320)).client().ack();
    let mut segments = w.segments();
    let n = segments.len();
    let second = talk(Tap::Client, [9_000_000, 7_000_000]);
    segments.extend(second.segments().into_iter().map(|s| {
        let time = s.time + ms(1000);
        tcpwhy_base::Segment { time, frame: s.frame + n as u64, ..s }
    }));
    let analysis = analyze(&segments);
    let [a, b] = &analysis.connections[..] else { panic!("{} connections", analysis.connections.len()) };
    assert_eq!((a.id, b.id), (1, 2));
    assert_eq!((a.exchanges.len(), b.exchanges.len()), (3, 3));
    assert_eq!(b.start - a.start, ms(1000));
    assert_eq!(a.budget, b.budget);
}

#[test]
fn time_that_goes_back_is_held_still() {
    let w = talk(Tap::Client, [1000, 500_000]);
    let mut segments = w.segments();
    // The answer is stamped 5 ms before the request.
    segments[19].time = segments[18].time + ms(-5);
    let c = analyze(&segments).connections.remove(0);
    assert!(c.quality.has(Quality::TIME_WENT_BACK));
    assert_eq!(c.exchanges[2].start, c.exchanges[2].end);
    assert_eq!(c.end - c.start, ms(250));
}

#[test]
fn copies_of_a_mirror_port_are_left_out() {
    let mut w = talk(Tap::Client, [1000, 500_000]);
    for packet in &mut w.packets {
        packet.copied(us(300));
    }
    let c = w.connection();
    assert!(c.quality.has(Quality::DUPLICATES));
    let plain = talk(Tap::Client, [1000, 500_000]).connection();
    assert_eq!(c.budget, plain.budget);
    assert_eq!(c.retransmitted, [0, 0]);
    assert_eq!(c.bytes, plain.bytes);
    assert_eq!([c.ends[0].duplicates, c.ends[1].duplicates].map(u64::from), plain.packets);
}

#[test]
fn a_repeat_after_more_than_a_millisecond_is_no_copy() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 100);
    w.at(ms(260)).server().data(50);
    w.at(ms(270)).client().ack();
    let c = w.connection();
    assert!(!c.quality.has(Quality::DUPLICATES));
    assert_eq!(c.retransmitted, [1, 0]);
}

#[test]
fn bytes_acknowledged_that_the_capture_does_not_hold() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(40));
    for i in 0..6 {
        let packet = w.server().data(1448);
        if i == 3 {
            packet.unseen();
        }
    }
    w.at(ms(50)).client().ack();
    w.at(ms(60)).client().data(100);
    w.at(ms(70)).server().data(50);
    w.at(ms(80)).client().ack();
    let c = w.connection();
    assert!(c.quality.has(Quality::CAPTURE_DROPS));
    assert_eq!(c.retransmitted, [0, 0]);
    for loss in [Cause::FastRecovery, Cause::RetransmissionTimeout, Cause::TailLossProbe] {
        assert_eq!(c.budget.get(loss).0, 0);
    }
    assert_eq!(c.bytes[SERVER], 5 * 1448 + 50);
}

/// Every limit that a connection can have is counted in the totals under its own name.
#[test]
fn totals_count_connections_by_each_limit() {
    for (place, (bit, name)) in Quality::NAMES.into_iter().enumerate() {
        let mut totals = Totals::default();
        totals.add_quality(bit);
        let counted: Vec<usize> = (0..totals.quality.len()).filter(|&i| totals.quality[i] > 0).collect();
        assert_eq!((counted, totals.quality[place]), (vec![place], 1), "{name}");
    }
}

/// A connection without its SYN, whose reader stops: the windows tell their scale, and the totals say that
/// this was needed.
#[test]
fn totals_count_a_scale_that_was_inferred() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(100);
    w.at(ms(50)).client().ack();
    for k in 0..22 {
        w.at(ms(60 + k)).client().write(2 * 1448);
    }
    for k in 0..22 {
        w.at(ms(70 + k)).server().window(64_000 - 2 * 1448 * (k as u32 + 1)).ack();
    }
    let analysis = analyze(&w.segments()[3..]);
    let names: Vec<&str> = analysis.connections[0].quality.names().collect();
    assert_eq!(names, ["midstream", "window_scale_inferred"]);
    let counted = Quality::NAMES.iter().zip(analysis.totals.quality).filter(|q| q.1 > 0);
    assert_eq!(
        counted.map(|q| (q.0.1, q.1)).collect::<Vec<_>>(),
        [("midstream", 1), ("window_scale_inferred", 1)]
    );
}

/// Rule 50: once 32 stamps in a row were multiples of 10 ms, two of these ticks are no wait.
#[test]
fn two_ticks_of_a_coarse_clock_are_no_wait() {
    let paused = |every: i64, aside: i64| {
        let mut w = Wire::new(Tap::Server, ms(40));
        w.coarse = true;
        w.at(us(aside)).handshake();
        w.at(ms(100) + us(aside)).client().data(100);
        for n in 0..60 {
            w.at(ms(120 + every * n) + us(aside)).server().data(500);
        }
        let c = w.connection();
        assert_eq!(c.quality.has(Quality::COARSE_CLOCK), aside == 0);
        c.budget.get(Cause::SenderPause)
    };
    assert_eq!(paused(20, 1), ms(59 * 20));
    // With the handshake, the request and 28 of the response the clock is known, and the waits before are
    // seen in its light.
    assert_eq!(paused(20, 0), ms(0));
    assert_eq!([paused(30, 0), paused(30, 1)], [ms(59 * 30); 2]);
}
