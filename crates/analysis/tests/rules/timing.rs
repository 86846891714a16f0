//! Thresholds in time and size for what released a segment: ACKs, timers, windows; from both sides.

use crate::wire::{CLIENT, SERVER, Tap, Wire, ms, us};
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, Nanos};

const MSS: u32 = 1448;

fn opened(tap: Tap, rtt: Nanos) -> Wire {
    let mut w = Wire::new(tap, rtt);
    w.handshake();
    w
}

/// The cause of the first span of the first exchange that is neither the path's nor the link's.
fn first(c: &Connection) -> Cause {
    let spans = c.exchanges[0].spans.iter().map(|s| s.cause);
    spans.into_iter().find(|&x| !matches!(x, Cause::PathDelay | Cause::Bandwidth)).unwrap_or(Cause::PathDelay)
}

/// Two flights of ten segments; the second leaves so long after the ACK of the first, or of half of it.
fn released(rtt: Nanos, half: bool, after: Nanos) -> Cause {
    let mut w = opened(Tap::Client, rtt);
    let way = rtt.part(2);
    w.at(rtt + ms(10)).client().write(5 * MSS);
    let apart = if half { ms(2) } else { Nanos::ZERO };
    w.after(apart).client().write(5 * MSS);
    w.after(way - apart).server().ack();
    w.after(way + after).client().write(10 * MSS);
    w.after(way).server().data(50);
    first(&w.connection())
}

/// A segment left with an ACK if it follows within a millisecond, or half a round trip where that is less (but 100 µs), or a
/// sixteenth of the wait where that is more; the last only while something is still in flight (rule 49).
#[test]
fn a_segment_leaves_with_the_ack_just_before_it() {
    let all = false;
    for (rtt, most) in [(ms(10), us(1_000)), (ms(1), us(500)), (us(150), us(100)), (ms(150), us(1_000))] {
        assert_eq!(released(rtt, all, most), Cause::SlowStart, "{rtt}");
        assert_eq!(released(rtt, all, most + us(2)), Cause::SenderPause, "{rtt}");
    }
    // The two halves of the flight come one after the other, then the wait.
    assert_eq!(released(ms(150), true, ms(9)), Cause::SlowStart);
}

/// The last segment of a flight comes again after so long without an ACK: a probe until two round trips and 200 ms, an eighth
/// late (RFC 8985, 7.2), then the timer.
#[test]
fn a_repeat_of_the_last_segment_is_a_probe_or_a_timeout() {
    let repeated = |quiet: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100).lost();
        w.at(ms(30) + quiet).client().repeat(0, 100);
        w.after(ms(10)).server().data(50);
        first(&w.connection())
    };
    let found = [ms(40), ms(220), ms(270), us(270_001)].map(repeated);
    let probe = Cause::TailLossProbe;
    assert_eq!(found, [probe, probe, probe, Cause::RetransmissionTimeout]);
}

/// Another segment comes again: by the timer from 190 ms on or where no ACK told of a later arrival for more than half a trip
/// (within a whole one all of that time is the way).
#[test]
fn a_repeat_of_an_earlier_segment_is_a_timeout_or_fast() {
    let repeated = |quiet: Nanos, sack: bool| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        w.at(ms(60)).client().data(MSS).lost();
        let later = w.client().data(100);
        if !sack {
            later.lost();
        }
        if sack {
            w.at(ms(70)).server().ack();
        }
        w.at(ms(60) + quiet).client().repeat(100, MSS);
        w.after(ms(10)).server().data(50);
        let budget = w.connection().budget;
        let known = [Cause::RetransmissionTimeout, Cause::FastRecovery, Cause::TailLossProbe];
        known.into_iter().find(|&c| budget.get(c) > Nanos::ZERO)
    };
    let (timer, fast) = (Some(Cause::RetransmissionTimeout), Some(Cause::FastRecovery));
    assert_eq!([ms(10), us(10_001), ms(190)].map(|q| repeated(q, false)), [fast, None, timer]);
    // Signs of a later arrival make it fast, until a round trip and seven eighths of 200 ms.
    assert_eq!([ms(21), us(194_999), us(195_001)].map(|q| repeated(q, true)), [fast, fast, timer]);
}

