//! Just below and just above: each threshold of the rules, from both sides.

use crate::wire::{Tap, Wire, analyze, ms, us};
use tcpwhy_analysis::{Connection, Span};
use tcpwhy_base::{Cause, Nanos};

const MSS: u32 = 1448;

fn opened(tap: Tap, rtt: Nanos) -> Wire {
    let mut w = Wire::new(tap, rtt);
    w.handshake();
    w
}

/// The spans of all exchanges.
fn spans(c: &Connection) -> Vec<&Span> {
    c.exchanges.iter().flat_map(|x| &x.spans).collect()
}

fn near(found: Nanos, expected: Nanos, by: Nanos) -> bool {
    (found - expected).0.abs() <= by.0
}

/// The server answers in flights of ten segments, each as soon as the one before is acknowledged.
fn flights(n: u32) -> Connection {
    let mut w = opened(Tap::Server, ms(20));
    w.at(ms(30)).client().data(100);
    w.after(ms(10));
    for _ in 0..n {
        w.server().write(10 * MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10));
    }
    w.connection()
}

/// Slow start would have grown in each of three round trips: two that did not may be chance.
#[test]
fn three_round_trips_without_growth_are_a_plateau_and_two_are_not() {
    assert_eq!(flights(4).budget.0[1..], [(Cause::SlowStart, ms(60))]);
    assert_eq!(flights(5).budget.0[1..], [(Cause::SendBuffer, ms(80))]);
}

/// The client's second flight of so many segments is acknowledged later than the round trip of 20 ms by
/// `extra`. ACKs come one by one, `apart`, so that the rate of the path shows, and the last of them that much
/// later still.
fn swollen(segments: u32, extra: Nanos, apart: Nanos) -> Connection {
    let mut w = opened(Tap::Client, ms(20));
    let own = |k: u32| apart.times(i64::from(k));
    let second = ms(50) + own(segments);
    for (flight, late) in [(ms(30), Nanos::ZERO), (second, extra)] {
        for k in 0..segments {
            w.at(flight).client().data(MSS);
            w.overtaken(0, late + own(k));
        }
        for k in 0..segments {
            w.at(flight + ms(10) + late + own(k)).server().ack();
        }
    }
    w.at(second + ms(20) + extra + own(segments)).client().write(segments * MSS);
    w.after(ms(10)).server().data(50);
    w.after(ms(10)).client().ack();
    w.connection()
}

/// Others' queue takes what the round trip is longer than the base one, no more; at half as much again and 5
/// ms it begins.
#[test]
fn a_queue_of_others_takes_what_the_round_trip_is_swollen_by() {
    for extra in [40, 60] {
        let c = swollen(8, ms(extra), us(10));
        let queue = spans(&c).into_iter().find(|s| s.cause == Cause::Queueing).expect("a queue").clone();
        assert!(near(queue.duration(), ms(extra), us(300)), "{extra}: {:?}", c.budget);
        let said = format!(
            "The round trip was {}.1 ms where 20.0 ms is possible: a queue that this connection's own bytes do not fill.",
            20 + extra
        );
        assert_eq!((queue.side.unwrap().name(), queue.facts.sentence()), ("network", said));
        assert_eq!((queue.confidence, queue.alternatives[0]), (0.6, Some((Cause::Bandwidth, 0.3))));
    }
    // The last of eight ACKs comes 70 µs after the first.
    let queue = |segments, extra| swollen(segments, extra, us(10)).budget.get(Cause::Queueing);
    assert_eq!(queue(8, ms(15) - us(70)), Nanos::ZERO);
    assert!(queue(8, ms(15) - us(69)) > ms(14));
    // Fewer than four segments in flight do not wait behind others of their own; five are needed to show the rate.
    assert!(queue(5, ms(40)) > ms(39));
}

