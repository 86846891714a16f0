//! What some would call a limit of TCP, and where the packets stop showing it (rules 78 to 83).

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, Nanos, TcpFlags};

const MSS: u32 = 1448;

/// Full segments of the server, so far apart by turns, each acknowledged at once; none ends a write.
fn unpushed(rtt: Nanos, apart: [Nanos; 2]) -> Connection {
    let mut w = Wire::new(Tap::Client, rtt);
    w.handshake();
    w.at(rtt + ms(10)).client().data(100);
    let mut at = rtt + ms(10) + rtt.part(2);
    for k in 0..20 {
        w.at(at).server().data(MSS);
        w.at(at + rtt.part(2)).client().ack();
        at += apart[k % 2];
    }
    w.connection()
}

/// Seen from afar: no ACK can just have reached the sender, and what comes as evenly is spaced by the link (rule 82).
#[test]
fn what_no_ack_released_comes_at_the_pace_of_the_link() {
    let told = |apart| {
        let c = unpushed(ms(2), apart);
        (c.budget.get(Cause::Bandwidth) > ms(9 * 15), c.budget.get(Cause::SenderPause) > ms(9 * 10))
    };
    assert_eq!(told([ms(9), ms(9)]), (true, false));
    // A sixteenth more or less is as even.
    assert_eq!(told([ms(9), us(9_500)]), (true, false));
    assert!(!told([ms(9), us(9_700)]).0);
}

/// Small writes of the server, each so long after the ACK of the one before.
fn holds(count: u32, late: Nanos, sizes: [u32; 2]) -> Connection {
    let rtt = ms(10);
    let mut w = Wire::new(Tap::Server, rtt);
    w.handshake();
    w.at(rtt + ms(10)).client().data(100);
    let mut at = rtt + ms(10) + rtt.part(2);
    for k in 0..count {
        let packet = w.at(at).server().data(sizes[k as usize % 2]);
        packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        w.at(at + rtt.part(2)).client().ack();
        at += rtt + late;
    }
    w.connection()
}

/// Holds of one size by a writer that is a little faster than the ACKs are n in a row once in n + 1; a writer
/// that is a little slower comes so soon after the ACKs as often as that is of the hold (rule 81).
#[test]
fn holds_of_one_size_are_their_writers_clock() {
    let told = |count, late, sizes| {
        let c = holds(count, late, sizes);
        [Cause::Nagle, Cause::SenderPause].map(|cause| c.budget.get(cause) > ms(20))
    };
    // 900 of 10,900 µs: the twelfth hold makes it the likelier.
    assert_eq!(told(12, us(900), [300, 300]), [true, false]);
    assert_eq!(told(13, us(900), [300, 300]), [false, true]);
    // What left at once with each ACK was held.
    assert_eq!(told(60, us(40), [300, 300]), [true, false]);
    // What was written meanwhile makes a hold larger.
    assert_eq!(told(20, us(900), [300, 600]), [true, false]);
}

/// Beside the server: what was held left before the answer came, for it acknowledges nothing of that. The ACK
/// passed just before the answer (rules 7 and 78).
#[test]
fn what_left_before_the_answer_came_had_been_held() {
    let told = |ack: bool| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        if ack {
            w.at(ms(40)).server().ack();
        }
        w.at(ms(41)).server().data(500);
        w.at(ms(50)).client().data(300);
        w.after(ms(10)).server().data(500);
        w.after(ms(10)).client().ack();
        let c = w.connection();
        (c.exchanges.len(), c.budget.get(Cause::Nagle))
    };
    assert_eq!(told(true), (1, ms(19)));
    assert_eq!(told(false), (1, Nanos::ZERO));
}

/// Seen from afar, after so many holds of the server: a full segment comes 35 ms behind another, which was
/// not pushed, and no ACK can have let it go. What had been held was filled up by its writer (rule 83); where
/// no holds are known nobody can tell.
#[test]
fn a_held_tail_leaves_when_it_is_full() {
    let told = |holds: u32| {
        let mut w = Wire::new(Tap::Client, ms(4));
        w.handshake();
        w.at(ms(10)).client().data(100);
        let mut at = ms(12);
        w.at(at).server().data(100);
        for k in 0..holds {
            w.at(at + ms(2)).client().ack();
            at += ms(4);
            w.at(at).server().data(200 + k);
        }
        w.at(at + ms(2)).client().ack();
        at += ms(4);
        w.at(at).server().data(MSS);
        w.at(at + ms(35)).server().data(MSS);
        w.at(at + ms(37)).client().ack();
        let budget = w.connection().budget;
        [Cause::SenderPause, Cause::SlowStart, Cause::Unexplained].map(|c| budget.get(c) > ms(30))
    };
    assert_eq!(told(2), [true, false, false]);
    assert_eq!(told(0), [false, false, true]);
}

/// Flights of so many segments, each beginning with the ACK of all of the one before: a window that let ten
/// fly holds neither three nor eight. With less than two thirds in flight no buffer does either (rules 79 and
/// 80).
#[test]
fn what_flew_before_bounds_the_window() {
    let told = |flights: [u32; 3]| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.after(ms(10));
        for n in flights {
            for k in 0..n {
                let push = if k + 1 == n { TcpFlags::PSH } else { 0 };
                w.server().data(MSS).segment.flags = TcpFlags(TcpFlags::ACK | push);
            }
            w.after(ms(10)).client().ack();
            w.after(ms(10));
        }
        let budget = w.connection().budget;
        [Cause::SlowStart, Cause::SenderPause, Cause::Unexplained].map(|c| budget.get(c).0 / 1_000_000)
    };
    assert_eq!(told([10, 12, 1]), [40, 0, 0]);
    assert_eq!(told([10, 3, 1]), [20, 20, 0]);
    assert_eq!(told([10, 8, 1]), [20, 0, 20]);
    // A segment more than ever flew.
    assert_eq!(told([10, 10, 1]), [40, 0, 0]);
}

