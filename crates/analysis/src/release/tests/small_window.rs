//! Windows of the other end that have little room.

use super::*;

/// A segment fits into a window of six, four are in flight and the congestion window has room for ten: while
/// an ACK is due, Linux keeps less than a third for a larger burst.
#[test]
fn room_that_is_not_worth_a_burst_is_left() {
    let after = |first: i64, change: fn(&mut Row)| {
        let row = row(ms(40), MSS).with(|r| {
            let ack = |after: i64, from: u32, to: u32| {
                let mut ack = Ack::new(START + ms(after), 7, true, false, Some(ms(20)));
                (ack.una_before, ack.ack) = (NXT - from * MSS, NXT - to * MSS);
                (ack.edge_before, ack.edge) = (NXT + (5 - from) * MSS + 100, NXT + (5 - to) * MSS + 100);
                (ack.window_before, ack.cwnd) = (6 * MSS, 10 * MSS);
                ack
            };
            r.acks.push(ack(first, 5, 4), Nanos::ZERO);
            r.acks.push(ack(40, 4, 1), Nanos::ZERO);
            (r.flow.una, r.largest_window) = (NXT - MSS, Some(6 * MSS));
        });
        row.with(change).release().wait
    };
    let window = Wait::Window { flight: 4 * MSS };
    assert_eq!([after(1, |_| ()), after(-9, |_| ())], [window, window]);
    let is_other = |wait: Wait| assert!(matches!(wait, Wait::Acked(_)), "{wait:?}");
    // No ACK had come of what left before: none was due.
    is_other(after(25, |_| ()));
    is_other(after(-11, |_| ()));
    // The end of a write, another stack, a window with more room.
    is_other(after(1, |r| r.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH)));
    is_other(after(1, |r| r.profile = Profile::UNKNOWN));
}

#[test]
fn a_timer_sends_into_a_small_window() {
    let probed = |largest: u32, waited: i64| {
        row(ms(waited), 400).with(|r| {
            r.flow.edge = NXT + 400;
            r.largest_window = Some(largest);
        })
    };
    probed(4 * MSS, 190).is(Wait::Closed { window: 400, flight: 0, unread: None });
    probed(4 * MSS - 1, 190).is(Wait::Silly { window: 400 });
    probed(4 * MSS, 189).is(pause(0, false));
}

/// Beside the receiver a window of four segments, acknowledged at once by an ACK that came late: its reader
/// had it so long (rule 86).
#[test]
fn a_late_ack_for_several_segments_waited_for_the_reader() {
    let opened = |waited: i64, late: i64, change: fn(&mut Row)| {
        let row = row(Nanos::micros(waited), MSS).far().with(|r| {
            let (left, fastest) = (r.path.own(), r.path.peer());
            let at = START + Nanos::micros(waited) - left;
            let mut ack = Ack::new(at, 7, true, false, Some(fastest + Nanos::micros(late)));
            (ack.una_before, ack.ack) = (NXT - 4 * MSS, NXT);
            (ack.edge_before, ack.edge, ack.window_before) = (NXT, NXT + 4 * MSS, 4 * MSS);
            r.acks.push(ack, Nanos::ZERO);
            r.largest_window = Some(4 * MSS);
        });
        row.with(change).release().wait
    };
    let flight = 4 * MSS;
    let read_late = |late| Wait::Closed { window: flight, flight, unread: Some(Nanos::micros(late)) };
    assert_eq!(opened(23_000, 11_501, |_| ()), read_late(11_501));
    // Not for most of it: however late, a larger window would have saved more.
    assert_eq!(opened(23_002, 11_501, |_| ()), Wait::Window { flight });
    assert_eq!(opened(23_000, 7_000, |_| ()), Wait::Window { flight });
    // A wake-up.
    assert_eq!(opened(1_990, 1_000, |_| ()), Wait::Window { flight });
    assert_eq!(opened(1_990, 1_001, |_| ()), read_late(1_001));
}