/// Eight segments of 1,448 bytes fill seven tenths of 20 ms at 6.6 Mbit/s, 1.75 ms each: beyond that the
/// queue is their own.
#[test]
fn a_queue_that_the_flow_fills_itself_is_the_links() {
    let of = |apart: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        for k in 0..8 {
            w.at(ms(30)).client().data(MSS);
            w.overtaken(0, apart.times(k));
        }
        for k in 0..8 {
            w.at(ms(40) + apart.times(k)).server().ack();
        }
        // The second flight comes late and together, and is acknowledged by one ACK.
        w.at(ms(70)).client().write(8 * MSS);
        for n in 0..8 {
            w.overtaken(n, ms(40));
        }
        w.at(ms(120)).server().ack();
        w.at(ms(130)).client().write(8 * MSS);
        w.at(ms(140)).server().data(50);
        let c = w.connection();
        (c.budget.get(Cause::Queueing), c.budget.get(Cause::Bandwidth))
    };
    let ((others, _), (own, link)) = (of(us(1_500)), of(us(2_000)));
    assert!(others > ms(25) && own == Nanos::ZERO && link > ms(30), "{others} {own} {link}");
}

/// Fewer than four segments in flight do not wait behind others of their own connection: a longer trip is not
/// said to be a queue.
#[test]
fn four_segments_in_flight_feel_a_queue() {
    let queue = |segments: u32| {
        let mut w = opened(Tap::Client, ms(20));
        // A train that shows the rate of the path.
        for k in 0..8 {
            w.at(ms(30)).client().data(MSS);
            w.overtaken(0, us(10 * k));
        }
        for k in 0..8 {
            w.at(ms(40) + us(10 * k)).server().ack();
        }
        w.at(ms(50) + us(80)).client().write(segments * MSS);
        for n in 0..segments as usize {
            w.overtaken(n, ms(40));
        }
        w.at(ms(100) + us(80)).server().ack();
        w.at(ms(110) + us(80)).client().write(8 * MSS);
        w.at(ms(120) + us(80)).server().data(50);
        w.connection().budget.get(Cause::Queueing)
    };
    assert!(queue(4) > ms(39) && queue(3) == Nanos::ZERO, "{} {}", queue(4), queue(3));
}

/// Full segments of the first flight vanish; what comes through at last is smaller. Whether anything ever
/// passed in this direction shows by the handshake.
#[test]
fn full_segments_that_vanish_need_others_that_pass() {
    let mut w = opened(Tap::Client, ms(20));
    w.at(ms(30)).client().data(MSS).lost();
    w.client().data(MSS).lost();
    for t in [250, 690, 1570] {
        w.at(ms(t)).client().repeat(0, MSS).lost();
    }
    w.at(ms(3330)).client().repeat(0, 1000);
    w.at(ms(3340)).server().ack();
    w.at(ms(3350)).client().repeat(1000, 1000);
    w.client().repeat(2000, 896);
    w.at(ms(3360)).server().data(50);
    w.at(ms(3370)).client().ack();
    let segments = w.segments();
    let [whole, cut] = [&segments[..], &segments[3..]].map(|s| analyze(s).connections.remove(0));
    let of = |c: &Connection| (c.budget.get(Cause::PathMtu), c.budget.get(Cause::RetransmissionTimeout));
    assert!(of(&whole).0 >= ms(3000) && of(&whole).1 == Nanos::ZERO, "{:?}", whole.budget);
    assert!(of(&cut).0 == Nanos::ZERO && of(&cut).1 >= ms(3000), "{:?}", cut.budget);
}

/// After two timeouts with a full segment, not after one.
#[test]
fn one_timeout_is_no_black_hole() {
    let lost = |repeats: &[i64]| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        w.at(ms(50)).client().ack();
        w.at(ms(100)).client().data(MSS).lost();
        w.client().data(MSS).lost();
        for &t in repeats {
            w.at(ms(t)).client().repeat(100, MSS).lost();
        }
        w.after(ms(1000)).client().repeat(100, 1000);
        w.after(ms(10)).server().ack();
        w.after(ms(10)).client().repeat(1100, 1000);
        w.client().repeat(2100, 896);
        w.after(ms(10)).server().data(50);
        w.connection().budget.get(Cause::PathMtu) > Nanos::ZERO
    };
    assert_eq!((lost(&[320]), lost(&[320, 760])), (false, true));
}

/// Writes of 4 and 100 bytes; the ACK of the first comes 40 ms late, so long before the second is sent.
fn locked(w: &mut Wire, at: Nanos, late: Nanos) {
    w.at(at).client().data(4);
    w.at(at + ms(50)).server().ack();
    w.at(at + ms(60) + late).client().data(100);
    w.after(ms(10)).server().data(50);
    w.after(ms(10)).client().ack();
}