/// A hole that the tap never saw filled in time: by a timer from seven eighths of 200 ms on.
#[test]
fn a_hole_filled_late_is_a_timeout_after_200_ms() {
    let filled = |after: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(MSS).lost_before_tap();
        w.server().data(MSS);
        w.at(ms(50)).client().ack();
        w.at(ms(40) + after).server().repeat(0, MSS);
        w.after(ms(10)).client().ack();
        first(&w.connection())
    };
    assert_eq!([us(174_999), ms(175)].map(filled), [Cause::FastRecovery, Cause::RetransmissionTimeout]);
}

/// One segment at a time, whose ACK is late: more than half of the wait, with two segments in flight at most.
#[test]
fn a_late_ack_is_the_wait_if_it_took_more_than_half() {
    let waited = |rtt: Nanos, delay: Nanos, segments: u32| {
        let mut w = opened(Tap::Client, rtt);
        let way = rtt.part(2);
        let mut at = rtt + ms(10);
        for _ in 0..2 {
            w.at(at).client().write(segments * MSS);
            w.after(way + delay).server().ack();
            at = w.now + way;
        }
        w.at(at).client().write(segments * MSS);
        w.after(way).server().data(50);
        w.connection().budget.get(Cause::DelayedAck) > Nanos::ZERO
    };
    assert_eq!([ms(20), ms(21)].map(|d| waited(ms(20), d, 1)), [false, true]);
    assert_eq!([ms(8), ms(9)].map(|d| waited(ms(4), d, 1)), [false, true]);
    assert_eq!([2, 3].map(|n| waited(ms(20), ms(40), n)), [true, false]);
}

/// A window of 16 segments at most: half of it offered, and the reader is behind; a segment more, and the window is too small.
#[test]
fn half_of_the_buffer_unread_is_the_readers() {
    let limited = |most: u32, offered: u32| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.host[SERVER].wscale = Some(0);
        w.host[SERVER].window = most;
        w.handshake();
        w.at(ms(30)).client().write(offered / MSS * MSS);
        for k in 0..8 {
            w.at(ms(40 + 20 * k)).server().window(offered).ack();
            w.at(ms(50 + 20 * k)).client().write(offered / MSS * MSS);
        }
        w.at(ms(300)).server().data(50);
        let c = w.connection();
        (c.budget.get(Cause::SlowReader) >= ms(100), c.budget.get(Cause::ReceiveWindow) >= ms(100))
    };
    assert_eq!(limited(16 * MSS, 8 * MSS), (true, false));
    assert_eq!(limited(16 * MSS - 1, 8 * MSS), (false, true));
    // Small windows are used up by what has just come.
    assert_eq!(limited(8 * MSS, 4 * MSS), (true, false));
    assert_eq!(limited(8 * MSS - 1, 3 * MSS), (false, true));
}

/// The window update comes so long after the ACK: from a quarter of the whole wait on the reader made room only then.
#[test]
fn a_window_that_opens_a_quarter_of_the_wait_later_is_the_readers() {
    let cause = |held: Nanos| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.host[SERVER].window = 3 * MSS;
        w.host[SERVER].wscale = Some(0);
        w.handshake();
        w.at(ms(30)).client().write(3 * MSS);
        // Of three segments one is there; the window that is offered holds the other two.
        w.overtaken(0, ms(60));
        w.overtaken(1, ms(60));
        w.at(ms(40)).server().window(2 * MSS).ack();
        w.at(ms(40) + held).server().window(3 * MSS).ack();
        w.at(ms(50) + held).client().data(MSS);
        w.at(ms(120)).server().data(50);
        first(&w.connection())
    };
    assert_eq!([us(6_666), us(6_667)].map(cause), [Cause::ReceiveWindow, Cause::SlowReader]);
}

/// A round trip of 20 ms, and a write of less than a segment into the room that is left, by a timer of 190 ms and more.
#[test]
fn the_room_that_is_left_is_used_by_the_timer() {
    let cause = |window: u32, room: u32, wait: Nanos| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.host[SERVER].window = window;
        w.host[SERVER].wscale = Some(0);
        w.handshake();
        w.at(ms(30)).client().write(window / MSS * MSS);
        w.at(ms(40)).server().window(room).ack();
        w.at(ms(30) + wait).client().data(room);
        w.after(ms(10)).server().data(50);
        first(&w.connection())
    };
    assert_eq!(cause(4 * MSS - 1, MSS - 1, ms(240)), Cause::SillyWindow);
    assert_eq!(cause(4 * MSS, 500, ms(240)), Cause::SlowReader);
    assert_eq!(cause(4 * MSS, 500, us(189_999)), Cause::SenderPause);
    assert_eq!(cause(4 * MSS, 500, ms(190)), Cause::SlowReader);
}