/// The ACK that opens the window offers half of the largest; that came since, or before.
#[test]
fn a_window_that_grows_says_nothing_of_what_was_read() {
    let opened = |largest: u32| {
        let row = row(ms(20), MSS).with(|r| {
            for (frame, acked, offered) in [(7, 9, 10), (8, 8, 20)] {
                let mut ack = Ack::new(START + ms(20), frame, true, false, Some(ms(20)));
                (ack.una_before, ack.ack) = (NXT - (acked + 1) * MSS, NXT - acked * MSS);
                (ack.edge_before, ack.edge, ack.window_before) = (NXT, ack.ack + offered * MSS, 10 * MSS);
                r.acks.push(ack, Nanos::ZERO);
            }
            r.largest_window = Some(largest);
        });
        row.release().wait
    };
    let flight = 10 * MSS;
    assert_eq!(opened(20 * MSS), Wait::Window { flight });
    assert_eq!(opened(20 * MSS + 1), Wait::Closed { window: flight, flight, unread: Some(Nanos::ZERO) });
}

/// A window of twenty segments is acknowledged as a whole, with eight of them still to be read: by a reader
/// that had been there just before, or was just after, or by one that leaves something there each time.
#[test]
fn whoever_has_caught_up_is_no_slow_reader() {
    let opened = |before: u32, since: Option<u32>, left: u32| {
        let row = row(ms(20), MSS).with(|r| {
            let all = NXT - left * MSS;
            let acks = [(7, 25, 20, before), (8, 20, left, 8)];
            let update = since.map(|offered| (9, left, left, offered));
            for (frame, from, to, offered) in acks.into_iter().chain(update) {
                let at = if frame == 7 { START } else { START + ms(20) };
                let mut ack = Ack::new(at, frame, true, false, Some(ms(20)));
                (ack.una_before, ack.ack) = (NXT - from * MSS, NXT - to * MSS);
                (ack.edge_before, ack.edge, ack.window_before) = (NXT, ack.ack + offered * MSS, 20 * MSS);
                r.acks.push(ack, Nanos::ZERO);
            }
            (r.flow.una, r.largest_window) = (all, Some(20 * MSS));
        });
        row.release().wait
    };
    let is_reader = |wait: Wait| matches!(wait, Wait::Closed { unread: Some(Nanos::ZERO), .. });
    assert_eq!(opened(20, None, 0), Wait::Window { flight: 20 * MSS });
    assert!(is_reader(opened(15, None, 0)));
    assert_eq!(opened(15, Some(16), 0), Wait::Window { flight: 20 * MSS });
    assert!(is_reader(opened(15, Some(15), 0)));
    // What is still in flight comes on top of that.
    assert!(is_reader(opened(20, None, 1)));
}

/// Windows have been low for so long when an ACK for three segments comes, so late, and the next segment
/// leaves 13 ms behind it, let go by nothing: whether its reader had left something there (rule 21).
#[test]
fn what_a_pace_holds_may_lie_unread() {
    let lies = |low: Nanos, late: Nanos, took: u32| {
        let wait = row(ms(23), MSS).with(|r| {
            let mut ack = Ack::new(START + ms(10), 7, true, false, Some(ms(20) + late));
            (ack.ack, r.flow.una) = (NXT - MSS, NXT - MSS);
            ack.una_before = ack.ack - took;
            (ack.edge_before, ack.edge) = (ack.ack + 10_000, ack.ack + 30_000);
            ack.window_before = 30_000;
            r.acks.push(ack, Nanos::ZERO);
            r.acks.window_changes(START + ms(10) - low, 60_000, 30_000);
        });
        let Wait::Pause(pause) = wait.release().wait else { panic!("{:?}", wait.release().wait) };
        assert!(pause.full);
        pause.unread
    };
    assert!(lies(ms(20), ms(3), 3 * MSS));
    // Low for less than a round trip; late by an eighth of it; an ACK for less than two segments.
    assert!(!lies(ms(20) - Nanos(1), ms(3), 3 * MSS));
    assert!(!lies(ms(20), ms(20).part(8), 3 * MSS));
    assert!(!lies(ms(20), ms(3), 2 * MSS - 1));
}
