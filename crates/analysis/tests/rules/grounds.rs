//! What a claim needs before it can be made: something in flight, own bytes on the link, a timer that can have run.

use crate::wire::{SERVER, Tap, Wire, ms, us};
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, Nanos, TcpFlags};

const MSS: u32 = 1448;
/// Thirteen full segments and a partial one, which is pushed.
const WRITE: u32 = 20_000;

fn opened(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.after(ms(10));
    w
}

/// The server writes six times, each time so long after the ACK of all that it had written before.
fn writes(tap: Tap, after: Nanos) -> Connection {
    let mut w = opened(tap);
    for _ in 0..6 {
        w.server().write(WRITE);
        w.after(ms(10)).client().ack();
        w.after(ms(10) + after);
    }
    w.connection()
}

/// All is acknowledged and the next write comes later than a wake-up: the writer was not held (rule 49).
/// Within it he may have been.
#[test]
fn nothing_in_flight_is_no_limit() {
    for tap in [Tap::Server, Tap::Client] {
        let late = writes(tap, ms(5)).budget;
        assert_eq!(late.get(Cause::SenderPause), ms(25).times(5), "{tap:?} {late:?}");
        let soon = writes(tap, us(400)).budget;
        assert_eq!(soon.get(Cause::SenderPause), Nanos::ZERO, "{tap:?} {soon:?}");
    }
    let at = |after| writes(Tap::Server, after).budget.get(Cause::SenderPause) > Nanos::ZERO;
    assert_eq!([us(1_000), us(1_001)].map(at), [false, true]);
}

/// Away from the sender a flight whose last segment was not pushed has more behind it: the path was late, by
/// up to a quarter of the round trip.
#[test]
fn what_was_not_pushed_goes_on() {
    let slow_start = |late: Nanos| {
        let mut w = opened(Tap::Client);
        for n in [10, 20, 40] {
            w.server().write(n * MSS);
            w.after(ms(10)).client().ack();
            w.after(ms(10) + late);
        }
        w.connection().budget.get(Cause::SlowStart) > Nanos::ZERO
    };
    assert_eq!([ms(5), ms(7)].map(slow_start), [true, false]);
}

/// A byte that nobody acknowledged for two timeouts, here of a second each, would have been sent again (rule 47).
#[test]
fn a_pause_with_old_data_unacknowledged_is_not_believed() {
    let found = |wait: Nanos| {
        let mut w = opened(Tap::Server);
        w.server().data(100);
        w.after(wait).server().data(100);
        w.after(ms(10)).client().ack();
        let budget = w.connection().budget;
        [Cause::SenderPause, Cause::Unexplained].map(|c| budget.get(c) > Nanos::ZERO)
    };
    assert_eq!(found(us(1_999_900)), [true, false]);
    assert_eq!(found(us(2_000_100)), [false, true]);
}

/// A next request came behind an answer that was lost, and the answer is sent again: it is not what the
/// server works on.
#[test]
fn what_is_sent_again_behind_a_next_request_is_no_answer_to_it() {
    let mut w = opened(Tap::Server);
    w.at(ms(100)).client().data(70);
    w.after(ms(1)).server().data(100).lost();
    w.after(ms(50)).client().data(70);
    w.after(ms(40)).server().ack();
    w.at(ms(1_101)).server().repeat(0, 100);
    w.after(ms(10)).client().ack();
    let budget = w.connection().budget;
    assert!(budget.get(Cause::RetransmissionTimeout) > ms(900), "{budget:?}");
    assert!(budget.get(Cause::ServerThink) < ms(70), "{budget:?}");
}

/// New data that comes with a lost segment unacknowledged is a probe within a timeout; later it cannot be
/// one, and the time is the timer's.
#[test]
fn a_probe_comes_within_a_timeout() {
    let found = |wait: Nanos| {
        let mut w = opened(Tap::Server);
        w.server().data(MSS).lost();
        w.after(wait).server().data(MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10)).server().repeat(0, MSS);
        w.after(ms(10)).client().ack();
        let budget = w.connection().budget;
        [Cause::TailLossProbe, Cause::RetransmissionTimeout].map(|c| budget.get(c) > ms(100))
    };
    assert_eq!(found(ms(900)), [true, false]);
    assert_eq!(found(ms(1_100)), [false, true]);
}