fn last_wait(locks: i64, late: Nanos) -> Cause {
    let mut w = opened(Tap::Client, ms(20));
    for k in 0..locks {
        locked(&mut w, ms(30 + 200 * k), Nanos::ZERO);
    }
    locked(&mut w, ms(30 + 200 * locks), late);
    let c = w.connection();
    c.exchanges[locks as usize].spans[0].cause
}

/// Where Nagle was seen to hold twice, a write that comes well after the ACK was held too: it had to be written before.
#[test]
fn a_late_release_is_nagle_after_two_locks() {
    assert_eq!(last_wait(1, ms(15)), Cause::SenderPause);
    assert_eq!(last_wait(2, ms(15)), Cause::NagleDelayedAck);
    // Within a quarter of the wait: 20 of 80 ms, not 21 of 81.
    assert_eq!(last_wait(2, ms(20)), Cause::NagleDelayedAck);
    assert_eq!(last_wait(2, ms(21)), Cause::SenderPause);
}

/// So long may an ACK stay out before it counts as delayed: 8 ms, or a quarter of the round trip where that is more.
#[test]
fn an_ack_is_delayed_after_8_ms_or_a_quarter_of_the_trip() {
    let held = |rtt: Nanos, delay: Nanos| {
        let mut w = opened(Tap::Client, rtt);
        let way = rtt.part(2);
        w.at(rtt + ms(10)).client().data(4);
        w.after(way + delay).server().ack();
        w.after(way).client().data(100);
        w.after(way).server().data(50);
        w.after(way).client().ack();
        w.connection().exchanges[0].spans[0].cause
    };
    assert_eq!(held(ms(20), ms(8)), Cause::Nagle);
    assert_eq!(held(ms(20), ms(8) + us(1)), Cause::NagleDelayedAck);
    assert_eq!(held(ms(100), ms(25)), Cause::Nagle);
    assert_eq!(held(ms(100), ms(25) + us(1)), Cause::NagleDelayedAck);
}

/// The variance of the round trip falls by a quarter with each sample that is like the one before (RFC 6298,
/// 2.3), and the timeout with it: 400 ms + 4 * 112.5 after three samples, 400 ms + 4 * 84.4 after four. A
/// pause of more than two of them cuts an upload.
#[test]
fn the_timeout_settles_by_a_quarter_a_sample() {
    let cut = |samples: i64, pause: Nanos| {
        let mut w = opened(Tap::Client, ms(400));
        for k in 0..samples {
            w.at(ms(1_000 + 500 * k)).client().data(100);
            w.after(ms(200)).server().ack();
        }
        w.at(ms(1_000 + 500 * (samples - 1)) + pause).client().data(100);
        w.after(ms(200)).server().ack();
        w.connection().exchanges.len()
    };
    assert_eq!(cut(3, ms(1_699)), 1);
    assert_eq!(cut(3, ms(1_701)), 2);
    assert_eq!(cut(4, ms(1_474)), 1);
    assert_eq!(cut(4, ms(1_476)), 2);
    // 400 ms and the floor of 200: no less than 1.2 s.
    assert_eq!((cut(9, ms(1_199)), cut(9, ms(1_201))), (1, 2));
}

/// The smoothed round trip moves by an eighth of what a sample differs (RFC 6298, 2.3): after many of 400 ms
/// and one of 560 the timeout is 420 ms and the floor of 200.
#[test]
fn the_round_trip_is_smoothed_by_an_eighth_a_sample() {
    let cut = |pause: Nanos| {
        let mut w = opened(Tap::Client, ms(400));
        for k in 0..20 {
            w.at(ms(1_000 + 700 * k)).client().data(100);
            w.after(ms(if k == 19 { 360 } else { 200 })).server().ack();
        }
        w.at(ms(1_000 + 700 * 19) + pause).client().data(100);
        w.after(ms(200)).server().ack();
        w.connection().exchanges.len()
    };
    assert_eq!((cut(ms(1_239)), cut(ms(1_241))), (1, 2));
}

/// At least a second, whatever the timeout is; RTO is 220 ms here.
#[test]
fn a_pause_of_a_second_cuts_an_upload() {
    let cut = |pause: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().ack();
        w.at(ms(30) + pause).client().data(100);
        w.after(ms(10)).server().ack();
        w.connection().exchanges.len()
    };
    assert_eq!((cut(ms(1_000)), cut(ms(1_000) + us(1))), (1, 2));
}