/// Flights of three segments, each a little after the ACK of the one before, which wanders by 150 µs. What
/// ACKs let go wanders with them; a writer that keeps its own time does not (rule 66, also on a plateau), nor
/// does a link in the middle of a write.
#[test]
fn a_plateau_that_does_not_wander_with_its_acks_is_its_writers() {
    let told = |own: bool, ends: bool| {
        let rtt = ms(10);
        let mut w = Wire::new(Tap::Server, rtt);
        w.handshake();
        w.at(ms(20)).client().data(100);
        let mut at = ms(25);
        for k in 0..20 {
            for n in 0..3 {
                let push = if n == 2 && ends { TcpFlags::PSH } else { 0 };
                w.at(at).server().data(MSS).segment.flags = TcpFlags(TcpFlags::ACK | push);
            }
            let wanders = us(150 * (k % 2));
            w.at(at + rtt.part(2) + wanders).client().ack();
            at += rtt + if own { us(200) } else { wanders + us(50) };
        }
        let budget = w.connection().budget;
        [Cause::SendBuffer, Cause::SenderPause].map(|c| budget.get(c) > ms(100))
    };
    assert_eq!(told(true, true), [false, true]);
    assert_eq!(told(false, true), [true, false]);
    assert!(!told(true, false)[1]);
}

/// Pauses of some milliseconds behind packets of two full segments, within a round trip of 40: as long as
/// nothing tells a writer from a sender that paces, it is unexplained, and behind four a guess. Behind the
/// partial end of a write it is the writer.
#[test]
fn a_pause_behind_whole_packets_is_a_guess() {
    let told = |bytes: u32| {
        let mut w = Wire::new(Tap::Client, ms(40));
        w.handshake();
        w.at(ms(50)).client().data(100);
        let start = ms(90);
        for at in [0, 3, 10] {
            let packet = w.at(start + ms(at)).server().data(bytes);
            packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        }
        w.after(ms(20)).client().ack();
        let c = w.connection();
        let spans = c.exchanges.iter().flat_map(|e| &e.spans);
        let pause = spans.filter(|s| s.cause == Cause::SenderPause).max_by_key(|s| s.duration());
        pause.map(|s| (s.confidence < 0.7, s.alternatives.iter().flatten().any(|a| a.0 == Cause::Pacing)))
    };
    assert_eq!(told(2 * MSS), None);
    assert_eq!(told(4 * MSS), Some((true, true)));
    assert_eq!(told(2 * MSS - 100), Some((false, false)));
}

/// Beside its sender: flights of five segments, each so long after all before it had been acknowledged, a round trip of 40 ms later. A
/// program that a full buffer held looks the same on a busy host (rule 85), but neither if it waits much longer, nor if it writes
/// less than a segment.
#[test]
fn whole_segments_soon_behind_an_ack_are_a_guess() {
    let told = |late: i64, bytes: u32| {
        let mut w = Wire::new(Tap::Server, ms(40));
        w.handshake();
        w.at(ms(50)).client().window(1 << 20).data(100);
        for n in 0..4 {
            let at = ms(80 + n * (40 + late));
            w.at(at).server().write(bytes);
            w.at(at + ms(20)).client().ack();
        }
        let c = w.connection();
        let spans = c.exchanges.iter().flat_map(|e| &e.spans);
        let pause = spans.filter(|s| s.cause == Cause::SenderPause).max_by_key(|s| s.duration());
        pause.map(|s| {
            let buffer = s.alternatives.iter().flatten().any(|a| a.0 == Cause::SendBuffer);
            s.confidence < 0.7 && buffer
        })
    };
    assert_eq!(told(5, 5 * MSS), Some(true));
    assert_eq!([told(30, 5 * MSS), told(5, 200)], [Some(false); 2]);
}

/// How much of an answer is slow start, and a congestion window's, percent: so many segments are in flight in
/// each round trip of 40 ms.
fn of_flights(tap: Tap, flights: &[u32]) -> [i64; 2] {
    let mut w = Wire::new(tap, ms(40));
    w.handshake();
    w.at(ms(100)).client().window(1 << 20).data(100);
    w.after(ms(20));
    for flight in flights {
        w.server().write(flight * MSS);
        w.after(ms(20)).client().ack();
        w.after(ms(20));
    }
    w.server().data(50);
    w.after(ms(20)).client().ack();
    let c = w.connection();
    let whole = c.exchanges[0].end - c.exchanges[0].start;
    [Cause::SlowStart, Cause::CongestionWindow].map(|cause| c.budget.get(cause).0 * 100 / whole.0)
}

/// A window that becomes a segment or two larger in each round trip has left slow start, though nothing was
/// lost; one that grows by half of itself need not have (rule 131).
#[test]
fn what_grows_by_a_segment_is_no_slow_start() {
    for tap in [Tap::Client, Tap::Server] {
        let [slow, avoids] = of_flights(tap, &[10, 20, 26, 27, 28, 30, 31, 32, 34, 35, 36, 38, 40]);
        assert!(slow < 20 && avoids > 60, "{slow} {avoids}");
        let [slow, avoids] = of_flights(tap, &[10, 16, 24, 36, 54, 81, 122, 183]);
        assert!(slow > 60 && avoids == 0, "{slow} {avoids}");
        // HyStart leaves windows below sixteen segments alone.
        assert_eq!(of_flights(tap, &[7, 8, 9, 10, 11, 12, 13, 14])[1], 0);
    }
}