/// The client's tap sees three segments of each flight, 6 ms apart on a link that carries 2 Mbit/s, at a
/// round trip of 20 ms. The write goes on behind each of them; `push`: none does.
fn spaced(push: bool) -> Connection {
    let mut w = opened(Tap::Client);
    w.timestamps = false;
    for n in 0..24 {
        w.at(ms(50 + 6 * n));
        let packet = w.server().data(MSS + 12);
        if push {
            packet.segment.flags.0 |= TcpFlags::PSH;
        }
        w.at(ms(60 + 6 * n)).client().ack();
    }
    w.connection()
}

/// Segments that are alike and come evenly show the link although they are further apart than a quarter of
/// the round trip; writes of that size at an even pace do not (rule 36).
#[test]
fn even_gaps_within_a_write_are_the_link() {
    let c = spaced(false);
    assert!(c.budget.get(Cause::Bandwidth) > ms(120), "{:?}", c.budget);
    let c = spaced(true);
    assert!(c.budget.get(Cause::Bandwidth) < ms(20), "{:?}", c.budget);
}

/// The server answers 10 ms after the pure ACK of the request, which came so long after the request had
/// passed the client's tap: what is beyond the trip, 40 ms and the timer wheel was no work (rule 51).
#[test]
fn a_request_that_came_late_was_not_thought_about() {
    let unexplained = |late: Nanos| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.at(ms(30) + late - ms(10)).server().ack();
        w.after(ms(10)).server().data(500);
        w.after(ms(20)).client().ack();
        w.connection().budget.get(Cause::Unexplained)
    };
    assert_eq!([ms(68), ms(69), ms(300)].map(unexplained), [Nanos::ZERO, ms(1), ms(232)]);
}

/// The same where the answer itself is the first to acknowledge the request: from Linux within 40 ms of it,
/// from others within half a second, unless what may have done so before is missing or cannot be missed (rule
/// 51).
#[test]
fn an_answer_that_acknowledges_was_not_thought_about_for_long() {
    let unexplained = |linux: bool, after: Nanos, change: fn(&mut Wire)| {
        let mut w = Wire::new(Tap::Client, ms(20));
        if !linux {
            w.timestamps = false;
            w.host[1].ttl = 128;
        }
        w.handshake();
        for _ in 0..3 {
            w.after(ms(10)).client().data(100);
            w.after(ms(15)).server().data(500);
            w.after(ms(10)).client().ack();
        }
        w.after(ms(10)).client().data(100);
        w.after(after - ms(10));
        change(&mut w);
        w.server().data(500);
        w.after(ms(10)).client().ack();
        w.connection().budget.get(Cause::Unexplained)
    };
    let linux = |after, change| unexplained(true, after, change);
    assert_eq!([ms(68), ms(69)].map(|t| linux(t, |_| {})), [Nanos::ZERO, ms(1)]);
    assert_eq!([ms(528), ms(529)].map(|t| unexplained(false, t, |_| {})), [Nanos::ZERO, ms(1)]);
    assert_eq!(linux(ms(150), |w| w.host[1].ip_id += 1), Nanos::ZERO);
    assert_eq!(linux(ms(150), |w| w.host[1].ip_id = 7), Nanos::ZERO);
}

/// After a loss a window that is back where it was is no longer the loss's (rule 14).
#[test]
fn a_loss_is_over_when_its_flight_is_back() {
    let mut w = opened(Tap::Server);
    w.server().data(MSS).lost();
    w.server().write(19 * MSS);
    w.after(ms(10)).client().ack();
    w.after(ms(10)).server().repeat(0, MSS);
    w.after(ms(10)).client().ack();
    w.after(ms(10));
    for n in [10, 15, 19, 21, 22] {
        w.server().write(n * MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10));
    }
    let c = w.connection();
    let said = c.exchanges[0].spans.iter().filter(|s| s.cause == Cause::CongestionWindow);
    let below: Vec<bool> = said.map(|s| s.facts.sentence().contains("the window had been ")).collect();
    assert_eq!(below, [true, true, true, false], "{:?}", c.budget);
}