/// Packets of the server are missing from its numbers before one that comes with its timer (rule 35): from a sixteenth before it on, in
/// the middle of an answer; by a probe, if one can be as late.
#[test]
fn a_missing_packet_and_a_timer_in_the_middle_of_an_answer() {
    let missing = |wait: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        for k in 0..4 {
            w.at(ms(30 + 40 * k)).client().data(100);
            w.after(ms(10)).server().data(100);
        }
        w.at(ms(200)).client().data(100);
        w.at(ms(210)).server().data(100);
        w.at(ms(220)).client().ack();
        w.at(ms(215)).server().data(100).lost_before_tap();
        w.at(ms(210) + wait).server().repeat(500, 100);
        w.after(ms(10)).client().ack();
        let budget = w.connection().budget;
        let known = [Cause::TailLossProbe, Cause::RetransmissionTimeout, Cause::SenderPause];
        known.into_iter().find(|&c| budget.get(c) > Nanos::ZERO).unwrap()
    };
    let found = [ms(206), ms(207), ms(270), ms(271), ms(5_000)].map(missing);
    let (probe, timer) = (Cause::TailLossProbe, Cause::RetransmissionTimeout);
    assert_eq!(found, [Cause::SenderPause, probe, probe, timer, timer]);
}

/// Full segments in the middle of a run, each 3.6 ms after the one before: a timer spaces them, from eight on.
#[test]
fn eight_spaced_segments_are_pacing() {
    let paced = |segments: i64, order: u32| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.host[1].order = order;
        w.handshake().at(ms(30)).client().data(100);
        for i in 0..segments {
            w.at(ms(40) + us(3_600 * i)).server().data(MSS);
        }
        w.at(ms(40) + us(3_600 * segments)).client().ack();
        let c = w.connection();
        (c.budget.get(Cause::Pacing), c.budget.get(Cause::SenderPause))
    };
    assert_eq!(paced(9, 0), (us(3_600 * 8), Nanos::ZERO));
    assert_eq!(paced(8, 0), (Nanos::ZERO, us(3_600 * 7)));
    assert_eq!(paced(8, 0x342), (us(3_600 * 7), Nanos::ZERO));
}

/// Small writes that come by themselves, more than twice as many as the spaced segments: so do those.
#[test]
fn spaced_segments_among_many_writes_are_no_pacing() {
    let paced = |writes: i64| {
        let mut w = opened(Tap::Server, ms(20));
        w.at(ms(30)).client().data(100);
        for k in 0..writes {
            w.at(ms(40 + 50 * k)).server().data(100);
            w.after(ms(10)).client().ack();
        }
        let at = ms(40 + 50 * writes);
        for i in 0..10 {
            w.at(at + us(3_600 * i)).server().data(MSS);
        }
        w.at(at + us(36_000)).client().ack();
        w.connection().budget.get(Cause::Pacing) > Nanos::ZERO
    };
    assert_eq!([3, 30].map(paced), [true, false]);
}

/// The upload of a client that closes: after the answer the server closes first, or it does not.
#[test]
fn the_time_until_the_close_is_the_servers_if_it_closes_first() {
    let closed = |server: i64, client: i64| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        w.at(ms(50)).client().ack();
        for (at, who) in [(server, SERVER), (client, CLIENT)] {
            w.at(ms(at)).end(who).fin();
        }
        w.connection().closed_after
    };
    assert_eq!(closed(140, 160), Some(ms(100)));
    assert_eq!(closed(140, 149), None);
    // With the answer itself.
    assert_eq!(closed(40, 160), None);
}

/// Ten exchanges are chatty if less than a quarter of each is something else than the way.
#[test]
fn a_quick_exchange_is_three_quarters_way() {
    let chatty = |work: Nanos| {
        let mut w = opened(Tap::Client, ms(30));
        for n in 0..10 {
            w.at(ms(50 + 100 * n)).client().data(100);
            w.after(ms(15) + work).server().data(50);
        }
        w.analysis().findings.iter().any(|f| f.cause == Cause::Chatty)
    };
    assert_eq!([us(9_999), us(10_001)].map(chatty), [true, false]);
}

