//! Room in the window that is not used at once: the buffer, or a congestion window that a loss made smaller.

use crate::windows::response_in_flights;
use crate::wire::{CLIENT, Tap, Wire, analyze, ms, us};
use tcpwhy_base::{Cause, FixId, Nanos, TcpFlags};

const MSS: u32 = 1448;

fn opened(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w
}

/// 40 segments at once, whose ACKs come one by one, every fourth segment, over 8 ms.
fn spread_round(w: &mut Wire, start: Nanos) {
    w.at(start);
    for k in 0..40 {
        w.server().data(MSS);
        w.overtaken(0, us(200 * k));
    }
    for k in 0..10 {
        w.at(start + ms(10) + us(800 * k + 600)).client().ack();
    }
}

/// Eighty segments of which the first was lost, and repaired by a fast retransmission: at 90 ms all is
/// acknowledged, and the congestion window is smaller than before.
fn repaired(w: &mut Wire) {
    w.at(ms(40)).server().data(MSS).lost();
    w.server().write(79 * MSS);
    w.at(ms(50)).client().ack();
    w.at(ms(60)).server().repeat(0, MSS);
    w.at(ms(70)).client().ack();
}

/// A loss made the congestion window smaller, and yet it is not the limit: ACKs make room that nobody uses,
/// until most of the flight is acknowledged. The writer waited for buffer space.
#[test]
fn room_that_nobody_uses_is_no_congestion_window() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    repaired(&mut w);
    // From here on each round begins with the ninth of ten ACKs.
    let round = ms(20) + us(8 * 800 + 600);
    for k in 0..6 {
        spread_round(&mut w, ms(80) + round.times(k));
    }
    let c = w.connection();
    let (buffer, window) = (c.budget.get(Cause::SendBuffer), c.budget.get(Cause::CongestionWindow));
    // How the ACKs are spread tells the link's rate; its share comes first.
    let link = c.budget.get(Cause::Bandwidth);
    assert!(buffer + window + link >= round.times(5) && buffer > link, "{:?}", c.budget);
    // What follows the last round would tell.
    assert!(window < round, "{:?}", c.budget);
}

/// The same ACKs, each of which releases what it acknowledged: the window that the loss made smaller.
#[test]
fn room_that_is_used_at_once_is_the_congestion_window() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    repaired(&mut w);
    for k in 0..60 {
        let t = ms(80) + ms(2).times(k);
        w.at(t).server().write(4 * MSS);
        w.at(t + ms(10)).client().ack();
    }
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::SendBuffer), Nanos::ZERO, "{:?}", c.budget);
}

/// After the loss forty segments are in flight and the window is of twenty: ACKs release nothing until so
/// many are left, and from then on each releases what it acknowledged.
#[test]
fn room_above_a_smaller_window_is_not_the_buffers() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    repaired(&mut w);
    w.at(ms(80)).server().write(40 * MSS);
    for k in 0..40 {
        w.overtaken(39 - k, us(200 * k as i64));
    }
    for k in 0..60 {
        let t = ms(90) + us(800 * k + 600);
        w.at(t).client().ack();
        if k >= 5 {
            w.at(t + ms(10)).server().write(4 * MSS);
        }
    }
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::SendBuffer), Nanos::ZERO, "{:?}", c.budget);
    assert!(c.budget.get(Cause::CongestionWindow) > Nanos::ZERO, "{:?}", c.budget);
}

/// Rounds of twenty segments in flight: ACKs of four come three at a time, and the third of them lets twelve
/// go. The sender had no more allowed than before the first (a window that a loss made smaller, and that is
/// used in bursts), as the flights say.
#[test]
fn room_used_in_bursts_is_not_the_buffers() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    repaired(&mut w);
    let round = |k: i64| ms(80) + us(20_200 * k);
    let acked = |m: i64| round(m / 12) + us(6_800 + 1_600 * (m / 4 % 3));
    let send = |w: &mut Wire, t: Nanos, from: i64, to: i64| {
        for m in from..to {
            w.at(t).server().data(MSS);
            w.overtaken(0, (acked(m) - ms(10) - t).floor0());
        }
    };
    send(&mut w, ms(80), 0, 20);
    for k in 0..7 {
        for r in 0..3 {
            w.at(acked(12 * k + 4 * r)).client().ack();
        }
        send(&mut w, round(k) + us(20_050), 20 + 12 * k, 32 + 12 * k);
    }
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::SendBuffer), Nanos::ZERO, "{:?}", c.budget);
    assert!(c.budget.get(Cause::CongestionWindow) >= ms(60), "{:?}", c.budget);
}

