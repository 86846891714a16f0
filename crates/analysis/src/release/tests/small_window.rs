//! Windows of the other end that have little room.

use super::*;

/// A segment fits into a window of six, four are in flight and the congestion window has room for ten: while an ACK is due, Linux keeps
/// less than a third for a larger burst.
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
    probed(4 * MSS, 190).is(Wait::Closed { window: 400, flight: 0, unread: false });
    probed(4 * MSS - 1, 190).is(Wait::Silly { window: 400 });
    probed(4 * MSS, 189).is(pause(0, false));
}