/// 50 µs, or a 64th of the round trip, are no wait; nor has a link been busy where one write came after
/// another (rule 67).
#[test]
fn a_burst_has_no_longer_gaps_than_50_us_or_a_64th_of_the_trip() {
    let wait = |rtt: Nanos, gap: Nanos| {
        let mut w = opened(Tap::Client, rtt);
        w.at(ms(50)).client().data(100);
        w.after(gap).client().data(100);
        w.after(rtt).server().data(50);
        let c = w.connection();
        (c.budget.get(Cause::SenderPause), c.budget.get(Cause::Bandwidth))
    };
    for (rtt, most) in [(ms(1), us(50)), (ms(3), us(50)), (ms(20), Nanos(312_500))] {
        let above = most + us(1);
        assert_eq!(wait(rtt, most), (Nanos::ZERO, Nanos::ZERO), "{rtt}");
        assert_eq!(wait(rtt, above), (above, Nanos::ZERO), "{rtt}");
    }
}

/// A repeat of what was acknowledged long ago is no part of the answer: nobody waited for it.
#[test]
fn a_needless_repeat_does_not_lengthen_the_exchange() {
    let mut w = opened(Tap::Client, ms(20));
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(260)).server().repeat(0, 50);
    w.at(ms(270)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..50 100>50
           path_delay network 30..50 #4-5
         gap 50..270
           client_think client 50..270 #5-8",
    );
}

/// Ten trains of eleven segments come in; so many of them ten times as fast as the others.
fn train_of(fast: usize) -> Connection {
    let mut w = opened(Tap::Client, ms(20));
    w.at(ms(30)).client().data(100);
    let mut at = ms(50);
    for train in 0..10 {
        let sent = at - ms(10);
        for _ in 0..11 {
            w.at(sent).server().data(MSS).late(at - sent - ms(10));
            at += if train < fast { us(120) } else { us(1_200) };
        }
        w.at(at + ms(11)).client().ack();
        at += ms(40);
    }
    w.connection()
}

fn trains(fast: usize) -> u64 {
    train_of(fast).path.bandwidth_bps.expect("a rate")
}

/// What the link took is said with its rate.
#[test]
fn the_rate_is_said_with_the_time_that_the_link_took() {
    let said: Vec<String> = spans(&train_of(9))
        .iter()
        .filter(|s| s.cause == Cause::Bandwidth)
        .map(|s| s.facts.sentence())
        .collect();
    assert!(
        said.iter().all(|s| s.ends_with(" bytes passed; the bottleneck carries about 97 Mbit/s.")),
        "{said:?}"
    );
    assert!(!said.is_empty());
}

/// A fifth of the bytes must have reached the rate: compression makes some trains too fast, waits make others too slow.
#[test]
fn the_rate_of_the_path_is_what_more_than_a_fifth_reached() {
    let fast = 1448.0 * 8.0 / 120e-6;
    for (trains_fast, expected) in [(2, fast / 10.0), (3, fast), (9, fast)] {
        let bps = trains(trains_fast) as f64;
        assert!((bps / expected - 1.0).abs() < 0.06, "{trains_fast}: {bps} {expected}");
    }
}

/// The server answers after the trip and so long.
fn worked(rtt: Nanos, work: Nanos) -> Nanos {
    let mut w = opened(Tap::Client, rtt);
    w.at(ms(50)).client().data(100);
    w.after(rtt.part(2) + work).server().data(50);
    w.after(rtt.part(2)).client().ack();
    w.connection().budget.get(Cause::ServerThink)
}

/// What an idle host needs to answer at all is no work worth naming: 50 µs, or a 64th of the round trip.
#[test]
fn work_is_named_from_50_us_or_a_64th_of_the_trip_on() {
    assert_eq!(worked(ms(1), us(50)), Nanos::ZERO);
    assert_eq!(worked(ms(1), us(51)), us(51));
    assert_eq!(worked(ms(20), us(312)), Nanos::ZERO);
    assert_eq!(worked(ms(20), us(313)), us(313));
}