/// Bursts of so many segments over a link of 97 Mbit/s, each as soon as 28 are left of the one before, or by a clock.
fn bursts(segments: &[i64], every: Option<Nanos>) -> tcpwhy_analysis::Connection {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().window(1 << 24).data(100);
    let (mut t, mut free, mut next) = (ms(80), ms(80), ms(80));
    for &n in segments {
        let mut acked = t;
        for k in 0..n {
            free = free.max(t) + us(120);
            w.at(t).server().data(MSS).late(free - t);
            if k % 2 == 1 {
                w.at(free + ms(10)).client().ack();
            }
            if k == n - 29 {
                acked = free + ms(20);
            }
        }
        next = every.map_or(acked, |each| next + each);
        t = next + us(80);
    }
    w.connection()
}

/// A kernel lets a writer write far more than its small buffer holds, and wakes it when as much is left each
/// time, however long that takes.
#[test]
fn a_writer_is_woken_when_as_much_is_left() {
    let sizes = [50, 60, 80, 100, 120, 140, 200, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300];
    let told = |every| {
        let c = bursts(&sizes, every);
        (c.budget.get(Cause::SendBuffer) > ms(200), c.budget.get(Cause::SenderPause) > ms(200))
    };
    assert_eq!(told(None), (true, false));
    assert!(!told(Some(ms(54))).0);
}

/// Flights of two segments of the queue by turns, each as all before it is acknowledged, so many milliseconds late.
fn one_by_one(late: &[i64], tap: Tap) -> tcpwhy_analysis::Connection {
    let mut w = Wire::new(tap, ms(40));
    w.handshake();
    w.at(ms(50)).client().window(1 << 20).data(100);
    let mut t = ms(80);
    for (k, late) in late.iter().enumerate() {
        w.at(t).server().write(if k % 2 == 0 { 30 * MSS + 1_000 } else { 14 * MSS + 376 });
        w.at(t + ms(20)).client().ack();
        t = t + ms(40) + us(90) + ms(*late);
    }
    w.connection()
}

/// The writer of a small buffer wakes up with each ACK, and a busy host often lets it run late: the buffer's,
/// but for what is late.
#[test]
fn a_writer_that_is_woken_late_waits_for_its_buffer() {
    let late = [8, 0, 12, 0, 4, 0, 16, 0, 4, 0, 8, 3, 12, 0, 4, 0, 3, 4, 12, 0, 8, 12, 4, 0];
    for tap in [Tap::Server, Tap::Client] {
        let c = one_by_one(&late, tap);
        let (buffer, writer) = (c.budget.get(Cause::SendBuffer), c.budget.get(Cause::SenderPause));
        assert!(buffer >= ms(40 * 18), "{:?}", c.budget);
        // Of the first flight nothing shows yet what limited it.
        assert!(writer <= ms(40 + late.iter().sum::<i64>()), "{:?}", c.budget);
        assert_eq!(c.budget.get(Cause::Unexplained), Nanos::ZERO, "{:?}", c.budget);
    }
}

/// A small buffer that let a megabyte through once is small all the same: that it is not set is advised, with how to see whether one
/// is; that the limit of the automatic one be raised is not.
#[test]
fn a_buffer_that_let_more_through_once_may_be_set() {
    let mut w = Wire::new(Tap::Server, ms(40));
    w.handshake();
    w.at(ms(50)).client().window(1 << 21).data(100);
    let mut t = ms(80);
    for k in 0..40 {
        w.at(t).server().write(if k == 30 { 600 * MSS } else { 31 * MSS + 400 });
        w.at(t + ms(20)).client().ack();
        t = t + ms(40) + us(90);
    }
    let analysis = analyze(&w.segments());
    let full = analysis.findings.iter().find(|f| f.cause == Cause::SendBuffer).expect("the buffer is full");
    let unset = full.fixes.iter().find(|fix| fix.fix == FixId::UnsetSndbuf).expect("it may be set");
    assert!(unset.how[0].contains("First see whether one is set"), "{:?}", unset.how);
    let limit = full.refuted.iter().find(|r| r.fix == FixId::Wmem).expect("the limit is no less");
    assert!(limit.because.contains("868800 bytes"), "{}", limit.because);
}