/// After one timer repeat, an ACK sooner than half the trip of the far end was for the original.
#[test]
fn an_ack_within_half_a_trip_of_the_repeat_was_not_for_it() {
    let spurious = |after: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().write(2 * MSS);
        w.at(ms(250)).client().repeat(0, MSS);
        w.at(ms(240) + after).server().ack().segment.options.sack_len = 0;
        w.at(ms(252) + after).client().write(2 * MSS);
        w.after(ms(10)).server().data(50).segment.options.sack_len = 0;
        w.connection().budget.get(Cause::SpuriousRecovery) > Nanos::ZERO
    };
    assert_eq!([us(9_999), us(10_001)].map(spurious), [true, true]);
}

/// A probe is followed by the timeout it came before; where the second repeat comes a half later than the first, it was the
/// timer all along.
#[test]
fn a_timer_that_doubles_was_no_probe() {
    let named = |second: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100).lost();
        w.at(ms(250)).client().repeat(0, 100).lost();
        w.at(ms(250) + second).client().repeat(0, 100);
        w.after(ms(10)).server().data(50);
        let budget = w.connection().budget;
        budget.get(Cause::TailLossProbe) > Nanos::ZERO
    };
    assert_eq!([us(329_999), ms(330)].map(named), [true, false]);
}

/// Without a handshake: the lower port is the server's; between equal ones the sender of the first packet is the client.
#[test]
fn who_is_the_client_without_a_syn() {
    let client = |ports: [u16; 2]| {
        let mut w = opened(Tap::Client, ms(20));
        for (host, port) in w.host.iter_mut().zip(ports) {
            host.end.port = port;
        }
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        let c = crate::wire::analyze(&w.segments()[3..]).connections.remove(0);
        (c.client.port, c.roles_inferred)
    };
    assert_eq!(client([50_000, 80]), (50_000, true));
    assert_eq!(client([80, 50_000]), (50_000, true));
    let mut w = opened(Tap::Client, ms(20));
    w.host[CLIENT].end.port = 179;
    w.host[SERVER].end.port = 179;
    w.at(ms(30)).client().data(100);
    let c = crate::wire::analyze(&w.segments()[3..]).connections.remove(0);
    assert_eq!(c.client, w.host[CLIENT].end);
}

/// The rate of trains counts from four intervals on; a pause of a quarter of the round trip ends one.
#[test]
fn a_train_has_four_intervals() {
    let rate = |segments: u32, pause: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        // Who spaced them only their stamps would tell (rule 87).
        w.timestamps = false;
        w.at(ms(30)).client().data(100);
        let mut at = ms(40);
        for _ in 0..30 {
            for _ in 0..segments {
                at += us(500);
                w.at(at).server().data(MSS);
            }
            w.at(at + ms(10)).client().ack();
            at += pause - us(500);
        }
        w.connection().path.bandwidth_bps.map(|bps| bps as f64 / (f64::from(MSS) * 8.0 / 500e-6))
    };
    assert_eq!(rate(4, ms(20)), None);
    let five = rate(5, ms(20)).expect("four intervals");
    assert!((five - 1.0).abs() < 0.06, "{five}");
    // 5 ms join trains: five segments in 7 ms.
    let joined = rate(5, ms(5)).expect("one long train");
    assert!((joined - 5.0 * 0.5 / 7.0).abs() < 0.03, "{joined}");
    let apart = rate(5, ms(5) + us(1)).expect("trains of five");
    assert!((apart - 1.0).abs() < 0.06, "{apart}");
    // Less than 100 kB says nothing.
    assert_eq!(rate(2, ms(5)).is_some(), 60 * MSS >= 100_000);
}

/// Small writes one behind another show the pace of the application, full segments that of the link.
#[test]
fn the_pace_of_small_writes_is_no_rate() {
    let rate = |len: u32| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        let mut at = ms(40);
        for _ in 0..80 {
            w.at(at).server().data(len);
            at += us(100);
        }
        w.at(at + ms(1)).client().ack();
        w.connection().path.bandwidth_bps
    };
    assert_eq!(rate(MSS - 1), None, "each of them ends a write");
    assert!(rate(MSS).is_some());
}