/// A server far from the tap, whose packets have no numbers, answers after the trip and so long.
fn doubted(work: Nanos) -> (f32, Option<Cause>) {
    let mut w = opened(Tap::Client, ms(20));
    for k in 0..4 {
        w.at(ms(30 + 40 * k)).client().data(100);
        w.after(ms(10)).server().data(100);
    }
    w.at(ms(200)).client().data(100);
    w.after(ms(10) + work).server().data(100);
    let mut segments = w.segments();
    segments.iter_mut().for_each(|s| s.ip_id = None);
    let c = analyze(&segments).connections.remove(0);
    let think = spans(&c).into_iter().find(|s| s.cause == Cause::ServerThink).expect("work").clone();
    assert_eq!(think.duration(), work);
    (think.confidence, think.alternatives[0].map(|a| a.0))
}

/// Behind answers that came in a quarter of it. The timer of 220 ms doubles with each loss: 220 and 660 ms
/// after the request an answer is likely to be a repeat, a 16th of the last timer before that and half a
/// timer after; a third and fourth loss of it, 1,540 and 3,300 ms after, are too seldom to make those times
/// likelier than others.
#[test]
fn an_answer_that_comes_with_a_timer_may_be_a_repeat() {
    let lost = Some(Cause::RetransmissionTimeout);
    for (work, expected) in [
        (206, (0.9, None)),
        (207, (0.525, lost)),
        (330, (0.525, lost)),
        (331, (0.56, lost)),
        (618, (0.56, lost)),
        (619, (0.525, lost)),
        (770, (0.525, lost)),
        (771, (0.56, lost)),
        (1_540, (0.56, lost)),
        (3_300, (0.56, lost)),
        (6_820, (0.56, lost)),
    ] {
        assert_eq!(doubted(ms(work)), expected, "{work} ms");
    }
}

/// A delayed ACK takes 40 ms and is up to 8 late: an answer just then is doubtful.
#[test]
fn an_answer_after_39_to_48_ms_may_be_a_delayed_ack() {
    for (work, sure) in [(us(38_999), 0.9), (ms(39), 0.5), (ms(48), 0.5), (us(48_001), 0.9)] {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.after(ms(10) + work).server().data(50);
        let c = w.connection();
        let think = spans(&c).into_iter().find(|s| s.cause == Cause::ServerThink).expect("work").clone();
        assert_eq!((think.duration(), think.confidence), (work, sure));
    }
}

/// A cork's timer is 200 ms, and the timeout where that is longer; up to a quarter and 16 ms late.
#[test]
fn a_cork_fires_with_its_timer() {
    let fires = |wait: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        let mut at = ms(30);
        w.at(at).client().data(100);
        w.after(ms(10)).server().ack();
        for _ in 0..3 {
            // The ACK is at the client 20 ms after the data.
            at += ms(20) + wait;
            w.at(at).client().data(100);
            w.after(ms(10)).server().ack();
        }
        w.at(at + ms(10)).server().data(50);
        // At a clock of its own it may be a writer's.
        let spans = &w.connection().exchanges[0].spans;
        let doubts = |s: &tcpwhy_analysis::Span| s.alternatives.iter().flatten().any(|a| a.0 == Cause::Cork);
        spans.iter().any(|s| s.cause == Cause::SenderPause && doubts(s))
    };
    // From the round trip of 20 ms and 200 ms on; to that, a quarter of it, and 16 ms.
    let found = [us(219_949), ms(220), ms(291), us(291_001)].map(fires);
    assert_eq!(found, [false, true, true, false]);
}

/// An idle time of more than a round trip and 200 ms takes the window back to its initial value, a shorter
/// one does not.
#[test]
fn the_window_falls_back_after_a_timeout_of_silence() {
    let restarted = |idle: Nanos| {
        let mut w = opened(Tap::Server, ms(20));
        let mut at = ms(30);
        for _ in 0..2 {
            w.at(at).client().data(100);
            w.after(ms(10));
            for n in [10, 20] {
                w.server().write(n * MSS);
                w.after(ms(10)).client().ack();
                w.after(ms(10));
            }
            // The last data left 20 ms before; the request takes 10 ms to the server.
            at = w.now - ms(20) + idle - ms(10);
        }
        w.connection().budget.get(Cause::IdleRestart)
    };
    // The server takes a nanosecond to answer.
    assert_eq!(restarted(ms(220) + Nanos(1)), Nanos::ZERO);
    assert_eq!(restarted(ms(220) + us(1)), ms(20));
}