/// The same flights of a writer that is never there as an ACK comes: its own clock, a little slower than the
/// round trip.
#[test]
fn a_writer_that_no_ack_wakes_has_its_own_clock() {
    let late = [6, 8, 7, 9, 6, 8, 7, 12, 6, 8, 7, 9, 6, 8, 7, 9, 6, 8, 7, 9, 6, 8, 7, 9];
    let c = one_by_one(&late, Tap::Server);
    assert_eq!(c.budget.get(Cause::SendBuffer), Nanos::ZERO, "{:?}", c.budget);
    assert!(c.budget.get(Cause::SenderPause) >= ms(40 * 20), "{:?}", c.budget);
}

/// A program that writes 64 KiB at a time puts one to four of them beyond a small buffer: Linux asks for room
/// before a new segment of its queue, which holds as much (rule 123). Of smaller ones that differ as much
/// nobody can tell.
#[test]
fn writes_of_whole_segments_of_the_queue_go_beyond_their_buffer() {
    let found = |tap: Tap, each: u32| {
        let mut w = opened(tap);
        w.at(ms(30)).client().window(1 << 20).data(100);
        let mut t = ms(60);
        // As nginx with `listen ... sndbuf=32k` let them go over 1 Gbit/s.
        let beyond =
            [3, 3, 4, 2, 1, 1, 1, 3, 4, 3, 3, 3, 4, 2, 1, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 2, 3, 3, 1, 1];
        for n in [10, 20, 40].into_iter().chain(beyond.map(|n| n * each)) {
            w.at(t).server().write(n * MSS);
            w.at(t + ms(10)).client().ack();
            t = t + ms(20) + us(120);
        }
        let c = w.connection();
        assert!(c.budget.get(Cause::SendBuffer) >= ms(250), "{:?}", c.budget);
        c.budget.get(Cause::Unexplained) > Nanos::ZERO
    };
    for tap in [Tap::Server, Tap::Client] {
        assert_eq!([45, 30].map(|each| found(tap, each)), [false, true], "{tap:?}");
    }
}

/// Writes of 1,000 bytes that come with ACKs, two in a round trip of 40 ms. A buffer of two of them takes the
/// first two at once; a writer that brings no more than that in its first round trip, where no ACK can have
/// come, is as slow by itself, however late its host let it write there (rule 124).
#[test]
fn a_buffer_is_full_at_once_and_a_slow_writer_is_not() {
    let found = |second: Nanos| {
        let mut w = Wire::new(Tap::Server, ms(40));
        w.handshake();
        w.at(ms(40)).client().data(100);
        let mut left = vec![ms(70), ms(70) + second];
        for n in 2..60 {
            left.push(left[n - 2] + ms(40) + us(120));
        }
        let mut acks: Vec<Nanos> = left.iter().map(|&t| t + ms(40)).collect();
        while !left.is_empty() || !acks.is_empty() {
            if left.first().is_some_and(|l| *l < acks[0]) {
                w.at(left.remove(0)).server().write(1_000);
            } else {
                w.at(acks.remove(0) - ms(20)).client().ack();
            }
        }
        let c = w.connection();
        [Cause::SendBuffer, Cause::SenderPause].map(|cause| c.budget.get(cause) > ms(500))
    };
    assert_eq!(found(ms(23)), [false, true]);
    assert_eq!(found(us(100)), [true, false]);
}