/// Milliseconds of Nagle and of slow start in requests of so many full segments each, whose tails wait for
/// the ACK of those.
fn tails(order: u32, flights: &[u32], pushed: bool) -> [i64; 2] {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[0].order = order;
    w.handshake();
    for &n in flights {
        w.after(ms(50));
        for k in 1..=n {
            let packet = w.client().data(MSS);
            packet.segment.flags.0 |= if pushed && k == n { TcpFlags::PSH } else { 0 };
        }
        w.after(ms(10)).server().ack();
        w.after(ms(10)).client().data(300);
        w.after(ms(10)).server().data(50);
        w.after(ms(10));
    }
    w.client().ack();
    let budget = w.connection().budget;
    [Cause::Nagle, Cause::SlowStart].map(|c| budget.get(c).0 / 1_000_000)
}

/// A tail waits for the ACK of a flight that was acknowledged before, when the window would have grown (rule
/// 54): once more is proof, and so is a first flight that is no initial window. A larger flight, a mark of a
/// stop in between, or Linux are none.
#[test]
fn tails_wait_by_the_classic_rule() {
    // FreeBSD has the rule, as is known from its SYN.
    assert_eq!(tails(0x432, &[4, 4], false), [40, 0]);
    assert_eq!(tails(0, &[4, 4], false), [20, 20]);
    assert_eq!(tails(0, &[4, 4, 3], false), [40, 20]);
    assert_eq!(tails(0, &[2, 4], false), [0, 40]);
    assert_eq!(tails(0, &[4, 4], true)[0], 0);
    assert_eq!(tails(0x342, &[4, 4], false)[0], 0);
    assert_eq!([5, 9, 10, 11].map(|n| tails(0, &[n], false)[0]), [20, 20, 0, 20]);
}

/// After two idle seconds so many segments leave at once, and the rest with their ACK. The window had grown
/// to forty: what flies above ten, and one more, shows that the idle time took nothing from it (rule 55).
#[test]
fn a_flight_above_what_an_idle_time_leaves_refutes_the_restart() {
    let restarted = |flight: u32| {
        let mut w = opened(Tap::Server);
        for n in [10, 20, 40] {
            w.server().write(n * MSS);
            w.after(ms(10)).client().ack();
            w.after(ms(10));
        }
        w.after(ms(2_000)).client().data(100);
        w.after(ms(10)).server().write(flight * MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10)).server().write(flight * MSS);
        w.after(ms(10)).client().ack();
        w.connection().budget.get(Cause::IdleRestart)
    };
    assert_eq!([10, 11, 12].map(restarted), [ms(20), ms(20), Nanos::ZERO]);
}

/// A stack with the classic rule sends a partial segment with the ACK of all before it. It would have been
/// filled up if more had been written: where full segments follow at once, the writer had waited too, and it
/// was for room in the buffer (rule 56).
#[test]
fn a_hold_that_was_not_filled_up_is_no_hold() {
    let found = |pause: Nanos| {
        let mut w = Wire::new(Tap::Server, ms(20));
        (w.host[SERVER].order, w.host[SERVER].ttl) = (0x432, 128);
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.after(ms(10));
        for _ in 0..6 {
            w.server().write(8 * MSS);
            w.after(ms(10)).client().ack();
            w.after(ms(10)).server().data(300);
            w.after(pause);
        }
        w.after(ms(10)).client().ack();
        let budget = w.connection().budget;
        [Cause::Nagle, Cause::SendBuffer].map(|c| budget.get(c).0 / 20_000_000)
    };
    // The last has nothing behind it, but flights before it that were as large; other holds hide behind a
    // pause of the writer (rule 24).
    assert_eq!([Nanos::ZERO, ms(21)].map(found), [[0, 6], [1, 0]]);
}

/// Beside the receiver of an upload whose handshake was not seen only the first echo of each stamp tells how
/// soon the sender reacts: two that agree within an eighth (rule 44).
#[test]
fn without_a_handshake_echoes_that_agree_tell_the_reaction() {
    let told = |flights: usize, late: i64| {
        let mut w = Wire::new(Tap::Server, ms(40));
        w.client().syn().unseen();
        w.at(ms(20)).server().syn_ack().unseen();
        w.at(ms(40)).client().ack().unseen();
        w.client().data(MSS);
        w.after(ms(20)).server().ack();
        w.after(ms(20));
        for n in 0..flights {
            w.after(ms(late * (n % 2) as i64)).client().write(8 * MSS);
            w.after(ms(20)).server().ack();
            w.after(ms(20));
        }
        w.connection().path.rtt
    };
    assert_eq!(told(1, 0), None);
    assert_eq!(told(2, 0), Some(ms(40) + Nanos(1)));
    assert_eq!([5, 6].map(|late| told(2, late).is_some()), [true, false]);
}