/// Where older trains fill the histogram (134 MB of one rate), they weigh half, so that a link that became faster shows sooner.
#[test]
fn older_trains_weigh_half() {
    let rate = |slow: u32, fast: u32| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.host[CLIENT].window = 1 << 30;
        w.host[CLIENT].wscale = Some(14);
        w.handshake();
        w.at(ms(30)).client().data(100);
        let mut at = ms(40);
        for train in 0..slow + fast {
            let sent = at;
            for _ in 0..65 {
                w.at(sent).server().data(45 * MSS).late(at - sent);
                at += if train < slow { us(800) } else { us(100) };
            }
            at += ms(20);
        }
        let bps = w.connection().path.bandwidth_bps.expect("a rate") as f64;
        bps > 2e9
    };
    // Each train is 64 * 65,160 bytes, 1,019 units; 33 of them are more than 2^15.
    assert_eq!([8, 9].map(|fast| rate(32, fast)), [false, true]);
    assert_eq!([4, 5].map(|fast| rate(33, fast)), [false, true]);
}

/// The server's second small write waits for the ACK of its first, across a request that came meanwhile: an ACK without data
/// that lets it go is Nagle's; data that happens to acknowledge it is the next turn.
#[test]
fn a_write_that_is_held_across_a_turn() {
    let held = |pure: bool| {
        let mut w = opened(Tap::Server, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(4);
        // It has not yet arrived.
        w.at(ms(45)).client().data(MSS);
        w.at(ms(90));
        if pure {
            w.client().ack();
        } else {
            w.client().data(20);
        }
        w.at(ms(100)).server().data(100);
        w.at(ms(110)).client().ack();
        w.connection().budget.get(Cause::NagleDelayedAck)
    };
    assert_eq!((held(true), held(false)), (ms(45), Nanos::ZERO));
}

/// Flights of twenty segments that grow by one each `rounds` round trips.
fn growing(flights: u32, rounds: u32) -> Connection {
    let mut w = opened(Tap::Server, ms(20));
    w.at(ms(30)).client().data(100);
    w.after(ms(10));
    for k in 0..flights {
        w.server().write((20 + k / rounds) * MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10));
    }
    w.connection()
}

/// Congestion avoidance adds half a segment a round trip at least, of which half is asked for: a quarter. What grows less, or is
/// too short to tell, stops at the buffer.
#[test]
fn a_plateau_that_rises_by_a_quarter_of_a_segment_is_the_congestion_window() {
    let of = |c: Connection| [Cause::CongestionWindow, Cause::SendBuffer].map(|x| c.budget.get(x) > ms(100));
    assert_eq!(of(growing(41, 4)), [true, false]);
    assert_eq!(of(growing(41, 5)), [false, true]);
    // Sixteen flights are needed.
    assert_eq!([of(growing(17, 2)), of(growing(16, 2))], [[true, false], [false, true]]);
}

/// An answer that nobody acknowledged when the capture ends: on its way for a trip, then delayed or lost, until its timeout.
#[test]
fn an_answer_that_is_out_when_the_capture_ends() {
    let last = |wait: Nanos| {
        let mut w = opened(Tap::Server, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(100).lost();
        w.at(ms(30) + wait).client().probe();
        let c = w.connection();
        let x = &c.exchanges[0];
        let span = x.spans.last().expect("a tail").clone();
        (x.ended.name(), span.cause, span.side.map(|s| s.name()), x.end - x.start)
    };
    let on_its_way = |wait: Nanos| ("capture_end", Cause::PathDelay, Some("network"), wait);
    assert_eq!(last(us(20_400)), on_its_way(us(20_400)));
    assert_eq!(last(us(219_999)).1, Cause::Unexplained);
    assert_eq!(last(us(220_001)).1, Cause::KeepaliveOrDeadPeer);
    assert_eq!(last(us(220_001)).2, Some("client"));
}

/// Five segments arrive, some apart. Within the first round trip no ACK of theirs has come round: they were sent together.
#[test]
fn what_arrives_within_the_first_round_trip_was_sent_together() {
    let mut w = opened(Tap::Client, ms(20));
    w.at(ms(30)).client().data(100);
    let late = [0, 1, 7, 8, 14];
    for k in late {
        w.at(ms(40)).server().data(MSS).late(ms(k));
    }
    for k in late {
        w.at(ms(50 + k)).client().ack();
    }
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::Bandwidth), ms(14), "{:?}", c.budget);
}