/// Flights that no window of the receiver stops are acknowledged 30 ms after they came, all at once: beside
/// the receiver that says that they had not been read (rule 86), as it does where they fill its window. One
/// segment alone may wait for the timer of a delayed ACK.
#[test]
fn what_was_read_late_is_no_delayed_ack() {
    let found = |segments: u32, tap: Tap| {
        let mut w = Wire::new(tap, ms(20));
        w.handshake();
        w.at(ms(100)).client().data(100);
        w.at(ms(110)).server().data(1448);
        w.at(ms(120)).client().ack();
        for n in 0..8 {
            w.at(ms(130 + 50 * n)).server();
            (0..segments).for_each(|_| {
                w.server().data(1448);
            });
            w.after(ms(40)).client().ack();
        }
        let c = w.connection();
        [Cause::SlowReader, Cause::DelayedAck].map(|cause| c.budget.get(cause) > ms(200))
    };
    assert_eq!(found(6, Tap::Client), [true, false]);
    assert_eq!(found(1, Tap::Client), [false, true]);
    // In the middle of the path a queue behind the tap looks the same.
    assert!(!found(6, Tap::Middle)[0]);
}

/// Beside the sender: eight segments are acknowledged one by one, then nothing for 40 ms, then all the others
/// at once. A window that had begun to fall tells that nobody read then; else it may be a queue that the path
/// let through at once.
#[test]
fn beside_the_sender_a_falling_window_tells_of_the_reader() {
    let found = |falls: u32, probed: bool| {
        let mut w = Wire::new(Tap::Server, ms(10));
        w.host[CLIENT].window = 200 * MSS;
        w.handshake();
        w.at(ms(100)).client().data(100);
        w.at(ms(110));
        let mut start = ms(110);
        for n in 0..20 {
            // By no clock.
            let lasts = ms([50, 57, 46, 61][n % 4]);
            w.at(start);
            for k in 0..60 {
                w.server().data(MSS);
                w.overtaken(0, us(60 * k));
            }
            for k in 0..8 {
                w.at(start + ms(5) + us(60 * i64::from(k) + 30)).client().window(200 * MSS - falls * k).ack();
            }
            if probed {
                w.at(start + lasts - ms([29, 36, 25, 33][n % 4])).server().data(MSS);
            }
            w.at(start + lasts - ms(5)).client().window(200 * MSS).ack();
            start += lasts;
        }
        let c = w.connection();
        (c.budget.get(Cause::SlowReader) > ms(800), c.budget.get(Cause::Bandwidth) > ms(400))
    };
    assert_eq!([0, 1_024].map(|falls| found(falls, false)), [(false, true), (true, false)]);
    // A probe of the tail brings a new segment meanwhile, and lost nothing.
    assert_eq!(found(1_024, true), (true, false));
}

/// Flights that grow to forty segments, then of twenty: a buffer's, unless the sender said that it made its
/// window smaller (CWR, rule 118).
#[test]
fn a_window_that_a_mark_made_smaller_is_no_buffer() {
    for tap in [Tap::Server, Tap::Client] {
        let told = |cwr: u16| {
            let mut w = opened(tap);
            w.at(ms(30)).client().window(1 << 20).data(100);
            for (k, n) in [10, 20, 40].into_iter().chain([20; 12]).enumerate() {
                let t = ms(60) + us(20_050 * k as i64);
                for m in 0..n {
                    let packet = w.at(t).server().data(MSS);
                    packet.segment.flags.0 |= if (k, m) == (3, 0) { cwr } else { 0 };
                }
                w.at(t + ms(10)).client().ack();
            }
            let c = w.connection();
            [Cause::SendBuffer, Cause::CongestionWindow].map(|cause| c.budget.get(cause) > ms(150))
        };
        assert_eq!([told(0), told(TcpFlags::CWR)], [[true, false], [false, true]], "{tap:?}");
    }
}