/// After flights of sixteen segments the server lets as many fly as the story says. What grows again from
/// less than half of that does not stay the same, so it is no plateau (rule 19).
#[test]
fn flights_that_grow_again_are_no_plateau() {
    let found = |flights: [u32; 5]| {
        let mut w = opened(Tap::Server);
        for n in [8, 16, 16].into_iter().chain(flights).chain([1]) {
            w.server().write(n * MSS);
            w.after(ms(10)).client().ack();
            w.after(ms(10));
        }
        let budget = w.connection().budget;
        [Cause::SlowStart, Cause::SendBuffer].map(|c| budget.get(c).0 / 1_000_000)
    };
    assert_eq!(found([8, 10, 12, 14, 16]), [160, 0]);
    // With less than two thirds of sixteen in flight no writer waits for a buffer that holds as much (rule 79).
    assert_eq!(found([9, 11, 13, 15, 16]), [20, 120]);
}

/// Flights of a download whose requests and handshake the capture lacks: beside the sender its peer's
/// reaction is known, and not its own (rule 58).
#[test]
fn without_a_round_trip_flights_say_less() {
    let sure = |handshake: bool| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.timestamps = false;
        w.handshake();
        if !handshake {
            w.packets.iter_mut().for_each(|p| _ = p.unseen());
        }
        w.at(ms(40));
        for n in [10, 20, 40, 80] {
            w.server().write(n * 1460);
            w.after(ms(10)).client().ack();
            w.after(ms(10));
        }
        let c = w.connection();
        let spans = c.exchanges.iter().flat_map(|x| &x.spans).filter(|s| s.cause == Cause::SlowStart);
        (c.path.rtt.is_some(), spans.map(|s| (s.confidence * 100.0).round() as u32).max())
    };
    assert_eq!(sure(true), (true, Some(90)));
    assert_eq!(sure(false), (false, Some(60)));
}

/// A timer repeats a full segment that had left alone or before others, in a first piece of so many bytes: 40
/// less may be options, less than that is a sender that has learnt a smaller size (rule 59). A segment that
/// was as small the first time says nothing.
#[test]
fn a_repeat_in_smaller_pieces_is_the_mtu() {
    let found = |first: u32, piece: u32| {
        let mut w = opened(Tap::Server);
        w.server().data(first).lost();
        w.server().data(MSS).lost();
        w.after(ms(300)).server().repeat(0, piece);
        w.after(ms(10)).client().ack();
        for from in [piece, 2 * piece, 3 * piece].into_iter().filter(|&n| n < first + MSS) {
            w.after(ms(10)).server().repeat(from, piece.min(first + MSS - from));
            w.after(ms(10)).client().ack();
        }
        w.connection().budget.get(Cause::PathMtu) > Nanos::ZERO
    };
    assert_eq!([found(MSS, MSS - 40), found(MSS, MSS - 41), found(536, 1_400)], [false, true, false]);
}

/// Told by ICMP, a sender repeats its flight at once and smaller, before any ACK can have come (rule 59).
#[test]
fn a_repeat_at_once_in_smaller_pieces_is_the_mtu() {
    let found = |flight: u32, piece: u32| {
        let mut w = opened(Tap::Server);
        (0..flight).for_each(|_| _ = w.server().data(MSS).lost());
        w.after(ms(1)).server().repeat(0, piece);
        w.server().repeat(piece, piece);
        w.server().repeat(2 * piece, 2 * (MSS - piece));
        (2..flight).for_each(|n| _ = w.server().repeat(n * MSS, 1_200));
        w.after(ms(10)).client().ack();
        w.after(ms(10)).server().data(100);
        [Cause::PathMtu, Cause::FastRecovery].map(|cause| w.connection().budget.get(cause) > Nanos::ZERO)
    };
    for flight in [2, 10] {
        assert_eq!([40, 41].map(|less| found(flight, MSS - less)), [[false, true], [true, false]]);
    }
}
