//! What left before any ACK could have let it go (rule 72).

use super::*;

/// A full segment in the middle of a run, 15 ms behind the one before, of a sender 20 ms away: what an ACK
/// let go left 20 ms before it passed. What came until 2.5 ms after the one before had left (an eighth for
/// jitter) had let that go.
#[test]
fn what_no_ack_can_have_released_was_in_the_queue() {
    let from = Nanos::ZERO - ms(20) + ms(20).part(8);
    let behind = |ack: Nanos| row(ms(15), MSS).far().acked_in_part(ack);
    behind(from).is(Wait::Burst);
    let released = |r: &Row| matches!(r.release().wait, Wait::Acked(_));
    assert!(released(&behind(from + Nanos(1))));
    assert!(released(&behind(ms(15) - ms(20))));
    // Where hosts take as long as the path nothing is told.
    let short = behind(from).with(|r| r.path.rtt = ms(1) - Nanos(1));
    assert!(released(&short));
    // Nor behind the end of a write.
    let pushed = behind(from).with(|r| r.flow.last = r.flow.last.map(|l| Last { psh: true, ..l }));
    assert!(matches!(pushed.release().wait, Wait::Pause(_)));
}

/// Seen from afar (rule 72): no ACK can have reached the sender in the wait, but for an eighth of its
/// reaction, so it was on its way.
#[test]
fn what_no_ack_released_was_in_the_queue() {
    row(ms(12), MSS).far().is(Wait::Burst);
    let acked = |before: i64| row(ms(12), MSS).far().acked_in_part(Nanos(-before));
    acked(17_500_000).is(Wait::Burst);
    assert!(matches!(acked(17_499_999).release().wait, Wait::Acked(_)));
    // The window had no room before that ACK, which came when the one before had passed the tap: the window,
    // and then the queue.
    let shut = |before: i64| {
        acked(before).with(|r| {
            let mut ack = *r.acks.newest_first().next().unwrap();
            ack.edge_before = NXT;
            r.acks = Acks::default();
            r.acks.push(ack, Nanos::ZERO);
        })
    };
    assert!(matches!(shut(19_999_999).release().wait, Wait::Window { .. } | Wait::Closed { .. }));
    assert!(matches!(shut(20_000_000).release().wait, Wait::Acked(_)));
    // A hole made the receiver repeat its ACKs, which are not kept: one of them may have let it go.
    let filled = |after: Nanos| {
        row(ms(12), MSS)
            .far()
            .with(|r| r.acks.push(Ack::new(START + after, 7, true, true, None), Nanos::ZERO))
    };
    filled(Nanos(-22_500_000)).is(Wait::Burst);
    assert!(!matches!(filled(Nanos(-22_499_999)).release().wait, Wait::Burst));
    assert!(!matches!(filled(ms(11)).release().wait, Wait::Burst));
    // Hosts that take as long as the way tell nothing.
    let short = |rtt| row(ms(12), MSS).far().with(|r| r.path.rtt = rtt);
    short(ms(1)).is(Wait::Burst);
    assert!(matches!(short(ms(1) - Nanos(1)).release().wait, Wait::Acked(_)));
}