/// A loss has ended slow start for good: a window that stays as large behind an idle time as well is in
/// congestion avoidance, and no buffer.
#[test]
fn after_a_loss_and_an_idle_time_a_plateau_is_the_windows() {
    let story = |lost: bool| {
        let mut w = opened(Tap::Server);
        let end = response_in_flights(&mut w, ms(30), &[10, 20]);
        let again = end + ms(500);
        w.at(end).client().data(100);
        let first = w.after(ms(10)).server().data(MSS);
        if lost {
            first.lost();
        }
        w.server().write(19 * MSS);
        w.after(ms(20));
        if lost {
            w.server().repeat(30 * MSS, MSS);
        }
        w.after(ms(10)).client().ack();
        response_in_flights(&mut w, again, &[10, 14, 14, 14, 14, 14, 14]);
        let budget = w.connection().budget;
        [Cause::SendBuffer, Cause::CongestionWindow].map(|c| budget.get(c))
    };
    let (without, with) = (story(false), story(true));
    assert!(without[0] >= ms(100) && without[1] == Nanos::ZERO, "{without:?}");
    assert!(with[1] >= ms(100) && with[0] == Nanos::ZERO, "{with:?}");
}

/// Behind a loss an idle time takes the window that the loss left, and not what flew before: as much flies as
/// before the idle time, or it grows back to that.
#[test]
fn what_an_idle_time_takes_is_what_a_loss_had_left() {
    let restarts = |tap: Tap, flights: &[u32]| {
        let mut w = opened(tap);
        let end = response_in_flights(&mut w, ms(30), &[10, 20]);
        w.at(end).client().data(100);
        w.after(ms(10)).server().data(MSS).lost();
        w.server().write(39 * MSS);
        w.after(ms(20)).server().repeat(30 * MSS, MSS);
        w.after(ms(10)).client().ack();
        let end = response_in_flights(&mut w, end + ms(50), &[20, 20, 20, 20]);
        response_in_flights(&mut w, end + ms(500), flights);
        let budget = w.connection().budget;
        [Cause::IdleRestart, Cause::CongestionWindow].map(|c| budget.get(c) > ms(15))
    };
    for tap in [Tap::Server, Tap::Client] {
        assert_eq!(restarts(tap, &[20, 20, 24, 24, 28]), [false, true], "{tap:?}");
        assert_eq!(restarts(tap, &[10, 20, 20, 24, 24]), [true, true], "{tap:?}");
    }
}

/// Nor is the window that a loss leaves behind an idle time what the idle time took, where the loss lay before the tap.
#[test]
fn a_loss_before_the_tap_ends_what_an_idle_time_took() {
    let mut w = opened(Tap::Client);
    let end = response_in_flights(&mut w, ms(30), &[10, 20, 40]);
    w.at(end + ms(500)).client().data(100);
    w.after(ms(10)).server().data(MSS).lost_before_tap();
    w.server().write(9 * MSS);
    w.after(ms(20)).server().repeat(70 * MSS, MSS);
    w.after(ms(10)).client().ack();
    response_in_flights(&mut w, end + ms(560), &[14, 14, 18, 18, 22]);
    let budget = w.connection().budget;
    assert_eq!(budget.get(Cause::IdleRestart), Nanos::ZERO, "{budget:?}");
}

/// A route may have its own initial window (`initcwnd`): an idle time takes the window back to that.
#[test]
fn a_smaller_initial_window_is_taken_back_to_itself() {
    let restarts = |first: u32| {
        let mut w = opened(Tap::Server);
        let end = response_in_flights(&mut w, ms(30), &[first, 8 - first]);
        response_in_flights(&mut w, end + ms(500), &[first, 8 - first]);
        let budget = w.connection().budget;
        [Cause::SlowStart, Cause::IdleRestart].map(|c| budget.get(c))
    };
    assert_eq!(restarts(4), [ms(20), ms(20)]);
    // What it begins with holds all.
    assert_eq!(restarts(8), [Nanos::ZERO; 2]);
}

/// Behind a partial segment that an ACK let go full ones left at once: its writer had waited for room as
/// well, and was late a moment later for other reasons. What hides holds of Nagle's algorithm hides none of
/// these (rules 24 and 56).
#[test]
fn what_was_filled_up_at_once_is_no_hidden_hold() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    w.after(ms(10)).server().write(10 * MSS + 912);
    for _ in 0..12 {
        w.after(ms(10)).client().ack();
        w.after(ms(10) + us(20)).server().data(912);
        w.server().write(10 * MSS);
    }
    w.after(ms(2)).server().data(912);
    w.after(ms(10)).client().ack();
    let budget = w.connection().budget;
    assert!(budget.get(Cause::SenderPause) < ms(30), "{budget:?}");
}
